//! Prices beyond others, as checks of data require: the low is the lowest of its bar.

use crate::column::Column;
use crate::document::{Document, New};
use std::collections::BTreeMap;

/// Moves prices beyond those that bound them.
pub fn keep(document: &Document, from: &[usize], new: &mut BTreeMap<usize, New>) {
    type Rule<'r> = (&'r str, &'r [&'r str], fn(f64, f64) -> f64);
    let rules: [Rule; 3] = [
        ("low", &["open", "close", "high"], f64::min),
        ("high", &["open", "close", "low"], f64::max),
        ("ask", &["bid"], f64::max),
    ];
    let place = |name: &str| document.names.iter().position(|other| other == name);
    for (name, others, beyond) in rules {
        let others: Vec<usize> = others.iter().filter_map(|other| place(other)).collect();
        let Some(column) = place(name).filter(|_| !others.is_empty()) else {
            continue;
        };
        let value = |column: usize, at: usize, new: &BTreeMap<usize, New>| {
            let Column::Numbers(old, _) = &document.columns[column] else {
                return f64::NAN;
            };
            match new.get(&column) {
                Some(New::Numbers(values)) if values[at].is_finite() => values[at],
                _ => old[from[at]],
            }
        };
        let moved = |at: usize| {
            let own = value(column, at, new);
            let others = others
                .iter()
                .map(|&other| value(other, at, new))
                .filter(|value| value.is_finite());
            if own.is_finite() {
                others.fold(own, beyond)
            } else {
                f64::NAN
            }
        };
        let moved: Vec<f64> = (0..from.len()).map(moved).collect();
        new.insert(column, New::Numbers(moved));
    }
}
