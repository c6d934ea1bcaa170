//! Environments of `env/python`, step by step: beside Gymnasium itself, over any number of processes, saved
//! and restored, and where they fail.
//!
//! They need an interpreter with gymnasium and numpy: `RUNNER_TEST_PYTHON`.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../../tests/requirements.rs"]
mod requirements;

use cache::{ActionKey, Store};
use serde_json::{Value, json};
use stages_core::{CancelToken, StageError};
use stages_env::python::{PythonConfig, build};
use stages_env::{ActionBuffer, ActionSpace, BatchEnv, OpenOptions, Step};
use stages_numerics::random::Random;
use std::io::Write as _;
use std::process::{ExitCode, Stdio};
use tempfile::TempDir;

/// A module with environments of all kinds of spaces, and with faults.
const MODULE: &str = r#"
import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Walk(gym.Env):
    """Masked choices of two components, a dictionary of observations, random rewards."""

    def __init__(self, size=5):
        self.size = size
        self.observation_space = spaces.Dict(
            {
                "at": spaces.Discrete(size, start=1),
                "seen": spaces.Tuple((spaces.Box(-9, 9, (2, 2), np.float64), spaces.MultiBinary(2))),
                "last": spaces.MultiDiscrete([2, 3]),
            }
        )
        self.action_space = spaces.MultiDiscrete([2, 3], start=[0, 1])

    def shown(self):
        noise = self.np_random.normal(size=(2, 2)).clip(-9, 9)
        return {"at": self.at + 1, "seen": (noise, np.array([1, 0], np.int8)), "last": self.last}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.last = 0, np.array([0, 0])
        return self.shown(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.last = action - np.array([0, 1])
        assert self.last[1] != 2 or self.at % 2 == 0, "a masked choice"
        self.at += 1
        ends = bool(self.at == self.size - 1 and self.np_random.random() < 0.5)
        return self.shown(), self.np_random.random(), ends, bool(self.at == self.size - 1 and not ends), {}

    def action_masks(self):
        return np.array([True, True, True, True, self.at % 2 == 0])


def walk(size=5):
    return Walk(size)


class Plain(gym.Env):
    observation_space = spaces.Box(-1e3, 1e3, (1,), np.float32)
    action_space = spaces.Discrete(2)
    total = 0

    def __init__(self, fault=None, at=2):
        self.fault, self.at = fault, at

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        obs, reward = np.full(1, self.steps, np.float32), 1.0
        if self.steps == self.at and self.fault:
            value = getattr(self, self.fault)()
            obs = obs if value is None else value
        return obs, reward, False, self.steps == 200, {}

    def raises(self):
        self.helper()

    def helper(self):
        raise KeyError("no such bar")

    def leaves(self):
        import os
        print("about to leave", flush=True)
        os._exit(3)

    def crashes(self):
        import ctypes
        ctypes.string_at(0)

    def hangs(self):
        import time
        time.sleep(60)

    def shape(self):
        return np.zeros(2, np.float32)

    def infinite(self):
        return np.full(1, np.inf, np.float32)

    def keeps(self):
        Plain.total += 1
        return np.full(1, Plain.total, np.float32)

    def exits(self):
        import sys
        sys.exit(4)


def plain(**kwargs):
    return Plain(**kwargs)


def text():
    env = Plain()
    env.observation_space = spaces.Dict({"news": spaces.Text(10)})
    return env


def unbounded():
    env = Plain()
    env.action_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
    return env


def many():
    return gym.make_vec("CartPole-v1", 2)


def nothing():
    return 3


def failing():
    raise RuntimeError("no data")


def own_random():
    import random

    env = Plain()
    env.reset = lambda seed=None, options=None: (np.full(1, random.random(), np.float32), {})
    return env


def torque():
    return gym.make("Pendulum-v1")
"#;

/// Steps environments as the documentation says that `env/python` does, by Gymnasium alone:
/// `(id or call, kwargs, seed, split, actions [T][B][K])` on standard input, observations, rewards and flags
/// as text on standard output.
const REFERENCE: &str = r#"
import hashlib, json, struct, sys
import gymnasium, numpy as np
from gymnasium.spaces.utils import flatten

sys.path[0] = sys.argv[1]
said = json.load(sys.stdin)
kwargs = said["kwargs"]
if ":" in said["name"]:
    module, _, function = said["name"].partition(":")
    make = getattr(__import__(module), function)
else:
    make = lambda **kwargs: gymnasium.make(said["name"], **kwargs)

def seed_of(i, episode):
    word = hashlib.blake2b(struct.pack("<4Q", said["seed"], said["split"], i, episode), digest_size=4).digest()
    return int.from_bytes(word, "little") >> 1

class One:
    def __init__(self, i):
        self.env, self.i, self.episode = make(**kwargs), i, 0

    def reset(self):
        obs, _ = self.env.reset(seed=seed_of(self.i, self.episode))
        self.episode += 1
        return self.row(obs)

    def row(self, obs):
        return flatten(self.env.observation_space, obs).astype(np.float32).tolist()

    def step(self, action):
        space = self.env.action_space
        if isinstance(space, gymnasium.spaces.Discrete):
            action = int(action[0]) + int(space.start)
        else:
            action = np.asarray(action, space.dtype) + getattr(space, "start", 0)
        obs, reward, ends, cut, _ = self.env.step(action)
        final = self.row(obs)
        # An episode that ends in its last step is not cut off.
        over, cut = ends or cut, cut and not ends
        return [self.reset() if over else final, float(np.float32(reward)), bool(ends), bool(cut), final if over else None]

envs = [One(i) for i in range(said["batch"])]
print(json.dumps({"first": [env.reset() for env in envs], "steps": [[env.step(a) for env, a in zip(envs, row)] for row in said["actions"]]}))
"#;

struct World {
    dir: TempDir,
    store: Store,
    python: String,
}

impl World {
    fn new(python: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store")).unwrap();
        std::fs::write(dir.path().join("envs.py"), MODULE).unwrap();
        Self {
            dir,
            store,
            python: python.to_owned(),
        }
    }

    fn config(&self, name: &str, kwargs: Value) -> PythonConfig {
        let named = name.to_owned();
        let (id, call) = match name.contains(':') {
            true => (None, Some(named)),
            false => (Some(named), None),
        };
        PythonConfig {
            id,
            call,
            kwargs: serde_json::from_value(kwargs).unwrap(),
            python: self.python.clone(),
            ..PythonConfig::default()
        }
    }

    fn try_open(
        &self,
        config: &PythonConfig,
        options: &OpenOptions,
    ) -> Result<Box<dyn BatchEnv>, StageError> {
        let digest = build(config, &self.store, self.dir.path())?;
        stages_env::open(&self.store, &self.store.artifact(digest).unwrap(), options)
    }

    fn open(&self, name: &str, kwargs: Value, options: &OpenOptions) -> Box<dyn BatchEnv> {
        self.try_open(&self.config(name, kwargs), options)
            .unwrap_or_else(|err| panic!("{name}: {}", err.message))
    }
}

fn options(num_envs: usize, processes: usize) -> OpenOptions {
    OpenOptions {
        processes: Some(processes),
        ..OpenOptions::train(num_envs, 7)
    }
}

/// Random actions that the mask allows.
fn draw(space: &ActionSpace, mask: &[bool], random: &mut Random, batch: usize) -> ActionBuffer {
    let mut actions = ActionBuffer::new(space, batch);
    match (&mut actions, space) {
        (ActionBuffer::Continuous(values), ActionSpace::Continuous { bounds, .. }) => {
            let k = bounds.low.len();
            for (i, value) in values.iter_mut().enumerate() {
                *value =
                    bounds.low[i % k] + (bounds.high[i % k] - bounds.low[i % k]) * random.uniform() as f32;
            }
        }
        (ActionBuffer::Discrete(values), _) => {
            for value in values {
                *value = random.below(space.num_outputs() as u64) as u32;
            }
        }
        (ActionBuffer::MultiDiscrete(values), ActionSpace::MultiDiscrete { choices, .. }) => {
            let mut at = 0;
            for (value, &n) in values.iter_mut().zip(choices.iter().cycle()) {
                loop {
                    *value = random.below(u64::from(n)) as u32;
                    if mask[at + *value as usize] {
                        break;
                    }
                }
                at += n as usize;
            }
        }
        _ => unreachable!(),
    }
    actions
}

/// One line for each step and environment: observation, reward, flags, the last observation, and the mask.
fn lines(out: &Step, batch: usize) -> Vec<Value> {
    let d = out.obs.len() / batch;
    (0..batch)
        .map(|i| {
            let ended = out.terminated[i] || out.truncated[i];
            let row = |values: &[f32]| values[i * d..(i + 1) * d].to_vec();
            let last = ended.then(|| row(&out.final_obs));
            json!([row(&out.obs), out.reward[i], out.terminated[i], out.truncated[i], last])
        })
        .collect()
}

/// The first observations, the steps, and the actions of a random play.
fn play(env: &mut dyn BatchEnv, steps: usize) -> (Value, Value, Value) {
    let (batch, space) = (env.num_envs(), env.spec().action_space.clone());
    let mut out = Step::new(env.spec(), batch);
    let mut random = Random::new(&[3]);
    env.reset(out.buffers());
    let d = env.spec().obs_dim();
    let first: Vec<&[f32]> = out.obs.chunks(d).collect();
    let first = json!(first);
    let (mut all, mut done) = (Vec::new(), Vec::new());
    for _ in 0..steps {
        let actions = draw(&space, &out.action_mask, &mut random, batch);
        let k = space.num_components();
        done.push(match &actions {
            ActionBuffer::Continuous(values) => json!(values.chunks(k).collect::<Vec<_>>()),
            ActionBuffer::Discrete(values) | ActionBuffer::MultiDiscrete(values) => {
                json!(values.chunks(k).collect::<Vec<_>>())
            }
        });
        env.step(actions.as_actions(), out.buffers()).unwrap();
        all.push(json!(lines(&out, batch)));
    }
    (first, json!(all), json!(done))
}

fn steps_are_those_of_gymnasium(python: &str) {
    let world = World::new(python);
    for (name, kwargs, steps) in [
        ("CartPole-v1", json!({ "max_episode_steps": 30 }), 120),
        ("envs:walk", json!({ "size": 6 }), 40),
        ("envs:torque", json!({}), 220),
        ("envs:plain", json!({}), 10),
    ] {
        let batch = 5;
        let mut env = world.open(name, kwargs.clone(), &options(batch, 2));
        let (first, steps, actions) = play(env.as_mut(), steps);
        let said = json!({ "name": name, "kwargs": kwargs, "seed": 7, "split": 0, "batch": batch,
            "actions": actions });
        let mut reference = std::process::Command::new(&world.python)
            .args(["-B", "-c", REFERENCE])
            .arg(world.dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = reference.stdin.take().unwrap();
        stdin.write_all(said.to_string().as_bytes()).unwrap();
        drop(stdin);
        let printed = reference.wait_with_output().unwrap().stdout;
        let expected: Value = serde_json::from_slice(&printed).unwrap();
        assert_eq!(bits(&first), bits(&expected["first"]), "{name}");
        assert_eq!(bits(&steps), bits(&expected["steps"]), "{name}");
        let ends = steps.to_string().matches("true").count();
        assert!(name == "envs:plain" || ends > 4, "{name}: {ends} episodes ended");
    }
}

/// The numbers as the bits of f32.
fn bits(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!((number.as_f64().unwrap() as f32).to_bits()),
        Value::Array(values) => values.iter().map(bits).collect(),
        other => other.clone(),
    }
}

fn any_number_of_processes_gives_the_same_and_neighbours_do_not_matter(python: &str) {
    let world = World::new(python);
    let run = |batch, processes| {
        play(
            world.open("envs:walk", json!({}), &options(batch, processes)).as_mut(),
            30,
        )
    };
    let one = run(6, 1);
    assert_eq!(one, run(6, 2));
    assert_eq!(one, run(6, 5));
    // The last environment of the batch draws other actions where there are more; the first observations do
    // not depend on them.
    let (first, ..) = run(8, 3);
    assert_eq!(one.0.as_array().unwrap()[..6], first.as_array().unwrap()[..6]);
}

fn spaces_are_named_and_masks_read(python: &str) {
    let world = World::new(python);
    let env = world.open("envs:walk", json!({ "size": 3 }), &options(1, 1));
    let spec = env.spec();
    insta::assert_snapshot!(
        spec.observation.join(" "),
        @"at=1 at=2 at=3 last[0]=0 last[0]=1 last[1]=0 last[1]=1 last[1]=2 seen.0[0,0] seen.0[0,1] \
            seen.0[1,0] seen.0[1,1] seen.1[0] seen.1[1]"
    );
    let ActionSpace::MultiDiscrete { choices, masked, .. } = &spec.action_space else {
        panic!("{:?}", spec.action_space)
    };
    assert_eq!((choices.as_slice(), masked), (&[2, 3][..], &true));
    let env = world.open("Pendulum-v1", json!({}), &options(1, 1));
    assert!(
        matches!(&env.spec().action_space, ActionSpace::Continuous { bounds, .. } if bounds.low == [-2.0]
            && bounds.high == [2.0])
    );
    assert_eq!(env.spec().observation, ["obs[0]", "obs[1]", "obs[2]"]);
}

fn saved_and_restored_by_replay(python: &str) {
    let world = World::new(python);
    let opened = || world.open("envs:walk", json!({}), &options(5, 2));
    let (mut env, mut other) = (opened(), opened());
    let space = env.spec().action_space.clone();
    let (mut out, mut again) = (Step::new(env.spec(), 5), Step::new(env.spec(), 5));
    let mut random = Random::new(&[4]);
    env.reset(out.buffers());
    for step in 0..25 {
        let state = env.save();
        let actions = draw(&space, &out.action_mask, &mut random, 5);
        env.step(actions.as_actions(), out.buffers()).unwrap();
        // Another batch, each time from the state before.
        other.restore(&state).unwrap();
        other.step(actions.as_actions(), again.buffers()).unwrap();
        assert_eq!(lines(&again, 5), lines(&out, 5), "step {step}");
        assert_eq!(again.action_mask, out.action_mask);
        assert_eq!(other.save(), env.save());
    }
    // A new episode after a restart is that which follows.
    other.restore(&env.save()).unwrap();
    other.reset(again.buffers());
    env.reset(out.buffers());
    assert_eq!((&again.obs, other.save()), (&out.obs, env.save()));
    let mut fewer = world.open("envs:walk", json!({}), &options(4, 1));
    assert!(fewer.restore(&env.save()).is_err());
}

fn a_state_that_the_actions_do_not_lead_to_is_refused(python: &str) {
    let world = World::new(python);
    let mut env = world.open("envs:plain", json!({ "fault": "keeps" }), &options(2, 1));
    let mut out = Step::new(env.spec(), 2);
    env.reset(out.buffers());
    let actions = ActionBuffer::Discrete(vec![0, 1]);
    env.step(actions.as_actions(), out.buffers()).unwrap();
    env.step(actions.as_actions(), out.buffers()).unwrap();
    env.restore(&env.save()).unwrap();
    let err = env.step(actions.as_actions(), out.buffers()).unwrap_err();
    assert!(
        err.message.contains("does not come back to its state"),
        "{}",
        err.message
    );
    assert!(err.message.contains("`obs[0]` is 3 instead of 1"), "{}", err.message);
}

fn failures_in_steps_are_said_in_their_own_words(python: &str) {
    let world = World::new(python);
    for (fault, expected) in [
        (
            "raises",
            &[
                "environment 0 of `envs:plain` raised: KeyError: 'no such bar'",
                "in helper",
            ][..],
        ),
        (
            "leaves",
            &["an environment ended its process, with status 3", "about to leave"],
        ),
        ("crashes", &["was killed by SIGSEGV", "in crashes"]),
        ("hangs", &["took longer than its time limit of 0.5 s", "in hangs"]),
        ("shape", &["an observation has the shape (2,), and its space (1,)"]),
        (
            "infinite",
            &["the observation of environment 0 of `envs:plain` is not finite"],
        ),
        (
            "exits",
            &["environment 0 of `envs:plain` raised: SystemExit: 4", "in exits"],
        ),
    ] {
        let mut config = world.config("envs:plain", json!({ "fault": fault, "at": 70 }));
        if fault == "hangs" {
            config.time_limit = 0.5;
        }
        let mut env = world.try_open(&config, &options(3, 2)).unwrap();
        let mut out = Step::new(env.spec(), 3);
        env.reset(out.buffers());
        let actions = ActionBuffer::Discrete(vec![0; 3]);
        let err = (0..70)
            .find_map(|_| env.step(actions.as_actions(), out.buffers()).err())
            .unwrap_or_else(|| panic!("{fault} did not fail"));
        for expected in expected {
            assert!(err.message.contains(expected), "{fault}: {}", err.message);
        }
        // It stays the error of every later step.
        let again = env.step(actions.as_actions(), out.buffers()).unwrap_err();
        assert_eq!(again.message, err.message);
    }
}

fn what_is_no_environment_is_refused(python: &str) {
    let world = World::new(python);
    for (name, expected) in [
        ("envs:text", "the observation space `news` is Text"),
        ("envs:unbounded", "its actions are a Box without finite bounds"),
        ("envs:many", "is a VectorEnv"),
        ("envs:nothing", "gave a value of the type `int`"),
        ("envs:failing", "`envs:failing` cannot be made: RuntimeError: no data"),
        ("envs:walked", "it has walk, plain, text"),
        ("Nowhere-v3", "`Nowhere-v3` cannot be made: NameNotFound"),
        ("elsewhere:make", "there is no module `elsewhere`"),
    ] {
        let err = build(&world.config(name, json!({})), &world.store, world.dir.path()).unwrap_err();
        let said = format!("{} {}", err.message, err.hint.unwrap_or_default());
        assert!(said.contains(expected), "{name}: {said}");
    }
    let mut config = world.config("envs:walk", json!({}));
    for (python, expected) in [
        ("./nowhere", "there is no interpreter"),
        ("no-such-python", "there is no program `no-such-python` on PATH"),
    ] {
        python.clone_into(&mut config.python);
        let err = build(&config, &world.store, world.dir.path()).unwrap_err();
        assert!(err.message.contains(expected), "{}", err.message);
    }
}

/// The warnings of a stage.
#[derive(Default)]
struct Warnings(std::sync::Mutex<Vec<String>>);

impl stages_core::EventSink for Warnings {
    fn emit(&self, event: stages_core::StageEvent) {
        if let stages_core::StageEvent::Warning { message, .. } = event {
            self.0.lock().unwrap().push(message);
        }
    }
}

fn what_a_seed_does_not_decide_is_warned_of(python: &str) {
    let world = World::new(python);
    let config = world.config("envs:own_random", json!({}));
    let stage = stages_core::erase(stages_env::python::Python);
    let resolved = stage.resolve(serde_json::to_value(&config).unwrap()).unwrap();
    let warnings = std::sync::Arc::new(Warnings::default());
    let context = stages_core::Context {
        sources: stage.sources(&resolved, world.dir.path()).unwrap(),
        events: warnings.clone(),
        cancel: CancelToken::default(),
        ..stages_core::Context::new(ActionKey::from_bytes([0; 32]), world.store.clone())
    };
    stage.run(&resolved, &context).unwrap();
    let said = warnings.0.lock().unwrap().join("\n");
    insta::assert_snapshot!(said, @r"
    two environments of `envs:own_random` with the same seed and actions differ at step 0
    `envs:own_random` draws from the global random numbers of Python or NumPy, which all environments of a process share
    ");
}

fn what_changed_since_is_found_where_it_is_opened(python: &str) {
    let world = World::new(python);
    let digest = build(&world.config("envs:plain", json!({})), &world.store, world.dir.path()).unwrap();
    let artifact = world.store.artifact(digest).unwrap();
    // The artifact has the modules: the file may go.
    std::fs::remove_file(world.dir.path().join("envs.py")).unwrap();
    stages_env::open(&world.store, &artifact, &options(1, 1)).unwrap();
    // Another store does not know where the interpreter is.
    let dir = tempfile::tempdir().unwrap();
    let other = Store::open(dir.path()).unwrap();
    let mut builder = cache::ArtifactBuilder::new(&other, "env", artifact.meta.clone());
    for entry in &artifact.entries {
        builder
            .bytes(&entry.path, &world.store.blob(entry.blob).unwrap())
            .unwrap();
    }
    let copied = builder.finish().unwrap();
    assert_eq!(copied, digest);
    let err = stages_env::open(&other, &other.artifact(copied).unwrap(), &options(1, 1))
        .err()
        .unwrap();
    assert!(
        err.message.contains("no interpreter on this machine is known"),
        "{}",
        err.message
    );
}

/// The name of a test, and the test, which is given the interpreter.
type PythonTest = (&'static str, fn(&str));

fn main() -> ExitCode {
    let tests: [PythonTest; 9] = [
        ("steps_are_those_of_gymnasium", steps_are_those_of_gymnasium),
        (
            "any_number_of_processes_gives_the_same_and_neighbours_do_not_matter",
            any_number_of_processes_gives_the_same_and_neighbours_do_not_matter,
        ),
        ("spaces_are_named_and_masks_read", spaces_are_named_and_masks_read),
        ("saved_and_restored_by_replay", saved_and_restored_by_replay),
        (
            "a_state_that_the_actions_do_not_lead_to_is_refused",
            a_state_that_the_actions_do_not_lead_to_is_refused,
        ),
        (
            "failures_in_steps_are_said_in_their_own_words",
            failures_in_steps_are_said_in_their_own_words,
        ),
        ("what_is_no_environment_is_refused", what_is_no_environment_is_refused),
        (
            "what_a_seed_does_not_decide_is_warned_of",
            what_a_seed_does_not_decide_is_warned_of,
        ),
        (
            "what_changed_since_is_found_where_it_is_opened",
            what_changed_since_is_found_where_it_is_opened,
        ),
    ];
    let python = std::env::var("RUNNER_TEST_PYTHON").ok();
    let missing = python.is_none().then_some("RUNNER_TEST_PYTHON is unset");
    let trials = tests.map(|(name, test)| {
        let python = python.clone();
        requirements::trial(name, missing, move || {
            test(&python.expect("RUNNER_TEST_PYTHON names an interpreter with gymnasium and numpy"));
        })
    });
    requirements::run(trials.into())
}
