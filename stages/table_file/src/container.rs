//! Parquet and Arrow IPC, the latter as files and as streams, with any compression codec.

use crate::Fault;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use rayon::prelude::*;
use std::error::Error;
use std::io::Cursor;

/// A columnar file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Parquet.
    Parquet,
    /// Arrow IPC in the file format.
    ArrowFile,
    /// Arrow IPC in the stream format.
    ArrowStream,
}

impl Container {
    /// The format of the given bytes; `None` if they are in none of these.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(Self::ArrowFile),
            [0xff, 0xff, 0xff, 0xff, ..] => Some(Self::ArrowStream),
            _ => None,
        }
    }

    /// Reads a table in this format.
    ///
    /// # Errors
    /// The reason why the table cannot be read.
    pub fn read(self, bytes: &Bytes) -> Result<RecordBatch, Fault> {
        let whole = || -> Result<RecordBatch, Box<dyn Error>> {
            let mut reader: Box<dyn RecordBatchReader + '_> = match self {
                Self::Parquet => {
                    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes.clone())?;
                    Box::new(builder.with_batch_size(1 << 20).build()?)
                }
                Self::ArrowFile => Box::new(FileReader::try_new(Cursor::new(bytes), None)?),
                Self::ArrowStream => Box::new(StreamReader::try_new(Cursor::new(bytes), None)?),
            };
            let batches = reader.by_ref().collect::<Result<Vec<RecordBatch>, _>>()?;
            Ok(concat_batches(&reader.schema(), &batches)?)
        };
        let hint = "see whether the program wrote it to its end";
        whole().map_err(|err| Fault::new(format!("cannot be read: {err}"), hint))
    }

    /// Writes a table in this format.
    ///
    /// # Errors
    /// When the table has a type that the format lacks.
    pub fn write(self, batch: &RecordBatch) -> Result<Vec<u8>, Fault> {
        let (mut bytes, schema) = (Vec::new(), batch.schema());
        let mut write = || -> Result<(), Box<dyn Error>> {
            match self {
                Self::Parquet => {
                    // The file is read once or twice, and then dropped.
                    let properties = WriterProperties::builder()
                        .set_compression(Compression::UNCOMPRESSED)
                        .set_statistics_enabled(EnabledStatistics::None);
                    let mut writer =
                        ArrowWriter::try_new(&mut bytes, schema.clone(), Some(properties.build()))?;
                    writer.write(batch)?;
                    writer.close()?;
                }
                Self::ArrowFile => {
                    let mut writer = FileWriter::try_new(&mut bytes, &schema)?;
                    writer.write(batch).and_then(|()| writer.finish())?;
                }
                Self::ArrowStream => {
                    let mut writer = StreamWriter::try_new(&mut bytes, &schema)?;
                    writer.write(batch).and_then(|()| writer.finish())?;
                }
            }
            Ok(())
        };
        write().map_err(|err| Fault::new(format!("cannot be written: {err}"), "leave the column out"))?;
        Ok(bytes)
    }
}

/// The number of rows of a column that are decoded at a time.
const ROWS: usize = 1 << 16;

/// The names of all columns of a Parquet file.
///
/// # Errors
/// When the file is damaged.
pub fn parquet_names(bytes: &Bytes) -> Result<Vec<String>, ParquetError> {
    let metadata = ArrowReaderMetadata::load(bytes, Default::default())?;
    let fields = metadata.schema().fields();
    Ok(fields.iter().map(|field| field.name().clone()).collect())
}

/// The columns of a Parquet file at `indices`, each in chunks, read in parallel; and the number of rows.
///
/// # Errors
/// When the file is damaged.
pub fn parquet_columns(
    bytes: &Bytes,
    indices: &[usize],
) -> Result<(Vec<Vec<ArrayRef>>, usize), ParquetError> {
    let metadata = ArrowReaderMetadata::load(bytes, Default::default())?;
    let rows = metadata.metadata().file_metadata().num_rows();
    let column = |&index: &usize| -> Result<Vec<ArrayRef>, ParquetError> {
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes.clone(), metadata.clone());
        let mask = ProjectionMask::roots(builder.parquet_schema(), [index]);
        let batches = builder.with_projection(mask).with_batch_size(ROWS).build()?;
        batches.map(|batch| Ok(batch?.column(0).clone())).collect()
    };
    let columns = indices.par_iter().map(column).collect::<Result<_, _>>()?;
    Ok((columns, usize::try_from(rows).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Date32Array, Float32Array, Int64Array, StringArray};
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::IpcWriteOptions;
    use parquet::basic::{BrotliLevel, GzipLevel, ZstdLevel};
    use std::sync::Arc;

    fn batch() -> RecordBatch {
        let columns: [(&str, ArrayRef); 4] = [
            ("date", Arc::new(Date32Array::from_iter_values(0..500))),
            (
                "symbol",
                Arc::new(StringArray::from_iter_values((0..500).map(|i| ["A", "B"][i % 2]))),
            ),
            (
                "x",
                Arc::new(Float32Array::from_iter_values((0..500u16).map(|i| f32::from(i) / 3.0))),
            ),
            (
                "n",
                Arc::new(Int64Array::from_iter((0..500).map(|i| (i % 7 > 0).then_some(i)))),
            ),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
    }

    #[test]
    fn parquet_with_every_codec() {
        for codec in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(GzipLevel::default()),
            Compression::BROTLI(BrotliLevel::default()),
            Compression::LZ4,
            Compression::LZ4_RAW,
            Compression::ZSTD(ZstdLevel::default()),
        ] {
            let properties = WriterProperties::builder().set_compression(codec).build();
            let mut bytes = Vec::new();
            let mut writer = ArrowWriter::try_new(&mut bytes, batch().schema(), Some(properties)).unwrap();
            writer.write(&batch()).unwrap();
            writer.close().unwrap();
            assert_eq!(
                Container::Parquet.read(&bytes.clone().into()).unwrap(),
                batch(),
                "{codec:?}"
            );
        }
    }

    #[test]
    fn arrow_with_every_codec() {
        for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
            let options = IpcWriteOptions::default().try_with_compression(Some(codec)).unwrap();
            let (mut file, mut stream) = (Vec::new(), Vec::new());
            let schema = batch().schema();
            let mut writer = FileWriter::try_new_with_options(&mut file, &schema, options.clone()).unwrap();
            writer.write(&batch()).and_then(|()| writer.finish()).unwrap();
            let mut writer = StreamWriter::try_new_with_options(&mut stream, &schema, options).unwrap();
            writer.write(&batch()).and_then(|()| writer.finish()).unwrap();
            assert_eq!(Container::ArrowFile.read(&file.into()).unwrap(), batch(), "{codec:?}");
            assert_eq!(
                Container::ArrowStream.read(&stream.into()).unwrap(),
                batch(),
                "{codec:?}"
            );
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for container in [Container::Parquet, Container::ArrowFile, Container::ArrowStream] {
            let bytes = container.write(&batch()).unwrap();
            assert_eq!(container.read(&bytes.clone().into()).unwrap(), batch(), "{container:?}");
            assert_eq!(Container::of(&bytes), Some(container));
            assert!(
                container.read(&bytes[..bytes.len() / 2].to_vec().into()).is_err(),
                "{container:?}"
            );
        }
    }
}
