//! Applies the `register:` of a run's stages, and the pipeline's `promote:`, when the run has ended.

use super::file::{Registry, Rules};
use super::forward::Evidence;
use super::model::{Judged, Registration, Verdict, Version};
use crate::{Run, StageRun, figures};
use cache::{ArtifactDigest, Store};
use chrono::{DateTime, Utc};
use datasets::Date;
use runner_engine::{Failure, RunStatus, StageStatus, exit};
use runner_pipeline::{Name, Pipeline, Promote};
use stages_core::PortType;
use std::collections::HashMap;
use std::time::SystemTime;

/// A policy that a run registered.
#[derive(Clone, Debug, PartialEq)]
pub struct Registered {
    /// The policy's name.
    pub policy: String,
    /// The policy's version: a new one, or the existing one if the same policy was registered before.
    pub version: Version,
}

/// The changes that a run made to the registry.
#[derive(Debug)]
pub struct Concluded {
    /// The policies that the run registered.
    pub registered: Result<Vec<Registered>, Failure>,
    /// The verdict on one of the registered policies.
    pub judged: Result<Option<Judged>, Failure>,
}

/// Concludes a run that has ended and is in the history: registers its policies, and judges them.
pub fn conclude(pipeline: &Pipeline, run: &Run, store: &Store) -> Concluded {
    let (registry, now) = (Registry::new(store.root()), SystemTime::now().into());
    let registered = register(&registry, pipeline, run, now);
    let judged = match (&registered, &pipeline.promote) {
        (Ok(registered), Some(by)) => promote(&registry, by, registered, run, store, now),
        _ => Ok(None),
    };
    Concluded { registered, judged }
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
    // A sweep may register many policies.
    let is_any = pipeline.nodes.iter().any(|node| node.register.is_some());
    let stages = run.stages.iter().filter(|_| is_any);
    let stages: HashMap<&str, &StageRun> = stages.map(|stage| (stage.id.as_str(), stage)).collect();
    for node in &pipeline.nodes {
        let Some(register) = &node.register else { continue };
        let Some(&stage) = stages.get(node.id.as_str()) else {
            continue;
        };
        let Some((output, digest)) = output(stage, PortType::Policy) else {
            continue;
        };
        let from = Registration {
            run: run.id.clone(),
            output: format!("{}.{output}", stage.id),
            key: stage.key,
            as_of: as_of(run),
            max_age: register.max_age.map(|age| age.as_secs()),
        };
        let alias = register.alias.as_ref().map(|Name(alias)| alias.as_str());
        registered.push(Registered {
            policy: register.policy.0.clone(),
            version: registry.register(&register.policy.0, digest, from, alias, now)?,
        });
    }
    Ok(registered)
}

/// The output of type `ty` of a stage that succeeded.
fn output(stage: &StageRun, ty: PortType) -> Option<(&str, ArtifactDigest)> {
    if !matches!(stage.status, Some(StageStatus::Ran | StageStatus::Cached)) {
        return None;
    }
    let mut fitting = stage.types.iter().filter(|(_, of)| **of == ty.name());
    fitting.find_map(|(name, _)| Some((name.as_str(), *stage.outputs.get(name)?)))
}

/// The scheduled date of a run.
fn as_of(run: &Run) -> Option<Date> {
    run.night.as_deref().and_then(|night| night.get(..10)?.parse().ok())
}

/// The figures of a verdict that the registry stores.
const KEPT: &str = "verdict trials steps difference/log_return difference/log_return_low \
                    difference/log_return_high difference/probabilistic_sharpe difference/deflated_sharpe \
                    agent/max_drawdown agent/costs agent/blind";

/// Records the verdict of a run on the policy that it registered, and moves the alias accordingly; `None` if
/// the run is not done, did not register the policy, or did not run the stage that gives the verdict.
///
/// # Errors
/// If the stage's metrics have no verdict, or the registry cannot be read or written.
pub fn promote(
    registry: &Registry,
    promote: &Promote,
    registered: &[Registered],
    run: &Run,
    store: &Store,
    now: DateTime<Utc>,
) -> Result<Option<Judged>, Failure> {
    if run.status != RunStatus::Done {
        return Ok(None);
    }
    let Some(new) = registered.iter().find(|new| new.policy == promote.policy) else {
        return Ok(None);
    };
    let Some(stage) = run.stage(&promote.verdict) else {
        return Ok(None);
    };
    let Some((_, artifact)) = output(stage, PortType::Metrics) else {
        return Ok(None);
    };
    let figures = figures::summary_of(&store.artifact(artifact)?);
    let verdict = figures.get("verdict").copied().and_then(Verdict::from_number);
    let verdict = verdict.ok_or_else(|| {
        Failure::new(
            exit::STAGE_FAILED,
            format!(
                "the metrics of `{}` have no verdict, and `{}` stays where it is",
                stage.id, promote.alias
            ),
        )
        .hint("a metric `verdict` is 1 for better, -1 for worse and 0 for noise")
    })?;
    let judged = Judged {
        version: new.version.version,
        alias: promote.alias.clone(),
        against: None,
        verdict,
        moved: false,
        run: run.id.clone(),
        stage: stage.id.clone(),
        artifact,
        as_of: as_of(run),
        time: now,
        figures: KEPT
            .split(' ')
            .filter_map(|name| Some((name.to_owned(), *figures.get(name)?)))
            .collect(),
        forward: None,
    };
    let forward = promote.forward.as_ref();
    let evidence = forward.map(|forward| Evidence::read(store.root(), forward, judged.as_of));
    let evidence = evidence.transpose()?;
    let rules = Rules {
        first: promote.first,
        forward: evidence.as_ref(),
    };
    registry.judge(&promote.policy, judged, &rules).map(Some)
}
