//! `runner schedule install` and `uninstall`, which show what they write before they write it.

use super::entry::Entry;
use super::unit::Call;
use super::{cron, launchd, systemd};
use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use chrono::Utc;
use clap::{Args, ValueEnum};
use runner_engine::Failure;
use runner_history::schedule::backlog;
use serde_json::json;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Args, Clone, Debug)]
pub(crate) struct TimerArgs {
    /// The pipeline files.
    #[arg(value_name = "PIPELINE", required = true, add = completed(candidates::pipelines))]
    pub pipelines: Vec<PathBuf>,
    /// The service that calls `run-due` [default: systemd where it runs, launchd on macOS, else cron].
    #[arg(long = "with", value_enum, value_name = "SERVICE")]
    pub service: Option<Installer>,
    /// Ask nothing.
    #[arg(short, long)]
    pub yes: bool,
}

/// A service that starts programs at times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Installer {
    /// User timers of systemd, persistent and in the schedule's time zone.
    Systemd,
    /// A line of the user's crontab, every five minutes: cron knows no other time zones, and forgets what it
    /// missed.
    Cron,
    /// An agent of launchd, every five minutes.
    Launchd,
}

/// A change of a timer service.
enum Step {
    /// Writes a file.
    Write { path: PathBuf, text: String },
    /// Removes a file.
    Remove { path: PathBuf },
    /// Replaces the user's crontab.
    Crontab { text: String, shown: String },
    /// Runs a program.
    Run(Vec<String>),
    /// Runs a program that fails where it has nothing to do.
    Clear(Vec<String>),
    /// Runs a program that fails until the service has done what it was asked before.
    Retry(Vec<String>),
}

impl Step {
    fn run(words: &[&str]) -> Self {
        Self::Run(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// The step as it is shown to the user.
    fn shown(&self) -> String {
        match self {
            Self::Write { path, text } => format!("write {}:\n{}", path.display(), indented(text)),
            Self::Remove { path } => format!("remove {}\n", path.display()),
            Self::Crontab { shown, .. } => format!("change the crontab:\n{}", indented(shown)),
            Self::Run(words) | Self::Clear(words) | Self::Retry(words) => {
                format!("run {}\n", words.join(" "))
            }
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Self::Write { path, text } => json!({ "write": path, "text": text }),
            Self::Remove { path } => json!({ "remove": path }),
            Self::Crontab { text, .. } => json!({ "crontab": text }),
            Self::Run(words) | Self::Clear(words) | Self::Retry(words) => json!({ "run": words }),
        }
    }

    fn apply(&self) -> Result<(), Failure> {
        match self {
            Self::Write { path, text } => {
                let written = path
                    .parent()
                    .map_or(Ok(()), std::fs::create_dir_all)
                    .and_then(|()| std::fs::write(path, text));
                written.map_err(Failure::at("cannot write", path))
            }
            Self::Remove { path } => match std::fs::remove_file(path) {
                Err(err) if err.kind() != ErrorKind::NotFound => Err(Failure::at("cannot remove", path)(err)),
                _ => Ok(()),
            },
            Self::Crontab { text, .. } => write_crontab(text),
            Self::Clear(words) => {
                let _ = run(words);
                Ok(())
            }
            Self::Run(words) => run(words),
            Self::Retry(words) => {
                let began = Instant::now();
                loop {
                    match run(words) {
                        Err(_) if began.elapsed() < LONGEST => std::thread::sleep(LONGEST / 30),
                        done => return done,
                    }
                }
            }
        }
    }
}

/// The time for which [`Step::Retry`] retries: launchd takes some seconds to unload an agent.
const LONGEST: Duration = Duration::from_secs(15);

/// Runs a program of a timer service.
fn run(words: &[String]) -> Result<(), Failure> {
    let failed = |what: String| {
        Failure::machine(format!("`{}` {what}", words.join(" ")))
            .hint("the files are written: run it where the service runs, as the user whose timer it is")
    };
    let output = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .output()
        .map_err(|err| failed(format!("cannot be run: {err}")))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(format!(
            "failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

fn indented(text: &str) -> String {
    let line = |line: &str| match line {
        "" => "\n".to_owned(),
        line => format!("    {line}\n"),
    };
    text.lines().map(line).collect()
}

pub(super) fn install(session: &Session, args: &TimerArgs) -> Result<(), Failure> {
    let service = args.service.unwrap_or_else(default_service);
    let mut steps = Vec::new();
    let mut table = None;
    for file in &args.pipelines {
        let entry = Entry::of(session, session.current.join(file))?;
        let call = Call::new(session, &entry)?;
        if let Some(backlog) = backlog(&entry.home, &entry.scheduled, None, Utc::now())? {
            output::warn(&format!(
                "{}: {} nights from {} on were missed, and a timer makes up for at most {}: run `runner \
                schedule run-due {} --catch-up all` first, or write a later `from:`",
                call.name,
                backlog.missed,
                backlog.first,
                backlog.most,
                file.display()
            ));
        }
        match service {
            Installer::Systemd => {
                let unit = systemd::unit(&call.name);
                let folder = systemd_folder(session)?;
                let write = |kind: &str, text: String| Step::Write {
                    path: folder.join(format!("{unit}.{kind}")),
                    text,
                };
                steps.push(write("service", systemd::service(&call)));
                steps.push(write("timer", systemd::timer(&call, &entry)));
                steps.push(Step::run(&["systemctl", "--user", "daemon-reload"]));
                steps.push(Step::run(&[
                    "systemctl",
                    "--user",
                    "enable",
                    "--now",
                    &format!("{unit}.timer"),
                ]));
            }
            Installer::Cron => {
                let table = table.get_or_insert(read_crontab()?.unwrap_or_default());
                let line = cron::line(&call);
                let mut text = cron::without(table, &call.name);
                text.push_str(&format!("{line}\n"));
                table.clone_from(&text);
                let shown = format!("+ {line}\n");
                steps.push(Step::Crontab { text, shown });
            }
            Installer::Launchd => {
                let (path, label) = (agent(session, &call.name)?, launchd::label(&call.name));
                let log = user_home(session)?.join("Library/Logs").join(format!("{label}.log"));
                let text = launchd::plist(&call, &log);
                let is_same = std::fs::read_to_string(&path).is_ok_and(|before| before == text);
                // An agent that is loaded keeps its former text; unloading it would end a night that runs.
                if is_same && run(&launchd::is_loaded(&label)).is_ok() {
                    continue;
                }
                steps.push(Step::Clear(launchd::unload(&label)));
                steps.push(Step::Write {
                    path: path.clone(),
                    text,
                });
                steps.push(Step::Retry(launchd::load(&path)));
            }
        }
    }
    perform(session, args, &steps, "all timers are installed already\n")
}

pub(super) fn uninstall(session: &Session, args: &TimerArgs) -> Result<(), Failure> {
    let mut steps = Vec::new();
    let mut table = None;
    for file in &args.pipelines {
        let entry = Entry::of(session, session.current.join(file))?;
        let name = entry.scheduled.name;
        let is_chosen = |service| args.service.is_none_or(|chosen| chosen == service);
        let installed = installed(session, &name);
        let is_installed = |service: &str| installed.contains(&service);
        if is_chosen(Installer::Systemd) && is_installed("systemd") {
            let unit = systemd::unit(&name);
            let folder = systemd_folder(session)?;
            let timer = format!("{unit}.timer");
            steps.push(Step::run(&["systemctl", "--user", "disable", "--now", &timer]));
            for kind in ["timer", "service"] {
                steps.push(Step::Remove {
                    path: folder.join(format!("{unit}.{kind}")),
                });
            }
            steps.push(Step::run(&["systemctl", "--user", "daemon-reload"]));
        }
        if is_chosen(Installer::Cron) && is_installed("cron") {
            let table = table.get_or_insert(read_crontab()?.unwrap_or_default());
            let text = cron::without(table, &name);
            let gone = table.lines().filter(|line| !text.lines().any(|left| left == *line));
            let shown = gone.map(|line| format!("- {line}\n")).collect();
            table.clone_from(&text);
            steps.push(Step::Crontab { text, shown });
        }
        if is_chosen(Installer::Launchd) && is_installed("launchd") {
            steps.push(Step::Clear(launchd::unload(&launchd::label(&name))));
            steps.push(Step::Remove {
                path: agent(session, &name)?,
            });
        }
    }
    perform(session, args, &steps, "nothing is installed\n")
}

/// The services that have a timer of a pipeline.
pub(super) fn installed(session: &Session, name: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    let timer = systemd_folder(session).map(|folder| folder.join(format!("{}.timer", systemd::unit(name))));
    if timer.is_ok_and(|timer| timer.is_file()) {
        found.push("systemd");
    }
    if matches!(read_crontab(), Ok(Some(table)) if cron::has(&table, name)) {
        found.push("cron");
    }
    if agent(session, name).is_ok_and(|path| path.is_file()) {
        found.push("launchd");
    }
    found
}

/// Shows the steps, or `nothing` if there are none, asks for confirmation, and applies them. A program
/// that fails does not prevent the remaining steps: its failure is returned at the end.
fn perform(session: &Session, args: &TimerArgs, steps: &[Step], nothing: &str) -> Result<(), Failure> {
    if steps.is_empty() && !session.json {
        return output::print(nothing);
    }
    if session.json {
        output::print_json(&json!({
            "steps": steps.iter().map(Step::json).collect::<Vec<_>>(),
            "applied": args.yes,
        }))?;
    } else {
        let all: Vec<String> = steps.iter().map(Step::shown).collect();
        output::print(&all.join("\n"))?;
    }
    if !args.yes && !steps.is_empty() && output::confirm("apply this?")? != Some(true) {
        output::say("nothing was changed; `--yes` applies this without asking");
        return Ok(());
    }
    let mut failed = None;
    for step in steps {
        if let Err(failure) = step.apply() {
            match step {
                Step::Run(_) | Step::Retry(_) => drop(failed.get_or_insert(failure)),
                _ => return Err(failure),
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

fn default_service() -> Installer {
    match () {
        () if cfg!(target_os = "macos") => Installer::Launchd,
        // As `sd_booted` does.
        () if Path::new("/run/systemd/system").is_dir() => Installer::Systemd,
        () => Installer::Cron,
    }
}

/// The directory of the user's systemd units.
fn systemd_folder(session: &Session) -> Result<PathBuf, Failure> {
    let config = match session.env.get("XDG_CONFIG_HOME").filter(|path| !path.is_empty()) {
        Some(config) => session.current.join(config),
        None => user_home(session)?.join(".config"),
    };
    Ok(config.join("systemd/user"))
}

/// The file of a launchd agent.
fn agent(session: &Session, name: &str) -> Result<PathBuf, Failure> {
    let file = format!("{}.plist", launchd::label(name));
    Ok(user_home(session)?.join("Library/LaunchAgents").join(file))
}

fn user_home(session: &Session) -> Result<PathBuf, Failure> {
    let home = session.env.get("HOME").filter(|home| !home.is_empty());
    home.map(|home| session.current.join(home))
        .ok_or_else(|| Failure::usage("HOME is not set").hint("set it to your home directory"))
}

/// The user's crontab; `None` if there is no cron.
fn read_crontab() -> Result<Option<String>, Failure> {
    let output = Command::new("crontab").arg("-l").stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => match String::from_utf8(output.stdout) {
            Ok(table) => Ok(Some(table)),
            Err(_) => {
                Err(Failure::machine("the crontab is not UTF-8").hint("convert it, or add the line by hand"))
            }
        },
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            match said.contains("no crontab") {
                true => Ok(Some(String::new())),
                // Without this error, an unreadable table would be replaced by a single line.
                false => Err(Failure::machine(format!("cannot read the crontab: {}", said.trim()))),
            }
        }
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(None),
        Err(err) => Err(Failure::caused("cannot run `crontab`", &err)),
    }
}

fn write_crontab(text: &str) -> Result<(), Failure> {
    let failed = |err: std::io::Error| {
        Failure::caused("cannot run `crontab`", &err)
            .hint("install cron, or choose another service by `--with`")
    };
    let mut child = Command::new("crontab")
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // If the process has already ended, its status tells the reason.
        let _ = input.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Failure::machine(format!(
            "`crontab -` failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}
