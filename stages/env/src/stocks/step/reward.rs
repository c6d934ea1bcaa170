//! The reward of a step; [`reward`](crate::reward) has the formulas.

use super::hedge;
use super::market::Market;
use super::state::{Account, Env, Hedge};
use crate::reward::{Change, drawdown};
use crate::stocks::quantities::QUANTITIES;

/// An account and its hedge.
#[derive(Clone, Copy)]
pub(super) struct Book {
    pub account: Account,
    pub hedge: Hedge,
}

impl Book {
    pub(super) fn new(env: &Env<'_>) -> Self {
        Self {
            account: *env.account,
            hedge: *env.hedge,
        }
    }

    /// The costs of the trades so far.
    fn costs(&self) -> f64 {
        let (account, hedge) = (&self.account, &self.hedge);
        account.commission
            + account.spread_cost
            + account.impact_cost
            + (hedge.commission + hedge.spread_cost)
    }

    fn traded(&self) -> f64 {
        self.account.traded + self.hedge.traded
    }

    fn interest(&self) -> f64 {
        self.account.interest - self.account.debit_interest
    }

    fn borrow(&self) -> f64 {
        self.account.borrow_cost + self.hedge.borrow
    }

    fn dividends(&self) -> f64 {
        self.account.dividends + self.hedge.dividends
    }
}

/// The reward of the step from `before` to the state, whose peak is up to date.
pub(super) fn reward(market: &Market, before: &Book, env: &mut Env<'_>) -> f64 {
    let after = Book::new(env);
    let t = after.account.t as usize;
    // The value of the hedge, and the exposure that it leaves.
    let held = match market.config.hedge.is_none() {
        true => [0.0, after.account.net],
        false => {
            let value = after.hedge.units * market.tables.hedge(t).price;
            let portfolio = hedge::portfolio_exposure(market, env.positions, market.tables.marks(t), t);
            [value, portfolio + value]
        }
    };
    let change = Change {
        nav: [before.account.nav, after.account.nav],
        peak: [before.account.peak, after.account.peak],
        risk_free: market.common.risk_free[t - 1],
        traded: after.traded() - before.traded(),
        costs: after.costs() - before.costs(),
        exposure: held[1],
    };
    let shares = &*env.positions;
    market.common.reward.of(&change, env.moments, |scale| {
        quantities(market, &change, [before, &after], (shares, held), scale)
    })
}

/// The values of [`QUANTITIES`].
fn quantities(
    market: &Market,
    change: &Change,
    [before, after]: [&Book; 2],
    (shares, held): (&[f64], [f64; 2]),
    scale: f64,
) -> [f64; QUANTITIES.len()] {
    let tables = &market.tables;
    let account = &after.account;
    let t = account.t as usize;
    let capital = market.config.capital;
    let simple = (account.nav - before.account.nav) * scale;
    let deep = drawdown(account.nav, account.peak);
    let (mut squares, mut positions) = (0.0, 0_u32);
    for (held, mark) in shares.iter().zip(tables.marks(t)) {
        let weight = held * mark * scale;
        squares += weight * weight;
        positions += u32::from(*held != 0.0);
    }
    [
        simple,
        simple - change.risk_free,
        libm::log(account.nav.max(1e-3 * capital) * scale),
        change.risk_free,
        market.common.underlying[t - 1],
        account.nav / capital,
        deep,
        deep - drawdown(before.account.nav, before.account.peak),
        change.traded * scale,
        change.costs * scale,
        (after.interest() - before.interest()) * scale,
        (after.borrow() - before.borrow()) * scale,
        (after.dividends() - before.dividends()) * scale,
        account.gross * scale,
        account.net * scale,
        squares,
        f64::from(positions),
        (account.delisting_loss - before.account.delisting_loss) * scale,
        f64::from(u8::from(account.liquidations > before.account.liquidations)),
        tables.days[t - 1],
        f64::from(account.t - account.first),
        held[0] * scale,
        held[1] * scale,
    ]
}
