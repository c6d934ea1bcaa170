//! `ingest/knowledge_base` as a stage.

use super::config::{Duplicates, KnowledgeBaseConfig, Role};
use super::file::{memo, program};
use super::folder;
use super::quality::findings;
use cache::ArtifactDigest;
use serde_json::json;
use stages_core::{
    ConfigProblem, Context, Given, InputPort, OutputPort, Outputs, PlanContext, PortType, Ports, Provided,
    Share, Source, StageError, StageEvent, StageKind,
};
use stages_knowledge::{BuildError, Builder, Split, artifact};
use std::collections::BTreeMap;
use std::path::Path;

/// `ingest/knowledge_base`.
pub struct KnowledgeBase;

impl StageKind for KnowledgeBase {
    type Config = KnowledgeBaseConfig;
    const NAME: &'static str = "ingest/knowledge_base";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "facts, rules and queries from Prolog or Datalog text, triples, RDF N-Triples";
    const NOT_IN_KEY: &'static [&'static str] = &["folder", "graph", "train", "valid", "test", "negatives"];
    const PORTS: Ports = Ports {
        inputs: &[InputPort {
            optional: true,
            doc: "the knowledge base that is passed on while no folder and no file is named",
            ..InputPort::one("knowledge", PortType::Knowledge)
        }],
        outputs: &[OutputPort {
            name: "knowledge",
            ty: PortType::Knowledge,
            doc: "the facts and rules, indexed, and the queries, with the data-quality table in its metadata",
        }],
    };

    fn check(
        &self,
        config: &KnowledgeBaseConfig,
        plan: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        let is_connected = plan.inputs.get("knowledge").is_some_and(|inputs| !inputs.is_empty());
        if config.names_files() || !is_connected {
            config.validate()?;
            self.sources(config, plan.base)?;
        }
        Ok(artifact::provided(&Self::PORTS))
    }

    fn sources(&self, config: &KnowledgeBaseConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        let mut sources = folder::sources(config, base)?;
        for (field, _, paths) in config.roles() {
            for mut source in paths.find_any(field, base)? {
                source.name = format!("{field}/{}", source.name);
                sources.push(source);
            }
        }
        sources.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
        Ok(sources)
    }

    fn run(&self, config: &KnowledgeBaseConfig, context: &Context) -> Result<Outputs, StageError> {
        if let (false, Some([given])) =
            (config.names_files(), context.inputs.get("knowledge").map(Vec::as_slice))
        {
            return Ok(Outputs::from([("knowledge".to_owned(), given.digest)]));
        }
        config.validate()?;
        context.progress(0, None, "reading");
        let mut builder = Builder::new();
        for (field, role, _) in config.roles() {
            for source in files(&context.sources, field) {
                context.check_cancelled()?;
                let program = program(config, context, source)?;
                let refused = |err: BuildError| refused(err, source);
                match role {
                    Role::Graph => {
                        builder.graph(&source.name, &program).map_err(refused)?;
                        builder.goals(Split::Test, &program).map_err(refused)?;
                    }
                    Role::Queries(_) | Role::Negatives(_) if program.rules().next().is_some() => {
                        return Err(rules_in_queries(field, source));
                    }
                    Role::Queries(split) => {
                        builder.queries(split, &program, false).map_err(refused)?;
                        if split == Split::Train && config.train_in_graph {
                            builder
                                .graph(&source.name, &program.positive_facts())
                                .map_err(refused)?;
                        }
                    }
                    Role::Negatives(split) => builder.queries(split, &program, true).map_err(refused)?,
                }
            }
        }
        context.progress(0, None, "indexing");
        let too_large =
            |err: BuildError| StageError::new(err.to_string()).hint("leave a part of the files out");
        let mut knowledge = builder.finish().map_err(too_large)?;
        let repeated = knowledge.relations.repeated();
        let quality = findings(&knowledge, &repeated, config.duplicates);
        if config.duplicates == Duplicates::Drop && !repeated.is_empty() {
            knowledge = knowledge.without(&repeated).map_err(too_large)?;
        }
        for finding in quality.iter().filter(|finding| finding.action == "kept") {
            context.events.emit(StageEvent::Warning {
                message: format!("{}: {} ({})", finding.rule, finding.rows, finding.about),
                hint: finding.sample.first().map(|example| format!("the first: {example}")),
            });
        }
        let mut meta = artifact::sizes(&knowledge);
        meta["quality"] = json!(quality);
        let base = artifact::put(&context.store, &knowledge)?;
        let digest: ArtifactDigest = artifact::write(&context.store, base, None, meta)?;
        Ok(Outputs::from([("knowledge".to_owned(), digest)]))
    }

    fn cached_share(
        &self,
        config: &KnowledgeBaseConfig,
        given: &Given<'_>,
    ) -> Result<Option<Share>, StageError> {
        if !config.names_files() || given.sources.iter().any(|source| source.remote.is_some()) {
            return Ok(None);
        }
        let memos: Vec<_> = given
            .sources
            .iter()
            .map(|source| Ok(memo(config, given, source)?.0))
            .collect::<Result<_, StageError>>()?;
        Share::of_memos("files", given, &memos).map(Some)
    }
}

/// The files of a field: those of the folder, then in the order of its list; `find` numbers them where there
/// are several.
fn files<'s>(sources: &'s [Source], field: &str) -> Vec<&'s Source> {
    let name = |source: &'s Source| source.name.strip_prefix(field)?.strip_prefix('/');
    let mut files: Vec<(Option<u32>, &Source)> = sources
        .iter()
        .filter_map(|source| {
            let number = name(source)?
                .split_once('/')
                .and_then(|(number, _)| number.parse().ok());
            Some((number, source))
        })
        .collect();
    files.sort_by_key(|&(number, _)| number);
    files.into_iter().map(|(_, source)| source).collect()
}

fn refused(err: BuildError, source: &Source) -> StageError {
    let error = StageError::new(format!("`{}`: {err}", source.name));
    match err {
        BuildError::Negative => error.hint(
            "facts that do not hold are queries: name their file by `train`, `valid`, `test` or `negatives`",
        ),
        BuildError::TooLarge => error.hint("leave a part of the files out"),
    }
}

fn rules_in_queries(field: &str, source: &Source) -> StageError {
    StageError::new(format!(
        "`{}` has rules, or facts with variables, among the queries",
        source.name
    ))
    .hint(format!(
        "name its file by `graph`; `{field}` takes facts and goals, `?- p(X).`"
    ))
}
