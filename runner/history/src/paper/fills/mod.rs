//! Files of fills: our own, and those of brokers.
//!
//! A file is read as rows of named fields, the fields of a row as a fill in the layout's words, and the fill
//! is matched to an order of the account. The first row that cannot be used refuses the file.

mod alpaca;
mod fields;
mod flex;
mod own;
mod row;
#[cfg(test)]
mod tests;

use super::check::{Orders, Refusal};
use super::{FillRow, Ledger};
use fields::Fields;

use runner_engine::Failure;
use std::borrow::Cow;
use std::fmt;

/// The layout of a file of fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillLayout {
    /// CSV with the columns `order`, `id`, `date`, `time`, `symbol`, `expiry`, `strike`, `right`, `quantity`,
    /// `price` and `commission`.
    Runner,
    /// An Activity Flex statement of Interactive Brokers with the section Trades, XML or CSV.
    IbkrFlex,
    /// The account activities of Alpaca, JSON.
    AlpacaActivities,
}

impl FillLayout {
    /// All layouts.
    pub const ALL: [Self; 3] = [Self::Runner, Self::IbkrFlex, Self::AlpacaActivities];

    /// The name of the layout.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runner => "runner",
            Self::IbkrFlex => "ibkr_flex",
            Self::AlpacaActivities => "alpaca_activities",
        }
    }

    /// The layout of a text, by its first characters and its header.
    fn of(text: &str) -> Self {
        match text.trim_start_matches('\u{feff}').trim_start().chars().next() {
            Some('<') => Self::IbkrFlex,
            Some('[' | '{') => Self::AlpacaActivities,
            _ if flex::is_csv(text) => Self::IbkrFlex,
            _ => Self::Runner,
        }
    }
}

impl fmt::Display for FillLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The fills of a file, matched to orders.
#[derive(Clone, Debug, PartialEq)]
pub struct FillFile {
    /// The layout.
    pub layout: FillLayout,
    /// The fills, in the order of the file.
    pub fills: Vec<FillRow>,
    /// The number of rows that are no fills: expiries, assignments, dividends, totals.
    pub left_out: usize,
}

impl Ledger {
    /// Reads a file of fills, and matches its rows to the orders of the account. A row without the name of an
    /// order is of the last night before its date, or else of a night of its date, if one order alone has its
    /// instrument and side. `file` names the file in messages.
    ///
    /// # Errors
    /// The first row that is not a fill of an order of the account, or is one that was reported before.
    pub fn read_fills(
        &self,
        file: &str,
        bytes: &[u8],
        layout: Option<FillLayout>,
    ) -> Result<FillFile, Failure> {
        let text = String::from_utf8_lossy(bytes);
        if let Cow::Owned(_) = text {
            return Err(Failure::usage(format!("`{file}` is not text in UTF-8"))
                .hint("export it from the broker as CSV, XML or JSON"));
        }
        let layout = layout.unwrap_or_else(|| FillLayout::of(&text));
        let rows = match layout {
            FillLayout::Runner => own::rows(file, &text)?,
            FillLayout::IbkrFlex => flex::rows(file, &text)?,
            FillLayout::AlpacaActivities => alpaca::rows(file, &text)?,
        };
        let nights: Vec<_> = self.nights().map(|night| (night.number, night.date)).collect();
        let mut orders = Orders::of(self.entries());
        let (mut fills, mut left_out) = (Vec::new(), 0);
        for fields in &rows {
            let read = match layout {
                FillLayout::Runner => own::row(fields).map(Some),
                FillLayout::IbkrFlex => flex::row(fields),
                FillLayout::AlpacaActivities => alpaca::row(fields),
            };
            let fill = read.and_then(|row| {
                let Some(row) = row else { return Ok(None) };
                let fill = row.matched(&orders, &nights)?;
                orders.admit(&fill)?;
                Ok(Some(fill))
            });
            match fill.map_err(|refusal| refusal.at(file, &fields.place))? {
                Some(fill) => fills.push(fill),
                None => left_out += 1,
            }
        }
        if fills.is_empty() {
            return Err(Failure::usage(format!("`{file}` has no fills")).hint(format!(
                "it was read in the layout `{layout}`; `--layout` names another one"
            )));
        }
        Ok(FillFile {
            layout,
            fills,
            left_out,
        })
    }
}

impl Refusal {
    fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            hint: hint.into(),
        }
    }

    /// The failure of a row of a file.
    fn at(self, file: &str, place: &str) -> Failure {
        Failure::usage(format!("`{file}`, {place}: {}", self.what))
            .hint(format!("{}; nothing was written", self.hint))
    }
}
