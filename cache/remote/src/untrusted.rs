//! Parsers of untrusted bytes, for fuzzing: none of them panics or hangs on any bytes.

use crate::keys::{PublicKey, SignKey};
use crate::settings::RemoteSettings;
use crate::{object_name, signature};
use cache::{ActionKey, MemoKey};

/// True if the bytes, read under this key, are an action record that may be used.
pub fn action(bytes: &[u8], key: ActionKey) -> bool {
    signature::action(bytes, key, &anyone()).is_ok()
}

/// True if the bytes, read under this key, are a memo record that may be used.
pub fn memo(bytes: &[u8], key: MemoKey) -> bool {
    signature::memo(bytes, key, &anyone()).is_ok()
}

/// Settings that accept records without a signature.
fn anyone() -> RemoteSettings {
    RemoteSettings {
        trust_unsigned: true,
        ..RemoteSettings::new("/remote")
    }
}

/// True if the bytes, read under this key, have a valid signature by any key.
pub fn signed(bytes: &[u8], key: ActionKey) -> bool {
    signature::signer(bytes, "actions", &key.to_hex()).is_ok()
}

/// True if the bytes are a private key, or a list of public keys.
pub fn keys(bytes: &[u8]) -> bool {
    let public = std::str::from_utf8(bytes).is_ok_and(|text| PublicKey::parse_lines(text).is_ok());
    public || SignKey::parse(bytes).is_ok()
}

/// The key or digest, in hex, of a listed object name; `None` for a name that does not follow the layout.
pub fn object_name(folder: &str, name: &str) -> Option<String> {
    object_name::parse_object_name(folder, name)
}
