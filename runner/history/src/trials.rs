//! The trials of a home: `HOME/trials.jsonl`, one line with a checksum for each policy and each range of test
//! data that it was evaluated on.
//!
//! Lines outlive the runs: what was tried stays tried when its run is removed from the history. A run that
//! evaluates what was evaluated before adds none.

use crate::document;
use cache::parallel::locked;
use cache::{ArtifactDigest, Outputs, Store, checksummed, regular_file, shared};
use datasets::Date;
use runner_engine::{Event, Failure, Reporter, StageStatus, Stamped, Trial, count_trials, trials};
use runner_pipeline::Pipeline;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Tried {
    /// The run that evaluated the policy first.
    run: String,
    /// The stage that did.
    stage: String,
    /// The evaluation.
    #[serde(flatten)]
    trial: Trial,
    /// The artifact of the policy.
    artifact: ArtifactDigest,
    /// The date of the night that the run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    as_of: Option<Date>,
}

fn file(home: &Path) -> PathBuf {
    home.join("trials.jsonl")
}

/// The trials of a home, oldest first; none without the file. A line that is torn or damaged is left out.
fn read(home: &Path) -> Result<Vec<Tried>, Failure> {
    let path = file(home);
    let bytes = match regular_file::read(&path) {
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes.map_err(Failure::at("cannot read", &path))?,
    };
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let sound = lines.filter(|line| checksummed::matches_checksum(line));
    Ok(sound.filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// The trials of a pipeline, and those of its home before it.
#[derive(Debug, Default)]
pub struct Trials {
    /// The trials of the chosen evaluations, by node.
    planned: BTreeMap<usize, Trial>,
    past: Vec<Tried>,
    night: Option<Date>,
}

impl Trials {
    /// Counts the trials of the chosen evaluations, and sets their number where it is more than is written.
    /// For the run of a `night`, those of this and of later nights are left out, so that a repeated night has
    /// the same number.
    ///
    /// # Errors
    /// If the file or the configuration of a stage cannot be read.
    pub fn count(
        home: &Path,
        pipeline: &mut Pipeline,
        chosen: &[usize],
        store: &Store,
        night: Option<Date>,
    ) -> Result<Self, Failure> {
        let mut planned = trials(pipeline, chosen, store)?;
        if planned.is_empty() {
            return Ok(Self::default());
        }
        let past = read(home)?;
        // A policy that an earlier run made is named as its evaluations were, by its task.
        let mut tasks: HashMap<ArtifactDigest, ArtifactDigest> = HashMap::new();
        for tried in &past {
            tasks.entry(tried.artifact).or_insert(tried.trial.policy);
        }
        for trial in planned.values_mut() {
            trial.policy = tasks.get(&trial.policy).copied().unwrap_or(trial.policy);
        }
        let is_before =
            |tried: &&Tried| night.is_none_or(|night| tried.as_of.is_none_or(|date| date < night));
        let before = past.iter().filter(is_before).map(|tried| &tried.trial);
        count_trials(pipeline, &planned, before);
        Ok(Self { planned, past, night })
    }
}

/// The evaluations of a search: those of its best trial, which a run adds while it goes on, and those that
/// its trials stand for. Shared with the run's [`Recorder`].
#[derive(Clone, Debug)]
pub struct Planned {
    home: PathBuf,
    night: Option<Date>,
    new: Arc<Mutex<New>>,
}

/// The evaluations that the recorder has not taken over yet.
#[derive(Debug, Default)]
struct New {
    evaluations: Vec<(String, Trial, Origin)>,
    searched: Vec<Trial>,
    /// The trials of the home before.
    known: BTreeSet<Trial>,
}

impl Planned {
    /// The evaluations of a search with this home, in a run of this `night`.
    pub fn new(home: &Path, night: Option<Date>) -> Self {
        Self {
            home: home.to_owned(),
            night,
            new: Arc::default(),
        }
    }

    /// Sets the number of trials in pipelines whose evaluations are `planned`: theirs, those of the trials
    /// `searched`, and those of the home before.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn count(
        &self,
        pipelines: &mut [Pipeline],
        planned: &[BTreeMap<usize, Trial>],
        searched: Vec<Trial>,
    ) -> Result<(), Failure> {
        let past = read(&self.home)?;
        let night = self.night;
        let is_before =
            |tried: &&Tried| night.is_none_or(|night| tried.as_of.is_none_or(|date| date < night));
        for (pipeline, own) in pipelines.iter_mut().zip(planned) {
            let before = past.iter().filter(is_before).map(|tried| &tried.trial);
            let others = planned.iter().flat_map(BTreeMap::values);
            count_trials(pipeline, own, before.chain(others).chain(&searched));
        }
        let mut new = locked(&self.new);
        new.known = past.into_iter().map(|tried| tried.trial).collect();
        let searched: BTreeSet<Trial> = searched.into_iter().collect();
        new.searched = searched.difference(&new.known).cloned().collect();
        Ok(())
    }

    /// Adds an evaluation of the run by its stage: of the policy that is an output of another stage.
    pub fn add(&self, stage: String, trial: Trial, made_by: String, output: String) {
        let origin = Origin::Output(made_by, output);
        let mut new = locked(&self.new);
        if !new.known.contains(&trial) {
            new.evaluations.push((stage, trial, origin));
        }
    }
}

/// Adds the evaluations of a run to the trials of its home, as their stages end. What failed is not added.
pub struct Recorder {
    path: PathBuf,
    run: String,
    night: Option<Date>,
    /// The trials of the run that are not in the file, by stage, with the origin of the policy.
    left: HashMap<String, (Trial, Origin)>,
    /// The evaluations of a search, if the run is one.
    planned: Option<Planned>,
    outputs: HashMap<String, Outputs>,
    lines: String,
    failed: Option<io::Error>,
}

/// The origin of a policy.
#[derive(Debug)]
enum Origin {
    /// An output of a stage of the run.
    Output(String, String),
    /// An earlier run.
    Earlier(ArtifactDigest),
}

impl Recorder {
    /// Creates the recorder of a run with these trials, by node. `past` are those in the file.
    /// `planned` are those of a search.
    pub fn new(
        home: &Path,
        run: &str,
        pipeline: &Pipeline,
        trials: &Trials,
        planned: Option<Planned>,
    ) -> Self {
        let known: BTreeSet<&Trial> = trials.past.iter().map(|tried| &tried.trial).collect();
        let new = trials.planned.iter().filter(|(_, trial)| !known.contains(trial));
        let left = new.filter_map(|(&i, trial)| {
            let node = &pipeline.nodes[i];
            let need = |port: &str| node.needs.get(port)?.first();
            let earlier = |port: &str| node.earlier.get(port)?.first();
            let origin = match (need("policy"), earlier("policy")) {
                (Some(need), _) => Origin::Output(pipeline.nodes[need.node].id.clone(), need.output.clone()),
                (None, earlier) => Origin::Earlier(earlier?.digest),
            };
            Some((node.id.clone(), (trial.clone(), origin)))
        });
        Self {
            path: file(home),
            run: run.to_owned(),
            night: trials.night,
            left: left.collect(),
            planned,
            outputs: HashMap::new(),
            lines: String::new(),
            failed: None,
        }
    }

    /// Takes over what a search has planned.
    fn take_planned(&mut self) {
        let Some(planned) = &self.planned else { return };
        let (evaluations, searched) = {
            let mut new = locked(&planned.new);
            (std::mem::take(&mut new.evaluations), std::mem::take(&mut new.searched))
        };
        let evaluations = evaluations.into_iter();
        self.left
            .extend(evaluations.map(|(stage, trial, origin)| (stage, (trial, origin))));
        for trial in searched {
            let artifact = trial.policy;
            self.put("search".to_owned(), trial, artifact);
        }
    }

    fn add(&mut self, stage: &str) -> Option<()> {
        let (trial, origin) = self.left.remove(stage)?;
        let artifact = match origin {
            Origin::Output(stage, output) => *self.outputs.get(&stage)?.get(&output)?,
            Origin::Earlier(digest) => digest,
        };
        self.put(stage.to_owned(), trial, artifact);
        Some(())
    }

    fn put(&mut self, stage: String, trial: Trial, artifact: ArtifactDigest) {
        let tried = Tried {
            run: self.run.clone(),
            stage,
            trial,
            artifact,
            as_of: self.night,
        };
        match document::text(&tried) {
            Ok(line) => self.lines += &(line + "\n"),
            Err(err) => self.failed = self.failed.take().or(Some(err)),
        }
    }

    fn write(&self) -> io::Result<()> {
        let mut file = File::options().create(true).append(true).open(&self.path)?;
        // Only the file's owner can share it.
        let _ = shared::share_file(&self.path);
        // A line that another process left torn ends here.
        file.write_all(format!("\n{}", self.lines).as_bytes())
    }

    /// Checks that every trial was written.
    ///
    /// # Errors
    /// The first write error.
    pub fn check(&mut self) -> Result<(), Failure> {
        match self.failed.take() {
            None => Ok(()),
            Some(err) => Err(document::unwritable(&self.path)(err)),
        }
    }
}

impl Reporter for Recorder {
    fn report(&mut self, stamped: &Stamped) {
        if let Event::StageFinished {
            stage,
            status: StageStatus::Cached | StageStatus::Ran,
            outputs,
            ..
        } = &stamped.event
            && (!self.left.is_empty() || self.planned.is_some())
        {
            self.take_planned();
            self.outputs.insert(stage.clone(), outputs.clone());
            self.add(stage);
        }
    }

    fn flush(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        if let Err(err) = self.write() {
            self.failed.get_or_insert(err);
        }
        self.lines.clear();
    }
}
