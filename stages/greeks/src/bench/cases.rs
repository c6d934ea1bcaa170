//! The computations whose speed is measured.

use super::book::Book;
use crate::numerics::american::{self, Scheme};
use crate::numerics::batch::{GreekColumns, greeks, greeks_into};
use crate::numerics::formula::Model;
use crate::numerics::implied::{Prices, implied_volatilities_into};
use rayon::prelude::*;
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::special::exp;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

/// The number of options for the portable kernels, in which a fused multiplication is a function call on
/// x86-64; a tenth of it for implied volatilities.
const PORTABLE: usize = 200_000;
/// The number of options for the spectral method; an eighth of it for its portable kernel.
const SPECTRAL: usize = 4_096;

/// A computation over options, in parallel on rayon's current pool.
pub struct Case<'a> {
    /// The name of the computation, followed for a kernel by its instruction set.
    pub name: String,
    /// The number of options.
    pub options: usize,
    run: Box<dyn Fn() + Sync + 'a>,
}

impl<'a> Case<'a> {
    /// A case in which `run` computes `options` options.
    pub(super) fn new(name: impl Into<String>, options: usize, run: impl Fn() + Sync + 'a) -> Self {
        let (name, run) = (name.into(), Box::new(run));
        Self { name, options, run }
    }

    /// A case of a kernel, named after its instruction set.
    fn kernel(what: &str, on: InstructionSet, options: usize, run: impl Fn() + Sync + 'a) -> Self {
        Self::new(format!("{what}, {}", format!("{on:?}").to_lowercase()), options, run)
    }

    /// Runs the computation once.
    pub fn run(&self) {
        (self.run)();
    }
}

/// The cases of all kernels.
pub(super) fn kernels(book: &Book) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    for on in InstructionSet::available() {
        cases.push(european(book, on));
        cases.push(implied(book, on));
        cases.extend(american(book, on));
    }
    cases.sort_by_key(|case| case.name.split(',').next().map(str::to_owned));
    cases
}

/// The results are reused from run to run, so that computation is measured and not page faults.
fn european(book: &Book, on: InstructionSet) -> Case<'_> {
    let all = book.list.len();
    let n = if on == InstructionSet::Portable {
        PORTABLE.min(all)
    } else {
        all
    };
    let columns: GreekColumns = std::array::from_fn(|_| vec![0.0; n]);
    let columns = Mutex::new(columns);
    Case::kernel("Greeks", on, n, move || {
        let mut columns = columns.lock().unwrap_or_else(PoisonError::into_inner);
        greeks_into(&book.first(n), Model::BlackScholesMerton, on, &mut columns);
        black_box(&columns);
    })
}

fn implied(book: &Book, on: InstructionSet) -> Case<'_> {
    let n = PORTABLE.min(book.list.len());
    let n = if on == InstructionSet::Portable {
        n.min(PORTABLE / 10)
    } else {
        n
    };
    let list = &book.list[..n];
    let price = greeks(&book.first(n), Model::BlackScholesMerton)[0].clone();
    let growth = list.iter().map(|o| o.spot * exp((o.rate - o.dividend_yield) * o.years));
    let (forward, discount): (Vec<f64>, Vec<f64>) =
        growth.zip(list.iter().map(|o| exp(-o.rate * o.years))).unzip();
    let found = Mutex::new((vec![0.0; n], vec![0; n]));
    Case::kernel("implied volatility", on, n, move || {
        let columns = book.first(n);
        let prices = Prices {
            price: &price,
            forward: &forward,
            strike: columns.strike,
            discount: &discount,
            years: columns.years,
            call: columns.call,
        };
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        let (volatility, status) = &mut *found;
        implied_volatilities_into(&prices, on, volatility, status);
        black_box(&found);
    })
}

/// Price, Greeks and implied volatility by the spectral method at [`Scheme::STANDARD`].
fn american(book: &Book, on: InstructionSet) -> [Case<'_>; 3] {
    let all = SPECTRAL.min(book.list.len());
    let n = if on == InstructionSet::Portable { all / 8 } else { all };
    let price = move || american::price(&book.first(n), Scheme::STANDARD, on);
    let prices = price();
    [
        Case::kernel("American price", on, n, move || {
            black_box(price());
        }),
        Case::kernel("American Greeks", on, n, move || {
            black_box(american::greeks(&book.first(n), Scheme::STANDARD, on));
        }),
        Case::kernel("American implied volatility", on, n, move || {
            let found: Vec<f64> = prices
                .par_chunks(64)
                .zip(book.list[..n].par_chunks(64))
                .flat_map_iter(|(prices, options)| american::implied_volatilities(prices, options, on))
                .map(|(volatility, _)| volatility)
                .collect();
            black_box(found);
        }),
    ]
}
