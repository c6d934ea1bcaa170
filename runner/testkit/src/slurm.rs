//! A real Slurm on this machine, of one controller and a few nodes, in a directory and on ports of its own.

use crate::{Project, files};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The script that starts a Slurm: `RUNNER_TEST_SLURM`, or `cluster/start-slurm` in `RUNNER_TEST_DATA`.
fn script() -> Option<PathBuf> {
    let data = || Some(PathBuf::from(std::env::var_os("RUNNER_TEST_DATA")?).join("cluster/start-slurm"));
    let path = std::env::var_os("RUNNER_TEST_SLURM").map(PathBuf::from).or_else(data)?;
    path.is_file().then_some(path)
}

/// The reason why no Slurm can be started here.
pub fn missing_slurm() -> Option<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.push("/usr/sbin".into());
    let found = |name: &str| folders.iter().any(|folder| folder.join(name).is_file());
    if script().is_none() {
        Some("`RUNNER_TEST_SLURM` names no script that starts a Slurm")
    } else if !["sbatch", "slurmctld", "slurmd", "munged"].into_iter().all(found) {
        Some("Slurm is not installed (Debian: slurm-wlm, munge)")
    } else if !rustix::process::getuid().is_root() {
        Some("not root, as whom Slurm is started")
    } else {
        None
    }
}

/// Held while a Slurm starts.
static STARTING: Mutex<()> = Mutex::new(());

/// A running Slurm, which is stopped when it is dropped.
pub struct Slurm {
    dir: TempDir,
    nodes: usize,
}

/// Memory is a resource whose limit is enforced, a silent node is down after some seconds, and jobs are
/// scheduled when they come rather than at intervals.
const SETTINGS: &str = "SelectTypeParameters=CR_CPU_Memory\n\
    JobAcctGatherParams=OverMemoryKill\n\
    JobAcctGatherFrequency=task=1\n\
    SlurmdTimeout=10\n\
    KillWait=5\n\
    SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,default_queue_depth=10000,bf_interval=1";

impl Slurm {
    /// Starts a Slurm of some nodes, at most nine, with two cores each.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(nodes: usize) -> Self {
        // Ports that are free are taken once it runs.
        let _one_by_one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::Builder::new().prefix("slurm-").tempdir().unwrap();
        // The ports of the script begin with 268.
        let first = 270 + std::process::id() % 40;
        let is_free = |tens: u32| {
            let mut ports = (tens * 100 + 17)..=(tens * 100 + 29);
            ports.all(|port| TcpListener::bind(("127.0.0.1", port.try_into().unwrap())).is_ok())
        };
        let prefix = (first..320).chain(270..first).find(|&tens| is_free(tens)).unwrap();
        let text = std::fs::read_to_string(script().unwrap()).unwrap();
        let text = text
            .replace("268", &prefix.to_string())
            .replace("SelectTypeParameters=CR_CPU", SETTINGS);
        let start = dir.path().join("start");
        std::fs::write(&start, text).unwrap();
        let log = std::fs::File::create(dir.path().join("start.log")).unwrap();
        // The daemons inherit the files, so that they are no pipes.
        let status = Command::new("bash")
            .arg(&start)
            .arg(dir.path())
            .arg(nodes.to_string())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .env("PATH", path())
            .status();
        let slurm = Self { dir, nodes };
        assert!(status.unwrap().success(), "{}", slurm.logs());
        slurm.wait_until_idle();
        slurm
    }

    /// The configuration, for `SLURM_CONF`.
    pub fn conf(&self) -> PathBuf {
        self.dir.path().join("slurm.conf")
    }

    /// Lets a command find this Slurm.
    pub fn at<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("SLURM_CONF", self.conf()).env("PATH", path())
    }

    /// The standard output of one of Slurm's commands; empty if it fails.
    pub fn ask(&self, program: &str, args: &[&str]) -> String {
        let output = self.at(Command::new(program).args(args)).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The tasks that are in the queue: their ids and states.
    pub fn queue(&self) -> Vec<String> {
        let text = self.ask("squeue", &["-h", "-r", "-o", "%i %T"]);
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until no task is in the queue, for at most three minutes: a controller that was killed has lost
    /// the ends of tasks that it had not saved, and misses these tasks a minute after its start.
    ///
    /// # Panics
    /// When some are left.
    pub fn wait_until_empty(&self) {
        let started = Instant::now();
        loop {
            let left = self.queue();
            if left.is_empty() {
                return;
            }
            assert!(started.elapsed() < Duration::from_secs(180), "left behind: {left:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until all nodes are idle, for at most a minute.
    ///
    /// # Panics
    /// When some are not.
    pub fn wait_until_idle(&self) {
        let (started, all) = (Instant::now(), self.nodes.to_string());
        while self.ask("sinfo", &["-h", "-t", "idle", "-o", "%D"]).trim() != all {
            assert!(started.elapsed() < Duration::from_secs(60), "{}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The number of tasks that ended on this Slurm.
    pub fn ended(&self) -> usize {
        let text = std::fs::read_to_string(self.dir.path().join("log/jobcomp.txt"));
        text.unwrap_or_default().lines().count()
    }

    /// Kills the controller.
    pub fn kill_controller(&self) {
        self.kill("ctld");
    }

    /// Starts the controller again.
    pub fn start_controller(&self) {
        self.daemon("slurmctld", &[]);
    }

    /// Kills the daemon of node `i`, from 1; what it runs goes on.
    pub fn kill_node(&self, i: usize) {
        self.kill(&format!("d-n{i}"));
    }

    /// Starts the daemon of node `i` again.
    pub fn start_node(&self, i: usize) {
        self.daemon("slurmd", &["-N", &format!("n{i}")]);
    }

    /// Starts the daemon of node `i` again with a full disk: it cannot write the script of a job.
    pub fn start_node_on_full_disk(&self, i: usize) {
        let text = "mount -t tmpfs -o size=4k,nr_inodes=8 none \"$SPOOL\" && \
                    { head -c 4096 /dev/zero > \"$SPOOL/full\"; exec slurmd -f \"$SLURM_CONF\" -N \"$NODE\"; }";
        let mut command = Command::new("unshare");
        let command = command
            .args(["-m", "sh", "-c", text])
            .env("SPOOL", self.dir.path().join(format!("spool-n{i}")))
            .env("NODE", format!("n{i}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        assert!(self.at(command).status().unwrap().success(), "{}", self.logs());
    }

    /// Lets a node take jobs again that Slurm has drained.
    pub fn resume_node(&self, i: usize) {
        self.ask("scontrol", &["update", &format!("NodeName=n{i}"), "State=RESUME"]);
    }

    /// The ids of the processes whose command line has all of these words.
    pub fn processes(words: &[&str]) -> Vec<u32> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            if words.iter().all(|word| line.contains(word)) {
                found.push(id);
            }
        }
        found
    }

    /// The ids of the workers that run jobs of a project on the nodes.
    pub fn workers(project: &Project) -> Vec<u32> {
        Self::processes(&["worker", project.home().join("jobs").to_str().unwrap()])
    }

    fn kill(&self, name: &str) {
        let file = self.dir.path().join(format!("{name}.pid"));
        let id = std::fs::read_to_string(file).unwrap_or_default();
        let _ = Command::new("kill").args(["-s", "KILL", id.trim()]).status();
    }

    fn daemon(&self, program: &str, args: &[&str]) {
        let mut command = Command::new(program);
        let quiet = command.args(["-f", self.conf().to_str().unwrap()]).args(args);
        let quiet = quiet.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(self.at(quiet).status().unwrap().success(), "{}", self.logs());
    }

    /// The last lines of the logs.
    fn logs(&self) -> String {
        let mut texts = Vec::new();
        for file in [
            files(&self.dir.path().join("log")),
            vec![self.dir.path().join("start.log")],
        ]
        .concat()
        {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let last = lines[lines.len().saturating_sub(10)..].join("\n");
            texts.push(format!("{}:\n{last}", file.display()));
        }
        texts.join("\n")
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.ask("scancel", &["--full", "-u", "root"]);
        let started = Instant::now();
        while !self.queue().is_empty() && started.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(100));
        }
        let mut names: Vec<String> = (1..=self.nodes).map(|i| format!("d-n{i}")).collect();
        names.push("ctld".to_owned());
        for name in names {
            self.kill(&name);
        }
    }
}

fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// The directory of a Slurm that a test can look into.
impl AsRef<Path> for Slurm {
    fn as_ref(&self) -> &Path {
        self.dir.path()
    }
}
