//! The log of an external program: what it writes to standard output and error, masked and bounded.
//!
//! The first half of the size limit is written to the file as it arrives; the second half of the file is a
//! ring, in which the newest bytes replace the oldest. Neither memory nor disk usage grows with the output,
//! and both its head and its tail are kept. Without output there is no file.

use super::secrets::Masker;
use cache::shared;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::{self, File};
use std::io::{self, PipeReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The size of a read, in bytes.
const PIECE: usize = 64 << 10;

/// The longest time for which output is read after the program has ended: an escaped process may keep the
/// pipe open.
const LATE: Duration = Duration::from_secs(2);

/// The longest line that is shown as progress, in characters.
const LINE: usize = 200;

/// A thread that writes a program's output to its log.
pub(super) struct LogWriter {
    over: Arc<AtomicBool>,
    last_line: Arc<Mutex<Option<String>>>,
    thread: JoinHandle<Ring>,
}

impl LogWriter {
    /// Starts a new log of at most `limit` bytes at `path`, and returns the pipe to write to.
    pub(super) fn start(
        path: &Path,
        limit: u64,
        mut masker: Option<Masker>,
    ) -> io::Result<(Self, io::PipeWriter)> {
        let mut ring = Ring::new(path, limit)?;
        let (mut from, to) = io::pipe()?;
        let over = Arc::new(AtomicBool::new(false));
        let last_line = Arc::new(Mutex::new(None));
        let (told, shown) = (over.clone(), last_line.clone());
        let thread = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            let mut bytes = vec![0; PIECE];
            let mut masked = Vec::new();
            let mut lines = LastLine::default();
            let mut until: Option<Instant> = None;
            loop {
                let is_over = told.load(Ordering::Acquire);
                if is_over {
                    until.get_or_insert_with(|| Instant::now() + LATE);
                }
                let count = match readable(&from) {
                    _ if until.is_some_and(|until| Instant::now() > until) => 0,
                    Ok(true) => from.read(&mut bytes).unwrap_or(0),
                    Ok(false) if !is_over => continue,
                    _ => 0,
                };
                let written: &[u8] = match &mut masker {
                    None => &bytes[..count],
                    Some(masker) => {
                        masked.clear();
                        masker.push(&bytes[..count], count == 0, &mut masked);
                        &masked
                    }
                };
                ring.write(written);
                if let Some(line) = lines.push(written) {
                    *shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
                }
                if count == 0 {
                    return ring;
                }
            }
        })?;
        Ok((
            Self {
                over,
                last_line,
                thread,
            },
            to,
        ))
    }

    /// Returns the last complete line written since the previous call.
    pub(super) fn last_line(&self) -> Option<String> {
        self.last_line.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until all output is written, and puts the two halves of the log in order.
    pub(super) fn finish(self) -> io::Result<()> {
        self.over.store(true, Ordering::Release);
        match self.thread.join() {
            Ok(ring) => ring.finish(),
            Err(_) => Err(io::Error::other("the writer of the log panicked")),
        }
    }
}

/// Waits briefly until the pipe is readable or at end of file.
fn readable(pipe: &PipeReader) -> io::Result<bool> {
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    let mut fds = [PollFd::new(pipe, PollFlags::IN)];
    match poll(&mut fds, Some(&wait)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(err) => Err(err.into()),
    }
}

/// The last complete line of a stream.
#[derive(Default)]
struct LastLine {
    /// The beginning of the current line, up to the length that is shown.
    begun: Vec<u8>,
}

impl LastLine {
    fn push(&mut self, bytes: &[u8]) -> Option<String> {
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let mut last = None;
        let mut rest = bytes;
        // Only the last line of a piece is needed.
        if let Some(end) = bytes.iter().rposition(ends) {
            let lines = &bytes[..end];
            let begin = lines.iter().rposition(ends).map(|at| at + 1);
            match begin {
                Some(begin) => last = shown(&lines[begin..]),
                None => {
                    self.begun.extend_from_slice(&lines[..lines.len().min(4 * LINE)]);
                    last = shown(&self.begun);
                }
            }
            self.begun.clear();
            rest = &bytes[end + 1..];
        }
        let room = (4 * LINE).saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&rest[..rest.len().min(room)]);
        last
    }
}

fn shown(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let text: String = text.trim().chars().filter(|c| !c.is_control()).take(LINE).collect();
    (!text.is_empty()).then_some(text)
}

/// A file of bounded size.
struct Ring {
    path: PathBuf,
    /// The file, once there is output.
    file: Option<io::Result<File>>,
    /// The size of each half, in bytes.
    half: u64,
    /// The number of bytes written so far.
    total: u64,
}

impl Ring {
    fn new(path: &Path, limit: u64) -> io::Result<Self> {
        // The file of an earlier attempt would pass for the output of a program without any.
        match fs::remove_file(path) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
            _ => {}
        }
        Ok(Self {
            path: path.to_owned(),
            file: None,
            half: (limit / 2).max(1),
            total: 0,
        })
    }

    fn create(path: &Path) -> io::Result<File> {
        let open = || {
            File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(path)
        };
        match (open(), path.parent()) {
            (Err(err), Some(parent)) if err.kind() == io::ErrorKind::NotFound => {
                shared::create_dir_all(parent)?;
                open()
            }
            (opened, _) => opened,
        }
    }

    /// Writes bytes. A full disk loses lines of the log; the program continues.
    fn write(&mut self, mut bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let file = self.file.get_or_insert_with(|| Self::create(&self.path));
        while !bytes.is_empty() {
            let (at, room) = match self.total.checked_sub(self.half) {
                None => (self.total, self.half - self.total),
                Some(over) => (self.half + over % self.half, self.half - over % self.half),
            };
            let count = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let _ = file.as_ref().map(|file| file.write_all_at(&bytes[..count], at));
            self.total += count as u64;
            bytes = &bytes[count..];
        }
    }

    /// Puts the tail in order, after a line that states how much is missing.
    fn finish(self) -> io::Result<()> {
        let Some(mut file) = self.file.transpose()? else {
            return Ok(());
        };
        let omitted = self.total.saturating_sub(2 * self.half);
        if omitted == 0 {
            return Ok(());
        }
        let mut name = self.path.clone().into_os_string();
        name.push(".part");
        let part = PathBuf::from(name);
        let mut ordered = File::create(&part)?;
        // The ring's oldest byte is where the next one would have been written.
        let oldest = self.half + omitted % self.half;
        let mut copy = |from: u64, to: u64, ordered: &mut File| -> io::Result<()> {
            file.seek(SeekFrom::Start(from))?;
            io::copy(&mut (&file).take(to - from), ordered).map(|_| ())
        };
        copy(0, self.half, &mut ordered)?;
        ordered.write_all(format!("\n[{omitted} bytes omitted]\n").as_bytes())?;
        copy(oldest, 2 * self.half, &mut ordered)?;
        copy(self.half, oldest, &mut ordered)?;
        fs::rename(&part, &self.path)
    }
}

/// The last bytes of a file.
pub(super) fn tail(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
    let mut tail = Vec::new();
    file.take(bytes).read_to_end(&mut tail)?;
    Ok(tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn logged(limit: u64, pieces: &[&[u8]]) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs/a.log");
        let (writer, mut to) = LogWriter::start(&path, limit, None).unwrap();
        for piece in pieces {
            to.write_all(piece).unwrap();
        }
        drop(to);
        writer.finish().unwrap();
        assert_eq!(path.exists(), pieces.iter().any(|piece| !piece.is_empty()));
        fs::read(path).unwrap_or_default()
    }

    #[test]
    fn head_and_tail_are_kept() {
        assert_eq!(logged(8, &[b"abc", b"defgh"]), b"abcdefgh");
        assert_eq!(
            String::from_utf8(logged(8, &[b"abcdefghi", b"jklm"])).unwrap(),
            "abcd\n[5 bytes omitted]\njklm"
        );
    }

    #[test]
    fn the_file_of_an_earlier_attempt_is_no_output() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        fs::write(&path, "earlier\n").unwrap();
        let (writer, to) = LogWriter::start(&path, 100, None).unwrap();
        drop(to);
        writer.finish().unwrap();
        assert!(!path.exists());
        // One that stays would pass for it.
        fs::create_dir(&path).unwrap();
        assert!(LogWriter::start(&path, 100, None).is_err());
    }

    #[test]
    fn a_pipe_that_stays_open_is_not_awaited_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let (writer, mut to) = LogWriter::start(&path, 100, None).unwrap();
        to.write_all(b"a line\n").unwrap();
        writer.finish().unwrap();
        assert_eq!(fs::read(path).unwrap(), b"a line\n");
    }

    #[test]
    fn the_last_line_is_the_last_complete_one() {
        let mut lines = LastLine::default();
        assert_eq!(lines.push(b"one\ntw"), Some("one".to_owned()));
        assert_eq!(lines.push(b"o"), None);
        assert_eq!(lines.push(b"\nthree\rfour\n"), Some("four".to_owned()));
        assert_eq!(lines.push(b"x\n\n"), None);
        assert_eq!(shown(&[b'x'; 1000]).unwrap().len(), LINE);
    }

    proptest! {
        #[test]
        fn any_pieces_make_the_same_log(lengths in prop::collection::vec(0usize..40, 0..8),
            limit in 2u64..50) {
            let text: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|i| b'a' + (i % 26) as u8).collect();
            let mut rest = &text[..];
            let pieces: Vec<&[u8]> =
                lengths.iter().map(|&length| rest.split_off(..length).unwrap()).collect();
            let half = (limit / 2) as usize;
            let expected = if text.len() <= 2 * half {
                text.clone()
            } else {
                let omitted = text.len() - 2 * half;
                [&text[..half], format!("\n[{omitted} bytes \
                    omitted]\n").as_bytes(), &text[text.len() - half..]].concat()
            };
            prop_assert_eq!(logged(limit, &pieces), expected);
        }
    }
}
