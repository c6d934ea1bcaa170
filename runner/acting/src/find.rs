//! Policies by name.

use cache::ArtifactDigest;
use runner_engine::Failure;
use runner_history::Archive;
use runner_history::named;
use stages_policy::AnyPolicy;
use stages_policy::forms::FORM_ENTRY;
use stages_policy::policy::ENTRY;

/// The policy that `name` denotes; of a stage its output `policy`.
///
/// # Errors
/// If there is nothing of that name, or it is no policy or damaged.
pub fn find_policy(archive: &Archive, name: &str) -> Result<(ArtifactDigest, AnyPolicy), Failure> {
    let digest = match named::find(archive, name)? {
        named::Named::Stage(_, stage) => stage.outputs.get("policy").copied(),
        _ => None,
    };
    let digest = match digest {
        Some(digest) => digest,
        None => named::find_artifact(archive, name)?,
    };
    let found = archive.store.artifact(digest)?;
    if !AnyPolicy::is_one(&found) {
        return Err(Failure::usage(format!(
            "`{name}` is not a policy: it has no file `{ENTRY}` and no `{FORM_ENTRY}`"
        ))
        .hint("give the RUN/STAGE of a training; `runner show RUN` lists the stages of a run"));
    }
    let read = AnyPolicy::read(&archive.store, &found).map_err(|err| {
        Failure::machine(format!("`{name}`: {err}"))
            .hint("it was made by another version or damaged; run its stage again")
    })?;
    Ok((digest, read))
}
