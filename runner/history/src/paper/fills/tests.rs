//! Tests of files of fills. The samples of brokers' files were made for them, after the brokers' documented
//! field names.

use super::*;
use crate::paper::sample::*;
use crate::paper::{Entry, Instrument};

const OWN: &str = include_str!("samples/fills.csv");
const FLEX: &str = include_str!("samples/flex.xml");
const FLEX_CSV: &str = include_str!("samples/flex.csv");
const ALPACA: &str = include_str!("samples/activities.json");

/// An account of two nights, whose orders no broker has filled yet.
fn ledger() -> (tempfile::TempDir, Ledger) {
    let dir = tempfile::tempdir().unwrap();
    let mut entries = account().into_iter().take(3);
    let Some(Entry::Opened(opened)) = entries.next() else {
        panic!()
    };
    let mut ledger = Ledger::create(dir.path(), *opened).unwrap();
    ledger.append(entries.collect()).unwrap();
    (dir, ledger)
}

fn shown(text: &str) -> String {
    let (_dir, mut ledger) = ledger();
    let found = ledger.read_fills("f", text.as_bytes(), None).unwrap();
    let line = |fill: &FillRow| {
        let time = fill.time.as_deref().unwrap_or("-");
        let FillRow {
            order,
            date,
            of,
            quantity,
            price,
            commission,
            ..
        } = fill;
        format!("{order} {date} {time} {of}: {quantity} at {price}, {commission}\n")
    };
    let lines: String = found.fills.iter().map(line).collect();
    let out = format!("{} {}\n{lines}", found.layout, found.left_out);
    // They can be added, and once only.
    ledger.append(vec![fills(1, found.fills)]).unwrap();
    let err = ledger.read_fills("f", text.as_bytes(), None).unwrap_err();
    assert!(err.message.ends_with("was reported before"), "{err}");
    out
}

#[test]
fn files_of_every_layout_give_the_same_fills() {
    insta::assert_snapshot!([OWN, FLEX, FLEX_CSV, ALPACA].map(shown).concat(), @r"
    runner 0
    2024-01-01-1 2024-01-02 10:30:00 SPX 2024-03-15 4800 call: 6 at 20.3, 6
    2024-01-01-2 2024-01-02 - AAA: -100 at 9.99, 1
    ibkr_flex 1
    2024-01-01-1 2024-01-02 103000 SPX 2024-03-15 4800 call: 6 at 20.3, 6
    2024-01-01-2 2024-01-02 103105 AAA: -100 at 9.99, 1.05
    ibkr_flex 0
    2024-01-01-1 2024-01-02 10:30:00 SPX 2024-03-15 4800 call: 6 at 20.3, 6
    2024-01-01-2 2024-01-02 10:31:05 AAA: -100 at 9.99, 1
    alpaca_activities 1
    2024-01-01-1 2024-01-02 10:30:00 SPX 2024-03-15 4800 call: 6 at 20.3, 0
    2024-01-01-2 2024-01-02 19:00:00 AAA: -100 at 9.99, 0
    ");
}

fn refused(text: &str) -> String {
    let (dir, ledger) = ledger();
    let path = dir.path().join("paper/a.jsonl");
    let before = std::fs::read(&path).unwrap();
    let err = ledger.read_fills("f", text.as_bytes(), None).unwrap_err();
    assert!(err.hint.is_some(), "{err}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    err.message
}

#[test]
fn rows_that_are_not_fills_of_the_account_refuse_the_file() {
    let all = [
        // The columns.
        refused("id,date,quantity,prize\n"),
        refused("id,date,quantity\n"),
        refused("order,id,date,quantity,price\n2024-01-01-1,a1,2024-01-02,6\n"),
        refused(OWN.lines().next().unwrap()),
        // Our own rows: an order that is not known, another instrument, no order and no instrument.
        refused(&OWN.replace("2024-01-01-2,a2", "2024-01-01-3,a2")),
        refused(&OWN.replace("2024-01-01-2,a2,2024-01-02,,", "2024-01-01-2,a2,2024-01-02,,BBB")),
        refused(&OWN.replace("2024-01-01-2,a2", ",a2")),
        refused(&OWN.replace(",a1,", "2024-01-01-2,a1,")),
        // A duplicate, a wrong sign, too much, a date before, and what is no number or date.
        refused(&OWN.replace("a2", "a1")),
        refused(&OWN.replace("-100", "100")),
        refused(&OWN.replace("call,6", "call,-6")),
        refused(&OWN.replace("call,6", "call,11")),
        refused(&OWN.replace("2024-01-01-2,a2,2024-01-02", "2024-01-01-2,a2,2023-12-29")),
        refused(&OWN.replace("20.3", "0")),
        refused(&OWN.replace("20.3", "20 USD")),
        refused(&OWN.replace("a2,2024-01-02", "a2,01/02/2024")),
        // Brokers' rows.
        refused(&FLEX.replace("quantity=\"6\"", "quantity=\"-6\"")),
        refused(&FLEX.replace("multiplier=\"100\"", "multiplier=\"50\"")),
        refused(&FLEX.replace("\"STK\"", "\"CASH\"")),
        refused(&FLEX.replace("ExchTrade", "TradeCancel")),
        refused(&FLEX.replace("ibCommissionCurrency=\"USD\"", "ibCommissionCurrency=\"EUR\"")),
        refused(&FLEX.replace("underlyingSymbol=\"SPX\"", "underlyingSymbol=\"NDX\"")),
        refused(&FLEX[..FLEX.len() - 30]),
        refused("<html></html>"),
        refused(&ALPACA.replace("\"sell_short\"", "\"hold\"")),
        refused(&ALPACA.replace("2024-01-03T00:00:00Z", "yesterday")),
        refused(&ALPACA.replace("AAA", "BBB")),
        refused(&ALPACA.replace("FILL", "FEE")),
        refused("[1]"),
        refused("{"),
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
    `f` has a column `prize` that fills do not have
    `f` has no column `price`
    `f`, row 2: it has 4 fields, and the header has 5
    `f` has no fills
    `f`, row 3: the account has no order `2024-01-01-3`
    `f`, row 3: it is of BBB, and the order `2024-01-01-2` of AAA
    `f`, row 3: it names neither an order nor what was traded
    `f`, row 2: it is of SPX 2024-03-15 4800 call, and the order `2024-01-01-2` of AAA
    `f`, row 3: a fill `a1` was reported before
    `f`, row 3: the quantity 100 does not fit the order `2024-01-01-2`, which is to sell
    `f`, row 2: no order of the account that was open on 2024-01-02 is to sell SPX 2024-03-15 4800 call
    `f`, row 2: with it 11 of the order `2024-01-01-1` are filled, which is for 10
    `f`, row 3: its date 2023-12-29 is before the order `2024-01-01-2`, which was decided on 2024-01-01
    `f`, row 2: the price 0 is not above 0
    `f`, row 2: `price` is `20 USD`, which is not a number
    `f`, row 3: `01/02/2024` is not a date
    `f`, trade 1: its quantity -6 does not fit its side `BUY`
    `f`, trade 1: its multiplier is 50, and that of the order `2024-01-01-1` 100
    `f`, trade 2: `CASH` is not an asset class that accounts trade
    `f`, trade 1: its transaction type is `TradeCancel`
    `f`, trade 1: its commission is in EUR, and the trade in USD
    `f`, trade 1: no order of the account that was open on 2024-01-02 is to buy NDX 2024-03-15 4800 call
    `f` is not XML that can be read: syntax error: tag not closed: `>` not found before end of input
    `f` is not XML that can be read: it is not a whole `FlexQueryResponse`
    `f`, activity 2: its side is `hold`
    `f`, activity 2: `yesterday` is not a time
    `f`, activity 2: no order of the account that was open on 2024-01-02 is to sell BBB
    `f` has no fills
    `f` has an activity 1 that is not an object
    `f` is not JSON that can be read: EOF while parsing an object at line 1 column 1
    ");
}

#[test]
fn a_row_without_an_order_is_of_the_last_night_before_it() {
    let (_dir, mut ledger) = ledger();
    // The stock is ordered on the second night, too, and twice on the third.
    let bookings = || vec![booking(stock(), 50.0, 10.02, 10.0, 0.01)];
    let twice = vec![
        order("2024-01-03-1", stock(), 5.0, 10.0, 0.02),
        order("2024-01-03-2", stock(), 7.0, 10.0, 0.02),
    ];
    let third = night(ledger.entries(), bookings(), twice);
    ledger.append(vec![third]).unwrap();
    let of = |date: &str, quantity: &str| {
        let text = format!("id,date,symbol,quantity,price\nx,{date},AAA,{quantity},10\n");
        let found = ledger.read_fills("f", text.as_bytes(), None);
        found.map_or_else(|err| err.message, |found| found.fills[0].order.clone())
    };
    let found = [
        of("2024-01-02", "-1"),
        // Of the night itself, where the night before has none on its side.
        of("2024-01-02", "1"),
        of("2024-01-03", "1"),
        of("2024-01-04", "1"),
        of("2024-01-04", "-1"),
        of("2023-12-01", "1"),
    ];
    insta::assert_snapshot!(found.join("\n"), @r"
    2024-01-01-2
    2024-01-02-1
    2024-01-02-1
    `f`, row 2: it may be of each of the orders 2024-01-03-1, 2024-01-03-2
    `f`, row 2: no order of the account that was open on 2024-01-04 is to sell AAA
    `f`, row 2: no order of the account that was open on 2023-12-01 is to buy AAA
    ");
}

#[test]
fn symbols_of_the_occ() {
    let (_dir, ledger) = ledger();
    let of = |symbol: &str| {
        let text = ALPACA.replace("SPX240315C04800000", symbol);
        ledger
            .read_fills("f", text.as_bytes(), None)
            .map(|found| found.fills[0].of.clone())
    };
    assert_eq!(of("SPX   240315C04800000").unwrap(), option());
    let err = of("SPX240315P04800500").unwrap_err();
    assert!(err.message.ends_with("is to buy SPX 2024-03-15 4800.5 put"), "{err}");
    // What is not in that form is a stock.
    let err = of("SPX240399C04800000").unwrap_err();
    assert!(err.message.ends_with("is to buy SPX240399C04800000"), "{err}");
    assert_eq!(Instrument::default().to_string(), "");
}
