//! The smile of a day and the term structure of a chain, as text.

use super::plot::plot;
use super::read::Read;
use super::trial::Scratch;
use arrow_array::RecordBatch;
use datasets::{Date, SnapshotTime};
use runner_engine::Failure;
use stages_core::table;
use std::collections::BTreeMap;

/// The quotes of the last snapshot.
struct Quote {
    symbol: String,
    expiry: Date,
    strike: f64,
    call: bool,
    underlying: f64,
    volatility: f64,
}

fn quotes(batches: &[RecordBatch], volatility: &str) -> Result<(Option<SnapshotTime>, Vec<Quote>), Failure> {
    let failed = |err: stages_core::StageError| Failure::usage(err.message);
    let mut last: Option<SnapshotTime> = None;
    let mut quotes = Vec::new();
    for batch in batches {
        let times = table::snapshot_times(batch).map_err(failed)?;
        let Some(latest) = times.iter().max().copied() else {
            continue;
        };
        if last.is_some_and(|last| latest < last) {
            continue;
        }
        if last != Some(latest) {
            quotes.clear();
            last = Some(latest);
        }
        let symbols = table::texts(batch, "symbol").map_err(failed)?;
        let expiries = table::dates(batch, "expiry").map_err(failed)?;
        let strikes = table::floats(batch, "strike").map_err(failed)?;
        let calls = table::bools(batch, "call").map_err(failed)?;
        let underlyings = table::floats_or_nan(batch, "underlying").map_err(failed)?;
        let volatilities = table::floats_or_nan(batch, volatility).map_err(failed)?;
        for (i, time) in times.into_iter().enumerate() {
            if time == latest {
                quotes.push(Quote {
                    symbol: symbols.value(i).to_owned(),
                    expiry: expiries[i],
                    strike: strikes.value(i),
                    call: calls.value(i),
                    underlying: underlyings[i],
                    volatility: volatilities[i],
                });
            }
        }
    }
    Ok((last, quotes))
}

/// Smile and term structure of the last snapshot: with the vendor's volatilities, or else with ours.
pub(super) fn plots(scratch: &Scratch, read: &Read) -> Result<String, Failure> {
    let batches = read.partitions()?;
    let (mut snapshot, mut all) = quotes(&batches, "implied_volatility")?;
    let mut whose = "the file's volatilities";
    if all.iter().all(|quote| quote.volatility.is_nan()) {
        match read.with_volatilities(scratch) {
            Ok(ours) => {
                whose = "our implied volatilities of the mid";
                (snapshot, all) = quotes(&ours.partitions()?, "implied_volatility")?;
            }
            Err(err) => {
                return Ok(format!(
                    "no smile: the file has no volatilities, and ours fail: {}\n",
                    err.message
                ));
            }
        }
    }
    let Some(snapshot) = snapshot else {
        return Ok(String::new());
    };
    let date = snapshot.date;
    // Of several underlyings, the one with most quotes.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    all.iter()
        .filter(|quote| !quote.volatility.is_nan())
        .for_each(|quote| *counts.entry(&quote.symbol).or_default() += 1);
    let Some(symbol) = counts
        .into_iter()
        .max_by_key(|(_, count)| *count)
        .map(|(symbol, _)| symbol.to_owned())
    else {
        return Ok("no smile: no quote of the last day has a volatility\n".to_owned());
    };
    all.retain(|quote| quote.symbol == symbol && !quote.volatility.is_nan());
    let mut expiries: BTreeMap<Date, Vec<&Quote>> = BTreeMap::new();
    all.iter()
        .for_each(|quote| expiries.entry(quote.expiry).or_default().push(quote));
    // The smile with most strikes, a week off at least, if there is one.
    let richest = |later: i32| {
        expiries
            .iter()
            .filter(|(expiry, _)| expiry.0 - date.0 >= later)
            .max_by_key(|(_, quotes)| quotes.len())
    };
    let Some((expiry, smile)) = richest(7).or_else(|| richest(0)) else {
        return Ok(String::new());
    };
    let side = |call: bool| {
        let quotes = smile.iter().filter(|quote| quote.call == call);
        quotes.map(|quote| (quote.strike, quote.volatility)).collect::<Vec<_>>()
    };
    let smile = plot(
        &format!("smile of {symbol} on {snapshot}, expiry {expiry} (c call, p put, * both; {whose})"),
        &[('c', side(true)), ('p', side(false))],
        "strike",
        "volatility",
    );
    let term: Vec<(f64, f64)> = expiries
        .iter()
        .filter_map(|(expiry, quotes)| {
            let distance = |quote: &&&Quote| (quote.strike / quote.underlying).ln().abs();
            let nearest = quotes
                .iter()
                .filter(|quote| quote.underlying > 0.0)
                .min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
            Some((f64::from(expiry.0 - date.0), nearest.volatility))
        })
        .collect();
    let term = plot(
        &format!("term structure of {symbol} on {snapshot}, at the strike nearest to the underlying"),
        &[('o', term)],
        "days to expiry",
        "volatility",
    );
    Ok(format!("{smile}\n{term}"))
}
