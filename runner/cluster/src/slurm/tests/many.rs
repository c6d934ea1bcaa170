//! Many jobs at a time, with faults of everything.

use super::*;
use runner_engine::executor::Executor as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The resident memory of this process in bytes.
fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Runs jobs of these numbers, so many at a time; the numbers of events.
fn run(home: &Home, executor: &OnSlurm, jobs: std::ops::Range<usize>, at_a_time: usize) -> usize {
    let (next, metrics) = (AtomicUsize::new(jobs.start), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= jobs.end {
                        return;
                    }
                    let events = Arc::new(Events::default());
                    let sink: Arc<dyn EventSink> = events.clone();
                    let mut job = home.job(&format!("job {i}"));
                    job.threads = 1 + i % 2;
                    let done = executor.run(&job, &sink, &limits());
                    let done = done.unwrap_or_else(|err| panic!("{err:?}: {}", events.text()));
                    assert_eq!(done.outputs["x"], home.output);
                    let place = done.place.unwrap();
                    assert!(
                        place.executor == "hpc" && place.job.contains('_') && place.host.starts_with('n')
                    );
                    metrics.fetch_add(usize::from(events.metrics() > 0), Ordering::Relaxed);
                }
            });
        }
    });
    metrics.into_inner()
}

#[test]
fn ten_thousand_jobs_on_a_slurm_that_fails() {
    let home = Home::new();
    let slurm = home.slurm(World {
        slots: 400,
        longest: Duration::from_millis(150),
        faults: 0.06,
        age: Duration::from_millis(600),
    });
    let settings = Slurm {
        max_jobs: 500,
        pack: Some(Duration::from_millis(50)),
        ..settings()
    };
    let executor = home.executor(&slurm, &settings);
    let started = Instant::now();
    let mut followed = run(&home, &executor, 0..2_000, 1_000);
    let before = memory();
    followed += run(&home, &executor, 2_000..10_000, 1_000);
    let grown = memory().saturating_sub(before);
    let (seconds, queries, arrays) = (
        started.elapsed().as_secs_f64(),
        slurm.queries(),
        slurm.submissions().len(),
    );
    eprintln!(
        "{seconds:.1} s, {queries} queries, {arrays} arrays, {} at most, {grown} bytes more",
        slurm.most()
    );
    assert_eq!(followed, 10_000, "each job's events are forwarded");
    assert!(
        queries as f64 <= seconds / 0.25 + 10.0,
        "{queries} queries in {seconds} s"
    );
    assert!(arrays <= 1_500, "{arrays} arrays");
    assert!(slurm.most() <= 550, "{} tasks at a time", slurm.most());
    assert!(grown < 64 << 20, "{grown} bytes more");
    drop(executor);
    assert_eq!(slurm.in_queue(), 0, "nothing is left behind");
}

#[test]
fn submissions_say_what_jobs_request_and_quote_nothing() {
    let home = Home::new();
    let slurm = home.slurm(calm());
    let settings = Slurm {
        partition: Some("cpu".to_owned()),
        options: vec!["--nice=5".to_owned()],
        ..settings()
    };
    let executor = home.executor(&slurm, &settings);
    let mut job = home.job("it's a `job`; $HOME");
    job.threads = 4;
    job.request = Request {
        memory: Some((3 << 30) + 1),
        gpus: 2,
        time: Some(Duration::from_secs(240)),
        ..Request::default()
    };
    let sink: Arc<dyn EventSink> = Arc::new(Events::default());
    executor.run(&job, &sink, &limits()).unwrap();
    let arguments = slurm.submissions().remove(0).join("\n");
    let comment = arguments
        .lines()
        .find_map(|line| line.strip_prefix("--comment=runner:"))
        .unwrap()
        .to_owned();
    let root = home.store.root().display().to_string();
    let arguments = arguments.replace(&comment, "BATCH").replace(&root, "HOME");
    insta::assert_snapshot!(arguments, @r"
    --parsable
    --array=0-0
    --job-name=runner-a___pipeline_
    --comment=runner:BATCH
    --no-requeue
    --export=ALL
    --nodes=1
    --ntasks=1
    --cpus-per-task=4
    --signal=B:USR1@60
    --chdir=HOME
    --output=HOME/jobs/BATCH/out-%a
    --mem=3073M
    --time=0:04:00
    --gres=gpu:2
    --partition=cpu
    --nice=5
    HOME/jobs/BATCH/script
    ");
}

#[test]
fn a_stop_ends_what_this_run_has_in_the_queue_and_nothing_else() {
    let home = Home::new();
    let slurm = home.slurm(World {
        slots: 10,
        longest: Duration::from_secs(3600),
        ..calm()
    });
    let executor = home.executor(&slurm, &settings());
    // Another run's array, of the same program.
    let other = home.dir.path().join("other");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("tasks"), "x.json\n").unwrap();
    let sbatch = slurm.programs().join("sbatch");
    let script = other.join("script").display().to_string();
    let mut submit = std::process::Command::new(sbatch);
    submit.args(["--array=0-0", "--comment=runner:other", &script]);
    assert!(submit.status().unwrap().success());
    let limits = limits();
    std::thread::scope(|scope| {
        let run = |i: usize| {
            let sink: Arc<dyn EventSink> = Arc::new(Events::default());
            executor.run(&home.job(&format!("job {i}")), &sink, &limits)
        };
        let jobs: Vec<_> = (0..40).map(|i| scope.spawn(move || run(i))).collect();
        while slurm.in_queue() < 41 {
            std::thread::sleep(Duration::from_millis(10));
        }
        limits.cancel.cancel();
        for job in jobs {
            let err = job.join().unwrap().unwrap_err();
            assert_eq!(err.cause, stages_core::error::Cause::Interrupted, "{err:?}");
        }
    });
    let calls = slurm.cancellations();
    assert!(calls.len() <= 8, "{calls:?}");
    drop(executor);
    assert_eq!(slurm.in_queue(), 1, "the other array goes on");
}

#[test]
fn a_controller_that_is_away_loses_nothing() {
    let home = Home::new();
    let slurm = home.slurm(World {
        longest: Duration::from_millis(900),
        ..calm()
    });
    let executor = home.executor(&slurm, &settings());
    std::thread::scope(|scope| {
        let run = |name: &'static str, events: Arc<Events>| {
            let (home, executor) = (&home, &executor);
            scope.spawn(move || {
                let sink: Arc<dyn EventSink> = events;
                executor.run(&home.job(name), &sink, &limits())
            })
        };
        let events = Arc::new(Events::default());
        let first = run("a", events.clone());
        while slurm.in_queue() == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        slurm.set("away", true);
        let second = run("b", events.clone());
        // The result comes by its file.
        first.join().unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        assert!(!second.is_finished());
        slurm.set("away", false);
        second.join().unwrap().unwrap();
        let text = events.text();
        assert_eq!(text.matches("Slurm does not answer").count(), 1, "{text}");
        assert!(text.contains("Slurm answers again"), "{text}");
    });
    assert_eq!(slurm.submissions().len(), 2);
}

#[test]
fn outputs_that_are_not_visible_yet_are_waited_for() {
    let home = Home::new();
    let slurm = home.slurm(calm());
    let executor = home.executor(&slurm, &settings());
    let artifact = home.store.artifact(home.output).unwrap();
    let blob = artifact.entries[0].blob_ref();
    let find = |dir: &std::path::Path| {
        let mut dirs = vec![dir.to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                if entry
                    .path()
                    .to_string_lossy()
                    .replace('/', "")
                    .ends_with(&blob.blob.to_hex())
                {
                    return entry.path();
                }
                if entry.path().is_dir() {
                    dirs.push(entry.path());
                }
            }
        }
        panic!("the blob has no file");
    };
    let file = find(home.store.root());
    let aside = home.dir.path().join("aside");
    std::fs::rename(&file, &aside).unwrap();
    let events = Arc::new(Events::default());
    let sink: Arc<dyn EventSink> = events.clone();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| executor.run(&home.job("late"), &sink, &limits()));
        std::thread::sleep(Duration::from_millis(1500));
        assert!(!running.is_finished());
        std::fs::rename(&aside, &file).unwrap();
        running.join().unwrap().unwrap();
    });
    assert_eq!(slurm.submissions().len(), 1, "{}", events.text());
    std::fs::rename(&file, &aside).unwrap();
    let few = Slurm {
        retries: 1,
        ..settings()
    };
    drop(executor);
    let err = home
        .executor(&slurm, &few)
        .run(&home.job("never"), &sink, &limits())
        .unwrap_err();
    assert!(
        err.message.contains("its outputs are not visible here: blob"),
        "{err:?}"
    );
    assert_eq!(slurm.submissions().len(), 3);
}

#[test]
fn what_slurm_refuses_is_an_error_that_names_it() {
    let home = Home::new();
    let slurm = home.slurm(calm());
    let sbatch = slurm.programs().join("sbatch");
    let refusal = "sbatch: error: Batch job submission failed: Invalid partition name specified";
    std::fs::write(&sbatch, format!("#!/bin/sh\necho '{refusal}' >&2; exit 1\n")).unwrap();
    let sink: Arc<dyn EventSink> = Arc::new(Events::default());
    let err = home
        .executor(&slurm, &settings())
        .run(&home.job("a"), &sink, &limits())
        .unwrap_err();
    assert!(err.message.contains("Invalid partition name specified"), "{err:?}");
    assert!(
        err.hint.as_ref().is_some_and(|hint| hint.contains("executors: { hpc:")),
        "{err:?}"
    );
    assert_eq!(std::fs::read_dir(home.store.root().join("jobs")).unwrap().count(), 0);
}

fn calm() -> World {
    World {
        slots: 100,
        longest: Duration::from_millis(50),
        faults: 0.0,
        age: Duration::from_secs(60),
    }
}
