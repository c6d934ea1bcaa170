//! The excess returns of several strategies over the same steps of the same worlds, and paired intervals of
//! statistics of them.

use crate::bootstrap::blocks;
use crate::inference::two_sided;
use crate::performance::{interval_95, ratio};
use datasets::SnapshotTime;
use rayon::prelude::*;
use stages_numerics::random::Random;
use std::collections::BTreeMap;

/// The number, the sum and the sum of squares of excess returns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    pub(crate) n: f64,
    pub(crate) sum: f64,
    pub(crate) squares: f64,
}

impl Sums {
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut sums = Self::default();
        values.iter().for_each(|&value| sums.add(value));
        sums
    }

    pub(crate) fn add(&mut self, value: f64) {
        self.n += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    pub(crate) fn join(&mut self, other: &Self) {
        self.n += other.n;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// The sums times a factor.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        let [n, sum, squares] = [self.n, self.sum, self.squares].map(|of| of * factor);
        Self { n, sum, squares }
    }

    pub(crate) fn mean(&self) -> f64 {
        self.sum / self.n
    }

    /// The standard deviation (n - 1).
    pub(crate) fn deviation(&self) -> f64 {
        ((self.squares - self.sum * self.sum / self.n) / (self.n - 1.0))
            .max(0.0)
            .sqrt()
    }

    /// Mean over standard deviation; 0 where the return never changes.
    pub(crate) fn sharpe(&self) -> f64 {
        if self.deviation() == 0.0 {
            0.0
        } else {
            self.mean() / self.deviation()
        }
    }

    /// Mean-variance utility per period: mean less half the risk aversion times the mean square.
    pub(crate) fn utility(&self, risk_aversion: f64) -> f64 {
        self.mean() - 0.5 * risk_aversion * self.squares / self.n
    }

    /// The factor that brings the volatility to that of `other`; 1 where the return never changes.
    pub(crate) fn leverage_to(&self, other: &Self) -> f64 {
        if self.deviation() == 0.0 {
            1.0
        } else {
            other.deviation() / self.deviation()
        }
    }
}

/// The excess returns of each strategy in an evaluation episode: `[strategy][path][step]`, each with the same
/// number of steps.
pub(crate) struct Episode<'a> {
    pub(crate) world: &'a str,
    /// The times at which the steps start: steps of worlds at the same time are resampled together.
    pub(crate) times: &'a [SnapshotTime],
    pub(crate) strategies: Vec<Vec<&'a [f64]>>,
}

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The 2.5 % quantile.
    pub low: f64,
    /// The 97.5 % quantile.
    pub high: f64,
}

impl Estimate {
    /// A figure with the interval of its values over resamples; the ends are NaN where the figure has no
    /// value.
    pub(crate) fn of(value: f64, drawn: &[f64]) -> Self {
        let (low, high) = match value.is_finite() {
            true => interval_95(drawn),
            false => (f64::NAN, f64::NAN),
        };
        Self { value, low, high }
    }

    /// The ends, a factor times as far from the figure.
    pub(crate) fn widened(self, factor: f64) -> Self {
        let end = |end: f64| self.value + factor * (end - self.value);
        Self {
            low: end(self.low),
            high: end(self.high),
            ..self
        }
    }

    /// The figure times a factor.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        let [value, low, high] = [self.value, self.low, self.high].map(|end| end * factor);
        Self { value, low, high }
    }
}

/// The sums of each strategy's excess returns over all data, by world, and in each resample.
pub(crate) struct Panel {
    whole: Vec<Sums>,
    worlds: Vec<Vec<Sums>>,
    by_dates: Vec<Resample>,
    /// Empty where there is one world.
    by_worlds: Vec<Resample>,
}

/// A resample: the sums of each strategy over all worlds, and those of the first strategy by world.
struct Resample {
    all: Vec<Sums>,
    first: Vec<Sums>,
}

/// The sums of a date.
struct Day {
    all: Vec<Sums>,
    /// The first strategy's sums, by the number of the world.
    first: Vec<(usize, Sums)>,
}

impl Panel {
    /// Resamples blocks of dates, those of all worlds together, and where there are several worlds also
    /// worlds; all strategies share each resample. A strategy's paths are no data: each step counts once,
    /// with the mean over paths of the return and of its square.
    pub(crate) fn new(episodes: &[Episode], mean_block: f64, draws: usize, seed: u64) -> Self {
        let strategies = episodes.first().map_or(0, |episode| episode.strategies.len());
        let none = || vec![Sums::default(); strategies];
        let mut worlds: Vec<Vec<Sums>> = Vec::new();
        let mut dates: BTreeMap<SnapshotTime, Day> = BTreeMap::new();
        for same in episodes.chunk_by(|a, b| a.world == b.world) {
            let mut world = none();
            for episode in same {
                for (at, (sums, paths)) in world.iter_mut().zip(&episode.strategies).enumerate() {
                    let share = 1.0 / paths.len() as f64;
                    for (step, time) in episode.times.iter().enumerate() {
                        let mut one = Sums::default();
                        paths.iter().for_each(|path| one.add(path[step]));
                        let one = one.scaled(share);
                        sums.join(&one);
                        let day = dates.entry(*time).or_insert_with(|| Day {
                            all: none(),
                            first: Vec::new(),
                        });
                        day.all[at].join(&one);
                        if at == 0 {
                            day.first.push((worlds.len(), one));
                        }
                    }
                }
            }
            worlds.push(world);
        }
        let dates: Vec<Day> = dates.into_values().collect();
        let join =
            |into: &mut Vec<Sums>, sums: &[Sums]| into.iter_mut().zip(sums).for_each(|(a, b)| a.join(b));
        let random = |draw: usize| Random::new(&[seed, 0x7061_6e65, draw as u64]);
        let of_dates = |draw: usize| {
            let mut of = Resample {
                all: none(),
                first: vec![Sums::default(); worlds.len()],
            };
            blocks(&mut random(draw), dates.len(), mean_block, |date| {
                join(&mut of.all, &dates[date].all);
                dates[date]
                    .first
                    .iter()
                    .for_each(|(world, sums)| of.first[*world].join(sums));
            });
            of
        };
        let of_worlds = |draw: usize| {
            let mut random = random(draw);
            let mut of = Resample {
                all: none(),
                first: Vec::new(),
            };
            for _ in &worlds {
                let world = &worlds[random.below(worlds.len() as u64) as usize];
                join(&mut of.all, world);
                of.first.extend(world.first());
            }
            of
        };
        let mut whole = none();
        worlds.iter().for_each(|world| join(&mut whole, world));
        Self {
            whole,
            by_dates: (0..draws).into_par_iter().map(of_dates).collect(),
            by_worlds: match worlds.len() {
                0 | 1 => Vec::new(),
                _ => (0..draws).into_par_iter().map(of_worlds).collect(),
            },
            worlds,
        }
    }

    /// A statistic of the strategies' sums, with its 2.5 % and 97.5 % quantiles over the resamples in which
    /// it has a value: each end is the wider of that over dates and, with several worlds, that over worlds.
    /// Worlds that share dates may move together, so that those over worlds alone are too narrow, and a
    /// world's steps may depend on each other, so that those over dates alone are.
    pub(crate) fn estimate(&self, statistic: impl Fn(&[Sums]) -> f64) -> Estimate {
        self.widest(statistic(&self.whole), |resample| statistic(&resample.all))
    }

    /// The two-sided p-value of a difference: the larger of that over dates and that over worlds.
    pub(crate) fn p_value(&self, difference: impl Fn(&[Sums]) -> f64) -> f64 {
        let of = |resamples: &[Resample]| {
            let drawn = resamples.iter().map(|resample| difference(&resample.all));
            two_sided(&drawn.filter(|x| x.is_finite()).collect::<Vec<_>>())
        };
        of(&self.by_dates).max(of(&self.by_worlds))
    }

    fn widest(&self, value: f64, of: impl Fn(&Resample) -> f64) -> Estimate {
        let interval = |resamples: &[Resample]| {
            let drawn: Vec<f64> = resamples.iter().map(&of).filter(|x| x.is_finite()).collect();
            Estimate::of(value, &drawn)
        };
        let (dates, worlds) = (interval(&self.by_dates), interval(&self.by_worlds));
        // `min` and `max` ignore the NaN of no resamples.
        Estimate {
            value,
            low: dates.low.min(worlds.low),
            high: dates.high.max(worlds.high),
        }
    }

    /// The mean over worlds of a statistic of the first strategy in each world, with its interval as in
    /// [`Panel::estimate`]; the ends are NaN where there is one world.
    pub(crate) fn mean_of_worlds(&self, statistic: impl Fn(&Sums) -> f64) -> Estimate {
        let mean = |worlds: &[Sums]| ratio(worlds.iter().map(&statistic).sum(), worlds.len() as f64);
        let first: Vec<Sums> = self.worlds.iter().filter_map(|world| world.first().copied()).collect();
        let value = mean(&first);
        match self.worlds.len() {
            0 | 1 => Estimate::of(value, &[]),
            _ => self.widest(value, |resample| mean(&resample.first)),
        }
    }

    /// The sums of each strategy over all data.
    pub(crate) fn whole(&self) -> &[Sums] {
        &self.whole
    }

    /// The number of worlds.
    pub(crate) fn worlds(&self) -> usize {
        self.worlds.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effective::tests::correlated;
    use crate::performance::tests::sharpe;
    use crate::performance::{Periods, mean_and_deviation};
    use datasets::Date;

    fn normals(seed: u64, n: usize, mean: f64) -> Vec<f64> {
        let mut random = Random::new(&[seed]);
        (0..n).map(|_| mean + 0.01 * random.normal()).collect()
    }

    fn panel(worlds: &[(&str, Vec<Vec<f64>>)], draws: usize) -> Panel {
        let times: Vec<SnapshotTime> = (0..1_000).map(|day| SnapshotTime::of_day(Date(day))).collect();
        let episodes: Vec<Episode> = worlds
            .iter()
            .map(|(world, strategies)| Episode {
                world,
                times: &times[..strategies[0].len()],
                strategies: strategies.iter().map(|path| vec![path.as_slice()]).collect(),
            })
            .collect();
        Panel::new(&episodes, 5.0, draws, 1)
    }

    /// The mean return of worlds that are correlated on common dates, with its interval.
    fn of_worlds(worlds: &[Vec<f64>]) -> [Estimate; 2] {
        let names: Vec<String> = (0..worlds.len()).map(|i| format!("W{i}")).collect();
        let named: Vec<(&str, Vec<Vec<f64>>)> = names
            .iter()
            .zip(worlds)
            .map(|(name, world)| (name.as_str(), vec![world.clone()]))
            .collect();
        let panel = panel(&named, 300);
        [panel.estimate(|s| s[0].mean()), panel.mean_of_worlds(|s| s.mean())]
    }

    /// k copies of a world have the interval of one.
    #[test]
    fn copies_of_a_world_are_one_world() {
        let one = normals(5, 400, 0.001);
        let alone = of_worlds(std::slice::from_ref(&one))[0];
        for copies in of_worlds(&vec![one; 8]) {
            assert!((copies.value - alone.value).abs() < 1e-15);
            assert!((copies.low - alone.low).abs() < 1e-12 && (copies.high - alone.high).abs() < 1e-12);
        }
    }

    /// In nearly 95 % of many samples of ten worlds over the same dates, the interval holds the true mean,
    /// whether the worlds are independent or move together; resampling worlds alone covers far less.
    #[test]
    fn worlds_that_share_dates_cover_as_often_as_the_interval_says() {
        let samples = 200;
        for rho in [0.0, 0.5, 0.9] {
            let (mut covered, mut worlds_alone) = ([0; 2], 0);
            let random = &mut Random::new(&[11]);
            for _ in 0..samples {
                let worlds = correlated(random, 10, 250, rho);
                for (covered, found) in covered.iter_mut().zip(of_worlds(&worlds)) {
                    *covered += u32::from(found.low <= 0.0 && 0.0 <= found.high);
                }
                let means: Vec<f64> = worlds.iter().map(|world| mean_and_deviation(world).0).collect();
                let (mean, deviation) = mean_and_deviation(&means);
                worlds_alone += u32::from(mean.abs() < 1.96 * deviation / 10_f64.sqrt());
            }
            // The standard error of a coverage is 0.015.
            for covered in covered {
                let share = f64::from(covered) / f64::from(samples);
                assert!((0.90..=0.99).contains(&share), "{rho}: {share}");
            }
            let alone = f64::from(worlds_alone) / f64::from(samples);
            assert!(rho == 0.0 || alone < 0.75, "{rho}: {alone}");
        }
    }

    /// Paths of a strategy over the same steps are no data: k equal ones are one, and the interval of a mean
    /// does not narrow with their number but for what is drawn in each.
    #[test]
    fn equal_paths_are_one_path() {
        let one = normals(6, 200, 0.001);
        let times: Vec<SnapshotTime> = (0..200).map(|day| SnapshotTime::of_day(Date(day))).collect();
        let of = |paths: usize| {
            let episode = Episode {
                world: "A",
                times: &times,
                strategies: vec![vec![one.as_slice(); paths]],
            };
            Panel::new(&[episode], 5.0, 200, 1).estimate(|s| s[0].sharpe())
        };
        let (one, four) = (of(1), of(4));
        for (a, b) in [(one.value, four.value), (one.low, four.low), (one.high, four.high)] {
            assert!((a - b).abs() < 1e-12, "{one:?} {four:?}");
        }
    }

    #[test]
    fn sums_are_means_and_deviations() {
        let values = normals(1, 500, 0.003);
        let (sums, (mean, deviation)) = (Sums::of(&values), mean_and_deviation(&values));
        assert!((sums.mean() - mean).abs() < 1e-15 && (sums.deviation() / deviation - 1.0).abs() < 1e-12);
        assert!((sums.sharpe() * 252_f64.sqrt() / sharpe(&values, Periods::DAILY) - 1.0).abs() < 1e-12);
        assert_eq!(Sums::of(&[0.0; 9]).sharpe(), 0.0);
    }

    /// Two strategies that move together have a difference with a narrow interval, although each alone is
    /// uncertain.
    #[test]
    fn paired_differences_are_narrower_than_either() {
        let one = normals(2, 400, 0.0);
        let other: Vec<f64> = one
            .iter()
            .zip(normals(3, 400, 0.0))
            .map(|(a, b)| a + 0.0005 + 0.05 * b)
            .collect();
        let panel = panel(&[("A", vec![other, one])], 500);
        let alone = panel.estimate(|s| s[0].mean());
        let paired = panel.estimate(|s| s[0].mean() - s[1].mean());
        assert!(alone.low < 0.0 && alone.high > 0.0, "{alone:?}");
        assert!(paired.low > 0.0 && paired.high < 0.001, "{paired:?}");
    }

    /// The interval over worlds is that of the worlds' means, not of as many independent steps, where worlds
    /// have a drift of their own.
    #[test]
    fn several_worlds_are_resampled_as_worlds() {
        let names: Vec<String> = (0..40).map(|i| format!("W{i}")).collect();
        let drift = normals(7, 40, 0.0);
        let worlds: Vec<(&str, Vec<Vec<f64>>)> = (0..40)
            .map(|i| (names[i].as_str(), vec![normals(100 + i as u64, 200, drift[i])]))
            .collect();
        let panel = panel(&worlds, 2_000);
        let means: Vec<f64> = worlds.iter().map(|(_, s)| mean_and_deviation(&s[0]).0).collect();
        let (mean, deviation) = mean_and_deviation(&means);
        let half = 1.96 * deviation / 40_f64.sqrt();
        for estimate in [panel.estimate(|s| s[0].mean()), panel.mean_of_worlds(|s| s.mean())] {
            assert!((estimate.value - mean).abs() < 1e-12);
            assert!(
                ((estimate.high - estimate.low) / (2.0 * half) - 1.0).abs() < 0.1,
                "{estimate:?} {half}"
            );
        }
        assert_eq!(panel.worlds(), 40);
        assert_eq!(panel.whole()[0].n, 8_000.0);
    }

    #[test]
    fn what_has_no_value_has_no_interval() {
        let panel = panel(&[("A", vec![vec![0.0; 80]])], 10);
        let none = panel.estimate(|s| s[0].mean() / s[0].deviation());
        assert!(none.value.is_nan() && none.low.is_nan() && none.high.is_nan());
        assert!(panel.mean_of_worlds(|s| s.mean()).low.is_nan());
    }
}
