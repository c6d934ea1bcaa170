//! Metrics that programs write: JSON lines, or an object of figures.

use super::file::WrittenFile;
use crate::error::StageError;
use crate::event::{EventSink, StageEvent};
use crate::port::PortType;
use crate::visible::visible_line;
use cache::{ArtifactBuilder, ArtifactDigest, Store, canonical_json};
use serde_json::{Map, Number, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The name of the entry in an artifact of metrics.
const ENTRY: &str = "metrics.jsonl";

/// Stores and reports the metrics in these files: lines of `{"name": …, "step": …, "value": …}`, sorted by
/// name and step, with the last value of each name as the summary.
///
/// # Errors
/// When a file is no JSON of either form, a value is no number, or a name has two values at one step; or the
/// store cannot be written.
pub(super) fn write(
    store: &Store,
    files: &[WrittenFile],
    events: &dyn EventSink,
) -> Result<ArtifactDigest, StageError> {
    let mut values: BTreeMap<(String, u64), (Option<f64>, String)> = BTreeMap::new();
    let mut not_finite: Vec<String> = Vec::new();
    for file in files {
        for point in points(file)? {
            let Point {
                name,
                step,
                value,
                place,
            } = point;
            let value = match value {
                Figure::Number(value) => Some(value),
                Figure::Null => None,
                Figure::NotFinite(text) => {
                    not_finite.push(format!("{place}: the value of `{}` is {text}", visible_line(&name)));
                    None
                }
            };
            if let Some((_, first)) = values.get(&(name.clone(), step)) {
                return Err(StageError::new(format!(
                    "{place}: a second value of `{}` at step {step}; the first is {first}",
                    visible_line(&name)
                ))
                .hint("a name has one value at a step"));
            }
            values.insert((name, step), (value, place));
        }
    }
    if let Some(first) = not_finite.first() {
        let more = match not_finite.len() {
            1 => String::new(),
            all => format!(", and so are {} more", all - 1),
        };
        events.emit(StageEvent::Warning {
            message: format!("{first}, and is read as null{more}"),
            hint: Some("a figure that is no number is left out of comparisons and plots".to_owned()),
        });
    }
    StageError::new("the output has no metric")
        .hint(FORM)
        .when(values.is_empty())?;
    let number = |value: Option<f64>| value.and_then(Number::from_f64).map_or(Value::Null, Value::Number);
    let mut summary = Map::new();
    let mut lines = String::new();
    let mut last: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for ((name, step), (value, _)) in &values {
        lines += &canonical_json(&json!({ "name": name, "step": step, "value": number(*value) }));
        lines.push('\n');
        summary.insert(name.clone(), number(*value));
        if let Some(value) = value {
            last.insert(name, (*step, *value));
        }
    }
    let mut builder = ArtifactBuilder::new(store, PortType::Metrics.name(), json!({ "summary": summary }));
    builder.bytes(ENTRY, lines.as_bytes())?;
    let digest = builder.finish()?;
    for (name, (step, value)) in last {
        events.emit(StageEvent::Metric {
            name: name.to_owned(),
            step,
            value,
        });
    }
    Ok(digest)
}

const FORM: &str = "write an object of figures, `{\"sharpe\": 1.2}`, or a line for each value, \
    `{\"name\": \"sharpe\", \"step\": 0, \"value\": 1.2}`";

/// The value of a metric at a step.
struct Point {
    name: String,
    step: u64,
    value: Figure,
    place: String,
}

/// A value as it is written.
enum Figure {
    Number(f64),
    /// `null`, which stands for a ratio without a denominator.
    Null,
    /// NaN or an infinity, which JSON does not have and Python writes.
    NotFinite(String),
}

/// The words for numbers that are not finite, as programs write them.
const NOT_FINITE: [&str; 14] = [
    "NaN",
    "-NaN",
    "nan",
    "-nan",
    "Infinity",
    "-Infinity",
    "+Infinity",
    "inf",
    "-inf",
    "+inf",
    "Inf",
    "-Inf",
    "+Inf",
    "NAN",
];

/// JSON in which such words stand as strings, if any stand as numbers.
fn with_words_as_strings(text: &str) -> Cow<'_, str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_');
    let mut out = String::new();
    let (mut done, mut at, mut inside) = (0, 0, false);
    while let Some(c) = text[at..].chars().next() {
        if inside && c == '\\' {
            at += 1;
            at += text[at..].chars().next().map_or(0, char::len_utf8);
            continue;
        }
        if c == '"' {
            inside = !inside;
        }
        if inside || !is_word(c) {
            at += c.len_utf8();
            continue;
        }
        let word = text[at..].split(|c: char| !is_word(c)).next().unwrap_or_default();
        if NOT_FINITE.contains(&word) {
            out.push_str(&text[done..at]);
            out.push_str(&format!("\"{word}\""));
            done = at + word.len();
        }
        at += word.len();
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// The values in a file, which is an object of figures, a list of objects with a name and a value, or such
/// objects line by line.
fn points(file: &WrittenFile) -> Result<Vec<Point>, StageError> {
    let shown = visible_line(&file.name).into_owned();
    let text = std::str::from_utf8(&file.bytes)
        .map_err(|_| StageError::new(format!("`{shown}` is not a text in UTF-8")).hint(FORM))?;
    let text = &*with_words_as_strings(text);
    let is_line = |object: &Map<String, Value>| object.get("name").is_some_and(Value::is_string);
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(figures)) if !is_line(&figures) => figures
            .into_iter()
            .map(|(name, value)| {
                let place = format!("`{shown}`, `{}`", visible_line(&name));
                Ok(Point {
                    value: number(&value, &place)?,
                    name: named(name, &place)?,
                    step: 0,
                    place,
                })
            })
            .collect(),
        Ok(Value::Array(list)) => {
            let points = list.into_iter().enumerate();
            points
                .map(|(i, value)| point(value, format!("`{shown}`, item {}", i + 1)))
                .collect()
        }
        Ok(value @ Value::Object(_)) => Ok(vec![point(value, format!("`{shown}`, row 1"))?]),
        _ => text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(i, line)| {
                let place = format!("`{shown}`, row {}", i + 1);
                let value = serde_json::from_str(line)
                    .map_err(|err| StageError::new(format!("{place} is not JSON: {err}")).hint(FORM))?;
                point(value, place)
            })
            .collect(),
    }
}

/// Reads the value from an object with a name and a value.
fn point(value: Value, place: String) -> Result<Point, StageError> {
    let wrong = |what: &str| StageError::new(format!("{place}: {what}")).hint(FORM);
    let Value::Object(mut object) = value else {
        return Err(wrong("is not an object"));
    };
    let Some(Value::String(name)) = object.remove("name") else {
        return Err(wrong("has no `name`"));
    };
    let step = match object.remove("step") {
        None | Some(Value::Null) => 0,
        Some(step) => step
            .as_u64()
            .ok_or_else(|| wrong(&format!("the step {step} is not a whole number from 0 on")))?,
    };
    let value = object.remove("value").ok_or_else(|| wrong("has no `value`"))?;
    if let Some(other) = object.keys().next() {
        return Err(wrong(&format!(
            "has `{}`, which metrics do not have",
            visible_line(other)
        )));
    }
    Ok(Point {
        value: number(&value, &place)?,
        name: named(name, &place)?,
        step,
        place,
    })
}

fn named(name: String, place: &str) -> Result<String, StageError> {
    let is_name = !name.trim().is_empty() && !name.chars().any(char::is_control);
    is_name.then_some(name).ok_or_else(|| {
        StageError::new(format!(
            "{place}: the name of a metric is empty or has control characters"
        ))
        .hint("give it a name of text")
    })
}

/// A value of a metric.
fn number(value: &Value, place: &str) -> Result<Figure, StageError> {
    match value {
        Value::Null => Ok(Figure::Null),
        Value::Number(number) => Ok(number.as_f64().map_or(Figure::Null, Figure::Number)),
        Value::String(text) if NOT_FINITE.contains(&text.as_str()) => Ok(Figure::NotFinite(text.clone())),
        other => {
            let shown: String = other.to_string().chars().take(40).collect();
            Err(
                StageError::new(format!("{place}: the value {} is not a number", visible_line(&shown)))
                    .hint(FORM),
            )
        }
    }
}
