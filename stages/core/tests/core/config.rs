//! Configurations: defaults leave the key, and an error names the field.

use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::{AnyStage, Context, Outputs, Ports, StageError, StageKind, erase};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Slate {
    deltas: Vec<f64>,
    width: u32,
}

impl Default for Slate {
    fn default() -> Self {
        Self {
            deltas: vec![0.25, 0.5],
            width: 4,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    label: String,
    rate: f64,
    cap: Option<f64>,
    slate: Slate,
    log_interval: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            label: "base".to_owned(),
            rate: 0.02,
            cap: Some(10.0),
            slate: Slate::default(),
            log_interval: 100,
        }
    }
}

/// [`Settings`] of a later version of the program, with one field more in each struct.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct LaterSlate {
    deltas: Vec<f64>,
    width: u32,
    shape: String,
}

impl Default for LaterSlate {
    fn default() -> Self {
        let Slate { deltas, width } = Slate::default();
        Self {
            deltas,
            width,
            shape: "flat".to_owned(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct LaterSettings {
    label: String,
    rate: f64,
    cap: Option<f64>,
    slate: LaterSlate,
    log_interval: u32,
    multiplier: f64,
}

impl Default for LaterSettings {
    fn default() -> Self {
        let base = Settings::default();
        Self {
            label: base.label,
            rate: base.rate,
            cap: base.cap,
            slate: LaterSlate::default(),
            log_interval: base.log_interval,
            multiplier: 100.0,
        }
    }
}

const NO_PORTS: Ports = Ports {
    inputs: &[],
    outputs: &[],
};

struct Kind;

impl StageKind for Kind {
    type Config = Settings;
    const NAME: &'static str = "test/kind";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Tests keys.";
    const NOT_IN_KEY: &'static [&'static str] = &["log_interval"];
    const PORTS: Ports = NO_PORTS;

    fn run(&self, _: &Settings, _: &Context) -> Result<Outputs, StageError> {
        Ok(Outputs::new())
    }
}

struct LaterKind;

impl StageKind for LaterKind {
    type Config = LaterSettings;
    const NAME: &'static str = "test/kind";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Tests keys.";
    const NOT_IN_KEY: &'static [&'static str] = &["log_interval"];
    const PORTS: Ports = NO_PORTS;

    fn run(&self, _: &LaterSettings, _: &Context) -> Result<Outputs, StageError> {
        Ok(Outputs::new())
    }
}

fn in_key(stage: &dyn AnyStage, with: Value) -> Value {
    stage.key_config(&stage.resolve(with).unwrap())
}

#[test]
fn a_field_equal_to_its_default_is_not_in_the_key() {
    let stage = erase(Kind);
    let in_key = |with| in_key(&*stage, with);
    assert_eq!(in_key(Value::Null), json!({}));
    assert_eq!(in_key(json!({})), json!({}));
    assert_eq!(in_key(json!({ "label": "base", "rate": 0.02, "cap": 10 })), json!({}));
    assert_eq!(in_key(json!({ "slate": { "width": 4 } })), json!({}));
    assert_eq!(in_key(json!({ "rate": 0.03 })), json!({ "rate": 0.03 }));
    assert_eq!(
        in_key(json!({ "slate": { "width": 5, "deltas": [0.25, 0.5] } })),
        json!({ "slate": { "width": 5 } })
    );
}

#[test]
fn an_absent_value_that_is_not_the_default_is_in_the_key() {
    assert_eq!(in_key(&*erase(Kind), json!({ "cap": null })), json!({ "cap": null }));
}

#[test]
fn a_list_is_in_the_key_as_a_whole() {
    assert_eq!(
        in_key(&*erase(Kind), json!({ "slate": { "deltas": [0.25, 0.4] } })),
        json!({ "slate": { "deltas": [0.25, 0.4] } })
    );
}

#[test]
fn a_field_that_changes_no_result_is_not_in_the_key() {
    assert_eq!(in_key(&*erase(Kind), json!({ "log_interval": 7 })), json!({}));
}

#[test]
fn resolving_fills_in_the_defaults() {
    let stage = erase(Kind);
    let resolved = stage.resolve(json!({ "rate": 0.03 })).unwrap();
    let expected = Settings {
        rate: 0.03,
        ..Settings::default()
    };
    assert_eq!(resolved, serde_json::to_value(expected).unwrap());
    assert_eq!(stage.resolve(resolved.clone().into()).unwrap(), resolved);
}

#[test]
fn an_error_names_the_field() {
    let error = |with| erase(Kind).resolve(with).unwrap_err();
    let wrong_type = error(json!({ "slate": { "deltas": [0.25, "half"] } }));
    assert_eq!(wrong_type.field, "slate.deltas[1]");
    assert!(wrong_type.message.contains("\"half\""), "{}", wrong_type.message);
    let unknown = error(json!({ "slate": { "widht": 4 } }));
    assert!(unknown.field.starts_with("slate"), "{}", unknown.field);
    assert!(unknown.message.contains("unknown field `widht`"), "{}", unknown.message);
    assert_eq!(error(json!({ "slate": { "width": -1 } })).field, "slate.width");
    assert_eq!(error(json!(3)).field, "");
}

#[test]
fn the_schema_is_draft_7_and_lists_every_field() {
    let schema = erase(Kind).schema();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    let fields: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["cap", "label", "log_interval", "rate", "slate"]);
    assert_eq!(schema["additionalProperties"], false);
}

/// Settings of which many fields have their default.
fn settings() -> impl Strategy<Value = Settings> {
    let fields = (
        prop_oneof!["base", "[a-c]{0,2}"],
        prop_oneof![Just(0.02), -1.0..1.0],
        prop_oneof![Just(Some(10.0)), Just(None), (0.0..20.0).prop_map(Some)],
        prop_oneof![Just(vec![0.25, 0.5]), prop::collection::vec(0.0..1.0, 0..3)],
        prop_oneof![Just(4_u32), 0_u32..8],
        0_u32..200,
    );
    fields.prop_map(|(label, rate, cap, deltas, width, log_interval)| Settings {
        label,
        rate,
        cap,
        slate: Slate { deltas, width },
        log_interval,
    })
}

fn key_of(stage: &dyn AnyStage, settings: &Settings) -> Value {
    in_key(stage, serde_json::to_value(settings).unwrap())
}

/// `changes` over `base`, map by map.
fn overlaid(base: &Value, changes: &Value) -> Value {
    match (base, changes) {
        (Value::Object(base), Value::Object(changes)) => {
            let mut all = base.clone();
            for (name, change) in changes {
                let value = base
                    .get(name)
                    .map_or_else(|| change.clone(), |base| overlaid(base, change));
                all.insert(name.clone(), value);
            }
            Value::Object(all)
        }
        _ => changes.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The key holds all that changes a result: the rest of the configuration follows from the defaults.
    #[test]
    fn the_key_and_the_defaults_give_the_configuration(settings in settings()) {
        let default = serde_json::to_value(Settings { log_interval: settings.log_interval,
            ..Settings::default() }).unwrap();
        let key = key_of(&*erase(Kind), &settings);
        prop_assert_eq!(overlaid(&default, &key), serde_json::to_value(&settings).unwrap());
    }

    #[test]
    fn two_configurations_share_a_key_if_they_share_what_changes_a_result(a in settings(), b in settings()) {
        let stage = erase(Kind);
        let same = a == Settings { log_interval: a.log_interval, ..b.clone() };
        prop_assert_eq!(key_of(&*stage, &a) == key_of(&*stage, &b), same);
    }

    /// A new field with a default invalidates no key.
    #[test]
    fn a_new_field_with_a_default_changes_no_key(settings in settings()) {
        prop_assert_eq!(key_of(&*erase(Kind), &settings), key_of(&*erase(LaterKind), &settings));
    }
}
