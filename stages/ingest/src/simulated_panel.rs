//! `ingest/simulated_panel`: the built-in panel of stocks of [`stages_simulate::panel`].

use crate::bars::{self, Bar};
use crate::rates;
use arrow_array::{ArrayRef, Date32Array, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use datasets::calendar::CalendarName;
use datasets::corporate_action::CorporateAction;
use datasets::{Date, DateRange, schema};
use rayon::prelude::*;
use serde_json::json;
use stages_core::dataset::{self, Partition, PartitionKey, Period, Symbols};
use stages_core::{
    ConfigProblem, Context, Given, Memo, OutputPort, Outputs, PlanContext, PortType, Ports, Provided, Share,
    StageError, StageKind, corporate_actions, table,
};
use stages_simulate::panel::{Panel, PanelBar, PanelParameters, PanelStock};
use stages_simulate::{Invalid, TENORS};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

const CALENDAR: CalendarName = CalendarName::Us;

/// The tables that are memoised by world and year.
const TABLES: [(&str, PortType); 4] = [
    ("bars", PortType::Bars),
    ("actions", PortType::CorporateActions),
    ("features", PortType::Features),
    ("hidden", PortType::Features),
];
/// The features, and what nobody sees.
const SEEN: [&str; 1] = ["signal"];
const HIDDEN: [&str; 2] = ["expected_return", "true_signal"];

/// `ingest/simulated_panel`.
pub struct SimulatedPanel;

impl StageKind for SimulatedPanel {
    type Config = PanelParameters;
    const NAME: &'static str = "ingest/simulated_panel";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "a simulated panel of stocks (factors, jumps, splits, dividends, listings) \
        with a planted, known edge";
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: &[
            OutputPort {
                name: "bars",
                ty: PortType::Bars,
                doc: "daily bars, not adjusted, of the symbols MARKET:SYMBOL",
            },
            OutputPort {
                name: "actions",
                ty: PortType::CorporateActions,
                doc: "splits and cash dividends",
            },
            OutputPort {
                name: "rates",
                ty: PortType::Rates,
                doc: "zero rates at each close",
            },
            OutputPort {
                name: "features",
                ty: PortType::Features,
                doc: "`signal` by symbol and date: the true signal with noise",
            },
            OutputPort {
                name: "hidden",
                ty: PortType::Features,
                doc: "what nobody sees at each close, for oracles and tests: `expected_return` (of the next \
                    day, above interest) and `true_signal`",
            },
        ],
    };

    fn check(
        &self,
        config: &PanelParameters,
        _: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config
            .check()
            .map_err(|invalid| ConfigProblem::new(invalid.field, invalid.message).hint(invalid.hint))?;
        let columns = |columns: &'static [schema::Column]| columns.iter().map(|column| column.name);
        let of =
            |name: &str, ty, columns: Vec<&'static str>| (name.to_owned(), Provided::columns(ty, columns));
        let features = |own: &[&'static str]| columns(schema::FEATURES).chain(own.iter().copied()).collect();
        let bars = columns(schema::BARS).filter(|name| *name != "adjusted_close").collect();
        Ok(BTreeMap::from([
            of("bars", PortType::Bars, bars),
            of(
                "actions",
                PortType::CorporateActions,
                columns(schema::CORPORATE_ACTIONS).collect(),
            ),
            of("rates", PortType::Rates, columns(schema::RATES).collect()),
            of("features", PortType::Features, features(&SEEN)),
            of("hidden", PortType::Features, features(&HIDDEN)),
        ]))
    }

    fn run(&self, config: &PanelParameters, context: &Context) -> Result<Outputs, StageError> {
        let dates = dates(config)?;
        let worlds: Vec<World> = config.each_world().into_iter().map(World::new).collect();
        let mut outputs = Outputs::new();
        let symbols: Vec<String> = (worlds.iter())
            .flat_map(|world| (0..config.stocks as usize).map(|i| world.config.symbol(i)))
            .collect();
        for (k, (name, ty)) in TABLES.into_iter().enumerate() {
            let partitions: Vec<Vec<Partition>> = worlds
                .par_iter()
                .map(|world| {
                    let parts = world.parts(k, &dates)?;
                    parts.into_iter().map(|part| part.partition(world, context)).collect()
                })
                .collect::<Result<_, StageError>>()?;
            let mut meta = json!({ "symbols": symbols });
            if name == "bars" {
                meta["currency"] = "USD".into();
                meta["calendar"] = json!(CALENDAR);
            }
            let artifact = dataset::write(&context.store, ty, meta, partitions.into_iter().flatten())?;
            outputs.insert(name.to_owned(), artifact);
        }
        outputs.insert("rates".to_owned(), write_rates(&worlds[0], context)?);
        Ok(outputs)
    }

    fn cached_share(&self, config: &PanelParameters, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let dates = dates(config)?;
        let mut memos = Vec::new();
        for world in config.each_world().into_iter().map(World::new) {
            for k in 0..TABLES.len() {
                memos.extend(world.parts(k, &dates)?.into_iter().map(|part| part.memo));
            }
        }
        Share::of_memos("partitions", given, memos.iter()).map(Some)
    }
}

/// The trading days: those of a world of one stock.
fn dates(config: &PanelParameters) -> Result<Vec<Date>, StageError> {
    let small = PanelParameters {
        stocks: 1,
        sectors: 1,
        ..config.clone()
    };
    Ok(simulate(&small)?.dates)
}

fn simulate(config: &PanelParameters) -> Result<Panel, StageError> {
    Panel::new(config).map_err(|invalid| refused(&invalid))
}

fn refused(invalid: &Invalid) -> StageError {
    StageError::new(invalid.to_string()).hint(&invalid.hint)
}

/// A world, simulated where a partition of it is not known.
struct World {
    config: PanelParameters,
    panel: OnceLock<Result<Panel, Invalid>>,
}

/// A partition to come: a table of a world over a year. Its contents depend on the parameters and on no later
/// day.
struct Part {
    table: usize,
    key: PartitionKey,
    memo: Memo,
}

impl World {
    fn new(config: PanelParameters) -> Self {
        let panel = OnceLock::new();
        Self { config, panel }
    }

    fn panel(&self) -> Result<&Panel, StageError> {
        let panel = self.panel.get_or_init(|| Panel::new(&self.config));
        panel.as_ref().map_err(refused)
    }

    fn parts(&self, table: usize, dates: &[Date]) -> Result<Vec<Part>, StageError> {
        let longer = PanelParameters {
            days: 0,
            ..self.config.clone()
        };
        let spelled = serde_json::to_value(&longer).map_err(|err| StageError::new(err.to_string()))?;
        let spelled = cache::canonical_json(&spelled);
        let stocks = self.config.stocks as usize;
        let symbols = || match stocks {
            1 => Symbols::One(self.config.symbol(0)),
            _ => Symbols::Several {
                first: self.config.symbol(0),
                last: self.config.symbol(stocks - 1),
            },
        };
        Ok(dates
            .chunk_by(|a, b| Period::Year.range(*a).contains(*b))
            .map(|days| {
                let key = PartitionKey {
                    symbols: symbols(),
                    range: Period::Year.range(days[0]),
                };
                let (from, length) = (key.range.from.to_string(), (days.len() as u64).to_le_bytes());
                let parts: [&[u8]; 4] =
                    [TABLES[table].0.as_bytes(), spelled.as_bytes(), from.as_bytes(), &length];
                let memo = Memo::new("ingest/simulated_panel v1", &parts, key.name());
                Part { table, key, memo }
            })
            .collect())
    }
}

impl Part {
    fn partition(self, world: &World, context: &Context) -> Result<Partition, StageError> {
        let Self { table, key, memo } = self;
        let blob = context.memo(&memo, || {
            context.check_cancelled()?;
            let (stocks, range) = (&world.panel()?.stocks, key.range);
            table::to_parquet(&match TABLES[table].0 {
                "bars" => bars_of(stocks, range)?,
                "actions" => actions_of(stocks, range)?,
                "features" => features_of(stocks, range, &SEEN, |bar| vec![bar.seen])?,
                _ => features_of(stocks, range, &HIDDEN, |bar| vec![bar.expected, bar.signal])?,
            })
        })?;
        Ok(Partition { key, blob })
    }
}

fn rows(stocks: &[PanelStock], range: DateRange) -> impl Iterator<Item = (&str, &PanelBar)> {
    stocks.iter().flat_map(move |stock| {
        let of_range = stock.bars.iter().filter(move |bar| range.contains(bar.date));
        of_range.map(|bar| (stock.symbol.as_str(), bar))
    })
}

fn bars_of(stocks: &[PanelStock], range: DateRange) -> Result<RecordBatch, StageError> {
    let bar = |(symbol, bar): (&str, &PanelBar)| {
        let [open, high, low, close, volume] = bar.values;
        Bar {
            symbol: Arc::from(symbol),
            date: bar.date,
            values: [open, high, low, close, volume, f64::NAN],
        }
    };
    bars::to_batch(&rows(stocks, range).map(bar).collect::<Vec<_>>())
}

fn actions_of(stocks: &[PanelStock], range: DateRange) -> Result<RecordBatch, StageError> {
    let all = stocks.iter().flat_map(|stock| &stock.actions);
    let of_range: Vec<CorporateAction> = all.filter(|action| range.contains(action.date)).cloned().collect();
    corporate_actions::batch(&of_range)
}

fn features_of(
    stocks: &[PanelStock],
    range: DateRange,
    names: &[&str],
    values: impl Fn(&PanelBar) -> Vec<f64>,
) -> Result<RecordBatch, StageError> {
    let mut fields: Vec<Field> = schema::FEATURES.iter().map(table::field).collect();
    fields.extend(names.iter().map(|name| Field::new(*name, DataType::Float64, true)));
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(
            rows(stocks, range).map(|(symbol, _)| symbol),
        )),
        Arc::new(Date32Array::from_iter_values(
            rows(stocks, range).map(|(_, bar)| bar.date.0),
        )),
    ];
    let values: Vec<Vec<f64>> = rows(stocks, range).map(|(_, bar)| values(bar)).collect();
    for k in 0..names.len() {
        columns.push(Arc::new(Float64Array::from_iter_values(values.iter().map(|of| of[k]))));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// The rates, which all worlds share.
fn write_rates(world: &World, context: &Context) -> Result<cache::ArtifactDigest, StageError> {
    // The rates depend on no stock.
    let panel = simulate(&PanelParameters {
        stocks: 1,
        ..world.config.clone()
    })?;
    let points: Vec<rates::Point> = (panel.dates.iter().zip(&panel.curves))
        .flat_map(|(date, curve)| TENORS.iter().zip(curve.0).map(|(tenor, rate)| (*date, *tenor, rate)))
        .collect();
    let partitions = dataset::partition(&context.store, &rates::batch(&points)?, Period::Year, "rates")?;
    let meta = json!({ "currency": "USD", "calendar": CALENDAR, "rows": points.len() });
    dataset::write(&context.store, PortType::Rates, meta, partitions)
}
