//! The forward and the backward pass of a block. Rows are time-major `[steps, b, d]`; a block's output steps
//! are the last of its input steps.

use super::dense::{BlockWeights, Kit, position_stride, zeros};
use super::gru_gate::{Gate, GateTemp};
use super::shape::{NormAt, Transformer};
use crate::kernels::attention::{self, Backward, LANES, Window};
use crate::kernels::operands::Start;
use crate::kernels::{elementwise, norm};

/// A layer norm over rows.
#[derive(Default)]
struct Norm {
    unit: Vec<f32>,
    inverse: Vec<f32>,
    out: Vec<f32>,
}

impl Norm {
    fn forward(&mut self, kit: Kit, at: &NormAt, x: &[f32], d: usize) {
        let (weight, bias) = (&kit.params[at.weight..at.weight + d], &kit.params[at.bias..at.bias + d]);
        self.unit.resize(x.len(), 0.0);
        self.out.resize(x.len(), 0.0);
        self.inverse.resize(x.len() / d, 0.0);
        norm::forward(
            kit.instructions,
            x,
            weight,
            bias,
            &mut self.unit,
            &mut self.inverse,
            &mut self.out,
        );
    }

    /// Adds the gradient of the input to dx.
    fn backward(&self, kit: Kit, at: &NormAt, dy: &[f32], dx: &mut [f32], gradient: &mut [f32], d: usize) {
        let weight = &kit.params[at.weight..at.weight + d];
        // The bias follows the weight.
        let (dweight, dbias) = gradient[at.weight..at.weight + 2 * d].split_at_mut(d);
        norm::backward(
            kit.instructions,
            dy,
            weight,
            &self.unit,
            &self.inverse,
            dx,
            dweight,
            dbias,
        );
    }
}

/// The results of the forward pass that the backward pass needs.
#[derive(Default)]
pub(super) struct Block {
    norm: Norm,
    /// The keys and values `[steps in, b, 2 d]`.
    pub key_value: Vec<f32>,
    /// The queries `[steps out, b, d]`.
    pub query: Vec<f32>,
    /// The softmax of the scores `[steps out, b, heads, W rounded up to LANES]`.
    weights: Vec<f32>,
    /// The output of attention.
    pub read: Vec<f32>,
    /// The rectified output of attention.
    y: Vec<f32>,
    gate: Gate,
    middle: Vec<f32>,
    ff_norm: Norm,
    hidden: Vec<f32>,
    ff_y: Vec<f32>,
    ff_gate: Gate,
    /// The output of the block `[steps out, b, d]`.
    pub out: Vec<f32>,
}

/// The steps of b columns that a block computes, and the range that each attends to.
#[derive(Clone, Copy)]
pub(super) struct Steps<'a> {
    pub columns: usize,
    pub steps_in: usize,
    pub steps_out: usize,
    /// `[steps out, b]`: the number of known steps of the episode up to each step, including the step itself.
    pub ages: &'a [u32],
}

impl Steps<'_> {
    /// The number of input steps that have no output step.
    fn dropped(&self) -> usize {
        self.steps_in - self.steps_out
    }
}

/// The buffers that blocks use one after another.
#[derive(Default)]
pub(super) struct Temp {
    keys: Vec<f32>,
    keys_across: Vec<f32>,
    values: Vec<f32>,
    values_across: Vec<f32>,
    grad_keys: Vec<f32>,
    grad_values: Vec<f32>,
    grad_positions: Vec<f32>,
    dscores: Vec<f32>,
    dquery: Vec<f32>,
    grad_key_value: Vec<f32>,
    dread: Vec<f32>,
    dy: Vec<f32>,
    dmiddle: Vec<f32>,
    dhidden: Vec<f32>,
    dnorm: Vec<f32>,
    gate: GateTemp,
}

/// The number of elements of the weights of one head.
pub(super) fn weights_len(window: usize) -> usize {
    window.next_multiple_of(LANES)
}

impl Block {
    /// Computes the keys and values of all rows, and the queries of the rows from `dropped` on.
    pub(super) fn before(&mut self, kit: Kit, weights: &BlockWeights, x: &[f32], dropped: usize, d: usize) {
        self.norm.forward(kit, &weights.at.norm, x, d);
        self.key_value.resize(2 * x.len(), 0.0);
        weights
            .key_value
            .apply(kit, &self.norm.out, Start::Zero, &mut self.key_value);
        weights.query.apply(kit, &self.norm.out[dropped * d..], &mut self.query);
        self.read.resize(self.query.len(), 0.0);
    }

    /// Computes the block's output from the output of attention; x holds the rows of the output.
    pub(super) fn after(&mut self, kit: Kit, weights: &BlockWeights, x: &[f32], d: usize) {
        weights.output.apply(kit, &self.read, &mut self.y);
        elementwise::relu_in_place(kit.instructions, &mut self.y);
        self.gate.forward(kit, &weights.gate, &self.y, x, &mut self.middle, d);
        self.ff_norm.forward(kit, &weights.at.ff_norm, &self.middle, d);
        weights.ff_in.apply(kit, &self.ff_norm.out, &mut self.hidden);
        elementwise::relu_in_place(kit.instructions, &mut self.hidden);
        weights.ff_out.apply(kit, &self.hidden, &mut self.ff_y);
        elementwise::relu_in_place(kit.instructions, &mut self.ff_y);
        self.ff_gate
            .forward(kit, &weights.ff_gate, &self.ff_y, &self.middle, &mut self.out, d);
    }

    /// The forward pass of the whole block over sequences.
    pub(super) fn forward(
        &mut self,
        kit: Kit,
        shape: &Transformer,
        weights: &BlockWeights,
        steps: Steps,
        x: &[f32],
        temp: &mut Temp,
    ) {
        let d = shape.d_model;
        let dropped = steps.dropped() * steps.columns;
        self.before(kit, weights, x, dropped, d);
        let padded = shape.n_heads * weights_len(shape.window);
        self.weights.resize(self.query.len() / d * padded, 0.0);
        for column in 0..steps.columns {
            let stride = temp.gather(&self.key_value, steps, column, d, false);
            for step in 0..steps.steps_out {
                let row = step * steps.columns + column;
                let (first, len) = reach(shape, steps, step, row);
                attention::forward(
                    kit.instructions,
                    temp.window(shape, weights, first, len, stride),
                    &self.query[row * d..(row + 1) * d],
                    &temp.values[first * d..],
                    &mut self.weights[row * padded..(row + 1) * padded],
                    &mut self.read[row * d..(row + 1) * d],
                );
            }
        }
        self.after(kit, weights, &x[dropped * d..], d);
    }

    /// The backward pass, from the gradient of the output to dx `[steps in, b, d]`; adds to the gradients of
    /// the weights.
    pub(super) fn backward(
        &self,
        kit: Kit,
        shape: &Transformer,
        weights: &BlockWeights,
        steps: Steps,
        x: &[f32],
        grad_out: &[f32],
        dx: &mut Vec<f32>,
        temp: &mut Temp,
        gradient: &mut [f32],
    ) {
        let d = shape.d_model;
        let dropped = steps.dropped() * steps.columns;
        let at = &weights.at;
        let mut dy = std::mem::take(&mut temp.dy);
        let mut dmiddle = std::mem::take(&mut temp.dmiddle);
        dmiddle.resize(grad_out.len(), 0.0);
        self.ff_gate.backward(
            kit,
            &weights.ff_gate,
            (&self.ff_y, &self.middle),
            grad_out,
            (&mut dy, &mut dmiddle),
            &mut temp.gate,
            gradient,
            d,
        );
        elementwise::relu_back(kit.instructions, &mut dy, &self.ff_y);
        weights.ff_out.gradient(kit, &self.hidden, &dy, gradient);
        weights.ff_out.back(kit, &dy, &mut temp.dhidden);
        elementwise::relu_back(kit.instructions, &mut temp.dhidden, &self.hidden);
        weights.ff_in.gradient(kit, &self.ff_norm.out, &temp.dhidden, gradient);
        weights.ff_in.back(kit, &temp.dhidden, &mut temp.dnorm);
        self.ff_norm
            .backward(kit, &at.ff_norm, &temp.dnorm, &mut dmiddle, gradient, d);

        dx.resize(x.len(), 0.0);
        dx[..dropped * d].fill(0.0);
        self.gate.backward(
            kit,
            &weights.gate,
            (&self.y, &x[dropped * d..]),
            &dmiddle,
            (&mut dy, &mut dx[dropped * d..]),
            &mut temp.gate,
            gradient,
            d,
        );
        elementwise::relu_back(kit.instructions, &mut dy, &self.y);
        weights.output.gradient(kit, &self.read, &dy, gradient);
        weights.output.back(kit, &dy, &mut temp.dread);
        self.attention_backward(kit, shape, weights, steps, temp, gradient);
        let normed = &self.norm.out;
        weights
            .query
            .gradient(kit, &normed[dropped * d..], &temp.dquery, gradient);
        weights.key_value.gradient(normed, &temp.grad_key_value, gradient);
        temp.dnorm.resize(x.len(), 0.0);
        weights
            .key_value
            .back(kit, &temp.grad_key_value, Start::Zero, &mut temp.dnorm);
        let dnorm = &mut temp.dnorm[dropped * d..];
        weights.query.matrix.back(kit, &temp.dquery, Start::Current, dnorm);
        self.norm.backward(kit, &at.norm, &temp.dnorm, dx, gradient, d);
        (temp.dy, temp.dmiddle) = (dy, dmiddle);
    }

    /// The backward pass of attention, from `temp.dread` to the gradients of queries, keys, values and
    /// relative position vectors.
    fn attention_backward(
        &self,
        kit: Kit,
        shape: &Transformer,
        weights: &BlockWeights,
        steps: Steps,
        temp: &mut Temp,
        gradient: &mut [f32],
    ) {
        let d = shape.d_model;
        let padded = shape.n_heads * weights_len(shape.window);
        temp.dquery.resize(self.query.len(), 0.0);
        temp.grad_key_value.resize(self.key_value.len(), 0.0);
        temp.dscores.resize(weights_len(shape.window), 0.0);
        zeros(&mut temp.grad_positions, shape.window * d);
        for column in 0..steps.columns {
            let stride = temp.gather(&self.key_value, steps, column, d, true);
            zeros(&mut temp.grad_keys, steps.steps_in * d);
            zeros(&mut temp.grad_values, steps.steps_in * d);
            for step in 0..steps.steps_out {
                let row = step * steps.columns + column;
                let (first, len) = reach(shape, steps, step, row);
                let from = (shape.window - len) * d;
                let window = Window {
                    len,
                    heads: shape.n_heads,
                    keys: &temp.keys_across[first..],
                    key_stride: stride,
                    positions: &weights.positions_across[shape.window - len..],
                    position_stride: position_stride(shape.window),
                };
                let back = Backward {
                    q: &self.query[row * d..(row + 1) * d],
                    key_rows: &temp.keys[first * d..],
                    position_rows: &weights.positions[from..],
                    values: &temp.values_across[first..],
                    weights: &self.weights[row * padded..(row + 1) * padded],
                    grad_out: &temp.dread[row * d..(row + 1) * d],
                };
                attention::backward(
                    kit.instructions,
                    window,
                    back,
                    &mut temp.dquery[row * d..(row + 1) * d],
                    &mut temp.grad_keys[first * d..],
                    &mut temp.grad_values[first * d..],
                    &mut temp.grad_positions[from..],
                    &mut temp.dscores,
                );
            }
            for step in 0..steps.steps_in {
                let row = &mut temp.grad_key_value[(step * steps.columns + column) * 2 * d..][..2 * d];
                row[..d].copy_from_slice(&temp.grad_keys[step * d..(step + 1) * d]);
                row[d..].copy_from_slice(&temp.grad_values[step * d..(step + 1) * d]);
            }
        }
        let out = &mut gradient[weights.at.position..][..shape.window * d];
        for (row, out) in temp.grad_positions.chunks_exact(d).rev().zip(out.chunks_exact_mut(d)) {
            elementwise::add(kit.instructions, out, row);
        }
    }
}

/// The first of the input steps that a step attends to, and their number.
fn reach(shape: &Transformer, steps: Steps, step: usize, row: usize) -> (usize, usize) {
    let len = (steps.ages[row] as usize).min(shape.window);
    (step + steps.dropped() + 1 - len, len)
}

impl Temp {
    /// Gathers the keys and values of a column; for the backward pass, also their transposes. Returns the
    /// stride of the transposes.
    fn gather(&mut self, key_value: &[f32], steps: Steps, column: usize, d: usize, back: bool) -> usize {
        let n = steps.steps_in;
        let stride = n.next_multiple_of(LANES) + LANES;
        self.keys_across.resize(d * stride, 0.0);
        self.values.resize(n * d, 0.0);
        if back {
            self.values_across.resize(d * stride, 0.0);
            self.keys.resize(n * d, 0.0);
        }
        for step in 0..n {
            let row = &key_value[(step * steps.columns + column) * 2 * d..][..2 * d];
            for (c, &key) in row[..d].iter().enumerate() {
                self.keys_across[c * stride + step] = key;
            }
            self.values[step * d..(step + 1) * d].copy_from_slice(&row[d..]);
            if back {
                self.keys[step * d..(step + 1) * d].copy_from_slice(&row[..d]);
                for (c, &value) in row[d..].iter().enumerate() {
                    self.values_across[c * stride + step] = value;
                }
            }
        }
        stride
    }

    fn window<'a>(
        &'a self,
        shape: &Transformer,
        weights: &'a BlockWeights,
        first: usize,
        len: usize,
        stride: usize,
    ) -> Window<'a> {
        Window {
            len,
            heads: shape.n_heads,
            keys: &self.keys_across[first..],
            key_stride: stride,
            positions: &weights.positions_across[shape.window - len..],
            position_stride: position_stride(shape.window),
        }
    }
}
