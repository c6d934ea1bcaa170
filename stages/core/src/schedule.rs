//! Numbers that may change during training.

use serde::{Deserialize, Serialize, Serializer};

/// A number: `3e-4`, or `{ linear: [3e-4, 0] }`, linear from the first value at the start of training to the
/// second at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// A constant.
    Constant(f64),
    /// From the first to the second, linearly in the steps done.
    Linear(f64, f64),
}

impl Schedule {
    /// The value when the share `done` of the training (0 to 1) is complete.
    pub fn at(&self, done: f64) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Linear(from, to) => from + (to - from) * done.clamp(0.0, 1.0),
        }
    }

    /// Returns whether the schedule depends on the total length of training.
    pub fn depends_on_total(&self) -> bool {
        matches!(self, Self::Linear(..))
    }
}

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Constant(value) => serializer.serialize_f64(value),
            Self::Linear(from, to) => serializer.collect_map([("linear", [from, to])]),
        }
    }
}

/// The serialised form of [`Schedule::Linear`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Linear {
    linear: [f64; 2],
}

datasets::as_forms! {
    Schedule, "a number or `{ linear: [start, end] }`";
    schema(_generator) "A number, or { linear: [start, end] } over the training.": [
        { "type": "number" },
        {
            "type": "object",
            "properties": { "linear": { "type": "array", "items": { "type": "number" },
                "minItems": 2, "maxItems": 2 } },
            "required": ["linear"],
            "additionalProperties": false
        }
    ];
    number => Schedule::Constant;
    map as Linear => |Linear { linear: [from, to] }| Schedule::Linear(from, to);
}
