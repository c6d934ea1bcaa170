//! A second, plain implementation: one episode at a time, from the rows of the source.

use super::*;
use crate::actions::Actions;

/// An account, and what the last step moved.
struct Slow {
    nav: f64,
    total: f64,
    held: Vec<f64>,
    choice: Option<usize>,
    costs: f64,
}

impl Slow {
    fn new(symbols: usize) -> Self {
        Self {
            nav: 1.0,
            total: 0.0,
            held: vec![0.0; symbols],
            choice: None,
            costs: 0.0,
        }
    }

    /// One step on prices before and after; returns what it paid.
    fn trade(&mut self, wanted: &[f64], before: &[f64], after: &[f64], basis_points: f64) -> f64 {
        // In money: cash and values, as a broker would write them.
        let values: Vec<f64> = self.held.iter().map(|held| held * self.nav).collect();
        let mut cash = self.nav - values.iter().sum::<f64>();
        let mut later = Vec::new();
        let mut costs = 0.0;
        for i in 0..wanted.len() {
            let to = wanted[i] * self.nav;
            cash -= to - values[i];
            costs += (to - values[i]).abs() * basis_points / 10_000.0;
            later.push(to / before[i] * after[i]);
        }
        let nav = cash - costs + later.iter().sum::<f64>();
        self.held = later.iter().map(|value| value / nav).collect();
        let paid = nav / self.nav - 1.0;
        self.nav = nav;
        self.costs += costs;
        paid
    }

    fn pay(&mut self, wanted: &[f64], after: &[f64], basis_points: f64) -> f64 {
        let mut paid = 0.0;
        for i in 0..wanted.len() {
            paid += wanted[i] * after[i];
            let costs = (wanted[i] - self.held[i]).abs() * basis_points / 10_000.0;
            paid -= costs;
            self.costs += costs;
        }
        self.held = wanted.to_vec();
        self.total += paid;
        paid
    }

    fn choose(&mut self, choice: usize, after: &[f64], basis_points: f64) -> f64 {
        let mut paid = after[choice];
        if self.choice.is_some_and(|before| before != choice) {
            paid -= basis_points / 10_000.0;
            self.costs += basis_points / 10_000.0;
        }
        self.choice = Some(choice);
        self.total += paid;
        paid
    }
}

fn value(source: &TableSource, symbol: usize, column: &str, row: usize) -> f64 {
    let column = source.columns.iter().position(|name| name == column).unwrap();
    source.symbols[symbol].values[column][row]
}

fn prices(env: &TableEnv, source: &TableSource, world: usize, column: &str, row: usize) -> Vec<f64> {
    match env.num_symbols() {
        1 => vec![value(source, world, column, row)],
        n => (0..n).map(|symbol| value(source, symbol, column, row)).collect(),
    }
}

/// Steps by random actions over all test rows; accounts must agree to 1e-12, and rewards in single precision.
fn agree(config: TableConfig, symbols: usize) {
    let config = whole(TableConfig {
        costs: TableCosts { basis_points: 7.0 },
        reward: match config.price.is_empty() {
            true => config.reward.clone(),
            false => crate::reward::RewardConfig {
                expression: "return".to_owned(),
                scale: 1.0,
                ..Default::default()
            },
        },
        ruin: 0.0,
        ..config
    });
    let source = random(symbols, 60, 5);
    let built = build(&source, &config).unwrap();
    let one = from(&built, &OpenOptions::test(1, 0));
    let worlds = one.evaluation_episodes();
    assert_eq!(worlds, if config.is_panel() { 1 } else { symbols });
    let mut env = from(&built, &OpenOptions::test(worlds, 0));
    let mut out = begun(&mut env);
    let n = env.num_symbols();
    let mut slow: Vec<Slow> = (0..worlds).map(|_| Slow::new(n)).collect();
    let mut random = Random::new(&[3]);
    let (mean, deviation): (Vec<f64>, Vec<f64>) = (0..symbols)
        .map(|symbol| {
            let all: Vec<f64> = (0..60).map(|row| value(&source, symbol, "signal", row)).collect();
            let mean = all.iter().sum::<f64>() / 60.0;
            let square = all.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 60.0;
            (mean, square.sqrt())
        })
        .unzip();
    assert!(mean.iter().chain(&deviation).all(|value| value.is_finite()));
    for row in 0..59 {
        let choices: Vec<u32> = (0..worlds).map(|_| random.below(3) as u32).collect();
        let reals: Vec<f32> = (0..worlds * n).map(|_| 1.5 * random.normal() as f32).collect();
        let discrete = config.actions.kind == TableActionKind::Discrete;
        match discrete {
            true => env.step(Actions::Discrete(&choices), out.buffers()).unwrap(),
            false => env.step(Actions::Continuous(&reals), out.buffers()).unwrap(),
        }
        for (world, slow) in slow.iter_mut().enumerate() {
            let mut wanted: Vec<f64> = match discrete {
                true => vec![f64::from(choices[world]) - 1.0],
                false => reals[world * n..(world + 1) * n]
                    .iter()
                    .map(|real| f64::from(real.clamp(config.actions.low as f32, config.actions.high as f32)))
                    .collect(),
            };
            let gross: f64 = wanted.iter().map(|w| w.abs()).sum();
            if config.is_panel() && gross > 1.0 {
                wanted.iter_mut().for_each(|w| *w /= gross);
            }
            let at = |column: &str, row| prices(&env, &source, world, column, row);
            let paid = if !config.action_rewards.is_empty() {
                let after: Vec<f64> = config
                    .action_rewards
                    .iter()
                    .map(|column| value(&source, world, column, row + 1))
                    .collect();
                slow.choose(choices[world] as usize, &after, 7.0)
            } else if config.price.is_empty() {
                slow.pay(&wanted, &at("pay", row + 1), 7.0)
            } else {
                slow.trade(&wanted, &at("close", row), &at("close", row + 1), 7.0)
            };
            let expected = match config.reward.expression.as_str() {
                "" | "return" => paid,
                // `paid + other * days + 0.5 * abs(position)`, below.
                _ => paid + value(&source, world, "other", row + 1) + 0.5 * wanted[0].abs(),
            };
            assert!((f64::from(out.reward[world]) - expected).abs() < 1e-6 * (1.0 + expected.abs()));
            let ended = row == 58;
            assert_eq!((out.truncated[world], out.terminated[world]), (ended, false));
            let ledger = match ended {
                true => env.final_ledger(world).unwrap(),
                false => env.ledger(world),
            };
            near(ledger.nav, slow.nav);
            near(ledger.costs, slow.costs);
            if config.price.is_empty() {
                near(ledger.total, slow.total);
            }
            let held = if ended {
                env.final_weights(world)
            } else {
                env.held(world)
            };
            held.iter().zip(&slow.held).for_each(|(held, slow)| near(*held, *slow));
            assert_eq!(ledger.time, source.symbols[0].times[row + 1]);
        }
    }
}

fn kind(kind: TableActionKind) -> TableActions {
    TableActions {
        kind,
        ..TableActions::default()
    }
}

#[test]
fn prices_and_positions_agree() {
    for actions in [
        TableActionKind::Discrete,
        TableActionKind::Continuous,
        TableActionKind::Weights,
    ] {
        agree(
            TableConfig {
                actions: kind(actions),
                ..price()
            },
            3,
        );
    }
    agree(
        TableConfig {
            actions: TableActions {
                kind: TableActionKind::Weights,
                low: 0.0,
                ..TableActions::default()
            },
            ..price()
        },
        4,
    );
}

#[test]
fn reward_columns_agree() {
    for actions in [
        TableActionKind::Discrete,
        TableActionKind::Continuous,
        TableActionKind::Weights,
    ] {
        agree(
            TableConfig {
                reward_column: "pay".to_owned(),
                actions: kind(actions),
                ..TableConfig::default()
            },
            2,
        );
    }
    agree(
        TableConfig {
            reward_column: "pay".to_owned(),
            reward: crate::reward::RewardConfig {
                expression: "paid + other * days + 0.5 * abs(position)".to_owned(),
                scale: 1.0,
                ..Default::default()
            },
            ..TableConfig::default()
        },
        2,
    );
}

#[test]
fn choices_agree() {
    agree(
        TableConfig {
            action_rewards: ["signal", "pay", "other"].map(str::to_owned).into(),
            observe: vec!["close".to_owned()],
            ..TableConfig::default()
        },
        2,
    );
}
