//! Whose row it is: symbols from columns, directories and names of files, and what is told where a source
//! adds, hides or mixes them.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

#[path = "whose_rows/cases.rs"]
mod cases;
mod common;
#[path = "whose_rows/sound.rs"]
mod sound;

use common::{Bench, Draw, gzip};
use datasets::Date;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The closes of symbols by day.
type Panel = BTreeMap<String, BTreeMap<Date, f64>>;

/// Weekdays from a date on.
fn weekdays(from: &str, days: usize) -> Vec<Date> {
    let first: Date = from.parse().unwrap();
    let all = (0..).map(|day| first.plus(day));
    all.filter(|date| (date.0 + 3).rem_euclid(7) < 5).take(days).collect()
}

/// Closes of symbols on the same days, each on a path of its own, no two days of which are like two earlier
/// ones.
fn panel(symbols: &[&str], days: &[Date]) -> Panel {
    let path = |i: usize| {
        let close = |(day, date): (usize, &Date)| {
            (
                *date,
                20.0 + 30.0 * i as f64 + 0.001 * ((13 * day * day + 5 * i) % 389) as f64,
            )
        };
        days.iter().enumerate().map(close).collect()
    };
    symbols
        .iter()
        .enumerate()
        .map(|(i, symbol)| ((*symbol).to_owned(), path(i)))
        .collect()
}

fn csv(closes: &BTreeMap<Date, f64>) -> String {
    let mut text = "Date,Close\n".to_owned();
    for (date, close) in closes {
        writeln!(text, "{date},{close}").unwrap();
    }
    text
}

fn closes(bench: &Bench, artifact: &cache::Artifact, column: &str) -> Panel {
    let rows = bench.table(artifact);
    let symbols = stages_core::table::texts(&rows, "symbol").unwrap();
    let dates = stages_core::table::dates(&rows, "date").unwrap();
    let values = common::floats(&rows, column);
    let mut panel = Panel::new();
    for (row, date) in dates.into_iter().enumerate() {
        panel
            .entry(symbols.value(row).to_owned())
            .or_default()
            .insert(date, values[row]);
    }
    panel
}

/// The outcomes of the variants of a kind of damage.
#[derive(Default)]
struct Tried {
    tried: usize,
    told: usize,
    right: usize,
    silent: Vec<String>,
}

impl Tried {
    /// Counts a variant, whose result is right, or of which something is told.
    fn add(&mut self, variant: String, is_right: bool, told: &str) {
        self.tried += 1;
        match (is_right, told) {
            (true, _) => self.right += 1,
            (false, "") => self.silent.push(variant),
            (false, _) => self.told += 1,
        }
    }

    fn report(self, kind: &str) {
        let Self {
            tried,
            told,
            right,
            silent,
        } = self;
        eprintln!(
            "{kind}: tried {tried}, told {told}, right {right}, silent {}",
            silent.len()
        );
        assert!(tried >= 20, "{kind}: {tried}");
        assert!(silent.is_empty(), "{kind}: {silent:?}");
    }
}

/// Runs `ingest/bars`: the closes, and what was told.
fn bars(bench: &Bench, with: Value) -> (Panel, String) {
    let mut with = with;
    with["currency"] = json!("USD");
    match bench.run_with("ingest/bars", with, &[]) {
        Ok((outputs, warnings)) => {
            // Facts of the market are told, too, and are not of symbols.
            let of_symbols =
                |warning: &String| !warning.contains("facts of the bars") && !warning.contains("calendar");
            let told: Vec<String> = warnings.into_iter().filter(of_symbols).collect();
            (closes(bench, &outputs["bars"], "close"), told.join("\n"))
        }
        Err(err) => (
            Panel::new(),
            format!("{} ({})", err.message, err.hint.unwrap_or_default()),
        ),
    }
}

fn refused(bench: &Bench, kind: &str, with: Value) -> String {
    let err = bench.run(kind, with).err().unwrap();
    format!("{} ({})", err.message, err.hint.unwrap_or_default())
}

#[test]
fn directories_in_hives_style_are_columns() {
    let days = weekdays("2023-02-13", 90);
    let (old, new) = (panel(&["OLD"], &days[..45]), panel(&["NEW"], &days[45..]));
    let mut wanted = old.clone();
    wanted.extend(new.clone());
    for (key, ending) in [
        ("symbol", "csv"),
        ("ticker", "csv.gz"),
        ("code", "csv"),
        ("股票代码", "csv"),
    ] {
        let bench = Bench::new();
        for panel in [&old, &new] {
            for (symbol, closes) in panel {
                let text = csv(closes);
                let bytes = if ending == "csv" {
                    text.into_bytes()
                } else {
                    gzip(text.as_bytes())
                };
                bench.file(&format!("data/{key}={symbol}/part-0.{ending}"), bytes);
            }
        }
        let (found, told) = bars(&bench, json!({ "path": "data" }));
        assert_eq!((&found, told.as_str()), (&wanted, ""), "{key}");
    }
    // Years and months are none, and contradict nothing here; values may be encoded.
    let bench = Bench::new();
    let closes = &old["OLD"];
    for (date, close) in closes {
        let (year, month, _) = date.ymd();
        let name = format!("data/ticker=BRK%2FB/year={year}/month={month:02}/{date}.csv");
        bench.file(&name, format!("date,close\n{date},{close}\n"));
    }
    let (found, told) = bars(&bench, json!({ "path": "data" }));
    assert_eq!((&found["BRK/B"], told.as_str()), (closes, ""));
    // The date, where no column has it.
    let bench = Bench::new();
    for (date, close) in closes {
        bench.file(
            &format!("data/date={date}/part-0.csv"),
            format!("symbol,close\nOLD,{close}\n"),
        );
    }
    let (found, told) = bars(&bench, json!({ "path": "data" }));
    assert_eq!((&found, told.as_str()), (&old, ""));
    // What a column and a directory say must agree.
    for (name, row, wanted) in [
        (
            "symbol=AAA/p.csv",
            "BBB,2023-01-03,1",
            "`BBB`, and the folder says `symbol=AAA`",
        ),
        (
            "date=2023-01-04/p.csv",
            "BBB,2023-01-03,1",
            "`2023-01-03`, and the folder says `date=2023-01-04`",
        ),
        ("year=2022/p.csv", "BBB,2023-01-03,1", "the folder says `year=2022`"),
        (
            "year=2023/month=2/p.csv",
            "BBB,2023-01-03,1",
            "the folder says `year=2023/month=2`",
        ),
    ] {
        for kind in ["ingest/bars", "ingest/table"] {
            let bench = Bench::new();
            bench.file(&format!("data/{name}"), format!("symbol,date,close\n{row}\n"));
            let found = refused(&bench, kind, json!({ "path": "data" }));
            assert!(found.contains(wanted) && found.contains("row 2"), "{name}: {found}");
        }
    }
    // A partition of another key: the remedy works.
    let bench = Bench::new();
    for symbol in ["AAA", "BBB"] {
        bench.file(&format!("data/company={symbol}/part-0.csv"), csv(closes));
    }
    let found = refused(&bench, "ingest/bars", json!({ "path": "data" }));
    assert!(found.contains("paths: [\"company={symbol}/*\"]"), "{found}");
    let layout = json!({ "like": "plain", "paths": ["company={symbol}/*"] });
    let (found, _) = bars(&bench, json!({ "path": "data", "layout": layout }));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["AAA", "BBB"]);
    let table = bench
        .run("ingest/table", json!({ "path": "data", "symbol": "company" }))
        .unwrap();
    assert_eq!(table.artifact.meta["symbols"], json!(["AAA", "BBB"]));
}

/// Directories and names of files: each company is one symbol, and two are never one.
#[test]
fn property_places_of_files() {
    let symbols = [
        "AAPL",
        "BRK.B",
        "600519",
        "000001",
        "GC=F",
        "^GSPC",
        "0700.HK",
        "贵州茅台",
    ];
    let forms: [(&str, &str); 16] = [
        ("{s}/prices.csv", "whole"),
        ("{s}/data.csv", "whole"),
        ("{s}/part-0.csv", "whole"),
        ("{s}/part-{i}.csv", "years"),
        ("{s}/{y}.csv", "years"),
        ("{s}/{s}_{y}.csv", "years"),
        ("{s}_{y}.csv", "years"),
        ("{s}-{y}-01-01.csv", "years"),
        ("{y}/{s}.csv", "years"),
        ("year={y}/{s}.csv", "years"),
        ("symbol={s}/year={y}/part-0.csv", "years"),
        ("code={s}/0.csv", "whole"),
        ("x/{s}.csv", "whole"),
        ("part-{n}.csv", "whole"),
        ("{n}/data.csv", "whole"),
        ("{y}.csv", "years"),
    ];
    let mut tried = Tried::default();
    let mut draw = Draw(7);
    for (form, split) in forms {
        for count in [1, 2, 3] {
            let first = draw.below(symbols.len());
            let chosen: Vec<&str> = (0..count).map(|i| symbols[(first + 3 * i) % symbols.len()]).collect();
            let days = weekdays("2021-11-01", 60 + draw.below(60));
            // Companies that follow one another, or trade on the same days.
            let in_sequence = draw.below(2) == 0;
            let mut wanted = Panel::new();
            let bench = Bench::new();
            for (n, symbol) in chosen.iter().enumerate() {
                let part = days.len() / count;
                let own = if in_sequence {
                    &days[n * part..(n + 1) * part]
                } else {
                    &days[..]
                };
                let closes = panel(&[*symbol], own)[*symbol]
                    .iter()
                    .map(|(day, c)| (*day, c + n as f64))
                    .collect();
                let closes: BTreeMap<Date, f64> = closes;
                let mut parts: BTreeMap<i32, BTreeMap<Date, f64>> = BTreeMap::new();
                for (date, close) in &closes {
                    let year = if split == "years" { date.ymd().0 } else { 0 };
                    parts.entry(year).or_default().insert(*date, *close);
                }
                for (i, (year, part)) in parts.iter().enumerate() {
                    let name = form.replace("{s}", symbol).replace("{y}", &year.to_string());
                    let name = name.replace("{i}", &i.to_string()).replace("{n}", &n.to_string());
                    let path = bench.base().join("data").join(&name);
                    // Two companies in one file are another kind of damage.
                    let text = match std::fs::read_to_string(&path) {
                        Ok(before) => before + csv(part).split_once('\n').unwrap().1,
                        Err(_) => csv(part),
                    };
                    bench.file(&format!("data/{name}"), text);
                }
                wanted.insert((*symbol).to_owned(), closes);
            }
            if form == "{y}.csv" && count > 1 {
                continue;
            }
            let (found, told) = bars(&bench, json!({ "path": "data", "calendar": "none" }));
            // Without a name of it anywhere, a company alone has any one symbol.
            let values = |panel: &Panel| panel.values().cloned().collect::<Vec<_>>();
            let is_nameless = count == 1 && !form.contains("{s}");
            let is_right = found == wanted || is_nameless && values(&found) == values(&wanted);
            tried.add(format!("{form} {chosen:?}: {:?}", found.keys()), is_right, &told);
            if form.contains("{s}") {
                assert!(is_right, "{form} {chosen:?}: {:?} {told}", found.keys());
            }
        }
    }
    tried.report("places of files");
}

/// A column of symbols under any usual name, in bars, tables and factors.
#[test]
fn property_names_of_symbol_columns() {
    let names = [
        "symbol",
        "Ticker",
        "tic",
        "code",
        "ts_code",
        "Stock Code",
        "stock_code",
        "asset",
        "permno",
        "PERMNO",
        "instrument",
        "sid",
        "secid",
        "ISIN",
        "cusip",
        "ric",
        "gvkey",
        "股票代码",
        "代码",
        "证券代码",
        "tickerSymbol",
        "who",
        "company",
        "Name",
        "Index",
        "id_of_share",
    ];
    let mut tried = Tried::default();
    let mut draw = Draw(3);
    for name in names {
        for in_sequence in [true, false] {
            let symbols: &[&str] = match draw.below(3) {
                0 => &["000001", "600519"],
                1 => &["AAA", "BBB", "CCC"],
                _ => &["TRUE", "NA", "1E5", "0700"],
            };
            let days = weekdays("2023-02-13", 24 * symbols.len());
            let mut wanted = Panel::new();
            for (i, symbol) in symbols.iter().enumerate() {
                let own = if in_sequence {
                    &days[24 * i..24 * (i + 1)]
                } else {
                    &days[..24]
                };
                let closes = panel(symbols, own)[*symbol].clone();
                wanted.insert((*symbol).to_owned(), closes);
            }
            let mut rows: Vec<(Date, &str, f64)> = wanted
                .iter()
                .flat_map(|(symbol, closes)| {
                    closes.iter().map(|(date, close)| (*date, symbol.as_str(), *close))
                })
                .collect();
            if !in_sequence && draw.below(2) == 0 {
                rows.sort_by_key(|(date, ..)| *date);
            }
            let mut text = format!(",date,{name},close\n");
            for (i, (date, symbol, close)) in rows.iter().enumerate() {
                writeln!(text, "{i},{date},{symbol},{close}").unwrap();
            }
            let bench = Bench::new();
            bench.file("two.csv", &text);
            let (found, told) = bars(&bench, json!({ "path": "two.csv", "calendar": "none" }));
            tried.add(format!("bars {name} {symbols:?}"), found == wanted, &told);
            if told.contains("is not read") {
                // The remedy works.
                let layout = json!({ "like": "plain", "columns": { "symbol": name } });
                assert!(
                    told.contains(&format!("like: plain, columns: {{ symbol: \"{name}\" }}")),
                    "{told}"
                );
                let with = json!({ "path": "two.csv", "calendar": "none", "layout": layout });
                assert_eq!(bars(&bench, with), (wanted.clone(), String::new()));
                let with = json!({ "path": "two.csv", "columns": ["close"], "symbol": name });
                let table = bench.run("ingest/table", with).unwrap();
                assert_eq!(closes(&bench, &table.artifact, "close"), wanted);
            }
            let table =
                bench.run_with("ingest/table", json!({ "path": "two.csv", "columns": ["close"] }), &[]);
            let (found, told) = match table {
                Ok((outputs, warnings)) => (closes(&bench, &outputs["table"], "close"), warnings.join("\n")),
                Err(err) => (
                    Panel::new(),
                    format!("{} ({})", err.message, err.hint.unwrap_or_default()),
                ),
            };
            tried.add(format!("table {name} {symbols:?}"), found == wanted, &told);
            // Factors of the first symbol alone, for bars of all.
            let mut factors = format!("date,{name},value\n");
            for (date, symbol, close) in rows.iter().filter(|(_, symbol, _)| *symbol == symbols[0]) {
                writeln!(factors, "{date},{symbol},{close}").unwrap();
            }
            bench.file("factors.csv", factors);
            let market = panel(symbols, &days);
            let mut text = "symbol,date,close\n".to_owned();
            for (symbol, closes) in &market {
                for (date, close) in closes {
                    writeln!(text, "{symbol},{date},{close}").unwrap();
                }
            }
            bench.file("bars.csv", text);
            let market = bench
                .run(
                    "ingest/bars",
                    json!({ "path": "bars.csv", "calendar": "none", "currency": "USD" }),
                )
                .unwrap();
            let with = json!({ "path": "factors.csv", "columns": ["value"] });
            let (is_right, told) =
                match bench.run_with("ingest/features", with, &[("bars", &market.artifact)]) {
                    Ok((outputs, warnings)) => {
                        let found = closes(&bench, &outputs["features"], "value");
                        let of_others = found.iter().filter(|(symbol, _)| symbol.as_str() != symbols[0]);
                        let none = of_others
                            .flat_map(|(_, values)| values.values())
                            .all(|value| value.is_nan());
                        let some = found[symbols[0]].values().any(|value| !value.is_nan());
                        (none && some, warnings.join("\n"))
                    }
                    Err(err) => (false, err.message),
                };
            assert!(is_right, "{name} {symbols:?}: {told}");
            tried.add(format!("features {name} {symbols:?}"), is_right, &told);
        }
    }
    tried.report("names of columns of symbols");
}

/// Second downloads, copies under other names, and files without rows.
#[test]
fn property_copies_and_empty_files() {
    let marks = [
        "{} (1)",
        "{} (2)",
        "{}(1)",
        "{} - Copy",
        "{} - Copy (2)",
        "{} copy",
        "Copy of {}",
        "{}_copy",
        "OTHER",
        "other_name",
    ];
    let mut tried = Tried::default();
    let symbols = ["AAPL", "MSFT", "XOM"];
    let days = weekdays("2023-02-13", 45);
    let all = panel(&symbols, &days);
    let write = |bench: &Bench, name: &str, text: &str| {
        let is_packed = name.ends_with(".gz");
        let bytes = if is_packed {
            gzip(text.as_bytes())
        } else {
            text.as_bytes().to_vec()
        };
        bench.file(&format!("data/{name}"), bytes);
    };
    for mark in marks {
        for (i, ending) in ["csv", "csv.gz", "txt"].into_iter().enumerate() {
            let bench = Bench::new();
            for (symbol, closes) in &all {
                write(&bench, &format!("{symbol}.{ending}"), &csv(closes));
            }
            let copy = format!("{}.{ending}", mark.replace("{}", symbols[i]));
            write(&bench, &copy, &csv(&all[symbols[i]]));
            let (found, told) = bars(&bench, json!({ "path": "data", "calendar": "none" }));
            assert!(
                told.contains(&format!("`{copy}`")) && told.contains(symbols[i]),
                "{copy}: {told}"
            );
            assert!(
                found == all || !mark.contains("{}"),
                "{copy}: {:?} {told}",
                found.keys()
            );
            tried.add(copy, false, &told);
        }
    }
    tried.report("copies");
    let mut tried = Tried::default();
    let header = "Date,Open,High,Low,Close,Adj Close,Volume";
    for (i, empty) in [
        "",
        "{}",
        "{}\n",
        "{}\r\n",
        "\u{feff}{}\n",
        "Date,Close\n",
        "date,close,volume\n",
    ]
    .into_iter()
    .enumerate()
    {
        for (k, name) in ["AAA.csv", "XOM.csv", "x/XOM.csv", "ZZZ.csv.gz"]
            .into_iter()
            .enumerate()
        {
            let bench = Bench::new();
            for symbol in &symbols[..1 + (i + k) % 2] {
                write(&bench, &format!("{symbol}.csv"), &csv(&all[*symbol]));
            }
            write(&bench, name, &empty.replace("{}", header));
            if empty.is_empty() && !matches!(name, "AAA.csv" | "ZZZ.csv.gz") {
                for kind in ["ingest/bars", "ingest/table"] {
                    bench.check(kind, json!({ "path": "data" })).unwrap();
                }
            }
            let (_, told) = bars(&bench, json!({ "path": "data", "calendar": "none" }));
            assert!(told.contains(name), "{empty:?} {name}: {told}");
            tried.add(format!("{empty:?} {name}"), false, &told);
            let table = bench.run_with("ingest/table", json!({ "path": "data" }), &[]);
            let told = match table {
                Ok((_, warnings)) => warnings.join("\n"),
                Err(err) => err.message,
            };
            tried.add(format!("table {empty:?} {name}"), false, &told);
        }
    }
    tried.report("empty files");
}

/// Symbols that one source has and the other lacks, or that are written otherwise.
#[test]
fn property_symbols_that_a_source_lacks() {
    let spellings = [
        ("BRK.B", "BRK-B"),
        ("BRK.B", "BRK/B"),
        ("BRK-B", "BRK B"),
        ("000001", "000001.SZ"),
        ("000001", "1"),
        ("600519.SH", "SH600519"),
        ("^GSPC", "GSPC"),
        ("AAPL", "aapl"),
        ("AAPL", "AAPL.US"),
        ("0700.HK", "700"),
        ("AAPL", "TSLA"),
    ];
    let days = weekdays("2023-02-13", 20);
    let mut tried = Tried::default();
    for (of_bars, of_factors) in spellings {
        for others in [&[][..], &["MSFT"], &["MSFT", "XOM"]] {
            let bench = Bench::new();
            let long = |symbols: &[&str], value: &str| {
                let mut text = format!("date,symbol,{value}\n");
                for (symbol, closes) in panel(symbols, &days) {
                    for (date, close) in closes {
                        writeln!(text, "{date},{symbol},{close}").unwrap();
                    }
                }
                text
            };
            bench.file("bars.csv", long(&[&[of_bars], others].concat(), "close"));
            bench.file("f.csv", long(&[&[of_factors], others].concat(), "value"));
            let market = bench
                .run(
                    "ingest/bars",
                    json!({ "path": "bars.csv", "calendar": "none", "currency": "USD" }),
                )
                .unwrap();
            let run = bench.run_with(
                "ingest/features",
                json!({ "path": "f.csv" }),
                &[("bars", &market.artifact)],
            );
            let told = match run {
                Ok((_, warnings)) => warnings.join("\n"),
                Err(err) => format!("{} ({})", err.message, err.hint.unwrap_or_default()),
            };
            assert!(
                told.contains(of_bars) && told.contains(of_factors),
                "{of_bars} {of_factors}: {told}"
            );
            if others.is_empty() && of_factors != "TSLA" {
                assert!(
                    told.contains(&format!("`{of_factors}` of the files may be `{of_bars}`")),
                    "{told}"
                );
            }
            tried.add(format!("{of_bars} {of_factors} {others:?}"), false, &told);
        }
    }
    tried.report("symbols that a source lacks");
}

/// Bars of several times a day are refused at any size; daily bars with a time are not.
#[test]
fn property_times_of_day() {
    let mut tried = Tried::default();
    let mut draw = Draw(11);
    let stamp = |form: &str, date: Date, minute: usize| {
        let (hour, minute) = (minute / 60, minute % 60);
        match form {
            "iso" => format!("{date} {hour:02}:{minute:02}:00"),
            "t" => format!("{date}T{hour:02}:{minute:02}"),
            "offset" => format!("{date} {hour:02}:{minute:02}:00-05:00"),
            "z" => format!("{date}T{hour:02}:{minute:02}:00Z"),
            "us" => {
                let (year, month, day) = date.ymd();
                format!("{month:02}/{day:02}/{year} {hour:02}:{minute:02}")
            }
            "digits" => format!("{} {hour:02}{minute:02}", date.to_string().replace('-', "")),
            "seconds" => format!("{}T{hour:02}{minute:02}00", date.to_string().replace('-', "")),
            "dot" => format!("{date} {hour:02}.{minute:02}"),
            "digits beside" => format!("{date},{hour:02}{minute:02}"),
            "seconds beside" => format!("{date},{hour:02}{minute:02}00"),
            "words beside" => format!("{date},{hour}h{minute}"),
            _ => format!("{date},{hour:02}:{minute:02}"),
        }
    };
    let forms = [
        "iso",
        "t",
        "offset",
        "z",
        "us",
        "beside",
        "digits",
        "seconds",
        "dot",
        "digits beside",
        "seconds beside",
        "words beside",
    ];
    for form in forms {
        for step in [5, 30, 60, 240] {
            for days in [1, 3, 20] {
                let symbols: &[&str] = [&["AAA"][..], &["AAA", "BBB"]][draw.below(2)];
                let column = if form.ends_with("beside") { "date,time" } else { "date" };
                let mut rows: Vec<String> = Vec::new();
                for date in weekdays("2023-02-13", days) {
                    for minute in (570..960).step_by(step) {
                        for symbol in symbols {
                            rows.push(format!("{},{symbol},{}", stamp(form, date, minute), 100 + minute));
                        }
                    }
                }
                if draw.below(2) == 0 {
                    rows.reverse();
                }
                let bench = Bench::new();
                let one = symbols.len() == 1 && draw.below(2) == 0;
                let name = if one { "AAA.csv" } else { "rows.csv" };
                let rows: Vec<String> = match one {
                    true => rows.iter().map(|row| row.replace(",AAA,", ",")).collect(),
                    false => rows,
                };
                let head = if one {
                    format!("{column},close")
                } else {
                    format!("{column},symbol,close")
                };
                bench.file(name, format!("{head}\n{}\n", rows.join("\n")));
                let (_, told) = bars(&bench, json!({ "path": name, "calendar": "none" }));
                assert!(told.contains("ingest/table"), "{form} {step} {days}: {told}");
                tried.add(format!("{form} {step} {days}"), false, &told);
            }
        }
    }
    tried.report("bars of times of day");
    for form in forms {
        for minute in [0, 570, 960] {
            let days = weekdays("2023-02-13", 30);
            let rows: Vec<String> = days
                .iter()
                .map(|date| format!("{},10{}\n", stamp(form, *date, minute), date.0 % 10))
                .collect();
            let column = if form.ends_with("beside") { "date,time" } else { "date" };
            let bench = Bench::new();
            bench.file("AAA.csv", format!("{column},close\n{}", rows.concat()));
            let (found, told) = bars(&bench, json!({ "path": "AAA.csv", "calendar": "none" }));
            let found_format = "found in the files and not stated: dates in `date` are read as `%m/%d/%Y`";
            let told = told.trim_start_matches(if form == "us" { found_format } else { "" });
            assert_eq!((found["AAA"].len(), told), (30, ""), "{form} {minute}");
        }
    }
}
