//! `register:`, the name under which a stage's policy is registered when its run has ended, and `promote:`,
//! the alias that is moved to it by a verdict.

use crate::stage::written::Stage;
use crate::text::problems::Problems;
use crate::text::suggest::{list, suggest};
use crate::text::tree::{Tree, Value};
use crate::text::units::{duration, is_name};
use crate::{Node, Promote, Register, Work};
use stages_core::PortType;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const REGISTER: &str = "write `register: NAME`, or `register: { policy: NAME, alias: challenger }`";

const PROMOTE: &str = "write `promote: { policy: NAME, stage: STAGE }`, with the name of `register:` and a \
    stage `evaluate/compare` with `verdict:`";

/// The alias that is moved where a pipeline says nothing else.
pub(crate) const CHAMPION: &str = "champion";

/// Reads `register:` of a stage into its node.
pub(crate) fn resolve(stage: &Stage, node: &mut Node, problems: &mut Problems) {
    if let Some(tree) = &stage.register {
        node.register = register(tree, node, problems);
    }
}

/// True if a node makes one policy.
fn makes_policy(node: &Node) -> bool {
    node.provides
        .values()
        .filter(|provided| provided.ty == PortType::Policy)
        .count()
        == 1
}

fn register(tree: &Tree, node: &Node, problems: &mut Problems) -> Option<Register> {
    let fields = match tree.text() {
        Some(_) => BTreeMap::from([("policy", tree)]),
        None => fields(tree, &["policy", "alias", "max_age"], REGISTER, problems)?,
    };
    let policy = name(&fields, "policy", tree, REGISTER, problems)?;
    let alias = match fields.contains_key("alias") {
        true => Some(name(&fields, "alias", tree, REGISTER, problems)?),
        false => None,
    };
    let max_age = match fields.get("max_age") {
        Some(value) => Some(age(value, problems)?),
        None => None,
    };
    if !makes_policy(node) {
        problems.add(
            tree.spot,
            format!("`{}` makes no policy, or several, that could be registered", node.stage),
            "put `register:` to the training",
        );
        return None;
    }
    Some(Register {
        policy,
        alias,
        max_age,
    })
}

fn age(value: &Tree, problems: &mut Problems) -> Option<Duration> {
    let age = value.text().and_then(duration);
    if age.is_none() {
        let message = format!("`max_age` is {}, not a duration", value.describe());
        problems.add(value.spot, message, "give a duration with its unit, such as `30d`");
    }
    age
}

/// Reads `promote:`; `None` if it has errors.
pub(crate) fn promote(tree: &Tree, nodes: &[Node], problems: &mut Problems) -> Option<Promote> {
    let fields = fields(tree, &["policy", "stage", "alias"], PROMOTE, problems)?;
    let policy = name(&fields, "policy", tree, PROMOTE, problems)?;
    let stage = name(&fields, "stage", tree, PROMOTE, problems)?;
    let alias = match fields.contains_key("alias") {
        true => name(&fields, "alias", tree, PROMOTE, problems)?,
        false => CHAMPION.to_owned(),
    };
    let at = |key: &str| fields.get(key).map_or(tree.spot, |value| value.spot);
    let is_of_policy =
        |node: &&Node| node.register.as_ref().is_some_and(|register| register.policy == policy);
    let registered: Vec<&Node> = nodes.iter().filter(is_of_policy).collect();
    let [registered] = registered.as_slice() else {
        let message = match registered.len() {
            0 => format!("no stage registers a policy `{policy}`"),
            several => format!("{several} stages register a policy `{policy}`, and a verdict is on one"),
        };
        problems.add(
            at("policy"),
            message,
            format!("write `register: {policy}` in one training"),
        );
        return None;
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
                "name a stage that is no matrix".to_owned(),
            ),
        };
        problems.add(at("stage"), message, hint);
        return None;
    };
    let node = &nodes[*judge];
    let gives_verdict = match &node.work {
        Work::Kind { config, .. } => config.get("verdict").is_some_and(|verdict| !verdict.is_null()),
        // What a program writes is known only when it has run.
        Work::Command(_) => node.provides.values().any(|provided| provided.ty == PortType::Metrics),
    };
    if !gives_verdict {
        problems.add(
            at("stage"),
            format!("`{stage}` gives no verdict"),
            "name a stage `evaluate/compare` with `verdict: {}` below `with:`",
        );
        return None;
    }
    if !is_judged(nodes, *judge, &registered.id) {
        let ports: Vec<&str> = node.needs.keys().map(String::as_str).collect();
        problems.add(
            at("stage"),
            format!("the verdict of `{stage}` is not on the policy of `{}`", registered.id),
            format!(
                "backtest that policy, and give its trajectory as `agent`; the inputs here are {}",
                list(ports)
            ),
        );
        return None;
    }
    Some(Promote {
        policy,
        alias,
        registered: registered.id.clone(),
        verdict: node.id.clone(),
    })
}

/// True if what a node judges, its input `agent` if it has one, comes from the node `of`.
fn is_judged(nodes: &[Node], judge: usize, of: &str) -> bool {
    let needs = &nodes[judge].needs;
    let of_agent = needs.get("agent").map(std::slice::from_ref);
    let first = of_agent.map_or_else(
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

/// The fields of a map with these keys.
fn fields<'t>(
    tree: &'t Tree,
    known: &[&str],
    form: &str,
    problems: &mut Problems,
) -> Option<BTreeMap<&'t str, &'t Tree>> {
    let Value::Map(entries) = &tree.value else {
        problems.add(tree.spot, format!("expected a map, found {}", tree.describe()), form);
        return None;
    };
    if let Some((key, _)) = entries.iter().find(|(key, _)| !known.contains(&key.name.as_str())) {
        let hint = suggest(&key.name, "keys", known.iter().copied());
        problems.add(key.spot, format!("unknown key `{}`", key.name), hint);
        return None;
    }
    Some(entries.iter().map(|(key, value)| (key.name.as_str(), value)).collect())
}

fn name(
    fields: &BTreeMap<&str, &Tree>,
    key: &str,
    tree: &Tree,
    form: &str,
    problems: &mut Problems,
) -> Option<String> {
    match fields.get(key).map(|value| (value, value.text())) {
        Some((_, Some(text))) if is_name(text) => Some(text.to_owned()),
        Some((value, _)) => {
            let message = format!("`{key}` is {}, not a name", value.describe());
            problems.add(
                value.spot,
                message,
                "a name is letters, digits, `_` and `-`, and begins with a letter",
            );
            None
        }
        None => {
            problems.add(tree.spot, format!("`{key}` is missing"), form);
            None
        }
    }
}
