//! Evaluation on `env/table`: with a price, like that over any market; with columns of rewards, by episodes.

use crate::market::{Column, Layout, Market, Run, Statement, ledger_columns, mean_of_steps};
use crate::market_backtest::{self, Backtest, Compared, Evaluation};
use crate::rule_search::{Decision, Of, POSITIONS, Ruled};
use crate::seen::Feature;
use crate::table_episodes;
use crate::table_rules::{Rule, choices};
use stages_core::{Outputs, StageError};
use stages_env::table::{Ledger, TableEnv, TableSimulator, Target};
use stages_env::{ActionSpace, Actions, BatchEnv as _, Step};

pub(crate) fn backtest(of: Evaluation<'_>) -> Result<Outputs, StageError> {
    let one: TableEnv = of.open(1)?;
    match one.has_price() {
        true => market_backtest::backtest::<TableSimulator>(of),
        false => table_episodes::backtest(of, one),
    }
}

/// The positions after a step `[N]`.
pub(crate) struct Positions(pub Vec<f64>);

impl Market for TableSimulator {
    type Record = Positions;

    const PROFITS: &'static [&'static str] = &["prices", "costs"];
    const SHUFFLED: &'static str = "shuffled_symbols";

    fn statement(ledger: &Ledger) -> Statement {
        Statement {
            time: ledger.time,
            step: ledger.step,
            nav: ledger.nav,
            spread_cost: ledger.costs,
            costs: ledger.costs,
            traded_value: ledger.turnover,
            liquidations: 0.0,
            closing_cost: ledger.closing_cost,
        }
    }

    fn record(env: &TableEnv, i: usize, _: &Ledger, ended: bool) -> Positions {
        Positions(if ended { env.final_weights(i) } else { env.held(i) }.to_vec())
    }

    fn profit(before: &Ledger, after: &Ledger, _: &Positions) -> Vec<f64> {
        let costs = before.costs - after.costs;
        vec![after.nav - before.nav - costs, costs]
    }

    /// The value of the holdings, and half of the value traded.
    fn held(before: &Ledger, after: &Ledger, _: &Positions) -> (f64, f64) {
        (after.gross * after.nav, 0.5 * (after.turnover - before.turnover))
    }

    fn measures(runs: &[Run<Self>]) -> Vec<(String, f64)> {
        let mean = |of: &dyn Fn(&Ledger) -> f64| mean_of_steps(runs, of);
        [
            ("gross_exposure", mean(&|l| l.gross)),
            ("net_exposure", mean(&|l| l.net)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn layout(env: &TableEnv) -> Layout {
        let shown = env.common().row(env.snapshot(0)).len();
        Layout {
            market: 0..shown,
            instruments: 0..shown,
            width: shown / env.num_symbols(),
        }
    }

    fn about(env: &TableEnv) -> serde_json::Value {
        serde_json::json!({ "of": "table", "actions": env.spec().action_space.names() })
    }

    fn weight_names(env: &TableEnv) -> Vec<String> {
        let symbols = &env.spec().action_space.names()[..env.num_symbols()];
        match symbols {
            [_] => vec!["position".to_owned()],
            symbols => symbols.iter().map(|name| format!("position.{name}")).collect(),
        }
    }

    fn weights_after(record: &Positions) -> &[f64] {
        &record.0
    }

    fn columns(_: &TableEnv) -> Vec<Column<Self>> {
        ledger_columns!(Ledger: nav, costs, turnover, net, gross).to_vec()
    }
}

impl Compared for TableSimulator {
    fn compare(all: &mut Backtest<'_, Self>) -> Result<(), StageError> {
        let seed = all.of.config.seed;
        for rule in Rule::of_prices(all.of.config, &all.one, choices(all.of.config, &all.one)) {
            let mut steps = 0;
            all.baseline(rule.name(&all.one), rule == Rule::Random, |env, step, _, _| {
                rule.step(seed, steps, env, step)?;
                steps += 1;
                Ok(())
            })?;
        }
        if all.of.config.rules {
            all.best_rule("best_rule", Of::Seen)?;
        }
        Ok(())
    }
}

impl Ruled for TableSimulator {
    fn date_features(env: &TableEnv) -> Vec<Feature> {
        let columns = 0..Self::layout(env).market.end;
        match env.num_symbols() {
            1 => Feature::by_date(&env.spec().observation, columns),
            _ => Vec::new(),
        }
    }

    fn symbol_features(env: &TableEnv) -> Vec<Feature> {
        let (n, width) = (env.num_symbols(), Self::layout(env).width);
        if n == 1 {
            return Vec::new();
        }
        let (names, first) = (
            &env.spec().observation,
            format!("{}.", env.spec().action_space.names()[0]),
        );
        let feature = |k: usize| Feature {
            name: names[k].strip_prefix(&first).unwrap_or(&names[k]).to_owned(),
            columns: (0..n).map(|symbol| symbol * width + k).collect(),
        };
        (0..width).map(feature).collect()
    }

    fn hidden(_: &TableEnv, _: &str) -> Option<Vec<f32>> {
        None
    }

    fn limits(env: &TableEnv) -> Option<(f64, f64)> {
        let actions = &env.config().actions;
        let is_portfolio = env.num_symbols() > 1 && actions.high > 0.0;
        is_portfolio.then(|| (actions.high.min(actions.gross), actions.gross))
    }

    fn trades(_: &TableEnv, _: usize, _: usize) -> bool {
        true
    }

    fn constants(env: &TableEnv) -> Vec<String> {
        match (&env.spec().action_space, env.num_symbols()) {
            (ActionSpace::Discrete { names, .. }, _) => names.iter().take(POSITIONS).cloned().collect(),
            (_, 1) => positions(env).map(|position| format!("position {position}")).into(),
            _ => ["equal weights, rebalanced at each step", "cash"]
                .map(str::to_owned)
                .into(),
        }
    }

    fn constant(env: &TableEnv, which: usize, _: usize, weights: &mut [f64]) -> Decision {
        let n = weights.len();
        match (&env.spec().action_space, env.num_symbols()) {
            (ActionSpace::Discrete { .. }, _) => return Decision::Choice(which as u32),
            (_, 1) => weights.fill(positions(env)[which]),
            _ => weights.fill(if which == 0 { 1.0 / n as f64 } else { 0.0 }),
        }
        Decision::Weights
    }

    fn step_by(
        env: &mut TableEnv,
        decisions: &[Decision],
        weights: &[f64],
        step: &mut Step,
    ) -> Result<(), StageError> {
        if let ActionSpace::Discrete { .. } = env.spec().action_space {
            let choice = |decision: &Decision| match decision {
                Decision::Choice(choice) => *choice,
                _ => 0,
            };
            let choices: Vec<u32> = decisions.iter().map(choice).collect();
            return env.step(Actions::Discrete(&choices), step.buffers());
        }
        let targets = decisions.iter().zip(weights.chunks_exact(env.num_symbols()));
        let targets: Vec<Target<'_>> = targets
            .map(|(decision, weights)| match decision {
                Decision::Weights => Target::Positions(weights),
                _ => Target::Hold,
            })
            .collect();
        env.step_targets(&targets, step.buffers())
    }
}

/// The positions that rules choose from where positions are continuous.
fn positions(env: &TableEnv) -> [f64; 3] {
    let actions = &env.config().actions;
    [actions.low, 0.0_f64.clamp(actions.low, actions.high), actions.high]
}
