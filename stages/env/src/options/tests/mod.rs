//! Tests of the environment as a whole, on the synthetic market.

mod accounting;
mod action_kinds;
mod contract_features;
mod futures;
mod golden;
mod hedging;
mod intraday;
mod later_fills;
mod lookahead;
mod models;
mod ratios;
mod restarts;
mod rewards;
mod rules;
mod splits;
mod worlds;

use super::synthetic::SyntheticMarket;
use super::{InMemory, OptionsConfig, OptionsEnv, build};
use crate::batch::{BatchEnv, Step};
use crate::open_options::{OpenOptions, Split};
use crate::tests::step_discrete;
use bytes::Bytes;
use stages_numerics::random::Random;

/// The files of a market's environment.
fn files(market: &SyntheticMarket, config: &OptionsConfig) -> Vec<(String, Bytes)> {
    config.validate().unwrap();
    build(&market.source(), config, &InMemory).unwrap().files
}

fn open(files: &[(String, Bytes)], options: &OpenOptions) -> OptionsEnv {
    let file = |wanted: &str| Ok(files.iter().find(|(name, _)| *name == wanted).unwrap().1.clone());
    OptionsEnv::from_files(file, options).unwrap()
}

fn env(market: &SyntheticMarket, config: &OptionsConfig, split: Split, num_envs: usize) -> OptionsEnv {
    let options = OpenOptions {
        split,
        ..OpenOptions::train(num_envs, 5)
    };
    open(&files(market, config), &options)
}

/// The number of an action.
fn action(env: &OptionsEnv, name: &str) -> u32 {
    env.spec()
        .action_space
        .names()
        .iter()
        .position(|action| action == name)
        .unwrap() as u32
}

/// A random allowed action for each environment, or, one time in ten, any action at all.
fn random_actions(random: &mut Random, out: &Step, num_envs: usize) -> Vec<u32> {
    let n = out.action_mask.len() / num_envs;
    (0..num_envs)
        .map(|i| {
            let any = random.below(10) == 0;
            let allowed: Vec<u32> = (0..n as u32)
                .filter(|&a| any || out.action_mask[i * n + a as usize])
                .collect();
            allowed[random.below(allowed.len() as u64) as usize]
        })
        .collect()
}
