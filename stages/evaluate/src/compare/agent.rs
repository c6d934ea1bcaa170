//! The excess returns of a policy by world, read from the trajectory of its backtest.

use crate::account::{RISK_FREE, STEPS};
use crate::panel::Sums;
use crate::performance::{Periods, Returns, ratio, step_return};
use crate::trajectory;
use arrow_array::Array;
use cache::{Artifact, Store};
use datasets::SnapshotTime;
use stages_core::{StageError, table};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The names of the strategy that is compared, and of the one whose returns are risk-free.
pub(crate) const POLICY: &str = "policy";
const CASH: &str = "cash";

/// The smallest share of a backtest's steps that the other backtests must have, too.
const LEAST_COMMON: f64 = 0.9;

/// The difference of two returns above which they are of other markets.
const SAME_MARKET: f64 = 1e-9;

/// A strategy's accounts in a backtest: the policy's, or a baseline's.
#[derive(Debug)]
pub(crate) struct Agent {
    episodes: Vec<Episode>,
    periods: Periods,
}

/// An evaluation episode.
#[derive(Debug)]
struct Episode {
    world: String,
    steps: Vec<Step>,
}

/// A step of an account, with simple returns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The snapshot at which the step ends.
    pub end: SnapshotTime,
    /// The return of the account.
    pub account: f64,
    /// The account's return in excess of cash.
    pub excess: f64,
    /// The return of cash.
    pub cash: f64,
    /// The return of the underlying; NaN where the backtest does not record it.
    pub underlying: f64,
    /// The costs of trades as a fraction of the account's value at the start; NaN where the backtest does not
    /// record them.
    pub costs: f64,
}

impl Agent {
    /// Reads the policy from the trajectory of a backtest.
    pub(crate) fn read(store: &Store, artifact: &Artifact) -> Result<Self, StageError> {
        let policy = Self::strategies(store, artifact, &|name| name == POLICY)?
            .into_values()
            .next();
        policy.ok_or_else(|| {
            StageError::new("a backtest has no policy")
                .hint("connect the trajectories of `evaluate/backtest`")
        })
    }

    /// Reads those strategies of a backtest that are wanted, by name; of several paths the first.
    pub(crate) fn strategies(
        store: &Store,
        artifact: &Artifact,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, Self>, StageError> {
        let rows = trajectory::read(store, artifact)?;
        StageError::new("a backtest is not of worlds, with an account in each")
            .hint("connect backtests on `env/options`, `env/stocks` or `env/table` with a price")
            .when(
                ["world", "episode", "nav"]
                    .iter()
                    .any(|name| rows.column_by_name(name).is_none()),
            )?;
        let (strategies, worlds) = (table::texts(&rows, "strategy")?, table::texts(&rows, "world")?);
        let (paths, episodes) = (table::floats(&rows, "path")?, table::floats(&rows, "episode")?);
        let (nav, times) = (table::floats(&rows, "nav")?, table::snapshot_times(&rows)?);
        let costs = trajectory::optional(&rows, "costs", table::floats)?;
        let prices = trajectory::optional(&rows, "underlying", table::floats)?;
        let same = |a: usize, b: usize| {
            strategies.value(a) == strategies.value(b)
                && paths.value(a) == paths.value(b)
                && episodes.value(a) == episodes.value(b)
        };
        let mut runs = table::runs(0..strategies.len(), same);
        runs.retain(|run| paths.value(run.start) == 0.0);
        let changes = |values: &[f64], of: fn(f64, f64) -> f64| -> Vec<f64> {
            values.windows(2).map(|pair| of(pair[0], pair[1])).collect()
        };
        let returns = |run: &Range<usize>| changes(&nav.values()[run.clone()], step_return);
        // The run of cash or, where there is none, the longest one, which ruin has cut short least; and its
        // risk-free returns.
        let free = trajectory::optional(&rows, STEPS[RISK_FREE], table::floats)?;
        let whole = |episode: f64| {
            let mut of_episode = runs.iter().filter(|run| episodes.value(run.start) == episode);
            let longest = of_episode.clone().max_by_key(|run| run.len());
            match (of_episode.find(|run| strategies.value(run.start) == CASH), free) {
                (Some(cash), _) => Some((cash, returns(cash))),
                (None, Some(free)) => {
                    longest.map(|run| (run, free.values()[run.start + 1..run.end].to_vec()))
                }
                (None, None) => None,
            }
        };
        let first = runs.first().and_then(|run| whole(episodes.value(run.start)));
        let periods = trajectory::periods(artifact, first.map_or(&[][..], |(run, _)| &times[run.clone()]));
        let mut found: BTreeMap<String, Self> = BTreeMap::new();
        for run in runs.iter().filter(|run| wanted(strategies.value(run.start))) {
            let Some((whole, free)) = whole(episodes.value(run.start)) else {
                return Err(StageError::new(
                    "a backtest has no baseline `cash`, whose returns are the risk-free ones",
                )
                .hint("backtest with the default `baselines`"));
            };
            let underlying = match &prices {
                None => vec![f64::NAN; free.len()],
                Some(prices) => changes(&prices.values()[whole.clone()], |a, b| ratio(b, a) - 1.0),
            };
            let of = Returns::of_account(returns(run), &free, &free);
            let costs_of = |step: usize| match &costs {
                None => f64::NAN,
                // The account has ended.
                Some(_) if run.start + step + 1 >= run.end => 0.0,
                Some(costs) => {
                    let at = run.start + step;
                    ratio(costs.value(at + 1) - costs.value(at), nav.value(at))
                }
            };
            let ends = times[whole.clone()].iter().skip(1);
            let steps = ends.enumerate().map(|(step, end)| Step {
                end: *end,
                account: of.account[step],
                excess: of.excess[step],
                cash: free[step],
                underlying: underlying[step],
                costs: costs_of(step),
            });
            let episode = Episode {
                world: worlds.value(run.start).to_owned(),
                steps: steps.collect(),
            };
            let name = strategies.value(run.start).to_owned();
            let agent = found.entry(name).or_insert(Self {
                episodes: Vec::new(),
                periods,
            });
            agent.episodes.push(episode);
        }
        Ok(found)
    }

    /// True if two strategies are of one market: of the same worlds, in which cash and the underlying return
    /// the same in the first world's common steps, of which there is one at least.
    pub(crate) fn is_same_market(&self, other: &Self) -> bool {
        let worlds = |agent: &Self| {
            agent
                .episodes
                .iter()
                .map(|episode| episode.world.clone())
                .collect::<Vec<_>>()
        };
        if worlds(self) != worlds(other) {
            return false;
        }
        let (Some(one), Some(two)) = (self.episodes.first(), other.episodes.first()) else {
            return false;
        };
        let theirs: BTreeMap<SnapshotTime, &Step> = two.steps.iter().map(|step| (step.end, step)).collect();
        let mut common = one
            .steps
            .iter()
            .filter_map(|step| Some((step, *theirs.get(&step.end)?)))
            .peekable();
        let differs = |a: f64, b: f64| (a - b).abs() > SAME_MARKET;
        common.peek().is_some()
            && !common.any(|(a, b)| differs(a.cash, b.cash) || differs(a.underlying, b.underlying))
    }

    fn steps(&self) -> usize {
        self.episodes.iter().map(|episode| episode.steps.len()).sum()
    }
}

/// The steps that several backtests have in common.
#[derive(Debug)]
pub(crate) struct Common {
    /// The common snapshots of each episode.
    times: Vec<BTreeSet<SnapshotTime>>,
    periods: Periods,
    /// The number of common steps.
    pub steps: usize,
    /// The largest number of a backtest's steps that are not common.
    pub left_out: usize,
    /// The number of worlds.
    pub worlds: usize,
}

impl Common {
    /// The steps that all backtests have in common: an environment whose features need earlier days begins
    /// later.
    pub(crate) fn of<'a>(agents: impl Iterator<Item = &'a Agent> + Clone) -> Result<Self, StageError> {
        let first = agents
            .clone()
            .next()
            .ok_or_else(|| StageError::new("there is no backtest to compare"))?;
        let differ = |what: &str| {
            StageError::new(format!("the backtests are not over the same worlds and dates: {what}"))
                .hint("give their environments the same market, `test:`, `validation:` and `seed`")
        };
        let of = |episode: &Episode| episode.steps.iter().map(|step| step.end).collect();
        let mut times: Vec<BTreeSet<SnapshotTime>> = first.episodes.iter().map(of).collect();
        for other in agents.clone() {
            let differs = first
                .episodes
                .iter()
                .zip(&other.episodes)
                .find(|(a, b)| a.world != b.world);
            if differs.is_some() || first.episodes.len() != other.episodes.len() {
                let what = differs.map_or("their number differs".to_owned(), |(episode, _)| {
                    format!("{} is not in each", episode.world)
                });
                return Err(differ(&what));
            }
            for (times, episode) in times.iter_mut().zip(&other.episodes) {
                let own: BTreeSet<SnapshotTime> = of(episode);
                times.retain(|time| own.contains(time));
            }
        }
        for (i, times) in times.iter().enumerate() {
            let most = agents
                .clone()
                .map(|agent| agent.episodes[i].steps.len())
                .max()
                .unwrap_or(0);
            if (times.len() as f64) < LEAST_COMMON * most as f64 {
                let world = &first.episodes[i].world;
                return Err(differ(&format!(
                    "of {most} steps in {world}, {} are in each backtest",
                    times.len()
                )));
            }
        }
        let steps = times.iter().map(BTreeSet::len).sum();
        let most = agents.map(Agent::steps).max().unwrap_or(0);
        let worlds = first.episodes.chunk_by(|a, b| a.world == b.world).count();
        Ok(Self {
            times,
            periods: first.periods,
            steps,
            left_out: most - steps,
            worlds,
        })
    }

    /// Checks that there is an interval over worlds.
    pub(crate) fn check_worlds(&self) -> Result<(), StageError> {
        match self.worlds {
            0 | 1 => Err(StageError::new(
                "the backtests are of a single world, over which there is no interval",
            )
            .hint(
                "`verdict: {}` compares in one world; the intervals of one world are also `versus/…` of \
                    `evaluate/backtest`; or hold more worlds out for testing",
            )),
            _ => Ok(()),
        }
    }

    /// The sums of an agent's excess returns over the common steps, by world, in the order of the episodes.
    pub(crate) fn sums(&self, agent: &Agent) -> Vec<Sums> {
        let mut sums = Vec::with_capacity(self.worlds);
        let mut last = None;
        for episode in self.episodes(agent) {
            let excess: Vec<f64> = episode.steps.iter().map(|step| step.excess).collect();
            if last.replace(episode.world) != Some(episode.world) {
                sums.push(Sums::default());
            }
            if let Some(world) = sums.last_mut() {
                world.join(&Sums::of(&excess));
            }
        }
        sums
    }

    /// The common steps of an agent's episodes, in order.
    pub(crate) fn episodes<'a>(&self, agent: &'a Agent) -> Vec<CommonSteps<'a>> {
        let episodes = agent.episodes.iter().zip(&self.times);
        let common = episodes.map(|(episode, times)| CommonSteps {
            world: &episode.world,
            steps: episode.steps.iter().filter(|step| times.contains(&step.end)).collect(),
        });
        common.collect()
    }

    /// Periods per year; NaN with too few observations.
    pub(crate) fn annual(&self) -> f64 {
        self.periods.annual(self.steps)
    }
}

/// The steps of an episode that all backtests have.
#[derive(Debug)]
pub(crate) struct CommonSteps<'a> {
    /// The episode's world.
    pub world: &'a str,
    /// The steps, in order of time.
    pub steps: Vec<&'a Step>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::Date;

    /// A backtest with one step a day in each world, over `days`, that returns `gain` a step.
    fn agent(worlds: &[&str], days: Range<i32>, gain: f64) -> Agent {
        let first = Date::from_ymd(2020, 1, 1).unwrap();
        let steps: Vec<_> = days
            .map(|day| Step {
                end: SnapshotTime::of_day(first.plus(day)),
                account: gain * f64::from(day),
                excess: gain * f64::from(day),
                cash: 0.0,
                underlying: gain,
                costs: f64::NAN,
            })
            .collect();
        let episode = |world: &&str| Episode {
            world: (*world).to_owned(),
            steps: steps.clone(),
        };
        Agent {
            episodes: worlds.iter().map(episode).collect(),
            periods: Periods::DAILY,
        }
    }

    #[test]
    fn agents_are_compared_over_the_steps_that_all_have() {
        let (early, late) = (agent(&["A", "B"], 0..100, 1.0), agent(&["A", "B"], 5..100, 2.0));
        let common = Common::of([&early, &late].into_iter()).unwrap();
        assert_eq!((common.steps, common.left_out, common.worlds), (190, 10, 2));
        let sum: f64 = (5..100).map(f64::from).sum();
        let sums = |agent| {
            common
                .sums(agent)
                .iter()
                .map(|sums| (sums.n, sums.sum))
                .collect::<Vec<_>>()
        };
        assert_eq!(sums(&early), [(95.0, sum); 2]);
        assert_eq!(sums(&late), [(95.0, 2.0 * sum); 2]);
    }

    #[test]
    fn agents_of_other_worlds_or_dates_are_refused() {
        let one = agent(&["A", "B"], 0..100, 1.0);
        for (other, what) in [
            (agent(&["A", "C"], 0..100, 1.0), "B is not in each"),
            (agent(&["A"], 0..100, 1.0), "their number differs"),
            (agent(&["A", "B"], 50..150, 1.0), "of 100 steps in A, 50 are in each"),
        ] {
            let refused = Common::of([&one, &other].into_iter()).unwrap_err().to_string();
            assert!(refused.contains(what), "{refused}");
        }
        let single = agent(&["A"], 0..100, 1.0);
        let common = Common::of([&single, &single].into_iter()).unwrap();
        assert!(common.check_worlds().is_err());
    }
}
