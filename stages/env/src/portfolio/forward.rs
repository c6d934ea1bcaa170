//! Accounts that live forward: each step is filled at the next snapshot and books what it changes, and the
//! state goes on in another environment of the same market, such as that of the next night's data.

use super::acting::ActingSimulator;
use super::baseline::BaselineName;
use super::env::PortfolioEnv;
use super::simulator::Outcome;
use super::state::{Clock as _, EnvState, Parts};
use crate::acting::{Booking, Holding, Marked};
use crate::actions::Actions;
use bytemuck::Pod;
use datasets::SnapshotTime;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The snapshots between that of an account and the earlier one whose prices are kept beside it.
const BASIS: usize = 40;

/// The share of a price up to which another one is the rounding of prices that are in another basis.
const ROUNDING: f64 = 1e-4;

/// The prices that an account was booked at, where its positions are fractions of its value: of those alone
/// nothing tells that the data of a later night has another price at the same snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BookedPrices {
    /// An earlier snapshot. Where the data of a later night has all prices in another basis, as adjusted ones
    /// after a split, they changed there by the same factor.
    pub basis: Option<SnapshotTime>,
    /// The price of each position at the snapshot of the account, and at the earlier one.
    pub prices: BTreeMap<String, [f64; 2]>,
}

/// A price that an account was booked at, which the data of a later night restates.
#[derive(Clone, Debug, PartialEq)]
pub struct Restated {
    /// The symbol.
    pub symbol: String,
    /// The price that was booked, in the basis of the data now.
    pub before: f64,
    /// The price now.
    pub after: f64,
}

/// The state of an account in terms that every environment of its market knows: times and names, not numbers
/// of snapshots and contracts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carried {
    /// The snapshot that the account is at.
    pub time: SnapshotTime,
    /// The first snapshot of its episode.
    pub first: SnapshotTime,
    /// The positions, in the order of the account.
    pub positions: Vec<Holding>,
    /// The prices that the positions were booked at; `None` where positions are units, which are valued anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booked: Option<BookedPrices>,
    /// The bytes of the account, its counters and its hedge, in hexadecimal digits.
    account: String,
    counters: String,
    hedge: String,
}

/// A decision of an account that lives forward.
#[derive(Clone, Copy, Debug)]
pub enum ForwardAct<'a> {
    /// An action of the action space.
    Action(Actions<'a>),
    /// Everything is closed.
    Close,
    /// Nothing is traded; the rule of the hedge neither.
    Hold,
    /// The decision of a rule.
    Rule(BaselineName),
}

fn hex<T: Pod>(value: &T) -> String {
    bytemuck::bytes_of(value)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn of_hex<T: Pod + Default>(text: &str, what: &str) -> Result<T, StageError> {
    let mut value = T::default();
    let bytes = bytemuck::bytes_of_mut(&mut value);
    let digits = text.as_bytes();
    let read = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    StageError::new(format!(
        "the {what} of the account was saved by another version of the program"
    ))
    .hint("its positions and cash are in the ledger: close the account and open another one")
    .when(digits.len() != 2 * bytes.len())?;
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = read(pair).ok_or_else(|| StageError::new(format!("the {what} of the account is damaged")))?;
    }
    Ok(value)
}

/// A market in which accounts live forward.
pub trait ForwardSimulator: ActingSimulator {
    /// True if accounts have cash; else their value is a multiple of that at the start.
    const HAS_CASH: bool = true;

    /// Turns fills at the next snapshot and the keeping of bookings on.
    ///
    /// # Errors
    /// When the environment's rules have no such fills.
    fn live(&mut self) -> Result<(), StageError>;
    /// Places what an account holds; the bytes of the account are set, and its snapshot.
    fn place(&self, env: &mut EnvState<'_, Self::Parts>, positions: &[Holding]) -> Result<(), StageError>;
    /// The price of a symbol at a snapshot, where positions are fractions of the value, which its change
    /// multiplies.
    fn price(&self, _snapshot: usize, _symbol: &str) -> Option<f64> {
        None
    }
    /// Lets the step from a snapshot begin at another price of a symbol.
    fn restate(&mut self, _snapshot: usize, _symbol: &str, _price: f64) {}
    /// Adds to the cash. An amount that is no return moves the peak with it.
    fn pay(&self, env: &mut EnvState<'_, Self::Parts>, amount: f64, is_return: bool);
    /// The act of a decision.
    ///
    /// # Errors
    /// When the market does not know the rule.
    fn forward<'a>(
        &self,
        act: ForwardAct<'a>,
        env: &mut EnvState<'_, Self::Parts>,
    ) -> Result<Self::Act<'a>, StageError>;
    /// Takes the bookings out.
    fn bookings(&self) -> Vec<Booking>;
    /// The book at its marks.
    fn marked(&self, env: &EnvState<'_, Self::Parts>) -> Marked;
}

impl<S: ForwardSimulator> PortfolioEnv<S> {
    /// Fills at the next snapshot from now on, and keeps bookings.
    ///
    /// # Errors
    /// See [`ForwardSimulator::live`].
    pub fn live(&mut self) -> Result<(), StageError> {
        self.own_simulator()?.live()
    }

    fn own_simulator(&mut self) -> Result<&mut S, StageError> {
        let shared = || StageError::new("other environments share the tables of this account");
        Arc::get_mut(&mut self.simulator).ok_or_else(shared)
    }

    /// The state of environment 0.
    pub fn carried(&self) -> Carried {
        let (view, times) = (self.states.view(0), &self.common().times);
        let now = view.account.now();
        let positions = self.holdings().positions;
        Carried {
            time: times[now],
            first: times[now - view.account.steps()],
            booked: self.booked(now, &positions),
            positions,
            account: hex(view.account),
            counters: hex(view.counters),
            hedge: hex(view.hedge),
        }
    }

    /// The prices of positions at the snapshot `now`.
    fn booked(&self, now: usize, positions: &[Holding]) -> Option<BookedPrices> {
        let worlds = &self.common().worlds;
        let basis = now.saturating_sub(BASIS).max(worlds.snapshots(worlds.of(now)).start);
        let price = |t: usize, held: &Holding| self.simulator.price(t, &held.symbol);
        let both = |held: &Holding| Some((held.symbol.clone(), [price(now, held)?, price(basis, held)?]));
        let prices: BTreeMap<_, _> = positions.iter().filter_map(both).collect();
        (!prices.is_empty()).then(|| BookedPrices {
            basis: (basis < now).then(|| self.common().times[basis]),
            prices,
        })
    }

    /// Lets the step from the snapshot `now` begin at the prices that were booked there, where the data has
    /// others.
    fn restate(&mut self, now: usize, booked: &BookedPrices) -> Result<Vec<Restated>, StageError> {
        let common = self.common();
        let mut world = common.worlds.snapshots(common.worlds.of(now));
        let basis = world.find(|&t| Some(common.times[t]) == booked.basis);
        let simulator = self.own_simulator()?;
        let mut restated = Vec::new();
        for (symbol, [price, earlier]) in &booked.prices {
            let Some(after) = simulator.price(now, symbol).filter(|after| after != price) else {
                continue;
            };
            let earlier_now = basis.and_then(|basis| simulator.price(basis, symbol));
            let factor = earlier_now.map_or(1.0, |now| now / earlier);
            let before = factor * price;
            if factor != 1.0 && (after / before - 1.0).abs() < ROUNDING {
                continue;
            }
            simulator.restate(now, symbol, before);
            restated.push(Restated {
                symbol: symbol.clone(),
                before,
                after,
            });
        }
        Ok(restated)
    }

    /// Sets the state of environment 0, in the world of the snapshot `within`; returns the prices that it was
    /// booked at and that the data restates.
    ///
    /// # Errors
    /// When the environment has no such snapshot, or does not know a position.
    pub fn carry(&mut self, carried: &Carried, within: usize) -> Result<Vec<Restated>, StageError> {
        let common = self.common();
        let world = common.worlds.snapshots(common.worlds.of(within));
        let find = |time: SnapshotTime| {
            let mut snapshots = world.clone();
            snapshots.find(|&t| common.times[t] == time).ok_or_else(|| {
                StageError::new(format!(
                    "the environment has no snapshot {time}, at which the account is"
                ))
                .hint("give the data that the account has lived on; nothing of it may be missing")
            })
        };
        let (now, first) = (find(carried.time)?, find(carried.first).unwrap_or(world.start));
        self.begin_at(now);
        let mut states = self.states.rows();
        let mut env = states.env(0);
        let begun = *env.account;
        *env.account = of_hex::<<S::Parts as Parts>::Account>(&carried.account, "state")?;
        *env.counters = of_hex(&carried.counters, "counters")?;
        *env.hedge = of_hex(&carried.hedge, "hedge")?;
        env.account.place(now, first, &begun);
        self.simulator.place(&mut env, &carried.positions)?;
        self.simulator.recall(&mut env);
        match &carried.booked {
            Some(booked) => self.restate(now, booked),
            None => Ok(Vec::new()),
        }
    }

    /// Takes a step of environment 0, to the next snapshot; returns the bookings, and true if the account is
    /// ruined.
    ///
    /// # Errors
    /// When the action is not of the action space, or there is no next snapshot in the world.
    pub fn advance(&mut self, act: ForwardAct<'_>) -> Result<(Vec<Booking>, bool), StageError> {
        if let ForwardAct::Action(action) = act {
            self.common().spec.action_space.check(action, 1)?;
        }
        let now = self.snapshot(0);
        let worlds = &self.common().worlds;
        let end = worlds.snapshots(worlds.of(now)).end;
        StageError::new("there is no next snapshot").when(now + 1 >= end)?;
        // What orders would have booked is no booking.
        self.simulator.bookings();
        let mut states = self.states.rows();
        let mut env = states.env(0);
        let act = self.simulator.forward(act, &mut env)?;
        let Outcome { terminated, .. } = self.simulator.step(&mut env, act, None);
        Ok((self.simulator.bookings(), terminated))
    }

    /// Adds to the cash of environment 0; see [`ForwardSimulator::pay`].
    pub fn pay(&mut self, amount: f64, is_return: bool) {
        let mut states = self.states.rows();
        self.simulator.pay(&mut states.env(0), amount, is_return);
    }

    /// The book of environment 0 at its marks.
    pub fn marked(&self) -> Marked {
        self.simulator.marked(&self.states.clone().rows().env(0))
    }
}
