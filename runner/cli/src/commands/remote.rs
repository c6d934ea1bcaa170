//! The remote store at the command line: `cache push`, `cache pull`, and the wait for uploads at the end of a
//! run.

use super::remote_documents::{self, Transferred};
use crate::complete::{candidates, completed};
use crate::project::{PipelineArgs, Selection, Settings};
use crate::session::Session;
use crate::{config, interrupt, output};
use cache::{RecordId, Store, TransferStats, Upstream};
use cache_remote::{Remote, RemoteSettings};
use clap::Args;
use runner_engine::{self as engine, Control, Failure, Prediction, exit, text};
use runner_history as history;
use runner_report::reporter::Verbosity;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Upload results of runs that are missing in the remote store.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner cache push                 # the last run
  runner cache push 20261120T213045-k3f9
  runner cache push --all           # all actions and memos that are here")]
pub(crate) struct PushArgs {
    /// A run: its id, a unique prefix or suffix of it, its name, `latest`, or `latest~1` [default: latest].
    #[arg(conflicts_with = "all", add = completed(candidates::runs))]
    pub run: Option<String>,
    /// Upload all actions and memos of the store.
    #[arg(long)]
    pub all: bool,
}

/// Download results that runs or pipelines need from the remote store.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner cache pull pipelines/rppo_options.yaml
  runner cache pull latest
  runner cache pull --all           # everything that the remote has")]
pub(crate) struct PullArgs {
    /// Runs, or pipeline files, whose cached results are downloaded [default: latest].
    #[arg(value_name = "RUN|PIPELINE", conflicts_with = "all", add = completed(candidates::runs))]
    pub what: Vec<String>,
    #[command(flatten)]
    pub settings: Settings,
    /// Download everything in the remote store.
    #[arg(long, conflicts_with_all = ["set", "profile"])]
    pub all: bool,
}

/// The minimum timeout of a command that only transfers.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(30);

/// The interval between two updates of a progress line.
const INTERVAL: Duration = Duration::from_millis(200);

/// A progress line on standard error, on a terminal only.
#[derive(Clone)]
pub(super) struct ProgressLine {
    last: Option<Arc<Mutex<Instant>>>,
}

impl ProgressLine {
    pub(super) fn new(session: &Session) -> Self {
        let shown = session.verbosity != Verbosity::Quiet && std::io::stderr().is_terminal();
        Self {
            last: shown.then(|| Arc::new(Mutex::new(Instant::now()))),
        }
    }

    pub(super) fn show(&self, line: impl FnOnce() -> String) {
        let Some(Ok(mut last)) = self.last.as_ref().map(|last| last.try_lock()) else {
            return;
        };
        if last.elapsed() > INTERVAL {
            *last = Instant::now();
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", line());
        }
    }

    pub(super) fn clear(&self) {
        if self.last.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// Waits at the end of a run for the upload queue, and reports warnings and transfers.
pub(crate) fn finish_uploads(
    session: &Session,
    store: &Store,
    run: &str,
    control: &Control,
) -> Result<(), Failure> {
    let Some(remote) = store.upstream() else { return Ok(()) };
    let line = ProgressLine::new(session);
    let drained = remote.drain(&|| control.cancel.is_cancelled(), &mut |progress| {
        line.show(|| {
            let (done, total) = (text::size(progress.done), text::size(progress.total));
            format!(
                "uploading {done} of {total}, {} left",
                text::count(progress.records, "record")
            )
        });
    });
    line.clear();
    remote.save()?;
    warn(remote);
    if drained.out_of_time {
        output::say(&format!(
            "warning: {} not uploaded to the remote {} in time\n   hint: `runner cache push {run}` uploads \
            them; `upload_time:` in the configuration extends the time limit",
            text::count(drained.left, "record"),
            remote.name()
        ));
    }
    let stats = remote.stats();
    if session.verbosity == Verbosity::Verbose && stats != TransferStats::default() {
        output::say(&format!(
            "remote: {} fetched ({}), {} uploaded ({})",
            text::count(stats.fetched, "blob"),
            text::size(stats.fetched_bytes),
            text::count(stats.uploaded, "blob"),
            text::size(stats.uploaded_bytes)
        ));
    }
    Ok(())
}

/// Writes the warnings of the remote store to standard error.
pub(crate) fn warn(remote: &dyn Upstream) {
    for warning in remote.take_warnings() {
        output::say(&format!("warning: {warning}"));
    }
}

/// The store of a home with its remote, which is given a longer timeout. Fails if no remote is configured.
fn with_long_timeout(session: &Session, store: Store) -> Result<(Store, Remote), Failure> {
    let Some(settings) = session.remote_settings(store.root())? else {
        return Err(Failure::usage("no remote store is configured").hint(format!(
            "write `remote: {{ url: s3://bucket/prefix, sign_key_file: sign.key }}` to `{}`, or set {}; a \
            directory will do: `url: /shared/runner`",
            store.root().join(config::FILE).display(),
            config::VARIABLE
        )));
    };
    let settings = RemoteSettings {
        timeout: settings.timeout.max(TRANSFER_TIMEOUT),
        ..settings
    };
    let remote = Remote::new(settings, &store)?;
    Ok((remote.attach(store), remote))
}

/// Shows the progress of a transfer of `total` bytes; `total` is 0 until it is known.
fn watch(remote: &Remote, line: &ProgressLine, doing: &'static str, total: &Arc<AtomicU64>) {
    let (line, total) = (line.clone(), total.clone());
    let began = Instant::now();
    remote.watch(Box::new(move |stats| {
        line.show(|| {
            let done = stats.moved_bytes;
            let total = total.load(Ordering::Relaxed).max(done);
            let rate = done as f64 / began.elapsed().as_secs_f64().max(0.001);
            format!(
                "{doing} {} of {}, {}/s",
                text::size(done),
                text::size(total),
                text::size(rate as u64)
            )
        });
    }));
}

/// The actions of a run in this home.
fn run_records(runs: &Path, name: &str) -> Result<Vec<RecordId>, Failure> {
    let id = history::resolve(runs, name)?;
    let run = history::load(runs, &id)?;
    let ended_well = |stage: &&history::StageRun| !stage.outputs.is_empty();
    let stages = run.stages.iter().filter(ended_well);
    Ok(distinct(stages.filter_map(|stage| stage.key.map(RecordId::Action))))
}

/// The records in order, each once.
fn distinct(records: impl IntoIterator<Item = RecordId>) -> Vec<RecordId> {
    records.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

fn code(remote: &Remote, failed: u64, stop: &AtomicBool) -> u8 {
    if stop.load(Ordering::Relaxed) {
        exit::INTERRUPTED
    } else if failed > 0 || !remote.is_available() {
        exit::MACHINE_FAILED
    } else {
        exit::DONE
    }
}

pub(crate) fn push(session: &Session, args: &PushArgs) -> Result<u8, Failure> {
    let archive = session.archive()?;
    let (store, remote) = with_long_timeout(session, archive.store)?;
    let _guard = store.guard()?;
    let records = if args.all {
        store.records()?
    } else {
        run_records(&archive.runs, args.run.as_deref().unwrap_or("latest"))?
    };
    let records = distinct(remote_documents::with_policies(records, &store)?);
    let stop = interrupt::flag()?;
    let (line, total) = (ProgressLine::new(session), Arc::default());
    watch(&remote, &line, "uploading", &total);
    let report = remote.push(&records, &stop, |bytes| total.store(bytes, Ordering::Relaxed))?;
    line.clear();
    let documents = remote_documents::push(store.root(), &remote)?;
    warn(&remote);
    let head = format!(
        "{} in {} ({} before); {} uploaded ({})\n",
        text::count(report.records, "record"),
        remote.name(),
        report.there_before,
        text::count(report.blobs, "blob"),
        text::size(report.bytes)
    );
    let rest = [
        (report.incomplete, "skipped: a blob is missing in the local store"),
        (
            report.of_others,
            "of signers who are not trusted here, and not replaced",
        ),
        (report.failed, "not uploaded"),
    ];
    print_outcome(session, &remote, (json!(report), head, &rest), &documents)?;
    Ok(code(&remote, report.failed, &stop))
}

pub(crate) fn pull(session: &Session, args: &PullArgs) -> Result<u8, Failure> {
    let mut sets: Vec<(Store, Remote, Vec<RecordId>)> = Vec::new();
    let stop = interrupt::flag()?;
    if args.all {
        let (store, remote) = with_long_timeout(session, session.store(&session.home(None))?)?;
        let Some(records) = remote.records()? else {
            warn(&remote);
            return Err(
                Failure::machine(format!("the remote {} cannot list its records", remote.name()))
                    .hint("a web server has no listing: name runs or pipelines"),
            );
        };
        sets.push((store, remote, records));
    } else {
        let latest = ["latest".to_owned()];
        let names: &[String] = if args.what.is_empty() { &latest } else { &args.what };
        for name in names {
            let file = session.current.join(name);
            if file.is_file() {
                sets.push(pipeline_records(session, Path::new(name), &args.settings)?);
            } else if name.contains(['/', '.']) {
                return Err(Failure::usage(format!("there is no pipeline file `{name}`"))
                    .hint("give a pipeline file, or a run: `runner runs` lists them"));
            } else {
                let archive = session.archive()?;
                let (store, remote) = with_long_timeout(session, archive.store)?;
                sets.push((store, remote, run_records(&archive.runs, name)?));
            }
        }
    }
    let (mut failed, mut code_of_all) = (0, exit::DONE);
    for (store, remote, mut records) in sets {
        let _guard = store.guard()?;
        let documents = remote_documents::pull(store.root(), &remote, &mut records)?;
        records = distinct(records);
        let (line, total) = (ProgressLine::new(session), Arc::default());
        watch(&remote, &line, "fetching", &total);
        let report = remote.pull(&records, &stop, |bytes| total.store(bytes, Ordering::Relaxed))?;
        line.clear();
        store.flush()?;
        remote.save()?;
        warn(&remote);
        let head = format!(
            "{} here; {} fetched ({}) from {}\n",
            text::count(report.records, "record"),
            text::count(report.blobs, "blob"),
            text::size(report.bytes),
            remote.name()
        );
        let rest = [
            (report.unknown, "unknown: a blob is missing in both stores"),
            (report.failed, "incomplete: a blob could not be fetched"),
        ];
        print_outcome(session, &remote, (json!(report), head, &rest), &documents)?;
        failed += report.failed;
        code_of_all = code_of_all.max(code(&remote, failed, &stop));
    }
    Ok(code_of_all)
}

/// Prints the outcome of a transfer: the report as JSON, or its first line and the records that are left.
fn print_outcome(
    session: &Session,
    remote: &Remote,
    (mut report, mut out, rest): (serde_json::Value, String, &[(u64, &str)]),
    documents: &Transferred,
) -> Result<(), Failure> {
    if session.json {
        report["remote"] = json!(remote.name());
        for (kind, outcomes) in documents.kinds() {
            if !outcomes.is_empty() {
                report[kind] = json!(outcomes);
            }
        }
        return output::print_json(&report);
    }
    for (n, what) in rest.iter().filter(|(n, _)| *n > 0) {
        out.push_str(&format!("{} {what}\n", text::count(*n, "record")));
    }
    out.push_str(&documents.text());
    output::print(&out)
}

/// The cached actions of a pipeline, in the local store or the remote.
fn pipeline_records(
    session: &Session,
    file: &Path,
    settings: &Settings,
) -> Result<(Store, Remote, Vec<RecordId>), Failure> {
    let mut project = session.project(&PipelineArgs {
        pipeline: file.to_owned(),
        selection: Selection {
            settings: settings.clone(),
            ..Selection::default()
        },
    })?;
    let (store, remote) = with_long_timeout(session, project.store)?;
    project.store = store;
    let options = project.options(session, "");
    let planned = engine::plan(&project.pipeline, &project.chosen, &project.store, &options)?;
    let cached = planned.iter().filter(|stage| stage.prediction == Prediction::Cached);
    let records = cached.filter_map(|stage| stage.key.map(RecordId::Action)).collect();
    Ok((project.store, remote, records))
}
