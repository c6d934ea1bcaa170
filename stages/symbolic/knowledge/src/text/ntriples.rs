//! RDF N-Triples: one line for each triple of subject, predicate and object.

use super::TextError;
use crate::program::{ConstantKind, Program, ProgramBuilder};
use std::borrow::Cow;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Reads N-Triples as facts `predicate(subject, object)`. An IRI is the atom of its text, a blank node the
/// atom `_:label`. A literal is a string, or an integer where its type is `xsd:integer`; one of another type,
/// or with a language, is the atom of what the file writes for it.
///
/// # Errors
/// At the first line that is no triple.
pub fn ntriples(text: &str) -> Result<Program, TextError> {
    let mut builder = ProgramBuilder::default();
    let mut line = Line { text, at: 0 };
    while line.at < text.len() {
        line.blanks();
        match line.peek() {
            None | Some(b'\n' | b'\r') => {}
            Some(b'#') => line.skip_line(),
            Some(_) => {
                let (subject, kind) = line.term("a subject")?;
                if kind != ConstantKind::Atom || subject.starts_with('"') {
                    return Err(line.error("a literal is not a subject", "a subject is `<IRI>` or `_:label`"));
                }
                let many =
                    |line: &Line<'_>| line.error("more names than 32-bit words can hold", "split the file");
                let symbols = &mut builder.symbols;
                let subject = symbols.constant(subject.as_bytes(), kind).map_err(|_| many(&line))?;
                line.blanks();
                if line.peek() != Some(b'<') {
                    return Err(line.error("expected a predicate", "it is `<IRI>`"));
                }
                let (predicate, _) = line.term("a predicate")?;
                let predicate = symbols.predicate(predicate.as_bytes(), 2).map_err(|_| many(&line))?;
                line.blanks();
                let (object, kind) = line.term("an object")?;
                let object = symbols.constant(object.as_bytes(), kind).map_err(|_| many(&line))?;
                builder.fact(&[predicate, subject, object]);
                line.blanks();
                if line.peek() != Some(b'.') {
                    return Err(line.error("expected `.`", "a triple is `<subject> <predicate> <object> .`"));
                }
                line.at += 1;
                line.blanks();
                match line.peek() {
                    None | Some(b'\n' | b'\r') => {}
                    Some(b'#') => line.skip_line(),
                    Some(_) => {
                        return Err(line.error("text follows the end of a triple", "write one on each line"));
                    }
                }
            }
        }
        while matches!(line.peek(), Some(b'\n' | b'\r')) {
            line.at += 1;
        }
    }
    builder.triples(text)
}

struct Line<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Line<'a> {
    fn error(&self, message: impl Into<String>, hint: &str) -> TextError {
        TextError::at(self.text, self.at, message, hint)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    }

    fn iri(&mut self) -> Result<Cow<'a, str>, TextError> {
        let from = self.at + 1;
        let rest = &self.text.as_bytes()[from..];
        match memchr::memchr3(b'>', b'\n', b' ', rest) {
            Some(length) if rest[length] == b'>' => {
                self.at = from + length + 1;
                self.unescaped(from, from + length)
            }
            _ => Err(self.error("the IRI is not closed", "an IRI is `<…>`, without blanks")),
        }
    }

    /// A term: its text and its kind.
    fn term(&mut self, wanted: &str) -> Result<(Cow<'a, str>, ConstantKind), TextError> {
        match self.peek() {
            Some(b'<') => Ok((self.iri()?, ConstantKind::Atom)),
            Some(b'_') if self.text.as_bytes().get(self.at + 1) == Some(&b':') => {
                let from = self.at;
                let rest = &self.text[from..];
                self.at += rest.find([' ', '\t', '\n', '\r']).unwrap_or(rest.len());
                Ok((Cow::Borrowed(&self.text[from..self.at]), ConstantKind::Atom))
            }
            Some(b'"') => self.literal(),
            _ => Err(self.error(
                format!("expected {wanted}"),
                "a term is `<IRI>`, `_:label`, or a literal in double quotation marks",
            )),
        }
    }

    fn literal(&mut self) -> Result<(Cow<'a, str>, ConstantKind), TextError> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(b'\n') | None => {
                    return Err(
                        self.error("the literal is not closed", "close it with `\"` on the same line")
                    );
                }
                Some(_) => end += 1,
            }
        }
        self.at = end + 1;
        let value = self.unescaped(start + 1, end)?;
        if bytes[self.at..].starts_with(b"^^<") {
            self.at += 2;
            let datatype = self.iri()?;
            return Ok(match datatype.strip_prefix(XSD) {
                Some("string") => (value, ConstantKind::String),
                Some("integer") if is_integer(&value) => (value, ConstantKind::Integer),
                _ => (Cow::Borrowed(&self.text[start..self.at]), ConstantKind::Atom),
            });
        }
        if self.peek() == Some(b'@') {
            let rest = &self.text[self.at + 1..];
            let length = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .unwrap_or(rest.len());
            self.at += 1 + length;
            return Ok((Cow::Borrowed(&self.text[start..self.at]), ConstantKind::Atom));
        }
        Ok((value, ConstantKind::String))
    }

    fn unescaped(&self, from: usize, to: usize) -> Result<Cow<'a, str>, TextError> {
        let text = &self.text[from..to];
        let Some(mut next) = text.find('\\') else {
            return Ok(Cow::Borrowed(text));
        };
        let mut out = String::new();
        let mut done = 0;
        loop {
            out.push_str(&text[done..next]);
            let wrong = || {
                TextError::at(
                    self.text,
                    from + next,
                    "not an escape sequence of N-Triples",
                    "write a backslash as `\\\\`",
                )
            };
            let digits = |length: usize| -> Option<char> {
                let digits = text.get(next + 2..next + 2 + length)?;
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)
            };
            let (c, length) = match text.as_bytes().get(next + 1) {
                Some(b't') => (Some('\t'), 2),
                Some(b'b') => (Some('\u{8}'), 2),
                Some(b'n') => (Some('\n'), 2),
                Some(b'r') => (Some('\r'), 2),
                Some(b'f') => (Some('\u{c}'), 2),
                Some(&c @ (b'"' | b'\'' | b'\\')) => (Some(char::from(c)), 2),
                Some(b'u') => (digits(4), 6),
                Some(b'U') => (digits(8), 10),
                _ => (None, 2),
            };
            out.push(c.ok_or_else(wrong)?);
            done = next + length;
            match text[done..].find('\\') {
                Some(length) => next = done + length,
                None => break,
            }
        }
        out.push_str(&text[done..]);
        Ok(Cow::Owned(out))
    }
}

/// Returns whether a text is an integer in the form that terms have here.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty();
    is_plain && (!digits.starts_with('0') || text == "0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print;

    #[test]
    fn lines_are_triples() {
        let text = "# people\n<http://x/bob> <http://x/knows> <http://x/eve> . # yes\n_:b1 \
                    <http://x/name> \"\\u00c9ve \\\"\\\\\" .\r\n\n\
                    <a> <b> \"7\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n<a> \
                    <b> \"chat\"@fr-BE.\n<a> <b> \"1.5\"^^<t> .";
        let program = ntriples(text).unwrap();
        let facts: Vec<String> = program
            .facts()
            .flat_map(|fact| print::terms(&program.symbols, fact))
            .collect();
        assert_eq!(
            facts,
            [
                "'http://x/knows'('http://x/bob','http://x/eve')",
                "'http://x/name'('_:b1',\"Éve \\\"\\\\\")",
                "b(a,7)",
                "b(a,'\"chat\"@fr-BE')",
                "b(a,'\"1.5\"^^<t>')"
            ]
        );
    }

    #[test]
    fn what_is_no_triple_is_refused_with_its_place() {
        let error = |text: &str| ntriples(text).unwrap_err().to_string();
        assert_eq!(error("<a> <b> <c> .\n<a> <b> <c>\n"), "line 2, column 12: expected `.`");
        assert_eq!(error("<a> _:b <c> ."), "line 1, column 5: expected a predicate");
        assert_eq!(error("\"a\" <b> <c> ."), "line 1, column 4: a literal is not a subject");
        assert_eq!(error("<a> <b> \"c ."), "line 1, column 9: the literal is not closed");
        assert_eq!(
            error("<a> <b> \"\\q\" ."),
            "line 1, column 10: not an escape sequence of N-Triples"
        );
        assert_eq!(error("<a <b> <c> ."), "line 1, column 1: the IRI is not closed");
    }
}
