//! Evaluation over market data: the policy, changes of what it sees, and baselines over every evaluation
//! episode of the test data, each from its first date to its last.

use crate::ablation::Ablation;
use crate::config::BacktestConfig;
use crate::market_env::MarketEnv;
use crate::market_env::Run;
use crate::market_env::Span;
use crate::performance::{LEAST_OBSERVATIONS, Periods};
use crate::policy_input::check_fits;
use crate::runs::{self, run_policy};
use cache::Artifact;
use stages_core::{Context, StageError, StageEvent};
use stages_env::OpenOptions;
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
pub(crate) struct Strategy<E: MarketEnv> {
    pub name: String,
    pub role: Role,
    pub runs: Vec<Run<E>>,
}

impl<E: MarketEnv> Strategy<E> {
    pub(crate) fn baseline(name: impl Into<String>, runs: Vec<Run<E>>) -> Self {
        Self {
            name: name.into(),
            role: Role::Baseline,
            runs,
        }
    }

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

/// The test data of an environment, and the policy that is evaluated on it.
pub(crate) struct Backtest<'a, O> {
    pub config: &'a BacktestConfig,
    pub context: &'a Context,
    pub artifact: &'a Artifact,
    pub policy: &'a Policy,
    /// Opens environments.
    pub open: O,
}

impl<E: MarketEnv, O: Fn(&Artifact, &OpenOptions) -> Result<E, StageError>> Backtest<'_, O> {
    /// So many environments over the test data.
    pub(crate) fn envs(&self, num_envs: usize) -> Result<E, StageError> {
        let options = OpenOptions {
            normalise_as: self.policy.spec().normalisation.clone(),
            ..OpenOptions::test(num_envs, self.config.seed)
        };
        (self.open)(self.artifact, &options)
    }

    /// As many environments for `paths` runs of a strategy, spread over `episodes`, at least one each.
    pub(crate) fn envs_for(&self, paths: usize, episodes: usize) -> Result<E, StageError> {
        self.envs(episodes * paths.div_ceil(episodes))
    }

    /// One environment, which shows that the policy fits, the evaluation episodes, and the spacing of their
    /// dates.
    pub(crate) fn start(&self) -> Result<(E, Vec<Span>, Periods), StageError> {
        let one = self.envs(1)?;
        check_fits(self.policy.spec(), one.spec())?;
        let spans = runs::spans(&self.envs(one.evaluation_episodes())?);
        let periods = Periods::between(&one.test_dates(0));
        warn_of_few(self.context, spans.iter().map(|span| span.steps).sum());
        Ok((one, spans, periods))
    }

    /// The runs of the policy: as configured, of each ablation, and in its other mode.
    pub(crate) fn policy(&self, one: &E, spans: &[Span]) -> Result<Vec<Strategy<E>>, StageError> {
        let (config, context, policy, episodes) = (self.config, self.context, self.policy, spans.len());
        let layout = one.layout();
        let mut views = vec![None];
        if config.ablations && !layout.market.is_empty() {
            views.extend([Some(Ablation::OtherWorld), Some(Ablation::Shuffled)]);
            views.extend(policy.architecture().remembers().then_some(Some(Ablation::NoMemory)));
        }
        let mode = (config.deterministic, config.seed);
        let mut env = self.envs(episodes * views.len())?;
        let mut seen = run_policy(context, policy, (&mut env, spans), &views, mode)?.into_iter();
        let mut strategies: Vec<Strategy<E>> = views
            .iter()
            .map(|view| Strategy {
                name: view.map_or("policy", Ablation::name::<E>).to_owned(),
                role: view.map_or(Role::Policy, |_| Role::Ablation),
                runs: seen.by_ref().take(episodes).map(|run| run.of_path(0)).collect(),
            })
            .collect();
        let paths = if config.deterministic { config.drawn_paths } else { 1 };
        let mut env = self.envs_for(paths, episodes)?;
        let mode = (!config.deterministic, config.seed);
        strategies.push(Strategy {
            name: if config.deterministic { "drawn" } else { "greedy" }.to_owned(),
            role: Role::Mode,
            runs: run_policy(context, policy, (&mut env, spans), &[None], mode)?,
        });
        Ok(strategies)
    }
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
            "annual figures (returns, volatility, Sharpe ratio, utility, turnover) are left out; widen \
            `test` or `test_fraction` of the environment"
                .to_owned(),
        ),
    });
}
