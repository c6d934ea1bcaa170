//! Types of values in the file that serde reads: texts, names, integers within bounds, lists.

use crate::text::units::{duration, is_name, is_variable, size};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Number, Value as Json};
use stages_core::Mistake;
use stages_core::read::{grouped_number, read, unexpected};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

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

/// The name of a stage, a policy or an alias.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", extend("pattern" = "^[A-Za-z_][A-Za-z0-9_-]*$"), inline, description = "")]
pub struct Name(pub String);

impl TryFrom<String> for Name {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        const HINT: &str =
            ", not a name\na name consists of letters, digits, `_` and `-`, and begins with a letter";
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

/// A value whose fields are checked together once they are read. Its type derives `Deserialize` with
/// `#[serde(remote = "Self")]`, and [`checked`] implements the trait.
pub(crate) trait Checked: Sized {
    /// Returns the value, or the error message and its hint.
    fn check(self) -> Result<Self, &'static str>;
}

/// Implements `Deserialize` for a [`Checked`] type.
macro_rules! checked {
    ($type:ty) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Checked::check(Self::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use checked;

/// Reads a [`Written`] value from its text, for `#[serde(deserialize_with)]`.
pub(crate) fn text<'de, D: Deserializer<'de>, T: Written>(deserializer: D) -> Result<T, D::Error> {
    Text::deserialize(deserializer).map(|Text(value)| value)
}

/// Reads a [`Written`] value that may be absent, for `#[serde(default, deserialize_with)]`.
pub(crate) fn some_text<'de, D: Deserializer<'de>, T: Written>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    text(deserializer).map(Some)
}

impl Written for Duration {
    const PATTERN: Option<&'static str> = Some("^([0-9]+[smhd])+$");

    fn read(text: &str) -> Result<Self, String> {
        duration(text).ok_or_else(String::new)
    }
}

/// A size in bytes.
pub(crate) struct Size(pub u64);

impl Written for Size {
    const PATTERN: Option<&'static str> = Some("^[0-9.]+ *([KMGT]i?B|kB|B)$");

    fn read(text: &str) -> Result<Self, String> {
        size(text).map(Self).ok_or_else(String::new)
    }
}

/// An integer within bounds, both included.
pub(crate) struct Whole<const LEAST: u64, const MOST: u64>(pub u64);

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = some_number(&Json::deserialize(deserializer)?).and_then(|number| number.as_u64());
        let number = number.filter(|number| (LEAST..=MOST).contains(number));
        number.map(Self).ok_or_else(|| D::Error::custom(""))
    }
}

/// The number that a value is, also with digits grouped by `_`.
pub(crate) fn some_number(value: &Json) -> Option<Number> {
    match value {
        Json::Number(number) => Some(number.clone()),
        Json::String(text) => grouped_number(text),
        _ => None,
    }
}

/// Reads a number, for `#[serde(deserialize_with)]`.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
    let value = Json::deserialize(deserializer)?;
    some_number(&value).ok_or_else(|| D::Error::invalid_type(unexpected(&value), &"a JSON number"))
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
    match read::<T>(&serde_json::json!({ "": null })).map_err(|error| error.mistake) {
        Err(Mistake::UnknownKey { known, .. }) => known,
        _ => &[],
    }
}
