//! Saved states, threads and instruction sets change nothing.

use super::*;
use crate::reward::RewardKind;
use crate::stocks::synthetic::eventful;
use crate::stocks::{Finrl, Rules};
use rayon::ThreadPoolBuilder;
use stages_numerics::dispatch::InstructionSet;

/// [`models`], FinRL's rules, and a reward with moments; each with the panel that it trades.
fn all() -> Vec<(StocksConfig, PanelSource)> {
    let mut all: Vec<_> = models()
        .into_iter()
        .map(|config| (config, eventful(160, 9, 2, 3)))
        .collect();
    let mut moments = models()[0].clone();
    moments.reward.kind = RewardKind::DifferentialSharpe;
    all.push((moments, eventful(160, 9, 2, 3)));
    let finrl = StocksConfig {
        rules: Rules::Finrl,
        finrl: Finrl {
            turbulence_threshold: Some(1.0),
            risk_indicator_col: "index".to_owned(),
            ..Finrl::default()
        },
        ..StocksConfig::default()
    };
    all.push((finrl, crate::stocks::synthetic::panel(60, 20, 2, 3)));
    all
}

#[test]
fn steps_again_after_a_restart() {
    for (config, source) in all() {
        let files = files(std::slice::from_ref(&source), &config);
        let options = OpenOptions::train(5, 7);
        let (mut env, mut restarted) = (open(&files, &options), open(&files, &options));
        let mut out = Step::new(env.spec(), 5);
        let mut again = out.clone();
        env.reset(out.buffers());
        let mut random = Random::new(&[1]);
        for step in 0..90 {
            let actions = random_actions(&mut random, &env.spec().action_space, 5);
            restarted.restore(&env.save()).unwrap();
            env.step(actions.as_actions(), out.buffers()).unwrap();
            restarted.step(actions.as_actions(), again.buffers()).unwrap();
            assert_eq!(bits(&out.obs), bits(&again.obs), "step {step}");
            assert_eq!(bits(&out.reward), bits(&again.reward), "step {step}");
            assert_eq!(out.action_mask, again.action_mask, "step {step}");
            assert_eq!((&out.terminated, &out.truncated), (&again.terminated, &again.truncated));
            assert!(env.save() == restarted.save(), "step {step}");
        }
        let other = StocksConfig {
            test_fraction: 0.5,
            ..config
        };
        let mut other = open(&self::files(&[source], &other), &OpenOptions::train(4, 7));
        assert!(other.restore(&env.save()).unwrap_err().contains("stocks v1 x 4"));
    }
}

/// The observations, rewards and states of 120 steps of 70 environments.
fn played(
    config: &StocksConfig,
    source: &PanelSource,
    threads: usize,
    instructions: InstructionSet,
) -> Vec<u32> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut env = env(source, config, Split::Train, 70);
        env.set_instructions(instructions);
        let mut out = Step::new(env.spec(), 70);
        env.reset(out.buffers());
        let mut random = Random::new(&[2]);
        let mut all = Vec::new();
        for _ in 0..120 {
            let actions = random_actions(&mut random, &env.spec().action_space, 70);
            env.step(actions.as_actions(), out.buffers()).unwrap();
            all.extend(bits(&out.obs));
            all.extend(bits(&out.reward));
        }
        all.extend(env.save().into_iter().map(u32::from));
        all
    })
}

#[test]
fn threads_and_instruction_sets_give_the_same_bytes() {
    for (config, source) in all() {
        let first = played(&config, &source, 1, InstructionSet::Portable);
        assert!(first == played(&config, &source, 3, InstructionSet::Portable));
        for instructions in InstructionSet::available() {
            assert!(first == played(&config, &source, 2, instructions), "{instructions:?}");
        }
    }
}
