//! The distribution of continuous actions: independent normals, whose standard deviations are parameters and
//! do not depend on the observation. Actions are drawn without bounds, scaled to their range where it is
//! another than -1 to 1, and clipped to it by the environment (not squashed): training learns from the action
//! as it was drawn.

use crate::kernels::math::{exp, mul_add};

/// ln(2 pi) / 2.
const HALF_LN_TAU: f32 = 0.918_938_5;

/// The log-density of an action `[A]`: the sum over its components of -((x - mean) / std)^2 / 2 - ln std -
/// ln(2 pi) / 2.
pub fn log_prob(action: &[f32], mean: &[f32], log_std: &[f32]) -> f32 {
    let mut sum = 0.0;
    for ((x, mean), log_std) in action.iter().zip(mean).zip(log_std) {
        let z = (x - mean) * libm::expf(-log_std);
        sum -= 0.5 * z * z + log_std + HALF_LN_TAU;
    }
    sum
}

/// The entropy in nats: the sum over components of ln std + ln(2 pi e) / 2.
pub fn entropy(log_std: &[f32]) -> f32 {
    log_std.iter().map(|log_std| log_std + HALF_LN_TAU + 0.5).sum()
}

/// mean + std x `normal()`, component by component.
pub fn sample(mean: &[f32], log_std: &[f32], mut normal: impl FnMut() -> f64, action: &mut [f32]) {
    for ((x, mean), log_std) in action.iter_mut().zip(mean).zip(log_std) {
        *x = mean + libm::expf(*log_std) * normal() as f32;
    }
}

/// [`log_prob`] as a function for use within kernels.
#[inline(always)]
pub fn log_density<const FMA: bool>(action: &[f32], mean: &[f32], log_std: &[f32]) -> f32 {
    let mut sum = 0.0;
    for j in 0..log_std.len() {
        let z = (action[j] - mean[j]) * exp::<FMA>(-log_std[j]);
        sum -= mul_add::<FMA>(0.5 * z, z, log_std[j] + HALF_LN_TAU);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    /// The densities and entropies of N(0.3, 0.5^2) and N(-1, 2^2) are those of the closed form.
    #[test]
    fn as_in_closed_form() {
        let (mean, log_std) = ([0.3_f32, -1.0], [0.5_f32.ln(), 2.0_f32.ln()]);
        let density = |x: f64, mean: f64, std: f64| {
            libm::exp(-0.5 * ((x - mean) / std).powi(2)) / (std * libm::sqrt(2.0 * std::f64::consts::PI))
        };
        for action in [[0.3, -1.0], [1.3, 2.0], [-0.9, -7.0]] {
            let exact = libm::log(
                density(f64::from(action[0]), f64::from(mean[0]), 0.5)
                    * density(f64::from(action[1]), -1.0, 2.0),
            );
            assert!((f64::from(log_prob(&action, &mean, &log_std)) - exact).abs() < 1e-5);
        }
        let exact = libm::log(2.0 * std::f64::consts::PI * std::f64::consts::E * 0.5 * 2.0);
        assert!((f64::from(entropy(&log_std)) - exact).abs() < 1e-6);

        let mut random = Random::new(&[4]);
        let (n, mut sums, mut squares) = (200_000, [0.0; 2], [0.0; 2]);
        let mut action = [0.0; 2];
        for _ in 0..n {
            sample(&mean, &log_std, || random.normal(), &mut action);
            for j in 0..2 {
                sums[j] += f64::from(action[j]);
                squares[j] += f64::from(action[j]).powi(2);
            }
        }
        for (j, std) in [0.5, 2.0].into_iter().enumerate() {
            let m = sums[j] / f64::from(n);
            assert!((m - f64::from(mean[j])).abs() < 0.02, "{m}");
            assert!(((squares[j] / f64::from(n) - m * m).sqrt() / std - 1.0).abs() < 0.01);
        }
    }
}
