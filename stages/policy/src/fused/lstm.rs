//! An LSTM over whole sequences: the input's projection in one product for all steps, gates in one pass, the weights'
//! gradients in one product at the end.

use super::Network;
use super::weights::LstmIndex;
use crate::architecture::LstmAt;
use crate::kernels::{cell, elementwise, matmul};

/// Everything that the way back needs of the way forth, for b columns and T steps; time-major.
#[derive(Default)]
pub(super) struct LstmRun {
    /// `[T, b, 4 H]`: what goes into the gates, then the gates, then the gradient of what went in.
    z: Vec<f32>,
    /// `[T, b, H]`: the output.
    pub h: Vec<f32>,
    /// `[T + 1, b, H]`: the states that each step starts from, zeroed where an episode starts.
    h_in: Vec<f32>,
    c_in: Vec<f32>,
    /// `[T, b, H]`.
    tanh_c: Vec<f32>,
    /// `[b, H]`: gradients carried from step to step.
    dh: Vec<f32>,
    dc: Vec<f32>,
}

impl LstmRun {
    /// Runs `steps` steps over x `[T, b, D]`, from the states at `state[at..]` of each column (h, then c; `stride` apart). `keep` `[T, b]`
    /// is 0 where an episode starts, else 1.
    pub fn forward(
        &mut self,
        network: &Network,
        at: &LstmAt,
        index: LstmIndex,
        x: &[f32],
        keep: &[f32],
        steps: usize,
        state: impl Fn(usize) -> usize,
        states: &[f32],
    ) {
        let level = network.level;
        let n = at.hidden;
        let rows = x.len() / at.inputs;
        let b = rows / steps;
        self.z.resize(rows * 4 * n, 0.0);
        self.h.resize(rows * n, 0.0);
        self.tanh_c.resize(rows * n, 0.0);
        self.h_in.resize((rows + b) * n, 0.0);
        self.c_in.resize((rows + b) * n, 0.0);

        let bias = network.weights.slice(at.bias, 4 * n);
        for row in self.z.chunks_exact_mut(4 * n) {
            row.copy_from_slice(bias);
        }
        matmul::multiply(level, x, &network.weights.matrix(index.x).forward, &mut self.z);

        for column in 0..b {
            let from = state(column);
            let range = column * n..(column + 1) * n;
            if keep[column] == 0.0 {
                self.h_in[range.clone()].fill(0.0);
                self.c_in[range].fill(0.0);
            } else {
                self.h_in[range.clone()].copy_from_slice(&states[from..from + n]);
                self.c_in[range].copy_from_slice(&states[from + n..from + 2 * n]);
            }
        }
        let recurrent = &network.weights.matrix(index.h).forward;
        for t in 0..steps {
            let (now, next) = (t * b * n, (t + 1) * b * n);
            let z = &mut self.z[4 * now..4 * next];
            matmul::multiply(level, &self.h_in[now..next], recurrent, z);
            let (c_in, c_out) = self.c_in.split_at_mut(next);
            let (c_in, c_out) = (&c_in[now..], &mut c_out[..b * n]);
            for column in 0..b {
                let row = column * n..(column + 1) * n;
                cell::forward(
                    level,
                    &mut z[column * 4 * n..(column + 1) * 4 * n],
                    &c_in[row.clone()],
                    &mut c_out[row.clone()],
                    &mut self.tanh_c[now..next][row.clone()],
                    &mut self.h[now..next][row],
                );
            }
            self.h_in[next..next + b * n].copy_from_slice(&self.h[now..next]);
            if t + 1 < steps {
                for column in 0..b {
                    if keep[(t + 1) * b + column] == 0.0 {
                        c_out[column * n..(column + 1) * n].fill(0.0);
                        self.h_in[next + column * n..next + (column + 1) * n].fill(0.0);
                    }
                }
            }
        }
    }

    /// Writes the states after the last step to where [`LstmRun::forward`] read them.
    pub fn store(&self, hidden: usize, state: impl Fn(usize) -> usize, states: &mut [f32]) {
        let b = (self.h_in.len() - self.h.len()) / hidden;
        for column in 0..b {
            let from = state(column);
            let last = self.h.len() + column * hidden;
            states[from..from + hidden].copy_from_slice(&self.h_in[last..last + hidden]);
            states[from + hidden..from + 2 * hidden].copy_from_slice(&self.c_in[last..last + hidden]);
        }
    }

    /// Goes back from `dh` `[T, b, H]`, the gradient of the output, and adds the weights' to `gradient`.
    pub fn backward(
        &mut self,
        network: &Network,
        at: &LstmAt,
        index: LstmIndex,
        x: &[f32],
        keep: &[f32],
        steps: usize,
        dh: &[f32],
        gradient: &mut [f32],
    ) {
        let level = network.level;
        let n = at.hidden;
        let rows = x.len() / at.inputs;
        let b = rows / steps;
        self.dh.clear();
        self.dh.resize(b * n, 0.0);
        self.dc.clear();
        self.dc.resize(b * n, 0.0);
        let recurrent = &network.weights.matrix(index.h).back;
        for t in (0..steps).rev() {
            let (now, next) = (t * b * n, (t + 1) * b * n);
            let z = &mut self.z[4 * now..4 * next];
            for column in 0..b {
                let row = column * n..(column + 1) * n;
                cell::backward(
                    level,
                    &mut z[column * 4 * n..(column + 1) * 4 * n],
                    &self.c_in[now..next][row.clone()],
                    &self.tanh_c[now..next][row.clone()],
                    &dh[now..next][row.clone()],
                    &self.dh[row.clone()],
                    &mut self.dc[row],
                    keep[t * b + column],
                );
            }
            if t > 0 {
                self.dh.fill(0.0);
                matmul::multiply(level, z, recurrent, &mut self.dh);
                for column in 0..b {
                    if keep[t * b + column] == 0.0 {
                        self.dh[column * n..(column + 1) * n].fill(0.0);
                    }
                }
            }
        }
        let d = at.inputs;
        matmul::outer(
            x,
            &self.z,
            d,
            4 * n,
            &mut gradient[at.weight_x..at.weight_x + d * 4 * n],
        );
        matmul::outer(
            &self.h_in[..rows * n],
            &self.z,
            n,
            4 * n,
            &mut gradient[at.weight_h..at.weight_h + n * 4 * n],
        );
        elementwise::column_sums(level, &self.z, &mut gradient[at.bias..at.bias + 4 * n]);
    }
}
