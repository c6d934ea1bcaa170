//! The account of an environment and its hedge: plain numbers, as they are saved.

use crate::portfolio::{EnvState, Parts, clock};
use bytemuck::{Pod, Zeroable};

/// An account, and its position in the episode. Saved states hold these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Account {
    pub cash: f64,
    /// Net asset value, at marks.
    pub nav: f64,
    /// The highest net asset value of the episode.
    pub peak: f64,
    /// The absolute value of all positions, and their value.
    pub gross: f64,
    pub net: f64,
    /// Sums over the episode.
    pub commission: f64,
    pub spread_cost: f64,
    pub impact_cost: f64,
    pub borrow_cost: f64,
    pub interest: f64,
    pub debit_interest: f64,
    pub dividends: f64,
    pub delisting_loss: f64,
    pub traded: f64,
    /// FinRL's: the last reward, which its terminal step gives again, and the risk indicator.
    pub reward: f64,
    pub risk: f64,
    /// The number of the episode in this environment.
    pub episode: u64,
    /// The date of now, and the first and last ones of the episode.
    pub t: u32,
    pub first: u32,
    pub last: u32,
    /// Trades made.
    pub trades: u32,
    /// Orders of symbols that do not trade.
    pub refused: u32,
    /// Orders reduced by volume, cash or margin.
    pub reduced: u32,
    /// Liquidations forced by margin.
    pub liquidations: u32,
    /// Positions settled at a delisting.
    pub settlements: u32,
}

/// The hedge of an account. Saved states hold these bytes where there is hedging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Hedge {
    /// Units of the instrument held, negative if short.
    pub units: f64,
    /// Sums over the episode: gains of prices, settlements of futures among them, dividends, the cost of
    /// borrowing, spread, commission, and the value traded.
    pub gains: f64,
    pub dividends: f64,
    pub borrow: f64,
    pub spread_cost: f64,
    pub commission: f64,
    pub traded: f64,
}

clock!(Account);

/// The parts of an account: shares held `[N]`, negative if short; an order is the signed shares that a step
/// is to trade.
#[derive(Clone, Copy)]
pub struct StocksParts;

impl Parts for StocksParts {
    type Account = Account;
    type Position = f64;
    type Counters = ();
    type Hedge = Hedge;
    type Order = f64;
    type Terms = ();
    type Cached = ();
}

/// One environment.
pub(super) type Env<'a> = EnvState<'a, StocksParts>;
