//! Population-based training: one member is a training like any other, the same bytes on any number of
//! threads and after any stop, and the worst take over from the best.

use super::resume::Fuse;
use super::*;
use crate::Ppo;
use crate::pbt::Pbt;
use crate::pbt::settings::PbtConfig;
use serde_json::Value;
use stages_core::error::Cause;
use stages_core::{RunParts, StageError};
use stages_numerics::random::Random;
use stages_policy::Policy;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A population on CartPole whose best learning rates learn, and whose worst do not.
fn config(members: usize, total: u64, interval: u64) -> PbtConfig {
    serde_json::from_value(json!({
        "trainer": "train/ppo", "pop_size": members, "interval": interval, "seed": 11,
        "search_space": { "learning_rate": { "low": 1e-6, "high": 3e-3 }, "ent_coef": { "low": 0.0,
            "high": 0.01 } },
        "checkpoint_interval": 1e-9,
        "with": {
            "total_timesteps": total, "n_envs": 8, "n_steps": 32, "batch_size": 256, "n_epochs": 10,
                "gamma": 0.98, "gae_lambda": 0.8,
        },
    }))
    .unwrap()
}

fn trained(config: &PbtConfig, threads: usize) -> ((Vec<u8>, Vec<u8>), Value) {
    let home = tempfile::tempdir().unwrap();
    let mut context = Context {
        threads,
        ..context(home.path())
    };
    connect(&mut context, "CartPole-v1");
    let result = outputs(Pbt, config, &context);
    let meta = Pbt.run(config, &context).unwrap();
    let meta = context.store.artifact(meta["metrics"]).unwrap().meta;
    assert!(checkpoints(home.path()).is_empty(), "no checkpoint is left");
    (result, meta)
}

/// The best of members that never exchange anything is what `train/ppo` makes of its settings and seed.
#[test]
fn a_member_is_a_training() {
    let config = config(3, 2048, 2048);
    let ((policy, _), meta) = trained(&config, 2);
    let best = &meta["lineage"][0][meta["summary"]["member"].as_u64().unwrap() as usize];
    assert_eq!(best["parent"], Value::Null);

    let policy = Policy::load(&policy).unwrap();
    let found = (0..3).any(|i| {
        let mut with = Value::Object(config.with.clone());
        for (name, value) in best["settings"].as_object().unwrap() {
            with[name] = value.clone();
        }
        // The stream by which members' seeds are drawn.
        let stream = u64::from_le_bytes(*b"pbt_seed");
        with["seed"] = json!(Random::new(&[config.seed, stream, 0, i]).next_u64() >> 12);
        let alone: PpoConfig = serde_json::from_value(with).unwrap();
        let home = tempfile::tempdir().unwrap();
        let mut context = context(home.path());
        connect(&mut context, "CartPole-v1");
        Policy::load(&outputs(Ppo, &alone, &context).0).unwrap().params() == policy.params()
    });
    assert!(found);
}

#[test]
fn same_bytes_for_any_number_of_threads() {
    let config = config(4, 3072, 1024);
    let one = trained(&config, 1);
    for threads in [2, 3, 8] {
        assert!(one == trained(&config, threads), "{threads} threads");
    }
}

/// Other machines, each with its own connection to the store.
struct Machines {
    config: PbtConfig,
    home: PathBuf,
    parts: AtomicUsize,
    /// The part that fails.
    fails: Option<usize>,
}

impl RunParts for Machines {
    fn run(&self, parts: Vec<Value>) -> Result<(), StageError> {
        let ended: Vec<Result<(), StageError>> = std::thread::scope(|scope| {
            let run = |part| {
                if Some(self.parts.fetch_add(1, Ordering::Relaxed)) == self.fails {
                    return Err(StageError::new("the machine burns"));
                }
                let context = context_of(&self.home);
                // As it is sent.
                let text = serde_json::to_string(&part).unwrap();
                Pbt.run_part(&self.config, &context, serde_json::from_str(&text).unwrap())
            };
            let threads: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || run(part))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        ended.into_iter().collect()
    }
}

#[test]
fn members_on_other_machines_give_the_same_bytes() {
    let config = config(4, 3072, 1024);
    let wanted = trained(&config, 2).0;
    let home = tempfile::tempdir().unwrap();
    let run = |fails| {
        let machines = Arc::new(Machines {
            config: config.clone(),
            home: home.path().to_owned(),
            parts: AtomicUsize::new(0),
            fails,
        });
        let context = Context {
            parts: Some(machines.clone()),
            ..context_of(home.path())
        };
        let computed = || context.memos.names();
        let result = Pbt.run(&config, &context);
        (
            result.map(|_| computed()),
            machines.parts.load(Ordering::Relaxed),
            context,
        )
    };
    let (failed, parts, _) = run(Some(5));
    assert_eq!(failed.unwrap_err().message, "the machine burns");
    assert_eq!(parts, 8, "two rounds");
    let (computed, parts, mut context) = run(None);
    assert!(computed.unwrap().is_empty(), "nothing is trained here");
    assert_eq!(parts, 5, "what the others of the failed round have made stays");
    context.parts = None;
    assert!(outputs(Pbt, &config, &context) == wanted);
}

/// A replay buffer, and a population, go along with a state that is taken over.
#[test]
fn members_may_be_trained_by_any_kind() {
    let replay = json!({ "learning_starts": 100, "batch_size": 16,
        "policy_kwargs": { "net_arch": { "pi": [16], "qf": [16] } } });
    let dqn = json!({ "learning_starts": 100, "batch_size": 16, "prioritized_replay": true,
        "policy_kwargs": { "net_arch": [16] } });
    let es = json!({ "population_size": 4, "num_rollouts": 1, "episode_length": 20,
        "policy_kwargs": { "net_arch": [8] } });
    let erl = json!({
        "pop_size": 3, "num_elites": 1, "warmup_iters": 1, "num_rl_updates_per_iter": 5,
            "episode_length": 20, "batch_size": 16,
        "policy_kwargs": { "net_arch": { "pi": [16], "qf": [16] } },
    });
    for (trainer, env, with) in [
        ("train/sac", "Pendulum-v1", &replay),
        ("train/td3", "Pendulum-v1", &replay),
        ("train/dqn", "CartPole-v1", &dqn),
        ("train/es", "Pendulum-v1", &es),
        ("train/erl", "Pendulum-v1", &erl),
    ] {
        let mut with = with.clone();
        with["total_timesteps"] = json!(600);
        let config: PbtConfig = serde_json::from_value(json!({
            "trainer": trainer, "pop_size": 3, "interval": 200, "seed": 2,
                "search_space": { "learning_rate": { "low": 1e-4, "high": 1e-2 } },
            "with": with,
        }))
        .unwrap();
        let run = |threads: usize| {
            let home = tempfile::tempdir().unwrap();
            let mut context = Context {
                threads,
                ..context(home.path())
            };
            connect(&mut context, env);
            outputs(Pbt, &config, &context)
        };
        assert!(run(1) == run(3), "{trainer}");
    }
}

/// Rollouts of 256 steps end after an interval of 100, and the last one after the end.
#[test]
fn intervals_need_be_no_multiples_of_rollouts() {
    let (_, meta) = trained(&config(2, 1000, 100), 2);
    assert_eq!(meta["lineage"].as_array().unwrap().len(), 10);
    assert_eq!(meta["summary"]["timesteps"], 1024);
}

#[test]
fn stopped_anywhere_and_run_again_ends_in_the_same_bytes() {
    let config = config(3, 3072, 1024);
    let (wanted, _) = trained(&config, 2);
    let mut random = Random::new(&[8]);
    let home = tempfile::tempdir().unwrap();
    let mut stops = 0;
    let found = loop {
        let cancel = CancelToken::default();
        let fuse = Fuse::new(3 + random.below(40) as i64, &cancel);
        let mut context = context_with(home.path(), Arc::new(fuse), cancel);
        connect(&mut context, "CartPole-v1");
        match Pbt.run(&config, &context) {
            Ok(_) => break outputs(Pbt, &config, &context_of(home.path())),
            Err(err) => assert_eq!(err.cause, Cause::Interrupted, "{err}"),
        }
        stops += 1;
        assert!(stops < 1000, "no progress between stops");
    };
    assert!(found == wanted, "{stops} stops");
    assert!(stops >= 3);
}

fn context_of(home: &Path) -> Context {
    let mut context = context(home);
    connect(&mut context, "CartPole-v1");
    context
}

/// Members with a useless learning rate take over the states and, changed, the settings of those that learn.
#[test]
fn the_worst_take_over_from_the_best() {
    let config = config(6, 24_576, 4096);
    let (_, meta) = trained(&config, 2);
    let rounds = meta["lineage"].as_array().unwrap();
    assert_eq!(rounds.len(), 6);
    let mut taken = 0;
    for pair in rounds.windows(2) {
        let (before, after) = (pair[0].as_array().unwrap(), pair[1].as_array().unwrap());
        for (i, member) in after.iter().enumerate() {
            let parent = member["parent"].as_u64().unwrap() as usize;
            let rate = member["settings"]["learning_rate"].as_f64().unwrap();
            assert!((1e-6..=3e-3).contains(&rate));
            if parent == i {
                assert_eq!(member["settings"], before[i]["settings"]);
                continue;
            }
            taken += 1;
            let score = |i: usize| before[i]["score"].as_f64().unwrap();
            assert!(score(parent) >= score(i));
            let better = (0..before.len()).filter(|&other| score(other) > score(parent)).count();
            assert_eq!(better, 0, "the parent is the best, a quarter of six members");
        }
    }
    assert_eq!(taken, 5, "one of six in each round");
    let scores = |round: usize| -> Vec<f64> {
        let members = rounds[round].as_array().unwrap().iter();
        members.map(|member| member["score"].as_f64().unwrap()).collect()
    };
    let (first, last) = (scores(0), scores(5));
    let best = last.iter().copied().fold(f64::MIN, f64::max);
    assert_eq!(best, meta["summary"]["score"].as_f64().unwrap());
    assert!(
        best > 100.0 && best > 2.0 * first.iter().copied().fold(f64::MIN, f64::max),
        "{first:?} {last:?}"
    );
}

/// A member that diverges begins again from one of the best; if all do, that is an error.
#[test]
fn members_that_diverge_are_replaced() {
    let mut config = config(4, 4096, 1024);
    config.search_space = [(
        "learning_rate".to_owned(),
        serde_json::from_value(json!({ "low": 1e-4, "high": 1e38 })).unwrap(),
    )]
    .into();
    let (_, meta) = trained(&config, 2);
    let rounds = meta["lineage"].as_array().unwrap();
    let lost = rounds
        .iter()
        .flat_map(|round| round.as_array().unwrap())
        .filter(|member| member["score"].is_null());
    assert!(lost.count() > 0, "{meta}");
    assert!(meta["summary"]["score"].is_number());

    config.search_space = [(
        "learning_rate".to_owned(),
        serde_json::from_value(json!({ "low": 1e37, "high": 1e38 })).unwrap(),
    )]
    .into();
    let err = Pbt
        .run(&config, &context_of(tempfile::tempdir().unwrap().path()))
        .unwrap_err();
    assert!(err.message.contains("every member of the population diverged"), "{err}");
}

#[test]
fn mistakes_name_their_field() {
    let field = |change: &dyn Fn(&mut PbtConfig)| {
        let mut config = config(4, 4096, 1024);
        change(&mut config);
        config.check().err().map(|problem| problem.field)
    };
    assert_eq!(field(&|_| {}), None);
    assert_eq!(field(&|c| c.pop_size = 1).as_deref(), Some("pop_size"));
    assert_eq!(field(&|c| c.search_space.clear()).as_deref(), Some("search_space"));
    assert_eq!(field(&|c| c.top_ratio = 0.6).as_deref(), Some("top_ratio"));
    assert_eq!(field(&|c| c.perturb_factor = 1.0).as_deref(), Some("perturb_factor"));
    let range = |low: f64, high: f64| serde_json::from_value(json!({ "low": low, "high": high })).unwrap();
    let explored = |name: &str, low, high| {
        field(&|c| {
            c.search_space.insert(name.to_owned(), range(low, high));
        })
    };
    assert_eq!(explored("gamma", 0.9, 1.5).as_deref(), Some("search_space.gamma"));
    assert_eq!(
        explored("no_such_setting", 0.0, 1.0).as_deref(),
        Some("search_space.no_such_setting")
    );
    assert_eq!(explored("n_steps", 1.5, 8.0).as_deref(), Some("search_space.n_steps"));
    assert_eq!(
        field(&|c| {
            c.with.insert("seed".to_owned(), json!(3));
        })
        .as_deref(),
        Some("with")
    );
    assert!(serde_json::from_value::<PbtConfig>(json!({ "trainer": "train/nothing" })).is_err());
    // A key names the version of the trainer.
    let written = serde_json::to_value(config(4, 4096, 1024)).unwrap();
    assert_eq!(
        written["trainer"],
        format!("train/ppo v{}", <Ppo as StageKind>::VERSION)
    );
    assert_eq!(
        serde_json::from_value::<PbtConfig>(written).unwrap(),
        config(4, 4096, 1024)
    );
}
