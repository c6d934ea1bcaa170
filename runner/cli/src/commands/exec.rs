//! `runner exec`.

use super::plan_file::SavedPlan;
use super::{check, executors, plan, remote};
use crate::commands::plan::PlanArgs;
use crate::complete::{candidates, completed};
use crate::project::{PipelineArgs, Project, Reach, Selection};
use crate::session::{Session, temporary_directory};
use crate::values::{isolation, percentage};
use crate::{interrupt, output};
use cache::shared::is_writable;
use cache::{Store, StoreGuard};
use clap::{Args, ValueEnum};
use runner_engine::executor::WorkerProcess;
use runner_engine::{
    Control, Event, Failure, Grow, Options, Reporter, StageStatus, Stamped, Summary, exit, run_pipeline, text,
};
use runner_history::policies::{self, Judged, Registered};
use runner_history::trials::{Planned, Recorder, Trials};
use runner_history::{self as history, ResolvedPipeline, Run, StageRun, marks};
use runner_lookahead::Verdict;
use runner_pipeline::{Isolation, Pipeline, Promote, Work};
use runner_report::notify::{self, Message};
use runner_report::reporter::{JsonLines, Metrics, Terminal, Verbosity};
use runner_report::track::Tracking;
use runner_report::{self as report, results_table};
use runner_sandbox::peak_memory;
use runner_search::driver::{self as search, Driver, Searched};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Run the stages of a pipeline that are not cached.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  runner exec pipelines/rppo_options.yaml
  runner exec pipelines/rppo_options.yaml train --set seed=3 --set train.with.learning_rate=1e-4
  runner exec p.yaml --force evaluate --keep-going
  runner exec p.yaml --json | jq 'select(.event == \"metric\")'

With --json, each event is one line of standard output.")]
pub(crate) struct ExecArgs {
    /// The pipeline file.
    #[arg(required_unless_present = "plan", add = completed(candidates::pipelines))]
    pub pipeline: Option<PathBuf>,
    #[command(flatten)]
    pub selection: Selection,
    /// Run the plan in FILE, written by `plan --save` or `plan --json`; fails if anything changed since.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["pipeline", "stages", "set", "profile", "night", "force", "dry_run"]
    )]
    pub plan: Option<PathBuf>,
    /// The maximum number of stages that run in parallel [default: the number of cores].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub jobs: Option<u32>,
    /// The executor of `config.yaml` that runs the stages that name none [default: this machine].
    #[arg(long, value_name = "NAME")]
    pub executor: Option<String>,
    /// After a failure, continue with the stages that do not depend on the failed one.
    #[arg(short, long)]
    pub keep_going: bool,
    /// Dry run: show what would run.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Hash every source file again, even if its size and modification time are unchanged.
    #[arg(long)]
    pub verify_inputs: bool,
    /// Compute a random share of the cached stages again (at least one), without memos and checkpoints; a
    /// stage whose result differs fails.
    #[arg(long, value_name = "N%", value_parser = percentage)]
    pub check_determinism: Option<f64>,
    /// Check the results after a run that succeeded; the exit code is then that of `runner check lookahead`.
    #[arg(long, value_enum, value_name = "CHECK")]
    pub check: Option<RunCheck>,
    /// The isolation of `run:` stages that do not ask for one [default: that of `config.yaml`, or `auto`].
    /// A requirement of a stage, or of this, is required.
    #[arg(long, value_name = "HOW", value_parser = isolation())]
    pub isolation: Option<Isolation>,
    /// Refuse pipelines with stages that run external programs (`run:`).
    #[arg(long)]
    pub no_run_stages: bool,
    #[command(flatten)]
    pub reach: Reach,
    /// Always write the HTML report. Without this option it is written if a stage ran and it takes less than
    /// 5 % of the run; `runner report RUN` writes it later.
    #[arg(long)]
    pub report: bool,
    /// Name the run; the name can be used wherever a run is expected.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Tag the run (repeatable).
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
}

/// A check that follows a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunCheck {
    /// `runner check lookahead` with its default settings.
    Lookahead,
}

/// The size limit, in bytes, of artifacts that are fetched from a remote store for display at the end of a
/// run.
const SHOWN: u64 = 1 << 20;

/// The maximum share of a run's time that its report may take if it was not requested.
const REPORT_SHARE: f64 = 0.05;

pub(crate) fn exec(session: &Session, args: &ExecArgs) -> Result<u8, Failure> {
    let is_shown = !session.json && session.verbosity > Verbosity::Quiet;
    let caller = Caller {
        control: None,
        started: &mut |_| Ok(()),
        is_shown,
    };
    run(session, args, caller).map(|(code, _)| code)
}

/// The caller of a run.
pub(crate) struct Caller<'a> {
    /// The run's cancellation; if `None`, signals cancel the run.
    pub control: Option<Control>,
    /// Called with the run's id before the first stage.
    pub started: &'a mut dyn FnMut(&str) -> Result<(), Failure>,
    /// True to print the results on standard output.
    pub is_shown: bool,
}

/// Runs a pipeline. Returns the exit code, and the run; `None` for a dry run.
pub(crate) fn run(
    session: &Session,
    args: &ExecArgs,
    caller: Caller<'_>,
) -> Result<(u8, Option<Run>), Failure> {
    let session = &args.reach.session(session);
    let began = Instant::now();
    if args.dry_run {
        let args = PlanArgs {
            pipeline: given(args),
            save: None,
            resolved: false,
            executor: args.executor.clone(),
            reach: args.reach,
        };
        plan::plan(session, &args)?;
        return Ok((exit::DONE, None));
    }
    let is_shown = caller.is_shown;
    let (prepared, writer) = prepare(session, args, caller)?;
    let executed = execute(session, args, &prepared, writer)?;
    conclude(session, args, &prepared, executed, is_shown.then_some(began))
}

/// The pipeline and the selection of stages given as arguments.
fn given(args: &ExecArgs) -> PipelineArgs {
    PipelineArgs {
        pipeline: args.pipeline.clone().unwrap_or_default(),
        selection: args.selection.clone(),
    }
}

/// A run whose directory exists.
struct Prepared {
    project: Project,
    /// The id.
    run: String,
    /// The directory of the history to which the run is written.
    runs: PathBuf,
    /// The temporary directory of the history, if the run cannot be recorded.
    unrecorded: Option<TempDir>,
    options: Options,
    /// The executors of other machines that its stages request.
    executors: BTreeMap<String, runner_cluster::settings::Settings>,
    control: Control,
    /// Excludes garbage collection until the run is displayed.
    _guard: StoreGuard,
}

/// Reads the pipeline, and begins the run in the history.
fn prepare(
    session: &Session,
    args: &ExecArgs,
    caller: Caller<'_>,
) -> Result<(Prepared, history::Writer), Failure> {
    let saved = args.plan.as_deref().map(SavedPlan::read).transpose()?;
    let pipeline = saved
        .as_ref()
        .map_or_else(|| given(args), |saved| saved.arguments.pipeline());
    let mut project = session.project(&pipeline)?;
    let is_search = project.pipeline.search.is_some();
    if is_search && pipeline.selection.stages.is_empty() && saved.is_none() {
        // The search says what runs.
        project.chosen.clear();
        project.trials = Trials::default();
    } else if is_search {
        output::say("note: named stages run with the file's own settings, without the search");
    }
    if args.no_run_stages {
        refuse_programs(&project)?;
    }
    let executors = executors::requested(&project, args.executor.as_deref())?;
    marks::check(&project.runs, args.name.as_deref(), &args.tag)?;
    let unrecorded = unrecorded(session, &project)?;
    let runs = unrecorded
        .as_ref()
        .map_or(project.runs.as_path(), TempDir::path)
        .to_owned();
    let guard = project.store.guard()?;
    let run = history::new_run(&runs)?;
    let mut options = project.options(session, &run);
    options.logs = runs.join(&run).join("logs");
    options.night = pipeline.selection.settings.night.clone();
    options.jobs = args.jobs.map_or(options.jobs, |jobs| jobs as usize);
    options.keep_going = args.keep_going;
    options.verify_inputs = args.verify_inputs;
    options.isolation = args.isolation.unwrap_or(options.isolation);
    executors::set(&mut options, args.executor.as_deref(), &executors);
    if let Some(share) = args.check_determinism {
        options.check = sample(&project.chosen, share, &run);
    }
    if let Some(saved) = &saved {
        options.planned = saved.check(&project, &options)?;
    }
    let control = caller.control.map_or_else(interrupt::control, Ok)?;
    let mut writer = history::Writer::create(&runs, &run)?;
    marks::begin(&runs, &run, args.name.as_deref(), &args.tag)?;
    (caller.started)(&run)?;
    writer.pipeline(ResolvedPipeline::new(&project.pipeline, &project.chosen));
    let prepared = Prepared {
        project,
        run,
        runs,
        unrecorded,
        options,
        executors,
        control,
        _guard: guard,
    };
    Ok((prepared, writer))
}

/// A run whose stages have ended.
struct Executed {
    /// The run; `None` if it has no events.
    run: Option<Run>,
    summary: Summary,
    /// The number of damaged files found in the store.
    damaged: usize,
    /// The outcome of the search, if the run is one.
    searched: Option<Searched>,
    verdict: Option<Verdict>,
    tracking: Option<Tracking>,
    /// The result of printing to standard output.
    printed: Result<(), Failure>,
}

/// Runs the stages, and the check that follows them.
fn execute(
    session: &Session,
    args: &ExecArgs,
    prepared: &Prepared,
    mut writer: history::Writer,
) -> Result<Executed, Failure> {
    let Prepared { project, run, .. } = prepared;
    let (options, control) = (&prepared.options, &prepared.control);
    let executor = WorkerProcess::new(&project.store, crate::registry::FILE_TYPES)
        .map_err(|err| Failure::caused("cannot determine the path of this program", &err))?;
    let others = executors::start(project, &prepared.executors)?;
    let tracking = Tracking::start(&project.pipeline.track, &prepared.runs, run, &mut output::warn);
    let live = std::io::stderr().is_terminal() && std::env::var("TERM").is_ok_and(|term| term != "dumb");
    let colour = live && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut terminal = Terminal::new(session.verbosity, live, colour);
    let mut lines = session.json.then(|| JsonLines::new(std::io::stdout()));
    let mut metrics = Metrics::new(writer.dir(), &project.pipeline.params, &project.pipeline.nodes);
    let home = project.runs.parent().filter(|_| prepared.unrecorded.is_none());
    let night = args.selection.settings.night.as_deref();
    let night = night.and_then(|night| night.get(..10)?.parse().ok());
    let root = home.unwrap_or(&prepared.runs);
    let is_search = project.pipeline.search.is_some() && project.chosen.is_empty();
    let planned = is_search.then(|| Planned::new(root, night));
    let load = |further: &[String]| {
        let given = given(args);
        let mut settings = given.selection.settings;
        settings.set.extend_from_slice(further);
        session.load(&given.pipeline, &settings)
    };
    let driver = |planned: Planned| {
        Driver::new(search::Setup {
            home: root.to_owned(),
            run: run.clone(),
            store: project.store.clone(),
            base: Pipeline::clone(&project.pipeline),
            set: args.selection.settings.set.clone(),
            load: &load,
            kinds: crate::registry::kinds(),
            planned,
        })
    };
    let mut driver = planned.clone().map(driver).transpose()?;
    let mut tried = home.map(|home| Recorder::new(home, run, &project.pipeline, &project.trials, planned));
    let mut reporters: Vec<&mut (dyn Reporter + Send)> = vec![&mut writer, &mut metrics, &mut terminal];
    reporters.extend(tried.as_mut().map(|tried| tried as &mut (dyn Reporter + Send)));
    reporters.extend(lines.as_mut().map(|lines| lines as &mut (dyn Reporter + Send)));
    let outcome = run_pipeline(
        &runner_engine::Run {
            pipeline: &project.pipeline,
            chosen: &project.chosen,
            store: &project.store,
            executor: &executor,
            others: &others,
            options,
            control,
        },
        driver.as_mut().map(|driver| driver as &mut dyn Grow),
        &mut reporters,
    )?;
    let searched = driver.map(Driver::conclude).transpose()?;
    let is_checked = args.check == Some(RunCheck::Lookahead) && outcome.summary.exit_code() == exit::DONE;
    let check = || check::after_run(session, project, options, control);
    let verdict = is_checked.then(check).transpose()?;
    if let Some(verdict) = &verdict {
        let event = Stamped::now(Event::LookaheadChecked {
            run: run.clone(),
            verdict: check::stored(verdict),
        });
        let mut reporters: Vec<&mut dyn Reporter> = vec![&mut writer];
        reporters.extend(lines.as_mut().map(|lines| lines as &mut dyn Reporter));
        for reporter in reporters {
            reporter.report(&event);
            reporter.flush();
        }
    }
    writer.check()?;
    tried.as_mut().map_or(Ok(()), Recorder::check)?;
    Ok(Executed {
        run: writer.finish(),
        summary: outcome.summary,
        damaged: outcome.damaged,
        searched,
        verdict,
        tracking,
        printed: lines
            .map_or(Ok(()), JsonLines::finish)
            .map_err(|err| output::unwritable(&err)),
    })
}

/// Concludes a run in the history, reports it, and prints its results if `shown`, the time at which the
/// command began, is given.
fn conclude(
    session: &Session,
    args: &ExecArgs,
    prepared: &Prepared,
    executed: Executed,
    shown: Option<Instant>,
) -> Result<(u8, Option<Run>), Failure> {
    let Prepared { project, runs, .. } = prepared;
    let (summary, verdict, mut printed) = (executed.summary, executed.verdict, executed.printed);
    let Some(ended) = executed.run else {
        return Ok((summary.exit_code(), None));
    };
    let is_recorded = prepared.unrecorded.is_none();
    let pipeline = summary.grown.as_ref().unwrap_or(&project.pipeline);
    let concluded = is_recorded.then(|| policies::conclude(pipeline, &ended, &project.store));
    let (registered, judged) = concluded.map_or((Ok(Vec::new()), Ok(None)), |concluded| {
        (concluded.registered, concluded.judged)
    });
    let judged = judged.map(|judged| project.pipeline.promote.as_ref().zip(judged));
    // For display, only small artifacts are fetched from a remote store, and never tables.
    let store = project.store.with_fetch_limit(SHOWN);
    let page = page(&ended, &summary, args.report || verdict.is_some(), runs, &store);
    tell_damage(executed.damaged);
    let mut print = |text: &str| {
        let before = std::mem::replace(&mut printed, Ok(()));
        printed = before.and(output::print(text));
    };
    if shown.is_some() {
        let mut results = match &executed.searched {
            Some(searched) => {
                let shown = without_trials(&ended);
                table(&shown) + &results_table(&shown, &store) + &searched.text
            }
            None => table(&ended) + &results_table(&ended, &store),
        };
        results.extend(verdict.as_ref().map(check::page));
        results.extend(registered.iter().map(|registered| as_text(registered)));
        let judged = judged.iter().flatten();
        results.extend(judged.map(|(promote, judged)| verdict_text(promote, judged)));
        print(&results);
    }
    if session.verbosity == Verbosity::Verbose
        && let Some(bytes) = peak_memory()
    {
        output::say(&format!("peak memory of the engine in bytes: {bytes}"));
    }
    let untracked = executed.tracking.map(|tracking| tracking.finish(&ended, &store));
    for line in untracked.into_iter().flatten() {
        output::warn(&format!("{line}\n   hint: `runner track {}` writes it later", ended.id));
    }
    tell(project, &ended, judged.as_ref().ok().and_then(Option::as_ref), &store);
    let uploaded = remote::finish_uploads(session, &project.store, &ended.id, &prepared.control);
    if let Some(began) = shown {
        let page = is_recorded.then_some(&page);
        print(&last_lines(session, &ended, &summary, began.elapsed(), page));
    }
    uploaded?;
    if let Some(failure) = executed.searched.and_then(|searched| searched.failure) {
        return Err(failure);
    }
    let code = match (summary.exit_code(), &verdict) {
        (exit::DONE, Some(verdict)) => verdict.verdict.exit_code(),
        (code, _) => code,
    };
    // The run's own failure takes precedence.
    let all = printed
        .and(page.map(drop))
        .and(registered.map(drop))
        .and(judged.map(drop));
    match all {
        Err(err) if code == exit::DONE => Err(err),
        _ => Ok((code, Some(ended))),
    }
}

/// Writes the page of a run if it is asked for, or within a share of the run's time if a stage ran.
fn page(
    run: &Run,
    summary: &Summary,
    is_wanted: bool,
    runs: &Path,
    store: &Store,
) -> Result<Option<PathBuf>, Failure> {
    let budget = Duration::from_secs_f64(summary.seconds * REPORT_SHARE);
    match (is_wanted, summary.count(StageStatus::Ran)) {
        (true, _) => report::write(run, runs, store).map(Some),
        (false, 1..) => report::write_within(run, runs, store, budget),
        (false, 0) => Ok(None),
    }
}

/// Warns about damaged files of the store.
fn tell_damage(damaged: usize) {
    if damaged > 0 {
        output::say(&format!(
            "warning: {} of the store were damaged and are computed again when needed\n   hint: `runner \
            cache verify` checks the whole store; the disk or the memory may be failing",
            text::count(damaged, "file")
        ));
    }
}

/// Sends the messages of `notify:`.
fn tell(project: &Project, run: &Run, judged: Option<&(&Promote, Judged)>, store: &Store) {
    let all = &project.pipeline.notify;
    if all.is_empty() {
        return;
    }
    let moved = judged.filter(|(_, judged)| judged.moved);
    let promotion = moved.map(|(promote, judged)| verdict_text(promote, judged).trim_end().to_owned());
    for line in notify::send(all, &Message::on_run(run, promotion, store)) {
        output::say(&format!("warning: {line}"));
    }
}

/// Creates a temporary directory for the files of a run that cannot be recorded, and prints a note. A user
/// with only read permission for the store can run what is cached in it.
fn unrecorded(session: &Session, project: &Project) -> Result<Option<TempDir>, Failure> {
    if is_writable(&project.runs) {
        return Ok(None);
    }
    if session.verbosity > Verbosity::Quiet {
        output::say(&format!(
            "note: the run is not recorded: `{}` cannot be written\n   hint: set `RUNNER_HOME` to a \
             directory of your own, and share results \
             by a remote store (`remote:` in its configuration)",
            project.runs.display()
        ));
    }
    let dir = temporary_directory()?;
    Ok(Some(dir))
}

/// A line for each policy that a run registered.
fn as_text(registered: &[Registered]) -> String {
    let line = |Registered { policy, version }: &Registered| {
        format!("policy {policy}@{}: {}\n", version.version, version.digest.short())
    };
    registered.iter().map(line).collect()
}

/// A line for the verdict on a policy.
fn verdict_text(promote: &Promote, judged: &Judged) -> String {
    let alias = format!("{}@{}", promote.policy, promote.alias);
    let outcome = match (judged.moved, judged.against) {
        (true, Some(before)) if let Some(tested) = &judged.forward => {
            format!("{alias} is now {}, was {before}, by forward evidence", tested.candidate)
        }
        (true, None) => format!("{alias} is now {}, the first", judged.version),
        (true, Some(before)) => format!("{alias} is now {}, was {before}", judged.version),
        (false, Some(against)) => format!("{alias} stays {against}"),
        (false, None) => format!("{alias} stays"),
    };
    let tested = judged.forward.as_ref().map(|tested| {
        format!(
            "\ncandidate {}@{}: {} forward nights, e-value {} for better and {} for worse; {}",
            promote.policy,
            tested.candidate,
            tested.nights,
            text::figure(tested.better),
            text::figure(tested.worse),
            tested.outcome.name().replace('_', " ")
        )
    });
    format!(
        "verdict on {}@{}: {}; {outcome}{}\n",
        promote.policy,
        judged.version,
        judged.verdict.name(),
        tested.unwrap_or_default()
    )
}

/// Draws a random share of the nodes, at least one, seeded with the run's name.
fn sample(nodes: &[usize], share: f64, run: &str) -> BTreeSet<usize> {
    let rank = |node: &usize| *blake3::hash(format!("{run} {node}").as_bytes()).as_bytes();
    let mut ranked = nodes.to_vec();
    ranked.sort_by_key(rank);
    ranked.truncate((nodes.len() as f64 * share).ceil() as usize);
    ranked.into_iter().collect()
}

/// Rejects a pipeline with stages that would run an external program.
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
                "`{first}`{more} would run an external program, which `--no-run-stages` refuses"
            ))
            .hint("select stages that do not need them, or review the `run:` lines and omit the option"))
        }
    }
}

/// A run without the stages of a search's trials, but for those that the best one shares.
fn without_trials(run: &Run) -> Run {
    let mut run = run.clone();
    run.stages.retain(|stage| !stage.point.contains_key("trial"));
    run
}

/// The maximum number of stages in the table at a run's end.
const MOST_STAGES: usize = 24;

/// The stages of a run and their final statuses: all, or those of many that failed, were skipped and took
/// longest.
fn table(run: &Run) -> String {
    let mut stages: Vec<&StageRun> = run.stages.iter().collect();
    if stages.len() > MOST_STAGES {
        let rank = |stage: &StageRun| match stage.status {
            Some(StageStatus::Failed) => 0,
            Some(StageStatus::Ran) => 1,
            _ => 2,
        };
        let mut ranked = stages.clone();
        ranked.sort_by(|a, b| rank(a).cmp(&rank(b)).then(b.seconds.total_cmp(&a.seconds)));
        ranked.truncate(MOST_STAGES);
        stages.retain(|stage| ranked.iter().any(|kept| kept.id == stage.id));
    }
    let more = match run.stages.len() - stages.len() {
        0 => String::new(),
        more => format!(
            "and {}: `runner show {}` lists them\n",
            text::count(more, "more stage"),
            run.id
        ),
    };
    let rows: Vec<Vec<String>> = stages
        .into_iter()
        .map(|stage| {
            let status = stage.status.unwrap_or(StageStatus::Skipped);
            let seconds = match status {
                StageStatus::Cached => stage.computed_seconds.unwrap_or(0.0),
                _ => stage.seconds,
            };
            vec![
                stage.id.clone(),
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
    text::table(&["stage", "status", "time", "memory", "key"], &rows, &[2, 3]) + &more + "\n"
}

/// The outcome, the elapsed time of the command, and what to look at next: the log of what failed, or the
/// report.
fn last_lines(
    session: &Session,
    run: &Run,
    summary: &Summary,
    took: Duration,
    page: Option<&Result<Option<PathBuf>, Failure>>,
) -> String {
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
    let mut out = format!(
        "\nrun {}: {} in {} ({})\n",
        run.id,
        summary.status.name(),
        text::duration(took.as_secs_f64()),
        counts.join(", ")
    );
    let is_failed = |stage: &&StageRun| stage.status == Some(StageStatus::Failed);
    if page.is_some()
        && let Some(failed) = run.stages.iter().find(is_failed)
    {
        out.push_str(&format!(
            "log: `runner logs {}/{}` shows what it wrote\n",
            run.id, failed.id
        ));
    }
    match page {
        Some(Ok(Some(page))) => {
            let page = page.strip_prefix(&session.current).unwrap_or(page);
            out.push_str(&format!("report: {}\n", page.display()));
        }
        Some(Ok(None)) => {
            let why = match summary.count(StageStatus::Ran) {
                0 => "nothing new was computed",
                _ => "writing it would take long beside the run",
            };
            out.push_str(&format!(
                "report: not written, as {why}; `runner report latest` writes it\n"
            ));
        }
        Some(Err(_)) | None => {}
    }
    out
}
