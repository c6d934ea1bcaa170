//! The configuration of `env/symbolic`: a task, and the settings of that task beside it.
//!
//! Each task has a configuration of its own, whose fields stand beside `task:`. Fields and their types are
//! checked as they are read; a field of another task is kept until the stage's check, which says what it
//! belongs to.

use super::embedding::EmbeddingConfig;
use super::paths::PathConfig;
use super::proofs::{ProofConfig, TrainingQueries};
use super::rules::RulesConfig;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeOwned, DeserializeSeed, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use stages_core::ConfigProblem;
use std::fmt;
use std::sync::LazyLock;

/// A task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskName {
    /// The search for proofs of queries.
    #[default]
    Proofs,
    /// Paths in a knowledge graph from an entity to the answer of a query.
    Paths,
    /// Worlds with actions that have preconditions and effects.
    Rules,
}

impl TaskName {
    /// All tasks.
    pub const ALL: [Self; 3] = [Self::Proofs, Self::Paths, Self::Rules];

    /// The task's name in settings and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proofs => "proofs",
            Self::Paths => "paths",
            Self::Rules => "rules",
        }
    }

    /// The schema of the task's settings.
    fn schema(self, generator: &mut SchemaGenerator) -> Schema {
        match self {
            Self::Proofs => ProofConfig::json_schema(generator),
            Self::Paths => PathConfig::json_schema(generator),
            Self::Rules => RulesConfig::json_schema(generator),
        }
    }

    /// The names of its settings.
    fn fields(self) -> Vec<String> {
        let schema = self.schema(&mut SchemaGenerator::default());
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, _)| name.clone()).collect()
    }

    /// The settings that differ from their defaults.
    fn differing(self, settings: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        match self {
            Self::Proofs => differing::<ProofConfig>(settings),
            Self::Paths => differing::<PathConfig>(settings),
            Self::Rules => differing::<RulesConfig>(settings),
        }
    }
}

fn differing<C: Default + Serialize + DeserializeOwned>(
    settings: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let config: C = serde_json::from_value(Value::Object(settings.clone())).map_err(|err| err.to_string())?;
    let map = |config: &C| match serde_json::to_value(config) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("the settings are not a map".to_owned()),
        Err(err) => Err(err.to_string()),
    };
    let default = map(&C::default())?;
    let mut all = map(&config)?;
    all.retain(|name, value| default.get(name) != Some(value));
    Ok(all)
}

/// The configuration of `env/symbolic`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SymbolicConfig {
    /// The task.
    pub task: TaskName,
    /// The task's settings that differ from their defaults. Where one belongs to another task, all settings
    /// as they are given.
    #[serde(flatten)]
    settings: Map<String, Value>,
}

/// A task with its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskConfig {
    /// Proof search.
    Proofs(ProofConfig),
    /// Path finding.
    Paths(PathConfig),
    /// Rule worlds.
    Rules(RulesConfig),
}

impl TaskConfig {
    /// Returns whether the queries to train on are the facts of the graph.
    pub(super) fn asks_facts(&self) -> bool {
        match self {
            Self::Proofs(config) => config.queries == TrainingQueries::Facts,
            Self::Paths(config) => config.queries == TrainingQueries::Facts,
            Self::Rules(_) => false,
        }
    }

    /// The settings of the embedding that shapes the rewards of training; `None` where none does.
    pub(super) fn embedding(&self) -> Option<&EmbeddingConfig> {
        match self {
            Self::Proofs(config) => config.shaping.as_ref().map(|shaping| &shaping.embedding),
            Self::Paths(config) => config.soft_reward.as_ref().map(|soft| &soft.embedding),
            Self::Rules(_) => None,
        }
    }
}

impl SymbolicConfig {
    /// The settings of the task, validated.
    ///
    /// # Errors
    /// Names the first field that belongs to another task or has no permitted value.
    pub fn task_config(&self) -> Result<TaskConfig, ConfigProblem> {
        let own = self.task.fields();
        if let Some(name) = self.settings.keys().find(|name| !own.contains(name)) {
            let others: Vec<&str> = TaskName::ALL
                .into_iter()
                .filter(|task| task.fields().contains(name))
                .map(TaskName::name)
                .collect();
            return Err(ConfigProblem::new(
                name,
                format!("it is not a setting of `task: {}`", self.task.name()),
            )
            .hint(format!(
                "remove it, or write `task: {}`, which has it",
                others.join("` or `task: ")
            )));
        }
        match self.task {
            TaskName::Proofs => self.typed(ProofConfig::validate, TaskConfig::Proofs),
            TaskName::Paths => self.typed(PathConfig::validate, TaskConfig::Paths),
            TaskName::Rules => self.typed(RulesConfig::validate, TaskConfig::Rules),
        }
    }

    /// The configuration without the settings of these names.
    pub(super) fn without(&self, names: &[&str]) -> Self {
        let mut config = self.clone();
        config.settings.retain(|name, _| !names.contains(&name.as_str()));
        config
    }

    fn typed<C: DeserializeOwned>(
        &self,
        validate: impl Fn(&C) -> Result<(), ConfigProblem>,
        task: impl Fn(C) -> TaskConfig,
    ) -> Result<TaskConfig, ConfigProblem> {
        let read = |settings| serde_json::from_value::<C>(Value::Object(settings));
        // A setting that several tasks have may have another type in this one.
        for (name, value) in &self.settings {
            read(Map::from_iter([(name.clone(), value.clone())]))
                .map_err(|err| ConfigProblem::new(name, err.to_string()))?;
        }
        let config = read(self.settings.clone()).map_err(|err| ConfigProblem::new("", err.to_string()))?;
        validate(&config)?;
        Ok(task(config))
    }
}

impl<'de> Deserialize<'de> for SymbolicConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = SymbolicConfig;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("struct SymbolicConfig")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SymbolicConfig, A::Error> {
                let mut config = SymbolicConfig::default();
                let fields = TaskName::ALL.map(TaskName::fields);
                while let Some(name) = map.next_key::<String>()? {
                    if name == "task" {
                        config.task = map.next_value()?;
                        continue;
                    }
                    let of = TaskName::ALL
                        .into_iter()
                        .zip(&fields)
                        .filter(|(_, own)| own.contains(&name));
                    let tasks: Vec<TaskName> = of.map(|(task, _)| task).collect();
                    if tasks.is_empty() {
                        static KNOWN: LazyLock<Vec<&str>> = LazyLock::new(|| {
                            let names = TaskName::ALL.into_iter().flat_map(TaskName::fields);
                            std::iter::once("task").chain(names.map(|name| &*name.leak())).collect()
                        });
                        return Err(de::Error::unknown_field(&name, &KNOWN));
                    }
                    let value = map.next_value_seed(Setting { name: &name, tasks })?;
                    config.settings.insert(name, value);
                }
                if let Ok(differing) = config.task.differing(&config.settings) {
                    config.settings = differing;
                }
                Ok(config)
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// A setting's value, of the type that it has in one of the tasks.
struct Setting<'a> {
    name: &'a str,
    tasks: Vec<TaskName>,
}

impl<'de> DeserializeSeed<'de> for Setting<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let alone = Map::from_iter([(self.name.to_owned(), value.clone())]);
        let mut wrong = None;
        for task in self.tasks {
            match task.differing(&alone) {
                Ok(_) => return Ok(value),
                Err(message) => wrong = Some(message),
            }
        }
        match wrong {
            Some(message) => Err(de::Error::custom(message)),
            None => Ok(value),
        }
    }
}

impl JsonSchema for SymbolicConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SymbolicConfig".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let task = json!({
            "description": "The task; the others are its settings.",
            "default": TaskName::default().name(),
            "allOf": [generator.subschema_for::<TaskName>()],
        });
        let mut all = Map::from_iter([("task".to_owned(), task)]);
        for task in TaskName::ALL {
            let mut schema = task.schema(generator).to_value();
            let Some(Value::Object(properties)) = schema.get_mut("properties").map(Value::take) else {
                continue;
            };
            for (name, mut property) in properties {
                let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
                let text = format!("`{}`: {text}", task.name());
                match all.get_mut(&name) {
                    None => {
                        property["description"] = text.into();
                        all.insert(name, property);
                    }
                    // A setting of several tasks has the meaning, and the default, of each.
                    Some(Value::Object(known)) => {
                        let before = known.get("description").and_then(Value::as_str).unwrap_or_default();
                        let both = format!("{before}\n\n{text}");
                        known.insert("description".to_owned(), both.into());
                        known.remove("default");
                    }
                    Some(_) => {}
                }
            }
        }
        json_schema!({ "type": "object", "additionalProperties": false, "properties": all })
    }
}
