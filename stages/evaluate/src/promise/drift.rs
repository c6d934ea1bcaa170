//! Drift of an account's features: recent rows that are unlike every window of the training.
//!
//! The distance of two samples is that of Kolmogorov and Smirnov. What is normal for a feature, its training
//! says itself: the distances of its own windows, as long as the recent rows, from the rest of it. They hold
//! whatever a feature does over weeks: trends, seasons, regimes.

use crate::drift::kolmogorov_smirnov;
use crate::performance::quantile;

/// The least number of recent values.
const LEAST: usize = 10;

/// The least number of windows of the training, side by side.
const WINDOWS: usize = 4;

/// The windows of the training that begin within the length of one.
const OVERLAP: usize = 4;

/// The part of the way from the median distance to the largest by which drift begins beyond the largest.
const MARGIN: f64 = 0.25;

/// The quantile of the training's distances below which drift ends.
const END: f64 = 0.9;

/// The names of the features that have drifted, in the order of `names`.
///
/// `training` are the rows `[T, F]` of the training in order of time, `recent` those `[R, F]` of the account,
/// F the number of names; values that are not finite are missing. `drifted` are the features that had
/// drifted the night before: drift begins at a distance beyond the training's largest and ends within nine
/// tenths of its distances, so that a feature at a limit does not come and go. Features with fewer than 10
/// recent values, or fewer than four windows of training, have not drifted.
pub fn drifted(names: &[String], training: &[f32], recent: &[f32], drifted: &[String]) -> Vec<String> {
    let has_drifted = |&(feature, name): &(usize, &String)| {
        let column = |rows: &[f32]| -> Vec<f64> {
            let column = rows.iter().skip(feature).step_by(names.len()).copied();
            column.filter(|value| value.is_finite()).map(f64::from).collect()
        };
        let (training, recent) = (column(training), column(recent));
        let Some(limits) = Limits::new(&training, recent.len()) else {
            return false;
        };
        let distance = kolmogorov_smirnov(&limits.sorted, &recent).value;
        match drifted.contains(name) {
            true => distance > limits.end,
            false => distance > limits.largest && distance >= limits.begin,
        }
    };
    names
        .iter()
        .enumerate()
        .filter(has_drifted)
        .map(|(_, name)| name.clone())
        .collect()
}

/// The limits of a feature.
struct Limits {
    /// The training's values, sorted.
    sorted: Vec<f64>,
    /// The largest distance of a window of the training from the rest of it.
    largest: f64,
    /// The distance at which drift begins, at most 1.
    begin: f64,
    /// The distance at which it ends.
    end: f64,
}

impl Limits {
    fn new(training: &[f64], window: usize) -> Option<Self> {
        if window < LEAST || training.len() < WINDOWS * window {
            return None;
        }
        let mut sorted = training.to_vec();
        sorted.sort_by(f64::total_cmp);
        // With F the whole's distribution, W the window's and R the rest's: F - W = (1 - share) (R - W).
        let rest = 1.0 - window as f64 / training.len() as f64;
        let distances: Vec<f64> = training
            .windows(window)
            .step_by((window / OVERLAP).max(1))
            .map(|window| kolmogorov_smirnov(&sorted, window).value / rest)
            .collect();
        let [middle, end, largest] = [0.5, END, 1.0].map(|level| quantile(&distances, level));
        Some(Self {
            sorted,
            largest,
            begin: (largest + MARGIN * (largest - middle)).min(1.0),
            end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    const NIGHTS: usize = 126;
    const WINDOW: usize = 60;

    /// Autoregressive features `[rows, names]` with a half-life of five rows; from `moved` on the first has a
    /// higher mean, until `back`.
    fn rows(random: &mut Random, rows: usize, features: usize, moved: usize, back: usize) -> Vec<f32> {
        let persistence = libm::exp2(-0.2);
        let mut state: Vec<f64> = (0..features).map(|_| random.normal()).collect();
        let mut out = Vec::new();
        for row in 0..rows {
            for (feature, state) in state.iter_mut().enumerate() {
                *state = persistence * *state + (1.0 - persistence * persistence).sqrt() * random.normal();
                let shift = if feature == 0 && (moved..back).contains(&row) {
                    3.0
                } else {
                    0.0
                };
                out.push((*state + shift) as f32);
            }
        }
        out
    }

    /// The nights on which each feature begins and ends to drift.
    fn messages(training: &[f32], live: &[f32], names: &[String]) -> Vec<(usize, String, bool)> {
        let (mut last, mut out) = (Vec::new(), Vec::new());
        for night in WINDOW..live.len() / names.len() {
            let recent = &live[(night - WINDOW) * names.len()..night * names.len()];
            let now = drifted(names, training, recent, &last);
            let changed = |name: &&String| now.contains(name) != last.contains(name);
            out.extend(
                names
                    .iter()
                    .filter(changed)
                    .map(|name| (night, name.clone(), now.contains(name))),
            );
            last = now;
        }
        out
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|feature| format!("f{feature}")).collect()
    }

    /// A year of a feature that moves for half of it has one message at its begin and one at its end.
    #[test]
    fn begins_and_ends_with_one_message_each() {
        let names = names(2);
        for seed in 0..3 {
            let mut random = Random::new(&[seed, 31]);
            let training = rows(&mut random, 1500, 2, 0, 0);
            let live = rows(&mut random, 400, 2, 150, 300);
            let first: Vec<(usize, bool)> = messages(&training, &live, &names)
                .into_iter()
                .filter(|(_, name, _)| name == "f0")
                .map(|(night, _, begins)| (night, begins))
                .collect();
            let [(begin, true), (end, false)] = first[..] else {
                panic!("{seed}: {first:?}");
            };
            assert!(
                (150..230).contains(&begin) && (300..390).contains(&end),
                "{seed}: {first:?}"
            );
        }
    }

    /// Features that go on as in the training seldom drift: of 60 in half a year of nights at most a tenth.
    #[test]
    fn what_is_normal_in_the_training_is_no_drift() {
        let names = names(60);
        let mut random = Random::new(&[32]);
        let training = rows(&mut random, 1500, 60, 0, 0);
        let live = rows(&mut random, NIGHTS + WINDOW, 60, 0, 0);
        let began = messages(&training, &live, &names);
        let began = began.iter().filter(|(_, _, begins)| *begins).count();
        assert!(began <= 6, "{began}");
    }

    #[test]
    fn too_little_to_tell_is_no_drift() {
        let names = names(1);
        let training: Vec<f32> = (0..200).map(|row| row as f32).collect();
        let far = |rows: usize| vec![1e6; rows];
        assert!(drifted(&names, &training, &far(9), &[]).is_empty());
        assert!(drifted(&names, &training, &far(51), &[]).is_empty());
        assert!(drifted(&names, &[f32::NAN; 200], &far(20), &[]).is_empty());
        let constant = vec![0.0; 200];
        assert_eq!(drifted(&names, &constant, &far(20), &[]), names);
    }
}
