//! Rules against their definition: lines in order, masks, memory, names, and mistakes.

use super::*;
use crate::forms::{AnyPolicy, Form, OtherPolicy};
use crate::policy::{Mode, PolicyState};
use cache::Store;
use serde_json::{Value, json};
use stages_env::{ActionEncoding, ActionSpace, Actions, Bounds};
use stages_numerics::random::Random;
use std::collections::BTreeMap;

/// The observation of `env/options` with a feature, a slot and two lines.
fn options() -> EnvSpec {
    let mut observation: Vec<String> = ["market.vrp_30", "market.term", "slate.30d_call_0.5.iv"]
        .map(str::to_owned)
        .into();
    for line in 0..2 {
        for part in ["moneyness", "days_left", "quantity", "mark", "delta", "vega"] {
            observation.push(format!("position[{line}].{part}"));
        }
    }
    for part in [
        "cash",
        "net_asset_value",
        "delta",
        "gamma",
        "vega",
        "theta",
        "margin_use",
        "drawdown",
    ] {
        observation.push(format!("account.{part}"));
    }
    spec(
        observation,
        ActionSpace::Discrete {
            names: ["hold", "close_all", "short_straddle", "hedge_zero"]
                .map(str::to_owned)
                .into(),
            masked: true,
        },
    )
}

fn spec(observation: Vec<String>, action_space: ActionSpace) -> EnvSpec {
    EnvSpec {
        name: "test".to_owned(),
        observation,
        action_space,
        normalisation: None,
        encoding: ActionEncoding::default(),
    }
}

/// Weights of three symbols with a feature each.
fn stocks() -> EnvSpec {
    let symbols = ["AAA", "BBB", "C-C"];
    let mut observation = vec!["market.vix".to_owned()];
    for part in ["momentum", "weight"] {
        observation.extend(symbols.iter().map(|symbol| format!("{symbol}.{part}")));
    }
    observation.extend(["account.cash", "account.gross", "account.drawdown"].map(str::to_owned));
    let bounds = Bounds {
        low: vec![0.0; 3],
        high: vec![0.5; 3],
    };
    let names = symbols.map(str::to_owned).into();
    spec(observation, ActionSpace::Continuous { names, bounds })
}

/// Two components: a strategy, and what is closed.
fn components() -> EnvSpec {
    spec(
        vec!["x".to_owned(), "y".to_owned()],
        ActionSpace::MultiDiscrete {
            names: vec!["strategy".to_owned(), "close".to_owned()],
            choices: vec![3, 2],
            masked: true,
        },
    )
}

fn choices(spec: &EnvSpec) -> Vec<String> {
    match &spec.action_space {
        ActionSpace::Discrete { names, .. } => names.clone(),
        ActionSpace::MultiDiscrete { .. } => {
            ["none", "long", "short", "none", "all"].map(str::to_owned).into()
        }
        _ => Vec::new(),
    }
}

fn form(spec: &EnvSpec, config: Value) -> Result<RuleForm, ConfigProblem> {
    let mut config = config;
    config["name"] = json!("mine");
    let config: RuleConfig = serde_json::from_value(config).unwrap();
    config.validate()?;
    RuleForm::new(&config, spec, choices(spec))
}

/// A rule in action, with the environment's observation by name.
struct Played {
    policy: AnyPolicy,
    state: PolicyState,
    first: bool,
}

impl Played {
    fn new(spec: &EnvSpec, config: Value, batch: usize) -> Self {
        let form = form(spec, config).unwrap();
        let policy = OtherPolicy::new("policy/rule", None, spec.clone(), Form::Rule(form), BTreeMap::new());
        let policy = AnyPolicy::Other(policy);
        let home = tempfile::tempdir().unwrap();
        let state = policy.start(&Store::open(home.path()).unwrap(), batch).unwrap();
        let first = true;
        Self { policy, state, first }
    }

    fn act(&mut self, obs: &[f32], mask: &[bool]) -> Result<Actions<'_>, StageError> {
        let start = vec![self.first; obs.len() / self.policy.spec().obs_dim()];
        self.first = false;
        self.policy.act(obs, mask, &start, &mut self.state, Mode::Greedy)
    }

    /// The choice of one environment whose observation is 0 but for the named elements.
    fn choice(&mut self, named: &[(&str, f32)], masked: &[&str]) -> String {
        let spec = self.policy.spec().clone();
        let mask: Vec<bool> = choices(&spec)
            .iter()
            .map(|name| !masked.contains(&name.as_str()))
            .collect();
        let actions = self.act(&observed(&spec, named), &mask).unwrap();
        spec.action_space.describe(actions, 0)
    }
}

fn observed(spec: &EnvSpec, named: &[(&str, f32)]) -> Vec<f32> {
    let mut obs = vec![0.0; spec.obs_dim()];
    for (name, value) in named {
        obs[spec.observation.iter().position(|element| element == name).unwrap()] = *value;
    }
    obs
}

#[test]
fn the_first_line_that_holds_and_is_allowed_decides() {
    let rule = json!({ "rules": [
        { "when": "vrp_30 > 0.02 and not held", "do": "short_straddle" },
        { "when": "vrp_30 > 0.05", "do": "hedge_zero" },
        { "when": "held and days_to_expiry <= 5", "do": "close_all" },
    ] });
    let mut played = Played::new(&options(), rule, 1);
    let (high, higher) = (("market.vrp_30", 0.03), ("market.vrp_30", 0.06));
    let held = ("position[0].quantity", -0.4);
    let days = |days: f32| ("position[0].days_left", days / 30.0);
    assert_eq!(played.choice(&[], &[]), "hold");
    assert_eq!(played.choice(&[high], &[]), "short_straddle");
    assert_eq!(played.choice(&[high, held, days(6.0)], &[]), "hold");
    assert_eq!(played.choice(&[higher, held, days(5.0)], &[]), "hedge_zero");
    assert_eq!(played.choice(&[high, held, days(5.0)], &[]), "close_all");
    // Without a position there are no days.
    assert_eq!(played.choice(&[days(5.0)], &[]), "hold");
    // The nearest expiry of all that is held.
    let second = [("position[1].quantity", 0.1), ("position[1].days_left", 4.0 / 30.0)];
    assert_eq!(
        played.choice(&[held, days(9.0), second[0], second[1]], &[]),
        "close_all"
    );
    assert!(played.state.warnings().is_empty());
    // Masked: the next line that holds, and else `hold`.
    assert_eq!(played.choice(&[higher], &["short_straddle"]), "hedge_zero");
    assert_eq!(played.choice(&[higher], &["short_straddle", "hedge_zero"]), "hold");
    assert_eq!(played.choice(&[], &["hold", "short_straddle"]), "close_all");
    assert_eq!(
        played.state.warnings(),
        [
            "the action of line 1 was masked in 2 of 10 decisions, and the next line decided",
            "the action of line 2 was masked in 1 of 10 decisions, and the next line decided",
            "the action of `otherwise` was masked in 1 of 10 decisions, and the first allowed choice was \
                taken",
        ]
    );
}

/// Whole days survive being shown as a thirtieth in single precision.
#[test]
fn days_are_whole_where_they_were() {
    let rule = json!({ "rules": [{ "when": "days_to_expiry == term", "do": "close_all" }] });
    let mut played = Played::new(&options(), rule, 1);
    for days in 0..1000 {
        let shown = (f64::from(days) / 30.0) as f32;
        let named = [
            ("market.term", days as f32),
            ("position[0].quantity", 1.0),
            ("position[0].days_left", shown),
        ];
        assert_eq!(played.choice(&named, &[]), "close_all", "{days}");
    }
}

#[test]
fn the_account_has_the_units_of_rewards() {
    // Each holds for the observation alone, and for no other number.
    let observation = [
        ("account.net_asset_value", 0.5),
        ("account.drawdown", 0.25),
        ("account.gamma", 0.5),
        ("account.vega", 0.5),
        ("account.theta", 0.5),
        ("account.delta", 0.5),
        ("position[0].quantity", 0.5),
        ("position[0].delta", 0.25),
    ];
    for (name, value) in [
        ("nav", 1.05),
        ("drawdown", 0.025),
        ("account.drawdown", 0.25),
        ("gamma", 0.05),
        ("vega", 0.005),
        ("theta", 0.0005),
        ("delta", 0.5),
        ("position[0].delta", 0.25),
        ("lines", 1.0),
        ("steps", 0.0),
    ] {
        let close = format!("abs({name} - {value}) < 1e-9");
        let rule = json!({ "rules": [{ "when": close, "do": "close_all" }] });
        assert_eq!(
            Played::new(&options(), rule, 1).choice(&observation, &[]),
            "close_all",
            "{name}"
        );
    }
}

/// Weights by symbol, held to their bounds; a value that is no number is an error with its place.
#[test]
fn weights_of_each_component() {
    let spec = stocks();
    let rule = json!({
        "rules": [
            { "when": "vix > 30", "do": { "*": 0 } },
            { "when": "mod(steps, 2) == 1", "do": { "*": "weight", "BBB": "1 - AAA.weight" } },
        ],
        "otherwise": { "*": "if(momentum > 0, momentum / 2, 0)", "C-C": "log(`C-C.momentum`)" },
    });
    let mut played = Played::new(&spec, rule, 1);
    let mut act = |vix: f32| {
        let obs = [vix, 0.5, -0.25, 1.5, 0.75, 0.25, 0.125, 0.0, 0.0, 0.0];
        played
            .act(&obs, &[])
            .map(|actions| actions.continuous(1, 3).unwrap().to_vec())
    };
    assert_eq!(act(20.0).unwrap(), [0.25, 0.0, 1.5_f32.ln()]);
    assert_eq!(act(20.0).unwrap(), [0.5, 0.25, 0.125]);
    assert_eq!(act(31.0).unwrap(), [0.0, 0.0, 0.0]);
    let mut obs = observed(&spec, &[]);
    obs[3] = -1.0;
    // At the fourth step the weights are held; at the fifth there is no logarithm.
    assert_eq!(
        played.act(&obs, &[]).unwrap().continuous(1, 3).unwrap(),
        [0.0, 0.5, 0.0]
    );
    let err = played.act(&obs, &[]).unwrap_err();
    assert_eq!(err.message, "`otherwise` of the rule gives `C-C` the value NaN");
}

#[test]
fn several_choices_at_once() {
    let rule = json!({
        "rules": [
            { "when": "x > 1", "do": { "strategy": "short", "close": "all" } },
            { "when": "x > 0", "do": { "strategy": "if(y > 0, 1, 7)" } },
        ],
        "otherwise": "hold",
    });
    let mut played = Played::new(&components(), rule, 1);
    let all = [true; 5];
    let mut act = |x: f32, y: f32, mask: &[bool]| {
        played
            .act(&[x, y], mask)
            .unwrap()
            .multi_discrete(1, 2)
            .unwrap()
            .to_vec()
    };
    assert_eq!(act(2.0, 0.0, &all), [2, 1]);
    assert_eq!(act(1.0, 1.0, &all), [1, 0]);
    // The last choice is the most there is.
    assert_eq!(act(1.0, -1.0, &all), [2, 0]);
    assert_eq!(act(0.0, 0.0, &all), [0, 0]);
    // One component that is masked masks the line.
    assert_eq!(act(2.0, 1.0, &[true, true, true, true, false]), [1, 0]);
    assert_eq!(act(0.0, 0.0, &[false, true, true, true, true]), [1, 0]);
}

/// A batch decides as each of its environments alone, with the memory of each.
#[test]
fn a_batch_is_so_many_rules() {
    let spec = components();
    let rule = json!({ "rules": [
        { "when": "x crosses above y", "do": { "strategy": "long" } },
        { "when": "steps_since(x > 0) >= 3", "do": { "strategy": "short" } },
        { "when": "y > previous(y) and steps > 4", "do": { "close": "all" } },
    ] });
    let (batch, mut random) = (19, Random::new(&[8]));
    let mut whole = Played::new(&spec, rule.clone(), batch);
    let mut each: Vec<Played> = (0..batch).map(|_| Played::new(&spec, rule.clone(), 1)).collect();
    assert!(whole.policy.remembers());
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..60 {
        let obs: Vec<f32> = (0..2 * batch).map(|_| random.normal() as f32).collect();
        let mask = vec![true; 5 * batch];
        let actions = whole
            .act(&obs, &mask)
            .unwrap()
            .multi_discrete(batch, 2)
            .unwrap()
            .to_vec();
        for ((one, obs), actions) in each.iter_mut().zip(obs.chunks(2)).zip(actions.chunks(2)) {
            assert_eq!(one.act(obs, &mask[..5]).unwrap().multi_discrete(1, 2).unwrap(), actions);
            seen.insert(actions.to_vec());
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

#[test]
fn mistakes_have_a_place_and_a_remedy() {
    let line = |when: &str, action: Value| json!({ "rules": [{ "when": when, "do": action }] });
    let weights = |action: Value| json!({ "otherwise": action });
    let (discrete, weighted, several) = (options(), stocks(), components());
    let cases = [
        (
            &discrete,
            line("vrp > 0", json!("hold")),
            "rules[0].when",
            "unknown name `vrp` at character 1 of `vrp > 0`",
            "did you mean `vrp_30`?",
        ),
        (
            &discrete,
            line("vrp_30", json!("hold")),
            "rules[0].when",
            "the expression is a number, not a condition at character 1 of `vrp_30`",
            "compare it",
        ),
        (
            &discrete,
            line("moneyness > 0", json!("hold")),
            "rules[0].when",
            "`moneyness` is the last part of 2 names at character 1 of `moneyness > 0`",
            "write one of them: position[0].moneyness, position[1].moneyness",
        ),
        (
            &discrete,
            line("held", json!("close")),
            "rules[0].do",
            "the environment has no choice `close`",
            "did you mean `close_all`?",
        ),
        (
            &discrete,
            line("held", json!("close_al")),
            "rules[0].do",
            "the environment has no choice `close_al`",
            "did you mean `close_all`?",
        ),
        (
            &discrete,
            line("held", json!({ "a": 1 })),
            "rules[0].do",
            "the environment's actions are one choice, not a map",
            "there are hold",
        ),
        (
            &weighted,
            weights(json!("hold")),
            "otherwise",
            "weights have no `hold`",
            "give each component its value",
        ),
        (
            &weighted,
            weights(json!(1)),
            "otherwise",
            "`1` is no action of 3 components",
            "give each its value: { AAA: … }",
        ),
        (
            &weighted,
            weights(json!({ "AAA": 1 })),
            "otherwise",
            "`BBB` has no value",
            "`*` is the value",
        ),
        (
            &weighted,
            weights(json!({ "AAB": 1, "*": 0 })),
            "otherwise",
            "the environment's actions have no component `AAB`",
            "did you mean `AAA`?",
        ),
        (
            &weighted,
            weights(json!({ "*": "momentun" })),
            "otherwise",
            "unknown name `momentun` at character 1 of `momentun`",
            "did you mean `momentum`?",
        ),
        (
            &weighted,
            weights(json!({ "*": "vix > 1" })),
            "otherwise",
            "the expression is a condition, not a number at character 1 of `vix > 1`",
            "`if(condition",
        ),
        (
            &weighted,
            line("vix > 0", json!({ "*": 0 })),
            "otherwise",
            "is missing, and the environment has no choice `hold`",
            "write what is done",
        ),
        (
            &several,
            line("x > 0", json!({ "strategy": "shorts" })),
            "rules[0].do",
            "`strategy` has no choice `shorts`",
            "did you mean `short`?",
        ),
        (
            &several,
            line("x > 0", json!({ "strategy": "if(x, 1, 2)" })),
            "rules[0].do",
            "argument 1 of `if` is a number, not a condition at character 4 of `if(x, 1, 2)`",
            "compare it",
        ),
        (
            &several,
            json!({}),
            "rules",
            "there are no lines, and no `otherwise`",
            "rules:",
        ),
    ];
    for (spec, config, field, message, hint) in cases {
        let problem = form(spec, config).unwrap_err();
        assert_eq!((problem.field.as_str(), problem.message.as_str()), (field, message));
        assert!(
            problem.hint.clone().unwrap_or_default().starts_with(hint),
            "{problem:?}"
        );
    }
    for name in ["", "a b", "a/b", "cash", "policy", "best_rule", "always_1"] {
        let config = RuleConfig {
            name: name.to_owned(),
            otherwise: Some(serde_json::from_value(json!("hold")).unwrap()),
            ..RuleConfig::default()
        };
        assert_eq!(config.validate().unwrap_err().field, "name", "{name}");
    }
}

/// The file is read back as the same rule, and its text says all of it.
#[test]
fn survives_its_file() {
    let spec = in_own_units(&options());
    let rule = json!({ "rules": [
        { "when": "vrp_30 > previous(vrp_30)", "do": "short_straddle" },
    ], "otherwise": "close_all" });
    let form = form(&spec, rule).unwrap();
    assert_eq!(
        form.lines(),
        [
            "1. when vrp_30 > previous(vrp_30): short_straddle",
            "otherwise: close_all"
        ]
    );
    let policy = OtherPolicy::new(
        "policy/rule",
        Some("mine".to_owned()),
        spec,
        Form::Rule(form),
        BTreeMap::new(),
    );
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let stored = |policy| AnyPolicy::Other(policy).store(&store, json!({})).unwrap();
    let digest = stored(policy.clone());
    assert_eq!(digest, stored(policy.clone()));
    let read = AnyPolicy::read(&store, &store.artifact(digest).unwrap()).unwrap();
    assert_eq!(
        (read.name(), read.form(), read.remembers()),
        (Some("mine"), "rule", true)
    );
    let AnyPolicy::Other(read) = read else { panic!() };
    assert_eq!(read.describe(), policy.describe());
}

/// A file that was changed by hand is refused where it starts, and nothing panics.
#[test]
fn a_file_that_contradicts_itself_does_not_start() {
    let rule = json!({ "rules": [{ "when": "held", "do": "close_all" }] });
    let honest = json!(form(&options(), rule).unwrap());
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    for (field, value, message) in [
        (
            "choices",
            json!(["hold", "close_all"]),
            "the actions of `test` have no names",
        ),
        (
            "choices",
            json!(["a", "b", "c", "d", "close_all"]),
            "the actions of `test` have no names",
        ),
        (
            "choices",
            json!(["hold", "b", "c", "d"]),
            "the environment has no choice `close_all`",
        ),
        ("rules", json!([{ "when": "1 +", "do": "hold" }]), "expected a number"),
        (
            "rules",
            json!([{ "when": "a > 0", "do": { "*": 0 } }]),
            "unknown name `a`",
        ),
        ("otherwise", json!("sell"), "the environment has no choice `sell`"),
    ] {
        let mut changed = honest.clone();
        changed[field] = value;
        let form: RuleForm = serde_json::from_value(changed).unwrap();
        let policy = OtherPolicy::new("policy/rule", None, options(), Form::Rule(form), BTreeMap::new());
        let refused = AnyPolicy::Other(policy).start(&store, 2).err().unwrap();
        assert!(refused.message.contains(message), "{refused}");
    }
}

/// Decisions a second of a rule of five expressions at 256 environments, on one thread:
/// `cargo test --release -p stages-policy rule_speed -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn rule_speed() {
    let rule = json!({ "rules": [
        { "when": "vrp_30 > 0.02 and not held", "do": "short_straddle" },
        { "when": "held and days_to_expiry <= 5", "do": "close_all" },
        { "when": "drawdown > 0.1 or term < -0.5", "do": "close_all" },
        { "when": "abs(delta) > 0.1", "do": "hedge_zero" },
        { "when": "vrp_30 crosses below 0 and steps > 2", "do": "close_all" },
    ] });
    let (spec, batch, steps) = (options(), 256, 20_000);
    let mut played = Played::new(&spec, rule, batch);
    let mut random = Random::new(&[1]);
    let obs: Vec<f32> = (0..batch * spec.obs_dim())
        .map(|_| 0.05 * random.normal() as f32)
        .collect();
    let mask = vec![true; batch * spec.action_space.mask_len()];
    let began = std::time::Instant::now();
    for _ in 0..steps {
        played.act(&obs, &mask).unwrap();
    }
    let rate = (batch * steps) as f64 / began.elapsed().as_secs_f64();
    println!("{:.1} million decisions/s", rate / 1e6);
}
