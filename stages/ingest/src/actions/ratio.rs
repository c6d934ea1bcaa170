//! Split ratios as people and vendors write them.

/// Parses the number of shares after a split for each share before: `7`, `0.125`, `7:1`, `7/1`, `3-for-2`, `7
/// for 1`. `None` for anything else.
pub(super) fn parse(text: &str) -> Option<f64> {
    let text = text.trim().to_lowercase();
    let positive = |text: &str| {
        text.trim()
            .parse::<f64>()
            .ok()
            .filter(|value| *value > 0.0 && value.is_finite())
    };
    let separated = ["-for-", " for ", ":", "/"]
        .into_iter()
        .find_map(|separator| text.split_once(separator));
    match separated {
        Some((new, old)) => Some(positive(new)? / positive(old)?),
        None => positive(&text),
    }
}

/// The refusal of a stock dividend's ratio that is not above 1.
pub(super) fn not_of_a_dividend(ratio: f64) -> String {
    format!("a stock dividend leaves more shares than before, not {ratio} for one")
}

/// The remedy beside [`not_of_a_dividend`].
pub(super) const OF_A_DIVIDEND: &str = "write the shares after it for one before: 1.05 for 5 %";

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ratios() {
        for text in ["7", "7:1", "7-for-1", "7 for 1", "7/1", " 7.0 "] {
            assert_eq!(parse(text), Some(7.0), "{text}");
        }
        assert_eq!(parse("1:8"), Some(0.125));
        for text in ["0", "-2", "7:0", "seven", "", "inf"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
