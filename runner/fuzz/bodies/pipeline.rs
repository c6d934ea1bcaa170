//! A pipeline file of any bytes is read or refused, with places and hints.

#[path = "../../pipeline/tests/kinds/mod.rs"]
mod kinds;

use runner_pipeline::{LoadOptions, load_text};
use std::path::Path;

/// Reads bytes as a pipeline file, with stage kinds that have the names and ports of real ones.
pub(crate) fn check(bytes: &[u8]) {
    check_with(bytes, &[]);
}

/// Likewise, with these arguments of `--set`.
pub(crate) fn check_with(bytes: &[u8], set: &[&str]) {
    let options = LoadOptions {
        set: set.iter().map(|text| (*text).to_owned()).collect(),
        ..LoadOptions::new(kinds::all())
    };
    // A directory that is not there: nothing outside the text is read.
    match load_text(Path::new("nowhere/pipeline.yaml"), bytes, &options) {
        Ok(pipeline) => assert!(!pipeline.nodes.is_empty()),
        Err(errors) => {
            assert!(!errors.0.is_empty());
            for error in &errors.0 {
                assert!(error.place.line > 0 && error.place.column > 0, "{error}");
                assert!(error.hint.as_ref().is_some_and(|hint| !hint.is_empty()), "{error}");
                assert!(!error.message.is_empty());
                // What is shown has no control characters but line ends.
                assert!(
                    !error
                        .to_string()
                        .contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')),
                    "{error:?}"
                );
            }
        }
    }
}
