//! The pipeline from files to a policy's environment, rebuilt from the record of the policy's run.

use super::Acting;
use cache::ArtifactDigest;
use runner_engine::Failure;
use runner_engine::key::RUN;
use runner_history::{self as history, Archive, ResolvedStage, Run, StageRun};
use runner_pipeline::{Earlier, InputRef, Node, Pipeline, Place, TaskGraph, Work};
use stages_core::{PortType, Provided};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The port of environments.
const ENV: &str = "env";

/// The stages that lead to a policy's environment.
pub(super) struct Recorded {
    pub pipeline: Pipeline,
    /// The index of the environment's node.
    pub env: usize,
    /// The environment that the run built.
    made: Option<ArtifactDigest>,
    /// The outputs of the run's stages, by node.
    pub outputs: Vec<BTreeMap<String, ArtifactDigest>>,
    /// Differences between the record and this program.
    pub notes: Vec<String>,
}

impl Recorded {
    /// Rebuilds the stages of the environment in which `trained` was trained.
    pub(crate) fn new(acting: &Acting<'_>, run: &Run, trained: &StageRun) -> Result<Self, Failure> {
        let env = trained.needs.get(ENV).and_then(|needs| needs.first()).ok_or_else(|| {
            Failure::usage(format!("`{}` of run {} needs no environment", trained.id, run.id))
                .hint("give RUN/STAGE of a training, or of `train/import` with its input `env`")
        })?;
        if let Some((earlier, _)) = split_earlier(env) {
            return Err(Failure::usage(format!(
                "`{}` was trained in `{env}`, the environment of another run",
                trained.id
            ))
            .hint(format!(
                "give a policy of a run that builds its environment itself, as run {earlier} does"
            )));
        }
        let (env, output) = find(run, env).ok_or_else(|| unreadable(run))?;
        let made = run.stages[env].outputs.get(output).copied();
        let mut needed = BTreeSet::from([env]);
        // Stages are in topological order.
        for i in (0..=env).rev() {
            if needed.contains(&i) {
                let needs = run.stages[i].needs.values().flatten();
                needed.extend(needs.filter_map(|need| find(run, need)).map(|(i, _)| i));
            }
        }
        let mut notes = Vec::new();
        let place: BTreeMap<usize, usize> = needed.iter().enumerate().map(|(at, &i)| (i, at)).collect();
        let base = run.file.parent().unwrap_or(Path::new("/"));
        let mut file: Option<Pipeline> = None;
        let mut nodes = Vec::with_capacity(needed.len());
        for &i in &needed {
            let stage = &run.stages[i].of;
            let work = match stage.kind.as_str() {
                RUN => program(acting, run, stage, &mut file)?,
                name => {
                    let kind = acting.kind(name).ok_or_else(|| {
                        Failure::usage(format!(
                            "`{}` is a `{name}`, which this program does not have",
                            stage.id
                        ))
                    })?;
                    if kind.version() != stage.version {
                        notes.push(format!(
                            "`{}` was made by version {} of `{name}`, and this program has version {}: the \
                            policy may see other values than it was trained on",
                            stage.id,
                            stage.version,
                            kind.version()
                        ));
                    }
                    Work::Kind {
                        kind,
                        config: stage.config.value().into_owned().into(),
                    }
                }
            };
            let (needs, earlier) = inputs(acting.archive, run, stage, &place)?;
            let provides = stage.types.iter().filter_map(|(name, ty)| {
                let ty: PortType = serde_json::from_value(ty.as_str().into()).ok()?;
                Some((name.clone(), Provided::unknown(ty)))
            });
            nodes.push(Node {
                id: stage.id.clone(),
                stage: stage.stage.clone(),
                point: stage.point.clone(),
                work,
                needs,
                sources: None,
                earlier,
                provides: provides.collect(),
                resources: stage.resources.clone(),
                retries: 0,
                timeout: None,
                register: None,
                base: Arc::from(stage.base.as_deref().unwrap_or(base)),
                place: Place::default(),
            });
        }
        Ok(Self {
            pipeline: Pipeline {
                name: run.pipeline.clone(),
                description: None,
                file: run.file.clone(),
                base: base.to_owned(),
                params: run.params.clone(),
                graph: graph(&nodes),
                nodes,
                promote: None,
                notify: Vec::new(),
                track: Vec::new(),
                search: None,
            },
            env: place[&env],
            made,
            outputs: needed.iter().map(|&i| run.stages[i].outputs.clone()).collect(),
            notes,
        })
    }

    /// The artifact of the environment in which the policy was trained.
    pub(crate) fn env_artifact(&self) -> Result<ArtifactDigest, Failure> {
        self.made.ok_or_else(|| {
            Failure::usage(format!(
                "`{}` made no environment in that run",
                self.pipeline.nodes[self.env].id
            ))
        })
    }
}

/// The graph of nodes by what they need of each other.
pub(super) fn graph(nodes: &[Node]) -> TaskGraph {
    let edges = nodes.iter().enumerate();
    let edges = edges.flat_map(|(i, node)| node.needs.values().flatten().map(move |need| (i, need.node)));
    TaskGraph::new(nodes.len(), edges)
}

fn unreadable(run: &Run) -> Failure {
    Failure::machine(format!("the record of run {} has no stages", run.id))
        .hint("its `pipeline.json` is missing or damaged; run the pipeline again")
}

/// Splits a need of an earlier run into the run and the rest.
fn split_earlier(need: &str) -> Option<(&str, &str)> {
    let name = &need[..need.find('[').unwrap_or(need.len())];
    let at = name.find('/')?;
    Some((&need[..at], &need[at + 1..]))
}

/// Finds the stage and the output that a need of a recorded stage names.
fn find<'n>(run: &Run, need: &'n str) -> Option<(usize, &'n str)> {
    run.stages.iter().enumerate().find_map(|(i, stage)| {
        let output = need.strip_prefix(stage.id.as_str())?.strip_prefix('.')?;
        stage.types.contains_key(output).then_some((i, output))
    })
}

type Inputs = (BTreeMap<String, Vec<InputRef>>, BTreeMap<String, Vec<Earlier>>);

/// The inputs of a recorded stage: those of this pipeline, with `place` mapping its stages to nodes, and
/// those of earlier runs.
fn inputs(
    archive: &Archive,
    run: &Run,
    stage: &ResolvedStage,
    place: &BTreeMap<usize, usize>,
) -> Result<Inputs, Failure> {
    let (mut needs, mut earlier) = (BTreeMap::new(), BTreeMap::new());
    for (port, names) in &stage.needs {
        for name in names {
            if let Some((of, rest)) = split_earlier(name) {
                let found = archive.run(of)?;
                let digest =
                    find(&found, rest).and_then(|(i, output)| found.stages[i].outputs.get(output).copied());
                let digest = digest.ok_or_else(|| {
                    Failure::usage(format!("`{}` needs `{name}`, which is there no longer", stage.id))
                })?;
                let all: &mut Vec<Earlier> = earlier.entry(port.clone()).or_default();
                all.push(Earlier {
                    name: name.clone(),
                    ty: String::new(),
                    digest,
                });
                continue;
            }
            let (i, output) = find(run, name).ok_or_else(|| unreadable(run))?;
            let all: &mut Vec<InputRef> = needs.entry(port.clone()).or_default();
            all.push(InputRef {
                node: place[&i],
                output: output.to_owned(),
            });
        }
    }
    Ok((needs, earlier))
}

/// Restores the program of a recorded stage. The record lacks the program's files: they are taken from the
/// pipeline file, if it still describes the same program.
fn program(
    acting: &Acting<'_>,
    run: &Run,
    stage: &ResolvedStage,
    file: &mut Option<Pipeline>,
) -> Result<Work, Failure> {
    let changed = |why: &str| {
        Failure::usage(format!("`{}` is a program, and the pipeline {why}", stage.id)).hint(format!(
            "the record of a run does not hold programs: bring `{}` back to what it was in run {}, or run \
            it again",
            run.file.display(),
            run.id
        ))
    };
    if file.is_none() {
        *file = Some((acting.load)(&run.file)?);
    }
    let node = file
        .as_ref()
        .and_then(|pipeline| pipeline.nodes.iter().find(|node| node.id == stage.id));
    match node.map(|node| &node.work) {
        Some(Work::Command(command)) => {
            let now =
                serde_json::to_value(history::Settings::Program(Arc::clone(command))).unwrap_or_default();
            match now == *stage.config.value() {
                true => Ok(Work::Command(Arc::clone(command))),
                false => Err(changed("gives it other text, files or tools now")),
            }
        }
        _ => Err(changed("has it no longer")),
    }
}
