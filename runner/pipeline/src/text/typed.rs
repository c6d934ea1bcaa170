//! Typed values of the file: serde reads them, and each mistake becomes an error with a position and a hint.

use crate::stage::configure::plain;
use crate::stage::interpolate::{Scope, fill};
use crate::text::problems::Problems;
use crate::text::suggest::{list, nearest, suggest};
use crate::text::tree::{Step, Tree, Value, follow, steps};
use crate::text::units::{duration, is_name, is_variable};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value as Json;
use stages_core::Mistake;
use stages_core::read::{ReadError, read_keyed};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// A block of the file, such as `schedule:`, for error messages.
pub(crate) struct Block {
    /// The block's key in the table of hints.
    key: &'static str,
    name: String,
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
        Self { key, name }
    }

    /// Reads the block with its interpolations replaced; `None` if it has errors, all of which are reported.
    pub(crate) fn fill<T: DeserializeOwned>(
        &self,
        tree: &Tree,
        scope: &Scope,
        problems: &mut Problems,
    ) -> Option<T> {
        let before = problems.count();
        let filled = fill(tree, scope, problems);
        (problems.count() == before).then(|| self.read(tree, &filled, problems))?
    }

    /// Reads a list of such blocks; blocks with errors are omitted.
    pub(crate) fn list<T: DeserializeOwned>(
        &self,
        tree: Option<&Tree>,
        scope: &Scope,
        problems: &mut Problems,
    ) -> Vec<T> {
        let Some(tree) = tree else { return Vec::new() };
        let Value::List(items) = &tree.value else {
            let message = format!("`{}` is {}, not a list", self.key, tree.describe());
            problems.add(tree.spot, message, self.hint(&[], "").unwrap_or_default());
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item| self.fill(item, scope, problems))
            .collect()
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
            let error = match read_keyed(&json) {
                Ok(value) => return (problems.count() == before).then_some(value),
                Err(error) => error,
            };
            let mut path = steps(&error.path);
            // An error about what a map lacks, or cannot be, may only follow from the values that were left
            // out.
            let is_whole = match &error.mistake {
                Mistake::MissingKey(_) => true,
                Mistake::Other => !matches!(follow(filled, &path).value.value, Value::Scalar(_)),
                _ => false,
            };
            if is_whole && problems.count() > before {
                return None;
            }
            self.report(tree, filled, &path, &error.mistake, &error, problems);
            if let Mistake::UnknownKey { name, .. } = error.mistake {
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
        let found = follow(filled, path).value;
        let below: Vec<Step> = match &found.value {
            Value::Map(entries) => entries.iter().map(|(key, _)| Step::Key(key.name.clone())).collect(),
            Value::List(items) => (0..items.len()).map(Step::Index).collect(),
            Value::Scalar(Json::String(text)) if !text.trim().is_empty() => return,
            Value::Scalar(Json::String(_) | Json::Null) if !path.is_empty() => {
                self.report(tree, filled, path, &Mistake::Other, &ReadError::custom(""), problems);
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
    fn hint(&self, path: &[Step], more: &str) -> Option<String> {
        let keys = path.iter().filter_map(Step::key);
        let path = [self.key].into_iter().chain(keys).collect::<Vec<_>>().join(".") + more;
        let mut lines = HINTS.lines().filter_map(|line| line.split_once(' '));
        lines
            .find(|(known, _)| *known == path)
            .map(|(_, hint)| hint.trim().to_owned())
    }

    fn report(
        &self,
        tree: &Tree,
        filled: &Tree,
        path: &[Step],
        mistake: &Mistake,
        error: &ReadError,
        problems: &mut Problems,
    ) {
        let (place, found) = (follow(tree, path), follow(filled, path));
        let of_path = path.iter().rev().find_map(Step::key);
        let name = of_path.map_or_else(|| self.name.clone(), |key| format!("`{key}`"));
        let (spot, message, hint) = match mistake {
            Mistake::UnknownKey { name: key, known } => {
                let spot = place.value.entry(key).map_or(place.value.spot, |(key, _)| key.spot);
                let hint = suggest(key, "keys", known.iter().copied());
                (spot, format!("unknown key `{key}` in {name}"), Some(hint))
            }
            Mistake::MissingKey(key) => {
                let own = self.hint(path, &format!(".{key}?"));
                let at_key = place.key.filter(|_| own.is_some());
                let spot = at_key.map_or(place.value.spot, |key| key.spot);
                let hint = own.or_else(|| self.hint(path, ""));
                (spot, format!("{name} has no `{key}`"), hint)
            }
            mistake => {
                let note = found.note.map(|note| format!(" ({note})")).unwrap_or_default();
                let described = format!("{name} is {}", found.value.describe());
                let own = self.hint(path, "");
                let (message, hint) = match mistake {
                    Mistake::Type { wanted, .. } => (
                        format!("{described}, not {}{note}", plain(wanted).replace("settings", "keys")),
                        own,
                    ),
                    Mistake::UnknownValue { name, known } => {
                        let near = nearest(name, known.iter().copied());
                        let near = near.map(|near| format!("did you mean `{near}`?"));
                        let all = || Some(format!("the values are {}", list(known.iter().copied())));
                        (described + &note, near.or(own).or_else(all))
                    }
                    _ => {
                        let (said, hint) = error.message.split_once('\n').unwrap_or_default();
                        let message = match said {
                            "" => described + &note,
                            said if said.starts_with(',') => format!("{described}{said}{note}"),
                            said if said.starts_with(' ') => format!("{name}{said}"),
                            said => said.to_owned(),
                        };
                        (message, Some(hint.to_owned()).filter(|hint| !hint.is_empty()).or(own))
                    }
                };
                (place.value.spot, message, hint)
            }
        };
        let hint = hint.or_else(|| (0..path.len()).rev().find_map(|length| self.hint(&path[..length], "")));
        let other = "give a value, or remove the key for its default";
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

/// A non-empty list, or a single item in place of a list.
pub(crate) struct Several<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Several<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        several(deserializer).map(Self)
    }
}

impl<T: JsonSchema> JsonSchema for Several<T> {
    fn schema_name() -> Cow<'static, str> {
        "Several".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "array"], "items": T::json_schema(generator) })
    }
}

/// Reads a list, or a text as its only item.
pub(crate) fn several<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct Items<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string or a list of them")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
            Ok(vec![T::deserialize(text.into_deserializer())?])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            let mut all = Vec::new();
            while let Some(item) = items.next_element()? {
                all.push(item);
            }
            match all.is_empty() {
                true => Err(A::Error::custom(" is an empty list\n")),
                false => Ok(all),
            }
        }
    }
    deserializer.deserialize_any(Items(PhantomData))
}

/// A text, or a map that says more.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum TextOr<T, M> {
    Text(T),
    Map(M),
}

impl<'de, T: Deserialize<'de>, M: Deserialize<'de>> Deserialize<'de> for TextOr<T, M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T, M>(PhantomData<(T, M)>);

        impl<'de, T: Deserialize<'de>, M: Deserialize<'de>> Visitor<'de> for Either<T, M> {
            type Value = TextOr<T, M>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a map")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                T::deserialize(text.into_deserializer()).map(TextOr::Text)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                M::deserialize(MapAccessDeserializer::new(map)).map(TextOr::Map)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

// The name of a stage, a policy or an alias.
#[derive(serde::Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", extend("pattern" = "^[A-Za-z_][A-Za-z0-9_-]*$"), inline)]
pub(crate) struct Name(pub String);

impl TryFrom<String> for Name {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        const HINT: &str = ", not a name\na name is letters, digits, `_` and `-`, and begins with a letter";
        is_name(&text).then_some(Self(text)).ok_or(HINT)
    }
}

/// The name of a variable of the environment. A wrong one is not shown: it may be the secret itself.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", extend("pattern" = "^[A-Za-z_][A-Za-z0-9_]*$"), inline)]
pub struct Variable(pub String);

impl TryFrom<String> for Variable {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        const HINT: &str = " is not the name of a variable\n\
            give the name of a variable of the environment, such as `SMTP_PASSWORD`";
        is_variable(&text).then_some(Self(text)).ok_or(HINT)
    }
}

/// A value that is written as a text in the file.
pub(crate) trait Written: Sized {
    /// The pattern that an editor checks; an interpolation may stand in its place.
    const PATTERN: Option<&'static str> = None;

    /// Parses the text. An empty error message stands for the default message.
    fn read(text: &str) -> Result<Self, String>;
}

/// A [`Written`] value that serde reads from its text.
pub(crate) struct Text<T>(pub T);

impl<'de, T: Written> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        T::read(&text).map(Self).map_err(D::Error::custom)
    }
}

impl<T: Written> JsonSchema for Text<T> {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({ "type": "string", "pattern": T::PATTERN });
        match T::PATTERN {
            Some(_) => or_interpolation(&mut schema),
            None => drop(schema.remove("pattern")),
        }
        schema
    }
}

/// Reads a [`Written`] value from its text, for `#[serde(deserialize_with)]`.
pub(crate) fn text<'de, D: Deserializer<'de>, T: Written>(deserializer: D) -> Result<T, D::Error> {
    Text::deserialize(deserializer).map(|Text(value)| value)
}

impl Written for Duration {
    const PATTERN: Option<&'static str> = Some("^([0-9]+[smhd])+$");

    fn read(text: &str) -> Result<Self, String> {
        duration(text).ok_or_else(String::new)
    }
}

/// An integer within bounds, both included.
pub(crate) struct Whole<const LEAST: u64, const MOST: u64>(pub u64);

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Json::deserialize(deserializer)?.as_u64();
        let number = number.filter(|number| (LEAST..=MOST).contains(number));
        number.map(Self).ok_or_else(|| D::Error::custom(""))
    }
}

impl<const LEAST: u64, const MOST: u64> JsonSchema for Whole<LEAST, MOST> {
    fn schema_name() -> Cow<'static, str> {
        "Whole".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({ "type": "integer", "minimum": LEAST });
        if MOST < u64::MAX {
            schema.insert("maximum".to_owned(), MOST.into());
        }
        or_interpolation(&mut schema);
        schema
    }
}

/// Allows an interpolation in place of the value.
pub(crate) fn or_interpolation(schema: &mut Schema) {
    let description = schema.remove("description");
    *schema = json_schema!({ "anyOf": [schema, { "$ref": "#/definitions/interpolation" }] });
    schema
        .ensure_object()
        .extend(description.map(|text| ("description".to_owned(), text)));
}

/// The keys of a struct that denies unknown fields.
pub(crate) fn keys<T: DeserializeOwned>() -> &'static [&'static str] {
    match read_keyed::<T>(&serde_json::json!({ "": null })).map_err(|error| error.mistake) {
        Err(Mistake::UnknownKey { known, .. }) => known,
        _ => &[],
    }
}
