//! Evaluation on `env/stocks`.

use crate::config::{BacktestConfig, BaselineName};
use crate::market_backtest::{Backtest, Role, Strategy};
use crate::market_env::Run;
use crate::market_env::Span;
use crate::market_env::{Layout, MarketEnv, Statement};
use crate::measures::{self, Known};
use crate::oracle::Oracle;
use crate::output;
use crate::performance::{Returns, step_return};
use crate::portfolio_rules::PortfolioRule;
use crate::regression::regress;
use crate::runs::run_all;
use crate::stocks_trajectory::trajectory;
use cache::Artifact;
use datasets::Date;
use stages_core::{Context, Outputs, StageError};
use stages_env::BatchEnv as _;
use stages_env::stocks::{Ledger, Rules, StocksEnv, Target};
use stages_policy::Policy;

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
        open: |artifact: &Artifact, options: &_| stages_env::stocks::open(&context.store, artifact, options),
    };
    let (one, spans, periods) = all.start()?;
    let mut strategies = all.policy(&one, &spans)?;
    for &baseline in &config.baselines {
        let paths = match baseline {
            BaselineName::Random => config.random_paths,
            _ => 1,
        };
        let mut env = all.envs_for(paths, spans.len())?;
        let rule = match baseline {
            BaselineName::MinimumVariance => Some(PortfolioRule::MinimumVariance),
            BaselineName::Momentum => Some(PortfolioRule::Momentum),
            _ => None,
        };
        if baseline == BaselineName::Oracle {
            if let Some(oracle) = Oracle::new(&env) {
                let runs = run_oracle(context, &oracle, (&mut env, &spans))?;
                strategies.push(Strategy::baseline(baseline.name(), runs));
            }
            continue;
        }
        let runs = match (baseline.of_stocks(), rule) {
            (Some(baseline), _) => run_all(context, (&mut env, &spans), |env, step, _, _| {
                env.step_baseline(baseline, step.buffers());
                Ok(())
            })?,
            (None, Some(rule)) => run_rule(context, rule, (&mut env, &spans))?,
            (None, None) => continue,
        };
        context.progress(strategies.len() as u64, None, format!("baseline {}", baseline.name()));
        strategies.push(Strategy::baseline(baseline.name(), runs));
    }
    let known = Known {
        periods,
        regimes: Vec::new(),
    };
    let metrics = measures::measure(config, &strategies, &known);
    strategies.retain(|strategy| strategy.role != Role::Ablation);
    let rules = match one.rules() {
        Rules::Market => "market",
        Rules::Finrl => "finrl",
    };
    let about = serde_json::json!({ "of": "stocks", "rules": rules, "symbols": &one.spec().action_space.names()[..one.num_symbols()], "capital": one.capital() });
    output::store(context, metrics, &trajectory(&strategies, &one)?, about)
}

/// Runs a rule that rebalances, and holds in between.
fn run_rule(
    context: &Context,
    rule: PortfolioRule,
    (env, spans): (&mut StocksEnv, &[Span]),
) -> Result<Vec<Run<StocksEnv>>, StageError> {
    run_all(context, (env, spans), |env, step, runs, _| {
        let weights: Vec<Option<Vec<f64>>> = (runs.iter().enumerate())
            .map(|(i, run)| rule.weights(env, i, run.last().step))
            .collect();
        let targets: Vec<Target<'_>> = weights
            .iter()
            .map(|weights| weights.as_deref().map_or(Target::Hold, Target::Weights))
            .collect();
        env.step_targets(&targets, step.buffers())
    })
}

/// Runs the oracle.
fn run_oracle(
    context: &Context,
    oracle: &Oracle,
    (env, spans): (&mut StocksEnv, &[Span]),
) -> Result<Vec<Run<StocksEnv>>, StageError> {
    run_all(context, (env, spans), |env, step, runs, _| {
        let weights: Vec<Option<Vec<f64>>> = (0..runs.len()).map(|i| oracle.weights(env, i)).collect();
        let targets: Vec<Target<'_>> = weights
            .iter()
            .map(|weights| weights.as_deref().map_or(Target::Hold, Target::Weights))
            .collect();
        env.step_targets(&targets, step.buffers())
    })
}

/// The profit of a step by the lines of the hedge; none without one.
fn hedge_lines(before: &Ledger, after: &Ledger) -> Option<[f64; 5]> {
    let (before, after) = before.hedge.zip(after.hedge)?;
    Some([
        after.gains - before.gains,
        after.dividends - before.dividends,
        before.borrow_cost - after.borrow_cost,
        before.commission - after.commission,
        before.spread_cost - after.spread_cost,
    ])
}

/// The exposure to the instrument without and with the hedge, by the environment's estimate and by regression
/// of the account's returns on the instrument's; nothing without a hedge.
fn hedge_measures(runs: &[Run<StocksEnv>]) -> Vec<(String, f64)> {
    let mut sums = [0.0; 3];
    let mut count = 0.0;
    for ledger in runs.iter().flat_map(|run| &run.statements[1..]) {
        let Some(hedge) = ledger.hedge else {
            return Vec::new();
        };
        let nav = if ledger.nav > 0.0 { ledger.nav } else { f64::INFINITY };
        for (sum, value) in
            sums.iter_mut()
                .zip([hedge.exposure, hedge.exposure + hedge.value, hedge.value.abs()])
        {
            *sum += value / nav;
        }
        count += 1.0;
    }
    let mut out = Vec::new();
    let mut add = |name: &str, value: f64| out.push((format!("hedge/{name}"), value));
    add("exposure_before", sums[0] / count);
    add("exposure_after", sums[1] / count);
    add("gross_exposure", sums[2] / count);
    for (name, hedged) in [("beta_before", false), ("beta_after", true)] {
        let returns: Vec<Returns> = runs
            .iter()
            .map(|run| {
                let account = run.steps().map(|(before, after, _)| {
                    let of_hedge: f64 = hedge_lines(before, after).into_iter().flatten().sum();
                    step_return(before.nav, after.nav - if hedged { 0.0 } else { of_hedge })
                });
                let instrument = run.notes.iter().map(|note| note.instrument);
                run.beside(account.collect(), instrument.collect())
            })
            .collect();
        let (_, beta) = regress(&returns);
        let (low, high) = beta.interval();
        add(name, beta.value);
        add(&format!("{name}_low"), low);
        add(&format!("{name}_high"), high);
    }
    out
}

impl Statement for Ledger {
    fn step(&self) -> usize {
        self.step
    }

    fn nav(&self) -> f64 {
        self.nav
    }

    fn spread_cost(&self) -> f64 {
        self.all_spreads()
    }

    fn costs(&self) -> f64 {
        Self::costs(self)
    }

    fn traded_value(&self) -> f64 {
        self.all_traded()
    }

    fn liquidations(&self) -> f64 {
        f64::from(self.liquidations)
    }
}

/// The record of a step.
pub(crate) struct Held {
    /// The weights of the positions after it `[N]`.
    pub weights: Vec<f64>,
    /// The return of the instrument that hedges over it; 0 without one.
    instrument: f64,
}

impl MarketEnv for StocksEnv {
    type Statement = Ledger;
    type Note = Held;

    /// Prices are gains and losses of what is held; the others are lines of the account, the last ones of a
    /// hedge.
    const PROFITS: &'static [&'static str] = &[
        "prices",
        "dividends",
        "interest",
        "debit_interest",
        "borrow_cost",
        "commission",
        "spread_cost",
        "impact_cost",
        "delisting_loss",
        "hedge_prices",
        "hedge_dividends",
        "hedge_borrow_cost",
        "hedge_commission",
        "hedge_spread_cost",
    ];
    const SHUFFLED: &'static str = "shuffled_stocks";

    fn statement(&self, i: usize) -> Ledger {
        self.ledger(i)
    }

    fn final_statement(&self, i: usize) -> Option<Ledger> {
        self.final_ledger(i)
    }

    fn note(&self, i: usize, before: &Ledger, ended: bool) -> Held {
        let mut weights = vec![0.0; self.num_symbols()];
        match ended {
            true => weights.copy_from_slice(self.final_weights(i)),
            false => self.weights(i, &mut weights),
        }
        Held {
            weights,
            instrument: match self.hedges() {
                true => self.hedge_return(before.snapshot),
                false => 0.0,
            },
        }
    }

    fn profit(before: &Ledger, after: &Ledger, _: &Held) -> Vec<f64> {
        let change = |of: fn(&Ledger) -> f64| of(after) - of(before);
        let mut lines = vec![
            change(|l| l.dividends),
            change(|l| l.interest),
            -change(|l| l.debit_interest),
            -change(|l| l.borrow_cost),
            -change(|l| l.commission),
            -change(|l| l.spread_cost),
            -change(|l| l.impact_cost),
            -change(|l| l.delisting_loss),
        ];
        lines.extend(hedge_lines(before, after).into_iter().flatten());
        let prices = change(|l| l.nav) - lines.iter().sum::<f64>();
        std::iter::once(prices).chain(lines).collect()
    }

    /// By value: what is held, and half of what is traded.
    fn held(before: &Ledger, after: &Ledger, _: &Held) -> (f64, f64) {
        (after.gross, 0.5 * (after.traded_value - before.traded_value))
    }

    fn measures(runs: &[Run<Self>]) -> Vec<(String, f64)> {
        let mean = |of: &dyn Fn(&Ledger) -> f64| {
            let all = runs.iter().flat_map(|run| &run.statements[1..]);
            let (sum, count) = all.fold((0.0, 0.0), |(sum, count), ledger| (sum + of(ledger), count + 1.0));
            sum / count
        };
        let total = |of: fn(&Ledger) -> u32| runs.iter().map(|run| f64::from(of(run.last()))).sum::<f64>();
        let share = |value: f64, nav: f64| if nav > 0.0 { value / nav } else { 0.0 };
        [
            ("gross_exposure", mean(&|l| share(l.gross, l.nav))),
            ("net_exposure", mean(&|l| share(l.net, l.nav))),
            ("concentration", mean(&|l| l.concentration)),
            ("positions", mean(&|l| l.positions as f64)),
            ("trades", total(|l| l.trades)),
            ("refused_orders", total(|l| l.refused)),
            ("reduced_orders", total(|l| l.reduced)),
            ("delistings", total(|l| l.settlements)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .chain(hedge_measures(runs))
        .collect()
    }

    fn evaluation_episodes(&self) -> usize {
        Self::evaluation_episodes(self)
    }

    fn snapshot(&self, i: usize) -> usize {
        Self::snapshot(self, i)
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
        self.market_return(snapshot)
    }

    fn market_row(&self, snapshot: usize) -> &[f32] {
        Self::market_row(self, snapshot)
    }

    /// Under FinRL's rules there is none: its observation is raw, prices and account in one.
    fn layout(&self) -> Layout {
        if self.rules() == Rules::Finrl {
            return Layout::default();
        }
        let shown = Self::market_row(self, self.snapshot(0)).len();
        let by_date = |name: &&String| name.starts_with("market.");
        let first = self.spec().observation[..shown].iter().filter(by_date).count();
        Layout {
            market: 0..shown,
            instruments: first..shown,
            width: (shown - first) / self.num_symbols(),
        }
    }
}
