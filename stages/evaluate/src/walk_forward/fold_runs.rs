//! The runs of folds, read from their backtests and joined in order of time.

use crate::performance::step_return;
use crate::trajectory;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringArray};
use cache::{Artifact, Store};
use datasets::{Date, SnapshotTime};
use serde::Serialize;
use stages_core::{StageError, table};
use std::sync::Arc;

/// A run of one strategy over the test dates of a fold.
pub(super) struct Run {
    strategy: String,
    path: f64,
    times: Vec<SnapshotTime>,
    actions: Vec<Option<String>>,
    underlying: Vec<f64>,
    nav: Vec<f64>,
}

/// The runs of a fold.
pub(super) struct FoldRuns(Vec<Run>);

/// The test dates of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Fold {
    pub from: Date,
    pub to: Date,
}

/// A strategy over all folds: for each of its paths, the runs of the folds in order.
pub(super) struct Strategy {
    pub name: String,
    pub paths: Vec<Vec<Run>>,
}

impl Run {
    /// The simple returns of the net asset value, from snapshot to snapshot.
    pub(super) fn returns(&self) -> Vec<f64> {
        self.nav.windows(2).map(|pair| step_return(pair[0], pair[1])).collect()
    }

    /// The levels of the underlying.
    pub(super) fn underlying_returns(&self) -> Vec<f64> {
        self.underlying.windows(2).map(|pair| pair[1] / pair[0] - 1.0).collect()
    }

    /// The times of the snapshots.
    pub(super) fn times(&self) -> &[SnapshotTime] {
        &self.times
    }

    fn ends(&self) -> (SnapshotTime, SnapshotTime) {
        (self.times[0], self.times[self.times.len() - 1])
    }
}

impl FoldRuns {
    /// Reads the runs from the trajectory of a backtest.
    pub(super) fn read(store: &Store, artifact: &Artifact) -> Result<Self, StageError> {
        let rows = trajectory::read(store, artifact)?;
        StageError::new("a backtest has no net asset values: it is of episodes, not of dates")
            .hint(
                "a walk-forward joins backtests over test dates: of `env/options`, `env/stocks`, \
                        or `env/table` with a price",
            )
            .when(rows.column_by_name("nav").is_none())?;
        let (strategies, path) = (table::texts(&rows, "strategy")?, table::floats(&rows, "path")?);
        let worlds = trajectory::optional(&rows, "world", table::texts)?;
        StageError::new("a fold is tested in several worlds, whose dates are the same")
            .hint("walk forward over one world, or compare the folds of each")
            .when(
                worlds
                    .is_some_and(|worlds| worlds.iter().any(|world| world != worlds.iter().next().flatten())),
            )?;
        // Of portfolios there are weights instead.
        let actions = trajectory::optional(&rows, "action", table::texts)?;
        let times = table::snapshot_times(&rows)?;
        let (nav, underlying) = (table::floats(&rows, "nav")?, table::floats(&rows, "underlying")?);
        let same =
            |a: usize, b: usize| strategies.value(a) == strategies.value(b) && path.value(a) == path.value(b);
        let runs: Vec<Run> = table::runs(0..rows.num_rows(), same)
            .into_iter()
            .map(|range| Run {
                strategy: strategies.value(range.start).to_owned(),
                path: path.value(range.start),
                times: times[range.clone()].to_vec(),
                actions: range
                    .clone()
                    .map(|i| {
                        let known = actions.filter(|actions| actions.is_valid(i));
                        known.map(|actions| actions.value(i).to_owned())
                    })
                    .collect(),
                underlying: underlying.values()[range.clone()].to_vec(),
                nav: nav.values()[range].to_vec(),
            })
            .collect();
        StageError::new("a backtest has no rows").when(runs.is_empty())?;
        Ok(Self(runs))
    }

    fn ends(&self) -> (SnapshotTime, SnapshotTime) {
        let first = self.0.iter().map(|run| run.ends().0).min();
        let last = self.0.iter().map(|run| run.ends().1).max();
        first.zip(last).unwrap_or_else(|| self.0[0].ends())
    }
}

/// The folds in order of time, and the strategies of all folds with each path joined.
pub(super) fn joined(mut folds: Vec<FoldRuns>) -> Result<(Vec<Fold>, Vec<Strategy>), StageError> {
    folds.sort_by_key(|fold| fold.ends().0);
    if let Some(pair) = folds.windows(2).find(|pair| pair[1].ends().0 <= pair[0].ends().1) {
        return Err(StageError::new(format!(
            "two folds are tested on the same dates: one up to {}, another from {}",
            pair[0].ends().1.date,
            pair[1].ends().0.date
        ))
        .hint(
            "give the folds test dates that follow one another, as `matrix: \
            { fold: { from, to, train, test } }` does",
        ));
    }
    let dates: Vec<Fold> = folds
        .iter()
        .map(|fold| {
            let (first, last) = fold.ends();
            Fold {
                from: first.date,
                to: last.date,
            }
        })
        .collect();
    let mut strategies: Vec<Strategy> = Vec::new();
    for (at, fold) in folds.into_iter().enumerate() {
        for run in fold.0 {
            let found = strategies.iter().position(|strategy| strategy.name == run.strategy);
            let strategy = match found {
                Some(found) => &mut strategies[found],
                None => {
                    strategies.push(Strategy {
                        name: run.strategy.clone(),
                        paths: Vec::new(),
                    });
                    let last = strategies.len() - 1;
                    &mut strategies[last]
                }
            };
            match strategy.paths.iter_mut().find(|path| path[0].path == run.path) {
                Some(path) => path.push(run),
                None if at == 0 => strategy.paths.push(vec![run]),
                None => return Err(uneven(&run.strategy)),
            }
        }
        if let Some(strategy) = strategies
            .iter()
            .find(|s| s.paths.iter().any(|path| path.len() != at + 1))
        {
            return Err(uneven(&strategy.name));
        }
    }
    Ok((dates, strategies))
}

fn uneven(strategy: &str) -> StageError {
    StageError::new(format!("not every fold has the same runs of `{strategy}`"))
        .hint("backtest all folds with the same `baselines` and `random_paths`")
}

/// The runs as a table: a fold's account begins with the net asset value at which the previous fold ended.
pub(super) fn table(folds: &[Fold], strategies: &[Strategy]) -> Result<RecordBatch, StageError> {
    let (mut strategy, mut path, mut fold) = (Vec::new(), Vec::new(), Vec::new());
    let (mut times, mut action) = (Vec::new(), Vec::new());
    let (mut underlying, mut nav) = (Vec::new(), Vec::new());
    for one in strategies {
        for runs in &one.paths {
            let mut capital = runs[0].nav[0];
            for (run, dates) in runs.iter().zip(folds) {
                let n = run.times.len();
                strategy.extend(std::iter::repeat_n(one.name.as_str(), n));
                path.extend(std::iter::repeat_n(run.path, n));
                fold.extend(std::iter::repeat_n(dates.from.to_string(), n));
                times.extend_from_slice(&run.times);
                action.extend(run.actions.iter().map(Option::as_deref));
                underlying.extend_from_slice(&run.underlying);
                let by = capital / run.nav[0];
                nav.extend(run.nav.iter().map(|nav| nav * by));
                capital = run.nav[n - 1] * by;
            }
        }
    }
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("strategy", Arc::new(StringArray::from(strategy)), false),
        ("path", Arc::new(Float64Array::from(path)), false),
    ];
    let times = table::time_columns(times);
    columns.extend(times.into_iter().map(|(name, array)| (name, array, false)));
    columns.extend([
        ("fold", Arc::new(StringArray::from(fold)) as ArrayRef, false),
        ("action", Arc::new(StringArray::from(action)), true),
        ("underlying", Arc::new(Float64Array::from(underlying)), false),
        ("nav", Arc::new(Float64Array::from(nav)), false),
    ]);
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}
