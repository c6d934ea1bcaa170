//! A search before its first job: what is set, what is read, and what would make it worthless.

use super::nodes::{Load, Patch, Shaped, kind};
use crate::Settings;
use crate::space::Space;
use cache::{KeyHasher, canonical_json};
use runner_engine::Failure;
use runner_pipeline::{Domain, MetricOf, Node, Pipeline, Search, Values, Work};
use serde_json::{Value, json};
use stages_core::PortType;
use std::collections::BTreeSet;

/// The axes that name the nodes of a search.
pub(crate) const AXES: [&str; 3] = ["trial", "rung", "seed"];

/// A setting of a pipeline, as `--set` takes it.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A field of the configurations of a stage's nodes.
    Field { stage: String, path: Vec<String> },
    /// A parameter, or something that is set by loading the pipeline again.
    Argument(String),
}

impl Target {
    pub(crate) fn new(name: &str, base: &Pipeline) -> Self {
        let field = name.split_once(".with.").filter(|(stage, path)| {
            let mut nodes = base.nodes.iter().filter(|node| node.stage == *stage);
            let has = |node: &Node| matches!(node.work, Work::Kind { .. });
            !path.contains('[') && nodes.clone().next().is_some() && nodes.all(has)
        });
        match field {
            Some((stage, path)) => Self::Field {
                stage: stage.to_owned(),
                path: path.split('.').map(str::to_owned).collect(),
            },
            None => Self::Argument(name.to_owned()),
        }
    }

    /// The file's own value; null if it is not known.
    pub(crate) fn own(&self, base: &Pipeline) -> Value {
        match self {
            Self::Field { stage, path } => {
                let node = base.nodes.iter().find(|node| node.stage == *stage);
                let Some(Node {
                    work: Work::Kind { config, .. },
                    ..
                }) = node
                else {
                    return Value::Null;
                };
                let value = path.iter().try_fold(&**config, |value, key| value.get(key));
                value.cloned().unwrap_or_default()
            }
            Self::Argument(name) => base.params.get(name).cloned().unwrap_or_default(),
        }
    }

    /// Sets the value, by a patch where that is possible, or else by an argument.
    pub(crate) fn set(&self, value: Value, patches: &mut Vec<Patch>, arguments: &mut Vec<String>) {
        match self {
            Self::Field { stage, path } => patches.push(Patch {
                stage: stage.clone(),
                path: path.clone(),
                value,
            }),
            Self::Argument(name) => arguments.push(argument(name, &value)),
        }
    }
}

/// A setting as `--set` takes it.
pub(crate) fn argument(name: &str, value: &Value) -> String {
    format!("{name}={value}")
}

/// The settings of a trial as `--set` takes them.
pub(crate) fn arguments(settings: &Settings) -> Vec<String> {
    settings.iter().map(|(name, value)| argument(name, value)).collect()
}

/// The rungs of a search.
pub(crate) struct Ladder {
    /// The values of the resource; the last is the full one, `None` where there is one rung.
    pub values: Vec<Option<u64>>,
    /// The resource, and the field that stops a training at a rung, if its kind has one.
    target: Option<(Target, Option<Target>)>,
    /// True if the full value is not the file's own.
    is_set: bool,
}

impl Ladder {
    pub(crate) fn new(search: &Search, base: &Pipeline) -> Result<Self, Failure> {
        let Some(rungs) = search.rungs() else {
            return Ok(Self {
                values: vec![None],
                target: None,
                is_set: false,
            });
        };
        let target = Target::new(&rungs.resource, base);
        let own = target.own(base);
        let full = rungs.max.or_else(|| own.as_u64()).ok_or_else(|| {
            Failure::usage(format!(
                "the resource `{}` of the search is {own}, not an integer",
                rungs.resource
            ))
            .hint("name a setting such as `train.total_timesteps`, or give `max`")
        })?;
        if rungs.min >= full {
            return Err(Failure::usage(format!(
                "the first rung of the search is {}, and the full `{}` is {full}",
                rungs.min, rungs.resource
            ))
            .hint("give a lower `min`"));
        }
        let factor = u64::from(rungs.factor);
        let steps = std::iter::successors(Some(rungs.min), |value| value.checked_mul(factor));
        // A rung near the end would save next to nothing.
        let is_far = |value: &u64| (*value as f64).powi(2) * factor as f64 <= (full as f64).powi(2);
        let far = steps.take_while(|value| *value == rungs.min || is_far(value));
        let mut values: Vec<Option<u64>> = far.map(Some).collect();
        values.push(Some(full));
        let until = match &target {
            Target::Field { stage, path } => {
                let node = base.nodes.iter().find(|node| node.stage == *stage);
                let until = node.and_then(kind).and_then(|kind| kind.until(&path.join(".")));
                until.map(|until| Target::Field {
                    stage: stage.clone(),
                    path: vec![until.to_owned()],
                })
            }
            Target::Argument(_) => None,
        };
        let is_set = own.as_u64() != Some(full);
        Ok(Self {
            values,
            target: Some((target, until)),
            is_set,
        })
    }

    /// True if a trial at a higher rung goes on from the lower one.
    pub(crate) fn continues(&self) -> bool {
        self.target.as_ref().is_some_and(|(_, until)| until.is_some())
    }

    /// Sets the resource of a rung. The full one is that of a usual training.
    pub(crate) fn set(&self, rung: usize, patches: &mut Vec<Patch>, arguments: &mut Vec<String>) {
        let Some((target, until)) = &self.target else { return };
        let full = self.values.last().copied().flatten();
        let at = self.values.get(rung).copied().flatten();
        match until {
            Some(until) => {
                if let Some(full) = full.filter(|_| self.is_set) {
                    target.set(full.into(), patches, arguments);
                }
                if let Some(at) = at.filter(|_| at != full) {
                    until.set(at.into(), patches, arguments);
                }
            }
            None => {
                if let Some(at) = at.filter(|_| self.is_set || at != full) {
                    target.set(at.into(), patches, arguments);
                }
            }
        }
    }
}

/// The seeds of a search.
pub(crate) struct Seeds {
    /// The settings that are the seed, each with the file's own value.
    targets: Vec<(Target, u64)>,
    /// The number of seeds of a trial, and of fresh seeds.
    pub count: u32,
    pub fresh: u32,
}

impl Seeds {
    pub(crate) fn new(search: &Search, base: &Pipeline, upstream: &BTreeSet<usize>) -> Result<Self, Failure> {
        let count = search.seeds.count;
        let names: Vec<String> = match &search.seeds.set {
            Some(name) => vec![name.clone()],
            None => {
                let trains = |node: &&Node| {
                    let makes_policy = node.provides.values().any(|output| output.ty == PortType::Policy);
                    let config = match &node.work {
                        Work::Kind { config, .. } => config.get("seed").is_some_and(Value::is_u64),
                        Work::Command(_) => false,
                    };
                    makes_policy && config
                };
                let nodes = upstream.iter().map(|&i| &base.nodes[i]).filter(trains);
                let stages: BTreeSet<&str> = nodes.map(|node| node.stage.as_str()).collect();
                stages.into_iter().map(|stage| format!("{stage}.with.seed")).collect()
            }
        };
        let fresh = search.final_seeds.unwrap_or(count);
        if names.is_empty() && (count > 1 || fresh > 0) {
            return Err(Failure::usage("no stage of the search trains with a `seed`").hint(
                "name it: `seeds: { count: 3, set: STAGE.with.KEY }`, or write `seeds: 1` and \
                    `final_seeds: 0`",
            ));
        }
        let target = |name: &String| {
            let target = Target::new(name, base);
            let own = target.own(base);
            let own = own.as_u64().ok_or_else(|| {
                Failure::usage(format!("`{name}` is {own}, not a seed")).hint("a seed is an integer from 0")
            })?;
            Ok::<_, Failure>((target, own))
        };
        Ok(Self {
            targets: names.iter().map(target).collect::<Result<_, _>>()?,
            count,
            fresh,
        })
    }

    /// A seed that neither trials nor the best one are trained with.
    pub(crate) fn other(&self) -> u32 {
        self.count + self.fresh
    }

    /// The value of seed `i` where it names a node.
    pub(crate) fn value(&self, i: u32) -> u64 {
        self.targets.first().map_or(0, |(_, own)| own + u64::from(i))
    }

    pub(crate) fn set(&self, i: u32, patches: &mut Vec<Patch>, arguments: &mut Vec<String>) {
        for (target, own) in &self.targets {
            if i > 0 {
                target.set((own + u64::from(i)).into(), patches, arguments);
            }
        }
    }
}

/// The stages whose metrics a search reads.
pub(crate) fn metrics(search: &Search) -> impl Iterator<Item = &MetricOf> {
    let objectives = search.objective.0.iter().map(|objective| &objective.metric);
    objectives.chain(search.constraints.iter().map(|constraint| &constraint.metric))
}

/// Refuses a search whose objective cannot be read, or reads what decides in the end.
pub(crate) fn check(search: &Search, base: &Pipeline, arguments: &[String]) -> Result<(), Failure> {
    for of in metrics(search) {
        for node in base.nodes.iter().filter(|node| node.stage == of.stage) {
            let has_metrics = node.provides.values().any(|output| output.ty == PortType::Metrics);
            if !has_metrics {
                return Err(Failure::usage(format!(
                    "`{}` has no metrics, and the search reads one",
                    node.id
                ))
                .hint("name a stage that trains or evaluates"));
            }
            if let Work::Kind { kind, config } = &node.work
                && kind.reads_test(config)
            {
                return Err(Failure::usage(format!(
                    "the objective of the search reads the test data: `{}` is evaluated on it",
                    node.id
                ))
                .hint(
                    "a setting that is chosen by the test data has no test left: set `on: validation` on that \
                     stage, and let another one read the test data",
                ));
            }
        }
    }
    for argument in arguments {
        let name = argument.split_once('=').map_or(argument.as_str(), |(name, _)| name);
        if search.over.contains_key(name) {
            return Err(Failure::usage(format!("`{name}` is set, and is searched"))
                .hint("leave out `--set`, or take the setting out of `search: { over: … }`"));
        }
    }
    Ok(())
}

/// Refuses a pipeline whose searched stages have an axis of the search's own names.
pub(crate) fn check_axes(base: &Shaped, nodes: &BTreeSet<usize>) -> Result<(), Failure> {
    for &i in nodes {
        let node = &base.pipeline.nodes[i];
        if let Some(axis) = AXES.iter().find(|axis| node.point.contains_key(**axis)) {
            return Err(Failure::usage(format!(
                "`{}` has the axis `{axis}`, which a search has itself",
                node.id
            ))
            .hint(match *axis {
                "seed" => "take `seed` out of `matrix:`, and write `seeds: 3` in `search:`".to_owned(),
                other => format!("name the axis of `matrix:` otherwise than `{other}`"),
            }));
        }
    }
    Ok(())
}

/// Loads the pipeline at both ends of each setting and at each choice, the others as in the file, so that
/// what cannot be set is refused before anything runs.
///
/// # Errors
/// The first setting that the pipeline refuses.
pub(crate) fn check_ends(search: &Search, load: &Load<'_>) -> Result<(), Failure> {
    for (name, domain) in &search.over {
        for value in ends(domain) {
            let mut arguments = vec![argument(name, &value)];
            let conditions = domain
                .when
                .iter()
                .filter_map(|(name, values)| Some((name, values.first()?)));
            arguments.extend(conditions.map(|(name, value)| argument(name, value)));
            load(&arguments).map_err(|failure| Failure {
                message: format!(
                    "the search sets `{name}` to {value}, which the pipeline refuses: {}",
                    failure.message
                ),
                ..failure
            })?;
        }
    }
    Ok(())
}

fn ends(domain: &Domain) -> Vec<Value> {
    match &domain.values {
        Values::Float { low, high, .. } => vec![json!(low), json!(high)],
        Values::Integer { low, high, .. } => vec![json!(low), json!(high)],
        Values::Choice(choice) => choice.clone(),
    }
}

/// The id of a search, and the digest of its space.
pub(crate) fn identity(
    search: &Search,
    base: &Shaped,
    objective: &[usize],
    rungs: &[Option<u64>],
) -> (String, String) {
    let contents = |hasher: KeyHasher| {
        objective
            .iter()
            .fold(hasher, |hasher, &i| hasher.field(base.content(i)))
    };
    let whole = Search {
        trials: None,
        budget: Default::default(),
        final_seeds: None,
        ..search.clone()
    };
    let text = canonical_json(&json!([whole, rungs]));
    let id = contents(KeyHasher::new("runner 2026-11 search v1").field(text))
        .action_key()
        .to_hex();
    let space = canonical_json(&json!([
        search.over,
        search.objective,
        search.constraints,
        rungs.last()
    ]));
    let space = contents(KeyHasher::new("runner 2026-11 search space v1").field(space))
        .action_key()
        .to_hex();
    (format!("{}-{}", base.pipeline.name, &id[..8]), space)
}

/// The search with the trials to begin with in full: a setting that is left out is the file's own.
pub(crate) fn with_first(mut search: Search, space: &Space, own: &Settings) -> Search {
    for first in &mut search.first {
        for parameter in &space.parameters {
            let name = &parameter.name;
            match parameter.is_active(first) {
                true => {
                    if let Some(own) = own.get(name).filter(|_| !first.contains_key(name)) {
                        first.insert(name.clone(), own.clone());
                    }
                }
                false => _ = first.remove(name),
            }
        }
    }
    search
}
