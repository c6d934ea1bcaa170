//! The settings of a policy in Python: what is called, and with what.

use super::WEIGHTS;
use super::player::Player;
use crate::forms::Parts;
use crate::policy::Forward;
use cache::Store;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::StageError;
use stages_env::python::{PROJECT, Versions, is_call, recall, remember};
use stages_env::{ActionSpace, EnvSpec};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The largest number of floats that a policy may remember of an environment.
const MOST_STATE: usize = 1 << 20;

/// The settings of a program in Python as a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PythonForm {
    /// `MODULE:FUNCTION` of the project, which is given the directory of saved files and the environment's
    /// specification, and returns the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<String>,
    /// In place of `load`: `MODULE:FUNCTION`, which is the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// More arguments of that function, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kwargs: BTreeMap<String, Value>,
    /// The observations that one call decides for.
    #[serde(default, skip_serializing_if = "Per::is_batch")]
    pub per: Per,
    /// S, the number of floats of an environment's recurrent state; 0 without memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub state_len: usize,
    /// Seconds that a batch of decisions may take.
    pub time_limit: f64,
    /// The threads that its libraries may use.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub threads: usize,
    /// The kinds of files that it may load though they can run programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// The versions that it was made with.
    pub versions: Versions,
}

/// The observations that one call of a policy decides for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// All environments of a batch.
    #[default]
    Batch,
    /// One environment, which is shown as a dictionary of its observations by name, in raw units.
    Snapshot,
}

impl Per {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    fn is_batch(&self) -> bool {
        *self == Self::Batch
    }
}

/// Files that can run programs when they are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Pickles.
    Pickle,
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_one(n: &usize) -> bool {
    *n == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Default for PythonForm {
    fn default() -> Self {
        Self {
            load: None,
            call: None,
            kwargs: BTreeMap::new(),
            per: Per::default(),
            state_len: 0,
            time_limit: 60.0,
            threads: 1,
            trust: None,
            versions: Versions::default(),
        }
    }
}

impl PythonForm {
    /// S, the number of floats of an environment's recurrent state; 0 without memory.
    pub fn state_len(&self) -> usize {
        self.state_len
    }

    /// The function that is called first.
    pub fn entrance(&self) -> &str {
        self.load.as_deref().or(self.call.as_deref()).unwrap_or_default()
    }

    /// The policy with the versions of `interpreter`, which imports and loads it once; the store notes where
    /// the interpreter is. `files` are those of the artifact: `project/…` and `weights/…`.
    ///
    /// # Errors
    /// Fails when it cannot be loaded.
    pub fn made(
        mut self,
        store: &Store,
        spec: &EnvSpec,
        files: &BTreeMap<String, Vec<u8>>,
        interpreter: &Path,
    ) -> Result<Self, StageError> {
        let parts = Parts {
            spec,
            files,
            store,
            batch: 1,
        };
        self.check(spec, files)?;
        self.versions = Player::start(&self, parts, interpreter, None)?.versions().clone();
        remember(store, &self.versions, interpreter)?;
        Ok(self)
    }

    /// Starts the policy for a number of environments.
    ///
    /// # Errors
    /// Fails when this machine has no interpreter with the policy's versions, or it cannot be loaded.
    pub fn start(&self, parts: Parts<'_>) -> Result<Box<dyn Forward>, StageError> {
        self.check(parts.spec, parts.files)?;
        let interpreter = recall(parts.store, &self.versions, self.entrance(), "the policy")?;
        Ok(Box::new(Player::start(
            self,
            parts,
            &interpreter,
            Some(&self.versions),
        )?))
    }

    /// Refuses what no stage of this program writes.
    fn check(&self, spec: &EnvSpec, files: &BTreeMap<String, Vec<u8>>) -> Result<(), StageError> {
        let name = self.entrance();
        let refuse = |what: String, hint: &str| Err(StageError::new(what).hint(hint));
        if self.load.is_some() == self.call.is_some() || !is_call(name) {
            let hint = "write `load: my_agent:load`, a function in `my_agent.py`";
            return refuse(format!("`{name}` is not MODULE:FUNCTION of a policy"), hint);
        }
        let module = name
            .split_once(':')
            .map_or(name, |(module, _)| module)
            .replace('.', "/");
        let places = ["", "/__init__"].map(|end| format!("{PROJECT}/{module}{end}.py"));
        if !places.iter().any(|place| files.contains_key(place)) {
            return refuse(
                format!("the policy has no module `{}` of its own", module.replace('/', ".")),
                "name a function of the project's: no installed package, and nothing of Python's own",
            );
        }
        for path in files.keys() {
            let is_inner = [PROJECT, WEIGHTS]
                .iter()
                .any(|dir| path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/')));
            if let Err(reason) = cache::check_path(path) {
                return refuse(format!("the policy's file `{path}` {reason}"), "run its stage again");
            }
            if !is_inner {
                return refuse(
                    format!("the policy has a file `{path}`"),
                    "its files are below `project/` and `weights/`",
                );
            }
        }
        if let ActionSpace::Candidates { .. } = spec.action_space {
            return refuse(
                "a policy in Python cannot choose among candidates".to_owned(),
                "train a network of this program for symbolic environments",
            );
        }
        if !(1..=MOST_STATE).contains(&spec.action_space.num_outputs()) || spec.obs_dim() > MOST_STATE {
            return refuse(
                format!(
                    "the environment `{}` has no action, or more than 1048576 numbers",
                    spec.name
                ),
                "make the policy again for its environment",
            );
        }
        if self.state_len > MOST_STATE {
            return refuse(
                format!("the policy has `state_len: {}`", self.state_len),
                "it is the number of floats that it remembers of an environment: at most 1048576",
            );
        }
        if !(0.1..=1e6).contains(&self.time_limit) {
            return refuse(
                format!("the policy has `time_limit: {}`", self.time_limit),
                "it is from 0.1 to 1000000 seconds",
            );
        }
        if !(1..=1024).contains(&self.threads) {
            return refuse(
                format!("the policy has `threads: {}`", self.threads),
                "it is from 1 to 1024",
            );
        }
        Ok(())
    }

    /// The seed of the worker's random numbers, of 63 bits: it depends on what the policy is alone.
    pub(super) fn seed(&self, files: &BTreeMap<String, Vec<u8>>) -> u64 {
        let digests: BTreeMap<&String, String> = files
            .iter()
            .map(|(path, bytes)| (path, cache::BlobRef::of(bytes).blob.to_string()))
            .collect();
        let text = cache::canonical_json(&json!({ "policy": self, "files": digests }));
        let digest = cache::BlobRef::of(text.as_bytes()).blob.to_string();
        digest
            .chars()
            .filter_map(|c| c.to_digit(16))
            .take(15)
            .fold(0, |seed, digit| seed << 4 | u64::from(digit))
    }
}

/// The files of a directory and of those below it, by their path in an artifact below `into`.
///
/// # Errors
/// Fails when one cannot be read, is not an ordinary file (a link, for example), or has a name that an
/// artifact cannot hold.
pub fn files_of(dir: &Path, into: &str) -> Result<BTreeMap<String, Vec<u8>>, StageError> {
    let mut found = BTreeMap::new();
    let failed =
        |path: &Path, err: std::io::Error| StageError::new(format!("cannot read {}: {err}", path.display()));
    for entry in fs::read_dir(dir).map_err(|err| failed(dir, err))? {
        let path = entry.map_err(|err| failed(dir, err))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let place = format!("{into}/{name}");
        let kind = fs::symlink_metadata(&path)
            .map_err(|err| failed(&path, err))?
            .file_type();
        if kind.is_dir() {
            found.extend(files_of(&path, &place)?);
            continue;
        }
        if !kind.is_file() {
            return Err(StageError::new(format!("{} is not an ordinary file", path.display()))
                .hint("save the policy's files themselves: no links, sockets or devices"));
        }
        cache::check_path(&place)
            .map_err(|reason| StageError::new(format!("the policy's file `{place}` {reason}")))?;
        found.insert(place, fs::read(&path).map_err(|err| failed(&path, err))?);
    }
    Ok(found)
}
