//! `needs:`: the connections between stages, with ports and types checked, and their topological order.

use crate::stage::earlier::{self, Earlier, EarlierRef, FORMS, FindEarlier, Fixed, Need, RunRef, This};
use crate::stage::face::Face;
use crate::stage::reference::{Select, parse_reference};
use crate::stage::written::Stage;
use crate::task_graph::TaskGraph;
use crate::text::{Block, Problems, Several, Spot, Text, Tree, Value, list, suggest};
use schemars::JsonSchema;
use serde::Deserialize;
use stages_core::{AnyStage, InputPort, PortType};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A reference to an output of a stage, at some of the stage's points.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    /// The index of the producing stage.
    pub stage: usize,
    /// The output's name.
    pub output: String,
    /// The selected points.
    pub select: Select,
    /// The position of the reference.
    pub spot: Spot,
}

/// The inputs of a stage.
pub(crate) struct Needs {
    /// The references, by port, in the order of the file.
    pub ports: Vec<(String, Vec<Reference>)>,
    /// The artifacts of earlier runs, by port.
    pub earlier: BTreeMap<String, Vec<Earlier>>,
    /// True if all references were resolved.
    pub sound: bool,
}

/// The source of a need that refers to an earlier run or to a registered policy: the artifact, or the stage
/// that `or` names in its place; neither for `or: none`.
type Found<'t> = (Option<Earlier>, Option<&'t Tree>);

/// The stages of a pipeline, and the earlier runs, that needs refer to.
pub(crate) struct Connector<'a> {
    pub stages: &'a [Stage],
    pub faces: &'a [Face<'a>],
    /// The index of each stage, by name.
    pub names: HashMap<&'a str, usize>,
    pub this: This<'a>,
    /// Finds artifacts of earlier runs, if there is a history of runs.
    pub find: Option<&'a FindEarlier>,
}

impl<'a> Connector<'a> {
    /// Resolves the needs of the stage at `index`.
    pub(crate) fn resolve(&self, index: usize, problems: &mut Problems) -> Needs {
        let (stages, faces) = (self.stages, self.faces);
        let stage = &stages[index];
        let before = problems.count();
        let mut sound = true;
        let mut ports = Vec::new();
        let mut earlier: BTreeMap<String, Vec<Earlier>> = BTreeMap::new();
        for (key, value) in &stage.needs {
            let port = match faces[index] {
                Face::Kind(kind) => {
                    let inputs = kind.ports().inputs;
                    let port = kind.ports().input(&key.name);
                    if port.is_none() {
                        let hint = if inputs.is_empty() {
                            format!("`{}` has no inputs: remove it", kind.name())
                        } else {
                            suggest(&key.name, "inputs", inputs.iter().map(|port| port.name))
                        };
                        problems.add(
                            key.spot,
                            format!("`{}` has no input `{}`", kind.name(), key.name),
                            hint,
                        );
                        continue;
                    }
                    port
                }
                Face::Program(_) | Face::Unknown => None,
            };
            let many = !matches!(faces[index], Face::Kind(_)) || port.is_some_and(|port| port.list);
            let items: &[Tree] = match &value.value {
                Value::List(items) if items.is_empty() => {
                    problems.add(
                        value.spot,
                        format!("`{}` is connected to nothing", key.name),
                        "name a stage, or remove it",
                    );
                    continue;
                }
                Value::List(_) if !many => {
                    problems.add(
                        value.spot,
                        format!("the input `{}` takes one artifact, not a list", key.name),
                        "name one: `STAGE` or `STAGE.OUTPUT`",
                    );
                    continue;
                }
                _ => value.items(),
            };
            let (past, own): (Vec<&Tree>, Vec<&Tree>) =
                items.iter().partition(|item| earlier::is_earlier(item));
            let found: Vec<Found<'_>> = past
                .iter()
                .filter_map(|item| self.earlier(item, port, problems))
                .collect();
            sound &= found.len() == past.len();
            let instead = found.iter().filter_map(|(_, instead)| *instead);
            let own: Vec<&Tree> = own.into_iter().chain(instead).collect();
            let references: Vec<Reference> = own
                .iter()
                .filter_map(|item| self.reference(item, index, port, many, problems))
                .collect();
            sound &= references.len() == own.len();
            if !own.is_empty() {
                ports.push((key.name.clone(), references));
            }
            if !past.is_empty() {
                // Missing artifacts are passed on too: the empty port is then in the key, and the pipeline is
                // read again each time.
                let artifacts = found.into_iter().filter_map(|(artifact, _)| artifact);
                earlier.insert(key.name.clone(), artifacts.collect());
            }
        }
        // The error about a misspelt name is more helpful.
        if let Face::Kind(kind) = faces[index]
            && problems.count() == before
            && !stage.doubtful
        {
            self.missing(index, kind, problems);
        }
        Needs {
            ports,
            earlier,
            sound: sound && !stage.doubtful && problems.count() == before,
        }
    }

    /// Resolves a need to the artifact of an earlier run, or to the registered policy, that it refers to.
    fn earlier<'t>(
        &self,
        tree: &'t Tree,
        port: Option<&InputPort>,
        problems: &mut Problems,
    ) -> Option<Found<'t>>
    where
        'a: 't,
    {
        let this = self.this;
        if let Some(text) = tree.text().filter(|text| text.contains("${")) {
            let message = format!("`{text}` is not a valid reference");
            return problems.fail(tree.spot, message, "`needs` cannot contain interpolations");
        }
        let Need { run, artifact, or } = earlier::read(tree, this, problems)?;
        let mut wrong = |message: String, hint: &str| problems.fail(tree.spot, message, hint);
        let text = match run {
            RunRef::Registered(policy) => policy,
            _ => tree.text().unwrap_or(artifact),
        };
        let (stage, select, output) = match parse_reference(artifact) {
            _ if matches!(run, RunRef::Registered(_)) => ("", Select::default(), None),
            Ok(parsed) if !parsed.0.is_empty() => parsed,
            Ok(_) => return wrong(format!("`{text}` is not a valid reference"), FORMS),
            Err(message) => return wrong(message, FORMS),
        };
        if select.all || !select.all_of.is_empty() {
            return wrong(
                format!("`{text}` stands for several points"),
                "of an earlier run, name one point; a list takes several references",
            );
        }
        if let Some(none) = or.filter(|or| or.text() == Some("none")) {
            let message = match port {
                None => "an input of a program cannot be none".to_owned(),
                Some(port) => format!("the input `{}` is required: it cannot be none", port.name),
            };
            if port.is_none_or(|port| !port.optional) {
                let hint = "leave `or` out, or need a stage of this pipeline";
                return problems.fail(none.spot, message, hint);
            }
        }
        let Some(find) = self.find else {
            return wrong(
                format!("`{text}` names an earlier run, but no run history is available"),
                "name a stage of this pipeline",
            );
        };
        let is_own = matches!(&run, RunRef::LastOf { pipeline, file } if *pipeline == this.name
            && file.as_ref() == Some(&this.path()));
        let reference = EarlierRef {
            run,
            stage,
            point: &select.picks,
            output,
            ty: port.map(|port| port.ty),
        };
        match (find(&reference), &reference.run) {
            (Err(err), _) => wrong(err.message, &err.hint),
            // A misspelt stage can never be found.
            (Ok(None), _) if is_own && !self.names.contains_key(stage) => {
                let known: BTreeSet<&str> = self.names.keys().copied().collect();
                wrong(
                    format!("no run of this pipeline has a stage `{stage}`, nor has it one now"),
                    &suggest(stage, "stages", known),
                )
            }
            (Ok(None), _) if or.is_some() => Some((None, or.filter(|or| or.text() != Some("none")))),
            (Ok(None), RunRef::Registered(_)) => wrong(
                format!("no policy is registered as `{text}`"),
                &format!(
                    "`runner policy list` lists them; `{{ policy: {text}, or: none }}`, or a stage in place \
                    of `none`, begins without one"
                ),
            ),
            (Ok(None), run) => {
                let by_id = format!("`RUN/{stage}` takes that of any run by its id, see `runner runs`");
                let (whose, hint) = match run {
                    RunRef::LastOf { pipeline, .. } => {
                        let need = format!("{{ pipeline: {pipeline}, stage: {stage}, or: none }}");
                        let hint = match port.is_some_and(|port| port.optional) {
                            true => format!("`{need}` begins without one; {by_id}"),
                            false => format!("run it first; {by_id}"),
                        };
                        (Some(pipeline).filter(|_| !is_own), hint)
                    }
                    _ => (None, format!("run it first; {by_id}")),
                };
                let whose = whose.map_or("this pipeline".to_owned(), |name| format!("the pipeline `{name}`"));
                let message = format!("no run of {whose} has an output of `{stage}` that can be taken");
                wrong(message, &hint)
            }
            (Ok(Some(found)), _) => match port.filter(|port| !takes(port.ty, &found.ty)) {
                Some(port) => wrong(
                    format!(
                        "the input `{}` takes `{}`, and `{}` is `{}`",
                        port.name,
                        port.ty.name(),
                        found.name,
                        found.ty
                    ),
                    "name another output or stage of that run",
                ),
                None => Some((Some(found), None)),
            },
        }
    }

    /// Resolves a need to an output of a stage of this pipeline.
    fn reference(
        &self,
        tree: &Tree,
        index: usize,
        port: Option<&InputPort>,
        many: bool,
        problems: &mut Problems,
    ) -> Option<Reference> {
        let (stages, faces) = (self.stages, self.faces);
        const FORMS: &str = "write `STAGE`, `STAGE.OUTPUT`, `\"STAGE[AXIS=VALUE]\"`, `\"STAGE[*]\"` or \
        `{ collect: STAGE, over: [AXIS] }`";
        let (named, over) = match &tree.value {
            Value::Map(_) => collect(tree, problems)?,
            _ => (tree, None),
        };
        let Some(text) = named.text() else {
            return problems.fail(
                named.spot,
                format!("a need is {}, not the name of a stage", named.describe()),
                FORMS,
            );
        };
        let parsed = match parse_reference(text) {
            Err(message) if !text.contains("${") => return problems.fail(named.spot, message, FORMS),
            parsed => parsed,
        };
        let mut wrong = |message: String, hint: String| problems.fail(tree.spot, message, hint);
        if text.contains("${") {
            return wrong(
                format!("`{text}` is not a valid reference"),
                "`needs` cannot contain interpolations".to_owned(),
            );
        }
        let (name, mut select, output) = parsed.ok()?;
        match over {
            Some(axes) => select.all_of.extend(axes),
            None => select.all |= !std::ptr::eq(named, tree),
        }
        let Some(&target) = self.names.get(name) else {
            let others = stages.iter().enumerate().filter(|(i, _)| *i != index);
            let names: Vec<&str> = others.map(|(_, stage)| stage.key.name.as_str()).collect();
            return wrong(
                format!("there is no stage `{name}`"),
                suggest(name, "other stages", names),
            );
        };
        if (select.all || !select.all_of.is_empty()) && !many {
            return wrong(
                format!("`{text}` is a list here, and the input takes one artifact"),
                format!("write `{name}` to fan out over its points, or pick one: `\"{name}[AXIS=VALUE]\"`"),
            );
        }
        let outputs = match faces[target] {
            Face::Unknown => return None,
            face => face.outputs(),
        };
        let who = || match faces[target] {
            Face::Kind(kind) => format!("`{name}` ({})", kind.name()),
            _ => format!("`{name}`"),
        };
        let found = match output {
            Some(output) => match outputs.iter().find(|(known, _)| *known == output) {
                Some(found) => *found,
                None => {
                    return wrong(
                        format!("{} has no output `{output}`", who()),
                        suggest(output, "outputs", outputs.iter().map(|(name, _)| *name)),
                    );
                }
            },
            None => {
                let fitting = |fits: &dyn Fn(PortType, PortType) -> bool| -> Vec<(&str, PortType)> {
                    let all = outputs.iter().copied();
                    all.filter(|(_, ty)| port.is_none_or(|port| fits(port.ty, *ty)))
                        .collect()
                };
                // An output of exactly the port's type is preferred to one that is merely accepted.
                let fitting = match fitting(&|port, ty| port == ty) {
                    none if none.is_empty() => fitting(&PortType::takes),
                    exact => exact,
                };
                match fitting[..] {
                    [one] => one,
                    [] => {
                        let (message, hint) = match port {
                            Some(port) => (
                                format!("{} has no output of type `{}`", who(), port.ty.name()),
                                self.givers(port.ty, index),
                            ),
                            None => (
                                format!("{} has no outputs", who()),
                                "need another stage, or none".to_owned(),
                            ),
                        };
                        return wrong(message, hint);
                    }
                    _ => {
                        let outputs = fitting.iter().map(|(output, _)| format!("{name}.{output}"));
                        let outputs: Vec<String> = outputs.collect();
                        return wrong(
                            format!("{} has more than one output that fits", who()),
                            format!("write one of {}", list(outputs.iter().map(String::as_str))),
                        );
                    }
                }
            }
        };
        if let Some(port) = port.filter(|port| !port.ty.takes(found.1)) {
            let fitting = outputs.iter().find(|(_, ty)| *ty == port.ty);
            return wrong(
                format!(
                    "the input `{}` takes `{}`, and `{name}.{}` is `{}`",
                    port.name,
                    port.ty.name(),
                    found.0,
                    found.1.name()
                ),
                match fitting {
                    None => self.givers(port.ty, index),
                    Some((first, _)) => format!("did you mean `{name}.{first}`?"),
                },
            );
        }
        Some(Reference {
            stage: target,
            output: found.0.to_owned(),
            select,
            spot: tree.spot,
        })
    }

    /// The stages that produce artifacts of a type.
    fn givers(&self, ty: PortType, index: usize) -> String {
        let mut names = Vec::new();
        for (i, face) in self.faces.iter().enumerate().filter(|(i, _)| *i != index) {
            let outputs = face.outputs().into_iter().filter(|(_, other)| *other == ty);
            names.extend(outputs.map(|(output, _)| format!("{}.{output}", self.stages[i].key.name)));
        }
        match names.is_empty() {
            true => format!(
                "no other stage here gives `{}`: add one, see `runner stages`",
                ty.name()
            ),
            false => format!("`{}` is given by {}", ty.name(), list(names.iter().map(String::as_str))),
        }
    }

    /// Reports required inputs that are not connected.
    fn missing(&self, index: usize, kind: &dyn AnyStage, problems: &mut Problems) {
        let stage = &self.stages[index];
        let inputs = stage.inputs();
        let taken: BTreeSet<&str> = inputs
            .iter()
            .filter_map(|name| Some(kind.ports().input(name)?.name))
            .collect();
        for port in kind.ports().inputs.iter().filter(|port| !port.optional) {
            if !taken.contains(port.name) {
                let message = format!("the input `{}` of `{}` is not connected", port.name, stage.key.name);
                let givers = self.givers(port.ty, index);
                problems.add(
                    stage.uses,
                    message,
                    format!("add `needs: {{ {}: STAGE }}`; {givers}", port.name),
                );
            }
        }
    }
}

/// All points of a stage, or those that differ along some axes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Collect {
    /// `STAGE`, `STAGE.OUTPUT`, `STAGE[AXIS=VALUE]` or `STAGE[*]`; `RUN/STAGE` of an earlier run; `latest` is
    /// the last run of this pipeline; `NAME@ALIAS` of a registered policy
    #[schemars(extend("pattern" = REFERENCE))]
    #[expect(dead_code, reason = "what is read is borrowed from the file")]
    collect: Text<Fixed>,
    #[schemars(extend("minItems" = 1))]
    over: Option<Several<String>>,
}

/// The pattern of a reference, for editors.
const REFERENCE: &str = "^([^/\\[]+/|[A-Za-z][A-Za-z0-9_.-]*@)?[A-Za-z0-9_][A-Za-z0-9_-]*\
    (\\[[^\\]]+\\])?(\\.[A-Za-z_][A-Za-z0-9_-]*)?$";

/// Parses `{ collect: STAGE, over: [AXIS] }` to the stage and the axes; all axes if none are given.
fn collect<'t>(tree: &'t Tree, problems: &mut Problems) -> Option<(&'t Tree, Option<Vec<String>>)> {
    let block = Block::named("collect", "a need".to_owned());
    let read: Collect = block.read(tree, tree, problems)?;
    let (_, named) = tree.entry("collect")?;
    Some((named, read.over.map(|Several(axes)| axes)))
}

/// True if a port accepts artifacts of the type called `name`.
fn takes(port: PortType, name: &str) -> bool {
    port.name() == name || port.takes(PortType::Table) && name == PortType::Table.name()
}

/// The topological order of the stages, otherwise in the order of the file. `None` if there is a cycle.
pub(crate) fn order(stages: &[Stage], needs: &[Needs], problems: &mut Problems) -> Option<Vec<usize>> {
    let mut spots: BTreeMap<(usize, usize), Spot> = BTreeMap::new();
    for (user, needs) in needs.iter().enumerate() {
        for reference in needs.ports.iter().flat_map(|(_, references)| references) {
            spots.entry((user, reference.stage)).or_insert(reference.spot);
        }
    }
    let graph = TaskGraph::new(stages.len(), spots.keys().copied());
    let order = graph.order();
    if order.len() == stages.len() {
        return Some(order);
    }
    for cycle in graph.cycles() {
        let names: Vec<String> = cycle.iter().map(|i| format!("`{}`", stages[*i].key.name)).collect();
        let spot = spots.get(&(cycle[0], cycle[1])).copied().unwrap_or_default();
        problems.add(
            spot,
            format!("the stages form a cycle: {}", names.join(" needs ")),
            "remove one of these needs",
        );
    }
    None
}
