//! Stages that read market data, configured to accept changed data as it is.
//!
//! Randomly changed data breaks data-quality rules: prices jump by the ratio of a split, and more rows are
//! dropped than a user would accept. Neither is look-ahead, and a stage that fails cannot be compared.

use datasets::adjusted::JUMPS;
use runner_pipeline::{Pipeline, Work};
use serde_json::{Value, json};

/// The rules that stop a stage kind, or an environment on its output, unless they are configured.
fn jumps(kind: &str) -> &'static [&'static str] {
    match kind {
        "ingest/option_chain" => &["strike_jump", "price_jump"],
        "ingest/bars" => &JUMPS,
        "ingest/rates" => &["unit_change"],
        _ => &[],
    }
}

/// Returns the pipeline with ingesting stages that fail neither for jumps nor for loss of rows; their outputs
/// for data that breaks no rule are the same.
pub(super) fn tolerant(pipeline: &Pipeline) -> Pipeline {
    let mut pipeline = pipeline.clone();
    for node in &mut pipeline.nodes {
        let Work::Kind { kind, config } = &mut node.work else {
            continue;
        };
        if !kind.name().starts_with("ingest/") || config.get("max_dropped").is_none() {
            continue;
        }
        config["max_dropped"] = json!(1.0);
        let rules = jumps(kind.name());
        if !rules.is_empty() {
            let bad = &mut config["on_bad_rows"];
            if let Some(all) = bad.as_str() {
                *bad = match all {
                    "by_rule" => json!({}),
                    all => json!({ "default": all }),
                };
            }
            for rule in rules {
                bad[*rule] = Value::from("keep");
            }
        }
    }
    pipeline
}
