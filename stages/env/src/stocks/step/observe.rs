//! Writes the observation of a state; [`observation`](crate::stocks::observation) has its layout.

use super::hedge::portfolio_exposure;
use super::kernels::show_weights;
use super::market::Market;
use super::state::Env;
use crate::stocks::config::Rules;
use crate::stocks::observation::{ACCOUNT, HEDGE};
use crate::stocks::tables::status;

/// Writes the observation of a state.
pub(super) fn observe(market: &Market, env: &Env<'_>, out: &mut [f32]) {
    let account = &*env.account;
    let t = account.t as usize;
    let row = market.common.row(t);
    if market.config.rules == Rules::Finrl {
        let n = env.positions.len();
        let (closes, indicators) = row.split_at(n);
        out[0] = account.cash as f32;
        out[1..=n].copy_from_slice(closes);
        for (out, held) in out[1 + n..].iter_mut().zip(&*env.positions) {
            *out = *held as f32;
        }
        out[1 + 2 * n..].copy_from_slice(indicators);
        return;
    }
    let (of_date, rest) = out.split_at_mut(row.len());
    of_date.copy_from_slice(row);
    let clip = f64::from(market.clip);
    // Near ruin, the scale stays finite.
    let scale = 1.0 / account.nav.max(1e-3 * market.config.capital);
    let (weights, totals) = rest.split_at_mut(env.positions.len());
    show_weights(
        market.instructions,
        env.positions,
        market.tables.marks(t),
        scale,
        clip,
        weights,
    );
    let values: [f64; ACCOUNT.len()] = [
        account.cash * scale,
        10.0 * (account.nav / market.config.capital - 1.0),
        account.gross * scale,
        10.0 * (1.0 - account.nav / account.peak),
    ];
    let (totals, of_hedge) = totals.split_at_mut(ACCOUNT.len());
    totals.copy_from_slice(&values.map(|value| value.clamp(-clip, clip) as f32));
    if market.config.hedge.is_none() {
        return;
    }
    let quote = market.tables.hedge(t);
    let value = env.hedge.units * quote.price;
    let exposure = portfolio_exposure(market, env.positions, market.tables.marks(t), t) + value;
    let values: [f64; HEDGE.len()] = [
        f64::from(u8::from(quote.has(status::TRADES))),
        value * scale,
        exposure * scale,
    ];
    of_hedge.copy_from_slice(&values.map(|value| value.clamp(-clip, clip) as f32));
}
