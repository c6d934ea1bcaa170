//! The recipe and key of a stage whose inputs are known.

use crate::executor::DRIVER_VERSION;
use crate::key::{Config, RUN, RUN_VERSION, Recipe, SourceDigest, ToolDigest};
use crate::remote_sources as remote;
use cache::{ActionKey, ArtifactDigest, FetchFiles, FetchedFile, Store, Workspace};
use runner_pipeline::{Command, Node, Tool, Work};
use stages_core::{ConfigProblem, EventSink, Source, StageError, StageEvent};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A stage with its recipe and key, ready to be looked up or run.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The stage's action key.
    pub key: ActionKey,
    /// The recipe: the inputs of the action key.
    pub recipe: Recipe,
    /// The files outside the store that the stage reads, in the order of the recipe.
    pub sources: Vec<Source>,
    /// The sources that were fetched from servers.
    pub fetched: Vec<FetchedFile>,
    /// The directory of links to the fetched sources.
    _links: Option<Arc<Workspace>>,
    /// The declared programs, in the order of the recipe.
    pub tools: Vec<Tool>,
}

impl Prepared {
    /// Returns the first file outside the store, tools' files included, whose digest no longer matches the
    /// recipe.
    pub(crate) fn changed(&self, store: &Store, reread: bool) -> Result<Option<&Source>, StageError> {
        // Fetched sources are in the store, which verifies them when they are read.
        let local = |(source, _): &(&Source, &SourceDigest)| source.remote.is_none();
        let sources = self.sources.iter().zip(&self.recipe.sources).filter(local);
        let files = self.tools.iter().zip(&self.recipe.tools);
        let files = files.flat_map(|(tool, known)| tool.sources.iter().zip(&known.files));
        for (source, known) in sources.chain(files) {
            if digest(store, source, reread)? != *known {
                return Ok(Some(source));
            }
        }
        Ok(None)
    }
}

/// The files outside the store that a node reads.
///
/// # Errors
/// When a kind does not find its files.
pub fn sources(node: &Node) -> Result<Vec<Source>, ConfigProblem> {
    match &node.work {
        Work::Kind { kind, config } => match &node.sources {
            Some(sources) => Ok(sources.clone()),
            None => kind.sources(config, &node.base),
        },
        Work::Command(command) => Ok(command.files.clone()),
    }
}

/// True if the key of a node depends on files outside the store.
pub(crate) fn reads_files(node: &Node) -> bool {
    let tools = match &node.work {
        Work::Kind { .. } => false,
        Work::Command(command) => command.tools.iter().any(|tool| !tool.sources.is_empty()),
    };
    tools || sources(node).map_or(true, |sources| !sources.is_empty())
}

/// The digest of a file outside the store; `reread` rehashes an unchanged file too.
fn digest(store: &Store, source: &Source, reread: bool) -> Result<SourceDigest, StageError> {
    if let (Some(_), Some(blob)) = (&source.remote, source.digest) {
        return Ok(SourceDigest {
            name: source.name.clone(),
            blob,
        });
    }
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
}

fn digests(store: &Store, sources: &[Source], reread: bool) -> Result<Vec<SourceDigest>, StageError> {
    sources.iter().map(|source| digest(store, source, reread)).collect()
}

fn command_config(command: &Command) -> Config {
    let mut config = command.key_config();
    if let Some(python) = config.get_mut("python") {
        python["driver"] = DRIVER_VERSION.into();
    }
    Config::from(&config)
}

/// Computes the recipe of a node with these input digests. Fetches its sources on servers, and reads its
/// source files, unless the store has their digests cached and `reread` is not set.
///
/// # Errors
/// If a source file cannot be read or fetched.
pub fn prepare(
    node: &Node,
    inputs: BTreeMap<String, Vec<ArtifactDigest>>,
    store: &Store,
    reread: bool,
    events: &dyn EventSink,
) -> Result<Prepared, StageError> {
    let prepared = prepare_with(node, sources(node)?, inputs, store, reread, events);
    for message in store.files().map(FetchFiles::take_notes).unwrap_or_default() {
        events.emit(StageEvent::Warning { message, hint: None });
    }
    prepared
}

/// Computes the recipe of a node, as [`prepare`] does, from the sources that [`sources`] returned for it.
pub(crate) fn prepare_with(
    node: &Node,
    mut sources: Vec<Source>,
    inputs: BTreeMap<String, Vec<ArtifactDigest>>,
    store: &Store,
    reread: bool,
    events: &dyn EventSink,
) -> Result<Prepared, StageError> {
    let (fetched, links) = remote::fetch(&mut sources, store, events)?;
    let recipe = recipe(node, &sources, inputs, store, reread)?;
    let tools = match &node.work {
        Work::Kind { .. } => Vec::new(),
        Work::Command(command) => command.tools.clone(),
    };
    Ok(Prepared {
        key: recipe.key(),
        recipe,
        sources,
        fetched,
        _links: links,
        tools,
    })
}

/// The recipe of a node with these inputs and sources, none of which is still to be fetched.
pub(crate) fn recipe(
    node: &Node,
    sources: &[Source],
    inputs: BTreeMap<String, Vec<ArtifactDigest>>,
    store: &Store,
    reread: bool,
) -> Result<Recipe, StageError> {
    let (kind, version, config) = match &node.work {
        Work::Kind { kind, config } => (kind.name(), kind.version(), Config::from(&kind.key_config(config))),
        Work::Command(command) => (RUN, RUN_VERSION, command_config(command)),
    };
    let tools = match &node.work {
        Work::Kind { .. } => &[][..],
        Work::Command(command) => &command.tools,
    };
    let tool_digest = |tool: &Tool| -> Result<ToolDigest, StageError> {
        Ok(ToolDigest {
            name: tool.name.clone(),
            version: tool.version.clone(),
            system_packages: tool.system_packages,
            files: digests(store, &tool.sources, reread)?,
        })
    };
    Ok(Recipe {
        kind: kind.to_owned(),
        version,
        config,
        inputs,
        sources: digests(store, sources, reread)?,
        tools: tools.iter().map(tool_digest).collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_pipeline::{Isolation, Shell};
    use serde_json::json;
    use stages_core::PortType;

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
        (command.shell, command.network) = (Shell::Sh, true);
        command.container = Some("i@sha256:0".to_owned());
        for (name, value) in [
            ("shell", json!("sh")),
            ("network", json!(true)),
            ("container", json!("i@sha256:0")),
        ] {
            expected[name] = value;
        }
        assert_eq!(command_config(&command), Config::from(&expected));
        command.types = [("x".to_owned(), PortType::Features)].into();
        expected["types"] = json!({ "x": "features v1" });
        assert_eq!(command_config(&command), Config::from(&expected));
        (command.isolation, command.log_limit) = (Some(Isolation::Required), Some(1));
        assert_eq!(
            command_config(&command),
            Config::from(&expected),
            "neither is in the key"
        );
    }
}
