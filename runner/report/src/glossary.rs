//! The terms that a reader of results meets: title, unit and meaning of each, written once.

use crate::figures::Unit;
use crate::fold::Fold;
use crate::html::escape;
use std::sync::LazyLock;

/// A term of reports and pages.
pub struct Term {
    /// The name of a metric, or of a strategy, or a word of a report.
    pub name: &'static str,
    /// The name in a heading or in front of a row.
    pub title: &'static str,
    /// The unit of the metric; [`Unit::Plain`] for words.
    pub unit: Unit,
    /// The explanation in a sentence or two.
    pub meaning: &'static str,
}

/// All terms, in the order of a table of figures; words follow.
pub static TERMS: LazyLock<Vec<Term>> = LazyLock::new(|| {
    let lines = include_str!("glossary.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    lines.filter_map(read).collect()
});

/// The term of a line: `name | title | unit | meaning`.
fn read(line: &'static str) -> Option<Term> {
    let mut parts = line.splitn(4, " | ");
    Some(Term {
        name: parts.next()?,
        title: parts.next()?,
        unit: match parts.next()? {
            "plain" => Unit::Plain,
            "percent" => Unit::Percent,
            "probability" => Unit::Probability,
            "count" => Unit::Count,
            "times" => Unit::Times,
            "seconds" => Unit::Seconds,
            _ => return None,
        },
        meaning: parts.next()?,
    })
}

/// The term of this name.
pub fn find(name: &str) -> Option<&'static Term> {
    TERMS.iter().find(|term| term.name == name)
}

/// The title of a metric, a strategy or a word: that of its term, or else the name with spaces.
pub fn title(name: &str) -> String {
    find(name).map_or_else(|| name.replace('_', " "), |term| term.title.to_owned())
}

/// The title as HTML; that of a term shows its meaning under the pointer and links to the glossary at the
/// page's end, which [`section`] writes.
pub fn linked(name: &str) -> String {
    worded(name, &title(name))
}

/// Words that stand for a term as HTML, with its meaning and the link of [`linked`].
pub fn worded(name: &str, words: &str) -> String {
    match find(name) {
        None => escape(words),
        Some(term) => format!(
            "<a class=\"term\" href=\"#term-{name}\" title=\"{}\">{}</a>",
            escape(term.meaning),
            escape(words)
        ),
    }
}

/// The glossary of the terms that a page links to, collapsed; empty for a page without terms.
pub fn section(body: &str) -> String {
    let used = TERMS
        .iter()
        .filter(|term| body.contains(&format!("href=\"#term-{}\"", term.name)));
    let items: Vec<String> = used
        .map(|term| {
            format!(
                "<dt id=\"term-{}\">{}</dt><dd>{}</dd>\n",
                term.name,
                escape(term.title),
                escape(term.meaning)
            )
        })
        .collect();
    let body = format!("<dl class=\"glossary\">\n{}</dl>\n", items.concat());
    match items.len() {
        0 => String::new(),
        1 => Fold::new("Glossary", "1 term".to_owned(), body).html(2, false),
        n => Fold::new("Glossary", format!("{n} terms"), body).html(2, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_term_is_written_once_as_a_sentence() {
        let names: BTreeSet<&str> = TERMS.iter().map(|term| term.name).collect();
        assert_eq!(names.len(), TERMS.len());
        assert_eq!(TERMS.len(), include_str!("glossary.txt").lines().count() - 1);
        for term in TERMS.iter() {
            let first = term.meaning.chars().next().unwrap();
            assert!(first.is_uppercase() || first.is_numeric(), "{}", term.name);
            assert!(term.meaning.ends_with('.'), "{}", term.name);
        }
    }

    #[test]
    fn a_page_explains_the_terms_that_it_uses() {
        let body = format!("{} and {}", linked("sharpe"), linked("my_metric"));
        assert!(body.ends_with("Sharpe ratio</a> and my metric"), "{body}");
        let glossary = section(&body);
        assert_eq!(glossary.matches("<dt").count(), 1);
        assert!(glossary.contains("<dt id=\"term-sharpe\">Sharpe ratio</dt><dd>Excess return divided"));
        assert_eq!(section("my metric"), "");
    }
}
