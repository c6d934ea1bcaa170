//! The outputs of an action, shared: a hit, its event and the history of its run hold one copy.

use crate::digest::ArtifactDigest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, btree_map};
use std::ops::Deref;
use std::sync::Arc;

/// Output artifacts by name. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs(Arc<BTreeMap<String, ArtifactDigest>>);

impl From<BTreeMap<String, ArtifactDigest>> for Outputs {
    fn from(outputs: BTreeMap<String, ArtifactDigest>) -> Self {
        Self(Arc::new(outputs))
    }
}

impl Deref for Outputs {
    type Target = BTreeMap<String, ArtifactDigest>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'o> IntoIterator for &'o Outputs {
    type Item = (&'o String, &'o ArtifactDigest);
    type IntoIter = btree_map::Iter<'o, String, ArtifactDigest>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl Serialize for Outputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Outputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self::from)
    }
}
