//! Ordering constraints between prices, as data checks require them: the low is the lowest price of its bar.

use super::cells::New;
use crate::column::Column;
use crate::document::Document;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array as _, Float64Array};
use std::sync::Arc;

/// Moves prices so that they satisfy the bounds given by other prices.
pub(super) fn keep(document: &Document, from: &[usize], new: &mut New) {
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
        let value = |column: usize, at: usize| {
            let Column::Numbers(old, _) = &document.columns[column] else {
                return None;
            };
            let new = new.get(&column).and_then(|new| new.as_primitive_opt::<Float64Type>());
            let value = new
                .filter(|new| new.is_valid(at))
                .map_or(old[from[at]], |new| new.value(at));
            value.is_finite().then_some(value)
        };
        let moved = |at: usize| {
            let others = others.iter().filter_map(|&other| value(other, at));
            Some(others.fold(value(column, at)?, beyond))
        };
        let moved: Float64Array = (0..from.len()).map(moved).collect();
        new.insert(column, Arc::new(moved));
    }
}
