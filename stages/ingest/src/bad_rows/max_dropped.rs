//! `max_dropped:` of a stage.

use super::by_rule::{self, BY_RULE};
use datasets::quality::{MOST_DROPPED, Rule, of};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use stages_core::ConfigProblem;
use std::collections::BTreeMap;
use std::fmt;

/// The share of a table's rows that each rule may drop before the stage fails: a number for all rules, or by
/// rule, `{ default: 0.05, no_quote: 0.9 }`. Without one, 0.05, and 0.5 for rules whose rows are no data
/// (`no_quote`, `null_close`, …).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaxDropped {
    /// For rules that are not named; `None` for each rule's own.
    pub default: Option<f64>,
    /// By rule.
    pub rules: BTreeMap<String, f64>,
}

impl MaxDropped {
    /// The share for a rule.
    pub fn share(&self, rule: &Rule) -> f64 {
        self.rules
            .get(rule.name)
            .copied()
            .or(self.default)
            .unwrap_or(rule.most_dropped)
    }

    /// Refuses the name of a rule that does not exist, and a share that is none.
    ///
    /// # Errors
    /// The first of them.
    pub fn check(&self, rules: &[Rule]) -> Result<(), ConfigProblem> {
        let shares = self
            .rules
            .iter()
            .map(|(name, share)| (format!("max_dropped.{name}"), share));
        for (field, share) in shares.chain(self.default.iter().map(|share| ("max_dropped".to_owned(), share)))
        {
            if !(0.0..=1.0).contains(share) {
                return Err(ConfigProblem::new(field, format!("{share} is no share"))
                    .hint("write a number between 0 (none may be dropped) and 1 (all may)"));
            }
        }
        match self.rules.keys().find(|name| of(rules, name).is_none()) {
            Some(name) => Err(by_rule::unknown("max_dropped", name, rules)),
            None => Ok(()),
        }
    }
}

impl Serialize for MaxDropped {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        by_rule::serialize(self.default.as_ref(), &self.rules, serializer)
    }
}

impl<'de> Deserialize<'de> for MaxDropped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = MaxDropped;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a share between 0 and 1, or a map from rules to shares")
            }
            fn visit_f64<E: de::Error>(self, share: f64) -> Result<MaxDropped, E> {
                Ok(MaxDropped {
                    default: Some(share),
                    rules: BTreeMap::new(),
                })
            }
            fn visit_u64<E: de::Error>(self, share: u64) -> Result<MaxDropped, E> {
                self.visit_f64(share as f64)
            }
            fn visit_i64<E: de::Error>(self, share: i64) -> Result<MaxDropped, E> {
                self.visit_f64(share as f64)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<MaxDropped, E> {
                match text {
                    BY_RULE => Ok(MaxDropped::default()),
                    text => Err(E::custom(format!(
                        "`{text}` is no share: write a number between 0 and 1"
                    ))),
                }
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<MaxDropped, A::Error> {
                let (default, rules) = by_rule::read(map)?;
                Ok(MaxDropped { default, rules })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for MaxDropped {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MaxDropped".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let share = serde_json::json!({ "type": "number", "minimum": 0, "maximum": 1 });
        schemars::json_schema!({
            "description": format!("A share of the rows, {MOST_DROPPED} unless the rule has its own; or by \
            rule: {{ default: 0.05, no_quote: 0.9 }}."),
            "anyOf": [{ "const": BY_RULE }, share.clone(), { "type": "object",
                "additionalProperties": share }]
        })
    }
}
