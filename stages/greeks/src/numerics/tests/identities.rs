//! Identities of prices and Greeks, over the whole domain: an hour to ten years, volatility 0.1 % to 300 %,
//! far in and out of the money, rates of either sign. Also published reference values.

use super::exact;
use crate::numerics::double_double::Dd;
use crate::numerics::formula::{Contract, Greeks, black_76, black_scholes_merton};
use proptest::prelude::*;

/// Options of the whole domain; those without a chance of ending on the other side are a part.
fn options() -> impl Strategy<Value = Contract> {
    let logarithmic = |low: f64, high: f64| (libm::log(low)..libm::log(high)).prop_map(libm::exp);
    let place = prop_oneof![3 => -10.0..10.0_f64, 1 => -40.0..40.0_f64];
    (
        logarithmic(0.5, 50_000.0),
        logarithmic(1.0 / 8_760.0, 10.0),
        logarithmic(0.001, 3.0),
        (-0.05..0.15, -0.05..0.15),
        place,
        any::<bool>(),
    )
        .prop_map(
            |(spot, years, volatility, (rate, dividend_yield), place, call): (f64, f64, f64, _, f64, _)| {
                let log = (place * volatility * years.sqrt()).clamp(-4.0, 4.0);
                Contract {
                    spot,
                    strike: spot * libm::exp(log),
                    years,
                    rate,
                    dividend_yield,
                    volatility,
                    call,
                }
            },
        )
}

/// The scale of each Greek's rounding error.
fn scales(o: &Contract) -> [f64; 9] {
    let root = o.years.sqrt();
    let sd = o.volatility * root;
    let most = o.spot.max(o.strike);
    let carry = o.rate.abs() + o.dividend_yield.abs();
    [
        most,
        1.0,
        1.0 / (o.spot * sd),
        most * root.max(1.0),
        most * (1.0 + carry + o.volatility / root),
        most * o.years.max(1.0),
        1.0 / o.volatility,
        most * root / o.volatility,
        (1.0 + carry) / sd + 1.0 / o.years,
    ]
}

/// Derivative by the k-th input, with steps of h: five points, error h^4.
fn slope(at: [Dd; 6], k: usize, h: f64, f: &dyn Fn([Dd; 6]) -> Dd) -> Dd {
    let near = |steps: f64| {
        let mut moved = at;
        moved[k] = moved[k] + Dd::from(h) * steps;
        f(moved)
    };
    ((near(1.0) - near(-1.0)) * 8.0 - (near(2.0) - near(-2.0))) / (Dd::from(h) * 12.0)
}

/// All nine, as derivatives of the price in double-double arithmetic.
fn by_differences(o: &Contract) -> [f64; 9] {
    let at = [o.spot, o.strike, o.years, o.rate, o.dividend_yield, o.volatility].map(Dd::from);
    let price = |at: [Dd; 6]| exact::price(at, o.call);
    let sd = o.volatility * o.years.sqrt();
    let d1 = (libm::log(o.spot / o.strike) + (o.rate - o.dividend_yield) * o.years) / sd + 0.5 * sd;
    let far = 1.0 + d1.abs();
    let unit = 1e-5 * sd.min(1.0) / far;
    let (by_spot, by_rate) = (o.spot * unit, unit / o.years.max(1.0));
    let by_vol = 1e-5 * o.volatility / (far * far * (1.0 + sd * sd));
    let by_time = (1e-5 * o.years / (far * far * (1.0 + sd * sd))).min(unit);
    let delta = |at| slope(at, 0, by_spot, &price);
    let vega = |at| slope(at, 5, by_vol, &price);
    [
        price(at),
        delta(at),
        slope(at, 0, by_spot, &delta),
        vega(at),
        -slope(at, 2, by_time, &price),
        slope(at, 3, by_rate, &price),
        slope(at, 5, by_vol, &delta),
        slope(at, 5, by_vol, &vega),
        -slope(at, 2, by_time, &delta),
    ]
    .map(Dd::f64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    /// The tolerance of the reference tables, against finite differences with 31 digits.
    #[test]
    fn greeks_are_derivatives_of_the_price(o in options()) {
        let greeks = black_scholes_merton(&o).to_array();
        for (i, ((value, exact),
            scale)) in greeks.into_iter().zip(by_differences(&o)).zip(scales(&o)).enumerate() {
            let error = (value - exact).abs();
            prop_assert!(error <= 1e-13 * scale + 1e-12 * exact.abs(), "{i}: {value:e} {exact:e} {error:e} \
                {scale}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    /// A call less a put is the forward less the strike, discounted; so are their derivatives.
    #[test]
    fn parity(o in options()) {
        let (call, put) = (black_scholes_merton(&Contract { call: true, ..o }),
            black_scholes_merton(&Contract { call: false, ..o }));
        let (dq, dr) = (libm::exp(-o.dividend_yield * o.years), libm::exp(-o.rate * o.years));
        let (sq, kr) = (o.spot * dq, o.strike * dr);
        let exact = Greeks {
            price: sq - kr,
            delta: dq,
            theta: o.dividend_yield * sq - o.rate * kr,
            rho: o.years * kr,
            charm: o.dividend_yield * dq,
            ..Greeks::default()
        };
        let both = call.to_array().into_iter().zip(put.to_array());
        for (i, ((both, exact), scale)) in both.zip(exact.to_array()).zip(scales(&o)).enumerate() {
            prop_assert!((both.0 - both.1 - exact).abs() <= 1e-14 * scale * 10.0, "{i}: {both:?} {exact} \
                {scale}");
        }
    }

    /// Spot and strike in another currency: the same bits where it is a power of two.
    #[test]
    fn homogeneity(o in options(), power in -20..20_i32) {
        let unit = libm::exp2(f64::from(power));
        let there = black_scholes_merton(&Contract { spot: o.spot * unit, strike: o.strike * unit, ..o });
        let here = black_scholes_merton(&o);
        let same = Greeks {
            price: here.price * unit,
            gamma: here.gamma / unit,
            vega: here.vega * unit,
            theta: here.theta * unit,
            rho: here.rho * unit,
            volga: here.volga * unit,
            ..here
        };
        let tiny = here.to_array().iter().any(|value| *value != 0.0 && value.abs() < 1e-290);
        prop_assert!(tiny || there == same, "{there:?} {same:?}");
        // Euler's theorem: V = S dV/dS + K dV/dK, and T K dV/dK = -rho.
        let most = o.spot.max(o.strike);
        prop_assert!((o.spot * here.delta - here.rho / o.years - here.price).abs() <= 1e-14 * most);
    }

    /// The Black-Scholes-Merton equation, and the relation of vega and gamma.
    #[test]
    fn differential_equation(o in options()) {
        let g = black_scholes_merton(&o);
        let (s, sigma) = (o.spot, o.volatility);
        let terms = [
            g.theta,
            0.5 * sigma * sigma * s * s * g.gamma,
            (o.rate - o.dividend_yield) * s * g.delta,
            -o.rate * g.price,
        ];
        let residual: f64 = terms.iter().sum();
        let size: f64 = terms.iter().map(|term| term.abs()).sum();
        prop_assert!(residual.abs() <= 1e-13 * (size + o.spot.max(o.strike)), "{residual:e} of {size:e}");
        // Numbers below the normal ones have no such precision.
        let tiny = g.gamma < f64::MIN_POSITIVE;
        prop_assert!(tiny || (g.vega - s * s * g.gamma * sigma * o.years).abs() <= 1e-14 * g.vega);
    }

    /// No arbitrage: bounds, and which way the price goes.
    #[test]
    fn bounds_and_monotonicity(o in options(), step in 1e-6..0.5) {
        let g = black_scholes_merton(&o);
        let w = if o.call { 1.0 } else { -1.0 };
        let (dq, dr) = (libm::exp(-o.dividend_yield * o.years), libm::exp(-o.rate * o.years));
        let (sq, kr) = (o.spot * dq, o.strike * dr);
        let noise = 4.0 * f64::EPSILON * (sq + kr);
        prop_assert!(g.price >= (w * (sq - kr)).max(0.0) - noise);
        let upper = if o.call { sq } else { kr };
        prop_assert!(g.price <= upper + noise);
        prop_assert!(w * g.delta >= 0.0 && w * g.delta <= dq * (1.0 + 4.0 * f64::EPSILON));
        prop_assert!(g.gamma >= 0.0 && g.vega >= 0.0 && w * g.rho >= 0.0);
        let up = 1.0 + step;
        let change = |o: Contract| black_scholes_merton(&o).price - g.price;
        let by_spot = w * change(Contract { spot: o.spot * up, ..o });
        let by_strike = w * change(Contract { strike: o.strike * up, ..o });
        let by_volatility = change(Contract { volatility: o.volatility * up, ..o });
        let noise: f64 = noise * up;
        prop_assert!(by_spot >= -noise && by_strike <= noise && by_volatility >= -noise);
    }
}

/// E. G. Haug, "Contract pricing formulas" (McGraw-Hill 1998): pages 2 to 8 (the models' examples), 11 to 16
/// (Greeks), 24 and 27 (a table of Black-76 and an example), as printed.
#[test]
fn haug() {
    let option = |call, strike, spot, dividend_yield, rate, years, volatility| Contract {
        spot,
        strike,
        years,
        rate,
        dividend_yield,
        volatility,
        call,
    };
    // The last digit printed comes from an approximation of the normal distribution.
    let near = |value: f64, printed: f64| assert!((value - printed).abs() <= 1e-4, "{value} {printed}");
    for (o, printed) in [
        (option(true, 65.0, 60.0, 0.0, 0.08, 0.25, 0.30), 2.1334),
        (option(false, 95.0, 100.0, 0.05, 0.10, 0.5, 0.20), 2.4648),
        (option(false, 19.0, 19.0, 0.10, 0.10, 0.75, 0.28), 1.7011),
        (option(true, 19.0, 19.0, 0.10, 0.10, 0.75, 0.28), 1.7011),
        (option(true, 1.60, 1.56, 0.08, 0.06, 0.5, 0.12), 0.0291),
        (option(false, 70.0, 75.0, 0.05, 0.10, 0.5, 0.35), 4.0870),
        (option(true, 40.0, 42.0, 0.08, 0.04, 0.75, 0.35), 5.0975),
    ] {
        near(black_scholes_merton(&o).price, printed);
    }
    let table = [
        (0.1, 0.15, [0.0205, 1.8734, 9.9413], [9.9210, 1.8734, 0.0408]),
        (0.1, 0.25, [0.3150, 3.1217, 10.3556], [10.2155, 3.1217, 0.4551]),
        (0.1, 0.35, [0.9474, 4.3693, 11.1381], [10.8479, 4.3693, 1.2376]),
        (0.5, 0.15, [0.8069, 4.0232, 10.5769], [10.3192, 4.0232, 1.0646]),
        (0.5, 0.25, [2.7026, 6.6997, 12.7857], [12.2149, 6.6997, 3.2734]),
        (0.5, 0.35, [4.9329, 9.3679, 15.3086], [14.4452, 9.3679, 5.7963]),
    ];
    for (years, volatility, calls, puts) in table {
        for (i, forward) in [90.0, 100.0, 110.0].into_iter().enumerate() {
            let at = |call| black_76(&option(call, 100.0, forward, f64::NAN, 0.10, years, volatility)).price;
            near(at(true), calls[i]);
            near(at(false), puts[i]);
        }
    }
    let g = |call, strike, spot, dividend_yield, rate, years, volatility| {
        black_scholes_merton(&option(call, strike, spot, dividend_yield, rate, years, volatility))
    };
    near(g(true, 100.0, 105.0, 0.10, 0.10, 0.5, 0.36).delta, 0.5946);
    near(g(false, 100.0, 105.0, 0.10, 0.10, 0.5, 0.36).delta, -0.3566);
    near(g(true, 60.0, 55.0, 0.0, 0.10, 0.75, 0.30).gamma, 0.0278);
    near(g(false, 60.0, 55.0, 0.0, 0.10, 0.75, 0.30).vega, 18.9358);
    near(g(false, 405.0, 430.0, 0.05, 0.07, 1.0 / 12.0, 0.20).theta, -31.1924);
    near(g(true, 75.0, 72.0, 0.0, 0.09, 1.0, 0.19).rho, 38.7325);
}
