//! The price with 31 digits: an oracle of tests.

use crate::numerics::double_double::Dd;

/// Black-Scholes-Merton: spot, strike, years, rate, yield, volatility.
pub(crate) fn price([s, k, t, r, q, sigma]: [Dd; 6], call: bool) -> Dd {
    let w = if call { 1.0 } else { -1.0 };
    let sd = sigma * t.sqrt();
    let d1 = ((s / k).ln() + (r - q + sigma * sigma * 0.5) * t) / sd;
    let d2 = d1 - sd;
    let legs = |w: f64| (s * (-(q * t)).exp() * (d1 * w).cdf() - k * (-(r * t)).exp() * (d2 * w).cdf()) * w;
    // The out-of-the-money price is computed first: the in-the-money one follows by parity.
    if w * (d1 + d2).0 <= 0.0 {
        legs(w)
    } else {
        legs(-w) + (s * (-(q * t)).exp() - k * (-(r * t)).exp()) * w
    }
}
