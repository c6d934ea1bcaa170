//! Starts and cancels runs, and runs nights again.

use crate::site::Site;
use runner_engine::{Failure, exit};
use runner_history as history;
use runner_history::schedule::{NightLog, names};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// The longest wait for a new run's first event.
const BEGIN: Duration = Duration::from_secs(30);

/// The maximum length of the output shown of a run that did not begin, in bytes.
const ERRORS: u64 = 16 << 10;

/// The process of a run in progress.
pub(crate) fn process(runs: &Path, id: &str) -> Option<Pid> {
    Pid::from_raw(i32::try_from(history::process(runs, id)?).ok()?)
}

/// Asks a run to stop, like a Ctrl-C in its terminal.
pub(crate) fn cancel(runs: &Path, id: &str) -> Result<(), Failure> {
    let Some(process) = process(runs, id) else {
        return Err(
            Failure::usage(format!("run {id} is not running on this machine")).hint("reload its page")
        );
    };
    kill_process(process, Signal::INT).map_err(|err| {
        Failure::caused(
            format!("cannot signal the process of run {id}"),
            &std::io::Error::from(err),
        )
        .hint("it was started by another user; they can cancel it")
    })
}

/// The time within which a call that is refused says so.
const REFUSED: Duration = Duration::from_secs(2);

/// Runs the nights of a scheduled pipeline that are due and not done, as a process of its own.
pub(crate) fn run_due(site: &Site, name: &str) -> Result<(), Failure> {
    let nowhere = || Failure::usage(format!("no schedule `{name}` has nights"));
    if !names(&site.home)?.iter().any(|known| known == name) {
        return Err(nowhere());
    }
    let log = NightLog::read(&site.home, name)?;
    let file = log.file().ok_or_else(nowhere)?;
    let mut command = program(site);
    command
        .args(["schedule", "run-due", "--quiet"])
        .arg(file)
        .stdout(Stdio::null());
    let child = command
        .spawn()
        .map_err(|err| Failure::caused("cannot run the nights", &err))?;
    let (sender, ended) = channel();
    thread::spawn(move || drop(sender.send(child.wait_with_output())));
    match ended.recv_timeout(REFUSED) {
        Ok(Ok(output)) if output.status.code() == Some(exit::WRONG_USAGE.into()) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(Failure::usage(said.trim().trim_start_matches("error: ").to_owned()))
        }
        _ => Ok(()),
    }
}

/// The program in the directory of the server, with the server's home. A Ctrl-C that ends the server does not
/// stop it.
fn program(site: &Site) -> Command {
    let mut command = Command::new(&site.program);
    command
        .current_dir(&site.directory)
        .env("RUNNER_HOME", &site.home)
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

/// Starts `runner exec` of a pipeline as a process of its own, and returns the run's id.
pub(crate) fn start(site: &Site, pipeline: &Path, set: &[String]) -> Result<String, Failure> {
    let mut command = program(site);
    command
        .arg("exec")
        .arg(pipeline)
        .args(["--json", "--quiet"])
        .stdout(Stdio::piped());
    for setting in set {
        command.args(["--set", setting]);
    }
    let mut child = command
        .spawn()
        .map_err(|err| Failure::caused("cannot start a run", &err))?;
    let (Some(out), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Failure::machine("cannot read what a run prints"));
    };
    let (sender, begun) = channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        let first = lines
            .next()
            .and_then(|line| serde_json::from_str::<serde_json::Value>(&line).ok());
        drop(sender.send(first.and_then(|event| Some(event["run"].as_str()?.to_owned()))));
        // The output is read to its end: a full pipe would block the run.
        lines.for_each(drop);
    });
    let errors = thread::spawn(move || {
        let mut text = Vec::new();
        let mut errors = errors;
        let _ = (&mut errors).take(ERRORS).read_to_end(&mut text);
        let _ = std::io::copy(&mut errors, &mut std::io::sink());
        String::from_utf8_lossy(&text).into_owned()
    });
    match begun.recv_timeout(BEGIN) {
        Ok(Some(run)) => {
            // Waits for the child process, so that it is reaped.
            thread::spawn(move || child.wait());
            Ok(run)
        }
        Ok(None) => {
            let _ = child.wait();
            let text = errors.join().unwrap_or_default();
            Err(Failure::usage(text.trim().trim_start_matches("error: ").to_owned()))
        }
        Err(_) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(Failure::machine(format!(
                "the run did not begin within {} s",
                BEGIN.as_secs()
            )))
        }
    }
}
