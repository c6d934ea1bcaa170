//! `runner init`: a first pipeline for files, by what they are taken for.

use super::attempt::{Attempt, answered, attempt, comment, finding, left_out, questions, with_finding};
use super::first::{self, Found};
use super::read::{self, ReadArgs, path_of};
use super::trial::Scratch;
use crate::output;
use crate::project::Settings;
use crate::session::{Session, folder_of};
use clap::Args;
use runner_engine::{Failure, text};
use runner_pipeline::load_text;
use serde_json::{Value, json};
use stages_core::StageError;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Write a first pipeline for files of market data.
///
/// The kind of each file is found from its contents, as by `runner data inspect`. Questions that the files
/// leave open, and errors that stop them from being read, are comments in it, with lines to choose from.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner init data/spx_eod_2023*.txt data/treasury_rates.csv
  runner init stocks.parquet --to stocks.yaml
  runner init data                         # a directory of bars, splits, rates and factors
  runner init                              # a simulated market, without data")]
pub(crate) struct InitArgs {
    /// Files, directories or globs of option chains, daily bars, interest rates, corporate actions, factors
    /// or other tables [default: a simulated market].
    #[arg(value_name = "PATH")]
    pub paths: Vec<String>,
    /// The pipeline file to write. It must not exist.
    #[arg(long, value_name = "FILE", default_value = "pipeline.yaml")]
    pub to: PathBuf,
    /// The symbol, for files that do not name it; of files with several, the one to read.
    #[arg(long, value_name = "SYMBOL")]
    pub symbol: Option<String>,
}

/// The rows of a table above which the stages behind it are not tried.
const TRIED_ROWS: usize = 60_000;

/// The most files that are no tables to name.
const NOTES: usize = 8;

pub(crate) fn init(session: &Session, args: &InitArgs) -> Result<(), Failure> {
    let dest = session.current.join(&args.to);
    if dest.exists() {
        return Err(exists(&args.to));
    }
    let scratch = Scratch::new(&session.current)?;
    let mut found: Vec<Found> = Vec::new();
    let mut notes: Vec<String> = args.paths.iter().flat_map(|path| others(session, path)).collect();
    for group in paths(session, args, &scratch)? {
        let paths = group.paths.clone();
        match find(session, args, &scratch, group)? {
            Some(one) => found.push(one),
            None => notes.extend(paths),
        }
    }
    notes.sort();
    first::number(&mut found);
    let mut stages = first::stages(&found);
    // The stages behind the data are tried, too, where that is quick.
    let is_read = found.iter().all(|found| found.rows > 0 && found.rows <= TRIED_ROWS);
    let mut findings: Vec<String> = Vec::new();
    if is_read && !found.is_empty() {
        (stages, findings) = tried(&scratch, &found, stages);
    }
    let stem = args.to.file_stem().unwrap_or_default().to_string_lossy().into_owned();
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
    let options = session.reading(&dest, &Settings::default())?;
    let is_name = |name: &str| {
        let one = format!(
            "version: 1\nname: {name}\nstages:\n{}",
            include_str!("first/simulated.yaml")
        );
        load_text(&dest, one.as_bytes(), &options).is_ok()
    };
    let mut text = body(if is_name(&stem) { &stem } else { "first" });
    let questions = questions(&text);
    // Read as it will be, with an answer to each question.
    let whole = answered(&text).unwrap_or_else(|| text.clone());
    if let Err(errors) = load_text(&dest, whole.as_bytes(), &options)
        && found.iter().all(|found| found.attempt.finding.is_none())
    {
        text += &comment("", &format!("finding: {errors}"));
        findings.push(errors.to_string());
    }
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
    for found in &found {
        findings.extend(found.attempt.finding.as_ref().map(|err| err.message.clone()));
    }
    if session.json {
        let tables = found.iter().map(|found| {
            let name = found.attempt.name.clone();
            (
                name,
                json!({ "why": found.attempt.why, "kind": found.attempt.kind, "days": found.days.len() }),
            )
        });
        return output::print_json(&json!({
            "pipeline": args.to, "tables": tables.collect::<BTreeMap<_, Value>>(), "findings": findings,
            "questions": questions, "no_tables": notes, "text": text,
        }));
    }
    let mut out = String::new();
    for found in &found {
        let why = found.attempt.why.split(';').next().unwrap_or_default();
        let _ = writeln!(
            out,
            "{}: {}, {why}",
            found.attempt.name,
            text::count(found.days.len(), "day")
        );
    }
    for line in left_out(&text) {
        let _ = writeln!(out, "{line}");
    }
    if !notes.is_empty() {
        let (shown, rest) = notes.split_at(notes.len().min(NOTES));
        let more = match rest.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let _ = writeln!(out, "no tables, and left out: {}{more}", shown.join(", "));
    }
    for doubt in found.iter().flat_map(|found| &found.attempt.doubts) {
        let _ = writeln!(out, "check: {doubt}");
    }
    for finding in &findings {
        let _ = writeln!(out, "finding: {finding}");
    }
    for question in &questions {
        let _ = writeln!(out, "question: {question}");
    }
    let path = args.to.display().to_string();
    let is_word = |c: char| c.is_alphanumeric() || "/._-+@%:=,~".contains(c);
    let path = match path.chars().all(is_word) {
        true => path,
        false => format!("'{}'", path.replace('\'', "'\\''")),
    };
    let _ = match findings.is_empty() && questions.is_empty() {
        true => writeln!(out, "{path} written; next: runner exec {path}"),
        false => writeln!(
            out,
            "{path} written, with findings as comments and lines to choose from; then: runner exec \
             {path}"
        ),
    };
    output::print(&out)
}

fn exists(path: &Path) -> Failure {
    Failure::usage(format!("`{}` already exists", path.display())).hint("name another file with `--to`")
}

fn reading(args: &InitArgs, paths: Vec<String>) -> ReadArgs {
    ReadArgs {
        paths,
        layout: None,
        table: None,
        symbol: args.symbol.clone(),
    }
}

/// Files of one header.
#[derive(Default)]
struct Group {
    signature: Vec<String>,
    paths: Vec<String>,
    /// True if no argument is one of the files: a directory or a glob holds them.
    is_searched: bool,
}

/// The files of a directory that are no tables by their names, relative to the working directory.
fn others(session: &Session, path: &str) -> Vec<String> {
    let found = stages_ingest::files::left_out(path, &session.current).into_iter();
    let shown = |path: PathBuf| {
        let path = path.strip_prefix(&session.current).unwrap_or(&path);
        path.to_string_lossy().into_owned()
    };
    found.map(shown).collect()
}

/// The paths of each table: files by their headers, and directories and globs as they are unless no one stage
/// reads all of their files.
fn paths(session: &Session, args: &InitArgs, scratch: &Scratch) -> Result<Vec<Group>, Failure> {
    // A pipeline's paths are relative to its file.
    let is_beside = folder_of(&session.current, &args.to).as_deref() == Some(session.current.as_path());
    let named = |path: &str| match is_beside || path.contains("://") {
        true => path.to_owned(),
        false => session.current.join(path).to_string_lossy().into_owned(),
    };
    let mut groups: Vec<Group> = Vec::new();
    let mut add = |signature: Vec<String>, path: String, is_searched: bool| match groups
        .iter_mut()
        .find(|group| group.signature == signature)
    {
        Some(group) => {
            group.paths.push(path);
            group.is_searched &= is_searched;
        }
        None => groups.push(Group {
            signature,
            paths: vec![path],
            is_searched,
        }),
    };
    for path in &args.paths {
        let found = read::by_header(&session.current, path)?;
        if session.current.join(path).is_file() {
            let signature = found.into_iter().next().map(|(signature, _)| signature);
            add(signature.unwrap_or_default(), named(path), false);
            continue;
        }
        let whole = reading(args, vec![named(path)]);
        let is_read = found.len() < 2 || {
            let looked = read::look(&session.current, &whole)?;
            attempt(scratch, &whole, &looked)?.is_some_and(|attempt| attempt.finding.is_none())
        };
        if is_read {
            add(vec![path.clone()], named(path), true);
            continue;
        }
        for (signature, paths) in found {
            for path in paths {
                add(signature.clone(), named(&path), true);
            }
        }
    }
    Ok(groups)
}

/// Reads the files of a table; `None` for notes and other documents among the tables of a directory.
fn find(
    session: &Session,
    args: &InitArgs,
    scratch: &Scratch,
    group: Group,
) -> Result<Option<Found>, Failure> {
    let reading = reading(args, group.paths);
    let looked = read::look(&session.current, &reading)?;
    if group.is_searched && looked.first.is_document() {
        return Ok(None);
    }
    if let Some(attempt) = attempt(scratch, &reading, &looked)? {
        return Found::new(attempt).map(Some);
    }
    let error = looked.refusal(&reading);
    let yaml = format!(
        "  rows:\n    uses: ingest/table\n    with:\n      path: {}\n",
        path_of(&reading.paths)
    );
    Found::new(Attempt {
        yaml: with_finding(&yaml, &error, &[]),
        ..Attempt::refused("rows", "ingest/table", error)
    })
    .map(Some)
}

/// Tries the stages, and returns them with what was found: as a comment at the stage that was refused, or
/// without the corporate actions by which it was.
fn tried(scratch: &Scratch, found: &[Found], stages: String) -> (String, Vec<String>) {
    let run = |stages: &str| scratch.run(answered(stages).as_deref().unwrap_or(stages));
    let Err(refused) = run(&stages) else {
        return (stages, Vec::new());
    };
    if found.iter().any(|found| found.attempt.name == refused.stage) {
        // It was refused alone, too, and says so.
        return (stages, Vec::new());
    }
    let mut message = refused.error.message.clone();
    let without = stages.replace(", actions: actions.actions", "");
    if without != stages && run(&without).is_ok() {
        let error = StageError {
            hint: Some(
                "connect them with `actions: actions.actions` where the bars are as they were traded"
                    .to_owned(),
            ),
            ..StageError::new(format!("the corporate actions are not connected: {message}"))
        };
        message = error.message.clone();
        return (placed(&without, &refused.stage, &error), vec![message]);
    }
    let stages = placed(&stages, &refused.stage, &refused.error);
    if refused.stage.is_empty() {
        message = format!("the stages do not run: {message}");
    }
    (stages, vec![message])
}

/// The stages with an error as a comment at one of them.
fn placed(stages: &str, stage: &str, error: &StageError) -> String {
    let head = format!("  {stage}:");
    let mut out = String::new();
    let mut is_said = false;
    for line in stages.lines() {
        let _ = writeln!(out, "{line}");
        if !is_said && line.starts_with(&head) {
            out += &finding("    ", error);
            is_said = true;
        }
    }
    out
}
