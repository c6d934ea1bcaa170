//! Evaluation over market data: the policy, its ablations and the baselines, over every evaluation episode of
//! the test data, each from its first date to its last.

use crate::ablation::Ablation;
use crate::account::Accounts;
use crate::config::{BacktestConfig, EvaluatedOn};
use crate::episodes::{self, Episode};
use crate::market::{Market, Role, Run, Span, Strategy};
use crate::measures::{self, Known, Settings};
use crate::output::{self, Metrics, Rule};
use crate::performance::Periods;
use crate::policy_input::{Given, check_fits};
use crate::risk_aversion;
use crate::rule_search::{Of, Ruled, best_rule, step_rules};
use crate::runs::{self, run_all, run_policy};
use crate::trajectory::{ON, RISK_AVERSION, RULES, TRIALS, trajectory};
use cache::Artifact;
use stages_core::periods::PERIODS_A_YEAR;
use stages_core::{Context, LEAST_OBSERVATIONS, Outputs, StageError, StageEvent};
use stages_env::{BatchEnv as _, EnvSpec, OpenOptions, PortfolioEnv, Step};
use stages_policy::AnyPolicy;

/// A market with the strategies that a policy is compared with.
pub(crate) trait Compared: Market {
    /// Runs the strategies with which the policy is compared.
    fn compare(backtest: &mut Backtest<'_, Self>) -> Result<(), StageError>;
}

/// A policy, the environment that it is evaluated in, and the settings.
#[derive(Clone, Copy)]
pub(crate) struct Evaluation<'a> {
    pub config: &'a BacktestConfig,
    pub context: &'a Context,
    pub artifact: &'a Artifact,
    pub policy: &'a AnyPolicy,
    /// The policies that are baselines.
    pub rules: &'a [Given],
}

impl Evaluation<'_> {
    /// Refuses policies that do not fit the environment.
    pub(crate) fn check(&self, env: &EnvSpec) -> Result<(), StageError> {
        check_fits(self.policy.spec(), env)?;
        for given in self.rules {
            check_fits(given.policy.spec(), env).map_err(|err| StageError {
                message: format!("`{}` at `rules`: {}", given.name, err.message),
                ..err
            })?;
        }
        Ok(())
    }

    /// The evaluation of a policy at `rules`, in its own normalisation.
    pub(crate) fn of_given<'b>(&'b self, given: &'b Given) -> Evaluation<'b> {
        Evaluation {
            policy: &given.policy,
            ..*self
        }
    }

    /// Plays the episodes of the policies at `rules`, and adds their returns.
    pub(crate) fn compare_episodes(
        &self,
        metrics: &mut Metrics,
        mut play: impl FnMut(&AnyPolicy) -> Result<Vec<Episode>, StageError>,
    ) -> Result<(), StageError> {
        for given in self.rules {
            episodes::add_baseline(metrics, &given.name, &play(&given.policy)?);
            metrics.describe(vec![given.rule()]);
        }
        Ok(())
    }

    /// Opens `num_envs` environments over the data of the evaluation, set up as the policy expects them.
    pub(crate) fn open<S: Market>(&self, num_envs: usize) -> Result<PortfolioEnv<S>, StageError> {
        PortfolioEnv::open(&self.context.store, self.artifact, &self.options(num_envs))
    }

    /// The options of `num_envs` environments over the data of the evaluation.
    fn options(&self, num_envs: usize) -> OpenOptions {
        OpenOptions {
            normalise_as: self.policy.spec().normalisation.clone(),
            split: self.config.split(),
            ..OpenOptions::test(num_envs, self.config.seed)
        }
    }
}

/// The evaluation of a policy on the test or validation data of a market.
pub(crate) struct Backtest<'a, S: Market> {
    pub of: Evaluation<'a>,
    /// The data as a single environment.
    pub one: PortfolioEnv<S>,
    /// The evaluation episodes.
    spans: Vec<Span>,
    strategies: Vec<Strategy<S>>,
    /// The baselines that were searched, in words.
    rules: Vec<Rule>,
}

/// Evaluates a policy.
pub(crate) fn backtest<S: Compared>(of: Evaluation<'_>) -> Result<Outputs, StageError> {
    let one: PortfolioEnv<S> = of.open(1)?;
    of.check(one.spec())?;
    let mut all = Backtest {
        spans: runs::spans::<S>(&one.again(&of.options(one.evaluation_episodes()))?),
        strategies: Vec::new(),
        rules: Vec::new(),
        of,
        one,
    };
    warn_of_few(of.context, all.spans.iter().map(|span| span.steps).sum());
    all.policy()?;
    S::compare(&mut all)?;
    all.given()?;
    let periods = all.one.periods_a_year(&of.artifact.meta);
    let (config, context) = (of.config, of.context);
    let risk_aversion = risk_aversion::of_backtest(context, config.risk_aversion, S::risk_aversion(&all.one));
    let known = Known {
        periods: Periods::from(&periods),
        regimes: S::regimes(&all.one),
        causes: S::PROFITS.iter().map(|cause| (*cause).to_owned()).collect(),
    };
    let settings = Settings {
        seed: config.seed,
        bootstrap_draws: config.bootstrap_draws,
        bootstrap_block: config.bootstrap_block,
        risk_aversion,
        trials: config.trials,
    };
    let accounts: Vec<Accounts> = all
        .strategies
        .iter()
        .map(|strategy| strategy.accounts(&known.regimes))
        .collect();
    let mut metrics = measures::measure(&settings, &accounts, &known);
    metrics.describe(std::mem::take(&mut all.rules));
    for (name, value) in S::measures(&all.strategies[0].runs) {
        metrics.add(name, value);
    }
    if S::market_stands_apart(&all.one) && S::layout(&all.one).market.is_empty() {
        context.warn("the policy is blind: the environment shows it no market features", None);
        metrics.add("blind", 1.0);
    }
    let trajectory = trajectory(&all.strategies, &accounts, &all.one)?;
    let mut about = S::about(&all.one);
    about[PERIODS_A_YEAR] = serde_json::json!(periods);
    if let Some(blind) = metrics.get("blind") {
        about["blind"] = serde_json::json!(blind);
    }
    about[RISK_AVERSION] = serde_json::json!(settings.risk_aversion);
    match config.on {
        EvaluatedOn::Test => about[TRIALS] = serde_json::json!(settings.trials),
        EvaluatedOn::Validation => about[ON] = serde_json::json!(config.on),
    }
    if !of.rules.is_empty() {
        let names: Vec<&str> = of.rules.iter().map(|given| given.name.as_str()).collect();
        about[RULES] = serde_json::json!(names);
    }
    output::store(context, metrics, &trajectory, about)
}

impl<S: Market> Backtest<'_, S> {
    /// Environments for `paths` runs of a strategy, spread over the episodes, at least one each.
    fn envs_for(&self, paths: usize) -> Result<PortfolioEnv<S>, StageError> {
        let episodes = self.spans.len();
        self.one.again(&self.of.options(episodes * paths.div_ceil(episodes)))
    }

    /// Runs the policy: as configured, with each ablation, and in the other mode of choosing actions.
    fn policy(&mut self) -> Result<(), StageError> {
        let (config, context, policy) = (self.of.config, self.of.context, self.of.policy);
        let episodes = self.spans.len();
        let mut views = vec![None];
        if config.ablations && !S::layout(&self.one).market.is_empty() {
            views.extend([Some(Ablation::OtherWorld), Some(Ablation::Shuffled)]);
            views.extend(policy.remembers().then_some(Some(Ablation::NoMemory)));
        }
        let mode = (config.deterministic, config.seed);
        let mut env = self.one.again(&self.of.options(episodes * views.len()))?;
        let mut seen =
            run_policy(context, ("the policy", policy), (&mut env, &self.spans), &views, mode)?.into_iter();
        self.strategies.extend(views.iter().map(|view| Strategy {
            name: view.map_or("policy", Ablation::name::<S>).to_owned(),
            role: view.map_or(Role::Policy, |_| Role::Ablation),
            runs: seen.by_ref().take(episodes).map(|run| run.with_path(0)).collect(),
        }));
        let paths = if config.deterministic { config.drawn_paths } else { 1 };
        let mut env = self.envs_for(paths)?;
        let mode = (!config.deterministic, config.seed);
        self.strategies.push(Strategy {
            name: if config.deterministic { "drawn" } else { "greedy" }.to_owned(),
            role: Role::Mode,
            runs: run_policy(context, ("the policy", policy), (&mut env, &self.spans), &[None], mode)?,
        });
        Ok(())
    }

    /// Runs the policies at `rules` as baselines.
    fn given(&mut self) -> Result<(), StageError> {
        for given in self.of.rules {
            let of = self.of.of_given(given);
            let mut env = of.open(self.spans.len())?;
            let mode = (true, of.config.seed);
            let name = given.name.clone();
            self.rules.push(given.rule());
            self.strategies.push(Strategy {
                runs: run_policy(of.context, (&name, of.policy), (&mut env, &self.spans), &[None], mode)?,
                role: Role::Baseline,
                name,
            });
        }
        Ok(())
    }

    /// Runs the best rule of some features as a baseline, where there is one.
    pub(crate) fn best_rule(&mut self, name: &str, features: Of<'_>) -> Result<(), StageError>
    where
        S: Ruled,
    {
        match best_rule::<S>(self.of, features)? {
            None => Ok(()),
            Some((rule, text)) => self.rule(name, text, |env, step, _, _| step_rules(env, step, |_| &rule)),
        }
    }

    /// Runs a baseline that was searched, and says what it is.
    pub(crate) fn rule(
        &mut self,
        name: &str,
        text: String,
        act: impl FnMut(&mut PortfolioEnv<S>, &mut Step, &[Run<S>], &mut [String]) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        self.of.context.log(format!("{name}: {text}"));
        self.rules.push(Rule {
            name: name.to_owned(),
            text,
        });
        self.baseline(name, false, act)
    }

    /// Runs a baseline, several times if it is random. `act` chooses the actions, names them, and steps.
    pub(crate) fn baseline(
        &mut self,
        name: impl Into<String>,
        is_drawn: bool,
        act: impl FnMut(&mut PortfolioEnv<S>, &mut Step, &[Run<S>], &mut [String]) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let name = name.into();
        let number = self.strategies.len() as u64;
        self.of.context.progress(number, None, format!("baseline {name}"));
        let mut env = self.envs_for(if is_drawn { self.of.config.random_paths } else { 1 })?;
        let runs = run_all(self.of.context, (&mut env, &self.spans), act)?;
        self.strategies.push(Strategy {
            name,
            role: Role::Baseline,
            runs,
        });
        Ok(())
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
