//! One account in an environment.

use crate::acting::in_market;
use cache::{Artifact, Store};
use datasets::SnapshotTime;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use stages_env::acting::{ActingOrder, ActingOrders, Booking, Holdings, Marked};
use stages_env::{
    ActionBuffer, ActionSpace, Actions, BaselineName, BatchEnv as _, Carried, ForwardAct, ForwardSimulator,
    OpenOptions, PortfolioEnv, Restated, Split, Step,
};
use stages_policy::{AnyPolicy, Mode, PolicyState};

/// The decider of an account.
#[derive(Clone, Copy)]
pub enum Decider<'a> {
    /// A policy's likeliest actions.
    Policy(&'a AnyPolicy),
    /// A rule.
    Rule(BaselineName),
}

/// A decision that waits for the next snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pending {
    /// Nothing is traded.
    #[default]
    Hold,
    /// Everything is closed.
    Close,
    /// The choices of an action, one for each component.
    Choices(Vec<u32>),
    /// The values of a continuous action.
    Values(Vec<f32>),
    /// The decision of a rule, which follows from the state.
    Rule(BaselineName),
}

/// An account between two nights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// The state of the account.
    pub state: Carried,
    /// The decision that waits for the next snapshot.
    pub pending: Pending,
    /// The memory of the policy, a number each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<f32>,
    /// True until the policy has decided once.
    pub is_new: bool,
    /// Money for each unit of the environment's: 1, but of `env/table`, whose value starts at 1, the capital.
    pub scale: f64,
}

/// A decision, and the orders that it means at the prices of its snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The action in words.
    pub text: String,
    /// The orders.
    pub orders: ActingOrders,
}

/// An account in an environment.
pub trait Account {
    /// The capital that the environment gives an account; `None` where its value is a multiple of that at the
    /// start.
    fn capital(&self) -> Option<f64>;
    /// Starts the account with a capital at the first snapshot from a moment on.
    ///
    /// # Errors
    /// When the environment has no such snapshot.
    fn begin(&mut self, from: SnapshotTime, capital: f64) -> Result<(), StageError>;
    /// Goes on from a state.
    ///
    /// # Errors
    /// When the environment has no such snapshot, or does not know a position.
    fn resume(&mut self, held: &Held) -> Result<(), StageError>;
    /// Takes over what another environment's account holds, with its money; the policy's memory is empty.
    ///
    /// # Errors
    /// When the environment cannot hold it.
    fn take(&mut self, at: SnapshotTime, holdings: &Holdings, scale: f64) -> Result<(), StageError>;
    /// The prices that the account was booked at and that the data restates, as it went on from its state.
    fn restated(&self) -> &[Restated];
    /// The state.
    fn held(&self) -> Held;
    /// The holdings, for another environment.
    fn holdings(&self) -> Holdings;
    /// The name of its world.
    fn world(&self) -> &str;
    /// The present snapshot.
    fn time(&self) -> SnapshotTime;
    /// The snapshots of the world after the present one.
    fn left(&self) -> &[SnapshotTime];
    /// Fills what waits at the next snapshot; returns the bookings, and true if the account is ruined.
    ///
    /// # Errors
    /// When there is no next snapshot.
    fn advance(&mut self) -> Result<(Vec<Booking>, bool), StageError>;
    /// Decides anew: what is returned waits for the next snapshot.
    ///
    /// # Errors
    /// When the policy fails.
    fn decide(&mut self) -> Result<Decision, StageError>;
    /// Puts a decision in place of the policy's; returns the orders that close the book, if it does.
    fn wait(&mut self, pending: Pending) -> Vec<ActingOrder>;
    /// Adds to the cash: a return, or capital.
    fn pay(&mut self, amount: f64, is_return: bool);
    /// The book at its marks, in money.
    fn marked(&self) -> Marked;
    /// The interest on 1 of cash from the snapshot before the present one, as a log return; 0 at the first.
    fn risk_free(&self) -> f64;
    /// The part of an observation that shows the market at a snapshot, the same for every account.
    fn row(&self, time: SnapshotTime) -> Option<&[f32]>;
    /// The last rows `[R, F]`, at most `count`, of the snapshots up to a moment and after another one.
    fn rows(&self, after: SnapshotTime, until: SnapshotTime, count: usize) -> Vec<f32>;
    /// The names `[F]` of the elements of [`Account::row`].
    fn row_names(&self) -> Vec<String>;
}

/// Opens an environment for one account of a world, the only one there is if `world` is absent.
///
/// # Errors
/// When the environment is over no dated data, its rules have no fills after a decision, the policy does not
/// fit, or there is no such world.
pub fn open<'a>(
    store: &Store,
    artifact: &Artifact,
    decider: Decider<'a>,
    world: Option<&str>,
) -> Result<Box<dyn Account + 'a>, StageError> {
    open_split(store, artifact, decider, (world, Split::Test))
}

/// The same, with the worlds of a split.
pub(super) fn open_split<'a>(
    store: &Store,
    artifact: &Artifact,
    decider: Decider<'a>,
    of: (Option<&str>, Split),
) -> Result<Box<dyn Account + 'a>, StageError> {
    in_market!(artifact, open_in(store, artifact, decider, of))
}

fn open_in<'a, S: ForwardSimulator>(
    store: &Store,
    artifact: &Artifact,
    decider: Decider<'a>,
    (world, split): (Option<&str>, Split),
) -> Result<Box<dyn Account + 'a>, StageError> {
    let normalise_as = match decider {
        Decider::Policy(policy) => policy.spec().normalisation.clone(),
        Decider::Rule(_) => None,
    };
    let options = OpenOptions {
        normalise_as,
        split,
        prices: true,
        ..OpenOptions::test(1, 0)
    };
    let mut env = PortfolioEnv::<S>::open(store, artifact, &options)?;
    env.live()?;
    let state = match decider {
        Decider::Rule(_) => None,
        Decider::Policy(policy) => {
            if let Some(difference) = policy.spec().difference(env.spec()) {
                return Err(StageError::new(format!(
                    "the data makes another observation, or other actions, than the policy was trained with: \
                    {difference}"
                ))
                .hint("give data with the columns and symbols of those that it was trained on"));
            }
            Some(policy.start(store, 1)?)
        }
    };
    let world = crate::acting::world(&env.acting_worlds(), world)?;
    Ok(Box::new(Live {
        step: Step::new(env.spec(), 1),
        within: world.first,
        world: world.name,
        decider,
        state,
        pending: Pending::Hold,
        is_new: true,
        scale: 1.0,
        capital: env.marked().nav,
        restated: Vec::new(),
        env,
    }))
}

/// An account of a market.
struct Live<'a, S: ForwardSimulator> {
    env: PortfolioEnv<S>,
    /// A snapshot of its world.
    within: usize,
    world: String,
    decider: Decider<'a>,
    state: Option<PolicyState>,
    step: Step,
    pending: Pending,
    is_new: bool,
    scale: f64,
    capital: f64,
    restated: Vec<Restated>,
}

impl<S: ForwardSimulator> Live<'_, S> {
    fn snapshots(&self) -> std::ops::Range<usize> {
        self.env.world_of(self.within)
    }

    fn find(&self, time: SnapshotTime) -> Option<usize> {
        let times = &self.env.common().times;
        self.snapshots().find(|&t| times[t] == time)
    }

    /// Forgets what the policy remembers.
    fn forget(&mut self) {
        self.is_new = true;
        if let Some(state) = &mut self.state {
            state.recurrent_mut().fill(0.0);
        }
    }

    /// The capital in units of the environment, and money for each of them.
    fn units(capital: f64) -> (Option<f64>, f64) {
        match S::HAS_CASH {
            true => (Some(capital), 1.0),
            false => (None, capital),
        }
    }
}

impl<S: ForwardSimulator> Account for Live<'_, S> {
    fn capital(&self) -> Option<f64> {
        S::HAS_CASH.then_some(self.capital)
    }

    fn begin(&mut self, from: SnapshotTime, capital: f64) -> Result<(), StageError> {
        let times = &self.env.common().times;
        let first = self.snapshots().find(|&t| times[t] >= from).ok_or_else(|| {
            StageError::new(format!("the environment has no snapshot from {from} on"))
                .hint("give data that goes on until that date, or an earlier date")
        })?;
        self.env.begin_at(first);
        let (cash, scale) = Self::units(capital);
        if let Some(cash) = cash {
            self.env.hold(&Holdings {
                cash: Some(cash),
                ..Holdings::default()
            })?;
        }
        self.scale = scale;
        self.pending = Pending::Hold;
        self.forget();
        Ok(())
    }

    fn resume(&mut self, held: &Held) -> Result<(), StageError> {
        self.restated = self.env.carry(&held.state, self.within)?;
        self.pending = held.pending.clone();
        (self.is_new, self.scale) = (held.is_new, held.scale);
        if let Some(state) = &mut self.state {
            let memory = state.recurrent_mut();
            if held.memory.len() == memory.len() {
                memory.copy_from_slice(&held.memory);
            } else {
                memory.fill(0.0);
                self.is_new = true;
            }
        }
        Ok(())
    }

    fn take(&mut self, at: SnapshotTime, holdings: &Holdings, scale: f64) -> Result<(), StageError> {
        let now = self.find(at).ok_or_else(|| {
            StageError::new(format!("the environment of the policy has no snapshot {at}"))
                .hint("its data ends earlier, or its features need more of it")
        })?;
        self.env.begin_at(now);
        self.env.hold(holdings)?;
        self.scale = scale;
        self.pending = Pending::Hold;
        self.forget();
        Ok(())
    }

    fn restated(&self) -> &[Restated] {
        &self.restated
    }

    fn held(&self) -> Held {
        let memory = self.state.as_ref().map(|state| state.recurrent().to_vec());
        Held {
            state: self.env.carried(),
            pending: self.pending.clone(),
            memory: memory.unwrap_or_default(),
            is_new: self.is_new,
            scale: self.scale,
        }
    }

    fn holdings(&self) -> Holdings {
        self.env.holdings()
    }

    fn world(&self) -> &str {
        &self.world
    }

    fn time(&self) -> SnapshotTime {
        self.env.common().times[self.env.snapshot(0)]
    }

    fn left(&self) -> &[SnapshotTime] {
        &self.env.common().times[self.env.snapshot(0) + 1..self.snapshots().end]
    }

    fn advance(&mut self) -> Result<(Vec<Booking>, bool), StageError> {
        let pending = std::mem::take(&mut self.pending);
        let action = match (pending, &self.env.spec().action_space) {
            (Pending::Hold, _) => Err(ForwardAct::Hold),
            (Pending::Close, _) => Err(ForwardAct::Close),
            (Pending::Rule(rule), _) => Err(ForwardAct::Rule(rule)),
            (Pending::Choices(choices), ActionSpace::Discrete { .. }) => Ok(ActionBuffer::Discrete(choices)),
            (Pending::Choices(choices), _) => Ok(ActionBuffer::MultiDiscrete(choices)),
            (Pending::Values(values), _) => Ok(ActionBuffer::Continuous(values)),
        };
        let (mut bookings, is_ruined) = match &action {
            Ok(action) => self.env.advance(ForwardAct::Action(action.as_actions()))?,
            Err(act) => self.env.advance(*act)?,
        };
        for booking in bookings.iter_mut().filter(|_| self.scale != 1.0) {
            booking.cash *= self.scale;
            booking.spread *= self.scale;
        }
        Ok((bookings, is_ruined))
    }

    fn decide(&mut self) -> Result<Decision, StageError> {
        let (policy, state) = match (self.decider, &mut self.state) {
            (Decider::Policy(policy), Some(state)) => (policy, state),
            (Decider::Rule(rule), _) => {
                self.pending = Pending::Rule(rule);
                return Ok(Decision {
                    text: rule.name().to_owned(),
                    orders: ActingOrders::default(),
                });
            }
            (Decider::Policy(_), None) => return Err(StageError::new("the policy has no state")),
        };
        self.env.show(self.step.buffers());
        let (obs, mask) = (&self.step.obs, &self.step.action_mask);
        let actions = policy.act(obs, mask, &[self.is_new], state, Mode::Greedy)?;
        let text = self.env.spec().action_space.describe(actions, 0);
        self.pending = match actions {
            Actions::Discrete(choices) | Actions::MultiDiscrete(choices) => {
                Pending::Choices(choices.to_vec())
            }
            Actions::Continuous(values) => Pending::Values(values.to_vec()),
        };
        self.is_new = false;
        let orders = self.env.orders(actions)?;
        Ok(Decision { text, orders })
    }

    fn wait(&mut self, pending: Pending) -> Vec<ActingOrder> {
        let closes = pending == Pending::Close;
        self.pending = pending;
        let held = self.env.marked().positions.into_iter().filter(|_| closes);
        held.map(|position| ActingOrder::closing(&position)).collect()
    }

    fn pay(&mut self, amount: f64, is_return: bool) {
        if S::HAS_CASH || is_return {
            self.env.pay(amount / self.scale, is_return);
        } else {
            let nav = self.env.marked().nav;
            self.scale += amount / nav;
        }
    }

    fn marked(&self) -> Marked {
        let mut marked = self.env.marked();
        if self.scale != 1.0 {
            let amounts = [
                &mut marked.cash,
                &mut marked.nav,
                &mut marked.gross,
                &mut marked.closing_cost,
                &mut marked.margin,
                &mut marked.traded,
                &mut marked.costs,
            ];
            for amount in amounts {
                *amount *= self.scale;
            }
            for position in &mut marked.positions {
                position.value *= self.scale;
                position.of.mark = position.of.mark.map(|mark| mark * self.scale);
            }
        }
        marked
    }

    fn risk_free(&self) -> f64 {
        let now = self.env.snapshot(0);
        match now > self.snapshots().start {
            true => libm::log1p(self.env.common().risk_free[now - 1]),
            false => 0.0,
        }
    }

    fn row(&self, time: SnapshotTime) -> Option<&[f32]> {
        self.find(time).map(|t| self.env.common().row(t))
    }

    fn rows(&self, after: SnapshotTime, until: SnapshotTime, count: usize) -> Vec<f32> {
        let common = self.env.common();
        let within = |t: &usize| common.times[*t] > after && common.times[*t] <= until;
        let snapshots: Vec<usize> = self.snapshots().filter(within).collect();
        let last = &snapshots[snapshots.len().saturating_sub(count)..];
        last.iter().flat_map(|&t| common.row(t)).copied().collect()
    }

    fn row_names(&self) -> Vec<String> {
        let width = self.env.common().row(self.within).len();
        self.env.spec().observation.iter().take(width).cloned().collect()
    }
}
