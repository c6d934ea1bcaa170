//! Entries of a small account for tests: it trades a stock and an option on it.

use super::{
    Book, Booking, Cause, Change, Entry, FillRow, Instrument, Night, Opened, Order, Position, PromiseRecord,
    StandIn, Standing, Stop,
};
use cache::ArtifactDigest;
use chrono::DateTime;
use datasets::Date;
use serde_json::json;

pub(super) fn date(day: usize) -> Date {
    "2024-01-01".parse::<Date>().unwrap().plus(day as i32)
}

pub(super) fn policy(version: u8) -> StandIn {
    StandIn {
        name: format!("desk@{version}"),
        digest: ArtifactDigest::from_bytes([version; 32]),
    }
}

pub(super) fn opened(name: &str) -> Opened {
    Opened {
        name: name.to_owned(),
        opened: DateTime::UNIX_EPOCH,
        policy: "desk@champion".to_owned(),
        version: policy(1),
        capital: 100_000.0,
        world: None,
        from: date(0),
        beside: vec!["cash".to_owned()],
        halt: "hold".to_owned(),
        limits: [("drawdown".to_owned(), 0.2)].into(),
        promise: PromiseRecord {
            false_alarm_rate: 0.05,
            ..PromiseRecord::default()
        },
    }
}

pub(super) fn stock() -> Instrument {
    Instrument {
        instrument: "stock".to_owned(),
        symbol: "AAA".to_owned(),
        ..Instrument::default()
    }
}

pub(super) fn option() -> Instrument {
    Instrument {
        instrument: "option".to_owned(),
        symbol: "SPX".to_owned(),
        expiry: Some("2024-03-15".parse().unwrap()),
        strike: Some(4800.0),
        right: Some("call".to_owned()),
    }
}

pub(super) fn multiplier(of: &Instrument) -> f64 {
    if of.right.is_some() { 100.0 } else { 1.0 }
}

/// An order of `quantity` (sold below 0) at a mid, with half a spread.
pub(super) fn order(id: &str, of: Instrument, quantity: f64, mid: f64, half: f64) -> Order {
    Order {
        id: id.to_owned(),
        side: if quantity < 0.0 { "sell" } else { "buy" }.to_owned(),
        quantity: quantity.abs(),
        multiplier: multiplier(&of),
        bid: Some(mid - half),
        ask: Some(mid + half),
        mid: Some(mid),
        limit: None,
        cost: 0.0,
        why: "target".to_owned(),
        of,
    }
}

/// A trade of the model: `quantity` at a price, with the mid and the commission of a unit.
pub(super) fn booking(of: Instrument, quantity: f64, price: f64, mid: f64, commission: f64) -> Booking {
    let multiplier = multiplier(&of);
    let commission = commission * quantity.abs();
    Booking {
        cause: Cause::Fill,
        of: Some(of),
        quantity,
        multiplier,
        price: Some(price),
        mid: Some(mid),
        cash: -quantity * multiplier * price - commission,
        commission,
        spread: quantity * multiplier * (price - mid),
    }
}

/// The next night of an account: what is booked and decided. The book follows from the bookings, at the marks
/// of 10 for the stock and 20 for the option.
pub(super) fn night(before: &[Entry], bookings: Vec<Booking>, orders: Vec<Order>) -> Entry {
    let nights: Vec<&Night> = before.iter().filter_map(super::check::night_of).collect();
    let number = nights.len();
    let last = before
        .iter()
        .rposition(|entry| matches!(entry, Entry::Night(_)))
        .unwrap_or(0);
    let transfers: f64 = before[last..]
        .iter()
        .map(|entry| match entry {
            Entry::Transfer(change) => change.amount,
            _ => 0.0,
        })
        .sum();
    let mut book = match nights.last() {
        Some(night) => night.book.clone(),
        None => Book {
            cash: opened("a").capital,
            ..Book::default()
        },
    };
    book.cash += transfers;
    for booking in &bookings {
        book.cash += booking.cash;
        let Some(of) = booking.of.clone().filter(|_| booking.quantity != 0.0) else {
            continue;
        };
        let mark = if of.right.is_some() { 20.0 } else { 10.0 };
        let mut held = book.positions.iter().position(|position| position.of == of);
        if held.is_none() {
            book.positions.push(Position {
                quantity: 0.0,
                multiplier: booking.multiplier,
                mark: Some(mark),
                value: 0.0,
                opened: None,
                greeks: [("delta".to_owned(), 0.5)].into(),
                of,
            });
            held = Some(book.positions.len() - 1);
        }
        let position = &mut book.positions[held.unwrap()];
        position.quantity += booking.quantity;
        position.value = position.quantity * position.multiplier * mark;
    }
    book.nav = book.cash + book.positions.iter().map(|position| position.value).sum::<f64>();
    Entry::Night(Box::new(Night {
        time: date(number).to_string(),
        date: date(number),
        number,
        data: ArtifactDigest::from_bytes([9; 32]),
        policy: policy(1),
        bookings,
        book,
        log_return: 0.001 * number as f64,
        risk_free: 0.0001,
        turnover: 0.1,
        costs: 0.0002,
        drawdown: 0.0,
        action: "hold".to_owned(),
        orders,
        refused: Vec::new(),
        standing: Standing {
            growth: 1.0,
            evidence: 0.9,
            ..Standing::default()
        },
        beside: [("cash".to_owned(), super::Shadow::default())].into(),
        notes: Vec::new(),
        state: json!({ "step": number, "cash": 0.1 + 0.2 }),
    }))
}

pub(super) fn fill(order: &str, id: &str, day: usize, of: Instrument, quantity: f64, price: f64) -> FillRow {
    FillRow {
        order: order.to_owned(),
        id: id.to_owned(),
        date: date(day),
        time: None,
        of,
        quantity,
        price,
        commission: 1.0,
    }
}

pub(super) fn fills(day: usize, fills: Vec<FillRow>) -> Entry {
    Entry::Fills {
        date: date(day),
        file: "fills.csv".to_owned(),
        layout: "runner".to_owned(),
        fills,
    }
}

pub(super) fn transfer(day: usize, amount: f64) -> Entry {
    Entry::Transfer(Change {
        date: date(day),
        amount,
        why: None,
    })
}

pub(super) fn stop(day: usize) -> Stop {
    Stop {
        date: date(day),
        by: "person".to_owned(),
        why: "a test".to_owned(),
    }
}

/// An account of three nights: an order for ten options and one for 100 shares, both filled by the model, a
/// transfer, and fills by a broker.
pub(super) fn account() -> Vec<Entry> {
    let mut entries = vec![Entry::Opened(Box::new(opened("a")))];
    let orders = vec![
        order("2024-01-01-1", option(), 10.0, 20.0, 0.5),
        order("2024-01-01-2", stock(), -100.0, 10.0, 0.02),
    ];
    entries.push(night(&entries, vec![], orders));
    let bookings = vec![
        booking(option(), 10.0, 20.5, 20.0, 1.0),
        booking(stock(), -100.0, 9.98, 10.0, 0.01),
    ];
    entries.push(night(
        &entries,
        bookings,
        vec![order("2024-01-02-1", stock(), 50.0, 10.0, 0.02)],
    ));
    entries.push(transfer(1, -5000.0));
    let reported = vec![
        fill("2024-01-01-1", "f1", 1, option(), 6.0, 20.3),
        fill("2024-01-01-2", "f2", 1, stock(), -100.0, 9.99),
    ];
    entries.push(fills(1, reported));
    entries.push(night(&entries, vec![booking(stock(), 50.0, 10.02, 10.0, 0.01)], vec![]));
    entries
}
