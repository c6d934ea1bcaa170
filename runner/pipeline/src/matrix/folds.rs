//! The folds of a walk-forward as an axis of a matrix: each value names the training dates and the test dates
//! of a fold.
//!
//! ```yaml
//! matrix:
//!   fold: { from: 2015-02-09, to: 2021-12-31, train: 3y, test: 1y, mode: rolling, embargo: 10d }
//! with: { train: "${matrix.fold.train}", test: "${matrix.fold.test}" }
//! ```
//!
//! A value is a text such as `2015-02-09..2018-02-08+2018-02-19..2019-02-18`: what a fold trains and tests on
//! is its name, and a stage that fans out over it reads the same dates.

use crate::text::problems::Problems;
use crate::text::source::Spot;
use crate::text::suggest::suggest;
use crate::text::tree::{Key, Tree, Value};
use datasets::{Date, DateRange};
use serde_json::Value as Json;

/// The keys of the axis.
pub(crate) const KEYS: [&str; 6] = ["from", "to", "train", "test", "mode", "embargo"];

/// The parts of a fold that interpolations read.
pub(crate) const PARTS: [&str; 2] = ["train", "test"];

const FORM: &str = "write `{ from: 2015-02-09, to: 2021-12-31, train: 3y, test: 1y }`, with `mode: rolling` \
    or `expanding`, and `embargo: 10d`";

/// A length of time: calendar years and months, or days.
#[derive(Clone, Copy)]
enum Length {
    Months(u32),
    Days(u32),
}

impl Length {
    fn parse(text: &str) -> Option<Self> {
        let at = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = text.split_at(at);
        let number: u32 = number.parse().ok().filter(|&number| number <= 100_000)?;
        match unit {
            "y" => Some(Self::Months(number.checked_mul(12)?)),
            "mo" => Some(Self::Months(number)),
            "w" => Some(Self::Days(number * 7)),
            "d" => Some(Self::Days(number)),
            _ => None,
        }
    }

    /// The date this much after `date`, or before it; in a month without that day, its last day.
    fn from(self, date: Date, before: bool) -> Option<Date> {
        match self {
            Self::Days(days) => {
                let days = i32::try_from(days).ok()?;
                Some(date.plus(if before { -days } else { days }))
            }
            Self::Months(months) => {
                let (year, month, day) = date.ymd();
                let months = i64::from(months) * if before { -1 } else { 1 };
                let at = i64::from(year) * 12 + i64::from(month) - 1 + months;
                let (year, month) = (i32::try_from(at.div_euclid(12)).ok()?, at.rem_euclid(12) as u32 + 1);
                (1..=day).rev().find_map(|day| Date::from_ymd(year, month, day))
            }
        }
    }
}

/// The folds that `axis` describes, first to last, as values of the axis `name`: test dates follow one
/// another from the end of the first training dates to `to`, and the last may be shorter, but not by more
/// than a half.
pub(crate) fn folds(name: &str, axis: &Tree, problems: &mut Problems) -> Option<Vec<Json>> {
    let part = |key: &str| axis.entry(key).map(|(_, value)| value);
    let mut wrong = |key: &str, wanted: &str| {
        let (spot, what) = match part(key) {
            Some(value) => (
                value.spot,
                format!("`{key}` of the folds `{name}` is {}, not {wanted}", value.describe()),
            ),
            None => (axis.spot, format!("the folds `{name}` have no `{key}`")),
        };
        problems.add(spot, what, FORM);
    };
    let text = |key: &str| part(key).and_then(Tree::text);
    let date = |key: &str| text(key).and_then(|text| text.parse::<Date>().ok());
    let length = |key: &str| text(key).and_then(Length::parse);
    let Some(from) = date("from") else {
        wrong("from", "a date");
        return None;
    };
    let Some(to) = date("to") else {
        wrong("to", "a date");
        return None;
    };
    let Some(train) = length("train") else {
        wrong("train", "a length of time");
        return None;
    };
    let Some(test) = length("test") else {
        wrong("test", "a length of time");
        return None;
    };
    let embargo = match part("embargo") {
        None => Length::Days(0),
        Some(_) => match length("embargo") {
            Some(embargo) => embargo,
            None => {
                wrong("embargo", "a length of time");
                return None;
            }
        },
    };
    let expanding = match (part("mode"), text("mode")) {
        (None, _) | (_, Some("rolling")) => false,
        (_, Some("expanding")) => true,
        _ => {
            wrong("mode", "`rolling` or `expanding`");
            return None;
        }
    };
    let values = all(from, to, train, test, embargo, expanding).unwrap_or_default();
    if values.is_empty() {
        problems.add(
            axis.spot,
            format!("there is no fold `{name}` from {from} to {to}"),
            "give shorter `train` and `test`, or more dates",
        );
        return None;
    }
    Some(values)
}

fn all(
    from: Date,
    to: Date,
    train: Length,
    test: Length,
    embargo: Length,
    expanding: bool,
) -> Option<Vec<Json>> {
    let mut tested = embargo.from(train.from(from, false)?, false)?;
    let mut values = Vec::new();
    while tested <= to {
        let next = test.from(tested, false)?;
        let end = next.plus(-1).min(to);
        if next <= tested || 2 * (end.0 - tested.0 + 1) < next.0 - tested.0 {
            break;
        }
        let trained = embargo.from(tested, true)?;
        let first = if expanding {
            from
        } else {
            train.from(trained, true)?.max(from)
        };
        values.push(Json::String(format!("{first}..{}+{tested}..{end}", trained.plus(-1))));
        tested = next;
    }
    Some(values)
}

/// The dates of a part of a fold, as `{ from, to }`; `None` if the text is no fold's, or has no such part.
pub(crate) fn part(fold: &str, part: &str, spot: Spot) -> Option<Tree> {
    let (train, test) = fold.split_once('+')?;
    let range = |text: &str| {
        let (from, to) = text.split_once("..")?;
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        Some(DateRange { from, to })
    };
    let (train, test) = (range(train)?, range(test)?);
    let (whole, end) = part
        .split_once('.')
        .map_or((part, None), |(whole, end)| (whole, Some(end)));
    let range = match whole {
        "train" => train,
        "test" => test,
        _ => return None,
    };
    let scalar = |date: Date| Tree::scalar(spot, Json::String(date.to_string()));
    match end {
        Some("from") => Some(scalar(range.from)),
        Some("to") => Some(scalar(range.to)),
        Some(_) => None,
        None => {
            let key = |name: &str| Key {
                name: name.to_owned(),
                spot,
            };
            Some(Tree {
                value: Value::Map(vec![(key("from"), scalar(range.from)), (key("to"), scalar(range.to))]),
                ..Tree::scalar(spot, Json::Null)
            })
        }
    }
}

/// The hint of an unknown part of a fold.
pub(crate) fn unknown(part: &str) -> String {
    suggest(part, "parts of a fold", PARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(text: &str) -> Date {
        text.parse().unwrap()
    }

    fn found(to: &str, train: &str, test: &str, embargo: &str, expanding: bool) -> Vec<String> {
        let length = |text| Length::parse(text).unwrap();
        let folds = all(
            days("2015-02-09"),
            days(to),
            length(train),
            length(test),
            length(embargo),
            expanding,
        );
        folds
            .unwrap()
            .iter()
            .map(|fold| fold.as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn test_dates_follow_one_another() {
        assert_eq!(
            found("2020-12-31", "3y", "1y", "10d", false),
            [
                "2015-02-09..2018-02-08+2018-02-19..2019-02-18",
                "2016-02-09..2019-02-08+2019-02-19..2020-02-18",
                "2017-02-09..2020-02-08+2020-02-19..2020-12-31",
            ]
        );
        assert_eq!(
            found("2016-12-31", "12mo", "6mo", "0d", true),
            [
                "2015-02-09..2016-02-08+2016-02-09..2016-08-08",
                "2015-02-09..2016-08-08+2016-08-09..2016-12-31",
            ]
        );
        // Less than a half is left of the second.
        assert_eq!(found("2016-10-31", "12mo", "6mo", "0d", true).len(), 1);
        assert!(found("2016-01-31", "1y", "6mo", "0d", true).is_empty());
    }

    /// Every date is tested once, and no fold trains on a date on or after its first test date, or within the
    /// embargo before it.
    #[test]
    fn no_fold_trains_on_what_it_tests() {
        for expanding in [false, true] {
            let folds = found("2024-07-01", "2y", "3mo", "2w", expanding);
            let mut next = None;
            for fold in &folds {
                let date = |of: &str| {
                    let tree = part(fold, of, Spot::default()).unwrap();
                    days(tree.text().unwrap())
                };
                assert!(date("train.from") >= days("2015-02-09") && date("train.to") > date("train.from"));
                assert_eq!(date("test.from").0 - date("train.to").0, 15);
                assert!(next.is_none_or(|next| next == date("test.from")));
                next = Some(date("test.to").plus(1));
            }
            assert_eq!(folds.len(), 29);
        }
    }

    #[test]
    fn months_end_where_they_end() {
        let leap = days("2020-02-29");
        assert_eq!(Length::Months(12).from(leap, false), Some(days("2021-02-28")));
        assert_eq!(Length::Months(3).from(days("2020-05-31"), true), Some(leap));
        assert!(
            Length::parse("3").is_none() && Length::parse("y").is_none() && Length::parse("3h").is_none()
        );
    }
}
