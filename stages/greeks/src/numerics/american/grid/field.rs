//! The values of an option on equidistant nodes, and their steps backward in time.
//!
//! With s the time left to the end of the field's period, `W = e^(r s) V` satisfies the heat equation in `y =
//! ln S + (r - q - sigma^2/2) s`. All drift is thus in the exercise value, and no drift is too large.

use super::stage::{Elimination, Payoff, Region, Stage};
use crate::numerics::formula::Contract;
use libm::{exp, sqrt};

pub(super) struct Field {
    pub market: Contract,
    first: f64,
    pub width: f64,
    /// The time left to the end of the period.
    pub time: f64,
    /// `S` at the nodes, at the end of the period.
    spots: Vec<f64>,
    pub values: Vec<f64>,
    pub region: Option<Region>,
    /// Slope and constant of the value at the end of the period, as lines in the spot beyond the first and
    /// the last node.
    pub lines: [(f64, f64); 2],
    memory: Memory,
}

/// The working vectors of a step.
#[derive(Default)]
struct Memory {
    right: Vec<f64>,
    middle: Vec<f64>,
    work: Vec<f64>,
    elimination: Elimination,
}

impl Field {
    /// The field at the end of its period: the value as a function of `ln S`, or the exercise value where
    /// that is larger. `jumps` are the jumps of the second derivative.
    pub(super) fn new(
        market: &Contract,
        (low, high): (f64, f64),
        intervals: usize,
        value: &dyn Fn(f64) -> f64,
        jumps: &[(f64, f64)],
    ) -> Self {
        let n = intervals + 1;
        let width = (high - low) / intervals as f64;
        let at = |i: usize| low + width * i as f64;
        let spots: Vec<f64> = (0..n).map(|i| exp(at(i))).collect();
        let payoff = |i: usize| market.sign() * (spots[i] - market.strike);
        let waits: Vec<f64> = (0..n).map(|i| value(at(i))).collect();
        let mut values: Vec<f64> = (0..n).map(|i| waits[i].max(payoff(i))).collect();
        // Beside a kink or a jump, the mean of the value over hat functions is used, less what it would be
        // without them, so that their position between nodes does not matter.
        let mut has_kink = false;
        for i in 0..intervals {
            let exercised = |i: usize| payoff(i) > waits[i];
            if exercised(i) == exercised(i + 1) {
                continue;
            }
            let gain = |x: f64| market.payoff(x) - value(x);
            let (mut from, mut to) = (at(i), at(i + 1));
            for _ in 0..40 {
                let middle = 0.5 * (from + to);
                if (gain(middle) > 0.0) == exercised(i) {
                    from = middle;
                } else {
                    to = middle;
                }
            }
            let near = 1e-3 * width;
            let slopes = (gain(from + near) - gain(from - near)).abs() / (2.0 * near);
            let share = (from - at(i)) / width;
            values[i] += slopes * width * cube(1.0 - share) / 6.0;
            values[i + 1] += slopes * width * cube(share) / 6.0;
            has_kink = true;
        }
        for &(x, jump) in jumps {
            let place = (x - low) / width;
            if place > 0.0 && place < intervals as f64 {
                let i = place as usize;
                let share = place - i as f64;
                values[i] += jump * width * width * cube(1.0 - share) * (1.0 - share) / 24.0;
                values[i + 1] -= jump * width * width * cube(share) * share / 24.0;
            }
        }
        let line = |i: usize, j: usize| {
            let slope = (waits[j].max(payoff(j)) - waits[i].max(payoff(i))) / (spots[j] - spots[i]);
            (slope, waits[i].max(payoff(i)) - slope * spots[i])
        };
        let lines = [line(0, 1), line(n - 1, n - 2)];
        let is_exercised = |i: usize| market.flow(spots[i]) > 0.0 && values[i] <= payoff(i);
        let region = (0..n).find(|i| is_exercised(*i)).map(|from| {
            let to = (from..n).take_while(|i| is_exercised(*i)).last().unwrap_or(from);
            // A cubic continues the adjacent values, unless they begin with a kink.
            let ahead = |nodes: [usize; 4]| {
                let [a, b, c, d] = nodes.map(|i| values[i] - payoff(i));
                (4.0 * (a + c) - 6.0 * b - d).max(0.0)
            };
            let below = !has_kink && from >= 4;
            let above = !has_kink && to + 4 < n;
            Region {
                from,
                to,
                below: if below {
                    ahead([1, 2, 3, 4].map(|k| from - k))
                } else {
                    0.0
                },
                above: if above {
                    ahead([1, 2, 3, 4].map(|k| to + k))
                } else {
                    0.0
                },
                low: from as f64,
                high: to as f64,
            }
        });
        let zeros = vec![0.0; n];
        Self {
            market: *market,
            first: low,
            width,
            time: 0.0,
            spots,
            values,
            region,
            lines,
            memory: Memory {
                right: zeros.clone(),
                middle: zeros.clone(),
                work: zeros,
                elimination: Elimination::default(),
            },
        }
    }

    /// The exercise value at a time.
    pub(super) fn payoff(&self, time: f64) -> Payoff<'_> {
        Payoff {
            spots: &self.spots,
            decay: exp(-self.market.drift() * time),
            factor: exp(self.market.rate * time) * self.market.sign(),
            market: &self.market,
        }
    }

    /// Takes a step of TR-BDF2 backward in time.
    pub(super) fn step(&mut self, dt: f64) {
        let mut memory = std::mem::take(&mut self.memory);
        let mut values = std::mem::take(&mut self.values);
        let n = values.len();
        // Both stages take this share of the step: 1 - 1/sqrt 2.
        let share = 1.0 - sqrt(0.5);
        let diffusion = self.market.diffusion();
        let reach = share * dt * diffusion;
        let lambda = reach / (self.width * self.width);
        memory.elimination.set(lambda, n);
        for (right, v) in memory.right[1..].iter_mut().zip(values.windows(3)) {
            *right = v[1] + lambda * (v[0] - 2.0 * v[1] + v[2]);
        }
        if let Some(region) = self.region {
            let payoff = self.payoff(self.time);
            for i in region.from.max(1)..=region.to.min(n - 2) {
                let growth = self.market.rate * payoff.at(i) - self.market.drift() * payoff.slope(i);
                memory.right[i] = values[i] + share * dt * growth;
            }
            if region.from > 1 {
                memory.right[region.from - 1] += lambda * region.below;
            }
            if region.to + 2 < n {
                memory.right[region.to + 1] += lambda * region.above;
            }
        }
        let solve =
            |time: f64, right: &[f64], elimination: &Elimination, out: &mut [f64], work: &mut [f64]| {
                let payoff = self.payoff(time);
                let stage = Stage {
                    payoff,
                    width: self.width,
                    reach,
                    diffusion,
                    right,
                    elimination,
                    ends: [0, 1].map(|end| self.end(end, &payoff, time)),
                };
                stage.solve(out, work)
            };
        let Memory {
            right,
            middle,
            work,
            elimination,
        } = &mut memory;
        let alpha = 2.0 * share;
        solve(self.time + alpha * dt, right, elimination, middle, work);
        let scale = 1.0 / (alpha * (2.0 - alpha));
        let old = scale * (1.0 - alpha) * (1.0 - alpha);
        for ((right, middle), v) in right.iter_mut().zip(middle.iter()).zip(&values) {
            *right = scale * middle - old * v;
        }
        let region = solve(self.time + dt, right, elimination, &mut values, work);
        self.time += dt;
        (self.memory, self.values, self.region) = (memory, values, region);
    }

    /// The value at the first or the last node, beyond which it is a line in the spot, and whether it is the
    /// exercise value.
    fn end(&self, end: usize, payoff: &Payoff<'_>, time: f64) -> (f64, bool) {
        let (slope, constant) = self.lines[end];
        let i = end * (self.spots.len() - 1);
        let waits = slope * self.spots[i] * exp(self.market.diffusion() * time) + constant;
        let exercised = payoff.at(i);
        (waits.max(exercised), exercised >= waits && payoff.flow(i) > 0.0)
    }

    /// `ln S` now, at a position counted in nodes.
    pub(super) fn log_spot(&self, place: f64) -> f64 {
        self.first + self.width * place - self.market.drift() * self.time
    }

    /// The value and three derivatives by `ln S` at the middle node; `None` if the option is exercised there.
    pub(super) fn at_middle(&self) -> Option<[f64; 4]> {
        let i = (self.values.len() - 1) / 2;
        let mut v: [f64; 5] = std::array::from_fn(|k| self.values[i + k - 2]);
        if let Some(region) = self.region {
            if (region.from..=region.to).contains(&i) {
                return None;
            }
            let payoff = self.payoff(self.time);
            let beyond = |a: f64, b: f64, c: f64, d: f64| 4.0 * (a + c) - 6.0 * b - d;
            if i > region.to && i - region.to <= 2 {
                v[2 + region.to - i] = payoff.at(region.to) + region.above;
                if i - region.to == 1 {
                    v[0] = beyond(v[1], v[2], v[3], v[4]);
                }
            } else if i < region.from && region.from - i <= 2 {
                v[2 + region.from - i] = payoff.at(region.from) + region.below;
                if region.from - i == 1 {
                    v[4] = beyond(v[3], v[2], v[1], v[0]);
                }
            }
        }
        let h = self.width;
        let discount = exp(-self.market.rate * self.time);
        Some([
            discount * v[2],
            discount * (v[3] - v[1]) / (2.0 * h),
            discount * (v[3] - 2.0 * v[2] + v[1]) / (h * h),
            discount * (v[4] - 2.0 * (v[3] - v[1]) - v[0]) / (2.0 * h * h * h),
        ])
    }
}

fn cube(x: f64) -> f64 {
    x * x * x
}
