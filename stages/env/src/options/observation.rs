//! The layout of an observation: market and slate as in the tables, then positions and account in fixed
//! units.
//!
//! With S the underlying, q contracts, m the multiplier, N the net asset value:
//!
//! | element | is |
//! | --- | --- |
//! | `market.*`, `slate.*` | features, normalised on training dates; of a slot those of `slate.features`, then the features by contract |
//! | `position[i].moneyness` | 10 (strike / S - 1) |
//! | `position[i].days_left` | calendar days to expiry / 30; of several snapshots a day, with their hours |
//! | `position[i].quantity` | q m S / N |
//! | `position[i].mark` | 10 q m mark / N |
//! | `position[i].delta` | q m delta S / N |
//! | `position[i].vega` | q m vega / N, per cent of N a volatility point |
//! | `account.cash` | cash / capital - 1 |
//! | `account.net_asset_value` | 10 (N / capital - 1) |
//! | `account.underlying` | units S / N, futures included |
//! | `account.delta` | delta S / N, the underlying and futures included |
//! | `account.gamma` | change of `account.delta` for a move of 10 % |
//! | `account.vega` | per cent of N a volatility point |
//! | `account.theta` | per mille of N a day |
//! | `account.margin_use` | requirement / (cash + half the underlying held; all of it where it hedges) |
//! | `account.drawdown` | 10 (1 - N / its peak in the episode) |
//!
//! For a contract that was adjusted for a corporate action, whose unit delivers r shares, S in `moneyness`
//! and `quantity` is r times the underlying.
//!
//! Lines are in the order of their opening; empty ones are 0. Every element is clipped to [-`clip`, `clip`].

use super::config::{OptionsConfig, SlateConfig};

/// The elements of a position line.
pub(crate) const POSITION: [&str; 6] = ["moneyness", "days_left", "quantity", "mark", "delta", "vega"];
/// The elements of the account.
pub(crate) const ACCOUNT: [&str; 9] = [
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

/// The number of elements that follow market and slate.
pub(crate) fn account_width(config: &OptionsConfig) -> usize {
    config.lines * POSITION.len() + ACCOUNT.len()
}

/// The name of every element, given the names of the market features and of the features by contract.
pub(crate) fn names(
    features: &[String],
    contract_features: &[String],
    config: &OptionsConfig,
) -> Vec<String> {
    let mut names: Vec<String> = features.iter().map(|name| format!("market.{name}")).collect();
    for slot in slot_names(&config.slate) {
        let own = config.slate.features.iter().map(|feature| feature.name());
        let all = own.chain(contract_features.iter().map(String::as_str));
        names.extend(all.map(|name| format!("slate.{slot}.{name}")));
    }
    for i in 0..config.lines {
        names.extend(POSITION.iter().map(|name| format!("position[{i}].{name}")));
    }
    names.extend(ACCOUNT.iter().map(|name| format!("account.{name}")));
    names
}

/// The name of every slot, such as `30d_call_0.25`.
pub(crate) fn slot_names(slate: &SlateConfig) -> Vec<String> {
    let mut names = Vec::new();
    for days in &slate.maturities {
        for delta in &slate.deltas {
            for right in ["call", "put"] {
                names.push(format!("{days}d_{right}_{delta}"));
            }
        }
    }
    names
}
