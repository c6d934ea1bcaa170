//! What is shown: market and slate as in the table, then positions and account in fixed units.
//!
//! With S the underlying, q contracts, m the multiplier, N the net asset value:
//!
//! | element | is |
//! | --- | --- |
//! | `market.*`, `slate.*` | features, normalised on training dates |
//! | `position[i].moneyness` | 10 (strike / S - 1) |
//! | `position[i].days_left` | calendar days to expiry / 30 |
//! | `position[i].quantity` | q m S / N |
//! | `position[i].mark` | 10 q m mark / N |
//! | `position[i].delta` | q m delta S / N |
//! | `position[i].vega` | q m vega / N, per cent of N a volatility point |
//! | `account.cash` | cash / capital - 1 |
//! | `account.net_asset_value` | 10 (N / capital - 1) |
//! | `account.underlying` | units S / N |
//! | `account.delta` | delta S / N, the underlying included |
//! | `account.gamma` | change of `account.delta` for a move of 10 % |
//! | `account.vega` | per cent of N a volatility point |
//! | `account.theta` | per mille of N a day |
//! | `account.margin_use` | requirement / (cash + half the underlying held) |
//! | `account.drawdown` | 10 (1 - N / its peak in the episode) |
//!
//! Lines are in the order of their opening; empty ones are 0. Every element is cut off at `clip`.

use super::account::{Account, Line};
use super::config::OptionsConfig;
use super::core::Core;
use super::slate::slot_names;

const POSITION: [&str; 6] = ["moneyness", "days_left", "quantity", "mark", "delta", "vega"];
const ACCOUNT: [&str; 9] = [
    "cash",
    "net_asset_value",
    "underlying",
    "delta",
    "gamma",
    "vega",
    "theta",
    "margin_use",
    "drawdown",
];

/// How many elements follow market and slate.
pub(crate) fn account_width(config: &OptionsConfig) -> usize {
    config.lines * POSITION.len() + ACCOUNT.len()
}

/// The name of every element.
pub(crate) fn names(features: &[String], config: &OptionsConfig) -> Vec<String> {
    let mut names: Vec<String> = features.iter().map(|name| format!("market.{name}")).collect();
    for slot in slot_names(&config.slate) {
        names.extend(
            config
                .slate
                .features
                .iter()
                .map(|feature| format!("slate.{slot}.{}", feature.name())),
        );
    }
    for i in 0..config.lines {
        names.extend(POSITION.iter().map(|name| format!("position[{i}].{name}")));
    }
    names.extend(ACCOUNT.iter().map(|name| format!("account.{name}")));
    names
}

impl Core {
    /// Writes the observation of a state.
    pub(crate) fn observe(&self, account: &Account, lines: &[Line], out: &mut [f32]) {
        let t = account.t as usize;
        let tables = &self.tables;
        let (row, rest) = out.split_at_mut(tables.width());
        row.copy_from_slice(tables.row(t));
        let now = tables.at(t);
        let underlying = now.underlying;
        // Near ruin, the scale stays finite.
        let scale = 1.0 / account.nav.max(1e-3 * self.config.capital);
        let (positions, totals) = rest.split_at_mut(lines.len() * POSITION.len());
        let (held, free) = positions.split_at_mut(account.lines as usize * POSITION.len());
        free.fill(0.0);
        for (line, out) in lines.iter().zip(held.as_chunks_mut().0) {
            let contract = &tables.contracts[line.contract as usize];
            let entry = now.entry(line.contract);
            let units = f64::from(line.quantity) * self.multiplier * scale;
            let values: [f64; POSITION.len()] = [
                10.0 * (contract.strike / underlying - 1.0),
                f64::from(contract.expiry - tables.dates[t]) / 30.0,
                units * underlying,
                10.0 * units * entry.mark,
                units * entry.delta * underlying,
                units * entry.vega,
            ];
            *out = self.cut(values);
        }
        let capital = self.config.capital;
        let available = self.available(account, underlying);
        let margin_use = if account.margin > 0.0 {
            account.margin / available.max(1e-3 * capital)
        } else {
            0.0
        };
        let values: [f64; ACCOUNT.len()] = [
            account.cash / capital - 1.0,
            10.0 * (account.nav / capital - 1.0),
            account.units * underlying * scale,
            account.delta * underlying * scale,
            account.gamma * underlying * underlying * 0.1 * scale,
            account.vega * scale,
            account.theta * 1000.0 / 365.0 * scale,
            margin_use,
            10.0 * (1.0 - account.nav / account.peak),
        ];
        totals.copy_from_slice(&self.cut(values));
    }

    /// Numbers as they are shown, cut off at `clip`.
    fn cut<const N: usize>(&self, values: [f64; N]) -> [f32; N] {
        let clip = f64::from(self.clip);
        let mut shown = [0.0; N];
        for (shown, value) in shown.iter_mut().zip(values) {
            *shown = value.clamp(-clip, clip) as f32;
        }
        shown
    }
}
