//! The values of a YAML file, each with its position.

use crate::text::source::Spot;
use serde_json::Value as Json;

/// A value and its position.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The start of the value.
    pub spot: Spot,
    /// The value.
    pub value: Value,
    /// The origin of an interpolated value, for messages: `${params.seed}` is 7.
    pub note: Option<String>,
}

/// The value of a node.
#[derive(Clone, Debug)]
pub enum Value {
    /// Null, a boolean, a finite number or a text.
    Scalar(Json),
    /// A list.
    List(Vec<Tree>),
    /// A map, in the order of the file, without duplicate keys.
    Map(Vec<(Key, Tree)>),
}

impl Default for Value {
    fn default() -> Self {
        Self::Scalar(Json::Null)
    }
}

/// A key of a map.
#[derive(Clone, Debug)]
pub struct Key {
    /// The key's text.
    pub name: String,
    /// The key's position.
    pub spot: Spot,
}

impl Key {
    /// A key at a position.
    pub fn at(spot: Spot, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            spot,
        }
    }
}

/// Creates a key without a position.
impl<S: AsRef<str>> From<S> for Key {
    fn from(name: S) -> Self {
        Self::at(Spot::default(), name.as_ref())
    }
}

/// Creates a tree without a position.
impl From<Value> for Tree {
    fn from(value: Value) -> Self {
        Self::at(Spot::default(), value)
    }
}

impl Tree {
    /// A value at a position.
    pub fn at(spot: Spot, value: Value) -> Self {
        Self {
            spot,
            value,
            note: None,
        }
    }

    /// A scalar at a position.
    pub fn scalar(spot: Spot, value: Json) -> Self {
        Self::at(spot, Value::Scalar(value))
    }

    /// A map at a position.
    pub fn map(spot: Spot, entries: Vec<(Key, Self)>) -> Self {
        Self::at(spot, Value::Map(entries))
    }

    /// Adds an entry to a map; any other value is replaced by a map with that entry.
    pub fn push(&mut self, key: Key, value: Self) {
        match &mut self.value {
            Value::Map(entries) => entries.push((key, value)),
            other => *other = Value::Map(vec![(key, value)]),
        }
    }

    /// True if the value is null.
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Scalar(Json::Null))
    }

    /// True for a map or a list without entries.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.value {
            Value::Map(entries) => entries.is_empty(),
            Value::List(items) => items.is_empty(),
            Value::Scalar(_) => false,
        }
    }

    /// The value's text, if it is a text.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The items of a list; any other value counts as its own single item.
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// The entry with the key `name`, if the value is a map that has it.
    pub fn entry(&self, name: &str) -> Option<&(Key, Self)> {
        self.entries().iter().find(|(key, _)| key.name == name)
    }

    /// The entries of a map; none for any other value.
    pub fn entries(&self) -> &[(Key, Self)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value with its texts replaced.
    pub(crate) fn map_texts(&self, replace: &mut dyn FnMut(&Self, &str) -> Self) -> Self {
        let value = match &self.value {
            Value::Scalar(Json::String(text)) => return replace(self, text),
            Value::Scalar(_) => return self.clone(),
            Value::List(items) => Value::List(items.iter().map(|item| item.map_texts(replace)).collect()),
            Value::Map(entries) => {
                let entries = entries.iter();
                Value::Map(
                    entries
                        .map(|(key, value)| (key.clone(), value.map_texts(replace)))
                        .collect(),
                )
            }
        };
        Self {
            spot: self.spot,
            value,
            note: self.note.clone(),
        }
    }

    /// True if a text of the value passes a test.
    pub(crate) fn any_text(&self, test: &dyn Fn(&str) -> bool) -> bool {
        match &self.value {
            Value::Scalar(Json::String(text)) => test(text),
            Value::Scalar(_) => false,
            Value::List(items) => items.iter().any(|item| item.any_text(test)),
            Value::Map(entries) => entries.iter().any(|(_, value)| value.any_text(test)),
        }
    }

    /// The value with `${` escaped, so that interpolation yields the original texts.
    pub(crate) fn escaped(&self) -> Self {
        self.map_texts(&mut |tree, text| Self {
            value: Value::Scalar(text.replace("${", "$${").into()),
            ..tree.clone()
        })
    }

    /// The value as JSON, without positions.
    pub fn to_json(&self) -> Json {
        match &self.value {
            Value::Scalar(value) => value.clone(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|(key, value)| (key.name.clone(), value.to_json()))
                .collect(),
        }
    }

    /// Creates a tree from a JSON value, without positions.
    pub fn from_json(value: &Json) -> Self {
        Self::from(match value {
            Json::Array(items) => Value::List(items.iter().map(Self::from_json).collect()),
            Json::Object(entries) => {
                let entry = |(name, value): (&String, &Json)| (Key::from(name), Self::from_json(value));
                Value::Map(entries.iter().map(entry).collect())
            }
            scalar => Value::Scalar(scalar.clone()),
        })
    }

    /// A description of the value in words: `a list`, `the text "abc"`.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
            Value::Scalar(value) => describe(value),
        }
    }
}

/// A description of a value in words.
pub(crate) fn describe(value: &Json) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::Bool(value) => format!("`{value}`"),
        Json::Number(value) => format!("the number {value}"),
        Json::String(text) => {
            let mut short: String = text.chars().take(40).collect();
            if short.len() < text.len() {
                short.push('…');
            }
            format!("the string {short:?}")
        }
        Json::Array(_) => "a list".to_owned(),
        Json::Object(_) => "a map".to_owned(),
    }
}

/// A scalar's text, as spliced into a larger text.
pub(crate) fn spell(value: &Json) -> Option<String> {
    match value {
        Json::Bool(value) => Some(value.to_string()),
        Json::Number(value) => Some(value.to_string()),
        Json::String(text) => Some(text.clone()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

/// A step of the path to a field: `slate.deltas[2]` has the steps `slate`, `deltas` and 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

impl Step {
    /// The key, if the step is one.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Key(name) => Some(name),
            Self::Index(_) => None,
        }
    }
}

/// Parses the path to a field. An invalid index becomes part of a name.
pub(crate) fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (name, indices) = match part.find('[') {
            Some(at) if part.ends_with(']') => (&part[..at], &part[at + 1..part.len() - 1]),
            _ => (part, ""),
        };
        let parsed: Option<Vec<usize>> = indices
            .split("][")
            .filter(|index| !index.is_empty())
            .map(|index| index.parse().ok())
            .collect();
        match parsed {
            Some(indices) => {
                if !name.is_empty() {
                    steps.push(Step::Key(name.to_owned()));
                }
                steps.extend(indices.into_iter().map(Step::Index));
            }
            None => steps.push(Step::Key(part.to_owned())),
        }
    }
    steps
}

/// The result of following a path in a tree.
pub(crate) struct Found<'a> {
    /// The key of the deepest map entry on the path.
    pub key: Option<&'a Key>,
    /// The deepest value on the path.
    pub value: &'a Tree,
    /// True if the whole path exists.
    pub complete: bool,
    /// The note of the deepest value on the path that has one.
    pub note: Option<&'a str>,
}

/// Follows a path as far as it exists.
pub(crate) fn follow<'a>(root: &'a Tree, path: &[Step]) -> Found<'a> {
    let mut found = Found {
        key: None,
        value: root,
        complete: true,
        note: root.note.as_deref(),
    };
    for step in path {
        let next = match (step, &found.value.value) {
            (Step::Key(name), Value::Map(_)) => {
                found.value.entry(name).map(|(key, value)| (Some(key), value))
            }
            (Step::Index(index), Value::List(items)) => items.get(*index).map(|value| (None, value)),
            _ => None,
        };
        let Some((key, value)) = next else {
            found.complete = false;
            break;
        };
        found.key = key.or(found.key);
        found.value = value;
        found.note = value.note.as_deref().or(found.note);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_fields() {
        let key = |name: &str| Step::Key(name.to_owned());
        assert_eq!(steps("slate.deltas[2]"), [key("slate"), key("deltas"), Step::Index(2)]);
        assert_eq!(steps("a[1][2].b"), [key("a"), Step::Index(1), Step::Index(2), key("b")]);
        assert_eq!(steps("a[x]"), [key("a[x]")]);
        assert_eq!(steps(""), []);
    }
}
