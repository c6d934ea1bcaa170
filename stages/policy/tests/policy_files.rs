//! `ingest/policy` as a pipeline runs it: sources, settings, what is stored and how it acts.
//!
//! Networks of PyTorch need an interpreter with torch and stable-baselines3, `RUNNER_TEST_TORCH`.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../../tests/requirements.rs"]
mod requirements;

use cache::{KeyHasher, Store};
use serde_json::{Value, json};
use stages_core::{Context, Input, PlanContext, StageKind as _};
use stages_env::classic::Classic;
use stages_policy::forms::AnyPolicy;
use stages_policy::ingest::{IngestPolicy, PolicyFileConfig};
use stages_policy::{Mode, policy::Policy};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use tempfile::TempDir;

/// A directory of files and a store.
struct World {
    dir: TempDir,
    store: Store,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store")).unwrap();
        Self { dir, store }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn context(&self, id: &str) -> Context {
        let config = serde_json::from_value(json!({ "id": id })).unwrap();
        let mut context = Context::new(KeyHasher::new("test").action_key(), self.store.clone());
        let digest = Classic.run(&config, &context).unwrap()["env"];
        let artifact = self.store.artifact(digest).unwrap();
        context
            .inputs
            .insert("env".to_owned(), vec![Input { digest, artifact }]);
        context
    }

    /// The stage's policy, or the message and the hint of its error, at whatever time.
    fn ingest(&self, id: &str, with: Value) -> Result<AnyPolicy, String> {
        let config: PolicyFileConfig = serde_json::from_value(with).unwrap();
        let problem =
            |message: String, hint: Option<String>| format!("{message}\n{}", hint.unwrap_or_default());
        let mut context = self.context(id);
        let plan = PlanContext {
            base: self.dir.path(),
            inputs: BTreeMap::new(),
        };
        IngestPolicy
            .check(&config, &plan)
            .map_err(|err| problem(err.message, err.hint))?;
        context.sources = IngestPolicy
            .sources(&config, self.dir.path())
            .map_err(|err| problem(err.message, err.hint))?;
        let outputs = IngestPolicy
            .run(&config, &context)
            .map_err(|err| problem(err.message, err.hint))?;
        Ok(AnyPolicy::read(&self.store, &self.store.artifact(outputs["policy"]).unwrap()).unwrap())
    }

    /// Runs a program of Python in the directory.
    fn python(&self, python: &str, program: &str) {
        let ended = Command::new(python)
            .args(["-c", program])
            .current_dir(self.dir.path())
            .output()
            .unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }

    /// The actions of a policy for the observations of one episode, beside those that are expected, by the
    /// files `obs{of}.json` and `actions{of}.json`.
    fn acts_as_expected(&self, policy: &AnyPolicy, of: &str) {
        let rows = |name: &str| -> Vec<Vec<f32>> {
            serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
        };
        let space = &policy.spec().action_space;
        let mut state = policy.start(&self.store, 1).unwrap();
        for (i, (obs, wanted)) in rows(&format!("obs{of}.json"))
            .iter()
            .zip(rows(&format!("actions{of}.json")))
            .enumerate()
        {
            let mask = vec![true; space.mask_len()];
            let actions = policy.act(obs, &mask, &[i == 0], &mut state, Mode::Greedy).unwrap();
            let found: Vec<f32> = match actions {
                stages_env::Actions::Continuous(actions) => {
                    actions.iter().map(|x| x.clamp(-2.0, 2.0)).collect()
                }
                _ => actions.discrete(1).unwrap().iter().map(|&x| x as f32).collect(),
            };
            let near = found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-4);
            assert!(near && found.len() == wanted.len(), "{i}: {found:?} {wanted:?}");
        }
    }
}

fn reference(name: &str) -> std::path::PathBuf {
    Path::new("../../tests/reference/sb3").join(name)
}

/// The zips of stable-baselines3 with networks of ours are native, and need no Python.
fn zips_become_networks_of_ours() {
    let world = World::new();
    std::fs::copy(reference("ppo_cart_pole.zip"), world.path("model.zip")).unwrap();
    let policy = world.ingest("CartPole-v1", json!({ "path": "model.zip" })).unwrap();
    assert_eq!((policy.form(), policy.kind()), ("native", "train/ppo"));
    for (with, wanted) in [
        (json!({ "path": "nothing.zip" }), "there is no file"),
        (json!({ "path": "" }), "no file is given"),
        (json!({ "path": "model.bin" }), "does not tell the file's format"),
        (
            json!({ "path": "model.zip", "tensors": { "x": "observation" } }),
            "is not read with the format \"sb3\"",
        ),
        (json!({ "path": "model.pt" }), "no network is given"),
        (
            json!({ "path": "model.pt", "class": "os.system" }),
            "is not MODULE:CLASS",
        ),
        (
            json!({ "path": "model.pt", "class": "nets:Agent" }),
            "needs an interpreter",
        ),
        (json!({ "path": "model.zip", "format": "onnx" }), "it is a zip archive"),
    ] {
        let message = world.ingest("CartPole-v1", with).unwrap_err();
        assert!(message.contains(wanted), "{message}");
    }
    let message = world.ingest("Pendulum-v1", json!({ "path": "model.zip" })).unwrap_err();
    assert!(
        message.contains("model.zip") && message.contains("Pendulum-v1"),
        "{message}"
    );
}

/// A network of ours, exported, is read with its normalisation and compared by names.
fn exported_models_carry_their_environment() {
    let world = World::new();
    std::fs::copy(reference("ppo_cart_pole.zip"), world.path("model.zip")).unwrap();
    let native = world.ingest("CartPole-v1", json!({ "path": "model.zip" })).unwrap();
    let native: &Policy = native.native().unwrap();
    let about = json!({ "env": native.spec(), "architecture": native.architecture() });
    world.write("policy.onnx", native.onnx(&about.to_string()).unwrap());
    let read = world
        .ingest("CartPole-v1", json!({ "path": "policy.onnx", "name": "theirs" }))
        .unwrap();
    assert_eq!(
        (read.form(), read.name(), read.kind()),
        ("onnx", Some("theirs"), "ingest/policy")
    );
    assert_eq!(read.spec(), native.spec());
    let (mut own, mut other) = (native.start(3), read.start(&world.store, 3).unwrap());
    let obs: Vec<f32> = (0..12).map(|i| (i as f32 - 6.0) / 9.0).collect();
    let wanted = native.act(&obs, &[true; 6], &[true; 3], &mut own, Mode::Greedy);
    assert_eq!(
        read.act(&obs, &[true; 6], &[true; 3], &mut other, Mode::Greedy)
            .unwrap(),
        wanted
    );
    let message = world
        .ingest("Pendulum-v1", json!({ "path": "policy.onnx" }))
        .unwrap_err();
    assert!(
        message.contains(
            "was trained in `CartPole-v1`, and the environment is `Pendulum-v1`: its observation 0"
        ),
        "{message}"
    );
}

/// Zips that claim more than they hold, that hold something else, or that name places elsewhere.
fn hostile_zips_are_refused() {
    let world = World::new();
    let zip = |entries: &[(&str, &[u8])]| {
        let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let options =
            zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        for (name, bytes) in entries {
            writer.start_file(*name, options).unwrap();
            std::io::Write::write_all(&mut writer, bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    };
    let bomb = vec![0_u8; 64 << 20];
    let data: &[u8] = br#"{"policy_class":{":type:":"x",":serialized:":"gASVHgAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAZ0b3VjaCB4lIWUUpQu"}}"#;
    let passwd = std::fs::read("/etc/passwd").unwrap_or_default();
    for (name, bytes) in [
        ("bomb", zip(&[("data", &bomb), ("policy.pth", b"x")])),
        ("bomb of parameters", zip(&[("data", b"{}"), ("policy.pth", &bomb)])),
        ("path", zip(&[("../../data", b"{}"), ("../policy.pth", b"x")])),
        ("no parameters", zip(&[("data", data)])),
        (
            "pickle as parameters",
            zip(&[
                ("data", data),
                ("policy.pth", b"\x80\x04cposix\nsystem\n(X\x07\x00\x00\x00touch xtR."),
            ]),
        ),
        ("text as parameters", zip(&[("data", data), ("policy.pth", &passwd)])),
        (
            "zip of nothing as parameters",
            zip(&[
                ("data", data),
                ("policy.pth", &zip(&[("archive/data.pkl", b"\x80\x02.")])),
            ]),
        ),
        (
            "a size beyond all",
            zip(&[("data", b"{}"), ("policy.pth", &zip(&[("archive/data.pkl", HUGE)]))]),
        ),
    ] {
        world.write("model.zip", bytes);
        let message = world
            .ingest("CartPole-v1", json!({ "path": "model.zip" }))
            .expect_err(name);
        assert!(!message.contains("root:"), "{message}");
        assert!(message.contains("model.zip"), "{name}: {message}");
    }
    assert!(!world.path("x").exists() && !Path::new("x").exists());
}

/// A state dict with a tensor of 2^40 floats, whose storage is not there.
const HUGE: &[u8] = b"\x80\x02}(X\x01\x00\x00\x00actorch._utils\n_rebuild_tensor_v2\n\
    ((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu\
    \x8a\x06\x00\x00\x00\x00\x00\x01tQK\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtRu.";

const TRAIN: &str = "
import json, sys
import gymnasium, numpy as np, torch
from sb3_contrib import RecurrentPPO
from stable_baselines3 import DQN, PPO, SAC
torch.set_num_threads(1)

def write(model, env, name=''):
    obs = np.random.default_rng(5).normal(size=(20, *gymnasium.make(env).observation_space.shape)).astype('float32')
    json.dump(obs.tolist(), open(f'obs{name}.json', 'w'))
    state, actions = None, []
    for i, row in enumerate(obs):
        action, state = model.predict(row[None], state=state, episode_start=np.array([i == 0]), deterministic=True)
        actions.append(np.clip(action.reshape(-1), -2, 2).tolist())
    json.dump(actions, open(f'actions{name}.json', 'w'))
    model.save(f'model{name}')

elu = {'activation_fn': torch.nn.ELU}
";

/// Networks that are not ours: another activation function, a features extractor of one's own, gSDE, LSTMs.
fn other_networks_of_stable_baselines3(python: &str) {
    let world = World::new();
    world.write(
        "nets.py",
        "import torch\nfrom stable_baselines3.common.torch_layers import BaseFeaturesExtractor\n\n\
        class Extractor(BaseFeaturesExtractor):\n    def __init__(self, space, width):\n        super().__init__(space, width)\n        \
        self.net = torch.nn.Sequential(torch.nn.Linear(space.shape[0], width), torch.nn.GELU())\n\n    \
        def forward(self, obs):\n        return self.net(obs)\n",
    );
    let models = [
        (
            "DQN('MlpPolicy', 'CartPole-v1', seed=1, policy_kwargs=elu, buffer_size=9)",
            "CartPole-v1",
        ),
        (
            "SAC('MlpPolicy', 'Pendulum-v1', seed=1, policy_kwargs=elu, buffer_size=9)",
            "Pendulum-v1",
        ),
        ("PPO('MlpPolicy', 'Pendulum-v1', seed=1, use_sde=True)", "Pendulum-v1"),
        (
            "RecurrentPPO('MlpLstmPolicy', 'CartPole-v1', seed=1, policy_kwargs=lstm)",
            "CartPole-v1",
        ),
        (
            "PPO('MlpPolicy', 'CartPole-v1', seed=1, policy_kwargs=own)",
            "CartPole-v1",
        ),
    ];
    let written = models
        .iter()
        .enumerate()
        .map(|(i, (model, id))| format!("write({model}, '{id}', {i})\n"));
    let arguments = "import nets\nlstm = {**elu, 'lstm_hidden_size': 6, 'n_lstm_layers': 2}\n\
        own = {'features_extractor_class': nets.Extractor, 'features_extractor_kwargs': {'width': 7}}\n";
    world.python(python, &format!("{TRAIN}\n{arguments}{}", written.collect::<String>()));
    for (i, (model, id)) in models.iter().enumerate() {
        let path = format!("model{i}.zip");
        let without = world.ingest(id, json!({ "path": path })).unwrap_err();
        assert!(without.contains("write `python: ./env`"), "{without}");
        let mut with = json!({ "path": path, "python": python });
        if model.contains("own") {
            with["class"] = json!("nets:Extractor");
        }
        let policy = world.ingest(id, with).unwrap();
        assert_eq!(policy.form(), "python");
        assert_eq!(policy.remembers(), model.starts_with("Recurrent"));
        world.acts_as_expected(&policy, &i.to_string());
    }
}

/// Objects that are pickled in a zip beyond names of networks are neither called nor loaded.
fn hostile_pickles_run_nothing(python: &str) {
    let world = World::new();
    let marker = world.path("marker");
    let program = format!(
        "{TRAIN}
import base64, os, zipfile, cloudpickle, pathlib
class Bad:
    def __reduce__(self): return (os.system, ('touch {marker}',))
class Late:
    def __reduce__(self): return (getattr, (pathlib.Path('{marker}'), 'touch'))
write(PPO('MlpPolicy', 'CartPole-v1', seed=1, policy_kwargs=elu), 'CartPole-v1')
entries = {{name: zipfile.ZipFile('model.zip').read(name) for name in zipfile.ZipFile('model.zip').namelist()}}
data = json.loads(entries['data'])
for key in ('policy_class', 'policy_kwargs'):
    for i, bad in enumerate((Bad(), Late(), lambda *given, **named: os.system('touch {marker}'), os.system, [Bad()])):
        changed = {{**data, key: {{':type:': 'x', ':serialized:': base64.b64encode(cloudpickle.dumps(bad)).decode()}}}}
        with zipfile.ZipFile(f'{{key}}-{{i}}.zip', 'w') as archive:
            for name, content in entries.items():
                archive.writestr(name, json.dumps(changed) if name == 'data' else content)
torch.save({{'a': Bad()}}, 'bad.pt')
open('nets.py', 'w').write('import torch\\nclass Agent(torch.nn.Linear):\\n    def __init__(self): super().__init__(4, 2)\\n')
",
        marker = marker.display()
    );
    world.python(python, &program);
    for key in ["policy_class", "policy_kwargs"] {
        for i in 0..5 {
            let with = json!({ "path": format!("{key}-{i}.zip"), "python": python });
            // Without its arguments it is taken for a network of ours, and its pickles are not read.
            match world.ingest("CartPole-v1", with) {
                Err(message) => assert!(message.contains("could run any program"), "{message}"),
                Ok(policy) => assert_eq!((key, policy.form()), ("policy_kwargs", "native")),
            }
            assert!(!marker.exists());
        }
    }
    let with = json!({ "path": "bad.pt", "class": "nets:Agent", "python": python });
    let message = world.ingest("CartPole-v1", with).unwrap_err();
    assert!(message.contains("not a state dict of tensors alone"), "{message}");
    assert!(!marker.exists());
    // With trust it is loaded as the library does.
    let with = json!({ "path": "policy_class-0.zip", "python": python, "trust": "pickle" });
    assert!(world.ingest("CartPole-v1", with).is_err());
    assert!(marker.exists());
}

const AGENTS: &str = "
import numpy as np
import torch
from torch import nn

class Agent(nn.Module):
    '''As CleanRL's ppo.py.'''
    def __init__(self, width):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))
        self.actor = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))

    def act(self, obs):
        return torch.distributions.Categorical(logits=self.actor(obs))

    def choose(self, obs):
        return self.actor(obs).argmax(dim=1), None

class Continuous(nn.Module):
    '''As CleanRL's ppo_continuous_action.py.'''
    def __init__(self):
        super().__init__()
        self.actor_mean = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        self.actor_logstd = nn.Parameter(torch.zeros(1, 1) - 0.5)

def normal():
    '''As TorchRL's actors: locations and scales of a network.'''
    class Params(nn.Module):
        def forward(self, x):
            loc, scale = x.chunk(2, -1)
            return loc, nn.functional.softplus(scale) + 1e-4
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2), Params())
";

/// State dicts of CleanRL and TorchRL, by what decides.
fn state_dicts(python: &str) {
    let world = World::new();
    world.write("agents.py", AGENTS);
    let save = |network: &str, size: usize, action: &str| {
        world.python(
            python,
            &format!(
                "import json, torch, numpy as np, agents\ntorch.manual_seed(1)\nnetwork = {network}\n\
                obs = np.random.default_rng(5).normal(size=(20, {size})).astype('float32')\n\
                json.dump(obs.tolist(), open('obs.json', 'w'))\nx = torch.as_tensor(obs)\n\
                json.dump(({action}).reshape(20, -1).tolist(), open('actions.json', 'w'))\n\
                torch.save(network.state_dict(), 'agent.pt')"
            ),
        );
    };
    save("agents.Agent(8)", 4, "network.actor(x).argmax(dim=1)");
    for method in [None, Some("actor"), Some("act"), Some("choose")] {
        let mut with = json!({ "path": "agent.pt", "class": "agents:Agent", "python": python });
        with["kwargs"] = json!({ "width": 8 });
        if let Some(method) = method {
            with["method"] = json!(method);
        }
        world.acts_as_expected(&world.ingest("CartPole-v1", with).unwrap(), "");
    }
    let with =
        json!({ "path": "agent.pt", "class": "agents:Agent", "kwargs": { "width": 9 }, "python": python });
    let message = world.ingest("CartPole-v1", with).unwrap_err();
    assert!(message.contains("size mismatch"), "{message}");
    let with = json!({ "path": "agent.pt", "class": "others:Agent", "python": python });
    let message = world.ingest("CartPole-v1", with).unwrap_err();
    assert!(message.contains("there is no module `others`"), "{message}");
    save("agents.Continuous()", 3, "network.actor_mean(x).clamp(-2, 2)");
    let with = json!({ "path": "agent.pt", "class": "agents:Continuous", "python": python });
    world.acts_as_expected(&world.ingest("Pendulum-v1", with).unwrap(), "");
    save("agents.normal()", 3, "2 * network(x)[0].tanh()");
    let with = json!({ "path": "agent.pt", "class": "agents:normal", "units": "tanh", "python": python });
    world.acts_as_expected(&world.ingest("Pendulum-v1", with).unwrap(), "");
}

fn main() -> ExitCode {
    let mut all = vec![
        requirements::trial("zips_become_networks_of_ours", None, zips_become_networks_of_ours),
        requirements::trial(
            "exported_models_carry_their_environment",
            None,
            exported_models_carry_their_environment,
        ),
        requirements::trial("hostile_zips_are_refused", None, hostile_zips_are_refused),
    ];
    let python = std::env::var("RUNNER_TEST_TORCH").ok();
    let missing = python.is_none().then_some("RUNNER_TEST_TORCH is unset");
    type Test = (&'static str, fn(&str));
    let tests: [Test; 3] = [
        (
            "other_networks_of_stable_baselines3",
            other_networks_of_stable_baselines3,
        ),
        ("hostile_pickles_run_nothing", hostile_pickles_run_nothing),
        ("state_dicts", state_dicts),
    ];
    all.extend(tests.map(|(name, test)| {
        let python = python.clone();
        requirements::trial(name, missing, move || test(&python.expect("an interpreter is named")))
    }));
    requirements::run(all)
}
