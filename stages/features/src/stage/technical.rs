//! `features/technical`.

use super::engine::{self, Contents, Named, OnceRows, Rows, SourcePartition};
use crate::numerics::technical::{Bollinger, Indicator};
use crate::numerics::{Bar, Feature};
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

/// Which price the indicators take for the close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Price {
    /// The last price.
    #[default]
    Close,
    /// The last price adjusted for splits and dividends; open, high and low are scaled alike.
    AdjustedClose,
}

/// Configuration of `features/technical`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TechnicalConfig {
    /// The indicators, with their periods in bars; each gives one or more columns, in this order.
    pub indicators: Vec<Indicator>,
    /// Which price they take for the close.
    pub price: Price,
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
        }
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
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "technical indicators of bars: moving averages, MACD, RSI, Bollinger bands, ATR, rate of change";
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
        for (i, indicator) in config.indicators.iter().enumerate() {
            if let Some(problem) = indicator.problem() {
                return Err(ConfigProblem::new(format!("indicators[{i}]"), problem));
            }
        }
        let names = engine::check_names("indicators", config.indicators.iter().map(Feature::columns))?;
        for (i, indicator) in config.indicators.iter().enumerate() {
            check_inputs(plan, &format!("indicators[{i}]"), indicator, config.price)?;
        }
        Ok(BTreeMap::from([("features".to_owned(), engine::provided(&names))]))
    }

    fn run(&self, config: &Self::Config, context: &Context) -> Result<Outputs, StageError> {
        run_over_bars(context, &named(config)?, config.price)
    }

    fn cached_share(&self, config: &Self::Config, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        share_over_bars(given, &named(config)?, config.price).map(Some)
    }
}

fn named(config: &TechnicalConfig) -> Result<Vec<Named<'_, Bar>>, StageError> {
    config
        .indicators
        .iter()
        .map(|indicator| {
            Ok(Named {
                key: engine::key("technical v1", indicator)?,
                feature: indicator as &dyn Feature<Bar>,
            })
        })
        .collect()
}

/// Refuses a feature whose inputs the bars lack.
pub(super) fn check_inputs(
    plan: &PlanContext,
    field: &str,
    feature: &dyn Feature<Bar>,
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

fn needed(feature: &dyn Feature<Bar>, price: Price) -> BTreeSet<&'static str> {
    let mut inputs: BTreeSet<_> = feature.inputs().into_iter().collect();
    if price == Price::AdjustedClose {
        inputs.extend(["close", "adjusted_close"]);
    }
    inputs
}

fn lacks(feature: &dyn Feature<Bar>, input: &str, source: &str) -> String {
    format!(
        "`{}` needs `{input}`, which {source} have no values of",
        feature.columns().join("`, `")
    )
}

/// Runs features over the bars at the port `bars`.
pub(super) fn run_over_bars(
    context: &Context,
    features: &[Named<'_, Bar>],
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
    let partitions: Vec<SourcePartition<Bar>> = bars
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
    let load = |source: &SourcePartition<Bar>| {
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
    features: &[Named<'_, Bar>],
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
        "features bars contents v1",
        &parts,
        format!("{} contents", partition.key.name()),
    )
}

/// Reads one value of a bar.
type Column = fn(&Bar) -> f64;

/// What features read of a bar, by the names of [`Feature::inputs`].
const READ: [(&str, Column); 4] = [
    ("open", |bar| bar.open),
    ("high", |bar| bar.high),
    ("low", |bar| bar.low),
    ("close", |bar| bar.close),
];

/// The digests of dates and columns, one after another.
fn contents(rows: &Rows<Bar>) -> Vec<u8> {
    let dates: Vec<u8> = rows.dates.iter().flat_map(|date| date.0.to_le_bytes()).collect();
    let mut digests = BlobRef::of(&dates).blob.as_bytes().to_vec();
    for (_, value) in READ {
        let values: Vec<u8> = rows.rows.iter().flat_map(|bar| value(bar).to_le_bytes()).collect();
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
                .map(|((name, _), digest)| (*name, digest.to_vec()))
                .collect(),
        }),
        _ => Err(StageError::new("the memo of a partition's contents does not hold them")),
    }
}

/// The bars of a table.
fn read_bars(batch: &arrow::array::RecordBatch, price: Price) -> Result<Rows<Bar>, StageError> {
    let column = |name| table::floats_or_nan(batch, name);
    let (open, high, low, close) = (column("open")?, column("high")?, column("low")?, column("close")?);
    let adjusted = match price {
        Price::Close => None,
        Price::AdjustedClose => Some(column("adjusted_close")?),
    };
    let rows = (0..batch.num_rows())
        .map(|i| {
            let bar = Bar {
                open: open[i],
                high: high[i],
                low: low[i],
                close: close[i],
            };
            match &adjusted {
                None => bar,
                Some(adjusted) => {
                    let factor = adjusted[i] / close[i];
                    Bar {
                        open: bar.open * factor,
                        high: bar.high * factor,
                        low: bar.low * factor,
                        close: adjusted[i],
                    }
                }
            }
        })
        .collect();
    Ok(Rows {
        dates: table::dates(batch, "date")?,
        rows,
    })
}
