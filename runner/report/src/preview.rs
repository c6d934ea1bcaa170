//! Human-readable previews: the first rows of tables and the first lines of text files.

use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ipc::reader::FileReader;
use cache::{Artifact, Entry, Store};
use runner_engine::{Failure, row, text};
use serde_json::{Value, json};
use stages_core::table;
use stages_table_file::packing;
use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};

/// The preview of a file of an artifact.
pub enum Preview {
    /// A table.
    Table {
        /// The path of its file.
        path: String,
        /// The number of its rows.
        rows: usize,
        /// Name, type and number of nulls of each column.
        columns: Vec<(String, String, usize)>,
        /// The first rows, as text in full precision; `None` for nulls.
        first: Vec<Vec<Option<String>>>,
    },
    /// Metrics: name, number of values and last value of each.
    Metrics(Vec<(String, usize, f64)>),
    /// The first lines of a text.
    Text(String),
    /// No file has a preview.
    Nothing,
}

/// Previews the first file of an artifact that has a preview.
pub fn preview(store: &Store, artifact: &Artifact, rows: usize) -> Result<Preview, Failure> {
    for entry in &artifact.entries {
        let found = match entry.path.rsplit_once('.').map(|(_, extension)| extension) {
            Some("parquet") => table_preview(entry, &table::from_parquet(store.blob(entry.blob)?)?, rows),
            Some("arrow") => match first_batch(store, entry)? {
                Some(batch) => table_preview(entry, &batch, rows),
                None => Preview::Nothing,
            },
            Some("jsonl") => metrics(&store.blob(entry.blob)?),
            Some("json") if entry.size < 1 << 20 => {
                let value: Option<Value> = serde_json::from_slice(&store.blob(entry.blob)?).ok();
                match value.and_then(|value| serde_json::to_string_pretty(&value).ok()) {
                    Some(text) => Preview::Text(head(&text, rows.max(8) * 5)),
                    None => Preview::Nothing,
                }
            }
            Some("txt" | "csv" | "md" | "log") => {
                let blob = store.blob(entry.blob)?;
                let text = String::from_utf8_lossy(&blob[..blob.len().min(TEXT)]).into_owned();
                Preview::Text(head(&text, rows))
            }
            Some("gz" | "zst")
                if is_text_file(entry.path.trim_end_matches(".gz").trim_end_matches(".zst")) =>
            {
                let mut start = Vec::new();
                let blob = store.blob(entry.blob)?;
                // A truncated or damaged file is shown as far as it can be unpacked.
                if let Ok(reader) = packing::decoder(packing::kind(&blob), &blob[..]) {
                    let _ = reader.take(TEXT as u64).read_to_end(&mut start);
                }
                match start.is_empty() {
                    true => Preview::Nothing,
                    false => Preview::Text(head(&String::from_utf8_lossy(&start), rows)),
                }
            }
            _ => Preview::Nothing,
        };
        if !matches!(found, Preview::Nothing) {
            return Ok(found);
        }
    }
    Ok(Preview::Nothing)
}

/// The maximum number of bytes of a text that are read.
const TEXT: usize = 1 << 16;

/// Returns true if a file of this name holds text once it is unpacked.
fn is_text_file(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("txt" | "csv" | "md" | "log" | "json" | "jsonl"))
}

fn head(text: &str, lines: usize) -> String {
    let mut shown: Vec<&str> = text.lines().take(lines + 1).collect();
    if shown.len() > lines {
        shown[lines] = "…";
    }
    shown.join("\n")
}

pub(crate) fn first_batch(store: &Store, entry: &Entry) -> Result<Option<RecordBatch>, Failure> {
    let blob = store.blob(entry.blob)?;
    let damaged = |err| Failure::caused(format!("`{}` is not an Arrow file", entry.path), &err);
    let reader = FileReader::try_new(Cursor::new(blob), None).map_err(damaged)?;
    reader.into_iter().next().transpose().map_err(damaged)
}

fn table_preview(entry: &Entry, batch: &RecordBatch, rows: usize) -> Preview {
    let columns = batch
        .schema()
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, column)| (field.name().clone(), type_name(field.data_type()), column.null_count()))
        .collect();
    let options = FormatOptions::default();
    let shown: Vec<_> = batch.columns().iter().map(table::displayed).collect();
    let formatters: Vec<Option<ArrayFormatter>> = shown
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).ok())
        .collect();
    let first = (0..batch.num_rows().min(rows))
        .map(|row| {
            let cell = |(formatter, column): (&Option<ArrayFormatter>, &ArrayRef)| {
                let text = |formatter: &ArrayFormatter| formatter.value(row).try_to_string().ok();
                let is_null = column.is_null(row);
                (!is_null).then(|| formatter.as_ref().and_then(text).unwrap_or_else(|| "?".to_owned()))
            };
            formatters.iter().zip(batch.columns()).map(cell).collect()
        })
        .collect();
    Preview::Table {
        path: entry.path.clone(),
        rows: batch.num_rows(),
        columns,
        first,
    }
}

pub(crate) fn type_name(ty: &arrow_schema::DataType) -> String {
    use arrow_schema::DataType;
    match ty {
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => "text".to_owned(),
        DataType::Date32 => "date".to_owned(),
        DataType::Timestamp(..) => "instant".to_owned(),
        DataType::Float64 => "float".to_owned(),
        DataType::Float32 => "float32".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

/// True for the types whose values are texts in JSON.
fn is_text(ty: &str) -> bool {
    matches!(ty, "text" | "date" | "instant")
}

/// A cell as JSON: numbers in full precision, except for NaN and the infinities, which JSON lacks.
fn value((cell, (_, ty, _)): (&Option<String>, &(String, String, usize))) -> Value {
    let Some(cell) = cell else { return Value::Null };
    let other = || {
        serde_json::from_str(cell)
            .ok()
            .filter(|value: &Value| value.is_number() || value.is_boolean())
    };
    let parsed = if is_text(ty) { None } else { other() };
    parsed.unwrap_or_else(|| json!(cell))
}

/// Truncates a cell for a table.
fn shorten(cell: String) -> String {
    match cell.parse::<f64>() {
        Ok(value) if cell.len() > 12 && cell.contains(['.', 'e']) => {
            if value != 0.0 && (value.abs() < 1e-3 || value.abs() >= 1e9) {
                format!("{value:.4e}")
            } else {
                format!("{value:.6}")
            }
        }
        _ if cell.chars().count() > 32 => cell.chars().take(31).chain(['…']).collect(),
        _ => cell,
    }
}

/// Metrics as JSON lines: objects with `name`, `step` and `value`.
fn metrics(bytes: &[u8]) -> Preview {
    let mut found: BTreeMap<String, (usize, f64)> = BTreeMap::new();
    for line in bytes.split(|&byte| byte == b'\n') {
        let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        if let (Some(name), Some(value)) = (fields.get("name").and_then(Value::as_str), fields.get("value")) {
            let series = found.entry(name.to_owned()).or_default();
            series.0 += 1;
            series.1 = value.as_f64().unwrap_or(f64::NAN);
        }
    }
    if found.is_empty() {
        return Preview::Text(head(&String::from_utf8_lossy(&bytes[..bytes.len().min(1 << 16)]), 8));
    }
    Preview::Metrics(found.into_iter().map(|(name, (n, last))| (name, n, last)).collect())
}

impl Preview {
    /// The preview as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Table {
                path,
                rows,
                columns,
                first,
            } => json!({
                "path": path,
                "rows": rows,
                "columns": columns
                    .iter()
                    .map(|(name, ty, nulls)| json!({ "name": name, "type": ty, "nulls": nulls }))
                    .collect::<Vec<_>>(),
                "first": first
                    .iter()
                    .map(|row| row.iter().zip(columns).map(value).collect())
                    .collect::<Vec<Vec<Value>>>(),
            }),
            Self::Metrics(series) => series
                .iter()
                .map(|(name, n, last)| json!({ "name": name, "values": n, "last": last }))
                .collect(),
            Self::Text(text) => json!({ "text": text }),
            Self::Nothing => Value::Null,
        }
    }

    /// The preview as text.
    pub fn to_text(&self) -> String {
        match self {
            Self::Table {
                path,
                rows,
                columns,
                first,
            } => {
                let schema: Vec<Vec<String>> =
                    columns.iter().map(|(name, ty, nulls)| row![name, ty, nulls]).collect();
                let cell = |cell: &Option<String>| cell.clone().map_or_else(|| "null".to_owned(), shorten);
                let first: Vec<Vec<String>> =
                    first.iter().map(|row| row.iter().map(cell).collect()).collect();
                let names: Vec<&str> = columns.iter().map(|(name, ..)| name.as_str()).collect();
                let right: Vec<usize> = (0..columns.len()).filter(|&i| !is_text(&columns[i].1)).collect();
                let schema = text::table(&["column", "type", "null"], &schema, &[2]);
                // Of wide tables the first columns: the schema names all.
                let all: Vec<usize> = (0..columns.len()).collect();
                let kept = text::fitting(&names, &first, &all);
                let first: Vec<Vec<String>> =
                    first.into_iter().map(|mut row| row.drain(..kept).collect()).collect();
                let more = match columns.len() - kept {
                    0 => String::new(),
                    more => format!("and {}: `--json` has them\n", text::count(more, "more column")),
                };
                format!(
                    "\n{path}: {rows} rows\n{schema}\n{}{more}",
                    text::table(&names[..kept], &first, &right)
                )
            }
            Self::Metrics(series) => {
                let rows = series.iter().map(|(name, n, last)| row![name, n, format!("{last:.6}")]);
                text::block(&["metric", "values", "last"], &rows.collect::<Vec<_>>(), &[1, 2])
            }
            Self::Text(text) => format!("\n{}\n", text.trim_end()),
            Self::Nothing => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BooleanArray, Date32Array, Float32Array, Float64Array, Int64Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn json_has_numbers_in_full_precision() {
        let columns: [(&str, ArrayRef); 6] = [
            (
                "float",
                Arc::new(Float64Array::from(vec![
                    Some(0.1 + 0.2),
                    None,
                    Some(f64::NAN),
                    Some(1e300),
                ])),
            ),
            ("single", Arc::new(Float32Array::from(vec![0.1, -2.5e-8, 3.0, 4.0]))),
            ("whole", Arc::new(Int64Array::from(vec![i64::MAX, -1, 0, 1]))),
            ("flag", Arc::new(BooleanArray::from(vec![true, false, true, false]))),
            ("text", Arc::new(StringArray::from(vec!["12", "true", "", "null"]))),
            ("date", Arc::new(Date32Array::from(vec![18_000, 0, 1, 2]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let entry = Entry {
            path: "t.parquet".to_owned(),
            size: 1,
            blob: cache::BlobDigest::from_bytes([0; 32]),
        };
        let shown = table_preview(&entry, &batch, 4);
        let expected = json!([
            [0.1 + 0.2, 0.1, i64::MAX, true, "12", "2019-04-14"],
            [null, -2.5e-8, -1, false, "true", "1970-01-01"],
            ["NaN", 3.0, 0, true, "", "1970-01-02"],
            [1e300, 4.0, 1, false, "null", "1970-01-03"],
        ]);
        assert_eq!(shown.to_json()["first"], expected);
        assert!(shown.to_text().contains("null"), "{}", shown.to_text());
    }
}
