//! The policies of an account: which one acts as of a night, and the environment that the night's data makes
//! for it.

use super::{Papers, Told};
use crate::data::{self, Data, Given};
use crate::recorded::Recorded;
use crate::stale::Shown;
use crate::{GivenAccount, Settings, Stages, Trained, find_policy, origin, refused};
use cache::{Artifact, ArtifactDigest};
use datasets::{Date, SnapshotTime};
use runner_engine::{Failure, no_temporary_directory};
use runner_history::paper::StandIn;
use runner_history::policies::{Pick, PolicyRef};
use runner_pipeline::Work;
use serde_json::json;
use stages_env::Split;
use stages_evaluate::acting::dates;

/// The files of a night.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The files, each with the stage that reads it; empty if the stages' own files grow.
    pub data: Vec<Given>,
    /// If true, the files replace the stages' own files.
    pub replace: bool,
    /// If true, days may be missing between the history and the files.
    pub allow_gap: bool,
}

/// A policy that acts, with the stages of its environment.
pub(super) struct Acts {
    pub name: StandIn,
    pub trained: Trained,
    recorded: Recorded,
    /// The last date of its training; `None` of a written rule.
    pub trained_until: Option<Date>,
    /// The largest age in days with which it was registered.
    pub max_age: Option<f64>,
}

/// The findings on the data of a night.
pub(super) struct Found {
    pub notes: Vec<String>,
    /// The tables and features that the environment shows.
    pub shown: Shown,
}

impl Papers<'_> {
    /// The version that a name denotes now.
    pub(super) fn version(&self, name: &str) -> Result<StandIn, Failure> {
        let Ok(reference) = PolicyRef::parse(name) else {
            // `latest/train` is another policy tomorrow.
            let archive = self.acting.archive;
            let ((run, stage), (digest, _)) = (origin(archive, name)?, find_policy(archive, name)?);
            return Ok(StandIn {
                name: format!("{}/{}", run.id, stage.id),
                digest,
            });
        };
        let (_, version) = self.registry.get(&reference)?;
        Ok(StandIn {
            name: format!("{}@{}", reference.name, version.version),
            digest: version.digest,
        })
    }

    /// The version that an alias points to as of a night, whose own promotion is included; `None` if it
    /// pointed to none.
    pub(super) fn version_as_of(&self, name: &str, date: Date) -> Result<Option<StandIn>, Failure> {
        let reference = PolicyRef::parse(name)?;
        let found = self.registry.find(&reference, Some(date.plus(1)))?;
        Ok(found.map(|version| StandIn {
            name: format!("{}@{}", reference.name, version.version),
            digest: version.digest,
        }))
    }

    /// True if a name may denote another version tomorrow.
    pub(super) fn follows(name: &str) -> bool {
        PolicyRef::parse(name).is_ok_and(|reference| matches!(reference.pick, Pick::Alias(_)))
    }

    /// A version with the stages of its environment.
    pub(super) fn acts(&self, name: &StandIn) -> Result<Acts, Failure> {
        let archive = self.acting.archive;
        let (run, stage) = origin(archive, &name.name).map_err(|err| {
            err.hint(
                "nights are booked where the runs of the account's policies are: in the home that opened it",
            )
        })?;
        let (digest, policy) = find_policy(archive, &name.name)?;
        if digest != name.digest {
            return Err(Failure::usage(format!(
                "`{}` is another policy than the one that the account was opened with",
                name.name
            ))
            .hint("name policies by a version of the registry: `NAME@3`"));
        }
        let recorded = Recorded::new(self.acting, &run, &stage)?;
        let env = archive.store.artifact(recorded.env_artifact()?)?;
        let trained_until = match policy.rule() {
            Some(_) => None,
            None => dates(&archive.store, &env, Split::Train)?.map(|(_, last)| last),
        };
        let max_age = match PolicyRef::parse(&name.name) {
            Ok(reference) => self.registry.get(&reference)?.1.from.max_age,
            Err(_) => None,
        };
        Ok(Acts {
            name: name.clone(),
            trained: Trained {
                run,
                stage,
                digest,
                policy,
            },
            recorded,
            trained_until,
            max_age: max_age.map(|seconds| seconds as f64 / 86_400.0),
        })
    }

    /// The environment that a policy was trained in.
    pub(super) fn trained_env(&self, acts: &Acts) -> Result<Artifact, Failure> {
        let digest = acts.recorded.env_artifact()?;
        Ok(self.acting.archive.store.artifact(digest)?)
    }

    /// The environment of a policy on the data up to a date, with what was found in the data.
    pub(super) fn environment(
        &self,
        acts: &Acts,
        files: &Files,
        until: Date,
        progress: Told<'_, '_>,
    ) -> Result<(ArtifactDigest, Artifact, Found), Failure> {
        let until = SnapshotTime::of_day(until);
        let logs = tempfile::tempdir().map_err(no_temporary_directory)?;
        let stages = Stages {
            acting: self.acting,
            logs: logs.path(),
        };
        let mut data = match files.data.is_empty() {
            true => Data::own(until),
            false => {
                let settings = Settings {
                    data: files.data.clone(),
                    replace: files.replace,
                    allow_gap: files.allow_gap,
                    account: GivenAccount::default(),
                    at: Some(until),
                    from: None,
                    world: None,
                    sample: None,
                    max_age: None,
                };
                data::resolve(&acts.recorded, &settings, &stages, progress)?
            }
        };
        data.today.check(files.allow_gap)?;
        let mut pipeline = data::with_data(&acts.recorded.pipeline, &data, files.replace, until)?;
        for node in &mut pipeline.nodes {
            if let Work::Kind { kind, config } = &mut node.work
                && kind.name().starts_with("ingest/")
                && config.get("until").is_some()
            {
                config["until"] = json!(until.date.to_string());
            }
        }
        let env = acts.recorded.env;
        let run = stages.run(&pipeline, progress)?;
        if let Some((node, error)) = run.failed.first() {
            return Err(data.today.explained(Failure {
                hint: run.hints.get(node).cloned(),
                ..refused(format!("`{}` failed: {error}", pipeline.nodes[*node].id))
            }));
        }
        let made = run.made.get(&env);
        let made = made.and_then(|(_, outputs)| outputs.get("env").copied());
        let digest = made
            .ok_or_else(|| Failure::machine(format!("`{}` made no environment", pipeline.nodes[env].id)))?;
        let store = &self.acting.archive.store;
        let found = Found {
            notes: [acts.recorded.notes.clone(), data.today.notes].concat(),
            shown: Shown::new(store, &pipeline.nodes[env], &run)?,
        };
        Ok((digest, store.artifact(digest)?, found))
    }
}
