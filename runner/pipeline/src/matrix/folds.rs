//! The folds of a walk-forward as an axis of a matrix: each value names the training dates and the test dates
//! of a fold.
//!
//! ```yaml
//! matrix:
//!   fold: { from: 2015-02-09, to: 2021-12-31, train: 3y, test: 1y, mode: rolling, embargo: 10d }
//! with: { train: "${matrix.fold.train}", test: "${matrix.fold.test}" }
//! ```
//!
//! A value is a text such as `2015-02-09..2018-02-08+2018-02-19..2019-02-18+`: a fold is named by the dates
//! on which it trains and tests, and a stage that fans out over the axis reads the same dates. With a plus
//! at the end, as all folds but the last have, the last step of the test ends on the first date of the next
//! fold.

use crate::text::{Block, Key, Problems, Spot, Text, Tree, Written, suggest};
use datasets::{Date, DateRange};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;

/// The folds of a walk-forward; `${matrix.NAME.train}` and `${matrix.NAME.test}` are the dates of each.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Folds {
    from: Text<Date>,
    to: Text<Date>,
    train: Text<Length>,
    test: Text<Length>,
    embargo: Option<Text<Length>>,
    mode: Option<Mode>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Rolling,
    Expanding,
}

impl Written for Date {
    const PATTERN: Option<&'static str> = Some("^[0-9]{4}-[0-9]{2}-[0-9]{2}$");

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| ", not a date\n".to_owned())
    }
}

/// The parts of a fold that interpolations read.
pub(crate) const PARTS: [&str; 2] = ["train", "test"];

/// A length of time: calendar years and months, or days.
#[derive(Clone, Copy)]
enum Length {
    Months(u32),
    Days(u32),
}

impl Written for Length {
    const PATTERN: Option<&'static str> = Some("^[0-9]+(y|mo|w|d)$");

    fn read(text: &str) -> Result<Self, String> {
        let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(at);
        match (number.parse(), unit) {
            (Ok(number @ ..=100_000), "y") => Ok(Self::Months(12 * number)),
            (Ok(number @ ..=100_000), "mo") => Ok(Self::Months(number)),
            (Ok(number @ ..=100_000), "w") => Ok(Self::Days(7 * number)),
            (Ok(number @ ..=100_000), "d") => Ok(Self::Days(number)),
            _ => Err(", not a length of time\n".to_owned()),
        }
    }
}

impl Length {
    /// The date that is this length after `date`, or before it; if the month lacks that day, the month's last
    /// day.
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

/// The folds that `axis` describes, first to last, as values of the axis `name`. Test periods follow one
/// another from the end of the first training period to `to`; the last may be shorter, but by no more than a
/// half.
pub(crate) fn folds(name: &str, axis: &Tree, problems: &mut Problems) -> Option<Vec<Json>> {
    let block = Block::named("folds", format!("the axis `{name}`"));
    let folds: Folds = block.read(axis, axis, problems)?;
    let (Text(from), Text(to), Text(train), Text(test)) = (folds.from, folds.to, folds.train, folds.test);
    let embargo = folds.embargo.map_or(Length::Days(0), |Text(embargo)| embargo);
    let expanding = folds.mode == Some(Mode::Expanding);
    let values = all(from, to, train, test, embargo, expanding).unwrap_or_default();
    if values.is_empty() {
        return problems.fail(
            axis.spot,
            format!("there is no fold `{name}` from {from} to {to}"),
            "give shorter `train` and `test`, or more dates",
        );
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
    let first_test = embargo.from(train.from(from, false)?, false)?;
    // Months are counted from the first date: the 31st that is the 28th in February is the 31st in March.
    let months = match (train, embargo, test) {
        (Length::Months(train), Length::Days(0), Length::Months(test)) => Some((train, test)),
        _ => None,
    };
    let begin = |fold: u32| match (months, test) {
        (Some((train, test)), _) => {
            Length::Months(train.checked_add(test.checked_mul(fold)?)?).from(from, false)
        }
        (None, Length::Months(each)) => Length::Months(each.checked_mul(fold)?).from(first_test, false),
        (None, Length::Days(each)) => Length::Days(each.checked_mul(fold)?).from(first_test, false),
    };
    let mut values = Vec::new();
    for fold in 0.. {
        let tested = begin(fold)?;
        if tested > to {
            break;
        }
        let next = begin(fold + 1)?;
        let end = next.plus(-1).min(to);
        if next <= tested || 2 * (end.0 - tested.0 + 1) < next.0 - tested.0 {
            break;
        }
        let trained = embargo.from(tested, true)?;
        let first = match months {
            _ if expanding => from,
            Some((_, test)) => Length::Months(test.checked_mul(fold)?).from(from, false)?,
            None => train.from(trained, true)?.max(from),
        };
        values.push(format!("{first}..{}+{tested}..{end}", trained.plus(-1)));
    }
    let last = values.len().saturating_sub(1);
    values[..last].iter_mut().for_each(|fold| fold.push('+'));
    Some(values.into_iter().map(Json::String).collect())
}

/// The dates of a part of a fold, as `{ from, to }`; `None` if the text is not a fold, or has no such part.
pub(crate) fn part(fold: &str, part: &str, spot: Spot) -> Option<Tree> {
    let (train, test) = fold.split_once('+')?;
    let (test, closes_after) = test.strip_suffix('+').map_or((test, false), |test| (test, true));
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
            let ends = [("from", range.from), ("to", range.to)];
            let mut ends: Vec<_> = ends.map(|(name, date)| (Key::at(spot, name), scalar(date))).into();
            if whole == "test" && closes_after {
                let yes = Tree::scalar(spot, Json::Bool(true));
                ends.push((Key::at(spot, "closes_after"), yes));
            }
            Some(Tree::map(spot, ends))
        }
    }
}

/// The hint for an unknown part of a fold.
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
        found_from("2015-02-09", to, train, test, embargo, expanding)
    }

    fn found_from(
        from: &str,
        to: &str,
        train: &str,
        test: &str,
        embargo: &str,
        expanding: bool,
    ) -> Vec<String> {
        let length = |text| Length::read(text).unwrap();
        let folds = all(
            days(from),
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
                "2015-02-09..2018-02-08+2018-02-19..2019-02-18+",
                "2016-02-09..2019-02-08+2019-02-19..2020-02-18+",
                "2017-02-09..2020-02-08+2020-02-19..2020-12-31",
            ]
        );
        assert_eq!(
            found("2016-12-31", "12mo", "6mo", "0d", true),
            [
                "2015-02-09..2016-02-08+2016-02-09..2016-08-08+",
                "2015-02-09..2016-08-08+2016-08-09..2016-12-31",
            ]
        );
        // Less than a half is left of the second.
        assert_eq!(found("2016-10-31", "12mo", "6mo", "0d", true).len(), 1);
        assert!(found("2016-01-31", "1y", "6mo", "0d", true).is_empty());
    }

    #[test]
    fn a_fold_closes_on_the_first_date_of_the_next() {
        let fold = "2015-02-09..2018-02-08+2018-02-19..2019-02-18+";
        let test = part(fold, "test", Spot::default()).unwrap();
        assert!(test.entry("closes_after").is_some());
        let to = part(fold, "test.to", Spot::default()).unwrap();
        assert_eq!(to.text(), Some("2019-02-18"));
        assert!(
            part(fold, "train", Spot::default())
                .unwrap()
                .entry("closes_after")
                .is_none()
        );
        let last = fold.strip_suffix('+').unwrap();
        assert!(
            part(last, "test", Spot::default())
                .unwrap()
                .entry("closes_after")
                .is_none()
        );
    }

    #[test]
    fn months_are_counted_from_the_first_date() {
        assert_eq!(
            found_from("2015-01-31", "2015-06-30", "1mo", "1mo", "0d", false),
            [
                "2015-01-31..2015-02-27+2015-02-28..2015-03-30+",
                "2015-02-28..2015-03-30+2015-03-31..2015-04-29+",
                "2015-03-31..2015-04-29+2015-04-30..2015-05-30+",
                "2015-04-30..2015-05-30+2015-05-31..2015-06-29",
            ]
        );
        assert_eq!(
            found_from("2016-02-29", "2020-12-31", "1y", "1y", "0d", false)[2..],
            [
                "2018-02-28..2019-02-27+2019-02-28..2020-02-28+",
                "2019-02-28..2020-02-28+2020-02-29..2020-12-31",
            ]
        );
        // A month's end or not, no date is tested twice or left out.
        for day in 1..=31 {
            for embargo in ["0d", "5d"] {
                let from = format!("2015-01-{day:02}");
                let folds = found_from(&from, "2017-12-31", "3mo", "1mo", embargo, false);
                let date =
                    |fold: &str, of: &str| days(part(fold, of, Spot::default()).unwrap().text().unwrap());
                for pair in folds.windows(2) {
                    assert_eq!(
                        date(&pair[0], "test.to").plus(1),
                        date(&pair[1], "test.from"),
                        "{pair:?}"
                    );
                    assert!(date(&pair[1], "train.to") < date(&pair[1], "test.from"), "{pair:?}");
                }
                assert!(folds.len() > 30, "{from} {}", folds.len());
            }
        }
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
        assert!(Length::read("3").is_err() && Length::read("y").is_err() && Length::read("3h").is_err());
    }
}
