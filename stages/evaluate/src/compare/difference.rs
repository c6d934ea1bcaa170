//! The difference between two agents over worlds in which both are tested and seeds with which each is
//! trained, with its confidence intervals.

use crate::panel::{Estimate, Sums};
use rayon::prelude::*;
use stages_numerics::random::Random;

/// Resamples of worlds, the same for both agents, and of the seeds of each.
///
/// Worlds and seeds are crossed: every trained policy plays every world. Drawing both by themselves is the
/// pigeonhole bootstrap (Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1, 2007), whose
/// variance is not below that of the mean of a crossed design (McCullagh, "Resampling and exchangeable
/// arrays", Bernoulli 6, 2000: no resampling has exactly it). Of n units n - 1 are drawn, which makes the
/// variance of a mean of few units unbiased (Rao and Wu, "Resampling inference with complex survey data",
/// JASA 83, 1988).
pub(crate) struct Resampling {
    draws: Vec<Draw>,
}

struct Draw {
    worlds: Vec<usize>,
    agent: Vec<usize>,
    against: Vec<usize>,
}

/// A figure of two agents, compared.
#[derive(Debug)]
pub(super) struct Comparison {
    pub agent: f64,
    pub against: f64,
    /// The difference, with the interval for other worlds and other seeds.
    pub over_both: Estimate,
    /// The difference, with the interval for other worlds and the same policies.
    pub over_worlds: Estimate,
    /// The share of the worlds in which the difference is above 0.
    pub ahead: f64,
}

impl Resampling {
    /// `draws` resamples of the given numbers of seeds of the agent, seeds of the other agent, and worlds.
    pub(crate) fn new((agent, against, worlds): (usize, usize, usize), draws: usize, seed: u64) -> Self {
        let draw = |draw: usize| {
            let mut random = Random::new(&[seed, 0x636f_6d70, draw as u64]);
            let mut some = |n: usize| -> Vec<usize> {
                let drawn = n.saturating_sub(1).max(1);
                (0..drawn).map(|_| random.below(n as u64) as usize).collect()
            };
            Draw {
                worlds: some(worlds),
                agent: some(agent),
                against: some(against),
            }
        };
        Self {
            draws: (0..draws).map(draw).collect(),
        }
    }

    /// Compares a figure, given the sums of each seed's excess returns by world, `[seed][world]`. A seed's
    /// figure is that of the returns of all its worlds; an agent's figure is the mean over its seeds.
    pub(super) fn compare(&self, agent: &[Vec<Sums>], against: &[Vec<Sums>], of: &Figure<'_>) -> Comparison {
        let all = |n: usize| (0..n).collect::<Vec<_>>();
        let (worlds, seeds, others) = (all(agent[0].len()), all(agent.len()), all(against.len()));
        let value = mean(agent, of) - mean(against, of);
        let estimate = |mut drawn: Vec<f64>| {
            drawn.retain(|x| x.is_finite());
            Estimate::of(value, &drawn)
        };
        let ahead = worlds.iter().filter(|&&world| {
            figure(agent, &seeds, &[world], of) - figure(against, &others, &[world], of) > 0.0
        });
        Comparison {
            agent: mean(agent, of),
            against: mean(against, of),
            over_both: estimate(self.over_both(agent, against, of)),
            over_worlds: estimate(self.over_worlds(agent, against, of)),
            ahead: ahead.count() as f64 / worlds.len() as f64,
        }
    }

    /// The difference in each resample of the worlds and of both agents' seeds, as [`Resampling::compare`]
    /// takes it; NaN where the figure has no value.
    pub(crate) fn over_both(&self, agent: &[Vec<Sums>], against: &[Vec<Sums>], of: &Figure<'_>) -> Vec<f64> {
        let difference = |draw: &Draw| {
            figure(agent, &draw.agent, &draw.worlds, of) - figure(against, &draw.against, &draw.worlds, of)
        };
        self.draws.par_iter().map(difference).collect()
    }

    /// The difference in each resample of the worlds, with all seeds.
    pub(crate) fn over_worlds(
        &self,
        agent: &[Vec<Sums>],
        against: &[Vec<Sums>],
        of: &Figure<'_>,
    ) -> Vec<f64> {
        let all = |n: usize| (0..n).collect::<Vec<_>>();
        let (seeds, others) = (all(agent.len()), all(against.len()));
        let difference = |draw: &Draw| {
            figure(agent, &seeds, &draw.worlds, of) - figure(against, &others, &draw.worlds, of)
        };
        self.draws.par_iter().map(difference).collect()
    }
}

/// A figure of excess returns.
pub(crate) type Figure<'a> = dyn Fn(&Sums) -> f64 + Sync + 'a;

/// The figure of each seed, over all its worlds.
pub(crate) fn by_seed(agent: &[Vec<Sums>], of: &Figure<'_>) -> Vec<f64> {
    let worlds: Vec<usize> = (0..agent.first().map_or(0, Vec::len)).collect();
    (0..agent.len())
        .map(|seed| figure(agent, &[seed], &worlds, of))
        .collect()
}

/// The figure of an agent: the mean over its seeds.
pub(crate) fn mean(agent: &[Vec<Sums>], of: &Figure<'_>) -> f64 {
    by_seed(agent, of).iter().sum::<f64>() / agent.len() as f64
}

fn figure(agent: &[Vec<Sums>], seeds: &[usize], worlds: &[usize], of: &Figure<'_>) -> f64 {
    let seed_figure = |&seed: &usize| {
        let mut sums = Sums::default();
        worlds.iter().for_each(|&world| sums.join(&agent[seed][world]));
        of(&sums)
    };
    seeds.iter().map(seed_figure).sum::<f64>() / seeds.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent of `seeds` policies in the given worlds. Each policy's return in a world is the world's mean
    /// plus a draw for the policy plus a draw for the pair, whose standard deviations are `deviations`.
    fn agent(random: &mut Random, worlds: &[f64], seeds: usize, deviations: (f64, f64)) -> Vec<Vec<Sums>> {
        let (of_seed, of_pair) = deviations;
        (0..seeds)
            .map(|_| {
                let own = of_seed * random.normal();
                let sums = |world: &f64| Sums::of(&[world + own + of_pair * random.normal(); 2]);
                worlds.iter().map(sums).collect()
            })
            .collect()
    }

    #[test]
    fn figures_are_means_over_seeds_and_worlds() {
        let agent = vec![
            vec![Sums::of(&[1.0, 2.0]), Sums::of(&[3.0, 6.0])],
            vec![Sums::of(&[0.0, 0.0]), Sums::of(&[4.0, 4.0])],
        ];
        let other = vec![vec![Sums::of(&[1.0, 1.0]), Sums::of(&[5.0, 5.0])]];
        let found = Resampling::new((2, 1, 2), 200, 1).compare(&agent, &other, &|sums| sums.mean());
        assert_eq!((found.agent, found.against), (2.5, 3.0));
        assert_eq!((found.over_both.value, found.over_worlds.value), (-0.5, -0.5));
        // Of 0.75 less 1, and of 4.25 less 5.
        assert_eq!((found.over_worlds.low, found.over_worlds.high), (-0.75, -0.25));
        assert_eq!(found.ahead, 0.0);
        assert!(found.over_both.low < -0.75 && found.over_both.high > -0.25, "{found:?}");
    }

    /// Differences between worlds are common to both agents and widen no interval; differences between seeds
    /// widen the interval for other seeds.
    #[test]
    fn worlds_are_paired_and_seeds_are_not() {
        let random = &mut Random::new(&[2]);
        let worlds: Vec<f64> = (0..40).map(|_| random.normal()).collect();
        let width = |of: Estimate| of.high - of.low;
        let same = (
            agent(random, &worlds, 5, (0.0, 0.05)),
            agent(random, &worlds, 5, (0.0, 0.05)),
        );
        let resampling = Resampling::new((5, 5, 40), 1_000, 3);
        let found = resampling.compare(&same.0, &same.1, &|sums| sums.mean());
        // Of 40 worlds and 5 seeds each: 2 x 1.96 x 0.05 x sqrt(2 / 200).
        assert!((width(found.over_worlds) / 0.0196 - 1.0).abs() < 0.3, "{found:?}");
        let unlike = (
            agent(random, &worlds, 5, (0.3, 0.05)),
            agent(random, &worlds, 5, (0.3, 0.05)),
        );
        let found = resampling.compare(&unlike.0, &unlike.1, &|sums| sums.mean());
        assert!(width(found.over_both) > 5.0 * width(found.over_worlds), "{found:?}");
    }

    /// In nearly 95 % of many studies of two equally good agents, the interval holds 0, although seeds are
    /// few; the interval over worlds alone holds it far less often.
    #[test]
    fn the_interval_for_other_seeds_covers_as_often_as_it_says() {
        let random = &mut Random::new(&[4]);
        let studies = 400;
        let (mut both, mut worlds_alone) = (0, 0);
        for study in 0..studies {
            let worlds: Vec<f64> = (0..40).map(|_| random.normal()).collect();
            let (one, other) = (
                agent(random, &worlds, 5, (0.1, 0.3)),
                agent(random, &worlds, 5, (0.1, 0.3)),
            );
            let resampling = Resampling::new((5, 5, 40), 300, study);
            let found = resampling.compare(&one, &other, &|sums| sums.mean());
            let covers = |of: Estimate| u32::from(of.low <= 0.0 && 0.0 <= of.high);
            both += covers(found.over_both);
            worlds_alone += covers(found.over_worlds);
        }
        let share = |covered: u32| f64::from(covered) / studies as f64;
        assert!((0.91..=0.99).contains(&share(both)), "{}", share(both));
        assert!(share(worlds_alone) < 0.8, "{}", share(worlds_alone));
    }
}
