//! The contracts of a chain, as the metadata of its data set states them.

use crate::error::StageError;
use datasets::contract::Contracts;
use serde_json::Value;

/// The contracts in the metadata of a chain; empty where it states none.
///
/// # Errors
/// When the metadata is damaged.
pub fn read(meta: &Value) -> Result<Contracts, StageError> {
    match meta.get("contracts") {
        None | Some(Value::Null) => Ok(Contracts::default()),
        Some(stated) => serde_json::from_value(stated.clone())
            .map_err(|err| StageError::new(format!("the contracts in the chain's metadata cannot be read: {err}"))),
    }
}
