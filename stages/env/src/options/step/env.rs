//! The batch of environments.

use super::baseline::Baseline;
use super::explain::Explained;
use super::ledger::{Ledger, Position};
use super::lookup::Tables;
use super::market::Market;
use super::observe::observe;
use super::state::{EnvState, StateRows, States};
use super::stepper::{Act, Stepper};
use crate::actions::Actions;
use crate::batch::{BatchEnv, StepBuffers};
use crate::open_options::{OpenOptions, Split};
use crate::options::action_config::ActionKind;
use crate::options::config::{MAX_ACTIONS, MarginKind};
use crate::options::fills::FillRule;
use crate::options::order::Decision;
use crate::options::strategies::Strategies;
use crate::options::tables::{SPEC, Spec};
use crate::ranges::{Rows, StepRows, View, for_ranges};
use crate::saved_state::{StateReader, StateWriter};
use crate::spec::EnvSpec;
use crate::split::SnapshotRange;
use bytes::Bytes;
use cache::{Artifact, Store};
use datasets::Date;
use stages_core::StageError;

/// With fewer environments per thread than this, scheduling the task costs more than stepping them.
const GRAIN: usize = 32;

/// B environments that trade options on one underlying.
pub struct OptionsEnv {
    pub(super) stepper: Stepper,
    pub(super) states: States,
    /// The account at the end of the last episode of each.
    pub(super) finals: Vec<Option<Ledger>>,
    /// The profit by Greek of the last step of each, where [`OptionsEnv::explain`] asked for it; else empty.
    explained: Vec<Explained>,
}

/// Opens the artifact of the stage `env/options`, as itself rather than as a [`BatchEnv`].
///
/// # Errors
/// As [`crate::open`]; and when `options` asks for training dates of an environment that has none.
pub fn open(store: &Store, artifact: &Artifact, options: &OpenOptions) -> Result<OptionsEnv, StageError> {
    let file = |name: &str| -> Result<Bytes, StageError> {
        let entry = artifact
            .entry(name)
            .ok_or_else(|| StageError::new(format!("the environment has no `{name}`")))?;
        Ok(Bytes::from_owner(store.blob(entry.blob)?))
    };
    OptionsEnv::from_files(file, options)
}

/// The number of evaluation episodes of a split in an artifact of `env/options`: one for each range of each
/// world.
///
/// # Errors
/// When the artifact is not one of `env/options`, or damaged.
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

/// The actions of a batch.
#[derive(Clone, Copy)]
pub(super) enum Acts<'a> {
    Menu(&'a [u32]),
    Choices(&'a [u32]),
    Weights(&'a [f32]),
}

impl<'a> Acts<'a> {
    /// Actions, for so many environments of a configuration.
    pub(super) fn new(
        kind: ActionKind,
        actions: Actions<'a>,
        n: usize,
        k: usize,
    ) -> Result<Self, StageError> {
        Ok(match kind {
            ActionKind::Menu => Self::Menu(actions.discrete(n)?),
            ActionKind::MultiDiscrete => Self::Choices(actions.multi_discrete(n, k)?),
            ActionKind::Continuous => Self::Weights(actions.continuous(n, k)?),
        })
    }

    /// The action of environment `i`, of k values.
    pub(super) fn of(self, i: usize, k: usize) -> Act<'a> {
        match self {
            Self::Menu(actions) => Act::Decision(Decision::Action(actions[i])),
            Self::Choices(choices) => Act::Choices(&choices[i * k..(i + 1) * k]),
            Self::Weights(weights) => Act::Weights(&weights[i * k..(i + 1) * k]),
        }
    }
}

/// A range of environments and the rows that they write.
struct EnvRows<'a> {
    states: StateRows<'a>,
    finals: &'a mut [Option<Ledger>],
    explained: Rows<'a, Explained>,
    out: StepRows<'a>,
}

impl View for EnvRows<'_> {
    fn split(self, n: usize) -> (Self, Self) {
        let (states, finals, out) = (self.states.split(n), self.finals.split_at_mut(n), self.out.split(n));
        let explained = self.explained.split(n);
        (
            Self {
                states: states.0,
                finals: finals.0,
                explained: explained.0,
                out: out.0,
            },
            Self {
                states: states.1,
                finals: finals.1,
                explained: explained.1,
                out: out.1,
            },
        )
    }
}

pub(super) fn show(stepper: &Stepper, env: &EnvState, obs: &mut [f32], action_mask: &mut [bool]) {
    observe(&stepper.market, env, obs);
    stepper.show_mask(env, action_mask);
}

impl OptionsEnv {
    pub(crate) fn from_files(
        file: impl Fn(&str) -> Result<Bytes, StageError>,
        options: &OpenOptions,
    ) -> Result<Self, StageError> {
        if options.num_envs == 0 {
            return Err(StageError::new("cannot open 0 environments"));
        }
        let tables = Tables::open(file, options.normalise_as.as_ref())?;
        let ranges = tables.ranges(options.split);
        if ranges.is_empty() {
            return Err(options.split.without_dates());
        }
        let config = tables.spec.config.clone();
        let clip = tables.spec.env.normalisation.as_ref().map_or(config.clip, |n| n.clip);
        let stepper = Stepper::new(Market {
            strategies: Strategies::new(&config)?,
            multiplier: tables.spec.multiplier,
            fills: FillRule::new(
                config.fills.price,
                &config.fills.impact,
                &config.fills.liquidity,
                config.fills.partial,
            ),
            scenarios: (config.margin.kind == MarginKind::Portfolio)
                .then(|| config.margin.risk_array.scenarios()),
            clip,
            ranges,
            split: options.split,
            seed: options.seed,
            tables,
            config,
        })?;
        let mut states = States::new(options.num_envs, stepper.market.config.lines);
        let mut rows = states.rows();
        for i in 0..options.num_envs {
            stepper.begin(i, &mut rows.env(i));
        }
        Ok(Self {
            stepper,
            states,
            finals: vec![None; options.num_envs],
            explained: Vec::new(),
        })
    }

    #[cfg(test)]
    pub(crate) fn tables(&self) -> &Tables {
        &self.stepper.market.tables
    }

    /// Steps every environment; `decide` gives the decision of environment i from its own state alone.
    fn run<'a>(
        &mut self,
        decide: &(impl Fn(&Market, usize, &EnvState) -> Act<'a> + Sync),
        out: StepBuffers<'_>,
    ) {
        let stepper = &self.stepper;
        let market = &stepper.market;
        let num_envs = self.finals.len();
        let range = EnvRows {
            states: self.states.rows(),
            finals: &mut self.finals,
            explained: Rows {
                width: usize::from(!self.explained.is_empty()),
                values: &mut self.explained,
            },
            out: StepRows::new(out, &market.tables.spec.env),
        };
        for_ranges(range, num_envs, GRAIN, &|first, len, mut range: EnvRows| {
            for i in 0..len {
                let out = &mut range.out;
                let mut env = range.states.env(i);
                let act = decide(market, first + i, &env);
                let outcome = stepper.step(&mut env, act, range.explained.row(i).first_mut());
                out.reward[i] = outcome.reward;
                out.terminated[i] = outcome.terminated;
                out.truncated[i] = outcome.truncated;
                if outcome.terminated || outcome.truncated {
                    observe(market, &env, out.final_obs.row(i));
                    range.finals[i] = Some(stepper.ledger(&env));
                    env.account.episode += 1;
                    stepper.begin(first + i, &mut env);
                }
                show(stepper, &env, out.obs.row(i), out.action_mask.row(i));
            }
        });
    }

    /// Takes one decision for each environment, as [`BatchEnv::step`] does with actions.
    pub fn step_decisions(&mut self, decisions: &[Decision], out: StepBuffers<'_>) {
        self.run(&|_, i, _| Act::Decision(decisions[i]), out);
    }

    /// The names of the actions that [`Decision::Action`] takes, whatever the action space: those of its
    /// menu, of which other action spaces have the first 64.
    pub fn menu(&self) -> &[String] {
        let names = &self.stepper.market.strategies.names;
        &names[..names.len().min(MAX_ACTIONS)]
    }

    /// Returns whether the state of environment `i` allows an action of the menu.
    pub fn allows(&self, i: usize, action: u32) -> bool {
        (action as usize) < self.menu().len() && self.states.accounts[i].action_mask >> action & 1 == 1
    }

    /// Takes the decision of a baseline in every environment.
    pub fn step_baseline(&mut self, baseline: Baseline, out: StepBuffers<'_>) {
        self.run(
            &|market, i, env| Act::Decision(baseline.decide(market, i, env.account)),
            out,
        );
    }

    /// The account of environment `i`, as it is now; after the end of an episode, at the start of the next.
    pub fn ledger(&self, i: usize) -> Ledger {
        let States {
            accounts,
            counters,
            hedges,
            ..
        } = &self.states;
        let lines = self.states.lines_of(i);
        Ledger::new(&self.stepper.market, &accounts[i], lines, &counters[i], &hedges[i])
    }

    /// The account of environment `i` as its last finished episode left it; `None` before the first end.
    pub fn final_ledger(&self, i: usize) -> Option<Ledger> {
        self.finals[i]
    }

    /// Keeps the profit by Greek of every step from now on.
    pub fn explain(&mut self) {
        self.explained = vec![Explained::default(); self.finals.len()];
    }

    /// The profit by Greek of the last step of environment `i`; zeros unless [`OptionsEnv::explain`] was
    /// called.
    pub fn explained(&self, i: usize) -> Explained {
        self.explained.get(i).copied().unwrap_or_default()
    }

    /// The number of lines that environment `i` holds.
    pub fn lines(&self, i: usize) -> usize {
        self.states.accounts[i].lines as usize
    }

    /// The lines of environment `i`.
    pub fn positions(&self, i: usize) -> Vec<Position> {
        let t = self.snapshot(i);
        self.states
            .lines_of(i)
            .iter()
            .map(|line| Position::new(&self.stepper.market, line, t))
            .collect()
    }

    /// The call and the put at the money that environment `i` sees for the slate's maturity `maturity` (an
    /// index); they share expiry and strike.
    pub fn at_the_money(&self, i: usize, maturity: usize) -> Option<(u32, u32)> {
        self.stepper.market.at_the_money(self.snapshot(i), maturity)
    }

    /// The contracts of the slate that environment `i` sees, by slot.
    pub fn slate(&self, i: usize) -> Vec<Option<u32>> {
        let slate = self.stepper.market.slate(self.snapshot(i));
        slate.iter().map(|&id| u32::try_from(id).ok()).collect()
    }

    pub(super) fn snapshot(&self, i: usize) -> usize {
        self.states.accounts[i].t as usize
    }

    /// The number of evaluation episodes of the split that it was opened with: environment i runs the i-th,
    /// and then again from the first on.
    pub fn evaluation_episodes(&self) -> usize {
        self.stepper.market.ranges.len()
    }

    /// Steps from the start to the end of the evaluation episode of environment `i`.
    pub fn test_steps(&self, i: usize) -> usize {
        let range = self.evaluated(i);
        range.last - range.first
    }

    /// The snapshots of the evaluation episode of environment `i`, and the days that they are on.
    pub fn test_periods(&self, i: usize) -> (usize, usize) {
        let range = self.evaluated(i);
        let dates = &self.stepper.market.tables.dates[range.first..=range.last];
        (dates.len(), dates.chunk_by(|a, b| a == b).count())
    }

    /// The dates of the snapshots of the evaluation episode of environment `i`.
    pub fn test_dates(&self, i: usize) -> Vec<Date> {
        let range = self.evaluated(i);
        let dates = &self.stepper.market.tables.dates[range.first..=range.last];
        dates.iter().copied().map(Date).collect()
    }

    /// The interest on 1 of cash from a snapshot to the next.
    pub fn risk_free_return(&self, snapshot: usize) -> f64 {
        self.stepper.market.tables.accrual[snapshot]
    }

    /// The return of the underlying from a snapshot to the next, with dividends.
    pub fn underlying_return(&self, snapshot: usize) -> f64 {
        self.stepper.market.underlying_return(snapshot)
    }

    /// The part of an observation that is the market's and the slate's at a snapshot, the same for every
    /// account.
    pub fn market_row(&self, snapshot: usize) -> &[f32] {
        self.stepper.market.tables.row(snapshot)
    }

    fn evaluated(&self, i: usize) -> SnapshotRange {
        let ranges = &self.stepper.market.ranges;
        ranges[i % ranges.len()]
    }

    /// The symbol of the world that environment `i` is in.
    pub fn world(&self, i: usize) -> &str {
        let tables = &self.stepper.market.tables;
        &tables.spec.worlds[tables.world_of(self.snapshot(i))].symbol
    }

    /// The symbols of all worlds.
    pub fn worlds(&self) -> Vec<&str> {
        let worlds = &self.stepper.market.tables.spec.worlds;
        worlds.iter().map(|world| world.symbol.as_str()).collect()
    }

    /// The features that are not observed, where environment `i` is; NaN where one has no value. For oracles,
    /// never for policies.
    pub fn hidden(&self, i: usize) -> &[f32] {
        self.stepper.market.tables.hidden(self.snapshot(i))
    }

    /// The names of the features that are not observed.
    pub fn hidden_names(&self) -> &[String] {
        &self.stepper.market.tables.spec.hidden
    }

    /// Returns whether positions can be hedged.
    pub fn hedges(&self) -> bool {
        !self.stepper.market.config.hedge.is_none()
    }

    /// Cash at the start of an episode.
    pub fn capital(&self) -> f64 {
        self.stepper.market.config.capital
    }

    /// Units of the underlying in a contract.
    pub fn multiplier(&self) -> f64 {
        self.stepper.market.multiplier
    }

    fn tag(&self) -> String {
        let Market {
            tables,
            config,
            split,
            seed,
            ..
        } = &self.stepper.market;
        format!(
            "options v1 x {} of {} lines over {} snapshots and {} contracts, {split:?} with seed {seed}",
            self.finals.len(),
            config.lines,
            tables.dates.len(),
            tables.contracts.len(),
        )
    }
}

impl BatchEnv for OptionsEnv {
    fn spec(&self) -> &EnvSpec {
        &self.stepper.market.tables.spec.env
    }

    fn num_envs(&self) -> usize {
        self.finals.len()
    }

    fn reset(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        let mut out = StepRows::new(out, &self.stepper.market.tables.spec.env);
        let mut states = self.states.rows();
        for i in 0..self.finals.len() {
            let mut env = states.env(i);
            if env.account.t != env.account.first {
                env.account.episode += 1;
                self.stepper.begin(i, &mut env);
            }
            show(&self.stepper, &env, out.obs.row(i), out.action_mask.row(i));
        }
    }

    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        let (n, k) = (self.finals.len(), self.spec().action_space.num_components());
        let acts = Acts::new(self.stepper.market.config.actions, actions, n, k)?;
        let StepBuffers {
            obs,
            reward,
            terminated,
            truncated,
            final_obs,
            action_mask,
        } = out;
        let out = StepBuffers {
            obs,
            reward: &mut *reward,
            terminated,
            truncated,
            final_obs,
            action_mask,
        };
        self.run(&|_, i, _| acts.of(i, k), out);
        match reward.iter().position(|reward| !reward.is_finite()) {
            None => Ok(()),
            Some(i) => {
                let ledger = self.ledger(i);
                Err(StageError::new(format!(
                    "the reward of a step to {} is {}",
                    ledger.date, reward[i]
                ))
                .hint("keep the expression at `reward` from dividing by 0 and from roots and logarithms of \
                    what may be 0 or less"))
            }
        }
    }

    fn save(&self) -> Vec<u8> {
        let writer = StateWriter::new(&self.tag())
            .array(&self.states.accounts)
            .array(&self.states.lines)
            .array(&self.states.counters);
        let (moments, hedges) = (&self.states.moments, &self.states.hedges);
        let config = &self.stepper.market.config;
        writer
            .array(if config.reward.keeps_moments() {
                &moments[..]
            } else {
                &[]
            })
            .array(if config.hedge.is_none() { &[] } else { &hedges[..] })
            .finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let tag = self.tag();
        let States {
            accounts,
            lines,
            counters,
            moments,
            hedges,
            ..
        } = &mut self.states;
        let config = &self.stepper.market.config;
        let moments = match config.reward.keeps_moments() {
            true => &mut moments[..],
            false => &mut [],
        };
        let hedges = match config.hedge.is_none() {
            true => &mut [],
            false => &mut hedges[..],
        };
        let rest = size_of_val(moments) + size_of_val(hedges);
        let size = size_of_val(&accounts[..]) + size_of_val(&lines[..]) + size_of_val(&counters[..]) + rest;
        let mut reader = StateReader::new(state, &tag, size)?;
        reader.array(accounts);
        reader.array(lines);
        reader.array(counters);
        reader.array(moments);
        reader.array(hedges);
        let market = &self.stepper.market;
        let mut states = self.states.rows();
        for i in 0..self.finals.len() {
            market.recall(&mut states.env(i));
        }
        self.finals.fill(None);
        Ok(())
    }
}
