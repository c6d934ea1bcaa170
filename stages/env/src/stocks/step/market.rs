//! The data and rules that all environments of a batch share.

use super::kernels::{Exposure, exposure};
use super::lookup::Tables;
use super::state::Account;
use crate::acting::Holdable;
use crate::journal::{Booking, Journal};
use crate::portfolio::Common;
use crate::stocks::config::{FillAt, StocksConfig};
use crate::stocks::tables::status;
use stages_numerics::dispatch::InstructionSet;

/// The tables and rules of a batch of environments.
pub(super) struct Market {
    pub tables: Tables,
    pub common: Common,
    pub config: StocksConfig,
    pub clip: f32,
    pub instructions: InstructionSet,
    pub journal: Journal,
}

impl Market {
    /// The symbols of the world that date `t` is of.
    pub(super) fn symbols(&self, t: usize) -> &[String] {
        &self.tables.spec.worlds[self.common.worlds.of(t)].symbols
    }

    /// The value of units of the instrument that hedges as a part of the net asset value: none of a future,
    /// which is settled in cash.
    pub(super) fn hedge_asset(&self, units: f64, price: f64) -> f64 {
        if self.config.hedge.is_future() {
            0.0
        } else {
            units * price
        }
    }

    /// True if trades are made at the next date.
    pub(super) fn fills_later(&self) -> bool {
        self.config.fills.at != FillAt::Close
    }

    /// The prices `[N]` of trades at date `t`, and the flag of a symbol that can be traded at them.
    pub(super) fn prices(&self, t: usize, at: FillAt) -> (&[f64], u8) {
        match at {
            FillAt::NextOpen => (self.tables.opens(t), status::OPENS),
            FillAt::Close | FillAt::NextClose => (self.tables.marks(t), status::TRADES),
        }
    }

    /// The booking of a change of what an account holds of a symbol, and of its cash.
    pub(super) fn booking(&self, t: usize, symbol: usize, shares: f64, cash: f64) -> Booking {
        Booking::of(Holdable::Stock, &self.symbols(t)[symbol], shares, cash)
    }

    /// The booking of a change of what is held of the instrument that hedges, and of cash.
    pub(super) fn hedge_booking(&self, units: f64, cash: f64) -> Booking {
        let hedge = &self.config.hedge;
        let instrument = if hedge.is_future() {
            Holdable::Future
        } else {
            Holdable::Stock
        };
        Booking::of(instrument, &hedge.instrument, units, cash)
    }

    /// Values the positions of an account, and the units of its hedge, at the marks of its date.
    #[inline]
    pub(super) fn mark(&self, account: &mut Account, shares: &[f64], units: f64) {
        let mut held = Exposure::default();
        let marks = self.tables.marks(account.t as usize);
        exposure(self.instructions, shares, marks, &mut held);
        account.net = held.net;
        account.gross = held.gross;
        account.nav = account.cash + held.net;
        if units != 0.0 {
            account.nav += self.hedge_asset(units, self.tables.hedge(account.t as usize).price);
        }
        account.peak = account.peak.max(account.nav);
    }
}
