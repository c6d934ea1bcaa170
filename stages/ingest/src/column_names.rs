//! The usual names of columns, in several languages.

/// Known names by our columns, in lower case and without punctuation; the most reliable come first.
const NAMES: &str = include_str!("column_names.txt");

/// A name in lower case and without punctuation.
pub(crate) fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .collect::<String>()
        .to_lowercase()
}

/// The known names of our column `ours`, the most reliable first.
pub(crate) fn of(ours: &str) -> impl Iterator<Item = &'static str> {
    let line = NAMES
        .lines()
        .find_map(|line| line.strip_prefix(ours)?.strip_prefix(": "));
    line.into_iter().flat_map(|names| names.split(' '))
}

/// Returns whether a name is a known one of our column `ours`.
pub fn is(ours: &str, name: &str) -> bool {
    let name = plain(name);
    of(ours).any(|known| known == name)
}

/// Returns whether a name is a known one of any column.
pub(crate) fn is_known(name: &str) -> bool {
    let name = plain(name);
    !name.is_empty()
        && NAMES
            .lines()
            .any(|line| line.split(' ').skip(1).any(|known| known == name))
}
