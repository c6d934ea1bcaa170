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
    /// True where the rows are an object with a list for each column.
    pub columns: bool,
    /// The names of the values of rows that are lists; empty for objects.
    pub names: &'a [String],
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

/// The value at a path of names, and of places in lists.
fn find<'d>(document: &'d Value, path: &str) -> Option<&'d Value> {
    let names = path.split('.').filter(|name| !name.is_empty());
    names.into_iter().try_fold(document, |at, name| match at {
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        at => at.get(name),
    })
}

/// The columns of an object of lists under dotted names, those alone that are as long as the longest.
fn columns(at: &Value) -> Option<Vec<(String, &Vec<Value>)>> {
    fn walk<'v>(prefix: &str, value: &'v Value, found: &mut Vec<(String, &'v Vec<Value>)>) {
        let inner: Vec<(String, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), value)).collect(),
            Value::Array(list) if list.iter().all(|value| !value.is_object() && !value.is_array()) => {
                found.push((prefix.to_owned(), list));
                return;
            }
            Value::Array(list) => list
                .iter()
                .enumerate()
                .map(|(i, value)| (i.to_string(), value))
                .collect(),
            _ => return,
        };
        for (name, value) in inner {
            let dot = if prefix.is_empty() { "" } else { "." };
            walk(&format!("{prefix}{dot}{name}"), value, found);
        }
    }
    let mut found = Vec::new();
    at.is_object().then(|| walk("", at, &mut found))?;
    let longest = found.iter().map(|(_, list)| list.len()).max()?;
    found.retain(|(_, list)| list.len() == longest);
    Some(found)
}

/// The fields of an object of lists that are no lists: the same value in every row.
fn constants(at: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Some(object) = at.as_object() {
        flatten("", object, &mut |name, value| found.push((name, text(value))));
    }
    found
}

/// The rows of a document that are lists of as many values as there are names; `None` if not all are.
fn lists<'d>(document: &'d Value, place: Place<'_>) -> Option<Vec<&'d Vec<Value>>> {
    let list = find(document, place.rows)?.as_array().filter(|list| !list.is_empty())?;
    let row = |row: &'d Value| row.as_array().filter(|row| row.len() == place.names.len());
    list.iter().map(row).collect()
}

/// The rows of a document; `None` if there are none at the place.
fn rows<'d>(document: &'d Value, place: Place<'_>) -> Option<Vec<Row<'d>>> {
    match find(document, place.rows)? {
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

/// The column names of a document, or the first row's values where rows are lists; `None` if it has no rows
/// at the place.
pub fn names(document: &Value, place: Place<'_>) -> Option<Vec<String>> {
    if !place.names.is_empty() {
        return Some(lists(document, place)?.first()?.iter().map(text).collect());
    }
    if place.columns {
        let at = find(document, place.rows)?;
        let columns = columns(at)?.into_iter().map(|(name, _)| name);
        let constants = constants(at).into_iter().chain(outside(document, place));
        return Some(columns.chain(constants.map(|(name, _)| name)).collect());
    }
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
    let outside = outside(document, place);
    if !place.names.is_empty() {
        let rows = lists(document, place)?;
        let column = |(i, name): (usize, &String)| {
            (name.clone(), rows.iter().map(|row| Some(text(&row[i]))).collect())
        };
        return Some(batch(place.names.iter().enumerate().map(column).collect(), rows.len()));
    }
    if place.columns {
        let at = find(document, place.rows)?;
        let lists = columns(at)?;
        let count = lists.first().map_or(0, |(_, list)| list.len());
        let column =
            |(name, list): (String, &Vec<Value>)| (name, list.iter().map(|v| Some(text(v))).collect());
        let constant = |(name, value): (String, String)| (name, vec![Some(value); count]);
        let all = lists
            .into_iter()
            .map(column)
            .chain(constants(at).into_iter().chain(outside).map(constant));
        return Some(batch(all.collect(), count));
    }
    let rows = rows(document, place)?;
    let mut columns: Vec<(String, Vec<Option<String>>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
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
    Some(batch(columns, rows.len()))
}

/// A table of texts.
fn batch(columns: Vec<(String, Vec<Option<String>>)>, rows: usize) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
        .into_iter()
        .map(|(name, texts)| -> (Field, ArrayRef) {
            (
                Field::new(name, DataType::Utf8, true),
                Arc::new(StringArray::from(texts)),
            )
        })
        .unzip();
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
}
