//! The covariance matrix adaptation evolution strategy (Hansen, "The CMA evolution strategy: a tutorial",
//! 2016), over numbers alone.
//!
//! The distribution is a function of the trials seen: each generation's worth of them, in the order of their
//! numbers, is one update, whichever distribution they were drawn from. A trial far from the mean (a given
//! one, or one drawn before the distribution had moved) counts at a bounded distance (Hansen, "Injecting
//! external solutions into CMA-ES", 2011). The first mean is the best of the startup's trials and of those of
//! earlier searches.

use super::{Ask, Observed, STARTUP, Sampler, rank, sobol};
use crate::Settings;
use crate::space::Space;
use stages_numerics::cma::Constants;
use stages_numerics::eigen::eigen;
use stages_numerics::random::Random;

/// The first standard deviation of each coordinate, as Optuna's: the bounds are three of them from the
/// centre.
const STD: f32 = 1.0 / 6.0;

/// The draws that are made for one within the bounds and untried.
const DRAWS: usize = 100;

/// The smallest eigenvalue of the covariance.
const LEAST: f64 = 1e-12;

/// CMA-ES.
#[derive(Clone, Copy, Debug)]
pub(super) struct CmaEs;

impl Sampler for CmaEs {
    fn propose(&self, ask: &Ask<'_>) -> Settings {
        let n = ask.space.parameters.len();
        if n == 0 {
            return Settings::new();
        }
        if ask.is_startup() {
            return ask.untried([ask.space.settings(|i, _| sobol(ask.seed, ask.trial, i))]);
        }
        let mut random = ask.random();
        let distribution = Distribution::replay(ask, n);
        let (root, _) = distribution.roots();
        ask.untried((0..DRAWS).map(|_| {
            let point = distribution.draw(&root, &mut random);
            ask.space.settings(|i, _| f64::from(point[i]))
        }))
    }

    fn refuses(&self, space: &Space, objectives: usize) -> Option<&'static str> {
        if objectives > 1 {
            return Some("`sampler: cma_es` has one objective\nuse `sampler: tpe`");
        }
        let is_number =
            |parameter: &crate::space::Parameter| !parameter.is_choice() && parameter.domain.when.is_empty();
        let numbers = space.parameters.iter().all(is_number);
        (!numbers).then_some(
            "`sampler: cma_es` searches numbers alone, without choices and conditions\nuse `sampler: tpe`",
        )
    }
}

/// A normal distribution of points `[n]` with the paths of its evolution.
#[derive(Debug)]
struct Distribution {
    mean: Vec<f32>,
    std: f32,
    std_path: Vec<f32>,
    covariance_path: Vec<f32>,
    covariance: Vec<f32>,
}

impl Distribution {
    /// The distribution after the trials seen.
    fn replay(ask: &Ask<'_>, n: usize) -> Self {
        let point = |observed: &Observed| -> Vec<f32> {
            let point = ask.space.point(&observed.settings);
            point.iter().map(|at| at.unwrap_or(0.5) as f32).collect()
        };
        // Smaller by 2 than the tutorial's: with few trials, more generations measured better.
        let population = (2 + (3.0 * libm::log(n as f64)) as usize).max(4);
        let constants = Constants::new(population, n, true);
        // Trials of earlier searches are before all others.
        let is_start =
            |observed: &Observed| observed.trial == u32::MAX || (observed.trial as usize) < STARTUP;
        let (start, own) = ask.observed.split_at(ask.observed.partition_point(is_start));
        let best = rank::order(start).first().map(|&i| &start[i]);
        let mut distribution = Self {
            mean: best.map_or_else(|| vec![0.5; n], point),
            std: STD,
            std_path: vec![0.0; n],
            covariance_path: vec![0.0; n],
            covariance: (0..n * n).map(|i| f32::from(i % (n + 1) == 0)).collect(),
        };
        for (number, generation) in own.chunks_exact(population).enumerate() {
            if generation.iter().all(|observed| rank::class(observed) == 2) {
                continue;
            }
            let mut costs = vec![0.0; population];
            for (place, i) in rank::order(generation).into_iter().enumerate() {
                costs[i] = place as f64;
            }
            let points: Vec<Vec<f32>> = generation.iter().map(point).collect();
            distribution.learn(&constants, &points, &costs, number as u64);
        }
        distribution
    }

    /// C^(1/2) and C^(-1/2).
    fn roots(&self) -> (Vec<f64>, Vec<f64>) {
        let n = self.mean.len();
        let c: Vec<f64> = (0..n * n)
            .map(|i| 0.5 * (f64::from(self.covariance[i]) + f64::from(self.covariance[i % n * n + i / n])))
            .collect();
        let (values, vectors) = eigen(&c, n);
        let power = |of: fn(f64) -> f64| {
            let powers: Vec<f64> = values.iter().map(|value| of(value.max(LEAST).sqrt())).collect();
            let element = |i: usize| {
                let (a, b) = (&vectors[i / n * n..][..n], &vectors[i % n * n..][..n]);
                (0..n).map(|k| a[k] * powers[k] * b[k]).sum()
            };
            (0..n * n).map(element).collect()
        };
        (power(|root| root), power(|root| 1.0 / root))
    }

    /// Draws a point within the bounds, or one on them if many draws are outside.
    fn draw(&self, root: &[f64], random: &mut Random) -> Vec<f32> {
        let n = self.mean.len();
        let mut point = Vec::new();
        for _ in 0..10 * n {
            let z: Vec<f32> = (0..n).map(|_| random.normal() as f32).collect();
            let y = product(root, &z);
            point = self.mean.iter().zip(&y).map(|(mean, y)| mean + self.std * y).collect();
            if point.iter().all(|at| (0.0..=1.0).contains(at)) {
                break;
            }
        }
        point
    }

    /// Learns from a generation's points by their costs.
    fn learn(&mut self, constants: &Constants, points: &[Vec<f32>], costs: &[f64], number: u64) {
        let n = self.mean.len();
        let (_, inverse_root) = self.roots();
        // Of a normal vector, few are as long.
        let longest = (n as f32).sqrt() + 2.0 * n as f32 / (n as f32 + 2.0);
        let member = |point: &Vec<f32>| {
            let mut y: Vec<f32> = point
                .iter()
                .zip(&self.mean)
                .map(|(at, mean)| (at - mean) / self.std)
                .collect();
            let mut z = product(&inverse_root, &y);
            let length = z.iter().map(|z| z * z).sum::<f32>().sqrt();
            if length > longest {
                let by = longest / length;
                z.iter_mut().chain(&mut y).for_each(|x| *x *= by);
            }
            (z, y)
        };
        type Member = (Vec<f32>, Vec<f32>);
        let members: Vec<Member> = points.iter().map(member).collect();
        let weights = constants.weights(costs);
        let sum = |of: fn(&Member) -> &Vec<f32>| -> Vec<f32> {
            let mut sum = vec![0.0; n];
            for (weight, member) in weights.iter().zip(&members).filter(|(weight, _)| **weight > 0.0) {
                sum.iter_mut()
                    .zip(of(member))
                    .for_each(|(sum, x)| *sum += *weight as f32 * x);
            }
            sum
        };
        let (z_sum, y_sum) = (sum(|(z, _)| z), sum(|(_, y)| y));
        for (mean, y) in self.mean.iter_mut().zip(&y_sum) {
            *mean = (*mean + self.std * y).clamp(0.0, 1.0);
        }
        let moves = constants.advance_std(&mut self.std, &mut self.std_path, &z_sum, number);
        constants.advance_path(&mut self.covariance_path, &y_sum, moves);
        let weights = constants.covariance_weights(&weights, members.iter().map(|(z, _)| z.as_slice()));
        let before: Vec<f64> = self.covariance.iter().copied().map(f64::from).collect();
        for (i, row) in self.covariance.chunks_exact_mut(n).enumerate() {
            let members = weights
                .iter()
                .zip(&members)
                .map(|(weight, (_, y))| (*weight, y.as_slice()));
            constants.advance_row(i, &before[i * n..][..n], &self.covariance_path, members, moves, row);
        }
    }
}

/// The product of a matrix `[n, n]` and a vector.
fn product(matrix: &[f64], vector: &[f32]) -> Vec<f32> {
    let row = |row: &[f64]| row.iter().zip(vector).map(|(a, &b)| a * f64::from(b)).sum::<f64>() as f32;
    matrix.chunks_exact(vector.len()).map(row).collect()
}
