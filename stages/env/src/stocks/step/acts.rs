//! Actions, and the orders that they make.

use super::hedge::HedgeAct;
use super::market::Market;
use super::orders::{Intent, from_choices, from_trades, from_weights};
use crate::actions::Actions;
use crate::hedge::HedgeOrder;
use crate::stocks::config::{Rules, StockActionKind, StocksConfig};
use stages_core::StageError;

/// The actions of a batch.
#[derive(Clone, Copy)]
pub struct Acts<'a> {
    /// The actions of the symbols.
    pub(super) kind: ActKind<'a>,
    /// The number of components of an action: those of the symbols, and that of the hedge where actions
    /// hedge.
    width: usize,
    /// The order of the rule of `hedge`, where actions do not hedge.
    rule: Option<HedgeAct>,
}

/// The values of actions.
#[derive(Clone, Copy)]
pub(super) enum ActKind<'a> {
    /// Trades from -1 to 1, where 1 stands for this many shares.
    Trades(&'a [f32], u32),
    Weights(&'a [f32]),
    Choices(&'a [u32]),
}

impl<'a> Acts<'a> {
    /// Actions for `b` environments of n symbols.
    pub(super) fn new(
        config: &StocksConfig,
        actions: Actions<'a>,
        b: usize,
        n: usize,
    ) -> Result<Self, StageError> {
        let by_action = config.hedge.is_by_action();
        let width = n + usize::from(by_action);
        let kind = match (config.rules, config.actions.kind) {
            (Rules::Finrl, _) => ActKind::Trades(actions.continuous(b, width)?, config.finrl.hmax),
            (_, StockActionKind::Weights) => ActKind::Weights(actions.continuous(b, width)?),
            (_, StockActionKind::Shares) => {
                ActKind::Trades(actions.continuous(b, width)?, config.actions.shares)
            }
            (_, StockActionKind::Choices) => ActKind::Choices(actions.multi_discrete(b, width)?),
        };
        Ok(Self {
            kind,
            width,
            rule: (!by_action).then(|| HedgeAct::Order(config.hedge.terms().order())),
        })
    }

    /// Puts the action of environment `i` into its orders.
    pub(super) fn decide(self, market: &Market, i: usize, orders: &mut [f64]) -> Intent {
        let (first, actions) = (i * self.width, &market.config.actions);
        let own = first..first + orders.len();
        match self.kind {
            ActKind::Trades(trades, most) => from_trades(&trades[own], most, orders),
            ActKind::Weights(weights) => from_weights(&weights[own], orders),
            ActKind::Choices(choices) => from_choices(&choices[own], &actions.lots, actions.shares, orders),
        }
    }

    /// The order of environment `i` for its hedge.
    pub(super) fn hedge(self, i: usize) -> HedgeAct {
        let last = (i + 1) * self.width - 1;
        match (self.rule, self.kind) {
            (Some(rule), _) => rule,
            (None, ActKind::Choices(choices)) => HedgeAct::Order(HedgeOrder::of_choice(choices[last])),
            (None, ActKind::Trades(values, _) | ActKind::Weights(values)) => HedgeAct::Ratio(values[last]),
        }
    }
}
