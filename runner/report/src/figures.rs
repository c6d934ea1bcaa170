//! Figures for people: three significant digits with their unit, and the choice of those that decide.
//!
//! JSON and CSV stay in full precision.

use crate::glossary;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number without a unit, such as a ratio.
    Plain,
    /// A fraction that is shown in per cent: returns, volatility, shares.
    Percent,
    /// A probability, from 0 to 1, with three decimals.
    Probability,
    /// A number of things: whole numbers in full, a mean of them to three digits.
    Count,
    /// A multiple: 12.4×.
    Times,
    /// A duration in seconds.
    Seconds,
    /// An amount of currency, to the cent below 1,000.
    Money,
}

/// The suffixes of the names of what belongs to a metric, and has its unit.
const SUFFIXES: [&str; 4] = ["_low", "_high", "_se", "_sd"];

impl Unit {
    /// The unit of a metric, by the last part of its name and the group in front of it; [`Unit::Plain`] where
    /// it is not known.
    pub fn of(metric: &str) -> Self {
        let last = metric.rsplit(['/', '.']).next().unwrap_or(metric);
        match group(metric) {
            "losses" => return Self::Plain,
            "time" => return Self::Seconds,
            "profit" | "excess_over" => return Self::Percent,
            _ => {}
        }
        let name = SUFFIXES.iter().find_map(|end| last.strip_suffix(end)).unwrap_or(last);
        let name = name.strip_prefix("loss_").unwrap_or(name);
        if let Some(term) = glossary::find(name) {
            return term.unit;
        }
        if name.ends_with("_seconds") {
            Self::Seconds
        } else if name.ends_with("share") || name.starts_with("share_of_") {
            Self::Percent
        } else if last.ends_with("_p") {
            Self::Probability
        } else {
            Self::Plain
        }
    }
}

/// The group of a metric, without the stage in front: `losses` of `train.losses/alpha`; empty for none.
fn group(metric: &str) -> &str {
    let groups = metric.rsplit_once('/').map_or("", |(groups, _)| groups);
    groups.rsplit(['/', '.']).next().unwrap_or(groups)
}

/// The name under which the glossary knows a metric, without stage and group; `None` for the losses of a
/// training, whose names mean other things: SAC's `losses/alpha` is no return.
pub(crate) fn term(metric: &str) -> Option<&str> {
    metric.rsplit(['.', '/']).next().filter(|_| group(metric) != "losses")
}

/// The number of significant digits.
const DIGITS: i32 = 3;

/// A figure for people, with a true minus: `15.4 %`, `12,400`, `0.512`, `1.2 s`; `–` where it is not finite.
pub fn shown(value: f64, unit: Unit) -> String {
    match unit {
        _ if !value.is_finite() => "–".to_owned(),
        Unit::Plain | Unit::Count => number(value),
        Unit::Percent => format!("{} %", small(100.0 * value, 0.001)),
        Unit::Probability if value.abs() < 0.001 => small(value, 0.001),
        Unit::Probability => decimals(value, 3),
        Unit::Times => format!("{}×", small(value, 0.001)),
        Unit::Seconds => seconds(value),
        Unit::Money if value.abs() >= 999.995 => decimals(value, 0),
        Unit::Money => decimals(value, 2),
    }
}

/// A figure with its sign: `+4.20 %`.
pub fn signed(value: f64, unit: Unit) -> String {
    let text = shown(value, unit);
    match value > 0.0 && text.starts_with(|first: char| first.is_ascii_digit()) {
        true => format!("+{text}"),
        false => text,
    }
}

/// The ends of an interval, with as many decimals as the larger needs, without the unit: `[−3.2, 34.0]`.
pub fn interval(low: f64, high: f64, unit: Unit) -> String {
    let scale = if unit == Unit::Percent { 100.0 } else { 1.0 };
    let digits = places(scale * low.abs().max(high.abs()));
    format!(
        "[{}, {}]",
        decimals(scale * low, digits),
        decimals(scale * high, digits)
    )
}

/// A figure with its interval: `15.4 % [−3.2, 34.0]`; without an interval where an end is not finite.
pub fn with_interval(value: f64, low: f64, high: f64, unit: Unit) -> String {
    match low.is_finite() && high.is_finite() {
        true => format!("{} {}", shown(value, unit), interval(low, high, unit)),
        false => shown(value, unit),
    }
}

/// A mean with its standard deviation, which has as many decimals: `12.4 ± 3.1 %`.
pub fn with_deviation(mean: f64, deviation: f64, unit: Unit) -> String {
    let (scale, end) = match unit {
        Unit::Percent => (100.0, " %"),
        Unit::Times => (1.0, "×"),
        Unit::Seconds => return format!("{} ± {}", seconds(mean), seconds(deviation)),
        _ => (1.0, ""),
    };
    let (mean, deviation) = (scale * mean, scale * deviation);
    let digits = match unit {
        Unit::Count if mean.fract() == 0.0 && deviation.fract() == 0.0 => 0,
        _ => places(mean.abs().max(deviation)),
    };
    format!("{} ± {}{end}", decimals(mean, digits), decimals(deviation, digits))
}

/// A number without a unit: three significant digits, thousands apart, whole numbers in full.
fn number(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true => decimals(value, 0),
        false => small(value, 1e-6),
    }
}

/// Three significant digits; below `least` that it is below.
fn small(value: f64, least: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if value.abs() < least {
        let sign = if value > 0.0 { "< " } else { "> −" };
        format!("{sign}{least}")
    } else {
        decimals(significant(value), places(value.abs()))
    }
}

/// The number of decimals that three significant digits need, after rounding.
fn places(size: f64) -> usize {
    (DIGITS - 1 - exponent(size)).clamp(0, 12) as usize
}

/// The exponent of ten of the number once it is rounded to three digits.
fn exponent(value: f64) -> i32 {
    let text = format!("{:.*e}", DIGITS as usize - 1, value);
    text.rsplit_once('e').and_then(|(_, at)| at.parse().ok()).unwrap_or(0)
}

/// The number rounded to three significant digits.
fn significant(value: f64) -> f64 {
    format!("{:.*e}", DIGITS as usize - 1, value).parse().unwrap_or(value)
}

/// A number with this many decimals, thousands apart and a true minus.
fn decimals(value: f64, places: usize) -> String {
    let text = format!("{:.places$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let mut out = if value < 0.0 && !is_zero {
        "−".to_owned()
    } else {
        String::new()
    };
    for (at, digit) in whole.char_indices() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

fn seconds(value: f64) -> String {
    let size = value.abs();
    let sign = if value < 0.0 { "−" } else { "" };
    if size == 0.0 {
        "0 s".to_owned()
    } else if size < 0.0005 {
        let than = if value < 0.0 { ">" } else { "<" };
        format!("{than} {sign}1 ms")
    } else if size < 0.9995 {
        format!("{sign}{} ms", decimals(size * 1e3, 0))
    } else if size < 99.95 {
        format!("{sign}{} s", decimals(size, 1))
    } else if size < 7199.5 {
        let whole = size.round();
        format!("{sign}{:.0} min {:02.0} s", (whole / 60.0).floor(), whole % 60.0)
    } else {
        let minutes = (size / 60.0).round();
        format!("{sign}{:.0} h {:02.0} min", (minutes / 60.0).floor(), minutes % 60.0)
    }
}

/// The figures that decide, most important first: of a market, of episodes and tasks, of reasoning, and of a
/// training.
pub const DECIDING: [&str; 21] = [
    "total_return",
    "excess_return",
    "volatility",
    "sharpe",
    "max_drawdown",
    "turnover",
    "costs",
    "utility",
    "deflated_sharpe",
    "episodic_return",
    "accuracy",
    "success",
    "mrr",
    "hits_1",
    "hits_10",
    "auc_pr",
    "pbo",
    "charts/episodic_return",
    "validation/return_greedy",
    "charts/SPS",
    "seconds",
];

/// The place of a metric among the figures that decide, smallest first; `None` for any other. The stage in
/// front of the metric's name is left out: `evaluate.sharpe`.
pub fn deciding(metric: &str) -> Option<usize> {
    DECIDING.iter().position(|name| {
        metric
            .strip_suffix(name)
            .is_some_and(|stage| stage.is_empty() || stage.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        let of = |values: &[f64], unit| {
            let texts: Vec<String> = values.iter().map(|value| shown(*value, unit)).collect();
            texts.join("; ")
        };
        assert_eq!(
            of(
                &[0.1541, -0.05, 1.0, 12.4, 0.000123, 3e-7, -3e-7, 0.0, 0.9996, f64::NAN],
                Unit::Percent
            ),
            "15.4 %; −5.00 %; 100 %; 1,240 %; 0.0123 %; < 0.001 %; > −0.001 %; 0 %; 100 %; –"
        );
        assert_eq!(
            of(&[0.63551, 1.0e-34, 1.0, 0.0], Unit::Probability),
            "0.636; < 0.001; 1.000; 0"
        );
        assert_eq!(
            of(
                &[1.23456, -12.345, 12412.3, 12412.0, 3e-4, 1e-9, f64::INFINITY],
                Unit::Plain
            ),
            "1.23; −12.3; 12,400; 12,412; 0.000300; < 0.000001; –"
        );
        assert_eq!(
            of(&[1234567.0, 12.0, 9999.6, 9.5, 1.0 / 3.0], Unit::Count),
            "1,234,567; 12; 10,000; 9.50; 0.333"
        );
        assert_eq!(of(&[12.41], Unit::Times), "12.4×");
        assert_eq!(of(&[1234.5, 12.345, -0.001], Unit::Money), "1,234; 12.35; 0.00");
        assert_eq!(
            of(&[0.0, 1e-5, 0.0123, 1.2, 99.96, 119.9, 7199.7], Unit::Seconds),
            "0 s; < 1 ms; 12 ms; 1.2 s; 1 min 40 s; 2 min 00 s; 2 h 00 min"
        );
        assert_eq!(
            of(&[-1e-5, -0.0123, -1.2, -200.0, -7199.7], Unit::Seconds),
            "> −1 ms; −12 ms; −1.2 s; −3 min 20 s; −2 h 00 min"
        );
        assert_eq!(signed(0.042, Unit::Percent), "+4.20 %");
        assert_eq!(signed(-0.042, Unit::Percent), "−4.20 %");
        assert_eq!(signed(1e-9, Unit::Percent), "< 0.001 %");
    }

    #[test]
    fn intervals_share_their_decimals() {
        let text = with_interval(0.1541, -0.0321, 0.34, Unit::Percent);
        assert_eq!(text, "15.4 % [−3.2, 34.0]");
        assert_eq!(with_interval(0.5, f64::NAN, 1.0, Unit::Plain), "0.500");
        assert_eq!(interval(0.001, 0.0023, Unit::Plain), "[0.00100, 0.00230]");
        assert_eq!(with_deviation(0.1241, 0.0312, Unit::Percent), "12.4 ± 3.1 %");
        assert_eq!(with_deviation(1234.4, 0.4, Unit::Count), "1,234 ± 0");
        assert_eq!(with_deviation(1.0 / 3.0, 0.577, Unit::Count), "0.333 ± 0.577");
        assert_eq!(with_deviation(12.0, 0.0, Unit::Count), "12 ± 0");
    }

    #[test]
    fn units_are_known_by_name() {
        for (name, unit) in [
            ("total_return", Unit::Percent),
            ("baseline/cash/volatility", Unit::Percent),
            ("evaluate.sharpe_low", Unit::Plain),
            ("ablation/other_world/loss_utility_high", Unit::Percent),
            ("versus/cash/matched_excess_return_p", Unit::Probability),
            ("profit/theta", Unit::Percent),
            ("hedge_ppo/share_of_black_scholes_sd", Unit::Percent),
            ("charts/SPS", Unit::Count),
            ("time/forward", Unit::Seconds),
            ("train.time/forward", Unit::Seconds),
            ("evaluate.profit/theta", Unit::Percent),
            ("evaluate.baseline/cash/profit/theta", Unit::Percent),
            ("excess_over/cash", Unit::Percent),
            ("losses/entropy", Unit::Plain),
            ("losses/alpha", Unit::Plain),
            ("train.losses/alpha", Unit::Plain),
            ("alpha", Unit::Percent),
        ] {
            assert_eq!(Unit::of(name), unit, "{name}");
        }
        assert_eq!(term("train.losses/alpha"), None);
        assert_eq!(term("evaluate.baseline/cash/alpha"), Some("alpha"));
    }

    #[test]
    fn figures_that_decide_are_the_strategy_s_own() {
        assert_eq!(deciding("total_return"), Some(0));
        assert_eq!(deciding("evaluate.total_return"), Some(0));
        assert!(deciding("train.charts/SPS") > deciding("evaluate.sharpe"));
        assert_eq!(deciding("evaluate.baseline/cash/total_return"), None);
        assert_eq!(deciding("evaluate.annual_total_return"), None);
    }

    /// The text reads back as the value, to half a unit of its third digit, whatever the magnitude.
    #[test]
    fn values_of_any_magnitude_are_shown_to_three_digits() {
        for power in -5..9_i32 {
            for digits in (0..890).map(|at| 1.003 + 0.0101 * f64::from(at)) {
                let value = digits * 10f64.powi(power);
                for value in [value, -value] {
                    let text = shown(value, Unit::Plain);
                    let read: f64 = text.replace(',', "").replace('−', "-").parse().unwrap();
                    let error = (read - value).abs() / 10f64.powi(power);
                    assert!(error < 0.005_001, "{value} as {text}");
                    let plain: String = text.chars().filter(char::is_ascii_digit).collect();
                    let plain = plain.trim_start_matches('0');
                    assert!(power > 2 || plain.len() == 3, "{value} as {text}");
                }
            }
        }
    }
}
