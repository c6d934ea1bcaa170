//! The contracts that a chain states, through the stages: calendar, exercise style, carry, and the refusals
//! of what contradicts them.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use cache::{ArtifactDigest, Store};
use common::{Row, context, flat_rates, read_symbol, run, store_table, store_with_meta, table_of, try_run};
use datasets::Date;
use serde_json::{Value, json};
use stages_core::{PortType, table};
use stages_greeks::numerics::formula::{Contract, black_scholes_merton};
use std::collections::BTreeMap;

/// A Friday, 2019-04-26.
const FIRST: Date = Date(18_012);

/// A day of two expiries with 12.8 % everywhere, whose chain states `contracts`.
fn chain_of(
    store: &Store,
    date: Date,
    expiries: &[Date],
    (symbol, root): (&str, &str),
    contracts: &Value,
) -> ArtifactDigest {
    let mut rows: Vec<Row> = Vec::new();
    for &expiry in expiries {
        for strike in [2.9, 2.95, 3.0, 3.05, 3.1] {
            for call in [true, false] {
                let option = Contract {
                    spot: 3.0,
                    strike,
                    years: f64::from(expiry.0 - date.0) / 365.0,
                    rate: 0.0,
                    dividend_yield: 0.0,
                    volatility: 0.128,
                    call,
                };
                let price = black_scholes_merton(&option).price;
                rows.push(Row {
                    date,
                    expiry,
                    strike,
                    call,
                    bid: price,
                    ask: price,
                    spot: 3.0,
                });
            }
        }
    }
    let meta = if contracts.is_null() {
        json!({})
    } else {
        json!({ "contracts": contracts })
    };
    store_with_meta(store, PortType::OptionChain, &table_of(symbol, root, &rows), meta)
}

fn facts(symbol: &str, root: &str, terms: Value, origin: &str) -> Value {
    let mut facts = terms;
    let names: Vec<String> = facts.as_object().unwrap().keys().cloned().collect();
    let origins: BTreeMap<String, &str> = names.into_iter().map(|name| (name, origin)).collect();
    facts["symbol"] = json!(symbol);
    facts["origin"] = json!(origins);
    json!({ root: facts })
}

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

/// The volatilities at the money of the first expiry, under a configuration.
fn at_the_money(store: &Store, chain: ArtifactDigest, with: Value) -> f64 {
    let out = run(&context(store, &[("chain", chain)]), "greeks/implied_volatility", with);
    let batch = read_symbol(store, out["chain"], "510050");
    table::floats_or_nan(&batch, "implied_volatility").unwrap()[4]
}

/// On 2019-12-24 the SSE's options of December have a day to go: Christmas, on which New York rests, is their
/// day of expiry.
#[test]
fn a_christmas_in_new_york_does_not_move_volatility_in_shanghai() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let sse = facts(
        "510050",
        "510050",
        json!({ "exercise": "european", "expires": "pm", "settlement_time": "15:00", "calendar": "sse" }),
        "specification",
    );
    let (date, expiries) = (day("2019-12-24"), [day("2019-12-25"), day("2020-01-22")]);
    let chain = chain_of(&store, date, &expiries, ("510050", "510050"), &sse);
    assert!((at_the_money(&store, chain, json!({})) - 0.128).abs() < 1e-9);
    // By the calendar of the United States, which was the default for any chain, a quarter of an hour is left
    // of it.
    let unstated = chain_of(&store, date, &expiries, ("510050", "510050"), &Value::Null);
    assert!(at_the_money(&store, unstated, json!({})) > 1.2);
    let err = try_run(
        &context(&store, &[("chain", chain)]),
        "greeks/implied_volatility",
        json!({ "time": { "calendar": "us" } }),
    );
    let err = err.err().unwrap();
    assert!(
        err.message.contains("calendar: us") && err.message.contains("calendar is sse"),
        "{}",
        err.message
    );
}

/// The style is the chain's; the European formula refuses American contracts, and the American model European
/// ones.
#[test]
fn models_price_the_contracts_that_the_chain_has() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let (date, expiries) = (day("2019-06-03"), [day("2019-06-21"), day("2019-07-19")]);
    let of = |exercise: &str, origin: &str| {
        let terms =
            json!({ "exercise": exercise, "expires": "pm", "settlement_time": "16:00", "calendar": "us" });
        chain_of(
            &store,
            date,
            &expiries,
            ("SPY", "SPY"),
            &facts("SPY", "SPY", terms, origin),
        )
    };
    let iv = |chain, with| try_run(&context(&store, &[("chain", chain)]), "greeks/implied_volatility", with);
    let american = iv(of("american", "specification"), json!({})).unwrap()["chain"];
    let european = iv(of("european", "specification"), json!({})).unwrap()["chain"];
    let greeks = |kind: &str, chain| try_run(&context(&store, &[("chain", chain)]), kind, json!({}));
    let err = greeks("greeks/analytic", american).err().unwrap();
    assert_eq!(
        err.message,
        "`greeks/analytic` prices european contracts, and those of SPY are american (specification)"
    );
    assert!(err.hint.unwrap().contains("greeks/american"));
    assert!(greeks("greeks/american", american).is_ok());
    assert!(greeks("greeks/analytic", european).is_ok());
    assert!(
        greeks("greeks/american", european)
            .err()
            .unwrap()
            .hint
            .unwrap()
            .contains("greeks/analytic")
    );
    // A configured style that contradicts the chain is refused; one that replaces an assumption is the
    // chain's from there on.
    let err = iv(of("american", "specification"), json!({ "style": "european" }))
        .err()
        .unwrap();
    assert!(
        err.message.contains("`style: european` contradicts the chain"),
        "{}",
        err.message
    );
    let assumed = iv(of("american", "assumed"), json!({ "style": "european" })).unwrap()["chain"];
    assert!(greeks("greeks/analytic", assumed).is_ok());
}

/// A volatility index cannot be carried: its options' forwards are its futures'.
#[test]
fn spot_is_not_carried_where_only_a_future_can_be() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let terms =
        json!({ "exercise": "european", "expires": "am", "settlement_time": "09:30", "calendar": "us" });
    let contracts = facts("VIX", "VIX", terms, "specification");
    let (date, expiries) = (day("2019-06-03"), [day("2019-06-19"), day("2019-07-17")]);
    let chain = chain_of(&store, date, &expiries, ("VIX", "VIX"), &contracts);
    let inputs = [
        ("chain", chain),
        (
            "rates",
            store_table(&store, PortType::Rates, &flat_rates(FIRST.plus(-1), 0.03)),
        ),
    ];
    let err = try_run(
        &context(&store, &inputs),
        "greeks/implied_volatility",
        json!({ "forward": "rates" }),
    )
    .err()
    .unwrap();
    assert!(err.message.contains("nobody can buy and hold"), "{}", err.message);
    assert!(err.hint.unwrap().contains("forward: parity"));
    // The rates of the test end earlier.
    let settings = json!({ "max_rates_age_days": 90 });
    assert!(try_run(&context(&store, &inputs), "greeks/implied_volatility", settings).is_ok());
    // Without a forward the formula would carry the index.
    assert!(
        try_run(&context(&store, &[("chain", chain)]), "greeks/analytic", json!({}))
            .err()
            .unwrap()
            .message
            .contains("nobody can buy and hold")
    );
}

/// American contracts with cash dividends take their forwards from rates without being told.
#[test]
fn american_contracts_with_dividends_find_their_forward_in_rates() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let terms =
        json!({ "exercise": "american", "expires": "pm", "settlement_time": "16:00", "calendar": "us" });
    let contracts = facts("ACME", "ACME", terms, "file");
    let (date, expiries) = (FIRST, [day("2019-05-17"), day("2019-06-21")]);
    let chain = chain_of(&store, date, &expiries, ("ACME", "ACME"), &contracts);
    let inputs = [
        ("chain", chain),
        (
            "rates",
            store_table(&store, PortType::Rates, &flat_rates(FIRST.plus(-1), 0.03)),
        ),
    ];
    let dividends = json!([{ "ex_date": "2019-05-03", "amount": 0.02 }]);
    let forwards = |with: Value| {
        let out = run(&context(&store, &inputs), "greeks/implied_volatility", with);
        table::floats_or_nan(&read_symbol(&store, out["chain"], "ACME"), "forward").unwrap()
    };
    let found = forwards(json!({ "dividends": dividends }));
    assert_eq!(found, forwards(json!({ "dividends": dividends, "forward": "rates" })));
    assert_ne!(found, forwards(json!({ "dividends": dividends, "forward": "parity" })));
}
