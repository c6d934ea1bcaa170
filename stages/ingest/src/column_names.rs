//! The usual names of columns, in several languages.

/// Known names by our columns, in lower case and without punctuation; the most reliable come first.
pub(crate) const NAMES: &str = include_str!("column_names.txt");

/// A name in lower case and without punctuation.
pub(crate) fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .collect::<String>()
        .to_lowercase()
}

/// Returns whether a name is a known one of our column `ours`.
pub(crate) fn is(ours: &str, name: &str) -> bool {
    let name = plain(name);
    let line = NAMES
        .lines()
        .find_map(|line| line.strip_prefix(ours)?.strip_prefix(": "));
    line.is_some_and(|names| names.split(' ').any(|known| known == name))
}

/// Returns whether a name is a known one of any column.
pub(crate) fn is_known(name: &str) -> bool {
    let name = plain(name);
    !name.is_empty()
        && NAMES
            .lines()
            .any(|line| line.split(' ').skip(1).any(|known| known == name))
}
