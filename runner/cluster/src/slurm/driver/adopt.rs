//! The remains of runs that were killed: results to collect, and jobs in the queue to follow.

use super::super::files::{self, Member};
use super::super::missing;
use super::super::queue::{Kind, Row, State, TaskId};
use super::submit::fly;
use super::{Batch, Driver, Request};
use crate::end::{End, Ended};
use cache::ActionKey;
use runner_engine::executor::Message;
use stages_core::StageEvent;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// The interval at which batches of other runs are looked for.
const LOOK: Duration = Duration::from_secs(5);

/// The jobs of other runs.
#[derive(Default)]
pub(super) struct Known {
    jobs: HashMap<ActionKey, Vec<Candidate>>,
    /// The batches that have been read.
    read: BTreeSet<String>,
    looked: Option<Instant>,
}

impl Known {
    /// A batch is this run's own.
    pub(super) fn is_ours(&mut self, batch: &str) {
        self.read.insert(batch.to_owned());
    }
}

/// A job of another run.
struct Candidate {
    batch: String,
    member: Member,
}

/// A request whose job an earlier run may have in the queue, which the next query tells.
pub(super) struct Seeker {
    pub request: Request,
    candidate: Candidate,
    since: Instant,
}

impl Driver {
    /// Reads what other runs have submitted.
    fn look(&mut self) {
        if self.known.looked.is_some_and(|at| at.elapsed() < LOOK) {
            return;
        }
        self.known.looked = Some(Instant::now());
        let jobs = self.site.jobs();
        for name in files::batches(&jobs) {
            if self.known.read.contains(&name) {
                continue;
            }
            let members = files::members(&jobs.join(&name));
            if members.is_empty() {
                // It may be half written.
                continue;
            }
            for member in members {
                let candidate = Candidate {
                    batch: name.clone(),
                    member,
                };
                self.known.jobs.entry(candidate.member.key).or_default().push(candidate);
            }
            self.known.read.insert(name);
        }
    }

    /// Answers a request by what an earlier run has left, or looks for its job in the queue; returns it if
    /// there is nothing of the kind. The action lock is the caller's, so no living run has a job of that
    /// key.
    pub(super) fn seek(&mut self, request: Request) -> Option<Request> {
        self.look();
        let Some(mut candidates) = self.known.jobs.remove(&request.key) else {
            return Some(request);
        };
        if !request.fresh
            && candidates
                .iter()
                .rev()
                .any(|candidate| self.collect_result(&request, candidate))
        {
            return None;
        }
        candidates.retain(|candidate| candidate.member.fresh || !request.fresh);
        let Some(candidate) = candidates.pop() else {
            return Some(request);
        };
        self.seeking.push(Seeker {
            request,
            candidate,
            since: Instant::now(),
        });
        self.polling.soon();
        None
    }

    /// Answers a request by a result; false if there is none, or its outputs are gone.
    fn collect_result(&mut self, request: &Request, candidate: &Candidate) -> bool {
        let dir = self.site.jobs().join(&candidate.batch);
        let Some(Message::Done(done)) = files::result(&dir, &candidate.member.file) else {
            return false;
        };
        if missing(&self.site.store, done.outputs.values().copied()).is_some() {
            return false;
        }
        let array = files::submitted(&dir);
        let job = array.map_or_else(String::new, |array| format!("{array}_{}", candidate.member.task));
        request.events.emit(StageEvent::Log {
            line: format!("has the result of job {job}, which an earlier run submitted"),
        });
        self.foreign(&candidate.batch, array).succeeded.push(request.key);
        let _ = request.reply.send(Ended {
            job,
            ..Ended::nowhere(End::Done(Box::new(done)))
        });
        true
    }

    /// The batch of another run.
    fn foreign(&mut self, name: &str, array: Option<u64>) -> &mut Batch {
        let dir = self.site.jobs().join(name);
        let batch = self.batches.entry(name.to_owned()).or_insert_with(|| Batch {
            members: files::members(&dir),
            dir,
            array: None,
            unsure: None,
            needs: Default::default(),
            tasks: Default::default(),
            succeeded: Vec::new(),
            is_foreign: true,
            listed: Instant::now(),
        });
        batch.array = batch.array.or(array.map(|array| (array, Instant::now())));
        batch
    }

    /// Follows the jobs of earlier runs that the queue lists, and submits anew those that it does not.
    pub(super) fn found(
        &mut self,
        rows: &HashMap<TaskId, Row>,
        arrays: &HashMap<String, BTreeSet<u64>>,
        asked: Instant,
    ) {
        for seeker in std::mem::take(&mut self.seeking) {
            if seeker.since > asked {
                self.seeking.push(seeker);
                continue;
            }
            let Seeker {
                request, candidate, ..
            } = seeker;
            let (name, task) = (&candidate.batch, candidate.member.task);
            let listed = || arrays.get(name).and_then(|arrays| arrays.first().copied());
            let array = files::submitted(&self.site.jobs().join(name)).or_else(listed);
            let row = array.and_then(|array| rows.get(&TaskId { array, task }));
            let is_alive = row.is_some_and(|row| {
                matches!(
                    row.state,
                    State::Pending | State::Running | State::Over(Kind::Completed)
                )
            });
            if let (Some(array), true) = (array, is_alive) {
                request.events.emit(StageEvent::Log {
                    line: format!("follows job {array}_{task}, which an earlier run submitted"),
                });
                let batch = self.foreign(name, Some(array));
                let jobs = &mut batch.tasks.entry(task).or_default().jobs;
                jobs.push(fly(request, candidate.member.file));
            } else if request.fresh || !self.collect_result(&request, &candidate) {
                if array.is_none() {
                    // Its `sbatch` may outlive the run that started it.
                    self.superseded.insert(candidate.batch);
                }
                self.wait(request);
            }
        }
    }
}
