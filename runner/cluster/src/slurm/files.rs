//! The files of jobs in the shared home.
//!
//! ```text
//! HOME/jobs/BATCH/           the jobs of one array
//!   tasks                    line N: the files of the jobs of task N, separated by blanks
//!   keys                     a line for each job: its task, action key, file, and `fresh` if it uses no memos
//!   script                   what `sbatch` is given
//!   submitted                the array's job id
//!   DIGEST.json              a job; its node writes `DIGEST.json.events` and, renamed, `DIGEST.json.result`
//!   out-N                    what task N printed
//! HOME/programs/DIGEST       this program, for the nodes
//! ```
//!
//! A name of a batch is used once, so that no node's cached view of a directory shows files of another
//! attempt.

use super::tools::quoted;
use cache::{ActionKey, BlobRef};
use runner_engine::Failure;
use runner_engine::executor::{Message, beside, job_file_name};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The age at which files that no run has asked for are removed.
const OLD: Duration = Duration::from_secs(30 * 24 * 3600);

/// A job of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub task: u32,
    pub key: ActionKey,
    /// The name of its file.
    pub file: String,
    /// True if it computes from scratch.
    pub fresh: bool,
}

impl Member {
    fn line(&self) -> String {
        let fresh = if self.fresh { "fresh" } else { "usual" };
        format!("{} {} {} {fresh}\n", self.task, self.key, self.file)
    }

    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(' ').collect();
        let &[task, key, file, fresh] = fields.as_slice() else {
            return None;
        };
        Some(Self {
            task: task.parse().ok()?,
            key: key.parse().ok()?,
            file: file.to_owned(),
            fresh: fresh == "fresh",
        })
    }
}

/// A job to write.
pub(super) struct NewJob<'a> {
    pub key: ActionKey,
    pub fresh: bool,
    pub json: &'a [u8],
}

/// Writes the files of a batch, whose tasks each have jobs.
pub(super) fn write(dir: &Path, tasks: &[Vec<NewJob<'_>>], program: &Path) -> io::Result<Vec<Member>> {
    fs::create_dir_all(dir)?;
    let (mut members, mut lines) = (Vec::new(), String::new());
    for (number, jobs) in (0..).zip(tasks) {
        let mut names = Vec::new();
        for job in jobs {
            let file = job_file_name(job.json);
            fs::write(dir.join(&file), job.json)?;
            names.push(file.clone());
            members.push(Member {
                task: number,
                key: job.key,
                file,
                fresh: job.fresh,
            });
        }
        lines.push_str(&names.join(" "));
        lines.push('\n');
    }
    fs::write(dir.join("tasks"), lines)?;
    let script = format!(
        "#!/bin/sh\n# A batch of jobs of `runner`; their files are beside this one.\nexec {} worker --batch {} \
         \"$SLURM_ARRAY_TASK_ID\"\n",
        quoted(program),
        quoted(&dir.join("tasks")),
    );
    fs::write(dir.join("script"), script)?;
    let keys: String = members.iter().map(Member::line).collect();
    write_whole(&dir.join("keys"), keys.as_bytes())?;
    Ok(members)
}

/// Writes a file that readers see whole or not at all.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(dir)?;
    file.write_all(bytes)?;
    cache::flush(file.as_file())?;
    file.persist(path).map_err(|err| err.error)?;
    Ok(())
}

/// The jobs of a batch; none if it was not written to its end.
pub(super) fn members(dir: &Path) -> Vec<Member> {
    let text = fs::read_to_string(dir.join("keys")).unwrap_or_default();
    text.lines().filter_map(Member::parse).collect()
}

/// The array's job id of a batch.
pub(super) fn submitted(dir: &Path) -> Option<u64> {
    fs::read_to_string(dir.join("submitted")).ok()?.trim().parse().ok()
}

/// The names of the batches in a directory, the oldest first; those that are too old are removed.
pub(super) fn batches(jobs: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(jobs).into_iter().flatten().flatten() {
        if is_old(&entry) {
            let _ = fs::remove_dir_all(entry.path());
        } else if let Ok(name) = entry.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    names
}

/// The jobs of a batch that have a result, and those that have events, by their files' names.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub results: BTreeSet<String>,
    pub events: BTreeSet<String>,
}

/// Lists the files of a batch. If `afresh`, no cached view of the directory is used: a network file system
/// re-reads a directory in which this host has just made a file.
pub(super) fn list(dir: &Path, afresh: bool) -> io::Result<Seen> {
    if afresh {
        drop(tempfile::Builder::new().prefix(".look-").tempfile_in(dir)?);
    }
    let mut seen = Seen::default();
    for entry in fs::read_dir(dir)? {
        let Ok(name) = entry?.file_name().into_string() else {
            continue;
        };
        if let Some(file) = name.strip_suffix(".result") {
            seen.results.insert(file.to_owned());
        } else if let Some(file) = name.strip_suffix(".events") {
            seen.events.insert(file.to_owned());
        }
    }
    Ok(seen)
}

/// The result of a job; `None` if it cannot be read yet.
pub(super) fn result(dir: &Path, file: &str) -> Option<Message> {
    let message = Message::parse(&fs::read(beside(&dir.join(file), "result")).ok()?)?;
    matches!(message, Message::Done(_) | Message::Failed(_)).then_some(message)
}

/// A reader of a job's events, from where it stopped.
#[derive(Debug, Default)]
pub(super) struct Tail {
    offset: u64,
    partial: Vec<u8>,
}

/// The number of bytes that are read at once.
const PIECE: u64 = 256 << 10;

/// The longest line of an event, in bytes; a longer one is dropped.
const LINE: usize = 4 << 20;

impl Tail {
    /// The messages that have been written meanwhile, of one piece; true if there may be more.
    pub(super) fn read(&mut self, path: &Path, mut take: impl FnMut(Message)) -> io::Result<bool> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let start = self.partial.len();
        let count = file.take(PIECE).read_to_end(&mut self.partial)?;
        self.offset += count as u64;
        let mut from = 0;
        while let Some(end) = self.partial[usize::max(from, start)..]
            .iter()
            .position(|&byte| byte == b'\n')
        {
            let end = usize::max(from, start) + end;
            if let Some(message) = Message::parse(&self.partial[from..end]) {
                take(message);
            }
            from = end + 1;
        }
        self.partial.drain(..from);
        if self.partial.len() > LINE {
            self.partial.clear();
        }
        Ok(count as u64 == PIECE)
    }
}

/// The last lines that a task printed, on one line.
pub(super) fn output(dir: &Path, task: u32) -> String {
    const LAST: u64 = 2 << 10;
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(dir.join(format!("out-{task}")))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST)))?;
        let mut bytes = Vec::new();
        file.take(LAST).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(5)..].join("; ")
}

/// Copies this program into the home, once, and returns the path of the copy.
///
/// # Errors
/// If it cannot be read or written.
pub(super) fn copy_program(home: &Path, program: &Path) -> Result<PathBuf, Failure> {
    let blob = BlobRef::of_file(program)?;
    let dir = home.join("programs");
    let path = dir.join(blob.blob.to_hex());
    remove_old(&dir, &path);
    if BlobRef::of_file(&path).is_ok_and(|found| found == blob) {
        // It is in use. Where another user wrote it, its time stays.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        return Ok(path);
    }
    let copy = || -> io::Result<()> {
        fs::create_dir_all(&dir)?;
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&dir)?;
        io::copy(&mut File::open(program)?, &mut file)?;
        fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        cache::flush(file.as_file())?;
        file.persist(&path).map_err(|err| err.error)?;
        Ok(())
    };
    copy().map_err(Failure::at("cannot write the program of the nodes at", &path))?;
    match BlobRef::of_file(&path)? == blob {
        true => Ok(path),
        false => Err(Failure::machine(format!(
            "the program at `{}` is not what was written",
            path.display()
        ))),
    }
}

/// Removes programs that no run has used for long.
fn remove_old(dir: &Path, used: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if is_old(&entry) && entry.path() != used {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// True if a file or directory has not changed for long.
fn is_old(entry: &fs::DirEntry) -> bool {
    let modified = entry.metadata().and_then(|meta| meta.modified());
    let age = modified
        .ok()
        .and_then(|time| SystemTime::now().duration_since(time).ok());
    age.is_some_and(|age| age > OLD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_core::StageEvent;

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("jobs/it's a batch");
        let key = |text: &str| cache::KeyHasher::new("test").field(text).action_key();
        let job = |text: &'static str, fresh| NewJob {
            key: key(text),
            fresh,
            json: text.as_bytes(),
        };
        let tasks = [vec![job("a", false), job("b", true)], vec![job("c", false)]];
        let written = write(&dir, &tasks, Path::new("/p q/runner")).unwrap();
        assert_eq!(members(&dir), written);
        assert_eq!((written[1].task, written[2].task, written[1].fresh), (0, 1, true));
        let lines = fs::read_to_string(dir.join("tasks")).unwrap();
        assert_eq!(
            lines,
            format!("{} {}\n{}\n", written[0].file, written[1].file, written[2].file)
        );
        let script = fs::read_to_string(dir.join("script")).unwrap();
        let last = script
            .lines()
            .last()
            .unwrap()
            .replace(&home.path().display().to_string(), "HOME");
        let expected =
            r#"exec '/p q/runner' worker --batch 'HOME/jobs/it'\''s a batch/tasks' "$SLURM_ARRAY_TASK_ID""#;
        assert_eq!(last, expected);
        assert_eq!(submitted(&dir), None);
        write_whole(&dir.join("submitted"), b"12\n").unwrap();
        assert_eq!(submitted(&dir), Some(12));
        fs::write(dir.join(format!("{}.result", written[0].file)), "half a li").unwrap();
        fs::write(dir.join(format!("{}.events", written[2].file)), "").unwrap();
        let seen = list(&dir, true).unwrap();
        assert!(seen.results.contains(&written[0].file) && seen.events.contains(&written[2].file));
        assert!(result(&dir, &written[0].file).is_none());
        assert_eq!(batches(&home.path().join("jobs")), ["it's a batch"]);
    }

    #[test]
    fn events_are_read_in_whole_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.events");
        let line = |i: u64| {
            let event = StageEvent::Metric {
                name: "loss".to_owned(),
                step: i,
                value: f64::NAN,
            };
            Message::event(event).to_line()
        };
        let text: String = (0..20_000).map(line).collect();
        let (mut tail, mut steps) = (Tail::default(), Vec::new());
        assert!(tail.read(&path, |_| ()).is_err(), "there is no file yet");
        // Cut at any byte.
        for end in (0..text.len()).step_by(97_331).chain([text.len()]) {
            fs::write(&path, &text[..end]).unwrap();
            let mut take = |message: Message| {
                if let Some(StageEvent::Metric { step, .. }) = message.into_event() {
                    steps.push(step);
                }
            };
            while tail.read(&path, &mut take).unwrap() {}
        }
        assert_eq!(steps, Vec::from_iter(0..20_000));
    }

    #[test]
    fn a_program_is_copied_once_and_healed() {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("runner");
        fs::write(&program, "#!/bin/sh\necho ran\n").unwrap();
        let copy = copy_program(home.path(), &program).unwrap();
        let run = || std::process::Command::new(&copy).output().unwrap().stdout;
        assert_eq!(run(), b"ran\n");
        let file = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(&copy).unwrap());
        let written = file();
        let long_ago = SystemTime::now() - 2 * OLD;
        let other = copy.with_file_name("other");
        fs::write(&other, "x").unwrap();
        for path in [&copy, &other] {
            File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
        assert_eq!(copy_program(home.path(), &program).unwrap(), copy);
        assert_eq!(file(), written);
        assert!(
            fs::metadata(&copy).unwrap().modified().unwrap() > long_ago + OLD,
            "it is in use"
        );
        assert!(!other.exists(), "it has been replaced for long");
        fs::write(&copy, "cut").unwrap();
        copy_program(home.path(), &program).unwrap();
        assert_eq!(run(), b"ran\n");
    }
}
