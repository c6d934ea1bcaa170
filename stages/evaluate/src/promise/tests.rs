//! Ten thousand accounts that keep their promise, and seasons of accounts that lose it.

use super::evidence::Test;
use super::record::mean_block;
use super::{Promise, PromiseSettings, Sample, Watch};
use crate::performance::quantile;
use rayon::prelude::*;
use stages_numerics::random::Random;

/// Steps a year.
const YEAR: f64 = 252.0;

/// The false alarm rate.
const RATE: f64 = 0.05;

/// The nights over which accounts are watched: two years.
const NIGHTS: usize = 504;

/// The standard deviation of an excess log return.
const DEVIATION: f64 = 0.01;

/// Processes of excess log returns of mean 0 and deviation 1.
#[derive(Clone, Copy, Debug)]
enum Process {
    Normal,
    /// Student's t with four degrees of freedom.
    HeavyTails,
    /// GARCH(1,1) with normal shocks.
    Garch,
    /// An autoregression of the first order, with this coefficient.
    Correlated(f64),
}

impl Process {
    /// Draws `count` steps.
    fn draw(self, random: &mut Random, count: usize) -> Vec<f64> {
        let (mut variance, mut last) = (1.0_f64, random.normal());
        let step = |_| match self {
            Self::Normal => random.normal(),
            Self::HeavyTails => {
                let chi: f64 = (0..4).map(|_| random.normal()).map(|x| x * x).sum();
                // The variance is 2.
                random.normal() / (chi / 4.0).sqrt() / 2.0_f64.sqrt()
            }
            Self::Garch => {
                let shock = variance.sqrt() * random.normal();
                variance = 0.02 + 0.08 * shock * shock + 0.9 * variance;
                shock
            }
            Self::Correlated(by) => {
                last = by * last + (1.0 - by * by).sqrt() * random.normal();
                last
            }
        };
        (0..count).map(step).collect()
    }
}

/// The excess log returns of backtests: `episodes` of `steps` each, with an annual Sharpe ratio.
fn backtests(
    process: Process,
    random: &mut Random,
    sharpe: f64,
    episodes: usize,
    steps: usize,
) -> Vec<Vec<f64>> {
    let mut backtest = || -> Vec<f64> {
        let draws = process.draw(random, steps);
        draws.into_iter().map(|draw| returned(sharpe, draw)).collect()
    };
    (0..episodes).map(|_| backtest()).collect()
}

/// The excess log return of a draw.
fn returned(sharpe: f64, draw: f64) -> f64 {
    DEVIATION * (sharpe / YEAR.sqrt() + draw)
}

/// The promise of backtests without a fan, which ten thousand tests need not draw.
fn promise(backtests: &[Vec<f64>]) -> Promise {
    let steps = backtests[0].len();
    let series: Vec<_> = (0..backtests.len()).map(|k| k * steps..(k + 1) * steps).collect();
    let test = Test::new(&backtests.concat(), &series, mean_block(&series), YEAR, RATE);
    Promise {
        steps: backtests.len() * steps,
        steps_a_year: YEAR,
        mean: test.mean,
        deviation: DEVIATION,
        levels: Vec::new(),
        fan: Vec::new(),
        fan_nights: Vec::new(),
        drawdown: Vec::new(),
        turnover: 0.0,
        costs: 0.0,
        false_alarm_rate: RATE,
        test,
    }
}

/// The night of the alarm of an account, from 1, whose edge ends after `until` nights.
fn alarm(
    promise: &Promise,
    process: Process,
    random: &mut Random,
    sharpe: f64,
    until: usize,
    nights: usize,
) -> Option<usize> {
    let mut watch = Watch::new();
    for (night, draw) in process.draw(random, nights).into_iter().enumerate() {
        let sharpe = if night < until { sharpe } else { 0.0 };
        watch.update(promise, returned(sharpe, draw), 0.0);
        if watch.standing(promise).broken {
            return Some(night + 1);
        }
    }
    None
}

/// The share of 10,000 accounts, each with a promise of a backtest of its own, that are ever alarmed while
/// the edge is kept.
fn false_alarms(process: Process, sharpe: f64, steps: usize, accounts: u64) -> f64 {
    let of = |account: u64| {
        let mut random = Random::new(&[account, steps as u64, sharpe.to_bits()]);
        let promise = promise(&backtests(process, &mut random, sharpe, 1, steps));
        alarm(&promise, process, &mut random, sharpe, NIGHTS, NIGHTS).is_some()
    };
    let alarmed = (0..accounts).into_par_iter().filter(|account| of(*account)).count();
    alarmed as f64 / accounts as f64
}

/// The nights from the end of the edge to the alarm, infinite if there is none within six years.
fn delays(process: Process, sharpe: f64, episodes: usize, steps: usize, accounts: u64) -> Vec<f64> {
    let of = |account: u64| {
        let mut random = Random::new(&[account, steps as u64, sharpe.to_bits(), 2]);
        let promise = promise(&backtests(process, &mut random, sharpe, episodes, steps));
        let alarm = alarm(&promise, process, &mut random, sharpe, 126, 126 + 1512);
        alarm.map_or(f64::INFINITY, |night| night as f64 - 126.0)
    };
    (0..accounts).into_par_iter().map(of).collect()
}

/// At most one account of twenty is ever alarmed while the edge is kept, whatever the tails and however the
/// volatility moves; a standard error of a share is at most 0.2 %.
#[test]
fn kept_promises_are_seldom_alarmed() {
    for process in [Process::Normal, Process::HeavyTails, Process::Garch] {
        let share = false_alarms(process, 4.0, 250, 10_000);
        // The test is not idle either.
        assert!(share > 0.0 && share <= RATE, "{process:?}: {share}");
    }
    // Returns that depend on each other.
    let share = false_alarms(Process::Correlated(0.3), 4.0, 500, 5000);
    assert!(share <= RATE, "{share}");
}

/// An edge that ends after half a year is found missing within the nights that the documentation states, in
/// nine of ten seasons.
#[test]
fn broken_promises_are_found() {
    for process in [Process::Normal, Process::HeavyTails, Process::Garch] {
        for (sharpe, within) in [(4.0, 504.0), (6.0, 252.0)] {
            let delays = delays(process, sharpe, 20, 250, 200);
            let late = delays.iter().filter(|delay| **delay > within).count();
            assert!(late <= 20, "{process:?} {sharpe}: {late} of 200 after {within} nights");
        }
    }
}

/// Over all paths of a two-point distribution whose mean is the promised one, the mean of the evidence is
/// what it starts with, every night; it is lower if the mean is higher.
#[test]
fn the_evidence_is_a_martingale_at_the_promise() {
    let backtest: Vec<f64> = (0..500).map(|step| returned(4.0, libm::sin(f64::from(step)))).collect();
    let promise = promise(&[backtest]);
    assert!(promise.test.bets.iter().all(|bet| bet.toll == 1.0 && bet.size > 0.0));
    let Test {
        low,
        high,
        promised,
        share,
        ..
    } = promise.test;
    let (down, up) = (0.8 * low, 0.9 * high);
    // Odds for which the mean is exactly the promised one.
    let fair = (promised - down) / (up - down);
    let mean = |probability: f64, nights: u32| -> f64 {
        let path = |path: u32| {
            let (mut watch, mut weight) = (Watch::new(), 1.0);
            for night in 0..nights {
                let is_up = path >> night & 1 == 1;
                weight *= if is_up { probability } else { 1.0 - probability };
                watch.update(&promise, if is_up { up } else { down }, 0.0);
            }
            weight * watch.standing(&promise).evidence
        };
        (0..1 << nights).map(path).sum()
    };
    for nights in [1, 5, 12] {
        let found = mean(fair, nights);
        assert!((found - share).abs() < 1e-12, "{nights}: {found}");
        assert!(mean(fair + 0.05, nights) < share);
        assert!(mean(fair - 0.05, nights) > share);
    }
}

/// Ninety of a hundred paths end between the fan's outer quantiles, of samples as short as two years.
#[test]
fn fans_cover_new_paths() {
    const ACCOUNTS: u64 = 120;
    for process in [Process::Normal, Process::Garch] {
        let inside = |account: u64| {
            let mut random = Random::new(&[account, 77]);
            let backtest = backtests(process, &mut random, 2.0, 1, 500).remove(0);
            let promise = Promise::new(&[sample(backtest)], YEAR, &PromiseSettings::default()).unwrap();
            let mut watch = Watch::new();
            let path = backtests(process, &mut random, 2.0, 1, NIGHTS).remove(0);
            [1, 20, 21, 137, NIGHTS].map(|horizon| {
                let nights = watch.nights();
                path[nights..horizon]
                    .iter()
                    .for_each(|step| watch.update(&promise, *step, 0.0));
                let quantile = watch.standing(&promise).quantile.unwrap();
                u32::from((0.05..=0.95).contains(&quantile))
            })
        };
        let inside: Vec<[u32; 5]> = (0..ACCOUNTS).into_par_iter().map(inside).collect();
        for horizon in 0..5 {
            let share = f64::from(inside.iter().map(|inside| inside[horizon]).sum::<u32>()) / ACCOUNTS as f64;
            // The standard error is 2.7 %.
            assert!((0.82..=0.98).contains(&share), "{process:?} {horizon}: {share}");
        }
    }
}

/// A sample without costs.
fn sample(log_return: Vec<f64>) -> Sample {
    let zeros = vec![0.0; log_return.len()];
    Sample {
        log_return,
        risk_free: zeros.clone(),
        turnover: zeros.clone(),
        costs: zeros,
    }
}

/// A state that is written and read back goes on to the same bits, after an alarm and a ruin, too.
#[test]
fn states_are_portable() {
    let mut random = Random::new(&[3]);
    let backtest = backtests(Process::HeavyTails, &mut random, 5.0, 1, 300).remove(0);
    let first = Promise::new(&[sample(backtest)], YEAR, &PromiseSettings::default()).unwrap();
    let text = serde_json::to_string(&first).unwrap();
    let promise: Promise = serde_json::from_str(&text).unwrap();
    assert_eq!(promise, first);
    let mut watch = Watch::new();
    let mut copy = watch.clone();
    let path = backtests(Process::Normal, &mut random, -20.0, 1, 400).remove(0);
    for step in path.into_iter().chain([f64::NEG_INFINITY, 0.0]) {
        watch.update(&first, step, 1e-4);
        copy.update(&promise, step, 1e-4);
        copy = serde_json::from_str(&serde_json::to_string(&copy).unwrap()).unwrap();
        assert_eq!(copy, watch);
        assert_eq!(copy.standing(&promise), watch.standing(&first));
    }
    let standing = watch.standing(&first);
    assert!(standing.broken && standing.evidence > 20.0 && standing.evidence.is_finite());
    assert_eq!((standing.growth, standing.drawdown), (0.0, 1.0));
}

/// Backtests that are short, or never move, promise a fan and no test; an edge within its own error is no
/// edge.
#[test]
fn a_promise_says_what_it_cannot_tell() {
    let of = |returns: Vec<f64>| Promise::new(&[sample(returns)], YEAR, &PromiseSettings::default()).unwrap();
    let mut random = Random::new(&[6]);
    let mut caveat = |sharpe: f64, steps: usize| {
        let backtest = backtests(Process::Normal, &mut random, sharpe, 1, steps).remove(0);
        of(backtest).caveat().map(str::to_owned)
    };
    assert!(caveat(9.0, 59).unwrap().starts_with("the backtests have 59 steps"));
    assert_eq!(caveat(9.0, 300), None);
    assert!(caveat(0.0, 300).unwrap().contains("no edge"));
    let cash = of(vec![0.0; 300]);
    assert!(cash.caveat().unwrap().contains("nothing to test"));
    let mut watch = Watch::new();
    (0..300).for_each(|_| watch.update(&cash, -0.1, 0.0));
    assert!(!watch.standing(&cash).broken);
    assert_eq!(cash.fan[5], vec![1.0; 9]);
}

#[test]
fn what_promises_nothing_is_refused() {
    let refused = |samples: &[Sample], steps_a_year: f64, false_alarm_rate: f64| {
        let settings = PromiseSettings { false_alarm_rate };
        Promise::new(samples, steps_a_year, &settings).unwrap_err().message
    };
    let good = sample(vec![0.01, 0.0, -0.01]);
    assert!(refused(&[], YEAR, RATE).contains("0 steps"));
    assert!(refused(&[sample(vec![0.1])], YEAR, RATE).contains("1 steps"));
    assert!(refused(std::slice::from_ref(&good), 0.0, RATE).contains("steps a year"));
    assert!(refused(std::slice::from_ref(&good), YEAR, 0.0).contains("false alarm rate"));
    let ruined = sample(vec![0.0, f64::NEG_INFINITY]);
    assert!(refused(&[good.clone(), ruined], YEAR, RATE).contains("step 1 of episode 1"));
    let uneven = Sample {
        costs: Vec::new(),
        ..good
    };
    assert!(refused(&[uneven], YEAR, RATE).contains("unequal lengths"));
}

/// The table of docs/studies/statistics.md:
/// `cargo test --release -p stages-evaluate --lib promise::tests::table -- --ignored --nocapture`.
#[test]
#[ignore = "a table, of minutes"]
fn table() {
    for process in [
        Process::Normal,
        Process::HeavyTails,
        Process::Garch,
        Process::Correlated(0.3),
    ] {
        for steps in [250, 500] {
            for sharpe in [0.0, 3.0, 6.0] {
                let share = false_alarms(process, sharpe, steps, 10_000);
                println!(
                    "{process:?}, {steps} steps, Sharpe {sharpe}: {:.2} % alarmed",
                    100.0 * share
                );
            }
        }
    }
    for process in [Process::Normal, Process::HeavyTails, Process::Garch] {
        for (episodes, steps) in [(1, 250), (1, 500), (20, 250)] {
            for sharpe in [3.0, 4.0, 6.0] {
                let delays = delays(process, sharpe, episodes, steps, 1000);
                let [median, most] = [0.5, 0.9].map(|level| quantile(&delays, level));
                let backtest = format!("{process:?}, {episodes} x {steps} steps, Sharpe {sharpe}");
                println!("{backtest}: median {median:.0}, 90 % {most:.0}");
            }
        }
    }
}
