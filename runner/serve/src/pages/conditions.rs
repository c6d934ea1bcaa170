//! The conditions of which the filter of a list consists.

/// The conditions of a filter that must all hold: the text between `and`s that stand in no brackets and no
/// quotes. An `or` outside of them makes the filter one condition.
pub(super) fn conditions(filter: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut from) = (0_i32, None, 0);
    let mut found = Vec::new();
    for (at, c) in filter.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, '|') if depth == 0 => return vec![filter],
            (None, 'o') if depth == 0 => {
                let (before, after) = (&filter[..at], &filter[at + 1..]);
                if before.ends_with([' ', ')']) && (after.starts_with("r ") || after.starts_with("r(")) {
                    return vec![filter];
                }
            }
            (None, ' ') if depth == 0 && filter[at + 1..].starts_with("and ") => {
                found.push(filter[from..at].trim());
                from = at + 1 + "and ".len();
            }
            _ => {}
        }
    }
    found.push(filter[from..].trim());
    found.retain(|condition| !condition.is_empty());
    found
}

/// The filter with one more condition.
pub(super) fn narrowed(filter: &str, more: &str) -> String {
    let filter = filter.trim();
    let both = format!("{filter} and {more}");
    match conditions(&both).len() {
        _ if filter.is_empty() => more.to_owned(),
        // An `or` binds less than the `and`.
        1 => format!("({filter}) and {more}"),
        _ => both,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_split_into_conditions() {
        assert_eq!(conditions(""), Vec::<&str>::new());
        assert_eq!(
            conditions("status = done and evaluate.sharpe > 1"),
            ["status = done", "evaluate.sharpe > 1"]
        );
        assert_eq!(
            conditions("(a = 1 or b = 2 and c = 3) and name = 'x and y'"),
            ["(a = 1 or b = 2 and c = 3)", "name = 'x and y'"]
        );
        for either in [
            "a = 1 and b = 2 or c = 3",
            "(a = 1 and b = 2)or(c = 3)",
            "a = 1 || b = 2",
        ] {
            assert_eq!(conditions(either), [either]);
            assert_eq!(narrowed(either, "d = 4"), format!("({either}) and d = 4"));
        }
        assert_eq!(narrowed("", "d = 4"), "d = 4");
        assert_eq!(narrowed("for > 1", "d = 4"), "for > 1 and d = 4");
    }
}
