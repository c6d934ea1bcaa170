//! Counts and sizes of a store's contents.

use crate::artifact::Artifact;
use crate::checksummed::{self, Checksummed};
use crate::digest::{ActionKey, ArtifactDigest, BlobDigest, MemoKey};
use crate::error::Result;
use crate::listing;
use crate::record::{StoredAction, StoredMemo};
use crate::regular_file::read_own;
use crate::store::Store;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A number of files and their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// The number of files.
    pub count: u64,
    /// The total size of the files in bytes.
    pub bytes: u64,
}

impl Count {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// The contents of a store. Sizes are lengths of files; a file system may use more, or less where it
/// compresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// All blobs.
    pub blobs: Count,
    /// The blobs that neither an action's outputs, log and fetched sources nor a memo need.
    pub unreferenced: Count,
    /// The output artifacts of actions, by type. A blob shared by two artifacts is counted in both.
    pub artifacts: BTreeMap<String, Count>,
    /// Action records.
    pub actions: Count,
    /// Memo records.
    pub memos: Count,
    /// Digests of source files.
    pub stat: Count,
    /// Checkpoints of unfinished work.
    pub scratch: Count,
    /// Batches of jobs of clusters: requests, events and results.
    pub jobs: Count,
    /// Copies of the program for the nodes of clusters.
    pub programs: Count,
    /// Files being written, and leftovers of crashes.
    pub tmp: Count,
    /// Quarantined damaged files.
    pub damaged: Count,
}

impl Status {
    /// The total size in bytes.
    pub fn bytes(&self) -> u64 {
        [
            self.blobs,
            self.actions,
            self.memos,
            self.stat,
            self.scratch,
            self.jobs,
            self.programs,
            self.tmp,
            self.damaged,
        ]
        .iter()
        .map(|count| count.bytes)
        .sum()
    }
}

impl Store {
    /// Counts the contents of the store. Reads records and manifests, but no other blob; changes nothing.
    pub fn status(&self) -> Result<Status> {
        let mut status = Status::default();
        let mut needed = BTreeSet::new();
        let mut artifacts = BTreeSet::new();
        for action in self.list::<ActionKey>("actions")? {
            status.actions.add(action.meta.len());
            if let Checksummed::Intact(stored, _) = checksummed::read::<StoredAction>(&action.path)? {
                needed.extend(stored.blobs().chain(stored.record.log).map(|blob| blob.blob));
                needed.extend(stored.record.sources.iter().map(|source| source.blake3));
                artifacts.extend(stored.record.outputs.into_values());
            }
        }
        for memo in self.list::<MemoKey>("memos")? {
            status.memos.add(memo.meta.len());
            if let Checksummed::Intact(stored, _) = checksummed::read::<StoredMemo>(&memo.path)? {
                needed.insert(stored.value.blob);
            }
        }
        for blob in self.list::<BlobDigest>("blobs")? {
            status.blobs.add(blob.meta.len());
            if !needed.contains(&blob.id) {
                status.unreferenced.add(blob.meta.len());
            }
        }
        for digest in artifacts {
            self.count_artifact(digest, &mut status)?;
        }
        for file in self.list::<BlobDigest>("stat")? {
            status.stat.add(file.meta.len());
        }
        for folder in self.list::<MemoKey>("scratch")? {
            status.scratch.add(listing::size_and_age(&folder.path, &folder.meta)?.0);
        }
        for job in self.jobs()? {
            status.jobs.add(job.bytes);
        }
        for program in self.programs()? {
            status.programs.add(program.bytes);
        }
        for (name, count) in [("tmp", &mut status.tmp), ("damaged", &mut status.damaged)] {
            for (_, meta) in listing::entries_with_metadata(&self.folder(name))? {
                count.add(meta.len());
            }
        }
        Ok(status)
    }

    /// Counts an artifact; unreadable manifests are skipped, since `verify` reports them.
    fn count_artifact(&self, digest: ArtifactDigest, status: &mut Status) -> Result<()> {
        let path = self.blob_path(digest.into());
        let Some(bytes) = read_own(&path)? else {
            return Ok(());
        };
        if let Ok(artifact) = serde_json::from_slice::<Artifact>(&bytes) {
            let size = artifact.entries.iter().map(|entry| entry.size).sum::<u64>() + bytes.len() as u64;
            status.artifacts.entry(artifact.kind).or_default().add(size);
        }
        Ok(())
    }
}
