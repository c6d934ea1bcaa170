//! A content-addressed cache: blobs, artifacts, action records and memos.
//!
//! ```text
//! HOME/                       `.runner/` or `RUNNER_HOME`
//! ├── format                  the version of this layout, `1`
//! ├── flushed                 the machine's boot and the time up to which everything is known to be on the disk
//! ├── unflushed               is there while something may have been written since; `flushing` while that is flushed
//! ├── scrubbed                the blob that the last scrub ended with
//! ├── blobs/ab/cdef…          bytes, named by their BLAKE3 digest; read-only once in place
//! ├── actions/ab/cdef…        action records, named by action key: a line of JSON, a line with its checksum
//! ├── memos/ab/cdef…          memo records (likewise), named by memo key
//! ├── recent/ab/cdef…         the hits that recent runs ended with (bytes and their checksum): a short cut to their records
//! ├── remote                  the blobs that the remote is known to have and that are not here
//! ├── stat/ab/cdef…           digests of source files (likewise), named by the digest of their path
//! ├── scratch/ab/cdef…/       checkpoints of unfinished work, mutable, dropped by `gc`
//! ├── damaged/                files that were not what their name says, dropped by `gc`
//! ├── locks/                  advisory locks: one for each action being computed, `store` for `gc`
//! └── tmp/                    files on their way into place, and workspaces of external programs
//! ```
//!
//! An artifact's manifest is itself a blob: its digest is the digest of its canonical JSON.
//! Nothing here knows of markets, stages or YAML.
//!
//! What holds at every instant, whoever crashes: a file has its name only when it is complete; a record is written
//! after everything it names; bytes are checked before their first use in a process, so that damage is found, moved
//! out of the way and healed by computing again. `gc` runs only while no run holds the store ([`Store::guard`]).

mod artifact;
mod blob;
mod canonical;
mod digest;
mod durable;
mod error;
mod gc;
mod lock;
mod outputs;
mod publish;
mod recent;
mod record;
mod remote;
mod scrub;
mod sealed;
mod source;
mod status;
mod store;
mod transfer;
pub mod untrusted;
mod verify;
mod walk;
mod workspace;

pub use artifact::{Artifact, ArtifactBuilder, Entry, check_path};
pub use blob::{Blob, BlobRef, BlobWriter};
pub use canonical::canonical_json;
pub use digest::{ActionKey, ArtifactDigest, BlobDigest, KeyHasher, MemoKey};
pub use error::Error;
pub use gc::{GcPlan, GcReport};
pub use lock::{ActionLock, StoreGuard};
pub use outputs::Outputs;
pub use recent::Recent;
pub use record::{ActionRecord, Hit};
pub use remote::{
    Drained, Handover, News, PullReport, PushReport, Remote, RemoteSettings, SignKey, Traffic, Upload, UploadProgress,
};
pub use scrub::ScrubReport;
pub use status::{Count, Status};
pub use store::Store;
pub use verify::{VerifyProgress, VerifyReport};
pub use workspace::Workspace;

/// What everything here returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;
