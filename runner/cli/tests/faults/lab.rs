//! A directory with a pipeline and a home of its own, and what must hold there at any time.

use cache::{ActionKey, Store};
pub(crate) use runner_testkit::{Digests, Ended, files, runner};
use runner_testkit::{Project, marked};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Quick stages of every sort: a market and what follows from it, a training with checkpoints, external
/// programs with files, directories, a source file, a matrix and logs.
pub(crate) const QUICK: &str = "\
version: 1
name: faults
stages:
  market: { uses: ingest/simulated_market, with: { days: 6, seed: 7 } }
  technical: { uses: features/technical, needs: { bars: market.bars }, with: { indicators: [{ rsi: 14 }] } }
  iv: { uses: greeks/implied_volatility, needs: { chain: market.chain, rates: market.rates } }
  env: { uses: env/classic }
  train:
    uses: train/ppo
    needs: { env: env }
    with:
      total_timesteps: 1024
      n_steps: 64
      n_envs: 4
      batch_size: 64
      n_epochs: 1
      checkpoint_interval: 0.000001
      policy_kwargs: { net_arch: { pi: [8], vf: [8] } }
  evaluate: { uses: evaluate/backtest, needs: { env: env, policy: train } }
  seed: { run: 'cat seed.txt > ${outputs.x}; echo read it', files: [seed.txt], outputs: { x: x.txt } }
  part:
    matrix: { n: [1, 2] }
    run: 'mkdir ${outputs.x}; head -n ${matrix.n} ${needs.x} > ${outputs.x}/a; wc < ${needs.x} > \
${outputs.x}/b'
    needs: { x: seed.x }
    outputs: { x: d }
  all: { run: 'cat ${needs.x}/* > ${outputs.x}', needs: { x: 'part[n=2].x' }, outputs: { x: x.txt } }
";

/// The stages of [`QUICK`].
pub(crate) const STAGES: [&str; 9] = [
    "market",
    "technical",
    "iv",
    "env",
    "train",
    "evaluate",
    "seed",
    "part",
    "all",
];

/// The key by which the remotes of the labs are signed.
pub(crate) const PUBLIC: &str = include_str!("../../../../cache/remote/tests/keys/one.pub").trim_ascii_end();

/// A run that takes longer hangs.
pub(crate) const LONGEST: Duration = Duration::from_secs(300);

/// A project, and what must hold there at any time.
pub(crate) struct Lab(Project);

impl std::ops::Deref for Lab {
    type Target = Project;

    fn deref(&self) -> &Project {
        &self.0
    }
}

impl Lab {
    pub(crate) fn new(pipeline: &str) -> Self {
        let lab = Self(Project::new(pipeline));
        lab.write("seed.txt", "one\ntwo\nthree\n");
        lab
    }

    /// Runs `p.yaml`, with events on standard output.
    pub(crate) fn exec(&self, args: &[&str]) -> Ended {
        self.run_within(LONGEST, &[&["exec", "p.yaml", "--json"], args].concat())
    }

    /// The digests of an undisturbed run of the pipeline.
    pub(crate) fn reference(&self) -> Digests {
        let undisturbed = Self::new(&std::fs::read_to_string(self.path("p.yaml")).unwrap());
        let ended = undisturbed.exec(&[]);
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        ended.digests()
    }

    /// The stages that were recorded have the reference digests.
    pub(crate) fn recorded_nothing_wrong(&self, ended: &Ended, reference: &Digests, what: &str) {
        for (stage, digests) in ended.digests() {
            // A stage that was skipped has none.
            let is_right = digests == "{}" || reference.get(&stage) == Some(&digests);
            assert!(is_right, "{what}: `{stage}` is wrong: {}", ended.text());
        }
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.home()).unwrap()
    }

    /// Waits until nothing that was started here is left.
    pub(crate) fn settle(&self) {
        let mark = format!("RUNNER_HOME={}", self.home().display());
        let started = Instant::now();
        while !marked(&mark).is_empty() {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "a process outlives its run"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The actions that can be seen. Each is whole: its blobs are there, and are what their names say.
    pub(crate) fn complete(&self) -> BTreeSet<String> {
        let folder = self.home().join("actions");
        if !folder.is_dir() {
            return BTreeSet::new();
        }
        let store = self.store();
        let keys: BTreeSet<String> = files(&folder)
            .iter()
            .map(|path| {
                let name = path.strip_prefix(&folder).unwrap().display().to_string();
                name.replace('/', "")
            })
            .collect();
        for key in &keys {
            let found = store.action(key.parse::<ActionKey>().unwrap()).unwrap();
            assert!(found.is_some(), "a record without its blobs: {key}");
        }
        let report = store.verify(|_| {}).unwrap();
        assert!(report.is_clean(), "{report:?}");
        keys
    }

    /// A run that must end as if nothing had happened, computing nothing again that is in `complete`.
    pub(crate) fn ends_well(&self, reference: &Digests, complete: &BTreeSet<String>) {
        let ended = self.exec(&[]);
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        assert_eq!(&ended.digests(), reference);
        for event in ended.events() {
            if event["event"] == "stage_finished" && event["status"] == "ran" {
                let key = event["key"].as_str().unwrap();
                assert!(!complete.contains(key), "computed again: {event}");
            }
        }
    }

    /// Collects garbage. Nothing temporary may be left, and nothing that a run needs may be gone.
    pub(crate) fn sweep(&self) {
        let ended = self.gc();
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        assert_eq!(self.temporary(), [""; 0]);
    }

    pub(crate) fn gc(&self) -> Ended {
        self.run(&["cache", "gc", "--keep-last", "1000", "--keep-younger-than", "0s"])
    }

    /// The owners, permissions and names of all that is below a directory of the home.
    pub(crate) fn listing(&self, dir: &str) -> String {
        let output = Command::new("ls").arg("-lnaR").arg(self.home().join(dir)).output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    }

    /// The temporary files of the home.
    pub(crate) fn temporary(&self) -> Vec<String> {
        let home = self.home();
        let mut found: Vec<String> = std::fs::read_dir(home.join("tmp"))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path().display().to_string())
            .collect();
        found.extend(
            files(&home)
                .iter()
                .map(|path| path.display().to_string())
                .filter(|path| {
                    let name = path.rsplit('/').next().unwrap();
                    name.ends_with(".tmp") || name.starts_with(".tmp") || name.starts_with("new-")
                }),
        );
        found
    }

    /// Gives a home the directory `remote` as its remote, whose records it signs with the trusted key.
    pub(crate) fn sign_remote(&self, home: &str) {
        self.sign_remote_with(home, "one", "remote");
    }

    /// Gives a home a directory as its remote, whose records it signs with the key `one`, which is trusted,
    /// or `two`.
    pub(crate) fn sign_remote_with(&self, home: &str, key: &str, folder: &str) {
        let text = match key {
            "one" => include_str!("../../../../cache/remote/tests/keys/one"),
            _ => include_str!("../../../../cache/remote/tests/keys/two"),
        };
        self.write("sign.key", text);
        let (url, key) = (self.path(folder), self.path("sign.key"));
        self.write(
            &format!("{home}/config.yaml"),
            format!(
                "remote: {{ url: '{}', sign_key_file: '{}' }}\n",
                url.display(),
                key.display()
            ),
        );
    }

    /// Lets the home read the directory `remote`, as far as the trusted key has signed it.
    pub(crate) fn trust_remote(&self) {
        let url = self.path("remote");
        let text = format!(
            "remote: {{ url: '{}', read_only: true, timeout: 1s, trusted_keys: ['{PUBLIC}'] }}\n",
            url.display()
        );
        self.write("home/config.yaml", &text);
    }

    /// Empties it, but for the pipeline.
    pub(crate) fn wipe(&self) {
        if self.home().exists() {
            std::fs::remove_dir_all(self.home()).unwrap();
        }
    }
}

/// A copy with the times of the files.
pub(crate) fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(status.success());
}

/// Chance with a seed (splitmix64).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
