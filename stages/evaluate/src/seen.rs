//! Market features as a policy sees them, normalised and clipped, smoothed over the steps up to each one:
//! what rules decide by.

use serde::{Deserialize, Serialize};
use stages_core::StageError;
use stages_env::{PortfolioEnv, Simulator};
use std::ops::Range;

/// A feature that a policy sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    /// The name in the observation, without a symbol.
    pub name: String,
    /// The elements of the observation: one for each symbol `[N]`, or the one of a feature by date.
    pub columns: Vec<usize>,
}

impl Feature {
    /// The features of a date: one for each of these elements of an observation.
    pub(crate) fn by_date(observation: &[String], columns: Range<usize>) -> Vec<Self> {
        let feature = |column: usize| Self {
            name: observation[column].clone(),
            columns: vec![column],
        };
        columns.map(feature).collect()
    }

    /// The values `[T, N]` in an environment, N the number of columns.
    pub(crate) fn values<S: Simulator>(&self, env: &PortfolioEnv<S>) -> Vec<f32> {
        let rows = (0..env.common().times.len()).map(|t| env.common().row(t));
        rows.flat_map(|row| self.columns.iter().map(|&column| row[column]))
            .collect()
    }
}

/// The feature of a name.
pub(crate) fn named<'a>(features: &'a [Feature], name: &str) -> Result<&'a Feature, StageError> {
    let found = features.iter().find(|feature| feature.name == name);
    found.ok_or_else(|| StageError::new(format!("the environment has no feature `{name}`")))
}

/// The mean and the standard deviation by which a feature by date is normalised.
pub(crate) fn unit<S: Simulator>(env: &PortfolioEnv<S>, features: &[Feature], name: &str) -> (f32, f32) {
    match (&env.common().spec.normalisation, named(features, name)) {
        (Some(by), Ok(feature)) => (by.offset[feature.columns[0]], by.scale[feature.columns[0]]),
        _ => (0.0, 1.0),
    }
}

/// A mean of the latest values of a feature, within a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Smoothing {
    /// The mean of this many values, of fewer at the start of a world.
    Mean(usize),
    /// The exponential mean with the weight 2 / (n + 1) of the latest value.
    Exponential(usize),
}

impl Smoothing {
    /// The candidates.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let several = [3, 5, 10, 20, 40];
        let means = several.into_iter().flat_map(|n| [Self::Mean(n), Self::Exponential(n)]);
        std::iter::once(Self::Mean(1)).chain(means)
    }

    /// The smoothed values `[T, N]` of a feature; where a value is not a number, the smoothed one is the last
    /// known.
    pub(crate) fn apply(self, values: &[f32], width: usize, worlds: &[Range<usize>]) -> Vec<f32> {
        let mut out = vec![f32::NAN; values.len()];
        if self == Self::Mean(1) {
            out.copy_from_slice(values);
            return out;
        }
        let mut known: Vec<f64> = Vec::new();
        for world in worlds {
            for column in 0..width {
                known.clear();
                let (mut sum, mut mean) = (0.0, f64::NAN);
                for t in world.clone() {
                    let value = f64::from(values[t * width + column]);
                    if value.is_finite() {
                        known.push(value);
                        mean = match self {
                            Self::Mean(n) => {
                                sum += value;
                                if known.len() > n {
                                    sum -= known[known.len() - n - 1];
                                }
                                sum / known.len().min(n) as f64
                            }
                            Self::Exponential(_) if known.len() == 1 => value,
                            Self::Exponential(n) => mean + 2.0 / (n as f64 + 1.0) * (value - mean),
                        };
                    }
                    out[t * width + column] = mean as f32;
                }
            }
        }
        out
    }

    /// The smoothed feature in words; `step` is the word for a step.
    pub(crate) fn describe(self, feature: &str, step: &str) -> String {
        match self {
            Self::Mean(1) => format!("`{feature}`"),
            Self::Mean(n) => format!("the {n}-{step} mean of `{feature}`"),
            Self::Exponential(n) => format!("the {n}-{step} exponential mean of `{feature}`"),
        }
    }
}

/// The word for a step of an environment.
pub(crate) fn step_word<S: Simulator>(env: &PortfolioEnv<S>) -> &'static str {
    let is_intraday = env.common().times.iter().any(|time| time.instant.is_some());
    if is_intraday { "step" } else { "day" }
}

/// The snapshots of each world.
pub(crate) fn worlds<S: Simulator>(env: &PortfolioEnv<S>) -> Vec<Range<usize>> {
    let end = env.common().times.len();
    let starts: Vec<usize> = (0..end).filter(|&t| env.world_start(t) == t).collect();
    let ends = starts.iter().skip(1).copied().chain([end]);
    starts.iter().zip(ends).map(|(&start, end)| start..end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_within_worlds() {
        let values = [1.0, 2.0, f32::NAN, 6.0, 10.0, 20.0];
        let of = |smoothing: Smoothing| smoothing.apply(&values, 1, &[0..4, 4..6]);
        assert_eq!(of(Smoothing::Mean(2)), [1.0, 1.5, 1.5, 4.0, 10.0, 15.0]);
        assert_eq!(of(Smoothing::Exponential(3)), [1.0, 1.5, 1.5, 3.75, 10.0, 15.0]);
        // Later values change nothing.
        for smoothing in Smoothing::all() {
            let of = |count: usize| smoothing.apply(&values[..count], 1, std::slice::from_ref(&(0..count)));
            let (short, long) = (of(4), of(6));
            assert!(short.iter().zip(&long).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
        let two = Smoothing::Mean(2).apply(&[1.0, 10.0, 3.0, 30.0], 2, std::slice::from_ref(&(0..2)));
        assert_eq!(two, [1.0, 10.0, 2.0, 20.0]);
    }
}
