//! The stage `policy/act`, which follows a policy's environment, and the decision that it made.

use super::recorded::graph;
use super::{Acting, Trained};
use cache::{ActionKey, ArtifactDigest};
use runner_engine::{Collected, Failure, StageStatus};
use runner_pipeline::{Earlier, InputRef, Node, Pipeline, Place, Resources, Work};
use serde_json::Value;
use stages_core::{Provided, StageKind as _};
use stages_evaluate::{Decide, DecideConfig};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The ports of the stage.
const ENV: &str = "env";
const POLICY: &str = "policy";
const DECISION: &str = "decision";

/// The action that made a decision.
#[derive(Clone, Debug)]
pub struct MadeDecision {
    /// The key of the action.
    pub key: ActionKey,
    /// The artifact of the decision.
    pub decision: ArtifactDigest,
    /// The settings, with defaults filled in.
    pub config: Value,
    /// The policy, as an output of a run: `RUN/STAGE.OUTPUT`.
    pub policy: String,
    /// `Cached`, or `Ran`.
    pub status: StageStatus,
    /// The duration in seconds.
    pub seconds: f64,
}

impl MadeDecision {
    /// The decision that the node `act` made in a run; `None` if it made none.
    pub(super) fn of(node: &Node, act: usize, run: &mut Collected) -> Option<Self> {
        let (key, outputs) = run.made.remove(&act)?;
        let (status, seconds) = run.ended.remove(&act)?;
        let Work::Kind { config, .. } = &node.work else {
            return None;
        };
        Some(Self {
            key,
            decision: outputs.get(DECISION).copied()?,
            config: Value::clone(config),
            policy: node.earlier.get(POLICY)?.first()?.name.clone(),
            status,
            seconds,
        })
    }
}

/// Appends the stage that decides with a policy in the environment of the node `env`, and returns the index
/// of its node.
pub(super) fn add_act(
    acting: &Acting<'_>,
    pipeline: &mut Pipeline,
    env: usize,
    trained: &Trained,
    config: &DecideConfig,
) -> Result<usize, Failure> {
    let failed =
        |why: String| Failure::machine(format!("the settings of the decision cannot be written: {why}"));
    let config = serde_json::to_value(config).map_err(|err| failed(err.to_string()))?;
    let kind = acting
        .kind(Decide::NAME)
        .ok_or_else(|| failed(format!("there is no `{}`", Decide::NAME)))?;
    let outputs = trained.stage.outputs.iter();
    let output = outputs.filter(|(_, digest)| **digest == trained.digest);
    let output = output.map(|(name, _)| name.as_str()).next().unwrap_or(POLICY);
    let policy = Earlier {
        name: format!("{}/{}.{output}", trained.run.id, trained.stage.id),
        ty: POLICY.to_owned(),
        digest: trained.digest,
    };
    let made_by = &pipeline.nodes[env];
    let env = InputRef {
        node: env,
        output: ENV.to_owned(),
    };
    // The name distinguishes the stage from the stages of the pipeline.
    let id = format!("{} of {}", Decide::NAME, trained.stage.id);
    let ports = kind.ports().outputs.iter();
    let node = Node {
        stage: id.clone(),
        id,
        point: BTreeMap::new(),
        work: Work::Kind {
            kind,
            config: config.into(),
        },
        needs: BTreeMap::from([(ENV.to_owned(), vec![env])]),
        sources: None,
        earlier: BTreeMap::from([(POLICY.to_owned(), vec![policy])]),
        provides: ports
            .map(|port| (port.name.to_owned(), Provided::unknown(port.ty)))
            .collect(),
        resources: Resources::default(),
        retries: 0,
        timeout: None,
        register: None,
        base: Arc::clone(&made_by.base),
        place: Place::default(),
    };
    pipeline.nodes.push(node);
    pipeline.graph = graph(&pipeline.nodes);
    Ok(pipeline.nodes.len() - 1)
}
