//! Portfolio margin by a risk array, in the manner of SPAN (CME Group, SPAN Risk Manager) and of the
//! portfolio margin of FINRA Rule 4210(g).
//!
//! Every position is revalued in 16 scenarios, from its last implied volatility and its forward, by
//! Black-Scholes:
//!
//! | scenarios | move of the underlying | volatility | share of the loss that counts |
//! | --- | --- | --- | --- |
//! | 1 to 14 | 0, ± 1/3, ± 2/3, ± 1 times `range` | times 1 + `volatility`, and times 1 - `volatility` | all |
//! | 15, 16 | ± `extreme` times `range` | as it is | `cover` |
//!
//! The requirement is the greatest loss of the whole portfolio, the underlying included, in any of them; at
//! least `short_minimum` times the underlying for each unit of the underlying in a short option. It is held
//! against the net asset value, options at their marks.
//!
//! American contracts are revalued as European ones. The values of the scenarios are computed with the
//! tables; a step adds them up.

use crate::checks::{self, within};
use stages_core::ConfigProblem;
use stages_numerics::black_scholes::greeks;

/// The number of scenarios.
pub(crate) const SCENARIOS: usize = 16;

/// The gain of one unit of a contract in each scenario: a cache line.
pub(crate) type RiskRow = [f32; SCENARIOS];

stages_core::settings! {
    /// The scenarios of the risk array.
    pub struct RiskArray {
        /// The move of the underlying that is scanned, as a fraction of it: 0.15 for shares, 0.08 for a broad
        /// index.
        pub range: f64 = 0.15,
        /// The change of implied volatility, as a fraction of it.
        pub volatility: f64 = 0.25,
        /// The extreme move, in ranges.
        pub extreme: f64 = 2.0,
        /// The share of the loss at the extreme move that counts.
        pub cover: f64 = 0.35,
        /// The least requirement of a short option, as a fraction of the underlying: 0.00375 is 37.50 for a
        /// contract on 100 shares at 100.
        pub short_minimum: f64 = 0.003_75,
    }
}

/// A scenario: the move of the underlying and the change of volatility, as fractions, and the share of the
/// loss that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scenario {
    pub spot: f64,
    pub volatility: f64,
    pub share: f64,
}

/// The quantities on which the value of a contract depends at a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Priced {
    /// The price of what a unit delivers, and the forward price of it.
    pub spot: f64,
    pub forward: f64,
    pub discount: f64,
    pub volatility: f64,
    pub years: f64,
    pub strike: f64,
    pub call: bool,
}

impl RiskArray {
    pub(crate) fn scenarios(&self) -> [Scenario; SCENARIOS] {
        let mut out = [Scenario {
            spot: 0.0,
            volatility: 0.0,
            share: 1.0,
        }; SCENARIOS];
        let thirds = [0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0];
        for (i, scenario) in out.iter_mut().enumerate() {
            match thirds.get(i / 2) {
                Some(third) => {
                    scenario.spot = third / 3.0 * self.range;
                    scenario.volatility = if i % 2 == 0 { self.volatility } else { -self.volatility };
                }
                None => {
                    scenario.spot = self.extreme * self.range * if i % 2 == 0 { 1.0 } else { -1.0 };
                    scenario.share = self.cover;
                }
            }
        }
        out
    }

    /// The gain of one unit of a contract in each scenario.
    pub(crate) fn row(&self, of: &Priced) -> RiskRow {
        let value = |spot: f64, volatility: f64| {
            let (now, forward) = (of.spot * (1.0 + spot), of.forward * (1.0 + spot));
            let sigma = of.volatility * (1.0 + volatility);
            greeks(now, forward, of.discount, sigma, of.years, of.strike, of.call).price
        };
        let now = value(0.0, 0.0);
        self.scenarios()
            .map(|scenario| (scenario.share * (value(scenario.spot, scenario.volatility) - now)) as f32)
    }

    /// Checks the settings.
    pub(crate) fn validate(&self) -> Result<(), ConfigProblem> {
        let check = |field: &str, value: f64, fits: bool, range: &str| {
            checks::fits(&format!("margin.risk_array.{field}"), value, fits, range)
        };
        let share = |field: &str, value: f64| {
            check(field, value, (0.0..1.0).contains(&value), "at least 0 and below 1")
        };
        check(
            "range",
            self.range,
            self.range > 0.0 && self.range < 1.0,
            "between 0 and 1",
        )?;
        share("volatility", self.volatility)?;
        let is_below_all = self.extreme >= 1.0 && self.range * self.extreme < 1.0;
        let what = "1 or more, and less than what takes the underlying to 0";
        check("extreme", self.extreme, is_below_all, what)?;
        within("margin.risk_array.cover", self.cover, 0.0, 1.0)?;
        share("short_minimum", self.short_minimum)
    }
}

/// The gains of a portfolio in each scenario, in currency.
pub(crate) struct Scan {
    gains: [f64; SCENARIOS],
    /// The value of the underlying in short options.
    short: f64,
}

impl Scan {
    /// The gains of the underlying held.
    pub(crate) fn new(units: f64, underlying: f64, scenarios: &[Scenario; SCENARIOS]) -> Self {
        Self {
            gains: scenarios.map(|scenario| scenario.share * scenario.spot * units * underlying),
            short: 0.0,
        }
    }

    /// Adds `units` units of a contract with the given row, a unit of which delivers underlying of the given
    /// value.
    #[inline]
    pub(crate) fn add(&mut self, row: &RiskRow, units: f64, delivered: f64) {
        for (gain, &of_one) in self.gains.iter_mut().zip(row) {
            *gain += units * f64::from(of_one);
        }
        self.short += (-units).max(0.0) * delivered;
    }

    /// The requirement.
    pub(crate) fn requirement(&self, rule: &RiskArray) -> f64 {
        let worst = self.gains.iter().copied().fold(0.0, f64::min);
        (-worst).max(rule.short_minimum * self.short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand, and partly told in docs/concepts/fills.md. Contracts at their expiry, so that
    /// their values are intrinsic and can be computed by hand: the underlying at 100, a range of 15 %, and
    /// the extreme move of 30 %, of which 35 % counts.
    #[test]
    fn by_hand() {
        let rule = RiskArray::default();
        let row = |strike: f64, call: bool| {
            rule.row(&Priced {
                spot: 100.0,
                forward: 100.0,
                discount: 1.0,
                volatility: 0.2,
                years: 0.0,
                strike,
                call,
            })
        };
        let need = |units: f64, legs: &[(f64, bool, f64)]| {
            let mut scan = Scan::new(units, 100.0, &rule.scenarios());
            for &(strike, call, contracts) in legs {
                scan.add(&row(strike, call), 100.0 * contracts, 100.0);
            }
            scan.requirement(&rule)
        };
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-3, "{found} {expected}");
        // 100 shares lose 15 at the whole range, and 35 % of 30 = 10.50 at the extreme.
        close(need(100.0, &[]), 1500.0);
        // A short straddle loses 15 either way.
        close(need(0.0, &[(100.0, true, -1.0), (100.0, false, -1.0)]), 1500.0);
        // A short put 90 loses 5 at the range, and 35 % of 20 = 7 at the extreme.
        close(need(0.0, &[(90.0, false, -1.0)]), 700.0);
        // Against a long put 80 it loses 5, and 35 % of 10 = 3.50.
        close(need(0.0, &[(90.0, false, -1.0), (80.0, false, 1.0)]), 500.0);
        // A covered call 100 loses what the shares lose.
        close(need(100.0, &[(100.0, true, -1.0)]), 1500.0);
        // Shares with a put 95 lose 5.
        close(need(100.0, &[(95.0, false, 1.0)]), 500.0);
        // A short call 150 loses nothing in any scenario: the least requirement, 0.00375 of 10,000 a
        // contract.
        close(need(0.0, &[(150.0, true, -2.0)]), 75.0);
        // A long straddle at its expiry can only gain.
        close(need(0.0, &[(100.0, true, 1.0), (100.0, false, 1.0)]), 0.0);
    }

    #[test]
    fn volatility_is_scanned_up_and_down() {
        let rule = RiskArray::default();
        let priced = Priced {
            spot: 100.0,
            forward: 100.0,
            discount: 1.0,
            volatility: 0.2,
            years: 0.25,
            strike: 100.0,
            call: true,
        };
        let row = rule.row(&priced);
        let price = |sigma: f64| greeks(100.0, 100.0, 1.0, sigma, 0.25, 100.0, true).price;
        assert!((f64::from(row[0]) - (price(0.25) - price(0.2))).abs() < 1e-5);
        assert!((f64::from(row[1]) - (price(0.15) - price(0.2))).abs() < 1e-5);
        // A long straddle loses where volatility falls and the underlying stays.
        let put = rule.row(&Priced { call: false, ..priced });
        let mut scan = Scan::new(0.0, 100.0, &rule.scenarios());
        scan.add(&row, 1.0, 100.0);
        scan.add(&put, 1.0, 100.0);
        assert!((scan.requirement(&rule) - 2.0 * (price(0.2) - price(0.15))).abs() < 1e-4);
    }
}
