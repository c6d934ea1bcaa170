//! Files that add or hide symbols: empty ones, second downloads, and copies under other names.

use super::partitions::Partitions;
use super::places::without_copy_mark;
use super::spelling::listed;
use super::stem_of;
use crate::file_memo::content;
use cache::BlobDigest;
use stages_core::{Context, Source, StageError};
use std::collections::BTreeMap;

/// Returns the directory and the name of a file.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('/').map_or(("", name), |(folder, own)| (folder, own))
}

/// The files without those that hold nothing and without second downloads of the same bytes in the same
/// directory, with a warning of each kind, and one of files with the same contents under other names.
pub(crate) fn once_each(context: &Context, sources: &mut Vec<Source>) -> Result<(), StageError> {
    let size = |source: &Source| std::fs::metadata(&source.path).map_or(1, |meta| meta.len());
    let (empty, filled): (Vec<Source>, Vec<Source>) = std::mem::take(sources)
        .into_iter()
        .partition(|source| size(source) == 0);
    *sources = match filled.is_empty() {
        // The error is that of reading one.
        true => empty,
        false => {
            let names: Vec<String> = empty.iter().map(|source| format!("`{}`", source.name)).collect();
            if !names.is_empty() {
                context.warn(
                    format!(
                        "{} is left out: a file of 0 bytes: {}",
                        count(names.len()),
                        listed(&names)
                    ),
                    Some("an interrupted download?"),
                );
            }
            filled
        }
    };
    if sources.len() < 2 {
        return Ok(());
    }
    let mut same: BTreeMap<BlobDigest, Vec<usize>> = BTreeMap::new();
    for (i, source) in sources.iter().enumerate() {
        let digest = match source.digest {
            Some(digest) => digest,
            None => content(&context.given(), &source.path)?,
        };
        same.entry(digest).or_default().push(i);
    }
    let (mut copies, mut alike) = (Vec::new(), Vec::new());
    let mut left_out = Vec::new();
    for files in same.into_values().filter(|files| files.len() > 1) {
        let name = |i: usize| sources[i].name.as_str();
        let is_copy = |i: usize, of: usize| {
            let ((folder, own), (other_folder, other)) = (split(name(i)), split(name(of)));
            folder == other_folder && without_copy_mark(stem_of(own)) == Some(stem_of(other))
        };
        let mut others = Vec::new();
        // Days may be alike.
        for &i in files.iter().filter(|i| Partitions::of(name(**i)).date().is_none()) {
            match files.iter().find(|of| is_copy(i, **of)) {
                Some(of) => {
                    copies.push(format!("`{}` is `{}`", name(i), name(*of)));
                    left_out.push(i);
                }
                None => others.push(name(i)),
            }
        }
        if let [first, .., last] = others.as_slice() {
            alike.push(match others.len() {
                2 => format!("`{first}` and `{last}`"),
                more => format!("`{first}` and {} others", more - 1),
            });
        }
    }
    copies.sort_unstable();
    alike.sort_unstable();
    if !copies.is_empty() {
        context.warn(
            format!(
                "{} is left out: a second download, byte for byte: {}",
                count(copies.len()),
                listed(&copies)
            ),
            None,
        );
    }
    if !alike.is_empty() {
        context.warn(
            format!("files have the same contents: {}", listed(&alike)),
            Some("a download under another name? leave one out, if they are of one symbol or day"),
        );
    }
    left_out.sort_unstable();
    for i in left_out.into_iter().rev() {
        sources.remove(i);
    }
    Ok(())
}

fn count(files: usize) -> String {
    match files {
        1 => "a file".to_owned(),
        n => format!("each of {n} files"),
    }
}
