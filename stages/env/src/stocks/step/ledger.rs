//! Accounts for display and evaluation.

use super::hedge::portfolio_exposure;
use super::market::Market;
use super::state::{Account, Hedge};
use datasets::Date;
use serde::{Deserialize, Serialize};

/// An account on a date. Money is in the bars' currency; sums run from the episode's start.
///
/// `nav = capital + gains of prices + dividends + interest - debit_interest - borrow_cost - commission -
/// spread_cost - impact_cost - delisting_loss`, and of a hedged portfolio `+ hedge.gains + hedge.dividends -
/// hedge.borrow_cost - hedge.commission - hedge.spread_cost`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The date.
    pub date: Date,
    /// The date's index among the dates of all worlds.
    pub snapshot: usize,
    /// Steps taken in the episode.
    pub step: usize,
    /// Cash.
    pub cash: f64,
    /// Net asset value: cash and positions at their marks.
    pub nav: f64,
    /// The absolute value of all positions.
    pub gross: f64,
    /// The value of long positions less that of short ones.
    pub net: f64,
    /// The sum of the squares of the positions' values as fractions of the net asset value: the Herfindahl
    /// index.
    pub concentration: f64,
    /// Symbols held.
    pub positions: usize,
    /// Sum of commissions.
    pub commission: f64,
    /// Sum of costs in proportion to value: the spread.
    pub spread_cost: f64,
    /// Sum of market impact.
    pub impact_cost: f64,
    /// Sum of the fees for borrowed shares.
    pub borrow_cost: f64,
    /// Sum of interest received on cash.
    pub interest: f64,
    /// Sum of interest paid on debt.
    pub debit_interest: f64,
    /// Sum of dividends received, less those paid on short positions.
    pub dividends: f64,
    /// Sum of the losses by settlements of delisted symbols, against their last prices.
    pub delisting_loss: f64,
    /// Sum of the values of trades.
    pub traded_value: f64,
    /// Trades made.
    pub trades: u32,
    /// Orders of symbols that did not trade.
    pub refused: u32,
    /// Orders reduced by volume, cash or margin.
    pub reduced: u32,
    /// Liquidations forced by margin.
    pub liquidations: u32,
    /// Positions settled at a delisting.
    pub settlements: u32,
    /// The cost of closing all positions, and the hedge, at the date's closes.
    #[serde(default)]
    pub closing_cost: f64,
    /// The hedge, whose lines are none of the others; `None` where the portfolio is not hedged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hedge: Option<HedgeLedger>,
}

/// The hedge of an account. Sums run from the episode's start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HedgeLedger {
    /// Units of the instrument held, negative if short.
    pub units: f64,
    /// The value of those units.
    pub value: f64,
    /// The exposure of the portfolio to the instrument, without the hedge, by value.
    pub exposure: f64,
    /// Sum of the gains of the instrument's price, the settlements of futures among them.
    pub gains: f64,
    /// Sum of dividends received, less those paid.
    pub dividends: f64,
    /// Sum of the cost of borrowing the instrument.
    pub borrow_cost: f64,
    /// Sum of commissions.
    pub commission: f64,
    /// Sum of spreads.
    pub spread_cost: f64,
    /// Sum of the values of trades.
    pub traded_value: f64,
}

impl Ledger {
    /// The costs of trades: commission, spread and impact, those of the hedge included.
    pub fn costs(&self) -> f64 {
        let hedge = self.hedge.map_or(0.0, |hedge| hedge.commission + hedge.spread_cost);
        self.commission + self.spread_cost + self.impact_cost + hedge
    }

    /// The sum of spreads, those of the hedge included.
    pub fn all_spreads(&self) -> f64 {
        self.spread_cost + self.hedge.map_or(0.0, |hedge| hedge.spread_cost)
    }

    /// The sum of the values of trades, those of the hedge included.
    pub fn all_traded(&self) -> f64 {
        self.traded_value + self.hedge.map_or(0.0, |hedge| hedge.traded_value)
    }

    /// The statement of an account.
    pub(super) fn new(market: &Market, account: &Account, shares: &[f64], hedge: &Hedge) -> Self {
        let t = account.t as usize;
        let scale = 1.0 / account.nav.max(1e-3 * market.config.capital);
        let weights = shares
            .iter()
            .zip(market.tables.marks(t))
            .map(|(held, mark)| held * mark * scale);
        Self {
            date: market.common.times[t].date,
            snapshot: t,
            step: (account.t - account.first) as usize,
            cash: account.cash,
            nav: account.nav,
            gross: account.gross,
            net: account.net,
            concentration: weights.map(|weight| weight * weight).sum(),
            positions: shares.iter().filter(|held| **held != 0.0).count(),
            commission: account.commission,
            spread_cost: account.spread_cost,
            impact_cost: account.impact_cost,
            borrow_cost: account.borrow_cost,
            interest: account.interest,
            debit_interest: account.debit_interest,
            dividends: account.dividends,
            delisting_loss: account.delisting_loss,
            traded_value: account.traded,
            trades: account.trades,
            refused: account.refused,
            reduced: account.reduced,
            liquidations: account.liquidations,
            settlements: account.settlements,
            closing_cost: super::trade::closing_cost(market, account, shares, hedge),
            hedge: (!market.config.hedge.is_none()).then(|| HedgeLedger {
                units: hedge.units,
                value: hedge.units * market.tables.hedge(t).price,
                exposure: portfolio_exposure(market, shares, market.tables.marks(t), t),
                gains: hedge.gains,
                dividends: hedge.dividends,
                borrow_cost: hedge.borrow,
                commission: hedge.commission,
                spread_cost: hedge.spread_cost,
                traded_value: hedge.traded,
            }),
        }
    }
}
