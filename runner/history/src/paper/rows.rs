//! The entries of a ledger as rows of one table, for spreadsheets and data frames.
//!
//! An entry is one row, and a night is a row for itself and one for each booking, position and order. The sum
//! of the column `cash` over the rows `opened`, `transfer` and `booking` is the account's cash.

use super::{Entry, Instrument, Ledger, Night};

/// The value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum RowCell {
    /// A text; `None` if there is none.
    Text(Option<String>),
    /// A number; `None` if there is none.
    Number(Option<f64>),
    /// A count.
    Count(usize),
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerRow {
    n: usize,
    hash: String,
    kind: &'static str,
    date: String,
    time: Option<String>,
    night: Option<usize>,
    cause: Option<String>,
    of: Option<Instrument>,
    quantity: Option<f64>,
    multiplier: Option<f64>,
    price: Option<f64>,
    mid: Option<f64>,
    cash: Option<f64>,
    commission: Option<f64>,
    spread: Option<f64>,
    value: Option<f64>,
    nav: Option<f64>,
    order: Option<String>,
    policy: Option<String>,
    data: Option<String>,
    text: Option<String>,
}

/// The value of a column in a row.
type Value = fn(&LedgerRow) -> RowCell;

/// The columns: their names and values.
const COLUMNS: [(&str, Value); 25] = [
    ("n", |row| RowCell::Count(row.n)),
    ("hash", |row| RowCell::Text(Some(row.hash.clone()))),
    ("kind", |row| RowCell::Text(Some(row.kind.to_owned()))),
    ("date", |row| RowCell::Text(Some(row.date.clone()))),
    ("time", |row| RowCell::Text(row.time.clone())),
    ("night", |row| RowCell::Number(row.night.map(|night| night as f64))),
    ("cause", |row| RowCell::Text(row.cause.clone())),
    ("instrument", |row| text(row, |of| Some(of.instrument.clone()))),
    ("symbol", |row| text(row, |of| Some(of.symbol.clone()))),
    ("expiry", |row| {
        text(row, |of| of.expiry.map(|expiry| expiry.to_string()))
    }),
    ("strike", |row| {
        RowCell::Number(row.of.as_ref().and_then(|of| of.strike))
    }),
    ("right", |row| text(row, |of| of.right.clone())),
    ("quantity", |row| RowCell::Number(row.quantity)),
    ("multiplier", |row| RowCell::Number(row.multiplier)),
    ("price", |row| RowCell::Number(row.price)),
    ("mid", |row| RowCell::Number(row.mid)),
    ("cash", |row| RowCell::Number(row.cash)),
    ("commission", |row| RowCell::Number(row.commission)),
    ("spread", |row| RowCell::Number(row.spread)),
    ("value", |row| RowCell::Number(row.value)),
    ("nav", |row| RowCell::Number(row.nav)),
    ("order", |row| RowCell::Text(row.order.clone())),
    ("policy", |row| RowCell::Text(row.policy.clone())),
    ("data", |row| RowCell::Text(row.data.clone())),
    ("text", |row| RowCell::Text(row.text.clone())),
];

fn text(row: &LedgerRow, value: impl Fn(&Instrument) -> Option<String>) -> RowCell {
    RowCell::Text(row.of.as_ref().and_then(value))
}

impl LedgerRow {
    /// The names of the columns.
    pub fn columns() -> impl ExactSizeIterator<Item = &'static str> {
        COLUMNS.iter().map(|(name, _)| *name)
    }

    /// The cells, one for each column.
    pub fn cells(&self) -> impl Iterator<Item = RowCell> {
        COLUMNS.iter().map(|(_, value)| value(self))
    }
}

/// The rows of the nights' parts.
fn night_rows(base: &LedgerRow, night: &Night) -> Vec<LedgerRow> {
    let base = LedgerRow {
        time: Some(night.time.clone()),
        night: Some(night.number),
        policy: Some(night.policy.name.clone()),
        data: Some(night.data.to_string()),
        ..base.clone()
    };
    let mut rows = vec![LedgerRow {
        cash: Some(night.book.cash),
        nav: Some(night.book.nav),
        text: Some(night.action.clone()),
        ..base.clone()
    }];
    rows.extend(night.bookings.iter().map(|booking| LedgerRow {
        kind: "booking",
        cause: Some(booking.cause.name().to_owned()),
        of: booking.of.clone(),
        quantity: Some(booking.quantity),
        multiplier: Some(booking.multiplier),
        price: booking.price,
        mid: booking.mid,
        cash: Some(booking.cash),
        commission: Some(booking.commission),
        spread: Some(booking.spread),
        ..base.clone()
    }));
    rows.extend(night.book.positions.iter().map(|position| LedgerRow {
        kind: "position",
        of: Some(position.of.clone()),
        quantity: Some(position.quantity),
        multiplier: Some(position.multiplier),
        price: position.mark,
        value: Some(position.value),
        ..base.clone()
    }));
    rows.extend(night.orders.iter().map(|order| LedgerRow {
        kind: "order",
        of: Some(order.of.clone()),
        quantity: Some(if order.side == "sell" {
            -order.quantity
        } else {
            order.quantity
        }),
        multiplier: Some(order.multiplier),
        price: order.limit,
        mid: order.mid,
        spread: Some(order.cost),
        order: Some(order.id.clone()),
        text: Some(format!("{}: {}", order.side, order.why)),
        ..base.clone()
    }));
    rows
}

fn entry_rows(base: &LedgerRow, entry: &Entry) -> Vec<LedgerRow> {
    let base = base.clone();
    vec![match entry {
        Entry::Night(night) => return night_rows(&base, night),
        Entry::Fills { fills, layout, .. } => {
            let row = |fill: &super::FillRow| LedgerRow {
                kind: "fill",
                date: fill.date.to_string(),
                time: fill.time.clone(),
                of: Some(fill.of.clone()),
                quantity: Some(fill.quantity),
                price: Some(fill.price),
                commission: Some(fill.commission),
                order: Some(fill.order.clone()),
                text: Some(format!("{layout} {}", fill.id)),
                ..base.clone()
            };
            return fills.iter().map(row).collect();
        }
        Entry::Opened(opened) => LedgerRow {
            cash: Some(opened.capital),
            nav: Some(opened.capital),
            policy: Some(opened.version.name.clone()),
            text: Some(opened.policy.clone()),
            ..base
        },
        Entry::Transfer(change) => LedgerRow {
            cash: Some(change.amount),
            text: change.why.clone(),
            ..base
        },
        Entry::Policy(moved) => LedgerRow {
            policy: Some(moved.to.name.clone()),
            text: Some(format!("{} -> {}", moved.from.name, moved.to.name)),
            ..base
        },
        Entry::Correction(correction) => LedgerRow {
            mid: correction.before,
            price: correction.after,
            value: Some(correction.difference),
            data: Some(correction.data.to_string()),
            text: Some(format!("{} of {}", correction.what, correction.of)),
            ..base
        },
        Entry::Halted(stop) | Entry::Resumed(stop) | Entry::Closed(stop) => LedgerRow {
            cause: Some(stop.by.clone()),
            text: Some(stop.why.clone()),
            ..base
        },
    }]
}

impl Ledger {
    /// The entries as rows, in order.
    pub fn rows(&self) -> Vec<LedgerRow> {
        let mut rows = Vec::new();
        for (n, (entry, hash)) in self.entries().iter().zip(self.hashes()).enumerate() {
            let base = LedgerRow {
                n,
                hash: hash.clone(),
                kind: entry.kind(),
                date: entry.date().to_string(),
                ..LedgerRow::default()
            };
            rows.extend(entry_rows(&base, entry));
        }
        rows
    }

    /// The rows as CSV with a header. Numbers are written so that they are read again exactly.
    pub fn csv(&self) -> String {
        let mut out = LedgerRow::columns().collect::<Vec<_>>().join(",") + "\n";
        for row in self.rows() {
            let cells: Vec<String> = row
                .cells()
                .map(|cell| match cell {
                    RowCell::Text(text) => quoted(&text.unwrap_or_default()),
                    RowCell::Number(number) => number.map(|number| number.to_string()).unwrap_or_default(),
                    RowCell::Count(count) => count.to_string(),
                })
                .collect();
            out.push_str(&(cells.join(",") + "\n"));
        }
        out
    }
}

/// A field of CSV, in quotes where it needs them.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
