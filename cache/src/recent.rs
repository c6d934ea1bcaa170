//! The hits of recent runs, remembered together: what a run that has nothing to do needs, in one small file.
//!
//! Looking a thousand actions up by their records costs a thousand small files, opened, read and checked. A run leaves
//! the hits it ended with in one sealed file, under a name of its own; the next one reads that and looks only at the
//! blobs. It is derived from the records: where it is missing, damaged or stale, they are read. `gc` counts the actions
//! of a young file as used when it was written.

mod packed;

use crate::publish::{remove, touch_record};
use crate::record::Hit;
use crate::sealed::{self, Sealed};
use crate::store::sharded;
use crate::{ActionKey, BlobDigest, BlobRef, KeyHasher, Result, Store};
use rustix::fs::{AtFlags, FileType, Stat, statat};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs::{File, Metadata};
use std::hash::{BuildHasherDefault, Hasher};
use std::path::PathBuf;

/// A thread more pays from so many hits on.
const PER_THREAD: usize = 128;

/// The hits that a run of some name ended with, less those that have lost a blob.
#[derive(Debug, Default)]
pub struct Recent {
    hits: HashMap<ActionKey, Hit, BuildHasherDefault<Leading>>,
}

/// Takes the first bytes of a key for its hash, which it is.
#[derive(Default)]
struct Leading(u64);

impl Hasher for Leading {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(bytes) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*bytes);
        }
    }

    // The length of a key, which is that of all.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Recent {
    /// The hit of an action, if it was among them.
    pub fn get(&self, key: ActionKey) -> Option<&Hit> {
        self.hits.get(&key)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.hits.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }
}

impl Store {
    fn recent_path(&self, name: &[u8]) -> PathBuf {
        let name = KeyHasher::new("runner 2026-11 recent v2").field(name).memo_key();
        sharded(&self.folder("recent"), &name.to_hex())
    }

    /// What the last run of this name ended with. Every blob of every hit was looked at (its size, not its bytes).
    /// Nothing where the file is missing, damaged or of another version: it is only a short cut.
    pub fn recent(&self, name: &[u8]) -> Recent {
        let path = self.recent_path(name);
        let Ok(Sealed::Intact(bytes, meta)) = sealed::read_bytes(&path) else {
            return Recent::default();
        };
        let Some(hits) = packed::unpack(&bytes) else {
            return Recent::default();
        };
        touch_record(&path, &meta);
        let Ok(blobs) = File::open(self.folder("blobs")) else {
            return Recent::default();
        };
        let sound = |(_, hit): &(ActionKey, Hit)| self.is_whole(&blobs, hit);
        let threads = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(hits.len() / PER_THREAD)
            .max(1);
        let keep: Vec<bool> = std::thread::scope(|scope| {
            let mut parts = hits.chunks(hits.len().div_ceil(threads).max(1));
            let first = parts.next().unwrap_or_default();
            let others: Vec<_> = parts
                .map(|part| scope.spawn(move || part.iter().map(sound).collect::<Vec<_>>()))
                .collect();
            let mut keep: Vec<bool> = first.iter().map(sound).collect();
            for other in others {
                keep.extend(other.join().unwrap_or_default());
            }
            keep
        });
        Recent {
            hits: hits
                .into_iter()
                .zip(keep)
                .filter_map(|(hit, keep)| keep.then_some(hit))
                .collect(),
        }
    }

    /// Remembers what a run of this name ended with, in place of what was remembered.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn remember(&self, name: &[u8], hits: &[(ActionKey, Hit)]) -> Result<()> {
        sealed::write_bytes(self.root(), &self.recent_path(name), packed::pack(hits))
    }

    /// Whether every blob of a hit is here (or in the remote, as far as is known), and its log. There are thousands: paths
    /// are short, from the folder of blobs on.
    fn is_whole(&self, blobs: &File, hit: &Hit) -> bool {
        let mut path = String::with_capacity(80);
        let mut has = |digest: BlobDigest, size: u64| {
            let hex = blake3::Hash::from_bytes(*digest.as_bytes()).to_hex();
            path.clear();
            let _ = write!(path, "{}/{}", &hex[..2], &hex[2..]);
            let stat = statat(blobs, &path, AtFlags::empty());
            let is_here = |stat: Stat| FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_size as u64 == size;
            stat.is_ok_and(is_here) || self.remembers_there(BlobRef { blob: digest, size })
        };
        hit.blobs.iter().all(|&(digest, size)| has(digest, size)) && hit.log.is_none_or(|log| has(log.blob, log.size))
    }

    /// The files of this kind, with the actions that each remembers.
    pub(crate) fn recent_files(&self) -> Result<Vec<(PathBuf, Metadata, BTreeSet<ActionKey>)>> {
        let files = self.list::<BlobDigest>("recent")?;
        files
            .into_iter()
            .map(|file| {
                let hits = match sealed::read_bytes(&file.path)? {
                    Sealed::Intact(bytes, _) => packed::unpack(&bytes).unwrap_or_default(),
                    Sealed::Absent | Sealed::Damaged(_) => Vec::new(),
                };
                let keys = hits.into_iter().map(|(key, _)| key).collect();
                Ok((file.path, file.meta, keys))
            })
            .collect()
    }

    /// Forgets all of them: after damage was found, say.
    pub(crate) fn forget_recent(&self) -> Result<()> {
        for file in self.list::<BlobDigest>("recent")? {
            remove(&file.path)?;
        }
        Ok(())
    }
}
