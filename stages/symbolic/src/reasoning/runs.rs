//! Policies, with relations unchanged and exchanged, over the queries of a task.

use super::actor::Actor;
use super::config::ReasoningConfig;
use super::play::Score;
use crate::env::SymbolicTask;
use crate::env::embedding::Embedding;
use rayon::prelude::*;
use stages_core::{Context, StageError};
use stages_policy::Policy;

/// Environments that are played together: the same number whatever the machine, as sampled actions depend on
/// it.
pub(super) const ENVS: usize = 64;

/// The runs of policies over a task.
pub(super) struct Runs<'a> {
    pub context: &'a Context,
    pub config: &'a ReasoningConfig,
    pub policies: &'a [Policy],
    pub task: &'a SymbolicTask,
    /// The embedding that shaped the rewards of training.
    pub embedding: Option<&'a Embedding>,
}

impl Runs<'_> {
    /// Returns whether there are relations to exchange.
    pub(super) fn can_be_blind(&self) -> bool {
        self.task.vocabulary().predicates > 1
    }

    /// The results of `run` for each policy unchanged, and for each with relations exchanged, where that is
    /// tested.
    pub(super) fn all<T: Send>(
        &self,
        run: impl Fn(&mut Score) -> Result<T, StageError> + Sync,
    ) -> Result<(Vec<T>, Vec<T>), StageError> {
        let is_tested = self.config.ablations && self.can_be_blind();
        let blind = is_tested.then(|| Some((self.task.vocabulary(), self.config.seed)));
        let views: Vec<_> = [None].into_iter().chain(blind).collect();
        let runs: Vec<_> = views
            .iter()
            .flat_map(|view| self.policies.iter().map(move |policy| (policy, *view)))
            .collect();
        let one = |(policy, view)| {
            let mut actor = Actor::new(self.context, policy, view);
            run(&mut |batch, from, logits| actor.score(batch, from, logits))
        };
        let mut results: Vec<T> = runs.into_par_iter().map(one).collect::<Result<_, _>>()?;
        let blind = results.split_off(self.policies.len());
        Ok((results, blind))
    }
}
