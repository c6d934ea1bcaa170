//! The quotes of a chain as numeric columns.

use super::config::{ForwardSource, ImpliedVolatilityConfig};
use crate::numerics::parity::Pair;
use crate::stage::stated::{Stated, yields};
use arrow_array::{RecordBatch, StringArray};
use datasets::{Date, SnapshotTime};
use stages_core::{StageError, table};
use std::ops::Range;

/// The columns of a chain that the computation reads.
pub(super) struct Quotes<'a> {
    pub times: Vec<SnapshotTime>,
    pub expiries: Vec<Date>,
    pub roots: &'a StringArray,
    pub strikes: Vec<f64>,
    pub calls: Vec<bool>,
    bids: Vec<f64>,
    asks: Vec<f64>,
    lasts: Vec<f64>,
    pub spots: Vec<f64>,
    pub stated: Stated,
    /// The continuous yields, including rates of borrowing.
    pub yields: Vec<f64>,
}

impl<'a> Quotes<'a> {
    pub(super) fn new(batch: &'a RecordBatch, config: &ImpliedVolatilityConfig) -> Result<Self, StageError> {
        // In a chain that this stage made, the columns are its own results, which are computed anew unless
        // they are asked for.
        let is_own = batch.column_by_name("iv_status").is_some();
        let calls = table::bools(batch, "call")?;
        Ok(Self {
            times: table::snapshot_times(batch)?,
            expiries: table::dates(batch, "expiry")?,
            roots: table::texts(batch, "root")?,
            strikes: table::floats_or_nan(batch, "strike")?,
            calls: (0..batch.num_rows()).map(|i| calls.value(i)).collect(),
            bids: table::floats_or_nan(batch, "bid")?,
            asks: table::floats_or_nan(batch, "ask")?,
            lasts: table::floats_or_nan(batch, "last")?,
            spots: table::floats_or_nan(batch, "underlying")?,
            stated: if is_own && config.forward != ForwardSource::Column {
                Stated::nothing(batch.num_rows())
            } else {
                Stated::of(batch)?
            },
            yields: yields(batch, &config.dividend_yield, &config.borrow_rate)?,
        })
    }

    /// The price and spread of row `i`; NaN without a quote.
    pub(super) fn price(&self, i: usize) -> (f64, f64) {
        let (bid, ask, last) = (self.bids[i], self.asks[i], self.lasts[i]);
        if bid > 0.0 && ask >= bid {
            (0.5 * (bid + ask), ask - bid)
        } else if bid.is_nan() && ask.is_nan() && last >= 0.0 {
            (last, 0.0)
        } else {
            (f64::NAN, f64::NAN)
        }
    }

    /// The strikes among `rows` that have both a call and a put.
    pub(super) fn pairs(&self, rows: Range<usize>) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for i in rows.start..rows.end.saturating_sub(1) {
            if self.calls[i] && !self.calls[i + 1] && self.strikes[i] == self.strikes[i + 1] {
                let ((call, wide), (put, far)) = (self.price(i), self.price(i + 1));
                let pair = Pair {
                    strike: self.strikes[i],
                    difference: call - put,
                    spread: wide + far,
                };
                if pair.difference.is_finite() && pair.strike > 0.0 && call > 0.0 && put > 0.0 {
                    pairs.push(pair);
                }
            }
        }
        pairs
    }
}
