mod batch;
mod by_hand;
mod refusals;
mod slow;
mod stage;

use super::*;
use crate::batch::{BatchEnv, Step};
use crate::env_artifact::Built;
use crate::open_options::OpenOptions;
use bytes::Bytes;
use datasets::{Date, SnapshotTime};
use stages_numerics::random::Random;

/// Days from 2020-01-01 on, every one.
fn days(count: usize) -> Vec<SnapshotTime> {
    let first: Date = "2020-01-01".parse().unwrap();
    (0..count).map(|i| SnapshotTime::of_day(first.plus(i as i32))).collect()
}

/// A table of one symbol, a row a day.
fn one(columns: &[(&str, &[f64])]) -> TableSource {
    TableSource {
        columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        symbols: vec![SymbolRows {
            symbol: "A".to_owned(),
            times: days(columns[0].1.len()),
            values: columns.iter().map(|(_, values)| values.to_vec()).collect(),
        }],
    }
}

/// Random prices, signals and payoffs of symbols.
fn random(symbols: usize, rows: usize, seed: u64) -> TableSource {
    let mut random = Random::new(&[seed]);
    let of = |s: usize, random: &mut Random| {
        let mut price = 50.0;
        let mut values = vec![Vec::new(); 4];
        for _ in 0..rows {
            price *= (0.03 * random.normal()).exp();
            values[0].push(price);
            for value in &mut values[1..] {
                value.push(random.normal());
            }
        }
        SymbolRows {
            symbol: format!("S{s}"),
            times: days(rows),
            values,
        }
    };
    TableSource {
        columns: ["close", "signal", "pay", "other"].map(str::to_owned).into(),
        symbols: (0..symbols).map(|s| of(s, &mut random)).collect(),
    }
}

/// All rows are test rows: an episode runs over them from the first to the last.
fn whole(config: TableConfig) -> TableConfig {
    TableConfig {
        test_fraction: 1.0,
        ..config
    }
}

fn price() -> TableConfig {
    TableConfig {
        price: "close".to_owned(),
        ..TableConfig::default()
    }
}

fn opened(source: &TableSource, config: &TableConfig, options: &OpenOptions) -> TableEnv {
    from(&build(source, config).unwrap(), options)
}

fn from(built: &Built, options: &OpenOptions) -> TableEnv {
    let file = |name: &str| {
        let found = built.files.iter().find(|(path, _)| path == name);
        Ok(Bytes::from(found.unwrap().1.clone()))
    };
    TableEnv::from_files(file, options).unwrap()
}

fn begun(env: &mut TableEnv) -> Step {
    let mut out = Step::new(env.spec(), env.num_envs());
    env.reset(out.buffers());
    out
}

fn near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-12 * (1.0 + expected.abs()),
        "{found} {expected}"
    );
}
