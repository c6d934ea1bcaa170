//! Programs: what a text says, in words, before it is indexed.

use crate::names::{Interner, Names};
use crate::sections::{Reader, SectionError, Words, Writer};
use crate::word::{self, Word};
use bytes::Bytes;
use std::io;

/// The kinds of constants, which are the tags of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ConstantKind {
    /// A name: `bob`, `'New York'`.
    Atom = 0,
    /// An integer of any length, as its decimal digits.
    Integer = 1,
    /// A text in double quotation marks.
    String = 2,
    /// The empty list `[]`, which differs from the atom `'[]'`.
    EmptyList = 3,
}

impl ConstantKind {
    /// The kind with that tag.
    pub fn of_tag(tag: u8) -> Self {
        match tag {
            1 => Self::Integer,
            2 => Self::String,
            3 => Self::EmptyList,
            _ => Self::Atom,
        }
    }
}

/// The functor of lists.
pub const LIST: &str = "[|]";

/// The names that words refer to.
#[derive(Clone, Debug)]
pub struct Symbols {
    /// The constants; a tag is a [`ConstantKind`].
    pub constants: Names,
    /// The predicates; a tag is the arity.
    pub predicates: Names,
    /// The functors; a tag is the arity.
    pub functors: Names,
}

/// As [`Symbols`], while names are still added.
#[derive(Clone, Debug, Default)]
pub struct SymbolsBuilder {
    /// The constants.
    pub constants: Interner,
    /// The predicates.
    pub predicates: Interner,
    /// The functors.
    pub functors: Interner,
}

impl SymbolsBuilder {
    /// The word of a constant.
    ///
    /// # Errors
    /// When there are more than words can name.
    pub fn constant(&mut self, name: &[u8], kind: ConstantKind) -> Result<Word, TooMany> {
        let number = self.constants.intern(name, kind as u8);
        number
            .filter(|&n| (n as usize) < word::MAX_CONSTANTS)
            .map(word::constant)
            .ok_or(TooMany)
    }

    /// The word of a predicate.
    ///
    /// # Errors
    /// When there are more than words can name.
    pub fn predicate(&mut self, name: &[u8], arity: usize) -> Result<Word, TooMany> {
        let tag = u8::try_from(arity).map_err(|_| TooMany)?;
        let number = self.predicates.intern(name, tag);
        let number = number.filter(|&n| (n as usize) < word::MAX_PREDICATES).ok_or(TooMany)?;
        Ok(word::predicate(number, arity))
    }

    /// The word of a functor.
    ///
    /// # Errors
    /// When there are more than words can name.
    pub fn functor(&mut self, name: &[u8], arity: usize) -> Result<Word, TooMany> {
        let tag = u8::try_from(arity).map_err(|_| TooMany)?;
        let number = self.functors.intern(name, tag);
        let number = number.filter(|&n| (n as usize) < word::MAX_FUNCTORS).ok_or(TooMany)?;
        Ok(word::functor(number, arity))
    }

    /// The frozen names.
    pub fn freeze(self) -> Symbols {
        Symbols {
            constants: self.constants.freeze(),
            predicates: self.predicates.freeze(),
            functors: self.functors.freeze(),
        }
    }
}

impl Symbols {
    /// A copy that takes more names: for goals that name what the knowledge base does not.
    pub fn thaw(&self) -> SymbolsBuilder {
        SymbolsBuilder {
            constants: self.constants.thaw(),
            predicates: self.predicates.thaw(),
            functors: self.functors.thaw(),
        }
    }

    /// The word of a predicate, where there is one of that name and arity.
    pub fn predicate(&self, name: &str, arity: usize) -> Option<Word> {
        let number = self.predicates.find(name, u8::try_from(arity).ok()?)?;
        Some(word::predicate(number, arity))
    }

    /// The word of the atom with that name, where there is one.
    pub fn atom(&self, name: &str) -> Option<Word> {
        self.constants.find(name, ConstantKind::Atom as u8).map(word::constant)
    }

    pub(crate) fn write<'a>(&'a self, writer: &mut Writer<'a>) {
        self.constants.write(writer);
        self.predicates.write(writer);
        self.functors.write(writer);
    }

    pub(crate) fn read(reader: &mut Reader) -> Result<Self, SectionError> {
        Ok(Self {
            constants: Names::read(reader)?,
            predicates: Names::read(reader)?,
            functors: Names::read(reader)?,
        })
    }
}

/// The error for a text with more names, or an arity larger, than words can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// The clauses of a text, and its queries, in order.
#[derive(Clone, Debug)]
pub struct Program {
    /// The names.
    pub symbols: Symbols,
    /// The facts without variables, compound terms and confidence: each a predicate's word and constants.
    pub facts: Words,
    /// All other clauses; see [`Rule`].
    pub rules: Words,
    /// The start of each rule in `rules`, and the end of the last.
    pub rule_starts: Words,
    /// The goals of `?- goal.`, or of a file of queries.
    pub goals: Words,
    /// The start of each goal list in `goals`, and the end of the last.
    pub goal_starts: Words,
    /// The number of clauses.
    pub clauses: u32,
}

/// A clause other than a plain fact.
///
/// Its words: the clause's number in the text, the number of variables, the confidence as bits of an `f32`,
/// the text's number, the line, the length of the head; the head; the body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule<'a> {
    /// The clause's number in the text, from 0.
    pub clause: u32,
    /// The number of variables; they are numbered from 0 in order of appearance.
    pub variables: u32,
    /// The confidence: 1 where none is stated.
    pub confidence: f32,
    /// The text that it is of, by its number among those of the knowledge base.
    pub source: u32,
    /// The line on which it begins, from 1.
    pub line: u32,
    /// The atom that it concludes.
    pub head: &'a [Word],
    /// Its conditions, one atom after another; empty for a fact.
    pub body: &'a [Word],
}

/// The number of words before a rule's head.
pub(crate) const RULE_HEAD: usize = 6;

impl<'a> Rule<'a> {
    /// The rule in these words.
    #[inline]
    pub fn of(words: &'a [Word]) -> Self {
        let (head, body) = words[RULE_HEAD..].split_at(words[5] as usize);
        Self {
            clause: words[0],
            variables: words[1],
            confidence: f32::from_bits(words[2]),
            source: words[3],
            line: words[4],
            head,
            body,
        }
    }

    pub(crate) fn push(&self, words: &mut Vec<Word>) {
        let confidence = self.confidence.to_bits();
        let length = self.head.len() as u32;
        words.extend([self.clause, self.variables, confidence, self.source, self.line, length]);
        words.extend(self.head);
        words.extend(self.body);
    }
}

/// A [`Program`] while it is read.
#[derive(Debug, Default)]
pub struct ProgramBuilder {
    /// The names.
    pub symbols: SymbolsBuilder,
    facts: Vec<Word>,
    rules: Vec<Word>,
    rule_starts: Vec<u32>,
    goals: Vec<Word>,
    goal_starts: Vec<u32>,
    clauses: u32,
}

impl ProgramBuilder {
    /// Adds a fact: a predicate's word and constants.
    #[inline]
    pub fn fact(&mut self, words: &[Word]) {
        self.facts.extend_from_slice(words);
        self.clauses += 1;
    }

    /// Adds a clause, which begins on a line: as a fact where it is one.
    pub fn clause(&mut self, head: &[Word], body: &[Word], variables: u32, confidence: f32, line: u32) {
        if body.is_empty() && confidence == 1.0 && head[1..].iter().all(|&word| word::is_constant(word)) {
            return self.fact(head);
        }
        self.rule_starts.push(self.rules.len() as u32);
        Rule {
            clause: self.clauses,
            variables,
            confidence,
            source: 0,
            line,
            head,
            body,
        }
        .push(&mut self.rules);
        self.clauses += 1;
    }

    /// Adds a goal list.
    pub fn goal(&mut self, goals: &[Word]) {
        self.goal_starts.push(self.goals.len() as u32);
        self.goals.extend_from_slice(goals);
    }

    /// Returns whether the words are still few enough for their offsets.
    pub(crate) fn fits(&self) -> bool {
        [&self.facts, &self.rules, &self.goals]
            .iter()
            .all(|words| words.len() < u32::MAX as usize / 2)
    }

    /// The program.
    pub fn finish(mut self) -> Program {
        self.rule_starts.push(self.rules.len() as u32);
        self.goal_starts.push(self.goals.len() as u32);
        Program {
            symbols: self.symbols.freeze(),
            facts: self.facts.into(),
            rules: self.rules.into(),
            rule_starts: self.rule_starts.into(),
            goals: self.goals.into(),
            goal_starts: self.goal_starts.into(),
            clauses: self.clauses,
        }
    }
}

impl Program {
    /// The facts that are not stated not to hold, as a program without rules and goals.
    #[must_use]
    pub fn positive_facts(&self) -> Self {
        let kept = || self.facts().filter(|fact| !word::is_negated(fact[0]));
        let clauses = kept().count();
        let is_all = word::parts(&self.facts).count() == clauses;
        Self {
            symbols: self.symbols.clone(),
            facts: match is_all {
                true => self.facts.clone(),
                false => kept().flatten().copied().collect(),
            },
            rules: Words::from(Vec::new()),
            rule_starts: Words::from(vec![0]),
            goals: Words::from(Vec::new()),
            goal_starts: Words::from(vec![0]),
            clauses: clauses as u32,
        }
    }

    /// The rules, in order.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = Rule<'_>> {
        self.rule_starts
            .windows(2)
            .map(|pair| Rule::of(&self.rules[pair[0] as usize..pair[1] as usize]))
    }

    /// The goal lists, in order.
    pub fn goals(&self) -> impl ExactSizeIterator<Item = &[Word]> {
        self.goal_starts
            .windows(2)
            .map(|pair| &self.goals[pair[0] as usize..pair[1] as usize])
    }

    /// The facts, in order.
    pub fn facts(&self) -> impl Iterator<Item = &[Word]> {
        word::parts(&self.facts).map(|range| &self.facts[range])
    }

    /// Writes it as a file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let counts = [self.clauses];
        let mut writer = Writer::default();
        self.symbols.write(&mut writer);
        for words in [
            &self.facts,
            &self.rules,
            &self.rule_starts,
            &self.goals,
            &self.goal_starts,
        ] {
            writer.words(words);
        }
        writer.words(&counts);
        writer.write(out)
    }

    /// Opens a file that [`Program::write`] made, without copying it.
    ///
    /// # Errors
    /// When it is not one.
    pub fn open(file: Bytes) -> Result<Self, SectionError> {
        let reader = &mut Reader::open(file)?;
        let program = Self {
            symbols: Symbols::read(reader)?,
            facts: reader.words()?,
            rules: reader.words()?,
            rule_starts: reader.words()?,
            goals: reader.words()?,
            goal_starts: reader.words()?,
            clauses: *reader.words()?.first().ok_or(SectionError)?,
        };
        match reader.is_at_end() {
            true => Ok(program),
            false => Err(SectionError),
        }
    }
}
