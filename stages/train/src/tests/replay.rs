//! The update reproduces the outputs of acting.

use super::*;
use stages_policy::{FusedModel, Precision, initial};

/// In the first minibatch of the first epoch, no parameter has changed since acting: every ratio is 1, every
/// value the old one. Rollouts begin in the middle of episodes, and episodes end within them.
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
        let network = &settings.common.network;
        let architecture = network.architecture(open(&settings, &context).spec()).unwrap();
        let model = Box::new(FusedModel::new(&architecture, Precision::F32));
        // Larger than at the start of training, so that a wrong state would show.
        let params: Vec<f32> = initial(&architecture, false, 4).iter().map(|x| 3.0 * x).collect();
        let (mut ppo, mut learner) = ppo_with(&settings, &context, model, params);
        for _ in 0..4 {
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
}
