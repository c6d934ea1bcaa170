//! The layout of an observation, and the actions.
//!
//! With N the net asset value as a multiple of that at the start of the episode:
//!
//! | element | is |
//! | --- | --- |
//! | `COLUMN`, of several symbols `SYMBOL.COLUMN` | the value of the decision's row, normalised on training dates; the last known one where it is missing |
//! | `account.position`, of several symbols `SYMBOL.position` | the position held: with a price as a fraction of the net asset value, as prices have left it |
//! | `account.choice.COLUMN` | with `action_rewards`: 1 for the choice before, else 0 |
//! | `account.net_asset_value` | with a price: 10 (N - 1) |
//! | `account.drawdown` | with a price: 10 (1 - N / its peak in the episode) |
//!
//! Every element is clipped to [-`clip`, `clip`].

use super::config::{TableActionKind, TableConfig};
use super::quantities::Form;
use crate::actions::{ActionSpace, Bounds};

/// The names of the observation's elements, and the number of those that columns are shown in.
pub(crate) fn names(config: &TableConfig, symbols: &[String], observed: &[&str]) -> (Vec<String>, usize) {
    let mut names: Vec<String> = match config.is_panel() {
        false => observed.iter().map(|&name| name.to_owned()).collect(),
        true => {
            let each = |symbol: &String| {
                observed
                    .iter()
                    .map(move |name| format!("{symbol}.{name}"))
                    .collect::<Vec<_>>()
            };
            symbols.iter().flat_map(each).collect()
        }
    };
    let shown = names.len();
    match (config.form(), config.is_panel()) {
        (Form::PerAction, _) => {
            names.extend(
                config
                    .action_rewards
                    .iter()
                    .map(|name| format!("account.choice.{name}")),
            );
        }
        (_, true) => names.extend(symbols.iter().map(|symbol| format!("{symbol}.position"))),
        (_, false) => names.push("account.position".to_owned()),
    }
    if config.form() == Form::Price {
        names.extend(["account.net_asset_value", "account.drawdown"].map(str::to_owned));
    }
    (names, shown)
}

/// The actions.
pub(crate) fn action_space(config: &TableConfig, symbols: &[String]) -> ActionSpace {
    let actions = &config.actions;
    let continuous = |names: Vec<String>| ActionSpace::Continuous {
        bounds: Bounds {
            low: vec![actions.low as f32; names.len()],
            high: vec![actions.high as f32; names.len()],
        },
        names,
    };
    match (config.form(), actions.kind) {
        (Form::PerAction, _) => ActionSpace::discrete(config.action_rewards.iter().cloned()),
        (_, TableActionKind::Discrete) => {
            ActionSpace::discrete(actions.positions.iter().map(|position| format!("position {position}")))
        }
        (_, TableActionKind::Continuous) => continuous(vec!["position".to_owned()]),
        (_, TableActionKind::Weights) => continuous(symbols.to_vec()),
    }
}
