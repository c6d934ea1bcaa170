//! Evaluation on `env/hedging`: the policy's hedge ratios against the delta of Black and Scholes, with the
//! residual risk of each, on the same paths.

use crate::episodes::{self, Episode};
use crate::market_backtest::Evaluation;
use crate::output;
use crate::performance::mean_and_deviation;
use crate::policy_input::{mode, warn};
use stages_core::{Context, Outputs, StageError};
use stages_env::hedging::HedgingEnv;
use stages_env::{BatchEnv, Step};
use stages_numerics::random::Random;
use stages_policy::AnyPolicy;

/// One hedging decision.
struct Decision {
    episode: usize,
    step: usize,
    underlying: f64,
    delta: f64,
    hedge: f64,
}

/// The outcome of one way to hedge every path.
struct Hedged {
    episodes: Vec<Episode>,
    /// The profit of each hedged position from sale to expiry, in per cent of the initial price.
    profit: Vec<f64>,
    decisions: Vec<Decision>,
}

pub(crate) fn backtest(of: Evaluation<'_>) -> Result<Outputs, StageError> {
    let (config, context, policy) = (of.config, of.context, of.policy);
    let open = || stages_env::hedging::open(&context.store, of.artifact, &config.open(policy));
    let mut env = open()?;
    of.check(env.spec())?;
    let ours = hedge_by(context, policy, &mut env, (config.deterministic, config.seed))?;
    let delta = hedge(context, &mut open()?, |env, _, ratios| {
        for (i, ratio) in ratios.iter_mut().enumerate() {
            *ratio = env.delta(i).1;
        }
        Ok(())
    })?;
    let none = hedge(context, &mut open()?, |_, _, ratios| {
        ratios.fill(0.0);
        Ok(())
    })?;

    let mut metrics = episodes::measure(&ours.episodes);
    let errors: Vec<f64> = ours.decisions.iter().map(|d| d.hedge - d.delta).collect();
    let squares = errors.iter().map(|e| e * e).sum::<f64>();
    metrics.add("hedge/rms_error", (squares / errors.len() as f64).sqrt());
    metrics.add("hedge/mean_error", mean_and_deviation(&errors).0);
    metrics.add("hedge/correlation", correlation(&ours.decisions));
    let lost = |hedged: &Hedged| {
        let returns: Vec<f64> = hedged.episodes.iter().map(|e| e.episodic_return).collect();
        (mean_and_deviation(&returns).0, mean_and_deviation(&hedged.profit).1)
    };
    let (own, reference, unhedged) = (lost(&ours), lost(&delta), lost(&none));
    metrics.add("profit_std", own.1);
    metrics.add("black_scholes/episodic_return", reference.0);
    metrics.add("black_scholes/profit_std", reference.1);
    metrics.add("unhedged/episodic_return", unhedged.0);
    metrics.add("unhedged/profit_std", unhedged.1);
    // The part removed of the squared error that delta hedging removes.
    metrics.add(
        "share_of_black_scholes",
        (own.0 - unhedged.0) / (reference.0 - unhedged.0),
    );

    of.compare_episodes(&mut metrics, |policy| {
        let mut env = stages_env::hedging::open(&context.store, of.artifact, &config.open(policy))?;
        Ok(hedge_by(context, policy, &mut env, (true, config.seed))?.episodes)
    })?;

    let column = |of: &dyn Fn(&Decision) -> f64| ours.decisions.iter().map(of).collect::<Vec<f64>>();
    let table = output::columns(&[
        ("episode", column(&|d| d.episode as f64)),
        ("step", column(&|d| d.step as f64)),
        ("underlying", column(&|d| d.underlying)),
        ("delta", column(&|d| d.delta)),
        ("hedge", column(&|d| d.hedge)),
    ])?;
    output::store(context, metrics, &table, serde_json::json!({ "of": "hedging" }))
}

/// Hedges by a policy.
fn hedge_by(
    context: &Context,
    policy: &AnyPolicy,
    env: &mut HedgingEnv,
    (deterministic, seed): (bool, u64),
) -> Result<Hedged, StageError> {
    let n = env.num_envs();
    let (mut state, mut start) = (policy.start(&context.store, n)?, vec![true; n]);
    let mut random = Random::new(&[seed, 0x6865_6467]);
    let hedged = hedge(context, env, |env, step, ratios| {
        let mode = mode(deterministic, &mut random);
        let actions = policy.act(&step.obs, &step.action_mask, &start, &mut state, mode)?;
        start.fill(false);
        for (ratio, &action) in ratios.iter_mut().zip(actions.discrete(n)?) {
            *ratio = env.config().ratio(action);
        }
        Ok(())
    })?;
    warn(context, policy.name().unwrap_or("the policy"), &state);
    Ok(hedged)
}

/// Hedges the first episode of each environment; `choose` fills in the hedge ratios.
fn hedge(
    context: &Context,
    env: &mut HedgingEnv,
    mut choose: impl FnMut(&HedgingEnv, &Step, &mut [f64]) -> Result<(), StageError>,
) -> Result<Hedged, StageError> {
    let n = env.num_envs();
    let mut ratios = vec![0.0; n];
    let mut decisions = Vec::with_capacity(n * env.config().steps as usize);
    let act = |env: &mut HedgingEnv, out: &mut Step, step: u64| {
        choose(env, out, &mut ratios)?;
        for (episode, &hedge) in ratios.iter().enumerate() {
            let (underlying, delta) = env.delta(episode);
            decisions.push(Decision {
                episode,
                step: step as usize,
                underlying,
                delta,
                hedge,
            });
        }
        env.step_ratios(&ratios, out.buffers());
        Ok(())
    };
    Ok(Hedged {
        episodes: episodes::play_first(context, env, act, |_, _, _| ())?,
        profit: (0..n).map(|i| env.final_profit(i)).collect(),
        decisions,
    })
}

/// The correlation between hedge ratios and deltas; NaN where one of them never changes.
fn correlation(decisions: &[Decision]) -> f64 {
    let n = decisions.len() as f64;
    let mean = |of: &dyn Fn(&Decision) -> f64| decisions.iter().map(of).sum::<f64>() / n;
    let (hedge, delta) = (mean(&|d| d.hedge), mean(&|d| d.delta));
    let both = mean(&|d| (d.hedge - hedge) * (d.delta - delta));
    let (a, b) = (
        mean(&|d| (d.hedge - hedge).powi(2)),
        mean(&|d| (d.delta - delta).powi(2)),
    );
    both / (a * b).sqrt()
}
