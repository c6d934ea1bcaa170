//! A store with the history of its runs, and the objects that names denote: `RUN`, `RUN/STAGE`,
//! `RUN/STAGE.OUTPUT` and digests.

use super::policies::{PolicyRef, Registry};
use super::{Run, StageRun, find_stage, list, load, resolve};
use cache::{ArtifactDigest, Store};
use runner_engine::Failure;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A store and the history of its runs.
pub struct Archive {
    /// The store.
    pub store: Store,
    /// The directory of the runs.
    pub runs: PathBuf,
}

impl Archive {
    /// The run that a name denotes, with its metrics.
    ///
    /// # Errors
    /// If there is no such run, or it cannot be read.
    pub fn run(&self, name: &str) -> Result<Run, Failure> {
        load(&self.runs, &resolve(&self.runs, name)?)
    }
}

/// The object that a name denotes.
pub enum Named {
    /// A run.
    Run(Box<Run>),
    /// A stage of a run.
    Stage(Box<Run>, Box<StageRun>),
    /// An artifact; the run and stage that were named or that produced it, and the name of the output.
    Artifact(ArtifactDigest, Option<(Box<Run>, Box<StageRun>, String)>),
}

/// Finds the object that `name` denotes.
pub fn find(archive: &Archive, name: &str) -> Result<Named, Failure> {
    // Names of runs and stages contain no `@`; matrix values may.
    if name.contains('@') && !name.contains('/') {
        return registered(archive, name);
    }
    if let Some((run, stage)) = name.split_once('/') {
        return in_run(archive.run(run)?, stage);
    }
    match resolve(&archive.runs, name) {
        Ok(id) => Ok(Named::Run(Box::new(load(&archive.runs, &id)?))),
        Err(err) => match by_digest(archive, name)? {
            Some(named) => Ok(named),
            None => Err(err.hint(
                "give a run (`runner runs` lists them, `latest` is the last), RUN/STAGE.OUTPUT, or the \
                digest of an artifact",
            )),
        },
    }
}

/// Finds a registered policy, with the stage that made it if that is in the history.
fn registered(archive: &Archive, name: &str) -> Result<Named, Failure> {
    let (_, version) = Registry::new(archive.store.root()).get(&PolicyRef::parse(name)?)?;
    let named = load(&archive.runs, &version.from.run).ok().and_then(|run| {
        let (stage, output) = version.from.output.rsplit_once('.')?;
        let stage = run.stage(stage)?.clone();
        Some((Box::new(run), Box::new(stage), output.to_owned()))
    });
    Ok(Named::Artifact(version.digest, named))
}

fn in_run(run: Run, name: &str) -> Result<Named, Failure> {
    // A matrix point may contain a dot: the output's name follows the last dot outside brackets.
    let cut = name.rfind('.').filter(|at| !name[*at..].contains(']'));
    let Some((stage, output)) = cut.map(|at| (&name[..at], &name[at + 1..])) else {
        let stage = Box::new(find_stage(&run, name)?.clone());
        return Ok(Named::Stage(Box::new(run), stage));
    };
    let stage = find_stage(&run, stage)?;
    let Some(&digest) = stage.outputs.get(output) else {
        let outputs: Vec<&str> = stage.outputs.keys().map(String::as_str).collect();
        let failure = Failure::usage(format!(
            "stage `{}` has no output `{output}` in run {}",
            stage.id, run.id
        ));
        return Err(failure.hint(if outputs.is_empty() {
            "it did not succeed".to_owned()
        } else {
            runner_pipeline::suggest(output, "outputs", outputs)
        }));
    };
    let (stage, output) = (Box::new(stage.clone()), output.to_owned());
    Ok(Named::Artifact(digest, Some((Box::new(run), stage, output))))
}

fn by_digest(archive: &Archive, name: &str) -> Result<Option<Named>, Failure> {
    let is_hex = name.len() >= 4
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_digit() || matches!(c, 'a'..='f'));
    if !is_hex {
        return Ok(None);
    }
    let mut found = BTreeSet::new();
    let mut origin = None;
    for run in list(&archive.runs)?.into_iter().rev() {
        for stage in &run.stages {
            for (output, digest) in stage.outputs.iter() {
                if digest.to_hex().starts_with(name) {
                    found.insert(*digest);
                    if origin.is_none() {
                        origin = Some((Box::new(run.clone()), Box::new(stage.clone()), output.clone()));
                    }
                }
            }
        }
    }
    if found.len() > 1 {
        return Err(Failure::usage(format!("`{name}` matches {} artifacts", found.len()))
            .hint("give more digits of the digest"));
    }
    // The artifact may come from a removed run, or from no run.
    let whole = match name.parse::<ArtifactDigest>() {
        Ok(digest) => match archive.store.artifact(digest) {
            Ok(_) => Some(digest),
            Err(err @ cache::Error::Manifest { .. }) => return Err(err.into()),
            Err(_) => None,
        },
        Err(_) => None,
    };
    Ok(found
        .pop_first()
        .or(whole)
        .map(|digest| Named::Artifact(digest, origin)))
}

/// Finds the artifact that `name` denotes; a stage denotes its only output.
///
/// # Errors
/// If the name denotes no artifact.
pub fn find_artifact(archive: &Archive, name: &str) -> Result<ArtifactDigest, Failure> {
    as_artifact(find(archive, name)?, name)
}

/// The artifact found under `name`.
///
/// # Errors
/// If the object is a run, or a stage that does not have exactly one output.
pub fn as_artifact(named: Named, name: &str) -> Result<ArtifactDigest, Failure> {
    match named {
        Named::Artifact(digest, _) => Ok(digest),
        Named::Stage(_, stage) => {
            let outputs: Vec<(&String, &ArtifactDigest)> = stage.outputs.iter().collect();
            match outputs.as_slice() {
                [(_, digest)] => Ok(**digest),
                [] => Err(Failure::usage(format!(
                    "stage `{}` has no outputs in that run",
                    stage.id
                ))),
                several => {
                    let names: Vec<String> =
                        several.iter().map(|(output, _)| format!("{name}.{output}")).collect();
                    Err(
                        Failure::usage(format!("stage `{}` has {} outputs", stage.id, several.len()))
                            .hint(format!("give one: {}", names.join(", "))),
                    )
                }
            }
        }
        Named::Run(run) => {
            let names: Vec<&str> = run.stages.iter().map(|stage| stage.id.as_str()).collect();
            Err(Failure::usage(format!("`{name}` is a run, not an artifact"))
                .hint(format!("give RUN/STAGE.OUTPUT; its stages are {}", names.join(", "))))
        }
    }
}
