//! `runner bench cluster`: the time of trivial jobs through an executor of `config.yaml`, beside that of the
//! bare engine.

use super::executors;
use crate::config;
use crate::interrupt;
use crate::session::{Session, temporary_directory};
use cache::Store;
use runner_cluster::settings::{Ray, Settings, Slurm};
use runner_engine::Failure;
use runner_engine::executor::{Limits, probe};
use serde::Serialize;
use stages_core::event::Silent;
use stages_core::{EventSink, StageError};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time from the first submission until the last job has ended.
#[derive(Serialize)]
pub(super) struct Row {
    what: String,
    jobs: usize,
    seconds: f64,
    milliseconds_a_job: f64,
    /// The time by that of the bare engine.
    ratio: Option<f64>,
}

/// The interval at which the queue is read.
const LOOK: Duration = Duration::from_millis(100);

/// The longest wait for the jobs.
const WAIT: Duration = Duration::from_secs(3600);

/// N tasks of one CPU that run `true`, in a cluster that has started its worker processes.
const RAY: &str = "
import subprocess, sys, time
import ray
ray.init(address=sys.argv[2], log_to_driver=False, logging_level='error')
@ray.remote(num_cpus=1, max_retries=0)
def task():
    subprocess.run(['true'], check=True)
ray.get(task.remote())
began = time.monotonic()
ray.get([task.remote() for _ in range(int(sys.argv[1]))])
print(time.monotonic() - began)
";

pub(super) fn measure(session: &Session, name: &str, jobs: usize) -> Result<Vec<Row>, Failure> {
    let home = session.home(None);
    let store = session.store(&home)?;
    let settings = executors::take(&mut config::executors(&home)?, name, &home, &store)?;
    let (what, bare) = match &settings {
        Settings::Slurm(slurm) => ("bare sbatch, one array", sbatch(slurm, jobs)?),
        Settings::Ray(ray) => ("bare ray.remote, a process each", remote(ray, jobs)?),
    };
    let row = |what: String, seconds: f64, ratio| Row {
        what,
        jobs,
        seconds,
        milliseconds_a_job: seconds * 1e3 / jobs as f64,
        ratio,
    };
    let ours = through(&store, name, &settings, jobs)?;
    Ok(vec![
        row(what.to_owned(), bare, None),
        row(format!("executor {name}"), ours, Some(ours / bare)),
    ])
}

/// The seconds of jobs that read and write a small artifact each, asked for at once as by a run.
fn through(store: &Store, name: &str, settings: &Settings, jobs: usize) -> Result<f64, Failure> {
    let executor = executors::start_one(name, settings, "bench", store)?;
    let control = interrupt::control()?;
    let limits = Limits {
        cancel: control.cancel,
        kill: control.kill,
        timeout: Some(WAIT),
        grace: Duration::from_secs(5),
    };
    let events: Arc<dyn EventSink> = Arc::new(Silent);
    let scratch = temporary_directory()?;
    let one = |i: usize| {
        let log = scratch.path().join(i.to_string());
        probe(&*executor, store, settings.elsewhere().store, log, &events, &limits)
    };
    let began = Instant::now();
    let results: Vec<Result<_, StageError>> = std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..jobs).map(|i| scope.spawn(move || one(i))).collect();
        let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended
            .map(|ended| ended.unwrap_or_else(|_| Err(StageError::new("a job's thread failed"))))
            .collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    results.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(seconds)
}

/// The standard output of an engine's command.
fn output(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|err| {
        Failure::caused(format!("cannot run `{name}`"), &err).hint("the engine of the executor must be here")
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::machine(format!("`{name}` failed: {}", said.trim())))
}

/// The seconds of an array of tasks that run `true`.
fn sbatch(settings: &Slurm, jobs: usize) -> Result<f64, Failure> {
    let mut command = Command::new("sbatch");
    command.args(["--parsable", "--output=/dev/null", "--wrap=true"]);
    command.arg(format!("--array=0-{}", jobs - 1));
    for (option, value) in [
        ("partition", &settings.partition),
        ("account", &settings.account),
        ("qos", &settings.qos),
        ("constraint", &settings.constraint),
    ] {
        command.args(value.as_ref().map(|value| format!("--{option}={value}")));
    }
    command.args(&settings.options);
    let began = Instant::now();
    let id = output(&mut command)?;
    let id = id.trim().split(';').next().unwrap_or_default().to_owned();
    loop {
        // Slurm forgets a job some minutes after its end, and then no longer knows the id.
        let left = output(Command::new("squeue").args(["-h", "-o", "%i", "-j", &id]));
        if left.is_ok_and(|left| left.trim().is_empty()) {
            return Ok(began.elapsed().as_secs_f64());
        }
        if began.elapsed() > WAIT {
            return Err(Failure::machine(format!("the tasks of job {id} have not ended")));
        }
        std::thread::sleep(LOOK);
    }
}

fn remote(settings: &Ray, jobs: usize) -> Result<f64, Failure> {
    let mut command = Command::new(&settings.python);
    command.args(["-c", RAY, &jobs.to_string(), &settings.address]);
    let text = output(&mut command)?;
    let last = text.lines().last().unwrap_or_default();
    last.trim()
        .parse()
        .map_err(|_| Failure::machine(format!("Ray's driver printed no time: {text}")))
}
