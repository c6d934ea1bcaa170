//! The usual names of columns.

/// Known names of columns, in lower case and without punctuation; the most reliable come first.
const NAMES: &str = include_str!("../column_names.txt");

/// A name in lower case and without punctuation.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .collect::<String>()
        .to_lowercase()
}

/// The usual names of our column `ours`.
fn usual(ours: &str) -> impl Iterator<Item = &'static str> {
    let line = NAMES
        .lines()
        .find_map(|line| line.strip_prefix(ours)?.strip_prefix(": "));
    line.unwrap_or_default().split(' ')
}

/// Returns whether a name is a usual one of our column `ours`.
pub(crate) fn is_usual(ours: &str, name: &str) -> bool {
    let name = plain(name);
    usual(ours).any(|usual| usual == name)
}

/// Names of symbols that other columns have, too.
const WEAK: [&str; 6] = ["asset", "instrument", "security", "stock", "act", "underlyer"];

/// Returns whether a name is a usual one of symbols, and of nothing else.
pub(crate) fn is_symbol(name: &str) -> bool {
    is_usual("symbol", name) && !WEAK.contains(&&*plain(name))
}

/// The names in a header that are usual ones of symbols, the most reliable first.
pub(crate) fn symbol_names(header: &[String]) -> Vec<&String> {
    let rank = |name: &String| {
        let name = plain(name);
        usual("symbol").position(|usual| usual == name)
    };
    let mut names: Vec<(usize, &String)> =
        header.iter().filter_map(|name| Some((rank(name)?, name))).collect();
    names.sort_by_key(|(rank, _)| *rank);
    names.into_iter().map(|(_, name)| name).collect()
}
