//! Builds the tables of an environment from a chain, its Greeks, features and rates.

use super::config::{Fills, OptionsConfig, QuoteKind};
use super::menu::Menu;
use super::offer::{Key, Offer};
use super::paths::{Carry, Found, Listing, Part};
use super::split::split;
use super::tables::{Rows, SPEC, Spec, names};
use super::{normalise, observe};
use bytes::Bytes;
use datasets::Date;
use rayon::prelude::*;
use serde_json::json;
use stages_core::StageError;
use std::collections::BTreeMap;

/// A contract's row at a snapshot; NaN where there is no value.
#[derive(Clone, Copy, Debug)]
pub struct Quote {
    /// Days since 1970-01-01.
    pub expiry: i32,
    /// Index into [`Day::roots`].
    pub root: u16,
    /// Call or put.
    pub call: bool,
    /// In currency.
    pub strike: f64,
    /// Best bid.
    pub bid: f64,
    /// Best ask.
    pub ask: f64,
    /// Last price.
    pub last: f64,
    /// Annual, decimal.
    pub implied_volatility: f64,
    /// dV/dS.
    pub delta: f64,
    /// d2V/dS2.
    pub gamma: f64,
    /// Per 1.00 of volatility.
    pub vega: f64,
    /// Per year.
    pub theta: f64,
    /// Forward of the underlying at expiry.
    pub forward: f64,
    /// Value now of 1 at expiry.
    pub discount: f64,
}

/// What a contract trades at; NaN where it does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prices {
    /// What a seller gets, slippage included.
    pub bid: f64,
    /// What a buyer pays, slippage included.
    pub ask: f64,
    /// The mark.
    pub mid: f64,
}

impl Prices {
    const NONE: Self = Self {
        bid: f64::NAN,
        ask: f64::NAN,
        mid: f64::NAN,
    };

    pub(crate) fn two_sided(&self) -> bool {
        self.bid > 0.0 && self.ask > 0.0
    }
}

impl Quote {
    /// Bid, ask and mid by the rules of `fills`.
    pub(crate) fn prices(&self, fills: &Fills) -> Prices {
        let (mid, half) = match fills.quotes {
            QuoteKind::BidAsk => {
                let bid = if self.bid > 0.0 { self.bid } else { 0.0 };
                // Written so that a missing ask, and a crossed or empty quote, are none.
                if !(self.ask > 0.0 && self.ask >= bid && self.ask.is_finite()) {
                    return Prices::NONE;
                }
                let mid = 0.5 * (bid + self.ask);
                (mid, 0.5 * (self.ask - bid) + fills.slippage * mid)
            }
            QuoteKind::Last => {
                if !(self.last > 0.0 && self.last.is_finite()) {
                    return Prices::NONE;
                }
                (self.last, (fills.slippage * self.last).max(fills.min_half_spread))
            }
        };
        let bid = mid - half;
        Prices {
            bid: if bid > 0.0 { bid } else { f64::NAN },
            ask: mid + half,
            mid,
        }
    }
}

/// A snapshot of the chain.
#[derive(Clone, Debug)]
pub struct Day {
    /// Its date.
    pub date: Date,
    /// The price of the underlying; NaN where it is not known, and then the snapshot is left out.
    pub underlying: f64,
    /// Option classes.
    pub roots: Vec<String>,
    /// The contracts, each once.
    pub quotes: Vec<Quote>,
}

/// A market feature.
#[derive(Clone, Debug)]
pub struct FeatureColumn {
    /// Its name.
    pub name: String,
    /// By date, ascending; NaN where it is null.
    pub values: Vec<(Date, f64)>,
}

/// Where the data come from. The chain is read part by part, so that it need not fit into memory.
pub struct MarketSource<'a> {
    /// The underlying.
    pub symbol: String,
    /// Units of the underlying in a contract.
    pub multiplier: f64,
    /// Market features.
    pub features: Vec<FeatureColumn>,
    /// The shortest rate by date, ascending: continuously compounded, annual, decimal.
    pub rates: Vec<(Date, f64)>,
    /// The names of the chain's parts, in order.
    pub parts: Vec<String>,
    /// Reads a part: its snapshots, ascending, those of one part after those of the part before.
    pub read: Box<dyn Fn(usize) -> Result<Vec<Day>, StageError> + Sync + 'a>,
}

/// What is found part by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// What a part offers, by its own quotes.
    Offer,
    /// The paths of a part's contracts, a file of the tables.
    Paths,
}

/// Keeps files, and what was found of a part for when it is asked for again.
pub trait Keep: Sync {
    /// What stands for a file that is kept.
    type File: Clone + Send + Sync;

    /// The piece of a part that `compute` finds, or found before: it depends on the part's quotes and on `key` alone.
    ///
    /// # Errors
    /// When it fails.
    fn piece(
        &self,
        piece: Piece,
        part: usize,
        key: &[u8],
        compute: impl FnOnce() -> Result<Vec<u8>, StageError>,
    ) -> Result<Self::File, StageError>;

    /// Keeps a file.
    ///
    /// # Errors
    /// When it cannot.
    fn file(&self, bytes: Vec<u8>) -> Result<Self::File, StageError>;

    /// The bytes of a file.
    ///
    /// # Errors
    /// When it is lost.
    fn bytes(&self, file: &Self::File) -> Result<Bytes, StageError>;
}

/// Keeps files in memory, and nothing for another time.
pub struct InMemory;

impl Keep for InMemory {
    type File = Bytes;

    fn piece(
        &self,
        _: Piece,
        _: usize,
        _: &[u8],
        compute: impl FnOnce() -> Result<Vec<u8>, StageError>,
    ) -> Result<Bytes, StageError> {
        compute().map(Bytes::from)
    }

    fn file(&self, bytes: Vec<u8>) -> Result<Bytes, StageError> {
        Ok(bytes.into())
    }

    fn bytes(&self, file: &Bytes) -> Result<Bytes, StageError> {
        Ok(file.clone())
    }
}

/// The tables, as files, and what is worth saying of them.
#[derive(Debug)]
pub struct Built<F> {
    /// Name and file, in order.
    pub files: Vec<(String, F)>,
    /// Lines for the log.
    pub notes: Vec<String>,
}

/// What of the configuration says how quotes are read.
fn prices_key(config: &OptionsConfig) -> serde_json::Value {
    let fills = &config.fills;
    json!([fills.quotes, fills.slippage, fills.min_half_spread])
}

/// What part `part` offers.
pub(crate) fn offer<K: Keep>(
    source: &MarketSource<'_>,
    config: &OptionsConfig,
    keep: &K,
    part: usize,
) -> Result<Offer, StageError> {
    let key = cache::canonical_json(&json!([prices_key(config), config.slate]));
    let file = keep.piece(Piece::Offer, part, key.as_bytes(), || {
        Offer::new(&days(source, part)?, config).encode()
    })?;
    Offer::decode(&keep.bytes(&file)?)
}

/// The snapshots of a part that have a price of the underlying.
fn days(source: &MarketSource<'_>, part: usize) -> Result<Vec<Day>, StageError> {
    let mut days = (source.read)(part)?;
    days.retain(|day| day.underlying > 0.0 && day.underlying.is_finite());
    Ok(days)
}

/// The parts of the chain that have snapshots, each with what it offers and its contracts.
pub(crate) struct Chain {
    /// Of each, its number in the source.
    numbers: Vec<usize>,
    offers: Vec<Offer>,
    listings: Vec<Listing>,
    /// By snapshot, over all parts.
    dates: Vec<Date>,
    rate: Vec<f64>,
}

impl Chain {
    /// `offers` are those of the source's parts, from the first on.
    pub(crate) fn new(source: &MarketSource<'_>, config: &OptionsConfig, offers: Vec<Offer>) -> Self {
        let (numbers, offers): (Vec<usize>, Vec<Offer>) = offers
            .into_iter()
            .enumerate()
            .filter(|(_, offer)| !offer.snapshots.is_empty())
            .unzip();
        let mut listings: Vec<Listing> = Vec::with_capacity(offers.len());
        for offer in &offers {
            let next = match listings.last() {
                Some(before) => before.after(offer),
                None => Listing::default().after(offer),
            };
            listings.push(next);
        }
        let snapshots = || offers.iter().flat_map(|offer| &offer.snapshots);
        let dates: Vec<Date> = snapshots().map(|snapshot| Date(snapshot.date)).collect();
        let rate = dates
            .iter()
            .map(|&date| {
                let known = source.rates.partition_point(|&(day, _)| day <= date);
                known.checked_sub(1).map_or(config.rate, |i| source.rates[i].1)
            })
            .collect();
        Self {
            numbers,
            listings,
            dates,
            rate,
            offers,
        }
    }

    /// The snapshots of each part, as a range of all.
    fn ranges(&self) -> Vec<std::ops::Range<usize>> {
        let mut start = 0;
        self.offers
            .iter()
            .map(|offer| {
                let range = start..start + offer.snapshots.len();
                start = range.end;
                range
            })
            .collect()
    }

    /// The paths of every part, one after the other: each goes on from what the one before carries over.
    pub(crate) fn paths<K: Keep>(
        &self,
        source: &MarketSource<'_>,
        config: &OptionsConfig,
        keep: &K,
    ) -> Result<Vec<K::File>, StageError> {
        let slate = &config.slate;
        let settings = cache::canonical_json(&json!([
            prices_key(config),
            slate.maturities,
            slate.deltas,
            slate.min_days
        ]));
        let parts: Vec<Part<'_>> = self
            .ranges()
            .into_iter()
            .enumerate()
            .map(|(i, range)| Part {
                offer: &self.offers[i],
                listing: &self.listings[i],
                rate: &self.rate[range],
            })
            .collect();
        let mut ahead = Ahead::default();
        let mut carry = Carry::default();
        let mut files = Vec::with_capacity(parts.len());
        for (i, part) in parts.iter().enumerate() {
            let mut key = settings.clone().into_bytes();
            key.extend(part.key(&carry));
            let mut computed = false;
            let file = keep.piece(Piece::Paths, self.numbers[i], &key, || {
                computed = true;
                let found = ahead.take(i, parts.len(), |i| {
                    Ok(Found::new(&days(source, self.numbers[i])?, &parts[i], &config.fills))
                })?;
                found.complete(part, &carry)
            })?;
            if !computed {
                ahead = Ahead::default();
            }
            carry = part.carry(&carry, &keep.bytes(&file)?)?;
            files.push(file);
        }
        Ok(files)
    }
}

/// Reads quotes ahead and in parallel, while the parts that need them follow one another: twice as many each time, so that
/// little is read in vain where a single part has changed.
#[derive(Default)]
struct Ahead {
    found: BTreeMap<usize, Found>,
    wave: usize,
}

impl Ahead {
    fn take(
        &mut self,
        part: usize,
        parts: usize,
        find: impl Fn(usize) -> Result<Found, StageError> + Sync,
    ) -> Result<Found, StageError> {
        if let Some(found) = self.found.remove(&part) {
            return Ok(found);
        }
        self.wave = (2 * self.wave).clamp(1, 2 * rayon::current_num_threads());
        let end = parts.min(part + self.wave);
        let found = (part..end)
            .into_par_iter()
            .map(|part| Ok((part, find(part)?)))
            .collect::<Result<Vec<_>, StageError>>()?;
        self.found.extend(found);
        self.found
            .remove(&part)
            .ok_or_else(|| StageError::new(format!("part {part} of the chain was not read")))
    }
}

/// Builds the tables.
///
/// # Errors
/// When the data cannot make an environment: no snapshots, a feature without any value, no training dates.
pub fn build<K: Keep>(
    source: &MarketSource<'_>,
    config: &OptionsConfig,
    keep: &K,
) -> Result<Built<K::File>, StageError> {
    let menu = Menu::new(config)?;
    let mut notes = Vec::new();
    let offers: Vec<Offer> = (0..source.parts.len())
        .into_par_iter()
        .map(|part| offer(source, config, keep, part))
        .collect::<Result<_, StageError>>()?;
    let chain = Chain::new(source, config, offers);
    let dates = &chain.dates;
    if let Some(i) = (1..dates.len()).find(|&i| dates[i] <= dates[i - 1]) {
        return Err(StageError::new(format!(
            "the chain's snapshots are not in order: {} follows {}",
            dates[i],
            dates[i - 1]
        )));
    }
    if dates.len() < 2 {
        return Err(StageError::new(format!(
            "the chain of `{}` has {} snapshots with a price of the underlying; at least 2 are needed",
            source.symbol,
            dates.len()
        )));
    }
    let paths = chain.paths(source, config, keep)?;
    let (features, warm_up) = market_features(&source.features, dates, &mut notes)?;
    let splits = split(dates, warm_up, config)?;

    let snapshots = || chain.offers.iter().flat_map(|offer| &offer.snapshots);
    let f = source.features.len();
    let width = f + 2 * config.slate.maturities.len() * config.slate.deltas.len() * config.slate.features.len();
    let mut shown = Vec::with_capacity(dates.len() * width);
    for (t, snapshot) in snapshots().enumerate() {
        shown.extend(&features[t * f..(t + 1) * f]);
        shown.extend(&snapshot.features);
    }
    let feature_names: Vec<String> = source.features.iter().map(|feature| feature.name.clone()).collect();
    let rest = observe::account_width(config);
    let parts: Vec<String> = chain.numbers.iter().map(|&part| source.parts[part].clone()).collect();
    let spec = Spec {
        symbol: source.symbol.clone(),
        multiplier: source.multiplier,
        config: config.clone(),
        warm_up,
        splits,
        env: crate::EnvSpec {
            name: "options".to_owned(),
            observation: observe::names(&feature_names, config),
            action_space: crate::ActionSpace::Discrete {
                names: menu.names,
                masked: true,
            },
            normalisation: Some(normalise::fit(&shown, width, splits.train, rest, config.clip)),
        },
        parts,
    };
    let (slots, empty) = snapshots()
        .flat_map(|snapshot| &snapshot.slots)
        .fold((0, 0), |(all, empty), slot| {
            (all + 1, empty + u64::from(slot.is_none()))
        });
    let own = |listing: &Listing| listing.contracts.len() - listing.carried;
    notes.push(format!(
        "{} snapshots from {} to {}, the first {warm_up} for the features' warm-up; {} of {slots} slots filled; {} contracts",
        dates.len(),
        dates[0],
        dates[dates.len() - 1],
        slots - empty,
        chain.listings.iter().map(own).sum::<usize>(),
    ));
    let mut files = vec![(SPEC.to_owned(), keep.file(spec.encode()?)?)];
    for (i, (range, paths)) in chain.ranges().into_iter().zip(paths).enumerate() {
        let [snapshots, of_paths] = names(&spec.parts[i]);
        let features = &features[range.start * f..range.end * f];
        let rows = rows(&chain.offers[i], &chain.listings[i], &chain.rate[range], features);
        files.push((snapshots, keep.file(rows.file()?)?));
        files.push((of_paths, paths));
    }
    Ok(Built { files, notes })
}

/// The snapshots of a part as they are stored.
fn rows(offer: &Offer, listing: &Listing, rate: &[f64], features: &[f32]) -> Rows {
    let places = listing.places();
    let place = |key: Option<&Key>| key.and_then(|key| places.get(key)).map_or(-1, |&i| i as i32);
    let mut rows = Rows {
        rate: rate.to_vec(),
        features: features.to_vec(),
        ..Rows::default()
    };
    for snapshot in &offer.snapshots {
        rows.dates.push(snapshot.date);
        rows.underlying.push(snapshot.underlying);
        rows.slate
            .extend(snapshot.slots.iter().map(|slot| place(slot.as_ref())));
        for pair in &snapshot.at_the_money {
            let (call, put) = pair.as_ref().map(|(call, put)| (call, put)).unzip();
            rows.at_the_money.extend([place(call), place(put)]);
        }
        rows.slate_features.extend(&snapshot.features);
    }
    rows
}

/// What 1 of cash earns to the next snapshot, at the rate known now.
pub(crate) fn accruals(dates: &[i32], rate: &[f64]) -> Vec<f64> {
    (0..dates.len())
        .map(|t| {
            let days = dates.get(t + 1).map_or(0, |next| next - dates[t]);
            libm::expm1(rate[t] * f64::from(days) / 365.0)
        })
        .collect()
}

/// `[T, F]`, and how many snapshots go by until every feature has had a value. Later gaps keep the last value.
fn market_features(
    columns: &[FeatureColumn],
    dates: &[Date],
    notes: &mut Vec<String>,
) -> Result<(Vec<f32>, usize), StageError> {
    let width = columns.len();
    let mut out = vec![f32::NAN; dates.len() * width];
    let (mut warm_up, mut gaps) = (0, 0);
    for (j, column) in columns.iter().enumerate() {
        let mut last = f32::NAN;
        let mut first = None;
        for (t, date) in dates.iter().enumerate() {
            let row = column.values.partition_point(|(day, _)| day < date);
            match column.values.get(row) {
                Some(&(day, value)) if day == *date && value.is_finite() => {
                    last = value as f32;
                    first.get_or_insert(t);
                }
                _ if first.is_some() => gaps += 1,
                _ => {}
            }
            out[t * width + j] = last;
        }
        let first = first.ok_or_else(|| {
            StageError::new(format!(
                "the feature `{}` has no value at any snapshot of the chain",
                column.name
            ))
            .hint("its window may be longer than the data, or its dates may be others; leave it out or shorten it")
        })?;
        warm_up = warm_up.max(first);
    }
    if gaps > 0 {
        notes.push(format!(
            "{gaps} features without a value after the warm-up show the last one known"
        ));
    }
    Ok((out, warm_up))
}
