//! Columns of symbols that no layout and no setting names, found by their names and values.

use super::names::{is_usual, symbol_names};
use super::partitions::Partitions;
use super::spelling::listed;
use crate::form::{Looked, prepare};
use crate::frame::{Frame, header};
use crate::header::{CURRENCY_NAMES, wanted};
use crate::unpack::{Format, Packed};
use crate::value::{is_missing, shown};
use datasets::calendar::{is_currency, of_hundredths};
use datasets::layout::{Layout, Mapping, OTHERS, Table, Unit, normal};
use datasets::spelling::lookalike;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::collections::{BTreeMap, BTreeSet};

/// The names of symbols that hold nothing else.
const CERTAIN: [&str; 3] = ["symbol", "ticker", "tic"];

/// Returns whether a normalised name is one of symbols in any table.
pub(crate) fn is_certain(name: &str) -> bool {
    CERTAIN.contains(&name)
}

/// The remedy for a column of symbols whose name is empty.
pub(crate) const NAMELESS: &str = "write its name into the header: `symbol`";

/// Returns whether a column is the index of a table that pandas wrote.
pub(crate) fn is_index(name: &str) -> bool {
    let name = normal(name);
    name.is_empty() || name.starts_with("unnamed:")
}

/// Returns whether values count up by one, as those of an index do.
fn are_index<'v>(values: impl Iterator<Item = &'v str>) -> bool {
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
fn is_decimal(text: &str) -> bool {
    text.contains(['.', 'e', 'E']) && text.parse::<f64>().is_ok_and(|number| number.fract() != 0.0)
}

/// The column of symbols that a table has under a usual name, beside `taken`, the columns that are read as
/// something else.
pub(crate) fn found_symbol(
    packed: &Packed,
    taken: impl Fn(&str) -> bool,
) -> Result<Option<String>, StageError> {
    let mut names = header(packed)?;
    let own = names.len();
    names.extend(
        Partitions::of(&packed.path)
            .columns(&names[..own])
            .into_iter()
            .map(|(name, _)| name),
    );
    for name in symbol_names(&names) {
        if taken(&normal(name)) {
            continue;
        }
        if is_certain(&normal(name)) || names[own..].contains(name) {
            return Ok(Some(name.trim().to_owned()));
        }
        let Ok(frame) = Frame::read(&packed.beginning(), |other| other == normal(name)) else {
            // What cannot be read is an error where it is read.
            return Ok(Some(name.trim().to_owned()));
        };
        let (mut filled, mut decimal) = (0, 0);
        frame.texts(name, |_, text| {
            filled += usize::from(!is_missing(text));
            decimal += usize::from(is_decimal(text));
            Ok(())
        })?;
        if decimal == 0 && (filled > 0 || frame.rows() == 0) {
            return Ok(Some(name.trim().to_owned()));
        }
    }
    Ok(None)
}

/// The texts of a column in the beginning of a table, as symbols; `None` where it cannot be read.
fn texts(packed: &Packed, name: &str) -> Result<Option<Vec<String>>, StageError> {
    let Ok(frame) = Frame::read(&packed.beginning(), |other| other == normal(name)) else {
        return Ok(None);
    };
    let mut texts = Vec::new();
    frame.symbols(name, |_, text| {
        texts.push(text.to_owned());
        Ok(())
    })?;
    Ok(Some(texts))
}

/// The column of a table whose values are symbols that are known, beside the columns `read`; and, if there is
/// none, the first whose values are other spellings of them. Each with a list of its values.
pub(crate) fn of_known(
    packed: &Packed,
    known: &BTreeSet<String>,
    read: impl Fn(&str) -> bool,
) -> Result<Option<(Suspect, bool)>, StageError> {
    let header = header(packed)?;
    let mut alike = None;
    for name in header.iter().filter(|name| !read(&normal(name))) {
        let Some(texts) = texts(packed, name)? else { continue };
        if is_index(name) && are_index(texts.iter().map(String::as_str)) {
            continue;
        }
        let values: BTreeSet<String> = texts.into_iter().collect();
        let suspect = |values: &BTreeSet<String>| Suspect {
            name: name.trim().to_owned(),
            values: shown_values(values.iter().map(String::as_str)),
            like: String::new(),
            goes_on: false,
        };
        let is_like = |value: &String| {
            known.contains(value) || lookalike(value, known.iter().map(String::as_str)).is_some()
        };
        if !values.is_empty() && values.iter().any(|value| known.contains(value)) {
            return Ok(Some((suspect(&values), true)));
        }
        if alike.is_none() && !values.is_empty() && values.iter().all(is_like) {
            alike = Some((suspect(&values), false));
        }
    }
    Ok(alike)
}

/// The columns of a table beside those `read` whose values are texts, each with these.
pub(crate) fn unread_texts(packed: &Packed, read: impl Fn(&str) -> bool) -> Result<Vec<String>, StageError> {
    let mut found = Vec::new();
    for name in header(packed)?.iter().filter(|name| !read(&normal(name))) {
        let Some(texts) = texts(packed, name)? else { continue };
        let values: BTreeSet<String> = texts.into_iter().filter(|text| !is_missing(text)).collect();
        let is_text =
            |value: &String| value.parse::<f64>().is_err() && super::partitions::whole_date(value).is_none();
        if !values.is_empty() && values.iter().all(is_text) {
            let values = shown_values(values.iter().map(String::as_str));
            found.push(format!("`{}` ({values})", name.trim()));
        }
    }
    Ok(found)
}

fn shown_values<'v>(values: impl Iterator<Item = &'v str>) -> String {
    listed(&values.map(|value| format!("`{}`", shown(value))).collect::<Vec<_>>())
}

/// What the columns of a file say of symbols that its layout does not.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    /// The column of symbols, if the layout maps none that the file has.
    pub symbol: Option<String>,
    /// A column that is not read, and by which rows differ as by a symbol.
    pub suspect: Option<Suspect>,
    /// The column of currencies of bars, if it has no usual name, and nothing else in it.
    pub currency: Option<String>,
    /// What is to be told of columns that are found.
    pub note: Option<String>,
    /// True if the file's columns or its layout state the symbols.
    pub states_symbol: bool,
}

/// The columns beside those `read` whose values are all codes of currencies.
fn currencies(packed: &Packed, read: impl Fn(&str) -> bool) -> Result<Vec<String>, StageError> {
    /// The bytes of a text that are looked at.
    const LOOKED_AT: usize = 1 << 14;
    let names = header(packed)?;
    if names.iter().any(|name| CURRENCY_NAMES.contains(&&*normal(name))) {
        return Ok(Vec::new());
    }
    if names.iter().all(|name| read(&normal(name))) {
        return Ok(Vec::new());
    }
    let mut few = packed.clone();
    if few.format == Format::Csv && few.bytes.len() > LOOKED_AT {
        let end = few.bytes[..LOOKED_AT].iter().rposition(|byte| *byte == b'\n');
        few.bytes.truncate(end.map_or(few.bytes.len(), |end| end + 1));
    }
    let Ok(frame) = Frame::read(&few, |name| !read(name)) else {
        // What cannot be read is an error where it is read.
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for name in names.iter().filter(|name| frame.has(name)) {
        let (mut all, mut any) = (true, false);
        // A text that is none ends the look.
        let _ = frame.texts(name, |_, text| {
            let is_code =
                is_currency(text) && !matches!(text, "ALL" | "TOP") || of_hundredths(text).is_some();
            all &= is_code || text.is_empty();
            any |= is_code;
            if all { Ok(()) } else { Err(StageError::new("")) }
        });
        if all && any {
            found.push(name.trim().to_owned());
        }
    }
    Ok(found)
}

impl Columns {
    /// Finds the column of symbols in the beginning of a file.
    pub(crate) fn of(layout: &Layout, first: &Packed) -> Result<Self, StageError> {
        let names = || Looked::new(first).map(|looked| looked.header(&layout.form).unwrap_or_default());
        let mapped = |names: &[String]| {
            let is_there = |theirs: &str| names.iter().any(|name| normal(name) == normal(theirs));
            let mut sources = layout.sources("symbol").map(|mapping| mapping.theirs.clone());
            sources.find(|theirs| is_there(theirs))
        };
        let partitions = Partitions::of(&first.path);
        match layout.table {
            Table::Chain => {
                let stated = partitions.symbol().map(|(key, _)| key.to_owned());
                let symbol = match stated {
                    Some(key) if !layout.gives("symbol") && mapped(&names()?).is_none() => Some(key),
                    _ => None,
                };
                return Ok(Self {
                    symbol,
                    ..Self::default()
                });
            }
            Table::Rates => return Ok(Self::default()),
            Table::Bars if layout.mappings().any(|mapping| mapping.theirs == OTHERS) => {
                return Ok(Self {
                    states_symbol: true,
                    ..Self::default()
                });
            }
            Table::Bars => {}
        }
        let mapped = mapped(&names()?);
        let prepared = prepare(first, layout)?.packed;
        let read = wanted(layout);
        let is_given = layout.gives("symbol") || !layout.facts.symbol.is_empty();
        let symbol = match mapped {
            None if !is_given => found_symbol(&prepared, |name| read.contains(name))?,
            _ => None,
        };
        let mut note = symbol
            .as_ref()
            .filter(|name| !is_certain(&normal(name)))
            .and_then(|name| {
                let is_stated = partitions.symbol().is_some_and(|(key, _)| key == name);
                (!is_stated).then(|| format!("the symbols are taken from the column `{name}`, by its name"))
            });
        if let Some(column) = mapped.as_ref().or(symbol.as_ref())
            && prepared.format == Format::Parquet
            && Frame::read(&prepared, |name| name == normal(column))
                .is_ok_and(|frame| frame.has(column) && frame.is_stored_number(column))
        {
            note = Some(stored_as_numbers(column));
        }
        let is_by_name =
            mapped.is_none() && symbol.is_none() && !is_given && layout.facts.symbol_from_file_name;
        let suspect = match is_by_name {
            true => {
                let header = header(&prepared)?;
                let first = |ours: &'static str| {
                    let mut theirs = layout.sources(ours).map(|mapping| mapping.theirs.as_str());
                    theirs.find(|theirs| header.iter().any(|name| normal(name) == normal(theirs)))
                };
                let close: Vec<&str> = first("close").into_iter().collect();
                let found = suspect(&prepared, first("date"), &close, |name| read.contains(name))?;
                let like = if layout.is_described { "" } else { layout.name.as_str() };
                found.map(|found| Suspect {
                    like: like.to_owned(),
                    ..found
                })
            }
            false => None,
        };
        let own = symbol.as_deref().map(normal);
        let codes = currencies(&prepared, |name| read.contains(name) || own.as_deref() == Some(name))?;
        let told_one = codes.len() == 1;
        let told = match codes.as_slice() {
            [] => None,
            [one] => Some(format!("the currency is taken from the column `{one}`, by its values")),
            several => Some(format!(
                "several columns hold codes of currencies, and none is read: {}; state `currency: …`",
                listed(several)
            )),
        };
        note = match (note, told) {
            (Some(note), Some(told)) => Some(format!("{note}; {told}")),
            (note, told) => note.or(told),
        };
        Ok(Self {
            states_symbol: mapped.is_some() || symbol.is_some() || is_given,
            symbol,
            suspect,
            currency: codes.into_iter().next().filter(|_| told_one),
            note,
        })
    }
}

/// What is told of a column of symbols that are numbers.
pub(crate) fn stored_as_numbers(column: &str) -> String {
    format!(
        "the symbols of the column `{column}` are stored as numbers: leading zeros, if they had any, are lost"
    )
}

/// A layout with a column of ours that its file has under another name.
pub(crate) fn with_column(mut layout: Layout, ours: &str, theirs: &str) -> Layout {
    layout.columns.push(Mapping {
        ours: ours.to_owned(),
        theirs: theirs.to_owned(),
        unit: Unit::AsIs,
        plus_hours: None,
        tenor_years: None,
        optional: true,
        absolute: false,
    });
    layout
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
    /// What is told of a column across which the numbers go on; `remedy` says that it is nobody's.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unpack::unpack;

    fn packed(text: &str) -> Packed {
        unpack(std::path::Path::new("a.csv"), text.as_bytes().to_vec())
            .unwrap()
            .remove(0)
    }

    #[test]
    fn columns_of_symbols() {
        for (header, wanted) in [
            ("date,code,close", Some("code")),
            ("date,TS_Code,close", Some("TS_Code")),
            ("date,Stock Code,close", Some("Stock Code")),
            ("date,股票代码,close", Some("股票代码")),
            ("date,code,ticker", Some("ticker")),
            ("date,Unnamed: 0,close", None),
            (",date,close", None),
            ("date,price,close", None),
        ] {
            let found = found_symbol(&packed(&format!("{header}\n1,000001,3\n")), |_| false).unwrap();
            assert_eq!(found.as_deref(), wanted, "{header}");
        }
        let decimal = packed("date,asset,close\n1,2.5,3\n");
        assert_eq!(found_symbol(&decimal, |_| false).unwrap(), None);
        let listed = packed("date,code,close\n1,2,3\n");
        assert_eq!(found_symbol(&listed, |name| name == "code").unwrap(), None);
    }

    #[test]
    fn columns_that_tell_rows_apart() {
        let found = |values: &[&str], days: &[&str]| {
            let texts =
                |texts: &[&str]| -> Vec<String> { texts.iter().map(|text| (*text).to_owned()).collect() };
            let rows: Vec<String> = texts(days)
                .iter()
                .zip(values)
                .map(|(day, value)| format!("2023-01-{day},{value},1.5,x"))
                .collect();
            let text = format!("date,who,close,note\n{}\n", rows.join("\n"));
            let read = |name: &str| name == "close";
            suspect(&packed(&text), Some("date"), &[], read)
                .unwrap()
                .map(|suspect| suspect.values)
        };
        let six = ["01", "02", "03", "04", "05", "06"];
        assert_eq!(found(&["A", "A", "A", "B", "B", "B"], &six).unwrap(), "`A`, `B`");
        assert_eq!(
            found(&["1", "2", "1", "2", "1", "2"], &["01", "01", "02", "02", "03", "03"]).unwrap(),
            "`1`, `2`"
        );
        // A flag, a constant, a name of each row, whole numbers in blocks.
        assert_eq!(found(&["A", "B", "A", "A", "B", "A"], &six), None);
        assert_eq!(found(&["A", "A", "A", "A", "A", "A"], &six), None);
        assert_eq!(found(&["A", "B", "C", "D", "E", "F"], &six), None);
        assert_eq!(found(&["1", "1", "1", "2", "2", "2"], &six), None);
        let twelve = ["01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12"];
        let blocks = |values: &[&str]| {
            let values: Vec<&str> = values.iter().flat_map(|value| [*value; 3]).collect();
            found(&values, &twelve)
        };
        for (values, wanted) in [
            // Numbers and texts, numbers alone, a block that comes back, an empty cell.
            (["700", "700", "AAPL", "AAPL"], Some("`700`, `AAPL`")),
            (["10107", "10107", "14593", "14593"], Some("`10107`, `14593`")),
            (["AA", "BB", "AA", "AA"], Some("`AA`, `BB`")),
            (["AA", "", "BB", "BB"], Some("`AA`, `BB`")),
            // Years, months, ranks, a state.
            (["2022", "2022", "2023", "2023"], None),
            (["202211", "202212", "202301", "202302"], None),
            (["501", "501", "502", "503"], None),
            (["up", "down", "up", "up"], None),
            (["AA", "", "", "BB"], None),
        ] {
            assert_eq!(blocks(&values).as_deref(), wanted, "{values:?}");
        }
    }

    /// Ratings, states and counts beside prices that go on are no symbols; prices that jump with them are of
    /// several.
    #[test]
    fn prices_that_go_on_are_of_one_series() {
        let rows = |values: &[&str], level: &dyn Fn(usize) -> f64| {
            let row = |i: usize| {
                let close = level(i) * (1.0 + 0.01 * ((i * i) % 7) as f64 + 0.004 * i as f64);
                let (month, day) = (1 + i / 28, 1 + i % 28);
                let value = values[i * values.len() / 84];
                format!("2023-{month:02}-{day:02},{value},{close:.2}\n")
            };
            let text = format!("date,who,close\n{}", (0..84).map(row).collect::<String>());
            let found = suspect(&packed(&text), Some("date"), &["close"], |name| name == "close").unwrap();
            found.map(|found| (found.goes_on, found.values))
        };
        let one = |values: &[&str]| rows(values, &|_| 100.0);
        let of = |goes_on: bool, values: &str| Some((goes_on, values.to_owned()));
        assert_eq!(one(&["bull", "bear"]), of(true, "`bull`, `bear`"));
        assert_eq!(one(&["AA", "A"]), of(true, "`AA`, `A`"));
        assert_eq!(one(&["BUY", "SELL", "BUY", "SELL"]), None);
        assert_eq!(one(&["931877", "701693", "961881", "184483", "608595", "310222"]), None);
        assert_eq!(one(&["000001", "600519"]), of(true, "`000001`, `600519`"));
        assert_eq!(
            one(&["Apple", "IBM", "Oracle", "SAP"]),
            of(true, "`Apple`, `IBM`, `Oracle`, `SAP`")
        );
        assert_eq!(one(&["Q1", "Q2", "Q3"]), None);
        assert_eq!(one(&["January", "February", "March"]), None);
        let two = |values: &[&str]| rows(values, &|i| if i < 42 { 100.0 } else { 240.0 });
        assert_eq!(two(&["Apple", "Oracle"]), of(false, "`Apple`, `Oracle`"));
        assert_eq!(two(&["10107", "14593"]), of(false, "`10107`, `14593`"));
    }

    /// A company's name that changes each day, and indices without a name.
    #[test]
    fn columns_of_companies_and_indices() {
        let found = |header: &str, rows: &[&str]| {
            let text = format!("{header}\n{}\n", rows.join("\n"));
            let found = suspect(&packed(&text), Some("date"), &[], |name| name == "close").unwrap();
            found.map(|found| found.values)
        };
        let turns = [
            "2023-01-01,BB,1",
            "2023-01-02,AA,1",
            "2023-01-03,BB,1",
            "2023-01-04,AA,1",
        ];
        assert_eq!(found("date,name,close", &turns).as_deref(), Some("`BB`, `AA`"));
        let codes = [
            "000001,2023-01-01,1",
            "000001,2023-01-02,1",
            "000002,2023-01-01,1",
            "000002,2023-01-02,1",
        ];
        assert_eq!(found(",date,close", &codes).as_deref(), Some("`000001`, `000002`"));
        let counts = ["0,2023-01-01,1", "1,2023-01-01,1", "2,2023-01-02,1", "3,2023-01-02,1"];
        assert_eq!(found(",date,close", &counts), None);
        let known = ["1".to_owned(), "000001".to_owned()].into();
        let of = |rows: &[&str]| {
            let text = format!(",date,close\n{}\n", rows.join("\n"));
            of_known(&packed(&text), &known, |name| name == "close" || name == "date").unwrap()
        };
        assert!(of(&codes).is_some_and(|(_, is_known)| is_known));
        assert!(of(&counts).is_none());
    }
}
