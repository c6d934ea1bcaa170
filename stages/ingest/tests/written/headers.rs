//! Headers, and rows that are no bars.

use super::*;
use crate::common::text;

#[test]
fn headers_of_several_rows() {
    let mut counts = Counts::default();
    for symbols in 1..6_usize {
        for form in 0..6 {
            let names: Vec<String> = (0..symbols).map(|i| format!("SYM{i}")).collect();
            let data: Vec<Vec<Bar>> = (0..symbols)
                .map(|i| bars(i as u64 + form, 20, 30.0 + i as f64, 2))
                .collect();
            let prices = ["Close", "High", "Low", "Open", "Volume"];
            let values = |bar: &Bar| [bar.1[3], bar.1[1], bar.1[2], bar.1[0], bar.1[4]];
            let by_symbol = form % 2 == 1;
            let pairs: Vec<(usize, usize)> = match by_symbol {
                true => (0..symbols).flat_map(|s| (0..5).map(move |p| (s, p))).collect(),
                false => (0..5).flat_map(|p| (0..symbols).map(move |s| (s, p))).collect(),
            };
            let of_prices: Vec<&str> = pairs.iter().map(|(_, p)| prices[*p]).collect();
            let of_symbols: Vec<&str> = pairs.iter().map(|(s, _)| names[*s].as_str()).collect();
            let (first, second) = if by_symbol {
                (&of_symbols, &of_prices)
            } else {
                (&of_prices, &of_symbols)
            };
            let (a, b) = match form {
                0 => ("Price", "Ticker"),
                1 => ("Ticker", "Price"),
                _ => ("", ""),
            };
            let mut csv = format!("{a},{}\n{b},{}\n", first.join(","), second.join(","));
            if form < 4 {
                writeln!(csv, "Date{}", ",".repeat(pairs.len())).unwrap();
            }
            for row in 0..20 {
                // The last symbol begins later.
                let cell = |(s, p): &(usize, usize)| match symbols > 1 && *s == symbols - 1 && row < 4 {
                    true => String::new(),
                    false => values(&data[*s][row])[*p].to_string(),
                };
                let cells: Vec<String> = pairs.iter().map(cell).collect();
                writeln!(csv, "{},{}", data[0][row].0, cells.join(",")).unwrap();
            }
            let mut wanted = Vec::new();
            for (s, bars) in data.iter().enumerate() {
                let from = if symbols > 1 && s == symbols - 1 { 4 } else { 0 };
                wanted.extend(rows(&bars[from..]));
            }
            let bench = Bench::new();
            bench.file("download.csv", &csv);
            let done = bench
                .run(
                    "ingest/bars",
                    json!({ "path": "download.csv", "calendar": "none", "on_bad_rows": "keep" }),
                )
                .unwrap();
            assert_eq!(done.artifact.meta["symbols"], json!(names), "form {form}");
            counts.try_file(&format!("{symbols} {form}"), "download.csv", csv, &wanted);
        }
    }
    counts.finish("headers of several rows", 30);
}

/// A wide table of closes is proposed, and read as proposed.
#[test]
fn wide_tables_are_proposed() {
    let (mut tried, mut told) = (0, 0);
    for symbols in 1..5_usize {
        for date in ["date", "Date", "datetime", "日期", "Datum", "timestamp"] {
            let names: Vec<String> = (0..symbols).map(|i| format!("SYM{i}")).collect();
            let data: Vec<Vec<Bar>> = (0..symbols).map(|i| bars(i as u64, 12, 30.0, 2)).collect();
            let mut csv = format!("{date},{}\n", names.join(","));
            for row in 0..12 {
                let cells: Vec<String> = data.iter().map(|bars| bars[row].1[3].to_string()).collect();
                writeln!(csv, "{},{}", data[0][row].0, cells.join(",")).unwrap();
            }
            let bench = Bench::new();
            bench.file("closes.csv", csv);
            let refused = bench.check("ingest/bars", json!({ "path": "closes.csv" })).unwrap_err();
            let mut with = remedies(&refused.hint.unwrap()).remove(0);
            (with["path"], with["calendar"]) = (json!("closes.csv"), json!("none"));
            let done = bench.run("ingest/bars", with).unwrap();
            let closes: Vec<f64> = data.iter().flatten().map(|bar| bar.1[3]).collect();
            assert_eq!(floats(&bench.rows(&done), "close"), closes);
            (tried, told) = (tried + 1, told + 1);
        }
    }
    eprintln!("wide tables: tried {tried}, told {told}, right 0, silent 0");
}

/// Indexes without a name, lines above a header, and other programs' signs of missing values.
#[test]
fn indexes_preambles_and_missing_values() {
    let values = [[10.0, 12.0, 9.0, 11.0, 100.0], [11.0, 13.0, 10.0, 12.0, 200.0]];
    let wanted = [
        ("2024-01-02".to_owned(), values[0]),
        ("2024-01-03".to_owned(), values[1]),
    ];
    let rows = "2024-01-02,10,12,9,11,100\n2024-01-03,11,13,10,12,200\n";
    let plain = format!("date,open,high,low,close,volume\n{rows}");
    let gaps = ["#N/A N/A", "#N/A", "#VALUE!", "--", "#DIV/0!"]
        .map(|sign| format!("{plain}2024-01-04,{sign},{sign},{sign},{sign},{sign}\n"));
    let cases = [
        (format!(",Open,High,Low,Close,Volume\n{rows}"), json!(null)),
        (format!("\"\",Open,High,Low,Close,Volume\n{rows}"), json!(null)),
        (
            format!("Kurse,,,,,\nQuelle,Bank,,,,\n{plain}"),
            json!({ "like": "plain", "skip_lines": 2 }),
        ),
        (
            format!("a,b,c,d,e,f\n{plain}"),
            json!({ "like": "plain", "skip_lines": 1 }),
        ),
        (plain.clone(), json!({ "like": "plain", "skip_lines": 1 })),
    ];
    let gaps = gaps.into_iter().map(|text| (text, json!(null)));
    for (text, layout) in cases.into_iter().chain(gaps) {
        let bench = Bench::new();
        bench.file("x.csv", &text);
        let mut with = json!({ "path": "x.csv" });
        if !layout.is_null() {
            with["layout"] = layout;
        }
        let (mut found, _) = read(&bench, &with).unwrap_or_else(|err| panic!("{text}: {err}"));
        found.retain(|(_, values)| !values[3].is_nan());
        assert!(same(&found, &wanted), "{text}: {found:?}");
    }
}

/// Rows of dividends and splits that a web page shows among prices, and a vendor's own dollars.
#[test]
fn actions_among_prices_and_dollars() {
    let bench = Bench::new();
    let row = |day: &str| format!("{day}\t10\t12\t9\t11\t11\t1100\n");
    bench.file(
        "AAPL.csv",
        format!(
            "Date\tOpen\tHigh\tLow\tClose\tAdj Close\tVolume\n{}Mar 12, 2021\t0.22 Dividend\n{}\
            Mar 10, 2021\t4:1 Stock Splits\n{}",
            row("Mar 15, 2021"),
            row("Mar 11, 2021"),
            row("Mar 9, 2021")
        ),
    );
    let layout = json!({ "like": "yahoo", "date_format": "%b %d, %Y" });
    let (found, warnings) = read(&bench, &json!({ "path": "AAPL.csv", "layout": layout })).unwrap();
    let days: Vec<&str> = found.iter().map(|(day, _)| day.as_str()).collect();
    assert_eq!(days, ["2021-03-09", "2021-03-11", "2021-03-15"]);
    assert!(
        warnings
            .iter()
            .any(|told| told.contains("rows of dividends and splits")),
        "{warnings:?}"
    );
    bench.file(
        "NVDA.csv",
        "Date,Close/Last,Volume,Open,High,Low\n\
        01/03/2024,$11.5,100,$10,$12,$9\n01/02/2024,$11,100,$10,$12,$9\n",
    );
    let (found, warnings) = read(&bench, &json!({ "path": "NVDA.csv" })).unwrap();
    assert_eq!(found[0].1, [10.0, 12.0, 9.0, 11.0, 100.0]);
    assert!(!warnings.iter().any(|told| told.contains("is in `$`")), "{warnings:?}");
}

/// A download of series has prices and rates: rates are no symbols.
#[test]
fn rates_among_prices_are_left_out() {
    let bench = Bench::new();
    bench.file(
        "fred.csv",
        "observation_date,DGS2,SP500,VIXCLS\n2024-01-02,4.33,4742.83,13.2\n2024-01-03,4.33,4704.81,14.04\n",
    );
    let done = bench.run("ingest/bars", json!({ "path": "fred.csv" })).unwrap();
    let rows = text(&bench.rows(&done));
    assert!(rows.contains("VIXCLS") && !rows.contains("DGS2"), "{rows}");
    assert!(
        done.warnings
            .iter()
            .any(|told| told.contains("`DGS2` are rates, and left out")),
        "{:?}",
        done.warnings
    );
}

/// Files without rows, and those of which no row is left, are refused by what is the case.
#[test]
fn no_rows_have_a_cause() {
    let rows = "2024-01-02,3.5\n2024-01-03,3.6\n";
    for (text, with, cause) in [
        ("", json!({}), "the files hold no rows"),
        (
            rows,
            json!({ "symbols": ["ABC"] }),
            "the files hold none of these symbols",
        ),
        (
            "2024-01-02,\n2024-01-03,\n",
            json!({ "max_dropped": 1.0 }),
            "the rules drop all 2 rows",
        ),
    ] {
        let bench = Bench::new();
        bench.file("x.csv", format!("date,close\n{text}"));
        let mut with = with;
        (with["path"], with["calendar"]) = (json!("x.csv"), json!("none"));
        let err = bench.run("ingest/bars", with).unwrap_err();
        assert!(err.message.contains(cause), "{err}");
    }
}
