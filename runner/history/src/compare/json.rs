//! A comparison as one JSON document.

use super::comparison::{Comparison, Group, once};
use super::point::Point;
use serde_json::{Map, Value, json};

/// The comparison as JSON. A value that is missing or not finite is `null`.
pub fn json(comparison: &Comparison) -> Value {
    let group = |(i, group): (usize, &Group)| {
        let metric = |name: &String| {
            let outcome = comparison.outcome(group, name);
            let spread = outcome.spread;
            let value = json!({
                "mean": spread.map(|spread| spread.mean),
                "sd": spread.and_then(|spread| spread.sd),
                "min": spread.map(|spread| spread.min),
                "max": spread.map(|spread| spread.max),
                "n": outcome.values.len(),
                "of": outcome.of,
                "values": outcome.values,
                "best": comparison.is_best(group, name),
            });
            (name.clone(), value)
        };
        json!({
            "group": i + 1,
            "runs": once(comparison.members(group).map(|point| point.run.as_str())),
            "points": comparison
                .members(group)
                .map(|point| point_json(comparison, point))
                .collect::<Vec<_>>(),
            "metrics": comparison.metrics.iter().map(metric).collect::<Map<_, _>>(),
        })
    };
    json!({
        "over": comparison.over,
        "parameters": comparison.parameters,
        "metrics": comparison.metrics,
        "sorted_by": comparison.metrics.first(),
        "higher_is_better": comparison.metrics.first().and_then(|first| comparison.higher_is_better(first)),
        "groups": comparison.groups.iter().enumerate().map(group).collect::<Vec<_>>(),
    })
}

fn point_json(comparison: &Comparison, point: &Point) -> Value {
    let value = |name: &String| {
        let found = point.stages.iter().find_map(|stage| stage.value(name));
        (name.clone(), json!(found))
    };
    let parameter = |name: &String| (name.clone(), point.parameters.get(name).cloned().unwrap_or_default());
    let stages = point
        .stages
        .iter()
        .map(|stage| json!({ "stage": stage.id, "key": stage.key, "done": stage.done }));
    json!({
        "point": point.id(),
        "run": point.run,
        "status": point.status,
        "error": point.error,
        "parameters": comparison.parameters.iter().map(parameter).collect::<Map<_, _>>(),
        "stages": stages.collect::<Vec<_>>(),
        "metrics": comparison.metrics.iter().map(value).collect::<Map<_, _>>(),
    })
}
