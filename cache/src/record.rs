//! Records: the results of action and memo keys.

use crate::blob::BlobRef;
use crate::digest::{ActionKey, ArtifactDigest, BlobDigest, MemoKey};
use crate::fetched_file::FetchedFile;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Output artifacts by name.
pub type Outputs = BTreeMap<String, ArtifactDigest>;

/// The facts about one action that ran to completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// The key of the record.
    pub key: ActionKey,
    /// The recipe that the key is the digest of, for display and for `why`; the decision whether to run
    /// depends on the key alone.
    pub recipe: Value,
    /// The output artifacts of the action, by port.
    pub outputs: Outputs,
    /// The log of the action (standard streams of a `run:` stage).
    pub log: Option<BlobRef>,
    /// The run time, in seconds.
    pub seconds: f64,
    /// The peak resident memory of the action's worker in bytes, if known.
    pub peak_memory: Option<u64>,
    /// The instruction set and kernel version that computed the outputs.
    pub numerics_class: String,
    /// The version of the program that computed the outputs.
    pub program: String,
    /// The remote files that the action read, which `gc` keeps with its record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<FetchedFile>,
    /// Further facts that tools may show (host, started at).
    #[serde(default)]
    pub info: BTreeMap<String, Value>,
}

/// An action record as it is stored: with every blob that its outputs consist of, so that a look-up reads no
/// manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredAction {
    /// The record.
    pub record: ActionRecord,
    /// The manifests and the blobs of their entries, each once, sorted: digest and size in bytes.
    pub blobs: Vec<(BlobDigest, u64)>,
}

impl StoredAction {
    /// The manifests and the blobs of their entries.
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> {
        self.blobs.iter().map(|&(blob, size)| BlobRef { blob, size })
    }

    pub(crate) fn into_hit(self) -> Hit {
        Hit {
            key: self.record.key,
            outputs: self.record.outputs,
            log: self.record.log,
            seconds: self.record.seconds,
            peak_memory: self.record.peak_memory,
            blobs: self.blobs,
        }
    }
}

/// The part of an action's record that a run needs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Hit {
    /// The key of the record.
    pub key: ActionKey,
    /// The output artifacts of the action, by port.
    pub outputs: Outputs,
    /// The log of the action, if it still exists.
    pub log: Option<BlobRef>,
    /// The run time when the action was computed, in seconds.
    pub seconds: f64,
    /// The peak resident memory of the action's worker in bytes, if known.
    pub peak_memory: Option<u64>,
    /// The manifests of the outputs and the blobs of their entries, each once, sorted: digest and size in
    /// bytes.
    #[serde(skip)]
    pub blobs: Vec<(BlobDigest, u64)>,
}

impl Hit {
    /// The manifests of the outputs and the blobs of their entries.
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> {
        self.blobs.iter().map(|&(blob, size)| BlobRef { blob, size })
    }
}

/// A memo as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMemo {
    /// The key of the record.
    pub key: MemoKey,
    /// The value of the memo.
    pub value: BlobRef,
}
