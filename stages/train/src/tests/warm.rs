//! Trainings that begin with the policy of another.

use super::*;
use crate::{Ppo, RecurrentPpo};
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
    still.learning_rate = Schedule::Constant(0.0);
    let cold = train(Ppo, &still, &context).unwrap();
    assert_ne!(load(&context, &cold).params(), load(&context, &first).params());
    context.inputs.insert("init".to_owned(), vec![first.clone()]);
    let warm = train(Ppo, &still, &context).unwrap();
    assert_eq!(warm.digest, first.digest);

    // What it learns is kept apart from what a cold start learned: neither goes on from the other's checkpoint.
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
    still.learning_rate = Schedule::Constant(0.0);
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
    normal.normalize_obs = true;
    let refused = train(Ppo, &normal, &context).unwrap_err();
    assert!(refused.message.contains("without `normalize_obs`"), "{refused}");
    connect(&mut context, "CartPole-hidden-velocity");
    let refused = train(Ppo, &cart_pole(256, 1), &context).unwrap_err();
    assert!(
        refused.message.contains("`CartPole-v1`") && refused.message.contains("`CartPole-hidden-velocity`"),
        "{refused}"
    );
}
