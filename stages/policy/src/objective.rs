//! The interface between models and losses: a model passes the outputs of its network to an [`Objective`],
//! block by block, and starts the backward pass from the derivatives that the objective writes over them.

use crate::categorical::Softmax;
use stages_numerics::dispatch::InstructionSet;

/// The sums over samples that an objective keeps, a slot for each of its statistics.
pub type Sums = [f64; 8];

/// Adds up the sums of two parts of a minibatch.
pub(crate) fn add(sums: &mut Sums, part: &Sums) {
    for (sum, part) in sums.iter_mut().zip(part) {
        *sum += part;
    }
}

/// The policy head's outputs for n samples.
#[derive(Debug)]
pub enum PolicyOutputs<'a> {
    /// Outputs for discrete and multi-discrete actions.
    Discrete {
        /// Logits `[n, A]`, not masked yet, component by component.
        logits: &'a mut [f32],
        /// The number of choices of each component `[K]`, one component unless actions are multi-discrete.
        choices: &'a [u32],
        /// A buffer for the softmax of 16 rows.
        softmax: &'a mut Softmax,
    },
    /// Outputs for continuous actions.
    Continuous {
        /// Means `[n, A]`.
        mean: &'a mut [f32],
        /// Logarithms of the standard deviations `[A]`.
        log_std: &'a [f32],
        /// The derivative of the loss with respect to those logarithms `[A]`, which is added to.
        grad_log_std: &'a mut [f32],
    },
}

/// A loss over a minibatch, a sum over its samples. Each method gets the outputs of one head for a block of
/// samples while caches hold them, overwrites them with the derivative of the loss with respect to each
/// output, and adds to the statistics. Heads and blocks may come in any order and on several threads.
pub trait Objective: Sync {
    /// Takes the policy head's outputs for `samples`, which are indices into the rollout buffer.
    fn policy(&self, instructions: InstructionSet, samples: &[u32], outputs: PolicyOutputs, sums: &mut Sums);

    /// Takes the logits of any number of candidates for each of `samples`, sample by sample. `starts`
    /// `[n + 1]` holds the index of each sample's first logit, and the number of logits. Objectives over
    /// fixed numbers of choices leave the logits as they are.
    fn candidates(
        &self,
        _instructions: InstructionSet,
        _samples: &[u32],
        _logits: &mut [f32],
        _starts: &[u32],
        _sums: &mut Sums,
    ) {
    }

    /// Takes the value head's outputs `[n]` for `samples`, which are indices into the rollout buffer.
    fn value(&self, instructions: InstructionSet, samples: &[u32], value: &mut [f32], sums: &mut Sums);
}
