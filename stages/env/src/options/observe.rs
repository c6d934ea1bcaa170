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
        let clip = f64::from(self.clip);
        let put = |out: &mut f32, value: f64| *out = value.clamp(-clip, clip) as f32;
        let now = tables.at(t);
        let underlying = now.underlying;
        // Near ruin, the scale stays finite.
        let scale = 1.0 / account.nav.max(1e-3 * self.config.capital);
        let (positions, totals) = rest.split_at_mut(lines.len() * POSITION.len());
        positions.fill(0.0);
        for (line, out) in lines[..account.lines as usize]
            .iter()
            .zip(positions.chunks_exact_mut(POSITION.len()))
        {
            let contract = &tables.contracts[line.contract as usize];
            let entry = now.entry(line.contract);
            let units = f64::from(line.quantity) * self.multiplier * scale;
            put(&mut out[0], 10.0 * (contract.strike / underlying - 1.0));
            put(&mut out[1], f64::from(contract.expiry - tables.dates[t]) / 30.0);
            put(&mut out[2], units * underlying);
            put(&mut out[3], 10.0 * units * entry.mark);
            put(&mut out[4], units * entry.delta * underlying);
            put(&mut out[5], units * entry.vega);
        }
        let capital = self.config.capital;
        let available = self.available(account, underlying);
        let margin_use = if account.margin > 0.0 {
            account.margin / available.max(1e-3 * capital)
        } else {
            0.0
        };
        put(&mut totals[0], account.cash / capital - 1.0);
        put(&mut totals[1], 10.0 * (account.nav / capital - 1.0));
        put(&mut totals[2], account.units * underlying * scale);
        put(&mut totals[3], account.delta * underlying * scale);
        put(&mut totals[4], account.gamma * underlying * underlying * 0.1 * scale);
        put(&mut totals[5], account.vega * scale);
        put(&mut totals[6], account.theta * 1000.0 / 365.0 * scale);
        put(&mut totals[7], margin_use);
        put(&mut totals[8], 10.0 * (1.0 - account.nav / account.peak));
    }
}
