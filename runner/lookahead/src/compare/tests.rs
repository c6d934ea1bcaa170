//! Comparisons of small tables of text.

use super::{Compare, Reason};
use crate::change::Change;
use crate::moment::{self, Stamp};
use crate::outputs::Output;
use datasets::Date;

/// The outcome of comparing files up to 2024-01-03, a line for each table.
fn compared(change: Change, exact: bool, aligned: &[Vec<Stamp>], files: [&[(&str, &str)]; 2]) -> Vec<String> {
    let compare = Compare {
        until: Stamp::day(Date::from_ymd(2024, 1, 3).unwrap()).end,
        change,
        exact,
        aligned,
    };
    let [was, became] = files.map(|files| {
        let tables = files
            .iter()
            .flat_map(|(name, text)| Output::file(name, text.as_bytes()));
        tables.collect::<Vec<Output>>()
    });
    let line = |compared: super::Compared| {
        let outcome = match compared.result {
            Ok(same) => format!("{} rows are the same", same.0),
            Err(Reason::Unchecked(reason)) => reason,
            Err(Reason::Moved(found)) => {
                let one = |d: &super::Difference| {
                    let date = d.date.map(|date| date.to_string()).unwrap_or_default();
                    let most = if d.most { ", most" } else { "" };
                    format!(
                        "{} row {} {date} {}: {} -> {}, {} rows{most}",
                        d.column, d.row, d.about, d.was, d.became, d.rows
                    )
                };
                found.iter().map(one).collect::<Vec<_>>().join("; ")
            }
        };
        match compared.rounded {
            0 => format!("{}: {outcome}", compared.name),
            rounded => format!("{}: {outcome}, {rounded} rounded", compared.name),
        }
    };
    compare.outputs(&was, &became).into_iter().map(line).collect()
}

fn one(change: Change, was: &str, became: &str) -> String {
    compared(change, false, &[], [&[("t.csv", was)], &[("t.csv", became)]]).join("\n")
}

const PRICES: &str = "date,symbol,x\n2024-01-01,A,1\n2024-01-02,A,2\n2024-01-03,A,3\n2024-01-04,A,4\n";

#[test]
fn a_changed_cell_is_named_by_column_row_and_date() {
    let later = PRICES.replace("A,4", "A,5");
    assert_eq!(one(Change::OtherValues, PRICES, &later), "t.csv: 3 rows are the same");
    let moved = PRICES.replace("A,2", "A,7");
    assert_eq!(
        one(Change::OtherValues, PRICES, &moved),
        "t.csv: x row 1 2024-01-02 A: 2 -> 7, 1 rows"
    );
    let all = PRICES.replace("A,", "A,1");
    assert!(one(Change::OtherValues, PRICES, &all).ends_with("x row 0 2024-01-01 A: 1 -> 11, 3 rows, most"));
}

#[test]
fn numbers_of_programs_may_differ_by_rounding() {
    let rounded = PRICES.replace("A,2", "A,2.0000000001");
    assert_eq!(
        one(Change::OtherValues, PRICES, &rounded),
        "t.csv: 3 rows are the same, 1 rounded"
    );
    let files: [&[(&str, &str)]; 2] = [&[("t.csv", PRICES)], &[("t.csv", &rounded)]];
    let exact = compared(Change::OtherValues, true, &[], files);
    assert_eq!(exact, ["t.csv: x row 1 2024-01-02 A: 2 -> 2.0000000001, 1 rows"]);
}

#[test]
fn rows_that_are_gone_or_elsewhere_are_found() {
    let fewer = PRICES.replace("2024-01-02,A,2\n", "");
    assert_eq!(
        one(Change::OtherRows, PRICES, &fewer),
        "t.csv: (rows) row 1 2024-01-02 A: 3 rows -> 2 rows, 1 rows"
    );
    let other = PRICES.replace("2024-01-01,A,1\n2024-01-02,A,2\n", "2024-01-02,A,2\n2024-01-01,A,1\n");
    assert_eq!(
        one(Change::OtherRows, PRICES, &other),
        "t.csv: (order) row 0 2024-01-01 A: A,1 -> A,2, 2 rows"
    );
    // The last rows may be written once later ones have come, and no others.
    let late = "date,symbol,x\n2024-01-01,A,1\n2024-01-02,A,2\n";
    assert_eq!(one(Change::Truncated, PRICES, late), "t.csv: 2 rows are the same");
    let early = "date,symbol,x\n2024-01-02,A,2\n2024-01-03,A,3\n";
    assert!(one(Change::Truncated, PRICES, early).starts_with("t.csv: (rows) row 0"));
}

#[test]
fn tables_without_dates_have_those_of_an_input_or_are_unchecked() {
    let lines = |values: &[i32]| values.iter().map(|value| format!("{value} a\n")).collect::<String>();
    let (was, became) = (lines(&[1, 2, 3, 4]), lines(&[1, 2, 3]));
    let dates: Vec<&str> = vec!["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"];
    let aligned = [moment::text_dates(&dates, false).unwrap()];
    let files: [&[(&str, &str)]; 2] = [&[("t.txt", &was)], &[("t.txt", &became)]];
    assert_eq!(
        compared(Change::Truncated, false, &aligned, files),
        ["t.txt: 3 rows are the same"]
    );
    assert_eq!(
        compared(Change::Truncated, false, &[], files),
        ["t.txt: has no dates, and differs"]
    );
    let other = lines(&[1, 9, 3]);
    let files: [&[(&str, &str)]; 2] = [&[("t.txt", &was)], &[("t.txt", &other)]];
    assert_eq!(
        compared(Change::Truncated, false, &aligned, files),
        ["t.txt: line row 1 2024-01-02 : 2 a -> 9 a, 1 rows"]
    );
}

/// A symbol that first appears after the date changes the names of partitions.
#[test]
fn partitions_of_other_names_are_one_table() {
    let (a, b) = PRICES.split_at(PRICES.find("2024-01-03").unwrap());
    let second = format!("date,symbol,x\n{b}");
    let files: [&[(&str, &str)]; 2] = [&[("1.csv", a), ("2.csv", &second)], &[("3.csv", PRICES)]];
    assert_eq!(
        compared(Change::OtherRows, true, &[], files),
        ["1.csv: 3 rows are the same"]
    );
    let files: [&[(&str, &str)]; 2] = [&[("t.csv", PRICES), ("n.txt", "3\n")], &[("t.csv", PRICES)]];
    assert_eq!(
        compared(Change::OtherRows, true, &[], files),
        [
            "n.txt: is not always written, and has no dates",
            "t.csv: 3 rows are the same"
        ]
    );
}
