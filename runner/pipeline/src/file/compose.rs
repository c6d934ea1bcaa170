//! `include:`: one pipeline from several files.
//!
//! The including file overrides the files that it includes, and a later file in the list overrides an earlier
//! one:
//!
//! - a parameter, or a value of a profile, replaces the one of the same name;
//! - a stage with `uses:` or `run:` replaces the stage of the same name; a stage with neither is merged
//!   into it, map by map, so that `train: { with: { learning_rate: 1e-4 } }` changes one value.
//!
//! The paths of a stage are relative to the file that has its `uses:` or `run:`.

use crate::text::{Key, Problems, Spot, Tree, Value, source, yaml};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The maximum number of files of a pipeline.
const MOST_FILES: usize = 64;

/// A document with its includes resolved, and the directory of each stage that comes from an included file.
pub(crate) struct Composed {
    pub root: Tree,
    pub bases: BTreeMap<String, Arc<Path>>,
}

impl Composed {
    /// A document without includes.
    fn alone(root: Tree) -> Self {
        let bases = BTreeMap::new();
        Self { root, bases }
    }
}

/// Resolves `include:`. Paths are relative to `folder`.
pub(crate) fn compose(root: Tree, file: &Path, folder: &Path, problems: &mut Problems) -> Composed {
    let mut composer = Composer {
        problems,
        files: 0,
        chain: Vec::new(),
    };
    if root.entry("include").is_none() {
        return Composed::alone(root);
    }
    composer.chain.extend(std::fs::canonicalize(file).ok());
    // In messages, a file name is relative to the current directory, as the pipeline's is.
    let shown = file.parent().unwrap_or(Path::new(""));
    composer.resolve(root, folder, shown, true)
}

struct Composer<'p> {
    problems: &'p mut Problems,
    files: usize,
    /// The stack of files being read, each included by the previous one.
    chain: Vec<PathBuf>,
}

impl Composer<'_> {
    fn resolve(&mut self, root: Tree, folder: &Path, shown: &Path, outermost: bool) -> Composed {
        let spot = root.spot;
        let Value::Map(entries) = root.value else {
            return Composed::alone(root);
        };
        let mut own = Vec::new();
        let mut names = Vec::new();
        for (key, value) in entries {
            match key.name.as_str() {
                "include" => names = self.names(&value),
                // Each file may be a complete pipeline; its name and version apply to that file only.
                "version" if !outermost => check_version(&value, self.problems),
                "name" if !outermost => {}
                // These blocks of an included file apply to that file only.
                "schedule" | "promote" | "notify" | "track" | "search" if !outermost => {}
                _ => own.push((key, value)),
            }
        }
        let mut all = Composed::alone(Tree::map(spot, Vec::new()));
        for (name, at) in names {
            if let Some(part) = self.file(&name, at, folder, shown) {
                overlay(&mut all, part);
            }
        }
        let bases = if outermost {
            BTreeMap::new()
        } else {
            let base: Arc<Path> = folder.into();
            given(&own).map(|name| (name.to_owned(), base.clone())).collect()
        };
        // A stage that this file redefines gets this file's directory.
        for name in given(&own) {
            all.bases.remove(name);
        }
        let root = Tree::map(spot, own);
        let own = Composed {
            bases,
            ..Composed::alone(root)
        };
        overlay(&mut all, own);
        all
    }

    fn names(&mut self, value: &Tree) -> Vec<(String, Spot)> {
        let mut names = Vec::new();
        for item in value.items() {
            match item.text() {
                Some(text) if text.contains("${") => self.problems.add(
                    item.spot,
                    format!("`{text}` is not a file name"),
                    "`include` cannot contain interpolations",
                ),
                Some(text) if !text.is_empty() => names.push((text.to_owned(), item.spot)),
                _ => self.problems.add(
                    item.spot,
                    format!("`include` is {}, not the name of a file", item.describe()),
                    "write `include: common.yaml` or `include: [market.yaml, train.yaml]`",
                ),
            }
        }
        names
    }

    fn file(&mut self, name: &str, at: Spot, folder: &Path, shown: &Path) -> Option<Composed> {
        let (path, shown) = (folder.join(name), shown.join(name));
        self.files += 1;
        if self.files > MOST_FILES {
            let message = format!("more than {MOST_FILES} files are included");
            return self.problems.fail(at, message, "include fewer, larger files");
        }
        let read = source::bytes(&path).map_err(|(message, _)| {
            let message = message.replace("the pipeline file", &format!("`{name}`"));
            let hint = format!("includes are looked for in {}", folder.display());
            self.problems.add(at, message, hint);
        });
        let bytes = read.ok()?;
        let real = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        if self.chain.contains(&real) {
            let message = format!("`{name}` includes itself, directly or through other files");
            return self.problems.fail(at, message, "remove one of these includes");
        }
        let text = source::decode(&shown, bytes).map_err(|error| self.problems.push(at, error));
        let index = self.problems.texts.push(shown.clone(), text.ok()?);
        let root = yaml::read(index, self.problems)?;
        if !matches!(root.value, Value::Map(_)) {
            return self.problems.fail(
                root.spot,
                format!("an included file is a map of keys, and this is {}", root.describe()),
                "it holds `params:`, `profiles:` or `stages:`",
            );
        }
        self.chain.push(real);
        let folder = path.parent().unwrap_or(folder).to_owned();
        let shown = shown.parent().unwrap_or(Path::new("")).to_owned();
        let composed = self.resolve(root, &folder, &shown, false);
        self.chain.pop();
        Some(composed)
    }
}

/// Reports a version of the format other than 1.
pub(crate) fn check_version(value: &Tree, problems: &mut Problems) {
    if value.to_json().as_u64() != Some(1) {
        let message = format!("the version of the format is {}, not 1", value.describe());
        problems.add(value.spot, message, "write `version: 1`");
    }
}

/// The stages that a file defines with `uses:` or `run:`.
fn given(entries: &[(Key, Tree)]) -> impl Iterator<Item = &str> {
    let stages = entries.iter().filter(|(key, _)| key.name == "stages");
    let stages = stages.flat_map(|(_, stages)| stages.entries());
    stages
        .filter(|(_, stage)| does_something(stage))
        .map(|(key, _)| key.name.as_str())
}

fn does_something(stage: &Tree) -> bool {
    stage.entry("uses").is_some() || stage.entry("run").is_some()
}

/// Merges a document over another one.
fn overlay(below: &mut Composed, above: Composed) {
    below.bases.extend(above.bases);
    let Value::Map(entries) = above.root.value else {
        return;
    };
    for (key, value) in entries {
        match key.name.as_str() {
            // An empty section removes nothing.
            "params" | "profiles" | "stages" if value.is_null() => {}
            "params" => merge(&mut below.root, key, value, 1),
            "profiles" => merge(&mut below.root, key, value, 2),
            "stages" => stages(&mut below.root, key, value),
            _ => merge(&mut below.root, key, value, 0),
        }
    }
}

fn stages(below: &mut Tree, key: Key, above: Tree) {
    let known = match &mut below.value {
        Value::Map(entries) => entries.iter_mut().find(|(known, _)| known.name == key.name),
        _ => None,
    };
    match (known, above.value) {
        (Some((_, known)), Value::Map(entries)) => {
            let depth = |stage: &Tree| if does_something(stage) { 0 } else { usize::MAX };
            merge_all(known, entries, depth);
        }
        (_, value) => merge(below, key, Tree { value, ..above }, 0),
    }
}

/// Merges entries into a map; `depth` gives the depth of each entry's merge.
fn merge_all(below: &mut Tree, above: Vec<(Key, Tree)>, depth: impl Fn(&Tree) -> usize) {
    let Value::Map(entries) = &mut below.value else {
        return;
    };
    let mut places: HashMap<String, usize> =
        entries.iter().map(|(key, _)| key.name.clone()).zip(0..).collect();
    for (key, value) in above {
        match places.get(&key.name) {
            Some(&place) => {
                let depth = depth(&value);
                replace(&mut entries[place], key, value, depth);
            }
            None => {
                places.insert(key.name.clone(), entries.len());
                entries.push((key, value));
            }
        }
    }
}

/// Merges an entry into a map: maps are merged down to `depth` levels, and replaced below.
fn merge(below: &mut Tree, key: Key, above: Tree, depth: usize) {
    merge_all(below, vec![(key, above)], |_| depth);
}

fn replace((place, known): &mut (Key, Tree), key: Key, above: Tree, depth: usize) {
    match above.value {
        Value::Map(above) if depth > 0 && matches!(known.value, Value::Map(_)) => {
            merge_all(known, above, |_| depth - 1);
        }
        value => {
            *place = key;
            *known = Tree {
                spot: above.spot,
                value,
                note: above.note,
            };
        }
    }
}
