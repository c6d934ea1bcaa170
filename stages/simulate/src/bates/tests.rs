//! Compares prices with Black's formula, with Heston's two probabilities, and with simulation.

use super::super::path::Step;
use super::reference::{self, Complex};
use super::*;
use stages_numerics::black_scholes::undiscounted;
use stages_numerics::random::Random;

/// Parameters like those of Bakshi, Cao and Chen (1997), and some that are hard for the method.
const MODELS: &[Bates] = &[
    Bates {
        kappa: 2.03,
        theta: 0.04,
        sigma: 0.38,
        rho: -0.57,
        jump_intensity: 0.59,
        jump_mean: -0.05,
        jump_deviation: 0.07,
    },
    Bates {
        kappa: 3.0,
        theta: 0.03,
        sigma: 0.4,
        rho: -0.7,
        jump_intensity: 1.5,
        jump_mean: -0.0685,
        jump_deviation: 0.06,
    },
    Bates {
        kappa: 1.0,
        theta: 0.02,
        sigma: 0.8,
        rho: -0.9,
        jump_intensity: 0.0,
        jump_mean: 0.0,
        jump_deviation: 0.0,
    },
    Bates {
        kappa: 6.0,
        theta: 0.09,
        sigma: 0.2,
        rho: 0.3,
        jump_intensity: 5.0,
        jump_mean: 0.02,
        jump_deviation: 0.03,
    },
];

impl Expiry {
    fn of(model: &Bates, v: f64, years: f64, forward: f64, reach: f64) -> Self {
        Self::new(0.0, model, v, years, forward, reach)
    }

    fn call_and_put(&self, strike: f64) -> (f64, f64) {
        let (call, put, _) = self.calls_and_puts(strike);
        (call, put)
    }

    fn out_of_the_money(&self, strike: f64) -> f64 {
        let (call, put) = self.call_and_put(strike);
        if strike >= self.forward { call } else { put }
    }
}

/// The nodes and weights of the Gauss-Legendre rule with 16 points on [-1, 1], by Newton's method.
fn gauss_legendre() -> Vec<(f64, f64)> {
    let n = 16;
    (0..n)
        .map(|i| {
            let mut x = libm::cos(std::f64::consts::PI * (i as f64 + 0.75) / (n as f64 + 0.5));
            let mut slope = 0.0;
            for _ in 0..50 {
                let (mut p, mut before) = (1.0, 0.0);
                for j in 0..n {
                    let next = ((2 * j + 1) as f64 * x * p - j as f64 * before) / (j + 1) as f64;
                    before = p;
                    p = next;
                }
                slope = n as f64 * (x * p - before) / (x * x - 1.0);
                x -= p / slope;
            }
            (x, 2.0 / ((1.0 - x * x) * slope * slope))
        })
        .collect()
}

/// The characteristic function of ln(S_T / F) at a complex argument, as Gatheral prints it ("The Volatility
/// Surface", chapters 2 and 5): an independent implementation, in another form than the one under test.
fn textbook(model: &Bates, v: f64, years: f64, w: Complex) -> Complex {
    let i = Complex::new(0.0, 1.0);
    let s2 = model.sigma * model.sigma;
    let alpha = (w * w).scale(-0.5) - (i * w).scale(0.5);
    let beta = Complex::new(model.kappa, 0.0) - (i * w).scale(model.rho * model.sigma);
    let gamma = 0.5 * s2;
    let d = (beta * beta - alpha.scale(4.0 * gamma)).sqrt();
    let plus = (beta + d).scale(1.0 / s2);
    let minus = (beta - d).scale(1.0 / s2);
    let g = minus / plus;
    let e = (-d.scale(years)).exp();
    let on_variance = minus * (Complex::ONE - e) / (Complex::ONE - g * e);
    let ln = |z: Complex| (z - Complex::ONE).ln_1p();
    let constant = (minus.scale(years) - ln((Complex::ONE - g * e) / (Complex::ONE - g)).scale(2.0 / s2))
        .scale(model.kappa);
    let (mu, delta2) = (model.jump_mean, model.jump_deviation * model.jump_deviation);
    let jump = ((i * w).scale(mu) - (w * w).scale(0.5 * delta2)).exp() - Complex::ONE;
    let compensator = (i * w).scale(libm::exp(mu + 0.5 * delta2) - 1.0);
    (constant.scale(model.theta)
        + on_variance.scale(v)
        + (jump - compensator).scale(model.jump_intensity * years))
    .exp()
}

/// The undiscounted call price F P1 - K P2, each probability by Gil-Pelaez's integral (Heston 1993, equation
/// 18), with composite Gauss-Legendre quadrature.
fn heston_call(model: &Bates, v: f64, years: f64, forward: f64, strike: f64) -> f64 {
    let rule = gauss_legendre();
    let k = libm::log(strike / forward);
    let i = Complex::new(0.0, 1.0);
    let probability = |shift: f64| {
        let panel = 2.0;
        let mut integral = 0.0;
        let mut quiet = 0;
        for n in 0..20_000 {
            let mut part = 0.0;
            let mut size = 0.0_f64;
            for &(x, weight) in &rule {
                let u = (n as f64 + 0.5 * (x + 1.0)) * panel;
                let phi = textbook(model, v, years, Complex::new(u, -shift));
                let value = Complex::new(0.0, -u * k).exp() * phi / (i.scale(u));
                part += 0.5 * panel * weight * value.re;
                size = size.max(phi.norm() / (u * u));
            }
            integral += part;
            quiet = if size < 1e-34 { quiet + 1 } else { 0 };
            if quiet > 3 {
                break;
            }
        }
        0.5 + integral / std::f64::consts::PI
    };
    forward * probability(1.0) - strike * probability(0.0)
}

#[test]
fn agrees_with_heston_probabilities() {
    let mut worst = 0.0_f64;
    for model in MODELS {
        for years in [0.02, 0.08, 0.5, 1.0] {
            for v in [0.005, 0.03, 0.15] {
                let expiry = Expiry::of(model, v, years, 3000.0, 1.7);
                let deviation = model.expected_variance(v, years).sqrt();
                for x in [-4.0, -2.0, -0.5, 0.0, 0.7, 2.0, 3.0] {
                    let strike = 3000.0 * libm::exp(x * deviation);
                    let call = heston_call(model, v, years, 3000.0, strike);
                    let out = if strike >= 3000.0 { call } else { call - 3000.0 + strike };
                    let found = expiry.out_of_the_money(strike);
                    // F P1 - K P2 suffers from cancellation: it is accurate to about 1e-14 of the forward.
                    let error = (found - out).abs() - 1e-12 * 3000.0;
                    worst = worst.max(error / out);
                    assert!(error < 1e-8 * out, "{model:?} {v} {years} {strike}: {found} {out}");
                }
            }
        }
    }
    eprintln!("worst relative difference beyond 3e-9: {worst:e}");
}

#[test]
fn vectors_are_as_accurate_as_they_say() {
    let mut worst = 0.0_f64;
    for model in MODELS {
        for years in [0.004, 0.02, 0.25, 1.2] {
            for v in [0.0005, 0.01, 0.2] {
                let expiry = Expiry::of(model, v, years, 1.0, 0.6);
                let slow = reference::Expiry::new(model, v, years, 1.0, 0.6);
                for i in -30..30 {
                    let strike = libm::exp(f64::from(i) * 0.02);
                    let error = (expiry.out_of_the_money(strike) - slow.out_of_the_money(strike)).abs();
                    worst = worst.max(error);
                }
            }
        }
    }
    assert!(worst < 1e-12, "{worst:e}");
}

#[test]
fn the_step_is_fine_enough() {
    for model in MODELS {
        for years in [0.004, 0.02, 0.25, 1.2] {
            for v in [0.0005, 0.01, 0.2] {
                let coarse = Expiry::of(model, v, years, 1.0, 0.6);
                let fine = Expiry::with_step(0.0, model, v, years, 1.0, 0.6, 2.0);
                for k in [-0.6, -0.3, -0.05, 0.0, 0.02, 0.4] {
                    let strike = libm::exp(k);
                    let (a, b) = (coarse.out_of_the_money(strike), fine.out_of_the_money(strike));
                    assert!(
                        (a - b).abs() < 1e-12,
                        "{model:?} {v} {years} {k}: {a:e} {b:e} {}",
                        coarse.nodes.len()
                    );
                }
            }
        }
    }
}

#[test]
fn without_volatility_of_variance_it_is_black() {
    for sigma in [0.0, 1e-9, 1e-6] {
        let model = Bates {
            sigma,
            jump_intensity: 0.0,
            ..MODELS[0]
        };
        for years in [0.01, 0.5] {
            let deviation = model.expected_variance(0.02, years).sqrt();
            let expiry = Expiry::of(&model, 0.02, years, 100.0, 0.5);
            for strike in [70.0, 95.0, 100.0, 104.0, 140.0] {
                let (call, put) = expiry.call_and_put(strike);
                // The difference is of the order of sigma.
                let tolerance = 1e-12 + 10.0 * sigma;
                assert!((call - undiscounted(100.0, strike, deviation, true)).abs() < tolerance * 100.0);
                assert!((call - put - (100.0 - strike)).abs() < 1e-11, "parity");
            }
        }
    }
    // Without variance of variance, with jumps alone: the series of Merton (1976).
    let model = Bates {
        sigma: 0.0,
        ..MODELS[1]
    };
    let (v, years) = (0.02_f64, 0.3);
    let diffusion = model.expected_variance(v, years) - model.jump_variance() * years;
    let expiry = Expiry::of(&model, v, years, 100.0, 0.5);
    for strike in [70.0, 90.0, 100.0, 120.0] {
        let mut sum = 0.0;
        let mut probability = libm::exp(-model.jump_intensity * years);
        for n in 0..60 {
            let n = f64::from(n);
            let shift = n * (model.jump_mean + 0.5 * model.jump_deviation * model.jump_deviation)
                - model.jump_intensity * years * model.mean_jump();
            let deviation = (diffusion + n * model.jump_deviation * model.jump_deviation).sqrt();
            sum += probability * undiscounted(100.0 * libm::exp(shift), strike, deviation, strike >= 100.0);
            probability *= model.jump_intensity * years / (n + 1.0);
        }
        let found = expiry.out_of_the_money(strike);
        assert!((found - sum).abs() < 1e-12 * 100.0, "{strike}: {found} {sum}");
    }
}

#[test]
fn agrees_with_simulation() {
    let model = MODELS[1];
    let (v, years, steps, paths) = (0.02, 0.25, 64, 60_000);
    let step = Step::new(&model, years / f64::from(steps));
    let mut random = Random::new(&[11]);
    let strikes = [0.85, 0.95, 1.0, 1.05];
    let mut sums = [[0.0; 2]; 4];
    let mut growth = [0.0; 2];
    for _ in 0..paths {
        let (mut variance, mut log) = (v, 0.0);
        for _ in 0..steps {
            log += step.advance(&mut variance, &mut random).martingale();
        }
        let price = libm::exp(log);
        growth[0] += price;
        growth[1] += price * price;
        for (sum, strike) in sums.iter_mut().zip(strikes) {
            let payoff = if strike >= 1.0 {
                (price - strike).max(0.0)
            } else {
                (strike - price).max(0.0)
            };
            sum[0] += payoff;
            sum[1] += payoff * payoff;
        }
    }
    let n = f64::from(paths);
    let check = |sum: [f64; 2], exact: f64| {
        let mean = sum[0] / n;
        let error = ((sum[1] / n - mean * mean) / n).sqrt();
        assert!((mean - exact).abs() < 3.5 * error, "{mean} {exact} {error}");
        assert!(error < 0.03 * exact, "{error} {exact}");
    };
    check(growth, 1.0);
    let expiry = Expiry::of(&model, v, years, 1.0, 0.3);
    for (sum, strike) in sums.into_iter().zip(strikes) {
        check(sum, expiry.out_of_the_money(strike));
    }
}
