//! Some columns of a minibatch on one tower of the network, forth and back, in buffers that are used again.
//!
//! Dense layers, losses and their gradients are taken over a hundred rows or so at a time, right after the LSTM's steps that they
//! read, while caches hold them; only the LSTM's own gradient waits for the end of the sequences.

use super::Network;
use super::tower::{Tower, Head, Recurrent};
use super::lstm::LstmRun;
use super::trunk::TrunkRun;
use crate::distribution::Softmax;
use crate::kernels::aligned::Aligned;
use crate::loss::{self, Deviations, Samples};
use crate::model::{Batch, LossSettings, Losses, Observed};

/// Rows that dense layers take at once.
const ROWS: usize = 128;

/// What all shards of a minibatch know of it.
#[derive(Clone, Copy)]
pub(super) struct Minibatch<'a> {
    pub batch: &'a Batch<'a>,
    pub settings: &'a LossSettings,
    /// Mean and reciprocal deviation of the advantages.
    pub moments: (f32, f32),
    /// 1 over the number of samples.
    pub weight: f32,
}

#[derive(Default)]
pub(super) struct Shard {
    /// Of the tower's dense layers.
    pub gradient: Aligned,
    pub losses: Losses,
    x: Vec<f32>,
    keep: Vec<f32>,
    samples: Samples,
    softmax: Softmax,
    pub lstm: LstmRun,
    /// Outputs of the LSTM for as many steps as dense layers take at once.
    h: Aligned,
    trunks: Vec<TrunkRun>,
}

impl Shard {
    /// One step: logits (not yet masked) and values, as far as the tower says them; moves the states on.
    pub fn forward(
        &mut self,
        network: &Network,
        tower: &Tower,
        input: &Observed,
        states: &mut [f32],
        logits: &mut [f32],
        value: &mut [f32],
    ) {
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
                self.lstm.store(lstm, &self.h, |column| column * stride, states);
                &self.h
            }
        };
        for (trunk, run) in tower.trunks.iter().zip(&mut self.trunks) {
            run.forward(network, trunk, x, rows);
            match trunk.head {
                Head::Policy => logits.copy_from_slice(run.last()),
                Head::Value => value.copy_from_slice(run.last()),
            }
        }
    }

    /// Sums of the losses of the columns `pick`, and the gradient of the mean loss.
    pub fn gradient(&mut self, network: &Network, tower: &Tower, minibatch: Minibatch, pick: &[u32]) {
        self.gradient.zeros(tower.len);
        self.losses = Losses::default();
        self.trunks.resize_with(tower.trunks.len(), TrunkRun::default);
        match &tower.lstm {
            None => self.rows(network, tower, minibatch, pick),
            Some(lstm) => self.sequences(network, tower, lstm, minibatch, pick),
        }
    }

    /// Without memory: any rows, in any order.
    fn rows(&mut self, network: &Network, tower: &Tower, minibatch: Minibatch, pick: &[u32]) {
        let (batch, d) = (minibatch.batch, network.architecture.obs_dim);
        for t in 0..batch.steps {
            for pick in pick.chunks(ROWS) {
                self.x.clear();
                self.samples.clear();
                for &column in pick {
                    let i = t * batch.columns + column as usize;
                    self.x.extend_from_slice(&batch.obs[i * d..(i + 1) * d]);
                    self.samples.push(batch, i, network.architecture, minibatch.moments);
                }
                let x = std::mem::take(&mut self.x);
                self.learn(network, tower, minibatch, &x, None);
                self.x = x;
            }
        }
    }

    fn sequences(&mut self, network: &Network, tower: &Tower, lstm: &Recurrent, minibatch: Minibatch, pick: &[u32]) {
        let batch = minibatch.batch;
        let (steps, b, n, d) = (batch.steps, pick.len(), lstm.at.hidden, lstm.at.inputs);
        let stride = network.architecture.state_len();
        self.keep.clear();
        for t in 0..steps {
            let starts = &batch.episode_start[t * batch.columns..(t + 1) * batch.columns];
            self.keep
                .extend(pick.iter().map(|&column| keep(&starts[column as usize])));
        }
        let state = |column: usize| pick[column] as usize * stride;
        self.lstm
            .begin(network, lstm, (b, steps), &self.keep[..b], state, batch.state);
        let together = (ROWS / b).clamp(1, steps);
        let mut h = std::mem::take(&mut self.h);
        let mut above = std::mem::take(&mut self.lstm.above);
        h.resize(together * b * n);
        above.resize(steps * b * n);
        self.samples.clear();
        let ahead = self.lstm.ahead();
        if ahead {
            for t in 0..steps {
                for (column, &from) in pick.iter().enumerate() {
                    let i = t * batch.columns + from as usize;
                    self.lstm.observe(network, t, column, &batch.obs[i * d..(i + 1) * d]);
                }
            }
            self.lstm.project(network, lstm);
        }
        for t in 0..steps {
            for (column, &from) in pick.iter().enumerate() {
                let i = t * batch.columns + from as usize;
                if !ahead {
                    self.lstm.observe(network, t, column, &batch.obs[i * d..(i + 1) * d]);
                }
                self.samples.push(batch, i, network.architecture, minibatch.moments);
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
                self.learn(network, tower, minibatch, &h[..rows * n], Some(above));
                self.samples.clear();
            }
        }
        self.h = h;
        self.lstm.above = above;
        self.lstm.backward(network, lstm, &self.keep);
    }

    /// Forth and back through the trunks over rows whose samples were taken down; `below` takes the policy's gradient of `x`, or else the value's.
    fn learn(
        &mut self,
        network: &Network,
        tower: &Tower,
        minibatch: Minibatch,
        x: &[f32],
        mut below: Option<&mut [f32]>,
    ) {
        let rows = self.samples.len();
        for (trunk, run) in tower.trunks.iter().zip(&mut self.trunks) {
            run.forward(network, trunk, x, rows);
            let (samples, settings) = (&self.samples, minibatch.settings);
            match trunk.head {
                Head::Policy => loss::policy(
                    network.level,
                    samples,
                    settings,
                    minibatch.weight,
                    tower.log_std.map(|segment| Deviations {
                        log_std: &network.weights.log_std,
                        gradient: &mut self.gradient[segment.local..segment.local + segment.len],
                    }),
                    &mut self.softmax,
                    run.last(),
                    &mut self.losses,
                ),
                Head::Value => loss::value(
                    network.level,
                    samples,
                    settings,
                    minibatch.weight,
                    run.last(),
                    &mut self.losses,
                ),
            }
            // The first trunk alone teaches what both read.
            run.backward(network, trunk, x, rows, below.take(), &mut self.gradient);
        }
    }
}

fn keep(episode_start: &bool) -> f32 {
    if *episode_start { 0.0 } else { 1.0 }
}
