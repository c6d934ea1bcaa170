//! The layout of an observation.
//!
//! Under the rules of a market: features by date, features of each symbol, then for each symbol whether it trades, the position in it, and the account, in fixed units.
//! With N the net asset value:
//!
//! | element | is |
//! | --- | --- |
//! | `market.*`, `SYMBOL.*` | features, normalised on training dates; 0 where a symbol has none |
//! | `SYMBOL.trades` | 1 where it has a bar on the date, else 0 |
//! | `SYMBOL.weight` | the value of the position / N, negative if short |
//! | `account.cash` | cash / N |
//! | `account.net_asset_value` | 10 (N / capital - 1) |
//! | `account.gross` | the absolute value of all positions / N |
//! | `account.drawdown` | 10 (1 - N / its peak in the episode) |
//!
//! Every element is clipped to [-`clip`, `clip`]. Of several worlds, symbol i is named `stock[i]`.
//!
//! Under FinRL's rules it is FinRL's state, raw: cash, the close of each symbol, the shares held of each, and each indicator of each symbol.

use super::config::Rules;

/// The elements of the account.
pub(crate) const ACCOUNT: [&str; 4] = ["cash", "net_asset_value", "gross", "drawdown"];

/// The number of elements after the features of N symbols, under the rules of a market.
pub(crate) fn own_width(symbols: usize) -> usize {
    2 * symbols + ACCOUNT.len()
}

/// The name of every element.
pub(crate) fn names(rules: Rules, symbols: &[String], features: &[String], symbol_features: &[String]) -> Vec<String> {
    let each = |what: &str| {
        symbols
            .iter()
            .map(move |symbol| format!("{symbol}.{what}"))
            .collect::<Vec<_>>()
    };
    match rules {
        Rules::Market => {
            let mut names: Vec<String> = features.iter().map(|name| format!("market.{name}")).collect();
            for symbol in symbols {
                names.extend(symbol_features.iter().map(|name| format!("{symbol}.{name}")));
            }
            names.extend(each("trades"));
            names.extend(each("weight"));
            names.extend(ACCOUNT.iter().map(|name| format!("account.{name}")));
            names
        }
        Rules::Finrl => {
            let mut names = vec!["account.cash".to_owned()];
            names.extend(each("close"));
            names.extend(each("shares"));
            for feature in symbol_features {
                names.extend(each(feature));
            }
            names
        }
    }
}
