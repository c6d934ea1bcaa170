//! Tables as bytes: Parquet (zstd, computed floats as they are) for data sets, Arrow IPC for the lookup
//! tables of training.

use crate::error::StageError;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Float64Array, RecordBatch, RecordBatchReader as _,
    StringArray, TimestampMicrosecondArray,
};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use cache::Blob;
use datasets::schema::{Column, FEATURES, SNAPSHOT, Type};
use datasets::{Date, SnapshotTime};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::arrow_writer::compute_leaves;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use std::ops::Range;
use std::sync::Arc;

/// The Arrow type of a column.
pub fn data_type(ty: Type) -> DataType {
    match ty {
        Type::Text => DataType::Utf8,
        Type::Date => DataType::Date32,
        Type::Instant => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Type::Float => DataType::Float64,
        Type::Code => DataType::UInt8,
        Type::Bool => DataType::Boolean,
    }
}

/// The Arrow schema of a list of columns.
pub fn schema(columns: &[Column]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// The Arrow field of a column.
pub fn field(column: &Column) -> Field {
    Field::new(column.name, data_type(column.ty), column.nullable)
}

/// Encodes a table as Parquet. The bytes are a function of the table.
pub fn to_parquet(batch: &RecordBatch) -> Result<Vec<u8>, StageError> {
    encode(batch, properties())
}

/// Encodes a table as [`to_parquet`] does, but the floats that `is_plain` names as they are: where hardly two
/// are equal, a dictionary makes them larger, and a compressor finds almost nothing for nine tenths of the
/// time.
pub fn plain_to_parquet(batch: &RecordBatch, is_plain: impl Fn(&str) -> bool) -> Result<Vec<u8>, StageError> {
    encode(batch, plain(&batch.schema(), is_plain))
}

/// The origin of a column of a table that extends another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The other table has it, row for row.
    Source,
    /// It is new, and its values repeat.
    New,
    /// It is new, and hardly two of its floats are equal: see [`plain_to_parquet`].
    Plain,
}

/// Encodes a table that extends the Parquet table `source`. Columns of that are copied as they are encoded
/// there, where they are stored alike.
///
/// # Errors
/// When `source` is not Parquet, or has another number of rows.
pub fn extended_to_parquet(
    batch: &RecordBatch,
    source: Blob,
    origin: impl Fn(&str) -> Origin,
) -> Result<Vec<u8>, StageError> {
    let source = Bytes::from_owner(source);
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
    let read = ArrowReaderMetadata::load(&source, options)?;
    let read = read.metadata();
    if read.file_metadata().num_rows() != batch.num_rows() as i64 {
        return Err(StageError::new("a table has other rows than the one that it extends"));
    }
    let properties = plain(&batch.schema(), |name| origin(name) == Origin::Plain).build();
    let mut bytes = Vec::with_capacity(batch.get_array_memory_size());
    let writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties))?;
    let (mut writer, factory) = writer.into_serialized_writer()?;
    let wanted = writer.schema_descr().clone();
    let mut row = 0;
    for (group, stored) in read.row_groups().iter().enumerate() {
        let rows = stored.num_rows() as usize;
        let pages = read.page_index_for_row_group(group);
        let columns = factory.create_column_writers(group)?;
        let mut written = writer.next_row_group()?;
        for ((i, field), mut column) in batch.schema().fields().iter().enumerate().zip(columns) {
            let is_alike = |stored: &ColumnChunkMetaData| stored.column_descr() == wanted.column(i).as_ref();
            let copied = stored.columns().iter().position(is_alike);
            if let Some(at) = copied.filter(|_| origin(field.name()) == Origin::Source) {
                let close = ColumnCloseResult {
                    bytes_written: stored.column(at).compressed_size() as u64,
                    rows_written: rows as u64,
                    metadata: stored.column(at).clone(),
                    bloom_filter: None,
                    column_index: pages.column_index(at).cloned(),
                    offset_index: pages.offset_index(at).cloned(),
                };
                written.append_column(&source, close)?;
            } else {
                for leaf in compute_leaves(field, &batch.column(i).slice(row, rows))? {
                    column.write(&leaf)?;
                }
                column.close()?.append_to_row_group(&mut written)?;
            }
        }
        written.close()?;
        row += rows;
    }
    writer.close()?;
    Ok(bytes)
}

/// The properties of a table some of whose floats are stored as they are.
fn plain(schema: &Schema, is_plain: impl Fn(&str) -> bool) -> WriterPropertiesBuilder {
    let mut properties = properties();
    for field in schema.fields() {
        if field.data_type() == &DataType::Float64 && is_plain(field.name()) {
            let path = ColumnPath::from(field.name().as_str());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_statistics_enabled(path.clone(), EnabledStatistics::None)
                .set_column_compression(path, Compression::UNCOMPRESSED);
        }
    }
    properties
}

fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by("runner".to_owned())
}

fn encode(batch: &RecordBatch, properties: WriterPropertiesBuilder) -> Result<Vec<u8>, StageError> {
    let mut bytes = Vec::with_capacity(batch.get_array_memory_size());
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties.build()))?;
    writer.write(batch)?;
    writer.close()?;
    Ok(bytes)
}

/// Reads a whole table from Parquet.
pub fn from_parquet(blob: Blob) -> Result<RecordBatch, StageError> {
    read_all(ParquetRecordBatchReaderBuilder::try_new(Bytes::from_owner(blob))?)
}

/// Reads a table from Parquet bytes that are a range of a blob.
///
/// # Errors
/// When the range is not within the blob, or its bytes are not Parquet.
pub fn from_parquet_within(blob: Blob, part: Range<u64>) -> Result<RecordBatch, StageError> {
    let bytes = Bytes::from_owner(blob);
    let (start, end) = (part.start as usize, part.end as usize);
    if start > end || end > bytes.len() {
        return Err(StageError::new("a table is cut off"));
    }
    read_all(ParquetRecordBatchReaderBuilder::try_new(bytes.slice(start..end))?)
}

/// Reads some columns of a table from Parquet.
pub fn columns_from_parquet(blob: Blob, columns: &[&str]) -> Result<RecordBatch, StageError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from_owner(blob))?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
    read_all(builder.with_projection(mask))
}

fn read_all(builder: ParquetRecordBatchReaderBuilder<Bytes>) -> Result<RecordBatch, StageError> {
    let reader = builder.with_batch_size(1 << 20).build()?;
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>()?;
    Ok(arrow_select::concat::concat_batches(&schema, &batches)?)
}

fn named<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, StageError> {
    batch
        .column_by_name(name)
        .ok_or_else(|| StageError::new(format!("the table has no column `{name}`")))
}

fn wrong(name: &str, wanted: &str) -> StageError {
    StageError::new(format!("column `{name}` is not of type {wanted}"))
}

/// The float column `name`.
pub fn floats<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a Float64Array, StageError> {
    named(batch, name)?
        .as_primitive_opt::<Float64Type>()
        .ok_or_else(|| wrong(name, "float"))
}

/// The values of the float column `name`, with NaN for nulls.
pub fn floats_or_nan(batch: &RecordBatch, name: &str) -> Result<Vec<f64>, StageError> {
    let column = floats(batch, name)?;
    let mut values = column.values().to_vec();
    if let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) {
        for (value, is_valid) in values.iter_mut().zip(nulls) {
            *value = if is_valid { *value } else { f64::NAN };
        }
    }
    Ok(values)
}

/// The values of the float column `name`, with NaN for nulls; all NaN if the table has no such column.
pub fn floats_if_any(batch: &RecordBatch, name: &str) -> Result<Vec<f64>, StageError> {
    match batch.column_by_name(name) {
        Some(_) => floats_or_nan(batch, name),
        None => Ok(vec![f64::NAN; batch.num_rows()]),
    }
}

/// An Arrow column of floats, with nulls for NaN.
pub fn nullable(values: &[f64]) -> Float64Array {
    nullable_of(values.to_vec())
}

/// An Arrow column of floats, with nulls for NaN; consumes the values.
pub fn nullable_of(mut values: Vec<f64>) -> Float64Array {
    // Counted without a branch, so that the loop is vectorised.
    let missing = values
        .iter()
        .fold(0, |missing, value| missing + u64::from(value.is_nan()));
    if missing == 0 {
        return Float64Array::from(values);
    }
    let valid = BooleanBuffer::collect_bool(values.len(), |i| !values[i].is_nan());
    // The bytes of a table don't depend on which NaN a null was.
    for value in &mut values {
        *value = if value.is_nan() { 0.0 } else { *value };
    }
    Float64Array::new(values.into(), Some(valid.into()))
}

/// The dates in the column `name`.
pub fn dates(batch: &RecordBatch, name: &str) -> Result<Vec<Date>, StageError> {
    let column: &Date32Array = named(batch, name)?
        .as_primitive_opt()
        .ok_or_else(|| wrong(name, "date"))?;
    Ok(column.values().iter().map(|&days| Date(days)).collect())
}

/// The instants of a table's rows, from the column [`SNAPSHOT`]; `None` if the table has one snapshot a day.
pub fn snapshots(batch: &RecordBatch) -> Result<Option<&TimestampMicrosecondArray>, StageError> {
    match batch.column_by_name(SNAPSHOT.name) {
        None => Ok(None),
        Some(column) => column
            .as_primitive_opt::<TimestampMicrosecondType>()
            .map(Some)
            .ok_or_else(|| wrong(SNAPSHOT.name, "instant, in microseconds UTC")),
    }
}

/// The time of each row of a table with a column `date`.
pub fn snapshot_times(batch: &RecordBatch) -> Result<Vec<SnapshotTime>, StageError> {
    let instants = snapshots(batch)?;
    let instant = |i: usize| instants.map(|instants| instants.value(i));
    let dates = dates(batch, "date")?.into_iter().enumerate();
    Ok(dates
        .map(|(i, date)| SnapshotTime {
            date,
            instant: instant(i),
        })
        .collect())
}

/// The key columns of a table with their fields: `keys`, and after `date` the column [`SNAPSHOT`] if the
/// table has it.
pub fn key_columns(batch: &RecordBatch, keys: &[Column]) -> Result<(Vec<Field>, Vec<ArrayRef>), StageError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for key in keys {
        fields.push(field(key));
        arrays.push(named(batch, key.name)?.clone());
        if key.name == "date"
            && let Some(instants) = batch.column_by_name(SNAPSHOT.name)
        {
            fields.push(field(&SNAPSHOT));
            arrays.push(instants.clone());
        }
    }
    Ok((fields, arrays))
}

/// The columns `date` and, where the times are instants, [`SNAPSHOT`].
pub fn time_columns(times: impl IntoIterator<Item = SnapshotTime>) -> Vec<(&'static str, ArrayRef)> {
    let times: Vec<SnapshotTime> = times.into_iter().collect();
    let dates = Date32Array::from_iter_values(times.iter().map(|time| time.date.0));
    let mut columns: Vec<(&'static str, ArrayRef)> = vec![("date", Arc::new(dates))];
    if times.first().is_some_and(|time| time.instant.is_some()) {
        let instants: TimestampMicrosecondArray = times.iter().map(|time| time.instant).collect();
        columns.push((SNAPSHOT.name, Arc::new(instants.with_timezone("UTC"))));
    }
    columns
}

/// The key columns of a table of features, with their fields: symbol and time of each row.
pub fn feature_keys<'a>(
    symbols: impl IntoIterator<Item = &'a str>,
    times: impl IntoIterator<Item = SnapshotTime>,
) -> (Vec<Field>, Vec<ArrayRef>) {
    let symbols: ArrayRef = Arc::new(StringArray::from_iter_values(symbols));
    let times = time_columns(times);
    let columns = FEATURES.iter().chain((times.len() > 1).then_some(&SNAPSHOT));
    let arrays = std::iter::once(symbols).chain(times.into_iter().map(|(_, array)| array));
    (columns.map(field).collect(), arrays.collect())
}

/// A column in a form that Arrow's formatters can show: instants without their time zone, whose name they do
/// not know.
pub fn displayed(column: &ArrayRef) -> ArrayRef {
    match column.as_primitive_opt::<TimestampMicrosecondType>() {
        Some(instants) => Arc::new(instants.clone().with_timezone_opt(None::<Arc<str>>)),
        None => column.clone(),
    }
}

/// Returns whether a Parquet table has the column `name`.
pub fn has_column(blob: Blob, name: &str) -> Result<bool, StageError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from_owner(blob))?;
    Ok(builder.schema().column_with_name(name).is_some())
}

/// The boolean column `name`.
pub fn bools<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a BooleanArray, StageError> {
    named(batch, name)?.as_boolean_opt().ok_or_else(|| wrong(name, "bool"))
}

/// The text column `name`.
pub fn texts<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a StringArray, StageError> {
    named(batch, name)?.as_string_opt().ok_or_else(|| wrong(name, "text"))
}

/// Splits rows into ranges of adjacent rows; each row of a range is the `same` as its first.
pub fn runs(rows: Range<usize>, same: impl Fn(usize, usize) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for i in rows {
        match runs.last_mut() {
            Some(run) if same(run.start, i) => run.end = i + 1,
            _ => runs.push(i..i + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::UInt8Array;

    /// A store's blob of some bytes.
    fn blob(bytes: &[u8]) -> (tempfile::TempDir, Blob) {
        let dir = tempfile::tempdir().unwrap();
        let store = cache::Store::open(dir.path()).unwrap();
        let stored = store.put(bytes).unwrap();
        let blob = store.blob(stored.blob).unwrap();
        (dir, blob)
    }

    #[test]
    fn an_extended_table_reads_as_it_was_whatever_is_copied_of_its_source() {
        let rows = 1000;
        let text: ArrayRef = Arc::new(StringArray::from_iter(
            (0..rows).map(|i| (i % 7 > 0).then(|| format!("t{}", i % 13))),
        ));
        let bid: ArrayRef = Arc::new(Float64Array::from_iter_values(
            (0..rows).map(|i| f64::from(i % 20) * 0.05),
        ));
        let old: ArrayRef = Arc::new(Float64Array::from_iter_values((0..rows).map(f64::from)));
        let new: ArrayRef = Arc::new(Float64Array::from_iter(
            (0..rows).map(|i| (i % 3 > 0).then(|| f64::from(i).sqrt())),
        ));
        let status: ArrayRef = Arc::new(UInt8Array::from_iter_values((0..rows).map(|i| (i % 5) as u8)));
        let float = |name: &str, is_nullable| Field::new(name, DataType::Float64, is_nullable);
        let text_field = || Field::new("text", DataType::Utf8, true);
        let source = RecordBatch::try_new(
            Arc::new(Schema::new(vec![
                text_field(),
                float("old", false),
                float("bid", false),
            ])),
            vec![text.clone(), old, bid.clone()],
        )
        .unwrap();
        let extended = |bid_is_nullable| {
            let fields = vec![
                float("new", true),
                float("bid", bid_is_nullable),
                text_field(),
                Field::new("status", DataType::UInt8, false),
                float("old", true),
            ];
            let columns = [&new, &bid, &text, &status, &new].map(Arc::clone);
            RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.into()).unwrap()
        };
        let origin = |name: &str| match name {
            "new" => Origin::Plain,
            "status" | "old" => Origin::New,
            _ => Origin::Source,
        };
        // In one row group or several; as it is stored, or stored otherwise.
        for group in [1 << 20, 300] {
            let properties = properties().set_max_row_group_row_count(Some(group));
            let (_dir, stored) = blob(&encode(&source, properties).unwrap());
            for bid_is_nullable in [false, true] {
                let wanted = extended(bid_is_nullable);
                let bytes = extended_to_parquet(&wanted, stored.clone(), origin).unwrap();
                let (_dir, written) = blob(&bytes);
                assert_eq!(from_parquet(written).unwrap(), wanted);
                if group > rows as usize {
                    assert!(
                        bytes.len() < plain_to_parquet(&wanted, |name| name == "new").unwrap().len() + 200
                    );
                }
            }
            let fewer = extended(false).slice(0, 10);
            assert!(extended_to_parquet(&fewer, stored, origin).is_err());
        }
    }
}
