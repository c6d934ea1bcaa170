//! Masking of the values of `secrets:` in logs: occurrences in a program's output are replaced by `***` before they reach a file.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, PipeReader, Read as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const MASK: &[u8] = b"***";

/// Replaces secrets in a stream of bytes.
pub(super) struct Masker {
    /// The values to mask, longest first.
    secrets: Vec<Vec<u8>>,
    /// The end of the input so far, if it may be the beginning of a secret.
    pending: Vec<u8>,
}

impl Masker {
    /// Masks these values, and each line of multi-line values. `None` if there are none.
    pub fn new<'v>(values: impl Iterator<Item = &'v str>) -> Option<Self> {
        let mut secrets: Vec<Vec<u8>> = values
            .flat_map(|value| std::iter::once(value.trim()).chain(value.lines().map(str::trim)))
            .filter(|text| !text.is_empty())
            .map(|text| text.as_bytes().to_vec())
            .collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        (!secrets.is_empty()).then_some(Self {
            secrets,
            pending: Vec::new(),
        })
    }

    /// Appends the next bytes and writes those that cannot be part of a secret; writes all at the `end`.
    fn push(&mut self, bytes: &[u8], end: bool, out: &mut Vec<u8>) {
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        while at < self.pending.len() {
            let rest = &self.pending[at..];
            let begins = |secret: &&Vec<u8>| secret.len() > rest.len() && secret.starts_with(rest);
            if !end && self.secrets.iter().any(|secret| begins(&secret)) {
                break;
            }
            match self.secrets.iter().find(|secret| rest.starts_with(secret)) {
                Some(secret) => {
                    out.extend_from_slice(MASK);
                    at += secret.len();
                }
                None => {
                    out.push(rest[0]);
                    at += 1;
                }
            }
        }
        self.pending.drain(..at);
    }
}

/// A thread that copies the output of a pipe, masked.
pub(super) struct Filter {
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Filter {
    pub fn start(mut masker: Masker, mut from: PipeReader, mut to: impl Write + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let thread = std::thread::spawn(move || {
            let mut bytes = vec![0; 64 << 10];
            let mut masked = Vec::new();
            loop {
                // Processes that outlive the program may keep the pipe open; their output is not awaited.
                let last = told.load(Ordering::Acquire);
                let count = match readable(&from) {
                    Ok(true) => from.read(&mut bytes).unwrap_or(0),
                    Ok(false) if !last => continue,
                    _ => 0,
                };
                masked.clear();
                masker.push(&bytes[..count], count == 0, &mut masked);
                // A full disk loses lines of the log; the program continues.
                let _ = to.write_all(&masked);
                if count == 0 {
                    break;
                }
            }
        });
        Self { over, thread }
    }

    /// Waits until all output of the program is copied.
    pub fn finish(self) {
        self.over.store(true, Ordering::Release);
        let _ = self.thread.join();
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn masked(secrets: &[&str], chunks: &[&[u8]]) -> String {
        let mut masker = Masker::new(secrets.iter().copied()).unwrap();
        let mut out = Vec::new();
        for chunk in chunks {
            masker.push(chunk, false, &mut out);
        }
        masker.push(b"", true, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn secrets_are_masked_whole_or_in_parts() {
        assert_eq!(
            masked(&["hunter2\n"], &[b"the key is hun", b"ter2, hunter"]),
            "the key is ***, hunter"
        );
        assert_eq!(masked(&["abc", "abcdef"], &[b"abc", b"de", b"f abcd"]), "*** ***d");
        assert_eq!(
            masked(&["first line\nsecond"], &[b"> second\n> first line"]),
            "> ***\n> ***"
        );
        assert!(Masker::new(["", " \n"].into_iter()).is_none());
    }

    proptest! {
        #[test]
        fn chunks_make_no_difference(text in "[ab ]{0,60}", secret in "[ab]{1,4}", at in prop::collection::vec(0usize..60, 0..5)) {
            let mut cuts: Vec<usize> = at.into_iter().map(|at| at.min(text.len())).collect();
            cuts.push(0);
            cuts.push(text.len());
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
            let whole = masked(&[&secret], &[text.as_bytes()]);
            prop_assert_eq!(&whole, &masked(&[&secret], &chunks));
            prop_assert_eq!(whole, text.replace(&secret, "***"));
        }
    }
}
