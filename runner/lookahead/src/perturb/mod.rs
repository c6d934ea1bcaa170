//! Perturbed data after a date. Each cell keeps its type and stays plausible, so that data checks still pass:
//! integers stay integers, a text is replaced by another text of its column, a high stays the highest price
//! of its bar. No ratio of two cells is preserved.
//!
//! A perturbed row does not depend on the date after which the data is changed, so that it is computed only
//! once.

mod bounds;
mod cells;
mod role;
mod rows;
#[cfg(test)]
mod tests;
mod values;

use super::change::{About, Change};
use super::document::{Document, Packed};
use super::moment::Stamp;
use arrow_array::RecordBatch;
use datasets::Date;
use datasets::layout::SymbolFormat;
use std::collections::BTreeSet;

/// A changed version of a file.
pub(crate) struct New {
    pub bytes: Vec<u8>,
    /// The number of rows after the moment, which the change affects.
    pub rows: u64,
    /// The number of rows in the version.
    pub left: usize,
}

/// Creates a version of a file; `None` if the file has no rows after the moment.
pub(crate) fn version(packed: &Packed, about: &About) -> Result<Option<New>, String> {
    let is_changed = |stamp: &&Stamp| stamp.end > about.until;
    let rows = packed
        .documents()
        .flat_map(|document| &document.stamps)
        .filter(is_changed)
        .count() as u64;
    if rows == 0 {
        return Ok(None);
    }
    let mut left = 0;
    let bytes = packed.write(|document| {
        let table = document.version(about)?;
        left += table.num_rows();
        Ok(table)
    })?;
    Ok(Some(New { bytes, rows, left }))
}

impl Document {
    /// Returns the table with the rows after a moment changed.
    fn version(&self, about: &About) -> Result<RecordBatch, String> {
        let is_known = |row: usize| self.stamps[row].end <= about.until;
        let (place, make): (_, fn(&Self) -> _) = match about.change {
            Change::Truncated => {
                let known = (0..self.rows()).filter(|&row| is_known(row));
                return self.picked(&self.batch, known.map(|row| (0, row)).collect());
            }
            Change::OtherValues => (0, values::all),
            Change::OtherRows => (1, rows::all),
        };
        let variant = self.variants[place]
            .get_or_init(|| make(self))
            .as_ref()
            .map_err(Clone::clone)?;
        let (codes, symbols) = self.symbols();
        let ends: Vec<bool> = symbols.iter().map(|symbol| about.delisted.contains(symbol)).collect();
        let stays = |&new: &usize| {
            let row = variant.from[new];
            !(is_known(row) || about.change == Change::OtherRows && ends[codes[row] as usize])
        };
        let mut picks = Vec::with_capacity(variant.from.len());
        let mut next = 0;
        for row in 0..self.rows() {
            if is_known(row) {
                picks.push((0, row));
            }
            while next < variant.in_place && variant.from[next] == row {
                picks.extend(Some(next).filter(stays).map(|new| (1, new)));
                next += 1;
            }
        }
        picks.extend((variant.in_place..variant.from.len()).filter(stays).map(|new| (1, new)));
        self.picked(&variant.batch, picks)
    }
}

/// True if the text is the symbol of an option contract.
fn is_contract(text: &str) -> bool {
    [SymbolFormat::Occ, SymbolFormat::Deribit]
        .iter()
        .any(|format| format.parse(text).is_some())
}

/// The third of the symbols that ends: at least one, but none if there is only one symbol.
pub(crate) fn delisted(symbols: &BTreeSet<String>, seed: Date) -> BTreeSet<String> {
    if symbols.len() < 2 {
        return BTreeSet::new();
    }
    let mut ranked: Vec<&String> = symbols.iter().collect();
    ranked.sort_by_key(|symbol| hash(&format!("{seed} {symbol}")));
    ranked.truncate((symbols.len() / 3).max(1));
    ranked.into_iter().cloned().collect()
}

/// A pseudo-random number between 0 and 1, derived from a moment and a position.
fn chance(stamp: Stamp, place: u64) -> f64 {
    let mut x = (stamp.start / 1000).cast_unsigned().rotate_left(20)
        ^ place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The finaliser of splitmix64.
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as f64 / u64::MAX as f64
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
