//! Interest on cash: the rate of the shortest tenor, and its age.

use datasets::{Date, SnapshotTime};
use stages_core::dataset::DataSet;
use stages_core::{Given, StageError, table};
use std::collections::BTreeMap;

/// The rate of the shortest tenor by date.
pub(crate) fn read(given: &Given<'_>) -> Result<Vec<(Date, f64)>, StageError> {
    let Some(input) = given.optional("rates") else {
        return Ok(Vec::new());
    };
    let mut shortest: BTreeMap<Date, (f64, f64)> = BTreeMap::new();
    for batch in DataSet::open(input)?.read_all(given.store)? {
        let (tenors, rates) = (
            table::floats_or_nan(&batch, "tenor_years")?,
            table::floats_or_nan(&batch, "rate")?,
        );
        for (i, date) in table::dates(&batch, "date")?.into_iter().enumerate() {
            let known = shortest.get(&date).is_some_and(|&(tenor, _)| tenor <= tenors[i]);
            if rates[i].is_finite() && !known {
                shortest.insert(date, (tenors[i], rates[i]));
            }
        }
    }
    Ok(shortest.into_iter().map(|(date, (_, rate))| (date, rate)).collect())
}

/// The rate at each snapshot: the last one known, or `otherwise` where none is.
pub(crate) fn by_snapshot(rates: &[(Date, f64)], times: &[SnapshotTime], otherwise: f64) -> Vec<f64> {
    times
        .iter()
        .map(|time| {
            let known = rates.partition_point(|&(day, _)| day <= time.last_known_day());
            known.checked_sub(1).map_or(otherwise, |i| rates[i].1)
        })
        .collect()
}

/// The growth of 1 over each number of days at a rate: `exp(rate days / 365) - 1`.
pub(crate) fn growth(days: &[f64], rate: &[f64]) -> Vec<f64> {
    let growth = |(rate, days): (&f64, &f64)| libm::expm1(rate * days / 365.0);
    rate.iter().zip(days).map(growth).collect()
}

/// Refuses snapshots whose last known rate is older than `most` days.
pub(crate) fn check_age(rates: &[(Date, f64)], times: &[SnapshotTime], most: u32) -> Result<(), StageError> {
    for time in times {
        let date = time.date;
        let known = rates.partition_point(|(day, _)| *day <= time.last_known_day());
        let Some((last, _)) = known.checked_sub(1).map(|i| rates[i]) else {
            continue;
        };
        let age = date.0 - last.0;
        if age > i32::try_from(most).unwrap_or(i32::MAX) {
            return Err(StageError::new(format!(
                "the rates end before the chain: cash would earn the rate of {last} on {date}, {age} days \
                later"
            ))
            .hint(format!(
                "give rates up to {date}, or `rate:` in place of `rates`; `max_rates_age_days: {age}` takes \
                the old ones"
            )));
        }
    }
    Ok(())
}
