//! Values that `--set`, profiles and schedules give to fields of a stage's `with:`.

use crate::stage::interpolate::{Scope, fill};
use crate::text::{Key, Problems, Spot, Step, Tree, Value, some_number, yaml};
use serde_json::{Number, Value as Json};

/// A value that `--set` or a profile gives to a field of a stage's configuration.
#[derive(Clone)]
pub(crate) struct Setting {
    /// The stage.
    pub stage: String,
    /// The path of the field below `with:`.
    pub path: Vec<Step>,
    /// The path as written, and its position.
    pub name: Key,
    /// The new value.
    pub value: Given,
    /// The position of the value.
    pub spot: Spot,
}

/// A value that replaces another one.
#[derive(Clone)]
pub(crate) enum Given {
    /// An argument's text, parsed by the type of the replaced value.
    Text(String),
    /// A value of a profile.
    Tree(Tree),
}

impl Setting {
    /// Replaces the interpolations in the value: a profile may contain them, since it is part of a file,
    /// while an argument is taken literally.
    pub(crate) fn filled(&self, scope: &Scope, problems: &mut Problems) -> Self {
        let value = match &self.value {
            Given::Text(text) if scope.verbatim => Given::Text(text.replace("${", "$${")),
            Given::Text(text) => Given::Text(text.clone()),
            Given::Tree(tree) => Given::Tree(fill(tree, scope, problems)),
        };
        Self { value, ..self.clone() }
    }

    /// The setting with another path, `path`, and an argument's text escaped, so that it can be interpolated
    /// later.
    pub(crate) fn within(&self, path: &[Step]) -> Self {
        let value = match &self.value {
            Given::Text(text) => Given::Text(text.replace("${", "$${")),
            Given::Tree(tree) => Given::Tree(tree.clone()),
        };
        let path = path.to_vec();
        Self {
            path,
            value,
            ..self.clone()
        }
    }

    /// Sets the field in a stage's `with:`. `default` is the stage kind's complete default configuration.
    pub(crate) fn apply(&self, with: &mut Tree, default: &Json) -> Result<(), (Spot, String, String)> {
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
                        let key = Key::at(self.name.spot, name);
                        entries.push((key, Tree::scalar(self.name.spot, Json::Null)));
                        entries.len() - 1
                    });
                    // An error in the value is then attributed to the command line.
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
            .read(self.spot, &replaced, false)
            .map_err(|(message, hint)| (self.spot, format!("`{}`: {message}", self.name.name), hint))?;
        Ok(())
    }
}

impl Given {
    /// The value that replaces `old`, or an error message and a hint. It must have the type of `old` if
    /// `is_typed`; otherwise the stage kind checks the type later.
    pub(crate) fn read(&self, spot: Spot, old: &Value, is_typed: bool) -> Result<Tree, (String, String)> {
        match self {
            Self::Text(text) => typed(text, spot, old, is_typed),
            Self::Tree(tree) if !is_typed => Ok(tree.clone()),
            // The value of an interpolation is unknown until it is resolved.
            Self::Tree(tree) if tree.text().is_some_and(|text| text.contains("${")) => Ok(tree.clone()),
            Self::Tree(tree) => fitting(tree.clone(), spot, old),
        }
    }
}

/// Parses the text of a value that replaces `old`: a YAML scalar of the same type, or a list or map in
/// brackets or braces.
fn typed(text: &str, spot: Spot, old: &Value, is_typed: bool) -> Result<Tree, (String, String)> {
    let structured = text.starts_with(['[', '{']);
    let quoted = text.len() >= 2 && (text.starts_with('"') || text.starts_with('\''));
    let is_text = matches!(old, Value::Scalar(Json::String(_)));
    if is_text && !quoted && (is_typed || !structured) {
        // A text needs no quotes, whatever its content.
        return Ok(Tree::scalar(spot, Json::String(text.to_owned())));
    }
    let tree = if structured || quoted {
        // Padding gives the parts of the value their columns in the argument.
        let padded = format!("{}{text}", " ".repeat(spot.place.column - 1));
        yaml::parse(&padded, spot.text).map_err(|issue| (issue.message, issue.hint))?
    } else {
        Tree::scalar(spot, yaml::scalar(text.trim())?)
    };
    match is_typed {
        true => fitting(tree, spot, old),
        false => Ok(tree),
    }
}

/// Checks that a value has the type of `old`.
fn fitting(tree: Tree, spot: Spot, old: &Value) -> Result<Tree, (String, String)> {
    let wanted = match old {
        Value::Scalar(Json::Null) => return Ok(tree),
        Value::List(_) => "a list: `[a, b]`",
        Value::Map(_) => "a map: `{ key: value }`",
        Value::Scalar(Json::Bool(_)) => "`true` or `false`",
        Value::Scalar(Json::Number(number)) if number.is_f64() => "a number",
        Value::Scalar(Json::Number(_)) => "an integer",
        Value::Scalar(_) => "a string",
    };
    let tree = match (old, &tree.value) {
        (Value::Scalar(Json::Number(_)), Value::Scalar(value)) => match some_number(value) {
            Some(number) => Tree::scalar(spot, Json::Number(number)),
            None => tree,
        },
        _ => tree,
    };
    let fits = match (old, &tree.value) {
        (Value::List(_), Value::List(_)) | (Value::Map(_), Value::Map(_)) => true,
        (Value::Scalar(Json::Bool(_)), Value::Scalar(Json::Bool(_))) => true,
        (Value::Scalar(Json::String(_)), Value::Scalar(Json::String(_))) => true,
        (Value::Scalar(Json::Number(old)), Value::Scalar(Json::Number(new))) if old.is_f64() => {
            let float = new.as_f64().and_then(Number::from_f64);
            return Ok(float.map_or(tree, |float| Tree::scalar(spot, Json::Number(float))));
        }
        (Value::Scalar(Json::Number(_)), Value::Scalar(Json::Number(new))) => !new.is_f64(),
        _ => false,
    };
    if fits {
        return Ok(tree);
    }
    let old = Tree::from(old.clone()).describe();
    let message = format!("{} does not fit: it replaces {old}", tree.describe());
    Err((message, format!("give {wanted}")))
}
