//! The slippage of reported fills: by how much they are worse than the model's fill, and than the mid at
//! which the order was decided.

use super::real::Reported;
use super::{Instrument, Order};
use serde::Serialize;
use std::collections::BTreeMap;

/// The slippage against a price; above 0 where the fill is worse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Slippage {
    /// In currency, over the quantity.
    pub currency: f64,
    /// In basis points of the price.
    pub basis_points: f64,
    /// As a share of half the spread at the decision; `None` without quotes.
    pub half_spreads: Option<f64>,
}

/// The slippage of fills together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlippageRow {
    /// The fills: an instrument, such as `SPX call`, a size, such as `1 to 10`, or `all`.
    pub of: String,
    /// The number of fills.
    pub fills: usize,
    /// Contracts, units or shares, without a sign.
    pub quantity: f64,
    /// The commission.
    pub commission: f64,
    /// Against the model's fill, over the fills that have one.
    pub model: Option<Slippage>,
    /// Against the mid of the decision, over the fills that have one.
    pub decision: Option<Slippage>,
}

/// The slippage of the fills of a ledger: of all, by instrument, and by size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlippageTable {
    /// All fills.
    pub all: SlippageRow,
    /// By symbol and kind of instrument.
    pub instruments: Vec<SlippageRow>,
    /// By the quantity of a fill.
    pub sizes: Vec<SlippageRow>,
}

/// Half the spread of the quotes of an order's decision.
pub(super) fn half_spread(order: &Order) -> Option<f64> {
    let (bid, ask) = order.bid.zip(order.ask)?;
    Some((ask - bid) / 2.0).filter(|half| *half > 0.0)
}

/// A sum of slippages, from which their ratios follow.
#[derive(Default)]
struct Sum {
    fills: usize,
    currency: f64,
    value: f64,
    /// The currency and the half spreads of those with quotes.
    quoted: (f64, f64),
}

impl Sum {
    fn add(&mut self, fill: &Reported<'_>, price: f64, quantity: f64) {
        let units = quantity * fill.order.multiplier;
        let currency = fill.sign() * units * (fill.fill.price - price);
        self.fills += 1;
        self.currency += currency;
        self.value += units * price;
        if let Some(half) = half_spread(fill.order) {
            self.quoted.0 += currency;
            self.quoted.1 += units * half;
        }
    }

    fn ended(&self) -> Option<Slippage> {
        let (currency, half) = self.quoted;
        (self.fills > 0).then(|| Slippage {
            currency: self.currency,
            basis_points: self.currency / self.value * 1e4,
            half_spreads: (half > 0.0).then(|| currency / half),
        })
    }
}

fn row(of: &str, fills: &[&Reported<'_>]) -> SlippageRow {
    let (mut model, mut decision) = (Sum::default(), Sum::default());
    for fill in fills {
        if let Some(booked) = fill.model.filter(|_| fill.matched > 0.0) {
            model.add(fill, booked.price, fill.matched);
        }
        if let Some(mid) = fill.order.mid.filter(|mid| *mid > 0.0) {
            decision.add(fill, mid, fill.fill.quantity.abs());
        }
    }
    SlippageRow {
        of: of.to_owned(),
        fills: fills.len(),
        quantity: fills.iter().map(|fill| fill.fill.quantity.abs()).sum(),
        commission: fills.iter().map(|fill| fill.fill.commission).sum(),
        model: model.ended(),
        decision: decision.ended(),
    }
}

/// `SPX call`, `AAA stock`.
fn kind(of: &Instrument) -> String {
    format!("{} {}", of.symbol, of.right.as_ref().unwrap_or(&of.instrument))
}

/// The number of a size, and its name.
fn size(quantity: f64) -> (usize, &'static str) {
    const SIZES: [(f64, &str); 5] = [
        (1.0, "at most 1"),
        (10.0, "1 to 10"),
        (100.0, "10 to 100"),
        (1000.0, "100 to 1000"),
        (f64::INFINITY, "above 1000"),
    ];
    let at = SIZES.iter().position(|(most, _)| quantity <= *most);
    let at = at.unwrap_or(SIZES.len() - 1);
    (at, SIZES[at].1)
}

/// Measures reported fills; `None` if there are none.
pub(super) fn measure(fills: &[Reported<'_>]) -> Option<SlippageTable> {
    let (mut instruments, mut sizes) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
    for fill in fills {
        instruments.entry(kind(&fill.fill.of)).or_default().push(fill);
        sizes.entry(size(fill.fill.quantity.abs())).or_default().push(fill);
    }
    let all: Vec<&Reported<'_>> = fills.iter().collect();
    (!all.is_empty()).then(|| SlippageTable {
        all: row("all", &all),
        instruments: instruments.iter().map(|(of, fills)| row(of, fills)).collect(),
        sizes: sizes.iter().map(|((_, of), fills)| row(of, fills)).collect(),
    })
}
