//! Parsing of other YAML files with the parser of pipeline files: values with positions, and errors that
//! refer to them.

use crate::PipelineErrors;
pub use crate::text::problems::Problems;
pub use crate::text::source::Spot;
pub use crate::text::tree::{Key, Tree, Value};
use crate::text::{Block, Size, Texts, some_text, source, yaml};
use serde::Deserializer;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::Duration;

/// Reads the value of a key; `None` if it has errors, all of which are reported.
pub fn read<T: DeserializeOwned>(key: &'static str, tree: &Tree, problems: &mut Problems) -> Option<T> {
    Block::of(key).read(tree, tree, problems)
}

/// Reads a duration with its unit, such as `5s`.
///
/// # Errors
/// If the value is not a duration.
pub fn interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    some_text(deserializer)
}

/// Reads a size in bytes with its unit, such as `4GiB`.
///
/// # Errors
/// If the value is not a size.
pub fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    some_text(deserializer).map(|size: Option<Size>| size.map(|Size(bytes)| bytes))
}

/// Parses the bytes of a file; `None` if the file has no values.
pub fn parse(file: &Path, bytes: Vec<u8>) -> Result<Option<(Tree, Problems)>, PipelineErrors> {
    let text = source::decode(file, bytes)?;
    let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(is_blank) {
        return Ok(None);
    }
    let mut problems = Problems::new(Texts::of(file, text));
    match yaml::read(0, &mut problems) {
        Some(tree) => Ok(Some((tree, problems))),
        None => Err(problems.finish()),
    }
}
