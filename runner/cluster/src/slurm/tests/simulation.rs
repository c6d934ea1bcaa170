//! A simulated Slurm: programs that leave their arguments in files, and a thread that plays the cluster.

use cache::ArtifactDigest;
use runner_engine::executor::{Done, Message, Place, beside};
use stages_core::error::Cause;
use stages_core::{StageError, StageEvent};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The properties of the cluster.
#[derive(Clone, Copy)]
pub(super) struct World {
    /// The number of tasks that run at a time.
    pub slots: usize,
    /// The longest run time of a job.
    pub longest: Duration,
    /// The share of jobs that end badly, and of the time in which Slurm does not answer.
    pub faults: f64,
    /// The time for which ended tasks are listed.
    pub age: Duration,
}

/// The cluster.
pub(super) struct Simulation {
    dir: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// The most tasks that were in the queue at a time.
    most: AtomicUsize,
    /// The tasks that are in the queue now.
    now: AtomicUsize,
    sbatch: Mutex<Vec<Vec<String>>>,
    scancel: Mutex<Vec<Vec<String>>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    Lost,
    NodeFailed,
    Late,
    Preempted,
    Store,
    TimeLimit,
}

struct Task {
    array: u64,
    number: u32,
    comment: String,
    dir: PathBuf,
    jobs: Vec<String>,
    state: &'static str,
    next: usize,
    /// The time at which its job ends.
    ends: Option<Instant>,
    fault: Fault,
    over: Option<Instant>,
    late: Option<(Instant, PathBuf, Message)>,
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Simulation {
    pub(super) fn start(dir: PathBuf, output: ArtifactDigest, world: World) -> Self {
        fs::create_dir_all(dir.join("in")).unwrap();
        fs::create_dir_all(dir.join("bin")).unwrap();
        fs::write(dir.join("last"), "0").unwrap();
        fs::write(dir.join("queue"), "").unwrap();
        fs::write(dir.join("queries"), "").unwrap();
        let sim = dir.display();
        let away = "error: Unable to contact slurm controller (connect failure)";
        let program = |name: &str, text: String| {
            let path = dir.join("bin").join(name);
            fs::write(&path, format!("#!/bin/sh\nSIM='{sim}'\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let answers = format!("[ -e \"$SIM/away\" ] && {{ echo \"{away}\" >&2; exit 1; }}\n");
        program(
            "sbatch",
            format!(
                "{answers}n=$(($(cat \"$SIM/last\") + 1)); echo $n >\"$SIM/last\"\n\
                 printf '%s\\n' \"$@\" >\"$SIM/in/.b$n\"; mv \"$SIM/in/.b$n\" \"$SIM/in/b$n\"\n\
                 while [ -e \"$SIM/in/b$n\" ]; do sleep 0.01; done\n\
                 [ -e \"$SIM/lies\" ] && {{ echo 'error: Socket timed out on send/recv operation' >&2; exit 1; }}\n\
                 echo $n"
            ),
        );
        program(
            "squeue",
            format!("echo >>\"$SIM/queries\"\n{answers}cat \"$SIM/queue\""),
        );
        program(
            "scancel",
            format!("{answers}printf '%s\\n' \"$@\" >\"$SIM/in/.c$$\"; mv \"$SIM/in/.c$$\" \"$SIM/in/c$$\""),
        );
        program(
            "scontrol",
            format!(
                "{answers}echo 'MaxArraySize = 301'; echo 'AccountingStorageType = accounting_storage/none'"
            ),
        );
        let shared = Arc::new(Shared::default());
        let cluster = Cluster {
            dir: dir.clone(),
            shared: shared.clone(),
            output,
            world,
            tasks: Vec::new(),
            dice: Dice(7),
        };
        Self {
            dir,
            shared,
            thread: Some(std::thread::spawn(move || cluster.play())),
        }
    }

    pub(super) fn programs(&self) -> PathBuf {
        self.dir.join("bin")
    }

    /// The number of `squeue` calls.
    pub(super) fn queries(&self) -> usize {
        fs::read(self.dir.join("queries")).unwrap().len()
    }

    /// The arguments of the `sbatch` calls.
    pub(super) fn submissions(&self) -> Vec<Vec<String>> {
        self.shared.sbatch.lock().unwrap().clone()
    }

    pub(super) fn cancellations(&self) -> Vec<Vec<String>> {
        self.shared.scancel.lock().unwrap().clone()
    }

    /// The most tasks that were in the queue at a time.
    pub(super) fn most(&self) -> usize {
        self.shared.most.load(Ordering::Relaxed)
    }

    /// The tasks that are in the queue.
    pub(super) fn in_queue(&self) -> usize {
        self.shared.now.load(Ordering::Relaxed)
    }

    /// Makes Slurm silent, or lets it answer again.
    pub(super) fn set(&self, what: &str, on: bool) {
        set(&self.dir.join(what), on);
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

fn set(path: &Path, on: bool) {
    let _ = if on { fs::write(path, "") } else { fs::remove_file(path) };
}

struct Cluster {
    dir: PathBuf,
    shared: Arc<Shared>,
    output: ArtifactDigest,
    world: World,
    tasks: Vec<Task>,
    dice: Dice,
}

impl Cluster {
    fn play(mut self) {
        let (mut listed, mut away) = (Instant::now(), Instant::now());
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.take();
            let now = Instant::now();
            let mut free =
                self.world.slots - self.tasks.iter().filter(|task| task.state == "RUNNING").count();
            for i in 0..self.tasks.len() {
                if free > 0 && self.tasks[i].state == "PENDING" {
                    free -= 1;
                    self.begin(i);
                }
                if self.tasks[i].ends.is_some_and(|ends| ends <= now) {
                    self.end(i);
                }
            }
            let age = self.world.age;
            self.tasks
                .retain(|task| task.late.is_some() || task.over.is_none_or(|over| over.elapsed() < age));
            let open = self.tasks.iter().filter(|task| task.over.is_none()).count();
            self.shared.now.store(open, Ordering::Relaxed);
            self.shared.most.fetch_max(open, Ordering::Relaxed);
            if listed.elapsed() > Duration::from_millis(50) {
                listed = now;
                self.list();
            }
            if self.world.faults > 0.0 && away.elapsed() > Duration::from_millis(300) {
                away = now;
                set(&self.dir.join("away"), self.dice.roll() < self.world.faults);
                set(&self.dir.join("lies"), self.dice.roll() < self.world.faults);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Writes what `squeue` answers.
    fn list(&self) {
        let rows = self.tasks.iter().map(|task| {
            let (array, number, state, comment) = (task.array, task.number, task.state, &task.comment);
            format!("{array}_{number}|{state}|0|n{}|{comment}|None\n", number % 9)
        });
        fs::write(self.dir.join("queue.new"), rows.collect::<String>()).unwrap();
        fs::rename(self.dir.join("queue.new"), self.dir.join("queue")).unwrap();
    }

    /// Takes submissions and cancellations. A submission is answered once it is listed.
    fn take(&mut self) {
        for entry in fs::read_dir(self.dir.join("in")).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with('.') {
                continue;
            }
            let text = fs::read_to_string(entry.path()).unwrap();
            let arguments: Vec<String> = text.lines().map(str::to_owned).collect();
            if let Some(array) = name.strip_prefix('b') {
                self.submit(array.parse().unwrap(), &arguments);
                self.shared.sbatch.lock().unwrap().push(arguments);
            } else {
                self.cancel(&arguments);
                self.shared.scancel.lock().unwrap().push(arguments);
            }
            self.list();
            fs::remove_file(entry.path()).unwrap();
        }
    }

    fn submit(&mut self, array: u64, arguments: &[String]) {
        let option = |name: &str| {
            arguments
                .iter()
                .find_map(|argument| argument.strip_prefix(name))
                .unwrap()
        };
        let dir = Path::new(arguments.last().unwrap()).parent().unwrap().to_owned();
        let last: u32 = option("--array=0-").parse().unwrap();
        let lines = fs::read_to_string(dir.join("tasks")).unwrap();
        assert_eq!(lines.lines().count() as u32, last + 1);
        for (number, line) in (0..).zip(lines.lines()) {
            let roll = self.dice.roll() / self.world.faults.max(1e-9) * 6.0;
            let faults = [
                Fault::Lost,
                Fault::NodeFailed,
                Fault::Late,
                Fault::Preempted,
                Fault::Store,
                Fault::TimeLimit,
            ];
            self.tasks.push(Task {
                array,
                number,
                comment: option("--comment=").to_owned(),
                dir: dir.clone(),
                jobs: line.split(' ').map(str::to_owned).collect(),
                state: "PENDING",
                next: 0,
                ends: None,
                fault: faults.get(roll as usize).copied().unwrap_or(Fault::None),
                over: None,
                late: None,
            });
        }
    }

    fn cancel(&mut self, arguments: &[String]) {
        let state = arguments.iter().find_map(|argument| argument.strip_prefix("--state="));
        let is_told = arguments.iter().any(|argument| argument == "--signal=USR1");
        let ids: Vec<&str> = arguments
            .iter()
            .filter(|id| !id.starts_with("--"))
            .map(String::as_str)
            .collect();
        for task in &mut self.tasks {
            let id = format!("{}_{}", task.array, task.number);
            let is_meant = ids.contains(&id.as_str()) || ids.contains(&task.array.to_string().as_str());
            if !is_meant || task.over.is_some() || state.is_some_and(|state| state != task.state) {
                continue;
            }
            if is_told {
                // It writes its result and ends.
                write(
                    &task.dir,
                    &task.jobs[task.next],
                    &Message::Failed(StageError::interrupted()),
                );
            }
            task.state = if is_told { "FAILED" } else { "CANCELLED" };
            task.ends = None;
            task.over = Some(Instant::now());
        }
    }

    fn time(&mut self) -> Duration {
        self.world.longest.mul_f64(self.dice.roll())
    }

    fn begin(&mut self, i: usize) {
        let time = self.time();
        let task = &mut self.tasks[i];
        task.state = "RUNNING";
        task.ends = Some(Instant::now() + time);
        let file = task.dir.join(&task.jobs[task.next]);
        let metric = StageEvent::Metric {
            name: "loss".to_owned(),
            step: 1 + task.array,
            value: 0.5,
        };
        let mut events = fs::File::options();
        let events = events.append(true).create(true).open(beside(&file, "events"));
        // The run may have given it up, and removed its files.
        let _ = events.and_then(|mut events| events.write_all(Message::event(metric).to_line().as_bytes()));
    }

    /// Ends the job of a task that runs.
    fn end(&mut self, i: usize) {
        let now = Instant::now();
        let task = &mut self.tasks[i];
        if let Some((_, path, message)) = task.late.take() {
            write(
                path.parent().unwrap(),
                path.file_name().unwrap().to_str().unwrap(),
                &message,
            );
            task.ends = None;
            return;
        }
        let file = task.jobs[task.next].clone();
        let done = Message::Done(Done {
            outputs: [("x".to_owned(), self.output)].into(),
            seconds: Some(0.02),
            place: Some(Place {
                host: format!("n{}", task.number % 9),
                ..Place::default()
            }),
            ..Done::default()
        });
        let failed = |cause| {
            Message::Failed(StageError {
                cause,
                ..StageError::new("no space left on the node")
            })
        };
        let is_last = task.next + 1 == task.jobs.len();
        let (state, message) = match task.fault {
            Fault::Lost => ("", None),
            Fault::NodeFailed => ("NODE_FAIL", None),
            Fault::Preempted => ("PREEMPTED", None),
            Fault::Store => ("FAILED", Some(failed(Cause::Store))),
            Fault::TimeLimit => ("FAILED", Some(failed(Cause::Interrupted))),
            Fault::Late if is_last => {
                task.late = Some((now, task.dir.join(&file), done.clone()));
                ("COMPLETED", None)
            }
            Fault::None | Fault::Late => ("COMPLETED", Some(done)),
        };
        if let Some(message) = &message {
            write(&task.dir, &file, message);
        }
        task.ends = None;
        if state == "COMPLETED" && !is_last {
            task.next += 1;
            return self.begin(i);
        }
        if task.late.is_some() {
            task.ends = Some(now + Duration::from_millis(700));
        }
        task.state = state;
        task.over = Some(now);
    }
}

fn write(dir: &Path, file: &str, message: &Message) {
    let path = beside(&dir.join(file), "result");
    // The run may have given it up, and removed its files.
    if fs::write(path.with_extension("tmp"), message.to_line()).is_ok() {
        fs::rename(path.with_extension("tmp"), path).unwrap();
    }
}
