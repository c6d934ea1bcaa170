//! Baselines: rules that a policy is compared with, in the same environment and under the same rules.

use super::market::Market;
use super::state::Account;
use crate::hedge::HedgeOrder;
use crate::options::order::{Decision, Instrument, Order, Orders};
use crate::options::strategies::HOLD;
use crate::portfolio::BaselineName;
use stages_numerics::random::Random;

/// The random stream of [`BaselineName::Random`]'s choices.
const RANDOM: u64 = 0x006c_6567_616c;

/// The baselines of `env/options`.
pub const BASELINES: [BaselineName; 5] = [
    BaselineName::Cash,
    BaselineName::Underlying,
    BaselineName::ShortStraddle,
    BaselineName::HedgedShortStraddle,
    BaselineName::Random,
];

/// The cash that a purchase of the underlying at the next snapshot leaves for a rise of its price.
const RESERVE: f64 = 0.02;

/// [`BaselineName::Underlying`] where the underlying trades and orders are filled at the next snapshot.
pub(super) fn underlying_later(market: &Market, account: &Account) -> Decision {
    let kept = Account {
        cash: account.cash * (1.0 - RESERVE),
        ..*account
    };
    decide(BaselineName::Underlying, market, 0, 0, &kept)
}

/// The decision of a baseline in a state of environment `i`. [`BaselineName::Underlying`] is the underlying,
/// or, where that does not trade, its synthetic: a long call and a short put at the money at the slate's
/// longest maturity, for contracts that come nearest to the net asset value (at least one), held to expiry
/// and then opened anew. The rule of `hedge` hedges [`BaselineName::ShortStraddle`].
pub(super) fn decide(
    baseline: BaselineName,
    market: &Market,
    seed: u64,
    i: usize,
    account: &Account,
) -> Decision {
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
    match baseline {
        BaselineName::Underlying if market.config.trade_underlying => {
            // It is the position: the rule of `hedge` would undo it.
            let hold = Decision::Orders(Orders::new(&[]).hedged(HedgeOrder::Leave));
            let price = market.tables.rows.underlying[t] * (1.0 + market.config.fills.underlying_slippage);
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
        BaselineName::Underlying => {
            let maturities = &market.config.slate.maturities;
            let longest = (0..maturities.len()).max_by_key(|&m| maturities[m]).unwrap_or(0);
            let n = account.nav / (market.tables.rows.underlying[t] * market.multiplier);
            let n = (n + 0.5).floor().clamp(1.0, 1e5);
            pair(longest, n, -n, Some(HedgeOrder::Leave))
        }
        BaselineName::ShortStraddle => {
            let n = -f64::from(account.size);
            pair(0, n, n, None)
        }
        BaselineName::HedgedShortStraddle => {
            let n = -f64::from(account.size);
            pair(0, n, n, Some(HedgeOrder::Zero))
        }
        BaselineName::Random => {
            let mut random = Random::new(&[seed, RANDOM, i as u64, account.episode, t as u64]);
            let mut nth = random.below(u64::from(account.action_mask.count_ones()));
            let mut mask = account.action_mask;
            while nth > 0 {
                mask &= mask - 1;
                nth -= 1;
            }
            Decision::Action(mask.trailing_zeros())
        }
        // Cash; the others are not this market's.
        _ => hold,
    }
}
