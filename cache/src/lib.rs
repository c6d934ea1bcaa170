//! A content-addressed cache: blobs, artifacts, action records and memos.
//!
//! ```text
//! HOME/                       `.runner/` or `RUNNER_HOME`
//! ├── format                  the version of this layout, `1`
//! ├── flushed                 the machine's boot id, and the time up to which all files have been flushed to
//! │                           the disk (with a checksum)
//! ├── unflushed               exists while something may have been written since; `flushing` during a flush
//! ├── scrubbed                the cursor of the scrub: the blob that the last one ended with (likewise)
//! ├── blobs/ab/cdef…          bytes, named by their BLAKE3 digest; read-only
//! ├── actions/ab/cdef…        action records, named by action key: a line of JSON, a line with its checksum
//! ├── memos/ab/cdef…          memo records (likewise), named by memo key
//! ├── derived/ab/cdef…        derived files, such as the interpreters of environments (bytes and their checksum)
//! ├── remote                  the index of blobs that the upstream holds according to earlier requests and
//! │                           that are not here
//! ├── stat/ab/cdef…           digests of source files (likewise), named by the digest of their path
//! ├── scratch/ab/cdef…/       checkpoints of unfinished work, mutable, dropped by `gc`
//! ├── jobs/                   jobs of clusters, by batch: requests, events and results, dropped by `gc`
//! ├── programs/               copies of the program for the nodes of clusters, by digest, dropped by `gc`
//! ├── damaged/                quarantined damaged files, dropped by `gc`
//! ├── locks/                  advisory locks: one per action being computed and per directory of
//! │   │                       `scratch/` in use, `store` for `gc`
//! │   ├── owners/             where several hosts share the store: the processes that hold anything
//! │   └── 0/, 1/, …           and their locks, by epoch
//! └── tmp/                    files being written, and workspaces of external programs
//! ```
//!
//! An artifact's manifest is itself a blob: its digest is the digest of its canonical JSON. Nothing here
//! depends on markets, stages or YAML, and nothing waits for a network: an [`Upstream`] and a [`FetchFiles`]
//! do, in the crate `cache-remote`.
//!
//! Invariants at every instant, whichever process crashes: a file has its name only when it is complete
//! (atomic write); a record is written after everything it names; bytes are checked before their first use in
//! a process, so that damage is detected, quarantined and healed by computing again; anything but a regular
//! file counts as damage, and is never waited for. `gc` runs only while no run uses the store
//! ([`Store::guard`]).
//!
//! Whatever returns a [`Result`] fails when the store cannot be read or written; other errors are documented
//! where they occur.
//!
//! | layer | modules |
//! | --- | --- |
//! | files | [`fs`], [`shared`], [`regular_file`], [`obstacle`], [`file_lock`], [`mod@flush`], [`atomic_write`], [`checksummed`] |
//! | several hosts | [`life`], [`owner`], [`lease`], [`visibility`] |
//! | formats | [`digest`], [`canonical`], [`plain_text`], [`blob`], [`artifact`], [`record`], [`upstream`], [`remote_file`] |
//! | the store | [`store`], and its readers and writers: [`read_through`], [`lookup`], [`derived`], [`blob_writer`], … |
//! | upkeep | [`open`], [`recovery`], [`verify`], [`scrub`], [`gc`], [`bound`], [`jobs`], [`status`] |

mod artifact;
mod artifact_builder;
mod atomic_write;
mod blob;
mod blob_writer;
mod bound;
mod canonical;
pub mod checksummed;
mod derived;
mod digest;
mod error;
mod export;
mod fetched_file;
mod file_lock;
mod flush;
mod fs;
mod gc;
mod jobs;
mod lease;
mod life;
mod listing;
mod lock;
mod lookup;
#[cfg(target_os = "macos")]
mod macos;
mod obstacle;
mod open;
mod owner;
pub mod parallel;
mod partial_blob;
mod plain_text;
mod read_through;
mod record;
mod recovery;
pub mod regular_file;
mod remote_file;
mod remote_index;
mod scratch;
mod scrub;
pub mod shared;
mod source_digest;
mod status;
mod store;
pub mod untrusted;
mod upstream;
mod verify;
mod visibility;
mod workspace;

pub use artifact::{Artifact, Entry, check_path};
pub use artifact_builder::ArtifactBuilder;
pub use blob::{Blob, BlobRef};
pub use blob_writer::BlobWriter;
pub use canonical::canonical_json;
pub use digest::{ActionKey, ArtifactDigest, BlobDigest, KeyHasher, MemoKey};
pub use error::{Error, Result};
pub use fetched_file::{FetchedFile, OnBytes, RemoteFile, Seen};
pub use flush::flush;
pub use gc::{GcPlan, GcReport};
pub use listing::remove_tree;
pub use lock::{ActionLock, StoreGuard};
pub use partial_blob::PartialBlob;
pub use plain_text::plain_text;
pub use read_through::OpenUpstream;
pub use record::{ActionRecord, Hit, Outputs, StoredAction, StoredMemo};
pub use remote_index::RemoteIndex;
pub use scratch::Scratch;
pub use scrub::ScrubReport;
pub use source_digest::has_reliable_times;
pub use status::{Count, Status};
pub use store::{FetchFiles, Store};
pub use upstream::{
    Drained, RecordId, TransferStats, UploadProgress, Upstream, WorkerReport, WorkerSettings,
};
pub use verify::{VerifyProgress, VerifyReport};
pub use workspace::Workspace;
