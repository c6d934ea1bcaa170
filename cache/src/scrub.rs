//! A little verification now and then: silent damage is found before its blob is needed.

use crate::lock;
use crate::publish::found;
use crate::{BlobDigest, Result, Store, walk};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Bytes hashed in a second, at least: what does not fit into the time that is left is not begun.
const BYTES_PER_SECOND: f64 = 1e9;

/// What a scrub found. What was damaged has been moved to `damaged/`, and is computed or fetched again when it is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScrubReport {
    /// Blobs hashed.
    pub blobs: u64,
    /// Bytes hashed.
    pub bytes: u64,
    /// Blobs whose bytes are not what their name says.
    pub damaged: Vec<BlobDigest>,
}

impl Store {
    /// Hashes blobs for as long as `budget`, beginning where the last scrub ended, round and round. A blob too large for
    /// the whole time is passed over: [`Store::verify`] reads those. Does nothing while another process scrubs.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn scrub(&self, budget: Duration) -> Result<ScrubReport> {
        let began = Instant::now();
        let mut report = ScrubReport::default();
        let Some(_alone) = lock::try_exclusive(&self.folder("locks").join("scrub"))? else {
            return Ok(report);
        };
        let place = self.folder("scrubbed");
        let last = found(std::fs::read_to_string(&place), "read", &place)?;
        let last: Option<BlobDigest> = last.and_then(|text| text.trim().parse().ok());
        let first = last.map_or(0, |digest| digest.as_bytes()[0]);
        let mut reached = None;
        // All shards, and the first one again up to where it began.
        'shards: for turn in 0..=256_u16 {
            let shard = first.wrapping_add(turn as u8);
            for (path, meta) in walk::entries_with_metadata(&self.folder("blobs").join(format!("{shard:02x}")))? {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let Ok(digest) = format!("{shard:02x}{name}").parse::<BlobDigest>() else {
                    continue;
                };
                let seen = last.is_some_and(|last| digest <= last);
                if (turn == 0 && seen) || (turn == 256 && !seen) {
                    continue;
                }
                let Some(left) = budget.checked_sub(began.elapsed()) else {
                    break 'shards;
                };
                let fits = |time: Duration| meta.len() as f64 <= time.as_secs_f64() * BYTES_PER_SECOND;
                if !fits(left) && fits(budget) {
                    // The next scrub begins with it.
                    break 'shards;
                }
                reached = Some(digest);
                if !fits(left) {
                    continue;
                }
                report.blobs += 1;
                report.bytes += meta.len();
                if !self.check_file(digest, &path)? {
                    report.damaged.push(digest);
                }
            }
            // Also an empty shard is a step forward.
            let mut last_of_shard = [u8::MAX; 32];
            last_of_shard[0] = shard;
            reached = Some(BlobDigest::from_bytes(last_of_shard));
            if began.elapsed() >= budget {
                break;
            }
        }
        if !report.damaged.is_empty() {
            self.forget_recent()?;
        }
        if let Some(reached) = reached {
            self.replace_file(&place, &format!("{reached}\n"))?;
        }
        Ok(report)
    }
}
