//! The stage kind `evaluate/reasoning`.

use super::actor::policies;
use super::config::{ReasoningBaseline, ReasoningConfig};
use super::runs::Runs;
use super::{path_study, proof_study, rule_study};
use crate::env::SymbolicTask;
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, PortType, Ports, Provided,
    StageError, StageKind,
};
use stages_evaluate::{Metrics, store_metrics_with};
use stages_knowledge::artifact;
use std::collections::BTreeMap;

/// The stage kind `evaluate/reasoning`.
pub struct Reasoning;

impl StageKind for Reasoning {
    type Config = ReasoningConfig;
    const NAME: &'static str = "evaluate/reasoning";
    const VERSION: u32 = 3;
    const ABOUT: &'static str =
        "verdicts, ranks or plans of policies over the queries of a split, against baselines";
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort {
                doc: "the environment, of env/symbolic",
                ..InputPort::one("env", PortType::Env)
            },
            InputPort {
                list: true,
                doc: "the policy to evaluate; or several, one for each training seed: `train[*]`, say",
                ..InputPort::one("policy", PortType::Policy)
            },
        ],
        outputs: &[OutputPort {
            name: "metrics",
            ty: PortType::Metrics,
            doc: "the figures with intervals, beside those of each baseline and of the policy with \
                relations exchanged; proofs, paths or plans as `proofs.txt`",
        }],
    };

    fn check(
        &self,
        config: &ReasoningConfig,
        _: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.validate()?;
        Ok(artifact::provided(&Self::PORTS))
    }

    fn reads_test(&self, config: &ReasoningConfig) -> bool {
        config.split == stages_knowledge::Split::Test
    }

    fn run(&self, config: &ReasoningConfig, context: &Context) -> Result<Outputs, StageError> {
        let env = &context.input("env")?.artifact;
        let mut task = SymbolicTask::open(&context.store, env, config.split)?;
        let policies = policies(context, &task.spec())?;
        let embedding = match &task {
            SymbolicTask::Paths(_) if config.has(ReasoningBaseline::Embedding) => {
                task.embedding(&context.store, env)?
            }
            _ => None,
        };
        if config.queries > 0 {
            task = task.thinned(config.queries);
        }
        if !config.candidates.is_empty() && !matches!(task, SymbolicTask::Paths(_)) {
            return Err(StageError::new(format!(
                "`candidates` is a setting of `task: paths`, and this is `{}`",
                format_args!("symbolic/{}", task.name())
            ))
            .hint("remove it"));
        }
        let runs = Runs {
            context,
            config,
            policies: &policies,
            task: &task,
            embedding: embedding.as_ref(),
        };
        let study = match &task {
            SymbolicTask::Proofs(task) => proof_study::study(&runs, task)?,
            SymbolicTask::Paths(task) => path_study::study(&runs, task)?,
            SymbolicTask::Rules(task) => rule_study::study(&runs, task)?,
        };
        let mut metrics = Metrics::default();
        for line in study.measure(config.bootstrap_draws, config.seed, &mut metrics) {
            context.log(line);
        }
        if config.ablations && !runs.can_be_blind() {
            context.log("there is one relation only: whether the policy uses relations was not tested");
        }
        let proofs = study.proofs.join("\n");
        let mut files = vec![("proofs.txt", proofs.as_str())];
        files.extend(study.files.iter().map(|(name, text)| (*name, text.as_str())));
        store_metrics_with(context, metrics, &files)
    }
}
