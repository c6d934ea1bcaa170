//! The order of rows, and the uniqueness of their keys.

use super::columns::Table;
use super::of_contract::is_by_contract;
use crate::error::StageError;
use crate::port::PortType;
use crate::table;
use crate::visible::visible_line;
use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;
use std::cmp::Ordering;

/// Sorts the rows of all tables by their keys, which must be unique.
///
/// # Errors
/// When two rows have the same key; the error names both places.
pub(super) fn sorted(
    all: &RecordBatch,
    ty: PortType,
    tables: &[(Table, RecordBatch)],
) -> Result<RecordBatch, StageError> {
    let times = table::snapshot_times(all)?;
    let kinds = match ty {
        PortType::CorporateActions => Some(table::texts(all, "kind")?),
        _ => None,
    };
    let has_contracts = ty != PortType::Features || is_by_contract(all);
    let contracts = match ty {
        PortType::Greeks | PortType::OptionChain | PortType::Features if has_contracts => Some((
            table::dates(all, "expiry")?,
            table::texts(all, "root")?,
            table::floats_or_nan(all, "strike")?,
            table::bools(all, "call")?,
        )),
        _ => None,
    };
    // The order of a chain: calls before puts.
    let of_contract = |a: usize, b: usize| match &contracts {
        Some((expiries, roots, strikes, calls)) => expiries[a]
            .cmp(&expiries[b])
            .then_with(|| roots.value(a).cmp(roots.value(b)))
            .then(strikes[a].total_cmp(&strikes[b]))
            .then(calls.value(b).cmp(&calls.value(a))),
        None => Ordering::Equal,
    };
    let (symbols, tenors) = match ty {
        PortType::Rates => (None, table::floats_or_nan(all, "tenor_years")?),
        _ => (Some(table::texts(all, "symbol")?), Vec::new()),
    };
    let compare = |a: &u32, b: &u32| -> Ordering {
        let (a, b) = (*a as usize, *b as usize);
        match symbols {
            Some(symbols) => symbols
                .value(a)
                .cmp(symbols.value(b))
                .then(times[a].cmp(&times[b]))
                .then_with(|| kinds.map_or(Ordering::Equal, |kinds| kinds.value(a).cmp(kinds.value(b))))
                .then_with(|| of_contract(a, b)),
            // Finite, and -0 is 0.
            None => times[a]
                .cmp(&times[b])
                .then(tenors[a].partial_cmp(&tenors[b]).unwrap_or(Ordering::Equal)),
        }
    };
    let rows = u32::try_from(all.num_rows()).map_err(|_| {
        StageError::new("the output has more than 4,294,967,295 rows").hint("split it over several stages")
    })?;
    let mut order: Vec<u32> = (0..rows).collect();
    // A stable sort, so that of two rows with the same key the message names the later as the second.
    order.sort_by(compare);
    if let Some(pair) = order.windows(2).find(|pair| compare(&pair[0], &pair[1]).is_eq()) {
        let place = |row: u32| {
            let mut row = row as usize;
            for (table, batch) in tables {
                if row < batch.num_rows() {
                    return table.place(row);
                }
                row -= batch.num_rows();
            }
            String::new()
        };
        let row = pair[1] as usize;
        let key = match (symbols, &contracts) {
            (Some(symbols), Some((expiries, roots, strikes, calls))) => format!(
                "{} ({}, expiry {}, strike {}, {})",
                visible_line(symbols.value(row)),
                visible_line(roots.value(row)),
                expiries[row],
                strikes[row],
                if calls.value(row) { "call" } else { "put" }
            ),
            (Some(symbols), None) => visible_line(symbols.value(row)).into_owned(),
            (None, _) => format!("tenor {}", tenors[row]),
        };
        return Err(StageError::new(format!(
            "{}: a second row of {key} on {}; the first is {}",
            place(pair[1]),
            times[row],
            place(pair[0])
        ))
        .hint("a key has one row: keep one of them"));
    }
    if order.is_sorted() {
        return Ok(all.clone());
    }
    Ok(take_record_batch(all, &UInt32Array::from(order))?)
}
