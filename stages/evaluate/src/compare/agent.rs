//! The excess returns of a policy by world, as the trajectory of its backtest tells them.

use crate::panel::Sums;
use crate::performance::{Periods, Returns, step_return};
use arrow_array::Array;
use cache::{Artifact, Store};
use datasets::SnapshotTime;
use stages_core::{StageError, table};
use std::ops::Range;

/// The strategy that is compared, and the one whose returns are the risk-free ones.
const POLICY: &str = "policy";
const RISK_FREE: &str = "cash";

/// A backtest of a policy.
#[derive(Debug)]
pub(super) struct Agent {
    /// The world, the first and the last snapshot of each evaluation episode.
    episodes: Vec<(String, SnapshotTime, SnapshotTime)>,
    /// Excess returns by world, in the order of the episodes.
    pub worlds: Vec<Sums>,
    periods: Periods,
    steps: usize,
}

impl Agent {
    /// Reads the trajectory of a backtest.
    ///
    /// # Errors
    /// When it is not that of a policy and of cash in worlds.
    pub fn read(store: &Store, artifact: &Artifact) -> Result<Self, StageError> {
        let entry = artifact
            .entry("trajectory.parquet")
            .ok_or_else(|| StageError::new("a trajectory has no file `trajectory.parquet`"))?;
        let rows = table::from_parquet(store.blob(entry.blob)?)?;
        if ["world", "episode", "nav"]
            .iter()
            .any(|name| rows.column_by_name(name).is_none())
        {
            return Err(StageError::new("a backtest is not of worlds, with an account in each")
                .hint("compare backtests over the test worlds of `env/options`"));
        }
        let (strategies, worlds) = (table::texts(&rows, "strategy")?, table::texts(&rows, "world")?);
        let (paths, episodes) = (table::floats(&rows, "path")?, table::floats(&rows, "episode")?);
        let (nav, times) = (table::floats(&rows, "nav")?, table::snapshot_times(&rows)?);
        let same = |a: usize, b: usize| {
            strategies.value(a) == strategies.value(b)
                && paths.value(a) == paths.value(b)
                && episodes.value(a) == episodes.value(b)
        };
        let runs = table::runs(0..strategies.len(), same);
        let of = |name: &str| -> Vec<Range<usize>> {
            let first = |run: &&Range<usize>| strategies.value(run.start) == name && paths.value(run.start) == 0.0;
            runs.iter().filter(first).cloned().collect()
        };
        let returns = |run: &Range<usize>| -> Vec<f64> {
            let nav = &nav.values()[run.clone()];
            nav.windows(2).map(|pair| step_return(pair[0], pair[1])).collect()
        };
        let (policy, cash) = (of(POLICY), of(RISK_FREE));
        let mut agent = Self {
            episodes: Vec::new(),
            worlds: Vec::new(),
            periods: Periods::DAILY,
            steps: 0,
        };
        for run in &policy {
            let episode = episodes.value(run.start);
            let Some(cash) = cash.iter().find(|cash| episodes.value(cash.start) == episode) else {
                return Err(
                    StageError::new("a backtest has no baseline `cash`, whose returns are the risk-free ones")
                        .hint("backtest with the default `baselines`"),
                );
            };
            if agent.episodes.is_empty() {
                let dates: Vec<_> = times[cash.clone()].iter().map(|time| time.date).collect();
                agent.periods = Periods::between(&dates);
            }
            let free = returns(cash);
            let excess = Returns::of_account(returns(run), &free, &free).excess;
            agent.steps += excess.len();
            let (world, sums) = (worlds.value(run.start), Sums::of(&excess));
            match (agent.episodes.last(), agent.worlds.last_mut()) {
                (Some((last, ..)), Some(all)) if last == world => all.join(&sums),
                _ => agent.worlds.push(sums),
            }
            agent
                .episodes
                .push((world.to_owned(), times[cash.start], times[cash.end - 1]));
        }
        Ok(agent)
    }

    /// Periods a year; NaN of too few observations.
    pub fn annual(&self) -> f64 {
        self.periods.annual(self.steps)
    }
}

/// The number of worlds, if all backtests are of the same.
///
/// # Errors
/// When they are not, or there is only one.
pub(super) fn same_worlds<'a>(mut agents: impl Iterator<Item = &'a Agent>) -> Result<usize, StageError> {
    let first = agents
        .next()
        .ok_or_else(|| StageError::new("there is no backtest to compare"))?;
    for other in agents {
        let differs = first.episodes.iter().zip(&other.episodes).find(|(a, b)| a != b);
        if differs.is_some() || first.episodes.len() != other.episodes.len() {
            let name = differs.map_or("their number", |((world, ..), _)| world.as_str());
            return Err(StageError::new(format!(
                "the backtests are not over the same test worlds and dates: {name} differs"
            ))
            .hint("give their environments the same market, `test:` and `seed`"));
        }
    }
    match first.worlds.len() {
        0 | 1 => Err(
            StageError::new("the backtests are of a single world, over which there is no interval").hint(
                "the intervals of one world are `versus/…` of `evaluate/backtest`; hold more worlds out for testing",
            ),
        ),
        worlds => Ok(worlds),
    }
}
