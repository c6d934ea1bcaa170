//! The values of a frame's columns: numbers and dates.

use super::Frame;
use super::column::Column;
use crate::value::{self, Dates};
use arrow_schema::{ArrowError, DataType};
use datasets::Date;
use datasets::layout::{Mapping, Unit};
use stages_core::StageError;

impl Frame {
    /// The numbers of a column in our unit, NaN where missing.
    pub fn numbers(&self, mapping: &Mapping) -> Result<Vec<f64>, StageError> {
        let mut values = self.raw_numbers(&mapping.theirs)?;
        match &mapping.unit {
            Unit::AsIs => {}
            Unit::Times(factor) => values.iter_mut().for_each(|value| *value *= factor),
            Unit::Per(number) => values.iter_mut().for_each(|value| *value /= number),
            Unit::DividedBy(other) => {
                let divisors = self.raw_numbers(other)?;
                for (value, divisor) in values.iter_mut().zip(divisors) {
                    *value = if divisor > 0.0 { *value / divisor } else { f64::NAN };
                }
            }
        }
        if mapping.absolute {
            values.iter_mut().for_each(|value| *value = value.abs());
        }
        Ok(values)
    }

    /// The numbers of a column, NaN where missing.
    pub fn raw_numbers(&self, theirs: &str) -> Result<Vec<f64>, StageError> {
        let mut values = match self.stored_numbers(theirs)? {
            Some(values) => {
                let mut infinite = values.iter().map(|value| value.is_infinite());
                // Counted without a branch, so that the loop is vectorised.
                if values
                    .iter()
                    .fold(0, |count, value| count + u64::from(value.is_infinite()))
                    > 0
                    && let Some(row) = infinite.position(|is_infinite| is_infinite)
                {
                    return Err(self.error(row, theirs, "the number is infinite"));
                }
                values
            }
            None => self.map(theirs, |text| {
                let is_missing = self.missing.iter().any(|missing| missing.eq_ignore_ascii_case(text));
                value::number(if is_missing { "" } else { text })
            })?,
        };
        let missing: Vec<f64> = self.missing.iter().filter_map(|text| text.parse().ok()).collect();
        if !missing.is_empty() {
            for value in &mut values {
                if missing.contains(value) {
                    *value = f64::NAN;
                }
            }
        }
        Ok(values)
    }

    /// The numbers of a column as they are: NaN where missing, infinite where the value is not a finite
    /// number.
    pub fn numbers_or_infinite(&self, theirs: &str) -> Result<Vec<f64>, StageError> {
        let mut first: Option<(usize, String)> = None;
        let values = match self.stored_numbers(theirs)? {
            Some(values) => values,
            None => {
                let mut values = Vec::with_capacity(self.rows());
                self.texts(theirs, |row, text| {
                    values.push(value::number(text).unwrap_or_else(|what| {
                        first.get_or_insert((row, what));
                        f64::INFINITY
                    }));
                    Ok(())
                })?;
                values
            }
        };
        let infinite = || values.iter().position(|value| value.is_infinite());
        let first = first.or_else(|| infinite().map(|row| (row, "the number is infinite".to_owned())));
        match first {
            Some((row, what)) if !values.iter().any(|value| value.is_finite()) => {
                Err(self.error(row, theirs, &what))
            }
            _ => Ok(values),
        }
    }

    /// The selected numbers of a column that stores numbers; `None` if it stores texts.
    fn stored_numbers(&self, theirs: &str) -> Result<Option<Vec<f64>>, StageError> {
        let column = self.column(theirs)?;
        if column.is_text() {
            return Ok(None);
        }
        if !column.is_numeric() {
            let (place, ty) = (&self.place, column.type_name());
            return Err(StageError::new(format!(
                "`{place}`, column `{theirs}`: holds {ty} and not numbers"
            )));
        }
        let values = column.numbers().map_err(|err| self.unusable(theirs, &err))?;
        Ok(Some(self.select(values)))
    }

    /// The dates of a column, none of which may be missing. A stored date outside the supported years is
    /// [`value::OUT_OF_RANGE`].
    pub fn dates(&self, theirs: &str, formats: &[String], zone: &str) -> Result<Vec<Date>, StageError> {
        let zone = self.zone(theirs, zone);
        let column = self.column(theirs)?;
        let is_stored = match column.data_type() {
            // Each instant has its date in the time zone.
            DataType::Timestamp(_, Some(_)) => matches!(zone, "" | "UTC" | "Etc/UTC"),
            ty => matches!(ty, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)),
        };
        if !is_stored {
            let mut dates = Dates::new(formats, zone).map_err(StageError::new)?;
            return self.map(theirs, |text| dates.parse(text));
        }
        let dates = column.dates().map_err(|err| self.unusable(theirs, &err))?;
        self.select(dates)
            .into_iter()
            .enumerate()
            .map(|(row, date)| date.ok_or_else(|| self.error(row, theirs, "the date is missing")))
            .collect()
    }

    /// The time zone that decides the dates of a column's instants: `zone` or, if that is empty, the one
    /// stored with the column.
    pub fn zone<'z>(&'z self, theirs: &str, zone: &'z str) -> &'z str {
        match self.column(theirs).map(Column::data_type) {
            Ok(DataType::Timestamp(_, Some(stored))) if zone.is_empty() && &**stored != "+00:00" => stored,
            _ => zone,
        }
    }

    fn unusable(&self, theirs: &str, err: &ArrowError) -> StageError {
        StageError::new(format!(
            "`{}`, column `{theirs}`: the values have no conversion: {err}",
            self.place
        ))
    }
}
