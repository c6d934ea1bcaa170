//! The configuration of `policy/rule`.

use super::names::{AnyName, RuleNames, account};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, Provided};
use stages_env::BaselineName;
use stages_env::expression::{Mistake, Names, Program, hint};
use stages_env::python::{Project, is_call};
use std::collections::BTreeMap;

stages_core::settings! {
    /// Configuration of `policy/rule`; docs/guides/rules.md has the language.
    pub struct RuleConfig {
        /// The name of the rule, by which evaluations list it: letters, digits and `_`. Required.
        pub name: String = String::new(),
        /// The lines. At each step the first decides whose condition holds and whose action is allowed.
        pub rules: Vec<Line> = Vec::new(),
        /// The action where no line decides; without it, the choice `hold`, or the first choice of each
        /// component.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub otherwise: Option<Action> = None,
        /// In place of `rules`: `MODULE:FUNCTION`, a function of one snapshot, the observation by name, that
        /// returns a choice by its name, a number, or a dictionary of components.
        pub call: Option<String> = None,
        /// More arguments of the function, by name.
        pub kwargs: BTreeMap<String, serde_json::Value> = BTreeMap::new(),
        /// Of a function the interpreter, with numpy: a program on PATH, the path of one, or the directory of
        /// an environment, relative to the pipeline.
        pub python: String = "python3".to_owned(),
        /// The directory of its modules, relative to the pipeline.
        pub path: String = ".".to_owned(),
        /// Files that it reads, and modules that no import names, relative to `path`; they are in the key.
        pub files: Vec<String> = Vec::new(),
        /// Seconds that the decisions of a batch may take.
        pub time_limit: f64 = 60.0,
    }
}

/// A line of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The condition, such as `vrp_30 > 0.02 and not held`.
    pub when: String,
    /// The action: a choice by its name, the expression of a single continuous component, or a map of
    /// components.
    #[serde(rename = "do")]
    pub action: Action,
}

/// An action of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Action {
    /// A choice by its name, or an expression for the only component.
    One(Value),
    /// The value of each component, `*` for all that have none of their own.
    Each(BTreeMap<String, Value>),
}

/// The value of a component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A choice by its name, or an expression.
    Text(String),
}

/// The component that stands for all without a value of their own.
pub(super) const ALL: &str = "*";

impl Value {
    /// The value as it is written.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

impl Action {
    /// The action in words: `hold`, or `SPY: 0.5, *: 0`.
    pub(super) fn text(&self) -> String {
        match self {
            Self::One(value) => value.text(),
            Self::Each(values) => {
                let each: Vec<String> = values
                    .iter()
                    .map(|(component, value)| format!("{component}: {}", value.text()))
                    .collect();
                each.join(", ")
            }
        }
    }
}

/// A mistake in an expression of a field.
pub(super) fn problem(field: &str, text: &str, mistake: Mistake) -> ConfigProblem {
    ConfigProblem {
        hint: mistake.hint.clone(),
        ..ConfigProblem::new(field, mistake.describe(text))
    }
}

impl RuleConfig {
    /// The modules and the interpreter of a function.
    pub(super) fn project(&self) -> Project<'_> {
        Project {
            python: &self.python,
            packages: &["numpy"],
            path: &self.path,
            module: self.call.as_ref().and_then(|call| Some(call.split_once(':')?.0)),
            call: Some("call"),
            files: &self.files,
        }
    }

    /// Checks what depends on no environment: the name, and the grammar of conditions.
    pub(super) fn validate(&self) -> Result<(), ConfigProblem> {
        check_name(&self.name)?;
        let is_written = !self.rules.is_empty() || self.otherwise.is_some();
        if let Some(call) = &self.call {
            ConfigProblem::new("call", "stands in place of `rules` and `otherwise`")
                .hint("keep the lines, or the function")
                .when(is_written)?;
            ConfigProblem::new("call", format!("`{call}` is not MODULE:FUNCTION"))
                .hint("write `call: my_rules:decide`, a function in `my_rules.py` beside the pipeline")
                .when(!is_call(call))?;
            return self.project().check();
        }
        ConfigProblem::new("rules", "there are no lines, and no `otherwise`")
            .hint("rules: [{ when: \"momentum > 0\", do: … }]")
            .when(!is_written)?;
        self.check_conditions(&AnyName)
    }

    /// Checks the names of conditions and choices, where those of the environment are known.
    pub(super) fn check_names(&self, env: &Provided) -> Result<(), ConfigProblem> {
        if let Some(columns) = &env.columns {
            let observation: Vec<String> = columns.iter().cloned().collect();
            let account = account(&observation);
            self.check_conditions(&RuleNames::new(&observation, &account))?;
        }
        let Some(choices) = &env.choices else {
            return Ok(());
        };
        let actions = self
            .rules
            .iter()
            .enumerate()
            .map(|(i, line)| (format!("rules[{i}].do"), &line.action));
        let otherwise = self.otherwise.iter().map(|action| ("otherwise".to_owned(), action));
        for (field, action) in actions.chain(otherwise) {
            check_choice(&field, action, choices)?;
        }
        Ok(())
    }

    fn check_conditions(&self, names: &impl Names) -> Result<(), ConfigProblem> {
        for (i, line) in self.rules.iter().enumerate() {
            Program::condition(&line.when, names, &mut 0)
                .map_err(|mistake| problem(&format!("rules[{i}].when"), &line.when, mistake))?;
        }
        Ok(())
    }
}

/// The number of the choice that an action of one choice is.
pub(super) fn check_choice(field: &str, action: &Action, choices: &[String]) -> Result<u32, ConfigProblem> {
    let listed = || hint(&action.text(), choices.iter().map(String::as_str));
    let Action::One(value) = action else {
        return Err(
            ConfigProblem::new(field, "the environment's actions are one choice, not a map").hint(listed()),
        );
    };
    let text = value.text();
    let at = choices.iter().position(|name| *name == text);
    at.map(|at| at as u32).ok_or_else(|| {
        ConfigProblem::new(field, format!("the environment has no choice `{text}`")).hint(listed())
    })
}

/// The names that evaluations give to strategies of their own, beside those of [`BaselineName`].
const RESERVED: [&str; 7] = [
    "policy",
    "drawn",
    "greedy",
    "best_rule",
    "best_constant",
    "filter",
    "optimal",
];

/// Checks the name of a baseline: a part of the names of metrics, and none that evaluations use themselves.
///
/// # Errors
/// When it cannot be one.
pub fn check_name(name: &str) -> Result<(), ConfigProblem> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    ConfigProblem::new("name", format!("`{name}` is not a name"))
        .hint("letters, digits and `_`, such as `name: short_vol`: evaluations list the rule by it")
        .when(name.is_empty() || !name.chars().all(is_part))?;
    let is_baseline = BaselineName::ALL.iter().any(|baseline| baseline.name() == name);
    ConfigProblem::new("name", format!("`{name}` is the name of a strategy of evaluations"))
        .hint(format!("take another one, such as `my_{name}`"))
        .when(is_baseline || RESERVED.contains(&name) || name.starts_with("always_"))
}
