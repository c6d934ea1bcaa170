//! `greeks/implied_volatility`.

use super::contracts::{Styles, contracts, on_futures, only_carried, warn_of_assumptions};
use super::curves::{Curves, MaxAge};
use super::dividends::{self, CashDividend};
use super::time::TimeConfig;
use crate::numerics::american;
use crate::numerics::american::grid::{Dividend, Grid};
use crate::numerics::formula::Contract;
use crate::numerics::implied::{Prices, Status, implied_volatilities};
use crate::numerics::parity::{Carry, Expiry, Limits, Pair, carries};
use arrow::array::{ArrayRef, Float64Array, RecordBatch, UInt8Array};
use arrow::datatypes::{Field, Schema};
use datasets::Date;
use datasets::contract::{Contracts, Exercise, Origin};
use datasets::schema::{IMPLIED_VOLATILITY, OPTION_CHAIN};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::dataset::{self, DataSet, Partition};
use stages_core::{
    ConfigProblem, Context, Given, InputPort, Memo, OutputPort, Outputs, PlanContext, PortType, Ports, Provided,
    RelativeCost, Share, StageError, StageKind, table,
};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::special::{exp, log, log_ratio};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The source of the forward of an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForwardSource {
    /// `rates` for American contracts where there are cash `dividends` and `rates` is connected, otherwise `parity`.
    #[default]
    Auto,
    /// From put-call parity near the money; the discount factor from `rates` if connected, otherwise from parity too.
    Parity,
    /// From `rates` and `dividend_yield`: `F = S e^((r - q) T)`; of options on a future, its price.
    Rates,
}

/// The exercise style of contracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// That which the chain's contracts state; European where they state none.
    #[default]
    Auto,
    /// At expiry.
    European,
    /// At any time: the volatility is that of the American model (see [`crate::numerics::american`]). Parity binds American calls and puts only
    /// within bounds: `forward: rates` is exact where the yield is known, `forward: parity` near the money and for short expiries.
    American,
}

/// Configuration of `greeks/implied_volatility`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImpliedVolatilityConfig {
    /// The exercise style of the contracts: `auto` (by class, as the chain states it), `european` or `american`. One that contradicts the chain
    /// is an error.
    pub style: Style,
    /// The source of the forward of an expiry: `auto`, `parity` or `rates`.
    pub forward: ForwardSource,
    /// Continuous yield of the underlying, annual, decimal; read where the forward comes from rates.
    pub dividend_yield: f64,
    /// Strikes up to this |ln(K/K0)| take part in the parity fit, K0 being the strike where call and put are nearest in price.
    pub band: f64,
    /// The forward is taken from at most this many strikes, the nearest to the money.
    pub strikes: usize,
    /// The least and greatest annual rate that a fitted discount factor may imply; otherwise the nearest expiry's rate is used.
    pub rate_bounds: [f64; 2],
    /// The greatest standard error of the annual rate that a fitted discount factor may have.
    pub rate_error: f64,
    /// Cash dividends of the underlying; read where the forward comes from rates, which they lower, and of American contracts: a contract that lives to
    /// see one is priced on a grid, its spot falling by the amount on the ex-date, its yield being `dividend_yield`.
    pub dividends: Vec<CashDividend>,
    /// The day count of the time to maturity.
    pub time: TimeConfig,
    /// The age in days that a curve of `rates` may have on the day it is used for; an older one is an error.
    pub max_rates_age_days: MaxAge,
}

impl Default for ImpliedVolatilityConfig {
    fn default() -> Self {
        Self {
            style: Style::Auto,
            forward: ForwardSource::Auto,
            dividend_yield: 0.0,
            band: 0.2,
            strikes: 12,
            rate_bounds: [-0.05, 0.25],
            rate_error: 0.01,
            dividends: Vec::new(),
            time: TimeConfig::default(),
            max_rates_age_days: MaxAge::default(),
        }
    }
}

/// The cost of an American volatility under `forward: parity`, compared with `forward: rates`, as measured on a day of SPY.
const AMERICAN_OF_PARITY: f64 = 72.0;

/// Adds time to maturity, forward, discount factor and implied volatility to an option chain.
///
/// For every date, expiry and root, forward and discount factor come from put-call parity (see [`crate::numerics::parity`]) or from rates. The
/// price of a contract is its mid where it has a bid above 0 and an ask not below it, its last price where it has neither bid nor ask, and
/// none otherwise. Where there is no implied volatility it is null and `iv_status` says why ([`Status`]).
pub struct ImpliedVolatility;

impl StageKind for ImpliedVolatility {
    type Config = ImpliedVolatilityConfig;
    const NAME: &'static str = "greeks/implied_volatility";
    const VERSION: u32 = 3;
    const ABOUT: &'static str = "implied volatility, forward and discount factor of every contract of an option chain";
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort {
                name: "chain",
                ty: PortType::OptionChain,
                optional: false,
                list: false,
                doc: "quotes",
            },
            InputPort {
                name: "rates",
                ty: PortType::Rates,
                optional: true,
                list: false,
                doc: "zero rates; without them the discount factor comes from put-call parity",
            },
        ],
        outputs: &[OutputPort {
            name: "chain",
            ty: PortType::OptionChain,
            doc: "the chain with years, forward, discount_factor, implied_volatility and iv_status, row by row",
        }],
    };

    fn check(&self, config: &Self::Config, plan: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.time.check()?;
        dividends::check(&config.dividends)?;
        let positive = |name: &str, value: f64| {
            if value > 0.0 && value.is_finite() {
                Ok(())
            } else {
                Err(ConfigProblem::new(name, format!("{value} is not a positive number")))
            }
        };
        positive("band", config.band)?;
        positive("rate_error", config.rate_error)?;
        if config.strikes == 0 {
            return Err(ConfigProblem::new("strikes", "at least one strike is needed").hint("12 is the default"));
        }
        let [least, greatest] = config.rate_bounds;
        if least >= greatest || least.is_nan() || greatest.is_nan() {
            return Err(
                ConfigProblem::new("rate_bounds", "the least rate is not below the greatest")
                    .hint("write [-0.05, 0.25]"),
            );
        }
        if !config.dividend_yield.is_finite() {
            return Err(ConfigProblem::new(
                "dividend_yield",
                format!("{} is not a finite number", config.dividend_yield),
            ));
        }
        let chain = plan.inputs.get("chain").and_then(|list| list.first());
        if let Some(chain) = chain {
            let quoted = chain.may_have("bid") && chain.may_have("ask");
            if !quoted && !chain.may_have("last") {
                return Err(
                    ConfigProblem::new("", "the chain at `chain` has neither bid and ask nor last prices")
                        .hint("map `bid` and `ask`, or `last`, in the stage that reads the chain"),
                );
            }
            if config.style == Style::American && !chain.may_have("underlying") {
                return Err(ConfigProblem::new(
                    "style",
                    "`american` needs the underlying's price, which the chain lacks",
                )
                .hint("map `underlying` in the stage that reads the chain: early exercise is decided by it"));
            }
            if config.forward == ForwardSource::Rates && !chain.may_have("underlying") {
                return Err(ConfigProblem::new(
                    "forward",
                    "`rates` needs the underlying's price, which the chain lacks",
                )
                .hint("use `forward: parity`"));
            }
        }
        if config.forward == ForwardSource::Rates && !plan.inputs.contains_key("rates") {
            return Err(
                ConfigProblem::new("forward", "`rates` needs the input `rates`, which is not connected").hint(
                    "connect it, as in `needs: { chain: market.chain, rates: market.rates }`, or use `forward: parity`",
                ),
            );
        }
        let columns = chain.and_then(|chain| chain.columns.clone()).map(|mut columns| {
            columns.extend(IMPLIED_VOLATILITY.iter().map(|column| column.name.to_owned()));
            columns
        });
        let provided = Provided {
            ty: PortType::OptionChain,
            columns,
        };
        Ok(BTreeMap::from([("chain".to_owned(), provided)]))
    }

    fn relative_cost(&self, config: &Self::Config) -> Option<RelativeCost> {
        let is_parity = match config.forward {
            ForwardSource::Auto => config.dividends.is_empty(),
            ForwardSource::Parity => true,
            ForwardSource::Rates => false,
        };
        let is_dear = config.style == Style::American && is_parity;
        is_dear.then(|| RelativeCost {
            times: AMERICAN_OF_PARITY,
            because: "with `style: american`, the rates and yields that `forward: parity` fits send many contracts to the grid".to_owned(),
            cheaper: "use `forward: rates` with `needs: { rates: … }` and `dividend_yield:`, where the yield is known".to_owned(),
        })
    }

    fn run(&self, config: &Self::Config, context: &Context) -> Result<Outputs, StageError> {
        let chain = DataSet::open(context.input("chain")?)?;
        let curves = Curves::open(&context.given())?;
        let mut contracts = contracts(&chain.meta)?;
        warn_of_assumptions(context, &contracts, &config.time);
        let styles = Styles::new(config.style, &contracts)?;
        let config = &of_chain(config, &contracts)?;
        if config.forward == ForwardSource::Rates {
            let way_out = "use `forward: parity`, which takes it from calls and puts";
            only_carried(&contracts, "`forward: rates`", way_out)?;
        }
        let conventions = |partition: &Partition| Conventions::of(config, &contracts, partition);
        let (done, total) = (AtomicU64::new(0), chain.partitions.len() as u64);
        let results: Vec<(Partition, [u64; 8])> = chain
            .partitions
            .par_iter()
            .map(|partition| {
                context.check_cancelled()?;
                let conventions = conventions(partition)?;
                let blob = context.memo(&memo(partition, config, &conventions, curves.as_ref())?, || {
                    let chain = partition.read(&context.store)?;
                    if let Some(curves) = &curves {
                        curves.check_age(&chain, config.max_rates_age_days)?;
                    }
                    table::to_parquet(&add_volatility(&chain, config, &conventions, curves.as_ref())?)
                })?;
                let counts = Memo::new(
                    "greeks/implied_volatility status counts v1",
                    &[blob.blob.as_bytes()],
                    format!("{} (counts)", partition.key.name()),
                );
                let counts = context.memo(&counts, || {
                    let batch = table::from_parquet(context.store.blob(blob.blob)?)?;
                    Ok(count(&batch)?.iter().flat_map(|n| n.to_le_bytes()).collect())
                })?;
                let counts = context.store.blob(counts.blob)?;
                let mut totals = [0_u64; 8];
                for (total, bytes) in totals.iter_mut().zip(counts.as_chunks::<8>().0) {
                    *total = u64::from_le_bytes(*bytes);
                }
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                context.progress(
                    done,
                    Some(total),
                    format!(
                        "implied volatility {} {}",
                        partition.key.symbols, partition.key.range.from
                    ),
                );
                let key = partition.key.clone();
                Ok((Partition { key, blob }, totals))
            })
            .collect::<Result<_, StageError>>()?;
        let mut counts = serde_json::Map::new();
        for status in Status::ALL {
            let n: u64 = results
                .iter()
                .map(|(_, counts)| counts[usize::from(status.code())])
                .sum();
            counts.insert(status.name().to_owned(), n.into());
        }
        let mut meta = match chain.meta {
            Value::Object(map) => map,
            _ => serde_json::Map::new(),
        };
        meta.insert("implied_volatility".to_owned(), json!({ "rows_by_status": counts }));
        // A style that was set where the chain only assumed one is the chain's from here on.
        if config.style != Style::Auto && !contracts.classes.is_empty() {
            for facts in contracts.classes.values_mut() {
                if facts
                    .origin
                    .get("exercise")
                    .is_none_or(|origin| *origin == Origin::Assumed)
                    && let Styles::All(exercise) = styles
                {
                    facts.terms.exercise = Some(exercise);
                    facts.origin.insert("exercise".to_owned(), Origin::Config);
                }
            }
            meta.insert("contracts".to_owned(), json!(contracts));
        }
        let partitions = results.into_iter().map(|(partition, _)| partition);
        let digest = dataset::write(&context.store, PortType::OptionChain, Value::Object(meta), partitions)?;
        Ok(Outputs::from([("chain".to_owned(), digest)]))
    }

    fn cached_share(&self, config: &Self::Config, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let chain = DataSet::open(given.input("chain")?)?;
        let curves = Curves::open(given)?;
        let contracts = contracts(&chain.meta)?;
        let config = &of_chain(config, &contracts)?;
        let memos: Vec<Memo> = chain
            .partitions
            .iter()
            .map(|partition| {
                let conventions = Conventions::of(config, &contracts, partition)?;
                memo(partition, config, &conventions, curves.as_ref())
            })
            .collect::<Result<_, StageError>>()?;
        Share::of_memos("partitions", given, &memos).map(Some)
    }
}

/// The configuration with the day count of the chain's contracts.
fn of_chain(config: &ImpliedVolatilityConfig, contracts: &Contracts) -> Result<ImpliedVolatilityConfig, StageError> {
    Ok(ImpliedVolatilityConfig {
        time: config.time.of_chain(contracts)?,
        ..config.clone()
    })
}

/// The conventions of the contracts of a partition, by root.
#[derive(Debug, Serialize)]
pub(super) struct Conventions {
    styles: Styles,
    /// Roots of options on futures.
    on_futures: BTreeSet<String>,
}

impl Conventions {
    fn of(config: &ImpliedVolatilityConfig, contracts: &Contracts, partition: &Partition) -> Result<Self, StageError> {
        Ok(Self {
            styles: Styles::of(config.style, contracts, &partition.key)?,
            on_futures: match partition.key.symbol() {
                Ok(symbol) => on_futures(&contracts.of_symbol(symbol)),
                Err(_) => on_futures(contracts),
            },
        })
    }
}

/// A partition of the chain with its volatilities. Its key includes only rates published by its dates.
fn memo(
    partition: &Partition,
    config: &ImpliedVolatilityConfig,
    conventions: &Conventions,
    curves: Option<&Curves>,
) -> Result<Memo, StageError> {
    let settings = serde_json::to_value((config, conventions)).map_err(|err| StageError::new(err.to_string()))?;
    let settings = cache::canonical_json(&settings);
    let rates = curves.map(|curves| curves.key(partition.key.range));
    let parts: [&[u8]; 4] = [
        partition.blob.blob.as_bytes(),
        settings.as_bytes(),
        &[u8::from(rates.is_some())],
        &rates.unwrap_or_default(),
    ];
    Ok(Memo::new("greeks/implied_volatility v3", &parts, partition.key.name()))
}

fn count(batch: &RecordBatch) -> Result<[u64; 8], StageError> {
    let codes = batch
        .column_by_name("iv_status")
        .and_then(|column| column.as_any().downcast_ref::<UInt8Array>())
        .ok_or_else(|| StageError::new("the table has no column `iv_status`"))?;
    let mut counts = [0; 8];
    for &code in codes.values() {
        counts[usize::from(code) % 8] += 1;
    }
    Ok(counts)
}

/// The columns of a chain that the numerics read.
struct Quotes<'a> {
    dates: Vec<Date>,
    expiries: Vec<Date>,
    roots: &'a arrow::array::StringArray,
    strikes: Vec<f64>,
    calls: Vec<bool>,
    bids: Vec<f64>,
    asks: Vec<f64>,
    lasts: Vec<f64>,
    spots: Vec<f64>,
}

impl<'a> Quotes<'a> {
    fn new(batch: &'a RecordBatch) -> Result<Self, StageError> {
        let calls = table::bools(batch, "call")?;
        Ok(Self {
            dates: table::dates(batch, "date")?,
            expiries: table::dates(batch, "expiry")?,
            roots: table::texts(batch, "root")?,
            strikes: table::floats_or_nan(batch, "strike")?,
            calls: (0..batch.num_rows()).map(|i| calls.value(i)).collect(),
            bids: table::floats_or_nan(batch, "bid")?,
            asks: table::floats_or_nan(batch, "ask")?,
            lasts: table::floats_or_nan(batch, "last")?,
            spots: table::floats_or_nan(batch, "underlying")?,
        })
    }

    /// Price and spread of a row; NaN without a quote.
    fn price(&self, i: usize) -> (f64, f64) {
        let (bid, ask, last) = (self.bids[i], self.asks[i], self.lasts[i]);
        if bid > 0.0 && ask >= bid {
            (0.5 * (bid + ask), ask - bid)
        } else if bid.is_nan() && ask.is_nan() && last >= 0.0 {
            (last, 0.0)
        } else {
            (f64::NAN, f64::NAN)
        }
    }

    /// The rows of `rows` with both a call and a put at a strike.
    fn pairs(&self, rows: Range<usize>) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for i in rows.start..rows.end.saturating_sub(1) {
            if self.calls[i] && !self.calls[i + 1] && self.strikes[i] == self.strikes[i + 1] {
                let ((call, wide), (put, far)) = (self.price(i), self.price(i + 1));
                let pair = Pair {
                    strike: self.strikes[i],
                    difference: call - put,
                    spread: wide + far,
                };
                if pair.difference.is_finite() && pair.strike > 0.0 && call > 0.0 && put > 0.0 {
                    pairs.push(pair);
                }
            }
        }
        pairs
    }
}

/// Ranges of equal neighbours.
fn runs(rows: Range<usize>, same: impl Fn(usize, usize) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for i in rows {
        match runs.last_mut() {
            Some(run) if same(run.start, i) => run.end = i + 1,
            _ => runs.push(i..i + 1),
        }
    }
    runs
}

/// The terms of a row's volatility, beside its strike.
#[derive(Clone, Copy)]
struct Terms {
    price: f64,
    forward: f64,
    discount: f64,
    years: f64,
}

/// The chain with the columns of [`IMPLIED_VOLATILITY`].
pub(super) fn add_volatility(
    batch: &RecordBatch,
    config: &ImpliedVolatilityConfig,
    conventions: &Conventions,
    curves: Option<&Curves>,
) -> Result<RecordBatch, StageError> {
    let quotes = Quotes::new(batch)?;
    let days = runs(0..batch.num_rows(), |a, b| quotes.dates[a] == quotes.dates[b]);
    let terms: Vec<Terms> = days
        .into_par_iter()
        .flat_map_iter(|day| one_day(&quotes, day, config, conventions, curves))
        .collect();
    let values = |f: fn(&Terms) -> f64| terms.iter().map(f).collect::<Vec<f64>>();
    let (price, forward) = (values(|row| row.price), values(|row| row.forward));
    let (discount, years) = (values(|row| row.discount), values(|row| row.years));
    let european = |price: &[f64]| {
        implied_volatilities(&Prices {
            price,
            forward: &forward,
            strike: &quotes.strikes,
            discount: &discount,
            years: &years,
            call: &quotes.calls,
        })
    };
    let (volatility, status) = match &conventions.styles {
        Styles::All(Exercise::European) => european(&price),
        Styles::All(Exercise::American) => american_volatilities(&quotes, &terms, config),
        styles @ Styles::American(_) => {
            // Each method is given the prices of its own rows, which passes the others by.
            let is_american: Vec<bool> = (0..terms.len())
                .map(|i| styles.is_american(quotes.roots.value(i)))
                .collect();
            let of = |american: bool| -> Vec<f64> {
                let own = |(price, is): (&f64, &bool)| if *is == american { *price } else { f64::NAN };
                price.iter().zip(&is_american).map(own).collect()
            };
            let (mut volatility, mut status) = european(&of(false));
            let american: Vec<Terms> = terms
                .iter()
                .zip(of(true))
                .map(|(terms, price)| Terms { price, ..*terms })
                .collect();
            let found = american_volatilities(&quotes, &american, config);
            for (i, is) in is_american.iter().enumerate() {
                if *is {
                    (volatility[i], status[i]) = (found.0[i], found.1[i]);
                }
            }
            (volatility, status)
        }
    };
    let (years, status): (ArrayRef, ArrayRef) =
        (Arc::new(Float64Array::from(years)), Arc::new(UInt8Array::from(status)));
    let column = |name: &str| -> ArrayRef {
        match name {
            "years" => years.clone(),
            "forward" => Arc::new(table::nullable(&forward)),
            "discount_factor" => Arc::new(table::nullable(&discount)),
            "implied_volatility" => Arc::new(table::nullable(&volatility)),
            _ => status.clone(),
        }
    };
    let is_new = |name: &str| IMPLIED_VOLATILITY.iter().any(|column| column.name == name);
    let mut fields: Vec<Arc<Field>> = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        if !is_new(field.name()) {
            fields.push(field.clone());
            arrays.push(array.clone());
        }
    }
    // The volatility keeps its position in the chain's schema; the other columns follow.
    let place = OPTION_CHAIN
        .iter()
        .position(|column| column.name == "implied_volatility");
    for new in IMPLIED_VOLATILITY {
        let at = match place {
            Some(place) if new.name == "implied_volatility" && place <= fields.len() => place,
            _ => fields.len(),
        };
        fields.insert(at, Arc::new(table::field(new)));
        arrays.insert(at, column(new.name));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

fn one_day(
    quotes: &Quotes<'_>,
    day: Range<usize>,
    config: &ImpliedVolatilityConfig,
    conventions: &Conventions,
    curves: Option<&Curves>,
) -> Vec<Terms> {
    let date = quotes.dates[day.start];
    let spot = quotes.spots[day.clone()]
        .iter()
        .copied()
        .find(|spot| *spot > 0.0)
        .unwrap_or(f64::NAN);
    let groups = runs(day.clone(), |a, b| {
        quotes.expiries[a] == quotes.expiries[b] && quotes.roots.value(a) == quotes.roots.value(b)
    });
    // American contracts with cash dividends: parity does not hold for them, and a yield fitted to it costs a grid for each.
    let by_rates = |group: &Range<usize>| match config.forward {
        ForwardSource::Parity => false,
        ForwardSource::Rates => true,
        ForwardSource::Auto => {
            !config.dividends.is_empty()
                && curves.is_some()
                && conventions.styles.is_american(quotes.roots.value(group.start))
        }
    };
    let expiries: Vec<Expiry> = groups
        .iter()
        .map(|group| {
            let years = config
                .time
                .years(date, quotes.expiries[group.start], quotes.roots.value(group.start));
            let rate = curves
                .map(|curves| curves.rate(date, years))
                .filter(|rate| !rate.is_nan());
            let pairs = if by_rates(group) {
                Vec::new()
            } else {
                quotes.pairs(group.clone())
            };
            Expiry { years, pairs, rate }
        })
        .collect();
    let of_rates = |expiry: &Expiry, group: &Range<usize>| {
        let rate = expiry.rate.filter(|_| expiry.years > 0.0).unwrap_or(f64::NAN);
        let discount = exp(-rate * expiry.years);
        // The price of a future is its forward.
        if conventions.on_futures.contains(quotes.roots.value(group.start)) {
            return Carry {
                forward: spot,
                discount,
            };
        }
        let carry = rate - config.dividend_yield;
        let cash = dividends::ahead(&config.dividends, date, quotes.expiries[group.start], expiry.years);
        Carry {
            forward: spot * exp(carry * expiry.years) - dividends::from_forward(&cash, carry, expiry.years),
            discount,
        }
    };
    let mut carry: Vec<Carry> = if groups.iter().all(by_rates) {
        Vec::new()
    } else {
        let limits = Limits {
            band: config.band,
            strikes: config.strikes,
            least_rate: config.rate_bounds[0],
            greatest_rate: config.rate_bounds[1],
            rate_error: config.rate_error,
        };
        carries(&expiries, spot, &limits)
    };
    carry.resize(
        groups.len(),
        Carry {
            forward: f64::NAN,
            discount: f64::NAN,
        },
    );
    for ((carry, expiry), group) in carry.iter_mut().zip(&expiries).zip(&groups) {
        if by_rates(group) {
            *carry = of_rates(expiry, group);
        }
    }
    let mut terms = Vec::with_capacity(day.len());
    for ((group, expiry), carry) in groups.into_iter().zip(&expiries).zip(carry) {
        terms.extend(group.map(|i| Terms {
            price: quotes.price(i).0,
            forward: carry.forward,
            discount: carry.discount,
            years: expiry.years,
        }));
    }
    terms
}

/// The volatilities and statuses of American contracts: the rate is that of the discount factor, and the yield that of the forward, unless there are
/// cash dividends ahead.
fn american_volatilities(
    quotes: &Quotes<'_>,
    terms: &[Terms],
    config: &ImpliedVolatilityConfig,
) -> (Vec<f64>, Vec<u8>) {
    const CHUNK: usize = 64;
    let contract = |i: usize, terms: &Terms| {
        let rate = -log(terms.discount) / terms.years;
        Contract {
            spot: quotes.spots[i],
            strike: quotes.strikes[i],
            years: terms.years,
            rate,
            dividend_yield: rate - log_ratio(terms.forward, quotes.spots[i]) / terms.years,
            volatility: f64::NAN,
            call: quotes.calls[i],
        }
    };
    terms
        .par_chunks(CHUNK)
        .enumerate()
        .flat_map_iter(|(chunk, terms)| {
            let first = chunk * CHUNK;
            let mut prices: Vec<f64> = terms.iter().map(|terms| terms.price).collect();
            let contracts: Vec<Contract> = (first..).zip(terms).map(|(i, terms)| contract(i, terms)).collect();
            let cash: Vec<Vec<Dividend>> = (first..)
                .zip(terms)
                .map(|(i, terms)| dividends::ahead(&config.dividends, quotes.dates[i], quotes.expiries[i], terms.years))
                .collect();
            // The columns' method passes those with cash by.
            for (price, cash) in prices.iter_mut().zip(&cash) {
                *price = if cash.is_empty() { *price } else { f64::NAN };
            }
            let mut found = american::implied_volatilities(&prices, &contracts, InstructionSet::detect());
            for (((found, cash), contract), terms) in found.iter_mut().zip(&cash).zip(&contracts).zip(terms) {
                if !cash.is_empty() {
                    let contract = Contract {
                        dividend_yield: config.dividend_yield,
                        ..*contract
                    };
                    *found = american::implied_on_grid(terms.price, &contract, cash, Grid::STANDARD);
                }
            }
            found
        })
        .map(|(volatility, status)| (volatility, status.code()))
        .unzip()
}
