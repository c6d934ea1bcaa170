//! Policies beside baselines and their blind copies over the same queries: figures, paired differences, and
//! intervals.

use super::sheet::Sheet;
use crate::env::counts::{Counts, add};
use rayon::prelude::*;
use stages_evaluate::Estimate;
use stages_evaluate::Metrics;
use stages_evaluate::{holm, mean_and_deviation, quantile, two_sided};
use stages_numerics::random::Random;

/// The name of the exchange of relations in metrics.
pub(super) const BLIND: &str = "shuffled_relations";

/// The policies and baselines that are compared.
#[derive(Debug, Default)]
pub(super) struct Study {
    /// The number of units that are resampled.
    pub units: usize,
    /// The policies, which have the same figures.
    pub policies: Vec<Sheet>,
    /// The policies with relations exchanged; empty where that was not tested.
    pub blind: Vec<Sheet>,
    /// The baselines by name, with figures that the policies have, too.
    pub baselines: Vec<(&'static str, Sheet)>,
    /// The figures whose differences are given; the first one decides whether a policy is blind.
    pub compared: &'static [&'static str],
    /// Further numbers, without intervals.
    pub others: Vec<(String, f64)>,
    /// The proofs, paths or plans, in words.
    pub proofs: Vec<String>,
    /// Further files.
    pub files: Vec<(&'static str, String)>,
}

/// A resample: the policies that are drawn, and the figures of each sheet.
struct Drawn {
    policies: Vec<usize>,
    values: Vec<Vec<f64>>,
}

/// The figures of all sheets, over all units and in each resample.
struct Resampled {
    whole: Drawn,
    drawn: Vec<Drawn>,
}

impl Study {
    fn resample(&self, draws: usize, seed: u64) -> Resampled {
        let baselines = self.baselines.iter().map(|(_, sheet)| sheet);
        let sheets: Vec<&Sheet> = self.policies.iter().chain(&self.blind).chain(baselines).collect();
        let values = |times: &[f64]| sheets.iter().map(|sheet| sheet.values(times)).collect();
        let policies = self.policies.len();
        let draw = |draw: usize| {
            let mut random = Random::new(&[seed, 0x7265_6173, draw as u64]);
            let mut times = vec![0.0; self.units];
            for _ in 0..self.units {
                times[random.below(self.units as u64) as usize] += 1.0;
            }
            // Of n policies n - 1 are drawn, which makes the variance of a mean of few unbiased (Rao and Wu
            // 1988).
            let drawn = policies.saturating_sub(1).max(1);
            Drawn {
                policies: (0..drawn).map(|_| random.below(policies as u64) as usize).collect(),
                values: values(&times),
            }
        };
        Resampled {
            whole: Drawn {
                policies: (0..policies).collect(),
                values: values(&vec![1.0; self.units]),
            },
            drawn: (0..draws).into_par_iter().map(draw).collect(),
        }
    }

    /// Adds all figures to the metrics, and returns the log's lines.
    pub(super) fn measure(&self, draws: usize, seed: u64, metrics: &mut Metrics) -> Vec<String> {
        let resampled = self.resample(draws, seed);
        let (all, policies) = (&self.policies[0], self.policies.len());
        let mean = |drawn: &Drawn, at: usize| over(&drawn.policies, |policy| drawn.values[policy][at]);
        for (at, (name, _)) in all.figures.iter().enumerate() {
            let both = resampled.estimate(|drawn| mean(drawn, at));
            metrics.estimate(name, both);
            if policies > 1 {
                let whole: Vec<usize> = (0..policies).collect();
                let queries = resampled.estimate(|drawn| over(&whole, |policy| drawn.values[policy][at]));
                metrics.interval(&format!("{name}_over_queries"), queries);
                let each: Vec<f64> = whole.iter().map(|&p| resampled.whole.values[p][at]).collect();
                metrics.add(format!("{name}_deviation"), mean_and_deviation(&each).1);
            }
        }
        for (at, (name, _)) in all.fixed.iter().enumerate() {
            let sum: f64 = self.policies.iter().map(|sheet| sheet.fixed[at].1).sum();
            metrics.add(name.clone(), sum / policies as f64);
        }
        if policies > 1 {
            metrics.add("policies", policies as f64);
            for policy in 0..policies {
                for (at, (name, _)) in all.figures.iter().enumerate() {
                    let one = resampled.estimate(|drawn| drawn.values[policy][at]);
                    metrics.estimate(&format!("policy/{}/{name}", policy + 1), one);
                }
            }
        }
        let main = self.compared[0];
        let mut lines = Vec::new();
        let mut tested: Vec<(&str, f64)> = Vec::new();
        for (b, (baseline, sheet)) in self.baselines.iter().enumerate() {
            let at_sheet = self.policies.len() + self.blind.len() + b;
            for (at, (name, _)) in sheet.figures.iter().enumerate() {
                metrics.add(
                    format!("baseline/{baseline}/{name}"),
                    resampled.whole.values[at_sheet][at],
                );
            }
            for (name, value) in &sheet.fixed {
                metrics.add(format!("baseline/{baseline}/{name}"), *value);
            }
            for name in self.compared {
                if let (Some(ours), Some(theirs)) = (all.at(name), sheet.at(name)) {
                    let difference =
                        resampled.estimate(|drawn| mean(drawn, ours) - drawn.values[at_sheet][theirs]);
                    metrics.estimate(&format!("versus/{baseline}/{name}"), difference);
                    if *name == main {
                        let drawn = resampled.drawn.iter();
                        let differences: Vec<f64> = drawn
                            .map(|drawn| mean(drawn, ours) - drawn.values[at_sheet][theirs])
                            .filter(|x| x.is_finite())
                            .collect();
                        tested.push((baseline, two_sided(&differences)));
                        let value = resampled.whole.values[at_sheet][theirs];
                        lines.push(format!(
                            "{} has {value:.3}: the policy {}",
                            baseline.replace('_', " "),
                            said(difference)
                        ));
                    }
                }
            }
        }
        let corrected = holm(&tested.iter().map(|(_, p)| *p).collect::<Vec<_>>());
        for ((baseline, _), p) in tested.iter().zip(corrected) {
            metrics.add(format!("versus/{baseline}/{main}_p"), p);
        }
        if let Some(sheet) = self.blind.first() {
            for (at, (name, _)) in sheet.figures.iter().enumerate() {
                let blind = over(&resampled.whole.policies, |policy| {
                    resampled.whole.values[policies + policy][at]
                });
                metrics.add(format!("ablation/{BLIND}/{name}"), blind);
                if !self.compared.contains(&name.as_str()) {
                    continue;
                }
                let loss = resampled.estimate(|drawn| {
                    over(&drawn.policies, |policy| {
                        drawn.values[policy][at] - drawn.values[policies + policy][at]
                    })
                });
                metrics.estimate(&format!("ablation/{BLIND}/loss_{name}"), loss);
                if *name == main {
                    let is_blind = loss.low.is_nan() || loss.low <= 0.0;
                    metrics.add("blind", f64::from(u8::from(is_blind)));
                    lines.push(format!(
                        "with relations exchanged it has {blind:.3}: {}",
                        match is_blind {
                            true => "it is blind for them, no more is lost than noise",
                            false => "it uses them",
                        }
                    ));
                }
            }
        }
        for (name, value) in &self.others {
            metrics.add(name.clone(), *value);
        }
        if let Some(at) = all.at(main) {
            let of = resampled.estimate(|drawn| mean(drawn, at));
            let words = main.replace('_', " ");
            lines.insert(0, format!("{words} {:.3} ({:.3} to {:.3})", of.value, of.low, of.high));
        }
        lines
    }
}

/// A difference, in words.
fn said(difference: Estimate) -> String {
    let Estimate { value, low, high } = difference;
    let what = match (low > 0.0, high < 0.0) {
        (true, _) => "is better",
        (_, true) => "is worse",
        _ => "differs by no more than noise",
    };
    format!("{what} ({value:+.3}, {low:+.3} to {high:+.3})")
}

/// The counts of caps that cut, and of queries that could not be corrupted. The other counts of an
/// environment are about whole batches, in which episodes are played that no query asks for.
pub(super) fn env_counts<C: Counts>(
    policies: impl Iterator<Item = C>,
) -> impl Iterator<Item = (String, f64)> {
    let mut sums = Vec::new();
    policies.for_each(|counts| add(&mut sums, counts.metrics()));
    let is_told = |name: &str| name.contains("cut") || name == "env/uncorrupted";
    let told = sums.into_iter().filter(move |(name, _)| is_told(name));
    told.map(|(name, count)| (name.to_owned(), count as f64))
}

/// The mean over policies.
fn over(policies: &[usize], of: impl Fn(usize) -> f64) -> f64 {
    policies.iter().map(|&policy| of(policy)).sum::<f64>() / policies.len() as f64
}

impl Resampled {
    /// A statistic over all units, with the 2.5 % and 97.5 % quantiles over the resamples in which it has a
    /// value.
    fn estimate(&self, of: impl Fn(&Drawn) -> f64) -> Estimate {
        let value = of(&self.whole);
        let drawn: Vec<f64> = self.drawn.iter().map(of).filter(|x| x.is_finite()).collect();
        let (low, high) = match value.is_finite() {
            true => (quantile(&drawn, 0.025), quantile(&drawn, 0.975)),
            false => (f64::NAN, f64::NAN),
        };
        Estimate { value, low, high }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sheet::Figure;
    use super::*;
    use std::collections::BTreeMap;

    /// A sheet of the fraction of right answers.
    fn sheet(right: &[bool]) -> Sheet {
        let mut sheet = Sheet::default();
        let mean = Figure::mean(right, 1, |_, right| Some(f64::from(u8::from(*right))));
        sheet.add("accuracy", mean);
        sheet
    }

    fn answers(seed: u64, chance: f64) -> Vec<bool> {
        let mut random = Random::new(&[seed]);
        (0..400).map(|_| random.uniform() < chance).collect()
    }

    fn measured(study: &Study) -> (BTreeMap<String, f64>, Vec<String>) {
        let mut metrics = Metrics::default();
        let lines = study.measure(2_000, 1, &mut metrics);
        (
            metrics.iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            lines,
        )
    }

    #[test]
    fn intervals_are_those_of_the_binomial_and_differences_are_paired() {
        let policy = answers(1, 0.8);
        // Right wherever the policy is, but for 12 of 400.
        let mut behind = policy.clone();
        let right: Vec<usize> = (0..400).filter(|&at| policy[at]).collect();
        right[..12].iter().for_each(|&at| behind[at] = false);
        let (of, lines) = measured(&Study {
            units: 400,
            policies: vec![sheet(&policy)],
            blind: vec![sheet(&policy)],
            baselines: vec![("random", sheet(&behind))],
            compared: &["accuracy"],
            ..Study::default()
        });
        let half = 1.96 * (of["accuracy"] * (1.0 - of["accuracy"]) / 400.0).sqrt();
        let width = of["accuracy_high"] - of["accuracy_low"];
        assert!((width / (2.0 * half) - 1.0).abs() < 0.1, "{width} {half}");
        assert!((of["versus/random/accuracy"] - 0.03).abs() < 1e-12);
        // 12 of 400 differ, all in one direction: the difference is certain, though each side's interval is
        // wider than it.
        assert!(of["versus/random/accuracy_low"] > 0.01 && of["versus/random/accuracy_high"] < 0.05);
        assert_eq!(
            (of["ablation/shuffled_relations/loss_accuracy"], of["blind"]),
            (0.0, 1.0)
        );
        assert!(
            lines[1].contains("is better") && lines[2].contains("is blind"),
            "{lines:?}"
        );
        assert!(!of.contains_key("policies"));
    }

    #[test]
    fn several_policies_have_intervals_over_trainings_too() {
        let chances = [0.6, 0.7, 0.8, 0.9, 0.65];
        let policies: Vec<Sheet> = (0..5).map(|p| sheet(&answers(p, chances[p as usize]))).collect();
        let (of, lines) = measured(&Study {
            units: 400,
            blind: (10..15).map(|p| sheet(&answers(p, 0.5))).collect(),
            policies,
            compared: &["accuracy"],
            ..Study::default()
        });
        let each: Vec<f64> = (1..=5).map(|p| of[&format!("policy/{p}/accuracy")]).collect();
        let (mean, deviation) = mean_and_deviation(&each);
        assert!((of["accuracy"] - mean).abs() < 1e-12 && of["accuracy_deviation"] == deviation);
        let width = |name: &str| of[&format!("{name}_high")] - of[&format!("{name}_low")];
        // Of a mean of five, and of 400 queries each.
        let expected = 2.0 * 1.96 * (deviation * deviation / 5.0 + 0.2 / 2_000.0_f64).sqrt();
        assert!(
            (width("accuracy") / expected - 1.0).abs() < 0.2,
            "{} {expected}",
            width("accuracy")
        );
        assert!(width("accuracy_over_queries") < 0.5 * width("accuracy"));
        assert_eq!((of["policies"], of["blind"]), (5.0, 0.0));
        assert!(lines[1].contains("it uses them"), "{lines:?}");
    }
}
