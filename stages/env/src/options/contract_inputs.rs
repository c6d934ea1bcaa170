//! Features by contract at the input `features`: partitions beside those of the chain.

use super::build::{ContractColumns, ContractFeatures};
use super::config::SlateConfig;
use super::symbol_changes::{WorldInput, renamed};
use datasets::schema::CONTRACT;
use stages_core::dataset::{DataSet, Partition};
use stages_core::features::is_by_contract;
use stages_core::{Context, StageError, table};
use std::collections::{BTreeMap, BTreeSet};

/// The data sets of features by contract at a port.
pub(super) struct ContractSets {
    sets: Vec<ContractSet>,
}

struct ContractSet {
    names: Vec<String>,
    by_path: BTreeMap<String, Partition>,
}

impl ContractSets {
    /// Those at `port`.
    ///
    /// # Errors
    /// When one is damaged.
    pub fn open(context: &Context, port: &str) -> Result<Self, StageError> {
        let sets = context
            .list(port)
            .iter()
            .filter(|input| is_by_contract(&input.artifact));
        let open = |input| {
            let set = DataSet::open(input)?;
            let names = serde_json::from_value(set.meta["features"].clone())
                .map_err(|err| StageError::new(format!("the names of features by contract cannot be read: {err}")))?;
            let by_path = set
                .partitions
                .into_iter()
                .map(|partition| (partition.key.path(), partition));
            Ok(ContractSet {
                names,
                by_path: by_path.collect(),
            })
        };
        Ok(Self {
            sets: sets.map(open).collect::<Result<_, StageError>>()?,
        })
    }

    /// Those of a world, of each set that has any of its partitions; `None` where there are none.
    ///
    /// # Errors
    /// When a partition of the chain is missing, two features have one name, or a feature that of one of the slate's own.
    pub fn of<'a>(
        &'a self,
        context: &'a Context,
        world: &'a WorldInput,
        slate: &SlateConfig,
    ) -> Result<Option<ContractFeatures<'a>>, StageError> {
        let paths: Vec<String> = world.parts.iter().map(|(chain, _)| chain.key.path()).collect();
        let has_any = |set: &&ContractSet| paths.iter().any(|path| set.by_path.contains_key(path));
        let sets: Vec<&ContractSet> = self.sets.iter().filter(has_any).collect();
        if sets.is_empty() {
            return match self.sets.is_empty() {
                true => Ok(None),
                false => Err(unlike(&paths[0])),
            };
        }
        let names: Vec<String> = sets.iter().flat_map(|set| set.names.clone()).collect();
        let mut seen: BTreeSet<&str> = slate.features.iter().map(|feature| feature.name()).collect();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name)) {
            return Err(StageError::new(format!("two features of a slot have the name `{twice}`"))
                .hint(format!("rename it where it is read: `columns: {{ my_{twice}: {twice} }}`, or leave it out of `slate.features`")));
        }
        // By part, the partition of each set.
        let mut parts: Vec<Vec<&Partition>> = Vec::with_capacity(paths.len());
        for path in &paths {
            let of = sets.iter().map(|set| set.by_path.get(path).ok_or_else(|| unlike(path)));
            parts.push(of.collect::<Result<_, _>>()?);
        }
        let key = |part: &Vec<&Partition>| {
            let digests = part.iter().flat_map(|partition| *partition.blob.blob.as_bytes());
            digests.chain(names.join("\n").into_bytes()).collect()
        };
        let keys = parts.iter().map(key).collect();
        let names_of_sets: Vec<&[String]> = sets.iter().map(|set| set.names.as_slice()).collect();
        let read = move |part: usize| {
            let mut all = ContractColumns::default();
            for (partition, names) in parts[part].iter().zip(&names_of_sets) {
                let symbol = partition.key.symbol()?;
                let of = read(context, partition, names).map_err(|err| StageError {
                    message: format!("{}: {}", partition.key.path(), err.message),
                    ..err
                })?;
                add(
                    &mut all,
                    of,
                    &|root| match world.names.iter().find(|name| name.symbol == symbol) {
                        Some(name) => renamed(root, &name.symbol, &world.symbol),
                        None => root.to_owned(),
                    },
                )?;
            }
            Ok(all)
        };
        Ok(Some(ContractFeatures {
            names,
            keys,
            read: Box::new(read),
        }))
    }
}

fn unlike(path: &str) -> StageError {
    StageError::new(format!("the features by contract have no partition {path}"))
        .hint("make them from the very chain at `chain`, or the one that it was made from")
}

/// The features of a partition.
fn read(context: &Context, partition: &Partition, names: &[String]) -> Result<ContractColumns, StageError> {
    context.check_cancelled()?;
    let mut columns: Vec<&str> = CONTRACT.iter().map(|column| column.name).collect();
    columns.extend(["date", "snapshot"]);
    columns.extend(names.iter().map(String::as_str));
    let batch = table::columns_from_parquet(context.store.blob(partition.blob.blob)?, &columns)?;
    let texts = table::texts(&batch, "root")?;
    let (mut roots, mut root): (Vec<String>, Vec<u32>) = (Vec::new(), Vec::new());
    for row in 0..batch.num_rows() {
        let text = texts.value(row);
        let index = roots.iter().rposition(|known| known == text).unwrap_or_else(|| {
            roots.push(text.to_owned());
            roots.len() - 1
        });
        root.push(index as u32);
    }
    let calls = table::bools(&batch, "call")?;
    Ok(ContractColumns {
        times: table::snapshot_times(&batch)?,
        expiries: table::dates(&batch, "expiry")?.into_iter().map(|date| date.0).collect(),
        roots,
        root,
        strikes: table::floats_or_nan(&batch, "strike")?,
        calls: (0..batch.num_rows()).map(|row| calls.value(row)).collect(),
        values: names
            .iter()
            .map(|name| table::floats_or_nan(&batch, name))
            .collect::<Result<_, _>>()?,
    })
}

/// Adds the features of another set, which has the same rows.
fn add(all: &mut ContractColumns, of: ContractColumns, root: &dyn Fn(&str) -> String) -> Result<(), StageError> {
    if all.values.is_empty() {
        *all = of;
        all.roots.iter_mut().for_each(|name| *name = root(name));
        return Ok(());
    }
    if all.times != of.times || all.expiries != of.expiries || all.strikes != of.strikes || all.calls != of.calls {
        return Err(
            StageError::new("two inputs of features by contract have different rows")
                .hint("make both from the chain at `chain`"),
        );
    }
    all.values.extend(of.values);
    Ok(())
}
