use super::*;
use crate::numerics::formula::{Contract, black_76};
use proptest::prelude::*;
use stages_numerics::random::Random;

/// Black's price of an out-of-the-money option on a forward of 1, and its derivative by the total deviation.
fn price(k: f64, deviation: f64) -> (f64, f64) {
    let option = Contract {
        spot: 1.0,
        strike: libm::exp(k),
        years: 1.0,
        rate: 0.0,
        dividend_yield: 0.0,
        volatility: deviation,
        call: k >= 0.0,
    };
    let greeks = black_76(&option);
    (greeks.price, greeks.vega)
}

/// The total variance of an SVI smile, given its value at the money and twice its slopes on the right and on
/// the left.
#[derive(Clone, Copy)]
struct Svi(f64, f64, f64);

impl Svi {
    fn total_variance(self, k: f64) -> f64 {
        let Self(theta, right, left) = self;
        let (psi, rho) = (0.5 * (right + left), (right - left) / (right + left));
        let inner = psi * k + theta * rho;
        0.5 * (theta + rho * psi * k + (inner * inner + theta * theta * (1.0 - rho * rho)).sqrt())
    }

    fn volatility(self, k: f64, years: f64) -> f64 {
        (self.total_variance(k) / years).sqrt()
    }
}

/// Quotes of a smile with noise in volatility, and with spreads of one volatility point.
fn quotes(smile: Svi, years: f64, noise: f64, seed: u64) -> Vec<Quote> {
    let mut random = Random::new(&[seed]);
    let root = years.sqrt();
    (-12..=12)
        .map(|i| {
            let k = f64::from(i) * 0.25 * smile.0.sqrt();
            let volatility = (smile.volatility(k, years) + noise * random.normal()).max(0.01);
            let (price, vega) = price(k, volatility * root);
            Quote {
                log_moneyness: k,
                price: price.max(1e-12),
                half_spread: (0.005 * vega * root).max(1e-12),
            }
        })
        .collect()
}

/// Checks that there is no arbitrage within a smile or between it and a later one, on a grid far into both
/// wings, at expiries, between them and beyond.
fn assert_no_arbitrage(surface: &Surface) {
    let mut times: Vec<f64> = (1..=240).map(|i| 0.02 * f64::from(i)).collect();
    times.extend(surface.expiries().iter().map(|expiry| expiry.years));
    times.sort_by(f64::total_cmp);
    let grid: Vec<f64> = (-240..=240).map(|i| 0.01 * f64::from(i)).collect();
    let mut before: Option<Vec<f64>> = None;
    for smile in times.iter().filter_map(|years| surface.at(*years)) {
        let variances = smile.total_variances(&grid);
        let calls: Vec<f64> = grid
            .iter()
            .zip(&variances)
            .map(|(k, w)| price(*k, w.sqrt()).0 + (1.0 - libm::exp(*k)).max(0.0))
            .collect();
        let slopes: Vec<f64> = (1..grid.len())
            .map(|i| (calls[i] - calls[i - 1]) / (libm::exp(grid[i]) - libm::exp(grid[i - 1])))
            .collect();
        // The rounding error of prices near 1, over the smallest strike step, 1e-3.
        const ROUNDING: f64 = 1e-12;
        for (slopes, k) in slopes.windows(2).zip(&grid[1..]) {
            assert!(slopes[1] >= slopes[0] - ROUNDING, "butterfly at {k}, {}", smile.years());
        }
        assert!(slopes.iter().all(|slope| (-1.0 - ROUNDING..=ROUNDING).contains(slope)));
        if let Some(before) = before {
            for ((now, then), k) in variances.iter().zip(&before).zip(&grid) {
                assert!(
                    *now >= then * (1.0 - 1e-9),
                    "calendar at {k}, {}: {now} {then}",
                    smile.years()
                );
            }
        }
        before = Some(variances);
    }
}

#[test]
fn finds_the_surface_that_made_the_quotes() {
    let truth = [0.05, 0.1, 0.25, 0.5, 1.0].map(|years: f64| {
        let theta = 0.04 * years;
        let psi = 0.6 * theta.sqrt();
        (years, Svi(theta, psi * 0.4, psi * 1.6))
    });
    let book = truth.map(|(years, smile)| (years, quotes(smile, years, 0.0, 1)));
    let surface = Surface::fit(&book, 5);
    assert_eq!(surface.expiries().len(), 5);
    assert!(surface.residual() < 2e-4, "{}", surface.residual());
    assert_no_arbitrage(&surface);
    // Also between the quotes, and between the expiries.
    for (years, smile) in truth {
        let fitted = surface.at(years).unwrap();
        for i in -30..=30 {
            let k = 0.1 * f64::from(i) * smile.0.sqrt();
            let error = fitted.volatility(k) - smile.volatility(k, years);
            assert!(error.abs() < 5e-4, "{k} {years}: {error}");
        }
    }
    let (half, year) = (surface.at(0.5).unwrap(), surface.at(1.0).unwrap());
    let mean = 0.5 * (half.total_variance(-0.1) + year.total_variance(-0.1));
    assert!((surface.at(0.75).unwrap().total_variance(-0.1) / mean - 1.0).abs() < 1e-3);
}

#[test]
fn withstands_bad_quotes() {
    let truth = Svi(0.01, 0.03, 0.12);
    let mut book = quotes(truth, 0.25, 0.0005, 2);
    for (i, error) in [(3, 0.2), (17, -0.1)] {
        let k = book[i].log_moneyness;
        book[i].price = price(k, (truth.volatility(k, 0.25) + error) * 0.5).0;
    }
    let surface = Surface::fit(&[(0.25, book)], 5);
    let found = surface.at(0.25).unwrap();
    for k in [-0.2, -0.1, 0.0, 0.1, 0.2] {
        let error = found.volatility(k) - truth.volatility(k, 0.25);
        assert!(error.abs() < 0.003, "{k}: {error}");
    }
}

/// A later expiry that is cheaper: no arbitrage-free surface passes through these quotes.
#[test]
fn an_arbitrage_is_not_fitted() {
    let smile = |level: f64, years: f64| quotes(Svi(level * level * years, 0.1, 0.1), years, 0.0, 3);
    let surface = Surface::fit(&[(0.25, smile(0.4, 0.25)), (0.3, smile(0.2, 0.3))], 5);
    assert_no_arbitrage(&surface);
    let (first, second) = (surface.at(0.25).unwrap(), surface.at(0.3).unwrap());
    assert!((first.volatility(0.0) - 0.4).abs() < 1e-3);
    assert_eq!(first.total_variance(0.0), second.total_variance(0.0));
}

/// Quotes that carry little information: at a single strike, of almost no volatility, below what their
/// neighbours allow, with a spread of 0 or without bound.
#[test]
fn every_book_has_a_surface() {
    let quote = |k: f64, deviation: f64, half_spread: f64| Quote {
        log_moneyness: k,
        price: price(k, deviation).0.max(1e-300),
        half_spread,
    };
    let books = [
        vec![quote(0.0, 0.1, 1e-3); 3],
        vec![quote(-1.0, 1e-9, 1e-5), quote(0.0, 1e-9, 1e-5), quote(1.0, 1e-9, 1e-5)],
        vec![quote(-0.1, 0.1, 0.0), quote(0.0, 0.01, 0.0), quote(0.1, 0.1, 0.0)],
        vec![quote(-3.0, 3.0, 1e9), quote(0.0, 3.0, 1e9), quote(3.0, 3.0, 1e9)],
        vec![quote(0.2, 0.1, 1e-4), quote(0.3, 0.3, 1e-4), quote(0.4, 0.1, 1e-4)],
    ];
    for book in books {
        let surface = Surface::fit(&[(0.1, book)], 3);
        let smile = surface.at(0.1).unwrap();
        let volatility = |i: i32| smile.volatility(0.05 * f64::from(i));
        assert!((-60..=60).all(|i| volatility(i) > 0.0 && volatility(i) < 1e3));
        assert_no_arbitrage(&surface);
    }
}

#[test]
fn a_delta_has_its_strike() {
    let surface = Surface::fit(&[(0.25, quotes(Svi(0.02, 0.05, 0.2), 0.25, 0.0, 4))], 5);
    let smile = surface.at(0.25).unwrap();
    for (delta, call) in [(0.25, true), (0.25, false), (0.1, true), (0.1, false), (0.45, false)] {
        let k = smile.log_moneyness_of(delta, call);
        let w = smile.total_variance(k);
        let d1 = -k / w.sqrt() + 0.5 * w.sqrt();
        let sign = if call { 1.0 } else { -1.0 };
        assert!((stages_numerics::special::normal_cdf(sign * d1) - delta).abs() < 1e-12);
        assert!(sign * k > -0.05);
    }
}

#[test]
fn says_nothing_far_from_what_it_knows() {
    let smile = Svi(0.01, 0.03, 0.12);
    let surface = Surface::fit(&[(0.25, quotes(smile, 0.25, 0.0, 3)), (0.5, Vec::new())], 5);
    assert!(surface.at(0.1).is_none() && surface.at(0.6).is_none());
    let (near, far) = (surface.at(0.2).unwrap(), surface.at(0.4).unwrap());
    let at = surface.at(0.25).unwrap();
    assert!((near.volatility(0.0) - at.volatility(0.0)).abs() < 1e-12);
    assert!((far.volatility(0.0) - at.volatility(0.0)).abs() < 1e-12);
    // Between nodes the volatility is that of a price linear in the strike.
    assert!((near.volatility(-0.1) - at.volatility(-0.1)).abs() < 1e-4);
    // Where hardly any price is left, there still is a volatility.
    assert!(at.volatility(-9.0) > 0.0 && at.volatility(9.0) > 0.0);
    assert!(Surface::default().at(0.1).is_none() && Surface::default().residual().is_nan());
}

/// Six expiries of unrelated smiles, with noise.
fn unrelated(seed: u64, noise: f64) -> Vec<(f64, Vec<Quote>)> {
    let mut random = Random::new(&[seed]);
    (1..=6)
        .map(|i| {
            let years = 0.06 * (i * i) as f64;
            let mut uniform = |low: f64, high: f64| low + (high - low) * random.uniform();
            let theta = uniform(0.05, 0.6).powi(2) * years;
            let smile = Svi(
                theta,
                uniform(0.01, 2.0) * theta.sqrt(),
                uniform(0.01, 3.0) * theta.sqrt(),
            );
            (years, quotes(smile, years, noise, seed + i))
        })
        .collect()
}

/// Puts so dear that in most cases the tangent to prices from strike 0 on meets them above the forward.
#[test]
fn puts_dearer_than_the_money_allows_are_no_arbitrage() {
    let nodes = Nodes::of((-200..=200).map(|i| 0.02 * f64::from(i)).collect());
    for puts in [0.5, 4.0, 30.0] {
        for (money, calls) in [(1e-4, 1e-6), (0.01, 1e-6), (0.04, 1e-4), (1.0, 1e-3)] {
            let wings = |k: &f64| if *k < 0.0 { puts } else { calls };
            let mut variances: Vec<f64> = nodes.logs().iter().map(wings).collect();
            variances[200] = money;
            let prices = nodes.prices(&variances);
            // From strike 0 on, no put is dearer by its strike than one of a higher strike.
            let rates: Vec<f64> = (0..=200).map(|i| prices[i] / libm::exp(nodes.logs()[i])).collect();
            let rise = rates.windows(2).all(|pair| pair[0] <= pair[1] * (1.0 + 1e-12));
            assert!(rise, "{puts} {money} {calls}: {rates:?}");
            let expiries = [1.5, 2.16].map(|years| Expiry {
                years,
                prices: prices.clone(),
                quotes: 3,
                residual: 0.0,
            });
            assert_no_arbitrage(&Surface::of(nodes.clone(), expiries.to_vec()));
        }
    }
    // A fit to noisy quotes that has such puts.
    assert_no_arbitrage(&Surface::fit(&unrelated(197_632, 0.062_756_964_922_277_07), 5));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// The surface has no arbitrage for any quotes.
    #[test]
    fn never_an_arbitrage(seed in 0..1_000_000_u64, noise in 0.0..0.1) {
        assert_no_arbitrage(&Surface::fit(&unrelated(seed, noise), 5));
    }
}
