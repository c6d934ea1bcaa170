//! Features by date, as environments show them.

use datasets::SnapshotTime;
use stages_core::StageError;

/// With fewer snapshots than this, any share of missing values is accepted: a share of a few says little.
pub(crate) const FEW_SNAPSHOTS: usize = 100;

/// A market feature.
#[derive(Clone, Debug)]
pub struct FeatureColumn {
    /// The name.
    pub name: String,
    /// The values by time, ascending; NaN where they are null. Values of days stand for the ends of the days:
    /// with several snapshots a day, a snapshot shows the value of the day before.
    pub values: Vec<(SnapshotTime, f64)>,
}

/// The value of a feature at snapshot `t`: that of the same instant or the same day. With several snapshots a
/// day, a day's value is known at the end of the day, and shown on the next day that has snapshots.
fn value_at(column: &FeatureColumn, times: &[SnapshotTime], t: usize) -> Option<f64> {
    let time = times[t];
    let is_daily = column.values.first().is_some_and(|(of, _)| of.instant.is_none());
    if time.instant.is_none() || !is_daily {
        let row = column.values.partition_point(|(of, _)| *of < time);
        return column
            .values
            .get(row)
            .filter(|(of, _)| *of == time)
            .map(|(_, value)| *value);
    }
    let start_of_day = times.partition_point(|other| other.date < time.date);
    let day_before = match start_of_day.checked_sub(1) {
        Some(before) => times[before].date,
        // Before the first day, the last of a week.
        None => time.date.plus(-7),
    };
    let known = column
        .values
        .partition_point(|(of, _)| of.date <= time.last_known_day());
    let (of, value) = column.values.get(known.checked_sub(1)?)?;
    (of.date >= day_before).then_some(*value)
}

/// Refuses a column of which more than the share `most` of `all` values are missing: `what` says where, and
/// `hint` is said before and within the ways out.
pub(crate) fn check_gaps(
    gaps: usize,
    all: usize,
    most: f64,
    [before, place]: [&str; 2],
    what: impl Fn() -> String,
) -> Result<(), StageError> {
    if all < FEW_SNAPSHOTS || gaps as f64 / all as f64 <= most {
        return Ok(());
    }
    let (what, share, most) = (what(), 100.0 * gaps as f64 / all as f64, 100.0 * most);
    Err(StageError::new(format!(
        "{what} ({share:.1} %), more than {most:.0} % of them: it would show an old one"
    ))
    .hint(format!(
        "{before}`max_gaps: {}` accepts it, and leaving it out {place}avoids it",
        share.ceil() / 100.0
    )))
}

/// The market features `[T, F]`, and the first snapshot at which every feature has had a value. Later gaps
/// keep the last value; a feature whose share of gaps exceeds `most` is refused.
pub(crate) fn market_features(
    columns: &[FeatureColumn],
    times: &[SnapshotTime],
    most: f64,
    warnings: &mut Vec<String>,
) -> Result<(Vec<f32>, usize), StageError> {
    let width = columns.len();
    let mut out = vec![f32::NAN; times.len() * width];
    let mut warm_up = 0;
    let mut stale: Vec<String> = Vec::new();
    for (j, column) in columns.iter().enumerate() {
        StageError::new(format!(
            "the feature `{}` has several values a day, and the chain one snapshot",
            column.name
        ))
        .hint("make the features from this very chain, or of daily bars")
        .when(
            column.values.iter().any(|(of, _)| of.instant.is_some())
                && times.iter().all(|time| time.instant.is_none()),
        )?;
        let mut last = f32::NAN;
        let mut gaps = 0_usize;
        let mut first = None;
        for t in 0..times.len() {
            match value_at(column, times, t) {
                Some(value) if value.is_finite() => {
                    last = value as f32;
                    first.get_or_insert(t);
                }
                _ if first.is_some() => gaps += 1,
                _ => {}
            }
            out[t * width + j] = last;
        }
        let first = first.ok_or_else(|| {
            StageError::new(format!(
                "the feature `{}` has no value at any snapshot of the chain",
                column.name
            ))
            .hint(
                "its window may be longer than the data, or its dates may be others; leave it out or \
                shorten it",
            )
        })?;
        warm_up = warm_up.max(first);
        let after = times.len() - first;
        check_gaps(
            gaps,
            after,
            most,
            ["its dates may be others than the chain's; ", ""],
            || {
                format!(
                    "the feature `{}` has no value at {gaps} of {after} snapshots after its first",
                    column.name
                )
            },
        )?;
        if gaps > 0 {
            stale.push(format!("{} {gaps}", column.name));
        }
    }
    if !stale.is_empty() {
        warnings.push(format!(
            "features without a value show the last one known, at so many of {} snapshots: {}",
            times.len(),
            stale.join(", ")
        ));
    }
    Ok((out, warm_up))
}
