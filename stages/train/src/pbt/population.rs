//! The population: its members from round to round, and the selection between rounds.

use super::member::{Segment, train};
use super::search_space::{Settings, draw, explore};
use super::settings::PbtConfig;
use crate::metrics::Line;
use crate::stored_states::SavedState;
use crate::train_state::TrainState;
use cache::{Artifact, ArtifactDigest, BlobRef, canonical_json};
use rayon::ThreadPoolBuilder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::error::Cause;
use stages_core::event::EventSink;
use stages_core::{Context, Memo, StageError, StageEvent};
use stages_numerics::random::Random;
use stages_policy::Policy;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The names of the streams of random numbers: of first settings, of selection, and of the members' seeds.
const FIRST: u64 = u64::from_le_bytes(*b"pbtfirst");
const SELECT: u64 = u64::from_le_bytes(*b"pbtselec");
const SEED: u64 = u64::from_le_bytes(*b"pbt_seed");

/// The report of a member in a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Told {
    /// The member of the previous round whose state this one took over or went on from, if there was one.
    pub parent: Option<usize>,
    /// The values of the explored settings in this round.
    pub settings: Settings,
    /// The metric by which members are compared, at the end of the round; `None` where it has no value, for
    /// example after divergence.
    pub score: Option<f64>,
}

/// A member at the start of a round.
#[derive(Clone, Debug)]
struct Individual {
    settings: Settings,
    seed: u64,
    parent: Option<usize>,
    /// The train state from which the member goes on, and the seed of that state's environments.
    from: Option<(BlobRef, u64)>,
}

/// The training of a member in a round, as another machine is told of it. The settings are the bits of their
/// values: the text of a number may read back as another.
#[derive(Debug, Serialize, Deserialize)]
struct Part {
    member: usize,
    settings: BTreeMap<String, u64>,
    seed: u64,
    from: Option<(BlobRef, u64)>,
    until: u64,
    interval: u64,
    total: u64,
}

/// The result of a population's training.
pub(crate) struct Trained {
    /// The reports of the rounds, member by member.
    pub rounds: Vec<Vec<Told>>,
    /// The best member at the end, and that member's state.
    pub best: usize,
    pub state: TrainState,
    /// The metrics of the population, as JSON lines.
    pub metrics: String,
}

/// The inputs of a population's training.
pub(crate) struct Population<'a> {
    pub config: &'a PbtConfig,
    pub context: &'a Context,
    pub env: (ArtifactDigest, &'a Artifact),
    pub init: Option<&'a Policy>,
    /// The names of everything that a member's training depends on besides its settings, seed and state: the
    /// trainer, the environment, the first policy, the numerics class.
    pub names: Vec<Vec<u8>>,
}

impl Population<'_> {
    /// Trains all members to the end.
    pub(super) fn train(&self) -> Result<Trained, StageError> {
        let config = self.config;
        let mut members: Vec<Individual> = (0..config.pop_size)
            .map(|i| Individual {
                settings: draw(&config.search_space, &mut Random::new(&[config.seed, FIRST, i as u64])),
                seed: self.seed(0, i),
                parent: None,
                from: None,
            })
            .collect();
        let common = config.member(&members[0].settings, members[0].seed)?.common().clone();
        let (total, by) = (common.training.total_timesteps, common.training.validation.selects_by());
        let (interval, end) = (config.interval(total), config.until.unwrap_or(total));
        let (mut rounds, mut metrics, mut until) = (Vec::new(), String::new(), 0);
        loop {
            until = (until + interval).min(total);
            let states = self.round(&members, (until, interval, total))?;
            let decoded: Vec<Option<TrainState>> = states
                .iter()
                .map(|state| self.decode(*state))
                .collect::<Result<_, StageError>>()?;
            let told: Vec<Told> = members
                .iter()
                .zip(&decoded)
                .map(|(member, state)| Told {
                    parent: member.parent,
                    settings: member.settings.clone(),
                    score: state.as_ref().and_then(|state| score(state, by)),
                })
                .collect();
            let order = best_first(&told);
            self.tell(&told, order[0], until, &mut metrics);
            rounds.push(told);
            if until >= end {
                let state = decoded.into_iter().nth(order[0]).flatten().ok_or_else(all_diverged)?;
                return Ok(Trained {
                    rounds,
                    best: order[0],
                    state,
                    metrics,
                });
            }
            members = self.select(&members, &states, &order, rounds.len())?;
        }
    }

    /// A seed of member `i` from a round on.
    fn seed(&self, round: usize, i: usize) -> u64 {
        // Seeds are written as JSON numbers.
        Random::new(&[self.config.seed, SEED, round as u64, i as u64]).next_u64() >> 12
    }

    fn decode(&self, state: Option<BlobRef>) -> Result<Option<TrainState>, StageError> {
        let Some(blob) = state else { return Ok(None) };
        let bytes = self.context.store.blob(blob.blob)?;
        match SavedState::decode(&bytes) {
            Some((state, _)) => Ok(Some(state)),
            None => {
                Err(StageError::new("the train state of a member is damaged").hint("run `runner verify`"))
            }
        }
    }

    /// Trains every member up to a step, in parallel within this stage's threads. Returns the members' train
    /// states, `None` for those that diverged. A member's result depends neither on the other members nor on
    /// the threads.
    fn round(
        &self,
        members: &[Individual],
        (until, interval, total): (u64, u64, u64),
    ) -> Result<Vec<Option<BlobRef>>, StageError> {
        self.elsewhere(members, (until, interval, total))?;
        let threads = self.context.threads.max(1);
        let side_by_side = threads.min(members.len());
        let (next, done) = (
            AtomicUsize::new(0),
            Arc::new(Progress::new(self.context, members.len(), total)),
        );
        let results: Vec<Option<Result<_, StageError>>> = members.iter().map(|_| None).collect();
        let results = Mutex::new(results);
        let work = || {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(member) = members.get(i) else { return };
                let result = self.segment(i, member, (until, interval), (i, &done));
                let failed = result.is_err();
                results.lock().unwrap_or_else(PoisonError::into_inner)[i] = Some(result);
                if failed {
                    next.store(members.len(), Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| -> Result<(), StageError> {
            for _ in 0..side_by_side {
                let pool = ThreadPoolBuilder::new()
                    .num_threads(threads / side_by_side)
                    .build()
                    .map_err(|err| StageError::new(format!("cannot start threads: {err}")))?;
                scope.spawn(move || pool.install(work));
            }
            Ok(())
        })?;
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.into_iter().flatten().collect()
    }

    /// Trains on other machines, if there are any, those members that are not cached: their train states are
    /// then in the store.
    fn elsewhere(
        &self,
        members: &[Individual],
        (until, interval, total): (u64, u64, u64),
    ) -> Result<(), StageError> {
        let Some(machines) = self.context.parts.as_ref().filter(|_| !self.context.fresh) else {
            return Ok(());
        };
        let (mut parts, mut memos) = (Vec::new(), Vec::new());
        for (i, member) in members.iter().enumerate() {
            let memo = self.memo(i, member, (until, interval))?;
            if self.context.given().known(&memo)?.is_some() {
                continue;
            }
            let bits = |(name, value): (&String, &f64)| (name.clone(), value.to_bits());
            let part = Part {
                member: i,
                settings: member.settings.iter().map(bits).collect(),
                seed: member.seed,
                from: member.from,
                until,
                interval,
                total,
            };
            parts.push(serde_json::to_value(part).map_err(|err| StageError::new(err.to_string()))?);
            memos.push(memo);
        }
        if parts.is_empty() {
            return Ok(());
        }
        machines.run(parts)?;
        let missing = memos.iter().filter(|memo| !self.appears(memo)).count();
        if missing > 0 {
            self.context.warn(
                format!("{missing} members trained elsewhere cannot be used, and are trained here"),
                Some("the machines differ in their numerics class, or the store shows their results late"),
            );
        }
        Ok(())
    }

    /// Waits until a memo that another machine has made is visible here; false if it does not become so.
    fn appears(&self, memo: &Memo) -> bool {
        /// A network file system may show a file so late.
        const WAIT: Duration = Duration::from_secs(90);
        let started = Instant::now();
        loop {
            match self.context.given().known(memo) {
                Ok(Some(_)) => return true,
                _ if started.elapsed() > WAIT || self.context.cancel.is_cancelled() => return false,
                _ => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Trains a member as another machine asks for it.
    pub(super) fn train_part(&self, part: Value) -> Result<(), StageError> {
        let part: Part = serde_json::from_value(part)
            .map_err(|err| StageError::new(format!("the member to train cannot be read: {err}")))?;
        let value = |(name, bits): (String, u64)| (name, f64::from_bits(bits));
        let member = Individual {
            settings: part.settings.into_iter().map(value).collect(),
            seed: part.seed,
            parent: None,
            from: part.from,
        };
        let progress = Arc::new(Progress::new(self.context, 1, part.total));
        self.segment(part.member, &member, (part.until, part.interval), (0, &progress))?;
        Ok(())
    }

    /// The memo of member `i`'s train state at the end of a round.
    fn memo(&self, i: usize, member: &Individual, (until, interval): (u64, u64)) -> Result<Memo, StageError> {
        let text = |err: serde_json::Error| StageError::new(err.to_string());
        let with = serde_json::to_value(&self.config.with).map_err(text)?;
        let explored = serde_json::to_value(&member.settings).map_err(text)?;
        let step = format!("{} {until} {interval}", member.seed);
        let from = member
            .from
            .map(|(state, seed)| format!("{} {seed}", state.blob.to_hex()));
        let own = [
            canonical_json(&with),
            canonical_json(&explored),
            step,
            from.unwrap_or_default(),
        ];
        let names = self.names.iter().map(Vec::as_slice);
        let parts: Vec<&[u8]> = names.chain(own.iter().map(String::as_bytes)).collect();
        let label = format!("member {i} until step {until}");
        Ok(Memo::new("train/pbt member v1", &parts, label))
    }

    /// The train state of member `i` at the end of a round, from the store if it is cached. Its progress is
    /// that of the member of `slot`.
    fn segment(
        &self,
        i: usize,
        member: &Individual,
        (until, interval): (u64, u64),
        (slot, progress): (usize, &Arc<Progress>),
    ) -> Result<Option<BlobRef>, StageError> {
        let settings = self.config.member(&member.settings, member.seed)?;
        let memo = self.memo(i, member, (until, interval))?;
        let context = Context {
            threads: rayon::current_num_threads(),
            events: Arc::new(MemberEvents {
                member: i,
                slot,
                parent: self.context.events.clone(),
                progress: progress.clone(),
            }),
            cancel: self.context.cancel.clone(),
            fresh: self.context.fresh,
            ..Context::new(self.context.key, self.context.store.clone())
        };
        let blob = self.context.memo(&memo, || {
            let bytes = match member.from {
                Some((state, seed)) => Some((context.store.blob(state.blob)?, seed)),
                None => None,
            };
            let segment = Segment {
                context: &context,
                env: self.env,
                init: self.init,
                from: bytes.as_ref().map(|(bytes, seed)| (&bytes[..], *seed)),
                until,
                interval,
                scratch: memo.key,
            };
            match train(self.config.trainer.name(), &*settings, &segment) {
                Ok(state) => Ok(state.encode()),
                Err(err) if err.cause == Cause::Diverged => {
                    self.context.log(format!("member {i}: {}", err.message));
                    Ok(Vec::new())
                }
                Err(err) => Err(err),
            }
        })?;
        progress.set(slot, i, until);
        // Its checkpoints are needed no more, and a leftover does no harm.
        let _ = fs::remove_dir_all(self.context.store.scratch_path(memo.key));
        Ok((blob.size > 0).then_some(blob))
    }

    /// The members of the next round: the worst, and those that diverged, take over the state of one of the
    /// best.
    fn select(
        &self,
        members: &[Individual],
        states: &[Option<BlobRef>],
        order: &[usize],
        round: usize,
    ) -> Result<Vec<Individual>, StageError> {
        let config = self.config;
        let count = |share: f64| ((share * order.len() as f64) as usize).max(1);
        let best: Vec<usize> = order
            .iter()
            .copied()
            .filter(|&i| states[i].is_some())
            .take(count(config.top_ratio))
            .collect();
        if best.is_empty() {
            return Err(all_diverged());
        }
        let worst = &order[order.len() - count(config.bottom_ratio)..];
        let next = |(i, member): (usize, &Individual)| {
            let mut random = Random::new(&[config.seed, SELECT, round as u64, i as u64]);
            let keeps = states[i].is_some() && (best.contains(&i) || !worst.contains(&i));
            let parent = if keeps {
                i
            } else {
                best[random.below(best.len() as u64) as usize]
            };
            let from = states[parent].map(|state| (state, members[parent].seed));
            if keeps {
                return Individual {
                    parent: Some(i),
                    from,
                    ..member.clone()
                };
            }
            let how = (config.resample_probability, config.perturb_factor);
            Individual {
                settings: explore(&config.search_space, &members[parent].settings, how, &mut random),
                seed: self.seed(round, i),
                parent: Some(parent),
                from,
            }
        };
        Ok(members.iter().enumerate().map(next).collect())
    }

    /// Records the metrics of a round.
    fn tell(&self, told: &[Told], best: usize, step: u64, metrics: &mut String) {
        let mut add = |name: String, value: f64| {
            if !value.is_finite() {
                return;
            }
            self.context.metric(&name, step, value);
            let line = serde_json::json!({ "name": name, "step": step, "value": value });
            metrics.push_str(&canonical_json(&line));
            metrics.push('\n');
        };
        let scores: Vec<f64> = told.iter().filter_map(|told| told.score).collect();
        add("pbt/score_best".to_owned(), told[best].score.unwrap_or(f64::NAN));
        add(
            "pbt/score_mean".to_owned(),
            scores.iter().sum::<f64>() / scores.len() as f64,
        );
        let taken = told.iter().enumerate();
        let taken = taken.filter(|(i, told)| told.parent.is_some_and(|parent| parent != *i));
        add("pbt/replaced".to_owned(), taken.count() as f64);
        for (name, value) in &told[best].settings {
            add(format!("pbt/best/{name}"), *value);
        }
        for (i, told) in told.iter().enumerate() {
            add(format!("pbt/member_{i}/score"), told.score.unwrap_or(f64::NAN));
            for (name, value) in &told.settings {
                add(format!("pbt/member_{i}/{name}"), *value);
            }
        }
    }
}

fn all_diverged() -> StageError {
    StageError::new("every member of the population diverged").hint("lower the upper ends of `search_space`")
}

/// The members by score, the best first; ties keep their order, and members without a score come last.
fn best_first(told: &[Told]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..told.len()).collect();
    let score = |i: usize| told[i].score.unwrap_or(f64::NEG_INFINITY);
    order.sort_by(|&a, &b| score(b).total_cmp(&score(a)));
    order
}

/// The last validation's value of the metric that selects, or else the mean return of the last episodes.
fn score(state: &TrainState, by: &str) -> Option<f64> {
    let line = |line: &str| serde_json::from_str::<Line>(line).ok().filter(|line| line.name == by);
    let validated = state.metrics.lines().rev().find_map(line).map(|line| line.value);
    let mean = || state.recent_mean().map(|(value, _)| value);
    validated.or_else(mean).filter(|score| score.is_finite())
}

/// The number of steps that all members together have done.
struct Progress {
    events: Arc<dyn EventSink>,
    done: Vec<AtomicU64>,
    total: u64,
}

impl Progress {
    fn new(context: &Context, members: usize, total: u64) -> Self {
        Self {
            events: context.events.clone(),
            done: (0..members).map(|_| AtomicU64::new(0)).collect(),
            total,
        }
    }

    fn set(&self, slot: usize, member: usize, step: u64) {
        self.done[slot].store(step, Ordering::Relaxed);
        let done = self.done.iter().map(|done| done.load(Ordering::Relaxed)).sum();
        self.events.emit(StageEvent::Progress {
            done,
            total: Some(self.total * self.done.len() as u64),
            message: format!("member {member}"),
        });
    }
}

/// Passes on the events of a member, under the member's name.
struct MemberEvents {
    member: usize,
    slot: usize,
    parent: Arc<dyn EventSink>,
    progress: Arc<Progress>,
}

impl EventSink for MemberEvents {
    fn emit(&self, event: StageEvent) {
        let member = self.member;
        match event {
            StageEvent::Progress { done, .. } => self.progress.set(self.slot, member, done),
            StageEvent::Log { line } => self.parent.emit(StageEvent::Log {
                line: format!("member {member}: {line}"),
            }),
            // The population's own metrics tell of its members; those of every update would be as many times
            // as many.
            StageEvent::Metric { .. } => {}
            other => self.parent.emit(other),
        }
    }
}
