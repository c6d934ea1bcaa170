//! Action keys: everything a stage's result depends on, and nothing else.
//!
//! | input | in the key | reason |
//! | --- | --- | --- |
//! | stage kind and its implementation version | yes | different code may give different results |
//! | resolved configuration, without fields equal to their default | yes | it defines the experiment; a new field with a default changes no key |
//! | digests of the inputs, by port, in order | yes | contents: an input recomputed to the same bytes changes nothing |
//! | digests of the source files, and their names relative to the source's root | yes | contents; a file name may carry meaning |
//! | of a `run:` stage: the command's text, its `env:` and `outputs:` with their types, its `files:` | yes | they are its configuration |
//! | `shell: sh`, `network: true`, `container:` | yes | what runs the command, and what it reaches |
//! | `tools:` | yes | an executable by its content or by `version:`, a virtual environment by its lock file (or the records of its packages) and its interpreter's version |
//! | name of the stage, of the pipeline, of the stages that it needs | no | names do not affect results |
//! | comments, order of keys, spelling of a value | no | the configuration is typed before it is hashed |
//! | absolute paths, modification times, the machine | no | they differ between checkouts |
//! | threads, memory, retries, time limit, `secrets:`, `isolation:`, `log:` | no | they must not affect a result |
//! | intervals of logs and checkpoints (a kind's `NOT_IN_KEY`) | no | likewise |
//!
//! The [`Recipe`] holds exactly the hashed fields. It is stored in the action record, so that a later run can
//! explain differences; the key alone decides whether an action runs.

use cache::{ActionKey, ArtifactDigest, BlobDigest, KeyHasher, canonical_json};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

const DOMAIN: &str = "runner 2026-11 action v1";

/// The kind name of external programs.
pub const RUN: &str = "run";

/// The implementation version of running external programs.
pub const RUN_VERSION: u32 = 2;

/// All inputs of an action key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// The stage kind; [`RUN`] for an external program.
    pub kind: String,
    /// The version of the kind's implementation.
    pub version: u32,
    /// The stage's configuration, without fields equal to their default.
    pub config: Config,
    /// The digests of the input artifacts, by port.
    pub inputs: BTreeMap<String, Vec<ArtifactDigest>>,
    /// The files outside the store that the action reads, sorted by name.
    pub sources: Vec<SourceDigest>,
    /// The programs that an external program declares, in the order of its `PATH`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDigest>,
}

/// A configuration in its hashed form: canonical JSON. It is parsed only to explain differences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config(String);

impl Config {
    /// Parses the canonical JSON to a value.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl From<&Value> for Config {
    fn from(value: &Value) -> Self {
        Self(canonical_json(value))
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self::from(&value))
    }
}

/// A file outside the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceDigest {
    /// The file's name relative to the source's root; empty if the name is irrelevant.
    pub name: String,
    /// The digest of the file's bytes.
    pub blob: BlobDigest,
}

/// A declared program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDigest {
    /// The program's name in the pipeline.
    pub name: String,
    /// The text that the program prints for `--version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// True for a virtual environment that can import its interpreter's packages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub system_packages: bool,
    /// The program's executable, listed with an empty name, or the virtual environment's lock file or
    /// records of packages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SourceDigest>,
}

impl ToolDigest {
    /// The parts of the key that represent the program, as pairs of name and value.
    fn parts(&self) -> impl Iterator<Item = (String, String)> {
        let name = &self.name;
        let version = self.version.iter();
        let version = version.map(move |version| (format!("tool {name} version"), version.clone()));
        let packages = self.system_packages.then(|| {
            let what = format!("tool {name} system packages");
            (what, "visible".to_owned())
        });
        let files = self.files.iter().map(move |file| match file.name.as_str() {
            "" => (format!("tool {name}"), file.blob.short()),
            file_name => (format!("tool {name} {file_name}"), file.blob.short()),
        });
        version.chain(packages).chain(files)
    }
}

impl Recipe {
    /// Computes the action key.
    pub fn key(&self) -> ActionKey {
        let count = |n: usize| (n as u64).to_le_bytes();
        let mut hasher = KeyHasher::new(DOMAIN)
            .field(&self.kind)
            .field(self.version.to_le_bytes())
            .field(&self.config.0)
            .field(count(self.inputs.len()));
        for (port, digests) in &self.inputs {
            hasher = hasher.field(port).field(count(digests.len()));
            for digest in digests {
                hasher = hasher.field(digest.as_bytes());
            }
        }
        hasher = hasher.field(count(self.sources.len()));
        for source in &self.sources {
            hasher = hasher.field(&source.name).field(source.blob.as_bytes());
        }
        // A stage without tools hashes nothing here, so that keys computed before tools were introduced stay
        // valid.
        for tool in &self.tools {
            let version = tool.version.as_slice();
            hasher = hasher.field(&tool.name).field(count(version.len()));
            for version in version {
                hasher = hasher.field(version);
            }
            hasher = hasher
                .field([u8::from(tool.system_packages)])
                .field(count(tool.files.len()));
            for file in &tool.files {
                hasher = hasher.field(&file.name).field(file.blob.as_bytes());
            }
        }
        hasher.action_key()
    }

    /// Serialises the recipe to JSON, for the action record.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Parses the output of [`Recipe::to_json`].
    pub fn from_json(value: &Value) -> Option<Self> {
        serde_json::from_value(value.clone()).ok()
    }

    /// The differences from `old`, the most significant first; empty if the keys are equal.
    pub fn differences(&self, old: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut add = |what: String, old: Option<String>, new: Option<String>| {
            if old != new {
                found.push(Difference { what, old, new });
            }
        };
        add("kind".to_owned(), Some(old.kind.clone()), Some(self.kind.clone()));
        if self.kind == old.kind {
            add(
                "version of the kind".to_owned(),
                Some(old.version.to_string()),
                Some(self.version.to_string()),
            );
        }
        let mut compare = |name: &dyn Fn(&str) -> String,
                           values: &dyn Fn(&Self) -> BTreeMap<String, String>| {
            let (before, after) = (values(old), values(self));
            let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for key in keys {
                add(name(key), before.get(key).cloned(), after.get(key).cloned());
            }
        };
        let root = if self.kind == RUN { "" } else { "with." };
        compare(&|path| format!("{root}{path}"), &|recipe| {
            leaves(&recipe.config.value())
        });
        compare(&|port| format!("needs.{port}"), &|recipe| {
            let inputs = recipe.inputs.iter();
            inputs.map(|(port, found)| (port.clone(), digests(found))).collect()
        });
        if self.sources.len() != old.sources.len() {
            compare(&str::to_owned, &|recipe| {
                BTreeMap::from([("files".to_owned(), format!("{} files", recipe.sources.len()))])
            });
        }
        compare(&|name| format!("file {name}"), &|recipe| {
            let numbered = recipe.sources.iter().enumerate();
            numbered
                .map(|(i, source)| match source.name.as_str() {
                    "" => (format!("#{}", i + 1), source.blob.short()),
                    name => (name.to_owned(), source.blob.short()),
                })
                .collect()
        });
        compare(&str::to_owned, &|recipe| {
            recipe.tools.iter().flat_map(ToolDigest::parts).collect()
        });
        let names =
            |recipe: &Self| -> Vec<String> { recipe.tools.iter().map(|tool| tool.name.clone()).collect() };
        let (mut before, mut after) = (names(old), names(self));
        let (first, second) = (before.join(", "), after.join(", "));
        before.sort();
        after.sort();
        if before == after {
            add("order of tools".to_owned(), Some(first), Some(second));
        }
        found
    }
}

/// One difference between two recipes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The name of the field: `with.learning_rate`, `needs.env`, `file prices.csv`, `tool python3`.
    pub what: String,
    /// The old value; absent if the field was missing or had its default.
    pub old: Option<String>,
    /// The new value; absent if the field is missing or has its default.
    pub new: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let absent = if self.what.starts_with("with.") {
            "default"
        } else {
            "none"
        };
        let show = |value: &Option<String>| value.clone().unwrap_or_else(|| absent.to_owned());
        write!(f, "{}: {} -> {}", self.what, show(&self.old), show(&self.new))
    }
}

fn digests(digests: &[ArtifactDigest]) -> String {
    match digests {
        [] => "none yet".to_owned(),
        digests => digests.iter().map(ArtifactDigest::short).collect::<Vec<_>>().join(", "),
    }
}

/// The scalars of a configuration, by path; a list of scalars counts as one value.
pub fn leaves(value: &Value) -> BTreeMap<String, String> {
    fn walk(value: &Value, path: &str, out: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let path = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    walk(value, &path, out);
                }
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                for (i, value) in items.iter().enumerate() {
                    walk(value, &format!("{path}[{i}]"), out);
                }
            }
            scalar => {
                out.insert(path.to_owned(), canonical_json(scalar));
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(value, "", &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn recipe() -> Recipe {
        Recipe {
            kind: "greeks/analytic".into(),
            version: 3,
            config: Config::from(&json!({"model": "black_76", "slate": {"size": 20}})),
            inputs: BTreeMap::from([(
                "chain".into(),
                vec![ArtifactDigest::from_bytes([1; 32]), ArtifactDigest::from_bytes([2; 32])],
            )]),
            sources: vec![SourceDigest {
                name: "2019/SPX.csv".into(),
                blob: BlobDigest::from_bytes([3; 32]),
            }],
            tools: Vec::new(),
        }
    }

    fn file(name: &str, byte: u8) -> SourceDigest {
        SourceDigest {
            name: name.to_owned(),
            blob: BlobDigest::from_bytes([byte; 32]),
        }
    }

    fn tool(name: &str, version: Option<&str>, files: Vec<SourceDigest>) -> ToolDigest {
        ToolDigest {
            name: name.to_owned(),
            version: version.map(str::to_owned),
            system_packages: false,
            files,
        }
    }

    /// Existing stores depend on the key: it changes only together with the domain.
    #[test]
    fn key_is_pinned() {
        insta::assert_snapshot!(recipe().key(),
            @"adb73b9d3f793aff15505cd61333530557d6929b497da6b7af9cd64ff1c5cd1e");
    }

    #[test]
    fn every_part_counts() {
        let base = recipe();
        let mut keys = vec![base.key()];
        let mut with = |change: &dyn Fn(&mut Recipe)| {
            let mut other = recipe();
            change(&mut other);
            assert!(!other.differences(&base).is_empty());
            keys.push(other.key());
        };
        with(&|r| r.kind = "greeks/american".into());
        with(&|r| r.version = 4);
        with(&|r| r.config = Config::from(&json!({"model": "black_76"})));
        with(&|r| r.config = Config::from(&json!({"model": "black_76", "slate": {"size": 21}})));
        with(&|r| r.inputs.get_mut("chain").unwrap().reverse());
        with(&|r| {
            let digests = r.inputs.remove("chain").unwrap();
            r.inputs.insert("rates".into(), digests);
        });
        with(&|r| r.sources[0].name = "2020/SPX.csv".into());
        with(&|r| r.sources.clear());
        with(&|r| r.inputs.clear());
        with(&|r| r.tools = vec![tool("python3", None, vec![file("", 5)])]);
        with(&|r| r.tools = vec![tool("python3", None, vec![file("", 6)])]);
        with(&|r| r.tools = vec![tool("python", None, vec![file("", 5)])]);
        with(&|r| r.tools = vec![tool("python3", Some("3.11"), Vec::new())]);
        with(&|r| r.tools = vec![tool("python3", Some("3.12"), Vec::new())]);
        with(&|r| r.tools = vec![tool("env", Some("3.11"), vec![file("uv.lock", 5)])]);
        with(&|r| {
            let env = tool("env", Some("3.11"), vec![file("uv.lock", 5)]);
            let system_packages = true;
            r.tools = vec![ToolDigest {
                system_packages,
                ..env
            }];
        });
        let (one, other) = (tool("a", None, vec![file("l", 1)]), tool("b", None, vec![file("l", 1)]));
        with(&|r| r.tools = vec![one.clone(), other.clone()]);
        with(&|r| r.tools = vec![other.clone(), one.clone()]);
        let distinct: BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }

    #[test]
    fn says_what_differs() {
        let old = recipe();
        let mut new = recipe();
        new.version = 4;
        new.config = Config::from(&json!({"slate": {"size": 30}, "dividend_yield": 0.5}));
        new.inputs
            .insert("chain".into(), vec![ArtifactDigest::from_bytes([9; 32])]);
        new.sources[0].blob = BlobDigest::from_bytes([4; 32]);
        let text: Vec<String> = new.differences(&old).iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(text.join("\n"), @r#"
        version of the kind: 3 -> 4
        with.dividend_yield: default -> 0.5
        with.model: "black_76" -> default
        with.slate.size: 20 -> 30
        needs.chain: 0101010101, 0202020202 -> 0909090909
        file 2019/SPX.csv: 0303030303 -> 0404040404
        "#);
        assert_eq!(old.differences(&old), []);
        assert_eq!(Recipe::from_json(&old.to_json()), Some(old));
    }

    #[test]
    fn says_which_tool_differs() {
        let mut old = recipe();
        let env = tool("env", Some("3.11.2"), vec![file("uv.lock", 6)]);
        old.tools = vec![
            tool("python3", None, vec![file("", 5)]),
            tool("jq", None, vec![file("", 1)]),
            env,
        ];
        let mut new = old.clone();
        new.tools[0].files[0].blob = BlobDigest::from_bytes([7; 32]);
        new.tools[1] = tool("gawk", Some("5.2"), Vec::new());
        new.tools[2].version = Some("3.12.0".to_owned());
        new.tools[2].files = vec![file("uv.lock", 8)];
        new.tools[2].system_packages = true;
        let text: Vec<String> = new.differences(&old).iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(text.join("\n"), @"
        tool env system packages: none -> visible
        tool env uv.lock: 0606060606 -> 0808080808
        tool env version: 3.11.2 -> 3.12.0
        tool gawk version: none -> 5.2
        tool jq: 0101010101 -> none
        tool python3: 0505050505 -> 0707070707
        ");
        assert_eq!(Recipe::from_json(&new.to_json()), Some(new));
    }
}
