//! JSON documents as tables of text.

use crate::unpack::Packed;
use datasets::layout::JsonRows;
use serde_json::{Map, Value};
use stages_core::StageError;
use std::collections::HashMap;

/// The rows that are searched for the names of columns when a layout is recognised.
const SEARCHED: usize = 200;

/// Reads a document, or one in each line as a list.
///
/// # Errors
/// When it is damaged.
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

/// A row of a document, with its key where the rows are a map.
type Row<'d> = (Option<&'d str>, &'d Map<String, Value>);

/// The rows of a document; `None` where there are none at that place.
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

/// Passes the values of an object with their dotted names; lists are left out.
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

/// The fields of a document outside its rows, under names with `$.` before them.
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

/// The names of the columns of a document; `None` where it has no rows in this form.
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

/// The document as CSV: one line a row, its values as text.
///
/// # Errors
/// When it has no rows in this form.
pub(crate) fn csv(packed: &Packed, form: &JsonRows) -> Result<Vec<u8>, StageError> {
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
    let mut names: Vec<String> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut table: Vec<Vec<String>> = Vec::with_capacity(rows.len());
    let outside = outside(&document, form);
    for (key, row) in rows {
        let mut line = vec![String::new(); names.len()];
        let mut put = |name: String, value: String| {
            let at = *places.entry(name).or_insert_with_key(|name| {
                names.push(name.clone());
                names.len() - 1
            });
            if line.len() <= at {
                line.resize(at + 1, String::new());
            }
            line[at] = value;
        };
        flatten("", row, &mut |name, value| put(name, text(value)));
        if let Some(key) = key {
            put(form.key.clone(), key.to_owned());
        }
        for (name, value) in &outside {
            put(name.clone(), value.clone());
        }
        table.push(line);
    }
    let mut out = Vec::new();
    write_line(&mut out, names.iter().map(String::as_str), names.len());
    for line in &table {
        write_line(&mut out, line.iter().map(String::as_str), names.len());
    }
    Ok(out)
}

/// Writes a line of CSV, with empty fields up to `width`.
pub(crate) fn write_line<'t>(out: &mut Vec<u8>, fields: impl Iterator<Item = &'t str>, width: usize) {
    let mut written = 0;
    for field in fields {
        if written > 0 {
            out.push(b',');
        }
        written += 1;
        if field.contains([',', '"', '\n', '\r', ';', '\t', '|']) {
            out.push(b'"');
            // A line break within a field would move the rows of messages.
            out.extend_from_slice(field.replace('"', "'").replace(['\n', '\r'], " ").as_bytes());
            out.push(b'"');
        } else {
            out.extend_from_slice(field.as_bytes());
        }
    }
    out.extend(std::iter::repeat_n(b',', width.saturating_sub(written.max(1))));
    out.push(b'\n');
}
