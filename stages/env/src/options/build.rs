//! Builds the tables of an environment from a chain, its Greeks, features and rates.

use super::config::{Fills, OptionsConfig, QuoteKind};
use super::model::{black_scholes, intrinsic};
use super::observe;
use super::slate::{self, pick};
use super::split::split;
use super::tables::{Contract, Entry, Raw, Spec};
use super::{menu::Menu, normalise};
use datasets::Date;
use rayon::prelude::*;
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

/// Where the data come from. The chain is read twice, part by part, so that it need not fit into memory.
pub struct MarketSource<'a> {
    /// The underlying.
    pub symbol: String,
    /// Units of the underlying in a contract.
    pub multiplier: f64,
    /// Market features.
    pub features: Vec<FeatureColumn>,
    /// The shortest rate by date, ascending: continuously compounded, annual, decimal.
    pub rates: Vec<(Date, f64)>,
    /// How many parts the chain has.
    pub parts: usize,
    /// Reads a part: its snapshots, ascending, those of one part after those of the part before.
    pub read: Box<dyn Fn(usize) -> Result<Vec<Day>, StageError> + Sync + 'a>,
}

/// The tables, as files, and what is worth saying of them.
#[derive(Debug)]
pub struct Built {
    /// Path and bytes, in order.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// Lines for the log.
    pub notes: Vec<String>,
}

/// What identifies a contract.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    expiry: i32,
    root: String,
    strike: u64,
    call: bool,
}

impl Key {
    fn new(day: &Day, quote: &Quote) -> Self {
        Self {
            expiry: quote.expiry,
            root: day.roots.get(usize::from(quote.root)).cloned().unwrap_or_default(),
            strike: quote.strike.to_bits(),
            call: quote.call,
        }
    }
}

struct Snapshot {
    date: Date,
    underlying: f64,
    slots: Vec<Option<Key>>,
    at_the_money: Vec<Option<(Key, Key)>>,
    features: Vec<f32>,
}

/// How a class's forward and discount factor stood at a snapshot, per year.
#[derive(Clone, Copy)]
struct Curve {
    carry: f64,
    rate: f64,
}

/// Builds the tables.
///
/// # Errors
/// When the data cannot make an environment: no snapshots, a feature without any value, no training dates.
pub fn build(source: &MarketSource, config: &OptionsConfig) -> Result<Built, StageError> {
    let menu = Menu::new(config)?;
    let mut notes = Vec::new();
    let read = |part: usize| -> Result<Vec<Day>, StageError> {
        let mut days = (source.read)(part)?;
        days.retain(|day| day.underlying > 0.0 && day.underlying.is_finite());
        Ok(days)
    };
    let snapshots: Vec<Snapshot> = (0..source.parts)
        .into_par_iter()
        .map(|part| Ok(read(part)?.iter().map(|day| snapshot(day, config)).collect::<Vec<_>>()))
        .collect::<Result<Vec<_>, StageError>>()?
        .into_iter()
        .flatten()
        .collect();
    let dates: Vec<Date> = snapshots.iter().map(|snapshot| snapshot.date).collect();
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
    let rate: Vec<f64> = dates
        .iter()
        .map(|&date| {
            let known = source.rates.partition_point(|&(day, _)| day <= date);
            known.checked_sub(1).map_or(config.rate, |i| source.rates[i].1)
        })
        .collect();

    let (contracts, keys) = number(&snapshots, &dates);
    let paths = paths(
        source.parts,
        &read,
        config,
        &snapshots,
        &rate,
        &contracts,
        &keys,
        &mut notes,
    )?;
    let (features, warm_up) = market_features(&source.features, &dates, &mut notes)?;
    let splits = split(&dates, warm_up, config)?;

    let k = 2 * config.slate.maturities.len() * config.slate.deltas.len();
    let g = config.slate.features.len();
    let width = source.features.len() + k * g;
    let mut shown = Vec::with_capacity(dates.len() * width);
    for (t, snapshot) in snapshots.iter().enumerate() {
        shown.extend(features[t * source.features.len()..].iter().take(source.features.len()));
        shown.extend(&snapshot.features);
    }
    let names: Vec<String> = source.features.iter().map(|feature| feature.name.clone()).collect();
    let rest = observe::account_width(config);
    let normalisation = normalise::fit(&shown, width, splits.train, rest, config.clip);
    let rows = normalise::rows(&shown, width, &normalisation);
    let spec = Spec {
        symbol: source.symbol.clone(),
        multiplier: source.multiplier,
        config: config.clone(),
        warm_up,
        splits,
        env: crate::EnvSpec {
            name: "options".to_owned(),
            observation: observe::names(&names, config),
            actions: menu.names,
            masked: true,
            normalisation: Some(normalisation),
        },
    };
    let id = |key: &Option<Key>| key.as_ref().map_or(-1, |key| keys[key] as i32);
    let empty = snapshots
        .iter()
        .flat_map(|s| &s.slots)
        .filter(|slot| slot.is_none())
        .count();
    notes.push(format!(
        "{} snapshots from {} to {}, the first {warm_up} for the features' warm-up; {} of {} slots filled; {} contracts, {} path \
         entries",
        dates.len(),
        dates[0],
        dates[dates.len() - 1],
        dates.len() * k - empty,
        dates.len() * k,
        contracts.len(),
        paths.len()
    ));
    let raw = Raw {
        accrual: accruals(&dates, &rate),
        underlying: snapshots.iter().map(|s| s.underlying).collect(),
        slate: snapshots.iter().flat_map(|s| s.slots.iter().map(id)).collect(),
        at_the_money: snapshots
            .iter()
            .flat_map(|s| &s.at_the_money)
            .flat_map(|pair| match pair {
                Some((call, put)) => [keys[call] as i32, keys[put] as i32],
                None => [-1, -1],
            })
            .collect(),
        slate_features: snapshots.iter().flat_map(|s| s.features.iter().copied()).collect(),
        dates,
        rate,
        features,
        feature_names: names,
        contracts,
        roots: {
            let mut by_id: Vec<_> = keys.iter().map(|(key, &id)| (id, key.root.clone())).collect();
            by_id.sort();
            by_id.into_iter().map(|(_, root)| root).collect()
        },
        paths,
        rows,
    };
    Ok(Built {
        files: raw.files(&spec)?,
        notes,
    })
}

fn snapshot(day: &Day, config: &OptionsConfig) -> Snapshot {
    let pick = pick(day, config);
    let key = |i: usize| Key::new(day, &day.quotes[i]);
    Snapshot {
        date: day.date,
        underlying: day.underlying,
        features: pick
            .slots
            .iter()
            .flat_map(|slot| {
                config.slate.features.iter().map(move |&feature| match slot {
                    Some(i) => slate::feature(feature, &day.quotes[*i], day, config) as f32,
                    None => f32::NAN,
                })
            })
            .collect(),
        slots: pick.slots.iter().map(|slot| slot.map(key)).collect(),
        at_the_money: pick
            .at_the_money
            .iter()
            .map(|pair| pair.map(|(call, put)| (key(call), key(put))))
            .collect(),
    }
}

/// What 1 of cash earns to the next snapshot, at the rate known now.
fn accruals(dates: &[Date], rate: &[f64]) -> Vec<f64> {
    (0..dates.len())
        .map(|t| {
            let days = dates.get(t + 1).map_or(0, |next| next.0 - dates[t].0);
            libm::expm1(rate[t] * f64::from(days) / 365.0)
        })
        .collect()
}

/// Numbers the contracts that were ever on offer, in the order of their first appearance, so that later data change no
/// earlier number; and lays out their paths.
fn number(snapshots: &[Snapshot], dates: &[Date]) -> (Vec<Contract>, BTreeMap<Key, u32>) {
    let mut keys = BTreeMap::new();
    let mut contracts: Vec<Contract> = Vec::new();
    let mut start = 0;
    for (t, snapshot) in snapshots.iter().enumerate() {
        let pairs = snapshot
            .at_the_money
            .iter()
            .flatten()
            .flat_map(|(call, put)| [call, put]);
        for key in snapshot.slots.iter().flatten().chain(pairs) {
            if keys.contains_key(key) {
                continue;
            }
            keys.insert(key.clone(), contracts.len() as u32);
            let settles = dates.partition_point(|date| date.0 < key.expiry);
            let last = settles.min(dates.len() - 1);
            contracts.push(Contract {
                expiry: key.expiry,
                strike: f64::from_bits(key.strike),
                call: key.call,
                first: t as u32,
                last: last as u32,
                settles: settles < dates.len(),
                start,
            });
            start += (last - t + 1) as u64;
        }
    }
    (contracts, keys)
}

/// The path of every contract, from its first snapshot on the slate to its settlement or the last snapshot.
fn paths(
    parts: usize,
    read: &(impl Fn(usize) -> Result<Vec<Day>, StageError> + Sync),
    config: &OptionsConfig,
    snapshots: &[Snapshot],
    rate: &[f64],
    contracts: &[Contract],
    keys: &BTreeMap<Key, u32>,
    notes: &mut Vec<String>,
) -> Result<Vec<Entry>, StageError> {
    struct Found {
        contract: u32,
        t: u32,
        entry: Entry,
        volatility: f64,
    }
    type Curves = Vec<((i32, String), u32, Curve)>;
    let index = |date: Date| snapshots.partition_point(|snapshot| snapshot.date < date);
    let found: Vec<(Vec<Found>, Curves)> = (0..parts)
        .into_par_iter()
        .map(|part| {
            let (mut found, mut curves) = (Vec::new(), Curves::new());
            for day in read(part)? {
                let t = index(day.date) as u32;
                let mut last_class = None;
                for quote in &day.quotes {
                    if last_class != Some((quote.expiry, quote.root)) && quote.forward > 0.0 && quote.discount > 0.0 {
                        let years = f64::from(quote.expiry - day.date.0) / 365.0;
                        if years > 0.0 {
                            last_class = Some((quote.expiry, quote.root));
                            let curve = Curve {
                                carry: libm::log(quote.forward / day.underlying) / years,
                                rate: -libm::log(quote.discount) / years,
                            };
                            curves.push(((quote.expiry, Key::new(&day, quote).root), t, curve));
                        }
                    }
                    let Some(&id) = keys.get(&Key::new(&day, quote)) else {
                        continue;
                    };
                    let contract = &contracts[id as usize];
                    if t < contract.first || t > contract.last {
                        continue;
                    }
                    let prices = quote.prices(&config.fills);
                    found.push(Found {
                        contract: id,
                        t,
                        entry: Entry {
                            bid: prices.bid,
                            ask: prices.ask,
                            mark: prices.mid,
                            delta: quote.delta,
                            gamma: quote.gamma,
                            vega: quote.vega,
                            theta: quote.theta,
                            source: Entry::QUOTED,
                        },
                        volatility: quote.implied_volatility,
                    });
                }
            }
            Ok((found, curves))
        })
        .collect::<Result<_, StageError>>()?;

    let total = contracts.last().map_or(0, |c| c.start as usize + c.len());
    let mut entries = vec![Entry::MISSING; total];
    let mut volatility = vec![f64::NAN; total];
    let mut curves: BTreeMap<(i32, String), Vec<(u32, Curve)>> = BTreeMap::new();
    for (found, part_curves) in found {
        for Found {
            contract,
            t,
            entry,
            volatility: v,
        } in found
        {
            let contract = &contracts[contract as usize];
            let at = contract.start as usize + (t - contract.first) as usize;
            // A key that appears twice is the first one.
            if entries[at].is_missing() && volatility[at].is_nan() {
                entries[at] = entry;
                volatility[at] = v;
            }
        }
        for (class, t, curve) in part_curves {
            curves.entry(class).or_default().push((t, curve));
        }
    }
    let mut modelled = 0;
    for (key, &id) in keys {
        let contract = &contracts[id as usize];
        let range = contract.start as usize..contract.start as usize + contract.len();
        let curves = curves
            .get(&(key.expiry, key.root.clone()))
            .map_or(&[][..], Vec::as_slice);
        modelled += fill(
            contract,
            &mut entries[range.clone()],
            &volatility[range],
            curves,
            snapshots,
            rate,
        );
    }
    let late = contracts
        .iter()
        .filter(|c| c.settles && snapshots[c.last as usize].date.0 > c.expiry)
        .count();
    notes.push(format!(
        "{modelled} of {total} path entries have no quote and keep a model mark; {late} contracts expire on days without a \
         snapshot and settle at the next one"
    ));
    Ok(entries)
}

/// Completes a contract's path: model marks and Greeks where there are none, the settlement at its end. Goes forward in time
/// and uses what was known. Returns how many entries had no quote.
fn fill(
    contract: &Contract,
    entries: &mut [Entry],
    volatility: &[f64],
    curves: &[(u32, Curve)],
    snapshots: &[Snapshot],
    rate: &[f64],
) -> usize {
    let mut modelled = 0;
    let (mut last_volatility, mut time_value) = (f64::NAN, 0.0);
    let n = entries.len();
    for (i, entry) in entries.iter_mut().enumerate() {
        let t = contract.first as usize + i;
        let underlying = snapshots[t].underlying;
        let inner = intrinsic(underlying, contract.strike, contract.call);
        if i + 1 == n && contract.settles {
            *entry = Entry {
                bid: f64::NAN,
                ask: f64::NAN,
                mark: inner,
                delta: 0.0,
                gamma: 0.0,
                vega: 0.0,
                theta: 0.0,
                source: Entry::SETTLED,
            };
            continue;
        }
        if volatility[i] > 0.0 {
            last_volatility = volatility[i];
        }
        let missing = entry.is_missing();
        let greeks =
            entry.delta.is_finite() && entry.gamma.is_finite() && entry.vega.is_finite() && entry.theta.is_finite();
        if missing || !greeks {
            let years = f64::from(contract.expiry - snapshots[t].date.0) / 365.0;
            let known = curves.partition_point(|&(at, _)| at as usize <= t);
            let curve = known.checked_sub(1).map_or(
                Curve {
                    carry: rate[t],
                    rate: rate[t],
                },
                |i| curves[i].1,
            );
            let (forward, discount) = (
                underlying * libm::exp(curve.carry * years),
                libm::exp(-curve.rate * years),
            );
            let known = last_volatility > 0.0;
            let sigma = if known { last_volatility } else { 0.0 };
            let value = black_scholes(
                underlying,
                forward,
                discount,
                sigma,
                years,
                contract.strike,
                contract.call,
            );
            if missing {
                // Without any volatility, the time value of the last mark is kept.
                entry.mark = if known { value.price } else { inner + time_value };
                entry.source = Entry::MODEL;
                modelled += 1;
            }
            if !greeks {
                (entry.delta, entry.gamma, entry.vega, entry.theta) =
                    (value.delta, value.gamma, value.vega, value.theta);
            }
        }
        time_value = (entry.mark - inner).max(0.0);
    }
    modelled
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
