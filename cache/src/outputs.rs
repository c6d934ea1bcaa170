//! The outputs of an action, shared: a hit, its event and the history of its run hold one copy.

use crate::digest::ArtifactDigest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Output artifacts by name, in the order of the names. Cheap to clone. An action has few, for which a list
/// takes a tenth of the memory of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs(Arc<[(String, ArtifactDigest)]>);

impl Outputs {
    /// The artifact of an output.
    pub fn get(&self, name: &str) -> Option<&ArtifactDigest> {
        self.iter()
            .find_map(|(known, digest)| (known == name).then_some(digest))
    }

    /// All outputs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&String, &ArtifactDigest)> {
        self.0.iter().map(|(name, digest)| (name, digest))
    }

    /// The artifacts of all outputs.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &ArtifactDigest> {
        self.0.iter().map(|(_, digest)| digest)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, ArtifactDigest)> for Outputs {
    /// The last of several outputs of one name counts.
    fn from_iter<I: IntoIterator<Item = (String, ArtifactDigest)>>(outputs: I) -> Self {
        let outputs: Arc<[_]> = outputs.into_iter().collect();
        if outputs.is_sorted_by(|(before, _), (after, _)| before < after) {
            return Self(outputs);
        }
        BTreeMap::from_iter(outputs.iter().cloned()).into()
    }
}

impl From<BTreeMap<String, ArtifactDigest>> for Outputs {
    fn from(outputs: BTreeMap<String, ArtifactDigest>) -> Self {
        Self(outputs.into_iter().collect())
    }
}

impl Serialize for Outputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Outputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_those_of_a_map() {
        let pairs = ["b", "a", "c", "b"].into_iter().zip(1..);
        let pairs = pairs.map(|(name, byte)| (name.to_owned(), ArtifactDigest::from_bytes([byte; 32])));
        let map: BTreeMap<_, _> = pairs.clone().collect();
        let outputs: Outputs = pairs.collect();
        assert_eq!(outputs, Outputs::from(map.clone()));
        assert!(outputs.iter().eq(map.iter()) && outputs.values().eq(map.values()));
        for name in ["a", "b", "c", "d"] {
            assert_eq!(outputs.get(name), map.get(name));
        }
        let text = serde_json::to_string(&outputs).unwrap();
        assert_eq!(text, serde_json::to_string(&map).unwrap());
        assert_eq!(serde_json::from_str::<Outputs>(&text).unwrap(), outputs);
        assert!(Outputs::default().is_empty() && !outputs.is_empty());
    }
}
