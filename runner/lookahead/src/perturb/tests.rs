//! Types and rows of perturbed data.

use super::{New, version as changed};
use crate::change::{About, Change};
use crate::document::Packed;
use crate::moment::Stamp;
use crate::table::Container;
use arrow_array::{ArrayRef, BooleanArray, Date32Array, Float32Array, Int32Array, RecordBatch, StringArray};
use datasets::Date;
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
                .read(&version("t", &bytes, change, until(19), &[]).bytes)
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
