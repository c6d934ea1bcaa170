//! The stage `greeks/implied_volatility`.

use super::config::{ForwardSource, ImpliedVolatilityConfig, Style};
use super::conventions::{Conventions, Styles};
use super::volatilities::{add_volatility, origin};
use crate::numerics::implied::Status;
use crate::stage::chain::{PricingConfig, canonical, counts, each_partition, object, share, sums};
use crate::stage::contracts::only_carried;
use crate::stage::curves::Curves;
use crate::stage::dividends;
use crate::stage::time::{self, TimeConfig};
use arrow_array::{RecordBatch, UInt8Array};
use datasets::contract::{Contracts, Origin};
use datasets::schema::IMPLIED_VOLATILITY;
use serde_json::{Value, json};
use stages_core::dataset::{self, DataSet, Partition};
use stages_core::{
    ConfigProblem, Context, Given, InputPort, Memo, OutputPort, Outputs, PlanContext, Planned, PortType,
    Ports, Provided, RelativeCost, Share, StageError, StageKind, contracts, table,
};
use std::collections::BTreeMap;

/// The cost of an American volatility with `forward: parity` relative to `forward: rates`, as measured on a
/// day of SPY.
const AMERICAN_OF_PARITY: f64 = 72.0;
/// The number of status codes.
const STATUSES: usize = Status::ALL.len();

/// The stage `greeks/implied_volatility`: adds time to maturity, forward, discount factor and implied
/// volatility to an option chain.
///
/// For every snapshot, expiry and root, forward and discount factor are those of the chain, or come from
/// put-call parity (see [`crate::numerics::parity`]) or from rates. The price of a contract is its mid if the
/// bid is above 0 and the ask not below it, its last price if there is neither bid nor ask, and unknown
/// otherwise. If there is no implied volatility, it is null and `iv_status` gives the reason ([`Status`]); 8,
/// `within_rounding`, marks a volatility that depends on the rounding of the price.
pub struct ImpliedVolatility;

impl StageKind for ImpliedVolatility {
    type Config = ImpliedVolatilityConfig;
    const NAME: &'static str = "greeks/implied_volatility";
    const VERSION: u32 = 5;
    const ABOUT: &'static str =
        "implied volatility, forward and discount factor of every contract of an option chain";
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort::one("chain", PortType::OptionChain).doc("quotes"),
            InputPort::optional("rates", PortType::Rates)
                .doc("zero rates; without them the discount factor comes from put-call parity"),
        ],
        outputs: &[OutputPort::new("chain", PortType::OptionChain).doc(
            "the chain with years, forward, discount_factor, implied_volatility and iv_status, row by \
                row",
        )],
    };

    fn check(&self, config: &Self::Config, plan: &PlanContext) -> Planned {
        config.time.check()?;
        config.time.check_chain(plan)?;
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
        ConfigProblem::new("strikes", "at least one strike is needed")
            .hint("12 is the default")
            .when(config.strikes == 0)?;
        let [least, greatest] = config.rate_bounds;
        ConfigProblem::new("rate_bounds", "the least rate is not below the greatest")
            .hint("write [-0.05, 0.25]")
            .when(least >= greatest || least.is_nan() || greatest.is_nan())?;
        config.dividend_yield.check("dividend_yield")?;
        config.borrow_rate.check("borrow_rate")?;
        let chain = plan.inputs.get("chain").and_then(|list| list.first());
        if let Some(chain) = chain {
            if let (Some(wanted), Some(exercise)) = (config.style.exercise(), chain.exercise)
                && wanted != exercise
            {
                return Err(ConfigProblem::new(
                    "style",
                    format!(
                        "`style: {wanted}` contradicts the chain, whose contracts are {exercise} ({})",
                        Origin::Config
                    ),
                )
                .hint("leave `style` out, or correct `contract` in the stage that reads the chain"));
            }
            let quoted = chain.may_have("bid") && chain.may_have("ask");
            ConfigProblem::new("", "the chain at `chain` has neither bid and ask nor last prices")
                .hint("map `bid` and `ask`, or `last`, in the stage that reads the chain")
                .when(!quoted && !chain.may_have("last"))?;
            ConfigProblem::new(
                "style",
                "`american` needs the underlying's price, which the chain lacks",
            )
            .hint("map `underlying` in the stage that reads the chain: early exercise is decided by it")
            .when(config.style == Style::American && !chain.may_have("underlying"))?;
            ConfigProblem::new("forward", "`column` needs a column `forward`, which the chain lacks")
                .hint("map `forward` in the stage that reads the chain, or leave the setting out")
                .when(config.forward == ForwardSource::Column && !chain.may_have("forward"))?;
            ConfigProblem::new("forward", "`rates` needs the underlying's price, which the chain lacks")
                .hint("use `forward: parity`")
                .when(config.forward == ForwardSource::Rates && !chain.may_have("underlying"))?;
        }
        ConfigProblem::new("forward", "`rates` needs the input `rates`, which is not connected")
            .hint(
                "connect it, as in `needs: { chain: market.chain, rates: market.rates }`, or use \
                    `forward: parity`",
            )
            .when(config.forward == ForwardSource::Rates && !plan.inputs.contains_key("rates"))?;
        let mut provided = chain
            .cloned()
            .unwrap_or_else(|| Provided::unknown(PortType::OptionChain));
        if let Some(columns) = &mut provided.columns {
            columns.extend(IMPLIED_VOLATILITY.iter().map(|column| column.name.to_owned()));
        }
        Ok(BTreeMap::from([("chain".to_owned(), provided)]))
    }

    fn relative_cost(&self, config: &Self::Config) -> Option<RelativeCost> {
        let is_parity = match config.forward {
            ForwardSource::Auto => config.dividends.is_empty(),
            ForwardSource::Parity => true,
            ForwardSource::Column | ForwardSource::Rates => false,
        };
        let is_dear = config.style == Style::American && is_parity;
        is_dear.then(|| RelativeCost {
            times: AMERICAN_OF_PARITY,
            because: "with `style: american`, the rates and yields that `forward: parity` fits send many \
                contracts to the grid"
                .to_owned(),
            cheaper: "use `forward: rates` with `needs: { rates: … }` and `dividend_yield:`, where the \
                yield is known"
                .to_owned(),
        })
    }

    fn run(&self, config: &Self::Config, context: &Context) -> Result<Outputs, StageError> {
        let chain = DataSet::open(context.input("chain")?)?;
        let is_intraday = chain.is_intraday(&context.store)?;
        let curves = Curves::open(&context.given(), is_intraday)?;
        let mut contracts = contracts::read(&chain.meta)?;
        warn_of_assumptions(context, &contracts, &config.time);
        Styles::new(config.style, &contracts)?;
        let config = &config.for_chain(&contracts, is_intraday)?;
        if config.forward == ForwardSource::Rates {
            let way_out = "use `forward: parity`, which takes it from calls and puts";
            only_carried(&contracts, "`forward: rates`", way_out)?;
        }
        let results = each_partition(context, &chain, "implied volatility", |partition| {
            let conventions = Conventions::of(config.style, &contracts, &partition.key)?;
            let mut found = None;
            let blob = context.memo(&memo(partition, config, &conventions, curves.as_ref())?, || {
                let chain = partition.read(&context.store)?;
                if let Some(curves) = &curves {
                    curves.check_age(&chain, config.max_rates_age_days)?;
                }
                let table = add_volatility(&chain, config, &conventions, curves.as_ref())?;
                found = Some(count(&table)?);
                let source = context.store.blob(partition.blob.blob)?;
                table::extended_to_parquet(&table, source, origin)
            })?;
            let memo = Memo::new(
                "greeks/implied_volatility status counts v2",
                &[blob.blob.as_bytes()],
                format!("{} (counts)", partition.key.name()),
            );
            let counts = counts(context, &memo, || match found {
                Some(counts) => Ok(counts),
                None => {
                    let blob = context.store.blob(blob.blob)?;
                    count(&table::columns_from_parquet(blob, &["iv_status"])?)
                }
            })?;
            let key = partition.key.clone();
            Ok((Partition { key, blob }, counts))
        })?;
        let statuses = sums(Status::ALL.iter().map(|status| status.name()), &results);
        let mut meta = object(chain.meta);
        meta.insert("implied_volatility".to_owned(), json!({ "rows_by_status": statuses }));
        // A style that is set where the chain only assumes one becomes the chain's.
        if let Some(exercise) = config.style.exercise()
            && !contracts.classes.is_empty()
        {
            for facts in contracts.classes.values_mut() {
                let origin = facts.origin.get("exercise");
                if origin.is_none_or(|origin| *origin == Origin::Assumed) {
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
        let is_intraday = chain.is_intraday(given.store)?;
        let curves = Curves::open(given, is_intraday)?;
        let contracts = contracts::read(&chain.meta)?;
        let config = &config.for_chain(&contracts, is_intraday)?;
        share(given, &chain, |partition| {
            let conventions = Conventions::of(config.style, &contracts, &partition.key)?;
            memo(partition, config, &conventions, curves.as_ref())
        })
    }
}

/// Warns if a chain states no contracts, so that day count and style rest on defaults.
fn warn_of_assumptions(context: &Context, contracts: &Contracts, time: &TimeConfig) {
    if contracts.classes.is_empty() && time.calendar.is_none() {
        let message = format!(
            "the chain states no terms of its contracts; assumed are the calendar `us`, settlement at 16:00 \
            (at 9:30 of {}) and European exercise",
            time::MORNING.join(", ")
        );
        let way_out = "`ingest/option_chain` states them; or set `time: { calendar: … }` and `style`";
        context.warn(message, Some(way_out));
    }
}

/// The memo of a chain partition with its volatilities. The key covers only rates published up to the
/// partition's dates.
fn memo(
    partition: &Partition,
    config: &ImpliedVolatilityConfig,
    conventions: &Conventions,
    curves: Option<&Curves>,
) -> Result<Memo, StageError> {
    let settings = canonical(&(config.for_partition(partition), conventions))?;
    let rates = curves.map(|curves| curves.key(partition.key.range));
    let parts: [&[u8]; 4] = [
        partition.blob.blob.as_bytes(),
        settings.as_bytes(),
        &[u8::from(rates.is_some())],
        &rates.unwrap_or_default(),
    ];
    Ok(Memo::new("greeks/implied_volatility v5", &parts, partition.key.name()))
}

fn count(batch: &RecordBatch) -> Result<[u64; STATUSES], StageError> {
    let codes = batch
        .column_by_name("iv_status")
        .and_then(|column| column.as_any().downcast_ref::<UInt8Array>())
        .ok_or_else(|| StageError::new("the table has no column `iv_status`"))?;
    let mut counts = [0; STATUSES];
    for &code in codes.values() {
        counts[usize::from(code) % STATUSES] += 1;
    }
    Ok(counts)
}
