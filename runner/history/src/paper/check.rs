//! The rules that every entry of a ledger keeps.

use super::{Entry, FillRow, Night, Order, Stop, sums};
use datasets::Date;
use runner_engine::{Failure, text};
use std::collections::{BTreeMap, BTreeSet};

impl Entry {
    /// The date of the entry: of an opening its first date, of a night its own, of all others that of the
    /// night before.
    pub fn date(&self) -> Date {
        match self {
            Self::Opened(opened) => opened.from,
            Self::Night(night) => night.date,
            Self::Transfer(change) => change.date,
            Self::Policy(moved) => moved.date,
            Self::Correction(correction) => correction.date,
            Self::Halted(stop) | Self::Resumed(stop) | Self::Closed(stop) => stop.date,
            Self::Fills { date, .. } => *date,
        }
    }

    /// The kind of the entry, as its field `entry` has it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Opened(_) => "opened",
            Self::Night(_) => "night",
            Self::Transfer(_) => "transfer",
            Self::Policy(_) => "policy",
            Self::Correction(_) => "correction",
            Self::Halted(_) => "halted",
            Self::Resumed(_) => "resumed",
            Self::Fills { .. } => "fills",
            Self::Closed(_) => "closed",
        }
    }
}

/// Checks an entry that would follow others.
pub(super) fn check(before: &[Entry], entry: &Entry) -> Result<(), Failure> {
    let refused = |what: String| Failure::usage(format!("this entry cannot be added: {what}"));
    match (before.last(), entry) {
        (None, Entry::Opened(_)) => {}
        (None, _) => {
            return Err(refused(format!("the first is `opened`, and not `{}`", entry.kind())));
        }
        (Some(_), Entry::Opened(_)) => {
            return Err(refused("the account is opened already".to_owned()));
        }
        (Some(Entry::Closed(stop)), _) => {
            return Err(refused(format!("the account was closed on {}", stop.date))
                .hint("`runner paper open` opens another one"));
        }
        (Some(last), entry) if entry.date() < last.date() => {
            return Err(refused(format!(
                "its date {} is before {}, the date of the last entry",
                entry.date(),
                last.date()
            ))
            .hint("the past of an account is never changed; restated data is a correction"));
        }
        _ => {}
    }
    match entry {
        Entry::Night(night) => {
            let number = before.iter().filter_map(night_of).count();
            if night.number != number {
                return Err(refused(format!(
                    "the night {} has the number {}, and the next one is {number}",
                    night.time, night.number
                )));
            }
            let last = before.iter().rev().find_map(night_of);
            if last.is_some_and(|last| last.time == night.time) {
                return Err(refused(format!("the night {} is in it", night.time)));
            }
            let orders = Orders::of(before);
            let mut ids = BTreeSet::new();
            let mut known = |id: &str| orders.get(id).is_some() || !ids.insert(id.to_owned());
            if let Some(order) = night.orders.iter().find(|order| known(&order.id)) {
                return Err(refused(format!("there is already an order `{}`", order.id)));
            }
            sums::check_last(before, night).map_err(|what| {
                refused(format!("the bookings of {} do not add up: {what}", night.time))
                    .hint("nothing was written; this is a bug in the program")
            })
        }
        Entry::Transfer(change) if !change.amount.is_finite() || change.amount == 0.0 => {
            Err(refused(format!("{} is no amount of money", change.amount))
                .hint("give an amount other than 0"))
        }
        Entry::Resumed(_) if stopped(before).is_none() => {
            Err(refused("the account is not halted".to_owned()))
        }
        Entry::Fills { fills, .. } => {
            let mut orders = Orders::of(before);
            for (i, fill) in fills.iter().enumerate() {
                orders.admit(fill).map_err(|refusal| {
                    refused(format!("fill {} (`{}`): {}", i + 1, fill.id, refusal.what)).hint(refusal.hint)
                })?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The night of an entry.
pub(super) fn night_of(entry: &Entry) -> Option<&Night> {
    match entry {
        Entry::Night(night) => Some(night),
        _ => None,
    }
}

/// The halt that no person has ended.
pub(super) fn stopped(entries: &[Entry]) -> Option<&Stop> {
    let last = entries.iter().rev().find_map(|entry| match entry {
        Entry::Halted(stop) => Some(Some(stop)),
        Entry::Resumed(_) => Some(None),
        _ => None,
    });
    last.flatten()
}

/// The reason why a fill is refused, phrased to follow its place, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub what: String,
    pub hint: String,
}

/// An order of a ledger.
#[derive(Clone, Debug)]
pub(super) struct Ordered<'a> {
    /// The number of its night.
    pub night: usize,
    /// The date of its night.
    pub date: Date,
    pub order: &'a Order,
    /// The quantity that fills have reported so far, without a sign.
    pub filled: f64,
}

/// The orders of a ledger, and what of them was reported as filled.
#[derive(Clone, Debug, Default)]
pub(super) struct Orders<'a> {
    by_id: BTreeMap<&'a str, Ordered<'a>>,
    fills: BTreeSet<String>,
}

impl<'a> Orders<'a> {
    pub(super) fn of(entries: &'a [Entry]) -> Self {
        let mut orders = Self::default();
        for entry in entries {
            match entry {
                Entry::Night(night) => {
                    let ordered = |order: &'a Order| Ordered {
                        night: night.number,
                        date: night.date,
                        order,
                        filled: 0.0,
                    };
                    let named = night.orders.iter().map(|order| (order.id.as_str(), ordered(order)));
                    orders.by_id.extend(named);
                }
                Entry::Fills { fills, .. } => fills.iter().for_each(|fill| orders.count(fill)),
                _ => {}
            }
        }
        orders
    }

    pub(super) fn get(&self, id: &str) -> Option<&Ordered<'a>> {
        self.by_id.get(id)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Ordered<'a>> {
        self.by_id.values()
    }

    fn count(&mut self, fill: &FillRow) {
        self.fills.insert(fill.id.clone());
        if let Some(ordered) = self.by_id.get_mut(fill.order.as_str()) {
            ordered.filled += fill.quantity.abs();
        }
    }

    /// Checks a fill, and counts it.
    pub(super) fn admit(&mut self, fill: &FillRow) -> Result<(), Refusal> {
        let refused = |what: String, hint: &str| {
            let hint = hint.to_owned();
            Err(Refusal { what, hint })
        };
        let Some(ordered) = self.by_id.get(fill.order.as_str()) else {
            let known: Vec<&str> = self.by_id.keys().rev().copied().collect();
            let hint = match known.is_empty() {
                true => "it has decided on no orders yet".to_owned(),
                false => format!("the last orders are {}", text::some(known, 5)),
            };
            return refused(format!("the account has no order `{}`", fill.order), &hint);
        };
        let order = ordered.order;
        if self.fills.contains(&fill.id) {
            return refused(
                format!("a fill `{}` was reported before", fill.id),
                "leave out the rows that have been reported already",
            );
        }
        for (name, value) in [
            ("quantity", fill.quantity),
            ("price", fill.price),
            ("commission", fill.commission),
        ] {
            if !value.is_finite() {
                return refused(format!("the {name} {value} is not a finite number"), "correct the row");
            }
        }
        if fill.price <= 0.0 {
            return refused(
                format!("the price {} is not above 0", fill.price),
                "a contract that expires or is assigned is not a fill: leave its row out",
            );
        }
        let sign = match order.side.as_str() {
            "buy" => 1.0,
            "sell" => -1.0,
            side => {
                return refused(
                    format!(
                        "the order `{}` is to {side}, which has no price to be filled at",
                        order.id
                    ),
                    "leave the row out",
                );
            }
        };
        if fill.quantity * sign <= 0.0 {
            return refused(
                format!(
                    "the quantity {} does not fit the order `{}`, which is to {}",
                    fill.quantity, order.id, order.side
                ),
                "a quantity that is bought is above 0, one that is sold below",
            );
        }
        if order.of != fill.of {
            return refused(
                format!("it is of {}, and the order `{}` of {}", fill.of, order.id, order.of),
                "correct the name of the order, or leave it out to have it found",
            );
        }
        if fill.date < ordered.date {
            return refused(
                format!(
                    "its date {} is before the order `{}`, which was decided on {}",
                    fill.date, order.id, ordered.date
                ),
                "correct the date or the order",
            );
        }
        let total = ordered.filled + fill.quantity.abs();
        if total > order.quantity * (1.0 + 1e-9) {
            return refused(
                format!(
                    "with it {total} of the order `{}` are filled, which is for {}",
                    order.id, order.quantity
                ),
                "correct the quantity or the order",
            );
        }
        self.count(fill);
        Ok(())
    }
}
