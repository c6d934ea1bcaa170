//! The setting `max_dropped:` of a stage.

use super::by_rule::{self, ByRule, OfRule};
use datasets::quality::{MOST_DROPPED, Rule, of};
use schemars::{Schema, SchemaGenerator};
use serde::de::{Error, Unexpected};
use stages_core::ConfigProblem;

/// The share of a table's rows that each rule may drop before the stage fails: a number for all rules, or by
/// rule, `{ default: 0.05, no_quote: 0.9 }`. Without one, 0.05, and 0.5 for rules whose rows are no data
/// (`no_quote`, `null_close`, …).
pub type MaxDropped = ByRule<f64>;

impl MaxDropped {
    /// The share of rows (0 to 1) that a rule may drop.
    pub fn share(&self, rule: &Rule) -> f64 {
        let own = self.rules.get(rule.name).copied();
        own.or(self.default).unwrap_or(rule.most_dropped)
    }

    /// Refuses names of unknown rules and invalid shares.
    pub fn check(&self, rules: &[Rule]) -> Result<(), ConfigProblem> {
        let shares = self
            .rules
            .iter()
            .map(|(name, share)| (format!("max_dropped.{name}"), share));
        for (field, share) in shares.chain(self.default.iter().map(|share| ("max_dropped".to_owned(), share)))
        {
            ConfigProblem::new(field, format!("{share} is no share"))
                .hint("write a number between 0 (none may be dropped) and 1 (all may)")
                .when(!(0.0..=1.0).contains(share))?;
        }
        match self.rules.keys().find(|name| of(rules, name).is_none()) {
            Some(name) => Err(by_rule::unknown("max_dropped", name, rules)),
            None => Ok(()),
        }
    }
}

impl OfRule for f64 {
    const NAME: &'static str = "MaxDropped";
    const EXPECTED: &'static str = "a share between 0 and 1, or a map from rules to shares";

    fn of_word<E: Error>(word: &str) -> Result<Self, E> {
        Err(E::custom(format!(
            "`{word}` is no share: write a number between 0 and 1"
        )))
    }

    fn of_number<E: Error>(number: Unexpected<'_>) -> Result<Self, E> {
        match number {
            Unexpected::Float(share) => Ok(share),
            Unexpected::Unsigned(share) => Ok(share as Self),
            Unexpected::Signed(share) => Ok(share as Self),
            other => Err(E::invalid_type(other, &Self::EXPECTED)),
        }
    }

    fn schema(_: &mut SchemaGenerator) -> (Schema, String) {
        let about = format!(
            "A share of the rows, {MOST_DROPPED} unless the rule has its own; or by rule: \
            {{ default: 0.05, no_quote: 0.9 }}."
        );
        (
            schemars::json_schema!({ "type": "number", "minimum": 0, "maximum": 1 }),
            about,
        )
    }
}
