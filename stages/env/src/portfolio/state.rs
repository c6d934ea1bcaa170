//! The state of a batch: plain numbers in arrays, one for each part of an account.

use crate::ranges::{Rows, View, split_fields};
use crate::reward::Moments;
use bytemuck::Pod;

/// The position of an account in its episode.
pub trait Clock {
    /// The number of the episode in this environment.
    fn episode(&mut self) -> &mut u64;
    /// The present snapshot, counted over all worlds.
    fn now(&self) -> usize;
    /// The steps taken in the episode.
    fn steps(&self) -> usize;
    /// Sets the present snapshot and the first one of the episode; the last one and the
    /// episode's number are those of another state.
    fn place(&mut self, now: usize, first: usize, last_of: &Self);
}

/// Implements [`Clock`] for an account with the fields `episode`, `t`, `first` and `last`.
macro_rules! clock {
    ($account:ty) => {
        impl $account {
            /// An account at the same position of its episode, otherwise new.
            pub(super) fn anew(&self) -> Self {
                let &Self {
                    episode,
                    t,
                    first,
                    last,
                    ..
                } = self;
                Self {
                    episode,
                    t,
                    first,
                    last,
                    ..Self::default()
                }
            }

            /// A new account of the same episode, at the first snapshot of a range.
            pub(super) fn begin(&self, range: $crate::split::SnapshotRange) -> Self {
                let (first, last) = (range.first as u32, range.last as u32);
                Self {
                    t: first,
                    first,
                    last,
                    ..self.anew()
                }
            }
        }

        impl $crate::portfolio::Clock for $account {
            #[inline]
            fn episode(&mut self) -> &mut u64 {
                &mut self.episode
            }
            #[inline]
            fn now(&self) -> usize {
                self.t as usize
            }
            #[inline]
            fn steps(&self) -> usize {
                (self.t - self.first) as usize
            }
            fn place(&mut self, now: usize, first: usize, last_of: &Self) {
                (self.t, self.first) = (now as u32, first as u32);
                (self.last, self.episode) = (last_of.last, last_of.episode);
            }
        }
    };
}
pub(crate) use clock;

/// A part of an account that a saved state holds byte by byte.
pub trait Saved: Pod + Default + Send + Sync {}
impl<T: Pod + Default + Send + Sync> Saved for T {}

/// A part of an account that follows from the others.
pub trait Derived: Copy + Default + Send + Sync {}
impl<T: Copy + Default + Send + Sync> Derived for T {}

/// The parts of an account.
pub trait Parts: Copy + 'static {
    /// The account.
    type Account: Saved + Clock;
    /// A position, of which an account has [`Common::width`](super::Common).
    type Position: Saved;
    /// The counts of events.
    type Counters: Saved;
    /// The hedge of an account.
    type Hedge: Saved;
    /// The wish of a step for a position.
    type Order: Derived;
    /// Look-ups that are kept for a position.
    type Terms: Derived;
    /// The validity of the look-ups kept for positions.
    type Cached: Derived;
}

/// One environment.
pub struct EnvState<'a, P: Parts> {
    pub account: &'a mut P::Account,
    /// The positions `[N]`.
    pub positions: &'a mut [P::Position],
    pub counters: &'a mut P::Counters,
    pub hedge: &'a mut P::Hedge,
    pub(crate) moments: &'a mut Moments,
    /// The orders `[N]`: what a step is to do with each position. They do not outlast the step.
    pub orders: &'a mut [P::Order],
    /// The look-ups for each position `[N]`, renewed when it changes.
    pub terms: &'a mut [P::Terms],
    pub cached: &'a mut P::Cached,
}

impl<P: Parts> EnvState<'_, P> {
    /// The account, to be read.
    #[inline]
    pub fn view(&self) -> EnvView<'_, P> {
        EnvView {
            account: self.account,
            positions: self.positions,
            counters: self.counters,
            hedge: self.hedge,
        }
    }
}

/// One environment, to be read: what is saved of it.
#[derive(Clone, Copy)]
pub struct EnvView<'a, P: Parts> {
    pub account: &'a P::Account,
    /// The positions `[N]`.
    pub positions: &'a [P::Position],
    pub counters: &'a P::Counters,
    pub hedge: &'a P::Hedge,
}

/// All environments of a batch, B with N positions each.
#[derive(Clone)]
pub(crate) struct States<P: Parts> {
    /// The accounts `[B]`.
    pub(super) accounts: Vec<P::Account>,
    /// The positions `[B, N]`.
    pub(super) positions: Vec<P::Position>,
    /// The counts `[B]`.
    pub(super) counters: Vec<P::Counters>,
    /// The hedges `[B]`.
    pub(super) hedges: Vec<P::Hedge>,
    /// The moments of rewards `[B]`.
    pub(super) moments: Vec<Moments>,
    /// The orders `[B, N]`.
    orders: Vec<P::Order>,
    /// The look-ups for positions `[B, N]`.
    terms: Vec<P::Terms>,
    /// The validity of the look-ups `[B]`.
    cached: Vec<P::Cached>,
    width: usize,
}

impl<P: Parts> States<P> {
    pub(crate) fn new(num_envs: usize, width: usize) -> Self {
        let all = num_envs * width;
        Self {
            accounts: vec![P::Account::default(); num_envs],
            positions: vec![P::Position::default(); all],
            counters: vec![P::Counters::default(); num_envs],
            hedges: vec![P::Hedge::default(); num_envs],
            moments: vec![Moments::default(); num_envs],
            orders: vec![P::Order::default(); all],
            terms: vec![P::Terms::default(); all],
            cached: vec![P::Cached::default(); num_envs],
            width,
        }
    }

    /// Environment `i`, to be read.
    pub(crate) fn view(&self, i: usize) -> EnvView<'_, P> {
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

    pub(crate) fn rows(&mut self) -> StateRows<'_, P> {
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

/// The part of environment `i`; for parts without a size, which are all alike, the first.
#[inline(always)]
fn part<T>(parts: &mut [T], i: usize) -> &mut T {
    &mut parts[if size_of::<T>() == 0 { 0 } else { i }]
}

/// A range of environments.
pub(crate) struct StateRows<'a, P: Parts> {
    accounts: &'a mut [P::Account],
    positions: Rows<'a, P::Position>,
    counters: &'a mut [P::Counters],
    hedges: &'a mut [P::Hedge],
    moments: &'a mut [Moments],
    orders: Rows<'a, P::Order>,
    terms: Rows<'a, P::Terms>,
    cached: &'a mut [P::Cached],
}

impl<P: Parts> StateRows<'_, P> {
    /// The range's environment `i`. It is inlined: a call for each step would cost a tenth of the smallest.
    #[inline(always)]
    pub(crate) fn env(&mut self, i: usize) -> EnvState<'_, P> {
        EnvState {
            account: &mut self.accounts[i],
            positions: self.positions.row(i),
            counters: part(self.counters, i),
            hedge: part(self.hedges, i),
            moments: &mut self.moments[i],
            orders: self.orders.row(i),
            terms: self.terms.row(i),
            cached: part(self.cached, i),
        }
    }
}

impl<P: Parts> View for StateRows<'_, P> {
    fn split(self, n: usize) -> (Self, Self) {
        split_fields!(
            self, n, accounts, positions, counters, hedges, moments, orders, terms, cached
        )
    }
}
