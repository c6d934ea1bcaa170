//! The tokens of Prolog text.

use super::TextError;
use std::borrow::Cow;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A name without quotation marks: of letters, or of symbol characters.
    Name(&'a str),
    /// A name in quotation marks.
    Quoted(Cow<'a, str>),
    /// A variable.
    Variable(&'a str),
    /// An unsigned integer, in decimal digits without leading zeros.
    Integer(Cow<'a, str>),
    /// A number with a fraction or an exponent.
    Float(&'a str),
    /// A string in double quotation marks.
    String(Cow<'a, str>),
    /// One of `( ) [ ] { } , |`.
    Punctuation(u8),
    /// The full stop at the end of a clause.
    End,
    /// The end of the text.
    Eof,
}

/// Reads tokens.
pub(super) struct Lexer<'a> {
    pub text: &'a str,
    /// The byte after the last token.
    pub at: usize,
    /// The first byte of the last token.
    pub start: usize,
    /// True where names may hold hyphens between letters (`south-eastern_asia`).
    pub hyphens: bool,
}

const SYMBOLS: &[u8] = b"+-*/\\^<>=~:.?@#&$";

fn is_symbol(byte: u8) -> bool {
    SYMBOLS.contains(&byte)
}

/// Returns whether a character continues a name.
pub(crate) fn continues_name(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || c == '_',
        // Letters, and the marks that are combined with them.
        false => c.is_alphabetic() || ('\u{300}'..='\u{36f}').contains(&c),
    }
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, hyphens: bool) -> Self {
        Self {
            text,
            at: 0,
            start: 0,
            hyphens,
        }
    }

    /// The error at the last token.
    pub(super) fn error(&self, message: impl Into<String>, hint: impl Into<String>) -> TextError {
        TextError::at(self.text, self.start, message, hint)
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    /// The byte after the last token: a `(` there distinguishes a functor from an atom.
    pub(super) fn peek(&self) -> u8 {
        self.byte(self.at)
    }

    /// Skips blanks and comments.
    fn skip(&mut self) -> Result<(), TextError> {
        let bytes = self.text.as_bytes();
        loop {
            match self.byte(self.at) {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => self.at += 1,
                b'%' => self.at += memchr::memchr(b'\n', &bytes[self.at..]).unwrap_or(bytes.len() - self.at),
                b'/' if self.byte(self.at + 1) == b'*' => {
                    self.start = self.at;
                    match memchr::memmem::find(&bytes[self.at + 2..], b"*/") {
                        Some(length) => self.at += length + 4,
                        None => return Err(self.error("the comment is not closed", "close it with `*/`")),
                    }
                }
                byte if byte >= 0x80 => match self.text[self.at..].chars().next() {
                    Some(c) if c.is_whitespace() || c == '\u{feff}' => self.at += c.len_utf8(),
                    _ => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Result<Token<'a>, TextError> {
        self.skip()?;
        self.start = self.at;
        let Some(&first) = self.text.as_bytes().get(self.at) else {
            return Ok(Token::Eof);
        };
        match first {
            b'a'..=b'z' => Ok(self.name()),
            b'A'..=b'Z' | b'_' => {
                self.word();
                Ok(Token::Variable(&self.text[self.start..self.at]))
            }
            b'0'..=b'9' => self.number(),
            b'\'' => self.quoted(b'\'').map(Token::Quoted),
            b'"' => self.quoted(b'"').map(Token::String),
            b'`' => Err(self.error("a text in back quotation marks is not supported", "write it in '…'")),
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b',' | b'|' => {
                self.at += 1;
                Ok(Token::Punctuation(first))
            }
            b'!' | b';' => {
                self.at += 1;
                Ok(Token::Name(&self.text[self.start..self.at]))
            }
            b'.' if matches!(self.byte(self.at + 1), 0 | b' ' | b'\t' | b'\r' | b'\n' | b'%') => {
                self.at += 1;
                Ok(Token::End)
            }
            _ if is_symbol(first) => {
                self.pass(is_symbol);
                Ok(Token::Name(&self.text[self.start..self.at]))
            }
            _ => match self.text[self.at..].chars().next() {
                Some(c) if c.is_uppercase() => {
                    self.word();
                    Ok(Token::Variable(&self.text[self.start..self.at]))
                }
                Some(c) if c.is_alphabetic() => Ok(self.name()),
                c => Err(self.error(
                    format!("the character {:?} has no meaning here", c.unwrap_or(' ')),
                    "write names with it in '…'",
                )),
            },
        }
    }

    /// Skips the bytes for which `is_of` is true.
    fn pass(&mut self, is_of: impl Fn(u8) -> bool) {
        while is_of(self.byte(self.at)) {
            self.at += 1;
        }
    }

    fn word(&mut self) {
        loop {
            match self.byte(self.at) {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => self.at += 1,
                byte if byte < 0x80 => return,
                _ => match self.text[self.at..].chars().next() {
                    Some(c) if continues_name(c) => self.at += c.len_utf8(),
                    _ => return,
                },
            }
        }
    }

    fn name(&mut self) -> Token<'a> {
        self.word();
        while self.hyphens && self.byte(self.at) == b'-' {
            let (end, next) = (self.at, self.byte(self.at + 1));
            self.at += 1;
            if next.is_ascii_alphanumeric() || next >= 0x80 {
                self.word();
            }
            if self.at == end + 1 {
                self.at = end;
                break;
            }
        }
        Token::Name(&self.text[self.start..self.at])
    }

    fn number(&mut self) -> Result<Token<'a>, TextError> {
        let bytes = self.text.as_bytes();
        if self.byte(self.at) == b'0' {
            let radix = match self.byte(self.at + 1) {
                b'x' => 16,
                b'o' => 8,
                b'b' => 2,
                b'\'' => {
                    self.at += 2;
                    let c = self.text[self.at..].chars().next();
                    return match c {
                        Some(c) if c != '\\' && (c != '\'' || self.byte(self.at + 1) == b'\'') => {
                            self.at += if c == '\'' { 2 } else { c.len_utf8() };
                            Ok(Token::Integer(u32::from(c).to_string().into()))
                        }
                        _ => Err(self.error("the character's code is not supported", "write the number")),
                    };
                }
                _ => 10,
            };
            if radix != 10 {
                self.at += 2;
                let from = self.at;
                self.pass(|byte| byte.is_ascii_alphanumeric());
                return u128::from_str_radix(&self.text[from..self.at], radix)
                    .map(|number| Token::Integer(number.to_string().into()))
                    .map_err(|_| self.error("not an integer of its base", "write it in decimal digits"));
            }
        }
        self.pass(|byte| byte.is_ascii_digit());
        let whole = self.at;
        if self.byte(self.at) == b'.' && self.byte(self.at + 1).is_ascii_digit() {
            self.at += 1;
            self.pass(|byte| byte.is_ascii_digit());
        }
        let mark = self.at;
        if self.at > whole && matches!(self.byte(self.at), b'e' | b'E') {
            self.at += 1 + usize::from(matches!(self.byte(self.at + 1), b'+' | b'-'));
            match self.byte(self.at).is_ascii_digit() {
                true => self.pass(|byte| byte.is_ascii_digit()),
                false => self.at = mark,
            }
        }
        if self.at > whole {
            return Ok(Token::Float(&self.text[self.start..self.at]));
        }
        if bytes
            .get(self.at)
            .is_some_and(|&byte| byte.is_ascii_alphabetic() || byte == b'_')
        {
            return Err(self.error("a name begins with a digit", "write it in '…'"));
        }
        let digits = self.text[self.start..self.at].trim_start_matches('0');
        Ok(Token::Integer(if digits.is_empty() { "0" } else { digits }.into()))
    }

    fn quoted(&mut self, mark: u8) -> Result<Cow<'a, str>, TextError> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        let from = self.at;
        match memchr::memchr3(mark, b'\\', b'\n', &bytes[from..]) {
            Some(length) if bytes[from + length] == mark && self.byte(from + length + 1) != mark => {
                self.at = from + length + 1;
                return Ok(Cow::Borrowed(&self.text[from..from + length]));
            }
            _ => {}
        }
        let mut text = String::new();
        loop {
            let Some(c) = self.text[self.at..].chars().next() else {
                return Err(self.error("the quotation mark is not closed", "close it on the same line"));
            };
            match c {
                '\n' => {
                    return Err(self.error("the quotation mark is not closed", "write a line break as `\\n`"));
                }
                '\\' => text.extend(self.escape()?),
                _ if c == char::from(mark) => {
                    self.at += 1;
                    if self.byte(self.at) != mark {
                        return Ok(Cow::Owned(text));
                    }
                    self.at += 1;
                    text.push(c);
                }
                _ => {
                    text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    /// The character of an escape sequence; `None` for a line continuation.
    fn escape(&mut self) -> Result<Option<char>, TextError> {
        let next = self.byte(self.at + 1);
        let start = self.at;
        self.at += 2;
        let wrong = |lexer: &Self| {
            TextError::at(
                lexer.text,
                start,
                "not an escape sequence that is known",
                "write a backslash as `\\\\`",
            )
        };
        Ok(Some(match next {
            b'\n' => return Ok(None),
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'a' => '\u{7}',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'v' => '\u{b}',
            b'e' => '\u{1b}',
            b's' => ' ',
            b'\\' | b'\'' | b'"' | b'`' => char::from(next),
            b'x' | b'0'..=b'7' => {
                let radix = if next == b'x' { 16 } else { 8 };
                let from = if next == b'x' { self.at } else { self.at - 1 };
                self.at = from;
                self.pass(|byte| char::from(byte).is_digit(radix));
                let code = u32::from_str_radix(&self.text[from..self.at], radix).ok();
                // The closing backslash may be left out.
                self.at += usize::from(self.byte(self.at) == b'\\');
                code.and_then(char::from_u32).ok_or_else(|| wrong(self))?
            }
            b'u' | b'U' => {
                let length = if next == b'u' { 4 } else { 8 };
                let digits = self.text.get(self.at..self.at + length).ok_or_else(|| wrong(self))?;
                self.at += length;
                let code = u32::from_str_radix(digits, 16).ok();
                code.and_then(char::from_u32).ok_or_else(|| wrong(self))?
            }
            _ => return Err(wrong(self)),
        }))
    }
}
