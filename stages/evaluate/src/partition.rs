//! Classes of snapshots by thresholds on smoothed features: one threshold, or a small tree of two features.
//!
//! A class follows from the features up to a snapshot alone, whatever an account holds. So a screen of many
//! classes needs the positions that they choose from to be simulated once each: the mean reward of a position
//! in a class is that of the steps from the class's snapshots, and a class's target is the position of the
//! greatest. What changing costs is left to the simulation of the few that remain.

use crate::seen::{Feature, Smoothing, named};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::ops::Range;

/// The quantiles of a smoothed feature over the training data that are tried as thresholds.
const QUANTILES: [f64; 9] = [0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95];
/// The gaps that are tried, in standard deviations of the smoothed feature.
const GAPS: [f32; 4] = [0.0, 0.25, 0.5, 1.0];
/// The number of thresholds that remain after the screen, each on another smoothed feature, and of trees.
const THRESHOLDS: usize = 6;
const TREES: usize = 4;
/// The least share of the snapshots that a class has.
const LEAST: f64 = 0.02;

/// A threshold on a smoothed feature. With a gap g a snapshot is above it from a value of threshold + g / 2
/// on, until one below threshold - g / 2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Threshold {
    pub feature: String,
    pub smoothing: Smoothing,
    pub value: f32,
    pub gap: f32,
}

impl Threshold {
    /// True for each snapshot `[T]` that is above, by the smoothed feature.
    fn above(&self, series: &[f32], worlds: &[Range<usize>]) -> Vec<bool> {
        let mut out = vec![false; series.len()];
        for world in worlds {
            let mut state = series.get(world.start).is_some_and(|first| *first > self.value);
            for t in world.clone() {
                let over = series[t] - self.value;
                if over.abs() > 0.5 * self.gap {
                    state = over > 0.0;
                }
                out[t] = state;
            }
        }
        out
    }

    fn describe(&self, step: &str, (offset, scale): (f32, f32)) -> String {
        let raw = |value: f32| crate::ranking::significant(f64::from(value));
        let gap = match self.gap {
            0.0 => String::new(),
            gap => format!(", with a gap of {}", raw(gap * scale)),
        };
        let feature = self.smoothing.describe(&self.feature, step);
        format!("{feature} is above {}{gap}", raw(offset + scale * self.value))
    }
}

/// Classes by a threshold, and on each side of it perhaps by another one. The classes are numbered from the
/// low side on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tree {
    root: Threshold,
    /// The thresholds below and above the root.
    sides: [Option<Threshold>; 2],
}

impl Tree {
    /// The class of each snapshot `[T]`; `series` gives the smoothed series `[T]` of a threshold.
    pub(crate) fn classes<E>(
        &self,
        series: impl Fn(&Threshold) -> Result<Vec<f32>, E>,
        worlds: &[Range<usize>],
    ) -> Result<Vec<u8>, E> {
        let above = |threshold: &Threshold| Ok(threshold.above(&series(threshold)?, worlds));
        let root = above(&self.root)?;
        let mut sides = Vec::new();
        for side in &self.sides {
            sides.push(side.as_ref().map(above).transpose()?);
        }
        let low = self.sizes()[0];
        let class = |(t, is_above): (usize, &bool)| {
            let side = usize::from(*is_above);
            let within = sides[side].as_ref().is_some_and(|above| above[t]);
            (side * low) as u8 + u8::from(within)
        };
        Ok(root.iter().enumerate().map(class).collect())
    }

    /// The numbers of classes below and above the root.
    fn sizes(&self) -> [usize; 2] {
        [0, 1].map(|side| 1 + usize::from(self.sides[side].is_some()))
    }

    /// The features that it looks at.
    pub(crate) fn thresholds(&self) -> impl Iterator<Item = &Threshold> {
        std::iter::once(&self.root).chain(self.sides.iter().flatten())
    }

    /// The rule in words, given the words of each class's target, and by which offset and factor a feature is
    /// shown in its own unit.
    pub(crate) fn describe(
        &self,
        targets: &[String],
        step: &str,
        unit: impl Fn(&str) -> (f32, f32),
    ) -> String {
        let condition = |threshold: &Threshold| threshold.describe(step, unit(&threshold.feature));
        let [low, _] = self.sizes();
        let side = |side: usize| {
            let of = &targets[side * low..];
            match &self.sides[side] {
                None => of[0].clone(),
                Some(threshold) => format!("({} while {}, else {})", of[1], condition(threshold), of[0]),
            }
        };
        format!("{} while {}, else {}", side(1), condition(&self.root), side(0))
    }
}

/// Rewards of the steps over which positions were simulated.
pub(crate) struct Rewards {
    /// The snapshot from which each step went `[S]`.
    pub from: Vec<usize>,
    /// The reward of each position and step `[K][S]`.
    pub by_position: Vec<Vec<f32>>,
}

/// A smoothed feature at the snapshots from which steps went `[S]`.
struct Series {
    feature: String,
    smoothing: Smoothing,
    values: Vec<f32>,
}

/// Every feature by date, smoothed in every way; `values` gives the values `[T]` of one.
fn series(
    features: &[Feature],
    values: &(impl Fn(&Feature) -> Vec<f32> + Sync),
    from: &[usize],
    worlds: &[Range<usize>],
) -> Vec<Series> {
    let of = |feature: &Feature| {
        let values = values(feature);
        let smoothed = Smoothing::all().map(|smoothing| {
            let smoothed = smoothing.apply(&values, 1, worlds);
            Series {
                feature: feature.name.clone(),
                smoothing,
                values: from.iter().map(|&t| smoothed[t]).collect(),
            }
        });
        smoothed.collect::<Vec<_>>()
    };
    features.par_iter().flat_map_iter(of).collect()
}

/// Classes with the number of each one's target.
pub(crate) type Candidate = (Tree, Vec<usize>);

/// A screened threshold, and the sum of the rewards of the best targets.
struct Screened {
    series: usize,
    value: f32,
    sum: f64,
}

impl Rewards {
    /// The best position over the steps that `within` has, and its sum of rewards; `None` for too few steps.
    fn best(&self, steps: &[usize], within: impl Fn(usize) -> bool, least: usize) -> Option<(usize, f64)> {
        let of: Vec<usize> = steps.iter().copied().filter(|&t| within(t)).collect();
        if of.len() < least {
            return None;
        }
        let sum = |rewards: &Vec<f32>| of.iter().map(|&t| f64::from(rewards[t])).sum::<f64>();
        let sums = self.by_position.iter().map(sum).enumerate();
        sums.filter(|(_, sum)| !sum.is_nan())
            .fold(None, |best: Option<(usize, f64)>, (k, sum)| match best {
                Some((_, most)) if most >= sum => best,
                _ => Some((k, sum)),
            })
    }

    /// The best thresholds over the steps that `within` has, the best of each series, in order.
    fn screen(
        &self,
        all: &[Series],
        steps: &[usize],
        least: usize,
        within: &(impl Fn(usize) -> bool + Sync),
    ) -> Vec<Screened> {
        let steps: Vec<usize> = steps.iter().copied().filter(|&t| within(t)).collect();
        let mut found: Vec<Screened> = (all.par_iter().enumerate())
            .filter_map(|(series, of)| {
                let (value, sum) = self.best_threshold(&of.values, &steps, least)?;
                Some(Screened { series, value, sum })
            })
            .collect();
        found.sort_by(|a, b| b.sum.total_cmp(&a.sum).then(a.series.cmp(&b.series)));
        found
    }

    /// The threshold on a series by which the best positions on both sides earn the most over steps, and what
    /// they earn.
    fn best_threshold(&self, series: &[f32], steps: &[usize], least: usize) -> Option<(f32, f64)> {
        let mut sorted: Vec<f32> = steps.iter().map(|&t| series[t]).collect();
        sorted.retain(|value| value.is_finite());
        sorted.sort_by(f32::total_cmp);
        let mut values = Vec::new();
        for quantile in QUANTILES {
            let value = *sorted.get((quantile * sorted.len() as f64) as usize)?;
            // Half way to the next value, so that features of few values have a clear side.
            if let Some(next) = sorted.get(sorted.partition_point(|other| *other <= value)) {
                values.push(value + 0.5 * (next - value));
            }
        }
        values.dedup();
        // Between the thresholds lie buckets, of which bucket j is above j thresholds.
        let bucket: Vec<usize> = (steps.iter())
            .map(|&t| values.partition_point(|value| series[t] > *value))
            .collect();
        let mut counts = vec![0; values.len() + 1];
        bucket.iter().for_each(|&of| counts[of] += 1);
        let mut best = vec![[f64::NEG_INFINITY; 2]; values.len()];
        for rewards in &self.by_position {
            let mut sums = vec![0.0; values.len() + 1];
            for (&t, &of) in steps.iter().zip(&bucket) {
                sums[of] += f64::from(rewards[t]);
            }
            let all: f64 = sums.iter().sum();
            let mut low = 0.0;
            for (best, sum) in best.iter_mut().zip(&sums) {
                low += sum;
                *best = [best[0].max(low), best[1].max(all - low)];
            }
        }
        let (mut found, mut low) = (None, 0);
        for ((value, [below, above]), count) in values.iter().zip(best).zip(&counts) {
            low += count;
            let is_more = found.is_none_or(|(_, most)| below + above > most);
            if low >= least && steps.len() - low >= least && is_more {
                found = Some((*value, below + above));
            }
        }
        found
    }
}

/// The candidates that the screen leaves: thresholds on these features and trees, each with every gap.
/// `values` gives the values `[T]` of a feature.
pub(crate) fn candidates(
    rewards: &Rewards,
    features: &[Feature],
    values: &(impl Fn(&Feature) -> Vec<f32> + Sync),
    worlds: &[Range<usize>],
) -> Vec<Candidate> {
    let all = &series(features, values, &rewards.from, worlds);
    let steps: &[usize] = &(0..rewards.from.len()).collect::<Vec<_>>();
    let least = ((LEAST * steps.len() as f64) as usize).max(1);
    let everywhere = |_: usize| true;
    let threshold = |screened: &Screened| Threshold {
        feature: all[screened.series].feature.clone(),
        smoothing: all[screened.series].smoothing,
        value: screened.value,
        gap: 0.0,
    };
    let roots = rewards.screen(all, steps, least, &everywhere);
    let roots = &roots[..roots.len().min(THRESHOLDS)];
    let mut trees: Vec<Tree> = roots
        .iter()
        .map(|root| Tree {
            root: threshold(root),
            sides: [None, None],
        })
        .collect();
    for root in &roots[..roots.len().min(TREES)] {
        let root_series = &all[root.series];
        let sides = [false, true].map(|above| {
            let within = |t: usize| (root_series.values[t] > root.value) == above;
            let own = rewards.best(steps, within, 0).map_or(f64::INFINITY, |(_, sum)| sum);
            let found = rewards.screen(all, steps, least, &within).into_iter();
            // A second feature, which must add something.
            let mut found =
                found.filter(|found| all[found.series].feature != root_series.feature && found.sum > own);
            found.next().map(|found| threshold(&found))
        });
        let [low, high] = sides;
        for sides in [[low.clone(), None], [None, high.clone()], [low, high]] {
            let root = threshold(root);
            let tree = Tree { root, sides };
            if tree.thresholds().count() > 1 && !trees.contains(&tree) {
                trees.push(tree);
            }
        }
    }
    let smoothed = |threshold: &Threshold| {
        let feature = named(features, &threshold.feature)?;
        Ok::<_, StageError>(threshold.smoothing.apply(&values(feature), 1, worlds))
    };
    let with_gap = |tree: &Tree, gap: f32| -> Option<Candidate> {
        let mut tree = tree.clone();
        for threshold in std::iter::once(&mut tree.root).chain(tree.sides.iter_mut().flatten()) {
            let of = |series: &&Series| {
                series.feature == threshold.feature && series.smoothing == threshold.smoothing
            };
            threshold.gap = gap * deviation(&all.iter().find(of)?.values);
        }
        let classes = tree.classes(smoothed, worlds).ok()?;
        let class_of = |step: usize| usize::from(classes[rewards.from[step]]);
        let count = tree.sizes().iter().sum::<usize>();
        let targets: Option<Vec<usize>> = (0..count)
            .map(|class| rewards.best(steps, |step| class_of(step) == class, 1))
            .map(|best| best.map(|(target, _)| target))
            .collect();
        // The same target everywhere is no rule of a feature.
        let targets = targets?;
        targets
            .iter()
            .any(|target| *target != targets[0])
            .then_some((tree, targets))
    };
    let with_gaps = |tree: &Tree| {
        GAPS.map(|gap| with_gap(tree, gap))
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    };
    trees.par_iter().flat_map_iter(with_gaps).collect()
}

/// The standard deviation of the values that are numbers.
fn deviation(series: &[f32]) -> f32 {
    let values = || {
        series
            .iter()
            .map(|&value| f64::from(value))
            .filter(|value| value.is_finite())
    };
    let count = values().count().max(1) as f64;
    let mean = values().sum::<f64>() / count;
    (values().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count).sqrt() as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    fn threshold(feature: &str, value: f32, gap: f32) -> Threshold {
        Threshold {
            feature: feature.to_owned(),
            smoothing: Smoothing::Mean(1),
            value,
            gap,
        }
    }

    #[test]
    fn a_gap_keeps_the_side() {
        let series = [0.0, 1.2, 0.9, 1.6, 0.9, 0.4, 1.4, 2.0];
        let of = |gap: f32| threshold("x", 1.0, gap).above(&series, &[0..6, 6..8]);
        assert_eq!(of(0.0), [false, true, false, true, false, false, true, true]);
        assert_eq!(of(1.0), [false, false, false, true, true, false, true, true]);
    }

    #[test]
    fn trees_in_words_and_classes() {
        let tree = Tree {
            root: threshold("a", 0.5, 0.2),
            sides: [None, Some(threshold("b", -1.0, 0.0))],
        };
        let series = |threshold: &Threshold| {
            Ok::<_, ()>(if threshold.feature == "a" {
                vec![0.0, 1.0, 1.0]
            } else {
                vec![0.0, 0.0, -2.0]
            })
        };
        assert_eq!(tree.classes(series, std::slice::from_ref(&(0..3))).unwrap(), [0, 2, 1]);
        let targets = ["cash", "half", "all"].map(str::to_owned);
        assert_eq!(
            tree.describe(&targets, "day", |_| (1.0, 2.0)),
            "(all while `b` is above -1, else half) while `a` is above 2, with a gap of 0.4, else cash"
        );
    }

    /// A feature of two values, whatever their shares, is as good as its classes, at every gap below their
    /// distance.
    #[test]
    fn flags_are_followed() {
        for share in [0.1, 0.3, 0.5, 0.7, 0.9] {
            let mut random = Random::new(&[9]);
            let flag: Vec<f32> = (0..2000)
                .map(|_| f32::from(u8::from(random.uniform() < share)))
                .collect();
            let paid = |wanted: f32| {
                flag.iter()
                    .map(|flag| if *flag == wanted { 1.0 } else { -1.0 })
                    .collect()
            };
            let rewards = Rewards {
                by_position: vec![paid(0.0), paid(1.0)],
                from: (0..flag.len()).collect(),
            };
            let features = [Feature {
                name: "flag".to_owned(),
                columns: vec![0],
            }];
            let world = std::slice::from_ref(&(0..2000));
            let (tree, targets) = &candidates(&rewards, &features, &|_| flag.clone(), world)[0];
            let classes = tree.classes(|_| Ok::<_, ()>(flag.clone()), world).unwrap();
            let right = classes
                .iter()
                .zip(&flag)
                .filter(|(class, flag)| targets[usize::from(**class)] as f32 == **flag);
            assert_eq!(right.count(), 2000, "{share}: {tree:?}");
        }
    }

    /// Of ten features one says which of two positions pays, or two say it together.
    #[test]
    fn planted_thresholds_and_trees_are_screened_first() {
        let t = 4000;
        for seed in 0..10 {
            let mut random = Random::new(&[seed]);
            let values: Vec<Vec<f32>> = (0..10)
                .map(|_| (0..t).map(|_| random.normal() as f32).collect())
                .collect();
            let features: Vec<Feature> = (0..10)
                .map(|k| Feature {
                    name: format!("f{k}"),
                    columns: vec![k],
                })
                .collect();
            let find = |rewards: &Rewards| {
                let values = |feature: &Feature| values[feature.columns[0]].clone();
                candidates(rewards, &features, &values, std::slice::from_ref(&(0..t)))
            };
            let mut rewards = |pays: &dyn Fn(usize) -> bool| Rewards {
                from: (0..t).collect(),
                by_position: [false, true]
                    .map(|high| {
                        let paid = |t: usize| if pays(t) == high { 0.3 } else { -0.3 };
                        (0..t).map(|t| (paid(t) + random.normal()) as f32).collect()
                    })
                    .into(),
            };
            let (one, two) = (seed as usize, (seed as usize + 3) % 10);
            let single = rewards(&|t| values[one][t] > 0.4);
            let found = &find(&single)[0];
            assert_eq!(
                (found.0.root.feature.as_str(), &found.1[..]),
                (format!("f{one}").as_str(), &[0, 1][..])
            );
            assert!((found.0.root.value - 0.4).abs() < 0.3);
            let both = rewards(&|t| values[one][t] > -0.5 && values[two][t] > -0.5);
            let pair = [format!("f{one}"), format!("f{two}")];
            let is_pair = |tree: &Tree| {
                tree.thresholds().count() > 1 && tree.thresholds().all(|of| pair.contains(&of.feature))
            };
            let found = find(&both);
            assert!(found.iter().any(|(tree, _)| is_pair(tree)), "{seed}");
        }
    }
}
