//! Submission: jobs with equal requests as one array.

use super::super::files::{self, NewJob, write_whole};
use super::super::pack::{clock, limit, tasks, warning};
use super::super::tools::{Answer, Call, is_transient};
use super::{Batch, Driver, Flying, Order, Request, Task};
use crate::end::{End, Ended};
use stages_core::error::Cause;
use stages_core::{StageError, StageEvent};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The maximum time for which requests are collected while more arrive.
const COLLECT: Duration = Duration::from_millis(500);

/// The longest pause between submissions.
const PAUSE: Duration = Duration::from_secs(2);

/// The wait before a submission that failed is repeated.
const AGAIN: Duration = Duration::from_secs(5);

impl Driver {
    /// Takes the answer of an order.
    pub(super) fn take_order(&mut self) {
        let Some((_, call)) = &mut self.order else { return };
        let Some(answer) = call.poll() else { return };
        match self.order.take() {
            Some((Order::Submit(name), _)) => self.taken(&name, &answer),
            Some((Order::Cancel, _)) => {
                let is_away = answer.error.as_ref().is_some_and(|error| is_transient(error));
                if is_away {
                    self.away(&answer);
                }
            }
            None => {}
        }
    }

    /// Starts the next order, if none is in progress: cancellations come first.
    pub(super) fn start_order(&mut self) {
        if self.order.is_some() {
            return;
        }
        if let Some(arguments) = self.cancels.pop_front() {
            let mut command = self.site.tools.command("scancel");
            command.args(arguments);
            if let Ok(call) = Call::start(command) {
                self.order = Some((Order::Cancel, call));
            }
            return;
        }
        if let Some((at, _)) = self.resubmit.front()
            && *at <= Instant::now()
            && let Some((_, name)) = self.resubmit.pop_front()
        {
            self.submit(name);
            return;
        }
        if self.is_collected()
            && let Some(name) = self.collect()
        {
            self.submit(name);
        }
    }

    /// True if the waiting requests are to be submitted now rather than collected with others.
    fn is_collected(&self) -> bool {
        let collect = self.site.times.collect;
        let is_quiet =
            |(first, last): (Instant, Instant)| last.elapsed() >= collect || first.elapsed() >= COLLECT;
        // Many small arrays would cost the controller more than they gain: where more is in flight, and
        // where it takes longer, more is collected.
        let pause = |took: Duration| {
            let busy = Duration::from_millis(5) * u32::try_from(self.in_flight()).unwrap_or(u32::MAX);
            busy.max(took * 10).clamp(collect, PAUSE)
        };
        !self.waiting.is_empty()
            && self.arrived.is_none_or(is_quiet)
            && self.submitted.is_none_or(|(at, took)| at.elapsed() >= pause(took))
    }

    /// The number of tasks that are in the queue or run.
    fn in_flight(&self) -> usize {
        let open = |batch: &Batch| batch.tasks.values().filter(|task| task.over.is_none()).count();
        self.batches.values().map(open).sum()
    }

    /// The number of tasks that may be submitted.
    fn free(&self) -> usize {
        self.site.settings.max_jobs.saturating_sub(self.in_flight())
    }

    /// Writes the next batch, of the requests that are like the first one.
    fn collect(&mut self) -> Option<String> {
        self.arrived = None;
        let cluster = self.cluster?;
        let room = usize::min(self.free(), cluster.array);
        let first = self.waiting.front().filter(|_| room > 0)?;
        let (needs, is_first) = (first.needs.clone(), first.is_first);
        let (alike, others): (Vec<Request>, Vec<Request>) = self
            .waiting
            .drain(..)
            .partition(|request| request.needs == needs && request.is_first == is_first);
        let pack = match needs.time {
            Some(time) => self.site.settings.pack().min(time),
            None => self.site.settings.pack(),
        };
        let expected = |request: &Request| {
            let time = request.expected.or_else(|| self.measured.mean(&request.kind));
            time.filter(|_| is_first)
        };
        let sizes = tasks(&alike.iter().map(expected).collect::<Vec<_>>(), pack, room);
        let mut alike = alike.into_iter();
        let groups: Vec<Vec<Request>> =
            sizes.iter().map(|&size| alike.by_ref().take(size).collect()).collect();
        self.waiting = alike.chain(others).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.counter += 1;
        let name = format!("{:016x}-{}-{}", now.as_nanos() as u64, std::process::id(), self.counter);
        let dir = self.site.jobs().join(&name);
        fn new(request: &Request) -> NewJob<'_> {
            NewJob {
                key: request.key,
                fresh: request.fresh,
                json: &request.json,
            }
        }
        let jobs: Vec<Vec<NewJob<'_>>> = groups.iter().map(|group| group.iter().map(new).collect()).collect();
        let members = match files::write(&dir, &jobs, &self.site.program) {
            Ok(members) => members,
            Err(err) => {
                let error = StageError {
                    cause: Cause::Store,
                    ..StageError::new(format!("cannot write the jobs into `{}`: {err}", dir.display()))
                };
                refuse(groups.into_iter().flatten().map(|request| request.reply), &error);
                return None;
            }
        };
        let mut files = members.iter().map(|member| member.file.clone());
        let mut tasks = BTreeMap::new();
        for (number, group) in (0..).zip(groups) {
            let jobs = group
                .into_iter()
                .zip(files.by_ref())
                .map(|(request, file)| fly(request, file));
            let jobs = jobs.collect();
            tasks.insert(
                number,
                Task {
                    jobs,
                    ..Task::default()
                },
            );
        }
        self.known.is_ours(&name);
        self.batches.insert(
            name.clone(),
            Batch {
                dir,
                array: None,
                unsure: None,
                needs,
                tasks,
                members,
                succeeded: Vec::new(),
                is_foreign: false,
                listed: Instant::now(),
            },
        );
        Some(name)
    }

    /// Starts `sbatch` for a batch.
    pub(super) fn submit(&mut self, name: String) {
        let Some(batch) = self.batches.get(&name).filter(|batch| batch.array.is_none()) else {
            return;
        };
        let mut command = self.site.tools.command("sbatch");
        command.args(self.options(&name, batch)).arg(batch.dir.join("script"));
        match Call::start(command) {
            Ok(call) => self.order = Some((Order::Submit(name), call)),
            Err(err) => self.refuse(&name, &format!("cannot start sbatch: {err}")),
        }
    }

    /// The options of `sbatch`.
    fn options(&self, name: &str, batch: &Batch) -> Vec<String> {
        let (settings, needs) = (&self.site.settings, &batch.needs);
        let most = batch.tasks.values().map(|task| task.jobs.len()).max().unwrap_or(1);
        let time = needs.time.map(|time| limit(time, most, self.site.settings.pack()));
        let last = batch.tasks.keys().next_back().copied().unwrap_or(0);
        // A percent sign would begin a pattern.
        let out = batch.dir.join("out-").display().to_string().replace('%', "%%");
        let mut options = vec![
            "--parsable".to_owned(),
            format!("--array=0-{last}"),
            format!("--job-name=runner-{}", self.site.pipeline),
            format!("--comment=runner:{name}"),
            "--no-requeue".to_owned(),
            "--export=ALL".to_owned(),
            "--nodes=1".to_owned(),
            "--ntasks=1".to_owned(),
            format!("--cpus-per-task={}", needs.threads),
            format!("--signal=B:USR1@{}", warning(time)),
            format!("--chdir={}", self.site.store.root().display()),
            format!("--output={out}%a"),
        ];
        let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
        options.extend(needs.memory.map(|bytes| format!("--mem={}M", mebibytes(bytes))));
        options.extend(time.map(|time| format!("--time={}", clock(time))));
        if needs.gpus > 0 {
            // Unlike `--gpus`, all of Slurm's node selectors know it.
            options.push(format!("--gres=gpu:{}", needs.gpus));
        }
        if !needs.excluded.is_empty() {
            let nodes: Vec<&str> = needs.excluded.iter().map(String::as_str).collect();
            options.push(format!("--exclude={}", nodes.join(",")));
        }
        let named = [
            ("partition", &settings.partition),
            ("account", &settings.account),
            ("qos", &settings.qos),
            ("constraint", &settings.constraint),
        ];
        for (option, value) in named {
            options.extend(value.as_ref().map(|value| format!("--{option}={value}")));
        }
        options.extend(settings.options.iter().cloned());
        options
    }

    /// Takes the answer of `sbatch`.
    fn taken(&mut self, name: &str, answer: &Answer) {
        self.submitted = Some((Instant::now(), answer.started.elapsed()));
        let Some(batch) = self.batches.get_mut(name) else {
            return;
        };
        match &answer.error {
            None => {
                // In a federation the cluster's name follows.
                let id = answer.out.trim().split(';').next().unwrap_or_default();
                match id.parse() {
                    Ok(id) => self.has_array(name, id),
                    Err(_) => {
                        let answer = answer.out.trim().to_owned();
                        self.refuse(name, &format!("sbatch answered `{answer}`"));
                    }
                }
            }
            // Slurm may have taken it nevertheless: the queue tells.
            Some(error) if is_transient(error) => {
                batch.unsure = Some(Instant::now());
                self.away(answer);
            }
            // The nodes to avoid may be all that there are.
            Some(_) if !batch.needs.excluded.is_empty() => {
                batch.needs.excluded.clear();
                self.submit(name.to_owned());
            }
            Some(error) => self.refuse(name, &format!("sbatch refused it: {error}")),
        }
    }

    /// Slurm has taken a batch.
    pub(super) fn has_array(&mut self, name: &str, array: u64) {
        let Some(batch) = self.batches.get_mut(name) else {
            return;
        };
        batch.array = Some((array, Instant::now()));
        batch.unsure = None;
        // Without this file, the comment leads to it.
        let _ = write_whole(&batch.dir.join("submitted"), format!("{array}\n").as_bytes());
        for (number, task) in &batch.tasks {
            for job in &task.jobs {
                job.events.emit(StageEvent::Progress {
                    done: 0,
                    total: None,
                    message: format!("in the queue of Slurm, job {array}_{number}"),
                });
            }
        }
        self.polling.soon();
    }

    /// A batch that Slurm does not have is submitted again.
    pub(super) fn again(&mut self, name: &str) {
        let Some(batch) = self.batches.get_mut(name) else {
            return;
        };
        batch.unsure = None;
        if batch.is_stopped() {
            // Its jobs are answered as those of a task that has ended.
            batch.tasks.values_mut().for_each(Task::gone);
        } else {
            self.resubmit
                .push_back((Instant::now() + AGAIN.min(self.site.times.poll.1), name.to_owned()));
        }
    }

    /// Ends all jobs of a batch that is not accepted.
    pub(super) fn refuse(&mut self, name: &str, reason: &str) {
        let Some(batch) = self.batches.remove(name) else { return };
        let error = StageError::new(reason.to_owned()).hint(format!(
            "see `executors: {{ {}: … }}` of config.yaml, and the stage's `resources:`",
            self.site.name
        ));
        let jobs = batch.tasks.into_values().flat_map(|task| task.jobs);
        refuse(jobs.map(|job| job.reply), &error);
        let _ = std::fs::remove_dir_all(&batch.dir);
    }

    /// Ends all requests that are not submitted.
    pub(super) fn refuse_waiting(&mut self, error: &StageError) {
        let seeking = std::mem::take(&mut self.seeking)
            .into_iter()
            .map(|seeker| seeker.request);
        let waiting = std::mem::take(&mut self.waiting).into_iter().chain(seeking);
        refuse(waiting.map(|request| request.reply), error);
    }
}

fn refuse(replies: impl Iterator<Item = std::sync::mpsc::Sender<Ended>>, error: &StageError) {
    for reply in replies {
        let _ = reply.send(Ended::nowhere(End::Refused(error.clone())));
    }
}

/// A request in flight.
pub(super) fn fly(request: Request, file: String) -> Flying {
    Flying {
        key: request.key,
        file,
        kind: request.kind,
        events: request.events,
        limits: request.limits,
        reply: request.reply,
        tail: files::Tail::default(),
        steps: None,
        has_events: false,
        result: None,
    }
}

/// The name of a batch in its comment.
pub(super) fn batch_name(comment: &str) -> Option<&str> {
    let name = comment.strip_prefix("runner:")?;
    // It becomes a part of a path.
    (!name.is_empty() && Path::new(name).components().count() == 1).then_some(name)
}
