//! `--set NAME=VALUE` and `--set STAGE.with.KEY=VALUE`.

use super::document::{Document, Job};
use super::error::{Problems, suggest};
use super::source::{Spot, Texts};
use super::tree::{Key, Step, Tree, Value, describe, steps};
use super::{Place, yaml};
use serde_json::{Number, Value as Json};
use std::path::PathBuf;

/// An argument of `--set` for a stage's configuration.
pub(crate) struct Setting {
    /// The stage.
    pub stage: String,
    /// The path of the field below `with:`.
    pub path: Vec<Step>,
    /// The path as it is written, and where.
    pub name: Key,
    /// The value's text.
    text: String,
    /// Where the value stands.
    spot: Spot,
}

/// Adds the arguments to the texts that errors point into.
pub(crate) fn texts(texts: &mut Texts, arguments: &[String]) {
    for argument in arguments {
        texts.push(PathBuf::from("--set"), argument.clone());
    }
}

/// Replaces parameters, and returns what is set of the stages' configurations.
pub(crate) fn apply(arguments: &[String], document: &mut Document, problems: &mut Problems) -> Vec<Setting> {
    let mut settings = Vec::new();
    for (i, argument) in arguments.iter().enumerate() {
        let whole = Spot::whole(i + 1, argument);
        let Some((name, text)) = argument.split_once('=') else {
            problems.add(
                whole,
                format!("`{argument}` sets nothing"),
                "write `--set NAME=VALUE` or `--set STAGE.with.KEY=VALUE`",
            );
            continue;
        };
        let before = name.chars().count();
        let spot = Spot {
            text: i + 1,
            place: Place {
                line: 1,
                column: before + 2,
            },
            width: text.chars().count().max(1),
        };
        let at = Spot {
            width: before.max(1),
            ..whole
        };
        match name.split_once('.') {
            None => {
                let known = document.params.iter_mut().find(|(key, _)| key.name == name);
                match known.map(|(_, value)| (typed(text, spot, &value.value, Strictness::Exact), value)) {
                    Some((Ok(new), value)) => *value = new,
                    Some((Err((message, hint)), _)) => {
                        problems.add(spot, format!("`{name}`: {message}"), hint);
                    }
                    None => {
                        let hint = match document.stages.iter().find(|stage| stage.key.name == name) {
                            Some(_) => format!("`{name}` is a stage: write `--set {name}.with.KEY=VALUE`"),
                            None => suggest(
                                name,
                                "parameters",
                                document.params.iter().map(|(key, _)| key.name.as_str()),
                            ),
                        };
                        problems.add(at, format!("the pipeline has no parameter `{name}`"), hint);
                    }
                }
            }
            Some((stage, rest)) => {
                let Some(found) = document.stages.iter().find(|known| known.key.name == stage) else {
                    let names = document.stages.iter().map(|stage| stage.key.name.as_str());
                    problems.add(
                        at,
                        format!("the pipeline has no stage `{stage}`"),
                        suggest(stage, "stages", names),
                    );
                    continue;
                };
                let path = rest.strip_prefix("with.").map(steps).filter(|path| {
                    matches!(path.first(), Some(Step::Key(_)))
                        && path
                            .iter()
                            .all(|step| !matches!(step, Step::Key(name) if name.is_empty()))
                });
                let Some(path) = path else {
                    problems.add(
                        at,
                        format!("`{name}` cannot be set"),
                        format!("only parameters and configurations can: write `--set {stage}.with.KEY=VALUE`"),
                    );
                    continue;
                };
                if matches!(found.job, Job::Command { .. }) {
                    problems.add(
                        at,
                        format!("`{stage}` is a `run:` stage and has no `with:`"),
                        "let its command read a parameter, and set that",
                    );
                    continue;
                }
                settings.push(Setting {
                    stage: stage.to_owned(),
                    path,
                    name: Key {
                        name: rest.to_owned(),
                        spot: at,
                    },
                    text: text.to_owned(),
                    spot,
                });
            }
        }
    }
    settings
}

impl Setting {
    /// Sets the field in a stage's `with:`. `default` is the stage kind's whole default configuration.
    pub fn apply(&self, with: &mut Tree, default: &Json) -> Result<(), (Spot, String, String)> {
        let mut target = with;
        let mut defaults = Some(default);
        for step in &self.path {
            defaults = defaults.and_then(|value| match step {
                Step::Key(name) => value.get(name),
                Step::Index(index) => value.get(index),
            });
            // A map that the file does not spell out is begun.
            if target.is_null() && matches!(step, Step::Key(_)) {
                target.value = Value::Map(Vec::new());
            }
            let described = target.describe();
            let wrong = |what: &str| {
                (
                    self.name.spot,
                    format!("`{}` cannot be set: {what} {described}", self.name.name),
                    "set the whole value, or see `runner stages KIND` for the configuration".to_owned(),
                )
            };
            target = match (step, &mut target.value) {
                (Step::Key(name), Value::Map(entries)) => {
                    let at = entries.iter().position(|(key, _)| key.name == *name);
                    let at = at.unwrap_or_else(|| {
                        let key = Key {
                            name: name.clone(),
                            spot: self.name.spot,
                        };
                        entries.push((key, Tree::scalar(self.name.spot, Json::Null)));
                        entries.len() - 1
                    });
                    // A mistake in it is then one of the command line.
                    entries[at].0.spot = self.name.spot;
                    &mut entries[at].1
                }
                (Step::Index(index), Value::List(items)) => match items.get_mut(*index) {
                    Some(item) => item,
                    None => return Err(wrong(&format!("there is no item {index} in"))),
                },
                (Step::Key(name), _) => return Err(wrong(&format!("`{name}` would be a key of"))),
                (Step::Index(index), _) => return Err(wrong(&format!("`[{index}]` would be an item of"))),
            };
        }
        let replaced = match &target.value {
            Value::Scalar(Json::Null) => Value::Scalar(match defaults {
                Some(text @ Json::String(_)) => text.clone(),
                _ => Json::Null,
            }),
            value => value.clone(),
        };
        *target = typed(&self.text, self.spot, &replaced, Strictness::Kind)
            .map_err(|(message, hint)| (self.spot, format!("`{}`: {message}", self.name.name), hint))?;
        Ok(())
    }
}

/// Who says which types fit.
#[derive(Clone, Copy, PartialEq)]
enum Strictness {
    /// The value that is replaced.
    Exact,
    /// The stage kind, later.
    Kind,
}

/// Reads the text of a value that replaces `old`: a YAML scalar of its type; a list or map in brackets or braces.
fn typed(text: &str, spot: Spot, old: &Value, strictness: Strictness) -> Result<Tree, (String, String)> {
    let structured = text.starts_with(['[', '{']);
    let quoted = text.len() >= 2 && (text.starts_with('"') || text.starts_with('\''));
    let is_text = matches!(old, Value::Scalar(Json::String(_)));
    if is_text && !quoted && !(structured && strictness == Strictness::Kind) {
        // No quotes needed, whatever it looks like.
        return Ok(Tree::scalar(spot, Json::String(text.to_owned())));
    }
    let tree = if structured || quoted {
        // Blanks before it give its parts their columns in the argument.
        let padded = format!("{}{text}", " ".repeat(spot.place.column - 1));
        yaml::parse(&padded, spot.text).map_err(|issue| (issue.message, issue.hint))?
    } else {
        Tree::scalar(spot, yaml::scalar(text.trim())?)
    };
    if strictness == Strictness::Kind {
        return Ok(tree);
    }
    let (value, wanted) = match (old, &tree.value) {
        (Value::List(_), Value::List(_)) | (Value::Map(_), Value::Map(_)) => return Ok(tree),
        (Value::Scalar(Json::Null), _) => return Ok(tree),
        (Value::List(_), _) => (None, "a list: `[a, b]`"),
        (Value::Map(_), _) => (None, "a map: `{ key: value }`"),
        (Value::Scalar(old), Value::Scalar(new)) => match (old, new) {
            (Json::Bool(_), Json::Bool(_)) | (Json::String(_), Json::String(_)) => return Ok(tree),
            (Json::Number(old), Json::Number(new)) if old.is_f64() => {
                (new.as_f64().and_then(Number::from_f64).map(Json::Number), "a number")
            }
            (Json::Number(_), Json::Number(new)) if !new.is_f64() => return Ok(tree),
            (Json::Number(old), _) if old.is_f64() => (None, "a number"),
            (Json::Number(_), _) => (None, "a whole number"),
            (Json::Bool(_), _) => (None, "`true` or `false`"),
            _ => (None, "a text"),
        },
        (Value::Scalar(old), _) => (
            None,
            match old {
                Json::Bool(_) => "`true` or `false`",
                Json::Number(number) if number.is_f64() => "a number",
                Json::Number(_) => "a whole number",
                _ => "a text",
            },
        ),
    };
    match value {
        Some(value) => Ok(Tree::scalar(spot, value)),
        None => {
            let old = match old {
                Value::Scalar(old) => describe(old),
                Value::List(_) => "a list".to_owned(),
                Value::Map(_) => "a map".to_owned(),
            };
            Err((
                format!("{} does not fit: it replaces {old}", tree.describe()),
                format!("give {wanted}"),
            ))
        }
    }
}
