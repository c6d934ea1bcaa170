//! Pricing terms that the rows of a chain state beside their quotes, in the columns of
//! [`datasets::schema::PRICING_TERMS`].

use super::curves::Curves;
use super::time::TimeConfig;
use super::yields::Yield;
use crate::numerics::batch::Columns;
use arrow_array::RecordBatch;
use cache::Store;
use datasets::schema::SNAPSHOT;
use datasets::{Date, SnapshotTime};
use stages_core::dataset::Partition;
use stages_core::{StageError, table};
use stages_numerics::special::{log, log_ratio};
use std::ops::Range;

/// The columns of a chain that its Greeks are computed from, where it has them.
const PRICED_COLUMNS: [&str; 14] = [
    "symbol",
    "date",
    SNAPSHOT.name,
    "expiry",
    "root",
    "strike",
    "call",
    "underlying",
    "implied_volatility",
    "forward",
    "discount_factor",
    "years",
    "dividend_yield",
    "borrow_rate",
];

/// Reads the columns of a chain's partition that its Greeks are computed from.
pub(super) fn read_priced(store: &Store, partition: &Partition) -> Result<RecordBatch, StageError> {
    table::columns_from_parquet(store.blob(partition.blob.blob)?, &PRICED_COLUMNS)
}

/// Forward, discount factor and time in years by row; NaN where the chain states none. A value stated by some
/// rows of an expiry at a snapshot, and contradicted by none, holds for all of its rows.
pub(super) struct Stated {
    pub forward: Vec<f64>,
    pub discount: Vec<f64>,
    pub years: Vec<f64>,
}

impl Stated {
    /// Reads the terms that a chain states.
    pub(super) fn of(chain: &RecordBatch) -> Result<Self, StageError> {
        let expiries = expiries(chain)?;
        let column = |name: &str, least: f64| by_expiry(chain, name, |value| value >= least, &expiries);
        Ok(Self {
            forward: column("forward", f64::MIN_POSITIVE)?,
            discount: column("discount_factor", f64::MIN_POSITIVE)?,
            years: column("years", 0.0)?,
        })
    }

    /// The terms of a chain of `rows` rows that states none: all NaN.
    pub(super) fn nothing(rows: usize) -> Self {
        let none = || vec![f64::NAN; rows];
        Self {
            forward: none(),
            discount: none(),
            years: none(),
        }
    }
}

/// The yield of each row plus its rate of borrowing, each from the chain if that states it, otherwise from
/// the configuration.
///
/// # Errors
/// When a setting contradicts the chain, or has no rate for a row.
pub(super) fn yields(
    chain: &RecordBatch,
    dividend_yield: &Yield,
    borrow_rate: &Yield,
) -> Result<Vec<f64>, StageError> {
    let of = |name: &str, set: &Yield| -> Result<Vec<f64>, StageError> {
        let mut rows = set.of_rows(name, chain)?;
        if chain.column_by_name(name).is_none() {
            return Ok(rows);
        }
        let stated = by_expiry(chain, name, f64::is_finite, &expiries(chain)?)?;
        for (i, (row, stated)) in rows.iter_mut().zip(stated).enumerate() {
            if stated.is_nan() {
                continue;
            }
            if !set.is_unset() && *row != stated {
                let symbol = table::texts(chain, "symbol")?.value(i);
                let (date, expiry) = (table::dates(chain, "date")?[i], table::dates(chain, "expiry")?[i]);
                return Err(StageError::new(format!(
                    "`{name}: {row}` contradicts the chain, which states {stated} for {symbol} on {date}, \
                    expiry {expiry}"
                ))
                .hint(format!(
                    "leave `{name}` out; if the chain is wrong, do not map `{name}` in the stage that reads \
                    it"
                )));
            }
            *row = stated;
        }
        Ok(rows)
    };
    let mut yields = of("dividend_yield", dividend_yield)?;
    for (total, borrow) in yields.iter_mut().zip(of("borrow_rate", borrow_rate)?) {
        *total += borrow;
    }
    Ok(yields)
}

/// The terms by which a model prices the rows of a chain: those that the chain states, or else those of the
/// configuration.
pub(super) struct PricingTerms {
    pub times: Vec<SnapshotTime>,
    pub expiries: Vec<Date>,
    call: Vec<bool>,
    strike: Vec<f64>,
    pub volatility: Vec<f64>,
    /// The price of the underlying; NaN where the chain has none.
    pub spot: Vec<f64>,
    /// The forward price; NaN where the chain states none.
    pub forward: Vec<f64>,
    pub years: Vec<f64>,
    /// The interest rate to the expiry, continuously compounded.
    pub rate: Vec<f64>,
    /// The continuous yield, including the rate of borrowing.
    pub dividend_yield: Vec<f64>,
}

impl PricingTerms {
    /// Collects the terms. `rate` is used where neither the chain nor a curve has one; `dividend_yield` and
    /// `borrow_rate` are the settings.
    ///
    /// # Errors
    /// When a column is missing; and the errors of [`yields`].
    pub(super) fn of(
        chain: &RecordBatch,
        time: &TimeConfig,
        curves: &Curves,
        rate: f64,
        (dividend_yield, borrow_rate): (&Yield, &Yield),
    ) -> Result<Self, StageError> {
        let calls = table::bools(chain, "call")?;
        let strike = table::floats_or_nan(chain, "strike")?;
        let volatility = table::floats_or_nan(chain, "implied_volatility")
            .map_err(|err| err.hint("put a stage with `uses: greeks/implied_volatility` before this one"))?;
        let spot = table::floats_if_any(chain, "underlying")?;
        let times = table::snapshot_times(chain)?;
        let expiries = table::dates(chain, "expiry")?;
        let roots = table::texts(chain, "root")?;
        let stated = Stated::of(chain)?;
        let (mut years, mut rates) = (stated.years, stated.discount);
        for i in 0..chain.num_rows() {
            if years[i].is_nan() {
                years[i] = time.years(times[i], expiries[i], roots.value(i));
            }
            let t = years[i];
            rates[i] = if rates[i] > 0.0 && t > 0.0 {
                -log(rates[i]) / t
            } else {
                curves.rate(times[i].date, t)
            };
            if rates[i].is_nan() {
                rates[i] = rate;
            }
        }
        Ok(Self {
            times,
            expiries,
            call: (0..chain.num_rows()).map(|i| calls.value(i)).collect(),
            strike,
            volatility,
            spot,
            forward: stated.forward,
            years,
            rate: rates,
            dividend_yield: yields(chain, dividend_yield, borrow_rate)?,
        })
    }

    /// Replaces the yield of row `i` by the one implied by its forward, if it has one.
    pub(super) fn take_yield(&mut self, i: usize) {
        let (forward, spot, years) = (self.forward[i], self.spot[i], self.years[i]);
        if forward > 0.0 && spot > 0.0 && years > 0.0 {
            self.dividend_yield[i] = self.rate[i] - log_ratio(forward, spot) / years;
        }
    }

    /// The columns in the form of the batch kernel.
    pub(super) fn columns(&self) -> Columns<'_> {
        let market = [&self.years, &self.rate, &self.dividend_yield, &self.volatility];
        let [years, rate, dividend_yield, volatility] = market;
        let numbers = [&self.spot, &self.strike, years, rate, dividend_yield, volatility];
        Columns::new(numbers.map(Vec::as_slice), &self.call)
    }
}

/// The row ranges of each expiry of a class at a snapshot.
fn expiries(chain: &RecordBatch) -> Result<Vec<Range<usize>>, StageError> {
    let times = table::snapshot_times(chain)?;
    let expiries = table::dates(chain, "expiry")?;
    let (symbols, roots) = (table::texts(chain, "symbol")?, table::texts(chain, "root")?);
    Ok(table::runs(0..chain.num_rows(), |a, b| {
        expiries[a] == expiries[b]
            && times[a] == times[b]
            && roots.value(a) == roots.value(b)
            && symbols.value(a) == symbols.value(b)
    }))
}

/// The valid values of a column; NaN where there is none. If the rows of an expiry that have a value agree,
/// it holds for all rows of the expiry.
fn by_expiry(
    chain: &RecordBatch,
    name: &str,
    is_valid: impl Fn(f64) -> bool,
    expiries: &[Range<usize>],
) -> Result<Vec<f64>, StageError> {
    let mut values = table::floats_if_any(chain, name)?;
    for value in &mut values {
        if !(value.is_finite() && is_valid(*value)) {
            *value = f64::NAN;
        }
    }
    for expiry in expiries {
        let rows = &mut values[expiry.clone()];
        let Some(first) = rows.iter().copied().find(|value| !value.is_nan()) else {
            continue;
        };
        if rows.iter().all(|value| value.is_nan() || *value == first) {
            rows.fill(first);
        }
    }
    Ok(values)
}
