//! Columns that are not read, and by which rows differ as by a symbol.

use super::names::is_usual;
use super::spelling::listed;
use crate::frame::{Frame, header};
use crate::unpack::Packed;
use crate::value::{is_missing, shown};
use datasets::layout::normal;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::collections::{BTreeMap, BTreeSet};

/// The remedy for a column of symbols whose name is empty.
pub(crate) const NAMELESS: &str = "write its name into the header: `symbol`";

/// Returns whether a column is the index of a table that pandas wrote.
pub(crate) fn is_index(name: &str) -> bool {
    let name = normal(name);
    name.is_empty() || name.starts_with("unnamed:")
}

/// Returns whether values count up by one, as those of an index do.
pub(super) fn are_index<'v>(values: impl Iterator<Item = &'v str>) -> bool {
    let mut next = None;
    for value in values {
        let Some(number) = value
            .parse::<u64>()
            .ok()
            .filter(|_| value == "0" || !value.starts_with('0'))
        else {
            return false;
        };
        if next.is_some_and(|next| next != number) {
            return false;
        }
        next = Some(number + 1);
    }
    true
}

/// Returns whether a text is a number with decimals or an exponent, which no code has.
pub(super) fn is_decimal(text: &str) -> bool {
    text.contains(['.', 'e', 'E']) && text.parse::<f64>().is_ok_and(|number| number.fract() != 0.0)
}

pub(super) fn shown_values<'v>(values: impl Iterator<Item = &'v str>) -> String {
    listed(&values.map(|value| format!("`{}`", shown(value))).collect::<Vec<_>>())
}
/// The error for a file of bars whose rows differ by a column that is not read.
pub(crate) fn unread(place: &str, suspect: &Suspect) -> StageError {
    let Suspect {
        name, values, like, ..
    } = suspect;
    let reads = match like.strip_prefix("custom, like ").unwrap_or(like) {
        "" => format!("`layout: {{ columns: {{ symbol: \"{name}\", … }} }}`"),
        like => format!("`layout: {{ like: {like}, columns: {{ symbol: \"{name}\" }} }}`"),
    };
    let error = StageError::new(format!(
        "`{place}`: the column `{name}` ({values}) is not read, and rows differ by it as by a symbol"
    ));
    if name.is_empty() {
        return error.hint(NAMELESS);
    }
    error.hint(format!(
        "{reads} reads it; `symbol: NAME` says that all rows are of one"
    ))
}

/// A column that is not read and by which rows differ, as by a symbol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Suspect {
    /// Its name.
    pub name: String,
    /// Its values, in a list.
    pub values: String,
    /// The name of the layout of a file of bars; empty for one that is described.
    pub like: String,
    /// True if the numbers go on where it changes, as those of one series do.
    pub goes_on: bool,
}

impl Suspect {
    /// The remark about a column across which the numbers go on; `remedy` says that it is nobody's.
    pub(crate) fn note(&self, remedy: &str) -> String {
        let Self { name, values, .. } = self;
        format!(
            "the column `{name}` ({values}) is not read: the numbers go on where it changes, as those of one \
            series (`{remedy}` says so)"
        )
    }
}

/// A column of the beginning of a table that is not read, and by which rows differ as by a symbol: it tells
/// rows of one day apart, or the rows come in blocks of its values. `date` is the column of days, `numbers`
/// are those of the values.
pub(crate) fn suspect(
    packed: &Packed,
    date: Option<&str>,
    numbers: &[&str],
    is_read: impl Fn(&str) -> bool,
) -> Result<Option<Suspect>, StageError> {
    let header = header(packed)?;
    let is_other = |name: &String| {
        let is_known = is_read(&normal(name)) || is_usual("date", name) || is_usual("time", name);
        !is_known && date.is_none_or(|date| normal(date) != normal(name))
    };
    let mut seen = BTreeSet::new();
    let is_repeated =
        |name: &&String| header.iter().filter(|other| normal(other) == normal(name)).count() > 1;
    let others: Vec<&String> = header
        .iter()
        .filter(|name| is_other(name) && !is_repeated(name) && seen.insert(normal(name)))
        .collect();
    if others.is_empty() {
        return Ok(None);
    }
    let wanted: BTreeSet<String> = others
        .iter()
        .copied()
        .map(String::as_str)
        .chain(date)
        .chain(numbers.iter().copied())
        .map(normal)
        .collect();
    let Ok(frame) = Frame::read(&packed.beginning(), |name| wanted.contains(name)) else {
        // What cannot be read is an error where it is read.
        return Ok(None);
    };
    let mut days: Vec<String> = Vec::new();
    if let Some(date) = date.filter(|date| frame.has(date)) {
        days = frame.map(date, |text| Ok(text.to_owned()))?;
    }
    let mut best: Option<(bool, usize, Suspect)> = None;
    for name in others {
        let values = frame.map(name, |text| Ok(text.to_owned()))?;
        if is_index(name) && are_index(values.iter().map(String::as_str)) {
            continue;
        }
        let Some(apart) = tells_apart(name, &values, &days) else {
            continue;
        };
        let seams = match apart.is_key {
            true => Seams::Jump,
            false => Seams::of(&frame, numbers, &values),
        };
        let is_count = |text: &&str| text.parse::<f64>().is_ok() && !text.starts_with('0');
        let (goes_on, count) = (seams != Seams::Jump, apart.distinct.len());
        // A state that comes back, and many counts, beside prices that go on.
        let is_state = seams == Seams::One && apart.comes_back;
        if is_state || goes_on && count > FEW && apart.distinct.iter().all(is_count) {
            continue;
        }
        if best
            .as_ref()
            .is_none_or(|(is_note, most, _)| (*is_note, count) > (goes_on, *most))
        {
            let suspect = Suspect {
                name: name.trim().to_owned(),
                values: shown_values(apart.distinct.into_iter()),
                like: String::new(),
                goes_on,
            };
            best = Some((goes_on, count, suspect));
        }
    }
    Ok(best.map(|(_, _, suspect)| suspect))
}

/// The numbers of a table where the values of a column change.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seams {
    /// They jump, or nothing is known of them.
    Jump,
    /// They go on.
    GoOn,
    /// They go on, where those of several series would not.
    One,
}

impl Seams {
    /// The changes of numbers, within blocks of `values`, by which a jump exceeds the mean of them.
    const JUMP: f64 = 8.0;
    /// The range of numbers, in means of their changes, from which they have a level.
    const LEVEL: f64 = 10.0;
    /// The number of seams from which several series would not go on by chance.
    const MANY: usize = 3;

    /// Compares the changes of the columns `numbers` within and between blocks of equal `values`.
    fn of(frame: &Frame, numbers: &[&str], values: &[String]) -> Self {
        let mut found = None;
        for name in numbers {
            let Ok(numbers) = frame.raw_numbers(name) else { continue };
            let is_positive = numbers.iter().all(|number| number.is_nan() || *number > 0.0);
            let rows = values.iter().zip(&numbers);
            let rows: Vec<(&str, f64)> = rows
                .filter(|(value, number)| !is_missing(value) && !number.is_nan())
                .map(|(value, number)| (value.as_str(), if is_positive { number.ln() } else { *number }))
                .collect();
            let (mut within, mut between) = (Vec::new(), Vec::new());
            for pair in rows.windows(2) {
                let change = (pair[1].1 - pair[0].1).abs();
                match pair[0].0 == pair[1].0 {
                    true => within.push(change),
                    false => between.push(change),
                }
            }
            let mean = within.iter().sum::<f64>() / within.len() as f64;
            let largest = between.iter().copied().fold(0.0, f64::max);
            // Too few, or numbers that do not change: nothing is known.
            if within.len() < 2 * between.len().max(2) || mean <= 0.0 || largest > Self::JUMP * mean {
                return Self::Jump;
            }
            let ends = rows.iter().fold((f64::MAX, f64::MIN), |(low, high), (_, number)| {
                (number.min(low), number.max(high))
            });
            let is_one = between.len() >= Self::MANY && ends.1 - ends.0 >= Self::LEVEL * mean;
            found = Some(match is_one && found != Some(Self::GoOn) {
                true => Self::One,
                false => Self::GoOn,
            });
        }
        found.unwrap_or(Self::Jump)
    }
}

/// Usual names of columns of companies, beside those of symbols.
const COMPANIES: [&str; 9] = [
    "name",
    "company",
    "company name",
    "issuer",
    "security name",
    "stock name",
    "名称",
    "简称",
    "证券简称",
];

/// A column by which rows differ as by a symbol.
struct Apart<'v> {
    /// Its values, in order.
    distinct: Vec<&'v str>,
    /// True if a day has several rows, and one of each value.
    is_key: bool,
    /// True if a value comes back after others.
    comes_back: bool,
}

/// The number of values up to which numbers in blocks may be symbols, though the prices go on.
const FEW: usize = 5;

/// Returns whether a text is a period: `Q1`, `2022Q1`, `2022-01`, `Jan`, `monday`.
fn is_period(text: &str) -> bool {
    const NAMES: &str = "jan january feb february mar march apr april may jun june jul july aug august sep sept \
        september oct october nov november dec december mon monday tue tuesday wed wednesday thu thursday fri \
        friday sat saturday sun sunday";
    let letters: String = text
        .chars()
        .filter(|c| c.is_alphabetic())
        .collect::<String>()
        .to_lowercase();
    let has_digits = text.contains(|c: char| c.is_ascii_digit());
    match letters.as_str() {
        "" => has_digits && text.contains(['-', '/', '.']),
        "q" | "h" | "w" | "m" | "fy" | "qfy" | "fyq" => has_digits,
        letters => NAMES.split(' ').any(|name| name == letters),
    }
}

/// The distinct values of a column, if rows differ by it as by a symbol. Empty cells say nothing.
fn tells_apart<'v>(name: &str, values: &'v [String], days: &[String]) -> Option<Apart<'v>> {
    // `NA` is a symbol.
    let is_filled = |value: &str| !is_missing(value) || value == "NA";
    let filled: Vec<(usize, &str)> = (values.iter().map(String::as_str).enumerate())
        .filter(|(_, value)| is_filled(value))
        .collect();
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    let mut runs = 0;
    for (i, (_, value)) in filled.iter().enumerate() {
        *rows.entry(value).or_default() += 1;
        runs += usize::from(i == 0 || filled[i - 1].1 != *value);
    }
    let distinct = rows.len();
    let is_mostly_empty = filled.len() * 2 <= values.len();
    if distinct < 2
        || distinct * 2 > filled.len()
        || is_mostly_empty
        || rows.keys().any(|value| is_decimal(value))
    {
        return None;
    }
    let is_number = |text: &&str| text.parse::<f64>().is_ok();
    let numbers = rows.keys().filter(|value| is_number(value)).count();
    let has_zeros = || rows.keys().any(|value| value.len() > 1 && value.starts_with('0'));
    let is_text = numbers < distinct || has_zeros();
    let day_of = |at: usize| days.get(at).map(String::as_str);
    let by_day: BTreeSet<(&str, &str)> = filled
        .iter()
        .filter_map(|(at, value)| Some((day_of(*at)?, *value)))
        .collect();
    let all_days: BTreeSet<&str> = by_day.iter().map(|(day, _)| *day).collect();
    // Several rows a day, that are one a day by it.
    let is_key = all_days.len() < by_day.len() && by_day.len() == filled.len();
    // A state of the market, such as `bull`, comes back, too, and is seldom written as symbols are.
    let are_codes = || {
        rows.keys()
            .all(|value| !value.contains(|c: char| c.is_lowercase() || c == ' '))
    };
    let comes_back = is_text && are_codes() && runs * 3 <= filled.len();
    let in_blocks = runs == distinct && distinct * 3 <= filled.len() && (is_text || are_numbers(&filled));
    let is_company = is_text && (is_usual("symbol", name) || COMPANIES.contains(&&*normal(name)));
    let is_date = |text: &str| super::partitions::whole_date(text).is_some();
    let are_dates = rows.keys().all(|value| is_date(value));
    let differ = in_blocks || comes_back || is_company;
    let differ = is_key || differ && !rows.keys().all(|value| is_period(value));
    (differ && !are_dates).then(|| {
        let mut seen = BTreeSet::new();
        let values = filled.iter().map(|(_, value)| *value);
        Apart {
            distinct: values.filter(|value| seen.insert(*value)).collect(),
            is_key,
            comes_back: runs > distinct,
        }
    })
}

/// Returns whether numbers in blocks may be codes of companies: of three to six digits, and no years, months
/// or other numbers that rise by one.
fn are_numbers(values: &[(usize, &str)]) -> bool {
    let is_code =
        |value: &str| (3..=6).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = || values.iter().filter_map(|(_, value)| value.parse::<i64>().ok());
    let is_year = |number: i64| (1900..2100).contains(&number) || (190_000..210_000).contains(&number);
    let rises = numbers().zip(numbers().skip(1)).all(|(a, b)| b == a || b == a + 1);
    values.iter().all(|(_, value)| is_code(value)) && !rises && !numbers().all(is_year)
}
