//! The configuration of `env/table`.

use super::quantities::{self, Form};
use crate::checks::{fits, positive, within};
use crate::expression::{Mistake, Program};
use crate::portfolio::market_config;
use crate::reward::{self, RewardConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;
use std::collections::BTreeSet;

/// The maximum number of symbols whose weights an action has.
pub(crate) const MAX_SYMBOLS: usize = 4096;
/// The most columns that the expressions of an environment name.
pub(crate) const MAX_TERMS: usize = 32;
/// The largest position in absolute value.
const MAX_POSITION: f64 = 100.0;

market_config! {
    /// Configuration of `env/table`. A column is named as in the table.
    pub struct TableConfig {
        /// The columns that a decision sees, of its own row; empty for all but `price`, `reward_column` and
        /// `action_rewards`.
        pub observe: Vec<String> = Vec::new(),
        /// The column of a price that is traded: the position chosen at a row earns the change of the price
        /// to the next row. One of `price`, `reward_column` and `action_rewards` is given.
        pub price: String = String::new(),
        /// The column of what 1 of position is paid: the value of the next row, in any unit.
        pub reward_column: String = String::new(),
        /// The columns of what each choice of a discrete action is paid: the value of the next row, in any
        /// unit. The choices are named as the columns.
        pub action_rewards: Vec<String> = Vec::new(),
        /// The symbols to use, in this order; empty for all.
        pub symbols: Vec<String> = Vec::new(),
        /// The actions.
        pub actions: TableActions = TableActions::default(),
        /// The costs of a change of position.
        pub costs: TableCosts = TableCosts::default(),
        /// With `price`: the row whose price a change of position is made at.
        #[serde(skip_serializing_if = "stages_core::is_default")]
        pub fill: TableFill = TableFill::Row,
        /// The reward: an expression over quantities of the step and columns of the row that it leads to, or,
        /// with `price`, settings. Without it: with `price` the default settings, else what the step paid
        /// less its costs.
        #[serde(deserialize_with = "reward::deserialize")]
        #[schemars(schema_with = "reward::schema")]
        pub reward: RewardConfig = RewardConfig::default(),
        /// An episode terminates after a step for which this condition holds, over what `reward` may name:
        /// `drawdown > 0.3`; empty for none.
        pub terminate: String = String::new(),
        /// With `price`: an episode terminates when the net asset value falls to this fraction of that at its
        /// start.
        pub ruin: f64 = 0.2,
        /// Rows without a price or a value of a reward column, and with `actions.kind: weights` instants at
        /// which a symbol has no row.
        pub gaps: Gaps = Gaps::Refuse,
        /// The share of an observed column's values that may be missing after its first, where the last one
        /// known is shown; more is an error.
        pub max_gaps: f64 = 0.05,
        splits {
            unit: "dates", step: "row",
            /// The test data: `{ from, to }`, and of one symbol an episode also `{ worlds: [SYMBOL, …] }` or
            /// a number of symbols, or both. Without it, the dates later than `train` by more than `purge`
            /// days, or, without `train` either, the last `test_fraction` of the instants of all symbols.
            test,
            /// The fraction of instants in the test set, if no dates are given. 1 leaves no training dates:
            /// an environment for evaluation only.
            test_fraction
        }
        /// Observations are clipped at this many standard deviations (columns) or units (positions and
        /// account).
        pub clip: f32 = 5.0,
    }
}

stages_core::settings! {
    /// The actions.
    pub struct TableActions {
        /// The kind. With `discrete` and `continuous` an episode has one symbol, with `weights` all.
        pub kind: TableActionKind = TableActionKind::Discrete,
        /// With `discrete`: the positions to choose from.
        pub positions: Vec<f64> = vec![-1.0, 0.0, 1.0],
        /// With `continuous` and `weights`: the least position in a symbol; 0 for long positions only.
        pub low: f64 = -1.0,
        /// With `continuous` and `weights`: the greatest position in a symbol.
        pub high: f64 = 1.0,
        /// With `weights`: the limit of the sum of absolute weights; larger ones are scaled down by one
        /// factor.
        pub gross: f64 = 1.0,
    }
}

/// The row whose price a change of position is made at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TableFill {
    /// The row that the decision sees.
    #[default]
    Row,
    /// The next row; until then the position is that of before.
    NextRow,
}

/// The kind of actions. A position is a fraction of the net asset value where a price is traded, and else the
/// factor of the reward column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TableActionKind {
    /// One of `positions`, or of `action_rewards`.
    Discrete,
    /// A position from `low` to `high`.
    Continuous,
    /// A position in each symbol from `low` to `high`.
    Weights,
}

/// The costs of a change of position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TableCosts {
    /// Basis points of the turnover: of the value traded where a price is traded, else of the change of
    /// position in units of the reward column; with `action_rewards`, of 1 for each change of the choice.
    pub basis_points: f64,
}

impl Default for TableCosts {
    fn default() -> Self {
        Self { basis_points: 10.0 }
    }
}

/// The treatment of rows that a step cannot be paid by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gaps {
    /// They are an error.
    Refuse,
    /// They are left out: a step goes from the row before to the row after.
    Drop,
}

impl TableConfig {
    /// The source of what a step pays.
    pub(crate) fn form(&self) -> Form {
        match (self.price.is_empty(), self.reward_column.is_empty()) {
            (false, _) => Form::Price,
            (true, false) => Form::PerPosition,
            (true, true) => Form::PerAction,
        }
    }

    /// The columns that steps are paid by.
    pub(crate) fn paying(&self) -> Vec<&str> {
        match self.form() {
            Form::Price => vec![&self.price],
            Form::PerPosition => vec![&self.reward_column],
            Form::PerAction => self.action_rewards.iter().map(String::as_str).collect(),
        }
    }

    /// True if all symbols of an instant are one world.
    pub(crate) fn is_panel(&self) -> bool {
        self.actions.kind == TableActionKind::Weights
    }

    /// The columns whose names the expressions have as words, in the order of the table.
    pub(crate) fn terms<'c>(&self, columns: impl IntoIterator<Item = &'c str>) -> Vec<&'c str> {
        let own = quantities::names(self.form());
        let words: BTreeSet<&str> = [&self.reward.expression, &self.terminate]
            .into_iter()
            .flat_map(|text| text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')))
            .collect();
        let is_term = |name: &&str| words.contains(name) && !own.contains(name);
        columns.into_iter().filter(is_term).collect()
    }

    /// The condition of termination, over quantities of these names.
    pub(crate) fn terminal(&self, names: &[&str]) -> Result<Option<Program>, ConfigProblem> {
        if self.terminate.trim().is_empty() {
            return Ok(None);
        }
        let problem = |mistake: Mistake| {
            let message = format!(
                "{} at character {} of `{}`",
                mistake.message, mistake.at, self.terminate
            );
            ConfigProblem {
                hint: mistake.hint,
                ..ConfigProblem::new("terminate", message)
            }
        };
        Program::condition(&self.terminate, names, &mut 0)
            .map(Some)
            .map_err(problem)
    }

    /// Checks all values that do not depend on the table.
    ///
    /// # Errors
    /// The first mistake, with its field.
    pub fn validate(&self) -> Result<(), ConfigProblem> {
        let given = [
            !self.price.is_empty(),
            !self.reward_column.is_empty(),
            !self.action_rewards.is_empty(),
        ];
        if given.iter().filter(|given| **given).count() != 1 {
            let message = match given.contains(&true) {
                true => "more than one of `price`, `reward_column` and `action_rewards` is given",
                false => "nothing says what a step pays",
            };
            return Err(ConfigProblem::new("price", message).hint(
                "give `price: close` (a price that is traded), `reward_column: pnl` (paid for 1 of \
                    position), or `action_rewards: [a, b]` (paid for each choice)",
            ));
        }
        let unique = |field: &str, names: &[String]| {
            let twice = (1..names.len()).find(|&i| names[..i].contains(&names[i]));
            match twice {
                Some(i) => Err(ConfigProblem::new(
                    format!("{field}[{i}]"),
                    format!("`{}` is named twice", names[i]),
                )
                .hint("leave one out")),
                None => Ok(()),
            }
        };
        unique("observe", &self.observe)?;
        unique("symbols", &self.symbols)?;
        unique("action_rewards", &self.action_rewards)?;
        self.validate_actions()?;
        within("costs.basis_points", self.costs.basis_points, 0.0, 5000.0)?;
        within("ruin", self.ruin, 0.0, 0.99)?;
        within("max_gaps", self.max_gaps, 0.0, 1.0)?;
        positive("clip", f64::from(self.clip))?;
        self.episode_length.validate()?;
        self.split_rules().validate()?;
        for (field, held) in [("test", &self.test), ("validation", &self.validation)] {
            ConfigProblem::new(
                field,
                "with `actions.kind: weights` all symbols are one world, which cannot be held out",
            )
            .hint("hold out dates: { from: …, to: … }")
            .when(self.is_panel() && held.as_ref().is_some_and(|held| held.worlds.is_some()))?;
        }
        if self.form() != Form::Price {
            ConfigProblem::new("fill", "without `price` there is nothing to fill at")
                .hint("leave it out")
                .when(self.fill != TableFill::Row)?;
            let alone = RewardConfig {
                expression: self.reward.expression.clone(),
                scale: self.reward.scale,
                ..RewardConfig::default()
            };
            ConfigProblem::new(
                "reward",
                "its settings measure an account, and without `price` there is none",
            )
            .hint("write an expression, such as `reward: paid - 0.1 * turnover`")
            .when(
                self.reward != alone
                    || (self.reward.expression.is_empty() && self.reward != RewardConfig::default()),
            )?;
        }
        Ok(())
    }

    fn validate_actions(&self) -> Result<(), ConfigProblem> {
        let actions = &self.actions;
        let default = TableActions::default();
        if self.form() == Form::PerAction {
            if self.action_rewards.len() < 2 {
                return Err(
                    ConfigProblem::new("action_rewards", "an action has at least 2 choices").hint(
                        "name a column for each choice; for one column of what a position is paid write \
                        `reward_column`",
                    ),
                );
            }
            ConfigProblem::new("actions", "with `action_rewards` the choices are these columns")
                .hint("leave `actions` out")
                .when(*actions != default)?;
            return Ok(());
        }
        let unused = |field: &str, kinds: &str| {
            ConfigProblem::new(field, format!("it has a meaning with `kind: {kinds}` alone"))
                .hint("leave it out")
        };
        let is_discrete = actions.kind == TableActionKind::Discrete;
        if !is_discrete && actions.positions != default.positions {
            return Err(unused("actions.positions", "discrete"));
        }
        if is_discrete && (actions.low, actions.high) != (default.low, default.high) {
            return Err(unused("actions.low", "continuous` or `weights"));
        }
        if !self.is_panel() && actions.gross != default.gross {
            return Err(unused("actions.gross", "weights"));
        }
        ConfigProblem::new("actions.positions", "an action has at least 2 choices")
            .hint("the default is [-1, 0, 1]")
            .when(actions.positions.len() < 2)?;
        for (i, position) in actions.positions.iter().enumerate() {
            let field = format!("actions.positions[{i}]");
            within(&field, *position, -MAX_POSITION, MAX_POSITION)?;
            ConfigProblem::new(field, format!("{position} is given twice"))
                .hint("leave one out")
                .when(actions.positions[..i].contains(position))?;
        }
        ConfigProblem::new(
            "actions.low",
            format!(
                "{} to {} is not a range of positions within -{MAX_POSITION} and {MAX_POSITION}",
                actions.low, actions.high
            ),
        )
        .when(
            !(actions.low < actions.high && actions.low >= -MAX_POSITION && actions.high <= MAX_POSITION),
        )?;
        let is_within = actions.gross > 0.0 && actions.gross <= MAX_POSITION;
        let range = format!("above 0 and at most {MAX_POSITION}");
        fits("actions.gross", actions.gross, is_within, &range)
    }

    /// Checks what depends on the columns of the table: each that is named is there, and the expressions name
    /// nothing else.
    pub(crate) fn validate_columns<'c>(
        &self,
        columns: impl IntoIterator<Item = &'c str>,
    ) -> Result<(), ConfigProblem> {
        let columns: Vec<&str> = columns.into_iter().collect();
        let check = |field: String, name: &str| match columns.contains(&name) {
            true => Ok(()),
            false => Err(
                ConfigProblem::new(field, format!("the table has no column `{name}` of numbers")).hint(
                    match datasets::layout::nearest(name, columns.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`? It has {}", columns.join(", ")),
                        None => format!("it has {}", columns.join(", ")),
                    },
                ),
            ),
        };
        for (field, name) in [("price", &self.price), ("reward_column", &self.reward_column)] {
            if !name.is_empty() {
                check(field.to_owned(), name)?;
            }
        }
        for (field, names) in [("observe", &self.observe), ("action_rewards", &self.action_rewards)] {
            for (i, name) in names.iter().enumerate() {
                check(format!("{field}[{i}]"), name)?;
            }
        }
        ConfigProblem::new("observe", "the table has no column beside those that steps are paid by")
            .hint("name the columns that a decision sees; what a step is paid by may be among them")
            .when(self.observed(columns.iter().copied()).is_empty())?;
        let terms = self.terms(columns.iter().copied());
        if self.is_panel() && !terms.is_empty() {
            return Err(ConfigProblem::new(
                "reward",
                format!(
                    "`{}` has a value for each symbol, and the step has one reward",
                    terms[0]
                ),
            )
            .hint("columns can be named where an episode has one symbol"));
        }
        ConfigProblem::new(
            "reward",
            format!(
                "the expressions name {} columns, and {MAX_TERMS} are the most",
                terms.len()
            ),
        )
        .hint("combine some in the table")
        .when(terms.len() > MAX_TERMS)?;
        let names = quantities::with_terms(self.form(), &terms);
        self.reward.validate(&names)?;
        self.terminal(&names).map(|_| ())
    }

    /// The columns that a decision sees, of a table with `columns`.
    pub(crate) fn observed<'a>(&'a self, columns: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let paying = self.paying();
        match self.observe.is_empty() {
            true => columns.into_iter().filter(|name| !paying.contains(name)).collect(),
            false => self.observe.iter().map(String::as_str).collect(),
        }
    }
}
