//! The choice of an action from a network's outputs: the likeliest, or drawn.

use crate::model::Output;
use crate::{ActionHead, categorical, gaussian};
use stages_env::{ActionBuffer, ActionSpace, CandidateBatch};
use stages_numerics::random::Random;

/// Chooses the actions of the rows from `first` on: the likeliest, or drawn with `random`. Where actions are
/// candidates, those of the rows are in `candidates`.
pub fn actions(
    head: &ActionHead,
    space: &ActionSpace,
    (output, candidates): (&Output, Option<&CandidateBatch>),
    first: usize,
    mut random: Option<&mut Random>,
    actions: &mut ActionBuffer,
) {
    let k = head.num_components();
    match actions {
        ActionBuffer::Discrete(actions) | ActionBuffer::MultiDiscrete(actions) => {
            for (i, action) in (first..).zip(actions.chunks_exact_mut(k)) {
                match candidates {
                    Some(batch) => action[0] = candidate(batch, output, i, random.as_deref_mut()),
                    None => discrete(head, output, i, random.as_deref_mut(), action),
                }
            }
        }
        ActionBuffer::Continuous(actions) => {
            for (i, action) in (first..).zip(actions.chunks_exact_mut(k)) {
                continuous(head, space, output, i, random.as_deref_mut(), action);
            }
        }
    }
}

/// The choices `[K]` of row i: the likeliest ones, or drawn with `random`.
fn discrete(head: &ActionHead, output: &Output, i: usize, random: Option<&mut Random>, action: &mut [u32]) {
    let a = head.num_outputs();
    let log_prob = &output.log_prob[i * a..(i + 1) * a];
    match random {
        None => categorical::best_action(log_prob, head.choices(), action),
        Some(random) => {
            categorical::sample_action(log_prob, head.choices(), || random.uniform(), action);
        }
    }
}

/// The candidate of row i: the likeliest, the first in case of ties, or drawn with `random`.
fn candidate(batch: &CandidateBatch, output: &Output, i: usize, random: Option<&mut Random>) -> u32 {
    let row = batch.env_candidates[i] as usize..batch.env_candidates[i + 1] as usize;
    let log_prob = &output.log_prob[row];
    let chosen = match random {
        None => {
            let most = log_prob.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            log_prob.iter().position(|&x| x == most).unwrap_or(0)
        }
        Some(random) => crate::candidates::draw(log_prob, random.uniform()),
    };
    chosen as u32
}

/// The components `[A]` of row i: the mean of the distribution, or drawn with `random`; a deterministic
/// policy's are never drawn.
fn continuous(
    head: &ActionHead,
    space: &ActionSpace,
    output: &Output,
    i: usize,
    random: Option<&mut Random>,
    action: &mut [f32],
) {
    let a = action.len();
    let mean = &output.mean[i * a..(i + 1) * a];
    // Of each row, or the same for all.
    let log_std = output.log_std.get(i * a..(i + 1) * a).unwrap_or(&output.log_std);
    match random {
        Some(random) if !log_std.is_empty() => gaussian::sample(mean, log_std, || random.normal(), action),
        _ => action.copy_from_slice(mean),
    }
    if let ActionHead::SquashedGaussian(_) = head {
        for x in &mut *action {
            *x = libm::tanhf(*x);
        }
    }
    if head.is_scaled()
        && let Some(bounds) = space.bounds()
    {
        bounds.scale(action);
    }
}
