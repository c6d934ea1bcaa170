//! The difference between two agents over several markets, each with training seeds and test worlds of its
//! own, with the interval of each kind of chance and the widest of them.

use crate::compare::difference::{Figure, Resampling, by_seed, mean};
use crate::inference::two_sided;
use crate::panel::Sums;
use crate::performance::{interval_95, mean_and_deviation};
use stages_numerics::student;

/// The probability that an interval leaves out.
const OUTSIDE: f64 = 0.05;

/// The sums of the excess returns of two agents in one market, `[seed][world]`. A baseline has one seed,
/// which is no draw.
pub(super) struct Pair<'a> {
    pub agent: &'a [Vec<Sums>],
    pub against: &'a [Vec<Sums>],
    /// The resamples of seeds and worlds.
    pub resampling: Resampling,
}

/// A 95 % interval, and the two-sided p-value of a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub low: f64,
    pub high: f64,
    pub p: f64,
}

/// A difference of a figure's means over markets. A market's figure is the mean over its seeds.
#[derive(Debug)]
pub(super) struct Difference {
    pub value: f64,
    /// The interval of each kind, by name.
    pub kinds: Vec<(&'static str, Interval)>,
    /// From the lowest end of all intervals to the highest, with the largest p-value.
    pub widest: Interval,
}

impl Difference {
    /// The difference of a figure over some markets.
    ///
    /// | interval | says | by |
    /// | --- | --- | --- |
    /// | `over_worlds` | other worlds of these markets, these policies | the bootstrap of worlds, paired |
    /// | `over_seeds` | other trainings, these worlds | Student's t, seeds not paired (Welch 1947) |
    /// | `over_both` | other worlds and other trainings | the pigeonhole bootstrap of each market |
    /// | `over_markets` | other markets, on which the agents are trained and tested anew | Student's t of the markets' differences |
    pub(super) fn of(pairs: &[Pair<'_>], of: &Figure<'_>) -> Self {
        let markets = pairs.len() as f64;
        let by_market: Vec<f64> = pairs
            .iter()
            .map(|pair| mean(pair.agent, of) - mean(pair.against, of))
            .collect();
        let (value, deviation) = mean_and_deviation(&by_market);
        let resampled = |draws: &dyn Fn(&Pair<'_>) -> Vec<f64>| {
            let mut sum: Vec<f64> = Vec::new();
            for drawn in pairs.iter().map(draws) {
                sum.resize(drawn.len(), 0.0);
                sum.iter_mut().zip(drawn).for_each(|(sum, x)| *sum += x / markets);
            }
            sum.retain(|x| x.is_finite());
            let (low, high) = interval_95(&sum);
            Interval {
                low,
                high,
                p: two_sided(&sum),
            }
        };
        let mut kinds = vec![
            (
                "over_worlds",
                resampled(&|pair| pair.resampling.over_worlds(pair.agent, pair.against, of)),
            ),
            ("over_seeds", over_seeds(value, pairs, of)),
            (
                "over_both",
                resampled(&|pair| pair.resampling.over_both(pair.agent, pair.against, of)),
            ),
        ];
        if pairs.len() > 1 {
            kinds.push((
                "over_markets",
                by_student(value, deviation / markets.sqrt(), markets - 1.0),
            ));
        }
        let over = |of: fn(&Interval) -> f64, which: fn(f64, f64) -> f64| {
            kinds.iter().map(|(_, interval)| of(interval)).fold(f64::NAN, which)
        };
        let widest = Interval {
            low: over(|of| of.low, f64::min),
            high: over(|of| of.high, f64::max),
            p: over(|of| of.p, f64::max),
        };
        Self { value, kinds, widest }
    }
}

/// The interval by Student's t of a value with this standard error.
fn by_student(value: f64, error: f64, degrees: f64) -> Interval {
    if error == 0.0 {
        let p = if value == 0.0 { 1.0 } else { 0.0 };
        return Interval {
            low: value,
            high: value,
            p,
        };
    }
    let half = student::two_sided_quantile(OUTSIDE, degrees) * error;
    Interval {
        low: value - half,
        high: value + half,
        p: student::two_sided(value / error, degrees),
    }
}

/// The interval over seeds, those of each agent in each market by themselves, with the degrees of freedom of
/// Welch ("The generalization of Student's problem when several different population variances are involved",
/// Biometrika 34, 1947) and Satterthwaite (1946).
fn over_seeds(value: f64, pairs: &[Pair<'_>], of: &Figure<'_>) -> Interval {
    let (mut variance, mut below) = (0.0, 0.0);
    for seeds in pairs.iter().flat_map(|pair| [pair.agent, pair.against]) {
        if seeds.len() > 1 {
            let (n, (_, deviation)) = (seeds.len() as f64, mean_and_deviation(&by_seed(seeds, of)));
            let own = deviation * deviation / n / (pairs.len() as f64).powi(2);
            variance += own;
            below += own * own / (n - 1.0);
        }
    }
    by_student(
        value,
        variance.sqrt(),
        if below > 0.0 { variance * variance / below } else { 1.0 },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    const WORLDS: usize = 30;

    /// The standard deviations of a study without a true difference: of the difference that a market has for
    /// all trainings on it, of a training, and of a training in a world.
    struct Chance {
        market: f64,
        seed: f64,
        pair: f64,
    }

    /// The sums of `seeds` policies in worlds with these means.
    fn agent(
        random: &mut Random,
        worlds: &[f64],
        seeds: usize,
        shift: f64,
        chance: &Chance,
    ) -> Vec<Vec<Sums>> {
        (0..seeds)
            .map(|_| {
                let own = shift + chance.seed * random.normal();
                let sums = |world: &f64| Sums::of(&[world + own + chance.pair * random.normal(); 2]);
                worlds.iter().map(sums).collect()
            })
            .collect()
    }

    /// Two agents in each of several markets, the second with `others` seeds.
    fn study(
        random: &mut Random,
        (markets, seeds, others): (usize, usize, usize),
        (edge, chance): (f64, &Chance),
        draws: usize,
    ) -> Difference {
        let sums: Vec<_> = (0..markets)
            .map(|_| {
                let worlds: Vec<f64> = (0..WORLDS).map(|_| random.normal()).collect();
                let own = edge + chance.market * random.normal();
                let one = agent(random, &worlds, seeds, own, chance);
                // A baseline is the same after any training.
                let still = Chance { seed: 0.0, ..*chance };
                let two = agent(random, &worlds, others, 0.0, if others == 1 { &still } else { chance });
                (one, two)
            })
            .collect();
        let resampling = |(at, (one, two)): (usize, &(Vec<_>, Vec<_>))| {
            let seed = random_seed(at, one);
            Resampling::new((one.len(), two.len(), WORLDS), draws, seed)
        };
        let resamplings: Vec<Resampling> = sums.iter().enumerate().map(resampling).collect();
        let pairs: Vec<Pair<'_>> = sums
            .iter()
            .zip(resamplings)
            .map(|((one, two), resampling)| Pair {
                agent: one,
                against: two,
                resampling,
            })
            .collect();
        Difference::of(&pairs, &|sums| sums.mean())
    }

    fn random_seed(at: usize, one: &[Vec<Sums>]) -> u64 {
        one[0][0].sum.to_bits() ^ at as u64
    }

    /// The widest interval holds the true difference in 95 of 100 studies at least, whatever varies most and
    /// also beside a baseline, which has no seeds; where markets differ, all other intervals hold it far less
    /// often, and so does that over worlds where trainings differ.
    #[test]
    fn the_widest_interval_covers_as_often_as_it_says() {
        let studies = 300;
        let cover = |shape: (usize, usize, usize), chance: Chance| {
            let random = &mut Random::new(&[17, shape.0 as u64, (1e3 * chance.market) as u64]);
            let mut covered = [0; 4];
            for _ in 0..studies {
                let found = study(random, shape, (0.0, &chance), 200);
                let holds = |of: &Interval| u32::from(of.low <= 0.0 && 0.0 <= of.high);
                let of = |name: &str| found.kinds.iter().find(|kind| kind.0 == name).map(|kind| &kind.1);
                covered[0] += holds(&found.widest);
                for (count, name) in covered[1..].iter_mut().zip(["over_worlds", "over_seeds", "over_both"]) {
                    *count += holds(of(name).unwrap());
                }
                assert!(found.widest.p >= OUTSIDE || holds(&found.widest) == 0, "{found:?}");
            }
            covered.map(|covered| f64::from(covered) / f64::from(studies))
        };
        let by_seeds = |market| Chance {
            market,
            seed: 0.1,
            pair: 0.2,
        };
        let by_worlds = |market| Chance {
            market,
            seed: 0.01,
            pair: 0.5,
        };
        for (shape, chance) in [
            ((1, 5, 5), by_seeds(0.0)),
            ((1, 5, 1), by_seeds(0.0)),
            ((1, 5, 5), by_worlds(0.0)),
            ((3, 5, 5), by_seeds(0.0)),
            ((3, 5, 5), by_seeds(0.2)),
            ((3, 5, 1), by_worlds(0.2)),
        ] {
            let (market, trained) = (chance.market > 0.0, chance.seed > 0.05);
            let [widest, worlds, seeds, both] = cover(shape, chance);
            println!("{shape:?}: widest {widest}, worlds {worlds}, seeds {seeds}, both {both}");
            // The standard error of a coverage is 0.013.
            assert!(widest >= 0.93, "{shape:?} {widest}");
            if market {
                assert!(worlds.max(seeds).max(both) < 0.85, "{shape:?} {worlds} {seeds} {both}");
            }
            if trained {
                assert!(worlds < 0.8, "{shape:?} {worlds}");
            }
        }
    }

    /// A difference that is large beside all chance is found with three markets, and its interval is not so
    /// wide that it says nothing.
    #[test]
    fn a_true_difference_is_found() {
        let random = &mut Random::new(&[5]);
        let chance = Chance {
            market: 0.02,
            seed: 0.05,
            pair: 0.1,
        };
        let found = study(random, (3, 5, 5), (1.0, &chance), 2000);
        assert!((found.value - 1.0).abs() < 0.15, "{found:?}");
        assert!(
            found.widest.low > 0.6 && found.widest.high < 1.4 && found.widest.p < 0.01,
            "{found:?}"
        );
    }

    /// Figures by hand: two markets with differences 1 and 3, whose standard error is 1, and the t of one
    /// degree of freedom.
    #[test]
    fn markets_are_units_of_students_t() {
        let sums = |values: &[f64]| -> Vec<Vec<Sums>> {
            values.iter().map(|value| vec![Sums::of(&[*value; 2]); 2]).collect()
        };
        let (one, three, none) = (sums(&[0.5, 1.5]), sums(&[2.0, 4.0]), sums(&[0.0]));
        let pairs = [&one, &three].map(|agent| Pair {
            agent,
            against: &none,
            resampling: Resampling::new((2, 1, 2), 50, 1),
        });
        let found = Difference::of(&pairs, &|sums| sums.mean());
        assert_eq!(found.value, 2.0);
        let (_, markets) = found.kinds[3];
        assert!((markets.high - (2.0 + 12.706)).abs() < 1e-3 && (markets.low - (2.0 - 12.706)).abs() < 1e-3);
        // Each market's mean has the standard errors 0.5 and 1, and one degree of freedom.
        let (_, seeds) = found.kinds[1];
        let (a, b) = (0.25 / 4.0, 1.0 / 4.0);
        let half = student::two_sided_quantile(0.05, (a + b) * (a + b) / (a * a + b * b)) * f64::sqrt(a + b);
        assert!((seeds.high - 2.0 - half).abs() < 1e-9, "{seeds:?}");
        // Worlds are all alike.
        assert_eq!((found.kinds[0].1.low, found.kinds[0].1.high), (2.0, 2.0));
        assert_eq!((found.widest.low, found.widest.high), (markets.low, markets.high));
        assert_eq!(found.widest.p, markets.p);
    }
}
