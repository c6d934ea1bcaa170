//! The driver: adds the stages of a search's jobs to a run, reads what came of them, and trains the best
//! trial again on fresh seeds when the search is done.

mod finish;
mod forecast;
mod jobs;
mod nodes;
mod setup;

use crate::Settings;
use crate::record::{self, Header, Line, Ran, Record, Writer};
use crate::sampler::{self, Observed};
use crate::space::Space;
use crate::study::{Job, Outcome, Study};
use cache::Store;
use chrono::Utc;
use finish::Finish;
pub use forecast::{Forecast, RungForecast, forecast};
pub use nodes::Load;
use nodes::{Patch, Placed, Shaped};
use rayon::prelude::*;
use runner_engine::{Ended, Failure, Grow, Growth, StageStatus};
use runner_history::{ResolvedStage, trials::Planned};
use runner_pipeline::{MetricOf, Pipeline, Search};
use serde_json::Value;
use setup::{Ladder, Seeds};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most pipelines of trials that are kept, for the next rung.
const KEPT: usize = 256;

/// The surroundings of a search.
pub struct Setup<'a> {
    /// The home.
    pub home: PathBuf,
    /// The run.
    pub run: String,
    /// The store.
    pub store: Store,
    /// The pipeline with its own settings.
    pub base: Pipeline,
    /// The arguments of `--set`.
    pub set: Vec<String>,
    /// Loads the pipeline with further settings.
    pub load: &'a Load<'a>,
    /// The kinds of the stages that the search adds.
    pub kinds: &'static [Box<dyn stages_core::AnyStage>],
    /// The evaluations of the best trial, for the home's count of trials.
    pub planned: Planned,
}

/// The outcome of a search in a run.
pub struct Searched {
    /// The failure that ended it.
    pub failure: Option<Failure>,
    /// A summary for people.
    pub text: String,
}

/// A job under way.
struct Running {
    job: Job,
    /// The nodes that have not ended.
    left: BTreeSet<usize>,
    /// The nodes of the metrics for each seed.
    seeds: Vec<Vec<(usize, usize)>>,
    /// The nodes that this job added.
    own: Vec<usize>,
}

/// A trial as far as it came.
#[derive(Clone, Default)]
struct Trial {
    settings: Settings,
    /// The last result.
    value: Option<f64>,
    /// The nodes of the first objective at that result, those of each seed one after another.
    nodes: Vec<usize>,
}

/// A node that has ended.
#[derive(Clone, Default)]
struct Over {
    outputs: cache::Outputs,
    seconds: f64,
    error: Option<String>,
}

/// A search in a run.
pub struct Driver<'a> {
    setup: Setup<'a>,
    search: Search,
    base: Arc<Shaped>,
    study: Study,
    ladder: Ladder,
    seeds: Seeds,
    metrics: Vec<MetricOf>,
    id: String,
    writer: Writer,
    /// Lines to be written.
    lines: Vec<Line>,
    /// The recorded jobs that are not decided yet, the next one last.
    recorded: Vec<Job>,
    /// The recorded outcomes, by job.
    known: BTreeMap<u32, Outcome>,
    placed: Placed,
    shaped: HashMap<Vec<String>, Arc<Shaped>>,
    running: BTreeMap<u32, Running>,
    over: HashMap<usize, Over>,
    finish: Finish,
    started: Instant,
    /// The time that earlier runs of the search took, in seconds.
    before: f64,
    error: Option<Failure>,
    jobs: u32,
    trials: BTreeMap<u32, Trial>,
    overhead: Duration,
}

impl<'a> Driver<'a> {
    /// Reads the search of a pipeline, and its record.
    ///
    /// # Errors
    /// If the search cannot be run as it is written.
    pub fn new(setup: Setup<'a>) -> Result<Self, Failure> {
        let search = setup
            .base
            .search
            .clone()
            .ok_or_else(|| Failure::usage("the pipeline has no `search:`"))?;
        setup::check(&search, &setup.base, &setup.set)?;
        let base = Arc::new(Shaped::new(setup.base.clone()));
        let metrics: Vec<MetricOf> = setup::metrics(&search).cloned().collect();
        let objective = base.of_stages(metrics.iter().map(|of| of.stage.as_str()));
        let upstream = base.pipeline.graph.upstream(objective.iter().copied());
        let ladder = Ladder::new(&search, &base.pipeline)?;
        let seeds = Seeds::new(&search, &base.pipeline, &upstream)?;
        let space = Space::new(&search.over);
        let sampler = sampler::sampler(search.sampler);
        if let Some(message) = sampler.refuses(&space, search.objective.0.len()) {
            let (message, hint) = message.split_once('\n').unwrap_or((message, ""));
            return Err(Failure::usage(message).hint(hint));
        }
        let (id, digest) = setup::identity(&search, &base, &objective, &ladder.values);
        let known = Record::read(&record::path(&setup.home, &id))?;
        if known.is_none() {
            setup::check_axes(&base, &upstream)?;
            setup::check_ends(&search, setup.load)?;
        }
        let own = search.over.keys().map(|name| {
            let value = setup::Target::new(name, &base.pipeline).own(&base.pipeline);
            (name.clone(), value)
        });
        let own: Settings = own.filter(|(_, value)| !value.is_null()).collect();
        let search = setup::with_first(search, &space, &own);
        let warm = match &known {
            Some(record) => record.header.warm.clone(),
            None if search.warm_start => observations(&setup.home, &digest, &ladder.values)?,
            None => Vec::new(),
        };
        let header = Header {
            id: id.clone(),
            space: digest,
            pipeline: setup.base.name.clone(),
            file: setup.base.path(),
            search: search.clone(),
            rungs: ladder.values.clone(),
            restarts: ladder.values.len() > 1 && !ladder.continues(),
            own,
            warm: warm.clone(),
        };
        let is_new = known.as_ref().is_none_or(|record| record.header != header);
        let mut last = None;
        let (recorded, outcomes, before) = match known {
            Some(Record {
                jobs,
                outcomes,
                runs,
                last: known,
                ..
            }) => {
                last = known;
                (
                    jobs.into_iter().map(|(job, _)| job).collect(),
                    outcomes.into_iter().map(|(job, (outcome, _))| (job, outcome)).collect(),
                    runs.iter().map(|(ran, _)| ran.seconds).sum(),
                )
            }
            None => (Vec::new(), BTreeMap::new(), 0.0),
        };
        let writer = Writer::open(&setup.home, &id)?;
        let _ = std::fs::remove_file(record::stop_file(&setup.home, &id));
        let lines = if is_new {
            vec![Line::Search(Box::new(header))]
        } else {
            Vec::new()
        };
        let study = Study::new(&search, space, ladder.values.clone(), sampler, warm);
        let mut driver = Self {
            placed: Placed::new(base.clone()),
            recorded: recorded.into_iter().rev().collect(),
            known: outcomes,
            shaped: HashMap::new(),
            running: BTreeMap::new(),
            over: HashMap::new(),
            finish: Finish::after(last),
            started: Instant::now(),
            error: None,
            jobs: 0,
            trials: BTreeMap::new(),
            overhead: Duration::ZERO,
            id,
            writer,
            lines,
            setup,
            search,
            base,
            study,
            ladder,
            seeds,
            metrics,
            before,
        };
        driver.load_recorded();
        driver.flush()?;
        Ok(driver)
    }

    /// Loads the pipelines of recorded trials, side by side.
    fn load_recorded(&mut self) {
        let arguments: BTreeSet<Vec<String>> = self
            .recorded
            .iter()
            .map(|job| setup::arguments(&job.settings))
            .take(KEPT)
            .collect();
        let load = self.setup.load;
        let loaded: Vec<_> = arguments
            .into_par_iter()
            .filter_map(|arguments| {
                let shaped = Shaped::new(load(&arguments).ok()?);
                Some((arguments, Arc::new(shaped)))
            })
            .collect();
        self.shaped.extend(loaded);
    }

    /// The id of the search.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Ends the record of the run, and says what came of the search.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn conclude(mut self) -> Result<Searched, Failure> {
        let seconds = self.started.elapsed().as_secs_f64();
        self.lines.push(Line::Ran(Ran {
            run: self.setup.run.clone(),
            seconds,
            done: self.finish.is_done(),
        }));
        self.flush()?;
        let spent = self.overhead.as_secs_f64();
        let text = format!(
            "search {}: {} jobs, {:.1} ms each for proposals and bookkeeping\n",
            self.id(),
            self.jobs,
            1e3 * spent / f64::from(self.jobs.max(1))
        );
        Ok(Searched {
            failure: self.error.take(),
            text,
        })
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() {
            Ok(())
        } else {
            self.writer.append(&lines, Utc::now())
        }
    }

    /// The pipeline with the settings of a trial.
    fn shaped(&mut self, arguments: Vec<String>) -> Result<Arc<Shaped>, Failure> {
        if arguments.is_empty() {
            return Ok(self.base.clone());
        }
        if let Some(known) = self.shaped.get(&arguments) {
            return Ok(known.clone());
        }
        let shaped = Arc::new(Shaped::new((self.setup.load)(&arguments)?));
        if self.shaped.len() >= KEPT {
            self.shaped.clear();
        }
        self.shaped.insert(arguments, shaped.clone());
        Ok(shaped)
    }

    /// The pipeline of a trial with a seed, at a rung.
    fn variant(&mut self, settings: &Settings, seed: u32, rung: usize) -> Result<Shaped, Failure> {
        let mut arguments = setup::arguments(settings);
        let mut patches: Vec<Patch> = Vec::new();
        self.seeds.set(seed, &mut patches, &mut arguments);
        self.ladder.set(rung, &mut patches, &mut arguments);
        self.shaped(arguments)?.patched(&patches)
    }

    fn step(&mut self, pipeline: &Pipeline, ended: &[Ended], growth: &mut Growth) -> Result<(), Failure> {
        for ended in ended {
            let is_done = matches!(ended.status, StageStatus::Cached | StageStatus::Ran);
            let over = Over {
                outputs: ended.outputs.clone(),
                seconds: ended.seconds,
                error: (!is_done).then(|| ended.error.clone().unwrap_or_else(|| "failed".to_owned())),
            };
            self.over.insert(ended.node, over);
            for running in self.running.values_mut() {
                running.left.remove(&ended.node);
            }
        }
        if self.finish.is_begun() {
            return self.finished(growth);
        }
        self.collect(&mut growth.notes)?;
        let is_decided = self.decide(&mut growth.notes)?;
        growth.may_fail = true;
        if is_decided && self.running.is_empty() && self.placed.added.is_empty() {
            growth.may_fail = false;
            self.begin_finish(growth)?;
            self.finished(growth)?;
        }
        growth.nodes = std::mem::take(&mut self.placed.added);
        growth.chosen = std::mem::take(&mut self.placed.chosen);
        let chosen = growth
            .chosen
            .iter()
            .map(|&i| ResolvedStage::new(pipeline, &pipeline.nodes[i]));
        let added = growth.nodes.iter();
        let added = added.map(|node| ResolvedStage::with_names(pipeline, node, |need| self.placed.id(need)));
        let resolved = chosen
            .chain(added)
            .map(|stage| serde_json::to_value(stage).unwrap_or(Value::Null));
        growth.resolved = resolved.collect();
        self.flush()
    }
}

impl Grow for Driver<'_> {
    fn grow(&mut self, pipeline: &Pipeline, ended: &[Ended]) -> Growth {
        let began = Instant::now();
        let mut growth = Growth::default();
        if let Err(failure) = self.step(pipeline, ended, &mut growth) {
            self.error.get_or_insert(failure);
            growth = Growth {
                stop: true,
                notes: growth.notes,
                ..Growth::default()
            };
        }
        self.overhead += began.elapsed();
        growth
    }
}

/// The trials of earlier searches of a space, as observations.
fn observations(home: &Path, space: &str, rungs: &[Option<u64>]) -> Result<Vec<Observed>, Failure> {
    let records = record::list(home)?;
    let of_space = records.iter().rev().filter(|record| record.header.space == space);
    let all = of_space.flat_map(|record| record.observations(rungs));
    Ok(all
        .filter(|observed| observed.losses.iter().all(|loss| loss.is_finite()))
        .collect())
}
