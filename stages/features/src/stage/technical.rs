//! `features/technical`.

use super::engine::{self, Contents, Named, OnceRows, Rows, SourcePartition};
use crate::numerics::indicators::{Bollinger, Column, Convention, Defined, Indicator};
use crate::numerics::{Bars, Feature};
use arrow::array::Array as _;
use cache::BlobRef;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::dataset::{DataSet, Partition, PartitionKey};
use stages_core::{
    ConfigProblem, Context, Given, InputPort, Memo, OutputPort, Outputs, PlanContext, PortType, Ports, Provided, Share,
    StageError, StageKind, table,
};
use std::collections::{BTreeMap, BTreeSet};

/// The price that the indicators take for the close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Price {
    /// The last price.
    #[default]
    Close,
    /// The last price adjusted for splits and dividends; open, high and low are scaled alike, the volume is not.
    AdjustedClose,
}

/// Configuration of `features/technical`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TechnicalConfig {
    /// The indicators, with their periods in bars; each gives one or more columns, in this order.
    pub indicators: Vec<Indicator>,
    /// The price that they take for the close.
    pub price: Price,
    /// Whose definitions they follow: `talib` (0.8, unstable period 0), or `stockstats` (0.6), which FinRL uses and which has only `sma`, `ema`, `macd`,
    /// `rsi`, `bollinger`, `atr`, `di`, `dx`, `adx`, `cci`, `willr`, `mfi` and `kdj`.
    pub convention: Convention,
}

impl Default for TechnicalConfig {
    fn default() -> Self {
        Self {
            indicators: vec![
                Indicator::Sma(20),
                Indicator::Ema(12),
                Indicator::Macd([12, 26, 9]),
                Indicator::Rsi(14),
                Indicator::Bollinger(Bollinger::default()),
                Indicator::Atr(14),
                Indicator::Roc(10),
            ],
            price: Price::Close,
            convention: Convention::Talib,
        }
    }
}

impl TechnicalConfig {
    fn defined(&self) -> Result<Vec<Defined>, ConfigProblem> {
        self.indicators
            .iter()
            .enumerate()
            .map(|(i, indicator)| {
                indicator
                    .by(self.convention)
                    .map_err(|problem| ConfigProblem::new(format!("indicators[{i}]"), problem))
            })
            .collect()
    }
}

/// The input port of bars.
pub(super) const BARS_IN: InputPort = InputPort {
    name: "bars",
    ty: PortType::Bars,
    optional: false,
    list: false,
    doc: "daily bars",
};

/// Technical indicators of each symbol, with TA-Lib's definitions; null in the warm-up.
pub struct Technical;

impl StageKind for Technical {
    type Config = TechnicalConfig;
    const NAME: &'static str = "features/technical";
    const VERSION: u32 = 3;
    const ABOUT: &'static str = "technical indicators of bars, as TA-Lib or stockstats define them: averages, oscillators, bands, ranges, volume";
    const PORTS: Ports = Ports {
        inputs: &[BARS_IN],
        outputs: &[OutputPort {
            name: "features",
            ty: PortType::Features,
            doc: "one column for each indicator, such as `sma_20`",
        }],
    };

    fn check(&self, config: &Self::Config, plan: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        if config.indicators.is_empty() {
            return Err(ConfigProblem::new("indicators", "no indicator is named")
                .hint("name one, as in `indicators: [{ sma: 20 }]`"));
        }
        let indicators = config.defined()?;
        let names = engine::check_names("indicators", indicators.iter().map(Feature::columns))?;
        for (i, indicator) in indicators.iter().enumerate() {
            check_inputs(plan, &format!("indicators[{i}]"), indicator, config.price)?;
        }
        Ok(BTreeMap::from([("features".to_owned(), engine::provided(&names))]))
    }

    fn run(&self, config: &Self::Config, context: &Context) -> Result<Outputs, StageError> {
        run_over_bars(context, &named(&defined(config)?)?, config.price)
    }

    fn cached_share(&self, config: &Self::Config, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        share_over_bars(given, &named(&defined(config)?)?, config.price).map(Some)
    }
}

fn defined(config: &TechnicalConfig) -> Result<Vec<Defined>, StageError> {
    config.defined().map_err(|problem| StageError::new(problem.message))
}

fn named(indicators: &[Defined]) -> Result<Vec<Named<'_, Bars>>, StageError> {
    indicators
        .iter()
        .map(|indicator| {
            Ok(Named {
                key: engine::key("technical v3", indicator)?,
                feature: indicator as &dyn Feature<Bars>,
            })
        })
        .collect()
}

/// Refuses a feature whose inputs the bars lack.
pub(super) fn check_inputs(
    plan: &PlanContext,
    field: &str,
    feature: &dyn Feature<Bars>,
    price: Price,
) -> Result<(), ConfigProblem> {
    let Some(bars) = plan.inputs.get("bars").and_then(|list| list.first()) else {
        return Ok(());
    };
    for input in needed(feature, price) {
        if !bars.may_have(input) {
            return Err(ConfigProblem::new(field, lacks(feature, input, "the bars at `bars`"))
                .hint("remove it, take features of the close alone, or read bars that have it"));
        }
    }
    Ok(())
}

fn needed(feature: &dyn Feature<Bars>, price: Price) -> BTreeSet<&'static str> {
    let mut inputs: BTreeSet<_> = feature.inputs().into_iter().collect();
    if price == Price::AdjustedClose {
        inputs.extend(["close", "adjusted_close"]);
    }
    inputs
}

fn lacks(feature: &dyn Feature<Bars>, input: &str, source: &str) -> String {
    format!(
        "`{}` needs `{input}`, which {source} have no values of",
        feature.columns().join("`, `")
    )
}

/// Runs features over the bars at the port `bars`.
pub(super) fn run_over_bars(
    context: &Context,
    features: &[Named<'_, Bars>],
    price: Price,
) -> Result<Outputs, StageError> {
    let bars = DataSet::open(context.input("bars")?)?;
    // The plan may not have known which columns have values; the first partition of each symbol tells.
    for symbol in bars.symbols() {
        let Some(first) = bars.partitions.iter().find(|partition| partition.key.symbol == symbol) else {
            continue;
        };
        let batch = first.read(&context.store)?;
        for named in features {
            for input in needed(named.feature, price) {
                let values = table::floats(&batch, input)?;
                if values.null_count() == values.len() && !values.is_empty() {
                    let source = format!("the bars of {symbol}");
                    return Err(StageError::new(lacks(named.feature, input, &source))
                        .hint("remove it, take features of the close alone, or read bars that have it"));
                }
            }
        }
    }
    let partitions: Vec<SourcePartition<Bars>> = bars
        .partitions
        .par_iter()
        .map(|partition| {
            let rows = OnceRows::default();
            let blob = context.memo(&contents_memo(partition, price), || {
                Ok(contents(
                    &*rows.get(|| read_bars(&partition.read(&context.store)?, price))?,
                ))
            })?;
            let contents = decode(&context.store.blob(blob.blob)?)?;
            Ok(SourcePartition::new(partition.key.clone(), contents, rows))
        })
        .collect::<Result<_, StageError>>()?;
    let blob = |key: &PartitionKey| bars.partitions.iter().find(|partition| partition.key == *key);
    let load = |source: &SourcePartition<Bars>| {
        let partition =
            blob(&source.key).ok_or_else(|| StageError::new(format!("no partition `{}`", source.key.path())))?;
        read_bars(&partition.read(&context.store)?, price)
    };
    let names: Vec<String> = features.iter().flat_map(|named| named.feature.columns()).collect();
    let digest = engine::run(context, features, &partitions, engine::meta(&names), load)?;
    Ok(Outputs::from([("features".to_owned(), digest)]))
}

/// How much of features over the bars at the port `bars` is known.
pub(super) fn share_over_bars(
    given: &Given<'_>,
    features: &[Named<'_, Bars>],
    price: Price,
) -> Result<Share, StageError> {
    let mut partitions = Vec::new();
    for partition in DataSet::open(given.input("bars")?)?.partitions {
        let source = match given.known(&contents_memo(&partition, price))? {
            Some(blob) => {
                let contents = decode(&given.store.blob(blob.blob)?)?;
                Some(SourcePartition::new(
                    partition.key.clone(),
                    contents,
                    OnceRows::default(),
                ))
            }
            None => None,
        };
        partitions.push((partition.key, source));
    }
    engine::share(given, features, &partitions)
}

/// The digests of a partition's bars, column by column.
fn contents_memo(partition: &Partition, price: Price) -> Memo {
    let parts: [&[u8]; 2] = [
        partition.blob.blob.as_bytes(),
        &[u8::from(price == Price::AdjustedClose)],
    ];
    Memo::new(
        "features bars contents v2",
        &parts,
        format!("{} contents", partition.key.name()),
    )
}

/// What features read of bars.
const READ: [Column; 5] = [Column::Open, Column::High, Column::Low, Column::Close, Column::Volume];

/// The digests of dates and columns, one after another.
fn contents(rows: &Rows<Bars>) -> Vec<u8> {
    let dates: Vec<u8> = rows.dates.iter().flat_map(|date| date.0.to_le_bytes()).collect();
    let mut digests = BlobRef::of(&dates).blob.as_bytes().to_vec();
    for column in READ {
        let values: Vec<u8> = column
            .of(&rows.rows)
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        digests.extend(BlobRef::of(&values).blob.as_bytes());
    }
    digests
}

fn decode(bytes: &[u8]) -> Result<Contents, StageError> {
    let (digests, rest) = bytes.as_chunks::<32>();
    match digests {
        [dates, columns @ ..] if columns.len() == READ.len() && rest.is_empty() => Ok(Contents {
            dates: dates.to_vec(),
            inputs: READ
                .iter()
                .zip(columns)
                .map(|(column, digest)| (column.name(), digest.to_vec()))
                .collect(),
        }),
        _ => Err(StageError::new("the memo of a partition's contents does not hold them")),
    }
}

/// The bars of a table.
fn read_bars(batch: &arrow::array::RecordBatch, price: Price) -> Result<Rows<Bars>, StageError> {
    let column = |name| table::floats_or_nan(batch, name);
    let mut rows = Bars {
        open: column("open")?,
        high: column("high")?,
        low: column("low")?,
        close: column("close")?,
        volume: column("volume")?,
    };
    if price == Price::AdjustedClose {
        let adjusted = column("adjusted_close")?;
        for prices in [&mut rows.open, &mut rows.high, &mut rows.low] {
            for (price, (adjusted, close)) in prices.iter_mut().zip(adjusted.iter().zip(&rows.close)) {
                *price *= adjusted / close;
            }
        }
        rows.close = adjusted;
    }
    Ok(Rows {
        dates: table::dates(batch, "date")?,
        rows,
    })
}
