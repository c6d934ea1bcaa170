//! Names: the form in which they are compared, and the most similar of several.

use strsim::osa_distance;

/// The name most similar to `wanted`, if any is similar at all.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (osa_distance(&wanted.to_lowercase(), &name.to_lowercase()), name))
        .min()
        .filter(|(distance, _)| *distance <= (wanted.chars().count() / 3).max(1))
        .map(|(_, name)| name)
}

/// The header most similar to a name, for a hint: the nearest one, or else one that has the same letters when
/// punctuation is ignored.
pub fn nearest_header<'a>(wanted: &str, header: &'a [String]) -> Option<&'a str> {
    let plain = |name: &str| -> String {
        name.chars()
            .filter(|c| c.is_alphanumeric())
            .collect::<String>()
            .to_lowercase()
    };
    let wanted_plain = plain(wanted);
    nearest(wanted, header.iter().map(|name| name.trim())).or_else(|| {
        header
            .iter()
            .map(|name| name.trim())
            .filter(|name| {
                let name = plain(name);
                let shorter = name.len().min(wanted_plain.len());
                shorter >= 2 && (name.contains(&wanted_plain) || wanted_plain.contains(&name))
            })
            .min_by_key(|name| name.len().abs_diff(wanted.len()))
    })
}

/// A hint, `did you mean …`, or else the list of all names.
pub fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// Normalises a header name for comparison: removes surrounding blanks, quotes, brackets and `#`, and
/// converts it to lower case.
pub fn normal(name: &str) -> String {
    bare(name).to_lowercase()
}

/// Returns whether `normal` is the normalised form of a header name.
pub(super) fn is_named(name: &str, normal: &str) -> bool {
    let bare = bare(name);
    match bare.is_ascii() {
        true => bare.eq_ignore_ascii_case(normal),
        false => bare.to_lowercase() == normal,
    }
}

/// A header name without surrounding blanks, quotes, brackets and `#`.
fn bare(name: &str) -> &str {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    if is_end(name.as_bytes().first()) && is_end(name.as_bytes().last()) {
        return name;
    }
    let around = |c: char| c.is_whitespace() || "\u{feff}\"'[]".contains(c);
    name.trim_matches(around).trim_start_matches('#').trim_matches(around)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(nearest("stirke", ["strike", "date"]), Some("strike"));
        assert_eq!(nearest("zzz", ["strike", "date"]), None);
        let header = ["Bid_Price".to_owned(), "Quote Date".to_owned()];
        assert_eq!(nearest_header("bid", &header), Some("Bid_Price"));
        assert_eq!(nearest_header("quote_date", &header), Some("Quote Date"));
        assert_eq!(nearest_header("strike", &header), None);
    }
}
