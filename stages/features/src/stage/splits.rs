//! The splits of unadjusted bars, from the port `actions`.

use super::bars::BARS_IN;
use super::price::{ACTIONS_IN, Price};
use crate::numerics::Bars;
use datasets::Date;
use datasets::adjusted::left;
use datasets::corporate_action::{CorporateAction, Kind};
use stages_core::dataset::{DataSet, PartitionKey};
use stages_core::{Context, Given, StageError, corporate_actions};

/// The splits and stock dividends, ascending by symbol.
pub(super) struct Splits(Vec<CorporateAction>);

impl Splits {
    /// The splits at the port; `None` if nothing is connected.
    ///
    /// # Errors
    /// When the splits cannot be read, one has no ratio above 0, or `price` is already adjusted for them.
    pub(super) fn open(given: &Given<'_>, price: Price) -> Result<Option<Self>, StageError> {
        if given.optional(ACTIONS_IN.name).is_none() {
            return Ok(None);
        }
        StageError::new("adjusted closes are adjusted for splits already")
            .hint("leave out `actions`, or take `price: close`")
            .when(price == Price::AdjustedClose)?;
        // Of prices that have the splits already, none is left to apply.
        let mut splits = corporate_actions::open(given, ACTIONS_IN.name)?;
        if let Some(stated) = corporate_actions::stated(&DataSet::open(given.input(BARS_IN.name)?)?) {
            splits = left(splits, stated.value);
        }
        splits.retain(|action| matches!(action.kind, Kind::Split | Kind::StockDividend));
        match splits
            .iter()
            .find(|split| !(split.ratio > 0.0 && split.ratio.is_finite()))
        {
            Some(split) => Err(StageError::new(format!(
                "the split of {} on {} has no ratio",
                split.symbol, split.date
            ))),
            None => Ok(Some(Self::new(splits))),
        }
    }

    /// The splits at the port as [`Splits::open`] returns them, held against the bars.
    ///
    /// # Errors
    /// Those of [`Splits::open`], and where bars and actions contradict each other.
    pub(super) fn held(context: &Context, bars: &DataSet, price: Price) -> Result<Option<Self>, StageError> {
        let splits = Self::open(&context.given(), price)?;
        if splits.is_some() {
            let actions = corporate_actions::open(&context.given(), ACTIONS_IN.name)?;
            corporate_actions::held(context, bars, actions)?;
        }
        Ok(splits)
    }

    fn new(mut splits: Vec<CorporateAction>) -> Self {
        splits.sort_by(|a, b| a.symbol.cmp(&b.symbol));
        Self(splits)
    }

    /// The splits of the symbols from `first` to `last`, those of each in their order.
    fn between(&self, first: &str, last: &str) -> &[CorporateAction] {
        let from = self.0.partition_point(|split| split.symbol.as_str() < first);
        let to = self.0.partition_point(|split| split.symbol.as_str() <= last);
        self.0.get(from..to).unwrap_or_default()
    }

    /// The splits that the values of a partition depend on, as text for keys.
    pub(super) fn text(&self, key: &PartitionKey) -> String {
        let of = self.between(key.symbols.first(), key.symbols.last()).iter();
        let of = of.filter(|split| split.date <= key.range.to);
        of.map(|split| format!("{} {} {}\n", split.symbol, split.date, split.ratio))
            .collect()
    }

    /// Multiplies prices after splits by the split ratios, and divides volumes by them.
    pub(super) fn apply(&self, symbol: &str, dates: &[Date], bars: &mut Bars) {
        let splits = self.between(symbol, symbol);
        let shares = |date: &Date| {
            splits
                .iter()
                .filter(|split| split.date <= *date)
                .map(|split| split.ratio)
                .product()
        };
        bars.shares = dates.iter().map(shares).collect();
        for (row, shares) in bars.shares.iter().enumerate() {
            for prices in [&mut bars.open, &mut bars.high, &mut bars.low, &mut bars.close] {
                prices[row] *= shares;
            }
            bars.volume[row] /= shares;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::DateRange;
    use stages_core::dataset::Symbols;

    #[test]
    fn a_partition_depends_on_the_splits_of_its_own_symbols_up_to_its_end() {
        let day = |day| Date::from_ymd(2020, 8, day).unwrap();
        let split = |symbol: &str, on| CorporateAction {
            symbol: symbol.to_owned(),
            date: day(on),
            kind: Kind::Split,
            ratio: 4.0,
            amount: f64::NAN,
            new_symbol: String::new(),
            origin: "test".to_owned(),
        };
        let splits = Splits::new(vec![
            split("B", 3),
            split("A", 5),
            split("C", 4),
            split("B", 9),
            split("BB", 2),
        ]);
        let text = |symbols| {
            let range = DateRange {
                from: day(1),
                to: day(6),
            };
            splits.text(&PartitionKey { symbols, range })
        };
        assert_eq!(text(Symbols::One("B".to_owned())), "B 2020-08-03 4\n");
        let (first, last) = ("B".to_owned(), "C".to_owned());
        let several = "B 2020-08-03 4\nBB 2020-08-02 4\nC 2020-08-04 4\n";
        assert_eq!(text(Symbols::Several { first, last }), several);
        let mut bars = Bars {
            close: vec![10.0, 2.5],
            volume: vec![1.0, 4.0],
            ..Bars::default()
        };
        for prices in [&mut bars.open, &mut bars.high, &mut bars.low] {
            *prices = vec![1.0; 2];
        }
        splits.apply("B", &[day(2), day(3)], &mut bars);
        assert_eq!((bars.close, bars.volume), (vec![10.0, 10.0], vec![1.0, 1.0]));
    }
}
