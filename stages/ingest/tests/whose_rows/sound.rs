//! Sound files: columns that are not read are no symbols, and prices that jump with one are told.

use super::*;

/// The cell of a column at a row of `DAYS`, of a date.
type Cell = fn(usize, Date) -> String;

const DAYS: usize = 240;

/// The value of `values` whose block holds a row.
fn block(values: &[&str], row: usize) -> String {
    values[row * values.len() / DAYS].to_owned()
}

/// Columns that users have beside prices of one series. Those with a mark are told once: they may be names of
/// companies.
const COLUMNS: [(&str, bool, Cell); 34] = [
    ("sector", false, |_, _| "Technology".to_owned()),
    ("exchange", false, |_, _| "NASDAQ".to_owned()),
    ("rating", false, |row, _| {
        block(&["BUY", "HOLD", "BUY", "SELL", "BUY"], row)
    }),
    ("rating", false, |row, _| block(&["BUY", "SELL", "BUY", "SELL"], row)),
    ("rating", true, |row, _| block(&["AA", "A"], row)),
    ("rating", true, |row, _| block(&["BBB", "A", "AA"], row)),
    ("side", false, |row, _| ["B", "S"][row * 7 % 5 % 2].to_owned()),
    ("side", false, |row, _| block(&["BUY", "SELL"].repeat(20), row)),
    ("signal", false, |row, _| block(&["-1", "0", "1", "0", "-1"], row)),
    ("position", false, |row, _| block(&["0", "100", "200", "100"], row)),
    ("regime", false, |row, _| {
        block(&["BULL", "BEAR", "FLAT", "BULL", "BEAR"], row)
    }),
    ("regime", true, |row, _| block(&["bull", "bear"], row)),
    ("fold", true, |row, _| block(&["train", "valid", "test"], row)),
    ("source", true, |row, _| block(&["IEX", "SIP"], row)),
    ("contract", true, |row, _| {
        block(&["ESH22", "ESM22", "ESU22", "ESZ22"], row)
    }),
    ("quarter", false, |_, date| format!("Q{}", date.ymd().1.div_ceil(3))),
    ("fiscal", false, |_, date| {
        format!("{}Q{}", date.ymd().0, date.ymd().1.div_ceil(3))
    }),
    ("period", false, |_, date| date.to_string()[..7].to_owned()),
    ("month", false, |_, date| {
        ["January", "May", "June", "July"][date.ymd().1 as usize % 4].to_owned()
    }),
    ("year", false, |_, date| date.ymd().0.to_string()),
    ("week", false, |row, _| (1 + row / 5).to_string()),
    ("short_interest", false, |row, _| {
        (100_003 + row / 10 * 73_127 % 800_000).to_string()
    }),
    ("open_interest", false, |row, _| {
        (10_007 + row / 5 * 7919 % 80_000).to_string()
    }),
    ("shares", false, |row, _| {
        (16_000_000_000_u64 - row as u64 / 60 * 41_000_000).to_string()
    }),
    ("analysts", false, |row, _| (28 + row / 30 * 3 % 5).to_string()),
    ("trades", false, |row, _| (20_000 + row * 7919 % 70_000).to_string()),
    ("news", false, |row, _| (row * 7 % 13).to_string()),
    ("earnings", false, |row, _| {
        if row % 63 == 40 { "Y" } else { "N" }.to_owned()
    }),
    ("note", false, |row, _| {
        if row == 30 { "a split" } else { "" }.to_owned()
    }),
    ("batch", false, |row, _| format!("b{:05}", row * 7919 % 99_991)),
    ("idx", false, |row, _| row.to_string()),
    ("user", false, |_, _| "1001".to_owned()),
    ("updated", false, |_, _| "2024-01-05".to_owned()),
    ("dividend", false, |row, _| {
        if row % 63 == 20 { "0.23" } else { "0" }.to_owned()
    }),
];

/// A walk of prices.
fn walk(draw: &mut Draw, from: f64, days: &[Date]) -> BTreeMap<Date, f64> {
    let mut close = from;
    let next = |date: &Date| {
        close *= 1.0 + 0.0003 * (draw.below(101) as f64 - 50.0);
        (*date, (close * 100.0).round() / 100.0)
    };
    days.iter().map(next).collect()
}

fn file(closes: &BTreeMap<Date, f64>, name: &str, cell: impl Fn(usize, Date) -> String) -> String {
    let row = |(row, (date, close)): (usize, (&Date, &f64))| format!("{date},{close},{}\n", cell(row, *date));
    format!(
        "date,close,{name}\n{}",
        closes.iter().enumerate().map(row).collect::<String>()
    )
}

#[test]
fn property_sound_files_are_read() {
    let mut draw = Draw(11);
    let (mut tried, mut notes) = (0, 0);
    for (name, is_told, cell) in COLUMNS {
        for from in ["2022-01-03", "2023-04-17"] {
            let wanted = walk(&mut draw, 90.0, &weekdays(from, DAYS));
            let bench = Bench::new();
            bench.file("AAPL.csv", file(&wanted, name, cell));
            let (found, told) = bars(&bench, json!({ "path": "AAPL.csv", "calendar": "weekends" }));
            assert_eq!(found.get("AAPL"), Some(&wanted), "{name}: {told}");
            let note = format!("the column `{name}` (");
            assert_eq!(told.contains(&note), is_told, "{name}: {told}");
            assert_eq!(told.lines().count(), usize::from(is_told), "{name}: {told}");
            let of_symbol = json!({ "path": "AAPL.csv", "calendar": "weekends", "symbol": "AAPL" });
            assert_eq!(bars(&bench, of_symbol).1, "", "{name}");
            let table = json!({ "path": "AAPL.csv", "columns": ["close"] });
            let (_, warnings) = bench.run_with("ingest/table", table, &[]).unwrap();
            assert_eq!(warnings.len(), usize::from(is_told), "{name}: {warnings:?}");
            (tried, notes) = (tried + 1, notes + usize::from(is_told));
        }
    }
    eprintln!("sound files: tried {tried}, refused 0, told {notes}");
}

/// Two companies, one after the other, by a column of any name: refused, or told where their prices meet.
#[test]
fn property_companies_in_blocks() {
    let mut tried = Tried::default();
    let mut draw = Draw(5);
    let names = ["firm", "stock", "equity", "scode", "id", "which", "k"];
    let companies = [
        ["Apple", "Oracle"],
        ["000001", "600519"],
        ["10107", "14593"],
        ["OLD", "NEW"],
    ];
    for name in names {
        for pair in companies {
            for factor in [1.0, 1.1, 3.0, 0.02] {
                let days = weekdays("2023-02-13", DAYS);
                let one = walk(&mut draw, 40.0, &days[..DAYS / 2]);
                let last = one.last_key_value().unwrap().1 * factor;
                let mut both = one.clone();
                both.extend(walk(&mut draw, last, &days[DAYS / 2..]));
                let bench = Bench::new();
                bench.file("two.csv", file(&both, name, |row, _| block(&pair, row)));
                for kind in ["ingest/bars", "ingest/table"] {
                    let with = match kind {
                        "ingest/bars" => json!({ "path": "two.csv", "currency": "USD", "calendar": "none" }),
                        _ => json!({ "path": "two.csv", "columns": ["close"] }),
                    };
                    let told = match bench.run_with(kind, with, &[]) {
                        Ok((_, warnings)) => warnings.join("\n"),
                        Err(err) => err.message,
                    };
                    let names_it = told.contains(&format!("`{name}`")) && told.contains(pair[1]);
                    let told = if names_it { told.as_str() } else { "" };
                    tried.add(format!("{kind} {name} {pair:?} {factor}"), false, told);
                }
            }
        }
    }
    tried.report("companies one after the other");
}
