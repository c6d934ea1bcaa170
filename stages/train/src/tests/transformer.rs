//! The transformer in whole trainings: replay, threads, stops, warm starts.

use super::*;
use crate::{RecurrentPpo, TransformerPpo, TransformerPpoConfig};
use stages_core::Schedule;
use stages_numerics::class::numerics_class;
use stages_policy::{Mode, Policy, TransformerModel, initial};

/// A small training with everything that has state.
fn small(total_timesteps: u64) -> TransformerPpoConfig {
    serde_json::from_value(json!({
        "total_timesteps": total_timesteps, "seed": 5, "n_envs": 8, "n_steps": 32, "batch_size": 96,
            "n_epochs": 2,
        "learning_rate": 1e-3, "normalize_obs": true, "normalize_reward": true, "checkpoint_interval": 1e-9,
        "policy_kwargs": {
            "window": 6, "d_model": 12, "n_heads": 2, "n_layers": 2, "d_ff": 16, "net_arch": { "pi": [8],
                "vf": [8] }
        },
    }))
    .unwrap()
}

/// In the first minibatch of every rollout no parameter has changed since acting: every ratio is 1, every
/// value the old one, though the parameters did change between rollouts, and keys and values of old ones were
/// kept.
#[test]
fn the_first_minibatch_has_ratios_of_one() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    let settings = small(10_000).settings().unwrap();
    let network = &settings.common.network;
    let architecture = network.architecture(open(&settings, &context).spec()).unwrap();
    let model = Box::new(TransformerModel::new(&architecture).unwrap());
    let (mut ppo, mut learner) = ppo_with(&settings, &context, model, initial(&architecture, false, 4));
    for seed in 0..4 {
        // Larger than at the start of training, so that a wrong state would show.
        learner.state.params = initial(&architecture, false, seed).iter().map(|x| 2.0 * x).collect();
        learner.model.load(&learner.state.params);
        ppo.collect(&mut learner).unwrap();
        learner.state.update += 1;
        let losses = replayed(&ppo, &mut learner, &[5, 0, 3], None);
        assert_eq!(losses.clip_fraction, 0.0, "{losses:?}");
        assert!(losses.value < 1e-10, "{losses:?}");
        // Without the stored states, replay differs: the test can fail.
        let state = vec![0.0; learner.state.state.len()];
        let wrong = replayed(&ppo, &mut learner, &[5, 0, 3], Some(&state));
        assert!(learner.state.update == 1 || wrong.clip_fraction > 0.0, "{wrong:?}");
    }
    assert!(learner.state.episodes > 4);
}

#[test]
fn same_bytes_for_any_number_of_threads() {
    let mut config = small(4096);
    (config.training.n_envs, config.rollouts.batch_size) = (64, 2048);
    (config.policy_kwargs.d_model, config.policy_kwargs.n_heads) = (32, 4);
    let run = |threads: usize| {
        let home = tempfile::tempdir().unwrap();
        let mut context = context(home.path());
        connect(&mut context, "CartPole-hidden-velocity");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| outputs(TransformerPpo, &config, &context))
    };
    let one = run(1);
    assert!(one == run(2));
    assert!(one == run(3));
}

/// If a change moves the digest, raise the `VERSION` of the kind, and then pin the new one here.
#[test]
fn golden() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    let (policy, _) = outputs(TransformerPpo, &small(1024), &context);
    let found = context.store.put(&policy).unwrap().blob.to_string();
    match numerics_class().as_ref() {
        "x86_64-avx512-v2" => {
            assert_eq!(
                found,
                "c25bd1fa114e204769a19a19d283aa0f014b62a32f3bc7cbc0d71a868d6b742d"
            )
        }
        other => eprintln!("no digest is pinned for numerics class {other}: {found}"),
    }
}

#[test]
fn a_longer_training_goes_on_from_the_shorter_one() {
    let fresh = tempfile::tempdir().unwrap();
    let mut whole = context(fresh.path());
    connect(&mut whole, "CartPole-hidden-velocity");
    let wanted = outputs(TransformerPpo, &small(2048), &whole);
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    outputs(TransformerPpo, &small(1024), &context);
    assert_eq!(
        crate::checkpoint::step(checkpoint(home.path()).parent().unwrap()),
        Some(1024)
    );
    assert!(outputs(TransformerPpo, &small(2048), &context) == wanted);
}

#[test]
fn begins_with_the_policy_of_another_and_refuses_other_networks() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    let policy = |context: &mut Context, config: &TransformerPpoConfig| {
        let digest = TransformerPpo.run(config, context)?["policy"];
        let artifact = context.store.artifact(digest)?;
        context.inputs.insert(
            "init".to_owned(),
            vec![Input {
                digest,
                artifact: artifact.clone(),
            }],
        );
        let bytes = context.store.blob(artifact.entry("policy.safetensors").unwrap().blob)?;
        Policy::load(&bytes)
    };
    let first = policy(&mut context, &small(512)).unwrap();
    let mut still = small(256);
    still.training.learning_rate = Schedule::Constant(0.0);
    let warm = policy(&mut context, &still).unwrap();
    assert_eq!(first.params(), warm.params());
    still.policy_kwargs.window = 7;
    let refused = policy(&mut context, &still).unwrap_err();
    assert!(refused.message.contains(r#""window":6"#), "{refused}");
    let refused = RecurrentPpo.run(&hidden_velocity(256, 1), &context).unwrap_err();
    assert!(refused.message.contains("another network"), "{refused}");
}

/// Acting with a trained policy, in any number of environments at once, is a matter of each one's own steps.
#[test]
fn a_trained_policy_acts_the_same_alone_and_in_company() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    let (policy, _) = outputs(TransformerPpo, &small(512), &context);
    let policy = Policy::load(&policy).unwrap();
    let values = |n: usize| {
        let artifact = &context.inputs["env"][0].artifact;
        let mut env = stages_env::open(&context.store, artifact, &OpenOptions::test(n, 9)).unwrap();
        let mut step = Step::new(env.spec(), n);
        env.reset(step.buffers());
        let mut state = policy.start(n);
        let (mut start, mut values) = (vec![true; n], Vec::new());
        for _ in 0..60 {
            let actions = policy.act(&step.obs, &step.action_mask, &start, &mut state, Mode::Greedy);
            env.step(actions, step.buffers()).unwrap();
            values.push(state.output().value[0]);
            for i in 0..n {
                start[i] = step.terminated[i] || step.truncated[i];
            }
        }
        values
    };
    assert_eq!(values(1), values(33));
}
