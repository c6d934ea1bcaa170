//! Trainings that begin with the policy of another.

use super::*;
use crate::settings::Resume;
use crate::{Ppo, RecurrentPpo, RecurrentPpoConfig, ValidationConfig};
use stages_core::{Schedule, StageError};
use stages_policy::Policy;

/// The policy that a training gives.
fn train<S: StageKind>(stage: S, config: &S::Config, context: &Context) -> Result<Input, StageError> {
    let digest = stage.run(config, context)?["policy"];
    let artifact = context.store.artifact(digest)?;
    Ok(Input { digest, artifact })
}

fn load(context: &Context, policy: &Input) -> Policy {
    crate::warm_start::policy(
        &Context {
            inputs: BTreeMap::from([("init".to_owned(), vec![policy.clone()])]),
            ..Context::new(context.key, context.store.clone())
        }
        .given(),
        "init",
    )
    .unwrap()
    .unwrap()
}

#[test]
fn begins_with_the_other_policy() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-v1");
    let first = train(Ppo, &cart_pole(1024, 1), &context).unwrap();

    // A training with a learning rate of 0 returns the initial policy, whatever its seed.
    let mut still = cart_pole(512, 2);
    still.training.learning_rate = Schedule::Constant(0.0);
    let cold = train(Ppo, &still, &context).unwrap();
    assert_ne!(load(&context, &cold).params(), load(&context, &first).params());
    context.inputs.insert("init".to_owned(), vec![first.clone()]);
    let warm = train(Ppo, &still, &context).unwrap();
    assert_eq!(warm.digest, first.digest);

    // What it learns is kept apart from what a cold start learned: neither goes on from the other's
    // checkpoint.
    let warm = train(Ppo, &cart_pole(1024, 1), &context).unwrap();
    assert_ne!(warm.digest, first.digest);
    assert_eq!(checkpoints(home.path()).len(), 4);
    context.inputs.remove("init");
    assert_eq!(train(Ppo, &cart_pole(1024, 1), &context).unwrap().digest, first.digest);
}

#[test]
fn goes_on_with_the_statistics_of_observations() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    let first = train(RecurrentPpo, &hidden_velocity(2048, 1), &context).unwrap();
    context.inputs.insert("init".to_owned(), vec![first.clone()]);
    let mut still = hidden_velocity(256, 7);
    still.training.learning_rate = Schedule::Constant(0.0);
    let warm = train(RecurrentPpo, &still, &context).unwrap();
    let (first, warm) = (load(&context, &first), load(&context, &warm));
    assert_eq!(first.params(), warm.params());
    let (old, new) = (
        first.observation_normalisation().unwrap(),
        warm.observation_normalisation().unwrap(),
    );
    assert_ne!(old, new, "it has seen more");
    for (old, new) in old.scale.iter().zip(&new.scale) {
        assert!((new / old - 1.0).abs() < 0.05, "{old} {new}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-v1");
    let policy = train(Ppo, &cart_pole(256, 1), &context).unwrap();
    context.inputs.insert("init".to_owned(), vec![policy]);
    let mut wide = cart_pole(256, 1);
    wide.policy_kwargs.net_arch.pi = vec![32];
    let refused = train(Ppo, &wide, &context).unwrap_err();
    assert!(
        refused.message.contains(r#""pi":[64,64]"#) && refused.message.contains(r#""pi":[32]"#),
        "{refused}"
    );
    assert!(refused.hint.is_some());
    let mut normal = cart_pole(256, 1);
    normal.ppo.normalize_obs = true;
    let refused = train(Ppo, &normal, &context).unwrap_err();
    assert!(refused.message.contains("without `normalize_obs`"), "{refused}");
    connect(&mut context, "CartPole-hidden-velocity");
    let refused = train(Ppo, &cart_pole(256, 1), &context).unwrap_err();
    assert!(
        refused.message.contains("`CartPole-v1`") && refused.message.contains("`CartPole-hidden-velocity`"),
        "{refused}"
    );
}

/// A training with everything that has state, at a constant learning rate.
fn steady(total_timesteps: u64) -> RecurrentPpoConfig {
    let mut config = hidden_velocity(total_timesteps, 3);
    config.training.learning_rate = Schedule::Constant(1e-3);
    config.ppo.clip_range = Schedule::Constant(0.2);
    config.policy_kwargs.lstm_hidden_size = 16;
    config.rollouts.n_epochs = 3;
    config.training.save_train_state = true;
    config.training.validation = ValidationConfig {
        every: Some(700),
        episodes: Some(3),
        ..ValidationConfig::default()
    };
    config
}

#[test]
fn a_continued_training_ends_in_the_bytes_of_a_longer_one() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    let first = train(RecurrentPpo, &steady(1500), &context).unwrap();
    let long = train(RecurrentPpo, &steady(4000), &context).unwrap();

    context.inputs.insert("init".to_owned(), vec![first.clone()]);
    let mut more = steady(4000);
    more.training.resume = Resume::Continue;
    let continued = train(RecurrentPpo, &more, &context).unwrap();
    assert_eq!(continued.digest, long.digest);
    // Not so if it begins with the parameters alone.
    more.training.resume = Resume::Fresh;
    assert_ne!(train(RecurrentPpo, &more, &context).unwrap().digest, long.digest);

    // In other environments the optimiser and the statistics go on, and the episodes begin anew.
    more.training.resume = Resume::Continue;
    (more.training.seed, more.training.learning_rate) = (4, Schedule::Constant(0.0));
    more.training.total_timesteps = 1600;
    more.training.validation.every = Some(0);
    let other = train(RecurrentPpo, &more, &context).unwrap();
    let state = |policy: &Input| {
        let entry = policy.artifact.entry("train_state.safetensors").unwrap();
        crate::checkpoint::decode(&context.store.blob(entry.blob).unwrap()).unwrap()
    };
    let (before, after) = (state(&first), state(&other));
    assert_eq!((before.step, after.step), (1536, 1792));
    assert_eq!(before.params, after.params);
    assert!(after.optimiser_steps > before.optimiser_steps && after.selection.best.is_none());
    let count = |state: &TrainState| state.statistics.return_rms.as_ref().unwrap().count;
    assert_eq!(count(&after), count(&before) + 256.0);

    more.training.total_timesteps = 1500;
    let refused = train(RecurrentPpo, &more, &context).unwrap_err();
    assert!(refused.message.contains("1536 steps already"), "{refused}");
    more.training.total_timesteps = 1600;
    more.ppo.normalize_reward = false;
    let refused = train(RecurrentPpo, &more, &context).unwrap_err();
    assert!(refused.message.contains("normalize_reward"), "{refused}");
}

#[test]
fn a_policy_without_train_state_is_not_continued() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-v1");
    let mut config = cart_pole(512, 1);
    config.training.resume = Resume::Continue;
    // There is nothing to continue: it begins from the start.
    let first = train(Ppo, &config, &context).unwrap();
    assert_eq!(load(&context, &first).params(), {
        let cold = train(Ppo, &cart_pole(512, 1), &context).unwrap();
        load(&context, &cold).params().to_vec()
    });
    context.inputs.insert("init".to_owned(), vec![first]);
    let refused = train(Ppo, &config, &context).unwrap_err();
    assert!(refused.hint.unwrap().contains("save_train_state"));
}
