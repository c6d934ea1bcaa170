//! Settings with one value for all rules, or values by rule with a `default`.

use datasets::layout::suggestion;
use datasets::quality::Rule;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, DeserializeOwned, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stages_core::ConfigProblem;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// The word for "each rule's own default".
const BY_RULE: &str = "by_rule";

/// A setting whose value may differ by rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByRule<T> {
    /// The value of rules that are not named; `None` for each rule's own default.
    pub default: Option<T>,
    /// The values of named rules.
    pub rules: BTreeMap<String, T>,
}

/// A value that a setting can have for a rule.
pub trait OfRule: Serialize + DeserializeOwned {
    /// The name of the setting in schemas.
    const NAME: &'static str;
    /// The description of a setting that cannot be read, for messages.
    const EXPECTED: &'static str;
    /// Parses a word.
    fn from_word<E: de::Error>(word: &str) -> Result<Self, E>;
    /// Parses a number.
    fn from_number<E: de::Error>(number: Unexpected<'_>) -> Result<Self, E> {
        Err(E::invalid_type(number, &Self::EXPECTED))
    }
    /// The schema of a value, and the description of the setting.
    fn schema(generator: &mut SchemaGenerator) -> (Schema, String);
}

/// The error for the name of a rule that does not exist.
pub(super) fn unknown(setting: &str, name: &str, rules: &[Rule]) -> ConfigProblem {
    let known: Vec<_> = rules.iter().map(|rule| rule.name).collect();
    ConfigProblem::new(format!("{setting}.{name}"), format!("there is no rule `{name}`"))
        .hint(suggestion(name, known.iter().copied()))
}

impl<T> ByRule<T> {
    /// The setting with one value for all rules.
    pub fn all(default: T) -> Self {
        Self {
            default: Some(default),
            rules: BTreeMap::new(),
        }
    }
}

impl<T: Serialize> Serialize for ByRule<T> {
    /// Writes the shortest form.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.default {
            Some(default) if self.rules.is_empty() => default.serialize(serializer),
            None if self.rules.is_empty() => serializer.serialize_str(BY_RULE),
            default => {
                let default = default.iter().map(|value| ("default", value));
                serializer.collect_map(default.chain(self.rules.iter().map(|(rule, value)| (&**rule, value))))
            }
        }
    }
}

struct Visitor<T>(PhantomData<T>);

impl<'de, T: OfRule> de::Visitor<'de> for Visitor<T> {
    type Value = ByRule<T>;
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<ByRule<T>, E> {
        T::from_number(Unexpected::Float(number)).map(ByRule::all)
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<ByRule<T>, E> {
        T::from_number(Unexpected::Unsigned(number)).map(ByRule::all)
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<ByRule<T>, E> {
        T::from_number(Unexpected::Signed(number)).map(ByRule::all)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<ByRule<T>, E> {
        Ok(ByRule {
            default: (text != BY_RULE).then(|| T::from_word(text)).transpose()?,
            rules: BTreeMap::new(),
        })
    }
    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<ByRule<T>, A::Error> {
        let mut rules = BTreeMap::<String, T>::deserialize(de::value::MapAccessDeserializer::new(map))?;
        let default = rules.remove("default");
        Ok(ByRule { default, rules })
    }
}

impl<'de, T: OfRule> Deserialize<'de> for ByRule<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor(PhantomData))
    }
}

impl<T: OfRule> JsonSchema for ByRule<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::NAME.into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (value, about) = T::schema(generator);
        schemars::json_schema!({
            "description": about,
            "anyOf": [{ "const": BY_RULE }, value.clone(), { "type": "object",
                "additionalProperties": value }]
        })
    }
}
