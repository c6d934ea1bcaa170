//! `runner policy`.

pub(crate) mod act;
mod export;
mod registry;

use super::artifact;
use crate::args::PolicyCommand;
use crate::session::{Archive, Session};
use cache::ArtifactDigest;
use runner_engine::Failure;
use stages_policy::{Policy, policy};

pub(crate) fn policy(session: &Session, command: &PolicyCommand) -> Result<(), Failure> {
    match command {
        PolicyCommand::Act(args) => act::act(session, args),
        PolicyCommand::Export(args) => export::export(session, args),
        PolicyCommand::List { name } => registry::list(session, name.as_deref()),
        PolicyCommand::Show { policy } => registry::show(session, policy),
        PolicyCommand::Register(args) => registry::register(session, args),
        PolicyCommand::Promote(args) => registry::promote(session, args),
        PolicyCommand::Rollback(args) => registry::rollback(session, args),
        PolicyCommand::Diff(args) => registry::diff(session, args),
    }
}

/// The policy that `name` denotes; of a stage its output `policy`.
fn find(archive: &Archive, name: &str) -> Result<(ArtifactDigest, Policy), Failure> {
    let digest = match artifact::find(archive, name)? {
        artifact::Named::Stage(_, stage) => stage.outputs.get("policy").copied(),
        _ => None,
    };
    let digest = match digest {
        Some(digest) => digest,
        None => artifact::find_artifact(archive, name)?,
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
