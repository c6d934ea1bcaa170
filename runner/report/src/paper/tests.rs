//! An account whose ledger the test writes.

use super::{paper_account, paper_state};
use runner_history::paper::{Entry, Ledger};
use serde_json::{Value, json};

fn digest(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

fn stock(more: Value) -> Value {
    let mut of = json!({ "instrument": "stock", "symbol": "A<B" });
    of.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    of
}

/// A night on which `shares` are held at `mark`; `order` is decided on it.
fn night(number: usize, cash: f64, (shares, mark): (f64, f64), bookings: Value, orders: Value) -> Entry {
    let nav = cash + shares * mark;
    let day = 3 + number;
    serde_json::from_value(json!({
        "entry": "night", "time": format!("2024-01-0{day}"), "date": format!("2024-01-0{day}"),
        "number": number, "data": digest(1), "policy": { "name": "desk@1", "digest": digest(2) },
        "bookings": bookings,
        "book": {
            "cash": cash, "nav": nav, "gross": shares * mark, "closing_cost": 1.0,
            "positions": [stock(json!({
                "quantity": shares, "multiplier": 1.0, "mark": mark, "value": shares * mark,
                "greeks": { "delta": shares },
            }))],
        },
        "log_return": (nav / 1000.0_f64).ln(), "risk_free": 0.0, "turnover": 0.1, "costs": 0.001,
        "drawdown": 0.0, "action": "weight 0.5 & more", "orders": orders,
        "standing": {
            "growth": nav / 1000.0, "evidence": 25.0, "drawdown": 0.01, "quantile": 0.03,
            "broken": number == 1, "drifted": ["rsi_14"],
        },
        "beside": { "cash": { "nav": 1000.0, "log_return": 0.0, "costs": 0.0, "since": 0 } },
        "state": null,
    }))
    .unwrap()
}

fn ledger(home: &std::path::Path) -> Ledger {
    let opened = json!({
        "name": "own", "opened": "2024-01-03T00:00:00.000Z", "policy": "desk@champion",
        "version": { "name": "desk@1", "digest": digest(2) }, "capital": 1000.0, "from": "2024-01-03",
        "beside": ["cash"], "halt": "hold",
        "promise": {
            "steps": 500, "dates": null, "steps_a_year": 252.0, "mean": 0.0, "deviation": 0.01,
            "levels": [0.05, 0.25, 0.5, 0.75, 0.95], "fan_nights": [1, 5, 50],
            "fan": [[0.98, 0.99, 1.0, 1.01, 1.02], [0.96, 0.98, 1.0, 1.02, 1.05], [0.9, 0.95, 1.0, 1.1, 1.2]],
            "drawdown": [
                [0.0, 0.0, 0.01, 0.02, 0.03],
                [0.0, 0.01, 0.02, 0.03, 0.05],
                [0.0, 0.01, 0.02, 0.03, 0.1]
            ],
            "turnover": 0.1, "costs": 0.001, "false_alarm_rate": 0.05,
        },
    });
    let mut ledger = Ledger::create(home, serde_json::from_value(opened).unwrap()).unwrap();
    let order = stock(json!({
        "id": "2024-01-03-1", "side": "buy", "quantity": 10.0, "multiplier": 1.0, "mid": 50.0,
        "limit": 50.5, "cost": 5.0, "why": "weight 0.5",
    }));
    let fill = stock(json!({
        "cause": "fill", "quantity": 10.0, "price": 51.0, "mid": 50.5, "cash": -511.0,
        "commission": 1.0, "spread": 5.0,
    }));
    let dividend = stock(json!({ "cause": "dividend", "cash": 2.0 }));
    let entries = [
        night(0, 1000.0, (0.0, 50.0), json!([]), json!([order])),
        night(1, 491.0, (10.0, 50.0), json!([fill, dividend]), json!([])),
        serde_json::from_value(json!({
            "entry": "halted", "date": "2024-01-04", "by": "promise", "why": "evidence 25 reached 20",
        }))
        .unwrap(),
    ];
    ledger.append(entries.into()).unwrap();
    ledger
}

#[test]
fn an_account_is_shown_with_its_promise_its_book_its_fills_and_its_alarms() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = ledger(dir.path());
    assert_eq!(paper_state(&ledger), "halted");
    let html = paper_account(&ledger);
    // Texts of a ledger are texts.
    assert!(!html.contains("A<B") && html.contains("A&lt;B"), "{html}");
    assert!(html.contains("weight 0.5 &amp; more"), "{html}");
    for part in [
        "halted on 2024-01-04 by promise: evidence 25 reached 20",
        "runner paper resume own",
        "promised 5.00 % to 95.00 %",
        "promised 25.00 % to 75.00 %",
        "promised median",
        "accounts beside it, value of 1",
        "the promise is broken: evidence 25",
        "rsi_14",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    // The fan reaches beyond the nights that were, and not beyond what is shown of it: 5 of 50 nights.
    assert_eq!(
        html.matches("<path class=\"b").count(),
        8,
        "with their keys in the legends: {html}"
    );
    // Bought at 51, decided at 50: 10 more for 10 shares.
    let rows = |heading: &str| -> Vec<Vec<String>> {
        let after = html.split(heading).nth(1).unwrap();
        let body = after.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
        let rows = body.split("</tr>").filter(|row| !row.is_empty());
        let cells = |row: &str| {
            let cells = row.split("</td>").filter(|cell| cell.contains('>'));
            cells.map(|cell| cell.rsplit('>').next().unwrap().to_owned()).collect()
        };
        rows.map(cells).collect()
    };
    assert_eq!(
        rows("Fills against the prices"),
        [[
            "2024-01-03-1",
            "buy",
            "A&lt;B",
            "10",
            "50",
            "50.5",
            "10",
            "51",
            "10",
            ""
        ]]
    );
    assert_eq!(
        rows("Cash and costs by cause"),
        [
            ["fill", "1", "-511", "1", "5"],
            ["dividend", "1", "2", "0", "0"],
            ["in all", "2", "-509", "1", "5"]
        ]
    );
    let held = rows("Positions on 2024-01-04");
    assert_eq!(held[0][..5], ["A&lt;B", "10", "50", "500", "10"]);
    assert_eq!(held[2][..5], ["in all", "", "", "991", "10"]);
}
