//! The market data from which tables are built.

use crate::feature_columns::FeatureColumn;
use crate::hedge::FutureBar;
use datasets::Date;
use datasets::corporate_action::CorporateAction;

/// A daily bar; NaN where there is no value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// The day.
    pub date: Date,
    /// The opening price.
    pub open: f64,
    /// The closing price; a bar without a positive one is ignored.
    pub close: f64,
    /// The close adjusted for splits and dividends.
    pub adjusted_close: f64,
    /// The number of shares traded.
    pub volume: f64,
}

/// The bars of a symbol.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolBars {
    /// The symbol, as corporate actions name it.
    pub symbol: String,
    /// The bars by date, ascending.
    pub bars: Vec<Bar>,
}

/// A feature by symbol and date.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolFeature {
    /// The name.
    pub name: String,
    /// The values for each symbol of the panel, by date, ascending; NaN where they are null.
    pub values: Vec<Vec<(Date, f64)>>,
}

/// The data of a world.
#[derive(Clone, Debug, Default)]
pub struct PanelSource {
    /// The name.
    pub name: String,
    /// The symbols, in the order of observations and actions.
    pub bars: Vec<SymbolBars>,
    /// Features by date alone.
    pub features: Vec<FeatureColumn>,
    /// Features by symbol and date.
    pub symbol_features: Vec<SymbolFeature>,
    /// Values by symbol and date that no observation shows: those of an oracle.
    pub hidden: Vec<SymbolFeature>,
    /// The shortest rate by date, ascending.
    pub rates: Vec<(Date, f64)>,
    /// Corporate actions.
    pub actions: Vec<CorporateAction>,
    /// The bars of the instrument that hedges; unused without `hedge`.
    pub hedge: Option<HedgeBars>,
}

/// The bars of an instrument that hedges.
#[derive(Clone, Debug, PartialEq)]
pub enum HedgeBars {
    /// Bars of a symbol.
    Symbol(SymbolBars),
    /// Bars of the contracts of a future.
    Future(Vec<FutureBar>),
}
