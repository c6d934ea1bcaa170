//! FinRL's environment, against a trajectory of FinRL itself (tests/reference/README.md).

use super::*;
use crate::actions::Actions;
use crate::batch::{BatchEnv, Step};
use crate::feature_columns::FeatureColumn;
use crate::stocks::{Bar, Finrl, Rules, SymbolBars, SymbolFeature, Target};
use datasets::{Date, SnapshotTime};
use std::collections::HashMap;

const FEATURES: &str = include_str!("../../../../../tests/reference/finrl_features.csv");
const TRAJECTORY: &str = include_str!("../../../../../tests/reference/finrl_env_trajectory.csv");
const CONFIG: &str = include_str!("../../../../../tests/reference/finrl_env_config.json");

struct Table(HashMap<String, Vec<String>>);

impl Table {
    fn read(text: &str) -> Self {
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().unwrap().split(',').collect();
        let mut columns: HashMap<String, Vec<String>> = HashMap::new();
        for line in lines {
            for (name, cell) in names.iter().zip(line.split(',')) {
                columns.entry((*name).to_owned()).or_default().push(cell.to_owned());
            }
        }
        Self(columns)
    }

    fn numbers(&self, name: &str) -> Vec<f64> {
        self.0[name].iter().map(|cell| cell.parse().unwrap()).collect()
    }
}

/// FinRL's configuration: ours, the tickers and the indicators.
fn configuration() -> (StocksConfig, Vec<String>, Vec<String>) {
    let json: serde_json::Value = serde_json::from_str(CONFIG).unwrap();
    let list = |name: &str| -> Vec<String> { serde_json::from_value(json[name].clone()).unwrap() };
    let number = |name: &str| json[name].as_f64().unwrap();
    let config = StocksConfig {
        rules: Rules::Finrl,
        capital: number("initial_amount"),
        finrl: Finrl {
            hmax: number("hmax") as u32,
            buy_cost_pct: number("buy_cost_pct"),
            sell_cost_pct: number("sell_cost_pct"),
            reward_scaling: number("reward_scaling"),
            turbulence_threshold: Some(number("turbulence_threshold")),
            ..Finrl::default()
        },
        test_fraction: 1.0,
        ..StocksConfig::default()
    };
    (config, list("tickers"), list("tech_indicator_list"))
}

/// The reference's features as a panel; the gaps that FinRL fills are gaps again, and turbulence is a feature
/// by date or, as in FinRL's table, by symbol.
fn panel(turbulence_by_symbol: bool) -> PanelSource {
    let (_, tickers, indicators) = configuration();
    let table = Table::read(FEATURES);
    let close = table.numbers("close");
    let dates: Vec<Date> = table.0["date"].iter().map(|text| text.parse().unwrap()).collect();
    let rows = |ticker: &str| -> Vec<usize> {
        let of = &table.0["tic"];
        (0..of.len()).filter(|&row| of[row] == ticker).collect()
    };
    let column = |name: &str| SymbolFeature {
        name: name.to_owned(),
        values: tickers
            .iter()
            .map(|ticker| {
                let values = table.numbers(name);
                let gap = |at: usize| at == 0 && name.starts_with("boll_");
                let of =
                    |(at, row): (usize, usize)| (dates[row], if gap(at) { f64::NAN } else { values[row] });
                rows(ticker).into_iter().enumerate().map(of).collect()
            })
            .collect(),
    };
    let mut source = PanelSource {
        name: "market".to_owned(),
        bars: tickers
            .iter()
            .map(|ticker| SymbolBars {
                symbol: ticker.clone(),
                bars: rows(ticker)
                    .into_iter()
                    .map(|row| Bar {
                        date: dates[row],
                        open: f64::NAN,
                        close: close[row],
                        adjusted_close: f64::NAN,
                        volume: f64::NAN,
                    })
                    .collect(),
            })
            .collect(),
        symbol_features: indicators.iter().map(|name| column(name)).collect(),
        ..PanelSource::default()
    };
    let turbulence = column("turbulence");
    if turbulence_by_symbol {
        source.symbol_features.push(turbulence);
    } else {
        let by_date = turbulence.values[0].iter();
        source.features.push(FeatureColumn {
            name: "turbulence".to_owned(),
            values: by_date
                .map(|&(date, value)| (SnapshotTime::of_day(date), value))
                .collect(),
        });
    }
    source
}

/// Two numbers that agree as far as the reference is printed.
fn agree(what: &str, step: usize, ours: f64, theirs: f64) {
    assert!(
        (ours - theirs).abs() <= 1e-12 * theirs.abs().max(1.0),
        "{what} of step {step}: {ours} instead of {theirs}"
    );
}

#[test]
fn trajectory_to_the_number() {
    let (config, tickers, indicators) = configuration();
    let trajectory = Table::read(TRAJECTORY);
    let n = tickers.len();
    let of_each = |what: &str| -> Vec<Vec<f64>> {
        let names = tickers.iter().map(|ticker| format!("{what}_{ticker}"));
        names.map(|name| trajectory.numbers(&name)).collect()
    };
    let (actions, executed, held) = (of_each("action"), of_each("executed_shares"), of_each("shares_after"));
    let [rewards, cash, costs, trades, assets, turbulence] = [
        "reward",
        "cash_after",
        "cum_cost",
        "cum_trades",
        "total_asset_after",
        "turbulence_after",
    ]
    .map(|name| trajectory.numbers(name));
    let table = Table::read(FEATURES);
    for by_symbol in [false, true] {
        let mut env = env(&panel(by_symbol), &config, Split::Test, 1);
        let steps = rewards.len();
        assert_eq!(env.test_steps(0), steps);
        let mut out = Step::new(env.spec(), 1);
        env.reset(out.buffers());
        // The state of the first date: cash, closes, no shares, and the indicators as FinRL filled them.
        let mut state = vec![config.capital as f32];
        state.extend(table.numbers("close")[..n].iter().map(|&close| close as f32));
        state.extend(vec![0.0; n]);
        for name in &indicators {
            state.extend(table.numbers(name)[..n].iter().map(|&value| value as f32));
        }
        assert_eq!(out.obs, state);
        let mut exits = 0;
        for step in 0..steps {
            let action: Vec<f32> = actions.iter().map(|column| column[step] as f32).collect();
            let before = env.held(0).to_vec();
            env.step(Actions::Continuous(&action), out.buffers()).unwrap();
            let is_last = step + 1 == steps;
            assert_eq!((out.terminated[0], out.truncated[0]), (is_last, false), "step {step}");
            agree(
                "reward",
                step,
                f64::from(out.reward[0]),
                f64::from(rewards[step] as f32),
            );
            let ledger = if is_last {
                env.final_ledger(0).unwrap()
            } else {
                env.ledger(0)
            };
            agree("cash", step, ledger.cash, cash[step]);
            agree("cost", step, ledger.costs(), costs[step]);
            agree("assets", step, ledger.nav, assets[step]);
            assert_eq!(f64::from(ledger.trades), trades[step], "trades of step {step}");
            if is_last {
                // Its reward is the one before, once more.
                assert_eq!(rewards[step], rewards[step - 1]);
                assert_eq!(out.final_obs[0], cash[step] as f32);
                continue;
            }
            exits += usize::from(turbulence[step] >= config.finrl.turbulence_threshold.unwrap());
            for i in 0..n {
                assert_eq!(env.held(0)[i], held[i][step], "{} of step {step}", tickers[i]);
                assert_eq!(
                    env.held(0)[i] - before[i],
                    executed[i][step],
                    "{} of step {step}",
                    tickers[i]
                );
                assert_eq!(out.obs[1 + n + i], held[i][step] as f32);
            }
        }
        assert!(exits > 2, "the turbulence exit was not tried");
    }
}

#[test]
fn refusals_name_the_remedy() {
    let (config, ..) = configuration();
    let refused = |change: &dyn Fn(&mut PanelSource, &mut StocksConfig)| {
        let (mut source, mut config) = (panel(false), config.clone());
        change(&mut source, &mut config);
        build(&[source], &config).unwrap_err()
    };
    let gap = refused(&|source, _| {
        source.bars[2].bars.remove(7);
    });
    assert!(gap.message.contains("`CCC` has no bar on 2019-01-11"), "{gap}");
    assert!(gap.hint.unwrap().contains("hindsight"));
    let none = refused(&|source, _| source.features.clear());
    assert!(none.message.contains("no feature `turbulence`"), "{none}");
    let by_date = refused(&|source, _| {
        source.features.push(FeatureColumn {
            name: "vix".to_owned(),
            ..source.features[0].clone()
        })
    });
    assert!(by_date.message.contains("`vix`"), "{by_date}");
    let setting = refused(&|_, config| config.fills.basis_points = 1.0);
    assert!(setting.message.contains("no meaning"), "{setting}");
}

/// Weights under FinRL's rules are whole shares, and cash pays for them.
#[test]
fn fixed_weights_trade_by_the_same_rules() {
    let (config, ..) = configuration();
    let mut env = env(&panel(false), &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    env.step_targets(&[Target::Weights(&[0.25; 4])], out.buffers()).unwrap();
    let ledger = env.ledger(0);
    assert!(ledger.cash > 0.0 && ledger.cash < 0.01 * config.capital, "{ledger:?}");
    let held = env.held(0).to_vec();
    assert!(held.iter().all(|shares| *shares > 0.0 && shares.fract() == 0.0));
    env.step_targets(&[Target::Hold], out.buffers()).unwrap();
    assert_eq!(env.held(0), held);
    assert!(env.step_targets(&[Target::Weights(&[0.5; 3])], out.buffers()).is_err());
}
