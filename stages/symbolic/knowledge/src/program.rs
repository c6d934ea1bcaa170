//! Programs: what a text says, in words, before it is indexed.

use crate::names::{Interner, Names};
use crate::sections::{Lists, ListsBuilder, Words, sections};
use crate::text::TextError;
use crate::word::{self, TooMany, Word};

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
    pub fn from_tag(tag: u8) -> Self {
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
#[derive(Clone, Debug, Default)]
pub struct Symbols<N = Names> {
    /// The constants; a tag is a [`ConstantKind`].
    pub constants: N,
    /// The predicates; a tag is the arity.
    pub predicates: N,
    /// The functors; a tag is the arity.
    pub functors: N,
}

/// Names to which more are added.
pub type SymbolsBuilder = Symbols<Interner>;

/// The number of a name among those of its kind, of which words can name at most `most`.
#[inline]
fn number(names: &mut Interner, name: &[u8], tag: usize, most: usize) -> Result<u32, TooMany> {
    let number = u8::try_from(tag).ok().and_then(|tag| names.intern(name, tag));
    number.filter(|&number| (number as usize) < most).ok_or(TooMany)
}

impl SymbolsBuilder {
    /// The word of a constant.
    ///
    /// # Errors
    /// Fails when there are more constants than words can name.
    pub fn constant(&mut self, name: &[u8], kind: ConstantKind) -> Result<Word, TooMany> {
        number(&mut self.constants, name, kind as usize, word::MAX_CONSTANTS).map(word::constant)
    }

    /// The word of a predicate.
    ///
    /// # Errors
    /// Fails when there are more predicates than words can name.
    pub fn predicate(&mut self, name: &[u8], arity: usize) -> Result<Word, TooMany> {
        let number = number(&mut self.predicates, name, arity, word::MAX_PREDICATES)?;
        Ok(word::predicate(number, arity))
    }

    /// The word of a functor.
    ///
    /// # Errors
    /// Fails when there are more functors than words can name.
    pub fn functor(&mut self, name: &[u8], arity: usize) -> Result<Word, TooMany> {
        let number = number(&mut self.functors, name, arity, word::MAX_FUNCTORS)?;
        Ok(word::functor(number, arity))
    }

    /// Freezes the names.
    pub fn freeze(self) -> Symbols {
        Symbols {
            constants: self.constants.freeze(),
            predicates: self.predicates.freeze(),
            functors: self.functors.freeze(),
        }
    }
}

impl Symbols {
    /// A copy to which names can be added, for goals with names that the knowledge base lacks.
    pub fn thaw(&self) -> SymbolsBuilder {
        Symbols {
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
}

sections!(Symbols [constants, predicates, functors] |_| true);

/// The clauses of a text, and its queries, in order.
#[derive(Clone, Debug)]
pub struct Program {
    /// The names.
    pub symbols: Symbols,
    /// The facts without variables, compound terms and confidence, each as a predicate's word and constants.
    pub facts: Words,
    /// All other clauses; see [`Rule`].
    pub rules: Lists,
    /// The goal lists of `?- goal.`, or of a file of queries.
    pub goals: Lists,
    /// The number of clauses.
    pub clauses: u32,
}

/// A clause other than a plain fact.
///
/// A rule's words are the clause's number in the text, the number of variables, the confidence as bits of an
/// `f32`, the text's number, the line, the length of the head; then the head; then the body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule<'a> {
    /// The clause's number in the text, from 0.
    pub clause: u32,
    /// The number of variables; they are numbered from 0 in order of appearance.
    pub variables: u32,
    /// The confidence: 1 where none is stated.
    pub confidence: f32,
    /// The number of the rule's text among the texts of the knowledge base.
    pub source: u32,
    /// The line on which the clause begins, from 1.
    pub line: u32,
    /// The atom that the rule concludes.
    pub head: &'a [Word],
    /// The rule's conditions, one atom after another; empty for a fact.
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

    /// The words of the rule.
    pub(crate) fn words(&self) -> impl Iterator<Item = Word> + use<'a> {
        let confidence = self.confidence.to_bits();
        let length = self.head.len() as u32;
        let first = [self.clause, self.variables, confidence, self.source, self.line, length];
        first.into_iter().chain(self.head.iter().chain(self.body).copied())
    }
}

/// A [`Program`] while it is read.
#[derive(Debug, Default)]
pub struct ProgramBuilder {
    /// The names.
    pub symbols: SymbolsBuilder,
    facts: Vec<Word>,
    rules: ListsBuilder,
    goals: ListsBuilder,
    clauses: u32,
}

impl ProgramBuilder {
    /// Adds a fact: a predicate's word and constants.
    #[inline]
    pub fn fact(&mut self, words: &[Word]) {
        self.facts.extend_from_slice(words);
        self.clauses += 1;
    }

    /// Adds a clause that begins on the given line: as a fact where it is one.
    pub fn clause(&mut self, head: &[Word], body: &[Word], variables: u32, confidence: f32, line: u32) {
        if body.is_empty() && confidence == 1.0 && head[1..].iter().all(|&word| word::is_constant(word)) {
            return self.fact(head);
        }
        let rule = Rule {
            clause: self.clauses,
            variables,
            confidence,
            source: 0,
            line,
            head,
            body,
        };
        self.rules.push(rule.words());
        self.clauses += 1;
    }

    /// Adds a goal list.
    pub fn goal(&mut self, goals: &[Word]) {
        self.goals.push(goals.iter().copied());
    }

    /// Completes the program, unless the facts of a text are too many.
    pub(crate) fn triples(self, text: &str) -> Result<Program, TextError> {
        match self.fits() {
            true => Ok(self.finish()),
            false => {
                let message = "more triples than 32-bit offsets can hold";
                Err(TextError::at(text, 0, message, "split the file"))
            }
        }
    }

    /// Returns whether the words are still few enough for their offsets.
    pub(crate) fn fits(&self) -> bool {
        [self.facts.len(), self.rules.words(), self.goals.words()]
            .iter()
            .all(|&words| words < u32::MAX as usize / 2)
    }

    /// Completes the program.
    pub fn finish(self) -> Program {
        Program {
            symbols: self.symbols.freeze(),
            facts: self.facts.into(),
            rules: self.rules.freeze(),
            goals: self.goals.freeze(),
            clauses: self.clauses,
        }
    }
}

impl Program {
    /// The facts that are not stated to be false, as a program without rules and goals.
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
            rules: ListsBuilder::default().freeze(),
            goals: ListsBuilder::default().freeze(),
            clauses: clauses as u32,
        }
    }

    /// The rules, in order.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = Rule<'_>> {
        self.rules.iter().map(Rule::of)
    }

    /// The facts, in order.
    pub fn facts(&self) -> impl Iterator<Item = &[Word]> {
        word::parts(&self.facts).map(|range| &self.facts[range])
    }
}

sections!(Program [symbols, facts, rules, goals, clauses] |_| true);
