//! Validation during training, and the policy that it selects.

use super::off_policy::tuned_dqn;
use super::resume::Fuse;
use super::*;
use crate::metrics::Line;
use crate::{
    Dqn, DqnConfig, Ppo, RecurrentPpo, TransformerPpo, TransformerPpoConfig, ValidationConfig, ValidationMode,
};
use stages_core::{Schedule, error::Cause};
use stages_numerics::random::Random;
use stages_policy::{Mode, Policy, Precision};

/// Validation every two rollouts or so.
const OFTEN: ValidationConfig = ValidationConfig {
    every: Some(600),
    episodes: Some(5),
    metric: crate::ValidationMetric::Return,
    mode: ValidationMode::Greedy,
    patience: 0,
};

/// No validation, and the last policy.
const OFF: ValidationConfig = ValidationConfig {
    every: Some(0),
    ..OFTEN
};

/// A training whose policies vary, with normalised observations.
fn varied(total_timesteps: u64) -> RecurrentPpoConfig {
    let mut config = hidden_velocity(total_timesteps, 5);
    config.training.learning_rate = Schedule::Constant(3e-3);
    config.ppo.clip_range = Schedule::Constant(0.2);
    (config.rollouts.batch_size, config.rollouts.n_epochs) = (96, 3);
    config.policy_kwargs.lstm_hidden_size = 16;
    config.training.checkpoint_interval = 1e-9;
    config.training.validation = OFTEN;
    config
}

/// A finished training: policy, its `meta`, metrics, and the last state.
struct Finished {
    policy: Vec<u8>,
    meta: serde_json::Value,
    metrics: Vec<Line>,
    last: TrainState,
}

/// Trains in the environment `id`, in a store of its own.
fn finish<S: StageKind>(stage: S, config: &S::Config, id: &str) -> Finished {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, id);
    let digest = stage.run(config, &context).unwrap()["policy"];
    let meta = context.store.artifact(digest).unwrap().meta;
    let (policy, metrics) = outputs(stage, config, &context);
    let metrics = String::from_utf8(metrics).unwrap();
    Finished {
        policy,
        meta,
        metrics: metrics
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
        last: saved(checkpoint(home.path()).parent().unwrap()),
    }
}

/// The steps and values of a metric.
fn series(finished: &Finished, name: &str) -> Vec<(u64, f64)> {
    let lines = finished.metrics.iter().filter(|line| line.name == name);
    lines.map(|line| (line.step, line.value)).collect()
}

/// The mean return of a policy over validation episodes, one environment at a time.
fn played(policy: &Policy, id: &str, episodes: usize, seed: u64, greedy: bool) -> f64 {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, id);
    let options = OpenOptions::validation(episodes, seed);
    let mut env = stages_env::open(&context.store, &context.inputs["env"][0].artifact, &options).unwrap();
    let mut step = Step::new(env.spec(), episodes);
    env.reset(step.buffers());
    let (mut state, mut start) = (policy.start(episodes), vec![true; episodes]);
    let (mut returns, mut over) = (vec![0.0; episodes], vec![false; episodes]);
    let mut random = Random::new(&[seed, u64::from_le_bytes(*b"validate")]);
    while over.contains(&false) {
        let mode = if greedy {
            Mode::Greedy
        } else {
            Mode::Sample(&mut random)
        };
        let actions = policy.act(&step.obs, &step.action_mask, &start, &mut state, mode);
        env.step(actions, step.buffers()).unwrap();
        for i in 0..episodes {
            start[i] = step.terminated[i] || step.truncated[i];
            if !over[i] {
                returns[i] += f64::from(step.reward[i]);
            }
            over[i] |= start[i];
        }
    }
    returns.iter().sum::<f64>() / episodes as f64
}

#[test]
fn the_best_policy_is_handed_on_and_its_value_is_what_it_earns() {
    let id = "CartPole-hidden-velocity";
    for mode in [ValidationMode::Greedy, ValidationMode::Drawn] {
        let mut config = varied(8000);
        config.training.validation.mode = mode;
        let finished = finish(RecurrentPpo, &config, id);
        let name = config.training.validation.selects_by();
        let values = series(&finished, name);
        // Rollouts are of 256 steps: 600 is reached at 768, 1,200 at 1,280, 1,800 at 2,048; the last policy
        // is validated too.
        let steps: Vec<u64> = values.iter().map(|&(step, _)| step).collect();
        assert_eq!(
            (steps[..3].to_vec(), steps[steps.len() - 1]),
            (vec![768, 1280, 2048], 8192)
        );
        let best = values
            .iter()
            .fold(values[0], |best, &value| if value.1 > best.1 { value } else { best });
        let selected = &finished.meta["selected"];
        assert_eq!(
            *selected,
            json!({ "step": best.0, "of": 8192, "by": name, "value": best.1 })
        );
        assert!(best.0 < 8192 && best.1 > values[0].1, "{values:?}");
        let policy = Policy::load(&finished.policy).unwrap();
        assert_ne!(policy.params(), finished.last.params);
        assert_eq!(played(&policy, id, 5, 5, mode == ValidationMode::Greedy), best.1);
    }
}

#[test]
fn training_is_the_same_with_and_without() {
    fn compare<S: StageKind>(stage: [S; 2], id: &str, with: &S::Config, without: &S::Config) {
        let [first, second] = stage;
        let (with, without) = (finish(first, with, id), finish(second, without, id));
        assert!(!series(&with, "validation/reward_drawn").is_empty());
        let kept: Vec<&Line> = with
            .metrics
            .iter()
            .filter(|l| !l.name.starts_with("validation/"))
            .collect();
        assert_eq!(kept, without.metrics.iter().collect::<Vec<_>>());
        let mut last = with.last.clone();
        (last.selection, last.metrics) = (without.last.selection.clone(), without.last.metrics.clone());
        assert_eq!(last, without.last);
        assert!(without.meta.get("selected").is_none());
    }
    for precision in [Precision::F32, Precision::Bf16] {
        let mut with = varied(1500);
        with.rollouts.precision = precision;
        let mut without = with.clone();
        without.training.validation = OFF;
        compare(
            [RecurrentPpo, RecurrentPpo],
            "CartPole-hidden-velocity",
            &with,
            &without,
        );
    }
    let mut with = cart_pole(1500, 2);
    let without = with.clone();
    with.training.validation = OFTEN;
    compare([Ppo, Ppo], "CartPole-v1", &with, &without);
    compare([Ppo, Ppo], "Pendulum-v1", &with, &without);
    let mut with: TransformerPpoConfig = serde_json::from_value(json!({
        "total_timesteps": 1024, "n_envs": 4, "n_steps": 32, "batch_size": 64, "n_epochs": 2,
        "policy_kwargs": { "window": 8, "d_model": 16, "n_heads": 2, "d_ff": 16 },
    }))
    .unwrap();
    let without = with.clone();
    with.training.validation = OFTEN;
    compare(
        [TransformerPpo, TransformerPpo],
        "CartPole-hidden-velocity",
        &with,
        &without,
    );
}

#[test]
fn same_bytes_for_any_number_of_threads_and_after_any_stop() {
    let config = varied(3000);
    let run = |threads: usize| {
        let home = tempfile::tempdir().unwrap();
        let mut context = context(home.path());
        connect(&mut context, "CartPole-hidden-velocity");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| outputs(RecurrentPpo, &config, &context))
    };
    let wanted = run(1);
    assert!(wanted == run(3));

    let mut random = Random::new(&[7]);
    let home = tempfile::tempdir().unwrap();
    let mut stops = 0;
    let stopped = loop {
        let cancel = CancelToken::default();
        let fuse = Fuse::new(5 + random.below(60) as i64, &cancel);
        let mut context = context_with(home.path(), Arc::new(fuse), cancel.clone());
        connect(&mut context, "CartPole-hidden-velocity");
        match RecurrentPpo.run(&config, &context) {
            Ok(_) => break outputs(RecurrentPpo, &config, &context),
            Err(err) => assert_eq!(err.cause, Cause::Interrupted, "{err}"),
        }
        stops += 1;
        assert!(stops < 10_000, "no progress between stops");
    };
    assert!(stops > 2 && stopped == wanted);

    // A longer training goes on from the shorter one, whose last policy was validated between two of its own
    // validations.
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    outputs(RecurrentPpo, &varied(1500), &context);
    assert!(outputs(RecurrentPpo, &config, &context) == wanted);
}

#[test]
fn patience_ends_a_training_that_no_longer_improves() {
    let mut config = varied(20_000);
    // Nothing is learned: the first validation is the best.
    (config.training.learning_rate, config.ppo.normalize_obs) = (Schedule::Constant(0.0), false);
    config.training.validation.patience = 3;
    let finished = finish(RecurrentPpo, &config, "CartPole-hidden-velocity");
    assert_eq!(finished.last.step, 2560);
    assert_eq!(series(&finished, "validation/return_greedy").len(), 4);
    assert_eq!(
        (
            finished.meta["selected"]["step"].as_u64(),
            finished.meta["selected"]["of"].as_u64()
        ),
        (Some(2560), Some(2560))
    );
    // The policy is the last one of all that were as good.
    config.training.validation = OFF;
    let whole = finish(RecurrentPpo, &config, "CartPole-hidden-velocity");
    assert!(whole.last.step > 20_000 && whole.meta.get("selected").is_none());
}

/// Trainings in an environment without data held out, of seeds whose last policy is worse than one before:
/// the better one is handed on, and is better in other episodes, too. Off, it is the last.
#[test]
fn a_training_that_ends_badly_hands_on_the_best() {
    let id = "CartPole-v1";
    let trained = |config: &DqnConfig| {
        let home = tempfile::tempdir().unwrap();
        let mut context = context(home.path());
        connect(&mut context, id);
        let digest = Dqn.run(config, &context).unwrap()["policy"];
        let meta = context.store.artifact(digest).unwrap().meta;
        let (policy, _) = outputs(Dqn, config, &context);
        let policy = Policy::load(&policy).unwrap();
        (played(&policy, id, 20, 77, true), meta["selected"].clone())
    };
    let mut sums = [0.0; 2];
    for seed in [13, 15] {
        let mut config: DqnConfig = off_policy::config(50_000, seed, tuned_dqn());
        let (best, selected) = trained(&config);
        config.training.validation = OFF;
        let (last, none) = trained(&config);
        eprintln!("seed {seed}: {best} of {selected}, the last {last}");
        assert!(none.is_null() && selected["step"].as_u64() < selected["of"].as_u64());
        sums = [sums[0] + best, sums[1] + last];
    }
    assert!(sums[0] > sums[1] + 30.0, "{sums:?}");
}

/// By default validation takes its share of training's passes at most, but for the first and the last one,
/// and a training that is too short has none.
#[test]
fn validation_by_default_is_limited() {
    let mut config = cart_pole(40_000, 3);
    // Learning from each sample once, validation waits; twenty times, it comes every 10,000 steps.
    let count =
        |config: &PpoConfig| series(&finish(Ppo, config, "CartPole-v1"), "validation/return_greedy").len();
    assert_eq!(count(&config), 4);
    config.rollouts.n_epochs = 1;
    (config.training.learning_rate, config.ppo.gamma) = (Schedule::Constant(3e-3), 0.98);
    assert!(count(&config) < 4);
    config.training.total_timesteps = 9_000;
    assert_eq!(count(&config), 0);
}
