//! Conversion of vendors' bars to our columns.

use super::{days, stated};
use crate::clock::{Clocks, HOUR, MINUTE, SECOND, time_text};
use crate::cuts::with_left_out;
use crate::file_memo::{Around, Reading};
use crate::form::{Opened, open, prepare};
use crate::frame::Frame;
use crate::header::{needed, source_of, wanted};
use crate::layout_choice::Chosen;
use crate::unpack::Packed;
use crate::value::OUT_OF_RANGE;
use crate::whose::{Place, is_usual};
use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use datasets::Date;
use datasets::calendar::market_of;
use datasets::layout::{Layout, Mapping, OTHERS, Table, normal};
use datasets::schema;
use rayon::prelude::*;
use stages_core::{StageError, table};
use std::collections::HashMap;
use std::sync::Arc;

/// One bar; numbers are NaN where they are missing.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    /// Ticker.
    pub symbol: Arc<str>,
    /// Trading day.
    pub date: Date,
    /// The values of the columns [`FLOATS`].
    pub values: [f64; 6],
}

impl Bar {
    /// The number of bars, and a hash of their dates, closes and volumes that does not depend on order.
    pub(super) fn contents(bars: &[Self]) -> (u64, u64) {
        let of_bar = |bar: &Self| {
            let [close, volume] = [CLOSE, VOLUME].map(|i| bar.values[i].to_bits());
            let mixed = (close ^ volume.rotate_left(21)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (mixed ^ (mixed >> 29) ^ bar.date.0 as u64).wrapping_mul(0xBF58_476D_1CE4_E5B9)
        };
        let hash = bars.iter().map(of_bar).fold(0, u64::wrapping_add);
        (bars.len() as u64, hash)
    }
}

/// The numeric columns of a bar, in order.
pub(super) const FLOATS: [&str; 6] = ["open", "high", "low", "close", "volume", "adjusted_close"];
pub(super) const CLOSE: usize = 3;
pub(super) const VOLUME: usize = 4;

/// Reads a table as it is, without applying rules. Rows without a symbol get `symbol` or, failing that, the
/// name of the file.
pub(crate) fn parse(
    packed: &Packed,
    layout: &Layout,
    around: &Around<'_>,
) -> Result<RecordBatch, StageError> {
    let opened = open(packed, layout, around.lookup)?;
    if let Some(closes) = layout.sources("close").find(|mapping| mapping.theirs == OTHERS) {
        return by_symbol(&opened, layout, closes);
    }
    let Opened {
        place, frame, given, ..
    } = &opened;
    let name_symbol = given
        .get("symbol")
        .map(|named| of_country(named.text.to_uppercase(), layout));
    let symbol = match (around.symbol, name_symbol.as_deref()) {
        ("", Some(name_symbol)) => name_symbol,
        (given, _) => given,
    };
    let date = &needed(layout, frame, place, "date")?.theirs;
    let zone = match days::midnights(&opened, layout, date, symbol, around.place)? {
        Some(zone) => zone,
        None => days::zone_of_days(frame, date, layout)?,
    };
    // In parallel; the error returned is the one that sequential reading would meet first.
    let (dates, (symbols, values)) = rayon::join(
        || frame.dates(date, &layout.dates, zone),
        || {
            rayon::join(
                || symbols(&opened, layout, symbol, around.place),
                || {
                    FLOATS
                        .par_iter()
                        .map(|ours| match source_of(layout, frame, ours) {
                            Some(mapping) => frame.numbers(mapping),
                            None => Ok(vec![f64::NAN; frame.rows()]),
                        })
                        .collect::<Vec<_>>()
                },
            )
        },
    );
    let dates = dates?;
    needed(layout, frame, place, "close")?;
    let symbols = symbols?;
    let names: Vec<&str> = symbols.iter().map(|(symbol, _)| symbol.as_str()).collect();
    let (dates, zone) = match days::of_exchange(&opened, layout, date, &dates, &symbols, &names)? {
        Some(zone) => (frame.dates(date, &layout.dates, zone)?, zone),
        None => (dates, zone),
    };
    one_a_day(packed, layout, &opened, (date, zone), &dates, &symbols)?;
    let values: Vec<Vec<f64>> = values.into_iter().collect::<Result<_, StageError>>()?;
    let names = symbols
        .iter()
        .flat_map(|(symbol, rows)| std::iter::repeat_n(symbol.as_str(), *rows));
    let rows = with_left_out(batch(names, dates.into_iter(), values, false)?, frame.left_out())?;
    stated::mark(rows, frame, &symbols, layout)
}

/// The symbol of a file's name in which `_` stands for the point before a country: `VOD_UK` is `VOD.UK`.
fn of_country(name: String, layout: &Layout) -> String {
    match name.rsplit_once('_') {
        Some((own, country)) if country.len() == 2 && !layout.is_described => {
            let dotted = format!("{own}.{country}");
            if market_of(&dotted).is_some() { dotted } else { name }
        }
        _ => name,
    }
}

/// Reads a wide table with a column of closes for each symbol. An empty cell means no bar.
fn by_symbol(opened: &Opened, layout: &Layout, closes: &Mapping) -> Result<RecordBatch, StageError> {
    let (frame, place) = (&opened.frame, &opened.place);
    let named = wanted(layout);
    let date = &needed(layout, frame, place, "date")?.theirs;
    let mut dates = frame.dates(date, &layout.dates, &layout.zone)?;
    let others: Vec<&str> = (opened.header.iter())
        .filter(|name| !named.contains(&normal(name)))
        .map(|name| name.trim())
        .collect();
    let together = [(String::new(), dates.len())];
    if let Some(zone) = days::of_exchange(opened, layout, date, &dates, &together, &others)? {
        dates = frame.dates(date, &layout.dates, zone)?;
    }
    let (mut symbols, mut days, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut all = Vec::new();
    for name in opened.header.iter().filter(|name| !named.contains(&normal(name))) {
        let symbol = name.trim();
        let mapping = Mapping {
            theirs: name.clone(),
            ..closes.clone()
        };
        let numbers = frame.numbers(&mapping)?;
        // A separator at the end of all lines makes a column without a name.
        if symbol.is_empty() && numbers.iter().all(|number| number.is_nan()) {
            continue;
        }
        if symbol.is_empty() {
            return Err(StageError::new(format!(
                "`{place}` has a column without a name, which is not a symbol"
            ))
            .hint("remove it from the file, or name its column of dates in `columns: { date: … }`"));
        }
        all.push(symbol);
        for (date, close) in dates.iter().zip(numbers) {
            if !close.is_nan() {
                symbols.push(symbol);
                days.push(*date);
                values.push(close);
            }
        }
    }
    let missing = vec![f64::NAN; values.len()];
    let mut columns = vec![missing; FLOATS.len()];
    columns[CLOSE] = values;
    let rows = batch(symbols.into_iter(), days.into_iter(), columns, false)?;
    stated::mark_wide(rows, frame, &all, layout)
}

/// The symbols of the rows, each with the length of its run of consecutive rows.
pub(super) fn symbols(
    opened: &Opened,
    layout: &Layout,
    given: &str,
    file: Option<&Place>,
) -> Result<Vec<(String, usize)>, StageError> {
    let frame = &opened.frame;
    let mut symbols: Vec<(String, usize)> = Vec::new();
    if let Some(mapping) = source_of(layout, frame, "symbol") {
        frame.symbols(&mapping.theirs, |row, text| {
            if text.is_empty() {
                return Err(frame.error(row, &mapping.theirs, "the symbol is missing"));
            }
            match symbols.last_mut() {
                Some((last, rows)) if last == text => *rows += 1,
                _ => symbols.push((text.to_owned(), 1)),
            }
            Ok(())
        })?;
        return Ok(symbols);
    }
    let name = match (given, &*layout.facts.symbol) {
        ("", "") if layout.facts.symbol_from_file_name => match file {
            Some(file) if frame.rows() > 0 => file.symbol()?,
            _ => opened.stem.as_str(),
        },
        ("", layout_symbol) => layout_symbol,
        (given, _) => given,
    };
    if name.is_empty() {
        return Err(StageError::new(format!("`{}` does not name the symbol", opened.place))
            .hint("give it as `symbol: SPY`"));
    }
    Ok(vec![(name.to_owned(), frame.rows())])
}

/// Refuses several rows of a symbol and day that differ in their times. Bars of one time of day, 00:00 or
/// 16:00, are daily ones.
fn one_a_day(
    packed: &Packed,
    layout: &Layout,
    opened: &Opened,
    (day, zone): (&str, &str),
    dates: &[Date],
    symbols: &[(String, usize)],
) -> Result<(), StageError> {
    let frame = &opened.frame;
    let times = match frame.stored_times(day) {
        Some(times) => Some((day.to_owned(), times)),
        None if frame.is_stored_date(day) => times_beside(packed, layout, opened, day)?,
        None => match times_in(frame, day, &layout.dates, zone)? {
            Some(times) => Some((day.to_owned(), times)),
            None => times_beside(packed, layout, opened, day)?,
        },
    };
    let Some((column, times)) = times.filter(|(_, times)| times.windows(2).any(|pair| pair[0] != pair[1]))
    else {
        return Ok(());
    };
    let mut first: HashMap<(&str, Date), usize> = HashMap::new();
    let names = symbols
        .iter()
        .flat_map(|(symbol, rows)| std::iter::repeat_n(symbol.as_str(), *rows));
    let rows = names
        .zip(dates)
        .enumerate()
        .filter(|(_, (_, date))| **date != OUT_OF_RANGE);
    for (row, (symbol, date)) in rows {
        let other = *first.entry((symbol, *date)).or_insert(row);
        if times[other] != times[row] {
            let [a, b] = [other, row].map(|row| match times[row] {
                ..0 => "a time of another notation".to_owned(),
                time => time_text(time),
            });
            let what = format!(
                "`{symbol}` has rows at {a} and at {b} of {date}: `ingest/bars` reads one bar a day, and these \
                are bars of times of day"
            );
            let time = match normal(&column) == normal(day) {
                true => String::new(),
                false => format!(", time: \"{column}\""),
            };
            return Err(frame.error(row, &column, &what).hint(format!(
                "`{{ uses: ingest/table, with: {{ path: …, instant: \"{day}\"{time} }} }}` reads rows by \
                instant; `env/table` trades on them"
            )));
        }
    }
    Ok(())
}

/// The times of day in a column of dates, in microseconds after midnight; `None` if the first date has none.
fn times_in(
    frame: &Frame,
    column: &str,
    formats: &[String],
    zone: &str,
) -> Result<Option<Vec<i64>>, StageError> {
    let mut clocks = Clocks::new(formats, zone).map_err(StageError::new)?;
    let mut of = |text: &str| match clocks.of_date(text) {
        Some(clock) => Some(clock.local),
        None => Some(of_digits(after_date(text, formats)?)),
    };
    // The first row decides: a daily file costs nothing.
    let has_time = frame.first_text(column).is_some_and(|text| of(&text).is_some());
    let mut times: Vec<i64> = Vec::new();
    if has_time {
        frame.texts(column, |_, text| {
            times.push(of(text).unwrap_or(0));
            Ok(())
        })?;
    }
    Ok(has_time.then_some(times))
}

/// The rest of a text after its date and a blank or `T`, if that begins with a digit.
fn after_date<'t>(text: &'t str, formats: &[String]) -> Option<&'t str> {
    let usual = ["%Y-%m-%d", "%Y%m%d"];
    text.match_indices([' ', 'T']).find_map(|(at, _)| {
        let (date, rest) = (text.get(..at)?, text.get(at + 1..)?.trim());
        let mut formats = formats.iter().map(String::as_str).chain(usual);
        let is_date = |format| chrono::NaiveDate::parse_from_str(date, format).is_ok();
        (rest.starts_with(|c: char| c.is_ascii_digit()) && formats.any(is_date)).then_some(rest)
    })
}

/// A time of day as plain digits, `930`, `0930` or `093000`, in microseconds after midnight; below 0, and
/// another for each text, where it is none.
fn of_digits(text: &str) -> i64 {
    let number = text
        .parse::<u32>()
        .ok()
        .filter(|_| (3..=6).contains(&text.len()))
        .map(i64::from);
    let [hour, minute, second] = match number {
        Some(number) if text.len() > 4 => [number / 10_000, number / 100 % 100, number % 100],
        Some(number) => [number / 100, number % 100, 0],
        None => [24, 0, 0],
    };
    if hour < 24 && minute < 60 && second < 60 {
        return hour * HOUR + minute * MINUTE + second * SECOND;
    }
    let mix = |hash: i64, byte: u8| hash.wrapping_mul(0x100_0000_01b3) ^ i64::from(byte);
    text.bytes().fold(0x1234_5678, mix) | i64::MIN
}

/// The times of day in a column beside the dates that is not read, if the file has one.
fn times_beside(
    packed: &Packed,
    layout: &Layout,
    opened: &Opened,
    date: &str,
) -> Result<Option<(String, Vec<i64>)>, StageError> {
    let read = wanted(layout);
    let is_time = |name: &&String| is_usual("time", name) && normal(name) != normal(date);
    for name in opened.header.iter().filter(is_time) {
        let prepared = prepare(packed, layout)?.packed;
        let Ok(mut frame) = Frame::read(&prepared, |other| other == normal(name) || read.contains(other))
        else {
            continue;
        };
        if let Some(condition) = &layout.condition {
            frame.keep(condition)?;
        }
        let mut clocks = Clocks::new(&layout.dates, &layout.zone).map_err(StageError::new)?;
        let mut of = |text: &str| match clocks.of_time(text, |hours| hours) {
            _ if text.len() > 2 && text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() < 7 => {
                of_digits(text)
            }
            Ok(clock) => clock.map_or(0, |clock| clock.local),
            Err(_) => of_digits(text),
        };
        let times = frame.map(name, |text| Ok(of(text)))?;
        if times.len() == opened.frame.rows() && times.iter().any(|time| *time != 0) {
            return Ok(Some((name.trim().to_owned(), times)));
        }
    }
    Ok(None)
}

/// A table of bars; closes may be missing in the input of the rules, and not in the schema.
fn batch<'a>(
    symbols: impl Iterator<Item = &'a str>,
    dates: impl Iterator<Item = Date>,
    values: impl IntoIterator<Item = Vec<f64>>,
    has_closes: bool,
) -> Result<RecordBatch, StageError> {
    let field = |column: &schema::Column| {
        let is_key = matches!(column.name, "symbol" | "date");
        table::field(column).with_nullable(column.nullable || !has_closes && !is_key)
    };
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(symbols)),
        Arc::new(Date32Array::from_iter_values(dates.map(|date| date.0))),
    ];
    columns.extend(
        values
            .into_iter()
            .map(|values| -> ArrayRef { Arc::new(table::nullable_of(values)) }),
    );
    let fields: Vec<_> = schema::BARS.iter().map(field).collect();
    Ok(RecordBatch::try_new(
        Arc::new(arrow_schema::Schema::new(fields)),
        columns,
    )?)
}

/// Bars by symbol.
pub(super) type BySymbol = HashMap<Arc<str>, Vec<Bar>>;

/// Adds the wanted bars of a table to `bars`; `is_wanted` judges symbol and date.
pub(super) fn collect(
    batch: &RecordBatch,
    is_wanted: impl Fn(&str, Date) -> bool,
    bars: &mut BySymbol,
) -> Result<(), StageError> {
    let symbols = table::texts(batch, "symbol")?;
    let dates = table::dates(batch, "date")?;
    let mut columns = Vec::new();
    for name in FLOATS {
        columns.push(table::floats_or_nan(batch, name)?);
    }
    for (i, date) in dates.into_iter().enumerate() {
        let symbol = symbols.value(i);
        if !is_wanted(symbol, date) {
            continue;
        }
        let bar = |symbol: &Arc<str>| Bar {
            symbol: Arc::clone(symbol),
            date,
            values: std::array::from_fn(|k| columns[k][i]),
        };
        match bars.get_mut(symbol) {
            Some(bars) => bars.push(bar(&bars[0].symbol)),
            None => {
                let symbol: Arc<str> = Arc::from(symbol);
                let first = bar(&symbol);
                bars.insert(symbol, vec![first]);
            }
        }
    }
    Ok(())
}

/// The bars in the order of symbols.
pub(super) fn in_order(bars: BySymbol) -> Vec<Bar> {
    let mut all = Vec::with_capacity(bars.values().map(Vec::len).sum());
    let mut bars: Vec<(Arc<str>, Vec<Bar>)> = bars.into_iter().collect();
    bars.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    bars.iter_mut().for_each(|(_, bars)| all.append(bars));
    all
}

/// Converts bars to a table in the schema, which requires every close.
pub(crate) fn to_batch(bars: &[Bar]) -> Result<RecordBatch, StageError> {
    let symbols = bars.iter().map(|bar| &*bar.symbol);
    let columns = (0..FLOATS.len()).map(|i| bars.iter().map(|bar| bar.values[i]).collect());
    batch(symbols, bars.iter().map(|bar| bar.date), columns, true)
}

/// The settings for reading files of bars as whole tables.
pub fn reading<'a>(chosen: &'a Chosen, symbol: &'a str) -> Reading<'a> {
    Reading {
        memo: "ingest/bars file v6",
        table: Table::Bars,
        chosen,
        symbol,
        parse,
    }
}
