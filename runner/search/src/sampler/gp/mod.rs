//! Bayesian optimisation: a Gaussian process of the loss, and the point with the largest expected improvement
//! (Jones, Schonlau and Welch, 1998), in logarithm (Ament and others, 2023).
//!
//! A trial is its point in the unit cube; a setting that is not active is at the middle of its coordinate,
//! and different choices are at distance 1. The process is fitted to the losses. Where trials are judged at
//! different rungs, it is fitted to the logarithm of the trial's place in the order of all (see [`rank`]). A
//! trial that failed or breaks a constraint counts as the worst one that did not. Trials under way count as
//! if they had come out as the process expects.

mod minimise;
mod regression;

use super::{Ask, Observed, Sampler, rank, sobol};
use crate::Settings;
use crate::space::Space;
use regression::{Kernel, Points, Process};
use stages_numerics::normal;
use stages_numerics::random::Random;

/// The most trials that the process is given: the best half of them, and the latest.
const MOST: usize = 300;

/// The most trials that the kernel is fitted to.
const FITTED: usize = 120;

/// The points at which the search for the largest expected improvement begins: of the Sobol sequence, and
/// around each of the best trials.
const SPREAD: u32 = 1024;
const AROUND: usize = 32;

/// The best of these that are improved, and the steps of each for a coordinate.
const STARTS: usize = 6;
const STEPS: usize = 40;

/// Bayesian optimisation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gp;

impl Sampler for Gp {
    fn propose(&self, ask: &Ask<'_>) -> Settings {
        let startup = || ask.space.settings(|i, _| sobol(ask.seed, ask.trial, i));
        if ask.is_startup() || ask.space.parameters.is_empty() {
            return ask.untried([startup()]);
        }
        let best = best_points(ask);
        let settings = |point: &Vec<f64>| ask.space.settings(|i, _| point[i]);
        match best {
            Some(points) => ask.untried(points.iter().map(settings)),
            None => ask.untried([startup()]),
        }
    }

    fn refuses(&self, _: &Space, objectives: usize) -> Option<&'static str> {
        (objectives > 1).then_some("`sampler: gp` has one objective\nuse `sampler: tpe`")
    }
}

/// The points with the largest expected improvement found, best first.
fn best_points(ask: &Ask<'_>) -> Option<Vec<Vec<f64>>> {
    let order = rank::order(ask.observed);
    let observed = chosen(ask.observed, &order, MOST);
    let values = values(&observed);
    let mut points = Points {
        rows: observed
            .iter()
            .map(|observed| row(ask.space, &observed.settings))
            .collect(),
        is_choice: ask
            .space
            .parameters
            .iter()
            .map(|parameter| parameter.is_choice())
            .collect(),
    };
    let kernel = fitted(&points, &values);
    let process = Process::new(&points, &values, kernel.clone())?;
    let target = points
        .rows
        .iter()
        .map(|row| process.mean(row))
        .fold(f64::INFINITY, f64::min);
    let mut by_mean: Vec<(f64, Vec<f64>)> =
        points.rows.iter().map(|row| (process.mean(row), row.clone())).collect();
    by_mean.sort_by(|a, b| a.0.total_cmp(&b.0));
    let incumbents: Vec<Vec<f64>> = by_mean.into_iter().take(4).map(|(_, row)| row).collect();
    let mut running: Vec<Vec<f64>> = ask.running.iter().map(|settings| row(ask.space, settings)).collect();
    running.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let mut extended = values;
    extended.extend(running.iter().map(|row| process.mean(row)));
    points.rows.extend(running);
    let process = Process::new(&points, &extended, kernel)?;
    let gain = |point: &[f64]| {
        let (mean, variance) = process.posterior(point);
        let std = variance.sqrt();
        log_improvement((target - mean) / std) + libm::log(std)
    };
    let mut random = ask.random();
    Some(maximise(ask, &process, &incumbents, gain, &mut random))
}

/// The best half of so many trials, and the latest others, in order.
fn chosen<'a>(observed: &'a [Observed], order: &[usize], most: usize) -> Vec<&'a Observed> {
    let mut is_chosen = vec![observed.len() <= most; observed.len()];
    order.iter().take(most / 2).for_each(|&i| is_chosen[i] = true);
    let left = most - most / 2;
    let others = (0..observed.len()).rev().filter(|&i| !is_chosen[i]).take(left);
    others
        .collect::<Vec<usize>>()
        .into_iter()
        .for_each(|i| is_chosen[i] = true);
    observed
        .iter()
        .zip(is_chosen)
        .filter(|(_, is_chosen)| *is_chosen)
        .map(|(observed, _)| observed)
        .collect()
}

/// The coordinates of settings.
fn row(space: &Space, settings: &Settings) -> Vec<f64> {
    space.point(settings).into_iter().map(|at| at.unwrap_or(0.5)).collect()
}

/// The losses, or the logarithms of places if they are of different rungs, with mean 0 and variance 1.
fn values(observed: &[&Observed]) -> Vec<f64> {
    let is_one = observed.windows(2).all(|pair| pair[0].rung == pair[1].rung);
    let mut values: Vec<f64> = if is_one {
        observed
            .iter()
            .map(|observed| observed.losses.first().copied().unwrap_or(f64::NAN))
            .collect()
    } else {
        let owned: Vec<Observed> = observed.iter().map(|&observed| observed.clone()).collect();
        let mut values = vec![0.0; observed.len()];
        for (place, i) in rank::order(&owned).into_iter().enumerate() {
            values[i] = libm::log(place as f64 + 1.0);
        }
        values
    };
    let is_sound: Vec<bool> = observed.iter().map(|observed| rank::class(observed) == 0).collect();
    let sound = values.iter().zip(&is_sound).filter(|(_, is_sound)| **is_sound);
    let mut sorted: Vec<f64> = sound.map(|(value, _)| *value).collect();
    sorted.sort_by(f64::total_cmp);
    let quantile = |part: usize| {
        sorted
            .get((part * sorted.len().saturating_sub(1) + 2) / 4)
            .copied()
            .unwrap_or(0.0)
    };
    // Tukey's upper fence: a training that diverged would leave the others without differences.
    let fence = quantile(3) + 1.5 * (quantile(3) - quantile(1));
    let worst = quantile(4).min(fence);
    for (value, is_sound) in values.iter_mut().zip(is_sound) {
        *value = if is_sound { value.min(worst) } else { worst };
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n;
    let std = if variance > 0.0 { variance.sqrt() } else { 1.0 };
    values.iter().map(|value| (value - mean) / std).collect()
}

/// The kernel fitted to the points, or to some of them evenly spread over the order of their values.
fn fitted(points: &Points, values: &[f64]) -> Kernel {
    let n = values.len();
    if n <= FITTED {
        return Kernel::fit(points, values);
    }
    let order = stages_numerics::statistics::order(values);
    // The best third of the fitted points, then others at even distances.
    let best = FITTED / 3;
    let rest = FITTED - best;
    let mut places: Vec<usize> = (0..best).collect();
    places.extend((0..rest).map(|i| best + i * (n - best) / rest));
    let some = Points {
        rows: places.iter().map(|&place| points.rows[order[place]].clone()).collect(),
        is_choice: points.is_choice.clone(),
    };
    let values: Vec<f64> = places.iter().map(|&place| values[order[place]]).collect();
    Kernel::fit(&some, &values)
}

/// log(phi(z) + z Phi(z)): the logarithm of the expected improvement over the standard deviation, where the
/// mean is z standard deviations below the target.
fn log_improvement(z: f64) -> f64 {
    if z < -25.0 {
        // The first terms of the asymptotic series.
        let square = z * z;
        let series = libm::log1p((15.0 / square - 3.0) / square);
        return -0.5 * square - libm::log((2.0 * std::f64::consts::PI).sqrt() * square) + series;
    }
    libm::log(normal::pdf(z) + z * normal::cdf(z))
}

/// The points with the largest gain found, best first: the best of many points, each improved by an evolution
/// strategy of one parent and one child, whose steps grow by success.
fn maximise(
    ask: &Ask<'_>,
    process: &Process<'_>,
    incumbents: &[Vec<f64>],
    gain: impl Fn(&[f64]) -> f64,
    random: &mut Random,
) -> Vec<Vec<f64>> {
    let space = ask.space;
    // The middle of the cell, and of the coordinate of a setting that is not active.
    let snapped = |point: &[f64]| row(space, &space.settings(|i, _| point[i]));
    let shift = random.next_u64();
    let mut points: Vec<Vec<f64>> = (0..SPREAD)
        .map(|k| {
            snapped(
                &(0..space.parameters.len())
                    .map(|i| sobol(shift, k, i))
                    .collect::<Vec<f64>>(),
            )
        })
        .collect();
    for incumbent in incumbents {
        for k in 0..AROUND {
            let size = [0.3, 0.1, 0.03, 0.01][k % 4];
            points.push(snapped(&mutated(space, process, incumbent, size, random)));
        }
    }
    let mut best: Vec<(f64, Vec<f64>)> = points.into_iter().map(|point| (gain(&point), point)).collect();
    best.sort_by(|a, b| b.0.total_cmp(&a.0));
    best.truncate(STARTS);
    for (value, point) in &mut best {
        let mut size = 0.05;
        for _ in 0..STEPS * point.len() {
            let other = snapped(&mutated(space, process, point, size, random));
            let new = gain(&other);
            if new > *value {
                (*value, *point) = (new, other);
                size = (size * 1.5).min(0.5);
            } else {
                // One success in five keeps the size.
                size = (size * 0.904).max(1e-6);
            }
        }
    }
    best.sort_by(|a, b| b.0.total_cmp(&a.0));
    best.into_iter().map(|(_, point)| point).collect()
}

/// A point near another: each number moves by a normal number times `size` in units of the length scale, at
/// most of the range; one choice in so many as there are parameters is drawn anew.
fn mutated(space: &Space, process: &Process<'_>, point: &[f64], size: f64, random: &mut Random) -> Vec<f64> {
    let n = point.len() as u64;
    let mutate = |(k, at): (usize, &f64)| {
        if space.parameters[k].is_choice() {
            return if random.below(n) == 0 { random.uniform() } else { *at };
        }
        (at + size * process.length(k).min(1.0) * random.normal()).clamp(0.0, 1.0)
    };
    point.iter().enumerate().map(mutate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By mpmath with 40 digits: `log(npdf(z) + z * ncdf(z))`.
    #[test]
    fn improvements() {
        for (z, exact) in [
            (-40.0, -808.298_568_356_62),
            (-26.0, -345.439_546_722_318),
            (-24.0, -295.280_223_234_804_9),
            (-3.0, -7.869_686_059_603_029),
            (0.0, -0.918_938_533_204_672_8),
            (2.0, 0.697_383_545_788_228_4),
        ] {
            assert!((log_improvement(z) - exact).abs() < 1e-6, "{z}");
        }
    }

    /// Losses are used as they are on one rung, and by place where there are several; those that failed or
    /// break a constraint are as bad as the worst of the others.
    #[test]
    fn values_of_trials() {
        let observed = |rung, loss, violation| Observed {
            trial: 0,
            settings: Settings::new(),
            rung,
            losses: vec![loss],
            violation,
        };
        let values = |all: &[Observed]| values(&all.iter().collect::<Vec<_>>());
        let one = values(&[
            observed(0, 1.0, 0.0),
            observed(0, 3.0, 0.0),
            observed(0, f64::INFINITY, 0.0),
            observed(0, -5.0, 0.1),
        ]);
        let half = 1.0 / 3_f64.sqrt();
        for (value, exact) in one.iter().zip([-3.0 * half, half, half, half]) {
            assert!((value - exact).abs() < 1e-12, "{one:?}");
        }
        // An outlier is taken down to the fence: the quartiles are 2 and 6.
        let mut many: Vec<Observed> = (0..9).map(|i| observed(0, f64::from(i), 0.0)).collect();
        many[8].losses = vec![1e9];
        let many = values(&many);
        assert!(
            ((many[8] - many[6]) / (many[6] - many[2]) - 1.5).abs() < 1e-12,
            "{many:?}"
        );
        let several = values(&[observed(0, -9.0, 0.0), observed(1, 4.0, 0.0), observed(1, 3.0, 0.0)]);
        assert!(several[2] < several[1] && several[1] < several[0]);
    }
}
