//! The pointwise part of an LSTM cell over rows in the layout that its layer's product gives them.

use crate::kernels::few_rows::PART;
use crate::kernels::math::{mul_add, sigmoid, tanh};
use stages_numerics::kernel;

/// The state of up to `rows` episodes: outputs `[rows, columns]`, padded like the inputs of the next layer,
/// and cells `[rows, hidden]`.
#[derive(Debug, Default)]
pub(super) struct State {
    pub h: Vec<f32>,
    pub c: Vec<f32>,
}

impl State {
    /// Zeros for `rows` episodes.
    pub(super) fn begin(&mut self, hidden: usize, rows: usize) {
        for (state, width) in [(&mut self.h, hidden.next_multiple_of(PART)), (&mut self.c, hidden)] {
            state.clear();
            state.resize(rows * width, 0.0);
        }
    }

    /// Removes the state of a row; the rows after it move up.
    pub(super) fn remove(&mut self, hidden: usize, row: usize, rows: usize) {
        for (state, width) in [(&mut self.h, hidden.next_multiple_of(PART)), (&mut self.c, hidden)] {
            state.copy_within((row + 1) * width..rows * width, row * width);
        }
    }
}

kernel![
    /// Advances the state by a step, from the sums of the gates `[rows, gates]` in the order input, forget,
    /// cell, output.
    pub(super) fn advance(state: &mut State, sums: &[f32], gates: usize, hidden: usize, rows: usize) {
        let columns = hidden.next_multiple_of(PART);
        for r in 0..rows {
            let row = &sums[r * gates..][..4 * hidden];
            let (i, f) = (&row[..hidden], &row[hidden..2 * hidden]);
            let (g, o) = (&row[2 * hidden..3 * hidden], &row[3 * hidden..]);
            let (h, c) = (
                &mut state.h[r * columns..][..hidden],
                &mut state.c[r * hidden..][..hidden],
            );
            for j in 0..hidden {
                let new = sigmoid::<FMA>(i[j]) * tanh::<FMA>(g[j]);
                c[j] = mul_add::<FMA>(sigmoid::<FMA>(f[j]), c[j], new);
                h[j] = sigmoid::<FMA>(o[j]) * tanh::<FMA>(c[j]);
            }
        }
    }
];
