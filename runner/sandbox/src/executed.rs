//! The programs that a family executes, taken from the paths of its `execve` calls.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The maximum number of programs in a record.
const MOST: usize = 1000;

/// The maximum length of a path or a first line that is read, in bytes.
const LONGEST: usize = 4096;

/// The maximum depth of interpreters of interpreters that are followed.
const INTERPRETERS: usize = 4;

/// The executed programs of a family.
pub(super) struct Executed {
    programs: BTreeSet<PathBuf>,
    /// True before the family's first call.
    is_first: bool,
}

impl Executed {
    /// Starts the record. The family's first program is given, because the process that executes it does not
    /// let the supervisor read its memory.
    pub(crate) fn new(first: &Path) -> Self {
        Self {
            programs: BTreeSet::from([first.to_owned()]),
            is_first: true,
        }
    }

    /// Records a call that waits for its answer.
    pub(crate) fn record_call(&mut self, request: &libc::seccomp_notif) {
        if !std::mem::take(&mut self.is_first)
            && self.programs.len() < MOST
            && let Some(path) = executed_path(request)
        {
            self.record(request.pid, path);
        }
    }

    /// The executed programs.
    pub(crate) fn into_programs(self) -> BTreeSet<PathBuf> {
        self.programs
    }

    /// Records a program that exists, and the interpreters that it names in its first line.
    fn record(&mut self, pid: u32, mut path: PathBuf) {
        for _ in 0..INTERPRETERS {
            let inside = Path::new("/proc").join(pid.to_string()).join("root");
            let file = inside.join(path.strip_prefix("/").unwrap_or(&path));
            if !fs::metadata(&file).is_ok_and(|meta| meta.is_file()) {
                return;
            }
            let interpreter = interpreter(&file);
            self.programs.insert(path);
            match interpreter {
                Some(next) => path = next,
                None => return,
            }
        }
    }
}

/// The absolute path that a call is about to execute.
fn executed_path(request: &libc::seccomp_notif) -> Option<PathBuf> {
    let process = Path::new("/proc").join(request.pid.to_string());
    let is_at = i64::from(request.data.nr) == libc::SYS_execveat;
    let [first, second, ..] = request.data.args;
    let path = read_text(&process, if is_at { second } else { first })?;
    if path.is_absolute() {
        return Some(path);
    }
    let descriptor = first as u32 as i32;
    let base = if is_at && descriptor != libc::AT_FDCWD {
        fs::read_link(process.join("fd").join(descriptor.to_string())).ok()?
    } else {
        fs::read_link(process.join("cwd")).ok()?
    };
    // Removes the `.` of `./script`; an empty path denotes the descriptor's file itself.
    Some(base.join(path).components().collect())
}

/// Reads a text from the memory of a process.
fn read_text(process: &Path, address: u64) -> Option<PathBuf> {
    let memory = File::open(process.join("mem")).ok()?;
    let mut text = vec![0; LONGEST];
    // The text may end just before unreadable memory, so it is read page by page.
    let mut length = 0;
    while length < LONGEST && !text[..length].contains(&0) {
        let at = address + length as u64;
        let page = LONGEST - (at as usize % LONGEST);
        let end = LONGEST.min(length + page);
        match memory.read_at(&mut text[length..end], at) {
            Ok(count) if count > 0 => length += count,
            _ => break,
        }
    }
    let end = text[..length].iter().position(|&byte| byte == 0)?;
    Some(PathBuf::from(OsStr::from_bytes(&text[..end])))
}

/// The interpreter that the first line of a script names.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    File::open(script).ok()?.take(256).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let path = line.trim_ascii().split(|byte| byte.is_ascii_whitespace()).next()?;
    let path = PathBuf::from(OsStr::from_bytes(path));
    path.is_absolute().then_some(path)
}
