//! That learning works. The long ones take minutes and are run by hand:
//! `cargo test --release --workspace --lib learning -- --ignored --nocapture --test-threads 1`

use super::*;
use crate::{Ppo, RecurrentPpo, TransformerPpo, TransformerPpoConfig, metrics::Line};
use stages_env::{OpenOptions, Step};
use stages_policy::{Mode, Policy, Precision};

/// The mean return of the likeliest actions over 20 episodes of fresh environments.
fn evaluate(policy: &[u8], context: &Context) -> f64 {
    let policy = Policy::load(policy).unwrap();
    let artifact = &context.inputs["env"][0].artifact;
    let n = 20;
    let mut env = stages_env::open(&context.store, artifact, &OpenOptions::test(n, 99)).unwrap();
    let mut step = Step::new(env.spec(), n);
    env.reset(&mut step);
    let mut state = policy.start(n);
    let (mut start, mut actions, mut numbers) = (vec![true; n], vec![0; n], vec![0.0; n]);
    let (mut returns, mut over) = (vec![0.0; n], vec![false; n]);
    while over.contains(&false) {
        if env.spec().bounds.is_some() {
            policy.act_numbers(&step.obs, &start, &mut state, Mode::Greedy, &mut numbers);
            env.step_numbers(&numbers, &mut step);
        } else {
            policy.act(&step.obs, &step.mask, &start, &mut state, Mode::Greedy, &mut actions);
            env.step(&actions, &mut step);
        }
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
fn score<S: StageKind>(stage: S, config: &S::Config, env: &str, seed: u64) -> f64 {
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

/// stable-baselines3's default discounts instead of the reference's 0.98 and 0.8. Those look some 50 steps ahead, so that the cart
/// may drift out of bounds late in training: 6 of 24 seeds then scored 210 to 400. With these, all of 24 scored above 487.
const GAMMA: f64 = 0.99;
const GAE_LAMBDA: f64 = 0.95;

#[test]
#[ignore = "some minutes"]
fn recurrent_ppo_learns_cart_pole_with_hidden_velocity() {
    for precision in [Precision::F32, Precision::Bf16] {
        for seed in 1..=5 {
            let mut config = hidden_velocity(100_000, seed);
            (config.gamma, config.gae_lambda) = (GAMMA, GAE_LAMBDA);
            config.precision = precision;
            let score = score(RecurrentPpo, &config, "CartPole-hidden-velocity", seed);
            assert!(score >= 475.0, "{precision:?}, seed {seed}: {score}");
        }
    }
}

/// The settings of [`hidden_velocity`], with a transformer, which learns more steadily at half the learning rate.
fn hidden_velocity_transformer(total_timesteps: u64, seed: u64) -> TransformerPpoConfig {
    serde_json::from_value(json!({
        "total_timesteps": total_timesteps, "seed": seed, "n_envs": 8, "n_steps": 32, "batch_size": 256, "n_epochs": 20,
        "gamma": GAMMA, "gae_lambda": GAE_LAMBDA,
        "learning_rate": { "linear": [5e-4, 0.0] }, "clip_range": { "linear": [0.2, 0.0] },
        "normalize_obs": true, "normalize_reward": true,
        "policy_kwargs": { "window": 8, "d_model": 32, "n_heads": 2, "n_layers": 1, "d_ff": 64 },
    }))
    .unwrap()
}

/// The settings of rl-baselines3-zoo for PPO on Pendulum-v1, without its gSDE: 4 environments of 1024 steps, 10 epochs, gamma 0.9.
fn pendulum(total_timesteps: u64, seed: u64) -> PpoConfig {
    serde_json::from_value(json!({
        "total_timesteps": total_timesteps, "seed": seed, "n_envs": 4, "n_steps": 1024, "batch_size": 64, "n_epochs": 10,
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
    assert!(score > 150.0, "{score}");
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
        (config.gamma, config.gae_lambda) = (gamma, gae_lambda);
        config.normalize_obs = true;
        config.normalize_reward = true;
        let score = score(Ppo, &config, "CartPole-hidden-velocity", seed);
        assert!(score < 100.0, "seed {seed}: {score}");
    }
}
