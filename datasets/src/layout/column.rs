//! The source of one of our columns, as a layout file writes it.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// The source of one of our columns: a column of the file, with a unit, or a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ColumnSource {
    /// The name in the file's header.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub column: String,
    /// A value for every row, instead of a column.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// The factor of its numbers: 0.01 for percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<f64>,
    /// The number that its numbers are divided by: 10000 for prices in hundredths of a cent, 1000000000 for
    /// billionths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per: Option<f64>,
    /// The column that its numbers are divided by.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub divided_by: String,
    /// Hours that are added to its times: the length of bars, where the file states their beginning. Of
    /// `time` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plus_hours: Option<f64>,
    /// If true, a file need not have it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// The sources of one of our columns: a name, a map, or a list of these, of which the first counts that a
/// file has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnSources(pub Vec<ColumnSource>);

impl ColumnSource {
    /// A column, unchanged.
    pub fn named(column: &str) -> Self {
        Self {
            column: column.to_owned(),
            ..Self::default()
        }
    }

    fn is_plain(&self) -> bool {
        *self == Self::named(&self.column)
    }
}

/// A name or a map.
struct One(ColumnSource);

impl Serialize for One {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.is_plain() {
            true => serializer.serialize_str(&self.0.column),
            false => self.0.serialize(serializer),
        }
    }
}

impl Serialize for ColumnSources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => One(one.clone()).serialize(serializer),
            many => serializer.collect_seq(many.iter().cloned().map(One)),
        }
    }
}

struct Sources;

impl<'de> de::Visitor<'de> for Sources {
    type Value = ColumnSources;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the name of a column, `{ column: NAME, … }` or a list of these")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(ColumnSources(vec![ColumnSource::named(name)]))
    }

    fn visit_i64<E: de::Error>(self, name: i64) -> Result<Self::Value, E> {
        self.visit_str(&name.to_string())
    }

    fn visit_u64<E: de::Error>(self, name: u64) -> Result<Self::Value, E> {
        self.visit_str(&name.to_string())
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let one = ColumnSource::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(ColumnSources(vec![one]))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(ColumnSources(some)) = seq.next_element()? {
            all.extend(some);
        }
        Ok(ColumnSources(all))
    }
}

impl<'de> Deserialize<'de> for ColumnSources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Sources)
    }
}

impl JsonSchema for ColumnSources {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ColumnSources".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let map = generator.subschema_for::<ColumnSource>();
        schemars::json_schema!({
            "description": "The name of a column of the file; or a map with its unit; or a list of these, \
            of which the first counts that a file has.",
            "anyOf": [
                { "type": "string" },
                map.clone(),
                { "type": "array", "items": { "anyOf": [{ "type": "string" }, map] } }
            ]
        })
    }
}

/// The columns that are in percent: all rates or none, or a list of our columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Percent {
    /// All rates, or none.
    All(bool),
    /// Our columns.
    Some(Vec<String>),
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All(all) => serializer.serialize_bool(*all),
            Self::Some(some) => some.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Percent;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("true, false or a list of columns")
            }
            fn visit_bool<E: de::Error>(self, all: bool) -> Result<Percent, E> {
                Ok(Percent::All(all))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Percent, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(Percent::Some)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Percent {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Percent".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "true or false for rates; a list of our columns for others.",
            "anyOf": [{ "type": "boolean" }, { "type": "array", "items": { "type": "string" } }]
        })
    }
}
