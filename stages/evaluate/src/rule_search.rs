//! The best rule of visible features on `env/stocks` and `env/table`, found by simulation.
//!
//! Candidates act in the environment itself, at its costs, over the training data: each range of it whole, up
//! to [`STEPS`] steps of all ranges together. They are
//!
//! - *positions* that need no feature;
//! - *rankings* of symbols by a feature of each: first each feature, smoothed in each way and taken in either
//!   sense, is tried with a gap of half its standard deviation; of the best [`KEPT`], every gap and number of
//!   symbols;
//! - *classes* by thresholds on features, each with a position of its own ([`partition`]).
//!
//! The [`FINALISTS`] of the greatest mean reward, and the positions, are then compared by mean reward over
//! the validation data, where there is some.
//!
//! A candidate's decision depends on its account and on features up to the present snapshot alone, and its
//! mean reward on the candidate alone: neither threads nor other candidates change it.

use crate::config::EvaluatedOn;
use crate::market::Market;
use crate::market_backtest::Evaluation;
use crate::partition::{self, Rewards, Tree};
use crate::ranking::{Ranking, significant};
use crate::seen::{Feature, Smoothing, named, step_word, unit, worlds};
use cache::Artifact;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stages_core::{Context, Memo, StageError};
use stages_env::{BatchEnv as _, OpenOptions, PortfolioEnv, Split, Step};

/// The number of steps over which a candidate is simulated, of all ranges of a split together.
const STEPS: usize = 65_536;
/// The number of symbols up to which a candidate has all these steps.
const USUAL_SYMBOLS: usize = 32;
/// The number of environments that are stepped together, and the size of the smoothed features of the
/// candidates in them, in values.
const ENVIRONMENTS: usize = 1024;
const VALUES: usize = 1 << 26;
/// The largest number of positions that rules choose from.
pub(crate) const POSITIONS: usize = 64;
/// The number of smoothed features that are tried with every gap and number of symbols.
const KEPT: usize = 8;
/// The number of rules that are compared on the validation data.
const FINALISTS: usize = 16;
/// The gaps that are tried, in standard deviations of the smoothed feature over the training data.
const GAPS: [f64; 9] = [0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0];
/// The gap with which features are compared first.
const FIRST_GAP: f64 = 0.5;

/// The decision of a rule for an account.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Decision {
    /// Nothing is traded.
    #[default]
    Hold,
    /// The weights beside it are the target.
    Weights,
    /// The choice of this number is taken.
    Choice(u32),
}

/// A market in which rules of visible features act.
pub(crate) trait Ruled: Market {
    /// The features of a date, or of the only symbol.
    fn date_features(env: &PortfolioEnv<Self>) -> Vec<Feature>;
    /// The features of each symbol.
    fn symbol_features(env: &PortfolioEnv<Self>) -> Vec<Feature>;
    /// The hidden column of this name `[T, N]`, if there is one.
    fn hidden(env: &PortfolioEnv<Self>, name: &str) -> Option<Vec<f32>>;
    /// The limits of a weight and of the sum of weights; `None` where an account has one symbol.
    fn limits(env: &PortfolioEnv<Self>) -> Option<(f64, f64)>;
    /// True if a symbol can be traded at a snapshot.
    fn trades(env: &PortfolioEnv<Self>, t: usize, symbol: usize) -> bool;
    /// The positions that need no feature, in words.
    fn constants(env: &PortfolioEnv<Self>) -> Vec<String>;
    /// The decision for one of them at a snapshot.
    fn constant(env: &PortfolioEnv<Self>, which: usize, t: usize, weights: &mut [f64]) -> Decision;
    /// Steps every environment by its decision; `weights` are the targets `[B, N]`.
    fn step_by(
        env: &mut PortfolioEnv<Self>,
        decisions: &[Decision],
        weights: &[f64],
        step: &mut Step,
    ) -> Result<(), StageError>;
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Form {
    /// A position that needs no feature, by its number.
    Constant(usize),
    /// The symbols of the highest scores.
    Ranking(Ranking),
    /// A position for each class, by its number.
    Classes(Tree, Vec<usize>),
}

/// A rule that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Found {
    form: Form,
    text: String,
}

/// The features that rules are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of<'a> {
    /// All that a policy sees.
    Seen,
    /// A hidden column, not smoothed; higher is better.
    Hidden(&'a str),
}

/// A rule with what it decides by.
pub(crate) struct Acting {
    form: Form,
    /// Of a ranking the smoothed feature `[T, N]`.
    series: Vec<f32>,
    /// Of classes the class of each snapshot `[T]`.
    classes: Vec<u8>,
}

impl Acting {
    /// The rule in an environment with its own normalisation.
    pub(crate) fn new<S: Ruled>(env: &PortfolioEnv<S>, of: Of<'_>, form: &Form) -> Result<Self, StageError> {
        let (mut series, mut classes) = (Vec::new(), Vec::new());
        let worlds = worlds(env);
        match form {
            Form::Constant(_) => {}
            Form::Ranking(ranking) => {
                let values = match of {
                    Of::Hidden(name) => S::hidden(env, name).unwrap_or_default(),
                    Of::Seen => named(&S::symbol_features(env), &ranking.feature)?.values(env),
                };
                series = ranking.smoothing.apply(&values, env.num_weights(), &worlds);
            }
            Form::Classes(tree, _) => {
                let features = S::date_features(env);
                let of = |threshold: &partition::Threshold| {
                    let values = named(&features, &threshold.feature)?.values(env);
                    Ok::<_, StageError>(threshold.smoothing.apply(&values, 1, &worlds))
                };
                classes = tree.classes(of, &worlds)?;
            }
        }
        Ok(Self {
            form: form.clone(),
            series,
            classes,
        })
    }

    /// The decision for environment `i`; its weights are written where they are the target.
    fn decide<S: Ruled>(&self, env: &PortfolioEnv<S>, i: usize, weights: &mut [f64]) -> Decision {
        let now = env.snapshot(i);
        match &self.form {
            Form::Constant(which) => S::constant(env, *which, now, weights),
            Form::Classes(_, targets) => {
                S::constant(env, targets[usize::from(self.classes[now])], now, weights)
            }
            Form::Ranking(ranking) => {
                env.weights(i, weights);
                let n = weights.len();
                let features = &self.series[now * n..(now + 1) * n];
                match ranking.target(features, |symbol| S::trades(env, now, symbol), weights) {
                    true => Decision::Weights,
                    false => Decision::Hold,
                }
            }
        }
    }
}

/// Steps every environment, environment i by `rule(i)`.
pub(crate) fn step_rules<'a, S: Ruled>(
    env: &mut PortfolioEnv<S>,
    step: &mut Step,
    rule: impl Fn(usize) -> &'a Acting + Sync,
) -> Result<(), StageError> {
    let n = env.num_weights();
    let mut weights = vec![0.0; env.num_envs() * n];
    let mut decisions = vec![Decision::Hold; env.num_envs()];
    let shared = &*env;
    decisions
        .par_iter_mut()
        .zip(weights.par_chunks_exact_mut(n))
        .enumerate()
        .with_min_len(32)
        .for_each(|(i, (decision, weights))| *decision = rule(i).decide(shared, i, weights));
    S::step_by(env, &decisions, &weights, step)
}

/// The best rule of some features, as it acts in an environment, and in words; `None` where the environment
/// has no training data or no such feature.
pub(crate) fn best_rule<S: Ruled>(
    evaluation: Evaluation<'_>,
    of: Of<'_>,
) -> Result<Option<(Acting, String)>, StageError> {
    let Evaluation {
        context,
        artifact,
        config,
        ..
    } = evaluation;
    let Some(found) = find::<S>(context, artifact, of, config.on)? else {
        return Ok(None);
    };
    // It reads features in the environment's own normalisation, whatever a policy's is.
    let env: PortfolioEnv<S> =
        PortfolioEnv::open(&context.store, artifact, &OpenOptions::whole(config.split(), 1))?;
    Ok(Some((Acting::new(&env, of, &found.form)?, found.text)))
}

/// The best rule, found once for each environment. One that is evaluated on the validation data is chosen on
/// the training data alone.
fn find<S: Ruled>(
    context: &Context,
    artifact: &Artifact,
    of: Of<'_>,
    on: EvaluatedOn,
) -> Result<Option<Found>, StageError> {
    let trained = stages_env::evaluation_episodes(&context.store, artifact, Split::Train)?;
    if trained.is_none_or(|ranges| ranges == 0) {
        context.log("no rules are searched: the environment has no training data");
        return Ok(None);
    }
    let digest = context.input("env")?.digest;
    let about = match of {
        Of::Seen => "visible features".to_owned(),
        Of::Hidden(name) => format!("`{name}`"),
    };
    let (training_alone, name) = match on {
        EvaluatedOn::Test => (false, "evaluate/rules of features v1"),
        EvaluatedOn::Validation => (true, "evaluate/rules of features by training v1"),
    };
    let memo = Memo::new(
        name,
        &[digest.as_bytes(), about.as_bytes()],
        format!("rules of {about}"),
    );
    let text = |err: serde_json::Error| StageError::new(err.to_string());
    let search = || -> Result<Option<Found>, StageError> {
        let Some(mut training) = Trial::<S>::open(context, artifact, Split::Train, ENVIRONMENTS)? else {
            return Ok(None);
        };
        let candidates = training.candidates(of)?;
        let validation = match training_alone {
            true => None,
            false => Trial::<S>::open(context, artifact, Split::Validation, 2 * FINALISTS)?,
        };
        select(of, &training, candidates, validation)
    };
    let blob = context.memo(&memo, || serde_json::to_vec(&search()?).map_err(text))?;
    serde_json::from_slice(&context.store.blob(blob.blob)?).map_err(text)
}

/// The best of the candidates, which have their mean rewards on the training data.
fn select<S: Ruled>(
    of: Of<'_>,
    training: &Trial<'_, S>,
    mut candidates: Vec<(Form, f64)>,
    validation: Option<Trial<'_, S>>,
) -> Result<Option<Found>, StageError> {
    sort(&mut candidates);
    let mut rank = 0;
    candidates.retain(|(form, _)| {
        rank += 1;
        rank <= FINALISTS || matches!(form, Form::Constant(_))
    });
    let best = match validation {
        None => candidates.first().map(|(form, reward)| (form, *reward, None)),
        Some(mut validation) => {
            let forms: Vec<Form> = candidates.iter().map(|(form, _)| form.clone()).collect();
            let rewards = validation.rewards(of, &forms)?;
            let mut best: Option<(&Form, f64, Option<f64>)> = None;
            for ((form, trained), reward) in candidates.iter().zip(rewards) {
                if best.is_none_or(|(_, _, best)| best.is_none_or(|best| reward > best)) {
                    best = Some((form, *trained, Some(reward)));
                }
            }
            best
        }
    };
    let env = &training.env;
    Ok(best.map(|(form, trained, validated)| {
        let rule = match form {
            Form::Constant(which) => S::constants(env).swap_remove(*which),
            Form::Ranking(ranking) => {
                let unit = if of == Of::Seen { " standard deviations" } else { "" };
                ranking.describe(step_word(env), unit)
            }
            Form::Classes(tree, targets) => {
                let names = S::constants(env);
                let targets: Vec<String> = targets.iter().map(|&target| names[target].clone()).collect();
                tree.describe(&targets, step_word(env), |name| unit(env, &S::date_features(env), name))
            }
        };
        let validated = validated.map_or(String::new(), |reward| {
            format!(", {} on validation data", significant(reward))
        });
        Found {
            form: form.clone(),
            text: format!(
                "{rule}; mean reward {} on training data{validated}",
                significant(trained)
            ),
        }
    }))
}

/// Sorts candidates by their mean reward, the greatest first; what is not a number last.
fn sort(candidates: &mut [(Form, f64)]) {
    let key = |reward: f64| if reward.is_nan() { f64::NEG_INFINITY } else { reward };
    candidates.sort_by(|a, b| key(b.1).total_cmp(&key(a.1)));
}

/// Environments over the whole ranges of a split, in which candidates are compared.
struct Trial<'a, S: Ruled> {
    context: &'a Context,
    env: PortfolioEnv<S>,
    start: Vec<u8>,
    step: Step,
    /// The first and the last snapshot of each range that is simulated.
    ranges: Vec<(usize, usize)>,
}

impl<'a, S: Ruled> Trial<'a, S> {
    /// Opens the split, for at most `rules` at a time; `None` where the environment has no data of it.
    fn open(
        context: &'a Context,
        artifact: &Artifact,
        split: Split,
        rules: usize,
    ) -> Result<Option<Self>, StageError> {
        let ranges = stages_env::evaluation_episodes(&context.store, artifact, split)?.unwrap_or(0);
        if ranges == 0 {
            return Ok(None);
        }
        let copies = (ENVIRONMENTS / ranges).clamp(1, rules.max(1));
        let options = OpenOptions::whole(split, ranges * copies);
        let env: PortfolioEnv<S> = PortfolioEnv::open(&context.store, artifact, &options)?;
        // Of many symbols a step takes longer.
        let longest = (STEPS * USUAL_SYMBOLS / env.num_weights().max(USUAL_SYMBOLS)).div_ceil(ranges);
        let ranges = (0..ranges).map(|i| {
            let first = env.snapshot(i);
            (first, first + env.test_steps(i).min(longest))
        });
        Ok(Some(Self {
            ranges: ranges.collect(),
            start: env.save(),
            step: Step::new(env.spec(), env.num_envs()),
            env,
            context,
        }))
    }

    /// Simulates each rule over all ranges; `record` is given the number of the rule, that of the range, the
    /// snapshot from which a step went, and its reward. After ruin there are no steps.
    fn simulate(
        &mut self,
        of: Of<'_>,
        forms: &[Form],
        mut record: impl FnMut(usize, usize, usize, f32),
    ) -> Result<(), StageError> {
        let (ranges, envs) = (self.ranges.len(), self.env.num_envs());
        let values = self.env.common().times.len() * self.env.num_weights();
        let most = (envs / ranges).min((VALUES / values).max(1));
        for (chunk, forms) in forms.chunks(most).enumerate() {
            let rules: Vec<Acting> = forms
                .par_iter()
                .map(|form| Acting::new(&self.env, of, form))
                .collect::<Result<_, _>>()?;
            self.env.restore(&self.start).map_err(StageError::new)?;
            let mut ended = vec![false; envs];
            for t in 0..self.longest() {
                self.context.check_cancelled()?;
                let rule = |i: usize| &rules[(i / ranges).min(rules.len() - 1)];
                step_rules(&mut self.env, &mut self.step, rule)?;
                for i in 0..rules.len() * ranges {
                    let (first, last) = self.ranges[i % ranges];
                    if !ended[i] && first + t < last {
                        record(chunk * most + i / ranges, i % ranges, first + t, self.step.reward[i]);
                    }
                    ended[i] |= self.step.terminated[i] || self.step.truncated[i];
                }
            }
        }
        Ok(())
    }

    /// The number of steps of the longest range.
    fn longest(&self) -> usize {
        self.ranges.iter().map(|(first, last)| last - first).max().unwrap_or(0)
    }

    /// The snapshots from which steps go.
    fn steps(&self) -> Vec<usize> {
        self.ranges.iter().flat_map(|&(first, last)| first..last).collect()
    }

    /// The mean reward of a step under each rule.
    fn rewards(&mut self, of: Of<'_>, forms: &[Form]) -> Result<Vec<f64>, StageError> {
        let mut sums = vec![0.0; forms.len()];
        self.simulate(of, forms, |form, _, _, reward| sums[form] += f64::from(reward))?;
        let steps = self.steps().len() as f64;
        Ok(sums.into_iter().map(|sum| sum / steps).collect())
    }

    /// The rules of classes that a screen by the rewards of positions leaves.
    fn classes(&mut self) -> Result<Vec<Form>, StageError> {
        let features = S::date_features(&self.env);
        let positions = S::constants(&self.env).len();
        if features.is_empty() || positions < 2 {
            return Ok(Vec::new());
        }
        // The steps of each range follow one another; after ruin they pay nothing.
        let mut first = Vec::new();
        let mut count = 0;
        for (from, to) in &self.ranges {
            first.push(count);
            count += to - from;
        }
        let mut by_position = vec![vec![0.0; count]; positions];
        let constants: Vec<Form> = (0..positions).map(Form::Constant).collect();
        let ranges = self.ranges.clone();
        self.simulate(Of::Seen, &constants, |form, range, t, reward| {
            by_position[form][first[range] + t - ranges[range].0] = reward;
        })?;
        let (from, env) = (self.steps(), &self.env);
        let rewards = Rewards { from, by_position };
        let found = partition::candidates(&rewards, &features, &|feature| feature.values(env), &worlds(env));
        Ok(found
            .into_iter()
            .map(|(tree, targets)| Form::Classes(tree, targets))
            .collect())
    }

    /// The candidates with their mean rewards.
    fn candidates(&mut self, of: Of<'_>) -> Result<Vec<(Form, f64)>, StageError> {
        let mut all = Vec::new();
        if of == Of::Seen {
            all.extend((0..S::constants(&self.env).len()).map(Form::Constant));
            all.extend(self.classes()?);
        }
        all.extend(self.rankings(of)?);
        let rewards = self.rewards(of, &all)?;
        Ok(all.into_iter().zip(rewards).collect())
    }

    /// The rankings by the best features.
    fn rankings(&mut self, of: Of<'_>) -> Result<Vec<Form>, StageError> {
        let Some((largest, gross)) = S::limits(&self.env) else {
            return Ok(Vec::new());
        };
        let n = self.env.num_weights();
        let least = ((gross / largest - 1e-9).ceil() as usize).clamp(1, n);
        let ranking = |feature: &str, smoothing, lowest| Ranking {
            feature: feature.to_owned(),
            smoothing,
            lowest,
            count: least,
            weight: largest.min(gross / least as f64),
            gap: FIRST_GAP,
        };
        let mut first = Vec::new();
        match of {
            Of::Hidden(name) if S::hidden(&self.env, name).is_some() => {
                first.push(ranking(name, Smoothing::Mean(1), false));
            }
            Of::Hidden(_) => {}
            Of::Seen => {
                for feature in S::symbol_features(&self.env) {
                    for smoothing in Smoothing::all() {
                        first.extend([false, true].map(|low| ranking(&feature.name, smoothing, low)));
                    }
                }
            }
        }
        // Gaps in the unit of the feature.
        let deviations: Vec<f64> = first
            .par_iter()
            .map(|rule| {
                let acting = Acting::new(&self.env, of, &Form::Ranking(rule.clone()))?;
                Ok(self.deviation(&acting.series, n))
            })
            .collect::<Result<_, StageError>>()?;
        let mut first: Vec<(Ranking, f64)> = (first.into_iter().zip(deviations))
            .filter(|(_, deviation)| *deviation > 0.0)
            .collect();
        if first.len() > KEPT {
            let forms: Vec<Form> = first
                .iter()
                .map(|(rule, deviation)| {
                    Form::Ranking(Ranking {
                        gap: FIRST_GAP * deviation,
                        ..rule.clone()
                    })
                })
                .collect();
            let rewards = self.rewards(of, &forms)?;
            let mut order: Vec<usize> = (0..first.len()).filter(|&k| !rewards[k].is_nan()).collect();
            order.sort_by(|&a, &b| rewards[b].total_cmp(&rewards[a]));
            order.truncate(KEPT);
            first = order.into_iter().map(|k| first[k].clone()).collect();
        }
        let mut counts = vec![least, least.max(n / 3), least.max(n / 2)];
        counts.dedup();
        let mut all = Vec::new();
        for (rule, deviation) in &first {
            for &count in &counts {
                all.extend(GAPS.map(|gap| {
                    Form::Ranking(Ranking {
                        count,
                        weight: largest.min(gross / count as f64),
                        gap: gap * deviation,
                        ..rule.clone()
                    })
                }));
            }
        }
        Ok(all)
    }

    /// The standard deviation of a series `[T, N]` over the ranges.
    fn deviation(&self, series: &[f32], n: usize) -> f64 {
        let values = || {
            let ranges = self.ranges.iter();
            let values = ranges.flat_map(|(first, last)| &series[first * n..last * n]);
            values.map(|value| f64::from(*value)).filter(|value| value.is_finite())
        };
        let count = values().count().max(1) as f64;
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
        // What does not move but for rounding ranks nothing.
        if variance > 1e-10 * mean * mean {
            variance.sqrt()
        } else {
            0.0
        }
    }
}
