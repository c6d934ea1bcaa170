//! Conversion of JSON documents to tables of text.

use crate::unpack::{Packed, Part};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{DataType, Field, Schema};
use datasets::layout::JsonRows;
use serde_json::{Map, Value};
use stages_core::StageError;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of rows searched for column names when a layout is recognised.
const SEARCHED: usize = 200;

/// Parses a JSON document; JSON lines become a list.
pub(crate) fn document(packed: &Packed) -> Result<Value, StageError> {
    let text = packed.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&packed.bytes);
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_slice(text).into_iter::<Value>() {
        let value = value.map_err(|err| {
            StageError::new(format!("cannot read `{}`: {err}", packed.place))
                .hint("the JSON document may be damaged or incomplete")
        })?;
        values.push(value);
    }
    match values.len() {
        1 => Ok(values.remove(0)),
        _ => Ok(Value::Array(values)),
    }
}

/// A row of a document, with its key if the rows are a map.
type Row<'d> = (Option<&'d str>, &'d Map<String, Value>);

/// The rows of a document; `None` if there are none at the place that `form` states.
fn rows<'d>(document: &'d Value, form: &JsonRows) -> Option<Vec<Row<'d>>> {
    let mut at = document;
    for name in form.rows.split('.').filter(|name| !name.is_empty()) {
        at = at.get(name)?;
    }
    match at {
        Value::Array(list) => list.iter().map(|row| Some((None, row.as_object()?))).collect(),
        Value::Object(map) if !form.key.is_empty() => map
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
fn outside(document: &Value, form: &JsonRows) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let Some(object) = document.as_object() else {
        return found;
    };
    let rows = format!("$.{}", form.rows);
    let mut take = |name: String, value: &Value| {
        if form.rows.is_empty() || (name != rows && !name.starts_with(&format!("{rows}."))) {
            found.push((name, text(value)));
        }
    };
    if !form.rows.is_empty() {
        flatten("$.", object, &mut take);
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

/// The column names of a document; `None` if it has no rows in this form.
pub(crate) fn names(document: &Value, form: &JsonRows) -> Option<Vec<String>> {
    let rows = rows(document, form)?;
    let mut names: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (_, row) in rows.iter().take(SEARCHED) {
        flatten("", row, &mut |name, _| {
            if seen.insert(name.clone()) {
                names.push(name);
            }
        });
    }
    if !form.key.is_empty() {
        names.push(form.key.clone());
    }
    names.extend(outside(document, form).into_iter().map(|(name, _)| name));
    Some(names)
}

/// The rows of a document as columns of text.
pub(crate) fn table(packed: &Packed, form: &JsonRows) -> Result<Part, StageError> {
    let document = document(packed)?;
    let rows = rows(&document, form).ok_or_else(|| {
        let place = if form.rows.is_empty() {
            "the document"
        } else {
            form.rows.as_str()
        };
        StageError::new(format!("`{}`: `{place}` is no list of objects", packed.place)).hint(
            "`json: { rows: data.options }` of the layout says where the rows are; `key` names the \
                keys of a map",
        )
    })?;
    let mut columns: Vec<(String, Vec<Option<String>>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let outside = outside(&document, form);
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
            put(form.key.clone(), (*key).to_owned());
        }
        for (name, value) in &outside {
            put(name.clone(), value.clone());
        }
    }
    let fields = columns.iter().map(|(name, _)| Field::new(name, DataType::Utf8, true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let (header, columns): (Vec<String>, Vec<_>) = columns.into_iter().unzip();
    let arrays = columns
        .into_iter()
        .map(|texts| Arc::new(StringArray::from(texts)) as ArrayRef);
    Ok(Part {
        columns: (0..header.len()).collect(),
        header,
        batch: RecordBatch::try_new_with_options(schema, arrays.collect(), &options)?,
    })
}
