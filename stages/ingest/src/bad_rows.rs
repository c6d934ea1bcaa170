//! The treatment of rows that break the rules of [`datasets::quality`]: actions by rule, the loss that is allowed, and its report.

use crate::options::suggestion;
use datasets::quality::{Action, MOST_DROPPED, Remedy, Rule, Tally, of};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use stages_core::event::StageEvent;
use stages_core::{ConfigProblem, Context, StageError};
use std::collections::BTreeMap;
use std::fmt;

/// The action for rows that break a rule: `drop`, `keep`, `untradable` or `fail`; or by rule, `{ default: drop, crossed_quote: keep }`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnBadRows {
    /// For rules that are not named, in place of their own; `None` for each rule's own.
    pub default: Option<Action>,
    /// By rule.
    pub rules: BTreeMap<String, Action>,
}

impl OnBadRows {
    /// The action for all rules that are not named.
    pub fn all(default: Action) -> Self {
        Self {
            default: Some(default),
            rules: BTreeMap::new(),
        }
    }

    /// The action for a rule. A default for all rules makes none stricter that only counts by itself, and drops nothing where there is
    /// no row to drop.
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

    /// The action for the rule of that name.
    pub fn of(&self, rules: &[Rule], name: &str) -> Action {
        of(rules, name).map_or(self.default.unwrap_or_default(), |rule| self.action(rule))
    }

    /// Refuses the name of a rule that does not exist, and an action that it cannot take.
    ///
    /// # Errors
    /// The first such name.
    pub fn check(&self, rules: &[Rule]) -> Result<(), ConfigProblem> {
        for (name, action) in &self.rules {
            let problem = |message: String| ConfigProblem::new(format!("on_bad_rows.{name}"), message);
            let Some(rule) = of(rules, name) else {
                let known: Vec<_> = rules.iter().map(|rule| rule.name).collect();
                return Err(problem(format!("there is no rule `{name}`")).hint(suggestion(name, &known)));
            };
            let can_be_marks = rules.iter().any(|rule| rule.action == Action::Untradable);
            match (action, rule.remedy) {
                (Action::Drop | Action::Untradable, Remedy::Note) => {
                    return Err(problem(format!("`{name}` is about no row that could be dropped"))
                        .hint("`keep` counts it, `fail` stops the stage"));
                }
                (Action::Untradable, Remedy::Value) => {
                    return Err(
                        problem(format!("`{name}` is about a value, not about what the row trades at"))
                            .hint("`drop` removes the value, `keep` keeps it"),
                    );
                }
                (Action::Untradable, _) if !can_be_marks => {
                    return Err(
                        problem("only rows of option chains can be untradable".to_owned()).hint("`drop` drops them")
                    );
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Fails where a rule is broken that may not be.
    ///
    /// # Errors
    /// Names the rule, how often it is broken, where first, and an example.
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
                    "name the split: `needs: {{ actions: STAGE }}` of a stage `ingest/corporate_actions`; `on_bad_rows: {{ {}: keep }}` takes the data as they are",
                    rule.name
                )),
                _ if rule.remedy == Remedy::Note => error.hint(format!("`on_bad_rows: {{ {}: keep }}` lets them pass", rule.name)),
                _ => error.hint(format!("`on_bad_rows: {{ {}: drop }}` lets them pass", rule.name)),
            });
        }
        Ok(())
    }

    /// Returns whether the action for a rule drops its rows.
    fn drops(&self, rule: &Rule) -> bool {
        rule.remedy == Remedy::Always || rule.remedy == Remedy::Row && self.action(rule) == Action::Drop
    }
}

/// The unit that a rule counts in.
fn unit(rule: &Rule) -> &'static str {
    match rule.name {
        "missing_day" | "hole" | "strike_jump" | "price_jump" => "days",
        _ => "rows",
    }
}

/// The share of a table's rows that each rule may drop before the stage fails: a number for all rules, or by rule,
/// `{ default: 0.05, no_quote: 0.9 }`. Without one, 0.05, and 0.5 for rules whose rows are no data (`no_quote`, `null_close`, …).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaxDropped {
    /// For rules that are not named; `None` for each rule's own.
    pub default: Option<f64>,
    /// By rule.
    pub rules: BTreeMap<String, f64>,
}

/// A table of fewer rows may lose any share of them: a share of a few rows says little. Its loss is reported all the same.
const FEW_ROWS: u64 = 100;

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
        for (field, share) in shares.chain(self.default.iter().map(|share| ("max_dropped".to_owned(), share))) {
            if !(0.0..=1.0).contains(share) {
                return Err(ConfigProblem::new(field, format!("{share} is no share"))
                    .hint("write a number between 0 (none may be dropped) and 1 (all may)"));
            }
        }
        match self.rules.keys().find(|name| of(rules, name).is_none()) {
            Some(name) => {
                let known: Vec<_> = rules.iter().map(|rule| rule.name).collect();
                Err(
                    ConfigProblem::new(format!("max_dropped.{name}"), format!("there is no rule `{name}`"))
                        .hint(suggestion(name, &known)),
                )
            }
            None => Ok(()),
        }
    }
}

/// The treatment of a table's rows, as a stage is configured.
pub struct Treatment<'a> {
    /// The action by rule.
    pub bad: &'a OnBadRows,
    /// The share that may be dropped.
    pub most: &'a MaxDropped,
}

impl Treatment<'_> {
    /// Fails where a rule says so or drops too much, and reports what is dropped or repaired as one line. `read` and `left` are the numbers of rows
    /// before and after.
    ///
    /// # Errors
    /// As [`OnBadRows::enforce`]; and when a rule drops more than its share, with the table of all broken rules.
    pub fn apply(&self, context: &Context, tally: &Tally, read: u64, left: u64) -> Result<(), StageError> {
        self.bad.enforce(tally)?;
        self.limit(tally, read)?;
        if let Some(line) = self.line(tally, read, left) {
            context.events.emit(StageEvent::Warning {
                message: line,
                hint: None,
            });
        }
        Ok(())
    }

    fn limit(&self, tally: &Tally, read: u64) -> Result<(), StageError> {
        if read < FEW_ROWS {
            return Ok(());
        }
        let share = |rows: u64| rows as f64 / read as f64;
        let worst = tally
            .broken()
            .filter(|(rule, rows, _)| self.bad.drops(rule) && share(*rows) > self.most.share(rule))
            .max_by_key(|(_, rows, _)| *rows);
        let Some((rule, rows, first)) = worst else {
            return Ok(());
        };
        let first = first.map(|first| format!(", first on {first}")).unwrap_or_default();
        let error = StageError::new(format!(
            "the rule `{}` drops {} of {} rows ({}), more than {} of them{first}: {}\n{}",
            rule.name,
            thousands(rows),
            thousands(read),
            percent(share(rows)),
            percent(self.most.share(rule)),
            rule.about,
            self.table(tally, read)
        ));
        let accept = format!(
            "`max_dropped: {{ {}: {} }}` accepts the loss",
            rule.name,
            (share(rows) * 100.0).ceil() / 100.0
        );
        Err(error.hint(match (rule.name, rule.remedy) {
            ("duplicate_key", _) => format!(
                "several rows have one key: is the column of the symbol (or, of options, the class) named in `layout: {{ columns: … }}`? {accept}"
            ),
            (_, Remedy::Always) => accept,
            ("non_trading_day", _) => format!("is it the right `calendar:`? {accept}"),
            (name, _) => format!("{accept}; `on_bad_rows: {{ {name}: keep }}` keeps the rows"),
        }))
    }

    /// The broken rules as text.
    fn table(&self, tally: &Tally, read: u64) -> String {
        let findings = tally.findings(|rule| self.bad.action(rule));
        let broken: Vec<_> = findings.iter().filter(|finding| finding.rows > 0).collect();
        let wide = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
        let names = wide(&mut broken.iter().map(|finding| finding.rule.len()));
        let counts = wide(&mut broken.iter().map(|finding| thousands(finding.rows).len()));
        let mut lines: Vec<String> = Vec::new();
        for finding in broken {
            lines.push(format!(
                "  {:names$}  {:>counts$}  {:>6}  {}",
                finding.rule,
                thousands(finding.rows),
                match of(tally.rules(), &finding.rule) {
                    Some(rule) if unit(rule) == "days" => "days".to_owned(),
                    _ => percent(finding.rows as f64 / read.max(1) as f64),
                },
                finding.action
            ));
            lines.extend(
                finding
                    .sample
                    .first()
                    .map(|row| format!("  {:names$}  such as {row}", "")),
            );
        }
        lines.join("\n")
    }

    /// One line on what was done to the rows; `None` where nothing was.
    fn line(&self, tally: &Tally, read: u64, left: u64) -> Option<String> {
        type Rules<'a> = Vec<(u64, &'a str)>;
        let mut done: BTreeMap<u8, (&str, Rules<'_>)> = BTreeMap::new();
        for (rule, rows, _) in tally.broken() {
            let (order, verb) = match (rule.remedy, self.bad.action(rule)) {
                _ if self.bad.drops(rule) => (0, "dropped"),
                (Remedy::Row, Action::Untradable) => (1, "untradable"),
                (Remedy::Value, Action::Drop) => (2, "repaired"),
                (Remedy::Note, _) if rule.name == "hole" => (3, "missing in longer runs"),
                _ => continue,
            };
            done.entry(order)
                .or_insert((verb, Vec::new()))
                .1
                .push((rows, rule.name));
        }
        let mut parts: Vec<String> = Vec::new();
        for (order, (verb, mut rules)) in done {
            rules.sort_by_key(|(rows, _)| std::cmp::Reverse(*rows));
            let rules: Vec<String> = rules
                .iter()
                .map(|(rows, name)| format!("{name} {}", thousands(*rows)))
                .collect();
            let rules = rules.join(", ");
            parts.push(match order {
                0 => format!(
                    "{} of {} rows dropped ({}): {rules}",
                    thousands(read.saturating_sub(left)),
                    thousands(read),
                    percent(read.saturating_sub(left) as f64 / read.max(1) as f64)
                ),
                _ => format!("{verb}: {rules}"),
            });
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// A count with commas between thousands.
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share in percent, with two figures that count.
fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        small if small < 0.01 => "<0.01 %".to_owned(),
        small if small < 1.0 => format!("{small:.2} %"),
        percent => {
            let text = format!("{percent:.1}");
            format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
        }
    }
}

impl Serialize for OnBadRows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        match self.default {
            Some(default) if self.rules.is_empty() => return default.serialize(serializer),
            None if self.rules.is_empty() => return serializer.serialize_str(BY_RULE),
            _ => {}
        }
        let mut map = serializer.serialize_map(None)?;
        if let Some(default) = &self.default {
            map.serialize_entry("default", default)?;
        }
        for (rule, action) in &self.rules {
            map.serialize_entry(rule, action)?;
        }
        map.end()
    }
}

/// The word for each rule's own action or share.
const BY_RULE: &str = "by_rule";

impl<'de> Deserialize<'de> for OnBadRows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = OnBadRows;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("`by_rule`, `drop`, `keep`, `untradable`, `fail`, or a map from rules to these")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<OnBadRows, E> {
                Ok(OnBadRows {
                    default: match text {
                        BY_RULE => None,
                        text => Some(Action::deserialize(de::value::StrDeserializer::new(text))?),
                    },
                    rules: BTreeMap::new(),
                })
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<OnBadRows, A::Error> {
                let mut rules: BTreeMap<String, Action> =
                    BTreeMap::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(OnBadRows {
                    default: rules.remove("default"),
                    rules,
                })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for OnBadRows {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OnBadRows".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let action = generator.subschema_for::<Action>();
        schemars::json_schema!({
            "description": "by_rule, drop, keep, untradable or fail; or by rule: { default: drop, crossed_quote: keep }.",
            "anyOf": [{ "const": BY_RULE }, action.clone(), { "type": "object", "additionalProperties": action }]
        })
    }
}

impl Serialize for MaxDropped {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        match self.default {
            Some(default) if self.rules.is_empty() => return default.serialize(serializer),
            None if self.rules.is_empty() => return serializer.serialize_str(BY_RULE),
            _ => {}
        }
        let mut map = serializer.serialize_map(None)?;
        if let Some(default) = &self.default {
            map.serialize_entry("default", default)?;
        }
        for (rule, share) in &self.rules {
            map.serialize_entry(rule, share)?;
        }
        map.end()
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
                let mut rules: BTreeMap<String, f64> =
                    BTreeMap::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(MaxDropped {
                    default: rules.remove("default"),
                    rules,
                })
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
            "description": format!("A share of the rows, {MOST_DROPPED} unless the rule has its own; or by rule: {{ default: 0.05, no_quote: 0.9 }}."),
            "anyOf": [{ "const": BY_RULE }, share.clone(), { "type": "object", "additionalProperties": share }]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::Date;
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
        // By itself each rule has its own.
        assert_eq!(of("\"by_rule\"", "ask_below_intrinsic"), Action::Untradable);
        assert_eq!(of("\"by_rule\"", "zero_bid"), Action::Keep);
        assert_eq!(of("\"by_rule\"", "strike_jump"), Action::Fail);
        // What is only counted stays so; what is about no row is not dropped.
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

    #[test]
    fn loss_is_limited_by_rule() {
        let limit = |most: &str, rule: &str, rows: u64, read_rows: u64| {
            let most: MaxDropped = serde_json::from_str(most).unwrap();
            most.check(CHAIN).unwrap();
            let mut tally = Tally::new(CHAIN);
            tally.add(rule, Date(0), rows);
            Treatment {
                bad: &OnBadRows::default(),
                most: &most,
            }
            .limit(&tally, read_rows)
        };
        assert!(limit("\"by_rule\"", "duplicate_key", 50, 1000).is_ok());
        let err = limit("\"by_rule\"", "duplicate_key", 3369, 3712).unwrap_err();
        assert!(
            err.message
                .starts_with("the rule `duplicate_key` drops 3,369 of 3,712 rows (90.8 %), more than 5 % of them"),
            "{err}"
        );
        assert!(
            err.message.contains("\n  duplicate_key  3,369  90.8 %  dropped"),
            "{err}"
        );
        assert!(err.hint.unwrap().contains("`max_dropped: { duplicate_key: 0.91 }`"));
        // Rows without a quote are usual, and rows that stay are no loss.
        assert!(limit("\"by_rule\"", "no_quote", 400, 1000).is_ok());
        assert!(limit("\"by_rule\"", "no_quote", 501, 1000).is_err());
        assert!(limit("0.3", "no_quote", 400, 1000).is_err());
        assert!(limit(r#"{"default":0.0,"no_quote":0.4}"#, "no_quote", 400, 1000).is_ok());
        assert!(limit("\"by_rule\"", "ask_below_intrinsic", 999, 1000).is_ok());
        assert!(
            limit("\"by_rule\"", "duplicate_key", 99, 99).is_ok(),
            "a share of few rows says little"
        );
        let wrong = |text: &str| {
            serde_json::from_str::<MaxDropped>(text)
                .unwrap()
                .check(CHAIN)
                .unwrap_err()
        };
        assert_eq!(wrong("1.5").field, "max_dropped");
        assert_eq!(wrong(r#"{"no_quot":0.5}"#).hint.unwrap(), "did you mean `no_quote`?");
    }

    #[test]
    fn one_line_says_what_was_done() {
        let mut tally = Tally::new(CHAIN);
        tally.add("no_quote", Date(0), 562);
        tally.add("settled_in_the_morning", Date(0), 562);
        tally.add("ask_below_intrinsic", Date(0), 12);
        tally.add("zero_bid", Date(0), 36_566);
        let bad = OnBadRows::default();
        let most = MaxDropped::default();
        let treatment = Treatment { bad: &bad, most: &most };
        assert_eq!(
            treatment.line(&tally, 582_508, 581_946).unwrap(),
            "562 of 582,508 rows dropped (0.10 %): settled_in_the_morning 562, no_quote 562; untradable: ask_below_intrinsic 12"
        );
        assert_eq!(treatment.line(&Tally::new(CHAIN), 5, 5), None);
        assert_eq!(percent(0.00001), "<0.01 %");
    }
}
