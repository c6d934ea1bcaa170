//! The stage kind `evaluate/reasoning`.

use super::actor::{Actor, policies};
use super::config::{ReasoningBaseline, ReasoningConfig};
use super::play::Score;
use super::{path_study, proof_study, rule_study};
use crate::env::SymbolicTask;
use crate::env::embedding::Embedding;
use rayon::prelude::*;
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, PortType, Ports, Provided,
    StageError, StageKind,
};
use stages_evaluate::{Metrics, store_metrics_with};
use stages_knowledge::artifact;
use stages_policy::Policy;
use std::collections::BTreeMap;

/// Environments that are played together: the same number whatever the machine, as sampled actions depend on
/// it.
pub(super) const ENVS: usize = 64;

/// The stage kind `evaluate/reasoning`.
pub struct Reasoning;

impl StageKind for Reasoning {
    type Config = ReasoningConfig;
    const NAME: &'static str = "evaluate/reasoning";
    const VERSION: u32 = 1;
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

/// The runs of policies over a task.
pub(super) struct Runs<'a> {
    pub context: &'a Context,
    pub config: &'a ReasoningConfig,
    policies: &'a [Policy],
    task: &'a SymbolicTask,
    /// The embedding that shaped the rewards of training.
    pub embedding: Option<&'a Embedding>,
}

impl Runs<'_> {
    /// Returns whether there are relations to exchange.
    fn can_be_blind(&self) -> bool {
        self.task.vocabulary().predicates > 1
    }

    /// The results of `run` for each policy unchanged, and for each with relations exchanged, where that is
    /// tested.
    pub(super) fn all<T: Send>(
        &self,
        run: impl Fn(&mut Score) -> Result<T, StageError> + Sync,
    ) -> Result<(Vec<T>, Vec<T>), StageError> {
        let is_tested = self.config.ablations && self.can_be_blind();
        let blind = is_tested.then(|| Some((self.task.vocabulary(), self.config.seed)));
        let views: Vec<_> = [None].into_iter().chain(blind).collect();
        let runs: Vec<_> = views
            .iter()
            .flat_map(|view| self.policies.iter().map(move |policy| (policy, *view)))
            .collect();
        let one = |(policy, view)| {
            let mut actor = Actor::new(self.context, policy, view);
            run(&mut |batch, from, logits| actor.score(batch, from, logits))
        };
        let mut results: Vec<T> = runs.into_par_iter().map(one).collect::<Result<_, _>>()?;
        let blind = results.split_off(self.policies.len());
        Ok((results, blind))
    }
}
