//! The driver: adds the stages of a search's jobs to a run, reads what came of them, and trains the best
//! trial again on fresh seeds when the search is done.

mod finish;
mod forecast;
mod nodes;
mod setup;

use crate::Settings;
use crate::record::{self, Header, Line, Ran, Record, Writer};
use crate::sampler::{self, Observed};
use crate::space::Space;
use crate::study::{Job, Next, Outcome, Study};
use cache::{ArtifactDigest, Store};
use chrono::Utc;
use finish::Finish;
pub use forecast::{Forecast, RungForecast, forecast};
pub use nodes::Load;
use nodes::{Named, Patch, Placed, Shaped};
use rayon::prelude::*;
use runner_engine::{Ended, Failure, Grow, Growth, StageStatus};
use runner_history::{ResolvedStage, figures, trials::Planned};
use runner_pipeline::{MetricOf, Pipeline, Search};
use serde_json::{Value, json};
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

/// What came of a search in a run.
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

    /// Places the nodes of a job.
    fn place(&mut self, job: &Job) -> Result<(), Failure> {
        let first = self.placed.next();
        let mut seeds = Vec::new();
        let mut left = BTreeSet::new();
        // Another seed at the first rung: nodes with the same content there depend on neither.
        let trial = self.variant(&job.settings, self.seeds.other(), 0)?;
        let variants = (0..self.seeds.count).map(|seed| self.variant(&job.settings, seed, job.rung));
        let variants = variants.collect::<Result<Vec<_>, _>>()?;
        for (seed, variant) in (0..).zip(variants) {
            let mut axes = BTreeMap::from([("trial".to_owned(), json!(job.trial))]);
            let of_trial = Named {
                pipeline: &trial,
                axes: axes.clone(),
            };
            let value = self.seeds.value(seed);
            axes.insert("seed".to_owned(), json!(value));
            axes.extend(job.resource.map(|resource| ("rung".to_owned(), json!(resource))));
            let names = [
                of_trial,
                Named {
                    pipeline: &variant,
                    axes,
                },
            ];
            let wanted = variant.of_stages(self.metrics.iter().map(|of| of.stage.as_str()));
            let indices = self.placed.place(&names, &wanted, false);
            left.extend(indices.values().copied().filter(|index| !self.over.contains_key(index)));
            let of_metrics = self.metrics.iter().enumerate().flat_map(|(m, of)| {
                let nodes = variant.of_stages([of.stage.as_str()]);
                nodes.into_iter().map(|i| (m, indices[&i])).collect::<Vec<_>>()
            });
            seeds.push(of_metrics.collect());
        }
        let own = (first..self.placed.next()).collect();
        self.running.insert(
            job.job,
            Running {
                job: job.clone(),
                left,
                seeds,
                own,
            },
        );
        Ok(())
    }

    /// What came of a job whose nodes have ended.
    fn outcome(&self, running: &Running) -> Result<Outcome, Failure> {
        let over = |node: &usize| self.over.get(node).cloned().unwrap_or_default();
        let seconds = running.own.iter().map(|node| over(node).seconds).sum();
        let nodes = || running.seeds.iter().flatten().map(|(_, node)| over(node));
        if let Some(error) = nodes().find_map(|over| over.error) {
            let first = running.own.iter().find_map(|node| over(node).error);
            let error = Some(first.unwrap_or(error));
            return Ok(Outcome {
                seconds,
                error,
                ..Outcome::default()
            });
        }
        let count = self.search.objective.0.len();
        let (mut objectives, mut constraints) = (Vec::new(), Vec::new());
        for of_seed in &running.seeds {
            let mut values = Vec::with_capacity(self.metrics.len());
            for (m, of) in self.metrics.iter().enumerate() {
                let nodes = of_seed.iter().filter(|(of, _)| *of == m);
                let all: Vec<f64> = nodes
                    .map(|(_, node)| self.metric(over(node).outputs.get("metrics").copied(), of))
                    .collect::<Result<_, _>>()?;
                values.push(all.iter().sum::<f64>() / all.len() as f64);
            }
            constraints.push(values.split_off(count));
            objectives.push(values);
        }
        if self.search.constraints.is_empty() {
            constraints.clear();
        }
        Ok(Outcome {
            objectives,
            constraints,
            seconds,
            error: None,
        })
    }

    fn metric(&self, metrics: Option<ArtifactDigest>, of: &MetricOf) -> Result<f64, Failure> {
        let none = || Failure::usage(format!("`{}` has no artifact of metrics", of.stage));
        let digest = metrics.ok_or_else(none)?;
        let values = figures::final_values(&self.setup.store, digest)?;
        values.get(&of.metric).copied().ok_or_else(|| {
            let known: Vec<&str> = values.keys().map(String::as_str).collect();
            Failure::usage(format!("`{}` has no metric `{}`", of.stage, of.metric)).hint(format!(
                "{}; it has {}",
                runner_pipeline::suggest(&of.metric, "metrics", known.iter().copied()),
                known.join(", ")
            ))
        })
    }

    /// Tells the study what came of a job, and writes it down.
    fn tell(&mut self, job: &Job, outcome: Outcome, nodes: Vec<usize>, notes: &mut Vec<String>) {
        let same = |known: &Outcome| same(&known.objectives, &outcome.objectives);
        if !self.known.get(&job.job).is_some_and(same) {
            self.lines.push(Line::Ended {
                job: job.job,
                outcome: outcome.clone(),
            });
            notes.extend(self.note(job, &outcome));
        }
        if let Some(trial) = self.trials.get_mut(&job.trial)
            && let Some(value) = mean(&outcome, 0)
        {
            trial.value = Some(value);
            trial.nodes = nodes;
        }
        self.study.tell(job.job, outcome);
    }

    /// A line about a job that has ended.
    fn note(&self, job: &Job, outcome: &Outcome) -> Option<String> {
        let rung = match job.resource.filter(|_| job.rung + 1 < self.ladder.values.len()) {
            Some(resource) => format!(", rung {} of {} ({resource})", job.rung + 1, self.ladder.values.len()),
            None => String::new(),
        };
        let count = self.search.objective.0.len();
        let result = match &outcome.error {
            Some(error) => format!("failed: {error}"),
            None => {
                let means = (0..count).filter_map(|m| Some(format!("{:.4}", mean(outcome, m)?)));
                means.collect::<Vec<_>>().join(", ")
            }
        };
        Some(format!("trial {}{rung}: {result}", job.trial))
    }

    /// Decides all that can be decided, and places its nodes.
    fn decide(&mut self, notes: &mut Vec<String>) -> Result<bool, Failure> {
        let stop_file = record::stop_file(&self.setup.home, &self.id);
        loop {
            let is_over =
                self.search.budget.wall.is_some_and(|wall| {
                    self.before + self.started.elapsed().as_secs_f64() >= wall.as_secs_f64()
                });
            let replayed = self.recorded.last().is_some_and(|job| self.study.replay(job.clone()));
            let next = match replayed {
                true => self.recorded.pop().map_or(Next::Wait, Next::Job),
                false if self.recorded.is_empty() && stop_file.exists() => {
                    self.finish.is_stopped = true;
                    return Ok(true);
                }
                false if is_over => return Ok(true),
                false => {
                    let next = self.study.next();
                    if let Next::Job(job) = &next {
                        // What was recorded from here on was decided by other results.
                        self.recorded.clear();
                        self.known.retain(|other, _| *other < job.job);
                        self.lines.push(Line::Decided(job.clone()));
                    }
                    next
                }
            };
            match next {
                Next::Job(job) => {
                    self.jobs += 1;
                    self.trials.entry(job.trial).or_insert_with(|| Trial {
                        settings: job.settings.clone(),
                        ..Trial::default()
                    });
                    let failed = self.known.get(&job.job).filter(|known| known.error.is_some());
                    if let Some(outcome) = failed.cloned() {
                        // What failed is in no cache, and is not tried again.
                        self.tell(&job, outcome, Vec::new(), notes);
                    } else if let Err(failure) = self.place(&job) {
                        let outcome = Outcome {
                            error: Some(failure.message),
                            ..Outcome::default()
                        };
                        self.tell(&job, outcome, Vec::new(), notes);
                    } else {
                        self.collect(notes)?;
                    }
                }
                Next::Wait => return Ok(false),
                Next::Done => return Ok(true),
                Next::Failed(message) => return Err(Failure::usage(message)),
            }
        }
    }

    /// Tells what came of the jobs whose nodes have all ended.
    fn collect(&mut self, notes: &mut Vec<String>) -> Result<(), Failure> {
        let over: Vec<u32> = self
            .running
            .iter()
            .filter(|(_, running)| running.left.is_empty())
            .map(|(job, _)| *job)
            .collect();
        for job in over {
            if let Some(running) = self.running.remove(&job) {
                let outcome = self.outcome(&running)?;
                let of_first = |of_seed: &Vec<(usize, usize)>| {
                    let nodes = of_seed.iter().filter(|(m, _)| *m == 0);
                    nodes.map(|(_, node)| *node).collect::<Vec<_>>()
                };
                let nodes = running.seeds.iter().flat_map(of_first).collect();
                self.tell(&running.job, outcome, nodes, notes);
            }
        }
        Ok(())
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

/// The mean of an objective over seeds; `None` of a job that failed.
fn mean(outcome: &Outcome, objective: usize) -> Option<f64> {
    let values = outcome.objectives.iter().map(|values| values.get(objective).copied());
    let sum: f64 = values.sum::<Option<f64>>()?;
    (!outcome.objectives.is_empty()).then(|| sum / outcome.objectives.len() as f64)
}

/// True if rows of numbers are the same; NaN is like NaN.
fn same(a: &[Vec<f64>], b: &[Vec<f64>]) -> bool {
    let bits = |rows: &[Vec<f64>]| -> Vec<Vec<u64>> {
        let bits = |value: &f64| if value.is_nan() { u64::MAX } else { value.to_bits() };
        rows.iter().map(|row| row.iter().map(bits).collect()).collect()
    };
    bits(a) == bits(b)
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
