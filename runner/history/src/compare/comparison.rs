//! Groups of repetitions, and the statistics of their metrics.

use super::groups::groups;
use super::parameters::{self, Differing, Repeats};
use super::point::{Measured, Point, spell};
use super::spread::Spread;
use runner_engine::Failure;
use runner_pipeline::suggest;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::Hash;

/// Options of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The metrics to show; the first is the sort key. The summary metrics if none is named.
    pub metrics: Vec<String>,
    /// Axes and parameters whose values are repetitions, besides `seed`.
    pub over: Vec<String>,
    /// No grouping: every point is its own group.
    pub each: bool,
    /// Include parameters and metrics that are the same everywhere.
    pub all: bool,
    /// If true, higher values of the first metric are better; `None` decides by its name.
    pub higher_is_better: Option<bool>,
}

/// Points side by side.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// All points, in the order in which they were named.
    pub points: Vec<Point>,
    /// The groups, best first.
    pub groups: Vec<Group>,
    /// The parameters that are shown.
    pub parameters: Vec<String>,
    /// The number of parameters that differ only as a consequence of the parameters shown.
    pub following: usize,
    /// The metrics that are shown; the groups are sorted by the first.
    pub metrics: Vec<String>,
    /// The number of metrics that have the same value everywhere.
    pub equal: usize,
    /// The parameters whose values are repetitions.
    pub over: Vec<String>,
    /// True if the metrics are those that were asked for: by name, or all.
    pub is_complete: bool,
    higher_is_better: Option<bool>,
    /// The best mean of each metric that is shown, if several groups have one.
    best: BTreeMap<String, f64>,
}

/// Points that differ only in the parameters of repetitions.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The points, by index.
    pub points: Vec<usize>,
}

/// The statistics of a metric in a group.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The number of computations that are expected to have a value.
    pub of: usize,
    /// The values, one for each computation.
    pub values: Vec<f64>,
    /// The mean and spread of the values; `None` without values.
    pub spread: Option<Spread>,
}

impl Comparison {
    /// Compares points.
    ///
    /// # Errors
    /// When no point has a metric or a parameter that the options name.
    pub fn new(points: Vec<Point>, options: &Options) -> Result<Self, Failure> {
        check_over(&points, &options.over)?;
        let repeats = Repeats::new(&options.over, options.each);
        let mut new = Self {
            groups: groups(&points, &repeats),
            parameters: Vec::new(),
            following: 0,
            metrics: Vec::new(),
            equal: 0,
            over: repeats.names().to_vec(),
            is_complete: options.all || !options.metrics.is_empty(),
            higher_is_better: options.higher_is_better,
            best: BTreeMap::new(),
            points,
        };
        if options.all {
            new.parameters = parameters::all(&new.points);
        } else {
            let differing = Differing::of(&new.points);
            new.parameters = differing.leading;
            new.following = differing.following.len();
        }
        new.choose(options)?;
        new.sort();
        let best = |name: &String| Some((name.clone(), new.best(name)?));
        new.best = new.metrics.iter().filter_map(best).collect();
        Ok(new)
    }

    /// Selects the metrics.
    fn choose(&mut self, options: &Options) -> Result<(), Failure> {
        let mut ranked: BTreeSet<(usize, usize, usize, String)> = BTreeSet::new();
        for point in &self.points {
            for (i, stage) in point.stages.iter().enumerate() {
                let headline = || stage.figures.headline.iter();
                let names: Vec<&String> = match options.all {
                    true => stage.figures.values.keys().chain(headline()).collect(),
                    false => headline().collect(),
                };
                for name in names {
                    ranked.insert((family(stage), i, prominence(name), format!("{}{name}", stage.prefix)));
                }
            }
        }
        let mut chosen: Vec<String> = Vec::new();
        for metric in &options.metrics {
            chosen.push(self.named(metric)?);
        }
        let wanted = chosen.clone();
        if wanted.is_empty() || options.all {
            chosen.extend(ranked.into_iter().map(|(.., name)| name));
        }
        let mut seen = BTreeSet::new();
        chosen.retain(|name| seen.insert(name.clone()));
        self.metrics = chosen;
        if wanted.is_empty() && !options.all && self.groups.len() > 1 {
            let before = self.metrics.len();
            let telling: Vec<String> = self
                .metrics
                .iter()
                .filter(|name| !self.same_everywhere(name))
                .cloned()
                .collect();
            self.equal = before - telling.len();
            self.metrics = telling;
        }
        Ok(())
    }

    /// The metric called `wanted`; its stage may be omitted if only one stage has the metric.
    fn named(&self, wanted: &str) -> Result<String, Failure> {
        let mut known: BTreeSet<String> = BTreeSet::new();
        for stage in self.points.iter().flat_map(|point| &point.stages) {
            let names = stage
                .figures
                .values
                .keys()
                .chain(&stage.figures.headline)
                .chain(stage.figures.curves.keys());
            known.extend(names.map(|name| format!("{}{name}", stage.prefix)));
        }
        if known.contains(wanted) {
            return Ok(wanted.to_owned());
        }
        let prefixes: BTreeSet<&String> = self
            .points
            .iter()
            .flat_map(|p| &p.stages)
            .map(|stage| &stage.prefix)
            .collect();
        let short: Vec<String> = prefixes
            .iter()
            .map(|prefix| format!("{prefix}{wanted}"))
            .filter(|name| known.contains(name))
            .collect();
        match short.as_slice() {
            [one] => Ok(one.clone()),
            [] => {
                let bare = |name: &'_ String| {
                    let prefix = prefixes.iter().find(|prefix| name.starts_with(prefix.as_str()));
                    name[prefix.map_or(0, |prefix| prefix.len())..].to_owned()
                };
                // Without a stage, only the metric's name can be misspelt.
                let candidates: BTreeSet<String> = match wanted.contains('.') {
                    true => known,
                    false => known.iter().map(bare).collect(),
                };
                Err(
                    Failure::usage(format!("none of these has a metric `{wanted}`")).hint(suggest(
                        wanted,
                        "metrics",
                        candidates.iter().map(String::as_str),
                    )),
                )
            }
            several => Err(Failure::usage(format!("`{wanted}` is a metric of several stages"))
                .hint(format!("name one: {}", several.join(", ")))),
        }
    }

    fn same_everywhere(&self, metric: &str) -> bool {
        let mut values = BTreeSet::new();
        for group in &self.groups {
            let outcome = self.outcome(group, metric);
            if outcome.values.len() < outcome.of || outcome.of == 0 {
                return false;
            }
            values.extend(outcome.values.iter().map(|value| value.to_bits()));
        }
        values.len() == 1
    }

    /// Sorts the groups, best first; groups without the value come last, and equal groups keep the order in
    /// which they were named.
    fn sort(&mut self) {
        let Some(first) = self.metrics.first() else { return };
        let descending = self.higher_is_better(first).unwrap_or(true);
        let mean = |group: &Group| self.outcome(group, first).spread.map(|spread| spread.mean);
        let mut keyed: Vec<(Option<f64>, Group)> =
            self.groups.iter().map(|group| (mean(group), group.clone())).collect();
        keyed.sort_by(|(a, _), (b, _)| match (a, b) {
            (Some(a), Some(b)) if descending => b.total_cmp(a),
            (Some(a), Some(b)) => a.total_cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        });
        self.groups = keyed.into_iter().map(|(_, group)| group).collect();
    }

    /// The points of a group.
    pub fn members<'c>(&'c self, group: &'c Group) -> impl Iterator<Item = &'c Point> {
        group.points.iter().filter_map(|&i| self.points.get(i))
    }

    /// The computations of a group that may have the metric, each once, with their points.
    pub fn measured<'c>(&'c self, group: &'c Group, metric: &str) -> Vec<(&'c Point, &'c Measured)> {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        for point in self.members(group) {
            // A prefix such as `train.` ends in a dot, so that it never matches the beginning of another
            // stage's name; an empty prefix occurs only with a single stage.
            let fitting = point.stages.iter().filter(|stage| metric.starts_with(&stage.prefix));
            found.extend(
                fitting
                    .filter(|stage| seen.insert(stage.computation(&point.run)))
                    .map(|stage| (point, stage)),
            );
        }
        found
    }

    /// The statistics of a metric in a group.
    pub fn outcome(&self, group: &Group, metric: &str) -> Outcome {
        let measured = self.measured(group, metric);
        let values: Vec<f64> = measured.iter().filter_map(|(_, stage)| stage.value(metric)).collect();
        Outcome {
            of: measured.len(),
            spread: Spread::of(&values),
            values,
        }
    }

    /// True if higher values of a metric are better; `None` if its name does not tell.
    pub fn higher_is_better(&self, metric: &str) -> Option<bool> {
        let by_name = direction(metric);
        match self.metrics.first() {
            Some(first) if first == metric => self.higher_is_better.or(by_name),
            _ => by_name,
        }
    }

    /// The best mean of a metric among several groups.
    fn best(&self, metric: &str) -> Option<f64> {
        let higher = self.higher_is_better(metric)?;
        let mean = |group: &Group| self.outcome(group, metric).spread.map(|spread| spread.mean);
        let means: Vec<f64> = self.groups.iter().filter_map(mean).collect();
        let best = |a: f64, b: f64| if higher { a.max(b) } else { a.min(b) };
        means.iter().copied().reduce(best).filter(|_| means.len() > 1)
    }

    /// True if no other group's mean of a metric that is shown is better than a group's; false without
    /// others.
    pub fn is_best(&self, group: &Group, metric: &str) -> bool {
        let (Some(best), Some(spread)) = (self.best.get(metric), self.outcome(group, metric).spread) else {
            return false;
        };
        match self.higher_is_better(metric) {
            Some(true) => spread.mean >= *best,
            _ => spread.mean <= *best,
        }
    }

    /// The values of a parameter in a group, each once.
    pub fn values(&self, group: &Group, parameter: &str) -> Vec<String> {
        let value = |point: &Point| point.parameters.get(parameter).map_or_else(|| "-".to_owned(), spell);
        once(self.members(group).map(value))
    }

    /// The display names of the runs of a group, each once.
    pub fn runs<'c>(&'c self, group: &'c Group) -> Vec<&'c str> {
        once(self.members(group).map(|point| point.called.as_str()))
    }

    /// True if all points are of one run.
    pub fn is_of_one_run(&self) -> bool {
        self.points.windows(2).all(|pair| pair[0].run == pair[1].run)
    }
}

/// The items, each once, in their order.
pub(super) fn once<T: Clone + Eq + Hash>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    items.filter(|item| seen.insert(item.clone())).collect()
}

fn check_over(points: &[Point], over: &[String]) -> Result<(), Failure> {
    let known = parameters::all(points);
    for name in over {
        let only = Repeats::new(std::slice::from_ref(name), true);
        if !known.iter().any(|parameter| only.has(parameter)) {
            let short = known.iter().filter(|name| parameters::rank(name) < 2);
            let short: BTreeSet<&str> = short.filter_map(|name| name.rsplit('.').next()).collect();
            return Err(
                Failure::usage(format!("none of these has an axis or a parameter `{name}`")).hint(suggest(
                    name,
                    "axes and parameters",
                    short,
                )),
            );
        }
    }
    Ok(())
}

/// The rank of a stage's family: evaluations first.
fn family(stage: &Measured) -> usize {
    match stage.family.as_str() {
        "evaluate" => 0,
        "train" => 1,
        _ => 2,
    }
}

/// Metrics in the order of their importance.
const PROMINENT: &str = "sharpe episodic_return charts/episodic_return total_return annual_return volatility \
                         max_drawdown costs accuracy mrr success";

fn prominence(name: &str) -> usize {
    let mut known = PROMINENT.split(' ');
    known.position(|known| known == name).unwrap_or(usize::MAX)
}

/// Metrics for which higher is better. `max_drawdown` is negative.
const HIGHER: &str = "sharpe excess_return utility omega sortino calmar total_return annual_return \
                      episodic_return max_drawdown return reward score accuracy success mrr hits_1 hits_3 \
                      hits_10 auc_pr";

/// Metrics for which lower is better.
const LOWER: &str = "loss error cost costs seconds mean_rank false_proofs calibration_error";

/// True if higher is better, by the last part of a metric's name (`evaluate.baseline/cash/sharpe`).
fn direction(metric: &str) -> Option<bool> {
    let name = metric.rsplit(['.', '/']).next().unwrap_or(metric);
    let is_of = |names: &str| names.split(' ').any(|known| known == name);
    is_of(HIGHER).then_some(true).or(is_of(LOWER).then_some(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_better() {
        for (name, better) in [
            ("evaluate.baseline/cash/sharpe", Some(true)),
            ("train.charts/episodic_return", Some(true)),
            ("evaluate.costs", Some(false)),
            ("train.seconds", Some(false)),
            ("evaluate.episodic_return_std", None),
            ("train.losses/approx_kl", None),
        ] {
            assert_eq!(direction(name), better, "{name}");
        }
    }
}
