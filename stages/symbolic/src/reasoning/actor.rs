//! A policy that scores candidates, either unchanged or with relations exchanged before it observes them.

use crate::env::batch::Vocabulary;
use stages_core::{Context, StageError};
use stages_env::CandidateBatch;
use stages_env::EnvSpec;
use stages_numerics::random::Random;
use stages_policy::{AnyPolicy, Mode, Policy, PolicyState};

/// The policies at the port `policy`, each of which fits the environment.
///
/// # Errors
/// Fails when a policy cannot be read, or was trained with other tokens.
pub(super) fn policies(context: &Context, env: &EnvSpec) -> Result<Vec<Policy>, StageError> {
    let inputs = context.list("policy");
    let mut loaded = Vec::new();
    for (at, input) in inputs.iter().enumerate() {
        let which = match inputs.len() {
            1 => "the policy".to_owned(),
            _ => format!("policy {} of `policy`", at + 1),
        };
        let policy = AnyPolicy::read(&context.store, &input.artifact)?.into_native(&which)?;
        if let Some(difference) = policy.spec().difference(env) {
            return Err(
                StageError::new(format!("{which} was trained on another environment: {difference}")).hint(
                    "a policy fits environments with the same tokens in the same order: evaluate it on one \
                    of the knowledge base that it was trained on, or train it on this one",
                ),
            );
        }
        loaded.push(policy);
    }
    Ok(loaded)
}

/// A policy with its recurrent memory.
pub(super) struct Actor<'a> {
    context: &'a Context,
    policy: &'a Policy,
    state: PolicyState,
    exchange: Option<Exchange>,
}

impl<'a> Actor<'a> {
    /// The policy unchanged or, with a vocabulary and a seed, blind to relations.
    pub(super) fn new(context: &'a Context, policy: &'a Policy, blind: Option<(Vocabulary, u64)>) -> Self {
        Self {
            context,
            policy,
            state: policy.start(0),
            exchange: blind.map(|(vocabulary, seed)| Exchange::new(vocabulary, seed)),
        }
    }

    /// Scores the candidates of a batch by their log-probabilities.
    ///
    /// # Errors
    /// Fails when the stage should stop.
    pub(super) fn score(
        &mut self,
        batch: &CandidateBatch,
        from: &[u32],
        logits: &mut Vec<f32>,
    ) -> Result<(), StageError> {
        self.context.check_cancelled()?;
        let seen = match &mut self.exchange {
            None => batch,
            Some(exchange) => exchange.apply(batch),
        };
        self.state.branch(from);
        let start: Vec<bool> = from.iter().map(|&from| from == super::play::START).collect();
        self.policy
            .act_on_candidates(seen, &start, &mut self.state, Mode::Greedy);
        logits.extend_from_slice(&self.state.output().log_prob);
        Ok(())
    }
}

/// The exchange of relations (predicates, their inverses and the actions of rule worlds among them) by
/// others: all in one cycle in random order, drawn anew for each batch, so that each stands for another one.
struct Exchange {
    random: Random,
    /// The token that replaces each token of a predicate, from token 1 on.
    order: Vec<u32>,
    batch: CandidateBatch,
}

impl Exchange {
    fn new(vocabulary: Vocabulary, seed: u64) -> Self {
        Self {
            random: Random::new(&[seed, 0x7265_6c73]),
            order: (0..vocabulary.predicates)
                .map(|number| vocabulary.predicate(number))
                .collect(),
            batch: CandidateBatch::default(),
        }
    }

    /// The batch with its relations exchanged.
    fn apply(&mut self, batch: &CandidateBatch) -> &CandidateBatch {
        // Sattolo's shuffle of the last permutation's places: from the identity it gives one cycle.
        (self.order.iter_mut().zip(1..)).for_each(|(to, token)| *to = token);
        for last in (1..self.order.len()).rev() {
            self.order.swap(last, self.random.below(last as u64) as usize);
        }
        self.batch.clone_from(batch);
        let order = &self.order;
        let atoms = self.batch.state_rows.iter_mut().chain(&mut self.batch.candidate_rows);
        for token in atoms {
            // 0 is padding; what is beyond are constants, variables and marks.
            if let Some(&to) = (*token as usize).checked_sub(1).and_then(|at| order.get(at)) {
                *token = to;
            }
        }
        &self.batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_relation_stands_for_another_one_and_nothing_else_changes() {
        let vocabulary = Vocabulary {
            predicates: 5,
            constants: 3,
            variables: 2,
            marks: 1,
            width: 1,
        };
        let tokens: Vec<u32> = (0..vocabulary.mark(vocabulary.marks)).collect();
        let batch = CandidateBatch {
            width: 1,
            state_rows: tokens.clone(),
            candidate_rows: tokens.clone(),
            ..CandidateBatch::default()
        };
        let mut exchange = Exchange::new(vocabulary, 1);
        let mut orders = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let seen = exchange.apply(&batch);
            assert_eq!(seen.state_rows, seen.candidate_rows);
            let (relations, others) = seen.state_rows[1..].split_at(5);
            assert!(relations.iter().zip(1..).all(|(&to, token)| to != token));
            let mut sorted = relations.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [1, 2, 3, 4, 5]);
            assert_eq!((seen.state_rows[0], others), (0, &tokens[6..]));
            orders.insert(relations.to_vec());
        }
        assert!(orders.len() > 10);
    }
}
