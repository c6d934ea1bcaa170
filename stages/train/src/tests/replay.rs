//! What learning replays is what acting did.

use super::*;
use crate::carry::Carry;
use crate::clock::Clock;
use crate::rollout::Rollout;
use stages_env::{OpenOptions, Step};
use stages_policy::{Batch, FusedModel, LossSettings, Model, Precision, initial};

/// In the first minibatch of the first epoch, no parameter has changed since acting: every ratio is 1, every value the old one.
/// Rollouts begin in the middle of episodes, and episodes end within them.
#[test]
fn the_first_minibatch_has_ratios_of_one() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    for (shared_lstm, enable_critic_lstm) in [(false, true), (true, false), (false, false)] {
        let mut config = hidden_velocity(10_000, 3);
        config.policy_kwargs.shared_lstm = shared_lstm;
        config.policy_kwargs.enable_critic_lstm = enable_critic_lstm;
        let settings = config.settings().unwrap();
        let options = OpenOptions::train(settings.n_envs, settings.seed);
        let mut env = stages_env::open(&context.store, &context.inputs["env"][0].artifact, &options).unwrap();
        let architecture = settings.architecture(env.spec());
        let mut model = FusedModel::new(&architecture, Precision::F32);
        // Larger than at the start of training, so that a wrong state would show.
        let params: Vec<f32> = initial(&architecture, false, 4).iter().map(|x| 3.0 * x).collect();
        model.load(&params);
        let mut first = Step::new(env.spec(), settings.n_envs);
        env.reset(first.buffers());
        let state_len = architecture.state_len();
        let mut carry = Carry::new(&settings, env.spec(), params, None, state_len, &first);
        let mut rollout = Rollout::default();
        let mut gradient = vec![0.0; carry.params.len()];
        for _ in 0..4 {
            let clock = &mut Clock::default();
            rollout
                .collect(&settings, &mut *env, &mut model, &mut carry, clock, |_, _| Ok(()))
                .unwrap();
            carry.update += 1;
            let batch = rollout.batch(&settings);
            let target = rollout.value.clone();
            let batch = Batch {
                pick: &[5, 0, 3],
                // So that the value loss is the square of how far values are from the old ones.
                target: &target,
                ..batch
            };
            let loss = LossSettings {
                clip_range: 1e-5,
                clip_range_vf: None,
                ent_coef: 0.0,
                vf_coef: 0.5,
                normalize_advantage: true,
            };
            let losses = model.gradient(&batch, &loss, &mut gradient);
            assert_eq!(losses.clip_fraction, 0.0, "{losses:?}");
            assert!(losses.value < 1e-10, "{losses:?}");
            // Without the stored states, replay differs: the test can fail.
            let state = vec![0.0; batch.state.len()];
            let wrong = model.gradient(&Batch { state: &state, ..batch }, &loss, &mut gradient);
            assert!(carry.update == 1 || wrong.clip_fraction > 0.0, "{wrong:?}");
        }
        assert!(carry.episodes > 4);
    }
}
