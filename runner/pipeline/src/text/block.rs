//! Blocks of the file: serde reads them, and each mistake becomes an error with a position and a hint.

use crate::text::problems::Problems;
use crate::text::source::Spot;
use crate::text::suggest::{list, nearest, suggest};
use crate::text::tree::{Step, Tree, Value, follow, steps};
use crate::text::yaml::scalar;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use stages_core::read::read;
use stages_core::{ConfigProblem, Mistake};

/// A block of the file, such as `schedule:` or the `with:` of a stage, for error messages.
pub(crate) struct Block {
    /// The block's key in the table of hints.
    pub key: &'static str,
    name: String,
    with: Option<With>,
}

/// The stage whose `with:` a block is.
struct With {
    stage: String,
    kind: &'static str,
    uses: Spot,
}

/// Hints by the block and the path of a value, without list indices. A `?` after a path marks the hint for
/// that key being missing, which is reported at the key of its map.
const HINTS: &str = include_str!("hints.txt");

impl Block {
    /// The block of the key `key`.
    pub(crate) fn of(key: &'static str) -> Self {
        Self::named(key, format!("`{key}`"))
    }

    /// An entry of the list at the key `key`.
    pub(crate) fn entry(key: &'static str) -> Self {
        Self::named(key, format!("an entry of `{key}`"))
    }

    /// A block of the key `key` with a name for messages.
    pub(crate) fn named(key: &'static str, name: String) -> Self {
        let with = None;
        Self { key, name, with }
    }

    /// The `with:` of a stage of the kind `kind`, which `uses` names.
    pub(crate) fn with(stage: &str, kind: &'static str, uses: Spot) -> Self {
        let stage = stage.to_owned();
        Self {
            key: "with",
            name: format!("`{stage}` ({kind})"),
            with: Some(With { stage, kind, uses }),
        }
    }

    /// Reads the values of `filled`, whose positions are those of `tree`.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        tree: &Tree,
        filled: &Tree,
        problems: &mut Problems,
    ) -> Option<T> {
        let before = problems.count();
        let mut json = filled.to_json();
        self.refuse_empty(tree, filled, &mut Vec::new(), &mut json, problems);
        loop {
            let problem = match read(&json) {
                Ok(value) => return (problems.count() == before).then_some(value),
                Err(error) => ConfigProblem::from(error),
            };
            let mut path = steps(&problem.field);
            // An error about what a map lacks, or cannot be, may only follow from the values that were left
            // out.
            let is_whole = match &problem.mistake {
                Mistake::MissingKey(_) => true,
                Mistake::Other => !matches!(follow(filled, &path).value.value, Value::Scalar(_)),
                _ => false,
            };
            if is_whole && problems.count() > before {
                return None;
            }
            self.report(tree, filled, &path, &problem, problems);
            if let Mistake::UnknownKey { name, .. } = problem.mistake {
                path.push(Step::Key(name));
            }
            if !remove(&mut json, &path) {
                return None;
            }
        }
    }

    /// Reports nulls and blank texts, and removes them.
    fn refuse_empty(
        &self,
        tree: &Tree,
        filled: &Tree,
        path: &mut Vec<Step>,
        json: &mut Json,
        problems: &mut Problems,
    ) {
        let below: Vec<Step> = match &follow(filled, path).value.value {
            Value::Map(entries) => entries.iter().map(|(key, _)| Step::Key(key.name.clone())).collect(),
            Value::List(items) => (0..items.len()).map(Step::Index).collect(),
            Value::Scalar(Json::String(text)) if !text.trim().is_empty() => return,
            Value::Scalar(Json::String(_) | Json::Null) if !path.is_empty() => {
                self.report(tree, filled, path, &ConfigProblem::new("", ""), problems);
                remove(json, path);
                return;
            }
            Value::Scalar(_) => return,
        };
        for step in below {
            path.push(step);
            self.refuse_empty(tree, filled, path, json, problems);
            path.pop();
        }
    }

    /// The hint for a path, with `more` appended to the path.
    pub(crate) fn hint(&self, path: &[Step], more: &str) -> Option<String> {
        let keys = path.iter().filter_map(Step::key);
        let path = [self.key].into_iter().chain(keys).collect::<Vec<_>>().join(".") + more;
        let mut lines = HINTS.lines().filter_map(|line| line.split_once(' '));
        lines
            .find(|(known, _)| *known == path)
            .map(|(_, hint)| hint.trim().to_owned())
    }

    /// Reports a mistake in the value at a path, which has the values of `filled` and the positions of
    /// `tree`.
    pub(crate) fn report(
        &self,
        tree: &Tree,
        filled: &Tree,
        path: &[Step],
        problem: &ConfigProblem,
        problems: &mut Problems,
    ) {
        let (place, found) = (follow(tree, path), follow(filled, path));
        let name = match (path.iter().rev().find_map(Step::key), &self.with) {
            (None, _) => self.name.clone(),
            (Some(key), None) => format!("`{key}`"),
            (Some(_), Some(with)) => format!("`{}` of `{}`", problem.field, with.stage),
        };
        let map = match &self.with {
            Some(_) => format!("the configuration of {}", self.name),
            None => name.clone(),
        };
        let at_key = |otherwise: Spot| place.key.map_or(otherwise, |key| key.spot);
        let at = match &self.with {
            Some(with) if path.is_empty() => with.uses,
            Some(with) if !place.complete => at_key(with.uses),
            _ => place.value.spot,
        };
        let advice = self.with.as_ref().map(|with| {
            let kind = with.kind;
            format!("see `runner stages {kind}` for its configuration")
        });
        let note = found.note.map(|note| format!(" ({note})")).unwrap_or_default();
        let own = self.hint(path, "");
        let (spot, message, hint) = match (&problem.mistake, &self.with) {
            (Mistake::UnknownKey { name: key, known }, _) => {
                let spot = place.value.entry(key).map_or(place.value.spot, |(key, _)| key.spot);
                let hint = match &self.with {
                    Some(with) if known.is_empty() => format!("`{}` takes no configuration here", with.kind),
                    _ => suggest(key, "keys", known.iter().copied()),
                };
                (spot, format!("unknown key `{key}` in {map}"), Some(hint))
            }
            (Mistake::MissingKey(key), with) => {
                let missing = self.hint(path, &format!(".{key}?"));
                let (spot, hint) = match (with, &advice) {
                    (Some(with), Some(advice)) => {
                        (at_key(with.uses), Some(format!("add `{key}: …`; {advice}")))
                    }
                    _ if missing.is_some() => (at_key(at), missing),
                    _ => (at, own),
                };
                (spot, format!("{map} has no `{key}`"), hint)
            }
            (Mistake::Type { found: given, wanted }, with) => {
                let given = match given {
                    Ok(_) if found.complete => format!("is {}", found.value.describe()),
                    Ok(given) => format!("is {}", given.replace("sequence", "a list").replace('`', "")),
                    Err(items) => format!("has {items} items"),
                };
                let is_setting = with.is_some() && found.complete;
                let written = problems.texts.written(place.value.spot);
                let hint = is_setting.then(|| type_hint(wanted, found.value, &written)).flatten();
                let message = format!("{name} {given}, not {}{note}", plain(wanted));
                (at, message, hint.or(own))
            }
            (Mistake::UnknownValue { name: text, known }, with) => {
                let near = nearest(text, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
                let all = || Some(format!("the values are {}", list(known.iter().copied())));
                let message = match with {
                    Some(_) => format!("{name}: unknown value `{text}`{note}"),
                    None => format!("{name} is {}{note}", found.value.describe()),
                };
                (at, message, near.or(own).or_else(all))
            }
            (Mistake::Other, Some(_)) => {
                let message = format!("{name}: {}{note}", problem.message);
                (at, message, problem.hint.clone())
            }
            (Mistake::Other, None) => {
                let (said, hint) = problem.message.split_once('\n').unwrap_or_default();
                let described = format!("{name} is {}", found.value.describe());
                let message = match said {
                    "" => described + &note,
                    said if said.starts_with(',') => format!("{described}{said}{note}"),
                    said if said.starts_with(' ') => format!("{name}{said}"),
                    said => said.to_owned(),
                };
                (
                    at,
                    message,
                    Some(hint.to_owned()).filter(|hint| !hint.is_empty()).or(own),
                )
            }
        };
        let above = || (0..path.len()).rev().find_map(|length| self.hint(&path[..length], ""));
        let other = "give a value, or remove the key for its default";
        let hint = hint.or(advice).or_else(above);
        problems.add(spot, message, hint.unwrap_or_else(|| other.to_owned()));
    }
}

/// Removes the last key of a path, and everything below it; returns false if there is no such key.
fn remove(json: &mut Json, path: &[Step]) -> bool {
    let Some(last) = path.iter().rposition(|step| step.key().is_some()) else {
        return false;
    };
    let parent = path[..last].iter().try_fold(json, |value, step| match step {
        Step::Key(name) => value.get_mut(name),
        Step::Index(index) => value.get_mut(index),
    });
    let map = parent.and_then(Json::as_object_mut).zip(path[last].key());
    map.is_some_and(|(map, key)| map.remove(key).is_some())
}

/// Converts Rust's type names to plain words.
fn plain(wanted: &str) -> String {
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
        other if other.starts_with("struct ") => "a map of keys".to_owned(),
        other if other.starts_with("enum ") => "one of the allowed values".to_owned(),
        other if other.starts_with("an array of length ") || other.starts_with("a tuple of size ") => {
            format!("a list of {}", other.rsplit(' ').next().unwrap_or_default())
        }
        other => other.to_owned(),
    }
}

/// A hint for a value of a wrong type, which stands in the file as `written`.
fn type_hint(wanted: &str, found: &Tree, written: &str) -> Option<String> {
    let whole = wanted.starts_with(['u', 'i']) && wanted.len() <= 5;
    let number = whole || wanted.starts_with('f');
    // The value of an interpolation is quoted where it is given.
    let quoted = match written.contains("${") {
        true => "put its value in quotes where it is given".to_owned(),
        false => format!("put it in quotes: `\"{written}\"`"),
    };
    let list = match written.contains("${") && !written.starts_with(['"', '\'']) {
        true => format!("write a list: `[\"{written}\"]`"),
        false => format!("write a list: `[{written}]`"),
    };
    let is_list = wanted.contains("sequence") || wanted.contains("array");
    Some(match &found.value {
        Value::Scalar(Json::Number(value)) => match value.as_f64() {
            Some(float) if whole && value.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                format!("write {float:.0}")
            }
            Some(float) if whole && float < 0.0 => "give 0 or more".to_owned(),
            _ if whole => "write an integer".to_owned(),
            _ if wanted.contains("string") => quoted,
            _ if is_list => list,
            _ => return None,
        },
        Value::Scalar(Json::String(text)) => match text.to_lowercase().as_str() {
            "yes" | "on" | "y" if wanted.contains("boolean") => "write `true`".to_owned(),
            "no" | "off" | "n" if wanted.contains("boolean") => "write `false`".to_owned(),
            _ if number && matches!(scalar(text), Ok(Json::Number(_))) => {
                format!("write {text} without quotes")
            }
            _ if number => "write a number, such as 10 or 3e-4".to_owned(),
            _ if is_list && text.contains('\n') => "write a list: `[a, b]`".to_owned(),
            _ if is_list => list,
            _ => return None,
        },
        Value::Scalar(Json::Null) if matches!(written, "null" | "Null" | "NULL") => {
            format!("give a value, or remove the key for its default; if it is a name, {quoted}")
        }
        Value::Scalar(Json::Null) => "give a value, or remove the key for its default".to_owned(),
        Value::Scalar(Json::Bool(_)) if wanted.contains("string") => quoted,
        Value::Scalar(Json::Bool(_)) if is_list => list,
        _ => return None,
    })
}
