//! JSON: lines of objects, an array of objects, an object of columns, and an object of values by date.

use super::{Form, Table, batch};
use crate::moment;
use arrow_array::{Array as _, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A JSON object whose keys keep their order.
#[derive(Clone, Debug, Default)]
struct Object(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Object;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                std::iter::from_fn(|| map.next_entry().transpose())
                    .collect::<Result<_, _>>()
                    .map(Object)
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

/// The form in which rows of JSON are written.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    /// True for an array, false for JSON lines.
    is_array: bool,
    columns: Vec<Cells>,
}

impl Style {
    /// True if a column holds nested or mixed values, which are stored as JSON text.
    pub(crate) fn is_json(&self, column: usize) -> bool {
        self.columns[column].is_json
    }
}

#[derive(Clone, Copy, Debug)]
struct Cells {
    /// True if some rows lack the field.
    is_sparse: bool,
    /// True for nested and mixed values, which are stored in the table as JSON text.
    is_json: bool,
}

fn cell(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Creates a column from values of one type; other values are stored as JSON text.
fn column(values: &[Option<&Value>]) -> (ArrayRef, Cells) {
    let is_sparse = values.iter().any(Option::is_none);
    let values = || values.iter().map(|value| value.filter(|value| !value.is_null()));
    let all = |is: fn(&Value) -> bool| values().flatten().all(is);
    let array: ArrayRef = if all(Value::is_string) {
        Arc::new(values().map(|value| value?.as_str()).collect::<StringArray>())
    } else if all(Value::is_boolean) {
        Arc::new(values().map(|value| value?.as_bool()).collect::<BooleanArray>())
    } else if all(Value::is_i64) {
        Arc::new(values().map(|value| value?.as_i64()).collect::<Int64Array>())
    } else if all(Value::is_number) {
        Arc::new(values().map(|value| value?.as_f64()).collect::<Float64Array>())
    } else {
        Arc::new(values().map(|value| Some(value?.to_string())).collect::<StringArray>())
    };
    let is_json = array.data_type() == &DataType::Utf8 && !all(Value::is_string);
    (array, Cells { is_sparse, is_json })
}

/// The columns, in the order in which they first appear.
fn objects(rows: &[Object], is_array: bool) -> (Form, RecordBatch) {
    let mut columns: Vec<(&str, Vec<Option<&Value>>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (i, row) in rows.iter().enumerate() {
        for (name, value) in &row.0 {
            let place = *places.entry(name).or_insert_with(|| {
                columns.push((name, vec![None; rows.len()]));
                columns.len() - 1
            });
            columns[place].1[i] = Some(value);
        }
    }
    let (mut styles, mut arrays) = (Vec::new(), Vec::new());
    for (name, values) in columns {
        let (array, cells) = column(&values);
        styles.push(cells);
        arrays.push((name.to_owned(), array));
    }
    let style = Style {
        is_array,
        columns: styles,
    };
    (Form::Json(style), batch(arrays, rows.len()))
}

/// Reads the table of a JSON text.
pub(super) fn read(bytes: &[u8]) -> Result<(Form, Table), String> {
    let dated = |(form, batch)| (form, Table::new(batch));
    if let Ok(rows) = serde_json::from_slice::<Vec<Object>>(bytes) {
        return Ok(dated(objects(&rows, true)));
    }
    let Ok(object) = serde_json::from_slice::<Object>(bytes) else {
        let lines = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.trim_ascii().is_empty());
        if let Ok(rows) = lines.map(serde_json::from_slice).collect::<Result<Vec<Object>, _>>() {
            return Ok(dated(objects(&rows, false)));
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|err| format!("is not JSON: {err}"))?;
        // Any other array is read row by row.
        let rows = value.as_array().cloned().unwrap_or_else(|| vec![value]);
        let cells = texts("value", rows.iter().map(cell));
        return Ok((Form::Fixed, Table::undated(batch(vec![cells], rows.len()))));
    };
    let (keys, values): (Vec<&str>, Vec<&Value>) =
        object.0.iter().map(|(key, value)| (key.as_str(), value)).unzip();
    if keys.len() > 1 && moment::text_dates(&keys, false).is_some() {
        let columns = vec![
            texts("key", keys.iter().map(|key| Some((*key).to_owned()))),
            texts("value", values.into_iter().map(cell)),
        ];
        return Ok((Form::Fixed, Table::new(batch(columns, keys.len()))));
    }
    let columns: Option<Vec<&Vec<Value>>> = values.iter().map(|value| value.as_array()).collect();
    if let Some(columns) = columns.filter(|columns| {
        !columns.is_empty() && columns.windows(2).all(|pair| pair[0].len() == pair[1].len())
    }) {
        let rows = columns[0].len();
        let columns = keys
            .iter()
            .zip(columns)
            .map(|(name, cells)| texts(name, cells.iter().map(cell)));
        return Ok((Form::Fixed, Table::new(batch(columns.collect(), rows))));
    }
    let (_, one) = objects(&[object], true);
    Ok((Form::Fixed, Table::undated(one)))
}

fn texts(name: &str, cells: impl Iterator<Item = Option<String>>) -> (String, ArrayRef) {
    (name.to_owned(), Arc::new(cells.collect::<StringArray>()))
}

/// Writes rows.
pub(super) fn write(style: &Style, batch: &RecordBatch) -> Result<Vec<u8>, String> {
    let schema = batch.schema();
    let mut rows = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let mut fields = Vec::new();
        for ((field, array), cells) in schema.fields().iter().zip(batch.columns()).zip(&style.columns) {
            if array.is_null(row) && cells.is_sparse {
                continue;
            }
            let text = super::cell(array, row).map_err(|err| err.to_string())?;
            let value = match array.data_type() {
                _ if array.is_null(row) => "null".to_owned(),
                DataType::Utf8 if !cells.is_json => Value::from(text).to_string(),
                _ => text,
            };
            fields.push(format!("{}: {value}", Value::from(field.name().as_str())));
        }
        rows.push(format!("{{{}}}", fields.join(", ")));
    }
    Ok(match style.is_array {
        true => format!("[{}]\n", rows.join(",\n")),
        false => rows.iter().flat_map(|row| [row, "\n"]).collect(),
    }
    .into_bytes())
}
