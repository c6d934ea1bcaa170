//! Zero curves by date, from a rates data set.

use crate::numerics::term::zero_rate;
use arrow_array::RecordBatch;
use datasets::{Date, DateRange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::dataset::DataSet;
use stages_core::{Given, StageError, table};

/// The age that a curve of rates may have, in days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct MaxAge(pub u32);

impl Default for MaxAge {
    fn default() -> Self {
        Self(30)
    }
}

/// The curves of a rates data set, by date. A day without a curve uses the last one before it, never a later
/// one. Several snapshots of a day use the curve of the previous days.
#[derive(Clone, Debug, Default)]
pub(super) struct Curves {
    curves: Vec<(Date, Vec<(f64, f64)>)>,
    /// True for a chain with several snapshots a day, which only know the curves of previous days, since a
    /// day's curve is made at its end.
    is_intraday: bool,
}

impl Curves {
    /// Reads the data set at the optional port `rates`.
    pub(super) fn open(given: &Given<'_>, is_intraday: bool) -> Result<Option<Self>, StageError> {
        let Some(input) = given.optional("rates") else {
            return Ok(None);
        };
        let mut rows = Vec::new();
        for batch in DataSet::open(input)?.read_all(given.store)? {
            let dates = table::dates(&batch, "date")?;
            let tenors = table::floats_or_nan(&batch, "tenor_years")?;
            let rates = table::floats_or_nan(&batch, "rate")?;
            for ((date, tenor), rate) in dates.into_iter().zip(tenors).zip(rates) {
                if !tenor.is_nan() && !rate.is_nan() {
                    rows.push((date, tenor, rate));
                }
            }
        }
        Ok(Some(Self {
            is_intraday,
            ..Self::new(rows)
        }))
    }

    /// Collects curves from rows of (date, tenor in years, rate).
    pub(super) fn new(mut rows: Vec<(Date, f64, f64)>) -> Self {
        rows.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut curves: Vec<(Date, Vec<(f64, f64)>)> = Vec::new();
        for (date, tenor, rate) in rows {
            match curves.last_mut() {
                Some((last, curve)) if *last == date => curve.push((tenor, rate)),
                _ => curves.push((date, vec![(tenor, rate)])),
            }
        }
        Self {
            curves,
            is_intraday: false,
        }
    }

    /// The number of curves that are known on `date`.
    fn known(&self, date: Date) -> usize {
        let last = date.plus(-i32::from(self.is_intraday));
        self.curves.partition_point(|(day, _)| *day <= last)
    }

    /// The last curve known on `date`.
    fn as_of(&self, date: Date) -> &[(f64, f64)] {
        let after = self.known(date);
        after.checked_sub(1).map_or(&[], |i| &self.curves[i].1)
    }

    /// Refuses a table of the chain with a day whose curve is more than `most` days old.
    ///
    /// # Errors
    /// The error names the day and the date of its curve.
    pub(super) fn check_age(&self, chain: &RecordBatch, most: MaxAge) -> Result<(), StageError> {
        match self.stale(table::dates(chain, "date")?, most.0) {
            None => Ok(()),
            Some((date, last)) => Err(StageError::new(format!(
                "the rates end before the chain: {date} would be discounted by the curve of {last}, {} days \
                before",
                date.0 - last.0
            ))
            .hint(format!(
                "give rates up to {date}, or leave `rates` out; `max_rates_age_days: {}` takes the old ones",
                date.0 - last.0
            ))),
        }
    }

    /// The first of `dates` (ascending) whose curve is more than `days` days old, with the date of that
    /// curve.
    pub(super) fn stale(&self, dates: impl IntoIterator<Item = Date>, days: u32) -> Option<(Date, Date)> {
        dates.into_iter().find_map(|date| {
            let after = self.known(date);
            let (last, _) = self.curves.get(after.checked_sub(1)?)?;
            (date.0 - last.0 > i32::try_from(days).unwrap_or(i32::MAX)).then_some((date, *last))
        })
    }

    /// The zero rate on `date` for a maturity of `years`; NaN if none is known by then.
    pub(super) fn rate(&self, date: Date, years: f64) -> f64 {
        zero_rate(self.as_of(date), years)
    }

    /// All data that [`Curves::rate`] uses for dates in `range`, as bytes for a memo's key.
    pub(super) fn key(&self, range: DateRange) -> Vec<u8> {
        let start = self.known(range.from).saturating_sub(1);
        let end = self.known(range.to);
        let mut bytes = Vec::new();
        for (date, curve) in self.curves.get(start..end).unwrap_or_default() {
            bytes.extend(date.0.to_le_bytes());
            bytes.extend((curve.len() as u64).to_le_bytes());
            for (tenor, rate) in curve {
                bytes.extend(tenor.to_le_bytes());
                bytes.extend(rate.to_le_bytes());
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_back_and_never_ahead() {
        let curves = Curves::new(vec![(Date(10), 1.0, 0.02), (Date(20), 1.0, 0.03)]);
        assert!(curves.rate(Date(9), 1.0).is_nan());
        assert_eq!(curves.rate(Date(19), 1.0), 0.02);
        assert_eq!(curves.rate(Date(20), 1.0), 0.03);
        let range = |from, to| DateRange {
            from: Date(from),
            to: Date(to),
        };
        let later = Curves::new(vec![(Date(10), 1.0, 0.02), (Date(20), 1.0, 0.04)]);
        assert_eq!(curves.key(range(11, 19)), later.key(range(11, 19)));
        assert_ne!(curves.key(range(11, 20)), later.key(range(11, 20)));
        assert_eq!(curves.stale([Date(9), Date(19), Date(50)], 30), None);
        assert_eq!(
            curves.stale([Date(9), Date(19), Date(51), Date(60)], 30),
            Some((Date(51), Date(20)))
        );
        let intraday = Curves {
            is_intraday: true,
            ..curves
        };
        assert!(intraday.rate(Date(10), 1.0).is_nan());
        assert_eq!(
            (intraday.rate(Date(20), 1.0), intraday.rate(Date(21), 1.0)),
            (0.02, 0.03)
        );
        let later = Curves {
            is_intraday: true,
            ..later
        };
        assert_eq!(intraday.key(range(10, 20)), later.key(range(10, 20)));
        assert_ne!(intraday.key(range(10, 21)), later.key(range(10, 21)));
    }
}
