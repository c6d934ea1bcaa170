//! Reads the stage's inputs into the market data from which tables are built.

use super::build::{Day, Quote};
use super::config::{Fills, OptionsConfig, QuoteKind};
use super::fills::needs_depths;
use super::symbol_changes::{Name, WorldInput, joined};
use crate::env_artifact;
use crate::feature_columns::FeatureColumn;
use crate::worlds::Symbols;
use arrow_array::{Array as _, Float64Array, RecordBatch};
use arrow_schema::DataType;
use datasets::Date;
use datasets::corporate_action::CorporateAction;
use datasets::schema::{CONTRACT, SNAPSHOT, TRADABLE};
use stages_core::dataset::{DataSet, Partition};
use stages_core::features::is_by_contract;
use stages_core::{Context, Given, StageError, table};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The columns of Greeks that an environment reads.
pub(super) const NEEDED_GREEKS: [&str; 4] = ["delta", "gamma", "vega", "theta"];

/// Returns whether a column of features is a key rather than a feature.
pub(super) fn is_key(column: &str) -> bool {
    env_artifact::is_key(column) || CONTRACT.iter().any(|key| key.name == column)
}

/// The worlds that the configuration names, in the order of the chains and of the symbols in them. Symbols
/// that became others by `actions` are one world with them.
pub(super) fn worlds(
    config: &OptionsConfig,
    given: &Given<'_>,
    actions: &[CorporateAction],
) -> Result<Vec<WorldInput>, StageError> {
    let open = |port: &str| -> Result<Vec<DataSet>, StageError> {
        given.list(port).iter().map(DataSet::open).collect()
    };
    let (chains, greeks) = (open("chain")?, open("greeks")?);
    let greeks: BTreeMap<String, &Partition> = greeks
        .iter()
        .flat_map(|set| &set.partitions)
        .map(|partition| (partition.key.path(), partition))
        .collect();
    let mut worlds: Vec<WorldInput> = Vec::new();
    for chain in chains {
        let symbols = chain.partitions.iter().map(|partition| partition.key.symbol());
        let symbols: BTreeSet<String> = symbols
            .map(|symbol| symbol.map(str::to_owned))
            .collect::<Result<_, StageError>>()?;
        let chain = Arc::new(chain);
        for symbol in symbols {
            StageError::new(format!("two chains hold the underlying `{symbol}`"))
                .hint("the worlds of an environment have different symbols")
                .when(worlds.iter().any(|world| world.symbol == symbol))?;
            let parts = pair(&chain, &greeks, &symbol)?;
            let name = Name {
                symbol: symbol.clone(),
                chain: Arc::clone(&chain),
                from: None,
                until: None,
            };
            worlds.push(WorldInput {
                symbol,
                parts,
                names: vec![name],
            });
        }
    }
    chosen(config, joined(worlds, actions)?)
}

/// The worlds that are configured: the only one, one by its symbol, several, or all.
fn chosen(config: &OptionsConfig, mut worlds: Vec<WorldInput>) -> Result<Vec<WorldInput>, StageError> {
    let all = || {
        worlds
            .iter()
            .map(|world| world.symbol.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let wanted: &[String] = match &config.symbols {
        _ if worlds.is_empty() => return Err(StageError::new("the chain is empty")),
        Some(Symbols::All(_)) => return Ok(worlds),
        Some(Symbols::Named(symbols)) => symbols,
        None if config.symbol.is_empty() && worlds.len() == 1 => return Ok(worlds),
        None if config.symbol.is_empty() => {
            return Err(
                StageError::new(format!("the chain holds several underlyings: {}", all()))
                    .hint("set `symbol` to the one to trade, or `symbols: all` to take each as a world"),
            );
        }
        None => std::slice::from_ref(&config.symbol),
    };
    if let Some(unknown) = wanted
        .iter()
        .find(|symbol| !worlds.iter().any(|world| world.has_symbol(symbol)))
    {
        return Err(
            StageError::new(format!("the chain holds no `{unknown}`; it holds {}", all()))
                .hint("set `symbol` to the one to trade"),
        );
    }
    worlds.retain(|world| wanted.iter().any(|symbol| world.has_symbol(symbol)));
    Ok(worlds)
}

impl WorldInput {
    /// Returns whether the world has or had the symbol.
    pub(super) fn has_symbol(&self, symbol: &str) -> bool {
        self.names.iter().any(|name| name.symbol == symbol)
    }
}

/// Pairs the partitions of chain and Greeks.
fn pair(
    chain: &DataSet,
    greeks: &BTreeMap<String, &Partition>,
    symbol: &str,
) -> Result<Vec<(Partition, Partition)>, StageError> {
    chain
        .partitions
        .iter()
        .filter(|partition| partition.key.symbol().is_ok_and(|of| of == symbol))
        .map(|partition| {
            let greeks = greeks.get(&partition.key.path()).ok_or_else(|| {
                StageError::new(format!("the Greeks have no partition {}", partition.key.path()))
                    .hint("`greeks` must come from the very chain at `chain`")
            })?;
            Ok((partition.clone(), (*greeks).clone()))
        })
        .collect()
}

/// The columns that identify a row of a chain, and of its Greeks.
const ROW: [&str; 5] = ["date", SNAPSHOT.name, "expiry", "strike", "call"];

/// The columns of a chain that an environment with these fills reads, where the chain has them.
pub(super) fn chain_columns(fills: &Fills) -> Vec<&'static str> {
    let mut columns = ROW.to_vec();
    columns.extend([
        "root",
        "underlying",
        TRADABLE.name,
        "implied_volatility",
        "forward",
        "discount_factor",
    ]);
    match fills.quotes {
        QuoteKind::BidAsk => columns.extend(["bid", "ask"]),
        QuoteKind::Last => columns.push("last"),
    }
    if needs_depths(&fills.impact, &fills.liquidity) {
        columns.extend(["volume", "open_interest"]);
    }
    if fills.liquidity.quoted.is_some() {
        columns.extend(["bid_size", "ask_size"]);
    }
    columns
}

/// The columns of Greeks that an environment reads.
pub(super) fn greek_columns() -> Vec<&'static str> {
    ROW.into_iter().chain(NEEDED_GREEKS).collect()
}

/// A column of floats; NaN where there is no value, or no such column.
struct Floats<'a>(Option<&'a Float64Array>);

impl<'a> Floats<'a> {
    fn of(batch: &'a RecordBatch, name: &str) -> Result<Self, StageError> {
        table::floats(batch, name).map(|column| Self(Some(column)))
    }

    /// The column of a chain, which may lack columns that the environment does not require.
    fn if_any(batch: &'a RecordBatch, name: &str) -> Result<Self, StageError> {
        match batch.column_by_name(name) {
            Some(_) => Self::of(batch, name),
            None => Ok(Self(None)),
        }
    }

    #[inline]
    fn at(&self, i: usize) -> f64 {
        self.0
            .filter(|column| column.is_valid(i))
            .map_or(f64::NAN, |column| column.value(i))
    }
}

/// True if two tables have the same rows of a chain: the same columns, or of other types the same values.
fn have_same_rows(chain: &RecordBatch, greeks: &RecordBatch) -> Result<bool, StageError> {
    let is_equal = |key: &&str| chain.column_by_name(key) == greeks.column_by_name(key);
    Ok(ROW.iter().all(is_equal)
        || (table::dates(chain, "expiry")? == table::dates(greeks, "expiry")?
            && table::snapshot_times(chain)? == table::snapshot_times(greeks)?
            && table::floats_or_nan(chain, "strike")? == table::floats_or_nan(greeks, "strike")?
            && table::bools(chain, "call")? == table::bools(greeks, "call")?))
}

/// The snapshots in a partition.
pub(super) fn days(chain: &RecordBatch, greeks: &RecordBatch) -> Result<Vec<Day>, StageError> {
    let n = chain.num_rows();
    StageError::new("the rows of the Greeks are not those of the chain")
        .hint("`greeks` must come from the very chain at `chain`")
        .when(greeks.num_rows() != n || !have_same_rows(chain, greeks)?)?;
    let optional = |name| Floats::if_any(chain, name);
    let (times, expiries) = (table::snapshot_times(chain)?, table::dates(chain, "expiry")?);
    let (roots, calls) = (table::texts(chain, "root")?, table::bools(chain, "call")?);
    let strikes = Floats::of(chain, "strike")?;
    let (bid, ask, last) = (optional("bid")?, optional("ask")?, optional("last")?);
    let underlying = optional("underlying")?;
    let tradable = match chain.column_by_name(TRADABLE.name) {
        Some(_) => Some(table::bools(chain, TRADABLE.name)?),
        None => None,
    };
    let implied_volatility = optional("implied_volatility")?;
    let (forward, discount) = (optional("forward")?, optional("discount_factor")?);
    let (volume, open_interest) = (optional("volume")?, optional("open_interest")?);
    let (bid_size, ask_size) = (optional("bid_size")?, optional("ask_size")?);
    let [delta, gamma, vega, theta] = NEEDED_GREEKS.map(|name| Floats::of(greeks, name));
    let (delta, gamma, vega, theta) = (delta?, gamma?, vega?, theta?);

    let mut days: Vec<Day> = Vec::new();
    let mut start = 0;
    for rows in times.chunk_by(|a, b| a == b) {
        let mut day = Day {
            date: rows[0].date,
            instant: rows[0].instant,
            underlying: f64::NAN,
            roots: Vec::new(),
            quotes: Vec::with_capacity(rows.len()),
        };
        for i in start..start + rows.len() {
            if day.underlying.is_nan() && underlying.at(i) > 0.0 {
                day.underlying = underlying.at(i);
            }
            let root = match day.roots.iter().position(|root| root == roots.value(i)) {
                Some(root) => root,
                None => {
                    day.roots.push(roots.value(i).to_owned());
                    day.roots.len() - 1
                }
            };
            day.quotes.push(Quote {
                expiry: expiries[i].0,
                root: u16::try_from(root)
                    .map_err(|_| StageError::new("more than 65,536 option classes on one day"))?,
                call: calls.value(i),
                strike: strikes.at(i),
                bid: bid.at(i),
                ask: ask.at(i),
                last: last.at(i),
                implied_volatility: implied_volatility.at(i),
                delta: delta.at(i),
                gamma: gamma.at(i),
                vega: vega.at(i),
                theta: theta.at(i),
                forward: forward.at(i),
                discount: discount.at(i),
                volume: volume.at(i),
                open_interest: open_interest.at(i),
                bid_size: bid_size.at(i),
                ask_size: ask_size.at(i),
                tradable: tradable.is_none_or(|tradable| tradable.value(i)),
            });
        }
        start += rows.len();
        days.push(day);
    }
    Ok(days)
}

/// The features by symbol at a port, with the symbols that each input holds.
pub(super) struct Features {
    sets: Vec<(DataSet, Vec<String>)>,
}

impl Features {
    /// Opens the features at `port`.
    pub(super) fn open(context: &Context, port: &str) -> Result<Self, StageError> {
        let by_symbol = context
            .list(port)
            .iter()
            .filter(|input| !is_by_contract(&input.artifact));
        let sets = by_symbol.map(|input| {
            let set = DataSet::open(input)?;
            let symbols = set.symbols(&context.store)?;
            Ok((set, symbols))
        });
        Ok(Self {
            sets: sets.collect::<Result<_, StageError>>()?,
        })
    }

    /// The columns for a world: its own, under each symbol that it had, or those of an input with one symbol
    /// that is none of `symbols`, those of all worlds.
    pub(super) fn of(
        &self,
        context: &Context,
        world: &WorldInput,
        symbols: &[String],
    ) -> Result<Vec<FeatureColumn>, StageError> {
        let mut columns: Vec<FeatureColumn> = Vec::new();
        for (set, theirs) in &self.sets {
            let mut found: Vec<FeatureColumn> = Vec::new();
            let is_its = theirs.iter().any(|symbol| world.has_symbol(symbol));
            match theirs.as_slice() {
                _ if is_its => {
                    for (i, name) in world.names.iter().enumerate() {
                        // A history under the last symbol alone is all of it.
                        let earlier = world.names[..i].iter().any(|earlier| theirs.contains(&earlier.symbol));
                        let is_of = |date| {
                            name.until.is_none_or(|until| date < until)
                                && (!earlier || name.from.is_none_or(|from| from <= date))
                        };
                        read_columns(context, set, &name.symbol, is_of, &mut found)?;
                    }
                }
                all if all.iter().any(|symbol| symbols.contains(symbol)) => continue,
                [only] => read_columns(context, set, only, |_| true, &mut found)?,
                all => {
                    return Err(StageError::new(format!(
                        "the features hold {}, but not `{}`",
                        all.join(", "),
                        world.symbol
                    ))
                    .hint("give features of the underlying, or of one symbol alone"));
                }
            }
            for column in found {
                StageError::new(format!("the feature `{}` comes from two inputs", column.name))
                    .hint("leave it out of one of the feature stages")
                    .when(columns.iter().any(|other| other.name == column.name))?;
                columns.push(column);
            }
        }
        Ok(columns)
    }
}

/// Appends the values of a symbol on the days `is_of` to its columns.
fn read_columns(
    context: &Context,
    set: &DataSet,
    symbol: &str,
    is_of: impl Fn(Date) -> bool,
    columns: &mut Vec<FeatureColumn>,
) -> Result<(), StageError> {
    let Some(batch) = set.read_symbol(&context.store, symbol)? else {
        return Ok(());
    };
    let times = table::snapshot_times(&batch)?;
    for field in batch.schema().fields() {
        if is_key(field.name()) || *field.data_type() != DataType::Float64 {
            continue;
        }
        let values = table::floats_or_nan(&batch, field.name())?;
        let values = times.iter().copied().zip(values).filter(|(time, _)| is_of(time.date));
        match columns.iter_mut().find(|column| column.name == *field.name()) {
            Some(column) => column.values.extend(values),
            None => columns.push(FeatureColumn {
                name: field.name().clone(),
                values: values.collect(),
            }),
        }
    }
    Ok(())
}
