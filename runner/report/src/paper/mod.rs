//! A paper account: where it stands in its promise, what it holds and ordered, what fills and costs came to.

mod charts;
mod tables;
#[cfg(test)]
mod tests;

use crate::html::{escape, section};
use charts::{beside, drawdowns, equity, evidence};
use runner_engine::{row, text};
use runner_history::paper::{Entry, Ledger, Night, PromiseRecord};
use std::fmt::Write as _;
use tables::{accounts_beside, costs, fills, last_nights, orders, positions};

/// The number of nights, of fills and of corrections that are listed: the last ones.
const LISTED: usize = 30;

/// The account of a ledger as HTML, under headings of the third level.
pub fn paper_account(ledger: &Ledger) -> String {
    let nights: Vec<&Night> = ledger.nights().collect();
    let mut out = status(ledger, &nights);
    let _ = writeln!(
        out,
        "<div class=\"charts\">\n{}{}{}{}</div>",
        equity(ledger, &nights),
        drawdowns(ledger, &nights),
        evidence(ledger, &nights),
        beside(&nights)
    );
    for note in ledger.notes() {
        let _ = writeln!(out, "<p class=\"verdict\">{}</p>", escape(note));
    }
    out.push_str(&events(ledger, &nights));
    if let Some(night) = nights.last() {
        out.push_str(&positions(night));
        if !ledger.is_over() {
            out.push_str(&orders(night));
        }
    }
    out.push_str(&fills(ledger, &nights));
    out.push_str(&costs(&nights));
    out.push_str(&accounts_beside(&nights));
    out.push_str(&last_nights(&nights));
    out
}

/// The state of an account in a word: `running`, `halted`, `broken` or `closed`.
pub fn paper_state(ledger: &Ledger) -> &'static str {
    let is_broken = ledger.last_night().is_some_and(|night| night.standing.broken);
    match (ledger.is_closed(), ledger.stopped(), is_broken) {
        (true, ..) => "closed",
        (_, Some(_), _) => "halted",
        (.., true) => "broken",
        _ => "running",
    }
}

/// A number: an amount of money to the cent, anything smaller to five digits.
fn figure(value: f64) -> String {
    match value.abs() >= 1e3 && value.is_finite() {
        true => format!("{value:.2}"),
        false => text::figure(value),
    }
}

fn percent(value: f64) -> String {
    format!("{:.2} %", 100.0 * value)
}

/// The value of evidence at which the promise counts as broken.
fn limit(promise: &PromiseRecord) -> Option<f64> {
    (promise.false_alarm_rate > 0.0).then(|| 1.0 / promise.false_alarm_rate)
}

/// The drawdown at each night: the loss since the highest value before, as a fraction.
fn fall(nights: &[&Night]) -> Vec<f64> {
    nights.iter().map(|night| night.drawdown).collect()
}

fn status(ledger: &Ledger, nights: &[&Night]) -> String {
    let opened = ledger.opened();
    let state = paper_state(ledger);
    let class = match state {
        "running" => "done",
        "closed" => "skipped",
        _ => "failed",
    };
    let mut out = format!(
        "<p><span class=\"{class}\">{state}</span>: {} acts ({}), with {} since {}",
        escape(&opened.policy),
        escape(&ledger.policy().name),
        figure(opened.capital),
        opened.from
    );
    if let Some(stop) = ledger.stopped().filter(|_| !ledger.is_closed()) {
        let _ = write!(
            out,
            "; halted on {} by {}: {}. <code>runner paper resume {}</code> lets it act again",
            stop.date,
            escape(&stop.by),
            escape(&stop.why),
            escape(ledger.name())
        );
    }
    out.push_str("</p>\n");
    let (Some(last), Some(fallen)) = (nights.last(), fall(nights).last().copied()) else {
        out.push_str("<p>No night yet: <code>runner paper run</code> runs the first.</p>\n");
        return out;
    };
    let standing = &last.standing;
    let rows = [row![
        last.time,
        figure(last.book.nav),
        percent(standing.growth - 1.0),
        standing.quantile.map(percent),
        percent(fallen),
        percent(standing.drawdown),
        figure(standing.evidence),
        limit(&opened.promise).map(figure),
        escape(&standing.drifted.join(", ")),
    ]];
    let head = [
        "night",
        "net asset value",
        "return",
        "promised paths below",
        "drawdown",
        "largest",
        "evidence against the promise",
        "alarm at",
        "features that drifted",
    ];
    out + &section("", &head, &rows)
}

/// The alarms, halts, moves of policies, transfers and corrections, the last first.
fn events(ledger: &Ledger, nights: &[&Night]) -> String {
    let mut rows: Vec<(usize, Vec<String>)> = Vec::new();
    for (at, entry) in ledger.entries().iter().enumerate() {
        let told = match entry {
            Entry::Halted(stop) => format!("halted by {}: {}", stop.by, stop.why),
            Entry::Resumed(stop) => format!("resumed by {}: {}", stop.by, stop.why),
            Entry::Closed(stop) => format!("closed by {}: {}", stop.by, stop.why),
            Entry::Transfer(change) => format!(
                "{} {}{}",
                if change.amount < 0.0 { "withdrawn" } else { "added" },
                figure(change.amount.abs()),
                change.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
            ),
            Entry::Policy(moved) => {
                format!("{} acts, before {}", moved.to.name, moved.from.name)
            }
            Entry::Correction(correction) => format!(
                "restated: {} of {}: {} before, {} now; {} of the net asset value then",
                correction.what,
                correction.of,
                correction.before.map_or("none".to_owned(), figure),
                correction.after.map_or("none".to_owned(), figure),
                figure(correction.difference)
            ),
            Entry::Fills { file, fills, .. } => format!("{} fills of `{file}`", fills.len()),
            Entry::Opened(_) | Entry::Night(_) => continue,
        };
        rows.push((at, row![entry.date(), escape(&told)]));
    }
    if let Some(broken) = nights.iter().find(|night| night.standing.broken) {
        let told = format!("the promise is broken: evidence {}", figure(broken.standing.evidence));
        let at = ledger.entries().iter().position(|entry| entry.date() >= broken.date);
        rows.push((at.unwrap_or_default(), row![broken.date, told]));
    }
    rows.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let rows: Vec<Vec<String>> = rows.into_iter().take(LISTED).map(|(_, row)| row).collect();
    section("<h3>Alarms, halts and changes</h3>", &["night", "what"], &rows)
}
