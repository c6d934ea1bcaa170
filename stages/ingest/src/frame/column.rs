//! A column of a table, and the conversion of its values to the types that layouts need.

use crate::value::in_range;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, TimeUnit};
use datasets::Date;

/// A column, in chunks: as Parquet stores it, or texts or numbers.
pub(super) struct Column(pub Vec<ArrayRef>);

/// The shortest decimal that rounds to `number` in single precision, as a double.
fn shortest(number: f32) -> f64 {
    // The standard library prints the shortest decimal that reads back; whole numbers need no detour.
    if number.trunc() == number {
        return f64::from(number);
    }
    number.to_string().parse().unwrap_or_else(|_| f64::from(number))
}

impl Column {
    /// The type of the values; `Null` for a column without rows.
    pub(super) fn data_type(&self) -> &DataType {
        self.0.first().map_or(&DataType::Null, |chunk| chunk.data_type())
    }

    /// Returns whether the values are texts.
    pub(super) fn is_text(&self) -> bool {
        match self.data_type() {
            DataType::Dictionary(_, values) => values.is_string(),
            ty => ty.is_string(),
        }
    }

    /// True if the values are numbers, or all are missing.
    pub(super) fn is_numeric(&self) -> bool {
        self.data_type().is_numeric() || *self.data_type() == DataType::Null
    }

    /// True if the values are numbers of single precision.
    pub(super) fn is_single_precision(&self) -> bool {
        *self.data_type() == DataType::Float32
    }

    /// True if the values are numbers with decimals.
    pub(super) fn is_float(&self) -> bool {
        self.data_type().is_floating()
    }

    /// The microseconds after midnight, in UTC, of stored instants; `None` for other types. 0 where missing.
    pub(super) fn times_of_day(&self) -> Option<Vec<i64>> {
        let mut times = Vec::new();
        for chunk in &self.0 {
            let (a_day, per) = match chunk.data_type() {
                DataType::Timestamp(TimeUnit::Second, _) => (86_400, 1_000_000),
                DataType::Timestamp(TimeUnit::Millisecond, _) | DataType::Date64 => (86_400_000, 1_000),
                DataType::Timestamp(TimeUnit::Microsecond, _) => (86_400_000_000, 1),
                DataType::Timestamp(TimeUnit::Nanosecond, _) => (86_400_000_000_000, -1_000),
                _ => return None,
            };
            let chunk = cast(chunk, &DataType::Int64).ok()?;
            let of_day = |time: i64| match per {
                per if per < 0 => time.rem_euclid(a_day) / -per,
                per => time.rem_euclid(a_day) * per,
            };
            times.extend(
                chunk
                    .as_primitive::<Int64Type>()
                    .iter()
                    .map(|time| time.map_or(0, of_day)),
            );
        }
        Some(times)
    }

    /// The first value as text, empty where missing; `None` without rows.
    pub(super) fn first_text(&self) -> Option<String> {
        let chunk = self.0.iter().find(|chunk| !chunk.is_empty())?;
        let mut first = None;
        Self(vec![chunk.slice(0, 1)])
            .texts(|_, text| {
                first = Some(text.unwrap_or_default().trim().to_owned());
                Ok::<(), ArrowError>(())
            })
            .ok()?;
        first
    }

    /// The type of the values, in words.
    pub(super) fn type_name(&self) -> String {
        match self.data_type() {
            DataType::Boolean => "bool".to_owned(),
            _ if self.is_text() => "text".to_owned(),
            ty => ty.to_string(),
        }
    }

    /// The values as numbers, NaN where missing. Single-precision numbers become their shortest decimals:
    /// 0.1, not 0.10000000149.
    pub(super) fn numbers(&self) -> Result<Vec<f64>, ArrowError> {
        let mut values = Vec::new();
        for chunk in &self.0 {
            if let Some(numbers) = chunk.as_primitive_opt::<Float32Type>() {
                values.extend(numbers.iter().map(|number| number.map_or(f64::NAN, shortest)));
                continue;
            }
            let chunk = cast(chunk, &DataType::Float64)?;
            let numbers = chunk.as_primitive::<Float64Type>();
            if numbers.null_count() == 0 {
                values.extend_from_slice(numbers.values());
            } else {
                values.extend(numbers.iter().map(|number| number.unwrap_or(f64::NAN)));
            }
        }
        Ok(values)
    }

    /// The values as dates, from dates or from times in UTC; dates outside the supported years are
    /// [`OUT_OF_RANGE`](crate::value::OUT_OF_RANGE).
    pub(super) fn dates(&self) -> Result<Vec<Option<Date>>, ArrowError> {
        let mut dates = Vec::new();
        for chunk in &self.0 {
            let a_day = match chunk.data_type() {
                DataType::Timestamp(TimeUnit::Second, _) => 86_400,
                DataType::Timestamp(TimeUnit::Millisecond, _) | DataType::Date64 => 86_400_000,
                DataType::Timestamp(TimeUnit::Microsecond, _) => 86_400_000_000,
                DataType::Timestamp(TimeUnit::Nanosecond, _) => 86_400_000_000_000,
                _ => {
                    let days = cast(chunk, &DataType::Date32)?;
                    let days = days.as_primitive::<Date32Type>();
                    dates.extend(days.iter().map(|day| day.map(|day| in_range(day.into()))));
                    continue;
                }
            };
            let times = cast(chunk, &DataType::Int64)?;
            let times = times.as_primitive::<Int64Type>();
            let day = |time: i64| in_range(time.div_euclid(a_day));
            dates.extend(times.iter().map(|time| time.map(day)));
        }
        Ok(dates)
    }

    /// Passes every row and its value as text to `take`, `None` where missing.
    pub(super) fn texts<E: From<ArrowError>>(
        &self,
        mut take: impl FnMut(usize, Option<&str>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut row = 0;
        for chunk in &self.0 {
            // Instants are stored in UTC, whatever time zone they are displayed in.
            let texts = match chunk.data_type() {
                DataType::Timestamp(unit, Some(_)) => {
                    let in_utc = cast(chunk, &DataType::Timestamp(*unit, Some("+00:00".into())))?;
                    cast(&in_utc, &DataType::Utf8View)?
                }
                _ => cast(chunk, &DataType::Utf8View)?,
            };
            for text in texts.as_string_view() {
                take(row, text)?;
                row += 1;
            }
        }
        Ok(())
    }
}
