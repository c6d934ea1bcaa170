//! Accounts and positions for display.

use super::market::Market;
use super::state::Hedge;
use super::state::{Account, Counters, Line};
use crate::options::reason::Reason;
use crate::options::tables::Entry;
use datasets::{Date, SnapshotTime};
use serde::{Deserialize, Serialize};

/// An account at a snapshot. Money is in the chain's currency; sums run from the episode's start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The snapshot's date.
    pub date: Date,
    /// The snapshot's instant, where there are several a day: microseconds since 1970 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instant: Option<i64>,
    /// The snapshot's index among all.
    pub snapshot: usize,
    /// Steps taken in the episode.
    pub step: usize,
    /// The price of the underlying.
    pub underlying: f64,
    /// Cash.
    pub cash: f64,
    /// Net asset value: cash, underlying and lines at their marks.
    pub nav: f64,
    /// Value if all were closed at the quotes, longs at bid and shorts at ask, without commission; lines
    /// without a quote at their model mark.
    pub liquidation_value: f64,
    /// The cost of closing all at the quotes: net asset value less liquidation value, and the commission.
    #[serde(default)]
    pub closing_cost: f64,
    /// Sum of the costs of trades against mid.
    pub spread_cost: f64,
    /// Sum of commissions.
    pub commission: f64,
    /// Sum of interest received (paid, if negative).
    pub interest: f64,
    /// Sum of prices paid and received, options and underlying, and of the notional of futures.
    pub traded_value: f64,
    /// Sum of contracts traded.
    pub contracts_traded: f64,
    /// dV/dS of the portfolio, in units of the underlying.
    pub delta: f64,
    /// Gamma, d2V/dS2.
    pub gamma: f64,
    /// Vega, per 1.00 of volatility.
    pub vega: f64,
    /// Theta, per year.
    pub theta: f64,
    /// Margin requirement.
    pub margin: f64,
    /// Units of the underlying held.
    pub units: f64,
    /// Futures held, in units of the underlying.
    #[serde(default)]
    pub futures: f64,
    /// Sum of the settlements of futures.
    #[serde(default)]
    pub futures_settled: f64,
    /// Sum of the cost of borrowing the underlying.
    #[serde(default)]
    pub borrow_cost: f64,
    /// The part of the spread cost and the commission that hedges paid.
    #[serde(default)]
    pub hedge_cost: f64,
    /// The part of the traded value that hedges have.
    #[serde(default)]
    pub hedge_traded: f64,
    /// Position lines in use.
    pub lines: usize,
    /// The number of lines that are marked by the model because they have no quote.
    pub model_marks: usize,
    /// The number of masked actions that were chosen (each counted as holding), by [`Reason::ALL`].
    pub refused: [u32; Reason::COUNT],
    /// The number of masked actions, counted at each snapshot, by [`Reason::ALL`].
    pub masked: [u32; Reason::COUNT],
    /// Liquidations forced by margin.
    pub liquidations: u32,
    /// Contracts assigned before their expiry.
    #[serde(default)]
    pub assigned: u32,
}

/// A position line, for display and trajectories.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// The contract's number in the environment's tables.
    pub contract: u32,
    /// The contract's expiry.
    pub expiry: Date,
    /// The contract's strike.
    pub strike: f64,
    /// Call or put.
    pub call: bool,
    /// The number of shares of the underlying that a unit delivers for the strike: 1, unless the contract was
    /// adjusted.
    pub deliverable: f64,
    /// Contracts, negative if short.
    pub quantity: i32,
    /// The snapshot at which the line was opened.
    pub opened: SnapshotTime,
    /// Value of one unit.
    pub mark: f64,
    /// True if the mark is a model's because there is no quote.
    pub model_mark: bool,
}

impl Ledger {
    /// The snapshot's time.
    pub fn time(&self) -> SnapshotTime {
        SnapshotTime {
            date: self.date,
            instant: self.instant,
        }
    }

    /// The statement of an account.
    pub(super) fn new(
        market: &Market,
        account: &Account,
        lines: &[Line],
        counters: &Counters,
        hedge: &Hedge,
    ) -> Self {
        let t = account.t as usize;
        let now = market.tables.at(t);
        let time = market.common.times[t];
        Self {
            date: time.date,
            instant: time.instant,
            snapshot: t,
            step: (account.t - account.first) as usize,
            underlying: now.underlying,
            cash: account.cash,
            nav: account.nav,
            liquidation_value: account.liquidation,
            closing_cost: account.nav - account.liquidation
                + market.config.fills.commission
                    * lines.iter().map(|line| f64::from(line.quantity).abs()).sum::<f64>(),
            spread_cost: account.spread_cost,
            commission: account.commission,
            interest: account.interest,
            traded_value: account.traded,
            contracts_traded: account.contracts_traded,
            delta: account.delta,
            gamma: account.gamma,
            vega: account.vega,
            theta: account.theta,
            margin: account.margin,
            units: account.units,
            futures: hedge.futures,
            futures_settled: hedge.settled,
            borrow_cost: hedge.borrow,
            hedge_cost: hedge.spread_cost + hedge.commission,
            hedge_traded: hedge.traded,
            lines: lines.len(),
            model_marks: lines
                .iter()
                .filter(|line| now.entry(line.contract).source == Entry::MODEL)
                .count(),
            refused: counters.refused,
            masked: counters.masked,
            liquidations: account.liquidations,
            assigned: account.assigned,
        }
    }
}

impl Position {
    /// A line at snapshot `t`.
    pub(super) fn new(market: &Market, line: &Line, t: usize) -> Self {
        let contract = &market.tables.contracts[line.contract as usize];
        let entry = market.tables.at(t).entry(line.contract);
        Self {
            contract: line.contract,
            expiry: Date(contract.expiry),
            strike: contract.strike,
            call: contract.call,
            deliverable: market.tables.shares(contract.deliverable),
            quantity: line.quantity,
            opened: market.common.times[line.opened as usize],
            mark: entry.mark,
            model_mark: entry.source == Entry::MODEL,
        }
    }
}
