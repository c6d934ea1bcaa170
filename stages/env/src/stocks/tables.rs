//! The format of an environment's tables: Arrow IPC files, which are looked up in place.
//!
//! `env.json` holds configuration, observation and actions by name, normalisation, and of each world its symbols and the ranges of its splits. A world of several
//! has a directory of two files, a single one has them at the top:
//!
//! | file | holds |
//! | --- | --- |
//! | `panel.arrow` | a row for each date: rate, raw features by date `[F]`, and for each of N symbols mark, price of the open (where fills need it), status, mean volume and volatility (where fills need them), raw features `[N, G]` and hidden values `[N, H]`; under FinRL's rules its risk indicator; where the portfolio is hedged the instrument's quote and the betas `[N]` |
//! | `events.arrow` | a row for each corporate action that changes holdings: date, symbol, ratio of shares, cash for each share |
//!
//! [`build`](super::build) writes them, [`step`](super::step) reads them.

use super::config::StocksConfig;
use crate::ipc;
use crate::spec::EnvSpec;
use crate::split::Splits;
use arrow_array::types::{Date32Type, Float32Type, Float64Type, UInt8Type, UInt32Type};
use arrow_array::{ArrayRef, Date32Array, Float64Array, RecordBatch, UInt32Array};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::sync::Arc;

pub(crate) const SPEC: &str = "env.json";
const PANEL: &str = "panel.arrow";
const EVENTS: &str = "events.arrow";

/// The status of a symbol on a date, by bit.
pub(crate) mod status {
    /// It has a bar: it can be traded at the close.
    pub(crate) const TRADES: u8 = 1;
    /// Its bar has an open.
    pub(crate) const OPENS: u8 = 2;
    /// Positions in it are settled: it counts as delisted from this date on.
    pub(crate) const SETTLES: u8 = 4;
    /// It has been listed, and does not count as delisted.
    pub(crate) const LISTED: u8 = 8;
    /// Of a future that hedges: positions move to another contract.
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
    pub worlds: Vec<World>,
}

/// A world: the symbols of one market. Dates are numbered from its first one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct World {
    pub name: String,
    /// `[N]`.
    pub symbols: Vec<String>,
    /// The first date at which every feature has had a value.
    pub warm_up: usize,
    pub splits: Splits,
    /// The directory of its files; empty for the top.
    pub directory: String,
}

impl World {
    /// The names of its two files.
    pub(crate) fn files(&self) -> [String; 2] {
        [PANEL, EVENTS].map(|file| match self.directory.is_empty() {
            true => file.to_owned(),
            false => format!("{}/{file}", self.directory),
        })
    }
}

impl Spec {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, StageError> {
        let json =
            serde_json::to_value(self).map_err(|err| StageError::new(format!("cannot write `{SPEC}`: {err}")))?;
        Ok(cache::canonical_json(&json).into_bytes())
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StageError> {
        serde_json::from_slice(bytes).map_err(|err| {
            StageError::new(format!("cannot read `{SPEC}` of the environment: {err}"))
                .hint("it was made by another version or damaged; run the environment's stage again")
        })
    }

    /// The number of symbols, the same in each world.
    pub(crate) fn symbols(&self) -> usize {
        self.worlds.first().map_or(0, |world| world.symbols.len())
    }
}

/// The dates of a world, T of N symbols, as columns of `panel.arrow`.
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
}

impl Panel {
    pub(crate) fn encode(self) -> Result<Vec<u8>, StageError> {
        let t = self.dates.len().max(1);
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("date", Arc::new(Date32Array::from(self.dates))),
            ("rate", Arc::new(Float64Array::from(self.rate))),
        ];
        let width = self.status.len() / t;
        columns.push(("status", ipc::matrix::<UInt8Type>(self.status, width)?));
        for (name, values) in [
            ("mark", self.mark),
            ("open", self.open),
            ("liquidity", self.liquidity),
            ("risk", self.risk),
            ("hedge", self.hedge),
            ("beta", self.beta),
        ] {
            let width = values.len() / t;
            if width > 0 {
                columns.push((name, ipc::matrix::<Float64Type>(values, width)?));
            }
        }
        for (name, values) in [
            ("features", self.features),
            ("symbol_features", self.symbol_features),
            ("hidden", self.hidden),
        ] {
            let width = values.len() / t;
            if width > 0 {
                columns.push((name, ipc::matrix::<Float32Type>(values, width)?));
            }
        }
        ipc::write(columns)
    }

    /// Reads a file of the given widths.
    pub(crate) fn decode(name: &str, file: Bytes, widths: &Widths) -> Result<Self, StageError> {
        let batch = ipc::read(name, file)?;
        let floats = |name: &str, wanted: bool| -> Result<Vec<f64>, StageError> {
            match wanted {
                true => Ok(ipc::numbers::<Float64Type>(&batch, name)?.to_vec()),
                false => Ok(Vec::new()),
            }
        };
        let singles = |name: &str, width: usize| -> Result<Vec<f32>, StageError> {
            match width {
                0 => Ok(Vec::new()),
                _ => Ok(ipc::numbers::<Float32Type>(&batch, name)?.to_vec()),
            }
        };
        let panel = Self {
            dates: ipc::numbers::<Date32Type>(&batch, "date")?.to_vec(),
            rate: floats("rate", true)?,
            mark: floats("mark", true)?,
            open: floats("open", widths.has_open)?,
            status: ipc::numbers::<UInt8Type>(&batch, "status")?.to_vec(),
            liquidity: floats("liquidity", widths.has_liquidity)?,
            risk: floats("risk", widths.has_risk)?,
            features: singles("features", widths.features)?,
            symbol_features: singles("symbol_features", widths.symbol_features)?,
            hidden: singles("hidden", widths.hidden)?,
            hedge: floats("hedge", widths.has_hedge)?,
            beta: floats("beta", widths.has_beta)?,
        };
        let (t, n) = (panel.dates.len(), widths.symbols);
        let fits = panel.rate.len() == t
            && panel.mark.len() == t * n
            && panel.status.len() == t * n
            && panel.open.len() == if widths.has_open { t * n } else { 0 }
            && panel.liquidity.len() == if widths.has_liquidity { 2 * t * n } else { 0 }
            && panel.risk.len() == if widths.has_risk { t } else { 0 }
            && panel.features.len() == t * widths.features
            && panel.symbol_features.len() == t * n * widths.symbol_features
            && panel.hidden.len() == t * n * widths.hidden
            && panel.hedge.len() == if widths.has_hedge { HedgeQuote::WIDTH * t } else { 0 }
            && panel.beta.len() == if widths.has_beta { t * n } else { 0 };
        if fits { Ok(panel) } else { Err(mismatch()) }
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
    /// The close; without a bar the last one, as corporate actions leave it; 0 before the first. Of a future that of the contract that is held from this date on.
    pub price: f64,
    /// Of a future the close of the contract that was held up to this date; else the price.
    pub before: f64,
    /// The open of what was held up to this date, or its price before it; where fills need it.
    pub open: f64,
    /// Bits of [`status`].
    pub status: u8,
    /// The units that one becomes by a corporate action from the date before to this one, and the cash that is paid for each unit before it.
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

    /// The return, dividends included, of a unit that was held since the quote of the date before, where both dates have a bar.
    pub(crate) fn total_return(&self, last: &Self) -> Option<f64> {
        let trades = last.status & self.status & status::TRADES != 0;
        trades.then(|| (self.before * self.ratio + self.cash) / last.price - 1.0)
    }
}

/// A corporate action that changes holdings of a symbol from the date before to this one: each share becomes `ratio` shares and `cash`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Event {
    pub t: u32,
    pub symbol: u32,
    pub ratio: f64,
    pub cash: f64,
}

/// The file of a world's events, in the order of dates.
pub(crate) fn encode_events(events: &[Event]) -> Result<Vec<u8>, StageError> {
    let index = |of: fn(&Event) -> u32| -> ArrayRef { Arc::new(events.iter().map(of).collect::<UInt32Array>()) };
    let number =
        |of: fn(&Event) -> f64| -> ArrayRef { Arc::new(Float64Array::from(events.iter().map(of).collect::<Vec<_>>())) };
    ipc::write(vec![
        ("date", index(|event| event.t)),
        ("symbol", index(|event| event.symbol)),
        ("ratio", number(|event| event.ratio)),
        ("cash", number(|event| event.cash)),
    ])
}

/// Reads the file of a world's events.
pub(crate) fn decode_events(name: &str, file: Bytes) -> Result<Vec<Event>, StageError> {
    let batch: RecordBatch = ipc::read(name, file)?;
    let (t, symbol) = (
        ipc::numbers::<UInt32Type>(&batch, "date")?,
        ipc::numbers::<UInt32Type>(&batch, "symbol")?,
    );
    let (ratio, cash) = (
        ipc::numbers::<Float64Type>(&batch, "ratio")?,
        ipc::numbers::<Float64Type>(&batch, "cash")?,
    );
    Ok((0..batch.num_rows())
        .map(|i| Event {
            t: t[i],
            symbol: symbol[i],
            ratio: ratio[i],
            cash: cash[i],
        })
        .collect())
}

pub(crate) fn mismatch() -> StageError {
    StageError::new("the environment's tables are inconsistent").hint("run the environment's stage again with --force")
}
