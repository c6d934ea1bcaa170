//! A fill in a broker's words, and its order.

use super::Refusal;
use crate::paper::check::{Ordered, Orders};
use crate::paper::{FillRow, Instrument};
use datasets::Date;

/// A fill as a file has it.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The name of the account's order.
    pub order: Option<String>,
    /// The broker's name of the fill.
    pub id: String,
    pub date: Date,
    pub time: Option<String>,
    /// The instrument traded; `None` where the order alone says it.
    pub of: Option<Traded>,
    /// Negative if sold.
    pub quantity: f64,
    pub price: f64,
    /// Above 0 if paid.
    pub commission: f64,
    /// Units of the underlying in one contract, where the file says it.
    pub multiplier: Option<f64>,
}

/// The instrument traded, in a broker's words.
#[derive(Clone, Debug)]
pub(super) struct Traded {
    pub kind: TradedKind,
    pub symbol: String,
    pub expiry: Option<Date>,
    pub strike: Option<f64>,
    pub right: Option<&'static str>,
}

/// A kind of instrument as brokers tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TradedKind {
    Option,
    Future,
    Share,
    /// All but an option.
    Other,
}

impl Traded {
    fn fits(&self, of: &Instrument) -> bool {
        let is_kind = match self.kind {
            TradedKind::Option => of.instrument == "option",
            TradedKind::Future => of.instrument == "future",
            TradedKind::Share => matches!(of.instrument.as_str(), "stock" | "underlying"),
            TradedKind::Other => of.instrument != "option",
        };
        let is_contract = self.kind != TradedKind::Option
            || (self.expiry == of.expiry && self.strike == of.strike && self.right == of.right.as_deref());
        is_kind && is_contract && self.symbol == of.symbol
    }

    /// The name of what was traded, as an account writes it.
    fn shown(&self) -> String {
        let named = Instrument {
            instrument: String::new(),
            symbol: self.symbol.clone(),
            expiry: self.expiry,
            strike: self.strike,
            right: self.right.map(ToOwned::to_owned),
        };
        named.to_string()
    }
}

/// `call` or `put`, from `C`, `P` or the word.
pub(super) fn right(text: &str) -> Result<&'static str, Refusal> {
    match text.to_ascii_lowercase().as_str() {
        "c" | "call" => Ok("call"),
        "p" | "put" => Ok("put"),
        _ => Err(Refusal::new(
            format!("`{text}` is neither a call nor a put"),
            "write `call` or `put`",
        )),
    }
}

impl Row {
    /// The fill of an account's order. `nights` are the account's, in order.
    pub(super) fn matched(self, orders: &Orders<'_>, nights: &[(usize, Date)]) -> Result<FillRow, Refusal> {
        let named = self.order.as_deref();
        let found = match (named, &self.of) {
            (Some(order), _) => orders.get(order),
            (None, Some(of)) => Some(self.order_of(of, orders, nights)?),
            (None, None) => {
                return Err(Refusal::new(
                    "it names neither an order nor what was traded",
                    "fill in `order`, or `symbol` and the rest of the instrument",
                ));
            }
        };
        if let (Some(found), Some(of)) = (found, &self.of)
            && !of.fits(&found.order.of)
        {
            return Err(Refusal::new(
                format!(
                    "it is of {}, and the order `{}` of {}",
                    of.shown(),
                    found.order.id,
                    found.order.of
                ),
                "correct the name of the order, or leave it out to have it found",
            ));
        }
        if let (Some(found), Some(multiplier)) = (found, self.multiplier)
            && found.order.multiplier != multiplier
        {
            return Err(Refusal::new(
                format!(
                    "its multiplier is {multiplier}, and that of the order `{}` {}",
                    found.order.id, found.order.multiplier
                ),
                "the contract is another one, or the environment's `multiplier` is wrong",
            ));
        }
        Ok(FillRow {
            // An order that is not known is refused with its name.
            order: found.map_or_else(|| named.unwrap_or_default().to_owned(), |found| found.order.id.clone()),
            of: found.map(|found| found.order.of.clone()).unwrap_or_default(),
            id: self.id,
            date: self.date,
            time: self.time,
            quantity: self.quantity,
            price: self.price,
            commission: self.commission,
        })
    }

    /// The one order of the row's night with its instrument and side.
    fn order_of<'o, 'a>(
        &self,
        of: &Traded,
        orders: &'o Orders<'a>,
        nights: &[(usize, Date)],
    ) -> Result<&'o Ordered<'a>, Refusal> {
        let side = if self.quantity < 0.0 { "sell" } else { "buy" };
        let before = nights.iter().rev().find(|(_, date)| *date < self.date);
        let same = nights.iter().rev().find(|(_, date)| *date == self.date);
        for (night, _) in before.into_iter().chain(same) {
            let is_it = |ordered: &&Ordered<'_>| {
                ordered.night == *night && ordered.order.side == side && of.fits(&ordered.order.of)
            };
            let found: Vec<&Ordered<'_>> = orders.all().filter(is_it).collect();
            match found.as_slice() {
                [] => {}
                [one] => return Ok(one),
                several => {
                    let ids: Vec<&str> = several.iter().map(|ordered| ordered.order.id.as_str()).collect();
                    return Err(Refusal::new(
                        format!("it may be of each of the orders {}", ids.join(", ")),
                        "name the order of the row",
                    ));
                }
            }
        }
        Err(Refusal::new(
            format!(
                "no order of the account that was open on {} is to {side} {}",
                self.date,
                of.shown()
            ),
            "leave out fills that are not of the account, or name the order",
        ))
    }
}
