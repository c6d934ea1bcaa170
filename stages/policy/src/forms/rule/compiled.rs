//! A rule compiled for an environment, and its decisions.

use super::config::{ALL, Action, Line, Value, check_choice, problem};
use super::names::{RuleNames, account};
use crate::ActionHead;
use crate::model::{Observed, Output};
use crate::policy::Forward;
use stages_core::{ConfigProblem, StageError};
use stages_env::expression::{Memory, Program, hint};
use stages_env::{ActionSpace, EnvSpec};
use std::ops::Range;

/// A rule compiled for an environment: L lines over actions of K components.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    space: ActionSpace,
    /// The length D of an observation.
    obs_dim: usize,
    /// The condition of each line `[L]`.
    conditions: Vec<Program>,
    /// The expressions of actions, all of them evaluated at each step.
    values: Vec<Program>,
    /// The action of each line, and then the one where none decides `[L + 1][K]`.
    actions: Vec<Vec<Part>>,
    /// The numbers that expressions remember.
    slots: usize,
}

/// A component of an action.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// The choice of this number.
    Choice(u32),
    /// The value of the expression of this number.
    Value(usize),
}

impl Compiled {
    /// Compiles a rule over the observations and actions of an environment; `choices` are the names of the
    /// choices, in the order of the action mask.
    pub(super) fn new(
        lines: &[Line],
        otherwise: Option<&Action>,
        spec: &EnvSpec,
        choices: &[String],
    ) -> Result<Self, ConfigProblem> {
        let is_known = !matches!(spec.action_space, ActionSpace::Candidates { .. });
        ConfigProblem::new(
            "",
            format!("the actions of `{}` have no names by which a rule chooses", spec.name),
        )
        .hint("rules are for environments with choices, components or weights")
        .when(!is_known || choices.len() != spec.action_space.mask_len())?;
        let account = account(&spec.observation);
        let mut this = Self {
            space: spec.action_space.clone(),
            obs_dim: spec.obs_dim(),
            conditions: Vec::new(),
            values: Vec::new(),
            actions: Vec::new(),
            slots: 0,
        };
        let names = RuleNames::new(&spec.observation, &account);
        for (i, line) in lines.iter().enumerate() {
            let condition = Program::condition(&line.when, &names, &mut this.slots)
                .map_err(|mistake| problem(&format!("rules[{i}].when"), &line.when, mistake))?;
            this.conditions.push(condition);
            let parts = this.action(&format!("rules[{i}].do"), &line.action, &names, choices)?;
            this.actions.push(parts);
        }
        let last = match otherwise {
            Some(action) => this.action("otherwise", action, &names, choices)?,
            None => this.hold().ok_or_else(|| {
                ConfigProblem::new("otherwise", "is missing, and the environment has no choice `hold`")
                    .hint("write what is done where no line decides, such as `otherwise: …`")
            })?,
        };
        this.actions.push(last);
        Ok(this)
    }

    /// The length S of the recurrent state.
    pub(super) fn state_len(&self) -> usize {
        if self.slots > 0 { 1 + self.slots } else { 0 }
    }

    /// The outputs of each component, in the order of the action mask.
    fn ranges(&self) -> Vec<Range<usize>> {
        match &self.space {
            ActionSpace::MultiDiscrete { choices, .. } => {
                let ends = choices.iter().scan(0, |end, &n| {
                    let first = *end;
                    *end += n as usize;
                    Some(first..*end)
                });
                ends.collect()
            }
            ActionSpace::Continuous { names, .. } => (0..names.len()).map(|i| i..i + 1).collect(),
            space => std::iter::once(0..space.num_outputs()).collect(),
        }
    }

    /// The action that does nothing, where there is one.
    fn hold(&self) -> Option<Vec<Part>> {
        match &self.space {
            ActionSpace::Discrete { names, .. } => {
                let at = names.iter().position(|name| name == "hold")?;
                Some(vec![Part::Choice(at as u32)])
            }
            ActionSpace::MultiDiscrete { names, .. } => Some(vec![Part::Choice(0); names.len()]),
            _ => None,
        }
    }

    /// The parts of an action.
    fn action(
        &mut self,
        field: &str,
        action: &Action,
        names: &RuleNames<'_>,
        choices: &[String],
    ) -> Result<Vec<Part>, ConfigProblem> {
        if let ActionSpace::Discrete { .. } = self.space {
            return Ok(vec![Part::Choice(check_choice(field, action, choices)?)]);
        }
        let components = self.space.names().to_vec();
        let ranges = self.ranges();
        let values = match (action, components.as_slice()) {
            (Action::One(value), [_]) => vec![Some(value); 1],
            (Action::One(Value::Text(text)), _) if text == "hold" => match self.hold() {
                Some(hold) => return Ok(hold),
                None => {
                    return Err(ConfigProblem::new(field, "weights have no `hold`").hint(
                        "give each component its value: `{ \"*\": weight }` holds those of env/stocks",
                    ));
                }
            },
            (Action::One(value), _) => {
                let message = format!("`{}` is no action of {} components", value.text(), components.len());
                return Err(ConfigProblem::new(field, message)
                    .hint(format!("give each its value: {{ {}: … }}", components[0])));
            }
            (Action::Each(values), _) => {
                let mut given = values.keys().filter(|key| *key != ALL);
                if let Some(unknown) = given.find(|key| !components.contains(key)) {
                    let message = format!("the environment's actions have no component `{unknown}`");
                    return Err(ConfigProblem::new(field, message)
                        .hint(hint(unknown, components.iter().map(String::as_str))));
                }
                let of = |component: &String| values.get(component).or_else(|| values.get(ALL));
                components.iter().map(of).collect()
            }
        };
        let mut parts = Vec::with_capacity(components.len());
        for ((component, range), value) in components.iter().zip(ranges).zip(values) {
            let named = choices.get(range).unwrap_or_default();
            parts.push(match (value, &self.space) {
                (Some(value), _) => self.part(field, component, value, names, named)?,
                (None, ActionSpace::MultiDiscrete { .. }) => Part::Choice(0),
                (None, _) => {
                    return Err(ConfigProblem::new(field, format!("`{component}` has no value"))
                        .hint("`*` is the value of all components that are not named: { \"*\": 0 }"));
                }
            });
        }
        Ok(parts)
    }

    /// The value of a component: a choice by name, or an expression.
    fn part(
        &mut self,
        field: &str,
        component: &str,
        value: &Value,
        names: &RuleNames<'_>,
        choices: &[String],
    ) -> Result<Part, ConfigProblem> {
        let text = value.text();
        if let Some(choice) = choices.iter().position(|name| *name == text) {
            return Ok(Part::Choice(choice as u32));
        }
        let is_choice = !matches!(self.space, ActionSpace::Continuous { .. });
        let unknown = || {
            ConfigProblem::new(field, format!("`{component}` has no choice `{text}`"))
                .hint(hint(&text, choices.iter().map(String::as_str)))
        };
        let program = Program::number(&text, &names.of(component), &mut self.slots).map_err(|mistake| {
            let is_word = text.chars().all(|c| c.is_alphanumeric() || "_- .".contains(c));
            if is_choice && is_word {
                unknown()
            } else {
                problem(field, &text, mistake)
            }
        })?;
        self.values.push(program);
        Ok(Part::Value(self.values.len() - 1))
    }

    /// Starts the rule for any number of environments.
    pub(super) fn start(&self) -> Acting {
        Acting {
            ranges: self.ranges(),
            conditions: Vec::new(),
            values: Vec::new(),
            chosen: Vec::new(),
            decisions: 0,
            masked: vec![0; self.actions.len()],
            head: match &self.space {
                ActionSpace::MultiDiscrete { choices, .. } => ActionHead::MultiDiscrete(choices.clone()),
                ActionSpace::Continuous { names, .. } => ActionHead::Continuous(names.len()),
                space => ActionHead::Discrete(space.num_outputs() as u32),
            },
            rule: self.clone(),
        }
    }
}

/// A rule in action, with its buffers and what is counted.
pub(super) struct Acting {
    rule: Compiled,
    head: ActionHead,
    /// The outputs of each component `[K]`.
    ranges: Vec<Range<usize>>,
    /// The truth of each line's condition `[L, B]`.
    conditions: Vec<f64>,
    /// The values of the actions' expressions `[V, B]`.
    values: Vec<f64>,
    /// The choices of a row `[K]`.
    chosen: Vec<u32>,
    decisions: u64,
    /// The decisions in which a line's condition held, and its action was masked `[L + 1]`.
    masked: Vec<u64>,
}

impl Forward for Acting {
    fn head(&self) -> &ActionHead {
        &self.head
    }

    fn state_len(&self) -> usize {
        self.rule.state_len()
    }

    fn forward(
        &mut self,
        input: &Observed<'_>,
        recurrent: &mut [f32],
        output: &mut Output,
    ) -> Result<(), StageError> {
        let rows = input.episode_start.len();
        self.decisions += rows as u64;
        let mut memory = Memory::new(recurrent, self.rule.slots);
        let obs = (input.obs, self.rule.obs_dim);
        for (programs, out) in [
            (&self.rule.conditions, &mut self.conditions),
            (&self.rule.values, &mut self.values),
        ] {
            out.resize(programs.len() * rows, 0.0);
            for (program, out) in programs.iter().zip(out.chunks_exact_mut(rows.max(1))) {
                program.evaluate_rows(obs, &mut memory, out);
            }
        }
        memory.begin();
        for of in [
            &mut output.log_prob,
            &mut output.mean,
            &mut output.log_std,
            &mut output.value,
        ] {
            of.clear();
        }
        match &self.rule.space {
            ActionSpace::Continuous { .. } => self.amounts(rows, output),
            _ => self.choices(rows, input.mask, output),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let lines = self.masked.iter().enumerate().filter(|(_, count)| **count > 0);
        let warning = |(line, count): (usize, &u64)| {
            let (of, then) = match line + 1 < self.masked.len() {
                true => (format!("line {}", line + 1), "the next line decided"),
                false => ("`otherwise`".to_owned(), "the first allowed choice was taken"),
            };
            format!(
                "the action of {of} was masked in {count} of {} decisions, and {then}",
                self.decisions
            )
        };
        lines.map(warning).collect()
    }
}

impl Acting {
    /// The lines whose conditions hold in a row, and then the action where none does.
    fn holding(&self, row: usize, rows: usize) -> impl Iterator<Item = usize> + '_ {
        let lines = self.rule.conditions.len();
        (0..=lines).filter(move |&line| line == lines || self.conditions[line * rows + row] != 0.0)
    }

    /// The value of a part in a row, which must be a number.
    fn value(
        &self,
        (line, k): (usize, usize),
        value: usize,
        row: usize,
        rows: usize,
    ) -> Result<f64, StageError> {
        let value = self.values[value * rows + row];
        if value.is_finite() {
            return Ok(value);
        }
        let component = self.rule.space.names().get(k).map_or("", String::as_str);
        let of = match line < self.rule.conditions.len() {
            true => format!("line {}", line + 1),
            false => "`otherwise`".to_owned(),
        };
        Err(
            StageError::new(format!("{of} of the rule gives `{component}` the value {value}")).hint(
                "a division or a logarithm of 0, or `previous` at the first step: exclude it by a condition",
            ),
        )
    }

    fn amounts(&self, rows: usize, output: &mut Output) -> Result<(), StageError> {
        let bounds = self.rule.space.bounds();
        for row in 0..rows {
            let line = self.holding(row, rows).next().unwrap_or_default();
            for (k, part) in self.rule.actions[line].iter().enumerate() {
                let value = match *part {
                    Part::Choice(choice) => f64::from(choice),
                    Part::Value(value) => self.value((line, k), value, row, rows)?,
                };
                let value = value as f32;
                output
                    .mean
                    .push(bounds.map_or(value, |of| value.max(of.low[k]).min(of.high[k])));
            }
        }
        Ok(())
    }

    fn choices(&mut self, rows: usize, mask: &[bool], output: &mut Output) -> Result<(), StageError> {
        let width = self.rule.space.num_outputs();
        output.log_prob.resize(rows * width, f32::NEG_INFINITY);
        let mut chosen = std::mem::take(&mut self.chosen);
        let mut masked = std::mem::take(&mut self.masked);
        for row in 0..rows {
            let mask = &mask[row * width..(row + 1) * width];
            let mut allowed = false;
            for line in self.holding(row, rows) {
                chosen.clear();
                for (k, part) in self.rule.actions[line].iter().enumerate() {
                    chosen.push(match *part {
                        Part::Choice(choice) => choice,
                        Part::Value(value) => {
                            let value = self.value((line, k), value, row, rows)?.round();
                            let last = self.ranges[k].len() as f64 - 1.0;
                            value.clamp(0.0, last) as u32
                        }
                    });
                }
                let parts = self.ranges.iter().zip(&chosen);
                allowed = parts
                    .clone()
                    .all(|(range, &choice)| mask[range.start + choice as usize]);
                if allowed {
                    break;
                }
                masked[line] += 1;
            }
            if !allowed {
                let first = |range: &Range<usize>| {
                    mask[range.clone()]
                        .iter()
                        .position(|allowed| *allowed)
                        .unwrap_or_default() as u32
                };
                chosen.clear();
                chosen.extend(self.ranges.iter().map(first));
            }
            for (range, &choice) in self.ranges.iter().zip(&chosen) {
                output.log_prob[row * width + range.start + choice as usize] = 0.0;
            }
        }
        (self.chosen, self.masked) = (chosen, masked);
        Ok(())
    }
}
