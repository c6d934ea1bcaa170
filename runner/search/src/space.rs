//! The settings that are searched.

use crate::Settings;
use runner_pipeline::Domain;
use serde_json::Value;
use std::collections::BTreeMap;

/// A space of settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Space {
    /// The settings, each after those that its condition names.
    pub parameters: Vec<Parameter>,
}

/// A setting that is searched.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The setting's name.
    pub name: String,
    /// The setting's values, and its condition.
    pub domain: Domain,
}

impl Parameter {
    /// True if the settings so far fulfil the parameter's condition.
    pub fn is_active(&self, settings: &Settings) -> bool {
        let holds = |(name, values): (&String, &Vec<Value>)| {
            settings.get(name).is_some_and(|value| values.contains(value))
        };
        self.domain.when.iter().all(holds)
    }
}

impl Space {
    /// The space of a `search:` block's `over:`. Settings whose conditions name each other in a circle, or
    /// settings that are not searched, come last and are never active.
    pub fn new(over: &BTreeMap<String, Domain>) -> Self {
        let mut left: Vec<(&String, &Domain)> = over.iter().collect();
        let mut parameters: Vec<Parameter> = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let known = |name: &String| parameters.iter().any(|parameter| parameter.name == *name);
            let (ready, rest): (Vec<_>, Vec<_>) = left
                .iter()
                .copied()
                .partition(|(_, domain)| domain.when.keys().all(known));
            let next = if ready.is_empty() {
                std::mem::take(&mut left)
            } else {
                ready
            };
            left = if left.is_empty() { Vec::new() } else { rest };
            parameters.extend(next.into_iter().map(|(name, domain)| Parameter {
                name: name.clone(),
                domain: domain.clone(),
            }));
        }
        Self { parameters }
    }
}
