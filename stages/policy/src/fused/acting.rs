//! Inference for B environments: rows in tasks of a few dozen, spread over threads, without allocation.

use super::network::Network;
use super::shard::Shard;
use super::tower::Tower;
use crate::categorical::{Softmax, log_softmax_rows, sample_rows};
use crate::model::{Observed, run_all};

/// The number of environments of one task. A row's result does not depend on it.
const ROWS: usize = 64;

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

/// Rows of a step, with the outputs requested for them.
pub(super) struct Rows<'a> {
    pub input: Observed<'a>,
    pub states: &'a mut [f32],
    pub value: &'a mut [f32],
    pub request: Request<'a>,
}

/// A forward pass over one step of all rows.
pub(super) fn forward(network: &Network, towers: &[Tower], actors: &mut Vec<Actor>, rows: Rows) {
    let architecture = network.architecture;
    let head = &architecture.head;
    let (d, a, s) = (architecture.obs_dim, head.num_outputs(), architecture.state_len());
    let Rows {
        input,
        mut states,
        value,
        request,
    } = rows;
    let batch = input.episode_start.len();
    assert!(
        input.obs.len() == batch * d
            && input.mask.len() == batch * a
            && states.len() == batch * s
            && value.len() == batch,
        "shapes of a step"
    );
    let k = head.num_components();
    let requests: Vec<Request> = match request {
        Request::LogProb(rows) => rows.chunks_mut(ROWS * a).map(Request::LogProb).collect(),
        Request::Mean(rows) => rows.chunks_mut(ROWS * a).map(Request::Mean).collect(),
        Request::Actions(uniform, actions, log_prob) => uniform
            .chunks(ROWS * k)
            .zip(actions.chunks_mut(ROWS * k))
            .zip(log_prob.chunks_mut(ROWS))
            .map(|((uniform, actions), log_prob)| Request::Actions(uniform, actions, log_prob))
            .collect(),
    };
    if actors.len() < requests.len() {
        actors.resize_with(requests.len(), Actor::default);
    }
    let inputs = input
        .obs
        .chunks(ROWS * d)
        .zip(input.mask.chunks(ROWS * a))
        .zip(input.episode_start.chunks(ROWS));
    let mut tasks: Vec<(&mut Actor, Rows)> = Vec::with_capacity(requests.len());
    for (((actor, request), value), ((obs, mask), episode_start)) in
        actors.iter_mut().zip(requests).zip(value.chunks_mut(ROWS)).zip(inputs)
    {
        let rows = Rows {
            input: Observed::new(obs, mask, episode_start),
            states: states.split_off_mut(..value.len() * s).unwrap_or_default(),
            value,
            request,
        };
        tasks.push((actor, rows));
    }
    run_all(tasks, |(actor, rows)| actor.take(network, towers, rows));
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
        for (tower, shard) in towers.iter().zip(&mut self.shards) {
            shard.forward(network, tower, &input, states, &mut self.logits, value);
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
