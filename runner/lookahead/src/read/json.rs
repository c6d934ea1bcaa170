//! JSON: lines of objects, an array of objects, an object of columns, and an object of values by date.

use super::{Table, text_columns};
use crate::moment;
use arrow_array::RecordBatch;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;

/// An object whose keys keep their order.
#[derive(Clone, Debug, Default)]
pub struct Object(pub Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Object;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

/// Objects, each with its text: one on each line, or an array of them.
#[derive(Clone, Debug)]
pub struct JsonRows {
    pub rows: Vec<Object>,
    lines: Vec<String>,
    is_array: bool,
}

impl JsonRows {
    /// Reads lines of objects, or an array of them; `None` if it is neither.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        if let Ok(rows) = serde_json::from_str::<Vec<Object>>(text) {
            let lines = rows.iter().map(|row| written(row, &[])).collect();
            let is_array = true;
            return Some(Self { rows, lines, is_array });
        }
        let lines: Vec<String> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(str::to_owned)
            .collect();
        let rows = lines
            .iter()
            .map(|line| serde_json::from_str(line).ok())
            .collect::<Option<_>>()?;
        let is_array = false;
        Some(Self { rows, lines, is_array })
    }

    /// The columns, in the order in which they first appear.
    pub fn batch(&self) -> RecordBatch {
        objects(&self.rows)
    }

    /// The text of a row, as it stands.
    pub fn line(&self, row: usize) -> &str {
        &self.lines[row]
    }

    /// The text of a row with replaced fields of those that it has.
    pub fn changed(&self, row: usize, changes: &[(String, Value)]) -> String {
        written(&self.rows[row], changes)
    }

    /// The text with these lines.
    pub fn write<'a>(&self, lines: impl Iterator<Item = &'a str>) -> Vec<u8> {
        let lines: Vec<&str> = lines.collect();
        match self.is_array {
            true => format!("[{}]\n", lines.join(",\n")).into_bytes(),
            false => lines
                .iter()
                .flat_map(|line| [*line, "\n"])
                .collect::<String>()
                .into_bytes(),
        }
    }
}

fn written(row: &Object, changes: &[(String, Value)]) -> String {
    let new = |name: &String| {
        changes
            .iter()
            .find(|(changed, _)| changed == name)
            .map(|(_, value)| value)
    };
    let field = |(name, old): &(String, Value)| {
        format!("{}: {}", Value::from(name.as_str()), new(name).unwrap_or(old))
    };
    let fields: Vec<String> = row.0.iter().map(field).collect();
    format!("{{{}}}", fields.join(", "))
}

/// A value as a cell: texts as they are, others as JSON.
pub fn cell(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn objects(rows: &[Object]) -> RecordBatch {
    let mut names: Vec<String> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (name, _) in rows.iter().flat_map(|row| &row.0) {
        places.entry(name).or_insert_with(|| {
            names.push(name.clone());
            names.len() - 1
        });
    }
    let mut columns: Vec<(String, Vec<Option<String>>)> = names
        .iter()
        .map(|name| (name.clone(), vec![None; rows.len()]))
        .collect();
    for (i, row) in rows.iter().enumerate() {
        for (name, value) in &row.0 {
            columns[places[name.as_str()]].1[i] = cell(value);
        }
    }
    text_columns(columns)
}

/// The tables of a JSON text.
///
/// # Errors
/// When it is no JSON.
pub fn tables(bytes: &[u8]) -> Result<Vec<Table>, String> {
    let table = |batch| Table::new(String::new(), batch);
    if let Ok(rows) = serde_json::from_slice::<Vec<Object>>(bytes) {
        return Ok(vec![table(objects(&rows))]);
    }
    let Ok(object) = serde_json::from_slice::<Object>(bytes) else {
        if let Some(lines) = JsonRows::read(bytes) {
            return Ok(vec![table(lines.batch())]);
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|err| format!("is no JSON: {err}"))?;
        // Any other array, row by row.
        let rows = value.as_array().cloned().unwrap_or_else(|| vec![value]);
        let cells = rows.iter().map(cell).collect();
        return Ok(vec![Table::undated(
            String::new(),
            text_columns(vec![("value".to_owned(), cells)]),
        )]);
    };
    let keys: Vec<&str> = object.0.iter().map(|(key, _)| key.as_str()).collect();
    if keys.len() > 1 && moment::of_texts(&keys, false).is_some() {
        let key = keys.iter().map(|key| Some((*key).to_owned())).collect();
        let value = object.0.iter().map(|(_, value)| cell(value)).collect();
        return Ok(vec![table(text_columns(vec![
            ("key".to_owned(), key),
            ("value".to_owned(), value),
        ]))]);
    }
    let lengths: Vec<Option<usize>> = object
        .0
        .iter()
        .map(|(_, value)| value.as_array().map(Vec::len))
        .collect();
    if lengths
        .first()
        .is_some_and(|first| first.is_some() && lengths.iter().all(|length| length == first))
    {
        let column = |value: &Value| {
            value
                .as_array()
                .map(|cells| cells.iter().map(cell).collect())
                .unwrap_or_default()
        };
        let columns = object
            .0
            .iter()
            .map(|(name, value)| (name.clone(), column(value)))
            .collect();
        return Ok(vec![table(text_columns(columns))]);
    }
    Ok(vec![Table::undated(String::new(), objects(&[object]))])
}
