//! Remote stores: one memory for many machines.
//!
//! A remote mirrors a local store one to one:
//!
//! ```text
//! URL/
//! ├── format            the version of this layout, `runner-remote 1`
//! ├── blobs/ab/cdef…    bytes, named by their BLAKE3 digest
//! ├── actions/ab/cdef…  action records, as the local files, with a third line that signs them where a key is configured
//! └── memos/ab/cdef…    memo records, likewise
//! ```
//!
//! What holds whoever crashes: a record is written after all its blobs are known to be there; a blob gets its local name only
//! when its bytes are what the name says; what comes from a remote names blobs by digest alone and never a path. A record counts
//! only when all its blobs are here or there; none is fetched before a stage that runs asks for it.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`address`] | URLs, and how they are shown |
//! | [`settings`] | what a remote is opened with |
//! | [`place`], [`directory`], [`cloud`] | reading and writing named bytes, one attempt at a time |
//! | [`patience`] | when to try again and when to give up |
//! | [`redact`] | keeping credentials out of messages |
//! | [`signed`] | records as a remote has them |
//! | [`known`] | which blobs are there, remembered between runs |
//! | [`client`] | the remote itself: what it has |
//! | [`through`] | the store's look-ups that read through |
//! | [`fetch`], [`upload`], [`behind`], [`pull`] | transfers: for a stage that runs, in the background, and by command |
//! | [`news`] | what the processes of one run tell each other |
//! | [`traffic`] | what went over the wire |

mod address;
mod behind;
mod client;
mod cloud;
mod directory;
mod fetch;
mod known;
mod news;
mod patience;
mod place;
mod pull;
mod redact;
mod settings;
mod signed;
mod through;
mod traffic;
mod upload;

pub use behind::{Drained, UploadProgress};
pub use client::Remote;
pub(crate) use client::id_of;
pub(crate) use known::{elsewhere, reads_index};
pub use news::{Handover, News};
pub use pull::PullReport;
pub use settings::{RemoteSettings, SignKey};
pub(crate) use signed::{reads_action, reads_memo};
pub use traffic::Traffic;
pub use upload::{PushReport, Upload};
