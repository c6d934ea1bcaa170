//! Policies of stable-baselines3 beside what they put out there: `tests/reference/sb3`.

use super::sb3;
use crate::Mode;
use cache::{KeyHasher, Store};
use serde_json::Value;
use stages_core::{Context, StageKind as _};
use stages_env::classic::Classic;
use stages_env::{Actions, EnvSpec, OpenOptions};
use std::path::{Path, PathBuf};

const MODELS: [(&str, &str); 8] = [
    ("ppo_cart_pole", "train/ppo"),
    ("a2c_cart_pole", "train/a2c"),
    ("ppo_pendulum", "train/ppo"),
    ("dqn_cart_pole", "train/dqn"),
    ("sac_pendulum", "train/sac"),
    ("td3_pendulum", "train/td3"),
    ("recurrent_ppo_cart_pole", "train/recurrent_ppo"),
    ("recurrent_ppo_shared", "train/recurrent_ppo"),
];

fn reference(name: &str) -> PathBuf {
    Path::new("../../tests/reference/sb3").join(name)
}

fn spec(store: &Store, id: &str) -> EnvSpec {
    let config = serde_json::from_value(serde_json::json!({ "id": id })).unwrap();
    let context = Context::new(KeyHasher::new("test").action_key(), store.clone());
    let digest = Classic.run(&config, &context).unwrap()["env"];
    let env = stages_env::open(store, &store.artifact(digest).unwrap(), &OpenOptions::train(1, 0)).unwrap();
    env.spec().clone()
}

fn floats(value: &Value) -> Vec<f32> {
    let values = value.as_array().unwrap().iter();
    values.map(|value| value.as_f64().unwrap() as f32).collect()
}

#[test]
fn an_imported_policy_puts_out_what_it_did_there() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for (name, kind) in MODELS {
        let expected: Value =
            serde_json::from_slice(&std::fs::read(reference(&format!("{name}.json"))).unwrap()).unwrap();
        let spec = spec(&store, expected["env"].as_str().unwrap());
        let bytes = std::fs::read(reference(&format!("{name}.zip"))).unwrap();
        let policy = sb3::policy(&bytes, &store, &spec).unwrap();
        assert_eq!(policy.kind(), kind);
        let head = &policy.architecture().head;
        let mut state = policy.start(1);
        let masks = vec![true; head.num_outputs()];
        for (i, obs) in expected["observations"].as_array().unwrap().iter().enumerate() {
            let there = &expected["outputs"][i];
            let actions = policy.act(&floats(obs), &masks, &[i == 0], &mut state, Mode::Greedy);
            if let (Actions::Discrete(chosen), "train/dqn") = (&actions, kind) {
                let values = floats(&there["action"]);
                assert_eq!(chosen[0] == 1, values[1] > values[0], "{name} {i}");
                // The value is that of acting at random in 5 % of the steps, SB3's default.
                let expected = 0.975 * values[0].max(values[1]) + 0.025 * values[0].min(values[1]);
                let value = state.output().value[0];
                assert!((value - expected).abs() < 1e-5, "{name} {i}: {value} {expected}");
                continue;
            }
            if let (Actions::Continuous(action), false) = (&actions, head.has_critic()) {
                // Within bounds of -2 and 2.
                let there = floats(&there["action"]);
                assert!((action[0] - there[0]).abs() < 1e-5, "{name} {i}: {action:?} {there:?}");
                continue;
            }
            let output = state.output();
            let ours = if head.is_continuous() {
                &output.mean
            } else {
                &output.log_prob
            };
            let mut pairs: Vec<(f32, f32)> = ours.iter().copied().zip(floats(&there["action"])).collect();
            assert_eq!(pairs.len(), head.num_outputs(), "{name}");
            if let Some(value) = there["value"].as_f64() {
                pairs.push((output.value[0], value as f32));
            }
            for (ours, theirs) in pairs {
                assert!(
                    (ours - theirs).abs() < 1e-5 * (1.0 + theirs.abs()),
                    "{name} {i}: {ours} {theirs}"
                );
            }
        }
    }
}

#[test]
fn a_policy_of_another_environment_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let of = |name: &str, id: &str| {
        let bytes = std::fs::read(reference(&format!("{name}.zip"))).unwrap();
        let err = sb3::policy(&bytes, &store, &spec(&store, id)).err().unwrap();
        assert!(err.hint.is_some(), "{err}");
        err.message
    };
    let message = of("ppo_cart_pole", "Pendulum-v1");
    assert!(
        message.contains("`mlp_extractor.policy_net.0.weight` is [8, 4], and the environment"),
        "{message}"
    );
    let message = of("sac_pendulum", "CartPole-v1");
    assert!(message.contains("has continuous actions"), "{message}");
    let message = of("dqn_cart_pole", "Pendulum-v1");
    assert!(message.contains("has 2 actions"), "{message}");
    for bytes in [&b"no zip"[..], &[]] {
        let err = sb3::policy(bytes, &store, &spec(&store, "CartPole-v1")).err().unwrap();
        assert!(err.message.contains("not a file of stable-baselines3"), "{err}");
    }
}
