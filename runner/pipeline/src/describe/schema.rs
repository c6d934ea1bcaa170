//! The JSON Schema (draft 7) of pipeline files, for editors.

use crate::Register;
use crate::Search;
use crate::file::registration::PromoteForm;
use crate::file::{notify, track};
use crate::matrix::{Folds, Range};
use crate::schedule::Schedule;
use crate::stage::{Collect, Common, KEYS, OF_KIND, OfPipeline, OfPolicy, USES, python_stage, run_stage};
use crate::text::{Name, TextOr};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use stages_core::{AnyStage, PortType, typed_output};

/// The part of the schema that is not derived from types. `<NAME>` stands for the derived part with that
/// name.
const SKELETON: &str = include_str!("schema.json");

/// The schema of pipeline files with these stage kinds.
pub fn schema(kinds: &[&dyn AnyStage]) -> Value {
    let mut skeleton: Value = serde_json::from_str(SKELETON).unwrap_or_default();
    let (mut schema, mut parts) = (skeleton["schema"].take(), skeleton["parts"].take());
    let only = |own: &[&str]| {
        let keys = [KEYS.common, own].concat().into_iter();
        let keys: Map<String, Value> = keys.map(|key| (key.to_owned(), json!(true))).collect();
        json!({ "properties": keys, "additionalProperties": false })
    };
    let or_null = |mut schema: Value| {
        schema["type"] = json!(["object", "null"]);
        schema
    };
    parts["kinds"] = kinds.iter().map(|kind| kind.name()).chain([USES]).collect();
    parts["types"] = json!(typed_output::TYPES.map(PortType::name));
    parts["only_of_kind"] = only(&OF_KIND);
    parts["only_of_command"] = only(KEYS.command);
    parts["only_of_python"] = only(&KEYS.python);
    let of_packages = kinds.iter().filter(|kind| kind.package().is_some());
    let of_packages: Vec<&str> = of_packages.map(|kind| kind.name()).collect();
    if !of_packages.is_empty() {
        parts["only_of_kind"] = json!({
            "if": { "properties": { "uses": { "enum": of_packages } } },
            "then": only(&KEYS.package),
            "else": parts["only_of_kind"],
        });
    }
    parts["collect"] = described::<Collect>();
    parts["reference"] = parts["collect"]["properties"]["collect"].clone();
    parts["earlier"] = described::<OfPipeline>();
    parts["policy"] = described::<OfPolicy>();
    parts["range"] = described::<Range>();
    parts["folds"] = described::<Folds>();
    parts["schedule"] = or_null(described::<Schedule>());
    parts["schedule"]["properties"]["params"]["type"] = json!(["object", "null"]);
    parts["promote"] = or_null(described::<PromoteForm>());
    parts["search"] = or_null(described::<Search>());
    parts["notify"] = described::<notify::Entry>();
    parts["track"] = described::<track::Entry>();
    parts["register"] = described::<TextOr<Name, Register>>();
    parts["register"]["description"] = "The name under which the policy is registered at the end of a run, \
        and an alias that points to the newest."
        .into();
    replace(&mut schema, &parts);
    let stage = &mut schema["definitions"]["stage"];
    for more in [
        described::<Common>(),
        described::<run_stage::Settings>(),
        described::<python_stage::Settings>(),
    ] {
        for (key, value) in more["properties"].as_object().into_iter().flatten() {
            stage["properties"][key] = value.clone();
        }
    }
    for (key, ty) in [("resources", "object"), ("files", "array"), ("tools", "array")] {
        stage["properties"][key]["type"] = json!([ty, "null"]);
    }
    stage["properties"]["tools"]["items"]["anyOf"][0]["description"] =
        "A program on PATH, or the path of an executable or of a virtual environment.".into();
    if let Some(rules) = stage["allOf"].as_array_mut() {
        rules.extend(kinds.iter().map(|kind| rule(*kind)));
    }
    for kind in kinds {
        schema["definitions"][kind.name()] = configuration(*kind);
    }
    schema
}

/// Replaces each `<NAME>` by the part with that name.
fn replace(schema: &mut Value, parts: &Value) {
    match schema {
        Value::String(text) => {
            let name = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
            if let Some(part) = name.and_then(|name| parts.get(name)) {
                *schema = part.clone();
                replace(schema, parts);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, parts)),
        Value::Object(map) => map.values_mut().for_each(|value| replace(value, parts)),
        _ => {}
    }
}

/// The schema of a type that is read from the file, with its documentation.
fn described<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft07();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    schema
}

/// Simplifies a derived schema: an optional value cannot be null, and the values of an enum are a list.
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
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if map.contains_key("enum") || map.contains_key("const") {
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

/// The constraints of `uses: KIND` on the other keys.
fn rule(kind: &dyn AnyStage) -> Value {
    let ports = kind.ports();
    let mut needs = Map::new();
    let mut named = json!(false);
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
        match port.named {
            true => named = schema,
            false => _ = needs.insert(port.name.to_owned(), schema),
        }
    }
    let required: Vec<&str> = ports
        .inputs
        .iter()
        .filter(|port| !port.optional && !port.named)
        .map(|port| port.name)
        .collect();
    let any = !required.is_empty() || ports.inputs.iter().any(|port| port.named && !port.optional);
    let mut then = json!({
        "properties": {
            "uses": { "description": kind.about() },
            "with": { "anyOf": [{ "$ref": pointer(kind.name()) }, { "type": "null" }] },
            "needs": {
                "type": if any { json!("object") } else { json!(["object", "null"]) },
                "properties": needs,
                "additionalProperties": named,
                "required": required,
            },
        },
    });
    if any {
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

/// The schema of a kind's configuration as a definition: references are rebased, and every value may be an
/// interpolation.
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
