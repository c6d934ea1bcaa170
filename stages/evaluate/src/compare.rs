//! The stage kind `evaluate/compare`: the backtests of one agent, trained with several seeds, against those
//! of another in the same worlds.

pub(crate) mod agent;
pub(crate) mod difference;
mod evidence;
mod verdict;

use crate::output::{self, Metrics};
use crate::panel::Sums;
use crate::{risk_aversion, trajectory};
use agent::{Agent, Common};
use difference::Resampling;
use evidence::{equity, evidence};
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, Planned, PortType, Ports,
    StageError, StageKind,
};
use std::collections::{BTreeMap, BTreeSet};
pub use verdict::VerdictConfig;

stages_core::settings! {
    /// Configuration of `evaluate/compare`.
    pub struct CompareConfig {
        /// Seed of the bootstrap.
        pub seed: u64 = 0,
        /// Resamples of the bootstrap.
        pub bootstrap_draws: usize = 2000,
        /// The risk aversion of the mean-variance utility; without it, that of the backtests.
        pub risk_aversion: Option<f64> = None,
        /// Judges whether the agent is better, worse, or no different beyond noise. A single world is enough
        /// then.
        pub verdict: Option<VerdictConfig> = None,
    }
}

/// The policies at `rules` of all backtests of the agent, by name: of each backtest the sums by world.
fn rules_of(context: &Context, common: &Common) -> Result<BTreeMap<String, Vec<Vec<Sums>>>, StageError> {
    let mut all: Option<BTreeSet<String>> = None;
    for input in context.list("agent") {
        let own = trajectory::rules(&input.artifact);
        all = Some(all.map_or(own.clone(), |all| &all & &own));
    }
    let all = all.unwrap_or_default();
    let mut found: BTreeMap<String, Vec<Vec<Sums>>> = BTreeMap::new();
    for input in context.list("agent").iter().filter(|_| !all.is_empty()) {
        let wanted = |name: &str| all.contains(name);
        for (name, rule) in Agent::strategies(&context.store, &input.artifact, &wanted)? {
            found.entry(name).or_default().push(common.sums(&rule));
        }
    }
    Ok(found)
}

/// The stage kind `evaluate/compare`.
pub struct Compare;

impl StageKind for Compare {
    type Config = CompareConfig;
    const NAME: &'static str = "evaluate/compare";
    // 4: worlds over the same dates are not counted as new data.
    const VERSION: u32 = 4;
    const ABOUT: &'static str =
        "one agent against another over the same worlds, each trained with several seeds, with intervals";
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort::list("agent", PortType::Trajectory).doc(
                "the backtests of an agent, one for each training seed: `evaluate[*]`, say; policies at \
                    their `rules` are compared with, too",
            ),
            InputPort::list("against", PortType::Trajectory)
                .doc("those of another agent, over the same test worlds"),
            InputPort::optional_list("metrics", PortType::Metrics).doc(
                "for a verdict: the metrics of the agent's backtests, whose ablations tell whether it \
                    is blind",
            ),
        ],
        outputs: &[OutputPort::new("metrics", PortType::Metrics).doc(
            "the figures of both and their differences, with intervals over worlds, and over worlds \
                and seeds",
        )],
    };

    fn check(&self, config: &CompareConfig, plan: &PlanContext) -> Planned {
        ConfigProblem::new("bootstrap_draws", "must be at least 1")
            .hint("the default is 2000")
            .when(config.bootstrap_draws == 0)?;
        risk_aversion::validate(config.risk_aversion)?;
        match &config.verdict {
            Some(verdict) => verdict.validate()?,
            None if plan.inputs.contains_key("metrics") => {
                return Err(ConfigProblem::new(
                    "verdict",
                    "is absent, and the input `metrics` is for it alone",
                )
                .hint("write `verdict: {}`, or remove the input"));
            }
            None => {}
        }
        Ok(Self::PORTS.provided())
    }

    /// Backtests are of test data, unless they say otherwise.
    fn reads_test(&self, _: &CompareConfig) -> bool {
        true
    }

    fn run(&self, config: &CompareConfig, context: &Context) -> Result<Outputs, StageError> {
        let read = |port: &str| -> Result<Vec<Agent>, StageError> {
            let backtests = context.list(port).iter();
            backtests
                .map(|input| Agent::read(&context.store, &input.artifact))
                .collect()
        };
        let (agents, others) = (read("agent")?, read("against")?);
        let common = Common::of(agents.iter().chain(&others))?;
        if config.verdict.is_none() {
            common.check_worlds()?;
        }
        let annual = common.annual();
        let sums = |seeds: &[Agent]| seeds.iter().map(|seed| common.sums(seed)).collect::<Vec<_>>();
        let (agent, against) = (sums(&agents), sums(&others));
        let resampling = Resampling::new(
            (agent.len(), against.len(), common.worlds),
            config.bootstrap_draws,
            config.seed,
        );
        let mut metrics = Metrics::default();
        let rules = rules_of(context, &common)?;
        let all = ["agent", "against"].map(|port| context.list(port)).concat();
        let backtests = all.iter().map(|input| &input.artifact);
        let risk_aversion = risk_aversion::of_backtests(context, config.risk_aversion, backtests)?;
        let mut add = |name: &str, of: &(dyn Fn(&Sums) -> f64 + Sync)| {
            let found = resampling.compare(&agent, &against, of);
            metrics.add(format!("agent/{name}"), found.agent);
            metrics.add(format!("against/{name}"), found.against);
            if common.worlds > 1 {
                metrics.estimate(&format!("difference/{name}"), found.over_both);
                metrics.interval(&format!("difference/{name}_over_worlds"), found.over_worlds);
            } else {
                metrics.add(format!("difference/{name}"), found.over_both.value);
            }
            for (rule, sums) in &rules {
                let shape = (agent.len(), sums.len(), common.worlds);
                let resampling = Resampling::new(shape, config.bootstrap_draws, config.seed);
                let found = resampling.compare(&agent, sums, of);
                metrics.add(format!("rule/{rule}/{name}"), found.against);
                match common.worlds {
                    1 => metrics.add(format!("versus/{rule}/{name}"), found.over_both.value),
                    _ => metrics.estimate(&format!("versus/{rule}/{name}"), found.over_both),
                }
            }
            found.ahead
        };
        let ahead = add("utility", &|sums| annual * sums.utility(risk_aversion));
        add("excess_return", &|sums| annual * sums.mean());
        add("sharpe", &|sums| annual.sqrt() * sums.sharpe());
        metrics.add("worlds_ahead", ahead);
        metrics.add("worlds", common.worlds as f64);
        metrics.add("steps", common.steps as f64);
        metrics.add("steps_left_out", common.left_out as f64);
        metrics.add("agent/seeds", agent.len() as f64);
        metrics.add("against/seeds", against.len() as f64);
        metrics.add("risk_aversion", risk_aversion);
        let Some(rules) = &config.verdict else {
            return output::store_metrics(context, metrics);
        };
        // What is typed is a lower bound.
        let counted = context
            .list("agent")
            .iter()
            .map(|input| trajectory::trials(&input.artifact));
        let rules = &VerdictConfig {
            trials: counted.fold(rules.trials, usize::max),
            ..rules.clone()
        };
        let evidence = evidence(&common, &agents, &others, context.list("metrics"))?;
        let judged = verdict::judge(rules, &evidence, config.bootstrap_draws, config.seed);
        judged.add_to(&mut metrics, rules, &evidence);
        context.log(format!("{}: {}", judged.verdict.name(), judged.because.join("; ")));
        let told = serde_json::json!({ "verdict": judged.verdict.name(), "because": judged.because });
        output::store_judged(context, metrics, told, &equity(&common, &agents, &others))
    }
}
