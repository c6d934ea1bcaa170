//! `train/python`: what a function learns and returns, checkpoints, validation and faults.
//!
//! They need an interpreter with gymnasium and numpy: `RUNNER_TEST_PYTHON`.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod checkpoints;

use cache::{ActionKey, ArtifactDigest, Store};
use serde_json::{Value, json};
use stages_core::{CancelToken, Context, EventSink, Input, Outputs, StageError, StageEvent, erase};
use stages_env::classic::Classic;
use stages_env::lookup::Lookup;
use stages_env::{OpenOptions, Step};
use stages_policy::{AnyPolicy, Mode};
use stages_train::PythonTrain;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// The example of docs/guides/own-agents.md.
const EVOLUTION: &str = include_str!("../../../../docs/agents/evolution.py");

/// The interpreter, or a message.
fn python() -> Option<String> {
    let python = std::env::var("RUNNER_TEST_PYTHON").ok();
    if python.is_none() {
        eprintln!("skipped: RUNNER_TEST_PYTHON names no interpreter with gymnasium and numpy");
    }
    python
}

/// Keeps what a stage says.
#[derive(Default)]
struct Said(Mutex<Vec<StageEvent>>);

impl EventSink for Said {
    fn emit(&self, event: StageEvent) {
        self.0.lock().unwrap().push(event);
    }
}

impl Said {
    /// The logs, and the warnings with their hints, as lines.
    fn text(&self) -> String {
        let mut lines = Vec::new();
        for event in &*self.0.lock().unwrap() {
            match event {
                StageEvent::Log { line } => lines.push(line.clone()),
                StageEvent::Warning { message, hint } => lines.push(format!("{message} ({hint:?})")),
                _ => {}
            }
        }
        lines.join("\n")
    }

    /// The values of a metric that was reported.
    fn metric(&self, name: &str) -> Vec<f64> {
        let events = self.0.lock().unwrap();
        let value = |event: &StageEvent| match event {
            StageEvent::Metric { name: of, value, .. } if of == name => Some(*value),
            _ => None,
        };
        events.iter().filter_map(value).collect()
    }
}

/// A store with an environment, and a module.
struct Lab {
    dir: TempDir,
    env: ArtifactDigest,
    python: String,
    said: Arc<Said>,
    cancel: CancelToken,
}

impl Lab {
    fn new(module: &str) -> Option<Self> {
        Self::on(module, |context| {
            let stage = erase(Classic);
            let config = stage.resolve(json!({ "id": "CartPole-v1" })).unwrap();
            stage.run(&config, context).unwrap()["env"]
        })
    }

    fn on(module: &str, env: impl FnOnce(&Context) -> ArtifactDigest) -> Option<Self> {
        let python = python()?;
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("my_agent.py"), module).unwrap();
        let mut lab = Self {
            dir,
            env: ArtifactDigest::from_bytes([0; 32]),
            python,
            said: Arc::default(),
            cancel: CancelToken::default(),
        };
        lab.env = env(&lab.context());
        Some(lab)
    }

    fn context(&self) -> Context {
        let store = Store::open(&self.dir.path().join("home")).unwrap();
        let mut context = Context::new(ActionKey::from_bytes([0; 32]), store);
        context.events = self.said.clone();
        context.cancel = self.cancel.clone();
        if let Ok(artifact) = context.store.artifact(self.env) {
            let digest = self.env;
            context
                .inputs
                .insert("env".to_owned(), vec![Input { digest, artifact }]);
        }
        context
    }

    /// Runs the stage, with settings beside the usual ones.
    fn train(&self, steps: u64, with: Value) -> Result<Outputs, StageError> {
        let mut settings = json!({
            "call": "my_agent:train", "python": self.python, "n_envs": 16, "seed": 1,
            "total_timesteps": steps,
        });
        settings
            .as_object_mut()
            .unwrap()
            .extend(with.as_object().unwrap().clone());
        let stage = erase(PythonTrain);
        let config = stage.resolve(settings).unwrap();
        let mut context = self.context();
        context.sources = stage.sources(&config, self.dir.path()).unwrap();
        for source in &mut context.sources {
            source.digest = Some(cache::BlobRef::of_file(&source.path).unwrap().blob);
        }
        stage.run(&config, &context)
    }

    fn policy(&self, outputs: &Outputs) -> AnyPolicy {
        let store = self.context().store;
        AnyPolicy::read(&store, &store.artifact(outputs["policy"]).unwrap()).unwrap()
    }

    /// The mean return of an episode, played greedily in 16 environments of the test split.
    fn played(&self, outputs: &Outputs) -> f64 {
        let (policy, context) = (self.policy(outputs), self.context());
        let artifact = &context.inputs["env"][0].artifact;
        let mut env = stages_env::open(&context.store, artifact, &OpenOptions::test(16, 5)).unwrap();
        let mut step = Step::new(env.spec(), 16);
        env.reset(step.buffers());
        let mut state = policy.start(&context.store, 16).unwrap();
        let (mut starts, mut over, mut sum) = ([true; 16], [false; 16], 0.0);
        while over.contains(&false) {
            let actions = policy
                .act(&step.obs, &step.action_mask, &starts, &mut state, Mode::Greedy)
                .unwrap();
            env.step(actions, step.buffers()).unwrap();
            for i in 0..16 {
                starts[i] = step.terminated[i] || step.truncated[i];
                if !over[i] {
                    sum += f64::from(step.reward[i]);
                    over[i] = starts[i];
                }
            }
        }
        sum / 16.0
    }

    /// The lines of the metrics artifact with a name.
    fn metric(&self, outputs: &Outputs, name: &str) -> Vec<f64> {
        let store = self.context().store;
        let artifact = store.artifact(outputs["metrics"]).unwrap();
        let text = store.blob(artifact.entry("metrics.jsonl").unwrap().blob).unwrap();
        let lines = std::str::from_utf8(&text).unwrap().lines();
        let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .filter(|line| line["name"] == name)
            .map(|line| line["value"].as_f64().unwrap())
            .collect()
    }
}

/// A random policy balances the pole for 22 steps, and one of zeros, which pushes to the left, for 9.
#[test]
fn evolution_in_numpy_learns_cart_pole() {
    let Some(lab) = Lab::new(EVOLUTION) else { return };
    let outputs = lab.train(200_000, json!({})).unwrap();
    let found = lab.played(&outputs);
    assert!(found > 300.0, "{found}");
    assert_eq!(lab.policy(&outputs).form(), "native");
    for name in [
        "charts/episodic_return",
        "charts/population_std",
        "validation/return_greedy",
    ] {
        assert!(!lab.metric(&outputs, name).is_empty(), "no {name}");
        assert!(!lab.said.metric(name).is_empty(), "no {name}");
    }
    for name in ["time/environment", "time/python", "time/validation", "charts/SPS"] {
        assert!(lab.said.metric(name).iter().all(|&value| value > 0.0), "no {name}");
        assert!(lab.metric(&outputs, name).is_empty(), "{name} differs from run to run");
    }
    assert!(
        lab.said.text().contains("is the best in validation"),
        "{}",
        lab.said.text()
    );
}

/// An algorithm that is best in its middle, and destroys its policy at the end.
const PEAK: &str = "\
import numpy as np
from runner.trained import Weights

GOOD = np.array([[0, 0], [-1, 1], [-5, 5], [-2, 2]], float)

def policy(scale):
    tensors = {'action.weight': scale * GOOD, 'action.bias': np.zeros(2), 'value.weight': np.zeros((4, 1)), 'value.bias': np.zeros(1)}
    return Weights(tensors, {'pi': [], 'vf': []})

def train(ctx, env, total_timesteps):
    env.reset()
    while not ctx.done:
        env.step(np.ones(env.num_envs, int))
        ctx.log('losses/scale', ctx.steps)
        good = 20_000 <= ctx.steps < 40_000
        figures = ctx.validate(policy(1 if good else -1))
        if figures:
            ctx.log('losses/seen', figures['return_greedy'])
    return policy(-1)
";

#[test]
fn the_best_in_validation_is_handed_on() {
    let Some(lab) = Lab::new(PEAK) else { return };
    let every = |every: u32| {
        let outputs = lab.train(60_000, json!({ "validation": { "every": every } })).unwrap();
        (lab.played(&outputs), lab.metric(&outputs, "losses/seen"))
    };
    let (best, seen) = every(10_000);
    assert!(best > 150.0, "{best}");
    assert_eq!(seen.len(), 6, "{seen:?}");
    let text = lab.said.text();
    assert!(
        text.contains("is the best in validation: validation/return_greedy"),
        "{text}"
    );
    let (last, seen) = every(0);
    assert!(last < 30.0, "{last}");
    assert_eq!(seen, Vec::<f64>::new());
}

/// Functions with faults, by name.
const FAULTS: &str = "\
import os, signal, sys, time
import numpy as np
from runner.trained import Onnx, Saved, Weights

TENSORS = {'action.weight': np.zeros((4, 2)), 'action.bias': np.zeros(2), 'value.weight': np.zeros((4, 1)), 'value.bias': np.zeros(1)}
PLAIN = {'pi': [], 'vf': []}

def steps(env, n=3):
    env.reset()
    for _ in range(n):
        env.step(np.zeros(env.num_envs, int))

def raises(ctx, env, total_timesteps):
    steps(env)
    values = {'a': 1}
    return values['b']

def crashes(ctx, env, total_timesteps):
    steps(env)
    os.kill(os.getpid(), signal.SIGSEGV)

def hangs(ctx, env, total_timesteps):
    steps(env)
    while True:
        time.sleep(0.01)

def exits(ctx, env, total_timesteps):
    steps(env)
    sys.exit(3)

def leaves(ctx, env, total_timesteps):
    os._exit(3)

def nothing(ctx, env, total_timesteps):
    steps(env)

def nonsense(ctx, env, total_timesteps):
    return {'weights': [1, 2]}

def nan_actions(ctx, env, total_timesteps):
    env.reset()
    env.step(np.full(env.num_envs, np.nan))

def shape(ctx, env, total_timesteps):
    env.reset()
    env.step(np.zeros(3, int))

def out_of_range(ctx, env, total_timesteps):
    env.reset()
    env.step(np.full(env.num_envs, -1))

def unreset(ctx, env, total_timesteps):
    env.step(np.zeros(env.num_envs, int))

def state(ctx, env, total_timesteps):
    ctx.checkpoint({'a': [{'b': object()}]})

def late(ctx, env, total_timesteps):
    steps(env)
    ctx.resume()

def metric(ctx, env, total_timesteps):
    ctx.log('losses/x', np.zeros(3))

def missing(ctx, env, total_timesteps):
    return Weights({name: value for name, value in TENSORS.items() if name != 'action.bias'}, PLAIN)

def transposed(ctx, env, total_timesteps):
    return Weights({**TENSORS, 'action.weight': np.zeros((2, 4))}, PLAIN)

def more(ctx, env, total_timesteps):
    return Weights({**TENSORS, 'extra': np.zeros(1)}, PLAIN)

def nan_weights(ctx, env, total_timesteps):
    return Weights({**TENSORS, 'action.bias': [0, np.nan]}, PLAIN)

def unknown_key(ctx, env, total_timesteps):
    return Weights(TENSORS, {**PLAIN, 'layers': 3})

def loads(directory, spec):
    return lambda obs: np.full(len(obs), np.nan)

def nan_decisions(ctx, env, total_timesteps):
    return Saved('my_agent:loads')

def foreign(ctx, env, total_timesteps):
    return Saved('os:system')

def upwards(ctx, env, total_timesteps):
    return Saved('my_agent:loads', files={'../../x': b''})

def takes_nothing():
    pass
";

#[test]
fn faults_are_told_with_their_place_and_a_remedy() {
    let Some(lab) = Lab::new(FAULTS) else { return };
    for (call, expected) in [
        (
            "raises",
            &[
                "`my_agent:raises` raised: KeyError: 'b'",
                "my_agent.py\", line",
                "return values['b']",
            ][..],
        ),
        ("crashes", &["killed by SIGSEGV", "in crashes"]),
        (
            "hangs",
            &["took longer than its time limit of 2 s", "in hangs", "time_limit"],
        ),
        ("exits", &["`my_agent:exits` raised: SystemExit: 3", "sys.exit(3)"]),
        ("leaves", &["ended its process, with status 3"]),
        (
            "nothing",
            &["`my_agent:nothing` returned nothing", "runner.trained.Saved"],
        ),
        ("nonsense", &["is of the type `dict`", "runner.trained.Saved"]),
        ("nan_actions", &["float64, not integers", "env.step(np.full"]),
        ("shape", &["(3,), not (16,)", "env.step(np.zeros(3"]),
        (
            "out_of_range",
            &["the action of environment 0 is -1, and there are 2 choices"],
        ),
        ("unreset", &["stepped before they were reset", "env.reset()"]),
        (
            "state",
            &["the state['a'][0]['b'] is of the type `object`", "ctx.checkpoint"],
        ),
        ("late", &["comes after the environment was used"]),
        ("metric", &["the metric `losses/x` is of the type `ndarray`"]),
        ("missing", &["`action.bias` is missing", "`value.weight` [4, 1]"]),
        (
            "transposed",
            &["`action.weight` has the shape [2, 4] instead of [4, 2]", "transpose"],
        ),
        ("more", &["`extra` is not a tensor of the architecture"]),
        ("nan_weights", &["number 1 of `action.bias` is NaN"]),
        ("unknown_key", &["`architecture` cannot be read", "layers"]),
        ("nan_decisions", &["`actions`"]),
        ("foreign", &["has no module `os` of its own"]),
        ("upwards", &["the policy's file `../../x`"]),
        ("takes_nothing", &["`my_agent:takes_nothing` raised: TypeError"]),
        ("unknown", &["`my_agent` has no function `unknown`", "it has "]),
    ] {
        let with = json!({ "call": format!("my_agent:{call}"), "time_limit": 2.0 });
        let error = lab.train(2_000, with).unwrap_err();
        let text = format!("{}\n{}", error.message, error.hint.unwrap_or_default());
        for part in expected {
            assert!(text.contains(part), "{call}: no `{part}` in {text}");
        }
    }
    assert_eq!(children(lab.dir.path()), Vec::<String>::new());
}

/// The processes whose home is below a directory.
fn children(dir: &Path) -> Vec<String> {
    let home = dir.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&environment).contains(&home) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

/// An environment with masked choices of two components, and functions that return files.
const FORMS: &str = "\
import gymnasium, io, os
import numpy as np
from gymnasium import spaces
from runner.trained import Saved


class Walk(gymnasium.Env):
    observation_space = spaces.Box(-10, 10, (2,), np.float32)
    action_space = spaces.MultiDiscrete([2, 3])

    def shown(self):
        return np.array([self.at, self.steps], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = 0, 0
        return self.shown(), {}

    def step(self, action):
        assert action[1] != 2 or self.at % 2 == 0, 'a masked choice'
        self.at += int(action[1]) if action[0] else 0
        self.steps += 1
        return self.shown(), float(self.at == 4), self.at > 4, self.steps == 10, {}

    def action_masks(self):
        return np.array([True, True, True, True, self.at % 2 == 0])


def load(directory, spec):
    with np.load(os.path.join(directory, 'weights.npz')) as saved:
        weights = saved['weights']
    kind = spec['action']['kind']

    def policy(obs, masks, state, episode_start):
        # The state counts the steps of an episode.
        assert ((state[:, 0] == 0) | ~episode_start).all()
        out = obs @ weights
        return {'mean' if kind == 'continuous' else 'logits': out, 'state': state + 1}

    return policy


def saved(env, weights):
    file = io.BytesIO()
    np.savez(file, weights=weights)
    return Saved('my_agent:load', {'weights.npz': file.getvalue()}, state_len=1)


def train(ctx, env, total_timesteps, masked=False):
    print('this is printed')
    (d,), space = env.single_observation_space.shape, env.single_action_space
    n = space.shape[0] if isinstance(space, spaces.Box) else int(np.sum(getattr(space, 'nvec', getattr(space, 'n', 0))))
    masks = env.action_masks()
    obs, _ = env.reset(seed=ctx.seed)
    assert obs.shape == (env.num_envs, d) and obs.dtype == np.float32
    assert (env.observe() == obs).all()
    copied, views = env.observe(), env.views().observe()
    rewards = 0.0
    while not ctx.done:
        masks = env.action_masks()
        if isinstance(space, spaces.Box):
            actions = np.zeros((env.num_envs, n), np.float32)
        elif isinstance(space, spaces.Discrete):
            actions = masks.argmax(axis=1) if masks.size else np.zeros(env.num_envs, int)
        else:
            actions = np.stack([np.ones(env.num_envs, int), np.where(masks[:, 4], 2, 1)], axis=1)
            if masked:
                actions[:, 1] = np.where(masks[:, 4], 1, 2)
        obs, reward, terminated, truncated, info = env.step(actions)
        rewards += reward.sum()
        if (terminated | truncated).any():
            assert (info['_final_obs'] == (terminated | truncated)).all()
        ctx.validate(lambda: saved(env, np.ones((d, n))))
    # Copies stay, views change.
    assert (views == obs).all() and not (copied == obs).all()
    ctx.log('charts/SPS', 3.0)
    ctx.log('losses/nan', np.float32('nan'))
    ctx.log('losses/rewards', rewards)
    return saved(env, np.ones((d, n)))


def pickled(ctx, env, total_timesteps):
    import pickle
    return Saved('my_agent:unpickle', {'weights': pickle.dumps(np.ones(2))})


def unpickle(directory, spec):
    import pickle
    with open(os.path.join(directory, 'weights'), 'rb') as file:
        pickle.load(file)
    return lambda obs: np.zeros((len(obs), 2), int)
";

fn walk(lab: &Context) -> ArtifactDigest {
    let dir = lab.store.root().parent().unwrap().to_owned();
    let config =
        serde_json::from_value(json!({ "call": "my_agent:Walk", "python": python().unwrap() })).unwrap();
    stages_env::python::build(&config, &lab.store, &dir).unwrap()
}

fn classic(context: &Context, id: &str) -> ArtifactDigest {
    let stage = erase(Classic);
    stage
        .run(&stage.resolve(json!({ "id": id })).unwrap(), context)
        .unwrap()["env"]
}

#[test]
fn files_that_a_function_loads_play_in_every_action_space() {
    for (env, random) in [("CartPole-v1", 500.0), ("Pendulum-v1", 0.0), ("walk", 10.0)] {
        let Some(lab) = Lab::on(FORMS, |context| match env {
            "walk" => walk(context),
            id => classic(context, id),
        }) else {
            return;
        };
        let outputs = lab
            .train(2_000, json!({ "validation": { "every": 1_000, "episodes": 4 } }))
            .unwrap();
        let policy = lab.policy(&outputs);
        assert_eq!((policy.form(), policy.remembers()), ("python", true));
        assert!(lab.played(&outputs) <= random, "{env}");
        // At the end, too.
        assert_eq!(lab.metric(&outputs, "validation/return_greedy").len(), 2, "{env}");
        assert_eq!(lab.metric(&outputs, "losses/rewards").len(), 1, "{env}");
        for name in ["losses/nan", "charts/SPS"] {
            assert_eq!(lab.metric(&outputs, name), Vec::<f64>::new());
        }
        let text = lab.said.text();
        for part in [
            "this is printed",
            "`charts/SPS` is recorded by the program itself",
            "`losses/nan` is not finite",
        ] {
            assert!(text.contains(part), "{env}: no `{part}` in {text}");
        }
        assert!(!text.contains("were masked"), "{text}");
        if env == "walk" {
            // Two steps of 2, then one beyond: 4 and 6 in every three steps, one of which is paid for.
            let rewards = lab.metric(&outputs, "losses/rewards")[0];
            assert!((rewards - 2_000.0 / 3.0).abs() < 17.0, "{rewards}");
            lab.train(2_000, json!({ "kwargs": { "masked": true } })).unwrap();
            let text = lab.said.text();
            assert!(text.contains("% of the function's choices were masked"), "{text}");
            let with = json!({ "call": "my_agent:pickled" });
            let error = lab.train(16, with).unwrap_err();
            assert!(
                error.hint.unwrap_or_default().contains("trust: pickle"),
                "{}",
                error.message
            );
            lab.train(16, json!({ "call": "my_agent:pickled", "trust": "pickle" }))
                .unwrap();
        }
    }
}

/// The files below a directory whose names end so.
fn find(dir: &Path, end: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(find(&path, end));
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found
}

/// A random policy loses by its trades.
#[test]
fn stable_baselines3_learns_the_lookup_environment_and_resumes() {
    let Some(torch) = std::env::var("RUNNER_TEST_TORCH").ok() else {
        eprintln!("skipped: RUNNER_TEST_TORCH names no interpreter with torch and stable-baselines3");
        return;
    };
    let lookup = |context: &Context| {
        let stage = erase(Lookup);
        let config = stage.resolve(json!({ "features": 2 })).unwrap();
        stage.run(&config, context).unwrap()["env"]
    };
    let Some(mut lab) = Lab::on(include_str!("../../../../docs/agents/sb3_ppo.py"), lookup) else {
        return;
    };
    lab.python = torch;
    let with = json!({
        "checkpoint_interval": 1e-3, "validation": { "every": 10_000, "episodes": 8 },
        "kwargs": { "n_steps": 64, "n_epochs": 4, "batch_size": 256, "gamma": 0.5, "learning_rate": 1e-3 },
    });
    let whole = lab.train(50_000, with.clone()).unwrap();
    let found = lab.played(&whole);
    eprintln!(
        "return {found:.3}, {:.0} steps/s",
        lab.said.metric("charts/SPS").last().unwrap()
    );
    assert!(found > 10.0, "{found}");
    assert_eq!(lab.policy(&whole).form(), "python");
    assert!(!lab.metric(&whole, "train/loss").is_empty());
    for path in find(&lab.dir.path().join("home"), "checkpoint.safetensors") {
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
    // Cancelled once it has written a checkpoint, it goes on to the same bytes.
    let (cancel, home) = (lab.cancel.clone(), lab.dir.path().join("home"));
    std::thread::spawn(move || {
        while find(&home, "checkpoint.safetensors").is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        cancel.cancel();
    });
    lab.train(50_000, with.clone()).unwrap_err();
    lab.cancel = CancelToken::default();
    assert_eq!(lab.train(50_000, with).unwrap(), whole);
    let text = lab.said.text();
    assert!(text.contains("resuming from the checkpoint"), "{text}");
}

/// A linear model in ONNX, made by hand, and one with another number of observations.
const MODEL: &str = "\
import numpy as np
import onnx
from onnx import TensorProto, helper
from runner.trained import Onnx


def linear(d):
    weights = np.zeros((d, 2), np.float32)
    weights[2:, 0], weights[2:, 1] = -1, 1
    nodes = [helper.make_node('MatMul', ['observation', 'weights'], ['logits'])]
    value = lambda name, n: helper.make_tensor_value_info(name, TensorProto.FLOAT, ['batch', n])
    constants = [helper.make_tensor('weights', TensorProto.FLOAT, weights.shape, weights.ravel())]
    graph = helper.make_graph(nodes, 'linear', [value('observation', d)], [value('logits', 2)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    return Onnx(model.SerializeToString())


def train(ctx, env, total_timesteps, d=4):
    return linear(d)
";

#[test]
fn a_model_in_onnx_is_a_policy() {
    let Some(lab) = Lab::new(MODEL) else { return };
    let outputs = lab.train(1_000, json!({})).unwrap();
    assert_eq!(lab.policy(&outputs).form(), "onnx");
    let found = lab.played(&outputs);
    assert!(found > 100.0, "{found}");
    let error = lab.train(1_000, json!({ "kwargs": { "d": 5 } })).unwrap_err();
    assert!(error.message.contains('5'), "{}", error.message);
}
