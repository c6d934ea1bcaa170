//! Facts of bars that a file states at an unusual place, and files that may be of two companies: each is
//! used, told or refused.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;

use common::Bench;
use datasets::Date;
use serde_json::{Value, json};
use std::fmt::Write as _;

const BARS: &str = "ingest/bars";

/// A generator (Knuth's, 64 bits).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() * n as f64) as usize
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Weekdays from 2023-02-13 on.
fn days(count: usize) -> Vec<Date> {
    let from: Date = "2023-02-13".parse().unwrap();
    (0..)
        .map(|day| from.plus(day))
        .filter(|day| !day.is_weekend())
        .take(count)
        .collect()
}

fn closes(random: &mut Random, count: usize) -> Vec<f64> {
    let mut close = 20.0 + 80.0 * random.next();
    let step = |_| {
        close *= 1.0 + 0.03 * (random.next() - 0.5);
        (close * 100.0).round() / 100.0
    };
    (0..count).map(step).collect()
}

/// The messages about files: the error with its hint, or the warnings; and the facts.
fn told(bench: &Bench, with: Value) -> (bool, String, Value) {
    match bench.run(BARS, with) {
        Ok(done) => (false, done.warnings.join("\n"), done.artifact.meta["facts"].clone()),
        Err(err) => (
            true,
            format!("{} {}", err.message, err.hint.unwrap_or_default()),
            Value::Null,
        ),
    }
}

/// Counts what became of the variants of a kind.
struct Count {
    kind: &'static str,
    tried: usize,
    told: usize,
    right: usize,
}

impl Count {
    fn of(kind: &'static str) -> Self {
        Self {
            kind,
            tried: 0,
            told: 0,
            right: 0,
        }
    }

    fn add(&mut self, is_told: bool, is_right: bool, what: &str) {
        self.tried += 1;
        self.told += usize::from(is_told);
        self.right += usize::from(!is_told && is_right);
        assert!(is_told || is_right, "{}: silent: {what}", self.kind);
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        let silent = self.tried - self.told - self.right;
        eprintln!(
            "{}: tried {}, told {}, right {}, silent {silent}",
            self.kind, self.tried, self.told, self.right
        );
    }
}

/// Currencies in a row of units, beside the prices of wide tables, and in columns of other names.
#[test]
fn property_currencies_at_unusual_places() {
    let mut random = Random(3);
    let dates = days(40);
    let mut rows = Count::of("a row of units below the header");
    for _ in 0..24 {
        let (unit, code, is_pence) = random.one(&[
            ("EUR", "EUR", false),
            ("GBp", "GBP", true),
            ("(CHF)", "CHF", false),
            ("[JPY]", "JPY", false),
            ("£", "GBP", false),
            ("pence", "GBP", true),
        ]);
        let (first, volume) = (
            random.one(&["", "YYYY-MM-DD", "Unit"]),
            random.one(&["", "shares", "(mn)"]),
        );
        let by = random.one(&[",", ";", "\t"]);
        let mut text = [
            ["Date", "Open", "Close", "Volume"].join(by),
            [first, unit, unit, volume].join(by),
        ]
        .join("\n");
        for (day, close) in dates.iter().zip(closes(&mut random, 40)) {
            text += &format!("\n{day}{by}{close}{by}{close}{by}1000");
        }
        let bench = Bench::new();
        bench.file("AA.csv", text);
        let (is_error, what, facts) = told(&bench, json!({ "path": "AA.csv", "calendar": "none" }));
        assert!(!is_error, "{what}");
        assert!(what.contains("the row below the header is one of units"), "{what}");
        assert_eq!(facts["currency"], json!({ "value": code, "origin": "file" }), "{unit}");
        assert_eq!(facts["unit"]["value"] == "pence", is_pence, "{unit}");
        rows.add(false, true, &what);
    }
    let mut wide = Count::of("signs of currencies in a wide table");
    for _ in 0..20 {
        let (sign, code) = random.one(&[("€", "EUR"), ("£", "GBP"), ("₹", "INR"), ("HK$", "HKD")]);
        let (a, b) = (closes(&mut random, 40), closes(&mut random, 40));
        let other = random.below(4) == 0;
        let mut text = "Date,AAA,BBB\n".to_owned();
        for (i, day) in dates.iter().enumerate() {
            let second = if other { "₩" } else { sign };
            writeln!(text, "{day},{sign}{},{second}{}", a[i], b[i]).unwrap();
        }
        let bench = Bench::new();
        bench.file("wide.csv", text);
        let layout = json!({ "columns": { "date": "Date", "close": "*" } });
        let with = json!({ "path": "wide.csv", "layout": layout, "calendar": "none" });
        let (is_error, what, facts) = told(&bench, with);
        let is_right = facts["currency"] == json!({ "value": code, "origin": "file" });
        assert_eq!(is_error, other, "{what}");
        wide.add(is_error, is_right, &what);
    }
    let mut columns = Count::of("columns of currencies of any name");
    for i in 0..24 {
        let name = random.one(&["Valuuta", "curcdd", "iso", "Handelswährung", "pricing unit", "PX_CCY"]);
        let code = random.one(&["EUR", "SEK", "JPY", "GBp"]);
        let whole = if code == "GBp" { "GBP" } else { code };
        let mut text = format!("date,symbol,close,{name}\n");
        for symbol in ["AAA", "BBB"] {
            for (day, close) in dates.iter().zip(closes(&mut random, 40)) {
                // Two currencies, in a quarter of the variants.
                let own = if i % 4 == 0 && symbol == "BBB" { "CAD" } else { code };
                writeln!(text, "{day},{symbol},{close},{own}").unwrap();
            }
        }
        let bench = Bench::new();
        bench.file("x.csv", text);
        let (is_error, what, facts) = told(&bench, json!({ "path": "x.csv", "calendar": "none" }));
        let is_right = facts["currency"] == json!({ "value": whole, "origin": "file" });
        assert_eq!(is_error, i % 4 == 0, "{what}");
        assert!(
            is_error || what.contains(&format!("the currency is taken from the column `{name}`")),
            "{what}"
        );
        columns.add(is_error, is_right, &what);
    }
}

/// A fund of London that is quoted in dollars is in no pence.
#[test]
fn dollars_in_london() {
    let mut random = Random(17);
    let rows: Vec<String> = (days(5).iter().zip(closes(&mut random, 5)))
        .map(|(day, close)| format!("{day},VUSD.L,{close},USD\n"))
        .collect();
    for (header, with, origin) in [
        ("currency", json!({}), "file"),
        ("fund", json!({}), "file"),
        ("note", json!({ "currency": "USD" }), "configuration"),
    ] {
        let bench = Bench::new();
        bench.file("x.csv", format!("date,symbol,close,{header}\n{}", rows.concat()));
        let mut config = json!({ "path": "x.csv", "calendar": "none" });
        config
            .as_object_mut()
            .unwrap()
            .extend(with.as_object().unwrap().clone());
        let (is_error, what, facts) = told(&bench, config);
        assert!(!is_error, "{what}");
        assert_eq!(facts["currency"], json!({ "value": "USD", "origin": origin }));
        assert!(facts["unit"].is_null(), "{facts}");
    }
}

/// The first rows in another unit, with `unit_jump: drop`: the most rows are not dropped for them.
#[test]
fn property_units_that_are_dropped() {
    let mut random = Random(5);
    let mut count = Count::of("`unit_jump: drop` of most rows");
    for _ in 0..24 {
        let (size, first) = (20 + random.below(60), 1 + random.below(8));
        let factor = random.one(&[0.01, 100.0, 0.001, 1000.0]);
        let mut text = "date,symbol,close\n".to_owned();
        for symbol in ["AAA", "BBB", "CCC", "DDD", "EEE", "FFF"] {
            for (i, (day, close)) in days(size).iter().zip(closes(&mut random, size)).enumerate() {
                let is_wrong = symbol == "CCC" && i < first;
                writeln!(text, "{day},{symbol},{}", if is_wrong { close * factor } else { close }).unwrap();
            }
        }
        let bench = Bench::new();
        bench.file("x.csv", text);
        let with = json!({
            "path": "x.csv", "calendar": "none", "currency": "USD", "on_bad_rows": { "unit_jump": "drop" },
            "max_dropped": 1.0
        });
        let (is_error, what, _) = told(&bench, with);
        assert!(what.contains("rows of `CCC` and keeps"), "{what}");
        count.add(is_error, false, &what);
    }
}

/// Adjusted closes that stand still, or are another's.
#[test]
fn property_adjusted_closes_that_do_not_follow() {
    let mut random = Random(7);
    let mut count = Count::of("adjusted closes that do not follow the close");
    for i in 0..40 {
        let size = 80 + random.below(60);
        let (close, other) = (closes(&mut random, size), closes(&mut random, size));
        let from = random.below(size - 40);
        let factor = 0.5 + random.next();
        let mut text = "date,symbol,close,adj_close\n".to_owned();
        for (at, day) in days(size).iter().enumerate() {
            // Dividends lift the factor.
            let own = close[at] * factor * (1.0 + 0.01 * (at / 20) as f64);
            let adjusted = match i % 3 {
                0 if at >= from => close[from] * factor,
                1 => other[at],
                _ => own,
            };
            writeln!(text, "{day},AAA,{},{adjusted:.4}", close[at]).unwrap();
        }
        let bench = Bench::new();
        bench.file("x.csv", text);
        let (_, what, _) = told(
            &bench,
            json!({ "path": "x.csv", "calendar": "none", "currency": "USD" }),
        );
        count.add(what.contains("adjusted_jump"), i % 3 == 2, &what);
        assert!(i % 3 != 2 || !what.contains("adjusted_jump"), "a false alarm: {what}");
    }
}

/// One symbol of two exchanges, in directories or in a column.
#[test]
fn property_one_symbol_of_two_exchanges() {
    let mut random = Random(11);
    let mut count = Count::of("one symbol of two exchanges");
    for i in 0..24 {
        let (key, symbol) = (
            random.one(&["exchange", "mic", "market", "country", "Venue"]),
            random.one(&["OLD", "F", "7203"]),
        );
        let [a, b] = random.one(&[["XNYS", "XLON"], ["NYSE", "NASDAQ"], ["US", "GB"], ["XTKS", "XHKG"]]);
        let file = |closes: Vec<f64>, dates: &[Date]| {
            let rows = dates.iter().zip(closes).map(|(day, close)| format!("{day},{close}\n"));
            format!("date,close\n{}", rows.collect::<String>())
        };
        let all = days(40);
        let bench = Bench::new();
        let later = if random.below(2) == 0 { &all[20..] } else { &all[..20] };
        let is_one = i % 6 == 5;
        bench
            .file(
                &format!("data/{key}={a}/symbol={symbol}/x.csv"),
                file(closes(&mut random, 20), &all[..20]),
            )
            .file(
                &format!("data/{key}={b}/symbol={}/x.csv", if is_one { "OTHER" } else { symbol }),
                file(closes(&mut random, 20), later),
            );
        let (is_error, what, _) =
            told(&bench, json!({ "path": "data", "calendar": "none", "currency": "USD" }));
        assert_eq!(is_error, !is_one, "{what}");
        count.add(is_error, is_one, &what);
    }
}

/// Days of rates that are ten times the others, or 0 for none; dividends in two currencies.
#[test]
fn property_rates_and_dividends() {
    let mut random = Random(19);
    let layout =
        json!({ "columns": { "date": "date", "0.25": "m3", "1": "y1", "10": "y10" }, "percent": true });
    let mut count = Count::of("days of rates in another unit, or of zeros");
    for i in 0..30 {
        let (first, length) = (3 + random.below(40), 1 + random.below(10));
        let factor = random.one(&[10.0, 0.1, 0.0]);
        let level = 2.2 + 4.0 * random.next();
        let one = random.below(6);
        let mut text = "date,m3,y1,y10\n".to_owned();
        for (at, day) in days(60).iter().enumerate() {
            let is_damaged = i % 5 != 4 && (first..first + length).contains(&at);
            let factor = if is_damaged { factor } else { 1.0 };
            let yields = [(0, 0.0), (1, 0.3), (2, 0.9)].map(|(maturity, slope)| {
                // One maturity alone, in decimals.
                let of_one = if is_damaged && maturity == one { 0.01 } else { 1.0 };
                (level + slope + 0.1 * random.next()) * if one < 3 { of_one } else { factor }
            });
            writeln!(text, "{day},{:.4},{:.4},{:.4}", yields[0], yields[1], yields[2]).unwrap();
        }
        let bench = Bench::new();
        bench.file("r.csv", text);
        let with = json!({ "path": "r.csv", "layout": layout, "calendar": "none", "max_dropped": 1.0 });
        let (is_told, what) = match bench.run("ingest/rates", with) {
            Ok(done) => {
                let what = done.warnings.join("\n");
                (what.contains("zero_for_missing"), what)
            }
            Err(err) => (err.message.contains("unit_change"), err.message),
        };
        assert_eq!(is_told, i % 5 != 4, "{what}");
        count.add(is_told, i % 5 == 4, &what);
    }
    for (second, is_refused) in [("GBp", true), ("EUR", false)] {
        let bench = Bench::new();
        bench.file(
            "a.csv",
            format!(
                "symbol,ex_date,dividend,currency\nVOD.L,2020-06-04,4.5,EUR\nVOD.L,2020-11-26,4.5,{second}\n"
            ),
        );
        let done = bench.run("ingest/corporate_actions", json!({ "path": "a.csv" }));
        assert_eq!(done.is_err(), is_refused);
    }
}

/// Days between year and month, files with general names, Stooq's names, coins beside stocks.
#[test]
fn what_names_and_dates_say() {
    let mut random = Random(13);
    let mut count = Count::of("days between year and month");
    for _ in 0..20 {
        let size = 40 + random.below(200);
        let is_low = random.below(2) == 0;
        let by = random.one(&["-", "/", "."]);
        let all: Vec<Date> = days(size)
            .into_iter()
            .filter(|day| !is_low || day.ymd().2 <= 12)
            .collect();
        let mut text = "date,close\n".to_owned();
        for (day, close) in all.iter().zip(closes(&mut random, all.len())) {
            let (year, month, day) = day.ymd();
            writeln!(text, "{year}{by}{day:02}{by}{month:02},{close}").unwrap();
        }
        let bench = Bench::new();
        bench.file("AA.csv", text);
        let done = bench
            .run(BARS, json!({ "path": "AA.csv", "calendar": "none", "currency": "USD" }))
            .unwrap();
        let rows = bench.rows(&done);
        let found = stages_core::table::dates(&rows, "date").unwrap();
        let what = done.warnings.join("\n");
        assert_eq!(found, all, "{what}");
        assert!(what.contains(&format!("are read as `%Y{by}%d{by}%m`")), "{what}");
        count.add(false, found == all, &what);
    }
    let text = yahoo_like(&mut random);
    for (name, symbol, is_told) in [
        ("HistoricalData_1704901234567.csv", "HistoricalData_1704901234567", true),
        ("data.csv", "data", true),
        ("AAPL.csv", "AAPL", false),
        ("vod_uk_d.csv", "VOD.UK", false),
        ("sap_de_d.csv", "SAP.DE", false),
        ("aapl_us_d.csv", "AAPL", false),
        ("cl_f_d.csv", "CL_F", false),
    ] {
        let bench = Bench::new();
        bench.file(name, &text);
        let done = bench
            .run(BARS, json!({ "path": name, "calendar": "none", "currency": "USD" }))
            .unwrap();
        assert_eq!(done.artifact.meta["symbols"], json!([symbol]), "{name}");
        let what = done.warnings.join("\n");
        assert_eq!(what.contains("no column names the symbol"), is_told, "{name}: {what}");
    }
    let mut text = "date,symbol,close\n".to_owned();
    // No holiday of the exchange is among them.
    let from: Date = "2023-03-01".parse().unwrap();
    for day in (0..35).map(|day| from.plus(day)) {
        writeln!(text, "{day},BTC-USD,{}", 20_000.0 + 1000.0 * random.next()).unwrap();
        if !day.is_weekend() {
            writeln!(text, "{day},AAPL.US,{}", 150.0 + random.next()).unwrap();
        }
    }
    let bench = Bench::new();
    bench.file("mixed.csv", text);
    let (_, what, _) = told(&bench, json!({ "path": "mixed.csv" }));
    assert!(
        what.contains("BTC-USD trades on every day and AAPL.US on those of"),
        "{what}"
    );
}

fn yahoo_like(random: &mut Random) -> String {
    let mut text = "Date,Open,High,Low,Close,Volume\n".to_owned();
    for (day, close) in days(30).iter().zip(closes(random, 30)) {
        writeln!(text, "{day},{close},{close},{close},{close},1000").unwrap();
    }
    text
}
