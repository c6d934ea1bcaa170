//! Accounts of `env/options` that live forward.

use super::acting::line;
use super::action_mask;
use super::baseline::{self, BASELINES};
use super::mark_to_market::mark;
use super::simulator::{Act, OptionsSimulator};
use super::state::{Env, Line};
use crate::acting::{Booking, Holdable, Holding, Marked, MarkedPosition};
use crate::hedge::HedgeOrder;
use crate::journal::Journal;
use crate::options::order::{Decision, Orders};
use crate::options::strategies::CLOSE_ALL;
use crate::portfolio::{ActingSimulator as _, BaselineName, ForwardAct, ForwardSimulator, Simulator as _};
use stages_core::StageError;
use std::collections::BTreeMap;

impl ForwardSimulator for OptionsSimulator {
    fn live(&mut self) -> Result<(), StageError> {
        self.market.fills.next_snapshot = true;
        self.market.journal = Journal::kept();
        Ok(())
    }

    fn place(&self, env: &mut Env<'_>, positions: &[Holding]) -> Result<(), StageError> {
        let lines = env.account.lines as usize;
        StageError::new("the account has other positions than its state")
            .when(lines > env.positions.len())?;
        env.positions.fill(Line::default());
        let options = positions
            .iter()
            .filter(|held| held.instrument == Some(Holdable::Option));
        for (place, (to, held)) in env.positions[..lines].iter_mut().zip(options).enumerate() {
            *to = line(&self.market, env.account, held, place)?;
        }
        Ok(())
    }

    fn pay(&self, env: &mut Env<'_>, amount: f64, is_return: bool) {
        let (market, before) = (&self.market, env.account.nav);
        env.account.cash += amount;
        let now = market.now(env.account);
        let (closable, _) = mark(market, now, env);
        let nav = env.account.nav;
        env.account.peak = match is_return {
            true => env.account.peak.max(nav),
            false => env.account.peak * nav / before,
        };
        action_mask::update(market, &self.costs, now, env, closable);
    }

    fn forward<'a>(&self, act: ForwardAct<'a>, env: &mut Env<'_>) -> Result<Act<'a>, StageError> {
        let leave = Decision::Orders(Orders::new(&[]).hedged(HedgeOrder::Leave));
        Ok(match act {
            ForwardAct::Action(action) => self.decide(action, env),
            // Without anything that can be closed the action would be refused, and counted.
            ForwardAct::Close if env.account.action_mask >> CLOSE_ALL & 1 == 1 => {
                Act::Decision(Decision::Action(CLOSE_ALL as u32))
            }
            ForwardAct::Close | ForwardAct::Hold => Act::Decision(leave),
            ForwardAct::Rule(BaselineName::Underlying) if self.market.config.trade_underlying => {
                Act::Decision(baseline::underlying_later(&self.market, env.account))
            }
            ForwardAct::Rule(rule) if BASELINES.contains(&rule) => {
                Act::Decision(baseline::decide(rule, &self.market, 0, 0, env.account))
            }
            ForwardAct::Rule(rule) => return Err(rule.unknown(&BASELINES)),
        })
    }

    fn bookings(&self) -> Vec<Booking> {
        self.market.journal.take()
    }

    fn marked(&self, env: &Env<'_>) -> Marked {
        let (market, account) = (&self.market, &*env.account);
        let (now, lines) = (market.now(account), account.lines as usize);
        let positions = self.holdings(env.view()).positions.into_iter().enumerate();
        let positions: Vec<MarkedPosition> = positions
            .map(|(i, of)| {
                let option = env.positions[..lines].get(i);
                let multiplier = option.map_or(1.0, |_| market.multiplier);
                let units = of.quantity * multiplier;
                let names = ["delta", "gamma", "vega", "theta"];
                let greeks = match option {
                    Some(line) => {
                        let entry = now.entry(line.contract);
                        [entry.delta, entry.gamma, entry.vega, entry.theta].map(|greek| units * greek)
                    }
                    None => [units, 0.0, 0.0, 0.0],
                };
                MarkedPosition {
                    value: match of.instrument {
                        Some(Holdable::Future) => 0.0,
                        _ => units * of.mark.unwrap_or_default(),
                    },
                    greeks: names
                        .map(str::to_owned)
                        .into_iter()
                        .zip(greeks)
                        .collect::<BTreeMap<_, _>>(),
                    multiplier,
                    of,
                }
            })
            .collect();
        Marked {
            cash: account.cash,
            nav: account.nav,
            gross: positions.iter().map(|position| position.value.abs()).sum(),
            closing_cost: self.ledger(env.view()).closing_cost,
            margin: account.margin,
            underlying: Some(now.underlying),
            traded: account.traded,
            costs: account.spread_cost + account.commission,
            positions,
        }
    }
}
