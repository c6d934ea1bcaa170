//! Knowledge bases from programs: names are merged, facts sorted by predicate and indexed.

use crate::knowledge_base::{KnowledgeBase, Split, rule_indices};
use crate::names::Names;
use crate::program::{ConstantKind, Program, Rule, Symbols, SymbolsBuilder};
use crate::relations::Columns;
use crate::sections::ListsBuilder;
use crate::word::{self, TooMany, Word};

/// The reason why programs cannot be made into a knowledge base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// There are more names, facts or words than 32-bit words and offsets can hold.
    #[error("the knowledge base is too large for 32-bit words")]
    TooLarge,
    /// A fact of the graph, or the head of a rule, is negated.
    #[error("a fact that proofs may use is stated not to hold")]
    Negative,
}

impl From<TooMany> for BuildError {
    fn from(_: TooMany) -> Self {
        Self::TooLarge
    }
}

/// Merges programs into a knowledge base. Clauses are numbered in the order in which programs are added.
#[derive(Default)]
pub struct Builder {
    symbols: SymbolsBuilder,
    facts: Vec<Word>,
    fact_clauses: Vec<u32>,
    rules: ListsBuilder,
    queries: [ListsBuilder; 3],
    clauses: u32,
    sources: String,
    texts: u32,
}

/// The words of a program's constants, predicates and functors in the merged knowledge base; `None` where
/// they are the same.
struct Renaming(Option<[Vec<Word>; 3]>);

impl Renaming {
    fn extend(&self, to: &mut Vec<Word>, words: &[Word]) {
        let Some([constants, predicates, functors]) = &self.0 else {
            return to.extend_from_slice(words);
        };
        to.extend(words.iter().map(|&given| {
            let number = word::number(given) as usize;
            if word::is_constant(given) {
                constants[number]
            } else if word::is_functor(given) {
                functors[number]
            } else if !word::is_predicate(given) {
                given
            } else if word::is_negated(given) {
                word::negated(predicates[number])
            } else {
                predicates[number]
            }
        }));
    }
}

impl Builder {
    /// A builder without clauses.
    pub fn new() -> Self {
        Self::default()
    }

    fn rename(&mut self, symbols: &Symbols) -> Result<Renaming, BuildError> {
        let all = &mut self.symbols;
        if all.constants.is_empty() && all.predicates.is_empty() && all.functors.is_empty() {
            *all = symbols.thaw();
            return Ok(Renaming(None));
        }
        let numbers = |names: &Names| 0..names.len() as u32;
        let (constants, predicates, functors) = (&symbols.constants, &symbols.predicates, &symbols.functors);
        Ok(Renaming(Some([
            numbers(constants)
                .map(|n| all.constant(constants.bytes(n), ConstantKind::from_tag(constants.tag(n))))
                .collect::<Result<_, _>>()?,
            numbers(predicates)
                .map(|n| all.predicate(predicates.bytes(n), predicates.tag(n).into()))
                .collect::<Result<_, _>>()?,
            numbers(functors)
                .map(|n| all.functor(functors.bytes(n), functors.tag(n).into()))
                .collect::<Result<_, _>>()?,
        ])))
    }

    /// Adds the clauses of a program to those that proofs may use; `source` is the name of its text, for
    /// messages.
    ///
    /// # Errors
    /// When they are too many, or a head is negated.
    pub fn graph(&mut self, source: &str, program: &Program) -> Result<(), BuildError> {
        self.sources.extend(source.chars().filter(|c| !c.is_control()));
        self.sources.push('\n');
        self.texts += 1;
        let renaming = self.rename(&program.symbols)?;
        let first = self.clauses;
        self.clauses = first.checked_add(program.clauses).ok_or(BuildError::TooLarge)?;
        // Facts have the numbers that rules leave.
        let mut rules = program.rules();
        let mut next_rule = rules.next();
        let mut clause = first;
        let mut copied = 0;
        for range in word::parts(&program.facts) {
            if word::is_negated(program.facts[range.start]) {
                return Err(BuildError::Negative);
            }
            copied = range.end;
            while let Some(rule) = next_rule.filter(|rule| first + rule.clause == clause) {
                self.rule(&renaming, &rule, clause)?;
                next_rule = rules.next();
                clause += 1;
            }
            self.fact_clauses.push(clause);
            clause += 1;
        }
        renaming.extend(&mut self.facts, &program.facts[..copied]);
        while let Some(rule) = next_rule {
            self.rule(&renaming, &rule, first + rule.clause)?;
            next_rule = rules.next();
        }
        match self.facts.len().max(self.rules.words()) < u32::MAX as usize / 2 {
            true => Ok(()),
            false => Err(BuildError::TooLarge),
        }
    }

    fn rule(&mut self, renaming: &Renaming, rule: &Rule<'_>, clause: u32) -> Result<(), BuildError> {
        if word::is_negated(rule.head[0]) {
            return Err(BuildError::Negative);
        }
        let (mut head, mut body) = (Vec::new(), Vec::new());
        renaming.extend(&mut head, rule.head);
        renaming.extend(&mut body, rule.body);
        let rule = Rule {
            clause,
            source: self.texts - 1,
            head: &head,
            body: &body,
            ..*rule
        };
        self.rules.push(rule.words());
        Ok(())
    }

    /// Adds a program's facts and goals to the queries of a split: all as such that do not hold where
    /// `negative`.
    ///
    /// # Errors
    /// When they are too many.
    pub fn queries(&mut self, split: Split, program: &Program, negative: bool) -> Result<(), BuildError> {
        self.asked(split, program, true, negative)
    }

    /// Adds a program's goals (`?- goal.`) to the queries of a split.
    ///
    /// # Errors
    /// When they are too many.
    pub fn goals(&mut self, split: Split, program: &Program) -> Result<(), BuildError> {
        self.asked(split, program, false, false)
    }

    fn asked(
        &mut self,
        split: Split,
        program: &Program,
        facts: bool,
        negative: bool,
    ) -> Result<(), BuildError> {
        let renaming = self.rename(&program.symbols)?;
        let queries = &mut self.queries[split as usize];
        let signed = |word: Word| match negative && word::is_predicate(word) {
            true => word::negated(word),
            false => word,
        };
        let mut words = Vec::new();
        let mut add = |query: &[Word]| {
            renaming.extend(&mut words, query);
            queries.push(words.drain(..).map(signed));
            queries.words() < u32::MAX as usize / 2
        };
        match program.facts().filter(|_| facts).all(&mut add) && program.goals.iter().all(add) {
            true => Ok(()),
            false => Err(BuildError::TooLarge),
        }
    }

    /// Completes the knowledge base.
    ///
    /// # Errors
    /// Fails when the knowledge base is too large for 32-bit offsets.
    pub fn finish(self) -> Result<KnowledgeBase, BuildError> {
        let symbols = self.symbols.freeze();
        let relations = columns(&symbols, self.facts, &self.fact_clauses).index(symbols.constants.len())?;
        let rules = self.rules.freeze();
        let [heads, rule_keys] = rule_indices(symbols.predicates.len(), &rules);
        Ok(KnowledgeBase {
            symbols,
            relations,
            rules,
            heads,
            rule_keys,
            queries: self.queries.map(ListsBuilder::freeze),
            sources: self.sources.into(),
        })
    }
}

impl KnowledgeBase {
    /// The knowledge base of a text alone: its `?- goal.` are the queries to test on.
    ///
    /// # Errors
    /// When it is too large for 32-bit offsets, or states that a fact does not hold.
    pub fn from_program(program: &Program) -> Result<Self, BuildError> {
        let mut builder = Builder::new();
        builder.graph("the text", program)?;
        builder.goals(Split::Test, program)?;
        builder.finish()
    }

    /// The knowledge base without the facts of these numbers, which are in order: those that
    /// [`Relations::repeated`] names, for example.
    ///
    /// # Errors
    /// When it is too large for 32-bit offsets.
    pub fn without(self, facts: &[u32]) -> Result<Self, BuildError> {
        let relations = self.relations.without(facts, self.constants())?;
        Ok(Self { relations, ..self })
    }

    /// The knowledge base with more rules, behind those that it has, in its own words; `source` is the name
    /// of their text, for messages. Their numbers of clauses and of the text are set here.
    ///
    /// # Errors
    /// When they are too many for 32-bit offsets, or a head is negated.
    pub fn with_rules<'a>(
        self,
        source: &str,
        added: impl IntoIterator<Item = Rule<'a>>,
    ) -> Result<Self, BuildError> {
        let last = self.rules.iter().map(|rule| rule[0]);
        let last = last.chain(self.relations.last_clause()).max();
        let mut clause = last.map_or(Some(0), |last| last.checked_add(1));
        let mut rules = self.rules.thaw();
        let mut sources = self.sources.to_vec();
        let text = sources.iter().filter(|&&byte| byte == b'\n').count() as u32;
        let source: String = source.chars().filter(|c| !c.is_control()).collect();
        sources.extend(source.as_bytes());
        sources.push(b'\n');
        for rule in added {
            if word::is_negated(rule.head[0]) {
                return Err(BuildError::Negative);
            }
            let number = clause.ok_or(BuildError::TooLarge)?;
            clause = number.checked_add(1);
            let rule = Rule {
                clause: number,
                source: text,
                ..rule
            };
            rules.push(rule.words());
            if rules.words() >= u32::MAX as usize / 2 {
                return Err(BuildError::TooLarge);
            }
        }
        let rules = rules.freeze();
        let [heads, rule_keys] = rule_indices(self.predicates(), &rules);
        Ok(Self {
            rules,
            heads,
            rule_keys,
            sources: sources.into(),
            ..self
        })
    }
}

/// Sorts facts by predicate, and those of each predicate in the order of their clauses.
fn columns(symbols: &Symbols, facts: Vec<Word>, clauses: &[u32]) -> Columns {
    let mut sizes: Vec<(usize, u32)> = (0..symbols.predicates.len() as u32)
        .map(|predicate| (symbols.predicates.tag(predicate).into(), 0))
        .collect();
    let mut at = 0;
    while at < facts.len() {
        sizes[word::number(facts[at]) as usize].1 += 1;
        at += 1 + word::arity(facts[at]);
    }
    let mut to: Vec<(usize, usize)> = Vec::with_capacity(sizes.len());
    let (mut column, mut row) = (0, 0);
    for &(arity, rows) in &sizes {
        to.push((column, row));
        column += arity * rows as usize;
        row += rows as usize;
    }
    let mut columns = vec![0; column];
    let mut sorted = vec![0; row];
    let mut at = 0;
    for &clause in clauses {
        let predicate = word::number(facts[at]) as usize;
        let (column, row) = &mut to[predicate];
        let (arity, rows) = sizes[predicate];
        for argument in 0..arity {
            columns[*column + argument * rows as usize] = facts[at + 1 + argument];
        }
        sorted[*row] = clause;
        *column += 1;
        *row += 1;
        at += 1 + arity;
    }
    Columns {
        sizes,
        columns,
        clauses: sorted,
    }
}
