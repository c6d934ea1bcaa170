//! Serialisation of what a partition's table leaves for later runs: the table, and for each feature the
//! states of the symbols at the end of the partition.

use crate::numerics::State;
use cache::{BlobDigest, BlobRef, MemoKey};
use stages_core::StageError;

/// A partition's table, and the states of each feature's symbols at its end, by the key of the feature's
/// memo.
#[derive(Debug, PartialEq)]
pub(super) struct TableStates {
    pub table: BlobRef,
    pub states: Vec<(MemoKey, Vec<State>)>,
}

impl TableStates {
    /// The states as bytes: digest and size of the table; then for each feature the key, the number of
    /// symbols, and for each symbol the length of its state and the state.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.table.blob.as_bytes().to_vec();
        bytes.extend(self.table.size.to_le_bytes());
        for (key, states) in &self.states {
            bytes.extend(key.as_bytes());
            bytes.extend((states.len() as u64).to_le_bytes());
            for state in states {
                bytes.extend((state.len() as u64).to_le_bytes());
                state.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
            }
        }
        bytes
    }

    /// Reads the output of [`TableStates::encode`].
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, StageError> {
        let (words, []) = bytes.as_chunks::<8>() else {
            return Err(damaged());
        };
        let mut words = Words(words);
        let blob = BlobDigest::from_bytes(words.digest()?);
        let size = u64::from_le_bytes(words.take(1)?[0]);
        let mut states = Vec::new();
        while !words.0.is_empty() {
            let key = MemoKey::from_bytes(words.digest()?);
            let of_feature = (0..words.count()?).map(|_| {
                let length = words.count()?;
                let state = words.take(length)?.iter();
                Ok(state.map(|word| f64::from_le_bytes(*word)).collect())
            });
            states.push((key, of_feature.collect::<Result<_, StageError>>()?));
        }
        Ok(Self {
            table: BlobRef { blob, size },
            states,
        })
    }

    /// The states of the feature with this memo, one for each of `symbols` symbols.
    pub(super) fn of(self, key: MemoKey, symbols: usize) -> Result<Vec<State>, StageError> {
        let mut states = self.states.into_iter();
        states
            .find(|(found, states)| *found == key && states.len() == symbols)
            .map(|(_, states)| states)
            .ok_or_else(damaged)
    }
}

/// The words of a memo that are still to be read.
struct Words<'a>(&'a [[u8; 8]]);

impl<'a> Words<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [[u8; 8]], StageError> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or_else(damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn count(&mut self) -> Result<usize, StageError> {
        usize::try_from(u64::from_le_bytes(self.take(1)?[0])).map_err(|_| damaged())
    }

    fn digest(&mut self) -> Result<[u8; 32], StageError> {
        <[u8; 32]>::try_from(self.take(4)?.as_flattened()).map_err(|_| damaged())
    }
}

fn damaged() -> StageError {
    StageError::new("a memo of the states of features is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip() {
        let keys = [1, 2].map(|byte| MemoKey::from_bytes([byte; 32]));
        let states = TableStates {
            table: BlobRef::of(b"table"),
            states: vec![
                (keys[0], vec![vec![1.0, -0.0], Vec::new()]),
                (keys[1], vec![vec![f64::INFINITY]]),
            ],
        };
        let bytes = states.encode();
        assert_eq!(TableStates::decode(&bytes).unwrap(), states);
        for cut in [1, 8, 32, 40 + 33, bytes.len() - 8, bytes.len() - 1] {
            assert!(TableStates::decode(&bytes[..cut]).is_err(), "{cut}");
        }
        assert!(TableStates::decode(&bytes).unwrap().of(keys[1], 2).is_err());
        let last = TableStates::decode(&bytes).unwrap().of(keys[1], 1).unwrap();
        assert_eq!(last, [[f64::INFINITY]]);
    }
}
