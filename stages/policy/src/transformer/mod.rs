//! A causal transformer over a window of steps, its residuals gated: the GTrXL of Parisotto and others, "Stabilizing transformers
//! for reinforcement learning" (2020).
//!
//! Each block reads the layer norm of its input (d features a step), attends to the last `window` steps of the same episode, and lets a GRU gate mix
//! the result into its input; then the same with a layer of `d_ff` rectified units instead of attention.
//! Positions are relative: the score of the step j steps ago is q (k_j + p_j) / sqrt(d / heads), with a learned vector p_j for each
//! distance (Shaw and others, 2018; Transformer-XL makes its p_j of sinusoids) and a bias in q for Transformer-XL's u and v.
//!
//! The outputs for a step are a function of the last `n_layers` x (`window` - 1) + 1 observations of its episode, and of nothing
//! else. While acting, keys and values of past steps are kept ([`State`]); learning computes them again, from the observations of the
//! rollout and of the steps before it, which the state keeps too. So replay is exact, with gradients through the whole window and
//! nothing stale.

mod block;
mod dense;
mod gru_gate;
mod model;
mod pass;
mod state;
#[cfg(test)]
mod tests;

pub use model::TransformerModel;
pub use state::State;

use crate::architecture::{Dense, Layout};
use serde::{Deserialize, Serialize};

/// The bias of a gate at the start of training, by which it lets its input through (the paper's b_g).
pub(crate) const GATE_BIAS: f32 = 2.0;

/// The sizes of a transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transformer {
    /// W, the steps that a block attends to, with the present one.
    pub window: usize,
    /// d, the features of a step between blocks.
    pub d_model: usize,
    /// Heads of attention, which share d among them.
    pub n_heads: usize,
    /// L, the number of blocks.
    pub n_layers: usize,
    /// Rectified units in a block.
    pub d_ff: usize,
}

/// A layer norm: scale and offset, `[d]` each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NormAt {
    pub weight: usize,
    pub bias: usize,
}

/// A gate's weights: x is the input, y is mixed into it. r and z stand side by side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateAt {
    pub rz_y: usize,
    pub rz_x: usize,
    pub h_y: usize,
    pub h_x: usize,
    /// Subtracted from the input of z.
    pub bias: usize,
}

/// A block's weights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockAt {
    pub norm: NormAt,
    pub query: Dense,
    /// `[d, 2 d]`, keys then values; no bias, which would change nothing that the output's does not.
    pub key_value: usize,
    /// `[W, d]`, row j for the step j steps ago.
    pub position: usize,
    pub output: Dense,
    pub gate: GateAt,
    pub ff_norm: NormAt,
    pub ff_in: Dense,
    pub ff_out: Dense,
    pub ff_gate: GateAt,
}

/// A transformer's weights.
#[derive(Clone, Debug)]
pub(crate) struct TransformerAt {
    pub embed: Dense,
    pub blocks: Vec<BlockAt>,
}

impl Transformer {
    /// Steps before the present one that a block attends to.
    pub(crate) fn memory(&self) -> usize {
        self.window - 1
    }

    /// Past observations that the present output depends on.
    pub(crate) fn history(&self) -> usize {
        self.n_layers * self.memory()
    }

    /// The layout of its state for environments whose observations have `obs_dim` elements.
    pub fn state(&self, obs_dim: usize) -> State {
        State::new(self, obs_dim)
    }

    /// The first mistake in its sizes, if there is one.
    pub(crate) fn problem(&self) -> Option<String> {
        let sizes = [
            ("window", self.window),
            ("d_model", self.d_model),
            ("n_heads", self.n_heads),
            ("n_layers", self.n_layers),
            ("d_ff", self.d_ff),
        ];
        if let Some((name, _)) = sizes.iter().find(|(_, size)| *size == 0) {
            return Some(format!("{name} must be at least 1"));
        }
        (!self.d_model.is_multiple_of(self.n_heads)).then(|| {
            format!(
                "d_model ({}) must be a multiple of n_heads ({})",
                self.d_model, self.n_heads
            )
        })
    }

    pub(crate) fn lay_out(&self, layout: &mut Layout, obs_dim: usize) -> TransformerAt {
        let d = self.d_model;
        TransformerAt {
            embed: layout.dense("embed", obs_dim, d),
            blocks: (0..self.n_layers)
                .map(|i| {
                    let name = |part: &str| format!("block.{i}.{part}");
                    BlockAt {
                        norm: norm(layout, &name("norm"), d),
                        query: layout.dense(&name("query"), d, d),
                        key_value: layout.tensor(name("key_value.weight"), vec![d, 2 * d]),
                        position: layout.tensor(name("position"), vec![self.window, d]),
                        output: layout.dense(&name("output"), d, d),
                        gate: gate(layout, &name("gate"), d),
                        ff_norm: norm(layout, &name("ff_norm"), d),
                        ff_in: layout.dense(&name("ff_in"), d, self.d_ff),
                        ff_out: layout.dense(&name("ff_out"), self.d_ff, d),
                        ff_gate: gate(layout, &name("ff_gate"), d),
                    }
                })
                .collect(),
        }
    }
}

fn norm(layout: &mut Layout, name: &str, d: usize) -> NormAt {
    NormAt {
        weight: layout.tensor(format!("{name}.weight"), vec![d]),
        bias: layout.tensor(format!("{name}.bias"), vec![d]),
    }
}

fn gate(layout: &mut Layout, name: &str, d: usize) -> GateAt {
    GateAt {
        rz_y: layout.tensor(format!("{name}.rz_y.weight"), vec![d, 2 * d]),
        rz_x: layout.tensor(format!("{name}.rz_x.weight"), vec![d, 2 * d]),
        h_y: layout.tensor(format!("{name}.h_y.weight"), vec![d, d]),
        h_x: layout.tensor(format!("{name}.h_x.weight"), vec![d, d]),
        bias: layout.tensor(format!("{name}.bias"), vec![d]),
    }
}
