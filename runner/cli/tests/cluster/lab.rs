//! A pipeline whose home has the executor `hpc`: a Slurm of four nodes on this machine.

use runner_testkit::{Digests, Ended, Project, Slurm, within};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

/// A run that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(600);

/// Every stage of a first run is worth a job, each job is a task of its own, and a lock is soon taken over.
const CONFIG: &str =
    "executors: { hpc: { kind: slurm, store: shared, small: 1s, pack: 1s, takeover: 10s } }\n";

pub(crate) struct Lab {
    pub slurm: Slurm,
    pub project: Project,
}

impl Lab {
    pub(crate) fn new(pipeline: &str) -> Self {
        let lab = Self {
            slurm: Slurm::start(4),
            project: Project::new(pipeline),
        };
        lab.configure(CONFIG);
        lab
    }

    /// Writes the configuration of the home.
    pub(crate) fn configure(&self, config: &str) {
        self.project.write("home/config.yaml", config);
    }

    /// A command that runs the binary with these arguments, and finds this Slurm.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(args);
        self.slurm.at(&mut command);
        command
    }

    /// Runs the binary until it exits.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        within(LONGEST, &mut self.command(args))
    }

    /// Runs `p.yaml` on Slurm, with events on standard output.
    pub(crate) fn exec(&self, args: &[&str]) -> Ended {
        self.run(&[&["exec", "p.yaml", "--json", "--executor", "hpc"], args].concat())
    }

    /// Starts a run of `p.yaml` on Slurm with these variables; its output is written to files.
    pub(crate) fn spawn_with(&self, env: &[(&str, &str)]) -> Running {
        let [stdout, stderr] = ["out", "err"].map(|name| self.project.path(name));
        let child = self
            .command(&["exec", "p.yaml", "--json", "--executor", "hpc"])
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap())
            .envs(env.iter().copied())
            .spawn();
        Running {
            child: child.unwrap(),
            stdout,
            stderr,
        }
    }

    /// The digests of a run of the pipeline on this machine.
    pub(crate) fn reference(&self, args: &[&str]) -> Digests {
        let here = Project::new(std::fs::read_to_string(self.project.path("p.yaml")).unwrap());
        for name in ["rows.csv"] {
            if let Ok(text) = std::fs::read_to_string(self.project.path(name)) {
                here.write(name, text);
            }
        }
        let ended = here.run_within(LONGEST, &[&["exec", "p.yaml", "--json"], args].concat());
        assert_eq!(ended.code, 0, "{}", ended.text());
        ended.digests()
    }

    /// A run on Slurm that ends as `reference` does, and leaves nothing in the queue.
    pub(crate) fn ends_well(&self, reference: &Digests, args: &[&str]) -> Ended {
        let ended = self.exec(args);
        assert_eq!(ended.code, 0, "{}", ended.text());
        assert_eq!(&ended.digests(), reference);
        self.slurm.wait_until_empty();
        ended
    }

    /// Empties the home, but for its configuration.
    pub(crate) fn wipe(&self) {
        let config = std::fs::read_to_string(self.project.path("home/config.yaml")).unwrap();
        std::fs::remove_dir_all(self.project.home()).unwrap();
        self.configure(&config);
    }
}

/// A run that has been started.
pub(crate) struct Running {
    pub child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    /// True if it has ended.
    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The end of the run, for which it waits.
    ///
    /// # Panics
    /// When it takes too long; it is then killed.
    pub(crate) fn end(mut self) -> Ended {
        let read = |path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        let started = std::time::Instant::now();
        while !self.is_over() {
            if started.elapsed() > LONGEST {
                self.child.kill().unwrap();
                panic!("hangs: {}{}", read(&self.stdout), read(&self.stderr));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ended {
            code: self.child.wait().unwrap().code().unwrap_or(-1),
            stdout: read(&self.stdout),
            stderr: read(&self.stderr),
        }
    }
}

/// Chance with a seed (splitmix64).
pub(crate) struct Chance(pub u64);

impl Chance {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    /// A time of at most `most`.
    pub(crate) fn time(&mut self, most: Duration) -> Duration {
        Duration::from_millis(self.below(most.as_millis() as usize) as u64)
    }
}
