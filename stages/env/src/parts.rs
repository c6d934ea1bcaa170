//! The parts of an environment's tables: the rows of all worlds cut by dates, so that a day more changes the
//! last part alone.
//!
//! A part is a file, `TABLE/FROM_TO.arrow`, of the rows of a calendar month; of a day where days have many
//! rows. Within it rows are in the order of worlds and then of dates. Where there are several worlds, the
//! column `world` has the number of a row's world.

use crate::ipc;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, ArrowPrimitiveType, RecordBatch, UInt32Array};
use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use datasets::Date;
use stages_core::StageError;
use stages_core::dataset::Period;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The column of worlds, where there are several.
const WORLD: &str = "world";

/// A part of the tables.
#[derive(Debug, PartialEq)]
pub(crate) struct Part {
    /// The first and the last possible date, `FROM_TO`.
    pub name: String,
    /// The worlds that have rows in it, in order, each with its rows, numbered from the world's first.
    pub rows: Vec<(usize, Range<usize>)>,
}

/// Cuts worlds into parts, each world given by the dates of its rows (days since 1970-01-01, in order).
pub(crate) fn cut(worlds: &[&[i32]]) -> Vec<Part> {
    let first = worlds.iter().filter_map(|dates| dates.first()).min();
    let rows = worlds
        .iter()
        .flat_map(|dates| dates.iter().take_while(|&date| Some(date) == first));
    let period = Period::of_rows(rows.count(), Period::Month);
    let mut parts: BTreeMap<Date, Part> = BTreeMap::new();
    for (world, dates) in worlds.iter().enumerate() {
        let mut start = 0;
        while let Some(&date) = dates.get(start) {
            let range = period.range(Date(date));
            let end = start + dates[start..].partition_point(|&date| date <= range.to.0);
            let part = parts.entry(range.from).or_insert_with(|| Part {
                name: format!("{}_{}", range.from, range.to),
                rows: Vec::new(),
            });
            part.rows.push((world, start..end));
            start = end;
        }
    }
    parts.into_values().collect()
}

/// The name of a part's file.
pub(crate) fn file(table: &str, part: &str) -> String {
    format!("{table}/{part}.arrow")
}

impl Part {
    /// The values of a column in the part, with their number a row; `of` gives a world's values and its
    /// number of rows.
    pub(crate) fn gather<'w, T: Copy + 'w>(&self, of: impl Fn(usize) -> (&'w [T], usize)) -> (Vec<T>, usize) {
        let (mut values, mut width) = (Vec::new(), 0);
        for (world, rows) in &self.rows {
            let (all, t) = of(*world);
            width = all.len() / t.max(1);
            values.extend_from_slice(&all[rows.start * width..rows.end * width]);
        }
        (values, width)
    }

    /// The column of worlds.
    pub(crate) fn world_column(&self) -> (&'static str, ArrayRef) {
        let numbers = self.rows.iter();
        let numbers = numbers.flat_map(|(world, rows)| std::iter::repeat_n(*world as u32, rows.len()));
        (WORLD, Arc::new(UInt32Array::from_iter_values(numbers)))
    }
}

/// The rows of a world in the files of parts, in order: the number of a file, and the rows in it.
pub(crate) type RowsInFiles = Vec<(usize, Range<usize>)>;

/// The rows of each world in the files of parts.
///
/// # Errors
/// When rows are of another world, or worlds out of order.
pub(crate) fn by_world(files: &[RecordBatch], worlds: usize) -> Result<Vec<RowsInFiles>, StageError> {
    let mut found = vec![Vec::new(); worlds];
    for (file, batch) in files.iter().enumerate() {
        if let [only] = found.as_mut_slice() {
            only.push((file, 0..batch.num_rows()));
            continue;
        }
        let numbers = ipc::numbers::<UInt32Type>(batch, WORLD)?;
        if !numbers.is_sorted() {
            return Err(mismatch());
        }
        let mut start = 0;
        for run in numbers.chunk_by(|a, b| a == b) {
            let of_world = found.get_mut(run[0] as usize).ok_or_else(mismatch)?;
            of_world.push((file, start..start + run.len()));
            start += run.len();
        }
    }
    Ok(found)
}

/// A column of a file, without a copy.
pub(crate) struct Column<T: ArrowNativeType> {
    values: ScalarBuffer<T>,
    width: usize,
}

impl<T: ArrowNativeType> Column<T> {
    /// The column of that name with `width` numbers a row; where the width is 0, an empty one.
    ///
    /// # Errors
    /// When the file has no such column.
    pub(crate) fn new<P: ArrowPrimitiveType<Native = T>>(
        batch: &RecordBatch,
        name: &str,
        width: usize,
    ) -> Result<Self, StageError> {
        let values = match width {
            0 => Vec::new().into(),
            _ => ipc::numbers::<P>(batch, name)?,
        };
        match values.len() == batch.num_rows() * width {
            true => Ok(Self { values, width }),
            false => Err(mismatch()),
        }
    }

    /// The values of some rows.
    pub(crate) fn rows(&self, rows: &Range<usize>) -> &[T] {
        &self.values[rows.start * self.width..rows.end * self.width]
    }
}

pub(crate) fn mismatch() -> StageError {
    StageError::new("the environment's tables are inconsistent")
        .hint("run the environment's stage again with --force")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> i32 {
        text.parse::<Date>().unwrap().0
    }

    fn batch(worlds: &[u32]) -> RecordBatch {
        let worlds: ArrayRef = Arc::new(UInt32Array::from(worlds.to_vec()));
        RecordBatch::try_from_iter([(WORLD, worlds)]).unwrap()
    }

    #[test]
    fn worlds_are_cut_by_month() {
        let (early, late) = (
            [
                day("2019-12-30"),
                day("2020-01-02"),
                day("2020-02-28"),
                day("2020-02-29"),
            ],
            [day("2020-02-28"), day("2020-03-02")],
        );
        let parts = cut(&[&early, &late]);
        let found: Vec<_> = parts
            .iter()
            .map(|part| (part.name.as_str(), part.rows.clone()))
            .collect();
        assert_eq!(
            found,
            [
                ("2019-12-01_2019-12-31", vec![(0, 0..1)]),
                ("2020-01-01_2020-01-31", vec![(0, 1..2)]),
                ("2020-02-01_2020-02-29", vec![(0, 2..4), (1, 0..1)]),
                ("2020-03-01_2020-03-31", vec![(1, 1..2)]),
            ]
        );
        let values = [[0, 1, 2, 3, 4, 5, 6, 7].as_slice(), &[8, 9, 10, 11]];
        let of = |world: usize| (values[world], values[world].len() / 2);
        assert_eq!(parts[2].gather(of), (vec![4, 5, 6, 7, 8, 9], 2));
        // A day more leaves all parts but its own.
        let later = [early.as_slice(), &[day("2020-03-03")]].concat();
        assert_eq!(cut(&[&later, &late])[..3], parts[..3]);
    }

    #[test]
    fn many_rows_a_day_are_cut_by_day() {
        let dates: Vec<i32> = (0..15_003).map(|row| 18_000 + row / 5_001).collect();
        let parts = cut(&[&dates]);
        assert_eq!(parts.len(), 3);
        assert_eq!(parts[1].name, "2019-04-15_2019-04-15");
        assert_eq!(parts[1].rows, [(0, 5_001..10_002)]);
    }

    #[test]
    fn rows_are_found_by_world() {
        let files = [batch(&[0, 0, 2]), batch(&[1, 2, 2])];
        let found = by_world(&files, 3).unwrap();
        assert_eq!(found, [vec![(0, 0..2)], vec![(1, 0..1)], vec![(0, 2..3), (1, 1..3)]]);
        assert_eq!(by_world(&files, 1).unwrap(), [[(0, 0..3), (1, 0..3)]]);
        assert!(by_world(&files, 2).is_err());
        assert!(by_world(&[batch(&[1, 0])], 2).is_err());
    }
}
