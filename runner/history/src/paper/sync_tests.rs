//! Tests of ledgers and their copies, and of what accounts keep.

use super::sample::*;
use super::*;
use crate::policies::{Registration, Registry};
use cache::{ActionKey, ArtifactDigest};
use chrono::DateTime;
use std::path::Path;

/// Writes the first entries of the account.
fn written(home: &Path, entries: &[Entry]) -> Ledger {
    let Entry::Opened(opened) = &entries[0] else { panic!() };
    let mut ledger = Ledger::create(home, (**opened).clone()).unwrap();
    for entry in &entries[1..] {
        ledger.append(vec![entry.clone()]).unwrap();
    }
    ledger
}

#[test]
fn a_copy_is_taken_where_it_goes_on() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let all = account();
    let full = written(there.path(), &all).text(there.path()).unwrap();
    // There is none here.
    assert_eq!(Ledger::take(here.path(), "a", &full).unwrap(), Some(Synced::Theirs));
    assert_eq!(Ledger::read(here.path(), "a").unwrap().text(here.path()).unwrap(), full);
    assert_eq!(Ledger::take(here.path(), "a", &full).unwrap(), Some(Synced::Same));
    // This one goes on.
    let mut ours = Ledger::read(here.path(), "a").unwrap();
    ours.append(vec![transfer(2, 10.0)]).unwrap();
    assert_eq!(Ledger::take(here.path(), "a", &full).unwrap(), Some(Synced::Ours));
    // The other one, too: nothing is changed, and both digests are told.
    let mut theirs = Ledger::read(there.path(), "a").unwrap();
    theirs.append(vec![transfer(2, 11.0)]).unwrap();
    let forked = Ledger::take(here.path(), "a", &theirs.text(there.path()).unwrap()).unwrap();
    let (ours_hash, theirs_hash) = (ours.hashes()[6].clone(), theirs.hashes()[6].clone());
    assert_eq!(
        forked,
        Some(Synced::Forked {
            line: 7,
            ours: ours_hash,
            theirs: theirs_hash
        })
    );
    assert_eq!(Ledger::read(here.path(), "a").unwrap().entries(), ours.entries());
    // What is no whole ledger of that name is not taken.
    assert_eq!(Ledger::take(here.path(), "b", &full).unwrap(), None);
    assert_eq!(Ledger::take(here.path(), "../a", &full).unwrap(), None);
    assert_eq!(
        Ledger::take(here.path(), "a", &full.replace("-5000", "-6000")).unwrap(),
        None
    );
    assert_eq!(Ledger::take(here.path(), "a", &full[..full.len() - 9]).unwrap(), None);
}

#[test]
fn a_ledger_that_was_changed_here_is_restored_from_its_copy() {
    let dir = tempfile::tempdir().unwrap();
    let text = written(dir.path(), &account()).text(dir.path()).unwrap();
    let path = dir.path().join("paper/a.jsonl");
    std::fs::write(&path, text.replace("-5000", "-4000")).unwrap();
    assert!(Ledger::read(dir.path(), "a").is_err());
    // A copy that ends before is not enough.
    let shorter: String = text.lines().take(5).map(|line| format!("{line}\n")).collect();
    assert!(Ledger::take(dir.path(), "a", &shorter).is_err());
    assert_eq!(Ledger::take(dir.path(), "a", &text).unwrap(), Some(Synced::Theirs));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    Ledger::read(dir.path(), "a").unwrap();
}

#[test]
fn open_accounts_keep_their_policies() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::new(dir.path());
    for version in [1, 2] {
        let from = Registration {
            run: format!("run-{version}"),
            output: "train.policy".to_owned(),
            key: Some(ActionKey::from_bytes([version; 32])),
            as_of: None,
            max_age: None,
        };
        let digest = ArtifactDigest::from_bytes([version; 32]);
        registry
            .register("desk", digest, from, None, DateTime::UNIX_EPOCH)
            .unwrap();
    }
    // No alias keeps a run.
    assert!(registry.kept().unwrap().runs.is_empty());
    let mut entries = account();
    if let Some(Entry::Night(night)) = entries.last_mut() {
        let shadow = Shadow {
            policy: Some(StandIn {
                name: "run-9/straddle".to_owned(),
                ..policy(9)
            }),
            ..Shadow::default()
        };
        night.beside.insert("rule".to_owned(), shadow);
    }
    let mut ledger = written(dir.path(), &entries);
    let runs = || kept(dir.path()).unwrap().runs.into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(runs(), "run-1 run-9");
    let actions = kept_for_accounts(dir.path()).unwrap().actions;
    assert_eq!(
        actions.into_iter().collect::<Vec<_>>(),
        [ActionKey::from_bytes([1; 32])]
    );
    ledger
        .append(vec![Entry::Policy(PolicyMove {
            date: date(2),
            from: policy(1),
            to: policy(2),
        })])
        .unwrap();
    assert_eq!(ledger.policy(), &policy(2));
    // The version before runs beside it.
    assert_eq!(runs(), "run-1 run-2 run-9");
    ledger.append(vec![Entry::Closed(stop(2))]).unwrap();
    assert_eq!(runs(), "");
    std::fs::write(dir.path().join("paper/a.jsonl"), "{}\n").unwrap();
    assert!(kept(dir.path()).is_err());
}

#[test]
fn rows_and_statement_of_an_account() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = written(dir.path(), &account());
    // The cash of the rows is the account's.
    let csv = ledger.csv();
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let at = |name: &str| header.iter().position(|column| *column == name).unwrap();
    let mut cash = 0.0;
    let mut kinds = Vec::new();
    for row in lines {
        assert_eq!(row.len(), header.len());
        if ["opened", "transfer", "booking"].contains(&row[at("kind")]) {
            cash += row[at("cash")].parse::<f64>().unwrap();
        }
        kinds.push(row[at("kind")].to_owned());
    }
    let book = &ledger.last_night().unwrap().book;
    assert!((cash - book.cash).abs() < 1e-9, "{cash}");
    insta::assert_snapshot!(kinds.join(" ").replace(" night", "\nnight"), @r"
    opened
    night order order
    night booking booking position position order transfer fill fill
    night booking position position
    ");
    insta::assert_snapshot!(ledger.statement(None, None).unwrap(), @r"
    STATEMENT OF a
    2024-01-01 to 2024-01-03, policy desk@1

    BALANCE                      opening     closing     change
    as of            2024-01-01, opening  2024-01-03
    cash                       100000.00    74985.50  -25014.50
    positions                       0.00    19500.00   19500.00
    net asset value            100000.00    94485.50   -5514.50

    CASH FLOWS    bookings       cash  of it commission
    opening cash            100000.00
    fill                 3  -20014.50             11.50
    transfer             1   -5000.00
    closing cash             74985.50

    TRADES      instrument                cause  quantity  price       cash  commission
    2024-01-02  SPX 2024-03-15 4800 call  fill         10   20.5  -20510.00       10.00
    2024-01-02  AAA                       fill       -100   9.98     997.00        1.00
    2024-01-03  AAA                       fill         50  10.02    -501.50        0.50

    POSITIONS                 quantity  mark     value
    SPX 2024-03-15 4800 call        10    20  20000.00
    AAA                            -50    10   -500.00

    PERFORMANCE  nights  return   costs  turnover  transfers  closing nav
    2024-01           3  0.30 %  0.06 %   30.00 %   -5000.00     94485.50

    EVENTS      event
    2024-01-01  opened    desk@1 with 100000.00
    2024-01-02  transfer  -5000.00
    2024-01-02  fills     2 fills of fills.csv
    ");
    insta::assert_snapshot!(ledger.statement(Some(date(2)), None).unwrap(), @r"
    STATEMENT OF a
    2024-01-03 to 2024-01-03, policy desk@1

    BALANCE             opening     closing    change
    as of            2024-01-02  2024-01-03
    cash               80487.00    74985.50  -5501.50
    positions          19000.00    19500.00    500.00
    net asset value    99487.00    94485.50  -5001.50

    CASH FLOWS    bookings      cash  of it commission
    opening cash            80487.00
    fill                 1   -501.50              0.50
    transfer             1  -5000.00
    closing cash            74985.50

    TRADES      instrument  cause  quantity  price     cash  commission
    2024-01-03  AAA         fill         50  10.02  -501.50        0.50

    POSITIONS                 quantity  mark     value
    SPX 2024-03-15 4800 call        10    20  20000.00
    AAA                            -50    10   -500.00

    PERFORMANCE  nights  return   costs  turnover  transfers  closing nav
    2024-01           1  0.20 %  0.02 %   10.00 %   -5000.00     94485.50

    EVENTS      event
    2024-01-02  transfer  -5000.00
    2024-01-02  fills     2 fills of fills.csv
    ");
    let err = ledger.statement(Some(date(9)), None).unwrap_err();
    assert_eq!(err.hint.unwrap(), "its nights are 2024-01-01 to 2024-01-03");
}
