//! Batches: restarts, threads, neighbours, normalisation, and nothing of the future.

use super::*;
use crate::actions::Actions;
use crate::tests::{step_discrete, steps_again_after_a_restart};
use std::collections::BTreeMap;

fn short() -> TableConfig {
    TableConfig {
        episode_length: crate::episode::EpisodeLength { least: 5, most: 15 },
        purge: 3,
        ..price()
    }
}

#[test]
fn steps_again_from_a_saved_state() {
    let source = random(3, 120, 2);
    let sharpe = TableConfig {
        reward: crate::reward::RewardConfig {
            kind: crate::reward::RewardKind::DifferentialSharpe,
            ..Default::default()
        },
        ..short()
    };
    let choices = TableConfig {
        price: String::new(),
        action_rewards: ["pay", "other"].map(str::to_owned).into(),
        ..short()
    };
    for config in [short(), sharpe, choices] {
        let mut env = opened(&source, &config, &OpenOptions::train(4, 7));
        steps_again_after_a_restart(&mut env, 60);
        let other = opened(&source, &config, &OpenOptions::train(5, 7)).restore(&env.save());
        assert!(other.unwrap_err().contains("table v1"));
    }
}

fn play(source: &TableSource, n: usize) -> Vec<f32> {
    let mut env = opened(source, &short(), &OpenOptions::train(n, 3));
    let d = env.spec().obs_dim();
    let mut out = begun(&mut env);
    let mut trace = Vec::new();
    for step in 0..40 {
        let actions: Vec<u32> = (0..n).map(|i| ((step + i) % 3) as u32).collect();
        step_discrete(&mut env, &actions, &mut out);
        trace.extend_from_slice(&out.reward[..2]);
        trace.extend_from_slice(&out.obs[..2 * d]);
    }
    trace
}

#[test]
fn threads_and_neighbours_change_nothing() {
    let source = random(2, 100, 4);
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    assert!(pool(1).install(|| play(&source, 1500)) == pool(3).install(|| play(&source, 1500)));
    assert_eq!(play(&source, 2), play(&source, 1500));
}

/// Every start within the training rows of every symbol occurs, no row beyond them is seen, and episodes have
/// the lengths that were asked for.
#[test]
fn training_episodes_stay_in_the_training_rows() {
    let source = random(2, 60, 4);
    let built = build(&source, &short()).unwrap();
    let spec: tables::Spec = serde_json::from_slice(&built.files[0].1).unwrap();
    let last = spec.worlds[0].splits.train[0].last;
    let mut env = from(&built, &OpenOptions::train(64, 1));
    let mut out = begun(&mut env);
    let mut seen = std::collections::BTreeSet::new();
    let mut lengths = std::collections::BTreeSet::new();
    for _ in 0..200 {
        for i in 0..64 {
            seen.insert((env.world(i).to_owned(), env.snapshot(i) % 60));
            assert!(env.snapshot(i) % 60 <= last);
        }
        step_discrete(&mut env, &[1; 64], &mut out);
        for i in 0..64 {
            if out.truncated[i] {
                lengths.insert(env.final_ledger(i).unwrap().step);
            }
        }
    }
    // An episode that ends is followed at once by the next: the last row is no state to decide in.
    assert_eq!(seen.len(), 2 * last);
    assert_eq!(lengths, (5..=15).collect());
}

/// Mean 0 and deviation 1 over the training rows of all symbols; the test rows do not count.
#[test]
fn normalisation_is_fitted_on_training_rows() {
    let mut source = random(2, 100, 9);
    let built = build(&source, &short()).unwrap();
    let env = from(&built, &OpenOptions::train(1, 0));
    let spec: tables::Spec = serde_json::from_slice(&built.files[0].1).unwrap();
    let train = spec.worlds[0].splits.train[0];
    let rows: Vec<f32> = [0, 100]
        .iter()
        .flat_map(|start| (train.first..=train.last).map(move |t| start + t))
        .map(|t| env.common().row(t)[0])
        .collect();
    let mean = rows.iter().sum::<f32>() / rows.len() as f32;
    let square = rows.iter().map(|v| v * v).sum::<f32>() / rows.len() as f32;
    assert!(mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-4, "{mean} {square}");
    for symbol in &mut source.symbols {
        symbol.values[1][train.last + 1..].fill(1e6);
    }
    let other: tables::Spec = serde_json::from_slice(&build(&source, &short()).unwrap().files[0].1).unwrap();
    assert_eq!(other.env.normalisation, spec.env.normalisation);
    let changed = from(&build(&source, &short()).unwrap(), &OpenOptions::train(1, 0));
    assert_eq!(changed.common().row(99)[0], 5.0);
}

/// Rows after the one that an environment is at change nothing that it has shown, paid or allowed until then.
#[test]
fn nothing_looks_ahead() {
    let source = random(2, 80, 11);
    let with = |kind: TableActionKind| {
        whole(TableConfig {
            actions: TableActions {
                kind,
                ..TableActions::default()
            },
            ..price()
        })
    };
    let of_rewards = whole(TableConfig {
        reward_column: "pay".to_owned(),
        ..TableConfig::default()
    });
    for config in [
        with(TableActionKind::Discrete),
        with(TableActionKind::Weights),
        of_rewards,
    ] {
        for cut in [1, 20, 41] {
            let mut other = source.clone();
            let mut random = Random::new(&[cut as u64]);
            for symbol in &mut other.symbols {
                for values in &mut symbol.values {
                    values[cut + 1..]
                        .iter_mut()
                        .for_each(|value| *value = 1.0 + random.uniform());
                }
            }
            let mut pair = [&source, &other].map(|source| opened(source, &config, &OpenOptions::test(1, 0)));
            let mut outs = pair.each_mut().map(begun);
            for row in 0..cut {
                for (env, out) in pair.iter_mut().zip(&mut outs) {
                    let is_discrete = config.actions.kind == TableActionKind::Discrete;
                    match is_discrete {
                        true => step_discrete(env, &[(row % 3) as u32], out),
                        false => env.step(Actions::Continuous(&[0.3, -0.4]), out.buffers()).unwrap(),
                    }
                }
                assert_eq!(outs[0].obs, outs[1].obs, "row {row} of {cut}");
                assert_eq!(outs[0].reward, outs[1].reward);
            }
        }
    }
}

/// A row more of each symbol changes the file of its month alone, and the specification.
#[test]
fn a_day_more_changes_the_last_part_alone() {
    let source = random(3, 100, 4);
    let until = |rows: usize| {
        let mut cut = source.clone();
        for symbol in &mut cut.symbols {
            symbol.times.truncate(rows);
            symbol.values.iter_mut().for_each(|values| values.truncate(rows));
        }
        cut
    };
    let weights = TableConfig {
        actions: TableActions {
            kind: TableActionKind::Weights,
            ..TableActions::default()
        },
        ..price()
    };
    for config in [price(), weights] {
        let nights: Vec<BTreeMap<String, Vec<u8>>> = (85..=100)
            .map(|rows| build(&until(rows), &config).unwrap().files.into_iter().collect())
            .collect();
        for (night, pair) in nights.windows(2).enumerate() {
            let month = if 85 + night < 91 { "2020-03" } else { "2020-04" };
            for (name, bytes) in &pair[0] {
                let is_same = pair[1][name] == *bytes;
                let own = name == "env.json" || name.starts_with(&format!("table/{month}"));
                assert_eq!(is_same, !own, "{name} of night {night}");
            }
        }
        let names: Vec<&str> = nights[15].keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "env.json",
                "table/2020-01-01_2020-01-31.arrow",
                "table/2020-02-01_2020-02-29.arrow",
                "table/2020-03-01_2020-03-31.arrow",
                "table/2020-04-01_2020-04-30.arrow",
            ]
        );
    }
}

/// Rows with instants: days are fractions, and no day is split.
#[test]
fn several_rows_a_day() {
    let mut source = random(1, 120, 6);
    for (i, time) in source.symbols[0].times.iter_mut().enumerate() {
        let date: Date = "2020-01-01".parse().unwrap();
        let date = date.plus(i as i32 / 4);
        *time = SnapshotTime {
            date,
            instant: Some(i64::from(date.0) * 86_400_000_000 + (i as i64 % 4) * 3_600_000_000),
        };
    }
    let config = TableConfig {
        reward: crate::reward::RewardConfig {
            expression: "days".to_owned(),
            scale: 24.0,
            ..Default::default()
        },
        purge: 0,
        ..short()
    };
    let mut env = opened(&source, &config, &OpenOptions::test(1, 0));
    let mut out = begun(&mut env);
    assert_eq!((env.snapshot(0), env.test_steps(0)), (88, 31));
    let mut hours = Vec::new();
    for _ in 0..4 {
        step_discrete(&mut env, &[0], &mut out);
        hours.push(out.reward[0].round());
    }
    assert_eq!(hours, [1.0, 1.0, 1.0, 21.0]);
}
