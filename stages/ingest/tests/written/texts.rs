//! Encodings, lines and containers of texts, and workbooks.

use super::*;
use crate::common::{gzip, zip_of};

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
                let csv = plain(&data, &header, ',');
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

#[test]
fn containers_and_lines_of_many_programs() {
    let mut counts = Counts::default();
    for seed in 0..3 {
        let data = bars(seed, 30 + seed as usize, 50.0, 2);
        let wanted = rows(&data);
        let csv = plain(&data, &HEADER, ',');
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
