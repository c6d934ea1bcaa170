//! Zero rates by tenor.

/// The zero rate at `years`, interpolated linearly between tenors and constant beyond them; NaN without any.
/// `curve` is sorted by tenor.
pub fn zero_rate(curve: &[(f64, f64)], years: f64) -> f64 {
    let after = curve.partition_point(|&(tenor, _)| tenor < years);
    match (after.checked_sub(1).and_then(|i| curve.get(i)), curve.get(after)) {
        (Some(&(t0, r0)), Some(&(t1, r1))) => r0 + (r1 - r0) * ((years - t0) / (t1 - t0)),
        (Some(&(_, rate)), None) | (None, Some(&(_, rate))) => rate,
        (None, None) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolates_and_holds() {
        let curve = [(0.0, 0.01), (1.0, 0.03)];
        assert!((zero_rate(&curve, 0.5) - 0.02).abs() < 1e-15);
        assert_eq!(zero_rate(&curve, 5.0), 0.03);
        assert_eq!(zero_rate(&curve[1..], 0.1), 0.03);
        assert!(zero_rate(&[], 0.1).is_nan());
    }
}
