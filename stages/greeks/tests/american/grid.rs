//! Options that are priced on a grid: two boundaries, much drift.

use super::dividends::with_cash;
use super::{market, option};
use stages_greeks::numerics::american::grid::{Dividend, Grid, on_grid, price_on_grid};
use stages_greeks::numerics::american::{Reason, american, implied_volatility};
use stages_greeks::numerics::formula::Contract;
use stages_greeks::numerics::implied::Status;
use stages_numerics::random::Random;

/// Options with two boundaries, and with a drift of up to a hundred standard deviations.
fn hard(n: usize, seed: u64) -> Vec<Contract> {
    let mut random = Random::new(&[seed]);
    (0..n)
        .map(|i| {
            let mut uniform = |low: f64, high: f64| low + (high - low) * random.uniform();
            let (years, strike) = (uniform(0.1, 3.0), uniform(75.0, 130.0));
            let call = i % 4 >= 2;
            if i % 2 == 0 {
                let outer = uniform(-0.06, -0.0005);
                let inner = outer * uniform(0.02, 0.98);
                let (rate, dividend_yield) = if call { (outer, inner) } else { (inner, outer) };
                let volatility = uniform(0.05, 0.6);
                return Contract {
                    spot: 100.0,
                    strike,
                    years,
                    rate,
                    dividend_yield,
                    volatility,
                    call,
                };
            }
            let (rate, dividend_yield) = (uniform(0.0, 0.15), uniform(0.0, 0.15));
            let drift = (rate - dividend_yield) * years;
            let deviation = drift.abs() / libm::exp(uniform(0.5, 4.6));
            let place = uniform(-3.0, 3.0) * deviation + if i % 3 == 0 { drift } else { 0.0 };
            Contract {
                spot: 100.0,
                strike: 100.0 * libm::exp(place),
                years,
                rate,
                dividend_yield,
                volatility: deviation / years.sqrt(),
                call,
            }
        })
        .collect()
}

/// Finer than any that prices are computed on.
pub(super) const ORACLE: Grid = Grid {
    spots: 2400,
    steps: 480,
};

#[test]
fn none_is_refused_and_finer_grids_agree() {
    let mut worst = [0.0_f64; 2];
    for (i, option) in hard(32, 21).into_iter().enumerate() {
        let (found, reason) = american(&option);
        assert_eq!(reason, Reason::Ok, "{option:?}");
        let error = (found.price - price_on_grid(&option, &[], ORACLE)).abs();
        assert!(error < 1e-5, "{option:?} {error}");
        worst[i % 2] = worst[i % 2].max(error);
        // Symmetry, between a grid whose region is above and one whose region is below.
        let mirrored = Contract {
            spot: option.strike,
            strike: option.spot,
            rate: option.dividend_yield,
            dividend_yield: option.rate,
            call: !option.call,
            ..option
        };
        let mirrored = american(&mirrored).0.price;
        assert!((found.price - mirrored).abs() < 1e-5, "{option:?} {mirrored}");
        let gain = if option.call { 1.0 } else { -1.0 } * (option.spot - option.strike);
        if i % 10 < 2 && found.vega > 1.0 && found.price > gain.max(0.0) + 1e-3 {
            let (volatility, status) = implied_volatility(found.price, &option);
            assert_eq!(status, Status::Ok, "{option:?}");
            assert!((volatility - option.volatility).abs() < 1e-6, "{option:?} {volatility}");
        }
    }
    eprintln!("greatest differences with two boundaries and with drift: {worst:?}");
}

/// Two boundaries (q < r < 0), and a drift of two standard deviations.
#[test]
fn the_grid_takes_over_and_agrees_with_the_lattice() {
    let two = Contract {
        rate: -0.005,
        dividend_yield: -0.01,
        ..option()
    };
    let mirrored = Contract {
        rate: -0.01,
        dividend_yield: -0.005,
        call: true,
        ..option()
    };
    let fast = Contract {
        volatility: 0.04,
        rate: 0.08,
        dividend_yield: 0.01,
        strike: 100.5,
        ..option()
    };
    for option in [two, mirrored, fast] {
        let (found, reason) = american(&option);
        assert_eq!(reason, Reason::Ok);
        let lattice = crate::lattice::extrapolated(&option, &[], 1501);
        assert!(
            (found.price - lattice).abs() < 5e-5,
            "{option:?} {} {lattice}",
            found.price
        );
        let (volatility, status) = implied_volatility(found.price, &option);
        assert_eq!(status, Status::Ok);
        assert!((volatility - option.volatility).abs() < 1e-6, "{option:?} {volatility}");
    }
}

#[test]
fn the_grid_agrees_with_the_spectral_method() {
    for option in market(40, 13) {
        let (spectral, grid) = (american(&option).0, on_grid(&option, &[], Grid::STANDARD).0);
        for (name, a, b, tolerance) in [
            ("price", spectral.price, grid.price, 5e-6),
            ("delta", spectral.delta, grid.delta, 1e-6),
            ("gamma", spectral.gamma, grid.gamma, 1e-6),
            ("vega", spectral.vega, grid.vega, 2e-2),
            ("theta", spectral.theta, grid.theta, 1e-4),
            ("rho", spectral.rho, grid.rho, 2e-2),
            ("vanna", spectral.vanna, grid.vanna, 5e-3),
            ("volga", spectral.volga, grid.volga, 3.0),
            ("charm", spectral.charm, grid.charm, 5e-3),
        ] {
            assert!((a - b).abs() <= tolerance, "{option:?} {name} {a} {b}");
        }
    }
}

/// Every Greek of a grid is the derivative that its name says, where no boundary is near.
#[test]
fn greeks_of_a_grid_are_derivatives() {
    let mut book: Vec<(Contract, Vec<Dividend>)> = with_cash(12, 27);
    book.extend(hard(8, 28).into_iter().step_by(2).map(|option| (option, Vec::new())));
    let mut some = 0;
    for (o, dividends) in book {
        let at = |option: Contract| on_grid(&option, &dividends, Grid::STANDARD).0;
        let h = 0.01 * o.spot * o.volatility * o.years.sqrt();
        let (up, down) = (
            at(Contract { spot: o.spot + h, ..o }),
            at(Contract { spot: o.spot - h, ..o }),
        );
        let g = at(o);
        if [up, down, g].iter().any(|g| g.gamma == 0.0) {
            continue;
        }
        some += 1;
        let close = |name: &str, a: f64, b: f64, scale: f64| {
            assert!(
                (a - b).abs() <= 1e-3 * (scale + a.abs().max(b.abs())),
                "{o:?} {dividends:?} {name} {a} {b}"
            );
        };
        close("delta", g.delta, (up.price - down.price) / (2.0 * h), 0.01);
        close("gamma", g.gamma, (up.delta - down.delta) / (2.0 * h), 0.1 / h);
        close("vanna", g.vanna, (up.vega - down.vega) / (2.0 * h), 10.0);
        let hv = 1e-3 * o.volatility;
        let [wild, calm] = [hv, -hv].map(|change| {
            at(Contract {
                volatility: o.volatility + change,
                ..o
            })
        });
        close("vega", g.vega, (wild.price - calm.price) / (2.0 * hv), 5.0);
        close("volga", g.volga, (wild.vega - calm.vega) / (2.0 * hv), 1000.0);
        // The region changes its form with the sign of the rate.
        if o.rate.abs() > 3e-3 {
            let [more, less] = [1e-3, -1e-3].map(|change| {
                at(Contract {
                    rate: o.rate + change,
                    ..o
                })
            });
            close("rho", g.rho, (more.price - less.price) / 2e-3, 10.0);
        }
        let later = |years: f64| {
            let dividends: Vec<_> = dividends
                .iter()
                .map(|dividend| Dividend {
                    years: dividend.years - years,
                    ..*dividend
                })
                .collect();
            let option = Contract {
                years: o.years - years,
                ..o
            };
            on_grid(&option, &dividends, Grid::STANDARD).0
        };
        let day = 1e-4;
        close(
            "theta",
            g.theta,
            (later(day).price - later(-day).price) / (2.0 * day),
            1.0,
        );
        close(
            "charm",
            g.charm,
            (later(day).delta - later(-day).delta) / (2.0 * day),
            1.0,
        );
    }
    assert!(some >= 12, "{some}");
}
