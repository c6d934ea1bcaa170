//! The batch of environments.

use super::ledger::Ledger;
use super::lookup::Tables;
use super::state::{Account, EnvState, StateRows, States};
use super::stepper::{Intent, Stepper};
use crate::actions::Actions;
use crate::batch::{BatchEnv, StepBuffers};
use crate::open_options::{OpenOptions, Split};
use crate::ranges::{Rows, StepRows, View, for_ranges};
use crate::saved_state::{StateReader, StateWriter};
use crate::spec::EnvSpec;
use crate::split::SnapshotRange;
use crate::table::config::{TableActionKind, TableConfig};
use crate::table::quantities::Form;
use crate::table::tables::{SPEC, Spec};
use bytes::Bytes;
use cache::{Artifact, Store};
use datasets::{Date, SnapshotTime};
use stages_core::StageError;

/// With fewer environments per thread than this, scheduling the task costs more than stepping them.
const GRAIN: usize = 512;

/// B environments over the rows of a table.
pub struct TableEnv {
    pub(super) stepper: Stepper,
    pub(super) states: States,
    /// The account at the end of the last episode of each `[B]`.
    pub(super) finals: Vec<Option<Account>>,
    /// The positions at that end `[B, N]`.
    final_held: Vec<f64>,
}

/// The positions that a caller wants of an environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target<'a> {
    /// Those it has, as prices have left them.
    Hold,
    /// Positions `[N]`; costs are those of the environment.
    Positions(&'a [f64]),
}

/// Opens the artifact of the stage `env/table`, as itself rather than as a [`BatchEnv`].
///
/// # Errors
/// As [`crate::open`]; and when `options` asks for training dates of an environment that has none.
pub fn open(store: &Store, artifact: &Artifact, options: &OpenOptions) -> Result<TableEnv, StageError> {
    let file = |name: &str| -> Result<Bytes, StageError> {
        let entry = artifact
            .entry(name)
            .ok_or_else(|| StageError::new(format!("the environment has no `{name}`")))?;
        Ok(Bytes::from_owner(store.blob(entry.blob)?))
    };
    TableEnv::from_files(file, options)
}

/// The number of evaluation episodes of a split in an artifact of `env/table`: one for each range of each
/// world.
///
/// # Errors
/// When the artifact is not one of `env/table`, or damaged.
pub(crate) fn evaluation_episodes(
    store: &Store,
    artifact: &Artifact,
    split: Split,
) -> Result<usize, StageError> {
    let entry = artifact
        .entry(SPEC)
        .ok_or_else(|| StageError::new(format!("the environment has no `{SPEC}`")))?;
    let spec = Spec::decode(&store.blob(entry.blob)?)?;
    Ok(spec.worlds.iter().map(|world| world.splits.of(split).len()).sum())
}

/// A range of environments and the rows that they write.
struct EnvRows<'a> {
    states: StateRows<'a>,
    finals: &'a mut [Option<Account>],
    final_held: Rows<'a, f64>,
    out: StepRows<'a>,
}

impl View for EnvRows<'_> {
    fn split(self, n: usize) -> (Self, Self) {
        let (states, finals, out) = (self.states.split(n), self.finals.split_at_mut(n), self.out.split(n));
        let final_held = self.final_held.split(n);
        (
            Self {
                states: states.0,
                finals: finals.0,
                final_held: final_held.0,
                out: out.0,
            },
            Self {
                states: states.1,
                finals: finals.1,
                final_held: final_held.1,
                out: out.1,
            },
        )
    }
}

/// Brings positions within their limits: each within its range, and of several their absolute sum within
/// `gross` by one factor.
fn limit(config: &TableConfig, target: &mut [f64]) {
    let actions = &config.actions;
    let mut gross = 0.0;
    for target in &mut *target {
        // Not a number: no position, as near to it as the range allows.
        let wanted = if target.is_nan() { 0.0 } else { *target };
        *target = wanted.clamp(actions.low, actions.high);
        gross += target.abs();
    }
    if config.is_panel() && gross > actions.gross {
        let factor = actions.gross / gross;
        target.iter_mut().for_each(|target| *target *= factor);
    }
}

/// The actions of a batch.
#[derive(Clone, Copy)]
pub(super) enum Acts<'a> {
    /// Choices that are paid their columns.
    Paid(&'a [u32]),
    /// Choices of a position.
    Choices(&'a [u32]),
    Positions(&'a [f32]),
}

impl<'a> Acts<'a> {
    /// Actions for `b` environments.
    pub(super) fn new(stepper: &Stepper, actions: Actions<'a>, b: usize) -> Result<Self, StageError> {
        Ok(match (stepper.form, stepper.tables.spec.config.actions.kind) {
            (Form::PerAction, _) => Self::Paid(actions.discrete(b)?),
            (_, TableActionKind::Discrete) => Self::Choices(actions.discrete(b)?),
            (_, TableActionKind::Continuous | TableActionKind::Weights) => {
                Self::Positions(actions.continuous(b, stepper.tables.n)?)
            }
        })
    }

    /// Fills the target of environment `i`, and says what it means.
    pub(super) fn decide(self, stepper: &Stepper, i: usize, target: &mut [f64]) -> Intent {
        let config = &stepper.tables.spec.config;
        match self {
            Self::Paid(choices) => return Intent::Choice(choices[i]),
            Self::Choices(choices) => {
                let positions = &config.actions.positions;
                target[0] = *positions.get(choices[i] as usize).unwrap_or(&positions[0]);
            }
            Self::Positions(wanted) => {
                let n = target.len();
                for (target, wanted) in target.iter_mut().zip(&wanted[i * n..(i + 1) * n]) {
                    *target = f64::from(*wanted);
                }
                limit(config, target);
            }
        }
        Intent::Positions
    }
}

impl TableEnv {
    pub(crate) fn from_files(
        file: impl Fn(&str) -> Result<Bytes, StageError>,
        options: &OpenOptions,
    ) -> Result<Self, StageError> {
        if options.num_envs == 0 {
            return Err(StageError::new("cannot open 0 environments"));
        }
        let tables = Tables::open(file, options.normalise_as.as_ref())?;
        let n = tables.n;
        let stepper = Stepper::new(tables, options.split, options.seed)?;
        if stepper.ranges.is_empty() {
            return Err(options.split.without_dates());
        }
        let mut states = States::new(options.num_envs, n);
        let mut rows = states.rows();
        for i in 0..options.num_envs {
            stepper.begin(i, &mut rows.env(i));
        }
        Ok(Self {
            stepper,
            states,
            finals: vec![None; options.num_envs],
            final_held: vec![0.0; options.num_envs * n],
        })
    }

    pub(super) fn tables(&self) -> &Tables {
        &self.stepper.tables
    }

    /// Steps every environment; `decide` fills the target of environment i, and says what it means.
    fn run(
        &mut self,
        decide: &(impl Fn(&Stepper, usize, &mut EnvState) -> Intent + Sync),
        out: StepBuffers<'_>,
    ) {
        let stepper = &self.stepper;
        let num_envs = self.finals.len();
        let range = EnvRows {
            states: self.states.rows(),
            finals: &mut self.finals,
            final_held: Rows {
                values: &mut self.final_held,
                width: stepper.tables.n,
            },
            out: StepRows::new(out, &stepper.tables.spec.env),
        };
        for_ranges(range, num_envs, GRAIN, &|first, len, mut range: EnvRows| {
            for i in 0..len {
                let out = &mut range.out;
                let mut env = range.states.env(i);
                let intent = decide(stepper, first + i, &mut env);
                let outcome = stepper.step(&mut env, intent);
                out.reward[i] = outcome.reward;
                out.terminated[i] = outcome.terminated;
                out.truncated[i] = outcome.truncated;
                if outcome.terminated || outcome.truncated {
                    stepper.observe(&env, out.final_obs.row(i));
                    range.finals[i] = Some(*env.account);
                    range.final_held.row(i).copy_from_slice(env.held);
                    env.account.episode += 1;
                    stepper.begin(first + i, &mut env);
                }
                stepper.observe(&env, out.obs.row(i));
            }
            range.out.action_mask.values.fill(true);
        });
    }

    /// Takes a target for each environment, as [`BatchEnv::step`] does with actions. Those of discrete
    /// actions need not be among the choices, others are brought within their limits.
    ///
    /// # Errors
    /// When there is not one for each environment, positions are not one for each symbol, or the environment
    /// has choices instead of positions.
    pub fn step_targets(&mut self, targets: &[Target<'_>], out: StepBuffers<'_>) -> Result<(), StageError> {
        let (b, n) = (self.finals.len(), self.tables().n);
        let fits = |target: &Target<'_>| match target {
            Target::Hold => true,
            Target::Positions(positions) => positions.len() == n && positions.iter().all(|p| p.is_finite()),
        };
        if targets.len() != b || !targets.iter().all(fits) || self.stepper.form == Form::PerAction {
            return Err(StageError::new(format!(
                "expected a target for each of {b} environments, with {n} finite positions each"
            )));
        }
        let decide = |stepper: &Stepper, i: usize, env: &mut EnvState| match targets[i] {
            Target::Hold => Intent::Hold,
            Target::Positions(positions) => {
                env.target.copy_from_slice(positions);
                let config = &stepper.tables.spec.config;
                if config.actions.kind != TableActionKind::Discrete {
                    limit(config, env.target);
                }
                Intent::Positions
            }
        };
        self.run(&decide, out);
        Ok(())
    }

    fn statement(&self, account: &Account, held: &[f64]) -> Ledger {
        let row = account.t as usize;
        Ledger {
            time: self.tables().times[row],
            row,
            step: (account.t - account.first) as usize,
            nav: account.nav,
            total: account.total,
            costs: account.costs,
            turnover: account.turnover,
            net: held.iter().sum(),
            gross: held.iter().map(|held| held.abs()).sum(),
        }
    }

    /// The account of environment `i`, as it is now; after the end of an episode, at the start of the next.
    pub fn ledger(&self, i: usize) -> Ledger {
        self.statement(&self.states.accounts[i], self.states.held_of(i))
    }

    /// The account of environment `i` as its last finished episode left it; `None` before the first end.
    pub fn final_ledger(&self, i: usize) -> Option<Ledger> {
        Some(self.statement(&self.finals[i]?, self.final_held(i)))
    }

    /// The positions of environment `i` `[N]`: with a price, as fractions of the net asset value.
    pub fn held(&self, i: usize) -> &[f64] {
        self.states.held_of(i)
    }

    /// The positions `[N]` with which the last finished episode of environment `i` ended; zeros before the
    /// first end.
    pub fn final_held(&self, i: usize) -> &[f64] {
        let n = self.tables().n;
        &self.final_held[i * n..(i + 1) * n]
    }

    /// The configuration.
    pub fn config(&self) -> &TableConfig {
        &self.tables().spec.config
    }

    /// True if a price is traded, so that there is a net asset value.
    pub fn has_price(&self) -> bool {
        self.stepper.form == Form::Price
    }

    /// The number of symbols N of an episode.
    pub fn num_symbols(&self) -> usize {
        self.tables().n
    }

    /// The name of the world that environment `i` is in: its symbol, or `table` for all.
    pub fn world(&self, i: usize) -> &str {
        let tables = self.tables();
        &tables.spec.worlds[tables.world_of(self.row(i))].name
    }

    /// The number of the row that environment `i` is at, among the rows of all worlds.
    pub fn row(&self, i: usize) -> usize {
        self.states.accounts[i].t as usize
    }

    /// The instant of a row.
    pub fn time(&self, row: usize) -> SnapshotTime {
        self.tables().times[row]
    }

    /// The number of evaluation episodes of the split that it was opened with: environment i runs the i-th,
    /// and then again from the first on.
    pub fn evaluation_episodes(&self) -> usize {
        self.stepper.ranges.len()
    }

    fn evaluated(&self, i: usize) -> SnapshotRange {
        self.stepper.ranges[i % self.stepper.ranges.len()]
    }

    /// Steps from the start to the end of the evaluation episode of environment `i`.
    pub fn test_steps(&self, i: usize) -> usize {
        let range = self.evaluated(i);
        range.last - range.first
    }

    /// The dates of the evaluation episode of environment `i`, one for each row.
    pub fn test_dates(&self, i: usize) -> Vec<Date> {
        let range = self.evaluated(i);
        self.tables().times[range.first..=range.last]
            .iter()
            .map(|time| time.date)
            .collect()
    }

    /// The mean over symbols of what 1 of position is paid for the step from a row to the next; with a price,
    /// the mean return. 0 at the end of a world.
    pub fn mean_payoff(&self, row: usize) -> f64 {
        self.tables().mean_payoff(row)
    }

    /// The part of an observation that shows the columns of a row, the same for every account.
    pub fn shown(&self, row: usize) -> &[f32] {
        self.tables().shown(row)
    }

    fn tag(&self) -> String {
        let Stepper {
            tables, split, seed, ..
        } = &self.stepper;
        format!(
            "table v1 x {} of {} symbols over {} rows, {split:?} with seed {seed}",
            self.finals.len(),
            tables.n,
            tables.times.len(),
        )
    }
}

impl BatchEnv for TableEnv {
    fn spec(&self) -> &EnvSpec {
        &self.tables().spec.env
    }

    fn num_envs(&self) -> usize {
        self.finals.len()
    }

    fn reset(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        let mut out = StepRows::new(out, &self.stepper.tables.spec.env);
        let mut states = self.states.rows();
        for i in 0..self.finals.len() {
            let mut env = states.env(i);
            if env.account.t != env.account.first {
                env.account.episode += 1;
                self.stepper.begin(i, &mut env);
            }
            self.stepper.observe(&env, out.obs.row(i));
        }
    }

    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        let acts = Acts::new(&self.stepper, actions, self.finals.len())?;
        let again = StepBuffers {
            obs: &mut *out.obs,
            reward: &mut *out.reward,
            terminated: &mut *out.terminated,
            truncated: &mut *out.truncated,
            final_obs: &mut *out.final_obs,
            action_mask: &mut *out.action_mask,
        };
        self.run(&|stepper, i, env| acts.decide(stepper, i, env.target), again);
        match out.reward.iter().position(|reward| !reward.is_finite()) {
            None => Ok(()),
            Some(i) => Err(StageError::new(format!(
                "the reward of a step to {} is {}",
                self.ledger(i).time,
                out.reward[i]
            ))
            .hint(
                "keep the expression at `reward` from dividing by 0 and from roots and logarithms of what \
                may be 0 or less",
            )),
        }
    }

    fn save(&self) -> Vec<u8> {
        let moments: &[_] = match self.config().reward.keeps_moments() {
            true => &self.states.moments,
            false => &[],
        };
        StateWriter::new(&self.tag())
            .array(&self.states.accounts)
            .array(&self.states.held)
            .array(moments)
            .finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let tag = self.tag();
        let keeps_moments = self.config().reward.keeps_moments();
        let States {
            accounts,
            held,
            moments,
            ..
        } = &mut self.states;
        let moments = match keeps_moments {
            true => &mut moments[..],
            false => &mut [],
        };
        let size = size_of_val(&accounts[..]) + size_of_val(&held[..]) + size_of_val(moments);
        let mut reader = StateReader::new(state, &tag, size)?;
        reader.array(accounts);
        reader.array(held);
        reader.array(moments);
        self.finals.fill(None);
        Ok(())
    }
}
