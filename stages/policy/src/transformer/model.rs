//! The model that training uses for transformers, on own kernels; checked against [`crate::CandleModel`] and finite differences.
//!
//! A minibatch is split by whole columns into shards, each with its own gradient, which are added up in order. Their number depends on
//! the minibatch alone, so that any number of threads gives the same bytes.

use super::dense::Weights;
use super::pass::{Network, Pass, last};
use super::{State, Transformer};
use crate::kernels::{Level, elementwise};
use crate::loss::{self, Deviations, Samples};
use crate::model::{Batch, LossSettings, Losses, Model, Observed, Output};
use crate::{Architecture, distribution};
use rayon::prelude::*;

/// The most shards a minibatch is split into.
const MAX_SHARDS: usize = 8;

/// Steps that go forth and back together, so that what the way back needs is still in the cache.
const TOGETHER: usize = 512;

/// A transformer on own kernels.
pub struct TransformerModel {
    architecture: Architecture,
    shape: Transformer,
    state: State,
    level: Level,
    weights: Weights,
    shards: Vec<Shard>,
}

/// The buffers of a task.
#[derive(Default)]
struct Shard {
    pass: Pass,
    gradient: Vec<f32>,
    softmax: distribution::Softmax,
    samples: Samples,
    dlogits: Vec<f32>,
    dvalue: Vec<f32>,
}

impl TransformerModel {
    /// A network without parameters yet; `None` when the architecture has no transformer.
    pub fn new(architecture: &Architecture) -> Option<Self> {
        Self::with_level(architecture, Level::detect())
    }

    /// The same, on the instructions of `level`.
    pub fn with_level(architecture: &Architecture, level: Level) -> Option<Self> {
        let shape = architecture.transformer?;
        Some(Self {
            weights: Weights::new(&architecture.layout(), shape.window)?,
            state: shape.state(architecture.obs_dim),
            architecture: architecture.clone(),
            shape,
            level,
            shards: Vec::new(),
        })
    }

    /// How many shards a minibatch of `columns` columns and `samples` samples has.
    pub(super) fn num_shards(&self, columns: usize, samples: usize) -> usize {
        if samples.saturating_mul(self.weights.params.len()) < 1 << 22 {
            1
        } else {
            columns.clamp(1, MAX_SHARDS)
        }
    }

    /// In how many parts `rows` environments are stepped. A row's result does not depend on it.
    fn num_parts(&self, rows: usize, steps: usize) -> usize {
        if (rows * steps).saturating_mul(self.weights.params.len()) < 1 << 21 {
            1
        } else {
            rayon::current_num_threads().min(rows / 4).max(1)
        }
    }

    /// The first `count` shards, and the network that they run.
    fn prepare(&mut self, count: usize) -> (&mut [Shard], Network<'_>) {
        if self.shards.len() < count {
            self.shards.resize_with(count, Shard::default);
        }
        let network = Network {
            architecture: &self.architecture,
            shape: &self.shape,
            state: &self.state,
            weights: &self.weights,
            kit: self.weights.kit(self.level),
        };
        (&mut self.shards[..count], network)
    }
}

/// Runs the tasks, on several threads if there are several.
fn run_all<T: Send>(tasks: Vec<T>, run: impl Fn(T) + Send + Sync) {
    if tasks.len() == 1 {
        tasks.into_iter().for_each(run);
    } else {
        tasks.into_par_iter().for_each(run);
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
            self.architecture.num_actions,
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
                let input = Observed {
                    obs,
                    mask,
                    episode_start,
                };
                shard.pass.act(&network, &input, states);
                logits.copy_from_slice(last(&shard.pass.pi));
                value.copy_from_slice(last(&shard.pass.vf));
                if network.weights.log_std.is_none() {
                    distribution::log_softmax_rows(network.kit.level, logits, mask, a, &mut shard.softmax);
                }
            },
        );
    }

    fn gradient(&mut self, batch: &Batch, settings: &LossSettings, gradient: &mut [f32]) -> Losses {
        assert_eq!(gradient.len(), self.weights.params.len(), "length of the gradient");
        self.weights.prepare_backward();
        let (total, columns) = (batch.len(), batch.pick.len());
        let parts = self.num_shards(columns, total);
        let moments = if settings.normalize_advantage {
            batch.advantage_moments()
        } else {
            (0.0, 1.0)
        };
        let level = self.level;
        let (shards, network) = self.prepare(parts);
        let run = |(part, shard): (usize, &mut Shard)| {
            let pick = &batch.pick[part * columns / parts..(part + 1) * columns / parts];
            shard.gradient(&network, batch, pick, settings, moments, total)
        };
        let losses: Vec<Losses> = if parts == 1 {
            shards.iter_mut().enumerate().map(run).collect()
        } else {
            shards.par_iter_mut().enumerate().map(run).collect()
        };
        gradient.copy_from_slice(&shards[0].gradient);
        for shard in &shards[1..] {
            elementwise::add(level, gradient, &shard.gradient);
        }
        let mut sums = Losses::default();
        for part in &losses {
            sums.add(part);
        }
        sums.scaled(1.0 / total as f64)
    }
}

impl Shard {
    /// Sums of the losses of the columns `pick`; leaves the gradient of the mean loss over `total` samples in `gradient`.
    fn gradient(
        &mut self,
        network: &Network,
        batch: &Batch,
        pick: &[u32],
        settings: &LossSettings,
        moments: (f32, f32),
        total: usize,
    ) -> Losses {
        let mut gradient = std::mem::take(&mut self.gradient);
        super::dense::zeros(&mut gradient, network.weights.params.len());
        let mut sums = Losses::default();
        for pick in pick.chunks((TOGETHER / batch.steps).max(1)) {
            self.gather(network, batch, pick, moments);
            self.pass.forward(network);
            let a = network.architecture.num_actions;
            self.dlogits.clear();
            self.dlogits.extend_from_slice(last(&self.pass.pi));
            self.dvalue.clear();
            self.dvalue.extend_from_slice(last(&self.pass.vf));
            let (level, weight) = (network.kit.level, 1.0 / total as f32);
            let deviations = network.weights.log_std.map(|at| Deviations {
                log_std: &network.kit.params[at..at + a],
                gradient: &mut gradient[at..at + a],
            });
            loss::policy(
                level,
                &self.samples,
                settings,
                weight,
                deviations,
                &mut self.softmax,
                &mut self.dlogits,
                &mut sums,
            );
            loss::value(level, &self.samples, settings, weight, &mut self.dvalue, &mut sums);
            self.pass.backward(network, &self.dlogits, &self.dvalue, &mut gradient);
        }
        self.gradient = gradient;
        sums
    }

    /// Reads the columns' observations where they lie: those of the rollout, and in the states those of the steps before it.
    fn gather(&mut self, network: &Network, batch: &Batch, pick: &[u32], moments: (f32, f32)) {
        let d = network.architecture.obs_dim;
        self.samples.clear();
        self.pass.begin(network, batch.state, pick.len(), |i| pick[i] as usize);
        for t in 0..batch.steps {
            for &column in pick {
                let i = t * batch.columns + column as usize;
                let obs = &batch.obs[i * d..(i + 1) * d];
                self.pass
                    .step(network, batch.state, column as usize, obs, batch.episode_start[i]);
                self.samples.push(batch, i, network.architecture, moments);
            }
        }
    }
}
