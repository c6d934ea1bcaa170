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

use super::config::{FillAt, StocksConfig};
use crate::ipc;
use crate::parts::{Part, TableColumn, TableRows, columns, consistent};
use crate::portfolio::World;
use crate::spec::EnvSpec;
use arrow_array::RecordBatch;
use arrow_array::types::Float64Type;
use arrow_buffer::ScalarBuffer;
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::ops::Range;

/// The directory of the parts.
pub(crate) const PANEL: &str = "panel";

/// The status of a symbol on a date, by bit.
pub(crate) mod status {
    /// The symbol has a bar on the date: it can be traded at the close.
    pub(crate) const TRADES: u8 = 1;
    /// The symbol's bar has an open.
    pub(crate) const OPENS: u8 = 2;
    /// Positions in the symbol are settled: it counts as delisted from this date on.
    pub(crate) const SETTLES: u8 = 4;
    /// The symbol has been listed, and does not count as delisted.
    pub(crate) const LISTED: u8 = 8;
    /// Positions in a future that serves as a hedge move to another contract.
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

/// The width of a column that only some environments have.
fn wide(has: bool, width: usize) -> Option<usize> {
    Some(if has { width } else { 0 })
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

impl TableRows for Panel {
    type Spec = Spec;
    const COLUMNS: &'static [&'static dyn TableColumn<Self>] = columns![Panel:
        One Date32Type "date", dates, |_| Some(1);
        One Float64Type "rate", rate, |_| Some(1);
        Row UInt8Type "status", status, |spec| Some(spec.symbols());
        Row Float64Type "mark", mark, |spec| Some(spec.symbols());
        Row Float64Type "open", open,
            |spec| wide(spec.config.fills.at == FillAt::NextOpen, spec.symbols());
        Row Float64Type "liquidity", liquidity,
            |spec| wide(spec.config.fills.by_volume(), 2 * spec.symbols());
        Row Float64Type "risk", risk, |spec| wide(spec.config.finrl.turbulence_threshold.is_some(), 1);
        Row Float64Type "hedge", hedge, |spec| wide(!spec.config.hedge.is_none(), HedgeQuote::WIDTH);
        Row Float64Type "beta", beta, |spec| wide(spec.config.hedge.has_betas(), spec.symbols());
        Row Float32Type "features", features, |spec| Some(spec.features.len());
        Row Float32Type "symbol_features", symbol_features,
            |spec| Some(spec.symbols() * spec.symbol_features.len());
        Row Float32Type "hidden", hidden, |spec| Some(spec.symbols() * spec.hidden.len());
    ];

    fn dates(&self) -> &[i32] {
        &self.dates
    }
}

impl Panel {
    /// The file of a part, of the panels of all worlds.
    pub(crate) fn encode(worlds: &[&Self], part: &Part) -> Result<Vec<u8>, StageError> {
        let mut columns = Self::arrays(worlds, part)?;
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

    /// The corporate actions that change holdings from the date before to `t`.
    pub(crate) fn events_of(&self, t: usize) -> &[Event] {
        let start = self.events.partition_point(|event| (event.t as usize) < t);
        let count = self.events[start..].partition_point(|event| event.t as usize == t);
        &self.events[start..start + count]
    }
}

/// A part's file, without a copy.
pub(crate) struct PanelFile<'a> {
    batch: &'a RecordBatch,
    /// The start of each date's events, with the end of the last's, and their values.
    event_starts: Vec<usize>,
    events: ScalarBuffer<f64>,
}

impl<'a> PanelFile<'a> {
    /// The file of an environment of `n` symbols.
    pub(crate) fn new(batch: &'a RecordBatch, n: usize) -> Result<Self, StageError> {
        let (event_starts, events) = ipc::list_numbers::<Float64Type>(batch, "events", Event::WIDTH)?;
        let has_symbol = |values: &[f64]| values[0] >= 0.0 && values[0] < n as f64;
        consistent(events.chunks_exact(Event::WIDTH).all(has_symbol))?;
        Ok(Self {
            batch,
            event_starts,
            events,
        })
    }

    /// Appends rows to a panel of an environment of `spec`.
    pub(crate) fn append_to(
        &self,
        panel: &mut Panel,
        spec: &Spec,
        rows: &Range<usize>,
    ) -> Result<(), StageError> {
        let start = panel.dates.len();
        for t in rows.clone() {
            let (first, end) = (self.event_starts[t], self.event_starts[t + 1]);
            let of_date = self.events[Event::WIDTH * first..Event::WIDTH * end].chunks_exact(Event::WIDTH);
            let t = (start + t - rows.start) as u32;
            panel
                .events
                .extend(of_date.filter_map(|values| Event::decode(t, values)));
        }
        panel.append(self.batch, rows, spec)
    }
}

/// The instrument that hedges on a date. Files hold these numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct HedgeQuote {
    /// The close; without a bar the last one, as corporate actions leave it; 0 before the first. Of a future
    /// that of the contract that is held from this date on.
    pub price: f64,
    /// The close of the contract of a future that was held up to this date; else the price.
    pub before: f64,
    /// The open of what was held up to this date, or its price before it; where fills need it.
    pub open: f64,
    /// Bits of [`status`].
    pub status: f64,
    /// The units that one becomes by a corporate action from the date before to this one, and the cash that
    /// is paid for each unit before it.
    pub ratio: f64,
    pub cash: f64,
}

impl HedgeQuote {
    /// The values of a quote in the tables.
    const WIDTH: usize = 6;

    /// Returns whether the status has a flag.
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.status as u8 & flag != 0
    }

    /// The return, dividends included, of a unit that was held since the quote of the date before, where both
    /// dates have a bar.
    pub(crate) fn total_return(&self, last: &Self) -> Option<f64> {
        let trades = last.has(status::TRADES) && self.has(status::TRADES);
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
