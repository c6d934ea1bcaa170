//! The forward and the backward pass of some columns of a minibatch through one tower of the network, in
//! buffers that are used again.
//!
//! Dense layers, the objective and their gradients are computed over a hundred rows or so at a time, right
//! after the LSTM's steps that they read, while caches hold them; only the LSTM's own gradient waits for the
//! end of the sequences.

use super::lstm::LstmRun;
use super::network::Network;
use super::tower::{Head, Recurrent, Tower};
use super::trunk::TrunkRun;
use crate::categorical::Softmax;
use crate::kernels::aligned::Aligned;
use crate::model::{Minibatch, Observed};
use crate::objective::{Objective, PolicyOutputs, Sums};

/// The number of rows that dense layers take at once.
const ROWS: usize = 128;

/// The buffers of one task.
#[derive(Default)]
pub(super) struct Shard {
    /// The gradient of the tower's dense layers.
    pub gradient: Aligned,
    /// The sums of the objective.
    pub sums: Sums,
    x: Vec<f32>,
    keep: Vec<f32>,
    /// The samples of a block of rows.
    samples: Vec<u32>,
    softmax: Softmax,
    pub lstm: LstmRun,
    /// The LSTM's outputs for as many steps as dense layers take at once.
    h: Aligned,
    trunks: Vec<TrunkRun>,
}

impl Shard {
    /// Runs one step from the states, whose results [`Shard::store`] writes.
    pub(super) fn forward(&mut self, network: &Network, tower: &Tower, input: &Observed, states: &[f32]) {
        let rows = input.episode_start.len();
        self.trunks.resize_with(tower.trunks.len(), TrunkRun::default);
        let x = match &tower.lstm {
            None => input.obs,
            Some(lstm) => {
                let (stride, d) = (states.len() / rows, lstm.at.inputs);
                self.keep.clear();
                self.keep.extend(input.episode_start.iter().map(keep));
                self.lstm
                    .begin(network, lstm, (rows, 1), &self.keep, |column| column * stride, states);
                for (column, obs) in input.obs.chunks_exact(d).enumerate() {
                    self.lstm.observe(network, 0, column, obs);
                }
                self.h.resize(rows * lstm.at.hidden);
                self.lstm.step(network, lstm, 0, (&self.keep, None), &mut self.h);
                &self.h
            }
        };
        for (trunk, run) in tower.trunks.iter().zip(&mut self.trunks) {
            run.forward(network.products(), trunk, x, rows);
        }
    }

    /// Writes the results of [`Shard::forward`]: the tower's logits (not yet masked) or values or both, and
    /// its part of the states after the step.
    pub(super) fn store(&mut self, tower: &Tower, states: &mut [f32], logits: &mut [f32], value: &mut [f32]) {
        if let Some(lstm) = &tower.lstm {
            let stride = states.len() / value.len();
            self.lstm.store(lstm, &self.h, |column| column * stride, states);
        }
        for (trunk, run) in tower.trunks.iter().zip(&mut self.trunks) {
            match trunk.head {
                Head::Policy => logits.copy_from_slice(run.last()),
                Head::Value => value.copy_from_slice(run.last()),
            }
        }
    }

    /// Runs a forward and a backward pass, and leaves the gradient and the sums.
    pub(super) fn backward(
        &mut self,
        network: &Network,
        tower: &Tower,
        minibatch: &Minibatch,
        objective: &dyn Objective,
    ) {
        self.gradient.zeros(tower.len);
        self.sums = Sums::default();
        self.trunks.resize_with(tower.trunks.len(), TrunkRun::default);
        match &tower.lstm {
            None => self.rows(network, tower, minibatch, objective),
            Some(lstm) => self.sequences(network, tower, lstm, minibatch, objective),
        }
    }

    /// The pass of a tower without memory, whose rows may come in any order.
    fn rows(&mut self, network: &Network, tower: &Tower, minibatch: &Minibatch, objective: &dyn Objective) {
        let d = network.architecture.obs_dim;
        for t in 0..minibatch.steps {
            for indices in minibatch.indices.chunks(ROWS) {
                self.x.clear();
                self.samples.clear();
                for &column in indices {
                    let i = t * minibatch.columns + column as usize;
                    self.x.extend_from_slice(&minibatch.obs[i * d..(i + 1) * d]);
                    self.samples.push(i as u32);
                }
                let x = std::mem::take(&mut self.x);
                self.block(network, tower, objective, &x, None);
                self.x = x;
            }
        }
    }

    fn sequences(
        &mut self,
        network: &Network,
        tower: &Tower,
        lstm: &Recurrent,
        minibatch: &Minibatch,
        objective: &dyn Objective,
    ) {
        let (steps, indices) = (minibatch.steps, minibatch.indices);
        let (b, n, d) = (indices.len(), lstm.at.hidden, lstm.at.inputs);
        let stride = network.architecture.state_len();
        self.keep.clear();
        self.keep
            .extend(minibatch.samples().map(|i| keep(&minibatch.episode_start[i])));
        let state = |column: usize| minibatch.state_row(indices[column]) * stride;
        self.lstm
            .begin(network, lstm, (b, steps), &self.keep[..b], state, minibatch.state);
        let together = (ROWS / b).clamp(1, steps);
        let mut h = std::mem::take(&mut self.h);
        let mut above = std::mem::take(&mut self.lstm.above);
        h.resize(together * b * n);
        above.resize(steps * b * n);
        self.samples.clear();
        let ahead = self.lstm.ahead();
        if ahead {
            for t in 0..steps {
                for (column, &from) in indices.iter().enumerate() {
                    let i = t * minibatch.columns + from as usize;
                    self.lstm
                        .observe(network, t, column, &minibatch.obs[i * d..(i + 1) * d]);
                }
            }
            self.lstm.project(network, lstm);
        }
        for t in 0..steps {
            for (column, &from) in indices.iter().enumerate() {
                let i = t * minibatch.columns + from as usize;
                if !ahead {
                    self.lstm
                        .observe(network, t, column, &minibatch.obs[i * d..(i + 1) * d]);
                }
                self.samples.push(i as u32);
            }
            let first = t % together;
            let now = &mut h[first * b * n..(first + 1) * b * n];
            let keep_next = self.keep.get((t + 1) * b..(t + 2) * b);
            let keeps = (&self.keep[t * b..(t + 1) * b], keep_next);
            self.lstm.step(network, lstm, t, keeps, now);
            if first + 1 == together || t + 1 == steps {
                let rows = (first + 1) * b;
                let to = (t + 1) * b;
                let above = &mut above[(to - rows) * n..to * n];
                self.block(network, tower, objective, &h[..rows * n], Some(above));
                self.samples.clear();
            }
        }
        self.h = h;
        self.lstm.above = above;
        self.lstm.backward(network, lstm, &self.keep);
    }

    /// A forward and a backward pass of the trunks over the rows x of [`Shard::samples`]; `below` takes the
    /// policy's gradient of `x`, or else the value's.
    fn block(
        &mut self,
        network: &Network,
        tower: &Tower,
        objective: &dyn Objective,
        x: &[f32],
        mut below: Option<&mut [f32]>,
    ) {
        let (instructions, rows) = (network.instructions, self.samples.len());
        for (trunk, run) in tower.trunks.iter().zip(&mut self.trunks) {
            run.forward(network.products(), trunk, x, rows);
            let sums = &mut self.sums;
            match trunk.head {
                Head::Value => objective.value(instructions, &self.samples, run.last(), sums),
                Head::Policy => {
                    let outputs = match tower.log_std {
                        None => PolicyOutputs::Discrete {
                            logits: run.last(),
                            choices: network.architecture.head.choices(),
                            softmax: &mut self.softmax,
                        },
                        Some(segment) => PolicyOutputs::Continuous {
                            mean: run.last(),
                            log_std: &network.weights.log_std,
                            grad_log_std: &mut self.gradient[segment.local..segment.local + segment.len],
                        },
                    };
                    objective.policy(instructions, &self.samples, outputs, sums);
                }
            }
            // Only the gradient of the first trunk flows into the shared layers.
            let gradient = Some((&mut *self.gradient, true));
            run.backward(network.products(), trunk, x, rows, below.take(), gradient);
        }
    }
}

fn keep(episode_start: &bool) -> f32 {
    if *episode_start { 0.0 } else { 1.0 }
}
