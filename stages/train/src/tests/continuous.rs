//! Continuous actions, in whole trainings.

use super::*;
use crate::{Ppo, RecurrentPpo, TransformerPpoConfig};
use stages_policy::{Precision, initial};

fn settings(kind: &str) -> PpoSettings {
    let common = json!({
        "total_timesteps": 4096, "n_envs": 6, "n_steps": 64, "batch_size": 128, "normalize_obs": true,
            "policy_kwargs": {},
    });
    let with = |network: serde_json::Value| {
        let mut json = common.clone();
        json["policy_kwargs"] = network;
        json
    };
    match kind {
        "ppo" => serde_json::from_value::<PpoConfig>(common).unwrap().settings(),
        "recurrent" => serde_json::from_value::<RecurrentPpoConfig>(with(json!({ "lstm_hidden_size": 16 })))
            .unwrap()
            .settings(),
        _ => serde_json::from_value::<TransformerPpoConfig>(with(
            json!({ "window": 5, "d_model": 16, "n_heads": 2, "d_ff": 16 }),
        ))
        .unwrap()
        .settings(),
    }
    .unwrap()
}

/// Every ratio is 1 in the first minibatch, whatever the bounds to which the environment clips the drawn
/// torques.
#[test]
fn the_first_minibatch_has_ratios_of_one() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "Pendulum-v1");
    for kind in ["ppo", "recurrent", "transformer"] {
        let settings = settings(kind);
        let network = &settings.common.network;
        let architecture = network.architecture(open(&settings, &context).spec()).unwrap();
        assert!(architecture.head.is_continuous());
        let model = stages_policy::model(&architecture, Precision::F32);
        let (mut ppo, mut learner) = ppo_with(&settings, &context, model, initial(&architecture, false, 4));
        for _ in 0..5 {
            ppo.collect(&mut learner).unwrap();
            learner.state.update += 1;
            assert!(
                ppo.continuous.iter().any(|x| x.abs() > 2.0),
                "torques are stored as drawn"
            );
            let losses = replayed(&ppo, &mut learner, &[4, 0, 3], None);
            assert_eq!(losses.clip_fraction, 0.0, "{kind}: {losses:?}");
            // ln(2 pi e) / 2, for a standard deviation of 1.
            assert!(
                kind == "ppo" || (losses.entropy - 1.418_938_5).abs() < 1e-6,
                "{losses:?}"
            );
        }
        assert!(learner.state.episodes > 5);
    }
}

#[test]
fn a_longer_training_goes_on_from_the_shorter_one() {
    let config = |total: u64| {
        let mut config: RecurrentPpoConfig = serde_json::from_value(json!({
            "n_envs": 6, "n_steps": 64, "batch_size": 128, "n_epochs": 2, "normalize_obs": true,
                "normalize_reward": true,
            "policy_kwargs": { "lstm_hidden_size": 8, "net_arch": { "pi": [8], "vf": [8] } },
        }))
        .unwrap();
        config.training.total_timesteps = total;
        config
    };
    let trained = |totals: &[u64]| {
        let home = tempfile::tempdir().unwrap();
        let mut context = context(home.path());
        connect(&mut context, "Pendulum-v1");
        let mut last = None;
        for &total in totals {
            last = Some(outputs(RecurrentPpo, &config(total), &context));
        }
        last
    };
    assert!(trained(&[1536]) == trained(&[768, 1536]));
}

#[test]
fn a_policy_of_discrete_actions_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-v1");
    let digest = Ppo.run(&cart_pole(256, 1), &context).unwrap()["policy"];
    let artifact = context.store.artifact(digest).unwrap();
    context
        .inputs
        .insert("init".to_owned(), vec![Input { digest, artifact }]);
    connect(&mut context, "Pendulum-v1");
    let refused = Ppo.run(&cart_pole(256, 1), &context).unwrap_err();
    assert!(
        refused.message.contains("`CartPole-v1`") && refused.message.contains("`Pendulum-v1`"),
        "{refused}"
    );
}
