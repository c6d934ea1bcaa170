//! Configurations: `with:` to the stage kind's resolved configuration, and its errors back to positions in
//! the file.

use super::problems::Problems;
use super::source::Spot;
use super::suggest::{list, nearest};
use super::tree::{Step, Tree, Value, follow, steps};
use serde_json::Value as Json;
use stages_core::{AnyStage, ConfigProblem};

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
    let mut explained = explain(&problem.message, &found.complete.then(|| found.value.describe()));
    if let Explained::UnknownKey { name, known } = &explained {
        // The path may end with the key or before it.
        let key = match path.last() {
            Some(Step::Key(last)) if last == name => found.key.filter(|key| key.name == *name),
            _ => found.value.entry(name).map(|(key, _)| key),
        };
        let hint = match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => format!("`{}` takes no configuration here", kind.name()),
            None => format!("the keys are {}", list(known.iter().map(String::as_str))),
        };
        let spot = key.map_or(found.value.spot, |key| key.spot);
        problems.add(
            spot,
            format!(
                "unknown key `{name}` in the configuration of `{stage}` ({})",
                kind.name()
            ),
            problem.hint.clone().unwrap_or(hint),
        );
        return;
    }
    if let Explained::MissingKey { name } = &explained {
        let spot = found.key.map_or(uses, |key| key.spot);
        problems.add(
            spot,
            format!("the configuration of `{stage}` ({}) lacks `{name}`", kind.name()),
            problem
                .hint
                .clone()
                .unwrap_or_else(|| format!("add `{name}: …`; {advice}")),
        );
        return;
    }
    let spot = match (path.is_empty(), found.complete, found.key) {
        (true, ..) => uses,
        (_, true, _) => found.value.spot,
        (_, false, Some(key)) => key.spot,
        (_, false, None) => uses,
    };
    if let Explained::Other { hint, .. } = &mut explained
        && hint.is_none()
        && found.complete
    {
        *hint = type_hint(&problem.message, found.value);
    }
    let Explained::Other { message, hint } = explained else {
        return;
    };
    let note = found.note.map(|note| format!(" ({note})")).unwrap_or_default();
    problems.add(
        spot,
        format!("{field}: {message}{note}"),
        problem.hint.clone().or(hint).unwrap_or(advice),
    );
}

/// The meaning of an error message of serde.
#[derive(Debug, PartialEq)]
enum Explained {
    UnknownKey { name: String, known: Vec<String> },
    MissingKey { name: String },
    Other { message: String, hint: Option<String> },
}

fn backticked(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Converts serde's messages to the terms of the pipeline file; other messages are kept.
fn explain(message: &str, found: &Option<String>) -> Explained {
    if let Some(rest) = message.strip_prefix("unknown field `")
        && let Some((name, rest)) = rest.split_once('`')
    {
        return Explained::UnknownKey {
            name: name.to_owned(),
            known: backticked(rest),
        };
    }
    if let Some(name) = message
        .strip_prefix("missing field `")
        .and_then(|rest| rest.strip_suffix('`'))
    {
        return Explained::MissingKey { name: name.to_owned() };
    }
    if let Some(rest) = message.strip_prefix("unknown variant `")
        && let Some((name, rest)) = rest.split_once('`')
    {
        let known = backticked(rest);
        let hint =
            nearest(name, known.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"));
        return Explained::Other {
            message: format!("unknown value `{name}`"),
            hint: Some(hint.unwrap_or_else(|| {
                format!("the allowed values are {}", list(known.iter().map(String::as_str)))
            })),
        };
    }
    for prefix in ["invalid type: ", "invalid value: ", "invalid length "] {
        if let Some(rest) = message.strip_prefix(prefix)
            && let Some((given, wanted)) = rest.rsplit_once(", expected ")
        {
            let given = match found {
                Some(found) if prefix != "invalid length " => found.clone(),
                _ if prefix == "invalid length " => format!("{given} items"),
                _ => given.replace("sequence", "a list").replace('`', ""),
            };
            return Explained::Other {
                message: format!("expected {}, found {given}", plain(wanted)),
                hint: None,
            };
        }
    }
    Explained::Other {
        message: message.to_owned(),
        hint: None,
    }
}

/// Converts Rust's type names to plain words.
fn plain(wanted: &str) -> String {
    match wanted {
        "f32" | "f64" => "a number".to_owned(),
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
fn type_hint(message: &str, found: &Tree) -> Option<String> {
    let wanted = message.rsplit_once(", expected ")?.1;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serde_speaks_plainly() {
        let other = |message, found: Option<&str>| match explain(message, &found.map(str::to_owned)) {
            Explained::Other { message, hint } => format!("{message} | {}", hint.unwrap_or_default()),
            other => format!("{other:?}"),
        };
        let text = [
            other(
                "invalid type: string \"a, expected b\", expected f64",
                Some("the string \"a\""),
            ),
            other("invalid value: integer `-5`, expected u32", None),
            other("invalid length 3, expected an array of length 2", None),
            other("unknown variant `gaus`, expected one of `gauss`, `uniform`", None),
            other("unknown field `x`, there are no fields", None),
            other("unknown field `x`, expected `y` or `z`", None),
            other("missing field `from`", None),
            other("must be above 0", None),
        ]
        .join("\n");
        insta::assert_snapshot!(text, @r#"
        expected a number, found the string "a" | 
        expected an integer from 0 to 4294967295, found integer -5 | 
        expected a list of 2, found 3 items | 
        unknown value `gaus` | did you mean `gauss`?
        UnknownKey { name: "x", known: [] }
        UnknownKey { name: "x", known: ["y", "z"] }
        MissingKey { name: "from" }
        must be above 0 |
        "#);
    }
}
