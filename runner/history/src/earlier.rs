//! Resolves references to artifacts of earlier runs.

use super::{Run, StageRun, reader, resolve};
use cache::Store;
use runner_engine::Failure;
use runner_pipeline::{Earlier, EarlierRef, NotFound, same_value, suggest};
use std::path::Path;

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

/// Resolves a reference among the runs in `runs`, whose artifacts are in the store that `open` opens.
///
/// # Errors
/// When there is no such run, stage or output, or the artifact is no longer in the store.
pub fn find(
    runs: &Path,
    open: impl FnOnce() -> Result<Store, String>,
    reference: &EarlierRef<'_>,
) -> Result<Earlier, NotFound> {
    let id = resolve(runs, reference.run).map_err(failed)?;
    let run = reader::read(runs, &id, false).map_err(failed)?;
    let run = run.ok_or_else(|| not_found(format!("run `{id}` has no events"), "name another run"))?;
    let stage = stage(&run, reference)?;
    let output = output(&run, stage, reference)?;
    let name = format!("{id}/{}.{output}", stage.id);
    let Some(&digest) = stage.outputs.get(output) else {
        let status = stage.status.map_or("did not finish", |status| status.name());
        return Err(not_found(
            format!("`{}` has no output in run `{id}` ({status})", stage.id),
            "name a run in which it succeeded, or run it again",
        ));
    };
    let lost = |what: String| {
        let hint = format!(
            "run `{}` of that pipeline again; `runner cache gc --keep-run` keeps the results of a run",
            stage.id
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

fn stage<'r>(run: &'r Run, reference: &EarlierRef<'_>) -> Result<&'r StageRun, NotFound> {
    let of_name: Vec<&StageRun> = run.stages.iter().filter(|s| s.stage == reference.stage).collect();
    let found: Vec<&StageRun> = of_name
        .iter()
        .copied()
        .filter(|stage| {
            reference
                .point
                .iter()
                .all(|(axis, value)| stage.point.get(axis).is_some_and(|known| same_value(known, value)))
        })
        .collect();
    let known = || of_name.iter().map(|stage| stage.id.as_str());
    match found[..] {
        [one] => Ok(one),
        [] if of_name.is_empty() => Err(not_found(
            format!("run `{}` has no stage `{}`", run.id, reference.stage),
            suggest(
                reference.stage,
                "its stages",
                run.stages.iter().map(|stage| stage.stage.as_str()),
            ),
        )),
        [] => Err(not_found(
            format!("`{}` has no such point in run `{}`", reference.stage, run.id),
            format!("its points are {}", known().collect::<Vec<_>>().join(", ")),
        )),
        [first, ..] => Err(not_found(
            format!("`{}` has {} points in run `{}`", reference.stage, found.len(), run.id),
            format!("name one, such as `\"{}/{}\"`", reference.run, first.id),
        )),
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
            format!("name one, such as `{}/{}.{first}`", reference.run, stage.id),
        )),
    }
}
