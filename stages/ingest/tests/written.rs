//! What is written in the cells and bytes of files: numbers, dates, headers, encodings, containers.
//!
//! One clean table of bars is written in many ways. Each must give the right values, or an error whose
//! remedy, applied, gives them: never other values.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;

use common::{Bench, floats, gzip, text, zip_of};
use datasets::Date;
use serde_json::{Value, json};
use stages_core::StageError;
use std::fmt::Write as _;

/// A bar: day, open, high, low, close, volume.
type Bar = (Date, [f64; 5]);

/// A generator of numbers for tests: deterministic, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

/// Bars on the weekdays from a day on, with prices near `level` in steps of 10^-`decimals`.
fn bars(seed: u64, rows: usize, level: f64, decimals: i32) -> Vec<Bar> {
    let mut random = Random(seed);
    let mut date: Date = "2023-02-13".parse().unwrap();
    let mut close = level;
    let step = 10f64.powi(decimals);
    let round = |price: f64| (price * step).round() / step;
    (0..rows)
        .map(|_| {
            close = round(close * (1.0 + (random.next() % 401) as f64 / 1e4 - 0.02));
            let (high, low) = (round(close * 1.01), round(close * 0.99));
            let day = date;
            date = date.plus(if date.weekday() == 4 { 3 } else { 1 });
            (day, [close, high, low, close, (random.next() % 900_000 + 1000) as f64])
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

/// The layouts that a hint proposes.
fn remedies(hint: &str) -> Vec<Value> {
    hint.split('`')
        .filter(|part| part.starts_with("layout: {"))
        .filter_map(|part| serde_yaml::from_str::<Value>(part).ok())
        .map(|value| value["layout"].clone())
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
                let works = remedies(&hint).into_iter().any(|layout| {
                    read(&bench, &json!({ "path": name, "layout": layout }))
                        .is_ok_and(|(found, _)| same(&found, wanted))
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

#[test]
fn numbers_in_many_notations() {
    let mut counts = Counts::default();
    let points = [
        (".", ""),
        (".", ","),
        (".", "'"),
        (".", " "),
        (",", ""),
        (",", "."),
        (",", "'"),
        (",", " "),
        (",", "\u{a0}"),
        (".", "\u{202f}"),
    ];
    for (seed, (point, group)) in points.into_iter().enumerate() {
        for (level, decimals) in [(12.0, 2), (998.0, 2), (1002.0, 0), (1.1, 3), (34_567.0, 2), (45.0, 4)] {
            for by in [',', ';', '\t', '|'] {
                let data = bars(seed as u64 * 97 + decimals as u64, 40, level, decimals);
                let price = |value: f64| number(value, decimals as usize, point, group);
                let csv = table(&data, &HEADER, by, iso, price, |value| number(value, 0, point, group));
                let what = format!("{level} {decimals} `{point}` `{group}` `{by}`");
                counts.try_file(&what, "x.csv", csv, &rows(&data));
            }
        }
    }
    counts.finish("separators of numbers", 200);

    let mut counts = Counts::default();
    let written: [(&str, &dyn Fn(f64) -> String); 14] = [
        ("$", &|value| format!("${value:.2}")),
        ("$ ,", &|value| format!("${}", number(value, 2, ".", ","))),
        ("€ before", &|value| format!("€ {}", number(value, 2, ",", "."))),
        ("€ after", &|value| format!("{} €", number(value, 2, ",", "."))),
        ("USD", &|value| format!("{value:.2} USD")),
        ("CHF", &|value| format!("CHF {}", number(value, 2, ".", "'"))),
        ("¥", &|value| format!("¥{value:.2}")),
        ("plus", &|value| format!("+{value:.2}")),
        ("blanks", &|value| format!("  {value:.2}  ")),
        ("exponent", &|value| format!("{value:e}")),
        ("exponent with a comma", &|value| format!("{value:e}").replace('.', ",")),
        ("K", &|value| format!("{}K", value / 1000.0)),
        ("kr", &|value| format!("{} kr", number(value, 2, ",", " "))),
        ("NBSP", &|value| format!("{}\u{a0}$", number(value, 2, ".", ","))),
    ];
    for (what, price) in written {
        for (seed, level) in [(1, 15.0), (2, 998.0), (3, 23_456.0)] {
            for by in [',', ';'] {
                let data = bars(seed, 30, level, 2);
                let csv = table(&data, &HEADER, by, iso, price, |value| format!("{value}"));
                counts.try_file(&format!("{what} {level} {by}"), "x.csv", csv, &rows(&data));
            }
        }
    }
    counts.finish("currencies and signs", 80);

    let mut counts = Counts::default();
    let units = [
        ("K", 1e3),
        ("M", 1e6),
        ("B", 1e9),
        ("k", 1e3),
        (" M", 1e6),
        (" Mio.", 1e6),
        ("m", 1e6),
        ("万", 1e4),
    ];
    for (unit, factor) in units {
        for point in [".", ","] {
            for seed in 0..2 {
                let mut data = bars(seed + 7, 25, 80.0, 2);
                for bar in &mut data {
                    bar.1[4] = (bar.1[4] / 1000.0).round() * factor / 100.0;
                }
                let volume = |value: f64| format!("{}{unit}", number(value / factor, 2, point, ""));
                let csv = table(&data, &HEADER, ';', iso, |value| number(value, 2, point, ""), volume);
                counts.try_file(&format!("{unit} {point}"), "x.csv", csv, &rows(&data));
            }
        }
    }
    counts.finish("magnitudes", 30);
}

/// Numbers whose point or comma could be either, and that change their separator.
#[test]
fn numbers_that_are_open_are_refused() {
    let mut counts = Counts::default();
    for seed in 0..30 {
        // Whole prices around 1,000, with a point between thousands.
        let data = bars(seed, 30, 1000.0, 0);
        let sign = if seed % 3 == 2 { "," } else { "." };
        let by = if seed % 2 == 0 { ';' } else { '\t' };
        let price = |value: f64| number(value, 0, "", sign);
        let csv = table(&data, &HEADER, by, iso, price, |value| format!("{value}"));
        counts.try_file(&format!("{seed} {sign}"), "krx.csv", csv, &rows(&data));
    }
    counts.finish("thousands that look like decimals", 30);

    let (mut tried, mut told) = (0, 0);
    for seed in 0..24_usize {
        let data = bars(seed as u64, 40, 57.0, 2);
        let from = 5 + seed;
        let csv = table(
            &data,
            &HEADER,
            ';',
            iso,
            |value| format!("{value:.2}"),
            |value| format!("{value}"),
        );
        let changed = |(i, line): (usize, &str)| {
            if i >= from {
                line.replace('.', ",")
            } else {
                line.to_owned()
            }
        };
        let csv = csv.lines().enumerate().map(changed).collect::<Vec<_>>().join("\n");
        let bench = Bench::new();
        bench.file("x.csv", csv);
        tried += 1;
        let err = read(&bench, &json!({ "path": "x.csv" })).unwrap_err();
        assert!(err.message.contains("the decimal separator changes"), "{err}");
        assert!(err.message.contains(&format!("row {}", from + 1)), "{err}");
        told += 1;
    }
    eprintln!("a decimal separator that changes: tried {tried}, told {told}, right 0, silent 0");
}

#[test]
fn dates_in_many_formats() {
    let mut counts = Counts::default();
    let formats = [
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%Y%m%d",
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d.%m.%Y",
        "%d-%m-%Y",
        "%m-%d-%Y",
        "%d-%b-%Y",
        "%d-%b-%y",
        "%b %d, %Y",
        "%B %d, %Y",
        "%d %b %Y",
        "%d %B %Y",
        "%d/%m/%y",
        "%m/%d/%y",
        "%d.%m.%y",
        "%a %b %d %Y",
        "%Y年%m月%d日",
        "%-d/%-m/%Y",
        "%-m/%-d/%Y",
        "%Y-%m-%dT00:00:00",
        "%m/%d/%Y %H:%M",
        "%d.%m.%Y 00:00:00",
        "%Y-%m-%d 00:00:00+00:00",
    ];
    let write = |format: &'static str| {
        move |day: Date| {
            chrono::NaiveDate::from(day)
                .and_hms_opt(0, 0, 0)
                .unwrap()
                .format(format)
                .to_string()
        }
    };
    let price = |value: f64| format!("{value:.2}");
    let volume = |value: f64| format!("{value}");
    for format in formats {
        for (rows_, seed) in [(40, 1), (8, 2), (200, 3)] {
            let data = bars(seed, rows_, 50.0, 2);
            let csv = table(&data, &HEADER, ',', write(format), price, volume);
            counts.try_file(&format!("{format} {rows_}"), "x.csv", csv, &rows(&data));
            // Newest first, as many vendors write.
            let mut lines: Vec<String> = table(&data, &HEADER, ';', write(format), price, volume)
                .lines()
                .map(str::to_owned)
                .collect();
            lines[1..].reverse();
            counts.try_file(
                &format!("{format} {rows_} down"),
                "x.csv",
                lines.join("\r\n"),
                &rows(&data),
            );
        }
    }
    for unit in [1.0, 1e3, 1e6, 1e9] {
        let data = bars(5, 40, 50.0, 2);
        let time = |day: Date| format!("{}", i64::from(day.0) * 86_400 * unit as i64);
        let csv = table(&data, &HEADER, ',', time, price, volume);
        counts.try_file(&format!("epoch {unit}"), "x.csv", csv, &rows(&data));
    }
    let data = bars(5, 40, 50.0, 2);
    let serial = |day: Date| format!("{}", day.0 + 25_569);
    counts.try_file(
        "Excel",
        "x.csv",
        table(&data, &HEADER, ',', serial, price, volume),
        &rows(&data),
    );
    counts.finish("formats of dates", 150);

    // Month starts: both orders fit, and nothing decides.
    let mut counts = Counts::default();
    for (i, format) in ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%m-%d-%Y", "%d/%m/%y", "%m/%d/%y"]
        .into_iter()
        .enumerate()
    {
        for day in 1..5 {
            let mut data = bars(i as u64, 30, 50.0, 2);
            for (n, bar) in data.iter_mut().enumerate() {
                let (year, month) = (2019 + n as i32 / 12, n as u32 % 12 + 1);
                bar.0 = Date::from_ymd(year, month, day).unwrap();
            }
            let csv = table(&data, &HEADER, ',', write(format), price, volume);
            counts.try_file(&format!("{format} {day}"), "x.csv", csv, &rows(&data));
        }
    }
    counts.finish("day and month in either order", 24);
}

#[test]
fn texts_in_many_encodings() {
    let mut counts = Counts::default();
    let names: [(&str, [&str; 6], &[&str]); 8] = [
        (
            "Chinese",
            ["日期", "开盘", "最高", "最低", "收盘", "成交量"],
            &["gbk", "gb18030", "utf-8", "utf-16le", "utf-16be"],
        ),
        (
            "Chinese of Taiwan",
            ["日期", "開盤價", "最高價", "最低價", "收盤價", "成交量"],
            &["big5", "utf-8", "utf-16le"],
        ),
        (
            "Japanese",
            ["日付", "始値", "高値", "安値", "終値", "出来高"],
            &["shift_jis", "euc-jp", "utf-8", "utf-16be"],
        ),
        (
            "Korean",
            ["날짜", "시가", "고가", "저가", "종가", "거래량"],
            &["euc-kr", "utf-8", "utf-16le"],
        ),
        (
            "German",
            ["Datum", "Eröffnung", "Hoch", "Tief", "Schluss", "Volumen"],
            &["windows-1252", "utf-8", "utf-16le"],
        ),
        (
            "Spanish",
            ["Fecha", "Apertura", "Máximo", "Mínimo", "Cierre", "Volumen"],
            &["windows-1252", "utf-8"],
        ),
        (
            "French",
            ["Date", "Ouverture", "Plus haut", "Plus bas", "Clôture", "Volume"],
            &["windows-1252", "utf-8"],
        ),
        (
            "Russian",
            ["Дата", "Открытие", "Максимум", "Минимум", "Закрытие", "Объём"],
            &["windows-1251", "utf-8", "utf-16le"],
        ),
    ];
    for (language, header, encodings) in names {
        for (i, encoding) in encodings.iter().enumerate() {
            for (rows_, end) in [(5, "\n"), (60, "\r\n")] {
                let data = bars(i as u64, rows_, 50.0, 2);
                let csv = table(
                    &data,
                    &header,
                    ',',
                    iso,
                    |value| format!("{value:.2}"),
                    |value| format!("{value}"),
                );
                let csv = csv.replace('\n', end);
                let bytes: Vec<u8> = match *encoding {
                    "utf-16le" => csv.encode_utf16().flat_map(u16::to_le_bytes).collect(),
                    "utf-16be" => csv.encode_utf16().flat_map(u16::to_be_bytes).collect(),
                    name => {
                        let encoding = encoding_rs::Encoding::for_label(name.as_bytes()).unwrap();
                        encoding.encode(&csv).0.into_owned()
                    }
                };
                counts.try_file(&format!("{language} {encoding} {rows_}"), "x.csv", bytes, &rows(&data));
            }
        }
    }
    counts.finish("encodings", 45);
}

/// A workbook with one sheet, its dates as numbers of days.
fn workbook(bars: &[Bar], above: &[&str]) -> Vec<u8> {
    let mut sheet = String::new();
    let text = |at: &str, text: &str| format!("<c r=\"{at}\" t=\"inlineStr\"><is><t>{text}</t></is></c>");
    let columns = ["A", "B", "C", "D", "E", "F"];
    let mut row = 0;
    for line in above {
        row += 1;
        write!(sheet, "<row r=\"{row}\">{}</row>", text(&format!("A{row}"), line)).unwrap();
    }
    row += 1;
    write!(sheet, "<row r=\"{row}\">").unwrap();
    for (column, name) in columns.iter().zip(HEADER) {
        sheet.push_str(&text(&format!("{column}{row}"), name));
    }
    sheet.push_str("</row>");
    for (day, values) in bars {
        row += 1;
        write!(
            sheet,
            "<row r=\"{row}\"><c r=\"A{row}\" s=\"1\"><v>{}</v></c>",
            day.0 + 25_569
        )
        .unwrap();
        for (column, value) in columns[1..].iter().zip(values) {
            write!(sheet, "<c r=\"{column}{row}\"><v>{value}</v></c>").unwrap();
        }
        sheet.push_str("</row>");
    }
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = "http://schemas.openxmlformats.org/package/2006";
    let files = [
        (
            "[Content_Types].xml",
            format!(
                "<Types xmlns=\"{package}/content-types\"><Default Extension=\"xml\" ContentType=\"application/xml\"/>\
                <Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/></Types>"
            ),
        ),
        (
            "_rels/.rels",
            format!(
                "<Relationships xmlns=\"{package}/relationships\"><Relationship Id=\"rId1\" \
                Type=\"{office}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/workbook.xml",
            format!(
                "<workbook xmlns=\"{main}\" xmlns:r=\"{office}\"><sheets><sheet name=\"Prices\" sheetId=\"1\" \
                r:id=\"rId1\"/></sheets></workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            format!(
                "<Relationships xmlns=\"{package}/relationships\"><Relationship Id=\"rId1\" Type=\"{office}/worksheet\" \
                Target=\"worksheets/sheet1.xml\"/><Relationship Id=\"rId2\" Type=\"{office}/styles\" \
                Target=\"styles.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/styles.xml",
            format!(
                "<styleSheet xmlns=\"{main}\"><cellXfs count=\"2\"><xf numFmtId=\"0\"/><xf numFmtId=\"14\" \
                applyNumberFormat=\"1\"/></cellXfs></styleSheet>"
            ),
        ),
        (
            "xl/worksheets/sheet1.xml",
            format!("<worksheet xmlns=\"{main}\"><sheetData>{sheet}</sheetData></worksheet>"),
        ),
    ];
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    zip_of(&files)
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

#[test]
fn containers_and_lines_of_many_programs() {
    let mut counts = Counts::default();
    for seed in 0..3 {
        let data = bars(seed, 30 + seed as usize, 50.0, 2);
        let wanted = rows(&data);
        let csv = table(
            &data,
            &HEADER,
            ',',
            iso,
            |value| format!("{value:.2}"),
            |value| format!("{value}"),
        );
        let lines = |change: &dyn Fn(usize, &str) -> String| {
            let lines: Vec<String> = csv.lines().enumerate().map(|(i, line)| change(i, line)).collect();
            lines.join("\n") + "\n"
        };
        let mut file = |what: &str, name: &str, bytes: &[u8]| counts.try_file(what, name, bytes, &wanted);
        file("CR", "x.csv", csv.replace('\n', "\r").as_bytes());
        file("CRLF", "x.csv", csv.replace('\n', "\r\n").as_bytes());
        file("CRCRLF", "x.csv", csv.replace('\n', "\r\r\n").as_bytes());
        file("BOM", "x.csv", format!("\u{feff}{csv}").as_bytes());
        file("no last end", "x.csv", csv.trim_end().as_bytes());
        file("empty lines", "x.csv", csv.replace('\n', "\n\n").as_bytes());
        file(
            "trailing separator",
            "x.csv",
            lines(&|i, line| if i > 0 { format!("{line},") } else { line.to_owned() }).as_bytes(),
        );
        file(
            "trailing separator of all",
            "x.csv",
            lines(&|_, line| format!("{line},")).as_bytes(),
        );
        file(
            "sep=",
            "x.csv",
            format!("sep=;\r\n{}", csv.replace(',', ";")).as_bytes(),
        );
        file(
            "quoted",
            "x.csv",
            lines(&|_, line| format!("\"{}\"", line.replace(',', "\",\""))).as_bytes(),
        );
        file(
            "footer",
            "x.csv",
            format!("{csv}\"Downloaded from Barchart.com as of 02-14-2023 10:15am CST\"\n").as_bytes(),
        );
        file(
            "footer after an empty line",
            "x.csv",
            format!("{csv}\nSource: the exchange, without warranty\n").as_bytes(),
        );
        file(
            "one line above",
            "x.csv",
            format!("https://www.CryptoDataDownload.com\n{csv}").as_bytes(),
        );
        file(
            "lines above",
            "x.csv",
            format!("Daily prices\nof 2023, in USD\n\n{csv}").as_bytes(),
        );
        file("no header", "x.csv", csv.split_once('\n').unwrap().1.as_bytes());
        file("gzip", "x.csv.gz", &gzip(csv.as_bytes()));
        file("zip", "x.zip", &zip_of(&[("x.csv", csv.as_bytes())]));
        file(
            "zip with README",
            "kaggle.zip",
            &zip_of(&[("README.txt", b"Terms of use\n"), ("x.csv", csv.as_bytes())]),
        );
        file(
            "zip with licence",
            "kaggle.zip",
            &zip_of(&[("LICENSE.txt", b"MIT\n"), ("x.csv", csv.as_bytes())]),
        );
        file("workbook", "x.xlsx", &workbook(&data, &[]));
        file("workbook with a title", "x.xlsx", &workbook(&data, &["Prices of 2023"]));
        file(
            "UTF-16",
            "x.csv",
            &csv.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
        );
        file(
            "other names",
            "x.csv",
            csv.replace("date,open,high,low,close", "Trade Date,Open,High,Low,Last")
                .as_bytes(),
        );
        let lists: Vec<Value> = data
            .iter()
            .map(|(day, v)| json!([i64::from(day.0) * 86_400_000, v[0], v[1], v[2], v[3], v[4]]))
            .collect();
        file("ccxt", "x.json", json!(lists).to_string().as_bytes());
        let lists: Vec<Value> = data
            .iter()
            .map(|(day, v)| json!([i64::from(day.0) * 86_400_000, v[0], v[1], v[2], v[3], v[4], "more", 1]))
            .collect();
        file("longer lists", "x.json", json!(lists).to_string().as_bytes());
    }
    counts.finish("containers and lines", 70);

    // Files that are no tables: named, with a command.
    let (mut tried, mut told) = (0, 0);
    for (bytes, what) in [
        (&b"BZh91AY&SY\x00\x01\x02"[..], "bzip2"),
        (b"\xfd7zXZ\0\0\x04", "xz file"),
        (b"7z\xbc\xaf\x27\x1c\0\x04", "7z archive"),
        (b"Rar!\x1a\x07\x01\x00", "RAR"),
        (b"ARROW1\0\0\xff\xff\xff\xff", "Feather"),
        (b"SQLite format 3\0\x10\0\x01\x01", "SQLite"),
        (b"\x89HDF\r\n\x1a\n\0", "HDF5"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "Excel"),
        (b"\x80\x04\x95\x10\0", "pickle"),
        (b"<!DOCTYPE html>\n<html></html>", "HTML"),
    ] {
        for name in ["prices.csv", "prices", "prices.bin"] {
            let bench = Bench::new();
            bench.file(name, bytes);
            let planned = bench.check("ingest/bars", json!({ "path": name })).unwrap_err();
            assert!(planned.message.contains(what), "{}", planned.message);
            assert!(planned.hint.is_some_and(|hint| !hint.contains("LATIN1")));
            (tried, told) = (tried + 1, told + 1);
        }
    }
    eprintln!("files that are no tables: tried {tried}, told {told}, right 0, silent 0");
}

#[test]
fn headers_of_several_rows() {
    let mut counts = Counts::default();
    let mut silent = 0;
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
            silent += 0;
        }
    }
    assert_eq!(silent, 0);
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
            let layout = remedies(&refused.hint.unwrap()).remove(0);
            let done = bench
                .run(
                    "ingest/bars",
                    json!({ "path": "closes.csv", "layout": layout, "calendar": "none" }),
                )
                .unwrap();
            let closes: Vec<f64> = data.iter().flatten().map(|bar| bar.1[3]).collect();
            assert_eq!(floats(&bench.rows(&done), "close"), closes);
            (tried, told) = (tried + 1, told + 1);
        }
    }
    eprintln!("wide tables: tried {tried}, told {told}, right 0, silent 0");
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

/// Small cases, with the right values from their derivations.
mod cases {
    use super::*;

    fn plan(bench: &Bench, with: Value) -> Result<(), stages_core::ConfigProblem> {
        bench.check("ingest/bars", with).map(|_| ())
    }

    /// 36 month starts, which read with the month first are days of January.
    #[test]
    fn month_starts_ask_for_the_order() {
        let mut csv = "date,close\n".to_owned();
        for n in 0..36 {
            writeln!(csv, "01/{:02}/{},{}", n % 12 + 1, 2019 + n / 12, 100 + n).unwrap();
        }
        let bench = Bench::new();
        bench.file("fund_nav.csv", csv);
        let err = bench.run("ingest/bars", json!({ "path": "fund_nav.csv" })).unwrap_err();
        assert!(err.message.contains("day and month cannot be told apart"), "{err}");
        let hint = err.hint.unwrap();
        for part in [
            "`layout: { like: plain, date_format: \"%d/%m/%Y\" }` (`01/02/2019` is 2019-02-01; all are 2019-01-01 to \
            2021-12-01)",
            "`layout: { like: plain, date_format: \"%m/%d/%Y\" }` (`01/02/2019` is 2019-01-02; all are 2019-01-01 to \
            2021-01-12)",
        ] {
            assert!(hint.contains(part), "{hint}");
        }
        let layout = json!({ "like": "plain", "date_format": "%d/%m/%Y" });
        let with = json!({ "path": "fund_nav.csv", "layout": layout, "calendar": "none" });
        let done = bench.run("ingest/bars", with).unwrap();
        let dates = stages_core::table::dates(&bench.rows(&done), "date").unwrap();
        assert_eq!((dates.len(), dates[35].to_string().as_str()), (36, "2021-12-01"));
        assert!(done.warnings.iter().all(|warning| !warning.contains("not stated")));
    }

    #[test]
    fn whole_prices_with_points_between_thousands() {
        let bench = Bench::new();
        bench.file(
            "krx.csv",
            "date;symbol;close\n2023-02-13;KRX;1.073\n2023-02-14;KRX;1.046\n2023-02-15;KRX;998\n\
            2023-02-16;KRX;1.004\n",
        );
        let err = bench.run("ingest/bars", json!({ "path": "krx.csv" })).unwrap_err();
        assert!(
            err.message.contains("row 2, column `close`: `1.073` has a point"),
            "{err}"
        );
        let hint = err.hint.unwrap();
        assert!(
            hint.contains("`layout: { like: plain, thousands: \".\" }` (`1.073` is 1073)"),
            "{hint}"
        );
        let closes = |key: &str| {
            let with =
                json!({ "path": "krx.csv", "layout": { "like": "plain", key: "." }, "on_bad_rows": "keep" });
            let done = bench.run("ingest/bars", with).unwrap();
            floats(&bench.rows(&done), "close")
        };
        assert_eq!(closes("thousands"), [1073.0, 1046.0, 998.0, 1004.0]);
        assert_eq!(closes("decimal"), [1.073, 1.046, 998.0, 1.004]);
    }

    #[test]
    fn downloads_with_formatted_numbers() {
        let bench = Bench::new();
        bench
            .file(
                "investing.csv",
                "\"Date\",\"Price\",\"Open\",\"High\",\"Low\",\"Vol.\",\"Change %\"\n\
                \"02/13/2023\",\"4,014.00\",\"4,014.00\",\"4,014.00\",\"4,014.00\",\"1.23M\",\"0.12%\"\n\
                \"02/14/2023\",\"4,046.80\",\"4,046.80\",\"4,046.80\",\"4,046.80\",\"1.24M\",\"0.12%\"\n",
            )
            .file(
                "nasdaq.csv",
                "Date,Close/Last,Volume,Open,High,Low\n02/13/2023,$100.35,100000,$100.35,$100.35,$100.35\n\
                02/14/2023,$101.17,100000,$101.17,$101.17,$101.17\n",
            )
            .file(
                "boerse.csv",
                "Datum;Eröffnung;Hoch;Tief;Schlusskurs;Volumen\n\
                13.02.2023;10.035,00;10.035,00;10.035,00;10.035,00;1.234\n\
                14.02.2023;10.117,00;10.117,00;10.117,00;10.117,00;1.234\n",
            );
        let run = |path: &str, layout: Value| {
            let done = bench
                .run("ingest/bars", json!({ "path": path, "layout": layout }))
                .unwrap();
            text(&bench.rows(&done))
        };
        assert_eq!(
            run(
                "investing.csv",
                json!({ "date_format": "%m/%d/%Y",
                    "columns": { "date": "Date", "close": "Price", "volume": "Vol." } })
            ),
            "investing 2023-02-13 - - - 4014 1230000 -\ninvesting 2023-02-14 - - - 4046.8 1240000 -\n"
        );
        assert_eq!(
            run(
                "nasdaq.csv",
                json!({ "date_format": "%m/%d/%Y", "columns": { "date": "Date", "close": "Close/Last" } })
            ),
            "nasdaq 2023-02-13 - - - 100.35 - -\nnasdaq 2023-02-14 - - - 101.17 - -\n"
        );
        let boerse = "boerse 2023-02-13 10035 10035 10035 10035 1234 -\n\
            boerse 2023-02-14 10117 10117 10117 10117 1234 -\n";
        assert_eq!(run("boerse.csv", json!("auto")), boerse);
    }

    #[test]
    fn hand_made_layouts_of_several_header_rows_work() {
        let bench = Bench::new();
        bench.file(
            "aapl.csv",
            "Price,Close,High,Low,Open,Volume\nTicker,AAPL,AAPL,AAPL,AAPL,AAPL\nDate,,,,,\n\
            2023-02-13,100.35,100.4,100.3,100.35,1000\n2023-02-14,101.17,101.2,101.1,101.17,1100\n",
        );
        let wanted = "AAPL 2023-02-13 100.35 100.4 100.3 100.35 1000 -\n\
            AAPL 2023-02-14 101.17 101.2 101.1 101.17 1100 -\n";
        let columns = json!({ "open": "Open", "high": "High", "low": "Low", "close": "Close",
            "volume": "Volume", "date": "Price" });
        let own = json!({ "open": "open", "high": "high", "low": "low", "close": "close", "volume": "volume",
            "date": "date" });
        for layout in [
            json!("auto"),
            json!({ "where": "Price not in (Ticker, Date)", "columns": columns }),
            json!({ "skip_lines": 3, "header": ["date", "close", "high", "low", "open", "volume"],
                "columns": own }),
        ] {
            let mut with = json!({ "path": "aapl.csv", "layout": layout });
            if layout != "auto" {
                with["symbol"] = json!("AAPL");
            }
            let done = bench.run("ingest/bars", with).unwrap();
            assert_eq!(text(&bench.rows(&done)), wanted, "{layout}");
        }
    }

    #[test]
    fn errors_of_long_tables_name_the_line_of_the_file() {
        let bench = Bench::new();
        bench.file(
            "two.csv",
            "Price,Close,Close\nTicker,AAPL,MSFT\nDate,,\n2023-02-13,100.35,50.09\n2023-02-14,101.17,x\n",
        );
        let err = bench.run("ingest/bars", json!({ "path": "two.csv" })).unwrap_err();
        assert_eq!(
            err.message.split_once("two.csv").unwrap().1,
            "`, row 5, column `Close`: `x` is not a number"
        );
    }

    #[test]
    fn chinese_files() {
        let csv = "日期,股票代码,开盘,收盘,最高,最低,成交量\n2023-02-13,000001,12.04,12.04,12.04,12.04,1000\n\
            2023-02-14,000001,12.14,12.14,12.14,12.14,1000\n";
        let bench = Bench::new();
        bench
            .file("gbk.csv", encoding_rs::GBK.encode(csv).0)
            .file("utf8.csv", csv);
        let wanted = "000001 2023-02-13 12.04 12.04 12.04 12.04 1000 -\n\
            000001 2023-02-14 12.14 12.14 12.14 12.14 1000 -\n";
        for (path, warned) in [("gbk.csv", true), ("utf8.csv", false)] {
            let done = bench.run("ingest/bars", json!({ "path": path })).unwrap();
            assert_eq!(text(&bench.rows(&done)), wanted);
            let is_said = done
                .warnings
                .iter()
                .any(|warning| warning.contains("the text is read as gb18030"));
            assert_eq!(is_said, warned, "{:?}", done.warnings);
            assert_eq!(done.artifact.meta.get("found").is_some(), warned);
        }
        let layout = json!({ "like": "plain", "encoding": "latin1" });
        assert!(
            plan(&bench, json!({ "path": "gbk.csv", "layout": layout })).is_err(),
            "not as another encoding"
        );
    }

    #[test]
    fn ragged_and_repeated_columns_are_refused() {
        let bench = Bench::new();
        bench
            .file("ragged.csv", "date,close\n2023-02-13,1\n2023-02-14,1,2\n2023-02-15,1\n")
            .file("short.csv", "date,close,volume\n2023-02-13,1,2\n2023-02-14,1\n")
            .file("twice.csv", "date,close,close\n2023-02-13,1,2\n")
            .file("comma.csv", "date,close\n2023-02-13,100,35\n2023-02-14,101,17\n")
            .file("zeros.csv", b"date,close\n2023-02-13,1\x00\x00\n");
        for (path, what) in [
            ("ragged.csv", "row 3: 3 fields under a header of 2"),
            ("short.csv", "row 3: 2 fields under a header of 3"),
            ("twice.csv", "two columns `close`"),
            ("comma.csv", "row 2: 3 fields under a header of 2"),
            ("zeros.csv", "row 2: the text has bytes of value 0"),
        ] {
            let err = bench.run("ingest/bars", json!({ "path": path })).unwrap_err();
            assert!(err.message.contains(what) && err.hint.is_some(), "{err}");
        }
    }

    #[test]
    fn rows_of_totals_have_a_remedy() {
        let bench = Bench::new();
        bench.file("x.csv", "date,close\n2023-02-13,1\n2023-02-14,2\nTotal,3\n");
        let err = bench.run("ingest/bars", json!({ "path": "x.csv" })).unwrap_err();
        assert!(
            err.hint
                .as_deref()
                .unwrap()
                .contains(r#"where: '"date" not in ("Total")'"#),
            "{err:?}"
        );
        let layout = json!({ "like": "plain", "where": r#""date" not in ("Total")"# });
        let done = bench
            .run("ingest/bars", json!({ "path": "x.csv", "layout": layout }))
            .unwrap();
        assert_eq!(floats(&bench.rows(&done), "close"), [1.0, 2.0]);
    }

    #[test]
    fn epochs_and_the_hour_that_comes_twice() {
        let bench = Bench::new();
        bench
            .file("epoch.csv", "time,close\n1676246400000,100.35\n1676332800000,101.17\n")
            .file(
                "fall.csv",
                "time,close\n2024-11-03 00:00:00,102\n2024-11-03 01:00:00,103\n2024-11-03 01:00:00,104\n\
                2024-11-03 02:00:00,105\n",
            );
        let done = bench
            .run("ingest/table", json!({ "path": "epoch.csv", "instant": "time" }))
            .unwrap();
        assert_eq!(floats(&bench.rows(&done), "close"), [100.35, 101.17]);
        assert!(
            done.warnings[0].contains("dates in `time` are read as `epoch_ms`"),
            "{:?}",
            done.warnings
        );
        let with = json!({ "path": "fall.csv", "instant": "time", "zone": "America/New_York" });
        let err = bench.run("ingest/table", with).unwrap_err();
        let hint = err.hint.unwrap();
        assert!(
            hint.contains("the clock of America/New_York is set back") && hint.contains("offset"),
            "{hint}"
        );
    }

    #[test]
    fn wrong_separators_are_refused() {
        let bench = Bench::new();
        bench.file("x.csv", "date,close\n2023-02-13,1\n");
        for (layout, what) in [
            (
                json!({ "like": "plain", "decimal": ";" }),
                "`;` is not a separator of numbers",
            ),
            (
                json!({ "like": "plain", "decimal": ",", "thousands": "," }),
                "it is the decimal sign, too",
            ),
            (
                json!({ "like": "plain", "date_format": "dd.mm" }),
                "`dd.mm` is not a format of dates",
            ),
        ] {
            let problem = plan(&bench, json!({ "path": "x.csv", "layout": layout })).unwrap_err();
            assert_eq!(problem.message, what);
        }
    }
}
