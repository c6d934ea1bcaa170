//! The thread that speaks to Slurm for all jobs of a run.
//!
//! Its state is the batches in flight; each turn takes what has happened (requests, answers of commands,
//! files) and starts at most one command of each sort: a query, and an order that changes something.

mod adopt;
mod cancel;
mod follow;
mod query;
mod submit;

use super::files::{Member, Tail};
use super::judge::Bounds;
use super::pack::{Measured, Needs};
use super::queue::{Cluster, Over, State, TaskId};
use super::tools::{Call, Tools};
use crate::end::{End, Ended};
use crate::settings::Slurm;
use adopt::{Known, Seeker};
use cache::{ActionKey, Store};
use cancel::Stop;
use query::Polling;
use runner_engine::executor::{Limits, Message};
use stages_core::{EventSink, StageEvent};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// A job to run once.
pub(super) struct Request {
    pub key: ActionKey,
    pub fresh: bool,
    /// The kind of stage.
    pub kind: String,
    pub json: Vec<u8>,
    pub needs: Needs,
    /// The expected run time in seconds.
    pub expected: Option<f64>,
    /// True for the first attempt, which may be one that an earlier run has submitted. Later attempts have
    /// tasks of their own.
    pub is_first: bool,
    pub events: Arc<dyn EventSink>,
    pub limits: Limits,
    pub reply: Sender<Ended>,
}

impl Request {
    fn is_cancelled(&self) -> bool {
        self.limits.cancel.is_cancelled() || self.limits.kill.is_cancelled()
    }
}

/// The cluster, and what is run on it.
pub(super) struct Site {
    /// The executor's name.
    pub name: String,
    /// The pipeline's name, plain.
    pub pipeline: String,
    pub settings: Slurm,
    pub store: Store,
    /// This program on the nodes.
    pub program: PathBuf,
    pub tools: Tools,
    pub times: Times,
}

impl Site {
    fn jobs(&self) -> PathBuf {
        self.store.root().join("jobs")
    }
}

/// The driver's intervals and bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The interval of its turns.
    pub tick: Duration,
    /// The time in which requests are collected after the first one.
    pub collect: Duration,
    /// The shortest and the longest interval of `squeue`.
    pub poll: (Duration, Duration),
    /// The interval at which a batch's directory is listed.
    pub list: Duration,
    pub bounds: Bounds,
    /// The time after which submissions to a Slurm that does not answer fail.
    pub away: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            tick: Duration::from_millis(100),
            collect: Duration::from_millis(50),
            poll: (Duration::from_secs(1), Duration::from_secs(15)),
            list: Duration::from_millis(300),
            bounds: Bounds {
                // The attribute cache of NFS lasts for a minute.
                sure: Duration::from_secs(90),
                unsure: Duration::from_secs(10),
            },
            away: Duration::from_secs(30 * 60),
        }
    }
}

/// The jobs of one array.
struct Batch {
    dir: PathBuf,
    /// The array's job id, once known, and since when.
    array: Option<(u64, Instant)>,
    /// The number of the last submission's order, if it is not known whether Slurm has taken it.
    unsure: Option<Instant>,
    needs: Needs,
    tasks: BTreeMap<u32, Task>,
    members: Vec<Member>,
    /// The keys whose jobs succeeded: their files stay until the engine has recorded them.
    succeeded: Vec<ActionKey>,
    /// True if another run has submitted it.
    is_foreign: bool,
    listed: Instant,
}

/// A task of an array.
#[derive(Default)]
struct Task {
    /// Its jobs that have not ended, in their order.
    jobs: Vec<Flying>,
    state: Option<State>,
    node: Option<String>,
    over: Option<Over>,
    /// The number of successful queries in a row that did not list it.
    absent: u32,
    /// True if the accounts are to be asked for it, and once they have been.
    ask: bool,
    asked: bool,
    stop: Option<Stop>,
    /// The time of the last look at its files that used no cached view.
    looked: Option<Instant>,
}

/// A job in flight.
struct Flying {
    key: ActionKey,
    file: String,
    kind: String,
    events: Arc<dyn EventSink>,
    limits: Limits,
    reply: Sender<Ended>,
    tail: Tail,
    steps: Option<(u64, u64)>,
    has_events: bool,
    result: Option<Message>,
}

impl Flying {
    fn is_cancelled(&self) -> bool {
        self.limits.cancel.is_cancelled() || self.limits.kill.is_cancelled()
    }
}

/// A command that changes something.
enum Order {
    /// The submission of a batch.
    Submit(String),
    Cancel,
}

/// The driver.
pub(super) struct Driver {
    site: Site,
    inbox: Receiver<Request>,
    is_open: bool,
    /// The cluster's limits, once known.
    cluster: Option<Cluster>,
    waiting: VecDeque<Request>,
    /// The arrivals of the first and the last waiting request since the last submission.
    arrived: Option<(Instant, Instant)>,
    submitted: Option<(Instant, Duration)>,
    /// The requests of which an earlier run may have a job in the queue.
    seeking: Vec<Seeker>,
    known: Known,
    batches: BTreeMap<String, Batch>,
    /// The names of batches that are given up, and whose arrays are cancelled if they appear.
    superseded: BTreeSet<String>,
    order: Option<(Order, Call)>,
    /// The arguments of the `scancel` commands to run.
    cancels: VecDeque<Vec<String>>,
    /// The submissions to repeat, each not before its time.
    resubmit: VecDeque<(Instant, String)>,
    polling: Polling,
    measured: Measured,
    /// The next job whose events are read.
    turn: (String, u32),
    counter: u32,
    /// The messages that have been told once.
    told: BTreeSet<String>,
    cleaned: Instant,
    spent: Vec<(PathBuf, Vec<ActionKey>)>,
}

/// The interval at which the files of ended batches are removed.
const CLEAN: Duration = Duration::from_secs(5);

impl Driver {
    pub(super) fn new(site: Site, inbox: Receiver<Request>) -> Self {
        let now = Instant::now();
        Self {
            polling: Polling::new(site.times.poll.0),
            site,
            inbox,
            is_open: true,
            cluster: None,
            waiting: VecDeque::new(),
            arrived: None,
            submitted: None,
            seeking: Vec::new(),
            known: Known::default(),
            batches: BTreeMap::new(),
            superseded: BTreeSet::new(),
            order: None,
            cancels: VecDeque::new(),
            resubmit: VecDeque::new(),
            measured: Measured::default(),
            turn: (String::new(), 0),
            counter: 0,
            told: BTreeSet::new(),
            cleaned: now,
            spent: Vec::new(),
        }
    }

    /// Runs until the executor is dropped and nothing is in flight.
    pub(super) fn run(mut self) {
        while self.is_open || self.is_busy() {
            self.receive();
            self.take_order();
            self.take_query();
            self.drop_cancelled();
            self.list();
            self.follow();
            self.conclude();
            self.stop_tasks();
            self.start_order();
            self.start_query();
            self.clean(CLEAN);
        }
        // The engine has recorded its last results.
        self.clean(Duration::ZERO);
    }

    fn is_busy(&self) -> bool {
        let in_flight = self.batches.values().any(|batch| !batch.tasks.is_empty());
        in_flight
            || !self.waiting.is_empty()
            || !self.seeking.is_empty()
            || self.order.is_some()
            || !self.cancels.is_empty()
    }

    /// Takes requests, for at most a tick.
    fn receive(&mut self) {
        let tick = match self.is_busy() {
            true => self.site.times.tick,
            false => CLEAN,
        };
        // A request that waits to be collected with others is submitted in time.
        let tick = if self.waiting.is_empty() {
            tick
        } else {
            tick.min(self.site.times.collect)
        };
        match self.inbox.recv_timeout(tick) {
            Ok(request) => self.accept(request),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                if self.is_open {
                    self.is_open = false;
                } else {
                    std::thread::sleep(tick);
                }
            }
        }
        while let Ok(request) = self.inbox.try_recv() {
            self.accept(request);
        }
    }

    fn accept(&mut self, request: Request) {
        if request.is_first {
            let Some(request) = self.seek(request) else { return };
            self.wait(request);
        } else {
            self.wait(request);
        }
    }

    fn wait(&mut self, request: Request) {
        let now = Instant::now();
        self.arrived = Some((self.arrived.map_or(now, |(first, _)| first), now));
        self.waiting.push_back(request);
    }

    /// Ends requests that are cancelled before they were submitted.
    fn drop_cancelled(&mut self) {
        let end = |request: &Request| {
            if request.is_cancelled() {
                let _ = request.reply.send(Ended::nowhere(End::Interrupted));
            }
            !request.is_cancelled()
        };
        self.waiting.retain(end);
        self.seeking.retain(|seeker| end(&seeker.request));
    }

    /// Tells something once, by the first job in flight or waiting.
    fn tell_once(&mut self, about: &str, message: String, hint: Option<&str>) {
        if self.told.insert(about.to_owned()) {
            self.tell(StageEvent::Warning {
                message,
                hint: hint.map(str::to_owned),
            });
        }
    }

    fn tell(&self, event: StageEvent) {
        let flying = self
            .batches
            .values()
            .flat_map(|batch| batch.tasks.values())
            .flat_map(|task| &task.jobs);
        let events = flying.map(|job| &job.events).next();
        let waiting = self
            .waiting
            .iter()
            .chain(self.seeking.iter().map(|seeker| &seeker.request));
        if let Some(events) = events.or_else(|| waiting.map(|request| &request.events).next()) {
            events.emit(event);
        }
    }

    /// Removes the files of batches that have ended, and whose results the engine has recorded.
    fn clean(&mut self, interval: Duration) {
        if self.cleaned.elapsed() < interval {
            return;
        }
        self.cleaned = Instant::now();
        let (store, spent) = (&self.site.store, &mut self.spent);
        let mut kept = BTreeMap::new();
        for (name, batch) in std::mem::take(&mut self.batches) {
            // The jobs of a foreign batch that this run has not asked for are another run's.
            let is_ours = !batch.is_foreign;
            match batch.tasks.is_empty() && (is_ours || batch.succeeded.len() >= batch.members.len()) {
                true => spent.push((batch.dir, batch.succeeded)),
                false => drop(kept.insert(name, batch)),
            }
        }
        self.batches = kept;
        let is_recorded = |key: &ActionKey| matches!(store.recorded(*key), Ok(Some(_)));
        spent.retain(|(dir, keys)| {
            let is_done = keys.iter().all(is_recorded);
            if is_done {
                let _ = std::fs::remove_dir_all(dir);
            }
            !is_done
        });
    }
}

impl Batch {
    fn id(&self, task: u32) -> Option<TaskId> {
        self.array.map(|(array, _)| TaskId { array, task })
    }
}
