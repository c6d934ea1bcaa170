//! Jobs are a function of the results, in the order of the jobs.

use super::curves::evaluate;
use super::{Draws, Echo, outcome, run, search, study};
use proptest::prelude::*;
use runner_pipeline::Search;
use runner_search::study::{Job, Next, Outcome, Study};
use serde_json::{Value, json};

const RUNGS: [u64; 4] = [1, 3, 9, 20];

fn pruner(name: &str) -> (Value, &'static [u64]) {
    match name {
        "none" => (json!("none"), &RUNGS[3..]),
        name => (
            json!({ name: { "resource": "train.total_timesteps", "min": 1 } }),
            &RUNGS,
        ),
    }
}

fn any_search() -> impl Strategy<Value = (Search, &'static [u64])> {
    let names = prop::sample::select(vec!["none", "asha", "hyperband", "median"]);
    let any = (names, any::<bool>(), 1..6_u32, 1..9_u32, 0..30_u32);
    any.prop_map(|(name, synchronous, workers, batch, trials)| {
        let (pruner, rungs) = pruner(name);
        let keys = json!({
            "pruner": pruner, "synchronous": synchronous, "workers": workers, "batch": batch,
            "trials": trials, "first": [{ "a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5 }],
        });
        (search(keys), rungs)
    })
}

/// Every fifth trial or so fails.
fn flaky(rungs: &[u64]) -> impl Fn(&Job) -> Outcome + use<> {
    let sound = evaluate(rungs);
    move |job| match (job.trial * 7 + job.rung as u32) % 5 {
        3 => Outcome {
            error: Some("out of memory".into()),
            ..Outcome::default()
        },
        _ => sound(job),
    }
}

/// Where a search that proposes all its trials differs from one of more trials.
fn last_proposal(jobs: &[Job]) -> usize {
    let trials: Vec<u32> = jobs.iter().map(|job| job.trial).collect();
    (0..jobs.len())
        .rev()
        .find(|&i| !trials[..i].contains(&trials[i]))
        .map_or(0, |i| i + 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn jobs_do_not_depend_on_the_order_of_ends((search, rungs) in any_search(), order in any::<u64>()) {
        let evaluate = flaky(rungs);
        let jobs = run(&mut study(&search, rungs, Echo), 1, 0, &evaluate);
        prop_assert!(jobs.iter().map(|job| job.job).eq(0..jobs.len() as u32));
        let proposed = jobs.iter().map(|job| job.trial + 1).max().unwrap_or(0);
        prop_assert_eq!(proposed, search.trials());
        for limit in [2, search.workers as usize, 16] {
            prop_assert_eq!(&run(&mut study(&search, rungs, Echo), limit, order, &evaluate), &jobs);
        }
    }

    #[test]
    fn a_search_goes_on_from_any_prefix_of_its_record(
        (search, rungs) in any_search(),
        order in any::<u64>(),
        prefix in any::<prop::sample::Index>(),
    ) {
        let evaluate = flaky(rungs);
        let jobs = run(&mut study(&search, rungs, Echo), 4, order, &evaluate);
        let prefix = if jobs.is_empty() { 0 } else { prefix.index(jobs.len() + 1) };
        // The sampler is not asked for what was recorded.
        let mut resumed = study(&search, rungs, Echo);
        for job in &jobs[..prefix] {
            prop_assert!(resumed.replay(job.clone()));
            resumed.tell(job.job, evaluate(job));
        }
        let rest = run(&mut resumed, 3, order, &evaluate);
        prop_assert_eq!(rest, &jobs[prefix..]);
    }

    #[test]
    fn more_trials_begin_with_the_same_jobs((search, rungs) in any_search(), more in 1..20_u32) {
        let evaluate = flaky(rungs);
        let jobs = run(&mut study(&search, rungs, Echo), 4, 0, &evaluate);
        let larger = Search { trials: Some(search.trials() + more), ..search.clone() };
        let continued = run(&mut study(&larger, rungs, Echo), 4, 1, &evaluate);
        let same = match search.synchronous {
            // Whole batches are the same to their end, and the last one up to its last trial.
            true => {
                let whole = search.trials() / search.batch * search.batch;
                jobs.iter().position(|job| job.trial >= whole).unwrap_or(jobs.len())
            }
            false => last_proposal(&jobs),
        };
        prop_assert_eq!(&continued[..same], &jobs[..same]);
    }
}

#[test]
fn a_decision_is_not_taken_over_where_a_result_is_another() {
    let search = search(json!({
        "pruner": { "asha": { "resource": "train.total_timesteps", "min": 1 } }, "workers": 2, "trials": 12,
    }));
    let evaluate = evaluate(&RUNGS);
    let jobs = run(&mut study(&search, &RUNGS, Echo), 2, 0, &evaluate);
    let mut resumed = study(&search, &RUNGS, Echo);
    let changed = |job: &Job| if job.job == 3 { outcome(0.125) } else { evaluate(job) };
    // Job 5 is the first that is decided by the result of job 3.
    for job in &jobs[..5] {
        assert!(resumed.replay(job.clone()));
        resumed.tell(job.job, changed(job));
    }
    assert!(!resumed.replay(jobs[5].clone()));
    assert!(matches!(resumed.next(), Next::Job(job) if job.job == 5));
    let mut other = Job {
        trial: 7,
        ..jobs[0].clone()
    };
    assert!(!study(&search, &RUNGS, Echo).replay(other.clone()));
    other.trial = 0;
    assert!(study(&search, &RUNGS, Echo).replay(other));
}

#[test]
fn proposals_lag_behind_the_workers_and_a_slow_job_holds_up_those_that_need_it() {
    let search = search(json!({ "workers": 3, "trials": 9 }));
    let mut study = study(&search, &[1], Draws);
    let mut next = || study.next();
    let jobs: Vec<Job> = (0..3)
        .map(|_| match next() {
            Next::Job(job) => job,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(jobs.iter().map(|job| job.seen).collect::<Vec<_>>(), [0, 0, 0]);
    assert_eq!(next(), Next::Wait);
    study.tell(1, outcome(1.0));
    study.tell(2, outcome(2.0));
    assert_eq!(study.next(), Next::Wait);
    study.tell(0, outcome(3.0));
    for seen in 1..=3 {
        assert!(matches!(study.next(), Next::Job(job) if job.seen == seen));
    }
    assert_eq!(study.next(), Next::Wait);
    assert_eq!(study.best(), Some(1));
    assert_eq!(study.under_way().map(|job| job.job).collect::<Vec<_>>(), [3, 4, 5]);
}

#[test]
fn first_trials_come_first_and_are_not_proposed() {
    let first = json!({ "a": 0.25, "b": 0.5, "c": 0.5, "d": 1.0 });
    let search = search(json!({ "first": [first], "trials": 2 }));
    let jobs = run(&mut study(&search, &[1], Echo), 1, 0, &|_| outcome(0.0));
    assert_eq!(json!(jobs[0].settings), first);
    assert_eq!(jobs.len(), 2);
    let mut study: Study = study(&search, &[1], Echo);
    let other = Job {
        settings: jobs[1].settings.clone(),
        ..jobs[0].clone()
    };
    assert!(!study.replay(other));
    assert!(study.replay(jobs[0].clone()));
}

#[test]
fn a_search_whose_first_jobs_all_fail_stops() {
    let fail = |study: &mut Study, job| {
        let error = Some("no such file".to_owned());
        study.tell(
            job,
            Outcome {
                error,
                ..Outcome::default()
            },
        );
    };
    let search = search(json!({ "workers": 1, "trials": 64 }));
    let mut study = study(&search, &[1], Draws);
    for job in 0..5 {
        assert!(matches!(study.next(), Next::Job(_)));
        fail(&mut study, job);
    }
    let message = "the first 5 jobs of the search failed: no such file".to_owned();
    assert_eq!(study.next(), Next::Failed(message.clone()));
    assert_eq!(study.next(), Next::Failed(message));
    assert_eq!(study.best(), None);
    // One that ends before the fifth.
    let search = self::search(json!({ "workers": 1, "trials": 1 }));
    let mut study = self::study(&search, &[1], Draws);
    assert!(matches!(study.next(), Next::Job(_)));
    fail(&mut study, 0);
    assert!(matches!(study.next(), Next::Failed(_)));
}
