//! The files of a stage: those at `path:`, or those that another stage wrote, at the input `table`.

use crate::files::{ENDINGS, Paths, is_table};
use crate::layout_choice::Chosen;
use crate::read;
use crate::whose::once_each;
use cache::{BlobRef, Workspace};
use datasets::layout::Table;
use serde_json::json;
use stages_core::{
    ConfigProblem, Context, Given, Input, InputPort, PlanContext, PortType, Source, StageError,
};
use std::collections::BTreeSet;

/// The input port for files that a program wrote.
pub(crate) const TABLE: InputPort = InputPort::optional("table", PortType::File).doc(
    "the files, from an output of a program or the table of another stage, in place of `path`: a file, \
        a directory with tables, or a data set",
);

/// Refuses a stage with neither `path` nor the input `table`, or with both.
pub(crate) fn check_origin(path: &Paths, plan: &PlanContext) -> Result<(), ConfigProblem> {
    match (path.is_empty(), plan.inputs.contains_key(TABLE.name)) {
        (true, false) => Err(ConfigProblem::new("path", "no file is given").hint(
            "write `path: data/file.csv` (directories, globs and lists are taken too), or connect what a \
            program wrote: `needs: { table: STAGE.OUTPUT }`",
        )),
        (false, true) => Err(given_twice()),
        _ => Ok(()),
    }
}

/// The configuration problem of a stage with both `path` and the input `table`.
pub(crate) fn given_twice() -> ConfigProblem {
    ConfigProblem::new("path", "files are given twice: by `path` and by the input `table`")
        .hint("leave one of the two out")
}

/// Determines from headers which of our columns the files have; `symbol` is that of rows without one. `None`
/// if that is only known in the run: some files do not exist yet, or are on a server.
pub(crate) fn columns(
    field: &str,
    sources: &[Source],
    table: Table,
    chosen: &Chosen,
    symbol: &str,
) -> Result<Option<BTreeSet<String>>, ConfigProblem> {
    if sources.is_empty() || sources.iter().any(|source| source.remote.is_some()) {
        return Ok(None);
    }
    let files = read::peek(field, sources, table, chosen, symbol)?;
    Ok(Some(files.into_iter().flat_map(|(_, present)| present).collect()))
}

/// The files that a stage reads.
pub(crate) struct Files {
    /// The files, sorted by name.
    pub sources: Vec<Source>,
    /// The directory of links through which `sources` are reached, kept until the files are dropped.
    _links: Option<Workspace>,
}

impl Files {
    /// Opens the stage's sources (the files at `path`) together with the files of the input `table`.
    pub(crate) fn open(given: &Given<'_>) -> Result<Self, StageError> {
        let mut sources = given.sources.to_vec();
        let Some(input) = given.optional(TABLE.name) else {
            return Ok(Self { sources, _links: None });
        };
        let links = given.store.workspace()?;
        for (name, blob) in tables(input)? {
            // Reading the blob fetches it from a remote if necessary, and verifies it.
            given.store.blob(blob.blob)?;
            let path = links.link(given.store, blob.blob, name)?;
            sources.push(Source {
                digest: Some(blob.blob),
                ..Source::new(name, path)
            });
        }
        sources.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
        Ok(Self {
            sources,
            _links: Some(links),
        })
    }

    /// Opens files as [`Files::open`] does, without empty files and second downloads of others: what is left
    /// out is told.
    pub(crate) fn open_told(context: &Context) -> Result<Self, StageError> {
        let mut files = Self::open(&context.given())?;
        once_each(context, &mut files.sources)?;
        Ok(files)
    }

    /// Opens files as [`Files::open`] does, for a plan: `None` if a file is not in the local store, or links
    /// cannot be made there.
    pub(crate) fn open_local(given: &Given<'_>) -> Option<Self> {
        let is_here = |input: &Input| {
            let mut entries = input.artifact.entries.iter();
            entries.all(|entry| given.store.has_here(BlobRef::new(entry.blob, entry.size)))
        };
        match given.optional(TABLE.name) {
            Some(input) if !is_here(input) => None,
            _ => Self::open(given).ok(),
        }
    }
}

/// The tables in an artifact: the artifact's single file, or the files that a search of its directory takes
/// for tables.
fn tables(input: &Input) -> Result<Vec<(&str, BlobRef)>, StageError> {
    let artifact = &input.artifact;
    let is_directory = artifact.meta["folder"] == json!(true);
    let tables: Vec<(&str, BlobRef)> = artifact
        .entries
        .iter()
        .filter(|entry| !is_directory || is_table(&entry.path))
        .map(|entry| {
            let blob = BlobRef::new(entry.blob, entry.size);
            (entry.path.as_str(), blob)
        })
        .collect();
    if tables.is_empty() {
        let ending = ENDINGS.join(", ");
        return Err(StageError::new("the directory at the input `table` holds no table")
            .hint(format!("it is searched for files ending in {ending}")));
    }
    Ok(tables)
}
