//! Evaluation on `env/options`: the policy and its baselines over every evaluation episode of the test data, each from its first date to its last.

use crate::ablation::Ablation;
use crate::config::BacktestConfig;
use crate::measures::{self, Known};
use crate::output;
use crate::performance::{LEAST_OBSERVATIONS, Periods};
use crate::policy_input::check_fits;
use crate::rules::{rules, run_rule};
use crate::runs::{self, run_baseline, run_policy};
use crate::trajectory::trajectory;
use cache::Artifact;
use stages_core::{Context, Outputs, StageError, StageEvent};
use stages_env::options::Baseline;
use stages_env::{BatchEnv, OpenOptions};
use stages_policy::Policy;

/// The part of a strategy in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The policy as configured.
    Policy,
    /// The policy in its other mode: drawn where it is greedy, greedy where it is drawn.
    Mode,
    /// A rule that the policy is compared with.
    Baseline,
    /// The policy, shown something else.
    Ablation,
}

/// A strategy and its runs: as many of each evaluation episode.
pub(crate) struct Strategy {
    pub name: String,
    pub role: Role,
    pub runs: Vec<runs::Run>,
}

impl Strategy {
    /// The beginning of the names of its metrics.
    pub(crate) fn prefix(&self) -> String {
        match self.role {
            Role::Policy => String::new(),
            Role::Mode => format!("{}/", self.name),
            Role::Baseline => format!("baseline/{}/", self.name),
            Role::Ablation => format!("ablation/{}/", self.name),
        }
    }
}

pub(crate) fn backtest(
    config: &BacktestConfig,
    context: &Context,
    artifact: &Artifact,
    policy: &Policy,
) -> Result<Outputs, StageError> {
    let open = |num_envs: usize| {
        let options = OpenOptions {
            normalise_as: policy.spec().normalisation.clone(),
            ..OpenOptions::test(num_envs, config.seed)
        };
        stages_env::options::open(&context.store, artifact, &options)
    };
    let one = open(1)?;
    check_fits(policy.spec(), one.spec())?;
    let episodes = one.evaluation_episodes();
    let spans = runs::spans(&open(episodes)?, episodes);
    let periods = Periods::between(&one.test_dates(0));
    warn_of_few(context, spans.iter().map(|span| span.steps).sum());

    let mut views = vec![None];
    if config.ablations {
        views.extend([Some(Ablation::OtherWorld), Some(Ablation::ShuffledSlate)]);
        views.extend(policy.architecture().remembers().then_some(Some(Ablation::NoMemory)));
    }
    let mode = (config.deterministic, config.seed);
    let mut env = open(episodes * views.len())?;
    let mut seen = run_policy(context, policy, (&mut env, &spans), &views, mode)?.into_iter();
    let mut strategies: Vec<Strategy> = views
        .iter()
        .map(|view| Strategy {
            name: view.map_or("policy", Ablation::name).to_owned(),
            role: view.map_or(Role::Policy, |_| Role::Ablation),
            runs: seen.by_ref().take(episodes).map(|run| run.of_path(0)).collect(),
        })
        .collect();
    let per_episode = |paths: usize| episodes * paths.div_ceil(episodes);
    let paths = if config.deterministic { config.drawn_paths } else { 1 };
    let mut env = open(per_episode(paths))?;
    strategies.push(Strategy {
        name: if config.deterministic { "drawn" } else { "greedy" }.to_owned(),
        role: Role::Mode,
        runs: run_policy(
            context,
            policy,
            (&mut env, &spans),
            &[None],
            (!config.deterministic, config.seed),
        )?,
    });
    let possible = config
        .baselines
        .iter()
        .filter(|baseline| one.hedges() || !baseline.hedges());
    for &baseline in possible {
        context.progress(strategies.len() as u64, None, format!("baseline {}", baseline.name()));
        let paths = if baseline == Baseline::Random {
            config.random_paths
        } else {
            1
        };
        strategies.push(Strategy {
            name: baseline.name().to_owned(),
            role: Role::Baseline,
            runs: run_baseline(context, baseline, (&mut open(per_episode(paths))?, &spans))?,
        });
    }
    let rules = if config.rules {
        rules(context, artifact)?
    } else {
        Vec::new()
    };
    for rule in &rules {
        context.log(rule.describe(&one));
        strategies.push(Strategy {
            name: rule.name.clone(),
            role: Role::Baseline,
            runs: run_rule(context, rule, (&mut open(episodes)?, &spans))?,
        });
    }
    let known = Known {
        periods,
        regimes: runs::regimes(&one),
    };
    let metrics = measures::measure(config, &strategies, &known);
    strategies.retain(|strategy| strategy.role != Role::Ablation);
    let about = serde_json::json!({ "of": "options", "symbol": one.world(0), "capital": one.capital() });
    output::store(context, metrics, &trajectory(&strategies)?, about)
}

fn warn_of_few(context: &Context, steps: usize) {
    if steps >= LEAST_OBSERVATIONS {
        return;
    }
    context.events.emit(StageEvent::Warning {
        message: format!(
            "{steps} step{}: too few to annualise; {LEAST_OBSERVATIONS} are needed",
            if steps == 1 { "" } else { "s" },
        ),
        hint: Some(
            "annual figures (returns, volatility, Sharpe ratio, utility, turnover) are left out; widen `test` or `test_fraction` of the environment".to_owned(),
        ),
    });
}
