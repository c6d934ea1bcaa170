//! `register:`, the name under which a stage's policy is registered when its run has ended, and `promote:`,
//! the alias that is moved to the policy depending on a verdict.

use crate::stage::Stage;
use crate::text::{Block, Name, Problems, TextOr, Tree, list, suggest};
use crate::{First, Forward, Node, Promote, Register, Work};
use schemars::JsonSchema;
use serde::Deserialize;
use stages_core::PortType;
use std::collections::BTreeSet;

/// The alias that `promote:` moves by default.
pub(crate) const CHAMPION: &str = "champion";

/// The alias of the policy under test by `forward:`.
pub const CANDIDATE: &str = "candidate";

/// The alias that a run points to the policy that it registered: where a verdict says that it is better, or
/// where nothing has the alias yet.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromoteForm {
    /// The name of `register:` of a training.
    policy: Name,
    /// A stage `evaluate/compare` with `verdict:`, whose `agent` is the backtest of that training.
    stage: Name,
    /// The alias; `champion` by default.
    alias: Option<Name>,
    /// The policies that may be the first.
    #[serde(default)]
    first: First,
    /// The evidence of a paper account that a policy needs beyond the verdict.
    forward: Option<Forward>,
}

/// Reads the `register:` of a stage into its node, which must produce exactly one policy.
pub(crate) fn resolve(stage: &Stage, node: &mut Node, problems: &mut Problems) {
    let Some(tree) = &stage.register else { return };
    let read = Block::of("register").read(tree, tree, problems);
    node.register = read.map(|register| match register {
        TextOr::Map(register) => register,
        TextOr::Text(policy) => Register {
            policy,
            alias: None,
            max_age: None,
        },
    });
    let policies = node
        .provides
        .values()
        .filter(|provided| provided.ty == PortType::Policy);
    if node.register.is_some() && policies.count() != 1 {
        let message = format!("`{}` gives no policy to register, or more than one", node.stage);
        problems.add(tree.spot, message, "put `register:` on the training stage");
    }
}

/// Reads `promote:`; `None` if it has errors.
pub(crate) fn promote(tree: &Tree, nodes: &[Node], problems: &mut Problems) -> Option<Promote> {
    let form: PromoteForm = Block::of("promote").read(tree, tree, problems)?;
    let (Name(policy), Name(stage)) = (form.policy, form.stage);
    let alias = form.alias.map_or_else(|| CHAMPION.to_owned(), |Name(alias)| alias);
    if form.forward.is_some() && alias == CANDIDATE {
        let hint = "`candidate` is the policy under test: promote another alias";
        return problems.fail(tree.spot, "`forward` promotes `candidate` to itself", hint);
    }
    let at = |key: &str| tree.entry(key).map_or(tree.spot, |(_, value)| value.spot);
    let is_of_policy = |node: &&Node| {
        node.register
            .as_ref()
            .is_some_and(|register| register.policy.0 == policy)
    };
    let registered: Vec<&Node> = nodes.iter().filter(is_of_policy).collect();
    let [registered] = registered.as_slice() else {
        let message = match registered.len() {
            0 => format!("no stage registers a policy `{policy}`"),
            several => format!("{several} stages register a policy `{policy}`, but a verdict is about one"),
        };
        return problems.fail(
            at("policy"),
            message,
            format!("write `register: {policy}` in one training"),
        );
    };
    let judges: Vec<usize> = (0..nodes.len()).filter(|&i| nodes[i].stage == stage).collect();
    let [judge] = judges.as_slice() else {
        let stages: BTreeSet<&str> = nodes.iter().map(|node| node.stage.as_str()).collect();
        let (message, hint) = match judges.len() {
            0 => (
                format!("the pipeline has no stage `{stage}`"),
                suggest(&stage, "stages", stages),
            ),
            several => (
                format!("`{stage}` has {several} points, each with a verdict of its own"),
                "name a stage that is not a matrix".to_owned(),
            ),
        };
        return problems.fail(at("stage"), message, hint);
    };
    let node = &nodes[*judge];
    let gives_verdict = match &node.work {
        Work::Kind { config, .. } => config.get("verdict").is_some_and(|verdict| !verdict.is_null()),
        // The outputs of a program are known only once it has run.
        Work::Command(_) => node.provides.values().any(|provided| provided.ty == PortType::Metrics),
    };
    if !gives_verdict {
        return problems.fail(
            at("stage"),
            format!("`{stage}` gives no verdict"),
            "name a stage `evaluate/compare` with `verdict: {}` below `with:`",
        );
    }
    if !is_judged(nodes, *judge, &registered.id) {
        let ports: Vec<&str> = node.needs.keys().map(String::as_str).collect();
        return problems.fail(
            at("stage"),
            format!("the verdict of `{stage}` is not on the policy of `{}`", registered.id),
            format!(
                "backtest that policy, and give its trajectory as `agent`; the inputs here are {}",
                list(ports)
            ),
        );
    }
    Some(Promote {
        policy,
        alias,
        registered: registered.id.clone(),
        verdict: node.id.clone(),
        first: form.first,
        forward: form.forward,
    })
}

/// True if the node `judge` judges the node `of`: its input `agent`, or any input if it has none, comes from
/// it.
fn is_judged(nodes: &[Node], judge: usize, of: &str) -> bool {
    let needs = &nodes[judge].needs;
    let agents = needs.get("agent").map(std::slice::from_ref);
    let first = agents.map_or_else(
        || needs.values().flatten().collect::<Vec<_>>(),
        |agent| agent.iter().flatten().collect(),
    );
    let mut left: Vec<usize> = first.into_iter().map(|need| need.node).collect();
    let mut seen = BTreeSet::new();
    while let Some(node) = left.pop() {
        if nodes[node].id == of {
            return true;
        }
        if seen.insert(node) {
            left.extend(nodes[node].needs.values().flatten().map(|need| need.node));
        }
    }
    false
}
