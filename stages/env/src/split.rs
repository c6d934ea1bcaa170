//! The split of the snapshots into training and test ranges.

use crate::open_options::Split;
use crate::worlds::{FIRST, HeldOut, LAST, Role, WorldSet};
use datasets::{Date, DateRange};
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, StageError, TestPart};
use std::collections::BTreeSet;

/// Snapshots from the first to the last, both included; an episode takes at least one step, so that they
/// differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRange {
    pub first: usize,
    pub last: usize,
}

/// The rules by which the snapshots of worlds are split: settings of an environment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitRules<'a> {
    /// The training dates; without them, all that `test`, `purge` and `embargo` leave before the test dates.
    pub train: Option<DateRange>,
    pub test: Option<&'a HeldOut>,
    pub validation: Option<&'a HeldOut>,
    /// The fraction of snapshots (after the features' warm-up) in the test set, if no dates are given.
    pub test_fraction: f64,
    /// Training snapshots within this many calendar days before the first test or validation day are dropped,
    /// and validation ones before the first test day.
    pub purge: u32,
    /// Training snapshots within this many calendar days after the last test or validation day are dropped,
    /// and validation ones after the last test day.
    pub embargo: u32,
}

impl SplitRules<'_> {
    /// Checks all values.
    pub(crate) fn validate(&self) -> Result<(), ConfigProblem> {
        ConfigProblem::new("test_fraction", "it must be above 0 and at most 1")
            .when(!(self.test_fraction > 0.0 && self.test_fraction <= 1.0))?;
        if let Some(range) = self.train.filter(|range| range.from > range.to) {
            return Err(
                ConfigProblem::new("train", format!("{} is after {}", range.from, range.to))
                    .hint("both ends are included; write the earlier first"),
            );
        }
        for (field, held) in [("test", self.test), ("validation", self.validation)] {
            if let Some(held) = held {
                held.validate(field)?;
            }
        }
        let of_every_world = |held: Option<&HeldOut>| {
            let held = held.filter(|held| held.worlds.is_none())?;
            held.dates()
        };
        // Without `test`, the dates after `train` are those of the test.
        let rest = self
            .train
            .filter(|_| self.test.is_none())
            .map(|train| self.after(train));
        let (test, validation) = (of_every_world(self.test).or(rest), of_every_world(self.validation));
        let pairs = [
            ("test", test, "training", self.train),
            ("validation", validation, "test", test),
        ];
        for (field, held, other, range) in pairs {
            if let (Some(held), Some(range)) = (held, range)
                && range.from <= held.to
                && held.from <= range.to
            {
                return Err(ConfigProblem::new(
                    field,
                    format!(
                        "the {field} dates {} overlap the {other} dates {}",
                        shown(held),
                        shown(range)
                    ),
                )
                .hint(APART));
            }
        }
        Ok(())
    }

    /// The part of the market that is tested, as far as the settings tell; `symbols` are the chosen ones.
    pub(crate) fn test_part<'s>(&self, symbols: impl IntoIterator<Item = &'s String>) -> TestPart {
        let rest = || Some(self.after(self.train?).from);
        let (from, to) = self.test.map_or_else(|| (rest(), None), |test| (test.from, test.to));
        let worlds = match self.test.and_then(|test| test.worlds.as_ref()) {
            Some(WorldSet::Named(names)) => names.iter().cloned().collect(),
            _ => BTreeSet::new(),
        };
        TestPart {
            symbols: symbols
                .into_iter()
                .filter(|symbol| !symbol.is_empty())
                .cloned()
                .collect(),
            worlds,
            from,
            to,
        }
    }

    /// The dates later than `range` by more than the purge.
    fn after(&self, range: DateRange) -> DateRange {
        DateRange {
            from: range.to.plus(days(self.purge) + 1),
            to: LAST,
        }
    }

    /// The parts of `range` that lie before `held` by more than the purge, or after it by more than the
    /// embargo.
    fn apart(&self, range: DateRange, held: DateRange) -> impl Iterator<Item = DateRange> {
        let early = DateRange {
            to: range.to.min(held.from.plus(-days(self.purge) - 1)),
            ..range
        };
        let late = DateRange {
            from: range.from.max(held.to.plus(days(self.embargo) + 1)),
            ..range
        };
        [early, late].into_iter().filter(|range| range.from <= range.to)
    }
}

const APART: &str =
    "a policy must be tested on dates that it was not trained or selected on; move one of the ranges";

fn shown(range: DateRange) -> String {
    match (range.from == FIRST, range.to == LAST) {
        (false, false) => format!("{} to {}", range.from, range.to),
        (false, true) => format!("from {} on", range.from),
        (true, _) => format!("up to {}", range.to),
    }
}

/// The snapshots of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Splits {
    /// Ranges in order; empty in a world that is held out.
    pub train: Vec<SnapshotRange>,
    /// `None` where nothing is held out for validation.
    pub validation: Option<SnapshotRange>,
    /// `None` in a world of which nothing is tested.
    pub test: Option<SnapshotRange>,
}

impl Splits {
    /// All ranges, for checks.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = &SnapshotRange> {
        self.train.iter().chain(&self.validation).chain(&self.test)
    }

    /// The ranges that a split runs over.
    pub(crate) fn of(&self, split: Split) -> Vec<SnapshotRange> {
        match split {
            Split::Train => self.train.clone(),
            Split::Validation => self.validation.into_iter().collect(),
            Split::Test => self.test.into_iter().collect(),
        }
    }
}

/// Splits the snapshots of `dates` of a world, of which the first `warm_up` have features without a value.
///
/// Worlds that `test` or `validation` names are held out whole, or on the dates beside the names; dates
/// without names are held out of every world. Training dates keep a distance to the dates that are held out;
/// another world needs none.
pub(crate) fn split(
    dates: &[Date],
    warm_up: usize,
    rules: &SplitRules<'_>,
    role: Role,
) -> Result<Splits, StageError> {
    let usable = dates.len().saturating_sub(warm_up);
    StageError::new(format!(
        "of {} snapshots, the first {warm_up} have features without a value: fewer than 2 are left to \
            trade",
        dates.len()
    ))
    .hint("give more dates, or features with shorter windows")
    .when(usable < 2)?;
    let within = |range: DateRange| {
        let first = dates.partition_point(|&date| date < range.from).max(warm_up);
        let end = dates.partition_point(|&date| date <= range.to);
        (first + 1 < end).then(|| SnapshotRange { first, last: end - 1 })
    };
    let found =
        |which: &str, range: DateRange| within(range).ok_or_else(|| too_few(which, range, dates, warm_up));
    let everything = DateRange {
        from: dates[0],
        to: dates[dates.len() - 1],
    };
    let by_worlds = |held: Option<&HeldOut>| held.is_some_and(|held| held.worlds.is_some());
    let dates_of = |held: Option<&HeldOut>| held.and_then(HeldOut::dates);
    let (test_dates, validation_dates) = (dates_of(rules.test), dates_of(rules.validation));
    let test = match (by_worlds(rules.test), test_dates, rules.train) {
        (true, range, _) if role.is_test => Some(found("test", range.unwrap_or(everything))?),
        (true, ..) => None,
        (false, Some(range), _) => Some(found("test", range)?),
        (false, None, Some(train)) => {
            let rest = rules.after(train);
            Some(found(
                "test",
                DateRange {
                    to: everything.to,
                    ..rest
                },
            )?)
        }
        (false, None, None) => {
            let n = ((rules.test_fraction * usable as f64).ceil() as usize).clamp(2, usable);
            // A day is not split: of several snapshots a day, all.
            let first = dates[dates.len() - n];
            Some(SnapshotRange {
                first: dates.partition_point(|&date| date < first).max(warm_up),
                last: dates.len() - 1,
            })
        }
    };
    let test = test.map(|range| match rules.test.is_some_and(|test| test.closes_after) {
        true => SnapshotRange {
            last: (range.last + 1).min(dates.len() - 1),
            ..range
        },
        false => range,
    });
    let validation = match (by_worlds(rules.validation), validation_dates) {
        (true, range) if role.is_validation => Some(found("validate", range.unwrap_or(everything))?),
        (false, Some(range)) if !role.is_test => Some(found("validate", range)?),
        _ => None,
    };
    // Held out of the other worlds as well, where they have dates.
    let tested = test.map(|test| dates_within(dates, test)).or(test_dates);
    let validation = match (validation, tested) {
        (Some(validation), Some(tested)) => {
            let range = dates_within(dates, validation);
            if range.from <= tested.to && tested.from <= range.to {
                return Err(StageError::new(format!(
                    "the validation dates {} overlap the test dates {}",
                    shown(range),
                    shown(tested)
                ))
                .hint(APART));
            }
            let near = rules.apart(range, tested).next().and_then(within);
            Some(near.ok_or_else(|| too_few("validate", range, dates, warm_up))?)
        }
        (validation, _) => validation,
    };
    let nothing_to_train =
        !by_worlds(rules.test) && rules.train.is_none() && test.is_some_and(|test| test.first <= warm_up);
    if nothing_to_train || role.is_test || role.is_validation {
        return Ok(Splits {
            train: Vec::new(),
            validation,
            test,
        });
    }
    let wanted = rules.train.unwrap_or(match (by_worlds(rules.test), test) {
        (false, Some(test)) => DateRange {
            from: dates[0],
            to: dates[test.first].plus(-1),
        },
        _ => everything,
    });
    let mut left = vec![wanted];
    for held in [tested, validation_dates].into_iter().flatten() {
        left = left.into_iter().flat_map(|range| rules.apart(range, held)).collect();
    }
    let train: Vec<SnapshotRange> = left.iter().filter_map(|&range| within(range)).collect();
    if train.is_empty() {
        return Err(too_few(
            "train",
            left.first().copied().unwrap_or(wanted),
            dates,
            warm_up,
        ));
    }
    Ok(Splits {
        train,
        validation,
        test,
    })
}

/// The dates from the first to the last snapshot of a range.
fn dates_within(dates: &[Date], range: SnapshotRange) -> DateRange {
    DateRange {
        from: dates[range.first],
        to: dates[range.last],
    }
}

fn days(days: u32) -> i32 {
    i32::try_from(days).unwrap_or(i32::MAX / 4)
}

fn too_few(which: &str, range: DateRange, dates: &[Date], warm_up: usize) -> StageError {
    StageError::new(format!(
        "fewer than two snapshots to {which} on: dates {} to {} (after purge and embargo) of data from {} \
         to {}, whose first \
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
    use crate::options::OptionsConfig;
    use crate::worlds::WorldSet;

    fn daily(n: i32) -> Vec<Date> {
        (0..n).map(Date).collect()
    }

    fn split(dates: &[Date], warm_up: usize, config: &OptionsConfig) -> Result<Splits, StageError> {
        super::split(dates, warm_up, &config.split_rules(), Role::default())
    }

    fn held(from: i32, to: i32) -> Option<HeldOut> {
        Some(HeldOut::from(dates(from, to)))
    }

    fn dates(from: i32, to: i32) -> DateRange {
        DateRange {
            from: Date(from),
            to: Date(to),
        }
    }

    fn range(first: usize, last: usize) -> SnapshotRange {
        SnapshotRange { first, last }
    }

    #[test]
    fn fractions_leave_a_purge() {
        let config = OptionsConfig::default();
        let splits = split(&daily(110), 10, &config).unwrap();
        assert_eq!(splits.test, Some(range(85, 109)));
        // 74 is the last one more than ten days before 85.
        assert_eq!(splits.train, [range(10, 74)]);
        let all = OptionsConfig {
            test_fraction: 1.0,
            ..config
        };
        let splits = split(&daily(110), 10, &all).unwrap();
        assert_eq!((splits.train.len(), splits.test), (0, Some(range(10, 109))));
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
        assert_eq!(splits.test, Some(range(80, 109)));
        assert_eq!(splits.train, [range(0, 79)]);
    }

    #[test]
    fn ranges_are_purged_and_embargoed() {
        let config = OptionsConfig {
            train: Some(dates(0, 49)),
            test: held(50, 80),
            purge: 3,
            embargo: 5,
            ..OptionsConfig::default()
        };
        let found = split(&daily(100), 0, &config).unwrap();
        assert_eq!(found.train, [range(0, 46)]);
        let late = OptionsConfig {
            train: Some(dates(81, 99)),
            ..config.clone()
        };
        assert_eq!(split(&daily(100), 0, &late).unwrap().train, [range(86, 99)]);
        let after = OptionsConfig {
            test: None,
            ..config.clone()
        };
        assert_eq!(split(&daily(100), 0, &after).unwrap().test, Some(range(53, 99)));
        let overlap = OptionsConfig {
            train: Some(dates(0, 50)),
            ..config.clone()
        };
        assert_eq!(overlap.validate().unwrap_err().field, "test");
        let none = OptionsConfig {
            test: held(200, 300),
            ..config.clone()
        };
        assert!(split(&daily(100), 0, &none).is_err());
        assert!(split(&daily(100), 99, &OptionsConfig::default()).is_err());
        // Validation dates in the midst of training leave a part on either side.
        let validated = OptionsConfig {
            validation: held(20, 29),
            ..config
        };
        let found = split(&daily(100), 0, &validated).unwrap();
        assert_eq!(found.validation, Some(range(20, 29)));
        assert_eq!(found.train, [range(0, 16), range(35, 46)]);
    }

    #[test]
    fn validation_is_held_apart_from_the_test() {
        // By a fraction, by the dates after `train`, and by dates, of every world and of one that validates.
        let by_fraction = OptionsConfig {
            validation: held(70, 90),
            purge: 3,
            embargo: 5,
            ..OptionsConfig::default()
        };
        let after_training = OptionsConfig {
            train: Some(dates(0, 49)),
            ..by_fraction.clone()
        };
        let worlds = Some(HeldOut {
            worlds: Some(WorldSet::Number(1)),
            ..HeldOut::default()
        });
        let of_a_world = OptionsConfig {
            validation: worlds.clone(),
            ..by_fraction.clone()
        };
        let of_the_test_worlds = OptionsConfig {
            test: worlds.map(|worlds| HeldOut {
                from: Some(Date(80)),
                ..worlds
            }),
            ..by_fraction.clone()
        };
        let validates = Role {
            is_validation: true,
            ..Role::default()
        };
        for (config, role) in [
            (&by_fraction, Role::default()),
            (&after_training, Role::default()),
            (&of_a_world, validates),
            (&of_the_test_worlds, Role::default()),
        ] {
            let err = super::split(&daily(100), 0, &config.split_rules(), role).unwrap_err();
            assert!(err.to_string().contains("overlap the test dates"), "{err}");
        }
        assert_eq!(after_training.validate().unwrap_err().field, "validation");

        // Too near to the test by the purge before it, and by the embargo after it.
        let near = OptionsConfig {
            test: held(50, 69),
            validation: held(30, 49),
            ..by_fraction
        };
        assert_eq!(split(&daily(100), 0, &near).unwrap().validation, Some(range(30, 46)));
        let late = OptionsConfig {
            validation: held(70, 99),
            ..near.clone()
        };
        assert_eq!(split(&daily(100), 0, &late).unwrap().validation, Some(range(75, 99)));
        let nothing = OptionsConfig {
            validation: held(47, 49),
            ..near
        };
        assert!(split(&daily(100), 0, &nothing).is_err());
    }

    /// Folds that close after their last date join: the last snapshot of one is the first of the next, and
    /// training keeps its distance to it.
    #[test]
    fn test_dates_that_close_after_the_last_one_join_those_of_the_next_fold() {
        // Two snapshots a day, and none on every seventh day.
        let days: Vec<Date> = daily(100)
            .into_iter()
            .filter(|day| day.0 % 7 != 0)
            .flat_map(|day| [day; 2])
            .collect();
        let fold = |from: i32, to: i32, closes_after: bool| {
            let config = OptionsConfig {
                test: Some(HeldOut {
                    closes_after,
                    ..dates(from, to).into()
                }),
                train: Some(dates(0, 99)),
                embargo: 2,
                ..OptionsConfig::default()
            };
            split(&days, 0, &config).unwrap()
        };
        let (early, late) = (fold(50, 69, true), fold(70, 90, true));
        assert_eq!(early.test.unwrap().last, late.test.unwrap().first);
        assert_eq!(fold(50, 69, false).test.unwrap().last + 1, late.test.unwrap().first);
        // The first day after the test is 71, and two more are kept out.
        assert_eq!(days[early.train[1].first], Date(74));
        assert_eq!(fold(70, 99, true).test.unwrap().last, days.len() - 1);
        let validation = OptionsConfig {
            validation: Some(HeldOut {
                closes_after: true,
                ..dates(10, 20).into()
            }),
            ..OptionsConfig::default()
        };
        assert_eq!(validation.validate().unwrap_err().field, "validation");
    }

    #[test]
    fn worlds_are_held_out_whole_or_on_dates() {
        let config = OptionsConfig {
            test: Some(HeldOut {
                worlds: Some(WorldSet::Number(1)),
                ..HeldOut::default()
            }),
            purge: 3,
            embargo: 5,
            ..OptionsConfig::default()
        };
        let of = |config: &OptionsConfig, role| {
            super::split(&daily(100), 10, &config.split_rules(), role).unwrap()
        };
        let (tested, validated) = (
            Role {
                is_test: true,
                ..Role::default()
            },
            Role {
                is_validation: true,
                ..Role::default()
            },
        );
        let found = of(&config, tested);
        assert_eq!((found.train.len(), found.test), (0, Some(range(10, 99))));
        let found = of(&config, Role::default());
        assert_eq!((found.train, found.test), (vec![range(10, 99)], None));
        // Dates of the test worlds are held out of training in the others as well.
        let mut dated = config.clone();
        dated.test.as_mut().unwrap().from = Some(Date(80));
        assert_eq!(of(&dated, tested).test, Some(range(80, 99)));
        assert_eq!(of(&dated, Role::default()).train, [range(10, 76)]);
        let with_validation = OptionsConfig {
            validation: config.test.clone(),
            ..config
        };
        let found = of(&with_validation, validated);
        assert_eq!(
            (found.validation, found.test, found.train.len()),
            (Some(range(10, 99)), None, 0)
        );
    }
}
