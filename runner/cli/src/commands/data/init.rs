//! `runner init`: a first pipeline for files, by what they are taken for.

use super::inspect::{days, stage_yaml};
use super::read::{self, Read};
use crate::commands::data::read::ReadArgs;
use crate::output;
use crate::project::{Settings, wrong};
use crate::session::{Session, folder_of};
use clap::Args;
use datasets::layout::Table;
use runner_engine::{Failure, text};
use runner_pipeline::{Work, load_text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;

/// Write a first pipeline for files of market data.
///
/// Their kinds are found by their contents, as by `runner data inspect`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner init data/spx_eod_2023*.txt data/treasury_rates.csv
  runner init stocks.parquet --to stocks.yaml
  runner init                              # a simulated market, without data")]
pub(crate) struct InitArgs {
    /// Files, directories or globs of option chains, daily bars or interest rates, a path for each table
    /// [default: a simulated market].
    #[arg(value_name = "PATH")]
    pub paths: Vec<String>,
    /// The pipeline file to write. It must not exist.
    #[arg(long, value_name = "FILE", default_value = "pipeline.yaml")]
    pub to: PathBuf,
    /// The symbol, for files that do not name it.
    #[arg(long, value_name = "SYMBOL")]
    pub symbol: Option<String>,
}

/// Days below which dates between training and test are too dear to drop, and episodes are parts of the data.
const FEW: usize = 400;

/// The least number of days: of a quarter for the test, and of training dates behind the warm-up of features.
const LEAST: usize = 20;

/// Files, and the stage that reads them.
struct Found {
    yaml: String,
    /// The reason why they are taken for that table.
    why: String,
    meta: Value,
    days: usize,
    has_adjusted: bool,
}

pub(crate) fn init(session: &Session, args: &InitArgs) -> Result<(), Failure> {
    let dest = session.current.join(&args.to);
    if dest.exists() {
        return Err(exists(&args.to));
    }
    let mut tables: BTreeMap<&'static str, Found> = BTreeMap::new();
    for path in &args.paths {
        let (table, found) = find(session, args, path)?;
        if tables.insert(table.name(), found).is_some() {
            return Err(
                Failure::usage(format!("several of the paths hold {}", table.name())).hint(
                    "give the files of a table as one directory or glob, and make a pipeline for each market",
                ),
            );
        }
    }
    for (table, found) in &tables {
        if found.days < LEAST && *table != Table::Rates.name() {
            return Err(Failure::usage(format!(
                "{} of {table} are too few to train and to test on",
                text::count(found.days, "day")
            ))
            .hint(format!(
                "give files of {LEAST} days or more; `runner data inspect` shows what they have"
            )));
        }
    }
    let stem = args.to.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let stages = stages(&tables)?;
    let of = match args.paths.as_slice() {
        [] => "simulated options".to_owned(),
        paths => paths.join(", "),
    };
    let body = |name: &str| {
        format!(
            "# A first pipeline for {of}, proposed by `runner init`. `runner stages KIND` describes the \
             settings of a stage.\n\
             version: 1\nname: {name}\nparams:\n  seed: 1\n  timesteps: 32768\nstages:\n{stages}"
        )
    };
    // Read as it will be: nothing is written that would not run.
    let options = session.reading(&dest, &Settings::default())?;
    let named = load_text(&dest, body(&stem).as_bytes(), &options);
    let text = body(if named.is_ok() { &stem } else { "first" });
    load_text(&dest, text.as_bytes(), &options).map_err(wrong)?;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&dest)
        .map_err(|err| match err.kind() {
            std::io::ErrorKind::AlreadyExists => exists(&args.to),
            _ => Failure::at("cannot create", &args.to)(err),
        })?;
    file.write_all(text.as_bytes())
        .map_err(Failure::at("cannot write", &args.to))?;
    if session.json {
        let found = tables
            .iter()
            .map(|(table, found)| (*table, json!({ "why": found.why, "days": found.days })));
        return output::print_json(&json!({
            "pipeline": args.to, "tables": found.collect::<BTreeMap<_, _>>(), "text": text,
        }));
    }
    let mut out = String::new();
    for (table, found) in &tables {
        let _ = writeln!(out, "{table}: {}, {}", text::count(found.days, "day"), found.why);
    }
    let _ = writeln!(out, "{} written; next: runner exec {0}", args.to.display());
    output::print(&out)
}

fn exists(path: &Path) -> Failure {
    Failure::usage(format!("`{}` already exists", path.display())).hint("name another file with `--to`")
}

/// Reads the files at a path.
fn find(session: &Session, args: &InitArgs, path: &str) -> Result<(Table, Found), Failure> {
    // A pipeline's paths are relative to its file.
    let is_beside = folder_of(&session.current, &args.to).as_deref() == Some(session.current.as_path());
    let path = match is_beside || path.contains("://") {
        true => path.to_owned(),
        false => session.current.join(path).to_string_lossy().into_owned(),
    };
    let reading = ReadArgs {
        path,
        layout: None,
        table: None,
        symbol: args.symbol.clone(),
    };
    let looked = read::look(session, &reading)?;
    let (table, why, yaml) = match &looked.first.proposal {
        Some(proposal) if !proposal.missing.is_empty() => {
            return Err(Failure::usage(format!(
                "no layout is known for `{}`, and its columns {} are not found",
                reading.path,
                proposal.missing.join(", ")
            ))
            .hint(format!("`runner data inspect {}` shows what it has", reading.path)));
        }
        Some(proposal) => {
            let why = "by the names and values of its columns".to_owned();
            (proposal.table, why, proposal.yaml(&reading.path))
        }
        None => {
            let (table, why) = looked.table(&reading)?;
            let why = why.split(';').next().unwrap_or_default().to_owned();
            (table, why, stage_yaml(&reading, table))
        }
    };
    // The stage itself reads them: what it refuses is refused here.
    let alone = format!("version: 1\nname: first\nstages:\n{yaml}");
    let place = session.current.join(&args.to);
    let options = session.reading(&place, &Settings::default())?;
    let pipeline = load_text(&place, alone.as_bytes(), &options).map_err(wrong)?;
    let config = pipeline.nodes.iter().find_map(|node| match &node.work {
        Work::Kind { config, .. } => Some(Value::clone(config)),
        Work::Command(_) => None,
    });
    let read: Read = read::read_configured(session, table, config.unwrap_or_default())?;
    let batches = read.partitions()?;
    let days: BTreeSet<_> = days(&batches);
    let has_adjusted = batches.iter().any(|batch| {
        let column = batch.column_by_name("adjusted_close");
        column.is_some_and(|column| arrow_array::Array::null_count(column) < batch.num_rows())
    });
    Ok((
        table,
        Found {
            yaml,
            why,
            meta: read.artifact.meta.clone(),
            days: days.len(),
            has_adjusted,
        },
    ))
}

/// The stages for the tables.
fn stages(tables: &BTreeMap<&'static str, Found>) -> Result<String, Failure> {
    let of = |table: Table| tables.get(table.name());
    let (chain, bars, rates) = (of(Table::Chain), of(Table::Bars), of(Table::Rates));
    let mut out: String = tables.values().map(|found| found.yaml.as_str()).collect();
    match (chain, bars) {
        (Some(chain), bars) => out.push_str(&options(chain, bars, rates.is_some())?),
        (None, Some(bars)) => out.push_str(&stocks(bars, rates.is_some())),
        (None, None) if rates.is_some() => {
            return Err(Failure::usage("interest rates alone are nothing to trade")
                .hint("also name files of option chains or daily bars"));
        }
        (None, None) => {
            out.push_str(include_str!("first/simulated.yaml"));
            out.push_str(&train("recurrent_ppo"));
        }
    }
    Ok(out)
}

/// A text of `first/`, with what stands for words in capitals.
fn filled(text: &str, words: &[(&str, &str)]) -> String {
    words
        .iter()
        .fold(text.to_owned(), |text, (word, with)| text.replace(word, with))
}

/// A training of this kind and its evaluation.
fn train(kind: &str) -> String {
    filled(include_str!("first/train.yaml"), &[("KIND", kind)])
}

/// Settings of an environment for so many days.
fn dates(days: usize) -> String {
    match days < FEW {
        // A quarter of the dates is a test, and an episode has a part of the others.
        true => format!(
            "test_fraction: 0.25, purge: 1, embargo: 0, episode_length: {}",
            (days / 4).clamp(2, 60)
        ),
        false => "test_fraction: 0.25".to_owned(),
    }
}

/// The setting that names the prices of bars.
fn price(name: &str, bars: &Found) -> String {
    match bars.has_adjusted {
        true => format!("{name}: adjusted_close, "),
        false => String::new(),
    }
}

/// The input of interest rates.
fn rates(has_rates: bool) -> &'static str {
    if has_rates { ", rates: rates" } else { "" }
}

/// The stages behind an option chain.
fn options(chain: &Found, bars: Option<&Found>, has_rates: bool) -> Result<String, Failure> {
    let classes = chain.meta["contracts"].as_object().into_iter().flatten();
    let is_american = classes.into_iter().any(|(_, terms)| terms["exercise"] == "american");
    let symbols = |found: &Found| -> BTreeSet<String> {
        let symbols = found.meta["symbols"].as_array().into_iter().flatten();
        symbols.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    if bars.is_some_and(|bars| symbols(bars).is_disjoint(&symbols(chain))) {
        return Err(Failure::usage("the bars are of other symbols than the options")
            .hint("make a pipeline for each, or name the symbol of a file with `--symbol`"));
    }
    let style = match (is_american, has_rates) {
        (true, true) => "    with: { style: american, forward: rates }\n",
        (true, false) => "    with: { style: american }\n",
        _ => "",
    };
    let words = [
        ("RATES", rates(has_rates)),
        ("STYLE", style),
        ("MODEL", if is_american { "american" } else { "analytic" }),
        ("TECHNICAL", &bars.map(technical).unwrap_or_default()),
        ("FEATURES", if bars.is_some() { ", technical" } else { "" }),
        ("DATES", &dates(chain.days)),
    ];
    Ok(filled(include_str!("first/options.yaml"), &words) + &train("recurrent_ppo"))
}

fn technical(bars: &Found) -> String {
    let indicators = match bars.days < FEW {
        true => "[{ log_return: 1 }, { rsi: 5 }]",
        false => "[{ log_return: 1 }, { rsi: 14 }, { macd: [12, 26, 9] }]",
    };
    let price = price("price", bars);
    let words = [("PRICE", price.as_str()), ("INDICATORS", indicators)];
    filled(include_str!("first/technical.yaml"), &words)
}

/// The stages behind daily bars.
fn stocks(bars: &Found, has_rates: bool) -> String {
    let words = [
        ("RATES", rates(has_rates)),
        ("TECHNICAL", &technical(bars)),
        ("PRICES", &price("prices", bars)),
        ("DATES", &dates(bars.days)),
    ];
    filled(include_str!("first/stocks.yaml"), &words) + &train("ppo")
}
