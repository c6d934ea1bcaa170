//! JSON documents and JSON lines as tables of text.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The number of rows searched for column names when a layout is recognised.
const SEARCHED: usize = 200;

/// The place of the rows in a document.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The path to a list of objects, or to a map from names to objects: names separated by dots; empty for
    /// the document itself.
    pub rows: &'a str,
    /// The name of the column for the keys of a map; empty for a list.
    pub key: &'a str,
}

/// Parses a JSON document; JSON lines become a list.
///
/// # Errors
/// The place of the first mistake.
pub fn document(text: &[u8]) -> serde_json::Result<Value> {
    let values = serde_json::Deserializer::from_slice(crate::text::text_of(text)).into_iter();
    let mut values: Vec<Value> = values.collect::<Result<_, _>>()?;
    Ok(match values.len() {
        1 => values.remove(0),
        _ => Value::Array(values),
    })
}

/// A row of a document, with its key if the rows are a map.
type Row<'d> = (Option<&'d str>, &'d Map<String, Value>);

/// The rows of a document; `None` if there are none at the place.
fn rows<'d>(document: &'d Value, place: Place<'_>) -> Option<Vec<Row<'d>>> {
    let mut at = document;
    for name in place.rows.split('.').filter(|name| !name.is_empty()) {
        at = at.get(name)?;
    }
    match at {
        Value::Array(list) => list.iter().map(|row| Some((None, row.as_object()?))).collect(),
        Value::Object(map) if !place.key.is_empty() => map
            .iter()
            .map(|(key, row)| Some((Some(key.as_str()), row.as_object()?)))
            .collect(),
        _ => None,
    }
}

/// Passes the values of an object to `take` under dotted names; lists are left out.
fn flatten<'v>(prefix: &str, object: &'v Map<String, Value>, take: &mut impl FnMut(String, &'v Value)) {
    for (name, value) in object {
        let name = format!("{prefix}{name}");
        match value {
            Value::Object(inner) => flatten(&format!("{name}."), inner, take),
            Value::Array(_) => {}
            value => take(name, value),
        }
    }
}

/// The fields of a document outside its rows, with names prefixed by `$.`.
fn outside(document: &Value, place: Place<'_>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let (Some(object), false) = (document.as_object(), place.rows.is_empty()) {
        let (rows, within) = (format!("$.{}", place.rows), format!("$.{}.", place.rows));
        flatten("$.", object, &mut |name, value| {
            if name != rows && !name.starts_with(&within) {
                found.push((name, text(value)));
            }
        });
    }
    found
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The column names of a document; `None` if it has no rows at the place.
pub fn names(document: &Value, place: Place<'_>) -> Option<Vec<String>> {
    let (mut names, mut seen) = (Vec::new(), HashSet::new());
    for (_, row) in rows(document, place)?.iter().take(SEARCHED) {
        flatten("", row, &mut |name, _| {
            if seen.insert(name.clone()) {
                names.push(name);
            }
        });
    }
    if !place.key.is_empty() {
        names.push(place.key.to_owned());
    }
    names.extend(outside(document, place).into_iter().map(|(name, _)| name));
    Some(names)
}

/// The rows of a document as columns of text; `None` if it has no rows at the place.
pub fn table(document: &Value, place: Place<'_>) -> Option<Result<RecordBatch, ArrowError>> {
    let rows = rows(document, place)?;
    let mut columns: Vec<(String, Vec<Option<String>>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let outside = outside(document, place);
    for (at, (key, row)) in rows.iter().enumerate() {
        let mut put = |name: String, value: String| {
            let place = *places.entry(name).or_insert_with_key(|name| {
                columns.push((name.clone(), vec![None; rows.len()]));
                columns.len() - 1
            });
            columns[place].1[at] = Some(value);
        };
        flatten("", row, &mut |name, value| put(name, text(value)));
        if let Some(key) = key {
            put(place.key.to_owned(), (*key).to_owned());
        }
        for (name, value) in &outside {
            put(name.clone(), value.clone());
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
        .into_iter()
        .map(|(name, texts)| -> (Field, ArrayRef) {
            (
                Field::new(name, DataType::Utf8, true),
                Arc::new(StringArray::from(texts)),
            )
        })
        .unzip();
    Some(RecordBatch::try_new_with_options(
        Arc::new(Schema::new(fields)),
        arrays,
        &options,
    ))
}
