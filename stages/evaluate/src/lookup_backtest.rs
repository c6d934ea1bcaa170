//! Evaluation on `env/lookup`: the policy beside the optimal policy, in the same episodes.

use crate::market_backtest::Evaluation;
use crate::{episodes, output};
use stages_core::{Context, Outputs, StageError};
use stages_env::lookup::{LookupEnv, Optimal};
use stages_env::{Actions, BatchEnv, Step};
use stages_policy::AnyPolicy;

pub(crate) fn backtest(of: Evaluation<'_>) -> Result<Outputs, StageError> {
    let (config, context, policy) = (of.config, of.context, of.policy);
    let open =
        |policy: &AnyPolicy| stages_env::lookup::open(&context.store, of.artifact, &config.open(policy));
    let mut env = open(policy)?;
    of.check(env.spec())?;
    let played = episodes::play(context, policy, &mut env, config.deterministic, config.seed)?;
    let mut env = open(policy)?;
    let optimal = Optimal::new(env.config());
    let best = run_optimal(context, &optimal, &mut env)?;

    let mut metrics = episodes::measure(&played);
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / played.len() as f64;
    let ours = mean(&mut played.iter().map(|episode| episode.episodic_return));
    let theirs = mean(&mut best.iter().copied());
    metrics.add("optimal/episodic_return", theirs);
    // The expectation over all tables and episodes.
    metrics.add("optimal/expected_return", optimal.expected_return());
    metrics.add("share_of_optimal", if theirs > 0.0 { ours / theirs } else { f64::NAN });
    of.compare_episodes(&mut metrics, |policy| {
        episodes::play(context, policy, &mut open(policy)?, true, config.seed)
    })?;
    let mut columns = episodes::columns(&played);
    columns.push(("optimal_return", best));
    let about = serde_json::json!({ "of": "episodes" });
    output::store(context, metrics, &output::columns(&columns)?, about)
}

/// The returns of the optimal policy in the first episode of each environment.
fn run_optimal(context: &Context, optimal: &Optimal, env: &mut LookupEnv) -> Result<Vec<f64>, StageError> {
    let mut actions = vec![0; env.num_envs()];
    let act = |env: &mut LookupEnv, step: &mut Step, _| {
        for (i, action) in actions.iter_mut().enumerate() {
            let (left, position, feature) = env.decision(i);
            *action = optimal.action(left, position, feature);
        }
        env.step(Actions::Discrete(&actions), step.buffers())
    };
    let played = episodes::play_first(context, env, act, |_, _, _| ())?;
    Ok(played.iter().map(|episode| episode.episodic_return).collect())
}
