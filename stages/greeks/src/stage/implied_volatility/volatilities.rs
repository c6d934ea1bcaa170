//! The columns that the stage adds to a chain.

use super::config::ImpliedVolatilityConfig;
use super::conventions::{Conventions, Styles};
use super::quotes::Quotes;
use super::terms::{Terms, snapshot_terms};
use crate::numerics::american;
use crate::numerics::american::grid::{Dividend, Grid};
use crate::numerics::formula::Contract;
use crate::numerics::implied::{Prices, implied_volatilities};
use crate::stage::curves::Curves;
use crate::stage::dividends;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt8Array};
use arrow_schema::{Field, Schema};
use datasets::contract::Exercise;
use datasets::schema::{IMPLIED_VOLATILITY, OPTION_CHAIN, SNAPSHOT};
use rayon::prelude::*;
use stages_core::StageError;
use stages_core::table::{self, Origin};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::special::{log, log_ratio};
use std::sync::Arc;

/// The origin of a column: the chain, or [`IMPLIED_VOLATILITY`], of which an expiry's rows share all but the
/// volatility and its status.
pub(super) fn origin(name: &str) -> Origin {
    match IMPLIED_VOLATILITY.iter().any(|column| column.name == name) {
        false => Origin::Source,
        true if name == "implied_volatility" => Origin::Plain,
        true => Origin::New,
    }
}

/// Adds the columns of [`IMPLIED_VOLATILITY`] to a chain.
pub(super) fn add_volatility(
    batch: &RecordBatch,
    config: &ImpliedVolatilityConfig,
    conventions: &Conventions,
    curves: Option<&Curves>,
) -> Result<RecordBatch, StageError> {
    let quotes = Quotes::new(batch, config)?;
    let snapshots = table::runs(0..batch.num_rows(), |a, b| quotes.times[a] == quotes.times[b]);
    let terms: Vec<Terms> = snapshots
        .into_par_iter()
        .flat_map_iter(|rows| snapshot_terms(&quotes, rows, config, conventions, curves))
        .collect();
    let values = |f: fn(&Terms) -> f64| terms.iter().map(f).collect::<Vec<f64>>();
    let (price, forward) = (values(|row| row.price), values(|row| row.forward));
    let (discount, years) = (values(|row| row.discount), values(|row| row.years));
    let european = |price: &[f64]| {
        implied_volatilities(&Prices {
            price,
            forward: &forward,
            strike: &quotes.strikes,
            discount: &discount,
            years: &years,
            call: &quotes.calls,
        })
    };
    let (volatility, status) = match &conventions.styles {
        Styles::All(Exercise::European) => european(&price),
        Styles::All(Exercise::American) => american_volatilities(&quotes, &terms, config),
        styles @ Styles::American(_) => {
            // Each method gets the prices of its own rows, and NaN for the others, which it skips.
            let is_american: Vec<bool> = (0..terms.len())
                .map(|i| styles.is_american(quotes.roots.value(i)))
                .collect();
            let of = |american: bool| -> Vec<f64> {
                let own = |(price, is): (&f64, &bool)| if *is == american { *price } else { f64::NAN };
                price.iter().zip(&is_american).map(own).collect()
            };
            let (mut volatility, mut status) = european(&of(false));
            let american: Vec<Terms> = terms
                .iter()
                .zip(of(true))
                .map(|(terms, price)| Terms { price, ..*terms })
                .collect();
            let found = american_volatilities(&quotes, &american, config);
            for (i, is) in is_american.iter().enumerate() {
                if *is {
                    (volatility[i], status[i]) = (found.0[i], found.1[i]);
                }
            }
            (volatility, status)
        }
    };
    let (years, status): (ArrayRef, ArrayRef) =
        (Arc::new(Float64Array::from(years)), Arc::new(UInt8Array::from(status)));
    let column = |name: &str| -> ArrayRef {
        match name {
            "years" => years.clone(),
            "forward" => Arc::new(table::nullable(&forward)),
            "discount_factor" => Arc::new(table::nullable(&discount)),
            "implied_volatility" => Arc::new(table::nullable(&volatility)),
            _ => status.clone(),
        }
    };
    let mut fields: Vec<Arc<Field>> = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        if origin(field.name()) == Origin::Source {
            fields.push(field.clone());
            arrays.push(array.clone());
        }
    }
    // The volatility keeps its position in the chain's schema; the other columns follow.
    let place = OPTION_CHAIN
        .iter()
        .position(|column| column.name == "implied_volatility")
        .map(|place| place + usize::from(batch.column_by_name(SNAPSHOT.name).is_some()));
    for new in IMPLIED_VOLATILITY {
        let at = match place {
            Some(place) if new.name == "implied_volatility" && place <= fields.len() => place,
            _ => fields.len(),
        };
        fields.insert(at, Arc::new(table::field(new)));
        arrays.insert(at, column(new.name));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// The volatilities and statuses of American contracts. The rate comes from the discount factor, and the
/// yield from the forward unless there are cash dividends ahead.
fn american_volatilities(
    quotes: &Quotes<'_>,
    terms: &[Terms],
    config: &ImpliedVolatilityConfig,
) -> (Vec<f64>, Vec<u8>) {
    const CHUNK: usize = 256;
    let contract = |i: usize, terms: &Terms| {
        let rate = -log(terms.discount) / terms.years;
        let dividend_yield = rate - log_ratio(terms.forward, quotes.spots[i]) / terms.years;
        let numbers = [
            quotes.spots[i],
            quotes.strikes[i],
            terms.years,
            rate,
            dividend_yield,
            f64::NAN,
        ];
        Contract::from_array(numbers, quotes.calls[i])
    };
    terms
        .par_chunks(CHUNK)
        .enumerate()
        .flat_map_iter(|(chunk, terms)| {
            let first = chunk * CHUNK;
            let mut prices: Vec<f64> = terms.iter().map(|terms| terms.price).collect();
            let contracts: Vec<Contract> =
                (first..).zip(terms).map(|(i, terms)| contract(i, terms)).collect();
            let cash: Vec<Vec<Dividend>> = (first..)
                .zip(terms)
                .map(|(i, terms)| {
                    dividends::ahead(&config.dividends, quotes.times[i].date, quotes.expiries[i], terms.years)
                })
                .collect();
            // A price of NaN makes the batch method skip contracts with cash dividends.
            for (price, cash) in prices.iter_mut().zip(&cash) {
                *price = if cash.is_empty() { *price } else { f64::NAN };
            }
            let mut found = american::implied_volatilities(&prices, &contracts, InstructionSet::detect());
            for (i, (((found, cash), contract), terms)) in
                (first..).zip(found.iter_mut().zip(&cash).zip(&contracts).zip(terms))
            {
                if !cash.is_empty() {
                    let contract = Contract {
                        dividend_yield: quotes.yields[i],
                        ..*contract
                    };
                    *found = american::implied_on_grid(terms.price, &contract, cash, Grid::STANDARD);
                }
            }
            found
        })
        .map(|(volatility, status)| (volatility, status.code()))
        .unzip()
}
