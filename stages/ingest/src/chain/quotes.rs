//! Quotes for chains without them.

use super::columns::{ASK, BID, Chain, LAST};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

/// The origin of bid and ask.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quotes {
    /// From the files; null where they have none.
    #[default]
    AsGiven,
    /// Constructed around the last price. An assumption, not data, which the metadata of the artifact
    /// records.
    FromLast(FromLast),
}

/// Quotes around the last price: `last - h` and `last + h` with
/// `h = max(half_spread * last, min_half_spread)`, rounded outwards to the tick, the bid not below 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FromLast {
    /// Half the spread, as a fraction of the last price (0.01 is 1 %).
    pub half_spread: f64,
    /// The minimum of half the spread, in currency.
    pub min_half_spread: f64,
    /// The smallest step of prices, in currency; 0 for none.
    pub tick: f64,
}

impl Default for FromLast {
    fn default() -> Self {
        Self {
            half_spread: 0.01,
            min_half_spread: 0.0005,
            tick: 0.0001,
        }
    }
}

impl FromLast {
    /// Refuses invalid spreads.
    pub fn check(&self) -> Result<(), ConfigProblem> {
        let fields = [
            ("half_spread", self.half_spread, 1.0),
            ("min_half_spread", self.min_half_spread, f64::MAX),
            ("tick", self.tick, f64::MAX),
        ];
        for (name, value, most) in fields {
            ConfigProblem::new(
                format!("quotes.from_last.{name}"),
                format!("{value} is not between 0 and {most}"),
            )
            .when(!(0.0..=most).contains(&value))?;
        }
        ConfigProblem::new("quotes.from_last", "the spread is 0")
            .hint("give `half_spread` (a part of the price) or `min_half_spread` (in currency)")
            .when(self.half_spread == 0.0 && self.min_half_spread == 0.0)?;
        Ok(())
    }

    /// The bid and ask around a last price.
    pub fn around(&self, last: f64) -> (f64, f64) {
        let half = (self.half_spread * last).max(self.min_half_spread);
        let (bid, ask) = ((last - half).max(0.0), last + half);
        if self.tick <= 0.0 {
            return (bid, ask);
        }
        // A tick such as 0.0001 is 1/10000: dividing by the whole number rounds to the nearest float of the
        // decimal.
        let per_unit = 1.0 / self.tick;
        let whole = per_unit.round();
        let price = |ticks: f64| {
            if (per_unit - whole).abs() < 1e-6 * whole {
                ticks / whole
            } else {
                ticks * self.tick
            }
        };
        // A price that is on a tick apart from rounding errors stays there.
        const SLACK: f64 = 1e-6;
        (
            price((bid / self.tick + SLACK).floor()),
            price((ask / self.tick - SLACK).ceil()),
        )
    }

    /// Fills in bid and ask of every row with a tradable last price and no quote.
    pub fn fill(&self, chain: &mut Chain) {
        for i in 0..chain.len() {
            let last = chain.values[LAST][i];
            if chain.is_tradable(i)
                && !last.is_nan()
                && chain.values[BID][i].is_nan()
                && chain.values[ASK][i].is_nan()
            {
                (chain.values[BID][i], chain.values[ASK][i]) = self.around(last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_on_the_tick() {
        let quotes = FromLast::default();
        assert_eq!(quotes.around(0.1234), (0.1221, 0.1247));
        assert_eq!(quotes.around(0.1), (0.099, 0.101));
        assert_eq!(quotes.around(0.0001), (0.0, 0.0006));
        let exact = FromLast { tick: 0.0, ..quotes };
        assert_eq!(exact.around(1.0), (0.99, 1.01));
        assert!(
            FromLast {
                half_spread: 2.0,
                ..quotes
            }
            .check()
            .is_err()
        );
        assert!(
            FromLast {
                half_spread: 0.0,
                min_half_spread: 0.0,
                tick: 0.0
            }
            .check()
            .is_err()
        );
        assert!(serde_json::from_str::<Quotes>(r#"{"from_last":{"half_spred":0.1}}"#).is_err());
        assert_eq!(
            serde_json::from_str::<Quotes>(r#"{"from_last":{}}"#).unwrap(),
            Quotes::FromLast(quotes)
        );
    }
}
