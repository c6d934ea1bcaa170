//! The columns of a file that a program wrote, in the types of our schemas.

use crate::error::StageError;
use crate::table;
use crate::visible::visible_line;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array as _, ArrayRef, ArrowPrimitiveType, BooleanArray, Date32Array, Float64Array, Int64Array,
    PrimitiveArray, RecordBatch, StringArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use datasets::Date;
use datasets::schema::{Column, Type};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The column with the origin of a corporate action; `file` where a program leaves it out.
const ORIGIN: &str = "origin";

/// The column of option classes; filled with the symbol where a program leaves it out.
const ROOT: &str = "root";

/// The maximum number of characters of a value that a message shows.
const SHOWN: usize = 40;

const LEAVE_OUT: &str = "every row needs one: leave the row out";

/// The dates that a table may hold, as those of files of data.
const YEARS: std::ops::RangeInclusive<i32> = 1800..=2199;

/// A file as a table.
pub(super) struct Table {
    /// The name of the file, for messages.
    pub name: String,
    pub batch: RecordBatch,
    /// The line number of each row in a text file; `None` for Parquet, whose rows are counted from 1.
    pub lines: Option<Vec<usize>>,
}

impl Table {
    /// The place of a row, for messages.
    pub(super) fn place(&self, row: usize) -> String {
        let row = self.lines.as_ref().map_or(row + 1, |lines| lines[row]);
        format!("`{}`, row {row}", self.name)
    }

    pub(super) fn error(&self, row: usize, column: &str, what: &str) -> StageError {
        StageError::new(format!(
            "{}, column `{}`: {what}",
            self.place(row),
            visible_line(column)
        ))
    }

    /// Fails at the first row of the table that is wrong.
    pub(super) fn refuse(
        &self,
        column: &str,
        is_wrong: impl Fn(usize) -> bool,
        what: impl Fn(usize) -> String,
        hint: &str,
    ) -> Result<(), StageError> {
        match (0..self.batch.num_rows()).find(|row| is_wrong(*row)) {
            Some(row) => Err(self.error(row, column, &what(row)).hint(hint)),
            None => Ok(()),
        }
    }

    /// The names of the columns, in order.
    ///
    /// # Errors
    /// When two columns have the same name, or one has none.
    pub(super) fn names(&self) -> Result<Vec<&str>, StageError> {
        let mut seen = BTreeSet::new();
        let names: Vec<&str> = self
            .batch
            .schema_ref()
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        for name in &names {
            StageError::new(format!("`{}` has a column without a name", self.name))
                .hint("leave it out: pandas writes its index so, unless told `index=False`")
                .when(name.trim().is_empty())?;
            StageError::new(format!("`{}` has two columns `{}`", self.name, visible_line(name)))
                .hint("rename one")
                .when(!seen.insert(*name))?;
        }
        Ok(names)
    }

    /// The values of a column, converted to the type in the schema; all null if the table lacks the column
    /// and the column is nullable.
    ///
    /// # Errors
    /// When the column has another type, a value is missing that must not be, or a value is invalid.
    pub(super) fn column(&self, column: &Column) -> Result<ArrayRef, StageError> {
        self.column_of(column.name, column.ty, column.nullable)
    }

    /// The values of the column `name`, converted to `ty`; for columns outside a schema.
    pub(super) fn column_of(&self, name: &str, ty: Type, nullable: bool) -> Result<ArrayRef, StageError> {
        let rows = self.batch.num_rows();
        // A column without rows often has no type: pandas does not know the type of an empty column of
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
        let is_missing = |row: usize| !nullable && array.is_null(row);
        self.refuse(name, is_missing, |_| "the value is missing".to_owned(), LEAVE_OUT)?;
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

    /// Parses the values of a text column; missing values stay missing.
    fn parsed<T, C: FromIterator<Option<T>>>(
        &self,
        name: &str,
        texts: &ArrayRef,
        parse: impl Fn(&str) -> Option<T>,
        [what, hint]: [&str; 2],
    ) -> Result<C, StageError> {
        let texts = cast(texts, &DataType::Utf8)?;
        let texts: &StringArray = texts.as_string();
        let wrong = |row, text: &str| self.error(row, name, &format!("`{}` {what}", shown(text))).hint(hint);
        let value = |(row, text): (usize, Option<&str>)| {
            text.map(|text| parse(text).ok_or_else(|| wrong(row, text))).transpose()
        };
        texts.iter().enumerate().map(value).collect()
    }

    /// Fails at the first invalid value.
    fn check<T: ArrowPrimitiveType>(
        &self,
        name: &str,
        values: &PrimitiveArray<T>,
        is_valid: impl Fn(T::Native) -> bool,
        what: impl Fn(T::Native) -> String,
        hint: &str,
    ) -> Result<(), StageError> {
        let is_wrong = |row: usize| values.is_valid(row) && !is_valid(values.value(row));
        self.refuse(name, is_wrong, |row| what(values.value(row)), hint)
    }

    /// Fails at a day beyond the years that a table may hold. Days are compared as numbers, since far ones
    /// overflow the calendar.
    fn check_days<T: ArrowPrimitiveType>(
        &self,
        name: &str,
        what: &str,
        values: &PrimitiveArray<T>,
        day: impl Fn(T::Native) -> i64,
    ) -> Result<(), StageError> {
        let (from, to) = (*YEARS.start(), *YEARS.end());
        let first = Date::from_ymd(from, 1, 1).map_or(i64::MIN, |date| date.0.into());
        let last = Date::from_ymd(to, 12, 31).map_or(i64::MAX, |date| date.0.into());
        self.check(
            name,
            values,
            |value| (first..=last).contains(&day(value)),
            |_| format!("the {what} is not in the years {from} to {to}"),
            "see the unit of its time stamps",
        )
    }

    fn floats(&self, name: &str, array: &ArrayRef) -> Result<ArrayRef, StageError> {
        let numbers: Float64Array = if self.lines.is_some() {
            let words = ["is not a number", "leave the field empty where there is no value"];
            self.parsed(name, array, |text| text.parse::<f64>().ok(), words)?
        } else {
            let is_number = |ty: &DataType| ty.is_floating() || ty.is_integer() || *ty == DataType::Null;
            if !is_number(array.data_type()) {
                return Err(self.wrong(name, array, "numbers"));
            }
            cast(array, &DataType::Float64)?.as_primitive().clone()
        };
        let what = |value: f64| match value.is_nan() {
            true => "NaN is not a value".to_owned(),
            false => "the number is infinite".to_owned(),
        };
        self.check(
            name,
            &numbers,
            f64::is_finite,
            what,
            "a missing value is null in Parquet (polars: `fill_nan(None)`; pandas writes its NaN so) and an \
            empty field in CSV",
        )?;
        Ok(Arc::new(numbers))
    }

    /// Whole numbers from 0 to 255.
    fn codes(&self, name: &str, array: &ArrayRef) -> Result<ArrayRef, StageError> {
        let numbers = self.floats(name, array)?;
        self.check(
            name,
            numbers.as_primitive::<Float64Type>(),
            |value| value.fract() == 0.0 && (0.0..=255.0).contains(&value),
            |value| format!("{value} is not a code: a whole number from 0 to 255"),
            "leave the column out where it is not known",
        )?;
        Ok(cast(&numbers, &DataType::UInt8)?)
    }

    fn flags(&self, name: &str, array: &ArrayRef) -> Result<ArrayRef, StageError> {
        let flag = |text: &str| match text {
            "true" | "True" | "1" => Some(true),
            "false" | "False" | "0" => Some(false),
            _ => None,
        };
        match array.data_type() {
            _ if self.lines.is_some() => {
                let words = ["is neither true nor false", "write `true` or `false`"];
                Ok(Arc::new(self.parsed::<_, BooleanArray>(name, array, flag, words)?))
            }
            DataType::Boolean => Ok(Arc::clone(array)),
            _ => Err(self.wrong(name, array, "true and false")),
        }
    }

    fn texts(&self, name: &str, array: &ArrayRef) -> Result<ArrayRef, StageError> {
        let texts = match array.data_type() {
            DataType::Dictionary(_, values) if is_text(values) => cast(array, &DataType::Utf8)?,
            ty if is_text(ty) => cast(array, &DataType::Utf8)?,
            _ => return Err(self.wrong(name, array, "text")),
        };
        let values: &StringArray = texts.as_string();
        let is_empty = |row: usize| values.is_valid(row) && values.value(row).trim().is_empty();
        self.refuse(name, is_empty, |_| "the text is empty".to_owned(), LEAVE_OUT)?;
        Ok(texts)
    }

    /// Dates, instants at midnight (pandas has no dates of its own), and texts of ISO 8601.
    fn dates(&self, name: &str, array: &ArrayRef) -> Result<ArrayRef, StageError> {
        let days: Date32Array = match array.data_type() {
            DataType::Date32 => array.as_primitive().clone(),
            DataType::Date64 => self.days(name, array, 86_400_000)?,
            DataType::Timestamp(unit, _) => self.days(name, array, 86_400 * units_a_second(*unit))?,
            ty if is_text(ty) => {
                let day = |text: &str| Some(text.parse::<Date>().ok()?.0);
                self.parsed(name, array, day, ["is not a date", "write it as 2019-06-28"])?
            }
            _ => return Err(self.wrong(name, array, "dates")),
        };
        self.check_days(name, "date", &days, i64::from)?;
        Ok(Arc::new(days))
    }

    /// Converts instants, and ISO 8601 texts with a time; texts without an offset are in UTC.
    fn instants(&self, name: &str, array: &ArrayRef) -> Result<ArrayRef, StageError> {
        const SECOND: i64 = 1_000_000;
        let micros: Int64Array = match array.data_type() {
            // The number is in UTC, whatever zone it is shown in.
            DataType::Timestamp(unit, _) => {
                let second = units_a_second(*unit);
                let instants = cast(array, &DataType::Int64)?;
                instants.as_primitive::<Int64Type>().unary(|instant| {
                    instant
                        .saturating_mul((SECOND / second).max(1))
                        .div_euclid((second / SECOND).max(1))
                })
            }
            ty if is_text(ty) => {
                let hint = "write it as 2019-06-28T15:45:00Z; a day alone stands in a column `date`";
                self.parsed(name, array, datasets::parse_instant, ["is not an instant", hint])?
            }
            _ => return Err(self.wrong(name, array, "instants")),
        };
        self.check_days(name, "instant", &micros, |micros| micros.div_euclid(86_400 * SECOND))?;
        let instants = micros.reinterpret_cast::<TimestampMicrosecondType>();
        Ok(Arc::new(instants.with_timezone("UTC")))
    }

    /// Converts instants to days; `day` is the number of their units in a day.
    fn days(&self, name: &str, instants: &ArrayRef, day: i64) -> Result<Date32Array, StageError> {
        let instants = cast(instants, &DataType::Int64)?;
        let instants: &Int64Array = instants.as_primitive();
        self.check(
            name,
            instants,
            |instant| instant.rem_euclid(day) == 0,
            |_| "the instant is not a day: it is not midnight UTC".to_owned(),
            "write days: `dt.date` in pandas, `cast(pl.Date)` in polars",
        )?;
        Ok(instants.unary(|instant| i32::try_from(instant.div_euclid(day)).unwrap_or(i32::MAX)))
    }
}

/// The number of the given units in a second.
fn units_a_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn is_text(ty: &DataType) -> bool {
    matches!(ty, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// The start of a value, as messages show it.
pub(super) fn shown(text: &str) -> String {
    let start: String = text.chars().take(SHOWN).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{}{more}", visible_line(&start))
}

fn type_name(ty: &DataType) -> String {
    match ty {
        ty if is_text(ty) => "text".to_owned(),
        DataType::Boolean => "true and false".to_owned(),
        DataType::Date32 | DataType::Date64 => "dates".to_owned(),
        DataType::Timestamp(..) => "instants".to_owned(),
        ty if ty.is_floating() || ty.is_integer() => "numbers".to_owned(),
        DataType::Dictionary(_, values) => type_name(values),
        other => format!("values of the type {other}"),
    }
}

/// Returns whether a column that is not nullable may be left out, since it is then filled in.
pub(super) fn is_filled(name: &str) -> bool {
    name == ORIGIN || name == ROOT
}

/// A column in the type of the schema, filled with its substitute where the table lacks it.
pub(super) fn column_or_filled(
    table: &Table,
    names: &[&str],
    column: &Column,
) -> Result<ArrayRef, StageError> {
    match column.name {
        _ if names.contains(&column.name) => table.column(column),
        ORIGIN => {
            let rows = table.batch.num_rows();
            Ok(Arc::new(StringArray::from_iter_values(std::iter::repeat_n(
                "file", rows,
            ))))
        }
        ROOT => table.column_of("symbol", Type::Text, false),
        _ => table.column(column),
    }
}
