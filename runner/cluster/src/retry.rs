//! The policy of retries: what follows from the end of an attempt. No input or output here.
//!
//! | end | what follows |
//! | --- | --- |
//! | the stage failed, or the job was cancelled from outside | the error; `retries:` of the stage is the engine's |
//! | time limit | again, from its checkpoint, for as long as each attempt gets further than the last |
//! | out of memory | again with twice the memory, up to `max_memory` |
//! | preempted | again, at most [`PREEMPTIONS`] times |
//! | a fault of a machine | again, on another node where one is to blame, at most `retries` times |

use crate::end::{End, Ended};
use runner_engine::executor::{Done, Place};
use runner_engine::text;
use stages_core::error::Cause;
use stages_core::{EventSink, StageError, StageEvent};
use std::collections::BTreeSet;

/// The maximum number of preemptions of a job.
pub const PREEMPTIONS: u32 = 50;

/// The maximum number of times that a job goes on after its time limit.
pub const CONTINUATIONS: u32 = 200;

/// The same, for a stage that reports no progress.
const BLIND_CONTINUATIONS: u32 = 3;

/// The limits of retries.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The number of retries after faults of machines.
    pub retries: u32,
    /// The largest memory that may be requested, in bytes.
    pub max_memory: Option<u64>,
}

/// The step after an attempt.
#[derive(Clone, Debug)]
pub enum Next {
    /// The job succeeded.
    Finish(Box<Done>),
    /// The job is submitted again: one line about the reason; `None` if there is nothing to tell.
    Again(Option<String>),
    /// The job has failed.
    Fail(StageError),
}

/// The attempts of one job so far, and what the next one requests.
#[derive(Clone, Debug, Default)]
pub struct Attempts {
    /// The memory that the next attempt requests, in bytes.
    pub memory: Option<u64>,
    /// The nodes that the next attempt avoids.
    pub excluded: BTreeSet<String>,
    /// The number of attempts that have ended.
    pub ended: u32,
    faults: u32,
    preemptions: u32,
    continued: u32,
    steps: Option<(u64, u64)>,
}

impl Attempts {
    /// No attempts yet, of a job that requests this memory.
    pub fn new(memory: Option<u64>) -> Self {
        Self {
            memory,
            ..Self::default()
        }
    }

    /// Attempts a job until it succeeds or has failed, on an executor of this name.
    pub fn run(
        &mut self,
        policy: Policy,
        executor: &str,
        events: &dyn EventSink,
        mut attempt: impl FnMut(&Self) -> Ended,
    ) -> Result<Done, StageError> {
        loop {
            let ended = attempt(self);
            match self.next(policy, &ended) {
                Next::Finish(done) => {
                    let host = done.place.map(|place| place.host).or(ended.node).unwrap_or_default();
                    return Ok(Done {
                        place: Some(Place {
                            executor: executor.to_owned(),
                            job: ended.job,
                            host,
                        }),
                        ..*done
                    });
                }
                Next::Again(Some(message)) => events.emit(StageEvent::Warning { message, hint: None }),
                Next::Again(None) => {}
                Next::Fail(err) => return Err(err),
            }
        }
    }

    /// The step after an attempt.
    pub fn next(&mut self, policy: Policy, ended: &Ended) -> Next {
        self.ended += 1;
        let place = ended.place();
        match &ended.end {
            End::Done(done) => Next::Finish(done.clone()),
            End::Failed(err) | End::Refused(err) => Next::Fail(err.clone()),
            End::Interrupted => Next::Fail(StageError::interrupted()),
            End::NotStarted => Next::Again(None),
            End::Cancelled { by } => {
                let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
                Next::Fail(
                    StageError::new(format!("{place} was cancelled{by}, not by this run"))
                        .hint("run the pipeline again: what is done stays done"),
                )
            }
            End::TimeLimit => self.continued(&place, ended.steps),
            End::OutOfMemory => self.more_memory(policy, &place),
            End::Preempted if self.preemptions < PREEMPTIONS => {
                self.preemptions += 1;
                Next::Again(Some(format!("{place} was preempted: submitted again")))
            }
            End::Preempted => Next::Fail(
                StageError::new(format!("{place} was preempted for the {PREEMPTIONS}th time"))
                    .hint("another partition or quality of service keeps its jobs to the end"),
            ),
            End::NodeFailed => self.fault(policy, ended, StageError::new("its node failed"), true),
            End::Vanished => {
                let err = StageError::new("the cluster does not know it any more, and it left no result");
                self.fault(policy, ended, err, false)
            }
            End::NoStore(reason) => {
                let err = StageError::new(format!("its node could not start it: {reason}"))
                    .hint("every node must see the home's directory, with the program in it");
                self.fault(policy, ended, err, true)
            }
            End::Machine(err) => self.fault(policy, ended, err.clone(), true),
            End::Died(status) => {
                let err = StageError::new(format!("ended without a result: {status}")).hint(
                    "a system kills processes that use too much memory: `resources: { memory: … }` \
                     requests more",
                );
                self.fault(policy, ended, err, true)
            }
            End::Unseen(what) => {
                let err = StageError::new(format!("its outputs are not visible here: {what}"))
                    .hint("the nodes and this machine must see the same directory of the store");
                self.fault(policy, ended, err, false)
            }
        }
    }

    /// A job goes on after its time limit if the attempt before began or ended further on than the one before
    /// that. Attempts that begin anew all end at about the same step.
    fn continued(&mut self, place: &str, steps: Option<(u64, u64)>) -> Next {
        let is_stuck = match (self.steps, steps) {
            (Some((first, last)), Some(now)) => now.0 <= first && now.1 <= last.saturating_add(last / 20),
            _ => self.continued >= BLIND_CONTINUATIONS,
        };
        if self.continued > 0 && is_stuck || self.continued >= CONTINUATIONS {
            let what = match is_stuck {
                true => "and does not go on from a checkpoint",
                false => "too often",
            };
            return Next::Fail(
                StageError::new(format!("{place} reached its time limit again, {what}"))
                    .hint("raise `time:` in the stage's `resources:`, or that of the executor"),
            );
        }
        self.continued += 1;
        self.steps = steps.or(self.steps);
        Next::Again(Some(format!(
            "{place} reached its time limit: submitted again, from its checkpoint"
        )))
    }

    fn more_memory(&mut self, policy: Policy, place: &str) -> Next {
        let had = self.memory;
        let more = had
            .zip(policy.max_memory)
            .map(|(had, max)| had.saturating_mul(2).min(max));
        match more.filter(|&more| had.is_some_and(|had| more > had)) {
            Some(more) => {
                self.memory = Some(more);
                Next::Again(Some(format!(
                    "{place} ran out of memory: submitted again with {}",
                    text::size(more)
                )))
            }
            None => {
                let of = had.map_or_else(String::new, |had| format!(": it had {}", text::size(had)));
                Next::Fail(StageError::new(format!("{place} ran out of memory{of}")).hint(
                    "request more by `resources: { memory: … }` of the stage; `max_memory:` of the executor \
                     lets it try again with more",
                ))
            }
        }
    }

    /// A fault of a machine, of which `excludes` says that the node is to blame.
    fn fault(&mut self, policy: Policy, ended: &Ended, err: StageError, excludes: bool) -> Next {
        let message = format!("{}: {}", ended.place(), err.message);
        if self.faults >= policy.retries {
            return Next::Fail(StageError {
                message,
                hint: err.hint,
                cause: Cause::Store,
            });
        }
        self.faults += 1;
        let mut elsewhere = String::new();
        if let Some(node) = ended.node.as_ref().filter(|_| excludes) {
            elsewhere = format!(", not on {node}");
            self.excluded.insert(node.clone());
        }
        let first = message.lines().next().unwrap_or_default();
        Next::Again(Some(format!(
            "{first}: submitted again{elsewhere} ({} of {})",
            self.faults, policy.retries
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy {
        retries: 2,
        max_memory: Some(10 << 30),
    };

    fn on(node: &str, end: End) -> Ended {
        Ended {
            end,
            job: "7_1".to_owned(),
            node: Some(node.to_owned()),
            steps: None,
        }
    }

    /// The steps that follow from ends, as text.
    fn follow(attempts: &mut Attempts, policy: Policy, ends: Vec<Ended>) -> String {
        let said = ends.iter().map(|ended| match attempts.next(policy, ended) {
            Next::Finish(_) => "done".to_owned(),
            Next::Again(None) => "again".to_owned(),
            Next::Again(Some(reason)) => format!("again: {reason}"),
            Next::Fail(err) => format!("{:?}: {} / {}", err.cause, err.message, err.hint.unwrap_or_default()),
        });
        said.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn faults_of_machines_are_bounded_and_name_the_nodes_to_avoid() {
        let mut attempts = Attempts::new(None);
        let full = StageError {
            message: "cannot write `/x`: No space left on device".to_owned(),
            hint: Some("free space".to_owned()),
            cause: Cause::Store,
        };
        let ends = vec![
            on("n1", End::NodeFailed),
            on("n2", End::NotStarted),
            on("n2", End::Machine(full.clone())),
            on("n3", End::Machine(full)),
        ];
        insta::assert_snapshot!(follow(&mut attempts, POLICY, ends), @r"
        again: job 7_1 on n1: its node failed: submitted again, not on n1 (1 of 2)
        again
        again: job 7_1 on n2: cannot write `/x`: No space left on device: submitted again, not on n2 (2 of 2)
        Store: job 7_1 on n3: cannot write `/x`: No space left on device / free space
        ");
        assert_eq!(Vec::from_iter(attempts.excluded), ["n1", "n2"]);
    }

    #[test]
    fn memory_doubles_up_to_its_bound() {
        let ends = || vec![on("n1", End::OutOfMemory); 3];
        insta::assert_snapshot!(follow(&mut Attempts::new(Some(4 << 30)), POLICY, ends()), @r"
        again: job 7_1 on n1 ran out of memory: submitted again with 8.0 GiB
        again: job 7_1 on n1 ran out of memory: submitted again with 10.0 GiB
        Failed: job 7_1 on n1 ran out of memory: it had 10.0 GiB / request more by `resources: { memory: … }` of the stage; `max_memory:` of the executor lets it try again with more
        ");
        let bare = Policy {
            max_memory: None,
            ..POLICY
        };
        for memory in [None, Some(1 << 30)] {
            assert!(matches!(
                Attempts::new(memory).next(bare, &on("n1", End::OutOfMemory)),
                Next::Fail(_)
            ));
        }
    }

    #[test]
    fn a_job_over_its_time_goes_on_while_it_advances() {
        let cut = |steps| Ended {
            steps,
            ..on("n1", End::TimeLimit)
        };
        let mut attempts = Attempts::new(None);
        let steps = [(8, 90), (80, 170), (8, 250), (8, 260)].map(Some);
        insta::assert_snapshot!(follow(&mut attempts, POLICY, steps.map(cut).to_vec()), @r"
        again: job 7_1 on n1 reached its time limit: submitted again, from its checkpoint
        again: job 7_1 on n1 reached its time limit: submitted again, from its checkpoint
        again: job 7_1 on n1 reached its time limit: submitted again, from its checkpoint
        Failed: job 7_1 on n1 reached its time limit again, and does not go on from a checkpoint / raise `time:` in the stage's `resources:`, or that of the executor
        ");
        let mut blind = Attempts::new(None);
        let ends = (0..).take_while(|_| matches!(blind.next(POLICY, &cut(None)), Next::Again(_)));
        assert_eq!(ends.count(), 3);
        let mut endless = Attempts::new(None);
        let ends = (0..).take_while(|&i| matches!(endless.next(POLICY, &cut(Some((i, 9)))), Next::Again(_)));
        assert_eq!(ends.count(), CONTINUATIONS as usize);
    }

    #[test]
    fn other_ends() {
        let by = Some("anna".to_owned());
        let ends = vec![
            on("n1", End::Cancelled { by }),
            on("n1", End::Cancelled { by: None }),
            on("n1", End::Failed(StageError::new("the curve has no points"))),
            Ended::nowhere(End::Refused(StageError::new("no such partition"))),
            on("n1", End::Interrupted),
            on("n1", End::Done(Box::default())),
        ];
        insta::assert_snapshot!(follow(&mut Attempts::new(None), POLICY, ends), @r"
        Failed: job 7_1 on n1 was cancelled by anna, not by this run / run the pipeline again: what is done stays done
        Failed: job 7_1 on n1 was cancelled, not by this run / run the pipeline again: what is done stays done
        Failed: the curve has no points / 
        Failed: no such partition / 
        Interrupted: interrupted / 
        done
        ");
        let mut attempts = Attempts::new(None);
        let ends =
            (0..).take_while(|_| matches!(attempts.next(POLICY, &on("n1", End::Preempted)), Next::Again(_)));
        assert_eq!(ends.count(), PREEMPTIONS as usize);
        assert!(attempts.excluded.is_empty(), "preemption is no fault of the node");
        let ends = vec![
            on("n1", End::Vanished),
            on("n1", End::Unseen("`model` of `policy`".to_owned())),
            on("n1", End::NoStore("`/home/programs/x`: not found".to_owned())),
        ];
        insta::assert_snapshot!(follow(&mut Attempts::new(None), POLICY, ends), @r"
        again: job 7_1 on n1: the cluster does not know it any more, and it left no result: submitted again (1 of 2)
        again: job 7_1 on n1: its outputs are not visible here: `model` of `policy`: submitted again (2 of 2)
        Store: job 7_1 on n1: its node could not start it: `/home/programs/x`: not found / every node must see the home's directory, with the program in it
        ");
    }
}
