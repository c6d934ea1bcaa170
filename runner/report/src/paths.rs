//! The accounts of a backtest step by step: charts, drawdowns and actions, of the first run of each strategy
//! in the first world.

use super::chart::{Axis, Chart, Role, Series, Unit, strips};
use super::figure_table::{self, Column};
use super::figures::shown;
use super::glossary;
use super::html::escape;
use arrow_array::{Array as _, RecordBatch};
use cache::Store;
use datasets::Date;
use runner_history::StageRun;
use stages_core::table as columns;
use std::collections::BTreeMap;

/// The number of drawdowns in the table.
const WORST: usize = 5;

/// The columns of the policy's account that are shown, if a trajectory has them, and the titles of their
/// charts.
const OF_POLICY: [(&str, &str); 6] = [
    ("delta", "Delta of the policy's positions, units of the underlying"),
    (
        "vega",
        "Vega of the policy's positions, currency per 1.00 of volatility",
    ),
    ("margin", "Margin of the policy, currency"),
    ("gross", "Absolute value of the policy's positions, currency"),
    ("net", "Long less short positions of the policy, currency"),
    (
        "concentration",
        "Concentration of the policy: the sum of squared weights",
    ),
];

/// The prefix of the names of weight columns, and the number of weights that are shown: those with the
/// largest averages.
const WEIGHT: &str = "weight.";
const WEIGHTS: usize = 8;

/// The first run of a strategy.
#[derive(Default)]
struct Path {
    days: Vec<f64>,
    columns: BTreeMap<&'static str, Vec<f64>>,
    actions: Vec<String>,
    /// The weights of positions by instrument, for the policy only.
    weights: Vec<(String, Vec<f64>)>,
}

/// The accounts of a stage's trajectory.
pub(super) struct Paths {
    world: String,
    /// The strategies by name, the policy first.
    paths: Vec<(String, Path)>,
}

impl Paths {
    /// Reads the trajectory of a stage; `None` if it has none.
    pub(crate) fn read(stage: &StageRun, store: &Store) -> Option<Self> {
        let artifact = store.artifact(*stage.outputs.get("trajectory")?).ok()?;
        let blob = store.blob(artifact.entry("trajectory.parquet")?.blob).ok()?;
        let (world, paths) = split(&columns::from_parquet(blob).ok()?)?;
        (!paths.is_empty()).then_some(Self { world, paths })
    }

    fn policy(&self) -> &Path {
        &self.paths[0].1
    }

    /// The first and the last day: `2018-01-02 to 2020-08-06`.
    pub(crate) fn range(&self) -> Option<String> {
        let date = |day: &f64| Date(day.floor() as i32);
        let days = &self.policy().days;
        Some(format!("{} to {}", date(days.first()?), date(days.last()?)))
    }

    /// A chart of the strategies whose name is wanted, as lines with their roles.
    fn chart(&self, title: &str, of: &dyn Fn(&Path) -> Vec<f64>, is_wanted: &dyn Fn(&str) -> bool) -> Chart {
        let wanted = self.paths.iter().filter(|(name, _)| is_wanted(name));
        let series = wanted.map(|(name, path)| {
            let points = path.days.iter().copied().zip(of(path)).collect();
            Series::line(&glossary::title(name), points).role(Role::of(name))
        });
        Chart::new(title, series.collect(), Axis::Days)
    }

    /// Equity and drawdown of the strategies whose name is wanted; `id` is that of the evaluation.
    fn equity_and_drawdown(&self, id: &str, is_wanted: &dyn Fn(&str) -> bool) -> [Chart; 2] {
        let equity = self.chart("Equity, start = 1", &equity, is_wanted);
        let drawdown = self.chart("Drawdown", &|path| fall(&path.columns["nav"]), is_wanted);
        [equity.group(id), drawdown.unit(Unit::Percent).group(id)]
    }

    /// Equity with drawdown below, of the strategies whose name is wanted; `id` is that of the evaluation.
    pub(crate) fn equity(&self, id: &str, is_wanted: &dyn Fn(&str) -> bool) -> String {
        let [equity, drawdown] = self.equity_and_drawdown(id, is_wanted);
        let world = match self.world.is_empty() {
            true => String::new(),
            false => format!(
                "<p class=\"dim\">The charts show one world, {}, and the first run of each strategy; the table \
                has all.</p>\n",
                escape(&self.world)
            ),
        };
        format!(
            "{}{}{world}",
            equity.height(170.0).html(),
            drawdown.height(100.0).html()
        )
    }

    /// Equity of all strategies.
    pub(crate) fn all_equity(&self) -> String {
        let chart = self.chart("Equity of all strategies, start = 1", &equity, &|_| true);
        chart.html()
    }

    /// The worst drawdowns of the policy.
    pub(crate) fn drawdowns(&self) -> String {
        let path = self.policy();
        let date = |row: usize| Date(path.days[row].floor() as i32).to_string();
        let rows: Vec<Vec<String>> = worst(&path.columns["nav"])
            .iter()
            .map(|one| {
                vec![
                    shown(one.depth, Unit::Percent),
                    date(one.start),
                    date(one.trough),
                    one.recovery.map_or("not recovered".to_owned(), date),
                ]
            })
            .collect();
        let columns = ["depth", "peak", "trough", "recovery"].map(Column::text);
        figure_table::section("Worst drawdowns of the policy", &columns, &rows)
    }

    /// Exposure, costs and actions of the policy.
    pub(crate) fn behaviour(&self) -> String {
        let path = self.policy();
        let column =
            |name: &'static str| move |path: &Path| path.columns.get(name).cloned().unwrap_or_default();
        let is_policy = |name: &str| name == self.paths[0].0;
        let mut out = String::from("<div class=\"charts\">\n");
        for (name, title) in OF_POLICY.iter().filter(|(name, _)| path.columns.contains_key(name)) {
            out.push_str(&self.chart(title, &column(name), &is_policy).html());
        }
        let weights: Vec<Series> = path
            .weights
            .iter()
            .map(|(name, weights)| {
                let points = path.days.iter().copied().zip(weights.iter().copied());
                Series::line(name, points.collect())
            })
            .collect();
        if !weights.is_empty() {
            let chart = Chart::new("Largest weights of the policy", weights, Axis::Days);
            out.push_str(&chart.unit(Unit::Percent).html());
        }
        let costs = self.chart("Costs paid, currency", &column("costs"), &|_| true);
        out.push_str(&costs.unit(Unit::Money).html());
        let mut names: Vec<String> = path.actions.iter().filter(|name| !name.is_empty()).cloned().collect();
        names.sort();
        names.dedup();
        let at: Vec<_> = path
            .days
            .iter()
            .zip(&path.actions)
            .filter_map(|(day, action)| Some((*day, names.iter().position(|name| name == action)?)))
            .collect();
        if !names.is_empty() {
            out.push_str(&strips("Actions of the policy", &names, &at));
        }
        out.push_str("</div>\n");
        out
    }
}

/// The equity and the drawdown of the strategies of a stage; `None` if there is no trajectory.
pub(super) fn equity_and_drawdown(stage: &StageRun, store: &Store) -> Option<[Chart; 2]> {
    Some(Paths::read(stage, store)?.equity_and_drawdown(&stage.id, &|_| true))
}

/// The net asset value of each step, as a multiple of the first.
fn equity(path: &Path) -> Vec<f64> {
    let nav = &path.columns["nav"];
    nav.iter().map(|value| value / nav[0]).collect()
}

fn split(table: &RecordBatch) -> Option<(String, Vec<(String, Path)>)> {
    let strategies = columns::texts(table, "strategy").ok()?;
    let path = columns::floats(table, "path").ok()?;
    // Trajectories of other versions have no episode column.
    let episode = columns::floats_or_nan(table, "episode").unwrap_or_default();
    let world = columns::texts(table, "world").ok().filter(|worlds| !worlds.is_empty());
    let times = columns::snapshot_times(table).ok()?;
    let actions = columns::texts(table, "action").ok();
    let mut names = vec!["nav", "costs"];
    names.extend(OF_POLICY.map(|(name, _)| name));
    names.retain(|name| table.column_by_name(name).is_some());
    let values: Vec<Vec<f64>> = names
        .iter()
        .map(|name| columns::floats_or_nan(table, name).unwrap_or_default())
        .collect();
    let mut found: Vec<(String, Path)> = Vec::new();
    let is_shown = |i: &usize| path.value(*i) == 0.0 && episode.get(*i).is_none_or(|episode| *episode <= 0.0);
    for i in (0..table.num_rows()).filter(is_shown) {
        if found.last().is_none_or(|(name, _)| name != strategies.value(i)) {
            found.push((strategies.value(i).to_owned(), Path::default()));
        }
        let Some((_, one)) = found.last_mut() else {
            continue;
        };
        one.days.push(times[i].days());
        for (name, values) in names.iter().zip(&values) {
            let value = values.get(i).copied().unwrap_or(f64::NAN);
            one.columns.entry(name).or_default().push(value);
        }
        let action = actions.as_ref().filter(|actions| !actions.is_null(i));
        one.actions
            .push(action.map_or_else(String::new, |actions| actions.value(i).to_owned()));
    }
    if let Some((_, policy)) = found.first_mut() {
        policy.weights = weights(table, policy.days.len());
    }
    let world = world.map(|worlds| worlds.value(0).to_owned()).unwrap_or_default();
    Some((world, found))
}

/// The weights with the largest averages in the first `rows` rows, which belong to the policy's first run.
fn weights(table: &RecordBatch, rows: usize) -> Vec<(String, Vec<f64>)> {
    let schema = table.schema();
    let mut all: Vec<(String, Vec<f64>)> = schema
        .fields()
        .iter()
        .filter_map(|field| {
            let values = columns::floats_or_nan(table, field.name()).ok();
            let instrument = field.name().strip_prefix(WEIGHT)?.to_owned();
            Some((instrument, values?.get(..rows)?.to_vec()))
        })
        .collect();
    let size = |(_, values): &(String, Vec<f64>)| values.iter().map(|weight| weight.abs()).sum::<f64>();
    all.sort_by(|a, b| size(b).total_cmp(&size(a)));
    all.truncate(WEIGHTS);
    all
}

/// The drawdown at each step: the value divided by its running peak, minus 1.
fn fall(nav: &[f64]) -> Vec<f64> {
    let mut peak = f64::NEG_INFINITY;
    nav.iter()
        .map(|value| {
            peak = peak.max(*value);
            value / peak - 1.0
        })
        .collect()
}

/// A fall from a peak: depth, and the rows of the peak, the trough and, if there is one, the recovery.
#[derive(Debug, PartialEq)]
struct Drawdown {
    depth: f64,
    start: usize,
    trough: usize,
    recovery: Option<usize>,
}

/// The deepest falls from a peak, deepest first.
fn worst(nav: &[f64]) -> Vec<Drawdown> {
    let mut found: Vec<Drawdown> = Vec::new();
    let mut open = false;
    for (i, depth) in fall(nav).into_iter().enumerate() {
        match found.last_mut().filter(|_| open) {
            Some(last) if depth == 0.0 => {
                last.recovery = Some(i);
                open = false;
            }
            Some(last) if depth < last.depth => (last.depth, last.trough) = (depth, i),
            None if depth < 0.0 => {
                open = true;
                found.push(Drawdown {
                    depth,
                    start: i - 1,
                    trough: i,
                    recovery: None,
                });
            }
            _ => {}
        }
    }
    found.sort_by(|a, b| a.depth.total_cmp(&b.depth));
    found.truncate(WORST);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawdowns_have_a_peak_a_trough_and_a_recovery() {
        let nav = [1.0, 1.1, 0.99, 1.045, 1.1, 1.2, 1.08, 1.14, 0.9];
        let found = worst(&nav);
        let of = |at: usize| (found[at].start, found[at].trough, found[at].recovery);
        assert_eq!((of(0), of(1)), ((5, 8, None), (1, 2, Some(4))));
        assert!((found[0].depth + 0.25).abs() < 1e-12 && (found[1].depth + 0.1).abs() < 1e-12);
        assert!(worst(&[1.0, 1.0, 2.0]).is_empty());
    }
}
