//! The model that training uses for transformers, on kernels of this crate; the tests check it against
//! [`crate::CandleModel`] and finite differences.
//!
//! A minibatch is split by whole columns into shards, each with its own gradient, which are added up in
//! order. Their number depends on the minibatch alone, so that any number of threads gives the same bytes.

use super::dense::Weights;
use super::pass::{Network, Pass};
use super::shape::Transformer;
use super::state::State;
use crate::kernels::elementwise;
use crate::model::{Minibatch, Model, Observed, Output, run_all};
use crate::objective::{self, Objective, PolicyOutputs, Sums};
use crate::{Architecture, categorical};
use stages_numerics::dispatch::InstructionSet;

/// The largest number of shards into which a minibatch is split.
const MAX_SHARDS: usize = 8;

/// The number of samples that take the forward and the backward pass together, so that the backward pass
/// finds its operands in the cache.
const TOGETHER: usize = 512;

/// A transformer on kernels of this crate.
pub struct TransformerModel {
    architecture: Architecture,
    shape: Transformer,
    state: State,
    instructions: InstructionSet,
    weights: Weights,
    shards: Vec<Shard>,
}

/// The buffers of a task.
#[derive(Default)]
struct Shard {
    pass: Pass,
    gradient: Vec<f32>,
    softmax: categorical::Softmax,
    samples: Vec<u32>,
    sums: Sums,
}

impl TransformerModel {
    /// A network without parameters yet; `None` when the architecture has no transformer.
    pub fn new(architecture: &Architecture) -> Option<Self> {
        Self::with_instructions(architecture, InstructionSet::detect())
    }

    /// A network without parameters yet, on the given instruction set; `None` when the architecture has no
    /// transformer.
    pub fn with_instructions(architecture: &Architecture, instructions: InstructionSet) -> Option<Self> {
        let shape = architecture.transformer?;
        Some(Self {
            weights: Weights::new(architecture)?,
            state: shape.state(architecture.obs_dim),
            architecture: architecture.clone(),
            shape,
            instructions,
            shards: Vec::new(),
        })
    }

    /// The number of shards of a minibatch of `columns` columns and `samples` samples.
    pub(super) fn num_shards(&self, columns: usize, samples: usize) -> usize {
        if samples.saturating_mul(self.weights.params.len()) < 1 << 22 {
            1
        } else {
            columns.clamp(1, MAX_SHARDS)
        }
    }

    /// The number of tasks over which `rows` environments are stepped. A row's result does not depend on it.
    fn num_parts(&self, rows: usize, steps: usize) -> usize {
        if (rows * steps).saturating_mul(self.weights.params.len()) < 1 << 21 {
            1
        } else {
            rayon::current_num_threads().min(rows / 4).max(1)
        }
    }

    /// Prepares the first `count` shards, and returns them with the network that they run.
    fn prepare(&mut self, count: usize) -> (&mut [Shard], Network<'_>) {
        if self.shards.len() < count {
            self.shards.resize_with(count, Shard::default);
        }
        let network = Network {
            architecture: &self.architecture,
            shape: &self.shape,
            state: &self.state,
            weights: &self.weights,
            kit: self.weights.kit(self.instructions),
        };
        (&mut self.shards[..count], network)
    }
}

impl Model for TransformerModel {
    fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    fn load(&mut self, params: &[f32]) {
        assert_eq!(params.len(), self.weights.params.len(), "number of parameters");
        self.weights.load(params);
    }

    fn refresh(&mut self, state: &mut [f32]) {
        let stride = self.state.len();
        let parts = self.num_parts(state.len() / stride, self.state.history);
        let rows = (state.len() / stride).div_ceil(parts).max(1);
        let (shards, network) = self.prepare(parts);
        let tasks: Vec<_> = shards.iter_mut().zip(state.chunks_mut(rows * stride)).collect();
        run_all(tasks, |(shard, states)| shard.pass.refresh(&network, states));
    }

    fn forward(&mut self, input: &Observed, state: &mut [f32], out: &mut Output) {
        let batch = input.episode_start.len();
        let (d, a, s) = (
            self.architecture.obs_dim,
            self.architecture.head.num_outputs(),
            self.state.len(),
        );
        let Output {
            log_prob,
            mean,
            log_std,
            value,
        } = out;
        log_std.clear();
        let logits = match self.weights.log_std {
            Some(at) => {
                log_std.extend_from_slice(&self.weights.params[at..at + a]);
                mean
            }
            None => log_prob,
        };
        logits.resize(batch * a, 0.0);
        value.resize(batch, 0.0);
        assert!(
            input.obs.len() == batch * d && input.mask.len() == batch * a && state.len() == batch * s,
            "shapes of a step"
        );
        let parts = self.num_parts(batch, 1);
        let rows = batch.div_ceil(parts).max(1);
        let (shards, network) = self.prepare(parts);
        let inputs = input
            .obs
            .chunks(rows * d)
            .zip(input.mask.chunks(rows * a))
            .zip(input.episode_start.chunks(rows));
        let outputs = state
            .chunks_mut(rows * s)
            .zip(logits.chunks_mut(rows * a))
            .zip(value.chunks_mut(rows));
        let tasks: Vec<_> = shards.iter_mut().zip(inputs.zip(outputs)).collect();
        run_all(
            tasks,
            |(shard, (((obs, mask), episode_start), ((states, logits), value)))| {
                let input = Observed::new(obs, mask, episode_start);
                shard.pass.act(&network, &input, states);
                logits.copy_from_slice(shard.pass.pi.last());
                value.copy_from_slice(shard.pass.vf.last());
                if network.weights.log_std.is_none() {
                    let choices = network.architecture.head.choices();
                    categorical::log_softmax_rows(
                        network.kit.instructions,
                        logits,
                        mask,
                        choices,
                        &mut shard.softmax,
                    );
                }
            },
        );
    }

    fn backward(&mut self, minibatch: &Minibatch, objective: &dyn Objective, gradient: &mut [f32]) -> Sums {
        assert_eq!(gradient.len(), self.weights.params.len(), "length of the gradient");
        self.weights.prepare_backward();
        let columns = minibatch.indices.len();
        let parts = self.num_shards(columns, minibatch.len());
        let instructions = self.instructions;
        let (shards, network) = self.prepare(parts);
        let tasks = shards.iter_mut().zip(minibatch.parts(parts)).collect();
        run_all(tasks, |(shard, part): (&mut Shard, Minibatch)| {
            shard.backward(&network, &part, objective);
        });
        gradient.copy_from_slice(&shards[0].gradient);
        for shard in &shards[1..] {
            elementwise::add(instructions, gradient, &shard.gradient);
        }
        let mut sums = Sums::default();
        for shard in shards {
            objective::add(&mut sums, &shard.sums);
        }
        sums
    }
}

impl Shard {
    /// Runs a forward and a backward pass, and leaves the gradient and the sums.
    fn backward(&mut self, network: &Network, minibatch: &Minibatch, objective: &dyn Objective) {
        let mut gradient = std::mem::take(&mut self.gradient);
        super::dense::zeros(&mut gradient, network.weights.params.len());
        self.sums = Sums::default();
        for indices in minibatch.indices.chunks((TOGETHER / minibatch.steps).max(1)) {
            self.gather(network, &Minibatch { indices, ..*minibatch });
            self.pass.forward(network);
            let (instructions, a) = (network.kit.instructions, network.architecture.head.num_outputs());
            let outputs = match network.weights.log_std {
                None => PolicyOutputs::Discrete {
                    logits: self.pass.pi.last(),
                    choices: network.architecture.head.choices(),
                    softmax: &mut self.softmax,
                },
                Some(at) => PolicyOutputs::Continuous {
                    mean: self.pass.pi.last(),
                    log_std: &network.kit.params[at..at + a],
                    grad_log_std: &mut gradient[at..at + a],
                },
            };
            objective.policy(instructions, &self.samples, outputs, &mut self.sums);
            objective.value(instructions, &self.samples, self.pass.vf.last(), &mut self.sums);
            self.pass.backward(network, &mut gradient);
        }
        self.gradient = gradient;
    }

    /// Reads the observations of the shard's columns: those of the rollout, and in the recurrent states those
    /// of the steps before it.
    fn gather(&mut self, network: &Network, minibatch: &Minibatch) {
        let (d, indices) = (network.architecture.obs_dim, minibatch.indices);
        self.samples.clear();
        self.pass.begin(network, minibatch.state, indices.len(), |i| {
            minibatch.state_row(indices[i])
        });
        for (i, &first) in minibatch.samples().zip(indices.iter().cycle()) {
            let (obs, row) = (&minibatch.obs[i * d..(i + 1) * d], minibatch.state_row(first));
            self.pass
                .step(network, minibatch.state, row, obs, minibatch.episode_start[i]);
            self.samples.push(i as u32);
        }
    }
}
