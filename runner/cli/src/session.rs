//! The context of every command: the working directory, the environment and the verbosity.

use crate::args::{Arguments, Command, PipelineArgs, Settings};
use crate::config;
use crate::home;
use crate::registry;
use cache::Store;
use cache_remote::{Remote, RemoteSettings, SourceFiles, Timing};
use datasets::Date;
use runner_engine::{Failure, Options};
use runner_history::schedule::DueTimes;
use runner_history::{self as history, Archive};
use runner_pipeline::{
    Isolation, LoadOptions, NightDates, Pipeline, PipelineErrors, Scheduled, load_with_sources, named,
    resolved, scheduled, select,
};
use runner_report::reporter::Verbosity;
use runner_sandbox::machine_memory;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Name and version of this program.
pub(crate) const PROGRAM: &str = concat!("runner ", env!("CARGO_PKG_VERSION"));

/// The time that a stage has to stop after Ctrl-C: enough to write a checkpoint.
const GRACE: Duration = Duration::from_secs(15);

/// The context of a command.
#[derive(Clone)]
pub(crate) struct Session {
    pub current: PathBuf,
    pub env: BTreeMap<String, String>,
    pub verbosity: Verbosity,
    pub json: bool,
    /// If set, a configured remote is not used.
    pub no_remote: bool,
    /// If set, servers of sources are not asked.
    pub offline: bool,
}

impl Session {
    pub(crate) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        if let Some(dir) = &arguments.directory {
            std::env::set_current_dir(dir).map_err(|err| Failure {
                causes: vec![err.to_string()],
                ..Failure::usage(format!("cannot change to the directory `{}`", dir.display()))
            })?;
        }
        Ok(Self {
            verbosity: match (arguments.quiet, arguments.verbose) {
                (true, _) => Verbosity::Quiet,
                (_, true) => Verbosity::Verbose,
                _ => Verbosity::Normal,
            },
            json: arguments.json,
            no_remote: match &arguments.command {
                Command::Exec(args) => args.no_remote || args.offline,
                Command::Plan(args) => args.no_remote || args.offline,
                _ => false,
            },
            offline: match &arguments.command {
                Command::Exec(args) => args.offline,
                Command::Plan(args) => args.offline,
                _ => false,
            },
            ..Self::bare()?
        })
    }

    /// The context of no command: the working directory and the environment.
    pub(crate) fn bare() -> Result<Self, Failure> {
        let current = std::env::current_dir()
            .map_err(|err| Failure::caused("cannot determine the working directory", &err))?;
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Ok(Self {
            current,
            env,
            verbosity: Verbosity::Quiet,
            json: false,
            no_remote: true,
            offline: true,
        })
    }

    /// The directory of the store and the runs, for a pipeline in the directory `start` or for a command
    /// without one.
    pub(crate) fn home(&self, start: Option<&Path>) -> PathBuf {
        let variable = self.env.get("RUNNER_HOME").map(String::as_str);
        home::resolve(variable, start.unwrap_or(&self.current), &self.current)
    }

    /// Opens the store of a home with its configured remote.
    pub(crate) fn store(&self, home: &Path) -> Result<Store, Failure> {
        let settings = self.remote_settings(home)?;
        let store = Store::open(home)?;
        let store = match settings {
            Some(settings) => Remote::new(settings, &store)?.attach(store),
            None => store,
        };
        let files = SourceFiles::new(self.offline, Timing::default(), &self.env);
        Ok(store.with_files(Arc::new(files)))
    }

    /// The configured remote of a home; `None` with `--no-remote`.
    pub(crate) fn remote_settings(&self, home: &Path) -> Result<Option<RemoteSettings>, Failure> {
        match self.no_remote {
            true => Ok(None),
            false => config::remote(home, &self.current, &self.env),
        }
    }

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
        let pipeline = self.load(&args.pipeline, &args.selection.settings)?;
        let wrong_name = |err| wrong(PipelineErrors::from(err));
        let chosen = select(&pipeline, &args.selection.stages).map_err(wrong_name)?;
        let mut force = BTreeSet::new();
        for name in &args.selection.force {
            force.extend(named(&pipeline, name).map_err(wrong_name)?);
        }
        let home = self.home(Some(&pipeline.base));
        Ok(Project {
            isolation: config::isolation(&home)?,
            store: self.store(&home)?,
            runs: home.join("runs"),
            pipeline: Arc::new(pipeline),
            chosen,
            force,
        })
    }

    /// The store and the runs of a command without a pipeline. Missing ones are not created.
    pub(crate) fn archive(&self) -> Result<Archive, Failure> {
        let home = self.home(None);
        if !home.is_dir() {
            return Err(Failure::usage(format!("there is no store in `{}`", home.display()))
                .hint("run a pipeline first, or name its directory with `-C DIR` or RUNNER_HOME"));
        }
        Ok(Archive {
            store: self.store(&home)?,
            runs: home.join("runs"),
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

/// The absolute path of a file's directory.
pub(crate) fn folder_of(current: &Path, file: &Path) -> Option<PathBuf> {
    let file = std::path::absolute(file).unwrap_or_else(|_| current.join(file));
    file.parent().map(Path::to_owned)
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
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
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
            isolation: self.isolation,
            logs: self.runs.join(run).join("logs"),
            grace: GRACE,
            past: Arc::new(history::PastRuns::new(&self.runs, &self.pipeline.name, run)),
        }
    }
}
