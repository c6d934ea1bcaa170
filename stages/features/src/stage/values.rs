//! Serialisation of a feature's values in a partition: for each symbol, the state at the end of the partition
//! and the columns.

use crate::numerics::{Feature, State};
use stages_core::StageError;

/// The values of one symbol, borrowed from the bytes of a memo.
pub(super) struct Values<'a> {
    state: &'a [[u8; 8]],
    columns: &'a [[u8; 8]],
    rows: usize,
}

fn numbers(bytes: &[[u8; 8]]) -> impl Iterator<Item = f64> {
    bytes.iter().map(|bytes| f64::from_le_bytes(*bytes))
}

impl<'a> Values<'a> {
    /// The state at the end of the partition.
    pub(super) fn state(&self) -> State {
        numbers(self.state).collect()
    }

    /// The values of column `k`.
    pub(super) fn column(&self, k: usize) -> impl Iterator<Item = f64> + use<'a> {
        numbers(&self.columns[k * self.rows..][..self.rows])
    }
}

/// Serialises the states and columns of each symbol: the length of the state, the number of rows, the state,
/// and the columns one after another.
pub(super) fn encode(states: &[State], columns: &[Vec<Vec<f64>>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (state, columns) in states.iter().zip(columns) {
        let rows = columns.first().map_or(0, Vec::len);
        for count in [state.len(), rows] {
            bytes.extend((count as u64).to_le_bytes());
        }
        for value in state.iter().chain(columns.iter().flatten()) {
            bytes.extend(value.to_le_bytes());
        }
    }
    bytes
}

/// Decodes the output of [`encode`]: the values of each symbol.
pub(super) fn decode<'a, R>(
    bytes: &'a [u8],
    feature: &dyn Feature<R>,
) -> Result<Vec<Values<'a>>, StageError> {
    let width = feature.columns().len();
    let mut rest = match bytes.as_chunks::<8>() {
        (words, []) => words,
        _ => return Err(damaged()),
    };
    let mut values = Vec::new();
    while !rest.is_empty() {
        let mut take = |n: usize| -> Result<&'a [[u8; 8]], StageError> {
            let (taken, left) = rest.split_at_checked(n).ok_or_else(damaged)?;
            rest = left;
            Ok(taken)
        };
        let counts = take(2)?;
        let count = |i: usize| usize::try_from(u64::from_le_bytes(counts[i])).map_err(|_| damaged());
        let (state, rows) = (count(0)?, count(1)?);
        values.push(Values {
            state: take(state)?,
            columns: take(rows.checked_mul(width).ok_or_else(damaged)?)?,
            rows,
        });
    }
    Ok(values)
}

fn damaged() -> StageError {
    StageError::new("a memo of feature values is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::indicators::{Convention, Indicator};

    #[test]
    fn bytes_round_trip() {
        let feature = Indicator::Dm(3).by(Convention::Talib).unwrap();
        let states = [vec![1.0, f64::NAN], Vec::new()];
        let columns = [vec![vec![1.5, -0.0], vec![2.0, 3.0]], vec![Vec::new(), Vec::new()]];
        let bytes = encode(&states, &columns);
        let values = decode(&bytes, &feature).unwrap();
        for ((values, state), columns) in values.iter().zip(&states).zip(&columns) {
            let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(values.state()), bits(state.clone()));
            for (k, column) in columns.iter().enumerate() {
                assert_eq!(bits(values.column(k).collect()), bits(column.clone()));
            }
        }
        assert_eq!(values.len(), 2);
        for cut in [1, 8, 16, bytes.len() - 40, bytes.len() - 1] {
            assert!(decode(&bytes[..cut], &feature).is_err(), "{cut}");
        }
    }
}
