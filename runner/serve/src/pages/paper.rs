//! The paper accounts.

use crate::layout::{Page, link, paper_address};
use crate::site::Site;
use runner_engine::{Failure, row};
use runner_history::paper::Ledger;
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
                    paper_state(&ledger),
                    escape(&ledger.policy().name),
                    format!("{:.2}", ledger.opened().capital),
                    night.map(|night| night.date),
                    night.map(|night| format!("{:.2}", night.book.nav)),
                    night.map(|night| format!("{:.2} %", 100.0 * (night.standing.growth - 1.0))),
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
        true => body.push_str("<p>No accounts: <code>runner paper open NAME</code> opens the first.</p>\n"),
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
    let body = format!("<h1>{}</h1>\n{}", escape(name), paper_account(&ledger));
    Ok(Page::new(format!("Account {name}"), "/paper", body))
}
