//! The tokens of an expression, and errors with a position in it.

use super::expr::Op;
use std::fmt;

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParseError {
    pub text: String,
    /// The position in characters, from 0.
    pub at: usize,
    pub message: String,
    pub hint: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tabs and line breaks would move the caret.
        let line: String = self
            .text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        write!(f, "{}\n  | {line}\n  | {}^", self.message, " ".repeat(self.at))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(String),
    Quoted(String),
    Op(Op),
    Open,
    Close,
    Comma,
}

pub(super) fn error(
    text: &str,
    at: usize,
    message: impl Into<String>,
    hint: impl Into<String>,
) -> ParseError {
    ParseError {
        text: text.to_owned(),
        at,
        message: message.into(),
        hint: hint.into(),
    }
}

pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ParseError> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let wrong = |at: usize, message: String, hint: &str| Err(error(text, at, message, hint));
    let mut i = 0;
    while let Some(&c) = chars.get(i) {
        let at = i;
        let next = chars.get(i + 1).copied();
        i += 1;
        let token = match c {
            _ if c.is_whitespace() => continue,
            '(' => Token::Open,
            ')' => Token::Close,
            ',' => Token::Comma,
            '~' => Token::Op(Op::Contains),
            '<' | '>' | '=' | '!' => {
                let equal = next == Some('=');
                i += usize::from(equal);
                Token::Op(match (c, equal) {
                    ('<', false) => Op::Less,
                    ('<', true) => Op::LessEqual,
                    ('>', false) => Op::Greater,
                    ('>', true) => Op::GreaterEqual,
                    ('=', _) => Op::Equal,
                    ('!', true) => Op::NotEqual,
                    _ => {
                        let message = "write `not` in place of `!`".to_owned();
                        return wrong(at, message, "or `!=` where two values differ");
                    }
                })
            }
            '"' | '\'' => {
                let mut inside = String::new();
                loop {
                    match chars.get(i) {
                        None => {
                            let message = "this quote is not closed".to_owned();
                            return wrong(at, message, &format!("add a {c} at the text's end"));
                        }
                        Some(end) if *end == c => break,
                        Some('\\') if chars.get(i + 1).is_some_and(|next| *next == c || *next == '\\') => {
                            inside.push(chars[i + 1]);
                            i += 2;
                        }
                        Some(other) => {
                            inside.push(*other);
                            i += 1;
                        }
                    }
                }
                i += 1;
                Token::Quoted(inside)
            }
            '&' | '|' => {
                let word = if c == '&' { "and" } else { "or" };
                let message = format!("`{c}` is written `{word}` here");
                return wrong(at, message, "as in `status == done and kept`");
            }
            _ if is_word(c) => {
                // Brackets hold a matrix point and may contain any character.
                let mut inside = false;
                while let Some(&c) = chars.get(i) {
                    match c {
                        '[' if !inside => inside = true,
                        ']' if inside => inside = false,
                        _ if inside || is_word(c) => {}
                        _ => break,
                    }
                    i += 1;
                }
                if inside {
                    let message = "the `[` of this name is not closed".to_owned();
                    return wrong(at, message, "a point is written `train[seed=1]`");
                }
                Token::Word(chars[at..i].iter().collect())
            }
            other => {
                let hint = "allowed are names, numbers, strings in quotes, comparisons, `and`, `or`, `not` \
                    and parentheses";
                return wrong(at, format!("`{other}` means nothing here"), hint);
            }
        };
        tokens.push((at, token));
    }
    Ok(tokens)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || "_-./:+*%@".contains(c)
}
