//! The setting `on_bad_rows:` of a stage.

use super::by_rule::{self, ByRule, OfRule};
use super::unit;
use datasets::quality::{Action, MOST_DROPPED, Remedy, Rule, Tally, of};
use schemars::{Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{Error, Unexpected};
use stages_core::{ConfigProblem, StageError};

/// The action for rows that break a rule: `drop`, `keep`, `untradable` or `fail`; or by rule,
/// `{ default: drop, crossed_quote: keep }`.
pub type OnBadRows = ByRule<Action>;

impl OnBadRows {
    /// The action for a rule. A default for all rules leaves rules that are only counted unchanged, and
    /// cannot drop anything for rules that do not concern single rows.
    pub fn action(&self, rule: &Rule) -> Action {
        if let Some(action) = self.rules.get(rule.name) {
            return *action;
        }
        match self.default {
            None => rule.action,
            Some(Action::Keep) => Action::Keep,
            Some(_) if rule.action == Action::Keep => Action::Keep,
            Some(Action::Drop | Action::Untradable) if rule.remedy == Remedy::Note => rule.action,
            Some(action) => action,
        }
    }

    /// The action for the rule named `name`.
    pub fn of(&self, rules: &[Rule], name: &str) -> Action {
        of(rules, name).map_or(self.default.unwrap_or_default(), |rule| self.action(rule))
    }

    /// Returns whether the configuration says that data which breaks the rule is kept.
    pub fn accepts(&self, rule: &str) -> bool {
        self.rules.get(rule).copied().or(self.default) == Some(Action::Keep)
    }

    /// Refuses names of unknown rules, and actions that a rule cannot take.
    pub fn check(&self, rules: &[Rule]) -> Result<(), ConfigProblem> {
        for (name, action) in &self.rules {
            let problem = |message: String| ConfigProblem::new(format!("on_bad_rows.{name}"), message);
            let Some(rule) = of(rules, name) else {
                return Err(by_rule::unknown("on_bad_rows", name, rules));
            };
            let can_be_marks = rules.iter().any(|rule| rule.action == Action::Untradable);
            match (action, rule.remedy) {
                (Action::Drop | Action::Untradable, Remedy::Note) => {
                    return Err(problem(format!("`{name}` is about no row that could be dropped"))
                        .hint("`keep` counts it, `fail` stops the stage"));
                }
                (Action::Untradable, Remedy::Value) => {
                    return Err(problem(format!(
                        "`{name}` is about a value, not about what the row trades at"
                    ))
                    .hint("`drop` removes the value, `keep` keeps it"));
                }
                (Action::Untradable, _) if !can_be_marks => {
                    return Err(problem("only rows of option chains can be untradable".to_owned())
                        .hint("`drop` drops them"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Fails if a rule whose action is [`Action::Fail`] is broken.
    pub fn enforce(&self, tally: &Tally) -> Result<(), StageError> {
        for (rule, rows, first) in tally.broken() {
            if self.action(rule) != Action::Fail {
                continue;
            }
            let (unit, verb) = match rows {
                1 => (unit(rule).trim_end_matches('s'), "breaks"),
                _ => (unit(rule), "break"),
            };
            let first = first.map(|first| format!(", first on {first}")).unwrap_or_default();
            let example = match tally.sample(rule.name).first() {
                Some(example) => format!(" ({example})"),
                None => String::new(),
            };
            let error = StageError::new(format!(
                "{rows} {unit} {verb} the rule `{}`{first}: {}{example}",
                rule.name, rule.about
            ));
            return Err(match rule.name {
                "strike_jump" | "price_jump" => error.hint(format!(
                    "name the split: `needs: {{ actions: STAGE }}` of a stage `ingest/corporate_actions`; \
                    `on_bad_rows: {{ {}: keep }}` takes the data as they are",
                    rule.name
                )),
                "unit_jump" => error.hint(
                    "name the column's unit or its separators in `layout:`, or correct the file; \
                    `on_bad_rows: { unit_jump: drop }` drops the rows until the level comes back, `keep` takes \
                    them as they are",
                ),
                _ if rule.remedy == Remedy::Note => error.hint(format!(
                    "`on_bad_rows: {{ {}: keep }}` lets \
                    them pass",
                    rule.name
                )),
                _ => error.hint(format!("`on_bad_rows: {{ {}: drop }}` lets them pass", rule.name)),
            });
        }
        Ok(())
    }

    /// Returns whether the action for a rule drops its rows.
    pub(super) fn drops(&self, rule: &Rule) -> bool {
        rule.remedy == Remedy::Always || rule.remedy == Remedy::Row && self.action(rule) == Action::Drop
    }
}

impl OfRule for Action {
    const NAME: &'static str = "OnBadRows";
    const EXPECTED: &'static str =
        "`by_rule`, `drop`, `keep`, `untradable`, `fail`, or a map from rules to these";

    fn from_word<E: Error>(word: &str) -> Result<Self, E> {
        Self::deserialize(StrDeserializer::new(word))
    }

    fn schema(generator: &mut SchemaGenerator) -> (Schema, String) {
        let about =
            "by_rule, drop, keep, untradable or fail; or by rule: { default: drop, crossed_quote: keep }.";
        (generator.subschema_for::<Self>(), about.to_owned())
    }
}

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
            ConfigProblem::new(field, format!("{share} is not a share"))
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

    fn from_word<E: Error>(word: &str) -> Result<Self, E> {
        Err(E::custom(format!(
            "`{word}` is not a share: write a number between 0 and 1"
        )))
    }

    fn from_number<E: Error>(number: Unexpected<'_>) -> Result<Self, E> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::quality::{BARS, CHAIN};

    fn read(text: &str) -> Result<OnBadRows, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn actions_by_rule() {
        let bad = read(r#"{"default":"keep","crossed_quote":"fail"}"#).unwrap();
        assert_eq!(bad.of(CHAIN, "crossed_quote"), Action::Fail);
        assert_eq!(bad.of(CHAIN, "no_quote"), Action::Keep);
        assert_eq!(
            serde_json::to_string(&bad).unwrap(),
            r#"{"default":"keep","crossed_quote":"fail"}"#
        );
        assert_eq!(serde_json::to_string(&read("\"drop\"").unwrap()).unwrap(), "\"drop\"");
        assert_eq!(serde_json::to_string(&OnBadRows::default()).unwrap(), "\"by_rule\"");
        assert_eq!(read("\"by_rule\"").unwrap(), OnBadRows::default());
        assert!(
            read("\"ignore\"")
                .unwrap_err()
                .to_string()
                .contains("`drop`, `keep`, `untradable`, `fail`")
        );
        let problem = read(r#"{"crosed_quote":"keep"}"#).unwrap().check(CHAIN).unwrap_err();
        assert_eq!(problem.field, "on_bad_rows.crosed_quote");
        assert_eq!(problem.hint.unwrap(), "did you mean `crossed_quote`?");
        for (text, message) in [
            (r#"{"hole":"drop"}"#, "no row"),
            (r#"{"placeholder_volatility":"untradable"}"#, "about a value"),
        ] {
            let problem = read(text).unwrap().check(CHAIN).unwrap_err();
            assert!(problem.message.contains(message), "{problem:?}");
        }
        let problem = read(r#"{"zero_volume":"untradable"}"#)
            .unwrap()
            .check(BARS)
            .unwrap_err();
        assert!(problem.message.contains("option chains"), "{problem:?}");
    }

    #[test]
    fn a_default_for_all_rules() {
        let of = |text: &str, rule: &str| read(text).unwrap().of(CHAIN, rule);
        // With `by_rule`, each rule has its own default.
        assert_eq!(of("\"by_rule\"", "ask_below_intrinsic"), Action::Untradable);
        assert_eq!(of("\"by_rule\"", "zero_bid"), Action::Keep);
        assert_eq!(of("\"by_rule\"", "strike_jump"), Action::Fail);
        // Rules that are only counted stay so; rules that do not concern single rows drop nothing.
        for (text, zero_bid, jump, crossed) in [
            ("\"drop\"", Action::Keep, Action::Fail, Action::Drop),
            ("\"untradable\"", Action::Keep, Action::Fail, Action::Untradable),
            ("\"fail\"", Action::Keep, Action::Fail, Action::Fail),
            ("\"keep\"", Action::Keep, Action::Keep, Action::Keep),
        ] {
            assert_eq!(of(text, "zero_bid"), zero_bid, "{text}");
            assert_eq!(of(text, "strike_jump"), jump, "{text}");
            assert_eq!(of(text, "crossed_quote"), crossed, "{text}");
        }
        assert_eq!(of(r#"{"zero_bid":"drop"}"#, "zero_bid"), Action::Drop);
    }
}
