//! Option classes of United States exchanges.

use super::description::Exercise;

/// Classes that trade on an index under another name than the index's.
const FAMILIES: &[(&str, &str)] = &[
    ("SPXW", "SPX"),
    ("SPXPM", "SPX"),
    ("SPXQ", "SPX"),
    ("NDXP", "NDX"),
    ("RUTW", "RUT"),
    ("VIXW", "VIX"),
    ("XSPW", "XSP"),
    ("DJXW", "DJX"),
];

/// Cash-settled index options of Cboe and Nasdaq, European in style.
const EUROPEAN: &[&str] = &["SPX", "XSP", "NDX", "XND", "RUT", "MRUT", "VIX", "DJX", "XEO"];

/// Classes that settle on opening prices of the day of expiry, and trade last on the day before.
const MORNING: &[&str] = &["SPX", "NDX", "RUT", "VIX", "VIXW", "DJX"];

/// The underlying of an option class: the index for its weekly classes, otherwise the class itself.
pub fn family_of(root: &str) -> &str {
    FAMILIES
        .iter()
        .find(|(class, _)| *class == root)
        .map_or(root, |(_, family)| family)
}

/// The exercise style of options on a US symbol: European on indices, otherwise American.
pub fn exercise_of(symbol: &str) -> Exercise {
    let symbol = symbol.trim_start_matches(['^', '$']);
    if EUROPEAN.contains(&symbol) {
        Exercise::European
    } else {
        Exercise::American
    }
}

/// Returns whether a class is AM-settled.
pub fn is_settled_in_the_morning(root: &str) -> bool {
    MORNING.contains(&root)
}
