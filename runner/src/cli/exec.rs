//! `runner exec`.

use super::args::ExecArgs;
use super::session::{Project, Session};
use super::{output, plan, results};
use crate::engine::{self, Control, Event, Options, RunStatus, StageStatus, Stamped, Summary};
use crate::error::Failure;
use crate::executor::{WorkerProcess, machine_memory};
use crate::history::{self, ResolvedPipeline};
use crate::reporter::{JsonLines, Reporter, Terminal};
use crate::{exit, report, text};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::IsTerminal as _;
use std::time::Duration;

/// Name and version of this program.
pub(crate) const PROGRAM: &str = concat!("runner ", env!("CARGO_PKG_VERSION"));

/// How long a stage may take to stop after Ctrl-C: enough to write a checkpoint.
const GRACE: Duration = Duration::from_secs(15);

/// What the engine needs to know of a project and the machine.
pub(crate) fn options(session: &Session, project: &Project, run: &str) -> Result<Options, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let nodes = &project.pipeline.nodes;
    let ids = project.chosen.iter().map(|&i| nodes[i].id.as_str());
    Ok(Options {
        run: run.to_owned(),
        program: PROGRAM.to_owned(),
        jobs: cores,
        threads: cores,
        memory: machine_memory(),
        keep_going: false,
        force: project.force.clone(),
        env: session.env.clone(),
        logs: project.runs.join(run).join("logs"),
        grace: GRACE,
        last: history::last_actions(&project.runs, &project.pipeline.name, ids, None)?,
    })
}

pub(crate) fn exec(session: &Session, args: &ExecArgs) -> Result<u8, Failure> {
    if args.dry_run {
        let args = super::args::PlanArgs {
            pipeline: args.pipeline.clone(),
        };
        return plan::plan(session, &args).map(|()| exit::DONE);
    }
    let project = session.project(&args.pipeline)?;
    let run = history::new_id();
    let mut options = options(session, &project, &run)?;
    options.jobs = args.jobs.map_or(options.jobs, |jobs| jobs as usize);
    options.keep_going = args.keep_going;
    let executor = WorkerProcess::new().map_err(|err| Failure::caused("cannot tell which program this is", &err))?;
    let control = Control::default();
    listen(&control)?;
    // Whoever collects garbage waits until the run is over.
    let guard = project.store.guard()?;
    let resolved = ResolvedPipeline::new(&project.pipeline, &project.chosen);
    let mut writer = history::Writer::create(&project.runs, &run, &resolved)?;
    let live = std::io::stderr().is_terminal() && std::env::var("TERM").is_ok_and(|term| term != "dumb");
    let colour = live && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut terminal = Terminal::new(session.verbosity, live, colour);
    let mut lines = session.json.then(|| JsonLines::new(std::io::stdout()));
    let mut report = |event: Event| {
        let event = Stamped::now(event);
        writer.report(&event);
        terminal.report(&event);
        if let Some(lines) = &mut lines {
            lines.report(&event);
        }
    };
    let summary = engine::run(
        &project.pipeline,
        &project.chosen,
        &project.store,
        &executor,
        &options,
        &control,
        &mut report,
    );
    project.store.flush()?;
    drop(guard);
    writer.check()?;
    drop(writer);
    let page = history::load(&project.runs, &run).and_then(|run| report::write(&run, &project.runs, &project.store));
    if !session.json && session.verbosity > crate::reporter::Verbosity::Quiet {
        output::print(&table(&project, &run, &summary))?;
        if let Ok(run) = history::load(&project.runs, &run) {
            output::print(&results::table(&run, &project.store))?;
        }
        if let Ok(page) = &page {
            let page = page.strip_prefix(&session.current).unwrap_or(page);
            output::print(&format!("report: {}\n", page.display()))?;
        }
    }
    let code = code(&summary);
    match page {
        Err(err) if code == exit::DONE => Err(err),
        _ => Ok(code),
    }
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
fn listen(control: &Control) -> Result<(), Failure> {
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
fn table(project: &Project, run: &str, summary: &Summary) -> String {
    let ended = history::load(&project.runs, run).ok();
    let rows: Vec<Vec<String>> = summary
        .stages
        .iter()
        .map(|(id, status)| {
            let stage = ended.as_ref().and_then(|run| run.stage(id));
            let seconds = stage.map_or(0.0, |stage| match status {
                StageStatus::Cached => stage.computed_seconds.unwrap_or(0.0),
                _ => stage.seconds,
            });
            vec![
                id.clone(),
                status.name().to_owned(),
                match status {
                    StageStatus::Skipped => String::new(),
                    StageStatus::Cached => format!("({})", text::duration(seconds)),
                    _ => text::duration(seconds),
                },
                stage
                    .and_then(|stage| stage.peak_memory)
                    .map(text::size)
                    .unwrap_or_default(),
                stage
                    .and_then(|stage| stage.key)
                    .map(|key| key.short())
                    .unwrap_or_default(),
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
        "run {run}: {} in {} ({})\n",
        summary.status.name(),
        text::duration(summary.seconds),
        counts.join(", ")
    ));
    out
}
