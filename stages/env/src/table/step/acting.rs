//! One decision of `env/table`, for trading outside the program.

use super::acts::{Intent, decide};
use super::simulator::TableSimulator;
use super::state::{Account, Env, NO_CHOICE, TableParts};
use crate::acting::{ActingOrder, ActingOrders, Holdable, Holding, Holdings};
use crate::actions::Actions;
use crate::portfolio::{ActingSimulator, EnvView, Simulator as _};
use crate::table::quantities::Form;
use stages_core::StageError;

impl TableSimulator {
    /// The symbols of the world of an account.
    pub(super) fn symbols(&self, account: &Account) -> &[String] {
        self.symbols_at(account.t as usize)
    }

    /// The symbols of the world of row `t`.
    pub(super) fn symbols_at(&self, t: usize) -> &[String] {
        &self.tables.spec.worlds[self.common.worlds.of(t)].symbols
    }
}

impl ActingSimulator for TableSimulator {
    fn holdings(&self, env: EnvView<'_, TableParts>) -> Holdings {
        let account = env.account;
        let positions = match self.form {
            Form::PerAction => {
                let choice = self.common().spec.action_space.names().get(account.choice as usize);
                let held = choice.map(|name| Holding::of(Holdable::Choice, name, 1.0, None));
                held.into_iter().collect()
            }
            Form::Price | Form::PerPosition => {
                let held = self
                    .symbols(account)
                    .iter()
                    .zip(env.positions)
                    .filter(|(_, held)| **held != 0.0);
                held.map(|(symbol, held)| Holding::of(Holdable::Position, symbol, *held, None))
                    .collect()
            }
        };
        let has_price = self.form == Form::Price;
        Holdings {
            cash: None,
            nav: has_price.then_some(account.nav),
            peak: has_price.then_some(account.peak),
            positions,
        }
    }

    fn hold(&self, env: &mut Env<'_>, holdings: &Holdings) -> Result<(), StageError> {
        if holdings.cash.is_some() {
            return Err(StageError::new("an environment of a table has no cash").hint(
                "give `nav` in its place: positions are fractions of the net asset value, and `nav` and `peak` \
                are multiples of that at the start",
            ));
        }
        if let Some(nav) = holdings.nav {
            StageError::new("without `price` an environment of a table has no net asset value")
                .hint("leave `nav` out")
                .when(self.form != Form::Price)?;
            StageError::new(format!("a net asset value of {nav} is none"))
                .hint("give `nav` as a multiple of that at the start, above 0")
                .when(!(nav.is_finite() && nav > 0.0))?;
        }
        let (symbols, choices) = (
            self.symbols(env.account).to_vec(),
            self.common().spec.action_space.names().to_vec(),
        );
        let mut held = vec![0.0; symbols.len()];
        let mut choice = NO_CHOICE;
        for holding in &holdings.positions {
            if self.form == Form::PerAction {
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
        let past = *env.account;
        let nav = match self.form {
            Form::Price => holdings.nav.unwrap_or(1.0),
            Form::PerPosition | Form::PerAction => 1.0,
        };
        *env.account = Account {
            nav,
            peak: holdings.peak.unwrap_or(nav).max(nav),
            choice,
            ..past.anew()
        };
        env.positions.copy_from_slice(&held);
        Ok(())
    }

    fn choices(&self) -> Vec<String> {
        match self.common().spec.action_space.mask_len() {
            0 => Vec::new(),
            _ => self.common().spec.action_space.names().to_vec(),
        }
    }

    fn masked(&self, _: &Env<'_>) -> Vec<Option<&'static str>> {
        vec![None; self.common().spec.action_space.mask_len()]
    }

    fn orders(&self, env: &mut Env<'_>, action: Actions<'_>) -> ActingOrders {
        let why = self.common().spec.action_space.describe(action, 0);
        if decide(self.config(), action, env.orders) != Intent::Positions {
            // A choice is no trade.
            return ActingOrders::default();
        }
        let cost = self.cost;
        let changes = self.symbols(env.account).iter().zip(&*env.orders).zip(&*env.positions);
        let orders: Vec<ActingOrder> = changes
            .filter(|((_, target), held)| target != held)
            .map(|((symbol, target), held)| {
                let change = target - held;
                // A position has no price.
                let prices = (f64::NAN, 0.0);
                ActingOrder::of(
                    Holdable::Position,
                    symbol,
                    change,
                    prices,
                    cost * change.abs(),
                    why.clone(),
                )
            })
            .collect();
        ActingOrders {
            cost: orders.iter().map(|order| order.cost).sum(),
            orders,
            ..ActingOrders::default()
        }
    }
}
