//! Features of contracts, which the slots of the slate show.

use super::market_source::{ContractColumns, ContractFeatures};
use super::part_store::{PartStore, Piece};
use super::snapshots::PartSnapshots;
use datasets::SnapshotTime;
use stages_core::StageError;
use std::collections::BTreeMap;

impl ContractFeatures<'_> {
    /// The features of the slots of a part's snapshots `[T, K, C]`, from the memo where they are cached; NaN
    /// for an empty slot and where there is no value. `key` is that of the snapshots.
    pub(super) fn slot_values<S: PartStore>(
        &self,
        store: &S,
        part: usize,
        key: &[u8],
        snapshots: &PartSnapshots,
    ) -> Result<Vec<f32>, StageError> {
        let key = [key, b"\n", self.keys.get(part).map_or(&[][..], Vec::as_slice)].concat();
        let file = store.piece(Piece::ContractFeatures, part, &key, || {
            let values = by_slot(&(self.read)(part)?, snapshots, self.names.len());
            Ok(values.iter().flat_map(|value| value.to_le_bytes()).collect())
        })?;
        let bytes = store.bytes(&file)?;
        let (values, rest) = bytes.as_chunks();
        let slots: usize = snapshots.snapshots.iter().map(|snapshot| snapshot.slots.len()).sum();
        match rest.is_empty() && values.len() == slots * self.names.len() {
            true => Ok(values.iter().copied().map(f32::from_le_bytes).collect()),
            false => Err(StageError::new("the memo of a part's features by contract is damaged")),
        }
    }
}

/// A snapshot, and the expiry, strike (as bits) and right of a contract, whose class must be compared, too.
type Terms = (SnapshotTime, i32, u64, bool);

/// The features of the slots of snapshots `[T, K, C]`; a contract without a row has none.
fn by_slot(tables: &[ContractColumns], part: &PartSnapshots, width: usize) -> Vec<f32> {
    let slots: usize = part.snapshots.iter().map(|snapshot| snapshot.slots.len()).sum();
    let mut out = vec![f32::NAN; slots * width];
    // The slots of each contract at each snapshot: one may be in several.
    let mut places: BTreeMap<Terms, Vec<(&str, usize)>> = BTreeMap::new();
    let mut at = 0;
    for snapshot in &part.snapshots {
        for slot in &snapshot.slots {
            if let Some(key) = slot {
                let of = (snapshot.time(), key.expiry, key.strike, key.call);
                places.entry(of).or_default().push((&key.root, at));
            }
            at += 1;
        }
    }
    let mut first = 0;
    for columns in tables {
        for row in 0..columns.times.len() {
            let of = (
                columns.times[row],
                columns.expiries[row],
                columns.strikes[row].to_bits(),
                columns.calls[row],
            );
            for (root, slot) in places.get(&of).into_iter().flatten() {
                if columns.roots[columns.root[row] as usize] == *root {
                    for (j, values) in columns.values.iter().enumerate() {
                        out[slot * width + first + j] = values[row] as f32;
                    }
                }
            }
        }
        first += columns.values.len();
    }
    out
}

/// The slate's own features `[K, G]` of a snapshot, with each slot followed by the features of its contract
/// `[K, C]`.
pub(super) fn beside(own: &[f32], features: &[f32], slots: usize) -> Vec<f32> {
    let (g, c) = (own.len() / slots.max(1), features.len() / slots.max(1));
    (0..slots)
        .flat_map(|slot| {
            own[slot * g..(slot + 1) * g]
                .iter()
                .chain(&features[slot * c..(slot + 1) * c])
        })
        .copied()
        .collect()
}
