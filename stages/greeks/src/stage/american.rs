//! The stage `greeks/american`.

use super::chain::{PricedChain, PricingConfig, counts, docs, each_partition, share, sums};
use super::contracts::{check_exercise, only, with_forward};
use super::curves::{Curves, MaxAge};
use super::dividends::{self, CashDividend};
use super::outputs::{self, KEYS};
use super::ports;
use super::stated::{PricingTerms, read_priced};
use super::time::TimeConfig;
use super::yields::Yield;
use crate::numerics::american::grid::{Dividend, Grid, on_grid};
use crate::numerics::american::{Reason, Scheme, greeks};
use crate::numerics::formula::{Contract, Greeks};
use arrow_array::RecordBatch;
use datasets::contract::{Contracts, Exercise};
use datasets::schema::GREEKS;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::dataset::{self, Partition};
use stages_core::{
    Context, Given, Memo, Outputs, PlanContext, Planned, PortType, Ports, Share, StageError, StageKind,
};
use stages_numerics::dispatch::InstructionSet;
use std::collections::BTreeMap;

/// Configuration of `greeks/american`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AmericanConfig {
    /// Interest rate, continuously compounded, annual, decimal: used where the chain has no discount factor
    /// and `rates` is not connected or has no rate for the date.
    pub rate: f64,
    /// Continuous yield of the underlying, annual, decimal: used where the chain has neither a forward nor a
    /// yield. With a forward the yield is `r - ln(F/S)/T`. A number, or by symbol a number or
    /// `{ DATE: VALUE, … }`, each value from its date on. One that contradicts a yield of the chain is an
    /// error.
    pub dividend_yield: Yield,
    /// Continuous rate of borrowing the underlying, stated as `dividend_yield` is, to which it adds.
    #[serde(skip_serializing_if = "Yield::is_unset")]
    pub borrow_rate: Yield,
    /// Cash dividends of the underlying. A contract that lives to see one is priced by integrals or on a
    /// grid, its spot falling by the amount on the ex-date (see [`crate::numerics::american::grid`]), and its
    /// yield is that of the chain or `dividend_yield`: a forward holds the cash already.
    pub dividends: Vec<CashDividend>,
    /// The day count of the time to maturity where the chain has no `years`.
    pub time: TimeConfig,
    /// The age in days that a curve of `rates` may have on the day it is used for; an older one is an error.
    pub max_rates_age_days: MaxAge,
}

impl PricingConfig for AmericanConfig {
    fn terms(&mut self) -> (&mut TimeConfig, [&mut Yield; 2]) {
        (&mut self.time, [&mut self.dividend_yield, &mut self.borrow_rate])
    }
}

/// The stage `greeks/american`: price and Greeks of every American contract of an option chain that has an
/// implied volatility, row by row beside the chain. They are null where there is no volatility, and where the
/// model refuses the contract (see [`crate::numerics::american::Reason`]; the artifact's metadata has the
/// counts).
pub struct American;

impl StageKind for American {
    type Config = AmericanConfig;
    const NAME: &'static str = "greeks/american";
    const VERSION: u32 = 5;
    const ABOUT: &'static str = "price and Greeks of American options by spectral collocation";
    const PORTS: Ports = ports::PORTS;

    fn check(&self, config: &Self::Config, plan: &PlanContext) -> Planned {
        config.time.check()?;
        config.time.check_chain(plan)?;
        check_exercise(Exercise::American, plan, Self::NAME)?;
        dividends::check(&config.dividends)?;
        ports::check_rates(config.rate, &config.dividend_yield, &config.borrow_rate)?;
        ports::check_columns(
            plan,
            "put a stage with `uses: greeks/implied_volatility` and `style: american` before this one and \
            connect its chain",
            |_| true,
            "map `underlying` in the stage that reads the chain: early exercise is decided by it",
        )?;
        let provided = ports::greeks(plan, GREEKS);
        Ok(BTreeMap::from([("greeks".to_owned(), provided)]))
    }

    fn run(&self, config: &Self::Config, context: &Context) -> Result<Outputs, StageError> {
        let check = |contracts: &Contracts| only(Exercise::American, contracts, Self::NAME);
        let priced = PricedChain::open(&context.given(), config, check)?;
        let PricedChain {
            chain,
            contracts,
            curves,
            config,
        } = &priced;
        let results = each_partition(context, chain, "American Greeks", |partition| {
            let mut found = None;
            let read = || read_priced(&context.store, partition);
            let blob = context.memo(&memo(&priced, partition)?, || {
                let chain = with_forward(read()?, contracts, Self::NAME)?;
                curves.check_age(&chain, config.max_rates_age_days)?;
                let (batch, counts) = chain_greeks(&chain, config, curves)?;
                found = Some(counts);
                outputs::to_parquet(&batch, partition, context)
            })?;
            let label = format!("{} (counts)", partition.key.name());
            let memo = priced.memo("greeks/american reason counts v3", partition, label)?;
            let counts = counts(context, &memo, || match found {
                Some(counts) => Ok(counts),
                None => Ok(chain_greeks(&read()?, config, curves)?.1),
            })?;
            let key = partition.key.clone();
            Ok((Partition { key, blob }, counts))
        })?;
        let reasons = sums(Reason::ALL.iter().map(|reason| reason.name()), &results);
        let meta = json!({ "model": "american", "columns": docs(GREEKS), "rows_by_reason": reasons });
        let partitions = results.into_iter().map(|(partition, _)| partition);
        let digest = dataset::write(&context.store, PortType::Greeks, meta, partitions)?;
        Ok(Outputs::from([("greeks".to_owned(), digest)]))
    }

    fn cached_share(&self, config: &Self::Config, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let priced = PricedChain::open(given, config, |_| Ok(()))?;
        share(given, &priced.chain, |partition| memo(&priced, partition))
    }
}

/// The memo of the Greeks of a chain partition.
fn memo(priced: &PricedChain<AmericanConfig>, partition: &Partition) -> Result<Memo, StageError> {
    priced.memo("greeks/american v4", partition, partition.key.name())
}

/// The table of Greeks beside a chain, and the number of rows by reason.
fn chain_greeks(
    batch: &RecordBatch,
    config: &AmericanConfig,
    curves: &Curves,
) -> Result<(RecordBatch, [u64; Reason::ALL.len()]), StageError> {
    let set = (&config.dividend_yield, &config.borrow_rate);
    let mut terms = PricingTerms::of(batch, &config.time, curves, config.rate, set)?;
    let mut with_cash: Vec<(usize, Vec<Dividend>, f64)> = Vec::new();
    for i in 0..batch.num_rows() {
        let (date, expiry) = (terms.times[i].date, terms.expiries[i]);
        let cash = dividends::ahead(&config.dividends, date, expiry, terms.years[i]);
        if cash.is_empty() {
            terms.take_yield(i);
        } else {
            // A volatility of NaN makes the batch method skip the row.
            with_cash.push((i, cash, std::mem::replace(&mut terms.volatility[i], f64::NAN)));
        }
    }
    let columns = terms.columns();
    let mut values = greeks(&columns, Scheme::STANDARD, InstructionSet::detect());
    let on_grids: Vec<(usize, (Greeks, Reason))> = with_cash
        .into_par_iter()
        .map(|(i, cash, volatility)| {
            let contract = Contract {
                volatility,
                ..columns.option(i)
            };
            (i, on_grid(&contract, &cash, Grid::STANDARD))
        })
        .collect();
    for (i, (found, reason)) in on_grids {
        values.reasons[i] = reason;
        for (column, value) in values.greeks.iter_mut().zip(found.to_array()) {
            column[i] = value;
        }
    }
    let mut counts = [0; Reason::ALL.len()];
    for reason in &values.reasons {
        counts[*reason as usize] += 1;
    }
    let columns = GREEKS[KEYS.len()..].iter();
    Ok((outputs::beside(batch, columns.zip(&values.greeks))?, counts))
}
