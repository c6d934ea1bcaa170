//! The columns of factors: a list of names, or a map from the features' names to those in the files.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

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
        serializer.collect_map(self.0.iter().map(|column| (&column.ours, &column.theirs)))
    }
}

datasets::as_forms! {
    FactorColumns, "a list of columns, or a map from names of features to columns";
    schema(generator) "A list of columns, or a map from names of features to columns.": [
        { "type": "array", "items": generator.subschema_for::<String>() },
        { "type": "object", "additionalProperties": generator.subschema_for::<String>() }
    ];
    list as Vec<String> => |names| FactorColumns(
        names
            .into_iter()
            .map(|name| FactorColumn { ours: name.clone(), theirs: name })
            .collect(),
    );
    // The order of keys is no setting.
    map as BTreeMap<String, String> => |names| FactorColumns(
        names
            .into_iter()
            .map(|(ours, theirs)| FactorColumn { ours, theirs })
            .collect(),
    );
}
