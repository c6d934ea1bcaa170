//! How fast this machine prices American options.

use crate::numerics::american::{Scheme, greeks, implied_volatilities, lattice, price};
use crate::numerics::formula::Option;
use crate::numerics::kernel::{Columns, Version};
use rayon::prelude::*;
use std::hint::black_box;

/// How many of the options the spectral rows take.
const SPECTRAL: usize = 4_096;
/// And the lattice: enough for each thread, and soon done.
const LATTICE: usize = 8;

/// The rows: what, how many options, and a run over them.
pub(crate) type Row<'a> = (String, usize, Box<dyn Fn() + Sync + 'a>);

/// Rows of American options, for `list` and its columns: price and Greeks on each version of the kernels, implied volatility, and as a reference the
/// lattice of 501 and 1503 steps, whose price is as good (a few 1e-6).
pub(crate) fn rows<'a>(list: &'a [Option], columns: &Columns<'a>) -> Vec<Row<'a>> {
    let n = SPECTRAL.min(list.len());
    let columns = Columns {
        spot: &columns.spot[..n],
        strike: &columns.strike[..n],
        years: &columns.years[..n],
        rate: &columns.rate[..n],
        dividend_yield: &columns.dividend_yield[..n],
        volatility: &columns.volatility[..n],
        call: &columns.call[..n],
    };
    let mut rows: Vec<Row<'a>> = Vec::new();
    for version in Version::available() {
        let name = format!("{version:?}").to_lowercase();
        rows.push((
            format!("American price, {name} kernel"),
            n,
            Box::new(move || {
                black_box(price(&columns, Scheme::STANDARD, version));
            }),
        ));
        rows.push((
            format!("American Greeks, {name} kernel"),
            n,
            Box::new(move || {
                black_box(greeks(&columns, Scheme::STANDARD, version));
            }),
        ));
    }
    let prices = price(&columns, Scheme::STANDARD, Version::best());
    rows.push((
        "American implied volatility".to_owned(),
        n,
        Box::new(move || {
            let found: Vec<f64> = prices
                .par_chunks(64)
                .zip(list[..n].par_chunks(64))
                .flat_map_iter(|(prices, options)| implied_volatilities(prices, options, Version::best()))
                .map(|(volatility, _)| volatility)
                .collect();
            black_box(found);
        }),
    ));
    let some = LATTICE.min(n);
    rows.push((
        "American price, lattice of 501 and 1503 steps".to_owned(),
        some,
        Box::new(move || {
            let sum: f64 = list[..some]
                .par_iter()
                .map(|option| lattice::extrapolated(option, &[], 501))
                .sum();
            black_box(sum);
        }),
    ));
    rows
}
