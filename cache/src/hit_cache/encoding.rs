//! The binary encoding of hits: a thousand are decoded in a fraction of a millisecond; as JSON they take most
//! of a run that has nothing to do.

use crate::blob::BlobRef;
use crate::digest::{ActionKey, ArtifactDigest, BlobDigest};
use crate::record::Hit;

/// Encodes hits.
pub(super) fn encode(hits: &[(ActionKey, Hit)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 * hits.len());
    for (key, hit) in hits {
        encode_one(&mut out, *key, hit);
    }
    out
}

/// Appends a hit.
pub(super) fn encode_one(out: &mut Vec<u8>, key: ActionKey, hit: &Hit) {
    out.extend(key.as_bytes());
    count(out, hit.outputs.iter().len());
    for (name, digest) in hit.outputs.iter() {
        count(out, name.len());
        out.extend(name.as_bytes());
        out.extend(digest.as_bytes());
    }
    count(out, hit.log.iter().len());
    if let Some(log) = hit.log {
        blob(out, log.blob, log.size);
    }
    out.extend(hit.seconds.to_le_bytes());
    count(out, hit.peak_memory.iter().len());
    if let Some(bytes) = hit.peak_memory {
        out.extend(bytes.to_le_bytes());
    }
    count(out, hit.blobs.len());
    for &(digest, size) in &hit.blobs {
        blob(out, digest, size);
    }
}

fn count(out: &mut Vec<u8>, n: usize) {
    out.extend((n as u64).to_le_bytes());
}

fn blob(out: &mut Vec<u8>, digest: BlobDigest, size: u64) {
    out.extend(digest.as_bytes());
    out.extend(size.to_le_bytes());
}

/// An encoded hit, whose parts are read where they lie.
pub(super) struct Entry<'b> {
    pub key: ActionKey,
    outputs: Reader<'b>,
    pub log: Option<BlobRef>,
    seconds: f64,
    peak_memory: Option<u64>,
    blobs: Reader<'b>,
    /// All of its bytes.
    pub bytes: &'b [u8],
}

impl Entry<'_> {
    /// The digests and sizes of its blobs.
    pub fn blobs(&self) -> impl Iterator<Item = (BlobDigest, u64)> {
        let mut rest = Reader(self.blobs.0);
        std::iter::from_fn(move || rest.blob()).map(|blob| (blob.blob, blob.size))
    }

    /// The hit.
    pub fn hit(&self) -> Hit {
        let mut rest = Reader(self.outputs.0);
        let outputs = std::iter::from_fn(|| rest.output());
        Hit {
            outputs: outputs.map(|(name, digest)| (name.to_owned(), digest)).collect(),
            log: self.log,
            seconds: self.seconds,
            peak_memory: self.peak_memory,
            blobs: self.blobs().collect(),
        }
    }
}

/// The hits in the output of [`encode`]; the last is `None` for any other bytes.
pub(super) fn entries(bytes: &[u8]) -> impl Iterator<Item = Option<Entry<'_>>> {
    let mut rest = Reader(bytes);
    std::iter::from_fn(move || {
        if rest.0.is_empty() {
            return None;
        }
        let entry = rest.entry();
        if entry.is_none() {
            rest.0 = &[];
        }
        Some(entry)
    })
}

/// Bytes that are left to read.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn entry(&mut self) -> Option<Entry<'b>> {
        let all = self.0;
        let key = ActionKey::from_bytes(self.take()?);
        let outputs = self.list(|rest| rest.output().map(drop))?;
        let log = match self.number()? {
            0 => None,
            _ => Some(self.blob()?),
        };
        let seconds = f64::from_le_bytes(self.take()?);
        let peak_memory = match self.number()? {
            0 => None,
            _ => Some(self.number()?),
        };
        let blobs = self.list(|rest| rest.blob().map(drop))?;
        Some(Entry {
            key,
            outputs,
            log,
            seconds,
            peak_memory,
            blobs,
            bytes: &all[..all.len() - self.0.len()],
        })
    }

    /// The items of a list, each of which `skip` passes over.
    fn list(&mut self, skip: impl Fn(&mut Self) -> Option<()>) -> Option<Self> {
        let count = self.number()?;
        let all = self.0;
        for _ in 0..count {
            skip(self)?;
        }
        Some(Self(&all[..all.len() - self.0.len()]))
    }

    fn output(&mut self) -> Option<(&'b str, ArtifactDigest)> {
        let length = usize::try_from(self.number()?).ok()?;
        let (name, after) = self.0.split_at_checked(length)?;
        self.0 = after;
        Some((str::from_utf8(name).ok()?, ArtifactDigest::from_bytes(self.take()?)))
    }

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

    fn decode(bytes: &[u8]) -> Option<Vec<(ActionKey, Hit)>> {
        entries(bytes)
            .map(|entry| entry.map(|entry| (entry.key, entry.hit())))
            .collect()
    }

    fn hit() -> impl Strategy<Value = (ActionKey, Hit)> {
        let digest = || any::<[u8; 32]>();
        let outputs =
            prop::collection::btree_map(any::<String>(), digest().prop_map(ArtifactDigest::from_bytes), 0..3);
        let blobs = prop::collection::vec((digest().prop_map(BlobDigest::from_bytes), any::<u64>()), 0..4);
        let log = prop::option::of((digest().prop_map(BlobDigest::from_bytes), any::<u64>()));
        let numbers = (-1e9..1e9_f64, prop::option::of(any::<u64>()));
        (digest(), outputs, log, numbers, blobs).prop_map(
            |(key, outputs, log, (seconds, peak_memory), blobs)| {
                let hit = Hit {
                    outputs: outputs.into(),
                    log: log.map(|(blob, size)| BlobRef { blob, size }),
                    seconds,
                    peak_memory,
                    blobs,
                };
                (ActionKey::from_bytes(key), hit)
            },
        )
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
