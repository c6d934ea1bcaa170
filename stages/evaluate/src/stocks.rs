//! Evaluation on `env/stocks`.

use crate::market::{Column, Layout, Market, Run, Statement, ledger_columns, mean_of_steps};
use crate::market_backtest::{Backtest, Compared};
use crate::performance::{Returns, step_return};
use crate::portfolio_rules::PortfolioRule;
use crate::regression::regress;
use crate::rule_search::{Decision, Of, Ruled};
use crate::seen::Feature;
use datasets::SnapshotTime;
use stages_core::StageError;
use stages_env::stocks::{BASELINES, Ledger, Rules, StocksEnv, StocksSimulator, Target};
use stages_env::{BaselineName, BatchEnv as _, Step};

/// The columns of the listed fields of the hedge, 0 without a hedge.
macro_rules! hedge_fields {
    ($($field:ident),+) => {
        [$((
            concat!("hedge_", stringify!($field)),
            (|ledger| ledger.hedge.map_or(0.0, |hedge| hedge.$field)) as fn(&Ledger) -> f64,
        )),+]
    };
}

/// The profit of a step by the lines of the hedge; `None` without a hedge.
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
/// of the account's returns on the instrument's; empty without a hedge.
fn hedge_measures(runs: &[Run<StocksSimulator>]) -> Vec<(String, f64)> {
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
                    let hedge_profit: f64 = hedge_lines(before, after).into_iter().flatten().sum();
                    step_return(before.nav, after.nav - if hedged { 0.0 } else { hedge_profit })
                });
                let instrument = run.records.iter().map(|record| record.instrument);
                run.beside(account.collect(), instrument.collect())
            })
            .collect();
        let (_, beta) = regress(&returns);
        add(name, beta.value);
        add(&format!("{name}_low"), beta.low);
        add(&format!("{name}_high"), beta.high);
    }
    out
}

/// The record of a step: what is held after it.
pub(crate) struct Held {
    /// The weights of the positions after the step `[N]`.
    pub weights: Vec<f64>,
    /// The return over the step of the instrument that hedges; 0 without one.
    instrument: f64,
}

impl Market for StocksSimulator {
    type Record = Held;

    /// `prices` are gains and losses of what is held; the other causes are lines of the account, the last
    /// ones those of a hedge.
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

    fn statement(ledger: &Ledger) -> Statement {
        Statement {
            time: SnapshotTime::of_day(ledger.date),
            step: ledger.step,
            nav: ledger.nav,
            spread_cost: ledger.all_spreads(),
            costs: ledger.costs(),
            traded_value: ledger.all_traded(),
            liquidations: f64::from(ledger.liquidations),
            closing_cost: ledger.closing_cost,
        }
    }

    fn record(env: &StocksEnv, i: usize, before: &Ledger, ended: bool) -> Held {
        let mut weights = vec![0.0; env.num_symbols()];
        match ended {
            true => weights.copy_from_slice(env.final_weights(i)),
            false => env.weights(i, &mut weights),
        }
        Held {
            weights,
            instrument: match env.common().hedges {
                true => env.hedge_return(before.snapshot),
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

    /// The value of the holdings, and half of the value traded.
    fn held(before: &Ledger, after: &Ledger, _: &Held) -> (f64, f64) {
        (after.gross, 0.5 * (after.traded_value - before.traded_value))
    }

    fn measures(runs: &[Run<Self>]) -> Vec<(String, f64)> {
        let mean = |of: &dyn Fn(&Ledger) -> f64| mean_of_steps(runs, of);
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

    fn risk_aversion(env: &StocksEnv) -> Option<f64> {
        // FinRL pays the change of the account's value.
        let is_finrl = env.config().rules == Rules::Finrl;
        env.common().risk_aversion().filter(|_| !is_finrl)
    }

    fn market_stands_apart(env: &StocksEnv) -> bool {
        env.config().rules != Rules::Finrl
    }

    /// The layout is empty under FinRL's rules: their observation is raw, with prices and account in one.
    fn layout(env: &StocksEnv) -> Layout {
        if env.config().rules == Rules::Finrl {
            return Layout::default();
        }
        // What trades comes after the features.
        let shown = env.common().row(env.snapshot(0)).len() - env.num_symbols();
        let by_date = |name: &&String| name.starts_with("market.");
        let first = env.spec().observation[..shown].iter().filter(by_date).count();
        Layout {
            market: 0..shown,
            instruments: first..shown,
            width: (shown - first) / env.num_symbols(),
        }
    }

    fn about(env: &StocksEnv) -> serde_json::Value {
        let rules = match env.config().rules {
            Rules::Market => "market",
            Rules::Finrl => "finrl",
        };
        let symbols = &env.spec().action_space.names()[..env.num_symbols()];
        let capital = env.config().capital;
        serde_json::json!({ "of": "stocks", "rules": rules, "symbols": symbols, "capital": capital })
    }

    fn weight_names(env: &StocksEnv) -> Vec<String> {
        let symbols = &env.spec().action_space.names()[..env.num_symbols()];
        symbols.iter().map(|name| format!("weight.{name}")).collect()
    }

    fn weights_after(record: &Held) -> &[f64] {
        &record.weights
    }

    fn columns(env: &StocksEnv) -> Vec<Column<Self>> {
        let costs: Column<Self> = ("costs", Ledger::costs);
        let mut columns = [
            &ledger_columns!(Ledger: nav, cash, gross, net, concentration, positions as f64)[..],
            &[costs],
            &ledger_columns!(Ledger: commission, spread_cost, impact_cost, borrow_cost, interest,
                debit_interest, dividends, delisting_loss, traded_value, trades as f64, refused as f64,
                reduced as f64, liquidations as f64),
        ]
        .concat();
        if env.common().hedges {
            columns.extend(hedge_fields!(
                units,
                value,
                exposure,
                gains,
                dividends,
                borrow_cost,
                commission,
                spread_cost,
                traded_value
            ));
        }
        columns
    }
}

/// Trades to the weights that `weights` gives for environment i; holds where it gives none.
fn step_weights(
    env: &mut StocksEnv,
    step: &mut Step,
    weights: impl Fn(&StocksEnv, usize) -> Option<Vec<f64>>,
) -> Result<(), StageError> {
    let weights: Vec<Option<Vec<f64>>> = (0..env.num_envs()).map(|i| weights(env, i)).collect();
    let targets: Vec<Target<'_>> = weights
        .iter()
        .map(|weights| weights.as_deref().map_or(Target::Hold, Target::Weights))
        .collect();
    env.step_targets(&targets, step.buffers())
}

impl Compared for StocksSimulator {
    fn compare(all: &mut Backtest<'_, Self>) -> Result<(), StageError> {
        for &baseline in &all.of.config.baselines {
            let (name, is_drawn) = (baseline.name(), baseline == BaselineName::Random);
            let rule = match baseline {
                BaselineName::MinimumVariance => Some(PortfolioRule::MinimumVariance),
                BaselineName::Momentum => Some(PortfolioRule::Momentum),
                _ => None,
            };
            if BASELINES.contains(&baseline) {
                all.baseline(name, is_drawn, |env, step, _, _| {
                    env.step_baseline(baseline, step.buffers());
                    Ok(())
                })?;
            } else if let Some(rule) = rule {
                all.baseline(name, false, |env, step, runs, _| {
                    step_weights(env, step, |env, i| rule.weights(env, i, runs[i].last().step))
                })?;
            }
        }
        if all.one.config().rules == Rules::Finrl {
            return Ok(());
        }
        if all.of.config.rules {
            all.best_rule("best_rule", Of::Seen)?;
        }
        if all.of.config.baselines.contains(&BaselineName::Oracle) {
            all.best_rule("oracle", Of::Hidden("expected_return"))?;
            all.best_rule("filter", Of::Hidden("filtered_return"))?;
        }
        Ok(())
    }
}

impl Ruled for StocksSimulator {
    fn date_features(env: &StocksEnv) -> Vec<Feature> {
        let columns = 0..Self::layout(env).instruments.start;
        Feature::by_date(&env.spec().observation, columns)
    }

    fn symbol_features(env: &StocksEnv) -> Vec<Feature> {
        let layout = Self::layout(env);
        let names = &env.spec().observation;
        let (first, n) = (layout.instruments.start, env.num_symbols());
        let width = layout.width;
        let feature = |k: usize| Feature {
            name: names[first + k]
                .rsplit_once('.')
                .map_or("", |(_, name)| name)
                .to_owned(),
            columns: (0..n).map(|symbol| first + symbol * width + k).collect(),
        };
        (0..width).map(feature).collect()
    }

    fn hidden(env: &StocksEnv, name: &str) -> Option<Vec<f32>> {
        env.hidden(name, 0, 0)?;
        let of_symbols = (0..env.num_snapshots()).flat_map(|t| (0..env.num_symbols()).map(move |i| (t, i)));
        Some(
            of_symbols
                .map(|(t, i)| env.hidden(name, t, i).map_or(f32::NAN, |value| value as f32))
                .collect(),
        )
    }

    fn limits(env: &StocksEnv) -> Option<(f64, f64)> {
        let actions = &env.config().actions;
        let gross = actions.gross.min(actions.net).min(1.0);
        Some((actions.largest.min(gross), gross))
    }

    fn trades(env: &StocksEnv, t: usize, symbol: usize) -> bool {
        env.trades(t, symbol)
    }

    fn constants(_: &StocksEnv) -> Vec<String> {
        ["equal weights, rebalanced on each date", "cash"]
            .map(str::to_owned)
            .into()
    }

    fn constant(env: &StocksEnv, which: usize, t: usize, weights: &mut [f64]) -> Decision {
        let n = weights.len();
        let trading = (0..n).filter(|&symbol| env.trades(t, symbol)).count();
        for (symbol, weight) in weights.iter_mut().enumerate() {
            let is_held = which == 0 && env.trades(t, symbol);
            *weight = if is_held { 1.0 / trading as f64 } else { 0.0 };
        }
        Decision::Weights
    }

    fn step_by(
        env: &mut StocksEnv,
        decisions: &[Decision],
        weights: &[f64],
        step: &mut Step,
    ) -> Result<(), StageError> {
        let targets = decisions.iter().zip(weights.chunks_exact(env.num_symbols()));
        let targets: Vec<Target<'_>> = targets
            .map(|(decision, weights)| match decision {
                Decision::Weights => Target::Weights(weights),
                _ => Target::Hold,
            })
            .collect();
        env.step_targets(&targets, step.buffers())
    }
}
