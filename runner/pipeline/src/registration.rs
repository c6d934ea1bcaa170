//! `register:`, the name under which a stage's policy is registered when its run has ended.

use super::document::Stage;
use super::problems::Problems;
use super::suggest::suggest;
use super::tree::{Tree, Value};
use super::units::is_name;
use super::{Node, Register};
use stages_core::PortType;
use std::collections::BTreeMap;

const REGISTER: &str = "write `register: NAME`, or `register: { policy: NAME, alias: challenger }`";

/// Reads that of a stage into its node.
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
        None => fields(tree, &["policy", "alias"], REGISTER, problems)?,
    };
    let policy = name(&fields, "policy", tree, REGISTER, problems)?;
    let alias = match fields.contains_key("alias") {
        true => Some(name(&fields, "alias", tree, REGISTER, problems)?),
        false => None,
    };
    if !makes_policy(node) {
        problems.add(
            tree.spot,
            format!("`{}` makes no policy, or several, that could be registered", node.stage),
            "put `register:` to the training",
        );
        return None;
    }
    Some(Register { policy, alias })
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

fn name(fields: &BTreeMap<&str, &Tree>, key: &str, tree: &Tree, form: &str, problems: &mut Problems) -> Option<String> {
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
