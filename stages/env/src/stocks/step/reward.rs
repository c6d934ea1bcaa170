//! The reward of a step; [`reward`](crate::reward) has the formulas.

use super::market::Market;
use super::state::Account;
use crate::reward::{Change, Moments, Reward, drawdown};
use crate::stocks::quantities::QUANTITIES;

/// The costs of the trades so far.
fn costs(account: &Account) -> f64 {
    account.commission + account.spread_cost + account.impact_cost
}

/// The reward of the step from `before` to `account`, whose peak is up to date.
pub(super) fn reward(
    reward: &Reward,
    market: &Market,
    before: &Account,
    account: &Account,
    shares: &[f64],
    moments: &mut Moments,
) -> f64 {
    let change = Change {
        nav: [before.nav, account.nav],
        peak: [before.peak, account.peak],
        risk_free: market.tables.accrual[account.t as usize - 1],
        traded: account.traded - before.traded,
        costs: costs(account) - costs(before),
        exposure: account.net,
    };
    reward.of(&change, moments, |scale| {
        quantities(market, &change, before, account, shares, scale)
    })
}

/// The values of [`QUANTITIES`].
fn quantities(
    market: &Market,
    change: &Change,
    before: &Account,
    account: &Account,
    shares: &[f64],
    scale: f64,
) -> [f64; QUANTITIES.len()] {
    let tables = &market.tables;
    let t = account.t as usize;
    let capital = market.config.capital;
    let simple = (account.nav - before.nav) * scale;
    let deep = drawdown(account.nav, account.peak);
    let interest = |account: &Account| account.interest - account.debit_interest;
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
        tables.market_return[t],
        account.nav / capital,
        deep,
        deep - drawdown(before.nav, before.peak),
        change.traded * scale,
        change.costs * scale,
        (interest(account) - interest(before)) * scale,
        (account.borrow_cost - before.borrow_cost) * scale,
        (account.dividends - before.dividends) * scale,
        account.gross * scale,
        account.net * scale,
        squares,
        f64::from(positions),
        (account.delisting_loss - before.delisting_loss) * scale,
        f64::from(u8::from(account.liquidations > before.liquidations)),
        tables.days[t - 1],
        f64::from(account.t - account.first),
    ]
}
