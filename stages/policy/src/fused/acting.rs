//! Inference for B environments: rows in tasks of a few dozen, spread over threads, without allocation.

use super::network::Network;
use super::shard::Shard;
use super::tower::Tower;
use crate::categorical::{Softmax, log_softmax_rows, sample_rows};
use crate::model::Observed;

/// The number of environments of one task. A row's result does not depend on it.
const ROWS: usize = 64;

/// The smallest number of products of numbers in a task whose towers run side by side.
const MANY: usize = 1 << 21;

/// The buffers of a task.
#[derive(Default)]
pub(super) struct Actor {
    /// The pass buffers, one for each tower.
    shards: Vec<Shard>,
    softmax: Softmax,
    logits: Vec<f32>,
}

/// The requested output of a policy for some rows.
pub(super) enum Request<'a> {
    /// Log-probabilities `[B, A]`.
    LogProb(&'a mut [f32]),
    /// The means of continuous actions `[B, A]`.
    Mean(&'a mut [f32]),
    /// Actions for uniform numbers, both `[B, K]`, and their log-probabilities `[B]`.
    Actions(&'a [f64], &'a mut [u32], &'a mut [f32]),
}

/// The sizes D, A, K and S.
type Sizes = (usize, usize, usize, usize);

/// A range of rows of a step, with the outputs requested for them.
pub(super) struct Rows<'a> {
    pub input: Observed<'a>,
    pub states: &'a mut [f32],
    pub value: &'a mut [f32],
    pub request: Request<'a>,
}

impl<'a> Rows<'a> {
    fn split(self, n: usize, (d, a, k, s): Sizes) -> (Self, Self) {
        let (obs, mask, start) = (
            self.input.obs.split_at(n * d),
            self.input.mask.split_at(n * a),
            self.input.episode_start.split_at(n),
        );
        let states = self.states.split_at_mut(n * s);
        let value = self.value.split_at_mut(n);
        let request = match self.request {
            Request::LogProb(rows) => {
                let rows = rows.split_at_mut(n * a);
                (Request::LogProb(rows.0), Request::LogProb(rows.1))
            }
            Request::Mean(rows) => {
                let rows = rows.split_at_mut(n * a);
                (Request::Mean(rows.0), Request::Mean(rows.1))
            }
            Request::Actions(uniform, actions, log_prob) => {
                let (uniform, actions, log_prob) = (
                    uniform.split_at(n * k),
                    actions.split_at_mut(n * k),
                    log_prob.split_at_mut(n),
                );
                (
                    Request::Actions(uniform.0, actions.0, log_prob.0),
                    Request::Actions(uniform.1, actions.1, log_prob.1),
                )
            }
        };
        (
            Rows {
                input: Observed::new(obs.0, mask.0, start.0),
                states: states.0,
                value: value.0,
                request: request.0,
            },
            Rows {
                input: Observed::new(obs.1, mask.1, start.1),
                states: states.1,
                value: value.1,
                request: request.1,
            },
        )
    }
}

/// A forward pass over one step of all rows.
pub(super) fn forward(network: &Network, towers: &[Tower], actors: &mut Vec<Actor>, rows: Rows) {
    let architecture = network.architecture;
    let head = &architecture.head;
    let (d, a, s) = (architecture.obs_dim, head.num_outputs(), architecture.state_len());
    let batch = rows.input.episode_start.len();
    assert!(
        rows.input.obs.len() == batch * d
            && rows.input.mask.len() == batch * a
            && rows.states.len() == batch * s
            && rows.value.len() == batch,
        "shapes of a step"
    );
    let tasks = batch.div_ceil(ROWS);
    if tasks == 0 {
        return;
    }
    if actors.len() < tasks {
        actors.resize_with(tasks, Actor::default);
    }
    each(
        network,
        towers,
        &mut actors[..tasks],
        rows,
        (d, a, head.num_components(), s),
    );
}

fn each(network: &Network, towers: &[Tower], actors: &mut [Actor], rows: Rows, sizes: Sizes) {
    if let [actor] = actors {
        actor.take(network, towers, rows);
        return;
    }
    let half = actors.len() / 2;
    let (head, tail) = actors.split_at_mut(half);
    let (first, rest) = rows.split(half * ROWS, sizes);
    rayon::join(
        || each(network, towers, head, first, sizes),
        || each(network, towers, tail, rest, sizes),
    );
}

impl Actor {
    fn take(&mut self, network: &Network, towers: &[Tower], rows: Rows) {
        let head = &network.architecture.head;
        let Rows {
            input,
            states,
            value,
            request,
        } = rows;
        self.logits.resize(value.len() * head.num_outputs(), 0.0);
        self.shards.resize_with(towers.len(), Shard::default);
        let many = value.len().saturating_mul(network.parameters) >= MANY;
        match (towers, &mut self.shards[..]) {
            ([actor, critic], [first, second]) if many => {
                let states = &*states;
                rayon::join(
                    || first.forward(network, actor, &input, states),
                    || second.forward(network, critic, &input, states),
                );
            }
            (_, shards) => {
                for (tower, shard) in towers.iter().zip(shards) {
                    shard.forward(network, tower, &input, states);
                }
            }
        }
        for (tower, shard) in towers.iter().zip(&mut self.shards) {
            shard.store(tower, states, &mut self.logits, value);
        }
        let (logits, softmax) = (&mut self.logits, &mut self.softmax);
        match request {
            Request::Mean(out) => out.copy_from_slice(logits),
            Request::LogProb(out) => {
                log_softmax_rows(network.instructions, logits, input.mask, head.choices(), softmax);
                out.copy_from_slice(logits);
            }
            Request::Actions(uniform, actions, log_prob) => {
                sample_rows(
                    network.instructions,
                    logits,
                    input.mask,
                    head.choices(),
                    uniform,
                    softmax,
                    actions,
                    log_prob,
                );
            }
        }
    }
}
