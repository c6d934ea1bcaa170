//! Runs of a strategy over the evaluation episodes of an environment, each from the first snapshot to the
//! last.

use crate::ablation::Ablation;
use crate::market::{Market, Run, Span};
use crate::policy_input::{mode, warn};
use stages_core::{Context, StageError};
use stages_env::{ActionSpace, Actions, BatchEnv as _, PortfolioEnv, Step};
use stages_numerics::random::Random;
use stages_policy::AnyPolicy;

/// The evaluation episodes of an environment, by number.
pub(crate) fn spans<S: Market>(env: &PortfolioEnv<S>) -> Vec<Span> {
    (0..env.evaluation_episodes())
        .map(|i| Span {
            world: env.world(i).to_owned(),
            first: env.snapshot(i),
            steps: env.test_steps(i),
        })
        .collect()
}

/// Runs a policy, `name` in messages, once for each of `views`, where `None` is its own observation, all in
/// one batch; returns the runs of one view after another. `env` has as many environments as episodes times
/// views.
pub(crate) fn run_policy<S: Market>(
    context: &Context,
    (name, policy): (&str, &AnyPolicy),
    (env, spans): (&mut PortfolioEnv<S>, &[Span]),
    views: &[Option<Ablation>],
    (deterministic, seed): (bool, u64),
) -> Result<Vec<Run<S>>, StageError> {
    let n = env.num_envs();
    let layout = S::layout(env);
    let mut state = policy.start(&context.store, n)?;
    let mut random = Random::new(&[seed, 0x706f_6c69]);
    let view = |i: usize| views[(i / spans.len()) % views.len()];
    let runs = run_all(context, (env, spans), |env, step, runs, names| {
        let d = env.spec().obs_dim();
        let first = runs[0].actions.is_empty();
        let start: Vec<bool> = (0..n).map(|i| first || view(i) == Some(Ablation::NoMemory)).collect();
        for (i, obs) in step.obs.chunks_exact_mut(d).enumerate() {
            if let Some(ablation) = view(i) {
                let at = (i % spans.len(), S::statement(runs[i].last()).step);
                ablation.change(&layout, (&*env, spans, seed), at, obs);
            }
        }
        let mode = mode(deterministic, &mut random);
        let actions = policy.act(&step.obs, &step.action_mask, &start, &mut state, mode)?;
        for (i, name) in names.iter_mut().enumerate() {
            *name = describe(&env.spec().action_space, actions, i);
        }
        env.step(actions, step.buffers())
    })?;
    // Where it sees what it should not, its decisions say nothing.
    if views == [None] {
        warn(context, name, &state);
    }
    Ok(runs)
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

/// Runs every environment to the end of its evaluation episode. `act` chooses, names its choices, and steps.
pub(crate) fn run_all<S: Market>(
    context: &Context,
    (env, spans): (&mut PortfolioEnv<S>, &[Span]),
    mut act: impl FnMut(&mut PortfolioEnv<S>, &mut Step, &[Run<S>], &mut [String]) -> Result<(), StageError>,
) -> Result<Vec<Run<S>>, StageError> {
    let batch = env.num_envs();
    let mut step = Step::new(env.spec(), batch);
    S::begin_records(env);
    env.reset(step.buffers());
    let mut runs: Vec<Run<S>> = (0..batch)
        .map(|i| Run::new(env, i, &spans[i % spans.len()], spans.len()))
        .collect();
    let mut ended = vec![false; batch];
    let mut names = vec![String::new(); batch];
    while ended.contains(&false) {
        context.check_cancelled()?;
        let regimes: Vec<Option<usize>> = (0..batch).map(|i| S::regime(env, i)).collect();
        act(env, &mut step, &runs, &mut names)?;
        for (i, run) in runs.iter_mut().enumerate() {
            if ended[i] {
                continue;
            }
            ended[i] = step.terminated[i] || step.truncated[i];
            let last = if ended[i] { env.final_ledger(i) } else { None };
            run.actions.push(std::mem::take(&mut names[i]));
            run.records.push(S::record(env, i, run.last(), ended[i]));
            run.regimes.extend(regimes[i]);
            run.statements.push(last.unwrap_or_else(|| env.ledger(i)));
        }
    }
    Ok(runs)
}
