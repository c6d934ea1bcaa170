//! The names of columns with dates.

use crate::names;

/// True if a column of this name holds the time at which its row was known.
pub(crate) fn is_date_name(name: &str) -> bool {
    let name = name
        .trim_matches(|c: char| !c.is_ascii_alphanumeric())
        .to_ascii_lowercase();
    let name = name.replace([' ', '-'], "_");
    names::of("date").any(|known| known == name)
}

/// True if a column of this name holds dates that do not tell when its row was known.
pub(super) fn is_other_date_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["expir", "matur", "settle", "payment", "birth", "listed", "ipo"]
        .iter()
        .any(|part| name.contains(part))
}
