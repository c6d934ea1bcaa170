//! Files of dated rows that can be written again with other rows: the sources of a pipeline.

use super::column::{Column, MISSING};
use super::moment::{self, Stamp};
use super::names;
use super::table::{self, Form, Table};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_select::interleave::interleave;
use stages_table_file::packing::Packing;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::OnceLock;

/// A file with at least one table that has dates.
pub(crate) struct Packed {
    packing: Packing,
    members: Vec<(String, Member)>,
}

enum Member {
    Dated(Box<Document>),
    /// A file without dates, which stays as it is.
    Fixed(Vec<u8>),
}

impl Packed {
    /// Reads a file; `Ok(None)` if it has no dates.
    pub(crate) fn read(path: &str, bytes: &[u8]) -> Result<Option<Self>, String> {
        let (packing, files) = table::unpack(path, bytes)?;
        let tables = table::read(path, packing, &files)?;
        let mut members = Vec::new();
        for ((name, bytes), (form, table)) in files.into_iter().zip(tables) {
            let member = match Document::new(form, table, &name, &bytes)? {
                Some(document) => Member::Dated(Box::new(document)),
                None => Member::Fixed(bytes.into_owned()),
            };
            members.push((name, member));
        }
        let packed = Self { packing, members };
        let is_dated = packed.documents().next().is_some();
        Ok(is_dated.then_some(packed))
    }

    /// The file as part of a data set, to which no symbols or dates are added.
    pub(crate) fn in_data_set(mut self) -> Self {
        for (_, member) in &mut self.members {
            if let Member::Dated(document) = member {
                document.may_grow = false;
            }
        }
        self
    }

    /// The tables that have dates.
    pub(crate) fn documents(&self) -> impl Iterator<Item = &Document> {
        self.members.iter().filter_map(|(_, member)| match member {
            Member::Dated(document) => Some(&**document),
            Member::Fixed(_) => None,
        })
    }

    /// The file with other tables.
    pub(crate) fn write(
        &self,
        mut table: impl FnMut(&Document) -> Result<RecordBatch, String>,
    ) -> Result<Vec<u8>, String> {
        let mut files = Vec::new();
        for (name, member) in &self.members {
            let bytes = match member {
                Member::Dated(document) => Cow::Owned(document.form.write(&table(document)?)?),
                Member::Fixed(bytes) => Cow::Borrowed(bytes.as_slice()),
            };
            files.push((name.as_str(), bytes));
        }
        self.packing.pack(files).map_err(|fault| fault.what)
    }
}

/// The perturbed rows of a table, whatever the date after which they stand.
pub(crate) struct Variant {
    /// The old row of each.
    pub from: Vec<usize>,
    /// The number of rows that stand where the old ones do, in their order; the others come after all.
    pub in_place: usize,
    pub batch: RecordBatch,
}

/// A table with dates that can be written again.
pub(crate) struct Document {
    form: Form,
    pub batch: RecordBatch,
    /// Names of the columns, in lower case.
    pub names: Vec<String>,
    pub columns: Vec<Column>,
    pub stamps: Vec<Stamp>,
    /// The column of the dates.
    pub date: Option<usize>,
    /// The column of symbols.
    pub symbols: Option<usize>,
    /// True if symbols and dates may be added: not in a data set, whose partitions are named after them.
    pub may_grow: bool,
    /// The rows with other values and the other rows, once they were needed.
    pub variants: [OnceLock<Result<Variant, String>>; 2],
}

impl Document {
    /// The table of a file; `Ok(None)` if it has no dates.
    fn new(form: Form, table: Table, path: &str, bytes: &[u8]) -> Result<Option<Self>, String> {
        let Table {
            batch, date, stamps, ..
        } = table;
        if let Form::Fixed = form {
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            // Dates in a program are constants.
            if is_program(path) || stamps.is_none() && moment::named_in(text).len() < 2 {
                return Ok(None);
            }
        } else if let (None, Some(column)) = (date, moment::with_some_dates(&batch))
            && !matches!(form, Form::Array(_))
        {
            return Err(format!("has rows without a date in the column `{column}`"));
        }
        if let Some(reason) = form
            .refusal()
            .filter(|_| stamps.is_some() || matches!(form, Form::Fixed))
        {
            return Err(reason.to_owned());
        }
        let Some(stamps) = stamps else { return Ok(None) };
        let column = |(i, array): (usize, &ArrayRef)| match (&form, moment::texts(array)) {
            (Form::Csv(_), Some(cells)) => Column::from_cells(cells.into_iter()),
            (Form::Json(style), _) if style.is_json(i) => Column::Other,
            _ => Column::from_array(array),
        };
        let columns = batch.columns().iter().enumerate().map(column).collect();
        let fields = batch.schema_ref().fields().iter();
        let mut document = Self {
            form,
            names: fields.map(|field| field.name().trim().to_ascii_lowercase()).collect(),
            columns,
            batch,
            stamps,
            date,
            symbols: None,
            may_grow: true,
            variants: Default::default(),
        };
        document.symbols = document.symbol_column();
        Ok(Some(document))
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.stamps.len()
    }

    /// The column of symbols: by its name, or a text that differs in the rows of each date.
    fn symbol_column(&self) -> Option<usize> {
        let others = || (0..self.columns.len()).filter(|&i| Some(i) != self.date);
        let is_named = |&i: &usize| {
            let is_text = matches!(&self.columns[i], Column::Texts(..));
            let is_number =
                matches!(&self.columns[i], Column::Numbers(_, integers) if integers.iter().all(|is| *is));
            names::of("symbol").any(|name| name == self.names[i]) && (is_text || is_number)
        };
        others().find(is_named).or_else(|| {
            let dates = || self.stamps.iter().map(|stamp| stamp.start);
            let count = dates().collect::<HashSet<i64>>().len();
            others().find(|&i| {
                let Column::Texts(codes, choices) = &self.columns[i] else {
                    return false;
                };
                let few = choices.len() > 1 && choices.len() < codes.len() / 2 && count < codes.len();
                few && choices.iter().all(|text| text.parse::<f64>().is_err())
                    && codes.iter().all(|code| *code != MISSING)
                    && dates().zip(codes).collect::<HashSet<_>>().len() == codes.len()
            })
        })
    }

    /// The symbol of each row as a number, and the symbols; one without a name where there are none.
    pub(crate) fn symbols(&self) -> (Vec<u32>, Vec<String>) {
        match self.symbols.map(|column| &self.columns[column]) {
            Some(Column::Texts(codes, choices)) => {
                let none = u32::try_from(choices.len()).unwrap_or(MISSING);
                let codes = codes.iter().map(|&code| code.min(none)).collect();
                (codes, choices.iter().cloned().chain([String::new()]).collect())
            }
            Some(Column::Numbers(values, _)) => {
                let mut distinct: Vec<i64> = values.iter().map(|value| *value as i64).collect();
                distinct.sort_unstable();
                distinct.dedup();
                let code = |value: &f64| distinct.partition_point(|other| *other < *value as i64);
                let codes = values
                    .iter()
                    .map(|value| u32::try_from(code(value)).unwrap_or(MISSING))
                    .collect();
                (codes, distinct.iter().map(ToString::to_string).collect())
            }
            _ => (vec![0; self.rows()], vec![String::new()]),
        }
    }

    /// Rows of this table and of another one, each with 0 or 1 and its place there.
    pub(crate) fn picked(
        &self,
        new: &RecordBatch,
        picks: Vec<(usize, usize)>,
    ) -> Result<RecordBatch, String> {
        let columns = self.batch.columns().iter().zip(new.columns());
        let arrays = columns.map(|(old, new)| interleave(&[old.as_ref(), new.as_ref()], &picks));
        let arrays = arrays.collect::<Result<_, _>>();
        arrays
            .and_then(|arrays| table::with_rows(self.batch.schema(), arrays, picks.len()))
            .map_err(|err| err.to_string())
    }
}

/// True for a file of instructions, not of data.
pub(crate) fn is_program(path: &str) -> bool {
    const ENDINGS: [&str; 15] = [
        "py", "sh", "awk", "r", "jl", "js", "pl", "rb", "sql", "toml", "yaml", "yml", "md", "ini", "cfg",
    ];
    path.rsplit_once('.')
        .is_some_and(|(_, ending)| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()))
}
