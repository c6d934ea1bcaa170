//! The batch of environments.

use super::account::{Account, Counters, Line, One};
use super::baseline::Baseline;
use super::config::MAX_LEGS;
use super::core::Core;
use super::ledger::{Ledger, Position};
use super::legal::tickets;
use super::menu::Menu;
use super::tables::Tables;
use crate::ranges::{Rows, StepView, View, for_ranges};
use crate::state::{StateReader, StateWriter};
use crate::{BatchEnv, EnvSpec, OpenOptions, Split, Step};
use bytes::Bytes;
use cache::{Artifact, Store};
use stages_core::StageError;

/// Fewer environments than this for a thread cost more to hand over than to step.
const GRAIN: usize = 32;

/// What can be traded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrument {
    /// An option contract, by its number.
    Contract(u32),
    /// The underlying, where it trades.
    Underlying,
}

/// A trade outside the menu: contracts (or units of the underlying) to buy, or to sell if negative. Contracts open a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// What.
    pub instrument: Instrument,
    /// How many.
    pub quantity: i32,
}

/// Orders that are filled together or not at all; 8 at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    orders: [Order; MAX_LEGS],
    n: usize,
}

impl Orders {
    /// These orders; those after the eighth are left out.
    pub fn new(orders: &[Order]) -> Self {
        let n = orders.len().min(MAX_LEGS);
        let none = Order {
            instrument: Instrument::Underlying,
            quantity: 0,
        };
        let mut all = [none; MAX_LEGS];
        all[..n].copy_from_slice(&orders[..n]);
        Self { orders: all, n }
    }

    /// The orders.
    pub fn as_slice(&self) -> &[Order] {
        &self.orders[..self.n]
    }
}

/// What to do in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// An action of the menu.
    Action(u32),
    /// Orders outside it, under the same rules (fills, room, margin).
    Orders(Orders),
}

/// B environments that trade options on one underlying.
pub struct OptionsEnv {
    pub(crate) core: Core,
    accounts: Vec<Account>,
    /// `[B, M]`.
    lines: Vec<Line>,
    counters: Vec<Counters>,
    /// How the last episode of each ended.
    finals: Vec<Option<Ledger>>,
}

/// Opens what the stage `env/options` stored, as itself rather than as a [`BatchEnv`].
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

struct StateView<'a> {
    accounts: &'a mut [Account],
    lines: Rows<'a, Line>,
    counters: &'a mut [Counters],
    finals: &'a mut [Option<Ledger>],
}

impl View for StateView<'_> {
    fn split(self, n: usize) -> (Self, Self) {
        let (accounts, lines) = (self.accounts.split_at_mut(n), self.lines.split(n));
        let (counters, finals) = (self.counters.split_at_mut(n), self.finals.split_at_mut(n));
        (
            Self {
                accounts: accounts.0,
                lines: lines.0,
                counters: counters.0,
                finals: finals.0,
            },
            Self {
                accounts: accounts.1,
                lines: lines.1,
                counters: counters.1,
                finals: finals.1,
            },
        )
    }
}

impl StateView<'_> {
    fn one(&mut self, i: usize) -> One<'_> {
        One {
            account: &mut self.accounts[i],
            lines: self.lines.row(i),
            counters: &mut self.counters[i],
        }
    }
}

fn show(core: &Core, one: &One, obs: &mut [f32], mask: &mut [bool]) {
    core.observe(one.account, one.lines, obs);
    for (action, legal) in mask.iter_mut().enumerate() {
        *legal = one.account.legal >> action & 1 == 1;
    }
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
        let splits = tables.spec.splits;
        let range = match options.split {
            Split::Test => splits.test,
            Split::Train => splits.train.ok_or_else(|| {
                StageError::new("this environment has no training dates, only test dates")
                    .hint("set test_fraction below 1, or give `train` and `test`")
            })?,
        };
        let config = tables.spec.config.clone();
        let clip = tables.spec.env.normalisation.as_ref().map_or(config.clip, |n| n.clip);
        let mut core = Core {
            menu: Menu::new(&config)?,
            tickets: Vec::new(),
            multiplier: tables.spec.multiplier,
            clip,
            range,
            split: options.split,
            seed: options.seed,
            tables,
            config,
        };
        core.tickets = tickets(&core);
        let (b, m) = (options.num_envs, core.config.lines);
        let mut this = Self {
            core,
            accounts: vec![Account::default(); b],
            lines: vec![Line::default(); b * m],
            counters: vec![Counters::default(); b],
            finals: vec![None; b],
        };
        for i in 0..b {
            let (core, mut state) = this.parts();
            core.begin(i, &mut state.one(i));
        }
        Ok(this)
    }

    fn parts(&mut self) -> (&Core, StateView<'_>) {
        let state = StateView {
            accounts: &mut self.accounts,
            lines: Rows {
                values: &mut self.lines,
                width: self.core.config.lines,
            },
            counters: &mut self.counters,
            finals: &mut self.finals,
        };
        (&self.core, state)
    }

    /// Steps every environment; `decide` says what environment i does, looking at its own state alone.
    fn run<'s>(
        &mut self,
        decide: &(impl Fn(&Core, usize, &One) -> Decision + Sync),
        out: impl FnOnce(&EnvSpec) -> StepView<'s>,
    ) {
        let len = self.accounts.len();
        let (core, state) = self.parts();
        let view = (state, out(&core.tables.spec.env));
        for_ranges(
            view,
            len,
            GRAIN,
            &|first, len, (mut state, mut out): (StateView, StepView)| {
                for i in 0..len {
                    let mut one = state.one(i);
                    let decision = decide(core, first + i, &one);
                    let outcome = core.step(&mut one, decision);
                    out.reward[i] = outcome.reward;
                    out.terminated[i] = outcome.terminated;
                    out.truncated[i] = outcome.truncated;
                    if outcome.terminated || outcome.truncated {
                        core.observe(one.account, one.lines, out.final_obs.row(i));
                        let ledger = core.ledger(&one);
                        one.account.episode += 1;
                        core.begin(first + i, &mut one);
                        show(core, &one, out.obs.row(i), out.mask.row(i));
                        state.finals[i] = Some(ledger);
                    } else {
                        show(core, &one, out.obs.row(i), out.mask.row(i));
                    }
                }
            },
        );
    }

    /// Takes one decision for each environment, as [`BatchEnv::step`] does with actions.
    pub fn step_decisions(&mut self, decisions: &[Decision], out: &mut Step) {
        self.run(&|_, i, _| decisions[i], |spec| StepView::new(out, spec));
    }

    /// Lets a baseline decide for every environment.
    pub fn step_baseline(&mut self, baseline: Baseline, out: &mut Step) {
        self.run(&|core, i, one| core.baseline(baseline, i, one), |spec| {
            StepView::new(out, spec)
        });
    }

    /// The account of environment `i`, as it is now; after the end of an episode, at the start of the next.
    pub fn ledger(&self, i: usize) -> Ledger {
        let (mut account, mut lines, mut counters) = (self.accounts[i], self.lines_of(i).to_vec(), self.counters[i]);
        self.core.ledger(&One {
            account: &mut account,
            lines: &mut lines,
            counters: &mut counters,
        })
    }

    /// The account of environment `i` as its last finished episode left it; `None` before the first end.
    pub fn final_ledger(&self, i: usize) -> Option<Ledger> {
        self.finals[i]
    }

    /// The lines of environment `i`.
    pub fn positions(&self, i: usize) -> Vec<Position> {
        let account = &self.accounts[i];
        self.lines_of(i)[..account.lines as usize]
            .iter()
            .map(|line| self.core.position(line, account.t as usize))
            .collect()
    }

    /// The call and the put at the money that environment `i` sees for the slate's maturity `maturity` (an index); they share
    /// expiry and strike.
    pub fn at_the_money(&self, i: usize, maturity: usize) -> Option<(u32, u32)> {
        self.core.at_the_money(self.accounts[i].t as usize, maturity)
    }

    /// The contracts of the slate that environment `i` sees, by slot.
    pub fn slate(&self, i: usize) -> Vec<Option<u32>> {
        let k = self.core.tables.slate.len() / self.core.tables.dates.len();
        let t = self.accounts[i].t as usize;
        self.core.tables.slate[t * k..(t + 1) * k]
            .iter()
            .map(|&id| u32::try_from(id).ok())
            .collect()
    }

    /// Steps from the start of a test episode to its end.
    pub fn test_steps(&self) -> usize {
        let test = self.core.tables.spec.splits.test;
        test.last - test.first
    }

    /// Cash at the start of an episode.
    pub fn capital(&self) -> f64 {
        self.core.config.capital
    }

    /// The underlying's symbol.
    pub fn symbol(&self) -> &str {
        &self.core.tables.spec.symbol
    }

    /// Units of the underlying in a contract.
    pub fn multiplier(&self) -> f64 {
        self.core.multiplier
    }

    fn lines_of(&self, i: usize) -> &[Line] {
        let m = self.core.config.lines;
        &self.lines[i * m..(i + 1) * m]
    }

    fn tag(&self) -> String {
        let tables = &self.core.tables;
        format!(
            "options v1 x {} of {} lines over {} snapshots and {} contracts, {:?} with seed {}",
            self.accounts.len(),
            self.core.config.lines,
            tables.dates.len(),
            tables.contracts.len(),
            self.core.split,
            self.core.seed
        )
    }
}

impl BatchEnv for OptionsEnv {
    fn spec(&self) -> &EnvSpec {
        &self.core.tables.spec.env
    }

    fn num_envs(&self) -> usize {
        self.accounts.len()
    }

    fn reset(&mut self, out: &mut Step) {
        let (core, mut state) = self.parts();
        let mut view = StepView::new(out, &core.tables.spec.env);
        for i in 0..state.accounts.len() {
            let mut one = state.one(i);
            if one.account.t != one.account.first {
                one.account.episode += 1;
                core.begin(i, &mut one);
            }
            show(core, &one, view.obs.row(i), view.mask.row(i));
        }
        out.reward.fill(0.0);
        out.terminated.fill(false);
        out.truncated.fill(false);
        out.final_obs.fill(0.0);
    }

    fn step(&mut self, actions: &[u32], out: &mut Step) {
        self.run(&|_, i, _| Decision::Action(actions[i]), |spec| StepView::new(out, spec));
    }

    fn step_into(&mut self, actions: &[u32], obs: &mut [f32], mask: &mut [bool], out: &mut Step) {
        self.run(&|_, i, _| Decision::Action(actions[i]), |spec| {
            StepView::over(obs, mask, out, spec)
        });
    }

    fn save(&self) -> Vec<u8> {
        StateWriter::new(&self.tag())
            .array(&self.accounts)
            .array(&self.lines)
            .array(&self.counters)
            .finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let size = size_of_val(&self.accounts[..]) + size_of_val(&self.lines[..]) + size_of_val(&self.counters[..]);
        let mut reader = StateReader::new(state, &self.tag(), size)?;
        reader.array(&mut self.accounts);
        reader.array(&mut self.lines);
        reader.array(&mut self.counters);
        self.finals.fill(None);
        Ok(())
    }
}
