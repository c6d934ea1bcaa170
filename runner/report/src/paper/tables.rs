//! The book, the orders, the fills and the costs of a paper account.

use super::{LISTED, figure, percent};
use crate::html::{escape, section};
use runner_engine::row;
use runner_history::paper::{Booking, Cause, Entry, FillRow, Instrument, Ledger, Night, Order};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The Greeks that are shown, in this order.
const GREEKS: [&str; 4] = ["delta", "gamma", "vega", "theta"];

pub(super) fn positions(night: &Night) -> String {
    let mut rows = Vec::new();
    let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
    for position in &night.book.positions {
        for name in GREEKS {
            if let Some(value) = position.greeks.get(name) {
                *totals.entry(name).or_default() += value;
            }
        }
        let greek = |name: &str| position.greeks.get(name).map(|value| figure(*value));
        rows.push(row![
            escape(&position.of.to_string()),
            figure(position.quantity),
            position.mark.map(figure),
            figure(position.value),
            greek(GREEKS[0]),
            greek(GREEKS[1]),
            greek(GREEKS[2]),
            greek(GREEKS[3]),
            position.opened,
        ]);
    }
    let book = &night.book;
    let total = |name: &str| totals.get(name).map(|value| figure(*value));
    rows.push(row!["cash", "", "", figure(book.cash), "", "", "", "", ""]);
    rows.push(row![
        "in all",
        "",
        "",
        figure(book.nav),
        total(GREEKS[0]),
        total(GREEKS[1]),
        total(GREEKS[2]),
        total(GREEKS[3]),
        "",
    ]);
    let head = [
        "held", "quantity", "mark", "value", "delta", "gamma", "vega", "theta", "opened",
    ];
    let text = format!(
        "<p class=\"dim\">gross {}, margin {}, cost of closing everything {}{}</p>\n",
        figure(book.gross),
        figure(book.margin),
        figure(book.closing_cost),
        book.underlying
            .map(|price| format!(", underlying {}", figure(price)))
            .unwrap_or_default()
    );
    section(&format!("<h3>Positions on {}</h3>", escape(&night.time)), &head, &rows) + &text
}

pub(super) fn orders(night: &Night) -> String {
    let row = |order: &Order| {
        row![
            escape(&order.id),
            escape(&order.side),
            figure(order.quantity),
            escape(&order.of.to_string()),
            order.limit.map(figure),
            order.bid.map(figure),
            order.mid.map(figure),
            order.ask.map(figure),
            figure(order.cost),
            escape(&order.why),
        ]
    };
    let rows: Vec<Vec<String>> = night.orders.iter().map(row).collect();
    let head = [
        "order", "side", "quantity", "of", "limit", "bid", "mid", "ask", "cost", "why",
    ];
    let mut out = format!("<h3>Tonight</h3>\n<p>{}</p>\n", escape(&night.action));
    out.push_str(&section("", &head, &rows));
    for refused in &night.refused {
        let _ = writeln!(out, "<p class=\"dim\">not carried out: {}</p>", escape(refused));
    }
    for note in &night.notes {
        let _ = writeln!(out, "<p class=\"dim\">{}</p>", escape(note));
    }
    out
}

/// The bookings of a night that fill the order of something.
fn filled<'a>(night: &'a Night, of: &Instrument) -> impl Iterator<Item = &'a Booking> {
    let is_fill = |cause: Cause| matches!(cause, Cause::Fill | Cause::Hedge | Cause::Liquidation);
    let bookings = night.bookings.iter();
    bookings.filter(move |booking| is_fill(booking.cause) && booking.of.as_ref() == Some(of))
}

/// The last orders with the prices of their decisions and of their fills.
pub(super) fn fills(ledger: &Ledger, nights: &[&Night]) -> String {
    let mut real: BTreeMap<&str, Vec<&FillRow>> = BTreeMap::new();
    for entry in ledger.entries() {
        if let Entry::Fills { fills, .. } = entry {
            for fill in fills {
                real.entry(&fill.order).or_default().push(fill);
            }
        }
    }
    let mut rows = Vec::new();
    for pair in nights.windows(2).rev() {
        for order in pair[0].orders.iter().rev() {
            let (mut quantity, mut value) = (0.0, 0.0);
            for booking in filled(pair[1], &order.of) {
                quantity += booking.quantity;
                value += booking.quantity * booking.price.unwrap_or(f64::NAN);
            }
            let price = (quantity != 0.0)
                .then(|| value / quantity)
                .filter(|price| price.is_finite());
            // Paid above the decision's mid, or received below it: a cost.
            let against = price.zip(order.mid).map(|(price, mid)| {
                let moved = (price - mid) * quantity * order.multiplier;
                figure(moved)
            });
            let reals = real.get(order.id.as_str());
            let real_price = reals.map(|fills| {
                let size: f64 = fills.iter().map(|fill| fill.quantity).sum();
                let value: f64 = fills.iter().map(|fill| fill.quantity * fill.price).sum();
                figure(value / size)
            });
            rows.push(row![
                escape(&order.id),
                escape(&order.side),
                escape(&order.of.to_string()),
                figure(order.quantity),
                order.mid.map(figure),
                order.limit.map(figure),
                figure(quantity.abs()),
                price.map(figure),
                against,
                real_price,
            ]);
        }
        if rows.len() >= LISTED {
            break;
        }
    }
    rows.truncate(LISTED);
    let head = [
        "order",
        "side",
        "of",
        "quantity",
        "mid at the decision",
        "limit",
        "filled",
        "price",
        "cost against the decision",
        "broker's price",
    ];
    section("<h3>Fills against the prices of their decisions</h3>", &head, &rows)
}

/// The name of a cause, as ledgers have it.
fn cause_name(cause: Cause) -> String {
    let name = serde_json::to_value(cause).ok();
    let name = name.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
    name.replace('_', " ")
}

pub(super) fn costs(nights: &[&Night]) -> String {
    #[derive(Default)]
    struct Sum {
        bookings: usize,
        cash: f64,
        commission: f64,
        spread: f64,
    }
    let mut sums: BTreeMap<Cause, Sum> = BTreeMap::new();
    for booking in nights.iter().flat_map(|night| &night.bookings) {
        let sum = sums.entry(booking.cause).or_default();
        sum.bookings += 1;
        sum.cash += booking.cash;
        sum.commission += booking.commission;
        sum.spread += booking.spread;
    }
    let row = |(cause, sum): (&Cause, &Sum)| {
        row![
            cause_name(*cause),
            sum.bookings.to_string(),
            figure(sum.cash),
            figure(sum.commission),
            figure(sum.spread),
        ]
    };
    let mut rows: Vec<Vec<String>> = sums.iter().map(row).collect();
    if !rows.is_empty() {
        let total = |of: fn(&Sum) -> f64| figure(sums.values().map(of).sum());
        rows.push(row![
            "in all",
            sums.values().map(|sum| sum.bookings).sum::<usize>().to_string(),
            total(|sum| sum.cash),
            total(|sum| sum.commission),
            total(|sum| sum.spread),
        ]);
    }
    let head = ["cause", "bookings", "cash", "commission", "spread and slippage"];
    section("<h3>Cash and costs by cause</h3>", &head, &rows)
}

pub(super) fn accounts_beside(nights: &[&Night]) -> String {
    let Some(last) = nights.last() else {
        return String::new();
    };
    let row = |(name, shadow): (&String, &runner_history::paper::Shadow)| {
        let since = nights.iter().filter(|night| night.number > shadow.since);
        let of = since.filter_map(|night| night.beside.get(name));
        let (mut growth, mut costs) = (0.0, 0.0);
        for night in of {
            growth += night.log_return;
            costs += night.costs;
        }
        row![
            escape(name),
            shadow.policy.as_ref().map(|policy| escape(&policy.name)),
            figure(shadow.nav),
            percent(growth.exp() - 1.0),
            percent(costs),
            shadow.since.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = last.beside.iter().map(row).collect();
    let head = ["account", "policy", "net asset value", "return", "costs", "since night"];
    section("<h3>Accounts beside it</h3>", &head, &rows)
}

pub(super) fn last_nights(nights: &[&Night]) -> String {
    let row = |night: &&Night| {
        row![
            escape(&night.time),
            figure(night.book.nav),
            percent(night.log_return.exp() - 1.0),
            percent(night.turnover),
            percent(night.costs),
            escape(&night.policy.name),
            escape(&night.action),
            night.orders.len().to_string(),
            escape(&night.notes.join("; ")),
        ]
    };
    let rows: Vec<Vec<String>> = nights.iter().rev().take(LISTED).map(row).collect();
    let head = [
        "night",
        "net asset value",
        "return",
        "turnover",
        "costs",
        "policy",
        "decision",
        "orders",
        "notes",
    ];
    section("<h3>Nights</h3>", &head, &rows)
}
