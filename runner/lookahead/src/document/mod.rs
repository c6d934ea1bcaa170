//! Files of dated rows that can be written again with other rows: the sources of a pipeline.

mod columns;
mod packed;
mod text;
mod variant;

pub use packed::Packed;
pub use variant::{Element, New, Variant};

use super::column::{Column, MISSING};
use super::moment::{self, Stamp};
use super::read::{self, Container, Csv, Format, JsonRows, NpyArray};
use arrow_array::RecordBatch;
use std::collections::HashSet;
use std::sync::OnceLock;
pub(super) use variant::Rows;

/// Names of columns with the symbol of a row.
const SYMBOLS: [&str; 17] = [
    "symbol",
    "tic",
    "ticker",
    "sym",
    "stock",
    "asset",
    "instrument",
    "security",
    "code",
    "permno",
    "gvkey",
    "name",
    "pair",
    "coin",
    "act_symbol",
    "underlying_symbol",
    "company",
];

/// A table with dates that can be written again.
pub struct Document {
    body: Body,
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
    /// The perturbed rows, by manner, once they were needed.
    pub(super) variants: [OnceLock<Result<(Variant, Rows), String>>; 2],
}

enum Body {
    Csv(Csv),
    Json(JsonRows),
    Columns(Container, RecordBatch),
    Array(NpyArray),
}

impl Document {
    /// Reads a table; `Ok(None)` if it has no dates.
    ///
    /// # Errors
    /// The reason why it cannot be read, or not be written again.
    pub fn read(path: &str, bytes: &[u8]) -> Result<Option<Self>, String> {
        let of_cells = |batch: &RecordBatch| -> Vec<Column> {
            let texts = batch.columns().iter().map(|array| moment::texts(array.as_ref()));
            texts
                .map(|cells| cells.map_or(Column::Other, |cells| Column::of_cells(cells.into_iter())))
                .collect()
        };
        let (body, batch, columns) = match Format::of(bytes) {
            Format::Parquet => typed(Container::Parquet, bytes)?,
            Format::ArrowFile => typed(Container::ArrowFile, bytes)?,
            Format::ArrowStream => typed(Container::ArrowStream, bytes)?,
            Format::Json => match JsonRows::read(bytes) {
                Some(rows) => {
                    let batch = rows.batch();
                    let columns = text::json_columns(&rows, &batch);
                    (Body::Json(rows), batch, columns)
                }
                None => return Self::unless_dated(path, bytes),
            },
            Format::Text => match Csv::read(bytes) {
                Some(csv) => {
                    let batch = csv.batch();
                    let columns = of_cells(&batch);
                    (Body::Csv(csv), batch, columns)
                }
                None => return Self::unless_dated(path, bytes),
            },
            Format::Npy => return Self::array(path, bytes, None),
            Format::Zip | Format::Gzip => return Self::unless_dated(path, bytes),
            Format::Unknown => {
                let ending = path
                    .rsplit_once('.')
                    .map(|(_, ending)| format!(" (`.{ending}`)"))
                    .unwrap_or_default();
                return Err(format!("is of a format that cannot be read{ending}"));
            }
        };
        let of_name = || moment::of_name(path).map(|stamp| (None, vec![stamp; batch.num_rows()]));
        let dated = moment::of_batch(&batch).map(|(date, stamps)| (Some(date), stamps));
        if let (None, Some(column)) = (&dated, moment::with_some_dates(&batch)) {
            return Err(format!("has rows without a date in the column `{column}`"));
        }
        Ok(dated
            .or_else(of_name)
            .map(|(date, stamps)| Self::new(body, &batch, columns, date, stamps)))
    }

    /// Reads an array of NumPy, with dates of its own or those of another array.
    ///
    /// # Errors
    /// The reason why it cannot be read, or not be written again.
    pub fn array(path: &str, bytes: &[u8], dates: Option<&[Stamp]>) -> Result<Option<Self>, String> {
        let table = read::array(bytes)?;
        let given = || {
            dates
                .filter(|dates| dates.len() == table.batch.num_rows())
                .map(<[_]>::to_vec)
        };
        let of_name = || moment::of_name(path).map(|stamp| vec![stamp; table.batch.num_rows()]);
        let Some(stamps) = table.stamps.clone().or_else(given).or_else(of_name) else {
            return Ok(None);
        };
        let columns = table.batch.columns().iter().map(Column::of_array).collect();
        let body = Body::Array(NpyArray::read(bytes)?);
        // The array of an archive that the dates are from.
        let is_dates = || {
            table.batch.num_columns() == 1
                && moment::of_column(table.batch.column(0).as_ref(), true).as_ref() == Some(&stamps)
        };
        let date = table.date.or_else(|| is_dates().then_some(0));
        Ok(Some(Self::new(body, &table.batch, columns, date, stamps)))
    }

    fn new(
        body: Body,
        batch: &RecordBatch,
        columns: Vec<Column>,
        date: Option<usize>,
        stamps: Vec<Stamp>,
    ) -> Self {
        let fields = batch.schema_ref().fields();
        let names: Vec<String> = fields
            .iter()
            .map(|field| field.name().trim().to_ascii_lowercase())
            .collect();
        let mut document = Self {
            body,
            names,
            columns,
            stamps,
            date,
            symbols: None,
            may_grow: true,
            variants: Default::default(),
        };
        document.symbols = document.symbol_column();
        document
    }

    /// A file that cannot be written again is a fixed input, unless it holds dates.
    fn unless_dated(path: &str, bytes: &[u8]) -> Result<Option<Self>, String> {
        // Dates in a program are constants.
        if is_program(path) {
            return Ok(None);
        }
        let text = std::str::from_utf8(bytes).is_ok();
        let dated = read::tables(path, bytes)?.iter().any(|table| table.stamps.is_some()) || !text;
        let loose = text && std::str::from_utf8(bytes).is_ok_and(|text| moment::named_in(text).len() > 1);
        match dated || loose {
            true => Err("is of a format whose future cannot be changed".to_owned()),
            false => Ok(None),
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.stamps.len()
    }

    /// The column of symbols: by its name, or a text that differs in the rows of each date.
    fn symbol_column(&self) -> Option<usize> {
        let others = || (0..self.columns.len()).filter(|&i| Some(i) != self.date);
        let is_named = |&i: &usize| {
            let is_text = matches!(&self.columns[i], Column::Texts(..));
            let is_number =
                matches!(&self.columns[i], Column::Numbers(_, integers) if integers.iter().all(|is| *is));
            SYMBOLS.contains(&self.names[i].as_str()) && (is_text || is_number)
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
    pub fn symbols(&self) -> (Vec<u32>, Vec<String>) {
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

    /// The bytes of the table, its rows after a moment removed; and their number.
    ///
    /// # Errors
    /// When a column's type cannot be written.
    pub fn truncated(&self, until: i64) -> Result<(Vec<u8>, usize), String> {
        let picks: Vec<(usize, usize)> = (0..self.rows())
            .filter(|&row| self.stamps[row].end <= until)
            .map(|row| (0, row))
            .collect();
        Ok((self.assemble(&picks, &Rows::None)?, picks.len()))
    }

    /// The bytes of the table as it is.
    ///
    /// # Errors
    /// Likewise.
    pub fn unchanged(&self) -> Result<Vec<u8>, String> {
        let picks: Vec<(usize, usize)> = (0..self.rows()).map(|row| (0, row)).collect();
        self.assemble(&picks, &Rows::None)
    }
}

fn typed(container: Container, bytes: &[u8]) -> Result<(Body, RecordBatch, Vec<Column>), String> {
    let batch = columns::plain(&container.read(bytes)?)?;
    let typed = batch.columns().iter().map(Column::of_array).collect();
    Ok((Body::Columns(container, batch.clone()), batch, typed))
}

/// True for a file of instructions, not of data.
pub fn is_program(path: &str) -> bool {
    const ENDINGS: [&str; 15] = [
        "py", "sh", "awk", "r", "jl", "js", "pl", "rb", "sql", "toml", "yaml", "yml", "md", "ini", "cfg",
    ];
    path.rsplit_once('.')
        .is_some_and(|(_, ending)| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()))
}
