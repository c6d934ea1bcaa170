//! The files that people download most, each read as it is by `layout: auto`. The samples have the vendors'
//! documented columns, with the same three bars in all of them.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;
#[path = "downloads/samples.rs"]
mod samples;

use common::{Bench, Done, floats};
use samples::{DAYS, OTHER_TABLES, SAMPLES, Sample, VALUES};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const BARS: &str = "ingest/bars";

/// The outcome of reading a sample.
enum Outcome {
    Told(String),
    Read(Box<Done>),
}

fn read(bench: &Bench, kind: &str, with: &Value) -> Outcome {
    if let Err(problem) = bench.check(kind, with.clone()) {
        return Outcome::Told(format!("{} | {}", problem.message, problem.hint.unwrap_or_default()));
    }
    match bench.run(kind, with.clone()) {
        Ok(done) => Outcome::Read(Box::new(done)),
        Err(err) => Outcome::Told(format!("{} | {}", err.message, err.hint.unwrap_or_default())),
    }
}

/// The first difference between the bars of a sample and those that were read. A column whose letter is in
/// `without` has to be missing.
fn difference(bench: &Bench, done: &Done, sample: &Sample, symbol: &str, without: &str) -> Option<String> {
    let rows = bench.rows(done);
    let symbols = stages_core::table::texts(&rows, "symbol").unwrap();
    let dates: Vec<String> = stages_core::table::dates(&rows, "date")
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    // Every other column of these files is a symbol's.
    let is_wide = matches!(sample.layout, "fred_prices" | "ecb_eurofxref");
    let is_own = |row: usize| symbols.value(row).eq_ignore_ascii_case(symbol);
    let own = (0..rows.num_rows()).filter(|row| is_own(*row)).count();
    if is_wide && own == 0 && without.contains('c') {
        return None;
    }
    if is_wide && own == 3 {
        let closes = floats(&rows, "close");
        let own = (0..rows.num_rows()).filter(|row| is_own(*row)).map(|row| closes[row]);
        return own
            .ne(VALUES.iter().map(|bar| bar[3]))
            .then(|| format!("the closes are {closes:?}"));
    }
    if dates != DAYS {
        return Some(format!("the days are {dates:?}"));
    }
    if let Some(other) = (0..rows.num_rows())
        .map(|row| symbols.value(row))
        .find(|found| *found != symbol)
    {
        return Some(format!("the symbol is {other}, not {symbol}"));
    }
    for (letter, name) in "ohlcva"
        .chars()
        .zip(["open", "high", "low", "close", "volume", "adjusted_close"])
    {
        let is_there = sample.columns.contains(letter) && !without.contains(letter);
        let found = floats(&rows, name);
        for (row, found) in found.into_iter().enumerate() {
            let wanted = if is_there { sample.value(letter, row) } else { f64::NAN };
            if !(found.is_nan() && wanted.is_nan() || (found - wanted).abs() <= 1e-9 * wanted.abs()) {
                return Some(format!("{name} of {} is {found}, not {wanted}", DAYS[row]));
            }
        }
    }
    None
}

#[test]
fn downloads_are_read_as_they_are() {
    let mut size = 0;
    for sample in ready() {
        let bench = Bench::new();
        let text = sample.text();
        size += text.len();
        bench.file(sample.file, &text);
        match read(&bench, BARS, &json!({ "path": sample.file })) {
            Outcome::Told(told) => panic!("{}: {told}\n{text}", sample.layout),
            Outcome::Read(done) => {
                assert_eq!(done.artifact.meta["layout"], json!([sample.layout]), "{}", sample.file);
                let found = difference(&bench, &done, sample, sample.symbol, "");
                assert_eq!(found, None, "{} {}", sample.layout, sample.file);
            }
        }
    }
    assert!(size < 100_000, "{size} bytes");
}

/// The tables of a file, by `layout: auto`, with the layout of each or the reason why there is none.
fn tables(path: &Path, name: &str) -> Vec<(&'static str, Result<String, String>)> {
    let source = stages_core::Source::new(name, path);
    let Ok(inspection) = stages_ingest::inspect::inspect(&source) else {
        return Vec::new();
    };
    let table =
        |(table, _, found): &(datasets::layout::Table, _, Result<_, datasets::layout::Unrecognised>)| {
            let found: &Result<datasets::layout::Recognised, _> = found;
            let found = found.as_ref().map(|found| found.layout.name.clone());
            (
                table.name(),
                found.map_err(|err| format!("{}: {}", err.message, err.hint)),
            )
        };
    inspection.tables.iter().map(table).collect()
}

#[test]
fn inspect_knows_downloads() {
    let bench = Bench::new();
    for sample in ready() {
        bench.file(sample.file, sample.text());
        let source = stages_core::Source::new(sample.file, bench.base().join(sample.file));
        let inspection = stages_ingest::inspect::inspect(&source).unwrap();
        let known = inspection.known();
        let first = known.first().unwrap_or_else(|| panic!("{} is not known", sample.file));
        assert_eq!(
            (first.0.name(), &*first.1.layout.name),
            ("bars", sample.layout),
            "{}",
            sample.file
        );
    }
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => walk(&path, found),
            false => found.push(path),
        }
    }
}

/// Every shipped sample and every file of market data is of one layout, or of none: no two layouts of a table
/// fit it equally well.
#[test]
fn no_file_is_of_two_layouts() {
    let mut files = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples"), &mut files);
    match std::env::var("RUNNER_TEST_DATA") {
        Ok(data) => {
            for folder in ["options", "equities", "rates", "lean_format"] {
                walk(&Path::new(&data).join("data").join(folder), &mut files);
            }
        }
        Err(_) => eprintln!("RUNNER_TEST_DATA is not set: market data are skipped"),
    }
    let bench = Bench::new();
    for sample in ready() {
        bench.file(sample.file, sample.text());
        files.push(bench.base().join(sample.file));
    }
    let (mut known, mut unknown) = (0, Vec::new());
    for path in &files {
        let name = path
            .iter()
            .rev()
            .take(3)
            .map(|part| part.to_string_lossy())
            .collect::<Vec<_>>();
        let name = name.into_iter().rev().collect::<Vec<_>>().join("/");
        if !stages_ingest::files::is_table(&name) {
            continue;
        }
        let tables = tables(path, &name);
        for (table, found) in &tables {
            if let Err(err) = found {
                assert!(!err.contains("fit equally well"), "{name} as {table}: {err}");
            }
        }
        match tables.iter().any(|(_, found)| found.is_ok()) {
            true => known += 1,
            false => unknown.push(name),
        }
    }
    eprintln!(
        "{known} files are of one layout, {} of none: {unknown:?}",
        unknown.len()
    );
    assert!(known > 60, "{known}");
}

/// Every shipped layout of bars has a sample.
#[test]
fn shipped_layouts_have_samples() {
    let shipped = datasets::layout::known(datasets::layout::Table::Bars).iter();
    let shipped: BTreeSet<&str> = shipped.map(|layout| layout.name.as_str()).collect();
    let samples: BTreeSet<&str> = SAMPLES.iter().map(|sample| sample.layout).collect();
    // Read by other tests, from files of other shapes.
    let others = BTreeSet::from([
        "ccxt_ohlcv",
        "finrl_compustat",
        "lean_equity_daily",
        "polygon_bars",
        "yahoo_panel",
        "yfinance_download",
    ]);
    assert_eq!(shipped.difference(&samples).copied().collect::<BTreeSet<_>>(), others);
    assert_eq!(samples.difference(&shipped).count(), 0, "{samples:?}");
}

/// A kind of damage: its name, and the variants of a table of delimited text, each with the columns that it
/// takes away.
type Damage = (&'static str, fn(&Csv) -> Vec<Variant>);

/// A damaged text, with the place of the column that it lacks or renames.
struct Variant(Vec<u8>, Option<usize>);

/// A table of delimited text, with the lines before its header and after its last row.
#[derive(Clone)]
struct Csv {
    separator: char,
    before: Vec<String>,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    after: Vec<String>,
}

impl Csv {
    /// The text under another header.
    fn under(&self, header: Vec<String>) -> Vec<u8> {
        let csv = Self {
            header,
            ..self.clone()
        };
        csv.text().into_bytes()
    }

    fn of(sample: &Sample) -> Option<Self> {
        if !sample.is_csv() {
            return None;
        }
        let text = sample.text();
        let lines: Vec<&str> = text.lines().collect();
        let skipped = sample.head.lines().count().saturating_sub(1);
        let rows = if sample.has_no_header() { 2 } else { 3 };
        let separator = ['\t', ';', ',']
            .into_iter()
            .find(|s| lines[skipped].contains(*s))
            .unwrap();
        let split = |line: &&str| -> Vec<String> {
            let mut quoted = false;
            let mut fields = vec![String::new()];
            for c in line.chars() {
                quoted ^= c == '"';
                match c == separator && !quoted {
                    true => fields.push(String::new()),
                    false => fields.last_mut().unwrap().push(c),
                }
            }
            fields
        };
        Some(Self {
            separator,
            before: lines[..skipped].iter().map(ToString::to_string).collect(),
            header: split(&lines[skipped]),
            rows: lines[skipped + 1..=skipped + rows].iter().map(split).collect(),
            after: lines[skipped + rows + 1..].iter().map(ToString::to_string).collect(),
        })
    }

    /// The text with its columns in another order, a column for each index.
    fn with(&self, order: &[usize]) -> Vec<u8> {
        self.written(self.separator, |row| order.iter().map(|i| row[*i].clone()).collect())
    }

    fn written(&self, separator: char, change: impl Fn(&[String]) -> Vec<String>) -> Vec<u8> {
        let lines = std::iter::once(&self.header).chain(&self.rows);
        let lines = lines.map(|row| change(row).join(&separator.to_string()));
        let all: Vec<String> = self
            .before
            .iter()
            .cloned()
            .chain(lines)
            .chain(self.after.iter().cloned())
            .collect();
        (all.join("\n") + "\n").into_bytes()
    }

    fn text(&self) -> String {
        String::from_utf8(self.with(&(0..self.header.len()).collect::<Vec<_>>())).unwrap()
    }
}

const DAMAGES: &[Damage] = &[
    ("a column is missing", |csv| {
        let all = 0..csv.header.len();
        let without = |at: usize| {
            Variant(
                csv.with(&all.clone().filter(|i| *i != at).collect::<Vec<_>>()),
                Some(at),
            )
        };
        all.clone().map(without).collect()
    }),
    ("a column is renamed", |csv| {
        let renamed = |at: usize| {
            let mut header = csv.header.clone();
            header[at] = "x7".to_owned();
            Variant(csv.under(header), Some(at))
        };
        (0..csv.header.len()).map(renamed).collect()
    }),
    ("columns in another order", |csv| {
        let n = csv.header.len();
        let turned = |by: usize| Variant(csv.with(&(0..n).map(|i| (i + by) % n).collect::<Vec<_>>()), None);
        let back = Variant(csv.with(&(0..n).rev().collect::<Vec<_>>()), None);
        [1, n / 2].into_iter().map(turned).chain([back]).collect()
    }),
    ("more columns", |csv| {
        let with = |name: &str, value: &str, first: bool| {
            let text = csv.written(csv.separator, |row| {
                let more = if row == csv.header { name } else { value }.to_owned();
                match first {
                    true => [vec![more], row.to_vec()].concat(),
                    false => [row.to_vec(), vec![more]].concat(),
                }
            });
            Variant(text, None)
        };
        vec![
            with("", "7", true),
            with("note", "a text", false),
            with("sma_20", "181.5", false),
        ]
    }),
    ("another case", |csv| {
        let cased = |case: fn(&str) -> String| {
            let header = csv.header.iter().map(|name| case(name)).collect();
            Variant(csv.under(header), None)
        };
        vec![cased(str::to_uppercase), cased(str::to_lowercase)]
    }),
    ("a byte-order mark", |csv| {
        vec![Variant(format!("\u{feff}{}", csv.text()).into_bytes(), None)]
    }),
    ("line ends of Windows", |csv| {
        vec![Variant(csv.text().replace('\n', "\r\n").into_bytes(), None)]
    }),
    ("another separator", |csv| {
        let others = [',', ';', '\t', '|'].into_iter().filter(|s| *s != csv.separator);
        let can = |s: &char| !csv.text().contains(*s) || csv.separator == ';';
        others
            .filter(can)
            .map(|s| Variant(csv.written(s, <[String]>::to_vec), None))
            .collect()
    }),
    ("no line end at the end", |csv| {
        vec![Variant(csv.text().trim_end().as_bytes().to_vec(), None)]
    }),
    ("empty lines", |csv| {
        let text = csv.text();
        let within = text.replacen(&csv.rows[1][0], &format!("\n{}", csv.rows[1][0]), 1);
        let at_end = format!("{text}\n\n");
        let after_header = text.replacen(&csv.rows[0][0], &format!("\n{}", csv.rows[0][0]), 1);
        [within, at_end, after_header]
            .into_iter()
            .map(|text| Variant(text.into_bytes(), None))
            .collect()
    }),
];

/// The letter of the column at a place of a sample's rows, such as `c`; none for a date or symbol.
fn letter_of(csv: &Csv, sample: &Sample, at: usize) -> String {
    let Some(template) = sample.row_template(csv.separator, at) else {
        return String::new();
    };
    ('a'..='z').filter(|c| template.contains(&format!("{{{c}"))).collect()
}

/// Returns whether a warning is of the market, which no damage of a text changes.
fn is_of_market(warning: &str) -> bool {
    warning.contains("facts of the bars") || warning.contains("every day is taken for a trading day")
}

/// Each sample, damaged, is read with the right values, or the damage is told. A column that is not there is
/// missing, and has no value.
#[test]
fn damaged_downloads_are_read_right_or_told() {
    let mut silent = Vec::new();
    for (kind, damage) in DAMAGES {
        let (mut tried, mut told, mut right) = (0, 0, 0);
        for sample in ready() {
            let Some(csv) = Csv::of(sample) else { continue };
            if sample.has_no_header() && matches!(*kind, "a column is renamed" | "another case") {
                continue;
            }
            for Variant(bytes, at) in damage(&csv) {
                let bench = Bench::new();
                bench.file(sample.file, &bytes);
                tried += 1;
                match read(&bench, BARS, &json!({ "path": sample.file })) {
                    Outcome::Told(_) => told += 1,
                    Outcome::Read(done) => {
                        let without = at.map_or_else(String::new, |at| letter_of(&csv, sample, at));
                        let meta_symbol =
                            done.artifact.meta["symbols"][0].as_str().unwrap_or_default().to_owned();
                        // Without its column, the symbol is the file's name.
                        let is_named = at.is_some_and(|at| csv.rows[0][at].contains(sample.symbol));
                        let symbol = if is_named { meta_symbol.as_str() } else { sample.symbol };
                        match difference(&bench, &done, sample, symbol, &without) {
                            None => right += 1,
                            Some(_) if done.warnings.iter().any(|line| !is_of_market(line)) => told += 1,
                            Some(what) => silent.push(format!(
                                "{kind}: {} {at:?}: {what}\n{}",
                                sample.layout,
                                String::from_utf8_lossy(&bytes)
                            )),
                        }
                    }
                }
            }
        }
        eprintln!(
            "{kind}: tried {tried}, told {told}, right {right}, silent {}",
            tried - told - right
        );
        assert!(tried >= 20, "{kind}: {tried}");
    }
    assert!(silent.is_empty(), "{} silent\n{}", silent.len(), silent.join("\n"));
}

/// A file that lacks a required column of a known layout is refused with the layout, the column and the
/// setting that completes it, which works.
#[test]
fn the_remedy_for_a_missing_column_works() {
    for (layout, file, text, column, name) in [
        (
            "nasdaq_com",
            "AAPL.csv",
            "Date,Last,Volume,Open,High,Low\n01/02/2024,185.64,82490000,187.15,188.44,183.89\n",
            "close",
            "Last",
        ),
        (
            "tushare_daily",
            "a.csv",
            "ts_code,trade_date,open,high,low,px,pre_close,change,pct_chg,vol,amount\n\
             600000.SH,20240102,187.15,188.44,183.89,185.64,1,1,1,824900,1\n",
            "close",
            "px",
        ),
        (
            "tiingo",
            "AAPL.csv",
            "day,close,high,low,open,volume,adjClose,adjHigh,adjLow,adjOpen,adjVolume,divCash,splitFactor\n\
             2024-01-02,185.64,188.44,183.89,187.15,82490000,1,1,1,1,1,0,1\n",
            "date",
            "day",
        ),
    ] {
        let bench = Bench::new();
        bench.file(file, text);
        let Outcome::Told(told) = read(&bench, BARS, &json!({ "path": file })) else {
            panic!("{layout} is read without `{column}`");
        };
        assert!(
            told.contains(&format!("`{layout}`")) && told.contains(&format!("`{column}`")),
            "{told}"
        );
        let remedy = told
            .rsplit_once("`layout: ")
            .unwrap()
            .1
            .trim_end_matches('`')
            .replace('…', &format!("\"{name}\""));
        let remedy = remedy.as_str();
        let remedy =
            datasets::layout::LayoutFile::read(remedy).unwrap_or_else(|err| panic!("{remedy}: {err}"));
        let remedy = json!(remedy);
        let Outcome::Read(done) = read(&bench, BARS, &json!({ "path": file, "layout": remedy })) else {
            panic!("{layout}: the remedy {remedy} does not work");
        };
        let rows = bench.rows(&done);
        assert_eq!(floats(&rows, "close"), [VALUES[0][3]], "{layout}");
    }
}

/// Where a layout's column of symbols is missing, `symbol:` stands in; what else is missing is read without.
#[test]
fn a_missing_optional_column_is_no_error() {
    let header = "trade_date,open,high,low,close,pre_close,change,pct_chg,vol,amount";
    let row = "20240102,187.15,188.44,183.89,185.64,1,1,1,824900,1";
    let layout = json!({ "like": "tushare_daily", "where": "trade_date != x" });
    for layout in [json!("auto"), layout] {
        let bench = Bench::new();
        bench.file("a.csv", format!("{header}\n{row}\n"));
        let with = json!({ "path": "a.csv", "symbol": "600000.SH", "layout": layout });
        match read(&bench, BARS, &with) {
            Outcome::Read(done) => assert_eq!(done.artifact.meta["symbols"], json!(["600000.SH"])),
            Outcome::Told(told) => assert!(told.contains("ts_code"), "{told}"),
        }
    }
    // Without the closes adjusted and the volume.
    let bench = Bench::new();
    bench.file(
        "AAPL.csv",
        "Date,Close/Last,Open,High,Low\n01/02/2024,185.64,187.15,188.44,183.89\n",
    );
    let Outcome::Read(done) = read(&bench, BARS, &json!({ "path": "AAPL.csv" })) else {
        panic!("not read")
    };
    assert_eq!(done.artifact.meta["layout"], json!(["nasdaq_com"]));
    let why = done.artifact.meta["recognised"][0]["why"].as_str().unwrap();
    assert!(why.contains("lacks `volume`, without which it can be read"), "{why}");
}

/// Rows that a layout leaves out are counted and said.
#[test]
fn rows_left_out_are_said() {
    let bench = Bench::new();
    bench.file(
        "daily.csv",
        "ts_code,trade_date,open,high,low,close,pre_close,change,pct_chg,vol,amount\n\
         600000.SH,20240102,187.15,188.44,183.89,185.64,1,1,1,824900,1\n\
         00700.HK,20240102,287.15,288.44,283.89,285.64,1,1,1,824900,1\n",
    );
    let Outcome::Read(done) = read(&bench, BARS, &json!({ "path": "daily.csv" })) else {
        panic!("not read")
    };
    assert_eq!(done.artifact.meta["rows_left_out"], 1);
    assert_eq!(done.artifact.meta["symbols"], json!(["600000.SH"]));
    let said = "1 rows of the files are left out by `where: ts_code in (*.SH, *.SZ, *.BJ)` of layout \
        `tushare_daily`";
    assert!(
        done.warnings.iter().any(|warning| warning.contains(said)),
        "{:?}",
        done.warnings
    );
}

/// Option chains and rates among the downloads: the values of the first row.
#[test]
fn chains_and_rates_are_read_as_they_are() {
    for (kind, layout, file, text, wanted) in OTHER_TABLES {
        let bench = Bench::new();
        bench.file(file, text);
        match read(&bench, kind, &json!({ "path": file, "on_bad_rows": "keep" })) {
            Outcome::Told(told) => panic!("{layout}: {told}"),
            Outcome::Read(done) => {
                assert_eq!(done.artifact.meta["layout"], json!([layout]));
                let rows = bench.rows(&done);
                let found: BTreeMap<&str, f64> =
                    wanted.iter().map(|(name, _)| (*name, floats(&rows, name)[0])).collect();
                for (name, value) in *wanted {
                    assert!(
                        (found[name] - value).abs() < 1e-9,
                        "{layout}: {name} is {}",
                        found[name]
                    );
                }
            }
        }
    }
}

/// The samples but those with currencies, units and decimal commas in their numbers.
fn ready() -> impl Iterator<Item = &'static Sample> {
    SAMPLES
        .iter()
        .filter(|sample| !sample.layout.starts_with("investing") && sample.layout != "nasdaq_com")
}
