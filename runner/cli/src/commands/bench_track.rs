//! `runner bench track`: the cost of reporting a run to a tracking server while it trains. The same training
//! runs in turn without a server, with a server that answers at once, with one that answers late, and with
//! one that is unreachable.

mod sink;

use runner_engine::Failure;
use runner_history::load;
use serde::Serialize;
use sink::Sink;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The delay of the server that answers late.
const LATE: Duration = Duration::from_millis(200);

/// The interval at which the reporting thread is sampled.
const LOOK: Duration = Duration::from_millis(20);

/// The means over the runs with one server. Costs are the means of `run / run without a server - 1` over the
/// rounds, in percent.
#[derive(Serialize)]
pub(super) struct Row {
    server: String,
    runs: usize,
    /// The duration of the training.
    train_seconds: f64,
    train_cost_percent: f64,
    /// The standard error of the cost.
    train_cost_error: f64,
    /// The CPU time of the whole run; Linux only.
    cpu_seconds: Option<f64>,
    cpu_cost_percent: Option<f64>,
    cpu_cost_error: Option<f64>,
    /// The CPU time of the reporting thread while the run lasts; Linux only.
    thread_cpu_milliseconds: Option<f64>,
    /// The duration of the whole run, including what is sent at its end.
    seconds: f64,
    /// The numbers of requests of a run and of metric values in them, if the server is the benchmark's own.
    requests: Option<f64>,
    metrics: Option<f64>,
}

/// One run.
struct Measured {
    seconds: f64,
    train: f64,
    cpu: Option<f64>,
    thread: Option<f64>,
    requests: u64,
    metrics: u64,
}

struct Server {
    name: String,
    uri: Option<String>,
    sink: Option<Sink>,
}

/// Trains for `steps` steps, `rounds` times with each server. `uri` is a real MLflow server, measured beside
/// the others.
pub(super) fn measure(uri: Option<&str>, rounds: usize, steps: u64) -> Result<Vec<Row>, Failure> {
    let dir = tempfile::tempdir().map_err(failed)?;
    let servers = servers(uri)?;
    let mut measured: Vec<Vec<Measured>> = servers.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds.max(1) {
        // Every server is first in turn.
        for turn in 0..servers.len() {
            let at = (round + turn) % servers.len();
            measured[at].push(run(dir.path(), &servers[at], steps)?);
        }
    }
    for (server, runs) in servers.iter().zip(&measured) {
        if server.sink.is_some() && runs.iter().any(|run| run.metrics == 0) {
            return Err(Failure::usage(format!(
                "the server that {} was sent no metric of a run",
                server.name
            ))
            .hint("raise `--steps`: the training reports its first metrics after 1,024"));
        }
    }
    Ok(servers
        .iter()
        .zip(&measured)
        .map(|(server, runs)| row(server, runs, &measured[0]))
        .collect())
}

fn failed(err: std::io::Error) -> Failure {
    Failure::caused("cannot measure", &err)
}

fn servers(uri: Option<&str>) -> Result<Vec<Server>, Failure> {
    let own = |name: &str, delay| -> Result<Server, Failure> {
        let sink = Sink::start(delay).map_err(failed)?;
        Ok(Server {
            name: name.to_owned(),
            uri: Some(sink.uri()),
            sink: Some(sink),
        })
    };
    let foreign = |name: String, uri: Option<String>| Server { name, uri, sink: None };
    let mut servers = vec![
        foreign("none".to_owned(), None),
        own("answers at once", Duration::ZERO)?,
        own("answers 200 ms late", LATE)?,
        foreign("is away".to_owned(), Some(sink::closed().map_err(failed)?)),
    ];
    servers.extend(uri.map(|uri| foreign(format!("MLflow at {uri}"), Some(uri.to_owned()))));
    Ok(servers)
}

fn pipeline(uri: Option<&str>, steps: u64) -> String {
    let track = uri.map(|uri| {
        let uri = serde_json::Value::from(uri);
        format!("track: [{{ mlflow: {{ uri: {uri}, experiment: bench }} }}]\n")
    });
    format!(
        "version: 1\nname: bench_track\n{}stages:\n  env: \
         {{ uses: env/classic, with: {{ id: CartPole-v1 }} }}\n  \
         train: \
         {{ uses: train/ppo, needs: {{ env: env }}, with: {{ total_timesteps: {steps}, n_envs: 8, n_steps: 128 }} }}\n",
        track.unwrap_or_default()
    )
}

/// Runs the training in a store of its own.
fn run(dir: &Path, server: &Server, steps: u64) -> Result<Measured, Failure> {
    let (home, file) = (dir.join("store"), dir.join("bench.yaml"));
    fs::write(&file, pipeline(server.uri.as_deref(), steps)).map_err(failed)?;
    let counts = || server.sink.as_ref().map_or((0, 0), Sink::counts);
    let (before, cpu_before) = (counts(), children_cpu());
    let program = std::env::current_exe().map_err(failed)?;
    let began = Instant::now();
    let child = Command::new(program)
        .args(["exec", "-q"])
        .arg(&file)
        .env("RUNNER_HOME", &home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let (status, thread) = watch(child)?;
    let seconds = began.elapsed().as_secs_f64();
    let cpu = children_cpu().zip(cpu_before).map(|(after, before)| after - before);
    if !status.success() {
        return Err(Failure::usage(format!("a benchmarked run failed: {status}")));
    }
    let runs = home.join("runs");
    let id = only_run(&runs)?;
    let train = load(&runs, &id)?.stage("train").map_or(f64::NAN, |stage| stage.seconds);
    fs::remove_dir_all(&home).map_err(failed)?;
    let after = counts();
    Ok(Measured {
        seconds,
        train,
        cpu,
        thread,
        requests: after.0 - before.0,
        metrics: after.1 - before.1,
    })
}

fn only_run(runs: &Path) -> Result<String, Failure> {
    let first = fs::read_dir(runs).map_err(failed)?.next();
    let name = first.transpose().map_err(failed)?.map(|entry| entry.file_name());
    name.map(|name| name.to_string_lossy().into_owned())
        .ok_or_else(|| Failure::usage("a benchmarked run left no history"))
}

/// Waits for a process, and returns its status with the last observed CPU time of its thread `track`, in
/// seconds.
fn watch(mut child: Child) -> Result<(ExitStatus, Option<f64>), Failure> {
    let tasks = PathBuf::from(format!("/proc/{}/task", child.id()));
    let (mut thread, mut cpu) = (None, None);
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok((status, cpu));
        }
        thread = thread.or_else(|| named(&tasks, "track"));
        cpu = thread.as_deref().and_then(on_cpu).or(cpu);
        std::thread::sleep(LOOK);
    }
}

/// Finds the thread with this name.
fn named(tasks: &Path, name: &str) -> Option<PathBuf> {
    let mut tasks = fs::read_dir(tasks).ok()?.flatten().map(|task| task.path());
    tasks.find(|task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name))
}

/// The seconds that a thread has run: the first number of `schedstat` (proc_pid_schedstat), in nanoseconds.
fn on_cpu(task: &Path) -> Option<f64> {
    let text = fs::read_to_string(task.join("schedstat")).ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

/// The CPU time, in seconds, of this process's children that have ended, and of their own:
/// `proc_pid_stat(5)`, fields 16 and 17, in hundredths of a second.
fn children_cpu() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    let ticks = fields.split_whitespace().skip(13).take(2);
    let ticks = ticks.map(|ticks| ticks.parse::<f64>().ok()).sum::<Option<f64>>()?;
    Some(ticks / 100.0)
}

fn row(server: &Server, runs: &[Measured], without: &[Measured]) -> Row {
    let mean_of = |figure: fn(&Measured) -> f64| mean(&runs.iter().map(figure).collect::<Vec<_>>()).0;
    // A figure that this system does not report is NaN.
    let known = |value: f64| value.is_finite().then_some(value);
    let cost = |figure: fn(&Measured) -> f64| {
        let ratios = runs
            .iter()
            .zip(without)
            .map(|(run, none)| figure(run) / figure(none) - 1.0);
        let (cost, error) = mean(&ratios.map(|ratio| 100.0 * ratio).collect::<Vec<_>>());
        (cost, error)
    };
    let (train_cost_percent, train_cost_error) = cost(|run| run.train);
    let (cpu_cost, cpu_error) = cost(|run| run.cpu.unwrap_or(f64::NAN));
    let own = |value: f64| server.sink.as_ref().map(|_| value);
    Row {
        server: server.name.clone(),
        runs: runs.len(),
        train_seconds: mean_of(|run| run.train),
        train_cost_percent,
        train_cost_error,
        cpu_seconds: known(mean_of(|run| run.cpu.unwrap_or(f64::NAN))),
        cpu_cost_percent: known(cpu_cost),
        cpu_cost_error: known(cpu_error),
        thread_cpu_milliseconds: known(mean_of(|run| 1e3 * run.thread.unwrap_or(f64::NAN))),
        seconds: mean_of(|run| run.seconds),
        requests: own(mean_of(|run| run.requests as f64)),
        metrics: own(mean_of(|run| run.metrics as f64)),
    }
}

/// The mean, and its standard error; 0 for fewer than two values.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (n - 1.0).max(1.0) / n).sqrt();
    (mean, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_its_error() {
        let (value, error) = mean(&[1.0, 2.0, 3.0, 6.0]);
        // Sample variance 14 / 3, of four values.
        assert_eq!(value, 3.0);
        assert!((error - (14.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-15);
        assert_eq!(mean(&[2.0]), (2.0, 0.0));
    }

    #[test]
    fn costs_are_those_of_each_round() {
        let run = |train, cpu| Measured {
            seconds: train + 1.0,
            train,
            cpu,
            thread: None,
            requests: 6,
            metrics: 40,
        };
        let without = [run(1.0, Some(2.0)), run(2.0, Some(4.0))];
        let with = [run(1.1, Some(2.0)), run(2.6, Some(4.4))];
        let server = Server {
            name: "x".to_owned(),
            uri: None,
            sink: None,
        };
        let row = row(&server, &with, &without);
        assert!(
            (row.train_cost_percent - 20.0).abs() < 1e-9,
            "{}",
            row.train_cost_percent
        );
        assert!((row.train_cost_error - 10.0).abs() < 1e-9);
        assert!((row.cpu_cost_percent.unwrap() - 5.0).abs() < 1e-9);
        assert_eq!((row.thread_cpu_milliseconds, row.requests), (None, None));
    }
}
