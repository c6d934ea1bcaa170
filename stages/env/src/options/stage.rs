//! The stage kind `env/options`.

use super::build::{Chain, Day, MarketSource, PartSnapshots, PartStore, Piece, Settlements, build, part_snapshots};
use super::config::{OptionsConfig, QuoteKind};
use super::inputs::{NEEDED_GREEKS, days, features, is_key, parts, rates};
use super::listed::Listed;
use bytes::Bytes;
use cache::{ArtifactBuilder, BlobRef, Store};
use datasets::schema::SNAPSHOT;
use stages_core::corporate_actions;
use stages_core::dataset::{DataSet, Partition};
use stages_core::{
    ConfigProblem, Context, Given, InputPort, Memo, OutputPort, Outputs, PlanContext, PortType, Ports, Provided, Share,
    StageError, StageEvent, StageKind,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// The `family` in the artifact's meta.
pub(crate) const FAMILY: &str = "options";

/// The stage kind `env/options`.
pub struct Options;

const fn input(name: &'static str, ty: PortType, optional: bool, list: bool, doc: &'static str) -> InputPort {
    InputPort {
        name,
        ty,
        optional,
        list,
        doc,
    }
}

impl StageKind for Options {
    type Config = OptionsConfig;
    const NAME: &'static str = "env/options";
    const VERSION: u32 = 3;
    const ABOUT: &'static str = "trading option strategies on one underlying, by look-up in precomputed tables";
    const PORTS: Ports = Ports {
        inputs: &[
            input(
                "chain",
                PortType::OptionChain,
                false,
                false,
                "quotes, best with implied volatility and forwards",
            ),
            input(
                "greeks",
                PortType::Greeks,
                false,
                false,
                "Greeks of the same chain, row by row",
            ),
            input(
                "features",
                PortType::Features,
                true,
                true,
                "market features; of the underlying, or of one symbol alone",
            ),
            input(
                "rates",
                PortType::Rates,
                true,
                false,
                "interest on cash; without it, `rate`",
            ),
            input(
                "actions",
                PortType::CorporateActions,
                true,
                false,
                "corporate actions, by which held contracts are adjusted",
            ),
        ],
        outputs: &[OutputPort {
            name: "env",
            ty: PortType::Env,
            doc: "the environment's tables and specification",
        }],
    };

    fn check(&self, config: &OptionsConfig, plan: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.validate()?;
        let needed: &[&str] = match config.fills.quotes {
            QuoteKind::BidAsk => &["bid", "ask", "underlying"],
            QuoteKind::Last => &["last", "underlying"],
        };
        for chain in plan.inputs.get("chain").into_iter().flatten() {
            if config.slate.min_days == 0 && !chain.may_have(SNAPSHOT.name) {
                return Err(config.slate.least_days());
            }
            if let Some(column) = needed.iter().find(|column| !chain.may_have(column)) {
                let problem = ConfigProblem::new("fills.quotes", format!("the chain has no column `{column}`"));
                return Err(match *column {
                    "bid" | "ask" => problem.hint("set fills: { quotes: last, slippage: … } for data without quotes"),
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
        let mut seen = BTreeSet::new();
        for features in plan.inputs.get("features").into_iter().flatten() {
            for column in features.columns.iter().flatten().filter(|name| !is_key(name)) {
                if !seen.insert(column) {
                    return Err(
                        ConfigProblem::new("", format!("the feature `{column}` comes from two inputs"))
                            .hint("leave it out of one of the feature stages"),
                    );
                }
            }
        }
        Ok([("env".to_owned(), Provided::unknown(PortType::Env))].into())
    }

    fn run(&self, config: &OptionsConfig, context: &Context) -> Result<Outputs, StageError> {
        let given = context.given();
        let chain = DataSet::open(context.input("chain")?)?;
        let (symbol, parts) = parts(config, &given, &chain)?;
        let listed = Listed::new(config, &chain.meta, &symbol)?;
        for message in &listed.warnings {
            context.events.emit(StageEvent::Warning {
                message: message.clone(),
                hint: None,
            });
        }
        let multiplier = listed.multiplier;
        let read = |part: usize| -> Result<Vec<Day>, StageError> {
            context.check_cancelled()?;
            let (chain, greeks) = &parts[part];
            context.progress(
                part as u64,
                Some(parts.len() as u64),
                format!("reading {symbol} {}", chain.key.range.from),
            );
            let mut days =
                days(&chain.read(&context.store)?, &greeks.read(&context.store)?).map_err(|err| StageError {
                    message: format!("{}: {}", chain.key.path(), err.message),
                    ..err
                })?;
            listed.keep(&mut days);
            Ok(days)
        };
        let source = MarketSource {
            settlements: settlements(&chain, &context.store, &symbol, &listed)?,
            features: features(context, &symbol)?,
            rates: rates(&given)?,
            actions: corporate_actions::open(&given, "actions")?,
            multiplier,
            left_out: listed.left_out.clone(),
            parts: parts.iter().map(|(chain, _)| chain.key.name()).collect(),
            read: Box::new(read),
            symbol: symbol.clone(),
        };
        let built = build(&source, config, &InStore { parts: &parts, context })?;
        for note in built.notes {
            context.log(note);
        }
        for message in built.warnings {
            context.events.emit(StageEvent::Warning { message, hint: None });
        }
        let meta = serde_json::json!({
            "family": FAMILY,
            "format": 3,
            "symbol": symbol,
            "multiplier": multiplier,
            "contracts": listed.contracts,
        });
        let mut builder = ArtifactBuilder::new(&context.store, PortType::Env.name(), meta);
        for (path, blob) in built.files {
            builder.blob(&path, blob);
        }
        Ok([("env".to_owned(), builder.finish()?)].into())
    }

    fn cached_share(&self, config: &OptionsConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let chain = DataSet::open(given.input("chain")?)?;
        let (symbol, parts) = parts(config, given, &chain)?;
        let listed = Listed::new(config, &chain.meta, &symbol)?;
        let source = MarketSource {
            multiplier: 0.0,
            settlements: settlements(&chain, given.store, &symbol, &listed)?,
            left_out: listed.left_out,
            symbol,
            features: Vec::new(),
            rates: rates(given)?,
            actions: corporate_actions::open(given, "actions")?,
            parts: parts.iter().map(|(chain, _)| chain.key.name()).collect(),
            read: Box::new(|_| Err(not_cached())),
        };
        let memo = MemoOnly {
            parts: &parts,
            given,
            histories: AtomicU64::new(0),
        };
        let snapshots: Vec<PartSnapshots> = (0..parts.len())
            .map_while(|part| part_snapshots(&source, config, &memo, part).ok())
            .collect();
        // It ends at the first part that is not in the memo, with those before it counted.
        if let Ok(chain) = Chain::new(&source, config, snapshots) {
            let _ = chain.histories(&source, config, &memo);
        }
        let cached = memo.histories.into_inner();
        Ok(Some(Share::new("partitions", cached, parts.len() as u64)))
    }
}

/// The settlements of a chain's contracts: at instants where it has several snapshots a day.
fn settlements(chain: &DataSet, store: &Store, symbol: &str, listed: &Listed) -> Result<Settlements, StageError> {
    match chain.is_intraday(store)? {
        true => Settlements::of_instants(symbol, &listed.contracts),
        false => Ok(Settlements::default()),
    }
}

/// The memo of a piece of a part: it depends on the part's quotes and Greeks, and on `key`.
fn memo(piece: Piece, (chain, greeks): &(Partition, Partition), key: &[u8]) -> Memo {
    let (name, what) = match piece {
        Piece::Snapshots => ("env/options offer v2", "snapshots"),
        Piece::Histories => ("env/options paths v2", "quote histories"),
    };
    let parts: [&[u8]; 3] = [chain.blob.blob.as_bytes(), greeks.blob.blob.as_bytes(), key];
    Memo::new(name, &parts, format!("{} {what}", chain.key.name()))
}

/// Stores files in the cache.
struct InStore<'a> {
    parts: &'a [(Partition, Partition)],
    context: &'a Context,
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
        self.context.memo(&memo(piece, &self.parts[part], key), compute)
    }

    fn file(&self, bytes: Vec<u8>) -> Result<BlobRef, StageError> {
        Ok(self.context.store.put(&bytes)?)
    }

    fn bytes(&self, file: &BlobRef) -> Result<Bytes, StageError> {
        Ok(Bytes::from_owner(self.context.store.blob(file.blob)?))
    }
}

/// Finds pieces in the memo alone, and counts the parts whose histories are there.
struct MemoOnly<'a> {
    parts: &'a [(Partition, Partition)],
    given: &'a Given<'a>,
    histories: AtomicU64,
}

fn not_cached() -> StageError {
    StageError::new("the piece is not cached")
}

impl PartStore for MemoOnly<'_> {
    type File = BlobRef;

    fn piece(
        &self,
        piece: Piece,
        part: usize,
        key: &[u8],
        _: impl FnOnce() -> Result<Vec<u8>, StageError>,
    ) -> Result<BlobRef, StageError> {
        let found = self
            .given
            .known(&memo(piece, &self.parts[part], key))?
            .ok_or_else(not_cached)?;
        self.histories
            .fetch_add(u64::from(piece == Piece::Histories), Ordering::Relaxed);
        Ok(found)
    }

    fn file(&self, _: Vec<u8>) -> Result<BlobRef, StageError> {
        Err(not_cached())
    }

    fn bytes(&self, file: &BlobRef) -> Result<Bytes, StageError> {
        Ok(Bytes::from_owner(self.given.store.blob(file.blob)?))
    }
}
