//! Runs of a strategy over the evaluation episodes of `env/options`, each from the first snapshot to the last.

use crate::ablation::{Ablation, Layout, Span};
use crate::performance::{Returns, step_return};
use stages_core::{Context, StageError};
use stages_env::options::{Baseline, Explained, Ledger, OptionsEnv};
use stages_env::{ActionSpace, Actions, BatchEnv, Step};
use stages_numerics::random::Random;
use stages_policy::{Mode, Policy};

/// The prefix of the hidden features that say which regime a snapshot is in.
const REGIME: &str = "regime_";

/// The run of a strategy over one evaluation episode.
pub(crate) struct Run {
    /// The number of the evaluation episode.
    pub episode: usize,
    /// The number of the run among those of the same strategy and episode.
    pub path: usize,
    pub world: String,
    /// The account at each snapshot, the first before any trade.
    pub ledgers: Vec<Ledger>,
    /// The action at each snapshot but the last; empty where it is none of the action space.
    pub actions: Vec<String>,
    /// The profit by Greek of each step.
    pub explained: Vec<Explained>,
    /// The regime at the start of each step, where regimes are known.
    pub regimes: Vec<usize>,
    /// Position lines that were opened, and the sum of the steps that they were held.
    pub opened: usize,
    pub held: usize,
    /// Returns of cash and of the underlying at each step of the episode, whenever the run ends.
    risk_free: Vec<f64>,
    underlying: Vec<f64>,
}

impl Run {
    fn new(env: &OptionsEnv, i: usize, span: &Span, episodes: usize) -> Self {
        let snapshots = || span.first..span.first + span.steps;
        Self {
            episode: i % episodes,
            path: i / episodes,
            world: span.world.clone(),
            ledgers: vec![env.ledger(i)],
            actions: Vec::new(),
            explained: Vec::new(),
            regimes: Vec::new(),
            opened: 0,
            held: 0,
            risk_free: snapshots().map(|t| env.risk_free_return(t)).collect(),
            underlying: snapshots().map(|t| env.underlying_return(t)).collect(),
        }
    }

    /// The same run by another number among those of its strategy and episode.
    pub(crate) fn of_path(self, path: usize) -> Self {
        Self { path, ..self }
    }

    pub(crate) fn first(&self) -> &Ledger {
        &self.ledgers[0]
    }

    pub(crate) fn last(&self) -> &Ledger {
        &self.ledgers[self.ledgers.len() - 1]
    }

    /// Returns of the net asset value, where trades cost `spread` times their spread.
    pub(crate) fn returns(&self, spread: f64) -> Returns {
        let account: Vec<f64> = self
            .ledgers
            .windows(2)
            .map(|pair| {
                let more = (spread - 1.0) * (pair[1].spread_cost - pair[0].spread_cost);
                step_return(pair[0].nav, pair[1].nav - more)
            })
            .collect();
        Returns::of_account(account, &self.risk_free, &self.underlying)
    }

    /// The change of the net asset value of each step by its causes, which add up to it: delta, gamma, vega, theta, carry (interest less the cost of borrowing), costs, unexplained.
    pub(crate) fn profits(&self) -> impl Iterator<Item = [f64; 7]> + '_ {
        self.ledgers.windows(2).zip(&self.explained).map(|(pair, by)| {
            let received = |ledger: &Ledger| ledger.interest - ledger.borrow_cost;
            let carry = received(&pair[1]) - received(&pair[0]);
            let paid = |ledger: &Ledger| ledger.spread_cost + ledger.commission;
            let costs = paid(&pair[0]) - paid(&pair[1]);
            let known = by.delta + by.gamma + by.vega + by.theta + carry + costs;
            let rest = pair[1].nav - pair[0].nav - known;
            [by.delta, by.gamma, by.vega, by.theta, carry, costs, rest]
        })
    }
}

/// The names of the causes of [`Run::profits`].
pub(crate) const PROFITS: [&str; 7] = ["delta", "gamma", "vega", "theta", "carry", "costs", "unexplained"];

/// The evaluation episodes of an environment, by number.
pub(crate) fn spans(env: &OptionsEnv, episodes: usize) -> Vec<Span> {
    (0..episodes)
        .map(|i| Span {
            world: env.world(i).to_owned(),
            first: env.ledger(i).snapshot,
            steps: env.test_steps(i),
        })
        .collect()
}

/// The names of the regimes, where the environment knows them.
pub(crate) fn regimes(env: &OptionsEnv) -> Vec<String> {
    env.hidden_names()
        .iter()
        .filter_map(|name| name.strip_prefix(REGIME).map(str::to_owned))
        .collect()
}

/// The regime of environment `i`: that of the largest feature.
fn regime(env: &OptionsEnv, i: usize) -> Option<usize> {
    let names = env.hidden_names().iter().zip(env.hidden(i));
    let of_regimes = names
        .filter(|(name, _)| name.starts_with(REGIME))
        .map(|(_, &value)| value);
    of_regimes
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(at, _)| at)
}

/// Runs the policy once for each of `views`, `None` being what it sees by itself, all in one batch; the runs of each view in turn. `env` has as many
/// environments as episodes times views.
pub(crate) fn run_policy(
    context: &Context,
    policy: &Policy,
    (env, spans): (&mut OptionsEnv, &[Span]),
    views: &[Option<Ablation>],
    (deterministic, seed): (bool, u64),
) -> Result<Vec<Run>, StageError> {
    let n = env.num_envs();
    let layout = Layout::of(env.spec());
    let mut state = policy.start(n);
    let mut random = Random::new(&[seed, 0x706f_6c69]);
    let view = |i: usize| views[(i / spans.len()) % views.len()];
    run_all(context, (env, spans), |env, step, runs, names| {
        let d = env.spec().obs_dim();
        let first = runs[0].actions.is_empty();
        let start: Vec<bool> = (0..n).map(|i| first || view(i) == Some(Ablation::NoMemory)).collect();
        for (i, obs) in step.obs.chunks_exact_mut(d).enumerate() {
            if let Some(ablation) = view(i) {
                let at = (i % spans.len(), runs[i].last().step);
                layout.change(ablation, (env, spans, seed), at, obs);
            }
        }
        let mode = if deterministic {
            Mode::Greedy
        } else {
            Mode::Sample(&mut random)
        };
        let actions = policy.act(&step.obs, &step.action_mask, &start, &mut state, mode);
        for (i, name) in names.iter_mut().enumerate() {
            *name = describe(&env.spec().action_space, actions, i);
        }
        env.step(actions, step.buffers())
    })
}

/// The action of environment `i` in words: a choice by its name, else each component with its value.
fn describe(space: &ActionSpace, actions: Actions<'_>, i: usize) -> String {
    let names = space.names();
    let parts = |value: &dyn Fn(usize) -> String| {
        let parts: Vec<String> = names
            .iter()
            .enumerate()
            .map(|(k, name)| format!("{name}={}", value(k)))
            .collect();
        parts.join(" ")
    };
    match actions {
        Actions::Discrete(actions) => names.get(actions[i] as usize).cloned().unwrap_or_default(),
        Actions::MultiDiscrete(actions) => parts(&|k| actions[i * names.len() + k].to_string()),
        Actions::Continuous(actions) => parts(&|k| format!("{:.3}", actions[i * names.len() + k])),
    }
}

/// Runs a baseline.
pub(crate) fn run_baseline(
    context: &Context,
    baseline: Baseline,
    (env, spans): (&mut OptionsEnv, &[Span]),
) -> Result<Vec<Run>, StageError> {
    run_all(context, (env, spans), |env, step, _, _| {
        env.step_baseline(baseline, step.buffers());
        Ok(())
    })
}

/// Runs every environment to the end of its evaluation episode. `act` chooses, names its choices, and steps.
pub(crate) fn run_all(
    context: &Context,
    (env, spans): (&mut OptionsEnv, &[Span]),
    mut act: impl FnMut(&mut OptionsEnv, &mut Step, &[Run], &mut [String]) -> Result<(), StageError>,
) -> Result<Vec<Run>, StageError> {
    let batch = env.num_envs();
    let mut step = Step::new(env.spec(), batch);
    env.explain();
    env.reset(step.buffers());
    let mut runs: Vec<Run> = (0..batch)
        .map(|i| Run::new(env, i, &spans[i % spans.len()], spans.len()))
        .collect();
    let mut ended = vec![false; batch];
    let mut names = vec![String::new(); batch];
    while ended.contains(&false) {
        context.check_cancelled()?;
        let regimes: Vec<Option<usize>> = (0..batch).map(|i| regime(env, i)).collect();
        act(env, &mut step, &runs, &mut names)?;
        for (i, run) in runs.iter_mut().enumerate() {
            if ended[i] {
                continue;
            }
            ended[i] = step.terminated[i] || step.truncated[i];
            let last = if ended[i] { env.final_ledger(i) } else { None };
            let now = run.last().time();
            run.held += run.last().lines;
            run.actions.push(std::mem::take(&mut names[i]));
            run.explained.push(env.explained(i));
            run.regimes.extend(regimes[i]);
            if !ended[i] {
                run.opened += env.positions(i).iter().filter(|line| line.opened == now).count();
            }
            run.ledgers.push(last.unwrap_or_else(|| env.ledger(i)));
        }
    }
    Ok(runs)
}
