//! Rules as policies and as baselines: those that do what a built-in baseline does earn the same, and what
//! they see is raw.

use super::stocks::stocks_workplace;
use super::table::{price, table_workplace as table_of, workplace as table_workplace};
use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, StringArray};
use datasets::{Date, SnapshotTime};
use stages_core::event::{EventSink, StageEvent};
use stages_env::classic::{Classic, ClassicConfig};
use stages_env::hedging::{Hedging, HedgingConfig};
use stages_env::stocks::StocksConfig;
use stages_env::stocks::synthetic::panel;
use stages_env::table::{SymbolRows, TableActionKind, TableConfig, TableCosts, TableSource};
use stages_numerics::random::Random;
use stages_policy::AnyPolicy;
use stages_policy::forms::Rule;
use std::sync::Mutex;

/// The warnings and the log of a stage.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl EventSink for Told {
    fn emit(&self, event: StageEvent) {
        let mut lines = self.0.lock().unwrap();
        match event {
            StageEvent::Warning { message, .. } => lines.push(format!("warning: {message}")),
            StageEvent::Log { line } => lines.push(line),
            _ => {}
        }
    }
}

impl Workplace {
    /// Makes rules of a name and the rest of their settings.
    fn rules(&self, rules: &[(&str, Value)]) -> Vec<Input> {
        let of = |(name, config): &(&str, Value)| {
            let mut config = config.clone();
            config["name"] = json!(name);
            let config = serde_json::from_value(config).unwrap();
            let digest = Rule.run(&config, &self.context).unwrap()["policy"];
            let artifact = self.context.store.artifact(digest).unwrap();
            Input { digest, artifact }
        };
        rules.iter().map(of).collect()
    }

    fn connect_rules(&mut self, rules: &[(&str, Value)]) {
        let rules = self.rules(rules);
        self.context.inputs.insert("rules".to_owned(), rules);
    }

    /// Makes a rule the policy.
    pub(super) fn decide_by(&mut self, rule: Value) {
        let [rule] = self.rules(&[("mine", rule)]).try_into().unwrap();
        self.context.inputs.insert("policy".to_owned(), vec![rule]);
    }
}

fn small() -> BacktestConfig {
    BacktestConfig {
        ablations: false,
        drawn_paths: 1,
        random_paths: 1,
        rules: false,
        bootstrap_draws: 50,
        ..BacktestConfig::default()
    }
}

/// The rows of a strategy in a column.
fn rows(table: &RecordBatch, strategy: &str, column: &str) -> Vec<f64> {
    let strategies: &StringArray = table.column_by_name("strategy").unwrap().as_string();
    let values = table.column_by_name(column).unwrap().as_primitive::<Float64Type>();
    let rows = (0..table.num_rows()).filter(|&row| strategies.value(row) == strategy);
    rows.map(|row| values.value(row)).collect()
}

/// The figures of a rule and those of the baseline that it is, which are all the same.
fn check_twin(summary: &Value, rule: &str, twin: &str) {
    let figures = summary.as_object().unwrap();
    let own: Vec<&String> = figures
        .keys()
        .filter(|name| name.contains(&format!("/{rule}/")))
        .collect();
    assert!(own.len() > 30, "{own:?}");
    for name in own {
        // The p-value is one of several, in the order of their size.
        if !name.ends_with("_p") {
            let theirs = &summary[name.replace(&format!("/{rule}/"), &format!("/{twin}/"))];
            assert_eq!(&summary[name], theirs, "{name}");
        }
    }
}

#[test]
fn a_rule_that_is_a_baseline_earns_what_it_earns() {
    let mut workplace = options_workplace(400, &OptionsConfig::default());
    workplace.connect_rules(&[
        (
            "sells",
            json!({ "rules": [{ "when": "not held", "do": "short_straddle" }] }),
        ),
        ("idle", json!({ "rules": [{ "when": "not held", "do": "close_all" }] })),
    ]);
    let told = Arc::new(Told::default());
    workplace.context.events = told.clone();
    let (summary, table) = workplace.results(&small());
    check_twin(&summary, "sells", "short_straddle");
    check_twin(&summary, "idle", "cash");
    for column in ["nav", "cash", "lines", "spread_cost"] {
        assert_eq!(
            rows(&table, "sells", column),
            rows(&table, "short_straddle", column),
            "{column}"
        );
    }
    assert!(rows(&table, "sells", "lines").iter().any(|lines| *lines > 0.0));
    // What is masked is told with its count.
    let masked = |line: &&String| line.starts_with("warning: idle: the action of line 1 was masked in ");
    let lines = told.0.lock().unwrap();
    assert_eq!(lines.iter().filter(masked).count(), 1, "{lines:?}");
    // Without them the rest is what it was.
    drop(lines);
    workplace.context.inputs.remove("rules");
    let (before, _) = workplace.results(&small());
    for (name, value) in before.as_object().unwrap() {
        if !name.ends_with("_p") {
            assert_eq!(&summary[name], value, "{name}");
        }
    }
}

/// Features are in their own units, whatever the environment shows other policies, and the policy that is
/// compared does not see them so.
#[test]
fn what_a_rule_sees_is_raw() {
    let config = OptionsConfig::default();
    let market = market(400, 5);
    let mut workplace = options_workplace(400, &config);
    let shown = workplace.env().spec().clone();
    let feature = &market.features[1];
    let name = format!("market.{}", feature.name);
    let at = shown.observation.iter().position(|element| *element == name).unwrap();
    let normalisation = shown.normalisation.as_ref().unwrap();
    // The threshold is a value that is seen rarely, but in raw units only.
    let mut values: Vec<f64> = feature.values.iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    let threshold = f64::from(values[values.len() * 3 / 4] as f32);
    let normalised = (threshold as f32 - normalisation.offset[at]) / normalisation.scale[at];
    assert!(
        (f64::from(normalised) - threshold).abs() > 0.1,
        "{threshold} {normalised}"
    );
    let rule = json!({
        "rules": [{ "when": format!("{} > {threshold}", feature.name), "do": "long_straddle" }],
        "otherwise": "close_all",
    });
    workplace.connect_rules(&[("same", rule.clone())]);
    let (untouched, _) = workplace.results(&small());
    workplace.decide_by(rule);
    let (summary, table) = workplace.results(&small());
    let strategies: &StringArray = table.column_by_name("strategy").unwrap().as_string();
    let actions: &StringArray = table.column_by_name("action").unwrap().as_string();
    let times = stages_core::table::snapshot_times(&table).unwrap();
    let (mut high, mut low) = (0, 0);
    for row in (0..table.num_rows()).filter(|&row| strategies.value(row) == "policy" && actions.is_valid(row))
    {
        let value = feature.values.iter().find(|(time, _)| *time == times[row]).unwrap().1 as f32;
        match actions.value(row) {
            "long_straddle" => high += i32::from(f64::from(value) > threshold),
            // Nothing to close, or nothing that could be opened.
            other => {
                assert!(other == "close_all" || other == "hold", "{other}");
                low += i32::from(f64::from(value) <= threshold);
            }
        }
        assert!(actions.value(row) != "long_straddle" || f64::from(value) > threshold);
    }
    assert!(high > 5 && low > 20, "{high} {low}");
    // As the policy or as a baseline it is the same.
    for name in ["total_return", "sharpe", "turnover"] {
        assert_eq!(summary[name], untouched[format!("baseline/same/{name}")], "{name}");
    }
    assert_eq!(rows(&table, "policy", "nav"), rows(&table, "same", "nav"));
}

#[test]
fn rules_of_weights_and_positions() {
    let config = StocksConfig {
        test_fraction: 0.6,
        ..StocksConfig::default()
    };
    let mut stocks = stocks_workplace(&[panel(300, 4, 1, 3)], &config);
    stocks.connect_rules(&[("mine", json!({ "otherwise": { "*": 0.25 } }))]);
    let (summary, _) = stocks.results(&small());
    let of =
        |summary: &Value, name: &str| summary[name].as_f64().unwrap_or_else(|| panic!("{name}: {summary}"));
    let (mine, equal) = (
        of(&summary, "baseline/mine/total_return"),
        of(&summary, "baseline/equal_weight/total_return"),
    );
    assert!((mine - equal).abs() < 2e-3, "{mine} {equal}");
    let one = |kind| TableConfig {
        symbols: vec!["UP".to_owned()],
        ..price(kind)
    };
    for (kind, action) in [
        (TableActionKind::Discrete, "position 1"),
        (TableActionKind::Continuous, "nav / nav"),
    ] {
        let mut table = table_workplace(&one(kind));
        table.connect_rules(&[("mine", json!({ "otherwise": action }))]);
        let (summary, _) = table.results(&small());
        let (mine, held) = (
            of(&summary, "baseline/mine/total_return"),
            of(&summary, "baseline/underlying/total_return"),
        );
        assert!((mine - held).abs() < 1e-3 && held > 1.0, "{mine} {held}");
    }
    let mut table = table_workplace(&TableConfig {
        action_rewards: ["bad", "good"].map(str::to_owned).into(),
        price: String::new(),
        ..one(TableActionKind::Discrete)
    });
    assert!(table.rules(&[("mine", json!({ "otherwise": "good" }))]).len() == 1);
    table.connect_rules(&[("mine", json!({ "otherwise": "good" }))]);
    let (summary, rows) = table.results(&small());
    assert_eq!(summary["baseline/mine/episodic_return"], 74.0);
    assert!(rows.num_rows() > 0);
}

/// A pole is balanced by a rule, and a hedge of nothing is that of the environment's baseline.
#[test]
fn rules_where_there_are_episodes() {
    let mut pole = Workplace::new();
    pole.connect_env(Classic, &ClassicConfig::default());
    let spec = pole.env().spec().clone();
    pole.connect_policy(&spec);
    pole.connect_rules(&[(
        "balances",
        json!({
            "rules": [{ "when": "angle + angular_velocity / 2 > 0", "do": "right" }],
            "otherwise": "left",
        }),
    )]);
    let (summary, _) = pole.results(&BacktestConfig::default());
    assert!(
        summary["baseline/balances/episodic_return"].as_f64().unwrap() > 150.0,
        "{summary}"
    );
    let mut hedging = Workplace::new();
    hedging.connect_env(Hedging, &HedgingConfig::default());
    let spec = hedging.env().spec().clone();
    hedging.connect_policy(&spec);
    let none = spec.action_space.names()[0].clone();
    hedging.connect_rules(&[("none", json!({ "otherwise": none }))]);
    let (summary, _) = hedging.results(&BacktestConfig::default());
    assert_eq!(
        summary["baseline/none/episodic_return"],
        summary["unhedged/episodic_return"]
    );
}

#[test]
fn names_of_baselines_are_one_each() {
    let mut workplace = options_workplace(400, &OptionsConfig::default());
    let idle = json!({ "otherwise": "hold" });
    workplace.connect_rules(&[("idle", idle.clone()), ("idle", json!({ "otherwise": "close_all" }))]);
    let refused = workplace.backtest(&small()).unwrap_err();
    assert_eq!(refused.message, "two policies at `rules` have the name `idle`");
    // A rule of another environment.
    let mut other = table_workplace(&price(TableActionKind::Weights));
    other.context.store = workplace.context.store.clone();
    let foreign = workplace.rules(&[("idle", idle)]);
    other.context.inputs.insert("rules".to_owned(), foreign);
    let refused = other.backtest(&small());
    assert!(refused.is_err());
    // A trained policy has the last part of its kind.
    let policy = workplace.context.inputs["policy"].clone();
    let twice = [policy.clone(), policy].concat();
    workplace.context.inputs.insert("rules".to_owned(), twice);
    let (summary, _) = workplace.results(&small());
    for name in ["test", "test_2"] {
        assert_eq!(
            summary[format!("baseline/{name}/total_return")],
            summary["total_return"]
        );
        assert_eq!(summary[format!("versus/{name}/matched_excess_return")], 0.0);
    }
    // One from a file has the name of its form.
    let store = workplace.context.store.clone();
    let policy = &workplace.context.inputs["policy"][0].artifact;
    let read = AnyPolicy::read(&store, policy)
        .unwrap()
        .into_native("the test")
        .unwrap();
    let (spec, architecture) = (read.spec(), read.architecture());
    let filed = Policy::new("ingest/policy", spec, architecture, None, read.params().to_vec()).unwrap();
    let digest = AnyPolicy::Native(filed).store(&store, json!({})).unwrap();
    let artifact = store.artifact(digest).unwrap();
    workplace
        .context
        .inputs
        .insert("rules".to_owned(), vec![Input { digest, artifact }]);
    let (summary, _) = workplace.results(&small());
    assert_eq!(summary["baseline/native/total_return"], summary["total_return"]);
}

/// A rule as the policy is ablated as others are: one that counts its steps needs its memory.
#[test]
fn the_memory_of_a_rule_is_an_ablation() {
    let mut workplace = options_workplace(400, &OptionsConfig::default());
    workplace.decide_by(json!({
        "rules": [
            { "when": "mod(steps, 20) == 10", "do": "short_straddle" },
            { "when": "steps_since(not held) > 5", "do": "close_all" },
        ],
    }));
    let config = BacktestConfig {
        ablations: true,
        ..small()
    };
    let (summary, _) = workplace.results(&config);
    let turnover = |prefix: &str| summary[format!("{prefix}turnover")].as_f64();
    assert!(turnover("").unwrap() > 0.0);
    let forgets = summary
        .as_object()
        .unwrap()
        .keys()
        .find(|name| name.starts_with("ablation/no_memory/"));
    assert!(forgets.is_some(), "{summary}");
    assert_eq!(
        summary["ablation/no_memory/total_return"],
        summary["baseline/cash/total_return"]
    );
}

/// In markets whose prices nobody can foresee, a rule is not flattered: 0 lies within the interval of its
/// excess return, and within that of the policy's over it, as often as an interval of 95 % should hold it.
#[test]
fn a_rule_without_an_edge_is_what_it_is() {
    let (markets, days) = (40, 600);
    let first: Date = "2020-01-01".parse().unwrap();
    let config = TableConfig {
        costs: TableCosts { basis_points: 0.0 },
        test_fraction: 0.5,
        ..TableConfig {
            symbols: vec!["UP".to_owned()],
            ..price(TableActionKind::Discrete)
        }
    };
    let mut missed = [0, 0];
    for seed in 0..markets {
        let mut random = Random::new(&[seed, 99]);
        let mut close = 100.0;
        let prices = (0..days).map(|_| {
            close *= 1.0 + 0.01 * random.normal();
            close
        });
        let prices: Vec<f64> = prices.collect();
        let source = TableSource {
            columns: ["close", "noise"].map(str::to_owned).into(),
            symbols: vec![SymbolRows {
                symbol: "UP".to_owned(),
                times: (0..days).map(|day| SnapshotTime::of_day(first.plus(day))).collect(),
                values: vec![prices, (0..days).map(|_| random.normal()).collect()],
            }],
        };
        let mut workplace = table_of(&source, &config);
        let rule = |when: &str| {
            let lines = json!([{ "when": when, "do": "position 1" }]);
            json!({ "rules": lines, "otherwise": "position 0" })
        };
        workplace.decide_by(rule("noise > 0.3"));
        workplace.connect_rules(&[("mine", rule("ema(noise, 3) > 0"))]);
        let (summary, _) = workplace.results(&BacktestConfig {
            bootstrap_draws: 400,
            ..small()
        });
        let of = |name: String| summary[&name].as_f64().unwrap_or_else(|| panic!("{name}: {summary}"));
        let names = ["baseline/mine/excess_return", "versus/mine/matched_excess_return"];
        for (missed, name) in missed.iter_mut().zip(names) {
            let (low, high) = (of(format!("{name}_low")), of(format!("{name}_high")));
            *missed += i32::from(low > 0.0 || high < 0.0);
        }
    }
    // Two of 40 are expected, and more than six in one of 300 such tests.
    println!("{missed:?} of {markets} intervals leave out 0");
    assert!(missed.iter().all(|missed| *missed <= 6), "{missed:?}");
}
