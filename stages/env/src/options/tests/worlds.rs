//! Environments of several worlds.

use super::*;
use crate::options::synthetic::market;
use crate::options::{FeatureColumn, HeldOut, MarketSource, WorldSet, build_worlds};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The markets as worlds A, B, C, …, each with the number of its world as a feature that is not observed.
fn worlds(
    markets: &[SyntheticMarket],
    config: &OptionsConfig,
) -> Result<Vec<(String, Bytes)>, stages_core::StageError> {
    let sources: Vec<MarketSource<'_>> = markets
        .iter()
        .enumerate()
        .map(|(i, market)| {
            let mut source = market.source();
            source.symbol = char::from(b'A' + i as u8).to_string();
            source.hidden = vec![FeatureColumn {
                name: "number".to_owned(),
                values: market.days.iter().map(|day| (day.time(), i as f64)).collect(),
            }];
            source
        })
        .collect();
    let pairs: Vec<_> = sources.iter().map(|source| (source, &InMemory)).collect();
    Ok(build_worlds(&pairs, config)?.files)
}

fn markets(n: u64) -> Vec<SyntheticMarket> {
    (0..n).map(|i| market(90 + 5 * i as usize, i + 1)).collect()
}

fn held_out() -> OptionsConfig {
    let number = |n| {
        Some(HeldOut {
            worlds: Some(WorldSet::Number(n)),
            ..HeldOut::default()
        })
    };
    OptionsConfig {
        test: number(2),
        validation: number(1),
        episode_length: crate::options::EpisodeLength { least: 20, most: 20 },
        ..OptionsConfig::default()
    }
}

/// Of a world among others, the observations, rewards and accounts are those of an environment of that world
/// alone in the same normalisation.
#[test]
fn a_world_among_others_is_that_world_alone() {
    let all = markets(5);
    let many = worlds(&all, &held_out()).unwrap();
    let mut test = open(&many, &OpenOptions::test(4, 5));
    assert_eq!(test.evaluation_episodes(), 2);
    let normalisation = test.spec().normalisation.clone();
    for (i, number) in [(0, 3), (1, 4)] {
        let config = OptionsConfig {
            test_fraction: 1.0,
            ..OptionsConfig::default()
        };
        let alone = OpenOptions {
            normalise_as: normalisation.clone(),
            ..OpenOptions::test(1, 5)
        };
        let mut alone = open(&files(&all[number], &config), &alone);
        let (mut ours, mut theirs) = (Step::new(test.spec(), 4), Step::new(alone.spec(), 1));
        test.reset(ours.buffers());
        alone.reset(theirs.buffers());
        assert_eq!(test.world(i), ["D", "E"][i]);
        assert_eq!(test.test_steps(i), alone.test_steps(0));
        let mut random = Random::new(&[3, i as u64]);
        let d = test.spec().obs_dim();
        for _ in 0..test.test_steps(i) {
            assert_eq!(ours.obs[i * d..(i + 1) * d], theirs.obs[..]);
            assert_eq!(test.hidden(i), [number as f32]);
            let actions = random_actions(&mut random, &theirs, 1);
            step_discrete(&mut test, &[actions[0]; 4], &mut ours);
            step_discrete(&mut alone, &actions, &mut theirs);
            assert_eq!(ours.reward[i], theirs.reward[0]);
            assert_eq!(
                (ours.terminated[i], ours.truncated[i]),
                (theirs.terminated[0], theirs.truncated[0])
            );
            if theirs.terminated[0] {
                break;
            }
            let (a, b) = (test.ledger(i), alone.ledger(0));
            assert_eq!(
                (a.nav, a.cash, a.margin, a.interest),
                (b.nav, b.cash, b.margin, b.interest)
            );
        }
    }
}

/// Training visits every training world, evenly by length, never another one, and no episode crosses the end
/// of a world.
#[test]
fn episodes_are_of_training_worlds_alone() {
    let files = worlds(&markets(5), &held_out()).unwrap();
    let mut env = open(&files, &OpenOptions::train(64, 9));
    assert_eq!(env.worlds(), ["A", "B", "C", "D", "E"]);
    let mut out = Step::new(env.spec(), 64);
    env.reset(out.buffers());
    let mut visits = std::collections::BTreeMap::<String, usize>::new();
    let mut began: Vec<String> = (0..64).map(|i| env.world(i).to_owned()).collect();
    for _ in 0..200 {
        step_discrete(&mut env, &[0; 64], &mut out);
        for (i, began) in began.iter_mut().enumerate() {
            let world = env.world(i).to_owned();
            if out.truncated[i] {
                *visits.entry(world.clone()).or_default() += 1;
                *began = world;
            } else {
                assert_eq!(*began, world);
            }
        }
    }
    assert_eq!(visits.keys().map(String::as_str).collect::<Vec<_>>(), ["A", "B"]);
    let (a, b) = (visits["A"] as f64, visits["B"] as f64);
    // 640 draws in proportion to 79 and 84 steps: two standard deviations are 0.04.
    assert!((a / (a + b) - 79.0 / 163.0).abs() < 0.08, "{a} {b}");
    let validation = open(&files, &OpenOptions::validation(1, 9));
    assert_eq!((validation.world(0), validation.evaluation_episodes()), ("C", 1));
}

/// Held-out worlds leave the normalisation as it is, and a world more changes no file of the others.
#[test]
fn worlds_do_not_reach_each_other() {
    let all = markets(5);
    let files = worlds(&all, &held_out()).unwrap();
    let mut changed = all.clone();
    for day in &mut changed[4].days {
        day.underlying *= 2.0;
    }
    let other = worlds(&changed, &held_out()).unwrap();
    for ((name, a), (_, b)) in files.iter().zip(&other) {
        assert_eq!(a == b, !name.starts_with("E/"), "{name}");
    }
    let fewer = worlds(&all[..4], &held_out()).unwrap();
    for (name, bytes) in fewer.iter().filter(|(name, _)| name != "env.json") {
        let found = files.iter().find(|(other, _)| other == name);
        assert_eq!(found.map(|(_, bytes)| bytes), Some(bytes), "{name}");
    }
}

#[test]
fn unlike_worlds_are_refused() {
    let all = markets(2);
    let config = OptionsConfig::default();
    let (mut a, b) = (all[0].source(), all[1].source());
    a.features.pop();
    let err = build_worlds(&[(&a, &InMemory), (&b, &InMemory)], &config).unwrap_err();
    assert!(err.message.contains("other features"), "{err:?}");
    let mut c = all[1].source();
    c.multiplier = 10.0;
    let err = build_worlds(&[(&b, &InMemory), (&c, &InMemory)], &config).unwrap_err();
    assert!(err.message.contains("another multiplier"), "{err:?}");
    let err = worlds(&all, &held_out()).unwrap_err();
    assert!(err.message.contains("validation"), "{err:?}");
}

/// The quotes of a part are read once for its snapshots and its histories.
#[test]
fn each_part_is_read_once() {
    let (market, config) = (market(120, 5), OptionsConfig::default());
    let (plain, reads) = (market.source(), AtomicUsize::new(0));
    let source = MarketSource {
        read: Box::new(|part| {
            reads.fetch_add(1, Ordering::Relaxed);
            (plain.read)(part)
        }),
        ..market.source()
    };
    assert_eq!(
        build(&source, &config, &InMemory).unwrap().files,
        files(&market, &config)
    );
    assert_eq!(reads.load(Ordering::Relaxed), source.parts.len());
}

/// Environments beside others share their tables, and step as if they had opened the files themselves.
#[test]
fn environments_beside_others_share_their_tables() {
    let files = worlds(&markets(4), &held_out()).unwrap();
    let training = open(&files, &OpenOptions::train(2, 5));
    let options = OpenOptions::test(3, 7);
    let (mut beside, mut alone) = (training.again(&options).unwrap(), open(&files, &options));
    assert!(std::ptr::eq(training.simulator(), beside.simulator()));
    let mut out = [Step::new(alone.spec(), 3), Step::new(alone.spec(), 3)];
    beside.reset(out[0].buffers());
    alone.reset(out[1].buffers());
    let mut random = Random::new(&[3]);
    for _ in 0..200 {
        let actions = random_actions(&mut random, &out[0], 3);
        step_discrete(&mut beside, &actions, &mut out[0]);
        step_discrete(&mut alone, &actions, &mut out[1]);
        assert_eq!((&out[0].obs, &out[0].reward), (&out[1].obs, &out[1].reward));
    }
    let none = OpenOptions {
        num_envs: 0,
        ..options
    };
    assert!(training.again(&none).is_err());
}
