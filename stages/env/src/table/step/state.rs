//! The state of an environment: plain numbers, as they are saved, and room for the target of a step.

use crate::ranges::{Rows, View};
use crate::reward::Moments;
use bytemuck::{Pod, Zeroable};

/// No choice yet.
pub(super) const NO_CHOICE: u32 = u32::MAX;

/// An account, and its place in the episode. Saved states hold these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Account {
    /// Net asset value as a multiple of that at the start, and its peak in the episode; 1 without a price.
    pub nav: f64,
    pub peak: f64,
    /// Sums over the episode: of what steps paid less costs, of costs, and of turnover; with a price in
    /// multiples of the net asset value at the start.
    pub total: f64,
    pub costs: f64,
    pub turnover: f64,
    /// The number of the episode in this environment.
    pub episode: u64,
    /// The row of now, and the first and last ones of the episode.
    pub t: u32,
    pub first: u32,
    pub last: u32,
    /// With `action_rewards`, the choice before.
    pub choice: u32,
}

/// One environment.
pub(super) struct EnvState<'a> {
    pub account: &'a mut Account,
    /// Positions held `[N]`: with a price, values as fractions of the net asset value, as prices have left
    /// them.
    pub held: &'a mut [f64],
    pub moments: &'a mut Moments,
    /// The positions that the step takes `[N]`; no state beyond it.
    pub target: &'a mut [f64],
}

/// All environments of a batch, B with N symbols each.
#[derive(Clone)]
pub(super) struct States {
    /// `[B]`.
    pub accounts: Vec<Account>,
    /// `[B, N]`.
    pub held: Vec<f64>,
    /// `[B]`.
    pub moments: Vec<Moments>,
    /// `[B, N]`.
    target: Vec<f64>,
    width: usize,
}

impl States {
    pub(super) fn new(num_envs: usize, width: usize) -> Self {
        Self {
            accounts: vec![Account::default(); num_envs],
            held: vec![0.0; num_envs * width],
            moments: vec![Moments::default(); num_envs],
            target: vec![0.0; num_envs * width],
            width,
        }
    }

    /// The positions of environment `i`.
    pub(super) fn held_of(&self, i: usize) -> &[f64] {
        &self.held[i * self.width..(i + 1) * self.width]
    }

    pub(super) fn rows(&mut self) -> StateRows<'_> {
        let width = self.width;
        StateRows {
            accounts: &mut self.accounts,
            held: Rows {
                values: &mut self.held,
                width,
            },
            moments: &mut self.moments,
            target: Rows {
                values: &mut self.target,
                width,
            },
        }
    }
}

/// A range of environments.
pub(super) struct StateRows<'a> {
    accounts: &'a mut [Account],
    held: Rows<'a, f64>,
    moments: &'a mut [Moments],
    target: Rows<'a, f64>,
}

impl StateRows<'_> {
    /// The range's environment `i`.
    pub(super) fn env(&mut self, i: usize) -> EnvState<'_> {
        EnvState {
            account: &mut self.accounts[i],
            held: self.held.row(i),
            moments: &mut self.moments[i],
            target: self.target.row(i),
        }
    }
}

impl View for StateRows<'_> {
    fn split(self, n: usize) -> (Self, Self) {
        let (accounts, held) = (self.accounts.split_at_mut(n), self.held.split(n));
        let (moments, target) = (self.moments.split_at_mut(n), self.target.split(n));
        (
            Self {
                accounts: accounts.0,
                held: held.0,
                moments: moments.0,
                target: target.0,
            },
            Self {
                accounts: accounts.1,
                held: held.1,
                moments: moments.1,
                target: target.1,
            },
        )
    }
}
