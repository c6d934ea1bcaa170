//! Steps of an account as entries of a ledger.

use runner_engine::Failure;
use runner_history::paper::{Booking, Order};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stages_env::acting::{self, ActingOrder};

/// The same value under another type with the same fields.
pub(super) fn as_entry<T: DeserializeOwned>(value: &impl Serialize) -> Result<T, Failure> {
    let read = serde_json::to_value(value).and_then(serde_json::from_value);
    read.map_err(|err| Failure::machine(format!("an entry of the ledger cannot be written: {err}")))
}

pub(super) fn bookings(bookings: &[acting::Booking]) -> Result<Vec<Booking>, Failure> {
    bookings.iter().map(as_entry).collect()
}

/// The orders of a night, numbered.
pub(super) fn orders(night: &str, orders: &[ActingOrder]) -> Result<Vec<Order>, Failure> {
    let numbered = orders.iter().enumerate().map(|(i, order)| {
        let mut value = serde_json::to_value(order).unwrap_or_default();
        value["id"] = format!("{night}-{}", i + 1).into();
        as_entry(&value)
    });
    numbered.collect()
}
