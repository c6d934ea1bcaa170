//! Knowledge bases in the store: an artifact of the type `knowledge`, whose files are mapped.
//!
//! | file | contents |
//! | --- | --- |
//! | `knowledge.bin` | [`KnowledgeBase`] |
//! | `derived.bin` | [`Derived`], where rules were applied |

use crate::derived::Derived;
use crate::knowledge_base::{KnowledgeBase, Split};
use crate::sections::Section;
use bytes::Bytes;
use cache::{Artifact, ArtifactBuilder, ArtifactDigest, BlobRef, Store};
use serde::Serialize;
use serde_json::{Value, json};
use stages_core::{PortType, Ports, Provided, StageError};
use std::collections::BTreeMap;
use std::io::Write as _;

/// The path of the knowledge base's file.
pub const KNOWLEDGE: &str = "knowledge.bin";
/// The path of the derived facts' file.
pub const DERIVED: &str = "derived.bin";

/// A knowledge base, with the facts that follow from it where they were computed.
#[derive(Clone, Debug)]
pub struct Knowledge {
    /// The knowledge base.
    pub base: KnowledgeBase,
    /// The facts that follow from the knowledge base.
    pub derived: Option<Derived>,
}

/// Opens an artifact of the type `knowledge`. Nothing is read before it is used.
///
/// # Errors
/// Fails when the artifact has no file of this format.
pub fn open(store: &Store, artifact: &Artifact) -> Result<Knowledge, StageError> {
    let broken = |name: &str, why: &str| {
        StageError::new(format!("`{name}` of the knowledge base cannot be read: {why}"))
            .hint("run the stage that made it again with --force")
    };
    let file = |name: &str| -> Result<Option<Bytes>, StageError> {
        let entry = artifact.entry(name);
        entry
            .map(|entry| Ok(Bytes::from_owner(store.blob(entry.blob)?)))
            .transpose()
    };
    let base = file(KNOWLEDGE)?.ok_or_else(|| broken(KNOWLEDGE, "there is none"))?;
    let base = KnowledgeBase::open(base).map_err(|err| broken(KNOWLEDGE, &err.to_string()))?;
    let derived = file(DERIVED)?
        .map(|file| Derived::open(file).map_err(|err| broken(DERIVED, &err.to_string())))
        .transpose()?;
    if derived
        .as_ref()
        .is_some_and(|derived| derived.relations.predicates() != base.predicates())
    {
        return Err(broken(DERIVED, "it is of another knowledge base"));
    }
    Ok(Knowledge { base, derived })
}

/// Stores the file of a knowledge base, a program or derived facts.
///
/// # Errors
/// Fails when the store cannot be written.
pub fn put(store: &Store, of: &impl Section) -> Result<BlobRef, StageError> {
    let mut writer = store.writer()?;
    let written = of.write(&mut writer).and_then(|()| writer.flush());
    written.map_err(|err| StageError::new(format!("cannot write to the store: {err}")))?;
    Ok(writer.finish()?)
}

/// Stores an artifact with the file of a knowledge base and, if there is one, that of its derived facts;
/// `meta` is added to the metadata.
///
/// # Errors
/// When the store cannot be written.
pub fn write(
    store: &Store,
    base: BlobRef,
    derived: Option<BlobRef>,
    meta: Value,
) -> Result<ArtifactDigest, StageError> {
    let mut builder = ArtifactBuilder::new(store, PortType::Knowledge.name(), meta);
    builder.blob(KNOWLEDGE, base);
    if let Some(derived) = derived {
        builder.blob(DERIVED, derived);
    }
    Ok(builder.finish()?)
}

/// A value as canonical JSON.
///
/// # Errors
/// Fails when the value has no JSON form.
pub fn json(value: &impl Serialize) -> Result<String, StageError> {
    let value = serde_json::to_value(value).map_err(|err| StageError::new(err.to_string()))?;
    Ok(cache::canonical_json(&value))
}

/// The promise of a stage kind that knows nothing of its outputs but their types.
pub fn provided(ports: &Ports) -> BTreeMap<String, Provided> {
    let outputs = ports.outputs.iter();
    outputs
        .map(|port| (port.name.to_owned(), Provided::unknown(port.ty)))
        .collect()
}

/// The sizes of a knowledge base, for its metadata.
pub fn sizes(base: &KnowledgeBase) -> Value {
    let queries: serde_json::Map<String, Value> = Split::ALL
        .iter()
        .map(|&split| (split.name().to_owned(), base.queries(split).len().into()))
        .collect();
    json!({
        "format": 1,
        "constants": base.constants(),
        "predicates": base.predicates(),
        "facts": base.relations.facts(),
        "rules": base.rules(),
        "queries": queries,
    })
}
