//! `register:` of the stages of a run that has ended.

use super::file::Registry;
use super::model::{Registration, Version};
use crate::Run;
use chrono::{DateTime, Utc};
use runner_engine::{Failure, StageStatus};
use runner_pipeline::Pipeline;
use stages_core::PortType;

/// A policy that a run registered.
#[derive(Clone, Debug, PartialEq)]
pub struct Registered {
    /// Its name.
    pub policy: String,
    /// Its version: a new one, or that which the same policy had before.
    pub version: Version,
}

/// Registers the policies of the stages that ask for it and succeeded, in their order.
///
/// # Errors
/// If the registry cannot be read or written.
pub fn register(
    registry: &Registry,
    pipeline: &Pipeline,
    run: &Run,
    now: DateTime<Utc>,
) -> Result<Vec<Registered>, Failure> {
    let mut registered = Vec::new();
    for node in &pipeline.nodes {
        let (Some(register), Some(stage)) = (&node.register, run.stage(&node.id)) else {
            continue;
        };
        if !matches!(stage.status, Some(StageStatus::Ran | StageStatus::Cached)) {
            continue;
        }
        let mut policies = stage.types.iter().filter(|(_, ty)| **ty == PortType::Policy.name());
        let Some((output, digest)) = policies.find_map(|(name, _)| Some((name, *stage.outputs.get(name)?))) else {
            continue;
        };
        let from = Registration {
            run: run.id.clone(),
            output: format!("{}.{output}", stage.id),
            key: stage.key,
            as_of: run.night.as_deref().and_then(|night| night.get(..10)?.parse().ok()),
        };
        registered.push(Registered {
            policy: register.policy.clone(),
            version: registry.register(&register.policy, digest, from, register.alias.as_deref(), now)?,
        });
    }
    Ok(registered)
}
