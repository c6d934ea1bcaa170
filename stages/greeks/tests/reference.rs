//! Greeks and implied volatilities against independent numbers (mpmath with 60 digits; see
//! `tests/reference/README.md`).

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "common/reference_table.rs"]
mod reference_table;

use reference_table::{number, table};
use stages_greeks::numerics::formula::{Contract, black_scholes_merton, further};
use stages_greeks::numerics::implied::{Status, implied_volatility};
use stages_numerics::special::exp;
use std::collections::BTreeMap;

#[test]
fn greeks() {
    let rows = table(include_str!("../../../tests/reference/bsm_greeks.csv"));
    assert_eq!(rows.len(), 200);
    let mut worst: BTreeMap<&str, (f64, String)> = BTreeMap::new();
    for row in &rows {
        let (s, k) = (number(row, "S"), number(row, "K"));
        let option = Contract {
            spot: s,
            strike: k,
            years: number(row, "T"),
            rate: number(row, "r"),
            dividend_yield: number(row, "q"),
            volatility: number(row, "sigma"),
            call: row["flag"] == "c",
        };
        let (g, f) = (black_scholes_merton(&option), further(&option));
        let scale = s.max(k);
        for (name, value, scale) in [
            ("price", g.price, scale),
            ("delta", g.delta, 1.0),
            ("gamma", g.gamma, 1.0 / s),
            ("vega", g.vega, scale),
            ("theta", g.theta, scale),
            ("rho", g.rho, scale),
            ("vanna", g.vanna, 1.0),
            ("volga", g.volga, scale),
            ("charm", g.charm, 1.0),
            ("phi", f.phi, scale),
            ("veta", f.veta, scale),
            ("speed", f.speed, 1.0 / (s * s)),
            ("zomma", f.zomma, 1.0 / s),
            ("color", f.color, 1.0 / s),
            ("ultima", f.ultima, scale),
            ("dual_delta", f.dual_delta, 1.0),
            ("dual_gamma", f.dual_gamma, 1.0 / s),
        ] {
            let reference = number(row, name);
            let error = (value - reference).abs() / (1e-13 * scale + 1e-12 * reference.abs());
            let entry = worst.entry(name).or_default();
            if error > entry.0 || error.is_nan() {
                *entry = (error, row["id"].clone());
            }
            assert!(
                error <= 1.0,
                "row {} ({}): {name} {value:e}, reference {reference:e}, {error} tolerances",
                row["id"],
                row["tag"]
            );
        }
    }
    eprintln!("greatest error in units of the tolerance: {worst:?}");
}

#[test]
fn implied_volatilities() {
    let rows = table(include_str!("../../../tests/reference/implied_vol.csv"));
    assert_eq!(rows.len(), 210);
    let mut worst = (0.0, String::new());
    for row in &rows {
        let (s, years) = (number(row, "S"), number(row, "T"));
        let (rate, dividend_yield) = (number(row, "r"), number(row, "q"));
        let (volatility, status) = implied_volatility(
            number(row, "price"),
            s * exp((rate - dividend_yield) * years),
            number(row, "K"),
            exp(-rate * years),
            years,
            row["flag"] == "c",
        );
        let place = format!("row {} ({}): {volatility} {status:?}", row["id"], row["tag"]);
        match row["status"].as_str() {
            "ok" => {
                let amplified =
                    1.0 + number(row, "price_over_sigma_vega") + number(row, "fwd_leg_over_sigma_vega");
                if f64::EPSILON * (amplified - 1.0) > 1e-3 {
                    continue;
                }
                let error = (volatility / number(row, "iv") - 1.0).abs() / (f64::EPSILON * amplified);
                if error > worst.0 {
                    worst = (error, place.clone());
                }
                assert!(error <= 64.0, "{place}: {error} of 64");
            }
            "at_intrinsic" => assert_eq!(status, Status::AtIntrinsic, "{place}"),
            // A price may be below intrinsic by one unit of the last place, which the forward's rounding
            // hides.
            "below_intrinsic" if !row["tag"].starts_with("inv_") => assert_ne!(status, Status::Ok, "{place}"),
            "below_intrinsic" => assert_eq!(status, Status::BelowIntrinsic, "{place}"),
            "zero_price" => assert_eq!(status, Status::ZeroPrice, "{place}"),
            "at_or_above_upper" => assert_eq!(status, Status::AtOrAboveUpper, "{place}"),
            "expired" => assert_eq!(status, Status::Expired, "{place}"),
            "nan" => assert_eq!(status, Status::NoQuote, "{place}"),
            other => panic!("unknown status {other}"),
        }
    }
    eprintln!("greatest error: {} of the 64 units allowed, at {}", worst.0, worst.1);
}
