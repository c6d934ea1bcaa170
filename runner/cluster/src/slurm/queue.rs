//! The answers of `squeue`, `sacct` and `scontrol`.

use std::time::Instant;

/// The fields of `squeue -O`. Each is cut at its width, and none of ours reaches it.
pub(super) const FIELDS: &str = "JobArrayID:30|,State:20|,exit_code:10|,NodeList:80|,Comment:60|,Reason:60";

/// The fields of `sacct -o`.
pub(super) const ACCOUNTING: &str = "JobID,State,ExitCode,NodeList";

/// A task of an array: the array's job id, and the task's number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TaskId {
    pub array: u64,
    pub task: u32,
}

impl TaskId {
    fn parse(text: &str) -> Option<Self> {
        let (array, task) = text.split_once('_')?;
        Some(Self {
            array: array.parse().ok()?,
            task: task.parse().ok()?,
        })
    }
}

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}_{}", self.array, self.task)
    }
}

/// The end of a task, in Slurm's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Completed,
    Failed,
    Cancelled,
    TimeLimit,
    OutOfMemory,
    Preempted,
    NodeFailed,
    /// Slurm does not know the task any more.
    Gone,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Pending,
    /// It runs, or its processes are being ended.
    Running,
    Over(Kind),
}

impl State {
    /// The state of this name; a state that is not an end is that of a running job.
    fn parse(name: &str) -> Self {
        Self::Over(match name.split_whitespace().next().unwrap_or_default() {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT" => return Self::Pending,
            "COMPLETED" => Kind::Completed,
            "FAILED" => Kind::Failed,
            "CANCELLED" | "REVOKED" => Kind::Cancelled,
            "TIMEOUT" | "DEADLINE" => Kind::TimeLimit,
            "OUT_OF_MEMORY" => Kind::OutOfMemory,
            "PREEMPTED" => Kind::Preempted,
            "NODE_FAIL" | "BOOT_FAIL" | "LAUNCH_FAILED" => Kind::NodeFailed,
            _ => return Self::Running,
        })
    }
}

/// A task as a query describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub id: TaskId,
    pub state: State,
    /// The exit code, or the signal's number as a negative number.
    pub exit: i32,
    pub node: Option<String>,
    /// The user who cancelled it.
    pub by: Option<String>,
    pub comment: String,
    /// The reason why it waits.
    pub reason: String,
}

fn node(text: &str) -> Option<String> {
    (!text.is_empty() && text != "None assigned" && text != "(null)").then(|| text.to_owned())
}

/// The rows of `squeue` in the format of [`FIELDS`]. Jobs that are not arrays are not ours.
pub(super) fn queue(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.splitn(6, '|').map(str::trim).collect();
        let &[id, state, exit, nodes, comment, reason] = fields.as_slice() else {
            return None;
        };
        let status: i32 = exit.parse().unwrap_or(0);
        let node = node(nodes);
        Some(Row {
            id: TaskId::parse(id)?,
            state: match State::parse(state) {
                // Slurm itself cancels a job that its node cannot start, for a full disk for example.
                State::Over(Kind::Cancelled) if status == 0 && node.is_some() => {
                    State::Over(Kind::NodeFailed)
                }
                state => state,
            },
            exit: match status & 0x7f {
                0 => status >> 8,
                signal => -signal,
            },
            node,
            by: None,
            comment: comment.to_owned(),
            reason: reason.to_owned(),
        })
    };
    text.lines().filter_map(row).collect()
}

/// The rows of `sacct` in the format of [`ACCOUNTING`].
pub(super) fn accounts(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let &[id, state, exit, nodes] = fields.as_slice() else {
            return None;
        };
        let (code, signal) = exit.split_once(':').unwrap_or((exit, "0"));
        let (code, signal): (i32, i32) = (code.parse().unwrap_or(0), signal.parse().unwrap_or(0));
        Some(Row {
            id: TaskId::parse(id)?,
            state: State::parse(state),
            exit: if signal == 0 { code } else { -signal },
            node: node(nodes),
            by: state.strip_prefix("CANCELLED by ").map(|uid| format!("user {uid}")),
            comment: String::new(),
            reason: String::new(),
        })
    };
    text.lines().filter_map(row).collect()
}

/// The end of a task.
#[derive(Clone, Debug)]
pub(super) struct Over {
    pub kind: Kind,
    pub exit: i32,
    pub by: Option<String>,
    /// The time at which it became known.
    pub at: Instant,
}

/// The cluster's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cluster {
    /// The maximum number of tasks of an array.
    pub array: usize,
    /// True if `sacct` knows ended jobs.
    pub accounts: bool,
}

/// The limits in the answer of `scontrol show config`.
pub(super) fn cluster(text: &str) -> Cluster {
    let value = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
        Some(line.split_once('=')?.1.trim())
    };
    let array = value("MaxArraySize").and_then(|size| size.parse().ok()).unwrap_or(1000);
    let storage = value("AccountingStorageType").unwrap_or_default();
    Cluster {
        array: usize::max(array, 1),
        accounts: !storage.is_empty() && !storage.ends_with("none"),
    }
}

/// True if a pending job with this reason waits for its turn, and nothing is wrong with it.
pub(super) fn is_usual(reason: &str) -> bool {
    const USUAL: [&str; 9] = [
        "",
        "None",
        "Priority",
        "Resources",
        "JobArrayTaskLimit",
        "BeginTime",
        "Dependency",
        "Cleaning",
        "Prolog",
    ];
    USUAL.contains(&reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_squeue() {
        // From Slurm 22.05, cut in width.
        let text = "\
7_0   |RUNNING    |0      |s1 |runner:18f2-1 |None
7_1   |PENDING    |0      |   |runner:18f2-1 |Resources
7_2   |FAILED     |32512  |s2 |runner:18f2-1 |NonZeroExitCode
7_3   |CANCELLED  |15     |s2 |runner:18f2-1 |None
7_4   |OUT_OF_MEMORY |9 |s2 |runner:18f2-1 |OutOfMemory
7_5   |COMPLETING |0 |s2 |runner:18f2-1 |None
7_6   |CANCELLED  |0 |s3 |runner:18f2-1 |None
7_7   |CANCELLED  |0 |   |runner:18f2-1 |None
8     |RUNNING    |0 |s2 |(null) |None
7_[9-12]|PENDING  |0 |   |runner:18f2-1 |(null)
slurm_load_jobs error: Unable to contact slurm controller
";
        let all: Vec<String> = queue(text)
            .iter()
            .map(|row| {
                let node = row.node.as_deref().unwrap_or("-");
                format!(
                    "{} {:?} {} {node} {} {}",
                    row.id, row.state, row.exit, row.comment, row.reason
                )
            })
            .collect();
        insta::assert_snapshot!(all.join("\n"), @r"
        7_0 Running 0 s1 runner:18f2-1 None
        7_1 Pending 0 - runner:18f2-1 Resources
        7_2 Over(Failed) 127 s2 runner:18f2-1 NonZeroExitCode
        7_3 Over(Cancelled) -15 s2 runner:18f2-1 None
        7_4 Over(OutOfMemory) -9 s2 runner:18f2-1 OutOfMemory
        7_5 Running 0 s2 runner:18f2-1 None
        7_6 Over(NodeFailed) 0 s3 runner:18f2-1 None
        7_7 Over(Cancelled) 0 - runner:18f2-1 None
        ");
    }

    #[test]
    fn rows_of_sacct() {
        let text = "7_0|COMPLETED|0:0|s1\n7_1|CANCELLED by 1001|0:15|s2\n\
                    7_2|NODE_FAIL|1:0|None assigned\n7_2.batch|x\n";
        let all: Vec<String> = accounts(text)
            .iter()
            .map(|row| format!("{} {:?} {} {:?} {:?}", row.id, row.state, row.exit, row.node, row.by))
            .collect();
        insta::assert_snapshot!(all.join("\n"), @r#"
        7_0 Over(Completed) 0 Some("s1") None
        7_1 Over(Cancelled) -15 Some("s2") Some("user 1001")
        7_2 Over(NodeFailed) 1 None None
        "#);
    }

    #[test]
    fn limits_of_the_cluster() {
        let text = "Configuration data as of 2026\nAccountingStorageType   = accounting_storage/none\n\
                    MaxArraySize            = 1001\n";
        assert_eq!(
            cluster(text),
            Cluster {
                array: 1001,
                accounts: false
            }
        );
        assert!(cluster("AccountingStorageType = accounting_storage/slurmdbd").accounts);
    }
}
