//! The parts of an environment's tables: the rows of all worlds cut by dates, so that a day more changes the
//! last part alone.
//!
//! A part is a file, `TABLE/FROM_TO.arrow`, of the rows of a calendar month; of a day where days have many
//! rows. Within it rows are in the order of worlds and then of dates. Where there are several worlds, the
//! column `world` has the number of a row's world.

use crate::ipc;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch, UInt32Array};
use arrow_schema::{DataType, TimeUnit};
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
    /// The first and the last possible date of the part, as `FROM_TO`.
    pub name: String,
    /// The worlds that have rows in the part, in order, each with its rows, numbered from the world's first.
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
    /// The part of all `rows` rows of a single world.
    pub(crate) fn whole(rows: usize) -> Self {
        Self {
            name: String::new(),
            rows: vec![(0, 0..rows)],
        }
    }

    /// The column of worlds.
    fn world_column(&self) -> (&'static str, ArrayRef) {
        let numbers = self.rows.iter();
        let numbers = numbers.flat_map(|(world, rows)| std::iter::repeat_n(*world as u32, rows.len()));
        (WORLD, Arc::new(UInt32Array::from_iter_values(numbers)))
    }
}

/// The rows of a world in the files of parts, in order: the number of a file, and the rows in it.
pub(crate) type RowsInFiles = Vec<(usize, Range<usize>)>;

/// Finds the rows of each world in the files of parts.
pub(crate) fn by_world(files: &[RecordBatch], worlds: usize) -> Result<Vec<RowsInFiles>, StageError> {
    let mut found = vec![Vec::new(); worlds];
    for (file, batch) in files.iter().enumerate() {
        if let [only] = found.as_mut_slice() {
            only.push((file, 0..batch.num_rows()));
            continue;
        }
        let numbers = ipc::numbers::<UInt32Type>(batch, WORLD)?;
        consistent(numbers.is_sorted())?;
        let mut start = 0;
        for run in numbers.chunk_by(|a, b| a == b) {
            let of_world = found.get_mut(run[0] as usize).ok_or_else(mismatch)?;
            of_world.push((file, start..start + run.len()));
            start += run.len();
        }
    }
    Ok(found)
}

/// Rows of a table in memory, a vector for each column. One list of columns says how they are written and
/// read.
pub(crate) trait TableRows: Sized + Sync + 'static {
    /// The facts on which the widths of the columns depend.
    type Spec;
    /// The columns, in the order of the file.
    const COLUMNS: &'static [&'static dyn TableColumn<Self>];

    /// The dates of the rows, in days since 1970-01-01.
    fn dates(&self) -> &[i32];

    /// The columns of a part's file, from the rows of all worlds; a column without values is left out.
    fn arrays(worlds: &[&Self], part: &Part) -> Result<Vec<(&'static str, ArrayRef)>, StageError> {
        let mut arrays = Vec::with_capacity(Self::COLUMNS.len());
        for (i, column) in Self::COLUMNS.iter().enumerate() {
            if let Some(array) = column.array(worlds, part)? {
                arrays.push((column.name(), array));
            }
            if i == 0 && worlds.len() > 1 {
                arrays.push(part.world_column());
            }
        }
        Ok(arrays)
    }

    /// Appends rows of a part's file.
    fn append(
        &mut self,
        file: &RecordBatch,
        rows: &Range<usize>,
        spec: &Self::Spec,
    ) -> Result<(), StageError> {
        Self::COLUMNS
            .iter()
            .try_for_each(|column| column.append(self, file, rows, spec))
    }
}

/// A column of rows.
pub(crate) trait TableColumn<R: TableRows>: Sync {
    /// The name of the column in the file.
    fn name(&self) -> &'static str;
    /// The values of a part; `None` where there are none.
    fn array(&self, worlds: &[&R], part: &Part) -> Result<Option<ArrayRef>, StageError>;
    /// Appends the values of rows of a file; does nothing where the column has no width.
    fn append(
        &self,
        to: &mut R,
        file: &RecordBatch,
        rows: &Range<usize>,
        spec: &R::Spec,
    ) -> Result<(), StageError>;
}

/// The form of a column's values in a file.
pub(crate) enum Form {
    /// One number per row.
    One,
    /// One instant per row, in microseconds since 1970 UTC.
    Instant,
    /// `width` numbers per row: a list of fixed size.
    Row,
}

/// A column of numbers.
pub(crate) struct Numbers<R: TableRows, P: ArrowPrimitiveType> {
    pub name: &'static str,
    pub form: Form,
    /// The number of numbers per row: 0 where the environment has none, `None` for as many as the file has.
    pub width: fn(&R::Spec) -> Option<usize>,
    pub get: fn(&R) -> &Vec<P::Native>,
    pub get_mut: fn(&mut R) -> &mut Vec<P::Native>,
}

/// The columns of a kind of rows: for each column its form and type, its name in the file, its field, and its
/// width.
macro_rules! columns {
    ($rows:ty: $($form:ident $number:ident $name:expr, $field:ident, $width:expr;)+) => {
        &[$(&$crate::parts::Numbers::<$rows, arrow_array::types::$number> {
            name: $name,
            form: $crate::parts::Form::$form,
            width: $width,
            get: |rows| &rows.$field,
            get_mut: |rows| &mut rows.$field,
        }),+]
    };
}
pub(crate) use columns;

impl<R: TableRows, P: ArrowPrimitiveType> TableColumn<R> for Numbers<R, P> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn array(&self, worlds: &[&R], part: &Part) -> Result<Option<ArrayRef>, StageError> {
        let (mut values, mut width) = (Vec::new(), 0);
        for (world, rows) in &part.rows {
            let (all, of) = ((self.get)(worlds[*world]), worlds[*world]);
            width = all.len() / of.dates().len().max(1);
            values.extend_from_slice(&all[rows.start * width..rows.end * width]);
        }
        let plain = |values: Vec<P::Native>| PrimitiveArray::<P>::from_iter_values(values);
        Ok(match self.form {
            _ if width == 0 => None,
            Form::One => Some(Arc::new(plain(values))),
            Form::Instant => {
                let zone = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
                Some(Arc::new(plain(values).with_data_type(zone)))
            }
            Form::Row => Some(ipc::matrix::<P>(values, width)?),
        })
    }

    fn append(
        &self,
        to: &mut R,
        file: &RecordBatch,
        rows: &Range<usize>,
        spec: &R::Spec,
    ) -> Result<(), StageError> {
        let width = (self.width)(spec).unwrap_or_else(|| ipc::width(file, self.name));
        if width > 0 {
            let values = ipc::numbers::<P>(file, self.name)?;
            consistent(values.len() == file.num_rows() * width)?;
            (self.get_mut)(to).extend_from_slice(&values[rows.start * width..rows.end * width]);
        }
        Ok(())
    }
}

/// Refuses tables whose contents contradict one another.
pub(crate) fn consistent(is: bool) -> Result<(), StageError> {
    if is { Ok(()) } else { Err(mismatch()) }
}

pub(crate) fn mismatch() -> StageError {
    StageError::new("the environment's tables are inconsistent")
        .hint("run the environment's stage again with --force")
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int32Type;

    #[derive(Default)]
    struct Pairs {
        dates: Vec<i32>,
        values: Vec<i32>,
    }

    impl TableRows for Pairs {
        type Spec = ();
        const COLUMNS: &'static [&'static dyn TableColumn<Self>] = columns![Pairs:
            One Date32Type "date", dates, |()| Some(1);
            Row Int32Type "values", values, |()| Some(2);
        ];

        fn dates(&self) -> &[i32] {
            &self.dates
        }
    }

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
        let rows = |dates: &[i32], values: &[i32]| Pairs {
            dates: dates.to_vec(),
            values: values.to_vec(),
        };
        let (a, b) = (rows(&early, &[0, 1, 2, 3, 4, 5, 6, 7]), rows(&late, &[8, 9, 10, 11]));
        let arrays = Pairs::arrays(&[&a, &b], &parts[2]).unwrap();
        let batch = RecordBatch::try_from_iter(arrays).unwrap();
        assert_eq!(
            ipc::numbers::<Int32Type>(&batch, "values").unwrap()[..],
            [4, 5, 6, 7, 8, 9]
        );
        let mut read = Pairs::default();
        read.append(&batch, &(2..3), &()).unwrap();
        assert_eq!((read.dates, read.values), (late[..1].to_vec(), vec![8, 9]));
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
