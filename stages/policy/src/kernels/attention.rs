//! Attention of one step to the steps that its window holds, which are contiguous, oldest first (Vaswani and
//! others, 2017; with relative positions on the keys' side: Shaw and others, 2018).

use super::math::{exp, mul_add};
use stages_numerics::kernel;

/// The number of elements that are computed at once; rows of transposed keys are padded by as many beyond the
/// last.
pub const LANES: usize = 32;

/// The window of a step: the n steps that it attends to, oldest first.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// n, the number of steps.
    pub len: usize,
    /// The number of heads, which share the d elements among them.
    pub heads: usize,
    /// The keys, transposed `[d, key_stride]`, from the first step's key on.
    pub keys: &'a [f32],
    /// The distance between consecutive elements of a key, and of a value in [`Backward::values`].
    pub key_stride: usize,
    /// The relative position vectors, transposed `[d, position_stride]`, from the first step's vector on.
    pub positions: &'a [f32],
    /// The distance between consecutive elements of a relative position vector.
    pub position_stride: usize,
}

/// The number of a value's elements that are summed in one register.
const BLOCK: usize = 16;

/// out[j] := the sum over c of x[c] rows[c, j], for j < LANES.
#[inline(always)]
fn products<const FMA: bool>(x: &[f32], rows: &[f32], stride: usize) -> [f32; LANES] {
    let mut sums = [0.0_f32; LANES];
    for (c, &x) in x.iter().enumerate() {
        let row = &rows[c * stride..c * stride + LANES];
        for j in 0..LANES {
            sums[j] = mul_add::<FMA>(x, row[j], sums[j]);
        }
    }
    sums
}

/// The scores, not yet scaled, of LANES steps from `from` on: the products with the keys plus those with the
/// relative positions.
#[inline(always)]
fn scores<const FMA: bool>(q: &[f32], keys: (&[f32], usize), positions: (&[f32], usize)) -> [f32; LANES] {
    let (mut by_content, mut by_position) = ([0.0_f32; LANES], [0.0_f32; LANES]);
    for (c, &q) in q.iter().enumerate() {
        let key = &keys.0[c * keys.1..c * keys.1 + LANES];
        let position = &positions.0[c * positions.1..c * positions.1 + LANES];
        for j in 0..LANES {
            by_content[j] = mul_add::<FMA>(q, key[j], by_content[j]);
            by_position[j] = mul_add::<FMA>(q, position[j], by_position[j]);
        }
    }
    for j in 0..LANES {
        by_content[j] += by_position[j];
    }
    by_content
}

/// COUNT blocks of the output, from column `from` on, summed over the steps from first to last.
#[inline(always)]
fn read<const FMA: bool, const COUNT: usize>(
    weights: [&[f32]; COUNT],
    values: &[f32],
    (from, d): (usize, usize),
    out: &mut [f32],
) {
    let mut sums = [[0.0_f32; BLOCK]; COUNT];
    for j in 0..weights[0].len() {
        let row = &values[j * d + from..j * d + from + COUNT * BLOCK];
        for b in 0..COUNT {
            let weight = weights[b][j];
            for c in 0..BLOCK {
                sums[b][c] = mul_add::<FMA>(weight, row[b * BLOCK + c], sums[b][c]);
            }
        }
    }
    for (out, sums) in out[from..].chunks_exact_mut(BLOCK).zip(&sums) {
        out.copy_from_slice(sums);
    }
}

/// y := y + x w.
#[inline(always)]
fn axpy<const FMA: bool>(w: f32, x: &[f32], y: &mut [f32]) {
    let n = y.len();
    let x = &x[..n];
    for c in 0..n {
        y[c] = mul_add::<FMA>(w, x[c], y[c]);
    }
}

kernel![
    /// out `[d]` := the output of attention for a query q `[d]` over `values` `[n, d]`. The softmax of the
    /// scores is left in `weights` `[heads, n rounded up to LANES, or more]`. n must be at least 1.
    pub fn forward(window: Window<'_>, q: &[f32], values: &[f32], weights: &mut [f32], out: &mut [f32]) {
        let d = q.len();
        let (n, size) = (window.len, d / window.heads);
        let scale = 1.0 / (size as f32).sqrt();
        let padded = weights.len() / window.heads;
        for head in 0..window.heads {
            let part = head * size..(head + 1) * size;
            let weights = &mut weights[head * padded..(head + 1) * padded];
            let q = &q[part.clone()];
            let keys = &window.keys[part.start * window.key_stride..];
            let positions = &window.positions[part.start * window.position_stride..];
            let mut tops = [f32::NEG_INFINITY; LANES];
            for from in (0..n).step_by(LANES) {
                let products = scores::<FMA>(
                    q,
                    (&keys[from..], window.key_stride),
                    (&positions[from..], window.position_stride),
                );
                let scores = &mut weights[from..from + LANES];
                for j in 0..LANES {
                    let score = products[j] * scale;
                    scores[j] = if from + j < n { score } else { f32::NEG_INFINITY };
                    tops[j] = if scores[j] > tops[j] { scores[j] } else { tops[j] };
                }
            }
            let top = tops.iter().fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a });
            let mut sums = [0.0_f32; LANES];
            for from in (0..n).step_by(LANES) {
                let scores = &mut weights[from..from + LANES];
                for j in 0..LANES {
                    let weight = exp::<FMA>(scores[j] - top);
                    scores[j] = if from + j < n { weight } else { 0.0 };
                    sums[j] += scores[j];
                }
            }
            let by = 1.0 / sums.iter().sum::<f32>();
            for weight in &mut weights[..n.next_multiple_of(LANES)] {
                *weight *= by;
            }
        }
        if !size.is_multiple_of(BLOCK) {
            out.fill(0.0);
            for head in 0..window.heads {
                let out = &mut out[head * size..(head + 1) * size];
                for (j, &weight) in weights[head * padded..head * padded + n].iter().enumerate() {
                    axpy::<FMA>(weight, &values[j * d + head * size..j * d + (head + 1) * size], out);
                }
            }
            return;
        }
        let of = |from: usize| &weights[from / size * padded..from / size * padded + n];
        let mut from = 0;
        while from + 4 * BLOCK <= d {
            let weights = [0, 1, 2, 3].map(|block| of(from + block * BLOCK));
            read::<FMA, 4>(weights, values, (from, d), out);
            from += 4 * BLOCK;
        }
        while from < d {
            read::<FMA, 1>([of(from)], values, (from, d), out);
            from += BLOCK;
        }
    }
];

/// The operands of the backward pass in addition to the window.
#[derive(Clone, Copy, Debug)]
pub struct Backward<'a> {
    /// The query `[d]`.
    pub q: &'a [f32],
    /// The keys as rows `[n, d]`.
    pub key_rows: &'a [f32],
    /// The relative position vectors as rows `[n, d]`.
    pub position_rows: &'a [f32],
    /// The values, transposed like the keys.
    pub values: &'a [f32],
    /// The softmax of the scores, as [`forward`] left it.
    pub weights: &'a [f32],
    /// The gradient of the output of attention `[d]`.
    pub grad_out: &'a [f32],
}

kernel![
    /// The backward pass of [`forward`]: sets `grad_q` `[d]`, and adds to the gradients of keys, values and
    /// relative position vectors, all `[n, d]`. `scratch` has n elements, rounded up to LANES.
    pub fn backward(
        window: Window<'_>,
        from: Backward<'_>,
        grad_q: &mut [f32],
        grad_keys: &mut [f32],
        grad_values: &mut [f32],
        grad_positions: &mut [f32],
        scratch: &mut [f32],
    ) {
        let d = grad_q.len();
        let (n, size) = (window.len, d / window.heads);
        let scale = 1.0 / (size as f32).sqrt();
        let padded = from.weights.len() / window.heads;
        grad_q.fill(0.0);
        for head in 0..window.heads {
            let part = head * size..(head + 1) * size;
            let weights = &from.weights[head * padded..(head + 1) * padded];
            let (q, grad_out, grad_q) = (
                &from.q[part.clone()],
                &from.grad_out[part.clone()],
                &mut grad_q[part.clone()],
            );
            let values = &from.values[part.start * window.key_stride..];
            let mut sums = [0.0_f32; LANES];
            for first in (0..n).step_by(LANES) {
                let products = products::<FMA>(grad_out, &values[first..], window.key_stride);
                let (weights, out) = (&weights[first..first + LANES], &mut scratch[first..first + LANES]);
                for j in 0..LANES {
                    // Lanes beyond the last step hold stale values; their weights are 0, but the products
                    // need not be (NaN, infinity).
                    out[j] = if first + j < n { products[j] } else { 0.0 };
                    sums[j] = mul_add::<FMA>(weights[j], out[j], sums[j]);
                }
            }
            let mean = sums.iter().sum::<f32>();
            for j in 0..n {
                scratch[j] = scale * weights[j] * (scratch[j] - mean);
            }
            let blocks = size / BLOCK * BLOCK;
            for c in (0..blocks).step_by(BLOCK) {
                let at = part.start + c;
                let (mut by_key, mut by_position) = ([0.0_f32; BLOCK], [0.0_f32; BLOCK]);
                let (q, grad_out) = (&q[c..c + BLOCK], &grad_out[c..c + BLOCK]);
                for (j, &grad_score) in scratch[..n].iter().enumerate() {
                    let row = j * d + at..j * d + at + BLOCK;
                    let (key, position) = (&from.key_rows[row.clone()], &from.position_rows[row.clone()]);
                    let (grad_key, grad_position) =
                        (&mut grad_keys[row.clone()], &mut grad_positions[row.clone()]);
                    let grad_value = &mut grad_values[row];
                    for i in 0..BLOCK {
                        by_key[i] = mul_add::<FMA>(grad_score, key[i], by_key[i]);
                        by_position[i] = mul_add::<FMA>(grad_score, position[i], by_position[i]);
                        grad_key[i] = mul_add::<FMA>(grad_score, q[i], grad_key[i]);
                        grad_position[i] = mul_add::<FMA>(grad_score, q[i], grad_position[i]);
                        grad_value[i] = mul_add::<FMA>(weights[j], grad_out[i], grad_value[i]);
                    }
                }
                for i in 0..BLOCK {
                    grad_q[c + i] = by_key[i] + by_position[i];
                }
            }
            for (j, &grad_score) in scratch[..n].iter().enumerate() {
                if blocks == size {
                    break;
                }
                let row = j * d + part.start + blocks..j * d + part.end;
                let rest = &mut grad_q[blocks..];
                axpy::<FMA>(grad_score, &from.key_rows[row.clone()], rest);
                axpy::<FMA>(grad_score, &from.position_rows[row.clone()], rest);
                axpy::<FMA>(grad_score, &q[blocks..], &mut grad_keys[row.clone()]);
                axpy::<FMA>(grad_score, &q[blocks..], &mut grad_positions[row.clone()]);
                axpy::<FMA>(weights[j], &grad_out[blocks..], &mut grad_values[row]);
            }
        }
    }
];
