//! The stage `features/options_surface`.

use super::engine::{self, Contents, DaysAYear, Named, OnceRows, PartitionRows, SourcePartition};
use crate::numerics::Feature;
use crate::numerics::smile::{Day, Point, Smile, smile};
use crate::numerics::surface::Surface;
use cache::BlobRef;
use datasets::schema::SNAPSHOT;
use datasets::{Date, SnapshotTime};
use rayon::prelude::*;
use stages_core::dataset::{DataSet, Partition, PartitionKey};
use stages_core::{
    ConfigProblem, Context, Given, InputPort, Memo, OutputPort, Outputs, PlanContext, Planned, PortType,
    Ports, Share, StageError, StageKind, table,
};
use std::collections::BTreeMap;

stages_core::settings! {
    /// Configuration of `features/options_surface`. Maturities are in calendar days.
    pub struct OptionsSurfaceConfig {
        /// Maturities of the implied volatility at the money: `atm_iv_30`, annual, decimal.
        pub atm_iv: Vec<u32> = vec![30, 60, 90],
        /// Maturities of the skew, the put's implied volatility less the call's at `skew_delta`: `skew_30`.
        pub skew: Vec<u32> = vec![30],
        /// The absolute delta at which the skew is taken.
        pub skew_delta: f64 = 0.25,
        /// Pairs of a short and a long maturity: `term_slope_30_90` is the long one's implied volatility at
        /// the money less the short one's.
        pub term_slope: Vec<[u32; 2]> = vec![[30, 90]],
        /// Maturities of the variance risk premium, implied variance at the money less trailing realised
        /// variance of the underlying: `variance_risk_premium_30`.
        pub variance_risk_premium: Vec<u32> = vec![30],
        /// Trading days of the realised variance. Of several snapshots a day, the last one gives the day's
        /// price, and the days before that of a row count: whether more snapshots follow on a day is not
        /// known on it.
        pub realised_window: usize = 21,
        /// Trading days a year, by which realised variance is annualised; `auto`: those of the chain, by its
        /// calendar and days: 252, 365 of a market that never closes.
        pub days_a_year: DaysAYear = DaysAYear::AUTO,
        /// Expiries nearer than this many days are omitted: their quotes are not informative.
        pub least_days: u32 = 5,
    }
}

impl OptionsSurfaceConfig {
    fn features(&self, days_a_year: f64) -> Vec<Surface> {
        let mut features: Vec<Surface> = Vec::new();
        features.extend(self.atm_iv.iter().map(|&days| Surface::AtTheMoney { days }));
        features.extend(self.skew.iter().map(|&days| Surface::Skew { days }));
        features.extend(
            self.term_slope
                .iter()
                .map(|&[short, long]| Surface::TermSlope { short, long }),
        );
        features.extend(
            self.variance_risk_premium
                .iter()
                .map(|&days| Surface::VarianceRiskPremium {
                    days,
                    window: self.realised_window,
                    days_a_year,
                }),
        );
        features
    }
}

/// Features of the implied volatility surface of each underlying, one row for each snapshot of the chain;
/// null where the quotes do not determine them.
pub struct OptionsSurface;

impl StageKind for OptionsSurface {
    type Config = OptionsSurfaceConfig;
    const NAME: &'static str = "features/options_surface";
    const VERSION: u32 = 3;
    const ABOUT: &'static str =
        "implied volatility at the money by maturity, skew, term slope and variance risk premium of a chain";
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort::one("chain", PortType::OptionChain).doc("option chain with implied volatility"),
            InputPort::one("greeks", PortType::Greeks).doc("the chain's Greeks"),
        ],
        outputs: &[OutputPort::new("features", PortType::Features)
            .doc("one row for each snapshot, one column for each feature, such as `atm_iv_30`")],
    };

    fn check(&self, config: &Self::Config, plan: &PlanContext) -> Planned {
        let maturity = |field: String, days: u32| {
            if (1..=3650).contains(&days) {
                Ok(())
            } else {
                Err(ConfigProblem::new(
                    field,
                    format!("a maturity has from 1 to 3650 days, not {days}"),
                ))
            }
        };
        for (name, list) in [
            ("atm_iv", &config.atm_iv),
            ("skew", &config.skew),
            ("variance_risk_premium", &config.variance_risk_premium),
        ] {
            for (i, &days) in list.iter().enumerate() {
                maturity(format!("{name}[{i}]"), days)?;
            }
        }
        for (i, &[short, long]) in config.term_slope.iter().enumerate() {
            maturity(format!("term_slope[{i}][0]"), short)?;
            maturity(format!("term_slope[{i}][1]"), long)?;
            let message = format!("the short maturity {short} is not below the long one {long}");
            ConfigProblem::new(format!("term_slope[{i}]"), message).when(short >= long)?;
        }
        let message = format!("{} is not an absolute delta out of the money", config.skew_delta);
        ConfigProblem::new("skew_delta", message)
            .hint("give one between 0 and 0.5, such as 0.25")
            .when(!(config.skew_delta > 0.0 && config.skew_delta < 0.5))?;
        engine::check_window("realised_window".to_owned(), config.realised_window, 1, "days")?;
        config.days_a_year.check()?;
        let features = config.features(1.0);
        ConfigProblem::new("", "no feature is named")
            .hint("write `atm_iv: [30]`")
            .when(features.is_empty())?;
        let names = engine::check_names("", features.iter().map(Feature::columns)).map_err(|problem| {
            ConfigProblem {
                field: String::new(),
                ..problem
            }
        })?;
        if let Some(chain) = plan.inputs.get("chain").and_then(|list| list.first()) {
            for feature in &features {
                for input in feature.inputs() {
                    ConfigProblem::new(
                        "",
                        format!(
                            "`{}` needs `{input}`, which the chain at `chain` lacks",
                            feature.columns().join("`, `")
                        ),
                    )
                    .hint(match input {
                        "implied_volatility" => {
                            "put a stage with `uses: greeks/implied_volatility` before this one and \
                                connect its chain"
                        }
                        _ => {
                            "map `underlying` in the stage that reads the chain, or set \
                                `variance_risk_premium: []`"
                        }
                    })
                    .when(!chain.may_have(input))?;
                }
            }
            ConfigProblem::new(
                "",
                "the chain at `chain` has neither forward nor underlying: the forward of its contracts \
                    is unknown",
            )
            .hint(
                "put a stage with `uses: greeks/implied_volatility` before this one and connect its \
                    chain",
            )
            .when(!chain.may_have("underlying") && !chain.may_have("forward"))?;
        }
        if let Some(greeks) = plan.inputs.get("greeks").and_then(|list| list.first())
            && !greeks.may_have("delta")
        {
            return Err(ConfigProblem::new("", "the Greeks at `greeks` have no `delta`")
                .hint("add it to `outputs` of the stage that computes them"));
        }
        let mut provided = engine::provided(&names);
        let chain = plan.inputs.get("chain").and_then(|list| list.first());
        if let Some(columns) = &mut provided.columns
            && chain.is_some_and(|chain| chain.may_have(SNAPSHOT.name))
        {
            columns.insert(SNAPSHOT.name.to_owned());
        }
        Ok(BTreeMap::from([("features".to_owned(), provided)]))
    }

    fn run(&self, config: &Self::Config, context: &Context) -> Result<Outputs, StageError> {
        let pairs = pairs(&context.given())?;
        let is_intraday = DataSet::open(context.input("chain")?)?.is_intraday(&context.store)?;
        let memos: Vec<BlobRef> = pairs
            .par_iter()
            .map(|(chain, greeks)| {
                context.memo(&smiles_memo(chain, greeks, config)?, || {
                    Ok(encode(&smiles(chain, greeks, config, context)?))
                })
            })
            .collect::<Result<_, StageError>>()?;
        let keys: Vec<PartitionKey> = pairs.iter().map(|(chain, _)| chain.key.clone()).collect();
        let load = |i: usize| {
            let key = &keys[i];
            let (times, rows) =
                decode(&context.store.blob(memos[i].blob)?, is_intraday).ok_or_else(|| {
                    StageError::new(format!("the memo of the smiles of `{}` is damaged", key.path()))
                })?;
            let symbols = std::iter::repeat_n(key.symbol()?, times.len());
            Ok(PartitionRows {
                keys: table::feature_keys(symbols, times),
                symbols: vec![rows],
            })
        };
        let features = config.features(config.days_a_year.resolve(&context.given(), "chain")?);
        let names: Vec<String> = features.iter().flat_map(Feature::columns).collect();
        let source = |i: usize| source(&pairs[i].0, memos[i]);
        let digest = engine::run(context, &named(&features)?, &keys, engine::meta(&names), source, load)?;
        Ok(Outputs::from([("features".to_owned(), digest)]))
    }

    fn cached_share(&self, config: &Self::Config, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let mut partitions = Vec::new();
        for (chain, greeks) in pairs(given)? {
            let smiles = given.known(&smiles_memo(&chain, &greeks, config)?)?;
            let source = smiles.map(|blob| source(&chain, blob)).transpose()?;
            partitions.push((chain.key, source));
        }
        let features = config.features(config.days_a_year.resolve(given, "chain")?);
        engine::share(given, &named(&features)?, &partitions).map(Some)
    }
}

/// The partitions of chain and Greeks, in pairs.
fn pairs(given: &Given<'_>) -> Result<Vec<(Partition, Partition)>, StageError> {
    let chain = DataSet::open(given.input("chain")?)?.partitions;
    let greeks = DataSet::open(given.input("greeks")?)?.partitions;
    let aligned = chain.len() == greeks.len() && chain.iter().zip(&greeks).all(|(a, b)| a.key == b.key);
    if aligned {
        Ok(chain.into_iter().zip(greeks).collect())
    } else {
        Err(unlike())
    }
}

/// The memo of a partition's smiles, which are independent of the maturities of features.
fn smiles_memo(
    chain: &Partition,
    greeks: &Partition,
    config: &OptionsSurfaceConfig,
) -> Result<Memo, StageError> {
    let settings = engine::key("smiles v1", &(config.skew_delta, config.least_days))?;
    let parts: [&[u8]; 3] = [
        chain.blob.blob.as_bytes(),
        greeks.blob.blob.as_bytes(),
        settings.as_bytes(),
    ];
    let label = format!("{} smiles", chain.key.name());
    Ok(Memo::new("features/options_surface smiles v1", &parts, label))
}

/// The source partition with the smiles in a blob, which also holds dates and the underlying's price: all
/// that features read.
fn source(chain: &Partition, smiles: BlobRef) -> Result<SourcePartition<Vec<Day>>, StageError> {
    let digest = smiles.blob.as_bytes().to_vec();
    let contents = Contents {
        symbols: vec![chain.key.symbol()?.to_owned()],
        inputs: BTreeMap::from([("implied_volatility", digest.clone())]),
        dates: digest,
    };
    Ok(SourcePartition::new(chain.key.clone(), contents, OnceRows::default()))
}

fn named(features: &[Surface]) -> Result<Vec<Named<'_, Vec<Day>>>, StageError> {
    features
        .iter()
        .map(|feature| {
            let window = match feature {
                Surface::VarianceRiskPremium {
                    window, days_a_year, ..
                } => Some((window, days_a_year)),
                _ => None,
            };
            Ok(Named {
                key: engine::key("options_surface v1", &(feature.columns(), window))?,
                feature: feature as &dyn Feature<Vec<Day>>,
            })
        })
        .collect()
}

fn unlike() -> StageError {
    StageError::new(
        "the Greeks at `greeks` are not those of the chain at `chain`: their partitions or rows differ",
    )
    .hint("connect to `greeks` the output of a stage that takes this very chain")
}

/// The columns of the chain that smiles are made of.
const CHAIN_COLUMNS: [&str; 10] = [
    "date",
    SNAPSHOT.name,
    "expiry",
    "root",
    "call",
    "strike",
    "implied_volatility",
    "underlying",
    "forward",
    "years",
];

fn smiles(
    chain: &Partition,
    greeks: &Partition,
    config: &OptionsSurfaceConfig,
    context: &Context,
) -> Result<(Vec<SnapshotTime>, Vec<Day>), StageError> {
    context.check_cancelled()?;
    let chain = table::columns_from_parquet(context.store.blob(chain.blob.blob)?, &CHAIN_COLUMNS)?;
    let greeks = table::columns_from_parquet(context.store.blob(greeks.blob.blob)?, &["delta"])?;
    if chain.num_rows() != greeks.num_rows() {
        return Err(unlike());
    }
    let times = table::snapshot_times(&chain)?;
    let expiries = table::dates(&chain, "expiry")?;
    let roots = table::texts(&chain, "root")?;
    let calls = table::bools(&chain, "call")?;
    let strikes = table::floats_or_nan(&chain, "strike")?;
    let volatility = table::floats_or_nan(&chain, "implied_volatility")
        .map_err(|err| err.hint("put a stage with `uses: greeks/implied_volatility` before this one"))?;
    let spots = table::floats_if_any(&chain, "underlying")?;
    let forwards = table::floats_if_any(&chain, "forward")?;
    let years = table::floats_if_any(&chain, "years")?;
    let deltas = table::floats_or_nan(&greeks, "delta")?;
    let least = f64::from(config.least_days) / 365.0;
    let (mut days, mut rows) = (Vec::new(), Vec::new());
    for day in table::runs(0..chain.num_rows(), |a, b| times[a] == times[b]) {
        let spot = spots[day.clone()]
            .iter()
            .copied()
            .find(|spot| *spot > 0.0)
            .unwrap_or(f64::NAN);
        let mut smiles: Vec<Smile> = Vec::new();
        for group in table::runs(day.clone(), |a, b| {
            expiries[a] == expiries[b] && roots.value(a) == roots.value(b)
        }) {
            let i = group.start;
            let time = if years[i].is_nan() {
                f64::from(expiries[i].0 - times[i].date.0) / 365.0
            } else {
                years[i]
            };
            let money = if forwards[i] > 0.0 { forwards[i] } else { spot };
            if time < least || time <= 0.0 || money.is_nan() {
                continue;
            }
            let points: Vec<Point> = group
                .filter(|&i| volatility[i] > 0.0)
                .map(|i| Point {
                    strike: strikes[i],
                    call: calls.value(i),
                    volatility: volatility[i],
                    delta: deltas[i],
                })
                .collect();
            let smile = smile(&points, money, time, config.skew_delta);
            if !smile.at_the_money.is_nan() || !smile.skew.is_nan() {
                smiles.push(smile);
            }
        }
        smiles.sort_by(|a, b| a.years.total_cmp(&b.years));
        let time = times[day.start];
        days.push(time);
        rows.push(Day {
            underlying: spot,
            smiles,
            date: time.instant.map(|_| time.date),
        });
    }
    Ok((days, rows))
}

/// Serialises snapshots: for each, its date (and instant, if there are several a day), the number of smiles,
/// the underlying's price, and the three numbers of each smile.
fn encode((times, days): &(Vec<SnapshotTime>, Vec<Day>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (time, day) in times.iter().zip(days) {
        bytes.extend(time.date.0.to_le_bytes());
        bytes.extend(time.instant.iter().flat_map(|instant| instant.to_le_bytes()));
        bytes.extend((day.smiles.len() as u32).to_le_bytes());
        bytes.extend(day.underlying.to_le_bytes());
        for smile in &day.smiles {
            for value in [smile.years, smile.at_the_money, smile.skew] {
                bytes.extend(value.to_le_bytes());
            }
        }
    }
    bytes
}

fn decode(mut bytes: &[u8], is_intraday: bool) -> Option<(Vec<SnapshotTime>, Vec<Day>)> {
    fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
        let (value, rest) = bytes.split_first_chunk::<N>()?;
        *bytes = rest;
        Some(*value)
    }
    let (mut times, mut days) = (Vec::new(), Vec::new());
    while !bytes.is_empty() {
        let date = Date(i32::from_le_bytes(take(&mut bytes)?));
        let instant = match is_intraday {
            true => Some(i64::from_le_bytes(take(&mut bytes)?)),
            false => None,
        };
        times.push(SnapshotTime { date, instant });
        let n = u32::from_le_bytes(take(&mut bytes)?);
        let underlying = f64::from_le_bytes(take(&mut bytes)?);
        let mut smiles = Vec::new();
        for _ in 0..n {
            smiles.push(Smile {
                years: f64::from_le_bytes(take(&mut bytes)?),
                at_the_money: f64::from_le_bytes(take(&mut bytes)?),
                skew: f64::from_le_bytes(take(&mut bytes)?),
            });
        }
        days.push(Day {
            underlying,
            smiles,
            date: instant.map(|_| date),
        });
    }
    Some((times, days))
}
