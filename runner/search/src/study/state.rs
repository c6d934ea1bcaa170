//! The state machine of a search.

use super::pruner::{Brackets, Population, Rule, passes_median, promoted};
use super::score::{Score, best};
use super::{Job, Next, Outcome};
use crate::Settings;
use crate::sampler::{Ask, Observed, Sampler};
use crate::space::Space;
use cache::BlobRef;
use runner_pipeline::Search;
use std::collections::{BTreeMap, VecDeque};

/// The search stops if this number of jobs is all that ended, and all failed.
const HOPELESS: usize = 5;

/// A search under way.
pub struct Study {
    search: Search,
    space: Space,
    rungs: Vec<Option<u64>>,
    sampler: Box<dyn Sampler>,
    warm: Vec<Observed>,
    rule: Rule,
    brackets: Brackets,
    jobs: Vec<Job>,
    /// The result of each job, once it is told.
    told: Vec<Option<Score>>,
    trials: Vec<Trial>,
    /// The number of the first jobs whose results are seen.
    seen: usize,
    /// The digest of the results that are seen.
    basis: String,
    /// The number of those that failed.
    failed: usize,
    /// The errors that were told, by job.
    errors: BTreeMap<u32, String>,
    /// The decisions of a synchronous search whose jobs follow, by the same results.
    wave: VecDeque<Step>,
    is_done: bool,
}

struct Trial {
    settings: Settings,
    population: Population,
    /// The highest rung that is decided.
    rung: usize,
    /// The results that are seen, by rung.
    scores: Vec<Option<Score>>,
    /// True for the rungs that the median lets it pass.
    passes: Vec<bool>,
}

#[derive(Clone, Copy)]
enum Step {
    /// A new trial.
    Propose,
    /// A trial's next rung.
    Promote(usize),
}

impl Study {
    /// The search with these settings, before its first job. The first trials, `search.first`, have all their
    /// settings. `rungs` has at least one rung; its last is the full resource. `warm` are trials of earlier
    /// searches.
    pub fn new(
        search: &Search,
        space: Space,
        rungs: Vec<Option<u64>>,
        sampler: Box<dyn Sampler>,
        warm: Vec<Observed>,
    ) -> Self {
        let rungs = if rungs.is_empty() { vec![None] } else { rungs };
        Self {
            space,
            sampler,
            warm,
            rule: Rule::new(&search.pruner),
            brackets: Brackets::new(search, rungs.len()),
            jobs: Vec::new(),
            told: Vec::new(),
            trials: Vec::new(),
            seen: 0,
            basis: digest("", &[]),
            failed: 0,
            errors: BTreeMap::new(),
            wave: VecDeque::new(),
            is_done: false,
            search: search.clone(),
            rungs,
        }
    }

    /// The next step. Each job is handed out once; the caller decides how many run at a time.
    #[expect(clippy::should_implement_trait, reason = "a search is no iterator: it can end later")]
    pub fn next(&mut self) -> Next {
        let step = match self.decide() {
            Ok(step) => step,
            Err(next) => return next,
        };
        let settings = match step {
            Step::Propose => self.proposal(),
            Step::Promote(trial) => self.trials[trial].settings.clone(),
        };
        let job = self.job(step, settings);
        self.take(step, job.clone());
        Next::Job(job)
    }

    /// Takes over a decision that was recorded, without asking the sampler. False, and nothing is decided, if
    /// it is not the next one: another trial or rung, or by other results than those told so far.
    pub fn replay(&mut self, job: Job) -> bool {
        let Ok(step) = self.decide() else {
            return false;
        };
        let settings = match step {
            Step::Promote(trial) => self.trials[trial].settings.clone(),
            Step::Propose => {
                let first = self.search.first.get(self.trials.len());
                first.unwrap_or(&job.settings).clone()
            }
        };
        let is_next = self.job(step, settings) == job;
        if is_next {
            self.take(step, job);
        }
        is_next
    }

    /// Tells what came of a job, in any order. A job that is not decided, or that was told before, is left as
    /// it is.
    pub fn tell(&mut self, job: u32, outcome: Outcome) {
        if let Some(told @ None) = self.told.get_mut(job as usize) {
            *told = Some(Score::new(&self.search, &outcome));
            self.errors.extend(outcome.error.map(|error| (job, error)));
        }
    }

    /// The jobs that are decided and whose outcome is not told, in their order.
    pub fn under_way(&self) -> impl Iterator<Item = &Job> {
        let jobs = self.jobs.iter().zip(&self.told);
        jobs.filter(|(_, told)| told.is_none()).map(|(job, _)| job)
    }

    /// The best trial of those told so far, at the highest rung that one reached; with several objectives,
    /// the one of the Pareto front that is best in the first.
    pub fn best(&self) -> Option<u32> {
        let told = self.jobs.iter().zip(&self.told);
        best(told.filter_map(|(job, score)| Some((job.trial, job.rung, score.as_ref()?))))
    }

    /// True once [`Self::next`] has said so.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The next decision.
    fn decide(&mut self) -> Result<Step, Next> {
        if let Some(step) = self.wave.front() {
            return Ok(*step);
        }
        let needed = match self.search.synchronous {
            true => self.jobs.len(),
            false => (self.jobs.len() + 1).saturating_sub(self.search.workers.max(1) as usize),
        };
        while self.seen < needed {
            if !self.see() {
                return Err(Next::Wait);
            }
        }
        loop {
            let is_end = self.seen == self.jobs.len();
            let is_judged = self.seen >= HOPELESS || self.seen > 0 && is_end && self.is_exhausted();
            if is_judged && self.failed == self.seen {
                return Err(Next::Failed(self.hopeless()));
            }
            self.choose();
            if let Some(step) = self.wave.front() {
                return Ok(*step);
            }
            if is_end {
                self.is_done = true;
                return Err(Next::Done);
            }
            if !self.see() {
                return Err(Next::Wait);
            }
        }
    }

    fn hopeless(&self) -> String {
        let first = self.errors.values().next().map(String::as_str);
        let error = first.unwrap_or("a metric is missing, or not a finite number");
        format!("the first {} jobs of the search failed: {error}", self.failed)
    }

    /// True if all trials were proposed.
    fn is_exhausted(&self) -> bool {
        self.trials.len() >= self.search.trials() as usize
    }

    /// Sees the result of the next job, if it is told.
    fn see(&mut self) -> bool {
        let Some(Some(score)) = self.told.get(self.seen) else {
            return false;
        };
        let job = &self.jobs[self.seen];
        let before = self.trials.iter().filter_map(|trial| trial.scores[job.rung].as_ref());
        let passes = self.rule == Rule::Median && passes_median(&before.collect::<Vec<_>>(), score);
        let trial = &mut self.trials[job.trial as usize];
        trial.passes[job.rung] = passes;
        trial.scores[job.rung] = Some(score.clone());
        self.basis = digest(&self.basis, &[&score.losses[..], &[score.violation]].concat());
        self.failed += usize::from(score.is_failed());
        self.seen += 1;
        true
    }

    /// Fills the wave: in a synchronous search all that is decided by the results so far, else one step.
    fn choose(&mut self) {
        for rung in (0..self.rungs.len() - 1).rev() {
            self.wave.extend(self.promotions(rung).into_iter().map(Step::Promote));
            if !self.search.synchronous && !self.wave.is_empty() {
                self.wave.truncate(1);
                return;
            }
        }
        if self.wave.is_empty() && !self.is_exhausted() {
            let left = self.search.trials() as usize - self.trials.len();
            let batch = match self.search.synchronous {
                true => self.search.batch.max(1) as usize,
                false => 1,
            };
            self.wave.extend((0..batch.min(left)).map(|_| Step::Propose));
        }
    }

    /// The trials that go on past a rung by the results so far, best first within a population.
    fn promotions(&self, rung: usize) -> Vec<usize> {
        let mut populations: BTreeMap<Population, Vec<usize>> = BTreeMap::new();
        for (i, trial) in self.trials.iter().enumerate() {
            if trial.scores[rung].is_some() {
                populations.entry(trial.population).or_default().push(i);
            }
        }
        let is_complete = self.search.synchronous || self.is_exhausted() && self.seen == self.jobs.len();
        let mut chosen = Vec::new();
        for trials in populations.values() {
            match self.rule {
                Rule::Halving(factor) => {
                    let scores: Vec<&Score> = trials
                        .iter()
                        .filter_map(|&trial| self.trials[trial].scores[rung].as_ref())
                        .collect();
                    chosen.extend(promoted(&scores, factor, is_complete).into_iter().map(|i| trials[i]));
                }
                Rule::Median => {
                    let passes = |trial: &&usize| {
                        let trial = &self.trials[**trial];
                        trial.passes[rung]
                            && trial.scores[rung].as_ref().is_some_and(|score| !score.is_failed())
                    };
                    chosen.extend(trials.iter().filter(passes));
                }
            }
        }
        chosen.retain(|&trial| self.trials[trial].rung == rung);
        chosen
    }

    /// The settings of the next new trial.
    fn proposal(&self) -> Settings {
        let number = self.trials.len();
        if let Some(first) = self.search.first.get(number) {
            return first.clone();
        }
        let observe = |(trial, state): (usize, &Trial)| {
            let rung = state.scores.iter().rposition(Option::is_some)?;
            let score = state.scores[rung].as_ref()?;
            Some(Observed {
                trial: trial as u32,
                settings: state.settings.clone(),
                rung,
                losses: score.losses.clone(),
                violation: score.violation,
            })
        };
        let own = self.trials.iter().enumerate().filter_map(observe);
        let observed: Vec<Observed> = self.warm.iter().cloned().chain(own).collect();
        let is_running = |trial: &&Trial| trial.scores.iter().all(Option::is_none);
        let running = self
            .trials
            .iter()
            .filter(is_running)
            .map(|trial| trial.settings.clone());
        self.sampler.propose(&Ask {
            space: &self.space,
            seed: self.search.seed,
            trial: number as u32,
            observed: &observed,
            running: &running.collect::<Vec<_>>(),
        })
    }

    /// The job of a step.
    fn job(&self, step: Step, settings: Settings) -> Job {
        let (trial, rung) = match step {
            Step::Propose => (self.trials.len(), self.brackets.clone().next()),
            Step::Promote(trial) => (trial, self.trials[trial].rung + 1),
        };
        let is_last = rung + 1 == self.rungs.len();
        Job {
            job: self.jobs.len() as u32,
            trial: trial as u32,
            rung,
            resource: self.rungs[rung].filter(|_| !is_last),
            settings,
            seen: self.seen as u32,
            basis: self.basis.clone(),
        }
    }

    fn take(&mut self, step: Step, job: Job) {
        self.wave.pop_front();
        match step {
            Step::Promote(trial) => self.trials[trial].rung = job.rung,
            Step::Propose => {
                let first = self.brackets.next();
                let batch = match self.search.synchronous {
                    true => job.trial / self.search.batch.max(1),
                    false => 0,
                };
                self.trials.push(Trial {
                    settings: job.settings.clone(),
                    population: (first, batch),
                    rung: first,
                    scores: vec![None; self.rungs.len()],
                    passes: vec![false; self.rungs.len()],
                });
            }
        }
        self.jobs.push(job);
        self.told.push(None);
    }
}

/// The digest of the results so far and the numbers of another one.
fn digest(before: &str, numbers: &[f64]) -> String {
    let mut bytes = before.as_bytes().to_vec();
    bytes.extend(numbers.iter().flat_map(|number| number.to_bits().to_le_bytes()));
    BlobRef::of(&bytes).blob.to_hex()[..16].to_owned()
}
