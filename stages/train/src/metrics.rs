//! Metrics, with cleanrl's names.

use crate::phase_timer::PhaseTimer;
use crate::train_state::TrainState;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::Context;
use stages_policy::Losses;

/// The name of the entry in the metrics artifact.
pub const ENTRY: &str = "metrics.jsonl";

/// A line of the metrics artifact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its name, such as `losses/policy_loss`.
    pub name: String,
    /// Environment steps done.
    pub step: u64,
    /// Its value.
    pub value: f64,
}

/// Adds up losses.
#[derive(Default)]
pub(crate) struct Mean(Losses);

impl Mean {
    pub fn add(&mut self, losses: &Losses) {
        self.0.policy += losses.policy;
        self.0.value += losses.value;
        self.0.entropy += losses.entropy;
        self.0.approx_kl += losses.approx_kl;
        self.0.clip_fraction += losses.clip_fraction;
    }

    pub fn over(&self, count: usize) -> Losses {
        let by = |sum: f64| sum / count.max(1) as f64;
        Losses {
            policy: by(self.0.policy),
            value: by(self.0.value),
            entropy: by(self.0.entropy),
            approx_kl: by(self.0.approx_kl),
            clip_fraction: by(self.0.clip_fraction),
        }
    }
}

/// 1 - var(target - value) / var(target); `None` where the targets don't vary.
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

/// Adds the metrics of an update to what is stored, and says them if someone listens. No times: those differ from run to run.
pub(crate) fn record(
    train_state: &mut TrainState,
    losses: &Losses,
    explained_variance: Option<f64>,
    learning_rate: f64,
    listener: Option<&Context>,
) {
    let recent = train_state.recent_mean();
    let values = [
        ("charts/episodic_return", recent.map(|(value, _)| value)),
        ("charts/episodic_length", recent.map(|(_, length)| length)),
        ("charts/learning_rate", Some(learning_rate)),
        ("losses/policy_loss", Some(losses.policy)),
        ("losses/value_loss", Some(losses.value)),
        ("losses/entropy", Some(losses.entropy)),
        ("losses/approx_kl", Some(losses.approx_kl)),
        ("losses/clipfrac", Some(losses.clip_fraction)),
        ("losses/explained_variance", explained_variance),
    ];
    for (name, value) in values {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            continue;
        };
        let line = json!({ "name": name, "step": train_state.step, "value": value });
        train_state.metrics.push_str(&cache::canonical_json(&line));
        train_state.metrics.push('\n');
        if let Some(context) = listener {
            context.metric(name, train_state.step, value);
        }
    }
}

/// Says where the time went since this process took over.
pub(crate) fn report_time(context: &Context, step: u64, timer: &PhaseTimer) {
    for (name, seconds) in timer.seconds() {
        context.metric(name, step, seconds);
    }
}

/// The `summary` of the metrics artifact.
pub(crate) fn summary(train_state: &TrainState) -> Value {
    let recent = train_state.recent_mean();
    json!({
        "timesteps": train_state.step,
        "updates": train_state.update,
        "gradient_steps": train_state.adam_steps,
        "episodes": train_state.episodes,
        "parameters": train_state.params.len(),
        "episodic_return": recent.map(|(value, _)| value),
        "episodic_length": recent.map(|(_, length)| length),
    })
}
