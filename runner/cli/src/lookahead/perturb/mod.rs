//! Perturbed data after a date. Each cell keeps its type and stays plausible, so that checks of data still pass: integers stay integers, a text
//! is another text of its column, a high is the highest price of its bar. No ratio of two cells is preserved.
//!
//! The perturbed row does not depend on the date after which the data is changed, so that it is computed once.

mod bounds;
mod role;
mod rows;
#[cfg(test)]
mod tests;
mod values;

use super::document::{Document, Variant};
use super::moment::Stamp;
use datasets::Date;
use std::collections::BTreeSet;

/// A manner of perturbing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Other values of the same types.
    Values,
    /// Rows are removed and added, and values move far.
    Rows,
}

impl Manner {
    /// True if symbols end.
    pub fn moves_rows(self) -> bool {
        self == Self::Rows
    }
}

/// All rows of a table, perturbed.
pub fn variant(document: &Document, manner: Manner) -> Variant {
    match manner {
        Manner::Values => values::all(document),
        Manner::Rows => rows::all(document),
    }
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
