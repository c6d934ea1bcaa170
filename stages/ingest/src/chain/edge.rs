//! The serialised state of an underlying at the end of a partition, against which the next partition is
//! checked.

use super::ladder::{Contract, Ladder};
use super::seen::{Seen, SeenOf};
use super::snapshot_copy::{Prices, Row};
use cache::{BlobDigest, BlobRef};
use datasets::Date;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use stages_core::StageError;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

/// Serialises and compresses the states of several underlyings, with the digest of each.
pub(super) fn pack(states: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, StageError> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    let mut write = |bytes: &[u8]| {
        packed.write_all(&(bytes.len() as u64).to_le_bytes())?;
        packed.write_all(bytes)
    };
    let mut written = || -> std::io::Result<()> {
        for (symbol, state) in states {
            write(symbol.as_bytes())?;
            write(state)?;
        }
        Ok(())
    };
    written()
        .and_then(|()| packed.finish())
        .map_err(|err| StageError::new(format!("the state of a partition cannot be written: {err}")))
}

/// Decodes the output of [`pack`]: symbol, digest and state of each underlying.
pub(super) fn unpack(bytes: &[u8]) -> Result<Vec<(String, BlobDigest, SeenOf)>, StageError> {
    let states = || {
        let mut all = Vec::new();
        DeflateDecoder::new(bytes).read_to_end(&mut all).ok()?;
        let (mut bytes, mut states) = (all.as_slice(), Vec::new());
        while !bytes.is_empty() {
            let (symbol, state) = <(String, Vec<u8>)>::take(&mut bytes)?;
            states.push((symbol, digest(&state), decode(&state)?));
        }
        Some(states)
    };
    states().ok_or_else(|| {
        StageError::new("the stored state of a partition is damaged")
            .hint("run the stage again with `--force`")
    })
}

impl Seen {
    /// Serialises the state at the end of a partition.
    pub(crate) fn pack(&self) -> Result<Vec<u8>, StageError> {
        let states = self.symbols.iter();
        pack(&states.map(|(symbol, seen)| (symbol.clone(), encode(seen))).collect())
    }

    /// Decodes the output of [`Seen::pack`].
    pub(crate) fn unpack(bytes: &[u8]) -> Result<Self, StageError> {
        let states = unpack(bytes)?.into_iter();
        Ok(Self {
            symbols: states.map(|(symbol, _, seen)| (symbol, seen)).collect(),
        })
    }
}

/// The digest of a serialised state.
pub(super) fn digest(state: &[u8]) -> BlobDigest {
    BlobRef::of(state).blob
}

/// Serialises a state, without the days that have snapshots.
pub(super) fn encode(seen: &SeenOf) -> Vec<u8> {
    let mut out = Vec::new();
    (seen.underlying, seen.parity.last).put(&mut out);
    seen.parity.carries.iter().copied().collect::<Vec<f64>>().put(&mut out);
    seen.prices.put(&mut out);
    let rows = seen.prices.as_ref().map_or(&[][..], |prices| &prices.rows);
    seen.ladder.is_some().put(&mut out);
    if let Some(ladder) = &seen.ladder {
        (ladder.date.0, ladder.underlying).put(&mut out);
        // Most contracts of the ladder also have prices, and for those a flag is enough.
        let mut unpriced = vec![true; ladder.contracts.len()];
        for row in rows {
            let at = ladder.contracts.binary_search(&row.contract());
            at.is_ok().put(&mut out);
            if let Ok(at) = at {
                unpriced[at] = false;
            }
        }
        let rest = ladder.contracts.iter().zip(unpriced).filter(|(_, unpriced)| *unpriced);
        rest.map(|(contract, _)| *contract)
            .collect::<Vec<Contract>>()
            .put(&mut out);
    }
    let mut traded: Vec<Contract> = seen.traded.iter().copied().collect();
    traded.sort_unstable();
    traded.put(&mut out);
    seen.opening.is_some().put(&mut out);
    if let Some((underlying, prices)) = &seen.opening {
        underlying.put(&mut out);
        prices.put(&mut out);
    }
    out
}

fn decode(mut bytes: &[u8]) -> Option<SeenOf> {
    let bytes = &mut bytes;
    let mut seen = SeenOf::default();
    (seen.underlying, seen.parity.last) = Item::take(bytes)?;
    seen.parity.carries = Vec::take(bytes)?.into();
    seen.prices = Item::take(bytes)?;
    if bool::take(bytes)? {
        let (date, underlying) = Item::take(bytes)?;
        let mut contracts: Vec<Contract> = Vec::new();
        for row in seen.prices.iter().flat_map(|prices| &prices.rows) {
            if bool::take(bytes)? {
                contracts.push(row.contract());
            }
        }
        contracts.extend(Vec::<Contract>::take(bytes)?);
        contracts.sort_unstable();
        contracts.dedup();
        seen.ladder = Some(Ladder {
            date: Date(date),
            underlying,
            contracts,
        });
    }
    seen.traded = Vec::take(bytes)?.into_iter().collect();
    if bool::take(bytes)? {
        seen.opening = Some((f64::take(bytes)?, Prices::take(bytes)?));
    }
    Some(seen)
}

/// A value in a serialised state: numbers in little-endian order, lists after their length, optional values
/// after a flag.
trait Item: Sized {
    fn put(&self, out: &mut Vec<u8>);
    /// Reads the value from the front of `bytes`; `None` if they are too short.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($ty:ty)*) => {
        $(impl Item for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }
            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let (taken, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(Self::from_le_bytes(*taken))
            }
        })*
    };
}
numbers!(u8 i32 u32 u64 f64);

impl Item for bool {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(*self).put(out);
    }
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(u8::take(bytes)? != 0)
    }
}

impl<T: Item> Item for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|item| item.put(out));
    }
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        (0..u64::take(bytes)?).map(|_| T::take(bytes)).collect()
    }
}

impl Item for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend(self.as_bytes());
    }
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Self::from_utf8(Vec::take(bytes)?).ok()
    }
}

impl<T: Item + Default> Item for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        match self {
            Some(item) => item.put(out),
            None => T::default().put(out),
        }
    }
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let is_some = bool::take(bytes)?;
        let item = T::take(bytes)?;
        Some(is_some.then_some(item))
    }
}

impl<A: Item, B: Item> Item for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some((A::take(bytes)?, B::take(bytes)?))
    }
}

impl Item for Contract {
    fn put(&self, out: &mut Vec<u8>) {
        ((self.0, self.1), self.2).put(out);
    }
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let ((expiry, strike), call) = Item::take(bytes)?;
        Some((expiry, strike, call))
    }
}

impl Item for Prices {
    /// The rows are written column by column, which compresses best.
    fn put(&self, out: &mut Vec<u8>) {
        let rows = &self.rows;
        self.roots.put(out);
        (rows.len() as u64).put(out);
        rows.iter().for_each(|row| row.expiry.put(out));
        rows.iter().for_each(|row| row.root.put(out));
        rows.iter().for_each(|row| row.strike.put(out));
        rows.iter().for_each(|row| row.call.put(out));
        rows.iter().for_each(|row| row.prices[0].put(out));
        rows.iter().for_each(|row| row.prices[1].put(out));
    }
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        fn column<T: Item>(bytes: &mut &[u8], rows: &mut [Row], set: fn(&mut Row, T)) -> Option<()> {
            for row in rows {
                set(row, T::take(bytes)?);
            }
            Some(())
        }
        let roots = Vec::take(bytes)?;
        // Every row takes some bytes, which bounds the plausible count.
        let count = usize::try_from(u64::take(bytes)?)
            .ok()
            .filter(|count| *count <= bytes.len())?;
        let mut rows = vec![Row::default(); count];
        column(bytes, &mut rows, |row, expiry| row.expiry = expiry)?;
        column(bytes, &mut rows, |row, root| row.root = root)?;
        column(bytes, &mut rows, |row, strike| row.strike = strike)?;
        column(bytes, &mut rows, |row, call| row.call = call)?;
        column(bytes, &mut rows, |row, price| row.prices[0] = price)?;
        column(bytes, &mut rows, |row, price| row.prices[1] = price)?;
        Some(Self { roots, rows })
    }
}
