//! The best policy, by dynamic programming over the process that the tables are drawn from.
//!
//! With k steps left, in position p, seeing the feature f, going to position a earns in expectation
//! `100 (volatility signal a f - cost |a - p|)` and then the value of k - 1 steps from a: a linear function
//! of f for each a. Features are independent of the past, so that `V_k(p) = E[max_a (slope_a f + offset_a)]`
//! over a standard normal f, which is exact: the maximum is piecewise linear, and the mean of each piece
//! follows from the normal distribution and density at its ends.

use super::config::{LookupConfig, POSITIONS};
use stages_numerics::normal::{cdf, pdf};

/// The optimal policy of a task and its value.
#[derive(Clone, Debug)]
pub struct Optimal {
    /// The expected reward of a unit of position, for each unit of the feature.
    slope: f64,
    /// The cost of a unit of change.
    cost: f64,
    /// `[k][p]`: the value of k steps from position p, before the feature is observed.
    value: Vec<[f64; POSITIONS.len()]>,
}

impl Optimal {
    /// The optimal policy of a configuration.
    pub fn new(config: &LookupConfig) -> Self {
        let mut this = Self {
            slope: 100.0 * config.volatility * config.signal,
            cost: 100.0 * config.cost,
            value: vec![[0.0; POSITIONS.len()]],
        };
        for left in 1..=config.episode_length as usize {
            let value = std::array::from_fn(|p| mean_of_maximum(&this.lines(left, p)));
            this.value.push(value);
        }
        this
    }

    /// For each action, the slope and offset of its value as a function of the feature.
    fn lines(&self, left: usize, position: usize) -> [(f64, f64); POSITIONS.len()] {
        std::array::from_fn(|a| {
            let change = f64::from(POSITIONS[a] - POSITIONS[position]).abs();
            let offset = self.value[left - 1][a] - self.cost * change;
            (self.slope * f64::from(POSITIONS[a]), offset)
        })
    }

    /// The expected return of an episode.
    pub fn expected_return(&self) -> f64 {
        let flat = POSITIONS.iter().position(|&p| p == 0.0).unwrap_or(0);
        self.value[self.value.len() - 1][flat]
    }

    /// The best action with `left` steps left (1 or more), in a position (an index), seeing a feature.
    pub fn action(&self, left: usize, position: usize, feature: f32) -> u32 {
        let left = left.clamp(1, self.value.len() - 1);
        let worth = |(slope, offset): (f64, f64)| slope * f64::from(feature) + offset;
        let lines = self.lines(left, position);
        let best = (0..lines.len()).max_by(|&a, &b| worth(lines[a]).total_cmp(&worth(lines[b])));
        best.unwrap_or(0) as u32
    }
}

/// The mean of the maximum of several lines (slope, offset) at a standard normal point. Slopes must ascend.
fn mean_of_maximum(lines: &[(f64, f64)]) -> f64 {
    // The upper envelope from left to right: each line, and the point from which it is the maximum.
    let mut envelope: Vec<(usize, f64)> = Vec::with_capacity(lines.len());
    for (i, &(slope, offset)) in lines.iter().enumerate() {
        let mut from = f64::NEG_INFINITY;
        while let Some(&(j, start)) = envelope.last() {
            let (other, below) = lines[j];
            if slope == other {
                // Parallel lines: the higher one stays.
                if offset <= below {
                    from = f64::INFINITY;
                    break;
                }
                envelope.pop();
                continue;
            }
            from = (below - offset) / (slope - other);
            if from > start {
                break;
            }
            envelope.pop();
            from = f64::NEG_INFINITY;
        }
        if from < f64::INFINITY {
            envelope.push((i, from));
        }
    }
    let end = |k: usize| envelope.get(k + 1).map_or(f64::INFINITY, |next| next.1);
    envelope
        .iter()
        .enumerate()
        .map(|(k, &(i, from))| {
            let ((slope, offset), to) = (lines[i], end(k));
            offset * (cdf(to) - cdf(from)) + slope * (pdf(from) - pdf(to))
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    /// The mean of the maximum of the lines, by a sum over a fine grid of standard normal points.
    fn by_quadrature(lines: &[(f64, f64)]) -> f64 {
        let n = 400_000;
        let h = 20.0 / f64::from(n);
        (0..n)
            .map(|i| {
                let x = -10.0 + (f64::from(i) + 0.5) * h;
                let best = lines.iter().map(|(m, b)| m * x + b).fold(f64::NEG_INFINITY, f64::max);
                best * pdf(x) * h
            })
            .sum()
    }

    #[test]
    fn the_mean_of_a_maximum_is_its_integral() {
        let mut random = Random::new(&[1]);
        for _ in 0..30 {
            let mut lines: Vec<(f64, f64)> = (0..5).map(|_| (random.normal(), random.normal())).collect();
            lines.push((lines[0].0, lines[0].1 - 0.1));
            lines.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (exact, sum) = (mean_of_maximum(&lines), by_quadrature(&lines));
            assert!((exact - sum).abs() < 1e-7, "{lines:?}: {exact} {sum}");
        }
    }

    /// Without costs the sign of the feature decides: E|f| = sqrt(2 / pi) a step.
    #[test]
    fn without_costs_the_value_is_known() {
        let config = LookupConfig {
            cost: 0.0,
            ..LookupConfig::default()
        };
        let optimal = Optimal::new(&config);
        let each = 0.3 * (2.0 / std::f64::consts::PI).sqrt();
        assert!((optimal.expected_return() - 252.0 * each).abs() < 1e-9);
        assert_eq!(optimal.action(3, 0, 0.01), 4);
        assert_eq!(optimal.action(3, 4, -0.01), 0);
    }

    /// Run on the process itself, the policy earns the value computed for it, and more than threshold rules.
    #[test]
    fn it_earns_what_it_is_worth_and_more_than_others() {
        let config = LookupConfig::default();
        let optimal = Optimal::new(&config);
        let mut random = Random::new(&[2]);
        let episodes = 4000;
        let play = |random: &mut Random, act: &dyn Fn(usize, usize, f32) -> u32| {
            let mut total = 0.0;
            for _ in 0..episodes {
                let mut position = 2;
                for step in 0..252 {
                    let feature = random.normal();
                    let action = act(252 - step, position, feature as f32) as usize;
                    let (to, from) = (f64::from(POSITIONS[action]), f64::from(POSITIONS[position]));
                    total += 100.0 * (0.003 * to * feature - 0.0005 * (to - from).abs());
                    position = action;
                }
            }
            total / f64::from(episodes)
        };
        let mean = play(&mut random, &|left, p, f| optimal.action(left, p, f));
        let expected = optimal.expected_return();
        // The standard error of the mean over 4,000 episodes is some 0.06.
        assert!((mean - expected).abs() < 0.3, "{mean} {expected}");
        for threshold in [0.0, 0.1, 0.15, 0.2, 0.3] {
            let other = play(&mut random, &|_, p, f| match f {
                f if f > threshold => 4,
                f if f < -threshold => 0,
                _ => p as u32,
            });
            assert!(other < expected + 0.3, "{threshold}: {other} {expected}");
        }
    }
}
