//! Environments of several markets.

use super::*;
use crate::stocks::synthetic::panel;
use crate::worlds::{HeldOut, WorldSet};

fn sources(n: usize) -> Vec<PanelSource> {
    (0..n)
        .map(|i| {
            let mut source = panel(90 + 5 * i, 4, 2, i as u64 + 1);
            source.name = char::from(b'A' + i as u8).to_string();
            source
        })
        .collect()
}

fn held_out() -> StocksConfig {
    let number = |n| {
        Some(HeldOut {
            worlds: Some(WorldSet::Number(n)),
            ..HeldOut::default()
        })
    };
    StocksConfig {
        test: number(2),
        validation: number(1),
        episode_length: EpisodeLength { least: 20, most: 20 },
        ..StocksConfig::default()
    }
}

#[test]
fn a_world_among_others_is_that_world_alone() {
    let all = sources(5);
    let mut test = open(&files(&all, &held_out()), &OpenOptions::test(4, 5));
    assert_eq!(
        (test.evaluation_episodes(), test.worlds()),
        (2, vec!["A", "B", "C", "D", "E"])
    );
    assert_eq!(test.spec().observation[1], "stock[0].indicator_0");
    let normalisation = test.spec().normalisation.clone();
    for (i, number) in [(0, 3), (1, 4)] {
        let config = StocksConfig {
            test_fraction: 1.0,
            ..StocksConfig::default()
        };
        let options = OpenOptions {
            normalise_as: normalisation.clone(),
            ..OpenOptions::test(1, 5)
        };
        let mut alone = open(&files(&all[number..=number], &config), &options);
        let (mut ours, mut theirs) = (Step::new(test.spec(), 4), Step::new(alone.spec(), 1));
        test.reset(ours.buffers());
        alone.reset(theirs.buffers());
        assert_eq!(test.world(i), ["D", "E"][i]);
        assert_eq!(test.test_steps(i), alone.test_steps(0));
        let mut random = Random::new(&[3, i as u64]);
        let d = test.spec().obs_dim();
        for step in 0..alone.test_steps(0) {
            assert_eq!(ours.obs[i * d..(i + 1) * d], theirs.obs[..]);
            let weights: Vec<f32> = (0..4).map(|_| random.uniform() as f32).collect();
            test.step(crate::actions::Actions::Continuous(&weights.repeat(4)), ours.buffers())
                .unwrap();
            alone
                .step(crate::actions::Actions::Continuous(&weights), theirs.buffers())
                .unwrap();
            assert_eq!(ours.reward[i], theirs.reward[0]);
            let is_last = step + 1 == alone.test_steps(0);
            assert_eq!((ours.truncated[i], theirs.truncated[0]), (is_last, is_last));
            if !is_last {
                assert_eq!(test.ledger(i).nav, alone.ledger(0).nav);
            }
        }
        assert_eq!(test.final_ledger(i).unwrap().nav, alone.final_ledger(0).unwrap().nav);
        assert_eq!(test.final_weights(i), alone.final_weights(0));
    }
}

#[test]
fn training_is_on_training_worlds_alone() {
    let files = files(&sources(5), &held_out());
    let mut env = open(&files, &OpenOptions::train(64, 9));
    let mut out = Step::new(env.spec(), 64);
    env.reset(out.buffers());
    let mut visited = std::collections::BTreeSet::new();
    for _ in 0..100 {
        env.step_baseline(crate::BaselineName::Cash, out.buffers());
        visited.extend((0..64).map(|i| env.world(i).to_owned()));
    }
    assert_eq!(visited.into_iter().collect::<Vec<_>>(), ["A", "B"]);
    let validation = open(&files, &OpenOptions::validation(1, 9));
    assert_eq!((validation.world(0), validation.evaluation_episodes()), ("C", 1));
}

#[test]
fn unlike_worlds_are_refused() {
    let mut unlike = sources(5);
    unlike[1].bars.pop();
    unlike[1].symbol_features.iter_mut().for_each(|feature| {
        feature.values.pop();
    });
    let err = build(&unlike, &held_out()).unwrap_err();
    assert!(err.message.contains("`B` has 3 symbols, and `A` has 4"), "{err}");
}

#[test]
fn a_world_that_validates_on_its_test_dates_is_refused() {
    let config = StocksConfig {
        test: None,
        ..held_out()
    };
    let all = sources(5);
    let err = build(&all, &config).unwrap_err();
    assert!(err.message.contains("overlap the test dates"), "{}", err.message);
}
