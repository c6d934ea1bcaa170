//! Opens the task of an `env` artifact of the family `symbolic`.
//!
//! | file | contents |
//! | --- | --- |
//! | `env.json` | the settings |
//! | `knowledge.bin`, `derived.bin` | the knowledge base, as in an artifact of the type `knowledge` |
//! | `problems.json` | [`RuleTexts`], of rule worlds |
//! | `embedding.bin` | the vectors of an [`Embedding`], where rewards are shaped |

use super::batch::{Described, Envs, Order, Task};
use super::batched::SymbolicBatchEnv;
use super::config::{SymbolicConfig, TaskConfig};
use super::embedding::Embedding;
use super::paths::{PathConfig, PathTask};
use super::proofs::{ProofConfig, ProofTask};
use super::rules::{RuleTask, RuleTexts, RulesConfig};
use super::shaping::Shaping;
use cache::{Artifact, BlobDigest, Store};
use serde::de::DeserializeOwned;
use stages_core::StageError;
use stages_env::ActionSpace;
use stages_env::{BatchEnv, EnvSpec, OpenOptions};
use stages_knowledge::{KnowledgeBase, Split, artifact, print};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The `family` in the artifact's meta.
pub(crate) const FAMILY: &str = "symbolic";
pub(super) const CONFIG: &str = "env.json";
pub(super) const PROBLEMS: &str = "problems.json";
pub(super) const EMBEDDING: &str = "embedding.bin";

/// The names of the marks, in order.
const MARKS: [&str; super::batch::mark::COUNT as usize] =
    ["<query>", "<current>", "<give_up>", "<no_op>", "<proved>"];

/// A task over the queries or problems of a split. Immutable, and shared by all environments.
#[derive(Clone, Debug)]
pub enum SymbolicTask {
    /// Proof search.
    Proofs(Arc<ProofTask>),
    /// Path finding.
    Paths(Arc<PathTask>),
    /// Rule worlds.
    Rules(Arc<RuleTask>),
}

fn file<T: DeserializeOwned>(store: &Store, artifact: &Artifact, name: &str) -> Result<T, StageError> {
    serde_json::from_slice(&store.blob(blob(artifact, name)?)?)
        .map_err(|err| unreadable(name, &err.to_string()))
}

fn blob(artifact: &Artifact, name: &str) -> Result<BlobDigest, StageError> {
    let entry = artifact.entry(name);
    Ok(entry
        .ok_or_else(|| StageError::new(format!("the environment has no `{name}`")))?
        .blob)
}

fn unreadable(name: &str, why: &str) -> StageError {
    StageError::new(format!("cannot read `{name}` of the environment: {why}"))
        .hint("run the environment's stage again with --force")
}

impl SymbolicTask {
    /// Opens the artifact of env/symbolic, with the queries or problems of a split and the rewards of the
    /// task.
    ///
    /// # Errors
    /// Fails when the artifact is of another family or damaged, or has nothing to ask in the split.
    pub fn open(store: &Store, artifact: &Artifact, split: Split) -> Result<Self, StageError> {
        let family = artifact.meta.get("family").and_then(serde_json::Value::as_str);
        if family != Some(FAMILY) {
            let family = family.unwrap_or("of no family");
            let message = format!("the environment is `{family}`, not `{FAMILY}`");
            return Err(StageError::new(message).hint("env/symbolic makes one"));
        }
        let config: SymbolicConfig = file(store, artifact, CONFIG)?;
        match config.task_config()? {
            TaskConfig::Rules(rules) => Self::from_texts(&rules, &file(store, artifact, PROBLEMS)?, split),
            task => Self::from_knowledge(&task, artifact::open(store, artifact)?.base, split),
        }
    }

    /// The task for training in the environment: rewards are shaped, where that is configured.
    pub(super) fn with_shaping(self, store: &Store, artifact: &Artifact) -> Result<Self, StageError> {
        let Some(embedding) = self.embedding(store, artifact)? else {
            return Ok(self);
        };
        let config = file::<SymbolicConfig>(store, artifact, CONFIG)?.task_config()?;
        Ok(match (self, &config) {
            (
                Self::Proofs(task),
                TaskConfig::Proofs(ProofConfig {
                    shaping: Some(config), ..
                }),
            ) => {
                let shaping = Shaping::new(embedding, config);
                Self::Proofs(Arc::new(Arc::unwrap_or_clone(task).with_shaping(shaping)))
            }
            (
                Self::Paths(task),
                TaskConfig::Paths(PathConfig {
                    soft_reward: Some(config),
                    ..
                }),
            ) => Self::Paths(Arc::new(Arc::unwrap_or_clone(task).with_soft_reward(embedding, config))),
            (task, _) => task,
        })
    }

    /// The embedding that shapes the rewards of training; `None` where rewards are not shaped.
    ///
    /// # Errors
    /// Fails when the artifact is damaged.
    pub fn embedding(&self, store: &Store, artifact: &Artifact) -> Result<Option<Embedding>, StageError> {
        let base = match self {
            Self::Proofs(task) => &task.knowledge,
            Self::Paths(task) => &task.knowledge,
            Self::Rules(_) => return Ok(None),
        };
        let config = file::<SymbolicConfig>(store, artifact, CONFIG)?.task_config()?;
        let Some(config) = config.embedding() else {
            return Ok(None);
        };
        let bytes = store.blob(blob(artifact, EMBEDDING)?)?;
        let embedding = Embedding::from_bytes(&bytes, base, config);
        embedding
            .map(Some)
            .ok_or_else(|| unreadable(EMBEDDING, "it is of another knowledge base"))
    }

    /// The task of a knowledge base.
    pub(super) fn from_knowledge(
        task: &TaskConfig,
        base: KnowledgeBase,
        split: Split,
    ) -> Result<Self, StageError> {
        match task {
            TaskConfig::Proofs(config) => {
                ProofTask::new(base, config, split).map(|task| Self::Proofs(Arc::new(task)))
            }
            TaskConfig::Paths(config) => {
                PathTask::new(base, config, split).map(|task| Self::Paths(Arc::new(task)))
            }
            TaskConfig::Rules(_) => Err(StageError::new("rule worlds use no knowledge base")),
        }
    }

    /// The task of rule worlds.
    pub(super) fn from_texts(
        config: &RulesConfig,
        texts: &RuleTexts,
        split: Split,
    ) -> Result<Self, StageError> {
        RuleTask::new(texts, config, split).map(|task| Self::Rules(Arc::new(task)))
    }

    /// A batch of `num_envs` environments, each at the start of its first episode. Their queries or problems
    /// are drawn by (seed, environment, episode).
    pub fn batch_env(&self, num_envs: usize, seed: u64) -> Box<dyn BatchEnv> {
        fn batch<T: Task>(task: &Arc<T>, spec: EnvSpec, num_envs: usize, seed: u64) -> Box<dyn BatchEnv> {
            let envs =
                |range: Range<usize>| Envs::new(task.clone(), range.start, range.len(), seed, Order::Random);
            Box::new(SymbolicBatchEnv::new(spec, num_envs, envs))
        }
        match self {
            Self::Proofs(task) => batch(task, self.spec(), num_envs, seed),
            Self::Paths(task) => batch(task, self.spec(), num_envs, seed),
            Self::Rules(task) => batch(task, self.spec(), num_envs, seed),
        }
    }

    /// The task over at most `most` queries (facts, where both sides of each are asked) or problems, spread
    /// evenly over those of the split.
    pub fn thinned(self, most: usize) -> Self {
        match self {
            Self::Proofs(task) => Self::Proofs(Arc::new(Arc::unwrap_or_clone(task).thinned(most))),
            Self::Paths(task) => Self::Paths(Arc::new(Arc::unwrap_or_clone(task).thinned(most))),
            Self::Rules(task) => Self::Rules(Arc::new(Arc::unwrap_or_clone(task).thinned(most))),
        }
    }

    /// The specification, with the names of all tokens in order, so that a policy of another vocabulary is
    /// refused.
    pub fn spec(&self) -> EnvSpec {
        let [predicates, constants] = self.names();
        let variables = 0..self.vocabulary().variables;
        let names = std::iter::once("<padding>".to_owned())
            .chain(predicates)
            .chain(constants)
            .chain(variables.map(|number| format!("_{number}")))
            .chain(MARKS.map(str::to_owned))
            .collect();
        EnvSpec {
            name: format!("symbolic/{}", self.name()),
            observation: Vec::new(),
            action_space: ActionSpace::Candidates {
                names,
                width: self.vocabulary().width,
            },
            normalisation: None,
            encoding: stages_env::ActionEncoding::default(),
        }
    }
}

impl Deref for SymbolicTask {
    type Target = dyn Described;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Proofs(task) => &**task,
            Self::Paths(task) => &**task,
            Self::Rules(task) => &**task,
        }
    }
}

/// At most `most` of the numbers from 0 to `len` - 1, spread evenly and in order.
pub(super) fn spread(len: usize, most: usize) -> impl Iterator<Item = usize> {
    let kept = most.min(len);
    (0..kept).map(move |at| at * len / kept)
}

/// The names of predicates, and of constants and functors.
pub(super) fn names(knowledge: &KnowledgeBase) -> [Vec<String>; 2] {
    let symbols = &knowledge.symbols;
    let with_arity = |name: &str, arity: u8| {
        let mut out = String::new();
        print::quoted(name, &mut out);
        format!("{out}/{arity}")
    };
    let predicates = (0..symbols.predicates.len() as u32)
        .map(|number| with_arity(symbols.predicates.name(number), symbols.predicates.tag(number)))
        .collect();
    let constant = |number: u32| {
        let mut out = String::new();
        print::term(symbols, &[number], &mut out);
        out
    };
    let functors = (0..symbols.functors.len() as u32)
        .map(|number| with_arity(symbols.functors.name(number), symbols.functors.tag(number)));
    let constants = (0..knowledge.constants() as u32)
        .map(constant)
        .chain(functors)
        .collect();
    [predicates, constants]
}

/// Opens an artifact of env/symbolic. Rewards are shaped in training only.
pub(crate) fn open(
    store: &Store,
    artifact: &Artifact,
    options: &OpenOptions,
) -> Result<Box<dyn BatchEnv>, StageError> {
    let mut task = SymbolicTask::open(store, artifact, knowledge_split(options.split))?;
    if options.split == stages_env::Split::Train {
        task = task.with_shaping(store, artifact)?;
    }
    Ok(task.batch_env(options.num_envs, options.seed))
}

/// The number of evaluation episodes of a split: `Some(0)` where it has nothing to ask; else `None`, since
/// episodes are drawn.
pub(crate) fn evaluation_episodes(
    _: &Store,
    artifact: &Artifact,
    of: stages_env::Split,
) -> Result<Option<usize>, StageError> {
    let sizes = ["queries", "problems"].map(|name| &artifact.meta[name][knowledge_split(of).name()]);
    Ok(sizes.contains(&&serde_json::json!(0)).then_some(0))
}

/// The split of queries or problems.
fn knowledge_split(of: stages_env::Split) -> Split {
    match of {
        stages_env::Split::Train => Split::Train,
        stages_env::Split::Validation => Split::Valid,
        stages_env::Split::Test => Split::Test,
    }
}
