//! The batch of environments.

use super::account::{Account, Counters, Line, One};
use super::baseline::Baseline;
use super::block::{Block, Lane, Slot};
use super::config::MAX_LEGS;
use super::core::Core;
#[cfg(target_arch = "x86_64")]
use super::lanes::Avx512;
use super::lanes::{LANES, Portable, Vector};
use super::ledger::{Ledger, Position};
use super::legal::Tickets;
use super::menu::Menu;
use super::side_by_side::{Stepped, Work};
use super::tables::Tables;
use crate::ranges::{Rows, StepRows, View, for_ranges};
use crate::state::{StateReader, StateWriter};
use crate::{Actions, BatchEnv, EnvSpec, OpenOptions, Split, StepBuffers};
use bytes::Bytes;
use cache::{Artifact, Store};
use stages_core::StageError;

/// Fewer blocks than this for a thread cost more to hand over than to step.
const GRAIN: usize = 4;

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
    blocks: Vec<Block>,
    /// `[blocks, M]`.
    slots: Vec<Slot>,
    /// How the last episode of each ended.
    finals: Vec<Option<Ledger>>,
    pub(crate) path: Stepping,
}

/// How actions of the menu are stepped; all give the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stepping {
    /// One environment after another.
    OneByOne,
    /// Side by side, on any processor.
    Portable,
    /// Side by side, compiled for AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Side by side, with AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Stepping {
    /// Those that this machine has, fastest first.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
            {
                all.push(Self::Avx512);
            }
            all.push(Self::Avx2);
        }
        all.extend([Self::Portable, Self::OneByOne]);
        all
    }

    /// The fastest for so many environments: lanes that are nobody's cost as much as others.
    fn of(num_envs: usize) -> Self {
        let best = Self::all()[0];
        #[cfg(target_arch = "x86_64")]
        let least = if best == Self::Avx512 { 3 } else { LANES };
        #[cfg(not(target_arch = "x86_64"))]
        let least = LANES;
        if num_envs < least { Self::OneByOne } else { best }
    }
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

/// A range of blocks and what they write.
struct Range<'a> {
    blocks: &'a mut [Block],
    slots: Rows<'a, Slot>,
    finals: &'a mut [Option<Ledger>],
    out: StepRows<'a>,
}

impl View for Range<'_> {
    fn split(self, n: usize) -> (Self, Self) {
        let envs = (n * LANES).min(self.finals.len());
        let (blocks, slots) = (self.blocks.split_at_mut(n), self.slots.split(n));
        let (finals, out) = (self.finals.split_at_mut(envs), self.out.split(envs));
        (
            Self {
                blocks: blocks.0,
                slots: slots.0,
                finals: finals.0,
                out: out.0,
            },
            Self {
                blocks: blocks.1,
                slots: slots.1,
                finals: finals.1,
                out: out.1,
            },
        )
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
            tickets: Tickets::default(),
            multiplier: tables.spec.multiplier,
            clip,
            range,
            split: options.split,
            seed: options.seed,
            tables,
            config,
        };
        core.tickets = Tickets::new(&core);
        let (b, m) = (options.num_envs, core.config.lines);
        let blocks = b.div_ceil(LANES);
        let mut this = Self {
            core,
            blocks: vec![Block::empty(); blocks],
            slots: vec![Slot::empty(); blocks * m],
            finals: vec![None; b],
            path: Stepping::of(b),
        };
        // The lanes of the last block that are nobody's are stepped with the others.
        for i in 0..blocks * LANES {
            let mut lane = Lane::default();
            this.core.begin(i, &mut lane.one(m));
            this.put(i, &lane);
        }
        Ok(this)
    }

    /// Environment `i`.
    fn lane(&self, i: usize) -> Lane {
        let (block, m) = (i / LANES, self.core.config.lines);
        self.blocks[block].lane(&self.slots[block * m..(block + 1) * m], i % LANES)
    }

    fn put(&mut self, i: usize, lane: &Lane) {
        let (block, m) = (i / LANES, self.core.config.lines);
        let slots = &mut self.slots[block * m..(block + 1) * m];
        self.blocks[block].put(&self.core, slots, i % LANES, lane);
    }

    fn parts<'a>(&'a mut self, out: StepBuffers<'a>) -> (&'a Core, Range<'a>) {
        let range = Range {
            blocks: &mut self.blocks,
            slots: Rows {
                values: &mut self.slots,
                width: self.core.config.lines,
            },
            finals: &mut self.finals,
            out: StepRows::new(out, &self.core.tables.spec.env),
        };
        (&self.core, range)
    }

    /// Steps every environment, one after another; `decide` says what environment i does, looking at its own state alone.
    fn run<'a>(&'a mut self, decide: &(impl Fn(&Core, usize, &One) -> Decision + Sync), out: StepBuffers<'a>) {
        let blocks = self.blocks.len();
        let (core, range) = self.parts(out);
        for_ranges(range, blocks, GRAIN, &|first, _, mut range: Range| {
            for i in 0..range.finals.len() {
                let (block, k) = (&mut range.blocks[i / LANES], i % LANES);
                let slots = range.slots.row(i / LANES);
                let mut lane = block.lane(slots, k);
                let mut one = lane.one(core.config.lines);
                let env = first * LANES + i;
                let out = &mut range.out;
                let decision = decide(core, env, &one);
                let outcome = core.step(&mut one, decision);
                out.reward[i] = outcome.reward;
                out.terminated[i] = outcome.terminated;
                out.truncated[i] = outcome.truncated;
                if outcome.terminated || outcome.truncated {
                    core.observe(one.account, one.lines, out.final_obs.row(i));
                    range.finals[i] = Some(core.ledger(&one));
                    one.account.episode += 1;
                    core.begin(env, &mut one);
                }
                show(core, &one, out.obs.row(i), out.action_mask.row(i));
                block.put(core, slots, k, &lane);
            }
        });
    }

    /// Steps every environment by an action of the menu.
    fn act(&mut self, actions: &[u32], out: StepBuffers<'_>) {
        let path = self.path;
        if path == Stepping::OneByOne {
            return self.run(&|_, i, _| Decision::Action(actions[i]), out);
        }
        let blocks = self.blocks.len();
        let (core, range) = self.parts(out);
        for_ranges(range, blocks, GRAIN, &|first, _, range: Range| {
            let actions = &actions[first * LANES..][..range.finals.len()];
            match path {
                #[cfg(target_arch = "x86_64")]
                Stepping::Avx512 => {
                    #[expect(unsafe_code, reason = "the instructions were detected at run time")]
                    // SAFETY: `Stepping::all` found them.
                    unsafe {
                        step_avx512(core, first, actions, range);
                    }
                }
                #[cfg(target_arch = "x86_64")]
                Stepping::Avx2 => {
                    #[expect(unsafe_code, reason = "the instructions were detected at run time")]
                    // SAFETY: as above.
                    unsafe {
                        step_avx2(core, first, actions, range);
                    }
                }
                _ => step_range::<Portable>(core, first, actions, range),
            }
        });
    }

    /// Takes one decision for each environment, as [`BatchEnv::step`] does with actions.
    pub fn step_decisions(&mut self, decisions: &[Decision], out: StepBuffers<'_>) {
        self.run(&|_, i, _| decisions[i], out);
    }

    /// Lets a baseline decide for every environment.
    pub fn step_baseline(&mut self, baseline: Baseline, out: StepBuffers<'_>) {
        self.run(&|core, i, one| core.baseline(baseline, i, one), out);
    }

    /// The account of environment `i`, as it is now; after the end of an episode, at the start of the next.
    pub fn ledger(&self, i: usize) -> Ledger {
        self.core.ledger(&self.lane(i).one(self.core.config.lines))
    }

    /// The account of environment `i` as its last finished episode left it; `None` before the first end.
    pub fn final_ledger(&self, i: usize) -> Option<Ledger> {
        self.finals[i]
    }

    /// The lines of environment `i`.
    pub fn positions(&self, i: usize) -> Vec<Position> {
        let Lane { account, lines, .. } = self.lane(i);
        lines[..account.lines as usize]
            .iter()
            .map(|line| self.core.position(line, account.t as usize))
            .collect()
    }

    /// The call and the put at the money that environment `i` sees for the slate's maturity `maturity` (an index); they share
    /// expiry and strike.
    pub fn at_the_money(&self, i: usize, maturity: usize) -> Option<(u32, u32)> {
        self.core.at_the_money(self.lane(i).account.t as usize, maturity)
    }

    /// The contracts of the slate that environment `i` sees, by slot.
    pub fn slate(&self, i: usize) -> Vec<Option<u32>> {
        let k = self.core.tables.slate.len() / self.core.tables.dates.len();
        let t = self.lane(i).account.t as usize;
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

    fn tag(&self) -> String {
        let tables = &self.core.tables;
        format!(
            "options v1 x {} of {} lines over {} snapshots and {} contracts, {:?} with seed {}",
            self.finals.len(),
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
        self.finals.len()
    }

    fn reset(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        let mut rows = StepRows::new(out, &self.core.tables.spec.env);
        for i in 0..self.finals.len() {
            let mut lane = self.lane(i);
            let one = &mut lane.one(self.core.config.lines);
            if one.account.t != one.account.first {
                one.account.episode += 1;
                self.core.begin(i, one);
            }
            show(&self.core, one, rows.obs.row(i), rows.action_mask.row(i));
            self.put(i, &lane);
        }
    }

    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        self.act(actions.discrete(self.finals.len())?, out);
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        let lanes: Vec<Lane> = (0..self.finals.len()).map(|i| self.lane(i)).collect();
        let lines = |lane: &Lane| lane.lines[..self.core.config.lines].to_vec();
        StateWriter::new(&self.tag())
            .array(&lanes.iter().map(|lane| lane.account).collect::<Vec<_>>())
            .array(&lanes.iter().flat_map(lines).collect::<Vec<_>>())
            .array(&lanes.iter().map(|lane| lane.counters).collect::<Vec<_>>())
            .finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let (b, m) = (self.finals.len(), self.core.config.lines);
        let mut accounts = vec![Account::default(); b];
        let mut lines = vec![Line::default(); b * m];
        let mut counters = vec![Counters::default(); b];
        let size = size_of_val(&accounts[..]) + size_of_val(&lines[..]) + size_of_val(&counters[..]);
        let mut reader = StateReader::new(state, &self.tag(), size)?;
        reader.array(&mut accounts);
        reader.array(&mut lines);
        reader.array(&mut counters);
        for i in 0..b {
            let mut lane = Lane {
                account: accounts[i],
                counters: counters[i],
                ..Lane::default()
            };
            lane.lines[..m].copy_from_slice(&lines[i * m..(i + 1) * m]);
            self.put(i, &lane);
        }
        self.finals.fill(None);
        Ok(())
    }
}

/// Steps a range of blocks, the first of which is number `first`.
#[inline(always)]
fn step_range<V: Vector>(core: &Core, first: usize, actions: &[u32], mut range: Range) {
    let mut work = Work::new();
    for (i, block) in range.blocks.iter_mut().enumerate() {
        let at = i * LANES;
        let lanes = LANES.min(range.finals.len() - at);
        let to = Stepped {
            env: first * LANES + at,
            lanes,
            actions: &actions[at..at + lanes],
            at,
            out: &mut range.out,
            finals: range.finals,
        };
        core.step_block::<V>(block, range.slots.row(i), &mut work, to);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,bmi1,bmi2")]
fn step_avx512(core: &Core, first: usize, actions: &[u32], range: Range) {
    step_range::<Avx512>(core, first, actions, range);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn step_avx2(core: &Core, first: usize, actions: &[u32], range: Range) {
    step_range::<Portable>(core, first, actions, range);
}
