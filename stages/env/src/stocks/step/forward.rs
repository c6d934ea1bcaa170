//! Accounts of `env/stocks` that live forward.

use super::baseline::{BASELINES, decide};
use super::hedge::{self, HedgeAct};
use super::orders::Intent;
use super::simulator::StocksSimulator;
use super::state::Env;
use crate::acting::{Booking, Holdable, Holding, Marked, MarkedPosition};
use crate::hedge::HedgeOrder;
use crate::journal::Journal;
use crate::portfolio::{ActingSimulator as _, ForwardAct, ForwardSimulator, Simulator as _};
use crate::stocks::config::{FillAt, Rules};
use stages_core::StageError;
use std::collections::BTreeMap;

impl ForwardSimulator for StocksSimulator {
    fn live(&mut self) -> Result<(), StageError> {
        let market = &mut self.market;
        StageError::new("`rules: finrl` fills at the close that the decision sees")
            .hint("an account that lives forward needs `rules: market`")
            .when(market.config.rules == Rules::Finrl)?;
        if market.config.fills.at == FillAt::Close {
            market.config.fills.at = FillAt::NextClose;
        }
        market.journal = Journal::kept();
        Ok(())
    }

    fn place(&self, env: &mut Env<'_>, positions: &[Holding]) -> Result<(), StageError> {
        let symbols = self.market.symbols(env.account.t as usize);
        env.positions.fill(0.0);
        let hedge = &self.market.config.hedge;
        for held in positions {
            let at = symbols.iter().position(|symbol| *symbol == held.symbol);
            match at {
                Some(at) if held.instrument == Some(Holdable::Stock) => env.positions[at] += held.quantity,
                // The bytes of the hedge have its units.
                _ if held.symbol == hedge.instrument => {}
                _ => return Err(held.unknown(symbols)),
            }
        }
        Ok(())
    }

    fn pay(&self, env: &mut Env<'_>, amount: f64, is_return: bool) {
        let (nav, peak) = (env.account.nav, env.account.peak);
        env.account.cash += amount;
        self.market.mark(env.account, env.positions, env.hedge.units);
        if !is_return {
            env.account.peak = peak * env.account.nav / nav;
        }
    }

    fn forward<'a>(&self, act: ForwardAct<'a>, env: &mut Env<'_>) -> Result<(Intent, HedgeAct), StageError> {
        Ok(match act {
            ForwardAct::Action(action) => self.decide(action, env),
            ForwardAct::Close => {
                env.orders.fill(0.0);
                (Intent::Weights, HedgeAct::Order(HedgeOrder::Zero))
            }
            ForwardAct::Hold => (Intent::Hold, HedgeAct::Order(HedgeOrder::Leave)),
            ForwardAct::Rule(rule) if BASELINES.contains(&rule) => {
                (decide(rule, &self.market, 0, 0, env), self.hedge_rule())
            }
            ForwardAct::Rule(rule) => return Err(rule.unknown(&BASELINES)),
        })
    }

    fn bookings(&self) -> Vec<Booking> {
        self.market.journal.take()
    }

    fn marked(&self, env: &Env<'_>) -> Marked {
        let (ledger, config) = (self.ledger(env.view()), &self.market.config);
        let positions = self.holdings(env.view()).positions.into_iter();
        let positions: Vec<MarkedPosition> = positions
            .map(|of| MarkedPosition {
                multiplier: 1.0,
                value: match of.instrument {
                    Some(Holdable::Future) => 0.0,
                    _ => of.quantity * of.mark.unwrap_or_default(),
                },
                greeks: BTreeMap::new(),
                of,
            })
            .collect();
        Marked {
            cash: ledger.cash,
            nav: ledger.nav,
            gross: positions.iter().map(|position| position.value.abs()).sum(),
            closing_cost: ledger.closing_cost,
            margin: match config.has_margin() || self.common().hedges {
                true => {
                    config.margin.maintenance * ledger.gross
                        + hedge::margin(&self.market, env.account, env.hedge.units)
                }
                false => 0.0,
            },
            underlying: None,
            positions,
            traded: ledger.all_traded(),
            costs: ledger.costs(),
        }
    }
}
