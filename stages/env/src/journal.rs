//! The bookings of an account: every change of its cash and of its positions, by cause. Environments that
//! train keep none.

use crate::acting::{Holdable, OptionRight, describe};
use datasets::Date;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The cause of a booking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A trade of an action.
    #[default]
    Fill,
    /// A trade of the hedge.
    Hedge,
    /// A trade that margin forces.
    Liquidation,
    /// An option that expires, settled in cash or by delivery.
    Expiry,
    /// A short option that its holder exercises.
    Assignment,
    /// A long option that is exercised.
    Exercise,
    /// A dividend, received or, on a short position, paid.
    Dividend,
    /// Interest on cash, or on debt.
    Interest,
    /// The fee for borrowed shares.
    Borrow,
    /// The settlement of a future, and the cost of its roll.
    Settlement,
    /// A split, a stock dividend, or an adjustment of a contract.
    Adjustment,
    /// The settlement of a delisted symbol.
    Delisting,
    /// The cost of a change of positions of `env/table`.
    Cost,
    /// The return of positions of `env/table`, which have no price.
    Return,
}

/// A change of cash or of a position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Booking {
    /// The cause.
    pub cause: Cause,
    /// The instrument that changed; `None` of cash alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instrument: Option<Holdable>,
    /// The symbol; of an option that of its underlying. Empty of cash alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub symbol: String,
    /// The expiry of an option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Date>,
    /// The strike of an option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strike: Option<f64>,
    /// Call or put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<OptionRight>,
    /// The change of the position: contracts, units, shares, or a fraction of the net asset value.
    pub quantity: f64,
    /// Units of the underlying in one of them.
    pub multiplier: f64,
    /// The price of a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// The mark of a unit at the same snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mid: Option<f64>,
    /// The change of cash, commission included.
    pub cash: f64,
    /// The commission.
    pub commission: f64,
    /// The cost against `mid`: spread, slippage and impact.
    pub spread: f64,
}

impl Booking {
    /// A change of cash alone.
    pub(crate) fn cash(cash: f64) -> Self {
        Self {
            cause: Cause::default(),
            instrument: None,
            symbol: String::new(),
            expiry: None,
            strike: None,
            right: None,
            quantity: 0.0,
            multiplier: 1.0,
            price: None,
            mid: None,
            cash,
            commission: 0.0,
            spread: 0.0,
        }
    }

    /// The name of what changed: `SPX 2024-01-19 4800 call`, or the symbol.
    pub fn describe(&self) -> String {
        describe(&self.symbol, self.expiry, self.strike, self.right)
    }

    /// A change of the position in a symbol, and of cash.
    pub(crate) fn of(instrument: Holdable, symbol: &str, quantity: f64, cash: f64) -> Self {
        Self {
            instrument: Some(instrument),
            symbol: symbol.to_owned(),
            quantity,
            ..Self::cash(cash)
        }
    }

    /// The same at a price and a mark of a unit, with its costs.
    pub(crate) fn at(self, price: f64, mid: f64, commission: f64, spread: f64) -> Self {
        Self {
            price: Some(price),
            mid: mid.is_finite().then_some(mid),
            commission,
            spread,
            ..self
        }
    }
}

/// The bookings that an account keeps: nothing unless it was turned on.
#[derive(Debug, Default)]
pub(crate) struct Journal(Option<Mutex<Page>>);

#[derive(Debug, Default)]
struct Page {
    cause: Cause,
    bookings: Vec<Booking>,
}

impl Journal {
    /// A journal that keeps bookings, of a single account.
    pub(crate) fn kept() -> Self {
        Self(Some(Mutex::default()))
    }

    /// True if bookings are kept.
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    fn page(&self) -> Option<MutexGuard<'_, Page>> {
        let page = self.0.as_ref()?;
        Some(page.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The cause of the bookings that follow; returns the one before.
    #[inline]
    pub(crate) fn because(&self, cause: Cause) -> Cause {
        match self.page() {
            None => cause,
            Some(mut page) => std::mem::replace(&mut page.cause, cause),
        }
    }

    /// Keeps a booking of the present cause.
    #[inline]
    pub(crate) fn add(&self, booking: impl FnOnce() -> Booking) {
        if let Some(mut page) = self.page() {
            let cause = page.cause;
            page.bookings.push(Booking { cause, ..booking() });
        }
    }

    /// Keeps a booking of a cause, unless it changes nothing.
    #[inline]
    pub(crate) fn add_as(&self, cause: Cause, booking: impl FnOnce() -> Booking) {
        if let Some(mut page) = self.page() {
            let booking = Booking { cause, ..booking() };
            if booking.cash != 0.0 || booking.quantity != 0.0 {
                page.bookings.push(booking);
            }
        }
    }

    /// Takes the bookings out.
    pub(crate) fn take(&self) -> Vec<Booking> {
        self.page()
            .map(|mut page| std::mem::take(&mut page.bookings))
            .unwrap_or_default()
    }
}
