//! Writes the observation of a state; [`observation`](crate::options::observation) has its layout.

use super::market::Market;
use super::state::Env;
use crate::options::observation::{ACCOUNT, POSITION};

/// Writes the observation of a state.
pub(super) fn observe(market: &Market, env: &Env<'_>, out: &mut [f32]) {
    let (account, lines, terms) = (&*env.account, &*env.positions, &*env.terms);
    let t = account.t as usize;
    let tables = &market.tables;
    let shown = market.common.row(t);
    let (row, rest) = out.split_at_mut(shown.len());
    row.copy_from_slice(shown);
    let now = tables.at(t);
    let underlying = now.underlying;
    let clip = f64::from(market.clip);
    // Near ruin, the scale stays finite.
    let scale = 1.0 / account.nav.max(1e-3 * market.config.capital);
    let (positions, totals) = rest.split_at_mut(lines.len() * POSITION.len());
    let (held, free) = positions.split_at_mut(account.lines as usize * POSITION.len());
    free.fill(0.0);
    for ((line, terms), out) in lines.iter().zip(terms).zip(held.as_chunks_mut().0) {
        let entry = now.entry_at(terms.base);
        let units = f64::from(line.quantity) * market.multiplier * scale;
        let delivered = underlying * tables.shares(terms.deliverable);
        let values: [f64; POSITION.len()] = [
            10.0 * (terms.strike / delivered - 1.0),
            tables.days_left(line.contract, terms.expiry, t) / 30.0,
            units * delivered,
            10.0 * units * entry.mark,
            units * entry.delta * underlying,
            units * entry.vega,
        ];
        *out = clipped(values, clip);
    }
    let capital = market.config.capital;
    let collateral = market.collateral(account, underlying);
    let margin_use = if account.margin > 0.0 {
        account.margin / collateral.max(1e-3 * capital)
    } else {
        0.0
    };
    let values: [f64; ACCOUNT.len()] = [
        account.cash / capital - 1.0,
        10.0 * (account.nav / capital - 1.0),
        (account.units + env.hedge.futures) * underlying * scale,
        account.delta * underlying * scale,
        account.gamma * underlying * underlying * 0.1 * scale,
        account.vega * scale,
        account.theta * 1000.0 / 365.0 * scale,
        margin_use,
        10.0 * (1.0 - account.nav / account.peak),
    ];
    totals.copy_from_slice(&clipped(values, clip));
}

/// Values clipped to [-clip, clip], in single precision.
fn clipped<const N: usize>(values: [f64; N], clip: f64) -> [f32; N] {
    values.map(|value| value.clamp(-clip, clip) as f32)
}
