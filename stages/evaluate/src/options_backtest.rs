//! Evaluation on `env/options`.

use crate::config::BacktestConfig;
use crate::market_backtest::{Backtest, Role, Strategy};
use crate::market_env::Run;
use crate::market_env::Span;
use crate::market_env::{Layout, MarketEnv, Statement};
use crate::measures::{self, Known};
use crate::output;
use crate::rules::{rules, run_rule};
use crate::runs::run_all;
use crate::trajectory::trajectory;
use cache::Artifact;
use datasets::Date;
use stages_core::{Context, Outputs, StageError};
use stages_env::BatchEnv as _;
use stages_env::options::{Baseline, Explained, Ledger, OptionsEnv, Reason};
use stages_policy::Policy;

/// The prefix of the hidden features that say which regime a snapshot is in.
const REGIME: &str = "regime_";

pub(crate) fn backtest(
    config: &BacktestConfig,
    context: &Context,
    artifact: &Artifact,
    policy: &Policy,
) -> Result<Outputs, StageError> {
    let all = Backtest {
        config,
        context,
        artifact,
        policy,
        open: |artifact: &Artifact, options: &_| stages_env::options::open(&context.store, artifact, options),
    };
    let (one, spans, periods) = all.start()?;
    let mut strategies = all.policy(&one, &spans)?;
    let possible = config.baselines.iter().filter_map(|baseline| baseline.of_options());
    for baseline in possible.filter(|baseline| one.hedges() || !baseline.hedges()) {
        context.progress(strategies.len() as u64, None, format!("baseline {}", baseline.name()));
        let paths = if baseline == Baseline::Random {
            config.random_paths
        } else {
            1
        };
        let mut env = all.envs_for(paths, spans.len())?;
        strategies.push(Strategy::baseline(
            baseline.name(),
            run_baseline(context, baseline, (&mut env, &spans))?,
        ));
    }
    let rules = if config.rules {
        rules(context, artifact)?
    } else {
        Vec::new()
    };
    for rule in &rules {
        context.log(rule.describe(&one));
        let mut env = all.envs(spans.len())?;
        let runs = run_rule(context, rule, (&mut env, &spans))?;
        strategies.push(Strategy::baseline(rule.name.clone(), runs));
    }
    let known = Known {
        periods,
        regimes: regimes(&one),
    };
    let metrics = measures::measure(config, &strategies, &known);
    strategies.retain(|strategy| strategy.role != Role::Ablation);
    let about = serde_json::json!({ "of": "options", "symbol": one.world(0), "capital": one.capital() });
    output::store(context, metrics, &trajectory(&strategies)?, about)
}

/// Runs a baseline.
fn run_baseline(
    context: &Context,
    baseline: Baseline,
    (env, spans): (&mut OptionsEnv, &[Span]),
) -> Result<Vec<Run<OptionsEnv>>, StageError> {
    run_all(context, (env, spans), |env, step, _, _| {
        env.step_baseline(baseline, step.buffers());
        Ok(())
    })
}

/// The names of the regimes, where the environment knows them.
fn regimes(env: &OptionsEnv) -> Vec<String> {
    env.hidden_names()
        .iter()
        .filter_map(|name| name.strip_prefix(REGIME).map(str::to_owned))
        .collect()
}

impl Statement for Ledger {
    fn step(&self) -> usize {
        self.step
    }

    fn nav(&self) -> f64 {
        self.nav
    }

    fn spread_cost(&self) -> f64 {
        self.spread_cost
    }

    fn costs(&self) -> f64 {
        self.spread_cost + self.commission
    }

    fn traded_value(&self) -> f64 {
        self.traded_value
    }

    fn liquidations(&self) -> f64 {
        f64::from(self.liquidations)
    }
}

/// The profit of a step by Greek, and the position lines that it opened.
pub(crate) struct OptionsNote {
    explained: Explained,
    opened: usize,
}

impl MarketEnv for OptionsEnv {
    type Statement = Ledger;
    type Note = OptionsNote;

    /// Carry is interest less the cost of borrowing.
    const PROFITS: &'static [&'static str] =
        &["delta", "gamma", "vega", "theta", "carry", "costs", "unexplained"];
    const SHUFFLED: &'static str = "shuffled_slate";

    fn begin(&mut self) {
        self.explain();
    }

    fn statement(&self, i: usize) -> Ledger {
        self.ledger(i)
    }

    fn final_statement(&self, i: usize) -> Option<Ledger> {
        self.final_ledger(i)
    }

    fn note(&self, i: usize, before: &Ledger, ended: bool) -> OptionsNote {
        let now = before.time();
        let opened = self.positions(i).iter().filter(|line| line.opened == now).count();
        OptionsNote {
            explained: self.explained(i),
            opened: if ended { 0 } else { opened },
        }
    }

    fn profit(before: &Ledger, after: &Ledger, note: &OptionsNote) -> Vec<f64> {
        let by = &note.explained;
        let received = |ledger: &Ledger| ledger.interest - ledger.borrow_cost;
        let carry = received(after) - received(before);
        let costs = before.costs() - after.costs();
        let known = by.delta + by.gamma + by.vega + by.theta + carry + costs;
        let rest = after.nav - before.nav - known;
        vec![by.delta, by.gamma, by.vega, by.theta, carry, costs, rest]
    }

    fn held(before: &Ledger, _: &Ledger, note: &OptionsNote) -> (f64, f64) {
        (before.lines as f64, note.opened as f64)
    }

    fn measures(runs: &[Run<Self>]) -> Vec<(String, f64)> {
        let masked = |k: usize| runs.iter().map(|run| f64::from(run.last().masked[k])).sum();
        let reasons = Reason::ALL.iter().enumerate();
        reasons
            .map(|(k, reason)| (format!("masked/{}", reason.name()), masked(k)))
            .collect()
    }

    /// That of the largest feature.
    fn regime(&self, i: usize) -> Option<usize> {
        let names = self.hidden_names().iter().zip(self.hidden(i));
        let of_regimes = names
            .filter(|(name, _)| name.starts_with(REGIME))
            .map(|(_, &value)| value);
        of_regimes
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(at, _)| at)
    }

    fn evaluation_episodes(&self) -> usize {
        Self::evaluation_episodes(self)
    }

    fn snapshot(&self, i: usize) -> usize {
        self.ledger(i).snapshot
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

    fn risk_free_return(&self, snapshot: usize) -> f64 {
        Self::risk_free_return(self, snapshot)
    }

    fn underlying_return(&self, snapshot: usize) -> f64 {
        Self::underlying_return(self, snapshot)
    }

    fn market_row(&self, snapshot: usize) -> &[f32] {
        Self::market_row(self, snapshot)
    }

    fn layout(&self) -> Layout {
        let names = &self.spec().observation;
        let range = |prefix: &str| {
            let first = names.iter().position(|name| name.starts_with(prefix)).unwrap_or(0);
            first..first + names.iter().filter(|name| name.starts_with(prefix)).count()
        };
        let slate = range("slate.");
        let slot_of = |name: &String| name.rsplit_once('.').map(|(slot, _)| slot.to_owned());
        let slots = &names[slate.clone()];
        let width = slots
            .iter()
            .take_while(|name| slot_of(name) == slot_of(&slots[0]))
            .count();
        Layout {
            market: range("market."),
            instruments: slate,
            width,
        }
    }
}
