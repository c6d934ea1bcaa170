//! The format of an environment's tables: Arrow IPC files, read once when it is opened.
//!
//! `env.json` holds configuration, observation and actions by name, normalisation, the names of the parts,
//! and of each world its symbols and the ranges of its splits. A [part](crate::parts), a month, is a file:
//!
//! | file | holds |
//! | --- | --- |
//! | `panel/FROM_TO.arrow` | a row for each date of each world: date, world (where there are several), rate, raw features by date `[F]`, and for each of N symbols mark, price of the open (where fills need it), status, mean volume and volatility (where fills need them), raw features `[N, G]` and hidden values `[N, H]`; under FinRL's rules its risk indicator; where the portfolio is hedged the instrument's quote and the betas `[N]`; and a list of the corporate actions that change holdings `[3]`: the number of the symbol, the ratio of shares, the cash for each share |
//!
//! So a day more changes the file of its own month and `env.json`. [`build`](super::build) writes them,
//! [`step`](super::step) reads them.

use super::config::StocksConfig;
use crate::ipc;
use crate::parts::{Column, Part, mismatch};
use crate::portfolio::World;
use crate::spec::EnvSpec;
use arrow_array::types::{Date32Type, Float32Type, Float64Type, UInt8Type};
use arrow_array::{ArrayRef, Date32Array, Float64Array, RecordBatch};
use arrow_buffer::ScalarBuffer;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::ops::Range;
use std::sync::Arc;

/// The directory of the parts.
pub(crate) const PANEL: &str = "panel";

/// The status of a symbol on a date, by bit.
pub(crate) mod status {
    /// It has a bar: it can be traded at the close.
    pub(crate) const TRADES: u8 = 1;
    /// The symbol's bar has an open.
    pub(crate) const OPENS: u8 = 2;
    /// Positions in it are settled: it counts as delisted from this date on.
    pub(crate) const SETTLES: u8 = 4;
    /// It has been listed, and does not count as delisted.
    pub(crate) const LISTED: u8 = 8;
    /// Positions in a future that hedges move to another contract.
    pub(crate) const ROLLS: u8 = 16;
}

/// The contents of `env.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub config: StocksConfig,
    pub env: EnvSpec,
    /// The names of the features by date, and of those by symbol and date.
    pub features: Vec<String>,
    pub symbol_features: Vec<String>,
    /// The names of the values by symbol and date that no observation shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// The names of the parts, in order.
    pub parts: Vec<String>,
    /// The symbols of one market each. Dates are numbered from a world's first one.
    pub worlds: Vec<World>,
}

impl Spec {
    /// The number of symbols, the same in each world.
    pub(crate) fn symbols(&self) -> usize {
        self.worlds.first().map_or(0, |world| world.symbols.len())
    }
}

/// Dates, T of N symbols, as the columns of the files have them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Panel {
    /// Days since 1970-01-01 `[T]`.
    pub dates: Vec<i32>,
    /// `[T]`.
    pub rate: Vec<f64>,
    /// `[T, N]`: the close; without a bar the last one, as corporate actions leave it; 0 before the first.
    pub mark: Vec<f64>,
    /// `[T, N]`: the open, or the mark before it; empty where fills do not need it.
    pub open: Vec<f64>,
    /// `[T, N]`, bits of [`status`].
    pub status: Vec<u8>,
    /// `[T, N, 2]`: mean daily volume in shares, daily volatility; empty where fills do not need them.
    pub liquidity: Vec<f64>,
    /// `[T]`: FinRL's risk indicator; empty where it has no threshold.
    pub risk: Vec<f64>,
    /// `[T, F]`, raw.
    pub features: Vec<f32>,
    /// `[T, N, G]`, raw.
    pub symbol_features: Vec<f32>,
    /// `[T, N, H]`, which no observation shows.
    pub hidden: Vec<f32>,
    /// `[T, W]` of the instrument that hedges, each row a [`HedgeQuote`]; empty where there is none.
    pub hedge: Vec<f64>,
    /// `[T, N]`: the beta of each symbol to the instrument; empty where it is not hedged by beta.
    pub beta: Vec<f64>,
    /// In the order of dates, numbered from the first one.
    pub events: Vec<Event>,
}

impl Panel {
    /// The file of a part, of the panels of all worlds.
    pub(crate) fn encode(worlds: &[&Self], part: &Part) -> Result<Vec<u8>, StageError> {
        let t = |world: usize| worlds[world].dates.len();
        let floats = |of: fn(&Self) -> &[f64]| part.gather(|world| (of(worlds[world]), t(world)));
        let singles = |of: fn(&Self) -> &[f32]| part.gather(|world| (of(worlds[world]), t(world)));
        let (dates, _) = part.gather(|world| (&worlds[world].dates, t(world)));
        let mut columns: Vec<(&str, ArrayRef)> = vec![("date", Arc::new(Date32Array::from(dates)))];
        if worlds.len() > 1 {
            columns.push(part.world_column());
        }
        let (rate, _) = floats(|panel| &panel.rate);
        columns.push(("rate", Arc::new(Float64Array::from(rate))));
        let (status, width) = part.gather(|world| (&worlds[world].status, t(world)));
        columns.push(("status", ipc::matrix::<UInt8Type>(status, width)?));
        for (name, (values, width)) in [
            ("mark", floats(|panel| &panel.mark)),
            ("open", floats(|panel| &panel.open)),
            ("liquidity", floats(|panel| &panel.liquidity)),
            ("risk", floats(|panel| &panel.risk)),
            ("hedge", floats(|panel| &panel.hedge)),
            ("beta", floats(|panel| &panel.beta)),
        ] {
            if width > 0 {
                columns.push((name, ipc::matrix::<Float64Type>(values, width)?));
            }
        }
        for (name, (values, width)) in [
            ("features", singles(|panel| &panel.features)),
            ("symbol_features", singles(|panel| &panel.symbol_features)),
            ("hidden", singles(|panel| &panel.hidden)),
        ] {
            if width > 0 {
                columns.push((name, ipc::matrix::<Float32Type>(values, width)?));
            }
        }
        let (mut events, mut lengths) = (Vec::new(), Vec::new());
        for (world, rows) in &part.rows {
            for t in rows.clone() {
                let of_date = worlds[*world].events_of(t);
                lengths.push(of_date.len());
                events.extend(of_date.iter().flat_map(|event| event.encode()));
            }
        }
        let events = ipc::matrix::<Float64Type>(events, Event::WIDTH)?;
        columns.push(("events", ipc::lists(events, &lengths)?));
        ipc::write(columns)
    }

    fn events_of(&self, t: usize) -> &[Event] {
        let start = self.events.partition_point(|event| (event.t as usize) < t);
        let count = self.events[start..].partition_point(|event| event.t as usize == t);
        &self.events[start..start + count]
    }

    /// Appends rows of a file.
    pub(crate) fn append(&mut self, file: &PanelFile, rows: &Range<usize>) {
        let start = self.dates.len();
        for t in rows.clone() {
            let of_date =
                &file.events[Event::WIDTH * file.event_starts[t]..Event::WIDTH * file.event_starts[t + 1]];
            let t = (start + t - rows.start) as u32;
            let of_date = of_date.chunks_exact(Event::WIDTH);
            self.events
                .extend(of_date.filter_map(|values| Event::decode(t, values)));
        }
        self.dates.extend_from_slice(file.dates.rows(rows));
        self.status.extend_from_slice(file.status.rows(rows));
        self.rate.extend_from_slice(file.rate.rows(rows));
        self.mark.extend_from_slice(file.mark.rows(rows));
        self.open.extend_from_slice(file.open.rows(rows));
        self.liquidity.extend_from_slice(file.liquidity.rows(rows));
        self.risk.extend_from_slice(file.risk.rows(rows));
        self.hedge.extend_from_slice(file.hedge.rows(rows));
        self.beta.extend_from_slice(file.beta.rows(rows));
        self.features.extend_from_slice(file.features.rows(rows));
        self.symbol_features.extend_from_slice(file.symbol_features.rows(rows));
        self.hidden.extend_from_slice(file.hidden.rows(rows));
    }
}

/// The columns of a part's file, as of [`Panel`], without a copy.
pub(crate) struct PanelFile {
    dates: Column<i32>,
    status: Column<u8>,
    rate: Column<f64>,
    mark: Column<f64>,
    open: Column<f64>,
    liquidity: Column<f64>,
    risk: Column<f64>,
    hedge: Column<f64>,
    beta: Column<f64>,
    features: Column<f32>,
    symbol_features: Column<f32>,
    hidden: Column<f32>,
    /// The start of each date's events, with the end of the last's, and their values.
    event_starts: Vec<usize>,
    events: ScalarBuffer<f64>,
}

impl PanelFile {
    /// The columns of the given widths.
    pub(crate) fn new(batch: &RecordBatch, widths: &Widths) -> Result<Self, StageError> {
        let n = widths.symbols;
        let by_date = |wanted: bool, width: usize| if wanted { width } else { 0 };
        let floats = |name, width| Column::new::<Float64Type>(batch, name, width);
        let singles = |name, width| Column::new::<Float32Type>(batch, name, width);
        let (event_starts, events) = ipc::list_numbers::<Float64Type>(batch, "events", Event::WIDTH)?;
        let file = Self {
            dates: Column::new::<Date32Type>(batch, "date", 1)?,
            status: Column::new::<UInt8Type>(batch, "status", n)?,
            rate: floats("rate", 1)?,
            mark: floats("mark", n)?,
            open: floats("open", by_date(widths.has_open, n))?,
            liquidity: floats("liquidity", by_date(widths.has_liquidity, 2 * n))?,
            risk: floats("risk", by_date(widths.has_risk, 1))?,
            hedge: floats("hedge", by_date(widths.has_hedge, HedgeQuote::WIDTH))?,
            beta: floats("beta", by_date(widths.has_beta, n))?,
            features: singles("features", widths.features)?,
            symbol_features: singles("symbol_features", n * widths.symbol_features)?,
            hidden: singles("hidden", n * widths.hidden)?,
            event_starts,
            events,
        };
        let has_symbol = |values: &[f64]| values[0] >= 0.0 && values[0] < n as f64;
        match file.events.chunks_exact(Event::WIDTH).all(has_symbol) {
            true => Ok(file),
            false => Err(mismatch()),
        }
    }
}

/// The widths of a panel's columns.
pub(crate) struct Widths {
    pub symbols: usize,
    pub features: usize,
    pub symbol_features: usize,
    pub hidden: usize,
    pub has_open: bool,
    pub has_liquidity: bool,
    pub has_risk: bool,
    pub has_hedge: bool,
    pub has_beta: bool,
}

/// The instrument that hedges on a date.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct HedgeQuote {
    /// The close; without a bar the last one, as corporate actions leave it; 0 before the first. Of a future
    /// that of the contract that is held from this date on.
    pub price: f64,
    /// The close of the contract of a future that was held up to this date; else the price.
    pub before: f64,
    /// The open of what was held up to this date, or its price before it; where fills need it.
    pub open: f64,
    /// Bits of [`status`].
    pub status: u8,
    /// The units that one becomes by a corporate action from the date before to this one, and the cash that
    /// is paid for each unit before it.
    pub ratio: f64,
    pub cash: f64,
}

impl HedgeQuote {
    /// The values of a quote in the tables.
    pub(crate) const WIDTH: usize = 6;

    pub(crate) fn encode(self) -> [f64; Self::WIDTH] {
        let status = f64::from(self.status);
        [self.price, self.before, self.open, status, self.ratio, self.cash]
    }

    pub(crate) fn decode(values: &[f64]) -> Option<Self> {
        let &[price, before, open, status, ratio, cash] = values else {
            return None;
        };
        Some(Self {
            price,
            before,
            open,
            status: status as u8,
            ratio,
            cash,
        })
    }

    /// The return, dividends included, of a unit that was held since the quote of the date before, where both
    /// dates have a bar.
    pub(crate) fn total_return(&self, last: &Self) -> Option<f64> {
        let trades = last.status & self.status & status::TRADES != 0;
        trades.then(|| (self.before * self.ratio + self.cash) / last.price - 1.0)
    }
}

/// A corporate action that changes holdings of a symbol from the date before to this one: each share becomes
/// `ratio` shares and `cash`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Event {
    pub t: u32,
    pub symbol: u32,
    pub ratio: f64,
    pub cash: f64,
}

impl Event {
    /// The values of an event in the tables.
    const WIDTH: usize = 3;

    fn encode(&self) -> [f64; Self::WIDTH] {
        [f64::from(self.symbol), self.ratio, self.cash]
    }

    fn decode(t: u32, values: &[f64]) -> Option<Self> {
        let &[symbol, ratio, cash] = values else {
            return None;
        };
        Some(Self {
            t,
            symbol: symbol as u32,
            ratio,
            cash,
        })
    }
}
