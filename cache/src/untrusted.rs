//! Parsers of untrusted bytes, for fuzzing: none of them panics or hangs on any bytes.

use crate::artifact::Artifact;
use crate::checksummed;
use crate::record::{StoredAction, StoredMemo};
use crate::remote_index::RemoteIndex;

/// True if these bytes are a record of an action.
pub fn action_record(bytes: &[u8]) -> bool {
    checksummed::decode::<StoredAction>(bytes).is_some()
}

/// True if these bytes are a record of a memo.
pub fn memo_record(bytes: &[u8]) -> bool {
    checksummed::decode::<StoredMemo>(bytes).is_some()
}

/// The manifest that these bytes hold, if its paths stay in its directory.
pub fn manifest(bytes: &[u8]) -> Option<Artifact> {
    serde_json::from_slice(bytes).ok()
}

/// True if these bytes are an index of the blobs of an upstream.
pub fn remote_index(bytes: &[u8]) -> bool {
    checksummed::decode::<RemoteIndex>(bytes).is_some()
}
