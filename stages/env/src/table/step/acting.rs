//! One decision, for trading outside: [`Acting`] for tables.

use super::env::{Acts, TableEnv};
use super::state::{Account, NO_CHOICE};
use super::stepper::Intent;
use crate::acting::{Acting, ActingOrder, ActingOrders, ActingWorld, Holdable, Holding, Holdings, Side};
use crate::actions::Actions;
use crate::batch::{BatchEnv as _, StepBuffers};
use crate::ranges::StepRows;
use crate::split::SnapshotRange;
use crate::table::quantities::Form;
use datasets::SnapshotTime;
use stages_core::StageError;

impl TableEnv {
    /// The symbols of the world that environment 0 is in.
    fn symbols(&self) -> &[String] {
        let tables = self.tables();
        &tables.spec.worlds[tables.world_of(self.row(0))].symbols
    }
}

impl Acting for TableEnv {
    fn worlds(&self) -> Vec<ActingWorld> {
        let tables = self.tables();
        let world = |range: &SnapshotRange| ActingWorld {
            name: tables.spec.worlds[tables.world_of(range.first)].name.clone(),
            first: range.first,
            last: range.last,
        };
        self.stepper.ranges.iter().map(world).collect()
    }

    fn time(&self, snapshot: usize) -> SnapshotTime {
        Self::time(self, snapshot)
    }

    fn begin_at(&mut self, snapshot: usize) {
        self.stepper.ranges = vec![SnapshotRange {
            first: snapshot,
            last: u32::MAX as usize,
        }];
        self.stepper.begin(0, &mut self.states.rows().env(0));
        self.finals.fill(None);
    }

    fn show(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        let mut out = StepRows::new(out, &self.stepper.tables.spec.env);
        let mut states = self.states.rows();
        self.stepper.observe(&states.env(0), out.obs.row(0));
    }

    fn holdings(&self) -> Holdings {
        let account = &self.states.accounts[0];
        let positions = match self.stepper.form {
            Form::PerAction => {
                let choice = self.spec().action_space.names().get(account.choice as usize);
                let held = choice.map(|name| Holding::of(Holdable::Choice, name, 1.0, None));
                held.into_iter().collect()
            }
            Form::Price | Form::PerPosition => {
                let held = self
                    .symbols()
                    .iter()
                    .zip(self.held(0))
                    .filter(|(_, held)| **held != 0.0);
                held.map(|(symbol, held)| Holding::of(Holdable::Position, symbol, *held, None))
                    .collect()
            }
        };
        let has_price = self.has_price();
        Holdings {
            cash: None,
            nav: has_price.then_some(account.nav),
            peak: has_price.then_some(account.peak),
            positions,
        }
    }

    fn hold(&mut self, holdings: &Holdings) -> Result<(), StageError> {
        if holdings.cash.is_some() {
            return Err(StageError::new("an environment of a table has no cash").hint(
                "its positions are fractions of the net asset value; `nav` and `peak` are multiples \
                    of that at the start",
            ));
        }
        let (symbols, choices) = (self.symbols().to_vec(), self.spec().action_space.names().to_vec());
        let mut held = vec![0.0; symbols.len()];
        let mut choice = NO_CHOICE;
        for holding in &holdings.positions {
            if self.stepper.form == Form::PerAction {
                match choices.iter().position(|name| *name == holding.symbol) {
                    Some(at) if matches!(holding.instrument, Some(Holdable::Choice) | None) => {
                        choice = at as u32
                    }
                    _ => return Err(holding.unknown(&choices)),
                }
                continue;
            }
            match symbols.iter().position(|symbol| *symbol == holding.symbol) {
                Some(at) if matches!(holding.instrument, Some(Holdable::Position) | None) => {
                    held[at] += holding.quantity;
                }
                _ => return Err(holding.unknown(&symbols)),
            }
        }
        let stepper = &self.stepper;
        let mut states = self.states.rows();
        let env = states.env(0);
        let past = *env.account;
        let nav = match stepper.form {
            Form::Price => holdings.nav.unwrap_or(1.0),
            Form::PerPosition | Form::PerAction => 1.0,
        };
        *env.account = Account {
            nav,
            peak: holdings.peak.unwrap_or(nav).max(nav),
            episode: past.episode,
            t: past.t,
            first: past.first,
            last: past.last,
            choice,
            ..Account::default()
        };
        env.held.copy_from_slice(&held);
        *env.moments = stepper.reward.moments();
        Ok(())
    }

    fn capital(&self) -> Option<f64> {
        None
    }

    fn choices(&self) -> Vec<String> {
        match self.spec().action_space.mask_len() {
            0 => Vec::new(),
            _ => self.spec().action_space.names().to_vec(),
        }
    }

    fn masked(&self) -> Vec<Option<&'static str>> {
        vec![None; self.spec().action_space.mask_len()]
    }

    fn orders(&self, action: Actions<'_>) -> Result<ActingOrders, StageError> {
        let acts = Acts::new(&self.stepper, action, 1)?;
        let mut target = self.held(0).to_vec();
        let why = self.spec().action_space.describe(action, 0);
        if acts.decide(&self.stepper, 0, &mut target) != Intent::Positions {
            // A choice is no trade.
            return Ok(ActingOrders::default());
        }
        let cost = self.stepper.cost;
        let changes = self.symbols().iter().zip(&target).zip(self.held(0));
        let orders: Vec<ActingOrder> = changes
            .filter(|((_, target), held)| target != held)
            .map(|((symbol, target), held)| ActingOrder {
                instrument: Holdable::Position,
                symbol: symbol.clone(),
                expiry: None,
                strike: None,
                right: None,
                side: Side::of(target - held),
                quantity: (target - held).abs(),
                multiplier: 1.0,
                bid: None,
                ask: None,
                mid: None,
                limit: None,
                cost: cost * (target - held).abs(),
                why: why.clone(),
            })
            .collect();
        Ok(ActingOrders {
            cost: orders.iter().map(|order| order.cost).sum(),
            orders,
            ..ActingOrders::default()
        })
    }
}
