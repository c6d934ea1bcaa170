//! Terms and pairings remembered between steps change nothing: a restart finds them anew.

use super::accounting::models;
use super::*;
use crate::options::config::MAX_LINES;
use crate::options::synthetic::market;
use crate::options::{EpisodeLength, RewardConfig, RewardKind};
use proptest::prelude::*;

/// Plays random actions, and each step again from the state saved before it: all that is seen must be the
/// same, to the bit.
fn play(config: &OptionsConfig, seed: u64, num_envs: usize, steps: usize) {
    let files = files(&market(90, seed), config);
    let options = OpenOptions::train(num_envs, seed);
    let (mut env, mut restarted) = (open(&files, &options), open(&files, &options));
    let mut out = Step::new(env.spec(), num_envs);
    let mut again = out.clone();
    env.reset(out.buffers());
    let mut random = Random::new(&[seed]);
    let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|value| value.to_bits()).collect() };
    for step in 0..steps {
        let actions = random_actions(&mut random, &out, num_envs);
        restarted.restore(&env.save()).unwrap();
        step_discrete(&mut env, &actions, &mut out);
        step_discrete(&mut restarted, &actions, &mut again);
        assert_eq!(bits(&out.obs), bits(&again.obs), "step {step}");
        assert_eq!(bits(&out.reward), bits(&again.reward), "step {step}");
        assert_eq!(out.action_mask, again.action_mask, "step {step}");
        assert_eq!(
            (&out.terminated, &out.truncated),
            (&again.terminated, &again.truncated),
            "step {step}"
        );
        assert!(env.save() == restarted.save(), "step {step}");
    }
}

#[test]
fn steps_again_after_a_restart() {
    let config = OptionsConfig {
        episode_length: EpisodeLength { least: 5, most: 20 },
        ..OptionsConfig::default()
    };
    for num_envs in [3, 8, 19] {
        let mut env = env(&market(80, 3), &config, Split::Train, num_envs);
        crate::tests::steps_again_after_a_restart(&mut env, 60);
    }
}

#[test]
fn every_model_steps_again_after_a_restart() {
    for (seed, config) in models().into_iter().enumerate() {
        play(&config, seed as u64, 5, 60);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn remembered_pairings_change_nothing(
        seed in 0..1000_u64,
        num_envs in 1..20_usize,
        lines in 1..=MAX_LINES,
        (capital, ruin) in (prop_oneof![Just(3e4), Just(1e5), Just(1e6)], 0.0..0.6),
        (contracts, notional) in (0..10_u32, 0.2..3.0),
        (initial, maintenance) in (0.8..1.5, 0.3..0.8),
        (trade_underlying, shown) in (any::<bool>(), any::<bool>()),
        (kind, expression) in (0..RewardKind::ALL.len(), any::<bool>()),
        (turnover, drawdown, delta) in (0.0..0.1, 0.0..0.5, 0.0..0.5),
        clip in 0.5_f32..5.0,
        most in 5..40_u32,
    ) {
        let mut config = OptionsConfig {
            lines,
            capital,
            ruin,
            trade_underlying,
            clip,
            rate: 0.03,
            reward: RewardConfig {
                kind: RewardKind::ALL[kind],
                expression: if expression { "excess - turnover * days".to_owned() } else { String::new() },
                turnover,
                drawdown,
                delta,
                ..RewardConfig::default()
            },
            episode_length: EpisodeLength { least: 3, most },
            ..OptionsConfig::default()
        };
        (config.sizing.contracts, config.sizing.notional) = (contracts, notional);
        (config.margin.initial, config.margin.maintenance) = (initial, maintenance);
        if !shown {
            config.slate.features.clear();
        }
        play(&config, seed, num_envs, 90);
    }
}
