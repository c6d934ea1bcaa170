//! The scheduler: the only thread that holds the state of every stage.

mod ends;
mod look_up;
mod sites;
mod small;
mod threads;

use crate::action::{self, Action, Mode, Outcome};
use crate::cost::{self, CostWarning};
use crate::event::{Event, RunStatus, StageStatus, Stamped};
use crate::executor::{Executor, JobStore, Limits, Request};
use crate::explain;
use crate::grow::{Ended, Grow, Growth};
use crate::key::Recipe;
use crate::options::{Options, Run};
use crate::plan;
use crate::prepare::{Prepared, prepare, reads_files};
use crate::resources::{Pool, Share};
use crate::summary::Summary;
use cache::{ActionKey, ActionLock, ArtifactDigest, Hit, Store};
use runner_pipeline::{Node, Pipeline};
use sites::Site;
use stages_core::{EventSink, StageError, StageEvent};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};
use threads::in_thread;

/// The interval of the checks for cancellation, and for the locks of actions held by other processes.
const TICK: Duration = Duration::from_millis(100);

enum Message {
    Prepared(usize, Result<Prepared, StageError>),
    Asked(usize, Box<Prepared>, cache::Result<Option<Hit>>),
    Event(usize, StageEvent),
    Ended(usize, Outcome),
}

struct Sink {
    node: usize,
    sender: Sender<Message>,
}

impl EventSink for Sink {
    fn emit(&self, event: StageEvent) {
        let _ = self.sender.send(Message::Event(self.node, event));
    }
}

/// The maximum number of events per report.
const BATCH: usize = 64;

/// The state of a stage.
#[derive(Default)]
enum State {
    /// Some of the stage's needs are not done yet.
    #[default]
    Waiting,
    /// The stage's action key is being computed, or looked up in the remote store.
    Preparing,
    /// The stage can start when resources are free and no other holder has the lock of its action.
    Ready(Box<Prepared>),
    /// The stage is running.
    Running(Box<Prepared>, Share, ActionLock),
    /// The stage has ended.
    Over(StageStatus),
}

#[derive(Default)]
struct Slot {
    chosen: bool,
    /// If set, a failure of the stage is a result, which stops nothing else.
    may_fail: bool,
    state: State,
    /// The number of the stage's needs that have not ended.
    missing: usize,
    /// The stages that need this stage.
    waiters: Vec<usize>,
    /// The stage's result, once available.
    hit: Option<Hit>,
    key: Option<ActionKey>,
    /// The site on which the stage runs; `None` for this machine.
    site: Option<usize>,
    forced: bool,
    /// If set, the stage's cached result is recomputed for comparison.
    to_check: bool,
    /// The cached result to compare the recomputed result with.
    check: Option<Hit>,
    retries: u32,
    /// The number of times that the stage ran again because of damage that it found.
    heals: u32,
    /// The number of rejected remote blobs at the time of the last recovery.
    refusals: usize,
    /// True if it has been reported that another process holds the lock of the stage's action.
    said: bool,
    try_at: Option<Instant>,
    began: Option<Instant>,
    /// The bytes that the stage reads, where its work grows with them and it is ready.
    bytes: Option<u64>,
}

impl Slot {
    fn output(&self, name: &str) -> Option<&ArtifactDigest> {
        self.hit.as_ref()?.outputs.get(name)
    }
}

struct Scheduler<'a, 'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    /// The pipeline; our own once stages were added to it.
    pipeline: Cow<'env, Pipeline>,
    store: &'env Store,
    executor: &'env dyn Executor,
    sites: Vec<Site<'env>>,
    /// The rules of placement that have been reported: the stage and the reason.
    told: BTreeSet<(String, &'static str)>,
    options: &'env Options,
    limits: &'env Limits,
    report: &'a mut dyn FnMut(Vec<Stamped>),
    grow: Option<&'a mut dyn Grow>,
    /// True while `grow` may add stages.
    growing: bool,
    /// The nodes that were added.
    added: Vec<usize>,
    /// True until `grow` is asked.
    is_first: bool,
    /// The stages that have ended since `grow` was asked.
    ended: Vec<Ended>,
    /// Events not reported yet: they are sent in batches, before the scheduler blocks.
    batch: Vec<Stamped>,
    sender: Sender<Message>,
    slots: Vec<Slot>,
    pool: Pool,
    open: usize,
    to_prepare: BTreeSet<usize>,
    /// The stages to look up in the remote store.
    to_ask: VecDeque<(usize, Box<Prepared>)>,
    asking: usize,
    /// The stages that are ready to run on this machine.
    ready: BTreeSet<usize>,
    running: BTreeSet<usize>,
    /// The stages that retry later, because another stage or process holds the lock of their action.
    delayed: BTreeSet<usize>,
    /// If set, no new stage starts.
    stopping: bool,
    /// True if all stages that were waiting when the run began to stop have been skipped.
    skipped: bool,
    failed: bool,
    machine_failed: bool,
}

/// Runs the chosen nodes of a pipeline, and those that `grow` adds. `report` receives events in order, in
/// batches.
pub fn run(run: &Run<'_>, grow: Option<&mut dyn Grow>, report: &mut dyn FnMut(Vec<Stamped>)) -> Summary {
    let &Run {
        pipeline,
        chosen,
        store,
        executor,
        others,
        options,
        control,
    } = run;
    let started = Instant::now();
    let first = Stamped::now(Event::RunStarted {
        run: options.run.clone(),
        pipeline: pipeline.name.clone(),
        file: pipeline.path(),
        params: pipeline.params.clone(),
        stages: chosen.iter().map(|&i| pipeline.nodes[i].id.clone()).collect(),
        program: options.program.clone(),
        night: options.night.clone(),
    });
    let limits = Limits {
        cancel: control.cancel.clone(),
        kill: control.kill.clone(),
        timeout: None,
        grace: options.grace,
    };
    // A source file may take minutes to hash.
    let store = &store.clone().with_interrupt({
        let control = control.clone();
        move || control.cancel.is_cancelled() || control.kill.is_cancelled()
    });
    let (sender, receiver) = channel();
    let ended = std::thread::scope(|scope| {
        let mut scheduler = Scheduler {
            scope,
            pipeline: Cow::Borrowed(pipeline),
            store,
            executor,
            sites: Site::all(others, options),
            told: BTreeSet::new(),
            options,
            limits: &limits,
            report,
            growing: grow.is_some(),
            grow: match grow {
                Some(grow) => Some(&mut *grow),
                None => None,
            },
            ended: Vec::new(),
            added: Vec::new(),
            is_first: true,
            batch: vec![first],
            sender,
            slots: slots(pipeline, chosen, options),
            pool: Pool::new(options.jobs, options.threads, options.memory),
            open: chosen.len(),
            to_prepare: BTreeSet::new(),
            to_ask: VecDeque::new(),
            asking: 0,
            ready: BTreeSet::new(),
            running: BTreeSet::new(),
            delayed: BTreeSet::new(),
            stopping: false,
            skipped: false,
            failed: false,
            machine_failed: false,
        };
        let free = chosen.iter().filter(|&&i| scheduler.slots[i].missing == 0);
        scheduler.to_prepare = free.copied().collect();
        loop {
            scheduler.advance();
            while scheduler.grow() {
                scheduler.advance();
            }
            if scheduler.open == 0 && (scheduler.stopping || !scheduler.growing) {
                break;
            }
            scheduler.flush_events();
            match receiver.recv_timeout(TICK) {
                Ok(message) => scheduler.take(message),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            for message in receiver.try_iter() {
                scheduler.take(message);
            }
        }
        scheduler.flush_events();
        let Scheduler {
            slots,
            machine_failed,
            pipeline,
            growing,
            added,
            ..
        } = scheduler;
        (slots, machine_failed, pipeline, growing, added)
    });
    let (slots, machine_failed, pipeline, is_cut, added) = ended;
    let all = || chosen.iter().chain(&added).copied();
    let status = |i: usize| match slots[i].state {
        State::Over(status) => status,
        _ => StageStatus::Skipped,
    };
    let mut summary = Summary {
        status: RunStatus::Done,
        machine_failed,
        seconds: started.elapsed().as_secs_f64(),
        stages: all().map(|i| (pipeline.nodes[i].id.clone(), status(i))).collect(),
        grown: None,
    };
    let is_cancelled = control.cancel.is_cancelled() || control.kill.is_cancelled();
    let is_unfinished = |i: usize| {
        let may_fail = slots[i].may_fail && !is_cancelled;
        matches!(status(i), StageStatus::Failed | StageStatus::Skipped) && !may_fail
    };
    let unfinished = is_cut || all().any(is_unfinished);
    if unfinished && is_cancelled {
        summary.status = RunStatus::Interrupted;
    } else if unfinished {
        summary.status = RunStatus::Failed;
    }
    if let Cow::Owned(pipeline) = pipeline {
        summary.grown = Some(pipeline);
    }
    report(vec![Stamped::now(Event::RunFinished {
        run: options.run.clone(),
        status: summary.status,
        seconds: summary.seconds,
        cached: summary.count(StageStatus::Cached),
        ran: summary.count(StageStatus::Ran),
        failed: summary.count(StageStatus::Failed),
        skipped: summary.count(StageStatus::Skipped),
    })]);
    summary
}

fn slots(pipeline: &Pipeline, chosen: &[usize], options: &Options) -> Vec<Slot> {
    let mut slots: Vec<Slot> = pipeline
        .nodes
        .iter()
        .enumerate()
        .map(|(i, node)| Slot {
            forced: options.force.contains(&i),
            to_check: options.check.contains(&i),
            retries: node.retries,
            ..Slot::default()
        })
        .collect();
    for &i in chosen {
        slots[i].chosen = true;
        for need in pipeline.graph.needs(i) {
            slots[i].missing += 1;
            slots[need].waiters.push(i);
        }
    }
    slots
}

impl Scheduler<'_, '_, '_> {
    fn node(&self, i: usize) -> &Node {
        &self.pipeline.nodes[i]
    }

    fn id(&self, i: usize) -> String {
        self.pipeline.nodes[i].id.clone()
    }

    fn emit(&mut self, event: Event) {
        self.batch.push(Stamped::now(event));
        if self.batch.len() >= BATCH {
            self.flush_events();
        }
    }

    fn emit_stage(&mut self, i: usize, event: StageEvent) {
        self.emit(Event::Stage {
            stage: self.id(i),
            event,
        });
    }

    /// Reports the pending events.
    fn flush_events(&mut self) {
        if !self.batch.is_empty() {
            (self.report)(std::mem::take(&mut self.batch));
        }
    }

    /// Asks for further stages if some have ended; true if stages are added.
    fn grow(&mut self) -> bool {
        let is_asked = self.is_first || !self.ended.is_empty();
        let Some(grow) = self.grow.as_mut().filter(|_| is_asked && !self.stopping) else {
            return false;
        };
        self.is_first = false;
        let ended = std::mem::take(&mut self.ended);
        let Growth {
            chosen,
            nodes,
            resolved,
            may_fail,
            notes,
            stop,
        } = grow.grow(&self.pipeline, &ended);
        self.stopping |= stop;
        notes.into_iter().for_each(|line| self.emit(Event::Note { line }));
        let first = self.slots.len();
        let added: Vec<usize> = chosen.into_iter().chain(first..first + nodes.len()).collect();
        if added.is_empty() {
            self.growing = self.open > 0;
            return false;
        }
        self.slots.extend(nodes.iter().map(|node| Slot {
            may_fail,
            retries: node.retries,
            ..Slot::default()
        }));
        if !nodes.is_empty() {
            self.pipeline.to_mut().extend(nodes);
        }
        self.emit(Event::StagesAdded {
            stages: added.iter().map(|&i| self.id(i)).collect(),
            resolved,
        });
        self.open += added.len();
        added.iter().for_each(|&i| self.slots[i].chosen = true);
        for &i in &added {
            let needs: Vec<usize> = self.pipeline.graph.needs(i).collect();
            for need in needs {
                if !matches!(
                    self.slots[need].state,
                    State::Over(StageStatus::Cached | StageStatus::Ran)
                ) {
                    self.slots[i].missing += 1;
                    self.slots[need].waiters.push(i);
                }
            }
            if self.slots[i].missing == 0 {
                self.to_prepare.insert(i);
            }
        }
        self.added.extend(added);
        true
    }

    /// Performs all steps that do not block.
    fn advance(&mut self) {
        if self.limits.is_cancelled() {
            self.stopping = true;
            if let Some(upstream) = self.store.upstream() {
                upstream.stop_reads();
            }
        }
        while let Some(i) = self.to_prepare.pop_first() {
            self.prepare(i);
        }
        self.ask_remote();
        if self.stopping {
            self.skip_rest();
        } else {
            self.start_ready();
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Prepared(i, Ok(prepared)) => self.prepared(i, prepared),
            Message::Prepared(i, Err(err)) => self.fail(i, err),
            Message::Asked(i, prepared, hit) => self.asked(i, prepared, hit),
            Message::Event(i, event) => self.emit_stage(i, event),
            Message::Ended(i, outcome) => self.ended(i, outcome),
        }
    }

    /// Computes the key of a stage whose inputs are known: here, or in a thread if files have to be read.
    fn prepare(&mut self, i: usize) {
        let (store, reread) = (self.store, self.options.verify_inputs);
        let node = &self.pipeline.nodes[i];
        let mut inputs: BTreeMap<String, Vec<ArtifactDigest>> = BTreeMap::new();
        for (port, refs) in &node.needs {
            for need in refs {
                match self.slots[need.node].output(&need.output) {
                    Some(&digest) => inputs.entry(port.clone()).or_default().push(digest),
                    None => {
                        let message =
                            format!("`{}` produced no output `{}`", self.node(need.node).id, need.output);
                        return self.fail(i, StageError::new(message));
                    }
                }
            }
        }
        node.add_earlier(&mut inputs);
        self.slots[i].state = State::Preparing;
        self.slots[i].began = Some(Instant::now());
        let events = Sink {
            node: i,
            sender: self.sender.clone(),
        };
        if reads_files(node) {
            let node = node.clone();
            in_thread(
                self.scope,
                &self.sender,
                move || Message::Prepared(i, prepare(&node, inputs, store, reread, &events)),
                move |err| Message::Prepared(i, Err(err)),
            );
        } else {
            match prepare(node, inputs, store, reread, &events) {
                Ok(prepared) => self.prepared(i, prepared),
                Err(err) => self.fail(i, err),
            }
        }
    }

    /// Starts ready stages, in the pipeline's order, while resources are free.
    fn start_ready(&mut self) {
        for site in 0..self.sites.len() {
            self.start_at(site);
        }
        let now = Instant::now();
        let is_early = |slot: &Slot| slot.try_at.is_some_and(|at| at > now);
        let early = self.delayed.iter().filter(|&&i| is_early(&self.slots[i])).count();
        let mut waiting = self.ready.len().saturating_sub(early);
        let small = self.start_small(waiting);
        waiting = waiting.saturating_sub(small.len());
        let mut next = 0;
        while let Some(&i) = self.ready.range(next..).next() {
            next = i + 1;
            if self.pool.is_full() || self.stopping {
                return;
            }
            if is_early(&self.slots[i]) || small.contains(&i) {
                continue;
            }
            let Some(share) = self.pool.take(&self.pipeline.nodes[i], waiting) else {
                // A smaller stage further on may fit.
                continue;
            };
            waiting = waiting.saturating_sub(1);
            if !self.try_start(i, share) {
                self.pool.give(share);
            }
        }
    }

    /// Starts a ready stage, unless it has ended meanwhile, or the lock of its action is held elsewhere; true
    /// if it was started.
    fn try_start(&mut self, i: usize, share: Share) -> bool {
        let State::Ready(prepared) = &self.slots[i].state else {
            return false;
        };
        let prepared = prepared.clone();
        match self.lock(i, &prepared) {
            Ok(Some(lock)) => {
                self.not_ready(i);
                self.start(i, prepared, share, lock);
                true
            }
            Ok(None) => false,
            Err(err) => {
                self.fail(i, err);
                false
            }
        }
    }

    /// Acquires the lock of a ready stage's action; `None` if the stage has ended meanwhile, or the lock is
    /// held elsewhere.
    fn lock(&mut self, i: usize, prepared: &Prepared) -> Result<Option<ActionLock>, StageError> {
        let Some(lock) = self.store.try_lock(prepared.key)? else {
            let is_same =
                |state: &State| matches!(state, State::Running(other, ..) if other.key == prepared.key);
            let ours = self.running.iter().any(|&other| is_same(&self.slots[other].state));
            self.delayed.insert(i);
            let slot = &mut self.slots[i];
            slot.try_at = Some(Instant::now() + TICK);
            if !ours && !slot.said {
                slot.said = true;
                let event = Event::StageWaiting {
                    stage: self.pipeline.nodes[i].id.clone(),
                    key: prepared.key,
                };
                self.emit(event);
            }
            return Ok(None);
        };
        // The previous holder may have finished between the look-up and the lock.
        Ok(if self.look_up(i, prepared) { None } else { Some(lock) })
    }

    fn start(&mut self, i: usize, prepared: Box<Prepared>, share: Share, lock: ActionLock) {
        let (store, options) = (self.store, self.options);
        let node = self.pipeline.nodes[i].clone();
        let site = self.slots[i].site.map(|site| &self.sites[site]);
        let here = self.executor;
        let executor = site.map_or(here, |site| site.executor);
        let job_store = site.map_or_else(|| JobStore::beside(store), |site| site.properties.store.clone());
        let defaults = site.map(|site| &site.properties);
        let site = site.map(|site| site.name);
        let last = options.past.last(&node.id);
        let reason = self.reason(i, &prepared, last.as_ref());
        // The record only serves as a hint: an unreadable record is treated as a missing one.
        let record = last.and_then(|(_, key)| store.recorded(key).ok()?);
        let old = record.as_ref().and_then(|record| Recipe::from_json(&record.recipe));
        let took = record.as_ref().map(|record| record.seconds);
        let expected = cost::expected(&node, old.as_ref(), took);
        let request = Request {
            memory: node.resources.memory.or(defaults.and_then(|defaults| defaults.memory)),
            gpus: node.resources.gpus,
            time: node.resources.time.or(defaults.and_then(|defaults| defaults.time)),
            timeout: node.timeout,
            expected_seconds: expected,
        };
        self.emit(Event::StageStarted {
            stage: node.id.clone(),
            key: prepared.key,
            threads: share.threads,
            reason,
            expected_seconds: expected,
        });
        // The cached share is looked up only if the full cost would give a warning.
        let dear = cost::warning(&node, old.as_ref(), took, 1.0).and_then(|_| {
            let share = plan::cached_share(&node, &prepared, store).ok().flatten();
            cost::warning(&node, old.as_ref(), took, plan::left_of(share.as_ref()))
        });
        if let Some(CostWarning { message, hint }) = dear {
            let hint = Some(hint);
            self.emit_stage(i, StageEvent::Warning { message, hint });
        }
        let events: Arc<dyn EventSink> = Arc::new(Sink {
            node: i,
            sender: self.sender.clone(),
        });
        let limits = Limits {
            timeout: node.timeout,
            ..self.limits.clone()
        };
        let running = prepared.clone();
        // A stage forced by name is computed from scratch; one that repairs another stage's input may use
        // memos and checkpoints.
        let mode = if self.slots[i].check.is_some() {
            Mode::Check
        } else if self.slots[i].forced && options.force.contains(&i) {
            Mode::Fresh
        } else {
            Mode::Usual
        };
        self.slots[i].began = Some(Instant::now());
        self.slots[i].state = State::Running(prepared, share, lock);
        self.running.insert(i);
        self.delayed.remove(&i);
        let work = move || {
            let action = Action {
                node: &node,
                prepared: &running,
                threads: share.threads,
                mode,
                store,
                executor,
                here,
                site,
                job_store,
                request,
                options,
            };
            Message::Ended(i, action::run(&action, &limits, &events))
        };
        in_thread(self.scope, &self.sender, work, move |err| {
            Message::Ended(i, Outcome::Failed(err))
        });
    }

    /// The reason why a stage is not cached, for people.
    fn reason(&self, i: usize, prepared: &Prepared, last: Option<&(String, ActionKey)>) -> String {
        if self.slots[i].forced {
            return "forced".to_owned();
        }
        if self.slots[i].check.is_some() {
            return "determinism check".to_owned();
        }
        explain::reason(self.store, last, prepared)
    }
}
