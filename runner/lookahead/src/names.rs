//! Names of columns by what they hold: `symbol` (the symbol of a row), `date` (the time at which it was
//! known), and `key_part` (parts of the names of columns that identify it).

/// The names of columns that hold this.
pub(crate) fn of(what: &str) -> impl Iterator<Item = &'static str> {
    let lines = include_str!("names.txt").lines();
    let names = lines.filter_map(move |line| line.strip_prefix(what)?.strip_prefix(": "));
    names.flat_map(str::split_whitespace)
}
