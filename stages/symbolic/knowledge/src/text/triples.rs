//! Triples as TSV or CSV: one line for each, with head, relation, tail and an optional label.

use super::TextError;
use crate::program::{ConstantKind, Program, ProgramBuilder};
use crate::word::{self, Word};
use std::borrow::Cow;

/// The form of a file of triples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TripleForm {
    /// The places of head, relation and tail, from 0.
    pub columns: [usize; 3],
    /// The byte between fields; `None` for a tab where the first line has one, and else a comma.
    pub separator: Option<u8>,
    /// True where the first line names the columns.
    pub header: bool,
}

impl Default for TripleForm {
    fn default() -> Self {
        Self {
            columns: [0, 1, 2],
            separator: None,
            header: false,
        }
    }
}

/// Reads triples as facts `relation(head, tail)`. A field after them is a label: `1`, `+1` or `true` for a
/// fact, `0`, `-1` or `false` for one that is stated not to hold. Fields may be in double quotation marks
/// where commas separate them.
///
/// # Errors
/// At the first line that is no triple.
pub fn triples(text: &str, form: &TripleForm) -> Result<Program, TextError> {
    let bytes = text.as_bytes();
    let mut builder = ProgramBuilder::default();
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    let separator = form
        .separator
        .unwrap_or(if first.contains('\t') { b'\t' } else { b',' });
    let mut is_header = form.header;
    let mut at = if text.starts_with('\u{feff}') { 3 } else { 0 };
    // Files are often sorted by relation: most lines have that of the line before.
    let mut relation: (&[u8], Word) = (b"", 0);
    let mut fields: Vec<Field<'_>> = Vec::new();
    let mut waiting = Waiting::default();
    let many = |at: usize| {
        TextError::at(
            text,
            at,
            "more names than 32-bit words can hold",
            "at most 1,073,741,824 entities and 2,097,152 relations, of 4 GiB of text",
        )
    };
    while at < bytes.len() {
        let start = at;
        let mut end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length);
        at = end + 1;
        if end > start && bytes[end - 1] == b'\r' {
            end -= 1;
        }
        let line = &bytes[start..end];
        if line.is_empty() || std::mem::take(&mut is_header) {
            continue;
        }
        split(text, start, line, separator, &mut fields)?;
        if fields.len() == 1 && line.trim_ascii().is_empty() {
            continue;
        }
        let is_fact = match fields.len() {
            3 => true,
            4 => {
                let label = fields
                    .iter()
                    .enumerate()
                    .find(|(i, _)| !form.columns.contains(i))
                    .map(|(_, field)| field);
                match label.map(|label| &*label.text) {
                    Some(b"1" | b"+1" | b"true" | b"True") => true,
                    Some(b"0" | b"-1" | b"false" | b"False") => false,
                    _ => {
                        return Err(TextError::at(
                            text,
                            label.map_or(start, |label| label.at),
                            "the field after the triple is not a label",
                            "a label is 1 or 0, true or false",
                        ));
                    }
                }
            }
            count => {
                return Err(TextError::at(
                    text,
                    start,
                    format!(
                        "a line has {count} field{} separated by {}",
                        if count == 1 { "" } else { "s" },
                        if separator == b'\t' {
                            "tabs".to_owned()
                        } else {
                            format!("`{}`", char::from(separator))
                        }
                    ),
                    "a triple has three: head, relation and tail, and perhaps a label",
                ));
            }
        };
        let [head, name, tail] = form.columns.map(|column| fields.get(column).ok_or_else(|| many(start)));
        let (head, name, tail) = (head?, name?, tail?);
        if let Some(empty) = [head, name, tail].iter().find(|field| field.text.is_empty()) {
            return Err(TextError::at(
                text,
                empty.at,
                "a field is empty",
                "a triple has three: head, relation and tail",
            ));
        }
        let symbols = &mut builder.symbols;
        if &*name.text != relation.0 || relation.1 == 0 {
            let word = symbols.predicate(&name.text, 2).map_err(|_| many(start))?;
            relation = (
                match name.text {
                    Cow::Borrowed(text) => text,
                    Cow::Owned(_) => b"",
                },
                word,
            );
        }
        let predicate = if is_fact { relation.1 } else { word::negated(relation.1) };
        waiting.predicates.push(predicate);
        waiting.names.extend([head.text.clone(), tail.text.clone()]);
        if waiting.predicates.len() == AT_ONCE {
            waiting.add(&mut builder).ok_or_else(|| many(start))?;
        }
    }
    waiting.add(&mut builder).ok_or_else(|| many(text.len()))?;
    builder.triples(text)
}

/// The number of triples whose names are interned together.
const AT_ONCE: usize = 32;

/// Triples that wait for their names to be interned.
#[derive(Default)]
struct Waiting<'a> {
    predicates: Vec<Word>,
    /// The head and the tail of each triple.
    names: Vec<Cow<'a, [u8]>>,
}

impl Waiting<'_> {
    /// Adds the waiting triples as facts; `None` where there are more names than words can number.
    fn add(&mut self, builder: &mut ProgramBuilder) -> Option<()> {
        let names: Vec<&[u8]> = self.names.iter().map(AsRef::as_ref).collect();
        let mut numbers = Vec::with_capacity(names.len());
        let constants = &mut builder.symbols.constants;
        constants.intern_all(&names, ConstantKind::Atom as u8, &mut numbers)?;
        if constants.len() > word::MAX_CONSTANTS {
            return None;
        }
        for (&predicate, pair) in self.predicates.iter().zip(numbers.chunks_exact(2)) {
            builder.fact(&[predicate, word::constant(pair[0]), word::constant(pair[1])]);
        }
        self.predicates.clear();
        self.names.clear();
        Some(())
    }
}

struct Field<'a> {
    at: usize,
    text: Cow<'a, [u8]>,
}

fn split<'a>(
    text: &'a str,
    start: usize,
    line: &'a [u8],
    separator: u8,
    fields: &mut Vec<Field<'a>>,
) -> Result<(), TextError> {
    fields.clear();
    let mut at = 0;
    loop {
        if line.get(at) == Some(&b'"') && separator != b'\t' {
            let (field, end) = quoted(line, at).ok_or_else(|| {
                TextError::at(
                    text,
                    start + at,
                    "the quotation mark is not closed",
                    "close it on the same line, and write `\"\"` for one within",
                )
            })?;
            fields.push(Field {
                at: start + at,
                text: field,
            });
            if end == line.len() {
                return Ok(());
            }
            if line[end] != separator {
                return Err(TextError::at(
                    text,
                    start + end,
                    "text follows a field in quotation marks",
                    "write `\"\"` for a quotation mark within",
                ));
            }
            at = end + 1;
            continue;
        }
        let length = memchr::memchr(separator, &line[at..]);
        let end = length.map_or(line.len(), |length| at + length);
        fields.push(Field {
            at: start + at,
            text: Cow::Borrowed(&line[at..end]),
        });
        if length.is_none() {
            return Ok(());
        }
        at = end + 1;
    }
}

/// The content of a field that begins with a quotation mark, and the end of the field.
fn quoted(line: &[u8], at: usize) -> Option<(Cow<'_, [u8]>, usize)> {
    let from = at + 1;
    let mut owned: Vec<u8> = Vec::new();
    let mut part = from;
    loop {
        let end = part + memchr::memchr(b'"', &line[part..])?;
        if line.get(end + 1) != Some(&b'"') {
            return Some(match owned.is_empty() {
                true => (Cow::Borrowed(&line[from..end]), end + 1),
                false => {
                    owned.extend_from_slice(&line[part..end]);
                    (Cow::Owned(owned), end + 1)
                }
            });
        }
        owned.extend_from_slice(&line[part..=end]);
        part = end + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print;

    fn facts(text: &str, form: &TripleForm) -> Vec<String> {
        let program = triples(text, form).unwrap();
        program
            .facts()
            .flat_map(|fact| print::terms(&program.symbols, fact))
            .collect()
    }

    fn error(text: &str) -> String {
        let err = triples(text, &TripleForm::default()).unwrap_err();
        format!("{err}; {}", err.hint)
    }

    #[test]
    fn lines_are_triples() {
        let form = TripleForm::default();
        assert_eq!(
            facts("1\taunt\t2\r\nbob\taunt\tNew York\n\n", &form),
            ["aunt('1','2')", "aunt(bob,'New York')"]
        );
        let labelled = "a,r,b,1\na,r,\"x, \"\"y\"\"\",0";
        assert_eq!(facts(labelled, &form), ["r(a,b)", "\\+r(a,'x, \"y\"')"]);
        let form = TripleForm {
            columns: [1, 0, 2],
            separator: Some(b' '),
            header: true,
        };
        assert_eq!(facts("rel head tail\nr a b\nr b c\n", &form), ["r(a,b)", "r(b,c)"]);
    }

    #[test]
    fn what_is_no_triple_is_refused_with_its_place() {
        let text = "a\tr\tb\na\tr\n";
        assert_eq!(
            error(text),
            "line 2, column 1: a line has 2 fields separated by tabs; a triple has three: head, relation \
            and tail, and perhaps a label"
        );
        assert_eq!(
            error("a\tr\tb\tx"),
            "line 1, column 7: the field after the triple is not a label; a label is 1 or 0, true or false"
        );
        assert!(error("a,r,\"b").starts_with("line 1, column 5: the quotation mark is not closed"));
        assert!(error("a\t\tb").starts_with("line 1, column 3: a field is empty"));
    }
}
