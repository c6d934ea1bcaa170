//! The reward of a step; [`reward`](crate::reward) has the formulas.

use super::market::Market;
use super::state::Account;
use crate::options::quantities::QUANTITIES;
use crate::reward::{Change, Moments, drawdown};

/// The costs of an account's trades so far.
fn costs(account: &Account) -> f64 {
    account.spread_cost + account.commission
}

/// The reward of the step from the account `before` to `account`, whose peak is up to date.
pub(super) fn reward(market: &Market, before: &Account, account: &Account, moments: &mut Moments) -> f64 {
    let change = Change {
        nav: [before.nav, account.nav],
        peak: [before.peak, account.peak],
        risk_free: market.common.risk_free[account.t as usize - 1],
        traded: account.traded - before.traded,
        costs: costs(account) - costs(before),
        exposure: account.delta * market.now(account).underlying,
    };
    market
        .common
        .reward
        .of(&change, moments, |scale| quantities(market, before, account, scale))
}

/// The values of [`QUANTITIES`].
fn quantities(market: &Market, before: &Account, account: &Account, scale: f64) -> [f64; QUANTITIES.len()] {
    let tables = &market.tables;
    let t = account.t as usize;
    let capital = market.config.capital;
    let underlying = tables.rows.underlying[t];
    let simple = (account.nav - before.nav) * scale;
    let risk_free = market.common.risk_free[t - 1];
    let deep = drawdown(account.nav, account.peak);
    let collateral = market.collateral(account, underlying);
    [
        simple,
        simple - risk_free,
        libm::log(account.nav.max(1e-3 * capital) * scale),
        risk_free,
        underlying / tables.rows.underlying[t - 1] - 1.0,
        account.nav / capital,
        deep,
        deep - drawdown(before.nav, before.peak),
        (account.traded - before.traded) * scale,
        (costs(account) - costs(before)) * scale,
        (account.interest - before.interest) * scale,
        account.delta * underlying * scale,
        0.01 * account.gamma * underlying * underlying * scale,
        0.01 * account.vega * scale,
        account.theta / 365.0 * scale,
        account.units * underlying * scale,
        match account.margin > 0.0 {
            true => account.margin / collateral.max(1e-3 * capital),
            false => 0.0,
        },
        collateral * scale,
        f64::from(u8::from(account.liquidations > before.liquidations)),
        f64::from(account.lines),
        tables.days[t - 1],
        f64::from(account.t - account.first),
    ]
}
