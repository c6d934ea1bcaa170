//! The end of a job from its result and from what Slurm says of its task. No input or output here.

use super::queue::{Kind, Over};
use crate::end::End;
use runner_engine::executor::Message;
use stages_core::StageError;
use stages_core::error::Cause;
use std::time::Duration;

/// The facts known of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    /// Its result, [`Message::Done`] or [`Message::Failed`].
    pub result: Option<&'a Message>,
    /// The end of its task.
    pub over: Option<&'a Over>,
    /// The time since the end of its task became known.
    pub waited: Duration,
    /// True if Slurm has not answered for a while.
    pub is_silent: bool,
    /// True if this run stopped the task.
    pub is_stopped: bool,
    /// True if no job before it in its task is without a result: it is the one that ran.
    pub is_first: bool,
}

/// The bounds of waiting for a result that a node has written and that is not visible here yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// After a task that succeeded, whose result must exist.
    pub sure: Duration,
    /// After a task that was ended, whose result may exist.
    pub unsure: Duration,
}

/// The exit codes of a shell that cannot execute a program.
const NOT_EXECUTED: [i32; 2] = [126, 127];

/// The exit code of a worker that cannot read its job, or write its result.
const MACHINE: i32 = runner_engine::exit::MACHINE_FAILED as i32;

/// The end of a job; `None` if it is not known yet. `output` is what its task printed last.
pub(super) fn judge(evidence: Evidence<'_>, bounds: Bounds, output: impl FnOnce() -> String) -> Option<End> {
    let Evidence { over, .. } = evidence;
    let kind = over.map(|over| over.kind);
    match evidence.result {
        Some(Message::Done(done)) => return Some(End::Done(Box::new(done.clone()))),
        Some(Message::Failed(err)) => {
            if evidence.is_stopped {
                return Some(End::Interrupted);
            }
            // The reason why it was interrupted or killed is Slurm's to tell.
            let kind = match kind {
                Some(kind) => kind,
                None if evidence.is_silent => Kind::Failed,
                None => return None,
            };
            return Some(failed(err, kind, over));
        }
        _ => {}
    }
    let over = over?;
    if evidence.is_stopped {
        return Some(End::Interrupted);
    }
    let bound = match over.kind {
        Kind::Completed => bounds.sure,
        Kind::Failed if NOT_EXECUTED.contains(&over.exit) => Duration::ZERO,
        _ => bounds.unsure,
    };
    if evidence.waited < bound {
        return None;
    }
    Some(match over.kind {
        Kind::Cancelled => End::Cancelled { by: over.by.clone() },
        _ if !evidence.is_first => End::NotStarted,
        Kind::TimeLimit => End::TimeLimit,
        Kind::OutOfMemory => End::OutOfMemory,
        Kind::Preempted => End::Preempted,
        Kind::NodeFailed => End::NodeFailed,
        Kind::Gone => End::Vanished,
        Kind::Completed => End::Unseen("the job's result".to_owned()),
        Kind::Failed => {
            let (status, output) = (status(over.exit), output());
            let text = if output.is_empty() {
                status
            } else {
                format!("{status}: {output}")
            };
            // Where Slurm itself measures memory, it kills the task, and says why in its output only.
            if over.exit < 0 && text.to_lowercase().contains("exceeded job memory limit") {
                return Some(End::OutOfMemory);
            }
            match over.exit {
                code if NOT_EXECUTED.contains(&code) || code == MACHINE => End::NoStore(text),
                _ => End::Died(text),
            }
        }
    })
}

fn failed(err: &StageError, kind: Kind, over: Option<&Over>) -> End {
    match (kind, err.cause) {
        (Kind::OutOfMemory, _) => End::OutOfMemory,
        (Kind::Preempted, _) => End::Preempted,
        (Kind::Cancelled, Cause::Interrupted) => End::Cancelled {
            by: over.and_then(|over| over.by.clone()),
        },
        (Kind::NodeFailed, Cause::Interrupted) => End::NodeFailed,
        (_, Cause::Interrupted) => End::TimeLimit,
        (_, Cause::Store) => End::Machine(err.clone()),
        (_, Cause::Failed | Cause::Diverged | Cause::DamagedInput) => End::Failed(err.clone()),
    }
}

fn status(exit: i32) -> String {
    match exit {
        ..0 => format!("signal {}", exit.unsigned_abs()),
        _ => format!("exit status {exit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_engine::executor::Done;
    use std::time::Instant;

    const BOUNDS: Bounds = Bounds {
        sure: Duration::from_secs(90),
        unsure: Duration::from_secs(10),
    };

    fn name(end: Option<End>) -> String {
        match end {
            None => "wait".to_owned(),
            Some(End::Failed(err) | End::Machine(err)) => format!("{:?}", err.cause),
            Some(end) => format!("{end:?}").split(['(', ' ']).next().unwrap().to_owned(),
        }
    }

    /// The ends of a job by its result and its task's end, 20 seconds after it.
    #[test]
    fn ends_by_result_and_state() {
        let failed = |cause| {
            Message::Failed(StageError {
                cause,
                ..StageError::new("x")
            })
        };
        let results = [
            ("none", None),
            ("done", Some(Message::Done(Done::default()))),
            ("failed", Some(failed(Cause::Failed))),
            ("interrupted", Some(failed(Cause::Interrupted))),
            ("store", Some(failed(Cause::Store))),
        ];
        let kinds = [
            Kind::Completed,
            Kind::Failed,
            Kind::Cancelled,
            Kind::TimeLimit,
            Kind::OutOfMemory,
            Kind::Preempted,
            Kind::NodeFailed,
            Kind::Gone,
        ];
        let mut table = String::new();
        for kind in kinds.map(Some).into_iter().chain([None]) {
            let over = kind.map(|kind| Over {
                kind,
                exit: 1,
                by: None,
                at: Instant::now(),
            });
            let state = kind.map_or("running".to_owned(), |kind| format!("{kind:?}"));
            table.push_str(&format!("{state:12}"));
            for (result, message) in &results {
                let evidence = Evidence {
                    result: message.as_ref(),
                    over: over.as_ref(),
                    waited: Duration::from_secs(20),
                    is_silent: false,
                    is_stopped: false,
                    is_first: true,
                };
                let end = name(judge(evidence, BOUNDS, String::new));
                table.push_str(&format!(" {result}: {end};"));
                let stopped = name(judge(
                    Evidence {
                        is_stopped: true,
                        ..evidence
                    },
                    BOUNDS,
                    String::new,
                ));
                let expected = match (message, &over) {
                    (Some(Message::Done(_)), _) => "Done",
                    (None, None) => "wait",
                    _ => "Interrupted",
                };
                assert_eq!(stopped, expected, "{state} {result}");
            }
            table.push('\n');
        }
        insta::assert_snapshot!(table, @r"
        Completed    none: wait; done: Done; failed: Failed; interrupted: TimeLimit; store: Store;
        Failed       none: Died; done: Done; failed: Failed; interrupted: TimeLimit; store: Store;
        Cancelled    none: Cancelled; done: Done; failed: Failed; interrupted: Cancelled; store: Store;
        TimeLimit    none: TimeLimit; done: Done; failed: Failed; interrupted: TimeLimit; store: Store;
        OutOfMemory  none: OutOfMemory; done: Done; failed: OutOfMemory; interrupted: OutOfMemory; store: OutOfMemory;
        Preempted    none: Preempted; done: Done; failed: Preempted; interrupted: Preempted; store: Preempted;
        NodeFailed   none: NodeFailed; done: Done; failed: Failed; interrupted: NodeFailed; store: Store;
        Gone         none: Vanished; done: Done; failed: Failed; interrupted: TimeLimit; store: Store;
        running      none: wait; done: Done; failed: wait; interrupted: wait; store: wait;
        ");
    }

    #[test]
    fn a_result_may_become_visible_late() {
        let over = |kind, exit| Over {
            kind,
            exit,
            by: None,
            at: Instant::now(),
        };
        let end = |over: &Over, waited, is_first| {
            let evidence = Evidence {
                result: None,
                over: Some(over),
                waited: Duration::from_secs(waited),
                is_silent: false,
                is_stopped: false,
                is_first,
            };
            name(judge(evidence, BOUNDS, String::new))
        };
        let completed = over(Kind::Completed, 0);
        assert_eq!([89, 90].map(|waited| end(&completed, waited, true)), ["wait", "Unseen"]);
        let lost = over(Kind::NodeFailed, 0);
        assert_eq!([9, 10].map(|waited| end(&lost, waited, true)), ["wait", "NodeFailed"]);
        assert_eq!(end(&lost, 10, false), "NotStarted", "a job behind the one that ran");
        assert_eq!(end(&over(Kind::Failed, 127), 0, true), "NoStore");
        assert_eq!(end(&over(Kind::Failed, 3), 10, true), "NoStore");
        assert_eq!(end(&over(Kind::Failed, -9), 10, true), "Died");
        assert_eq!(end(&over(Kind::Cancelled, 0), 10, false), "Cancelled");
    }

    #[test]
    fn what_slurm_kills_for_memory_is_out_of_memory() {
        let over = Over {
            kind: Kind::Failed,
            exit: -9,
            by: None,
            at: Instant::now(),
        };
        let evidence = Evidence {
            result: None,
            over: Some(&over),
            waited: BOUNDS.unsure,
            is_silent: false,
            is_stopped: false,
            is_first: true,
        };
        let said = "slurmstepd-n2: error: Exceeded job memory limit; slurmstepd-n2: error: *** JOB 2";
        assert_eq!(name(judge(evidence, BOUNDS, || said.to_owned())), "OutOfMemory");
    }
}
