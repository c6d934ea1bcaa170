//! The market data that tables are built from.

use super::settlements::Settlements;
use crate::feature_columns::FeatureColumn;
use crate::hedge::FutureBar;
use crate::options::config::{Fills, QuoteKind};
use datasets::corporate_action::CorporateAction;
use datasets::{Date, SnapshotTime};
use stages_core::StageError;
use std::collections::BTreeSet;

/// A contract's row at a snapshot; NaN where there is no value.
#[derive(Clone, Copy, Debug)]
pub struct Quote {
    /// The expiry, in days since 1970-01-01.
    pub expiry: i32,
    /// The index of the class in [`Day::roots`].
    pub root: u16,
    /// True for a call, false for a put.
    pub call: bool,
    /// The strike, in currency.
    pub strike: f64,
    /// The best bid.
    pub bid: f64,
    /// The best ask.
    pub ask: f64,
    /// The last price.
    pub last: f64,
    /// The implied volatility, annual and decimal.
    pub implied_volatility: f64,
    /// Delta, dV/dS.
    pub delta: f64,
    /// Gamma, d2V/dS2.
    pub gamma: f64,
    /// Vega, per 1.00 of volatility.
    pub vega: f64,
    /// Theta, per year.
    pub theta: f64,
    /// The forward price of the underlying at expiry.
    pub forward: f64,
    /// The present value of 1 at expiry.
    pub discount: f64,
    /// The number of contracts traded on the day so far.
    pub volume: f64,
    /// The number of open contracts.
    pub open_interest: f64,
    /// The number of contracts that the bid is for.
    pub bid_size: f64,
    /// The number of contracts that the ask is for.
    pub ask_size: f64,
    /// False where the quote gives a mark but cannot be traded.
    pub tradable: bool,
}

/// The prices of a contract; NaN where it does not trade.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prices {
    /// The price of a sale, slippage included.
    pub bid: f64,
    /// The price of a purchase, slippage included.
    pub ask: f64,
    /// The mark.
    pub mid: f64,
}

impl Prices {
    const NONE: Self = Self {
        bid: f64::NAN,
        ask: f64::NAN,
        mid: f64::NAN,
    };

    pub(crate) fn two_sided(&self) -> bool {
        self.bid > 0.0 && self.ask > 0.0
    }
}

impl Quote {
    /// Bid, ask and mid by the rules of `fills`; the mid alone where the quote cannot be traded.
    pub(crate) fn prices(&self, fills: &Fills) -> Prices {
        let (mid, half) = match fills.quotes {
            QuoteKind::BidAsk => {
                let bid = if self.bid > 0.0 { self.bid } else { 0.0 };
                // Written so that a missing ask, and a crossed or empty quote, are none.
                if !(self.ask > 0.0 && self.ask >= bid && self.ask.is_finite()) {
                    return Prices::NONE;
                }
                let mid = 0.5 * (bid + self.ask);
                (mid, 0.5 * (self.ask - bid) + fills.slippage * mid)
            }
            QuoteKind::Last => {
                if !(self.last > 0.0 && self.last.is_finite()) {
                    return Prices::NONE;
                }
                (self.last, (fills.slippage * self.last).max(fills.min_half_spread))
            }
        };
        if !self.tradable {
            return Prices { mid, ..Prices::NONE };
        }
        let bid = mid - half;
        Prices {
            bid: if bid > 0.0 { bid } else { f64::NAN },
            ask: mid + half,
            mid,
        }
    }
}

/// A snapshot of the chain.
#[derive(Clone, Debug)]
pub struct Day {
    /// The date.
    pub date: Date,
    /// The instant, where the chain has several snapshots a day: microseconds since 1970 UTC.
    pub instant: Option<i64>,
    /// The price of the underlying; NaN where it is not known, and then the snapshot is left out.
    pub underlying: f64,
    /// The option classes.
    pub roots: Vec<String>,
    /// The contracts, each once.
    pub quotes: Vec<Quote>,
}

impl Day {
    /// The option class of a quote.
    pub(crate) fn root(&self, quote: &Quote) -> &str {
        self.roots.get(usize::from(quote.root)).map_or("", String::as_str)
    }

    /// The time of the snapshot.
    pub fn time(&self) -> SnapshotTime {
        SnapshotTime {
            date: self.date,
            instant: self.instant,
        }
    }
}

/// The features of contracts that are read part by part, in addition to a chain.
pub struct ContractFeatures<'a> {
    /// The names of the C features.
    pub names: Vec<String>,
    /// For each part, everything on which the features' values depend.
    pub keys: Vec<Vec<u8>>,
    /// Reads the features of a part as tables; the features of all tables, one after another, are `names`.
    pub read: Box<dyn Fn(usize) -> Result<Vec<ContractColumns>, StageError> + Sync + 'a>,
}

/// Features of contracts in columns, a row for each contract at a snapshot.
#[derive(Clone, Debug, Default)]
pub struct ContractColumns {
    /// The snapshot of each row.
    pub times: Vec<SnapshotTime>,
    /// The expiry of each row, in days since 1970-01-01.
    pub expiries: Vec<i32>,
    /// The option classes.
    pub roots: Vec<String>,
    /// The index of each row's class.
    pub root: Vec<u32>,
    /// The strike of each row, in currency.
    pub strikes: Vec<f64>,
    /// True where the row's contract is a call.
    pub calls: Vec<bool>,
    /// The values of the rows for each feature; NaN where there is none.
    pub values: Vec<Vec<f64>>,
}

/// The source of the data. The chain is read part by part, so that it need not fit into memory.
pub struct MarketSource<'a> {
    /// The underlying.
    pub symbol: String,
    /// The units of the underlying in a contract.
    pub multiplier: f64,
    /// The option classes of the chain that are left out of the quotes.
    pub left_out: BTreeSet<String>,
    /// The market features.
    pub features: Vec<FeatureColumn>,
    /// Features of contracts, which the slots of the slate show.
    pub contract_features: Option<ContractFeatures<'a>>,
    /// The features that are not observed.
    pub hidden: Vec<FeatureColumn>,
    /// The shortest rate by date, ascending: continuously compounded, annual, decimal.
    pub rates: Vec<(Date, f64)>,
    /// The corporate actions by which held contracts are adjusted.
    pub actions: Vec<CorporateAction>,
    /// The symbols that the underlying had before, each with the day on which it became the next.
    pub changes: Vec<(String, Date)>,
    /// Daily bars of the contracts of a hedge future; empty where the future is at its fair price.
    pub future: Vec<FutureBar>,
    /// The settlement of contracts.
    pub settlements: Settlements,
    /// The names of the chain's parts, in order.
    pub parts: Vec<String>,
    /// Reads a part: its snapshots, ascending, those of one part after those of the part before.
    pub read: Box<dyn Fn(usize) -> Result<Vec<Day>, StageError> + Sync + 'a>,
}
