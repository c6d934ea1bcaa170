//! `--set NAME=VALUE` and `--set STAGE.with.KEY=VALUE`, and profiles, which set the same names.

use super::document::{Document, Job};
use super::interpolate::{Scope, fill};
use super::problems::Problems;
use super::source::{Spot, Texts};
use super::suggest::suggest;
use super::tree::{Key, Step, Tree, Value, describe, steps};
use super::{Place, yaml};
use serde_json::{Number, Value as Json};

/// An argument of `--set` for a stage's configuration.
pub(crate) struct Setting {
    /// The stage.
    pub stage: String,
    /// The path of the field below `with:`.
    pub path: Vec<Step>,
    /// The path as written, and its position.
    pub name: Key,
    /// The new value.
    value: Given,
    /// The position of the value.
    spot: Spot,
}

/// A value that replaces another one.
#[derive(Clone)]
enum Given {
    /// An argument's text, parsed by the type of the replaced value.
    Text(String),
    /// A value of a profile.
    Tree(Tree),
}

/// Adds the arguments to the texts that errors refer to: those of `--set`, then those of `--profile`.
pub(crate) fn texts(texts: &mut Texts, arguments: &[String], profiles: &[String]) {
    for argument in arguments {
        texts.push_argument("--set", argument.clone());
    }
    for profile in profiles {
        texts.push_argument("--profile", profile.clone());
    }
}

/// The values that the schedule sets in a night, with the names of `--set`.
pub(crate) struct OfNight {
    /// True in a night; they are only checked otherwise.
    pub is_set: bool,
    /// The values, without interpolations.
    pub values: Vec<(Key, Tree)>,
}

/// Replaces parameters, and returns the settings of the stages' configurations. The selected profiles apply
/// first, in the order of the arguments; those of a night override them, and `--set` all. Profiles that are
/// not selected are checked too.
pub(crate) fn apply(
    arguments: &[String],
    profiles: &[String],
    of_night: OfNight,
    document: &mut Document,
    problems: &mut Problems,
) -> Vec<Setting> {
    let mut settings = Vec::new();
    let known = std::mem::take(&mut document.profiles);
    for (_, entries) in known.iter().filter(|(key, _)| !profiles.contains(&key.name)) {
        for (key, value) in entries {
            find(&key.name, key.spot, document, problems).and_then(|target| {
                replacement(&target, &Given::Tree(value.clone()), value.spot, document, problems)
            });
        }
    }
    for (i, name) in profiles.iter().enumerate() {
        let Some((_, entries)) = known.iter().find(|(key, _)| key.name == *name) else {
            problems.add(
                Spot::whole(arguments.len() + i + 1, name),
                format!("the pipeline has no profile `{name}`"),
                suggest(name, "profiles", known.iter().map(|(key, _)| key.name.as_str())),
            );
            continue;
        };
        for (key, value) in entries {
            let given = Given::Tree(value.clone());
            set(
                &key.name,
                key.spot,
                given,
                value.spot,
                document,
                &mut settings,
                problems,
            );
        }
    }
    for (key, value) in of_night.values {
        let (spot, given) = (value.spot, Given::Tree(value));
        if of_night.is_set {
            set(&key.name, key.spot, given, spot, document, &mut settings, problems);
        } else {
            find(&key.name, key.spot, document, problems)
                .and_then(|target| replacement(&target, &given, spot, document, problems));
        }
    }
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
        let given = Given::Text(text.to_owned());
        set(name, at, given, spot, document, &mut settings, problems);
    }
    settings
}

/// Removes from `schedule: { params: … }` what arguments of `--set` replace in every night, and sets what
/// they change within its values.
pub(crate) fn fix_schedule(arguments: &[String], settings: &[Setting], document: &mut Document) {
    let Some(Value::Map(schedule)) = document.schedule.as_mut().map(|tree| &mut tree.value) else {
        return;
    };
    let Some((
        _,
        Tree {
            value: Value::Map(params),
            ..
        },
    )) = schedule.iter_mut().find(|(key, _)| key.name == "params")
    else {
        return;
    };
    let is_argument = |name: &str| {
        arguments
            .iter()
            .any(|argument| argument.split_once('=').is_some_and(|(set, _)| set == name))
    };
    let settings: Vec<&Setting> = settings
        .iter()
        .filter(|setting| matches!(setting.value, Given::Text(_)))
        .collect();
    params.retain_mut(|(key, value)| {
        let Some((stage, path)) = key.name.split_once(".with.") else {
            return !is_argument(&key.name);
        };
        let path = steps(path);
        for setting in settings.iter().filter(|setting| setting.stage == stage) {
            if path.starts_with(&setting.path) {
                return false;
            }
            if let Some(rest) = setting.path.strip_prefix(&*path) {
                // It is valid: the pipeline was loaded with it.
                let _ = setting.within(rest).apply(value, &Json::Null);
            }
        }
        true
    });
    if params.is_empty() {
        schedule.retain(|(key, _)| key.name != "params");
    }
}

/// The target of a name.
enum Target {
    /// The index of a parameter.
    Param(usize),
    /// A field of a stage's configuration.
    Field {
        stage: String,
        path: Vec<Step>,
        rest: String,
    },
}

/// Sets a parameter, or records a setting of a stage.
fn set(
    name: &str,
    at: Spot,
    given: Given,
    spot: Spot,
    document: &mut Document,
    settings: &mut Vec<Setting>,
    problems: &mut Problems,
) {
    let Some(target) = find(name, at, document, problems) else {
        return;
    };
    let new = replacement(&target, &given, spot, document, problems);
    match target {
        Target::Param(index) => {
            if let (Some(new), Some((_, value))) = (new, document.params.get_mut(index)) {
                *value = new;
            }
        }
        Target::Field { stage, path, rest } => settings.push(Setting {
            stage,
            path,
            name: Key { name: rest, spot: at },
            value: given,
            spot,
        }),
    }
}

/// The new value of a parameter, if its type matches the old one.
fn replacement(
    target: &Target,
    given: &Given,
    spot: Spot,
    document: &Document,
    problems: &mut Problems,
) -> Option<Tree> {
    let Target::Param(index) = target else { return None };
    let (key, old) = document.params.get(*index)?;
    let new = given
        .read(spot, &old.value, Strictness::Exact)
        .map_err(|(message, hint)| problems.add(spot, format!("`{}`: {message}", key.name), hint));
    new.ok()
}

fn find(name: &str, at: Spot, document: &Document, problems: &mut Problems) -> Option<Target> {
    let Some((stage, rest)) = name.split_once('.') else {
        let known = document.params.iter().position(|(key, _)| key.name == name);
        if known.is_none() {
            let hint = match document.stages.iter().find(|stage| stage.key.name == name) {
                Some(_) => format!("`{name}` is a stage: write `{name}.with.KEY`"),
                None => suggest(
                    name,
                    "parameters",
                    document.params.iter().map(|(key, _)| key.name.as_str()),
                ),
            };
            problems.add(at, format!("the pipeline has no parameter `{name}`"), hint);
        }
        return known.map(Target::Param);
    };
    let Some(found) = document.stages.iter().find(|known| known.key.name == stage) else {
        let names = document.stages.iter().map(|stage| stage.key.name.as_str());
        problems.add(
            at,
            format!("the pipeline has no stage `{stage}`"),
            suggest(stage, "stages", names),
        );
        return None;
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
            format!("only parameters and configurations can: write `{stage}.with.KEY`"),
        );
        return None;
    };
    if matches!(&found.job, Job::Command(program) if program.python.is_none()) {
        problems.add(
            at,
            format!("`{stage}` is a `run:` stage and has no `with:`"),
            "let its command read a parameter, and set that",
        );
        return None;
    }
    Some(Target::Field {
        stage: stage.to_owned(),
        path,
        rest: rest.to_owned(),
    })
}

impl Setting {
    /// Replaces interpolations, which profiles may contain, since they are part of a file. An argument is
    /// taken literally.
    pub fn filled(&self, scope: &Scope, problems: &mut Problems) -> Self {
        let value = match &self.value {
            Given::Text(text) if scope.verbatim => Given::Text(text.replace("${", "$${")),
            Given::Text(text) => Given::Text(text.clone()),
            Given::Tree(tree) => Given::Tree(fill(tree, scope, problems)),
        };
        Self {
            stage: self.stage.clone(),
            path: self.path.clone(),
            name: self.name.clone(),
            value,
            spot: self.spot,
        }
    }

    /// The same value at a path of its own, to be interpolated later.
    fn within(&self, path: &[Step]) -> Self {
        let value = match &self.value {
            Given::Text(text) => Given::Text(text.replace("${", "$${")),
            Given::Tree(tree) => Given::Tree(tree.clone()),
        };
        Self {
            stage: self.stage.clone(),
            path: path.to_vec(),
            name: self.name.clone(),
            value,
            spot: self.spot,
        }
    }

    /// Sets the field in a stage's `with:`. `default` is the stage kind's complete default configuration.
    pub fn apply(&self, with: &mut Tree, default: &Json) -> Result<(), (Spot, String, String)> {
        let mut target = with;
        let mut defaults = Some(default);
        for step in &self.path {
            defaults = defaults.and_then(|value| match step {
                Step::Key(name) => value.get(name),
                Step::Index(index) => value.get(index),
            });
            // A map that is absent from the file is created.
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
                    // An error in it is then attributed to the command line.
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
        *target = self
            .value
            .read(self.spot, &replaced, Strictness::Kind)
            .map_err(|(message, hint)| (self.spot, format!("`{}`: {message}", self.name.name), hint))?;
        Ok(())
    }
}

/// The component that checks the type of a value.
#[derive(Clone, Copy, PartialEq)]
enum Strictness {
    /// The replaced value determines the type.
    Exact,
    /// The stage kind checks the type later.
    Kind,
}

impl Given {
    /// The value that replaces `old`, or an error message and a hint.
    fn read(&self, spot: Spot, old: &Value, strictness: Strictness) -> Result<Tree, (String, String)> {
        match self {
            Self::Text(text) => typed(text, spot, old, strictness),
            Self::Tree(tree) if strictness == Strictness::Kind => Ok(tree.clone()),
            // The value of an interpolation is unknown until it is resolved.
            Self::Tree(tree) if tree.text().is_some_and(|text| text.contains("${")) => Ok(tree.clone()),
            Self::Tree(tree) => fitting(tree.clone(), spot, old),
        }
    }
}

/// Parses the text of a value that replaces `old`: a YAML scalar of its type; a list or map in brackets or
/// braces.
fn typed(text: &str, spot: Spot, old: &Value, strictness: Strictness) -> Result<Tree, (String, String)> {
    let structured = text.starts_with(['[', '{']);
    let quoted = text.len() >= 2 && (text.starts_with('"') || text.starts_with('\''));
    let is_text = matches!(old, Value::Scalar(Json::String(_)));
    if is_text && !quoted && !(structured && strictness == Strictness::Kind) {
        // A text needs no quotes, whatever its content.
        return Ok(Tree::scalar(spot, Json::String(text.to_owned())));
    }
    let tree = if structured || quoted {
        // Padding gives its parts their columns in the argument.
        let padded = format!("{}{text}", " ".repeat(spot.place.column - 1));
        yaml::parse(&padded, spot.text).map_err(|issue| (issue.message, issue.hint))?
    } else {
        Tree::scalar(spot, yaml::scalar(text.trim())?)
    };
    match strictness {
        Strictness::Kind => Ok(tree),
        Strictness::Exact => fitting(tree, spot, old),
    }
}

/// Checks that a value has the type of `old`.
fn fitting(tree: Tree, spot: Spot, old: &Value) -> Result<Tree, (String, String)> {
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
            (Json::Number(_), _) => (None, "an integer"),
            (Json::Bool(_), _) => (None, "`true` or `false`"),
            _ => (None, "a string"),
        },
        (Value::Scalar(old), _) => (
            None,
            match old {
                Json::Bool(_) => "`true` or `false`",
                Json::Number(number) if number.is_f64() => "a number",
                Json::Number(_) => "an integer",
                _ => "a string",
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
