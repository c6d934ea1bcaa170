//! Counts of events in a search: no cap cuts silently.

use super::state::Goals;
use super::task::Query;
use crate::env::counts::counts;
use stages_knowledge::Clause;

/// The end of an episode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FinishedProof {
    /// The query, and whether it is stated to hold.
    pub query: Query,
    /// The verdict; false at the limit of steps.
    pub is_proved: bool,
    /// True at the limit of steps.
    pub is_truncated: bool,
    /// The number of steps of the episode.
    pub steps: u32,
    /// The resolution steps, those without an action among them: the number of the goal, and the clause.
    pub trace: Vec<(u32, Clause)>,
    /// The state at the end.
    pub goals: Goals,
}

counts! {
    /// Numbers of what happened since the environments were opened.
    ProofCounts {
        /// Steps of environments.
        steps,
        /// Episodes that ended.
        episodes,
        /// True queries that ended with a proof.
        true_proved,
        /// True queries that were given up.
        true_given_up,
        /// False queries that ended with a proof: the rules are wrong about them.
        false_proved,
        /// False queries that were given up.
        false_given_up,
        /// Episodes that ended at their limit of steps.
        out_of_steps,
        /// Queries that were to be corrupted and are asked as they are: no false one was found.
        uncorrupted,
        /// States that were expanded.
        expanded,
        /// States that were passed without an action, as they had one successor.
        skipped,
        /// Successors left out as they were visited before.
        visited,
        /// Goals dropped as they are facts.
        dropped,
        /// Goals below the bound on depth.
        depth_cuts,
        /// Unifications that failed by the occurs check.
        occurs_checks,
        /// States with more actions than `max_successors`.
        states_cut,
        /// The successors left out there.
        successors_cut,
        /// Successors left out as they have more goals than `max_atoms`.
        atoms_cut,
        /// Clauses not tried as a state has more than `max_clauses`.
        clauses_cut,
        /// Successors left out as they have more words than `max_words`.
        words_cut,
        /// Clauses not tried as the successors of a state together have more words than
        /// `max_successor_words`.
        successor_words_cut,
        /// Observed atoms cut at `atom_tokens`.
        tokens_cut,
        /// Observed variables that share the last token of variables.
        variables_cut,
    }
}

impl ProofCounts {
    /// Counts an episode that has ended.
    pub(super) fn end(&mut self, end: &FinishedProof) {
        self.episodes += 1;
        let count = match (end.is_truncated, end.query.label, end.is_proved) {
            (true, ..) => &mut self.out_of_steps,
            (_, true, true) => &mut self.true_proved,
            (_, true, false) => &mut self.true_given_up,
            (_, false, true) => &mut self.false_proved,
            (_, false, false) => &mut self.false_given_up,
        };
        *count += 1;
    }
}
