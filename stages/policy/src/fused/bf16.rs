//! The products of an LSTM in bf16 ([`Bf16Operands`]); sums, states, gates and gradients between products
//! stay in f32.

use super::network::Network;
use super::operands::{Operands, Place, Shape, panel};
use super::weights::Matrix;
use crate::architecture::LstmAt;
use crate::kernels::aligned::Aligned;
use crate::kernels::bf16::{
    GROUP, Left16, Path, ROWS, Right16, narrow, narrow_both, narrow_row, product16, transpose,
};
use crate::kernels::operands::Start;
use crate::kernels::panel_layout::{UNITS, WIDTH};
use stages_numerics::dispatch::InstructionSet;

/// The number of rows of steps whose weights' gradient is computed at once.
const TOGETHER: usize = 512;

/// The operands in bf16: pairs of elements, with the rows rounded up to whole tiles.
#[derive(Default)]
pub(super) struct Bf16Operands {
    shape: Shape,
    /// b, the number of columns, rounded up to [`Path::rows`].
    height: usize,
    /// The number of pairs from one row of [`Bf16Operands::xh`] to the next: an odd number of cache lines.
    stride: usize,
    /// `[T, height, stride]`, and the rest of the last group: observation, the state that each step starts
    /// from, 1; each rounded up to whole pairs.
    xh: Aligned<u32>,
    /// `[panels, height, 32]`: the gradients of one step with respect to the gates' inputs.
    dz: Aligned,
    /// The gates' gradients of several steps in bf16, packed twice: `by_column` `[panels, rows, 16]` pairs
    /// neighbours in a row, and `by_row` `[panels, rows / 2, 32]` pairs neighbours in a column.
    by_column: Aligned<u32>,
    by_row: Aligned<u32>,
    /// The columns of [`Bf16Operands::xh`] that belong to the steps of `by_column` and `by_row`.
    columns: Aligned<u32>,
}

/// The index of row i of the weights' gradient among the rows of the gradient in panels.
pub(super) fn gradient_row(at: &LstmAt, i: usize) -> usize {
    let state = usize::from(i >= at.inputs) * (at.inputs % 2);
    i + state + usize::from(i == at.inputs + at.hidden) * (at.hidden % 2)
}

/// The number of rows of the weights' gradient in panels.
pub(super) fn gradient_rows(at: &LstmAt) -> usize {
    (gradient_row(at, at.inputs + at.hidden) + 1).next_multiple_of(ROWS)
}

impl Bf16Operands {
    /// The instruction set on which a network's products are computed.
    fn path(network: &Network) -> Path {
        network.bf16.unwrap_or(Path::Widened(network.instructions))
    }

    /// The number of steps whose weights' gradient is computed at once, the same on every path.
    fn together(&self) -> usize {
        let tiles = self.shape.b.next_multiple_of(ROWS);
        let steps = (TOGETHER / tiles).max(1);
        if tiles.is_multiple_of(GROUP) {
            steps
        } else {
            steps.next_multiple_of(2)
        }
    }

    /// The number of rows of as many steps, rounded up to whole groups.
    fn rows_together(&self) -> usize {
        (self.together() * self.height).next_multiple_of(GROUP)
    }

    /// The number of pairs before the state, and the number before the 1.
    fn parts(&self) -> (usize, usize) {
        let state = self.shape.inputs.div_ceil(2);
        (state, state + self.shape.hidden.div_ceil(2))
    }

    fn gradient_rows(&self) -> usize {
        (2 * self.parts().1 + 1).next_multiple_of(ROWS)
    }

    fn row(&mut self, t: usize, column: usize) -> &mut [u32] {
        let at = (t * self.height + column) * self.stride;
        &mut self.xh[at..at + self.stride]
    }
}

impl Operands for Bf16Operands {
    fn begin(&mut self, network: &Network, shape: Shape) {
        if self.shape == shape {
            return;
        }
        self.shape = shape;
        self.height = shape.b.next_multiple_of(Self::path(network).rows());
        let (_, one) = self.parts();
        self.stride = 16 * ((one + 1).div_ceil(16) | 1);
        self.xh.zeros((shape.steps * self.height + GROUP) * self.stride);
        for row in self.xh.chunks_exact_mut(self.stride) {
            row[one] = narrow(1.0);
        }
        // Rows beyond the last column, and steps beyond the last, stay zero.
        let rows = self.rows_together();
        self.dz.zeros(self.height * 4 * shape.units());
        self.by_column.zeros(rows * 2 * shape.units());
        self.by_row.zeros(rows * 2 * shape.units());
        self.columns.zeros(rows / 2 * self.gradient_rows());
    }

    fn observe(&mut self, instructions: InstructionSet, t: usize, column: usize, obs: &[f32]) {
        let pairs = obs.len().div_ceil(2);
        narrow_row(instructions, obs, &mut self.row(t, column)[..pairs]);
    }

    fn state(&mut self, instructions: InstructionSet, t: usize, column: usize, h: Option<&[f32]>) {
        let (from, to) = self.parts();
        let out = &mut self.row(t, column)[from..to];
        match h {
            Some(h) => narrow_row(instructions, h, out),
            None => out.fill(0),
        }
    }

    fn gates_len(&self) -> usize {
        self.shape.steps * self.height * 4 * self.shape.units()
    }

    fn gates(&self, t: usize) -> Place {
        Place {
            base: t * self.height * 4 * self.shape.units(),
            first: 0,
            height: self.height,
        }
    }

    fn ahead(&self) -> bool {
        false
    }

    fn project(&mut self, _: &Network, _: &Matrix, _: &mut [f32]) {}

    fn forward(&mut self, network: &Network, matrix: &Matrix, t: usize, z: &mut [f32]) {
        let left = Left16 {
            data: &self.xh[t * self.height * self.stride..],
            rows: self.height,
            stride: self.stride,
            jump: GROUP / 2,
        };
        let z = &mut z[self.gates(t).base..];
        let start = Start::Row(&matrix.bias);
        product16(
            Self::path(network),
            left,
            matrix.forward16.right(),
            start,
            z,
            panel(self.height),
        );
    }

    fn dz(&mut self, _: usize) -> (&mut [f32], Place) {
        let place = Place {
            base: 0,
            first: 0,
            height: self.height,
        };
        (&mut self.dz, place)
    }

    fn height(&self) -> usize {
        self.height
    }

    fn back(&mut self, network: &Network, matrix: &Matrix, t: usize, dh: &mut [f32]) {
        let (rows, height) = (self.rows_together(), self.height);
        let first = t % self.together() * height;
        let pairs = rows * UNITS;
        let panels = self.dz.chunks_exact(panel(height));
        for ((dz, columns), by_row) in panels
            .zip(self.by_column.chunks_exact_mut(pairs))
            .zip(self.by_row.chunks_exact_mut(pairs))
        {
            let columns = &mut columns[first * UNITS..(first + height) * UNITS];
            let by_row = &mut by_row[first * UNITS..(first + height) * UNITS];
            narrow_both(network.instructions, dz, columns, by_row);
        }
        if t > 0 {
            let left = Left16 {
                data: &self.by_column[first * UNITS..],
                rows: height,
                stride: UNITS,
                jump: pairs,
            };
            product16(
                Self::path(network),
                left,
                matrix.back16.right(),
                Start::Zero,
                dh,
                panel(height),
            );
        }
    }

    fn gradient(&mut self, network: &Network, t: usize, first: bool, sum: &mut [f32]) -> bool {
        let together = self.together();
        if !t.is_multiple_of(together) {
            return false;
        }
        let used = (self.shape.steps - t).min(together) * self.height;
        let (rows, all) = (used.next_multiple_of(GROUP), self.rows_together());
        if rows > used {
            for panel in self.by_row.chunks_exact_mut(all * UNITS) {
                panel[used * UNITS..rows * UNITS].fill(0);
            }
        }
        let m = self.gradient_rows();
        let xh = &self.xh[t * self.height * self.stride..][..rows * self.stride];
        transpose(xh, self.stride, m, &mut self.columns);
        let left = Left16 {
            data: &self.columns,
            rows: m,
            stride: GROUP / 2,
            jump: m * GROUP / 2,
        };
        let right = Right16 {
            data: &self.by_row,
            k: rows,
            panel: all * UNITS,
            panels: 4 * self.shape.units() / WIDTH,
        };
        let start = if first { Start::Zero } else { Start::Current };
        product16(Self::path(network), left, right, start, sum, panel(m));
        true
    }
}
