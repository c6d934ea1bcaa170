//! The stage kind `env/options`.

use super::build::{Chain, Day, FeatureColumn, Keep, MarketSource, Piece, Quote, build, offer};
use super::config::{OptionsConfig, QuoteKind};
use super::offer::Offer;
use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use bytes::Bytes;
use cache::{ArtifactBuilder, BlobRef};
use datasets::Date;
use stages_core::dataset::{DataSet, Partition};
use stages_core::{
    ConfigProblem, Context, Given, InputPort, Memo, OutputPort, Outputs, PlanContext, PortType, Ports, Provided, Share,
    StageError, StageKind, table,
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
    const VERSION: u32 = 2;
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
            if let Some(column) = needed.iter().find(|column| !chain.may_have(column)) {
                let problem = ConfigProblem::new("fills.quotes", format!("the chain will have no `{column}`"));
                return Err(match *column {
                    "bid" | "ask" => problem.hint("set fills: { quotes: last, slippage: … } for data without quotes"),
                    _ => problem,
                });
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
        let multiplier = match config.multiplier {
            0.0 => chain.meta["multiplier"].as_f64().filter(|&m| m > 0.0).unwrap_or(100.0),
            given => given,
        };
        let read = |part: usize| -> Result<Vec<Day>, StageError> {
            context.check_cancelled()?;
            let (chain, greeks) = &parts[part];
            context.progress(
                part as u64,
                Some(parts.len() as u64),
                format!("reading {symbol} {}", chain.key.range.from),
            );
            days(&chain.read(&context.store)?, &greeks.read(&context.store)?).map_err(|err| StageError {
                message: format!("{}: {}", chain.key.path(), err.message),
                ..err
            })
        };
        let source = MarketSource {
            features: features(context, &symbol)?,
            rates: rates(&given)?,
            multiplier,
            parts: parts.iter().map(|(chain, _)| chain.key.name()).collect(),
            read: Box::new(read),
            symbol: symbol.clone(),
        };
        let built = build(&source, config, &InStore { parts: &parts, context })?;
        for note in built.notes {
            context.log(note);
        }
        let meta = serde_json::json!({ "family": FAMILY, "format": 2, "symbol": symbol, "multiplier": multiplier });
        let mut builder = ArtifactBuilder::new(&context.store, PortType::Env.name(), meta);
        for (path, blob) in built.files {
            builder.blob(&path, blob);
        }
        Ok([("env".to_owned(), builder.finish()?)].into())
    }

    fn cached_share(&self, config: &OptionsConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let chain = DataSet::open(given.input("chain")?)?;
        let (symbol, parts) = parts(config, given, &chain)?;
        let source = MarketSource {
            symbol,
            multiplier: 0.0,
            features: Vec::new(),
            rates: rates(given)?,
            parts: parts.iter().map(|(chain, _)| chain.key.name()).collect(),
            read: Box::new(|_| Err(unknown())),
        };
        let look = Look {
            parts: &parts,
            given,
            paths: AtomicU64::new(0),
        };
        let offers: Vec<Offer> = (0..parts.len())
            .map_while(|part| offer(&source, config, &look, part).ok())
            .collect();
        // It ends at the first part that is not known, with those before it counted.
        let _ = Chain::new(&source, config, offers).paths(&source, config, &look);
        let cached = look.paths.into_inner();
        Ok(Some(Share::new("partitions", cached, parts.len() as u64)))
    }
}

/// The symbol, and its partitions of chain and Greeks.
fn parts(
    config: &OptionsConfig,
    given: &Given<'_>,
    chain: &DataSet,
) -> Result<(String, Vec<(Partition, Partition)>), StageError> {
    let greeks = DataSet::open(given.input("greeks")?)?;
    let symbol = symbol(&config.symbol, chain)?;
    let parts = pair(chain, &greeks, &symbol)?;
    Ok((symbol, parts))
}

/// A piece of a part: it depends on the part's quotes and Greeks, and on `key`.
fn memo(piece: Piece, (chain, greeks): &(Partition, Partition), key: &[u8]) -> Memo {
    let (name, what) = match piece {
        Piece::Offer => ("env/options offer v1", "offer"),
        Piece::Paths => ("env/options paths v1", "paths"),
    };
    let parts: [&[u8]; 3] = [chain.blob.blob.as_bytes(), greeks.blob.blob.as_bytes(), key];
    Memo::new(name, &parts, format!("{} {what}", chain.key.name()))
}

/// Keeps files in the store.
struct InStore<'a> {
    parts: &'a [(Partition, Partition)],
    context: &'a Context,
}

impl Keep for InStore<'_> {
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

/// Looks for what is kept in the store, and counts the parts of which the paths are.
struct Look<'a> {
    parts: &'a [(Partition, Partition)],
    given: &'a Given<'a>,
    paths: AtomicU64,
}

fn unknown() -> StageError {
    StageError::new("not known yet")
}

impl Keep for Look<'_> {
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
            .ok_or_else(unknown)?;
        self.paths
            .fetch_add(u64::from(piece == Piece::Paths), Ordering::Relaxed);
        Ok(found)
    }

    fn file(&self, _: Vec<u8>) -> Result<BlobRef, StageError> {
        Err(unknown())
    }

    fn bytes(&self, file: &BlobRef) -> Result<Bytes, StageError> {
        Ok(Bytes::from_owner(self.given.store.blob(file.blob)?))
    }
}

fn is_key(column: &str) -> bool {
    matches!(column, "symbol" | "date")
}

/// The symbol asked for, or the only one there is.
fn symbol(wanted: &str, chain: &DataSet) -> Result<String, StageError> {
    let symbols = chain.partitions.iter().map(|partition| partition.key.symbol());
    let symbols: BTreeSet<&str> = symbols.collect::<Result<_, StageError>>()?;
    let symbols: Vec<&str> = symbols.into_iter().collect();
    match symbols.as_slice() {
        [] => Err(StageError::new("the chain is empty")),
        [only] if wanted.is_empty() => Ok((*only).to_owned()),
        all if all.contains(&wanted) => Ok(wanted.to_owned()),
        all => Err(StageError::new(if wanted.is_empty() {
            format!("the chain holds several underlyings: {}", all.join(", "))
        } else {
            format!("the chain holds no `{wanted}`; it holds {}", all.join(", "))
        })
        .hint("set `symbol` to the one to trade")),
    }
}

/// The partitions of chain and Greeks, side by side.
fn pair(chain: &DataSet, greeks: &DataSet, symbol: &str) -> Result<Vec<(Partition, Partition)>, StageError> {
    let by_path: BTreeMap<String, &Partition> = greeks.partitions.iter().map(|p| (p.key.path(), p)).collect();
    chain
        .partitions
        .iter()
        .filter(|partition| partition.key.symbol().is_ok_and(|of| of == symbol))
        .map(|partition| {
            let greeks = by_path.get(&partition.key.path()).ok_or_else(|| {
                StageError::new(format!("the Greeks have no partition {}", partition.key.path()))
                    .hint("`greeks` must come from the very chain at `chain`")
            })?;
            Ok((partition.clone(), (*greeks).clone()))
        })
        .collect()
}

/// The snapshots in a partition.
fn days(chain: &RecordBatch, greeks: &RecordBatch) -> Result<Vec<Day>, StageError> {
    let unlike = || {
        StageError::new("the rows of the Greeks are not those of the chain")
            .hint("`greeks` must come from the very chain at `chain`")
    };
    let n = chain.num_rows();
    if greeks.num_rows() != n {
        return Err(unlike());
    }
    // A chain from elsewhere may lack what the environment can do without.
    let optional = |name: &str| match chain.column_by_name(name) {
        Some(_) => table::floats_or_nan(chain, name),
        None => Ok(vec![f64::NAN; n]),
    };
    let (dates, expiries) = (table::dates(chain, "date")?, table::dates(chain, "expiry")?);
    let (roots, calls) = (table::texts(chain, "root")?, table::bools(chain, "call")?);
    let strikes = table::floats_or_nan(chain, "strike")?;
    if table::dates(greeks, "expiry")? != expiries
        || table::dates(greeks, "date")? != dates
        || table::floats_or_nan(greeks, "strike")? != strikes
        || table::bools(greeks, "call")? != calls
    {
        return Err(unlike());
    }
    let (bid, ask, last) = (optional("bid")?, optional("ask")?, optional("last")?);
    let underlying = optional("underlying")?;
    let implied_volatility = optional("implied_volatility")?;
    let (forward, discount) = (optional("forward")?, optional("discount_factor")?);
    let greek = |name: &str| table::floats_or_nan(greeks, name);
    let (delta, gamma, vega, theta) = (greek("delta")?, greek("gamma")?, greek("vega")?, greek("theta")?);

    let mut days: Vec<Day> = Vec::new();
    for i in 0..n {
        if days.last().is_none_or(|day| day.date != dates[i]) {
            days.push(Day {
                date: dates[i],
                underlying: f64::NAN,
                roots: Vec::new(),
                quotes: Vec::new(),
            });
        }
        let Some(day) = days.last_mut() else { continue };
        if day.underlying.is_nan() && underlying[i] > 0.0 {
            day.underlying = underlying[i];
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
            root: u16::try_from(root).map_err(|_| StageError::new("more than 65,536 option classes on one day"))?,
            call: calls.value(i),
            strike: strikes[i],
            bid: bid[i],
            ask: ask[i],
            last: last[i],
            implied_volatility: implied_volatility[i],
            delta: delta[i],
            gamma: gamma[i],
            vega: vega[i],
            theta: theta[i],
            forward: forward[i],
            discount: discount[i],
        });
    }
    Ok(days)
}

/// The columns of all feature inputs.
fn features(context: &Context, symbol: &str) -> Result<Vec<FeatureColumn>, StageError> {
    let mut columns: Vec<FeatureColumn> = Vec::new();
    for input in context.list("features") {
        let set = DataSet::open(input)?;
        let symbols = set.symbols(&context.store)?;
        let theirs = match symbols.as_slice() {
            all if all.iter().any(|s| s == symbol) => symbol,
            [only] => only,
            all => {
                return Err(StageError::new(format!(
                    "the features are of {}, none of them `{symbol}`",
                    all.join(", ")
                ))
                .hint("give features of the underlying, or of one symbol alone"));
            }
        };
        let Some(batch) = set.read_symbol(&context.store, theirs)? else {
            continue;
        };
        let dates = table::dates(&batch, "date")?;
        for field in batch.schema().fields() {
            if is_key(field.name()) || *field.data_type() != DataType::Float64 {
                continue;
            }
            if columns.iter().any(|column| column.name == *field.name()) {
                return Err(
                    StageError::new(format!("the feature `{}` comes from two inputs", field.name()))
                        .hint("leave it out of one of the feature stages"),
                );
            }
            let values = table::floats_or_nan(&batch, field.name())?;
            columns.push(FeatureColumn {
                name: field.name().clone(),
                values: dates.iter().copied().zip(values).collect(),
            });
        }
    }
    Ok(columns)
}

/// The rate of the shortest tenor by date.
fn rates(given: &Given<'_>) -> Result<Vec<(Date, f64)>, StageError> {
    let Some(input) = given.optional("rates") else {
        return Ok(Vec::new());
    };
    let mut shortest: BTreeMap<Date, (f64, f64)> = BTreeMap::new();
    for batch in DataSet::open(input)?.read_all(given.store)? {
        let (tenors, rates) = (
            table::floats_or_nan(&batch, "tenor_years")?,
            table::floats_or_nan(&batch, "rate")?,
        );
        for (i, date) in table::dates(&batch, "date")?.into_iter().enumerate() {
            let known = shortest.get(&date).is_some_and(|&(tenor, _)| tenor <= tenors[i]);
            if rates[i].is_finite() && !known {
                shortest.insert(date, (tenors[i], rates[i]));
            }
        }
    }
    Ok(shortest.into_iter().map(|(date, (_, rate))| (date, rate)).collect())
}
