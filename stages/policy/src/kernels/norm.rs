//! Layer norm (Ba and others, 2016), over rows of d elements.

use super::math::mul_add;
use stages_numerics::kernel;

/// The term added to variances under the root, as in PyTorch.
pub const EPSILON: f32 = 1e-5;

const LANES: usize = 16;

/// The sum of `term` over the elements of columns of one length, in lanes.
#[inline(always)]
fn sum<const N: usize>(columns: [&[f32]; N], term: impl Fn([f32; N]) -> f32) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let n = columns[0].len();
    // Slices of one known length, and whole blocks of them: bounds that are checked keep loops from vectors.
    let columns = columns.map(|column| &column[..n]);
    let blocks = columns.map(|column| column.as_chunks::<LANES>().0);
    for i in 0..n / LANES {
        let block = blocks.map(|blocks| &blocks[i]);
        for lane in 0..LANES {
            lanes[lane] += term(block.map(|block| block[lane]));
        }
    }
    let rest: f32 = (n / LANES * LANES..n)
        .map(|i| term(columns.map(|column| column[i])))
        .sum();
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0] + rest
}

kernel![
    /// y := unit x weight + bias, where `unit` are the rows of x minus their mean, divided by their standard
    /// deviation, whose `inverse` is kept.
    pub fn forward(
        x: &[f32],
        weight: &[f32],
        bias: &[f32],
        unit: &mut [f32],
        inverse: &mut [f32],
        y: &mut [f32],
    ) {
        let d = weight.len();
        let bias = &bias[..d];
        let by = 1.0 / d as f32;
        for (((x, unit), y), inverse) in x
            .chunks_exact(d)
            .zip(unit.chunks_exact_mut(d))
            .zip(y.chunks_exact_mut(d))
            .zip(inverse)
        {
            let (x, unit, y) = (&x[..d], &mut unit[..d], &mut y[..d]);
            let mean = by * sum([x], |[x]| x);
            let variance = by * sum([x], |[x]| (x - mean) * (x - mean));
            *inverse = 1.0 / (variance + EPSILON).sqrt();
            for i in 0..d {
                unit[i] = (x[i] - mean) * *inverse;
                y[i] = mul_add::<FMA>(unit[i], weight[i], bias[i]);
            }
        }
    }

    /// Adds to the gradients of x, weight and bias.
    pub fn backward(
        dy: &[f32],
        weight: &[f32],
        unit: &[f32],
        inverse: &[f32],
        dx: &mut [f32],
        dweight: &mut [f32],
        dbias: &mut [f32],
    ) {
        let d = weight.len();
        let (dweight, dbias) = (&mut dweight[..d], &mut dbias[..d]);
        let by = 1.0 / d as f32;
        for (((dy, unit), dx), &inverse) in dy
            .chunks_exact(d)
            .zip(unit.chunks_exact(d))
            .zip(dx.chunks_exact_mut(d))
            .zip(inverse)
        {
            let (dy, unit, dx) = (&dy[..d], &unit[..d], &mut dx[..d]);
            let mean = by * sum([dy, weight], |[dy, weight]| dy * weight);
            let along = by * sum([dy, weight, unit], |[dy, weight, unit]| dy * weight * unit);
            for i in 0..d {
                dx[i] = mul_add::<FMA>(inverse, dy[i] * weight[i] - mean - unit[i] * along, dx[i]);
                dweight[i] = mul_add::<FMA>(dy[i], unit[i], dweight[i]);
                dbias[i] += dy[i];
            }
        }
    }
];
