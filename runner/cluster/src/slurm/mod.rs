//! Jobs on Slurm: arrays by `sbatch`, states by `squeue` and `sacct`, results and events by files in the
//! home.
//!
//! One thread, the [`driver`], speaks to Slurm for all jobs of a run. A job is a file, and Slurm is given a
//! script that names it: nothing of a pipeline reaches a shell. A run that was killed loses nothing: the next
//! one finds the files, collects the results, and follows what is still in the queue.

mod driver;
mod files;
mod judge;
mod pack;
mod queue;
#[cfg(test)]
mod tests;
mod tools;

use crate::Launch;
use crate::end::{End, Ended};
use crate::retry::{Attempts, Policy};
use crate::settings::Slurm;
use cache::{ArtifactDigest, Store};
use driver::{Driver, Request, Site, Times};
use pack::Needs;
use runner_engine::executor::{Done, Executor, Job, Limits};
use runner_engine::{Failure, no_thread};
use stages_core::error::Cause;
use stages_core::{EventSink, StageError};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tools::Tools;

/// Starts the executor.
///
/// # Errors
/// If Slurm's commands are missing, or the program cannot be copied for the nodes.
pub fn start(settings: &Slurm, launch: Launch) -> Result<Box<dyn Executor>, Failure> {
    let found = Command::new("sbatch").arg("--version").output();
    if !found.is_ok_and(|output| output.status.success()) {
        return Err(Failure::usage(format!(
            "the executor `{}` needs Slurm: there is no `sbatch`",
            launch.name
        ))
        .hint("run it on a login node of the cluster, with Slurm's commands on PATH"));
    }
    let executor = OnSlurm::start(settings, launch, Tools::default(), Times::default())?;
    Ok(Box::new(executor))
}

/// The executor.
struct OnSlurm {
    name: String,
    settings: Slurm,
    store: Store,
    /// The time to wait for outputs that a node has written.
    visible: Duration,
    /// The driver's inbox; `None` once it is to end.
    requests: Option<Sender<Request>>,
    driver: Option<JoinHandle<()>>,
}

impl OnSlurm {
    fn start(settings: &Slurm, launch: Launch, tools: Tools, times: Times) -> Result<Self, Failure> {
        let program = match &settings.program {
            Some(path) => path.clone(),
            None => files::copy_program(launch.store.root(), &launch.program)?,
        };
        let (requests, inbox) = channel();
        let visible = times.bounds.sure;
        let site = Site {
            name: launch.name.clone(),
            pipeline: pack::plain(&launch.pipeline),
            settings: settings.clone(),
            store: launch.store.clone(),
            program,
            tools,
            times,
        };
        let driver = Builder::new()
            .name("slurm".to_owned())
            .spawn(move || Driver::new(site, inbox).run())
            .map_err(no_thread)?;
        Ok(Self {
            name: launch.name,
            settings: settings.clone(),
            store: launch.store,
            visible,
            requests: Some(requests),
            driver: Some(driver),
        })
    }

    /// Runs a job once.
    fn attempt(
        &self,
        job: &Job,
        json: &[u8],
        attempts: &Attempts,
        given: (&Arc<dyn EventSink>, &Limits),
    ) -> Ended {
        let (reply, ended) = channel();
        let (events, limits) = given;
        let request = Request {
            key: job.key,
            fresh: job.fresh,
            kind: job.work.kind().to_owned(),
            json: json.to_owned(),
            needs: Needs {
                threads: job.threads.max(1),
                memory: attempts.memory,
                gpus: job.request.gpus,
                time: job.request.time,
                excluded: attempts.excluded.clone(),
            },
            expected: job.request.expected_seconds,
            is_first: attempts.ended == 0,
            events: events.clone(),
            limits: limits.clone(),
            reply,
        };
        let sent = self
            .requests
            .as_ref()
            .is_some_and(|requests| requests.send(request).is_ok());
        match ended.recv() {
            Ok(ended) if sent => ended,
            _ => Ended::nowhere(End::Refused(StageError::new("the thread that drives Slurm has ended"))),
        }
    }

    /// An end, once the outputs that it names are visible here; or another end, if they stay invisible.
    fn seen(&self, job: &Job, ended: Ended, limits: &Limits) -> Ended {
        let end = match &ended.end {
            End::Done(done) => self.unseen(done, limits),
            // An input that is here was not visible there.
            End::Failed(err) if err.cause == Cause::DamagedInput => {
                let inputs = job.inputs.values().flatten().copied();
                missing(&self.store, inputs).is_none().then(|| {
                    End::Machine(StageError {
                        cause: Cause::Store,
                        ..err.clone()
                    })
                })
            }
            _ => None,
        };
        Ended {
            end: end.unwrap_or(ended.end),
            ..ended
        }
    }

    /// Waits until a result is visible here; another end if it stays invisible.
    fn unseen(&self, done: &Done, limits: &Limits) -> Option<End> {
        let (store, started) = (&self.store, Instant::now());
        let artifact = |&digest: &ArtifactDigest| store.artifact(digest).map_err(|_| digest);
        let look = || match done.outputs.values().map(artifact).collect::<Result<Vec<_>, _>>() {
            Err(digest) => Some(format!("artifact {}", digest.short())),
            Ok(artifacts) => {
                let entries = artifacts.iter().flat_map(|artifact| &artifact.entries);
                let mut blobs = entries.map(cache::Entry::blob_ref).chain(done.log);
                match store.wait_for(&mut blobs, Duration::from_millis(500)) {
                    Ok(None) => None,
                    Ok(Some(blob)) => Some(format!("blob {}", blob.blob.short())),
                    Err(err) => Some(err.to_string()),
                }
            }
        };
        while let Some(what) = look() {
            if limits.cancel.is_cancelled() || limits.kill.is_cancelled() {
                return Some(End::Interrupted);
            }
            if started.elapsed() > self.visible {
                return Some(End::Unseen(what));
            }
            std::thread::sleep(Duration::from_millis(250));
        }
        None
    }
}

/// The first artifact whose manifest or one of whose files is not in the store.
fn missing(store: &Store, artifacts: impl Iterator<Item = ArtifactDigest>) -> Option<ArtifactDigest> {
    let is_whole = |digest| {
        let artifact = store.artifact(digest);
        artifact.is_ok_and(|artifact| artifact.entries.iter().all(|entry| store.has_here(entry.blob_ref())))
    };
    artifacts.into_iter().find(|&digest| !is_whole(digest))
}

impl Executor for OnSlurm {
    fn run(&self, job: &Job, events: &Arc<dyn EventSink>, limits: &Limits) -> Result<Done, StageError> {
        let json = serde_json::to_vec(job)
            .map_err(|err| StageError::new(format!("the job cannot be written: {err}")))?;
        let policy = Policy {
            retries: self.settings.retries,
            max_memory: self.settings.max_memory,
        };
        let mut attempts = Attempts::new(job.request.memory);
        attempts.run(policy, &self.name, &**events, |attempts| {
            let ended = self.attempt(job, &json, attempts, (events, limits));
            self.seen(job, ended, limits)
        })
    }
}

impl Drop for OnSlurm {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(driver) = self.driver.take() {
            let _ = driver.join();
        }
    }
}
