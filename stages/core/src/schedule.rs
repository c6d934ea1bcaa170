//! Numbers that may change during training.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

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
    /// Its value when `done` of the training (0 to 1) is over.
    pub fn at(&self, done: f64) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Linear(from, to) => from + (to - from) * done.clamp(0.0, 1.0),
        }
    }

    /// True if it depends on the total length of training.
    pub fn depends_on_total(&self) -> bool {
        matches!(self, Self::Linear(..))
    }
}

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Constant(value) => serializer.serialize_f64(value),
            Self::Linear(from, to) => {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("linear", &[from, to])?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Schedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Schedule;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number or `{ linear: [start, end] }`")
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Schedule, E> {
                Ok(Schedule::Constant(value))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Schedule, E> {
                Ok(Schedule::Constant(value as f64))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Schedule, E> {
                Ok(Schedule::Constant(value as f64))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Schedule, A::Error> {
                let Some(key) = map.next_key::<String>()? else {
                    return Err(de::Error::missing_field("linear"));
                };
                if key != "linear" {
                    return Err(de::Error::unknown_field(&key, &["linear"]));
                }
                let [from, to] = map.next_value::<[f64; 2]>()?;
                if let Some(key) = map.next_key::<String>()? {
                    return Err(de::Error::unknown_field(&key, &["linear"]));
                }
                Ok(Schedule::Linear(from, to))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Schedule {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Schedule".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A number, or { linear: [start, end] } over the training.",
            "anyOf": [
                { "type": "number" },
                {
                    "type": "object",
                    "properties": { "linear": { "type": "array", "items": { "type": "number" },
                        "minItems": 2, "maxItems": 2 } },
                    "required": ["linear"],
                    "additionalProperties": false
                }
            ]
        })
    }
}
