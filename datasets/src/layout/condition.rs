//! The conditions of `where:`: a small language of comparisons.
//!
//! Examples: `instrument = OPT`, `type != FUT and segment in (FO, CD)`, `"Expiry Date" = "2024-07-25"`. Names
//! are compared like header names; values are compared without surrounding blanks and ignoring case, and `*`
//! in a value of the condition is any text. Names and values that contain blanks,
//! commas, brackets or quotes are written in single or double quotes.

use super::nearest::normal;
use serde::{Serialize, Serializer};
use std::fmt;

/// Comparisons that must all hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    /// The comparisons.
    pub all: Vec<Comparison>,
}

/// A comparison of a column with values.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The column's name in the header.
    pub column: String,
    /// True for `=` and `in`, false for `!=` and `not in`.
    pub wanted: bool,
    /// The values.
    pub values: Vec<String>,
}

impl Comparison {
    /// Returns true if a value of the column satisfies the comparison.
    pub fn holds(&self, value: &str) -> bool {
        let value = value.trim();
        let is =
            |known: &String| known.eq_ignore_ascii_case(value) || known.contains('*') && like(known, value);
        self.values.iter().any(is) == self.wanted
    }
}

/// Returns true if a value has the parts of a pattern between its `*`, ignoring case.
fn like(pattern: &str, value: &str) -> bool {
    let (pattern, value) = (pattern.to_ascii_lowercase(), value.to_ascii_lowercase());
    let (first, rest) = pattern.split_once('*').unwrap_or((&pattern, ""));
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(inner) = value.strip_prefix(first).and_then(|value| value.strip_suffix(last)) else {
        return false;
    };
    let mut parts = middle.split('*');
    parts
        .try_fold(inner, |value, part| Some(&value[value.find(part)? + part.len()..]))
        .is_some()
}

impl Condition {
    /// Parses a condition.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = Words { rest: text };
        let mut all = Vec::new();
        loop {
            all.push(words.comparison()?);
            match words.next()? {
                None => break,
                Some(Word::Plain(and)) if and.eq_ignore_ascii_case("and") => {}
                Some(other) => return Err(format!("`{other}` where `and` or the end was expected")),
            }
        }
        Ok(Self {
            text: text.trim().to_owned(),
            all,
        })
    }

    /// The columns that the condition reads, as [`normal`] writes them.
    pub fn columns(&self) -> impl Iterator<Item = String> {
        self.all.iter().map(|comparison| normal(&comparison.column))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// A piece of a condition.
enum Word {
    Plain(String),
    Quoted(String),
    Sign(&'static str),
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(text) | Self::Quoted(text) => f.write_str(text),
            Self::Sign(sign) => f.write_str(sign),
        }
    }
}

struct Words<'t> {
    rest: &'t str,
}

const SIGNS: [&str; 6] = ["!=", "==", "=", "(", ")", ","];

impl Words<'_> {
    fn next(&mut self) -> Result<Option<Word>, String> {
        self.rest = self.rest.trim_start();
        let Some(first) = self.rest.chars().next() else {
            return Ok(None);
        };
        for sign in SIGNS {
            if let Some(rest) = self.rest.strip_prefix(sign) {
                self.rest = rest;
                return Ok(Some(Word::Sign(if sign == "==" { "=" } else { sign })));
            }
        }
        if matches!(first, '"' | '\'') {
            let inner = &self.rest[1..];
            let end = inner
                .find(first)
                .ok_or_else(|| format!("the quote before `{inner}` is not closed"))?;
            let word = inner[..end].to_owned();
            self.rest = &inner[end + 1..];
            return Ok(Some(Word::Quoted(word)));
        }
        let end = self
            .rest
            .find(|c: char| c.is_whitespace() || "=!(),\"'".contains(c))
            .unwrap_or(self.rest.len())
            .max(first.len_utf8());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(Some(Word::Plain(word.to_owned())))
    }

    fn text(&mut self, what: &str) -> Result<String, String> {
        match self.next()? {
            Some(Word::Plain(text) | Word::Quoted(text)) => Ok(text),
            Some(Word::Sign(sign)) => Err(format!("`{sign}` where {what} was expected")),
            None => Err(format!("it ends where {what} was expected")),
        }
    }

    fn comparison(&mut self) -> Result<Comparison, String> {
        let column = self.text("the name of a column")?;
        let mut wanted = true;
        let mut word = self.next()?;
        if let Some(Word::Plain(not)) = &word
            && not.eq_ignore_ascii_case("not")
        {
            wanted = false;
            word = self.next()?;
        }
        let values = match word {
            Some(Word::Sign("=")) if wanted => vec![self.text("a value")?],
            Some(Word::Sign("!=")) if wanted => {
                wanted = false;
                vec![self.text("a value")?]
            }
            Some(Word::Plain(within)) if within.eq_ignore_ascii_case("in") => self.list()?,
            Some(other) => {
                return Err(format!(
                    "`{other}` after `{column}` where `=`, `!=` or `in` was expected"
                ));
            }
            None => return Err(format!("it ends after `{column}` where `=`, `!=` or `in` was expected")),
        };
        Ok(Comparison {
            column,
            wanted,
            values,
        })
    }

    fn list(&mut self) -> Result<Vec<String>, String> {
        let Some(Word::Sign("(")) = self.next()? else {
            return Err("`in` needs a list in brackets: `in (STO, IDO)`".to_owned());
        };
        let mut values = vec![self.text("a value")?];
        loop {
            match self.next()? {
                Some(Word::Sign(",")) => values.push(self.text("a value")?),
                Some(Word::Sign(")")) => return Ok(values),
                _ => return Err("the list after `in` is not closed with `)`".to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions() {
        let condition =
            Condition::parse("FinInstrmTp in (STO, IDO) and \"Opt Tp\"!='X X' and a = b and c not in (1)")
                .unwrap();
        let read: Vec<_> = condition
            .all
            .iter()
            .map(|c| (c.column.as_str(), c.wanted, c.values.join("/")))
            .collect();
        assert_eq!(
            read,
            [
                ("FinInstrmTp", true, "STO/IDO".to_owned()),
                ("Opt Tp", false, "X X".to_owned()),
                ("a", true, "b".to_owned()),
                ("c", false, "1".to_owned())
            ]
        );
        let options = Condition::parse("name in (BTC-*-C, *-p, *x*y*)").unwrap();
        for (name, wanted) in [
            ("BTC-28MAR25-90000-C", true),
            ("eth-28MAR25-90000-P", true),
            ("BTC-C", false),
            ("aXbYc", true),
            ("yx", false),
            ("", false),
        ] {
            assert_eq!(options.all[0].holds(name), wanted, "{name}");
        }
        assert!(condition.all[0].holds(" sto ") && !condition.all[0].holds("STF"));
        assert!(condition.all[1].holds("") && !condition.all[1].holds("x x"));
        assert_eq!(condition.columns().nth(1).as_deref(), Some("opt tp"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, wanted) in [
            ("", "the name of a column"),
            ("a", "ends after `a`"),
            ("a =", "a value"),
            ("a = b c", "`c` where `and`"),
            ("a in b", "list in brackets"),
            ("a in (b", "not closed"),
            ("a > 1", "`>` after `a`"),
            ("a = 'b", "not closed"),
            ("a = b and", "the name of a column"),
            ("not = b", "needs"),
        ] {
            let err = Condition::parse(text);
            if wanted == "needs" {
                assert!(err.is_ok(), "a column may be called `not`");
            } else {
                let err = err.unwrap_err();
                assert!(err.contains(wanted), "{text}: {err}");
            }
        }
    }
}
