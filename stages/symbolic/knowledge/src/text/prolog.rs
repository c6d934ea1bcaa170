//! Prolog and Datalog: facts and Horn rules, negated conditions, confidences (`0.9::head :- body.`), queries
//! (`?- goal.`).
//!
//! A clause is read without recursion, so that neither the depth of a term nor the length of a list is
//! limited by the stack.

use super::TextError;
use super::lexer::{Lexer, Token};
use crate::program::{ConstantKind, LIST, Program, ProgramBuilder, SymbolsBuilder};
use crate::word::{self, MAX_ARITY, TooMany, Word};
use std::borrow::Cow;
use std::collections::HashMap;

/// Built-in predicates that would fail here for want of clauses: refused in bodies.
const BUILT_IN: &str = "call/1 findall/3 bagof/3 setof/3 forall/2 assert/1 asserta/1 assertz/1 retract/1 \
    once/1 ignore/1 catch/3 dif/2 not/1";

/// Directives that declare what needs no declaration here.
const DECLARATIONS: &[&str] = &["dynamic", "discontiguous", "multifile", "table"];

/// Reads clauses. `hyphens` lets names hold hyphens between letters (`south-eastern_asia`), as files named
/// `.nl` have them.
///
/// # Errors
/// At the first thing that is not supported, with its place.
pub fn prolog(text: &str, hyphens: bool) -> Result<Program, TextError> {
    let mut builder = ProgramBuilder::default();
    let symbols = std::mem::take(&mut builder.symbols);
    let mut parser = Parser::new(text, hyphens, symbols);
    while parser.clause(&mut builder)? {}
    builder.symbols = parser.symbols;
    Ok(builder.finish())
}

/// Reads a goal list (`p(X), q(X, b)`, with or without a full stop), its variables numbered in order of
/// appearance, and returns its words and the variables' names.
///
/// # Errors
/// At the first thing that is not supported, with its place.
pub fn goal(text: &str, symbols: &mut SymbolsBuilder) -> Result<(Vec<Word>, Vec<String>), TextError> {
    let mut parser = Parser::new(text, false, std::mem::take(symbols));
    let read = parser.body(true);
    let names = parser.names.iter().map(|name| (*name).to_owned()).collect();
    let words = std::mem::take(&mut parser.out);
    *symbols = parser.symbols;
    read.map(|()| (words, names))
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    symbols: SymbolsBuilder,
    /// The words of the clause so far.
    out: Vec<Word>,
    /// The names of the clause's variables, by number; `_` for variables without a name.
    names: Vec<&'a str>,
    numbers: HashMap<&'a str, u32>,
    open: Vec<Open<'a>>,
    /// The first byte of the last line that was counted, and the line's number.
    passed: (usize, u32),
}

/// A compound term or list whose end is not read yet.
struct Open<'a> {
    /// The place of the functor's word.
    at: usize,
    name: Cow<'a, str>,
    arguments: usize,
    form: Form,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Compound,
    List,
    Tail,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, hyphens: bool, symbols: SymbolsBuilder) -> Self {
        Self {
            lexer: Lexer::new(text, hyphens),
            symbols,
            out: Vec::new(),
            names: Vec::new(),
            numbers: HashMap::new(),
            open: Vec::new(),
            passed: (0, 1),
        }
    }

    /// The word, or an error where there are more names than words can number.
    fn counted(&self, word: Result<Word, TooMany>) -> Result<Word, TextError> {
        word.map_err(|_| {
            self.lexer.error(
                "more names than 32-bit words can hold",
                "at most 1,073,741,824 constants, 2,097,152 predicates and 4,194,304 functors, of 4 GiB of \
                text",
            )
        })
    }

    /// The line of the last token. Clauses are read in order: each line break is counted once.
    fn line(&mut self) -> u32 {
        let (from, line) = self.passed;
        let to = self.lexer.start;
        let count = memchr::memchr_iter(b'\n', &self.lexer.text.as_bytes()[from..to]).count();
        self.passed = (to, line + count as u32);
        self.passed.1
    }

    /// Reads a clause; false at the end of the text.
    fn clause(&mut self, builder: &mut ProgramBuilder) -> Result<bool, TextError> {
        self.out.clear();
        self.names.clear();
        self.numbers.clear();
        if !builder.fits() {
            return Err(self
                .lexer
                .error("the text has more clauses than 32-bit offsets can hold", "split it"));
        }
        let mut confidence = 1.0;
        let mut token = self.lexer.next()?;
        match &token {
            Token::Eof => return Ok(false),
            Token::Name(":-") => return self.directive(),
            Token::Name("?-") => {
                self.body(false)?;
                builder.goal(&self.out);
                return Ok(true);
            }
            Token::Integer(_) | Token::Float(_) => {
                let text = match &token {
                    Token::Integer(text) => text.clone().into_owned(),
                    Token::Float(text) => (*text).to_owned(),
                    _ => String::new(),
                };
                let number = text.parse::<f32>().unwrap_or(f32::NAN);
                if !(number > 0.0 && number <= 1.0) {
                    return Err(self.lexer.error(
                        format!("`{text}` is not a confidence"),
                        "it is a number above 0 and at most 1: `0.9::head :- body.`",
                    ));
                }
                confidence = number;
                if self.lexer.next()? != Token::Name("::") {
                    return Err(self.lexer.error(
                        "a clause begins with a number",
                        "a confidence is written `0.9::head :- body.`",
                    ));
                }
                token = self.lexer.next()?;
            }
            _ => {}
        }
        let line = self.line();
        let is_negative = token == Token::Name("\\+");
        if is_negative {
            token = self.lexer.next()?;
        }
        self.atom(token)?;
        if is_negative {
            self.out[0] = word::negated(self.out[0]);
        }
        let head = self.out.len();
        match self.lexer.next()? {
            Token::End => {}
            Token::Name(":-" | "<-") if !is_negative => self.body(false)?,
            token => return Err(self.unexpected(&token, "`.` or `:-`")),
        }
        let (head, body) = self.out.split_at(head);
        builder.clause(head, body, self.names.len() as u32, confidence, line);
        Ok(true)
    }

    fn directive(&mut self) -> Result<bool, TextError> {
        match self.lexer.next()? {
            Token::Name(name) if DECLARATIONS.contains(&name) => loop {
                match self.lexer.next()? {
                    Token::End => return Ok(true),
                    Token::Eof => {
                        return Err(self.lexer.error("the directive has no end", "end it with `.`"));
                    }
                    _ => {}
                }
            },
            _ => Err(self.lexer.error(
                "a directive is not supported",
                "remove it; a query is written `?- goal.`",
            )),
        }
    }

    /// Reads literals up to the full stop, or to the end of the text where `to_end`.
    fn body(&mut self, to_end: bool) -> Result<(), TextError> {
        loop {
            let mut token = self.lexer.next()?;
            let is_negated =
                token == Token::Name("\\+") || (token == Token::Name("not") && self.is_before_name());
            if is_negated {
                token = self.lexer.next()?;
            }
            let start = self.out.len();
            let is_true = token == Token::Name("true") && self.lexer.peek() != b'(' && !is_negated;
            if !is_true {
                let name = match &token {
                    Token::Name(name) => Some(*name),
                    _ => None,
                };
                let place = self.lexer.start;
                self.atom(token)?;
                let arity = word::arity(self.out[start]);
                let is_built_in = |name: &&str| {
                    let mut known = BUILT_IN.split(' ').filter_map(|of| of.strip_prefix(name));
                    known.any(|rest| rest.strip_prefix('/') == Some(&arity.to_string()))
                };
                if let Some(name) = name.filter(is_built_in) {
                    return Err(TextError::at(
                        self.lexer.text,
                        place,
                        format!("the built-in predicate `{name}/{arity}` is not supported"),
                        "facts, Horn rules and negated conditions (`\\+ p(X)`) are",
                    ));
                }
                if is_negated {
                    self.out[start] = word::negated(self.out[start]);
                }
            }
            match self.lexer.next()? {
                Token::Punctuation(b',') => {}
                Token::End => break,
                Token::Eof if to_end => break,
                token => return Err(self.unexpected(&token, "`,` or `.`")),
            }
        }
        match to_end && self.lexer.next()? != Token::Eof {
            true => Err(self.lexer.error("a goal has text after its end", "write one goal")),
            false => Ok(()),
        }
    }

    /// Returns whether a name or a quotation mark follows, after blanks.
    fn is_before_name(&self) -> bool {
        let rest = self.lexer.text[self.lexer.at..].trim_start();
        rest.len() < self.lexer.text.len() - self.lexer.at
            && rest.starts_with(|c: char| c.is_lowercase() || c == '\'')
    }

    fn unexpected(&self, token: &Token<'_>, wanted: &str) -> TextError {
        let operator = |name: &str| {
            self.lexer.error(
                format!("the operator `{name}` is not supported here"),
                match name {
                    "-" => {
                        "write a name with a hyphen in quotation marks ('south-eastern'), or name the \
                    file .nl, where names may hold hyphens"
                    }
                    ";" => "write two rules",
                    _ => "write a term as `name(arguments)`, a name of such characters in '…'",
                },
            )
        };
        let expected = |found: &str| {
            self.lexer.error(
                format!("expected {wanted}, found {found}"),
                "a clause is `head.` or `head :- condition, condition.`",
            )
        };
        match token {
            Token::Name("!") => self
                .lexer
                .error("the cut `!` is not supported", "write rules that exclude one another"),
            Token::Name(name) if !name.starts_with(char::is_alphabetic) => operator(name),
            Token::Name(name @ ("is" | "mod" | "rem" | "xor" | "rdiv" | "as")) => operator(name),
            Token::Name(name) => expected(&format!("`{name}`")),
            Token::Quoted(name) => expected(&format!("`'{name}'`")),
            Token::Variable(name) | Token::Float(name) => expected(&format!("`{name}`")),
            Token::Integer(digits) => expected(&format!("`{digits}`")),
            Token::String(_) => expected("a string"),
            Token::Punctuation(byte) => expected(&format!("`{}`", char::from(*byte))),
            Token::End => expected("`.`"),
            Token::Eof => expected("the end of the text"),
        }
    }

    /// Reads an atom that begins with `token`.
    fn atom(&mut self, token: Token<'a>) -> Result<(), TextError> {
        let start = self.out.len();
        let name: Cow<'a, str> = match token {
            Token::Name(name) if name.starts_with(char::is_alphabetic) => name.into(),
            Token::Quoted(name) => name,
            Token::Variable(name) => {
                return Err(self.lexer.error(
                    format!("the variable `{name}` stands for an atom"),
                    "a predicate has a name that begins with a lower-case letter, or is in '…'",
                ));
            }
            Token::Punctuation(b'(') => {
                return Err(self.lexer.error(
                    "conditions in parentheses are not supported",
                    "write them one after another",
                ));
            }
            token => return Err(self.unexpected(&token, "an atom")),
        };
        let place = self.lexer.start;
        if self.lexer.peek() != b'(' {
            let word = self.symbols.predicate(name.as_bytes(), 0);
            self.out.push(self.counted(word)?);
            return Ok(());
        }
        self.lexer.at += 1;
        self.out.push(0);
        let mut arity = 0;
        loop {
            self.term()?;
            arity += 1;
            match self.lexer.next()? {
                Token::Punctuation(b',') => {}
                Token::Punctuation(b')') => break,
                token => return Err(self.unexpected(&token, "`,` or `)`")),
            }
        }
        self.check_arity(place, &name, arity)?;
        let word = self.symbols.predicate(name.as_bytes(), arity);
        self.out[start] = self.counted(word)?;
        Ok(())
    }

    fn check_arity(&self, place: usize, name: &str, arity: usize) -> Result<(), TextError> {
        match arity <= MAX_ARITY {
            true => Ok(()),
            false => Err(TextError::at(
                self.lexer.text,
                place,
                format!("`{name}` has {arity} arguments"),
                format!("at most {MAX_ARITY} are supported; write a list"),
            )),
        }
    }

    /// Reads a term. Open compound terms and lists are kept in `open`, not on the stack.
    fn term(&mut self) -> Result<(), TextError> {
        loop {
            self.begin()?;
            // A term is complete, and perhaps those that it is the last argument of.
            loop {
                let Some(open) = self.open.last().map(|open| open.form) else {
                    return Ok(());
                };
                let token = self.lexer.next()?;
                match (open, &token) {
                    (Form::Compound, Token::Punctuation(b',')) => {
                        self.last().arguments += 1;
                        break;
                    }
                    (Form::Compound, Token::Punctuation(b')')) => {
                        let Some(open) = self.open.pop() else { return Ok(()) };
                        self.check_arity(self.lexer.start, &open.name, open.arguments + 1)?;
                        let word = self.symbols.functor(open.name.as_bytes(), open.arguments + 1);
                        self.out[open.at] = self.counted(word)?;
                    }
                    (Form::List, Token::Punctuation(b',')) => {
                        self.push_list()?;
                        break;
                    }
                    (Form::List, Token::Punctuation(b'|')) => {
                        self.last().form = Form::Tail;
                        break;
                    }
                    (Form::List, Token::Punctuation(b']')) => {
                        self.push_constant(b"[]", ConstantKind::EmptyList)?;
                        self.open.pop();
                    }
                    (Form::Tail, Token::Punctuation(b']')) => {
                        self.open.pop();
                    }
                    _ => {
                        let wanted = match open {
                            Form::Compound => "`,` or `)`",
                            Form::List => "`,`, `|` or `]`",
                            Form::Tail => "`]`",
                        };
                        return Err(self.unexpected(&token, wanted));
                    }
                }
            }
        }
    }

    /// Reads a term down to its first part that is no compound term.
    fn begin(&mut self) -> Result<(), TextError> {
        loop {
            let token = self.lexer.next()?;
            match token {
                Token::Name("-") if self.lexer.peek().is_ascii_digit() => match self.lexer.next()? {
                    Token::Integer(digits) => {
                        let text = if digits == "0" {
                            "0".to_owned()
                        } else {
                            format!("-{digits}")
                        };
                        return self.push_constant(text.as_bytes(), ConstantKind::Integer);
                    }
                    token => return Err(self.unsupported_number(&token)),
                },
                Token::Name(_) | Token::Quoted(_) => {
                    let name: Cow<'a, str> = match token {
                        Token::Name(name) => name.into(),
                        Token::Quoted(name) => name,
                        _ => Cow::Borrowed(""),
                    };
                    if self.lexer.peek() != b'(' {
                        return self.push_constant(name.as_bytes(), ConstantKind::Atom);
                    }
                    self.lexer.at += 1;
                    self.open.push(Open {
                        at: self.out.len(),
                        name,
                        arguments: 0,
                        form: Form::Compound,
                    });
                    self.out.push(0);
                }
                Token::Variable(name) => {
                    let word = self.variable(name)?;
                    self.out.push(word);
                    return Ok(());
                }
                Token::Integer(digits) => {
                    return self.push_constant(digits.as_bytes(), ConstantKind::Integer);
                }
                Token::String(text) => return self.push_constant(text.as_bytes(), ConstantKind::String),
                Token::Float(_) => return Err(self.unsupported_number(&token)),
                Token::Punctuation(b'[') => {
                    let (at, start) = (self.lexer.at, self.lexer.start);
                    if self.lexer.next()? == Token::Punctuation(b']') {
                        return self.push_constant(b"[]", ConstantKind::EmptyList);
                    }
                    (self.lexer.at, self.lexer.start) = (at, start);
                    self.open.push(Open {
                        at: self.out.len(),
                        name: LIST.into(),
                        arguments: 1,
                        form: Form::List,
                    });
                    self.push_list()?;
                }
                Token::Punctuation(b'{') => {
                    return Err(self.lexer.error("terms in braces are not supported", "write a list"));
                }
                Token::Punctuation(b'(') => {
                    return Err(self
                        .lexer
                        .error("a term in parentheses is not supported", "leave them out"));
                }
                token => return Err(self.unexpected(&token, "a term")),
            }
        }
    }

    fn unsupported_number(&self, token: &Token<'_>) -> TextError {
        let text = match token {
            Token::Float(text) => *text,
            _ => "",
        };
        self.lexer.error(
            format!("the number `{text}` has a fraction"),
            "numbers are integers; write it in '…' where it is only a name",
        )
    }

    fn last(&mut self) -> &mut Open<'a> {
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    fn push_list(&mut self) -> Result<(), TextError> {
        let word = self.symbols.functor(LIST.as_bytes(), 2);
        self.out.push(self.counted(word)?);
        Ok(())
    }

    #[inline]
    fn push_constant(&mut self, name: &[u8], kind: ConstantKind) -> Result<(), TextError> {
        let word = self.symbols.constant(name, kind);
        self.out.push(self.counted(word)?);
        Ok(())
    }

    fn variable(&mut self, name: &'a str) -> Result<Word, TextError> {
        let next = self.names.len() as u32;
        let number = match name {
            "_" => next,
            _ => *self.numbers.entry(name).or_insert(next),
        };
        if number == next {
            if self.names.len() >= word::MAX_VARIABLES / 2 {
                return Err(self.lexer.error("the clause has too many variables", "split it"));
            }
            self.names.push(name);
        }
        Ok(word::variable(number))
    }
}
