//! American options against independent numbers: QuantLib's (see `tests/reference/README.md`), published
//! ones, and the lattice.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod dividends;
mod grid;
mod lattice;

#[path = "../common/reference_table.rs"]
mod reference_table;

use proptest::prelude::*;
use reference_table::{number, table};
use stages_greeks::numerics::american::{
    AmericanColumns, Reason, Scheme, american, greeks, implied_volatility, price,
};
use stages_greeks::numerics::batch::Columns;
use stages_greeks::numerics::formula::{Contract, Greeks, black_scholes_merton};
use stages_greeks::numerics::implied::Status;
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;

/// The columns of options.
struct Book([Vec<f64>; 6], Vec<bool>);

impl Book {
    fn new(options: &[Contract]) -> Self {
        let column = |f: fn(&Contract) -> f64| options.iter().map(f).collect();
        Self(
            [
                column(|o| o.spot),
                column(|o| o.strike),
                column(|o| o.years),
                column(|o| o.rate),
                column(|o| o.dividend_yield),
                column(|o| o.volatility),
            ],
            options.iter().map(|o| o.call).collect(),
        )
    }

    fn columns(&self) -> Columns<'_> {
        let [spot, strike, years, rate, dividend_yield, volatility] = self.0.each_ref().map(Vec::as_slice);
        Columns {
            spot,
            strike,
            years,
            rate,
            dividend_yield,
            volatility,
            call: &self.1,
        }
    }
}

fn all(options: &[Contract], scheme: Scheme) -> AmericanColumns {
    greeks(&Book::new(options).columns(), scheme, InstructionSet::detect())
}

/// Options as markets quote them.
fn market(n: usize, seed: u64) -> Vec<Contract> {
    let mut random = Random::new(&[seed]);
    (0..n)
        .map(|_| Contract {
            spot: 100.0,
            strike: 70.0 + 60.0 * random.uniform(),
            years: 0.01 + 2.0 * random.uniform(),
            rate: 0.05 * random.uniform(),
            dividend_yield: 0.05 * random.uniform(),
            volatility: 0.08 + 0.6 * random.uniform(),
            call: random.uniform() < 0.5,
        })
        .collect()
}

/// The values of an option that is exercised now, of a put.
fn exercised(price: f64) -> Greeks {
    Greeks {
        price,
        delta: -1.0,
        ..Greeks::default()
    }
}

fn option() -> Contract {
    Contract {
        spot: 100.0,
        strike: 100.0,
        years: 1.0,
        rate: 0.05,
        dividend_yield: 0.05,
        volatility: 0.25,
        call: false,
    }
}

#[test]
fn reference() {
    let rows = table(include_str!("../../../../tests/reference/american.csv"));
    assert_eq!(rows.len(), 102);
    let mut worst = [0.0_f64; 5];
    for row in &rows {
        let option = Contract {
            spot: number(row, "S"),
            strike: number(row, "K"),
            years: number(row, "T"),
            rate: number(row, "r"),
            dividend_yield: number(row, "q"),
            volatility: number(row, "sigma"),
            call: row["flag"] == "c",
        };
        let place = format!("row {} ({})", row["id"], row["tag"]);
        let (found, reason) = american(&option);
        assert_eq!(reason, Reason::Ok, "{place}");
        if row["tag"] == "double_boundary" {
            // The reference is a lattice's, to about 1e-4.
            assert!(
                (found.price - number(row, "price")).abs() < 1e-4,
                "{place}: {}",
                found.price
            );
            assert!(
                (found.delta - number(row, "delta")).abs() < 1e-4,
                "{place}: {}",
                found.delta
            );
            continue;
        }
        // The reference's own error (its Greeks are differences of its price): see the README.
        for (i, (name, value, tolerance)) in [
            ("price", found.price, 1e-6),
            ("delta", found.delta, 1e-6),
            ("gamma", found.gamma, 1e-6),
            ("vega", found.vega, 1e-3),
            ("rho", found.rho, 5e-3),
        ]
        .into_iter()
        .enumerate()
        {
            let reference = number(row, name);
            let error = (value - reference).abs();
            worst[i] = worst[i].max(error);
            assert!(error <= tolerance, "{place}: {name} {value} {reference}");
        }
        if !row["binom_check"].is_empty() {
            assert!((found.price - number(row, "binom_check")).abs() < 2e-5, "{place}");
        }
    }
    eprintln!("greatest differences of price, delta, gamma, vega, rho: {worst:?}");
}

/// R. Geske and H. E. Johnson, "The American put option valued analytically", Journal of Finance 39 (1984),
/// table 1 (binomial column), as corrected to 10,000 steps by J. Huang, M. Subrahmanyam and G. Yu, "Pricing
/// and hedging American options", Review of Financial Studies 9 (1996), table 1.
#[test]
fn published_puts() {
    let table = [
        (0.2, 35.0, [0.0062, 0.2004, 0.4328]),
        (0.2, 40.0, [0.8522, 1.5798, 1.9904]),
        (0.2, 45.0, [5.0000, 5.0883, 5.2670]),
        (0.3, 35.0, [0.0774, 0.6975, 1.2198]),
        (0.3, 40.0, [1.3099, 2.4825, 3.1696]),
        (0.3, 45.0, [5.0597, 5.7056, 6.2436]),
        (0.4, 35.0, [0.2466, 1.3460, 2.1549]),
        (0.4, 40.0, [1.7681, 3.3874, 4.3526]),
        (0.4, 45.0, [5.2868, 6.5099, 7.3830]),
    ];
    for (volatility, strike, prices) in table {
        for (years, published) in [0.0833, 0.3333, 0.5833].into_iter().zip(prices) {
            let put = Contract {
                spot: 40.0,
                strike,
                years,
                rate: 0.0488,
                dividend_yield: 0.0,
                volatility,
                call: false,
            };
            let found = american(&put).0.price;
            assert!((found - published).abs() < 1.5e-4, "{put:?} {found} {published}");
        }
    }
}

/// The benchmark of Andersen, Lake and Offengenden (2016), section 6: the premium of early exercise at S = K
/// = 100, r = q = 5 %, sigma = 25 %, T = 1.
#[test]
fn published_premium() {
    let premium = american(&option()).0.price - black_scholes_merton(&option()).price;
    assert!((premium - 0.106_952_702_7).abs() < 2e-9, "{premium}");
}

#[test]
fn twice_the_nodes_change_a_price_by_less_than_a_millionth() {
    let mut options = market(600, 7);
    options.iter_mut().for_each(|o| o.dividend_yield *= 0.4);
    let book = Book::new(&options);
    let (once, twice) = (
        price(&book.columns(), Scheme::STANDARD, InstructionSet::detect()),
        price(&book.columns(), Scheme::STANDARD.doubled(), InstructionSet::detect()),
    );
    for ((option, once), twice) in options.iter().zip(once).zip(twice) {
        assert!((once - twice).abs() < 1e-6, "{option:?} {once} {twice}");
    }
}

#[test]
fn agrees_with_the_lattice() {
    let mut options = market(24, 8);
    options.push(Contract {
        rate: 0.0,
        dividend_yield: -0.01,
        ..option()
    });
    options.push(Contract {
        rate: 0.03,
        dividend_yield: -0.02,
        ..option()
    });
    options.push(Contract {
        rate: 1e-7,
        ..option()
    });
    options.push(Contract {
        rate: -0.02,
        dividend_yield: 0.01,
        call: true,
        ..option()
    });
    for option in options {
        let (found, reason) = american(&option);
        let lattice = lattice::extrapolated(&option, &[], 301);
        assert_eq!(reason, Reason::Ok);
        assert!(
            (found.price - lattice).abs() < 5e-5,
            "{option:?} {} {lattice}",
            found.price
        );
    }
}

#[test]
fn every_version_gives_the_same_bytes_whatever_the_neighbours() {
    let mut options = market(100, 9);
    options.extend(market(20, 10).into_iter().map(|o| Contract {
        years: 5.0 * o.years,
        ..o
    }));
    let first = all(&options, Scheme::STANDARD);
    let bits =
        |values: &AmericanColumns, i: usize| values.greeks.each_ref().map(|column| column[i].to_bits());
    for instructions in InstructionSet::available() {
        let n = if instructions == InstructionSet::Portable {
            30
        } else {
            options.len()
        };
        let other = greeks(&Book::new(&options[..n]).columns(), Scheme::STANDARD, instructions);
        for i in 0..n {
            assert_eq!(bits(&first, i), bits(&other, i), "{instructions:?} {:?}", options[i]);
        }
    }
    for (i, option) in options.iter().enumerate().step_by(7) {
        let alone = american(option).0.to_array().map(f64::to_bits);
        assert_eq!(alone, bits(&first, i), "{option:?}");
    }
}

#[test]
fn european_where_early_exercise_never_pays() {
    for option in market(40, 11) {
        let call = Contract {
            call: true,
            dividend_yield: 0.0,
            ..option
        };
        let put = Contract {
            call: false,
            rate: -option.rate,
            ..option
        };
        for option in [call, put] {
            assert_eq!(
                american(&option),
                (black_scholes_merton(&option), Reason::Ok),
                "{option:?}"
            );
        }
        // A yield that is nearly nothing is nearly nothing of a premium.
        let near = american(&Contract {
            dividend_yield: 1e-9,
            ..call
        })
        .0
        .price;
        assert!((near - black_scholes_merton(&call).price).abs() < 1e-6);
    }
}

#[test]
fn limits_and_refusals() {
    let of = |option: Contract| american(&option);
    let put = Contract {
        strike: 110.0,
        ..option()
    };
    assert_eq!(of(Contract { years: 0.0, ..put }).0.price, 10.0);
    assert_eq!(of(Contract { years: 0.0, ..put }).0.delta, -1.0);
    // Without volatility and with a yield above the rate waiting pays.
    let waits = Contract {
        volatility: 0.0,
        rate: 0.02,
        dividend_yield: 0.08,
        ..put
    };
    let exact = 110.0 * libm::exp(-0.02) - 100.0 * libm::exp(-0.08);
    assert!((of(waits).0.price - exact).abs() < 1e-12);
    let near = of(Contract {
        volatility: 0.04,
        ..waits
    })
    .0
    .price;
    assert!((near - exact).abs() < 0.02, "{near} {exact}");
    // However little volatility: exercised now, or nearly what it is without.
    for volatility in [0.005, 1e-3, 1e-5, 1e-9] {
        let now = of(Contract {
            volatility,
            rate: 0.1,
            dividend_yield: 0.0,
            ..put
        });
        assert_eq!(now, (exercised(10.0), Reason::Ok));
        let (later, reason) = of(Contract { volatility, ..waits });
        assert_eq!(reason, Reason::Ok);
        assert!(
            (later.price - exact).abs() < 1e-3 * volatility + 1e-10,
            "{later:?} {exact}"
        );
    }
    for bad in [
        Contract { spot: f64::NAN, ..put },
        Contract { years: -1.0, ..put },
        Contract { strike: 0.0, ..put },
        Contract {
            volatility: f64::INFINITY,
            ..put
        },
        Contract { rate: f64::NAN, ..put },
    ] {
        let (greeks, reason) = of(bad);
        assert_eq!(reason, Reason::Input);
        assert!(greeks.to_array().iter().all(|value| value.is_nan()));
    }
}

#[test]
fn exercised_now() {
    let (greeks, reason) = american(&Contract {
        spot: 60.0,
        dividend_yield: 0.0,
        ..option()
    });
    assert_eq!(reason, Reason::Ok);
    assert_eq!(greeks, exercised(40.0));
}

#[test]
fn implied_volatility_inverts_the_price() {
    let mut some = 0;
    for option in market(200, 12) {
        let (greeks, _) = american(&option);
        let (found, status) = implied_volatility(greeks.price, &option);
        let intrinsic = if option.call {
            option.spot - option.strike
        } else {
            option.strike - option.spot
        };
        if greeks.price - intrinsic.max(0.0) < 1e-6 {
            assert!(status == Status::AtIntrinsic || (found / option.volatility - 1.0).abs() < 1e-2);
            continue;
        }
        some += 1;
        assert_eq!(status, Status::Ok, "{option:?} {}", greeks.price);
        assert!((found - option.volatility).abs() < 1e-9, "{option:?} {found}");
    }
    assert!(some > 150);
}

#[test]
fn reasons_of_no_implied_volatility() {
    let put = Contract {
        strike: 110.0,
        dividend_yield: 0.0,
        ..option()
    };
    let status = |price: f64, option: Contract| implied_volatility(price, &option).1;
    assert_eq!(status(9.9, put), Status::BelowIntrinsic);
    assert_eq!(status(10.0, put), Status::AtIntrinsic);
    assert_eq!(status(110.0, put), Status::AtOrAboveUpper);
    assert_eq!(status(0.0, Contract { strike: 90.0, ..put }), Status::ZeroPrice);
    assert_eq!(status(-1.0, Contract { strike: 90.0, ..put }), Status::BelowIntrinsic);
    assert_eq!(status(f64::NAN, put), Status::NoQuote);
    assert_eq!(status(12.0, Contract { years: 0.0, ..put }), Status::Expired);
    assert_eq!(status(12.0, Contract { rate: f64::NAN, ..put }), Status::NoForward);
    // A European one by the European formula.
    assert_eq!(
        status(
            12.0,
            Contract {
                call: true,
                strike: 90.0,
                ..put
            }
        ),
        Status::BelowIntrinsic
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn bounds_monotony_and_symmetry(
        spot in 60.0..150.0, years in 0.02..3.0, rate in 0.0..0.09, dividend_yield in -0.01..0.09,
        volatility in 0.1..0.9, call: bool,
    ) {
        let o = Contract { spot, strike: 100.0, years, rate, dividend_yield, volatility, call };
        let (g, reason) = american(&o);
        prop_assert_eq!(reason, Reason::Ok);
        let w = if call { 1.0 } else { -1.0 };
        let european = black_scholes_merton(&o).price;
        prop_assert!(g.price >= european - 1e-7, "{} {european}", g.price);
        prop_assert!(g.price >= w * (spot - 100.0), "{} below intrinsic by {}", g.price,
            w * (spot - 100.0) - g.price);
        let most = if call { spot * 1.04 } else { 100.0 };
        prop_assert!(g.price <= most);
        let up = |o: Contract| american(&o).0.price;
        let (wilder, longer) = (Contract { volatility: volatility + 0.01, ..o },
            Contract { years: years + 0.05, ..o });
        let higher = Contract { spot: spot + 1.0, ..o };
        prop_assert!(up(wilder) >= g.price - 1e-6);
        prop_assert!(up(longer) >= g.price - 1e-6);
        prop_assert!(w * (up(higher) - g.price) >= -1e-6);
        // Symmetry, and homogeneity in spot and strike.
        let mirrored = Contract { spot: 100.0, strike: spot, rate: dividend_yield, dividend_yield: rate,
            call: !call, ..o };
        prop_assert!((up(mirrored) - g.price).abs() < 1e-9);
        let tripled = Contract { spot: 3.0 * spot, strike: 300.0, ..o };
        prop_assert!((up(tripled) - 3.0 * g.price).abs() < 1e-9);
    }

    /// Every Greek is the derivative that its name says; and they satisfy the Black-Scholes equation.
    #[test]
    fn greeks_are_derivatives(
        spot in 85.0..115.0, years in 0.1..1.5, rate in 0.005..0.07, dividend_yield in 0.0..0.06,
        volatility in 0.15..0.5, call: bool,
    ) {
        let o = Contract { spot, strike: 100.0, years, rate, dividend_yield, volatility, call };
        let (hs, h) = (0.02, 1e-4);
        let by_spot = [Contract { spot: spot + hs, ..o }, Contract { spot: spot - hs, ..o }];
        let by_vol = [Contract { volatility: volatility + h, ..o }, Contract { volatility: volatility - h,
            ..o }];
        let by_time = [Contract { years: years + h, ..o }, Contract { years: years - h, ..o }];
        let by_rate = [Contract { rate: rate + h, ..o }, Contract { rate: rate - h, ..o }];
        let options: Vec<Contract> = [[o, o], by_spot, by_vol, by_time, by_rate].concat();
        let found = all(&options, Scheme::FINE);
        let at = |i: usize| Greeks::from_array(std::array::from_fn(|g| found.greeks[g][i]));
        // Beside the boundary a difference straddles it.
        prop_assume!((2..10).all(|i| at(i).vega > 0.0) && at(0).vega > 0.0);
        let slope = |i: usize, h: f64, of: fn(Greeks) -> f64| (of(at(i)) - of(at(i + 1))) / (2.0 * h);
        let g = at(0);
        let close = |a: f64, b: f64, scale: f64| (a - b).abs() <= 1e-4 * (scale + a.abs().max(b.abs()));
        prop_assert!(close(g.delta, slope(2, hs, |g| g.price), 0.1));
        prop_assert!(close(g.gamma, slope(2, hs, |g| g.delta), 0.1));
        prop_assert!(close(g.vega, slope(4, h, |g| g.price), 1.0));
        prop_assert!(close(g.theta, -slope(6, h, |g| g.price), 1.0));
        // The boundary's start has a kink at r = q.
        prop_assume!((rate - dividend_yield).abs() > 2e-3);
        prop_assert!(close(g.rho, slope(8, h, |g| g.price), 10.0), "{} {}", g.rho, slope(8, h, |g| g.price));
        prop_assert!(close(g.vanna, slope(4, h, |g| g.delta), 10.0));
        prop_assert!(close(g.volga, slope(4, h, |g| g.vega), 1000.0));
        prop_assert!(close(g.charm, -slope(6, h, |g| g.delta), 10.0));
        let pde = g.theta + 0.5 * volatility * volatility * spot * spot * g.gamma
            + (rate - dividend_yield) * spot * g.delta - rate * g.price;
        prop_assert!(pde.abs() < 1e-8);
    }
}
