//! The speed of environments on this machine, beside the copying of their observations alone.

use crate::actions::{ActionBuffer, ActionSpace};
use crate::batch::{BatchEnv, Step};
use crate::env_artifact::Files;
use crate::lookup::{self, LookupConfig};
use crate::open_options::{OpenOptions, Split};
use crate::options::{FeatureColumn, InMemory, OptionsConfig, OptionsSimulator, build, synthetic};
use crate::portfolio::{PortfolioEnv, Simulator};
use crate::ranges::{Rows, for_ranges};
use crate::stocks::{self, Rules, StocksConfig, StocksSimulator};
use crate::table::{self, SymbolRows, TableConfig, TableSimulator, TableSource};
use bytes::Bytes;
use datasets::{Date, SnapshotTime};
use serde::Serialize;
use stages_core::StageError;
use stages_numerics::random::Random;
use std::time::{Duration, Instant};

/// Calls `measure` with numbers of environments and of threads, in a pool of one thread and in one of as many
/// as rayon's current pool has, for each batch with at least one environment per thread.
pub fn with_threads(
    batches: &[usize],
    mut measure: impl FnMut(usize, usize) -> Result<(), StageError> + Send,
) -> Result<(), StageError> {
    let all = rayon::current_num_threads();
    for threads in if all > 1 { vec![1, all] } else { vec![1] } {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|err| StageError::new(format!("cannot start threads: {err}")))?;
        for &num_envs in batches.iter().filter(|&&envs| envs >= threads) {
            pool.install(|| measure(num_envs, threads))?;
        }
    }
    Ok(())
}

/// A row of the table of speeds.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    /// The environment.
    pub environment: String,
    /// Environments in the batch.
    pub num_envs: usize,
    /// Threads.
    pub threads: usize,
    /// Numbers in an observation.
    pub observation: usize,
    /// Actions.
    pub actions: usize,
    /// Environment steps a second, all environments together.
    pub steps_per_second: f64,
    /// The rows of an observation's size that the same threads copy per second from a table of 2,521 rows: no
    /// environment that copies its observations is faster.
    pub floor: f64,
    /// Steps per second as a fraction of the floor.
    pub share: f64,
}

const BATCHES: [usize; 6] = [1, 16, 64, 256, 1024, 4096];
/// The time for which a measurement is repeated; the best repetition counts.
const TURN: Duration = Duration::from_millis(40);
const TURNS: usize = 5;
/// Rows of random actions, drawn beforehand: it is the environment that is measured.
const DRAWN: usize = 64;

/// Steps 1 to 4,096 environments with random actions (a masked one counts as holding), with one thread and
/// with all of rayon's current pool: the look-up task at its defaults, options on 652 simulated days, with 64
/// market features and a slate of 20 contracts, observed and not observed, and stocks, 30 of them on 2,520
/// simulated days with 8 indicators each, by target weights and by FinRL's rules; and a table of the look-up
/// task's size, with a price.
///
/// # Errors
/// When an environment cannot be built.
pub fn bench() -> Result<Vec<BenchRow>, StageError> {
    let look_up = LookupConfig::default();
    let table = lookup::table_file(&look_up, Split::Train)?;
    let shown = options_files(OptionsConfig::default())?;
    let mut config = OptionsConfig::default();
    config.slate.features.clear();
    let hidden = options_files(config)?;
    let market = stocks_files(&StocksConfig::default())?;
    let finrl = stocks_files(&StocksConfig {
        rules: Rules::Finrl,
        ..StocksConfig::default()
    })?;
    let tabular = table_files()?;
    type Opener<'a> = Box<dyn Fn(&OpenOptions) -> Result<Box<dyn BatchEnv>, StageError> + 'a>;
    let environments: [(&str, Opener); 6] = [
        (
            "lookup",
            Box::new(|open| Ok(Box::new(lookup::from_table(look_up.clone(), table.clone(), open)?))),
        ),
        ("options", Box::new(|open| boxed::<OptionsSimulator>(&shown, open))),
        (
            "options, slate left out",
            Box::new(|open| boxed::<OptionsSimulator>(&hidden, open)),
        ),
        ("stocks", Box::new(|open| boxed::<StocksSimulator>(&market, open))),
        (
            "stocks, FinRL rules",
            Box::new(|open| boxed::<StocksSimulator>(&finrl, open)),
        ),
        ("table", Box::new(|open| boxed::<TableSimulator>(&tabular, open))),
    ];
    let all = rayon::current_num_threads();
    let mut rows = Vec::new();
    for (name, open) in &environments {
        for threads in if all > 1 { vec![1, all] } else { vec![1] } {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .map_err(|err| StageError::new(format!("cannot start threads: {err}")))?;
            for num_envs in BATCHES {
                let env = open(&OpenOptions::train(num_envs, 1))?;
                rows.push(pool.install(|| measure(name, env))?);
            }
        }
    }
    Ok(rows)
}

/// The files of an options environment with 64 market features.
fn options_files(config: OptionsConfig) -> Result<Vec<(String, Bytes)>, StageError> {
    let mut market = synthetic::market(652, 7);
    let mut random = Random::new(&[5]);
    for i in market.features.len()..64 {
        let values = market.days.iter().map(|day| (day.time(), random.normal())).collect();
        let name = format!("feature_{i}");
        market.features.push(FeatureColumn { name, values });
    }
    Ok(build(&market.source(), &config, &InMemory)?.files)
}

/// The files of 30 stocks with 8 indicators each; of FinRL's rules without the feature by date.
fn stocks_files(config: &StocksConfig) -> Result<Vec<(String, Bytes)>, StageError> {
    let mut panel = stocks::synthetic::panel(2520, 30, 8, 7);
    if config.rules == Rules::Finrl {
        panel.features.clear();
    }
    let built = stocks::build(&[panel], config)?;
    Ok(built
        .files
        .into_iter()
        .map(|(name, bytes)| (name, Bytes::from(bytes)))
        .collect())
}

/// The files of a table of 2,521 days with a price and 64 columns.
fn table_files() -> Result<Vec<(String, Bytes)>, StageError> {
    let (rows, columns) = (2521, 64);
    let mut random = Random::new(&[11]);
    let mut price = 100.0;
    let mut values = vec![Vec::with_capacity(rows); 1 + columns];
    for _ in 0..rows {
        price *= 1.0 + 0.01 * random.normal().clamp(-5.0, 5.0);
        values[0].push(price);
        values[1..].iter_mut().for_each(|column| column.push(random.normal()));
    }
    let source = TableSource {
        columns: std::iter::once("price".to_owned())
            .chain((0..columns).map(|column| format!("column_{column}")))
            .collect(),
        symbols: vec![SymbolRows {
            symbol: "table".to_owned(),
            times: (0..rows as i32).map(|day| SnapshotTime::of_day(Date(day))).collect(),
            values,
        }],
    };
    let config = TableConfig {
        price: "price".to_owned(),
        ..TableConfig::default()
    };
    let files = table::build(&source, &config)?.files.into_iter();
    Ok(files.map(|(name, bytes)| (name, Bytes::from(bytes))).collect())
}

fn file<'a>(files: &'a [(String, Bytes)]) -> impl Files + 'a {
    |wanted| {
        let found = files.iter().find(|(name, _)| name == wanted);
        found
            .map(|(_, bytes)| bytes.clone())
            .ok_or_else(|| StageError::new(format!("no file `{wanted}`")))
    }
}

fn boxed<S: Simulator>(
    files: &[(String, Bytes)],
    open: &OpenOptions,
) -> Result<Box<dyn BatchEnv>, StageError> {
    Ok(Box::new(PortfolioEnv::<S>::from_files(file(files), open)?))
}

/// `DRAWN` rows of random actions.
fn random_actions(space: &ActionSpace, num_envs: usize) -> Vec<ActionBuffer> {
    let mut random = Random::new(&[3]);
    (0..DRAWN)
        .map(|_| {
            let mut actions = ActionBuffer::new(space, num_envs);
            match (&mut actions, space) {
                (ActionBuffer::Continuous(values), ActionSpace::Continuous { bounds, .. }) => {
                    bounds.draw(&mut random, values);
                }
                (ActionBuffer::MultiDiscrete(values), ActionSpace::MultiDiscrete { choices, .. }) => {
                    for (value, choices) in values.iter_mut().zip(choices.iter().cycle()) {
                        *value = random.below(u64::from(*choices)) as u32;
                    }
                }
                (ActionBuffer::Discrete(values), _) => {
                    let choices = space.num_outputs() as u64;
                    values
                        .iter_mut()
                        .for_each(|value| *value = random.below(choices) as u32);
                }
                _ => {}
            }
            actions
        })
        .collect()
}

fn measure(name: &str, mut env: Box<dyn BatchEnv>) -> Result<BenchRow, StageError> {
    let (num_envs, observation, actions) = (
        env.num_envs(),
        env.spec().obs_dim(),
        env.spec().action_space.num_outputs(),
    );
    // Past the beginning, when all accounts are empty.
    let steps_per_second = steps_per_second(env.as_mut(), 4)?;
    let floor = copies(num_envs, observation)?;
    Ok(BenchRow {
        environment: name.to_owned(),
        num_envs,
        threads: rayon::current_num_threads(),
        observation,
        actions,
        steps_per_second,
        floor,
        share: steps_per_second / floor,
    })
}

/// Steps per second of an environment with random actions, after `before` runs of them.
pub(crate) fn steps_per_second(env: &mut dyn BatchEnv, before: usize) -> Result<f64, StageError> {
    let mut out = Step::new(env.spec(), env.num_envs());
    env.reset(out.buffers());
    let drawn = random_actions(&env.spec().action_space, env.num_envs());
    let num_envs = env.num_envs();
    let mut run = || {
        drawn
            .iter()
            .try_for_each(|chosen| env.step(chosen.as_actions(), out.buffers()))
    };
    (0..before).try_for_each(|_| run())?;
    rate(num_envs, run)
}

/// Steps per second of `run`, which takes `DRAWN` x `num_envs` steps.
fn rate(num_envs: usize, mut run: impl FnMut() -> Result<(), StageError>) -> Result<f64, StageError> {
    let mut best = 0.0_f64;
    for _ in 0..TURNS {
        let (mut runs, start) = (0, Instant::now());
        while start.elapsed() < TURN {
            run()?;
            runs += 1;
        }
        best = best.max((runs * DRAWN * num_envs) as f64 / start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// Rows of `width` numbers copied per second from a table: one row for each of `num_envs`, each time the row
/// after the last.
fn copies(num_envs: usize, width: usize) -> Result<f64, StageError> {
    let rows = LookupConfig::default().rows;
    let table = vec![1.0_f32; rows * width];
    let mut random = Random::new(&[4]);
    let mut at: Vec<usize> = (0..num_envs).map(|_| random.below(rows as u64) as usize).collect();
    let mut out = vec![0.0_f32; num_envs * width];
    rate(num_envs, || {
        for _ in 0..DRAWN {
            let view = (&mut at[..], Rows::new(&mut out, width));
            for_ranges(
                view,
                num_envs,
                256,
                &|_, len, (at, mut out): (&mut [usize], Rows<'_, f32>)| {
                    for i in 0..len {
                        let row = at[i];
                        out.row(i).copy_from_slice(&table[row * width..(row + 1) * width]);
                        at[i] = if row + 1 == rows { 0 } else { row + 1 };
                    }
                },
            );
        }
        std::hint::black_box(&mut out);
        Ok(())
    })
}
