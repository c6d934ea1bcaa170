//! The rules by hand-made examples.

use super::*;
use crate::BaselineName as Baseline;
use crate::actions::Actions;
use crate::stocks::synthetic::panel;
use crate::stocks::{Bar, SymbolBars, Target};
use datasets::Date;
use datasets::corporate_action::{CorporateAction, Kind};

/// Two symbols over four days, 2024-01-01 to 2024-01-04: A is split 2 for 1 on the third and pays 0.10 on the
/// fourth, B has no bar from the third on.
fn two() -> PanelSource {
    let day = |i: i32| Date(19_723 + i);
    let bars = |symbol: &str, closes: &[f64]| SymbolBars {
        symbol: symbol.to_owned(),
        bars: closes
            .iter()
            .enumerate()
            .map(|(i, &close)| Bar {
                date: day(i as i32),
                open: close - 0.5,
                close,
                adjusted_close: f64::NAN,
                volume: 1000.0,
            })
            .collect(),
    };
    let action = |date, kind, ratio, amount| CorporateAction {
        symbol: "A".to_owned(),
        date,
        kind,
        ratio,
        amount,
        new_symbol: String::new(),
        origin: "config".to_owned(),
    };
    PanelSource {
        name: "market".to_owned(),
        bars: vec![bars("A", &[10.0, 11.0, 6.0, 6.6]), bars("B", &[20.0, 19.0])],
        actions: vec![
            action(day(2), Kind::Split, 2.0, f64::NAN),
            action(day(3), Kind::CashDividend, f64::NAN, 0.1),
        ],
        ..PanelSource::default()
    }
}

fn example() -> StocksConfig {
    let mut config = StocksConfig {
        capital: 1000.0,
        rate: 0.0365,
        test_fraction: 1.0,
        ..StocksConfig::default()
    };
    config.fills.per_share = 0.01;
    config.delisting.after = 2;
    config.delisting.haircut = 0.5;
    config
}

fn near(ours: f64, theirs: f64) {
    assert!(
        (ours - theirs).abs() < 1e-9 * theirs.abs().max(1.0),
        "{ours} instead of {theirs}"
    );
}

#[test]
fn the_worked_example() {
    let mut env = env(&two(), &example(), Split::Test, 1);
    assert_eq!(env.date(0).to_string(), "2024-01-01");
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let day = 0.0001_f64.exp();

    // 50 shares of A at 10 and 15 of B at 20: 800, with 0.65 of commission and 0.80 of spread.
    env.step(Actions::Continuous(&[0.5, 0.3]), out.buffers()).unwrap();
    let mut cash = (1000.0 - 800.0 - 0.65 - 0.80) * day;
    let ledger = env.ledger(0);
    assert_eq!(env.held(0), [50.0, 15.0]);
    near(ledger.commission, 0.65);
    near(ledger.spread_cost, 0.80);
    near(ledger.cash, cash);
    near(ledger.nav, cash + 50.0 * 11.0 + 15.0 * 19.0);
    assert_eq!(format!("{:.4}", ledger.nav), "1033.5699");
    // To sell all: a cent a share, and a thousandth of the value.
    near(ledger.closing_cost, 0.65 + 0.001 * (50.0 * 11.0 + 15.0 * 19.0));

    // A is split; B is frozen at 19.
    env.step_targets(&[Target::Hold], out.buffers()).unwrap();
    cash *= day;
    assert_eq!(env.held(0), [100.0, 15.0]);
    near(env.ledger(0).nav, cash + 100.0 * 6.0 + 15.0 * 19.0);
    assert_eq!(format!("{:.4}", env.ledger(0).nav), "1083.5897");

    // A pays 0.10; B, two days without a bar, is settled at half its last price.
    env.step_targets(&[Target::Hold], out.buffers()).unwrap();
    cash = cash * day + 100.0 * 0.1 + 15.0 * 19.0 * 0.5;
    let ledger = env.final_ledger(0).unwrap();
    near(ledger.cash, cash);
    near(ledger.nav, cash + 100.0 * 6.6);
    near(ledger.dividends, 10.0);
    near(ledger.delisting_loss, 142.5);
    assert_eq!((ledger.settlements, ledger.positions, ledger.trades), (1, 1, 2));
    assert_eq!(format!("{:.4}", ledger.nav), "1011.1096");
    assert!(out.truncated[0] && !out.terminated[0]);
}

#[test]
fn the_next_open_fills_what_the_close_decides() {
    let mut config = example();
    config.fills.at = FillAt::NextOpen;
    let mut env = env(&two(), &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    env.step(Actions::Continuous(&[0.5, 0.3]), out.buffers()).unwrap();
    // Sized at the closes of 10 and 20, filled at the opens of 10.5 and 18.5; all of the cash has earned the
    // interest of the day.
    assert_eq!(env.held(0), [50.0, 15.0]);
    let (value, commission) = (50.0 * 10.5 + 15.0 * 18.5, 0.65);
    near(
        env.ledger(0).cash,
        1000.0 * 0.0001_f64.exp() - value * 1.001 - commission,
    );
    // An order over a split is of as many more shares, and B, which has no bar, keeps its position.
    env.step(Actions::Continuous(&[0.25, 0.0]), out.buffers()).unwrap();
    let target = (0.25 * (env.ledger(0).nav)).floor();
    assert!(target > 0.0);
    assert_eq!(env.held(0)[1], 15.0);
    assert_eq!(env.held(0)[0] % 2.0, 0.0);
    assert_eq!(env.ledger(0).refused, 1);
}

#[test]
fn short_positions_pay_for_what_they_borrow() {
    let mut config = example();
    config.actions.short = true;
    config.fills.per_share = 0.0;
    config.fills.basis_points = 0.0;
    config.margin.borrow = 0.365;
    let mut env = env(&two(), &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    // 50 shares of A sold at 10: 1,500 of cash, of which 500 are owed in shares, at 0.1 % a day.
    env.step(Actions::Continuous(&[-0.5, 0.0]), out.buffers()).unwrap();
    assert_eq!(env.held(0), [-50.0, 0.0]);
    near(env.ledger(0).borrow_cost, 0.5);
    near(env.ledger(0).cash, 1500.0 * 0.0001_f64.exp() - 0.5);
    near(env.ledger(0).net, -550.0);
    env.step_targets(&[Target::Hold], out.buffers()).unwrap();
    env.step_targets(&[Target::Hold], out.buffers()).unwrap();
    let ledger = env.final_ledger(0).unwrap();
    near(ledger.dividends, -10.0);
    near(ledger.borrow_cost, 0.5 + 0.55 + 0.6);
    near(env.final_weights(0)[0], -660.0 / ledger.nav);
}

#[test]
fn cash_is_shared_by_one_factor() {
    let mut config = example();
    config.fills.per_share = 0.0;
    config.fills.basis_points = 100.0;
    let mut env = env(&two(), &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    // Half and half would be 50 and 25 shares, 1,010 with the costs: 0.990 of each is 49 and 24.
    env.step(Actions::Continuous(&[0.9, 0.9]), out.buffers()).unwrap();
    assert_eq!(env.held(0), [49.0, 24.0]);
    assert_eq!(env.ledger(0).reduced, 2);
}

#[test]
fn ruin_terminates() {
    let mut source = two();
    source.bars[0].bars[1].close = 1.0;
    let mut config = example();
    config.ruin = 0.5;
    let mut env = env(&source, &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    env.step(Actions::Continuous(&[1.0, 0.0]), out.buffers()).unwrap();
    assert_eq!((out.terminated[0], out.truncated[0]), (true, false));
    assert!(env.final_ledger(0).unwrap().nav < 500.0);
    // The next episode has begun.
    assert_eq!((env.ledger(0).nav, env.ledger(0).step), (1000.0, 0));
}

#[test]
fn baselines() {
    let config = StocksConfig {
        test_fraction: 1.0,
        ..StocksConfig::default()
    };
    let source = panel(80, 10, 1, 2);
    let play = |baseline: Baseline| {
        let mut env = env(&source, &config, Split::Test, 1);
        let mut out = Step::new(env.spec(), 1);
        env.reset(out.buffers());
        let mut shares = Vec::new();
        for _ in 0..env.test_steps(0) {
            env.step_baseline(baseline, out.buffers());
            shares.push(env.held(0).to_vec());
        }
        shares.pop();
        (shares, env.final_ledger(0).unwrap(), env.final_weights(0).to_vec())
    };
    let (_, cash, _) = play(Baseline::Cash);
    near(cash.nav, config.capital + cash.interest);
    assert!(cash.interest > 0.0 && cash.traded_value == 0.0);
    let (held, ledger, _) = play(Baseline::EqualWeightHeld);
    assert!(held.windows(2).all(|pair| pair[0] == pair[1]) && held[0].iter().all(|shares| *shares > 0.0));
    assert_eq!(ledger.trades, 10);
    let (_, ledger, weights) = play(Baseline::EqualWeight);
    assert!(ledger.trades > 300, "{ledger:?}");
    assert!(weights.iter().all(|weight| (weight - 0.1).abs() < 0.02), "{weights:?}");
    let (a, b) = (play(Baseline::Random), play(Baseline::Random));
    assert_eq!(a, b);
    assert!(a.1.traded_value > ledger.traded_value);
    assert_eq!(
        crate::stocks::BASELINES.map(Baseline::name),
        ["cash", "equal_weight_held", "equal_weight", "random"]
    );
}

/// The definitions of the quantities, on the example's first step.
#[test]
fn quantities_of_rewards() {
    let expected: [(&str, f64); 21] = {
        let day = 0.0001_f64.exp();
        let nav = 198.55 * day + 835.0;
        let simple = nav / 1000.0 - 1.0;
        [
            ("return", simple),
            ("excess", simple - (day - 1.0)),
            ("log_return", (nav / 1000.0).ln()),
            ("risk_free", day - 1.0),
            ("market_return", 0.5 * (0.1 - 0.05)),
            ("nav", nav / 1000.0),
            ("drawdown", 0.0),
            ("drawdown_increase", 0.0),
            ("turnover", 0.8),
            ("costs", 0.00145),
            ("interest", 0.19855 * (day - 1.0)),
            ("borrow", 0.0),
            ("dividends", 0.0),
            ("gross", 0.835),
            ("net", 0.835),
            ("concentration", 0.55 * 0.55 + 0.285 * 0.285),
            ("positions", 2.0),
            ("delisted", 0.0),
            ("liquidated", 0.0),
            ("days", 1.0),
            ("steps", 1.0),
        ]
    };
    for ((name, value), (known, _)) in expected.into_iter().zip(crate::stocks::QUANTITIES) {
        assert_eq!(name, known);
        let mut config = example();
        config.reward.scale = 1.0;
        config.reward.expression = name.to_owned();
        let mut env = env(&two(), &config, Split::Test, 1);
        let mut out = Step::new(env.spec(), 1);
        env.reset(out.buffers());
        env.step(Actions::Continuous(&[0.5, 0.3]), out.buffers()).unwrap();
        let reward = f64::from(out.reward[0]);
        assert!(
            (reward - value).abs() <= 1e-7 * value.abs().max(1e-3),
            "{name}: {reward} instead of {value}"
        );
    }
}

#[test]
fn adjusted_closes_count_dividends() {
    let mut source = two();
    source.actions.clear();
    for bar in &mut source.bars[0].bars {
        bar.adjusted_close = 0.5 * bar.close;
    }
    for bar in &mut source.bars[1].bars {
        bar.adjusted_close = bar.close;
    }
    let mut config = example();
    config.prices = crate::stocks::Prices::AdjustedClose;
    config.fills.at = FillAt::NextOpen;
    let env = env(&source, &config, Split::Test, 1);
    assert_eq!(env.marks(1), [5.5, 19.0]);
    assert_eq!(env.tables().opens(1), [5.25, 18.5]);
}

/// A symbol that becomes another is one share: the holding goes on, the dividend of the old name is paid, and
/// nothing is settled.
#[test]
fn a_change_of_symbol_is_no_delisting() {
    let mut source = two();
    let late = source.bars[0].bars.split_off(2);
    source.bars.push(SymbolBars {
        symbol: "NEW".to_owned(),
        bars: late,
    });
    source.bars.remove(1);
    // The dividend is paid after the change: on the new symbol.
    source.actions[1].symbol = "NEW".to_owned();
    source.actions.push(CorporateAction {
        kind: Kind::SymbolChange,
        new_symbol: "NEW".to_owned(),
        ..source.actions[0].clone()
    });
    let mut env = env(&source, &example(), Split::Test, 1);
    assert_eq!(env.symbols(0), ["NEW"]);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    env.step(Actions::Continuous(&[0.5]), out.buffers()).unwrap();
    for _ in 0..2 {
        env.step_targets(&[Target::Hold], out.buffers()).unwrap();
    }
    let ledger = env.final_ledger(0).unwrap();
    assert_eq!((ledger.positions, ledger.settlements), (1, 0));
    near(ledger.dividends, 10.0);
}

/// Of four symbols two are held: an outsider's score must exceed a holding's by more than the gap. A score
/// that is not a number is the lowest, and what does not trade is not bought or sold.
#[test]
fn scores_are_exchanged_beyond_the_gap() {
    let mut source = panel(60, 4, 1, 3);
    let last = source.bars[3].bars[3].date;
    source.bars[3].bars.retain(|bar| bar.date <= last);
    let mut config = StocksConfig {
        test_fraction: 1.0,
        ..StocksConfig::default()
    };
    config.fills.lot = 0;
    config.fills.basis_points = 0.0;
    config.actions.kind = StockActionKind::Scores;
    config.actions.largest = 0.5;
    config.actions.gap = 1.0;
    config.actions.no_trade = 0.2;
    let mut env = env(&source, &config, Split::Test, 1);
    let mut out = Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let mut held = |scores: [f32; 4]| {
        env.step(Actions::Continuous(&scores), out.buffers()).unwrap();
        let names = ["A", "B", "C", "D"];
        let held = names.iter().zip(env.held(0)).filter(|(_, shares)| **shares > 0.0);
        held.map(|(name, _)| *name).collect::<String>()
    };
    let nan = f32::NAN;
    assert_eq!(held([5.0, 7.0, 1.0, 1.0]), "AB");
    assert_eq!(held([5.0, 7.0, 6.0, 1.0]), "AB");
    assert_eq!(held([5.0, 7.0, 6.5, 6.1]), "BC");
    assert_eq!(held([9.0, -9.0, -9.0, 9.0]), "AD");
    // D does not trade any more; it is held until it counts as delisted.
    assert_eq!(held([0.0, 0.0, 9.0, 0.0]), "CD");
    assert_eq!(held([0.0, 5.0, 9.0, -9.0]), "CD");
    assert_eq!(held([nan, 5.0, nan, nan]), "BD");
    for _ in 0..config.delisting.after {
        held([nan; 4]);
    }
    assert_eq!(held([nan; 4]), "B");
    assert_eq!(held([1.0, -9.0, nan, 9.0]), "AB");
}
