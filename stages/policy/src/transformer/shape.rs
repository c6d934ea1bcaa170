//! The sizes of a transformer, and the offsets of its tensors.

use crate::tensors::{Dense, Tensors};
use serde::{Deserialize, Serialize};

/// The bias of a gate at the start of training, at which the gate lets its input through (the paper's b_g).
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

/// The offsets of a layer norm's scale and offset, `[d]` each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NormAt {
    pub weight: usize,
    pub bias: usize,
}

/// The offsets of a gate's weights; the gate mixes y into its input x. r and z are contiguous.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateAt {
    pub rz_y: usize,
    pub rz_x: usize,
    pub h_y: usize,
    pub h_x: usize,
    /// The offset of the bias that is subtracted from the input of z.
    pub bias: usize,
}

/// The offsets of a block's weights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockAt {
    pub norm: NormAt,
    pub query: Dense,
    /// The offset of `[d, 2 d]`, keys then values. A bias would change nothing that the output's bias does
    /// not.
    pub key_value: usize,
    /// The offset of the relative position vectors `[W, d]`, row j for the step j steps ago.
    pub position: usize,
    pub output: Dense,
    pub gate: GateAt,
    pub ff_norm: NormAt,
    pub ff_in: Dense,
    pub ff_out: Dense,
    pub ff_gate: GateAt,
}

/// The offsets of a transformer's weights.
#[derive(Clone, Debug)]
pub(crate) struct TransformerAt {
    pub embed: Dense,
    pub blocks: Vec<BlockAt>,
}

impl Transformer {
    /// The number of steps before the present one that a block attends to.
    pub(crate) fn memory(&self) -> usize {
        self.window - 1
    }

    /// The number of past observations on which the present output depends.
    pub(crate) fn history(&self) -> usize {
        self.n_layers * self.memory()
    }

    /// A description of the first invalid size, if there is one.
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

    pub(crate) fn lay_out(&self, tensors: &mut Tensors, obs_dim: usize) -> TransformerAt {
        let d = self.d_model;
        TransformerAt {
            embed: tensors.dense("embed", obs_dim, d),
            blocks: (0..self.n_layers)
                .map(|i| {
                    let name = |part: &str| format!("block.{i}.{part}");
                    BlockAt {
                        norm: norm(tensors, &name("norm"), d),
                        query: tensors.dense(&name("query"), d, d),
                        key_value: tensors.tensor(name("key_value.weight"), vec![d, 2 * d]),
                        position: tensors.tensor(name("position"), vec![self.window, d]),
                        output: tensors.dense(&name("output"), d, d),
                        gate: gate(tensors, &name("gate"), d),
                        ff_norm: norm(tensors, &name("ff_norm"), d),
                        ff_in: tensors.dense(&name("ff_in"), d, self.d_ff),
                        ff_out: tensors.dense(&name("ff_out"), self.d_ff, d),
                        ff_gate: gate(tensors, &name("ff_gate"), d),
                    }
                })
                .collect(),
        }
    }
}

fn norm(tensors: &mut Tensors, name: &str, d: usize) -> NormAt {
    NormAt {
        weight: tensors.tensor(format!("{name}.weight"), vec![d]),
        bias: tensors.tensor(format!("{name}.bias"), vec![d]),
    }
}

fn gate(tensors: &mut Tensors, name: &str, d: usize) -> GateAt {
    GateAt {
        rz_y: tensors.tensor(format!("{name}.rz_y.weight"), vec![d, 2 * d]),
        rz_x: tensors.tensor(format!("{name}.rz_x.weight"), vec![d, 2 * d]),
        h_y: tensors.tensor(format!("{name}.h_y.weight"), vec![d, d]),
        h_x: tensors.tensor(format!("{name}.h_x.weight"), vec![d, d]),
        bias: tensors.tensor(format!("{name}.bias"), vec![d]),
    }
}
