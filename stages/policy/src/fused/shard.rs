//! Some columns of a minibatch, forth and back, in buffers that are used again.

use super::Network;
use super::lstm::LstmRun;
use super::weights::DenseIndex;
use crate::architecture::Critic;
use crate::distribution;
use crate::kernels::{elementwise, matmul};
use crate::loss::{self, Samples};
use crate::model::{Batch, LossSettings, Losses, Observed};
use crate::{Activation, Architecture};

/// The outputs of a trunk's layers.
type Trunk = Vec<Vec<f32>>;

#[derive(Default)]
pub(super) struct Shard {
    /// `[P]`.
    pub gradient: Vec<f32>,
    x: Vec<f32>,
    keep: Vec<f32>,
    mask: Vec<bool>,
    samples: Samples,
    actor: LstmRun,
    critic: LstmRun,
    critic_linear: Vec<f32>,
    pi: Trunk,
    vf: Trunk,
    above: Vec<f32>,
    below: Vec<f32>,
}

fn trunk_forward(network: &Network, layers: &[DenseIndex], input: &[f32], out: &mut Trunk) {
    out.resize_with(layers.len(), Vec::new);
    for (i, layer) in layers.iter().enumerate() {
        let (done, rest) = out.split_at_mut(i);
        let x = done.last().map_or(input, Vec::as_slice);
        dense_forward(network, layer, x, &mut rest[0]);
        if i + 1 < layers.len() {
            match network.architecture.activation {
                Activation::Tanh => elementwise::tanh_in_place(network.level, &mut rest[0]),
                Activation::Relu => elementwise::relu_in_place(network.level, &mut rest[0]),
            }
        }
    }
}

fn dense_forward(network: &Network, layer: &DenseIndex, x: &[f32], y: &mut Vec<f32>) {
    let dense = &layer.dense;
    let bias = network.weights.slice(dense.bias, dense.outputs);
    y.resize(x.len() / dense.inputs * dense.outputs, 0.0);
    for row in y.chunks_exact_mut(dense.outputs) {
        row.copy_from_slice(bias);
    }
    matmul::multiply(network.level, x, &network.weights.matrix(layer.matrix).forward, y);
}

fn dense_gradient(network: &Network, layer: &DenseIndex, x: &[f32], dy: &[f32], gradient: &mut [f32]) {
    let dense = &layer.dense;
    let weight = &mut gradient[dense.weight..dense.weight + dense.inputs * dense.outputs];
    matmul::outer(x, dy, dense.inputs, dense.outputs, weight);
    let bias = &mut gradient[dense.bias..dense.bias + dense.outputs];
    elementwise::column_sums(network.level, dy, bias);
}

/// Goes back through a trunk. `above` holds the gradient of its output and ends as that of its input, if `to_input`.
fn trunk_backward(
    network: &Network,
    layers: &[DenseIndex],
    input: &[f32],
    outputs: &Trunk,
    above: &mut Vec<f32>,
    below: &mut Vec<f32>,
    to_input: bool,
    gradient: &mut [f32],
) {
    for (i, layer) in layers.iter().enumerate().rev() {
        let x = if i == 0 { input } else { &outputs[i - 1] };
        if i + 1 < layers.len() {
            match network.architecture.activation {
                Activation::Tanh => elementwise::tanh_back(network.level, above, &outputs[i]),
                Activation::Relu => elementwise::relu_back(network.level, above, &outputs[i]),
            }
        }
        dense_gradient(network, layer, x, above, gradient);
        if i > 0 || to_input {
            below.clear();
            below.resize(x.len(), 0.0);
            matmul::multiply(network.level, above, &network.weights.matrix(layer.matrix).back, below);
            std::mem::swap(above, below);
        }
    }
}

impl Shard {
    /// Runs the network over `x` and `keep`; leaves logits and values as the trunks' last outputs.
    fn run(&mut self, network: &Network, steps: usize, states: &[f32], state: impl Fn(usize) -> usize + Copy) {
        let (layout, weights) = (network.layout, network.weights);
        if let (Some(at), Some(index)) = (&layout.actor_lstm, weights.actor_lstm) {
            self.actor
                .forward(network, at, index, &self.x, &self.keep, steps, state, states);
        }
        if let (Some(at), Some(index)) = (&layout.critic_lstm, weights.critic_lstm) {
            let state = |column| state(column) + 2 * at.hidden;
            self.critic
                .forward(network, at, index, &self.x, &self.keep, steps, state, states);
        }
        if let Some(layer) = &weights.critic_linear {
            dense_forward(network, layer, &self.x, &mut self.critic_linear);
        }
        let (actor, critic) = latents(network, &self.x, &self.actor, &self.critic, &self.critic_linear);
        trunk_forward(network, &weights.pi, actor, &mut self.pi);
        trunk_forward(network, &weights.vf, critic, &mut self.vf);
    }

    /// One step: logits (not yet masked) and values; moves the states on.
    pub fn forward(
        &mut self,
        network: &Network,
        input: &Observed,
        states: &mut [f32],
        logits: &mut [f32],
        value: &mut [f32],
    ) {
        if input.episode_start.is_empty() {
            return;
        }
        self.x.clear();
        self.x.extend_from_slice(input.obs);
        self.keep.clear();
        self.keep
            .extend(input.episode_start.iter().map(|&start| if start { 0.0 } else { 1.0 }));
        let stride = network.architecture.state_len();
        self.run(network, 1, states, |column| column * stride);
        if let Some(at) = &network.layout.actor_lstm {
            self.actor.store(at.hidden, |column| column * stride, states);
        }
        if let Some(at) = &network.layout.critic_lstm {
            self.critic
                .store(at.hidden, |column| column * stride + 2 * at.hidden, states);
        }
        logits.copy_from_slice(last(&self.pi));
        value.copy_from_slice(last(&self.vf));
    }

    /// Sums of the losses of the columns `pick`; leaves the gradient of the mean loss over `total` samples in `gradient`.
    pub fn gradient(
        &mut self,
        network: &Network,
        batch: &Batch,
        pick: &[u32],
        settings: &LossSettings,
        (mean, scale): (f32, f32),
        total: usize,
    ) -> Losses {
        let architecture = network.architecture;
        let a = architecture.num_actions;
        self.gather(architecture, batch, pick, (mean, scale));
        let stride = architecture.state_len();
        self.run(network, batch.steps, batch.state, |column| {
            pick[column] as usize * stride
        });

        let mut log_prob = std::mem::take(&mut self.above);
        log_prob.clear();
        log_prob.extend_from_slice(last(&self.pi));
        let mut value = last(&self.vf).to_vec();
        let mut gradient = std::mem::take(&mut self.gradient);
        gradient.clear();
        gradient.resize(network.layout.len, 0.0);
        let losses = match network.layout.log_std {
            Some(at) => loss::clipped_numbers(
                network.level,
                &self.samples,
                settings,
                total,
                network.weights.slice(at, a),
                &mut gradient[at..at + a],
                &mut log_prob,
                &mut value,
            ),
            None => {
                for (row, mask) in log_prob.chunks_exact_mut(a).zip(self.mask.chunks_exact(a)) {
                    distribution::log_softmax(row, mask);
                }
                loss::clipped(&self.samples, settings, a, total, &mut log_prob, &mut value)
            }
        };
        self.backward(network, batch.steps, log_prob, value, &mut gradient);
        self.gradient = gradient;
        losses
    }

    fn gather(&mut self, architecture: &Architecture, batch: &Batch, pick: &[u32], (mean, scale): (f32, f32)) {
        let (d, a) = (architecture.obs_dim, architecture.num_actions);
        self.x.clear();
        self.keep.clear();
        self.mask.clear();
        self.samples.clear();
        for t in 0..batch.steps {
            for &column in pick {
                let i = t * batch.columns + column as usize;
                self.x.extend_from_slice(&batch.obs[i * d..(i + 1) * d]);
                self.mask.extend_from_slice(&batch.mask[i * a..(i + 1) * a]);
                self.keep.push(if batch.episode_start[i] { 0.0 } else { 1.0 });
                self.samples.actions.push(batch.choice(i, architecture));
                self.samples.numbers.extend_from_slice(batch.number(i, architecture));
                self.samples.old_log_prob.push(batch.old_log_prob[i]);
                self.samples.old_value.push(batch.old_value[i]);
                self.samples.advantage.push((batch.advantage[i] - mean) * scale);
                self.samples.target.push(batch.target[i]);
            }
        }
    }

    fn backward(
        &mut self,
        network: &Network,
        steps: usize,
        mut above: Vec<f32>,
        mut value: Vec<f32>,
        gradient: &mut [f32],
    ) {
        let (layout, weights) = (network.layout, network.weights);
        let mut below = std::mem::take(&mut self.below);
        let (actor, critic) = latents(network, &self.x, &self.actor, &self.critic, &self.critic_linear);
        let through = layout.actor_lstm.is_some();
        trunk_backward(
            network,
            &weights.pi,
            actor,
            &self.pi,
            &mut above,
            &mut below,
            through,
            gradient,
        );
        let through = layout.critic_lstm.is_some() || layout.critic_linear.is_some();
        trunk_backward(
            network,
            &weights.vf,
            critic,
            &self.vf,
            &mut value,
            &mut below,
            through,
            gradient,
        );
        if let Some(layer) = &weights.critic_linear {
            dense_gradient(network, layer, &self.x, &value, gradient);
        }
        if let (Some(at), Some(index)) = (&layout.actor_lstm, weights.actor_lstm) {
            self.actor
                .backward(network, at, index, &self.x, &self.keep, steps, &above, gradient);
        }
        if let (Some(at), Some(index)) = (&layout.critic_lstm, weights.critic_lstm) {
            self.critic
                .backward(network, at, index, &self.x, &self.keep, steps, &value, gradient);
        }
        (self.above, self.below) = (above, below);
    }
}

fn last(trunk: &Trunk) -> &[f32] {
    trunk.last().map_or(&[], Vec::as_slice)
}

/// What the actor's and the critic's trunks read.
fn latents<'a>(
    network: &Network,
    x: &'a [f32],
    actor: &'a LstmRun,
    critic: &'a LstmRun,
    linear: &'a [f32],
) -> (&'a [f32], &'a [f32]) {
    match network.architecture.lstm.map(|lstm| lstm.critic) {
        None => (x, x),
        Some(Critic::Shared) => (&actor.h, &actor.h),
        Some(Critic::Separate) => (&actor.h, &critic.h),
        Some(Critic::Linear) => (&actor.h, linear),
    }
}
