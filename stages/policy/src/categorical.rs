//! The masked categorical distribution: masked actions have probability 0.

use crate::kernels::math::{exp, ln};
use stages_numerics::kernel;

/// An element of each of 16 rows.
pub type Lanes = [f32; 16];

/// The softmax of 16 rows of A logits, column by column.
#[derive(Debug, Default)]
pub struct Softmax {
    /// Logits.
    pub x: Vec<Lanes>,
    /// The action mask.
    pub mask: Vec<[bool; 16]>,
    /// Log-probabilities; of masked actions finite.
    pub log_prob: Vec<Lanes>,
    /// Probabilities; of masked actions 0.
    pub p: Vec<Lanes>,
}

impl Softmax {
    /// Copies up to 16 rows `[_, A]` and the action mask of each. Of rows that are missing, action 0 alone is allowed.
    #[inline(always)]
    pub fn load<'a>(&mut self, logits: &[f32], masks: impl Iterator<Item = &'a [bool]>, num_actions: usize) {
        self.x.clear();
        self.x.resize(num_actions, [0.0; 16]);
        self.mask.clear();
        self.mask.resize(num_actions, [false; 16]);
        self.log_prob.resize(num_actions, [0.0; 16]);
        self.p.resize(num_actions, [0.0; 16]);
        let count = logits.len() / num_actions;
        for (r, (logits, mask)) in logits.chunks_exact(num_actions).zip(masks).enumerate() {
            for j in 0..num_actions {
                self.x[j][r] = logits[j];
                self.mask[j][r] = mask[j];
            }
        }
        self.mask[0][count..].fill(true);
    }

    /// From [`Softmax::x`] to [`Softmax::log_prob`] and [`Softmax::p`].
    #[inline(always)]
    pub fn normalise<const FMA: bool>(&mut self) {
        let mut max = [f32::NEG_INFINITY; 16];
        for (x, mask) in self.x.iter_mut().zip(&self.mask) {
            for r in 0..16 {
                let logit = if mask[r] { x[r] } else { f32::NEG_INFINITY };
                max[r] = if logit > max[r] { logit } else { max[r] };
            }
        }
        let mut sum = [0.0_f32; 16];
        for ((x, p), mask) in self.x.iter().zip(&mut self.p).zip(&self.mask) {
            for r in 0..16 {
                let e = exp::<FMA>(x[r] - max[r]);
                p[r] = if mask[r] { e } else { 0.0 };
                sum[r] += p[r];
            }
        }
        let (mut log, mut by) = ([0.0_f32; 16], [0.0_f32; 16]);
        for r in 0..16 {
            log[r] = max[r] + ln::<FMA>(sum[r]);
            by[r] = 1.0 / sum[r];
        }
        for ((x, p), log_prob) in self.x.iter().zip(&mut self.p).zip(&mut self.log_prob) {
            for r in 0..16 {
                log_prob[r] = x[r] - log[r];
                p[r] *= by[r];
            }
        }
    }
}

/// Copies columns back to rows `[_, A]`.
#[inline(always)]
pub fn store(columns: &[Lanes], rows: &mut [f32]) {
    for (r, row) in rows.chunks_exact_mut(columns.len()).enumerate() {
        for (x, column) in row.iter_mut().zip(columns) {
            *x = column[r];
        }
    }
}

#[inline(always)]
fn log_softmax_body<const FMA: bool>(logits: &mut [f32], mask: &[bool], num_actions: usize, softmax: &mut Softmax) {
    for (logits, mask) in logits.chunks_mut(16 * num_actions).zip(mask.chunks(16 * num_actions)) {
        softmax.load(logits, mask.chunks_exact(num_actions), num_actions);
        softmax.normalise::<FMA>();
        for (column, mask) in softmax.log_prob.iter_mut().zip(&softmax.mask) {
            for r in 0..16 {
                column[r] = if mask[r] { column[r] } else { f32::NEG_INFINITY };
            }
        }
        store(&softmax.log_prob, logits);
    }
}
kernel! {
    /// [`log_softmax`] of rows `[_, A]`.
    pub(crate) fn log_softmax_rows(logits: &mut [f32], mask: &[bool], num_actions: usize, softmax: &mut Softmax) = log_softmax_body
}

#[inline(always)]
fn sample_body<const FMA: bool>(
    logits: &[f32],
    mask: &[bool],
    uniform: &[f64],
    softmax: &mut Softmax,
    actions: &mut [u32],
    log_prob: &mut [f32],
) {
    let num_actions = logits.len() / uniform.len().max(1);
    for (i, uniform) in uniform.chunks(16).enumerate() {
        let range = 16 * i * num_actions..(16 * i + uniform.len()) * num_actions;
        softmax.load(
            &logits[range.clone()],
            mask[range].chunks_exact(num_actions),
            num_actions,
        );
        softmax.normalise::<FMA>();
        let mut left = [0.0_f32; 16];
        for (left, &uniform) in left.iter_mut().zip(uniform) {
            *left = uniform as f32;
        }
        // The action on which the number falls; the last allowed one, where rounding leaves a remainder.
        let (mut action, mut of_action) = ([0_u32; 16], [0.0_f32; 16]);
        for (j, ((p, log_prob), mask)) in softmax.p.iter().zip(&softmax.log_prob).zip(&softmax.mask).enumerate() {
            for r in 0..16 {
                let reached = mask[r] && left[r] >= 0.0;
                action[r] = if reached { j as u32 } else { action[r] };
                of_action[r] = if reached { log_prob[r] } else { of_action[r] };
                left[r] -= p[r];
            }
        }
        actions[16 * i..][..uniform.len()].copy_from_slice(&action[..uniform.len()]);
        log_prob[16 * i..][..uniform.len()].copy_from_slice(&of_action[..uniform.len()]);
    }
}
kernel! {
    /// The action of each row of logits `[B, A]` that a uniform number in [0, 1) falls on, and its log-probability.
    pub(crate) fn sample_rows(logits: &[f32], mask: &[bool], uniform: &[f64], softmax: &mut Softmax, actions: &mut [u32], log_prob: &mut [f32]) = sample_body
}

/// Turns logits into log-probabilities, in place: a log-softmax over the allowed actions, minus infinity for the masked ones.
pub fn log_softmax(logits: &mut [f32], mask: &[bool]) {
    let mut max = f32::NEG_INFINITY;
    for (logit, &allowed) in logits.iter_mut().zip(mask) {
        if !allowed {
            *logit = f32::NEG_INFINITY;
        } else if *logit > max {
            max = *logit;
        }
    }
    let sum: f64 = logits.iter().map(|&logit| f64::from(libm::expf(logit - max))).sum();
    let normaliser = max + libm::log(sum) as f32;
    for (logit, &allowed) in logits.iter_mut().zip(mask) {
        if allowed {
            *logit -= normaliser;
        }
    }
}

/// The action that a uniform number in [0, 1) falls on.
pub fn sample(log_prob: &[f32], uniform: f64) -> u32 {
    let mut left = uniform;
    let mut last = 0;
    for (action, &log_prob) in log_prob.iter().enumerate() {
        if log_prob == f32::NEG_INFINITY {
            continue;
        }
        last = action;
        left -= f64::from(libm::expf(log_prob));
        if left < 0.0 {
            break;
        }
    }
    last as u32
}

/// The likeliest action, the first of equals.
pub fn best(log_prob: &[f32]) -> u32 {
    let mut best = 0;
    for (action, &value) in log_prob.iter().enumerate() {
        if value > log_prob[best] {
            best = action;
        }
    }
    best as u32
}

/// The entropy in nats.
pub fn entropy(log_prob: &[f32]) -> f32 {
    -log_prob
        .iter()
        .filter(|&&log_prob| log_prob > f32::NEG_INFINITY)
        .map(|&log_prob| libm::expf(log_prob) * log_prob)
        .sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    #[test]
    fn masked_actions_are_never_drawn_and_frequencies_fit() {
        let mut row = [1.0, 50.0, -1.0, 0.5, 9.0];
        log_softmax(&mut row, &[true, false, true, true, false]);
        let probabilities: Vec<f64> = row.iter().map(|&x| libm::exp(f64::from(x))).collect();
        assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        let mut random = Random::new(&[5]);
        let mut counts = [0.0; 5];
        let n = 100_000;
        for _ in 0..n {
            counts[sample(&row, random.uniform()) as usize] += 1.0;
        }
        for (count, p) in counts.iter().zip(&probabilities) {
            assert!((count / f64::from(n) - p).abs() < 0.01, "{counts:?}");
        }
        assert_eq!((counts[1], counts[4], best(&row)), (0.0, 0.0, 0));
        assert_eq!(sample(&row, 1.0 - 1e-17), 3);
        let e: f64 = probabilities.iter().filter(|&&p| p > 0.0).map(|&p| -p * p.ln()).sum();
        assert!((f64::from(entropy(&row)) - e).abs() < 1e-6);
    }
}
