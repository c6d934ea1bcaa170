//! The contents of an artifact of `env/python`.

use crate::spec::EnvSpec;
use cache::{Artifact, Store};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::StageError;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The `family` in the artifact's meta.
pub(crate) const FAMILY: &str = "python";
/// The directory of the project's files, in an artifact and in the names of sources.
pub const PROJECT: &str = "project";

/// The environment that an artifact holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Made {
    /// The id, or the call.
    pub name: String,
    /// True if `name` is a call.
    pub is_call: bool,
    /// The arguments of the id or of the call.
    pub kwargs: BTreeMap<String, Value>,
    /// Seconds that a step may take.
    pub time_limit: f64,
    /// The steps after which an episode is truncated, where the environment says so.
    pub max_episode_steps: Option<u64>,
    /// The versions with which the environment was made.
    pub versions: Versions,
    /// The specification of observations and actions.
    pub spec: EnvSpec,
}

/// The versions of an interpreter and of its packages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Versions {
    /// Implementation and version, such as `cpython 3.11.7`.
    pub python: String,
    /// The packages, by name.
    pub packages: BTreeMap<String, String>,
}

impl Versions {
    /// The first difference between these versions and `here`, in words.
    pub fn difference(&self, here: &Self) -> Option<String> {
        if self.python != here.python {
            return Some(format!("{} then, {} now", self.python, here.python));
        }
        let (then, now) = (&self.packages, &here.packages);
        let name = then
            .keys()
            .chain(now.keys())
            .find(|name| then.get(*name) != now.get(*name))?;
        let version = |packages: &BTreeMap<String, String>| {
            packages.get(name).map_or("none", String::as_str).to_owned()
        };
        Some(format!("{name} {} then, {} now", version(then), version(now)))
    }
}

impl Made {
    /// The part of a request that says how an environment is made.
    pub(super) fn request(name: &str, is_call: bool, kwargs: &BTreeMap<String, Value>) -> Value {
        json!({ "name": name, "call": is_call.then_some(name), "kwargs": kwargs })
    }
}

/// Writes the entries below the directory `from` of an artifact into the directory `into`.
///
/// # Errors
/// When one cannot be read or written.
pub fn extract(store: &Store, artifact: &Artifact, from: &str, into: &Path) -> Result<(), StageError> {
    for entry in &artifact.entries {
        if let Some(name) = inner(&entry.path, from) {
            write(into, name, &store.blob(entry.blob)?)?;
        }
    }
    Ok(())
}

/// The part of a path that is below a directory.
pub(super) fn inner<'a>(path: &'a str, dir: &str) -> Option<&'a str> {
    path.strip_prefix(dir)?.strip_prefix('/')
}

/// Writes a file below a directory, and the directories above it.
///
/// # Errors
/// When it cannot be written.
pub fn write(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), StageError> {
    let path = dir.join(name);
    let written = match path.parent() {
        Some(parent) => fs::create_dir_all(parent).and_then(|()| fs::write(&path, bytes)),
        None => fs::write(&path, bytes),
    };
    written.map_err(|err| StageError::new(format!("cannot write {}: {err}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::ActionSpace;

    /// Artifacts hold this form: other bytes would be other digests.
    #[test]
    fn serialised_form() {
        let made = Made {
            name: "envs:make".into(),
            is_call: true,
            kwargs: [("size".to_owned(), json!([1, 2.5]))].into(),
            time_limit: 60.0,
            max_episode_steps: Some(9),
            versions: Versions {
                python: "cpython 3.11.7".into(),
                packages: [("numpy".to_owned(), "2.4.6".to_owned())].into(),
            },
            spec: EnvSpec {
                name: "envs:make".into(),
                observation: vec!["obs[0]".into()],
                action_space: ActionSpace::MultiDiscrete {
                    names: vec!["action[0]".into(), "action[1]".into()],
                    choices: vec![2, 3],
                    masked: true,
                },
                normalisation: None,
                encoding: crate::ActionEncoding::default(),
            },
        };
        let json = cache::canonical_json(&serde_json::to_value(&made).unwrap());
        assert_eq!(
            json,
            r#"{"is_call":true,"kwargs":{"size":[1,2.5]},"max_episode_steps":9,"name":"envs:make","spec":{"actions":["action[0]","action[1]"],"choices":[2,3],"masked":true,"name":"envs:make","normalisation":null,"observation":["obs[0]"]},"time_limit":60.0,"versions":{"packages":{"numpy":"2.4.6"},"python":"cpython 3.11.7"}}"#
        );
        assert_eq!(serde_json::from_str::<Made>(&json).unwrap(), made);
    }

    #[test]
    fn differences_of_versions() {
        let versions = |python: &str, packages: &[(&str, &str)]| Versions {
            python: python.to_owned(),
            packages: packages
                .iter()
                .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()))
                .collect(),
        };
        let then = versions("cpython 3.11.7", &[("gymnasium", "1.4.0"), ("numpy", "2.4.6")]);
        assert_eq!(then.difference(&then), None);
        let differs = |now: &Versions| then.difference(now).unwrap();
        assert_eq!(
            differs(&versions("cpython 3.12.1", &[])),
            "cpython 3.11.7 then, cpython 3.12.1 now"
        );
        assert_eq!(
            differs(&versions(
                "cpython 3.11.7",
                &[("gymnasium", "1.4.0"), ("numpy", "2.5.0")]
            )),
            "numpy 2.4.6 then, 2.5.0 now"
        );
        let more = versions(
            "cpython 3.11.7",
            &[("gymnasium", "1.4.0"), ("mujoco", "3.0"), ("numpy", "2.4.6")],
        );
        assert_eq!(differs(&more), "mujoco none then, 3.0 now");
    }
}
