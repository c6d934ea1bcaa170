//! Other values of the same types.

use super::bounds;
use super::cells::{self, New};
use super::role::{Role, role};
use super::{chance, hash};
use crate::column::{Column, MISSING};
use crate::document::{Document, Variant};
use arrow_array::{ArrayRef, BooleanArray, Date32Array, Float64Array, StringArray};
use std::sync::Arc;

/// Replaces the values in all rows.
pub(super) fn all(document: &Document) -> Result<Variant, String> {
    let from: Vec<usize> = (0..document.rows()).collect();
    let new = columns(document, &from, &vec![1.0; from.len()]);
    Ok(Variant {
        batch: cells::rows(document, &from, &new)?,
        in_place: from.len(),
        from,
    })
}

/// The replaced columns of some rows: numbers are multiplied by the row's factor, which moves them 5 to 15 %
/// up or down.
pub(super) fn columns(document: &Document, from: &[usize], factors: &[f64]) -> New {
    let (codes, symbols) = document.symbols();
    let hashes: Vec<u64> = symbols.iter().map(|symbol| hash(symbol)).collect();
    // The columns of a row share the direction of the move, and most of its size.
    let row = |&row: &usize| {
        let (stamp, symbol) = (document.stamps[row], hashes[codes[row] as usize]);
        (chance(stamp, symbol) < 0.5, 0.05 + 0.09 * chance(stamp, symbol ^ 7))
    };
    let moves: Vec<(bool, f64)> = from.iter().map(row).collect();
    let mut new = New::new();
    for column in 0..document.columns.len() {
        let role = role(document, column);
        let draw = |row: usize, salt: u64| {
            let place = (row as u64) << 16 | column as u64;
            chance(document.stamps[row], place ^ salt)
        };
        let replaced: ArrayRef = match (&role, &document.columns[column]) {
            (Role::Number { low, high }, Column::Numbers(values, integers)) => {
                let cell = |((&row, factor), (up, noise)): ((&usize, &f64), &(bool, f64))| {
                    let noise = noise + 0.01 * draw(row, 0);
                    let factor = factor * if *up { 1.0 + noise } else { 1.0 - noise };
                    match values[row] {
                        value if !value.is_finite() => None,
                        value if integers[row] => Some(integer(value, factor, *up, *low, *high)),
                        value => float(&document.names[column], value, factor, *low, *high),
                    }
                };
                let cells = from.iter().zip(factors).zip(&moves).map(cell);
                Arc::new(cells.collect::<Float64Array>())
            }
            (Role::Codes(choices), Column::Numbers(values, _)) => {
                let cell = |&row: &usize| {
                    let own = choices.iter().position(|choice| *choice == values[row])?;
                    other(own, choices.len(), draw(row, 11)).map(|place| choices[place])
                };
                Arc::new(from.iter().map(cell).collect::<Float64Array>())
            }
            (Role::Texts, Column::Texts(codes, choices)) => {
                let cell = |&row: &usize| match codes[row] {
                    MISSING => None,
                    own => other(own as usize, choices.len(), draw(row, 11)).map(|place| &choices[place]),
                };
                Arc::new(from.iter().map(cell).collect::<StringArray>())
            }
            (Role::Flag, Column::Flags(flags)) => {
                let cell = |&row: &usize| flags[row].map(|flag| flag ^ (draw(row, 0) < 0.5));
                Arc::new(from.iter().map(cell).collect::<BooleanArray>())
            }
            (Role::Date, Column::Days(days)) => {
                let cell = |&row: &usize| days[row].map(|day| if draw(row, 0) < 0.5 { day + 7 } else { day });
                Arc::new(from.iter().map(cell).collect::<Date32Array>())
            }
            _ => continue,
        };
        new.insert(column, replaced);
    }
    bounds::keep(document, from, &mut new);
    new
}

/// Picks another of some choices, in about half of the cells.
fn other(own: usize, count: usize, chance: f64) -> Option<usize> {
    let others = count - 1;
    let place = (chance * 2.0 * others as f64) as usize;
    (place < others).then(|| if place < own { place } else { place + 1 })
}

fn integer(value: f64, factor: f64, up: bool, low: f64, high: f64) -> f64 {
    let scaled = (value * factor).round().clamp(low, high);
    if scaled != value {
        scaled
    } else if up || low >= 0.0 && value <= 0.0 {
        scaled + 1.0
    } else {
        scaled - 1.0
    }
}

/// The new value; `None` if the old value is kept.
fn float(name: &str, value: f64, factor: f64, low: f64, high: f64) -> Option<f64> {
    // A contract without a bid stays without a bid.
    if value == 0.0 && ["bid", "volume", "open_interest"].contains(&name) {
        return None;
    }
    let new = if value == 0.0 {
        1e-3 * factor.abs()
    } else {
        value * factor
    };
    let new = new.clamp(low, high);
    // A value at a bound moves to the other side.
    Some(match new == value {
        true => value * 0.9 + if value == 0.0 { 1e-3 } else { 0.0 },
        false => new,
    })
}
