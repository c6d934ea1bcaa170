//! From a stage whose inputs are known to its recipe and key.

use crate::key::{RUN, RUN_VERSION, Recipe, SourceDigest};
use crate::pipeline::{Command, Node, Work};
use cache::{ActionKey, ArtifactDigest, Store};
use serde_json::{Value, json};
use stages_core::{ConfigProblem, Source, StageError};
use std::collections::BTreeMap;

/// A stage, ready to be looked up or run.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Its action key.
    pub key: ActionKey,
    /// What the key is made of.
    pub recipe: Recipe,
    /// The files outside the store that it reads, in the order of the recipe.
    pub sources: Vec<Source>,
}

/// The files outside the store that a node reads.
pub(crate) fn sources(node: &Node) -> Result<Vec<Source>, ConfigProblem> {
    match &node.work {
        Work::Kind { kind, config } => kind.sources(config, &node.base),
        Work::Command(command) => Ok(command.files.clone()),
    }
}

/// The digests of files outside the store, in their order; `reread` reads those too that have not changed.
pub(crate) fn digests(store: &Store, sources: &[Source], reread: bool) -> Result<Vec<SourceDigest>, StageError> {
    sources
        .iter()
        .map(|source| {
            let blob = if reread {
                store.rehash_file(&source.path)
            } else {
                store.hash_file(&source.path)
            };
            let blob = blob.map_err(|err| {
                let cause = std::error::Error::source(&err)
                    .map(|cause| format!(": {cause}"))
                    .unwrap_or_default();
                StageError::new(format!("{err}{cause}"))
            })?;
            Ok(SourceDigest {
                name: source.name.clone(),
                blob: blob.blob,
            })
        })
        .collect()
}

/// What of a command is part of its key.
fn command_config(command: &Command) -> Value {
    let mut config = json!({
        "run": command.command,
        "outputs": command.outputs,
        "env": command.env,
    });
    if !command.points.is_empty() {
        config["points"] = json!(command.points);
    }
    config
}

/// Makes the recipe of a node whose inputs have these digests. Reads the files that it names, unless the store knows them and
/// nobody asks to `reread` them.
///
/// # Errors
/// When a file that it names cannot be read.
pub fn prepare(
    node: &Node,
    inputs: BTreeMap<String, Vec<ArtifactDigest>>,
    store: &Store,
    reread: bool,
) -> Result<Prepared, StageError> {
    let sources = sources(node)?;
    let (kind, version, config) = match &node.work {
        Work::Kind { kind, config } => (kind.name(), kind.version(), kind.key_config(config)),
        Work::Command(command) => (RUN, RUN_VERSION, command_config(command)),
    };
    let recipe = Recipe {
        kind: kind.to_owned(),
        version,
        config,
        inputs,
        sources: digests(store, &sources, reread)?,
    };
    Ok(Prepared {
        key: recipe.key(),
        recipe,
        sources,
    })
}
