//! The model that training uses: own kernels for the forward and the backward pass, checked against [`crate::candle_model`]
//! and finite differences.
//!
//! A minibatch is split by whole columns into shards, each with its own gradient, which are added up in order. The number of shards
//! depends on the minibatch alone, so that any number of threads gives the same bytes.

mod lstm;
mod shard;
mod weights;

use crate::architecture::Layout;
use crate::kernels::{Level, elementwise};
use crate::model::{Batch, LossSettings, Losses, Model, Observed, Output};
use crate::{Architecture, distribution};
use rayon::prelude::*;
use shard::Shard;
use weights::Weights;

/// The most shards a minibatch is split into.
const MAX_SHARDS: usize = 8;

/// Parameters that one task of the reduction takes.
const REDUCTION: usize = 1 << 15;

/// A network on fused kernels.
pub struct FusedModel {
    architecture: Architecture,
    layout: Layout,
    level: Level,
    weights: Weights,
    shards: Vec<Shard>,
}

/// What all shards read.
struct Network<'a> {
    architecture: &'a Architecture,
    layout: &'a Layout,
    weights: &'a Weights,
    level: Level,
}

impl FusedModel {
    /// A network without parameters yet.
    pub fn new(architecture: &Architecture) -> Self {
        Self::with_level(architecture, Level::detect())
    }

    /// The same, on the instructions of `level`.
    pub fn with_level(architecture: &Architecture, level: Level) -> Self {
        let layout = architecture.layout();
        Self {
            architecture: architecture.clone(),
            weights: Weights::new(&layout),
            layout,
            level,
            shards: Vec::new(),
        }
    }

    /// How many shards a minibatch of `columns` columns and `samples` samples has.
    fn num_shards(&self, columns: usize, samples: usize) -> usize {
        let small = samples.saturating_mul(self.layout.len) < 1 << 22;
        match &self.architecture.lstm {
            _ if small || columns < 8 => 1,
            Some(_) => (columns / 32).clamp(2, MAX_SHARDS),
            None => (columns / 128).clamp(1, MAX_SHARDS),
        }
    }
}

impl Model for FusedModel {
    fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    fn load(&mut self, params: &[f32]) {
        assert_eq!(params.len(), self.layout.len, "number of parameters");
        self.weights.load(params);
    }

    fn forward(&mut self, input: &Observed, state: &mut [f32], out: &mut Output) {
        let batch = input.episode_start.len();
        let (d, a, s) = (
            self.architecture.obs_dim,
            self.architecture.num_actions,
            self.architecture.state_len(),
        );
        let continuous = self.architecture.continuous;
        let Output { log_prob, mean, .. } = out;
        let logits = if continuous { mean } else { log_prob };
        logits.resize(batch * a, 0.0);
        out.value.resize(batch, 0.0);
        assert!(
            input.obs.len() == batch * d && input.mask.len() == batch * a && state.len() == batch * s,
            "shapes of a step"
        );
        // A row's result does not depend on the split, so that it may follow the number of threads.
        let parts = if batch.saturating_mul(self.layout.len) < 1 << 21 {
            1
        } else {
            rayon::current_num_threads().min(batch / 8).max(1)
        };
        if self.shards.len() < parts {
            self.shards.resize_with(parts, Shard::default);
        }
        let network = Network {
            architecture: &self.architecture,
            layout: &self.layout,
            weights: &self.weights,
            level: self.level,
        };
        let rows = batch.div_ceil(parts).max(1);
        let (mut states, mut log_probs, mut values) = (state, &mut logits[..], &mut out.value[..]);
        let mut tasks = Vec::with_capacity(parts);
        for (part, shard) in self.shards[..parts].iter_mut().enumerate() {
            let (from, to) = ((part * rows).min(batch), ((part + 1) * rows).min(batch));
            let n = to - from;
            let (state, rest) = states.split_at_mut(n * s);
            states = rest;
            let (log_prob, rest) = log_probs.split_at_mut(n * a);
            log_probs = rest;
            let (value, rest) = values.split_at_mut(n);
            values = rest;
            let part = Observed {
                obs: &input.obs[from * d..to * d],
                mask: &input.mask[from * a..to * a],
                episode_start: &input.episode_start[from..to],
            };
            tasks.push((shard, part, state, log_prob, value));
        }
        let run =
            |(shard, part, state, log_prob, value): (&mut Shard, Observed, &mut [f32], &mut [f32], &mut [f32])| {
                shard.forward(&network, &part, state, log_prob, value);
                if continuous {
                    return;
                }
                for (row, mask) in log_prob.chunks_exact_mut(a).zip(part.mask.chunks_exact(a)) {
                    distribution::log_softmax(row, mask);
                }
            };
        if parts == 1 {
            tasks.into_iter().for_each(run);
        } else {
            tasks.into_par_iter().for_each(run);
        }
        if let Some(at) = self.layout.log_std {
            out.log_std.clear();
            out.log_std.extend_from_slice(self.weights.slice(at, a));
        }
    }

    fn gradient(&mut self, batch: &Batch, settings: &LossSettings, gradient: &mut [f32]) -> Losses {
        assert_eq!(gradient.len(), self.layout.len, "length of the gradient");
        self.weights.prepare_backward();
        let total = batch.len();
        let parts = self.num_shards(batch.pick.len(), total);
        if self.shards.len() < parts {
            self.shards.resize_with(parts, Shard::default);
        }
        let network = Network {
            architecture: &self.architecture,
            layout: &self.layout,
            weights: &self.weights,
            level: self.level,
        };
        let moments = if settings.normalize_advantage {
            batch.advantage_moments()
        } else {
            (0.0, 1.0)
        };
        let columns = batch.pick.len();
        let shards = &mut self.shards[..parts];
        let run = |(part, shard): (usize, &mut Shard)| {
            let pick = &batch.pick[part * columns / parts..(part + 1) * columns / parts];
            shard.gradient(&network, batch, pick, settings, moments, total)
        };
        let losses: Vec<Losses> = if parts == 1 {
            shards.iter_mut().enumerate().map(run).collect()
        } else {
            shards.par_iter_mut().enumerate().map(run).collect()
        };
        let (level, shards) = (self.level, &*shards);
        let reduce = |(i, out): (usize, &mut [f32])| {
            let range = i * REDUCTION..i * REDUCTION + out.len();
            out.copy_from_slice(&shards[0].gradient[range.clone()]);
            for shard in &shards[1..] {
                elementwise::add(level, out, &shard.gradient[range.clone()]);
            }
        };
        if parts == 1 {
            gradient.copy_from_slice(&shards[0].gradient);
        } else {
            gradient.par_chunks_mut(REDUCTION).enumerate().for_each(reduce);
        }
        let mut sums = Losses::default();
        for part in &losses {
            sums.add(part);
        }
        sums.scaled(1.0 / total as f64)
    }
}

#[cfg(test)]
mod tests;
