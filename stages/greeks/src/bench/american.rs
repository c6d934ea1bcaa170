//! American options.

use super::{Bencher, Book, name};
use crate::numerics::american::{Scheme, greeks, implied_volatilities, lattice, price};
use stages_numerics::dispatch::InstructionSet;
use rayon::prelude::*;
use std::hint::black_box;

/// How many options the spectral method takes; the portable instructions, slow where fused multiplication is a call, an eighth.
const SPECTRAL: usize = 4_096;

/// Price, Greeks and implied volatility by the spectral method at [`Scheme::STANDARD`], and as a reference the price by lattices of 501 and 1503
/// steps, extrapolated, which is as good (a few 1e-6).
pub(super) fn american(bencher: &mut Bencher, book: &Book) {
    let all = SPECTRAL.min(book.list.len());
    let some = 16.min(all);
    bencher.measure(
        "American price, lattices of 501 and 1503 steps, scalar",
        None,
        |_| some,
        |n| {
            let sum: f64 = book.list[..n]
                .par_iter()
                .map(|option| lattice::extrapolated(option, &[], 501))
                .sum();
            black_box(sum);
        },
    );
    for instructions in InstructionSet::available() {
        let n = if instructions == InstructionSet::Portable { all / 8 } else { all };
        let columns = book.columns(n);
        bencher.measure(
            &name("American price", instructions),
            super::limit(instructions, super::peak::AMERICAN_PRICE),
            |_| n,
            |_| {
                black_box(price(&columns, Scheme::STANDARD, instructions));
            },
        );
        bencher.measure(
            &name("American Greeks", instructions),
            super::limit(instructions, super::peak::AMERICAN_GREEKS),
            |_| n,
            |_| {
                black_box(greeks(&columns, Scheme::STANDARD, instructions));
            },
        );
        let prices = price(&columns, Scheme::STANDARD, instructions);
        bencher.measure(
            &name("American implied volatility", instructions),
            None,
            |_| n,
            |_| {
                let found: Vec<f64> = prices
                    .par_chunks(64)
                    .zip(book.list[..n].par_chunks(64))
                    .flat_map_iter(|(prices, options)| implied_volatilities(prices, options, instructions))
                    .map(|(volatility, _)| volatility)
                    .collect();
                black_box(found);
            },
        );
    }
}
