//! The stage `ingest/simulated_panel`: the built-in panel of stocks of [`stages_simulate::panel`].

use crate::bars::{self, Bar};
use crate::rates;
use crate::simulated_market::{NONE, features, problem, provided, rate_points, spelled};
use arrow_array::RecordBatch;
use datasets::calendar::CalendarName;
use datasets::corporate_action::CorporateAction;
use datasets::{Date, DateRange, schema};
use rayon::prelude::*;
use serde_json::json;
use stages_core::dataset::{self, Partition, PartitionKey, Period, Symbols};
use stages_core::{
    Context, Given, Memo, OutputPort, Outputs, PlanContext, Planned, PortType, Ports, Share, StageError,
    StageKind, corporate_actions, table,
};
use stages_simulate::Invalid;
use stages_simulate::panel::{Panel, PanelBar, PanelParameters, PanelStock};
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
/// The features that policies may see, and those hidden from them.
const SEEN: [&str; 1] = ["signal"];
const HIDDEN: [&str; 3] = ["expected_return", "true_signal", "filtered_return"];

/// The stage `ingest/simulated_panel`.
pub struct SimulatedPanel;

impl StageKind for SimulatedPanel {
    type Config = PanelParameters;
    const NAME: &'static str = "ingest/simulated_panel";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "a simulated panel of stocks (factors, jumps, splits, dividends, listings) \
        with a planted, known edge";
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: &[
            OutputPort::new("bars", PortType::Bars)
                .doc("daily bars, not adjusted, of the symbols MARKET:SYMBOL"),
            OutputPort::new("actions", PortType::CorporateActions).doc("splits and cash dividends"),
            OutputPort::new("rates", PortType::Rates).doc("zero rates at each close"),
            OutputPort::new("features", PortType::Features)
                .doc("`signal` by symbol and date: the true signal with noise"),
            OutputPort::new("hidden", PortType::Features).doc(
                "what nobody sees at each close, for baselines and tests: `expected_return` (of the next \
                    day, above interest), `true_signal`, and `filtered_return`, the expected return of a \
                    company of beta 1 by the best estimate of its signal from `signal` up to that close",
            ),
        ],
    };

    fn check(&self, config: &PanelParameters, _: &PlanContext) -> Planned {
        config.check().map_err(problem)?;
        Ok(BTreeMap::from([
            provided("bars", PortType::Bars, schema::BARS, NONE),
            provided("actions", PortType::CorporateActions, schema::CORPORATE_ACTIONS, NONE),
            provided("rates", PortType::Rates, schema::RATES, NONE),
            provided("features", PortType::Features, schema::FEATURES, &SEEN),
            provided("hidden", PortType::Features, schema::FEATURES, &HIDDEN),
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
                    parts
                        .into_iter()
                        .map(|part| part.partition(k, world, context))
                        .collect()
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

/// The trading days, taken from a world of a single stock.
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

/// A world, which is simulated only if one of its partitions is not cached.
struct World {
    config: PanelParameters,
    panel: OnceLock<Result<Panel, Invalid>>,
}

/// A partition to be made: one table of a world in one year. Its contents depend on the parameters and on no
/// later day.
struct Part {
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
            until: None,
            ..self.config.clone()
        };
        let spelled = spelled(&longer)?;
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
                let memo = Memo::new("ingest/simulated_panel v2", &parts, key.name());
                Part { key, memo }
            })
            .collect())
    }
}

impl Part {
    fn partition(self, table: usize, world: &World, context: &Context) -> Result<Partition, StageError> {
        let Self { key, memo } = self;
        let blob = context.memo(&memo, || {
            context.check_cancelled()?;
            let (stocks, range) = (&world.panel()?.stocks, key.range);
            table::to_parquet(&match TABLES[table].0 {
                "bars" => bars_of(stocks, range)?,
                "actions" => actions_of(stocks, range)?,
                "features" => features_of(stocks, range, &SEEN, |bar| vec![bar.seen])?,
                _ => features_of(stocks, range, &HIDDEN, |bar| {
                    vec![bar.expected, bar.signal, bar.filtered]
                })?,
            })
        })?;
        Ok(Partition { key, blob })
    }
}

fn rows(stocks: &[PanelStock], range: DateRange) -> impl Iterator<Item = (&str, &PanelBar)> {
    stocks.iter().flat_map(move |stock| {
        let in_range = stock.bars.iter().filter(move |bar| range.contains(bar.date));
        in_range.map(|bar| (stock.symbol.as_str(), bar))
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
    let in_range: Vec<CorporateAction> = all.filter(|action| range.contains(action.date)).cloned().collect();
    corporate_actions::batch(&in_range)
}

fn features_of(
    stocks: &[PanelStock],
    range: DateRange,
    names: &[&str],
    values: impl Fn(&PanelBar) -> Vec<f64>,
) -> Result<RecordBatch, StageError> {
    let (symbols, bars): (Vec<&str>, Vec<&PanelBar>) = rows(stocks, range).unzip();
    let mut columns = vec![Vec::with_capacity(bars.len()); names.len()];
    for bar in &bars {
        for (column, value) in columns.iter_mut().zip(values(bar)) {
            column.push(value);
        }
    }
    features(symbols.into_iter(), bars.iter().map(|bar| bar.date), names, columns)
}

/// Writes the interest rates, which all worlds share.
fn write_rates(world: &World, context: &Context) -> Result<cache::ArtifactDigest, StageError> {
    // Rates do not depend on the stocks, so a single one is simulated.
    let panel = simulate(&PanelParameters {
        stocks: 1,
        ..world.config.clone()
    })?;
    let points = rate_points(panel.dates.iter().copied().zip(panel.curves.iter().copied()));
    let partitions = dataset::partition(&context.store, &rates::batch(&points)?, Period::Year, "rates")?;
    let meta = json!({ "currency": "USD", "calendar": CALENDAR, "rows": points.len() });
    dataset::write(&context.store, PortType::Rates, meta, partitions)
}
