//! The JSON Schema (draft 7) of pipeline files, for editors.

use crate::file::registration::{PromoteForm, RegisterForm};
use crate::file::{notify, track};
use crate::matrix::axes::Range;
use crate::matrix::folds::Folds;
use crate::schedule;
use crate::stage::earlier::{OfPipeline, OfPolicy};
use crate::stage::needs::Collect;
use crate::stage::written::{Common, KEYS, OF_KIND, USES};
use crate::stage::{python_stage, run_stage};
use crate::text::typed::{Name, TextOr};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use stages_core::{AnyStage, PortType, typed_output};

/// The schema of pipeline files with these stage kinds.
pub fn schema(kinds: &[Box<dyn AnyStage>]) -> Value {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).chain([USES]).collect();
    let mut definitions = Map::new();
    definitions.insert(
        "interpolation".to_owned(),
        json!({
            "description": "`${params.X}`, `${matrix.X}`, `${env.X}`, `${schedule.X}` or \
            `${policies.NAME.tried}`; keeps its type where it is the whole value",
            "type": "string",
            "pattern": "\\$\\{(params|matrix|env|schedule|policies)\\.[^}]+\\}",
        }),
    );
    let collect = described::<Collect>();
    let name = &collect["properties"]["collect"];
    let (earlier, policy) = (described::<OfPipeline>(), described::<OfPolicy>());
    definitions.insert("need".to_owned(), json!({ "anyOf": [name, collect, earlier, policy] }));
    definitions.insert("matrix".to_owned(), matrix());
    let mut rules = Vec::new();
    for kind in kinds {
        definitions.insert(kind.name().to_owned(), configuration(kind.as_ref()));
        rules.push(rule(kind.as_ref()));
    }
    definitions.insert("stage".to_owned(), stage(&names, rules));
    let mut schedule = or_null(described::<schedule::Written>());
    schedule["properties"]["params"]["type"] = json!(["object", "null"]);
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Pipeline",
        "description": "A pipeline of `runner`: stages that depend on one another.",
        "type": "object",
        "required": ["version", "name", "stages"],
        "additionalProperties": false,
        "properties": {
            "version": { "description": "The version of the format.", "const": 1 },
            "name": {
                "description": "A short name, used in runs and reports.",
                "type": "string",
                "pattern": NAME,
            },
            "params": {
                "description": "Parameters, read as `${params.X}`, overridden by `--set X=VALUE`.",
                "type": ["object", "null"],
                "propertyNames": { "pattern": NAME },
            },
            "include": {
                "description": "Files whose parameters, profiles and stages are part of this one.",
                "type": ["string", "array"],
                "items": { "type": "string" },
            },
            "profiles": {
                "description": "Values set together by `--profile NAME`: parameters, or `STAGE.with.KEY`.",
                "type": ["object", "null"],
                "propertyNames": { "pattern": NAME },
                "additionalProperties": { "type": ["object", "null"] },
            },
            "schedule": schedule,
            "promote": or_null(described::<PromoteForm>()),
            "notify": {
                "description": "The messages that are sent when a run has ended. Not part of any key.",
                "type": ["array", "null"],
                "items": described::<notify::Entry>(),
            },
            "track": {
                "description": "The servers that follow runs. Not part of any key.",
                "type": ["array", "null"],
                "items": described::<track::Entry>(),
            },
            "stages": {
                "description": "The stages, by name, in any order.",
                "type": "object",
                "minProperties": 1,
                "propertyNames": { "pattern": NAME },
                "additionalProperties": { "$ref": "#/definitions/stage" },
            },
        },
        "definitions": definitions,
    })
}

const NAME: &str = "^[A-Za-z_][A-Za-z0-9_-]*$";
const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

fn stage(names: &[&str], rules: Vec<Value>) -> Value {
    let of_kind = [KEYS.common, &OF_KIND].concat();
    let of_command = [KEYS.common, KEYS.command].concat();
    let of_python = [KEYS.common, &KEYS.python].concat();
    let only = |keys: &[&str]| {
        let keys: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), json!(true))).collect();
        json!({ "properties": keys, "additionalProperties": false })
    };
    let types = typed_output::TYPES.map(PortType::name);
    let mut all = vec![
        json!({
            "if": { "required": ["uses"] },
            "then": {
                "if": { "properties": { "uses": { "const": USES } } },
                "then": { "required": ["call"], "allOf": [only(&of_python)] },
                "else": only(&of_kind),
            },
        }),
        json!({ "if": { "required": ["run"] }, "then": only(&of_command) }),
    ];
    all.extend(rules);
    let mut properties = json!({
            "uses": { "description": "The stage kind.", "type": "string", "enum": names },
            "with": { "description": "The configuration of the stage kind.", "type": ["object", "null"] },
            "run": { "description": "A command for the shell; reads `${needs.X}` and writes \
            `${outputs.X}`.", "type": "string" },
            "needs": {
                "description": "The artifacts that the stage reads, by input.",
                "type": ["object", "null"],
                "additionalProperties": { "anyOf": [
                    { "$ref": "#/definitions/need" },
                    { "type": "array", "minItems": 1, "items": { "$ref": "#/definitions/need" } },
                ] },
            },
            "matrix": { "$ref": "#/definitions/matrix" },
            "register": with_description(
                "The name under which the policy is registered at the end of a run, and an alias that points \
                to the newest.",
                described::<TextOr<Name, RegisterForm>>(),
            ),
            "outputs": {
                "description": "The files that the command writes, by output.",
                "type": ["object", "null"],
                "propertyNames": { "pattern": NAME },
                "additionalProperties": { "anyOf": [
                    { "description": "A file; of a `uses: python` stage, the type of a data \
                        set.", "type": "string" },
                    {
                        "description": "A data set: a file of Parquet or CSV, or a directory of them, \
                        checked against the type.",
                        "type": "object",
                        "required": ["path"],
                        "additionalProperties": false,
                        "properties": {
                            "path": { "type": "string" },
                            "type": { "type": "string", "enum": types },
                        },
                    },
                ] },
            },
            "env": {
                "description": "Variables of the command's environment: part of its key.",
                "type": ["object", "null"],
                "propertyNames": { "pattern": VARIABLE },
                "additionalProperties": { "type": ["string", "number", "boolean"] },
            },
            "secrets": {
                "description": "Environment variables of `runner` that the command inherits: not part of \
                its key.",
                "type": ["array", "null"],
                "items": { "type": "string", "pattern": VARIABLE },
            },
    });
    if let Value::Object(properties) = &mut properties {
        for more in [
            described::<Common>(),
            described::<run_stage::Settings>(),
            described::<python_stage::Settings>(),
        ] {
            properties.extend(more["properties"].as_object().cloned().unwrap_or_default());
        }
    }
    properties["resources"]["type"] = json!(["object", "null"]);
    properties["files"]["type"] = json!(["array", "null"]);
    properties["tools"]["type"] = json!(["array", "null"]);
    properties["tools"]["items"]["anyOf"][0]["description"] =
        "A program on PATH, or the path of an executable or of a virtual environment.".into();
    json!({
        "type": "object",
        "not": { "required": ["uses", "run"] },
        "properties": properties,
        "allOf": all,
    })
}

fn with_description(text: &str, mut schema: Value) -> Value {
    schema["description"] = text.into();
    schema
}

fn or_interpolation(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "$ref": "#/definitions/interpolation" }] })
}

/// The schema of a type that is read, with its documentation.
fn described<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft07();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    schema
}

/// Simplifies a derived schema: a value that may be left out cannot be null, and the values of an enum are a
/// list.
fn tidy(schema: &mut Value) {
    if let Value::Array(items) = schema {
        items.iter_mut().for_each(tidy);
    }
    let Value::Object(map) = schema else { return };
    map.retain(|key, value| match key.as_str() {
        "$schema" | "title" | "format" => !value.is_string(),
        "default" => !(value.is_null() || value.is_object() || value.is_array()),
        "additionalProperties" => *value != json!(true),
        _ => true,
    });
    if let Some(Value::String(text)) = map.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    map.values_mut().for_each(tidy);
    if let Some(Value::Object(items)) = map.get_mut("items") {
        items.remove("description");
    }
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            map.insert("type".to_owned(), only);
        }
    }
    let constants = map.get("oneOf").and_then(Value::as_array).and_then(|all| {
        let each = |one: &Value| one.get("const").map(|value| vec![value.clone()]);
        all.iter().map(each).collect::<Option<Vec<_>>>()
    });
    if let Some(constants) = constants {
        map.remove("oneOf");
        map.insert("enum".to_owned(), constants.concat().into());
    }
    if map.contains_key("enum") {
        map.remove("type");
    }
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        choices.retain(|choice| *choice != json!({ "type": "null" }));
        choices.iter_mut().filter_map(Value::as_object_mut).for_each(|choice| {
            choice.remove("description");
        });
        if let [Value::Object(only)] = choices.as_mut_slice() {
            let only = std::mem::take(only);
            map.remove("anyOf");
            only.into_iter().for_each(|(key, value)| {
                map.entry(key).or_insert(value);
            });
        }
    }
}

fn or_null(mut schema: Value) -> Value {
    schema["type"] = json!(["object", "null"]);
    schema
}

/// The schema of `matrix:`.
fn matrix() -> Value {
    let value = json!({ "type": ["number", "string", "boolean"] });
    let values = json!({ "type": "array", "minItems": 1, "uniqueItems": true, "items": value });
    let number = or_interpolation(json!({ "type": "number" }));
    let whole = or_interpolation(json!({ "type": "integer", "minimum": 0 }));
    let ends = json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": number });
    let draws = json!({
        "description": "Values drawn at random: an axis of `samples` values, or drawn with others where the \
        matrix has `samples`.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "uniform": ends, "log_uniform": ends, "integer": ends, "choice": values, "samples": whole,
                "seed": whole,
        },
        "oneOf": [
            { "required": ["uniform"] },
            { "required": ["log_uniform"] },
            { "required": ["integer"] },
            { "required": ["choice"] },
        ],
    });
    let samples = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["count"],
        "properties": { "count": whole, "seed": whole },
    });
    let exclude = json!({ "type": "object", "additionalProperties": { "anyOf": [value, values] } });
    json!({
        "description": "Axes of values; the stage is run at each point of their product.",
        "type": ["object", "null"],
        "propertyNames": { "pattern": NAME },
        "properties": {
            "points": {
                "description": "Axes that vary together, as a list of points.",
                "type": "array",
                "minItems": 1,
                "items": { "type": "object", "minProperties": 1, "additionalProperties": value },
            },
            "exclude": {
                "description": "Points to leave out: those that have one of the values at every axis named.",
                "anyOf": [exclude, { "type": "array", "items": exclude }],
            },
            "samples": { "description": "The number of points drawn for the axes without their own \
            `samples`.", "anyOf": [whole, samples] },
        },
        "additionalProperties": { "anyOf": [values, described::<Range>(), described::<Folds>(), draws,
            { "$ref": "#/definitions/interpolation" }] },
    })
}

/// The constraints of `uses: KIND` on the other keys.
fn rule(kind: &dyn AnyStage) -> Value {
    let ports = kind.ports();
    let mut needs = Map::new();
    for port in ports.inputs {
        let one = json!({ "$ref": "#/definitions/need" });
        let schema = if port.list {
            json!({
                "description": port.doc,
                "anyOf": [one, { "type": "array", "minItems": 1, "items": one }],
            })
        } else {
            json!({ "description": port.doc, "allOf": [one] })
        };
        needs.insert(port.name.to_owned(), schema);
    }
    let required: Vec<&str> = ports
        .inputs
        .iter()
        .filter(|port| !port.optional)
        .map(|port| port.name)
        .collect();
    let mut then = json!({
        "properties": {
            "uses": { "description": kind.about() },
            "with": { "anyOf": [{ "$ref": pointer(kind.name()) }, { "type": "null" }] },
            "needs": {
                "type": if required.is_empty() { json!(["object", "null"]) } else { json!("object") },
                "properties": needs,
                "additionalProperties": false,
                "required": required,
            },
        },
    });
    if !required.is_empty() {
        then["required"] = json!(["needs"]);
    }
    json!({
        "if": { "required": ["uses"], "properties": { "uses": { "const": kind.name() } } },
        "then": then,
    })
}

fn pointer(kind: &str) -> String {
    format!("#/definitions/{}", kind.replace('~', "~0").replace('/', "~1"))
}

/// The schema of a kind's configuration, as a definition: references rebased, and an interpolation allowed
/// for every value.
fn configuration(kind: &dyn AnyStage) -> Value {
    let mut schema = kind.schema();
    if let Value::Object(map) = &mut schema {
        map.remove("$schema");
        map.remove("title");
        map.insert("description".to_owned(), kind.about().into());
    }
    rebase(&mut schema, &pointer(kind.name()));
    loosen(&mut schema);
    schema
}

fn rebase(schema: &mut Value, base: &str) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(target) if key == "$ref" => {
                        if let Some(rest) = target.strip_prefix('#') {
                            *target = format!("{base}{rest}");
                        }
                    }
                    value => rebase(value, base),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, base)),
        _ => {}
    }
}

/// Allows an interpolation in place of any value.
fn loosen(schema: &mut Value) {
    let Value::Object(map) = schema else {
        return;
    };
    for (key, value) in map.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => fields.values_mut().for_each(allow),
            ("items" | "additionalProperties", value @ Value::Object(_)) => allow(value),
            ("items", Value::Array(items)) => items.iter_mut().for_each(allow),
            ("definitions", Value::Object(inner)) => inner.values_mut().for_each(loosen),
            ("anyOf" | "oneOf" | "allOf", Value::Array(items)) => items.iter_mut().for_each(loosen),
            _ => {}
        }
    }
}

fn allow(schema: &mut Value) {
    loosen(schema);
    let mut outer = Map::new();
    if let Value::Object(map) = schema {
        for key in ["description", "default"] {
            if let Some(value) = map.remove(key) {
                outer.insert(key.to_owned(), value);
            }
        }
    }
    let inner = schema.take();
    outer.insert(
        "anyOf".to_owned(),
        json!([inner, { "$ref": "#/definitions/interpolation" }]),
    );
    *schema = Value::Object(outer);
}
