//! Evaluation on `env/table`: with a price as over any market, with columns of rewards by episodes.

use crate::config::{BacktestConfig, BaselineName};
use crate::market_backtest::{Backtest, Role, Strategy};
use crate::market_env::{Layout, MarketEnv, Statement};
use crate::measures::{self, Known};
use crate::output;
use crate::runs::{Run, run_all};
use crate::table_episodes;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use cache::Artifact;
use datasets::{Date, SnapshotTime};
use stages_core::{Context, Outputs, StageError, table};
use stages_env::table::{Ledger, TableEnv, Target};
use stages_env::{ActionBuffer, ActionSpace, BatchEnv as _, OpenOptions};
use stages_numerics::random::Random;
use stages_policy::Policy;
use std::sync::Arc;

/// The most choices that are each compared with.
const MOST_CHOICES: usize = 16;
/// The random stream of the random baseline.
const RANDOM: u64 = 0x7461_626c;

/// A column of numbers by its name.
type Column = (&'static str, fn(&Ledger) -> f64);

const OF_LEDGER: [Column; 5] = [
    ("nav", |l| l.nav),
    ("costs", |l| l.costs),
    ("turnover", |l| l.turnover),
    ("net", |l| l.net),
    ("gross", |l| l.gross),
];

pub(crate) fn backtest(
    config: &BacktestConfig,
    context: &Context,
    artifact: &Artifact,
    policy: &Policy,
) -> Result<Outputs, StageError> {
    let open = |artifact: &Artifact, options: &OpenOptions| stages_env::table::open(&context.store, artifact, options);
    let all = Backtest {
        config,
        context,
        artifact,
        policy,
        open,
    };
    if !all.envs(1)?.has_price() {
        return table_episodes::backtest(config, context, policy, &|num_envs| all.envs(num_envs));
    }
    let (one, spans, periods) = all.start()?;
    let mut strategies = all.policy(&one, &spans)?;
    let choices = choices(config, &one);
    for rule in Rule::of_prices(config, &one, choices) {
        let paths = match rule {
            Rule::Random => config.random_paths,
            _ => 1,
        };
        let mut env = all.envs_for(paths, spans.len())?;
        let mut steps = 0;
        let runs = run_all(context, (&mut env, &spans), |env, step, _, _| {
            rule.step(config.seed, steps, env, step)?;
            steps += 1;
            Ok(())
        })?;
        context.progress(strategies.len() as u64, None, format!("baseline {}", rule.name(&one)));
        strategies.push(Strategy::baseline(rule.name(&one), runs));
    }
    let known = Known {
        periods,
        regimes: Vec::new(),
    };
    let metrics = measures::measure(config, &strategies, &known);
    strategies.retain(|strategy| strategy.role != Role::Ablation);
    let about = serde_json::json!({ "of": "table", "actions": one.spec().action_space.names() });
    output::store(context, metrics, &trajectory(&strategies, &one)?, about)
}

/// The number of choices that are each compared with; 0 for none.
pub(crate) fn choices(config: &BacktestConfig, env: &TableEnv) -> usize {
    match &env.spec().action_space {
        ActionSpace::Discrete { names, .. } if config.rules && names.len() <= MOST_CHOICES => names.len(),
        _ => 0,
    }
}

/// A rule that needs no training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    /// No position.
    Cash,
    /// A position of 1 in the only symbol.
    Underlying,
    /// The same value of every symbol, once or at each step.
    EqualWeight { held: bool },
    /// The same choice always.
    Always(u32),
    /// A random action.
    Random,
}

impl Rule {
    /// Those of an environment with a price.
    fn of_prices(config: &BacktestConfig, env: &TableEnv, choices: usize) -> Vec<Self> {
        let is_panel = matches!(env.spec().action_space, ActionSpace::Continuous { .. }) && env.num_symbols() > 1;
        let of = |name: &BaselineName| match name {
            BaselineName::Cash => Some(Self::Cash),
            BaselineName::Underlying if !is_panel => Some(Self::Underlying),
            BaselineName::EqualWeightHeld if is_panel => Some(Self::EqualWeight { held: true }),
            BaselineName::EqualWeight if is_panel => Some(Self::EqualWeight { held: false }),
            BaselineName::Random => Some(Self::Random),
            _ => None,
        };
        let named = config.baselines.iter().filter_map(of);
        named.chain((0..choices as u32).map(Self::Always)).collect()
    }

    /// Its name in metrics.
    pub(crate) fn name(self, env: &TableEnv) -> String {
        match self {
            Self::Cash => "cash".to_owned(),
            Self::Underlying => "underlying".to_owned(),
            Self::EqualWeight { held: true } => "equal_weight_held".to_owned(),
            Self::EqualWeight { held: false } => "equal_weight".to_owned(),
            Self::Always(choice) => {
                let names = env.spec().action_space.names();
                let name = names.get(choice as usize).map_or("", String::as_str);
                format!("always_{}", name.replace([' ', '/'], "_"))
            }
            Self::Random => "random".to_owned(),
        }
    }

    /// Takes its decision in every environment, at a step of their episodes.
    pub(crate) fn step(
        self,
        seed: u64,
        steps: u64,
        env: &mut TableEnv,
        step: &mut stages_env::Step,
    ) -> Result<(), StageError> {
        let (b, n) = (env.num_envs(), env.num_symbols());
        let each = |value: f64| vec![value; n];
        let positions = match self {
            Self::Cash => each(0.0),
            Self::Underlying => each(1.0),
            Self::EqualWeight { held: true } if steps > 0 => {
                return env.step_targets(&vec![Target::Hold; b], step.buffers());
            }
            Self::EqualWeight { .. } => each(1.0 / n as f64),
            Self::Always(choice) => {
                return env.step(stages_env::Actions::Discrete(&vec![choice; b]), step.buffers());
            }
            Self::Random => {
                let actions = random(seed, steps, &env.spec().action_space, b);
                return env.step(actions.as_actions(), step.buffers());
            }
        };
        env.step_targets(&vec![Target::Positions(&positions); b], step.buffers())
    }
}

/// Random actions, of environment i by (seed, i, step) alone.
fn random(seed: u64, steps: u64, space: &ActionSpace, num_envs: usize) -> ActionBuffer {
    let mut actions = ActionBuffer::new(space, num_envs);
    let width = space.num_components();
    for i in 0..num_envs {
        let mut random = Random::new(&[seed, RANDOM, i as u64, steps]);
        match (&mut actions, space) {
            (ActionBuffer::Discrete(choices), _) => choices[i] = random.below(space.num_outputs() as u64) as u32,
            (ActionBuffer::Continuous(values), ActionSpace::Continuous { bounds, .. }) => {
                let bounds = bounds.low.iter().zip(&bounds.high);
                for (value, (low, high)) in values[i * width..(i + 1) * width].iter_mut().zip(bounds) {
                    *value = low + (high - low) * random.uniform() as f32;
                }
            }
            _ => {}
        }
    }
    actions
}

/// The columns of time: `date`, and `snapshot` where rows have instants.
pub(crate) fn times(times: impl Iterator<Item = SnapshotTime>) -> Vec<(String, ArrayRef, bool)> {
    let columns = table::time_columns(times).into_iter();
    columns.map(|(name, array)| (name.to_owned(), array, false)).collect()
}

/// The table of the accounts of all strategies: a row for each row of each run, with the positions of the policy.
fn trajectory(strategies: &[Strategy<TableEnv>], env: &TableEnv) -> Result<RecordBatch, StageError> {
    let runs = || {
        strategies
            .iter()
            .flat_map(|strategy| strategy.runs.iter().map(move |run| (strategy, run)))
    };
    let rows = || runs().flat_map(|(strategy, run)| run.statements.iter().map(move |ledger| (strategy, run, ledger)));
    let floats = |of: &dyn Fn(&Run<TableEnv>, &Ledger) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(
            rows().map(|(_, run, ledger)| of(run, ledger)),
        ))
    };
    let strategy: StringArray = rows().map(|(strategy, ..)| Some(strategy.name.as_str())).collect();
    let world: StringArray = rows().map(|(_, run, _)| Some(run.world.as_str())).collect();
    let mut columns: Vec<(String, ArrayRef, bool)> = vec![
        ("strategy".into(), Arc::new(strategy), false),
        ("path".into(), floats(&|run, _| run.path as f64), false),
    ];
    columns.extend(times(rows().map(|(.., ledger)| ledger.time)));
    columns.push(("world".into(), Arc::new(world), false));
    columns.push(("episode".into(), floats(&|run, _| run.episode as f64), false));
    for (name, of) in OF_LEDGER {
        columns.push((name.into(), floats(&|_, ledger| of(ledger)), false));
    }
    for k in 0..env.num_symbols() {
        let positions: Float64Array = runs()
            .flat_map(|(strategy, run)| {
                let shown = strategy.role == Role::Policy;
                let after = run.notes.iter().map(|note| note.0[k]);
                std::iter::once(0.0)
                    .chain(after)
                    .map(move |position| shown.then_some(position))
            })
            .collect();
        let name = match env.num_symbols() {
            1 => "position".to_owned(),
            _ => format!("position.{}", env.spec().action_space.names()[k]),
        };
        columns.push((name, Arc::new(positions), true));
    }
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

impl Statement for Ledger {
    fn step(&self) -> usize {
        self.step
    }

    fn nav(&self) -> f64 {
        self.nav
    }

    fn spread_cost(&self) -> f64 {
        self.costs
    }

    fn costs(&self) -> f64 {
        self.costs
    }

    fn traded_value(&self) -> f64 {
        self.turnover
    }

    fn liquidations(&self) -> f64 {
        0.0
    }
}

/// The positions after a step `[N]`.
pub(crate) struct Positions(pub Vec<f64>);

impl MarketEnv for TableEnv {
    type Statement = Ledger;
    type Note = Positions;

    const PROFITS: &'static [&'static str] = &["prices", "costs"];
    const SHUFFLED: &'static str = "shuffled_symbols";

    fn statement(&self, i: usize) -> Ledger {
        self.ledger(i)
    }

    fn final_statement(&self, i: usize) -> Option<Ledger> {
        self.final_ledger(i)
    }

    fn note(&self, i: usize, _: &Ledger, ended: bool) -> Positions {
        Positions(if ended { self.final_held(i) } else { self.held(i) }.to_vec())
    }

    fn profit(before: &Ledger, after: &Ledger, _: &Positions) -> Vec<f64> {
        let costs = before.costs - after.costs;
        vec![after.nav - before.nav - costs, costs]
    }

    /// By value: what is held, and half of what is traded.
    fn held(before: &Ledger, after: &Ledger, _: &Positions) -> (f64, f64) {
        (after.gross * after.nav, 0.5 * (after.turnover - before.turnover))
    }

    fn measures(runs: &[Run<Self>]) -> Vec<(String, f64)> {
        let mean = |of: &dyn Fn(&Ledger) -> f64| {
            let all = runs.iter().flat_map(|run| &run.statements[1..]);
            let (sum, count) = all.fold((0.0, 0.0), |(sum, count), ledger| (sum + of(ledger), count + 1.0));
            sum / count
        };
        [
            ("gross_exposure", mean(&|l| l.gross)),
            ("net_exposure", mean(&|l| l.net)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn evaluation_episodes(&self) -> usize {
        Self::evaluation_episodes(self)
    }

    fn snapshot(&self, i: usize) -> usize {
        self.row(i)
    }

    fn world(&self, i: usize) -> &str {
        Self::world(self, i)
    }

    fn test_steps(&self, i: usize) -> usize {
        Self::test_steps(self, i)
    }

    fn test_dates(&self, i: usize) -> Vec<Date> {
        Self::test_dates(self, i)
    }

    /// Cash earns nothing.
    fn risk_free_return(&self, _: usize) -> f64 {
        0.0
    }

    fn underlying_return(&self, snapshot: usize) -> f64 {
        self.mean_payoff(snapshot)
    }

    fn market_row(&self, snapshot: usize) -> &[f32] {
        self.shown(snapshot)
    }

    fn layout(&self) -> Layout {
        let shown = self.shown(self.row(0)).len();
        Layout {
            market: 0..shown,
            instruments: 0..shown,
            width: shown / self.num_symbols(),
        }
    }
}
