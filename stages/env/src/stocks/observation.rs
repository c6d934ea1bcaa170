//! The layout of an observation.
//!
//! Under the rules of a market: features by date, features of each symbol, then for each symbol whether it
//! trades, the position in it, and the account, in fixed units. With N the net asset value:
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
//! | `hedge.trades`, `hedge.weight` | where the portfolio is hedged: 1 if the instrument has a bar on the date, and the value of the hedge / N |
//! | `account.exposure` | where it is hedged: its exposure to the instrument, the hedge included, by value / N |
//!
//! Every element is clipped to [-`clip`, `clip`]. Of several worlds, symbol i is named `stock[i]`.
//!
//! Under FinRL's rules it is FinRL's state, raw: cash, the close of each symbol, the shares held of each, and
//! each indicator of each symbol.

use super::config::{Rules, StocksConfig};

/// The elements of the account.
pub(crate) const ACCOUNT: [&str; 4] = ["cash", "net_asset_value", "gross", "drawdown"];

/// The elements of a hedge.
pub(crate) const HEDGE: [&str; 3] = ["hedge.trades", "hedge.weight", "account.exposure"];

/// The number of elements after the features of N symbols, under the rules of a market.
pub(crate) fn own_width(symbols: usize, hedged: bool) -> usize {
    2 * symbols + ACCOUNT.len() + if hedged { HEDGE.len() } else { 0 }
}

/// The name of every element.
pub(crate) fn names(
    config: &StocksConfig,
    symbols: &[String],
    features: &[String],
    symbol_features: &[String],
) -> Vec<String> {
    let each = |what: &str| {
        symbols
            .iter()
            .map(move |symbol| format!("{symbol}.{what}"))
            .collect::<Vec<_>>()
    };
    match config.rules {
        Rules::Market => {
            let mut names: Vec<String> = features.iter().map(|name| format!("market.{name}")).collect();
            for symbol in symbols {
                names.extend(symbol_features.iter().map(|name| format!("{symbol}.{name}")));
            }
            names.extend(each("trades"));
            names.extend(each("weight"));
            names.extend(ACCOUNT.iter().map(|name| format!("account.{name}")));
            if !config.hedge.is_none() {
                names.extend(HEDGE.map(str::to_owned));
            }
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
