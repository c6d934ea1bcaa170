//! A pipeline on the command line: the arguments that select and set it, their completions, and how it is
//! read.

use crate::complete::{candidates, completed};
use crate::config;
use crate::packages::{Import, describing};
use crate::registry;
use crate::session::{PROGRAM, Session, folder_of};
use cache::Store;
use clap::Args;
use clap_complete::engine::CompletionCandidate;
use datasets::Date;
use runner_engine::{Failure, Options};
use runner_history as history;
use runner_history::schedule::DueTimes;
use runner_history::trials::Trials;
use runner_pipeline::{
    self as pipeline, Isolation, LoadOptions, Names, NightDates, Pipeline, PipelineErrors, Scheduled,
    load_with_sources, named, resolved, scheduled, select,
};
use runner_sandbox::{machine_cores, machine_memory};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The time that a stage has to stop after Ctrl-C: enough to write a checkpoint.
const GRACE: Duration = Duration::from_secs(15);

#[derive(Args, Clone, Debug)]
pub(crate) struct PipelineArgs {
    /// The pipeline file.
    #[arg(add = completed(candidates::pipelines))]
    pub pipeline: PathBuf,
    #[command(flatten)]
    pub selection: Selection,
}

/// The selected stages of a pipeline, and its settings.
#[derive(Args, Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Selection {
    /// Stages to run, with the stages they need [default: all]. Of a matrix, `train[lr=1e-4]` selects the
    /// points with this value, as in `needs:`, and `train` or `train[*]` all of them.
    #[arg(value_name = "STAGE", add = completed(stages_of_line))]
    pub stages: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub settings: Settings,
    /// Run this stage even if it is cached, without memos and checkpoints (repeatable).
    #[arg(long, value_name = "STAGE", add = completed(stages_of_line))]
    pub force: Vec<String>,
}

/// The settings that a pipeline is read with.
#[derive(Args, Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Settings {
    /// Override a parameter (`seed=3`) or a field of a stage's configuration
    /// (`train.with.learning_rate=1e-4`) (repeatable).
    #[arg(long, value_name = "NAME=VALUE", add = completed(settings_of_line))]
    pub set: Vec<String>,
    /// Apply a profile of the pipeline (repeatable): a later profile overrides an earlier one, `--set`
    /// overrides all.
    #[arg(long, value_name = "NAME", add = completed(profiles_of_line))]
    pub profile: Vec<String>,
    /// Read the pipeline as on that night of its schedule: `${schedule.date}` is DATE, and the parameters are
    /// those of the night.
    #[arg(long, value_name = "DATE")]
    pub night: Option<String>,
}

/// The servers that a command may reach.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Reach {
    /// Ignore the configured remote store.
    #[arg(long)]
    pub no_remote: bool,
    /// Contact no server: sources at URLs are those fetched before, and the configured remote store is
    /// ignored.
    #[arg(long)]
    pub offline: bool,
}

impl Reach {
    /// The context of the command.
    pub(crate) fn session(self, session: &Session) -> Session {
        Session {
            no_remote: self.no_remote || self.offline,
            offline: self.offline,
            ..session.clone()
        }
    }
}

impl Session {
    /// Reads a pipeline.
    pub(crate) fn load(&self, file: &Path, settings: &Settings) -> Result<Pipeline, Failure> {
        load_with_sources(file, &self.reading(file, settings)?).map_err(wrong)
    }

    /// The resolved pipeline as one file.
    pub(crate) fn resolved(&self, file: &Path, settings: &Settings) -> Result<String, Failure> {
        resolved(file, &self.reading(file, settings)?).map_err(wrong)
    }

    /// The options for reading a pipeline.
    pub(crate) fn reading(&self, file: &Path, settings: &Settings) -> Result<LoadOptions, Failure> {
        let home = self.home(folder_of(&self.current, file).as_deref());
        let session = self.clone();
        let mut options = LoadOptions {
            set: settings.set.clone(),
            profiles: settings.profile.clone(),
            env: self.env.clone(),
            night: None,
            kinds: registry::kinds(),
            python: config::python(&home)?,
            describe: Some(describing(self, &home, Import::Allowed)),
            earlier: None,
            tried: Some(history::earlier::tried(&home, None)),
        };
        if let Some(night) = &settings.night {
            let scheduled = scheduled(file, &options).map_err(wrong)?;
            options.night = Some(dates_of(scheduled.as_ref(), night)?);
        }
        let night = options.night.map(|night| night.date);
        options.tried = Some(history::earlier::tried(&home, night));
        options.earlier = Some(Box::new(move |reference| {
            let open = || session.store(&home).map_err(|failure| failure.message);
            history::earlier::find(&home, open, reference, night)
        }));
        Ok(options)
    }

    /// The schedule of a pipeline.
    pub(crate) fn scheduled(&self, file: &Path, settings: &Settings) -> Result<Scheduled, Failure> {
        let scheduled = scheduled(file, &self.reading(file, settings)?).map_err(wrong)?;
        scheduled.ok_or_else(|| unscheduled().hint(format!("`{}` has no `schedule:`", file.display())))
    }

    /// Reads a pipeline and opens its home.
    pub(crate) fn project(&self, args: &PipelineArgs) -> Result<Project, Failure> {
        let mut pipeline = self.load(&args.pipeline, &args.selection.settings)?;
        let wrong_name = |err| wrong(PipelineErrors::from(err));
        let chosen = select(&pipeline, &args.selection.stages).map_err(wrong_name)?;
        let mut force = BTreeSet::new();
        for name in &args.selection.force {
            force.extend(named(&pipeline, name).map_err(wrong_name)?);
        }
        let home = self.home(Some(&pipeline.base));
        let store = self.store(&home)?;
        let night = args.selection.settings.night.as_deref();
        let night = night.and_then(|night| night.get(..10)?.parse().ok());
        let trials = Trials::count(&home, &mut pipeline, &chosen, &store, night)?;
        Ok(Project {
            isolation: config::isolation(&home)?,
            store,
            trials,
            runs: home.join("runs"),
            pipeline: Arc::new(pipeline),
            chosen,
            force,
        })
    }
}

fn unscheduled() -> Failure {
    Failure::usage("the pipeline has no schedule")
}

/// The dates of a night by its name.
fn dates_of(scheduled: Option<&Scheduled>, night: &str) -> Result<NightDates, Failure> {
    let scheduled =
        scheduled.ok_or_else(|| unscheduled().hint("`--night` is for pipelines with `schedule:`"))?;
    let date = night.get(..10).unwrap_or(night).parse::<Date>();
    let date =
        date.map_err(|message| Failure::usage(message).hint("`runner schedule log` lists the nights"))?;
    let due = DueTimes(&scheduled.schedule).of(date).into_iter().next();
    due.map(|due| due.dates).ok_or_else(|| {
        Failure::usage(format!("there is no night on {date}"))
            .hint("see `calendar` and `cron` of the schedule")
    })
}

/// The failure of an invalid pipeline.
pub(crate) fn wrong(errors: PipelineErrors) -> Failure {
    Failure::usage(errors.to_string())
}

/// A pipeline and its home.
pub(crate) struct Project {
    pub store: Store,
    pub runs: PathBuf,
    pub pipeline: Arc<Pipeline>,
    pub trials: Trials,
    /// The default isolation of `run:` stages.
    pub isolation: Isolation,
    /// The nodes to run.
    pub chosen: Vec<usize>,
    /// The nodes that run even if they are cached.
    pub force: BTreeSet<usize>,
}

impl Project {
    /// The default options of a run of this project on this machine.
    pub(crate) fn options(&self, session: &Session, run: &str) -> Options {
        let cores = machine_cores();
        Options {
            run: run.to_owned(),
            program: PROGRAM.to_owned(),
            night: None,
            jobs: cores,
            threads: cores,
            memory: machine_memory(),
            keep_going: false,
            verify_inputs: false,
            check: BTreeSet::new(),
            planned: BTreeMap::new(),
            force: self.force.clone(),
            env: session.env.clone(),
            executor: None,
            elsewhere: BTreeMap::new(),
            isolation: self.isolation,
            logs: self.runs.join(run).join("logs"),
            grace: GRACE,
            past: Arc::new(history::PastRuns::new(&self.runs, &self.pipeline.name, run)),
        }
    }
}

fn names_of(line: &[String]) -> Option<Names> {
    let (session, file) = (candidates::session()?, candidates::file_of(line)?);
    let options = session.reading(&file, &Settings::default()).ok()?;
    pipeline::names(&file, &options)
}

fn pipeline_of(line: &[String]) -> Option<Pipeline> {
    candidates::session()?
        .load(&candidates::file_of(line)?, &Settings::default())
        .ok()
}

/// Stages of the pipeline with their kinds; points of a matrix once the bracket is written.
pub(crate) fn stages_of_line(line: &[String], current: &str) -> Vec<CompletionCandidate> {
    if let Some((stage, _)) = current.split_once('[') {
        let Some(pipeline) = pipeline_of(line) else {
            return Vec::new();
        };
        let points = pipeline
            .nodes
            .iter()
            .filter(|node| node.stage == stage && !node.point.is_empty());
        let all = points.map(|node| node.id.clone()).chain([format!("{stage}[*]")]);
        return candidates::plain(current, &all.collect::<Vec<_>>());
    }
    let names = names_of(line).unwrap_or_default();
    let stages = names.stages.iter();
    candidates::beginning(current, stages.map(|(name, kind)| (name.as_str(), kind.as_deref())))
}

/// Profiles of the pipeline.
pub(crate) fn profiles_of_line(line: &[String], current: &str) -> Vec<CompletionCandidate> {
    candidates::plain(current, &names_of(line).unwrap_or_default().profiles)
}

/// `NAME=` for parameters, and `STAGE.with.KEY=` for the configuration of a stage once its name is written.
pub(crate) fn settings_of_line(line: &[String], current: &str) -> Vec<CompletionCandidate> {
    let names = names_of(line).unwrap_or_default();
    let mut all: Vec<String> = names.params.iter().map(|name| format!("{name}=")).collect();
    let stage = current.split_once('.').map(|(stage, _)| stage);
    for (name, kind) in &names.stages {
        let kind = kind.as_deref().and_then(registry::find);
        match kind {
            Some(kind) if stage == Some(name) => {
                let schema = kind.schema();
                let fields = schema["properties"].as_object().into_iter().flatten();
                all.extend(fields.map(|(field, _)| format!("{name}.with.{field}=")));
            }
            Some(_) => all.push(format!("{name}.with.")),
            None => {}
        }
    }
    candidates::plain(current, &all)
}
