//! Numbers by hand for each kind of action and each form of reward.

use super::*;
use crate::actions::Actions;
use crate::reward::RewardConfig;

const CLOSE: [f64; 5] = [100.0, 110.0, 99.0, 99.0, 108.9];
const SIGNAL: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];

fn of_return() -> RewardConfig {
    RewardConfig {
        expression: "return".to_owned(),
        scale: 1.0,
        ..RewardConfig::default()
    }
}

fn test_env(source: &TableSource, config: &TableConfig) -> TableEnv {
    opened(source, config, &OpenOptions::test(1, 0))
}

/// Half long at 100, the price rises to 110, a position of -1 at 110 and a fall of 10 %.
#[test]
fn positions_earn_the_change_of_the_price_less_costs() {
    let config = whole(TableConfig {
        actions: TableActions {
            kind: TableActionKind::Continuous,
            ..TableActions::default()
        },
        costs: TableCosts { basis_points: 100.0 },
        reward: of_return(),
        ..price()
    });
    let mut env = test_env(&one(&[("close", &CLOSE), ("signal", &SIGNAL)]), &config);
    assert_eq!(
        env.spec().observation,
        [
            "signal",
            "account.position",
            "account.net_asset_value",
            "account.drawdown"
        ]
    );
    let mut out = begun(&mut env);
    env.step(Actions::Continuous(&[0.5]), out.buffers()).unwrap();
    // 0.5 x 10 % less 1 % of 0.5.
    let first = 1.0 + 0.05 - 0.005;
    near(env.ledger(0).nav, first);
    assert_eq!(out.reward[0], 0.045_f32);
    let held = 0.5 * 1.1 / first;
    near(env.held(0)[0], held);
    near(env.ledger(0).closing_cost, first * 0.01 * held);
    assert_eq!(out.obs[1], held as f32);
    assert_eq!(out.obs[2], (10.0 * (first - 1.0)) as f32);
    assert_eq!(out.obs[3], 0.0);
    env.step(Actions::Continuous(&[-1.0]), out.buffers()).unwrap();
    let second = first * (1.0 + 0.1 - 0.01 * (1.0 + held));
    near(env.ledger(0).nav, second);
    near(env.ledger(0).costs, 0.005 + first * 0.01 * (1.0 + held));
    // The price stays: a short position of all the value at 99 is held on without a trade.
    let held = env.held(0)[0];
    near(held, -0.9 * first / second);
    env.step_targets(&[Target::Hold], out.buffers()).unwrap();
    near(env.ledger(0).nav, second);
    assert_eq!((out.reward[0], out.truncated[0]), (0.0, false));
    env.step(Actions::Continuous(&[7.0]), out.buffers()).unwrap();
    assert_eq!((out.terminated[0], out.truncated[0]), (false, true));
    // Beyond its bound: 1, which earns 10 %.
    let last = env.final_ledger(0).unwrap();
    near(last.nav, second * (1.0 + 0.1 - 0.01 * (1.0 - held)));
    assert_eq!((last.step, env.ledger(0).step, env.ledger(0).nav), (4, 0, 1.0));
}

#[test]
fn discrete_positions_are_those_of_the_list() {
    let config = whole(TableConfig {
        actions: TableActions {
            positions: vec![0.0, 2.0],
            ..TableActions::default()
        },
        costs: TableCosts { basis_points: 10.0 },
        reward: of_return(),
        ..price()
    });
    let mut env = test_env(&one(&[("close", &CLOSE), ("signal", &SIGNAL)]), &config);
    assert_eq!(env.spec().action_space.names(), ["position 0", "position 2"]);
    let mut out = begun(&mut env);
    env.step(Actions::Discrete(&[1]), out.buffers()).unwrap();
    near(env.ledger(0).nav, 1.0 + 2.0 * 0.1 - 0.001 * 2.0);
    // A choice beyond the space is the first.
    env.step(Actions::Discrete(&[9]), out.buffers()).unwrap();
    let held = 2.2 / 1.198;
    near(env.ledger(0).nav, 1.198 * (1.0 - 0.001 * held));
    assert_eq!(env.held(0), [0.0]);
}

#[test]
fn weights_are_of_all_symbols_of_an_instant() {
    let mut source = one(&[("close", &CLOSE), ("signal", &SIGNAL)]);
    source.symbols.push(SymbolRows {
        symbol: "B".to_owned(),
        times: days(5),
        values: vec![vec![10.0, 9.0, 9.0, 18.0, 18.0], vec![0.0; 5]],
    });
    let config = whole(TableConfig {
        actions: TableActions {
            kind: TableActionKind::Weights,
            ..TableActions::default()
        },
        costs: TableCosts { basis_points: 0.0 },
        reward: of_return(),
        ..price()
    });
    let mut env = test_env(&source, &config);
    assert_eq!(
        env.spec().observation,
        [
            "A.signal",
            "B.signal",
            "A.position",
            "B.position",
            "account.net_asset_value",
            "account.drawdown"
        ]
    );
    assert_eq!(env.spec().action_space.names(), ["A", "B"]);
    let mut out = begun(&mut env);
    env.step(Actions::Continuous(&[0.5, -0.25]), out.buffers()).unwrap();
    near(env.ledger(0).nav, 1.0 + 0.5 * 0.1 + 0.25 * 0.1);
    // A sum of 2 is scaled to `gross`: half each; -10 % and 0.
    let before = env.ledger(0).nav;
    env.step(Actions::Continuous(&[1.0, 1.0]), out.buffers()).unwrap();
    near(env.ledger(0).nav, before * 0.95);
    near(env.held(0)[0], 0.45 / 0.95);
    near(env.held(0)[1], 0.5 / 0.95);
    assert_eq!(out.obs[3], (0.5 / 0.95) as f32);
}

#[test]
fn a_reward_column_pays_at_the_next_row() {
    let pay = [100.0, 1.0, -2.0, 4.0, 0.5];
    let config = whole(TableConfig {
        reward_column: "pay".to_owned(),
        costs: TableCosts { basis_points: 1000.0 },
        ..TableConfig::default()
    });
    let mut env = test_env(&one(&[("pay", &pay), ("signal", &SIGNAL)]), &config);
    assert_eq!(env.spec().observation, ["signal", "account.position"]);
    let mut out = begun(&mut env);
    let mut rewards = Vec::new();
    for choice in [2, 0, 0, 1] {
        env.step(Actions::Discrete(&[choice]), out.buffers()).unwrap();
        rewards.push(out.reward[0]);
    }
    // Position 1 from flat; -1 from 1; -1 again; 0.
    assert_eq!(rewards, [1.0 - 0.1, 2.0 - 0.2, -4.0, -0.1]);
    near(env.final_ledger(0).unwrap().total, 0.9 + 1.8 - 4.0 - 0.1);
    near(env.final_ledger(0).unwrap().turnover, 4.0);
}

#[test]
fn reward_columns_pay_choices() {
    let (stay, go) = ([9.0, 1.0, 2.0, 3.0, 4.0], [9.0, -1.0, -2.0, -3.0, -4.0]);
    let config = whole(TableConfig {
        action_rewards: vec!["stay".to_owned(), "go".to_owned()],
        costs: TableCosts { basis_points: 5000.0 },
        terminate: "total < -3".to_owned(),
        ..TableConfig::default()
    });
    let source = one(&[("stay", &stay), ("go", &go), ("signal", &SIGNAL)]);
    let mut env = test_env(&source, &config);
    assert_eq!(
        env.spec().observation,
        ["signal", "account.choice.stay", "account.choice.go"]
    );
    assert_eq!(env.spec().action_space.names(), ["stay", "go"]);
    let mut out = begun(&mut env);
    assert_eq!(out.obs[1..], [0.0, 0.0]);
    let mut rewards = Vec::new();
    for (choice, shown) in [(1, [0.0, 1.0]), (0, [1.0, 0.0]), (1, [0.0, 1.0])] {
        env.step(Actions::Discrete(&[choice]), out.buffers()).unwrap();
        rewards.push(out.reward[0]);
        let last = if out.terminated[0] { &out.final_obs } else { &out.obs };
        assert_eq!(last[1..], shown);
    }
    // The first choice is no change: -1; then 2 - 0.5; then -3 - 0.5, in all -3.
    assert_eq!(rewards, [-1.0, 1.5, -3.5]);
    assert!(!out.terminated[0]);
    env.step(Actions::Discrete(&[1]), out.buffers()).unwrap();
    // The last step both ends the rows and is terminal: it terminates.
    assert_eq!(
        (out.reward[0], out.terminated[0], out.truncated[0]),
        (-4.0, true, false)
    );
}

/// Columns in an expression are of the row that the step leads to.
#[test]
fn expressions_name_columns_and_quantities() {
    let config = whole(TableConfig {
        reward: serde_json::from_value::<Wrapped>(
            serde_json::json!({ "reward": "paid - 0.01 * signal * turnover" }),
        )
        .unwrap()
        .reward,
        terminate: "drawdown > 0.05 and steps >= 2".to_owned(),
        costs: TableCosts { basis_points: 0.0 },
        ..price()
    });
    let mut env = test_env(&one(&[("close", &CLOSE), ("signal", &SIGNAL)]), &config);
    let mut out = begun(&mut env);
    env.step(Actions::Discrete(&[2]), out.buffers()).unwrap();
    assert_eq!(out.reward[0], (0.1 - 0.01 * 2.0) as f32);
    env.step(Actions::Discrete(&[2]), out.buffers()).unwrap();
    assert_eq!((out.reward[0], out.terminated[0]), (-0.1, true));
    assert_eq!(env.final_ledger(0).unwrap().step, 2);
}

#[derive(serde::Deserialize)]
struct Wrapped {
    #[serde(deserialize_with = "crate::reward::deserialize")]
    reward: RewardConfig,
}

/// Without `reward:`, the mean-variance utility times 100, as in `env/stocks`.
#[test]
fn the_default_reward_of_a_price() {
    let config = whole(TableConfig {
        costs: TableCosts { basis_points: 0.0 },
        ..price()
    });
    let mut env = test_env(&one(&[("close", &CLOSE), ("signal", &SIGNAL)]), &config);
    let mut out = begun(&mut env);
    env.step(Actions::Discrete(&[0]), out.buffers()).unwrap();
    assert_eq!(out.reward[0], (100.0_f64 * (-0.1 - 5.0 * 0.01)) as f32);
}

#[test]
fn ruin_terminates() {
    let config = whole(TableConfig {
        actions: TableActions {
            positions: vec![0.0, 9.0],
            ..TableActions::default()
        },
        ..price()
    });
    let mut env = test_env(
        &one(&[("close", &[100.0, 90.0, 95.0, 99.0]), ("signal", &SIGNAL[..4])]),
        &config,
    );
    let mut out = begun(&mut env);
    env.step(Actions::Discrete(&[1]), out.buffers()).unwrap();
    assert_eq!((out.terminated[0], out.truncated[0]), (true, false));
    near(env.final_ledger(0).unwrap().nav, 1.0 - 0.9 - 0.009);
}
