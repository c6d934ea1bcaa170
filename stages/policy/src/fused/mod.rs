//! The model that training uses, with kernels of this crate for the forward and the backward pass; the tests
//! check it against [`crate::CandleModel`] and finite differences.
//!
//! A minibatch is split by whole columns into shards, and the network into towers that learn independently of
//! one another. Each shard of each tower has a gradient of its own; they are added up in order. The number of
//! shards depends on the minibatch alone, so that any number of threads gives the same bytes.
//!
//! A step of an LSTM of 256 units reads 1.3 MB of packed weights, which the last one left in the L2 cache.
//! With one column a shard it is bound by that reading, and with 496 units or more by the L3 cache, where
//! bf16 helps.

mod acting;
mod bf16;
mod lstm;
pub(crate) mod network;
mod operands;
mod shard;
pub(crate) mod tower;
pub(crate) mod trunk;
pub(crate) mod weights;

use crate::architecture::Layout;
use crate::kernels::bf16::Path;
use crate::kernels::elementwise;
use crate::kernels::gradient::unpack_gates;
use crate::model::{Minibatch, Model, Observed, Output, Sampled, run_all};
use crate::objective::{self, Objective, Sums};
use crate::{Architecture, Precision};
use acting::{Actor, Request, Rows};
use lstm::gradient_rows;
use network::Network;
use rayon::prelude::*;
use shard::Shard;
use stages_numerics::dispatch::InstructionSet;
use tower::{Recurrent, Tower, towers};
use weights::Weights;

/// The largest number of shards into which a minibatch is split.
const MAX_SHARDS: usize = 8;

/// The number of parameters that one task of the reduction sums.
const REDUCTION: usize = 1 << 15;

/// A network on fused kernels.
pub struct FusedModel {
    architecture: Architecture,
    layout: Layout,
    instructions: InstructionSet,
    bf16: Option<Path>,
    weights: Weights,
    towers: Vec<Tower>,
    /// The shards, each with one part for each tower.
    shards: Vec<Shard>,
    actors: Vec<Actor>,
}

impl FusedModel {
    /// A network without parameters yet.
    pub fn new(architecture: &Architecture, precision: Precision) -> Self {
        let bf16 = match precision {
            Precision::F32 => None,
            Precision::Bf16 => Some(Path::detect()),
        };
        Self::with(architecture, InstructionSet::detect(), bf16)
    }

    /// A network without parameters yet, on the given instruction set. An LSTM's products are in bf16, by the
    /// instructions of `bf16`, if it is given.
    pub fn with(architecture: &Architecture, instructions: InstructionSet, bf16: Option<Path>) -> Self {
        let layout = architecture.layout();
        let (towers, packed) = towers(architecture, &layout);
        let deviations = layout
            .log_std
            .map_or(0..0, |at| at..at + architecture.head.num_outputs());
        let bf16 = bf16.filter(|_| architecture.lstm.is_some());
        Self {
            architecture: architecture.clone(),
            weights: Weights::new(&packed, layout.tensors.len, deviations, bf16.is_some()),
            layout,
            instructions,
            bf16,
            towers,
            shards: Vec::new(),
            actors: Vec::new(),
        }
    }

    /// The number of shards of a minibatch of `columns` columns and `samples` samples.
    fn num_shards(&self, columns: usize, samples: usize) -> usize {
        let small = samples.saturating_mul(self.layout.tensors.len) < 1 << 22;
        match &self.architecture.lstm {
            _ if small => 1,
            Some(_) => (columns / 32).clamp(1, MAX_SHARDS),
            None => (columns / 128).clamp(1, MAX_SHARDS),
        }
    }

    /// Runs a forward pass over one step for all rows.
    fn run(&mut self, rows: Rows) {
        let network = Network {
            architecture: &self.architecture,
            parameters: self.layout.tensors.len,
            weights: &self.weights,
            instructions: self.instructions,
            bf16: self.bf16,
        };
        acting::forward(&network, &self.towers, &mut self.actors, rows);
    }
}

impl Model for FusedModel {
    fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    fn load(&mut self, params: &[f32]) {
        assert_eq!(params.len(), self.layout.tensors.len, "number of parameters");
        self.weights.load(params);
    }

    fn forward(&mut self, input: &Observed, state: &mut [f32], out: &mut Output) {
        let batch = input.episode_start.len();
        out.value.resize(batch, 0.0);
        out.log_std.clone_from(&self.weights.log_std);
        let continuous = self.architecture.head.is_continuous();
        let outputs = if continuous { &mut out.mean } else { &mut out.log_prob };
        outputs.resize(batch * self.architecture.head.num_outputs(), 0.0);
        self.run(Rows {
            input: *input,
            states: state,
            value: &mut out.value,
            request: if continuous {
                Request::Mean(outputs)
            } else {
                Request::LogProb(outputs)
            },
        });
    }

    fn act(&mut self, input: &Observed, uniform: &[f64], state: &mut [f32], out: Sampled) {
        self.run(Rows {
            input: *input,
            states: state,
            value: out.value,
            request: Request::Actions(uniform, out.actions, out.log_prob),
        });
    }

    fn backward(&mut self, minibatch: &Minibatch, objective: &dyn Objective, gradient: &mut [f32]) -> Sums {
        assert_eq!(gradient.len(), self.layout.tensors.len, "length of the gradient");
        self.weights.prepare_backward();
        let columns = minibatch.indices.len();
        let parts = self.num_shards(columns, minibatch.len());
        let towers = &self.towers;
        let tasks = parts * towers.len();
        if self.shards.len() < tasks {
            self.shards.resize_with(tasks, Shard::default);
        }
        let network = Network {
            architecture: &self.architecture,
            parameters: self.layout.tensors.len,
            weights: &self.weights,
            instructions: self.instructions,
            bf16: self.bf16,
        };
        let work = minibatch
            .parts(parts)
            .flat_map(|part| towers.iter().map(move |tower| (part, tower)));
        run_all(self.shards.iter_mut().zip(work).collect(), |(shard, (part, tower))| {
            shard.backward(&network, tower, &part, objective)
        });
        reduce(
            (self.instructions, self.bf16.is_some()),
            towers,
            &self.shards[..tasks],
            gradient,
        );
        let mut sums = Sums::default();
        for shard in &self.shards[..tasks] {
            objective::add(&mut sums, &shard.sums);
        }
        sums
    }
}

/// Adds the shards' gradients in the order of the shards.
fn reduce(
    (instructions, bf16): (InstructionSet, bool),
    towers: &[Tower],
    shards: &[Shard],
    gradient: &mut [f32],
) {
    let many = gradient.len() > REDUCTION;
    for (i, tower) in towers.iter().enumerate() {
        let parts = shards.iter().skip(i).step_by(towers.len());
        for segment in &tower.segments {
            let out = &mut gradient[segment.global..segment.global + segment.len];
            for (part, shard) in parts.clone().enumerate() {
                let values = &shard.gradient[segment.local..segment.local + segment.len];
                if part == 0 {
                    out.copy_from_slice(values);
                } else {
                    elementwise::add(instructions, out, values);
                }
            }
        }
        if let Some(Recurrent { at, .. }) = tower.lstm {
            let width = 4 * at.hidden;
            let (m, row) = gradient_rows(bf16, &at);
            let rows = (REDUCTION / width).max(1);
            let unpack = |(i, out): (usize, &mut [f32])| {
                let sums = parts.clone().map(|shard| &*shard.lstm.sum);
                unpack_gates(sums, m, at.hidden, |k| row(i * rows + k), out);
            };
            let out = &mut gradient[at.weight_x..at.bias + width];
            if many {
                out.par_chunks_mut(rows * width).enumerate().for_each(unpack);
            } else {
                out.chunks_mut(rows * width).enumerate().for_each(unpack);
            }
        }
    }
}

#[cfg(test)]
mod tests;
