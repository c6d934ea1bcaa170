//! The values of an axis that is not a list: ranges, and samples that are reproducible on every machine.
//!
//! A range with a step is exact: its ends, its step and its values are decimals (`0.1`, `0.2`, `0.3`).
//! Inexact values (evenly or logarithmically spaced values, samples) are rounded to six significant digits,
//! so that the text in a point's name is the value itself.

use crate::text::spell;
use serde_json::{Number, Value as Json};
use stages_numerics::decimal::significant;
use stages_numerics::random::Random;
use std::collections::BTreeSet;

/// The domain of the random streams; changing it changes all samples.
const DOMAIN: u64 = 0x6d61_7472_6978_2031;

/// The distribution of a sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Draw {
    /// Uniform between two numbers.
    Uniform(f64, f64),
    /// Log-uniform between two numbers.
    LogUniform(f64, f64),
    /// Uniform integers, both ends included.
    Integer(i64, i64),
    /// A uniform choice.
    Choice(Vec<Json>),
}

/// The random stream of one axis.
pub(crate) struct Stream<'a> {
    draw: &'a Draw,
    random: Random,
}

impl<'a> Stream<'a> {
    /// Creates the stream of the axis `name`: streams of different axes with the same seed are independent.
    pub(crate) fn new(draw: &'a Draw, seed: u64, name: &str) -> Self {
        let bytes = name.as_bytes();
        let mut words = vec![DOMAIN, seed, bytes.len() as u64];
        words.extend(bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        }));
        Self {
            draw,
            random: Random::new(&words),
        }
    }

    /// Draws the next value.
    pub(crate) fn next(&mut self) -> Json {
        let random = &mut self.random;
        match self.draw {
            Draw::Uniform(from, to) => float(round(from + (to - from) * random.uniform()).clamp(*from, *to)),
            Draw::LogUniform(from, to) => {
                let (low, high) = (libm::log(*from), libm::log(*to));
                let value = libm::exp(low + (high - low) * random.uniform());
                float(round(value).clamp(*from, *to))
            }
            Draw::Integer(from, to) => {
                let span = to.wrapping_sub(*from).cast_unsigned();
                let step = match span.checked_add(1) {
                    Some(count) => random.below(count),
                    None => random.next_u64(),
                };
                from.wrapping_add(step.cast_signed()).into()
            }
            Draw::Choice(values) => {
                let index = random.below(values.len().max(1) as u64) as usize;
                values.get(index).cloned().unwrap_or_default()
            }
        }
    }
}

/// Draws `count` distinct values; if there are fewer, returns the number of distinct values found.
pub(crate) fn distinct(draw: &Draw, seed: u64, name: &str, count: usize) -> Result<Vec<Json>, usize> {
    let mut stream = Stream::new(draw, seed, name);
    let mut seen = BTreeSet::new();
    let mut values = Vec::with_capacity(count);
    for _ in 0..attempts(count) {
        if values.len() == count {
            break;
        }
        let value = stream.next();
        if seen.insert(spell(&value)) {
            values.push(value);
        }
    }
    if values.len() == count {
        Ok(values)
    } else {
        Err(values.len())
    }
}

/// The maximum number of draws before the values are considered exhausted.
pub(crate) fn attempts(count: usize) -> usize {
    1000 + 64 * count
}

/// Rounds to six significant digits.
fn round(value: f64) -> f64 {
    significant(value, 6)
}

fn float(value: f64) -> Json {
    // Negative zero becomes zero, which has a single spelling.
    Number::from_f64(value + 0.0).map_or(Json::Null, Json::Number)
}

/// The exact decimal value of a number: a mantissa and a power of ten.
fn decimal(value: &Number) -> Option<(i128, i32)> {
    if let Some(whole) = value.as_i128() {
        return Some((whole, 0));
    }
    let text = format!("{:e}", value.as_f64()?);
    let (digits, exponent) = text.split_once('e')?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let exponent: i32 = exponent.parse().ok()?;
    let mantissa = format!("{whole}{fraction}").parse().ok()?;
    Some((mantissa, exponent - i32::try_from(fraction.len()).ok()?))
}

/// The error of an invalid range.
#[derive(Debug, PartialEq)]
pub(crate) enum Wrong {
    /// The step is 0, or has the wrong sign.
    Step,
    /// The range has more values than allowed.
    Many,
    /// The magnitudes of the numbers differ too much.
    Wide,
}

/// The values from `from` to `to` in steps, including `to` if a step reaches it.
pub(crate) fn range(from: &Number, to: &Number, step: &Number, most: usize) -> Result<Vec<Json>, Wrong> {
    let whole = ![from, to, step].into_iter().any(Number::is_f64);
    let numbers = [from, to, step].map(decimal);
    let [Some(from), Some(to), Some(step)] = numbers else {
        return Err(Wrong::Wide);
    };
    // The exponent of a zero is irrelevant.
    let exponent = [from, to, step]
        .iter()
        .filter(|(mantissa, _)| *mantissa != 0)
        .map(|(_, exponent)| *exponent)
        .min()
        .unwrap_or(0);
    let scaled = |(mantissa, exponent_of): (i128, i32)| {
        if mantissa == 0 {
            return Some(0);
        }
        let power = u32::try_from(exponent_of - exponent).ok()?;
        // Well within the range of an i128, so that differences do not overflow.
        let scaled = 10_i128.checked_pow(power)?.checked_mul(mantissa)?;
        (scaled.unsigned_abs() < 1 << 120).then_some(scaled)
    };
    let (Some(from), Some(to), Some(step)) = (scaled(from), scaled(to), scaled(step)) else {
        return Err(Wrong::Wide);
    };
    if step == 0 || (to - from).signum() * step.signum() < 0 {
        return Err(Wrong::Step);
    }
    let steps = (to - from) / step;
    if steps >= most as i128 {
        return Err(Wrong::Many);
    }
    let value = |i: i128| {
        let value = from + i * step;
        if whole {
            // The value lies between two 64-bit numbers.
            return match u64::try_from(value) {
                Ok(value) => Json::from(value),
                Err(_) => i64::try_from(value).map_or(Json::Null, Json::from),
            };
        }
        float(format!("{value}e{exponent}").parse().unwrap_or(f64::NAN))
    };
    Ok((0..=steps).map(value).collect())
}

/// `count` values from `from` to `to`, both included, with even differences or even ratios. Integers if the
/// ends are integers and all values are integral. The ends must differ, and be positive for `log`; `count` is
/// at least 2.
pub(crate) fn spaced(from: &Number, to: &Number, count: usize, log: bool) -> Vec<Json> {
    let (Some(low), Some(high)) = (from.as_f64(), to.as_f64()) else {
        return Vec::new();
    };
    let last = count.saturating_sub(1);
    let mut values: Vec<f64> = (0..count)
        .map(|i| {
            let part = i as f64 / last as f64;
            round(if log {
                libm::exp(libm::log(low) + (libm::log(high) - libm::log(low)) * part)
            } else {
                low + (high - low) * part
            })
        })
        .collect();
    // The ends keep their exact values.
    if let (Some(first), true) = (values.first_mut(), count > 1) {
        *first = low;
    }
    if let Some(end) = values.last_mut() {
        *end = high;
    }
    let whole = !from.is_f64()
        && !to.is_f64()
        && values.iter().all(|value| value.fract() == 0.0 && value.abs() < 9e15);
    values
        .into_iter()
        .map(|value| if whole { Json::from(value as i64) } else { float(value) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn number(value: Json) -> Number {
        match value {
            Json::Number(number) => number,
            _ => panic!("no number"),
        }
    }

    fn stepped(from: Json, to: Json, step: Json) -> Result<Json, Wrong> {
        range(&number(from), &number(to), &number(step), 1000).map(Json::Array)
    }

    #[test]
    fn ranges_are_exact() {
        assert_eq!(stepped(json!(1), json!(10), json!(2)), Ok(json!([1, 3, 5, 7, 9])));
        assert_eq!(
            stepped(json!(64), json!(256), json!(64)),
            Ok(json!([64, 128, 192, 256]))
        );
        assert_eq!(stepped(json!(3), json!(-1), json!(-2)), Ok(json!([3, 1, -1])));
        assert_eq!(stepped(json!(5), json!(5), json!(1)), Ok(json!([5])));
        assert_eq!(
            stepped(json!(0), json!(1), json!(0.1)).unwrap().to_string(),
            "[0.0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1.0]"
        );
        assert_eq!(
            stepped(json!(1e-5), json!(4e-5), json!(1e-5)).unwrap().to_string(),
            "[0.00001,0.00002,0.00003,0.00004]"
        );
        assert_eq!(
            stepped(json!(u64::MAX - 1), json!(u64::MAX), json!(1)),
            Ok(json!([u64::MAX - 1, u64::MAX]))
        );
        assert_eq!(stepped(json!(1), json!(2), json!(0)), Err(Wrong::Step));
        assert_eq!(stepped(json!(1), json!(2), json!(-1)), Err(Wrong::Step));
        assert_eq!(stepped(json!(1), json!(1e9), json!(1)), Err(Wrong::Many));
        assert_eq!(stepped(json!(1e-300), json!(1e300), json!(1)), Err(Wrong::Wide));
    }

    #[test]
    fn spaced_values_have_short_texts() {
        let texts = |from: Json, to: Json, count, log| {
            Json::Array(spaced(&number(from), &number(to), count, log)).to_string()
        };
        assert_eq!(texts(json!(1e-5), json!(1e-2), 4, true), "[0.00001,0.0001,0.001,0.01]");
        assert_eq!(texts(json!(16), json!(128), 4, true), "[16,32,64,128]");
        assert_eq!(texts(json!(1), json!(10), 4, false), "[1,4,7,10]");
        assert_eq!(texts(json!(0), json!(1), 4, false), "[0.0,0.333333,0.666667,1.0]");
        assert_eq!(texts(json!(0.9), json!(0.999), 3, false), "[0.9,0.9495,0.999]");
        assert_eq!(texts(json!(1), json!(0), 3, false), "[1.0,0.5,0.0]");
    }

    /// The names of points, and so existing results, depend on these values: they never change.
    #[test]
    fn draws_are_pinned() {
        let mut text = String::new();
        for (draw, count) in [
            (Draw::Uniform(0.0, 1.0), 4),
            (Draw::LogUniform(1e-5, 1e-2), 6),
            (Draw::Integer(1, 100), 6),
            (Draw::Integer(i64::MIN, i64::MAX), 2),
            (Draw::Choice(vec![json!("a"), json!("b"), json!("c")]), 3),
        ] {
            let values = distinct(&draw, 1, "lr", count).unwrap();
            text.push_str(&format!("{}\n", Json::Array(values)));
        }
        text.push_str(&format!(
            "{}\n{}\n",
            Json::Array(distinct(&Draw::Uniform(0.0, 1.0), 2, "lr", 2).unwrap()),
            Json::Array(distinct(&Draw::Uniform(0.0, 1.0), 1, "a_longer_name", 2).unwrap()),
        ));
        insta::assert_snapshot!(text, @r#"
        [0.684929,0.716692,0.817,0.104222]
        [0.00113445,0.00141278,0.00282489,0.0000205431,0.0000204351,0.0000109742]
        [69,72,82,11,2,8]
        [3411329701147720282,3997256401260478434]
        ["c","a","b"]
        [0.926453,0.954929]
        [0.798467,0.577899]
        "#);
    }

    #[test]
    fn draws_keep_their_promises() {
        let draw = Draw::LogUniform(1e-5, 1e-2);
        let many = distinct(&draw, 1, "lr", 2000).unwrap();
        assert_eq!(many[..8], distinct(&draw, 1, "lr", 8).unwrap());
        let mut tenths = [0; 3];
        for value in &many {
            let number = value.as_f64().unwrap();
            assert!((1e-5..=1e-2).contains(&number));
            // The text in the point's name parses to the value.
            let text = spell(value).unwrap();
            assert_eq!(crate::text::yaml::scalar(&text).unwrap(), *value);
            assert!(text.trim_start_matches(['0', '.']).len() <= 10, "{text}");
            tenths[(libm::log10(number) + 5.0).clamp(0.0, 2.9) as usize] += 1;
        }
        assert!(tenths.iter().all(|&count| (560..=780).contains(&count)), "{tenths:?}");
        let all = distinct(&Draw::Integer(-2, 2), 0, "n", 5).unwrap();
        assert_eq!(
            all.iter()
                .map(|value| value.as_i64().unwrap())
                .collect::<BTreeSet<_>>()
                .len(),
            5
        );
        assert_eq!(distinct(&Draw::Integer(1, 3), 0, "n", 4), Err(3));
    }
}
