//! The splits of unadjusted bars, from the port `actions`.

use super::bars::BARS_IN;
use super::price::{ACTIONS_IN, Price};
use crate::numerics::Bars;
use datasets::Date;
use datasets::adjusted::left;
use datasets::corporate_action::{CorporateAction, Kind};
use stages_core::dataset::{DataSet, Partition};
use stages_core::{Context, Given, StageError, corporate_actions};

/// The splits and stock dividends of all symbols.
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
            None => Ok(Some(Self(splits))),
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

    /// The splits that the values of a partition depend on, as text for keys.
    pub(super) fn text(&self, partition: &Partition) -> String {
        let last = partition.key.range.to;
        let of = self.0.iter().filter(|split| split.date <= last);
        of.map(|split| format!("{} {} {}\n", split.symbol, split.date, split.ratio))
            .collect()
    }

    /// Multiplies prices after splits by the split ratios, and divides volumes by them.
    pub(super) fn apply(&self, symbol: &str, dates: &[Date], bars: &mut Bars) {
        let splits: Vec<&CorporateAction> = self.0.iter().filter(|split| split.symbol == symbol).collect();
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
