//! Policies in Python: what they say, what is refused, and what never runs.
//!
//! They need an interpreter with numpy, `RUNNER_TEST_PYTHON`; one needs torch, `RUNNER_TEST_TORCH`.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../../../tests/requirements.rs"]
mod requirements;

mod hostile;
mod said;

use cache::Store;
use serde_json::json;
use stages_core::StageError;
use stages_env::{ActionEncoding, ActionSpace, Actions, Bounds, EnvSpec};
use stages_policy::forms::{AnyPolicy, Form, OtherPolicy, PythonForm};
use stages_policy::{Mode, PolicyState};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
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

/// The name of a test, and the test, which is given the interpreter.
type PythonTest = (&'static str, fn(&str));

fn main() -> ExitCode {
    let with_numpy: [PythonTest; 11] = [
        (
            "what_a_policy_says_is_what_is_done",
            said::what_a_policy_says_is_what_is_done,
        ),
        (
            "logits_are_masked_and_normalised",
            said::logits_are_masked_and_normalised,
        ),
        ("memory_is_that_of_the_episode", said::memory_is_that_of_the_episode),
        ("one_snapshot_by_names", said::one_snapshot_by_names),
        ("answers_that_are_none_are_named", said::answers_that_are_none_are_named),
        ("random_numbers_repeat", said::random_numbers_repeat),
        ("what_no_policy_has_is_refused", hostile::what_no_policy_has_is_refused),
        ("pickles_run_nothing", hostile::pickles_run_nothing),
        ("processes_that_misbehave", hostile::processes_that_misbehave),
        ("reading_runs_nothing", hostile::reading_runs_nothing),
        ("other_versions_are_refused", hostile::other_versions_are_refused),
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
    all.extend(trials("RUNNER_TEST_TORCH", &[("torch_policies", said::torch_policies)]));
    all.push(requirements::trial(
        "saved_files_are_files",
        None,
        hostile::saved_files_are_files,
    ));
    requirements::run(all)
}
