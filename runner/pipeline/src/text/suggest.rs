//! Hints for unknown names.

/// The candidate that is most similar to `name`.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let lower = candidate.to_lowercase();
        let distance = strsim::damerau_levenshtein(&wanted, &lower);
        let longest = wanted.chars().count().max(lower.chars().count());
        let close = strsim::jaro_winkler(&wanted, &lower);
        let part =
            wanted.len() >= 3 && lower.len() >= 3 && (lower.contains(&wanted) || wanted.contains(&lower));
        let fits = distance <= (longest / 3).max(1) || close >= 0.86 || part;
        if fits && best.is_none_or(|(score, _)| close > score) {
            best = Some((close, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// A hint for an unknown name: the nearest valid name, or all valid names. `what` is the plural of what is
/// named (`parameters`).
pub fn suggest<'a>(name: &str, what: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    match nearest(name, candidates.iter().copied()) {
        Some(found) => format!("did you mean `{found}`?"),
        None if candidates.is_empty() => format!("there are no {what} here"),
        None => format!("the {what} are {}", list(candidates)),
    }
}

/// Formats a list of names: `a`, `b` and 3 more.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 16;
    let names: Vec<&str> = names.into_iter().collect();
    let mut text = names
        .iter()
        .take(MOST)
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > MOST {
        text.push_str(&format!(" and {} more", names.len() - MOST));
    }
    text
}
