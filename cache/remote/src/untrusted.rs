//! Parsers of untrusted bytes, for fuzzing: none of them panics or hangs on any bytes.

use crate::{object_name, signature};
use cache::{ActionKey, MemoKey};

/// True if these bytes, read under this key, are a record of an action that may be used.
pub fn action(bytes: &[u8], key: ActionKey) -> bool {
    signature::action(bytes, key, None).is_ok()
}

/// True if these bytes, read under this key, are a record of a memo that may be used.
pub fn memo(bytes: &[u8], key: MemoKey) -> bool {
    signature::memo(bytes, key, None).is_ok()
}

/// The key or digest, in hex, of a listed object name; `None` for a name that is not of the layout.
pub fn object_name(folder: &str, name: &str) -> Option<String> {
    object_name::parse_object_name(folder, name)
}
