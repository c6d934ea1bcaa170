//! The paper accounts.

use crate::layout::{Page, link, paper_address};
use crate::parts::{empty, status};
use crate::site::Site;
use runner_engine::{Failure, row};
use runner_history::paper::Ledger;
use runner_report::figures::{Unit, shown, signed};
use runner_report::html::{escape, table};
use runner_report::{paper_account, paper_state};

pub(crate) fn papers(site: &Site) -> Result<Page, Failure> {
    let mut body = String::from("<h1>Paper accounts</h1>\n");
    let mut rows = Vec::new();
    for name in Ledger::names(&site.home)? {
        let address = link(&paper_address(&name), &name);
        // A ledger whose past was changed must not hide the others.
        rows.push(match Ledger::read(&site.home, &name) {
            Ok(ledger) => {
                let night = ledger.last_night();
                row![
                    address,
                    status(paper_state(&ledger)),
                    escape(&ledger.policy().name),
                    shown(ledger.opened().capital, Unit::Money),
                    night.map(|night| night.date),
                    night.map(|night| shown(night.book.nav, Unit::Money)),
                    night.map(|night| signed(night.standing.growth - 1.0, Unit::Percent)),
                ]
            }
            Err(failure) => row![
                address,
                format!("<span class=\"failed\">{}</span>", escape(&failure.message)),
                "",
                "",
                "",
                "",
                ""
            ],
        });
    }
    match rows.is_empty() {
        true => body.push_str(&empty(
            "No accounts yet.",
            "<code>runner paper open NAME --policy POLICY</code> opens the first: it trades a policy \
            forward, on \
            data that did not exist when it was trained.",
        )),
        false => body.push_str(&table(
            &[
                "account",
                "state",
                "policy",
                "capital",
                "last night",
                "net asset value",
                "return",
            ],
            &rows,
        )),
    }
    Ok(Page::new("Paper accounts", "/paper", body))
}

pub(crate) fn paper(site: &Site, name: &str) -> Result<Page, Failure> {
    let ledger = Ledger::read(&site.home, name)?;
    let body = format!(
        "<p class=\"crumbs\">{} / {}</p><h1>{}</h1>\n{}",
        link("/paper", "Paper accounts"),
        escape(name),
        escape(name),
        paper_account(&ledger)
    );
    Ok(Page::new(format!("Account {name}"), "/paper", body))
}
