//! An LSTM over whole sequences: the forward and the backward pass through time.

use super::bf16::{self, Bf16Operands};
use super::network::Network;
use super::operands::{self, F32Operands, Operands, Shape, panel};
use super::tower::Recurrent;
use crate::architecture::LstmAt;
use crate::kernels::aligned::Aligned;
use crate::kernels::lstm_cell;
use crate::kernels::panel_layout::{UNITS, WIDTH};

/// The results of the forward pass that the backward pass needs, for b columns and T steps; units are in
/// blocks of 16 (see [`lstm_cell`]).
#[derive(Default)]
pub(super) struct LstmRun {
    shape: Shape,
    operands: Option<Box<dyn Operands>>,
    /// The gates, in panels.
    z: Aligned,
    /// `[T + 1, blocks, b, 16]`: the cells before each step; they count as 0 where an episode starts.
    c: Aligned,
    /// `[T, b, H]`: the gradient of the output from above.
    pub above: Aligned,
    /// `[panels, D + H + 1, 32]`: the gradient of the weights.
    pub sum: Aligned,
    /// `[panels, rows, 32]`: the gradient of the output from the next step.
    dh: Aligned,
    /// `[blocks, b, 16]`: the gradient of the cells from the next step.
    dc: Aligned,
    /// `[b]`, zeros.
    over: Aligned,
}

fn blocks(hidden: usize) -> usize {
    hidden.div_ceil(UNITS)
}

/// The number of rows of [`LstmRun::sum`], and a function from row i of the weights (inputs, states, bias) to
/// its row there.
pub(super) fn gradient_rows(bf16: bool, at: &LstmAt) -> (usize, impl Fn(usize) -> usize) {
    let rows = if bf16 {
        bf16::gradient_rows(at)
    } else {
        operands::gradient_rows(at)
    };
    (rows, move |i| if bf16 { bf16::gradient_row(at, i) } else { i })
}

impl LstmRun {
    /// Prepares for `steps` steps of `b` columns from the states at `state(column)` of `states` (h, then c).
    /// `keep` `[b]` is 0 where an episode starts, else 1.
    pub(super) fn begin(
        &mut self,
        network: &Network,
        lstm: &Recurrent,
        (b, steps): (usize, usize),
        keep: &[f32],
        state: impl Fn(usize) -> usize,
        states: &[f32],
    ) {
        let n = lstm.at.hidden;
        self.shape = Shape {
            inputs: lstm.at.inputs,
            hidden: n,
            b,
            steps,
        };
        let operands = self.operands.get_or_insert_with(|| match network.bf16 {
            None => Box::<F32Operands>::default(),
            Some(_) => Box::<Bf16Operands>::default(),
        });
        operands.begin(network, self.shape);
        self.z.resize(operands.gates_len());
        self.c.resize((steps + 1) * b * blocks(n) * UNITS);
        for (column, &keep) in keep.iter().enumerate().take(b) {
            let from = state(column) + lstm.state;
            let (h, c) = states[from..from + 2 * n].split_at(n);
            operands.state(network.instructions, 0, column, (keep != 0.0).then_some(h));
            for (block, c) in c.chunks(UNITS).enumerate() {
                let at = (block * b + column) * UNITS;
                self.c[at..at + c.len()].copy_from_slice(c);
                self.c[at + c.len()..at + UNITS].fill(0.0);
            }
        }
    }

    /// Copies the observation of a column at step t.
    pub(super) fn observe(&mut self, network: &Network, t: usize, column: usize, obs: &[f32]) {
        if let Some(operands) = &mut self.operands {
            operands.observe(network.instructions, t, column, obs);
        }
    }

    /// True if all observations must be copied before the first step, and [`LstmRun::project`] called.
    pub(super) fn ahead(&self) -> bool {
        self.operands.as_ref().is_some_and(|operands| operands.ahead())
    }

    /// Projects all observations.
    pub(super) fn project(&mut self, network: &Network, lstm: &Recurrent) {
        if let Some(operands) = &mut self.operands {
            operands.project(network, network.weights.matrix(lstm.matrix), &mut self.z);
        }
    }

    /// The forward pass of step t: fills `h` `[b, H]`. `keep_next` `[b]` is 0 where the next step starts an
    /// episode.
    pub(super) fn step(
        &mut self,
        network: &Network,
        lstm: &Recurrent,
        t: usize,
        (keep, keep_next): (&[f32], Option<&[f32]>),
        h: &mut [f32],
    ) {
        let Some(operands) = &mut self.operands else { return };
        let Shape { hidden: n, b, .. } = self.shape;
        operands.forward(network, network.weights.matrix(lstm.matrix), t, &mut self.z);
        let place = operands.gates(t);
        let cells = blocks(n) * b * UNITS;
        let (c_prev, c) = self.c[t * cells..(t + 2) * cells].split_at_mut(cells);
        let rows = panel(place.first)..panel(place.first + b);
        for u in 0..blocks(n) {
            let z = &mut self.z[place.base + 2 * u * panel(place.height)..][..2 * panel(place.height)];
            let (z_if, z_go) = z.split_at_mut(panel(place.height));
            let units = u * b * UNITS..(u + 1) * b * UNITS;
            let mut block = lstm_cell::Forward {
                z: [&mut z_if[rows.clone()], &mut z_go[rows.clone()]],
                c_prev: &c_prev[units.clone()],
                keep,
                c: &mut c[units],
                h: &mut h[u * UNITS..],
                h_stride: n,
                lanes: UNITS.min(n - u * UNITS),
            };
            lstm_cell::forward(network.instructions, &mut block);
        }
        let Some(keep_next) = keep_next else { return };
        for (column, (h, &keep)) in h.chunks_exact(n).zip(keep_next).enumerate() {
            operands.state(network.instructions, t + 1, column, (keep != 0.0).then_some(h));
        }
    }

    /// Writes the states after the last step, whose outputs are `h` `[b, H]`, to where [`LstmRun::begin`]
    /// read them.
    pub(super) fn store(
        &self,
        lstm: &Recurrent,
        h: &[f32],
        state: impl Fn(usize) -> usize,
        states: &mut [f32],
    ) {
        let Shape {
            hidden: n, b, steps, ..
        } = self.shape;
        let cells = &self.c[steps * blocks(n) * b * UNITS..];
        for (column, h) in h.chunks_exact(n).enumerate() {
            let from = state(column) + lstm.state;
            let (to_h, to_c) = states[from..from + 2 * n].split_at_mut(n);
            to_h.copy_from_slice(h);
            for (block, c) in to_c.chunks_mut(UNITS).enumerate() {
                c.copy_from_slice(&cells[(block * b + column) * UNITS..][..c.len()]);
            }
        }
    }

    /// The backward pass from the gradient [`LstmRun::above`]; leaves the weights' gradients in
    /// [`LstmRun::sum`]. `keep` `[T, b]` is 0 where an episode starts.
    pub(super) fn backward(&mut self, network: &Network, lstm: &Recurrent, keep: &[f32]) {
        let Some(operands) = &mut self.operands else { return };
        let Shape {
            hidden: n, b, steps, ..
        } = self.shape;
        let matrix = network.weights.matrix(lstm.matrix);
        let cells = blocks(n) * b * UNITS;
        let height = operands.height();
        // The lanes beyond the last unit are never written, and must be zero.
        self.dh.zeros(n.div_ceil(WIDTH) * panel(height));
        self.dc.resize(cells);
        self.over.zeros(b);
        let (rows, _) = gradient_rows(network.bf16.is_some(), &lstm.at);
        self.sum.resize(rows * 4 * blocks(n) * UNITS);
        let mut first = true;
        for t in (0..steps).rev() {
            let keep_next = keep.get((t + 1) * b..(t + 2) * b).unwrap_or(&self.over);
            let gates = operands.gates(t);
            let z = &self.z[gates.base + panel(gates.first)..];
            let (c_prev, c) = self.c[t * cells..(t + 2) * cells].split_at(cells);
            let above = &self.above[t * b * n..(t + 1) * b * n];
            let (dz, place) = operands.dz(t);
            let rows = panel(place.first)..panel(place.first + b);
            for (u, dz) in dz.chunks_exact_mut(2 * panel(place.height)).enumerate() {
                let z_if = &z[2 * u * panel(gates.height)..];
                let z_go = &z_if[panel(gates.height)..];
                let (dz_if, dz_go) = dz.split_at_mut(panel(place.height));
                let units = u * b * UNITS..(u + 1) * b * UNITS;
                let mut block = lstm_cell::Backward {
                    gates: [z_if, z_go],
                    c_prev: &c_prev[units.clone()],
                    keep: &keep[t * b..(t + 1) * b],
                    c: &c[units.clone()],
                    above: &above[u * UNITS..],
                    above_stride: n,
                    after: &self.dh[u / 2 * panel(height) + u % 2 * UNITS..],
                    after_stride: WIDTH,
                    keep_next,
                    dc: &mut self.dc[units],
                    dz: [&mut dz_if[rows.clone()], &mut dz_go[rows.clone()]],
                    lanes: UNITS.min(n - u * UNITS),
                };
                lstm_cell::backward(network.instructions, &mut block);
            }
            operands.back(network, matrix, t, &mut self.dh);
            first &= !operands.gradient(network, t, first, &mut self.sum);
        }
    }
}
