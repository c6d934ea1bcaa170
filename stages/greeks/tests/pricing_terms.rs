//! Forward, discount factor, years, yield and rate of borrowing: those that a chain states, and yields that a
//! configuration states by symbol and date.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use cache::{ArtifactDigest, Store};
use common::{Row, context, flat_rates, read, run, stage, store_table, table_of, try_run};
use datasets::Date;
use datasets::calendar::CalendarName;
use datasets::contract::Exercise;
use datasets::schema::PRICING_TERMS;
use serde_json::{Value, json};
use stages_core::{PlanContext, PortType, Provided, table};
use stages_greeks::numerics::formula::{Contract, black_scholes_merton};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const FIRST: Date = Date(18_012);
const STRIKES: [f64; 5] = [90.0, 95.0, 100.0, 105.0, 110.0];
const SPOT: f64 = 100.0;
const YEARS: f64 = 0.26;
const RATE: f64 = 0.031;
const YIELD: f64 = 0.012;
const BORROW: f64 = 0.02;
const SIGMA: f64 = 0.24;

fn forward() -> f64 {
    SPOT * libm::exp((RATE - YIELD - BORROW) * YEARS)
}

fn discount() -> f64 {
    libm::exp(-RATE * YEARS)
}

/// One expiry at 24 %, of calls alone or with puts: parity knows nothing of calls.
fn quotes(with_puts: bool) -> RecordBatch {
    let mut rows = Vec::new();
    for strike in STRIKES {
        for call in [true, false] {
            if !call && !with_puts {
                continue;
            }
            let price = black_scholes_merton(&Contract {
                spot: SPOT,
                strike,
                years: YEARS,
                rate: RATE,
                dividend_yield: YIELD + BORROW,
                volatility: SIGMA,
                call,
            })
            .price;
            rows.push(Row {
                date: FIRST,
                expiry: FIRST.plus(91),
                strike,
                call,
                bid: price,
                ask: price,
                spot: SPOT,
            });
        }
    }
    table_of("TEST", "TEST", &rows)
}

/// A chain with columns of terms, NaN where it states none.
fn with_terms(batch: &RecordBatch, terms: &[(&str, Vec<f64>)]) -> RecordBatch {
    let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
    let mut arrays = batch.columns().to_vec();
    for (name, values) in terms {
        let column = PRICING_TERMS.iter().find(|column| column.name == *name).unwrap();
        fields.push(Arc::new(table::field(column)));
        arrays.push(Arc::new(table::nullable(values)));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn once(n: usize, value: f64) -> Vec<f64> {
    let mut values = vec![f64::NAN; n];
    values[n / 2] = value;
    values
}

struct Fixture {
    _home: tempfile::TempDir,
    store: Store,
    rates: ArtifactDigest,
}

impl Fixture {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let rates = store_table(&store, PortType::Rates, &flat_rates(FIRST, RATE));
        Self {
            _home: home,
            store,
            rates,
        }
    }

    fn chain(&self, batch: &RecordBatch) -> ArtifactDigest {
        store_table(&self.store, PortType::OptionChain, batch)
    }

    fn volatilities(&self, batch: &RecordBatch, with: Value) -> RecordBatch {
        let chain = self.chain(batch);
        let out = run(
            &context(&self.store, &[("chain", chain)]),
            "greeks/implied_volatility",
            with,
        );
        read(&self.store, out["chain"])
    }

    fn by_rates(&self, batch: &RecordBatch, with: Value) -> Result<RecordBatch, String> {
        let inputs = [("chain", self.chain(batch)), ("rates", self.rates)];
        try_run(&context(&self.store, &inputs), "greeks/implied_volatility", with)
            .map(|out| read(&self.store, out["chain"]))
            .map_err(|err| err.message)
    }
}

fn column(batch: &RecordBatch, name: &str) -> Vec<f64> {
    table::floats_or_nan(batch, name).unwrap()
}

fn assert_all(values: &[f64], expected: f64) {
    for value in values {
        assert!((value - expected).abs() < 1e-9, "{values:?} {expected}");
    }
}

/// A term that one row of an expiry states holds for all of it.
#[test]
fn an_expiry_takes_what_one_of_its_rows_states() {
    let store = Fixture::new();
    let terms = [
        ("forward", once(5, forward())),
        ("discount_factor", once(5, discount())),
        ("years", once(5, YEARS)),
    ];
    for source in ["auto", "column"] {
        let found = store.volatilities(&with_terms(&quotes(false), &terms), json!({ "forward": source }));
        assert_all(&column(&found, "implied_volatility"), SIGMA);
        assert_all(&column(&found, "forward"), forward());
        assert_all(&column(&found, "discount_factor"), discount());
        assert_all(&column(&found, "years"), YEARS);
    }
    let without = store.volatilities(&quotes(false), json!({}));
    assert!(
        column(&without, "implied_volatility")
            .iter()
            .all(|value| value.is_nan())
    );
}

/// Rows that differ have their own, and a row that states none has what there is without the column.
#[test]
fn rows_that_disagree_have_their_own_forward() {
    let store = Fixture::new();
    let mut stated = vec![1.001 * forward(); 10];
    stated[0] = 1.01 * forward();
    stated[5] = f64::NAN;
    let terms = [
        ("forward", stated.clone()),
        ("discount_factor", once(10, discount())),
        ("years", once(10, YEARS)),
    ];
    let batch = with_terms(&quotes(true), &terms);
    let found = column(&store.volatilities(&batch, json!({})), "forward");
    assert_eq!(found[0], stated[0]);
    assert_eq!(found[1], stated[1]);
    assert!((found[5] - forward()).abs() < 1e-9, "{found:?}");
    let only = store.volatilities(&batch, json!({ "forward": "column" }));
    assert!(column(&only, "forward")[5].is_nan() && column(&only, "implied_volatility")[5].is_nan());
    assert_eq!(column(&only, "forward")[6], stated[6]);
}

#[test]
fn parity_comes_before_a_stated_forward_where_it_is_asked_for() {
    let store = Fixture::new();
    let terms = [
        ("forward", vec![80.0; 10]),
        ("discount_factor", once(10, discount())),
        ("years", once(10, YEARS)),
    ];
    let batch = with_terms(&quotes(true), &terms);
    assert_all(
        &column(&store.volatilities(&batch, json!({ "forward": "parity" })), "forward"),
        forward(),
    );
    assert_eq!(
        column(&store.volatilities(&batch, json!({})), "forward"),
        vec![80.0; 10]
    );
}

/// A chain that the stage made has forwards of its own, which a second run does not take for the vendor's.
#[test]
fn a_second_run_does_not_take_its_own_forwards() {
    let store = Fixture::new();
    let first = store.volatilities(&quotes(true), json!({}));
    assert_eq!(store.volatilities(&first, json!({})), first);
    let by_rates = |batch: &RecordBatch| {
        let with = json!({ "forward": "rates", "dividend_yield": YIELD + BORROW });
        store.by_rates(batch, with).unwrap()
    };
    assert_eq!(by_rates(&first), by_rates(&quotes(true)));
    assert_eq!(store.volatilities(&by_rates(&first), json!({})), first);
    let kept = store.volatilities(&by_rates(&first), json!({ "forward": "column" }));
    assert_eq!(column(&kept, "forward"), column(&by_rates(&first), "forward"));
}

/// `F = S e^((r - q - b) T)`, with q and b of the chain, of the configuration, or of both.
#[test]
fn a_forward_by_rates_takes_yield_and_borrow() {
    let store = Fixture::new();
    let years = ("years", vec![YEARS; 5]);
    let of = |terms: &[(&str, Vec<f64>)], with: Value| {
        let batch = with_terms(&quotes(false), terms);
        column(&store.by_rates(&batch, with).unwrap(), "implied_volatility")
    };
    let (stated, borrowed) = (("dividend_yield", once(5, YIELD)), ("borrow_rate", once(5, BORROW)));
    let rates = json!({ "forward": "rates" });
    assert_all(&of(&[years.clone(), stated.clone(), borrowed.clone()], rates), SIGMA);
    assert_all(
        &of(
            &[years.clone(), stated.clone()],
            json!({ "forward": "rates", "borrow_rate": BORROW }),
        ),
        SIGMA,
    );
    let with = json!({ "forward": "rates", "dividend_yield": { "TEST": { "2019-01-01": YIELD } },
        "borrow_rate": { "TEST": BORROW } });
    assert_all(&of(std::slice::from_ref(&years), with), SIGMA);
    // American calls with a dividend ahead: the yield beside the cash is q + b.
    let cash = json!([{ "ex_date": "2019-06-03", "amount": 1.0 }]);
    let american = |terms: &[(&str, Vec<f64>)], with: Value| {
        let mut with = with;
        with["style"] = json!("american");
        with["dividends"] = cash.clone();
        of(terms, with)
    };
    let by_columns = american(&[years.clone(), stated, borrowed], json!({}));
    let by_config = american(&[years], json!({ "dividend_yield": YIELD + BORROW }));
    assert!(by_columns.iter().all(|value| value.is_finite()));
    assert_eq!(by_columns, by_config);
}

#[test]
fn a_setting_that_contradicts_the_chain_is_refused() {
    let store = Fixture::new();
    let batch = with_terms(&quotes(true), &[("dividend_yield", vec![0.02; 10])]);
    let err = store.by_rates(&batch, json!({ "dividend_yield": 0.018 })).unwrap_err();
    assert!(
        err.contains("dividend_yield: 0.018") && err.contains("0.02 for TEST on 2019-04-26"),
        "{err}"
    );
    assert!(store.by_rates(&batch, json!({ "dividend_yield": 0.02 })).is_ok());
    let missing = json!({ "dividend_yield": { "OTHER": 0.01 } });
    let err = store.by_rates(&quotes(true), missing).unwrap_err();
    assert!(err.contains("no rate of TEST"), "{err}");
    let late = json!({ "dividend_yield": { "TEST": { "2020-01-01": 0.01 } } });
    let err = store.by_rates(&quotes(true), late).unwrap_err();
    assert!(err.contains("no rate of TEST on 2019-04-26"), "{err}");
    let plan = PlanContext {
        base: Path::new("."),
        inputs: BTreeMap::from([(
            "chain".to_owned(),
            vec![Provided::columns(PortType::OptionChain, ["bid", "ask", "underlying"])],
        )]),
    };
    let stage = stage("greeks/implied_volatility");
    let resolved = stage.resolve(json!({ "forward": "column" })).unwrap();
    assert_eq!(stage.check(&resolved, &plan).unwrap_err().field, "forward");
}

/// The memo of a partition holds the value that it reads, in whatever form it was stated.
#[test]
fn a_memo_holds_the_yield_of_its_partition() {
    let store = Fixture::new();
    let (chain, rates) = (store.chain(&quotes(true)), store.rates);
    let context = context(&store.store, &[("chain", chain), ("rates", rates)]);
    run(&context, "greeks/implied_volatility", json!({ "dividend_yield": 0.01 }));
    let cached = |by_date: Value| {
        let stage = stage("greeks/implied_volatility");
        let resolved = stage
            .resolve(json!({ "dividend_yield": { "TEST": by_date, "OTHER": 0.3 } }))
            .unwrap();
        stage.cached_share(&resolved, &context.given()).unwrap().unwrap().cached
    };
    assert_eq!(cached(json!(0.01)), 1);
    assert_eq!(
        cached(json!({ "2018-01-01": 0.3, "2019-01-01": 0.01, "2020-01-01": 0.2 })),
        1
    );
    assert_eq!(cached(json!({ "2018-01-01": 0.3 })), 0);
}

/// Greeks of a chain with a vendor's volatilities: its forward by expiry, or its yield.
#[test]
fn greeks_take_the_terms_of_the_chain() {
    let store = Fixture::new();
    let n = 10;
    let quotes = quotes(true);
    let place = quotes.schema().index_of("implied_volatility").unwrap();
    let mut arrays = quotes.columns().to_vec();
    arrays[place] = Arc::new(table::nullable(&vec![SIGMA; n]));
    let quotes = RecordBatch::try_new(quotes.schema(), arrays).unwrap();
    let delta = |kind: &str, terms: &[(&str, Vec<f64>)], with: Value| {
        let chain = store.chain(&with_terms(&quotes, terms));
        let out = run(&context(&store.store, &[("chain", chain)]), kind, with);
        column(&read(&store.store, out["greeks"]), "delta")
    };
    let (years, df) = (("years", once(n, YEARS)), ("discount_factor", once(n, discount())));
    for kind in ["greeks/analytic", "greeks/american"] {
        let by_yield = delta(
            kind,
            &[
                years.clone(),
                df.clone(),
                ("dividend_yield", once(n, YIELD)),
                ("borrow_rate", once(n, BORROW)),
            ],
            json!({}),
        );
        let by_forward = delta(
            kind,
            &[years.clone(), df.clone(), ("forward", once(n, forward()))],
            json!({}),
        );
        let by_config = delta(
            kind,
            &[years.clone(), df.clone()],
            json!({ "dividend_yield": { "TEST": { "2019-04-26": YIELD } }, "borrow_rate": BORROW }),
        );
        for i in 0..n {
            assert!(
                (by_yield[i] - by_forward[i]).abs() < 1e-8,
                "{kind} {by_yield:?} {by_forward:?}"
            );
        }
        assert_eq!(by_yield, by_config);
        assert_ne!(by_yield, delta(kind, &[years.clone(), df.clone()], json!({})));
    }
}

/// Terms that a configuration states of all contracts of a chain are known in the plan, through the stages
/// between.
#[test]
fn a_plan_refuses_what_contradicts_the_configured_contracts() {
    let columns = ["bid", "ask", "underlying", "implied_volatility"];
    let american = Provided {
        exercise: Some(Exercise::American),
        calendar: Some(CalendarName::Sse),
        ..Provided::columns(PortType::OptionChain, columns)
    };
    let check = |kind: &str, with: Value, chain: &Provided| {
        let plan = PlanContext {
            base: Path::new("."),
            inputs: BTreeMap::from([("chain".to_owned(), vec![chain.clone()])]),
        };
        let stage = stage(kind);
        stage.check(&stage.resolve(with).unwrap(), &plan)
    };
    let iv = "greeks/implied_volatility";
    let priced = check(iv, json!({}), &american).unwrap().remove("chain").unwrap();
    for chain in [&american, &priced] {
        let problem = check("greeks/analytic", json!({}), chain).unwrap_err();
        assert!(
            problem.message.contains("european") && problem.message.contains("american"),
            "{problem:?}"
        );
        assert!(check("greeks/american", json!({}), chain).is_ok());
    }
    assert_eq!(
        check(iv, json!({ "style": "european" }), &american).unwrap_err().field,
        "style"
    );
    let problem = check(iv, json!({ "time": { "calendar": "us" } }), &american).unwrap_err();
    assert_eq!(problem.field, "time.calendar");
    assert!(
        problem.message.contains("us") && problem.message.contains("sse"),
        "{problem:?}"
    );
    let european = Provided {
        exercise: Some(Exercise::European),
        ..american.clone()
    };
    assert!(check("greeks/american", json!({}), &european).is_err());
    assert!(check("greeks/analytic", json!({}), &european).is_ok());
}
