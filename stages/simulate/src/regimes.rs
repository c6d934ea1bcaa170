//! Regimes: a hidden Markov chain that changes variance, its premium, jumps, skew and term structure from one
//! trading day to the next.
//!
//! Within a regime the market is as in [`super::path`] and [`super::quotes`], with the regime's parameters.
//! Options are priced by the pricing model of the day's regime as if it lasted: each day's quotes are free of
//! arbitrage, and a change of regime moves them as the recalibration of a trading desk's model does. The
//! expected profit of a position is thus known by regime: a seller of variance earns the price of variance
//! less what the regime realises.
//!
//! Prices do not show everything that is realised. A regime that only changes [`Regime::realised_variance`]
//! cannot be seen in any quote; it can at best be inferred by [`filter`] from the history of realised against
//! implied variance. One that changes [`Regime::implied_variance`] or [`Regime::risk_neutral`] shows in the
//! surface of the day.

use super::bates::Bates;
use super::day::Day;
use super::parameters::{Parameters, Regime};
use super::stream;
use datasets::Date;
use stages_numerics::random::Random;

impl Regime {
    /// The model under the real-world measure. The variance of the price's diffusion is
    /// [`Regime::realised_variance`] times the model's variance.
    pub(super) fn physical(&self, market: &Parameters) -> Bates {
        let model = market.physical.model();
        Bates {
            theta: model.theta * self.mean_variance,
            jump_intensity: model.jump_intensity * self.realised_jumps,
            ..model
        }
    }

    /// The model under the pricing measure.
    pub(super) fn pricing(&self, market: &Parameters) -> Bates {
        let neutral = self.risk_neutral.unwrap_or(market.risk_neutral);
        let model = Parameters {
            risk_neutral: neutral,
            ..market.clone()
        }
        .pricing_model();
        Bates {
            theta: model.theta * self.implied_variance,
            // The variance times its factor c then follows the same kind of equation: d(cv) = kappa (c theta
            // - cv) dt + sqrt(c) sigma sqrt(cv) dW.
            sigma: model.sigma * self.implied_variance.sqrt(),
            ..model
        }
    }
}

/// The regimes of a market on a day; without any, a single one that leaves the market unchanged.
pub(super) fn regimes(parameters: &Parameters, date: Date) -> Vec<Regime> {
    if parameters.regimes.is_empty() {
        return vec![Regime::default()];
    }
    let mut regimes = parameters.regimes.clone();
    if parameters.edge_until.is_some_and(|until| date > until) {
        for regime in &mut regimes {
            (regime.realised_variance, regime.realised_jumps) = (1.0, 1.0);
        }
    }
    regimes
}

/// The regime of each day, which depends on that of the previous day and on a random number of its own.
pub(super) fn chain(parameters: &Parameters, days: &[Date]) -> Vec<usize> {
    let regimes = &parameters.regimes;
    if regimes.len() < 2 {
        return vec![0; days.len()];
    }
    let number = |date: &Date| Random::new(&[parameters.seed, stream::REGIME, date.0 as u64]).uniform();
    let mut now = None;
    days.iter()
        .map(|date| {
            let mut left = number(date);
            let probabilities = match now {
                None => shares(regimes),
                Some(now) => transition(regimes, now),
            };
            let next = probabilities.iter().position(|probability| {
                left -= probability;
                left < 0.0
            });
            let next = next.unwrap_or(regimes.len() - 1);
            now = Some(next);
            next
        })
        .collect()
}

/// The long-run share of days in each regime.
fn shares(regimes: &[Regime]) -> Vec<f64> {
    let all: f64 = regimes.iter().map(|regime| regime.mean_days).sum();
    regimes.iter().map(|regime| regime.mean_days / all).collect()
}

/// The probabilities of each regime on the next day.
fn transition(regimes: &[Regime], now: usize) -> Vec<f64> {
    let leave = 1.0 / regimes[now].mean_days;
    let others = (regimes.len() - 1).max(1) as f64;
    (0..regimes.len())
        .map(|to| if to == now { 1.0 - leave } else { leave / others })
        .collect()
}

/// The probabilities of the regimes, see [`super::Market::filter`]. `years` are the lengths of the days on
/// the market's clock.
pub(super) fn filter(parameters: &Parameters, days: &[Day], years: &[f64]) -> Vec<Vec<f64>> {
    let mut known = shares(&regimes(parameters, parameters.start));
    let mut out = Vec::with_capacity(days.len());
    for (i, day) in days.iter().enumerate() {
        let regimes = regimes(parameters, day.date);
        if let Some(before) = i.checked_sub(1).map(|before| &days[before]) {
            let mut next = vec![0.0; regimes.len()];
            for (from, probability) in known.iter().enumerate() {
                for (next, to) in next.iter_mut().zip(transition(&regimes, from)) {
                    *next += probability * to;
                }
            }
            let change = libm::log(day.close / before.close);
            for (next, regime) in next.iter_mut().zip(&regimes) {
                *next *= likelihood(parameters, regime, before.variance, years[i], change);
            }
            let sum: f64 = next.iter().sum();
            // A return that no regime explains is ignored.
            if sum > 0.0 {
                next.iter_mut().for_each(|next| *next /= sum);
                known = next;
            }
        }
        out.push(known.clone());
    }
    out
}

/// The density of a day's return, with at most one jump.
fn likelihood(parameters: &Parameters, regime: &Regime, variance: f64, years: f64, change: f64) -> f64 {
    let model = regime.physical(parameters);
    let diffusion = Bates {
        jump_intensity: 0.0,
        ..model
    };
    let spread = (regime.realised_variance * diffusion.expected_variance(variance, years)).max(1e-12);
    let normal = |mean: f64, variance: f64| {
        let z = change - mean;
        libm::exp(-0.5 * z * z / variance) / (2.0 * std::f64::consts::PI * variance).sqrt()
    };
    let quiet = libm::exp(-model.jump_intensity * years);
    quiet * normal(-0.5 * spread, spread)
        + (1.0 - quiet)
            * normal(
                model.jump_mean - 0.5 * spread,
                spread + model.jump_deviation * model.jump_deviation,
            )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Step;
    use crate::simulate_days;

    /// Two regimes that no quote distinguishes: variance is cheap for its buyers in one, and dear in the
    /// other.
    fn hidden(days: u32, seed: u64) -> Parameters {
        let regime = |name: &str, mean_days: f64, realised_variance: f64| Regime {
            name: name.to_owned(),
            mean_days,
            realised_variance,
            ..Regime::default()
        };
        Parameters {
            days,
            seed,
            regimes: vec![regime("dear", 60.0, 0.5), regime("cheap", 40.0, 2.0)],
            ..Parameters::default()
        }
    }

    #[test]
    fn a_day_depends_on_no_later_one_and_shares_are_those_of_the_lengths() {
        let (short, long) = (
            simulate_days(&hidden(200, 3)).unwrap(),
            simulate_days(&hidden(500, 3)).unwrap(),
        );
        assert_eq!(short, long[..200]);
        let (mut days, mut cheap, mut changes) = (0.0, 0.0, 0.0);
        for seed in 0..40 {
            let path = simulate_days(&Parameters {
                time: crate::Time {
                    steps: 1,
                    ..crate::Time::default()
                },
                ..hidden(1000, seed)
            })
            .unwrap();
            days += path.len() as f64;
            cheap += path.iter().filter(|day| day.regime == 1).count() as f64;
            changes += path.windows(2).filter(|pair| pair[0].regime != pair[1].regime).count() as f64;
        }
        assert!((cheap / days - 0.4).abs() < 0.03, "{}", cheap / days);
        // A change every 50 days on average.
        assert!((days / changes - 50.0).abs() < 4.0, "{}", days / changes);
    }

    #[test]
    fn the_price_follows_the_variance_of_the_regime_and_quotes_do_not() {
        let (mut squares, mut expected) = ([0.0; 2], [0.0; 2]);
        for seed in 0..12 {
            let mut parameters = hidden(1000, seed);
            parameters.physical.jump_intensity = 0.0;
            let days = simulate_days(&parameters).unwrap();
            parameters.regimes.clear();
            let plain = simulate_days(&parameters).unwrap();
            for (pair, plain) in days.windows(2).zip(&plain[1..]) {
                assert_eq!(pair[1].variance, plain.variance);
                let change = libm::log(pair[1].close / pair[0].close);
                squares[pair[1].regime] += change * change;
                expected[pair[1].regime] += 0.5 * (pair[0].variance + pair[1].variance) / 252.0;
            }
        }
        for (regime, factor) in [0.5, 2.0].into_iter().enumerate() {
            let found = squares[regime] / expected[regime];
            assert!((found / factor - 1.0).abs() < 0.06, "{regime}: {found}");
        }
    }

    /// Until the last day of the edge nothing changes; after it, the price moves as the quotes say.
    #[test]
    fn an_edge_ends_after_its_last_day() {
        let mut parameters = hidden(500, 8);
        let with = simulate_days(&parameters).unwrap();
        let last = 249;
        parameters.edge_until = Some(with[last].date);
        let ended = simulate_days(&parameters).unwrap();
        assert_eq!(ended[..=last], with[..=last]);
        parameters.edge_until = None;
        parameters.regimes.clear();
        let plain = simulate_days(&parameters).unwrap();
        for (pair, plain) in ended.windows(2).zip(plain.windows(2)).skip(last) {
            let moved = |pair: &[Day]| libm::log(pair[1].close / pair[0].close);
            // Up to the rounding of prices to cents.
            assert!((moved(pair) - moved(plain)).abs() < 2e-5, "{}", pair[1].date);
        }
        assert!(ended[last + 1..].iter().any(|day| day.regime == 1));
    }

    /// The price is a martingale in each step, whatever the variance of the regime.
    #[test]
    fn discounted_prices_have_no_drift() {
        let model = Parameters::default().physical.model();
        for realised in [0.3, 1.0, 3.0] {
            let step = Step::realising(&model, 0.02, realised);
            let mut random = Random::new(&[9]);
            let (n, mut sum) = (200_000, 0.0);
            for _ in 0..n {
                sum += libm::exp(step.advance(&mut 0.02, &mut random).martingale());
            }
            let mean = sum / f64::from(n);
            assert!((mean - 1.0).abs() < 3e-4, "{realised}: {mean}");
        }
    }

    #[test]
    fn quotes_show_what_changes_prices() {
        let mut parameters = hidden(60, 5);
        parameters.risk_neutral.jump_intensity = 0.0;
        parameters.regimes[0].mean_days = 5.0;
        parameters.regimes[1] = Regime {
            mean_days: 5.0,
            implied_variance: 1.5,
            ..Regime::default()
        };
        let at_the_money = |parameters: &Parameters| -> Vec<(usize, f64)> {
            let market = crate::Market::new(parameters).unwrap();
            let days = market.days().iter().enumerate();
            days.map(|(i, day)| {
                let chain = market.chain(i);
                let quotes = chain.iter().filter(|quote| quote.expiry.0 - day.date.0 >= 30);
                let distance = |quote: &&crate::Quote| ((quote.strike - day.close).abs() * 100.0) as i64;
                (day.regime, quotes.min_by_key(distance).unwrap().implied_volatility)
            })
            .collect()
        };
        let found = at_the_money(&parameters);
        parameters.regimes[1].implied_variance = 1.0;
        let plain = at_the_money(&parameters);
        for ((regime, found), (_, plain)) in found.iter().zip(&plain) {
            let factor = if *regime == 1 { 1.5_f64.sqrt() } else { 1.0 };
            // Up to the rounding of quotes to ticks.
            assert!((found / plain / factor - 1.0).abs() < 0.02, "{regime}: {found} {plain}");
        }
        assert!(found.iter().any(|(regime, _)| *regime == 1));
    }

    #[test]
    fn the_filter_is_calibrated_and_tells_regimes_apart() {
        // Among the days on which the filter's probability of `cheap` is in a given tenth, the share that is
        // cheap.
        let (mut number, mut cheap, mut sum) = ([0.0; 10], [0.0; 10], [0.0; 10]);
        let mut gain = 0.0;
        for seed in 100..140 {
            let market = crate::Market::new(&hidden(500, seed)).unwrap();
            for (day, probability) in market.days().iter().zip(market.filter()) {
                assert!((probability.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                let tenth = ((probability[1] * 10.0) as usize).min(9);
                number[tenth] += 1.0;
                sum[tenth] += probability[1];
                cheap[tenth] += f64::from(u8::from(day.regime == 1));
                gain += libm::log(probability[day.regime] / [0.6, 0.4][day.regime]);
            }
        }
        for tenth in 0..10 {
            if number[tenth] > 300.0 {
                let (share, expected) = (cheap[tenth] / number[tenth], sum[tenth] / number[tenth]);
                assert!((share - expected).abs() < 0.08, "{tenth}: {share} {expected}");
            }
        }
        // In nats a day, out of the 0.673 that the regime holds.
        let gain = gain / number.iter().sum::<f64>();
        assert!(gain > 0.25, "{gain}");
    }

    #[test]
    fn a_market_without_regimes_is_as_it_was() {
        let plain = Parameters {
            days: 40,
            ..Parameters::default()
        };
        let one = Parameters {
            regimes: vec![Regime::default()],
            ..plain.clone()
        };
        assert_eq!(simulate_days(&plain).unwrap(), simulate_days(&one).unwrap());
        let mut wrong = one;
        wrong.regimes[0].mean_days = 0.0;
        assert_eq!(wrong.check().unwrap_err().field, "regimes[].mean_days");
        let mut same = hidden(10, 1);
        assert_eq!(same.regime_names(), ["dear", "cheap"]);
        same.regimes[1].name = "dear".to_owned();
        assert_eq!(same.check().unwrap_err().field, "regimes[].name");
    }
}
