//! Learning on tasks with a known optimum. The long tests take minutes and are ignored by default:
//! `cargo test --release --workspace --lib learning -- --ignored --nocapture --test-threads 1`

use super::*;
use crate::{Ppo, RecurrentPpo, TransformerPpo, TransformerPpoConfig, metrics::Line};
use stages_env::{Actions, BatchEnv as _, OpenOptions, Step};
use stages_policy::{Mode, Policy, Precision};

/// The mean return of the likeliest actions over 20 episodes of fresh environments.
pub(super) fn evaluate(policy: &[u8], context: &Context) -> f64 {
    let policy = Policy::load(policy).unwrap();
    let artifact = &context.inputs["env"][0].artifact;
    let n = 20;
    let mut env = stages_env::open(&context.store, artifact, &OpenOptions::test(n, 99)).unwrap();
    let mut step = Step::new(env.spec(), n);
    env.reset(step.buffers());
    let mut state = policy.start(n);
    let mut start = vec![true; n];
    let (mut returns, mut over) = (vec![0.0; n], vec![false; n]);
    while over.contains(&false) {
        let actions = policy.act(&step.obs, &step.action_mask, &start, &mut state, Mode::Greedy);
        env.step(actions, step.buffers()).unwrap();
        for i in 0..n {
            if !over[i] {
                returns[i] += f64::from(step.reward[i]);
            }
            start[i] = step.terminated[i] || step.truncated[i];
            over[i] |= start[i];
        }
    }
    returns.iter().sum::<f64>() / n as f64
}

/// Trains, prints the curve and evaluates.
pub(super) fn score<S: StageKind>(stage: S, config: &S::Config, env: &str, seed: u64) -> f64 {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, env);
    let began = std::time::Instant::now();
    let (policy, metrics) = outputs(stage, config, &context);
    let seconds = began.elapsed().as_secs_f64();
    let curve: Vec<Line> = String::from_utf8(metrics)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Line>(line).unwrap())
        .filter(|line| line.name == "charts/episodic_return")
        .collect();
    let mut text = String::new();
    for line in curve.iter().step_by(curve.len().div_ceil(10).max(1)) {
        text.push_str(&format!(" {}k:{:.0}", line.step / 1000, line.value));
    }
    let score = evaluate(&policy, &context);
    eprintln!(
        "{} on {env}, seed {seed}: {score:.1} after {seconds:.1} s; mean of the last 100 episodes{text}",
        S::NAME
    );
    score
}

#[test]
fn ppo_learns_a_little_in_seconds() {
    let score = score(Ppo, &cart_pole(20_000, 1), "CartPole-v1", 1);
    assert!(score > 150.0, "{score}");
}

#[test]
#[ignore = "a minute"]
fn ppo_learns_cart_pole() {
    for seed in 1..=3 {
        let score = score(Ppo, &cart_pole(100_000, seed), "CartPole-v1", seed);
        assert!(score >= 475.0, "seed {seed}: {score}");
    }
}

/// stable-baselines3's default discounts instead of the reference's 0.98 and 0.8. Those look some 50 steps
/// ahead, so that the cart may drift out of bounds late in training: 6 of 24 seeds then scored 210 to 400.
/// With these, all of 24 scored above 487.
const GAMMA: f64 = 0.99;
const GAE_LAMBDA: f64 = 0.95;

#[test]
#[ignore = "some minutes"]
fn recurrent_ppo_learns_cart_pole_with_hidden_velocity() {
    for precision in [Precision::F32, Precision::Bf16] {
        for seed in 1..=5 {
            let mut config = hidden_velocity(100_000, seed);
            (config.ppo.gamma, config.ppo.gae_lambda) = (GAMMA, GAE_LAMBDA);
            config.rollouts.precision = precision;
            let score = score(RecurrentPpo, &config, "CartPole-hidden-velocity", seed);
            assert!(score >= 475.0, "{precision:?}, seed {seed}: {score}");
        }
    }
}

/// The settings of [`hidden_velocity`], with a transformer, which learns more steadily in half the epochs.
fn hidden_velocity_transformer(total_timesteps: u64, seed: u64) -> TransformerPpoConfig {
    serde_json::from_value(json!({
        "total_timesteps": total_timesteps, "seed": seed, "n_envs": 8, "n_steps": 32, "batch_size": 256,
            "n_epochs": 10,
        "gamma": GAMMA, "gae_lambda": GAE_LAMBDA,
        "learning_rate": { "linear": [7e-4, 0.0] }, "clip_range": { "linear": [0.2, 0.0] },
        "normalize_obs": true, "normalize_reward": true,
        "policy_kwargs": { "window": 8, "d_model": 64, "n_heads": 2, "n_layers": 1, "d_ff": 64 },
    }))
    .unwrap()
}

/// The settings of rl-baselines3-zoo for PPO on Pendulum-v1, without its gSDE: 4 environments of 1024 steps,
/// 10 epochs, gamma 0.9.
fn pendulum(total_timesteps: u64, seed: u64) -> PpoConfig {
    serde_json::from_value(json!({
        "total_timesteps": total_timesteps, "seed": seed, "n_envs": 4, "n_steps": 1024, "batch_size": 64,
            "n_epochs": 10,
        "gamma": 0.9, "gae_lambda": 0.95, "learning_rate": 1e-3, "clip_range": 0.2,
    }))
    .unwrap()
}

/// Random torques earn about -1200, the best policies about -150.
#[test]
fn ppo_swings_a_pendulum_up() {
    let score = score(Ppo, &pendulum(100_000, 1), "Pendulum-v1", 1);
    assert!(score > -400.0, "{score}");
}

#[test]
#[ignore = "half a minute"]
fn ppo_swings_pendulums_up() {
    for seed in 1..=5 {
        let score = score(Ppo, &pendulum(100_000, seed), "Pendulum-v1", seed);
        assert!(score > -300.0, "seed {seed}: {score}");
    }
}

/// Without memory, no more than 60 or so.
#[test]
fn transformer_ppo_remembers_a_little_in_seconds() {
    let config = hidden_velocity_transformer(16_384, 1);
    let score = score(TransformerPpo, &config, "CartPole-hidden-velocity", 1);
    assert!(score > 120.0, "{score}");
}

#[test]
#[ignore = "some minutes"]
fn transformer_ppo_learns_cart_pole_with_hidden_velocity() {
    for seed in 1..=5 {
        let config = hidden_velocity_transformer(100_000, seed);
        let score = score(TransformerPpo, &config, "CartPole-hidden-velocity", seed);
        assert!(score >= 475.0, "seed {seed}: {score}");
    }
}

#[test]
#[ignore = "a minute"]
fn ppo_without_memory_does_not_learn_hidden_velocity() {
    for (seed, gamma, gae_lambda) in [
        (1, GAMMA, GAE_LAMBDA),
        (2, GAMMA, GAE_LAMBDA),
        (3, GAMMA, GAE_LAMBDA),
        (2, 0.98, 0.8),
    ] {
        let mut config = cart_pole(100_000, seed);
        (config.ppo.gamma, config.ppo.gae_lambda) = (gamma, gae_lambda);
        config.ppo.normalize_obs = true;
        config.ppo.normalize_reward = true;
        let score = score(Ppo, &config, "CartPole-hidden-velocity", seed);
        assert!(score < 100.0, "seed {seed}: {score}");
    }
}

/// The settings of the game of memory in `pipelines/learning_study.yaml`.
fn memory(total_timesteps: u64, seed: u64) -> RecurrentPpoConfig {
    serde_json::from_value(json!({
        "total_timesteps": total_timesteps, "seed": seed, "n_envs": 32, "n_steps": 51, "batch_size": 408,
            "n_epochs": 10,
        "learning_rate": { "linear": [1e-3, 0.0] }, "ent_coef": 0.01, "normalize_reward": true,
        "policy_kwargs": { "lstm_hidden_size": 64, "net_arch": { "pi": [64], "vf": [64] } },
    }))
    .unwrap()
}

/// Without memory nothing above -0.49 can be had.
#[test]
fn recurrent_ppo_remembers_a_little_in_seconds() {
    let score = score(RecurrentPpo, &memory(50_000, 1), "RepeatPreviousEasy", 1);
    assert!(score > -0.2, "{score}");
}

#[test]
#[ignore = "some minutes"]
fn recurrent_ppo_remembers_what_ppo_cannot() {
    for seed in 1..=3 {
        let remembered = score(RecurrentPpo, &memory(300_000, seed), "RepeatPreviousEasy", seed);
        assert!(remembered >= 0.95, "seed {seed}: {remembered}");
        let mut config: PpoConfig = cart_pole(300_000, seed);
        config.ppo.normalize_reward = true;
        let without = score(Ppo, &config, "RepeatPreviousEasy", seed);
        assert!(without < -0.4, "seed {seed}: {without}");
    }
}

/// Trains on what a stage makes, and gives the store, the environment and the policy.
fn trained<S: StageKind>(
    stage: S,
    env: serde_json::Value,
    config: &PpoConfig,
) -> (tempfile::TempDir, Context, Policy) {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    let env: S::Config = serde_json::from_value(env).unwrap();
    let digest = stage.run(&env, &context).unwrap()["env"];
    let artifact = context.store.artifact(digest).unwrap();
    context
        .inputs
        .insert("env".to_owned(), vec![Input { digest, artifact }]);
    let (policy, _) = outputs(Ppo, config, &context);
    (home, context, Policy::load(&policy).unwrap())
}

fn ppo(settings: serde_json::Value) -> PpoConfig {
    let mut all = json!({
        "n_envs": 64, "n_epochs": 4, "learning_rate": { "linear": [1e-3, 0.0] }, "normalize_reward": true,
    });
    all.as_object_mut()
        .unwrap()
        .extend(settings.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

/// The share of the best policy's return on fresh rows that a policy earns in the same episodes.
fn share_of_optimal(context: &Context, policy: &Policy) -> f64 {
    use stages_env::lookup::{Optimal, open};
    let n = 500;
    let artifact = &context.inputs["env"][0].artifact;
    let mut totals = [0.0; 2];
    for (best, total) in [false, true].into_iter().zip(&mut totals) {
        let mut env = open(&context.store, artifact, &OpenOptions::test(n, 1)).unwrap();
        let optimal = Optimal::new(env.config());
        let mut step = Step::new(env.spec(), n);
        env.reset(step.buffers());
        let (mut state, mut actions, mut start) = (policy.start(n), vec![0; n], vec![true; n]);
        for _ in 0..env.config().episode_length {
            if best {
                for (i, action) in actions.iter_mut().enumerate() {
                    let (left, position, feature) = env.decision(i);
                    *action = optimal.action(left, position, feature);
                }
            } else {
                let chosen = policy.act(&step.obs, &step.action_mask, &start, &mut state, Mode::Greedy);
                actions.copy_from_slice(chosen.discrete(n).unwrap());
                start.fill(false);
            }
            env.step(Actions::Discrete(&actions), step.buffers()).unwrap();
            *total += step.reward.iter().map(|&reward| f64::from(reward)).sum::<f64>();
        }
    }
    totals[0] / totals[1]
}

fn edge(total_timesteps: u64, seed: u64, rows: usize, features: usize) -> f64 {
    let config = ppo(json!({
        "total_timesteps": total_timesteps, "seed": seed, "n_steps": 128, "batch_size": 4096, "gamma": 0.9,
            "ent_coef": 0.01,
    }));
    let market = json!({ "rows": rows, "features": features });
    let (_home, context, policy) = trained(stages_env::lookup::Lookup, market, &config);
    let share = share_of_optimal(&context, &policy);
    eprintln!(
        "{features} features, {total_timesteps} steps, seed {seed}: {share:.3} of the best policy's return"
    );
    share
}

#[test]
fn ppo_finds_a_planted_edge_in_seconds() {
    let share = edge(150_000, 1, 20_000, 4);
    assert!(share > 0.6, "{share}");
}

#[test]
#[ignore = "some minutes"]
fn ppo_finds_the_planted_edge_among_64_features() {
    for seed in 1..=3 {
        let share = edge(2_000_000, seed, 100_000, 64);
        assert!(share > 0.93, "seed {seed}: {share}");
    }
}

/// The root of the mean squared difference between a policy's hedge ratios and the deltas of Black and
/// Scholes.
fn hedge(total_timesteps: u64, seed: u64) -> f64 {
    let config = ppo(json!({
        "total_timesteps": total_timesteps, "seed": seed, "n_steps": 120, "batch_size": 1920, "n_epochs": 10,
            "gamma": 0.0,
        "normalize_reward": false,
    }));
    let (_home, context, policy) = trained(stages_env::hedging::Hedging, json!({}), &config);
    let n = 500;
    let artifact = &context.inputs["env"][0].artifact;
    let mut env = stages_env::hedging::open(&context.store, artifact, &OpenOptions::test(n, 1)).unwrap();
    let mut step = Step::new(env.spec(), n);
    env.reset(step.buffers());
    let (mut state, mut start) = (policy.start(n), vec![true; n]);
    let (mut squares, steps) = (0.0, env.config().steps);
    for _ in 0..steps {
        let actions = policy.act(&step.obs, &step.action_mask, &start, &mut state, Mode::Greedy);
        start.fill(false);
        for (i, &action) in actions.discrete(n).unwrap().iter().enumerate() {
            squares += (env.config().ratio(action) - env.delta(i).1).powi(2);
        }
        env.step(actions, step.buffers()).unwrap();
    }
    let error = (squares / n as f64 / f64::from(steps)).sqrt();
    eprintln!("hedging, {total_timesteps} steps, seed {seed}: {error:.3} from the deltas");
    error
}

/// A constant ratio is at least 0.3 off, one drawn at random 0.45.
#[test]
fn ppo_learns_to_hedge_in_seconds() {
    let error = hedge(200_000, 1);
    assert!(error < 0.15, "{error}");
}

#[test]
#[ignore = "some minutes"]
fn ppo_learns_the_deltas() {
    for seed in 1..=3 {
        let error = hedge(2_000_000, seed);
        assert!(error < 0.07, "seed {seed}: {error}");
    }
}
