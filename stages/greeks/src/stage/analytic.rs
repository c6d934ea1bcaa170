//! The stage `greeks/analytic`.

use super::chain::{PricedChain, PricingConfig, docs, each_partition, share};
use super::contracts::{check_exercise, only, with_forward};
use super::curves::{Curves, MaxAge};
use super::outputs::{self, KEYS, Output};
use super::ports;
use super::stated::{PricingTerms, read_priced};
use super::time::TimeConfig;
use super::yields::Yield;
use crate::numerics::batch::greeks;
use crate::numerics::formula::Model;
use arrow_array::RecordBatch;
use datasets::contract::{Contracts, Exercise};
use datasets::schema::Column;
use serde_json::json;
use stages_core::dataset::{self, Partition};
use stages_core::{
    Context, Given, Memo, Outputs, PlanContext, Planned, PortType, Ports, Share, StageError, StageKind,
};
use stages_numerics::special::exp;
use std::collections::BTreeMap;

stages_core::settings! {
    /// Configuration of `greeks/analytic`.
    pub struct AnalyticConfig {
        /// The pricing model: `black_scholes_merton` or `black_76`.
        pub model: Model = Model::default(),
        /// Interest rate, continuously compounded, annual, decimal: used where the chain has no discount
        /// factor and `rates` is not connected or has no rate for the date.
        pub rate: f64 = 0.0,
        /// Continuous yield of the underlying, annual, decimal: used where the chain has neither a forward
        /// nor a yield. With a forward the yield is `r - ln(F/S)/T`. A number, or by symbol a number or `{
        /// DATE: VALUE, … }`, each value from its date on. One that contradicts a yield of the chain is an
        /// error.
        pub dividend_yield: Yield = Yield::default(),
        /// Continuous rate of borrowing the underlying, stated as `dividend_yield` is, to which it adds.
        #[serde(skip_serializing_if = "Yield::is_unset")]
        pub borrow_rate: Yield = Yield::default(),
        /// The columns of the table of Greeks, in this order. Of the 17 there are, `price`, `delta`, `gamma`,
        /// `vega`, `theta`, `rho`, `vanna`, `volga` and `charm` are the default; `phi`, `veta`, `speed`,
        /// `zomma`, `color`, `ultima`, `dual_delta` and `dual_gamma` cost more.
        pub outputs: Vec<Output> = Output::standard(),
        /// The day count of the time to maturity where the chain has no `years`.
        pub time: TimeConfig = TimeConfig::default(),
        /// The age in days that a curve of `rates` may have on the day it is used for; an older one is an
        /// error.
        pub max_rates_age_days: MaxAge = MaxAge::default(),
    }
}

impl PricingConfig for AnalyticConfig {
    fn terms(&mut self) -> (&mut TimeConfig, [&mut Yield; 2]) {
        (&mut self.time, [&mut self.dividend_yield, &mut self.borrow_rate])
    }
}

impl AnalyticConfig {
    /// The columns of the table of Greeks.
    fn columns(&self) -> Vec<Column> {
        let outputs = self.outputs.iter().map(|output| output.column());
        KEYS.iter().chain(outputs).copied().collect()
    }
}

/// The stage `greeks/analytic`: Greeks of every contract of an option chain that has an implied volatility,
/// row by row beside the chain; null where there is none.
///
/// Black-Scholes-Merton uses the price of the underlying, Black-76 the forward (from the chain, or `S e^((r -
/// q) T)`), which its delta, gamma, vanna and charm then refer to.
pub struct Analytic;

impl StageKind for Analytic {
    type Config = AnalyticConfig;
    const NAME: &'static str = "greeks/analytic";
    const VERSION: u32 = 4;
    const ABOUT: &'static str = "price and Greeks by Black-Scholes-Merton or Black-76";
    const PORTS: Ports = ports::PORTS;

    fn check(&self, config: &Self::Config, plan: &PlanContext) -> Planned {
        config.time.check()?;
        config.time.check_chain(plan)?;
        check_exercise(Exercise::European, plan, Self::NAME)?;
        ports::check_rates(config.rate, &config.dividend_yield, &config.borrow_rate)?;
        outputs::check(&config.outputs, config.model)?;
        ports::check_columns(
            plan,
            "put a stage with `uses: greeks/implied_volatility` before this one and connect its chain",
            |chain| config.model != Model::Black76 || !chain.may_have("forward"),
            "map `underlying` in the stage that reads the chain, or use `model: black_76` after \
            `greeks/implied_volatility`",
        )?;
        let provided = ports::greeks(plan, &config.columns());
        Ok(BTreeMap::from([("greeks".to_owned(), provided)]))
    }

    fn run(&self, config: &Self::Config, context: &Context) -> Result<Outputs, StageError> {
        let check = |contracts: &Contracts| only(Exercise::European, contracts, Self::NAME);
        let priced = PricedChain::open(&context.given(), config, check)?;
        let PricedChain {
            chain,
            contracts,
            curves,
            config,
        } = &priced;
        let partitions = each_partition(context, chain, "Greeks", |partition| {
            let blob = context.memo(&memo(&priced, partition)?, || {
                let chain = read_priced(&context.store, partition)?;
                let chain = with_forward(chain, contracts, Self::NAME)?;
                curves.check_age(&chain, config.max_rates_age_days)?;
                outputs::to_parquet(&chain_greeks(&chain, config, curves)?, partition, context)
            })?;
            let key = partition.key.clone();
            Ok(Partition { key, blob })
        })?;
        let meta = json!({ "model": config.model, "columns": docs(&config.columns()) });
        let digest = dataset::write(&context.store, PortType::Greeks, meta, partitions)?;
        Ok(Outputs::from([("greeks".to_owned(), digest)]))
    }

    fn cached_share(&self, config: &Self::Config, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let priced = PricedChain::open(given, config, |_| Ok(()))?;
        share(given, &priced.chain, |partition| memo(&priced, partition))
    }
}

/// The memo of the Greeks of a chain partition.
fn memo(priced: &PricedChain<AnalyticConfig>, partition: &Partition) -> Result<Memo, StageError> {
    priced.memo("greeks/analytic v3", partition, partition.key.name())
}

/// The table of Greeks beside a chain.
pub(super) fn chain_greeks(
    batch: &RecordBatch,
    config: &AnalyticConfig,
    curves: &Curves,
) -> Result<RecordBatch, StageError> {
    let set = (&config.dividend_yield, &config.borrow_rate);
    let mut terms = PricingTerms::of(batch, &config.time, curves, config.rate, set)?;
    for i in 0..batch.num_rows() {
        match config.model {
            Model::BlackScholesMerton => terms.take_yield(i),
            Model::Black76 if terms.forward[i] > 0.0 => terms.spot[i] = terms.forward[i],
            Model::Black76 => {
                terms.spot[i] *= exp((terms.rate[i] - terms.dividend_yield[i]) * terms.years[i]);
            }
        }
    }
    let columns = terms.columns();
    let values = outputs::select(&config.outputs, &columns, greeks(&columns, config.model), config.model);
    let columns = config.outputs.iter().map(|output| output.column());
    outputs::beside(batch, columns.zip(&values))
}
