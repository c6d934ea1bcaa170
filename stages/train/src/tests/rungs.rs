//! Trainings that stop at `until`: a longer one goes on from them to the bytes of one that was never stopped,
//! also where the checkpoint's directory is gone.

use super::resume::Fuse;
use super::*;
use crate::pbt::Pbt;
use crate::{A2c, Dqn, Erl, Es, Imitate, Ppo, RecurrentPpo, Sac, Td3, TransformerPpo};
use cache::{GcPlan, Scratch};
use serde_json::Value;
use stages_core::error::Cause;
use stages_core::{Outputs, StageEvent};
use stages_numerics::random::Random;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

/// Keeps log lines.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl EventSink for Log {
    fn emit(&self, event: StageEvent) {
        if let StageEvent::Log { line } = event {
            self.0.lock().unwrap().push(line);
        }
    }
}

/// A training of a kind in an environment, with the rungs at which it is stopped.
struct Case {
    env: &'static str,
    /// The settings, without `until`.
    with: Value,
    rungs: [u64; 2],
}

impl Case {
    fn new(env: &'static str, with: Value, rungs: [u64; 2]) -> Self {
        let mut with = with;
        with["checkpoint_interval"] = json!(1e-9);
        with["validation"] = json!({ "every": 300, "episodes": 3 });
        Self { env, with, rungs }
    }

    fn config<S: StageKind>(&self, until: Option<u64>) -> S::Config {
        let mut with = self.with.clone();
        if let Some(until) = until {
            with["until"] = json!(until);
        }
        serde_json::from_value(with).unwrap()
    }

    /// The outputs of a training in `home`, and the steps from which it resumed: `c256` from a checkpoint,
    /// `s256` from a stored state.
    fn train<S: StageKind>(
        &self,
        stage: &S,
        until: Option<u64>,
        (home, threads): (&Path, usize),
    ) -> (Outputs, Vec<String>) {
        let log = Arc::new(Log::default());
        let mut context = context_with(home, log.clone(), CancelToken::default());
        connect(&mut context, self.env);
        if S::PORTS.inputs.iter().any(|port| port.name == "teacher") {
            let teacher = Ppo.run(&cart_pole(512, 9), &context).unwrap()["policy"];
            let artifact = context.store.artifact(teacher).unwrap();
            let input = Input {
                digest: teacher,
                artifact,
            };
            context.inputs.insert("teacher".to_owned(), vec![input]);
            log.0.lock().unwrap().clear();
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let config = self.config::<S>(until);
        let outputs = pool.install(|| stage.run(&config, &context)).unwrap();
        let short = |line: &String| {
            let (from, step) = line.strip_prefix("resuming from the ")?.split_once(" at step ")?;
            Some(format!("{}{step}", &from[..1]))
        };
        let resumed = log.0.lock().unwrap().iter().filter_map(short).collect();
        (outputs, resumed)
    }

    /// Stops at the rungs and goes on, in every way; `last` is the step of the last rung's state, as it is
    /// resumed from.
    fn check<S: StageKind>(&self, stage: S) {
        let home = || tempfile::tempdir().unwrap();
        let [first, second] = self.rungs;
        let all = [Some(first), Some(second), None];
        let never_stopped = all.map(|until| self.train(&stage, until, (home().path(), 1)).0);
        assert!(never_stopped[0] != never_stopped[1] && never_stopped[1] != never_stopped[2]);

        // From the checkpoints.
        let shared = home();
        let promoted = all.map(|until| self.train(&stage, until, (shared.path(), 2)));
        let steps: Vec<_> = promoted.iter().flat_map(|(_, resumed)| resumed.clone()).collect();
        assert!(
            steps.len() == 2 && steps.iter().all(|step| step.starts_with('c')),
            "{steps:?}"
        );
        assert!(promoted.map(|(outputs, _)| outputs) == never_stopped, "{}", S::NAME);

        // From the stored states, as another machine does.
        let shared = home();
        let mut steps = Vec::new();
        for (until, wanted) in all.iter().zip(&never_stopped) {
            let _ = std::fs::remove_dir_all(shared.path().join("scratch"));
            let (outputs, resumed) = self.train(&stage, *until, (shared.path(), 3));
            assert!(outputs == *wanted, "{} until {until:?}", S::NAME);
            steps.extend(resumed);
        }
        assert!(
            steps.len() == 2 && steps.iter().all(|step| step.starts_with('s')),
            "{steps:?}"
        );

        // In another order, from what is there: the shorter one from the beginning, the last one from the
        // longer one, which the shorter one did not hide.
        let shared = home();
        let mut resumed_last = Vec::new();
        for i in [1, 0, 2] {
            let _ = std::fs::remove_dir_all(shared.path().join("scratch"));
            let (outputs, resumed) = self.train(&stage, all[i], (shared.path(), 2));
            assert!(outputs == never_stopped[i], "{} in another order", S::NAME);
            resumed_last = resumed;
        }
        assert_eq!(resumed_last, steps[1..]);
    }
}

fn ppo(with: &Value) -> Value {
    let mut config = json!({
        "total_timesteps": 1500, "seed": 3, "n_envs": 8, "n_steps": 16, "batch_size": 48, "n_epochs": 2,
        "learning_rate": { "linear": [1e-3, 0.0] }, "clip_range": { "linear": [0.2, 0.0] },
        "normalize_obs": true, "normalize_reward": true,
    });
    for (field, value) in with.as_object().unwrap() {
        config[field] = value.clone();
    }
    config
}

fn replay(with: &Value) -> Value {
    let mut config = json!({
        "total_timesteps": 1500, "seed": 5, "n_envs": 2, "buffer_size": 700, "learning_starts": 100,
        "batch_size": 40, "n_steps": 2, "learning_rate": { "linear": [1e-3, 0.0] },
        "policy_kwargs": { "net_arch": { "pi": [24, 16], "qf": [40] } },
    });
    for (field, value) in with.as_object().unwrap() {
        config[field] = value.clone();
    }
    config
}

fn dqn() -> Case {
    let with = json!({
        "policy_kwargs": { "net_arch": [24, 16], "dueling": true }, "exploration_fraction": 0.5,
        "prioritized_replay": true, "target_update_interval": 50, "double_q": true,
    });
    Case::new("CartPole-v1", replay(&with), [400, 900])
}

#[test]
fn ppo_goes_on_from_its_rungs() {
    let kwargs = json!({ "policy_kwargs": { "net_arch": { "pi": [12], "vf": [12] } } });
    Case::new("CartPole-v1", ppo(&kwargs), [300, 800]).check(Ppo);
    Case::new("Pendulum-v1", ppo(&kwargs), [256, 700]).check(Ppo);
}

#[test]
fn networks_with_a_memory_go_on_from_their_rungs() {
    let net_arch = json!({ "pi": [8], "vf": [8] });
    let lstm = json!({ "policy_kwargs": { "lstm_hidden_size": 8, "net_arch": net_arch } });
    Case::new("CartPole-hidden-velocity", ppo(&lstm), [300, 800]).check(RecurrentPpo);
    let transformer = json!({ "policy_kwargs": {
        "window": 6, "d_model": 12, "n_heads": 2, "n_layers": 1, "d_ff": 16, "net_arch": net_arch,
    } });
    Case::new("CartPole-hidden-velocity", ppo(&transformer), [300, 800]).check(TransformerPpo);
}

#[test]
fn a2c_goes_on_from_its_rungs() {
    let with = json!({
        "total_timesteps": 1500, "seed": 3, "n_envs": 8, "learning_rate": { "linear": [1e-3, 0.0] },
        "normalize_obs": true,
    });
    Case::new("CartPole-v1", with, [300, 800]).check(A2c);
}

#[test]
fn replay_buffers_go_on_from_their_rungs() {
    dqn().check(Dqn);
    Case::new("Pendulum-v1", replay(&json!({})), [400, 900]).check(Sac);
    Case::new("Pendulum-v1", replay(&json!({})), [400, 900]).check(Td3);
}

#[test]
fn populations_go_on_from_their_rungs() {
    for (algorithm, own) in [
        ("open_es", json!({ "std_schedule": { "linear": [0.2, 0.05] } })),
        ("cma_es", json!({})),
    ] {
        let mut with = json!({
            "algorithm": algorithm, "total_timesteps": 8000, "seed": 3, "population_size": 8,
            "num_rollouts": 2, "normalize_obs": true, "policy_kwargs": { "net_arch": [5] },
        });
        for (field, value) in own.as_object().unwrap() {
            with[field] = value.clone();
        }
        Case::new("CartPole-v1", with, [1500, 4000]).check(Es);
    }
    for agent in [
        json!({ "algorithm": "erl_ga", "agent": "td3", "num_elites": 2, "warmup_iters": 1 }),
        json!({ "algorithm": "cem_rl", "agent": "sac", "num_elites": 2, "warmup_iters": 1 }),
    ] {
        let mut with = json!({
            "total_timesteps": 1500, "seed": 5, "pop_size": 4, "num_rl_updates_per_iter": 20,
            "episode_length": 20, "episodes_for_fitness": 2, "buffer_size": 700, "batch_size": 40,
            "learning_rate": { "linear": [1e-3, 0.0] },
            "policy_kwargs": { "net_arch": { "pi": [24, 16], "qf": [40] } },
        });
        for (field, value) in agent.as_object().unwrap() {
            with[field] = value.clone();
        }
        Case::new("Pendulum-v1", with, [400, 900]).check(Erl);
    }
}

#[test]
fn students_go_on_from_their_rungs() {
    let with = json!({
        "total_timesteps": 1500, "seed": 3, "n_envs": 8, "n_steps": 16, "batch_size": 48,
        "teacher_share": { "linear": [1.0, 0.0] }, "learning_rate": { "linear": [1e-3, 0.0] },
    });
    Case::new("CartPole-v1", with, [300, 800]).check(Imitate);
}

/// The rounds of a population are memos: a longer one computes only its own.
#[test]
fn a_population_stops_with_a_round() {
    let config = |until: Option<u64>| {
        let mut with = ppo(&json!({ "policy_kwargs": { "net_arch": { "pi": [12], "vf": [12] } } }));
        with.as_object_mut().unwrap().remove("seed");
        let mut config = json!({
            "trainer": "train/ppo", "pop_size": 3, "interval": 400, "seed": 11,
            "search_space": { "ent_coef": { "low": 0.0, "high": 0.01 } },
            "with": with,
        });
        if let Some(until) = until {
            config["until"] = json!(until);
        }
        serde_json::from_value::<crate::PbtConfig>(config).unwrap()
    };
    let run = |home: &Path, until: Option<u64>| {
        let mut context = context(home);
        connect(&mut context, "CartPole-v1");
        let outputs = Pbt.run(&config(until), &context).unwrap();
        (outputs, context.memos.counts())
    };
    let alone = tempfile::tempdir().unwrap();
    let (wanted, counts) = run(alone.path(), None);
    assert_eq!(counts, (0, 12));
    let shared = tempfile::tempdir().unwrap();
    assert_eq!(run(shared.path(), Some(300)).1, (0, 3));
    assert_eq!(run(shared.path(), Some(700)).1, (3, 6));
    assert_eq!(run(shared.path(), None), (wanted, (6, 12)));
    let refused = config(Some(1500)).check().unwrap_err();
    assert_eq!(refused.field, "until");
    assert_eq!(refused.message, "must be above 0 and below total_timesteps (1500)");
}

#[test]
fn a_rung_is_below_the_end() {
    for (until, is_refused) in [(0, true), (1, false), (1499, false), (1500, true), (9000, true)] {
        let config: PpoConfig = serde_json::from_value(ppo(&json!({ "until": until }))).unwrap();
        assert_eq!(config.settings().is_err(), is_refused, "{until}");
    }
    // Without it, keys stay as they are.
    let config: PpoConfig = serde_json::from_value(ppo(&json!({}))).unwrap();
    assert!(serde_json::to_value(config).unwrap().get("until").is_none());
    let kind = erase(Ppo);
    let config = |with: Value| kind.resolve(with).unwrap();
    assert_eq!(kind.work_units(&config(ppo(&json!({ "until": 300 })))), Some(300));
    assert_eq!(kind.work_units(&config(ppo(&json!({})))), Some(1500));
    assert_eq!(kind.until("total_timesteps"), Some("until"));
    assert_eq!(kind.until("n_steps"), None);
}

/// `plan` tells how much of a longer training is there.
#[test]
fn the_share_counts_checkpoints_and_stored_states() {
    let case = dqn();
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, case.env);
    let share = |until: Option<u64>| {
        let share = Dqn.cached_share(&case.config::<Dqn>(until), &context.given()).unwrap();
        share.unwrap().to_string()
    };
    assert_eq!(share(Some(400)), "0 of 400 steps");
    case.train(&Dqn, Some(400), (home.path(), 1));
    assert_eq!(share(Some(900)), "400 of 900 steps");
    std::fs::remove_dir_all(home.path().join("scratch")).unwrap();
    assert_eq!(share(None), "400 of 1500 steps");
    assert_eq!(share(Some(300)), "300 of 300 steps", "of rounds of 200");
    assert_eq!(share(Some(200)), "0 of 200 steps", "it is past the end");
}

/// A cause that ended a training early ends the longer one, too.
#[test]
fn an_early_stop_stays_one() {
    let mut case = Case::new("CartPole-v1", ppo(&json!({ "learning_rate": 0.0 })), [700, 1100]);
    case.with["normalize_obs"] = json!(false);
    case.with["validation"] = json!({ "every": 128, "episodes": 3, "patience": 2 });
    let home = || tempfile::tempdir().unwrap();
    let alone = case.train(&Ppo, None, (home().path(), 1)).0;
    let shared = home();
    case.train(&Ppo, Some(700), (shared.path(), 1));
    let _ = std::fs::remove_dir_all(shared.path().join("scratch"));
    let (outputs, resumed) = case.train(&Ppo, None, (shared.path(), 1));
    assert!(outputs == alone);
    assert_eq!(resumed, ["s384"]);
}

/// Stopped by hand anywhere, with directories that vanish now and then.
#[test]
fn stopped_anywhere_between_rungs_ends_in_the_same_bytes() {
    let case = dqn();
    let all = [Some(400), Some(900), None];
    let home = || tempfile::tempdir().unwrap();
    let wanted = all.map(|until| case.train(&Dqn, until, (home().path(), 1)).0);
    let mut random = Random::new(&[8]);
    for _ in 0..3 {
        let home = home();
        for (until, wanted) in all.iter().zip(&wanted) {
            let outputs = loop {
                let cancel = CancelToken::default();
                let fuse = Fuse::new(5 + random.below(60) as i64, &cancel);
                let mut context = context_with(home.path(), Arc::new(fuse), cancel);
                connect(&mut context, case.env);
                match Dqn.run(&case.config::<Dqn>(*until), &context) {
                    Ok(outputs) => break outputs,
                    Err(err) => assert_eq!(err.cause, Cause::Interrupted, "{err}"),
                }
                if random.below(4) == 0 {
                    let _ = std::fs::remove_dir_all(home.path().join("scratch"));
                }
            };
            assert!(outputs == *wanted);
        }
    }
}

/// Trainings of one checkpoint's key at the same time, as of two searches, have a directory each.
#[test]
fn trainings_of_one_key_run_side_by_side() {
    let case = dqn();
    let all = [Some(400), Some(900), None, Some(650)];
    let home = || tempfile::tempdir().unwrap();
    let wanted = all.map(|until| case.train(&Dqn, until, (home().path(), 1)).0);
    for _ in 0..3 {
        let shared = home();
        std::thread::scope(|scope| {
            let (case, shared) = (&case, shared.path());
            let started = all.map(|until| scope.spawn(move || case.train(&Dqn, until, (shared, 1)).0));
            for (training, wanted) in started.into_iter().zip(&wanted) {
                assert!(training.join().unwrap() == *wanted);
            }
        });
    }
}

/// `gc` drops the old directory; the state, which was used since, stays.
#[test]
fn gc_leaves_the_states_that_are_young() {
    let case = dqn();
    let home = tempfile::tempdir().unwrap();
    case.train(&Dqn, Some(400), (home.path(), 1));
    let long_ago = SystemTime::now() - Duration::from_secs(30 * 86_400);
    let mut folders = vec![home.path().join("scratch")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            std::fs::File::open(&path).unwrap().set_modified(long_ago).unwrap();
            folders.extend(path.is_dir().then_some(path));
        }
    }
    let context = context(home.path());
    let mut plan = GcPlan {
        keep_actions: Default::default(),
        keep_younger_than: Duration::from_secs(86_400),
        now: SystemTime::now(),
        dry_run: false,
    };
    assert_eq!(context.store.gc(&plan).unwrap().scratch.count, 1);
    assert!(checkpoints(home.path()).is_empty());
    assert_eq!(case.train(&Dqn, Some(900), (home.path(), 1)).1, ["s400"]);
    // Without any of it, the training is computed anew.
    (plan.keep_younger_than, plan.now) = (Duration::ZERO, SystemTime::now() + Duration::from_secs(1));
    context.store.gc(&plan).unwrap();
    let alone = tempfile::tempdir().unwrap();
    let wanted = case.train(&Dqn, None, (alone.path(), 1)).0;
    assert_eq!(case.train(&Dqn, None, (home.path(), 1)), (wanted, Vec::new()));
}

/// A forced training computes everything, and stores its state.
#[test]
fn a_fresh_training_uses_no_stored_state() {
    let case = dqn();
    let home = tempfile::tempdir().unwrap();
    let (wanted, _) = case.train(&Dqn, Some(400), (home.path(), 1));
    std::fs::remove_dir_all(home.path().join("scratch")).unwrap();
    let log = Arc::new(Log::default());
    let mut context = context_with(home.path(), log.clone(), CancelToken::default());
    context.fresh = true;
    connect(&mut context, case.env);
    assert_eq!(Dqn.run(&case.config::<Dqn>(Some(400)), &context).unwrap(), wanted);
    assert!(log.0.lock().unwrap().iter().all(|line| !line.contains("resuming")));
}

/// A directory in use is nobody else's.
#[test]
fn directories_are_handed_out_once() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let key = stages_core::memo_key("x", &[]);
    let first: Scratch = store.scratch(key).unwrap();
    let second = store.scratch(key).unwrap();
    assert_eq!(*first, *store.scratch_path(key));
    assert_ne!(*first, *second);
    drop(first);
    assert_eq!(*store.scratch(key).unwrap(), *store.scratch_path(key));
}

/// A trial that diverges ends so at its rung, and leaves no state to go on from.
#[test]
fn a_rung_that_diverges_says_so() {
    let case = Case::new("Pendulum-v1", ppo(&json!({ "learning_rate": 1e38 })), [700, 1100]);
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, case.env);
    let config = case.config::<Ppo>(Some(700));
    assert_eq!(Ppo.run(&config, &context).unwrap_err().cause, Cause::Diverged);
    std::fs::remove_dir_all(home.path().join("scratch")).unwrap();
    let share = Ppo.cached_share(&config, &context.given()).unwrap().unwrap();
    assert_eq!(share.cached, 0);
}

/// A state has the parameters, the targets and Adam's two moments, the replay buffer's rows, and little more.
#[test]
fn a_state_has_no_more_than_it_needs() {
    let mut case = dqn();
    case.with["buffer_size"] = json!(1_000_000);
    case.with["prioritized_replay"] = json!(false);
    let params = 4 * 24 + 24 + 24 * 16 + 16 + 16 * 3 + 3;
    let row = 4 * (2 * 4 + 1 + 1) + 1 + 2;
    let home = tempfile::tempdir().unwrap();
    case.train(&Dqn, Some(400), (home.path(), 1));
    let folders = std::fs::read_dir(home.path().join("blobs")).unwrap();
    let blobs = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    let found = blobs.map(|blob| blob.unwrap().metadata().unwrap().len()).max().unwrap();
    let least = 4 * 4 * params + 400 * row;
    assert!(found > least && found < least + 20_000, "{found} {least}");
}
