//! The excess returns of several backtests over the steps that all of them have.

use crate::compare::agent::{Agent, Common};
use crate::effective::{Dated, design_effect};
use crate::panel::{Episode, Panel, Sums};
use datasets::SnapshotTime;
use rayon::prelude::*;
use stages_core::{Context, Input, StageError};
use std::collections::BTreeMap;
use std::ops::Range;

/// The numbers of the backtests of a trial, one for each of its seeds.
pub(super) type Seeds = Range<usize>;

/// Excess returns over common steps.
pub(super) struct CommonReturns {
    episodes: Vec<CommonEpisode>,
    /// Steps a year; NaN with too few observations.
    pub annual: f64,
    /// The number of steps, and the largest number that a backtest has beside them.
    pub steps: usize,
    pub left_out: usize,
    /// The number of worlds.
    pub worlds: usize,
}

struct CommonEpisode {
    world: String,
    /// The times at which the steps end `[T]`.
    times: Vec<SnapshotTime>,
    /// The excess returns of each backtest `[backtests][T]`.
    excess: Vec<Vec<f64>>,
}

impl CommonReturns {
    /// Reads the policies of backtests of one market.
    ///
    /// # Errors
    /// When a backtest is not of accounts, or they are not of the same worlds and dates.
    pub(super) fn read(context: &Context, backtests: &[&Input]) -> Result<Self, StageError> {
        let read = |input: &&Input| {
            context.check_cancelled()?;
            Agent::read(&context.store, &input.artifact)
        };
        let agents: Vec<Agent> = backtests.par_iter().map(read).collect::<Result<_, StageError>>()?;
        let other = agents.iter().find(|agent| !agent.is_same_market(&agents[0]));
        StageError::new("the backtests are not of the same market")
            .hint("backtest all trials in environments over the same prices")
            .when(other.is_some())?;
        let common = Common::of(agents.iter())?;
        let mut episodes: Vec<CommonEpisode> = Vec::new();
        for agent in &agents {
            for (i, own) in common.episodes(agent).into_iter().enumerate() {
                if i == episodes.len() {
                    episodes.push(CommonEpisode {
                        world: own.world.to_owned(),
                        times: own.steps.iter().map(|step| step.end).collect(),
                        excess: Vec::with_capacity(agents.len()),
                    });
                }
                episodes[i]
                    .excess
                    .push(own.steps.iter().map(|step| step.excess).collect());
            }
        }
        Ok(Self {
            annual: common.annual(),
            steps: common.steps,
            left_out: common.left_out,
            worlds: common.worlds,
            episodes,
        })
    }

    /// The steps of each world, in the order of the episodes.
    fn by_world(&self) -> impl Iterator<Item = &[CommonEpisode]> {
        self.episodes.chunk_by(|a, b| a.world == b.world)
    }

    /// The sums of a trial in some steps of an episode: each step counts once, with the mean over seeds of
    /// the return and of its square, so that utility is the mean of the seeds' utilities.
    fn sums_of(episode: &CommonEpisode, steps: Range<usize>, seeds: &Seeds) -> Sums {
        let mut sums = Sums::default();
        for own in &episode.excess[seeds.clone()] {
            sums.join(&Sums::of(&own[steps.clone()]));
        }
        sums.scaled(1.0 / seeds.len() as f64)
    }

    /// The sums of a trial over all steps.
    pub(super) fn sums(&self, seeds: &Seeds) -> Sums {
        let mut sums = Sums::default();
        for episode in &self.episodes {
            sums.join(&Self::sums_of(episode, 0..episode.times.len(), seeds));
        }
        sums
    }

    /// The number of distinct times.
    pub(super) fn dates(&self) -> usize {
        self.times().len()
    }

    /// The distinct times in order, each with its number.
    fn times(&self) -> BTreeMap<SnapshotTime, usize> {
        let all = self.episodes.iter().flat_map(|episode| &episode.times);
        let mut times: BTreeMap<SnapshotTime, usize> = all.map(|time| (*time, 0)).collect();
        times.values_mut().enumerate().for_each(|(i, number)| *number = i);
        times
    }

    /// The sums of each trial in each of `groups` blocks of successive dates, those of all worlds together.
    pub(super) fn by_dates(&self, trials: &[Seeds], groups: usize) -> Vec<Vec<Sums>> {
        let times = self.times();
        let group = |time: &SnapshotTime| times[time] * groups / times.len();
        let of_trial = |seeds: &Seeds| {
            let mut cells = vec![Sums::default(); groups];
            for episode in &self.episodes {
                let mut first = 0;
                for same in episode.times.chunk_by(|a, b| group(a) == group(b)) {
                    let steps = first..first + same.len();
                    cells[group(&same[0])].join(&Self::sums_of(episode, steps.clone(), seeds));
                    first = steps.end;
                }
            }
            cells
        };
        trials.par_iter().map(of_trial).collect()
    }

    /// The sums of each trial in each of `groups` groups of whole worlds, as many in each as can be.
    pub(super) fn by_worlds(&self, trials: &[Seeds], groups: usize) -> Vec<Vec<Sums>> {
        let of_trial = |seeds: &Seeds| {
            let mut cells = vec![Sums::default(); groups];
            for (world, episodes) in self.by_world().enumerate() {
                for episode in episodes {
                    let sums = Self::sums_of(episode, 0..episode.times.len(), seeds);
                    cells[world * groups / self.worlds].join(&sums);
                }
            }
            cells
        };
        trials.par_iter().map(of_trial).collect()
    }

    /// The trials that have backtests as strategies of which dates and worlds are resampled; their seeds are
    /// paths.
    pub(super) fn panel(&self, trials: &[Seeds], block: f64, draws: usize, seed: u64) -> Panel {
        let episodes: Vec<Episode<'_>> = self
            .episodes
            .iter()
            .map(|episode| Episode {
                world: &episode.world,
                times: &episode.times,
                strategies: trials
                    .iter()
                    .filter(|seeds| !seeds.is_empty())
                    .map(|seeds| episode.excess[seeds.clone()].iter().map(Vec::as_slice).collect())
                    .collect(),
            })
            .collect();
        Panel::new(&episodes, block, draws, seed)
    }

    /// The excess returns of all seeds of a trial, and the number of independent observations among them:
    /// the steps over the design effect of the worlds, whatever the number of seeds.
    pub(super) fn pooled(&self, seeds: &Seeds) -> (Vec<f64>, f64) {
        let runs = self.episodes.iter().flat_map(|episode| &episode.excess[seeds.clone()]);
        let mean = |episode: &CommonEpisode, t: usize| {
            episode.excess[seeds.clone()].iter().map(|own| own[t]).sum::<f64>() / seeds.len() as f64
        };
        let dated: Vec<Dated> = self
            .by_world()
            .map(|episodes| {
                let steps = episodes.iter().flat_map(|episode| {
                    let times = episode.times.iter().enumerate();
                    times.map(|(t, time)| (*time, mean(episode, t)))
                });
                steps.collect()
            })
            .collect();
        let pooled = runs.flatten().copied().collect();
        (pooled, self.steps as f64 / design_effect(&dated))
    }
}
