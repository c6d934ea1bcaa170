//! A policy's answer is what is done, and answers that are none are named.

use crate::{BATCH, OBS, World, act, called, choices, chosen, components, loaded, masks, module, reals};
use serde_json::json;
use stages_env::{Actions, EnvSpec};
use stages_numerics::random::Random;
use stages_policy::Mode;
use stages_policy::forms::{Per, PythonForm, Trust, files_of};

pub(crate) fn what_a_policy_says_is_what_is_done(python: &str) {
    let world = World::new(python);
    // Choices, by several kinds of arrays.
    for said in [
        "[0, 2, 1, 0]",
        "np.array([[0], [2], [1], [0]], np.int8)",
        "{'actions': (0, 2, 1, 0)}",
    ] {
        let policy = world.policy(
            choices(),
            &format!("import numpy as np\ndef policy(obs):\n    return {said}\n"),
        );
        assert_eq!(chosen(&policy, &world.store), [0, 2, 1, 0]);
    }
    let two = "def policy(obs):\n    return [[2, 0], [0, 1], [1, 1], [0, 0]]\n";
    assert_eq!(
        chosen(&world.policy(components(), two), &world.store),
        [2, 0, 0, 1, 1, 1, 0, 0]
    );
    // An action alone has a probability of 1.
    let policy = world.policy(choices(), "def policy(obs):\n    return [2, 0, 1, 1]\n");
    let mut state = policy.start(&world.store, BATCH).unwrap();
    act(&policy, &mut state, Mode::Sample(&mut Random::new(&[1]))).unwrap();
    assert!(matches!(state.actions(), Actions::Discrete([2, 0, 1, 1])));
    let log_prob = &state.output().log_prob;
    assert_eq!(log_prob[..3], [f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0]);
    // Reals are means, and are drawn where there are deviations.
    for (said, is_drawn) in [
        ("obs / 2", false),
        ("{'mean': obs / 2}", false),
        ("{'mean': obs / 2, 'log_std': [-1.0, 0.5]}", true),
        ("{'mean': obs / 2, 'log_std': obs * 0 - 1}", true),
    ] {
        let policy = world.policy(reals(), &format!("def policy(obs):\n    return {said}\n"));
        let mut state = policy.start(&world.store, BATCH).unwrap();
        let Actions::Continuous(values) = act(&policy, &mut state, Mode::Greedy).unwrap() else {
            panic!()
        };
        assert_eq!(values, OBS.map(|x| x / 2.0));
        let random = &mut Random::new(&[1]);
        let Actions::Continuous(values) = act(&policy, &mut state, Mode::Sample(random)).unwrap() else {
            panic!()
        };
        assert_eq!(values != OBS.map(|x| x / 2.0), is_drawn, "{said}");
    }
}

/// Log-probabilities are compared with a softmax in double precision.
pub(crate) fn logits_are_masked_and_normalised(python: &str) {
    let world = World::new(python);
    let text = "
import numpy as np
WEIGHTS = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -0.5]])
def policy(obs, masks, episode_start):
    assert masks.dtype == bool and masks.sum() == 11 and not masks[1, 1]
    assert episode_start.tolist() == [True, False, False, False]
    return {'logits': obs @ WEIGHTS, 'value': obs.sum(axis=1)}
";
    let policy = world.policy(choices(), text);
    let mut state = policy.start(&world.store, BATCH).unwrap();
    act(&policy, &mut state, Mode::Greedy).unwrap();
    let mask = masks(&policy.spec().action_space);
    let weights = [[1.0, -2.0, 0.5], [0.25, 3.0, -0.5]];
    for i in 0..BATCH {
        let (a, b) = (f64::from(OBS[2 * i]), f64::from(OBS[2 * i + 1]));
        let weight = |j: usize| match mask[3 * i + j] {
            true => (a * weights[0][j] + b * weights[1][j]).exp(),
            false => 0.0,
        };
        let sum: f64 = (0..3).map(weight).sum();
        for j in 0..3 {
            let found = f64::from(state.output().log_prob[3 * i + j]);
            let expected = (weight(j) / sum).ln();
            assert!(
                found == expected || (found - expected).abs() < 1e-5,
                "{i} {j}: {found} {expected}"
            );
        }
        assert_eq!(f64::from(state.output().value[i]), a + b);
    }
}

/// Memory is given back at each step, and is zero where an episode starts.
pub(crate) fn memory_is_that_of_the_episode(python: &str) {
    let world = World::new(python);
    let text = "
def load(path, spec, step):
    assert spec['observation'] == ['a', 'b'] and spec['action']['names'] == ['left', 'middle', 'right']
    scale = float(open(path / 'scale.txt').read())
    def policy(obs, state):
        choices = state[:, 0].astype(int) % 3
        return choices, state + scale * step
    return policy
";
    let mut files = module(text);
    files.insert("weights/scale.txt".to_owned(), b"0.5".to_vec());
    let form = PythonForm {
        state_len: 2,
        kwargs: [("step".to_owned(), json!(4))].into(),
        ..loaded()
    };
    let policy = world.made(choices(), form, files).unwrap();
    assert!(policy.remembers());
    let mut state = policy.start(&world.store, BATCH).unwrap();
    let all = vec![true; 3 * BATCH];
    let mut step = |starts: [bool; BATCH]| {
        policy.act(&OBS, &all, &starts, &mut state, Mode::Greedy).unwrap();
        let Actions::Discrete(values) = state.actions() else {
            panic!()
        };
        (values.to_vec(), state.recurrent().to_vec())
    };
    assert_eq!(step([true; 4]), (vec![0; 4], vec![2.0; 8]));
    assert_eq!(step([false; 4]), (vec![2; 4], vec![4.0; 8]));
    let (values, memory) = step([false, true, false, false]);
    assert_eq!(
        (values, memory[..4].to_vec()),
        (vec![1, 0, 1, 1], vec![6.0, 6.0, 2.0, 2.0])
    );
}

/// Decisions of one snapshot, and what is said of them.
const WRONG_SNAPSHOTS: &str = "\
choices: return 'centre' => for environment 0 is `centre`, which is not a choice | the choices are left, middle, right
choices: return 'middle' => the policy chose `middle` in environment 1, which is masked there
choices: return None => `actions` of the policy has the type object
components: return {'size': 1} => lacks the component `side`
components: return {'size': 1, 'side': 1, 'price': 2} => has `price`, which is not a component
reals: return {'x': 1, 'y': float('inf')} => `actions[0][1]` of the policy is inf
choices: return now['c'] => raised for environment 0: KeyError: 'c'";

pub(crate) fn one_snapshot_by_names(python: &str) {
    let world = World::new(python);
    let single = || PythonForm {
        per: Per::Snapshot,
        ..called()
    };
    let made = |env: EnvSpec, text: &str| world.made(env, single(), module(text)).unwrap();
    // Raw units: the normalisation of the environment is undone.
    let mut env = choices();
    env.normalisation = Some(stages_env::Normalisation {
        offset: vec![10.0, 0.0],
        scale: vec![2.0, 1.0],
        clip: 1e9,
    });
    let text = "
def policy(now, allowed):
    assert allowed == (['left', 'right'] if now['a'] == 14 else ['left', 'middle', 'right']), (now, allowed)
    return 'middle' if now['a'] > 15 else 2
";
    assert_eq!(chosen(&made(env, text), &world.store), [2, 2, 1, 1]);
    let text = "
def policy(now, allowed):
    return {'side': max(allowed['side']), 'size': allowed['size'][-1]}
";
    assert_eq!(
        chosen(&made(components(), text), &world.store),
        [2, 1, 2, 1, 2, 1, 2, 1]
    );
    let policy = made(
        reals(),
        "def policy(now):\n    return {'y': now['a'], 'x': -now['b']}\n",
    );
    let mut state = policy.start(&world.store, BATCH).unwrap();
    let Actions::Continuous(values) = act(&policy, &mut state, Mode::Greedy).unwrap() else {
        panic!()
    };
    assert_eq!(values, [-1.0, 0.0, -3.0, 2.0, -5.0, 4.0, -7.0, 6.0]);
    for (env, body, message) in lines(WRONG_SNAPSHOTS) {
        let found = world.refused(env, single(), module(&format!("def policy(now):\n    {body}\n")));
        assert!(found.contains(message), "{body}: {found}");
    }
}

/// Answers that are none, and what is said of them.
const WRONG: &str = "\
choices: return [0, 1, 2, 3] => the policy chose 3 of `the action` in environment 3, which has 3 choices
choices: return [0, 1, 2, 0] => chose `middle` in environment 1, which is masked there | take `masks`
choices: return [-1, 1, 2, 0] => the policy chose -1
choices: return [0.0, 1.0, 2.0, 0.0] => `actions` of the policy has the type float64 | return choices as integers
choices: return [0, 0] => `actions` of the policy has the shape [2] instead of [4, 1]
choices: return [[0], [1, 2], [0], [0]] => `actions` of the policy is not an array
choices: return 'left' => `actions` of the policy has the type
choices: return None => the policy returned no actions
choices: return 1, 2, 3 => the policy returned 3 values
choices: return {'logit': obs} => the policy returned `logit` | known are actions
choices: return {'logits': obs} => `logits` of the policy has the shape [4, 2] instead of [4, 3]
choices: return {'logits': np.full((4, 3), np.nan)} => `logits[0][0]` of the policy is nan
choices: return {'logits': np.full((4, 3), -np.inf)} => leave no choice that is allowed
choices: return {'mean': obs} => the policy returned `mean`, and its actions are discrete
choices: return {'actions': [0] * 4, 'logits': np.zeros((4, 3))} => returned `actions` and `logits`
choices: return {'actions': [0] * 4, 'value': np.full(4, np.inf)} => `value[0]` of the policy is inf
choices: return [0] * 4, np.zeros((4, 1)) => has `state_len: 0`, and returned a state
components: return [0] * 4 => `actions` of the policy has the shape [4] instead of [4, 2]
components: return [[0, 2]] * 4 => the policy chose 2 of `side` in environment 0
reals: return {'logits': obs} => the policy returned `logits`, and its actions are continuous
reals: return {'actions': obs, 'log_std': [0, 0]} => `log_std` without `mean`
reals: return {'mean': obs, 'log_std': [0, np.nan]} => `log_std[1]` of the policy is nan
reals: return obs + np.float64(1e39) => of the policy is inf
choices: return obs.missing => AttributeError
choices: return open('/none/such') => agent.py\", line 3, in policy";

/// Lines `SPACE: BODY => MESSAGE`.
fn lines(text: &'static str) -> impl Iterator<Item = (EnvSpec, &'static str, &'static str)> {
    text.lines().map(|line| {
        let (space, rest) = line.split_once(": ").unwrap();
        let (body, message) = rest.split_once(" => ").unwrap();
        let env = match space {
            "choices" => choices(),
            "components" => components(),
            _ => reals(),
        };
        (env, body, message)
    })
}

pub(crate) fn answers_that_are_none_are_named(python: &str) {
    let world = World::new(python);
    for (env, body, message) in lines(WRONG) {
        let found = world.refused(
            env,
            called(),
            module(&format!("import numpy as np\ndef policy(obs):\n    {body}\n")),
        );
        assert!(found.contains(message), "{body}: {found}");
    }
    let form = PythonForm {
        state_len: 3,
        ..called()
    };
    let found = world.refused(choices(), form, module("def policy(obs):\n    return [0] * 4\n"));
    assert!(found.contains("has `state_len: 3`, and returned no state"), "{found}");
}

/// Random numbers of a policy's own depend on the policy alone; another text draws others.
pub(crate) fn random_numbers_repeat(python: &str) {
    let world = World::new(python);
    let draws = |more: &str| {
        let text = format!(
            "
import random
import numpy as np
def policy(obs):
    {more}
    return obs * 0 + random.random() + np.random.random(2)
"
        );
        let policy = world.policy(reals(), &text);
        let mut state = policy.start(&world.store, BATCH).unwrap();
        let mut all = Vec::new();
        for _ in 0..3 {
            let Actions::Continuous(values) = act(&policy, &mut state, Mode::Greedy).unwrap() else {
                panic!()
            };
            all.extend_from_slice(values);
        }
        all
    };
    let first = draws("pass");
    assert_ne!(first[..8], first[8..16]);
    assert_eq!(draws("pass"), first);
    assert_ne!(draws("obs = obs * 2"), first);
}

/// State dicts are loaded, whole models are not, unless they are trusted; a module is given tensors.
pub(crate) fn torch_policies(python: &str) {
    let world = World::new(python);
    let saved = world.dir.path().join("saved");
    std::fs::create_dir(&saved).unwrap();
    let script = "
import sys, torch
torch.manual_seed(1)
net = torch.nn.Linear(2, 3)
torch.save(net.state_dict(), sys.argv[1] + '/state.bin')
torch.save(net, sys.argv[1] + '/model.bin')
obs = torch.arange(8.0).reshape(4, 2)
print(net(obs).log_softmax(1).flatten().tolist())
";
    let run = std::process::Command::new(python)
        .args(["-c", script])
        .arg(&saved)
        .output()
        .unwrap();
    let expected: Vec<f32> = serde_json::from_slice(&run.stdout).unwrap();
    let files = |text: &str| {
        let mut files = module(text);
        files.extend(files_of(&saved, "weights").unwrap());
        files
    };
    let text = "
import torch
class Net(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layer = torch.nn.Linear(2, n)
    def forward(self, obs, masks):
        assert masks.dtype == torch.bool and torch.get_num_threads() == 1 and not self.training
        return {'logits': self.layer(obs)}
def load(path, spec):
    net = Net(len(spec['action']['names']))
    net.layer.load_state_dict(torch.load(path / 'state.bin', weights_only=ONLY))
    return net
";
    let policy = world
        .made(choices(), loaded(), files(&text.replace("ONLY", "True")))
        .unwrap();
    let mut state = policy.start(&world.store, BATCH).unwrap();
    policy
        .act(&OBS, &[true; 12], &[false; 4], &mut state, Mode::Greedy)
        .unwrap();
    for (found, expected) in state.output().log_prob.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
    let unsafe_text = text.replace("ONLY", "False");
    let found = world.refused(choices(), loaded(), files(&unsafe_text));
    assert!(found.contains("is a pickle, which names"), "{found}");
    let whole = "
import torch
def load(path, spec):
    net = torch.load(path / 'model.bin', weights_only=False)
    return lambda obs: {'logits': net(torch.from_numpy(obs))}
";
    let found = world.refused(choices(), loaded(), files(whole));
    assert!(found.contains("is a pickle, which names"), "{found}");
    let trusting = PythonForm {
        trust: Some(Trust::Pickle),
        ..loaded()
    };
    let policy = world.made(choices(), trusting, files(whole)).unwrap();
    let mut state = policy.start(&world.store, BATCH).unwrap();
    act(&policy, &mut state, Mode::Greedy).unwrap();
    // Random numbers of torch, too.
    let text = "import torch\ndef policy(obs):\n    return torch.rand(4, 2)\n";
    let draw = || {
        let policy = world.policy(reals(), text);
        let mut state = policy.start(&world.store, BATCH).unwrap();
        let Actions::Continuous(values) = act(&policy, &mut state, Mode::Greedy).unwrap() else {
            panic!()
        };
        values.to_vec()
    };
    assert_eq!(draw(), draw());
}
