//! The episodes of training: their length, and how they are drawn.

use crate::split::SnapshotRange;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stages_core::ConfigProblem;
use stages_numerics::random::Random;

/// Steps in a training episode: `252`, or `[126, 252]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpisodeLength {
    /// The minimum.
    pub least: u32,
    /// The maximum.
    pub most: u32,
}

impl Serialize for EpisodeLength {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.least == self.most {
            serializer.serialize_u32(self.least)
        } else {
            [self.least, self.most].serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for EpisodeLength {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = EpisodeLength;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a number of steps or `[least, most]`")
            }
            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<EpisodeLength, E> {
                let steps =
                    u32::try_from(value).map_err(|_| E::custom(format!("{value} steps are too many")))?;
                Ok(EpisodeLength {
                    least: steps,
                    most: steps,
                })
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<EpisodeLength, E> {
                let value =
                    u64::try_from(value).map_err(|_| E::custom(format!("{value} steps are too few")))?;
                self.visit_u64(value)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<EpisodeLength, A::Error> {
                let (Some(least), Some(most), None) =
                    (seq.next_element()?, seq.next_element()?, seq.next_element::<u32>()?)
                else {
                    return Err(serde::de::Error::custom("a range has two numbers: `[least, most]`"));
                };
                Ok(EpisodeLength { least, most })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for EpisodeLength {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EpisodeLength".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Steps, or [least, most] to draw from.",
            "anyOf": [
                { "type": "integer", "minimum": 1 },
                { "type": "array", "items": { "type": "integer", "minimum": 1 }, "minItems": 2,
                    "maxItems": 2 }
            ]
        })
    }
}

impl EpisodeLength {
    /// Checks the values.
    pub(crate) fn validate(self) -> Result<(), ConfigProblem> {
        ConfigProblem::new(
            "episode_length",
            "an episode has at least 1 step, and the least is not above the most",
        )
        .when(self.least == 0 || self.least > self.most)
    }

    /// The first and the last snapshot of a training episode: a range drawn in proportion to its length, a
    /// number of steps, and a start.
    pub(crate) fn draw(self, ranges: &[SnapshotRange], random: &mut Random) -> (usize, usize) {
        let span = |range: &SnapshotRange| (range.last - range.first) as u64;
        let range = match ranges {
            [only] => *only,
            ranges => {
                let mut at = random.below(ranges.iter().map(span).sum());
                let mut chosen = ranges[0];
                for range in ranges {
                    chosen = *range;
                    if at < span(range) {
                        break;
                    }
                    at -= span(range);
                }
                chosen
            }
        };
        let span = span(&range);
        let (least, most) = (u64::from(self.least).min(span), u64::from(self.most).min(span));
        let steps = least + random.below(most - least + 1);
        let first = range.first as u64 + random.below(span - steps + 1);
        (first as usize, (first + steps) as usize)
    }
}
