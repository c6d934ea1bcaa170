//! The split of the snapshots into training and test ranges.

use super::config::OptionsConfig;
use datasets::{Date, DateRange};
use serde::{Deserialize, Serialize};
use stages_core::StageError;

/// Snapshots from the first to the last, both included; an episode takes at least one step, so that they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapshotRange {
    pub first: usize,
    pub last: usize,
}

/// The snapshots of a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Splits {
    /// `None` where all snapshots are for testing.
    pub train: Option<SnapshotRange>,
    pub test: SnapshotRange,
}

/// Splits the snapshots of `dates`, of which the first `warm_up` have features without a value.
pub(crate) fn split(dates: &[Date], warm_up: usize, config: &OptionsConfig) -> Result<Splits, StageError> {
    let usable = dates.len().saturating_sub(warm_up);
    if usable < 2 {
        return Err(StageError::new(format!(
            "of {} snapshots, the first {warm_up} have features without a value: fewer than 2 are left to trade",
            dates.len()
        ))
        .hint("give more dates, or features with shorter windows"));
    }
    let within = |range: DateRange| {
        let first = dates.partition_point(|&date| date < range.from).max(warm_up);
        let end = dates.partition_point(|&date| date <= range.to);
        (first + 1 < end).then(|| SnapshotRange { first, last: end - 1 })
    };
    let end = dates[dates.len() - 1];
    let test = match (config.test, config.train) {
        (Some(test), _) => within(test).ok_or_else(|| too_few("test", test, dates, warm_up))?,
        (None, Some(train)) => {
            let rest = DateRange {
                from: train.to.plus(days(config.purge) + 1),
                to: end,
            };
            within(rest).ok_or_else(|| too_few("test", rest, dates, warm_up))?
        }
        (None, None) => {
            let n = ((config.test_fraction * usable as f64).ceil() as usize).clamp(2, usable);
            // A day is not split: of several snapshots a day, all.
            let first = dates[dates.len() - n];
            SnapshotRange {
                first: dates.partition_point(|&date| date < first).max(warm_up),
                last: dates.len() - 1,
            }
        }
    };
    let whole_range_is_tested = config.train.is_none() && test.first <= warm_up;
    if whole_range_is_tested {
        return Ok(Splits { train: None, test });
    }
    let (before, after) = (
        dates[test.first].plus(-days(config.purge)),
        dates[test.last].plus(days(config.embargo)),
    );
    let wanted = config.train.unwrap_or(DateRange {
        from: dates[0],
        to: before,
    });
    // Ranges that overlap were refused: training lies wholly on one side.
    let kept = if wanted.from <= dates[test.first] {
        DateRange {
            from: wanted.from,
            to: wanted.to.min(before.plus(-1)),
        }
    } else {
        DateRange {
            from: wanted.from.max(after.plus(1)),
            to: wanted.to,
        }
    };
    let train = within(kept).ok_or_else(|| too_few("train", kept, dates, warm_up))?;
    Ok(Splits {
        train: Some(train),
        test,
    })
}

fn days(days: u32) -> i32 {
    i32::try_from(days).unwrap_or(i32::MAX / 4)
}

fn too_few(which: &str, range: DateRange, dates: &[Date], warm_up: usize) -> StageError {
    StageError::new(format!(
        "fewer than two snapshots to {which} on: dates {} to {} (after purge and embargo) of a chain from {} to {}, whose first \
         {warm_up} snapshots have features without a value",
        range.from,
        range.to,
        dates[0],
        dates[dates.len() - 1]
    ))
    .hint("change `train`, `test`, `purge` or `embargo`, or give features shorter windows")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daily(n: i32) -> Vec<Date> {
        (0..n).map(Date).collect()
    }

    #[test]
    fn fractions_leave_a_purge() {
        let config = OptionsConfig::default();
        let splits = split(&daily(110), 10, &config).unwrap();
        assert_eq!(splits.test, SnapshotRange { first: 85, last: 109 });
        // 74 is the last one more than ten days before 85.
        assert_eq!(splits.train, Some(SnapshotRange { first: 10, last: 74 }));
        let all = OptionsConfig {
            test_fraction: 1.0,
            ..config
        };
        assert_eq!(
            split(&daily(110), 10, &all).unwrap(),
            Splits {
                train: None,
                test: SnapshotRange { first: 10, last: 109 }
            }
        );
    }

    #[test]
    fn a_day_of_several_snapshots_is_not_split() {
        let dates: Vec<Date> = (0..110).map(|i| Date(i / 4)).collect();
        let config = OptionsConfig {
            purge: 0,
            ..OptionsConfig::default()
        };
        let splits = split(&dates, 0, &config).unwrap();
        // A quarter would begin at snapshot 82, on the day of snapshots 80 to 83.
        assert_eq!(splits.test, SnapshotRange { first: 80, last: 109 });
        assert_eq!(splits.train, Some(SnapshotRange { first: 0, last: 79 }));
    }

    #[test]
    fn ranges_are_purged_and_embargoed() {
        let range = |from, to| {
            Some(DateRange {
                from: Date(from),
                to: Date(to),
            })
        };
        let config = OptionsConfig {
            train: range(0, 49),
            test: range(50, 80),
            purge: 3,
            embargo: 5,
            ..OptionsConfig::default()
        };
        let splits = split(&daily(100), 0, &config).unwrap();
        assert_eq!(splits.train, Some(SnapshotRange { first: 0, last: 46 }));
        let late = OptionsConfig {
            train: range(81, 99),
            ..config.clone()
        };
        assert_eq!(
            split(&daily(100), 0, &late).unwrap().train,
            Some(SnapshotRange { first: 86, last: 99 })
        );
        let after = OptionsConfig {
            test: None,
            ..config.clone()
        };
        assert_eq!(
            split(&daily(100), 0, &after).unwrap().test,
            SnapshotRange { first: 53, last: 99 }
        );
        let overlap = OptionsConfig {
            train: range(0, 50),
            ..config.clone()
        };
        assert_eq!(overlap.validate().unwrap_err().field, "test");
        let none = OptionsConfig {
            test: range(200, 300),
            ..config
        };
        assert!(split(&daily(100), 0, &none).is_err());
        assert!(split(&daily(100), 99, &OptionsConfig::default()).is_err());
    }
}
