//! The pipelines that ship, and the malformed files, with the real stage kinds.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use runner_pipeline::{LoadOptions, load, schema};
use std::path::PathBuf;

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(!files.is_empty(), "no files");
    files
}

/// Those that read market data are in the tests of `market_data.rs`.
#[test]
fn the_pipelines_that_ship_are_valid() {
    for file in files("../../pipelines") {
        let text = std::fs::read_to_string(&file).unwrap();
        // A study has its seeds in a matrix, and what only makes data has no steps.
        let parameters = text.split("\nstages:").next().unwrap_or_default();
        let has = |name: &str| parameters.contains(&format!("\n  {name}:"));
        if has("data") {
            continue;
        }
        let mut options = LoadOptions::new(runner::registry::kinds());
        let settings = ["timesteps", "seed"].into_iter().filter(|name| has(name));
        options.set.extend(settings.map(|name| format!("{name}=8192")));
        load(&file, &options).unwrap_or_else(|errors| panic!("{errors}"));
    }
}

#[test]
fn bad_files_are_bad_with_the_real_kinds() {
    let options = LoadOptions::new(runner::registry::kinds());
    for file in files("../pipeline/tests/bad") {
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
    let schema = schema(runner::registry::kinds());
    for kind in runner::registry::kinds() {
        assert!(schema["definitions"][kind.name()].is_object(), "{}", kind.name());
    }
}
