//! Tables of features: by symbol, or by contract, row by row beside a chain.

use crate::error::{ConfigProblem, StageError};
use crate::input::Input;
use crate::port::{PlanContext, PortType, Ports, Provided};
use cache::Artifact;
use datasets::schema::CONTRACT;
use std::collections::BTreeMap;

/// The value of `by` in the metadata of features by contract.
pub const BY_CONTRACT: &str = "contract";

/// Returns whether an artifact holds features by contract.
pub fn is_by_contract(artifact: &Artifact) -> bool {
    artifact.meta["by"] == BY_CONTRACT
}

fn will_be_by_contract(provided: &Provided) -> bool {
    let columns = provided.columns.as_ref();
    columns.is_some_and(|columns| CONTRACT.iter().all(|key| columns.contains(key.name)))
}

fn refused(port: &str) -> String {
    format!("the features at `{port}` are by contract, and taken by symbol")
}

const HINT: &str = "`env/options` observes them, at its input `features`";

/// The feature ports that take only features by symbol, that is, all but those named in `takes_contracts`.
fn by_symbol(ports: Ports, takes_contracts: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    let of_features = ports.inputs.iter().filter(|port| port.ty == PortType::Features);
    of_features
        .map(|port| port.name)
        .filter(|name| !takes_contracts.contains(name))
}

/// Refuses features by contract at ports that take features by symbol only, as far as the columns are known
/// at plan time.
pub(crate) fn check(
    ports: Ports,
    takes_contracts: &'static [&'static str],
    plan: &PlanContext,
) -> Result<(), ConfigProblem> {
    let is_refused = |port: &&str| plan.inputs.get(*port).into_iter().flatten().any(will_be_by_contract);
    match by_symbol(ports, takes_contracts).find(is_refused) {
        Some(port) => Err(ConfigProblem::new("", refused(port)).hint(HINT)),
        None => Ok(()),
    }
}

/// Refuses artifacts of features by contract at ports that take features by symbol only.
pub(crate) fn check_inputs(
    ports: Ports,
    takes_contracts: &'static [&'static str],
    inputs: &BTreeMap<String, Vec<Input>>,
) -> Result<(), StageError> {
    let is_refused = |port: &&str| {
        inputs
            .get(*port)
            .into_iter()
            .flatten()
            .any(|input| is_by_contract(&input.artifact))
    };
    match by_symbol(ports, takes_contracts).find(is_refused) {
        Some(port) => Err(StageError::new(refused(port)).hint(HINT)),
        None => Ok(()),
    }
}
