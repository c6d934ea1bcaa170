//! Rules that rank the symbols of a portfolio by a feature.

use crate::seen::Smoothing;
use serde::{Deserialize, Serialize};

/// The rule that holds the symbols of the highest scores, each at the same weight, and exchanges the worst of
/// them for the best other symbol where their scores differ by more than a gap. The score of a symbol is a
/// smoothed feature, or its opposite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ranking {
    /// The name of the feature, or of the hidden column.
    pub feature: String,
    pub smoothing: Smoothing,
    /// True if the symbols of the lowest features are held.
    pub lowest: bool,
    /// The number of symbols held, and the weight of each.
    pub count: usize,
    pub weight: f64,
    /// The gap, in the unit of the feature.
    pub gap: f64,
}

impl Ranking {
    /// The rule in words; `unit` is that of the gap.
    pub(crate) fn describe(&self, step: &str, unit: &str) -> String {
        format!(
            "the {} {} by {}, each at a weight of {}, exchanged at a gap of {}{unit}",
            self.count,
            if self.lowest { "lowest" } else { "highest" },
            self.smoothing.describe(&self.feature, step),
            significant(self.weight),
            significant(self.gap),
        )
    }

    /// Turns the weights `[N]` of an account into those that the rule wants; false if it trades nothing.
    /// `features` are the smoothed features `[N]`, NaN where there is none.
    pub(crate) fn target(
        &self,
        features: &[f32],
        trades: impl Fn(usize) -> bool,
        weights: &mut [f64],
    ) -> bool {
        let score = |symbol: usize| {
            if self.lowest {
                -features[symbol]
            } else {
                features[symbol]
            }
        };
        let tradable = |symbol: &usize| trades(*symbol) && !features[*symbol].is_nan();
        let better = |a: &usize, b: &usize| score(*b).total_cmp(&score(*a)).then(a.cmp(b));
        // What does not trade keeps its place.
        let small = 0.1 * self.weight;
        let frozen = (0..weights.len())
            .filter(|symbol| !tradable(symbol) && weights[*symbol] > small)
            .count();
        let (mut held, mut others): (Vec<usize>, Vec<usize>) = (0..weights.len())
            .filter(tradable)
            .partition(|&symbol| weights[symbol] > small);
        held.sort_by(better);
        others.sort_by(better);
        let mut others = others.into_iter().peekable();
        let mut bought = Vec::new();
        while held.len() + bought.len() + frozen < self.count {
            let Some(best) = others.next() else { break };
            bought.push(best);
        }
        while let (Some(&worst), Some(&best)) = (held.last(), others.peek()) {
            if f64::from(score(best) - score(worst)) <= self.gap {
                break;
            }
            held.pop();
            weights[worst] = 0.0;
            bought.push(best);
            others.next();
        }
        if bought.is_empty() {
            return false;
        }
        let kept: f64 = held.iter().map(|&symbol| weights[symbol]).sum();
        let all = self.weight * self.count as f64;
        let rest = (all - kept - frozen as f64 * self.weight).max(0.0) / bought.len() as f64;
        for symbol in bought {
            weights[symbol] = rest.min(self.weight);
        }
        true
    }
}

/// A number with three significant digits.
pub(crate) fn significant(value: f64) -> String {
    format!("{value:.2e}").parse::<f64>().unwrap_or(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_beyond_the_gap() {
        let rule = Ranking {
            feature: "x".into(),
            smoothing: Smoothing::Mean(5),
            lowest: false,
            count: 2,
            weight: 0.5,
            gap: 0.3,
        };
        let mut weights = [0.0; 4];
        assert!(rule.target(&[0.1, 0.4, 0.3, f32::NAN], |_| true, &mut weights));
        assert_eq!(weights, [0.0, 0.5, 0.5, 0.0]);
        assert!(!rule.target(&[0.55, 0.4, 0.3, 9.0], |symbol| symbol != 3, &mut weights));
        assert!(rule.target(&[0.7, 0.4, 0.3, f32::NAN], |_| true, &mut weights));
        assert_eq!(weights, [0.5, 0.5, 0.0, 0.0]);
        // A frozen position keeps its place.
        assert!(!rule.target(&[0.1, 0.4, 9.0, 9.0], |symbol| symbol == 1, &mut weights));
        assert_eq!(
            rule.describe("day", ""),
            "the 2 highest by the 5-day mean of `x`, each at a weight of 0.5, exchanged at a gap of 0.3"
        );
        let lowest = Ranking { lowest: true, ..rule };
        assert!(lowest.target(&[0.7, 0.1, 0.2, 0.6], |_| true, &mut weights));
        assert_eq!(weights, [0.0, 0.5, 0.5, 0.0]);
    }

    #[test]
    fn significant_digits() {
        let of = |value: f64| significant(value);
        assert_eq!(
            [of(0.25), of(0.000_123_456), of(-12.34), of(0.0)],
            ["0.25", "0.000123", "-12.3", "0"]
        );
    }
}
