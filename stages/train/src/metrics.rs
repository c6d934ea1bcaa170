//! Training metrics, under cleanrl's names.

use crate::phase_timer::PhaseTimer;
use crate::selection::Selected;
use crate::train_state::TrainState;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::Context;

/// The name of the entry in the metrics artifact.
pub const ENTRY: &str = "metrics.jsonl";

/// A line of the metrics artifact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The metric's name, such as `losses/policy_loss`.
    pub name: String,
    /// Environment steps done so far.
    pub step: u64,
    /// The metric's value.
    pub value: f64,
}

/// The name of a metric, and its value where there is one.
pub(crate) type Metric = (&'static str, Option<f64>);

/// 1 - var(target - value) / var(target); `None` where the targets do not vary.
pub(crate) fn explained_variance(value: &[f32], target: &[f32]) -> Option<f64> {
    let variance = |values: &dyn Fn(usize) -> f64| {
        let n = target.len() as f64;
        let mean = (0..target.len()).map(values).sum::<f64>() / n;
        (0..target.len())
            .map(|i| (values(i) - mean) * (values(i) - mean))
            .sum::<f64>()
            / n
    };
    let total = variance(&|i| f64::from(target[i]));
    let rest = variance(&|i| f64::from(target[i]) - f64::from(value[i]));
    (total > 0.0).then(|| 1.0 - rest / total)
}

/// Adds the metrics of an update to the stored ones, and reports them to the listener, if there is one. Times
/// are left out: they differ from run to run.
pub(crate) fn record(state: &mut TrainState, metrics: &[Metric], listener: Option<&Context>) {
    let (value, length) = state.recent_mean().unzip();
    let episodes = [("charts/episodic_return", value), ("charts/episodic_length", length)];
    add(state, &[&episodes[..], metrics].concat(), listener);
}

/// Adds metrics to the stored ones, and reports them to the listener, if there is one.
pub(crate) fn add(state: &mut TrainState, metrics: &[Metric], listener: Option<&Context>) {
    for &(name, value) in metrics {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            add_one(state, (name, state.step, value), listener);
        }
    }
}

/// Adds a metric of a step to the stored ones, and reports it to the listener, if there is one.
pub(crate) fn add_one(
    state: &mut TrainState,
    (name, step, value): (&str, u64, f64),
    listener: Option<&Context>,
) {
    let line = json!({ "name": name, "step": step, "value": value });
    state.metrics.push_str(&cache::canonical_json(&line));
    state.metrics.push('\n');
    if let Some(context) = listener {
        context.metric(name, step, value);
    }
}

/// Reports the time of each phase since this process took over.
pub(crate) fn report_time(context: &Context, step: u64, timer: &PhaseTimer) {
    for (name, seconds) in timer.seconds() {
        context.metric(name, step, seconds);
    }
}

/// The `summary` of the metrics artifact.
pub(crate) fn summary(state: &TrainState, selected: Option<&Selected>) -> Value {
    let recent = state.recent_mean();
    let mut summary = json!({
        "timesteps": state.step,
        "updates": state.update,
        "gradient_steps": state.optimiser_steps,
        "episodes": state.episodes,
        "parameters": state.params.len(),
        "episodic_return": recent.map(|(value, _)| value),
        "episodic_length": recent.map(|(_, length)| length),
    });
    if let Some(selected) = selected {
        summary["selected_step"] = json!(selected.step);
        summary[selected.by] = json!(selected.value);
    }
    summary
}
