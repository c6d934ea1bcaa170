//! The batch of environments of a market.

use super::course::Course;
use super::simulator::{Common, Simulator};
use super::state::{Clock as _, EnvState, Parts, StateRows, States};
use crate::actions::Actions;
use crate::batch::{BatchEnv, StepBuffers};
use crate::env_artifact::files;
use crate::env_artifact::{Files, spec};
use crate::open_options::{OpenOptions, Split};
use crate::ranges::{Rows, StepRows, View, for_ranges, split_fields};
use crate::reward::Moments;
use crate::saved_state::{StateReader, StateWriter};
use crate::spec::EnvSpec;
use crate::split::Splits;
use cache::{Artifact, Store};
use serde::Deserialize;
use stages_core::{PeriodsAYear, StageError, periods};
use std::ops::Range;
use std::sync::Arc;

/// B environments of a market.
pub struct PortfolioEnv<S: Simulator> {
    /// Shared by all environments over the same tables.
    pub(crate) simulator: Arc<S>,
    pub(crate) course: Course,
    pub(crate) states: States<S::Parts>,
    /// The account at the end of the last episode of each `[B]`, and its weights `[B, N]`.
    finals: Vec<Option<S::Ledger>>,
    final_weights: Vec<f64>,
    /// The explanation of each environment's last step, if [`PortfolioEnv::keep_notes`] was called; else
    /// empty.
    notes: Vec<S::Note>,
}

/// The number of evaluation episodes of a split in an artifact over market data: one for each range of each
/// world.
pub(crate) fn evaluation_episodes(
    store: &Store,
    artifact: &Artifact,
    split: Split,
) -> Result<usize, StageError> {
    #[derive(Deserialize)]
    struct World {
        splits: Splits,
    }
    #[derive(Deserialize)]
    struct Spec {
        worlds: Vec<World>,
    }
    let spec: Spec = spec(files(store, artifact))?;
    Ok(spec.worlds.iter().map(|world| world.splits.of(split).len()).sum())
}

/// A range of environments and the rows that they write.
struct EnvRows<'a, S: Simulator> {
    states: StateRows<'a, S::Parts>,
    finals: &'a mut [Option<S::Ledger>],
    final_weights: Rows<'a, f64>,
    notes: Rows<'a, S::Note>,
    out: StepRows<'a>,
}

impl<S: Simulator> View for EnvRows<'_, S> {
    fn split(self, n: usize) -> (Self, Self) {
        split_fields!(self, n, states, finals, final_weights, notes, out)
    }
}

/// Starts the episode that the account numbers, in environment `i`.
#[inline]
pub(super) fn begin<S: Simulator>(
    simulator: &S,
    course: &Course,
    i: usize,
    env: &mut EnvState<'_, S::Parts>,
) {
    let snapshots = course.episode(i, *env.account.episode(), simulator.common().episode_length);
    simulator.begin(env, snapshots);
    *env.moments = simulator.common().reward.moments();
}

impl<S: Simulator> PortfolioEnv<S> {
    /// Opens the artifact of a stage, each environment at the beginning of its first episode.
    ///
    /// # Errors
    /// The errors of [`crate::open`]; and when `options` asks for training dates of an environment that has
    /// none.
    pub fn open(store: &Store, artifact: &Artifact, options: &OpenOptions) -> Result<Self, StageError> {
        Self::from_files(files(store, artifact), options)
    }

    /// Opens the files that `file` returns by name.
    pub(crate) fn from_files(file: impl Files, options: &OpenOptions) -> Result<Self, StageError> {
        StageError::new("cannot open 0 environments").when(options.num_envs == 0)?;
        Self::over(Arc::new(S::open(file, options)?), options)
    }

    /// Opens other environments over the same tables, which are not read again; they stay in the
    /// normalisation of these, whatever `options` says.
    ///
    /// # Errors
    /// When `options` asks for no environment, or for dates of which the tables have none.
    pub fn again(&self, options: &OpenOptions) -> Result<Self, StageError> {
        StageError::new("cannot open 0 environments").when(options.num_envs == 0)?;
        Self::over(Arc::clone(&self.simulator), options)
    }

    fn over(simulator: Arc<S>, options: &OpenOptions) -> Result<Self, StageError> {
        let num_envs = options.num_envs;
        let course = Course::new(&simulator.common().worlds, options)?;
        let mut states = States::new(num_envs, simulator.common().width);
        let mut rows = states.rows();
        for i in 0..num_envs {
            begin(&*simulator, &course, i, &mut rows.env(i));
        }
        Ok(Self {
            course,
            states,
            finals: vec![None; num_envs],
            final_weights: vec![0.0; num_envs * simulator.common().num_weights],
            notes: Vec::new(),
            simulator,
        })
    }

    /// B, the number of environments.
    pub(crate) fn len(&self) -> usize {
        self.finals.len()
    }

    /// Steps every environment; `decide` says what environment i does, from its own state alone.
    pub(crate) fn run<'a>(
        &mut self,
        decide: &(impl Fn(&S, usize, &mut EnvState<'_, S::Parts>) -> S::Act<'a> + Sync),
        out: StepBuffers<'_>,
    ) {
        let (simulator, course) = (&*self.simulator, &self.course);
        let num_envs = self.finals.len();
        let range = EnvRows {
            states: self.states.rows(),
            finals: &mut self.finals,
            final_weights: Rows::new(&mut self.final_weights, simulator.common().num_weights),
            notes: Rows {
                width: usize::from(!self.notes.is_empty()),
                values: &mut self.notes,
            },
            out: StepRows::new(out, &simulator.common().spec),
        };
        for_ranges(range, num_envs, S::GRAIN, &|first, len, mut range: EnvRows<'_, S>| {
            let out = &mut range.out;
            for i in 0..len {
                let mut env = range.states.env(i);
                let act = decide(simulator, first + i, &mut env);
                let note = match size_of::<S::Note>() {
                    0 => None,
                    _ => range.notes.row(i).first_mut(),
                };
                let outcome = simulator.step(&mut env, act, note);
                out.reward[i] = outcome.reward;
                out.terminated[i] = outcome.terminated;
                out.truncated[i] = outcome.truncated;
                if outcome.terminated || outcome.truncated {
                    simulator.observe(&env, out.final_obs.row(i));
                    range.finals[i] = Some(simulator.ledger(env.view()));
                    simulator.weights(env.view(), range.final_weights.row(i));
                    *env.account.episode() += 1;
                    begin(simulator, course, first + i, &mut env);
                }
                simulator.observe(&env, out.obs.row(i));
                if S::MASKS {
                    simulator.mask(&env, out.action_mask.row(i));
                }
            }
            if !S::MASKS {
                out.action_mask.values.fill(true);
            }
        });
    }

    /// Steps each environment by itself, as many times as `steps` has columns, all environments in parallel:
    /// so the tables of its world stay in the cache, and threads meet once. `decide` says what environment i
    /// does from its own state and from what it has kept since the episode began. Writes the snapshot from
    /// which each step goes, and its reward, to `steps` `[B, T]`; no observation.
    pub(crate) fn run_each<'a, M: Default>(
        &mut self,
        decide: &(impl Fn(&S, &mut M, &mut EnvState<'_, S::Parts>) -> S::Act<'a> + Sync),
        steps: &mut [(u32, f32)],
    ) {
        let (simulator, course, num_envs) = (&*self.simulator, &self.course, self.finals.len());
        let width = steps.len() / num_envs;
        let view = (self.states.rows(), Rows::new(steps, width));
        for_ranges(view, num_envs, 1, &|first,
                                        len,
                                        (mut states, mut steps): (
            StateRows<'_, _>,
            Rows<'_, _>,
        )| {
            for i in 0..len {
                let (mut env, mut kept) = (states.env(i), M::default());
                for step in steps.row(i) {
                    let from = env.account.now() as u32;
                    let act = decide(simulator, &mut kept, &mut env);
                    let outcome = simulator.step(&mut env, act, None);
                    *step = (from, outcome.reward);
                    if outcome.terminated || outcome.truncated {
                        kept = M::default();
                        *env.account.episode() += 1;
                        begin(simulator, course, first + i, &mut env);
                    }
                }
            }
        });
    }

    fn tag(&self) -> String {
        let Course { split, seed, .. } = &self.course;
        let [kind, size] = &self.common().tag;
        format!("{kind} x {} of {size}, {split:?} with seed {seed}", self.finals.len())
    }

    /// Keeps the explanation of every step from now on.
    pub fn keep_notes(&mut self) {
        self.notes = vec![S::Note::default(); self.finals.len()];
    }

    /// The explanation of the last step of environment `i`; nothing unless [`PortfolioEnv::keep_notes`]
    /// was called.
    pub fn note(&self, i: usize) -> S::Note {
        self.notes.get(i).copied().unwrap_or_default()
    }

    /// Forgets the ends of episodes.
    pub(super) fn forget(&mut self) {
        self.finals.fill(None);
    }

    /// The facts that all accounts share.
    pub fn common(&self) -> &Common {
        self.simulator.common()
    }

    /// The number of weights of an account, one for each symbol.
    pub fn num_weights(&self) -> usize {
        self.common().num_weights
    }

    /// The market.
    pub fn simulator(&self) -> &S {
        &self.simulator
    }

    /// The present account of environment `i`; after the end of an episode, that at the start of the next.
    pub fn ledger(&self, i: usize) -> S::Ledger {
        self.simulator.ledger(self.states.view(i))
    }

    /// The account of environment `i` as its last finished episode left it; `None` before the first end.
    pub fn final_ledger(&self, i: usize) -> Option<S::Ledger> {
        self.finals[i]
    }

    /// The positions of environment `i` `[N]`, negative if short.
    pub fn held(&self, i: usize) -> &[<S::Parts as Parts>::Position] {
        self.states.view(i).positions
    }

    /// Writes the value of each position of environment `i` as a fraction of its net asset value `[N]`.
    pub fn weights(&self, i: usize, out: &mut [f64]) {
        self.simulator.weights(self.states.view(i), out);
    }

    /// The weights `[N]` with which the last finished episode of environment `i` ended; zeros before the
    /// first end.
    pub fn final_weights(&self, i: usize) -> &[f64] {
        let n = self.common().num_weights;
        &self.final_weights[i * n..(i + 1) * n]
    }

    /// The number of the present snapshot of environment `i`, among those of all worlds.
    pub fn snapshot(&self, i: usize) -> usize {
        self.states.now(i)
    }

    /// The name of the world that environment `i` is in.
    pub fn world(&self, i: usize) -> &str {
        self.common().worlds.name(self.snapshot(i))
    }

    /// The names of all worlds.
    pub fn worlds(&self) -> Vec<&str> {
        let names = self.common().worlds.names();
        names.iter().map(String::as_str).collect()
    }

    /// The snapshots of the world of a snapshot: others are of another market.
    pub fn world_of(&self, snapshot: usize) -> Range<usize> {
        let worlds = &self.common().worlds;
        worlds.snapshots(worlds.of(snapshot))
    }

    /// The first snapshot of the world of a snapshot.
    pub fn world_start(&self, snapshot: usize) -> usize {
        self.world_of(snapshot).start
    }

    /// The number of evaluation episodes of the split with which the environments were opened: environment i
    /// runs the i-th, and then all from the first on.
    pub fn evaluation_episodes(&self) -> usize {
        self.course.ranges.len()
    }

    /// Steps from the start to the end of the evaluation episode of environment `i`.
    pub fn test_steps(&self, i: usize) -> usize {
        let range = self.course.evaluated(i);
        range.last - range.first + self.common().steps_beyond
    }

    /// The periods a year between the snapshots of the first evaluation episode, in a market with the
    /// calendar that the artifact's metadata states; where it states none, the dates of the world tell.
    pub fn periods_a_year(&self, meta: &serde_json::Value) -> PeriodsAYear {
        let Common { worlds, times, .. } = self.common();
        let range = self.course.evaluated(0);
        let world = &times[worlds.snapshots(worlds.of(range.first))];
        let dates = world.iter().map(|time| time.date);
        PeriodsAYear::new(periods::calendar(meta), dates, &times[range.first..=range.last])
    }
}

impl<S: Simulator> BatchEnv for PortfolioEnv<S> {
    fn spec(&self) -> &EnvSpec {
        &self.common().spec
    }

    fn num_envs(&self) -> usize {
        self.finals.len()
    }

    fn reset(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        let mut out = StepRows::new(out, &self.common().spec);
        let mut states = self.states.rows();
        for i in 0..self.finals.len() {
            let mut env = states.env(i);
            if env.account.steps() != 0 {
                *env.account.episode() += 1;
                begin(&*self.simulator, &self.course, i, &mut env);
            }
            self.simulator.observe(&env, out.obs.row(i));
            if S::MASKS {
                self.simulator.mask(&env, out.action_mask.row(i));
            }
        }
    }

    fn step(&mut self, actions: Actions<'_>, mut out: StepBuffers<'_>) -> Result<(), StageError> {
        let space = &self.common().spec.action_space;
        space.check(actions, self.finals.len())?;
        let k = space.num_components();
        self.run(
            &|simulator, i, env| simulator.decide(actions.row(i, k), env),
            out.again(),
        );
        match out.reward.iter().position(|reward| !reward.is_finite()) {
            None => Ok(()),
            Some(i) => Err(StageError::new(format!(
                "the reward of a step to {} is {}",
                self.common().times[self.snapshot(i)],
                out.reward[i]
            ))
            .hint(
                "keep the expression at `reward` from dividing by 0 and from roots and logarithms of what \
                may be 0 or less",
            )),
        }
    }

    fn beside(&self, options: &OpenOptions) -> Result<Option<Box<dyn BatchEnv>>, StageError> {
        Ok(Some(Box::new(self.again(options)?)))
    }

    fn save(&self) -> Vec<u8> {
        let states = &self.states;
        let moments: &[Moments] = match self.common().reward.keeps_moments() {
            true => &states.moments,
            false => &[],
        };
        let hedges: &[<S::Parts as Parts>::Hedge] = if self.common().hedges { &states.hedges } else { &[] };
        StateWriter::new(&self.tag())
            .array(&states.accounts)
            .array(&states.positions)
            .array(&states.counters)
            .array(moments)
            .array(hedges)
            .finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let tag = self.tag();
        let (simulator, states) = (&*self.simulator, &mut self.states);
        let moments: &mut [Moments] = match simulator.common().reward.keeps_moments() {
            true => &mut states.moments,
            false => &mut [],
        };
        let hedges: &mut [<S::Parts as Parts>::Hedge] = if simulator.common().hedges {
            &mut states.hedges
        } else {
            &mut []
        };
        let size = size_of_val(&states.accounts[..])
            + size_of_val(&states.positions[..])
            + size_of_val(&states.counters[..])
            + size_of_val(moments)
            + size_of_val(hedges);
        let mut reader = StateReader::new(state, &tag, size)?;
        reader.array(&mut states.accounts);
        reader.array(&mut states.positions);
        reader.array(&mut states.counters);
        reader.array(moments);
        reader.array(hedges);
        let mut rows = states.rows();
        for i in 0..self.finals.len() {
            simulator.recall(&mut rows.env(i));
        }
        self.forget();
        Ok(())
    }
}
