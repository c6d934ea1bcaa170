//! Accounts of `env/table` that live forward.

use super::acts::{Intent, limit};
use super::simulator::TableSimulator;
use super::state::Env;
use crate::acting::{Booking, Holdable, Holding, Marked, MarkedPosition};
use crate::journal::Journal;
use crate::portfolio::{ActingSimulator as _, BaselineName, ForwardAct, ForwardSimulator, Simulator as _};
use crate::table::config::{TableActionKind, TableFill};
use crate::table::quantities::Form;
use stages_core::StageError;
use std::collections::BTreeMap;

/// The rules that positions can follow.
const RULES: [BaselineName; 3] = [BaselineName::Cash, BaselineName::Underlying, BaselineName::EqualWeight];

impl ForwardSimulator for TableSimulator {
    const HAS_CASH: bool = false;

    fn live(&mut self) -> Result<(), StageError> {
        StageError::new("without `price` an environment of a table has no account")
            .hint("an account that lives forward needs `price`")
            .when(self.form != Form::Price)?;
        self.tables.spec.config.fill = TableFill::NextRow;
        self.journal = Journal::kept();
        Ok(())
    }

    fn place(&self, env: &mut Env<'_>, positions: &[Holding]) -> Result<(), StageError> {
        let symbols = self.symbols(env.account);
        env.positions.fill(0.0);
        for held in positions {
            match symbols.iter().position(|symbol| *symbol == held.symbol) {
                Some(at) => env.positions[at] += held.quantity,
                None => return Err(held.unknown(symbols)),
            }
        }
        Ok(())
    }

    fn price(&self, t: usize, symbol: &str) -> Option<f64> {
        let i = self.symbols_at(t).iter().position(|name| name == symbol)?;
        self.tables.price(t, i)
    }

    fn restate(&mut self, t: usize, symbol: &str, price: f64) {
        if let Some(i) = self.symbols_at(t).iter().position(|name| name == symbol) {
            self.tables.restate(t, i, price);
        }
    }

    /// Positions are fractions of the value, which a transfer multiplies outside of the environment.
    fn pay(&self, env: &mut Env<'_>, amount: f64, is_return: bool) {
        if is_return {
            env.account.nav += amount;
            env.account.peak = env.account.peak.max(env.account.nav);
        }
    }

    fn forward<'a>(&self, act: ForwardAct<'a>, env: &mut Env<'_>) -> Result<Intent, StageError> {
        let mut to = |target: f64| {
            env.orders.fill(target);
            if self.config().actions.kind != TableActionKind::Discrete {
                limit(self.config(), env.orders);
            }
            Intent::Positions
        };
        Ok(match act {
            ForwardAct::Action(action) => self.decide(action, env),
            ForwardAct::Close | ForwardAct::Rule(BaselineName::Cash) => {
                env.orders.fill(0.0);
                Intent::Positions
            }
            ForwardAct::Hold => Intent::Hold,
            ForwardAct::Rule(BaselineName::Underlying) if self.tables.n == 1 => to(1.0),
            ForwardAct::Rule(BaselineName::EqualWeight) if self.tables.n > 1 => {
                to(1.0 / self.tables.n as f64)
            }
            ForwardAct::Rule(rule) => return Err(rule.unknown(&RULES)),
        })
    }

    fn bookings(&self) -> Vec<Booking> {
        self.journal.take()
    }

    fn marked(&self, env: &Env<'_>) -> Marked {
        let ledger = self.ledger(env.view());
        let positions = self.holdings(env.view()).positions.into_iter();
        let positions: Vec<MarkedPosition> = positions
            .map(|of| MarkedPosition {
                of: Holding {
                    instrument: Some(Holdable::Position),
                    mark: Some(ledger.nav),
                    ..of
                },
                multiplier: 1.0,
                value: 0.0,
                greeks: BTreeMap::new(),
            })
            .map(|position| MarkedPosition {
                value: position.of.quantity * ledger.nav,
                ..position
            })
            .collect();
        let held: f64 = positions.iter().map(|position| position.value).sum();
        Marked {
            cash: ledger.nav - held,
            nav: ledger.nav,
            gross: positions.iter().map(|position| position.value.abs()).sum(),
            closing_cost: ledger.closing_cost,
            margin: 0.0,
            underlying: None,
            positions,
            traded: ledger.turnover,
            costs: ledger.costs,
        }
    }
}
