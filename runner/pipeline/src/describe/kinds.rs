//! Descriptions of stage kinds for people: ports and configuration, with defaults and units.

use crate::stage::{KEYS, OF_KIND, USES};
use serde_json::{Map, Value, json};
use stages_core::{AnyStage, InputPort};
use std::fmt::Write as _;

/// The maximum length of a line of text, in characters.
const WIDTH: usize = 100;

/// The kinds by name.
pub(super) fn sorted<'k>(kinds: &[&'k dyn AnyStage]) -> Vec<&'k dyn AnyStage> {
    let mut sorted = kinds.to_vec();
    sorted.sort_by_key(|kind| kind.name());
    sorted
}

/// Describes each kind in one line.
pub fn describe_kinds(kinds: &[&dyn AnyStage]) -> String {
    let sorted = sorted(kinds);
    let width = sorted.iter().map(|kind| kind.name().len()).max().unwrap_or(0);
    let mut out = String::new();
    for kind in sorted {
        let package = kind
            .package()
            .map(|package| format!(" ({} {})", package.name, package.version));
        let package = package.unwrap_or_default();
        let _ = writeln!(out, "{:width$}  {}{package}", kind.name(), kind.about());
    }
    out
}

/// The kinds as JSON: name, version and description.
pub fn kinds_json(kinds: &[&dyn AnyStage]) -> Value {
    let one = |kind: &dyn AnyStage| {
        let of = json!({ "kind": kind.name(), "version": kind.version(), "about": kind.about() });
        with_package(of, kind)
    };
    sorted(kinds).into_iter().map(one).collect()
}

/// The JSON of a kind with the package that brings it.
fn with_package(mut of: Value, kind: &dyn AnyStage) -> Value {
    if let Some(package) = kind.package() {
        of["package"] = json!({ "name": package.name, "version": package.version });
    }
    of
}

/// A kind as JSON: its ports, its defaults and the JSON Schema of its configuration.
pub fn kind_json(kind: &dyn AnyStage) -> Value {
    let ports = kind.ports();
    let inputs: Vec<Value> = ports
        .inputs
        .iter()
        .map(|port| {
            json!({
                "name": port.name, "type": port.ty.name(), "optional": port.optional, "list": port.list,
                    "named": port.named, "about": port.doc,
            })
        })
        .collect();
    let outputs: Vec<Value> = ports
        .outputs
        .iter()
        .map(|port| json!({ "name": port.name, "type": port.ty.name(), "about": port.doc }))
        .collect();
    let of = json!({
        "kind": kind.name(),
        "version": kind.version(),
        "about": kind.about(),
        "inputs": inputs,
        "outputs": outputs,
        "defaults": kind.resolve(Value::Null).unwrap_or_default(),
        "schema": kind.schema(),
    });
    with_package(of, kind)
}

/// Describes a kind's ports and configuration.
pub fn describe_kind(kind: &dyn AnyStage) -> String {
    let package = kind
        .package()
        .map(|of| format!(", of the package {} {}", of.name, of.version));
    let package = package.unwrap_or_default();
    let mut out = format!("{}, version {}{package}\n", kind.name(), kind.version());
    wrap(&mut out, kind.about(), 0);
    let ports = kind.ports();
    let inputs: Vec<[String; 3]> = ports
        .inputs
        .iter()
        .map(|port| [port.name.to_owned(), taken(port), port.doc.to_owned()])
        .collect();
    let outputs: Vec<[String; 3]> = ports
        .outputs
        .iter()
        .map(|port| [port.name.to_owned(), port.ty.name().to_owned(), port.doc.to_owned()])
        .collect();
    table(&mut out, "inputs (`needs:`)", &inputs);
    table(&mut out, "outputs", &outputs);
    let fields = settings(kind);
    out.push_str("\nconfiguration (`with:`)\n");
    if fields.is_empty() {
        out.push_str("  none\n");
    }
    for field in fields {
        let default = field.default.map(|value| format!("  [{value}]")).unwrap_or_default();
        let _ = writeln!(out, "  {}: {}{default}", field.path, field.ty);
        wrap(&mut out, &field.doc, 6);
        for (value, doc) in &field.values {
            wrap(&mut out, &format!("{value}: {doc}"), 8);
        }
    }
    if kind.package().is_some() {
        let own = |key: &&&str| !OF_KIND.contains(key);
        let keys: Vec<&str> = KEYS.package.iter().filter(own).copied().collect();
        let text = format!("other keys, as in `runner stages python`: {}", keys.join(", "));
        out.push('\n');
        wrap(&mut out, &text, 0);
    }
    out
}

/// The settings of a kind (`with:`), in the order of their names; those of a map after it.
pub(super) fn settings(kind: &dyn AnyStage) -> Vec<Field> {
    let defaults = kind.resolve(Value::Null).unwrap_or_default();
    fields(&kind.schema(), &defaults)
}

/// The fields of the map that a schema describes.
pub(super) fn fields(schema: &Value, defaults: &Value) -> Vec<Field> {
    let mut fields = Vec::new();
    walk(schema, schema, defaults, "", 0, &mut fields, &mut Vec::new());
    fields
}

pub(super) fn taken(port: &InputPort) -> String {
    let list = match (port.named, port.list) {
        (true, _) => "lists under names of your own, of ",
        (false, true) => "list of ",
        (false, false) => "",
    };
    let optional = if port.optional { ", optional" } else { "" };
    format!("{list}{}{optional}", port.ty.name())
}

fn table(out: &mut String, title: &str, rows: &[[String; 3]]) {
    let _ = writeln!(out, "\n{title}");
    if rows.is_empty() {
        out.push_str("  none\n");
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    for [name, ty, doc] in rows {
        let line = format!("  {name:first$}  {ty:second$}  {doc}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Wraps a text to [`WIDTH`], keeping paragraphs.
fn wrap(out: &mut String, text: &str, indent: usize) {
    for paragraph in text.split("\n\n") {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > WIDTH {
                let _ = writeln!(out, "{:indent$}{line}", "");
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            let _ = writeln!(out, "{:indent$}{line}", "");
        }
    }
}

/// A setting.
pub(super) struct Field {
    /// The keys that lead to it, separated by dots.
    pub path: String,
    /// The type of its values.
    pub ty: String,
    /// The default, as in a pipeline file; `None` where there is none.
    pub default: Option<String>,
    /// The documentation.
    pub doc: String,
    /// The values of an enumeration, and what each means.
    pub values: Vec<(String, String)>,
}

/// The maximum depth of maps shown.
const DEEPEST: usize = 6;

/// Resolves a reference, keeping its sibling keywords.
fn resolve<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..DEEPEST {
        let target = schema
            .get("$ref")
            .or_else(|| match schema.get("allOf").and_then(Value::as_array) {
                Some(all) if all.len() == 1 => all[0].get("$ref"),
                _ => None,
            });
        let Some(found) = target
            .and_then(Value::as_str)
            .and_then(|target| root.pointer(target.strip_prefix('#')?))
        else {
            break;
        };
        schema = found;
    }
    schema
}

/// Finds the map among the forms that a field may have (say, a name or a map of settings), and the part of a
/// path that leads to it: empty, or a placeholder for the key of a map.
fn map_of<'a>(field: &'a Value, root: &'a Value) -> Option<(&'a Value, &'static str)> {
    let target = resolve(field, root);
    let has_fields = |map: &Value| {
        map.get("properties")
            .and_then(Value::as_object)
            .is_some_and(|of| of.len() > 1)
    };
    for (key, placeholder) in [("additionalProperties", "NAME."), ("items", "")] {
        if let Some(values @ Value::Object(_)) = target.get(key) {
            let own = Some(resolve(values, root)).filter(|map| has_fields(map));
            let map = own.or_else(|| Some(map_of(values, root)?.0))?;
            return Some((map, placeholder));
        }
    }
    let choices = target.get("anyOf").and_then(Value::as_array)?;
    choices
        .iter()
        .map(|choice| resolve(choice, root))
        .find(|choice| {
            let count = |key: &str| match choice.get(key) {
                Some(Value::Object(map)) => map.len(),
                Some(Value::Array(list)) => list.len(),
                _ => 0,
            };
            // A map with a single, required field is shown in the type's name.
            count("properties") > 0 && (count("properties"), count("required")) != (1, 1)
        })
        .map(|map| (map, ""))
}

/// Collects the fields of a map; the settings of a map that several fields may have are listed once.
fn walk<'a>(
    schema: &'a Value,
    root: &'a Value,
    defaults: &Value,
    prefix: &str,
    depth: usize,
    fields: &mut Vec<Field>,
    seen: &mut Vec<&'a Value>,
) {
    let properties = resolve(schema, root).get("properties").and_then(Value::as_object);
    for (name, field) in properties.into_iter().flatten() {
        let path = format!("{prefix}{name}");
        let target = resolve(field, root);
        let doc = [field, target]
            .iter()
            .find_map(|schema| schema.get("description").and_then(Value::as_str))
            .unwrap_or_default();
        let default = defaults.get(name).or_else(|| field.get("default"));
        let nested = target.get("properties").is_some() && depth < DEEPEST;
        let shown = default.filter(|value| !nested || value.is_null()).map(flow);
        fields.push(Field {
            ty: type_name(field, root, 0),
            default: shown,
            doc: doc.to_owned(),
            values: variants(field, root, 0),
            path: path.clone(),
        });
        if nested {
            let inner = default.cloned().unwrap_or_default();
            walk(target, root, &inner, &format!("{path}."), depth + 1, fields, seen);
        } else if let Some((map, key)) = map_of(field, root)
            && depth < DEEPEST
            && !seen.iter().any(|other| std::ptr::eq(*other, map))
        {
            seen.push(map);
            let prefix = format!("{path}.{key}");
            walk(map, root, &Value::Null, &prefix, depth + 1, fields, seen);
        }
    }
}

/// The documented values of an enumeration, which a list or one of several forms may be made of.
fn variants(schema: &Value, root: &Value, depth: usize) -> Vec<(String, String)> {
    let schema = resolve(schema, root);
    let list = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    if depth > DEEPEST {
        return Vec::new();
    }
    let of_choice = |choice| {
        let doc = resolve(choice, root).get("description").and_then(Value::as_str)?;
        Some((
            type_name(choice, root, 1),
            doc.split_whitespace().collect::<Vec<_>>().join(" "),
        ))
    };
    let mut found: Vec<(String, String)> = list("oneOf").filter_map(of_choice).collect();
    found.extend(list("anyOf").flat_map(|choice| variants(choice, root, depth + 1)));
    found.extend(
        schema
            .get("items")
            .into_iter()
            .flat_map(|item| variants(item, root, depth + 1)),
    );
    found
}

/// Formats a value as in a pipeline file.
fn flow(value: &Value) -> String {
    match value {
        Value::Null => "not set".to_owned(),
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let parts: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key}: {}", flow(value)))
                .collect();
            format!("{{ {} }}", parts.join(", "))
        }
        other => other.to_string(),
    }
}

fn type_name(schema: &Value, root: &Value, depth: usize) -> String {
    let schema = resolve(schema, root);
    if depth > DEEPEST {
        return "…".to_owned();
    }
    if let Some(value) = schema.get("const") {
        return flow(value);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(flow).collect::<Vec<_>>().join(" | ");
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(choices) = schema.get(key).and_then(Value::as_array) {
            let mut names: Vec<String> = Vec::new();
            for choice in choices {
                let name = type_name(choice, root, depth + 1);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            return names.join(" | ");
        }
    }
    let one = |ty: &str| match ty {
        "boolean" => "true | false".to_owned(),
        "array" => match schema.get("items") {
            Some(Value::Array(items)) => {
                let items: Vec<String> = items.iter().map(|item| type_name(item, root, depth + 1)).collect();
                format!("[{}]", items.join(", "))
            }
            Some(item) => {
                let item = type_name(item, root, depth + 1);
                match item.contains(" | ") {
                    true => format!("list of ({item})"),
                    false => format!("list of {item}"),
                }
            }
            None => "list".to_owned(),
        },
        "object" => {
            let empty = Map::new();
            let fields = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
            // The key of an enum's variant identifies it; a map of settings is listed below.
            let required = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len);
            if let (Some((name, field)), 1, 1, 1..) = (fields.iter().next(), fields.len(), required, depth) {
                format!("{{ {name}: {} }}", type_name(field, root, depth + 1))
            } else if let Some(values @ Value::Object(_)) = schema.get("additionalProperties") {
                format!("map to {}", type_name(values, root, depth + 1))
            } else {
                "map".to_owned()
            }
        }
        other => other.to_owned(),
    };
    match schema.get("type") {
        Some(Value::String(ty)) => one(ty),
        Some(Value::Array(types)) => {
            let names: Vec<String> = types.iter().filter_map(Value::as_str).map(one).collect();
            names.join(" | ")
        }
        _ => "any value".to_owned(),
    }
}

/// The description of `uses: python`, in one line.
const ABOUT: &str = "a function of your own Python module, from tables and settings to tables";

/// The description of `uses: python` as text: its keys, which differ from those of a stage kind.
pub fn describe_python() -> &'static str {
    include_str!("../stage/python_stage.txt")
}

/// The description of `uses: python` as JSON.
pub fn python_json() -> Value {
    json!({ "kind": USES, "about": ABOUT, "keys": KEYS.python })
}
