//! Reads typed values from JSON, with the place and the kind of a mistake.
//!
//! `serde_json` reports a mistake as an English sentence. Here it is data: the path of the field, and what is
//! wrong with it, from which the pipeline's reader makes a message at a line of the file.

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};
use std::fmt;

/// The kind of a mistake in a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mistake {
    /// An unknown key, with the known ones; the path ends at the map.
    UnknownKey {
        /// The key.
        name: String,
        /// The known keys.
        known: &'static [&'static str],
    },
    /// A required key that is missing; the path ends at the map.
    MissingKey(&'static str),
    /// A text that is none of the allowed ones.
    UnknownValue {
        /// The text.
        name: String,
        /// The allowed texts.
        known: &'static [&'static str],
    },
    /// A value of the wrong type or out of range, or a list of the wrong length.
    Type {
        /// The value found, in serde's words, or the length of a list of the wrong length.
        found: Result<String, usize>,
        /// The expected type: Rust's name of it, or a noun phrase.
        wanted: String,
    },
    /// Any other mistake: the message says it all.
    #[default]
    Other,
}

/// A mistake and its place.
#[derive(Debug)]
pub struct ReadError {
    /// The path of the value, such as `slate.deltas[2]`; empty for the whole value.
    pub path: String,
    /// The kind of the mistake.
    pub mistake: Mistake,
    /// The message, in serde's words.
    pub message: String,
}

/// Reads a value, accepting a struct as a map only, and never as a list of its fields.
///
/// # Errors
/// The first mistake.
pub fn read<T: DeserializeOwned>(value: &Value) -> Result<T, ReadError> {
    T::deserialize(Reader(value))
}

impl ReadError {
    fn new(mistake: Mistake, message: String) -> Self {
        Self {
            path: String::new(),
            mistake,
            message,
        }
    }

    fn below(mut self, parent: &str) -> Self {
        let is_direct = self.path.is_empty() || self.path.starts_with('[');
        self.path = format!("{parent}{}{}", if is_direct { "" } else { "." }, self.path);
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadError {}

impl serde::de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Mistake::Other, message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let mistake = Mistake::Type {
            found: Ok(found.to_string()),
            wanted: wanted.to_string(),
        };
        Self::new(mistake, format!("invalid type: {found}, expected {wanted}"))
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let mistake = Mistake::Type {
            found: Ok(found.to_string()),
            wanted: wanted.to_string(),
        };
        Self::new(mistake, format!("invalid value: {found}, expected {wanted}"))
    }

    fn invalid_length(len: usize, wanted: &dyn Expected) -> Self {
        let mistake = Mistake::Type {
            found: Err(len),
            wanted: wanted.to_string(),
        };
        Self::new(mistake, format!("invalid length {len}, expected {wanted}"))
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        let mistake = Mistake::UnknownValue {
            name: name.to_owned(),
            known,
        };
        Self::new(mistake, format!("unknown variant `{name}`, expected {}", one_of(known)))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        let mistake = Mistake::UnknownKey {
            name: name.to_owned(),
            known,
        };
        Self::new(mistake, format!("unknown field `{name}`, expected {}", one_of(known)))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(Mistake::MissingKey(name), format!("missing field `{name}`"))
    }
}

/// The alternatives, phrased as serde lists them.
fn one_of(known: &[&str]) -> String {
    match known {
        [] => "no fields".to_owned(),
        [name] => format!("`{name}`"),
        names => format!("one of `{}`", names.join("`, `")),
    }
}

/// The number in a text whose digits are grouped by `_`, such as `200_000`: read where a number is expected.
pub fn grouped_number(text: &str) -> Option<serde_json::Number> {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let mut groups = text.match_indices('_').map(|(at, _)| at).peekable();
    groups.peek()?;
    if !groups.all(|at| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1))) || text.contains(['x', 'o']) {
        return None;
    }
    let plain = text.replace('_', "");
    let plain = plain.strip_prefix('+').unwrap_or(&plain);
    match (plain.parse::<u64>(), plain.parse::<i64>()) {
        (Ok(value), _) => Some(value.into()),
        (_, Ok(value)) => Some(value.into()),
        _ => serde_json::Number::from_f64(plain.parse().ok()?),
    }
}

#[derive(Clone, Copy)]
struct Reader<'de>(&'de Value);

impl<'de> Reader<'de> {
    /// Reads a value where a number is expected.
    fn number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0.as_str().and_then(grouped_number) {
            Some(number) => visit_number(&number, visitor),
            None => self.deserialize_any(visitor),
        }
    }
}

fn visit_number<'de, V: Visitor<'de>>(
    number: &serde_json::Number,
    visitor: V,
) -> Result<V::Value, ReadError> {
    match (number.as_u64(), number.as_i64()) {
        (Some(value), _) => visitor.visit_u64(value),
        (_, Some(value)) => visitor.visit_i64(value),
        _ => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Deserializes numbers, whose digits may be grouped.
macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            self.number(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => visit_number(number, visitor),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => {
                let mut access = Items { items, next: 0 };
                let value = visitor.visit_seq(&mut access)?;
                if access.next < items.len() {
                    return Err(ReadError::invalid_length(items.len(), &"fewer items"));
                }
                Ok(value)
            }
            Value::Object(entries) => visitor.visit_map(Entries {
                rest: entries.iter(),
                value: None,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(Variant { name, value: None }),
            Value::Object(entries) => match single(entries) {
                Some((name, value)) => visitor.visit_enum(Variant {
                    name,
                    value: Some(Reader(value)),
                }),
                None => Err(ReadError::invalid_value(Unexpected::Map, &"map with a single key")),
            },
            other => Err(ReadError::invalid_type(unexpected(other), &"string or map")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.0 {
            Value::Array(_) => Err(ReadError::invalid_type(Unexpected::Seq, &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    forward_to_deserialize_any! {
        bool char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map identifier
    }
}

fn single(entries: &Map<String, Value>) -> Option<(&str, &Value)> {
    let mut all = entries.iter();
    let (name, value) = all.next()?;
    all.next().is_none().then_some((name, value))
}

/// A value in the words of serde's errors.
pub fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => Unexpected::Unsigned(value),
            (_, Some(value)) => Unexpected::Signed(value),
            _ => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

struct Items<'de> {
    items: &'de [Value],
    next: usize,
}

impl<'de> SeqAccess<'de> for &mut Items<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some(item) = self.items.get(self.next) else {
            return Ok(None);
        };
        let at = self.next;
        self.next += 1;
        let value = seed.deserialize(Reader(item));
        value.map(Some).map_err(|err| err.below(&format!("[{at}]")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

struct Entries<'de> {
    rest: serde_json::map::Iter<'de>,
    value: Option<(&'de str, &'de Value)>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some((name, value)) = self.rest.next() else {
            return Ok(None);
        };
        self.value = Some((name, value));
        seed.deserialize(Name(name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ReadError> {
        let (name, value) = self
            .value
            .take()
            .ok_or_else(|| ReadError::custom("a value before its key"))?;
        seed.deserialize(Reader(value)).map_err(|err| err.below(name))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A key of a map: a text, or a number where the map has numbers as keys.
struct Name<'de>(&'de str);

impl<'de> Deserializer<'de> for Name<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_enum(Variant {
            name: self.0,
            value: None,
        })
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0.parse() {
            Ok(number) => visitor.visit_u64(number),
            Err(_) => visitor.visit_borrowed_str(self.0),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0.parse() {
            Ok(number) => visitor.visit_i64(number),
            Err(_) => visitor.visit_borrowed_str(self.0),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_i64(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i128 u8 u16 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Variant<'de> {
    name: &'de str,
    value: Option<Reader<'de>>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        let variant = seed.deserialize(self.name.into_deserializer())?;
        Ok((variant, self))
    }
}

impl<'de> Variant<'de> {
    fn inner<T>(
        self,
        wanted: &str,
        read: impl FnOnce(Reader<'de>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        match self.value {
            Some(value) => read(value).map_err(|err| err.below(self.name)),
            None => Err(ReadError::invalid_type(Unexpected::UnitVariant, &wanted)),
        }
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match self.value {
            Some(value) => {
                serde::Deserialize::deserialize(value).map_err(|err: ReadError| err.below(self.name))
            }
            None => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        self.inner("newtype variant", |reader| seed.deserialize(reader))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.inner("tuple variant", |reader| reader.deserialize_any(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.inner("struct variant", |reader| {
            reader.deserialize_struct("", fields, visitor)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};
    use serde_json::json;
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        whole: u8,
        #[serde(default)]
        ratio: Option<f64>,
        #[serde(default)]
        list: Vec<Choice>,
        #[serde(default)]
        by_year: BTreeMap<u32, [i64; 2]>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case", deny_unknown_fields)]
    enum Choice {
        None,
        Window(u32),
        Band { low: f32, high: f32 },
    }

    #[test]
    fn mistakes_have_a_place_and_a_kind() {
        let mistake = |value: Value| {
            let err = read::<Sample>(&value).unwrap_err();
            format!("{} | {:?} | {}", err.path, err.mistake, err.message)
        };
        let found = [
            json!({ "whole": 300 }),
            json!({ "whole": "1" }),
            json!({ "ratio": 1 }),
            json!({ "whole": 1, "rate": 2 }),
            json!({ "whole": 1, "list": ["none", "widow"] }),
            json!({ "whole": 1, "list": [{ "window": -1 }] }),
            json!({ "whole": 1, "list": [{ "band": { "low": 1, "top": 2 } }] }),
            json!({ "whole": 1, "list": ["band"] }),
            json!({ "whole": 1, "list": [{ "none": null, "window": 1 }] }),
            json!({ "whole": 1, "list": 3 }),
            json!({ "whole": 1, "by_year": { "2020": [1, 2, 3] } }),
            json!({ "whole": 1, "by_year": { "then": [1, 2] } }),
            json!([1, 0.5]),
            json!({ "whole": 1, "list": [{ "band": [1, 2] }] }),
        ]
        .map(mistake)
        .join("\n");
        insta::assert_snapshot!(found);
    }

    #[test]
    fn digits_may_be_grouped_where_a_number_is_expected() {
        let whole = |text: &str| read::<u64>(&json!(text)).ok();
        assert_eq!(whole("200_000"), Some(200_000));
        assert_eq!(whole("1_0"), Some(10));
        assert_eq!(read::<f64>(&json!("-1_000.5e-1")).ok(), Some(-100.05));
        assert_eq!(read::<Vec<i32>>(&json!(["-1_000", 3])).ok(), Some(vec![-1000, 3]));
        for text in ["200000", "_1", "1_", "1__0", "1_.0", "a_1", "0x1_0", "1_000k"] {
            assert_eq!(whole(text), None, "{text}");
        }
        assert_eq!(read::<String>(&json!("1_000")).ok().as_deref(), Some("1_000"));
    }

    proptest! {
        /// A value that is read is the one that `serde_json` reads, and what one refuses the other refuses.
        #[test]
        fn reads_as_serde_json_does(whole in -2i64..300, ratio: Option<f64>,
            windows in prop::collection::vec(any::<u32>(), 0..3),
            years in prop::collection::btree_map(1900u32..2100, any::<[i64; 2]>(), 0..3), extra: bool) {
            let mut list: Vec<Value> = windows.iter().map(|window| json!({ "window": window })).collect();
            list.extend([json!("none"), json!({ "band": { "low": 1, "high": 2.5 } })]);
            let mut value = json!({ "whole": whole, "ratio": ratio, "list": list, "by_year": years });
            if extra {
                value["extra"] = json!(1);
            }
            let known: Result<Sample, _> = serde_json::from_value(value.clone());
            prop_assert_eq!(read::<Sample>(&value).ok(), known.ok());
        }
    }
}
