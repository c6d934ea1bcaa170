//! The source of one of our columns, as a layout file writes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

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

crate::as_forms! {
    ColumnSources, "the name of a column, `{ column: NAME, … }` or a list of these";
    schema(generator) "The name of a column of the file; or a map with its unit; or a list of these, of which the \
        first counts that a file has.": [
        { "type": "string" },
        generator.subschema_for::<ColumnSource>(),
        { "type": "array", "items":
            { "anyOf": [{ "type": "string" }, generator.subschema_for::<ColumnSource>()] } }
    ];
    text => |name: &str| ColumnSources(vec![ColumnSource::named(name)]);
    whole => |name: i128| ColumnSources(vec![ColumnSource::named(&name.to_string())]);
    map as ColumnSource => |one| ColumnSources(vec![one]);
    list as Vec<ColumnSources> => |some| ColumnSources(some.into_iter().flat_map(|some| some.0).collect());
}

/// The columns that are in percent: all rates or none, or a list of our columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Percent {
    /// All rates, or none.
    All(bool),
    /// Our columns.
    Some(Vec<String>),
}

crate::as_forms! {
    Percent, "true, false or a list of columns";
    schema(_generator) "true or false for rates; a list of our columns for others.":
        [{ "type": "boolean" }, { "type": "array", "items": { "type": "string" } }];
    flag => Percent::All;
    list as Vec<String> => Percent::Some;
}
