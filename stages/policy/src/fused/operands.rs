//! The products of an LSTM over sequences, and the operands that are kept from step to step, in f32
//! ([`F32Operands`]) or in bf16 ([`super::bf16::Bf16Operands`]).
//!
//! Observation, state and a 1 are contiguous, so that a step is one product, and the gradients of all weights
//! and biases are one further product over several steps, while the L2 cache holds them.

use super::network::Network;
use super::weights::Matrix;
use crate::architecture::LstmAt;
use crate::kernels::aligned::Aligned;
use crate::kernels::gradient::gradient;
use crate::kernels::matmul::{product, product_over};
use crate::kernels::operands::{Inputs, Left, Out, Right, Start};
use crate::kernels::panel_layout::{UNITS, WIDTH};
use stages_numerics::dispatch::InstructionSet;

/// The sizes of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// D, the length of an observation.
    pub inputs: usize,
    /// H, the number of units.
    pub hidden: usize,
    /// b, the number of columns.
    pub b: usize,
    /// T, the number of steps.
    pub steps: usize,
}

impl Shape {
    /// The number of units, rounded up to whole blocks.
    pub(super) fn units(&self) -> usize {
        self.hidden.next_multiple_of(UNITS)
    }
}

/// The position of a step's rows in panels of `height` rows: the rows from `first` on of the panels that
/// begin at `base`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub base: usize,
    pub first: usize,
    pub height: usize,
}

/// The products of an LSTM's steps over sequences, in one precision, and the operands that they keep.
pub(super) trait Operands: Send + Sync {
    /// Resizes the buffers.
    fn begin(&mut self, network: &Network, shape: Shape);

    /// Copies an observation.
    fn observe(&mut self, instructions: InstructionSet, t: usize, column: usize, obs: &[f32]);

    /// Copies the state that a step starts from; zeros if `None`.
    fn state(&mut self, instructions: InstructionSet, t: usize, column: usize, h: Option<&[f32]>);

    /// The number of elements of the gates of all steps.
    fn gates_len(&self) -> usize;

    /// The position of the gates of step t.
    fn gates(&self, t: usize) -> Place;

    /// True if all observations must be copied before the first step.
    fn ahead(&self) -> bool;

    /// Projects all observations ahead of the steps, where that is faster.
    fn project(&mut self, network: &Network, matrix: &Matrix, z: &mut [f32]);

    /// Computes the gates' inputs of step t.
    fn forward(&mut self, network: &Network, matrix: &Matrix, t: usize, z: &mut [f32]);

    /// The slice and position to which the gradient of the gates' inputs of step t must be written.
    fn dz(&mut self, t: usize) -> (&mut [f32], Place);

    /// The number of rows of a panel of the gradient that [`Operands::back`] writes.
    fn height(&self) -> usize;

    /// Reads the gradient that was written for step t; if t > 0, writes the gradient of the state before the
    /// step, in panels.
    fn back(&mut self, network: &Network, matrix: &Matrix, t: usize, dh: &mut [f32]);

    /// Called after step t of the backward pass: adds to the weights' gradient, in panels, once enough steps
    /// have been processed; `first` overwrites it instead.
    fn gradient(&mut self, network: &Network, t: usize, first: bool, sum: &mut [f32]) -> bool;
}

/// The number of rows of steps whose weights' gradient is computed at once.
const ROWS: usize = 128;

/// Up to this number of columns, a product of their own projects the observations ahead of the steps: a step
/// with few rows waits for the weights, which no L1 cache holds.
const FEW: usize = 16;

/// Operands in f32.
#[derive(Default)]
pub(super) struct F32Operands {
    shape: Shape,
    /// The distance from one row of [`F32Operands::xh`] to the next: an odd number of cache lines, so that
    /// rows do not compete for the same cache sets.
    stride: usize,
    /// `[T + 1, b, stride]`: observation, the state that each step starts from, 1.
    xh: Aligned,
    /// `[panels, rows, 32]`: the gradients of the gates' inputs, for the steps whose weights' gradient is
    /// computed together.
    dz: Aligned,
}

impl F32Operands {
    fn together(&self) -> usize {
        (ROWS / self.shape.b).clamp(1, self.shape.steps)
    }

    fn row(&mut self, t: usize, column: usize) -> &mut [f32] {
        let at = (t * self.shape.b + column) * self.stride;
        &mut self.xh[at..at + self.stride]
    }
}

/// The number of rows of the weights' gradient in panels: those of the inputs, of the states, and one of the
/// bias.
pub(super) fn gradient_rows(at: &LstmAt) -> usize {
    at.inputs + at.hidden + 1
}

impl Operands for F32Operands {
    fn begin(&mut self, _: &Network, shape: Shape) {
        if self.shape == shape {
            return;
        }
        self.shape = shape;
        let len = shape.inputs + shape.hidden;
        self.stride = 16 * ((len + 1).div_ceil(16) | 1);
        self.xh.zeros((shape.steps + 1) * shape.b * self.stride);
        for row in self.xh.chunks_exact_mut(self.stride) {
            row[len] = 1.0;
        }
        self.dz.resize(self.together() * shape.b * 4 * shape.units());
    }

    fn observe(&mut self, _: InstructionSet, t: usize, column: usize, obs: &[f32]) {
        self.row(t, column)[..obs.len()].copy_from_slice(obs);
    }

    fn state(&mut self, _: InstructionSet, t: usize, column: usize, h: Option<&[f32]>) {
        let (d, n) = (self.shape.inputs, self.shape.hidden);
        let to = &mut self.row(t, column)[d..d + n];
        match h {
            Some(h) => to.copy_from_slice(h),
            None => to.fill(0.0),
        }
    }

    fn gates_len(&self) -> usize {
        self.shape.steps * self.shape.b * 4 * self.shape.units()
    }

    fn gates(&self, t: usize) -> Place {
        let Shape { b, steps, .. } = self.shape;
        if self.ahead() {
            Place {
                base: 0,
                first: t * b,
                height: steps * b,
            }
        } else {
            Place {
                base: t * b * 4 * self.shape.units(),
                first: 0,
                height: b,
            }
        }
    }

    fn ahead(&self) -> bool {
        self.shape.b <= FEW && self.shape.steps > 1
    }

    fn project(&mut self, network: &Network, matrix: &Matrix, z: &mut [f32]) {
        let (d, rows) = (self.shape.inputs, self.shape.steps * self.shape.b);
        product_over(
            network.instructions,
            Left::rows(&self.xh, rows, d, self.stride),
            (&matrix.forward, 0..d),
            Start::Row(&matrix.bias),
            Out::panels(z, 0, rows),
        );
    }

    fn forward(&mut self, network: &Network, matrix: &Matrix, t: usize, z: &mut [f32]) {
        let Shape {
            inputs: d,
            hidden: n,
            b,
            ..
        } = self.shape;
        let place = self.gates(t);
        let (from, start) = if self.ahead() {
            (d, Start::Current)
        } else {
            (0, Start::Row(&matrix.bias))
        };
        product_over(
            network.instructions,
            Left::rows(&self.xh[t * b * self.stride + from..], b, d + n - from, self.stride),
            (&matrix.forward, from..d + n),
            start,
            Out::panels(&mut z[place.base..], place.first, place.height).last_first(t % 2 == 1),
        );
    }

    fn dz(&mut self, t: usize) -> (&mut [f32], Place) {
        let together = self.together();
        let place = Place {
            base: 0,
            first: t % together * self.shape.b,
            height: together * self.shape.b,
        };
        (&mut self.dz, place)
    }

    fn height(&self) -> usize {
        self.shape.b
    }

    fn back(&mut self, network: &Network, matrix: &Matrix, t: usize, dh: &mut [f32]) {
        let b = self.shape.b;
        if t > 0 {
            let (_, place) = self.dz(t);
            product(
                network.instructions,
                Left::panels(&self.dz, place.first, b, matrix.back.k, place.height),
                &matrix.back,
                Start::Zero,
                Out::panels(dh, 0, b).last_first(t % 2 == 1),
            );
        }
    }

    fn gradient(&mut self, network: &Network, t: usize, first: bool, sum: &mut [f32]) -> bool {
        let (together, b) = (self.together(), self.shape.b);
        if !t.is_multiple_of(together) {
            return false;
        }
        let inputs = Inputs {
            data: &self.xh[t * b * self.stride..],
            stride: self.stride,
            rows: (self.shape.steps - t).min(together) * b,
            width: self.shape.inputs + self.shape.hidden + 1,
        };
        let dz = Right::gates(&self.dz, self.shape.hidden, together * b);
        gradient(network.instructions, inputs, dz, !first, sum);
        true
    }
}

/// The number of elements of a panel.
pub(super) const fn panel(rows: usize) -> usize {
    rows * WIDTH
}
