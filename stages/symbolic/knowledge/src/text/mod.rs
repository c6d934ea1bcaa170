//! Text: Prolog and Datalog, triples as TSV or CSV, RDF N-Triples, read into a [`Program`](crate::Program).

mod lexer;
mod ntriples;
mod prolog;
mod triples;

pub(crate) use lexer::continues_name;
pub use ntriples::ntriples;
pub use prolog::{goal, prolog};
pub use triples::{TripleForm, triples};

/// The place and reason for which a text is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct TextError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The problem, a lowercase fragment.
    pub message: String,
    /// A hint at the solution; empty where there is none.
    pub hint: String,
}

impl TextError {
    /// The error at a byte offset of a text.
    pub(crate) fn at(text: &str, offset: usize, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let offset = offset.min(text.len());
        let before = &text.as_bytes()[..offset];
        let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        Self {
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            column: String::from_utf8_lossy(&before[start..]).chars().count() + 1,
            message: message.into(),
            hint: hint.into(),
        }
    }
}
