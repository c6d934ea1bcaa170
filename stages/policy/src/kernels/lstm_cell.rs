//! The pointwise part of an LSTM cell, forward and backward, all gates in one pass (Hochreiter and
//! Schmidhuber, 1997, with forget gates: Gers and others, 2000).
//!
//! i = sigmoid(z_i), f = sigmoid(z_f), g = tanh(z_g), o = sigmoid(z_o); c = f c' + i g; h = o tanh(c).
//!
//! Units come in blocks of 16, whose gates fill two panels of [`super::panel_layout::WIDTH`] columns, side by
//! side: i and f, g and o. The units beyond the last are padded: their weights are zero, and so are their
//! states and gradients.

use super::math::{clamp, exp, mul_add, tanh, tanh_parts};
use stages_numerics::kernel;

/// The lower bound of a sigmoid's argument: sigmoids are then at least 2e-19, so that the product of two
/// denominators stays finite.
const LOWEST: f32 = -43.0;

#[inline(always)]
fn halves(row: &[f32; 32]) -> ([f32; 16], [f32; 16]) {
    let [mut a, mut b] = [[0.0; 16]; 2];
    a.copy_from_slice(&row[..16]);
    b.copy_from_slice(&row[16..]);
    (a, b)
}

#[inline(always)]
fn join(row: &mut [f32; 32], a: &[f32; 16], b: &[f32; 16]) {
    row[..16].copy_from_slice(a);
    row[16..].copy_from_slice(b);
}

/// The operands of a forward step: a block of units of some environments.
#[derive(Debug)]
pub struct Forward<'a> {
    /// Panels of (i, f) and (g, o), `[rows, 32]` each: the gates' inputs, and then the gates.
    pub z: [&'a mut [f32]; 2],
    /// The cells of the previous step, `[rows, 16]`.
    pub c_prev: &'a [f32],
    /// `[rows]`: 0 where an episode starts, so that the previous cell counts as 0.
    pub keep: &'a [f32],
    /// The cells of this step, `[rows, 16]`.
    pub c: &'a mut [f32],
    /// The outputs: `lanes` elements in each row, with rows `h_stride` apart.
    pub h: &'a mut [f32],
    /// The distance from one row of [`Forward::h`] to the next.
    pub h_stride: usize,
    /// The number of the block's units that are not padding.
    pub lanes: usize,
}

kernel![
    /// One forward step.
    pub fn forward(block: &mut Forward) {
        let [z_if, z_go] = &mut block.z;
        let (z_if, z_go) = (z_if.as_chunks_mut::<32>().0, z_go.as_chunks_mut::<32>().0);
        let (c_prev, c) = (block.c_prev.as_chunks::<16>().0, block.c.as_chunks_mut::<16>().0);
        for (r, &keep) in block.keep.iter().enumerate() {
            // Copies in registers: a compiler need not fear that the results overlap the operands.
            let (z_i, z_f) = halves(&z_if[r]);
            let (z_g, z_o) = halves(&z_go[r]);
            let before = if keep == 0.0 { [0.0; 16] } else { c_prev[r] };
            let [mut i, mut f, mut g, mut o, mut cell] = [[0.0_f32; 16]; 5];
            for j in 0..16 {
                // Two gates share one division, the costliest of these operations.
                let a = 1.0 + exp::<FMA>(-clamp(z_i[j], LOWEST, 87.0));
                let b = 1.0 + exp::<FMA>(-clamp(z_f[j], LOWEST, 87.0));
                let shared = 1.0 / (a * b);
                (i[j], f[j]) = (shared * b, shared * a);
                let (p, q) = tanh_parts::<FMA>(z_g[j]);
                let a = 1.0 + exp::<FMA>(-clamp(z_o[j], LOWEST, 87.0));
                let shared = 1.0 / (a * q);
                (g[j], o[j]) = (p * (shared * a), shared * q);
                cell[j] = mul_add::<FMA>(f[j], before[j], i[j] * g[j]);
            }
            join(&mut z_if[r], &i, &f);
            join(&mut z_go[r], &g, &o);
            c[r] = cell;
        }
        // In a pass of its own, so that a row's chain of operations is short enough for the next row's to run
        // beside it.
        for r in 0..block.keep.len() {
            let (cell, (_, o)) = (c[r], halves(&z_go[r]));
            let mut h = [0.0_f32; 16];
            for j in 0..16 {
                h[j] = o[j] * tanh::<FMA>(cell[j]);
            }
            let out = &mut block.h[r * block.h_stride..];
            if block.lanes == 16 {
                out[..16].copy_from_slice(&h);
            } else {
                out[..block.lanes].copy_from_slice(&h[..block.lanes]);
            }
        }
    }
];

/// The operands of a backward step: a block of units of some environments.
#[derive(Debug)]
pub struct Backward<'a> {
    /// The gates, as the forward step left them in [`Forward::z`].
    pub gates: [&'a [f32]; 2],
    /// The cells of the previous step, `[rows, 16]`.
    pub c_prev: &'a [f32],
    /// `[rows]`: 0 where an episode starts, so that the previous cell counts as 0.
    pub keep: &'a [f32],
    /// The cells of this step, `[rows, 16]`.
    pub c: &'a [f32],
    /// The gradient of the output from above: `lanes` elements in each row, with rows `above_stride` apart.
    pub above: &'a [f32],
    /// The distance from one row of [`Backward::above`] to the next.
    pub above_stride: usize,
    /// The gradient of the output from the next step: 16 elements in each row, with rows `after_stride`
    /// apart.
    pub after: &'a [f32],
    /// The distance from one row of [`Backward::after`] to the next.
    pub after_stride: usize,
    /// `[rows]`: 0 where the next step starts an episode, so that [`Backward::after`] and [`Backward::dc`]
    /// count as 0.
    pub keep_next: &'a [f32],
    /// The gradient of the cells from the next step, `[rows, 16]`, which becomes the gradient for the step
    /// before.
    pub dc: &'a mut [f32],
    /// The gradient of the gates' inputs, in the layout of [`Forward::z`].
    pub dz: [&'a mut [f32]; 2],
    /// The number of the block's units that are not padding.
    pub lanes: usize,
}

kernel![
    /// One backward step.
    pub fn backward(block: &mut Backward) {
        let [z_if, z_go] = block.gates;
        let (z_if, z_go) = (z_if.as_chunks::<32>().0, z_go.as_chunks::<32>().0);
        let [dz_if, dz_go] = &mut block.dz;
        let (dz_if, dz_go) = (dz_if.as_chunks_mut::<32>().0, dz_go.as_chunks_mut::<32>().0);
        let (c_prev, c) = (block.c_prev.as_chunks::<16>().0, block.c.as_chunks::<16>().0);
        let dc = block.dc.as_chunks_mut::<16>().0;
        for (r, (&keep, &keep_next)) in block.keep.iter().zip(block.keep_next).enumerate() {
            let (i, f) = halves(&z_if[r]);
            let (g, o) = halves(&z_go[r]);
            let above = &block.above[r * block.above_stride..];
            let mut d = [0.0_f32; 16];
            if block.lanes == 16 {
                d.copy_from_slice(&above[..16]);
            } else {
                d[..block.lanes].copy_from_slice(&above[..block.lanes]);
            }
            let before = if keep == 0.0 { [0.0; 16] } else { c_prev[r] };
            let (mut after, mut cell) = ([0.0_f32; 16], [0.0_f32; 16]);
            if keep_next != 0.0 {
                after.copy_from_slice(&block.after[r * block.after_stride..][..16]);
                cell = dc[r];
            }
            let now = c[r];
            let [mut grad_i, mut grad_f, mut grad_g, mut grad_o] = [[0.0_f32; 16]; 4];
            for j in 0..16 {
                let t = tanh::<FMA>(now[j]);
                let d = d[j] + after[j];
                let down = mul_add::<FMA>(d * o[j], 1.0 - t * t, cell[j]);
                grad_i[j] = down * g[j] * i[j] * (1.0 - i[j]);
                grad_f[j] = down * before[j] * f[j] * (1.0 - f[j]);
                grad_g[j] = down * i[j] * (1.0 - g[j] * g[j]);
                grad_o[j] = d * t * o[j] * (1.0 - o[j]);
                cell[j] = down * f[j];
            }
            join(&mut dz_if[r], &grad_i, &grad_f);
            join(&mut dz_go[r], &grad_g, &grad_o);
            dc[r] = cell;
        }
    }
];

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::dispatch::InstructionSet;
    use stages_numerics::random::Random;

    /// Gates, states and outputs of a block agree with the definition in double precision, and the backward
    /// step with finite differences.
    #[test]
    fn as_defined_on_every_instruction_set() {
        let (rows, lanes) = (5, 13);
        let random = &mut Random::new(&[1]);
        let mut draw =
            |len: usize, scale: f64| (0..len).map(|_| (scale * random.normal()) as f32).collect::<Vec<_>>();
        let (z_if, z_go, c_prev) = (draw(rows * 32, 3.0), draw(rows * 32, 3.0), draw(rows * 16, 1.0));
        let (above, after, dc_next) = (draw(rows * lanes, 1.0), draw(rows * 16, 1.0), draw(rows * 16, 1.0));
        let keep = [1.0, 0.0, 1.0, 1.0, 0.0];
        let keep_next = [1.0, 1.0, 0.0, 1.0, 0.0];
        let sigmoid = |x: f64| 1.0 / (1.0 + libm::exp(-x));
        // (c, h) of the four numbers that go into the gates and the cell before.
        let cell = |z: [f64; 4], before: f64| {
            let c = sigmoid(z[1]) * before + sigmoid(z[0]) * libm::tanh(z[2]);
            (c, sigmoid(z[3]) * libm::tanh(c))
        };
        for instructions in InstructionSet::available() {
            let (mut gates_if, mut gates_go) = (z_if.clone(), z_go.clone());
            let (mut c, mut h) = (vec![0.0; rows * 16], vec![9.0; rows * lanes]);
            forward(
                instructions,
                &mut Forward {
                    z: [&mut gates_if, &mut gates_go],
                    c_prev: &c_prev,
                    keep: &keep,
                    c: &mut c,
                    h: &mut h,
                    h_stride: lanes,
                    lanes,
                },
            );
            let (mut dz_if, mut dz_go, mut dc) =
                (vec![0.0; rows * 32], vec![0.0; rows * 32], dc_next.clone());
            backward(
                instructions,
                &mut Backward {
                    gates: [&gates_if, &gates_go],
                    c_prev: &c_prev,
                    keep: &keep,
                    c: &c,
                    above: &above,
                    above_stride: lanes,
                    after: &after,
                    after_stride: 16,
                    keep_next: &keep_next,
                    dc: &mut dc,
                    dz: [&mut dz_if, &mut dz_go],
                    lanes,
                },
            );
            for r in 0..rows {
                for j in 0..lanes {
                    let at = |x: &[f32], half: usize| f64::from(x[r * 32 + half * 16 + j]);
                    let z = [at(&z_if, 0), at(&z_if, 1), at(&z_go, 0), at(&z_go, 1)];
                    let before = f64::from(keep[r] * c_prev[r * 16 + j]);
                    let (exact_c, exact_h) = cell(z, before);
                    let near = |x: f64, y: f64| (x - y).abs() < 1e-6 * y.abs().max(1.0);
                    assert!(near(f64::from(c[r * 16 + j]), exact_c), "{instructions:?}");
                    assert!(near(f64::from(h[r * lanes + j]), exact_h), "{instructions:?}");
                    assert!(near(at(&gates_if, 0), sigmoid(z[0])) && near(at(&gates_go, 1), sigmoid(z[3])));

                    let dh = f64::from(above[r * lanes + j] + keep_next[r] * after[r * 16 + j]);
                    let dc_in = f64::from(keep_next[r] * dc_next[r * 16 + j]);
                    let loss = |z: [f64; 4], before: f64| {
                        let (c, h) = cell(z, before);
                        dh * h + dc_in * c
                    };
                    let found = [at(&dz_if, 0), at(&dz_if, 1), at(&dz_go, 0), at(&dz_go, 1)];
                    for (k, found) in found.into_iter().enumerate() {
                        let step = |by: f64| {
                            let mut z = z;
                            z[k] += by;
                            loss(z, before)
                        };
                        let exact = (step(1e-5) - step(-1e-5)) / 2e-5;
                        assert!(
                            (found - exact).abs() < 2e-6 * exact.abs().max(1.0),
                            "{instructions:?} {found} {exact}"
                        );
                    }
                    let exact = (loss(z, before + 1e-5) - loss(z, before - 1e-5)) / 2e-5;
                    assert!((f64::from(dc[r * 16 + j]) - exact).abs() < 2e-6 * exact.abs().max(1.0));
                }
            }
        }
    }
}
