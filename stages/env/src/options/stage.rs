//! The stage kind `env/options`.

use super::action_space::action_space;
use super::build::{
    Chain, Day, Kept, MarketSource, PartSnapshots, PartStore, Piece, Settlements, build_worlds,
    part_snapshots,
};
use super::config::{OptionsConfig, QuoteKind};
use super::contract_inputs::ContractSets;
use super::fills::needed_columns;
use super::hedge::HedgeInstrument;
use super::inputs::{Features, NEEDED_GREEKS, chain_columns, days, greek_columns, is_key, worlds};
use super::listed::Listed;
use super::observation;
use super::strategies::Strategies;
use super::symbol_changes::WorldInput;
use crate::env_artifact;
use crate::hedge;
use crate::rates;
use crate::worlds::Symbols;
use bytes::Bytes;
use cache::{BlobRef, Store};
use datasets::Date;
use datasets::schema::{CONTRACT, SNAPSHOT};
use stages_core::corporate_actions;
use stages_core::dataset::Partition;
use stages_core::{
    ConfigProblem, Context, Given, InputPort, Memo, Outputs, PlanContext, Planned, PortType, Ports, Share,
    StageError, StageKind, Tested, periods, table,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The `family` in the artifact's meta.
pub(crate) const FAMILY: &str = "options";

/// The stage kind `env/options`.
pub struct Options;

/// The elements of an observation, where the columns of all features are known, and none are by contract.
fn planned_names(config: &OptionsConfig, plan: &PlanContext) -> Option<Vec<String>> {
    let sets = plan.inputs.get("features").into_iter().flatten();
    let sets: Vec<&BTreeSet<String>> = sets.map(|set| set.columns.as_ref()).collect::<Option<_>>()?;
    let by_contract = |set: &&BTreeSet<String>| CONTRACT.iter().any(|key| set.contains(key.name));
    if sets.iter().any(by_contract) {
        return None;
    }
    let features: Vec<String> = sets
        .into_iter()
        .flatten()
        .filter(|name| !is_key(name))
        .cloned()
        .collect();
    Some(observation::names(&features, &[], config))
}

impl StageKind for Options {
    type Config = OptionsConfig;
    const NAME: &'static str = "env/options";
    const VERSION: u32 = 7;
    const FEATURES_BY_CONTRACT: &'static [&'static str] = &["features"];
    const ABOUT: &'static str =
        "trading option strategies on an underlying, in one market or many, by look-up in precomputed tables";
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort::list("chain", PortType::OptionChain).doc(
                "quotes, best with implied volatility and forwards; one chain or several, of different \
                underlyings",
            ),
            InputPort::list("greeks", PortType::Greeks).doc("Greeks of the same chains, row by row"),
            InputPort::optional_list("features", PortType::Features).doc(
                "market features; of the underlyings, or of one symbol alone; and features by contract, of \
                the very chain or of a program, for each slot of the slate",
            ),
            InputPort::optional_list("hidden", PortType::Features)
                .doc("features that no policy sees, by which oracles decide"),
            InputPort::optional("rates", PortType::Rates).doc("interest on cash; without it, `rate`"),
            InputPort::optional("actions", PortType::CorporateActions)
                .doc("corporate actions, by which held contracts are adjusted"),
            InputPort::optional("future", PortType::Bars).doc(
                "daily bars of the contracts of a future, with volume, by which `hedge` hedges; without it, \
                the future is at its fair price",
            ),
        ],
        outputs: &[env_artifact::TABLES],
    };

    fn check(&self, config: &OptionsConfig, plan: &PlanContext) -> Planned {
        config.validate()?;
        let needed: &[&str] = match config.fills.quotes {
            QuoteKind::BidAsk => &["bid", "ask", "underlying"],
            QuoteKind::Last => &["last", "underlying"],
        };
        for chain in plan.inputs.get("chain").into_iter().flatten() {
            if config.slate.min_days == 0 && !chain.may_have(SNAPSHOT.name) {
                return Err(config.slate.least_days());
            }
            for column in needed_columns(&config.fills.impact, &config.fills.liquidity) {
                ConfigProblem::new("fills", format!("the chain has no column `{column}`"))
                    .hint("impact and limits of size need it; leave them out for data without it")
                    .when(!chain.may_have(column))?;
            }
            if let Some(column) = needed.iter().find(|column| !chain.may_have(column)) {
                let problem =
                    ConfigProblem::new("fills.quotes", format!("the chain has no column `{column}`"));
                return Err(match *column {
                    "bid" | "ask" => {
                        problem.hint("set fills: { quotes: last, slippage: … } for data without quotes")
                    }
                    _ => problem,
                });
            }
        }
        for greeks in plan.inputs.get("greeks").into_iter().flatten() {
            if let Some(column) = NEEDED_GREEKS.iter().find(|column| !greeks.may_have(column)) {
                return Err(
                    ConfigProblem::new("", format!("the Greeks at `greeks` have no `{column}`"))
                        .hint("add it to `outputs` of the stage that computes them"),
                );
            }
        }
        ConfigProblem::new(
            "hedge.instrument",
            "`future` has prices of a future, by which nothing is hedged",
        )
        .hint("set hedge: { instrument: future }, or leave `future` out")
        .when(
            plan.inputs.get("future").is_some_and(|future| !future.is_empty())
                && config.hedge.instrument != HedgeInstrument::Future,
        )?;
        // Of several chains, each has features of the same names.
        if plan.inputs.get("chain").is_none_or(|chains| chains.len() < 2) {
            env_artifact::check_features(plan, is_key)?;
        }
        let space = action_space(config, &Strategies::new(config)?);
        env_artifact::planned(planned_names(config, plan), Some(&space), config.validation.is_some())
    }

    fn tested(&self, config: &OptionsConfig) -> Option<Tested> {
        let named = match &config.symbols {
            Some(Symbols::Named(names)) => names.as_slice(),
            _ => std::slice::from_ref(&config.symbol),
        };
        Some(Tested {
            ports: &["chain"],
            part: config.split_rules().test_part(named),
        })
    }

    fn run(&self, config: &OptionsConfig, context: &Context) -> Result<Outputs, StageError> {
        let given = context.given();
        let actions = corporate_actions::open(&given, "actions")?;
        let worlds = worlds(config, &given, &actions)?;
        let symbols: Vec<String> = worlds.iter().map(|world| world.symbol.clone()).collect();
        let had = worlds.iter().flat_map(|world| &world.names);
        let had: Vec<String> = had.map(|name| name.symbol.clone()).collect();
        let (features, hidden) = (Features::open(context, "features")?, Features::open(context, "hidden")?);
        let contract_sets = ContractSets::open(context, "features")?;
        let rates = rates::read(&given)?;
        let future = hedge::read(&given)?;
        StageError::new(format!("`future` is of one underlying, and there are {}", worlds.len()))
            .hint("set `symbol` to the one that it is of, or leave `future` out")
            .when(!future.is_empty() && worlds.len() > 1)?;
        let all: usize = worlds.iter().map(|world| world.parts.len()).sum();
        let chain_columns = chain_columns(&config.fills);
        let read = AtomicU64::new(0);
        let mut listings = Vec::with_capacity(worlds.len());
        for world in &worlds {
            let listed = world.listed(|name| Listed::new(config, &name.chain.meta, &name.symbol))?;
            for message in &listed.warnings {
                context.warn(message, None);
            }
            listings.push(listed);
        }
        let mut sources = Vec::with_capacity(worlds.len());
        for (world, listed) in worlds.iter().zip(&listings) {
            let (read, chain_columns) = (&read, &chain_columns);
            let read_part = move |part: usize| -> Result<Vec<Day>, StageError> {
                context.check_cancelled()?;
                let (chain, greeks) = &world.parts[part];
                context.progress(
                    read.fetch_add(1, Ordering::Relaxed).min(all as u64),
                    Some(all as u64),
                    format!("reading {} {}", world.symbol, chain.key.range.from),
                );
                let table = |of: &Partition, columns: &[&str]| {
                    table::columns_from_parquet(context.store.blob(of.blob.blob)?, columns)
                };
                let tables = (table(chain, chain_columns)?, table(greeks, &greek_columns())?);
                let mut days = days(&tables.0, &tables.1).map_err(|err| StageError {
                    message: format!("{}: {}", chain.key.path(), err.message),
                    ..err
                })?;
                let symbol = chain.key.symbol()?;
                for name in world.names.iter().filter(|name| name.symbol == symbol) {
                    name.keep(&mut days, &world.symbol);
                }
                listed.keep(&mut days);
                Ok(days)
            };
            sources.push(MarketSource {
                settlements: settlements(world, &context.store, listed)?,
                features: features.of(context, world, &had)?,
                contract_features: contract_sets.of(context, world, &config.slate)?,
                hidden: hidden.of(context, world, &had)?,
                rates: rates.clone(),
                actions: world.actions(&actions),
                changes: changes(world),
                future: future.clone(),
                multiplier: listed.multiplier,
                left_out: listed.left_out.clone(),
                parts: names(world),
                read: Box::new(read_part),
                symbol: world.symbol.clone(),
            });
        }
        let stores = worlds
            .iter()
            .map(|world| InStore::new(world, Pieces::Computed(context)));
        let stores: Vec<InStore<'_>> = stores.collect();
        let pairs: Vec<_> = sources.iter().zip(&stores).collect();
        let built = build_worlds(&pairs, config)?;
        let mut contracts = serde_json::Map::new();
        for (symbol, listed) in symbols.iter().zip(&listings) {
            contracts.insert(symbol.clone(), serde_json::json!(listed.contracts));
        }
        let mut meta = serde_json::json!({
            "family": FAMILY,
            "format": 4,
            "worlds": symbols,
            "multiplier": listings[0].multiplier,
            "contracts": contracts,
        });
        let mut chains = worlds.iter().flat_map(|world| &world.names);
        if let Some(calendar) = chains.find_map(|name| periods::calendar(&name.chain.meta)) {
            meta["calendar"] = serde_json::json!(calendar);
        }
        env_artifact::store(context, meta, built)
    }

    fn cached_share(&self, config: &OptionsConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let (rates, actions) = (rates::read(given)?, corporate_actions::open(given, "actions")?);
        let worlds = worlds(config, given, &actions)?;
        let (mut cached, mut all) = (0, 0);
        for world in &worlds {
            let listed = world.listed(|name| Listed::new(config, &name.chain.meta, &name.symbol))?;
            let source = MarketSource {
                multiplier: 0.0,
                settlements: settlements(world, given.store, &listed)?,
                left_out: listed.left_out,
                symbol: world.symbol.clone(),
                features: Vec::new(),
                contract_features: None,
                hidden: Vec::new(),
                rates: rates.clone(),
                actions: world.actions(&actions),
                changes: changes(world),
                future: Vec::new(),
                parts: names(world),
                read: Box::new(|_| Err(not_cached())),
            };
            let memo = InStore::new(world, Pieces::Known(given));
            let room = AtomicUsize::new(0);
            let kept = Kept::new(world.parts.len(), &room);
            let snapshots: Vec<PartSnapshots> = (0..world.parts.len())
                .map_while(|part| part_snapshots(&source, config, &memo, &kept, part).ok())
                .collect();
            // It ends at the first part that is not in the memo, with those before it counted.
            if let Ok(chain) = Chain::new(&source, config, snapshots) {
                let _ = chain.histories(&source, config, &memo, &kept);
            }
            cached += memo.histories.into_inner();
            all += world.parts.len() as u64;
        }
        Ok(Some(Share::new("partitions", cached, all)))
    }
}

/// The names of a world's parts.
fn names(world: &WorldInput) -> Vec<String> {
    world.parts.iter().map(|(chain, _)| chain.key.name()).collect()
}

/// The changes of a world's symbol: the earlier symbols, each with the day on which it became the next.
fn changes(world: &WorldInput) -> Vec<(String, Date)> {
    let names = world.names.iter();
    names
        .filter_map(|name| name.until.map(|until| (name.symbol.clone(), until)))
        .collect()
}

/// The settlements of a world's contracts: at instants where its chain has several snapshots a day.
fn settlements(world: &WorldInput, store: &Store, listed: &Listed) -> Result<Settlements, StageError> {
    let mut intraday = world.names.iter().map(|name| name.chain.is_intraday(store));
    let first = intraday.next().unwrap_or(Ok(false))?;
    for other in intraday {
        StageError::new(format!(
            "one chain of {} has several snapshots a day, and another, of a symbol that it had, has one",
            world.symbol
        ))
        .hint("read both with the same `snapshot`")
        .when(other? != first)?;
    }
    match first {
        true => Settlements::of_instants(&world.symbol, &listed.contracts),
        false => Ok(Settlements::default()),
    }
}

/// The memo of a piece of a part: it depends on the part's quotes and Greeks, and on `key`.
fn memo(piece: Piece, (chain, greeks): &(Partition, Partition), key: &[u8]) -> Memo {
    let (name, what) = match piece {
        Piece::Snapshots => ("env/options offer v2", "snapshots"),
        Piece::Histories => ("env/options paths v2", "quote histories"),
        Piece::ContractFeatures => ("env/options contract features v1", "features by contract"),
    };
    let parts: [&[u8]; 3] = [chain.blob.blob.as_bytes(), greeks.blob.blob.as_bytes(), key];
    Memo::new(name, &parts, format!("{} {what}", chain.key.name()))
}

/// The source of pieces that are in the memo, or not.
enum Pieces<'a> {
    /// Computes and stores what is not in the memo.
    Computed(&'a Context),
    /// Looks pieces up in the memo only.
    Known(&'a Given<'a>),
}

/// Stores files in the cache.
struct InStore<'a> {
    parts: &'a [(Partition, Partition)],
    pieces: Pieces<'a>,
    /// The parts whose histories were found or computed.
    histories: AtomicU64,
}

impl<'a> InStore<'a> {
    fn new(world: &'a WorldInput, pieces: Pieces<'a>) -> Self {
        Self {
            parts: &world.parts,
            pieces,
            histories: AtomicU64::new(0),
        }
    }

    fn store(&self) -> &Store {
        match self.pieces {
            Pieces::Computed(context) => &context.store,
            Pieces::Known(given) => given.store,
        }
    }
}

fn not_cached() -> StageError {
    StageError::new("the piece is not cached")
}

impl PartStore for InStore<'_> {
    type File = BlobRef;

    fn piece(
        &self,
        piece: Piece,
        part: usize,
        key: &[u8],
        compute: impl FnOnce() -> Result<Vec<u8>, StageError>,
    ) -> Result<BlobRef, StageError> {
        let memo = memo(piece, &self.parts[part], key);
        let found = match self.pieces {
            Pieces::Computed(context) => context.memo(&memo, compute)?,
            Pieces::Known(given) => given.known(&memo)?.ok_or_else(not_cached)?,
        };
        let histories = u64::from(piece == Piece::Histories);
        self.histories.fetch_add(histories, Ordering::Relaxed);
        Ok(found)
    }

    fn file(&self, bytes: Vec<u8>) -> Result<BlobRef, StageError> {
        Ok(self.store().put(&bytes)?)
    }

    fn bytes(&self, file: &BlobRef) -> Result<Bytes, StageError> {
        Ok(Bytes::from_owner(self.store().blob(file.blob)?))
    }
}
