//! The pipelines that ship, and the malformed files, with the real stage kinds.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod documented;
mod hints;

use runner_pipeline::{LoadOptions, load, schema};
use serde_json::{Value, json};
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
        // Data that is optional is not there by default.
        if has("data") && !parameters.contains("\n  data: \"\"") {
            continue;
        }
        let mut options = LoadOptions::new(runner::registry::kinds());
        // Nothing has run yet.
        options.earlier = Some(Box::new(|_| Ok(None)));
        options.tried = Some(Box::new(|_| Ok(1)));
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
    let schema = schema(&runner::registry::each());
    for kind in runner::registry::kinds() {
        assert!(schema["definitions"][kind.name()].is_object(), "{}", kind.name());
    }
}

/// The schema that a reference of `root` names, or `schema` itself.
fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let named = schema["$ref"]
        .as_str()
        .and_then(|name| root.pointer(name.strip_prefix('#')?));
    named.map_or(schema, |schema| resolved(root, schema))
}

/// The paths of the maps in a default configuration that have entries and whose keys are the user's choice.
fn filled_maps(root: &Value, schema: &Value, default: &Value, path: &str) -> Vec<String> {
    let schema = resolved(root, schema);
    let parts = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .filter_map(|name| schema[name].as_array());
    let mut found: Vec<String> = parts
        .flatten()
        .flat_map(|part| filled_maps(root, part, default, path))
        .collect();
    let Some(fields) = default.as_object().filter(|fields| !fields.is_empty()) else {
        return found;
    };
    let is_map = match &schema["additionalProperties"] {
        Value::Null => {
            *schema == json!(true) || *schema == json!({}) || schema["patternProperties"].is_object()
        }
        keys => *keys != json!(false),
    };
    if is_map {
        found.push(path.to_owned());
    }
    for (name, default) in fields {
        let schema = &schema["properties"][name];
        if !schema.is_null() {
            found.extend(filled_maps(root, schema, default, &format!("{path}.{name}")));
        }
    }
    found
}

/// Keys leave out what equals the default, entry by entry: with a map `{ a: 1 }` as a default, that map and
/// an empty one would have the same key.
#[test]
fn no_kind_has_a_map_with_entries_as_a_default() {
    for kind in runner::registry::kinds() {
        let (schema, default) = (kind.schema(), kind.resolve(Value::Null).unwrap());
        assert_eq!(filled_maps(&schema, &schema, &default, kind.name()), [""; 0]);
    }
}

#[test]
fn a_map_with_entries_as_a_default_is_found() {
    let map = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let schema = json!({
        "properties": { "inner": { "anyOf": [{ "$ref": "#/definitions/Inner" }, { "type": "null" }] } },
        "additionalProperties": false,
        "definitions": {
            "Inner": {
                "properties": { "empty": map, "free": true, "names": map },
                "additionalProperties": false
            }
        }
    });
    let default = json!({ "inner": { "empty": {}, "free": { "b": 2 }, "names": { "a": 1 } } });
    assert_eq!(
        filled_maps(&schema, &schema, &default, "x"),
        ["x.inner.free", "x.inner.names"]
    );
}
