//! The excess returns of several strategies over the same steps of the same worlds, and paired intervals of
//! statistics of them.

use crate::bootstrap::blocks;
use crate::performance::{interval_95, ratio};
use rayon::prelude::*;
use stages_numerics::random::Random;

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

    fn add(&mut self, value: f64) {
        self.n += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    pub(crate) fn join(&mut self, other: &Self) {
        self.n += other.n;
        self.sum += other.sum;
        self.squares += other.squares;
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
    resamples: Vec<Vec<Sums>>,
}

impl Panel {
    /// Resamples worlds where there are several, else blocks of the steps of each episode; all strategies
    /// share each resample.
    pub(crate) fn new(episodes: &[Episode], mean_block: f64, draws: usize, seed: u64) -> Self {
        let strategies = episodes.first().map_or(0, |episode| episode.strategies.len());
        let none = || vec![Sums::default(); strategies];
        let mut worlds: Vec<Vec<Sums>> = Vec::new();
        for same in episodes.chunk_by(|a, b| a.world == b.world) {
            let mut sums = none();
            for episode in same {
                for (sums, paths) in sums.iter_mut().zip(&episode.strategies) {
                    paths.iter().for_each(|path| sums.join(&Sums::of(path)));
                }
            }
            worlds.push(sums);
        }
        let total = |chosen: &mut dyn Iterator<Item = &Vec<Sums>>| {
            let mut total = none();
            for world in chosen {
                total.iter_mut().zip(world).for_each(|(total, sums)| total.join(sums));
            }
            total
        };
        let resample = |draw: usize| {
            let mut random = Random::new(&[seed, 0x7061_6e65, draw as u64]);
            if worlds.len() > 1 {
                let chosen: Vec<usize> = worlds
                    .iter()
                    .map(|_| random.below(worlds.len() as u64) as usize)
                    .collect();
                return total(&mut chosen.into_iter().map(|world| &worlds[world]));
            }
            let mut sums = none();
            for episode in episodes {
                let steps = episode.strategies.iter().flatten().next().map_or(0, |path| path.len());
                blocks(&mut random, steps, mean_block, |step| {
                    for (sums, paths) in sums.iter_mut().zip(&episode.strategies) {
                        paths.iter().for_each(|path| sums.add(path[step]));
                    }
                });
            }
            sums
        };
        Self {
            whole: total(&mut worlds.iter()),
            resamples: (0..draws).into_par_iter().map(resample).collect(),
            worlds,
        }
    }

    /// A statistic of the strategies' sums, with its 2.5 % and 97.5 % quantiles over the resamples in which
    /// it has a value.
    pub(crate) fn estimate(&self, statistic: impl Fn(&[Sums]) -> f64) -> Estimate {
        let value = statistic(&self.whole);
        let drawn: Vec<f64> = self
            .resamples
            .iter()
            .map(|sums| statistic(sums))
            .filter(|x| x.is_finite())
            .collect();
        Estimate::of(value, &drawn)
    }

    /// The mean over worlds of a statistic of each world, with its interval over worlds; the ends are NaN
    /// where there is one world.
    pub(crate) fn mean_of_worlds(
        &self,
        draws: usize,
        seed: u64,
        statistic: impl Fn(&[Sums]) -> f64,
    ) -> Estimate {
        let values: Vec<f64> = self.worlds.iter().map(|sums| statistic(sums)).collect();
        let n = values.len();
        let mean = |sum: f64| ratio(sum, n as f64);
        let mut random = Random::new(&[seed, 0x776f_726c]);
        let drawn: Vec<f64> = (0..draws)
            .map(|_| mean((0..n).map(|_| values[random.below(n as u64) as usize]).sum()))
            .collect();
        let value = mean(values.iter().sum());
        Estimate::of(value, if n > 1 { &drawn } else { &[] })
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
    use crate::performance::{Periods, mean_and_deviation, sharpe};

    fn normals(seed: u64, n: usize, mean: f64) -> Vec<f64> {
        let mut random = Random::new(&[seed]);
        (0..n).map(|_| mean + 0.01 * random.normal()).collect()
    }

    fn panel(worlds: &[(&str, Vec<Vec<f64>>)], draws: usize) -> Panel {
        let episodes: Vec<Episode> = worlds
            .iter()
            .map(|(world, strategies)| Episode {
                world,
                strategies: strategies.iter().map(|path| vec![path.as_slice()]).collect(),
            })
            .collect();
        Panel::new(&episodes, 5.0, draws, 1)
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
        for estimate in [
            panel.estimate(|s| s[0].mean()),
            panel.mean_of_worlds(2_000, 1, |s| s[0].mean()),
        ] {
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
        assert!(panel.mean_of_worlds(10, 1, |s| s[0].mean()).low.is_nan());
    }
}
