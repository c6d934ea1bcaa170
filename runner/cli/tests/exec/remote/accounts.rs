//! Ledgers of paper accounts in a remote store.

use super::{CHAIN, Site, document};
use crate::ledger::LEDGER;

fn first_lines(n: usize) -> String {
    LEDGER.lines().take(n).map(|line| format!("{line}\n")).collect()
}

#[test]
fn ledgers_are_pushed_and_pulled_with_the_store() {
    let site = Site::new(CHAIN);
    assert_eq!(site.exec("first", &[]).code, 0);
    site.project.write("first/paper/a.jsonl", first_lines(4));
    let pushed = document(&site.run("first", &["cache", "push", "--json"]));
    assert_eq!(pushed["accounts"]["a"], "uploaded", "{pushed}");
    let again = document(&site.run("first", &["cache", "push", "--json"]));
    assert!(again.get("accounts").is_none(), "{again}");
    let pulled = document(&site.run("second", &["cache", "pull", "--all", "--json"]));
    assert_eq!(pulled["accounts"]["a"], "fetched", "{pulled}");
    let of = |home: &str| std::fs::read_to_string(site.path(&format!("{home}/paper/a.jsonl"))).unwrap();
    assert_eq!(of("second"), first_lines(4));
    // The second goes on, and then the first goes on differently.
    site.project.write("second/paper/a.jsonl", LEDGER);
    let pushed = document(&site.run("second", &["cache", "push", "--all", "--json"]));
    assert_eq!(pushed["accounts"]["a"], "uploaded", "{pushed}");
    site.project.write(
        "fills.csv",
        "id,date,symbol,quantity,price\nx,2024-01-02,AAA,-100,9.99\n",
    );
    let filled = site.run("first", &["paper", "fills", "a", "fills.csv"]);
    assert_eq!(filled.code, 0, "{}", filled.text());
    let ours = of("first");
    for args in [&["cache", "pull", "--all"][..], &["cache", "push"]] {
        let refused = site.run("first", args);
        let told = "account a: not changed: the copies here and in the remote have diverged, from line 5 on";
        assert!(refused.stdout.contains(told), "{}", refused.text());
    }
    assert_eq!(of("first"), ours);
}
