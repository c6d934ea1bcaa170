//! The settings that are searched, and the unit cube that samplers work in.
//!
//! Each parameter is a coordinate in [0, 1]. Numbers are linear in it, or linear in their logarithm. Integers
//! and numbers with a step divide it into cells: all coordinates in a cell are one value, and each value has
//! as much of the interval as its neighbourhood of half a step has of the range (in logarithm, if so). A
//! choice divides it into equal cells without order.

use crate::Settings;
use runner_pipeline::{Domain, Values};
use serde_json::{Number, Value};
use stages_numerics::decimal::significant;
use std::collections::BTreeMap;

/// A space of settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Space {
    /// The settings, each after those that its condition names.
    pub parameters: Vec<Parameter>,
}

/// A setting that is searched.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The setting's name.
    pub name: String,
    /// The setting's values, and its condition.
    pub domain: Domain,
}

/// The coordinates `[parameters]` of settings; none for a parameter that is not active.
pub type Point = Vec<Option<f64>>;

/// The digits of a number between the bounds; the text of a setting is its value.
const DIGITS: usize = 6;

/// The digits of a number with a step: it is exact, and the rounding removes the error of the sum.
const STEP_DIGITS: usize = 12;

impl Parameter {
    /// True if the settings so far fulfil the parameter's condition.
    pub fn is_active(&self, settings: &Settings) -> bool {
        let holds = |(name, values): (&String, &Vec<Value>)| {
            settings
                .get(name)
                .is_some_and(|value| values.iter().any(|other| is_same(value, other)))
        };
        self.domain.when.iter().all(holds)
    }

    /// The number of values; `None` for numbers without a step.
    pub fn count(&self) -> Option<u64> {
        match &self.domain.values {
            Values::Float { step: None, .. } => None,
            Values::Float {
                low,
                high,
                step: Some(step),
                ..
            } => Some(steps(*low, *high, *step)),
            Values::Integer { low, high, step, .. } => {
                let span = high.wrapping_sub(*low).cast_unsigned();
                Some((span / (*step).max(1).cast_unsigned()).saturating_add(1))
            }
            Values::Choice(values) => Some(values.len() as u64),
        }
    }

    /// True if the values have no order.
    pub fn is_choice(&self) -> bool {
        matches!(self.domain.values, Values::Choice(_))
    }

    /// The value at a coordinate in [0, 1].
    pub fn value(&self, coordinate: f64) -> Value {
        let coordinate = coordinate.clamp(0.0, 1.0);
        match &self.domain.values {
            Values::Float {
                low,
                high,
                log,
                step: None,
            } => {
                let value = if *log {
                    let (from, to) = (libm::log(*low), libm::log(*high));
                    libm::exp(from + (to - from) * coordinate)
                } else {
                    low + (high - low) * coordinate
                };
                // A narrow range far from 0 needs more digits than its values have to themselves.
                let narrow = libm::log10(low.abs().max(high.abs()) / (high - low));
                let digits = DIGITS.max((narrow.max(0.0) as usize + 5).min(17));
                float(significant(value, digits).clamp(*low, *high))
            }
            _ => self.nth(self.index(coordinate)),
        }
    }

    /// The value of this number in the order of values, of a parameter whose values can be counted.
    pub fn nth(&self, index: u64) -> Value {
        match &self.domain.values {
            Values::Float { low, high, step, .. } => {
                let value = low + index as f64 * step.unwrap_or(0.0);
                float(significant(value, STEP_DIGITS).clamp(*low, *high))
            }
            Values::Integer { low, step, .. } => {
                let by = index.wrapping_mul(step.cast_unsigned()).cast_signed();
                low.wrapping_add(by).into()
            }
            Values::Choice(values) => values.get(index as usize).cloned().unwrap_or_default(),
        }
    }

    /// The number of the value at a coordinate, of a parameter whose values can be counted.
    fn index(&self, coordinate: f64) -> u64 {
        let count = self.count().unwrap_or(1).max(1);
        let index = match &self.domain.values {
            Values::Integer { low, log: true, .. } => {
                let (from, width) = self.log_range();
                let value = libm::exp(from + width * coordinate);
                (value - *low as f64).round().max(0.0) as u64
            }
            _ => (coordinate * count as f64) as u64,
        };
        index.min(count - 1)
    }

    /// The logarithm of the lower end of the first integer's cell, and the length of all cells.
    fn log_range(&self) -> (f64, f64) {
        let Values::Integer { low, high, .. } = &self.domain.values else {
            return (0.0, 1.0);
        };
        let (from, to) = (libm::log(*low as f64 - 0.5), libm::log(*high as f64 + 0.5));
        (from, to - from)
    }

    /// The coordinate of a value; numbers outside the bounds count as the bound. `None` for a value that is
    /// not of the parameter's type or list.
    pub fn coordinate(&self, value: &Value) -> Option<f64> {
        match &self.domain.values {
            Values::Choice(values) => {
                let index = values.iter().position(|other| is_same(value, other))?;
                Some((index as f64 + 0.5) / values.len() as f64)
            }
            Values::Float {
                low,
                high,
                log,
                step: None,
            } => {
                let value = value.as_f64()?.clamp(*low, *high);
                Some(if *log {
                    let (from, to) = (libm::log(*low), libm::log(*high));
                    ((libm::log(value) - from) / (to - from)).clamp(0.0, 1.0)
                } else {
                    (value - low) / (high - low)
                })
            }
            Values::Float {
                low, step: Some(step), ..
            } => self.centre((value.as_f64()? - low) / step),
            Values::Integer {
                low, high, log: true, ..
            } => {
                let (from, width) = self.log_range();
                let value = value.as_f64()?.clamp(*low as f64, *high as f64);
                Some((libm::log(value) - from) / width)
            }
            Values::Integer { low, step, .. } => self.centre((value.as_f64()? - *low as f64) / *step as f64),
        }
    }

    /// The centre of the cell of the value that is so many steps above the first.
    fn centre(&self, steps: f64) -> Option<f64> {
        let count = self.count()? as f64;
        Some((steps.round().clamp(0.0, count - 1.0) + 0.5) / count)
    }

    /// The interval of coordinates that are the same value; `None` for numbers without a step.
    pub fn cell(&self, coordinate: f64) -> Option<(f64, f64)> {
        let count = self.count()?;
        let index = self.index(coordinate.clamp(0.0, 1.0));
        if let Values::Integer { low, log: true, .. } = &self.domain.values {
            let (from, width) = self.log_range();
            let edge = |value: f64| (libm::log(value) - from) / width;
            let value = *low as f64 + index as f64;
            return Some((edge(value - 0.5).max(0.0), edge(value + 0.5).min(1.0)));
        }
        Some((index as f64 / count as f64, (index + 1) as f64 / count as f64))
    }
}

impl Space {
    /// The space of a `search:` block's `over:`. Settings whose conditions name each other in a circle, or
    /// settings that are not searched, come last and are never active.
    pub fn new(over: &BTreeMap<String, Domain>) -> Self {
        let mut left: Vec<(&String, &Domain)> = over.iter().collect();
        let mut parameters: Vec<Parameter> = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let known = |name: &String| parameters.iter().any(|parameter| parameter.name == *name);
            let (ready, rest): (Vec<_>, Vec<_>) = left
                .iter()
                .copied()
                .partition(|(_, domain)| domain.when.keys().all(known));
            let next = if ready.is_empty() {
                std::mem::take(&mut left)
            } else {
                ready
            };
            left = if left.is_empty() { Vec::new() } else { rest };
            parameters.extend(next.into_iter().map(|(name, domain)| Parameter {
                name: name.clone(),
                domain: domain.clone(),
            }));
        }
        Self { parameters }
    }

    /// The settings at a point: `coordinate` gives that of the parameter with this number, and is asked for
    /// the active ones alone, in order.
    pub fn settings(&self, mut coordinate: impl FnMut(usize, &Parameter) -> f64) -> Settings {
        self.settings_by(|i, parameter| parameter.value(coordinate(i, parameter)))
    }

    /// The settings with these values.
    fn settings_by(&self, mut value: impl FnMut(usize, &Parameter) -> Value) -> Settings {
        let mut settings = Settings::new();
        for (i, parameter) in self.parameters.iter().enumerate() {
            if parameter.is_active(&settings) {
                settings.insert(parameter.name.clone(), value(i, parameter));
            }
        }
        settings
    }

    /// The coordinates of settings. A value outside the space is as one that is not active.
    pub fn point(&self, settings: &Settings) -> Point {
        let coordinate = |parameter: &Parameter| {
            settings
                .get(&parameter.name)
                .and_then(|value| parameter.coordinate(value))
        };
        self.parameters.iter().map(coordinate).collect()
    }

    /// True if the settings are those of the active parameters, each with a value of its own.
    pub fn contains(&self, settings: &Settings) -> bool {
        let mut active = 0;
        let fits = self.parameters.iter().all(|parameter| {
            if !parameter.is_active(settings) {
                return !settings.contains_key(&parameter.name);
            }
            active += 1;
            settings.get(&parameter.name).is_some_and(|value| {
                parameter
                    .coordinate(value)
                    .is_some_and(|coordinate| match parameter.count() {
                        Some(_) => is_same(&parameter.value(coordinate), value),
                        None => value.as_f64().is_some_and(|value| match parameter.domain.values {
                            Values::Float { low, high, .. } => (low..=high).contains(&value),
                            _ => false,
                        }),
                    })
            })
        });
        fits && active == settings.len()
    }

    /// All settings of the space, in order; `None` if there are more than `most`.
    pub fn all(&self, most: usize) -> Option<Vec<Settings>> {
        let mut all = vec![Settings::new()];
        for parameter in &self.parameters {
            let mut next = Vec::new();
            for settings in all {
                if !parameter.is_active(&settings) {
                    next.push(settings);
                    continue;
                }
                let count = parameter.count().filter(|&count| count <= most as u64)?;
                for index in 0..count {
                    let mut settings = settings.clone();
                    settings.insert(parameter.name.clone(), parameter.nth(index));
                    next.push(settings);
                }
                if next.len() > most {
                    return None;
                }
            }
            all = next;
        }
        Some(all)
    }
}

/// The number of values from `low` to `high` in steps.
fn steps(low: f64, high: f64, step: f64) -> u64 {
    // The quotient of decimals may be just below a whole number.
    ((high - low) / step + 1e-9) as u64 + 1
}

/// True if two values are equal; 1 and 1.0 are.
pub(crate) fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

fn float(value: f64) -> Value {
    // Negative zero becomes zero, which has a single spelling.
    Number::from_f64(value + 0.0).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// A space by the text of `over:`.
    pub(crate) fn space(over: Value) -> Space {
        Space::new(&serde_json::from_value(over).unwrap())
    }

    pub(crate) fn settings(value: Value) -> Settings {
        serde_json::from_value(value).unwrap()
    }

    fn parameter(domain: Value) -> Parameter {
        space(json!({"p": domain})).parameters.remove(0)
    }

    /// A space with all kinds of values, and conditions on conditions.
    pub(crate) fn every_kind() -> Space {
        space(json!({
            "rate": {"log": [1e-5, 1e-2]},
            "gamma": {"uniform": [0.8, 0.999]},
            "clip": {"uniform": [0.1, 0.4], "step": 0.05},
            "layers": {"integer": [1, 4]},
            "steps": {"integer": [64, 512], "step": 64},
            "units": {"log_integer": [8, 1024]},
            "policy": {"choice": ["mlp", "lstm"]},
            "lstm": {"log_integer": [16, 256], "when": {"policy": "lstm"}},
            "shared": {"choice": [true, false], "when": {"policy": "lstm", "layers": [1, 2]}},
            "mixing": {"uniform": [0.0, 1.0], "when": {"shared": true}},
        }))
    }

    #[test]
    fn values_at_coordinates() {
        let texts = |domain: Value| {
            let parameter = parameter(domain);
            let values = [0.0, 0.3, 0.5, 0.7, 1.0].map(|at| parameter.value(at).to_string());
            values.join(" ")
        };
        insta::assert_snapshot!([
            json!({"uniform": [-1, 2]}),
            json!({"uniform": [0.9999, 0.99999]}),
            json!({"log": [1e-5, 1e-2]}),
            json!({"uniform": [0, 1], "step": 0.1}),
            json!({"uniform": [0.05, 0.3], "step": 0.1}),
            json!({"integer": [1, 3]}),
            json!({"integer": [0, 100], "step": 30}),
            json!({"log_integer": [1, 1000]}),
            json!({"choice": ["a", [64, 64], null]}),
        ]
        .map(texts)
        .join("\n"), @r#"
        -1.0 -0.1 0.5 1.1 2.0
        0.9999 0.999927 0.999945 0.999963 0.99999
        0.00001 0.0000794328 0.000316228 0.00125893 0.01
        0.0 0.3 0.5 0.7 1.0
        0.05 0.05 0.15 0.25 0.25
        1 1 2 3 3
        0 30 60 60 90
        1 5 22 102 1000
        "a" "a" [64,64] null null
        "#);
    }

    /// The interval of an integer is that of half a step on each side, in the logarithm if so.
    #[test]
    fn cells() {
        let cells = |domain: Value, count: u64| -> Vec<f64> {
            let parameter = parameter(domain);
            assert_eq!(parameter.count(), Some(count));
            let centre = |i| parameter.coordinate(&parameter.nth(i)).unwrap();
            let cells: Vec<(f64, f64)> = (0..count).map(|i| parameter.cell(centre(i)).unwrap()).collect();
            assert_eq!((cells[0].0, cells.last().unwrap().1), (0.0, 1.0));
            assert!(cells.windows(2).all(|pair| (pair[0].1 - pair[1].0).abs() < 1e-15));
            cells.iter().map(|(from, to)| to - from).collect()
        };
        assert_eq!(cells(json!({"integer": [5, 8]}), 4), [0.25; 4]);
        let widths = cells(json!({"log_integer": [1, 4]}), 4);
        for (i, width) in widths.iter().enumerate() {
            let k = i as f64 + 1.0;
            let exact = ((k + 0.5) / (k - 0.5)).ln() / 9_f64.ln();
            assert!((width - exact).abs() < 1e-14);
        }
    }

    #[test]
    fn conditions_and_contents() {
        let space = every_kind();
        let all = space.settings(|_, parameter| if parameter.name == "policy" { 1.0 } else { 0.0 });
        assert_eq!(all.len(), 10);
        assert!(space.contains(&all));
        let without = |name: &str| {
            let mut settings = all.clone();
            settings.remove(name);
            settings
        };
        assert!(!space.contains(&without("gamma")));
        // The policy is none without its setting, so that the settings under it are superfluous.
        assert!(!space.contains(&without("policy")));
        let with = |name: &str, value: Value| {
            let mut settings = all.clone();
            settings.insert(name.to_owned(), value);
            settings
        };
        assert!(!space.contains(&with("units", json!(2000))));
        assert!(!space.contains(&with("steps", json!(100))));
        assert!(space.contains(&with("steps", json!(128.0))));
        assert!(!space.contains(&with("other", json!(1))));
        // A number as a condition is a number, whatever its spelling.
        let space = self::space(
            json!({"a": {"uniform": [0, 1], "step": 1}, "b": {"integer": [1, 2], "when": {"a": 1}}}),
        );
        assert_eq!(space.settings(|_, _| 1.0).len(), 2);
        let all = space.all(10).unwrap();
        assert_eq!(
            serde_json::to_string(&all).unwrap(),
            r#"[{"a":0.0},{"a":1.0,"b":1},{"a":1.0,"b":2}]"#
        );
        assert_eq!(space.all(2), None);
    }

    proptest! {
        /// The coordinate of a value is in the value's cell, and leads back to it.
        #[test]
        fn values_and_coordinates_agree(at in 0.0..=1.0_f64) {
            for parameter in &every_kind().parameters {
                let value = parameter.value(at);
                let back = parameter.coordinate(&value).unwrap();
                prop_assert!((0.0..=1.0).contains(&back));
                match parameter.cell(at) {
                    Some((from, to)) => {
                        prop_assert_eq!(parameter.value(back), value);
                        prop_assert!(from <= back && back <= to && from <= at + 1e-12 && at <= to + 1e-12);
                    }
                    None => prop_assert!((back - at).abs() < 1e-4),
                }
            }
        }
    }
}
