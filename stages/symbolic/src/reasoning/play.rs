//! Episodes of symbolic environments, one for each query or problem, with actions by scores of the
//! candidates.

use crate::env::batch::{Envs, Order, Task};
use stages_core::StageError;
use stages_env::CandidateBatch;
use stages_numerics::random::Random;
use std::sync::Arc;

/// A function that scores candidates: it writes a logit for each candidate of the batch, in order. The
/// numbers are those of the environments of the batch before that those of this one go on from, [`START`] at
/// the start of an episode, which is what a memory needs.
pub type Score<'a> = dyn FnMut(&CandidateBatch, &[u32], &mut Vec<f32>) -> Result<(), StageError> + 'a;

/// The number that stands for no environment: an episode starts.
pub const START: u32 = u32::MAX;

/// The choice among candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The most likely candidate; the first in case of ties.
    Greedy,
    /// A candidate drawn by the probabilities.
    Sampled,
}

/// Gives all candidates equal scores: sampled actions are then uniformly random.
///
/// # Errors
/// Never fails.
pub fn indifferent(batch: &CandidateBatch, _: &[u32], logits: &mut Vec<f32>) -> Result<(), StageError> {
    logits.resize(batch.candidates(), 0.0);
    Ok(())
}

/// The end of each episode, with the probability of the actions that were taken in it.
pub type Ends<T> = Vec<(<T as Task>::End, f64)>;

/// The ends of episodes 0 to `turns` of a task, whose queries are asked in turn in `envs` environments
/// together: in order, each with the probability of the actions that were taken in it. What is sampled
/// depends on the seed, the environment and the step. The counts are those of all episodes that were begun.
///
/// # Errors
/// Returns the error of the policy.
pub fn play<T: Task>(
    task: &Arc<T>,
    turns: usize,
    envs: usize,
    (choice, seed): (Choice, u64),
    policy: &mut Score,
) -> Result<(Ends<T>, T::Counts), StageError> {
    let all = envs.clamp(1, turns);
    let mut envs = Envs::new(task.clone(), 0, all, seed, Order::InTurn { all });
    let mut batch = CandidateBatch::default();
    let mut logits = Vec::new();
    let mut actions = vec![0; all];
    let mut log_probability = vec![0.0; all];
    let mut episodes = vec![0_usize; all];
    let mut from = vec![START; all];
    let mut ends: Vec<Option<(T::End, f64)>> = Vec::new();
    ends.resize_with(turns, || None);
    let mut left = turns;
    let mut step = 0_u64;
    while left > 0 {
        envs.observe(&mut batch);
        logits.clear();
        policy(&batch, &from, &mut logits)?;
        for env in 0..all {
            let candidates = batch.env_candidates[env] as usize..batch.env_candidates[env + 1] as usize;
            let uniform = Random::new(&[seed, env as u64, step]).uniform();
            let (action, probability) = choose(&logits[candidates], choice, uniform);
            actions[env] = action as u32;
            log_probability[env] += libm::log(probability);
        }
        envs.step(&actions);
        step += 1;
        for env in 0..all {
            from[env] = env as u32;
            let Some(end) = envs.take_finished(env) else {
                continue;
            };
            from[env] = START;
            let probability = libm::exp(std::mem::take(&mut log_probability[env]));
            if let Some(slot) = ends.get_mut(env + episodes[env] * all) {
                *slot = Some((end, probability));
                left -= 1;
            }
            episodes[env] += 1;
        }
    }
    Ok((ends.into_iter().flatten().collect(), envs.counts()))
}

/// The action of a row of logits, and its probability.
fn choose(logits: &[f32], choice: Choice, uniform: f64) -> (usize, f64) {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |logit: f32| libm::exp(f64::from(logit - most));
    let total: f64 = logits.iter().map(|&logit| weight(logit)).sum();
    let action = match choice {
        Choice::Greedy => logits.iter().position(|&logit| logit == most).unwrap_or(0),
        Choice::Sampled => {
            let mut rest = uniform * total;
            let drawn = logits.iter().position(|&logit| {
                rest -= weight(logit);
                rest < 0.0
            });
            drawn.unwrap_or(logits.len() - 1)
        }
    };
    (action, weight(logits[action]) / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_follow_the_logits() {
        assert_eq!(choose(&[0.0, 1.0, 1.0], Choice::Greedy, 0.9).0, 1);
        let (action, probability) = choose(&[0.0, f32::NEG_INFINITY, 0.0], Choice::Sampled, 0.6);
        assert_eq!((action, probability), (2, 0.5));
        assert_eq!(choose(&[3.0], Choice::Sampled, 0.999).0, 0);
    }
}
