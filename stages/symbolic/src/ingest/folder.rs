//! The files of a folder, by the usual names.

use super::config::KnowledgeBaseConfig;
use stages_core::{ConfigProblem, Source};
use stages_ingest::files::name_of;
use std::path::Path;

/// The names of files, without their endings, by the field that takes them.
const NAMES: [(&str, &[&str]); 4] = [
    ("graph", &["facts", "graph", "background", "rules"]),
    ("train", &["train"]),
    ("valid", &["valid", "dev"]),
    ("test", &["test"]),
];
/// The endings of the forms.
const ENDINGS: [&str; 10] = ["pl", "nl", "dl", "lp", "prolog", "datalog", "nt", "txt", "tsv", "csv"];

/// The files of the configuration's folder, named by field. None where no folder is named.
///
/// # Errors
/// When there is no such folder, it has two files for one purpose, or neither it nor the files that are named
/// have facts.
pub(super) fn sources(config: &KnowledgeBaseConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
    let folder = &config.folder;
    if folder.is_empty() {
        return Ok(Vec::new());
    }
    let path = base.join(folder);
    if !path.is_dir() {
        return Err(
            ConfigProblem::new("folder", format!("there is no folder `{folder}`")).hint(
                "relative paths are relative to the pipeline file; single files are named by `graph:`, \
                `train:`, …",
            ),
        );
    }
    let unreadable =
        |err: std::io::Error| ConfigProblem::new("folder", format!("cannot read `{folder}`: {err}"));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.path().is_file() {
            names.push((name_of(&entry.file_name()), entry.path()));
        }
    }
    names.sort();
    let mut found: Vec<(&str, &str, &str)> = Vec::new();
    let mut sources = Vec::new();
    for (name, path) in &names {
        let Some((field, stem)) = purpose(name) else {
            continue;
        };
        let is_same = |known: &&(&str, &str, &str)| known.0 == field && (field != "graph" || known.1 == stem);
        if let Some((_, _, other)) = found.iter().find(is_same) {
            return Err(ConfigProblem::new(
                "folder",
                format!("`{other}` and `{name}` of `{folder}` are both `{stem}`"),
            )
            .hint(
                "remove `folder:` and name the files that are meant: `graph:`, `train:`, `valid:`, `test:`",
            ));
        }
        found.push((field, stem, name));
        sources.push(Source::new(format!("{field}/folder/{name}"), path.clone()));
    }
    let has = |field: &str| found.iter().any(|known| known.0 == field);
    let has_graph = has("graph") || (config.train_in_graph && has("train")) || config.has_graph();
    if !has_graph {
        return Err(ConfigProblem::new("folder", format!("no facts are in `{folder}`")).hint(
            "it is searched for files named facts, graph, background, rules or train; others are named by \
            `graph:` and `train:`",
        ));
    }
    Ok(sources)
}

/// The field that takes a file of that name, and its name without endings.
fn purpose(name: &str) -> Option<(&'static str, &'static str)> {
    let name = name.to_ascii_lowercase();
    let (stem, ending) = stages_ingest::unpack::without_packing(&name).rsplit_once('.')?;
    if !ENDINGS.contains(&ending) {
        return None;
    }
    NAMES.iter().find_map(|(field, stems)| {
        let stem = stems.iter().find(|known| **known == stem)?;
        Some((*field, *stem))
    })
}
