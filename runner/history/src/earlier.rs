//! Resolves references to artifacts of earlier runs.

use super::{Run, StageRun, reader, resolve};
use crate::policies::{PolicyRef, Registry, check_policy_name};
use cache::{ArtifactDigest, Store};
use datasets::Date;
use runner_engine::Failure;
use runner_pipeline::{Earlier, EarlierRef, FindTried, NotFound, RunRef, same_value, suggest};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn not_found(message: impl Into<String>, hint: impl Into<String>) -> NotFound {
    NotFound {
        message: message.into(),
        hint: hint.into(),
    }
}

fn failed(failure: Failure) -> NotFound {
    let causes: String = failure.causes.iter().map(|cause| format!(": {cause}")).collect();
    let hint = failure
        .hint
        .unwrap_or_else(|| "`runner runs` lists the runs".to_owned());
    not_found(failure.message + &causes, hint)
}

/// Resolves a reference among the runs and the registered policies of `home`, whose artifacts are in the
/// store that `open` opens. `None` if the reference is to the last run of a pipeline and no run has the
/// output, or to a policy that is not registered. For the run of a `night`, aliases are resolved as they were
/// before that night, so that a repeated night gives the same result.
///
/// # Errors
/// When there is no such run, stage or output, or the artifact is no longer in the store.
pub fn find(
    home: &Path,
    open: impl FnOnce() -> Result<Store, String>,
    reference: &EarlierRef<'_>,
    night: Option<Date>,
) -> Result<Option<Earlier>, NotFound> {
    let runs = &home.join("runs");
    let found = match &reference.run {
        RunRef::Named(run) => {
            let id = resolve(runs, run).map_err(failed)?;
            let run = reader::read(runs, &id, false).map_err(failed)?;
            let run =
                run.ok_or_else(|| not_found(format!("run `{id}` has no events"), "name another run"))?;
            let found = artifact(&run, reference).map_err(|missing| match missing {
                Missing::Here(err) | Missing::Anywhere(err) => err,
            })?;
            Some(found)
        }
        RunRef::Registered(policy) => {
            let policy = PolicyRef::parse(policy).map_err(failed)?;
            let version = Registry::new(home).find(&policy, night).map_err(failed)?;
            version.map(|version| Found {
                name: format!("{}/{}", version.from.run, version.from.output),
                stage: version.from.output,
                digest: version.digest,
            })
        }
        RunRef::LastOf { pipeline, file } => last(runs, pipeline, file.as_deref(), reference)?,
    };
    found.map(|found| found.open(open)).transpose()
}

/// Counts the policies of a name that were registered before the night, if the run belongs to one, plus the
/// policy that is being tried.
pub fn tried(home: &Path, night: Option<Date>) -> FindTried {
    let registry = Registry::new(home);
    Box::new(move |name| {
        check_policy_name(name).map_err(failed)?;
        let policy = registry.read(name).map_err(failed)?;
        Ok(policy.unwrap_or_default().tried(night) + 1)
    })
}

/// The number of runs that are read in the first batch.
const RUNS: usize = 32;

/// The artifact in the last run of a pipeline that has the output.
fn last(
    runs: &Path,
    pipeline: &str,
    file: Option<&Path>,
    reference: &EarlierRef<'_>,
) -> Result<Option<Found>, NotFound> {
    let file = file.map(real_path);
    let mut wanted = RUNS;
    loop {
        let (read, _) = reader::last(runs, wanted).map_err(failed)?;
        let is_all = read.len() < wanted;
        let mut files: BTreeSet<PathBuf> = BTreeSet::new();
        let mut found = None;
        for run in read.iter().rev().filter(|run| run.pipeline == pipeline) {
            let of = real_path(&run.file);
            if file.as_ref().is_some_and(|file| *file != of) {
                continue;
            }
            files.insert(of);
            if found.is_none() {
                found = match artifact(run, reference) {
                    Ok(found) => Some(found),
                    Err(Missing::Here(_)) => None,
                    Err(Missing::Anywhere(err)) => return Err(err),
                };
            }
        }
        // Files that were moved or removed since are not candidates.
        files.retain(|file| file.is_file());
        if files.len() > 1 {
            let named: Vec<String> = files.iter().map(|file| format!("`{}`", file.display())).collect();
            return Err(not_found(
                format!(
                    "several files have pipelines with the name `{pipeline}`: {}",
                    named.join(", ")
                ),
                "name one of them as `file:`, relative to this file",
            ));
        }
        if found.is_some() || is_all {
            return Ok(found);
        }
        wanted *= 8;
    }
}

/// The path with symbolic links resolved, if it exists.
fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The reason why a run has no artifact for a reference.
enum Missing {
    /// Another run may have it.
    Here(NotFound),
    /// The reference is wrong.
    Anywhere(NotFound),
}

/// An artifact of a run, which may be lost.
struct Found {
    name: String,
    stage: String,
    digest: ArtifactDigest,
}

fn artifact(run: &Run, reference: &EarlierRef<'_>) -> Result<Found, Missing> {
    let stage = stage(run, reference)?;
    // A run whose `pipeline.json` is lost has no types.
    let missing = if stage.types.is_empty() {
        Missing::Here
    } else {
        Missing::Anywhere
    };
    let output = output(run, stage, reference).map_err(missing)?;
    let Some(&digest) = stage.outputs.get(output) else {
        let status = stage.status.map_or("did not finish", |status| status.name());
        return Err(Missing::Here(not_found(
            format!("`{}` has no output in run `{}` ({status})", stage.id, run.id),
            "name a run in which it succeeded, or run it again",
        )));
    };
    Ok(Found {
        name: format!("{}/{}.{output}", run.id, stage.id),
        stage: stage.id.clone(),
        digest,
    })
}

impl Found {
    fn open(self, open: impl FnOnce() -> Result<Store, String>) -> Result<Earlier, NotFound> {
        let Self { name, stage, digest } = self;
        let lost = |what: String| {
            let hint = format!(
                "run `{stage}` of that pipeline again; `runner cache gc --keep-run` keeps the results of a \
                run"
            );
            not_found(format!("`{name}` cannot be read: {what}"), hint)
        };
        let store = open().map_err(lost)?;
        let artifact = store.artifact(digest).map_err(|err| lost(err.to_string()))?;
        if !artifact.entries.iter().all(|entry| store.has(entry.blob_ref())) {
            return Err(lost("a part of it is missing from the store".to_owned()));
        }
        Ok(Earlier {
            name,
            ty: artifact.kind,
            digest,
        })
    }
}

fn stage<'r>(run: &'r Run, reference: &EarlierRef<'_>) -> Result<&'r StageRun, Missing> {
    let named: Vec<&StageRun> = run.stages.iter().filter(|s| s.stage == reference.stage).collect();
    let found: Vec<&StageRun> = named
        .iter()
        .copied()
        .filter(|stage| {
            reference
                .point
                .iter()
                .all(|(axis, value)| stage.point.get(axis).is_some_and(|known| same_value(known, value)))
        })
        .collect();
    let known = || named.iter().map(|stage| stage.id.as_str());
    match found[..] {
        [one] => Ok(one),
        [] if named.is_empty() => Err(Missing::Here(not_found(
            format!("run `{}` has no stage `{}`", run.id, reference.stage),
            suggest(
                reference.stage,
                "its stages",
                run.stages.iter().map(|stage| stage.stage.as_str()),
            ),
        ))),
        [] => Err(Missing::Here(not_found(
            format!("`{}` has no such point in run `{}`", reference.stage, run.id),
            format!("its points are {}", known().collect::<Vec<_>>().join(", ")),
        ))),
        [first, ..] => Err(Missing::Anywhere(not_found(
            format!("`{}` has {} points in run `{}`", reference.stage, found.len(), run.id),
            format!("name one, such as `\"{}\"`", first.id),
        ))),
    }
}

fn output<'r>(run: &Run, stage: &'r StageRun, reference: &EarlierRef<'_>) -> Result<&'r str, NotFound> {
    let all = || stage.types.keys().map(String::as_str);
    if let Some(output) = reference.output {
        return match stage.types.get_key_value(output) {
            Some((output, _)) => Ok(output),
            None => Err(not_found(
                format!("`{}` has no output `{output}` in run `{}`", stage.id, run.id),
                suggest(output, "outputs", all()),
            )),
        };
    }
    let fitting: Vec<&str> = stage
        .types
        .iter()
        .filter(|(_, ty)| reference.ty.is_none_or(|wanted| wanted.name() == **ty))
        .map(|(output, _)| output.as_str())
        .collect();
    match fitting[..] {
        [one] => Ok(one),
        [] => Err(not_found(
            match reference.ty {
                Some(ty) => format!(
                    "`{}` has no output of type `{}` in run `{}`",
                    stage.id,
                    ty.name(),
                    run.id
                ),
                None => format!("`{}` has no outputs in run `{}`", stage.id, run.id),
            },
            format!("its outputs are {}", all().collect::<Vec<_>>().join(", ")),
        )),
        [first, ..] => Err(not_found(
            format!("`{}` has more than one output that fits", stage.id),
            format!("name one, such as `{}.{first}`", stage.id),
        )),
    }
}
