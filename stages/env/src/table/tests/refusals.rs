//! Refusals, with place and remedy, and cases that are handled as documented.

use super::*;
use crate::open_options::Split;
use crate::worlds::{HeldOut, WorldSet};
use stages_core::ConfigProblem;

fn refused(source: &TableSource, config: &TableConfig, message: &str, hint: &str) {
    let err = build(source, config).unwrap_err();
    assert!(err.message.contains(message), "{} / {message}", err.message);
    let given = err.hint.unwrap_or_default();
    assert!(given.contains(hint), "{given} / {hint}");
}

#[test]
fn configurations() {
    let problem = |json: serde_json::Value| -> ConfigProblem {
        let config: TableConfig = serde_json::from_value(json.clone()).unwrap();
        let found = config
            .validate()
            .and_then(|()| config.validate_columns(["close", "signal", "pay"]));
        found.expect_err(&json.to_string())
    };
    for (json, field, message) in [
        (serde_json::json!({}), "price", "nothing says"),
        (
            serde_json::json!({ "price": "close", "reward_column": "pay" }),
            "price",
            "more than one",
        ),
        (serde_json::json!({ "price": "closed" }), "price", "no column `closed`"),
        (
            serde_json::json!({ "price": "close", "observe": ["signal", "x"] }),
            "observe[1]",
            "no column `x`",
        ),
        (
            serde_json::json!({ "price": "close", "observe": ["pay", "pay"] }),
            "observe[1]",
            "twice",
        ),
        (
            serde_json::json!({ "action_rewards": ["pay"] }),
            "action_rewards",
            "at least 2",
        ),
        (
            serde_json::json!({ "action_rewards": ["pay", "signal"], "actions": { "kind": "weights" } }),
            "actions",
            "are these columns",
        ),
        (
            serde_json::json!({ "price": "close", "actions": { "positions": [1] } }),
            "actions.positions",
            "at least 2",
        ),
        (
            serde_json::json!({ "price": "close", "actions": { "positions": [1, 1] } }),
            "actions.positions[1]",
            "twice",
        ),
        (
            serde_json::json!({ "price": "close", "actions": { "low": 0 } }),
            "actions.low",
            "continuous",
        ),
        (
            serde_json::json!({ "price": "close", "actions": { "kind": "continuous", "low": 2 } }),
            "actions.low",
            "not a range",
        ),
        (
            serde_json::json!({ "price": "close", "actions": { "kind": "weights", "gross": 0 } }),
            "actions.gross",
            "above 0",
        ),
        (
            serde_json::json!({ "price": "close", "costs": { "basis_points": -1 } }),
            "costs.basis_points",
            "between",
        ),
        (
            serde_json::json!({ "price": "close", "reward": "retrun" }),
            "reward",
            "unknown name `retrun`",
        ),
        (
            serde_json::json!({ "price": "close", "reward": "total" }),
            "reward",
            "unknown name `total`",
        ),
        (
            serde_json::json!({ "reward_column": "pay", "reward": "nav" }),
            "reward",
            "unknown name `nav`",
        ),
        (
            serde_json::json!({ "reward_column": "pay", "reward": { "risk_aversion": 1 } }),
            "reward",
            "its settings measure an account",
        ),
        (
            serde_json::json!({ "price": "close", "terminate": "drawdown" }),
            "terminate",
            "is a number, not a condition",
        ),
        (
            serde_json::json!({ "price": "close", "actions": { "kind": "weights" },
                "reward": "paid - signal" }),
            "reward",
            "a value for each symbol",
        ),
        (
            serde_json::json!({ "price": "close", "actions": { "kind": "weights" },
                "test": { "worlds": 1 } }),
            "test",
            "one world",
        ),
        (
            serde_json::json!({ "price": "close", "episode_length": 0 }),
            "episode_length",
            "at least 1",
        ),
    ] {
        let found = problem(json.clone());
        assert_eq!(found.field, field, "{json} {found:?}");
        assert!(found.message.contains(message), "{json} {found:?}");
    }
    let near = problem(serde_json::json!({ "price": "closed" }));
    assert!(near.hint.unwrap().starts_with("did you mean `close`?"));
    let config = TableConfig {
        price: "close".into(),
        ..TableConfig::default()
    };
    assert!(
        config
            .validate_columns(["close"])
            .unwrap_err()
            .message
            .contains("no column beside")
    );
}

#[test]
fn rows_that_contradict() {
    let close = [10.0, 11.0, 12.0, 13.0, 14.0];
    let signal = [1.0; 5];
    let source = one(&[("close", &close), ("signal", &signal)]);
    let config = whole(price());
    assert!(build(&source, &config).is_ok());
    let mut twice = source.clone();
    twice.symbols[0].times[2] = twice.symbols[0].times[1];
    refused(&twice, &config, "two rows of `A` at 2020-01-02", "keep one");
    let with = |column: usize, row: usize, value: f64| {
        let mut other = source.clone();
        other.symbols[0].values[column][row] = value;
        other
    };
    refused(
        &with(0, 3, 0.0),
        &config,
        "`close` of `A` at 2020-01-04 is 0, and a price",
        "reward_column",
    );
    refused(
        &with(1, 3, f64::INFINITY),
        &config,
        "`signal` of `A` at 2020-01-04 is inf",
        "leave the value out",
    );
    refused(
        &with(0, 3, f64::NAN),
        &config,
        "`close` of `A` has no value at 2020-01-04; so it is at 1 of 5",
        "gaps: drop",
    );
    let unknown = TableConfig {
        symbols: vec!["X".into()],
        ..config.clone()
    };
    refused(&source, &unknown, "no symbol `X`", "it holds A");
    let mut empty = source.clone();
    empty.symbols[0].values[1] = vec![f64::NAN; 5];
    refused(&empty, &config, "`signal` of `A` has no value in any row", "observe");
    let long = random(1, 200, 1);
    let mut gaps = long.clone();
    gaps.symbols[0].values[1][100..120].fill(f64::NAN);
    refused(
        &gaps,
        &config,
        "`signal` of `S0` has no value in 20 of 200 rows",
        "max_gaps: 0.1",
    );
}

/// A gap is dropped: a step goes from the row before to the row after. A missing signal shows the last one,
/// and rows before its first are not used.
#[test]
fn gaps_are_handled_as_documented() {
    let nan = f64::NAN;
    let source = one(&[
        ("close", &[10.0, 11.0, nan, 22.0, 22.0, 44.0]),
        ("signal", &[nan, 1.0, 2.0, nan, 3.0, 4.0]),
    ]);
    let config = whole(TableConfig {
        gaps: Gaps::Drop,
        costs: TableCosts { basis_points: 0.0 },
        ..price()
    });
    let mut env = opened(&source, &config, &OpenOptions::test(1, 0));
    let mut out = begun(&mut env);
    assert_eq!((env.snapshot(0), env.test_steps(0)), (1, 3));
    // Nothing is fitted without training rows: raw values.
    assert_eq!(out.obs[0], 1.0);
    env.step(crate::actions::Actions::Discrete(&[2]), out.buffers())
        .unwrap();
    near(env.ledger(0).nav, 2.0);
    // The row that was dropped had a signal, which is the last one known.
    assert_eq!(out.obs[0], 2.0);
}

#[test]
fn symbols_of_different_instants() {
    let mut source = random(2, 30, 1);
    source.symbols[1].times.remove(10);
    source.symbols[1].values.iter_mut().for_each(|values| {
        values.remove(10);
    });
    let panel = whole(TableConfig {
        actions: TableActions {
            kind: TableActionKind::Weights,
            ..TableActions::default()
        },
        ..price()
    });
    refused(
        &source,
        &panel,
        "`close` of `S1` has no value at 2020-01-11; so it is at 1 of 30",
        "gaps: drop",
    );
    let dropped = TableConfig {
        gaps: Gaps::Drop,
        ..panel
    };
    let built = build(&source, &dropped).unwrap();
    assert_eq!(from(&built, &OpenOptions::test(1, 0)).test_steps(0), 28);
    assert!(built.notes[0].starts_with("1 of 30 instants are left out"));
    // Each for itself, they need not match.
    let built = build(&source, &whole(price())).unwrap();
    let env = from(&built, &OpenOptions::test(2, 0));
    assert_eq!((env.test_steps(0), env.test_steps(1)), (29, 28));
}

/// A fraction is of all symbols' instants: the test dates are the same for each, and a symbol that ended
/// before them is trained on.
#[test]
fn symbols_are_split_by_the_same_dates() {
    let mut source = random(3, 200, 1);
    for symbol in &mut source.symbols[1..2] {
        symbol.times.truncate(100);
        symbol.values.iter_mut().for_each(|values| values.truncate(100));
    }
    let late = &mut source.symbols[2];
    late.times.drain(..120);
    late.values.iter_mut().for_each(|values| {
        values.drain(..120);
    });
    let config = TableConfig { purge: 5, ..price() };
    let built = build(&source, &config).unwrap();
    let spec: tables::Spec = serde_json::from_slice(&built.files[0].1).unwrap();
    let ranges: Vec<String> = spec
        .worlds
        .iter()
        .map(|world| {
            let date =
                |row: usize| source.symbols.iter().find(|s| s.symbol == world.name).unwrap().times[row];
            let text =
                |range: &crate::split::SnapshotRange| format!("{}..{}", date(range.first), date(range.last));
            let train: Vec<String> = world.splits.train.iter().map(text).collect();
            format!("{} {:?} {:?}", world.name, train, world.splits.test.as_ref().map(text))
        })
        .collect();
    assert_eq!(
        ranges,
        [
            "S0 [\"2020-01-01..2020-05-24\"] Some(\"2020-05-30..2020-07-18\")",
            "S1 [\"2020-01-01..2020-04-09\"] None",
            "S2 [\"2020-04-30..2020-05-24\"] Some(\"2020-05-30..2020-07-18\")",
        ]
    );
    assert_eq!(from(&built, &OpenOptions::test(1, 0)).evaluation_episodes(), 2);
    // Whole symbols can be held out.
    let by_symbol = TableConfig {
        test: Some(HeldOut {
            worlds: Some(WorldSet::Named(vec!["S0".into()])),
            ..HeldOut::default()
        }),
        ..price()
    };
    let spec: tables::Spec = serde_json::from_slice(&build(&source, &by_symbol).unwrap().files[0].1).unwrap();
    let trained: Vec<bool> = spec
        .worlds
        .iter()
        .map(|world| !world.splits.of(Split::Train).is_empty())
        .collect();
    assert_eq!(trained, [false, true, true]);
    let none = TableConfig {
        test: Some(HeldOut {
            from: Some("2030-01-01".parse().unwrap()),
            ..HeldOut::default()
        }),
        ..price()
    };
    refused(
        &source,
        &none,
        "no symbol has two rows in the test dates",
        "change `test`",
    );
}

#[test]
fn validation_within_the_test() {
    let config = TableConfig {
        validation: Some(HeldOut {
            from: Some("2020-06-20".parse().unwrap()),
            ..HeldOut::default()
        }),
        ..price()
    };
    let message = "validation dates 2020-06-20 to 2020-07-18 overlap the test dates 2020-05-30 to 2020-07-18";
    refused(&random(3, 200, 1), &config, message, "trained or selected on");
}
