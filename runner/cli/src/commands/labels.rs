//! `runner runs name|unname|tag|untag|keep|unkeep`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Subcommand;
use runner_engine::Failure;
use runner_history::{self as history, Marks, Run, marks};
use serde::Serialize;

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum LabelCommand {
    /// Name a run; the name can be used wherever a run is expected.
    #[command(after_help = "Example:\n  runner runs name latest baseline\n  runner show baseline")]
    Name {
        /// The run.
        #[arg(add = completed(candidates::runs))]
        run: String,
        /// The name: a letter, then letters, digits, `_`, `-` and `.`. Names are unique.
        name: String,
    },
    /// Remove the name of a run.
    #[command(after_help = "Example:\n  runner runs unname baseline")]
    Unname {
        /// The run.
        #[arg(add = completed(candidates::runs))]
        run: String,
    },
    /// Tag a run.
    #[command(
        after_help = "Example:\n  runner runs tag latest sweep lr\n  runner runs --where 'tag = sweep'"
    )]
    Tag {
        /// The run.
        #[arg(add = completed(candidates::runs))]
        run: String,
        /// The tags.
        #[arg(required = true)]
        tags: Vec<String>,
    },
    /// Remove tags from a run.
    #[command(after_help = "Example:\n  runner runs untag latest lr")]
    Untag {
        /// The run.
        #[arg(add = completed(candidates::runs))]
        run: String,
        /// The tags.
        #[arg(required = true)]
        tags: Vec<String>,
    },
    /// Protect the results of a run from `cache gc`.
    #[command(after_help = "Example:\n  runner runs keep baseline")]
    Keep {
        /// The run.
        #[arg(add = completed(candidates::runs))]
        run: String,
    },
    /// Remove the protection of a run.
    #[command(after_help = "Example:\n  runner runs unkeep baseline")]
    Unkeep {
        /// The run.
        #[arg(add = completed(candidates::runs))]
        run: String,
    },
}

/// A run as JSON, with its marks.
#[derive(Serialize)]
pub(crate) struct Marked<'r> {
    #[serde(flatten)]
    pub run: &'r Run,
    #[serde(flatten)]
    pub marks: &'r Marks,
}

pub(crate) fn mark(session: &Session, command: &LabelCommand) -> Result<(), Failure> {
    let runs = session.home(None).join("runs");
    let (LabelCommand::Name { run, .. }
    | LabelCommand::Unname { run }
    | LabelCommand::Tag { run, .. }
    | LabelCommand::Untag { run, .. }
    | LabelCommand::Keep { run }
    | LabelCommand::Unkeep { run }) = command;
    let id = history::resolve(&runs, run)?;
    if let LabelCommand::Untag { tags, .. } = command {
        let known = marks::read(&runs, &id)?.tags;
        if let Some(unknown) = tags.iter().find(|tag| !known.contains(*tag)) {
            let hint = runner_pipeline::suggest(unknown, "tags", known.iter().map(String::as_str));
            return Err(Failure::usage(format!("run {id} has no tag `{unknown}`")).hint(hint));
        }
    }
    let marks = marks::edit(&runs, &id, |marks| match command {
        LabelCommand::Name { name, .. } => marks.name = Some(name.clone()),
        LabelCommand::Unname { .. } => marks.name = None,
        LabelCommand::Tag { tags, .. } => marks.tags.extend(tags.iter().cloned()),
        LabelCommand::Untag { tags, .. } => marks.tags.retain(|tag| !tags.contains(tag)),
        LabelCommand::Keep { .. } => marks.kept = true,
        LabelCommand::Unkeep { .. } => marks.kept = false,
    })?;
    if session.json {
        return output::print_json(&serde_json::json!({
            "run": id, "name": marks.name, "tags": marks.tags, "kept": marks.kept,
        }));
    }
    output::print(&format!("run {id}{}\n", marks.suffix()))
}
