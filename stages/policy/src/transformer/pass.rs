//! The forward and the backward pass of a few columns of a rollout, in buffers that are reused.

use super::block::{Block, Steps, Temp};
use super::dense::{Kit, Weights};
use super::shape::Transformer;
use super::state::State;
use crate::Architecture;
use crate::fused::trunk::TrunkRun;
use crate::kernels::attention::{self, Window};
use crate::kernels::elementwise;
use crate::model::Observed;

/// A network, its weights and the layout of its states.
#[derive(Clone, Copy)]
pub(super) struct Network<'a> {
    pub architecture: &'a Architecture,
    pub shape: &'a Transformer,
    pub state: &'a State,
    pub weights: &'a Weights,
    pub kit: Kit<'a>,
}

#[derive(Default)]
pub(super) struct Pass {
    columns: usize,
    /// The number of steps before the rollout that are computed again.
    history: usize,
    /// The number of steps of the rollout.
    steps: usize,
    /// `[history + steps, b]`: the number of known steps of the episode up to each step, including the step
    /// itself.
    ages: Vec<u32>,
    /// Observations `[history + steps, b, D]`.
    x: Vec<f32>,
    embedded: Vec<f32>,
    blocks: Vec<Block>,
    pub pi: TrunkRun,
    pub vf: TrunkRun,
    temp: Temp,
    above: Vec<f32>,
    dlatent: Vec<f32>,
    /// The softmax weights of one step's attention.
    scores: Vec<f32>,
}

impl Pass {
    /// Begins with the steps before the rollout, from the states `[_, S]`; column i starts from row `row(i)`.
    pub(super) fn begin(
        &mut self,
        network: &Network,
        states: &[f32],
        columns: usize,
        row: impl Fn(usize) -> usize,
    ) {
        let (state, stride) = (network.state, network.state.len());
        let states = |column: usize| &states[row(column) * stride..(row(column) + 1) * stride];
        self.columns = columns;
        self.steps = 0;
        self.history = (0..columns).map(|i| state.age(states(i))).max().unwrap_or(0);
        self.x.clear();
        self.ages.clear();
        for ago in (1..=self.history).rev() {
            for column in 0..columns {
                let row = states(column);
                self.x.extend_from_slice(state.past(row, ago));
                // A step of another episode or of none attends to itself alone, and no step attends to it.
                let age = (state.age(row) + 1).saturating_sub(ago).max(1);
                self.ages.push(age as u32);
            }
        }
    }

    /// Adds a step of one column. Steps come first to last, and within each step the columns first to last.
    pub(super) fn step(
        &mut self,
        network: &Network,
        states: &[f32],
        row: usize,
        obs: &[f32],
        episode_start: bool,
    ) {
        let index = self.ages.len();
        let before = if self.steps_so_far() > 0 {
            self.ages[index - self.columns]
        } else {
            let stride = network.state.len();
            network.state.age(&states[row * stride..(row + 1) * stride]) as u32
        };
        self.ages.push(if episode_start { 1 } else { before + 1 });
        self.x.extend_from_slice(obs);
    }

    /// The number of whole steps of the rollout that have been added.
    fn steps_so_far(&self) -> usize {
        self.ages.len() / self.columns.max(1) - self.history
    }

    /// The number of input steps of block i: those of the rollout, and as many before it as the later blocks
    /// reach back to.
    fn steps_in(&self, shape: &Transformer, i: usize) -> usize {
        self.steps + self.history.min((shape.n_layers - i) * shape.memory())
    }

    fn block_steps(&self, shape: &Transformer, i: usize) -> Steps<'_> {
        let steps_out = self.steps_in(shape, i + 1);
        Steps {
            columns: self.columns,
            steps_in: self.steps_in(shape, i),
            steps_out,
            ages: &self.ages[(self.history + self.steps - steps_out) * self.columns..],
        }
    }

    /// Runs all added steps through the blocks.
    fn run_blocks(&mut self, network: &Network) {
        let Network {
            shape, weights, kit, ..
        } = *network;
        self.steps = self.steps_so_far();
        weights.embed.apply(kit, &self.x, &mut self.embedded);
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.resize_with(shape.n_layers, Block::default);
        let mut temp = std::mem::take(&mut self.temp);
        for i in 0..blocks.len() {
            let (done, rest) = blocks.split_at_mut(i);
            let x = done.last().map_or(&self.embedded, |block| &block.out);
            let steps = self.block_steps(shape, i);
            rest[0].forward(kit, shape, &weights.blocks[i], steps, x, &mut temp);
        }
        (self.blocks, self.temp) = (blocks, temp);
    }

    fn run_trunks(&mut self, network: &Network) {
        let latent = self.blocks.last().map_or(&self.embedded, |block| &block.out);
        let products = network.weights.products(network.kit.instructions);
        let rows = latent.len() / network.shape.d_model;
        for (run, trunk) in [&mut self.pi, &mut self.vf]
            .into_iter()
            .zip(&network.weights.trunks.trunks)
        {
            run.forward(products, trunk, latent, rows);
        }
    }

    /// Runs all added steps through the network; leaves logits and values as the trunks' last outputs.
    pub(super) fn forward(&mut self, network: &Network) {
        self.run_blocks(network);
        self.run_trunks(network);
    }

    /// The backward pass from the gradients of logits and values, which the trunks hold in place of the
    /// outputs; adds to the gradients of the weights.
    pub(super) fn backward(&mut self, network: &Network, gradient: &mut [f32]) {
        let Network {
            shape, weights, kit, ..
        } = *network;
        let mut above = std::mem::take(&mut self.above);
        let mut dlatent = std::mem::take(&mut self.dlatent);
        let latent = self.blocks.last().map_or(&self.embedded, |block| &block.out);
        let (products, rows) = (weights.products(kit.instructions), latent.len() / shape.d_model);
        let sums = &mut gradient[weights.trunks.segments[0].global..][..weights.trunks.len];
        let trunks = &weights.trunks.trunks;
        for (run, trunk, out) in [
            (&mut self.pi, &trunks[0], &mut dlatent),
            (&mut self.vf, &trunks[1], &mut above),
        ] {
            out.resize(latent.len(), 0.0);
            run.backward(products, trunk, latent, rows, Some(out), Some((&mut *sums, true)));
        }
        elementwise::add(kit.instructions, &mut dlatent, &above);
        let mut temp = std::mem::take(&mut self.temp);
        for i in (0..self.blocks.len()).rev() {
            let x = if i == 0 {
                &self.embedded
            } else {
                &self.blocks[i - 1].out
            };
            let steps = self.block_steps(shape, i);
            let block = &weights.blocks[i];
            self.blocks[i].backward(kit, shape, block, steps, x, &dlatent, &mut above, &mut temp, gradient);
            std::mem::swap(&mut above, &mut dlatent);
        }
        weights.embed.gradient(kit, &self.x, &dlatent, gradient);
        (self.temp, self.above, self.dlatent) = (temp, above, dlatent);
    }

    /// Recomputes the keys and values in `states` `[b, S]` from the observations in the states.
    pub(super) fn refresh(&mut self, network: &Network, states: &mut [f32]) {
        let (shape, state, stride) = (network.shape, network.state, network.state.len());
        let columns = states.len() / stride;
        self.begin(network, states, columns, |i| i);
        if self.history > 0 {
            self.run_blocks(network);
        }
        for (column, row) in states.chunks_exact_mut(stride).enumerate() {
            for i in 0..shape.n_layers {
                let steps_in = self.steps_in(shape, i);
                for ago in 1..=state.age(row).min(shape.memory()) {
                    let from = ((steps_in - ago) * columns + column) * 2 * shape.d_model;
                    let key_value = &self.blocks[i].key_value[from..from + 2 * shape.d_model];
                    state.store(row, i, state.refill_at(ago), key_value);
                }
            }
            state.refilled(row);
        }
    }

    /// Steps environments whose keys and values are current: leaves logits and values as [`Pass::forward`]
    /// does, and advances the states `[b, S]`.
    pub(super) fn act(&mut self, network: &Network, input: &Observed, states: &mut [f32]) {
        let Network {
            shape,
            state,
            weights,
            kit,
            ..
        } = *network;
        let (d, stride) = (shape.d_model, state.len());
        weights.embed.apply(kit, input.obs, &mut self.embedded);
        self.blocks.resize_with(shape.n_layers, Block::default);
        for (row, &start) in states.chunks_exact_mut(stride).zip(input.episode_start) {
            if start {
                state.start(row);
            }
            state.room(row);
        }
        self.scores
            .resize(shape.n_heads * super::block::weights_len(shape.window), 0.0);
        for i in 0..shape.n_layers {
            let (done, rest) = self.blocks.split_at_mut(i);
            let x = done.last().map_or(&self.embedded, |block| &block.out);
            let (block, weights) = (&mut rest[0], &weights.blocks[i]);
            block.before(kit, weights, x, 0, d);
            for (column, row) in states.chunks_exact_mut(stride).enumerate() {
                let at = state.room(row);
                let key_value = &block.key_value[column * 2 * d..(column + 1) * 2 * d];
                state.store(row, i, at, key_value);
                let len = state.age(row).min(shape.memory()) + 1;
                let first = at + 1 - len;
                let (keys, values) = state.buffers(row, i);
                let window = Window {
                    len,
                    heads: shape.n_heads,
                    keys: &keys[first..],
                    key_stride: state.key_stride(),
                    positions: &weights.positions_across[shape.window - len..],
                    position_stride: super::dense::position_stride(shape.window),
                };
                attention::forward(
                    kit.instructions,
                    window,
                    &block.query[column * d..(column + 1) * d],
                    &values[first * d..],
                    &mut self.scores,
                    &mut block.read[column * d..(column + 1) * d],
                );
            }
            block.after(kit, weights, x, d);
        }
        let obs = input.obs.chunks_exact(network.architecture.obs_dim);
        for (row, obs) in states.chunks_exact_mut(stride).zip(obs) {
            let at = state.room(row);
            state.push(row, obs, at);
        }
        self.run_trunks(network);
    }
}
