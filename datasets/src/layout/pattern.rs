//! Patterns of names with named parts: the values that a file's name, or a line before the header, states.
//!
//! Examples: `{symbol}_{date:%Y%m%d}.csv`,
//! `{symbol}_{*}_american_{right}_{strike/10000}_{expiry:%Y%m%d}.csv`. A part is the name of one of our
//! columns, followed by the format of a date after a colon, or by a number's divisor after a slash; `*`
//! stands for any text without a slash. A pattern with slashes is also compared with as many parent
//! directories as it has slashes. Case does not matter.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// A pattern of a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    /// A literal text, in lower case.
    Text(String),
    /// Any text without a slash.
    Any,
    /// One of our columns, with an empty value.
    Part(String, Named),
}

/// A value that a name states for one of our columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The value's text in the name.
    pub text: String,
    /// The format of a date; empty for any other value.
    pub format: String,
    /// The divisor of a numeric value.
    pub per: f64,
}

impl Pattern {
    /// Reads a pattern.
    pub fn parse(text: &str, known: &[&str]) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(['{', '*']).unwrap_or(rest.len());
            if end > 0 {
                pieces.push(Piece::Text(rest[..end].to_lowercase()));
                rest = &rest[end..];
                continue;
            }
            if let Some(after) = rest.strip_prefix('*') {
                pieces.push(Piece::Any);
                rest = after;
                continue;
            }
            let inner = &rest[1..];
            let close = inner
                .find('}')
                .ok_or_else(|| format!("`{{` in `{text}` is not closed"))?;
            let part = &inner[..close];
            rest = &inner[close + 1..];
            if part == "*" {
                pieces.push(Piece::Any);
                continue;
            }
            let (part, format) = part.split_once(':').unwrap_or((part, ""));
            let (column, per) = match part.split_once('/') {
                Some((column, per)) => (
                    column,
                    per.parse()
                        .ok()
                        .filter(|per: &f64| *per > 0.0)
                        .ok_or_else(|| format!("`{per}` in `{text}` is not a number above 0"))?,
                ),
                None => (part, 1.0),
            };
            if !known.contains(&column) {
                return Err(format!("`{{{column}}}` in `{text}` is none of {}", known.join(", ")));
            }
            let (text, format) = (String::new(), format.to_owned());
            pieces.push(Piece::Part(column.to_owned(), Named { text, format, per }));
        }
        Ok(Self {
            text: text.to_owned(),
            pieces,
        })
    }

    /// The columns that the pattern names.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Part(column, _) => Some(column.as_str()),
            _ => None,
        })
    }

    /// Matches the pattern with the path of a file, of which as many components are compared as the pattern
    /// has, and returns the values of its parts; `None` if the path does not match.
    pub fn find_in_path(&self, path: &str) -> Option<BTreeMap<String, Named>> {
        let from_piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.matches('/').count(),
            _ => 0,
        };
        let names: usize = self.pieces.iter().map(from_piece).sum();
        let at = path.rmatch_indices('/').nth(names).map_or(0, |(at, _)| at + 1);
        self.values(&path[at..], true)
    }

    /// Matches the pattern with a whole text, and returns the values of its parts.
    pub fn find(&self, text: &str) -> Option<BTreeMap<String, Named>> {
        self.values(text, false)
    }

    /// The values in a text; in a path, the names of symbols may hold blanks and the like (`S&P 500`).
    fn values(&self, text: &str, is_path: bool) -> Option<BTreeMap<String, Named>> {
        let lower = text.to_lowercase();
        // Outside ASCII, lower case may change lengths; the text is then compared as it is.
        let lower = if lower.len() == text.len() {
            lower
        } else {
            text.to_owned()
        };
        let mut found = Vec::new();
        fit(&self.pieces, (text, &lower, is_path), 0, &mut found).then_some(())?;
        Some(found.into_iter().collect())
    }
}

/// Matches pieces with a text from `at` on, trying the shortest values first.
fn fit(
    pieces: &[Piece],
    (text, lower, is_path): (&str, &str, bool),
    at: usize,
    found: &mut Vec<(String, Named)>,
) -> bool {
    let Some((piece, rest)) = pieces.split_first() else {
        return at == text.len();
    };
    if let Piece::Text(wanted) = piece {
        return lower[at..].starts_with(wanted.as_str())
            && fit(rest, (text, lower, is_path), at + wanted.len(), found);
    }
    let ends = text[at..]
        .char_indices()
        .map(|(i, _)| at + i)
        .chain([text.len()])
        .take_while(|end| !text[at..*end].contains('/'));
    for end in ends {
        let value = &text[at..end];
        let depth = found.len();
        match piece {
            Piece::Part(column, part) if !may_be(column, part, value, is_path) => continue,
            Piece::Part(column, part) => found.push((
                column.clone(),
                Named {
                    text: value.to_owned(),
                    ..part.clone()
                },
            )),
            _ => {}
        }
        if lower.is_char_boundary(end) && fit(rest, (text, lower, is_path), end, found) {
            return true;
        }
        found.truncate(depth);
    }
    false
}

/// Returns true if a text can be the value of a part.
fn may_be(column: &str, part: &Named, value: &str, is_path: bool) -> bool {
    if value.is_empty() {
        return false;
    }
    if !part.format.is_empty() {
        return is_date(value, &part.format);
    }
    match column {
        "strike" | "underlying" => value.parse::<f64>().is_ok_and(f64::is_finite),
        "date" | "expiry" => is_date(value, "%Y-%m-%d"),
        "call" => matches!(
            value.to_ascii_lowercase().as_str(),
            "c" | "p" | "call" | "put" | "calls" | "puts"
        ),
        "symbol" if is_path && value.ends_with(char::is_alphanumeric) => {
            value.chars().all(|c| c.is_alphanumeric() || "^$=.-&_ ".contains(c))
        }
        _ => value.chars().all(|c| c.is_alphanumeric() || "^$=.-".contains(c)),
    }
}

/// Returns true if a text is a date in a format. A format of digits alone requires all of its digits, so that
/// the value ends where the date does.
fn is_date(text: &str, format: &str) -> bool {
    let has_names = format.contains("%b") || format.contains("%B");
    chrono::NaiveDate::parse_from_str(text, format)
        .is_ok_and(|date| has_names || date.format(format).to_string() == text)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Returns true if a name matches a pattern of literal texts and `*`, ignoring case; only the last component
/// of a path counts.
pub(super) fn fits(pattern: &str, path: &str) -> bool {
    Pattern::parse(pattern, &[]).is_ok_and(|pattern| pattern.find_in_path(path).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["symbol", "date", "expiry", "strike", "call", "underlying"];

    fn texts(pattern: &str, path: &str) -> Option<Vec<String>> {
        let found = Pattern::parse(pattern, KNOWN).unwrap().find_in_path(path)?;
        Some(
            found
                .into_iter()
                .map(|(name, part)| format!("{name}={}", part.text))
                .collect(),
        )
    }

    #[test]
    fn names() {
        assert_eq!(
            texts("{symbol}_{date:%Y%m%d}.csv*", "data/SPX_20190531.csv.gz").unwrap(),
            ["date=20190531", "symbol=SPX"]
        );
        assert_eq!(
            texts(
                "{symbol}_quote_american_{call}_{strike/10000}_{expiry:%Y%m%d}.csv",
                "aapl_2014_quote_american.zip/aapl_quote_american_call_6450000_20140607.csv"
            )
            .unwrap(),
            ["call=call", "expiry=20140607", "strike=6450000", "symbol=aapl"]
        );
        for (path, symbol) in [
            ("S&P 500 Historical Data.csv", "symbol=S&P 500"),
            ("x y/EUR_USD Historical Data.csv", "symbol=EUR_USD"),
        ] {
            assert_eq!(texts("{symbol} Historical Data.csv", path).unwrap(), [symbol]);
        }
        assert_eq!(
            texts("{symbol}/{date}.csv", "x/BRK.B/2020-01-02.csv").unwrap(),
            ["date=2020-01-02", "symbol=BRK.B"]
        );
        assert_eq!(texts("{symbol}/{date}.csv", "x/BRK.B/2020-01-32.csv"), None);
        assert_eq!(texts("*_{date}.csv", "2020-01-02.csv"), None);
        assert_eq!(
            texts("*{date}*", "SPY_calls_2024-01-19.csv").unwrap(),
            ["date=2024-01-19"]
        );
        assert_eq!(
            texts("Last: {underlying},*", "last: 4283.74,Change: 1").unwrap(),
            ["underlying=4283.74"]
        );
        assert!(Pattern::parse("{smybol}.csv", KNOWN).unwrap_err().contains("symbol"));
        assert!(Pattern::parse("{symbol.csv", KNOWN).unwrap_err().contains("closed"));
        assert!(fits("*sse*", "options/SSE50etf.parquet") && !fits("*sse*", "sse/spy.csv"));
        assert!(!fits("x*", "上证50.csv") && fits("*50*", "上证50.csv"));
    }
}
