//! Names of columns as they are compared.

/// A header name as it is compared: without blanks, quotes, brackets and `#` around it, in lower case.
pub fn normal(name: &str) -> String {
    let around = |c: char| c.is_whitespace() || "\u{feff}\"'[]".contains(c);
    name.trim_matches(around)
        .trim_start_matches('#')
        .trim_matches(around)
        .to_lowercase()
}
