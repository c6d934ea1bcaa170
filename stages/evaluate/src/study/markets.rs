//! The backtests of a study by market: those whose worlds have the same prices are of one market.

use super::{LEAST_SEEDS, MORE_SEEDS, few};
use crate::compare::agent::{Agent, Common, POLICY};
use crate::panel::Sums;
use crate::trajectory::RISK_AVERSION;
use cache::Store;
use stages_core::{Input, LEAST_OBSERVATIONS, StageError};
use std::collections::BTreeMap;

/// The strategies of a backtest that are the policy in another mode.
const MODES: [&str; 2] = ["drawn", "greedy"];

/// A backtest of one policy.
pub(super) struct Backtest {
    policy: Agent,
    baselines: BTreeMap<String, Agent>,
    /// Above 0 if the policy is blind; `None` where that is unknown.
    pub blind: Option<f64>,
    /// The risk aversion by which the backtest measures utility; NaN where it is not stated.
    risk_aversion: f64,
}

impl Backtest {
    /// Reads a backtest, with its baselines or without.
    pub(super) fn read(store: &Store, input: &Input, baselines: bool) -> Result<Self, StageError> {
        let wanted = |name: &str| name == POLICY || baselines && !MODES.contains(&name);
        let mut strategies = Agent::strategies(store, &input.artifact, &wanted)?;
        let policy = strategies.remove(POLICY).ok_or_else(|| {
            StageError::new("a backtest has no policy")
                .hint("connect the trajectories of `evaluate/backtest`")
        })?;
        Ok(Self {
            policy,
            baselines: strategies,
            blind: input.artifact.meta["blind"].as_f64(),
            risk_aversion: input.artifact.meta[RISK_AVERSION].as_f64().unwrap_or(f64::NAN),
        })
    }
}

/// The sums of the excess returns of all strategies in one market, by seed and world.
pub(super) struct Market {
    pub agents: BTreeMap<String, Vec<Vec<Sums>>>,
    /// The rules of the first agent's first backtest, with one seed each.
    pub baselines: BTreeMap<String, Vec<Vec<Sums>>>,
    /// The steps that all backtests of the market have.
    pub common: Common,
}

impl Market {
    /// The markets of a study, in the order of the first agent's backtests.
    pub(super) fn all(agents: &BTreeMap<&str, Vec<Backtest>>, first: &str) -> Result<Vec<Self>, StageError> {
        let mut markets: Vec<&Backtest> = Vec::new();
        for backtest in agents.get(first).into_iter().flatten() {
            if !markets
                .iter()
                .any(|market| market.policy.is_same_market(&backtest.policy))
            {
                markets.push(backtest);
            }
        }
        for (name, backtests) in agents {
            let mut policies = backtests.iter().map(|backtest| &backtest.policy);
            let other =
                policies.find(|policy| !markets.iter().any(|market| market.policy.is_same_market(policy)));
            StageError::new(format!("`{name}` is tested in a market in which `{first}` is not"))
                .hint("give their environments the same market, `test:` and `seed`")
                .when(other.is_some())?;
        }
        markets.iter().map(|market| Self::new(market, agents)).collect()
    }

    fn new(first: &Backtest, agents: &BTreeMap<&str, Vec<Backtest>>) -> Result<Self, StageError> {
        let mut members: BTreeMap<&str, Vec<&Agent>> = BTreeMap::new();
        for (name, backtests) in agents {
            let policies = backtests.iter().map(|backtest| &backtest.policy);
            let own: Vec<&Agent> = policies.filter(|policy| policy.is_same_market(&first.policy)).collect();
            StageError::new(match own.len() {
                0 => format!("`{name}` has no backtest in one of the markets"),
                _ => few(name),
            })
            .hint(MORE_SEEDS)
            .when(own.len() < LEAST_SEEDS)?;
            members.insert(name, own);
        }
        let common = Common::of(members.values().flatten().copied())?;
        common.check_worlds()?;
        let sums = |policies: &[&Agent]| policies.iter().map(|policy| common.sums(policy)).collect();
        Ok(Self {
            agents: members
                .iter()
                .map(|(name, own)| ((*name).to_owned(), sums(own)))
                .collect(),
            baselines: first
                .baselines
                .iter()
                .map(|(name, rule)| (name.clone(), sums(&[rule])))
                .collect(),
            common,
        })
    }
}

/// The risk aversion by which all backtests measure utility.
pub(super) fn risk_aversion(agents: &BTreeMap<&str, Vec<Backtest>>) -> Result<f64, StageError> {
    let mut all = agents.values().flatten().map(|backtest| backtest.risk_aversion);
    let first = all.next().unwrap_or(f64::NAN);
    StageError::new("the backtests differ in their risk aversion, or do not state it")
        .hint("evaluate all agents by one `risk_aversion`")
        .when(first.is_nan() || all.any(|other| other != first))?;
    Ok(first)
}

/// The steps per year, the same in all markets.
pub(super) fn annual(markets: &[Market]) -> Result<f64, StageError> {
    let mut years = markets.iter().map(|market| market.common.annual());
    let first = years.next().unwrap_or(f64::NAN);
    StageError::new(format!(
        "too few steps to annualise in a market: {LEAST_OBSERVATIONS} are needed"
    ))
    .hint("widen `test` of the environments")
    .when(first.is_nan())?;
    StageError::new("the markets differ in the steps of a year")
        .hint("study markets of one calendar and frequency")
        .when(years.any(|year| year != first))?;
    Ok(first)
}
