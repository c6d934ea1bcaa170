//! Trainings that learn from a replay buffer. The long tests take minutes and are ignored by default:
//! `cargo test --release --workspace --lib off_policy -- --ignored --nocapture --test-threads 1`

use super::learning::score;
use super::resume::Fuse;
use super::*;
use crate::{Sac, SacConfig};
use stages_core::error::Cause;
use stages_numerics::random::Random;

fn sac(total_timesteps: u64, seed: u64) -> SacConfig {
    serde_json::from_value(json!({ "total_timesteps": total_timesteps, "seed": seed, "buffer_size": 200_000 })).unwrap()
}

/// As [`sac`], with small networks and batches.
fn small_sac(total_timesteps: u64) -> SacConfig {
    serde_json::from_value(json!({
        "total_timesteps": total_timesteps, "seed": 5, "n_envs": 2, "buffer_size": 700, "learning_starts": 100, "batch_size": 40,
        "n_steps": 2, "checkpoint_interval": 1e-9, "policy_kwargs": { "net_arch": { "pi": [24, 16], "qf": [40] } },
    }))
    .unwrap()
}

/// Random torques earn about -1200, the best policies about -150.
#[test]
fn sac_swings_a_pendulum_up() {
    let mut config = sac(5_000, 1);
    config.policy_kwargs.net_arch.pi = vec![64, 64];
    config.policy_kwargs.net_arch.qf = vec![64, 64];
    config.learning_rate = stages_core::Schedule::Constant(1e-3);
    let score = score(Sac, &config, "Pendulum-v1", 1);
    assert!(score > -400.0, "{score}");
}

#[test]
#[ignore = "some minutes"]
fn sac_swings_pendulums_up() {
    for seed in 11..=15 {
        let score = score(Sac, &sac(10_000, seed), "Pendulum-v1", seed);
        assert!(score > -200.0, "seed {seed}: {score}");
    }
}

#[test]
fn sac_gives_the_same_bytes_for_any_number_of_threads() {
    let run = |threads: usize| {
        let home = tempfile::tempdir().unwrap();
        let mut context = context(home.path());
        connect(&mut context, "Pendulum-v1");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| outputs(Sac, &small_sac(1000), &context))
    };
    let one = run(1);
    assert!(one == run(2));
    assert!(one == run(3));
}

#[test]
fn sac_stopped_anywhere_and_run_again_ends_in_the_same_bytes() {
    let config = small_sac(2000);
    let home = tempfile::tempdir().unwrap();
    let mut undisturbed = context(home.path());
    connect(&mut undisturbed, "Pendulum-v1");
    let wanted = outputs(Sac, &config, &undisturbed);

    let mut random = Random::new(&[4]);
    for map in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let mut config = config.clone();
        // The buffer, which has been overwritten twice by the end, in memory or in a mapped file.
        config.memory_map_above = if map { 0 } else { u64::MAX };
        let mut stops = 0;
        loop {
            let cancel = CancelToken::default();
            let fuse = Fuse::new(5 + random.below(60) as i64, &cancel);
            let mut context = context_with(home.path(), Arc::new(fuse), cancel);
            connect(&mut context, "Pendulum-v1");
            match Sac.run(&config, &context) {
                Ok(_) => break,
                Err(err) => assert_eq!(err.cause, Cause::Interrupted, "{err}"),
            }
            stops += 1;
            assert!(stops < 1000, "no progress between stops");
        }
        assert!(stops > 1);
        let mut context = context(home.path());
        connect(&mut context, "Pendulum-v1");
        assert!(outputs(Sac, &config, &context) == wanted, "mapped: {map}");
    }
}

#[test]
fn a_longer_sac_goes_on_from_the_shorter_one() {
    let trained = |totals: &[u64]| {
        let home = tempfile::tempdir().unwrap();
        let mut context = context(home.path());
        connect(&mut context, "Pendulum-v1");
        let train = |&total: &u64| outputs(Sac, &small_sac(total), &context);
        totals.iter().map(train).fold(None, |_, last| Some(last))
    };
    assert!(trained(&[2000]) == trained(&[600, 2000]));
}

/// A train state that is handed on has its transitions, by which another training goes on as if there had been one.
#[test]
fn a_sac_continues_another_with_its_transitions() {
    let home = tempfile::tempdir().unwrap();
    let mut first = context(home.path());
    connect(&mut first, "Pendulum-v1");
    let digest = Sac
        .run(
            &SacConfig {
                save_train_state: true,
                ..small_sac(600)
            },
            &first,
        )
        .unwrap()["policy"];
    let other = tempfile::tempdir().unwrap();
    let mut second = context(home.path());
    connect(&mut second, "Pendulum-v1");
    let artifact = second.store.artifact(digest).unwrap();
    second
        .inputs
        .insert("init".to_owned(), vec![Input { digest, artifact }]);
    let config = SacConfig {
        resume: crate::settings::Resume::Continue,
        ..small_sac(1200)
    };
    let continued = outputs(Sac, &config, &second);
    let mut whole = context(other.path());
    connect(&mut whole, "Pendulum-v1");
    assert!(continued == outputs(Sac, &small_sac(1200), &whole));
}

#[test]
fn a_damaged_replay_buffer_is_not_resumed_from() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "Pendulum-v1");
    outputs(Sac, &small_sac(600), &context);
    let rows = checkpoints(home.path())
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "rows"))
        .unwrap();
    let mut bytes = std::fs::read(&rows).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&rows, bytes).unwrap();
    let again = outputs(Sac, &small_sac(1200), &context);
    let other = tempfile::tempdir().unwrap();
    let mut whole = super::context(other.path());
    connect(&mut whole, "Pendulum-v1");
    assert!(again == outputs(Sac, &small_sac(1200), &whole));
}

#[test]
fn discrete_actions_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-v1");
    let refused = Sac.run(&small_sac(600), &context).unwrap_err();
    assert!(
        refused.message.contains("continuous actions with finite bounds"),
        "{refused}"
    );
}

/// After the first rounds, a round of steps and gradient steps allocates nothing.
#[test]
fn a_round_allocates_nothing_per_step() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "Pendulum-v1");
    let settings = small_sac(1000).settings().unwrap();
    let options = OpenOptions::train(settings.common.n_envs, 1);
    let env = stages_env::open(&context.store, &context.inputs["env"][0].artifact, &options).unwrap();
    let architecture = settings.common.network.architecture(env.spec()).unwrap();
    let model = stages_policy::model(&architecture, stages_policy::Precision::F32);
    let mut sac = crate::sac::algorithm::Sac::new(&settings);
    let mut learner = Learner::trial(&mut sac, env, model).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let counted = pool.install(|| {
        let mut counted = 0;
        for _ in 0..4 {
            let before = allocations::count_so_far();
            sac.update(&mut learner).unwrap();
            learner.state.update += 1;
            counted = allocations::count_so_far() - before;
        }
        counted
    });
    // The metrics of the round.
    assert!(counted <= 1, "{counted}");
}
