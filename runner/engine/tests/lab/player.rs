//! An executor that starts no process: it plays the command of a `run:` stage.

use super::kinds;
use cache::{ArtifactBuilder, ArtifactDigest, Store};
use runner_engine::executor::{Done, Executor, Job, JobWork, Limits, Program};
use serde_json::json;
use stages_core::error::Cause;
use stages_core::{Context, EventSink, Input, PortType, StageError, StageEvent};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Plays commands, whose steps are separated by `; `:
///
/// | step | |
/// | --- | --- |
/// | `echo WORDS > ${outputs.X}` | writes an output; `${needs.X}` stands for the text of an input, `<NAME` for that of a file, `#` for the number of times that the stage was tried |
/// | `count WORDS > ${outputs.X}` | writes the number of words |
/// | `say WORDS` | writes a line of the log |
/// | `fail WORDS` | fails |
/// | `fail until N` | fails until it has been tried N times |
/// | `lose WORDS` | fails as if the machine had failed |
/// | `panic` | panics |
/// | `edit NAME` | changes a file beside the pipeline |
/// | `remove NAME` | removes a file beside the pipeline |
/// | `meet N` | waits until N stages are at this step |
/// | `hold` | waits until it is released |
/// | `wait` | waits until it is asked to stop, or until its time limit |
/// | `be late` | waits until it is asked to stop, and goes on |
/// | `hang` | waits until it is killed |
#[derive(Default)]
pub(crate) struct Player {
    tries: Mutex<BTreeMap<String, usize>>,
    at_meeting: Mutex<usize>,
    met: Condvar,
    released: AtomicBool,
    /// The stages that run now, and the largest number of them at any time.
    running: Mutex<(usize, usize)>,
    /// The stages that were played, in order, with the threads that they were given.
    played: Mutex<Vec<String>>,
}

impl Player {
    /// The largest number of stages that ran at the same time.
    pub(crate) fn most_running(&self) -> usize {
        self.running.lock().unwrap().1
    }

    /// Lets the stages go on that hold.
    pub(crate) fn release(&self) {
        self.released.store(true, Ordering::SeqCst);
    }

    /// The stages that were played since the last call, in order.
    pub(crate) fn played(&self) -> Vec<String> {
        std::mem::take(&mut self.played.lock().unwrap())
    }

    fn play(&self, program: &Program, stage: &Stage<'_>) -> Result<Done, StageError> {
        let (mut done, limits) = (Done::default(), stage.limits);
        for step in program.command.command.split("; ") {
            let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
            match (verb, rest) {
                ("echo" | "count", rest) => {
                    let (words, to) = rest.split_once(" > ").unwrap_or(("", rest));
                    let name = to.trim_start_matches("${outputs.").trim_end_matches('}');
                    let words = stage.fill(words)?;
                    let text = match verb {
                        "count" => words.split_whitespace().count().to_string(),
                        _ => words,
                    };
                    let file = &program.command.outputs[name];
                    done.outputs.insert(name.to_owned(), stage.write(file, &text)?);
                }
                ("say", words) => stage.events.emit(StageEvent::Log {
                    line: stage.fill(words)?,
                }),
                ("fail", rest) => match rest.strip_prefix("until ") {
                    Some(times) if stage.tries < times.parse().unwrap() => {
                        return Err(StageError::new(format!("try {} failed", stage.tries)));
                    }
                    Some(_) => {}
                    None => return Err(StageError::new(rest).hint("do not ask it to")),
                },
                ("lose", words) => {
                    return Err(StageError {
                        cause: Cause::Store,
                        ..StageError::new(words)
                    });
                }
                ("panic", _) => panic!("at the command"),
                ("edit", name) => std::fs::write(program.base.join(name), "edited").unwrap(),
                ("remove", name) => std::fs::remove_file(program.base.join(name)).unwrap(),
                ("meet", number) => self.meet(number.parse().unwrap()),
                ("wait", _) => {
                    stage.until(&|| limits.cancel.is_cancelled())?;
                    return Err(StageError::interrupted());
                }
                ("be", "late") => stage.until(&|| limits.cancel.is_cancelled())?,
                ("hold", _) => stage.until(&|| self.released.load(Ordering::SeqCst))?,
                ("hang", _) => {
                    stage.until(&|| limits.kill.is_cancelled())?;
                    return Err(StageError::interrupted());
                }
                _ => panic!("the player cannot {step:?}"),
            }
        }
        Ok(done)
    }

    /// Waits until so many stages are here; a test whose stages do not meet fails.
    fn meet(&self, number: usize) {
        let mut here = self.at_meeting.lock().unwrap();
        *here += 1;
        let complete = here.next_multiple_of(number);
        self.met.notify_all();
        while *here < complete {
            let (guard, waited) = self.met.wait_timeout(here, Duration::from_secs(20)).unwrap();
            assert!(!waited.timed_out(), "waited in vain for {number} stages");
            here = guard;
        }
    }
}

impl Executor for Player {
    fn run(&self, job: &Job, events: &Arc<dyn EventSink>, limits: &Limits) -> Result<Done, StageError> {
        {
            let mut running = self.running.lock().unwrap();
            running.0 += 1;
            running.1 = running.1.max(running.0);
            let fresh = if job.fresh { " afresh" } else { "" };
            self.played.lock().unwrap().push(format!("{}{fresh}", job.stage));
        }
        let _running = Running(self);
        let tries = {
            let mut tries = self.tries.lock().unwrap();
            let tries = tries.entry(job.stage.clone()).or_default();
            *tries += 1;
            *tries
        };
        let store = Store::open(&job.home)?;
        let stage = Stage {
            job,
            store: &store,
            events: events.as_ref(),
            limits,
            tries,
            started: Instant::now(),
        };
        match &job.work {
            JobWork::Command(program) => self.play(program, &stage),
            JobWork::Probe => unreachable!("no stage is a probe"),
            JobWork::Kind { name, config, .. } => {
                let kind = kinds().iter().find(|kind| kind.name() == name).unwrap();
                let context = Context {
                    inputs: stage.inputs()?,
                    sources: job.sources.clone(),
                    threads: job.threads,
                    fresh: job.fresh,
                    events: events.clone(),
                    cancel: limits.cancel.clone(),
                    ..Context::new(job.key, store.clone())
                };
                Ok(Done {
                    outputs: kind.run(config, &context)?,
                    ..Done::default()
                })
            }
        }
    }
}

/// Counts a stage as running, also if it panics.
struct Running<'a>(&'a Player);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Ok(mut running) = self.0.running.lock() {
            running.0 -= 1;
        }
    }
}

/// A stage that is played.
struct Stage<'a> {
    job: &'a Job,
    store: &'a Store,
    events: &'a dyn EventSink,
    limits: &'a Limits,
    tries: usize,
    started: Instant,
}

impl Stage<'_> {
    fn inputs(&self) -> Result<BTreeMap<String, Vec<Input>>, StageError> {
        let mut inputs: BTreeMap<String, Vec<Input>> = BTreeMap::new();
        for (port, digests) in &self.job.inputs {
            for &digest in digests {
                let artifact = self.store.artifact(digest)?;
                inputs.entry(port.clone()).or_default().push(Input { digest, artifact });
            }
        }
        Ok(inputs)
    }

    /// The text of the inputs at a port, separated by spaces.
    fn read(&self, port: &str) -> Result<String, StageError> {
        let mut texts = Vec::new();
        for input in &self.inputs()?[port] {
            for entry in &input.artifact.entries {
                let blob = self.store.blob(entry.blob)?;
                texts.push(String::from_utf8_lossy(&blob).into_owned());
            }
        }
        Ok(texts.join(" "))
    }

    fn file(&self, name: &str) -> Result<std::path::PathBuf, StageError> {
        let source = self.job.sources.iter().find(|source| source.name == name);
        source
            .map(|source| source.path.clone())
            .ok_or_else(|| StageError::new(format!("no file {name}")))
    }

    /// Replaces the words that stand for inputs and files.
    fn fill(&self, words: &str) -> Result<String, StageError> {
        let word = |word: &str| -> Result<String, StageError> {
            if let Some(port) = word.strip_prefix("${needs.") {
                return self.read(port.trim_end_matches('}'));
            }
            match word.strip_prefix('<') {
                Some(name) => Ok(std::fs::read_to_string(self.file(name)?).unwrap()),
                None => Ok(word.replace('#', &self.tries.to_string())),
            }
        };
        let words: Result<Vec<String>, StageError> = words.split(' ').map(word).collect();
        Ok(words?.join(" "))
    }

    fn write(&self, file: &str, text: &str) -> Result<ArtifactDigest, StageError> {
        let mut builder = ArtifactBuilder::new(self.store, PortType::File.name(), json!({ "folder": false }));
        builder.bytes(file, text.as_bytes())?;
        Ok(builder.finish()?)
    }

    /// Waits until it may go on.
    fn until(&self, goes_on: &dyn Fn() -> bool) -> Result<(), StageError> {
        while !goes_on() {
            std::thread::sleep(Duration::from_millis(5));
            if self.limits.timeout.is_some_and(|limit| self.started.elapsed() > limit) {
                return Err(StageError::new("took longer than its time limit"));
            }
            assert!(self.started.elapsed() < Duration::from_secs(60), "it waits in vain");
        }
        Ok(())
    }
}
