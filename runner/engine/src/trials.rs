//! Trials: the policies that are evaluated on the same test data. The more there were, the more the best of
//! them owes to chance (Bailey and López de Prado 2014).
//!
//! A policy is known before it is trained by the digest that stands in for its artifact: of the kind,
//! configuration, inputs and files of its task. The version of a kind is left out, so that a policy trained
//! by another version of the program is no further trial. Test data is known by the files that the market
//! comes from, whatever their contents, so that appended days do not make an old test new.

use crate::key::Recipe;
use crate::prepare::{self, recipe};
use cache::{ActionKey, ArtifactDigest, KeyHasher, Store};
use runner_pipeline::{InputRef, Node, Pipeline, Work};
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::{PortType, Source, StageError, TestPart};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The port of an evaluation at which its environment arrives.
const ENV: &str = "env";
/// The port of an evaluation at which its policy arrives.
const POLICY: &str = "policy";
/// The setting of kinds of the family `ingest` that leaves out later dates.
const UNTIL: &str = "until";

/// The evaluation of a policy on test data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Trial {
    /// The artifact of the policy, where an earlier run made it; else the digest that stands in for it.
    pub policy: ArtifactDigest,
    /// The test data.
    #[serde(flatten)]
    pub range: TestRange,
}

/// Test data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TestRange {
    /// The origins of the market's prices: files, directories and URLs, or simulators with their
    /// configuration.
    pub market: BTreeSet<PathBuf>,
    /// The part that is tested.
    #[serde(flatten)]
    pub part: TestPart,
}

impl TestRange {
    /// True unless two ranges have no test data in common for certain.
    pub fn overlaps(&self, other: &Self) -> bool {
        let same = |a: &PathBuf| other.market.iter().any(|b| a.starts_with(b) || b.starts_with(a));
        self.market.iter().any(same) && !self.part.is_apart(&other.part)
    }
}

/// The trials of the chosen nodes, by node.
///
/// # Errors
/// If a source file of a policy's task cannot be read.
pub fn trials(
    pipeline: &Pipeline,
    chosen: &[usize],
    store: &Store,
) -> Result<BTreeMap<usize, Trial>, StageError> {
    let mut tasks = Tasks {
        pipeline,
        store,
        keys: BTreeMap::new(),
    };
    let mut found = BTreeMap::new();
    for &i in chosen {
        let node = &pipeline.nodes[i];
        let Work::Kind { kind, config } = &node.work else {
            continue;
        };
        if kind.trials().is_none() || !kind.reads_test(config) {
            continue;
        }
        debug_assert!(kind.ports().inputs.iter().any(|port| port.name == POLICY));
        let Some(range) = only(node, ENV).and_then(|env| test_range(pipeline, env.node)) else {
            continue;
        };
        let earlier = node.earlier.get(POLICY).and_then(|earlier| earlier.first());
        let policy = match (only(node, POLICY), earlier) {
            (Some(policy), _) => tasks.stand_in(policy)?,
            (None, Some(earlier)) => earlier.digest,
            (None, None) => continue,
        };
        found.insert(i, Trial { policy, range });
    }
    Ok(found)
}

/// Sets the number of trials of each evaluation: the policies that this plan and the `past` trials evaluate
/// on its test data, if that is more than what is configured.
pub fn count_trials<'t>(
    pipeline: &mut Pipeline,
    planned: &'t BTreeMap<usize, Trial>,
    past: impl Iterator<Item = &'t Trial>,
) {
    let mut policies: BTreeMap<&TestRange, BTreeSet<ArtifactDigest>> = BTreeMap::new();
    for trial in planned.values().chain(past) {
        policies.entry(&trial.range).or_default().insert(trial.policy);
    }
    let mut counts: BTreeMap<&TestRange, usize> = BTreeMap::new();
    for (&i, trial) in planned {
        let count = *counts.entry(&trial.range).or_insert_with(|| {
            let overlapping = policies.iter().filter(|(range, _)| range.overlaps(&trial.range));
            overlapping.flat_map(|(_, of)| of).collect::<BTreeSet<_>>().len()
        });
        let Work::Kind { kind, config } = &mut pipeline.nodes[i].work else {
            continue;
        };
        if let Some(field) = kind.trials()
            && config[field].as_u64().is_some_and(|typed| typed < count as u64)
        {
            config[field] = json!(count);
        }
    }
}

fn only<'n>(node: &'n Node, port: &str) -> Option<&'n InputRef> {
    node.needs.get(port)?.first()
}

/// The tasks whose keys were computed: an action key over stand-ins of the inputs.
struct Tasks<'a> {
    pipeline: &'a Pipeline,
    store: &'a Store,
    keys: BTreeMap<usize, ActionKey>,
}

impl Tasks<'_> {
    /// The digest that stands in for an output.
    fn stand_in(&mut self, output: &InputRef) -> Result<ArtifactDigest, StageError> {
        // What is needed comes earlier in the pipeline.
        for i in self.pipeline.graph.upstream([output.node]) {
            if !self.keys.contains_key(&i) {
                let key = self.key(i)?;
                self.keys.insert(i, key);
            }
        }
        Ok(self.of(output))
    }

    fn of(&self, output: &InputRef) -> ArtifactDigest {
        let task = self.keys.get(&output.node).map(|key| key.as_bytes().as_slice());
        let hasher = KeyHasher::new("runner 2026-11 task output v1");
        let hashed = hasher.field(task.unwrap_or_default()).field(&output.output);
        ArtifactDigest::from_bytes(*hashed.action_key().as_bytes())
    }

    fn key(&self, i: usize) -> Result<ActionKey, StageError> {
        let node = &self.pipeline.nodes[i];
        let mut inputs: BTreeMap<String, Vec<ArtifactDigest>> = BTreeMap::new();
        for (port, needs) in &node.needs {
            inputs.insert(port.clone(), needs.iter().map(|need| self.of(need)).collect());
        }
        node.add_earlier(&mut inputs);
        let (local, remote): (Vec<Source>, Vec<Source>) = prepare::sources(node)?
            .into_iter()
            .partition(|source| source.remote.is_none());
        // The stage itself fails at a file that cannot be read.
        let hashed = recipe(node, &local, inputs.clone(), self.store, false)
            .or_else(|_| recipe(node, &[], inputs, self.store, false))?;
        let task = Recipe { version: 0, ..hashed }.key();
        // What a server sends is not known before it is fetched.
        let hasher = KeyHasher::new("runner 2026-11 task v1").field(task.as_bytes());
        let names = |hasher: KeyHasher, source: &Source| {
            let pinned = source.digest.map(|digest| digest.to_hex()).unwrap_or_default();
            hasher.field(source.path.as_os_str().as_encoded_bytes()).field(pinned)
        };
        Ok(remote.iter().fold(hasher, names).action_key())
    }
}

/// The test data of the environment that a node makes; `None` if its evaluations count no trials.
fn test_range(pipeline: &Pipeline, env: usize) -> Option<TestRange> {
    let node = &pipeline.nodes[env];
    let Work::Kind { kind, config } = &node.work else {
        return None;
    };
    let tested = kind.tested(config)?;
    let is_connected = |port: &&&str| node.needs.contains_key(**port) || node.earlier.contains_key(**port);
    let port = tested.ports.iter().find(is_connected)?;
    let earlier = node.earlier.get(*port).into_iter().flatten();
    let mut market: BTreeSet<PathBuf> = earlier.map(|earlier| of_earlier(&earlier.name)).collect();
    let mut left: Vec<usize> = node
        .needs
        .get(*port)
        .into_iter()
        .flatten()
        .map(|need| need.node)
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(i) = left.pop() {
        if seen.insert(i) {
            origins(pipeline, i, &mut market, &mut left);
        }
    }
    Some(TestRange {
        market,
        part: tested.part,
    })
}

/// Adds the origins of a node's outputs to `found`, and the nodes whose origins are its own to `left`.
/// Interest and corporate actions are not what a market is known by.
fn origins(pipeline: &Pipeline, i: usize, found: &mut BTreeSet<PathBuf>, left: &mut Vec<usize>) {
    let node = &pipeline.nodes[i];
    let sources = prepare::sources(node).unwrap_or_default();
    let is_leaf = node.needs.is_empty() && node.earlier.is_empty();
    let data = sources.iter().filter(|source| is_leaf || !source.is_program);
    if let Some(common) = common_path(data.map(|source| source.path.as_path())) {
        found.insert(common.canonicalize().unwrap_or(common));
    } else if is_leaf {
        let config = match &node.work {
            Work::Kind { kind, config } => {
                let mut config = kind.key_config(config);
                // Appended days make no other market of a simulator either.
                config.as_object_mut().map(|config| config.remove(UNTIL));
                json!([kind.name(), config])
            }
            Work::Command(command) => command.key_config(),
        };
        let hasher = KeyHasher::new("runner 2026-11 origin v1").field(cache::canonical_json(&config));
        found.insert(PathBuf::from(hasher.action_key().to_hex()));
    }
    let is_of_market = |need: &&InputRef| {
        let provided = pipeline.nodes[need.node].provides.get(&need.output);
        !provided.is_some_and(|of| matches!(of.ty, PortType::Rates | PortType::CorporateActions))
    };
    left.extend(node.needs.values().flatten().filter(is_of_market).map(|need| need.node));
    let earlier = node.earlier.values().flatten();
    found.extend(earlier.map(|earlier| of_earlier(&earlier.name)));
}

/// The origin of an artifact of an earlier run: its stage and output, whatever the run.
fn of_earlier(name: &str) -> PathBuf {
    PathBuf::from(name.split_once('/').map_or(name, |(_, output)| output))
}

/// The longest path that all paths begin with.
fn common_path<'p>(mut paths: impl Iterator<Item = &'p Path>) -> Option<PathBuf> {
    let first = paths.next()?.to_owned();
    Some(paths.fold(first, |common, path| {
        let parts = common.components().zip(path.components());
        parts.take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(market: &[&str]) -> TestRange {
        TestRange {
            market: market.iter().map(PathBuf::from).collect(),
            part: TestPart::default(),
        }
    }

    #[test]
    fn markets_are_the_same_where_one_holds_the_other() {
        let all = range(&["/data/spx"]);
        for (other, overlaps) in [
            (range(&["/data/spx/2019.csv"]), true),
            (range(&["/data"]), true),
            (range(&["/data/spx2"]), false),
            (range(&["/data/vix", "/data/spx"]), true),
            (range(&[]), false),
        ] {
            assert_eq!(all.overlaps(&other), overlaps, "{other:?}");
            assert_eq!(other.overlaps(&all), overlaps, "{other:?}");
        }
    }

    #[test]
    fn files_of_a_directory_have_it_in_common() {
        let common = |paths: &[&str]| common_path(paths.iter().map(Path::new));
        assert_eq!(common(&["/a/b/c.csv"]), Some("/a/b/c.csv".into()));
        assert_eq!(common(&["/a/b/c.csv", "/a/b/d.csv", "/a/bc/e.csv"]), Some("/a".into()));
        assert_eq!(common(&[]), None);
    }
}
