//! The ports shared by the stages of Greeks.

use super::yields::Yield;
use datasets::schema::{Column, SNAPSHOT};
use stages_core::{ConfigProblem, InputPort, OutputPort, PlanContext, PortType, Ports, Provided};

pub(super) const PORTS: Ports = Ports {
    inputs: &[
        InputPort::one("chain", PortType::OptionChain).doc("option chain with implied volatility"),
        InputPort::optional("rates", PortType::Rates)
            .doc("zero rates, where the chain has no discount factor"),
    ],
    outputs: &[OutputPort::new("greeks", PortType::Greeks)
        .doc("price, delta, gamma, vega, theta, rho, vanna, volga, charm, row by row beside the chain")],
};

/// The columns of a table of Greeks; it has instants if the chain may have them.
pub(super) fn greeks(plan: &PlanContext, columns: &[Column]) -> Provided {
    let chain = plan.inputs.get("chain").and_then(|list| list.first());
    let instants = chain.filter(|chain| chain.may_have(SNAPSHOT.name)).map(|_| &SNAPSHOT);
    let columns = columns.iter().chain(instants);
    Provided::columns(PortType::Greeks, columns.map(|column| column.name))
}

/// Refuses numbers that cannot be annual rates.
pub(super) fn check_rates(
    rate: f64,
    dividend_yield: &Yield,
    borrow_rate: &Yield,
) -> Result<(), ConfigProblem> {
    Yield::All(rate).check("rate")?;
    dividend_yield.check("dividend_yield")?;
    borrow_rate.check("borrow_rate")
}

/// Refuses a chain without implied volatilities, or without prices of the underlying if the model `needs`
/// them, with a hint for each.
pub(super) fn check_columns(
    plan: &PlanContext,
    volatility_hint: &str,
    needs: impl FnOnce(&Provided) -> bool,
    underlying_hint: &str,
) -> Result<(), ConfigProblem> {
    let Some(chain) = plan.inputs.get("chain").and_then(|list| list.first()) else {
        return Ok(());
    };
    ConfigProblem::new("", "the chain at `chain` has no implied volatility")
        .hint(volatility_hint)
        .when(!chain.may_have("implied_volatility"))?;
    ConfigProblem::new("", "the chain at `chain` has no price of the underlying")
        .hint(underlying_hint)
        .when(!chain.may_have("underlying") && needs(chain))
}
