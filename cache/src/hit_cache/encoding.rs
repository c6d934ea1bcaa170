//! The binary encoding of hits: a thousand are decoded in a fraction of a millisecond; as JSON they take most of a run
//! that has nothing to do.

use crate::blob::BlobRef;
use crate::digest::{ActionKey, ArtifactDigest, BlobDigest};
use crate::record::Hit;
use std::collections::BTreeMap;

/// Encodes hits.
pub(super) fn encode(hits: &[(ActionKey, Hit)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 * hits.len());
    for (key, hit) in hits {
        out.extend(key.as_bytes());
        count(&mut out, hit.outputs.len());
        for (name, digest) in &hit.outputs {
            count(&mut out, name.len());
            out.extend(name.as_bytes());
            out.extend(digest.as_bytes());
        }
        count(&mut out, hit.log.iter().len());
        if let Some(log) = hit.log {
            blob(&mut out, log.blob, log.size);
        }
        out.extend(hit.seconds.to_le_bytes());
        count(&mut out, hit.peak_memory.iter().len());
        if let Some(bytes) = hit.peak_memory {
            out.extend(bytes.to_le_bytes());
        }
        count(&mut out, hit.blobs.len());
        for &(digest, size) in &hit.blobs {
            blob(&mut out, digest, size);
        }
    }
    out
}

fn count(out: &mut Vec<u8>, n: usize) {
    out.extend((n as u64).to_le_bytes());
}

fn blob(out: &mut Vec<u8>, digest: BlobDigest, size: u64) {
    out.extend(digest.as_bytes());
    out.extend(size.to_le_bytes());
}

/// Decodes the output of [`encode`]; `None` for any other bytes.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<(ActionKey, Hit)>> {
    let mut rest = Reader(bytes);
    let mut hits = Vec::new();
    while !rest.0.is_empty() {
        let key = ActionKey::from_bytes(rest.take()?);
        let mut outputs = BTreeMap::new();
        for _ in 0..rest.number()? {
            let length = usize::try_from(rest.number()?).ok()?;
            let (name, after) = rest.0.split_at_checked(length)?;
            rest.0 = after;
            outputs.insert(
                String::from_utf8(name.to_vec()).ok()?,
                ArtifactDigest::from_bytes(rest.take()?),
            );
        }
        let log = match rest.number()? {
            0 => None,
            _ => Some(rest.blob()?),
        };
        let seconds = f64::from_le_bytes(rest.take()?);
        let peak_memory = match rest.number()? {
            0 => None,
            _ => Some(rest.number()?),
        };
        let blobs = (0..rest.number()?).map(|_| rest.blob().map(|blob| (blob.blob, blob.size)));
        let blobs = blobs.collect::<Option<_>>()?;
        let hit = Hit {
            outputs: outputs.into(),
            log,
            seconds,
            peak_memory,
            blobs,
        };
        hits.push((key, hit));
    }
    Some(hits)
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn blob(&mut self) -> Option<BlobRef> {
        Some(BlobRef {
            blob: BlobDigest::from_bytes(self.take()?),
            size: self.number()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hit() -> impl Strategy<Value = (ActionKey, Hit)> {
        let digest = || any::<[u8; 32]>();
        let outputs = prop::collection::btree_map(any::<String>(), digest().prop_map(ArtifactDigest::from_bytes), 0..3);
        let blobs = prop::collection::vec((digest().prop_map(BlobDigest::from_bytes), any::<u64>()), 0..4);
        let log = prop::option::of((digest().prop_map(BlobDigest::from_bytes), any::<u64>()));
        let numbers = (-1e9..1e9_f64, prop::option::of(any::<u64>()));
        (digest(), outputs, log, numbers, blobs).prop_map(|(key, outputs, log, (seconds, peak_memory), blobs)| {
            let hit = Hit {
                outputs: outputs.into(),
                log: log.map(|(blob, size)| BlobRef { blob, size }),
                seconds,
                peak_memory,
                blobs,
            };
            (ActionKey::from_bytes(key), hit)
        })
    }

    proptest! {
        #[test]
        fn hits_come_back(hits in prop::collection::vec(hit(), 0..4), cut in any::<prop::sample::Index>()) {
            let bytes = encode(&hits);
            prop_assert_eq!(decode(&bytes), Some(hits.clone()));
            if !bytes.is_empty() {
                let cut = decode(&bytes[..cut.index(bytes.len())]);
                prop_assert!(cut.is_none_or(|some| some.len() < hits.len()));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes);
        }
    }
}
