//! A job on standard input, as a cluster's node runs it: `runner worker --job -`.
//!
//! The protocol is that of a worker process; the job runs as one in a file does.

use super::job::{Job, JobStore};
use super::job_file::USAGES;
use super::node::run_on_node;
use super::protocol::{Message, STOP};
use super::worker::{Lines, end_with_parent};
use crate::options::Control;
use cache::OpenUpstream;
use stages_core::typed_output::FileType;
use stages_core::{EventSink, StageError, StageEvent};
use std::io::{BufRead as _, stdin};
use std::process::exit;
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::Instant;

/// Reads a job from standard input, runs it until `control` cancels it, and writes its events and result to
/// standard output. Exits when standard input ends. Returns the exit code: 0 if the job succeeded, 1 if it
/// failed.
pub fn run_job_stream(file_types: &'static [FileType], open_upstream: OpenUpstream, control: &Control) -> u8 {
    end_with_parent();
    let mut line = String::new();
    let job = match stdin().read_line(&mut line).map(|_| serde_json::from_str::<Job>(&line)) {
        Ok(Ok(job)) if job.store != JobStore::Here => job,
        _ => {
            let err =
                StageError::new("the job cannot be read: it was written by another version of the program");
            Lines.write(&Message::Failed(err));
            return 1;
        }
    };
    let cancel = control.cancel.clone();
    let listening = Builder::new().spawn(move || {
        // Reads until end of file, when the parent closes the pipe or exits for any reason.
        for line in stdin().lock().lines().map_while(Result::ok) {
            if line == STOP {
                cancel.cancel();
            }
        }
        exit(1);
    });
    if let Err(err) = listening {
        let err = StageError::new(format!("cannot start a thread: {err}"));
        Lines.write(&Message::Failed(err));
        return 1;
    }
    let events: Arc<dyn EventSink> = Arc::new(Sparse::default());
    match run_on_node(&job, file_types, open_upstream, &events, control) {
        Ok(done) => {
            Lines.write(&Message::Done(done));
            0
        }
        Err(failed) => {
            let (err, report) = *failed;
            Lines.write(&Message::Upstream(report));
            Lines.write(&Message::Failed(err));
            1
        }
    }
}

/// Writes events to standard output, but not every one of resource usage.
#[derive(Default)]
struct Sparse(Mutex<Option<Instant>>);

impl EventSink for Sparse {
    fn emit(&self, event: StageEvent) {
        if let StageEvent::Usage { .. } = event {
            let mut last = cache::parallel::locked(&self.0);
            if last.is_some_and(|last| last.elapsed() < USAGES) {
                return;
            }
            *last = Some(Instant::now());
        }
        Lines.emit(event);
    }
}
