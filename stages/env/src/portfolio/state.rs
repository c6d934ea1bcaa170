//! The state of a batch: plain numbers in arrays, one for each part of an account.

use super::simulator::{Clock as _, Simulator};
use crate::ranges::{Rows, View};
use crate::reward::Moments;

/// One environment.
pub struct EnvState<'a, S: Simulator> {
    pub account: &'a mut S::Account,
    /// `[N]`.
    pub positions: &'a mut [S::Position],
    pub counters: &'a mut S::Counters,
    pub hedge: &'a mut S::Hedge,
    pub(crate) moments: &'a mut Moments,
    /// `[N]`: what a step is to do with each position; no state beyond it.
    pub orders: &'a mut [S::Order],
    /// `[N]`: look-ups for each position, found anew when it changes.
    pub terms: &'a mut [S::Terms],
    pub cached: &'a mut S::Cached,
}

impl<S: Simulator> EnvState<'_, S> {
    /// The account, to be read.
    #[inline]
    pub fn view(&self) -> EnvView<'_, S> {
        EnvView {
            account: self.account,
            positions: self.positions,
            counters: self.counters,
            hedge: self.hedge,
        }
    }
}

/// One environment, to be read: what is saved of it.
pub struct EnvView<'a, S: Simulator> {
    pub account: &'a S::Account,
    /// `[N]`.
    pub positions: &'a [S::Position],
    pub counters: &'a S::Counters,
    pub hedge: &'a S::Hedge,
}

impl<S: Simulator> Clone for EnvView<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Simulator> Copy for EnvView<'_, S> {}

/// All environments of a batch, B with N positions each.
pub struct States<S: Simulator> {
    /// `[B]`.
    pub(super) accounts: Vec<S::Account>,
    /// `[B, N]`.
    pub(super) positions: Vec<S::Position>,
    /// `[B]`.
    pub(super) counters: Vec<S::Counters>,
    /// `[B]`.
    pub(super) hedges: Vec<S::Hedge>,
    /// `[B]`.
    pub(super) moments: Vec<Moments>,
    /// `[B, N]`.
    orders: Vec<S::Order>,
    /// `[B, N]`.
    terms: Vec<S::Terms>,
    /// `[B]`.
    cached: Vec<S::Cached>,
    width: usize,
}

impl<S: Simulator> Clone for States<S> {
    fn clone(&self) -> Self {
        Self {
            accounts: self.accounts.clone(),
            positions: self.positions.clone(),
            counters: self.counters.clone(),
            hedges: self.hedges.clone(),
            moments: self.moments.clone(),
            orders: self.orders.clone(),
            terms: self.terms.clone(),
            cached: self.cached.clone(),
            width: self.width,
        }
    }
}

impl<S: Simulator> States<S> {
    pub(crate) fn new(num_envs: usize, width: usize) -> Self {
        let all = num_envs * width;
        Self {
            accounts: vec![S::Account::default(); num_envs],
            positions: vec![S::Position::default(); all],
            counters: vec![S::Counters::default(); num_envs],
            hedges: vec![S::Hedge::default(); num_envs],
            moments: vec![Moments::default(); num_envs],
            orders: vec![S::Order::default(); all],
            terms: vec![S::Terms::default(); all],
            cached: vec![S::Cached::default(); num_envs],
            width,
        }
    }

    /// Environment `i`, to be read.
    pub(crate) fn view(&self, i: usize) -> EnvView<'_, S> {
        EnvView {
            account: &self.accounts[i],
            positions: &self.positions[i * self.width..(i + 1) * self.width],
            counters: &self.counters[i],
            hedge: &self.hedges[i],
        }
    }

    /// The snapshot that environment `i` is at.
    pub(crate) fn now(&self, i: usize) -> usize {
        self.accounts[i].now()
    }

    pub(crate) fn rows(&mut self) -> StateRows<'_, S> {
        let width = self.width;
        StateRows {
            accounts: &mut self.accounts,
            positions: Rows::new(&mut self.positions, width),
            counters: &mut self.counters,
            hedges: &mut self.hedges,
            moments: &mut self.moments,
            orders: Rows::new(&mut self.orders, width),
            terms: Rows::new(&mut self.terms, width),
            cached: &mut self.cached,
        }
    }
}

/// A range of environments.
pub(crate) struct StateRows<'a, S: Simulator> {
    accounts: &'a mut [S::Account],
    positions: Rows<'a, S::Position>,
    counters: &'a mut [S::Counters],
    hedges: &'a mut [S::Hedge],
    moments: &'a mut [Moments],
    orders: Rows<'a, S::Order>,
    terms: Rows<'a, S::Terms>,
    cached: &'a mut [S::Cached],
}

impl<S: Simulator> StateRows<'_, S> {
    /// The range's environment `i`.
    #[inline]
    pub(crate) fn env(&mut self, i: usize) -> EnvState<'_, S> {
        EnvState {
            account: &mut self.accounts[i],
            positions: self.positions.row(i),
            counters: &mut self.counters[i],
            hedge: &mut self.hedges[i],
            moments: &mut self.moments[i],
            orders: self.orders.row(i),
            terms: self.terms.row(i),
            cached: &mut self.cached[i],
        }
    }
}

impl<S: Simulator> View for StateRows<'_, S> {
    fn split(self, n: usize) -> (Self, Self) {
        let (accounts, positions) = (self.accounts.split_at_mut(n), self.positions.split(n));
        let (counters, hedges) = (self.counters.split_at_mut(n), self.hedges.split_at_mut(n));
        let (moments, orders) = (self.moments.split_at_mut(n), self.orders.split(n));
        let (terms, cached) = (self.terms.split(n), self.cached.split_at_mut(n));
        (
            Self {
                accounts: accounts.0,
                positions: positions.0,
                counters: counters.0,
                hedges: hedges.0,
                moments: moments.0,
                orders: orders.0,
                terms: terms.0,
                cached: cached.0,
            },
            Self {
                accounts: accounts.1,
                positions: positions.1,
                counters: counters.1,
                hedges: hedges.1,
                moments: moments.1,
                orders: orders.1,
                terms: terms.1,
                cached: cached.1,
            },
        )
    }
}
