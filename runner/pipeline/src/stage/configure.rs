//! Configurations: converts `with:` to the stage kind's resolved configuration, and maps its errors back to
//! positions in the file.

use crate::text::problems::Problems;
use crate::text::source::Spot;
use crate::text::suggest::{list, nearest};
use crate::text::tree::{Tree, Value, follow, steps};
use serde_json::Value as Json;
use stages_core::{AnyStage, ConfigProblem, Mistake};

/// Reports a configuration error of a stage kind, at the position of the field.
pub(crate) fn report(
    kind: &dyn AnyStage,
    stage: &str,
    with: &Tree,
    uses: Spot,
    problem: &ConfigProblem,
    problems: &mut Problems,
) {
    let path = steps(&problem.field);
    let found = follow(with, &path);
    let advice = format!("see `runner stages {}` for its configuration", kind.name());
    let field = if problem.field.is_empty() {
        format!("`{stage}` ({})", kind.name())
    } else {
        format!("`{}` of `{stage}`", problem.field)
    };
    match &problem.mistake {
        Mistake::UnknownKey { name, known } => {
            let key = found.value.entry(name).map(|(key, _)| key);
            let hint = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => format!("`{}` takes no configuration here", kind.name()),
                None => format!("the keys are {}", list(known.iter().copied())),
            };
            let message = format!(
                "unknown key `{name}` in the configuration of `{stage}` ({})",
                kind.name()
            );
            problems.add(key.map_or(found.value.spot, |key| key.spot), message, hint);
            return;
        }
        Mistake::MissingKey(name) => {
            let spot = found.key.map_or(uses, |key| key.spot);
            let message = format!("the configuration of `{stage}` ({}) lacks `{name}`", kind.name());
            problems.add(spot, message, format!("add `{name}: …`; {advice}"));
            return;
        }
        _ => {}
    }
    let spot = match (path.is_empty(), found.complete, found.key) {
        (true, ..) => uses,
        (_, true, _) => found.value.spot,
        (_, false, Some(key)) => key.spot,
        (_, false, None) => uses,
    };
    let (message, hint) = match &problem.mistake {
        Mistake::UnknownValue { name, known } => {
            (format!("unknown value `{name}`"), Some(one_of(name, known)))
        }
        Mistake::Type { found: given, wanted } => {
            let given = match given {
                Ok(_) if found.complete => found.value.describe(),
                Ok(given) => given.replace("sequence", "a list").replace('`', ""),
                Err(items) => format!("{items} items"),
            };
            let hint = if found.complete {
                type_hint(wanted, found.value)
            } else {
                None
            };
            (format!("expected {}, found {given}", plain(wanted)), hint)
        }
        _ => (problem.message.clone(), None),
    };
    let note = found.note.map(|note| format!(" ({note})")).unwrap_or_default();
    let hint = problem.hint.clone().or(hint).unwrap_or(advice);
    problems.add(spot, format!("{field}: {message}{note}"), hint);
}

/// A hint for a text that is none of the known values.
fn one_of(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the allowed values are {}", list(known.iter().copied())),
    }
}

/// Converts Rust's type names to plain words.
pub(crate) fn plain(wanted: &str) -> String {
    match wanted {
        "f32" | "f64" | "a JSON number" => "a number".to_owned(),
        "u8" => "an integer from 0 to 255".to_owned(),
        "u16" => "an integer from 0 to 65535".to_owned(),
        "u32" => "an integer from 0 to 4294967295".to_owned(),
        "u64" | "usize" => "a non-negative integer".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a string" | "a borrowed string" | "string or map" => "a string".to_owned(),
        "a sequence" => "a list".to_owned(),
        other if other.starts_with("a nonzero ") => "a non-zero integer".to_owned(),
        other if other.starts_with("struct ") => "a map of settings".to_owned(),
        other if other.starts_with("enum ") => "one of the allowed values".to_owned(),
        other if other.starts_with("an array of length ") || other.starts_with("a tuple of size ") => {
            format!("a list of {}", other.rsplit(' ').next().unwrap_or_default())
        }
        other => other.to_owned(),
    }
}

/// A hint for a value of a wrong type.
fn type_hint(wanted: &str, found: &Tree) -> Option<String> {
    let whole = wanted.starts_with(['u', 'i']) && wanted.len() <= 5;
    let number = whole || wanted.starts_with('f');
    Some(match &found.value {
        Value::Scalar(Json::Number(value)) => match value.as_f64() {
            Some(float) if whole && value.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                format!("write {float:.0}")
            }
            Some(float) if whole && float < 0.0 => "give 0 or more".to_owned(),
            _ if whole => "write an integer".to_owned(),
            _ if wanted.contains("string") => format!("put it in quotes: `\"{value}\"`"),
            _ if wanted.contains("sequence") || wanted.contains("array") => {
                format!("write a list: `[{value}]`")
            }
            _ => return None,
        },
        Value::Scalar(Json::String(text)) => match text.to_lowercase().as_str() {
            "yes" | "on" | "y" if wanted.contains("boolean") => "write `true`".to_owned(),
            "no" | "off" | "n" if wanted.contains("boolean") => "write `false`".to_owned(),
            text if number && text.replace('_', "").parse::<f64>().is_ok() => {
                format!("write {} without quotes", text.replace('_', ""))
            }
            _ if number => "write a number, such as 10 or 3e-4".to_owned(),
            text if wanted.contains("sequence") => format!("write a list: `[{text}]`"),
            _ => return None,
        },
        Value::Scalar(Json::Null) => "give a value, or remove the key for its default".to_owned(),
        Value::Scalar(Json::Bool(value)) if wanted.contains("string") => {
            format!("put it in quotes: `\"{value}\"`")
        }
        _ => return None,
    })
}
