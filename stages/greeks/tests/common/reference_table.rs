//! Tables of independent numbers (`tests/reference/README.md`).

use std::collections::BTreeMap;

/// A row by the names of its columns.
pub(crate) type Row = BTreeMap<String, String>;

pub(crate) fn table(text: &str) -> Vec<Row> {
    let mut lines = text.lines();
    let header: Vec<_> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    lines
        .map(|line| header.iter().cloned().zip(line.split(',').map(str::to_owned)).collect())
        .collect()
}

pub(crate) fn number(row: &Row, name: &str) -> f64 {
    row[name].parse().unwrap_or(f64::NAN)
}
