//! The stage's inputs, read into the panels that tables are built from.

use super::build::{Bar, HedgeBars, PanelSource, SymbolBars, SymbolFeature};
use super::config::StocksConfig;
use super::jumps;
use crate::feature_columns::FeatureColumn;
use crate::table::{SymbolRows, TableSource};
use crate::{hedge, rates};
use arrow_array::RecordBatch;
use datasets::corporate_action::CorporateAction;
use datasets::{Date, SnapshotTime};
use stages_core::dataset::{self, DataSet};
use stages_core::{Context, StageError, corporate_actions, table};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the only world.
pub(super) const ONLY: &str = "market";

/// The worlds that the inputs hold, in the order of their names.
///
/// # Errors
/// When an input cannot be read, a symbol of the configuration is missing, or a feature is of neither the
/// panel nor one symbol beside it.
pub(super) fn panels(config: &StocksConfig, context: &Context) -> Result<Vec<PanelSource>, StageError> {
    let given = context.given();
    let set = DataSet::open(context.input("bars")?)?;
    let mut found = all_bars(context, &set)?;
    let (rates, actions) = (rates::read(&given)?, corporate_actions::open(&given, "actions")?);
    let left = corporate_actions::held(context, &set, actions.clone())?;
    let listed = context.optional("actions").is_some().then_some(actions.as_slice());
    jumps::refuse(config, &set, &found, listed)?;
    let mut hedges = Hedges::take(config, &mut found);
    let bars = chosen(config, found)?;
    let mut worlds: BTreeMap<String, PanelSource> = BTreeMap::new();
    for of_symbol in bars {
        let name = world_of(config, &of_symbol.symbol)?;
        let world = worlds.entry(name.to_owned()).or_insert_with(|| PanelSource {
            name: name.to_owned(),
            rates: rates.clone(),
            ..PanelSource::default()
        });
        world.bars.push(of_symbol);
    }
    let mut worlds: Vec<PanelSource> = worlds.into_values().collect();
    align(config, &mut worlds);
    let future = hedge::read(&given)?;
    for world in &mut worlds {
        world.hedge = match future.is_empty() {
            true => hedges.take_world(&world.name)?.map(HedgeBars::Symbol),
            false => Some(HedgeBars::Future(future.clone())),
        };
    }
    give_actions(&mut worlds, left);
    for input in context.list("features") {
        let set = DataSet::open(input)?;
        context.check_cancelled()?;
        add_features(config, &mut worlds, &set.read_all(&context.store)?)?;
    }
    if let Some(input) = context.optional("hidden") {
        let columns = columns(&DataSet::open(input)?.read_all(&context.store)?)?;
        for world in &mut worlds {
            world.hidden = columns
                .iter()
                .map(|(name, of_column)| panel_feature(name, of_column, &world.bars))
                .collect();
        }
    }
    Ok(worlds)
}

/// Gives each world the actions of its own symbols.
fn give_actions(worlds: &mut [PanelSource], actions: Vec<CorporateAction>) {
    let mut holders: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (i, world) in worlds.iter().enumerate() {
        let hedge = match &world.hedge {
            Some(HedgeBars::Symbol(bars)) => Some(bars),
            Some(HedgeBars::Future(_)) | None => None,
        };
        for bars in world.bars.iter().chain(hedge) {
            holders.entry(bars.symbol.clone()).or_default().push(i);
        }
    }
    for action in actions {
        for &i in holders.get(&action.symbol).into_iter().flatten() {
            worlds[i].actions.push(action.clone());
        }
    }
}

/// A column of features as one of the panel.
fn panel_feature(name: &str, of_column: &BySymbol, bars: &[SymbolBars]) -> SymbolFeature {
    SymbolFeature {
        name: name.to_owned(),
        values: bars
            .iter()
            .map(|bars| of_column.get(&bars.symbol).cloned().unwrap_or_default())
            .collect(),
    }
}

/// Gives worlds of different numbers of symbols those that they lack, without a bar: as if they were never
/// listed there. Data that ends before a listing is like that. Where less than half of a world's names occur
/// in another one too, all are left as they are, since they are of different markets.
fn align(config: &StocksConfig, worlds: &mut [PanelSource]) {
    let separator = config.world_separator.as_str();
    let sizes: BTreeSet<usize> = worlds.iter().map(|world| world.bars.len()).collect();
    if separator.is_empty() || sizes.len() < 2 {
        return;
    }
    let name = |bars: &SymbolBars| bars.symbol.split_once(separator).map(|(_, rest)| rest.to_owned());
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in worlds.iter().flat_map(|world| &world.bars).filter_map(name) {
        *counts.entry(name).or_default() += 1;
    }
    let is_alike = |world: &PanelSource| {
        let shared = world.bars.iter().filter_map(name).filter(|name| counts[name] > 1);
        2 * shared.count() >= world.bars.len()
    };
    if !worlds.iter().all(is_alike) {
        return;
    }
    for world in worlds {
        let mut own: BTreeMap<String, SymbolBars> = std::mem::take(&mut world.bars)
            .into_iter()
            .filter_map(|bars| Some((name(&bars)?, bars)))
            .collect();
        let of_name = |name: &String| {
            own.remove(name).unwrap_or_else(|| SymbolBars {
                symbol: format!("{}{separator}{name}", world.name),
                bars: Vec::new(),
            })
        };
        world.bars = counts.keys().map(of_name).collect();
    }
}

/// The market that a symbol is of.
fn world_of<'a>(config: &StocksConfig, symbol: &'a str) -> Result<&'a str, StageError> {
    match config.world_separator.as_str() {
        "" => Ok(ONLY),
        separator => symbol.split_once(separator).map(|(world, _)| world).ok_or_else(|| {
            StageError::new(format!("the symbol `{symbol}` has no `{separator}`, world_separator")).hint(
                "symbols of several markets are written MARKET:SYMBOL; leave world_separator out for \
                    one market",
            )
        }),
    }
}

/// The bars of instruments that hedge: of one for all worlds, or of one for each.
struct Hedges {
    name: String,
    shared: Option<SymbolBars>,
    by_world: BTreeMap<String, SymbolBars>,
}

impl Hedges {
    /// Takes them from the bars of all symbols.
    fn take(config: &StocksConfig, found: &mut BTreeMap<String, Vec<Bar>>) -> Self {
        let separator = config.world_separator.as_str();
        let name = config.hedge.symbol().unwrap_or_default();
        let mut take = |symbol: &str| {
            let bars = found.remove(symbol)?;
            let symbol = symbol.to_owned();
            Some(SymbolBars { symbol, bars })
        };
        let shared = take(name);
        let by_world = match shared.is_none() && !name.is_empty() && !separator.is_empty() {
            false => BTreeMap::new(),
            true => {
                let is_its =
                    |symbol: &&String| symbol.split_once(separator).is_some_and(|(_, rest)| rest == name);
                let symbols: Vec<String> = found.keys().filter(is_its).cloned().collect();
                let of_world = |symbol: String| {
                    let world = symbol.split_once(separator)?.0.to_owned();
                    let bars = found.remove(&symbol)?;
                    Some((world, SymbolBars { symbol, bars }))
                };
                symbols.into_iter().filter_map(of_world).collect()
            }
        };
        Self {
            name: name.to_owned(),
            shared,
            by_world,
        }
    }

    /// The bars of a world; none where no symbol hedges.
    fn take_world(&mut self, world: &str) -> Result<Option<SymbolBars>, StageError> {
        match self.shared.clone().or_else(|| self.by_world.remove(world)) {
            None if !self.name.is_empty() => Err(StageError::new(format!(
                "the bars hold no `{}` of `{world}`, which hedges",
                self.name
            ))
            .hint("name one of their symbols at hedge.instrument")),
            bars => Ok(bars),
        }
    }
}

/// The bars of all symbols.
fn all_bars(context: &Context, set: &DataSet) -> Result<BTreeMap<String, Vec<Bar>>, StageError> {
    let mut found: BTreeMap<String, Vec<Bar>> = BTreeMap::new();
    for batch in set.read_all(&context.store)? {
        let dates = table::dates(&batch, "date")?;
        let close = table::floats_or_nan(&batch, "close")?;
        let optional = |name| table::floats_if_any(&batch, name);
        let (open, adjusted, volume) = (optional("open")?, optional("adjusted_close")?, optional("volume")?);
        for (symbol, rows) in dataset::symbol_rows(&batch)? {
            let bar = |i: usize| Bar {
                date: dates[i],
                open: open[i],
                close: close[i],
                adjusted_close: adjusted[i],
                volume: volume[i],
            };
            found.entry(symbol.to_owned()).or_default().extend(rows.map(bar));
        }
    }
    StageError::new("the bars are empty").when(found.is_empty())?;
    // The partitions of a symbol are in the order of their dates only where they hold that symbol alone.
    found.values_mut().for_each(|bars| bars.sort_by_key(|bar| bar.date));
    Ok(found)
}

/// The bars of the configured symbols: in the order of the configuration, or else of their names.
fn chosen(
    config: &StocksConfig,
    mut found: BTreeMap<String, Vec<Bar>>,
) -> Result<Vec<SymbolBars>, StageError> {
    if config.symbols.is_empty() {
        return Ok(found
            .into_iter()
            .map(|(symbol, bars)| SymbolBars { symbol, bars })
            .collect());
    }
    let all: Vec<String> = found.keys().cloned().collect();
    config
        .symbols
        .iter()
        .map(|symbol| match found.remove(symbol) {
            Some(bars) => Ok(SymbolBars {
                symbol: symbol.clone(),
                bars,
            }),
            None => Err(StageError::new(format!("the bars hold no `{symbol}`"))
                .hint(format!("they hold {}; change `symbols`", all.join(", ")))),
        })
        .collect()
}

/// Values of each symbol by date, ascending.
type BySymbol = BTreeMap<String, Vec<(Date, f64)>>;

/// The columns of a data set of features, by name in the order of its schema.
fn columns(batches: &[RecordBatch]) -> Result<Vec<(String, BySymbol)>, StageError> {
    let read = TableSource::by_symbol(batches)?;
    StageError::new("the features have several values a day, and bars one")
        .hint("make them of daily bars")
        .when(read.symbols.iter().any(SymbolRows::has_instants))?;
    let column = |(i, name): (usize, String)| {
        let values = |rows: &SymbolRows| {
            let dates = rows.times.iter().map(|time| time.date);
            (rows.symbol.clone(), dates.zip(rows.values[i].iter().copied()).collect())
        };
        (name, read.symbols.iter().map(values).collect())
    };
    Ok(read.columns.into_iter().enumerate().map(column).collect())
}

/// Adds a data set of features to each world: by symbol where it holds symbols of the panel, else by date, of
/// the world's only other symbol (one that begins with its name and the separator, or is its name) or of the
/// only symbol that there is.
fn add_features(
    config: &StocksConfig,
    worlds: &mut [PanelSource],
    batches: &[RecordBatch],
) -> Result<(), StageError> {
    let columns = columns(batches)?;
    let held: BTreeSet<&String> = columns.iter().flat_map(|(_, of_column)| of_column.keys()).collect();
    for world in worlds.iter_mut() {
        let is_panel = world.bars.iter().any(|bars| held.contains(&bars.symbol));
        let of_world = |symbol: &&&String| {
            let separator = config.world_separator.as_str();
            !separator.is_empty()
                && (***symbol == world.name
                    || symbol
                        .split_once(separator)
                        .is_some_and(|(market, _)| market == world.name))
        };
        // Those that begin with a name follow it.
        let own = held
            .range::<&String, _>(&world.name..)
            .take_while(|symbol| symbol.starts_with(&world.name));
        let own: Vec<&&String> = own.filter(of_world).collect();
        let by_date = match (is_panel, own.as_slice(), held.len()) {
            (true, ..) => None,
            (false, [only], _) => Some((**only).clone()),
            (false, [], 1) => held.iter().next().map(|symbol| (*symbol).clone()),
            _ => {
                let all: Vec<&str> = held.iter().map(|symbol| symbol.as_str()).take(8).collect();
                return Err(StageError::new(format!(
                    "features of {} are of no symbol of `{}`",
                    all.join(", "),
                    world.name
                ))
                .hint(
                    "give features of the bars' symbols, or by date under one symbol alone, such as an index",
                ));
            }
        };
        for (name, of_column) in &columns {
            let known = world.features.iter().any(|feature| feature.name == *name)
                || world.symbol_features.iter().any(|feature| feature.name == *name);
            StageError::new(format!("the feature `{name}` comes from two inputs"))
                .hint("leave it out of one of the feature stages")
                .when(known)?;
            match &by_date {
                Some(symbol) => world.features.push(FeatureColumn {
                    name: name.clone(),
                    values: of_column
                        .get(symbol)
                        .into_iter()
                        .flatten()
                        .map(|&(date, value)| (SnapshotTime::of_day(date), value))
                        .collect(),
                }),
                None => {
                    let feature = panel_feature(name, of_column, &world.bars);
                    world.symbol_features.push(feature);
                }
            }
        }
    }
    Ok(())
}
