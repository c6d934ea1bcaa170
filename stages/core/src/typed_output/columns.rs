//! The columns of a file that a program wrote, in the types of our schemas.

use crate::error::StageError;
use crate::table;
use crate::visible::visible_line;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use datasets::Date;
use datasets::schema::{Column, Type};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most characters of a value that a message shows.
const SHOWN: usize = 40;

/// The dates that a table may hold, as those of files of data.
const YEARS: std::ops::RangeInclusive<i32> = 1800..=2199;

/// A file as a table.
pub(super) struct Table {
    /// The name of the file, for messages.
    pub name: String,
    pub batch: RecordBatch,
    /// The lines of the rows; `None` for Parquet, whose rows are counted from 1.
    pub lines: Option<Vec<usize>>,
}

impl Table {
    /// The place of a row, for messages.
    pub fn place(&self, row: usize) -> String {
        let row = self.lines.as_ref().map_or(row + 1, |lines| lines[row]);
        format!("`{}`, row {row}", self.name)
    }

    pub fn error(&self, row: usize, column: &str, what: &str) -> StageError {
        StageError::new(format!(
            "{}, column `{}`: {what}",
            self.place(row),
            visible_line(column)
        ))
    }

    /// The names of the columns.
    ///
    /// # Errors
    /// When two are the same, or one has none.
    pub fn names(&self) -> Result<Vec<&str>, StageError> {
        let mut seen = BTreeSet::new();
        let names: Vec<&str> = self
            .batch
            .schema_ref()
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        for name in &names {
            if name.trim().is_empty() {
                return Err(StageError::new(format!("`{}` has a column without a name", self.name))
                    .hint("leave it out: pandas writes its index so, unless told `index=False`"));
            }
            if !seen.insert(*name) {
                return Err(StageError::new(format!(
                    "`{}` has two columns `{}`",
                    self.name,
                    visible_line(name)
                ))
                .hint("rename one"));
            }
        }
        Ok(names)
    }

    /// A column in the type of the schema; all missing where the table has none and may.
    ///
    /// # Errors
    /// When it is of another type, a value is missing that may not, or a value is not valid.
    pub fn column(&self, column: &Column) -> Result<ArrayRef, StageError> {
        self.column_of(column.name, column.ty, column.nullable)
    }

    /// As [`Table::column`], of a column that no schema names.
    pub fn column_of(&self, name: &str, ty: Type, nullable: bool) -> Result<ArrayRef, StageError> {
        let rows = self.batch.num_rows();
        // A column without rows often has lost its type: pandas does not know that of an empty column of
        // objects.
        let Some(array) = self.batch.column_by_name(name).filter(|_| rows > 0) else {
            return Ok(arrow_array::new_null_array(&table::data_type(ty), rows));
        };
        let array = match ty {
            Type::Float => self.floats(name, array),
            Type::Date => self.dates(name, array),
            Type::Text => self.texts(name, array),
            Type::Instant => self.instants(name, array),
            Type::Bool => self.flags(name, array),
            Type::Code => self.codes(name, array),
        }?;
        if !nullable && let Some(row) = (0..array.len()).find(|&row| array.is_null(row)) {
            return Err(self
                .error(row, name, "the value is missing")
                .hint("every row needs one: leave the row out"));
        }
        Ok(array)
    }

    fn wrong(&self, name: &str, array: &ArrayRef, wanted: &str) -> StageError {
        StageError::new(format!(
            "`{}`, column `{}`: holds {}, not {wanted}",
            self.name,
            visible_line(name),
            type_name(array.data_type())
        ))
        .hint("convert the column, or leave it out")
    }

    fn is_text(&self) -> bool {
        self.lines.is_some()
    }

    fn floats(&self, name: &str, array: &ArrayRef) -> Result<ArrayRef, StageError> {
        let numbers: Float64Array = if self.is_text() {
            let texts = array.as_string::<i32>();
            let number = |row: usize| -> Result<Option<f64>, StageError> {
                if texts.is_null(row) {
                    return Ok(None);
                }
                let text = texts.value(row);
                text.parse().map(Some).map_err(|_| {
                    self.error(row, name, &format!("`{}` is not a number", shown(text)))
                        .hint("leave the field empty where there is no value")
                })
            };
            (0..texts.len()).map(number).collect::<Result<_, _>>()?
        } else {
            let is_number = |ty: &DataType| ty.is_floating() || ty.is_integer() || *ty == DataType::Null;
            if !is_number(array.data_type()) {
                return Err(self.wrong(name, array, "numbers"));
            }
            cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone()
        };
        let is_wrong = |row: &usize| numbers.is_valid(*row) && !numbers.value(*row).is_finite();
        if let Some(row) = (0..numbers.len()).find(is_wrong) {
            let what = match numbers.value(row) {
                value if value.is_nan() => "NaN is not a value",
                _ => "the number is infinite",
            };
            return Err(self.error(row, name, what).hint(
                "a missing value is null in Parquet (polars: `fill_nan(None)`; pandas writes its NaN so) \
                and an empty field in CSV",
            ));
        }
        Ok(Arc::new(numbers))
    }

    /// Whole numbers from 0 to 255.
    fn codes(&self, name: &str, array: &ArrayRef) -> Result<ArrayRef, StageError> {
        let numbers = self.floats(name, array)?;
        let numbers = numbers.as_primitive::<Float64Type>();
        let is_wrong = |row: &usize| {
            let value = numbers.value(*row);
            numbers.is_valid(*row) && !(value.fract() == 0.0 && (0.0..=255.0).contains(&value))
        };
        match (0..numbers.len()).find(is_wrong) {
            Some(row) => Err(self
                .error(
                    row,
                    name,
                    &format!("{} is no code: a whole number from 0 to 255", numbers.value(row)),
                )
                .hint("leave the column out where it is not known")),
            None => Ok(cast(numbers, &DataType::UInt8)?),
        }
    }

    fn flags(&self, name: &str, array: &ArrayRef) -> Result<ArrayRef, StageError> {
        if !self.is_text() {
            return match array.data_type() {
                DataType::Boolean => Ok(Arc::clone(array)),
                _ => Err(self.wrong(name, array, "true and false")),
            };
        }
        let texts = array.as_string::<i32>();
        let flag = |row: usize| -> Result<Option<bool>, StageError> {
            if texts.is_null(row) {
                return Ok(None);
            }
            match texts.value(row) {
                "true" | "True" | "1" => Ok(Some(true)),
                "false" | "False" | "0" => Ok(Some(false)),
                other => Err(self
                    .error(row, name, &format!("`{}` is neither true nor false", shown(other)))
                    .hint("write `true` or `false`")),
            }
        };
        let flags: BooleanArray = (0..texts.len()).map(flag).collect::<Result<_, _>>()?;
        Ok(Arc::new(flags))
    }

    fn texts(&self, name: &str, array: &ArrayRef) -> Result<ArrayRef, StageError> {
        let is_text = |ty: &DataType| matches!(ty, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let texts = match array.data_type() {
            ty if is_text(ty) => cast(array, &DataType::Utf8)?,
            DataType::Dictionary(_, values) if is_text(values) => cast(array, &DataType::Utf8)?,
            _ => return Err(self.wrong(name, array, "text")),
        };
        let values: &StringArray = texts.as_string();
        if let Some(row) =
            (0..values.len()).find(|&row| values.is_valid(row) && values.value(row).trim().is_empty())
        {
            return Err(self
                .error(row, name, "the text is empty")
                .hint("every row needs one: leave the row out"));
        }
        Ok(texts)
    }

    /// Dates, instants at midnight (pandas has no dates of its own), and texts of ISO 8601.
    fn dates(&self, name: &str, array: &ArrayRef) -> Result<ArrayRef, StageError> {
        let days: Date32Array = match array.data_type() {
            DataType::Date32 => array.as_primitive().clone(),
            DataType::Date64 => self.days(name, &cast(array, &DataType::Int64)?, 86_400_000)?,
            DataType::Timestamp(unit, _) => {
                let a_second = match unit {
                    TimeUnit::Second => 1,
                    TimeUnit::Millisecond => 1_000,
                    TimeUnit::Microsecond => 1_000_000,
                    TimeUnit::Nanosecond => 1_000_000_000,
                };
                self.days(name, &cast(array, &DataType::Int64)?, 86_400 * a_second)?
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts = cast(array, &DataType::Utf8)?;
                let texts: &StringArray = texts.as_string();
                let day = |row: usize| -> Result<Option<i32>, StageError> {
                    if texts.is_null(row) {
                        return Ok(None);
                    }
                    let text = texts.value(row);
                    let date: Result<Date, _> = text.parse();
                    date.map(|date| Some(date.0)).map_err(|_| {
                        self.error(row, name, &format!("`{}` is not a date", shown(text)))
                            .hint("write it as 2019-06-28")
                    })
                };
                (0..texts.len()).map(day).collect::<Result<_, _>>()?
            }
            _ => return Err(self.wrong(name, array, "dates")),
        };
        // Far days overflow the calendar, so they are compared as numbers.
        let [first, last] = Self::day_range();
        let is_wrong = |row: &usize| days.is_valid(*row) && !(first..=last).contains(&days.value(*row));
        match (0..days.len()).find(is_wrong) {
            Some(row) => Err(self
                .error(
                    row,
                    name,
                    &format!("the date is not in the years {} to {}", YEARS.start(), YEARS.end()),
                )
                .hint("see the unit of its time stamps")),
            None => Ok(Arc::new(days)),
        }
    }

    /// Instants, and texts of ISO 8601 with a time; those without an offset are in UTC.
    fn instants(&self, name: &str, array: &ArrayRef) -> Result<ArrayRef, StageError> {
        let micros: Int64Array = match array.data_type() {
            // The number is in UTC, whatever zone it is shown in.
            DataType::Timestamp(unit, _) => {
                let (times, per) = match unit {
                    TimeUnit::Second => (1_000_000, 1),
                    TimeUnit::Millisecond => (1_000, 1),
                    TimeUnit::Microsecond => (1, 1),
                    TimeUnit::Nanosecond => (1, 1_000),
                };
                let instants = cast(array, &DataType::Int64)?;
                let instants: &Int64Array = instants.as_primitive::<Int64Type>();
                instants.unary(|instant| instant.saturating_mul(times).div_euclid(per))
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts = cast(array, &DataType::Utf8)?;
                let texts: &StringArray = texts.as_string();
                let instant = |row: usize| -> Result<Option<i64>, StageError> {
                    if texts.is_null(row) {
                        return Ok(None);
                    }
                    let text = texts.value(row);
                    datasets::parse_instant(text).map(Some).ok_or_else(|| {
                        self.error(row, name, &format!("`{}` is not an instant", shown(text)))
                            .hint("write it as 2019-06-28T15:45:00Z; a day alone stands in a column `date`")
                    })
                };
                (0..texts.len()).map(instant).collect::<Result<_, _>>()?
            }
            _ => return Err(self.wrong(name, array, "instants")),
        };
        let day = |micros: i64| micros.div_euclid(86_400_000_000);
        let [first, last] = Self::day_range().map(i64::from);
        let is_wrong =
            |row: &usize| micros.is_valid(*row) && !(first..=last).contains(&day(micros.value(*row)));
        match (0..micros.len()).find(is_wrong) {
            Some(row) => Err(self
                .error(
                    row,
                    name,
                    &format!("the instant is not in the years {} to {}", YEARS.start(), YEARS.end()),
                )
                .hint("see the unit of its time stamps")),
            None => Ok(Arc::new(
                micros
                    .reinterpret_cast::<TimestampMicrosecondType>()
                    .with_timezone("UTC"),
            )),
        }
    }

    /// The first and the last day that a table may hold.
    fn day_range() -> [i32; 2] {
        let first = Date::from_ymd(*YEARS.start(), 1, 1).map_or(i32::MIN, |date| date.0);
        let last = Date::from_ymd(*YEARS.end(), 12, 31).map_or(i32::MAX, |date| date.0);
        [first, last]
    }

    /// The days of instants, of which a day has `day`.
    fn days(&self, name: &str, instants: &ArrayRef, day: i64) -> Result<Date32Array, StageError> {
        let instants: &Int64Array = instants.as_primitive::<Int64Type>();
        let of_day = |row: usize| -> Result<Option<i32>, StageError> {
            if instants.is_null(row) {
                return Ok(None);
            }
            let instant = instants.value(row);
            if instant.rem_euclid(day) != 0 {
                return Err(self
                    .error(row, name, "the instant is not a day: it is not midnight UTC")
                    .hint("write days: `dt.date` in pandas, `cast(pl.Date)` in polars"));
            }
            Ok(Some(i32::try_from(instant.div_euclid(day)).unwrap_or(i32::MAX)))
        };
        (0..instants.len()).map(of_day).collect()
    }
}

/// The start of a value, as messages show it.
pub(super) fn shown(text: &str) -> String {
    let start: String = text.chars().take(SHOWN).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{}{more}", visible_line(&start))
}

fn type_name(ty: &DataType) -> String {
    match ty {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Boolean => "true and false".to_owned(),
        DataType::Date32 | DataType::Date64 => "dates".to_owned(),
        DataType::Timestamp(..) => "instants".to_owned(),
        ty if ty.is_floating() || ty.is_integer() => "numbers".to_owned(),
        DataType::Dictionary(_, values) => type_name(values),
        other => format!("values of the type {other}"),
    }
}
