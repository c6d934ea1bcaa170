//! The expected cost of a stage before it runs: the duration of its last action, scaled by the work that its
//! configuration asks for. A kind states the work per unit of dear settings; the history knows the seconds.

use crate::key::Recipe;
use crate::text;
use runner_pipeline::{Node, Work};
use serde::Serialize;
use stages_core::{RelativeCost, Settings};

/// A stage is dear from so many times its usual cost.
const DEAR: f64 = 50.0;

/// A stage that is expected to take less than this is never dear, in seconds.
const UNNOTICED: f64 = 10.0;

/// The warning that a stage is much dearer than usual.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CostWarning {
    /// The expected cost, and its reason.
    pub message: String,
    /// The cheaper setting.
    pub hint: String,
}

/// The expected run time of a stage whose last action `old` took `took` seconds.
pub(crate) fn expected(node: &Node, old: Option<&Recipe>, took: Option<f64>) -> Option<f64> {
    let ratio = old.and_then(|old| work_ratio(node, old));
    took.map(|took| took * ratio.unwrap_or(1.0))
}

/// The ratio of a stage's work to that of an earlier action of it, as far as its kind tells; `None` for
/// another kind.
pub(crate) fn work_ratio(node: &Node, old: &Recipe) -> Option<f64> {
    let Work::Kind { kind, config } = &node.work else {
        return None;
    };
    if kind.name() != old.kind {
        return None;
    }
    let before = Settings::from(old.config.value());
    let units = kind
        .work_units(&before)
        .filter(|before| *before > 0)
        .and_then(|before| Some(kind.work_units(config)? as f64 / before as f64));
    let times = |cost: Option<RelativeCost>| cost.map_or(1.0, |cost| cost.times);
    let per_unit = times(kind.relative_cost(config)) / times(kind.relative_cost(&before));
    Some(units.unwrap_or(1.0) * per_unit)
}

/// The warning about a stage that is expected to cost at least [`DEAR`] times as much as usual: as its kind
/// says of the configuration, or compared with its last action `old`, which took `took` seconds. `left` is
/// the share of its work that is not cached.
pub(crate) fn warning(
    node: &Node,
    old: Option<&Recipe>,
    took: Option<f64>,
    left: f64,
) -> Option<CostWarning> {
    let Work::Kind { kind, config } = &node.work else {
        return None;
    };
    let ratio = old.and_then(|old| work_ratio(node, old));
    let expected = expected(node, old, took).map(|expected| expected * left);
    if expected.is_some_and(|expected| expected < UNNOTICED) {
        return None;
    }
    let about = expected.map(|expected| format!("about {} expected; ", text::duration(expected)));
    let about = about.unwrap_or_default();
    if let Some(cost) = kind.relative_cost(config).filter(|cost| cost.times >= DEAR) {
        return Some(CostWarning {
            message: format!(
                "{about}{} times its usual cost: {}",
                text::figure(cost.times),
                cost.because
            ),
            hint: cost.cheaper,
        });
    }
    let ratio = ratio.filter(|ratio| *ratio >= DEAR)?;
    Some(CostWarning {
        message: format!("{about}{} times the work of the last time", text::figure(ratio.round())),
        hint: "`runner why PIPELINE STAGE` shows the settings that differ".to_owned(),
    })
}
