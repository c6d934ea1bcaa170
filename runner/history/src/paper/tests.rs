//! Tests of ledgers: the chain, the rules, and the file.

use super::chain::{encode, origin, read};
use super::sample::*;
use super::*;
use proptest::prelude::*;
use runner_engine::exit;

fn text() -> String {
    encode(0, &origin(), &account()).unwrap().0
}

/// The line at which a text's chain breaks; 0 if it does not.
fn broken(text: &str) -> usize {
    read(text.as_bytes()).map_or_else(|broken| broken.line, |_| 0)
}

#[test]
fn a_chain_is_read_as_it_was_written() {
    let chain = read(text().as_bytes()).unwrap();
    assert_eq!(chain.entries, account());
    assert_eq!(chain.length, text().len());
    assert_eq!((chain.is_open, chain.dropped), (false, None));
    // The digest is that of the text after it.
    let first = text().lines().next().unwrap().to_owned();
    let (hash, rest) = first.strip_prefix("{\"hash\":\"").unwrap().split_at(64);
    let rest = rest.strip_prefix("\",").unwrap();
    assert_eq!(blake3::hash(rest.as_bytes()).to_hex().as_str(), hash);
    assert!(rest.starts_with(&format!(
        "\"prev\":\"{}\",\"n\":0,\"left\":5,\"entry\":\"opened\"",
        "0".repeat(64)
    )));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn a_changed_past_is_found_at_its_first_line(
        kind in 0..5,
        at in 0_usize..6,
        other in 0_usize..6,
        byte in 0_usize..1 << 16,
        with in 0_u8..=255,
    ) {
        let text = text();
        let mut lines: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
        let first = match kind {
            // A byte is another one.
            0 => {
                let byte = byte % lines[at].len();
                prop_assume!(lines[at][byte] != with && with != b'\n');
                lines[at][byte] = with;
                at
            }
            // A line is removed, and one follows it.
            1 => {
                prop_assume!(at + 1 < lines.len());
                lines.remove(at);
                at
            }
            // Two lines change places.
            2 => {
                prop_assume!(at != other);
                lines.swap(at, other);
                at.min(other)
            }
            // A copy of a line is added.
            3 => {
                let copy = lines[other].clone();
                // A copy of the next line in its own place is that line: the original is the addition.
                lines.insert(at, copy);
                if at == other { at + 1 } else { at }
            }
            // A byte is added.
            _ => {
                let byte = byte % (lines[at].len() + 1);
                prop_assume!(with != b'\n');
                lines[at].insert(byte, with);
                at
            }
        };
        let mut changed = lines.join(&b'\n');
        changed.push(b'\n');
        let found = read(&changed).map_err(|broken| broken.line);
        prop_assert_eq!(found.map(|chain| chain.entries.len()), Err(first + 1));
    }

    #[test]
    fn entries_are_added_together_or_not_at_all(cut in 0_usize..1 << 20) {
        let (first, rest) = (account()[..2].to_vec(), account()[2..].to_vec());
        let (before, hashes) = encode(0, &origin(), &first).unwrap();
        let (added, _) = encode(2, &hashes[1], &rest).unwrap();
        let cut = cut % (added.len() + 1);
        let chain = read(format!("{before}{}", &added[..cut]).as_bytes()).unwrap();
        // The last line feed alone may be missing.
        let is_whole = cut + 1 >= added.len();
        prop_assert_eq!(chain.entries.len(), if is_whole { 6 } else { 2 });
        prop_assert_eq!(chain.dropped.is_some(), !is_whole && cut > 0);
        prop_assert_eq!(chain.length, before.len() + if is_whole { cut } else { 0 });
    }
}

#[test]
fn a_line_with_a_digest_of_its_own_is_found_too() {
    let mut lines: Vec<String> = text().lines().map(ToOwned::to_owned).collect();
    let (forged, _) = encode(3, &origin(), &[transfer(1, 5000.0)]).unwrap();
    lines[3] = forged.trim_end().to_owned();
    assert_eq!(broken(&(lines.join("\n") + "\n")), 4);
}

/// Writes the account to a home, entry by entry.
fn written(home: &std::path::Path) -> Ledger {
    let mut entries = account().into_iter();
    let Some(Entry::Opened(opened)) = entries.next() else {
        panic!()
    };
    let mut ledger = Ledger::create(home, *opened).unwrap();
    for entry in entries {
        ledger.append(vec![entry]).unwrap();
    }
    ledger
}

#[test]
fn a_ledger_is_read_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Ledger::names(dir.path()).unwrap(), Vec::<String>::new());
    let written = written(dir.path());
    let ledger = Ledger::read(dir.path(), "a").unwrap();
    assert_eq!(ledger.entries(), account());
    assert_eq!(ledger.hashes(), written.hashes());
    assert_eq!(ledger.opened(), &opened("a"));
    assert_eq!(ledger.last_night().unwrap().number, 2);
    assert!(!ledger.is_closed() && ledger.stopped().is_none() && ledger.notes().is_empty());
    ledger.verify().unwrap();
    assert_eq!(Ledger::names(dir.path()).unwrap(), ["a"]);
    let err = Ledger::create(dir.path(), opened("a")).unwrap_err();
    assert_eq!(err.message, "there is already an account `a`");
    let err = Ledger::read(dir.path(), "b").unwrap_err();
    assert_eq!(
        (err.message.as_str(), err.code),
        ("there is no account `b`", exit::WRONG_USAGE)
    );
    assert!(Ledger::create(dir.path(), opened("../b")).is_err());
}

#[test]
fn halts_last_until_a_person_ends_them_and_nothing_follows_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut ledger = written(dir.path());
    let err = ledger.append(vec![Entry::Resumed(stop(2))]).unwrap_err();
    assert_eq!(err.message, "this entry cannot be added: the account is not halted");
    ledger.append(vec![Entry::Halted(stop(2))]).unwrap();
    assert_eq!(ledger.stopped(), Some(&stop(2)));
    ledger.append(vec![Entry::Resumed(stop(2))]).unwrap();
    assert_eq!(ledger.stopped(), None);
    ledger.append(vec![Entry::Closed(stop(2))]).unwrap();
    let err = ledger.append(vec![transfer(3, 1.0)]).unwrap_err();
    assert_eq!(
        err.message,
        "this entry cannot be added: the account was closed on 2024-01-03"
    );
    assert!(Ledger::read(dir.path(), "a").unwrap().is_closed());
}

#[test]
fn a_torn_end_is_dropped_and_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let mut ledger = written(dir.path());
    let path = dir.path().join("paper/a.jsonl");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&whole[..], b"{\"hash\":\"12"].concat()).unwrap();
    let mut again = Ledger::read(dir.path(), "a").unwrap();
    assert_eq!(
        again.notes(),
        ["account a: its last line is incomplete, and counts as never written"]
    );
    again.append(vec![transfer(2, 7.0)]).unwrap();
    assert_eq!(Ledger::read(dir.path(), "a").unwrap().entries().len(), 7);
    // One who has read before writes nothing.
    let err = ledger.append(vec![transfer(2, 7.0)]).unwrap_err();
    assert!(
        err.message.ends_with("was changed by another process meanwhile"),
        "{err}"
    );
    assert_eq!(ledger.entries().len(), 6);
    assert_eq!(Ledger::read(dir.path(), "a").unwrap().entries(), again.entries());
    // A line that lacks its line feed alone is whole.
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 1]).unwrap();
    let mut again = Ledger::read(dir.path(), "a").unwrap();
    again.append(vec![transfer(2, 8.0)]).unwrap();
    assert_eq!(Ledger::read(dir.path(), "a").unwrap().entries().len(), 8);
}

#[test]
fn an_end_that_is_gone_and_a_ledger_that_was_written_anew_are_found() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path());
    let path = dir.path().join("paper/a.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let shorter: String = text.lines().take(4).map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, shorter).unwrap();
    let err = Ledger::read(dir.path(), "a").unwrap_err();
    assert!(
        err.message.ends_with("line 5: 2 lines that followed line 4 are gone"),
        "{err}"
    );
    assert_eq!(err.code, exit::MACHINE_FAILED);
    let mut other = account();
    other[3] = transfer(1, -4000.0);
    std::fs::write(&path, encode(0, &origin(), &other).unwrap().0).unwrap();
    let err = Ledger::read(dir.path(), "a").unwrap_err();
    assert!(err.message.contains("the ledger was rewritten"), "{err}");
}

/// Adds entries to the account, and returns why they are refused. Nothing is written then.
fn refused(entries: Vec<Entry>) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut ledger = written(dir.path());
    let path = dir.path().join("paper/a.jsonl");
    let before = std::fs::read(&path).unwrap();
    let err = ledger.append(entries).unwrap_err();
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(ledger.entries(), account());
    assert!(err.hint.is_some() || !err.message.contains("fill"), "{err}");
    err.message.replace("this entry cannot be added: ", "")
}

#[test]
fn wrong_entries_are_refused_and_none_of_them_is_written() {
    let good = || transfer(2, 100.0);
    let with = |change: &dyn Fn(&mut Night)| {
        let before = [account(), vec![good()]].concat();
        let mut entry = night(&before, vec![], vec![]);
        if let Entry::Night(night) = &mut entry {
            change(night);
        }
        vec![good(), entry]
    };
    let of = |fill: FillRow| vec![good(), fills(2, vec![fill])];
    let third = |quantity: f64| fill("2024-01-02-1", "f3", 2, stock(), quantity, 10.01);
    let all = [
        refused(vec![Entry::Opened(Box::new(opened("a")))]),
        refused(vec![transfer(1, 100.0)]),
        refused(vec![good(), transfer(2, f64::NAN)]),
        refused(with(&|night| night.number = 7)),
        refused(with(&|night| night.time = "2024-01-03".to_owned())),
        refused(with(&|night| night.book.cash += 1e-3)),
        refused(with(&|night| night.log_return = f64::INFINITY)),
        refused(with(&|night| {
            night.orders = vec![order("2024-01-02-1", stock(), 1.0, 10.0, 0.02)]
        })),
        refused(of(fill("2024-01-09-1", "f3", 2, stock(), 1.0, 10.0))),
        refused(of(FillRow {
            id: "f1".to_owned(),
            ..third(10.0)
        })),
        refused(vec![fills(2, vec![third(10.0), third(10.0)])]),
        refused(of(third(-10.0))),
        refused(of(third(0.0))),
        refused(of(third(51.0))),
        refused(vec![fills(
            2,
            vec![
                third(30.0),
                FillRow {
                    id: "f4".to_owned(),
                    ..third(30.0)
                },
            ],
        )]),
        refused(of(FillRow {
            price: 0.0,
            ..third(10.0)
        })),
        refused(of(FillRow {
            price: f64::NAN,
            ..third(10.0)
        })),
        refused(of(FillRow {
            date: date(0),
            ..third(10.0)
        })),
        refused(of(FillRow {
            of: option(),
            ..third(10.0)
        })),
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
    the account is opened already
    its date 2024-01-02 is before 2024-01-03, the date of the last entry
    NaN is no amount of money
    the night 2024-01-04 has the number 7, and the next one is 3
    the night 2024-01-03 is in it
    the bookings of 2024-01-04 do not add up: cash is 75085.501, and 75085.5 by the bookings
    the entry `night` of 2024-01-04 has a number that is not finite
    there is already an order `2024-01-02-1`
    fill 1 (`f3`): the account has no order `2024-01-09-1`
    fill 1 (`f1`): a fill `f1` was reported before
    fill 2 (`f3`): a fill `f3` was reported before
    fill 1 (`f3`): the quantity -10 does not fit the order `2024-01-02-1`, which is to buy
    fill 1 (`f3`): the quantity 0 does not fit the order `2024-01-02-1`, which is to buy
    fill 1 (`f3`): with it 51 of the order `2024-01-02-1` are filled, which is for 50
    fill 2 (`f4`): with it 60 of the order `2024-01-02-1` are filled, which is for 50
    fill 1 (`f3`): the price 0 is not above 0
    fill 1 (`f3`): the price NaN is not a finite number
    fill 1 (`f3`): its date 2024-01-01 is before the order `2024-01-02-1`, which was decided on 2024-01-02
    fill 1 (`f3`): it is of SPX 2024-03-15 4800 call, and the order `2024-01-02-1` of AAA
    ");
}

#[test]
fn the_first_entry_opens_the_account() {
    let err = check::check(&[], &transfer(0, 1.0)).unwrap_err();
    assert_eq!(
        err.message,
        "this entry cannot be added: the first is `opened`, and not `transfer`"
    );
}

#[test]
fn a_ledger_of_the_first_format_is_read_and_written() {
    let dir = tempfile::tempdir().unwrap();
    let golden = include_str!("golden.jsonl");
    written(dir.path());
    assert_eq!(
        std::fs::read_to_string(dir.path().join("paper/a.jsonl")).unwrap(),
        golden
    );
    assert_eq!(read(golden.as_bytes()).unwrap().entries, account());
}
