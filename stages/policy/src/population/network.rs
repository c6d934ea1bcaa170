//! The network of one member of a population.

use super::dense::{Dense, PART};
use super::lstm::State;
use crate::architecture::LstmAt;
use crate::kernels::aligned::Aligned;
use crate::kernels::math::tanh;
use crate::{Activation, Architecture, Critic};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::kernel;

/// The number of parameters that actions depend on; they are the first of the flat vector.
///
/// # Errors
/// The part of the architecture that a population's network does not have.
pub fn searched_len(architecture: &Architecture) -> Result<usize, String> {
    if architecture.transformer.is_some() {
        return Err("a population's network has no transformer".to_owned());
    }
    if let Some(lstm) = architecture.lstm
        && (lstm.layers != 1 || lstm.critic != Critic::Shared)
    {
        return Err("a population's network has one layer of LSTM, and no critic of its own".to_owned());
    }
    let layout = architecture.layout();
    let head = layout.pi.last().ok_or("a network without an action head")?;
    Ok(head.bias + head.outputs)
}

/// A matrix: its place in the flat vector, and in the padded weights.
#[derive(Clone, Copy, Debug)]
struct Weight {
    from: usize,
    inputs: usize,
    outputs: usize,
    at: usize,
}

impl Weight {
    fn columns(&self) -> usize {
        self.outputs.next_multiple_of(PART)
    }

    fn slice<'a>(&self, weights: &'a [f32]) -> &'a [f32] {
        &weights[self.at..][..self.inputs * self.columns()]
    }
}

/// A layer: its weight, and its bias as a weight of one row.
#[derive(Clone, Copy, Debug)]
struct Layer {
    weight: Weight,
    bias: Weight,
}

#[derive(Clone, Copy, Debug)]
struct LstmLayer {
    x: Weight,
    h: Weight,
    bias: Weight,
    hidden: usize,
}

/// The network of a member: weights, recurrent states of its episodes, and buffers, used again for the next member.
#[derive(Debug)]
pub struct MemberNetwork {
    lstm: Option<LstmLayer>,
    layers: Vec<Layer>,
    activation: Activation,
    searched: usize,
    weights: Aligned,
    state: State,
    /// Activations of two layers in turn.
    buffers: [Aligned; 2],
    rows: usize,
}

impl MemberNetwork {
    /// A network of an architecture, without parameters yet.
    ///
    /// # Errors
    /// Those of [`searched_len`].
    pub fn new(architecture: &Architecture) -> Result<Self, String> {
        let searched = searched_len(architecture)?;
        let layout = architecture.layout();
        let mut len = 0;
        let mut weight = |from: usize, inputs: usize, outputs: usize| {
            let weight = Weight {
                from,
                inputs,
                outputs,
                at: len,
            };
            len += inputs * weight.columns();
            weight
        };
        let lstm = layout.actor_lstm.map(
            |LstmAt {
                 inputs,
                 hidden,
                 weight_x,
                 weight_h,
                 bias,
             }| LstmLayer {
                x: weight(weight_x, inputs, 4 * hidden),
                h: weight(weight_h, hidden, 4 * hidden),
                bias: weight(bias, 1, 4 * hidden),
                hidden,
            },
        );
        let layers = layout.pi.iter().map(|dense| Layer {
            weight: weight(dense.weight, dense.inputs, dense.outputs),
            bias: weight(dense.bias, 1, dense.outputs),
        });
        let layers = layers.collect();
        let mut weights = Aligned::default();
        weights.zeros(len);
        Ok(Self {
            lstm,
            layers,
            activation: architecture.activation,
            searched,
            weights,
            state: State::default(),
            buffers: Default::default(),
            rows: 0,
        })
    }

    fn all(&self) -> impl Iterator<Item = Weight> {
        let lstm = self.lstm.into_iter().flat_map(|lstm| [lstm.x, lstm.h, lstm.bias]);
        lstm.chain(self.layers.iter().flat_map(|layer| [layer.weight, layer.bias]))
    }

    /// Takes over a member's parameters, the first [`searched_len`] of the flat vector or more, and begins `rows` episodes.
    pub fn begin(&mut self, params: &[f32], rows: usize) {
        assert!(params.len() >= self.searched, "a member's parameters");
        let mut weights = std::mem::take(&mut self.weights);
        for weight in self.all() {
            let from = &params[weight.from..][..weight.inputs * weight.outputs];
            let to = &mut weights[weight.at..][..weight.inputs * weight.columns()];
            if weight.outputs == weight.columns() {
                to.copy_from_slice(from);
            } else {
                for (to, from) in to
                    .chunks_exact_mut(weight.columns())
                    .zip(from.chunks_exact(weight.outputs))
                {
                    to[..weight.outputs].copy_from_slice(from);
                }
            }
        }
        self.weights = weights;
        let widest = self.all().map(|weight| weight.columns()).max().unwrap_or(0);
        for buffer in &mut self.buffers {
            buffer.resize(rows * widest);
        }
        if let Some(lstm) = self.lstm {
            self.state.begin(lstm.hidden, rows);
        }
        self.rows = rows;
    }

    /// Forgets the episode of row `row`: those after it move up by one.
    pub fn end(&mut self, row: usize) {
        if let Some(lstm) = self.lstm {
            self.state.remove(lstm.hidden, row, self.rows);
        }
        self.rows -= 1;
    }

    /// A step of the episodes that have not ended: observations `[rows, D]` to the outputs of the action head, whose rows are
    /// [`MemberNetwork::stride`] apart.
    pub fn forward(&mut self, instructions: InstructionSet, obs: &[f32]) -> &[f32] {
        let mut out = 0;
        forward(instructions, self, obs, &mut out);
        &self.buffers[out]
    }

    /// The distance of one row of outputs from the next.
    pub fn stride(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.weight.columns())
    }
}

#[inline(always)]
fn forward_body<const FMA: bool>(network: &mut MemberNetwork, obs: &[f32], last: &mut usize) {
    let MemberNetwork {
        lstm,
        layers,
        activation,
        weights,
        state,
        buffers,
        rows,
        ..
    } = network;
    let rows = *rows;
    let [a, b] = buffers;
    let (mut x, mut stride) = (obs, obs.len() / rows.max(1));
    if let Some(lstm) = lstm {
        let gates = lstm.x.columns();
        let hidden = lstm.hidden.next_multiple_of(PART);
        let step = |x, stride, weight: &Weight, bias| Dense {
            x,
            stride,
            rows,
            inputs: weight.inputs,
            weight: weight.slice(weights),
            bias,
            columns: gates,
        };
        step(x, stride, &lstm.x, Some(lstm.bias.slice(weights))).run::<FMA>(a);
        step(&state.h, hidden, &lstm.h, None).run::<FMA>(a);
        state.advance::<FMA>(a, gates, lstm.hidden, rows);
        (x, stride) = (&state.h, hidden);
    }
    for (i, layer) in layers.iter().enumerate() {
        let columns = layer.weight.columns();
        let (before, to): (&[f32], &mut [f32]) = if i % 2 == 0 { (&*b, &mut *a) } else { (&*a, &mut *b) };
        Dense {
            x: if i == 0 { x } else { before },
            stride,
            rows,
            inputs: layer.weight.inputs,
            weight: layer.weight.slice(weights),
            bias: Some(layer.bias.slice(weights)),
            columns,
        }
        .run::<FMA>(to);
        if i + 1 < layers.len() {
            activate::<FMA>(*activation, &mut to[..rows * columns]);
        }
        (*last, stride) = (i % 2, columns);
    }
}
kernel! {
    fn forward(network: &mut MemberNetwork, obs: &[f32], last: &mut usize) = forward_body
}

#[inline(always)]
fn activate<const FMA: bool>(activation: Activation, x: &mut [f32]) {
    match activation {
        Activation::Tanh => {
            for x in x {
                *x = tanh::<FMA>(*x);
            }
        }
        Activation::Relu => {
            for x in x {
                *x = if *x < 0.0 { 0.0 } else { *x };
            }
        }
    }
}
