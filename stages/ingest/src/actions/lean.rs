//! QuantConnect Lean's factor and map files, which have no header.
//!
//! A row of a factor file, `date,price factor,split factor,close`, holds up to its date: the prices of these
//! days times both factors are adjusted prices. So between two rows there is an action, on the trading day
//! after the first row's date: a split by the second split factor over the first, and a dividend of
//! `close (1 - first price factor / second price factor)`, in the currency of that day. A row of a map file,
//! `date,ticker[,exchange]`, says under which ticker the share traded up to its date.

use crate::unpack::Packed;
use datasets::Date;
use datasets::calendar::next_trading_day;
use datasets::corporate_action::{CorporateAction, Kind};
use datasets::layout::CalendarName;
use stages_core::StageError;

/// The relative rounding error of a price factor or a ratio: the files have seven figures.
const ROUNDING: f64 = 2e-5;

/// The rows of a file without a header: comma-separated fields, of which the first is an eight-digit date,
/// with their line numbers.
fn rows(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(i, line)| (i + 1, line.split(',').map(str::trim).collect()))
}

/// Returns whether the text is a factor or map file, judged by its first row.
pub(super) fn is_lean(text: &str) -> bool {
    let first = rows(text).next();
    first.is_some_and(|(_, fields)| fields.len() >= 2 && date(fields[0]).is_some())
}

/// Parses a date of eight digits, year first.
fn date(text: &str) -> Option<Date> {
    let digits = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u32>().ok();
    digits.then(|| Date::from_ymd(number(0..4)? as i32, number(4..6)?, number(6..8)?))?
}

/// The corporate actions of a factor or map file of a share whose last ticker is `symbol`.
pub(super) fn parse(packed: &Packed, symbol: &str) -> Result<Vec<CorporateAction>, StageError> {
    let text = std::str::from_utf8(&packed.bytes)
        .map_err(|_| StageError::new(format!("`{}` is not text", packed.place)))?;
    let mut factors: Vec<(Date, [f64; 3])> = Vec::new();
    let mut tickers: Vec<(Date, String)> = Vec::new();
    for (line, fields) in rows(text) {
        let wrong = |what: &str| StageError::new(format!("`{}`, row {line}: {what}", packed.place));
        let day = date(fields[0])
            .ok_or_else(|| wrong(&format!("`{}` is not a date such as 20140606", fields[0])))?;
        match fields.as_slice() {
            [_, price, split, rest @ ..] if price.parse::<f64>().is_ok() => {
                let number = |text: &str| {
                    let value = text
                        .parse::<f64>()
                        .ok()
                        .filter(|value| *value >= 0.0 && value.is_finite());
                    value.ok_or_else(|| wrong(&format!("`{text}` is not a factor")))
                };
                let close = rest.first().map_or(Ok(0.0), |close| number(close))?;
                factors.push((day, [number(price)?, number(split)?, close]));
            }
            [_, ticker, ..] if !ticker.is_empty() && ticker.parse::<f64>().is_err() => {
                tickers.push((day, ticker.to_uppercase()));
            }
            _ => return Err(wrong("neither `date,price factor,split factor` nor `date,ticker`")),
        }
    }
    factors.sort_by_key(|(day, _)| *day);
    tickers.sort_by_key(|(day, _)| *day);
    let on = |last: Date| next_trading_day(CalendarName::Us, last);
    let action = |symbol: &str, last: Date, kind: Kind| CorporateAction {
        symbol: symbol.to_owned(),
        date: on(last),
        kind,
        ratio: f64::NAN,
        amount: f64::NAN,
        new_symbol: String::new(),
        origin: "lean".to_owned(),
    };
    let mut actions = Vec::new();
    for pair in factors.windows(2) {
        let ((last, [price, split, close]), (_, [later_price, later_split, _])) = (pair[0], pair[1]);
        let ratio = later_split / split;
        if ratio.is_finite() && (ratio - 1.0).abs() > ROUNDING {
            actions.push(CorporateAction {
                ratio: rounded(ratio),
                ..action(symbol, last, Kind::Split)
            });
        }
        let fall = 1.0 - price / later_price;
        if fall.is_finite() && fall > 1e-7 && close > 0.0 {
            actions.push(CorporateAction {
                amount: close * fall,
                ..action(symbol, last, Kind::CashDividend)
            });
        }
    }
    for pair in tickers.windows(2) {
        let ((last, ticker), (_, next)) = (&pair[0], &pair[1]);
        if ticker != next {
            actions.push(CorporateAction {
                new_symbol: next.clone(),
                ..action(ticker, *last, Kind::SymbolChange)
            });
        }
    }
    Ok(actions)
}

/// The fraction of small whole numbers to which the ratio of two seven-figure factors rounds.
fn rounded(ratio: f64) -> f64 {
    for old in 1..=20 {
        let new = (ratio * f64::from(old)).round();
        if new >= 1.0 && (new / f64::from(old) / ratio - 1.0).abs() < ROUNDING {
            return new / f64::from(old);
        }
    }
    ratio
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(text: &str) -> Packed {
        crate::unpack::unpack(std::path::Path::new("aapl.csv"), text.as_bytes().to_vec())
            .unwrap()
            .remove(0)
    }

    #[test]
    fn factor_and_map_files() {
        let text = "20140507,0.8961764,0.03571430,592.33\n20140606,0.9011818,0.03571430,645.57\n20140806,\
            0.9011818,0.25,94.96\n20501231,1,1,0\n";
        assert!(is_lean(text) && !is_lean("date,split\n"));
        let actions = parse(&packed(text), "AAPL").unwrap();
        let of = |kind| actions.iter().filter(move |action| action.kind == kind);
        let splits: Vec<_> = of(Kind::Split).map(|a| (a.date.to_string(), a.ratio)).collect();
        assert_eq!(splits, [("2014-06-09".to_owned(), 7.0), ("2014-08-07".to_owned(), 4.0)]);
        let first = of(Kind::CashDividend).next().unwrap();
        // Apple paid 3.29 on the ex-date 2014-05-08.
        assert_eq!(first.date.to_string(), "2014-05-08");
        assert!((first.amount - 3.29).abs() < 1e-4, "{}", first.amount);

        let map = parse(&packed("19980102,nb,N\n19980930,nb,N\n20501231,bac,N\n"), "BAC").unwrap();
        assert_eq!(map.len(), 1);
        assert_eq!((&*map[0].symbol, &*map[0].new_symbol), ("NB", "BAC"));
        assert_eq!(map[0].date.to_string(), "1998-10-01");
        let err = parse(&packed("20140507,0.9,x,1\n"), "AAPL").unwrap_err();
        assert!(err.message.contains("row 1: `x` is not a factor"), "{err}");
    }
}
