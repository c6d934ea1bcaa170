//! Today's decision of a policy, based on today's files: the stages between the files and the policy's
//! environment run again on the new files, and the policy decides at the last snapshot of the result.
//! `docs/guides/act.md` describes the method.

mod account;
mod data;
mod find;
mod made;
pub mod paper;
mod recorded;
mod stale;
mod today;

pub use account::{GivenAccount, account};
pub use data::Given;
pub use find::find_policy;
pub use made::MadeDecision;

use cache::ArtifactDigest;
use datasets::{Date, SnapshotTime};
use made::add_act;
use recorded::Recorded;
use runner_engine::{Collected, Control, Failure, Options, Progress, exit, no_temporary_directory, text};
use runner_history::named::{self, Named};
use runner_history::{Archive, Run, StageRun};
use runner_pipeline::Pipeline;
use serde::Serialize;
use stages_core::AnyStage;
use stages_core::typed_output::FileType;
use stages_env::Split;
use stages_evaluate::acting::{Acted, dates};
use stages_evaluate::{DecideConfig, Decided};
use stages_policy::AnyPolicy;
use stale::Shown;
use std::path::Path;
use std::time::Duration;
use today::Today;

/// The requirements of a decision: the archive of the policy, and the settings with which stages are run.
pub struct Acting<'a> {
    /// The store and the history that hold the policy.
    pub archive: &'a Archive,
    /// The stage kinds.
    pub kinds: &'static [Box<dyn AnyStage>],
    /// The types of the files written by programs that crates other than `stages-core` validate.
    pub file_types: &'static [FileType],
    /// The options of the runs of a pipeline's stages.
    pub options: &'a dyn Fn(&Pipeline) -> Result<Options, Failure>,
    /// Reads a pipeline file.
    pub load: &'a dyn Fn(&Path) -> Result<Pipeline, Failure>,
    /// The cancellation of the runs.
    pub control: &'a Control,
}

impl Acting<'_> {
    /// The stage kind called `name`.
    fn kind(&self, name: &str) -> Option<&'static dyn AnyStage> {
        let mut kinds = self.kinds.iter();
        kinds.find(|kind| kind.name() == name).map(AsRef::as_ref)
    }
}

/// The settings of a decision.
pub struct Settings {
    /// The files, each with the stage that reads it.
    pub data: Vec<Given>,
    /// If true, the files replace the stages' own files.
    pub replace: bool,
    /// If true, days may be missing between the history and the files.
    pub allow_gap: bool,
    /// The account for which the decision is made.
    pub account: GivenAccount,
    /// The moment of the decision; if `None`, the last moment in the files.
    pub at: Option<SnapshotTime>,
    /// The date from which the policy plays; if `None`, the first test date of its environment.
    pub from: Option<Date>,
    /// The world in which to decide, if the environment has several.
    pub world: Option<String>,
    /// The seed for drawing the action.
    pub sample: Option<u64>,
    /// The maximum time between the end of training and the decision.
    pub max_age: Option<MaxAge>,
}

/// A limit on a policy's age.
pub struct MaxAge {
    /// The maximum age.
    pub age: Duration,
    /// The option that set the limit, or the registry.
    pub named: String,
}

/// The policy that decided.
#[derive(Debug, Serialize)]
pub struct Decider {
    /// The run that trained the policy.
    pub run: String,
    /// The stage that trained the policy.
    pub stage: String,
    /// The artifact of the policy.
    pub digest: ArtifactDigest,
    /// The stage kind that trained the policy.
    pub kind: String,
    /// The last date of the training data.
    pub trained_until: Option<Date>,
    /// The number of days from the last training date to the decision.
    pub age_days: Option<i32>,
}

/// A decision, as it is printed.
#[derive(Debug, Serialize)]
pub struct Decision {
    /// The policy that decided.
    pub policy: Decider,
    /// The artifact of the decision.
    pub artifact: ArtifactDigest,
    /// The artifact of the environment built from the files.
    pub environment: ArtifactDigest,
    /// The last moment in the files.
    pub data_until: String,
    /// The action, its orders and the account.
    #[serde(flatten)]
    pub acted: Acted,
    /// Notes about the decision, for people.
    pub notes: Vec<String>,
    /// The action that made the decision.
    #[serde(skip)]
    pub made: MadeDecision,
}

/// A policy in the run that trained it.
pub struct Trained {
    /// The run.
    pub run: Run,
    /// The stage that trained the policy.
    pub stage: StageRun,
    /// The artifact of the policy.
    pub digest: ArtifactDigest,
    /// The policy itself.
    pub policy: AnyPolicy,
}

/// Finds the run and the stage that produced a policy.
///
/// # Errors
/// If the name denotes no stage of a run.
pub fn origin(archive: &Archive, name: &str) -> Result<(Run, StageRun), Failure> {
    match named::find(archive, name)? {
        Named::Stage(run, stage) | Named::Artifact(_, Some((run, stage, _))) => Ok((*run, *stage)),
        Named::Artifact(_, None) | Named::Run(_) => Err(Failure::usage(format!(
            "`{name}` is not a stage of a run, whose record has the pipeline"
        ))
        .hint("give RUN/STAGE of a training; `runner runs` lists the runs")),
    }
}

/// Makes a decision.
///
/// # Errors
/// If the files or the age of the policy do not allow a decision, or a stage fails.
pub fn decide(
    acting: &Acting<'_>,
    trained: &Trained,
    settings: &Settings,
    progress: &mut Progress<'_>,
) -> Result<Decision, Failure> {
    let archive = acting.archive;
    let Trained {
        run, stage, policy, ..
    } = trained;
    let recorded = Recorded::new(acting, run, stage)?;
    let trained_env = recorded.env_artifact()?;
    let trained_env = archive.store.artifact(trained_env)?;
    // A written rule has learned from no dates.
    let trained_until = match policy.rule() {
        Some(_) => None,
        None => dates(&archive.store, &trained_env, Split::Train)?.map(|(_, last)| last),
    };
    let logs = tempfile::tempdir().map_err(no_temporary_directory)?;
    let runs = Stages {
        acting,
        logs: logs.path(),
    };
    let mut data = data::resolve(&recorded, settings, &runs, progress)?;
    let until = settings.at.unwrap_or(data.until);
    if let Some(trained) = trained_until
        && until.date <= trained
    {
        return Err(refused(format!(
            "the decision would be of {until}, and the policy was trained on dates until {trained}"
        ))
        .hint("give files that go on after them; `evaluate/backtest` judges a policy on past dates"));
    }
    let age = trained_until.map(|trained| until.date.0 - trained.0);
    if let (Some(age), Some(most)) = (age, &settings.max_age)
        && i64::from(age) * 86_400 > most.age.as_secs() as i64
    {
        return Err(refused(format!(
            "the policy is too old: it was trained on dates until {}, {age} days before {until}, and {} is \
            {} days",
            until.date.plus(-age),
            most.named,
            most.age.as_secs() / 86_400
        ))
        .hint("train it on newer dates, or give a greater `--max-age`"));
    }
    data.today.check(settings.allow_gap)?;
    let mut pipeline = data::with_data(&recorded.pipeline, &data, settings.replace, until)?;
    let GivenAccount {
        kind: account,
        holdings,
        after,
    } = settings.account.clone();
    let config = DecideConfig {
        at: Some(until),
        world: settings.world.clone(),
        from: match settings.from {
            None => dates(&archive.store, &trained_env, Split::Test)?.map(|(first, _)| first),
            from => from,
        },
        account,
        holdings,
        after,
        sample: settings.sample,
    };
    let act = add_act(acting, &mut pipeline, recorded.env, trained, &config)?;
    let (made, shown) = runs.decision(&pipeline, (act, recorded.env), &data.today, progress)?;
    let Decided {
        environment, acted, ..
    } = Decided::read(&archive.store, &archive.store.artifact(made.decision)?)?;
    if acted.date != until.date && settings.at.is_none() {
        return Err(Failure {
            causes: data.today.notes,
            ..refused(format!(
                "the files go to {until}, and the last snapshot that can be traded on is of {}",
                acted.time
            ))
        }
        .hint(
            "the market may be closed on that day, its underlying or a price may have no quote, or \
            another source may end before it; `--at DATE` decides on an earlier one",
        ));
    }
    let observation = &policy.spec().observation;
    let stale = shown.stale(&archive.store, observation, &acted.world, (&acted.time, acted.date))?;
    let notes = [recorded.notes, data.today.notes, stale, filled(&acted)].concat();
    Ok(Decision {
        policy: Decider {
            run: run.id.clone(),
            stage: stage.id.clone(),
            digest: trained.digest,
            kind: policy.kind().to_owned(),
            trained_until,
            age_days: age,
        },
        artifact: made.decision,
        environment,
        data_until: data.until.to_string(),
        acted,
        notes,
        made,
    })
}

/// The notes on an earlier decision whose orders are taken as filled.
fn filled(acted: &Acted) -> Vec<String> {
    let Some(filled) = &acted.filled else {
        return Vec::new();
    };
    let mut notes = vec![format!(
        "the orders of {} are taken as filled by the environment's rules; `--as-is` leaves them out",
        filled.time
    )];
    if filled.skipped > 0 {
        notes.push(format!(
            "nothing was decided at {} after it: interest, dividends and settlements there are not in the \
            account",
            text::count(filled.skipped, "snapshot")
        ));
    }
    notes
}

/// The error if the files or the policy's age do not allow a decision.
fn refused(message: String) -> Failure {
    Failure::new(exit::STAGE_FAILED, message)
}

/// Runs stages in the store, without a record.
struct Stages<'a> {
    acting: &'a Acting<'a>,
    logs: &'a Path,
}

impl Stages<'_> {
    /// Runs all nodes of a pipeline. Failures are part of the result.
    fn run(&self, pipeline: &Pipeline, progress: &mut Progress<'_>) -> Result<Collected, Failure> {
        let options = Options {
            logs: self.logs.to_owned(),
            ..(self.acting.options)(pipeline)?
        };
        let (nodes, acting): (Vec<usize>, _) = ((0..pipeline.nodes.len()).collect(), self.acting);
        let (store, file_types) = (&acting.archive.store, acting.file_types);
        Collected::run(pipeline, &nodes, store, file_types, &options, acting.control, progress)
    }

    /// Runs a whole pipeline for the decision that the node `act` makes in the environment of the node `env`.
    fn decision(
        &self,
        pipeline: &Pipeline,
        (act, env): (usize, usize),
        today: &Today,
        progress: &mut Progress<'_>,
    ) -> Result<(MadeDecision, Shown), Failure> {
        let mut run = self.run(pipeline, progress)?;
        if let Some((node, error)) = run.failed.first() {
            let failed = |message| Failure {
                hint: run.hints.get(node).cloned(),
                ..refused(message)
            };
            return Err(match *node == act {
                true => failed(error.clone()),
                false => today.explained(failed(format!("`{}` failed: {error}", pipeline.nodes[*node].id))),
            });
        }
        let shown = Shown::new(&self.acting.archive.store, &pipeline.nodes[env], &run)?;
        MadeDecision::of(&pipeline.nodes[act], act, &mut run)
            .map(|made| (made, shown))
            .ok_or_else(|| Failure::machine(format!("`{}` made no decision", pipeline.nodes[act].id)))
    }
}
