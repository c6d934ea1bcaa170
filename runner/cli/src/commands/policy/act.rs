//! `runner policy act`.

use crate::commands::acting::acting;
use crate::commands::remote;
use crate::complete::{candidates, completed};
use crate::session::Session;
use crate::values::age;
use crate::{interrupt, output};
use chrono::{DateTime, Utc};
use clap::Args;
use datasets::{Date, SnapshotTime};
use runner_acting::{Decision, Given, MaxAge, Settings, Trained, find_policy};
use runner_engine::{Control, Failure, row, text};
use runner_history::Archive;
use runner_history::policies::{PolicyRef, Registry};
use stages_env::acting::{ActingOrder, Holding};
use std::time::Duration;

/// Decide: today's action of a policy from today's files.
///
/// Also the orders that it means. Nothing is placed.
///
/// The stages between the files and the policy's environment run again with the files, from the cache but
/// for what is new. The policy plays from the first test date on, as a backtest does, and decides at the
/// files' last moment; nothing after it is looked at. Observations are normalised as in training.
/// docs/guides/act.md has the rules and the forms of files.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner policy act latest/train --data today.csv
  runner policy act latest/train --data quotes=spx.csv --data rates=rates.csv --positions mine.csv
  runner policy act 'latest/train[seed=1]' --data prices.csv --replace --positions played --json
  runner policy act latest/train --data today.csv --max-age 30d --sample 7

Exit codes: 1 where the files or the age of the policy do not allow a decision; 2 where an argument is \
wrong.")]
pub(crate) struct PolicyActArgs {
    /// RUN/STAGE of a training, RUN/STAGE.OUTPUT, or NAME@ALIAS of a registered policy.
    #[arg(add = completed(candidates::stages_of_runs))]
    pub what: String,
    /// A file of today's data, or a directory or glob of them, for the stage that reads such files;
    /// repeatable. STAGE.SETTING=FILE for another setting than `path`. A file without a stage goes to the
    /// only one that can read it.
    #[arg(long, value_name = "[STAGE=]FILE", required = true)]
    pub data: Vec<String>,
    /// Read the files in place of the stages' own ones, not after them: for files that hold everything so
    /// far.
    #[arg(long)]
    pub replace: bool,
    /// Decide even if days are missing between what the stages read and the files.
    #[arg(long)]
    pub allow_gap: bool,
    /// The positions that are held: a file (CSV or JSON), `none`, or `played` for those that the policy would
    /// have, had it traded from the start on. A document of `policy act --json` of an earlier moment has its
    /// orders filled by the environment's rules.
    #[arg(long, value_name = "FILE|none|played", default_value = "none")]
    pub positions: String,
    /// Leave the orders of a document at `--positions` out: hold its account as it stands.
    #[arg(long)]
    pub as_is: bool,
    /// The cash that is held; by default that of the file, or the capital of the environment.
    #[arg(long, allow_negative_numbers = true)]
    pub cash: Option<f64>,
    /// The moment of the decision, `2024-01-19` or `2024-01-19T15:45:00Z`; by default the last one of the
    /// files.
    #[arg(long, value_name = "DATE")]
    pub at: Option<String>,
    /// The date from which the policy plays, which builds up its memory and its account; by default its
    /// first test date.
    #[arg(long, value_name = "DATE")]
    pub from: Option<String>,
    /// The world (symbol) to decide in, where the environment has several.
    #[arg(long, value_name = "NAME")]
    pub world: Option<String>,
    /// Also draw an action with this seed; its orders are shown instead of those of the likeliest one.
    #[arg(long, value_name = "SEED")]
    pub sample: Option<u64>,
    /// Refuse a policy whose training ended longer before the decision: `30d`. By default the age that it was
    /// registered with.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub max_age: Option<Duration>,
}

pub(super) fn act(session: &Session, args: &PolicyActArgs) -> Result<(), Failure> {
    let decision = decision(session, args, &interrupt::control()?, None)?;
    for note in &decision.notes {
        output::warn(note);
    }
    match session.json {
        true => output::print_json(&decision),
        false => output::print(&page(&decision)),
    }
}

/// The decision of a policy. That of the night with the run `night_run` goes to the remote store with it.
pub(crate) fn decision(
    session: &Session,
    args: &PolicyActArgs,
    control: &Control,
    night_run: Option<&str>,
) -> Result<Decision, Failure> {
    let archive = session.archive()?;
    let settings = Settings {
        data: args
            .data
            .iter()
            .map(|text| Given {
                text: text.clone(),
                current: session.current.clone(),
            })
            .collect(),
        replace: args.replace,
        allow_gap: args.allow_gap,
        account: runner_acting::account(&args.positions, args.cash, args.as_is, &session.current)?,
        at: args.at.as_deref().map(moment).transpose()?,
        from: args
            .from
            .as_deref()
            .map(|text| text.parse::<Date>().map_err(Failure::usage))
            .transpose()?,
        world: args.world.clone(),
        sample: args.sample,
        max_age: max_age(&archive, args)?,
    };
    let (run, stage) = runner_acting::origin(&archive, &args.what)?;
    let (digest, policy) = find_policy(&archive, &args.what)?;
    let trained = Trained {
        run,
        stage,
        digest,
        policy,
    };
    let _guard = archive.store.guard()?;
    let mut progress = output::progress(session.verbosity);
    let decision = acting(session, &archive, (control, "act"), |acting| {
        runner_acting::decide(acting, &trained, &settings, &mut progress)
    })?;
    archive.store.flush()?;
    match (night_run, archive.store.upstream()) {
        (Some(run), _) => remote::finish_uploads(session, &archive.store, run, control)?,
        (None, Some(upstream)) => remote::warn(upstream),
        (None, None) => {}
    }
    Ok(decision)
}

/// The limit of the policy's age: that of the command, or the one that it was registered with.
fn max_age(archive: &Archive, args: &PolicyActArgs) -> Result<Option<MaxAge>, Failure> {
    if let Some(age) = args.max_age {
        let named = "`--max-age`".to_owned();
        return Ok(Some(MaxAge { age, named }));
    }
    let Ok(reference) = PolicyRef::parse(&args.what) else {
        return Ok(None);
    };
    let (_, version) = Registry::new(archive.store.root()).get(&reference)?;
    Ok(version.from.max_age.map(|seconds| MaxAge {
        age: Duration::from_secs(seconds),
        named: format!("`max_age` of `{}@{}`", reference.name, version.version),
    }))
}

/// A day or an instant.
fn moment(text: &str) -> Result<SnapshotTime, Failure> {
    if let Ok(date) = text.parse::<Date>() {
        return Ok(SnapshotTime::of_day(date));
    }
    let instant: DateTime<Utc> = text.parse().map_err(|_| {
        Failure::usage(format!("`{text}` is neither a date nor a time"))
            .hint("write `--at 2024-01-19`, or `--at 2024-01-19T15:45:00Z`")
    })?;
    Ok(SnapshotTime {
        date: Date::from(instant.date_naive()),
        instant: Some(instant.timestamp_micros()),
    })
}

/// A number for display.
fn shown(value: f64) -> String {
    let text = format!("{value:.4}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn page(decision: &Decision) -> String {
    let (policy, acted) = (&decision.policy, &decision.acted);
    let mut out = format!("{} of {}: {}\n", acted.time, acted.world, acted.action.text);
    if let Some(drawn) = &acted.drawn {
        out.push_str(&format!("drawn: {}\n", drawn.text));
    }
    let age = match (policy.trained_until, policy.age_days) {
        (Some(until), Some(age)) => format!(
            ", trained until {until}, {} before",
            text::count(age.unsigned_abs() as usize, "day")
        ),
        _ => String::new(),
    };
    out.push_str(&format!(
        "policy: {}/{} ({}){age}\n",
        policy.run, policy.stage, policy.kind
    ));
    out.push_str(&format!("account: {}", acted.account_is));
    for (name, value) in [("cash", acted.account.cash), ("net asset value", acted.account.nav)] {
        if let Some(value) = value {
            out.push_str(&format!(", {name} {value:.2}"));
        }
    }
    out.push_str(&format!(
        "; {} played from {}\n",
        text::count(acted.played, "decision"),
        acted.played_from
    ));
    let rows: Vec<Vec<String>> = acted.account.positions.iter().map(position).collect();
    let header = ["held", "quantity", "mark", "opened", "strategy"];
    out.push_str(&text::block(&header, &rows, &[1, 2, 4]));
    if !acted.choices.is_empty() {
        let choice_row = |choice: &stages_evaluate::acting::Choice| {
            let mut row = row![
                choice.choice,
                format!("{:.2} %", 100.0 * choice.probability),
                choice.masked,
            ];
            row.extend(choice.component.clone());
            row.rotate_right(choice.component.iter().len());
            row
        };
        let rows: Vec<Vec<String>> = acted.choices.iter().map(choice_row).collect();
        out.push('\n');
        out.push_str(&match acted.choices[0].component {
            None => text::table(&["choice", "probability", "masked"], &rows, &[1]),
            Some(_) => text::table(&["component", "choice", "probability", "masked"], &rows, &[2]),
        });
    }
    let components = acted.components.iter().map(|component| {
        let deviation = component.standard_deviation.map(f64::from);
        row![
            component.component,
            shown(component.value.into()),
            shown(component.mean.into()),
            deviation.map(shown),
        ]
    });
    let header = ["component", "action", "mean", "standard deviation"];
    out.push_str(&text::block(&header, &components.collect::<Vec<_>>(), &[1, 2, 3]));
    out.push('\n');
    let orders = &acted.orders;
    if orders.orders.is_empty() {
        out.push_str("no orders\n");
    } else {
        let rows: Vec<Vec<String>> = orders.orders.iter().map(order).collect();
        let header = ["side", "quantity", "of", "limit", "bid", "mid", "ask", "cost", "why"];
        out.push_str(&text::table(&header, &rows, &[1, 3, 4, 5, 6, 7]));
        out.push_str(&format!(
            "expected: cash {:+.2}, of it costs {:.2}\n",
            orders.cash, orders.cost
        ));
    }
    if !orders.refused.is_empty() {
        out.push_str(&format!("not carried out: {}\n", orders.refused.join(", ")));
    }
    out
}

fn position(holding: &Holding) -> Vec<String> {
    row![
        holding.describe(),
        shown(holding.quantity),
        holding.mark.map(shown),
        holding.opened,
        holding.strategy.map(|strategy| strategy.to_string()),
    ]
}

fn order(order: &ActingOrder) -> Vec<String> {
    row![
        order.side.name(),
        shown(order.quantity),
        order.describe(),
        order.limit.map(shown),
        order.bid.map(shown),
        order.mid.map(shown),
        order.ask.map(shown),
        format!("{:.2}", order.cost),
        order.why,
    ]
}
