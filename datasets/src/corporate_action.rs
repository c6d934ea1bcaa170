//! Corporate actions: splits, dividends and changes of symbol, and the ratios by which shares are split.

use crate::{Date, words};
use std::collections::BTreeMap;
use std::fmt;

words! {
    /// The kind of a corporate action, in the order of a table.
    Kind {
        /// Shares are split, or merged where the ratio is below 1.
        Split = "split",
        /// An ordinary cash dividend. Contracts are not adjusted for it.
        CashDividend = "cash_dividend",
        /// A cash dividend outside the ordinary policy. Strikes fall by its amount.
        SpecialDividend = "special_dividend",
        /// A dividend in shares: the ratio is 1.05 for one of 5 %.
        StockDividend = "stock_dividend",
        /// The share trades under another symbol.
        SymbolChange = "symbol_change",
    }
}

impl Kind {
    /// Parses the name of a kind in any case; blanks and hyphens stand for `_`, and `dividend` for an
    /// ordinary cash dividend.
    pub fn parse(text: &str) -> Option<Self> {
        let name = text.trim().to_lowercase().replace([' ', '-'], "_");
        match name.as_str() {
            "dividend" => Some(Self::CashDividend),
            name => Self::ALL.iter().copied().find(|kind| kind.name() == name),
        }
    }
}

/// A corporate action.
#[derive(Clone, Debug, PartialEq)]
pub struct CorporateAction {
    /// The ticker before the action.
    pub symbol: String,
    /// The ex-date.
    pub date: Date,
    /// The kind of the action.
    pub kind: Kind,
    /// The number of shares after the action for one share before; NaN if the action has no ratio.
    pub ratio: f64,
    /// The cash paid per share, in currency; NaN if there is none.
    pub amount: f64,
    /// The ticker after the action; empty if it does not change.
    pub new_symbol: String,
    /// The origin of the entry.
    pub origin: String,
}

impl CorporateAction {
    /// Returns true if the action changes the number of shares by `ratio`, within one percent, on a day after
    /// `before` and up to `on`.
    pub fn explains(&self, symbol: &str, before: Date, on: Date, ratio: f64) -> bool {
        matches!(self.kind, Kind::Split | Kind::StockDividend)
            && self.symbol == symbol
            && before < self.date
            && self.date <= on
            && (self.ratio / ratio - 1.0).abs() < 0.01
    }
}

/// Corporate actions by symbol, those of each in their order.
pub struct BySymbol<'a>(BTreeMap<&'a str, Vec<&'a CorporateAction>>);

impl<'a> BySymbol<'a> {
    /// Sorts actions by symbol.
    pub fn new(actions: &'a [CorporateAction]) -> Self {
        let mut out: BTreeMap<&str, Vec<&CorporateAction>> = BTreeMap::new();
        for action in actions {
            out.entry(&action.symbol).or_default().push(action);
        }
        Self(out)
    }

    /// The actions of a symbol.
    pub fn of(&self, symbol: &str) -> impl Iterator<Item = &'a CorporateAction> {
        self.0.get(symbol).into_iter().flatten().copied()
    }
}

macro_rules! ratios {
    ($($new:literal : $old:literal)*) => { &[$(Self { new: $new, old: $old }),*] };
}

/// The ratio of a split: `new` shares for `old` shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitRatio {
    /// The number of shares after the split.
    pub new: u32,
    /// The number of shares before the split.
    pub old: u32,
}

impl SplitRatio {
    /// The number of shares after the split for one share before.
    pub fn value(self) -> f64 {
        f64::from(self.new) / f64::from(self.old)
    }

    /// The common ratio nearest to `ratio`, if one is within `tolerance` of it (0.05 is 5 %).
    pub fn near(ratio: f64, tolerance: f64) -> Option<Self> {
        let distance = |candidate: &Self| (candidate.value() / ratio - 1.0).abs();
        Self::COMMON
            .iter()
            .copied()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)))
            .filter(|candidate| distance(candidate) <= tolerance)
    }

    /// The ratios by which shares are commonly split and merged.
    pub const COMMON: &'static [Self] = ratios! {
        5:4 4:3 3:2 2:1 5:2 3:1 4:1 5:1 6:1 7:1 8:1 10:1 15:1 20:1 25:1 30:1 50:1 100:1
        2:3 1:2 1:3 1:4 1:5 1:6 1:7 1:8 1:10 1:12 1:15 1:20 1:25 1:30 1:40 1:50 1:100
    };
}

impl fmt::Display for SplitRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-for-{}", self.new, self.old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_found() {
        let near = |ratio| SplitRatio::near(ratio, 0.05).map(|ratio| ratio.to_string());
        assert_eq!(near(6.89).as_deref(), Some("7-for-1"));
        assert_eq!(near(1.49).as_deref(), Some("3-for-2"));
        assert_eq!(near(0.126).as_deref(), Some("1-for-8"));
        assert_eq!(near(1.0), None);
        assert_eq!(near(1.11), None);
        assert_eq!(near(f64::NAN), None);
    }

    #[test]
    fn kinds_have_names() {
        for &kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.name()), Some(kind));
        }
        assert_eq!(Kind::parse("Stock dividend"), Some(Kind::StockDividend));
        assert_eq!(Kind::parse("Dividend"), Some(Kind::CashDividend));
        assert_eq!(Kind::parse("merger"), None);
    }

    #[test]
    fn an_action_explains_its_own_ratio() {
        let split = CorporateAction {
            symbol: "AAPL".to_owned(),
            date: Date(16_230),
            kind: Kind::Split,
            ratio: 7.0,
            amount: f64::NAN,
            new_symbol: String::new(),
            origin: "file".to_owned(),
        };
        assert!(split.explains("AAPL", Date(16_227), Date(16_230), 7.0));
        assert!(!split.explains("AAPL", Date(16_227), Date(16_230), 2.0));
        assert!(!split.explains("AAPL", Date(16_230), Date(16_231), 7.0));
        assert!(!split.explains("MSFT", Date(16_227), Date(16_230), 7.0));
    }
}
