//! The stage kind `evaluate/learning_curves`: the returns of tasks during training, over their seeds.

use crate::output::{self, Metrics};
use crate::performance::mean_and_deviation;
use cache::{Artifact, Store};
use serde_json::Value;
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports,
    StageError, StageKind,
};

/// The metric of the mean return of the last 100 episodes.
const RETURN: &str = "charts/episodic_return";

stages_core::settings! {
    /// Configuration of `evaluate/learning_curves`.
    pub struct LearningCurvesConfig {
        /// Times of training, as shares of its steps.
        pub at: Vec<f64> = vec![0.2, 0.4, 0.6, 0.8, 1.0],
    }
}

/// The stage kind `evaluate/learning_curves`.
pub struct LearningCurves;

impl StageKind for LearningCurves {
    type Config = LearningCurvesConfig;
    const NAME: &'static str = "evaluate/learning_curves";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "returns during training by task, mean and standard deviation over seeds";
    const PORTS: Ports = Ports {
        inputs: &[InputPort::named_lists("TASK", PortType::Metrics).doc(
            "the metrics of a task's trainings under its name, one for each seed: `cartpole: \
                \"train[*]\"`, say",
        )],
        outputs: &[OutputPort::new("metrics", PortType::Metrics)
            .doc("the mean and the standard deviation (n - 1) by task and step, and the table as Markdown")],
    };

    fn check(&self, config: &LearningCurvesConfig, _: &PlanContext) -> Planned {
        ConfigProblem::new("at", "must be shares above 0 and at most 1")
            .hint("0.5 is the middle of the training")
            .when(config.at.is_empty() || config.at.iter().any(|share| !(*share > 0.0 && *share <= 1.0)))?;
        Ok(Self::PORTS.provided())
    }

    fn run(&self, config: &LearningCurvesConfig, context: &Context) -> Result<Outputs, StageError> {
        let mut metrics = Metrics::default();
        let mut rows = Vec::new();
        for (task, inputs) in &context.inputs {
            let curves: Vec<Vec<(u64, f64)>> = inputs
                .iter()
                .map(|input| curve(&context.store, &input.artifact, task))
                .collect::<Result<_, _>>()?;
            let steps = curves
                .iter()
                .filter_map(|curve| Some(curve.last()?.0))
                .min()
                .unwrap_or(0);
            let mut row = vec![task.replace('_', " "), steps.to_string(), curves.len().to_string()];
            for share in &config.at {
                let step = (share * steps as f64).floor() as u64;
                let found: Vec<f64> = curves.iter().filter_map(|curve| value_at(curve, step)).collect();
                row.push(cell(&found, curves.len()));
                if found.len() == curves.len() {
                    let (mean, deviation) = mean_and_deviation(&found);
                    metrics.add(format!("{task}/{step}/mean"), mean);
                    metrics.add(format!("{task}/{step}/deviation"), deviation);
                }
            }
            rows.push(row);
        }
        let mut head = ["task", "steps", "seeds"].map(String::from).to_vec();
        head.extend(config.at.iter().map(|share| format!("{:.0} %", 100.0 * share)));
        output::store_metrics_with(context, metrics, &[(output::TABLE, &output::markdown(&head, &rows))])
    }
}

/// The mean over seeds with the standard deviation; empty where a seed has no value yet.
fn cell(found: &[f64], seeds: usize) -> String {
    if found.len() < seeds {
        return String::new();
    }
    let (mean, deviation) = mean_and_deviation(found);
    let digits = if mean.abs() < 10.0 { 2 } else { 0 };
    match seeds {
        1 => format!("{mean:.digits$}"),
        _ => format!("{mean:.digits$} ± {deviation:.digits$}"),
    }
}

/// The last value at or before a step.
fn value_at(curve: &[(u64, f64)], step: u64) -> Option<f64> {
    curve[..curve.partition_point(|point| point.0 <= step)]
        .last()
        .map(|point| point.1)
}

/// The returns of a training by step.
fn curve(store: &Store, artifact: &Artifact, task: &str) -> Result<Vec<(u64, f64)>, StageError> {
    let none = || {
        StageError::new(format!("a training of `{task}` reports no `{RETURN}`"))
            .hint("connect the `metrics` of a training, which plays episodes to their end")
    };
    let file = artifact.entry("metrics.jsonl").ok_or_else(none)?;
    let bytes = store.blob(file.blob)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut curve: Vec<(u64, f64)> = lines
        .filter(|point| point["name"] == RETURN)
        .filter_map(|point| Some((point["step"].as_u64()?, point["value"].as_f64()?)))
        .collect();
    curve.sort_by_key(|point| point.0);
    if curve.is_empty() { Err(none()) } else { Ok(curve) }
}
