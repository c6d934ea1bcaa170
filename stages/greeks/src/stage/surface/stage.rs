//! The stage `greeks/surface`.

use super::config::SurfaceConfig;
use super::{days, tables};
use crate::stage::chain::{canonical, each_partition, object, share};
use arrow_array::RecordBatch;
use cache::BlobRef;
use datasets::schema::{FEATURES, SNAPSHOT};
use serde_json::{Value, json};
use stages_core::dataset::{self, DataSet, Partition};
use stages_core::{
    ConfigProblem, Context, Given, InputPort, Memo, OutputPort, Outputs, PlanContext, Planned, PortType,
    Ports, Provided, Share, StageError, StageKind, contracts, table,
};
use std::collections::BTreeMap;

/// The stage `greeks/surface`: fits an arbitrage-free implied volatility surface to each snapshot of an
/// option chain ([`crate::numerics::surface`]).
///
/// The output chain has the surface's volatility beside every contract (`iv_fitted`). It also replaces a
/// missing implied volatility; such a contract is recognised by its `iv_status`, which is left unchanged. The
/// features are the surface at fixed maturities and deltas, and `surface_residual`, the root mean square of
/// quoted less fitted volatility.
pub struct Surface;

impl StageKind for Surface {
    type Config = SurfaceConfig;
    const NAME: &'static str = "greeks/surface";
    const VERSION: u32 = 4;
    const ABOUT: &'static str = "an arbitrage-free volatility surface of each day: implied volatilities \
        also without a quote, features by maturity and delta";
    const PORTS: Ports = Ports {
        inputs: &[InputPort::one("chain", PortType::OptionChain)
            .doc("option chain with implied volatility and forward")],
        outputs: &[
            OutputPort::new("chain", PortType::OptionChain).doc(
                "the chain with iv_fitted, and with an implied volatility also where there was none, \
                    row by row",
            ),
            OutputPort::new("features", PortType::Features).doc(
                "one row for each snapshot: volatility at fixed maturities and deltas, such as \
                    `iv_30_put_25`",
            ),
        ],
    };

    fn check(&self, config: &Self::Config, plan: &PlanContext) -> Planned {
        config.time.check()?;
        if config.least_quotes < 3 {
            let message = format!("{} quotes do not determine a smile", config.least_quotes);
            return Err(ConfigProblem::new("least_quotes", message).hint("6 is the default"));
        }
        if !(0.0..=3650.0).contains(&config.least_days) {
            let message = format!("{} is not a number of days", config.least_days);
            return Err(ConfigProblem::new("least_days", message));
        }
        for (i, days) in config.maturities.iter().enumerate() {
            if !(1..=3650).contains(days) {
                let message = format!("a maturity has from 1 to 3650 days, not {days}");
                return Err(ConfigProblem::new(format!("maturities[{i}]"), message));
            }
        }
        for (i, delta) in config.deltas.iter().enumerate() {
            if !(*delta > 0.0 && *delta < 0.5) {
                let message = format!("{delta} is not an absolute delta out of the money");
                return Err(
                    ConfigProblem::new(format!("deltas[{i}]"), message).hint("give one between 0 and 0.5")
                );
            }
        }
        let mut names = config.features();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        ConfigProblem::new("", "a maturity or a delta is named twice")
            .hint("remove one of them")
            .when(names.len() != count)?;
        let chain = plan.inputs.get("chain").and_then(|list| list.first());
        if let Some(chain) = chain {
            for needed in ["implied_volatility", "forward"] {
                if !chain.may_have(needed) {
                    let message = format!("the chain at `chain` has no `{needed}`");
                    return Err(ConfigProblem::new("", message).hint(
                        "put a stage with `uses: greeks/implied_volatility` before this one and connect its \
                        chain",
                    ));
                }
            }
        }
        let instants = chain.filter(|chain| chain.may_have(SNAPSHOT.name)).map(|_| &SNAPSHOT);
        let mut chain = chain
            .cloned()
            .unwrap_or_else(|| Provided::unknown(PortType::OptionChain));
        if let Some(columns) = &mut chain.columns {
            columns.insert(tables::FITTED.to_owned());
        }
        let fixed = FEATURES.iter().chain(instants).map(|column| column.name.to_owned());
        let features = Provided::columns(PortType::Features, fixed.chain(config.features()));
        Ok(BTreeMap::from([
            ("chain".to_owned(), chain),
            ("features".to_owned(), features),
        ]))
    }

    fn run(&self, config: &Self::Config, context: &Context) -> Result<Outputs, StageError> {
        let chain = DataSet::open(context.input("chain")?)?;
        let is_intraday = chain.is_intraday(&context.store)?;
        let config = &of_chain(config, &chain, is_intraday)?;
        let tables = each_partition(context, &chain, "surface", |partition| {
            let read = || partition.read(&context.store);
            let blob = context.memo(&surfaces_memo(partition, config)?, || {
                Ok(days::encode(&days::fit(&read()?, config)?))
            })?;
            let surfaces = || {
                let bytes = context.store.blob(blob.blob)?;
                days::decode(&bytes, is_intraday).ok_or_else(|| {
                    StageError::new(format!(
                        "the memo of the surfaces of `{}` has another format",
                        partition.key.path()
                    ))
                })
            };
            let table = |batch: RecordBatch| table::to_parquet(&batch);
            let [chain_memo, features_memo] = table_memos(partition, blob, config)?;
            let marked =
                context.memo(&chain_memo, || table(tables::mark(&read()?, &surfaces()?, config)?))?;
            let features = context.memo(&features_memo, || {
                table(tables::features(partition.key.symbol()?, &surfaces()?, config)?)
            })?;
            let with = |blob| Partition {
                key: partition.key.clone(),
                blob,
            };
            Ok((with(marked), with(features)))
        })?;
        let (chains, features): (Vec<Partition>, Vec<Partition>) = tables.into_iter().unzip();
        let mut meta = object(chain.meta);
        meta.insert("surface".to_owned(), json!({ "smile": "spline" }));
        let chain = dataset::write(&context.store, PortType::OptionChain, Value::Object(meta), chains)?;
        let meta = json!({ "features": config.features() });
        let features = dataset::write(&context.store, PortType::Features, meta, features)?;
        Ok(Outputs::from([
            ("chain".to_owned(), chain),
            ("features".to_owned(), features),
        ]))
    }

    fn cached_share(&self, config: &Self::Config, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let chain = DataSet::open(given.input("chain")?)?;
        let config = &of_chain(config, &chain, chain.is_intraday(given.store)?)?;
        share(given, &chain, |partition| surfaces_memo(partition, config))
    }
}

/// The configuration with the day count of the chain's contracts.
fn of_chain(config: &SurfaceConfig, chain: &DataSet, is_intraday: bool) -> Result<SurfaceConfig, StageError> {
    Ok(SurfaceConfig {
        time: config.time.of_chain(&contracts::read(&chain.meta)?, is_intraday)?,
        ..config.clone()
    })
}

/// The memo of a partition's fitted surfaces, which are independent of maturities and deltas of features.
fn surfaces_memo(partition: &Partition, config: &SurfaceConfig) -> Result<Memo, StageError> {
    let settings = canonical(&(config.least_quotes, config.least_days, &config.time))?;
    let parts: [&[u8]; 2] = [partition.blob.blob.as_bytes(), settings.as_bytes()];
    let label = format!("{} surfaces", partition.key.name());
    Ok(Memo::new("greeks/surface fit v2", &parts, label))
}

/// The memos of the tables made from the surfaces: the chain, and the features.
fn table_memos(
    partition: &Partition,
    surfaces: BlobRef,
    config: &SurfaceConfig,
) -> Result<[Memo; 2], StageError> {
    let time = canonical(&config.time)?;
    let chain: [&[u8]; 3] = [
        partition.blob.blob.as_bytes(),
        surfaces.blob.as_bytes(),
        time.as_bytes(),
    ];
    let points = canonical(&(&config.maturities, &config.deltas))?;
    let features: [&[u8]; 3] = [
        partition.key.symbol()?.as_bytes(),
        surfaces.blob.as_bytes(),
        points.as_bytes(),
    ];
    Ok([
        Memo::new("greeks/surface chain v2", &chain, partition.key.name()),
        Memo::new(
            "greeks/surface features v2",
            &features,
            format!("{} features", partition.key.name()),
        ),
    ])
}
