//! The check: a run on the original data, and runs on changed data until each stage is judged.

use super::change::Version;
use super::findings::Findings;
use super::overlay::Pool;
use super::plan::{self, Plan};
use super::settings::{Settings, Stages};
use super::verdict::Verdict;
use super::{fetched, tolerant, version};
use runner_engine::{Collected, Control, Failure, Options, Progress, no_thread};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::Instant;

/// The runs after which it is decided whether more are needed. Not a function of the machine, so that the
/// outcome is none.
const ROUND: usize = 8;

/// The runs that go on at once.
const MOST_AT_ONCE: usize = 4;

/// Checks stages of a pipeline. `progress` receives progress messages.
///
/// # Errors
/// When the pipeline fails on the original data, when a date is outside of the data, or when the store or the
/// machine fails.
pub fn check(
    stages: &Stages<'_>,
    settings: &Settings,
    progress: &mut Progress<'_>,
) -> Result<Verdict, Failure> {
    let Stages {
        pipeline,
        chosen,
        store,
        file_types,
        options,
        control,
    } = *stages;
    let pipeline = &tolerant::tolerant(pipeline);
    let chosen = plan::without_needless_training(pipeline, chosen);
    let (pipeline, _links) = &fetched::fetched(pipeline, &chosen, store, control)?;
    let base = Collected::run(pipeline, &chosen, store, file_types, options, control, progress)?;
    if let Some((node, error)) = base.failed.first() {
        let stage = &pipeline.nodes[*node].id;
        return Err(Failure::new(
            runner_engine::exit::STAGE_FAILED,
            format!("`{stage}` failed before its data was changed: {error}"),
        ));
    }
    let plan = Plan::new(pipeline, &chosen, store, file_types, base, settings)?;
    let versions = plan.versions();
    // Stages that were forced by name have already run; each of several runs has its share of the cores.
    let at_once = options.threads.clamp(1, MOST_AT_ONCE).min(versions.len().max(1));
    let options = Options {
        force: BTreeSet::new(),
        check: BTreeSet::new(),
        planned: Default::default(),
        jobs: (options.jobs / at_once).max(1),
        threads: (options.threads / at_once).max(1),
        memory: options.memory.map(|memory| memory / at_once as u64),
        ..options.clone()
    };
    let began = Instant::now();
    let mut findings = Findings::default();
    let pool = Pool::new(store)?;
    for round in versions.chunks(ROUND) {
        for tested in in_parallel(&plan, &pool, round, at_once, &options, control)? {
            findings.take(&plan, tested);
        }
        pool.prune()?;
        progress(&format!("{} of {} runs on changed data", findings.runs, versions.len()));
        if findings.all_found(&plan) {
            break;
        }
    }
    findings.verdict(&plan, began.elapsed().as_secs_f64())
}

/// Tests versions of the data, several at once; the results are in order.
fn in_parallel(
    plan: &Plan<'_>,
    pool: &Pool<'_>,
    versions: &[Version],
    at_once: usize,
    options: &Options,
    control: &Control,
) -> Result<Vec<version::Tested>, Failure> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut tested = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(version) = versions.get(i) else { return tested };
            let result = version::test(plan, pool, version, options, control);
            let failed = result.is_err();
            tested.push((i, result));
            if failed {
                next.store(versions.len(), Ordering::Relaxed);
            }
        }
    };
    let mut all: Vec<(usize, Result<version::Tested, Failure>)> = std::thread::scope(|scope| {
        let start = |_| Builder::new().spawn_scoped(scope, work).map_err(no_thread);
        let threads = (0..at_once).map(start).collect::<Result<Vec<_>, _>>()?;
        let panicked = || Failure::machine("a thread of the check panicked");
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| panicked()))
            .collect::<Result<Vec<_>, _>>()
    })?
    .into_iter()
    .flatten()
    .collect();
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, result)| result).collect()
}
