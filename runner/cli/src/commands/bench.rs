//! `runner bench`: measures this machine and prints a table.

use crate::output;
use crate::session::{Session, temporary_directory};
use cache::Store;
use clap::{Args, ValueEnum};
use runner_engine::{Failure, text};
use runner_history::named;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A benchmark.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BenchTarget {
    /// Greeks and implied volatilities per second.
    Greeks,
    /// Feature rows per second.
    Features,
    /// CSV rows per second; option chains cold and with a day appended, time and memory.
    Ingest,
    /// Environment steps per second.
    Env,
    /// Decisions of policies per second, by form.
    Policy,
    /// Steps of symbolic environments per second.
    Symbolic,
    /// Training steps per second.
    Train,
    /// The same of trainers by replay buffer, evolution strategies and populations.
    Trainers,
    /// Training steps per second on each device.
    Device,
    /// Overhead of runs that are cached, partly cached and not cached, and of the store.
    Cache,
    /// Regret of the samplers of searches on known functions beside Optuna's, and time per proposal.
    Search,
    /// Trivial jobs on an executor of `config.yaml`, beside those of bare `sbatch` or `ray.remote`.
    Cluster,
}

/// Run benchmarks on this machine.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner bench greeks
  runner bench env --python ./env
  runner bench env --of latest/env
  runner bench policy --python ./env
  runner bench features --python ./env
  runner bench cache --json
  runner bench cluster --executor hpc --jobs 1000")]
pub(crate) struct BenchArgs {
    /// The benchmark.
    #[arg(value_enum)]
    pub what: BenchTarget,
    /// With `train`: also vary the environments from 1 to 4096, the threads from 1 to all, and the LSTM size
    /// from 64 to 1024; with `ingest`: also chains of 7 and 30 million rows; with `search`: also the Gaussian
    /// process at 200 trials. Takes some minutes.
    #[arg(long)]
    pub sweep: bool,
    /// With `env`: an interpreter with gymnasium, or the directory of an environment; CartPole by
    /// `env/python` is measured, beside the native one and Gymnasium's own batches. With `policy`: one with
    /// numpy; policies in Python are measured beside the program's own. With `features`: one with TA-Lib,
    /// whose functions are measured by turns with the program's own.
    #[arg(long, value_name = "PYTHON")]
    pub python: Option<String>,
    /// With `env`: environments of runs, RUN/STAGE or RUN/STAGE.OUTPUT, of any kind; these are measured, 1,
    /// 16 and 256 of each, with random actions among those that are allowed.
    #[arg(long, value_name = "NAME", num_args = 1.., conflicts_with = "python")]
    pub of: Vec<String>,
    /// With `symbolic`: files of facts, each line with head, relation and tail or `relation(head,tail).`,
    /// instead of families drawn at random.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub triples: Vec<PathBuf>,
    /// With `cluster`: the executor.
    #[arg(long, value_name = "NAME", required_if_eq("what", "cluster"))]
    pub executor: Option<String>,
    /// With `cluster`: the number of jobs.
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub jobs: u32,
}

pub(crate) fn bench(session: &Session, args: &BenchArgs) -> Result<(), Failure> {
    let result = match args.what {
        BenchTarget::Greeks => value(&stages_greeks::bench(2_000_000)),
        BenchTarget::Features => value(&features(args.python.as_deref())?),
        BenchTarget::Ingest => value(&ingest(args.sweep)?),
        BenchTarget::Env if !args.of.is_empty() => value(&environments(session, &args.of)?),
        BenchTarget::Env => match &args.python {
            Some(python) => {
                let dir = temporary_directory()?;
                value(&stages_env::python::bench(
                    python,
                    Path::new("."),
                    &Store::open(dir.path())?,
                )?)
            }
            None => value(&stages_env::bench()?),
        },
        BenchTarget::Policy => {
            let dir = temporary_directory()?;
            let store = Store::open(dir.path())?;
            value(&stages_policy::bench(args.python.as_deref(), Path::new("."), &store)?)
        }
        BenchTarget::Symbolic => value(&symbolic(&args.triples)?),
        BenchTarget::Train => value(&stages_train::bench(args.sweep)?),
        BenchTarget::Trainers => {
            let dir = temporary_directory()?;
            value(&stages_train::bench_trainers(&Store::open(dir.path())?)?)
        }
        BenchTarget::Device => value(&stages_train::bench_devices()?),
        BenchTarget::Cache => value(&super::bench_cache::measure()?),
        BenchTarget::Cluster => {
            let name = args.executor.as_deref().unwrap_or_default();
            value(&super::bench_cluster::measure(session, name, args.jobs as usize)?)
        }
        BenchTarget::Search => value(&runner_search::bench::bench(args.sweep)),
    };
    if session.json {
        output::print_json(&result)
    } else {
        output::print(&table(&result))
    }
}

/// Bars from CSV, and option chains: a million rows, with `sweep` also 7 and 30 million.
fn ingest(sweep: bool) -> Result<Vec<stages_ingest::BenchRow>, Failure> {
    let mut rows = stages_ingest::bench(500_000)?;
    let sizes: &[usize] = if sweep { &[1, 7, 30] } else { &[1] };
    for millions in sizes {
        let dir = temporary_directory()?;
        rows.extend(stages_ingest::bench_chain(dir.path(), millions * 1_000_000)?);
    }
    Ok(rows)
}

/// Environments of runs.
fn environments(session: &Session, names: &[String]) -> Result<Vec<stages_env::AnyBenchRow>, Failure> {
    let archive = session.archive()?;
    let mut rows = Vec::new();
    for name in names {
        let artifact = archive.store.artifact(named::find_artifact(&archive, name)?)?;
        rows.extend(stages_env::bench_any(name, &archive.store, &artifact)?);
    }
    Ok(rows)
}

/// Proof search over the facts of these files, or over families drawn at random.
fn symbolic(triples: &[PathBuf]) -> Result<Vec<stages_env::AnyBenchRow>, Failure> {
    let mut text = String::new();
    for path in triples {
        text += &std::fs::read_to_string(path).map_err(Failure::at("cannot read", path))?;
        text.push('\n');
    }
    let triples = (!triples.is_empty()).then_some(text.as_str());
    Ok(stages_symbolic::env::bench(triples)?)
}

/// The features alone, those of FinRL on its panel, and the stage over 100 symbols.
fn features(python: Option<&str>) -> Result<Vec<stages_features::bench::BenchRow>, Failure> {
    let mut rows = stages_features::bench(8, 20_000, python)?;
    rows.extend(stages_features::bench::bench_finrl());
    let dir = temporary_directory()?;
    rows.extend(stages_features::bench::bench_stage(&Store::open(dir.path())?, 100)?);
    Ok(rows)
}

fn value(rows: &impl Serialize) -> Value {
    serde_json::to_value(rows).unwrap_or_default()
}

/// A table of rows with the same fields.
fn table(rows: &Value) -> String {
    let rows: Vec<&serde_json::Map<String, Value>> = rows
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .collect();
    let Some(first) = rows.first() else {
        return "nothing was measured\n".to_owned();
    };
    // The subject of the row comes first, the description of the floor last.
    let mut names: Vec<&String> = first.keys().collect();
    names.sort_by_key(|name| (*name == "floor", !first[*name].is_string()));
    let header: Vec<String> = names.iter().map(|name| name.replace('_', " ")).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let cell = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => figure(number.as_f64().unwrap_or(f64::NAN)),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let body: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            names
                .iter()
                .map(|name| row.get(*name).map(cell).unwrap_or_default())
                .collect()
        })
        .collect();
    let right: Vec<usize> = (0..names.len()).filter(|&i| !first[names[i]].is_string()).collect();
    text::table(&header, &body, &right)
}

/// A number with three digits or a thousands separator; a small one by its power of ten.
fn figure(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.1 {
        return format!("{value:.1e}");
    }
    if value.abs() < 1000.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits.as_str()), |digits| ("-", digits));
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    format!("{sign}{out}")
}
