//! Sums over the perturbations of a population.

use crate::kernels::math::mul_add;
use stages_numerics::kernel;

kernel![
    /// sum := sum + by x.
    pub fn add_scaled(sum: &mut [f32], by: f32, x: &[f32]) {
        let x = &x[..sum.len()];
        for i in 0..sum.len() {
            sum[i] = mul_add::<FMA>(by, x[i], sum[i]);
        }
    }

    /// sum := sum + by x^2, element by element.
    pub fn add_scaled_square(sum: &mut [f32], by: f32, x: &[f32]) {
        let x = &x[..sum.len()];
        for i in 0..sum.len() {
            sum[i] = mul_add::<FMA>(by * x[i], x[i], sum[i]);
        }
    }
];
