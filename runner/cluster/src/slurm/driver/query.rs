//! The states of tasks: one `squeue` for all jobs, and one `sacct` for those that it does not list.

use super::super::queue::{
    ACCOUNTING, FIELDS, Kind, Over, Row, State, TaskId, accounts, cluster, is_usual, queue,
};
use super::super::tools::{Answer, Call, is_transient};
use super::submit::batch_name;
use super::{Driver, Task};
use stages_core::error::Cause;
use stages_core::{StageError, StageEvent};
use std::collections::{BTreeSet, HashMap};
use std::process::Command;
use std::time::{Duration, Instant};

/// The number of successful queries in a row without a task, after which Slurm does not know it any more.
const ABSENT: u32 = 2;

/// The maximum number of tasks in a question to the accounts.
const ASKED: usize = 500;

/// A query in progress.
enum Query {
    Config,
    Queue,
    Accounts(BTreeSet<TaskId>),
}

/// The queries, and their intervals.
pub(super) struct Polling {
    call: Option<(Query, Call)>,
    /// The shortest interval.
    least: Duration,
    interval: Duration,
    next: Instant,
    started: Instant,
    failing: Option<Instant>,
}

impl Polling {
    pub(super) fn new(least: Duration) -> Self {
        let now = Instant::now();
        Self {
            call: None,
            least,
            interval: least,
            next: now,
            started: now,
            failing: None,
        }
    }

    /// Asks again as soon as the shortest interval allows.
    pub(super) fn soon(&mut self) {
        if self.failing.is_none() {
            self.interval = self.least;
            self.next = self.next.min(self.started + self.least).max(Instant::now());
        }
    }

    /// The time for which Slurm has not answered.
    pub(super) fn silent_for(&self) -> Duration {
        match self.failing {
            Some(since) => since.elapsed(),
            None => Duration::ZERO,
        }
    }
}

impl Driver {
    /// Starts the next query that is due.
    pub(super) fn start_query(&mut self) {
        if self.polling.call.is_some() || Instant::now() < self.polling.next {
            return;
        }
        let tools = &self.site.tools;
        let asked = match self.cluster {
            Some(cluster) if cluster.accounts => self.to_ask(),
            _ => BTreeSet::new(),
        };
        let (query, command) = if self.cluster.is_none() {
            if self.waiting.is_empty() && self.seeking.is_empty() {
                return;
            }
            let mut command = tools.command("scontrol");
            command.args(["show", "config"]);
            (Query::Config, command)
        } else if !asked.is_empty() {
            let mut command = tools.command("sacct");
            let ids: Vec<String> = asked.iter().map(TaskId::to_string).collect();
            command.args(["-n", "-P", "-X", "-o", ACCOUNTING, "-j", &ids.join(",")]);
            (Query::Accounts(asked), command)
        } else if self.has_questions() {
            let mut command: Command = tools.command("squeue");
            command.args(["-h", "-r", "-t", "all", "--me", "-O", FIELDS]);
            (Query::Queue, command)
        } else {
            return;
        };
        match Call::start(command) {
            Ok(call) => {
                self.polling.started = call.started;
                self.polling.call = Some((query, call));
            }
            Err(err) => {
                let answer = Answer {
                    out: String::new(),
                    error: Some(format!("cannot be started: {err}")),
                    started: Instant::now(),
                };
                self.away(&answer);
            }
        }
    }

    /// True if Slurm's queue would tell something: the ends of tasks, or whether a submission was taken.
    fn has_questions(&self) -> bool {
        let mut batches = self.batches.values();
        let is_open = batches.any(|batch| {
            let tells = |task: &Task| task.over.is_none();
            batch.unsure.is_some() || batch.array.is_some() && batch.tasks.values().any(tells)
        });
        is_open || !self.seeking.is_empty()
    }

    fn to_ask(&self) -> BTreeSet<TaskId> {
        let all = self.batches.values().flat_map(|batch| {
            let asks = batch
                .tasks
                .iter()
                .filter(|(_, task)| task.ask && !task.asked && task.over.is_none());
            asks.filter_map(|(number, _)| batch.id(*number))
        });
        all.take(ASKED).collect()
    }

    /// Takes the answer of a query.
    pub(super) fn take_query(&mut self) {
        let Some((_, call)) = &mut self.polling.call else {
            return;
        };
        let Some(answer) = call.poll() else { return };
        let Some((query, _)) = self.polling.call.take() else {
            return;
        };
        let took = answer.started.elapsed();
        if answer.error.is_some() && !matches!(query, Query::Accounts(_)) {
            self.away(&answer);
            return;
        }
        if self.polling.failing.take().is_some() {
            self.told.remove("away");
            self.polling.interval = self.site.times.poll.0;
            self.tell(StageEvent::Log {
                line: "Slurm answers again".to_owned(),
            });
        }
        match query {
            Query::Config => {
                self.cluster = Some(cluster(&answer.out));
                self.polling.next = Instant::now();
                return;
            }
            // A question that fails is not asked again: the queue has to do.
            Query::Accounts(asked) => self.accounted(&asked, accounts(&answer.out)),
            Query::Queue => {
                let (least, most) = self.site.times.poll;
                self.polling.interval = match self.queued(queue(&answer.out), answer.started) {
                    true => least,
                    false => (self.polling.interval * 3 / 2).min(most),
                };
            }
        }
        // A slow controller is asked less often.
        let pause = self
            .polling
            .interval
            .max(took * 10)
            .min(self.site.times.poll.1.max(took * 10));
        self.polling.next = Instant::now() + pause;
    }

    /// Slurm did not answer.
    pub(super) fn away(&mut self, answer: &Answer) {
        let since = *self.polling.failing.get_or_insert_with(Instant::now);
        let (least, most) = self.site.times.poll;
        self.polling.interval = (self.polling.interval * 2).clamp(least, most);
        self.polling.next = Instant::now() + self.polling.interval;
        let error = answer.error.clone().unwrap_or_default();
        self.tell_once(
            "away",
            format!("Slurm does not answer: {error}"),
            Some("jobs that it has go on, and the rest is submitted once it answers"),
        );
        // What another time cannot mend is not waited for.
        let bound = if is_transient(&error) || self.cluster.is_some() {
            self.site.times.away
        } else {
            self.site.times.away.min(Duration::from_secs(60))
        };
        if since.elapsed() > bound {
            let error = StageError {
                cause: Cause::Store,
                ..StageError::new(format!("Slurm does not answer: {error}"))
                    .hint("see `sinfo`; the next run goes on from here")
            };
            self.refuse_waiting(&error);
            let unsent = self.batches.iter().filter(|(_, batch)| batch.array.is_none());
            let unsent: Vec<String> = unsent.map(|(name, _)| name.clone()).collect();
            for name in unsent {
                self.refuse(&name, &format!("Slurm does not answer: {}", error.message));
                self.superseded.insert(name);
            }
        }
    }

    /// Takes the queue, as it was at some time after `asked`; true if something has changed.
    fn queued(&mut self, rows: Vec<Row>, asked: Instant) -> bool {
        let mut arrays: HashMap<String, BTreeSet<u64>> = HashMap::new();
        for row in rows.iter().filter(|row| !matches!(row.state, State::Over(_))) {
            if let Some(name) = batch_name(&row.comment) {
                arrays.entry(name.to_owned()).or_default().insert(row.id.array);
            }
        }
        let rows: HashMap<TaskId, Row> = rows.into_iter().map(|row| (row.id, row)).collect();
        // Submissions without an answer.
        let unsure = self
            .batches
            .iter()
            .filter(|(_, batch)| batch.unsure.is_some_and(|at| at < asked));
        let unsure: Vec<String> = unsure.map(|(name, _)| name.clone()).collect();
        for name in unsure {
            let listed = rows.values().find(|row| batch_name(&row.comment) == Some(&name));
            match listed.map(|row| row.id.array) {
                Some(array) => self.has_array(&name, array),
                None => self.again(&name),
            }
        }
        // Arrays that were taken twice, or too late.
        for (name, arrays) in &arrays {
            for &array in arrays {
                let is_other = match self.batches.get(name) {
                    Some(batch) => batch.array.is_some_and(|(ours, _)| ours != array),
                    None => self.superseded.contains(name),
                };
                if is_other && self.told.insert(format!("cancelled {array}")) {
                    self.cancels.push_back(vec![array.to_string()]);
                }
            }
        }
        self.found(&rows, &arrays, asked);
        let accounts = self.cluster.is_some_and(|cluster| cluster.accounts);
        let (mut changed, mut reasons) = (false, Vec::new());
        for batch in self.batches.values_mut() {
            let Some((array, _)) = batch.array.filter(|(_, since)| *since < asked) else {
                continue;
            };
            for (&task, state) in batch.tasks.iter_mut().filter(|(_, task)| task.over.is_none()) {
                match rows.get(&TaskId { array, task }) {
                    Some(row) => changed |= state.update(row, accounts),
                    None => {
                        state.absent += 1;
                        state.ask = state.absent >= ABSENT;
                        if state.absent >= ABSENT && (!accounts || state.asked) {
                            state.gone();
                        }
                        changed = true;
                    }
                }
                if let Some(row) = rows.get(&TaskId { array, task })
                    && row.state == State::Pending
                    && !is_usual(&row.reason)
                {
                    reasons.push((row.reason.clone(), row.id));
                }
            }
        }
        for (reason, id) in reasons {
            self.tell_once(
                &format!("reason {reason}"),
                format!("job {id} waits in the queue of Slurm: {reason}"),
                Some("`scontrol show job` tells more; a job that can never start waits for ever"),
            );
        }
        changed
    }

    /// Takes the accounts of tasks.
    fn accounted(&mut self, asked: &BTreeSet<TaskId>, rows: Vec<Row>) {
        let rows: HashMap<TaskId, Row> = rows.into_iter().map(|row| (row.id, row)).collect();
        for batch in self.batches.values_mut() {
            let Some((array, _)) = batch.array else { continue };
            for (&task, state) in &mut batch.tasks {
                let id = TaskId { array, task };
                if !asked.contains(&id) || state.over.is_some() {
                    continue;
                }
                state.asked = true;
                match rows.get(&id) {
                    Some(row) if matches!(row.state, State::Over(_)) => {
                        state.update(row, false);
                    }
                    // It is asked for again by the queue.
                    Some(_) => {}
                    None => match state.state {
                        Some(State::Over(kind)) => state.ends(kind, 0, None),
                        _ => state.gone(),
                    },
                }
            }
        }
    }
}

impl Task {
    /// Takes a row; true if the state has changed. Who cancelled a task is asked of the accounts first, if
    /// any.
    fn update(&mut self, row: &Row, accounts: bool) -> bool {
        self.absent = 0;
        let changed = self.state != Some(row.state);
        self.state = Some(row.state);
        if row.node.is_some() {
            self.node.clone_from(&row.node);
        }
        if let State::Over(kind) = row.state {
            if kind == Kind::Cancelled && accounts && self.stop.is_none() && !self.asked {
                self.ask = true;
            } else {
                self.ends(kind, row.exit, row.by.clone());
            }
        }
        changed
    }

    /// Slurm does not know the task.
    pub(super) fn gone(&mut self) {
        self.ends(Kind::Gone, 0, None);
    }

    fn ends(&mut self, kind: Kind, exit: i32, by: Option<String>) {
        self.over = Some(Over {
            kind,
            exit,
            by,
            at: Instant::now(),
        });
    }
}
