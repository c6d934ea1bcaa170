//! The normalised form in which column names are compared.

/// Normalises a header name for comparison: removes surrounding blanks, quotes, brackets and `#`, and
/// converts it to lower case.
pub fn normal(name: &str) -> String {
    let around = |c: char| c.is_whitespace() || "\u{feff}\"'[]".contains(c);
    name.trim_matches(around)
        .trim_start_matches('#')
        .trim_matches(around)
        .to_lowercase()
}
