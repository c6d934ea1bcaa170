//! `search:`, the settings of a pipeline that are searched, and how.

mod read;

pub(crate) use read::read;

use crate::text::some_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The block `search:`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The settings that are searched, by name: a parameter, `STAGE.with.KEY`, `STAGE.needs.PORT`, or the
    /// name of a port that one stage alone has in its `needs:`.
    #[serde(default)]
    pub over: BTreeMap<String, Domain>,
    /// The metric that decides, of validation data: `{ maximize: STAGE.METRIC }` or `{ minimize: … }`. A list
    /// of several gives a Pareto front.
    pub objective: Objectives,
    /// Conditions on metrics, such as `evaluate_validation.max_drawdown <= 0.3`. A trial that breaks one is
    /// worse than any that breaks none.
    #[serde(default)]
    pub constraints: Vec<Constraint>,
    /// The number of seeds that each trial is trained with; its objective is their mean.
    #[serde(default = "one")]
    pub seeds: Seeds,
    /// The number of trials.
    pub trials: Option<u32>,
    /// The way new trials are proposed.
    #[serde(default)]
    pub sampler: SamplerName,
    /// The way trials are stopped early.
    #[serde(default)]
    pub pruner: Pruner,
    /// The limits of the search's cost.
    #[serde(default)]
    pub budget: Budget,
    /// The number of trials under way at a time. A trial is proposed with the results of all but the last
    /// `workers - 1` before it, so that what is proposed depends on no machine's speed.
    #[serde(default = "four")]
    pub workers: u32,
    /// If true, trials are proposed in batches, each when the one before is finished: what is proposed
    /// depends on `batch` and on no number of workers.
    #[serde(default)]
    pub synchronous: bool,
    /// The trials of a batch of a synchronous search.
    #[serde(default = "sixteen")]
    pub batch: u32,
    /// The seed of the proposals.
    #[serde(default)]
    pub seed: u64,
    /// Trials to begin with: the settings of each by name; a setting that is left out is the file's own.
    #[serde(default)]
    pub first: Vec<BTreeMap<String, Value>>,
    /// If true, the trials of earlier searches of this space with this objective are observations.
    #[serde(default)]
    pub warm_start: bool,
    /// The seeds with which the best trial is trained again, none of which the search used; as many as
    /// `seeds` by default, 0 for none.
    pub final_seeds: Option<u32>,
}

fn one() -> Seeds {
    Seeds { count: 1, set: None }
}

fn four() -> u32 {
    4
}

fn sixteen() -> u32 {
    16
}

/// The values of a setting, and when it is searched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "DomainForm", into = "DomainForm")]
#[schemars(with = "DomainForm")]
pub struct Domain {
    /// The values.
    pub values: Values,
    /// The values of other settings under which this one is searched; under others, it is the file's own.
    pub when: BTreeMap<String, Vec<Value>>,
}

#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DomainForm {
    /// Two bounds of numbers that are spread evenly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uniform: Option<[f64; 2]>,
    /// Two bounds above 0 of numbers that are spread evenly in their logarithm.
    #[serde(default, alias = "log_uniform", skip_serializing_if = "Option::is_none")]
    log: Option<[f64; 2]>,
    /// Two bounds of integers, both included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    integer: Option<[i64; 2]>,
    /// Two bounds above 0 of integers that are spread evenly in their logarithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_integer: Option<[i64; 2]>,
    /// A list of values without order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    choice: Option<Vec<Value>>,
    /// The step between numbers, from the lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<f64>,
    /// The values of other settings under which this one is searched: a value or a list by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    when: BTreeMap<String, Value>,
}

impl TryFrom<DomainForm> for Domain {
    type Error = &'static str;

    fn try_from(form: DomainForm) -> Result<Self, &'static str> {
        const ONE: &str = " has no values\ngive one of `uniform: [LOW, HIGH]`, `log`, `integer`, `log_integer`, \
            `choice: [A, B]`";
        const BOUNDS: &str =
            " has invalid bounds\nthe first bound is below the second, and above 0 for `log`";
        let step = form.step;
        let float = |[low, high]: [f64; 2], log: bool| {
            let sound = low < high && (high - low).is_finite() && (!log || low > 0.0);
            sound.then_some(Values::Float { low, high, log, step }).ok_or(BOUNDS)
        };
        let integer = |[low, high]: [i64; 2], log: bool| {
            let step = step.unwrap_or(1.0);
            let sound = low < high && high.checked_sub(low).is_some() && (!log || low > 0);
            let is_whole = step >= 1.0 && step.fract() == 0.0 && step < 9e15;
            let values = Values::Integer {
                low,
                high,
                log,
                step: step as i64,
            };
            (sound && is_whole).then_some(values).ok_or(BOUNDS)
        };
        let values = match (form.uniform, form.log, form.integer, form.log_integer, form.choice) {
            (Some(bounds), None, None, None, None) => float(bounds, false)?,
            (None, Some(bounds), None, None, None) => float(bounds, true)?,
            (None, None, Some(bounds), None, None) => integer(bounds, false)?,
            (None, None, None, Some(bounds), None) => integer(bounds, true)?,
            (None, None, None, None, Some(choice)) => {
                let distinct = |(i, value): (usize, &Value)| !choice[..i].contains(value);
                if choice.is_empty() || !choice.iter().enumerate().all(distinct) {
                    return Err(" is an empty list, or has a value twice\nlist different values");
                }
                Values::Choice(choice)
            }
            _ => return Err(ONE),
        };
        let is_choice = matches!(values, Values::Choice(_));
        let width = match &values {
            Values::Float { low, high, .. } => high - low,
            Values::Integer { low, high, .. } => (high - low) as f64,
            Values::Choice(_) => f64::INFINITY,
        };
        let log = matches!(
            values,
            Values::Float { log: true, .. } | Values::Integer { log: true, .. }
        );
        if step.is_some_and(|step| !(step > 0.0 && step.is_finite()) || is_choice || log || step > width) {
            return Err(" has an invalid step\na step is above 0, at most the range, and \
                    belongs to `uniform` or `integer`");
        }
        let list = |(name, value)| {
            let values = match value {
                Value::Array(values) => values,
                value => vec![value],
            };
            (name, values)
        };
        let when = form.when.into_iter().map(list).collect();
        Ok(Self { values, when })
    }
}

impl From<Domain> for DomainForm {
    fn from(Domain { values, when }: Domain) -> Self {
        let mut form = Self {
            when: when
                .into_iter()
                .map(|(name, values)| (name, Value::Array(values)))
                .collect(),
            ..Self::default()
        };
        match values {
            Values::Float { low, high, log, step } => {
                form.step = step;
                *(if log { &mut form.log } else { &mut form.uniform }) = Some([low, high]);
            }
            Values::Integer { low, high, log, step } => {
                form.step = (step != 1).then_some(step as f64);
                *(if log { &mut form.log_integer } else { &mut form.integer }) = Some([low, high]);
            }
            Values::Choice(choice) => form.choice = Some(choice),
        }
        form
    }
}

/// The values of a setting: a distribution, or a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// Numbers between two bounds, both included; evenly spread, or in their logarithm. With a step, the
    /// multiples of it above the lower bound.
    Float {
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
        /// True if the numbers are spread evenly in their logarithm.
        log: bool,
        /// The step between numbers.
        step: Option<f64>,
    },
    /// Integers between two bounds, both included.
    Integer {
        /// The lower bound.
        low: i64,
        /// The upper bound.
        high: i64,
        /// True if the numbers are spread evenly in their logarithm.
        log: bool,
        /// The step between numbers.
        step: i64,
    },
    /// One of a list, without order.
    Choice(Vec<Value>),
}

/// The metrics that decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "ObjectivesForm", into = "Vec<Objective>")]
#[schemars(with = "ObjectivesForm")]
pub struct Objectives(pub Vec<Objective>);

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum ObjectivesForm {
    One(Objective),
    Several(Vec<Objective>),
}

impl TryFrom<ObjectivesForm> for Objectives {
    type Error = &'static str;

    fn try_from(form: ObjectivesForm) -> Result<Self, &'static str> {
        match form {
            ObjectivesForm::One(objective) => Ok(Self(vec![objective])),
            ObjectivesForm::Several(all) if !all.is_empty() => Ok(Self(all)),
            ObjectivesForm::Several(_) => Err(" is an empty list\nwrite `{ maximize: STAGE.METRIC }`"),
        }
    }
}

impl From<Objectives> for Vec<Objective> {
    fn from(objectives: Objectives) -> Self {
        objectives.0
    }
}

/// A metric that is to be as large or as small as possible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "ObjectiveForm", into = "ObjectiveForm")]
#[schemars(with = "ObjectiveForm")]
pub struct Objective {
    /// The stage and the metric.
    pub metric: MetricOf,
    /// True if more is better.
    pub maximize: bool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ObjectiveForm {
    /// The metric `STAGE.METRIC` of which more is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    maximize: Option<MetricOf>,
    /// The metric `STAGE.METRIC` of which less is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    minimize: Option<MetricOf>,
}

impl TryFrom<ObjectiveForm> for Objective {
    type Error = &'static str;

    fn try_from(form: ObjectiveForm) -> Result<Self, &'static str> {
        let (metric, maximize) = match (form.maximize, form.minimize) {
            (Some(metric), None) => (metric, true),
            (None, Some(metric)) => (metric, false),
            _ => {
                return Err(
                    " has no metric\nwrite `{ maximize: STAGE.METRIC }` or `{ minimize: STAGE.METRIC }`",
                );
            }
        };
        Ok(Self { metric, maximize })
    }
}

impl From<Objective> for ObjectiveForm {
    fn from(Objective { metric, maximize }: Objective) -> Self {
        let (more, less) = if maximize {
            (Some(metric), None)
        } else {
            (None, Some(metric))
        };
        Self {
            maximize: more,
            minimize: less,
        }
    }
}

/// A metric of a stage: `STAGE.METRIC`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct MetricOf {
    /// The stage's name in the file.
    pub stage: String,
    /// The metric's name in the summary of the stage's metrics.
    pub metric: String,
}

impl TryFrom<String> for MetricOf {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let parts = text
            .split_once('.')
            .filter(|(stage, metric)| !stage.is_empty() && !metric.is_empty());
        let (stage, metric) =
            parts.ok_or(" is not a metric\nwrite `STAGE.METRIC`, such as `evaluate.utility`")?;
        Ok(Self {
            stage: stage.to_owned(),
            metric: metric.to_owned(),
        })
    }
}

impl From<MetricOf> for String {
    fn from(MetricOf { stage, metric }: MetricOf) -> Self {
        format!("{stage}.{metric}")
    }
}

/// A bound on a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Constraint {
    /// The metric.
    pub metric: MetricOf,
    /// True if the bound is an upper bound, `<=`.
    pub is_upper: bool,
    /// The bound.
    pub bound: f64,
}

impl TryFrom<String> for Constraint {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        const FORM: &str = " is not a constraint\nwrite `STAGE.METRIC <= 0.3` or `STAGE.METRIC >= 0.3`";
        let words: Vec<&str> = text.split_whitespace().collect();
        let [metric, sign @ ("<=" | ">="), bound] = words.as_slice() else {
            return Err(FORM);
        };
        let bound = bound.parse().ok().filter(|bound: &f64| bound.is_finite()).ok_or(FORM)?;
        Ok(Self {
            metric: MetricOf::try_from((*metric).to_owned())?,
            is_upper: *sign == "<=",
            bound,
        })
    }
}

impl From<Constraint> for String {
    fn from(constraint: Constraint) -> Self {
        let sign = if constraint.is_upper { "<=" } else { ">=" };
        format!("{} {sign} {}", String::from(constraint.metric), constraint.bound)
    }
}

/// The seeds of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "SeedsForm", into = "SeedsForm")]
#[schemars(with = "SeedsForm")]
pub struct Seeds {
    /// Their number.
    pub count: u32,
    /// The setting that is the seed; by default the `seed` of each stage that trains.
    pub set: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum SeedsForm {
    Count(u32),
    Of(SeedsOf),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SeedsOf {
    /// The number of seeds.
    count: u32,
    /// The setting that is the seed: a parameter, or `STAGE.with.KEY`.
    set: String,
}

impl From<SeedsForm> for Seeds {
    fn from(form: SeedsForm) -> Self {
        match form {
            SeedsForm::Count(count) => Self { count, set: None },
            SeedsForm::Of(SeedsOf { count, set }) => Self { count, set: Some(set) },
        }
    }
}

impl From<Seeds> for SeedsForm {
    fn from(Seeds { count, set }: Seeds) -> Self {
        match set {
            None => Self::Count(count),
            Some(set) => Self::Of(SeedsOf { count, set }),
        }
    }
}

/// A way to propose trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SamplerName {
    /// Independent draws.
    Random,
    /// The scrambled Sobol sequence, which covers the space evenly.
    Sobol,
    /// The tree-structured Parzen estimator.
    #[default]
    Tpe,
    /// The covariance matrix adaptation evolution strategy; for numbers alone.
    CmaEs,
    /// A Gaussian process with expected improvement.
    Gp,
}

/// A way to stop trials early. `none`: each trial is trained to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pruner {
    /// No trial is stopped.
    #[default]
    None,
    /// A trial goes on past a rung if it is among the best `1 / factor` there (Li and others 2020).
    Asha(Rungs),
    /// Several brackets of successive halving with a different first rung each (Li and others 2018).
    Hyperband(Rungs),
    /// A trial goes on past a rung unless it is worse than the median of the trials there.
    Median(Rungs),
}

/// The rungs at which trials are judged: `min`, `min * factor`, `min * factor^2`, … as far as they are at
/// most the full value over the root of `factor`, and the full value: the file's own, or `max`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rungs {
    /// The setting that is the cost of a trial: `STAGE.with.KEY` or `STAGE.KEY`, such as
    /// `train.total_timesteps`.
    pub resource: String,
    /// The value at the first rung.
    pub min: u64,
    /// The ratio between rungs, and the part of the trials that goes on is its inverse; 3 by default.
    #[serde(default = "three")]
    pub factor: u32,
    /// The value at the last rung; the file's own by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

fn three() -> u32 {
    3
}

/// The limits of a search's cost; it ends at whichever comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// The time, over all runs of the search.
    #[serde(deserialize_with = "some_text")]
    #[schemars(with = "Option<String>", extend("pattern" = "^([0-9]+[smhd])+$"))]
    pub wall: Option<Duration>,
    /// The number of trials.
    pub trials: Option<u32>,
}

/// The budget is no part of what a search is.
impl Serialize for Budget {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("trials", self.trials)])
    }
}

impl Search {
    /// The number of trials.
    pub fn trials(&self) -> u32 {
        self.trials.or(self.budget.trials).unwrap_or(64)
    }

    /// The rungs' settings, if trials are stopped early.
    pub fn rungs(&self) -> Option<&Rungs> {
        match &self.pruner {
            Pruner::None => None,
            Pruner::Asha(rungs) | Pruner::Hyperband(rungs) | Pruner::Median(rungs) => Some(rungs),
        }
    }
}
