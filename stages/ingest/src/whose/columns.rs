//! Columns of symbols that no layout and no setting names, found by their names and values.

use super::names::{is_usual, symbol_names};
use super::partitions::Partitions;
use super::spelling::listed;
use crate::form::{Looked, prepare};
use crate::frame::{Frame, header};
use crate::header::wanted;
use crate::unpack::{Format, Packed};
use crate::value::{is_missing, shown};
use datasets::layout::{Layout, Mapping, OTHERS, Table, Unit, normal};
use datasets::spelling::lookalike;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use stages_table_file::packing::HEADER_LIMIT;
use std::collections::{BTreeMap, BTreeSet};

/// The names of symbols that hold nothing else.
const CERTAIN: [&str; 3] = ["symbol", "ticker", "tic"];

/// Returns whether a normalised name is one of symbols in any table.
pub(crate) fn is_certain(name: &str) -> bool {
    CERTAIN.contains(&name)
}

/// The beginning of a table, without the last line of a text, which may be incomplete.
fn beginning(packed: &Packed) -> Packed {
    let mut packed = packed.clone();
    if packed.format == Format::Csv && packed.bytes.len() as u64 >= HEADER_LIMIT {
        let begin = &packed.bytes[..HEADER_LIMIT as usize];
        let end = begin.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        packed.bytes.truncate(end);
    }
    packed
}

/// Returns whether a column is the index of a table that pandas wrote.
pub(crate) fn is_index(name: &str) -> bool {
    let name = normal(name);
    name.is_empty() || name.starts_with("unnamed:")
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
        let Ok(frame) = Frame::read(&beginning(packed), |other| other == normal(name)) else {
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

/// The column of a table whose values are symbols that are known, beside the columns `read`; and, if there is
/// none, the first whose values are other spellings of them. Each with a list of its values.
pub(crate) fn of_known(
    packed: &Packed,
    known: &BTreeSet<String>,
    read: impl Fn(&str) -> bool,
) -> Result<Option<(Suspect, bool)>, StageError> {
    let header = header(packed)?;
    let mut alike = None;
    for name in header.iter().filter(|name| !is_index(name) && !read(&normal(name))) {
        let Ok(frame) = Frame::read(&beginning(packed), |other| other == normal(name)) else {
            continue;
        };
        let mut values = BTreeSet::new();
        frame.symbols(name, |_, text| {
            values.insert(text.to_owned());
            Ok(())
        })?;
        let suspect = |values: &BTreeSet<String>| Suspect {
            name: name.trim().to_owned(),
            values: shown_values(values.iter().map(String::as_str)),
            like: String::new(),
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
    /// What is to be told of the column of symbols.
    pub note: Option<String>,
    /// True if the file's columns or its layout state the symbols.
    pub states_symbol: bool,
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
            note = Some(format!(
                "the symbols of the column `{column}` are stored as numbers: leading zeros, if they had any, \
                are lost"
            ));
        }
        let is_by_name =
            mapped.is_none() && symbol.is_none() && !is_given && layout.facts.symbol_from_file_name;
        let suspect = match is_by_name {
            true => {
                let mut date = layout.sources("date").map(|mapping| mapping.theirs.as_str());
                let header = header(&prepared)?;
                let is_there = |date: &&str| header.iter().any(|name| normal(name) == normal(date));
                let found = suspect(&prepared, date.find(is_there), |name| read.contains(name))?;
                let like = if layout.is_described { "" } else { layout.name.as_str() };
                found.map(|found| Suspect {
                    like: like.to_owned(),
                    ..found
                })
            }
            false => None,
        };
        Ok(Self {
            states_symbol: mapped.is_some() || symbol.is_some() || is_given,
            symbol,
            suspect,
            note,
        })
    }
}

/// A layout with a column of symbols that its file has under another name.
pub(crate) fn with_symbol(mut layout: Layout, theirs: &str) -> Layout {
    layout.columns.push(Mapping {
        ours: "symbol".to_owned(),
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
    let Suspect { name, values, like } = suspect;
    let reads = match like.strip_prefix("custom, like ").unwrap_or(like) {
        "" => format!("`layout: {{ columns: {{ symbol: \"{name}\", … }} }}`"),
        like => format!("`layout: {{ like: {like}, columns: {{ symbol: \"{name}\" }} }}`"),
    };
    StageError::new(format!(
        "`{place}`: the column `{name}` ({values}) is not read, and rows differ by it as by a symbol"
    ))
    .hint(format!(
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
}

/// A column of the beginning of a table that is not read, and by which rows differ as by a symbol: it tells
/// rows of one day apart, or the rows come in blocks of its values. `date` is the column of days.
pub(crate) fn suspect(
    packed: &Packed,
    date: Option<&str>,
    is_read: impl Fn(&str) -> bool,
) -> Result<Option<Suspect>, StageError> {
    let header = header(packed)?;
    let is_other = |name: &String| {
        let is_known = is_read(&normal(name)) || is_usual("date", name) || is_usual("time", name);
        !is_known && !is_index(name) && date.is_none_or(|date| normal(date) != normal(name))
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
        .map(normal)
        .collect();
    let Ok(frame) = Frame::read(&beginning(packed), |name| wanted.contains(name)) else {
        // What cannot be read is an error where it is read.
        return Ok(None);
    };
    let mut days: Vec<String> = Vec::new();
    if let Some(date) = date.filter(|date| frame.has(date)) {
        days = frame.map(date, |text| Ok(text.to_owned()))?;
    }
    let mut best: Option<(usize, Suspect)> = None;
    for name in others {
        let values = frame.map(name, |text| Ok(text.to_owned()))?;
        if let Some(distinct) = tells_apart(&values, &days)
            && best.as_ref().is_none_or(|(most, _)| distinct.len() > *most)
        {
            best = Some((
                distinct.len(),
                Suspect {
                    name: name.trim().to_owned(),
                    values: shown_values(distinct.into_iter()),
                    like: String::new(),
                },
            ));
        }
    }
    Ok(best.map(|(_, suspect)| suspect))
}

/// The distinct values of a column, in order, if rows differ by it as by a symbol.
fn tells_apart<'v>(values: &'v [String], days: &[String]) -> Option<Vec<&'v str>> {
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    let mut runs = 0;
    for (i, value) in values.iter().enumerate() {
        *rows.entry(value).or_default() += 1;
        runs += usize::from(i == 0 || values[i - 1] != *value);
    }
    let distinct = rows.len();
    let is_number = |text: &&str| text.parse::<f64>().is_ok();
    // `NA` is a symbol.
    let is_filled = !rows
        .keys()
        .any(|value| matches!(*value, "" | "-" | "." | "nan" | "NaN"));
    if distinct < 2 || distinct * 2 > values.len() || !is_filled || rows.keys().any(|value| is_decimal(value))
    {
        return None;
    }
    let numbers = rows.keys().filter(|value| is_number(value)).count();
    let has_zeros = || rows.keys().any(|value| value.len() > 1 && value.starts_with('0'));
    let is_text = numbers == 0 || has_zeros();
    let by_day: BTreeSet<(&str, &str)> =
        days.iter().zip(values).map(|(day, value)| (&**day, &**value)).collect();
    let all_days: BTreeSet<&str> = days.iter().map(String::as_str).collect();
    // Several rows a day, that are one a day by it.
    let is_key = !days.is_empty() && all_days.len() < days.len() && by_day.len() == days.len();
    let in_blocks = is_text && runs == distinct && distinct * 3 <= values.len();
    let is_date = |text: &str| super::partitions::whole_date(text).is_some();
    let are_dates = rows.keys().all(|value| is_date(value));
    ((is_key || in_blocks) && !are_dates).then(|| {
        let mut seen = BTreeSet::new();
        values
            .iter()
            .map(String::as_str)
            .filter(|value| seen.insert(*value))
            .collect()
    })
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
            suspect(&packed(&text), Some("date"), read)
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
    }
}
