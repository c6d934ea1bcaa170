//! The entries of a ledger.

use cache::ArtifactDigest;
use chrono::{DateTime, Utc};
use datasets::Date;
use runner_engine::stamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// An entry of a ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// The opening: the first entry, and no other.
    Opened(Box<Opened>),
    /// A night: what happened since the snapshot before, the book at the night's snapshot, and what is
    /// decided on it.
    Night(Box<Night>),
    /// Capital added, or, below 0, withdrawn, after the night before it. It is no return.
    Transfer(Change),
    /// Another policy acts from the night before it on.
    Policy(PolicyMove),
    /// Data of past nights was restated. Nothing that was booked changes.
    Correction(Correction),
    /// The policy stops acting.
    Halted(Stop),
    /// A person lets the policy act again.
    Resumed(Stop),
    /// Fills as a broker reports them.
    Fills {
        /// The date of the last night before them.
        date: Date,
        /// The name of the file, without its directory.
        file: String,
        /// The layout of the file: `runner`, `ibkr_flex` or `alpaca_activities`.
        layout: String,
        /// The fills.
        fills: Vec<FillRow>,
    },
    /// The account is closed: nothing follows.
    Closed(Stop),
}

/// The opening of an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// The name of the account.
    pub name: String,
    /// The time at which it was opened, by the clock.
    #[serde(with = "stamp")]
    pub opened: DateTime<Utc>,
    /// The policy as it was named: `desk@champion`, `desk@3` or RUN/STAGE. An alias is followed.
    pub policy: String,
    /// The policy that the name denoted.
    pub version: StandIn,
    /// The capital at the start, in the currency of the prices.
    pub capital: f64,
    /// The world (the symbol of the underlying, or `table`), if the environment has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<String>,
    /// No night is of a date before this one.
    pub from: Date,
    /// The accounts that run beside it by rules: `cash`, `underlying`, `short_straddle`, `equal_weight`, or
    /// a policy, such as `desk@challenger`.
    pub beside: Vec<String>,
    /// The treatment of the book when the account halts.
    pub halt: String,
    /// The limits that halt the account: `drawdown`, `gross`, `max_age` in days.
    #[serde(default)]
    pub limits: BTreeMap<String, f64>,
    /// The promise of the backtests.
    pub promise: PromiseRecord,
}

/// A policy by its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandIn {
    /// The version: `desk@3`, or RUN/STAGE.
    pub name: String,
    /// The artifact.
    pub digest: ArtifactDigest,
}

/// The promise of the backtests, fixed at the opening. `runner-acting` knows its fields beyond these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromiseRecord {
    /// The number of steps of the backtests.
    pub steps: usize,
    /// The first and the last date of the backtests.
    pub dates: Option<(Date, Date)>,
    /// Steps a year.
    pub steps_a_year: f64,
    /// The mean and the standard deviation of the excess log return of a step.
    pub mean: f64,
    /// See `mean`.
    pub deviation: f64,
    /// The levels of the fan's quantiles, such as 0.05, 0.25, 0.5, 0.75, 0.95.
    pub levels: Vec<f64>,
    /// The fan: for each number of nights in `fan_nights`, the quantiles at `levels` of the value of 1
    /// invested at the start.
    pub fan: Vec<Vec<f64>>,
    /// See `fan`; ascending, from 1.
    pub fan_nights: Vec<usize>,
    /// The quantiles at `levels` of the largest drawdown (a fraction, 0 or more) at `fan_nights`.
    pub drawdown: Vec<Vec<f64>>,
    /// The mean value traded a step as a fraction of the account, and costs a step.
    pub turnover: f64,
    /// See `turnover`.
    pub costs: f64,
    /// The probability of an alarm, ever, while the promise is kept.
    pub false_alarm_rate: f64,
    /// The settings of the test.
    #[serde(default)]
    pub test: Value,
}

/// The name of what is traded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Instrument {
    /// `option`, `underlying`, `future`, `stock` or `position`.
    pub instrument: String,
    /// The symbol; of an option that of its underlying.
    pub symbol: String,
    /// The expiry of an option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Date>,
    /// The strike of an option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strike: Option<f64>,
    /// `call` or `put`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<String>,
}

/// The cause of a booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A trade of the policy's action.
    Fill,
    /// A trade of the hedge.
    Hedge,
    /// A trade that margin or a halt forces.
    Liquidation,
    /// An option that expires, settled in cash or by delivery.
    Expiry,
    /// A short option that its holder exercises.
    Assignment,
    /// A long option that is exercised.
    Exercise,
    /// A dividend received, or paid on a short position.
    Dividend,
    /// Interest on cash, or on debt.
    Interest,
    /// The fee for borrowed shares.
    Borrow,
    /// The settlement of a future.
    Settlement,
    /// A split, a stock dividend, or an adjustment of a contract.
    Adjustment,
    /// The settlement of a delisted symbol.
    Delisting,
    /// The cost of a change of positions of `env/table`.
    Cost,
    /// The return of positions of `env/table`, which have no price.
    Return,
    /// The difference between a fill as the model books it and as the broker reports it.
    RealFill,
}

/// A change of cash or of a position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Booking {
    /// Why.
    pub cause: Cause,
    /// The instrument; `None` of cash alone.
    #[serde(flatten)]
    pub of: Option<Instrument>,
    /// The change of the position: contracts, units, shares or a fraction of the net asset value.
    #[serde(default)]
    pub quantity: f64,
    /// Units of the underlying in one of them.
    #[serde(default = "one")]
    pub multiplier: f64,
    /// The price of a unit, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// The mark at that snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mid: Option<f64>,
    /// The change of cash, commission included.
    pub cash: f64,
    /// The commission.
    #[serde(default)]
    pub commission: f64,
    /// The cost against `mid`: spread, slippage and impact.
    #[serde(default)]
    pub spread: f64,
}

fn one() -> f64 {
    1.0
}

/// A position at its mark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// The instrument held.
    #[serde(flatten)]
    pub of: Instrument,
    /// Contracts, units, shares or a fraction of the net asset value; negative if short.
    pub quantity: f64,
    /// Units of the underlying in one of them.
    pub multiplier: f64,
    /// The value of a unit.
    pub mark: Option<f64>,
    /// `quantity x multiplier x mark`; of a future, whose gains are settled in cash, 0.
    pub value: f64,
    /// The snapshot at which it was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
    /// The Greeks of the whole position where there are any, by name: `delta` in units of the underlying,
    /// `gamma`, `vega` per 1.00 of volatility, `theta` a year.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub greeks: BTreeMap<String, f64>,
}

/// The holdings of an account. `nav = cash + the sum of the positions' values`, but for `env/table`, where
/// positions are fractions of `nav` and `cash` is what they leave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Book {
    /// Cash.
    pub cash: f64,
    /// The net asset value.
    pub nav: f64,
    /// The absolute value of all positions.
    pub gross: f64,
    /// The cost of closing everything.
    pub closing_cost: f64,
    /// The margin requirement.
    #[serde(default)]
    pub margin: f64,
    /// The price of the underlying, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underlying: Option<f64>,
    /// The positions.
    pub positions: Vec<Position>,
}

/// An order that is decided, with the prices of the decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The order's name: NIGHT-N, N counted from 1.
    pub id: String,
    /// The instrument traded.
    #[serde(flatten)]
    pub of: Instrument,
    /// `buy`, `sell` or `exercise`.
    pub side: String,
    /// Contracts, units, shares or a fraction of the net asset value; above 0.
    pub quantity: f64,
    /// Units of the underlying in one of them.
    pub multiplier: f64,
    /// The quotes of the decision's snapshot.
    #[serde(default)]
    pub bid: Option<f64>,
    /// See `bid`.
    #[serde(default)]
    pub ask: Option<f64>,
    /// The mark of the decision's snapshot.
    #[serde(default)]
    pub mid: Option<f64>,
    /// The price that the environment's rule pays.
    #[serde(default)]
    pub limit: Option<f64>,
    /// The expected cost.
    pub cost: f64,
    /// The part of the action that it comes from.
    pub why: String,
}

/// A night.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Night {
    /// The snapshot, as the environment prints it.
    pub time: String,
    /// Its date.
    pub date: Date,
    /// The number of the night, from 0: the first has no bookings.
    pub number: usize,
    /// The digest of the environment, that is of the data up to this night.
    pub data: ArtifactDigest,
    /// The policy that decided.
    pub policy: StandIn,
    /// The bookings since the snapshot before.
    pub bookings: Vec<Booking>,
    /// The book at this snapshot.
    pub book: Book,
    /// The log return of the account since the night before, transfers aside, and that of cash.
    pub log_return: f64,
    /// See `log_return`.
    pub risk_free: f64,
    /// Value traded and costs since the night before, as fractions of the net asset value before.
    pub turnover: f64,
    /// See `turnover`.
    pub costs: f64,
    /// The drawdown, a fraction: `1 - nav / peak`, with the highest net asset value so far, transfers aside.
    pub drawdown: f64,
    /// The decision in words.
    pub action: String,
    /// Tonight's orders, which are filled at the next snapshot.
    pub orders: Vec<Order>,
    /// Why parts of the action are not carried out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Where the account stands in its promise.
    pub standing: Standing,
    /// The accounts beside it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub beside: BTreeMap<String, Shadow>,
    /// Notes for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The state that the next night goes on from: written and read by `runner-acting` alone.
    pub state: Value,
}

/// Where an account stands in its promise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Value of 1 invested at the start, transfers aside.
    pub growth: f64,
    /// The evidence that the promise is broken: an e-value; an alarm is at `1 / false_alarm_rate`.
    pub evidence: f64,
    /// The largest drawdown so far.
    pub drawdown: f64,
    /// The share of promised paths that are below `growth` by now.
    #[serde(default)]
    pub quantile: Option<f64>,
    /// True from the night on which `evidence` reached its limit.
    pub broken: bool,
    /// The features whose distribution has drifted from the training's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drifted: Vec<String>,
}

/// An account beside: a rule, or another policy, on the same data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shadow {
    /// The net asset value, from the same capital.
    pub nav: f64,
    /// The log return since the night before.
    pub log_return: f64,
    /// Costs since the night before as a fraction of the net asset value before.
    pub costs: f64,
    /// The policy, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<StandIn>,
    /// The night from which it runs, its number; its capital begins anew when its policy changes.
    pub since: usize,
}

/// Capital added or withdrawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The date of the night before it.
    pub date: Date,
    /// The amount; withdrawn below 0.
    pub amount: f64,
    /// The reason that a person gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Another policy acts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyMove {
    /// The date of the night before it.
    pub date: Date,
    /// The policy that acted.
    pub from: StandIn,
    /// The policy that acts from now on.
    pub to: StandIn,
}

/// Restated data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    /// The date of the night before it.
    pub date: Date,
    /// The date whose data was restated.
    pub of: Date,
    /// The restated datum: `mark of SPX 2024-01-19 4800 call`, `underlying`.
    pub what: String,
    /// As booked.
    pub before: Option<f64>,
    /// As the data has it now; `None` if it has it no longer.
    pub after: Option<f64>,
    /// The difference that it makes to the net asset value of that date; for information.
    pub difference: f64,
    /// The digest of the environment that has the new data.
    pub data: ArtifactDigest,
}

/// A halt, a resumption or a closing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// The date of the night before it.
    pub date: Date,
    /// The cause: `promise`, `drawdown`, `exposure`, `max_age`, `ruin` or `person`.
    pub by: String,
    /// The reason, in words.
    pub why: String,
}

/// A fill as a broker reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FillRow {
    /// The order's name, [`Order::id`].
    pub order: String,
    /// The broker's name of the fill, by which a repetition is known.
    pub id: String,
    /// The date of the fill.
    pub date: Date,
    /// The time, as the file has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The instrument traded.
    #[serde(flatten)]
    pub of: Instrument,
    /// Contracts, units or shares; negative if sold.
    pub quantity: f64,
    /// The price of a unit.
    pub price: f64,
    /// The commission; above 0 if paid.
    pub commission: f64,
}
