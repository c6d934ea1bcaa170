//! `runner schedule run-due`.

use super::entry::{Entry as ScheduledEntry, ScheduledArgs, clock, entries};
use super::show::{due_json, local, warn_beyond};
use crate::commands::exec::{self, Caller, ExecArgs};
use crate::commands::paper::night;
use crate::commands::policy::act::{self as policy_act, PolicyActArgs};
use crate::project::{Selection, Settings};
use crate::session::Session;
use crate::values::age;
use crate::{interrupt, output};
use chrono::{DateTime, Utc};
use clap::Args;
use runner_acting::Decision;
use runner_acting::paper::{Files, Nightly};
use runner_engine::{Control, DecisionEvent, Failure, RunStatus, exit, no_thread, text};
use runner_history::paper::{self as accounts, Entry, Ledger};
use runner_history::policies::{PolicyRef, Registry};
use runner_history::schedule::{
    Awaited, Backlog, Due, DueTimes, Night, NightLog, NightStatus, Outcome, Ran, RunEnd, Scheduler, Work,
    backlog,
};
use runner_history::{self as history, AllMarks};
use runner_pipeline::{Then, WaitFor, Work as StageWork, load};
use runner_report::notify::{self, Message};
use runner_report::reporter::Verbosity;
use serde_json::json;
use stages_core::{PortType, StageKind as _};
use stages_evaluate::Decide;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Run the nights that are due and not done, in order, and exit.
///
/// A night that is done is not run again; missed nights are made up for as `catch_up` says; nights that
/// failed, or whose data was late, are run again. Where another process runs the nights of a pipeline, it
/// says so and exits. Exit codes: 0 if nothing is left to do, 1 if a night failed or its data is late, 2 if
/// more nights were missed than are made up for without asking.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner schedule run-due nightly.yaml
  runner schedule run-due nightly.yaml --retry-after 1h
  runner schedule run-due nightly.yaml --now 2026-11-27T23:30:00Z    # a rehearsal: does not wait
  runner schedule run-due nightly.yaml --catch-up all    # however many nights were missed")]
pub(crate) struct RunDueArgs {
    #[command(flatten)]
    pub scheduled: ScheduledArgs,
    /// Run a night that failed or was late again only this long after it ended: for timers that call this
    /// every few minutes.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = age)]
    pub retry_after: Duration,
    /// Make up for at most so many missed nights. By default for 10 where no night was run yet, and later for
    /// those of the last 31 days; more are confirmed on a terminal, and refused elsewhere.
    #[arg(long, value_name = "N|all", value_parser = catch_up)]
    pub catch_up: Option<usize>,
    /// Ask nothing, as with `--catch-up all`.
    #[arg(short, long, conflicts_with = "catch_up")]
    pub yes: bool,
}

/// Parses the number of nights to make up for.
fn catch_up(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(usize::MAX),
        number => number
            .parse()
            .map_err(|_| "expected a number of nights, or `all`".to_owned()),
    }
}

/// The interval at which a run looks whether it is to end.
const LOOK: Duration = Duration::from_millis(250);

pub(super) fn run_due(session: &Session, args: &RunDueArgs) -> Result<u8, Failure> {
    let clock = clock(&args.scheduled);
    let control = interrupt::control()?;
    let (mut code, mut all, mut refused) = (exit::DONE, Vec::new(), Ok(()));
    for entry in entries(session, &args.scheduled)? {
        match may_catch_up(session, &entry, args, clock.now()) {
            Ok(true) => {}
            Ok(false) => continue,
            // Others' nights are run all the same.
            Err(failure) => {
                refused = Err(failure);
                continue;
            }
        }
        let scheduler = Scheduler {
            home: &entry.home,
            file: &entry.file,
            clock: clock.as_ref(),
            cancel: &control.cancel,
            retry_after: args.retry_after,
        };
        let mut work = PipelineWork {
            session,
            entry: &entry,
            control: &control,
            began: clock.now(),
            told: None,
        };
        let ran = scheduler.run_due(&entry.scheduled, &mut work)?;
        let (is_busy, outcome) = match ran {
            Ran::Busy => (true, Outcome::default()),
            Ran::Nights(outcome) => (false, outcome),
        };
        let dates = outcome
            .nights
            .iter()
            .filter_map(|night| night.night.get(..10)?.parse().ok());
        warn_beyond(&entry, dates);
        let has_failed = outcome.nights.iter().any(|night| !night.status.is_settled());
        if has_failed {
            code = exit::STAGE_FAILED;
        }
        let now = clock.now();
        if session.json {
            let next = DueTimes(&entry.scheduled.schedule).after(now);
            all.push(json!({
                "pipeline": entry.scheduled.name,
                "file": entry.file,
                "busy": is_busy,
                "nights": outcome.nights,
                "open": outcome.open,
                "next": next.map(|due| due_json(&entry.scheduled.schedule, &due)),
            }));
        } else if session.verbosity > Verbosity::Quiet {
            output::print(&summary(&entry, is_busy, &outcome, now))?;
        }
        if control.cancel.is_cancelled() {
            code = exit::INTERRUPTED;
            break;
        }
    }
    if session.json {
        output::print_json(&all)?;
    }
    refused.map(|()| code)
}

/// Asks whether missed nights are made up for, if they are more than is done unasked; refuses them where
/// nobody can be asked.
fn may_catch_up(
    session: &Session,
    entry: &ScheduledEntry,
    args: &RunDueArgs,
    now: DateTime<Utc>,
) -> Result<bool, Failure> {
    let ScheduledEntry { home, scheduled, .. } = entry;
    let limit = args.catch_up.or(args.yes.then_some(usize::MAX));
    let Some(Backlog { missed, first, most }) = backlog(home, scheduled, limit, now)? else {
        return Ok(true);
    };
    let what = format!("{}: {missed} nights from {first} on were missed", scheduled.name);
    let answer = match limit.is_none() && !session.json {
        true => output::confirm(&format!("{what}; make up for all of them?"))?,
        false => None,
    };
    answer.ok_or_else(|| {
        Failure::usage(format!("{what}, and at most {most} are made up for without asking")).hint(
            "`--catch-up all` makes up for all of them; a later `from:`, or `catch_up: latest`, of the \
            schedule leaves them out",
        )
    })
}

fn summary(entry: &ScheduledEntry, is_busy: bool, outcome: &Outcome, now: DateTime<Utc>) -> String {
    let name = &entry.scheduled.name;
    if is_busy {
        return format!("{name}: another process runs its nights\n");
    }
    if !outcome.nights.is_empty() {
        return String::new();
    }
    let schedule = &entry.scheduled.schedule;
    let next = DueTimes(schedule).after(now);
    let next = next.map_or("none".to_owned(), |due| local(schedule, due.at));
    match outcome.open {
        0 => format!("{name}: nothing is due; next: {next}\n"),
        open => format!("{name}: nights to be run again later: {open}; next: {next}\n"),
    }
}

/// The nights of a pipeline file.
pub(crate) struct PipelineWork<'a> {
    session: &'a Session,
    entry: &'a ScheduledEntry,
    control: &'a Control,
    began: DateTime<Utc>,
    /// The last run, on whose failure `notify:` has told.
    told: Option<String>,
}

impl PipelineWork<'_> {
    fn settings(due: &Due) -> Settings {
        Settings {
            night: Some(due.night.clone()),
            ..Settings::default()
        }
    }

    /// Sends the messages of `notify:` on a night that failed in another way than by its run.
    fn tell(&self, night: &Night) {
        let all = &self.entry.scheduled.notify;
        let has_failed = matches!(
            night.status,
            NightStatus::Failed | NightStatus::Killed | NightStatus::Late
        );
        // What was known before is not told again.
        let is_new = night.ended.is_some_and(|ended| ended >= self.began);
        let is_told = night.run.is_some() && night.run == self.told;
        if all.is_empty() || !has_failed || !is_new || is_told {
            return;
        }
        for line in notify::send(all, &Message::on_night(&self.entry.scheduled.name, night)) {
            output::say(&format!("warning: {line}"));
        }
    }

    /// The files of stages.
    fn sources(&self, due: &Due, stages: &[String]) -> Result<Vec<Awaited>, Failure> {
        if stages.is_empty() {
            return Ok(Vec::new());
        }
        let options = self.session.reading(&self.entry.file, &Self::settings(due))?;
        let pipeline = match load(&self.entry.file, &options) {
            Ok(pipeline) => pipeline,
            // Stages read the headers of their files, which may not be there yet.
            Err(errors) => {
                let missing = errors.0.first().map_or_else(String::new, |error| error.message.clone());
                return Ok(vec![Awaited {
                    name: stages.join(", "),
                    files: Vec::new(),
                    is_fresh: true,
                    missing: Some(missing),
                }]);
            }
        };
        let mut all = Vec::new();
        for node in pipeline.nodes.iter().filter(|node| stages.contains(&node.stage)) {
            let mut awaited = Awaited {
                name: node.id.clone(),
                files: Vec::new(),
                is_fresh: true,
                missing: None,
            };
            match &node.work {
                StageWork::Kind { kind, config } => match kind.sources(config, &node.base) {
                    Ok(sources) => {
                        if sources.iter().any(|source| source.remote.is_some()) {
                            return Err(Failure::usage(format!(
                                "the files of `{}` are on a server and cannot be waited for",
                                node.id
                            ))
                            .hint(
                                "wait for a file that is written when they are there: `wait_for: \
                                { files: […] }`",
                            ));
                        }
                        awaited.files = sources.into_iter().map(|source| source.path).collect();
                    }
                    Err(problem) => awaited.missing = Some(problem.message),
                },
                StageWork::Command(command) => {
                    awaited.files = command.files.iter().map(|file| file.path.clone()).collect();
                }
            }
            all.push(awaited);
        }
        Ok(all)
    }

    /// The decision of a policy on the night's data, in a few words.
    fn act(&self, due: &Due, run: &str, (act, then): (&str, &Then), base: &Path) -> Result<String, Failure> {
        // As of this night, its own promotion included.
        let reference = PolicyRef::parse(act)?;
        let version = Registry::new(&self.entry.home).find(&reference, Some(due.dates.date.plus(1)))?;
        let version = version.ok_or_else(|| {
            Failure::usage(format!("there is no `{}` as of {}", act, due.dates.date)).hint(format!(
                "`runner policy list {}` lists its versions and aliases",
                reference.name
            ))
        })?;
        let args = PolicyActArgs {
            what: format!("{}@{}", reference.name, version.version),
            data: then.data.clone(),
            replace: then.replace,
            // The nights that are missing are told by the schedule.
            allow_gap: true,
            positions: then.positions.clone().unwrap_or_else(|| "none".to_owned()),
            as_is: false,
            cash: None,
            at: Some(due.dates.date.to_string()),
            from: None,
            world: None,
            sample: None,
            max_age: None,
        };
        let session = Session {
            json: false,
            verbosity: Verbosity::Quiet,
            current: base.to_owned(),
            ..self.session.clone()
        };
        let decision = policy_act::decision(&session, &args, self.control, Some(run))?;
        let acted = &decision.acted;
        if acted.date <= due.dates.previous {
            return Err(Failure::usage(format!(
                "the last snapshot that can be traded on is of {}, and the night is of {}",
                acted.date, due.dates.date
            ))
            .hint("its data may be late: `wait_for` waits for it"));
        }
        let recorded = recorded(&decision, run, act, &args);
        history::add_decision(&self.entry.home.join("runs"), run, recorded)?;
        Ok(format!(
            "{} of {}: {}, {}",
            acted.time,
            args.what,
            acted.action.text,
            text::count(acted.orders.orders.len(), "order")
        ))
    }

    /// The night of a paper account, in a few words.
    fn paper(
        &self,
        due: &Due,
        run: &str,
        (account, then): (&str, &Then),
        base: &Path,
    ) -> Result<String, Failure> {
        let home = &self.entry.home;
        // Its policy may be registered by the first night.
        let Some(before) = Ledger::find(home, account)? else {
            return Ok(format!(
                "{account}: not opened yet, by `runner paper open {account} --policy …`"
            ));
        };
        let date = due.dates.date;
        if date < before.opened().from {
            return Ok(format!("{account}: begins on {}", before.opened().from));
        }
        let session = Session {
            json: false,
            verbosity: Verbosity::Quiet,
            current: base.to_owned(),
            ..self.session.clone()
        };
        let log = NightLog::read(home, &self.entry.scheduled.name)?;
        let previous = log.get(&due.dates.previous.to_string());
        let is_skipped = previous.is_some_and(|night| night.status == NightStatus::Skipped);
        let nightly = Nightly {
            files: Files {
                data: then.data.iter().map(|text| night::given(&session, text)).collect(),
                replace: then.replace,
                // The nights that are missing are told by the schedule.
                allow_gap: true,
            },
            until: date,
            requires: (!is_skipped).then_some(due.dates.previous),
        };
        let booked = night::book(&session, account, &nightly, self.control, Some(run));
        // By the ledger: nights may have been booked before another one failed, or the process was killed.
        let ledger = Ledger::read(home, account)?;
        if let Some(stop) = ledger.stopped().filter(|stop| stop.by != "person")
            && (before.stopped() != Some(stop) || stop.date == date)
        {
            let why = format!("the paper account `{account}` is halted ({}): {}", stop.by, stop.why);
            let message = Message::on_account(&self.entry.scheduled.name, (run, &due.night), "halted", why);
            for line in notify::send(&self.entry.scheduled.notify, &message) {
                output::say(&format!("warning: {line}"));
            }
        }
        booked?;
        history::add_account(&home.join("runs"), run, account)?;
        let Some(night) = ledger.nights().rev().find(|night| night.date == date) else {
            let last = ledger
                .last_night()
                .map_or("none".to_owned(), |night| night.time.clone());
            return Err(Failure::usage(format!(
                "the last night of `{account}` is {last}: the data has no snapshot of {date}"
            ))
            .hint("it may be late (`wait_for`); `runner schedule skip` settles a night without data"));
        };
        let line = night::line(&Entry::Night(Box::new(night.clone())));
        Ok(format!("{account}: {}", line.trim_end()))
    }
}

impl Work for PipelineWork<'_> {
    fn awaited(&mut self, due: &Due, wait_for: &WaitFor) -> Result<Vec<Awaited>, Failure> {
        let mut awaited = self.sources(due, &wait_for.sources)?;
        // The paths may have the night's date in them.
        let nightly = self.session.scheduled(&self.entry.file, &Self::settings(due))?;
        let files = nightly.schedule.wait_for.map(|wait_for| wait_for.files);
        awaited.extend(files.into_iter().flatten().map(|name| {
            let path = nightly.base.join(&name);
            let is_there = path.is_file();
            Awaited {
                missing: (!is_there).then(|| "there is no such file".to_owned()),
                files: if is_there { vec![path] } else { Vec::new() },
                is_fresh: false,
                name,
            }
        }));
        Ok(awaited)
    }

    fn run(
        &mut self,
        due: &Due,
        timeout: Option<Duration>,
        started: &mut dyn FnMut(&str) -> Result<(), Failure>,
    ) -> Result<RunEnd, Failure> {
        let args = ExecArgs {
            pipeline: Some(self.entry.file.clone()),
            selection: Selection {
                settings: Self::settings(due),
                ..Selection::default()
            },
            ..ExecArgs::default()
        };
        // Its JSON is that of the whole command.
        let session = Session {
            json: false,
            ..self.session.clone()
        };
        let control = Control::default();
        let (over, ended) = channel::<()>();
        let (run, is_over) = std::thread::scope(|scope| {
            let run_control = control.clone();
            let command_control = self.control;
            let watch = move || watch(command_control, &run_control, timeout, &ended);
            let watch = Builder::new().spawn_scoped(scope, watch).map_err(no_thread)?;
            let caller = Caller {
                control: Some(control.clone()),
                started,
                is_shown: false,
            };
            let run = exec::run(&session, &args, caller);
            drop(over);
            Ok::<_, Failure>((run, watch.join().unwrap_or_default()))
        })?;
        let (_, run) = run?;
        let failed = run.as_ref().filter(|run| run.status != RunStatus::Done);
        self.told = failed.map(|run| run.id.clone());
        let status = run.as_ref().map_or(RunStatus::Failed, |run| run.status);
        let limit = timeout.unwrap_or_default().as_secs();
        Ok(match status {
            RunStatus::Done => RunEnd { status, why: None },
            _ if is_over => RunEnd {
                status: RunStatus::Failed,
                why: Some(format!("its `timeout` of {limit} s has passed")),
            },
            _ => RunEnd {
                status,
                why: run.and_then(|run| run.first_error()),
            },
        })
    }

    fn then(&mut self, due: &Due, run: &str) -> Result<String, Failure> {
        let nightly = self.session.scheduled(&self.entry.file, &Self::settings(due))?;
        let Some(then) = nightly.schedule.then else {
            return Ok(String::new());
        };
        let mut done = Vec::new();
        if let Some(act) = &then.act {
            done.push(self.act(due, run, (act, &then), &nightly.base)?);
        }
        if let Some(account) = &then.paper {
            done.push(self.paper(due, run, (account, &then), &nightly.base)?);
        }
        Ok(done.join("; "))
    }

    fn prune(&mut self, keep: usize) -> Result<(), Failure> {
        let runs = self.entry.home.join("runs");
        prune(&runs, &self.entry.scheduled.name, keep)
    }

    fn changed(&mut self, night: &Night) {
        self.tell(night);
        let is_shown = match (night.status, self.session.verbosity) {
            (NightStatus::Skipped, verbosity) => verbosity == Verbosity::Verbose,
            (NightStatus::Done, verbosity) => verbosity > Verbosity::Quiet,
            _ => true,
        };
        if !is_shown {
            return;
        }
        let run = night.run.as_ref().map(|run| format!(", run {run}")).unwrap_or_default();
        let why = night.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let status = night.status.name();
        let why = match &night.decision {
            Some(decision) => format!("{why}; {decision}"),
            None => why,
        };
        let run = if night.status == NightStatus::Waiting {
            String::new()
        } else {
            run
        };
        output::say(&format!(
            "{} {}: {status}{run}{why}",
            self.entry.scheduled.name, night.night
        ));
    }
}

/// The decision as the history of `run` has it.
fn recorded(decision: &Decision, run: &str, act: &str, args: &PolicyActArgs) -> DecisionEvent {
    let made = &decision.made;
    // An output of this run is called by its stage alone.
    let own = made.policy.strip_prefix(run).and_then(|rest| rest.strip_prefix('/'));
    let policy = own.unwrap_or(&made.policy).to_owned();
    let mut config = made.config.clone();
    for (name, value) in [
        ("act", json!(act)),
        ("version", json!(args.what)),
        ("data", json!(args.data)),
        ("replace", json!(args.replace)),
        ("positions", json!(args.positions)),
        ("environment", json!(decision.environment)),
    ] {
        config[name] = value;
    }
    DecisionEvent {
        stage: history::THEN.to_owned(),
        kind: Decide::NAME.to_owned(),
        version: Decide::VERSION,
        config,
        needs: BTreeMap::from([("policy".to_owned(), vec![policy])]),
        types: BTreeMap::from([("decision".to_owned(), PortType::File.name().to_owned())]),
        key: made.key,
        status: made.status,
        seconds: made.seconds,
        outputs: BTreeMap::from([("decision".to_owned(), made.decision)]),
    }
}

/// Passes the cancellation of the command on to a run, and ends the run after its timeout; true if that was
/// why.
fn watch(command: &Control, run: &Control, timeout: Option<Duration>, ended: &Receiver<()>) -> bool {
    let began = Instant::now();
    let mut is_over = false;
    while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        if command.kill.is_cancelled() {
            run.kill.cancel();
        }
        if command.cancel.is_cancelled() {
            run.cancel.cancel();
        }
        if timeout.is_some_and(|timeout| began.elapsed() >= timeout) && !run.cancel.is_cancelled() {
            is_over = true;
            run.cancel.cancel();
        }
    }
    is_over
}

/// Removes the runs of nights but for the latest, those that are marked, and those whose artifacts are used
/// by others.
fn prune(runs: &Path, pipeline: &str, keep: usize) -> Result<(), Failure> {
    let all = history::list(runs)?;
    let is_of_night = |run: &history::Run| run.pipeline == pipeline && run.night.is_some();
    let nights: Vec<&str> = all
        .iter()
        .filter(|run| is_of_night(run))
        .map(|run| run.id.as_str())
        .collect();
    let Some(surplus) = nights.len().checked_sub(keep).filter(|surplus| *surplus > 0) else {
        return Ok(());
    };
    let surplus: Vec<&str> = nights[..surplus].to_vec();
    let marks = AllMarks::read(runs)?;
    // Those by whose policies an account lives among them.
    let kept = runs.parent().map(accounts::kept).transpose()?.unwrap_or_default().runs;
    let stays = |id: &str| !surplus.contains(&id) || kept.contains(id);
    let removed = history::removable(&all, &marks, |run, _| stays(&run.id));
    let ids: Vec<String> = removed.iter().map(|run| run.id.clone()).collect();
    history::remove(runs, &ids)
}
