//! The batch of environments.

use super::baseline::Baseline;
use super::hedge::HedgeAct;
use super::ledger::Ledger;
use super::lookup::Tables;
use super::market::Market;
use super::observe::observe;
use super::orders::{Intent, from_choices, from_trades, from_weights};
use super::state::{EnvState, StateRows, States};
use super::stepper::Stepper;
use crate::actions::Actions;
use crate::batch::{BatchEnv, StepBuffers};
use crate::hedge::HedgeOrder;
use crate::open_options::{OpenOptions, Split};
use crate::ranges::{Rows, StepRows, View, for_ranges};
use crate::saved_state::{StateReader, StateWriter};
use crate::spec::EnvSpec;
use crate::split::SnapshotRange;
use crate::stocks::config::{Rules, StockActionKind, StocksConfig};
use crate::stocks::tables::{SPEC, Spec, status};
use bytes::Bytes;
use cache::{Artifact, Store};
use datasets::Date;
use stages_core::StageError;
use stages_numerics::dispatch::InstructionSet;

/// With fewer environments per thread than this, scheduling the task costs more than stepping them.
const GRAIN: usize = 32;

/// B environments that trade the stocks of a market.
pub struct StocksEnv {
    pub(super) stepper: Stepper,
    pub(super) states: States,
    /// The account at the end of the last episode of each, and its weights `[B, N]`.
    pub(super) finals: Vec<Option<Ledger>>,
    final_weights: Vec<f64>,
}

/// The positions that a caller wants of an environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target<'a> {
    /// Those it has.
    Hold,
    /// Weights `[N]`, as fractions of the net asset value; the rest is cash. Limits, costs and fills are
    /// those of the environment.
    Weights(&'a [f64]),
}

/// Opens the artifact of the stage `env/stocks`, as itself rather than as a [`BatchEnv`].
///
/// # Errors
/// As [`crate::open`]; and when `options` asks for training dates of an environment that has none.
pub fn open(store: &Store, artifact: &Artifact, options: &OpenOptions) -> Result<StocksEnv, StageError> {
    let file = |name: &str| -> Result<Bytes, StageError> {
        let entry = artifact
            .entry(name)
            .ok_or_else(|| StageError::new(format!("the environment has no `{name}`")))?;
        Ok(Bytes::from_owner(store.blob(entry.blob)?))
    };
    StocksEnv::from_files(file, options)
}

/// The number of evaluation episodes of a split in an artifact of `env/stocks`: one for each range of each
/// world.
///
/// # Errors
/// When the artifact is not one of `env/stocks`, or damaged.
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
pub(super) struct Acts<'a> {
    /// Those of the symbols.
    pub kind: ActKind<'a>,
    /// The components of an action: of each symbol, and of the hedge where actions hedge.
    width: usize,
    /// The order of the rule of `hedge`, where actions do not hedge.
    rule: Option<HedgeAct>,
}

/// The values of actions.
#[derive(Clone, Copy)]
pub(super) enum ActKind<'a> {
    /// Trades from -1 to 1, of at most so many shares.
    Trades(&'a [f32], u32),
    Weights(&'a [f32]),
    Choices(&'a [u32]),
}

impl<'a> Acts<'a> {
    /// Actions for `b` environments of n symbols.
    pub(super) fn new(
        config: &StocksConfig,
        actions: Actions<'a>,
        b: usize,
        n: usize,
    ) -> Result<Self, StageError> {
        let by_action = config.hedge.is_by_action();
        let width = n + usize::from(by_action);
        let kind = match (config.rules, config.actions.kind) {
            (Rules::Finrl, _) => ActKind::Trades(actions.continuous(b, width)?, config.finrl.hmax),
            (_, StockActionKind::Weights) => ActKind::Weights(actions.continuous(b, width)?),
            (_, StockActionKind::Shares) => {
                ActKind::Trades(actions.continuous(b, width)?, config.actions.shares)
            }
            (_, StockActionKind::Choices) => ActKind::Choices(actions.multi_discrete(b, width)?),
        };
        Ok(Self {
            kind,
            width,
            rule: (!by_action).then(|| HedgeAct::Order(config.hedge.terms().order())),
        })
    }

    /// Puts the action of environment `i` into its orders.
    pub(super) fn decide(self, market: &Market, i: usize, orders: &mut [f64]) -> Intent {
        let (first, actions) = (i * self.width, &market.config.actions);
        let own = first..first + orders.len();
        match self.kind {
            ActKind::Trades(trades, most) => from_trades(&trades[own], most, orders),
            ActKind::Weights(weights) => from_weights(&weights[own], orders),
            ActKind::Choices(choices) => from_choices(&choices[own], &actions.lots, actions.shares, orders),
        }
    }

    /// The order of environment `i` for its hedge.
    pub(super) fn hedge(self, i: usize) -> HedgeAct {
        let last = (i + 1) * self.width - 1;
        match (self.rule, self.kind) {
            (Some(rule), _) => rule,
            (None, ActKind::Choices(choices)) => HedgeAct::Order(HedgeOrder::of_choice(choices[last])),
            (None, ActKind::Trades(values, _) | ActKind::Weights(values)) => HedgeAct::Ratio(values[last]),
        }
    }
}

/// A range of environments and the rows that they write.
struct EnvRows<'a> {
    states: StateRows<'a>,
    finals: &'a mut [Option<Ledger>],
    final_weights: Rows<'a, f64>,
    out: StepRows<'a>,
}

impl View for EnvRows<'_> {
    fn split(self, n: usize) -> (Self, Self) {
        let (states, finals, out) = (self.states.split(n), self.finals.split_at_mut(n), self.out.split(n));
        let final_weights = self.final_weights.split(n);
        (
            Self {
                states: states.0,
                finals: finals.0,
                final_weights: final_weights.0,
                out: out.0,
            },
            Self {
                states: states.1,
                finals: finals.1,
                final_weights: final_weights.1,
                out: out.1,
            },
        )
    }
}

/// Writes the observation and the action mask of a state.
pub(super) fn show(stepper: &Stepper, env: &EnvState, obs: &mut [f32], action_mask: &mut [bool]) {
    let market = &stepper.market;
    observe(market, env, obs);
    let k = market.config.actions.lots.len();
    if action_mask.is_empty() {
        return;
    }
    let (action_mask, of_hedge) = action_mask.split_at_mut(env.shares.len() * (1 + 2 * k));
    if let [leave, orders @ ..] = of_hedge {
        *leave = true;
        orders.fill(market.tables.hedge(env.account.t as usize).status & status::TRADES != 0);
    }
    let flags = market.tables.status(env.account.t as usize);
    for ((mask, held), flags) in action_mask.chunks_exact_mut(1 + 2 * k).zip(&*env.shares).zip(flags) {
        let trades = flags & status::TRADES != 0;
        mask[0] = true;
        mask[1..=k].fill(trades);
        mask[1 + k..].fill(trades && (market.config.actions.short || *held > 0.0));
    }
}

fn weights(market: &Market, t: usize, nav: f64, shares: &[f64], out: &mut [f64]) {
    let scale = 1.0 / nav.max(1e-3 * market.config.capital);
    for ((out, held), mark) in out.iter_mut().zip(shares).zip(market.tables.marks(t)) {
        *out = held * mark * scale;
    }
}

impl StocksEnv {
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
        let n = tables.n;
        let stepper = Stepper::new(Market {
            tables,
            clip,
            // Rows of some tens of symbols: wider vectors leave more of them over.
            instructions: InstructionSet::detect().without_avx512(),
            ranges,
            split: options.split,
            seed: options.seed,
            config,
        })?;
        let mut states = States::new(options.num_envs, n);
        let mut rows = states.rows();
        for i in 0..options.num_envs {
            stepper.begin(i, &mut rows.env(i));
        }
        Ok(Self {
            stepper,
            states,
            finals: vec![None; options.num_envs],
            final_weights: vec![0.0; options.num_envs * n],
        })
    }

    pub(super) fn market(&self) -> &Market {
        &self.stepper.market
    }

    #[cfg(test)]
    pub(crate) fn tables(&self) -> &Tables {
        &self.stepper.market.tables
    }

    #[cfg(test)]
    pub(crate) fn set_instructions(&mut self, instructions: InstructionSet) {
        self.stepper.market.instructions = instructions;
    }

    /// Steps every environment; `decide` fills the orders of environment i, and says what they mean; `hedge`
    /// is what it wants of its hedge.
    fn run(
        &mut self,
        decide: &(impl Fn(&Market, usize, &mut EnvState) -> Intent + Sync),
        hedge: &(impl Fn(usize) -> HedgeAct + Sync),
        out: StepBuffers<'_>,
    ) {
        let stepper = &self.stepper;
        let market = &stepper.market;
        let num_envs = self.finals.len();
        let range = EnvRows {
            states: self.states.rows(),
            finals: &mut self.finals,
            final_weights: Rows {
                values: &mut self.final_weights,
                width: market.tables.n,
            },
            out: StepRows::new(out, &market.tables.spec.env),
        };
        for_ranges(range, num_envs, GRAIN, &|first, len, mut range: EnvRows| {
            for i in 0..len {
                let out = &mut range.out;
                let mut env = range.states.env(i);
                let intent = decide(market, first + i, &mut env);
                let outcome = stepper.step(&mut env, intent, hedge(first + i));
                out.reward[i] = outcome.reward;
                out.terminated[i] = outcome.terminated;
                out.truncated[i] = outcome.truncated;
                if outcome.terminated || outcome.truncated {
                    observe(market, &env, out.final_obs.row(i));
                    range.finals[i] = Some(stepper.ledger(env.account, env.shares, env.hedge));
                    let (t, nav) = (env.account.t as usize, env.account.nav);
                    weights(market, t, nav, env.shares, range.final_weights.row(i));
                    env.account.episode += 1;
                    stepper.begin(first + i, &mut env);
                }
                show(stepper, &env, out.obs.row(i), out.action_mask.row(i));
            }
        });
    }

    /// The order of the rule of `hedge`: none where actions hedge.
    fn by_rule(&self) -> HedgeAct {
        HedgeAct::Order(self.market().config.hedge.terms().order())
    }

    /// Takes a target for each environment, as [`BatchEnv::step`] does with actions. The rule of `hedge`
    /// hedges it.
    ///
    /// # Errors
    /// When there is not one for each environment, or weights are not one for each symbol.
    pub fn step_targets(&mut self, targets: &[Target<'_>], out: StepBuffers<'_>) -> Result<(), StageError> {
        let (b, n) = (self.finals.len(), self.market().tables.n);
        let fits = |target: &Target<'_>| {
            matches!(target, Target::Hold) || matches!(target, Target::Weights(w) if w.len() == n)
        };
        if targets.len() != b || !targets.iter().all(fits) {
            return Err(StageError::new(format!(
                "expected a target for each of {b} environments, with {n} weights each"
            )));
        }
        let rule = self.by_rule();
        self.run(
            &|_, i, env| match targets[i] {
                Target::Hold => Intent::Hold,
                Target::Weights(weights) => {
                    env.orders.copy_from_slice(weights);
                    Intent::Weights
                }
            },
            &|_| rule,
            out,
        );
        Ok(())
    }

    /// Takes the decision of a baseline in every environment. The rule of `hedge` hedges it.
    pub fn step_baseline(&mut self, baseline: Baseline, out: StepBuffers<'_>) {
        let rule = self.by_rule();
        self.run(&|market, i, env| baseline.decide(market, i, env), &|_| rule, out);
    }

    /// The account of environment `i`, as it is now; after the end of an episode, at the start of the next.
    pub fn ledger(&self, i: usize) -> Ledger {
        let states = &self.states;
        self.stepper
            .ledger(&states.accounts[i], states.shares_of(i), &states.hedges[i])
    }

    /// The account of environment `i` as its last finished episode left it; `None` before the first end.
    pub fn final_ledger(&self, i: usize) -> Option<Ledger> {
        self.finals[i]
    }

    /// The shares that environment `i` holds `[N]`, negative if short.
    pub fn shares(&self, i: usize) -> &[f64] {
        self.states.shares_of(i)
    }

    /// Writes the value of each position of environment `i` as a fraction of its net asset value `[N]`.
    pub fn weights(&self, i: usize, out: &mut [f64]) {
        let account = &self.states.accounts[i];
        weights(
            self.market(),
            account.t as usize,
            account.nav,
            self.states.shares_of(i),
            out,
        );
    }

    /// The weights `[N]` with which the last finished episode of environment `i` ended; zeros before the
    /// first end.
    pub fn final_weights(&self, i: usize) -> &[f64] {
        let n = self.market().tables.n;
        &self.final_weights[i * n..(i + 1) * n]
    }

    /// The index of the date that environment `i` is at, among the dates of all worlds.
    pub fn snapshot(&self, i: usize) -> usize {
        self.states.accounts[i].t as usize
    }

    /// The rules.
    pub fn rules(&self) -> Rules {
        self.market().config.rules
    }

    /// The number of symbols N, the same in each world.
    pub fn num_symbols(&self) -> usize {
        self.market().tables.n
    }

    /// The symbols of the world that environment `i` is in `[N]`.
    pub fn symbols(&self, i: usize) -> &[String] {
        let tables = &self.market().tables;
        &tables.spec.worlds[tables.world_of(self.snapshot(i))].symbols
    }

    /// The name of the world that environment `i` is in.
    pub fn world(&self, i: usize) -> &str {
        let tables = &self.market().tables;
        &tables.spec.worlds[tables.world_of(self.snapshot(i))].name
    }

    /// The names of all worlds.
    pub fn worlds(&self) -> Vec<&str> {
        let worlds = &self.market().tables.spec.worlds;
        worlds.iter().map(|world| world.name.as_str()).collect()
    }

    /// The first date of the world that a date is of: history before it is of another market.
    pub fn world_start(&self, snapshot: usize) -> usize {
        let tables = &self.market().tables;
        tables.dates_of(tables.world_of(snapshot)).start
    }

    /// The number of evaluation episodes of the split that it was opened with: environment i runs the i-th,
    /// and then again from the first on.
    pub fn evaluation_episodes(&self) -> usize {
        self.market().ranges.len()
    }

    /// Steps from the start to the end of the evaluation episode of environment `i`; under FinRL's rules with
    /// the one after the last date.
    pub fn test_steps(&self, i: usize) -> usize {
        let range = self.evaluated(i);
        range.last - range.first + usize::from(self.rules() == Rules::Finrl)
    }

    /// The dates of the evaluation episode of environment `i`.
    pub fn test_dates(&self, i: usize) -> Vec<Date> {
        let range = self.evaluated(i);
        let dates = &self.market().tables.dates[range.first..=range.last];
        dates.iter().copied().map(Date).collect()
    }

    fn evaluated(&self, i: usize) -> SnapshotRange {
        let ranges = &self.market().ranges;
        ranges[i % ranges.len()]
    }

    /// The date of a snapshot.
    pub fn date(&self, snapshot: usize) -> Date {
        Date(self.market().tables.dates[snapshot])
    }

    /// The interest on 1 of cash from a snapshot to the next; 0 under FinRL's rules.
    pub fn risk_free_return(&self, snapshot: usize) -> f64 {
        match self.rules() {
            Rules::Market => self.market().tables.accrual[snapshot],
            Rules::Finrl => 0.0,
        }
    }

    /// The mean return, dividends included, of the symbols that trade at a snapshot and at the next: the
    /// market's; 0 at the end of a world.
    pub fn market_return(&self, snapshot: usize) -> f64 {
        self.market()
            .tables
            .market_return
            .get(snapshot + 1)
            .copied()
            .unwrap_or(0.0)
    }

    /// The return of a symbol, dividends included, from the snapshot before to this one, where it trades at
    /// both.
    pub fn symbol_return(&self, snapshot: usize, symbol: usize) -> Option<f64> {
        self.market().tables.total_return(snapshot, symbol)
    }

    /// True if the portfolio is hedged.
    pub fn hedges(&self) -> bool {
        !self.market().config.hedge.is_none()
    }

    /// The return of the instrument that hedges, dividends included, from a snapshot to the next; 0 where it
    /// has no bar on one of them.
    pub fn hedge_return(&self, snapshot: usize) -> f64 {
        self.market().tables.hedge_return(snapshot + 1).unwrap_or(0.0)
    }

    /// True if a symbol trades at a snapshot.
    pub fn trades(&self, snapshot: usize, symbol: usize) -> bool {
        self.market().tables.status(snapshot)[symbol] & status::TRADES != 0
    }

    /// The marks of the symbols at a snapshot `[N]`.
    pub fn marks(&self, snapshot: usize) -> &[f64] {
        self.market().tables.marks(snapshot)
    }

    /// The part of an observation that is the market's at a snapshot, the same for every account.
    pub fn market_row(&self, snapshot: usize) -> &[f32] {
        self.market().tables.row(snapshot)
    }

    /// The hidden value of that name of a symbol at a snapshot, NaN where it has none: for oracles. None
    /// without the name.
    pub fn hidden(&self, name: &str, snapshot: usize, symbol: usize) -> Option<f64> {
        self.market().tables.hidden(name, snapshot, symbol)
    }

    /// The snapshots of all worlds.
    pub fn num_snapshots(&self) -> usize {
        self.market().tables.dates.len()
    }

    /// The configuration.
    pub fn config(&self) -> &StocksConfig {
        &self.market().config
    }

    /// Cash at the start of an episode.
    pub fn capital(&self) -> f64 {
        self.market().config.capital
    }

    fn tag(&self) -> String {
        let Market {
            tables, split, seed, ..
        } = self.market();
        format!(
            "stocks v1 x {} of {} symbols over {} dates, {split:?} with seed {seed}",
            self.finals.len(),
            tables.n,
            tables.dates.len(),
        )
    }
}

impl BatchEnv for StocksEnv {
    fn spec(&self) -> &EnvSpec {
        &self.market().tables.spec.env
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
        let (b, n) = (self.finals.len(), self.market().tables.n);
        let acts = Acts::new(&self.market().config, actions, b, n)?;
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
        self.run(
            &|market, i, env| acts.decide(market, i, env.orders),
            &|i| acts.hedge(i),
            out,
        );
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
        let moments: &[_] = match self.market().config.reward.keeps_moments() {
            true => &self.states.moments,
            false => &[],
        };
        let hedges: &[_] = if self.hedges() { &self.states.hedges } else { &[] };
        StateWriter::new(&self.tag())
            .array(&self.states.accounts)
            .array(&self.states.shares)
            .array(moments)
            .array(hedges)
            .finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let tag = self.tag();
        let keeps_moments = self.market().config.reward.keeps_moments();
        let hedged = self.hedges();
        let States {
            accounts,
            shares,
            hedges,
            moments,
            ..
        } = &mut self.states;
        let moments = match keeps_moments {
            true => &mut moments[..],
            false => &mut [],
        };
        let hedges = if hedged { &mut hedges[..] } else { &mut [] };
        let size = size_of_val(&accounts[..])
            + size_of_val(&shares[..])
            + size_of_val(moments)
            + size_of_val(hedges);
        let mut reader = StateReader::new(state, &tag, size)?;
        reader.array(accounts);
        reader.array(shares);
        reader.array(moments);
        reader.array(hedges);
        self.finals.fill(None);
        Ok(())
    }
}
