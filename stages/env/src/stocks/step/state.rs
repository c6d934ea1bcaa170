//! The state of an environment: plain numbers, as they are saved, and room for the orders of a step.

use crate::ranges::{Rows, View};
use crate::reward::Moments;
use bytemuck::{Pod, Zeroable};

/// An account, and its position in the episode. Saved states hold these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Account {
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
pub(super) struct Hedge {
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

/// One environment.
pub(super) struct EnvState<'a> {
    pub account: &'a mut Account,
    /// Shares held `[N]`, negative if short.
    pub shares: &'a mut [f64],
    pub hedge: &'a mut Hedge,
    pub moments: &'a mut Moments,
    /// The signed shares that the step is to trade `[N]`; no state beyond it.
    pub orders: &'a mut [f64],
}

/// All environments of a batch, B with N symbols each.
#[derive(Clone)]
pub(super) struct States {
    /// `[B]`.
    pub accounts: Vec<Account>,
    /// `[B, N]`.
    pub shares: Vec<f64>,
    /// `[B]`.
    pub hedges: Vec<Hedge>,
    /// `[B]`.
    pub moments: Vec<Moments>,
    /// `[B, N]`.
    orders: Vec<f64>,
    width: usize,
}

impl States {
    pub(super) fn new(num_envs: usize, width: usize) -> Self {
        Self {
            accounts: vec![Account::default(); num_envs],
            shares: vec![0.0; num_envs * width],
            hedges: vec![Hedge::default(); num_envs],
            moments: vec![Moments::default(); num_envs],
            orders: vec![0.0; num_envs * width],
            width,
        }
    }

    /// The shares of environment `i`.
    pub(super) fn shares_of(&self, i: usize) -> &[f64] {
        &self.shares[i * self.width..(i + 1) * self.width]
    }

    pub(super) fn rows(&mut self) -> StateRows<'_> {
        let width = self.width;
        StateRows {
            accounts: &mut self.accounts,
            shares: Rows {
                values: &mut self.shares,
                width,
            },
            hedges: &mut self.hedges,
            moments: &mut self.moments,
            orders: Rows {
                values: &mut self.orders,
                width,
            },
        }
    }
}

/// A range of environments.
pub(super) struct StateRows<'a> {
    accounts: &'a mut [Account],
    shares: Rows<'a, f64>,
    hedges: &'a mut [Hedge],
    moments: &'a mut [Moments],
    orders: Rows<'a, f64>,
}

impl StateRows<'_> {
    /// The range's environment `i`.
    pub(super) fn env(&mut self, i: usize) -> EnvState<'_> {
        EnvState {
            account: &mut self.accounts[i],
            shares: self.shares.row(i),
            hedge: &mut self.hedges[i],
            moments: &mut self.moments[i],
            orders: self.orders.row(i),
        }
    }
}

impl View for StateRows<'_> {
    fn split(self, n: usize) -> (Self, Self) {
        let (accounts, shares) = (self.accounts.split_at_mut(n), self.shares.split(n));
        let hedges = self.hedges.split_at_mut(n);
        let (moments, orders) = (self.moments.split_at_mut(n), self.orders.split(n));
        (
            Self {
                accounts: accounts.0,
                shares: shares.0,
                hedges: hedges.0,
                moments: moments.0,
                orders: orders.0,
            },
            Self {
                accounts: accounts.1,
                shares: shares.1,
                hedges: hedges.1,
                moments: moments.1,
                orders: orders.1,
            },
        )
    }
}

/// The outcome of a step.
pub(super) struct Outcome {
    pub reward: f32,
    pub terminated: bool,
    pub truncated: bool,
}
