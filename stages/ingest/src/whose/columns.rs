//! Columns of symbols that no layout and no setting names, found by their names and values.

use super::names::symbol_names;
use super::partitions::Partitions;
use super::spelling::listed;
use super::suspect::{Suspect, are_index, is_decimal, is_index, shown_values, suspect};
use crate::form::{Looked, prepare};
use crate::frame::{Frame, header};
use crate::header::{CURRENCY_NAMES, wanted};
use crate::unpack::{Format, Packed};
use crate::value::is_missing;
use datasets::calendar::{is_currency, of_hundredths};
use datasets::layout::{Layout, Mapping, OTHERS, Table, Unit, normal};
use datasets::spelling::lookalike;
use stages_core::StageError;
use std::collections::BTreeSet;

/// The names of symbols that hold nothing else.
const CERTAIN: [&str; 3] = ["symbol", "ticker", "tic"];

/// Returns whether a normalised name is one of symbols in any table.
pub(crate) fn is_certain(name: &str) -> bool {
    CERTAIN.contains(&name)
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

/// The statements of a file's columns about symbols that its layout does not make.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    /// The column of symbols, if the layout maps none that the file has.
    pub symbol: Option<String>,
    /// A column that is not read, and by which rows differ as by a symbol.
    pub suspect: Option<Suspect>,
    /// The column of currencies of bars, if it has no usual name, and nothing else in it.
    pub currency: Option<String>,
    /// A remark about columns that are found.
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

/// The remark about a column of symbols that are numbers.
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
