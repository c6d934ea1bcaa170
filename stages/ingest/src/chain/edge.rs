//! The state of an underlying at the end of a partition, as bytes: what the next partition is checked
//! against.

use super::ladder::{Contract, Ladder};
use super::seen::SeenOf;
use super::snapshot_copy::{Prices, Row};
use cache::{BlobDigest, BlobRef};
use datasets::Date;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use stages_core::StageError;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

/// The states of some underlyings as bytes, with the digest of each.
///
/// # Errors
/// None that is known.
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

/// The states in the bytes of [`pack`], each with its digest.
///
/// # Errors
/// When they are damaged.
pub(super) fn unpack(bytes: &[u8]) -> Result<Vec<(String, BlobDigest, SeenOf)>, StageError> {
    let mut all = Vec::new();
    DeflateDecoder::new(bytes)
        .read_to_end(&mut all)
        .map_err(|_| damaged())?;
    let mut bytes = Bytes(&all);
    let mut states = Vec::new();
    while !bytes.0.is_empty() {
        let symbol = bytes.text()?;
        let state = bytes.bytes()?;
        states.push((symbol, digest(state), decode(state)?));
    }
    Ok(states)
}

/// The digest of a state.
pub(super) fn digest(state: &[u8]) -> BlobDigest {
    BlobRef::of(state).blob
}

fn damaged() -> StageError {
    StageError::new("the stored state of a partition is damaged").hint("run the stage again with `--force`")
}

/// A state as bytes; the days that have snapshots are not part of it.
pub(super) fn encode(seen: &SeenOf) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |bytes: &[u8]| out.extend_from_slice(bytes);
    let optional = |value: Option<f64>, put: &mut dyn FnMut(&[u8])| {
        put(&[u8::from(value.is_some())]);
        put(&value.unwrap_or_default().to_bits().to_le_bytes());
    };
    let count = |count: usize| (count as u64).to_le_bytes();
    let contracts = |contracts: &[Contract], put: &mut dyn FnMut(&[u8])| {
        put(&count(contracts.len()));
        for (expiry, strike, call) in contracts {
            put(&expiry.to_le_bytes());
            put(&strike.to_le_bytes());
            put(&[u8::from(*call)]);
        }
    };
    optional(seen.underlying, &mut put);
    optional(seen.parity.last, &mut put);
    put(&count(seen.parity.carries.len()));
    for carry in &seen.parity.carries {
        put(&carry.to_bits().to_le_bytes());
    }
    put(&[u8::from(seen.prices.is_some())]);
    let none = Prices::default();
    let prices = seen.prices.as_ref().unwrap_or(&none);
    put_prices(prices, &mut put);
    let rows = &prices.rows;
    put(&[u8::from(seen.ladder.is_some())]);
    if let Some(ladder) = &seen.ladder {
        put(&ladder.date.0.to_le_bytes());
        put(&ladder.underlying.to_bits().to_le_bytes());
        // Most of its contracts have prices: a mark is enough for these.
        let mut unpriced = vec![true; ladder.contracts.len()];
        for row in rows {
            let at = ladder.contracts.binary_search(&row.contract());
            put(&[u8::from(at.is_ok())]);
            if let Ok(at) = at {
                unpriced[at] = false;
            }
        }
        let rest = ladder.contracts.iter().zip(unpriced).filter(|(_, unpriced)| *unpriced);
        contracts(&rest.map(|(contract, _)| *contract).collect::<Vec<_>>(), &mut put);
    }
    let mut traded: Vec<Contract> = seen.traded.iter().copied().collect();
    traded.sort_unstable();
    contracts(&traded, &mut put);
    put(&[u8::from(seen.opening.is_some())]);
    if let Some((underlying, prices)) = &seen.opening {
        put(&underlying.to_bits().to_le_bytes());
        put_prices(prices, &mut put);
    }
    out
}

fn put_prices(Prices { roots, rows }: &Prices, put: &mut dyn FnMut(&[u8])) {
    let count = |count: usize| (count as u64).to_le_bytes();
    put(&count(roots.len()));
    for root in roots {
        put(&count(root.len()));
        put(root.as_bytes());
    }
    // Column by column, which packs best.
    put(&count(rows.len()));
    rows.iter().for_each(|row| put(&row.expiry.to_le_bytes()));
    rows.iter().for_each(|row| put(&row.root.to_le_bytes()));
    rows.iter().for_each(|row| put(&row.strike.to_bits().to_le_bytes()));
    rows.iter().for_each(|row| put(&[u8::from(row.call)]));
    for i in 0..2 {
        rows.iter().for_each(|row| put(&row.prices[i].to_le_bytes()));
    }
}

fn decode(bytes: &[u8]) -> Result<SeenOf, StageError> {
    let mut bytes = Bytes(bytes);
    let mut seen = SeenOf {
        underlying: bytes.optional()?,
        ..SeenOf::default()
    };
    seen.parity.last = bytes.optional()?;
    for _ in 0..bytes.u64()? {
        seen.parity.carries.push_back(f64::from_bits(bytes.u64()?));
    }
    let has_prices = bytes.flag()?;
    let prices = bytes.prices()?;
    let rows = &prices.rows;
    if bytes.flag()? {
        let date = Date(bytes.i32()?);
        let underlying = f64::from_bits(bytes.u64()?);
        let listed = bytes.column(rows.len() as u64, Bytes::flag)?;
        let mut contracts: Vec<Contract> = rows
            .iter()
            .zip(listed)
            .filter(|(_, listed)| *listed)
            .map(|(row, _)| row.contract())
            .collect();
        contracts.extend(bytes.contracts()?);
        contracts.sort_unstable();
        contracts.dedup();
        seen.ladder = Some(Ladder {
            date,
            underlying,
            contracts,
        });
    }
    seen.prices = has_prices.then_some(prices);
    seen.traded = bytes.contracts()?.into_iter().collect();
    if bytes.flag()? {
        seen.opening = Some((f64::from_bits(bytes.u64()?), bytes.prices()?));
    }
    Ok(seen)
}

/// Bytes that are read from their beginning.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], StageError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u64(&mut self) -> Result<u64, StageError> {
        self.take().map(u64::from_le_bytes)
    }

    fn i32(&mut self) -> Result<i32, StageError> {
        self.take().map(i32::from_le_bytes)
    }

    fn flag(&mut self) -> Result<bool, StageError> {
        self.take::<1>().map(|[byte]| byte != 0)
    }

    fn optional(&mut self) -> Result<Option<f64>, StageError> {
        let is_some = self.flag()?;
        let value = f64::from_bits(self.u64()?);
        Ok(is_some.then_some(value))
    }

    fn bytes(&mut self) -> Result<&'a [u8], StageError> {
        let len = self.u64()?;
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len <= self.0.len())
            .ok_or_else(damaged)?;
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        Ok(taken)
    }

    fn text(&mut self) -> Result<String, StageError> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes.to_vec()).map_err(|_| damaged())
    }

    fn column<T>(
        &mut self,
        count: u64,
        mut one: impl FnMut(&mut Self) -> Result<T, StageError>,
    ) -> Result<Vec<T>, StageError> {
        (0..count).map(|_| one(self)).collect()
    }

    fn prices(&mut self) -> Result<Prices, StageError> {
        let roots = (0..self.u64()?).map(|_| self.text()).collect::<Result<_, _>>()?;
        let count = self.u64()?;
        let expiries = self.column(count, Self::i32)?;
        let of_roots = self.column(count, Self::i32)?;
        let strikes = self.column(count, Self::u64)?;
        let calls = self.column(count, Self::flag)?;
        let firsts = self.column(count, Self::u64)?;
        let seconds = self.column(count, Self::u64)?;
        let row = |i: usize| Row {
            expiry: expiries[i],
            root: of_roots[i] as u32,
            strike: f64::from_bits(strikes[i]),
            call: calls[i],
            prices: [firsts[i], seconds[i]],
        };
        let rows = (0..expiries.len()).map(row).collect();
        Ok(Prices { roots, rows })
    }

    fn contracts(&mut self) -> Result<Vec<Contract>, StageError> {
        (0..self.u64()?)
            .map(|_| Ok((self.i32()?, self.u64()?, self.flag()?)))
            .collect()
    }
}
