//! The serialised state of an underlying at the end of a partition, against which the next partition is
//! checked. It consists of lists of numbers, each after its count, in little-endian order; what may be
//! missing is a list of one or none. Rows are written column by column, which compresses best.

use super::ladder::{Contract, Ladder};
use super::seen::{Seen, SeenOf};
use super::snapshot_copy::{Prices, Row};
use crate::cuts;
use bytemuck::Pod;
use cache::{BlobDigest, BlobRef};
use datasets::Date;
use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use stages_core::StageError;
use std::collections::BTreeMap;
use std::io::Read as _;

/// Compresses the serialised states of several underlyings.
pub(super) fn pack(states: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, StageError> {
    let (mut all, mut packed) = (Vec::new(), Vec::new());
    for (symbol, state) in states {
        put(&mut all, symbol.bytes());
        put(&mut all, state.iter().copied());
    }
    DeflateEncoder::new(&all[..], Compression::fast())
        .read_to_end(&mut packed)
        .map_err(|err| StageError::new(format!("the state of a partition cannot be written: {err}")))?;
    Ok(packed)
}

/// Decodes the output of [`pack`]: symbol, digest and state of each underlying.
pub(super) fn unpack(bytes: &[u8]) -> Result<Vec<(String, BlobDigest, SeenOf)>, StageError> {
    let states = || {
        let mut all = Vec::new();
        DeflateDecoder::new(bytes).read_to_end(&mut all).ok()?;
        let (mut bytes, mut states) = (all.as_slice(), Vec::new());
        while !bytes.is_empty() {
            let (symbol, state) = (take(&mut bytes)?, take::<u8>(&mut bytes)?);
            states.push((
                String::from_utf8(symbol).ok()?,
                digest(&state),
                decode(&mut &state[..])?,
            ));
        }
        Some(states)
    };
    states().ok_or_else(|| {
        StageError::new("the stored state of a partition is damaged")
            .hint("run the stage again with `--force`")
    })
}

impl Seen {
    /// Serialises the state of each underlying.
    pub(super) fn states(&self) -> Result<BTreeMap<String, Vec<u8>>, StageError> {
        let state = |(symbol, seen): (&String, &SeenOf)| Ok((symbol.clone(), encode(seen)?));
        self.symbols.iter().map(state).collect()
    }

    /// Serialises and compresses the state at the end of a partition.
    pub(crate) fn pack(&self) -> Result<Vec<u8>, StageError> {
        pack(&self.states()?)
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
pub(super) fn encode(seen: &SeenOf) -> Result<Vec<u8>, StageError> {
    let mut out = Vec::new();
    put(&mut out, seen.underlying);
    put(&mut out, seen.parity.last);
    put(&mut out, seen.parity.carries.iter().copied());
    put_prices(&mut out, seen.prices.as_ref())?;
    put(&mut out, seen.opening.iter().map(|(underlying, _)| *underlying));
    put_prices(&mut out, seen.opening.as_ref().map(|(_, prices)| prices))?;
    put(&mut out, seen.ladder.iter().map(|ladder| ladder.date.0));
    put(&mut out, seen.ladder.iter().map(|ladder| ladder.underlying));
    put_contracts(&mut out, seen.ladder.iter().flat_map(|ladder| &ladder.contracts));
    put_contracts(&mut out, seen.traded.iter());
    Ok(out)
}

fn decode(bytes: &mut &[u8]) -> Option<SeenOf> {
    let mut seen = SeenOf {
        underlying: take(bytes)?.pop(),
        ..SeenOf::default()
    };
    seen.parity.last = take(bytes)?.pop();
    seen.parity.carries = take(bytes)?.into();
    seen.prices = take_prices(bytes)?;
    let underlying = take(bytes)?.pop();
    seen.opening = underlying.zip(take_prices(bytes)?);
    let date = take(bytes)?.pop();
    let ladder = date.zip(take(bytes)?.pop());
    let contracts = take_contracts(bytes)?;
    seen.ladder = ladder.map(|(date, underlying)| Ladder {
        date: Date(date),
        underlying,
        contracts,
    });
    seen.traded = take_contracts(bytes)?.into_iter().collect();
    Some(seen)
}

/// Writes numbers after their count.
fn put<T: Pod>(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = T>) {
    let numbers: Vec<T> = numbers.into_iter().collect();
    out.extend((numbers.len() as u64).to_le_bytes());
    out.extend(bytemuck::cast_slice::<T, u8>(&numbers));
}

/// Reads numbers from the front of `bytes`; `None` if they are too short.
fn take<T: Pod>(bytes: &mut &[u8]) -> Option<Vec<T>> {
    let (count, rest) = bytes.split_first_chunk()?;
    let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
    let (numbers, rest) = rest.split_at_checked(count.checked_mul(size_of::<T>())?)?;
    *bytes = rest;
    Some(bytemuck::pod_collect_to_vec(numbers))
}

fn put_contracts<'c>(out: &mut Vec<u8>, contracts: impl Iterator<Item = &'c Contract> + Clone) {
    put(out, contracts.clone().map(|contract| contract.0));
    put(out, contracts.clone().map(|contract| contract.1));
    put(out, contracts.map(|contract| u8::from(contract.2)));
}

fn take_contracts(bytes: &mut &[u8]) -> Option<Vec<Contract>> {
    let (expiries, strikes, calls) = (take(bytes)?, take(bytes)?, take::<u8>(bytes)?);
    let terms = expiries.into_iter().zip(strikes).zip(calls);
    Some(
        terms
            .map(|((expiry, strike), call)| (expiry, strike, call != 0))
            .collect(),
    )
}

fn put_prices(out: &mut Vec<u8>, prices: Option<&Prices>) -> Result<(), StageError> {
    let roots = prices.map(|prices| cuts::encode(&prices.roots)).transpose()?;
    put(out, roots.unwrap_or_default());
    let rows = || prices.iter().flat_map(|prices| &prices.rows);
    put(out, rows().map(|row| row.expiry));
    put(out, rows().map(|row| row.root));
    put(out, rows().map(|row| row.strike));
    put(out, rows().map(|row| u8::from(row.call)));
    put(out, rows().map(|row| row.prices[0]));
    put(out, rows().map(|row| row.prices[1]));
    Ok(())
}

fn take_prices(bytes: &mut &[u8]) -> Option<Option<Prices>> {
    let (roots, expiries, classes) = (take::<u8>(bytes)?, take(bytes)?, take(bytes)?);
    let (strikes, calls) = (take(bytes)?, take::<u8>(bytes)?);
    let prices = take(bytes)?.into_iter().zip(take(bytes)?);
    let rows = expiries.into_iter().zip(classes).zip(strikes).zip(calls).zip(prices);
    let rows = rows.map(|((((expiry, root), strike), call), (first, second))| Row {
        expiry,
        root,
        strike,
        call: call != 0,
        prices: [first, second],
    });
    let rows: Vec<Row> = rows.collect();
    match roots.is_empty() {
        true => Some(None),
        false => Some(Some(Prices {
            roots: cuts::decode(&roots).ok()?,
            rows,
        })),
    }
}
