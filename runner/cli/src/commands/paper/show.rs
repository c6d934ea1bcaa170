//! `runner paper show`.

use crate::output;
use crate::session::Session;
use runner_engine::{Failure, row, text};
use runner_history::paper::{Entry, Ledger, Night, Order, Position};
use serde_json::{Value, json};
use std::path::Path;

/// Reads an account and verifies it; what was dropped is told.
pub(super) fn read(home: &Path, name: &str) -> Result<Ledger, Failure> {
    let ledger = Ledger::read(home, name)?;
    ledger.notes().iter().for_each(|note| output::warn(note));
    ledger.verify()?;
    Ok(ledger)
}

/// The state of an account, in a word.
fn state(ledger: &Ledger) -> &'static str {
    match ledger.stopped() {
        _ if ledger.is_closed() => "closed",
        Some(_) => "halted",
        None => "open",
    }
}

/// The table of the accounts. One whose past was changed is in it; the command fails then.
pub(super) fn list(session: &Session) -> Result<(), Failure> {
    let home = session.home(None);
    let names = Ledger::names(&home)?;
    let (mut rows, mut all, mut failure) = (Vec::new(), Vec::new(), None);
    for name in names {
        match read(&home, &name) {
            Ok(ledger) => {
                let night = ledger.last_night();
                rows.push(row![
                    name,
                    state(&ledger),
                    ledger.policy().name,
                    night.map(|night| night.time.as_str()),
                    night.map(|night| night.number + 1),
                    night.map(|night| money(night.book.nav)),
                    night.map(|night| percent(night.standing.growth - 1.0)),
                    night.map(|night| percent(night.drawdown)),
                    night.map(|night| text::figure(night.standing.evidence)),
                ]);
                all.push(summary(&ledger));
            }
            Err(err) => {
                rows.push(row![name, "not readable", None::<&str>, None::<&str>, None::<&str>]);
                all.push(json!({ "name": name, "state": "not readable", "error": err.message }));
                failure.get_or_insert(err);
            }
        }
    }
    if session.json {
        output::print_json(&all)?;
    } else if rows.is_empty() {
        output::print(
            "no paper accounts: `runner paper open NAME --policy desk@champion --capital 1e6` opens the \
            first\n",
        )?;
    } else {
        let head = [
            "account",
            "state",
            "policy",
            "last night",
            "nights",
            "nav",
            "return",
            "drawdown",
            "evidence",
        ];
        output::print(&text::table(&head, &rows, &[4, 5, 6, 7, 8]))?;
    }
    failure.map_or(Ok(()), Err)
}

fn summary(ledger: &Ledger) -> Value {
    json!({
        "name": ledger.name(),
        "state": state(ledger),
        "policy": ledger.policy(),
        "entries": ledger.entries().len(),
        "hash": ledger.hashes().last(),
        "opened": ledger.opened(),
        "night": ledger.last_night(),
    })
}

/// An account: where it stands, what it holds, and what is decided.
pub(super) fn show(session: &Session, name: &str, last: usize) -> Result<(), Failure> {
    let ledger = read(&session.home(None), name)?;
    if session.json {
        let mut value = summary(&ledger);
        let nights: Vec<&Night> = ledger.nights().collect();
        value["nights"] = json!(nights[nights.len().saturating_sub(last)..]);
        value["alarms"] = json!(alarms(&ledger));
        value["halted"] = json!(ledger.stopped());
        return output::print_json(&value);
    }
    output::print(&page(&ledger, last))
}

/// The page of an account, in text.
pub(super) fn page(ledger: &Ledger, last: usize) -> String {
    let opened = ledger.opened();
    let mut out = format!(
        "{}: {}\npolicy {} ({}), named {}\nopened {} with {}{}\n",
        ledger.name(),
        state(ledger),
        ledger.policy().name,
        ledger.policy().digest.short(),
        opened.policy,
        opened.opened.format("%Y-%m-%d %H:%M UTC"),
        money(opened.capital),
        opened
            .world
            .as_ref()
            .map(|world| format!(", world {world}"))
            .unwrap_or_default(),
    );
    if let Some(stop) = ledger.stopped() {
        out.push_str(&format!("halted after {} by {}: {}\n", stop.date, stop.by, stop.why));
    }
    let Some(night) = ledger.last_night() else {
        return out + "no night yet: `runner paper run` takes the first\n";
    };
    let standing = &night.standing;
    out.push_str(&format!(
        "night {} of {}: nav {}, cash {}, return {}, drawdown {} (largest {})\n",
        night.number + 1,
        night.time,
        money(night.book.nav),
        money(night.book.cash),
        percent(standing.growth - 1.0),
        percent(night.drawdown),
        percent(standing.drawdown),
    ));
    out.push_str(&format!(
        "promise: {}, evidence against it {} (alarm at {}){}\n",
        match standing.broken {
            true => "broken",
            false => "kept so far",
        },
        text::figure(standing.evidence),
        text::figure(1.0 / opened.promise.false_alarm_rate),
        match standing.quantile {
            Some(quantile) => format!(", {} of promised paths are lower", percent(quantile)),
            None => String::new(),
        },
    ));
    let is_over = ledger.is_over();
    out.push_str(&match is_over {
        true => "decided: nothing that is still traded\n".to_owned(),
        false => format!("decided: {}\n", night.action),
    });
    out.push_str(&positions(&night.book.positions));
    if !is_over {
        out.push_str(&orders(&night.orders));
    }
    for refused in night.refused.iter().chain(&night.notes) {
        out.push_str(&format!("note: {refused}\n"));
    }
    out.push_str(&nights(ledger, last));
    let beside: Vec<Vec<String>> = night
        .beside
        .iter()
        .map(|(name, shadow)| {
            row![
                name,
                shadow.policy.as_ref().map(|policy| policy.name.as_str()),
                ledger.nights().nth(shadow.since).map(|night| night.time.as_str()),
                money(shadow.nav),
                percent(shadow.nav / opened.capital - 1.0),
            ]
        })
        .collect();
    out.push_str(&text::block(
        &["beside", "policy", "since", "nav", "return"],
        &beside,
        &[2, 3, 4],
    ));
    let rows: Vec<Vec<String>> = alarms(ledger)
        .into_iter()
        .map(|alarm| row![alarm.0, alarm.1, alarm.2])
        .collect();
    out.push_str(&text::block(&["date", "alarm", "why"], &rows, &[]));
    out + &super::fills::slippage(ledger).unwrap_or_default()
}

fn positions(positions: &[Position]) -> String {
    let rows: Vec<Vec<String>> = positions
        .iter()
        .map(|position| {
            let greeks = position.greeks.iter();
            let greeks = greeks.map(|(name, value)| format!("{name} {}", text::figure(*value)));
            row![
                position.of.to_string(),
                text::figure(position.quantity),
                position.mark.map(text::figure),
                money(position.value),
                greeks.collect::<Vec<_>>().join(", "),
            ]
        })
        .collect();
    text::block(&["position", "quantity", "mark", "value", "Greeks"], &rows, &[1, 2, 3])
}

fn orders(orders: &[Order]) -> String {
    let rows: Vec<Vec<String>> = orders
        .iter()
        .map(|order| {
            row![
                order.id,
                order.side,
                text::figure(order.quantity),
                order.of.to_string(),
                order.limit.map(text::figure),
                order.mid.map(text::figure),
                money(order.cost),
                order.why,
            ]
        })
        .collect();
    let head = ["order", "side", "quantity", "instrument", "limit", "mid", "cost", "why"];
    text::block(&head, &rows, &[2, 4, 5, 6])
}

fn nights(ledger: &Ledger, last: usize) -> String {
    let mut rows: Vec<Vec<String>> = ledger
        .nights()
        .rev()
        .take(last)
        .map(|night| {
            row![
                night.time,
                money(night.book.nav),
                percent(night.log_return.exp_m1()),
                percent(night.costs),
                percent(night.drawdown),
                text::figure(night.standing.evidence),
                night.policy.name,
                night.action,
            ]
        })
        .collect();
    rows.reverse();
    let head = [
        "night", "nav", "return", "costs", "drawdown", "evidence", "policy", "action",
    ];
    text::block(&head, &rows, &[1, 2, 3, 4, 5])
}

/// The alarms, halts, resumptions, moves of the policy and corrections, in order: date, kind and reason.
fn alarms(ledger: &Ledger) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut was_broken = false;
    for entry in ledger.entries() {
        let (kind, why) = match entry {
            Entry::Night(night) if night.standing.broken && !was_broken => {
                was_broken = true;
                let evidence = text::figure(night.standing.evidence);
                ("promise", format!("broken: evidence {evidence}"))
            }
            Entry::Halted(stop) => ("halted", format!("{}: {}", stop.by, stop.why)),
            Entry::Resumed(stop) => ("resumed", stop.why.clone()),
            Entry::Closed(stop) => ("closed", stop.why.clone()),
            Entry::Policy(moved) => ("policy", format!("{} -> {}", moved.from.name, moved.to.name)),
            Entry::Correction(correction) => (
                "correction",
                format!(
                    "{} of {}: {} -> {}",
                    correction.what,
                    correction.of,
                    correction.before.map(text::figure).unwrap_or("none".to_owned()),
                    correction.after.map(text::figure).unwrap_or("none".to_owned()),
                ),
            ),
            _ => continue,
        };
        found.push((entry.date().to_string(), kind.to_owned(), why));
    }
    found
}

/// An amount of money with two decimals.
pub(super) fn money(amount: f64) -> String {
    format!("{amount:.2}")
}

/// A fraction in per cent.
pub(super) fn percent(fraction: f64) -> String {
    format!("{:.2} %", fraction * 100.0)
}
