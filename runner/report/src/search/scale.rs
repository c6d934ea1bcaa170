//! The axes of settings, and how settings are shown.

use crate::chart::number;
use runner_pipeline::Values;
use runner_search::Settings;
use serde_json::Value;
use std::collections::BTreeMap;

/// The place of a setting's value on its axis, from 0 to 1; a value beyond the bounds is at the nearer one.
/// `None` for a value that the axis does not have.
pub(super) fn position(values: &Values, value: &Value) -> Option<f64> {
    let between = |low: f64, high: f64, log: bool| {
        let at = value.as_f64()?;
        let share = match log {
            true => (at / low).ln() / (high / low).ln(),
            false => (at - low) / (high - low),
        };
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    };
    match values {
        Values::Float { low, high, log, .. } => between(*low, *high, *log),
        Values::Integer { low, high, log, .. } => between(*low as f64, *high as f64, *log),
        Values::Choice(choice) => {
            let at = choice.iter().position(|one| one == value)?;
            Some(place(at, choice.len()))
        }
    }
}

/// The place of one of a list of values.
fn place(at: usize, n: usize) -> f64 {
    match n {
        0 | 1 => 0.5,
        n => at as f64 / (n - 1) as f64,
    }
}

/// The labels of an axis with their places: the bounds, or each value of a list.
pub(super) fn labels(values: &Values) -> Vec<(f64, String)> {
    match values {
        Values::Float { low, high, .. } => vec![(0.0, number(*low)), (1.0, number(*high))],
        Values::Integer { low, high, .. } => vec![(0.0, low.to_string()), (1.0, high.to_string())],
        Values::Choice(choice) => {
            let label = |(at, value): (usize, &Value)| (place(at, choice.len()), plain(value));
            choice.iter().enumerate().map(label).collect()
        }
    }
}

/// A setting's value as a person writes it.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(figure) if figure.is_f64() => figure.as_f64().map_or_else(String::new, brief),
        other => other.to_string(),
    }
}

/// A number with at most four significant digits, as YAML reads it.
fn brief(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    if !(1e-3..1e6).contains(&size) {
        let text = format!("{value:.3e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        return format!("{digits}e{exponent}");
    }
    let digits = (3 - size.log10().floor() as i32).clamp(0, 8);
    let text = format!("{value:.*}", digits as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A short name for each setting, by its full one: the last part, unless several settings have it.
pub(super) fn short_names<'n>(names: impl Iterator<Item = &'n String> + Clone) -> BTreeMap<&'n str, &'n str> {
    let last = |name: &'n str| name.rsplit('.').next().unwrap_or(name);
    let is_one = |name: &'n String| names.clone().filter(|other| last(other) == last(name)).count() == 1;
    let short = |name: &'n String| {
        let short = if is_one(name) { last(name) } else { name };
        (name.as_str(), short)
    };
    names.clone().map(short).collect()
}

/// Settings in a line: `gamma 0.97, learning_rate 3e-4`.
pub(super) fn in_a_line(settings: &Settings, short: &BTreeMap<&str, &str>) -> String {
    let shown = |(name, value): (&String, &Value)| {
        let name = short.get(name.as_str()).copied().unwrap_or(name);
        format!("{name} {}", plain(value))
    };
    settings.iter().map(shown).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_have_places_by_their_distribution() {
        let float = |log| Values::Float {
            low: 1e-4,
            high: 1e-2,
            log,
            step: None,
        };
        assert!((position(&float(true), &json!(1e-3)).unwrap() - 0.5).abs() < 1e-12);
        assert!((position(&float(false), &json!(5.05e-3)).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(position(&float(true), &json!(1.0)), Some(1.0), "beyond the bounds");
        assert_eq!(position(&float(true), &json!(0.0)), None);
        assert_eq!(position(&float(true), &json!("x")), None);
        let choice = Values::Choice(vec![json!([64]), json!([64, 64]), json!("x")]);
        assert_eq!(position(&choice, &json!([64, 64])), Some(0.5));
        assert_eq!(position(&choice, &json!([65])), None);
        let labels: Vec<String> = labels(&choice).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["[64]", "[64,64]", "x"]);
    }

    #[test]
    fn settings_are_short_where_they_stay_distinct() {
        let names = ["a.with.lr", "b.with.lr", "b.with.gamma"].map(str::to_owned);
        let short = short_names(names.iter());
        assert_eq!(short["b.with.gamma"], "gamma");
        assert_eq!(short["a.with.lr"], "a.with.lr");
        let settings: Settings = [
            ("a.with.lr".to_owned(), json!(0.000_312_345)),
            ("b.with.gamma".to_owned(), json!(0.987_654)),
        ]
        .into();
        assert_eq!(in_a_line(&settings, &short), "a.with.lr 3.123e-4, gamma 0.9877");
        assert_eq!(plain(&json!(64)), "64");
        assert_eq!(plain(&json!(1234.56)), "1235");
        assert_eq!(plain(&json!(2.0e7)), "2e7");
    }
}
