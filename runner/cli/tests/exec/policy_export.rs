//! Exported policies, and the reader docs/policies/read_policy.py.

use crate::{Ended, Project};
use serde_json::{Value, json};
use stages_env::{ActionEncoding, ActionSpace, Actions, Bounds, EnvSpec, Normalisation};
use stages_numerics::random::Random;
use stages_policy::{ActionHead, Activation, Architecture, Critic, Lstm, Mode, Policy, Transformer, initial};
use std::process::Command;

/// The reader, which the book points to.
const READER: &str = include_str!("../../../../docs/policies/read_policy.py");

const PIPELINE: &str = "\
version: 1
name: exported
stages:
  env: { uses: env/classic, with: { id: CartPole-v1 } }
  ppo: \
{ uses: train/ppo, needs: { env: env }, with: { total_timesteps: 256, n_envs: 4, n_steps: 32, batch_size: 64 } }
  rppo: \
{ uses: train/recurrent_ppo, needs: { env: env }, with: { total_timesteps: 256, n_envs: 4, n_steps: 32, batch_size: 64 } }
  tppo: \
{ uses: train/transformer_ppo, needs: { env: env }, with: { total_timesteps: 256, n_envs: 4, n_steps: 32, batch_size: 64 } }
";

const STEPS: usize = 60;
/// Of each kind of memory, with discrete and with continuous actions.
const ONNX_STEPS: usize = 10_000;
/// Of the other architectures.
const FEW_ONNX_STEPS: usize = 600;

/// The program's outputs for drawn observations, episode starts and masks, for the reader to compare.
fn forward(policy: &Policy, seed: u64, steps: usize) -> Value {
    let random = &mut Random::new(&[seed]);
    let head = &policy.architecture().head;
    let (obs_dim, a) = (policy.architecture().obs_dim, head.num_outputs());
    let encoding = &policy.spec().encoding;
    let mut state = policy.start(1);
    let steps: Vec<Value> = (0..steps)
        .map(|step| {
            let obs: Vec<f32> = (0..obs_dim).map(|_| random.normal() as f32).collect();
            let start = step % 25 == 0;
            let mut mask: Vec<bool> = (0..a).map(|_| random.uniform() < 0.6).collect();
            let mut first = 0;
            for &choices in head.choices() {
                mask[first] = true;
                first += choices as usize;
            }
            let first = |at: usize| encoding.start.get(at).copied().unwrap_or(0);
            let action = match policy.act(&obs, &mask, &[start], &mut state, Mode::Greedy) {
                Actions::Discrete(actions) | Actions::MultiDiscrete(actions) => {
                    let numbers = actions
                        .iter()
                        .enumerate()
                        .map(|(at, &choice)| i64::from(choice) + first(at));
                    json!(numbers.collect::<Vec<_>>())
                }
                Actions::Continuous(actions) => {
                    let mut actions = actions.to_vec();
                    policy.spec().action_space.bounds().unwrap().clip(&mut actions);
                    json!(actions)
                }
            };
            let output = state.output();
            let outputs = if head.is_continuous() {
                &output.mean
            } else {
                &output.log_prob
            };
            // JSON has no infinity.
            let outputs: Vec<f32> = outputs.iter().map(|x| x.max(-1e30)).collect();
            json!({ "obs": obs, "start": start, "mask": mask, "outputs": outputs, "action": action })
        })
        .collect();
    json!({
        "continuous": head.is_continuous(), "steps": steps, "outputs": head.has_critic(),
        "shape": encoding.shape,
    })
}

const COMPARE: &str = r#"
import sys
worst = 0.0
for path, expected in json.load(open("cases.json")):
    policy = Policy(path)
    for step in expected["steps"]:
        out = policy.outputs(step["obs"], step["start"])
        action = np.array(policy.action(out, step["mask"]))
        assert action.shape == tuple(expected["shape"] or np.shape(action)), (path, action)
        wanted = np.array(step["action"])
        assert action.size == wanted.size and (np.abs(action.ravel() - wanted) <= 1e-5 * np.maximum(1, np.abs(wanted))).all(), (path, action, wanted)
        if not expected["outputs"]: continue
        if not expected["continuous"]:
            out = np.maximum(policy.log_probabilities(out, step["mask"]), -1e30)
        given = np.array(step["outputs"], "f4")
        assert out.shape == given.shape and out.dtype == np.float32, (path, out.shape, out.dtype)
        error = (np.abs(out - given) / np.maximum(1, np.abs(given))).max()
        assert error < 1e-5, (path, out, given)
        worst = max(worst, float(error))
print("worst", worst)
"#;

const COMPARE_ONNX: &str = r#"
import json, sys
import numpy as np, onnxruntime
try:
    import onnx
except ImportError:
    onnx = None
worst = 0.0
for path, expected in json.load(open("models.json")):
    if onnx: onnx.checker.check_model(onnx.load(path), full_check=True)
    session = onnxruntime.InferenceSession(path)
    inputs = {i.name: i for i in session.get_inputs()}
    names = [o.name for o in session.get_outputs()]
    feed = {n: np.zeros([1 if isinstance(d, str) else d for d in i.shape], "f4") for n, i in inputs.items()}
    for step in expected["steps"]:
        feed["observation"] = np.array([step["obs"]], "f4")
        if "action_mask" in inputs: feed["action_mask"] = np.array([step["mask"]])
        if "episode_start" in inputs: feed["episode_start"] = np.array([step["start"]], "f4")
        out = dict(zip(names, session.run(None, feed)))
        feed.update({n[5:]: v for n, v in out.items() if n.startswith("next.")})
        assert list(out["action"].shape[1:]) == (expected["shape"] or list(out["action"].shape[1:])), path
        out["action"] = out["action"].reshape(1, -1)
        if not expected["continuous"]:
            assert np.ravel(out["action"]).tolist() == step["action"], (path, out["action"], step["action"])
        if "action_values" in out: continue
        given = np.array([step["action"] if expected["continuous"] else step["outputs"]], "f4")
        found = out["action"] if expected["continuous"] else np.maximum(out["log_probabilities"], -1e30)
        assert found.shape == given.shape, (path, found.shape)
        error = (np.abs(found - given) / np.maximum(1, np.abs(given))).max()
        assert error < 1e-5, (path, found, given)
        worst = max(worst, float(error))
# A batch is its rows.
for path, expected in json.load(open("models.json")):
    session = onnxruntime.InferenceSession(path)
    def run(rows):
        feed = {i.name: np.zeros([rows.stop - rows.start if isinstance(d, str) else d for d in i.shape], "f4") for i in session.get_inputs()}
        feed["observation"] = np.array([s["obs"] for s in expected["steps"][rows]], "f4")
        if "action_mask" in feed: feed["action_mask"] = np.array([s["mask"] for s in expected["steps"][rows]])
        return session.run(None, feed)
    for whole, one in zip(run(slice(0, 8)), run(slice(3, 4))):
        assert np.abs(np.maximum(whole[3:4], -1e30) - np.maximum(one, -1e30)).max() < 1e-5, path
print("worst", worst)
"#;

/// Runs models on the same steps; false where there is no Python with onnxruntime.
fn read_by_onnxruntime(project: &Project, models: &[(String, Value)]) -> bool {
    let python = std::env::var("RUNNER_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import onnxruntime"]).output();
    if !found.is_ok_and(|found| found.status.success()) {
        eprintln!("skipped: no Python with onnxruntime (RUNNER_TEST_PYTHON names one)");
        return false;
    }
    project.write("compare_onnx.py", COMPARE_ONNX);
    project.write("models.json", serde_json::to_string(models).unwrap());
    let mut command = Command::new(&python);
    let ended: Ended = command
        .arg("compare_onnx.py")
        .current_dir(project.path(""))
        .output()
        .unwrap()
        .into();
    assert_eq!(ended.code, 0, "{}", ended.text());
    eprintln!("{}", ended.stdout);
    true
}

/// Runs the reader on files and expected outputs; false where there is no Python with NumPy.
fn read_by_numpy(project: &Project, cases: &[(String, Value)]) -> bool {
    let python = std::env::var("RUNNER_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import numpy"]).output();
    if !found.is_ok_and(|found| found.status.success()) {
        eprintln!("skipped: no Python with NumPy (RUNNER_TEST_PYTHON names one)");
        return false;
    }
    project.write("compare.py", format!("{READER}\n{COMPARE}"));
    project.write("cases.json", serde_json::to_string(cases).unwrap());
    let mut command = Command::new(&python);
    let ended: Ended = command
        .arg("compare.py")
        .current_dir(project.path(""))
        .output()
        .unwrap()
        .into();
    assert_eq!(ended.code, 0, "{}", ended.text());
    eprintln!("{}", ended.stdout);
    true
}

#[test]
fn trained_policies_leave() {
    let project = Project::new(PIPELINE);
    let ran = project.exec(&[]);
    assert_eq!(ran.code, 0, "{}", ran.text());
    let (mut cases, mut models) = (Vec::new(), Vec::new());
    for (seed, stage) in ["ppo", "rppo", "tppo"].into_iter().enumerate() {
        let (of_stage, of_output) = (format!("latest/{stage}"), format!("latest/{stage}.policy"));
        let (tensors, arrays) = (format!("out/{stage}.safetensors"), format!("{stage}.npz"));
        let model = format!("{stage}.onnx");
        for args in [
            ["policy", "export", &of_stage, "--format", "safetensors", &tensors],
            ["policy", "export", &of_output, "--format", "numpy", &arrays],
            ["policy", "export", &of_output, "--format", "onnx", &model],
        ] {
            let ended = project.run(&args);
            assert_eq!(ended.code, 0, "{}", ended.text());
        }
        assert_eq!(project.run(&["export", &of_output, stage]).code, 0);
        let stored = std::fs::read(project.path(&format!("{stage}/policy.safetensors"))).unwrap();
        let bytes = std::fs::read(project.path(&tensors)).unwrap();
        assert!(stored == bytes, "the file of the store, byte for byte");
        let expected = forward(&Policy::load(&bytes).unwrap(), seed as u64, STEPS);
        cases.push((tensors, expected.clone()));
        cases.push((arrays, expected.clone()));
        models.push((model, expected));
    }
    read_by_numpy(&project, &cases);
    read_by_onnxruntime(&project, &models);
    let json = project.run(&[
        "--json",
        "policy",
        "export",
        "latest/ppo",
        "--format",
        "numpy",
        "again.npz",
    ]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["kind"], "train/ppo");
    let read = |name: &str| std::fs::read(project.path(name)).unwrap();
    assert_eq!(json["bytes"], read("again.npz").len());
    assert!(read("again.npz") == read("ppo.npz"));
    // Mistakes.
    let refused = |args: &[&str]| {
        let ended = project.run(&[&["policy", "export"], args].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
        ended.stderr
    };
    let message = refused(&["latest/env", "--format", "numpy", "x.npz"]);
    assert!(
        message.contains("`latest/env` is not a policy") && message.contains("RUN/STAGE of a training"),
        "{message}"
    );
    let message = refused(&["latest/ppo", "--format", "numpy", "ppo.npz"]);
    assert!(
        message.contains("`ppo.npz` already exists") && message.contains("does not exist"),
        "{message}"
    );
    let message = refused(&["latest/ppo", "--format", "pickle", "x"]);
    assert!(message.contains("safetensors, numpy, onnx"), "{message}");
    let message = refused(&["latest/none", "--format", "numpy", "x.npz"]);
    assert!(message.contains("has no stage `none`"), "{message}");
    assert!(!project.path("x.npz").exists());
}

#[test]
fn the_reader_computes_every_architecture() {
    let project = Project::new(PIPELINE);
    let lstm = |critic, layers| Architecture {
        lstm: Some(Lstm {
            hidden: 6,
            critic,
            layers,
        }),
        ..Architecture::default()
    };
    let transformer = |window, n_layers| Architecture {
        transformer: Some(Transformer {
            window,
            d_model: 8,
            n_heads: 2,
            n_layers,
            d_ff: 12,
        }),
        ..Architecture::default()
    };
    let (mut cases, mut models) = (Vec::new(), Vec::new());
    for (i, memory) in [
        Architecture::default(),
        lstm(Critic::Separate, 1),
        lstm(Critic::Linear, 1),
        lstm(Critic::Shared, 2),
        transformer(4, 2),
        transformer(1, 1),
    ]
    .into_iter()
    .enumerate()
    {
        for (j, head) in [
            ActionHead::Discrete(4),
            ActionHead::MultiDiscrete(vec![3, 2]),
            ActionHead::Continuous(2),
            ActionHead::ScaledGaussian(2),
        ]
        .into_iter()
        .enumerate()
        {
            let architecture = Architecture {
                obs_dim: 3,
                head: head.clone(),
                activation: if i % 2 == 0 { Activation::Tanh } else { Activation::Relu },
                pi: vec![7, 5],
                vf: vec![4],
                ..memory.clone()
            };
            let names = |n: usize| (0..n).map(|i| i.to_string()).collect();
            let action_space = match &head {
                ActionHead::MultiDiscrete(choices) => ActionSpace::MultiDiscrete {
                    names: names(2),
                    choices: choices.clone(),
                    masked: true,
                },
                ActionHead::Continuous(_) => ActionSpace::Continuous {
                    names: names(2),
                    bounds: Bounds {
                        low: vec![-1.0; 2],
                        high: vec![1.0; 2],
                    },
                },
                ActionHead::ScaledGaussian(_) => ActionSpace::Continuous {
                    names: names(2),
                    bounds: Bounds {
                        low: vec![5.0, -3.0],
                        high: vec![10.0, 0.5],
                    },
                },
                _ => ActionSpace::Discrete {
                    names: names(4),
                    masked: true,
                },
            };
            // Half of them count their choices from elsewhere, and take a column.
            let encoding = match &head {
                _ if i % 2 == 0 => ActionEncoding::default(),
                ActionHead::Discrete(_) => ActionEncoding {
                    start: vec![5],
                    shape: None,
                },
                ActionHead::MultiDiscrete(_) => ActionEncoding {
                    start: vec![1, -2],
                    shape: Some(vec![2, 1]),
                },
                _ => ActionEncoding {
                    start: Vec::new(),
                    shape: Some(vec![2, 1]),
                },
            };
            let env = EnvSpec {
                name: "test".to_owned(),
                observation: names(3),
                action_space,
                normalisation: None,
                encoding,
            };
            let normalisation = Normalisation {
                offset: vec![0.5, 0.0, -1.0],
                scale: vec![2.0, 0.4, 1.0],
                clip: 1.5,
            };
            let seed = (10 * i + j) as u64;
            // Biases, gains and the outputs' weights are drawn, too: their initial values would hide
            // mistakes.
            let random = &mut Random::new(&[seed]);
            let mut params = initial(&architecture, false, seed);
            params.iter_mut().for_each(|x| *x += 0.3 * random.normal() as f32);
            let policy = Policy::new("train/ppo", &env, &architecture, Some(normalisation), params).unwrap();
            let path = format!("{i}-{j}.safetensors");
            std::fs::write(project.path(&path), policy.save().unwrap()).unwrap();
            cases.push((path, forward(&policy, seed, STEPS)));
            let path = format!("{i}-{j}.onnx");
            std::fs::write(project.path(&path), policy.onnx("{}").unwrap()).unwrap();
            let is_of_each = matches!(i, 0 | 1 | 4) && j != 1;
            let steps = if is_of_each { ONNX_STEPS } else { FEW_ONNX_STEPS };
            models.push((path, forward(&policy, seed, steps)));
        }
    }
    read_by_numpy(&project, &cases);
    read_by_onnxruntime(&project, &models);
}

/// Networks of the trainers that learn from a replay buffer: action values, and actions that are squashed and
/// scaled to uneven bounds.
#[test]
fn networks_without_a_critic_are_models_too() {
    let project = Project::new(PIPELINE);
    let names = |n: usize| (0..n).map(|i| i.to_string()).collect();
    let q_values = |dueling| ActionHead::QValues {
        choices: 4,
        dueling,
        epsilon: 0.0,
    };
    let heads = [
        q_values(false),
        q_values(true),
        ActionHead::SquashedGaussian(2),
        ActionHead::Deterministic(2),
    ];
    let (mut cases, mut models) = (Vec::new(), Vec::new());
    for (i, head) in heads.into_iter().enumerate() {
        let action_space = match head.is_continuous() {
            true => ActionSpace::Continuous {
                names: names(2),
                bounds: Bounds {
                    low: vec![-2.0, 0.5],
                    high: vec![1.0, 4.0],
                },
            },
            false => ActionSpace::Discrete {
                names: names(4),
                masked: true,
            },
        };
        let architecture = Architecture {
            obs_dim: 3,
            head,
            activation: Activation::Relu,
            pi: vec![16, 8],
            ..Architecture::default()
        };
        let env = EnvSpec {
            name: "test".to_owned(),
            observation: names(3),
            action_space,
            normalisation: None,
            encoding: ActionEncoding::default(),
        };
        let random = &mut Random::new(&[100 + i as u64]);
        let mut params = initial(&architecture, false, i as u64);
        params.iter_mut().for_each(|x| *x += 0.3 * random.normal() as f32);
        let policy = Policy::new("train/dqn", &env, &architecture, None, params).unwrap();
        let path = format!("{i}.onnx");
        std::fs::write(project.path(&path), policy.onnx("{}").unwrap()).unwrap();
        models.push((path, forward(&policy, i as u64, ONNX_STEPS)));
        let path = format!("{i}.safetensors");
        std::fs::write(project.path(&path), policy.save().unwrap()).unwrap();
        cases.push((path, forward(&policy, i as u64, STEPS)));
    }
    read_by_numpy(&project, &cases);
    read_by_onnxruntime(&project, &models);
}

/// Environments whose actions are counted, bounded and shaped in every way, and what a program does that has
/// the exported files alone.
const SPACES: &str = r#"
import gymnasium, numpy as np
from gymnasium import spaces

SPACES = {
    "from_five": spaces.Discrete(3, start=5),
    "from_minus_two": spaces.Discrete(4, start=-2),
    "grid": spaces.MultiDiscrete(np.array([[2, 3], [4, 2]]), start=np.array([[1, 0], [-1, 7]])),
    "bits": spaces.MultiBinary((2, 2)),
    "box": spaces.Box(5, 10, (1,), np.float32),
    "column": spaces.Box(np.array([[-1.0], [300.0]]), np.array([[1.0], [500.0]]), dtype=np.float64),
    "scalar": spaces.Box(0, 1, (), np.float32),
    "unit": spaces.Box(-1, 1, (2,), np.float32),
}

class Any(gymnasium.Env):
    observation_space = spaces.Box(-9, 9, (3,), np.float32)

    def __init__(self, name):
        self.action_space, self.discrete = SPACES[name], not name in ("box", "column", "scalar", "unit")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.obs = 0, self.np_random.normal(size=3).astype(np.float32).clip(-9, 9)
        return self.obs, {}

    def step(self, action):
        assert self.action_space.contains(action) or self.action_space.contains(np.asarray(action, self.action_space.dtype)), (action, self.action_space)
        paid = float(np.sin(np.arange(1, 1 + np.size(action)) * np.ravel(action).astype(float)).sum())
        self.steps += 1
        self.obs = self.np_random.normal(size=3).astype(np.float32).clip(-9, 9)
        return self.obs, paid, False, self.steps == 20, {}

def make(name):
    return Any(name)
"#;

const PLAYED: &str = r#"
import onnxruntime, spaces_env
for name in spaces_env.SPACES:
    env, readers, session = spaces_env.make(name), [Policy(name + ".safetensors"), Policy(name + ".npz")], onnxruntime.InferenceSession(name + ".onnx")
    takes_mask = "action_mask" in [i.name for i in session.get_inputs()]
    obs, _ = env.reset(seed=3)
    for step in range(200):
        one, two = (np.asarray(reader.action(reader.outputs(obs, step == 0))) for reader in readers)
        feed = {"observation": obs[None]} | ({"action_mask": np.ones((1, readers[0].net["num_actions"]), bool)} if takes_mask else {})
        three = session.run(["action"], feed)[0][0]
        assert np.shape(three) == env.action_space.shape == one.shape, (name, three, one)
        assert (one == two).all() and np.allclose(one, three, rtol=1e-5, atol=1e-6), (name, one, three)
        obs, _, _, over, _ = env.step(one)
        if over: obs, _ = env.reset()
    print(name, "same")
"#;

#[test]
fn python_programs_act_on_every_space_by_the_exported_files() {
    let Some(python) = crate::python_stages::python() else {
        return;
    };
    if !Command::new(&python)
        .args(["-c", "import onnxruntime"])
        .output()
        .is_ok_and(|out| out.status.success())
    {
        eprintln!("skipped: no Python with onnxruntime (RUNNER_TEST_PYTHON names one)");
        return;
    }
    let names = [
        "from_five",
        "from_minus_two",
        "grid",
        "bits",
        "box",
        "column",
        "scalar",
        "unit",
    ];
    let stages = names.map(|name| {
        format!(
            "  env_{name}: {{ uses: env/python, with: {{ call: \"spaces_env:make\", kwargs: {{ name: {name} }}, python: \"{python}\" }} }}
  {name}: {{ uses: train/ppo, needs: {{ env: env_{name} }}, with: {{ total_timesteps: 512, n_envs: 2, n_steps: 64, batch_size: 64 }} }}
"
        )
    });
    let project = Project::new(format!("version: 1\nname: spaces\nstages:\n{}", stages.concat()));
    project.write("spaces_env.py", SPACES);
    let ran = project.exec(&[]);
    assert_eq!(ran.code, 0, "{}", ran.text());
    for name in names {
        for (format, end) in [("safetensors", "safetensors"), ("numpy", "npz"), ("onnx", "onnx")] {
            let (stage, file) = (format!("latest/{name}"), format!("{name}.{end}"));
            let ended = project.run(&["policy", "export", &stage, "--format", format, &file]);
            assert_eq!(ended.code, 0, "{}", ended.text());
        }
    }
    project.write("played.py", format!("{READER}\n{PLAYED}"));
    let mut command = Command::new(&python);
    let ended: Ended = command
        .arg("played.py")
        .current_dir(project.path(""))
        .output()
        .unwrap()
        .into();
    assert_eq!(ended.code, 0, "{}", ended.text());
    let same = ended.stdout.matches("same").count();
    eprintln!(
        "actions in another program: tried {}, told 0, right {}, silent 0",
        3 * names.len(),
        3 * same
    );
    assert_eq!(same, names.len());
}
