//! `runner policy act`: the decision of each test date from files cut off there is the backtest's, bit by
//! bit, and refusals.

use super::python_policies;
use super::python_stages::python;
use crate::incremental::{Market, market};
use crate::{Ended, Project, artifact};
use arrow_array::cast::AsArray as _;
use arrow_array::types::Date32Type;
use cache::{Artifact, Store};
use datasets::Date;
use serde_json::Value;
use stages_core::table;
use stages_env::options::OptionsEnv;
use stages_env::stocks::StocksEnv;
use stages_env::table::TableEnv;
use stages_env::{ActingSimulator, BatchEnv as _, OpenOptions, PortfolioEnv, Step};
use stages_policy::{AnyPolicy, Mode};
use std::collections::BTreeMap;

const OPTIONS: &str = "\
version: 1
name: daily
stages:
  quotes: \
{ uses: ingest/option_chain, with: { path: chain, contract: { underlying_kind: index, calendar: us } } }
  bars: { uses: ingest/bars, with: { path: bars, partition: month } }
  chain: { uses: greeks/implied_volatility, needs: { chain: quotes } }
  greeks: { uses: greeks/analytic, needs: { chain: chain } }
  technical: \
{ uses: features/technical, needs: { bars: bars }, with: { indicators: [{ log_return: 1 }, { rsi: 5 }] } }
  surface: \
{ uses: features/options_surface, needs: { chain: chain, greeks: greeks }, with: { realised_window: 5 } }
  env:
    uses: env/options
    needs: { chain: chain, greeks: greeks, features: [technical, surface] }
    with: \
{ test_fraction: 0.3, purge: 1, embargo: 0, episode_length: [5, 10], rate: 0.02, capital: 1e6, ACTIONS }
  train:
    uses: train/recurrent_ppo
    needs: { env: env }
    with: \
{ total_timesteps: 512, n_steps: 32, n_envs: 4, batch_size: 64, policy_kwargs: { lstm_hidden_size: 8, net_arch: { pi: [8], vf: [8] } } }
  evaluate: \
{ uses: evaluate/backtest, needs: { env: env, policy: train }, with: { random_paths: 2, drawn_paths: 1, bootstrap_draws: 10, rules: false, ablations: false } }
";

const STOCKS: &str = "\
version: 1
name: panel
stages:
  bars: { uses: ingest/bars, with: { path: bars.csv, calendar: none, partition: month } }
  technical: \
{ uses: features/technical, needs: { bars: bars }, with: { indicators: [{ log_return: 1 }, { rsi: 5 }] } }
  env:
    uses: env/stocks
    needs: { bars: bars, features: technical }
    with: { test_fraction: 0.3, purge: 0, embargo: 0, ACTIONS }
  train: \
{ uses: train/ppo, needs: { env: env }, with: { total_timesteps: 256, n_steps: 32, n_envs: 4, batch_size: 64, normalize_obs: true } }
  evaluate: \
{ uses: evaluate/backtest, needs: { env: env, policy: train }, with: { random_paths: 2, bootstrap_draws: 10 } }
";

const TABLE: &str = "\
version: 1
name: own
stages:
  rows: { uses: ingest/table, with: { path: rows.csv, partition: month } }
  env:
    uses: env/table
    needs: { table: rows }
    with: \
{ symbols: [AAA], observe: [signal], price: close, test_fraction: 0.3, episode_length: 20, purge: 0, embargo: 0, actions: { kind: discrete, positions: [0, 1] } }
  train: TRAIN
  evaluate: \
{ uses: evaluate/backtest, needs: { env: env, policy: train }, with: { random_paths: 2, bootstrap_draws: 10 } }
";

/// A decision of a backtest: the action, and the bits of log-probabilities or means.
#[derive(Clone, Debug, PartialEq)]
struct Reference {
    action: String,
    bits: Vec<u32>,
}

/// An account: the costs so far, the number of liquidations, and the units of the costs of orders.
struct Spent(f64, u32, f64);

/// Every decision of a policy over the test dates, by its date. The orders that each means cost what its step
/// does.
fn decisions<S: ActingSimulator>(
    project: &Project,
    ended: &Ended,
    open: impl Fn(&Store, &Artifact, &OpenOptions) -> PortfolioEnv<S>,
    date: impl Fn(&PortfolioEnv<S>) -> Date,
    spent: impl Fn(&PortfolioEnv<S>) -> Spent,
) -> BTreeMap<Date, Reference> {
    let (store, made) = artifact(project, ended, "train.policy");
    let policy = AnyPolicy::read(&store, &made).unwrap();
    let mut state = policy.start(&store, 1).unwrap();
    let (store, env) = artifact(project, ended, "env.env");
    let mut env = open(&store, &env, &OpenOptions::test(1, 0));
    let mut step = Step::new(env.spec(), 1);
    let (mut start, mut out) = (true, BTreeMap::new());
    env.reset(step.buffers());
    loop {
        let at = date(&env);
        policy
            .act(&step.obs, &step.action_mask, &[start], &mut state, Mode::Greedy)
            .unwrap();
        start = false;
        let output = state.output();
        let values = if output.log_prob.is_empty() {
            &output.mean
        } else {
            &output.log_prob
        };
        let reference = Reference {
            action: env.spec().action_space.describe(state.actions(), 0),
            bits: values.iter().map(|value| value.to_bits()).collect(),
        };
        out.insert(at, reference);
        let (before, orders) = (spent(&env), env.orders(state.actions()).unwrap());
        env.step(state.actions(), step.buffers()).unwrap();
        if step.terminated[0] || step.truncated[0] {
            return out;
        }
        let after = spent(&env);
        if after.1 == before.1 {
            let (paid, expected) = (after.0 - before.0, orders.cost * before.2);
            assert!(
                (paid - expected).abs() < 1e-9 * (1.0 + after.0),
                "{at}: {paid} {expected}"
            );
            let each: f64 = orders.orders.iter().map(|order| order.cost).sum();
            assert!(
                each <= orders.cost * (1.0 + 1e-9) + 1e-9,
                "{at}: {each} {}",
                orders.cost
            );
        }
    }
}

/// The document that `policy act` prints.
fn act(project: &Project, args: &[&str]) -> Value {
    let ended = project.run(&[&["policy", "act", "latest/train", "--json"], args].concat());
    assert_eq!(ended.code, 0, "{args:?}: {}", ended.text());
    serde_json::from_str(&ended.stdout).unwrap()
}

fn reference(document: &Value) -> Reference {
    let bits = |list: &str, field: &str, none: f32| -> Vec<u32> {
        let entries = document[list].as_array().unwrap().iter();
        entries
            .map(|entry| entry[field].as_f64().map_or(none, |value| value as f32).to_bits())
            .collect()
    };
    let mut all = bits("choices", "log_probability", f32::NEG_INFINITY);
    all.extend(bits("components", "mean", 0.0));
    Reference {
        action: document["action"]["text"].as_str().unwrap().to_owned(),
        bits: all,
    }
}

/// Without what tells of the files rather than of the decision.
fn decision(mut document: Value) -> Value {
    for key in ["artifact", "environment", "data_until"] {
        document[key] = Value::Null;
    }
    document
}

/// Writes the rows of days up to a date as one file.
fn write_until(
    project: &Project,
    name: &str,
    (header, days): (&str, &BTreeMap<String, Vec<String>>),
    date: Date,
) {
    let last = date.to_string();
    let lines = days.range(..=last).flat_map(|(_, lines)| lines);
    let text: String = std::iter::once(header)
        .chain(lines.map(String::as_str))
        .map(|line| format!("{line}\n"))
        .collect();
    project.write(name, &text);
}

fn write_options(project: &Project, market: &Market, date: Date) {
    write_until(project, "cut/chain.csv", (&market.headers[0], &market.chain), date);
    write_until(project, "cut/bars.csv", (&market.headers[1], &market.bars), date);
}

const CUT: [&str; 5] = [
    "--data",
    "quotes=cut/chain.csv",
    "--data",
    "bars=cut/bars.csv",
    "--replace",
];

/// The document of a decision, given back on the next date, has its orders filled: the decision is that of
/// the
/// account that the policy would have, and the positions are.
fn documents_are_given_back(
    project: &Project,
    known: &BTreeMap<Date, Reference>,
    write: impl Fn(Date),
    cut: &[&str],
) {
    let dates: Vec<Date> = known.keys().copied().collect();
    let (mut traded, mut tried) = (0, 0);
    let given = |name: &str, more: &[&str]| act(project, &[cut, &["--positions", name], more].concat());
    for days in dates.windows(2).skip(1) {
        write(days[0]);
        let before = given("played", &[]);
        let orders = before["orders"]["orders"].as_array().unwrap().len();
        if orders == 0 && tried > 0 {
            continue;
        }
        tried += 1;
        project.write("before.json", before.to_string());
        write(days[1]);
        let (played, after) = (given("played", &[]), given("before.json", &[]));
        assert_eq!(&reference(&after), &known[&days[1]], "{}", days[1]);
        assert_eq!(after["filled"]["time"], days[0].to_string());
        let held = |document: &Value| -> Vec<(String, f64)> {
            let positions = document["account"]["positions"].as_array().unwrap().iter();
            let of = |position: &Value| format!("{} {}", position["symbol"], position["strike"]);
            positions
                .map(|position| (of(position), position["quantity"].as_f64().unwrap()))
                .collect()
        };
        assert_eq!(held(&after), held(&played), "{}", days[1]);
        let cash = |document: &Value| document["account"]["cash"].as_f64().unwrap_or_default();
        let (found, expected) = (cash(&after), cash(&played));
        assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} {expected}");
        let as_is = given("before.json", &["--as-is"]);
        assert!(as_is["filled"].is_null());
        assert_eq!(cash(&as_is), cash(&before));
        traded += orders;
        if tried == 4 {
            break;
        }
    }
    assert!(traded > 0, "no orders");
}

/// The actions of the policy in the trajectory of the backtest, by date.
fn trajectory(project: &Project, ended: &Ended) -> BTreeMap<Date, String> {
    let (store, made) = artifact(project, ended, "evaluate.trajectory");
    let rows =
        table::from_parquet(store.blob(made.entry("trajectory.parquet").unwrap().blob).unwrap()).unwrap();
    let strategy = rows.column_by_name("strategy").unwrap().as_string::<i32>();
    let action = rows.column_by_name("action").unwrap().as_string::<i32>();
    let dates = rows.column_by_name("date").unwrap().as_primitive::<Date32Type>();
    (0..rows.num_rows())
        .filter(|&row| strategy.value(row) == "policy" && !action.value(row).is_empty())
        .map(|row| (Date(dates.value(row)), action.value(row).to_owned()))
        .collect()
}

/// A policy with an LSTM over options, with each kind of actions.
#[test]
fn options_decide_as_the_backtest_does() {
    let market = market();
    for (actions, every) in [
        ("actions: menu", 1),
        (
            "actions: multi_discrete, hedge: { instrument: underlying, rule: action }",
            3,
        ),
        ("actions: continuous, no_trade: 0, sizing: { contracts: 300 }", 3),
    ] {
        let project = Project::new(OPTIONS.replace("ACTIONS", actions));
        market.write(&project, market.chain.len());
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 0, "{}", ended.text());
        let open = |store: &Store, artifact: &Artifact, options: &OpenOptions| {
            OptionsEnv::open(store, artifact, options).unwrap()
        };
        let spent = |env: &OptionsEnv| {
            let ledger = env.ledger(0);
            Spent(ledger.spread_cost + ledger.commission, ledger.liquidations, 1.0)
        };
        let known = decisions(&project, &ended, open, |env| env.ledger(0).date, spent);
        if every == 1 {
            let of_backtest = trajectory(&project, &ended);
            let of_known: BTreeMap<Date, String> = known
                .iter()
                .map(|(date, known)| (*date, known.action.clone()))
                .collect();
            assert_eq!(of_backtest, of_known);
        }
        let (mut traded, mut masked) = (0, 0);
        assert!(known.len() > 10, "{}", known.len());
        for (date, known) in known.iter().step_by(every) {
            write_options(&project, &market, *date);
            let played = act(&project, &[&CUT[..], &["--positions", "played"]].concat());
            assert_eq!(played["date"], date.to_string());
            assert_eq!(&reference(&played), known, "{date}");
            // The same account, given.
            project.write("account.json", played.to_string());
            let given = act(&project, &[&CUT[..], &["--positions", "account.json"]].concat());
            assert_eq!(&reference(&given), known, "{date}");
            // Not the sums, which the rounding of the account's own enters.
            for part in ["orders", "refused"] {
                assert_eq!(given["orders"][part], played["orders"][part], "{date}");
            }
            traded += played["orders"]["orders"].as_array().unwrap().len();
            let choices = played["choices"].as_array().unwrap();
            masked += choices.iter().filter(|choice| !choice["masked"].is_null()).count();
            for choice in choices {
                assert_eq!(
                    choice["masked"].is_null(),
                    !choice["log_probability"].is_null(),
                    "{choice}"
                );
            }
        }
        documents_are_given_back(&project, &known, |date| write_options(&project, &market, date), &CUT);
        assert!(traded > 0, "{actions}: no orders");
        assert_eq!(masked > 0, !actions.starts_with("actions: continuous"), "{actions}");
        // Rows after the moment of the decision do not matter, in any of the files.
        let (date, _) = known.iter().nth(known.len() / 2).unwrap();
        write_options(&project, &market, *date);
        let cut = act(&project, &[&CUT[..], &["--positions", "played"]].concat());
        let at = date.to_string();
        let whole = act(
            &project,
            &[
                "--data",
                "quotes=chain",
                "--data",
                "bars=bars",
                "--at",
                &at,
                "--positions",
                "played",
            ],
        );
        assert_eq!(decision(whole), decision(cut));
    }
}

/// Closes of two symbols and a signal, on so many weekdays.
fn days(count: usize) -> (String, BTreeMap<String, Vec<String>>) {
    let first: Date = "2019-01-02".parse().unwrap();
    let weekdays = (0..).map(|i| first.plus(i)).filter(|date| !date.is_weekend());
    let day = |(i, day): (usize, Date)| {
        let row = |(s, symbol): (usize, &str)| {
            let close = 50.0 + ((i * (s + 3)) % 17) as f64 + 0.1 * ((i * 5 + s) % 7) as f64;
            format!("{day},{symbol},{close},{}", (i * 7 + s * 3) % 11)
        };
        (
            day.to_string(),
            ["AAA", "BBB"].into_iter().enumerate().map(row).collect(),
        )
    };
    (
        "date,symbol,close,signal".to_owned(),
        weekdays.take(count).enumerate().map(day).collect(),
    )
}

#[test]
fn stocks_decide_as_the_backtest_does() {
    let (header, days) = days(120);
    let last: Date = days.keys().last().unwrap().parse().unwrap();
    for actions in [
        "episode_length: 20, actions: { kind: weights }",
        "episode_length: 20, actions: { kind: choices, lots: [1, 2] }",
        "rules: finrl",
    ] {
        let project = Project::new(STOCKS.replace("ACTIONS", actions));
        write_until(&project, "bars.csv", (&header, &days), last);
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 0, "{}", ended.text());
        let open = |store: &Store, artifact: &Artifact, options: &OpenOptions| {
            StocksEnv::open(store, artifact, options).unwrap()
        };
        let spent = |env: &StocksEnv| {
            let ledger = env.ledger(0);
            let costs = ledger.commission + ledger.spread_cost + ledger.impact_cost;
            Spent(costs, ledger.liquidations, 1.0)
        };
        let known = decisions(&project, &ended, open, |env| env.ledger(0).date, spent);
        let mut traded = 0;
        for (date, known) in known.iter().step_by(5) {
            write_until(&project, "cut.csv", (&header, &days), *date);
            let cut = ["--data", "cut.csv", "--replace"];
            let played = act(&project, &[&cut[..], &["--positions", "played"]].concat());
            assert_eq!(&reference(&played), known, "{actions}: {date}");
            project.write("account.json", played.to_string());
            let given = act(&project, &[&cut[..], &["--positions", "account.json"]].concat());
            assert_eq!(&reference(&given), known, "{actions}: {date}");
            let at = date.to_string();
            let whole = act(&project, &["--data", "bars.csv", "--at", &at, "--positions", "played"]);
            assert_eq!(decision(whole), decision(played.clone()), "{actions}: {date}");
            traded += played["orders"]["orders"].as_array().unwrap().len();
        }
        let write = |date| write_until(&project, "cut.csv", (&header, &days), date);
        documents_are_given_back(&project, &known, write, &["--data", "cut.csv", "--replace"]);
        assert!(traded > 0, "{actions}: no orders");
    }
}

#[test]
fn tables_decide_as_the_backtest_does_by_policies_of_others_too() {
    let (header, days) = days(120);
    let last: Date = days.keys().last().unwrap().parse().unwrap();
    let model = std::fs::read("../../tests/reference/sb3/ppo_cart_pole.zip").unwrap();
    let own = python().map(|python| python_policies::agent(&python));
    let trainings = [
        "{ uses: train/ppo, needs: { env: env }, \
         with: { total_timesteps: 256, n_steps: 32, n_envs: 4, batch_size: 64 } }",
        // Of CartPole, which has as many observations and actions.
        "{ uses: train/import, needs: { env: env }, with: { path: model.zip } }",
        "{ uses: train/dqn, needs: { env: env }, with: { total_timesteps: 200, learning_starts: 100 } }",
    ];
    for train in trainings.into_iter().chain(own.as_deref()) {
        let project = Project::new(TABLE.replace("TRAIN", train));
        std::fs::write(project.path("model.zip"), &model).unwrap();
        project.write("my_agent.py", python_policies::AGENT);
        write_until(&project, "rows.csv", (&header, &days), last);
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 0, "{}", ended.text());
        let open = |store: &Store, artifact: &Artifact, options: &OpenOptions| {
            TableEnv::open(store, artifact, options).unwrap()
        };
        let spent = |env: &TableEnv| Spent(env.ledger(0).costs, 0, env.ledger(0).nav);
        let known = decisions(&project, &ended, open, |env| env.ledger(0).time.date, spent);
        for (date, known) in known.iter().step_by(5) {
            write_until(&project, "cut.csv", (&header, &days), *date);
            let cut = ["--data", "cut.csv", "--replace"];
            let played = act(&project, &[&cut[..], &["--positions", "played"]].concat());
            assert_eq!(&reference(&played), known, "{train}: {date}");
            project.write("account.json", played.to_string());
            let given = act(&project, &[&cut[..], &["--positions", "account.json"]].concat());
            assert_eq!(&reference(&given), known, "{train}: {date}");
        }
        let write = |date| write_until(&project, "cut.csv", (&header, &days), date);
        let cut = ["--data", "cut.csv", "--replace"];
        if known
            .values()
            .any(|decision| decision.action != known.values().next().unwrap().action)
        {
            documents_are_given_back(&project, &known, write, &cut);
        }
        // A day that is appended; the account is flat, and a drawn action is the same each time.
        write_until(
            &project,
            "rows.csv",
            (
                &header,
                &days.iter().take(119).map(|(k, v)| (k.clone(), v.clone())).collect(),
            ),
            last,
        );
        write_until(
            &project,
            "today.csv",
            (
                &header,
                &days.iter().skip(119).map(|(k, v)| (k.clone(), v.clone())).collect(),
            ),
            last,
        );
        let flat = act(&project, &["--data", "today.csv", "--sample", "3"]);
        assert_eq!(flat["date"], last.to_string());
        assert_eq!(flat["account_is"], "flat");
        assert_eq!(flat["account"]["positions"], serde_json::json!([]));
        assert_eq!(act(&project, &["--data", "rows=today.csv", "--sample", "3"]), flat);
        // What is read already is not read twice.
        write_until(&project, "rows.csv", (&header, &days), last);
        let same = act(&project, &["--data", "rows.csv", "--sample", "3"]);
        assert_eq!(same["choices"], flat["choices"]);
    }
}

/// The sentence and the hint of a refusal, with its exit code.
fn refused(project: &Project, args: &[&str]) -> String {
    let ended = project.run(&[&["policy", "act", "latest/train"], args].concat());
    let run = ended.stderr.replace(project.path("").to_str().unwrap(), "");
    assert!(ended.stdout.is_empty(), "{}", ended.stdout);
    format!("{} {run}", ended.code)
}

#[test]
fn what_cannot_be_decided_is_refused() {
    let (header, days) = days(120);
    let last: Date = days.keys().last().unwrap().parse().unwrap();
    let train = "{ uses: train/ppo, needs: { env: env }, \
        with: { total_timesteps: 256, n_steps: 32, n_envs: 4, batch_size: 64 } }";
    let project = Project::new(TABLE.replace("TRAIN", train));
    write_until(&project, "rows.csv", (&header, &days), last);
    assert_eq!(project.exec(&[]).code, 0);
    let early: Date = days.keys().nth(60).unwrap().parse().unwrap();
    write_until(&project, "early.csv", (&header, &days), early);
    let renamed: BTreeMap<String, Vec<String>> = days.clone();
    write_until(&project, "renamed.csv", ("date,symbol,close,other", &renamed), last);
    let closed: BTreeMap<String, Vec<String>> =
        [("2019-06-19".to_owned(), vec!["2019-06-19,BBB,50.5,1".to_owned()])].into();
    write_until(
        &project,
        "closed.csv",
        (&header, &closed),
        "2019-06-19".parse().unwrap(),
    );
    project.write("short.csv", "symbol,quantity\nCCC,1\n");
    let of = |args: &[&str]| refused(&project, args);
    insta::assert_snapshot!(of(&["--data", "early.csv", "--replace"]), @"
    1 error: the decision would be of 2019-03-27, and the policy was trained on dates until 2019-04-29
      hint: give files that go on after them; `evaluate/backtest` judges a policy on past dates
    ");
    insta::assert_snapshot!(of(&["--data", "renamed.csv", "--replace"]), @"
    1 error: `env` failed: observe[0]: the table has no column `signal` of numbers
      hint: it has close, other
    ");
    insta::assert_snapshot!(of(&["--data", "closed.csv"]), @"
    1 error: the files go to 2019-06-19, and the last snapshot that can be traded on is of 2019-06-18
      cause: `rows`: no row of AAA on 2019-06-19, of which the history has one on 2019-06-18
      hint: the market may be closed on that day, its underlying or a price may have no quote, or another source may end before it; `--at DATE` decides on an earlier one
    ");
    insta::assert_snapshot!(of(&["--data", "rows.csv", "--max-age", "30d"]), @"
    1 error: the policy is too old: it was trained on dates until 2019-04-29, 50 days before 2019-06-18, and `--max-age` is 30 days
      hint: train it on newer dates, or give a greater `--max-age`
    ");
    insta::assert_snapshot!(of(&["--data", "rows.csv", "--positions", "short.csv"]), @"
    1 error: the position in CCC cannot be held: the environment does not trade it
      hint: it trades AAA
    ");
    insta::assert_snapshot!(of(&["--data", "rows.csv", "--positions", "played", "--cash", "3"]), @"
    2 error: `--positions played` has the cash of the account that the policy would have
      hint: leave `--cash` out
    ");
    // Documents of decisions that cannot be carried out, and one of three days before.
    let document = |time: &str, action: u32| {
        let decision = serde_json::json!({
            "account": { "positions": [] }, "orders": {}, "drawn": null,
            "time": time, "date": time, "action": { "values": [action] },
        });
        project.write("before.json", decision.to_string());
        ["--data", "rows.csv", "--positions", "before.json"]
    };
    insta::assert_snapshot!(of(&document("2019-06-09", 1)), @"
    1 error: the orders of 2019-06-09 cannot be filled: it is not a snapshot from 2019-04-30 to 2019-06-18
      hint: `--as-is` takes the account of its document as it stands; `--from` begins earlier
    ");
    insta::assert_snapshot!(of(&document("2019-06-17", 2)), @"
    1 error: the action of the decision of 2019-06-17 is not one of this environment
      hint: `--as-is` takes the account of its document as it stands
    ");
    let late = act(&project, &document("2019-06-13", 1));
    assert_eq!(late["filled"]["skipped"], 2);
    // A fraction of the value, which costs have left smaller.
    let quantity = late["account"]["positions"][0]["quantity"].as_f64().unwrap();
    assert!((quantity - 1.0).abs() < 0.002, "{quantity}");
    let notes = late["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| note.as_str().unwrap());
    insta::assert_snapshot!(notes.collect::<Vec<_>>().join("\n"), @"
    the orders of 2019-06-13 are taken as filled by the environment's rules; `--as-is` leaves them out
    nothing was decided at 2 snapshots after it: interest, dividends and settlements there are not in the account
    ");
    insta::assert_snapshot!(of(&["--data", "nothing.csv"]), @"
    2 error: there is no file `nothing.csv`
      hint: `--data` takes STAGE=FILE or FILE
    ");
    insta::assert_snapshot!(of(&["--data", "row=rows.csv"]), @"
    2 error: no stage before the policy's environment is called `row`
      hint: did you mean `rows`?
    ");
    insta::assert_snapshot!(of(&["--data", "rows.dates=rows.csv"]), @"
    2 error: `rows.dates` reads no files of `dates`
      hint: files are given to stages with a `path`; a program reads the files that its `files:` names
    ");
    insta::assert_snapshot!(of(&["--data", "short.csv", "--replace"]), @"
    1 error: `rows` cannot read the files given to it: `short.csv` has no column of instants (datetime, timestamp, date, datadate, day)
      hint: it has symbol, quantity; `instant`, `time`, `symbol` and `columns` name them
    ");
    insta::assert_snapshot!(of(&["--data", "rows.csv", "--at", "soon"]), @"
    2 error: `soon` is neither a date nor a time
      hint: write `--at 2024-01-19`, or `--at 2024-01-19T15:45:00Z`
    ");
    let whole = project.run(&["policy", "act", "latest/env", "--data", "rows.csv"]);
    insta::assert_snapshot!(format!("{} {}", whole.code, whole.stderr), @"
    2 error: `latest/env` is not a policy: it has no file `policy.safetensors` and no `policy.json`
      hint: give the RUN/STAGE of a training; `runner show RUN` lists the stages of a run
    ");
    // For people.
    let shown = project.run(&[
        "policy",
        "act",
        "latest/train",
        "--data",
        "rows.csv",
        "--max-age",
        "90d",
    ]);
    assert_eq!(shown.code, 0, "{}", shown.text());
    for part in [
        "2019-06-18 of AAA: position ",
        "account: flat, net asset value 1.00; ",
        "probability",
    ] {
        assert!(shown.stdout.contains(part), "{}", shown.stdout);
    }
}

const FACTORS: &str = "\
version: 1
name: factors
stages:
  bars: { uses: ingest/bars, with: { path: bars.csv } }
  factors: { uses: ingest/features, needs: { bars: bars }, with: { path: factors.csv, lag: 0 } }
  returns: { uses: features/technical, needs: { bars: bars }, with: { indicators: [{ log_return: 1 }] } }
  env: \
{ uses: env/table, needs: { features: [factors, returns] }, with: { observe: [value, log_return_1], reward_column: log_return_1, gaps: drop } }
  train: \
{ uses: train/ppo, needs: { env: env }, with: { total_timesteps: 256, n_steps: 32, n_envs: 4, batch_size: 64 } }
";

/// Files of bars and of a factor over some of the days of 2019; the factor of the last day is `last`.
fn write_factors(project: &Project, name: &str, days: std::ops::Range<usize>, last: f64) {
    let (mut bars, mut factors) = (
        "symbol,date,open,high,low,close,volume\n".to_owned(),
        "symbol,date,value\n".to_owned(),
    );
    for i in days {
        let date = format!("2019-{:02}-{:02}", 1 + i / 28, 1 + i % 28);
        let close = 100.0 + (i * 7 % 11) as f64;
        bars.push_str(&format!("AAA,{date},{close},{close},{close},{close},1000\n"));
        let value = if i == 139 { last } else { (i % 5) as f64 };
        factors.push_str(&format!("AAA,{date},{value}\n"));
    }
    project.write(&format!("{name}bars.csv"), &bars);
    project.write(&format!("{name}factors.csv"), &factors);
}

#[test]
fn factors_at_the_dates_of_bars_are_given_beside_them() {
    let project = Project::new(FACTORS);
    write_factors(&project, "", 0..139, 0.0);
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let today = |prefix: &str, replace: &[&str]| {
        let files = [format!("bars={prefix}bars.csv"), format!("factors={prefix}factors.csv")];
        act(
            &project,
            &[&["--data", &files[0], "--data", &files[1]], replace].concat(),
        )
    };
    write_factors(&project, "today-", 139..140, 4.0);
    write_factors(&project, "all-", 0..140, 4.0);
    write_factors(&project, "other-", 139..140, -4.0);
    let document = today("today-", &[]);
    assert_eq!(document["date"], "2019-05-28");
    assert_eq!(today("all-", &["--replace"])["choices"], document["choices"]);
    assert_ne!(today("other-", &[])["choices"], document["choices"]);
}
