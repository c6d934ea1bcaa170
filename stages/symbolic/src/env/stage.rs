//! The stage kind `env/symbolic`.

use super::config::{SymbolicConfig, TaskConfig};
use super::embedding::{Embedding, EmbeddingConfig};
use super::open::{CONFIG, EMBEDDING, FAMILY, PROBLEMS, SymbolicTask};
use super::proofs::TrainingQueries;
use super::rules::{RuleTexts, RulesConfig};
use cache::{Artifact, ArtifactBuilder, BlobRef};
use serde_json::{Value, json};
use stages_core::{
    ConfigProblem, Context, Given, InputPort, Memo, OutputPort, Outputs, PlanContext, PortType, Ports,
    Provided, Share, Source, StageError, StageEvent, StageKind,
};
use stages_ingest::files::{name_of, unreadable};
use stages_knowledge::{KnowledgeBase, Split, artifact, word};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The stage kind `env/symbolic`.
pub struct Symbolic;

/// The ending of the problems that a directory is searched for.
const ENDING: &str = "pddl";
/// The name of the source that is the domain.
const DOMAIN: &str = "domain";

impl StageKind for Symbolic {
    type Config = SymbolicConfig;
    const NAME: &'static str = "env/symbolic";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "rules as an environment: proof search over a knowledge base, and worlds of \
        actions with preconditions and effects";
    const NOT_IN_KEY: &'static [&'static str] = &["domain", "train", "valid", "test"];
    const PORTS: Ports = Ports {
        inputs: &[InputPort {
            optional: true,
            doc: "facts, rules and queries; of all tasks but `rules`",
            ..InputPort::one("knowledge", PortType::Knowledge)
        }],
        outputs: &[OutputPort {
            name: "env",
            ty: PortType::Env,
            doc: "the environment: its settings, and the knowledge base or the problems",
        }],
    };

    fn check(
        &self,
        config: &SymbolicConfig,
        plan: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        let is_connected = plan.inputs.get("knowledge").is_some_and(|inputs| !inputs.is_empty());
        match (config.task_config()?, is_connected) {
            (TaskConfig::Rules(_), true) => {
                return Err(ConfigProblem::new(
                    "task",
                    "rule worlds use no knowledge base, and one is connected",
                )
                .hint("remove `needs: { knowledge: … }`, or write another `task:`"));
            }
            (TaskConfig::Proofs(_) | TaskConfig::Paths(_), false) => {
                return Err(ConfigProblem::new("", "no knowledge base is connected")
                    .hint("write `needs: { knowledge: STAGE }`; ingest/knowledge_base reads one"));
            }
            _ => {}
        }
        Ok(artifact::provided(&Self::PORTS))
    }

    fn sources(&self, config: &SymbolicConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        let TaskConfig::Rules(rules) = config.task_config()? else {
            return Ok(Vec::new());
        };
        let mut sources = Vec::new();
        if rules.is_of_files() {
            let path = base.join(&rules.domain);
            if !path.is_file() {
                return Err(missing("domain".to_owned(), &rules.domain));
            }
            sources.push(Source::new(DOMAIN, path));
        }
        for (split, files) in rules.problem_files() {
            for (at, file) in files.iter().enumerate() {
                let field = format!("{}[{at}]", split.name());
                for (name, path) in problem_files(&field, file, &base.join(file))? {
                    // Numbers put files in the order of the list.
                    sources.push(Source::new(format!("{}/{at:04}/{name}", split.name()), path));
                }
            }
        }
        sources.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(sources)
    }

    fn run(&self, config: &SymbolicConfig, context: &Context) -> Result<Outputs, StageError> {
        let task = config.task_config()?;
        let mut meta = json!({ "family": FAMILY, "format": 1, "task": config.task.name() });
        let mut files: Vec<(&str, BlobRef)> = Vec::new();
        match &task {
            TaskConfig::Proofs(_) | TaskConfig::Paths(_) => {
                let knowledge = &context.input("knowledge")?.artifact;
                let base = artifact::open(&context.store, knowledge)?.base;
                let asks = |split: Split| {
                    let has_facts = || task.asks_facts() && base.relations.facts() > 0;
                    !base.queries(split).is_empty() || split == Split::Train && has_facts()
                };
                meta["queries"] = sizes(context, "queries", &asks, &|split| {
                    SymbolicTask::from_knowledge(&task, base.clone(), split)
                })?;
                let entries = [artifact::KNOWLEDGE, artifact::DERIVED];
                let linked = entries
                    .into_iter()
                    .filter_map(|name| Some((name, knowledge.entry(name)?.blob_ref())));
                files.extend(linked);
                if let Some(config) = task.embedding() {
                    if let TaskConfig::Paths(paths) = &task
                        && paths.queries == TrainingQueries::Train
                        && !asks_of_the_graph(&base)
                    {
                        context.events.emit(StageEvent::Warning {
                            message:
                                "no relation that training asks for has facts in the graph: `soft_reward` \
                                gives nothing"
                                    .to_owned(),
                            hint: Some(
                                "remove it, or set `train_in_graph: true` of \
                                ingest/knowledge_base"
                                    .to_owned(),
                            ),
                        });
                    }
                    files.push((EMBEDDING, embedding(context, knowledge, &base, config)?));
                }
            }
            TaskConfig::Rules(rules) => {
                let texts = match rules.is_of_files() {
                    true => read(context, rules)?,
                    false => RuleTexts::drawn(rules)?,
                };
                let repeated = texts.repeated(Split::Valid) + texts.repeated(Split::Test);
                if repeated > 0 {
                    context.events.emit(StageEvent::Warning {
                        message: format!(
                            "{repeated} problems of valid and test are those of an earlier split"
                        ),
                        hint: Some(
                            "a larger `size`, or fewer `problems`, leaves some that training has not seen"
                                .to_owned(),
                        ),
                    });
                }
                let asks = |split: Split| !texts.problems(split).is_empty();
                meta["problems"] = sizes(context, "problems", &asks, &|split| {
                    context.check_cancelled()?;
                    SymbolicTask::from_texts(rules, &texts, split)
                })?;
                files.push((PROBLEMS, context.store.put(artifact::json(&texts)?.as_bytes())?));
            }
        }
        // Paths mean nothing in the artifact.
        let settings = artifact::json(&config.without(Self::NOT_IN_KEY))?;
        let mut builder = ArtifactBuilder::new(&context.store, PortType::Env.name(), meta);
        builder.bytes(CONFIG, settings.as_bytes())?;
        for (name, blob) in files {
            builder.blob(name, blob);
        }
        Ok([("env".to_owned(), builder.finish()?)].into())
    }

    fn cached_share(&self, config: &SymbolicConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let task = config.task_config()?;
        let (Some(config), Some(knowledge)) = (task.embedding(), given.optional("knowledge")) else {
            return Ok(None);
        };
        let memo = embedding_memo(&knowledge.artifact, config)?;
        Share::of_memos("embeddings", given, [&memo]).map(Some)
    }
}

/// Returns whether a query of training is one positive atom of a predicate of two arguments with facts in the
/// graph.
fn asks_of_the_graph(base: &KnowledgeBase) -> bool {
    base.asked(Split::Train).any(|(query, is_positive)| match query[..] {
        [predicate, _, _] => is_positive && word::arity(predicate) == 2 && base.relation(predicate).rows > 0,
        _ => false,
    })
}

/// The embedding of a knowledge base, which the environment's other settings do not change.
fn embedding_memo(knowledge: &Artifact, config: &EmbeddingConfig) -> Result<Memo, StageError> {
    let settings = artifact::json(config)?;
    let base = knowledge.entry(artifact::KNOWLEDGE);
    let base = base.map(|entry| entry.blob.as_bytes().as_slice()).unwrap_or_default();
    Ok(Memo::new(
        "env/symbolic embedding v1",
        &[base, settings.as_bytes()],
        "embedding",
    ))
}

/// The file of the embedding by which rewards are shaped.
fn embedding(
    context: &Context,
    knowledge: &Artifact,
    base: &KnowledgeBase,
    config: &EmbeddingConfig,
) -> Result<BlobRef, StageError> {
    context.memo(&embedding_memo(knowledge, config)?, || {
        let mut watch = |epoch: u32| {
            context.progress(epoch.into(), Some(config.epochs.into()), "passes over the facts");
            context.check_cancelled()
        };
        Ok(Embedding::fit(base, config, &mut watch)?.to_bytes())
    })
}

/// The number of queries or problems of each split. Each that has some is opened, so that what cannot be used
/// is refused here. Without any, the error of `train` says what is missing.
fn sizes(
    context: &Context,
    name: &str,
    asks: &dyn Fn(Split) -> bool,
    open: &dyn Fn(Split) -> Result<SymbolicTask, StageError>,
) -> Result<Value, StageError> {
    let is_empty = !Split::ALL.into_iter().any(asks);
    let mut sizes = serde_json::Map::new();
    for split in Split::ALL {
        let size = match asks(split) || is_empty && split == Split::Train {
            true => open(split)?.size(),
            false => 0,
        };
        sizes.insert(split.name().to_owned(), size.into());
    }
    if !asks(Split::Train) {
        context.events.emit(StageEvent::Warning {
            message: format!(
                "there are no {name} of `train`: the environment can be evaluated, not trained in"
            ),
            hint: None,
        });
    }
    Ok(Value::Object(sizes))
}

fn missing(field: String, file: &str) -> ConfigProblem {
    ConfigProblem::new(field, format!("there is no file `{file}`"))
        .hint("paths are relative to the pipeline file")
}

/// A file, or the files of a directory, by name.
fn problem_files(field: &str, given: &str, path: &Path) -> Result<Vec<(String, PathBuf)>, ConfigProblem> {
    let name = |path: &Path| name_of(path.file_name().unwrap_or_default());
    if path.is_file() {
        return Ok(vec![(name(path), path.to_owned())]);
    }
    if !path.is_dir() {
        return Err(missing(field.to_owned(), given));
    }
    let unreadable = |err: std::io::Error| ConfigProblem::new(field, format!("cannot read `{given}`: {err}"));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file()
            && path
                .extension()
                .is_some_and(|ending| ending.eq_ignore_ascii_case(ENDING))
        {
            found.push((name(&path), path));
        }
    }
    match found.is_empty() {
        true => Err(
            ConfigProblem::new(field, format!("the directory `{given}` has no problem"))
                .hint(format!("it is searched for files ending in .{ENDING}")),
        ),
        false => Ok(found),
    }
}

/// The texts of the files.
fn read(context: &Context, rules: &RulesConfig) -> Result<RuleTexts, StageError> {
    let text = |source: &Source| -> Result<String, StageError> {
        let bytes = cache::regular_file::read(&source.path).map_err(|err| unreadable(&source.path, &err))?;
        source.check(BlobRef::of(&bytes).blob)?;
        String::from_utf8(bytes).map_err(|_| {
            StageError::new(format!("`{}` is not UTF-8", source.path.display())).hint("convert it to UTF-8")
        })
    };
    let name = |source: &Source| name_of(source.path.file_name().unwrap_or_default());
    let domain = context.sources.iter().find(|source| source.name == DOMAIN);
    let domain =
        domain.ok_or_else(|| StageError::new(format!("the domain `{}` is not there", rules.domain)))?;
    let problems = |split: Split| -> Result<Vec<(String, String)>, StageError> {
        let is_in_split = |source: &&Source| {
            let rest = source.name.strip_prefix(split.name());
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let sources = context.sources.iter().filter(is_in_split);
        sources.map(|source| Ok((name(source), text(source)?))).collect()
    };
    let [train, valid, test] = Split::ALL.map(problems);
    Ok(RuleTexts {
        domain: (name(domain), text(domain)?),
        problems: [train?, valid?, test?],
    })
}
