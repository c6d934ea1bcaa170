//! Recovers volatilities from prices that are known to 31 digits.

use super::Status;
use super::columns::{
    Prices, STEPS, implied_volatilities, implied_volatilities_into, implied_volatility, total_deviation,
};
use crate::black_scholes::undiscounted;
use crate::dispatch::InstructionSet;
use crate::double_double::Dd;
use crate::random::Random;

/// The price b(s) and its derivative db/ds.
fn black(x: f64, s: f64) -> (Dd, Dd) {
    let (h, t) = (Dd::from(x) / s, Dd::from(s) * 0.5);
    let slope = ((h * h + t * t) * -0.5).exp() * Dd(0.398_942_280_401_432_7, -2.492_327_202_277_73e-17);
    if (h + t).0 < 0.0 {
        (slope * ((-(h + t)).mills() - (t - h).mills()), slope)
    } else {
        let rest = slope * ((h + t).mills() + (t - h).mills());
        ((Dd::from(x) * 0.5).exp() - rest, slope)
    }
}

/// The error of s found from b(s) rounded to a double, in units of the error that this rounding allows.
fn error(x: f64, s: f64, steps: usize) -> Option<f64> {
    let (exact, slope) = black(x, s);
    let beta = exact.f64();
    let bound = libm::exp(0.5 * x);
    let amplified = beta / (s * slope.f64());
    let known = beta > 1e-300 && amplified < 1e9 && slope.f64() > 0.0;
    if !known {
        return None;
    }
    assert!(beta < bound);
    // The root of the rounded price, to second order.
    let root = s + ((Dd::from(beta) - exact) / slope).f64();
    let found = total_deviation(x, beta, steps).0;
    Some(((found - root) / s).abs() / (f64::EPSILON * (1.0 + amplified)))
}

#[test]
fn two_steps_suffice_for_every_attainable_price() {
    // Values of |x| as in the timing program of Jäckel's implementation (`letsberational_timing`,
    // instructions of 2024), to the limits of doubles.
    let grid = [
        0.0, 1e-14, 1e-8, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0,
        128.0, 256.0, 512.0,
    ];
    let mut worst = (0.0, 0.0, 0.0);
    let mut tried = 0;
    let mut random = Random::new(&[5]);
    let mut consider = |x: f64, s: f64| {
        if let Some(error) = error(x, s, STEPS) {
            tried += 1;
            if error > worst.0 || error.is_nan() {
                worst = (error, x, s);
            }
        }
    };
    for x in grid {
        for i in -180..=100 {
            consider(-x, libm::exp(f64::from(i) * 0.1 + 0.1 * random.uniform()));
        }
    }
    for _ in 0..4_000 {
        let x = -libm::exp(random.uniform() * 22.0 - 18.0);
        consider(x, libm::exp(random.uniform() * 12.0 - 9.0));
        // Around the inflection point, where market prices are.
        consider(x, (-2.0 * x).sqrt() * libm::exp(random.uniform() * 4.0 - 2.0));
    }
    assert!(tried > 5_000, "{tried}");
    assert!(worst.0 <= 6.0, "{worst:?}");
}

#[test]
fn every_price_without_a_volatility_says_why() {
    let status = |price, forward, strike, years, call| {
        let (volatility, status) = implied_volatility(price, forward, strike, 1.0, years, call);
        assert_eq!(
            volatility.is_nan(),
            !matches!(status, Status::Ok | Status::WithinRounding)
        );
        status
    };
    let (infinite, none) = (f64::INFINITY, f64::NAN);
    assert_eq!(status(3.0, 100.0, 101.0, 0.5, true), Status::Ok);
    assert_eq!(status(19.0, 100.0, 80.0, 0.5, true), Status::BelowIntrinsic);
    assert_eq!(status(20.0, 100.0, 80.0, 0.5, true), Status::AtIntrinsic);
    assert_eq!(status(-0.1, 100.0, 80.0, 0.5, false), Status::BelowIntrinsic);
    assert_eq!(status(0.0, 100.0, 80.0, 0.5, false), Status::ZeroPrice);
    assert_eq!(status(0.0, 100.0, 100.0, 0.5, true), Status::ZeroPrice);
    assert_eq!(status(100.0, 100.0, 80.0, 0.5, true), Status::AtOrAboveUpper);
    assert_eq!(status(80.0, 100.0, 80.0, 0.5, false), Status::AtOrAboveUpper);
    assert_eq!(status(1e300, 100.0, 80.0, 0.5, false), Status::AtOrAboveUpper);
    for years in [0.0, -1.0, none] {
        assert_eq!(status(1.0, 100.0, 80.0, years, false), Status::Expired);
    }
    for price in [none, infinite, -infinite] {
        assert_eq!(status(price, 100.0, 80.0, 1.0, false), Status::NoQuote);
    }
    for strike in [none, infinite, 0.0, -1.0] {
        assert_eq!(status(1.0, 100.0, strike, 1.0, false), Status::NoQuote);
    }
    for forward in [none, infinite, 0.0, -1.0] {
        assert_eq!(status(1.0, forward, 80.0, 1.0, false), Status::NoForward);
        assert_eq!(
            implied_volatility(1.0, 100.0, 80.0, forward, 1.0, false).1,
            Status::NoForward
        );
    }
    for (code, status) in Status::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(status.code()), code);
    }
}

/// The rounded discounted intrinsic value is never mistaken for a price with time value; a price one ulp away
/// may be.
#[test]
fn rounding_of_the_intrinsic_value_is_no_time_value() {
    let mut random = Random::new(&[9]);
    let mut seen = [0; Status::ALL.len()];
    for _ in 0..20_000 {
        let (forward, strike) = (80.0 + 40.0 * random.uniform(), 80.0 + 40.0 * random.uniform());
        let discount = 0.9 + 0.1 * random.uniform();
        let call = forward > strike;
        let status = |price: f64| {
            let (volatility, status) = implied_volatility(price, forward, strike, discount, 0.5, call);
            assert_eq!(
                volatility.is_nan(),
                !matches!(status, Status::Ok | Status::WithinRounding)
            );
            status
        };
        // Rounded once, from an exact difference.
        let exact = ((Dd::from(forward) - Dd::from(strike)) * Dd::from(discount))
            .f64()
            .abs();
        let found = status(exact);
        assert_ne!(found, Status::Ok, "{forward} {strike} {discount}");
        seen[usize::from(found.code())] += 1;
        for away in [exact.next_up().next_up(), exact.next_down().next_down()] {
            assert_ne!(status(away), Status::WithinRounding);
        }
    }
    // Below, at, and above it, depending on how the quotient rounds.
    for status in [Status::BelowIntrinsic, Status::AtIntrinsic, Status::WithinRounding] {
        assert!(seen[usize::from(status.code())] > 100, "{status:?} {seen:?}");
    }
    // Out of the money there is no intrinsic value, and every price is time value.
    assert_eq!(implied_volatility(1e-300, 100.0, 80.0, 0.97, 0.5, false).1, Status::Ok);
}

#[test]
fn every_instruction_set_gives_the_same_bytes() {
    let n = 5_003;
    let mut random = Random::new(&[6]);
    let mut column = |low: f64, high: f64| {
        (0..n)
            .map(|_| low + (high - low) * random.uniform())
            .collect::<Vec<_>>()
    };
    let (forward, strike, years) = (column(80.0, 120.0), column(50.0, 150.0), column(-0.02, 2.0));
    let (volatility, share) = (column(0.02, 1.5), column(0.0, 1.0));
    let call: Vec<bool> = (0..n).map(|i| i % 2 == 0).collect();
    let price: Vec<f64> = (0..n)
        .map(|i| match i % 50 {
            0 => f64::NAN,
            // Anywhere, including below the intrinsic value.
            1..10 => strike[i] * share[i],
            _ => undiscounted(
                forward[i],
                strike[i],
                volatility[i] * years[i].max(1e-3).sqrt(),
                call[i],
            ),
        })
        .collect();
    let prices = Prices {
        price: &price,
        forward: &forward,
        strike: &strike,
        discount: &vec![1.0; n],
        years: &years,
        call: &call,
    };
    let (first, codes) = implied_volatilities(&prices);
    assert!(codes.iter().filter(|&&code| code == Status::Ok.code()).count() > n / 2);
    for instructions in InstructionSet::available() {
        let (mut found, mut status) = (vec![0.0; n], vec![0; n]);
        implied_volatilities_into(&prices, instructions, &mut found, &mut status);
        assert_eq!(status, codes);
        assert!(
            first.iter().zip(&found).all(|(a, b)| a.to_bits() == b.to_bits()),
            "{instructions:?}"
        );
    }
    for i in 0..n {
        let (found, status) = implied_volatility(price[i], forward[i], strike[i], 1.0, years[i], call[i]);
        assert_eq!((found.to_bits(), status.code()), (first[i].to_bits(), codes[i]));
    }
}

/// At the money s = 2 cdf^-1((1 + b)/2), which any table of normal quantiles gives.
#[test]
fn at_the_money_it_is_a_normal_quantile() {
    let (found, _) = implied_volatility(0.95, 1.0, 1.0, 1.0, 1.0, true);
    assert!((found / (2.0 * 1.959_963_984_540_054) - 1.0).abs() < 1e-14);
    let (found, _) = implied_volatility(0.5, 1.0, 1.0, 1.0, 4.0, false);
    assert!((found / 0.674_489_750_196_081_7 - 1.0).abs() < 1e-15);
}
