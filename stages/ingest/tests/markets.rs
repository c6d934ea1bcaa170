//! The markets of bars: calendars, currencies and units that symbols, columns, layouts and the data show.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;

use common::{Bench, Done, Draw};
use datasets::Date;
use datasets::calendar::{CalendarName, is_trading_day};
use serde_json::{Value, json};
use stages_core::StageError;

const BARS: &str = "ingest/bars";

fn date(text: &str) -> Date {
    text.parse().unwrap()
}

/// The sessions of a calendar from a day on.
fn sessions(calendar: &str, from: &str, days: i32) -> Vec<Date> {
    let calendar = CalendarName::of_code(calendar).unwrap();
    let all = (0..days).map(|day| date(from).plus(day));
    all.filter(|day| is_trading_day(calendar, *day)).collect()
}

/// Yahoo's CSV of bars whose closes move on every day.
fn yahoo(days: &[Date]) -> String {
    let mut text = "Date,Open,High,Low,Close,Adj Close,Volume\n".to_owned();
    for (i, day) in days.iter().enumerate() {
        let close = 100.0 + (i % 7) as f64 + i as f64 / 100.0;
        text += &format!("{day},{close},{close},{close},{close},{close},1000\n");
    }
    text
}

fn run(name: &str, text: &str, with: &Value) -> Result<(Bench, Done), StageError> {
    let bench = Bench::new();
    bench.file(&format!("raw/{name}"), text);
    let mut config = json!({ "path": "raw" });
    config
        .as_object_mut()
        .unwrap()
        .extend(with.as_object().unwrap().clone());
    let done = bench.run(BARS, config)?;
    Ok((bench, done))
}

/// A value and the origin of a fact.
fn fact(done: &Done, name: &str) -> (String, String) {
    let fact = &done.artifact.meta["facts"][name];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    (text(&fact["value"]), text(&fact["origin"]))
}

fn pair(value: &str, origin: &str) -> (String, String) {
    (value.to_owned(), origin.to_owned())
}

#[test]
fn yahoos_file_of_tokyo_keeps_its_sessions() {
    let days = sessions("XTKS", "2023-01-01", 210);
    let (_, done) = run("7203.T.csv", &yahoo(&days), &json!({})).unwrap();
    assert_eq!(done.artifact.meta["rows"], days.len());
    assert_eq!(done.artifact.meta["calendar"], "XTKS");
    assert_eq!(fact(&done, "calendar"), pair("XTKS", "name"));
    assert_eq!(fact(&done, "currency"), pair("JPY", "name"));
    assert_eq!(fact(&done, "time_zone"), pair("Asia/Tokyo", "name"));
    assert!(done.warnings.is_empty(), "{:?}", done.warnings);
    // Without a suffix the data shows it.
    let (_, done) = run("TOYOTA.csv", &yahoo(&days), &json!({})).unwrap();
    assert_eq!(done.artifact.meta["rows"], days.len());
    assert_eq!(fact(&done, "calendar"), pair("XTKS", "found"));
    assert!(done.warnings[0].contains("`us` (layout yahoo)"), "{:?}", done.warnings);
    // A calendar that was stated is obeyed.
    let (_, done) = run("7203.T.csv", &yahoo(&days), &json!({ "calendar": "us" })).unwrap();
    assert_eq!(fact(&done, "calendar"), pair("us", "configuration"));
    assert!(done.artifact.meta["rows"].as_u64().unwrap() < days.len() as u64);
    assert!(done.warnings[0].contains("non_trading_day"), "{:?}", done.warnings);
}

#[test]
fn a_panel_of_paris() {
    let days = sessions("XPAR", "2023-01-01", 200);
    let mut text = "date,tic,close,volume\n".to_owned();
    for symbol in ["AIR.PA", "BNP.PA"] {
        for (i, day) in days.iter().enumerate() {
            text += &format!("{day},{symbol},{},1000\n", 100.0 + i as f64);
        }
    }
    let (_, done) = run("panel.csv", &text, &json!({})).unwrap();
    assert_eq!(done.artifact.meta["rows"], 2 * days.len());
    assert_eq!(fact(&done, "calendar"), pair("XPAR", "name"));
    assert_eq!(fact(&done, "currency"), pair("EUR", "name"));
}

#[test]
fn several_markets() {
    let bench = Bench::new();
    let paris = sessions("XPAR", "2023-01-01", 360);
    let frankfurt = sessions("XETR", "2023-01-01", 360);
    bench.file("raw/AIR.PA.csv", yahoo(&paris));
    bench.file("raw/SAP.DE.csv", yahoo(&frankfurt));
    let done = bench.run(BARS, json!({ "path": "raw" })).unwrap();
    assert_eq!(done.artifact.meta["rows"], paris.len() + frankfurt.len());
    assert_eq!(fact(&done, "calendar"), pair("weekends", "name"));
    assert_eq!(
        done.artifact.meta["facts"]["calendar"]["symbols"]["XETR"],
        json!(["SAP.DE"])
    );
    assert_eq!(done.finding("missing_day").0, 0);
    // Two currencies are refused, and the remedy works.
    bench.file("raw/VOD.L.csv", yahoo(&sessions("XLON", "2023-01-01", 360)));
    let err = bench.run(BARS, json!({ "path": "raw" })).unwrap_err();
    assert!(
        err.message.contains("EUR of AIR.PA, SAP.DE and GBp of VOD.L"),
        "{}",
        err.message
    );
    assert!(format!("{:?}", err.hint).contains("symbols: [VOD.L]"), "{:?}", err.hint);
    let done = bench.run(BARS, json!({ "path": "raw", "symbols": ["VOD.L"] })).unwrap();
    assert_eq!(fact(&done, "calendar"), pair("XLON", "name"));
    assert_eq!(
        (fact(&done, "currency"), fact(&done, "unit")),
        (pair("GBP", "name"), pair("pence", "name"))
    );
}

#[test]
fn columns_state_currency_and_exchange() {
    let days = sessions("XTKS", "2023-01-01", 120);
    let mut text = "date,symbol,close,currency,mic\n".to_owned();
    for (i, day) in days.iter().enumerate() {
        text += &format!("{day},TOYOTA,{},JPY,XTKS\n", 2_000 + i);
    }
    let (_, done) = run("bars.csv", &text, &json!({})).unwrap();
    assert_eq!(fact(&done, "calendar"), pair("XTKS", "file"));
    assert_eq!(fact(&done, "currency"), pair("JPY", "file"));
    assert_eq!(done.artifact.meta["rows"], days.len());
    assert!(done.warnings.is_empty(), "{:?}", done.warnings);
    let (_, done) = run("bars.csv", &text.replace("JPY", "GBp"), &json!({})).unwrap();
    assert_eq!(
        (fact(&done, "currency"), fact(&done, "unit")),
        (pair("GBP", "file"), pair("pence", "file"))
    );
    let mixed = text.replacen("JPY", "USD", 1);
    let err = run("bars.csv", &mixed, &json!({})).map(|_| ()).unwrap_err();
    assert!(err.message.contains("in JPY here and in USD above"), "{}", err.message);
}

/// The statements of the currency of prices: column, sign, unit, or name of the column of prices.
#[test]
fn the_currency_that_a_file_states_is_taken() {
    let days = sessions("XNYS", "2023-02-13", 30);
    let file = |header: &str, value: &str| {
        let rows = days.iter().enumerate().map(|(i, day)| {
            let price = format!("{}.{:02}", 50 + i, 10 + i);
            format!("{day},{}\n", value.replace('#', &price))
        });
        format!("{header}\n{}", rows.collect::<String>())
    };
    for name in ["ccy", "curr", "price_currency", "Trading Currency", "Währung"] {
        let text = file(&format!("date,close,{name}"), "#,EUR");
        let (_, done) = run("AA.csv", &text, &json!({})).unwrap();
        assert_eq!(fact(&done, "currency"), pair("EUR", "file"), "{name}");
    }
    for (value, currency) in [
        ("€#", "EUR"),
        ("# EUR", "EUR"),
        ("£#", "GBP"),
        ("HK$#", "HKD"),
        ("₹#", "INR"),
        ("US$#", "USD"),
    ] {
        let text = file("date,close", value);
        let (_, done) = run("AA.csv", &text, &json!({})).unwrap();
        assert_eq!(fact(&done, "currency"), pair(currency, "file"), "{value}");
        let with = json!({ "currency": "CHF" });
        let err = run("AA.csv", &text, &with).map(|_| ()).unwrap_err();
        assert!(err.message.contains("CHF (configuration)"), "{}", err.message);
    }
    for (value, stated) in [("$", "$"), ("US$", "USD")] {
        let text = file("date,close,currency", &format!("#,{value}"));
        let (_, done) = run("AA.csv", &text, &json!({})).unwrap();
        assert_eq!(fact(&done, "currency").0, "USD", "{stated}");
    }
    let text = file("date,close,unit", "#,pence");
    let (_, done) = run("AA.csv", &text, &json!({})).unwrap();
    assert_eq!(
        (fact(&done, "currency"), fact(&done, "unit")),
        (pair("GBP", "file"), pair("pence", "file"))
    );
    for (name, currency) in [("close_eur", "EUR"), ("Close (EUR)", "EUR"), ("Price (p)", "GBP")] {
        let text = file(&format!("date,{name}"), "#");
        let with = json!({ "layout": { "columns": { "date": "date", "close": name } } });
        let (_, done) = run("AA.csv", &text, &with).unwrap();
        assert_eq!(fact(&done, "currency"), pair(currency, "file"), "{name}");
    }
    // What is contradictory or no currency is refused.
    for (name, text, with, says) in [
        ("SAP.DE.csv", file("date,close", "$#"), json!({}), "EUR (name)"),
        ("AA.csv", file("date,close", "¥#"), json!({}), "USD (assumed)"),
        (
            "AA.csv",
            file("date,close,currency", "#,?$"),
            json!({}),
            "is not the code",
        ),
        (
            "AA.csv",
            file("date,close,currency", "#,GBX"),
            json!({ "currency": "GBP" }),
            "in hundredths of GBP",
        ),
    ] {
        let err = run(name, &text, &with).map(|_| ()).unwrap_err();
        assert!(err.message.contains(says), "{}", err.message);
    }
    let text = "date,symbol,close,currency\n2023-02-13,AA,30.5,GBP\n2023-02-13,BB,3050,GBX\n";
    let err = run("two.csv", text, &json!({})).map(|_| ()).unwrap_err();
    assert!(err.message.contains("several currencies"), "{}", err.message);
    assert!(!err.hint.unwrap().contains("state it"));
}

/// Instants of UTC that are midnights of the exchange have its days.
#[test]
fn midnights_of_the_exchange_have_its_days() {
    for (symbol, code, hours) in [
        ("7203.T", "XTKS", [-9, -9]),
        ("0700.HK", "XHKG", [-8, -8]),
        ("SAP.DE", "XETR", [-1, -2]),
        ("BHP.AX", "XASX", [-11, -10]),
        ("ITC.NS", "XBOM", [-5, -5]),
    ] {
        let days = sessions(code, "2023-01-04", 200);
        for count in [2, 60, 120] {
            for kind in 0..3 {
                let mut text = if kind == 2 { "timestamp,Close\n" } else { "Date,Close\n" }.to_owned();
                for (i, day) in days.iter().take(count).enumerate() {
                    let summer = match code {
                        "XETR" => *day >= date("2023-03-27"),
                        _ => *day >= date("2023-04-02"),
                    };
                    let half = if code == "XBOM" { 30 } else { 0 };
                    let minutes = hours[usize::from(summer)] * 60 - half;
                    let seconds = i64::from(day.0) * 86_400 + i64::from(minutes) * 60;
                    let (hour, minute) = ((minutes + 1440) / 60, (minutes + 1440) % 60);
                    let price = 50.0 + (i % 7) as f64 / 4.0;
                    let day = day.plus(-1);
                    text += &match kind {
                        0 => format!("{day}T{hour:02}:{minute:02}:00Z,{price}\n"),
                        1 => format!("{day} {hour:02}:{minute:02}:00+00:00,{price}\n"),
                        _ => format!("{seconds},{price}\n"),
                    };
                }
                let (bench, done) = run(&format!("{symbol}.csv"), &text, &json!({})).unwrap();
                let read = stages_core::table::dates(&bench.rows(&done), "date").unwrap();
                assert_eq!(read, days[..count], "{symbol}, {kind}");
                assert!(
                    done.warnings.iter().any(|line| line.contains("is midnight in")),
                    "{:?}",
                    done.warnings
                );
                // Without the suffix it is refused where the weekdays show it.
                if count > 5 {
                    let err = run("ABC.csv", &text, &json!({})).map(|_| ()).unwrap_err();
                    assert!(err.message.contains("midnights of another zone"), "{}", err.message);
                }
            }
        }
    }
}

/// Bars whose instants have the days beside those of the sessions: minutes after midnight of UTC, before and
/// after the clocks change.
fn beside(days: &[Date], minutes: [i32; 2], kind: usize) -> String {
    let mut text = if kind == 2 { "timestamp,Close\n" } else { "Date,Close\n" }.to_owned();
    for (i, day) in days.iter().enumerate() {
        let minutes = minutes[usize::from(*day >= date("2023-03-27"))];
        let (day, minutes) = (day.plus(minutes.div_euclid(1440)), minutes.rem_euclid(1440));
        let price = 50.0 + (i % 7) as f64 / 4.0;
        let (hour, minute) = (minutes / 60, minutes % 60);
        text += &match kind {
            0 => format!("{day}T{hour:02}:{minute:02}:00Z,{price}\n"),
            1 => format!("{day} {hour:02}:{minute:02}:00+00:00,{price}\n"),
            _ => format!("{},{price}\n", i64::from(day.0) * 86_400 + i64::from(minutes) * 60),
        };
    }
    text
}

/// Instants whose days in UTC are those before or after the sessions have the days of the exchange.
#[test]
fn instants_beside_sessions_have_the_days_of_the_exchange() {
    for (symbol, code, minutes) in [
        // The opening in Sydney, and in Auckland.
        ("BHP.AX", "XASX", [-120, -60]),
        ("AIR.NZ", "XNZE", [-180, -120]),
        // An hour in the evening of New York and Toronto.
        ("RY.TO", "XTSE", [1440 + 60, 1440]),
    ] {
        let days = sessions(code, "2023-01-04", 160);
        for kind in 0..3 {
            let text = beside(&days, minutes, kind);
            let (bench, done) = run(&format!("{symbol}.csv"), &text, &json!({})).unwrap();
            let read = stages_core::table::dates(&bench.rows(&done), "date").unwrap();
            assert_eq!(read, days, "{symbol}, {kind}");
            let is_told = |line: &String| line.contains("days are those of the exchange there");
            assert!(done.warnings.iter().any(is_told), "{:?}", done.warnings);
            // Without the suffix it is asked, and the answer is taken.
            let err = run("ABC.csv", &text, &json!({})).map(|_| ()).unwrap_err();
            assert!(err.message.contains("before or after sessions"), "{}", err.message);
            assert!(err.hint.unwrap().contains("zone: "));
            let zone = CalendarName::of_code(code).unwrap().session().unwrap().time_zone;
            let like = |zone: &str| json!({ "layout": { "like": "plain", "zone": zone } });
            let (bench, done) = run("ABC.csv", &text, &like(zone)).unwrap();
            assert_eq!(stages_core::table::dates(&bench.rows(&done), "date").unwrap(), days);
            let (bench, done) = run("ABC.csv", &text, &like("UTC")).unwrap();
            assert_ne!(stages_core::table::dates(&bench.rows(&done), "date").unwrap(), days);
        }
    }
    // Evenings of New York that are days of UTC in winter alone.
    let days = sessions("us", "2023-01-04", 300);
    let err = run("ABC.csv", &beside(&days, [1440, 1380], 0), &json!({}))
        .map(|_| ())
        .unwrap_err();
    assert!(err.hint.unwrap().contains("zone: America/New_York"));
    // A wide table of closes.
    let wide = beside(&days, [1500, 1440], 0).replace("Close", "AAPL");
    let with = json!({ "layout": { "columns": { "date": "Date", "close": "*" } } });
    let err = run("wide.csv", &wide, &with).map(|_| ()).unwrap_err();
    assert!(err.message.contains("before or after sessions"), "{}", err.message);
}

/// Instants of markets that have sessions at weekends, and days without times, stay as they are.
#[test]
fn sessions_at_weekends_are_not_asked_for() {
    let every: Vec<Date> = (0..200).map(|day| date("2023-01-04").plus(day)).collect();
    let weekdays = sessions("weekends", "2023-01-04", 200);
    let of = |none: &[u32]| -> Vec<Date> {
        every
            .iter()
            .copied()
            .filter(|day| !none.contains(&day.weekday()))
            .collect()
    };
    let plain = |days: &[Date]| beside(days, [0, 0], 0).replace("T00:00:00Z", "");
    for (symbol, text, days) in [
        ("BTCUSD", beside(&every, [0, 0], 2), &every),
        ("COIN", beside(&every, [1380, 1320], 0), &every),
        ("SHORT", beside(&every[..3], [1380, 1380], 0), &every[..3].to_vec()),
        ("EURUSD", beside(&of(&[4, 5]), [1320, 1260], 0), &of(&[4, 5])),
        ("FX", beside(&of(&[5]), [1320, 1260], 0), &of(&[5])),
        ("2222.SR", beside(&of(&[4, 5]), [420, 420], 0), &of(&[4, 5])),
        ("ABC", beside(&weekdays, [870, 810], 0), &weekdays),
        ("SUN", plain(&of(&[4, 5])), &of(&[4, 5])),
    ] {
        let (bench, done) = run(&format!("{symbol}.csv"), &text, &json!({ "calendar": "none" })).unwrap();
        let read = stages_core::table::dates(&bench.rows(&done), "date").unwrap();
        assert_eq!(&read, days, "{symbol}");
    }
}

#[test]
fn what_is_assumed_is_said() {
    let text = "date,close\n2023-01-05,1.00\n2023-01-06,1.01\n";
    let (_, done) = run("ABC.csv", text, &json!({})).unwrap();
    assert_eq!(fact(&done, "calendar"), pair("weekends", "assumed"));
    assert_eq!(
        done.warnings,
        ["nothing states these facts of the bars, they are assumed: calendar: weekends, currency: USD"]
    );
    let (_, done) = run("ABC.csv", text, &json!({ "calendar": "XTKS" })).unwrap();
    assert_eq!(fact(&done, "currency"), pair("JPY", "configuration"));
    assert!(done.warnings.is_empty(), "{:?}", done.warnings);
}

#[test]
fn beyond_its_table_a_calendar_warns_and_may_be_changed() {
    let days = sessions("weekends", "2026-12-28", 14);
    let with = json!({ "calendar": "sse" });
    let (_, done) = run("ABC.csv", &yahoo(&days), &with).unwrap();
    assert!(
        done.warnings.iter().any(|line| line.contains("covers 1991 to 2026")),
        "{:?}",
        done.warnings
    );
    let with = json!({ "calendar": { "base": "XSHG", "closed": ["2027-01-01"] } });
    let (_, done) = run("ABC.csv", &yahoo(&days), &with).unwrap();
    assert_eq!(done.examples("non_trading_day"), ["2027-01-01"]);
    assert_eq!(
        done.artifact.meta["calendar"],
        json!({ "base": "sse", "closed": ["2027-01-01"] })
    );
}

/// A suffix says Paris, and the file has the sessions of Tokyo, each and no other: none is lost, and it is
/// told; of few days, it is asked.
#[test]
fn sessions_of_one_exchange_against_a_suffix_are_kept() {
    let days = sessions("XTKS", "2023-01-04", 210);
    let (_, done) = run("AIR.PA.csv", &yahoo(&days), &json!({})).unwrap();
    assert_eq!(done.artifact.meta["rows"], json!(days.len()));
    assert_eq!(fact(&done, "calendar"), pair("XTKS", "found"));
    let told = done.warnings.join("\n");
    assert!(
        told.contains("the calendar `XTKS` has all of them, and is taken"),
        "{told}"
    );
    let err = run("AIR.PA.csv", &yahoo(&days[..90]), &json!({})).err().unwrap();
    assert!(err.message.contains("sessions of AIR.PA"), "{}", err.message);
}

/// A suffix says London, and the file has every weekday: none is lost, and it is told.
#[test]
fn every_weekday_against_a_suffix_is_kept() {
    for (name, currency) in [
        ("CNE.L", "GBP"),
        ("7203.T", "JPY"),
        ("ITC.NS", "INR"),
        ("BNP.PA", "EUR"),
    ] {
        let days = sessions("weekends", "2023-02-13", 200);
        let (_, done) = run(&format!("{name}.csv"), &yahoo(&days), &json!({})).unwrap();
        assert_eq!(done.artifact.meta["rows"], json!(days.len()), "{name}");
        assert_eq!(fact(&done, "calendar"), pair("weekends", "found"), "{name}");
        assert_eq!(fact(&done, "currency"), pair(currency, "name"), "{name}");
        let told = done.warnings.join("\n");
        assert!(
            told.contains(name) && told.contains("every day from Monday to Friday is taken"),
            "{name}: {told}"
        );
    }
}

/// Suffixes of Yahoo with the calendars of their exchanges.
const SUFFIXES: [(&str, &str); 26] = [
    (".T", "XTKS"),
    (".L", "XLON"),
    (".PA", "XPAR"),
    (".AS", "XAMS"),
    (".BR", "XBRU"),
    (".LS", "XLIS"),
    (".DE", "XETR"),
    (".MI", "XMIL"),
    (".MC", "XMAD"),
    (".SW", "XSWX"),
    (".ST", "XSTO"),
    (".CO", "XCSE"),
    (".HE", "XHEL"),
    (".OL", "XOSL"),
    (".SI", "XSES"),
    (".NS", "XNSE"),
    (".HK", "XHKG"),
    (".SS", "XSHG"),
    (".TW", "XTAI"),
    (".KS", "XKRX"),
    (".AX", "XASX"),
    (".TO", "XTSE"),
    (".SA", "BVMF"),
    (".MX", "XMEX"),
    (".JO", "XJSE"),
    (".TA", "XTAE"),
];

/// Every shipped calendar's sessions in Yahoo's files, clean and damaged. What is lost is told, or nothing is
/// lost.
#[test]
fn no_session_of_a_foreign_exchange_is_lost_without_a_word() {
    let mut draw = Draw(11);
    let mut counts = std::collections::BTreeMap::<&str, [usize; 4]>::new();
    let mut judge =
        |kind: &'static str, days: &[Date], outcome: Result<(Bench, Done), StageError>, expected: usize| {
            let count = counts.entry(kind).or_default();
            count[0] += 1;
            match outcome {
                Err(err) => {
                    assert!(err.hint.is_some(), "{kind}: {}", err.message);
                    count[1] += 1;
                }
                Ok((_, done)) => {
                    let rows = done.artifact.meta["rows"].as_u64().unwrap() as usize;
                    // That the currency is assumed says nothing of days.
                    let of_days =
                        |line: &String| line.contains("calendar") || line.contains("non_trading_day");
                    if rows == expected {
                        count[2] += 1;
                    } else if done.warnings.iter().any(of_days) {
                        count[1] += 1;
                    } else {
                        eprintln!("SILENT {kind}: {rows} of {expected}, {:?}", days.first());
                        count[3] += 1;
                    }
                }
            }
        };
    for (suffix, code) in SUFFIXES {
        let year = 2019 + draw.below(6);
        let from = format!("{year}-{:02}-{:02}", 1 + draw.below(12), 1 + draw.below(28));
        let days = sessions(code, &from, 150 + draw.below(250) as i32);
        let name = format!("S{}{suffix}.csv", draw.below(1_000));
        judge("suffix", &days, run(&name, &yahoo(&days), &json!({})), days.len());
        judge(
            "no suffix, layout's calendar",
            &days,
            run("STOCK.csv", &yahoo(&days), &json!({})),
            days.len(),
        );
        let plain = yahoo(&days).replace("Adj Close", "VWAP");
        judge(
            "no suffix, no calendar stated",
            &days,
            run("STOCK.csv", &plain, &json!({})),
            days.len(),
        );
        let other = SUFFIXES[draw.below(SUFFIXES.len())];
        let stated = json!({ "calendar": other.1 });
        judge(
            "another calendar stated",
            &days,
            run(&name, &yahoo(&days), &stated),
            days.len(),
        );
        let suffix = format!("S{}", other.0);
        judge(
            "another suffix",
            &days,
            run(&format!("{suffix}.csv"), &yahoo(&days), &json!({})),
            days.len(),
        );
        // Three holidays of the exchange with prices that move.
        let all = sessions("weekends", &from, 150);
        let mut traded = days.clone();
        let holidays: Vec<Date> = all.into_iter().filter(|day| !days.contains(day)).take(3).collect();
        traded.extend(&holidays);
        traded.sort_unstable();
        if holidays.len() >= 2 {
            judge(
                "holidays traded",
                &traded,
                run(&name, &yahoo(&traded), &json!({})),
                traded.len(),
            );
        }
        // Missing sessions are counted; no row is lost.
        let mut some = days.clone();
        for _ in 0..1 + draw.below(10) {
            some.remove(draw.below(some.len()));
        }
        let outcome = run(&name, &yahoo(&some), &json!({}));
        if let Ok((_, done)) = &outcome {
            assert!(done.finding("missing_day").0 > 0, "{name}");
        }
        judge("missing sessions", &some, outcome, some.len());
        judge(
            "missing sessions, no suffix",
            &some,
            run("STOCK.csv", &yahoo(&some), &json!({})),
            some.len(),
        );
        // Days that are a day off: Sunday to Thursday.
        let shifted: Vec<Date> = days.iter().map(|day| day.plus(-1)).collect();
        judge(
            "dates a day off",
            &shifted,
            run(&name, &yahoo(&shifted), &json!({})),
            shifted.len(),
        );
    }
    for (kind, [tried, told, right, silent]) in &counts {
        println!("kind {kind}: tried {tried}, told {told}, right {right}, silent {silent}");
    }
    assert!(
        counts
            .values()
            .all(|[tried, _, _, silent]| *tried >= 20 && *silent == 0),
        "{counts:?}"
    );
}
