//! Decisions of a step: an action, or orders outside the action space.

use super::config::MAX_LEGS;
use crate::hedge::HedgeOrder;

/// A tradable instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrument {
    /// An option contract, by its number in the environment's tables.
    Contract(u32),
    /// The underlying, where it trades.
    Underlying,
}

/// An order outside the action space: contracts (or units of the underlying) to buy, or to sell if negative.
/// Each order of a contract opens a position line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The instrument.
    pub instrument: Instrument,
    /// The signed quantity.
    pub quantity: i32,
}

/// Orders that are filled together or not at all; 8 at most. A hedge may follow them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    orders: [Order; MAX_LEGS],
    n: usize,
    hedge: Option<HedgeOrder>,
}

impl Orders {
    /// The given orders without a hedge; those after the eighth are left out.
    pub fn new(orders: &[Order]) -> Self {
        let n = orders.len().min(MAX_LEGS);
        let none = Order {
            instrument: Instrument::Underlying,
            quantity: 0,
        };
        let mut all = [none; MAX_LEGS];
        all[..n].copy_from_slice(&orders[..n]);
        Self {
            orders: all,
            n,
            hedge: None,
        }
    }

    /// The orders with a hedge after them, whatever the rule of `hedge`.
    #[must_use]
    pub fn hedged(self, order: HedgeOrder) -> Self {
        Self {
            hedge: Some(order),
            ..self
        }
    }

    /// The hedge after the orders; `None` leaves it to the rule.
    pub fn hedge(&self) -> Option<HedgeOrder> {
        self.hedge
    }

    /// The orders.
    pub fn as_slice(&self) -> &[Order] {
        &self.orders[..self.n]
    }
}

/// The decision of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A choice of the action space.
    Action(u32),
    /// Orders outside the action space, under the same rules (fills, free lines, margin).
    Orders(Orders),
}
