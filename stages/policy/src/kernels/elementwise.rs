//! The pointwise parts of layers, and the steps of optimisers.

use super::math::{clamp, mul_add, tanh};
use stages_numerics::kernel;

kernel![
    /// x := tanh x.
    pub fn tanh_in_place(x: &mut [f32]) {
        for x in x {
            *x = tanh::<FMA>(*x);
        }
    }

    /// x := max(0, x).
    pub fn relu_in_place(x: &mut [f32]) {
        for x in x {
            *x = if *x < 0.0 { 0.0 } else { *x };
        }
    }

    /// dy := dy (1 - y^2), for y = tanh x.
    pub fn tanh_back(dy: &mut [f32], y: &[f32]) {
        let y = &y[..dy.len()];
        for i in 0..dy.len() {
            dy[i] *= 1.0 - y[i] * y[i];
        }
    }

    /// dy := dy where y > 0, else 0.
    pub fn relu_back(dy: &mut [f32], y: &[f32]) {
        let y = &y[..dy.len()];
        for i in 0..dy.len() {
            dy[i] = if y[i] > 0.0 { dy[i] } else { 0.0 };
        }
    }

    /// sum := sum + x.
    pub fn add(sum: &mut [f32], x: &[f32]) {
        let x = &x[..sum.len()];
        for i in 0..sum.len() {
            sum[i] += x[i];
        }
    }

    /// Adds up the rows of `[N, n]`, first to last.
    pub fn column_sums(rows: &[f32], sums: &mut [f32]) {
        for row in rows.chunks_exact(sums.len()) {
            for i in 0..sums.len() {
                sums[i] += row[i];
            }
        }
    }

    /// x := by x.
    pub fn scale(x: &mut [f32], by: f32) {
        for x in x {
            *x *= by;
        }
    }

    /// sum := the sum of the squares of x, in 16 lanes.
    pub fn squares(x: &[f32], sum: &mut f64) {
        let mut lanes = [0.0_f64; 16];
        let chunks = x.chunks_exact(16);
        let rest = chunks.remainder();
        for chunk in chunks {
            for lane in 0..16 {
                let value = f64::from(chunk[lane]);
                lanes[lane] += value * value;
            }
        }
        *sum = lanes.iter().sum::<f64>() + rest.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
    }

    /// Rows of (raw - offset) / scale within [-clip, clip].
    pub fn normalise(raw: &[f32], offset: &[f32], scale: &[f32], clip: f32, out: &mut [f32]) {
        let n = offset.len();
        let scale = &scale[..n];
        for (raw, out) in raw.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
            for i in 0..n {
                out[i] = clamp((raw[i] - offset[i]) / scale[i], -clip, clip);
            }
        }
    }
];

/// The coefficients of one step of [`adam`].
#[derive(Clone, Copy, Debug)]
pub struct AdamStep {
    /// The factor by which the gradient is scaled to clip its norm.
    pub gradient_scale: f32,
    /// The learning rate divided by 1 - beta1^t.
    pub rate: f32,
    /// 1 / sqrt(1 - beta2^t).
    pub second_correction: f32,
    /// The decay rate of the mean of gradients.
    pub beta1: f32,
    /// The decay rate of the mean of squared gradients.
    pub beta2: f32,
    /// The term added to the denominator.
    pub epsilon: f32,
    /// The size below which the means of gradients and of their squares become 0; 0 for none. Where gradients
    /// stay away, the means would otherwise end as subnormal numbers, on which arithmetic takes many times as
    /// long, and stay there, since 0.9 times the least number rounds to itself.
    pub least: f32,
}

kernel![
    /// One step of Adam (Kingma and Ba, 2015), as PyTorch writes it.
    pub fn adam(step: AdamStep, params: &mut [f32], gradient: &[f32], m: &mut [f32], v: &mut [f32]) {
        let n = params.len();
        let (gradient, m, v) = (&gradient[..n], &mut m[..n], &mut v[..n]);
        for i in 0..n {
            let g = gradient[i] * step.gradient_scale;
            let mean = mul_add::<FMA>(step.beta1, m[i], (1.0 - step.beta1) * g);
            let square = mul_add::<FMA>(step.beta2, v[i], (1.0 - step.beta2) * g * g);
            m[i] = if mean.abs() < step.least { 0.0 } else { mean };
            v[i] = if square < step.least { 0.0 } else { square };
            params[i] -= step.rate * m[i] / mul_add::<FMA>(v[i].sqrt(), step.second_correction, step.epsilon);
        }
    }

    /// One step of RMSprop (Tieleman and Hinton, 2012), as PyTorch writes it: epsilon outside the root.
    pub fn rms_prop(
        rate: f32,
        alpha: f32,
        epsilon: f32,
        params: &mut [f32],
        gradient: &[f32],
        v: &mut [f32],
    ) {
        let n = params.len();
        let (gradient, v) = (&gradient[..n], &mut v[..n]);
        for i in 0..n {
            v[i] = mul_add::<FMA>(alpha, v[i], (1.0 - alpha) * gradient[i] * gradient[i]);
            params[i] -= rate * gradient[i] / (v[i].sqrt() + epsilon);
        }
    }

    /// target := target + tau (x - target).
    pub fn blend(target: &mut [f32], tau: f32, x: &[f32]) {
        let x = &x[..target.len()];
        for i in 0..target.len() {
            target[i] = mul_add::<FMA>(tau, x[i] - target[i], target[i]);
        }
    }
];

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::dispatch::InstructionSet;

    #[test]
    fn adam_by_hand() {
        let step = AdamStep {
            gradient_scale: 1.0,
            rate: 0.1 / (1.0 - 0.9),
            second_correction: 1.0 / (1.0_f32 - 0.999).sqrt(),
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-5,
            least: 0.0,
        };
        for instructions in InstructionSet::available() {
            let (mut p, mut m, mut v) = ([1.0_f32; 20], [0.0; 20], [0.0; 20]);
            adam(instructions, step, &mut p, &[3.0; 20], &mut m, &mut v);
            // The first step is the learning rate times the gradient's sign.
            assert!(p.iter().all(|p| (p - 0.9).abs() < 1e-5), "{instructions:?} {p:?}");
            // Without gradients means fade, and stay at a subnormal number or, below a bound, at 0; the
            // parameters are the same.
            let bounded = AdamStep { least: 1e-30, ..step };
            let (mut p2, mut m2, mut v2) = (p, m, v);
            for _ in 0..1200 {
                adam(instructions, step, &mut p, &[0.0; 20], &mut m, &mut v);
                adam(instructions, bounded, &mut p2, &[0.0; 20], &mut m2, &mut v2);
                assert_eq!((p, v), (p2, v2));
            }
            assert!(
                m.iter().all(|m| m.is_subnormal()) && m2 == [0.0; 20],
                "{instructions:?} {m:?} {m2:?}"
            );
        }
    }

    #[test]
    fn rms_prop_and_blend_by_hand() {
        for instructions in InstructionSet::available() {
            let (mut p, mut v) = ([1.0_f32; 20], [0.25; 20]);
            rms_prop(instructions, 0.1, 0.9, 1e-5, &mut p, &[2.0; 20], &mut v);
            let square = 0.9 * 0.25 + 0.1 * 4.0_f32;
            let wanted = 1.0 - 0.1 * 2.0 / (square.sqrt() + 1e-5);
            assert!(p.iter().all(|p| (p - wanted).abs() < 1e-6), "{instructions:?} {p:?}");
            blend(instructions, &mut v, 0.25, &[1.0; 20]);
            let wanted = square + 0.25 * (1.0 - square);
            assert!(v.iter().all(|v| (v - wanted).abs() < 1e-6), "{instructions:?} {v:?}");
        }
    }
}
