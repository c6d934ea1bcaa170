//! Trades: their costs, and what cash and margin allow.

use super::market::Market;
use super::state::{Account, EnvState};
use crate::stocks::tables::status;

/// The costs of a trade.
#[derive(Clone, Copy, Default)]
struct Costs {
    commission: f64,
    spread: f64,
    impact: f64,
}

impl Costs {
    fn sum(self) -> f64 {
        self.commission + self.spread + self.impact
    }
}

/// The prices and costs of the trades of a step.
struct Costing<'a> {
    per_share: f64,
    fraction: f64,
    impact: f64,
    prices: &'a [f64],
    /// Mean volumes and volatilities on the date of the decision, where there is impact.
    liquidity: Option<(&'a [f64], &'a [f64])>,
}

impl Costing<'_> {
    /// The costs of a number of shares, not negative, of symbol `i`.
    #[inline]
    fn of(&self, i: usize, shares: f64) -> Costs {
        let value = shares * self.prices[i];
        Costs {
            commission: self.per_share * shares,
            spread: self.fraction * value,
            impact: match self.liquidity {
                Some((volumes, volatilities)) if shares > 0.0 => {
                    self.impact * volatilities[i] * (shares / volumes[i]).sqrt() * value
                }
                _ => 0.0,
            },
        }
    }

    /// Trades signed shares of symbol `i`.
    #[inline]
    fn trade(&self, account: &mut Account, held: &mut f64, i: usize, shares: f64) {
        let costs = self.of(i, shares.abs());
        let value = shares * self.prices[i];
        *held += shares;
        account.cash -= value + costs.sum();
        account.traded += value.abs();
        account.commission += costs.commission;
        account.spread_cost += costs.spread;
        account.impact_cost += costs.impact;
        account.trades += u32::from(shares != 0.0);
    }
}

/// Makes the trades of the orders: first what reduces positions, then, by one factor for all, as much of the rest as cash (or margin) allows. `decided` is the date
/// whose volumes count; `later` makes the trades at the opens of the account's date, else at its marks.
pub(super) fn execute(market: &Market, env: &mut EnvState, decided: usize, later: bool) {
    let EnvState {
        account,
        shares,
        orders,
        ..
    } = env;
    let t = account.t as usize;
    let config = &market.config;
    let prices = match later {
        true => market.tables.opens(t),
        false => market.tables.marks(t),
    };
    if later {
        let mut refused = 0;
        for (order, flags) in orders.iter_mut().zip(market.tables.status(t)) {
            if flags & status::OPENS == 0 && *order != 0.0 {
                *order = 0.0;
                refused += 1;
            }
        }
        account.refused += refused;
    }
    let costing = Costing {
        per_share: config.fills.per_share,
        fraction: config.fills.basis_points * 1e-4,
        impact: config.fills.impact,
        prices,
        liquidity: (config.fills.impact > 0.0).then(|| market.tables.liquidity(decided)),
    };
    // What increases positions is left in the orders.
    let mut rest = 0.0;
    let mut costs = 0.0;
    for (i, (order, held)) in orders.iter_mut().zip(shares.iter_mut()).enumerate() {
        if *order == 0.0 {
            continue;
        }
        let reduction = order.max(-held.max(0.0)).min((-*held).max(0.0));
        if reduction != 0.0 {
            costing.trade(account, held, i, reduction);
            *order -= reduction;
        }
        rest += order.abs() * prices[i];
        costs += costing.of(i, order.abs()).sum();
    }
    if rest == 0.0 {
        return;
    }
    // A hair less than all, so that rounding cannot make a debt.
    let factor = match config.has_margin() {
        false => account.cash / (rest + costs),
        true => {
            let (net, gross) = shares
                .iter()
                .zip(prices)
                .fold((0.0, 0.0), |(net, gross), (held, price)| {
                    let value = held * price;
                    (net + value, gross + value.abs())
                });
            let initial = config.margin.initial;
            (account.cash + net - initial * gross) / (costs + initial * rest)
        }
    };
    let factor = factor.max(0.0) * (1.0 - 1e-12);
    for (i, (order, held)) in orders.iter_mut().zip(shares.iter_mut()).enumerate() {
        if *order == 0.0 {
            continue;
        }
        let allowed = match factor < 1.0 {
            false => *order,
            true => {
                account.reduced += 1;
                market.whole(*order * factor)
            }
        };
        if allowed != 0.0 {
            costing.trade(account, held, i, allowed);
        }
    }
}

/// Closes every position that trades, at the marks of the account's date.
pub(super) fn liquidate(market: &Market, env: &mut EnvState) {
    for (order, held) in env.orders.iter_mut().zip(&*env.shares) {
        *order = -held;
    }
    super::orders::restrict(market, env);
    let t = env.account.t as usize;
    execute(market, env, t, false);
    env.account.liquidations += 1;
}
