//! The rows of a replay buffer on disk, beside the checkpoint: files that are only appended to, so that a
//! checkpoint costs no more than the rows since the last one.
//!
//! A file is a sequence of frames: the index of the first row, the number of rows, the rows, and a checksum.
//! A checkpoint names the number of rows that it depends on; frames after that are of a training that was
//! killed, and are cut off when it resumes. Files of rows that are overwritten in the buffer are removed.

use crate::checkpoint::failed;
use cache::KeyHasher;
use stages_core::StageError;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The bytes of a frame besides its rows: index, number, checksum.
const HEAD: usize = 16;
const CHECKSUM: usize = 64;

/// The size in bytes from which another file is begun.
const FILE: u64 = 16 << 20;

/// The number of digits of a row's index in a file name.
const DIGITS: usize = 20;

pub(super) struct Journal {
    folder: PathBuf,
    /// The last file, and its length.
    last: Option<(File, u64)>,
    buffer: Vec<u8>,
}

/// Appends a frame of rows from `first` on, of `row` bytes each, to a buffer; `write` appends the rows.
pub(super) fn frame(
    first: u64,
    rows: usize,
    row: usize,
    into: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) {
    let start = into.len();
    into.extend_from_slice(&first.to_le_bytes());
    into.extend_from_slice(&(rows as u64).to_le_bytes());
    write(into);
    debug_assert_eq!(into.len(), start + HEAD + rows * row, "the length of a frame");
    let sum = checksum(&into[start..]);
    into.extend_from_slice(sum.as_bytes());
}

fn checksum(bytes: &[u8]) -> String {
    KeyHasher::new("runner 2026-11 replay v1")
        .field(bytes)
        .memo_key()
        .to_hex()
}

/// The first frame of `bytes`: the index of its first row, its rows, and the bytes after it; `None` if there
/// is no intact frame.
pub(super) fn read_frame(bytes: &[u8], row: usize) -> Option<(u64, &[u8], &[u8])> {
    let (first, rest) = bytes.split_first_chunk::<8>()?;
    let (rows, _) = rest.split_first_chunk::<8>()?;
    let rows = usize::try_from(u64::from_le_bytes(*rows)).ok()?;
    let end = rows.checked_mul(row)?.checked_add(HEAD)?;
    let (data, rest) = bytes.split_at_checked(end)?;
    let (sum, rest) = rest.split_at_checked(CHECKSUM)?;
    (sum == checksum(data).as_bytes()).then_some((u64::from_le_bytes(*first), &data[HEAD..], rest))
}

impl Journal {
    /// The journal in `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            last: None,
            buffer: Vec::new(),
        }
    }

    /// The files, by the index of their first row.
    fn files(&self) -> Vec<(u64, PathBuf)> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let index = name
                .to_str()
                .and_then(|name| name.strip_prefix("replay.")?.strip_suffix(".rows"));
            if let Some(Ok(first)) = index.map(str::parse) {
                files.push((first, entry.path()));
            }
        }
        files.sort();
        files
    }

    /// Removes all rows.
    pub(super) fn clear(&mut self) -> Result<(), StageError> {
        self.last = None;
        for (_, path) in self.files() {
            fs::remove_file(&path).map_err(|err| failed("remove", &path, &err))?;
        }
        Ok(())
    }

    /// Passes the rows `from..to`, in their order, to `take`, and cuts off what follows; `false` if some are
    /// missing.
    pub(super) fn read(
        &mut self,
        from: u64,
        to: u64,
        row: usize,
        mut take: impl FnMut(u64, &[u8]),
    ) -> Result<bool, StageError> {
        let files = self.files();
        let begin = files.iter().rposition(|(first, _)| *first <= from).unwrap_or(0);
        let mut next = None;
        for (i, (_, path)) in files.iter().enumerate().skip(begin) {
            if next == Some(to) {
                fs::remove_file(path).map_err(|err| failed("remove", path, &err))?;
                continue;
            }
            let bytes = fs::read(path).map_err(|err| failed("read", path, &err))?;
            let mut rest = &*bytes;
            while next != Some(to)
                && let Some((first, rows, after)) = read_frame(rest, row)
            {
                // Rows that are missing were overwritten before they could be written, if those before `from`
                // are.
                if next.is_some_and(|next| first < next) || first > next.unwrap_or(from).max(from) {
                    return Ok(false);
                }
                for (k, bytes) in rows.chunks_exact(row).enumerate() {
                    if (from..to).contains(&(first + k as u64)) {
                        take(first + k as u64, bytes);
                    }
                }
                next = Some(first + (rows.len() / row) as u64);
                rest = after;
            }
            if next == Some(to) {
                let end = (bytes.len() - rest.len()) as u64;
                let file = OpenOptions::new()
                    .append(true)
                    .open(path)
                    .map_err(|err| failed("open", path, &err))?;
                file.set_len(end).map_err(|err| failed("cut", path, &err))?;
                self.last = Some((file, end));
            } else if i + 1 == files.len() {
                return Ok(false);
            }
        }
        Ok(from == to || next == Some(to))
    }

    /// Appends rows from `first` on, of `row` bytes each, which `write` appends to a buffer.
    pub(super) fn append(
        &mut self,
        first: u64,
        rows: usize,
        row: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), StageError> {
        self.buffer.clear();
        frame(first, rows, row, &mut self.buffer, write);
        let path = self.folder.join(format!("replay.{first:0DIGITS$}.rows"));
        let file = match &mut self.last {
            Some(last) if last.1 < FILE => last,
            last => {
                let file = OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(&path)
                    .map_err(|err| failed("create", &path, &err))?;
                last.insert((file, 0))
            }
        };
        file.0
            .write_all(&self.buffer)
            .map_err(|err| failed("write", &path, &err))?;
        file.1 += self.buffer.len() as u64;
        Ok(())
    }

    /// Removes the files of rows before `from`, except the last two of them: after a divergence, the last
    /// good checkpoint is a little older.
    pub(super) fn prune(&self, from: u64) {
        let files = self.files();
        let before = files.iter().filter(|(first, _)| *first <= from).count();
        for (_, path) in files.iter().take(before.saturating_sub(3)) {
            // What cannot be removed is only in the way of nothing.
            drop(fs::remove_file(path));
        }
    }
}
