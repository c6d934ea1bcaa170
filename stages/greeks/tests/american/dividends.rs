//! Cash dividends.

use super::grid::ORACLE;
use super::option;
use stages_greeks::numerics::american::grid::{Dividend, Grid, on_grid, price_on_grid};
use stages_greeks::numerics::american::{Reason, american, implied_on_grid};
use stages_greeks::numerics::formula::{Contract, black_scholes_merton};
use stages_greeks::numerics::implied::Status;
use stages_numerics::random::Random;

/// A chain of options with dividends: maturities of up to two years, amounts of 0.1 to 4 % of the spot.
pub(super) fn with_cash(n: usize, seed: u64) -> Vec<(Contract, Vec<Dividend>)> {
    let mut random = Random::new(&[seed]);
    (0..n)
        .map(|i| {
            let mut uniform = |low: f64, high: f64| low + (high - low) * random.uniform();
            let years = uniform(0.03, 2.0);
            let dividends = (0..1 + i % 3)
                .map(|_| Dividend {
                    years: uniform(0.002, 0.999) * years,
                    amount: uniform(0.1, 4.0),
                })
                .collect();
            let option = Contract {
                spot: 100.0,
                strike: uniform(75.0, 130.0),
                years,
                rate: uniform(0.0, 0.08),
                dividend_yield: if i % 4 == 3 { uniform(0.0, 0.04) } else { 0.0 },
                volatility: uniform(0.08, 0.7),
                call: i % 2 == 0,
            };
            (option, dividends)
        })
        .collect()
}

/// Calls without a yield: between ex-dates they are European, and the price is a chain of integrals, here by
/// Simpson's rule on 40,000 points.
#[test]
fn calls_with_cash_dividends_are_exact() {
    const POINTS: usize = 20_000;
    for (option, mut dividends) in with_cash(60, 23) {
        let option = Contract {
            call: true,
            dividend_yield: 0.0,
            ..option
        };
        dividends.truncate(1);
        let Dividend { years, amount } = dividends[0];
        let after = |s: f64| {
            let european = black_scholes_merton(&Contract {
                spot: s - amount,
                years: option.years - years,
                ..option
            });
            if s <= amount {
                0.0
            } else {
                european.price.max(s - option.strike)
            }
        };
        let deviation = option.volatility * years.sqrt();
        let mean = libm::log(option.spot) + option.rate * years - 0.5 * deviation * deviation;
        // The kink, where exercise begins, is an end of a range.
        let exercise = |z: f64| {
            let s = libm::exp(mean + deviation * z);
            after(s) > s - option.strike
        };
        let (mut low, mut high) = (-9.0, 9.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if exercise(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        let kink = 0.5 * (low + high);
        let mut exact = 0.0;
        for (from, to) in [(-9.0, kink), (kink, 9.0)] {
            let h = (to - from) / (2 * POINTS) as f64;
            for i in 0..=2 * POINTS {
                let z = from + h * i as f64;
                let weight = if i == 0 || i == 2 * POINTS {
                    1.0
                } else {
                    [2.0, 4.0][i % 2]
                };
                let density = libm::exp(-0.5 * z * z) / (2.0 * std::f64::consts::PI).sqrt();
                exact += weight * h / 3.0 * density * after(libm::exp(mean + deviation * z));
            }
        }
        exact *= libm::exp(-option.rate * years);
        let exact = exact.max(option.spot - option.strike);
        let found = price_on_grid(&option, &dividends, Grid::STANDARD);
        assert!(
            (found - exact).abs() < 1e-8 * exact.max(1.0),
            "{option:?} {dividends:?} {found} {exact}"
        );
    }
}

/// Limits in which the spectral method knows the price: nearly no dividend, one at once, one that leaves
/// nothing.
#[test]
fn cash_dividends_have_their_limits() {
    let spectral = |option: &Contract| american(option).0.price;
    for (mut option, _) in with_cash(30, 26) {
        option.rate += 0.005;
        option.dividend_yield += 1e-9;
        let price =
            |years: f64, amount: f64| price_on_grid(&option, &[Dividend { years, amount }], Grid::STANDARD);
        let without = price(0.4 * option.years, 1e-9);
        assert!((without - spectral(&option)).abs() < 1e-5, "{option:?} {without}");
        let at_once = price(1e-9, 3.0);
        let after = spectral(&Contract {
            spot: option.spot - 3.0,
            ..option
        });
        let gain = if option.call { 1.0 } else { -1.0 } * (option.spot - option.strike);
        assert!((at_once - after.max(gain)).abs() < 1e-3, "{option:?} {at_once} {after}");
        let nothing_left = price(0.5 * option.years, 1e9);
        let half = Contract {
            years: 0.5 * option.years,
            ..option
        };
        let exact = if option.call {
            spectral(&half)
        } else {
            option.strike * libm::exp(-option.rate * half.years)
        };
        assert!(
            (nothing_left - exact.max(gain)).abs() < 2e-5,
            "{option:?} {nothing_left} {exact}"
        );
    }
}

/// Dividends of one day are one; those outside the life of the option are none.
#[test]
fn dividends_add_up() {
    for call in [false, true] {
        let option = Contract { call, ..option() };
        let of = |dividends: &[(f64, f64)]| {
            let dividends: Vec<_> = dividends
                .iter()
                .map(|&(years, amount)| Dividend { years, amount })
                .collect();
            on_grid(&option, &dividends, Grid::STANDARD)
        };
        assert_eq!(of(&[(0.5, 1.0), (0.5, 1.5)]), of(&[(0.5, 2.5)]));
        assert_eq!(of(&[(0.7, 1.0), (0.2, 1.5)]), of(&[(0.2, 1.5), (0.7, 1.0)]));
        assert_eq!(of(&[(0.5, 2.5), (0.0, 9.0), (1.0, 9.0), (1.5, 9.0)]), of(&[(0.5, 2.5)]));
        assert_eq!(of(&[(0.5, -1.0)]).1, Reason::Input);
    }
}

/// With a yield of nearly nothing they are priced on a grid.
#[test]
fn calls_with_cash_dividends_agree_with_a_grid() {
    let mut worst = 0.0_f64;
    for (option, dividends) in with_cash(24, 24) {
        let call = Contract {
            call: true,
            dividend_yield: 0.0,
            ..option
        };
        let exact = price_on_grid(&call, &dividends, Grid::STANDARD);
        let grid = Contract {
            dividend_yield: 1e-12,
            ..call
        };
        let error = (price_on_grid(&grid, &dividends, ORACLE) - exact).abs();
        assert!(error < 1e-6, "{call:?} {dividends:?} {exact} {error}");
        worst = worst.max(error);
    }
    eprintln!("greatest difference: {worst:e}");
}

#[test]
fn finer_grids_agree_with_cash_dividends() {
    let mut worst = 0.0_f64;
    for (option, dividends) in with_cash(48, 25) {
        let (found, finer) = (
            on_grid(&option, &dividends, Grid::STANDARD).0.price,
            price_on_grid(&option, &dividends, ORACLE),
        );
        let error = (found - finer).abs();
        assert!(error < 1e-6, "{option:?} {dividends:?} {found} {finer}");
        worst = worst.max(error);
    }
    eprintln!("greatest difference: {worst:e}");
}

/// Dividends on steps of both lattices.
#[test]
fn dividends_agree_with_the_lattice() {
    let dividends = [(1.0 / 3.0, 2.0), (2.0 / 3.0, 3.0)].map(|(years, amount)| Dividend { years, amount });
    for call in [false, true] {
        for strike in [90.0, 100.0, 112.0] {
            let option = Contract {
                call,
                strike,
                dividend_yield: 0.0,
                ..option()
            };
            let (found, reason) = on_grid(&option, &dividends, Grid::STANDARD);
            let lattice = crate::lattice::extrapolated(&option, &dividends, 501);
            assert_eq!(reason, Reason::Ok);
            assert!(
                (found.price - lattice).abs() < 2e-4,
                "{option:?} {} {lattice}",
                found.price
            );
            // The price of the same grid, and that of finer ones.
            let same = price_on_grid(&option, &dividends, Grid::STANDARD);
            for (price, error) in [(same, 1e-8), (found.price, 2e-7)] {
                let (volatility, status) = implied_on_grid(price, &option, &dividends, Grid::STANDARD);
                assert_eq!(status, Status::Ok);
                assert!((volatility - option.volatility).abs() < error, "{volatility}");
            }
        }
    }
    // A call is exercised before a large dividend and never pays it; outside the life of the option a
    // dividend is nothing.
    let call = Contract {
        call: true,
        dividend_yield: 0.0,
        strike: 60.0,
        ..option()
    };
    let soon = [Dividend {
        years: 0.01,
        amount: 30.0,
    }];
    let price = price_on_grid(&call, &soon, Grid::STANDARD);
    let before = black_scholes_merton(&Contract { years: 0.01, ..call }).price;
    assert!((price - before).abs() < 1e-6, "{price} {before}");
    let later = [Dividend {
        years: 1.5,
        amount: 30.0,
    }];
    assert_eq!(
        price_on_grid(&call, &later, Grid::STANDARD),
        price_on_grid(&call, &[], Grid::STANDARD)
    );
    assert_eq!(
        on_grid(
            &call,
            &[Dividend {
                years: 0.5,
                amount: -1.0
            }],
            Grid::STANDARD
        )
        .1,
        Reason::Input
    );
}
