//! Prices and Greeks of a European option by Black-Scholes-Merton with a continuous yield, and by Black-76.
//!
//! With `d1 = (ln(S/K) + (r - q + sigma^2/2) T) / (sigma sqrt T)`, `d2 = d1 - sigma sqrt T`, and w = 1 for a
//! call, -1 for a put (E. G. Haug, "The Complete Guide to Contract Pricing Formulas", 2nd ed., chapters 1 and
//! 2). All values are for one unit of the underlying.

use stages_numerics::fields;
use stages_numerics::special::INV_SQRT_TAU;
use stages_numerics::special::fused::{exp, fma, gauss, log_ratio, mills_pair};

pub use stages_numerics::black_scholes::Greeks;

/// An option contract, with its market data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contract {
    /// Price of the underlying (for Black-76, of the forward), in currency.
    pub spot: f64,
    /// Strike, in currency.
    pub strike: f64,
    /// Time to maturity in years.
    pub years: f64,
    /// Interest rate, continuously compounded, annual, decimal.
    pub rate: f64,
    /// Continuous yield of the underlying, annual, decimal.
    pub dividend_yield: f64,
    /// Volatility, annual, decimal.
    pub volatility: f64,
    /// True for a call, false for a put.
    pub call: bool,
}

fields! { all Contract, f64: spot, strike, years, rate, dividend_yield, volatility; call: bool }

impl Contract {
    /// 1 for a call, -1 for a put.
    pub fn sign(&self) -> f64 {
        if self.call { 1.0 } else { -1.0 }
    }
}

/// A pricing model.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// On the underlying's price with a continuous yield; sensitivities to the underlying.
    #[default]
    BlackScholesMerton,
    /// On the forward price; delta, gamma, vanna and charm are to the forward, and rho holds it fixed.
    #[serde(rename = "black_76")]
    Black76,
}

/// Price and Greeks by Black-Scholes-Merton. If time, volatility, spot or strike is 0, the limit there: the
/// discounted intrinsic value and its derivatives. On the kink (at the money without time or volatility)
/// delta and rho are the mean of both sides, while gamma, vanna, volga and charm, and theta at expiry, do not
/// exist and are NaN. All are NaN if an input is NaN or negative.
pub fn black_scholes_merton(option: &Contract) -> Greeks {
    greeks(option, Model::BlackScholesMerton)
}

/// Price and Greeks by Black-76: `spot` is the forward price; the yield is ignored.
pub fn black_76(option: &Contract) -> Greeks {
    let option = Contract {
        dividend_yield: option.rate,
        ..*option
    };
    greeks(&option, Model::Black76)
}

fn greeks(option: &Contract, model: Model) -> Greeks {
    let [s, k, t, r, q, sigma] = option.to_array();
    if !is_regular(s, k, t, sigma) {
        return limit(option, model);
    }
    let place = position(s, k, t, r, q, sigma);
    let values = weights(t, r, q, place[0], place[1]);
    let on_forward = if model == Model::Black76 { 1.0 } else { 0.0 };
    Greeks::from_array(assemble(
        [s, k, t, r, q, sigma, option.sign()],
        place,
        values,
        on_forward,
    ))
}

/// Returns whether the formula holds: all numbers are positive and none is NaN.
#[inline(always)]
pub(super) fn is_regular(spot: f64, strike: f64, years: f64, volatility: f64) -> bool {
    spot > 0.0 && strike > 0.0 && years > 0.0 && volatility > 0.0
}

// The formula is divided into three branchless parts, which a kernel runs one after another over a block: a
// single loop over all of them is so long that the CPU finds no second option to work on while it waits for
// the first.

/// The moneyness in standard deviations, `d1` and `d2`, then `1 / (sigma sqrt T)` and `sqrt T`.
#[inline(always)]
pub(super) fn position(s: f64, k: f64, t: f64, r: f64, q: f64, sigma: f64) -> [f64; 4] {
    let sqrt_t = t.sqrt();
    let sd = sigma * sqrt_t;
    let by_sd = 1.0 / sd;
    let m = fma(r - q, t, log_ratio(s, k)) * by_sd;
    [fma(0.5, sd, m), fma(-0.5, sd, m), by_sd, sqrt_t]
}

/// `e^(-qT)`, `e^(-rT)`, the normal density at d1, and the tail probabilities beyond |d1| and |d2|, both in
/// units of the density at d1 (for the leg of the strike, of that at d2, since `K e^(-rT) pdf(d2) = S e^(-qT)
/// pdf(d1)`).
#[inline(always)]
pub(super) fn weights(t: f64, r: f64, q: f64, d1: f64, d2: f64) -> [f64; 5] {
    let (m1, m2) = mills_pair(d1.abs(), d2.abs());
    [exp(-q * t), exp(-r * t), gauss(d1) * INV_SQRT_TAU, m1, m2]
}

/// Price and Greeks. `w` is 1 for a call and -1 for a put; `on_forward` is 1 to hold the forward fixed in rho
/// (apart from rho, Black-76 is Black-Scholes-Merton with q = r).
#[inline(always)]
pub(super) fn assemble(
    [s, k, t, r, q, sigma, w]: [f64; 7],
    [d1, d2, by_sd, sqrt_t]: [f64; 4],
    [dq, dr, pdf, m1, m2]: [f64; 5],
    on_forward: f64,
) -> [f64; 9] {
    let by_sigma = sqrt_t * by_sd;
    // 1 / 2T.
    let root = sigma * by_sd;
    let by_2t = 0.5 * root * root;
    let (sq, kr) = (s * dq, k * dr);
    let (density, spot_density) = (dq * pdf, sq * pdf);
    let (tail1, tail2) = (pdf * m1, spot_density * m2);
    let (out1, out2) = (w * d1 < 0.0, w * d2 < 0.0);
    let cdf1 = if out1 { tail1 } else { 1.0 - tail1 };
    let leg1 = if out1 { sq * tail1 } else { fma(-sq, tail1, sq) };
    let leg2 = if out2 { tail2 } else { kr - tail2 };
    let price = w * (leg1 - leg2);
    let price = if price < 0.0 { 0.0 } else { price };
    let delta = w * dq * cdf1;
    let vega = spot_density * sqrt_t;
    let rho = if on_forward > 0.5 { -t * price } else { w * t * leg2 };
    let turn = d2 * by_sigma;
    [
        price,
        delta,
        density * by_sd / s,
        vega,
        fma(-vega * sigma, by_2t, w * fma(q, leg1, -(r * leg2))),
        rho,
        -density * turn,
        vega * (d1 * turn),
        fma(q, delta, -density * fma(r - q, by_sd, -(d2 * by_2t))),
    ]
}

/// Further Greeks, in the units of [`Greeks`]; all of them follow from [`Greeks`], d1 and d2.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Further {
    /// dV/dq, also called epsilon.
    pub phi: f64,
    /// d2V/dsigma dT, by time to maturity and not by calendar time.
    pub veta: f64,
    /// d3V/dS3.
    pub speed: f64,
    /// d3V/dS2 dsigma.
    pub zomma: f64,
    /// d3V/dS2 dT, by time to maturity and not by calendar time.
    pub color: f64,
    /// d3V/dsigma3.
    pub ultima: f64,
    /// dV/dK.
    pub dual_delta: f64,
    /// d2V/dK2.
    pub dual_gamma: f64,
}

fields! { Further, f64: phi, veta, speed, zomma, color, ultima, dual_delta, dual_gamma }

/// The further Greeks by Black-Scholes-Merton; NaN unless time and volatility are positive.
pub fn further(option: &Contract) -> Further {
    let [s, k, t, r, q, sigma] = option.to_array();
    let none = if is_regular(s, k, t, sigma) { 0.0 } else { f64::NAN };
    let g = black_scholes_merton(option);
    let [d1, d2, by_sd, _] = position(s, k, t, r, q, sigma);
    let product = d1 * d2;
    // The relative changes of e^(-qT) pdf(d1) and of sqrt T with T.
    let density = -q - d1 * ((r - q) * by_sd - 0.5 * d2 / t);
    let root = 0.5 / t;
    let ratio = s / k;
    Further {
        phi: none - t * s * g.delta,
        veta: none + g.vega * (density + root),
        speed: none - g.gamma / s * (d1 * by_sd + 1.0),
        zomma: none + g.gamma * (product - 1.0) / sigma,
        color: none + g.gamma * (density - root),
        ultima: none - g.vega / (sigma * sigma) * (product * (1.0 - product) + d1 * d1 + d2 * d2),
        dual_delta: none - g.rho / (t * k),
        dual_gamma: none + g.gamma * ratio * ratio,
    }
}

/// The limit at expiry, without volatility, or at a spot or strike of 0: the discounted intrinsic value and
/// its derivatives. On the kink itself gamma, vanna, volga and charm, and theta at expiry, have no limit and
/// are NaN; delta and rho are the mean of both sides.
pub(super) fn limit(option: &Contract, model: Model) -> Greeks {
    let [s, k, t, r, q, sigma] = option.to_array();
    if !(s >= 0.0 && k >= 0.0 && t >= 0.0 && sigma >= 0.0) || r.is_nan() || q.is_nan() {
        return Greeks::NONE;
    }
    let w = option.sign();
    let (dq, dr) = (exp(-q * t), exp(-r * t));
    let (sq, kr) = (s * dq, k * dr);
    let distance = if r == q { w * (s - k) * dq } else { w * (sq - kr) };
    let inside = if distance > 0.0 {
        1.0
    } else if distance < 0.0 {
        0.0
    } else {
        0.5
    };
    let kink = distance == 0.0;
    let price = distance.max(0.0);
    let none = if kink { f64::NAN } else { 0.0 };
    let vega = if kink { sq * INV_SQRT_TAU * t.sqrt() } else { 0.0 };
    let decay = if !kink {
        0.0
    } else if t > 0.0 {
        // The term -vega sigma / 2T with sigma = 0.
        0.0
    } else if sigma > 0.0 {
        f64::NEG_INFINITY
    } else {
        0.0
    };
    Greeks {
        price,
        delta: w * dq * inside,
        gamma: none,
        vega,
        theta: if decay == 0.0 {
            w * inside * (q * sq - r * kr)
        } else {
            f64::NAN
        },
        rho: if model == Model::Black76 {
            -t * price
        } else {
            w * t * kr * inside
        },
        vanna: none,
        volga: none,
        charm: if kink { f64::NAN } else { w * q * dq * inside },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn option() -> Contract {
        Contract {
            spot: 100.0,
            strike: 100.0,
            years: 0.5,
            rate: 0.03,
            dividend_yield: 0.01,
            volatility: 0.2,
            call: true,
        }
    }

    #[test]
    fn limits_are_approached() {
        for call in [true, false] {
            for strike in [80.0, 120.0] {
                let at = Contract {
                    strike,
                    call,
                    years: 0.0,
                    ..option()
                };
                let near = black_scholes_merton(&Contract { years: 1e-9, ..at }).to_array();
                for (near, at) in near.into_iter().zip(black_scholes_merton(&at).to_array()) {
                    assert!((near - at).abs() < 1e-6, "{near} {at}");
                }
                let at = Contract {
                    strike,
                    call,
                    volatility: 0.0,
                    ..option()
                };
                let near = black_scholes_merton(&Contract {
                    volatility: 1e-4,
                    ..at
                })
                .to_array();
                for (near, at) in near.into_iter().zip(black_scholes_merton(&at).to_array()) {
                    assert!((near - at).abs() < 1e-9, "{near} {at}");
                }
            }
        }
    }

    #[test]
    fn without_spot_or_strike() {
        for call in [true, false] {
            for (nothing, tiny) in [
                (
                    Contract {
                        spot: 0.0,
                        call,
                        ..option()
                    },
                    Contract {
                        spot: 1e-12,
                        call,
                        ..option()
                    },
                ),
                (
                    Contract {
                        strike: 0.0,
                        call,
                        ..option()
                    },
                    Contract {
                        strike: 1e-12,
                        call,
                        ..option()
                    },
                ),
            ] {
                for f in [black_scholes_merton, black_76] {
                    for (at, near) in f(&nothing).to_array().into_iter().zip(f(&tiny).to_array()) {
                        assert!((near - at).abs() < 1e-9, "{near} {at} {nothing:?}");
                    }
                }
            }
        }
        let put = black_scholes_merton(&Contract {
            spot: 0.0,
            call: false,
            ..option()
        });
        assert!((put.price - 100.0 * libm::exp(-0.015)).abs() < 1e-12 && put.gamma == 0.0);
        assert!(
            black_scholes_merton(&Contract {
                spot: -1.0,
                ..option()
            })
            .price
            .is_nan()
        );
    }

    #[test]
    fn at_the_kink_and_beyond() {
        let at = black_scholes_merton(&Contract {
            years: 0.0,
            ..option()
        });
        assert_eq!((at.price, at.delta), (0.0, 0.5));
        assert!(at.gamma.is_nan());
        assert!(
            black_scholes_merton(&Contract {
                years: -0.1,
                ..option()
            })
            .price
            .is_nan()
        );
        assert!(
            black_scholes_merton(&Contract {
                spot: f64::NAN,
                ..option()
            })
            .price
            .is_nan()
        );
        assert!(
            black_scholes_merton(&Contract {
                volatility: f64::NAN,
                ..option()
            })
            .price
            .is_nan()
        );
    }

    proptest! {
        /// Every Greek is the derivative that its name denotes, of the price or of another Greek.
        #[test]
        fn greeks_are_derivatives(
            spot in 80.0..120.0, years in 0.1..2.0, rate in -0.02..0.08, dividend_yield in -0.01..0.05,
            volatility in 0.1..0.6, call: bool, forward: bool,
        ) {
            let o = Contract { spot, strike: 100.0, years, rate, dividend_yield, volatility, call };
            let f = if forward { black_76 } else { black_scholes_merton };
            let slope = |up: Contract, down: Contract, h: f64,
                of: fn(Greeks) -> f64| (of(f(&up)) - of(f(&down))) / (2.0 * h);
            let g = f(&o);
            let (hs, h) = (1e-3, 1e-5);
            let by_spot = |of| slope(Contract { spot: spot + hs, ..o }, Contract { spot: spot - hs, ..o },
                hs, of);
            let by_vol = |of| slope(Contract { volatility: volatility + h, ..o },
                Contract { volatility: volatility - h, ..o }, h, of);
            let by_time = |of| slope(Contract { years: years + h, ..o }, Contract { years: years - h, ..o },
                h, of);
            let by_rate = |of| slope(Contract { rate: rate + h, ..o }, Contract { rate: rate - h, ..o }, h,
                of);
            let close = |a: f64, b: f64| (a - b).abs() <= 2e-6 * (1.0 + a.abs().max(b.abs()));
            prop_assert!(close(g.delta, by_spot(|g| g.price)));
            prop_assert!(close(g.gamma, by_spot(|g| g.delta)));
            prop_assert!(close(g.vega, by_vol(|g| g.price)));
            prop_assert!(close(g.theta, -by_time(|g| g.price)));
            prop_assert!(close(g.rho, by_rate(|g| g.price)));
            prop_assert!(close(g.vanna, by_vol(|g| g.delta)));
            prop_assert!(close(g.volga, by_vol(|g| g.vega)));
            prop_assert!(close(g.charm, -by_time(|g| g.delta)));
        }
    }
}
