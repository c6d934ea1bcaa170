//! Our calendars against those of exchange_calendars, session by session: `datasets/calendars/README.md`.

use super::*;
use crate::Date;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The sessions of a year, with the closes of half days: as `exchanges.py` writes and hashes them.
fn sessions(calendar: CalendarName, year: i32) -> (usize, String) {
    let day = |month, day| Date::from_ymd(year, month, day).unwrap().0;
    let days = (day(1, 1)..=day(12, 31)).map(Date);
    let (mut count, mut text) = (0, String::new());
    for day in days.filter(|day| is_trading_day(calendar, *day)) {
        count += 1;
        text += &day.to_string()[5..];
        if let Some(close) = early_close(calendar, day) {
            write!(text, "@{close}").unwrap();
        }
        text.push(' ');
    }
    (count, text)
}

fn digest(text: &str) -> String {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
}

#[test]
fn sessions_and_half_days_are_those_of_exchange_calendars() {
    let (mut differ, mut years) = (BTreeMap::<&str, Vec<i32>>::new(), 0);
    for line in include_str!("../../calendars/digests.txt").lines().skip(1) {
        let [code, year, count, theirs] = Vec::from_iter(line.split(' '))[..] else {
            panic!("{line}")
        };
        let (year, count): (i32, usize) = (year.parse().unwrap(), count.parse().unwrap());
        let calendar = CalendarName::of_code(code).unwrap();
        assert!(calendar.covers(Date::from_ymd(year, 7, 1).unwrap()), "{code} {year}");
        let (ours, text) = sessions(calendar, year);
        if (ours, digest(&text).as_str()) != (count, theirs) {
            differ.entry(code).or_default().push(year);
        }
        years += 1;
    }
    println!(
        "{years} years of exchanges compared, {} exchanges differ: {differ:?}",
        differ.len()
    );
    assert_eq!(years, 1404);
    // The corrections of `exchanges.py`, which names their reasons.
    let corrected = [
        ("XHKG", vec![2023]),
        (
            "XBOM",
            vec![
                1999, 2003, 2006, 2009, 2013, 2014, 2015, 2016, 2017, 2018, 2019, 2020, 2021, 2022, 2023,
                2024, 2025, 2026,
            ],
        ),
    ];
    assert_eq!(differ, BTreeMap::from(corrected));
}

/// The rules of the United States, day by day.
#[test]
fn the_rules_of_the_united_states_are_those_of_exchange_calendars() {
    let theirs = holidays::Holidays::embedded(include_str!("../../calendars/xnys.txt"));
    for day in (Date::from_ymd(1990, 1, 1).unwrap().0..=Date::from_ymd(2027, 12, 31).unwrap().0).map(Date) {
        assert_eq!(is_trading_day(CalendarName::Us, day), theirs.is_open(day), "{day}");
        let half_day = theirs
            .half_day(day)
            .map(|close| close.or(usual_half_day(CalendarName::Us)));
        assert_eq!(early_close(CalendarName::Us, day), half_day.flatten(), "{day}");
    }
}

#[test]
fn suffixes_name_markets() {
    for (symbol, calendar, currency) in [
        ("7203.T", "XTKS", "JPY"),
        ("VOD.L", "XLON", "GBp"),
        ("MC.PA", "XPAR", "EUR"),
        ("INFY.NS", "nse", "INR"),
        ("0700.HK", "hkex", "HKD"),
        ("600519.SS", "sse", "CNY"),
        ("NPN.JO", "XJSE", "ZAc"),
        ("BTC-USD", "always", "USD"),
        ("ETH-BTC", "always", "BTC"),
        ("EURUSD=X", "weekends", "USD"),
        ("JPY=X", "weekends", "JPY"),
        ("^N225", "XTKS", "JPY"),
        ("^GSPC", "us", "USD"),
        ("petr4.sa", "BVMF", "BRL"),
    ] {
        let market = market_of(symbol).unwrap();
        assert_eq!(
            (market.calendar.name(), market.currency),
            (calendar, currency),
            "{symbol}"
        );
    }
    for symbol in ["AAPL", "BRK-B", "BRK.B", "BF.A", ".T", "SPX", "-USD", "T", ""] {
        assert_eq!(market_of(symbol), None, "{symbol}");
    }
}

#[test]
fn a_calendar_with_changes() {
    let read = |text: &str| serde_yaml::from_str::<CalendarName>(text);
    let day = |text: &str| text.parse::<Date>().unwrap();
    let text = "{ base: XNYS, closed: [2028-01-05], early: [2028-07-05], open: [2028-01-08] }";
    let changed = read(text).unwrap();
    assert_eq!(read(text).unwrap(), changed);
    assert!(!is_trading_day(changed, day("2028-01-05")) && is_trading_day(changed, day("2028-01-06")));
    assert!(is_trading_day(changed, day("2028-01-08")) && !is_trading_day(changed, day("2028-01-09")));
    assert_eq!(early_close(changed, day("2028-07-05")).unwrap().to_string(), "13:00");
    assert_eq!((changed.base(), changed.name()), (CalendarName::Us, "us"));
    assert_eq!(changed.session(), CalendarName::Us.session());
    assert_eq!(
        changed.to_string(),
        "us, closed on 2028-01-05, early on 2028-07-05, open on 2028-01-08"
    );
    assert_eq!(read("{ base: XTKS }").unwrap(), CalendarName::of_code("XTKS").unwrap());
    for (wrong, reason) in [
        ("{ base: XTKS, early: [2028-01-05] }", "has no half days"),
        ("{ base: us, closed: [2028-01-05], open: [2028-01-05] }", "is both"),
        ("{ base: us, shut: [2028-01-05] }", "unknown field"),
        ("XXXX", "is no calendar"),
    ] {
        let err = read(wrong).unwrap_err().to_string();
        assert!(err.contains(reason), "{wrong}: {err}");
    }
}
