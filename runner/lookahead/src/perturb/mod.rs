//! Perturbed data after a date. Each cell keeps its type and stays plausible, so that checks of data still
//! pass: integers stay integers, a text is another text of its column, a high is the highest price of its
//! bar. No ratio of two cells is preserved.
//!
//! The perturbed row does not depend on the date after which the data is changed, so that it is computed
//! once.

mod bounds;
mod cells;
mod role;
mod rows;
#[cfg(test)]
mod tests;
mod values;

use super::document::Document;
use super::moment::Stamp;
use arrow_array::RecordBatch;
use datasets::Date;
use datasets::layout::SymbolFormat;
use std::collections::BTreeSet;

/// A manner of perturbing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Other values of the same types.
    Values,
    /// Rows are removed and added, and values move far.
    Rows,
}

/// The perturbed rows of a table, whatever the date after which they stand.
pub struct Variant {
    /// The old row of each.
    from: Vec<usize>,
    /// The number of rows that stand where the old ones do, in their order; the others come after all.
    in_place: usize,
    batch: RecordBatch,
}

impl Document {
    /// The table, its rows after a moment perturbed and those of `delisted` symbols left out.
    ///
    /// # Errors
    /// When a column's type cannot be written.
    pub fn perturbed(
        &self,
        manner: Manner,
        until: i64,
        delisted: &BTreeSet<String>,
    ) -> Result<RecordBatch, String> {
        let variant = self.variants[manner as usize].get_or_init(|| match manner {
            Manner::Values => values::all(self),
            Manner::Rows => rows::all(self),
        });
        let variant = variant.as_ref().map_err(Clone::clone)?;
        let (codes, symbols) = self.symbols();
        let ends: Vec<bool> = symbols.iter().map(|symbol| delisted.contains(symbol)).collect();
        let is_known = |row: usize| self.stamps[row].end <= until;
        let stays = |&new: &usize| {
            let row = variant.from[new];
            !(is_known(row) || manner == Manner::Rows && ends[codes[row] as usize])
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
        self.picked(&variant.batch, picks.into_iter())
    }
}

/// True for the symbol of an option contract.
fn is_contract(text: &str) -> bool {
    [SymbolFormat::Occ, SymbolFormat::Deribit]
        .iter()
        .any(|format| format.parse(text).is_some())
}

/// The third of the symbols that end, at least one, and none where there is only one.
pub fn delisted(symbols: &BTreeSet<String>, seed: Date) -> BTreeSet<String> {
    if symbols.len() < 2 {
        return BTreeSet::new();
    }
    let mut ranked: Vec<&String> = symbols.iter().collect();
    ranked.sort_by_key(|symbol| hash(&format!("{seed} {symbol}")));
    ranked.truncate((symbols.len() / 3).max(1));
    ranked.into_iter().cloned().collect()
}

/// A pseudo-random number from 0 to 1 of a moment and a position.
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
