//! The speed of fitting implied volatility surfaces.

use super::case::Case;
use crate::numerics::formula::{Contract, black_76};
use crate::numerics::surface::{Quote, Surface};
use stages_numerics::random::Random;
use std::hint::black_box;

const EXPIRIES: usize = 12;
/// The number of quotes of an expiry.
const QUOTES: usize = 121;

/// A case that fits the surface of one day to quotes with noise of a tenth of their spread.
pub(super) fn fit<'a>() -> Case<'a> {
    let mut random = Random::new(&[2]);
    let book: Vec<(f64, Vec<Quote>)> = (1..=EXPIRIES)
        .map(|expiry| {
            let years = 0.02 * (expiry * expiry) as f64;
            let mut quote = |i: usize| {
                let z = -6.0 + 9.0 * i as f64 / (QUOTES - 1) as f64;
                let option = Contract {
                    spot: 1.0,
                    strike: libm::exp(z * 0.15 * years.sqrt()),
                    years,
                    rate: 0.0,
                    dividend_yield: 0.0,
                    volatility: 0.15 - 0.02 * z + 0.003 * z * z,
                    call: z >= 0.0,
                };
                let price = black_76(&option).price;
                let half_spread = 2e-5 + 0.01 * price;
                Quote {
                    log_moneyness: libm::log(option.strike),
                    price: price + 0.1 * half_spread * random.normal(),
                    half_spread,
                }
            };
            (years, (0..QUOTES).map(&mut quote).collect())
        })
        .collect();
    let name = format!("surface of {EXPIRIES} expiries of {QUOTES} quotes");
    Case::new(name, EXPIRIES * QUOTES, move |_| {
        black_box(Surface::fit(&book, 6));
    })
}
