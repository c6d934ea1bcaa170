//! The columns of factors: a list of names, or a map from the features' names to those in the files.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, MapAccess, SeqAccess};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The columns to read: `[value, quality]`, which keep their names, or `{ value: "B/M", quality: QMJ }`, by
/// the names that they are given. Empty for all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FactorColumns(pub(super) Vec<FactorColumn>);

/// A column of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FactorColumn {
    /// The name of the feature.
    pub ours: String,
    /// The name in the files.
    pub theirs: String,
}

impl Serialize for FactorColumns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.iter().all(|column| column.ours == column.theirs) {
            return serializer.collect_seq(self.0.iter().map(|column| &column.ours));
        }
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for column in &self.0 {
            map.serialize_entry(&column.ours, &column.theirs)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for FactorColumns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = FactorColumns;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a list of columns, or a map from names of features to columns")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<FactorColumns, A::Error> {
                let mut columns = Vec::new();
                while let Some(name) = list.next_element::<String>()? {
                    columns.push(FactorColumn {
                        ours: name.clone(),
                        theirs: name,
                    });
                }
                Ok(FactorColumns(columns))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FactorColumns, A::Error> {
                let mut columns = Vec::new();
                while let Some((ours, theirs)) = map.next_entry()? {
                    columns.push(FactorColumn { ours, theirs });
                }
                // The order of keys is no setting.
                columns.sort_by(|a: &FactorColumn, b| a.ours.cmp(&b.ours));
                Ok(FactorColumns(columns))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for FactorColumns {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FactorColumns".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<String>();
        schemars::json_schema!({
            "description": "A list of columns, or a map from names of features to columns.",
            "anyOf": [{ "type": "array", "items": name.clone() }, { "type": "object",
                "additionalProperties": name }]
        })
    }
}
