//! The network of one member of a population.

use super::lstm::{State, advance};
use crate::architecture::LstmAt;
use crate::kernels::aligned::Aligned;
use crate::kernels::elementwise::{relu_in_place, tanh_in_place};
use crate::kernels::few_rows::{PART, product};
use crate::kernels::operands::Left;
use crate::kernels::panels::Panels;
use crate::{ActionHead, Activation, Architecture, Critic};
use stages_numerics::dispatch::InstructionSet;

/// The number of parameters that actions depend on, which come first in the flat vector.
///
/// # Errors
/// Names the part of the architecture that a network of a population cannot have.
pub fn searched_len(architecture: &Architecture) -> Result<usize, String> {
    if architecture.transformer.is_some() {
        return Err("a population's network has no transformer".to_owned());
    }
    if let Some(lstm) = architecture.lstm
        && (lstm.layers != 1 || lstm.critic != Critic::Shared)
    {
        return Err("a population's network has one layer of LSTM, and no critic of its own".to_owned());
    }
    if let ActionHead::Candidates(_) = architecture.head {
        return Err("a population's network has no candidate actions".to_owned());
    }
    let layout = architecture.layout();
    let head = layout.pi.last().ok_or("a network without an action head")?;
    Ok(head.bias + head.outputs)
}

/// A matrix of the flat vector, packed, and its bias.
#[derive(Debug, Default)]
struct Weight {
    from: usize,
    inputs: usize,
    outputs: usize,
    panels: Panels,
    /// The bias `[columns]`; empty where sums start from the present values of the result.
    bias: Vec<f32>,
    bias_from: Option<usize>,
}

impl Weight {
    fn new(from: usize, inputs: usize, outputs: usize, bias_from: Option<usize>) -> Self {
        Self {
            from,
            inputs,
            outputs,
            bias_from,
            ..Self::default()
        }
    }

    fn columns(&self) -> usize {
        self.outputs.next_multiple_of(PART)
    }

    fn load(&mut self, params: &[f32]) {
        self.panels.pack(
            &params[self.from..][..self.inputs * self.outputs],
            self.inputs,
            self.outputs,
        );
        self.bias.clear();
        if let Some(from) = self.bias_from {
            self.bias.extend_from_slice(&params[from..][..self.outputs]);
            self.bias.resize(self.columns(), 0.0);
        }
    }

    /// out `[rows, columns]` := bias + x w, or out + x w without a bias.
    fn multiply(&self, instructions: InstructionSet, x: &[f32], stride: usize, rows: usize, out: &mut [f32]) {
        let bias = self.bias_from.map(|_| &*self.bias);
        let x = Left::rows(x, rows, self.inputs, stride);
        product(instructions, x, &self.panels, bias, out, self.columns());
    }
}

#[derive(Debug)]
struct LstmLayer {
    x: Weight,
    h: Weight,
    hidden: usize,
}

/// The network of one member: its weights, the recurrent states of its episodes, and buffers. The next member
/// uses the same network anew.
#[derive(Debug)]
pub struct MemberNetwork {
    lstm: Option<LstmLayer>,
    layers: Vec<Weight>,
    activation: Activation,
    searched: usize,
    state: State,
    /// The activations of two consecutive layers, in turn.
    buffers: [Aligned; 2],
    rows: usize,
}

impl MemberNetwork {
    /// A network of the given architecture, without parameters yet.
    ///
    /// # Errors
    /// Fails where [`searched_len`] does: the architecture has a part that a population's network cannot
    /// have.
    pub fn new(architecture: &Architecture) -> Result<Self, String> {
        let searched = searched_len(architecture)?;
        let layout = architecture.layout();
        let lstm = layout.actor_lstm.first().map(
            |&LstmAt {
                 inputs,
                 hidden,
                 weight_x,
                 weight_h,
                 bias,
             }| LstmLayer {
                x: Weight::new(weight_x, inputs, 4 * hidden, Some(bias)),
                h: Weight::new(weight_h, hidden, 4 * hidden, None),
                hidden,
            },
        );
        let layers = layout
            .pi
            .iter()
            .map(|dense| Weight::new(dense.weight, dense.inputs, dense.outputs, Some(dense.bias)));
        Ok(Self {
            lstm,
            layers: layers.collect(),
            activation: architecture.activation,
            searched,
            state: State::default(),
            buffers: Default::default(),
            rows: 0,
        })
    }

    /// Loads a member's parameters, the first [`searched_len`] of the flat vector or more, and begins `rows`
    /// episodes.
    pub fn begin(&mut self, params: &[f32], rows: usize) {
        assert!(params.len() >= self.searched, "a member's parameters");
        let lstm = self.lstm.iter_mut().flat_map(|lstm| [&mut lstm.x, &mut lstm.h]);
        let mut widest = 0;
        for weight in lstm.chain(&mut self.layers) {
            weight.load(params);
            widest = widest.max(weight.columns());
        }
        for buffer in &mut self.buffers {
            buffer.resize(rows * widest);
        }
        if let Some(lstm) = &self.lstm {
            self.state.begin(lstm.hidden, rows);
        }
        self.rows = rows;
    }

    /// Drops the episode of a row: the rows after it move up by one.
    pub fn end(&mut self, row: usize) {
        if let Some(lstm) = &self.lstm {
            self.state.remove(lstm.hidden, row, self.rows);
        }
        self.rows -= 1;
    }

    /// A step of the episodes that have not ended, from observations `[rows, D]` to the outputs of the action
    /// head, whose rows are [`MemberNetwork::stride`] apart.
    pub fn forward(&mut self, instructions: InstructionSet, obs: &[f32]) -> &[f32] {
        let Self {
            lstm,
            layers,
            activation,
            state,
            buffers: [to, before],
            rows,
            ..
        } = self;
        let (rows, mut x, mut stride) = (*rows, obs, obs.len() / (*rows).max(1));
        let (mut to, mut before) = (to, before);
        if let Some(lstm) = lstm {
            let gates = lstm.x.columns();
            let hidden = lstm.hidden.next_multiple_of(PART);
            lstm.x.multiply(instructions, x, stride, rows, to);
            lstm.h.multiply(instructions, &state.h, hidden, rows, to);
            advance(instructions, state, to, gates, lstm.hidden, rows);
            (x, stride) = (&state.h, hidden);
        }
        for (i, layer) in layers.iter().enumerate() {
            layer.multiply(instructions, if i == 0 { x } else { &*before }, stride, rows, to);
            stride = layer.columns();
            if i + 1 < layers.len() {
                let to = &mut to[..rows * stride];
                match activation {
                    Activation::Tanh => tanh_in_place(instructions, to),
                    Activation::Relu => relu_in_place(instructions, to),
                }
            }
            std::mem::swap(&mut to, &mut before);
        }
        before
    }

    /// The distance of one row of outputs from the next.
    pub fn stride(&self) -> usize {
        self.layers.last().map_or(0, Weight::columns)
    }
}
