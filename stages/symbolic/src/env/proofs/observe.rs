//! States and actions as tokens.

use super::config::ActionForm;
use super::counts::ProofCounts;
use super::state::{Goals, Successors};
use super::task::ProofTask;
use crate::env::batch::{Described as _, mark};
use stages_env::CandidateBatch;
use stages_knowledge::{Clause, Word, word};

/// The first token of each range.
#[derive(Clone, Copy)]
struct Tokens {
    width: usize,
    constants: u32,
    functors: u32,
    variables: u32,
    last_variable: u32,
    marks: u32,
}

impl Tokens {
    fn new(task: &ProofTask) -> Self {
        let vocabulary = task.vocabulary();
        Self {
            width: vocabulary.width,
            constants: vocabulary.constant(0),
            functors: vocabulary.constant(task.knowledge.constants() as u32),
            variables: vocabulary.variable(0),
            last_variable: vocabulary.variables - 1,
            marks: vocabulary.mark(0),
        }
    }

    #[inline]
    fn token(&self, word: Word, counts: &mut ProofCounts) -> u32 {
        if word::is_constant(word) {
            return self.constants + word;
        }
        let number = word::number(word);
        if word::is_variable(word) {
            counts.variables_cut += u64::from(number > self.last_variable);
            return self.variables + number.min(self.last_variable);
        }
        match word::is_predicate(word) {
            true => 1 + number,
            false => self.functors + number,
        }
    }

    /// Appends the first `atoms` atoms of `words`.
    #[inline]
    fn atoms(&self, words: &[Word], atoms: usize, out: &mut Vec<u32>, counts: &mut ProofCounts) {
        let mut at = 0;
        for _ in 0..atoms {
            let end = word::end(words, at);
            let shown = (end - at).min(self.width);
            counts.tokens_cut += u64::from(end - at > self.width);
            out.extend(words[at..at + shown].iter().map(|&word| self.token(word, counts)));
            out.extend(std::iter::repeat_n(0, self.width - shown));
            at = end;
        }
    }

    fn mark(&self, mark: u32, out: &mut Vec<u32>) {
        out.push(self.marks + mark);
        out.extend(std::iter::repeat_n(0, self.width - 1));
    }
}

/// Writes the rows of a batch, one environment after another.
pub(crate) struct Writer<'a> {
    task: &'a ProofTask,
    tokens: Tokens,
    batch: &'a mut CandidateBatch,
}

impl<'a> Writer<'a> {
    /// Clears `batch` and writes to it.
    pub(super) fn new(task: &'a ProofTask, batch: &'a mut CandidateBatch) -> Self {
        batch.clear(task.vocabulary().width);
        Self {
            task,
            tokens: Tokens::new(task),
            batch,
        }
    }

    /// Writes the row of the next environment.
    #[inline]
    pub(super) fn row(
        &mut self,
        state: &Goals,
        successors: &Successors,
        gives_up: bool,
        counts: &mut ProofCounts,
    ) {
        let (tokens, batch) = (self.tokens, &mut *self.batch);
        tokens.atoms(&state.words, state.depths.len(), &mut batch.state_rows, counts);
        batch.end_state();
        for at in 0..successors.len() {
            let atoms = &mut batch.candidate_rows;
            match self.task.settings.actions {
                ActionForm::Successors => {
                    let (words, depths) = successors.get(at);
                    match depths.len() {
                        0 => tokens.mark(mark::PROVED, atoms),
                        goals => tokens.atoms(words, goals, atoms, counts),
                    }
                }
                ActionForm::Clauses => {
                    let knowledge = &self.task.knowledge;
                    match successors.clause(at) {
                        Clause::Fact(row) => {
                            let relation = knowledge.relation(successors.predicate);
                            let start = atoms.len();
                            atoms.push(tokens.token(successors.predicate, counts));
                            for argument in 0..relation.arity().min(tokens.width - 1) {
                                let constant = relation.column(argument)[row as usize];
                                atoms.push(tokens.token(constant, counts));
                            }
                            counts.tokens_cut += u64::from(1 + relation.arity() > tokens.width);
                            atoms.resize(start + tokens.width, 0);
                        }
                        Clause::Rule(number) => {
                            let rule = knowledge.rule(number);
                            tokens.atoms(rule.head, 1, atoms, counts);
                            let conditions = self.task.conditions[number as usize] as usize;
                            tokens.atoms(rule.body, conditions, atoms, counts);
                        }
                    }
                }
            }
            batch.end_candidate();
        }
        if gives_up {
            tokens.mark(mark::GIVE_UP, &mut batch.candidate_rows);
            batch.end_candidate();
        }
        batch.end_candidates();
    }
}
