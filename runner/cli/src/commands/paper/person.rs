//! A person's acts on an account: `runner paper halt`, `resume`, `close`, `deposit` and `withdraw`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Args;
use runner_engine::Failure;
use runner_history::paper::{Change, Entry, Ledger, Night, Stop, lock};

/// The largest deposit, in net asset values of the account.
const MOST: f64 = 100.0;

/// An account, and a reason.
#[derive(Args, Clone, Debug)]
pub(crate) struct WhyArgs {
    /// The name of the account.
    #[arg(add = completed(candidates::accounts))]
    pub name: String,
    /// The reason, which the ledger keeps.
    #[arg(long, value_name = "TEXT")]
    pub why: String,
}

/// An account, and an amount.
#[derive(Args, Clone, Debug)]
pub(crate) struct AmountArgs {
    /// The name of the account.
    #[arg(add = completed(candidates::accounts))]
    pub name: String,
    /// The amount, above 0, in the currency of the account.
    #[arg(allow_negative_numbers = true)]
    pub amount: f64,
    /// The reason, which the ledger keeps.
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
}

/// Adds an entry that a person makes, after the last night.
fn add(
    session: &Session,
    name: &str,
    entry: impl FnOnce(&Ledger, &Night) -> Result<Entry, Failure>,
    said: &str,
) -> Result<(), Failure> {
    let archive = session.archive()?;
    let home = archive.store.root();
    let Some(_lock) = lock(home, name)? else {
        return Err(Failure::usage(format!("another process is booking nights of `{name}`"))
            .hint("try again when it is done"));
    };
    let mut ledger = Ledger::read(home, name)?;
    if ledger.is_closed() {
        return Err(Failure::usage(format!("the account `{name}` is closed"))
            .hint("`runner paper open` opens another one"));
    }
    let night = ledger.last_night().cloned().ok_or_else(|| {
        Failure::usage(format!("`{name}` has no booked night yet"))
            .hint("`runner paper run` books the first one; the capital is given when it is opened")
    })?;
    let entry = entry(&ledger, &night)?;
    ledger.append(vec![entry.clone()])?;
    match session.json {
        true => output::print_json(&entry),
        false => output::print(&format!("{name}: {said} after the night {}\n", night.time)),
    }
}

fn stop(night: &Night, why: &str) -> Stop {
    Stop {
        date: night.date,
        by: "person".to_owned(),
        why: why.to_owned(),
    }
}

pub(super) fn halt(session: &Session, args: &WhyArgs) -> Result<(), Failure> {
    let entry = |ledger: &Ledger, night: &Night| match ledger.stopped() {
        Some(stopped) => Err(Failure::usage(format!(
            "`{}` is halted since {}: {}",
            args.name, stopped.date, stopped.why
        ))
        .hint("`runner paper resume` lets it act again")),
        None => Ok(Entry::Halted(stop(night, &args.why))),
    };
    add(session, &args.name, entry, "halted")
}

pub(super) fn resume(session: &Session, args: &WhyArgs) -> Result<(), Failure> {
    let entry = |ledger: &Ledger, night: &Night| match ledger.stopped() {
        None => Err(Failure::usage(format!("`{}` is not halted", args.name))
            .hint("`runner paper show` shows its state")),
        Some(_) => Ok(Entry::Resumed(stop(night, &args.why))),
    };
    add(session, &args.name, entry, "resumed")
}

pub(super) fn close(session: &Session, args: &WhyArgs) -> Result<(), Failure> {
    let entry = |_: &Ledger, night: &Night| {
        if !night.book.positions.is_empty() {
            output::warn(&format!(
                "it holds {} positions, whose closing would cost {:.2}: the statement ends at their marks",
                night.book.positions.len(),
                night.book.closing_cost
            ));
        }
        Ok(Entry::Closed(stop(night, &args.why)))
    };
    add(session, &args.name, entry, "closed")
}

pub(super) fn transfer(session: &Session, args: &AmountArgs, sign: f64) -> Result<(), Failure> {
    if !(args.amount.is_finite() && args.amount > 0.0) {
        return Err(Failure::usage(format!("{} is not a valid amount", args.amount))
            .hint("give one above 0; `deposit` adds it, `withdraw` takes it"));
    }
    let amount = sign * args.amount;
    let entry = |ledger: &Ledger, night: &Night| {
        // What was moved since the night is not in its book.
        let moved: f64 = ledger
            .entries()
            .iter()
            .rev()
            .take_while(|entry| !matches!(entry, Entry::Night(_)))
            .filter_map(|entry| match entry {
                Entry::Transfer(change) => Some(change.amount),
                _ => None,
            })
            .sum();
        let book = &night.book;
        let is_fraction = book.positions.iter().any(|position| position.of.is_fraction());
        let free = match is_fraction {
            // Positions are fractions of what is left.
            true => book.nav + moved,
            false => (book.cash - book.margin).min(book.nav) + moved,
        };
        if amount > MOST * book.nav {
            return Err(Failure::usage(format!(
                "{:.2} is more than {MOST} times the net asset value of {:.2}",
                args.amount, book.nav
            ))
            .hint("if it is right, deposit it in parts"));
        }
        let free = free.max(0.0);
        if amount < 0.0 && -amount >= free {
            return Err(Failure::usage(format!(
                "{:.2} cannot be withdrawn: {free:.2} is free after the night {}",
                args.amount, night.time
            ))
            .hint("withdraw less, or when positions have been closed"));
        }
        Ok(Entry::Transfer(Change {
            date: night.date,
            amount,
            why: args.why.clone(),
        }))
    };
    let said = match sign > 0.0 {
        true => format!("{:.2} deposited, to be booked with the next one,", args.amount),
        false => format!("{:.2} withdrawn, to be booked with the next one,", args.amount),
    };
    add(session, &args.name, entry, &said)
}
