//! Points of a matrix.

use crate::text::spell;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A point: a value for each axis.
pub(crate) type Point = BTreeMap<String, Json>;

/// The maximum number of stages of a pipeline, matrices expanded.
pub(crate) const MOST_NODES: usize = 100_000;

/// The id of a node: `stage`, or `stage[seed=1]`.
pub fn id(stage: &str, point: &BTreeMap<String, Json>) -> String {
    if point.is_empty() {
        return stage.to_owned();
    }
    let parts: Vec<String> = point
        .iter()
        .map(|(axis, value)| format!("{axis}={}", spell(value).unwrap_or_default()))
        .collect();
    format!("{stage}[{}]", parts.join(","))
}
