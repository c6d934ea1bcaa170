//! The networks of trainers that learn from a replay buffer: sums of shards' gradients, steps of Adam, and
//! target networks.

use crate::optimiser::{adam_step, clip};
use crate::train_state::TrainState;
use rayon::prelude::*;
use stages_numerics::dispatch::InstructionSet;
use stages_policy::Mlp;
use stages_policy::kernels::elementwise::{AdamStep, adam, add, blend, squares};
use std::ops::Range;

/// The number of parameters that one task updates.
const CHUNK: usize = 1 << 14;

/// PyTorch's epsilon of Adam.
const EPSILON: f32 = 1e-8;

/// The least number of rows of a shard of a batch.
const ROWS: usize = 128;

/// The number of rows of each shard of a batch of `n` for a network: at least two shards where they pay off.
/// It depends on nothing else, so that any number of threads gives the same bytes.
pub(crate) fn shard_rows(n: usize, network: &Mlp) -> usize {
    let shards = match n {
        32.. if network.takes_shards() => (n / ROWS).clamp(2, 16),
        _ => 1,
    };
    n.div_ceil(shards)
}

/// Parameters, and Adam's moments for them.
pub(crate) struct Learned<'a> {
    pub params: &'a mut [f32],
    pub m: &'a mut [f32],
    pub v: &'a mut [f32],
}

impl<'a> Learned<'a> {
    /// The parameters in a range of the train state's, with their moments.
    pub(crate) fn of(state: &'a mut TrainState, range: Range<usize>) -> Self {
        Self {
            params: &mut state.params[range.clone()],
            m: &mut state.first_moment[range.clone()],
            v: &mut state.second_moment[range],
        }
    }
}

/// A bound on a gradient's norm.
pub(crate) struct Clip<'a> {
    pub max_norm: f64,
    /// A buffer for the sums of squares of the gradient's chunks.
    pub squares: &'a mut Vec<f64>,
}

/// Adds the gradients of `shards` shards, in their order, and takes a step of Adam along the sum, with the
/// norm clipped if a bound is given. `gradient` is a buffer.
pub(crate) fn learn<'g>(
    (step, learning_rate): (u64, f64),
    shards: usize,
    of_shard: impl Fn(usize) -> &'g [f32] + Sync,
    bound: Option<Clip>,
    gradient: &mut [f32],
    learned: Learned,
) {
    let instructions = InstructionSet::detect();
    let total = |i: usize, sum: &mut [f32]| {
        let range = i * CHUNK..i * CHUNK + sum.len();
        sum.copy_from_slice(&of_shard(0)[range.clone()]);
        for shard in 1..shards {
            add(instructions, sum, &of_shard(shard)[range.clone()]);
        }
    };
    let chunks = |learned: Learned, gradient: &mut [f32], step: AdamStep, sums: bool| {
        let Learned { params, m, v } = learned;
        params
            .par_chunks_mut(CHUNK)
            .zip(gradient.par_chunks_mut(CHUNK))
            .zip(m.par_chunks_mut(CHUNK).zip(v.par_chunks_mut(CHUNK)))
            .enumerate()
            .for_each(|(i, ((params, gradient), (m, v)))| {
                if sums {
                    total(i, gradient);
                }
                adam(instructions, step, params, gradient, m, v);
            });
    };
    let Some(Clip {
        max_norm,
        squares: parts,
    }) = bound
    else {
        chunks(learned, gradient, adam_step(step, learning_rate, 1.0, EPSILON), true);
        return;
    };
    parts.resize(gradient.len().div_ceil(CHUNK), 0.0);
    gradient
        .par_chunks_mut(CHUNK)
        .zip(parts.par_iter_mut())
        .enumerate()
        .for_each(|(i, (sum, part))| {
            total(i, sum);
            squares(instructions, sum, part);
        });
    let norm = parts.iter().sum::<f64>().sqrt();
    let scale = clip(norm, max_norm);
    chunks(learned, gradient, adam_step(step, learning_rate, scale, EPSILON), false);
}

/// Moves target parameters towards `params` by the share `tau`.
pub(crate) fn follow(target: &mut [f32], tau: f64, params: &[f32]) {
    let instructions = InstructionSet::detect();
    if tau == 1.0 {
        target.copy_from_slice(params);
        return;
    }
    target
        .par_chunks_mut(CHUNK)
        .zip(params.par_chunks(CHUNK))
        .for_each(|(target, params)| blend(instructions, target, tau as f32, params));
}
