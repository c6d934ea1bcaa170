//! `runner exec`.

use super::args::{ExecArgs, PipelineArgs, Selection};
use super::planned::SavedPlan;
use super::session::{Project, Session};
use super::{marks, output, plan, remote, results};
use crate::engine::{self, Control, Options, RunStatus, StageStatus, Stamped, Summary};
use crate::error::Failure;
use crate::executor::{WorkerProcess, machine_memory, peak_memory};
use crate::history::{self, ResolvedPipeline, Run};
use crate::pipeline::Work;
use crate::reporter::{JsonLines, Metrics, Reporter, Terminal};
use crate::{exit, report, text};
use cache::{HitCache, Store, StoreGuard};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Name and version of this program.
pub(crate) const PROGRAM: &str = concat!("runner ", env!("CARGO_PKG_VERSION"));

/// The share of a run's time that is spent on looking for silent damage, at least [`SCRUB_LEAST`] and at most a second.
const SCRUB_SHARE: f64 = 0.01;

/// What every run spends on that, beside what it does.
const SCRUB_LEAST: Duration = Duration::from_millis(1);

/// What `-v` says of the engine itself at the end.
pub(crate) const PEAK_MEMORY: &str = "peak memory of the engine in bytes: ";

/// What is longer is not fetched from a remote store to be shown at the end of a run, in bytes.
const SHOWN: u64 = 1 << 20;

/// How long a stage may take to stop after Ctrl-C: enough to write a checkpoint.
const GRACE: Duration = Duration::from_secs(15);

/// What the engine needs to know of a project and the machine.
pub(crate) fn options(session: &Session, project: &Project, run: &str) -> Result<Options, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Options {
        run: run.to_owned(),
        program: PROGRAM.to_owned(),
        jobs: cores,
        threads: cores,
        memory: machine_memory(),
        keep_going: false,
        verify_inputs: false,
        check: BTreeSet::new(),
        planned: BTreeMap::new(),
        force: project.force.clone(),
        env: session.env.clone(),
        logs: project.runs.join(run).join("logs"),
        grace: GRACE,
        recent: Arc::default(),
        past: Arc::new(history::PastRuns::new(&project.runs, &project.pipeline.name)),
    })
}

pub(crate) fn exec(session: &Session, args: &ExecArgs) -> Result<u8, Failure> {
    if args.dry_run {
        let args = super::args::PlanArgs {
            pipeline: PipelineArgs {
                pipeline: args.pipeline.clone().unwrap_or_default(),
                selection: args.selection.clone(),
            },
            save: None,
            resolved: false,
            no_remote: args.no_remote,
        };
        return plan::plan(session, &args).map(|()| exit::DONE);
    }
    let saved = args.plan.as_deref().map(SavedPlan::read).transpose()?;
    let of_pipeline = match &saved {
        Some(saved) => saved.arguments.pipeline(),
        None => PipelineArgs {
            pipeline: args.pipeline.clone().unwrap_or_default(),
            selection: args.selection.clone(),
        },
    };
    let name = recent_name(session, &of_pipeline);
    // While the pipeline is read, so is what its last run ended with; and a little of the store, to see whether it is sound.
    let (project, early) = std::thread::scope(|scope| {
        let early = scope.spawn(|| recall(session, &of_pipeline, &name));
        let project = session.project(&of_pipeline);
        (project, early.join().ok().flatten())
    });
    let project = project?;
    if args.no_run_stages {
        refuse_programs(&project)?;
    }
    marks::check(&project.runs, args.name.as_deref(), &args.tag)?;
    // Whoever collects garbage waits until the run is over and shown.
    let early = match early {
        Some(early) if early.root == project.store.root() => early,
        _ => Early {
            root: project.store.root().to_owned(),
            scrub: Scrub(None),
            _guard: project.store.guard()?,
            recent: HitCache::default(),
        },
    };
    let mut first_scrub = early.scrub;
    let run = history::new_run(&project.runs)?;
    let mut options = options(session, &project, &run)?;
    options.recent = Arc::new(early.recent);
    options.jobs = args.jobs.map_or(options.jobs, |jobs| jobs as usize);
    options.keep_going = args.keep_going;
    options.verify_inputs = args.verify_inputs;
    if let Some(share) = args.check_determinism {
        options.check = sample(&project.chosen, share, &run);
    }
    if let Some(saved) = &saved {
        options.planned = saved.check(&project, &options)?;
    }
    let executor =
        WorkerProcess::new(&project.store).map_err(|err| Failure::caused("cannot tell which program this is", &err))?;
    let control = Control::default();
    listen(&control)?;
    let mut writer = history::Writer::create(&project.runs, &run)?;
    marks::begin(&project.runs, &run, args.name.as_deref(), &args.tag)?;
    let live = std::io::stderr().is_terminal() && std::env::var("TERM").is_ok_and(|term| term != "dumb");
    let colour = live && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut terminal = Terminal::new(session.verbosity, live, colour);
    let mut lines = session.json.then(|| JsonLines::new(std::io::stdout()));
    let mut metrics = Metrics::new(writer.dir());
    writer.pipeline(ResolvedPipeline::new(&project.pipeline, &project.chosen));
    let (sender, batches) = std::sync::mpsc::channel::<Vec<Stamped>>();
    let (summary, writer) = std::thread::scope(|scope| {
        // What shows and stores events does not hold the engine up.
        let reporters = scope.spawn(|| {
            for events in batches {
                let lines = lines.as_mut().map(|lines| lines as &mut dyn Reporter);
                for reporter in [&mut writer as &mut dyn Reporter, &mut metrics, &mut terminal]
                    .into_iter()
                    .chain(lines)
                {
                    events.iter().for_each(|event| reporter.report(event));
                    reporter.flush();
                }
            }
            writer
        });
        let summary = engine::run(
            &project.pipeline,
            &project.chosen,
            &project.store,
            &executor,
            &options,
            &control,
            &mut |events| drop(sender.send(events)),
        );
        drop(sender);
        (summary, reporters.join())
    });
    let Ok(mut writer) = writer else {
        return Err(Failure::machine("what shows the events of a run panicked"));
    };
    let recent = &options.recent;
    if summary.hits.len() != recent.len() || summary.hits.iter().any(|(key, hit)| recent.get(*key) != Some(hit)) {
        project.store.save_hit_cache(&name, &summary.hits)?;
    }
    writer.check()?;
    let Some(ended) = writer.finish() else {
        project.store.flush()?;
        return Ok(code(&summary));
    };
    // To show what a remote store has, little of it is fetched, and never a table.
    let shown = project.store.with_fetch_limit(SHOWN);
    // A long run looks at more of the store, while that is flushed and the report is written.
    let budget = Duration::from_secs_f64((summary.seconds * SCRUB_SHARE).min(1.0)).saturating_sub(SCRUB_LEAST);
    let mut last_scrub = Scrub::start(&project.store, budget);
    let (flushed, page) = std::thread::scope(|scope| {
        let flushed = scope.spawn(|| project.store.flush());
        let page = report::write(&ended, &project.runs, &shown);
        (flushed.join(), page)
    });
    flushed.map_err(|_| Failure::machine("what flushes the store panicked"))??;
    let damaged = first_scrub.found() + last_scrub.found();
    if damaged > 0 {
        let _ = writeln!(
            std::io::stderr(),
            "warning: {} of the store had been damaged; what made them runs again when they are next needed\n   hint: `runner cache verify` looks at everything: the disk or its memory may be failing",
            text::count(damaged, "file")
        );
    }
    if !session.json && session.verbosity > crate::reporter::Verbosity::Quiet {
        output::print(&table(&ended, &summary))?;
        output::print(&results::table(&ended, &shown))?;
        if let Ok(page) = &page {
            let page = page.strip_prefix(&session.current).unwrap_or(page);
            output::print(&format!("report: {}\n", page.display()))?;
        }
    }
    if session.verbosity == crate::reporter::Verbosity::Verbose
        && let Some(bytes) = peak_memory()
    {
        let _ = writeln!(std::io::stderr(), "{PEAK_MEMORY}{bytes}");
    }
    remote::settle(session, &project.store, &run, &control)?;
    let code = code(&summary);
    // The process ends with them: taking thousands of stages apart first is time for nothing.
    std::mem::forget((project, options, ended, summary));
    match page {
        Err(err) if code == exit::DONE => Err(err),
        _ => Ok(code),
    }
}

/// A share of the nodes, at least one, by chance that the run's name decides.
fn sample(nodes: &[usize], share: f64, run: &str) -> BTreeSet<usize> {
    let rank = |node: &usize| *blake3::hash(format!("{run} {node}").as_bytes()).as_bytes();
    let mut ranked = nodes.to_vec();
    ranked.sort_by_key(rank);
    ranked.truncate((nodes.len() as f64 * share).ceil() as usize);
    ranked.into_iter().collect()
}

/// Refuses a pipeline with stages that would run a program of its author's choosing.
fn refuse_programs(project: &Project) -> Result<(), Failure> {
    let nodes = project.chosen.iter().map(|&i| &project.pipeline.nodes[i]);
    let programs: Vec<&str> = nodes
        .filter(|node| matches!(node.work, Work::Command(_)))
        .map(|node| node.id.as_str())
        .collect();
    match programs.as_slice() {
        [] => Ok(()),
        [first, rest @ ..] => {
            let more = if rest.is_empty() {
                String::new()
            } else {
                format!(" and {}", text::count(rest.len(), "other stage"))
            };
            Err(Failure::usage(format!(
                "`{first}`{more} would run a program that the pipeline names, and `--no-run-stages` refuses that"
            ))
            .hint("name the stages to run that need none of them, or read the `run:` lines and leave the option out"))
        }
    }
}

/// What tells one kind of run from another, so that each finds what its last one ended with.
fn recent_name(session: &Session, args: &PipelineArgs) -> Vec<u8> {
    let file = session.current.join(&args.pipeline);
    let Selection { stages, settings, .. } = &args.selection;
    format!("{:?} {:?} {:?} {:?}", file, stages, settings.set, settings.profile).into_bytes()
}

/// What is done, or begun, while the pipeline is read.
struct Early {
    root: PathBuf,
    /// Looks for damage beside the run.
    scrub: Scrub,
    /// Keeps garbage collectors away.
    _guard: StoreGuard,
    /// What the last run ended with.
    recent: HitCache,
}

/// A thread that scrubs the store; it is over when this is dropped.
struct Scrub(Option<JoinHandle<usize>>);

impl Scrub {
    /// Does nothing without time for it.
    fn start(store: &Store, budget: Duration) -> Self {
        let store = store.clone();
        Self((!budget.is_zero()).then(|| std::thread::spawn(move || scrub(&store, budget))))
    }

    /// How many files of the store it found to be damaged.
    fn found(&mut self) -> usize {
        self.0.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Scrub {
    fn drop(&mut self) {
        self.found();
    }
}

/// `None` where there is no store yet.
fn recall(session: &Session, args: &PipelineArgs, name: &[u8]) -> Option<Early> {
    let file = session.current.join(&args.pipeline);
    let home = session.home(file.parent());
    if !home.join("format").is_file() {
        return None;
    }
    let store = session.store(&home).ok()?;
    let guard = store.guard().ok()?;
    Some(Early {
        root: store.root().to_owned(),
        recent: store.load_hit_cache(name),
        // Damage that it finds is healed like any other: where the file is needed, and else by the next run.
        scrub: Scrub::start(&store, SCRUB_LEAST),
        _guard: guard,
    })
}

/// Reads some of the store again, and says how many files of it were damaged.
fn scrub(store: &Store, budget: Duration) -> usize {
    store.scrub(budget).map_or(0, |scrubbed| scrubbed.damaged.len())
}

fn code(summary: &Summary) -> u8 {
    match summary.status {
        RunStatus::Done => exit::DONE,
        RunStatus::Interrupted => exit::INTERRUPTED,
        _ if summary.machine_failed => exit::MACHINE_FAILED,
        _ => exit::STAGE_FAILED,
    }
}

/// Ctrl-C and SIGTERM ask running stages to stop; a second one ends them at once.
pub(crate) fn listen(control: &Control) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|err| Failure::caused("cannot handle signals", &err))?;
    let control = control.clone();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if control.cancel.is_cancelled() {
                control.kill.cancel();
            }
            control.cancel.cancel();
        }
    });
    Ok(())
}

/// The summary: what a run gives on standard output.
fn table(run: &Run, summary: &Summary) -> String {
    let rows: Vec<Vec<String>> = summary
        .stages
        .iter()
        .zip(&run.stages)
        .map(|((id, status), stage)| {
            let seconds = match status {
                StageStatus::Cached => stage.computed_seconds.unwrap_or(0.0),
                _ => stage.seconds,
            };
            vec![
                id.clone(),
                status.name().to_owned(),
                match status {
                    StageStatus::Skipped => String::new(),
                    StageStatus::Cached => format!("({})", text::duration(seconds)),
                    _ => text::duration(seconds),
                },
                stage.peak_memory.map(text::size).unwrap_or_default(),
                stage.key.map(|key| key.short()).unwrap_or_default(),
            ]
        })
        .collect();
    let mut out = text::table(&["stage", "status", "time", "memory", "key"], &rows, &[2, 3]);
    let mut counts = Vec::new();
    for status in [
        StageStatus::Cached,
        StageStatus::Ran,
        StageStatus::Failed,
        StageStatus::Skipped,
    ] {
        let n = summary.count(status);
        if n > 0 {
            counts.push(format!("{n} {}", status.name()));
        }
    }
    out.push_str(&format!(
        "run {}: {} in {} ({})\n",
        run.id,
        summary.status.name(),
        text::duration(summary.seconds),
        counts.join(", ")
    ));
    out
}
