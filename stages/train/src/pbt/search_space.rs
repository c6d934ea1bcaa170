//! The settings that a population explores.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;
use stages_numerics::random::Random;
use std::collections::BTreeMap;

/// The range of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The least value.
    pub low: f64,
    /// The greatest value.
    pub high: f64,
    /// If true, the logarithm is drawn evenly; the default where the range is above 0 and its ends differ by
    /// a factor of 10 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<bool>,
}

/// The ranges of settings, by name.
pub(crate) type SearchSpace = BTreeMap<String, Range>;

/// The values of settings, by name.
pub(crate) type Settings = BTreeMap<String, f64>;

impl Range {
    fn is_log(self) -> bool {
        self.log.unwrap_or(self.low > 0.0 && self.high >= 10.0 * self.low)
    }

    fn draw(self, random: &mut Random) -> f64 {
        let uniform = random.uniform();
        let value = if self.is_log() {
            self.low * libm::pow(self.high / self.low, uniform)
        } else {
            self.low + (self.high - self.low) * uniform
        };
        value.clamp(self.low, self.high)
    }

    pub(crate) fn check(self, field: &str) -> Result<(), ConfigProblem> {
        ConfigProblem::new(field, format!("{} to {} is not a range", self.low, self.high))
            .hint("write `{ low: 1e-5, high: 1e-3 }`")
            .when(!(self.low.is_finite() && self.high.is_finite() && self.low < self.high))?;
        ConfigProblem::new(field, "a logarithmic range begins above 0")
            .hint("set `log: false`, or raise `low`")
            .when(self.log == Some(true) && self.low <= 0.0)?;
        Ok(())
    }
}

/// Draws settings from their ranges.
pub(crate) fn draw(space: &SearchSpace, random: &mut Random) -> Settings {
    let draw = |(name, range): (&String, &Range)| (name.clone(), range.draw(random));
    space.iter().map(draw).collect()
}

/// Settings near those of a better member: each is drawn anew with a given probability, or else multiplied or
/// divided by a factor, within its range.
pub(crate) fn explore(
    space: &SearchSpace,
    settings: &Settings,
    (resample_probability, factor): (f64, f64),
    random: &mut Random,
) -> Settings {
    let explored = space.iter().map(|(name, range)| {
        let value = settings.get(name).copied().unwrap_or(range.low);
        let anew = random.uniform() < resample_probability;
        let up = random.uniform() < 0.5;
        let value = match (anew, up) {
            (true, _) => range.draw(random),
            (false, true) => value * factor,
            (false, false) => value / factor,
        };
        (name.clone(), value.clamp(range.low, range.high))
    });
    explored.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_within_their_ranges() {
        let range = |low, high, log| Range { low, high, log };
        let space: SearchSpace = [
            ("rate".to_owned(), range(1e-5, 1e-2, None)),
            ("weight".to_owned(), range(-1.0, 1.0, None)),
        ]
        .into();
        let mut random = Random::new(&[1]);
        let mut below = 0;
        for _ in 0..1000 {
            let settings = draw(&space, &mut random);
            let explored = explore(&space, &settings, (0.25, 1.2), &mut random);
            for settings in [&settings, &explored] {
                assert!(
                    (1e-5..=1e-2).contains(&settings["rate"]) && (-1.0..=1.0).contains(&settings["weight"])
                );
            }
            below += usize::from(settings["rate"] < libm::sqrt(1e-7));
            let ratio = explored["rate"] / settings["rate"];
            let near = [1.2, 1.0 / 1.2]
                .iter()
                .any(|factor| (ratio / factor - 1.0).abs() < 1e-12);
            let bound = [1e-5, 1e-2].contains(&explored["rate"]);
            assert!(near || bound || ratio.is_finite());
        }
        assert!((450..=550).contains(&below), "the logarithm is even: {below}");
        assert!(range(1.0, 1.0, None).check("x").is_err());
        assert!(range(0.0, 1.0, Some(true)).check("x").is_err());
    }
}
