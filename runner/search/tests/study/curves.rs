//! Simulated learning curves: power laws of the resource, with noise that fades. The same formulas stand in
//! `reference/optuna_pruners.py`.

use runner_search::Settings;
use runner_search::study::{Job, Outcome};

/// The settings `[a, b, c, d]`.
fn numbers(settings: &Settings) -> [f64; 4] {
    ["a", "b", "c", "d"].map(|name| settings[name].as_f64().unwrap())
}

/// The loss without noise after training for `resource`.
pub(super) fn loss(settings: &Settings, resource: f64) -> f64 {
    let [a, b, c, d] = numbers(settings);
    let asymptote = (a - 0.3).powi(2) + (b - 0.7).powi(2);
    asymptote + 0.5 * (0.2 + d) * resource.powf(-0.3 - 0.7 * c)
}

/// The loss that is measured: noise of ± 0.1 at the first step, which falls with the root of the resource.
pub(super) fn measured(settings: &Settings, resource: f64) -> f64 {
    let [a, b, c, d] = numbers(settings);
    let phase = 12.9898 * a + 78.233 * b + 37.719 * c + 93.989 * d + 4.1414 * resource;
    let hash = phase.sin() * 43758.5453;
    let noise = 2.0 * (hash - hash.floor()) - 1.0;
    loss(settings, resource) + 0.1 * noise / resource.sqrt()
}

/// The evaluation of a job of a search with these rungs.
pub(super) fn evaluate(rungs: &[u64]) -> impl Fn(&Job) -> Outcome + use<> {
    let rungs = rungs.to_vec();
    move |job| super::outcome(measured(&job.settings, rungs[job.rung] as f64))
}
