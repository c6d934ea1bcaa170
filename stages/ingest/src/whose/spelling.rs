//! Names of symbols in messages.

use std::collections::BTreeMap;

/// The number of names that a message has.
const NAMED: usize = 5;

/// The pairs of symbols that differ in case alone.
pub(crate) fn other_spellings<'a>(symbols: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, &'a str)> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut pairs = Vec::new();
    for symbol in symbols {
        match seen.get(&symbol.to_uppercase()) {
            Some(other) if *other != symbol => pairs.push((*other, symbol)),
            Some(_) => {}
            None => {
                seen.insert(symbol.to_uppercase(), symbol);
            }
        }
    }
    pairs
}

/// The first names of a list, and the number of the others.
pub(crate) fn listed<T: std::fmt::Display>(names: &[T]) -> String {
    let named: Vec<String> = names.iter().take(NAMED).map(ToString::to_string).collect();
    match names.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
