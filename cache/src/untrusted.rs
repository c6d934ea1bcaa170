//! What reads bytes that anybody may have written, by itself: for fuzzing. Whatever the bytes are, each of these ends, and
//! ends well; a result is only what may be used.

use crate::record::{StoredAction, StoredMemo};
use crate::remote;
use crate::{ActionKey, Artifact, MemoKey, sealed};

/// Whether these bytes are a record of an action, as the local store has it.
pub fn action_record(bytes: &[u8]) -> bool {
    sealed::open::<StoredAction>(bytes).is_some()
}

/// Whether these bytes are a record of a memo, as the local store has it.
pub fn memo_record(bytes: &[u8]) -> bool {
    sealed::open::<StoredMemo>(bytes).is_some()
}

/// The manifest that these bytes are, if its paths stay in its folder.
pub fn manifest(bytes: &[u8]) -> Option<Artifact> {
    let artifact: Artifact = serde_json::from_slice(bytes).ok()?;
    artifact.check().is_ok().then_some(artifact)
}

/// Whether these bytes, found in a remote under this key, are a record of an action that may be used.
pub fn remote_action(bytes: &[u8], key: ActionKey) -> bool {
    remote::reads_action(bytes, key)
}

/// Whether these bytes, found in a remote under this key, are a record of a memo that may be used.
pub fn remote_memo(bytes: &[u8], key: MemoKey) -> bool {
    remote::reads_memo(bytes, key)
}

/// Whether these bytes are what an earlier run may have left about a remote.
pub fn remote_index(bytes: &[u8]) -> bool {
    remote::reads_index(bytes)
}

/// The key or digest, in hex, of what a remote lists under this name; `None` for a name that is not of its layout.
pub fn remote_name(folder: &str, name: &str) -> Option<String> {
    remote::id_of(folder, name)
}
