//! `runner policy list|show|register|promote|rollback|diff`: the registry of policies.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use crate::values::age;
use chrono::{DateTime, Utc};
use clap::Args;
use runner_acting::find_policy;
use runner_engine::{Failure, row, text};
use runner_history::Archive;
use runner_history::compare::{self as compared, Comparison, Options};
use runner_history::named::{self, Named};
use runner_history::policies::{NamedPolicy, PolicyRef, Reason, Registration, Registry, Version};
use runner_history::{self as history, Figures, Run};
use runner_report as report;
use serde_json::{Value, json};
use stages_policy::AnyPolicy;
use stages_policy::forms::RuleForm;
use std::time::Duration;
use std::time::SystemTime;

/// Register the policy of a run under a name, as a new version.
///
/// In a pipeline, `register: NAME` of a stage does it at the end of each run. A policy that is a version
/// already stays that version.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner policy register latest/train desk
  runner policy register 'baseline/train[seed=1]' desk --alias champion")]
pub(crate) struct PolicyRegisterArgs {
    /// RUN/STAGE of a training, or RUN/STAGE.OUTPUT.
    #[arg(add = completed(candidates::stages_of_runs))]
    pub what: String,
    /// The name.
    #[arg(add = completed(candidates::policies))]
    pub name: String,
    /// Also point this alias to it.
    #[arg(long)]
    pub alias: Option<String>,
    /// The age from which it may no longer act: the time from the last date that it was trained on to a
    /// decision. `30d`.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub max_age: Option<Duration>,
}

/// Point an alias to a version.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner policy promote desk@challenger
  runner policy promote desk@3 --to champion")]
pub(crate) struct PolicyPromoteArgs {
    /// NAME@ALIAS or NAME@VERSION.
    #[arg(add = completed(candidates::policies))]
    pub policy: String,
    /// The alias.
    #[arg(long, value_name = "ALIAS", default_value = "champion")]
    pub to: String,
}

/// Point an alias to the version that it pointed to before.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  runner policy rollback desk")]
pub(crate) struct PolicyRollbackArgs {
    /// The name of the policy.
    #[arg(add = completed(candidates::policies))]
    pub name: String,
    /// The alias.
    #[arg(long, default_value = "champion")]
    pub alias: String,
}

/// Compare two versions: parameters, settings and metrics.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  runner policy diff desk@champion desk@challenger")]
pub(crate) struct PolicyDiffArgs {
    /// NAME@ALIAS or NAME@VERSION.
    #[arg(add = completed(candidates::policies))]
    pub policy: String,
    /// Another.
    #[arg(add = completed(candidates::policies))]
    pub other: String,
}

fn registry(archive: &Archive) -> Registry {
    Registry::new(archive.store.root())
}

pub(super) fn list(session: &Session, name: Option<&str>) -> Result<(), Failure> {
    let registry = registry(&session.archive()?);
    if let Some(name) = name {
        let Some(policy) = registry.read(name)? else {
            let names = registry.names()?;
            return Err(Failure::usage(format!("there is no policy `{name}`")).hint(
                runner_pipeline::suggest(name, "policies", names.iter().map(String::as_str)),
            ));
        };
        return match session.json {
            true => output::print_json(&as_json(name, &policy)),
            false => output::print(&policy_text(name, &policy)),
        };
    }
    let policies = registry.all()?;
    if session.json {
        let all: Vec<Value> = policies.iter().map(|(name, policy)| as_json(name, policy)).collect();
        return output::print_json(&all);
    }
    if policies.is_empty() {
        return output::print(
            "no policies: `runner policy register RUN/STAGE NAME`, or `register: NAME` of a stage, makes \
            the first\n",
        );
    }
    let rows: Vec<Vec<String>> = policies
        .iter()
        .map(|(name, policy)| {
            let aliases = policy.aliases();
            let aliases: Vec<String> = aliases
                .iter()
                .map(|(alias, version)| format!("{alias} {version}"))
                .collect();
            let last = policy.versions.last().map(|version| minute(version.time));
            row![name, policy.versions.len(), aliases.join(", "), last]
        })
        .collect();
    output::print(&text::table(
        &["policy", "versions", "aliases", "last registered"],
        &rows,
        &[1],
    ))
}

fn as_json(name: &str, policy: &NamedPolicy) -> Value {
    json!({
        "name": name, "aliases": policy.aliases(), "versions": policy.versions,
        "moves": policy.moves, "verdicts": policy.verdicts,
    })
}

fn policy_text(name: &str, policy: &NamedPolicy) -> String {
    let rows: Vec<Vec<String>> = policy
        .versions
        .iter()
        .map(|version| {
            row![
                version.version,
                policy.aliases_of(version.version),
                version.digest.short(),
                origin(version),
                version.from.as_of,
                minute(version.time),
            ]
        })
        .collect();
    let mut out = format!(
        "{name}\n{}",
        text::table(
            &["version", "aliases", "digest", "from", "night", "registered"],
            &rows,
            &[0]
        )
    );
    let moves: Vec<Vec<String>> = policy
        .moves
        .iter()
        .map(|moved| {
            let before = moved.before.map_or("-".to_owned(), |before| before.to_string());
            row![
                moved.alias,
                format!("{before} -> {}", moved.version),
                moved.reason.by,
                moved.reason.as_of,
                minute(moved.time),
                moved.reason.shown(),
            ]
        })
        .collect();
    let header = ["alias", "moved", "by", "night", "time", "figures"];
    out.push_str(&text::block(&header, &moves, &[]));
    let verdicts: Vec<Vec<String>> = policy
        .verdicts
        .iter()
        .map(|judged| {
            let mut row = row![
                judged.version,
                judged.alias,
                judged.against,
                judged.verdict.name(),
                judged.moved.then_some("moved"),
                judged.as_of,
            ];
            row.extend(judged.shown());
            row
        })
        .collect();
    let header = [
        "version",
        "for",
        "against",
        "verdict",
        "",
        "night",
        "log return",
        "low",
        "high",
        "deflated",
        "trials",
    ];
    out + &text::block(&header, &verdicts, &[0, 2, 6, 7, 8, 9, 10])
}

fn minute(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M UTC").to_string()
}

/// `RUN/STAGE.OUTPUT`.
fn origin(version: &Version) -> String {
    format!("{}/{}", version.from.run, version.from.output)
}

/// The run of a version, and the name of its stage, if the history has it.
fn run_of(archive: &Archive, version: &Version) -> Option<(Run, String)> {
    let run = history::load(&archive.runs, &version.from.run).ok()?;
    let (stage, _) = version.from.output.rsplit_once('.')?;
    Some((run, stage.to_owned()))
}

pub(super) fn show(session: &Session, name: &str) -> Result<(), Failure> {
    let archive = session.archive()?;
    if name.contains('/') {
        return show_made(session, &archive, name);
    }
    let reference = PolicyRef::parse(name)?;
    let (policy, version) = registry(&archive).get(&reference)?;
    let (_, read) = find_policy(&archive, name)?;
    let found = run_of(&archive, &version);
    let stage = found.as_ref().and_then(|(run, stage)| run.stage(stage));
    let figures = stage
        .map(|stage| Figures::of(stage, &archive.store))
        .unwrap_or_default();
    let aliases = policy.aliases_of(version.version);
    if session.json {
        let metrics = figures.headline.iter();
        let metrics = metrics.filter_map(|name| Some((name, figures.values.get(name)?)));
        let metrics: std::collections::BTreeMap<_, _> = metrics.collect();
        return output::print_json(&json!({
            "name": reference.name,
            "version": version,
            "aliases": aliases.split(", ").filter(|alias| !alias.is_empty()).collect::<Vec<_>>(),
            "kind": read.kind(),
            "form": read.form(),
            "parameters": read.native().map(|policy| policy.params().len()),
            "rule": read.rule().map(RuleForm::lines),
            "stage": stage,
            "metrics": metrics,
        }));
    }
    let mut out = format!(
        "{} version {}{}\nartifact {}\nfrom {}\nregistered {}\n",
        reference.name,
        version.version,
        match aliases.as_str() {
            "" => String::new(),
            aliases => format!(" ({aliases})"),
        },
        version.digest,
        origin(&version),
        version.time.format("%Y-%m-%d %H:%M:%S UTC"),
    );
    out.push_str(&about(&read));
    if stage.is_none() {
        out.push_str("its run is not in this history\n");
    }
    let rows: Vec<Vec<String>> = figures
        .headline
        .iter()
        .filter_map(|name| Some(row![name, text::figure(*figures.values.get(name)?)]))
        .collect();
    output::print(&(out + &text::block(&["metric", "value"], &rows, &[1])))
}

/// Shows the policy of a stage, which no name denotes.
fn show_made(session: &Session, archive: &Archive, name: &str) -> Result<(), Failure> {
    let (digest, read) = find_policy(archive, name)?;
    if session.json {
        return output::print_json(&json!({
            "artifact": digest,
            "kind": read.kind(),
            "form": read.form(),
            "parameters": read.native().map(|policy| policy.params().len()),
            "rule": read.rule().map(RuleForm::lines),
        }));
    }
    output::print(&format!("artifact {digest}\n{}", about(&read)))
}

/// The kind and the size or the form of a policy; of a rule its lines.
fn about(policy: &AnyPolicy) -> String {
    let what = match policy.native() {
        Some(native) => format!("{} parameters", native.params().len()),
        None => format!("form {}", policy.form()),
    };
    let rule = policy.rule().map(RuleForm::lines).unwrap_or_default();
    let rule: String = rule.iter().map(|line| format!("  {line}\n")).collect();
    format!("kind {}, {what}\n{rule}", policy.kind())
}

pub(super) fn register(session: &Session, args: &PolicyRegisterArgs) -> Result<(), Failure> {
    let archive = session.archive()?;
    let (run, stage, output) = match named::find(&archive, &args.what)? {
        Named::Stage(run, stage) => (run, stage, "policy".to_owned()),
        Named::Artifact(_, Some(named)) => named,
        Named::Artifact(_, None) | Named::Run(_) => {
            return Err(Failure::usage(format!("`{}` is not a stage of a run", args.what))
                .hint("give RUN/STAGE of a training; `runner runs` lists the runs"));
        }
    };
    // Refuses what is not a policy.
    let (digest, _) = find_policy(&archive, &format!("{}/{}.{output}", run.id, stage.id))?;
    let from = Registration {
        run: run.id.clone(),
        output: format!("{}.{output}", stage.id),
        key: stage.key,
        as_of: None,
        max_age: args.max_age.map(|age| age.as_secs()),
    };
    let version = registry(&archive).register(
        &args.name,
        digest,
        from,
        args.alias.as_deref(),
        SystemTime::now().into(),
    )?;
    said(session, &args.name, &version, args.alias.as_deref())
}

/// The version, as a line or as JSON.
fn said(session: &Session, name: &str, version: &Version, alias: Option<&str>) -> Result<(), Failure> {
    if session.json {
        return output::print_json(&json!({ "name": name, "version": version, "alias": alias }));
    }
    let alias = alias.map(|alias| format!(", {name}@{alias}")).unwrap_or_default();
    output::print(&format!(
        "{name}@{}{alias}: {} of {}\n",
        version.version,
        version.digest.short(),
        origin(version)
    ))
}

pub(super) fn promote(session: &Session, args: &PolicyPromoteArgs) -> Result<(), Failure> {
    let registry = registry(&session.archive()?);
    let reference = PolicyRef::parse(&args.policy)?;
    let (_, version) = registry.get(&reference)?;
    let reason = Reason {
        by: "promote".to_owned(),
        ..Reason::default()
    };
    registry.point(
        &reference.name,
        &args.to,
        version.version,
        reason,
        SystemTime::now().into(),
    )?;
    said(session, &reference.name, &version, Some(&args.to))
}

pub(super) fn rollback(session: &Session, args: &PolicyRollbackArgs) -> Result<(), Failure> {
    let registry = registry(&session.archive()?);
    let alias = PolicyRef::parse(&format!("{}@{}", args.name, args.alias))?;
    registry.get(&alias)?;
    registry.rollback(&args.name, &args.alias, SystemTime::now().into())?;
    let (_, version) = registry.get(&alias)?;
    said(session, &args.name, &version, Some(&args.alias))
}

pub(super) fn diff(session: &Session, args: &PolicyDiffArgs) -> Result<(), Failure> {
    let archive = session.archive()?;
    let registry = registry(&archive);
    let mut names = Vec::new();
    for policy in [&args.policy, &args.other] {
        let (_, version) = registry.get(&PolicyRef::parse(policy)?)?;
        let Some((run, stage)) = run_of(&archive, &version) else {
            return Err(Failure::usage(format!(
                "the run of `{policy}`, {}, is not in the history here",
                version.from.run
            ))
            .hint("compare where it was made; `runner policy show` has what the registry knows"));
        };
        names.push(format!("{}/{stage}", run.id));
    }
    if names[0] == names[1] {
        return output::print(&format!(
            "{} and {} are one policy, of {}\n",
            args.policy, args.other, names[0]
        ));
    }
    let points = compared::select(&archive.runs, &archive.store, &names)?;
    let options = Options {
        each: true,
        ..Options::default()
    };
    let comparison = Comparison::new(points, &options)?;
    match session.json {
        true => output::print_json(&compared::json(&comparison)),
        false => output::print(&report::text(&comparison)),
    }
}
