//! Types and rows of perturbed data.

use super::{New, version as changed};
use crate::change::{About, Change};
use crate::document::Packed;
use crate::moment::Stamp;
use crate::table;
use arrow_array::{ArrayRef, BooleanArray, Date32Array, Float32Array, Int32Array, RecordBatch, StringArray};
use datasets::Date;
use stages_table_file::Container;
use stages_table_file::packing::Packing;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

fn until(day: i32) -> i64 {
    Stamp::day(Date(day)).end
}

/// Lines of a text that is perturbed after a day.
fn lines(text: &str, change: Change, day: i32, delisted: &[&str]) -> Vec<String> {
    let new = version("t.csv", text.as_bytes(), change, until(day), delisted);
    let lines: Vec<String> = String::from_utf8(new.bytes)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(lines.len(), new.left + 1);
    lines
}

fn version(path: &str, bytes: &[u8], change: Change, until: i64, delisted: &[&str]) -> New {
    let packed = Packed::read(path, bytes).unwrap().unwrap();
    let delisted: BTreeSet<String> = delisted.iter().map(|symbol| (*symbol).to_owned()).collect();
    changed(
        &packed,
        &About {
            change,
            until,
            delisted,
        },
    )
    .unwrap()
    .unwrap()
}

#[test]
fn types_of_text_are_respected() {
    let mut text = "date,open,high,low,close,volume,share,regime,code,time_ms\n".to_owned();
    for i in 0..40 {
        let open = 100.0 + f64::from(i % 7);
        let cells = [
            format!("{open:.2},{:.2},{:.2},{:.2}", open + 2.0, open - 1.0, open + 1.0),
            format!("{},0.{:02}", 100 + i, 10 + i),
            format!(
                "{},00{},{}",
                ["calm", "wild"][(i % 2) as usize],
                i % 10,
                1_700_000_000_000i64 + i64::from(i)
            ),
        ];
        text.push_str(&format!("{},{}\n", Date(19_700 + i), cells.join(",")));
    }
    let old: Vec<&str> = text.lines().collect();
    let new = lines(&text, Change::OtherValues, 19_720, &[]);
    assert_eq!(
        (new.len(), &new[..22]),
        (
            old.len(),
            &old.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()[..22]
        )
    );
    let mut texts = 0;
    for (old, new) in old.iter().zip(&new).skip(22) {
        let (a, b): (Vec<&str>, Vec<&str>) = (old.split(',').collect(), new.split(',').collect());
        assert_eq!((a[0], a[8], a[9]), (b[0], b[8], b[9]), "{new}");
        let number = |i: usize| b[i].parse::<f64>().unwrap();
        let (open, high, low, close) = (number(1), number(2), number(3), number(4));
        assert!(low <= open.min(close) && open.max(close) <= high, "{new}");
        assert!(a[4] != b[4] && b[4].split_once('.').unwrap().1.len() == 2, "{new}");
        assert!(a[5] != b[5] && b[5].parse::<u32>().is_ok(), "{new}");
        assert!(
            (0.0..=1.0).contains(&number(6)) && ["calm", "wild"].contains(&b[7]),
            "{new}"
        );
        texts += usize::from(a[7] != b[7]);
    }
    assert!(texts > 3, "{texts}");
}

#[test]
fn rows_end_and_begin() {
    let mut text = "date,symbol,close\n".to_owned();
    for i in 0..40 {
        for symbol in ["A", "B", "C"] {
            text.push_str(&format!("{},{symbol},{}.5\n", Date(19_700 + i), 10 + i));
        }
    }
    let new = lines(&text, Change::OtherRows, 19_720, &["B"]);
    let known = 1 + 3 * 21;
    assert_eq!(
        new[..known],
        text.lines().map(str::to_owned).collect::<Vec<_>>()[..known]
    );
    let count = |symbol: &str| {
        new[known..]
            .iter()
            .filter(|line| line.contains(&format!(",{symbol},")))
            .count()
    };
    assert_eq!(count("B"), 0);
    assert!(
        (8..22).contains(&count("A")) && (8..22).contains(&count("C")),
        "{new:#?}"
    );
    assert!(count("AZ") > 8, "{new:#?}");
    assert!(new.last().unwrap().as_str() > "2023-12-16", "{new:#?}");
}

#[test]
fn types_of_columns_are_respected() {
    let columns: [(&str, ArrayRef); 5] = [
        ("date", Arc::new(Date32Array::from_iter_values(0..40))),
        ("n", Arc::new(Int32Array::from_iter_values((0..40).map(|i| i * 100)))),
        ("x", Arc::new(Float32Array::from_iter_values((0..40u8).map(f32::from)))),
        (
            "flag",
            Arc::new(BooleanArray::from_iter((0..40).map(|i| Some(i % 3 == 0)))),
        ),
        (
            "text",
            Arc::new(StringArray::from_iter_values((0..40).map(|i| ["a", "b", "c"][i % 3]))),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for container in [Container::Parquet, Container::ArrowFile, Container::ArrowStream] {
        let bytes = container.write(&batch).unwrap();
        let read = |change| {
            container
                .read(&version("t", &bytes, change, until(19), &[]).bytes.into())
                .unwrap()
        };
        let new = read(Change::OtherValues);
        assert_eq!(new.slice(0, 20), batch.slice(0, 20));
        assert_eq!(new.schema().fields(), batch.schema().fields());
        for i in 1..5 {
            assert_ne!(new.column(i), batch.column(i), "column {i}");
        }
        assert_eq!(read(Change::Truncated), batch.slice(0, 20));
    }
}

/// A version of each form of a file has the rows up to the date, and the file's own form.
#[test]
fn every_form_is_kept() {
    let day = until(19_724);
    let date = |i: i32| Date(19_723 + i).to_string();
    let lines: Vec<String> = (0..4).map(|i| format!("\"{}\",{i}.50,\"a, b\"", date(i))).collect();
    let csv = format!("date,x,s\n{}\n", lines.join("\n"));
    let known = format!("date,x,s\n{}\n", lines[..2].join("\n"));
    let text = |new: New| String::from_utf8(new.bytes).unwrap();
    assert_eq!(
        text(version("t.csv", csv.as_bytes(), Change::Truncated, day, &[])),
        known
    );
    assert!(text(version("t.csv", csv.as_bytes(), Change::OtherValues, day, &[])).starts_with(&known));
    // Objects, of which some do not have a field, or have none of a value.
    let rows: Vec<String> = (0..4)
        .map(|i| match i {
            1 => format!(r#"{{"date": "{}", "x": null}}"#, date(i)),
            i => format!(r#"{{"date": "{}", "x": {i}, "list": [{i}, "a"]}}"#, date(i)),
        })
        .collect();
    let (lines, array) = (rows.join("\n"), format!("[{}]", rows.join(",")));
    let new = text(version("t.jsonl", lines.as_bytes(), Change::Truncated, day, &[]));
    assert_eq!(
        new.replace(r#"[0,"a"]"#, r#"[0, "a"]"#),
        format!("{}\n", rows[..2].join("\n"))
    );
    let new = text(version("t.json", array.as_bytes(), Change::OtherValues, day, &[]));
    let new: Vec<serde_json::Value> = serde_json::from_str(&new).unwrap();
    assert_eq!(new.len(), 4);
    assert_eq!(
        new[..2],
        serde_json::from_str::<Vec<serde_json::Value>>(&array).unwrap()[..2]
    );
    assert!(new[2]["x"].is_i64() && new[2]["x"] != 2 && new[2]["list"] == serde_json::json!([2, "a"]));
    // Packed, alone and with a file without dates.
    let file = |name| (name, Cow::Borrowed(csv.as_bytes()));
    let packed = Packing::Gzip.pack(vec![file("t.csv")]).unwrap();
    let new = version("t.csv.gz", &packed, Change::Truncated, day, &[]);
    assert_eq!((new.rows, new.left), (2, 2));
    assert_eq!(table::unpack("t.csv.gz", &new.bytes).unwrap().1[0].1, known.as_bytes());
    let mut members = vec![file("a.csv"), file("b.csv")];
    members.push(("notes.txt", b"nothing".as_slice().into()));
    let new = version(
        "t.zip",
        &Packing::Zip.pack(members).unwrap(),
        Change::Truncated,
        day,
        &[],
    );
    let (packing, unpacked) = table::unpack("t.zip", &new.bytes).unwrap();
    assert_eq!((packing, unpacked.len(), new.left), (Packing::Zip, 3, 4));
    assert_eq!(
        (&*unpacked[1].1, &*unpacked[2].1),
        (known.as_bytes(), b"nothing".as_slice())
    );
}

/// A file that cannot be changed is reported; one without dates is left as it is.
#[test]
fn files_that_cannot_be_changed_say_why() {
    let reason = |path: &str, text: &str| match Packed::read(path, text.as_bytes()) {
        Ok(Some(_)) => "can be changed".to_owned(),
        Ok(None) => "has no dates".to_owned(),
        Err(reason) => reason,
    };
    let cannot = "is of a format whose future cannot be changed";
    assert_eq!(reason("t.csv", "date,x\n2024-01-01,1\n"), "can be changed");
    assert_eq!(reason("t.txt", "on 2024-01-01 rain\nand on 2024-01-02 none\n"), cannot);
    assert_eq!(
        reason("t.py", "on 2024-01-01 rain\nand on 2024-01-02 none\n"),
        "has no dates"
    );
    assert_eq!(reason("t.json", r#"{"date": ["2024-01-01"], "x": [2]}"#), cannot);
    assert_eq!(reason("t.csv", "symbol,x\nA,1\n"), "has no dates");
    assert_eq!(reason("bars/2024-01-01.csv", "symbol,x\nA,1\n"), "can be changed");
    let some = "day_seen,x\n2024-01-01,1\n2024-01-02,1\nlater,1\n";
    assert_eq!(
        reason("t.csv", some),
        "has rows without a date in the column `day_seen`"
    );
    assert_eq!(reason("t.bin", "a\0b"), "is of a format that cannot be read (`.bin`)");
}
