//! The surfaces of a partition's days.

use super::config::SurfaceConfig;
use crate::numerics::surface::{Expiry, Quote, Slice, Surface};
use arrow::array::{RecordBatch, StringArray};
use datasets::Date;
use rayon::prelude::*;
use stages_core::{StageError, table};
use stages_numerics::special::{log_ratio, normal_pdf};
use std::ops::Range;

/// Days and their surfaces.
pub(super) type Days = Vec<(Date, Surface)>;

/// The columns of a chain that a surface is fitted to.
pub(super) struct Chain<'a> {
    pub dates: Vec<Date>,
    expiries: Vec<Date>,
    roots: &'a StringArray,
    strikes: Vec<f64>,
    calls: Vec<bool>,
    pub volatility: Vec<f64>,
    forwards: Vec<f64>,
    years: Vec<f64>,
    bids: Vec<f64>,
    asks: Vec<f64>,
}

impl<'a> Chain<'a> {
    pub fn new(batch: &'a RecordBatch, config: &SurfaceConfig) -> Result<Self, StageError> {
        let needed = |name: &str| {
            table::floats_or_nan(batch, name)
                .map_err(|err| err.hint("put a stage with `uses: greeks/implied_volatility` before this one"))
        };
        let n = batch.num_rows();
        let calls = table::bools(batch, "call")?;
        let dates = table::dates(batch, "date")?;
        let expiries = table::dates(batch, "expiry")?;
        let roots = table::texts(batch, "root")?;
        let mut years = table::floats_if_any(batch, "years")?;
        for (i, years) in years.iter_mut().enumerate() {
            if years.is_nan() {
                *years = config.time.years(dates[i], expiries[i], roots.value(i));
            }
        }
        Ok(Self {
            dates,
            expiries,
            roots,
            strikes: table::floats_or_nan(batch, "strike")?,
            calls: (0..n).map(|i| calls.value(i)).collect(),
            volatility: needed("implied_volatility")?,
            forwards: needed("forward")?,
            years,
            bids: table::floats_or_nan(batch, "bid")?,
            asks: table::floats_or_nan(batch, "ask")?,
        })
    }

    /// `ln(K/F)` of a row; NaN without a forward.
    fn log_moneyness(&self, i: usize) -> f64 {
        if self.forwards[i] > 0.0 && self.strikes[i] > 0.0 {
            log_ratio(self.strikes[i], self.forwards[i])
        } else {
            f64::NAN
        }
    }

    /// The volatility that a surface gives a row; NaN where it has none.
    pub fn fitted(&self, i: usize, surface: &Surface) -> f64 {
        let k = self.log_moneyness(i);
        match surface.at(self.years[i]) {
            Some(slice) if self.years[i] > 0.0 && !k.is_nan() => slice.volatility(k, self.years[i]),
            _ => f64::NAN,
        }
    }

    /// A row as a quote out of the money. A volatility may be wrong by half the spread over vega; without bid and ask, by a thousandth of the
    /// forward over vega.
    fn quote(&self, i: usize) -> Option<Quote> {
        let (k, volatility, years) = (self.log_moneyness(i), self.volatility[i], self.years[i]);
        let outside = if self.calls[i] { k >= 0.0 } else { k < 0.0 };
        if !outside || volatility.is_nan() || volatility <= 0.0 {
            return None;
        }
        let deviation = volatility * years.sqrt();
        let vega = self.forwards[i] * years.sqrt() * normal_pdf(0.5 * deviation - k / deviation);
        let spread = 0.5 * (self.asks[i] - self.bids[i]);
        // No quote is surer than a ten-thousandth of the forward.
        let error = if spread.is_nan() { 1e-3 } else { 1e-4 } * self.forwards[i];
        let weight = vega / spread.max(error);
        (weight > 0.0 && weight.is_finite()).then_some(Quote {
            log_moneyness: k,
            volatility,
            weight,
        })
    }

    /// The surface of one day's rows.
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
        // Classes that settle at one time share a smile.
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

/// Fits every day of a partition.
pub(super) fn fit(batch: &RecordBatch, config: &SurfaceConfig) -> Result<Days, StageError> {
    let chain = Chain::new(batch, config)?;
    Ok(
        table::runs(0..batch.num_rows(), |a, b| chain.dates[a] == chain.dates[b])
            .into_par_iter()
            .map(|day| (chain.dates[day.start], chain.surface(day, config)))
            .collect(),
    )
}

/// Writes for each day its date, the number of its expiries, and six numbers of each.
pub(super) fn encode(days: &Days) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (date, surface) in days {
        bytes.extend(date.0.to_le_bytes());
        bytes.extend((surface.expiries().len() as u32).to_le_bytes());
        for expiry in surface.expiries() {
            let [theta, right, left] = expiry.slice.parameters();
            for value in [expiry.years, theta, right, left, expiry.quotes as f64, expiry.residual] {
                bytes.extend(value.to_le_bytes());
            }
        }
    }
    bytes
}

/// Reads the bytes of [`encode`]; `None` of others.
pub(super) fn decode(mut bytes: &[u8]) -> Option<Days> {
    fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
        let (value, rest) = bytes.split_first_chunk::<N>()?;
        *bytes = rest;
        Some(*value)
    }
    let mut days = Vec::new();
    while !bytes.is_empty() {
        let date = Date(i32::from_le_bytes(take(&mut bytes)?));
        let n = u32::from_le_bytes(take(&mut bytes)?);
        let mut expiries = Vec::new();
        for _ in 0..n {
            let mut next = || Some(f64::from_le_bytes(take(&mut bytes)?));
            expiries.push(Expiry {
                years: next()?,
                slice: Slice::of([next()?, next()?, next()?]),
                quotes: next()? as usize,
                residual: next()?,
            });
        }
        days.push((date, Surface::of(expiries)));
    }
    Some(days)
}
