//! `runner bench cache`: the cost of runs with no, little and much work, and the cost of the store, each
//! compared with a lower bound measured on the same machine within the same minute.

mod history;
mod planning;

use crate::session::temporary_directory;
use cache::{BlobRef, Store};
use runner_engine::Failure;
use runner_sandbox::{Isolated, peak_memory_of, probe};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// One measurement: the minimum of several repetitions, since other load on the machine only adds time.
#[derive(Serialize)]
pub(super) struct Row {
    what: String,
    milliseconds: f64,
    /// The peak resident memory of the engine, in MiB.
    peak_mebibytes: Option<f64>,
    floor_milliseconds: f64,
    /// The description of the lower bound.
    floor: String,
}

/// The size of the large file in bytes: 1 GB.
const LARGE: usize = 1_000_000_000;
const PIECE: usize = 4 << 20;

/// The interval at which the memory of a run is sampled.
const LOOK: Duration = Duration::from_micros(500);

struct Bench {
    dir: tempfile::TempDir,
    program: PathBuf,
    rows: Vec<Row>,
}

pub(super) fn measure() -> Result<Vec<Row>, Failure> {
    let dir = temporary_directory()?;
    let program = std::env::current_exe()
        .map_err(|err| Failure::caused("cannot determine the path of this program", &err))?;
    let mut bench = Bench {
        dir,
        program,
        rows: Vec::new(),
    };
    bench.nothing_to_do()?;
    bench.one_of_a_thousand()?;
    bench.everything_to_do()?;
    bench.large_pipelines()?;
    bench.earlier_runs()?;
    bench.cached_trainings()?;
    bench.large_file()?;
    bench.large_table()?;
    Ok(bench.rows)
}

fn failed(err: std::io::Error) -> Failure {
    Failure::caused("cannot measure", &err)
}

/// The minimum duration of `n` repetitions, in milliseconds; `before` is not timed.
fn best(
    n: usize,
    mut before: impl FnMut() -> Result<(), Failure>,
    mut work: impl FnMut() -> Result<(), Failure>,
) -> Result<f64, Failure> {
    let mut best = f64::INFINITY;
    for _ in 0..n {
        before()?;
        let began = Instant::now();
        work()?;
        best = best.min(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best)
}

/// A pipeline of trivial external programs in ten parallel chains.
fn pipeline(stages: usize, changed: Option<usize>) -> String {
    let mut text = format!("version: 1\nname: trivial_{stages}\nstages:\n");
    for i in 0..stages {
        let word = if changed == Some(i) { "changed" } else { "stage" };
        text.push_str(&format!(
            "  s{i}:\n    run: {}\n    outputs: {{ x: x.txt }}\n",
            command(word, i)
        ));
        if i >= 10 {
            text.push_str(&format!("    needs: {{ a: s{} }}\n", i - 10));
        }
    }
    text
}

fn command(word: &str, i: usize) -> String {
    format!("echo {word} {i} > ${{outputs.x}}")
}

impl Bench {
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.dir.path().join(name);
        fs::write(&path, text).map_err(failed)?;
        Ok(path)
    }

    fn home(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, home: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("RUNNER_HOME", home).stdin(Stdio::null());
        command
    }

    /// Runs this program.
    fn exec(&self, home: &Path, arguments: &[&str]) -> Result<(), Failure> {
        self.output(home, arguments).map(drop)
    }

    /// Runs this program and returns its output.
    fn output(&self, home: &Path, arguments: &[&str]) -> Result<Output, Failure> {
        let output = self.command(home, arguments).output().map_err(failed)?;
        if output.status.success() {
            return Ok(output);
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Failure::usage(format!("a benchmarked run failed: {text}")))
    }

    /// The peak resident memory of this program in MiB, if the system reports it.
    fn peak(&self, home: &Path, arguments: &[&str]) -> Result<Option<f64>, Failure> {
        let mut child = self
            .command(home, arguments)
            .stdout(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let mut peak = None;
        while child.try_wait().map_err(failed)?.is_none() {
            peak = peak_memory_of(child.id()).or(peak);
            std::thread::sleep(LOOK);
        }
        Ok(peak.map(|bytes| bytes as f64 / f64::from(1 << 20)))
    }

    /// Adds a row: what was measured, its time, and its lower bound with a description.
    fn add(&mut self, what: impl Into<String>, milliseconds: f64, floor: f64, about: impl Into<String>) {
        self.rows.push(Row {
            what: what.into(),
            milliseconds,
            peak_mebibytes: None,
            floor_milliseconds: floor,
            floor: about.into(),
        });
    }

    /// Adds the peak memory to the last row.
    fn with_peak(&mut self, peak: Option<f64>) {
        if let Some(row) = self.rows.last_mut() {
            row.peak_mebibytes = peak;
        }
    }

    fn start(&self) -> Result<f64, Failure> {
        best(20, || Ok(()), || self.exec(&self.home("none"), &["--version"]))
    }

    fn nothing_to_do(&mut self) -> Result<(), Failure> {
        let start = self.start()?;
        for stages in [5, 100, 1000] {
            let file = self.write(&format!("{stages}.yaml"), &pipeline(stages, None))?;
            let file = file.display().to_string();
            let home = self.home(&stages.to_string());
            self.exec(&home, &["exec", "-q", &file])?;
            let peak = self.peak(&home, &["exec", "-q", &file])?;
            let time = best(20, || Ok(()), || self.exec(&home, &["exec", "-q", &file]))?;
            let blobs = list(&home.join("blobs")).map_err(failed)?;
            let look = || {
                let _ = fs::read(&file);
                blobs.iter().for_each(|path| drop(fs::metadata(path)));
                Ok(())
            };
            let floor = start + best(10, || Ok(()), look)?;
            self.add(
                format!("exec, {stages} stages, nothing to do"),
                time,
                floor,
                format!("start this program, read the pipeline file, stat {} blobs", blobs.len()),
            );
            self.with_peak(peak);
        }
        Ok(())
    }

    /// Uses the store of the thousand stages above. The changed stage is the last of its chain, so that only
    /// one stage runs.
    fn one_of_a_thousand(&mut self) -> Result<(), Failure> {
        let home = self.home("1000");
        let file = self.dir.path().join("changed.yaml");
        let mut round = 0;
        let change = || {
            round += 1;
            let text = pipeline(1000, Some(999)).replace("changed", &format!("changed{round}"));
            fs::write(&file, text).map_err(failed)
        };
        let exec = || self.exec(&home, &["exec", "-q", &file.display().to_string()]);
        let time = best(10, change, exec)?;
        let last = self.rows.last().map_or(0.0, |row| row.milliseconds);
        let floor = last + best(20, || Ok(()), || self.shell(0))?;
        let about = "nothing to do, and the command by `bash -euo pipefail -c`";
        self.add("exec, 1,000 stages, one changed", time, floor, about);
        Ok(())
    }

    fn shell(&self, i: usize) -> Result<(), Failure> {
        let command =
            command("stage", i).replace("${outputs.x}", &format!("{}/x{i}", self.dir.path().display()));
        let mut shell = Command::new("bash");
        let status = shell
            .args(["-euo", "pipefail", "-c"])
            .arg(command)
            .status()
            .map_err(failed)?;
        if status.success() {
            Ok(())
        } else {
            Err(Failure::usage("`bash` failed"))
        }
    }

    fn everything_to_do(&mut self) -> Result<(), Failure> {
        let file = self.write("100.yaml", &pipeline(100, None))?.display().to_string();
        // Each repetition has its own home: after a home was removed, ext4 creates files slowly for some
        // seconds.
        let mut homes = (0..).map(|i| self.home(&format!("cold-{i}")));
        let mut times = Vec::new();
        for isolation in ["auto", "none"] {
            let exec = || {
                let home = homes.next().unwrap_or_default();
                self.exec(&home, &["exec", "-q", "--isolation", isolation, &file])
            };
            times.push(best(5, || Ok(()), exec)?);
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let this = &*self;
        let all = || {
            std::thread::scope(|scope| {
                let thread =
                    |t: usize| scope.spawn(move || (t..100).step_by(cores).try_for_each(|i| this.shell(i)));
                let threads: Vec<_> = (0..cores).map(thread).collect();
                threads
                    .into_iter()
                    .try_for_each(|thread| thread.join().unwrap_or(Ok(())))
            })
        };
        let floor = best(5, || Ok(()), all)?;
        let isolated = probe().strongest();
        for (name, time) in [isolated, Isolated::None].map(Isolated::name).into_iter().zip(times) {
            self.add(
                format!("exec, 100 trivial `run:` stages, nothing cached, isolation {name}"),
                time,
                floor,
                format!("the commands by `bash -euo pipefail -c`, {cores} at a time"),
            );
        }
        Ok(())
    }

    fn large_file(&mut self) -> Result<(), Failure> {
        let path = self.dir.path().join("large");
        let piece = noise();
        fill(&path, &piece)?;
        let read = || {
            let mut file = File::open(&path).map_err(failed)?;
            let mut buffer = vec![0; PIECE];
            while file.read(&mut buffer).map_err(failed)? > 0 {}
            Ok(())
        };
        let read = best(3, || Ok(()), read)?;
        let hash = || {
            for _ in 0..LARGE / PIECE {
                std::hint::black_box(BlobRef::of(&piece));
            }
            Ok(())
        };
        let hash = best(3, || Ok(()), hash)?;
        let store = Store::open(&self.home("file"))?;
        let new = best(3, || Ok(()), || Ok(store.rehash_file(&path).map(drop)?))?;
        // The modification time of a file changed within the last seconds does not reliably show the next
        // change.
        std::thread::sleep(Duration::from_secs(3));
        store.rehash_file(&path)?;
        let again = best(20, || Ok(()), || Ok(store.hash_file(&path).map(drop)?))?;
        let look = best(20, || Ok(()), || fs::metadata(&path).map(drop).map_err(failed))?;
        let gigabytes = |milliseconds: f64| LARGE as f64 / milliseconds / 1e6;
        let (reads, hashes) = (gigabytes(read), gigabytes(hash));
        let about = format!(
            "the slower of a plain read ({reads:.1} GB/s) and BLAKE3 in memory, all cores ({hashes:.1} GB/s)"
        );
        self.add("hash a new file of 1 GB", new, read.max(hash), about);
        self.add("the same file, unchanged", again, look, "one read of its metadata");
        fs::remove_file(&path).map_err(failed)
    }

    fn large_table(&mut self) -> Result<(), Failure> {
        let piece = noise();
        let path = self.dir.path().join("table");
        let write = best(2, || fs::remove_file(&path).or(Ok(())), || fill(&path, &piece))?;
        fs::remove_file(&path).map_err(failed)?;
        let home = self.home("table-store");
        let mut blob = None;
        let put = || {
            let mut writer = Store::open(&home)?.writer()?;
            for at in (0..LARGE).step_by(PIECE) {
                writer.put(&piece[..PIECE.min(LARGE - at)])?;
            }
            blob = Some(writer.finish()?);
            Ok(())
        };
        let put = best(2, || fs::remove_dir_all(&home).or(Ok(())), put)?;
        let Some(BlobRef { blob, .. }) = blob else {
            return Ok(());
        };
        let first = best(2, || Ok(()), || Ok(Store::open(&home)?.blob(blob).map(drop)?))?;
        let store = Store::open(&home)?;
        store.blob(blob)?;
        let again = best(20, || Ok(()), || Ok(store.blob(blob).map(drop)?))?;
        let file = store.blob_path(blob);
        let open = best(20, || Ok(()), || File::open(&file).map(drop).map_err(failed))?;
        self.add("store a table of 1 GB", put, write, "write a file of 1 GB");
        let about = "none: its bytes are checked, which is the hash above";
        self.add("open it for the first time in a process", first, 0.0, about);
        self.add("open it again", again, open, "open a file");
        Ok(())
    }
}

/// Writes a large file of the same pieces.
fn fill(path: &Path, piece: &[u8]) -> Result<(), Failure> {
    let mut file = File::create(path).map_err(failed)?;
    for at in (0..LARGE).step_by(PIECE) {
        file.write_all(&piece[..PIECE.min(LARGE - at)]).map_err(failed)?;
    }
    Ok(())
}

/// Incompressible bytes, which every file system must store in full.
fn noise() -> Vec<u8> {
    (0..PIECE as u64)
        .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29) as u8)
        .collect()
}

fn list(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(list(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}
