//! The remote store at the command line: `cache push`, `cache pull`, and what a run says of it at its end.

use crate::args::{PipelineArgs, PullArgs, PushArgs, Selection, Settings};
use crate::session::Session;
use crate::{config, interrupt, output};
use cache::{Remote, RemoteSettings, Store, Traffic, Upload};
use runner_engine::{self as engine, Control, Failure, Prediction, exit, text};
use runner_history as history;
use runner_report::reporter::Verbosity;
use serde_json::json;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// So long a remote may fail to answer before a command that is about nothing else gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a progress line is written.
const OFTEN: Duration = Duration::from_millis(200);

/// A line on standard error that is written over and over, on a terminal.
#[derive(Clone)]
struct ProgressLine {
    last: Option<Arc<Mutex<Instant>>>,
}

impl ProgressLine {
    fn new(session: &Session) -> Self {
        let shown = session.verbosity != Verbosity::Quiet && std::io::stderr().is_terminal();
        Self {
            last: shown.then(|| Arc::new(Mutex::new(Instant::now()))),
        }
    }

    fn show(&self, line: impl FnOnce() -> String) {
        let Some(Ok(mut last)) = self.last.as_ref().map(|last| last.try_lock()) else {
            return;
        };
        if last.elapsed() > OFTEN {
            *last = Instant::now();
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", line());
        }
    }

    fn clear(&self) {
        if self.last.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// Waits at the end of a run for its uploads, and says what there is to say of the remote store.
pub(crate) fn settle(session: &Session, store: &Store, run: &str, control: &Control) -> Result<(), Failure> {
    let Some(remote) = store.remote() else { return Ok(()) };
    let line = ProgressLine::new(session);
    let limit = remote.settings().upload_time;
    let drained = remote.drain(
        limit,
        || control.cancel.is_cancelled(),
        |progress| {
            line.show(|| {
                let (done, total) = (text::size(progress.done), text::size(progress.total));
                let records = usize::try_from(progress.records).unwrap_or(usize::MAX);
                format!("uploading {done} of {total}, {} to go", text::count(records, "record"))
            });
        },
    );
    line.clear();
    remote.save(store)?;
    warn(remote);
    if drained.out_of_time {
        let _ = writeln!(
            std::io::stderr(),
            "warning: {} not uploaded to the remote {}: there was no time left\n   hint: `runner cache push {run}` uploads them; `upload_time:` in the configuration gives more time",
            text::count(usize::try_from(drained.left).unwrap_or(usize::MAX), "record"),
            remote.shown()
        );
    }
    let traffic = remote.traffic();
    if session.verbosity == Verbosity::Verbose && traffic != Traffic::default() {
        let _ = writeln!(
            std::io::stderr(),
            "remote: {} fetched ({}), {} uploaded ({})",
            count(traffic.fetched, "blob"),
            text::size(traffic.fetched_bytes),
            count(traffic.uploaded, "blob"),
            text::size(traffic.uploaded_bytes)
        );
    }
    Ok(())
}

fn count(n: u64, what: &str) -> String {
    text::count(usize::try_from(n).unwrap_or(usize::MAX), what)
}

/// Writes what people should know of the remote store to standard error.
pub(crate) fn warn(remote: &Remote) {
    for warning in remote.take_warnings() {
        let _ = writeln!(std::io::stderr(), "warning: {warning}");
    }
}

/// The store of a home, with more patience for its remote. Without one the command has nothing to do.
fn patient(store: Store) -> Result<Store, Failure> {
    let Some(remote) = store.remote() else {
        return Err(Failure::usage("no remote store is configured").hint(format!(
            "write `remote: {{ url: s3://bucket/prefix }}` to `{}`, or set {}; a folder will do: `url: /shared/runner`",
            store.root().join(config::FILE).display(),
            config::VARIABLE
        )));
    };
    let settings = RemoteSettings {
        timeout: remote.settings().timeout.max(PATIENCE),
        ..remote.settings().clone()
    };
    Ok(store.with_remote(settings)?)
}

/// Watches a transfer of `total` bytes, which may be known later.
fn watch(remote: &Remote, line: &ProgressLine, doing: &'static str, total: &Arc<AtomicU64>) {
    let (line, total) = (line.clone(), total.clone());
    let began = Instant::now();
    remote.watch(move |traffic| {
        line.show(|| {
            let done = traffic.moved_bytes;
            let total = total.load(Ordering::Relaxed).max(done);
            let rate = done as f64 / began.elapsed().as_secs_f64().max(0.001);
            format!(
                "{doing} {} of {}, {}/s",
                text::size(done),
                text::size(total),
                text::size(rate as u64)
            )
        });
    });
}

/// The actions of a run of this home.
fn of_run(runs: &Path, name: &str) -> Result<Vec<Upload>, Failure> {
    let id = history::resolve(runs, name)?;
    let run = history::load(runs, &id)?;
    let ended_well = |stage: &&history::StageRun| !stage.outputs.is_empty();
    let mut records: Vec<Upload> = run
        .stages
        .iter()
        .filter(ended_well)
        .filter_map(|stage| stage.key.map(Upload::Action))
        .collect();
    records.sort();
    records.dedup();
    Ok(records)
}

fn code(remote: &Remote, failed: u64, stop: &AtomicBool) -> u8 {
    if stop.load(Ordering::Relaxed) {
        exit::INTERRUPTED
    } else if failed > 0 || remote.is_aside() {
        exit::MACHINE_FAILED
    } else {
        exit::DONE
    }
}

pub(crate) fn push(session: &Session, args: &PushArgs) -> Result<u8, Failure> {
    let archive = session.archive()?;
    let store = patient(archive.store)?;
    let Some(remote) = store.remote() else {
        return Ok(exit::DONE);
    };
    let _guard = store.guard()?;
    let records = if args.all {
        store.records()?
    } else {
        of_run(&archive.runs, args.run.as_deref().unwrap_or("latest"))?
    };
    let stop = interrupt::flag()?;
    let (line, total) = (ProgressLine::new(session), Arc::default());
    watch(remote, &line, "uploading", &total);
    let report = store.push(&records, &stop, |bytes| total.store(bytes, Ordering::Relaxed))?;
    line.clear();
    warn(remote);
    if session.json {
        let mut value = json!(report);
        value["remote"] = json!(remote.shown());
        output::print_json(&value)?;
    } else {
        let mut out = format!(
            "{} in {} ({} before); {} uploaded ({})\n",
            count(report.records, "record"),
            remote.shown(),
            report.there_before,
            count(report.blobs, "blob"),
            text::size(report.bytes)
        );
        if report.incomplete > 0 {
            out.push_str(&format!(
                "{} left out: not here as a whole\n",
                count(report.incomplete, "record")
            ));
        }
        if report.failed > 0 {
            out.push_str(&format!("{} not uploaded\n", count(report.failed, "record")));
        }
        output::print(&out)?;
    }
    Ok(code(remote, report.failed, &stop))
}

pub(crate) fn pull(session: &Session, args: &PullArgs) -> Result<u8, Failure> {
    let mut sets: Vec<(Store, Vec<Upload>)> = Vec::new();
    let stop = interrupt::flag()?;
    if args.all {
        let store = patient(session.store(&session.home(None))?)?;
        let records = store.records_there()?;
        if let (None, Some(remote)) = (&records, store.remote()) {
            warn(remote);
            return Err(
                Failure::machine(format!("the remote {} does not say what it has", remote.shown()))
                    .hint("a web server cannot be asked: name runs or pipelines"),
            );
        }
        sets.push((store, records.unwrap_or_default()));
    } else {
        let latest = ["latest".to_owned()];
        let names: &[String] = if args.what.is_empty() { &latest } else { &args.what };
        for name in names {
            let file = session.current.join(name);
            if file.is_file() {
                sets.push(of_pipeline(session, Path::new(name), &args.settings)?);
            } else if name.contains(['/', '.']) {
                return Err(Failure::usage(format!("there is no pipeline file `{name}`"))
                    .hint("give a pipeline file, or a run: `runner runs` lists them"));
            } else {
                let archive = session.archive()?;
                sets.push((patient(archive.store)?, of_run(&archive.runs, name)?));
            }
        }
    }
    let (mut failed, mut code_of_all) = (0, exit::DONE);
    for (store, records) in sets {
        let Some(remote) = store.remote() else { continue };
        let _guard = store.guard()?;
        let (line, total) = (ProgressLine::new(session), Arc::default());
        watch(remote, &line, "fetching", &total);
        let report = store.pull(&records, &stop, |bytes| total.store(bytes, Ordering::Relaxed))?;
        line.clear();
        store.flush()?;
        remote.save(&store)?;
        warn(remote);
        if session.json {
            let mut value = json!(report);
            value["remote"] = json!(remote.shown());
            output::print_json(&value)?;
        } else {
            let mut out = format!(
                "{} here; {} fetched ({}) from {}\n",
                count(report.records, "record"),
                count(report.blobs, "blob"),
                text::size(report.bytes),
                remote.shown()
            );
            if report.unknown > 0 {
                out.push_str(&format!(
                    "{} neither here nor there as a whole\n",
                    count(report.unknown, "record")
                ));
            }
            if report.failed > 0 {
                out.push_str(&format!("{} not fetched as a whole\n", count(report.failed, "record")));
            }
            output::print(&out)?;
        }
        failed += report.failed;
        code_of_all = code_of_all.max(code(remote, failed, &stop));
    }
    Ok(code_of_all)
}

/// The actions of a pipeline that are cached, here or in the remote.
fn of_pipeline(session: &Session, file: &Path, settings: &Settings) -> Result<(Store, Vec<Upload>), Failure> {
    let mut project = session.project(&PipelineArgs {
        pipeline: file.to_owned(),
        selection: Selection {
            settings: settings.clone(),
            ..Selection::default()
        },
    })?;
    project.store = patient(project.store)?;
    let options = project.options(session, "");
    let planned = engine::plan(&project.pipeline, &project.chosen, &project.store, &options)?;
    let cached = planned.iter().filter(|stage| stage.prediction == Prediction::Cached);
    let records = cached.filter_map(|stage| stage.key.map(Upload::Action)).collect();
    Ok((project.store, records))
}
