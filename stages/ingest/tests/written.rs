//! The contents of cells, and the bytes of files: numbers, dates, headers, encodings, containers.
//!
//! One clean table of bars is written in many ways. Each must give the right values, or an error whose
//! remedy, applied, gives them: never other values.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

#[path = "written/cases.rs"]
mod cases;
mod common;
#[path = "written/dates.rs"]
mod dates;
#[path = "written/headers.rs"]
mod headers;
#[path = "written/numbers.rs"]
mod numbers;
#[path = "written/texts.rs"]
mod texts;

use common::{Bench, Draw, floats};
use datasets::Date;
use serde_json::{Value, json};
use stages_core::StageError;
use std::fmt::Write as _;

/// A bar: day, open, high, low, close, volume.
type Bar = (Date, [f64; 5]);

/// Bars on the weekdays from a day on, with prices near `level` in steps of 10^-`decimals`.
fn bars(seed: u64, rows: usize, level: f64, decimals: i32) -> Vec<Bar> {
    let mut draw = Draw(seed);
    let mut date: Date = "2023-02-13".parse().unwrap();
    let mut close = level;
    let step = 10f64.powi(decimals);
    let round = |price: f64| (price * step).round() / step;
    (0..rows)
        .map(|_| {
            close = round(close * (1.0 + draw.below(401) as f64 / 1e4 - 0.02));
            let (high, low) = (round(close * 1.01), round(close * 0.99));
            let day = date;
            date = date.plus(if date.weekday() == 4 { 3 } else { 1 });
            (day, [close, high, low, close, (draw.below(900_000) + 1000) as f64])
        })
        .collect()
}

/// A number with these separators.
fn number(value: f64, decimals: usize, point: &str, group: &str) -> String {
    let plain = format!("{value:.decimals$}");
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut out = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push_str(group);
        }
        out.push(digit);
    }
    if fraction.is_empty() {
        out
    } else {
        format!("{out}{point}{fraction}")
    }
}

/// A table of bars as text, each field in quotes where it needs them.
fn table(
    bars: &[Bar],
    header: &[&str],
    by: char,
    date: impl Fn(Date) -> String,
    price: impl Fn(f64) -> String,
    volume: impl Fn(f64) -> String,
) -> String {
    let field = |text: String| {
        if text.contains([by, '"']) {
            format!("\"{text}\"")
        } else {
            text
        }
    };
    let line = |fields: Vec<String>| fields.into_iter().map(field).collect::<Vec<_>>().join(&by.to_string());
    let mut out = line(header.iter().map(|name| (*name).to_owned()).collect()) + "\n";
    for (day, values) in bars {
        let mut fields = vec![date(*day)];
        fields.extend(values[..4].iter().map(|value| price(*value)));
        fields.push(volume(values[4]));
        writeln!(out, "{}", line(fields)).unwrap();
    }
    out
}

const HEADER: [&str; 6] = ["date", "open", "high", "low", "close", "volume"];

fn iso(day: Date) -> String {
    day.to_string()
}

/// A table of bars with prices of two decimals and dates of ISO 8601.
fn plain(bars: &[Bar], header: &[&str], by: char) -> String {
    let price = |value: f64| format!("{value:.2}");
    table(bars, header, by, iso, price, |value| format!("{value}"))
}

/// The expected rows.
fn rows(bars: &[Bar]) -> Vec<(String, [f64; 5])> {
    bars.iter().map(|(day, values)| (day.to_string(), *values)).collect()
}

/// Days and values of bars, and the warnings of their stage.
type Read = (Vec<(String, [f64; 5])>, Vec<String>);

/// Reads bars; no rule leaves a row out.
fn read(bench: &Bench, with: &Value) -> Result<Read, StageError> {
    let mut with = with.clone();
    with["on_bad_rows"] = json!("keep");
    with["calendar"] = json!("none");
    let done = bench.run("ingest/bars", with)?;
    let batch = bench.rows(&done);
    let columns = ["open", "high", "low", "close", "volume"].map(|name| floats(&batch, name));
    let dates = stages_core::table::dates(&batch, "date")?;
    let found = dates
        .iter()
        .enumerate()
        .map(|(row, date)| (date.to_string(), std::array::from_fn(|i| columns[i][row])))
        .collect();
    Ok((found, done.warnings))
}

fn same(found: &[(String, [f64; 5])], wanted: &[(String, [f64; 5])]) -> bool {
    let near = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a / b - 1.0).abs() < 1e-12;
    found.len() == wanted.len()
        && found
            .iter()
            .zip(wanted)
            .all(|(a, b)| a.0 == b.0 && a.1.iter().zip(&b.1).all(|(a, b)| near(*a, *b)))
}

/// The settings that a hint proposes.
fn remedies(hint: &str) -> Vec<Value> {
    let parts = hint
        .split('`')
        .filter_map(|part| serde_yaml::from_str::<Value>(part).ok());
    parts
        .filter(|value| value.get("layout").is_some_and(Value::is_object) || value.get("currency").is_some())
        .collect()
}

/// Counts of one kind of damage.
#[derive(Default)]
struct Counts {
    tried: usize,
    told: usize,
    right: usize,
    silent: Vec<String>,
    without_remedy: Vec<String>,
}

impl Counts {
    /// Tries a file: right values, or an error with a remedy that gives them.
    fn try_file(&mut self, what: &str, name: &str, bytes: impl AsRef<[u8]>, wanted: &[(String, [f64; 5])]) {
        let bench = Bench::new();
        bench.file(name, bytes);
        self.tried += 1;
        match read(&bench, &json!({ "path": name })) {
            Ok((found, _)) if same(&found, wanted) => self.right += 1,
            // A point that stands between thousands in every number is a matter of the reader: told.
            Ok((_, warnings)) if warnings.iter().any(|text| text.contains("is read as that of decimals")) => {
                self.told += 1;
            }
            Ok((found, warnings)) => {
                self.silent.push(format!(
                    "{what}: {:?} for {:?}, {warnings:?}",
                    found.first(),
                    wanted.first()
                ));
            }
            Err(err) => {
                self.told += 1;
                let hint = err.hint.clone().unwrap_or_default();
                let works = remedies(&hint).into_iter().any(|mut with| {
                    with["path"] = json!(name);
                    read(&bench, &with).is_ok_and(|(found, _)| same(&found, wanted))
                });
                if !works {
                    self.without_remedy.push(format!("{what}: {} ({hint})", err.message));
                }
            }
        }
    }

    fn finish(self, kind: &str, least: usize) {
        eprintln!(
            "{kind}: tried {}, told {}, right {}, silent {}",
            self.tried,
            self.told,
            self.right,
            self.silent.len()
        );
        assert!(self.tried >= least, "{kind}");
        assert!(self.silent.is_empty(), "{kind}: {:#?}", self.silent);
        assert!(self.without_remedy.is_empty(), "{kind}: {:#?}", self.without_remedy);
    }
}

/// The other readers read numbers, dates and encodings as bars do.
#[test]
fn all_readers_are_alike() {
    let bench = Bench::new();
    let data = bars(3, 30, 50.0, 2);
    let closes: Vec<f64> = data.iter().map(|bar| bar.1[3]).collect();
    let (mut tried, mut right) = (0, 0);
    for (point, group) in [(",", "."), (",", " "), (".", ","), (".", "'")] {
        for format in ["%d.%m.%Y", "%m/%d/%Y", "%d-%b-%Y", "%Y/%m/%d"] {
            let date = |day: Date| chrono::NaiveDate::from(day).format(format).to_string();
            let mut csv = "date;symbol;value;cap\n".to_owned();
            let mut rates = "date;r\n".to_owned();
            let mut actions = "symbol;date;amount\n".to_owned();
            for (day, values) in &data {
                let value = number(values[3], 2, point, group);
                let cap = number(values[3] * 1e4, 1, point, group);
                writeln!(csv, "{};A;{value};{cap}", date(*day)).unwrap();
                writeln!(rates, "{};{value}%", date(*day)).unwrap();
                writeln!(actions, "A;{};${value}", date(*day)).unwrap();
            }
            let latin = encoding_rs::WINDOWS_1252
                .encode(&csv.replace("cap", "größe"))
                .0
                .into_owned();
            bench.file("f.csv", latin).file("r.csv", rates).file("a.csv", actions);
            let table = bench.run("ingest/table", json!({ "path": "f.csv" })).unwrap();
            assert_eq!(floats(&bench.rows(&table), "value"), closes, "{point} {group} {format}");
            assert_eq!(table.warnings.len(), 1, "{:?}", table.warnings);
            let features = bench
                .run(
                    "ingest/features",
                    json!({ "path": "f.csv", "calendar": "weekends", "lag": 0 }),
                )
                .unwrap();
            let found = floats(&bench.rows(&features), "größe");
            assert!(
                found.iter().zip(&closes).all(|(a, b)| (a / b / 1e4 - 1.0).abs() < 1e-9),
                "{point} {group} {format}"
            );
            let layout = json!({ "quote": "zero_continuous", "columns": { "date": "date", "1": "r" } });
            let read = bench
                .run(
                    "ingest/rates",
                    json!({ "path": "r.csv", "layout": layout, "calendar": "none", "on_bad_rows": "keep" }),
                )
                .unwrap();
            let found = floats(&bench.rows(&read), "rate");
            assert!(
                found.iter().zip(&closes).all(|(a, b)| (a - b / 100.0).abs() < 1e-12),
                "once, not twice"
            );
            let read = bench
                .run("ingest/corporate_actions", json!({ "path": "a.csv" }))
                .unwrap();
            assert_eq!(floats(&bench.rows(&read), "amount"), closes);
            (tried, right) = (tried + 4, right + 4);
        }
    }
    eprintln!("all readers: tried {tried}, told 0, right {right}, silent 0");
}
