//! The pipelines that ship, and the malformed files, with the real stage kinds.

use runner::pipeline::{LoadOptions, load, schema};
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(!files.is_empty(), "no files");
    files
}

#[test]
fn the_pipelines_that_ship_are_valid() {
    let mut options = LoadOptions::new(runner::registry::kinds());
    for file in files("../pipelines") {
        options.set.clear();
        let pipeline = load(&file, &options).unwrap_or_else(|errors| panic!("{errors}"));
        for name in ["seed", "timesteps"] {
            assert!(
                pipeline.params.contains_key(name),
                "{} has no parameter `{name}`",
                file.display()
            );
            options.set.push(format!("{name}=8192"));
        }
        load(&file, &options).unwrap_or_else(|errors| panic!("{errors}"));
    }
}

#[test]
fn bad_files_are_bad_with_the_real_kinds() {
    let options = LoadOptions::new(runner::registry::kinds());
    for file in files("tests/bad") {
        let Err(errors) = load(&file, &options) else {
            panic!("{} is a valid pipeline", file.display());
        };
        for error in &errors.0 {
            assert!(error.place.line > 0 && error.place.column > 0, "{error}");
            assert!(error.hint.as_ref().is_some_and(|hint| !hint.is_empty()), "{error}");
        }
    }
}

#[test]
fn the_schema_knows_every_kind() {
    let schema = schema();
    for kind in runner::registry::kinds() {
        assert!(schema["definitions"][kind.name()].is_object(), "{}", kind.name());
    }
}
