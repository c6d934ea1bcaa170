//! The recipe and key of a stage whose inputs are known.

use crate::key::{Config, RUN, RUN_VERSION, Recipe, SourceDigest};
use cache::{ActionKey, ArtifactDigest, Store};
use runner_pipeline::{Command, Node, Work};
use serde::Serialize;
use stages_core::{ConfigProblem, Source, StageError};
use std::collections::BTreeMap;

/// A stage with its recipe and key, ready to be looked up or run.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Its action key.
    pub key: ActionKey,
    /// The inputs of the key.
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

/// The digests of files outside the store, in order; `reread` rehashes unchanged files too.
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
                if matches!(err, cache::Error::Interrupted { .. }) {
                    return err.into();
                }
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

/// The fields of a command that are part of its key, by name.
#[derive(Serialize)]
struct CommandConfig<'a> {
    env: &'a BTreeMap<String, String>,
    outputs: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    points: &'a BTreeMap<String, Vec<String>>,
    run: &'a str,
}

fn command_config(command: &Command) -> Config {
    Config::sorted(&CommandConfig {
        env: &command.env,
        outputs: &command.outputs,
        points: &command.points,
        run: &command.command,
    })
}

/// Computes the recipe of a node with these input digests. Reads its source files, unless the store has their digests
/// cached and `reread` is not set.
///
/// # Errors
/// If a source file cannot be read.
pub fn prepare(
    node: &Node,
    inputs: BTreeMap<String, Vec<ArtifactDigest>>,
    store: &Store,
    reread: bool,
) -> Result<Prepared, StageError> {
    let sources = sources(node)?;
    let (kind, version, config) = match &node.work {
        Work::Kind { kind, config } => (kind.name(), kind.version(), Config::from(&kind.key_config(config))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_configuration_of_a_command_is_canonical() {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        let mut command = Command {
            command: "echo \"é\" > ${outputs.x}\n".to_owned(),
            files: Vec::new(),
            outputs: map(&[("x", "x.txt"), ("A", "a/b"), ("é", "\u{1}")]),
            points: BTreeMap::new(),
            env: map(&[("Z", "1"), ("a", "")]),
            secrets: vec!["S".to_owned()],
            ..Command::default()
        };
        let mut expected = json!({"run": command.command, "outputs": command.outputs, "env": command.env});
        assert_eq!(command_config(&command), Config::from(&expected));
        command.points.insert("p".to_owned(), vec!["seed=1".to_owned()]);
        expected["points"] = json!(command.points);
        assert_eq!(command_config(&command), Config::from(&expected));
    }
}
