//! Environments side by side give the bytes that each gives alone.

use super::*;
use crate::options::config::MAX_LINES;
use crate::options::env::Stepping;
use crate::options::synthetic::market;
use crate::options::{EpisodeLength, RewardConfig, RewardKind};
use proptest::prelude::*;

/// Plays the same random actions in every way, through saved states too, and compares all that is shown.
fn play(config: &OptionsConfig, seed: u64, num_envs: usize, steps: usize) {
    let files = files(&market(90, seed), config);
    let mut envs: Vec<(Stepping, OptionsEnv, Step)> = Stepping::all()
        .into_iter()
        .map(|way| {
            let mut env = open(&files, &OpenOptions::train(num_envs, seed));
            env.path = way;
            let out = Step::new(env.spec(), num_envs);
            (way, env, out)
        })
        .collect();
    envs.iter_mut().for_each(|(_, env, out)| env.reset(out.buffers()));
    let mut random = Random::new(&[seed]);
    let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|value| value.to_bits()).collect() };
    for step in 0..steps {
        let actions = random_actions(&mut random, &envs[0].2, num_envs);
        envs.iter_mut()
            .for_each(|(_, env, out)| step_discrete(env, &actions, out));
        let [(_, _, first), others @ ..] = &envs[..] else {
            unreachable!()
        };
        for (way, _, out) in others {
            assert_eq!(bits(&first.obs), bits(&out.obs), "{way:?}, step {step}");
            assert_eq!(bits(&first.reward), bits(&out.reward), "{way:?}, step {step}");
            assert_eq!(bits(&first.final_obs), bits(&out.final_obs), "{way:?}, step {step}");
            assert_eq!(first.action_mask, out.action_mask, "{way:?}, step {step}");
            assert_eq!(
                (&first.terminated, &first.truncated),
                (&out.terminated, &out.truncated),
                "{way:?}, step {step}"
            );
        }
        if step % 20 == 10 {
            let saved = envs[0].1.save();
            for (way, env, _) in &mut envs {
                assert!(env.save() == saved, "{way:?}, step {step}");
                env.restore(&saved).unwrap();
            }
        }
    }
    for i in 0..num_envs {
        for (_, env, _) in &envs[1..] {
            assert_eq!(env.ledger(i), envs[0].1.ledger(i));
            assert_eq!(env.final_ledger(i), envs[0].1.final_ledger(i));
            assert_eq!(env.positions(i), envs[0].1.positions(i));
        }
    }
}

#[test]
fn buffers_of_the_caller() {
    let config = OptionsConfig {
        episode_length: EpisodeLength { least: 5, most: 20 },
        ..OptionsConfig::default()
    };
    for num_envs in [3, 8, 19] {
        let mut env = env(&market(80, 3), &config, Split::Train, num_envs);
        crate::testing::steps_again_after_a_restart(&mut env, 60);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_bytes_as_alone(
        seed in 0..1000_u64,
        num_envs in 1..20_usize,
        lines in 1..=MAX_LINES,
        (capital, ruin) in (prop_oneof![Just(3e4), Just(1e5), Just(1e6)], 0.0..0.6),
        (contracts, notional) in (0..10_u32, 0.2..3.0),
        (initial, maintenance) in (0.8..1.5, 0.3..0.8),
        (trade_underlying, shown, log) in (any::<bool>(), any::<bool>(), any::<bool>()),
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
                kind: if log { RewardKind::Log } else { RewardKind::Simple },
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
