use super::*;
use proptest::prelude::*;
use stages_numerics::random::Random;

fn quotes(slice: &Slice, years: f64, noise: f64, seed: u64) -> Vec<Quote> {
    let mut random = Random::new(&[seed]);
    (-12..=12)
        .map(|i| {
            let k = f64::from(i) * 0.25 * slice.theta().sqrt();
            Quote {
                log_moneyness: k,
                volatility: slice.volatility(k, years) + noise * random.normal(),
                weight: 1.0,
            }
        })
        .collect()
}

/// Nothing to be earned within a smile, or between it and a later one, on a grid far into both wings.
fn assert_no_arbitrage(surface: &Surface) {
    let times: Vec<f64> = (1..=80).map(|i| 0.02 * f64::from(i)).collect();
    let mut before: Option<Slice> = None;
    for years in times {
        let Some(slice) = surface.at(years) else { continue };
        for i in -120..=120 {
            let k = f64::from(i) * 0.02;
            assert!(slice.durrleman(k) >= -1e-9, "butterfly at {k}, {years}: {slice:?}");
            if let Some(before) = before {
                let (now, then) = (slice.total_variance(k), before.total_variance(k));
                assert!(now >= then * (1.0 - 1e-9), "calendar at {k}, {years}: {now} {then}");
            }
        }
        before = Some(slice);
    }
}

#[test]
fn finds_a_surface_that_is_one() {
    let truth: Vec<(f64, Slice)> = [0.05, 0.1, 0.25, 0.5, 1.0]
        .into_iter()
        .map(|years: f64| {
            let theta = 0.04 * years;
            let psi = 0.6 * theta.sqrt();
            (years, Slice::nearest(theta, psi * 0.4, psi * 1.6, None))
        })
        .collect();
    let book: Vec<_> = truth
        .iter()
        .map(|(years, slice)| (*years, quotes(slice, *years, 0.0, 1)))
        .collect();
    let surface = Surface::fit(&book, 5);
    assert_eq!(surface.expiries().len(), 5);
    assert!(surface.residual() < 1e-6, "{}", surface.residual());
    assert_no_arbitrage(&surface);
}

#[test]
fn withstands_bad_quotes() {
    let truth = Slice::nearest(0.01, 0.03, 0.12, None);
    let mut book = quotes(&truth, 0.25, 0.0005, 2);
    book[3].volatility += 0.2;
    book[17].volatility -= 0.1;
    let surface = Surface::fit(&[(0.25, book)], 5);
    let found = surface.expiries()[0].slice;
    for k in [-0.2, -0.1, 0.0, 0.1, 0.2] {
        let error = found.volatility(k, 0.25) - truth.volatility(k, 0.25);
        assert!(error.abs() < 0.003, "{k}: {error}");
    }
}

#[test]
fn a_delta_has_its_strike() {
    let slice = Slice::nearest(0.02, 0.05, 0.2, None);
    for (delta, call) in [(0.25, true), (0.25, false), (0.1, true), (0.1, false), (0.45, false)] {
        let k = slice.log_moneyness_of(delta, call);
        let w = slice.total_variance(k);
        let d1 = -k / w.sqrt() + 0.5 * w.sqrt();
        let sign = if call { 1.0 } else { -1.0 };
        assert!((stages_numerics::special::normal_cdf(sign * d1) - delta).abs() < 1e-12);
        assert!(sign * k > -0.05);
    }
}

#[test]
fn says_nothing_far_from_what_it_knows() {
    let slice = Slice::nearest(0.01, 0.03, 0.12, None);
    let surface = Surface::fit(&[(0.25, quotes(&slice, 0.25, 0.0, 3)), (0.5, Vec::new())], 5);
    assert!(surface.at(0.1).is_none() && surface.at(0.6).is_none());
    let (near, far) = (surface.at(0.2).unwrap(), surface.at(0.4).unwrap());
    assert!((near.volatility(-0.1, 0.2) - surface.at(0.25).unwrap().volatility(-0.1, 0.25)).abs() < 1e-12);
    assert!((far.volatility(0.0, 0.4) - surface.at(0.25).unwrap().volatility(0.0, 0.25)).abs() < 1e-12);
    assert!(Surface::default().at(0.1).is_none() && Surface::default().residual().is_nan());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// The surface has no arbitrage for any quotes.
    #[test]
    fn never_an_arbitrage(seed in 0..1_000_000_u64, noise in 0.0..0.1) {
        let mut random = Random::new(&[seed]);
        let book: Vec<_> = (1..=6)
            .map(|i| {
                let years = 0.06 * (i * i) as f64;
                let mut uniform = |low: f64, high: f64| low + (high - low) * random.uniform();
                let theta = uniform(0.05, 0.6).powi(2) * years;
                let (right, left) = (uniform(0.0, 2.0) * theta.sqrt(), uniform(0.0, 3.0) * theta.sqrt());
                let slice = Slice::nearest(theta, right, left, None);
                let mut quotes = quotes(&slice, years, noise, seed + i);
                for quote in &mut quotes {
                    quote.volatility = quote.volatility.max(0.01);
                }
                (years, quotes)
            })
            .collect();
        assert_no_arbitrage(&Surface::fit(&book, 5));
    }
}
