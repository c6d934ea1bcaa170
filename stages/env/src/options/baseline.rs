//! What a policy is measured against, in the same environment and under the same rules.

use super::account::One;
use super::core::Core;
use super::env::{Decision, Instrument, Order, Orders};
use super::menu::HOLD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_numerics::random::Random;

/// A rule that needs no training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// Never trades.
    Cash,
    /// Holds the underlying with all its capital, or, where that does not trade, its synthetic: a long call and a short put
    /// at the money at the slate's longest maturity, for contracts that come nearest to the net asset value (at least one),
    /// held to expiry and then opened anew.
    Underlying,
    /// Sells a straddle at the money at the slate's first maturity, as many as a strategy would; holds it to expiry and then
    /// sells the next.
    ShortStraddle,
    /// Takes a legal action at random, each as likely.
    Random,
}

impl Baseline {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cash, Self::Underlying, Self::ShortStraddle, Self::Random];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cash => "cash",
            Self::Underlying => "underlying",
            Self::ShortStraddle => "short_straddle",
            Self::Random => "random",
        }
    }
}

impl Core {
    /// The call and the put at the money at snapshot `t`.
    pub(crate) fn at_the_money(&self, t: usize, maturity: usize) -> Option<(u32, u32)> {
        let n = self.config.slate.maturities.len();
        if maturity >= n {
            return None;
        }
        let pair = &self.tables.at_the_money[(t * n + maturity) * 2..][..2];
        Some((u32::try_from(pair[0]).ok()?, u32::try_from(pair[1]).ok()?))
    }

    /// What `baseline` does in a state of environment `i`.
    pub(crate) fn baseline(&self, baseline: Baseline, i: usize, one: &One) -> Decision {
        let hold = Decision::Action(HOLD as u32);
        let account = &*one.account;
        let t = account.t as usize;
        let pair = |maturity: usize, call: f64, put: f64| match self.at_the_money(t, maturity) {
            Some((c, p)) if account.lines == 0 => Decision::Orders(Orders::new(&[
                Order {
                    instrument: Instrument::Contract(c),
                    quantity: call as i32,
                },
                Order {
                    instrument: Instrument::Contract(p),
                    quantity: put as i32,
                },
            ])),
            _ => hold,
        };
        match baseline {
            Baseline::Cash => hold,
            Baseline::Underlying if self.config.trade_underlying => {
                let price = self.tables.underlying[t] * (1.0 + self.config.fills.underlying_slippage);
                let units = (account.cash / price).floor().clamp(0.0, f64::from(i32::MAX));
                if account.units > 0.0 || units == 0.0 {
                    return hold;
                }
                Decision::Orders(Orders::new(&[Order {
                    instrument: Instrument::Underlying,
                    quantity: units as i32,
                }]))
            }
            Baseline::Underlying => {
                let maturities = &self.config.slate.maturities;
                let longest = (0..maturities.len()).max_by_key(|&m| maturities[m]).unwrap_or(0);
                let n = account.nav / (self.tables.underlying[t] * self.multiplier);
                let n = (n + 0.5).floor().clamp(1.0, 1e5);
                pair(longest, n, -n)
            }
            Baseline::ShortStraddle => {
                let n = -f64::from(account.size);
                pair(0, n, n)
            }
            Baseline::Random => {
                let mut random = Random::new(&[self.seed, 0x006c_6567_616c, i as u64, account.episode, t as u64]);
                let mut nth = random.below(u64::from(account.legal.count_ones()));
                let mut legal = account.legal;
                while nth > 0 {
                    legal &= legal - 1;
                    nth -= 1;
                }
                Decision::Action(legal.trailing_zeros())
            }
        }
    }
}
