//! Settings that are one value for all rules, or values by rule with a `default`.

use datasets::layout::suggestion;
use datasets::quality::Rule;
use serde::{Deserialize, Serialize, Serializer, de};
use stages_core::ConfigProblem;
use std::collections::BTreeMap;

/// The word for each rule's own value.
pub(super) const BY_RULE: &str = "by_rule";

/// Writes a setting in its shortest form.
///
/// # Errors
/// Those of the serializer.
pub(super) fn serialize<T: Serialize, S: Serializer>(
    default: Option<&T>,
    rules: &BTreeMap<String, T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match default {
        Some(default) if rules.is_empty() => default.serialize(serializer),
        None if rules.is_empty() => serializer.serialize_str(BY_RULE),
        default => serializer.collect_map(
            default
                .map(|value| ("default", value))
                .into_iter()
                .chain(rules.iter().map(|(rule, value)| (rule.as_str(), value))),
        ),
    }
}

/// A setting as it is read: the default, and the values by rule.
pub(super) type ByRule<T> = (Option<T>, BTreeMap<String, T>);

/// Reads values by rule.
///
/// # Errors
/// A value that is none.
pub(super) fn read<'de, T: Deserialize<'de>, A: de::MapAccess<'de>>(map: A) -> Result<ByRule<T>, A::Error> {
    let mut rules = BTreeMap::<String, T>::deserialize(de::value::MapAccessDeserializer::new(map))?;
    Ok((rules.remove("default"), rules))
}

/// The error for the name of a rule that does not exist.
pub(super) fn unknown(setting: &str, name: &str, rules: &[Rule]) -> ConfigProblem {
    let known: Vec<_> = rules.iter().map(|rule| rule.name).collect();
    ConfigProblem::new(format!("{setting}.{name}"), format!("there is no rule `{name}`"))
        .hint(suggestion(name, known.iter().copied()))
}
