//! Pruning: who goes on, and what that costs in regret.

use super::curves::{evaluate, loss, measured};
use super::{Draws, outcome, run, search, study};
use runner_pipeline::SamplerName;
use runner_search::sampler::sampler;
use runner_search::space::Space;
use runner_search::study::{Job, Next, Outcome, Study, jobs_left};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};

const RUNGS: [u64; 5] = [1, 3, 9, 27, 81];

fn asha(keys: serde_json::Value) -> runner_pipeline::Search {
    let mut block = json!({ "pruner": { "asha": { "resource": "train.total_timesteps", "min": 1 } } });
    block.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    search(block)
}

/// The units of the resource that jobs take: a rung continues the one before.
fn cost(jobs: &[Job]) -> u64 {
    let mut highest: BTreeMap<u32, usize> = BTreeMap::new();
    for job in jobs {
        let rung = highest.entry(job.trial).or_default();
        *rung = (*rung).max(job.rung);
    }
    highest.values().map(|rung| RUNGS[*rung]).sum()
}

/// Table 1 of Li and others (2018), R = 81 and eta = 3: one loop of all brackets, each by successive halving.
#[test]
fn hyperband_has_the_table_of_the_paper() {
    let search = search(json!({
        "pruner": { "hyperband": { "resource": "train.total_timesteps", "min": 1 } },
        "synchronous": true, "batch": 143, "trials": 143,
    }));
    let jobs = run(&mut study(&search, &RUNGS, Draws), 8, 0, &evaluate(&RUNGS));
    let mut first: BTreeMap<u32, usize> = BTreeMap::new();
    let mut table = [[0; 5]; 5];
    for job in &jobs {
        let bracket = *first.entry(job.trial).or_insert(job.rung);
        table[bracket][job.rung] += 1;
    }
    assert_eq!(
        table,
        [
            [81, 27, 9, 3, 1],
            [0, 34, 11, 3, 1],
            [0, 0, 15, 5, 1],
            [0, 0, 0, 8, 2],
            [0, 0, 0, 0, 5],
        ]
    );
}

/// Of one loop of brackets, the table's sums over them; of a search that is done, none; of one with more
/// trials, those that are not among its own.
#[test]
fn the_jobs_that_are_left() {
    let hyperband = json!({ "hyperband": { "resource": "train.total_timesteps", "min": 1 } });
    let keys = json!({ "pruner": hyperband, "synchronous": true, "batch": 143, "trials": 143 });
    assert_eq!(jobs_left(&search(keys), 5, |_, _| None), [81, 61, 35, 19, 10]);
    assert_eq!(jobs_left(&search(json!({ "trials": 2000 })), 1, |_, _| None), [2000]);
    let small = asha(json!({ "trials": 81 }));
    let counts = jobs_left(&small, 5, |_, _| None);
    assert!(
        counts[0] == 81 && (27..40).contains(&counts[1]) && counts[4] > 0,
        "{counts:?}"
    );

    let evaluate = evaluate(&RUNGS);
    let jobs = run(&mut study(&small, &RUNGS, Draws), 4, 0, &evaluate);
    let known: BTreeMap<(u32, usize), Outcome> =
        jobs.iter().map(|job| ((job.trial, job.rung), evaluate(job))).collect();
    let known = |trial, rung| known.get(&(trial, rung)).cloned();
    assert_eq!(jobs_left(&small, 5, known), [0; 5]);
    let large = asha(json!({ "trials": 90 }));
    let left = jobs_left(&large, 5, known);
    let at = |rung| jobs.iter().filter(|job| job.rung == rung).count();
    assert_eq!(left[0], 9);
    assert!(left.iter().skip(1).sum::<usize>() < 12 && at(1) > 20, "{left:?}");
}

#[test]
fn synchronous_halving_keeps_exactly_the_best() {
    let search = asha(json!({ "synchronous": true, "batch": 27, "trials": 27 }));
    let evaluate = evaluate(&RUNGS);
    let jobs = run(&mut study(&search, &RUNGS, Draws), 5, 3, &evaluate);
    for rung in 0..3 {
        let at = |rung| jobs.iter().filter(move |job| job.rung == rung);
        let mut results: Vec<(f64, u32)> = at(rung)
            .map(|job| (measured(&job.settings, RUNGS[rung] as f64), job.trial))
            .collect();
        results.sort_by(|left, right| left.0.total_cmp(&right.0));
        let best: Vec<u32> = results[..results.len() / 3].iter().map(|(_, trial)| *trial).collect();
        assert_eq!(at(rung + 1).map(|job| job.trial).collect::<Vec<_>>(), best);
    }
    assert_eq!(jobs.iter().filter(|job| job.rung == 3).count(), 1);
}

/// The pseudo-code of Li and others (2020), algorithm 2, with one worker.
#[test]
fn asha_promotes_as_the_paper_says() {
    let search = asha(json!({ "workers": 1, "trials": 60 }));
    let evaluate = evaluate(&RUNGS);
    let jobs = run(&mut study(&search, &RUNGS, Draws), 1, 0, &evaluate);
    let mut results: Vec<Vec<(f64, u32)>> = vec![Vec::new(); 5];
    let mut promoted: Vec<Vec<u32>> = vec![Vec::new(); 5];
    let mut trials = 0;
    for job in &jobs {
        let get_job = || {
            for rung in (0..4).rev() {
                let mut sorted = results[rung].clone();
                sorted.sort_by(|left, right| left.0.total_cmp(&right.0));
                sorted.truncate(sorted.len() / 3);
                let best = sorted.iter().find(|(_, trial)| !promoted[rung].contains(trial));
                if let Some((_, trial)) = best {
                    return Some((*trial, rung));
                }
            }
            None
        };
        match get_job() {
            Some((trial, rung)) => {
                assert_eq!((job.trial, job.rung), (trial, rung + 1));
                promoted[rung].push(trial);
            }
            // When all trials are proposed, the best of a rung goes on although there are fewer than three.
            None if trials == 60 => assert!(results[job.rung - 1].len() < 3),
            None => {
                assert_eq!((job.trial, job.rung), (trials, 0));
                trials += 1;
            }
        }
        results[job.rung].push((measured(&job.settings, RUNGS[job.rung] as f64), job.trial));
    }
    assert!(jobs.iter().any(|job| job.rung == 4));
}

#[test]
fn one_trial_comes_to_the_end_however_few_there_are() {
    for trials in 1..9 {
        for synchronous in [false, true] {
            let search = asha(json!({ "trials": trials, "synchronous": synchronous }));
            let jobs = run(&mut study(&search, &RUNGS, Draws), 4, 0, &evaluate(&RUNGS));
            assert_eq!(
                jobs.iter().filter(|job| job.rung == 4).count(),
                1,
                "{trials} {synchronous}"
            );
        }
    }
}

#[test]
fn failed_trials_do_not_go_on_and_infeasible_ones_come_last() {
    let keys = json!({ "trials": 9, "constraints": ["evaluate.drawdown <= 0.5"], "workers": 1 });
    let search = asha(keys);
    // Three fail; of the others, the better ones break the constraint, more so the better.
    let evaluate = |job: &Job| match job.trial {
        trial @ 0..3 => Outcome {
            error: (trial > 0).then(|| "diverged".to_owned()),
            objectives: vec![vec![f64::NAN]],
            constraints: vec![vec![0.0]],
            ..Outcome::default()
        },
        trial => Outcome {
            objectives: vec![vec![f64::from(trial)]],
            constraints: vec![vec![if trial < 7 { 1.0 - f64::from(trial) / 100.0 } else { 0.0 }]],
            ..Outcome::default()
        },
    };
    let mut study = study(&search, &RUNGS, Draws);
    let jobs = run(&mut study, 1, 0, &evaluate);
    assert!(jobs.iter().all(|job| job.trial > 2 || job.rung == 0));
    assert_eq!(study.best(), Some(7));
}

#[test]
fn several_objectives_go_on_by_their_front() {
    let keys = json!({
        "objective": [{ "minimize": "evaluate.loss" }, { "maximize": "evaluate.gain" }],
        "trials": 6, "synchronous": true, "batch": 6,
    });
    let search = asha(keys);
    // Trials 1 and 4 are the front: no other one has less loss and more gain than they.
    let objectives = [[3.0, 1.0], [1.0, 5.0], [2.0, 2.0], [5.0, 5.0], [4.0, 9.0], [6.0, 6.0]];
    let evaluate = |job: &Job| Outcome {
        objectives: vec![objectives[job.trial as usize].to_vec(); 2],
        ..Outcome::default()
    };
    let jobs = run(&mut study(&search, &RUNGS[..2], Draws), 6, 0, &evaluate);
    let second: Vec<u32> = jobs.iter().filter(|job| job.rung == 1).map(|job| job.trial).collect();
    assert_eq!(second, [1, 4]);
}

#[test]
fn the_median_lets_about_half_go_on() {
    let pruner = json!({ "median": { "resource": "train.total_timesteps", "min": 1 } });
    let search = search(json!({ "pruner": pruner, "trials": 200, "workers": 1 }));
    let jobs = run(&mut study(&search, &RUNGS, Draws), 1, 0, &evaluate(&RUNGS));
    let at = |rung| jobs.iter().filter(|job| job.rung == rung).count();
    assert_eq!(at(0), 200);
    // The median of those before: half of them in the mean, and five at the start.
    assert!((85..=120).contains(&at(1)), "{}", at(1));
    for rung in 1..4 {
        assert!(at(rung + 1) < at(rung), "{rung}");
    }
}

/// Of 243 trials, the one that ASHA chooses is among the best 2 % in the median over 20 seeds, at less than a
/// tenth of what full evaluation costs.
#[test]
fn asha_finds_what_full_evaluation_finds() {
    let mut ranks = Vec::new();
    for seed in 0..20 {
        let search = asha(json!({ "trials": 243, "seed": seed }));
        let mut study = study(&search, &RUNGS, Draws);
        let jobs = run(&mut study, 4, seed, &evaluate(&RUNGS));
        let best = study.best().unwrap();
        let proposed = jobs.iter().filter(|job| job.rung == 0);
        let losses: Vec<f64> = proposed.map(|job| loss(&job.settings, 81.0)).collect();
        ranks.push(losses.iter().filter(|other| **other < losses[best as usize]).count());
        assert!(cost(&jobs) * 10 < 243 * 81, "{}", cost(&jobs));
    }
    ranks.sort_unstable();
    assert!(ranks[10] < 5, "{ranks:?}");
}

/// The loss of the chosen trial when a budget of 20 full trainings is spent, beside that of Optuna's ASHA
/// (`reference/optuna_pruners.py`): the median over 200 seeds with random draws, over 20 with TPE.
#[test]
fn asha_is_no_worse_than_that_of_optuna_at_equal_budget() {
    const BUDGET: u64 = 20 * 81;
    let chosen = |name: SamplerName, seed: u64| {
        let search = asha(json!({ "trials": 100_000, "seed": seed }));
        let rungs = RUNGS.map(Some).to_vec();
        let mut study = Study::new(&search, Space::new(&search.over), rungs, sampler(name), Vec::new());
        let mut jobs: Vec<Job> = Vec::new();
        let mut under_way = VecDeque::new();
        let measure = |job: &Job| outcome(measured(&job.settings, RUNGS[job.rung] as f64));
        while cost(&jobs) < BUDGET {
            match study.next() {
                Next::Job(job) => {
                    jobs.push(job.clone());
                    under_way.push_back(job);
                }
                _ => {
                    let job = under_way.pop_front().unwrap();
                    study.tell(job.job, measure(&job));
                }
            }
        }
        for job in under_way {
            study.tell(job.job, measure(&job));
        }
        let best = study.best().unwrap();
        let best = jobs.iter().find(|job| job.trial == best).unwrap();
        loss(&best.settings, 81.0)
    };
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        (values[values.len() / 2 - 1] + values[values.len() / 2]) / 2.0
    };
    let reference: Vec<&str> = include_str!("../../reference/asha.csv").lines().skip(1).collect();
    for (column, name, seeds) in [(1, SamplerName::Random, 200), (2, SamplerName::Tpe, 20)] {
        let own = median((0..seeds).map(|seed| chosen(name, seed)).collect());
        let others = reference[..seeds as usize].iter();
        let others = others.map(|line| line.split(',').nth(column).unwrap().parse().unwrap());
        let others = median(others.collect());
        println!("{name:?}: median loss of the chosen trial {own:.4}, Optuna's {others:.4}");
        assert!(own <= others, "{name:?}: {own} {others}");
    }
}
