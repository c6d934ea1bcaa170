use super::*;
use crate::batch::{BatchEnv, Step};
use crate::open_options::{OpenOptions, Split};
use crate::tests::{context, step_discrete};
use stages_core::StageKind;
use stages_numerics::random::Random;
use std::collections::BTreeMap;

fn env(config: &LookupConfig, options: &OpenOptions) -> LookupEnv {
    from_table(config.clone(), table_file(config, options.split).unwrap(), options).unwrap()
}

#[test]
fn golden() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path(), BTreeMap::new());
    let outputs = Lookup.run(&LookupConfig::default(), &context).unwrap();
    assert_eq!(
        outputs["env"].to_hex(),
        "33c5cc71d5063641f42faea620b197d5a190a10b7ac7a31e178641f0623e5c70"
    );
    let artifact = context.store.artifact(outputs["env"]).unwrap();
    let opened = crate::open(&context.store, &artifact, &OpenOptions::train(2, 0)).unwrap();
    assert_eq!(
        (opened.spec().obs_dim(), opened.spec().action_space.num_outputs()),
        (68, 5)
    );
    let stage = stages_core::erase(Lookup);
    for bad in [
        serde_json::json!({ "rows": 252 }),
        serde_json::json!({ "features": 0 }),
        serde_json::json!({ "rows": 1_000_000_000_u64 }),
        serde_json::json!({ "cost": -1.0 }),
        serde_json::json!({ "episode_length": 0 }),
    ] {
        let config: LookupConfig = serde_json::from_value(bad.clone()).unwrap();
        assert!(Lookup.run(&config, &context).is_err(), "{bad}");
    }
    assert!(stage.resolve(serde_json::json!({ "row": 1 })).is_err());
}

#[test]
fn steps_again_after_a_restart() {
    let config = LookupConfig {
        episode_length: 20,
        ..LookupConfig::default()
    };
    crate::tests::steps_again_after_a_restart(&mut env(&config, &OpenOptions::train(3, 7)), 50);
}

/// The formulas, one environment and one number at a time.
#[test]
fn a_step_by_its_definition() {
    let config = LookupConfig::default();
    let n = 40;
    let mut env = env(&config, &OpenOptions::train(n, 7));
    let table = crate::ipc::read("t", table_file(&config, Split::Train).unwrap()).unwrap();
    let features = crate::ipc::numbers::<arrow_array::types::Float32Type>(&table, "features").unwrap();
    let returns = crate::ipc::numbers::<arrow_array::types::Float32Type>(&table, "return").unwrap();
    let mut out = Step::new(env.spec(), n);
    env.reset(out.buffers());
    let row = |obs: &[f32]| (0..2521).find(|r| features[r * 64..r * 64 + 64] == obs[..64]).unwrap();
    let mut at: Vec<usize> = out.obs.chunks(68).map(row).collect();
    let mut step: Vec<usize> = out.obs.chunks(68).map(|o| (o[66] * 252.0).round() as usize).collect();
    // The beginnings are spread over the episode.
    assert!(step.iter().max().unwrap() - step.iter().min().unwrap() > 100);
    let (mut position, mut profit) = (vec![0.0_f32; n], vec![0.0_f32; n]);
    let mut random = Random::new(&[1]);
    let mut ends = 0;
    for _ in 0..300 {
        let actions: Vec<u32> = (0..n).map(|_| random.below(5) as u32).collect();
        step_discrete(&mut env, &actions, &mut out);
        for i in 0..n {
            let to = [-1.0_f32, -0.5, 0.0, 0.5, 1.0][actions[i] as usize];
            let reward = 100.0 * (to * returns[at[i]] - 0.0005 * (to - position[i]).abs());
            assert_eq!(out.reward[i], reward);
            position[i] = to;
            profit[i] += 0.01 * reward;
            at[i] += 1;
            step[i] += 1;
            assert_eq!((out.terminated[i], out.truncated[i]), (step[i] == 252, false));
            let obs = &out.obs[i * 68..(i + 1) * 68];
            let expected = [to, profit[i], step[i] as f32 * (1.0 / 252.0), reward];
            if out.terminated[i] {
                ends += 1;
                assert_eq!(out.final_obs[i * 68 + 64..(i + 1) * 68], expected);
                assert_eq!(
                    out.final_obs[i * 68..i * 68 + 64],
                    features[at[i] * 64..at[i] * 64 + 64]
                );
                assert_eq!(obs[64..], [0.0; 4]);
                (at[i], step[i], position[i], profit[i]) = (row(obs), 0, 0.0, 0.0);
            } else {
                assert_eq!(obs[..64], features[at[i] * 64..at[i] * 64 + 64]);
                assert_eq!(obs[64..], expected);
            }
        }
    }
    assert!(ends > n);
}

/// The edge has its documented size, and the other features have none.
#[test]
fn the_edge_is_planted_in_both_tables() {
    let config = LookupConfig {
        rows: 200_000,
        features: 2,
        ..LookupConfig::default()
    };
    for split in [Split::Train, Split::Test] {
        let table = crate::ipc::read("t", table_file(&config, split).unwrap()).unwrap();
        let features = crate::ipc::numbers::<arrow_array::types::Float32Type>(&table, "features").unwrap();
        let returns = crate::ipc::numbers::<arrow_array::types::Float32Type>(&table, "return").unwrap();
        let slope = |f: usize| {
            let both = (0..config.rows).map(|r| f64::from(features[2 * r + f]) * f64::from(returns[r]));
            both.sum::<f64>() / config.rows as f64
        };
        // The standard error of a slope is 0.01 / sqrt(200,000).
        assert!((slope(0) - 0.003).abs() < 1e-4, "{}", slope(0));
        assert!(slope(1).abs() < 1e-4, "{}", slope(1));
    }
    let (train, test) = (table_file(&config, Split::Train), table_file(&config, Split::Test));
    assert!(train.unwrap() != test.unwrap());
}

/// The optimal policy earns its computed value on the environment.
#[test]
fn the_best_policy_earns_what_it_is_worth() {
    let config = LookupConfig {
        rows: 100_000,
        features: 1,
        ..LookupConfig::default()
    };
    let n = 2000;
    let mut env = env(&config, &OpenOptions::test(n, 1));
    let optimal = Optimal::new(&config);
    let mut out = Step::new(env.spec(), n);
    env.reset(out.buffers());
    let mut total = 0.0;
    for _ in 0..252 {
        let actions: Vec<u32> = (0..n)
            .map(|i| {
                let (left, position, feature) = env.decision(i);
                optimal.action(left, position, feature)
            })
            .collect();
        step_discrete(&mut env, &actions, &mut out);
        total += out.reward.iter().map(|&r| f64::from(r)).sum::<f64>();
    }
    assert!(out.terminated.iter().all(|&over| over));
    // An episode's return deviates by some 15: the mean by 0.35.
    let (mean, expected) = (total / n as f64, optimal.expected_return());
    assert!((mean - expected).abs() < 1.5, "{mean} {expected}");
}

fn play(n: usize) -> Vec<f32> {
    let mut env = env(&LookupConfig::default(), &OpenOptions::train(n, 3));
    let mut out = Step::new(env.spec(), n);
    env.reset(out.buffers());
    let mut trace = Vec::new();
    for step in 0..300 {
        let actions: Vec<u32> = (0..n).map(|i| ((step + i) % 5) as u32).collect();
        step_discrete(&mut env, &actions, &mut out);
        trace.extend_from_slice(&out.reward);
        trace.extend_from_slice(&out.obs[..68.min(out.obs.len())]);
    }
    trace
}

#[test]
fn the_number_of_threads_and_of_neighbours_changes_nothing() {
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    assert!(pool(1).install(|| play(2500)) == pool(3).install(|| play(2500)));
    let (few, many) = (play(2), play(5));
    for (few, many) in few.chunks(2 + 68).zip(many.chunks(5 + 68)) {
        assert_eq!(few[..2], many[..2]);
    }
}

#[test]
fn saved_and_restored() {
    let config = LookupConfig::default();
    let options = OpenOptions::train(3, 2);
    let mut one = env(&config, &options);
    let mut out = Step::new(one.spec(), 3);
    one.reset(out.buffers());
    for _ in 0..200 {
        step_discrete(&mut one, &[0, 3, 4], &mut out);
    }
    let mut other = env(&config, &OpenOptions::train(3, 2));
    other.restore(&one.save()).unwrap();
    let mut again = out.clone();
    for _ in 0..200 {
        step_discrete(&mut one, &[1, 2, 0], &mut out);
        step_discrete(&mut other, &[1, 2, 0], &mut again);
        assert_eq!((&out.obs, &out.reward), (&again.obs, &again.reward));
    }
    assert!(env(&config, &OpenOptions::train(4, 2)).restore(&one.save()).is_err());
    // A reset begins the next episode, and a second one at once changes nothing.
    one.reset(out.buffers());
    let first = out.obs.clone();
    one.reset(out.buffers());
    assert_eq!(first, out.obs);
}
