//! Tables of the returns of trainings.

use super::*;
use crate::{LearningCurves, LearningCurvesConfig};

/// The metrics of a training that reports these returns every 100 steps.
fn training(workplace: &Workplace, returns: &[f64]) -> Input {
    let lines: String = returns
        .iter()
        .enumerate()
        .map(|(i, value)| {
            let step = 100 * (i + 1);
            format!(
                "{}\n{}\n",
                json!({ "name": "charts/episodic_return", "step": step, "value": value }),
                json!({ "name": "losses/entropy", "step": step, "value": -1.0 })
            )
        })
        .collect();
    let store = &workplace.context.store;
    let mut builder = ArtifactBuilder::new(store, PortType::Metrics.name(), json!({}));
    builder.bytes("metrics.jsonl", lines.as_bytes()).unwrap();
    let digest = builder.finish().unwrap();
    let artifact = store.artifact(digest).unwrap();
    Input { digest, artifact }
}

/// Means and standard deviations (n - 1) over seeds, of the last report at or before a share of the steps;
/// numbers with exponents are numbers.
#[test]
fn a_row_for_each_task() {
    let mut workplace = Workplace::new();
    let seeds = vec![
        training(&workplace, &[10.0, 20.0, 30.0, 40.0]),
        training(&workplace, &[20.0, 40.0, 60.0, 80.0]),
    ];
    let one = vec![training(&workplace, &[-1e-3, 2.5e-1])];
    workplace.context.inputs.insert("pole_ppo".to_owned(), seeds);
    workplace.context.inputs.insert("edge".to_owned(), one);
    let config = LearningCurvesConfig {
        at: vec![0.2, 0.7, 1.0],
    };
    let outputs = LearningCurves.run(&config, &workplace.context).unwrap();
    let store = &workplace.context.store;
    let artifact = store.artifact(outputs["metrics"]).unwrap();
    let table = store.blob(artifact.entry("table.md").unwrap().blob).unwrap();
    assert_eq!(
        std::str::from_utf8(&table).unwrap(),
        "\
| task | steps | seeds | 20 % | 70 % | 100 % |
| --- | --- | --- | --- | --- | --- |
| edge | 200 | 1 |  | -0.00 | 0.25 |
| pole ppo | 400 | 2 |  | 30 ± 14 | 60 ± 28 |
"
    );
    assert_eq!(artifact.meta["summary"]["pole_ppo/400/mean"], 60.0);
    let deviation = artifact.meta["summary"]["pole_ppo/280/deviation"].as_f64().unwrap();
    assert!((deviation - 200_f64.sqrt()).abs() < 1e-12);

    let nothing = training(&workplace, &[]);
    workplace.context.inputs.insert("edge".to_owned(), vec![nothing]);
    let refused = LearningCurves.run(&config, &workplace.context).unwrap_err();
    assert!(
        refused.message.contains("`edge` reports no `charts/episodic_return`"),
        "{refused}"
    );
}
