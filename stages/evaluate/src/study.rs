//! The stage kind `evaluate/study`: several agents, each trained with several seeds, in one or several
//! markets, beside one another and beside the rules of their backtests.

mod difference;
mod markets;
mod table;

use crate::compare::difference::{Figure, Resampling, mean};
use crate::inference::holm;
use crate::output::{self, Metrics};
use crate::panel::Sums;
use difference::{Difference, Pair};
use markets::{Backtest, Market};
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports,
    StageError, StageKind,
};
use std::collections::{BTreeMap, BTreeSet};

stages_core::settings! {
    /// Configuration of `evaluate/study`.
    pub struct StudyConfig {
        /// The agent that all others and the rules are compared with: the name of an input.
        pub agent: String = String::new(),
        /// Seed of the bootstrap.
        pub seed: u64 = 0,
        /// Resamples of the bootstrap.
        pub bootstrap_draws: usize = 2000,
    }
}

/// The stage kind `evaluate/study`.
pub struct Study;

/// The fewest seeds of an agent in a market.
const LEAST_SEEDS: usize = 2;

impl StageKind for Study {
    type Config = StudyConfig;
    const NAME: &'static str = "evaluate/study";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "agents with several training seeds in one or several markets: a table with \
        the widest interval of each difference, corrected for their number";
    const PORTS: Ports = Ports {
        inputs: &[InputPort::named_lists("AGENT", PortType::Trajectory).doc(
            "the backtests of an agent under its name, of all seeds and markets: `recurrent: \
                \"evaluate[*]\"`, say",
        )],
        outputs: &[OutputPort::new("metrics", PortType::Metrics)
            .doc("the figures of agents and rules, their differences, and the table as Markdown")],
    };

    fn check(&self, config: &StudyConfig, plan: &PlanContext) -> Planned {
        ConfigProblem::new("bootstrap_draws", "must be at least 1")
            .hint("the default is 2000")
            .when(config.bootstrap_draws == 0)?;
        if !plan.inputs.contains_key(&config.agent) {
            let names: Vec<String> = plan.inputs.keys().map(|name| format!("`{name}`")).collect();
            let message = match config.agent.as_str() {
                "" => "is required".to_owned(),
                agent => format!("`{agent}` is not among `needs`"),
            };
            let hint = format!("name the agent that the others are compared with: {}", names.join(", "));
            return Err(ConfigProblem::new("agent", message).hint(hint));
        }
        if let Some((name, _)) = plan.inputs.iter().find(|(_, backtests)| backtests.len() < LEAST_SEEDS) {
            return Err(ConfigProblem::new("", few(name)).hint(MORE_SEEDS));
        }
        Ok(Self::PORTS.provided())
    }

    /// Backtests are of test data, unless they say otherwise.
    fn reads_test(&self, _: &StudyConfig) -> bool {
        true
    }

    fn run(&self, config: &StudyConfig, context: &Context) -> Result<Outputs, StageError> {
        let mut agents: BTreeMap<&str, Vec<Backtest>> = BTreeMap::new();
        for (name, inputs) in &context.inputs {
            let read = |input| Backtest::read(&context.store, input, name == &config.agent);
            agents.insert(name, inputs.iter().map(read).collect::<Result<_, _>>()?);
        }
        let markets = Market::all(&agents, &config.agent)?;
        let figures = Figures {
            config,
            annual: markets::annual(&markets)?,
            risk_aversion: markets::risk_aversion(&agents)?,
            markets: &markets,
        };
        let mut found = Found::default();
        for (name, backtests) in &agents {
            let blind: Vec<f64> = backtests.iter().filter_map(|backtest| backtest.blind).collect();
            found.agents.push(Row {
                seeds: backtests.len(),
                blind: (!blind.is_empty()).then(|| blind.iter().filter(|blind| **blind > 0.0).count()),
                ..figures.row(name, |market| &market.agents[*name])
            });
        }
        let rules = markets
            .iter()
            .map(|market| market.baselines.keys().collect::<BTreeSet<_>>());
        for name in rules.reduce(|a, b| &a & &b).unwrap_or_default() {
            found.rules.push(figures.row(name, |market| &market.baselines[name]));
        }
        found.compare(&figures, &config.agent);
        let mut metrics = Metrics::default();
        found.add_to(&mut metrics);
        for (name, value) in [
            ("markets", markets.len()),
            ("worlds", markets.iter().map(|market| market.common.worlds).sum()),
            ("steps", markets.iter().map(|market| market.common.steps).sum()),
            (
                "steps_left_out",
                markets.iter().map(|market| market.common.left_out).max().unwrap_or(0),
            ),
        ] {
            metrics.add(name, value as f64);
        }
        let text = table::markdown(config, &found, &markets);
        output::store_metrics_with(context, metrics, &[(output::TABLE, &text)])
    }
}

const MORE_SEEDS: &str =
    "give its training a matrix of seeds; `verdict:` of `evaluate/compare` judges a single policy";

fn few(agent: &str) -> String {
    format!("`{agent}` has one backtest in a market: that other trainings would do as well cannot be told")
}

/// The mean over markets of a strategy's figures.
#[derive(Debug, Default)]
struct Row {
    name: String,
    utility: f64,
    sharpe: f64,
    /// The number of backtests.
    seeds: usize,
    /// The number of them whose policies are blind; `None` where no backtest tells.
    blind: Option<usize>,
    /// The first agent's utility less that of this strategy.
    less: Option<Difference>,
    /// The p-value of that difference, corrected for the number of differences.
    p: f64,
}

/// All figures of a study, agents and rules in the order of their utility.
#[derive(Debug, Default)]
struct Found {
    agents: Vec<Row>,
    rules: Vec<Row>,
}

impl Found {
    fn rows(&self) -> impl Iterator<Item = (&'static str, &Row)> + Clone {
        let agents = self.agents.iter().map(|row| ("agent", row));
        agents.chain(self.rules.iter().map(|row| ("rule", row)))
    }

    /// Compares the first agent with all others and with the rules.
    fn compare(&mut self, figures: &Figures<'_>, first: &str) {
        let others = self
            .agents
            .iter_mut()
            .filter(|row| row.name != first)
            .map(|row| (row, true));
        let mut rows: Vec<(&mut Row, bool)> =
            others.chain(self.rules.iter_mut().map(|row| (row, false))).collect();
        for (row, is_agent) in &mut rows {
            let name = row.name.as_str();
            row.less = Some(match is_agent {
                true => figures.less(first, |market| &market.agents[name]),
                false => figures.less(first, |market| &market.baselines[name]),
            });
        }
        let p: Vec<f64> = rows
            .iter()
            .map(|(row, _)| row.less.as_ref().map_or(f64::NAN, |d| d.widest.p))
            .collect();
        for ((row, _), p) in rows.into_iter().zip(holm(&p)) {
            row.p = p;
        }
        for rows in [&mut self.agents, &mut self.rules] {
            rows.sort_by(|a, b| {
                (a.name != first)
                    .cmp(&(b.name != first))
                    .then(b.utility.total_cmp(&a.utility))
            });
        }
    }

    /// The share of the filter's utility over the best constant rule's that a strategy reaches; `None` where
    /// there is no such rule or the filter is no better.
    fn share_of_filter(&self, of: &Row) -> Option<f64> {
        let utility = |name: &str| Some(self.rules.iter().find(|row| row.name == name)?.utility);
        let (constant, filter) = (utility("best_constant")?, utility("filter")?);
        (filter > constant).then(|| (of.utility - constant) / (filter - constant))
    }

    fn add_to(&self, metrics: &mut Metrics) {
        for (role, row) in self.rows() {
            let name = &row.name;
            metrics.add(format!("{role}/{name}/utility"), row.utility);
            metrics.add(format!("{role}/{name}/sharpe"), row.sharpe);
            if role == "agent" {
                metrics.add(format!("agent/{name}/seeds"), row.seeds as f64);
                if let Some(blind) = row.blind {
                    metrics.add(format!("agent/{name}/blind"), blind as f64);
                }
                if let Some(share) = self.share_of_filter(row) {
                    metrics.add(format!("agent/{name}/share_of_filter"), share);
                }
            }
        }
        let compared = self.rows().filter_map(|(_, row)| Some((row, row.less.as_ref()?)));
        for (row, less) in compared.clone() {
            let prefix = format!("versus/{}/utility", row.name);
            metrics.add(&prefix, less.value);
            for (kind, interval) in less.kinds.iter().copied().chain([("", less.widest)]) {
                let prefix = if kind.is_empty() {
                    prefix.clone()
                } else {
                    format!("{prefix}_{kind}")
                };
                metrics.add(format!("{prefix}_low"), interval.low);
                metrics.add(format!("{prefix}_high"), interval.high);
            }
            metrics.add(format!("{prefix}_p"), row.p);
        }
        metrics.add("comparisons", compared.count() as f64);
    }
}

/// The figures of strategies over the markets of a study.
struct Figures<'a> {
    config: &'a StudyConfig,
    markets: &'a [Market],
    /// Steps per year.
    annual: f64,
    /// The risk aversion of the utility, that of all backtests.
    risk_aversion: f64,
}

impl Figures<'_> {
    fn utility(&self, sums: &Sums) -> f64 {
        self.annual * sums.utility(self.risk_aversion)
    }

    /// The figures of the strategy whose sums in a market are `of` it.
    fn row<'m>(&'m self, name: &str, of: impl Fn(&'m Market) -> &'m Vec<Vec<Sums>>) -> Row {
        let over_markets = |figure: &Figure<'_>| {
            let sum: f64 = self.markets.iter().map(|market| mean(of(market), figure)).sum();
            sum / self.markets.len() as f64
        };
        Row {
            name: name.to_owned(),
            utility: over_markets(&|sums| self.utility(sums)),
            sharpe: over_markets(&|sums| self.annual.sqrt() * sums.sharpe()),
            ..Row::default()
        }
    }

    /// The utility of the first agent less that of another strategy, whose sums in a market are `of` it.
    fn less<'m>(&'m self, first: &str, of: impl Fn(&'m Market) -> &'m Vec<Vec<Sums>>) -> Difference {
        let pair = |(number, market): (usize, &'m Market)| {
            let (agent, against) = (&market.agents[first], of(market));
            let shape = (agent.len(), against.len(), market.common.worlds);
            let seed = self.config.seed.wrapping_add((number as u64) << 32);
            Pair {
                agent,
                against,
                resampling: Resampling::new(shape, self.config.bootstrap_draws, seed),
            }
        };
        let pairs: Vec<Pair<'_>> = self.markets.iter().enumerate().map(pair).collect();
        Difference::of(&pairs, &|sums| self.utility(sums))
    }
}
