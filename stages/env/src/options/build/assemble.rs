//! Builds the tables of an environment from a chain, its Greeks, features and rates.

use super::chain::{Chain, Kept, part_snapshots, snapshots_key};
use super::contract_features::beside;
use super::histories::Listing;
use super::market_source::MarketSource;
use super::part_store::PartStore;
use super::snapshots::{ContractKey, PartSnapshots, Snapshot};
use crate::env_artifact::Built;
use crate::env_artifact::{SPEC, encode_spec};
use crate::feature_columns::{FEW_SNAPSHOTS, FeatureColumn, market_features};
use crate::hedge;
use crate::normalise;
use crate::options::action_space::action_space;
use crate::options::config::OptionsConfig;
use crate::options::hedge::HedgeInstrument;
use crate::options::observation;
use crate::options::strategies::Strategies;
use crate::options::tables::{SnapshotRows, Spec, World, part_files};
use crate::portfolio::in_world;
use crate::rates;
use crate::spec::EnvSpec;
use crate::split::{SnapshotRange, split};
use crate::worlds::{Role, roles};
use datasets::Date;
use rayon::prelude::*;
use stages_core::StageError;
use std::sync::atomic::AtomicUsize;

/// The number of quotes that are kept for each thread between the two passes over a chain: 40 MB.
const KEPT_QUOTES: usize = 1 << 18;

/// Builds the tables of one world.
///
/// # Errors
/// The errors of [`build_worlds`].
pub fn build<S: PartStore>(
    source: &MarketSource<'_>,
    config: &OptionsConfig,
    store: &S,
) -> Result<Built<S::File>, StageError> {
    build_worlds(&[(source, store)], config)
}

/// Builds the tables of several worlds in parallel, each from its source with its own store of pieces.
///
/// # Errors
/// When the data cannot make an environment: no snapshots, a feature without any value, no training dates,
/// worlds that differ in their multiplier or their features.
pub fn build_worlds<S: PartStore>(
    sources: &[(&MarketSource<'_>, &S)],
    config: &OptionsConfig,
) -> Result<Built<S::File>, StageError> {
    let strategies = Strategies::new(config)?;
    let symbols: Vec<String> = sources.iter().map(|(source, _)| source.symbol.clone()).collect();
    let roles = roles(&symbols, config.test.as_ref(), config.validation.as_ref())?;
    let several = sources.len() > 1;
    let room = AtomicUsize::new(KEPT_QUOTES * rayon::current_num_threads());
    let worlds: Vec<BuiltWorld<S::File>> = sources
        .par_iter()
        .zip(&roles)
        .map(|((source, store), role)| {
            let prefix = if several {
                format!("{}/", source.symbol)
            } else {
                String::new()
            };
            let kept = Kept::new(source.parts.len(), &room);
            world(source, config, *role, (*store, &kept), &prefix)
                .map_err(|err| in_world(several, &source.symbol, err))
        })
        .collect::<Result<_, StageError>>()?;
    let Some(((first, store), (one, others))) = sources.first().copied().zip(worlds.split_first()) else {
        return Err(StageError::new("there is no world"));
    };
    for ((other, _), world) in sources.iter().skip(1).zip(others) {
        let unlike = if world.observed != one.observed
            || world.contract_features != one.contract_features
            || world.hidden != one.hidden
        {
            "other features"
        } else if other.multiplier != first.multiplier {
            "another multiplier"
        } else if other.settlements.are_instants() != first.settlements.are_instants() {
            "another number of snapshots a day"
        } else {
            continue;
        };
        return Err(
            StageError::new(format!("`{}` has {unlike} than `{}`", other.symbol, first.symbol))
                .hint("worlds of one environment are alike; make an environment of each kind"),
        );
    }
    let width = one.observed.len()
        + config.slate.slots() * (config.slate.features.len() + one.contract_features.len());
    let rest = observation::account_width(config);
    let fitted: Vec<(&[f32], &[SnapshotRange])> = worlds
        .iter()
        .map(|world| (world.shown.as_slice(), world.world.splits.train.as_slice()))
        .collect();
    let spec = Spec {
        multiplier: first.multiplier,
        config: config.clone(),
        env: EnvSpec {
            name: "options".to_owned(),
            observation: observation::names(&one.observed, &one.contract_features, config),
            action_space: action_space(config, &strategies),
            normalisation: Some(normalise::fit(&fitted, width, rest, config.clip)),
            encoding: crate::ActionEncoding::default(),
        },
        hidden: one.hidden.clone(),
        worlds: worlds.iter().map(|world| world.world.clone()).collect(),
    };
    let mut built = Built {
        files: vec![(SPEC.to_owned(), store.file(encode_spec(&spec)?)?)],
        notes: Vec::new(),
        warnings: Vec::new(),
    };
    for world in worlds {
        built.files.extend(world.files);
        built.add(several.then_some(&world.world.symbol), world.notes, world.warnings);
    }
    Ok(built)
}

/// A world's tables.
struct BuiltWorld<F> {
    world: World,
    /// The names of the observed market features, and of the hidden ones.
    observed: Vec<String>,
    hidden: Vec<String>,
    /// The names of the C features by contract.
    contract_features: Vec<String>,
    /// The observation of market and slate, raw `[T, F + K (G + C)]`.
    shown: Vec<f32>,
    files: Vec<(String, F)>,
    notes: Vec<String>,
    warnings: Vec<String>,
}

/// Builds the tables of a world, its parts in directories whose names begin with `prefix`.
fn world<S: PartStore>(
    source: &MarketSource<'_>,
    config: &OptionsConfig,
    role: Role,
    (store, kept): (&S, &Kept<'_>),
    prefix: &str,
) -> Result<BuiltWorld<S::File>, StageError> {
    let (mut notes, mut warnings) = (Vec::new(), Vec::new());
    let parts: Vec<PartSnapshots> = (0..source.parts.len())
        .into_par_iter()
        .map(|part| part_snapshots(source, config, store, kept, part))
        .collect::<Result<_, StageError>>()?;
    let left_out: usize = parts.iter().map(|part| part.left_out).sum();
    let chain = Chain::new(source, config, parts)?;
    let times = &chain.times;
    let dates: &[Date] = &times.iter().map(|time| time.date).collect::<Vec<_>>();
    if let Some(i) = (1..times.len()).find(|&i| times[i] <= times[i - 1]) {
        return Err(StageError::new(format!(
            "the chain's snapshots are not in order: {} follows {}",
            times[i],
            times[i - 1]
        )));
    }
    if config.slate.min_days == 0 && !source.settlements.are_instants() {
        return Err(config.slate.least_days().into());
    }
    StageError::new(format!(
        "the chain of `{}` has {} snapshots with a price of the underlying; at least 2 are needed",
        source.symbol,
        dates.len()
    ))
    .when(dates.len() < 2)?;
    if left_out > 0 {
        let all = left_out + dates.len();
        let share = left_out as f64 / all as f64;
        let message = format!(
            "{left_out} of {all} snapshots have no price of the underlying and are left out ({:.1} %)",
            100.0 * share
        );
        if share > config.max_gaps && all >= FEW_SNAPSHOTS {
            return Err(StageError::new(message).hint(format!(
                "`underlying: parity` of `ingest/option_chain` derives it from the options, \
                `underlying_path` takes it from bars; `max_gaps: {}` accepts it",
                (100.0 * share).ceil() / 100.0
            )));
        }
        warnings.push(message);
    }
    let has_future = config.hedge.instrument == HedgeInstrument::Future;
    if let Some(adjustment) = chain.adjustments.first().filter(|_| has_future) {
        return Err(StageError::new(format!(
            "`{}` has a corporate action on {}, which a future on it would be adjusted for",
            source.symbol, dates[adjustment.snapshot]
        ))
        .hint("set hedge: { instrument: underlying }; futures here are on indices"));
    }
    StageError::new("`future` has prices of a future, by which nothing is hedged")
        .hint("set hedge: { instrument: future }, or leave `future` out")
        .when(!source.future.is_empty() && !has_future)?;
    let future = match source.future.is_empty() {
        true => Vec::new(),
        false => hedge::prices(&source.future, times)?,
    };
    let histories = chain.histories(source, config, store, kept)?;
    rates::check_age(&source.rates, times, config.max_rates_age_days)?;
    warnings.extend(late_settlements(&chain, source));
    let (features, warm_up) = market_features(&source.features, times, config.max_gaps, &mut warnings)?;
    // They are for judgement, and may begin late.
    let (hidden, _) = market_features(&source.hidden, times, config.max_gaps, &mut warnings)?;
    let splits = split(dates, warm_up, &config.split_rules(), role)?;

    let slate = slate_features(source, config, store, &chain, &mut warnings)?;
    let snapshots = || chain.parts.iter().flat_map(|part| &part.snapshots);
    let (f, h) = (source.features.len(), source.hidden.len());
    let mut shown = Vec::new();
    for (t, of_slate) in slate.iter().flatten().enumerate() {
        shown.extend(&features[t * f..(t + 1) * f]);
        shown.extend(of_slate);
    }
    let world = World {
        symbol: source.symbol.clone(),
        warm_up,
        splits,
        parts: chain
            .numbers
            .iter()
            .map(|&part| format!("{prefix}{}", source.parts[part]))
            .collect(),
        adjustments: chain.adjustments.clone(),
    };
    for adjustment in world
        .adjustments
        .iter()
        .filter(|adjustment| adjustment.changes_contracts())
    {
        notes.push(format!("contracts are adjusted on {}", dates[adjustment.snapshot]));
    }
    let (slots, empty) = snapshots()
        .flat_map(|snapshot| &snapshot.slots)
        .fold((0, 0), |(all, empty), slot| {
            (all + 1, empty + u64::from(slot.is_none()))
        });
    let own = |listing: &Listing| listing.contracts.len() - listing.carried;
    notes.push(format!(
        "{} snapshots from {} to {}, the first {warm_up} for the features' warm-up; {} of {slots} slots \
        filled; {} contracts",
        times.len(),
        times[0],
        times[times.len() - 1],
        slots - empty,
        chain.listings.iter().map(own).sum::<usize>(),
    ));
    let mut files = Vec::new();
    for (i, (range, history)) in chain.ranges().into_iter().zip(histories).enumerate() {
        let [snapshots, paths] = part_files(&world.parts[i]);
        let mut rows = rows(&chain.parts[i], &chain.listings[i], has_future);
        rows.slate_features = slate[i].concat();
        rows.rate = chain.rate[range.clone()].to_vec();
        let future = future.get(range.clone()).unwrap_or_default();
        rows.future = future.iter().flat_map(|price| price.encode()).collect();
        rows.features = features[range.start * f..range.end * f].to_vec();
        rows.hidden = hidden[range.start * h..range.end * h].to_vec();
        files.push((snapshots, store.file(rows.encode()?)?));
        files.push((paths, history));
    }
    let names = |columns: &[FeatureColumn]| columns.iter().map(|column| column.name.clone()).collect();
    Ok(BuiltWorld {
        world,
        observed: names(&source.features),
        contract_features: source
            .contract_features
            .iter()
            .flat_map(|features| features.names.clone())
            .collect(),
        hidden: names(&source.hidden),
        shown,
        files,
        notes,
        warnings,
    })
}

/// The features of the slate for each snapshot of a part, raw `[K, G + C]`.
fn slate_features<S: PartStore>(
    source: &MarketSource<'_>,
    config: &OptionsConfig,
    store: &S,
    chain: &Chain,
    warnings: &mut Vec<String>,
) -> Result<Vec<Vec<Vec<f32>>>, StageError> {
    let own = |part: &PartSnapshots| {
        part.snapshots
            .iter()
            .map(|snapshot| snapshot.features.clone())
            .collect()
    };
    let Some(contract_features) = &source.contract_features else {
        return Ok(chain.parts.iter().map(own).collect());
    };
    let key = snapshots_key(source, config);
    let width = contract_features.names.len();
    let all: Vec<Vec<f32>> = chain
        .parts
        .par_iter()
        .zip(&chain.numbers)
        .map(|(part, &number)| contract_features.slot_values(store, number, key.as_bytes(), part))
        .collect::<Result<_, StageError>>()?;
    for (j, name) in contract_features.names.iter().enumerate() {
        let mut values = all.iter().flat_map(|values| values.iter().skip(j).step_by(width));
        if values.all(|value| !value.is_finite()) {
            warnings.push(format!(
                "the feature `{name}` has no value of any contract on the slate"
            ));
        }
    }
    let beside = |(part, values): (&PartSnapshots, &Vec<f32>)| {
        let mut rest = values.as_slice();
        let of_snapshot = |snapshot: &Snapshot| {
            let slots = snapshot.slots.len();
            let values;
            (values, rest) = rest.split_at(slots * width);
            beside(&snapshot.features, values, slots)
        };
        part.snapshots.iter().map(of_snapshot).collect()
    };
    Ok(chain.parts.iter().zip(&all).map(beside).collect())
}

/// The snapshots of a part as columns, still without rates and features.
fn rows(part: &PartSnapshots, listing: &Listing, has_future: bool) -> SnapshotRows {
    let indices = listing.indices();
    let index = |key: Option<&ContractKey>| key.and_then(|key| indices.get(key)).map_or(-1, |&i| i as i32);
    let mut rows = SnapshotRows::default();
    for snapshot in &part.snapshots {
        rows.dates.push(snapshot.date);
        rows.instants.extend(snapshot.instant);
        rows.underlying.push(snapshot.underlying);
        if has_future {
            rows.carry.push(snapshot.carry.map_or(f64::NAN, f64::from_bits));
        }
        rows.slate
            .extend(snapshot.slots.iter().map(|slot| index(slot.as_ref())));
        for pair in &snapshot.at_the_money {
            let (call, put) = pair.as_ref().map(|(call, put)| (call, put)).unzip();
            rows.at_the_money.extend([index(call), index(put)]);
        }
    }
    rows
}

/// A warning of contracts that settle by a price of a later day, since no snapshot follows their settlement
/// on its own.
fn late_settlements(chain: &Chain, source: &MarketSource<'_>) -> Option<String> {
    let mut late = 0;
    for (part, listing) in chain.parts.iter().zip(&chain.listings) {
        for (key, _) in listing.settled() {
            let settlement = source.settlements.of(key.expiry, &key.root);
            let at = part.snapshots.partition_point(|s| !settlement.is_over(s.time()));
            late += usize::from(part.snapshots.get(at).is_some_and(|s| settlement.is_late(s.time())));
        }
    }
    (late > 0).then(|| {
        format!(
            "{late} contracts settle by the underlying's price at the first snapshot of a later day: the \
            chain has none between their settlement and the end of its day"
        )
    })
}
