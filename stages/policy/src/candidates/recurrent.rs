//! An LSTM through whose inputs gradients flow: its gates are a dense layer over the input and the last
//! step's output.

use crate::architecture::LstmAt;
use crate::kernels::math::{mul_add, sigmoid, tanh};
use crate::mlp::{Mlp, MlpRun, MlpShape};
use crate::{Activation, kernels::elementwise};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::kernel;
use std::ops::Range;

/// An LSTM with the parameters last given to [`Recurrent::load`].
pub(super) struct Recurrent {
    gates: Mlp,
    inputs: usize,
    hidden: usize,
    /// The range of the LSTM's parameters in the flat vector: the weights of inputs, those of outputs, and
    /// the bias.
    pub params: Range<usize>,
    /// The offset of the LSTM's state within an environment's state: the output, then the cells.
    pub state: usize,
}

/// The buffers of a pass over T steps of b columns.
#[derive(Default)]
pub(super) struct RecurrentRun {
    /// `[T, b, E + H]`: the input and the last output.
    inputs: Vec<f32>,
    /// `[T, b, 4H]`: the gates.
    gates: Vec<f32>,
    /// `[T + 1, b, H]`: the cells before each step.
    cells: Vec<f32>,
    /// `[T + 1, b, H]`: the outputs before each step.
    outputs: Vec<f32>,
    steps: Vec<MlpRun>,
    grad_input: Vec<f32>,
    grad_output: Vec<f32>,
    grad_cells: Vec<f32>,
    part: Vec<f32>,
}

impl Recurrent {
    pub(super) fn new(at: &LstmAt, state: usize, instructions: InstructionSet) -> Self {
        let shape = MlpShape {
            inputs: at.inputs + at.hidden,
            hidden: Vec::new(),
            outputs: 4 * at.hidden,
            activation: Activation::Tanh,
        };
        let len = shape.num_params();
        Self {
            gates: Mlp::with(&shape, true, instructions),
            inputs: at.inputs,
            hidden: at.hidden,
            params: at.weight_x..at.weight_x + len,
            state,
        }
    }

    pub(super) fn load(&mut self, params: &[f32]) {
        self.gates.load(&params[self.params.clone()]);
    }

    /// The forward pass over inputs `[T, b, E]` from the states `[b, S]`; `keep` `[T, b]` is 0 where an
    /// episode starts, else 1. The outputs are [`RecurrentRun::outputs`].
    pub(super) fn forward<'s>(
        &self,
        instructions: InstructionSet,
        x: &[f32],
        keep: &[f32],
        states: impl Iterator<Item = &'s [f32]>,
        run: &mut RecurrentRun,
    ) {
        let (d, h) = (self.inputs, self.hidden);
        let n = x.len() / d;
        run.outputs.clear();
        run.cells.clear();
        for state in states {
            let (output, cells) = state[self.state..self.state + 2 * h].split_at(h);
            run.outputs.extend_from_slice(output);
            run.cells.extend_from_slice(cells);
        }
        let b = run.outputs.len() / h;
        let steps = n / b;
        run.outputs.resize((steps + 1) * b * h, 0.0);
        run.cells.resize((steps + 1) * b * h, 0.0);
        run.inputs.resize(n * (d + h), 0.0);
        run.gates.resize(n * 4 * h, 0.0);
        if run.steps.len() < steps {
            run.steps.resize_with(steps, MlpRun::default);
        }
        for t in 0..steps {
            let rows = t * b..(t + 1) * b;
            let keep = &keep[rows.clone()];
            let input = &mut run.inputs[rows.start * (d + h)..rows.end * (d + h)];
            for (i, to) in input.chunks_exact_mut(d + h).enumerate() {
                let row = rows.start + i;
                to[..d].copy_from_slice(&x[row * d..(row + 1) * d]);
                let last = &run.outputs[row * h..(row + 1) * h];
                for (to, last) in to[d..].iter_mut().zip(last) {
                    *to = keep[i] * last;
                }
            }
            let z = self.gates.forward(input, &mut run.steps[t]);
            let gates = &mut run.gates[rows.start * 4 * h..rows.end * 4 * h];
            gates.copy_from_slice(z);
            let (before, after) = run.cells[rows.start * h..(rows.end + b) * h].split_at_mut(b * h);
            let output = &mut run.outputs[rows.end * h..(rows.end + b) * h];
            cells(instructions, gates, before, keep, after, output);
        }
    }

    /// The outputs `[T, b, H]` of the last forward pass of b columns.
    pub(super) fn outputs<'r>(&self, run: &'r RecurrentRun, b: usize) -> &'r [f32] {
        &run.outputs[b * self.hidden..]
    }

    /// Writes the state after the last step.
    pub(super) fn store<'s>(&self, run: &RecurrentRun, states: impl Iterator<Item = &'s mut [f32]>) {
        let h = self.hidden;
        let rows: Vec<&mut [f32]> = states.collect();
        let from = run.outputs.len() - rows.len() * h;
        for (i, state) in rows.into_iter().enumerate() {
            let at = from + i * h..from + (i + 1) * h;
            state[self.state..self.state + h].copy_from_slice(&run.outputs[at.clone()]);
            state[self.state + h..self.state + 2 * h].copy_from_slice(&run.cells[at]);
        }
    }

    /// The backward pass of the last forward pass, from the gradient of its outputs `[T, b, H]`: writes the
    /// gradient of the parameters, and adds the gradient of the inputs to `[T, b, E]`.
    pub(super) fn backward(
        &self,
        instructions: InstructionSet,
        keep: &[f32],
        above: &[f32],
        run: &mut RecurrentRun,
        gradient: &mut [f32],
        grad_inputs: &mut [f32],
    ) {
        let (d, h) = (self.inputs, self.hidden);
        let n = keep.len();
        let b = run.outputs.len() / h - n;
        gradient.fill(0.0);
        run.part.resize(gradient.len(), 0.0);
        run.grad_input.resize(b * (d + h), 0.0);
        run.grad_output.clear();
        run.grad_output.resize(b * h, 0.0);
        run.grad_cells.clear();
        run.grad_cells.resize(b * h, 0.0);
        for t in (0..n / b).rev() {
            let rows = t * b..(t + 1) * b;
            elementwise::add(instructions, &mut run.grad_output, &above[rows.start * h..rows.end * h]);
            let (before, after) = run.cells[rows.start * h..(rows.end + b) * h].split_at(b * h);
            grad_cells_before(
                instructions,
                &run.gates[rows.start * 4 * h..rows.end * 4 * h],
                before,
                &keep[rows.clone()],
                after,
                &run.grad_output,
                &mut run.grad_cells,
                run.steps[t].outputs(),
            );
            let input = &run.inputs[rows.start * (d + h)..rows.end * (d + h)];
            self.gates
                .backward(input, &mut run.steps[t], Some(&mut run.part), Some(&mut run.grad_input));
            elementwise::add(instructions, gradient, &run.part);
            for (i, from) in run.grad_input.chunks_exact(d + h).enumerate() {
                let row = rows.start + i;
                let to = &mut grad_inputs[row * d..(row + 1) * d];
                elementwise::add(instructions, to, &from[..d]);
                for (to, from) in run.grad_output[i * h..(i + 1) * h].iter_mut().zip(&from[d..]) {
                    *to = keep[row] * from;
                }
            }
        }
    }
}

kernel![
    /// Turns the gates' sums `[b, 4H]` into the gates (input, forget, cell, output), and writes the cells
    /// after the step and the outputs.
    fn cells(gates: &mut [f32], before: &[f32], keep: &[f32], after: &mut [f32], output: &mut [f32]) {
        let h = gates.len() / 4 / keep.len();
        for (row, (gates, &keep)) in gates.chunks_exact_mut(4 * h).zip(keep).enumerate() {
            let (before, after) = (&before[row * h..][..h], &mut after[row * h..][..h]);
            let output = &mut output[row * h..][..h];
            let (input, rest) = gates.split_at_mut(h);
            let (forget, rest) = rest.split_at_mut(h);
            let (cell, out) = rest.split_at_mut(h);
            let out = &mut out[..h];
            for i in 0..h {
                input[i] = sigmoid::<FMA>(input[i]);
                forget[i] = sigmoid::<FMA>(forget[i]);
                cell[i] = tanh::<FMA>(cell[i]);
                out[i] = sigmoid::<FMA>(out[i]);
                after[i] = mul_add::<FMA>(forget[i] * keep, before[i], input[i] * cell[i]);
                output[i] = out[i] * tanh::<FMA>(after[i]);
            }
        }
    }

    /// The gradients of the gates' sums `[b, 4H]` and of the cells before the step, from the gradients of the
    /// outputs and of the cells after the step.
    fn grad_cells_before(
        gates: &[f32],
        before: &[f32],
        keep: &[f32],
        after: &[f32],
        grad_output: &[f32],
        grad_cells: &mut [f32],
        grad_gates: &mut [f32],
    ) {
        let h = gates.len() / 4 / keep.len();
        for (row, (gates, &keep)) in gates.chunks_exact(4 * h).zip(keep).enumerate() {
            let (before, after) = (&before[row * h..][..h], &after[row * h..][..h]);
            let (grad_output, grad_cells) = (&grad_output[row * h..][..h], &mut grad_cells[row * h..][..h]);
            let grad_gates = &mut grad_gates[row * 4 * h..][..4 * h];
            for i in 0..h {
                let (input, forget, cell, out) = (gates[i], gates[h + i], gates[2 * h + i], gates[3 * h + i]);
                let c = tanh::<FMA>(after[i]);
                let dc = mul_add::<FMA>(grad_output[i] * out, 1.0 - c * c, grad_cells[i]);
                grad_gates[i] = dc * cell * input * (1.0 - input);
                grad_gates[h + i] = dc * keep * before[i] * forget * (1.0 - forget);
                grad_gates[2 * h + i] = dc * input * (1.0 - cell * cell);
                grad_gates[3 * h + i] = grad_output[i] * c * out * (1.0 - out);
                grad_cells[i] = dc * forget * keep;
            }
        }
    }
];
