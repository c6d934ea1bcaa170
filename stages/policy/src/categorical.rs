//! The masked categorical distribution: masked actions have probability 0. A multi-discrete action has an
//! independent distribution for each component.

use crate::kernels::math::{exp, ln};
use crate::q_values;
use stages_numerics::kernel;
use std::ops::Range;

/// One element from each of 16 rows.
pub type Lanes = [f32; 16];

/// The softmax of 16 rows of A logits, column by column, separately for each component.
#[derive(Debug, Default)]
pub struct Softmax {
    /// Logits.
    pub x: Vec<Lanes>,
    /// The action mask.
    pub mask: Vec<[bool; 16]>,
    /// Log-probabilities, finite even for masked actions.
    pub log_prob: Vec<Lanes>,
    /// Probabilities; 0 for masked actions.
    pub p: Vec<Lanes>,
    /// The entropies of each component, for an objective to keep.
    pub entropy: Vec<Lanes>,
    /// The columns of each component.
    pub components: Vec<Range<usize>>,
}

impl Softmax {
    /// Copies up to 16 rows `[_, A]` and the action mask of each; `choices` `[K]` are the numbers of choices
    /// of the components, A in all. In missing rows, only choice 0 is allowed.
    #[inline(always)]
    pub fn load<'a>(&mut self, logits: &[f32], masks: impl Iterator<Item = &'a [bool]>, choices: &[u32]) {
        self.components.clear();
        self.components.extend(components(choices));
        let num_actions = num_outputs(choices);
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
        for component in &self.components {
            self.mask[component.start][count..].fill(true);
        }
    }

    /// Computes [`Softmax::log_prob`] and [`Softmax::p`] from [`Softmax::x`].
    #[inline(always)]
    pub fn normalise<const FMA: bool>(&mut self) {
        for k in 0..self.components.len() {
            self.normalise_columns::<FMA>(self.components[k].clone());
        }
    }

    #[inline(always)]
    fn normalise_columns<const FMA: bool>(&mut self, columns: Range<usize>) {
        let (x, mask) = (&self.x[columns.clone()], &self.mask[columns.clone()]);
        let (p, log_prob) = (&mut self.p[columns.clone()], &mut self.log_prob[columns]);
        let mut max = [f32::NEG_INFINITY; 16];
        for (x, mask) in x.iter().zip(mask) {
            for r in 0..16 {
                let logit = if mask[r] { x[r] } else { f32::NEG_INFINITY };
                max[r] = if logit > max[r] { logit } else { max[r] };
            }
        }
        let mut sum = [0.0_f32; 16];
        for ((x, p), mask) in x.iter().zip(&mut *p).zip(mask) {
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
        for ((x, p), log_prob) in x.iter().zip(p).zip(log_prob) {
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

kernel![
    /// [`log_softmax`] of rows `[_, A]`.
    pub(crate) fn log_softmax_rows(
        logits: &mut [f32],
        mask: &[bool],
        choices: &[u32],
        softmax: &mut Softmax,
    ) {
        let num_actions = num_outputs(choices);
        for (logits, mask) in logits.chunks_mut(16 * num_actions).zip(mask.chunks(16 * num_actions)) {
            softmax.load(logits, mask.chunks_exact(num_actions), choices);
            softmax.normalise::<FMA>();
            for (column, mask) in softmax.log_prob.iter_mut().zip(&softmax.mask) {
                for r in 0..16 {
                    column[r] = if mask[r] { column[r] } else { f32::NEG_INFINITY };
                }
            }
            store(&softmax.log_prob, logits);
        }
    }

    /// For each row of logits `[B, A]`, the choices on which the uniform numbers `[B, K]` in [0, 1) fall, and
    /// the joint log-probability of these choices `[B]`.
    pub(crate) fn sample_rows(
        logits: &[f32],
        mask: &[bool],
        choices: &[u32],
        uniform: &[f64],
        softmax: &mut Softmax,
        actions: &mut [u32],
        log_prob: &mut [f32],
    ) {
        let (num_actions, k) = (num_outputs(choices), choices.len());
        for (i, log_prob) in log_prob.chunks_mut(16).enumerate() {
            let rows = 16 * i..16 * i + log_prob.len();
            let range = rows.start * num_actions..rows.end * num_actions;
            softmax.load(&logits[range.clone()], mask[range].chunks_exact(num_actions), choices);
            softmax.normalise::<FMA>();
            let (uniform, actions) = (
                &uniform[rows.start * k..rows.end * k],
                &mut actions[rows.start * k..rows.end * k],
            );
            let mut action_log_prob = [0.0_f32; 16];
            for (component, columns) in softmax.components.iter().enumerate() {
                let mut left = [0.0_f32; 16];
                for (left, uniform) in left.iter_mut().zip(uniform.chunks_exact(k)) {
                    *left = uniform[component] as f32;
                }
                // The choice on which the number falls; the last allowed, where rounding leaves a remainder.
                let (mut choice, mut chosen) = ([0_u32; 16], [0.0_f32; 16]);
                for j in columns.clone() {
                    let (p, column, mask) = (&softmax.p[j], &softmax.log_prob[j], &softmax.mask[j]);
                    for r in 0..16 {
                        let reached = mask[r] && left[r] >= 0.0;
                        choice[r] = if reached { (j - columns.start) as u32 } else { choice[r] };
                        chosen[r] = if reached { column[r] } else { chosen[r] };
                        left[r] -= p[r];
                    }
                }
                for (action, choice) in actions.chunks_exact_mut(k).zip(choice) {
                    action[component] = choice;
                }
                for (sum, chosen) in action_log_prob.iter_mut().zip(chosen) {
                    *sum += chosen;
                }
            }
            log_prob.copy_from_slice(&action_log_prob[..log_prob.len()]);
        }
    }
];

/// A, the total number of logits of components with these numbers of choices.
pub fn num_outputs(choices: &[u32]) -> usize {
    choices.iter().map(|&n| n as usize).sum()
}

/// The range of each component's logits within a row.
pub fn components(choices: &[u32]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut end = 0;
    choices.iter().map(move |&n| {
        let start = end;
        end += n as usize;
        start..end
    })
}

/// Turns the logits of one component into log-probabilities, in place: a log-softmax over the allowed
/// choices, minus infinity for the masked ones.
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

/// The choice that a uniform number in [0, 1) falls on.
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

/// The likeliest action; the first in case of ties.
pub fn best(log_prob: &[f32]) -> u32 {
    let mut best = 0;
    for (action, &value) in log_prob.iter().enumerate() {
        if value > log_prob[best] {
            best = action;
        }
    }
    best as u32
}

/// Draws the choice of each component `[K]` from a row of log-probabilities `[A]`, by a number in [0, 1) for
/// each; returns the log-probability of the action.
pub fn sample_action(
    log_prob: &[f32],
    choices: &[u32],
    mut uniform: impl FnMut() -> f64,
    action: &mut [u32],
) -> f32 {
    let mut sum = 0.0;
    for (choice, columns) in action.iter_mut().zip(components(choices)) {
        let log_prob = &log_prob[columns];
        *choice = sample(log_prob, uniform());
        sum += log_prob[*choice as usize];
    }
    sum
}

/// The likeliest choice of each component `[K]`; the first in case of ties.
pub fn best_action(log_prob: &[f32], choices: &[u32], action: &mut [u32]) {
    for (choice, columns) in action.iter_mut().zip(components(choices)) {
        *choice = best(&log_prob[columns]);
    }
}

/// For each component `[K]`, the allowed choice with the largest logit, the first in case of ties; choice 0
/// where none is allowed.
pub fn best_allowed(logits: &[f32], mask: &[bool], choices: &[u32], action: &mut [u32]) {
    for (choice, columns) in action.iter_mut().zip(components(choices)) {
        *choice = q_values::best(&logits[columns.clone()], &mask[columns]) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::dispatch::InstructionSet;
    use stages_numerics::random::Random;

    #[test]
    fn the_best_allowed_choice_of_each_component() {
        let mut action = [9; 2];
        best_allowed(
            &[1.0, 5.0, 2.0, 0.0, 0.0],
            &[true, false, true, true, true],
            &[3, 2],
            &mut action,
        );
        assert_eq!(action, [2, 0]);
        best_allowed(
            &[f32::NAN, 5.0, 2.0, 0.0, 1.0],
            &[false, true, true, false, true],
            &[3, 2],
            &mut action,
        );
        assert_eq!(action, [1, 1]);
    }

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
        let entropy: f32 = -row
            .iter()
            .filter(|x| x.is_finite())
            .map(|&x| libm::expf(x) * x)
            .sum::<f32>();
        let e: f64 = probabilities.iter().filter(|&&p| p > 0.0).map(|&p| -p * p.ln()).sum();
        assert!((f64::from(entropy) - e).abs() < 1e-6);
    }

    /// The kernels for 16 rows agree with the plain functions for one component of one row.
    #[test]
    fn components_are_independent() {
        let choices = [3, 1, 4];
        let (rows, a) = (37, num_outputs(&choices));
        let random = &mut Random::new(&[6]);
        let logits: Vec<f32> = (0..rows * a).map(|_| random.normal() as f32).collect();
        let mut mask: Vec<bool> = (0..rows * a).map(|_| random.uniform() < 0.6).collect();
        for row in mask.chunks_exact_mut(a) {
            // One choice of each is allowed.
            (row[2], row[3], row[4]) = (true, true, true);
        }
        let uniform: Vec<f64> = (0..rows * choices.len()).map(|_| random.uniform()).collect();
        for instructions in InstructionSet::available() {
            let (mut softmax, mut wanted) = (Softmax::default(), logits.clone());
            log_softmax_rows(instructions, &mut wanted, &mask, &choices, &mut softmax);
            let (mut actions, mut log_prob) = (vec![0; rows * choices.len()], vec![0.0; rows]);
            let (actions_out, log_prob_out) = (&mut actions, &mut log_prob);
            sample_rows(
                instructions,
                &logits,
                &mask,
                &choices,
                &uniform,
                &mut softmax,
                actions_out,
                log_prob_out,
            );
            for i in 0..rows {
                let (row, action) = (&wanted[i * a..(i + 1) * a], &actions[3 * i..3 * i + 3]);
                for columns in components(&choices) {
                    let mut plain = logits[i * a..][columns.clone()].to_vec();
                    log_softmax(&mut plain, &mask[i * a..][columns.clone()]);
                    let sum: f32 = plain.iter().map(|&x| libm::expf(x)).sum();
                    assert!((sum - 1.0).abs() < 1e-5);
                    for (x, y) in row[columns].iter().zip(&plain) {
                        assert!(x == y || (x - y).abs() < 1e-5, "{x} {y}");
                    }
                }
                let (mut drawn, mut uniform) = ([0; 3], uniform[3 * i..].iter().copied());
                let sum = sample_action(row, &choices, || uniform.next().unwrap(), &mut drawn);
                assert_eq!(action, drawn);
                assert!((sum - log_prob[i]).abs() < 1e-5);
                let mut likeliest = [9; 3];
                best_action(row, &choices, &mut likeliest);
                assert_eq!(likeliest[1], 0);
                assert!(row[likeliest[0] as usize] >= row[0].max(row[1]).max(row[2]));
            }
        }
    }
}
