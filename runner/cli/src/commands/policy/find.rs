//! Policies by name.

use cache::ArtifactDigest;
use runner_engine::Failure;
use runner_history::Archive;
use runner_history::named;
use stages_policy::{Policy, policy};

/// The policy that `name` denotes; of a stage its output `policy`.
pub(super) fn find(archive: &Archive, name: &str) -> Result<(ArtifactDigest, Policy), Failure> {
    let digest = match named::find(archive, name)? {
        named::Named::Stage(_, stage) => stage.outputs.get("policy").copied(),
        _ => None,
    };
    let digest = match digest {
        Some(digest) => digest,
        None => named::find_artifact(archive, name)?,
    };
    let found = archive.store.artifact(digest)?;
    let Some(entry) = found.entry(policy::ENTRY) else {
        return Err(
            Failure::usage(format!("`{name}` is not a policy: it has no file `{}`", policy::ENTRY))
                .hint("give the RUN/STAGE of a training; `runner show RUN` lists the stages of a run"),
        );
    };
    let read = Policy::load(&archive.store.blob(entry.blob)?).map_err(|err| {
        Failure::machine(format!("`{name}`: {err}"))
            .hint("it was made by another version or damaged; run its stage again")
    })?;
    Ok((digest, read))
}
