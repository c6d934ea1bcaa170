//! Digests of the rows of a data set by symbol, which are the keys of what is computed from them.

use crate::dataset::symbol_rows;
use crate::error::StageError;
use crate::table;
use arrow_array::{Array, RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;
use cache::{BlobDigest, BlobRef, Store};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// The symbol of all rows of a table without a symbol column.
const ALL: &str = "all";

/// The rows of one symbol in a table: the table's index, and the range.
type Rows = (usize, Range<usize>);

/// The tables of a data set, in order of date, with the rows of each symbol.
pub struct SymbolRows {
    tables: Vec<RecordBatch>,
    /// The rows of each symbol, in the order of the tables.
    rows: BTreeMap<String, Vec<Rows>>,
}

impl SymbolRows {
    /// Reads the partitions, which are given in order of date.
    pub fn read(store: &Store, partitions: &[BlobDigest]) -> Result<Self, StageError> {
        let tables: Vec<RecordBatch> = partitions
            .par_iter()
            .map(|blob| table::from_parquet(store.blob(*blob)?))
            .collect::<Result<_, StageError>>()?;
        let mut rows: BTreeMap<String, Vec<Rows>> = BTreeMap::new();
        for (i, table) in tables.iter().enumerate() {
            let symbols = match table.column_by_name("symbol") {
                Some(_) => symbol_rows(table)?,
                None => vec![(ALL, 0..table.num_rows())],
            };
            for (symbol, range) in symbols {
                rows.entry(symbol.to_owned()).or_default().push((i, range));
            }
        }
        Ok(Self { tables, rows })
    }

    /// Each symbol, in order, with the digest of its rows.
    pub fn by_symbol(&self) -> Result<Vec<(&str, BlobDigest)>, StageError> {
        let symbols: Vec<(&String, &Vec<Rows>)> = self.rows.iter().collect();
        symbols
            .into_par_iter()
            .map(|(symbol, rows)| Ok((symbol.as_str(), self.digest(rows)?)))
            .collect()
    }

    /// For each partition, the digest of the last `count` rows of each of its symbols in the partitions
    /// before it.
    pub fn before(&self, count: usize) -> Result<Vec<BlobDigest>, StageError> {
        let mut before: Vec<Vec<Rows>> = vec![Vec::new(); self.tables.len()];
        for rows in self.rows.values() {
            for (k, (partition, _)) in rows.iter().enumerate() {
                let mut wanted = count;
                for (table, range) in rows[..k].iter().rev().filter(|(table, _)| table < partition) {
                    let start = range.end - range.len().min(wanted);
                    wanted -= range.end - start;
                    before[*partition].push((*table, start..range.end));
                    if wanted == 0 {
                        break;
                    }
                }
            }
        }
        before.par_iter().map(|rows| self.digest(rows)).collect()
    }

    /// The digest of the values in these rows, whatever the layout of the arrays.
    fn digest(&self, rows: &[Rows]) -> Result<BlobDigest, StageError> {
        let mut bytes = Vec::new();
        for (table, range) in rows.iter().filter(|(_, range)| !range.is_empty()) {
            let indices: UInt32Array = (range.start as u32..range.end as u32).collect();
            // Arrays of their own, without the offsets and the padding of the whole.
            let own = take_record_batch(&self.tables[*table], &indices)?;
            bytes.extend((range.len() as u64).to_le_bytes());
            for (field, column) in own.schema().fields().iter().zip(own.columns()) {
                put(&mut bytes, field.name().as_bytes());
                put_array(&mut bytes, column.as_ref());
            }
        }
        Ok(BlobRef::of(&bytes).blob)
    }
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u64).to_le_bytes());
    bytes.extend(part);
}

/// Adds the type and the buffers of an array, and of those nested in it.
fn put_array(bytes: &mut Vec<u8>, column: &dyn Array) {
    let mut arrays = vec![column.to_data()];
    while let Some(data) = arrays.pop() {
        put(bytes, format!("{:?}", data.data_type()).as_bytes());
        let nulls = data.nulls().filter(|nulls| nulls.null_count() > 0);
        put(bytes, nulls.map_or(&[], |nulls| nulls.validity()));
        for buffer in data.buffers() {
            put(bytes, buffer.as_slice());
        }
        arrays.extend(data.child_data().iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Float64Array, StringArray};
    use std::sync::Arc;

    fn blobs(store: &Store, tables: &[&[(&str, f64)]]) -> Vec<BlobDigest> {
        let put = |rows: &&[(&str, f64)]| {
            let symbols: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.0)).collect::<StringArray>());
            let values: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.1)).collect::<Float64Array>());
            let batch = RecordBatch::try_from_iter([("symbol", symbols), ("value", values)]).unwrap();
            store.put(&table::to_parquet(&batch).unwrap()).unwrap().blob
        };
        tables.iter().map(put).collect()
    }

    #[test]
    fn a_digest_depends_on_the_rows_of_its_symbol_alone() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let of = |tables: &[&[(&str, f64)]]| SymbolRows::read(&store, &blobs(&store, tables)).unwrap();
        let first = of(&[&[("A", 1.0), ("A", 2.0), ("B", 3.0)], &[("A", 4.0), ("B", 5.0)]]);
        let other = of(&[
            &[("A", 1.0), ("A", 2.0), ("B", 9.0)],
            &[("A", 4.0), ("B", 5.0), ("C", 5.0)],
        ]);
        let (one, two) = (first.by_symbol().unwrap(), other.by_symbol().unwrap());
        assert_eq!(one[0], two[0], "the rows of A are the same");
        assert_ne!(one[1], two[1]);
        assert_eq!(two[2].0, "C");
        // Of the rows before the second partition, those within the lookback count.
        let changed = of(&[&[("A", 7.0), ("A", 2.0), ("B", 3.0)], &[("A", 4.0), ("B", 5.0)]]);
        let before = |rows: &SymbolRows, count| rows.before(count).unwrap();
        assert_eq!(before(&first, 1), before(&changed, 1));
        assert_ne!(before(&first, 2)[1], before(&changed, 2)[1]);
        assert_eq!(before(&first, 2)[0], before(&changed, 2)[0]);
        assert_ne!(before(&first, 1)[1], before(&first, 0)[1]);
    }
}
