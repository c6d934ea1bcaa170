//! Scrubbing: incremental verification that finds silent damage before a blob is needed.

use crate::checksummed::{self, Checksummed};
use crate::digest::BlobDigest;
use crate::error::Result;
use crate::listing;
use crate::store::Store;
use serde::Serialize;
use std::time::{Duration, Instant};

/// A lower bound of the hashing rate in bytes per second: a blob that cannot be hashed in the remaining time
/// is not begun.
const BYTES_PER_SECOND: f64 = 1e9;

/// The findings of a scrub. Damaged blobs have been moved to `damaged/`, and are computed or fetched again
/// when needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScrubReport {
    /// The number of blobs hashed.
    pub blobs: u64,
    /// The number of bytes hashed.
    pub bytes: u64,
    /// Blobs whose bytes do not match their digest.
    pub damaged: Vec<BlobDigest>,
}

impl Store {
    /// Hashes blobs until `budget` is used up, continuing cyclically where the last scrub ended. A blob too
    /// large for the whole budget is skipped: [`Store::verify`] reads such blobs. Does nothing while another
    /// process scrubs.
    pub fn scrub(&self, budget: Duration) -> Result<ScrubReport> {
        let began = Instant::now();
        let mut report = ScrubReport::default();
        let Some(_lock) = self.try_task_lock("scrub")? else {
            return Ok(report);
        };
        let cursor = self.folder("scrubbed");
        let last: Option<BlobDigest> = match checksummed::read(&cursor)? {
            Checksummed::Intact(last, _) => Some(last),
            Checksummed::Absent | Checksummed::Damaged(_) => None,
        };
        let first = last.map_or(0, |digest| digest.as_bytes()[0]);
        let mut reached = None;
        // Visits all shards, and then the first one again up to the starting point.
        'shards: for turn in 0..=256_u16 {
            let shard = first.wrapping_add(turn as u8);
            for (path, meta) in
                listing::entries_with_metadata(&self.folder("blobs").join(format!("{shard:02x}")))?
            {
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
                    // The next scrub starts with this blob.
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
            // An empty shard advances the cursor, too.
            let mut last_of_shard = [u8::MAX; 32];
            last_of_shard[0] = shard;
            reached = Some(BlobDigest::from_bytes(last_of_shard));
            if began.elapsed() >= budget {
                break;
            }
        }
        if let Some(reached) = reached {
            checksummed::replace(self.root(), &cursor, &reached)?;
        }
        Ok(report)
    }
}
