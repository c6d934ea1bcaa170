//! The surfaces of the snapshots in a partition.

use super::config::SurfaceConfig;
use crate::numerics::formula::{Contract, black_76};
use crate::numerics::surface::{Expiry, Nodes, Quote, Smile, Surface};
use arrow_array::{RecordBatch, StringArray};
use datasets::{Date, SnapshotTime};
use rayon::prelude::*;
use stages_core::{StageError, table};
use stages_numerics::special::log_ratio;
use std::ops::Range;

/// Snapshots with their surfaces.
pub(super) type Days = Vec<(SnapshotTime, Surface)>;

/// The columns of a chain to which a surface is fitted.
pub(super) struct Chain<'a> {
    pub times: Vec<SnapshotTime>,
    expiries: Vec<Date>,
    roots: &'a StringArray,
    strikes: Vec<f64>,
    calls: Vec<bool>,
    pub volatility: Vec<f64>,
    forwards: Vec<f64>,
    discounts: Vec<f64>,
    pub years: Vec<f64>,
    bids: Vec<f64>,
    asks: Vec<f64>,
}

impl<'a> Chain<'a> {
    pub(super) fn new(batch: &'a RecordBatch, config: &SurfaceConfig) -> Result<Self, StageError> {
        let needed = |name: &str| {
            table::floats_or_nan(batch, name)
                .map_err(|err| err.hint("put a stage with `uses: greeks/implied_volatility` before this one"))
        };
        let n = batch.num_rows();
        let calls = table::bools(batch, "call")?;
        let times = table::snapshot_times(batch)?;
        let expiries = table::dates(batch, "expiry")?;
        let roots = table::texts(batch, "root")?;
        let mut years = table::floats_if_any(batch, "years")?;
        for (i, years) in years.iter_mut().enumerate() {
            if years.is_nan() {
                *years = config.time.years(times[i], expiries[i], roots.value(i));
            }
        }
        Ok(Self {
            times,
            expiries,
            roots,
            strikes: table::floats_or_nan(batch, "strike")?,
            calls: (0..n).map(|i| calls.value(i)).collect(),
            volatility: needed("implied_volatility")?,
            forwards: needed("forward")?,
            discounts: table::floats_if_any(batch, "discount_factor")?,
            years,
            bids: table::floats_or_nan(batch, "bid")?,
            asks: table::floats_or_nan(batch, "ask")?,
        })
    }

    /// The log-moneyness `ln(K/F)` of row `i`; NaN without a forward.
    fn log_moneyness(&self, i: usize) -> f64 {
        if self.forwards[i] > 0.0 && self.strikes[i] > 0.0 {
            log_ratio(self.strikes[i], self.forwards[i])
        } else {
            f64::NAN
        }
    }

    /// The volatilities that a smile gives to rows; NaN if there is no smile.
    pub(super) fn fitted(&self, rows: Range<usize>, smile: Option<&Smile<'_>>) -> Vec<f64> {
        let k: Vec<f64> = rows.map(|i| self.log_moneyness(i)).collect();
        match smile {
            Some(smile) => {
                let volatility = |w: f64| (w / smile.years()).sqrt();
                smile.total_variances(&k).into_iter().map(volatility).collect()
            }
            None => vec![f64::NAN; k.len()],
        }
    }

    /// Row `i` as a quote of an out-of-the-money option. The error of its price is half the spread, but at
    /// least 1e-5 of the forward; without bid and ask, 1e-3 of the forward.
    fn quote(&self, i: usize) -> Option<Quote> {
        let (k, volatility, forward) = (self.log_moneyness(i), self.volatility[i], self.forwards[i]);
        let outside = if self.calls[i] { k >= 0.0 } else { k < 0.0 };
        if !outside || volatility.is_nan() || volatility <= 0.0 {
            return None;
        }
        // For an American option, the European price at its volatility.
        let numbers = [1.0, self.strikes[i] / forward, self.years[i], 0.0, 0.0, volatility];
        let option = Contract::from_array(numbers, self.calls[i]);
        let price = black_76(&option).price;
        let discount = if self.discounts[i] > 0.0 {
            self.discounts[i]
        } else {
            1.0
        };
        let spread = 0.5 * (self.asks[i] - self.bids[i]) / (discount * forward);
        let half_spread = if spread.is_nan() { 1e-3 } else { spread.max(1e-5) };
        (price > 0.0 && half_spread.is_finite()).then_some(Quote {
            log_moneyness: k,
            price,
            half_spread,
        })
    }

    /// The surface of one snapshot's rows.
    fn surface(&self, day: Range<usize>, config: &SurfaceConfig) -> Surface {
        let mut expiries: Vec<(f64, Vec<Quote>)> = Vec::new();
        for group in table::runs(day, |a, b| {
            self.expiries[a] == self.expiries[b] && self.roots.value(a) == self.roots.value(b)
        }) {
            let years = self.years[group.start];
            if years * 365.0 >= config.least_days && years > 0.0 {
                expiries.push((years, group.filter_map(|i| self.quote(i)).collect()));
            }
        }
        expiries.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Classes that settle at the same time share a smile.
        expiries.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1.append(&mut later.1);
            }
            same
        });
        Surface::fit(&expiries, config.least_quotes)
    }
}

/// Fits a surface to every snapshot of a partition.
pub(super) fn fit(batch: &RecordBatch, config: &SurfaceConfig) -> Result<Days, StageError> {
    let chain = Chain::new(batch, config)?;
    Ok(
        table::runs(0..batch.num_rows(), |a, b| chain.times[a] == chain.times[b])
            .into_par_iter()
            .map(|day| (chain.times[day.start], chain.surface(day, config)))
            .collect(),
    )
}

/// Serialises snapshots: for each, its date (and instant, if there are several a day), its nodes, and for
/// each expiry the time, the number of quotes, the residual and the prices.
pub(super) fn encode(days: &Days) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (time, surface) in days {
        let nodes = surface.nodes().logs();
        bytes.extend(time.date.0.to_le_bytes());
        bytes.extend(time.instant.iter().flat_map(|instant| instant.to_le_bytes()));
        for length in [nodes.len(), surface.expiries().len()] {
            bytes.extend((length as u32).to_le_bytes());
        }
        let expiries = surface.expiries().iter().flat_map(|expiry| {
            [expiry.years, expiry.quotes as f64, expiry.residual]
                .into_iter()
                .chain(expiry.prices.iter().copied())
        });
        for value in nodes.iter().copied().chain(expiries) {
            bytes.extend(value.to_le_bytes());
        }
    }
    bytes
}

/// Decodes the output of [`encode`]; `None` for other bytes.
pub(super) fn decode(mut bytes: &[u8], is_intraday: bool) -> Option<Days> {
    fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
        let (value, rest) = bytes.split_first_chunk::<N>()?;
        *bytes = rest;
        Some(*value)
    }
    let mut days = Vec::new();
    while !bytes.is_empty() {
        let date = Date(i32::from_le_bytes(take(&mut bytes)?));
        let instant = match is_intraday {
            true => Some(i64::from_le_bytes(take(&mut bytes)?)),
            false => None,
        };
        let (nodes, n) = (
            u32::from_le_bytes(take(&mut bytes)?),
            u32::from_le_bytes(take(&mut bytes)?),
        );
        let mut next = || Some(f64::from_le_bytes(take(&mut bytes)?));
        let logs: Vec<f64> = (0..nodes).map(|_| next()).collect::<Option<_>>()?;
        let mut expiries = Vec::new();
        for _ in 0..n {
            expiries.push(Expiry {
                years: next()?,
                quotes: next()? as usize,
                residual: next()?,
                prices: (0..nodes).map(|_| next()).collect::<Option<_>>()?,
            });
        }
        days.push((SnapshotTime { date, instant }, Surface::of(Nodes::of(logs), expiries)));
    }
    Some(days)
}
