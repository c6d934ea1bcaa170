//! One decision at a snapshot, for trading outside the program: what is held, why choices are masked, and the
//! orders that an action implies.

pub use crate::journal::{Booking, Cause};
use datasets::Date;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use stages_core::names;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A market of an environment, with the first and the last snapshot of the split that it was opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActingWorld {
    /// The name: the symbol of the underlying, or `table`.
    pub name: String,
    /// The first snapshot at which a decision can be made, numbered over all worlds.
    pub first: usize,
    /// The last snapshot at which a decision can be made.
    pub last: usize,
}

/// The sort of thing that is held or ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holdable {
    /// An option contract.
    Option,
    /// Units of the underlying of options.
    Underlying,
    /// A future on the underlying, in units of the underlying.
    Future,
    /// Shares.
    Stock,
    /// A position of `env/table`: with a price a fraction of the net asset value.
    Position,
    /// The choice before, of `env/table` with `action_rewards`.
    Choice,
}

/// Call or put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionRight {
    /// A call.
    Call,
    /// A put.
    Put,
}

names! { OptionRight: Call "call", Put "put" }

impl OptionRight {
    /// The right of a call, or of a put.
    pub(crate) fn of(call: bool) -> Self {
        if call { Self::Call } else { Self::Put }
    }
}

/// A position of an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holding {
    /// The kind; without it, an option where there is an `expiry`, else what the environment trades.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instrument: Option<Holdable>,
    /// The symbol; of an option that of its underlying.
    pub symbol: String,
    /// The expiry of an option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Date>,
    /// The strike of an option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strike: Option<f64>,
    /// Call or put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<OptionRight>,
    /// Contracts, units, shares or a fraction; negative if short.
    pub quantity: f64,
    /// The snapshot that it was opened at, as printed; without it the present one. `close: largest_loss`
    /// counts from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
    /// The number of the strategy that it was opened with, of contracts that are closed together; of
    /// continuous actions the number of the slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<u32>,
    /// The value of one unit; for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<f64>,
}

impl Holding {
    /// A position of `quantity` of a symbol.
    pub(crate) fn of(instrument: Holdable, symbol: &str, quantity: f64, mark: Option<f64>) -> Self {
        Self {
            instrument: Some(instrument),
            symbol: symbol.to_owned(),
            expiry: None,
            strike: None,
            right: None,
            quantity,
            opened: None,
            strategy: None,
            mark,
        }
    }

    /// The name: `SPX 2024-01-19 4800 call`, or the symbol.
    pub fn describe(&self) -> String {
        describe(&self.symbol, self.expiry, self.strike, self.right)
    }

    /// The error for a position that the environment cannot hold.
    pub(crate) fn refused(&self, why: &str) -> StageError {
        StageError::new(format!("the position in {} cannot be held: {why}", self.describe()))
    }

    /// The error for a position in something that the environment does not trade.
    pub(crate) fn unknown(&self, known: &[String]) -> StageError {
        let some: Vec<&str> = known.iter().take(30).map(String::as_str).collect();
        self.refused("the environment does not trade it")
            .hint(format!("it trades {}", some.join(", ")))
    }
}

pub(crate) fn describe(
    symbol: &str,
    expiry: Option<Date>,
    strike: Option<f64>,
    right: Option<OptionRight>,
) -> String {
    let mut text = symbol.to_owned();
    text.extend(expiry.map(|expiry| format!(" {expiry}")));
    text.extend(strike.map(|strike| format!(" {strike}")));
    text.extend(right.map(|right| format!(" {}", right.name())));
    text
}

/// The holdings of an account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holdings {
    /// Cash, in the currency of the prices; `env/table` has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cash: Option<f64>,
    /// The net asset value. Of `env/table` as a multiple of that at the start; elsewhere it follows from cash
    /// and positions, and is for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nav: Option<f64>,
    /// The highest net asset value so far, by which the drawdown is observed; without it the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<f64>,
    /// The positions.
    #[serde(default)]
    pub positions: Vec<Holding>,
}

impl Holdings {
    /// The cash, by default the capital of the environment.
    ///
    /// # Errors
    /// When there is a net asset value in its place, of which no cash follows.
    pub(crate) fn cash_or(&self, capital: f64) -> Result<f64, StageError> {
        StageError::new("the account has a net asset value and no cash")
            .hint("give `cash`: the net asset value follows from it and from the positions")
            .when(self.nav.is_some() && self.cash.is_none())?;
        Ok(self.cash.unwrap_or(capital))
    }
}

/// A position at its mark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarkedPosition {
    /// The holding, with the value of a unit as its `mark`.
    #[serde(flatten)]
    pub of: Holding,
    /// Units of the underlying in one of them.
    pub multiplier: f64,
    /// `quantity x multiplier x mark`; 0 of a future, whose gains are settled in cash.
    pub value: f64,
    /// The Greeks of the whole position, where there are any: `delta` in units of the underlying, `gamma`,
    /// `vega` per 1.00 of volatility, and `theta` a year.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub greeks: BTreeMap<String, f64>,
}

/// An account at its marks: `nav` is `cash` and the values of the positions. Of `env/table` all is in
/// multiples of the value at the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marked {
    /// Cash.
    pub cash: f64,
    /// The net asset value.
    pub nav: f64,
    /// The absolute value of all positions.
    pub gross: f64,
    /// The cost of closing everything.
    pub closing_cost: f64,
    /// The margin requirement.
    pub margin: f64,
    /// The price of the underlying, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underlying: Option<f64>,
    /// The positions.
    pub positions: Vec<MarkedPosition>,
    /// The sum so far of the value traded, and of the costs of trades.
    #[serde(skip)]
    pub traded: f64,
    /// See `traded`.
    #[serde(skip)]
    pub costs: f64,
}

/// The side of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// A purchase.
    Buy,
    /// A sale.
    Sell,
    /// The exercise of a long option.
    Exercise,
}

names! { Side: Buy "buy", Sell "sell", Exercise "exercise" }

impl Side {
    /// The side of a signed quantity.
    pub(crate) fn of(quantity: f64) -> Self {
        if quantity < 0.0 { Self::Sell } else { Self::Buy }
    }
}

/// An order that an action means, at the prices of the decision's snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActingOrder {
    /// The instrument that is traded.
    pub instrument: Holdable,
    /// The symbol; of an option that of its underlying.
    pub symbol: String,
    /// The expiry of an option.
    pub expiry: Option<Date>,
    /// The strike of an option.
    pub strike: Option<f64>,
    /// Call or put.
    pub right: Option<OptionRight>,
    /// Buy, sell or exercise.
    pub side: Side,
    /// Contracts, units, shares or a fraction of the net asset value; above 0.
    pub quantity: f64,
    /// Units of the underlying in one of them.
    pub multiplier: f64,
    /// The quotes, where there are any.
    pub bid: Option<f64>,
    /// See `bid`.
    pub ask: Option<f64>,
    /// The mark: the middle of the quotes, or the close.
    pub mid: Option<f64>,
    /// The price that the environment's rules of fills pay or receive: a limit for the order. Without impact,
    /// which grows with its size.
    pub limit: Option<f64>,
    /// The expected cost of the order: spread against `mid`, and commission.
    pub cost: f64,
    /// The part of the action that it comes from.
    pub why: String,
}

impl ActingOrder {
    /// The order for a signed change of the holding of a symbol, without quotes: `rate` is the share of the
    /// price that a trade costs.
    pub(crate) fn of(
        instrument: Holdable,
        symbol: &str,
        change: f64,
        (mid, rate): (f64, f64),
        cost: f64,
        why: String,
    ) -> Self {
        Self {
            instrument,
            symbol: symbol.to_owned(),
            expiry: None,
            strike: None,
            right: None,
            side: Side::of(change),
            quantity: change.abs(),
            multiplier: 1.0,
            bid: None,
            ask: None,
            mid: finite(mid),
            limit: finite(mid * (1.0 + rate.copysign(change))),
            cost,
            why,
        }
    }

    /// The order that closes a position, at its mark, without a limit.
    pub fn closing(position: &MarkedPosition) -> Self {
        let of = &position.of;
        Self {
            instrument: of.instrument.unwrap_or(Holdable::Stock),
            symbol: of.symbol.clone(),
            expiry: of.expiry,
            strike: of.strike,
            right: of.right,
            side: Side::of(-of.quantity),
            quantity: of.quantity.abs(),
            multiplier: position.multiplier,
            bid: None,
            ask: None,
            mid: of.mark,
            limit: None,
            cost: 0.0,
            why: "the book is closed".to_owned(),
        }
    }

    /// The name of what is traded: `SPX 2024-01-19 4800 call`, or the symbol.
    pub fn describe(&self) -> String {
        describe(&self.symbol, self.expiry, self.strike, self.right)
    }
}

/// The orders of an action, with their totals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActingOrders {
    /// The orders, one for each instrument.
    pub orders: Vec<ActingOrder>,
    /// The reasons why parts of the action are not carried out.
    pub refused: Vec<Cow<'static, str>>,
    /// The expected change of cash.
    pub cash: f64,
    /// The expected cost: spread, commission and impact.
    pub cost: f64,
}

/// The number, if it is finite.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
