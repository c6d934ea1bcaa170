//! `runner paper open`.

use crate::commands::acting::acting;
use crate::commands::schedule::clock_at;
use crate::complete::{candidates, completed};
use crate::session::Session;
use crate::values::age;
use crate::{interrupt, output};
use chrono::{DateTime, SubsecRound as _, Utc};
use clap::{Args, ValueEnum};
use datasets::Date;
use runner_acting::paper::{Opening, Papers, open as open_account};
use runner_engine::{Failure, text};
use runner_history::paper::{Ledger, PromiseRecord, lock};
use runner_history::policies::{Registry, check_policy_name};
use std::collections::BTreeMap;
use std::time::Duration;

/// Open an account: a policy, its capital, and what is promised.
///
/// The promise is fixed now: the policy plays the validation and test dates of its training once more, with
/// fills at the next snapshot. Nights are booked by `runner paper run`, or by `then: { paper: NAME }` of a
/// schedule. An alias is followed: a newly promoted version takes over the book.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner paper open desk-paper --policy desk@champion --capital 1e6
  runner paper open straddle --policy latest/train --beside cash,short_straddle --halt close
  runner paper open walk --policy latest/train --from 2019-07-01 --max-drawdown 0.2")]
pub(crate) struct OpenArgs {
    /// The name of the account.
    pub name: String,
    /// The policy: NAME@ALIAS, NAME@VERSION, or RUN/STAGE of a training.
    #[arg(long, value_name = "POLICY", add = completed(candidates::policies))]
    pub policy: String,
    /// The capital, in the currency of the prices [default: that of the environment].
    #[arg(long, value_name = "AMOUNT")]
    pub capital: Option<f64>,
    /// The first date from which nights count [default: today]. With an earlier one the account walks through
    /// history first, which is told apart.
    #[arg(long, value_name = "DATE")]
    pub from: Option<Date>,
    /// The world (symbol), where the environment has several.
    #[arg(long, value_name = "NAME")]
    pub world: Option<String>,
    /// Accounts beside it on the same data: cash, underlying, short_straddle, equal_weight, NAME@ALIAS of a
    /// policy, `previous` (the version that acted before) [default: the rules that the environment has, and
    /// `previous` where an alias is followed].
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub beside: Option<Vec<String>>,
    /// The handling of the book on a halt: held as it is, or closed.
    #[arg(long, value_enum, default_value_t = Halt::Hold)]
    pub halt: Halt,
    /// Halt at a drawdown beyond this fraction.
    #[arg(long, value_name = "FRACTION")]
    pub max_drawdown: Option<f64>,
    /// Halt when positions exceed this multiple of the net asset value.
    #[arg(long, value_name = "MULTIPLE")]
    pub max_gross: Option<f64>,
    /// Halt when the training ended longer ago: `60d` [default: the age that the version is registered with].
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub max_age: Option<Duration>,
    /// The probability that an alarm is ever raised on an account that keeps its promise.
    #[arg(long, value_name = "RATE", default_value_t = 0.05)]
    pub false_alarms: f64,
    /// Act as if it were this instant [default: now].
    #[arg(long, value_name = "INSTANT")]
    pub now: Option<DateTime<Utc>>,
}

/// The book on a halt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Halt {
    /// The positions are held; those that expire are settled.
    Hold,
    /// Everything that has a quote is closed.
    Close,
}

pub(super) fn open(session: &Session, args: &OpenArgs) -> Result<(), Failure> {
    check_policy_name(&args.name).map_err(|_| {
        Failure::usage(format!("`{}` is not a valid account name", args.name))
            .hint("a name begins with a letter, and has letters, digits, `_`, `-` and `.`")
    })?;
    let limits = limits(args)?;
    let archive = session.archive()?;
    let home = archive.store.root();
    if Ledger::find(home, &args.name)?.is_some() {
        return Err(Failure::usage(format!("there is already an account `{}`", args.name))
            .hint("choose another name; a ledger is never restarted"));
    }
    let now = clock_at(args.now).now();
    let opening = Opening {
        name: args.name.clone(),
        policy: args.policy.clone(),
        capital: args.capital,
        world: args.world.clone(),
        from: args.from.unwrap_or_else(|| Date::from(now.date_naive())),
        // As the ledger writes it.
        opened: now.trunc_subsecs(3),
        beside: args.beside.clone(),
        halt: match args.halt {
            Halt::Hold => "hold".to_owned(),
            Halt::Close => "close".to_owned(),
        },
        limits,
        false_alarm_rate: args.false_alarms,
    };
    let registry = Registry::new(home);
    let _guard = archive.store.guard()?;
    let control = interrupt::control()?;
    let (opened, notes) = acting(session, &archive, (&control, "paper"), |acting| {
        let papers = Papers {
            acting,
            registry: &registry,
        };
        open_account(&papers, &opening)
    })?;
    for note in &notes {
        output::warn(note);
    }
    let Some(_lock) = lock(home, &args.name)? else {
        return Err(
            Failure::usage(format!("another process is opening `{}`", args.name)).hint("choose another name")
        );
    };
    Ledger::create(home, opened.clone())?;
    if session.json {
        return output::print_json(&opened);
    }
    output::print(&format!(
        "{}: {} ({}), {:.2} from {} on; beside it {}\n{}",
        opened.name,
        opened.policy,
        opened.version.name,
        opened.capital,
        opened.from,
        match opened.beside.is_empty() {
            true => "nothing".to_owned(),
            false => opened.beside.join(", "),
        },
        promised(&opened.promise)
    ))
}

fn limits(args: &OpenArgs) -> Result<BTreeMap<String, f64>, Failure> {
    let days = args.max_age.map(|age| age.as_secs_f64() / 86_400.0);
    let given = [
        ("drawdown", "--max-drawdown", args.max_drawdown, 1.0),
        ("gross", "--max-gross", args.max_gross, f64::MAX),
        ("max_age", "--max-age", days, f64::MAX),
    ];
    let mut limits = BTreeMap::new();
    for (name, option, value, most) in given {
        let Some(value) = value else { continue };
        if !(value > 0.0 && value <= most) {
            return Err(
                Failure::usage(format!("`{option} {value}` is not a valid limit")).hint(format!(
                    "give a number above 0{}",
                    if most == 1.0 { ", at most 1" } else { "" }
                )),
            );
        }
        limits.insert(name.to_owned(), value);
    }
    if !(args.false_alarms > 0.0 && args.false_alarms <= 0.5) {
        return Err(
            Failure::usage(format!("`--false-alarms {}` is not a valid rate", args.false_alarms)).hint(
                "give one above 0, at most 0.5: 0.05 is one of twenty accounts that keep their promise",
            ),
        );
    }
    Ok(limits)
}

/// The promise in words.
fn promised(promise: &PromiseRecord) -> String {
    let year = promise.steps_a_year;
    let dates = match promise.dates {
        Some((first, last)) => format!(" from {first} to {last}"),
        None => String::new(),
    };
    format!(
        "promised by {} of backtests{dates}: an excess log return of {:.2} % a year with a deviation of {:.2} %, \
        a turnover of {:.3} and costs of {:.2} basis points a step; an alarm of a promise that is kept has a \
        probability of {}\n",
        text::count(promise.steps, "step"),
        100.0 * promise.mean * year,
        100.0 * promise.deviation * year.sqrt(),
        promise.turnover,
        1e4 * promise.costs,
        promise.false_alarm_rate
    )
}
