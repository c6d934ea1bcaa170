//! The record of a search, what is read off it, and what other programs read.

use super::curves::{evaluate, measured};
use super::{Draws, outcome, run, search, study};
use chrono::{DateTime, Utc};
use proptest::prelude::*;
use runner_search::export::{csv, journal};
use runner_search::record::{Header, Line, Ran, Record, Writer, is_running, list, path};
use runner_search::rungs::spearman;
use runner_search::study::{Job, Outcome};
use runner_search::trials::{Cost, TrialState};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const RUNGS: [u64; 4] = [10, 30, 90, 270];

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000 + second, 0).unwrap()
}

fn header(keys: Value, rungs: &[u64]) -> Header {
    Header {
        id: "market-0123abcd".into(),
        space: "00".into(),
        pipeline: "market".into(),
        file: "market.yaml".into(),
        search: search(keys),
        rungs: rungs.iter().copied().map(Some).collect(),
        restarts: false,
        own: BTreeMap::new(),
        warm: Vec::new(),
    }
}

/// Writes lines one second apart.
fn write(home: &Path, lines: &[Line]) -> Record {
    let mut writer = Writer::open(home, "market-0123abcd").unwrap();
    for (second, line) in lines.iter().enumerate() {
        writer.append(std::slice::from_ref(line), at(second as i64)).unwrap();
    }
    Record::read(&path(home, "market-0123abcd")).unwrap().unwrap()
}

/// The lines of a whole search.
fn lines(header: &Header, evaluate: &dyn Fn(&Job) -> Outcome) -> Vec<Line> {
    let rungs: Vec<u64> = header.rungs.iter().copied().flatten().collect();
    let jobs = run(&mut study(&header.search, &rungs, Draws), 1, 0, evaluate);
    let mut lines = vec![Line::Search(Box::new(header.clone()))];
    for job in jobs {
        let outcome = evaluate(&job);
        let ended = Line::Ended { job: job.job, outcome };
        lines.extend([Line::Decided(job), ended]);
    }
    let run = "20260921-100000".into();
    lines.push(Line::Ran(Ran {
        run,
        seconds: 60.0,
        done: true,
    }));
    lines
}

fn asha() -> Value {
    json!({
        "pruner": { "asha": { "resource": "train.total_timesteps", "min": 10 } },
        "trials": 27, "synchronous": true, "batch": 27,
    })
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(Record::read(&path(home.path(), "market-0123abcd")).unwrap(), None);
    assert!(list(home.path()).unwrap().is_empty());
    let header = header(asha(), &RUNGS);
    let lines = lines(&header, &evaluate(&RUNGS));
    let record = write(home.path(), &lines);
    assert_eq!(record.header, header);
    assert!(record.is_done());
    let jobs = lines.iter().filter_map(|line| match line {
        Line::Decided(job) => Some(job),
        _ => None,
    });
    assert!(jobs.eq(record.jobs.iter().map(|(job, _)| job)));
    assert_eq!(record.outcomes.len(), record.jobs.len());
    assert_eq!(record.latest(), at(lines.len() as i64 - 1));
    assert_eq!(list(home.path()).unwrap(), [record]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Cut anywhere and gone on with, or with any byte changed, a record is that of some of its lines.
    #[test]
    fn a_torn_or_damaged_record_is_that_of_its_whole_lines(
        cut in any::<prop::sample::Index>(),
        byte in any::<prop::sample::Index>(),
    ) {
        let home = tempfile::tempdir().unwrap();
        let lines = lines(&header(json!({ "trials": 5 }), &[270]), &evaluate(&[270]));
        let whole = write(home.path(), &lines);
        let path = path(home.path(), "market-0123abcd");
        let bytes = std::fs::read(&path).unwrap();
        let cut = cut.index(bytes.len());
        std::fs::write(&path, &bytes[..cut]).unwrap();
        // The rest of a torn line is no part of the next one.
        let kept = Record::parse(&bytes[..cut]).map_or(0, |record| record.jobs.len());
        let mut writer = Writer::open(home.path(), "market-0123abcd").unwrap();
        writer.append(&lines[..3], at(99)).unwrap();
        let record = Record::read(&path).unwrap().unwrap();
        prop_assert_eq!(&record.jobs[0].0, &whole.jobs[0].0);
        prop_assert_eq!(record.jobs.len(), 1);
        prop_assert!(kept <= 5);
        let mut damaged = bytes.clone();
        damaged[byte.index(bytes.len())] ^= 1;
        let jobs = Record::parse(&damaged).map(|record| record.jobs).unwrap_or_default();
        prop_assert!(jobs.iter().all(|job| whole.jobs.contains(job)));
    }
}

#[test]
fn metrics_that_are_no_numbers_are_kept_as_such() {
    let home = tempfile::tempdir().unwrap();
    let mut lines = lines(&header(json!({ "trials": 1, "seeds": 2 }), &[270]), &|_| outcome(1.0));
    let Line::Ended { outcome, .. } = &mut lines[2] else {
        panic!("{lines:?}");
    };
    outcome.objectives = vec![vec![1.0], vec![f64::NAN]];
    let record = write(home.path(), &lines);
    let read = &record.outcomes[&0].0.objectives;
    assert!(read[0][0] == 1.0 && read[1][0].is_nan());
    assert_eq!(record.trials()[0].state, TrialState::Failed);
    assert_eq!(record.best(), None);
}

fn record_job(line: &Line) -> Job {
    match line {
        Line::Decided(job) => job.clone(),
        other => panic!("{other:?}"),
    }
}

/// A search with more trials goes on in the same record, from where its decisions are others.
#[test]
fn a_decision_replaces_those_from_its_number_on() {
    let home = tempfile::tempdir().unwrap();
    let mut lines = lines(&header(json!({ "trials": 4 }), &[270]), &evaluate(&[270]));
    let job = record_job(&lines[5]);
    assert_eq!(job.job, 2);
    lines.push(Line::Decided(Job { seen: 1, ..job }));
    // The result is another one when it is computed again.
    lines.push(Line::Ended {
        job: 1,
        outcome: outcome(0.25),
    });
    // After a line that is missing.
    lines.push(Line::Decided(Job {
        job: 9,
        ..record_job(&lines[5])
    }));
    let record = write(home.path(), &lines);
    assert_eq!(record.jobs.len(), 3);
    assert_eq!(record.jobs[2].0.seen, 1);
    assert_eq!(record.outcomes.keys().copied().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(record.outcomes[&1].0, outcome(0.25));
    assert_eq!(record.trials()[2].state, TrialState::Running);
    assert!(!record.is_done());
}

#[test]
fn one_process_writes_a_record() {
    let home = tempfile::tempdir().unwrap();
    let first = Writer::open(home.path(), "market-0123abcd").unwrap();
    assert!(is_running(home.path(), "market-0123abcd"));
    let refused = Writer::open(home.path(), "market-0123abcd").err().unwrap();
    assert!(refused.message.contains("running in another process"), "{refused}");
    drop(first);
    assert!(!is_running(home.path(), "market-0123abcd"));
    assert!(Writer::open(home.path(), "market-0123abcd").is_ok());
}

#[test]
fn trials_rungs_and_cost_of_a_search() {
    let home = tempfile::tempdir().unwrap();
    let header = header(asha(), &RUNGS);
    let record = write(home.path(), &lines(&header, &evaluate(&RUNGS)));
    let rows = record.trials();
    assert_eq!(rows.len(), 27);
    let count = |state| rows.iter().filter(|row| row.state == state).count();
    assert_eq!((count(TrialState::Done), count(TrialState::Pruned)), (1, 26));
    let done = rows.iter().find(|row| row.state == TrialState::Done).unwrap();
    assert_eq!(record.best(), Some(done.trial));
    assert_eq!(record.pareto_front(), [done.trial]);
    assert_eq!(
        done.results.iter().map(|result| result.resource).collect::<Vec<_>>(),
        RUNGS.map(Some)
    );
    // 18 trials to 10, 6 to 30, 2 to 90 and one to 270.
    assert_eq!(
        record.steps_saved(),
        Cost {
            computed: 18 * 10 + 6 * 30 + 2 * 90 + 270,
            full: 27 * 270
        }
    );
    let mut restarted = record.clone();
    restarted.header.restarts = true;
    assert_eq!(restarted.steps_saved().computed, 27 * 10 + 9 * 30 + 3 * 90 + 270);
    let rungs = record.rank_correlations();
    let column = |of: fn(&runner_search::rungs::RungRow) -> usize| rungs.iter().map(of).collect::<Vec<_>>();
    assert_eq!(column(|row| row.trials), [27, 9, 3, 1]);
    assert_eq!(column(|row| row.promoted), [9, 3, 1, 0]);
    assert_eq!(rungs[0].correlations, [None]);
    assert!(rungs[..3].iter().all(|row| row.best_kept == Some(true)), "{rungs:?}");
}

/// The median lets about half pass, so that there is a sample to correlate.
#[test]
fn correlations_are_those_of_the_trials_at_both_rungs() {
    let home = tempfile::tempdir().unwrap();
    let pruner = json!({ "median": { "resource": "train.total_timesteps", "min": 10 } });
    let header = header(json!({ "pruner": pruner, "trials": 60 }), &RUNGS);
    let record = write(home.path(), &lines(&header, &evaluate(&RUNGS)));
    let rows = record.trials();
    let done: Vec<_> = rows.iter().filter(|row| row.state == TrialState::Done).collect();
    let losses = |resource: u64| -> Vec<f64> {
        done.iter()
            .map(|row| measured(&row.settings, resource as f64))
            .collect()
    };
    let rungs = record.rank_correlations();
    assert!(done.len() > 5);
    for (row, resource) in rungs.iter().zip(RUNGS) {
        assert_eq!(row.pairs, done.len());
        assert_eq!(row.correlations, [spearman(&losses(resource), &losses(270))]);
        let rank = |trial: &&_| {
            let best = &rows[record.best().unwrap() as usize];
            let own = measured(&best.settings, resource as f64);
            let row: &runner_search::trials::TrialRow = trial;
            row.at(RUNGS.iter().position(|other| *other == resource).unwrap())
                .is_some()
                && measured(&row.settings, resource as f64) < own
        };
        assert_eq!(row.best_rank, Some(1 + rows.iter().filter(rank).count()));
    }
    // What decides is the first two settings, and least the last one's part of the fading loss.
    let importance = record.importance(0).unwrap();
    assert_eq!((importance.rung, importance.trials), (3, done.len()));
    let names: Vec<&str> = importance.settings.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names[..2].contains(&"a") && names[..2].contains(&"b"), "{importance:?}");
}

#[test]
fn observations_are_at_the_rungs_that_both_searches_have() {
    let home = tempfile::tempdir().unwrap();
    let record = write(home.path(), &lines(&header(asha(), &RUNGS), &evaluate(&RUNGS)));
    let rungs = |values: &[Option<u64>]| {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for observed in record.observations(values) {
            assert_eq!(observed.trial, u32::MAX);
            *counts.entry(observed.rung).or_default() += 1;
        }
        counts.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(rungs(&RUNGS.map(Some)), [(0, 18), (1, 6), (2, 2), (3, 1)]);
    // Where no trial is stopped, those at the end alone.
    assert_eq!(rungs(&[None]), [(0, 1)]);
    // Another first rung: what was not at one of these is left out.
    assert_eq!(rungs(&[Some(30), Some(90), Some(270)]), [(0, 6), (1, 2), (2, 1)]);
}

/// A search whose trials are of every state and kind of setting.
fn various() -> Vec<Line> {
    let block = json!({
        "over": {
            "train.with.learning_rate": { "log": [1e-5, 1e-2] },
            "train.with.gamma": { "uniform": [0.8, 0.999] },
            "train.with.ent_coef": { "uniform": [0.0, 0.05], "step": 0.02 },
            "train.with.n_epochs": { "integer": [1, 10], "step": 4 },
            "train.with.n_steps": { "log_integer": [64, 2048] },
            "train.with.policy_kwargs.net_arch": { "choice": [[64], [64, 64]] },
            "train.with.clip": {
                "choice": [null, 0.2], "when": { "train.with.policy_kwargs.net_arch": [[[64, 64]]] },
            },
        },
        "objective": { "maximize": "evaluate.utility" },
        "constraints": ["evaluate.drawdown <= 0.3"],
        "pruner": { "asha": { "resource": "train.total_timesteps", "min": 10 } },
        "seeds": 2, "trials": 4,
    });
    let mut header = header(json!({}), &[10, 30]);
    header.search = serde_json::from_value(block).unwrap();
    let mut lines = vec![Line::Search(Box::new(header))];
    let settings = |rate: f64, net: Value, clip: Option<Value>| {
        let mut settings = json!({
            "train.with.learning_rate": rate, "train.with.gamma": 0.9, "train.with.ent_coef": 0.02,
            "train.with.n_epochs": 5, "train.with.n_steps": 128, "train.with.policy_kwargs.net_arch": net,
        });
        settings
            .as_object_mut()
            .unwrap()
            .extend(clip.map(|clip| ("train.with.clip".to_owned(), clip)));
        settings.as_object().unwrap().clone().into_iter().collect()
    };
    let mut job = 0;
    let mut decide = |trial, rung, settings: &runner_search::Settings, outcome: Option<Outcome>| {
        let decided = Line::Decided(Job {
            job,
            trial,
            rung,
            resource: None,
            settings: settings.clone(),
            seen: 0,
            basis: String::new(),
        });
        lines.push(decided);
        lines.extend(outcome.map(|outcome| Line::Ended { job, outcome }));
        job += 1;
    };
    let sound = |first: f64, second: f64, drawdown: f64| {
        Some(Outcome {
            objectives: vec![vec![first], vec![second]],
            constraints: vec![vec![0.25], vec![drawdown]],
            seconds: 1.5,
            error: None,
        })
    };
    let failed = Outcome {
        error: Some("diverged, at step 7".into()),
        ..Outcome::default()
    };
    let one = settings(0.001, json!([64]), None);
    decide(0, 0, &one, sound(0.5, 1.5, 0.5));
    decide(0, 1, &one, sound(2.5, 3.5, 0.25));
    decide(
        1,
        0,
        &settings(1.0, json!([64, 64]), Some(json!(null))),
        sound(0.0, 0.5, 0.75),
    );
    decide(2, 0, &settings(0.0001, json!([64, 64]), Some(json!(0.2))), Some(failed));
    decide(3, 0, &settings(0.002, json!([64, 64]), Some(json!(0.2))), None);
    let run = "20260921-100000".into();
    lines.push(Line::Ran(Ran {
        run,
        seconds: 60.0,
        done: true,
    }));
    lines
}

#[test]
fn a_table_of_trials() {
    let home = tempfile::tempdir().unwrap();
    let table = csv(&write(home.path(), &various()));
    assert_eq!(
        table.replace("train.with.", ""),
        "\
trial,state,rung,resource,evaluate.utility,violation,evaluate.utility[seed=0],evaluate.utility[seed=1],\
evaluate.utility@10,evaluate.utility@30,seconds,first,last,error,\
clip,ent_coef,gamma,learning_rate,n_epochs,n_steps,policy_kwargs.net_arch
0,done,1,30,3,0,2.5,3.5,1,3,3,2026-09-21T14:13:21.000Z,2026-09-21T14:13:24.000Z,,\
,0.02,0.9,0.001,5,128,[64]
1,pruned,0,10,0.25,0.2,0,0.5,0.25,,1.5,2026-09-21T14:13:25.000Z,2026-09-21T14:13:26.000Z,,\
null,0.02,0.9,1.0,5,128,\"[64,64]\"
2,failed,,,,,,,,,0,2026-09-21T14:13:27.000Z,2026-09-21T14:13:28.000Z,\"diverged, at step 7\",\
0.2,0.02,0.9,0.0001,5,128,\"[64,64]\"
3,running,,,,,,,,,0,2026-09-21T14:13:29.000Z,,,0.2,0.02,0.9,0.002,5,128,\"[64,64]\"
"
    );
}

/// Optuna loads the study, with its own checks of each trial, and goes on with it.
#[test]
fn a_study_of_optuna() {
    const PROGRAM: &str = r#"
import json, sys, optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
study = optuna.load_study(study_name=None, storage=JournalStorage(JournalFileBackend(sys.argv[1])))
for trial in study.trials:
    trial._validate()
checked = {
    "name": study.study_name,
    "direction": study.direction.name,
    "attributes": study.user_attrs,
    "best": study.best_trial.number if len(sys.argv) < 3 else None,
    "trials": [
        [t.number, t.state.name, t.value, t.params, t.intermediate_values, t.user_attrs, t.system_attrs,
         str(t.datetime_complete - t.datetime_start) if t.datetime_complete else None]
        for t in study.trials
    ],
    "distributions": {name: str(value) for name, value in study.trials[1].distributions.items()},
}
sampler = optuna.samplers.TPESampler(seed=1, n_startup_trials=1)
study = optuna.load_study(study_name=None, storage=study._storage, sampler=sampler)
trial = study.ask(study.trials[0].distributions)
study.tell(trial, 1.0)
print(json.dumps(checked))
"#;
    let python = std::env::var("RUNNER_TEST_TORCH").unwrap_or_default();
    let has_optuna = || {
        Command::new(&python)
            .args(["-c", "import optuna"])
            .output()
            .is_ok_and(|out| out.status.success())
    };
    if python.is_empty() || !has_optuna() {
        eprintln!("skipped: RUNNER_TEST_TORCH names no interpreter with optuna");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("journal.log");
    std::fs::write(&file, journal(&write(home.path(), &various()))).unwrap();
    let output = Command::new(python)
        .args(["-W", "error", "-c", PROGRAM])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = "20260921-100000";
    let common = json!({
        "train.with.gamma": 0.9, "train.with.ent_coef": 0.02,
        "train.with.n_epochs": 5, "train.with.n_steps": 128,
    });
    let params = |others: Value| {
        let mut params = common.clone();
        params
            .as_object_mut()
            .unwrap()
            .extend(others.as_object().unwrap().clone());
        params
    };
    let arch = "train.with.policy_kwargs.net_arch";
    let violation = |by: f64| json!({ "constraints": [by] });
    let (rate, clip) = ("train.with.learning_rate", "train.with.clip");
    let expected = json!({
        "name": "market-0123abcd",
        "direction": "MAXIMIZE",
        "attributes": { "metrics": ["evaluate.utility"], "pipeline": "market", "runs": [run] },
        "best": 0,
        "trials": [
            [
                0, "COMPLETE", 3.0, params(json!({ rate: 0.001, arch: "[64]" })), { "10": 1.0, "30": 3.0 },
                { "rung": 1, "run": run, "seconds": 3.0, "seeds": [[2.5], [3.5]] }, violation(0.0), "0:00:03",
            ],
            // The learning rate is outside the range that is searched.
            [
                1, "PRUNED", 0.25, params(json!({ clip: null, arch: "[64,64]" })), { "10": 0.25 },
                { "rung": 0, "run": run, "seconds": 1.5, "seeds": [[0.0], [0.5]], rate: 1.0 },
                violation(0.2), "0:00:01",
            ],
            [
                2, "FAIL", null, params(json!({ rate: 0.0001, clip: 0.2, arch: "[64,64]" })), {},
                { "error": "diverged, at step 7", "run": run, "seconds": 0.0 }, {}, "0:00:01",
            ],
            [
                3, "RUNNING", null, params(json!({ rate: 0.002, clip: 0.2, arch: "[64,64]" })), {},
                { "seconds": 0.0 }, {}, null,
            ],
        ],
        "distributions": {
            clip: "CategoricalDistribution(choices=(None, 0.2))",
            "train.with.ent_coef": "FloatDistribution(high=0.04, log=False, low=0.0, step=0.02)",
            "train.with.gamma": "FloatDistribution(high=0.999, log=False, low=0.8, step=None)",
            "train.with.n_epochs": "IntDistribution(high=9, log=False, low=1, step=4)",
            "train.with.n_steps": "IntDistribution(high=2048, log=True, low=64, step=1)",
            arch: "CategoricalDistribution(choices=('[64]', '[64,64]'))",
        },
    });
    assert_eq!(checked, expected);
}
