//! Whose the rows of tables and factors are that name no symbol, and what is told of it.

use super::places::{Origin, Places, is_general};
use super::spelling::listed;
use super::stem_of;
use stages_core::{Context, Source};
use std::collections::{BTreeMap, BTreeSet};

/// Returns whether a name is written as symbols are: in capitals and digits.
pub(crate) fn is_ticker(name: &str) -> bool {
    let is_code = name.len() >= 4 || name.chars().any(char::is_alphabetic);
    is_code && name.len() <= 12 && !name.chars().any(|c| c.is_lowercase() || c == '_' || c == ' ')
}

/// The symbols by name of files that are each of one: their directories', or their names' where these are
/// written as symbols are. None where all are of one symbol, or names do not tell.
pub(crate) fn of_one_each<'n>(
    names: impl Iterator<Item = (&'n str, &'n str)> + Clone,
) -> BTreeMap<String, String> {
    let places = Places::of(names.clone());
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (name, _) in names {
        if let Some(place) = places.get(name)
            && let Ok(symbol) = place.symbol()
            && (place.origin == Origin::Folder || is_ticker(symbol))
        {
            found.insert(name.to_owned(), symbol.to_owned());
        }
    }
    let symbols: BTreeSet<&String> = found.values().collect();
    if symbols.len() > 1 { found } else { BTreeMap::new() }
}

/// The symbol of `known` that a file is named after: its name or a folder's, in any case, or one word of its
/// name.
pub(crate) fn named<'k>(name: &str, known: &'k BTreeSet<String>) -> Option<&'k str> {
    let is_like = |text: &str, symbol: &str, least: usize| {
        text == symbol || text.len() >= least && !is_general(text) && text.eq_ignore_ascii_case(symbol)
    };
    let find = |text: &str, least: usize| {
        let exact = known.get(text);
        exact
            .or_else(|| known.iter().find(|symbol| is_like(text, symbol, least)))
            .map(String::as_str)
    };
    let stem = stem_of(name);
    let folders = name.rsplit('/').skip(1);
    let values = folders.map(|folder| folder.rsplit_once('=').map_or(folder, |(_, value)| value));
    if let Some(found) = std::iter::once(stem).chain(values).find_map(|text| find(text, 2)) {
        return Some(found);
    }
    let words = stem.split(['_', '-', ' ', '(', ')']).filter(|word| word.len() > 1);
    let of_words: BTreeSet<&str> = words.filter_map(|word| find(word, 3)).collect();
    of_words.first().copied().filter(|_| of_words.len() == 1)
}

/// The symbols by name of a stage's files that are each of one.
pub(crate) fn of_sources(sources: &[Source]) -> BTreeMap<String, String> {
    of_one_each(
        sources
            .iter()
            .map(|source| (source.name.as_str(), stem_of(&source.name))),
    )
}

/// Tells whose rows are that name no symbol. `files` are the names of files, and whether a column of each
/// states its symbols; `all` is the symbol of those that no place gives one. Returns whether anything was
/// told.
pub(crate) fn tell_places<'n>(
    context: &Context,
    places: &BTreeMap<String, String>,
    all: &str,
    files: impl Iterator<Item = (&'n str, bool)>,
) -> bool {
    let nameless: Vec<&str> = files
        .filter(|(_, has_symbols)| !has_symbols)
        .map(|(name, _)| name)
        .collect();
    let (placed, others): (Vec<&str>, Vec<&str>) =
        nameless.iter().partition(|name| places.contains_key(**name));
    if !placed.is_empty() {
        let shown: Vec<String> = placed
            .iter()
            .map(|name| format!("`{name}` is of `{}`", places[*name]))
            .collect();
        context.warn(
            format!(
                "no column names the symbols, which are taken from the files' places: {}",
                listed(&shown)
            ),
            None,
        );
    }
    let has_names = Places::of(others.iter().map(|name| (*name, stem_of(name))));
    let symbols: BTreeSet<String> = others
        .iter()
        .filter_map(|name| Some(has_names.get(name)?.symbol().ok()?.to_owned()))
        .collect();
    let tells_others = symbols.len() > 1 || !placed.is_empty() && !others.is_empty();
    if tells_others {
        let shown: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
        context.warn(
            format!(
                "no column names the symbols: the rows of {} files are of {all}: {}",
                others.len(),
                listed(&shown)
            ),
            Some("if each is of a symbol of its own, put it into a folder `symbol=NAME`"),
        );
    }
    tells_others || !placed.is_empty()
}

/// Tells of files without rows. `files` are names of files, and their numbers of rows.
pub(crate) fn tell_empty<'n>(context: &Context, files: impl Iterator<Item = (&'n str, u64)>) {
    let empty = files
        .filter(|(_, rows)| *rows == 0)
        .map(|(name, _)| format!("`{name}`"));
    let empty: Vec<String> = empty.collect();
    let what = match empty.len() {
        0 => return,
        1 => "a file has no rows".to_owned(),
        n => format!("{n} files have no rows"),
    };
    context.warn(format!("{what}: {}", listed(&empty)), Some("an interrupted download?"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_named_after_a_symbol() {
        let known: BTreeSet<String> = ["AAPL", "ALL", "F", "BRK-B", "600519"].map(str::to_owned).into();
        for (name, wanted) in [
            ("AAPL.csv", Some("AAPL")),
            ("aapl.csv", Some("AAPL")),
            ("F.csv", Some("F")),
            ("f.csv", None),
            ("all.csv", None),
            ("AAPL_sentiment.csv", Some("AAPL")),
            ("news aapl.csv", Some("AAPL")),
            ("news_f.csv", None),
            ("brk-b.csv", Some("BRK-B")),
            ("600519_pe.csv", Some("600519")),
            ("AAPL/value.csv", Some("AAPL")),
            ("company=AAPL/x.csv", Some("AAPL")),
            ("AAPL_600519.csv", None),
            ("GOOG.csv", None),
        ] {
            assert_eq!(named(name, &known), wanted, "{name}");
        }
    }
}
