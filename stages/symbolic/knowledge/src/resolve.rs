//! SLD resolution, one step: an atom of a goal list is unified with a clause's head, with the occurs check,
//! and replaced by its body.
//!
//! Goal lists and clauses stay where they are. A step has two sides, the goals and the clause; the clause's
//! variables are numbered after those of the goals, which is all the renaming there is. A binding is the word
//! of a constant or variable, or the place of a compound term on its side.

use crate::knowledge_base::{Clause, KnowledgeBase};
use crate::word::{self, Word};

/// The error for a step whose terms grow beyond the resolver's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a resolution step exceeds {limit} words")]
pub struct TooLarge {
    /// The limit in words.
    pub limit: usize,
}

/// The outcome of unifying an atom with a clause's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The atom and the head unify: the resolvent was written.
    Resolved,
    /// The atom and the head do not unify.
    Clash,
    /// The atom and the head do not unify, but would without the occurs check.
    OccursCheck,
}

const UNBOUND: Word = Word::MAX;
/// The tag of a binding to a compound term: the rest is its side (1 bit) and its place.
const PLACE: Word = 0xC000_0000;
const CLAUSE_SIDE: Word = 0x2000_0000;
const OFFSET: Word = CLAUSE_SIDE - 1;

/// Resolves goals with clauses. Each thread needs its own; buffers are kept from step to step.
///
/// The goals' variables are numbered from 0; a resolvent's variables are numbered in order of appearance.
#[derive(Debug)]
pub struct Resolver {
    limit: usize,
    /// The length of the output that the step must not exceed.
    most: usize,
    bindings: Vec<Word>,
    /// The variables bound since the step began, whose bindings are undone on failure.
    trail: Vec<u32>,
    /// Pairs of places and the number of terms left to unify from there.
    pairs: Vec<(Word, Word, usize)>,
    /// Terms left to walk through.
    walk: Vec<(Word, usize)>,
    /// The new number of each variable.
    names: Vec<u32>,
    renamed: Vec<u32>,
    /// Pairs that are being unified once a term contains itself.
    assumed: std::collections::BTreeSet<(Word, Word)>,
}

/// The two sides of a step.
#[derive(Clone, Copy)]
struct Sides<'a> {
    goals: &'a [Word],
    clause: &'a [Word],
    /// The number that is added to the clause's variables.
    shift: u32,
}

impl Sides<'_> {
    /// The word at a place, with variables of the clause renumbered.
    #[inline]
    fn word(&self, place: Word) -> Word {
        let offset = (place & OFFSET) as usize;
        match place & CLAUSE_SIDE {
            0 => self.goals[offset],
            _ => {
                let word = self.clause[offset];
                if word::is_variable(word) {
                    word + self.shift
                } else {
                    word
                }
            }
        }
    }

    /// The place after the term at a place.
    #[inline]
    fn end(&self, place: Word) -> Word {
        let offset = (place & OFFSET) as usize;
        let words = if place & CLAUSE_SIDE == 0 {
            self.goals
        } else {
            self.clause
        };
        (place & !OFFSET) | word::end(words, offset) as Word
    }
}

impl Default for Resolver {
    fn default() -> Self {
        Self::new(1 << 22)
    }
}

impl Resolver {
    /// A resolver that refuses steps that handle more than `limit` words: terms that double with each step
    /// are stopped there.
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit.min(OFFSET as usize),
            most: 0,
            bindings: Vec::new(),
            trail: Vec::new(),
            pairs: Vec::new(),
            walk: Vec::new(),
            names: Vec::new(),
            renamed: Vec::new(),
            assumed: std::collections::BTreeSet::new(),
        }
    }

    /// Resolves the atom of `goals` that begins at `selected` with a clause that may match it, and appends
    /// the resolvent to `out`: the clause's body, then the other goals. `variables` is the number of
    /// variables in `goals`. Negated conditions are kept as they are.
    ///
    /// # Errors
    /// When the step handles more words than the limit; `out` is then as before.
    pub fn resolve(
        &mut self,
        knowledge: &KnowledgeBase,
        goals: &[Word],
        variables: usize,
        selected: usize,
        clause: Clause,
        out: &mut Vec<Word>,
    ) -> Result<Outcome, TooLarge> {
        let start = out.len();
        self.most = start + self.limit;
        match clause {
            Clause::Fact(row) => {
                let (outcome, end) = self.unify_fact(knowledge, goals, variables, selected, row)?;
                if outcome != Outcome::Resolved {
                    return Ok(outcome);
                }
                let sides = Sides {
                    goals,
                    clause: &[],
                    shift: variables as u32,
                };
                let written = self.rest(&sides, selected, end, out);
                self.finish(written, start, out)
            }
            Clause::Rule(rule) => {
                let rule = knowledge.rule(rule);
                self.resolve_clause(
                    goals,
                    variables,
                    selected,
                    rule.head,
                    rule.body,
                    rule.variables as usize,
                    out,
                )
            }
        }
    }

    /// Resolves the atom of `goals` that begins at `selected` with a clause that is given by its words, as
    /// [`Resolver::resolve`] does with a clause of a knowledge base. The clause's variables are numbered from
    /// 0.
    ///
    /// # Errors
    /// Fails when the step handles more words than the limit; `out` is then unchanged.
    pub fn resolve_clause(
        &mut self,
        goals: &[Word],
        variables: usize,
        selected: usize,
        head: &[Word],
        body: &[Word],
        clause_variables: usize,
        out: &mut Vec<Word>,
    ) -> Result<Outcome, TooLarge> {
        let start = out.len();
        self.most = start + self.limit;
        if goals.len() + head.len() + body.len() > self.limit {
            return Err(self.too_large());
        }
        if word::positive(goals[selected]) != head[0] {
            return Ok(Outcome::Clash);
        }
        self.begin(variables + clause_variables);
        let sides = Sides {
            goals,
            clause: head,
            shift: variables as u32,
        };
        let outcome = self.unify(&sides, (selected + 1) as Word, CLAUSE_SIDE | 1, word::arity(head[0]));
        match outcome {
            Ok(Outcome::Resolved) => {}
            other => {
                self.undo();
                return other;
            }
        }
        let end = word::end(goals, selected);
        let written = self
            .write(&sides, body, sides.shift, out)
            .and_then(|()| self.rest(&sides, selected, end, out));
        self.finish(written, start, out)
    }

    fn finish(
        &mut self,
        written: Result<(), TooLarge>,
        start: usize,
        out: &mut Vec<Word>,
    ) -> Result<Outcome, TooLarge> {
        self.undo();
        for &variable in &self.renamed {
            self.names[variable as usize] = UNBOUND;
        }
        self.renamed.clear();
        if written.is_err() {
            out.truncate(start);
        }
        written.map(|()| Outcome::Resolved)
    }

    fn too_large(&self) -> TooLarge {
        TooLarge { limit: self.limit }
    }

    /// Makes room for a step's variables, all unbound.
    #[inline]
    fn begin(&mut self, variables: usize) {
        if self.bindings.len() < variables {
            self.bindings.resize(variables, UNBOUND);
            self.names.resize(variables, UNBOUND);
        }
    }

    #[inline]
    fn undo(&mut self) {
        for &variable in &self.trail {
            self.bindings[variable as usize] = UNBOUND;
        }
        self.trail.clear();
    }

    #[inline]
    fn bind(&mut self, variable: Word, to: Word) {
        let number = word::number(variable);
        self.bindings[number as usize] = to;
        self.trail.push(number);
    }

    /// The word that a variable is bound to, followed to the end; any other word is returned as it is.
    #[inline]
    fn follow(&self, mut word: Word) -> Word {
        while word & PLACE == 0x4000_0000 {
            let bound = self.bindings[word::number(word) as usize];
            if bound == UNBOUND {
                break;
            }
            word = bound;
        }
        word
    }

    /// The contents of a place: a constant, an unbound variable, or the place of a compound term.
    #[inline]
    fn value(&self, sides: &Sides<'_>, place: Word) -> Word {
        let word = sides.word(place);
        match word::is_functor(word) {
            true => PLACE | place,
            false => self.follow(word),
        }
    }

    /// Unifies a fact's row with the goal's arguments, and returns the outcome with the end of the goal's
    /// atom. On success, bindings are kept.
    #[inline]
    fn unify_fact(
        &mut self,
        knowledge: &KnowledgeBase,
        goals: &[Word],
        variables: usize,
        selected: usize,
        row: u32,
    ) -> Result<(Outcome, usize), TooLarge> {
        if goals.len() > self.limit {
            return Err(self.too_large());
        }
        self.begin(variables);
        let relation = knowledge.relation(goals[selected]);
        let arity = word::arity(goals[selected]);
        let mut at = selected + 1;
        for argument in 0..arity {
            let given = goals[at];
            let constant = relation.column(argument)[row as usize];
            let value = self.follow(given);
            let matches = if word::is_variable(value) {
                self.bind(value, constant);
                true
            } else {
                value == constant
            };
            if !matches {
                self.undo();
                return Ok((Outcome::Clash, at));
            }
            at += 1;
        }
        Ok((Outcome::Resolved, at))
    }

    /// Unifies `count` terms from two places on.
    #[inline]
    fn unify(&mut self, sides: &Sides<'_>, a: Word, b: Word, count: usize) -> Result<Outcome, TooLarge> {
        self.pairs.clear();
        self.assumed.clear();
        self.pairs.push((a, b, count));
        let mut steps = 0;
        let mut is_cyclic = false;
        while let Some((mut a, mut b, mut left)) = self.pairs.pop() {
            while left > 0 {
                steps += 1;
                if steps > self.limit {
                    return Err(self.too_large());
                }
                left -= 1;
                let (at_a, at_b) = (sides.word(a), sides.word(b));
                if word::is_functor(at_a) && word::is_functor(at_b) {
                    if at_a != at_b {
                        return Ok(Outcome::Clash);
                    }
                    // Terms that contain themselves are equal where no difference is found.
                    if is_cyclic && !self.assumed.insert((a.min(b), a.max(b))) {
                        (a, b) = (sides.end(a), sides.end(b));
                        continue;
                    }
                    (a, b) = (a + 1, b + 1);
                    left += word::arity(at_a);
                    continue;
                }
                let (x, y) = (self.value(sides, a), self.value(sides, b));
                if left > 0 {
                    (a, b) = (sides.end(a), sides.end(b));
                }
                if x == y {
                    continue;
                }
                match (word::is_variable(x), word::is_variable(y)) {
                    // The younger variable is bound to the older one.
                    (true, true) if x > y => self.bind(x, y),
                    (true, true) => self.bind(y, x),
                    (true, false) | (false, true) => {
                        let (variable, value) = if word::is_variable(x) { (x, y) } else { (y, x) };
                        // A term that contains itself is not walked through again.
                        is_cyclic = is_cyclic || self.occurs(sides, variable, value, &mut steps)?;
                        self.bind(variable, value);
                    }
                    (false, false) => {
                        let is_place = |value: Word| value & PLACE == PLACE;
                        if !is_place(x) || !is_place(y) {
                            return Ok(Outcome::Clash);
                        }
                        // One stands where the other's variable does: they are compared apart.
                        if left > 0 {
                            self.pairs.push((a, b, left));
                        }
                        (a, b, left) = (x & !PLACE, y & !PLACE, 1);
                    }
                }
            }
        }
        Ok(match is_cyclic {
            true => Outcome::OccursCheck,
            false => Outcome::Resolved,
        })
    }

    /// Returns whether a variable occurs in the term that it is to be bound to.
    #[inline]
    fn occurs(
        &mut self,
        sides: &Sides<'_>,
        variable: Word,
        value: Word,
        steps: &mut usize,
    ) -> Result<bool, TooLarge> {
        if value & PLACE != PLACE {
            return Ok(false);
        }
        self.walk.clear();
        self.walk.push((value & !PLACE, 1));
        while let Some((mut place, mut left)) = self.walk.pop() {
            while left > 0 {
                *steps += 1;
                if *steps > self.limit {
                    return Err(self.too_large());
                }
                let word = sides.word(place);
                left = left - 1 + word::arity(word);
                place += 1;
                if word::is_variable(word) {
                    let bound = self.follow(word);
                    if bound == variable {
                        return Ok(true);
                    }
                    if bound & PLACE == PLACE {
                        if left > 0 {
                            self.walk.push((place, left));
                        }
                        (place, left) = (bound & !PLACE, 1);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Writes words under the bindings; their variables have numbers from `shift` on.
    #[inline]
    fn write(
        &mut self,
        sides: &Sides<'_>,
        words: &[Word],
        shift: u32,
        out: &mut Vec<Word>,
    ) -> Result<(), TooLarge> {
        for &word in words {
            match word::is_variable(word) {
                true => self.write_value(sides, word + shift, out)?,
                false => out.push(word),
            }
        }
        Ok(())
    }

    /// Writes the goals other than those from `selected` to `end`.
    #[inline]
    fn rest(
        &mut self,
        sides: &Sides<'_>,
        selected: usize,
        end: usize,
        out: &mut Vec<Word>,
    ) -> Result<(), TooLarge> {
        self.write(sides, &sides.goals[..selected], 0, out)?;
        self.write(sides, &sides.goals[end..], 0, out)
    }

    /// Writes the term to which a variable is bound.
    #[inline]
    fn write_value(
        &mut self,
        sides: &Sides<'_>,
        variable: Word,
        out: &mut Vec<Word>,
    ) -> Result<(), TooLarge> {
        let value = self.follow(variable);
        if value & PLACE != PLACE {
            let word = if word::is_variable(value) {
                self.name(value)
            } else {
                value
            };
            out.push(word);
            return Ok(());
        }
        self.walk.clear();
        self.walk.push((value & !PLACE, 1));
        while let Some((mut place, mut left)) = self.walk.pop() {
            while left > 0 {
                if out.len() >= self.most {
                    return Err(self.too_large());
                }
                let word = sides.word(place);
                left = left - 1 + word::arity(word);
                place += 1;
                if !word::is_variable(word) {
                    out.push(word);
                    continue;
                }
                let bound = self.follow(word);
                if bound & PLACE == PLACE {
                    if left > 0 {
                        self.walk.push((place, left));
                    }
                    (place, left) = (bound & !PLACE, 1);
                } else if word::is_variable(bound) {
                    let word = self.name(bound);
                    out.push(word);
                } else {
                    out.push(bound);
                }
            }
        }
        Ok(())
    }

    /// The new word of an unbound variable.
    #[inline]
    fn name(&mut self, variable: Word) -> Word {
        let number = word::number(variable);
        let name = &mut self.names[number as usize];
        if *name == UNBOUND {
            *name = self.renamed.len() as u32;
            self.renamed.push(number);
        }
        word::variable(*name)
    }
}
