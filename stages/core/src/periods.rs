//! Periods a year, by which figures are annualised: a fact in the metadata of data sets, environments and
//! trajectories.

use crate::dataset::DataSet;
use crate::error::StageError;
use crate::table;
use cache::Store;
use datasets::calendar::{CalendarName, DaysAYear};
use datasets::{Date, SnapshotTime};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// The key of [`PeriodsAYear`] in metadata.
pub const PERIODS_A_YEAR: &str = "periods_a_year";

/// The fewest returns from which figures are annualised: with fewer, an annual figure is a guess.
pub const LEAST_OBSERVATIONS: usize = 60;

/// The periods a year between snapshots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeriodsAYear {
    /// Their number: 252 of the days of an exchange.
    pub value: f64,
    /// Its origin: `calendar us`, or `found`, by the dates.
    pub origin: String,
}

impl PeriodsAYear {
    /// The periods between the snapshots at `times`, of data of `dates`; both ascending.
    pub fn new(
        calendar: Option<CalendarName>,
        dates: impl IntoIterator<Item = Date>,
        times: &[SnapshotTime],
    ) -> Self {
        let known = calendar.filter(|calendar| calendar.knows_holidays());
        Self {
            value: DaysAYear::of(calendar, dates).periods(times),
            origin: known.map_or_else(|| "found".to_owned(), |calendar| format!("calendar {calendar}")),
        }
    }

    /// The periods of daily data of `dates`, ascending.
    pub fn of_dates(calendar: Option<CalendarName>, dates: impl IntoIterator<Item = Date>) -> Self {
        let times: Vec<SnapshotTime> = dates.into_iter().map(SnapshotTime::of_day).collect();
        Self::new(calendar, times.iter().map(|time| time.date), &times)
    }

    /// The periods that metadata states.
    pub fn stated(meta: &Value) -> Option<Self> {
        Self::deserialize(meta.get(PERIODS_A_YEAR)?).ok()
    }

    /// The periods of a data set's dates: stated in its metadata, or else by the dates.
    pub fn of_set(set: &DataSet, store: &Store) -> Result<Self, StageError> {
        if let Some(stated) = Self::stated(&set.meta) {
            return Ok(stated);
        }
        let mut dates = BTreeSet::new();
        for partition in &set.partitions {
            let batch = table::columns_from_parquet(store.blob(partition.blob.blob)?, &["date"])?;
            dates.extend(table::dates(&batch, "date")?);
        }
        Ok(Self::of_dates(calendar(&set.meta), dates))
    }
}

/// The calendar that metadata states.
pub fn calendar(meta: &Value) -> Option<CalendarName> {
    CalendarName::deserialize(meta.get("calendar")?).ok()
}
