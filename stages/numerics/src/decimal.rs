//! Numbers of few digits.

/// The number with `digits` significant digits, at least 1, that is nearest to the value. Its shortest text
/// has no more digits.
pub fn significant(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits.max(1) - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits() {
        assert_eq!(significant(0.123_456_78, 6), 0.123_457);
        assert_eq!(significant(-1_234_567.0, 3), -1_230_000.0);
        assert_eq!(significant(0.1 + 0.2, 12), 0.3);
        assert_eq!(significant(0.0, 6), 0.0);
        assert!(significant(f64::NAN, 6).is_nan());
    }
}
