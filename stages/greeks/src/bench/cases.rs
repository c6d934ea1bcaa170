//! The computations whose speed is measured.

use super::book::Book;
use super::case::Case;
use super::peak;
use crate::numerics::american::{self, Scheme};
use crate::numerics::batch::{GreekColumns, greeks, greeks_into};
use crate::numerics::formula::{Contract, Model};
use crate::numerics::implied::{Prices, implied_volatilities_into};
use rayon::prelude::*;
use stages_numerics::black_scholes;
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::special::exp;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

/// The number of options per thread that fit into the caches with their results.
const IN_CACHE: usize = 4_096;
/// The number of options for scalar code and for the portable kernels, in which a fused multiplication is a
/// function call on x86-64.
const SCALAR: usize = 200_000;
/// The number of options for the spectral method; an eighth of it for its portable kernel.
const SPECTRAL: usize = 4_096;
/// The bytes moved per option for Greeks: six numbers and a flag in, nine numbers out.
const GREEKS_BYTES: f64 = 6.0 * 8.0 + 1.0 + 9.0 * 8.0;

/// The cases of all kernels, and what they are compared with.
pub(super) fn kernels(book: &Book) -> Vec<Case<'_>> {
    let mut cases = european(book);
    cases.push(copy(book));
    cases.extend(implied(book));
    cases.extend(american(book));
    cases
}

/// The textbook formula over `libm`, option by option: the yardstick for the kernels.
fn scalar(option: &Contract) -> black_scholes::Greeks {
    let growth = libm::exp((option.rate - option.dividend_yield) * option.years);
    let discount = libm::exp(-option.rate * option.years);
    black_scholes::greeks(
        option.spot,
        option.spot * growth,
        discount,
        option.volatility,
        option.years,
        option.strike,
        option.call,
    )
}

fn european(book: &Book) -> Vec<Case<'_>> {
    let all = book.list.len();
    let some = SCALAR.min(all);
    let mut cases = vec![Case::new("Greeks, textbook over libm, scalar", some, |n| {
        let sum: f64 = book.list[..n]
            .par_iter()
            .map(|option| scalar(option).to_array().iter().sum::<f64>())
            .sum();
        black_box(sum);
    })];
    for on in InstructionSet::available() {
        let most = if on == InstructionSet::Portable { some } else { all };
        let cached = move |threads: usize| (IN_CACHE * threads).min(all);
        let again = Buffers::default();
        let mut in_cache = Case::kernel("Greeks in cache", on, 0, move |total| {
            let n = cached(rayon::current_num_threads());
            (0..total / n).for_each(|_| again.compute(book, n, on));
        });
        in_cache.options = Box::new(move |threads| cached(threads) * (some / cached(threads)).max(1));
        cases.push(in_cache.cost(on, peak::GREEKS));
        let buffers = Buffers::default();
        let run = move |n| buffers.compute(book, n, on);
        let case = Case::kernel("Greeks from and to memory", on, most, run);
        cases.push(case.cost(on, peak::GREEKS).bytes(GREEKS_BYTES));
    }
    cases
}

/// Results that are reused from run to run, so that computation is measured and not page faults.
#[derive(Default)]
struct Buffers(Mutex<GreekColumns>);

impl Buffers {
    fn compute(&self, book: &Book, n: usize, on: InstructionSet) {
        let mut columns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for column in columns.iter_mut() {
            column.resize(n, 0.0);
        }
        greeks_into(&book.first(n), Model::BlackScholesMerton, on, &mut columns);
        black_box(&columns);
    }
}

/// The bandwidth of main memory: the columns of the book are copied, so each number is read and written once.
fn copy(book: &Book) -> Case<'_> {
    let copies = Mutex::new(book.columns.clone());
    let run = move |_| {
        let mut copies = copies.lock().unwrap_or_else(PoisonError::into_inner);
        copies.par_iter_mut().zip(&book.columns).for_each(|(copy, column)| {
            copy.copy_from_slice(black_box(column));
            black_box(copy);
        });
    };
    Case::new("copy of six columns, from and to memory", book.list.len(), run).bytes(2.0 * 6.0 * 8.0)
}

/// Implied volatility by bisection to the last bit, without a guess or derivatives: the baseline
/// implementation.
fn bisection(price: f64, option: &Contract) -> f64 {
    let (mut low, mut high) = (1e-6, 50.0);
    while high - low > 1e-15 * high {
        let volatility = 0.5 * (low + high);
        if volatility <= low || volatility >= high {
            break;
        }
        if scalar(&Contract { volatility, ..*option }).price < price {
            low = volatility;
        } else {
            high = volatility;
        }
    }
    0.5 * (low + high)
}

fn implied(book: &Book) -> Vec<Case<'_>> {
    /// Prices and the inputs they were computed from.
    struct Inputs<'a> {
        book: &'a Book,
        price: Vec<f64>,
        forward: Vec<f64>,
        discount: Vec<f64>,
    }
    let n = SCALAR.min(book.list.len());
    let list = &book.list[..n];
    let inputs = std::sync::Arc::new(Inputs {
        book,
        price: greeks(&book.first(n), Model::BlackScholesMerton)[0].clone(),
        forward: list
            .iter()
            .map(|o| o.spot * exp((o.rate - o.dividend_yield) * o.years))
            .collect(),
        discount: list.iter().map(|o| exp(-o.rate * o.years)).collect(),
    });
    let of = inputs.clone();
    let run = move |n: usize| {
        let volatility = |i: usize| bisection(of.price[i], &list[i]);
        black_box((0..n).into_par_iter().map(volatility).collect::<Vec<f64>>());
    };
    let mut cases = vec![Case::new(
        "implied volatility, bisection over libm, scalar",
        2_000.min(n),
        run,
    )];
    for on in InstructionSet::available() {
        let n = if on == InstructionSet::Portable {
            n.min(20_000)
        } else {
            n
        };
        let found = Mutex::new((vec![0.0; n], vec![0; n]));
        let of = inputs.clone();
        let run = move |n: usize| {
            let columns = of.book.first(n);
            let prices = Prices {
                price: &of.price[..n],
                forward: &of.forward[..n],
                strike: columns.strike,
                discount: &of.discount[..n],
                years: columns.years,
                call: columns.call,
            };
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let (volatility, status) = &mut *found;
            implied_volatilities_into(&prices, on, volatility, status);
            black_box(&found);
        };
        cases.push(Case::kernel("implied volatility", on, n, run).cost(on, peak::IMPLIED_VOLATILITY));
    }
    cases
}

/// Price, Greeks and implied volatility by the spectral method at [`Scheme::STANDARD`].
fn american(book: &Book) -> Vec<Case<'_>> {
    let all = SPECTRAL.min(book.list.len());
    let mut cases = Vec::new();
    for on in InstructionSet::available() {
        let n = if on == InstructionSet::Portable { all / 8 } else { all };
        let price = move |n| american::price(&book.first(n), Scheme::STANDARD, on);
        let run = move |n| {
            black_box(price(n));
        };
        cases.push(Case::kernel("American price", on, n, run).cost(on, peak::AMERICAN_PRICE));
        let run = move |n| {
            black_box(american::greeks(&book.first(n), Scheme::STANDARD, on));
        };
        cases.push(Case::kernel("American Greeks", on, n, run).cost(on, peak::AMERICAN_GREEKS));
        let prices = price(n);
        let run = move |n: usize| {
            let found: Vec<f64> = prices
                .par_chunks(256)
                .zip(book.list[..n].par_chunks(256))
                .flat_map_iter(|(prices, options)| american::implied_volatilities(prices, options, on))
                .map(|(volatility, _)| volatility)
                .collect();
            black_box(found);
        };
        cases.push(Case::kernel("American implied volatility", on, n, run));
    }
    cases
}
