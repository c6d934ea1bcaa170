//! The settings of a package's kind: their JSON Schema, and the check of a configuration against it.
//!
//! The schema is made a tree without references first, of bounded size. The keywords that are checked are
//! `type`, `enum`, `const`, `anyOf`, `oneOf`, `allOf`, `properties`, `required`, `additionalProperties`,
//! `items`, `prefixItems` and the bounds of numbers and lengths; the class of the settings checks the rest
//! when the stage runs.

use serde_json::{Map, Number, Value};
use stages_core::read::{grouped_number, unexpected};
use stages_core::{ConfigProblem, Mistake};
use std::sync::{Mutex, PoisonError};

/// The most values of a schema whose references are replaced.
const MOST: usize = 5_000;

/// The deepest nesting of a schema.
const DEEPEST: usize = 32;

/// The schema with its references replaced by what they refer to.
///
/// # Errors
/// A reference that is not found or that refers to itself, or a schema that is too large.
pub(super) fn inlined(schema: &Value) -> Result<Value, String> {
    let mut left = MOST;
    let tree = inline(schema, schema, 0, &mut left)?;
    match tree.get("type").and_then(Value::as_str) {
        Some("object") => Ok(tree),
        _ => Err("the schema of its settings is not that of a map".to_owned()),
    }
}

fn inline(value: &Value, root: &Value, depth: usize, left: &mut usize) -> Result<Value, String> {
    *left = left.checked_sub(1).filter(|_| depth <= DEEPEST).ok_or_else(|| {
        format!(
            "the schema of its settings refers to itself, or has more than {MOST} values or {DEEPEST} levels"
        )
    })?;
    let mut below = |value: &Value| inline(value, root, depth + 1, left);
    match value {
        Value::Array(items) => items.iter().map(&mut below).collect::<Result<_, _>>().map(Value::Array),
        Value::Object(map) => {
            let mut tree = Map::new();
            if let Some(target) = map.get("$ref") {
                let pointer = target.as_str().and_then(|target| target.strip_prefix('#'));
                let found = pointer.and_then(|pointer| root.pointer(pointer));
                let found = found
                    .ok_or_else(|| format!("the schema of its settings refers to {target}, not found"))?;
                if let Value::Object(found) = below(found)? {
                    tree = found;
                }
            }
            for (key, value) in map {
                match key.as_str() {
                    "$ref" | "$defs" | "definitions" | "$schema" => {}
                    "title" if value.is_string() => {}
                    "properties" => {
                        let Value::Object(fields) = value else {
                            return Err("`properties` in the schema of its settings is not a map".to_owned());
                        };
                        let mut inner = Map::new();
                        for (name, field) in fields {
                            inner.insert(super::description::plain(name), below(field)?);
                        }
                        tree.insert(key.clone(), Value::Object(inner));
                    }
                    "description" => {
                        let text = value.as_str().map(super::description::plain).unwrap_or_default();
                        tree.insert(key.clone(), text.into());
                    }
                    _ => _ = tree.insert(key.clone(), below(value)?),
                }
            }
            Ok(Value::Object(tree))
        }
        value => Ok(value.clone()),
    }
}

/// A configuration with the defaults of absent settings, checked against the schema.
///
/// # Errors
/// The first mistake.
pub(super) fn resolve(schema: &Value, with: &Value) -> Result<Value, ConfigProblem> {
    match with {
        Value::Null => check(schema, &Value::Object(Map::new()), ""),
        with => check(schema, with, ""),
    }
}

fn check(schema: &Value, value: &Value, path: &str) -> Result<Value, ConfigProblem> {
    if *schema == Value::Bool(false) {
        return Err(ConfigProblem::new(path, "no value is allowed here"));
    }
    let mut value = value.clone();
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        one_of(options, &value, path)?;
    }
    if let Some(only) = schema.get("const") {
        one_of(std::slice::from_ref(only), &value, path)?;
    }
    if let Some(types) = schema.get("type") {
        let types: Vec<&str> = match types {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            ty => ty.as_str().into_iter().collect(),
        };
        let fitting = types.iter().find_map(|ty| of_type(ty, &value));
        value = fitting.ok_or_else(|| mistyped(&value, &types, path))?;
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(key).and_then(Value::as_array) {
            value = any_of(choices, &value, path)?;
        }
    }
    for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        value = check(part, &value, path)?;
    }
    bounds(schema, &value, path)?;
    match &mut value {
        Value::Array(items) => {
            let lists = ["prefixItems", "items"].map(|key| schema.get(key));
            let rest = lists[1].filter(|items| items.is_object());
            let fixed = lists.iter().flatten().find_map(|items| items.as_array());
            for (i, item) in items.iter_mut().enumerate() {
                if let Some(schema) = fixed.and_then(|fixed| fixed.get(i)).or(rest) {
                    *item = check(schema, item, &format!("{path}[{i}]"))?;
                }
            }
        }
        Value::Object(map) => fields(schema, map, path)?,
        _ => {}
    }
    Ok(value)
}

/// Checks the entries of a map, and adds the defaults of those that are absent.
fn fields(schema: &Value, map: &mut Map<String, Value>, path: &str) -> Result<(), ConfigProblem> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    for (name, value) in map.iter_mut() {
        match (properties.and_then(|properties| properties.get(name)), others) {
            (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => {
                *value = check(schema, value, &below(name))?;
            }
            (None, Some(Value::Bool(true))) => {}
            // A map of which nothing is said takes any keys.
            (None, None) if properties.is_none() => {}
            (None, _) => {
                let known = properties.into_iter().flat_map(Map::keys).map(String::as_str);
                let mistake = Mistake::UnknownKey {
                    name: name.clone(),
                    known: kept(known.collect()),
                };
                return Err(mistaken(path, mistake, format!("unknown key `{name}`")));
            }
        }
    }
    for (name, field) in properties.into_iter().flatten() {
        if let Some(default) = field.get("default").filter(|_| !map.contains_key(name)) {
            map.insert(name.clone(), default.clone());
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !map.contains_key(name) {
            let missing = kept(vec![name]).first().copied().unwrap_or_default();
            return Err(mistaken(
                path,
                Mistake::MissingKey(missing),
                format!("missing `{name}`"),
            ));
        }
    }
    Ok(())
}

/// The value as one of a JSON type; `None` if it is of another.
fn of_type(ty: &str, value: &Value) -> Option<Value> {
    let number = || match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => grouped_number(text),
        _ => None,
    };
    match (ty, value) {
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("string", Value::String(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => Some(value.clone()),
        ("integer", _) => number().filter(|number| !number.is_f64()).map(Value::Number),
        // 2 and 2.0 are one setting, with one key.
        ("number", _) => number()?.as_f64().and_then(Number::from_f64).map(Value::Number),
        _ => None,
    }
}

/// The first choice that takes the value. A mistake inside the only choice of the value's type is reported.
fn any_of(choices: &[Value], value: &Value, path: &str) -> Result<Value, ConfigProblem> {
    let mut inside = None;
    let mut types = Vec::new();
    for choice in choices {
        match check(choice, value, path) {
            Ok(value) => return Ok(value),
            Err(problem) => {
                let ty = choice.get("type").and_then(Value::as_str);
                if problem.field != path || !matches!(problem.mistake, Mistake::Type { .. }) {
                    inside.get_or_insert(problem);
                }
                types.extend(ty);
            }
        }
    }
    Err(inside.unwrap_or_else(|| mistyped(value, &types, path)))
}

fn one_of(options: &[Value], value: &Value, path: &str) -> Result<(), ConfigProblem> {
    if options.contains(value) {
        return Ok(());
    }
    let texts: Option<Vec<&str>> = options.iter().map(Value::as_str).collect();
    match (texts, value.as_str()) {
        (Some(texts), Some(text)) => {
            let mistake = Mistake::UnknownValue {
                name: text.to_owned(),
                known: kept(texts),
            };
            Err(mistaken(path, mistake, format!("unknown value `{text}`")))
        }
        _ => {
            let all: Vec<String> = options.iter().take(16).map(Value::to_string).collect();
            Err(ConfigProblem::new(
                path,
                format!("{value} is none of {}", all.join(", ")),
            ))
        }
    }
}

/// The error of a value of another type, in the words of `stages_core::read`.
fn mistyped(value: &Value, types: &[&str], path: &str) -> ConfigProblem {
    let words = types
        .iter()
        .filter(|ty| **ty != "null" || types.len() == 1)
        .map(|ty| match *ty {
            "integer" => "i64",
            "number" => "f64",
            "boolean" => "a boolean",
            "string" => "a string",
            "array" => "a sequence",
            "object" => "a map of keys",
            _ => "null",
        });
    let words: Vec<&str> = words.collect();
    let wanted = match words[..] {
        [one] => one.to_owned(),
        [] => "one of the allowed values".to_owned(),
        // The words of one type stand alone, and are replaced by plain ones.
        _ => words
            .join(" or ")
            .replace("i64", "an integer")
            .replace("f64", "a number"),
    };
    let found = unexpected(value).to_string();
    let message = format!("invalid type: {found}, expected {wanted}");
    mistaken(
        path,
        Mistake::Type {
            found: Ok(found),
            wanted,
        },
        message,
    )
}

/// Checks the bounds of a number, and the length of a list or a text.
fn bounds(schema: &Value, value: &Value, path: &str) -> Result<(), ConfigProblem> {
    type Holds = fn(f64, f64) -> bool;
    const NUMBER: [(&str, Holds, &str); 4] = [
        ("minimum", |value, bound| value >= bound, "at least"),
        ("exclusiveMinimum", |value, bound| value > bound, "more than"),
        ("maximum", |value, bound| value <= bound, "at most"),
        ("exclusiveMaximum", |value, bound| value < bound, "less than"),
    ];
    const LENGTH: [(&str, Holds, &str); 2] = [
        ("min", |value, bound| value >= bound, "at least"),
        ("max", |value, bound| value <= bound, "at most"),
    ];
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(number) = value.as_f64() {
        for (key, holds, words) in NUMBER {
            if let Some(bound) = bound(key).filter(|bound| !holds(number, *bound)) {
                return Err(ConfigProblem::new(path, format!("must be {words} {bound}")));
            }
        }
    }
    let length = match value {
        Value::Array(items) => Some((items.len(), "Items", "items")),
        Value::String(text) => Some((text.chars().count(), "Length", "characters")),
        _ => None,
    };
    if let Some((length, key, what)) = length {
        for (side, holds, words) in LENGTH {
            if let Some(bound) = bound(&format!("{side}{key}")).filter(|bound| !holds(length as f64, *bound))
            {
                return Err(ConfigProblem::new(path, format!("must have {words} {bound} {what}")));
            }
        }
    }
    Ok(())
}

fn mistaken(path: &str, mistake: Mistake, message: String) -> ConfigProblem {
    ConfigProblem {
        mistake,
        ..ConfigProblem::new(path, message)
    }
}

/// The names as a mistake holds them: for as long as the program lives, each list once.
fn kept(names: Vec<&str>) -> &'static [&'static str] {
    static KEPT: Mutex<Vec<&[&str]>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.iter().find(|known| **known == names) {
        return known;
    }
    let own = names
        .into_iter()
        .map(|name| &*Box::leak(name.to_owned().into_boxed_str()));
    let own: &'static [&'static str] = Box::leak(own.collect());
    kept.push(own);
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        inlined(&json!({
            "type": "object",
            "title": "Surface",
            "$defs": { "Band": { "type": "object", "required": ["low"], "properties": {
                "low": { "type": "number" }, "high": { "type": "number", "default": 1 } } } },
            "properties": {
                "window": {
                    "type": "integer", "minimum": 1, "default": 20, "description": "in\u{1b}[31m days",
                },
                "model": { "enum": ["svi", "sabr"], "default": "svi" },
                "band": { "anyOf": [{ "$ref": "#/$defs/Band" }, { "type": "null" }], "default": null },
                "deltas": { "type": "array", "items": { "type": "number" }, "maxItems": 3, "default": [0.5] },
                "title": { "type": "string", "default": "" },
            },
        }))
        .unwrap()
    }

    #[test]
    fn defaults_are_filled_in_and_numbers_have_one_form() {
        let with = json!({ "window": "1_000", "band": { "low": 2 }, "deltas": [1, 0.25] });
        let expected = json!({
            "window": 1000, "model": "svi", "band": { "low": 2.0, "high": 1 }, "deltas": [1.0, 0.25],
            "title": "",
        });
        assert_eq!(resolve(&schema(), &with).unwrap(), expected);
        assert_eq!(resolve(&schema(), &Value::Null).unwrap()["window"], 20);
        assert_eq!(schema()["properties"]["window"]["description"], "in [31m days");
    }

    #[test]
    fn mistakes_have_a_place_and_a_kind() {
        let mistake = |with: Value| {
            let problem = resolve(&schema(), &with).unwrap_err();
            format!("{} | {:?} | {}", problem.field, problem.mistake, problem.message)
        };
        let found = [
            json!({ "windw": 3 }),
            json!({ "window": "x" }),
            json!({ "window": 2.5 }),
            json!({ "window": 0 }),
            json!({ "model": "svj" }),
            json!({ "band": { "high": 2 } }),
            json!({ "band": 3 }),
            json!({ "deltas": [1, "x"] }),
            json!({ "deltas": [1, 2, 3, 4] }),
            json!([1]),
        ]
        .map(mistake)
        .join("\n");
        insta::assert_snapshot!(found);
    }

    #[test]
    fn a_schema_without_end_is_refused() {
        let refused = |schema: Value| inlined(&schema).unwrap_err();
        let own = json!({ "type": "object", "properties": { "a": { "$ref": "#" } } });
        assert!(refused(own).contains("refers to itself"));
        let empty = json!({ "type": "object", "properties": { "a": { "$ref": "#/properties/a" } } });
        assert!(refused(empty).contains("refers to itself"));
        // Each level refers to the next one twice.
        let mut definitions = Map::new();
        for i in 0..25 {
            let next = json!({ "$ref": format!("#/$defs/{}", i + 1) });
            definitions.insert(i.to_string(), json!({ "anyOf": [next, next] }));
        }
        definitions.insert("25".to_owned(), json!({ "type": "null" }));
        let wide =
            json!({ "type": "object", "$defs": definitions, "properties": { "a": { "$ref": "#/$defs/0" } } });
        assert!(refused(wide).contains("more than 5000 values"));
        assert!(refused(json!({ "type": "object", "$ref": "http://a/b" })).contains("not found"));
        assert!(refused(json!({ "type": "array" })).contains("not that of a map"));
    }
}
