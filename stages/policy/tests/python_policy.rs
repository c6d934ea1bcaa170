//! Policies in Python: what they say, what is refused, and what never runs.
//!
//! They need an interpreter with numpy, `RUNNER_TEST_PYTHON`, and some one with torch, `RUNNER_TEST_TORCH`.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../../tests/requirements.rs"]
mod requirements;

use cache::{Artifact, ArtifactBuilder, Store};
use serde_json::json;
use stages_core::StageError;
use stages_env::{ActionEncoding, ActionSpace, Actions, Bounds, EnvSpec};
use stages_numerics::random::Random;
use stages_policy::forms::{AnyPolicy, Form, OtherPolicy, Per, PythonForm, Trust, files_of};
use stages_policy::{Mode, PolicyState};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A store, and a directory that hostile policies try to write to.
struct World {
    dir: TempDir,
    store: Store,
    python: String,
}

fn spec(action_space: ActionSpace) -> EnvSpec {
    EnvSpec {
        name: "test".to_owned(),
        observation: vec!["a".to_owned(), "b".to_owned()],
        action_space,
        normalisation: None,
        encoding: ActionEncoding::default(),
    }
}

fn choices() -> EnvSpec {
    spec(ActionSpace::Discrete {
        names: ["left", "middle", "right"].map(str::to_owned).into(),
        masked: true,
    })
}

fn components() -> EnvSpec {
    spec(ActionSpace::MultiDiscrete {
        names: vec!["size".to_owned(), "side".to_owned()],
        choices: vec![3, 2],
        masked: true,
    })
}

fn reals() -> EnvSpec {
    spec(ActionSpace::Continuous {
        names: vec!["x".to_owned(), "y".to_owned()],
        bounds: Bounds {
            low: vec![-2.0; 2],
            high: vec![2.0; 2],
        },
    })
}

fn loaded() -> PythonForm {
    PythonForm {
        load: Some("agent:load".to_owned()),
        ..PythonForm::default()
    }
}

fn called() -> PythonForm {
    PythonForm {
        call: Some("agent:policy".to_owned()),
        ..PythonForm::default()
    }
}

fn module(text: &str) -> BTreeMap<String, Vec<u8>> {
    [("project/agent.py".to_owned(), text.as_bytes().to_vec())].into()
}

/// The message and the hint.
fn told(err: &StageError) -> String {
    format!("{} | {}", err.message, err.hint.as_deref().unwrap_or_default())
}

impl World {
    fn new(python: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            store: Store::open(&dir.path().join("store")).unwrap(),
            python: python.to_owned(),
            dir,
        }
    }

    /// The policy as it is read back from its artifact.
    fn made(
        &self,
        env: EnvSpec,
        form: PythonForm,
        files: BTreeMap<String, Vec<u8>>,
    ) -> Result<AnyPolicy, StageError> {
        let form = form.made(&self.store, &env, &files, Path::new(&self.python))?;
        let policy = AnyPolicy::Other(OtherPolicy::new("test", None, env, Form::Python(form), files));
        let artifact = self.store.artifact(policy.store(&self.store, json!({}))?)?;
        AnyPolicy::read(&self.store, &artifact)
    }

    /// The policy of a module's function `policy`.
    fn policy(&self, env: EnvSpec, text: &str) -> AnyPolicy {
        self.made(env, called(), module(text))
            .unwrap_or_else(|err| panic!("{}", told(&err)))
    }

    /// The error of making, starting or asking a policy.
    fn refused(&self, env: EnvSpec, form: PythonForm, files: BTreeMap<String, Vec<u8>>) -> String {
        let asked = self.made(env, form, files).and_then(|policy| {
            let mut state = policy.start(&self.store, BATCH)?;
            act(&policy, &mut state, Mode::Greedy).map(drop)
        });
        told(&asked.err().unwrap_or_else(|| panic!("nothing was refused")))
    }

    /// The file that hostile policies write.
    fn mark(&self) -> std::path::PathBuf {
        self.dir.path().join("owned")
    }
}

const BATCH: usize = 4;
const OBS: [f32; 2 * BATCH] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];

/// The mask of the environments: the second choice of environment 1 is not allowed.
fn masks(space: &ActionSpace) -> Vec<bool> {
    let m = space.mask_len();
    (0..BATCH * m).map(|i| i != m + 1).collect()
}

fn act<'s>(policy: &AnyPolicy, state: &'s mut PolicyState, mode: Mode) -> Result<Actions<'s>, StageError> {
    policy.act(
        &OBS,
        &masks(&policy.spec().action_space),
        &[true, false, false, false],
        state,
        mode,
    )
}

fn chosen(policy: &AnyPolicy, store: &Store) -> Vec<u32> {
    let mut state = policy.start(store, BATCH).unwrap();
    match act(policy, &mut state, Mode::Greedy).unwrap() {
        Actions::Discrete(values) | Actions::MultiDiscrete(values) => values.to_vec(),
        Actions::Continuous(_) => panic!("reals"),
    }
}

fn what_a_policy_says_is_what_is_done(python: &str) {
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
fn logits_are_masked_and_normalised(python: &str) {
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
fn memory_is_that_of_the_episode(python: &str) {
    let world = World::new(python);
    let text = "
def load(path, spec, step):
    assert spec['observation'] == ['a', 'b'] and spec['action']['names'] == ['left', 'middle', 'right']
    scale = float(open(path + '/scale.txt').read())
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

fn one_snapshot_by_names(python: &str) {
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
    for (env, body, message) in [
        (
            choices(),
            "return 'centre'",
            "what the policy returned for environment 0 is `centre`, which is not a choice | the choices are left, middle, right",
        ),
        (
            choices(),
            "return 'middle'",
            "the policy chose `middle` in environment 1, which is masked there",
        ),
        (choices(), "return None", "`actions` of the policy has the type object"),
        (components(), "return {'size': 1}", "lacks the component `side`"),
        (
            components(),
            "return {'size': 1, 'side': 1, 'price': 2}",
            "has `price`, which is not a component",
        ),
        (
            reals(),
            "return {'x': 1, 'y': float('inf')}",
            "`actions[0][1]` of the policy is inf",
        ),
        (choices(), "return now['c']", "raised for environment 0: KeyError: 'c'"),
    ] {
        let found = world.refused(env, single(), module(&format!("def policy(now):\n    {body}\n")));
        assert!(found.contains(message), "{body}: {found}");
    }
}

fn answers_that_are_none_are_named(python: &str) {
    let world = World::new(python);
    for (env, body, message) in [
        (
            choices(),
            "return [0, 1, 2, 3]",
            "the policy chose 3 of `the action` in environment 3, which has 3 choices",
        ),
        (
            choices(),
            "return [0, 1, 2, 0]",
            "the policy chose `middle` in environment 1, which is masked there | take `masks`",
        ),
        (choices(), "return [-1, 1, 2, 0]", "the policy chose -1"),
        (
            choices(),
            "return [0.0, 1.0, 2.0, 0.0]",
            "`actions` of the policy has the type float64 | return choices as integers",
        ),
        (
            choices(),
            "return [0, 0]",
            "`actions` of the policy has the shape [2] instead of [4, 1]",
        ),
        (
            choices(),
            "return [[0], [1, 2], [0], [0]]",
            "`actions` of the policy is not an array",
        ),
        (choices(), "return 'left'", "`actions` of the policy has the type"),
        (choices(), "return None", "the policy returned no actions"),
        (choices(), "return 1, 2, 3", "the policy returned 3 values"),
        (
            choices(),
            "return {'logit': obs}",
            "the policy returned `logit` | known are actions",
        ),
        (
            choices(),
            "return {'logits': obs}",
            "`logits` of the policy has the shape [4, 2] instead of [4, 3]",
        ),
        (
            choices(),
            "return {'logits': np.full((4, 3), np.nan)}",
            "`logits[0][0]` of the policy is nan",
        ),
        (
            choices(),
            "return {'logits': np.full((4, 3), -np.inf)}",
            "leave no choice that is allowed",
        ),
        (
            choices(),
            "return {'mean': obs}",
            "the policy returned `mean`, and its actions are discrete",
        ),
        (
            choices(),
            "return {'actions': [0] * 4, 'logits': np.zeros((4, 3))}",
            "returned `actions` and `logits`",
        ),
        (
            choices(),
            "return {'actions': [0] * 4, 'value': np.full(4, np.inf)}",
            "`value[0]` of the policy is inf",
        ),
        (
            choices(),
            "return [0] * 4, np.zeros((4, 1))",
            "has `state_len: 0`, and returned a state",
        ),
        (
            components(),
            "return [0] * 4",
            "`actions` of the policy has the shape [4] instead of [4, 2]",
        ),
        (
            components(),
            "return [[0, 2]] * 4",
            "the policy chose 2 of `side` in environment 0",
        ),
        (
            reals(),
            "return {'logits': obs}",
            "the policy returned `logits`, and its actions are continuous",
        ),
        (
            reals(),
            "return {'actions': obs, 'log_std': [0, 0]}",
            "`log_std` without `mean`",
        ),
        (
            reals(),
            "return {'mean': obs, 'log_std': [0, np.nan]}",
            "`log_std[1]` of the policy is nan",
        ),
        (reals(), "return obs + np.float64(1e39)", "of the policy is inf"),
        (choices(), "return obs.missing", "AttributeError"),
        (choices(), "return open('/none/such')", "agent.py\", line 3, in policy"),
    ] {
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
fn random_numbers_repeat(python: &str) {
    let world = World::new(python);
    let draws = |more: &str| {
        let text = format!(
            "import random\nimport numpy as np\ndef policy(obs):\n    {more}\n    return obs * 0 + random.random() + np.random.random(2)\n"
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

/// What hostile policies do, and what is said.
fn hostile_policies_do_nothing(python: &str) {
    let world = World::new(python);
    let mark = world.mark();
    let touch = format!("import os; os.system('touch {}')", mark.display());
    // Names outside the project.
    for name in [
        "os:system",
        "builtins:exec",
        "subprocess:run",
        "agent",
        "agent:",
        ":f",
        "../agent:f",
        "agent:a b",
    ] {
        let form = PythonForm {
            load: Some(name.to_owned()),
            ..PythonForm::default()
        };
        let found = world.refused(choices(), form, module("def policy(obs): pass\n"));
        assert!(
            found.contains("no module") || found.contains("is not MODULE:FUNCTION"),
            "{name}: {found}"
        );
    }
    // A module of the project that has the name of one of Python's, and functions of other modules.
    for (name, place) in [
        ("os:system", "project/os.py"),
        ("sys:exit", "project/sys.py"),
        ("agent:os.system", "project/agent.py"),
    ] {
        let form = PythonForm {
            load: Some(name.to_owned()),
            ..PythonForm::default()
        };
        let files = [(place.to_owned(), b"import os\n".to_vec())].into();
        let found = world.refused(choices(), form, files);
        assert!(
            found.contains("is not a module of the policy's project")
                || found.contains("goes through the module"),
            "{name}: {found}"
        );
    }
    // Places outside its directory.
    for place in [
        "../evil.py",
        "/etc/evil",
        "project/../../evil",
        "elsewhere/x",
        "weights/..",
        "project/-x",
        "weights/a\u{0}b",
        "policy.json",
    ] {
        let mut files = module("def policy(obs): pass\n");
        files.insert(place.to_owned(), b"x".to_vec());
        let found = world.refused(choices(), called(), files);
        assert!(
            found.contains("the policy's file") || found.contains("the policy has a file"),
            "{place}: {found}"
        );
    }
    // Numbers that no policy has.
    for form in [
        PythonForm {
            state_len: usize::MAX,
            ..called()
        },
        PythonForm {
            state_len: 1 << 40,
            ..called()
        },
        PythonForm {
            time_limit: f64::NAN,
            ..called()
        },
        PythonForm {
            time_limit: -1.0,
            ..called()
        },
        PythonForm {
            threads: 1 << 40,
            ..called()
        },
        PythonForm {
            load: Some("agent:load".to_owned()),
            ..called()
        },
    ] {
        let found = world.refused(choices(), form, module(&touch));
        assert!(
            found.contains("the policy has `") || found.contains("MODULE:FUNCTION"),
            "{found}"
        );
    }
    assert!(!mark.exists());
    // Pickles, under any name and in any protocol.
    let evil = format!(
        "class Evil:\n    def __reduce__(self):\n        import os\n        return os.system, ('touch {}',)\n",
        mark.display()
    );
    for (protocol, wrap, open) in [
        (
            0,
            "open(place, 'wb').write(data)",
            "pickle.loads(open(place, 'rb').read())",
        ),
        (2, "open(place, 'wb').write(data)", "pickle.load(open(place, 'rb'))"),
        (
            5,
            "open(place, 'wb').write(b'RIFF' + data)",
            "pickle.loads(open(place, 'rb').read()[4:])",
        ),
        (
            4,
            "gzip.open(place, 'wb').write(data)",
            "pickle.load(gzip.open(place, 'rb'))",
        ),
        (
            4,
            "np.save(open(place, 'wb'), np.array([Evil()], object), allow_pickle=True)",
            "np.load(place, allow_pickle=True)",
        ),
        (4, "open(place, 'wb').write(data)", "pickle._load(open(place, 'rb'))"),
    ] {
        let text = format!(
            "import gzip, pickle\nimport numpy as np\n{evil}\ndef load(path, spec):\n    place = path + '/numbers.safetensors'\n    data = pickle.dumps(Evil(), {protocol})\n    {wrap}\n    {open}\n    return lambda obs: [0] * len(obs)\n"
        );
        let found = world.refused(choices(), loaded(), module(&text));
        assert!(found.contains("is a pickle, which names `"), "{open}: {found}");
        assert!(found.contains("trust: pickle"), "{found}");
        assert!(!mark.exists(), "{open}");
    }
    // Processes that end, hang, print, or divide.
    let quick = || PythonForm {
        time_limit: 0.5,
        ..called()
    };
    for (body, message) in [
        ("while True: pass", "took longer than its time limit of 0.5 s"),
        (
            "import signal, time; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]); time.sleep(60)",
            "took longer than its time limit",
        ),
        ("import os; os._exit(7)", "ended its process, with status 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import sys; sys.exit('bye')", "SystemExit: bye"),
        (
            "import os, socket; [os.write(fd, b'garbage\\n') for fd in range(3, 40) if is_socket(fd)]; os._exit(1)",
            "with status 1",
        ),
    ] {
        let text = format!(
            "import os, stat\ndef is_socket(fd):\n    try:\n        return stat.S_ISSOCK(os.fstat(fd).st_mode)\n    except OSError:\n        return False\ndef policy(obs):\n    {body}\n"
        );
        let since = Instant::now();
        let found = world.refused(choices(), quick(), module(&text));
        assert!(found.contains(message), "{body}: {found}");
        assert!(since.elapsed() < Duration::from_secs(30), "{body}");
    }
    for body in [
        "print('k' * 100_000)",
        "import os; os.write(1, b'kkk\\n')",
        "import os; os.fork()",
    ] {
        let text = format!("def policy(obs):\n    {body}\n    return [0, 2, 1, 0]\n");
        assert_eq!(chosen(&world.policy(choices(), &text), &world.store), [0, 2, 1, 0]);
    }
}

/// An artifact of a stranger's is read, described and stored without being run.
fn reading_runs_nothing(python: &str) {
    let world = World::new(python);
    let mark = world.mark();
    let text = format!(
        "open({:?}, 'w').close()\ndef policy(obs):\n    return [0] * len(obs)\n",
        mark.display().to_string()
    );
    let policy = world.policy(choices(), &text);
    std::fs::remove_file(&mark).unwrap();
    let digest = policy.store(&world.store, json!({})).unwrap();
    let artifact = world.store.artifact(digest).unwrap();
    let again = AnyPolicy::read(&world.store, &artifact).unwrap();
    assert_eq!(
        (again.form(), again.kind(), again.remembers()),
        ("python", "test", false)
    );
    assert_eq!(again.store(&world.store, json!({})).unwrap(), digest);
    assert!(again.into_native("`init`").is_err());
    assert!(!mark.exists());
    chosen(&policy, &world.store);
    assert!(mark.exists());
}

/// The artifact with `from` in its description replaced by `to`.
fn changed(world: &World, artifact: &Artifact, from: &str, to: &str) -> Artifact {
    let mut builder = ArtifactBuilder::new(&world.store, "policy", artifact.meta.clone());
    for entry in &artifact.entries {
        let bytes = world.store.blob(entry.blob).unwrap().to_vec();
        let text = String::from_utf8(bytes).unwrap();
        if entry.path == "policy.json" {
            assert!(text.contains(from), "{text}");
        }
        let text = if entry.path == "policy.json" {
            text.replace(from, to)
        } else {
            text
        };
        builder.bytes(&entry.path, text.as_bytes()).unwrap();
    }
    world.store.artifact(builder.finish().unwrap()).unwrap()
}

fn other_versions_are_refused(python: &str) {
    let world = World::new(python);
    let policy = world.policy(choices(), "def policy(obs):\n    return [0] * len(obs)\n");
    let artifact = world
        .store
        .artifact(policy.store(&world.store, json!({})).unwrap())
        .unwrap();
    let AnyPolicy::Other(other) = &policy else { panic!() };
    let Form::Python(form) = other.form() else { panic!() };
    // An interpreter with these versions was here, and has others now.
    let mut then = form.versions.clone();
    let numpy = then.packages.insert("numpy".to_owned(), "0.0.1".to_owned()).unwrap();
    stages_env::python::remember(&world.store, &then, Path::new(python)).unwrap();
    let old = changed(
        &world,
        &artifact,
        &format!("\"numpy\":\"{numpy}\""),
        "\"numpy\":\"0.0.1\"",
    );
    let start = |artifact: &Artifact| {
        let started =
            AnyPolicy::read(&world.store, artifact).and_then(|policy| policy.start(&world.store, 1));
        told(&started.err().unwrap())
    };
    let found = start(&old);
    assert!(found.contains(&format!("numpy 0.0.1 then, {numpy} now")), "{found}");
    let unknown = changed(&world, &artifact, "\"python\":\"cpython", "\"python\":\"cpython 1.5");
    let found = start(&unknown);
    assert!(
        found.contains("no interpreter on this machine is known to have the packages"),
        "{found}"
    );
    // A description with what no version writes.
    for (from, to) in [
        ("\"call\"", "\"execute\""),
        ("\"time_limit\":60.0", "\"time_limit\":60.0,\"per\":\"year\""),
        ("\"time_limit\":60.0", "\"time_limit\":60.0,\"state_len\":-1"),
        ("\"time_limit\":60.0", "\"time_limit\":60.0,\"trust\":\"everyone\""),
    ] {
        let damaged = changed(&world, &artifact, from, to);
        assert!(
            start(&damaged).contains("cannot read the policy"),
            "{to}: {}",
            start(&damaged)
        );
    }
}

fn saved_files_are_files() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    };
    write("net.npz");
    write("tables/one.json");
    let found = files_of(dir.path(), "weights").unwrap();
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        ["weights/net.npz", "weights/tables/one.json"]
    );
    write("-rf");
    assert!(files_of(dir.path(), "weights").is_err());
    std::fs::remove_file(dir.path().join("-rf")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("tables/two.json")).unwrap();
    let err = files_of(dir.path(), "weights").unwrap_err();
    assert!(err.message.contains("is not an ordinary file"), "{}", err.message);
}

/// State dicts are loaded, whole models are not, unless they are trusted; a module is given tensors.
fn torch_policies(python: &str) {
    let world = World::new(python);
    let saved = world.dir.path().join("saved");
    std::fs::create_dir(&saved).unwrap();
    let script = "import sys, torch\ntorch.manual_seed(1)\nnet = torch.nn.Linear(2, 3)\ntorch.save(net.state_dict(), sys.argv[1] + '/state.bin')\ntorch.save(net, sys.argv[1] + '/model.bin')\n\
        obs = torch.arange(8.0).reshape(4, 2)\nprint(net(obs).log_softmax(1).flatten().tolist())\n";
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
    net.layer.load_state_dict(torch.load(path + '/state.bin', weights_only=ONLY))
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
    let whole = "import torch\ndef load(path, spec):\n    net = torch.load(path + '/model.bin', weights_only=False)\n    return lambda obs: {'logits': net(torch.from_numpy(obs))}\n";
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

/// The name of a test, and the test, which is given the interpreter.
type PythonTest = (&'static str, fn(&str));

fn main() -> ExitCode {
    let with_numpy: [PythonTest; 9] = [
        ("what_a_policy_says_is_what_is_done", what_a_policy_says_is_what_is_done),
        ("logits_are_masked_and_normalised", logits_are_masked_and_normalised),
        ("memory_is_that_of_the_episode", memory_is_that_of_the_episode),
        ("one_snapshot_by_names", one_snapshot_by_names),
        ("answers_that_are_none_are_named", answers_that_are_none_are_named),
        ("random_numbers_repeat", random_numbers_repeat),
        ("hostile_policies_do_nothing", hostile_policies_do_nothing),
        ("reading_runs_nothing", reading_runs_nothing),
        ("other_versions_are_refused", other_versions_are_refused),
    ];
    let trials = |variable: &str, tests: &[PythonTest]| {
        let python = std::env::var(variable).ok();
        let missing = python.is_none().then(|| format!("{variable} is unset"));
        let trial = |&(name, test): &PythonTest| {
            let python = python.clone();
            requirements::trial(name, missing.as_deref(), move || {
                test(&python.expect("an interpreter is named"));
            })
        };
        tests.iter().map(trial).collect::<Vec<_>>()
    };
    let mut all = trials("RUNNER_TEST_PYTHON", &with_numpy);
    all.extend(trials("RUNNER_TEST_TORCH", &[("torch_policies", torch_policies)]));
    all.push(requirements::trial(
        "saved_files_are_files",
        None,
        saved_files_are_files,
    ));
    requirements::run(all)
}
