//! The known layouts on samples of vendors' files, and on damaged ones. `samples/generate.py` writes the
//! samples, and what a reader should find.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;

use common::{Bench, Done, floats, gzip, zip_of};
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::{Path, PathBuf};

const CHAIN: &str = "ingest/option_chain";
const BARS: &str = "ingest/bars";
const RATES: &str = "ingest/rates";

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

fn sum(values: Vec<f64>) -> f64 {
    values.into_iter().filter(|value| !value.is_nan()).sum()
}

fn lines(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(samples().join(name)).unwrap();
    text.lines()
        .skip(1)
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect()
}

fn run_sample(bench: &Bench, kind: &str, sample: &str) -> Done {
    let with = json!({ "path": samples().join(sample), "on_bad_rows": "keep" });
    if let Err(problem) = bench.check(kind, with.clone()) {
        panic!("{sample}: {}: {} ({:?})", problem.field, problem.message, problem.hint);
    }
    bench
        .run(kind, with)
        .unwrap_or_else(|err| panic!("{sample}: {err} ({:?})", err.hint))
}

/// Terms that the rows of a file state are those of the chain.
#[test]
fn terms_of_contracts_are_read_from_files() {
    let bench = Bench::new();
    for (sample, class, term, value) in [
        ("nse_udiff_bhavcopy", "NIFTY", "multiplier", json!(25.0)),
        ("polygon_snapshot", "SPY", "multiplier", json!(100.0)),
        ("polygon_snapshot", "SPY", "exercise", json!("american")),
        ("interactive_brokers", "SPY", "multiplier", json!(100.0)),
        ("yfinance_option_chain", "SPY", "currency", json!("USD")),
    ] {
        let done = run_sample(&bench, CHAIN, sample);
        let facts = &done.artifact.meta["contracts"][class];
        assert_eq!(
            (&facts[term], &facts["origin"][term]),
            (&value, &json!("file")),
            "{sample}: {term}"
        );
    }
}

#[test]
fn chains_are_found_by_themselves() {
    let bench = Bench::new();
    for line in lines("expected_chains.csv") {
        let (sample, layout) = (line[0].as_str(), line[1].as_str());
        let done = run_sample(&bench, CHAIN, sample);
        let meta = &done.artifact.meta;
        assert_eq!(meta["layout"], json!([layout]), "{sample}");
        let why = meta["recognised"][0]["why"].as_str().unwrap();
        assert!(why.contains("header"), "{sample}: {why}");
        let rows = bench.rows(&done);
        let wanted = |column: usize| line[column].parse::<f64>().unwrap();
        let calls = stages_core::table::bools(&rows, "call").unwrap();
        assert_eq!(rows.num_rows() as f64, wanted(2), "{sample}: rows");
        assert_eq!(calls.true_count() as f64, wanted(3), "{sample}: calls");
        let columns = [
            "strike",
            "bid",
            "ask",
            "last",
            "volume",
            "open_interest",
            "implied_volatility",
            "underlying",
        ];
        for (i, name) in columns.into_iter().enumerate() {
            let (found, wanted) = (sum(floats(&rows, name)), wanted(i + 4));
            // Where a file has no underlying, it is found by parity.
            if name != "underlying" || wanted != 0.0 {
                assert!(
                    (found - wanted).abs() < 1e-3,
                    "{sample}: sum of {name} is {found}, not {wanted}"
                );
            }
        }
    }
}

#[test]
fn bars_are_found_by_themselves() {
    let bench = Bench::new();
    for line in lines("expected_bars.csv") {
        let (sample, layout) = (line[0].as_str(), line[1].as_str());
        let done = run_sample(&bench, BARS, sample);
        assert_eq!(done.artifact.meta["layout"], json!([layout]), "{sample}");
        let rows = bench.rows(&done);
        assert_eq!(rows.num_rows(), line[2].parse::<usize>().unwrap(), "{sample}");
        for (i, name) in ["close", "high", "adjusted_close"].into_iter().enumerate() {
            let (found, wanted) = (sum(floats(&rows, name)), line[i + 3].parse::<f64>().unwrap());
            assert!(
                (found - wanted).abs() < 1e-3,
                "{sample}: sum of {name} is {found}, not {wanted}"
            );
        }
        let first = stages_core::table::dates(&rows, "date").unwrap()[0];
        assert_eq!(first.to_string(), "2024-01-16", "{sample}");
        let symbols = done.artifact.meta["symbols"].as_array().unwrap();
        assert!(symbols.contains(&json!("SPY")), "{sample}: {symbols:?}");
    }
}

#[test]
fn rates_are_found_by_themselves() {
    let bench = Bench::new();
    for (sample, layout, rows) in [
        ("fred_series", "fred_series", 3 * 6),
        ("fred_one_series", "fred_series", 3),
        ("us_treasury_csv", "us_treasury_csv", 2 * 13),
        ("us_treasury_xml", "us_treasury_xml", 2 * 13),
    ] {
        let done = run_sample(&bench, RATES, sample);
        assert_eq!(done.artifact.meta["layout"], json!([layout]));
        assert_eq!(bench.rows(&done).num_rows(), rows, "{sample}");
    }
}

/// A sample whose first file is damaged: names and values of its header that must be there.
struct Sample {
    kind: &'static str,
    name: &'static str,
    /// A column that the layout needs.
    column: &'static str,
    /// A column of dates.
    date: &'static str,
    /// A column of numbers.
    number: &'static str,
}

const fn sample(
    name: &'static str,
    column: &'static str,
    date: &'static str,
    number: &'static str,
) -> Sample {
    of_kind(CHAIN, [name, column, date, number])
}

const fn of_kind(kind: &'static str, [name, column, date, number]: [&'static str; 4]) -> Sample {
    Sample {
        kind,
        name,
        column,
        date,
        number,
    }
}

const TABLES: &[Sample] = &[
    sample("optionsdx", "[C_BID]", "[EXPIRE_DATE]", "[P_ASK]"),
    sample("optionsdx_intraday", "[UNDERLYING_LAST]", "[QUOTE_READTIME]", "[C_BID]"),
    sample("cboe_datashop_intervals", "quote_datetime", "quote_datetime", "bid"),
    sample("cboe_datashop_eod", "bid_eod", "expiration", "ask_eod"),
    sample(
        "cboe_datashop_eod_calcs",
        "ask_eod",
        "quote_date",
        "implied_volatility_1545",
    ),
    sample("cboe_delayed_csv", "Puts", "Expiration Date", "Strike"),
    sample("orats_strikes", "callBidPrice", "tradeDate", "putAskPrice"),
    sample("historicaloptiondata", "bid", "quotedate", "strike"),
    sample("discountoptiondata", "UnderlyingPrice", "Expiration", "IV"),
    sample("yfinance_option_chain", "contractSymbol", "contractSymbol", "lastPrice"),
    sample("polygon_day_aggregates", "window_start", "window_start", "close"),
    sample("databento_ohlcv", "instrument_id", "ts_event", "close"),
    sample(
        "deribit_book_summary",
        "instrument_name",
        "creation_timestamp",
        "bid_price",
    ),
    sample("nse_udiff_bhavcopy", "StrkPric", "FininstrmActlXpryDt", "ClsPric"),
    sample("interactive_brokers", "right", "lastTradeDateOrContractMonth", "ask"),
    sample("lean_option_universe", "right", "#expiry", "implied_volatility"),
    sample("last_and_volatility", "strike", "expiration", "price"),
    of_kind(BARS, ["polygon_bars", "close", "window_start", "high"]),
    of_kind(BARS, ["interactive_brokers_bars", "close", "date", "high"]),
    of_kind(BARS, ["yahoo_panel", "close", "date", "high"]),
    of_kind(BARS, ["finrl_compustat", "prccd", "datadate", "prchd"]),
    of_kind(RATES, ["fred_series", "observation_date", "observation_date", "DGS10"]),
    of_kind(RATES, ["fred_one_series", "DATE", "DATE", "DGS10"]),
    of_kind(RATES, ["us_treasury_csv", "Date", "Date", "\"10 Yr\""]),
    of_kind(RATES, ["us_treasury_xml", "date", "date", "BC_10YEAR"]),
];

/// A file's name and bytes.
type File = (String, Vec<u8>);

/// The last file of a sample by name, so that a second table stays whole.
fn file_of(name: &str) -> (String, Vec<u8>, Vec<File>) {
    fn walk(dir: &Path, prefix: &str, found: &mut Vec<File>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                walk(&entry.path(), &format!("{name}/"), found);
            } else {
                found.push((name, std::fs::read(entry.path()).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    walk(&samples().join(name), "", &mut found);
    found.sort();
    let (name, bytes) = found.pop().unwrap();
    (name, bytes, found)
}

fn error_of(bench: &Bench, kind: &str, path: &str) -> String {
    let with = json!({ "path": path });
    if let Err(problem) = bench.check(kind, with.clone()) {
        return format!("{} | {}", problem.message, problem.hint.unwrap_or_default());
    }
    match bench.run(kind, with) {
        Err(err) => format!("{} | {}", err.message, err.hint.unwrap_or_default()),
        Ok(done) => panic!("{path} is read: {}", done.artifact.meta),
    }
}

/// Puts a damaged file in the place of a sample's, and gives the error.
fn damaged(kind: &str, name: &str, bytes: &[u8], packed: bool) -> String {
    let (file, _, others) = file_of(name);
    let bench = Bench::new();
    for (file, bytes) in &others {
        bench.file(&format!("{name}/{file}"), bytes);
    }
    let file = if packed { format!("{file}.gz") } else { file };
    bench.file(&format!("{name}/{file}"), bytes);
    let message = error_of(&bench, kind, name);
    let file = file.rsplit('/').next().unwrap();
    assert!(message.contains(file), "{name}: {message} does not name {file}");
    message
}

/// The text with the header's field or the first value of a column replaced.
fn with_cell(text: &str, column: &str, row: usize, new: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.split(',').any(|field| field.trim() == column))
        .unwrap_or_else(|| panic!("no column {column}"));
    let place = lines[at].split(',').position(|field| field.trim() == column).unwrap();
    let mut out = String::new();
    for (i, line) in lines.iter().enumerate() {
        if i == at + row {
            let mut fields: Vec<&str> = line.split(',').collect();
            fields[place] = new;
            out.push_str(&fields.join(","));
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

#[test]
fn damaged_tables_are_refused() {
    for Sample {
        kind,
        name,
        column,
        date,
        number,
    } in TABLES
    {
        let (_, bytes, _) = file_of(name);
        let text = String::from_utf8(bytes).unwrap();
        let plain = |name: &str| name.trim_matches(['[', ']', '#']).to_lowercase();
        // A row that no condition leaves out.
        let row = if matches!(
            *name,
            "nse_udiff_bhavcopy" | "interactive_brokers" | "lean_option_universe"
        ) {
            3
        } else {
            1
        };

        let message = damaged(kind, name, with_cell(&text, column, 0, "what").as_bytes(), false);
        // Without its column of dates a table of rates is one of any names.
        let wanted = match *kind {
            RATES => "no known layout has this header: what".to_owned(),
            _ => plain(column),
        };
        assert!(message.to_lowercase().contains(&wanted), "{name}, no column: {message}");

        let message = damaged(kind, name, with_cell(&text, date, row, "31.31.24").as_bytes(), false);
        assert!(
            message.contains("`31.31.24` is not a") && message.contains("row ") && message.contains("column"),
            "{name}, bad date: {message}"
        );

        let message = damaged(kind, name, with_cell(&text, number, row, "12x").as_bytes(), false);
        assert!(
            message.contains("`12x` is not a number") && message.contains("row "),
            "{name}, bad number: {message}"
        );

        let whole = gzip(text.as_bytes());
        let message = damaged(kind, name, &whole[..whole.len() / 2], true);
        assert!(
            message.contains("cannot be unpacked") && message.contains("damaged"),
            "{name}, truncated: {message}"
        );

        let message = damaged(kind, name, &of_no_encoding(&text), false);
        assert!(message.contains("UTF-8"), "{name}, encoding: {message}");
    }
}

#[test]
fn damaged_documents_are_refused() {
    // A key of every row, the first date and the first number, each with what it becomes.
    for (name, key, date, number) in [
        (
            "cboe_delayed_json",
            "option",
            ("2024-01-19 20:15:02", "2024-31-19"),
            "bid",
        ),
        ("polygon_snapshot", "strike_price", ("2024-02-16", "2024-02-31"), "bid"),
        (
            "deribit_book_summary_json",
            "instrument_name",
            ("29MAR24-60000", "31FEB24-60000"),
            "bid_price",
        ),
        (
            "alpaca_snapshots",
            "bp",
            ("2024-01-19T20:59:59", "2024-31-19T20:59:59"),
            "ap",
        ),
    ] {
        let (_, bytes, _) = file_of(name);
        let text = String::from_utf8(bytes.clone()).unwrap();
        let message = damaged(
            CHAIN,
            name,
            text.replace(&format!("\"{key}\":"), "\"what\":").as_bytes(),
            false,
        );
        assert!(message.contains(key), "{name}, no column: {message}");

        let message = damaged(CHAIN, name, text.replacen(date.0, date.1, 1).as_bytes(), false);
        assert!(
            message.contains("is not a") && message.contains("row "),
            "{name}, bad date: {message}"
        );

        let at = text.find(&format!("\"{number}\": ")).unwrap() + number.len() + 4;
        let broken = format!(
            "{}\"12x\"{}",
            &text[..at],
            &text[at..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
        );
        let message = damaged(CHAIN, name, broken.as_bytes(), false);
        assert!(
            message.contains("`12x` is not a number") && message.contains("row "),
            "{name}, bad number: {message}"
        );

        let message = damaged(CHAIN, name, &bytes[..bytes.len() / 2], false);
        assert!(message.contains("incomplete"), "{name}, truncated: {message}");

        let broken = [&bytes[..40], b"\xff\xfe", &bytes[40..]].concat();
        let message = damaged(CHAIN, name, &broken, false);
        assert!(message.contains("cannot read"), "{name}, encoding: {message}");
    }
}

/// A text whose first signs are those of no encoding.
fn of_no_encoding(text: &str) -> Vec<u8> {
    [&[0x01, 0xff, 0x81], text.as_bytes()].concat()
}

/// Bars without a header: the archive names the symbol, so that another name of the entry is no damage, and
/// another encoding is.
#[test]
fn damaged_bars_of_lean_are_refused() {
    let name = "lean_equity_daily";
    let (_, bytes, _) = file_of(name);
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes.clone())).unwrap();
    let mut text = String::new();
    archive.by_index(0).unwrap().read_to_string(&mut text).unwrap();
    let with = |bytes: &[u8]| damaged(BARS, name, &zip_of(&[("spy.csv", bytes)]), false);

    let fewer: Vec<&str> = text.lines().map(|line| line.rsplit_once(',').unwrap().0).collect();
    let message = with(fewer.join("\n").as_bytes());
    assert!(message.contains("no known layout"), "a column less: {message}");
    let message = with(text.replacen("20240117 00:00", "20243117 00:00", 1).as_bytes());
    assert!(
        message.contains("row 2, column `time`: `20243117 00:00` is not a date"),
        "bad date: {message}"
    );
    let mut fields: Vec<&str> = text.split(',').collect();
    fields[4] = "12x";
    let message = with(fields.join(",").as_bytes());
    assert!(message.contains("`12x` is not a number"), "bad number: {message}");
    let message = damaged(BARS, name, &bytes[..bytes.len() / 2], false);
    assert!(message.contains("cannot be unpacked"), "truncated: {message}");
    let message = with(&of_no_encoding(&text));
    assert!(message.contains("UTF-8"), "encoding: {message}");
}

#[test]
fn damaged_archives_are_refused() {
    for name in ["lean_option_daily_quote", "lean_option_daily_trade"] {
        let (_, bytes, _) = file_of(name);
        let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes.clone())).unwrap();
        let mut entry = archive.by_index(0).unwrap();
        let entry_name = entry.name().unwrap().into_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        let with =
            |text: &str, entry: &str| damaged(CHAIN, name, &zip_of(&[(entry, text.as_bytes())]), false);

        let fewer: Vec<String> = text
            .lines()
            .map(|line| line.rsplit_once(',').unwrap().0.to_owned())
            .collect();
        let message = with(&fewer.join("\n"), &entry_name);
        assert!(message.contains(name), "a column less: {message}");
        let message = with(&text.replacen("20240119 00:00", "20243119 00:00", 1), &entry_name);
        assert!(
            message.contains("row 2, column `time`: `20243119 00:00` is not a date"),
            "bad date: {message}"
        );
        // The close is the fifth field of both.
        let mut fields: Vec<&str> = text.split(',').collect();
        fields[4] = "12x";
        let message = with(&fields.join(","), &entry_name);
        assert!(message.contains("is not a number"), "bad number: {message}");
        let message = damaged(CHAIN, name, &bytes[..bytes.len() / 2], false);
        assert!(message.contains("cannot be unpacked"), "truncated: {message}");
        let message = with(&text, &entry_name.replace("_call_", "_kall_"));
        assert!(message.contains("no known layout"), "another name: {message}");
    }
}

#[test]
fn weak_evidence_is_refused_with_what_would_decide() {
    let bench = Bench::new();
    bench.file(
        "spy.csv",
        "quote_date,type,expiration,strike,close\n2024-01-19,C,2024-02-16,480,5.1\n",
    );
    let problem = bench.check(CHAIN, json!({ "path": "spy.csv" })).unwrap_err();
    assert!(
        problem.message.contains("no layout fits for certain"),
        "{}",
        problem.message
    );
    let hint = problem.hint.unwrap();
    for part in [
        "`sse_50etf_close`",
        "`last_and_volatility`",
        "layout: sse_50etf_close",
        "the file's name is not like",
    ] {
        assert!(hint.contains(part), "{part}: {hint}");
    }
    let done = bench
        .run(CHAIN, json!({ "path": "spy.csv", "layout": "sse_50etf_close" }))
        .unwrap();
    assert_eq!(done.artifact.meta["recognised"][0]["why"], "named in the configuration");
}

#[test]
fn a_layout_file_of_ones_own() {
    let bench = Bench::new();
    bench
        .file(
            "data/spy.csv",
            "Trade Day;Instrument;Last Day;K;CP;Bid Px;Ask \
            Px\n19.01.2024;OPT;16.02.2024;480;call;51000;52000\n19.01.2024;FUT;;;;1;2\n",
        )
        .file(
            "my_vendor.yaml",
            "name: my_vendor\ntable: chain\ncolumns:\n  date: Trade Day\n  expiry: Last Day\n  strike: K\n  \
             call: CP\n  \
             bid: { column: Bid Px, per: 10000 }\n  ask: { column: Ask Px, per: 10000 }\n\
             date_format: \"%d.%m.%Y\"\nwhere: Instrument = OPT\npaths: [\"{symbol}.csv\"]\ncontract: \
             { currency: EUR, multiplier: 10 }\n",
        );
    let with = json!({ "path": "data", "layout": "./my_vendor.yaml" });
    bench.check(CHAIN, with.clone()).unwrap();
    let done = bench.run(CHAIN, with.clone()).unwrap();
    let meta = &done.artifact.meta;
    assert_eq!(
        (&meta["layout"], &meta["symbols"]),
        (&json!(["my_vendor"]), &json!(["SPY"]))
    );
    assert_eq!((&meta["currency"], &meta["multiplier"]), (&json!("EUR"), &json!(10.0)));
    assert_eq!(
        common::text(&bench.rows(&done)),
        "SPY 2024-01-19 2024-02-16 SPY 480 call 5.1 5.2 - - - - -\n"
    );
    let why = meta["recognised"][0]["why"].as_str().unwrap();
    assert!(why.contains("states no calendar: Monday to Friday is assumed"), "{why}");
    // The same keys in the stage; the layout's contents are part of the table's key.
    let inline: Value = json!({
        "path": "data",
        "layout": {
            "columns": {
                "date": "Trade Day", "expiry": "Last Day", "strike": "K", "call": "CP",
                "bid": { "column": "Bid Px", "per": 10000 }, "ask": { "column": "Ask Px", "per": 10000 }
            },
            "date_format": "%d.%m.%Y", "where": "Instrument = OPT", "paths": ["{symbol}.csv"],
            "contract": { "currency": "EUR", "multiplier": 10 }
        }
    });
    let same = bench.run(CHAIN, inline).unwrap();
    assert_eq!(same.artifact.entries, done.artifact.entries);

    bench.file("my_vendor.yaml", "columns: { dates: x }\n");
    let problem = bench.check(CHAIN, with.clone()).unwrap_err();
    assert!(
        problem
            .message
            .contains("`./my_vendor.yaml`: columns.dates: there is no column `dates`"),
        "{}",
        problem.message
    );
    bench.file("my_vendor.yaml", "columns: [\n");
    assert!(bench.check(CHAIN, with).unwrap_err().message.contains("my_vendor.yaml"));
    let problem = bench
        .check(CHAIN, json!({ "path": "data", "layout": "./my_vendr.yaml" }))
        .unwrap_err();
    assert_eq!(problem.field, "layout");
    assert!(problem.hint.unwrap().contains("did you mean `my_vendor.yaml`?"));
}

#[test]
fn all_missing_columns_are_named_at_once() {
    let bench = Bench::new();
    bench.file(
        "x.csv",
        "Quote Date,Expiry,Strike Price,Right,Bid_Price,Ask\n2024-01-19,2024-02-16,480,C,5.1,5.2\n",
    );
    let layout = json!({ "columns": {
        "date": "quote_date", "expiry": "expiry", "strike": "strike", "call": "right", "bid": "bid",
            "ask": "ask", "volume": "Volume"
    } });
    let problem = bench
        .check(CHAIN, json!({ "path": "x.csv", "layout": layout }))
        .unwrap_err();
    for part in [
        "lacks 4 columns of layout `custom`",
        "`quote_date` for `date` (nearest is `Quote Date`)",
        "`strike` for `strike` (nearest is `Strike Price`)",
        "`bid` for `bid` (nearest is `Bid_Price`)",
        "`Volume` for `volume`",
    ] {
        assert!(problem.message.contains(part), "{part}: {}", problem.message);
    }
}

#[test]
fn a_known_layout_is_completed() {
    let bench = Bench::new();
    let (_, bytes, _) = file_of("yfinance_option_chain");
    bench.file("puts.csv", &bytes);
    let err = error_of(&bench, CHAIN, "puts.csv");
    assert!(err.contains("does not say the `date` of its rows"), "{err}");
    assert!(
        err.contains("like: yfinance_option_chain, columns: { date: { value: \"2024-01-19\" } }"),
        "{err}"
    );
    let layout = json!({ "like": "yfinance_option_chain", "columns": { "date": { "value": "2024-01-19" } } });
    let with = json!({ "path": "puts.csv", "layout": layout });
    bench.check(CHAIN, with.clone()).unwrap();
    let done = bench.run(CHAIN, with).unwrap();
    assert_eq!(bench.rows(&done).num_rows(), 10);
    let layout = json!({ "like": "yfinance" });
    let problem = bench
        .check(CHAIN, json!({ "path": "puts.csv", "layout": layout }))
        .unwrap_err();
    assert_eq!(problem.field, "layout.like");
}

#[test]
fn the_second_table_is_needed() {
    let bench = Bench::new();
    let (bars, bytes, others) = file_of("databento_ohlcv");
    bench.file(&bars, &bytes).file(&others[0].0, &others[0].1);
    let err = error_of(&bench, CHAIN, &bars);
    assert!(
        err.contains("needs a second table") && err.contains("raw_symbol"),
        "{err}"
    );
    let err = error_of(&bench, CHAIN, &others[0].0);
    assert!(err.contains("is the second table of layout `databento_ohlcv`"), "{err}");
}
