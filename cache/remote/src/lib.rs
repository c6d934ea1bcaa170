//! Upstream stores: one cache shared by many machines.
//!
//! A remote mirrors a local store one to one:
//!
//! ```text
//! URL/
//! ├── format            the version of this layout, `runner-remote 2`
//! ├── blobs/ab/cdef…    bytes, named by their BLAKE3 digest
//! ├── actions/ab/cdef…  action records, as the local files, with a third line that signs them
//! └── memos/ab/cdef…    memo records, likewise
//! ```
//!
//! Invariants, whichever process crashes: a record is written after all its blobs are confirmed to exist; a
//! blob gets its local name only when its bytes match its digest; a record names blobs by digest alone and
//! never by path. A record counts only when a trusted key signed it (or `trust: unsigned` is set) and all its
//! blobs exist, in the local store or in the remote; a blob is fetched when it is opened. A record that
//! another key signed is never replaced.
//!
//! | module | contents |
//! | --- | --- |
//! | [`settings`], [`address`] | the configuration of a remote, and its URL |
//! | [`failure`], [`backend`], [`directory`], [`cloud`] | named objects, and the failures of requests; retry with exponential backoff |
//! | [`connector`], [`runtime`] | the HTTP client, and the thread that drives it |
//! | [`circuit_breaker`] | no requests while the remote does not answer |
//! | [`redact`], [`warnings`] | messages without credentials |
//! | [`keys`], [`signature`] | Ed25519 keys; records with a signature |
//! | [`existence_cache`] | the blobs that the remote holds according to earlier requests |
//! | [`client`] | requests with all of that |
//! | [`fetch`], [`upload`], [`upload_queue`] | transfers: of one blob, of records with their blobs, in the background |
//! | [`worker_sync`] | the settings and reports of worker processes |
//! | [`remote`] | [`Remote`], the [`Upstream`](cache::Upstream) |
//! | [`push_pull`] | transfers by command |
//! | [`source`] | files of web servers and buckets that stages read |

mod address;
mod backend;
mod circuit_breaker;
mod client;
mod cloud;
mod connector;
mod directory;
mod documents;
mod existence_cache;
mod failure;
mod fetch;
mod keys;
mod memo_filter;
mod object_name;
mod push_pull;
mod redact;
mod remote;
mod runtime;
mod settings;
mod signature;
mod source;
mod transfer_stats;
pub mod untrusted;
mod upload;
mod upload_queue;
mod warnings;
mod worker_sync;

pub use documents::Document;
pub use keys::{PublicKey, SignKey};
pub use push_pull::PullReport;
pub use remote::{Remote, open_for_worker};
pub use settings::{RemoteSettings, Untrusted};
pub use source::{SourceFiles, Timing};
pub use upload::PushReport;
