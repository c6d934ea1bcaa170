//! The record of a search that was not run: 27 trials at three rungs, by successive halving.

use runner_search::Settings;
use runner_search::record::{Header, Line, Ran, Writer};
use runner_search::study::{Job, Outcome};
use serde_json::{from_value, json};
use std::path::Path;
use std::time::Duration;

/// The id of the search.
pub const SEARCH: &str = "tune-0123abcd";

const RUNGS: [Option<u64>; 3] = [Some(1000), Some(3000), Some(9000)];
const TRIALS: u32 = 27;
/// The trial that fails.
const FAILS: u32 = 5;

/// A number between 0 and 1 that looks drawn.
fn drawn(i: u32) -> f64 {
    (f64::from(i) * 0.618_033_988_749_895).fract()
}

/// Settings whose values have few digits, as proposals have.
fn settings(trial: u32) -> Settings {
    let rate = 10_f64.powf(-5.0 + 3.0 * drawn(trial + 1));
    let rate: f64 = format!("{rate:.2e}").parse().unwrap();
    let gamma = (800.0 + 199.0 * drawn(7 * trial + 3)).round() / 1e3;
    let nets = [json!([64]), json!([64, 64]), json!([256, 256])];
    [
        ("train.with.learning_rate".to_owned(), json!(rate)),
        ("train.with.gamma".to_owned(), json!(gamma)),
        (
            "train.with.policy_kwargs.net_arch".to_owned(),
            nets[trial as usize % 3].clone(),
        ),
        (
            "features".to_owned(),
            json!(if trial.is_multiple_of(2) {
                "surface"
            } else {
                "technical"
            }),
        ),
    ]
    .into()
}

/// The objective of a trial: best at a learning rate of 1e-3 and a discount of 0.95.
fn objective(settings: &Settings, rung: usize, noise: f64) -> f64 {
    let of = |name: &str| settings[name].as_f64().unwrap();
    let rate = of("train.with.learning_rate").log10() + 3.0;
    let gamma = 10.0 * (of("train.with.gamma") - 0.95);
    let value = 0.1 - 0.04 * rate * rate - 0.02 * gamma * gamma + 0.02 * rung as f64 + 0.01 * (noise - 0.5);
    (value * 1e4).round() / 1e4
}

/// Writes the record of the search into a home, with the end of the run `run` where one is given; without one
/// the last trials at the last rung have no result. The returned writer holds the record's lock: while it
/// lives, the search is running.
pub fn write_search(home: &Path, run: Option<&str>) -> Writer {
    let search = from_value(json!({
        "over": {
            "train.with.learning_rate": { "log": [1e-5, 1e-2] },
            "train.with.gamma": { "uniform": [0.8, 0.999] },
            "train.with.policy_kwargs.net_arch": { "choice": [[64], [64, 64], [256, 256]] },
            "features": { "choice": ["surface", "technical"] },
        },
        "objective": { "maximize": "evaluate_validation.utility" },
        "seeds": 2,
        "trials": TRIALS,
        "pruner": { "asha": { "resource": "train.total_timesteps", "min": 1000, "factor": 3 } },
    }));
    let header = Header {
        id: SEARCH.to_owned(),
        space: "5a".repeat(32),
        pipeline: "tune".to_owned(),
        file: "pipelines/tune.yaml".into(),
        search: search.unwrap(),
        rungs: RUNGS.into(),
        restarts: false,
        own: settings(0),
        warm: Vec::new(),
    };
    let mut writer = Writer::open(home, SEARCH).unwrap();
    let start = "2026-11-28T21:00:00Z".parse().unwrap();
    writer.append(&[Line::Search(Box::new(header))], start).unwrap();
    let mut trials: Vec<u32> = (0..TRIALS).collect();
    let mut number = 0;
    for (rung, resource) in RUNGS.into_iter().enumerate() {
        let mut results: Vec<(f64, u32)> = Vec::new();
        for &trial in &trials {
            let settings = settings(trial);
            let noise = |seed: u32| drawn(31 * trial + 7 * seed + 3 * rung as u32);
            let of = |seed| objective(&settings, rung, noise(seed));
            let seconds = 10.0 * 3_f64.powi(rung as i32);
            let outcome = match trial {
                FAILS => Outcome {
                    seconds,
                    error: Some("the loss is not a number".to_owned()),
                    ..Outcome::default()
                },
                _ => Outcome {
                    objectives: vec![vec![of(0)], vec![of(1)]],
                    seconds,
                    ..Outcome::default()
                },
            };
            let is_last = rung + 1 == RUNGS.len();
            let decided = Line::Decided(Job {
                job: number,
                trial,
                rung,
                resource: resource.filter(|_| !is_last),
                settings: settings.clone(),
                seen: number.saturating_sub(3),
                basis: "0123456789abcdef".to_owned(),
            });
            let at = |seconds: u32| start + Duration::from_secs(u64::from(seconds));
            writer.append(&[decided], at(20 * number)).unwrap();
            if run.is_some() || !is_last {
                let ended = Line::Ended { job: number, outcome };
                writer.append(&[ended], at(20 * number + 15)).unwrap();
            }
            if trial != FAILS {
                results.push((of(0) + of(1), trial));
            }
            number += 1;
        }
        results.sort_by(|left, right| right.0.total_cmp(&left.0));
        trials = results.iter().take(trials.len() / 3).map(|(_, trial)| *trial).collect();
    }
    if let Some(run) = run {
        let ran = Line::Ran(Ran {
            run: run.to_owned(),
            seconds: 900.0,
            done: true,
        });
        writer.append(&[ran], start + Duration::from_secs(900)).unwrap();
    }
    writer
}
