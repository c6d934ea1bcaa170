//! Sequences shorter than the rollout, and their burn-in.

use super::learning::score;
use super::*;
use crate::RecurrentPpo;
use crate::ppo::burn_in::BurnIn;
use stages_policy::{FusedModel, Observed, Output, Precision, initial};

/// Recurrent PPO on 32 steps of 8 environments, after some rollouts, whose parameters have changed since by a
/// factor.
fn collected(length: usize, burn_in: usize, factor: f32) -> (Algorithm, Learner<'static>) {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    let mut config = hidden_velocity(10_000, 3);
    (config.sequences.sequence_length, config.sequences.burn_in) = (Some(length), burn_in);
    let settings = config.settings().unwrap();
    let architecture = settings
        .common
        .network
        .architecture(open(&settings, &context).spec())
        .unwrap();
    let model = Box::new(FusedModel::new(&architecture, Precision::F32));
    // Larger than at the start of training, so that a wrong state would show.
    let mut params: Vec<f32> = initial(&architecture, false, 4).iter().map(|x| 3.0 * x).collect();
    let (mut ppo, mut learner) = ppo_with(&settings, &context, model, params.clone());
    for _ in 0..3 {
        ppo.collect(&mut learner).unwrap();
        learner.state.update += 1;
    }
    assert!(learner.state.episodes > 4);
    params.iter_mut().for_each(|x| *x *= factor);
    learner.model.load(&params);
    (ppo, learner)
}

/// No parameter has changed since acting: every ratio is 1, with burn-in as well.
#[test]
fn sequences_replay_the_rollout() {
    for burn_in in [0, 5, 20] {
        let (ppo, mut learner) = collected(8, burn_in, 1.0);
        let rollout = ppo.rollout.minibatch(ppo.common());
        let sequences: Vec<u32> = rollout.sequences().collect();
        assert_eq!(sequences.len(), 4 * 8);
        assert_eq!(sequences[9], 8 * 8 + 1);
        let indices = [sequences[9], sequences[2], sequences[31], sequences[20]];
        let states = match BurnIn::new(&ppo.rollout) {
            None => rollout.state.to_vec(),
            Some(mut burn_in) => {
                let minibatch = Minibatch {
                    indices: &indices,
                    ..rollout
                };
                burn_in.run(&minibatch, &mut *learner.model).to_vec()
            }
        };
        let losses = replayed(&ppo, &mut learner, &indices, Some(&states));
        assert_eq!(losses.clip_fraction, 0.0, "{burn_in}: {losses:?}");
        assert!(losses.value < 1e-10, "{burn_in}: {losses:?}");
        let wrong = replayed(&ppo, &mut learner, &indices, Some(&vec![0.0; states.len()]));
        assert!(wrong.clip_fraction > 0.0, "{wrong:?}");
    }
}

/// With other parameters than those of acting, for which the states in the rollout are wrong: one environment
/// at a time, step by step.
#[test]
fn burn_in_ends_in_the_state_that_running_forward_reaches() {
    for burn_in in [3, 8, 20] {
        let (ppo, mut learner) = collected(8, burn_in, 1.1);
        let rollout = ppo.rollout.minibatch(ppo.common());
        let indices: Vec<u32> = rollout.sequences().collect();
        let minibatch = Minibatch {
            indices: &indices,
            ..rollout
        };
        let mut burn = BurnIn::new(&ppo.rollout).unwrap();
        // What another minibatch left makes no difference.
        burn.run(
            &Minibatch {
                indices: &indices[..9],
                ..rollout
            },
            &mut *learner.model,
        );
        let states = burn.run(&minibatch, &mut *learner.model).to_vec();
        let s = learner.model.architecture().state_len();
        let d = learner.model.architecture().obs_dim;
        let mut moved = 0;
        for (row, &first) in indices.iter().enumerate() {
            let (step, env) = (first as usize / 8, first as usize % 8);
            let kept = &rollout.state[row * s..(row + 1) * s];
            let mut state = kept.to_vec();
            for t in step - burn_in.min(step)..step {
                let i = t * 8 + env;
                let input = Observed {
                    obs: &rollout.obs[i * d..(i + 1) * d],
                    mask: &[true, true],
                    episode_start: &rollout.episode_start[i..i + 1],
                    candidates: None,
                };
                learner.model.forward(&input, &mut state, &mut Output::default());
            }
            let found = &states[row * s..(row + 1) * s];
            for (x, y) in found.iter().zip(&state) {
                assert!((x - y).abs() < 1e-6, "burn-in {burn_in}, sequence {row}: {x} {y}");
            }
            moved += usize::from(found != kept);
            assert_eq!(step == 0, found == kept, "burn-in {burn_in}, sequence {row}");
        }
        assert_eq!(moved, 24);
    }
}

/// A small training with sequences and burn-in.
fn small(total_timesteps: u64) -> RecurrentPpoConfig {
    let mut config = hidden_velocity(total_timesteps, 5);
    config.training.learning_rate = stages_core::Schedule::Constant(1e-3);
    config.ppo.clip_range = stages_core::Schedule::Constant(0.2);
    (
        config.training.n_envs,
        config.rollouts.batch_size,
        config.rollouts.n_epochs,
    ) = (32, 512, 3);
    config.policy_kwargs.lstm_hidden_size = 48;
    (config.sequences.sequence_length, config.sequences.burn_in) = (Some(8), 4);
    config
}

#[test]
fn same_bytes_for_any_number_of_threads_and_after_a_stop() {
    let run = |threads: usize, totals: &[u64]| {
        let home = tempfile::tempdir().unwrap();
        let mut context = context(home.path());
        connect(&mut context, "CartPole-hidden-velocity");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let train = |&total: &u64| pool.install(|| outputs(RecurrentPpo, &small(total), &context));
        totals.iter().map(train).fold(None, |_, last| Some(last))
    };
    let one = run(1, &[4096]);
    assert!(one == run(2, &[4096]));
    assert!(one == run(3, &[1024, 4096]));
}

#[test]
fn sequences_of_a_whole_rollout_change_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    let mut run = |change: &dyn Fn(&mut RecurrentPpoConfig)| {
        let mut config = small(2048);
        (config.sequences.sequence_length, config.sequences.burn_in) = (None, 0);
        change(&mut config);
        context.fresh = true;
        outputs(RecurrentPpo, &config, &context)
    };
    let whole = run(&|_| {});
    assert!(whole == run(&|config| config.sequences.sequence_length = Some(32)));
    let cut = run(&|config| config.sequences.sequence_length = Some(8));
    assert!(whole != cut);
    assert!(
        cut != run(&|config| (config.sequences.sequence_length, config.sequences.burn_in) = (Some(8), 4))
    );
}

/// The answer was shown four steps ago; without memory nothing above -0.49 can be had.
#[test]
fn sequences_of_thirteen_steps_learn_to_remember_four() {
    let config: RecurrentPpoConfig = serde_json::from_value(json!({
        "total_timesteps": 50_000, "seed": 1, "n_envs": 32, "n_steps": 52, "batch_size": 416, "n_epochs": 10,
        "sequence_length": 13, "burn_in": 4,
        "learning_rate": { "linear": [1e-3, 0.0] }, "ent_coef": 0.01, "normalize_reward": true,
        "policy_kwargs": { "lstm_hidden_size": 64, "net_arch": { "pi": [64], "vf": [64] } },
    }))
    .unwrap();
    let score = score(RecurrentPpo, &config, "RepeatPreviousEasy", 1);
    assert!(score > -0.2, "{score}");
}
