//! A training that diverges fails with a message, and leaves the last good checkpoint.

use super::*;
use crate::Ppo;
use crate::trainer::{Job, train};
use stages_core::StageError;
use stages_env::{Actions, EnvSpec, StepBuffers};

#[test]
fn divergence_names_the_step_and_the_last_good_checkpoint() {
    // With one minibatch in a rollout, the step that spoils the parameters is the last of its update, and the
    // next one finds out.
    for (n_epochs, step) in [(20, 0), (1, 256)] {
        let home = tempfile::tempdir().unwrap();
        let mut context = context(home.path());
        connect(&mut context, "CartPole-v1");
        let mut config = cart_pole(4096, 1);
        config.rollouts.n_epochs = n_epochs;
        config.training.checkpoint_interval = 1e-9;
        config.training.learning_rate = stages_core::Schedule::Constant(1e30);
        let err = Ppo.run(&config, &context).unwrap_err();
        assert!(err.message.contains(&format!("diverged at step {step} ")), "{err}");
        let file = checkpoint(home.path());
        let hint = err.hint.unwrap();
        let wanted = format!("the last good checkpoint (step 0) is `{}`", file.display());
        assert!(hint.contains(&wanted), "{hint}");
        let kept = saved(file.parent().unwrap());
        assert_eq!(kept.step, 0);
        assert!(kept.params.iter().all(|x| x.abs() < 10.0));
    }
}

#[test]
fn a_bad_reward_stops_training_before_it_spoils_the_policy() {
    struct Poisoned(Box<dyn BatchEnv>, u32);
    impl BatchEnv for Poisoned {
        fn spec(&self) -> &EnvSpec {
            self.0.spec()
        }
        fn num_envs(&self) -> usize {
            self.0.num_envs()
        }
        fn reset(&mut self, out: StepBuffers<'_>) {
            self.0.reset(out);
        }
        fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
            let StepBuffers {
                obs,
                reward,
                terminated,
                truncated,
                final_obs,
                action_mask,
            } = out;
            let inner = StepBuffers {
                obs,
                reward: &mut *reward,
                terminated,
                truncated,
                final_obs,
                action_mask,
            };
            self.0.step(actions, inner)?;
            self.1 += 1;
            if self.1 == 100 {
                reward[3] = f32::NAN;
            }
            Ok(())
        }
        fn save(&self) -> Vec<u8> {
            self.0.save()
        }
        fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
            self.0.restore(bytes)
        }
    }
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-v1");
    let mut config = cart_pole(4096, 1);
    config.training.checkpoint_interval = 1e-9;
    let settings = config.settings().unwrap();
    let scratch = home.path().join("here");
    std::fs::create_dir(&scratch).unwrap();
    let env = open(&settings, &context);
    let architecture = settings.common.network.architecture(env.spec()).unwrap();
    let job = Job {
        stored: None,
        validation: None,
        continuation: None,
        kind: "test",
        env: Box::new(Poisoned(env, 0)),
        model: stages_policy::model(&architecture, settings.common.rollouts.precision),
        init: None,
        scratch: &scratch,
        context: &context,
    };
    let err = train(&mut Algorithm::new(&settings), job).unwrap_err();
    // Step 100 of 8 environments lies in the fourth rollout of 32, which learns from step 768 on.
    assert!(
        err.message.contains("diverged at step 768 (update 4, epoch 1)"),
        "{err}"
    );
    assert!(err.hint.unwrap().contains("the last good checkpoint (step 512)"));
    let kept = saved(&scratch);
    assert_eq!(kept.step, 512);
    assert!(kept.params.iter().all(|x| x.is_finite()));
}
