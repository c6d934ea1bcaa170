//! Arrow IPC files that are read in place: uncompressed, 64-byte aligned, read without a copy.

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, FixedSizeListArray, ListArray, PrimitiveArray, RecordBatch,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_ipc::{MetadataVersion, root_as_footer};
use arrow_schema::{Field, Schema};
use bytes::Bytes;
use stages_core::StageError;
use std::sync::Arc;

/// A table as a file of one record batch.
pub(crate) fn write(columns: Vec<(&str, ArrayRef)>) -> Result<Vec<u8>, StageError> {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), false))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), columns.into_iter().map(|(_, array)| array).collect())?;
    let options = IpcWriteOptions::try_new(64, false, MetadataVersion::V5)?;
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, options)?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}

/// A column of `width` numbers a row.
pub(crate) fn matrix<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    width: usize,
) -> Result<ArrayRef, StageError> {
    let values = PrimitiveArray::<T>::new(values.into(), None);
    let item = Arc::new(Field::new("item", T::DATA_TYPE, false));
    let width =
        i32::try_from(width).map_err(|_| StageError::new(format!("a row of {width} numbers is too long")))?;
    Ok(Arc::new(FixedSizeListArray::try_new(
        item,
        width,
        Arc::new(values),
        None,
    )?))
}

/// A column of lists: row i has the next `lengths[i]` of `items`.
pub(crate) fn lists(items: ArrayRef, lengths: &[usize]) -> Result<ArrayRef, StageError> {
    let field = Arc::new(Field::new("item", items.data_type().clone(), false));
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths.iter().copied());
    Ok(Arc::new(ListArray::try_new(field, offsets, items, None)?))
}

/// Opens a file that [`write`] made; its columns point into `bytes`.
pub(crate) fn read(name: &str, bytes: Bytes) -> Result<RecordBatch, StageError> {
    let broken = |what: &str| {
        StageError::new(format!(
            "`{name}` of the environment is not an Arrow file of one batch: {what}"
        ))
        .hint("run the environment's stage again with --force")
    };
    let buffer = Buffer::from(bytes);
    let trailer = buffer.len().checked_sub(10).ok_or_else(|| broken("too short"))?;
    let mut tail = [0; 10];
    tail.copy_from_slice(&buffer[trailer..]);
    let start = trailer
        .checked_sub(read_footer_length(tail)?)
        .ok_or_else(|| broken("bad footer"))?;
    let footer = root_as_footer(&buffer[start..trailer]).map_err(|err| broken(&err.to_string()))?;
    let schema = footer.schema().ok_or_else(|| broken("no schema"))?;
    let decoder = FileDecoder::new(Arc::new(try_fb_to_schema(schema)?), footer.version());
    let blocks = footer.recordBatches().ok_or_else(|| broken("no batch"))?;
    if blocks.len() != 1 {
        return Err(broken("several batches"));
    }
    let block = blocks.get(0);
    let (offset, length) = (
        block.offset() as usize,
        block.bodyLength() as usize + block.metaDataLength() as usize,
    );
    if offset.checked_add(length).is_none_or(|end| end > buffer.len()) {
        return Err(broken("a batch beyond its end"));
    }
    decoder
        .read_record_batch(block, &buffer.slice_with_length(offset, length))?
        .ok_or_else(|| broken("an empty batch"))
}

/// The numbers of a column, or of a column made by [`matrix`], without a copy.
pub(crate) fn numbers<T: ArrowPrimitiveType>(
    batch: &RecordBatch,
    name: &str,
) -> Result<ScalarBuffer<T::Native>, StageError> {
    let wrong = || {
        StageError::new(format!(
            "the environment's table has no column `{name}` of type {}",
            T::DATA_TYPE
        ))
    };
    let column = batch.column_by_name(name).ok_or_else(wrong)?;
    let flat = match column.as_fixed_size_list_opt() {
        Some(list) => list.values(),
        None => column,
    };
    let array = flat.as_primitive_opt::<T>().ok_or_else(wrong)?;
    Ok(array.values().clone())
}

/// The number of numbers in a row of a column that [`numbers`] reads; 0 without such a column.
pub(crate) fn width(batch: &RecordBatch, name: &str) -> usize {
    let column = batch.column_by_name(name);
    column.map_or(0, |column| match column.as_fixed_size_list_opt() {
        Some(list) => list.value_length() as usize,
        None => 1,
    })
}

/// The start of each row of a column made by [`lists`] of [`matrix`], with the end of the last (in items of
/// `width` numbers), and the numbers, without a copy.
pub(crate) fn list_numbers<T: ArrowPrimitiveType>(
    batch: &RecordBatch,
    name: &str,
    width: usize,
) -> Result<(Vec<usize>, ScalarBuffer<T::Native>), StageError> {
    let wrong = || StageError::new(format!("the environment's table has no column `{name}` of lists"));
    let lists = batch
        .column_by_name(name)
        .and_then(|column| column.as_list_opt::<i32>())
        .ok_or_else(wrong)?;
    let items = lists.values().as_fixed_size_list_opt().ok_or_else(wrong)?;
    let numbers = items
        .values()
        .as_primitive_opt::<T>()
        .ok_or_else(wrong)?
        .values()
        .clone();
    let offsets: Vec<usize> = lists.value_offsets().iter().map(|&offset| offset as usize).collect();
    let sound = offsets.is_sorted() && offsets.last().is_some_and(|&end| end * width <= numbers.len());
    if sound && items.value_length() as usize == width {
        Ok((offsets, numbers))
    } else {
        Err(wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Float64Array;
    use arrow_array::types::{Float32Type, Float64Type};

    #[test]
    fn no_copy_and_aligned() {
        let a: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]));
        let m = matrix::<Float32Type>((0..15).map(|x| x as f32).collect(), 5).unwrap();
        let l = lists(matrix::<Float64Type>(vec![0.5; 10], 2).unwrap(), &[2, 0, 3]).unwrap();
        let file = write(vec![("a", a), ("m", m), ("l", l)]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let store = cache::Store::open(dir.path()).unwrap();
        let blob = store.blob(store.put(&file).unwrap().blob).unwrap();
        let range = blob.as_ref().as_ptr_range();
        let batch = read("t", Bytes::from_owner(blob.clone())).unwrap();
        let a = numbers::<Float64Type>(&batch, "a").unwrap();
        let m = numbers::<Float32Type>(&batch, "m").unwrap();
        assert_eq!(&a[..], [1.0, 2.0, 3.0]);
        assert_eq!(m[14], 14.0);
        let (offsets, l) = list_numbers::<Float64Type>(&batch, "l", 2).unwrap();
        assert_eq!((offsets, l.len()), (vec![0, 2, 2, 5], 10));
        assert!(list_numbers::<Float64Type>(&batch, "l", 8).is_err());
        for address in [
            a.as_ptr().cast::<u8>(),
            m.as_ptr().cast::<u8>(),
            l.as_ptr().cast::<u8>(),
        ] {
            assert!(range.contains(&address), "copied");
            assert_eq!(address as usize % 64, 0);
        }
        assert!(numbers::<Float32Type>(&batch, "a").is_err());
        assert!(read("t", Bytes::from_static(b"short")).is_err());
        assert!(read("t", Bytes::from(file[..file.len() - 20].to_vec())).is_err());
    }
}
