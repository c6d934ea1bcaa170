//! Fills as a broker reports them against those that the model booked.
//!
//! The model's fill of an order are the bookings of the next night with the order's instrument and side and
//! the cause `fill` or `hedge`; orders of one night that share them have each a part, by their quantities.
//! A reported fill differs from it in price and commission, which is booked as cash. A quantity that the
//! broker did not fill, or filled beyond the model's, changes no position: it is told.

use super::check::{Orders, night_of};
use super::{Booking, Cause, Entry, FillRow, Night, Order};
use datasets::Date;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The model's fill of an order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModelFill {
    /// Contracts, units or shares, without a sign.
    pub quantity: f64,
    /// The mean price of a unit.
    pub price: f64,
    /// The mark of the snapshot at which it was filled.
    pub mid: Option<f64>,
    /// The commission of one contract, unit or share.
    pub commission: f64,
}

/// A reported fill with its order.
#[derive(Clone, Copy, Debug)]
pub struct Reported<'a> {
    /// The fill.
    pub fill: &'a FillRow,
    /// The order.
    pub order: &'a Order,
    /// The model's fill of the order; `None` where it is not booked, or not yet.
    pub model: Option<ModelFill>,
    /// The part of the fill's quantity that the model filled, too, without a sign.
    pub matched: f64,
    /// True if a night has booked the difference.
    pub is_booked: bool,
}

impl Reported<'_> {
    /// 1 for a fill that is bought, -1 for one that is sold.
    pub fn sign(&self) -> f64 {
        self.fill.quantity.signum()
    }

    /// The difference to the model's fill as a booking of cash; `None` where the model filled nothing of it.
    pub fn difference(&self) -> Option<Booking> {
        let model = self.model.filter(|_| self.matched > 0.0)?;
        let spread = self.sign() * self.matched * self.order.multiplier * (self.fill.price - model.price);
        let part = self.matched / self.fill.quantity.abs();
        let commission = part * self.fill.commission - self.matched * model.commission;
        Some(Booking {
            cause: Cause::RealFill,
            of: Some(self.fill.of.clone()),
            quantity: 0.0,
            multiplier: self.order.multiplier,
            price: Some(self.fill.price),
            mid: Some(model.price),
            cash: -spread - commission,
            commission,
            spread,
        })
    }
}

/// An order of which the broker filled another quantity than the model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unmatched {
    /// The order.
    pub order: String,
    /// The instrument.
    pub of: String,
    /// The quantity that the broker filled.
    pub real: f64,
    /// The quantity that the model filled.
    pub model: f64,
}

/// The number of nights for which an order that was filled otherwise is told.
const TOLD: usize = 5;

/// The model's fill of an order, from the bookings of the next night.
fn model_fill(order: &Order, orders: &[Order], next: &Night) -> Option<ModelFill> {
    let sign = if order.side == "sell" { -1.0 } else { 1.0 };
    let (mut quantity, mut value, mut commission) = (0.0, 0.0, 0.0);
    let mut mids = Some(0.0);
    for booking in &next.bookings {
        let is_of = booking.of.as_ref() == Some(&order.of) && booking.quantity * sign > 0.0;
        if let (Cause::Fill | Cause::Hedge, Some(price), true) = (booking.cause, booking.price, is_of) {
            let size = booking.quantity.abs();
            quantity += size;
            value += size * price;
            commission += booking.commission;
            mids = mids.zip(booking.mid).map(|(sum, mid)| sum + size * mid);
        }
    }
    if quantity == 0.0 {
        return None;
    }
    let alike = orders
        .iter()
        .filter(|other| other.of == order.of && other.side == order.side);
    let ordered: f64 = alike.map(|other| other.quantity).sum();
    Some(ModelFill {
        quantity: quantity * order.quantity / ordered,
        price: value / quantity,
        mid: mids.map(|sum| sum / quantity),
        commission: commission / quantity,
    })
}

/// The nights of a ledger, each with the number of its entry.
fn nights(entries: &[Entry]) -> Vec<(usize, &Night)> {
    let numbered = entries.iter().enumerate();
    numbered
        .filter_map(|(at, entry)| Some((at, night_of(entry)?)))
        .collect()
}

/// The reported fills of a ledger, in order.
pub(super) fn reported(entries: &[Entry]) -> Vec<Reported<'_>> {
    let (orders, nights) = (Orders::of(entries), nights(entries));
    let last = nights.last().map_or(0, |(at, _)| *at);
    let mut used: BTreeMap<&str, f64> = BTreeMap::new();
    let mut all = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let Entry::Fills { fills, .. } = entry else { continue };
        for fill in fills {
            let Some(ordered) = orders.get(&fill.order) else {
                continue;
            };
            let (order, next) = (ordered.order, nights.get(ordered.night + 1));
            let model =
                next.and_then(|(_, next)| model_fill(order, &nights.get(ordered.night)?.1.orders, next));
            let used = used.entry(&order.id).or_default();
            let left = model.map_or(0.0, |model| (model.quantity - *used).max(0.0));
            let matched = fill.quantity.abs().min(left);
            *used += matched;
            let known = next.map_or(at, |(next, _)| at.max(*next));
            all.push(Reported {
                fill,
                order,
                model,
                matched,
                is_booked: known < last,
            });
        }
    }
    all
}

/// The differences that no night has booked yet.
pub(super) fn differences(entries: &[Entry]) -> Vec<Booking> {
    let pending = reported(entries).into_iter().filter(|reported| !reported.is_booked);
    pending.filter_map(|reported| reported.difference()).collect()
}

/// The orders of nights with reported fills of which the broker filled another quantity than the model.
/// Contracts that have expired by `date` are left out.
pub(super) fn unmatched(entries: &[Entry], date: Option<Date>) -> Vec<Unmatched> {
    let (orders, nights) = (Orders::of(entries), nights(entries));
    let with_fills: BTreeSet<usize> = orders
        .all()
        .filter(|ordered| ordered.filled > 0.0)
        .map(|ordered| ordered.night)
        .collect();
    let recent = nights.iter().rev().nth(TOLD).map(|(_, night)| night.date);
    let mut all = Vec::new();
    for (_, night) in &nights {
        let Some((_, next)) = nights
            .get(night.number + 1)
            .filter(|_| with_fills.contains(&night.number))
        else {
            continue;
        };
        for order in &night.orders {
            let is_over = order.of.expiry.zip(date).is_some_and(|(expiry, date)| expiry < date);
            if order.side == "exercise" || order.of.is_fraction() || is_over {
                continue;
            }
            let real = orders.get(&order.id).map_or(0.0, |ordered| ordered.filled);
            let model = model_fill(order, &night.orders, next).map_or(0.0, |model| model.quantity);
            // An order that is sized anew at its fill is filled as it was sent.
            let is_whole = |quantity: f64| (real - quantity).abs() <= 1e-9 * real.max(quantity);
            let is_filled = is_whole(model) || model > 0.0 && is_whole(order.quantity);
            if !is_filled && Some(night.date) >= recent {
                all.push(Unmatched {
                    order: order.id.clone(),
                    of: order.of.to_string(),
                    real,
                    model,
                });
            }
        }
    }
    all
}
