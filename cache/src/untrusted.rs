//! Parsers of untrusted bytes, for fuzzing: none of them panics or hangs on any bytes.

use crate::artifact::Artifact;
use crate::checksummed;
use crate::record::{StoredAction, StoredMemo};
use crate::remote_index::RemoteIndex;

/// True if the bytes are a record of an action.
pub fn action_record(bytes: &[u8]) -> bool {
    checksummed::decode::<StoredAction>(bytes).is_some()
}

/// True if the bytes are a record of a memo.
pub fn memo_record(bytes: &[u8]) -> bool {
    checksummed::decode::<StoredMemo>(bytes).is_some()
}

/// Parses a manifest; `None` if it is invalid or a path leaves the artifact's directory.
pub fn manifest(bytes: &[u8]) -> Option<Artifact> {
    serde_json::from_slice(bytes).ok()
}

/// True if the bytes are an index of an upstream's blobs.
pub fn remote_index(bytes: &[u8]) -> bool {
    checksummed::decode::<RemoteIndex>(bytes).is_some()
}
