//! The artifact of an environment, as its stage writes it and as it is opened.

use crate::actions::ActionSpace;
use bytes::Bytes;
use cache::{Artifact, ArtifactBuilder, BlobRef, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stages_core::{
    ConfigProblem, Context, OutputPort, Outputs, PlanContext, Planned, PortType, Provided, StageError,
};
use std::collections::BTreeSet;

/// The output of a stage without inputs.
pub(crate) const OUTPUT: OutputPort = OutputPort::new("env", PortType::Env).doc("the environment");
/// The output of a stage that makes tables.
pub(crate) const TABLES: OutputPort =
    OutputPort::new("env", PortType::Env).doc("the environment's tables and specification");

/// The output of a stage as far as its configuration tells: the elements of an observation, the names of the
/// choices of a discrete action, and whether data is held out for validation.
pub(crate) fn planned(
    observation: Option<Vec<String>>,
    actions: Option<&ActionSpace>,
    validation: bool,
) -> Planned {
    let provided = Provided {
        columns: observation.map(|names| names.into_iter().collect()),
        choices: match actions {
            Some(ActionSpace::Discrete { names, .. }) => Some(names.clone()),
            _ => None,
        },
        validation: Some(validation),
        ..Provided::unknown(PortType::Env)
    };
    Ok([(TABLES.name.to_owned(), provided)].into())
}

/// Returns whether a column is a key rather than a value.
pub(crate) fn is_key(column: &str) -> bool {
    matches!(column, "symbol" | "date" | "snapshot")
}

/// Refuses a feature that comes from two inputs.
pub(crate) fn check_features(plan: &PlanContext, is_key: fn(&str) -> bool) -> Result<(), ConfigProblem> {
    let mut seen = BTreeSet::new();
    for features in plan.inputs.get("features").into_iter().flatten() {
        for column in features.columns.iter().flatten().filter(|name| !is_key(name)) {
            ConfigProblem::new("", format!("the feature `{column}` comes from two inputs"))
                .hint("leave it out of one of the feature stages")
                .when(!seen.insert(column))?;
        }
    }
    Ok(())
}

/// An artifact to which files can be added.
pub(crate) fn builder(store: &Store, meta: serde_json::Value) -> ArtifactBuilder<'_> {
    ArtifactBuilder::new(store, PortType::Env.name(), meta)
}

/// The output of a stage.
pub(crate) fn outputs(builder: ArtifactBuilder<'_>) -> Result<Outputs, StageError> {
    Ok([("env".to_owned(), builder.finish()?)].into())
}

/// Built tables as files, with lines for the log and for the terminal.
#[derive(Debug)]
pub struct Built<F = Vec<u8>> {
    /// The name and the contents of each file, in order.
    pub files: Vec<(String, F)>,
    /// Lines for the log.
    pub notes: Vec<String>,
    /// Lines for the terminal.
    pub warnings: Vec<String>,
}

impl<F> Built<F> {
    /// Adds lines, which begin with the name of their world where there are several.
    pub(crate) fn add(
        &mut self,
        world: Option<&String>,
        notes: impl IntoIterator<Item = String>,
        warnings: impl IntoIterator<Item = String>,
    ) {
        let named = |line: String| match world {
            Some(world) => format!("{world}: {line}"),
            None => line,
        };
        self.notes.extend(notes.into_iter().map(named));
        self.warnings.extend(warnings.into_iter().map(named));
    }
}

/// A file of tables: bytes, or a blob that is stored already.
pub(crate) trait TableFile {
    /// Adds the file.
    fn add(&self, path: &str, builder: &mut ArtifactBuilder<'_>) -> Result<(), StageError>;
}

impl TableFile for Vec<u8> {
    fn add(&self, path: &str, builder: &mut ArtifactBuilder<'_>) -> Result<(), StageError> {
        builder.bytes(path, self)?;
        Ok(())
    }
}

impl TableFile for BlobRef {
    fn add(&self, path: &str, builder: &mut ArtifactBuilder<'_>) -> Result<(), StageError> {
        builder.blob(path, *self);
        Ok(())
    }
}

/// Stores tables; logs their notes, and warns.
pub(crate) fn store<F: TableFile>(
    context: &Context,
    meta: serde_json::Value,
    built: Built<F>,
) -> Result<Outputs, StageError> {
    for note in built.notes {
        context.log(note);
    }
    for message in built.warnings {
        context.warn(message, None);
    }
    let mut builder = builder(&context.store, meta);
    for (path, file) in &built.files {
        file.add(path, &mut builder)?;
    }
    outputs(builder)
}

/// The files of an environment, by name.
pub trait Files: Fn(&str) -> Result<Bytes, StageError> {}

impl<F: Fn(&str) -> Result<Bytes, StageError>> Files for F {}

/// The files of an artifact.
pub(crate) fn files<'a>(store: &'a Store, artifact: &'a Artifact) -> impl Files + 'a {
    move |name| {
        let entry = artifact
            .entry(name)
            .ok_or_else(|| StageError::new(format!("the environment has no `{name}`")))?;
        Ok(Bytes::from_owner(store.blob(entry.blob)?))
    }
}

/// The file of configuration, observation and actions by name, normalisation, and worlds.
pub(crate) const SPEC: &str = "env.json";

/// An artifact of a family with [`SPEC`], to which other files can be added.
pub(crate) fn begin<'a>(
    store: &'a Store,
    family: &str,
    spec: &impl Serialize,
) -> Result<ArtifactBuilder<'a>, StageError> {
    let mut builder = builder(store, serde_json::json!({ "family": family, "format": 1 }));
    builder.bytes(SPEC, &encode_spec(spec)?)?;
    Ok(builder)
}

/// The files of environments with one table for training and one for testing.
pub(crate) const SPLIT_TABLES: [&str; 2] = ["train.arrow", "test.arrow"];

/// Stores an environment of a family with one table for training and one for testing, by the numbers of their
/// random streams.
pub(crate) fn store_split_tables(
    context: &Context,
    family: &str,
    spec: &impl Serialize,
    table: impl Fn(u64) -> Result<Vec<u8>, StageError>,
) -> Result<Outputs, StageError> {
    let mut builder = begin(&context.store, family, spec)?;
    for (stream, name) in (0..).zip(SPLIT_TABLES) {
        context.check_cancelled()?;
        builder.bytes(name, &table(stream)?)?;
    }
    outputs(builder)
}

/// Refuses a table of another size than its specification.
pub(crate) fn check_size(name: &str, is_same: bool) -> Result<(), StageError> {
    StageError::new(format!(
        "`{name}` of the environment does not have the size that `env.json` states"
    ))
    .hint("run the environment's stage again with --force")
    .when(!is_same)
}

/// The bytes of [`SPEC`].
pub(crate) fn encode_spec(spec: &impl Serialize) -> Result<Vec<u8>, StageError> {
    let json =
        serde_json::to_value(spec).map_err(|err| StageError::new(format!("cannot write `{SPEC}`: {err}")))?;
    Ok(cache::canonical_json(&json).into_bytes())
}

/// Reads [`SPEC`].
pub(crate) fn spec<T: DeserializeOwned>(file: impl Files) -> Result<T, StageError> {
    serde_json::from_slice(&file(SPEC)?).map_err(|err| {
        StageError::new(format!("cannot read `{SPEC}` of the environment: {err}"))
            .hint("it was made by another version or damaged; run the environment's stage again")
    })
}
