//! L-BFGS (Nocedal and Wright, "Numerical optimization", 2006, algorithms 7.4 and 3.1).

use std::collections::VecDeque;

/// The pairs of steps and changes of the gradient that approximate the curvature.
const MEMORY: usize = 8;

/// The most iterations.
const ITERATIONS: usize = 60;

/// The largest element of the gradient at which the search ends.
const TOLERANCE: f64 = 1e-2;

/// The largest change of a coordinate in a step.
const STEP: f64 = 2.0;

/// The point near `start` at which a function, which gives its value and its gradient, is least.
pub(super) fn minimise(start: &[f64], function: impl Fn(&[f64]) -> (f64, Vec<f64>)) -> Vec<f64> {
    let mut x = start.to_vec();
    let (mut value, mut gradient) = function(&x);
    let mut memory: VecDeque<(Vec<f64>, Vec<f64>)> = VecDeque::new();
    for _ in 0..ITERATIONS {
        if !value.is_finite() || gradient.iter().all(|g| g.abs() < TOLERANCE) {
            break;
        }
        let mut direction = direction(&gradient, &memory);
        if dot(&direction, &gradient) >= 0.0 {
            memory.clear();
            direction = gradient.iter().map(|g| -g).collect();
        }
        let longest = direction.iter().fold(0.0_f64, |longest, d| longest.max(d.abs()));
        let first = if memory.is_empty() { 0.5 } else { STEP };
        let mut step = (first / longest).min(1.0);
        let slope = dot(&direction, &gradient);
        let mut next = None;
        for _ in 0..20 {
            let at: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + step * d).collect();
            let (new, by) = function(&at);
            if new <= value + 1e-4 * step * slope {
                next = Some((at, new, by));
                break;
            }
            step *= 0.5;
        }
        let Some((at, new, by)) = next else { break };
        let difference = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
        let (moved, changed) = (difference(&at, &x), difference(&by, &gradient));
        if dot(&moved, &changed) > 1e-10 * dot(&changed, &changed) {
            memory.push_back((moved, changed));
            if memory.len() > MEMORY {
                memory.pop_front();
            }
        }
        (x, value, gradient) = (at, new, by);
    }
    x
}

/// The quasi-Newton direction by the two-loop recursion.
fn direction(gradient: &[f64], memory: &VecDeque<(Vec<f64>, Vec<f64>)>) -> Vec<f64> {
    let mut q = gradient.to_vec();
    let mut factors = Vec::with_capacity(memory.len());
    for (moved, changed) in memory.iter().rev() {
        let factor = dot(moved, &q) / dot(moved, changed);
        q.iter_mut().zip(changed).for_each(|(q, y)| *q -= factor * y);
        factors.push(factor);
    }
    if let Some((moved, changed)) = memory.back() {
        let scale = dot(moved, changed) / dot(changed, changed);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for ((moved, changed), factor) in memory.iter().zip(factors.into_iter().rev()) {
        let by = factor - dot(changed, &q) / dot(moved, changed);
        q.iter_mut().zip(moved).for_each(|(q, s)| *q += by * s);
    }
    q.iter().map(|q| -q).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's function has its least value at (1, 1).
    #[test]
    fn rosenbrock() {
        let function = |x: &[f64]| {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            (a * a + 100.0 * b * b, vec![-2.0 * a - 400.0 * x[0] * b, 200.0 * b])
        };
        let best = minimise(&[-1.2, 1.0], function);
        assert!((best[0] - 1.0).abs() < 1e-2 && (best[1] - 1.0).abs() < 2e-2, "{best:?}");
    }
}
