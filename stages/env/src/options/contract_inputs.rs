//! Features by contract at the input `features`: those of `ingest/features`, in the partitions of the chain,
//! and those of programs, in partitions of their own.

use super::build::{ContractColumns, ContractFeatures};
use super::config::SlateConfig;
use super::symbol_changes::{WorldInput, renamed};
use datasets::DateRange;
use datasets::schema::CONTRACT;
use stages_core::dataset::{DataSet, Partition, PartitionKey};
use stages_core::features::is_by_contract;
use stages_core::{Context, StageError, table};
use std::collections::{BTreeMap, BTreeSet};

/// The data sets of features by contract at a port.
pub(super) struct ContractSets {
    sets: Vec<ContractSet>,
}

struct ContractSet {
    names: Vec<String>,
    /// The partitions by symbol, in the order of dates.
    by_symbol: BTreeMap<String, Vec<Partition>>,
    /// True where the set has a row for each row of a chain, in the chain's partitions.
    is_whole: bool,
    is_intraday: bool,
}

impl ContractSet {
    /// The partitions that have rows of a partition of the chain.
    fn of(&self, chain: &PartitionKey) -> Result<Vec<&Partition>, StageError> {
        let of_symbol = self.by_symbol.get(chain.symbol()?).into_iter().flatten();
        let meets = |key: &PartitionKey| key.range.from <= chain.range.to && chain.range.from <= key.range.to;
        Ok(of_symbol.filter(|partition| meets(&partition.key)).collect())
    }
}

impl ContractSets {
    /// Opens the data sets at `port`.
    pub(super) fn open(context: &Context, port: &str) -> Result<Self, StageError> {
        let sets = context
            .list(port)
            .iter()
            .filter(|input| is_by_contract(&input.artifact));
        let open = |input| {
            let set = DataSet::open(input)?;
            let names = serde_json::from_value(set.meta["features"].clone()).map_err(|err| {
                StageError::new(format!("the names of features by contract cannot be read: {err}"))
            })?;
            let is_intraday = set.is_intraday(&context.store)?;
            let mut by_symbol: BTreeMap<String, Vec<Partition>> = BTreeMap::new();
            for partition in set.partitions {
                let symbol = partition.key.symbol()?.to_owned();
                by_symbol.entry(symbol).or_default().push(partition);
            }
            Ok(ContractSet {
                names,
                by_symbol,
                is_whole: set.meta["days_of"] == "chain",
                is_intraday,
            })
        };
        Ok(Self {
            sets: sets.map(open).collect::<Result<_, StageError>>()?,
        })
    }

    /// The features of a world, of each set that has any rows of its partitions; `None` where there are none.
    ///
    /// # Errors
    /// When no set has any; when a set beside a chain lacks one of the chain's partitions; when one has days
    /// and the other instants; or when two features have one name, or a feature that of one of the slate's
    /// own.
    pub(super) fn of<'a>(
        &'a self,
        context: &'a Context,
        world: &'a WorldInput,
        slate: &SlateConfig,
    ) -> Result<Option<ContractFeatures<'a>>, StageError> {
        let mut sets: Vec<(&ContractSet, Vec<Vec<&Partition>>)> = Vec::new();
        for set in &self.sets {
            let parts = world.parts.iter().map(|(chain, _)| set.of(&chain.key));
            let parts: Vec<Vec<&Partition>> = parts.collect::<Result<_, _>>()?;
            if parts.iter().any(|part| !part.is_empty()) {
                sets.push((set, parts));
            }
        }
        if sets.is_empty() {
            return match self.sets.is_empty() {
                true => Ok(None),
                false => Err(unlike(world, 0)),
            };
        }
        check(context, world, &sets)?;
        let names: Vec<String> = sets.iter().flat_map(|(set, _)| set.names.clone()).collect();
        let mut seen: BTreeSet<&str> = slate.features.iter().map(|feature| feature.name()).collect();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name)) {
            return Err(
                StageError::new(format!("two features of a slot have the name `{twice}`")).hint(format!(
                    "rename it where it is read: `columns: {{ my_{twice}: {twice} }}`, or leave \
                    it out of `slate.features`"
                )),
            );
        }
        let keys = (0..world.parts.len()).map(|part| key(&sets, &names, part)).collect();
        let read = move |part: usize| -> Result<Vec<ContractColumns>, StageError> {
            let range = world.parts[part].0.key.range;
            let tables = sets.iter().map(|(set, parts)| {
                let mut all = ContractColumns {
                    values: vec![Vec::new(); set.names.len()],
                    ..ContractColumns::default()
                };
                for partition in &parts[part] {
                    let symbol = partition.key.symbol()?;
                    let last = |root: &str| match world.names.iter().find(|name| name.symbol == symbol) {
                        Some(name) => renamed(root, &name.symbol, &world.symbol),
                        None => root.to_owned(),
                    };
                    read(context, partition, range, &set.names, &last, &mut all).map_err(|err| {
                        StageError {
                            message: format!("{}: {}", partition.key.path(), err.message),
                            ..err
                        }
                    })?;
                }
                Ok::<_, StageError>(all)
            });
            tables.collect()
        };
        Ok(Some(ContractFeatures {
            names,
            keys,
            read: Box::new(read),
        }))
    }
}

/// Refuses sets beside a chain without one of its partitions, and sets of days beside a chain of instants.
fn check(
    context: &Context,
    world: &WorldInput,
    sets: &[(&ContractSet, Vec<Vec<&Partition>>)],
) -> Result<(), StageError> {
    let chain = world.names.first();
    let is_intraday = chain.map_or(Ok(false), |name| name.chain.is_intraday(&context.store))?;
    for (set, parts) in sets {
        if let Some(part) = parts.iter().position(|part| set.is_whole && part.is_empty()) {
            return Err(unlike(world, part));
        }
        if set.is_intraday != is_intraday {
            let (theirs, ours, hint) = match is_intraday {
                true => (
                    "days",
                    "several snapshots a day",
                    "write the snapshot of each row (column `snapshot`): what is known of a day at its end \
                    is not known at its first snapshot",
                ),
                false => (
                    "snapshots",
                    "days",
                    "write one row for a contract and day, without the column `snapshot`",
                ),
            };
            return Err(StageError::new(format!(
                "the features by contract `{}` have {theirs}, and the chain has {ours}",
                set.names.join("`, `")
            ))
            .hint(hint));
        }
    }
    Ok(())
}

/// Everything on which the values of a part depend: the partitions of each set, and the names.
fn key(sets: &[(&ContractSet, Vec<Vec<&Partition>>)], names: &[String], part: usize) -> Vec<u8> {
    let of_part = || sets.iter().map(|(_, parts)| &parts[part]);
    let digests = of_part()
        .flatten()
        .flat_map(|partition| *partition.blob.blob.as_bytes());
    let mut key: Vec<u8> = digests.chain(names.join("\n").into_bytes()).collect();
    // Which partitions are of which set is clear where each set has one.
    if of_part().any(|partitions| partitions.len() != 1) {
        let counts: Vec<String> = of_part().map(|partitions| partitions.len().to_string()).collect();
        key.extend(format!("\n\n{}", counts.join(" ")).into_bytes());
    }
    key
}

fn unlike(world: &WorldInput, part: usize) -> StageError {
    let path = world.parts.get(part).map(|(chain, _)| chain.key.path());
    StageError::new(format!(
        "the features by contract have no partition {}",
        path.unwrap_or_default()
    ))
    .hint("make them from the very chain at `chain`, or the one that it was made from")
}

/// Adds the features of a partition on the days `range`; `last` is the class under the world's last symbol.
fn read(
    context: &Context,
    partition: &Partition,
    range: DateRange,
    names: &[String],
    last: &dyn Fn(&str) -> String,
    all: &mut ContractColumns,
) -> Result<(), StageError> {
    context.check_cancelled()?;
    let mut columns: Vec<&str> = CONTRACT.iter().map(|column| column.name).collect();
    columns.extend(["date", "snapshot"]);
    columns.extend(names.iter().map(String::as_str));
    let batch = table::columns_from_parquet(context.store.blob(partition.blob.blob)?, &columns)?;
    let texts = table::texts(&batch, "root")?;
    let times = table::snapshot_times(&batch)?;
    let rows: Vec<usize> = (0..batch.num_rows())
        .filter(|&row| range.contains(times[row].date))
        .collect();
    // The classes of this partition, by their places among all: names and their places are few.
    let mut places: BTreeMap<&str, u32> = BTreeMap::new();
    for &row in &rows {
        let place = *places.entry(texts.value(row)).or_insert_with_key(|root| {
            let root = last(root);
            let known = all.roots.iter().position(|known| *known == root);
            known.unwrap_or_else(|| {
                all.roots.push(root);
                all.roots.len() - 1
            }) as u32
        });
        all.root.push(place);
    }
    let (expiries, strikes) = (table::dates(&batch, "expiry")?, table::floats_or_nan(&batch, "strike")?);
    let calls = table::bools(&batch, "call")?;
    all.times.extend(rows.iter().map(|&row| times[row]));
    all.expiries.extend(rows.iter().map(|&row| expiries[row].0));
    all.strikes.extend(rows.iter().map(|&row| strikes[row]));
    all.calls.extend(rows.iter().map(|&row| calls.value(row)));
    for (name, values) in names.iter().zip(&mut all.values) {
        let of_feature = table::floats_or_nan(&batch, name)?;
        values.extend(rows.iter().map(|&row| of_feature[row]));
    }
    Ok(())
}
