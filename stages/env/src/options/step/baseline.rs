//! Baselines: rules that a policy is compared with, in the same environment and under the same rules.

use super::market::Market;
use super::state::Account;
use crate::hedge::HedgeOrder;
use crate::options::order::{Decision, Instrument, Order, Orders};
use crate::options::strategies::HOLD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_numerics::random::Random;

/// The random stream of [`Baseline::Random`]'s choices.
const RANDOM: u64 = 0x006c_6567_616c;

/// A rule that needs no training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// Never trades.
    Cash,
    /// Holds the underlying with all its capital, or, where that does not trade, its synthetic: a long call
    /// and a short put at the money at the slate's longest maturity, for contracts that come nearest to the
    /// net asset value (at least one), held to expiry and then opened anew.
    Underlying,
    /// Sells a straddle at the money at the slate's first maturity, as many as a strategy would; holds it to
    /// expiry and then sells the next. The rule of `hedge` hedges it.
    ShortStraddle,
    /// The same, hedged to zero delta at every snapshot; only where the environment hedges.
    HedgedShortStraddle,
    /// Takes an allowed action at random, each as likely.
    Random,
}

impl Baseline {
    /// All baselines.
    pub const ALL: [Self; 5] = [
        Self::Cash,
        Self::Underlying,
        Self::ShortStraddle,
        Self::HedgedShortStraddle,
        Self::Random,
    ];

    /// Returns whether it trades by a hedge, which some environments do not have.
    pub fn hedges(self) -> bool {
        self == Self::HedgedShortStraddle
    }

    /// The baseline's name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cash => "cash",
            Self::Underlying => "underlying",
            Self::ShortStraddle => "short_straddle",
            Self::HedgedShortStraddle => "hedged_short_straddle",
            Self::Random => "random",
        }
    }
}

impl Baseline {
    /// The decision of the baseline in a state of environment `i`.
    pub(super) fn decide(self, market: &Market, seed: u64, i: usize, account: &Account) -> Decision {
        let hold = Decision::Action(HOLD as u32);
        let t = account.t as usize;
        let order = |contract: u32, quantity: f64| Order {
            instrument: Instrument::Contract(contract),
            quantity: quantity as i32,
        };
        let pair = |maturity: usize, call: f64, put: f64, hedge: Option<HedgeOrder>| {
            let orders = match market.at_the_money(t, maturity) {
                Some((c, p)) if account.lines == 0 => Orders::new(&[order(c, call), order(p, put)]),
                _ => Orders::new(&[]),
            };
            Decision::Orders(hedge.map_or(orders, |hedge| orders.hedged(hedge)))
        };
        match self {
            Self::Cash => hold,
            Self::Underlying if market.config.trade_underlying => {
                // It is the position: the rule of `hedge` would undo it.
                let hold = Decision::Orders(Orders::new(&[]).hedged(HedgeOrder::Leave));
                let price = market.tables.underlying[t] * (1.0 + market.config.fills.underlying_slippage);
                let units = (account.cash / price).floor().clamp(0.0, f64::from(i32::MAX));
                if account.units > 0.0 || units == 0.0 {
                    return hold;
                }
                Decision::Orders(
                    Orders::new(&[Order {
                        instrument: Instrument::Underlying,
                        quantity: units as i32,
                    }])
                    .hedged(HedgeOrder::Leave),
                )
            }
            Self::Underlying => {
                let maturities = &market.config.slate.maturities;
                let longest = (0..maturities.len()).max_by_key(|&m| maturities[m]).unwrap_or(0);
                let n = account.nav / (market.tables.underlying[t] * market.multiplier);
                let n = (n + 0.5).floor().clamp(1.0, 1e5);
                pair(longest, n, -n, Some(HedgeOrder::Leave))
            }
            Self::ShortStraddle => {
                let n = -f64::from(account.size);
                pair(0, n, n, None)
            }
            Self::HedgedShortStraddle => {
                let n = -f64::from(account.size);
                pair(0, n, n, Some(HedgeOrder::Zero))
            }
            Self::Random => {
                let mut random = Random::new(&[seed, RANDOM, i as u64, account.episode, t as u64]);
                let mut nth = random.below(u64::from(account.action_mask.count_ones()));
                let mut mask = account.action_mask;
                while nth > 0 {
                    mask &= mask - 1;
                    nth -= 1;
                }
                Decision::Action(mask.trailing_zeros())
            }
        }
    }
}
