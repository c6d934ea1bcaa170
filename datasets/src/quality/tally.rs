//! Counts violations, and builds the data-quality table from the counts.

use super::example::Example;
use super::rules::{Action, DATE_OUT_OF_RANGE, Remedy, Rule, of};
use crate::Date;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One line of the data-quality table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule's name.
    pub rule: String,
    /// The violation.
    pub about: String,
    /// The number of rows that break the rule (days, for rules about days).
    pub rows: u64,
    /// The number of days on which violations occur.
    pub days: u64,
    /// The first few days with violations.
    pub examples: Vec<Date>,
    /// The first few rows that break the rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sample: Vec<Example>,
    /// The action taken: `dropped`, `repaired`, `untradable`, `kept`, or `noted` where there is nothing to
    /// do.
    pub action: String,
}

/// The number of days that a finding names.
const EXAMPLES: usize = 8;
/// The number of rows that a finding shows.
const SAMPLE: usize = 3;

/// Counts violations by rule and day.
#[derive(Clone, Debug)]
pub struct Tally {
    rules: &'static [Rule],
    found: Counted,
}

/// The violations in a table or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counted {
    /// The number of violations on each day, by rule.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    counts: BTreeMap<Cow<'static, str>, BTreeMap<Date, u64>>,
    /// The first few rows that break each rule, by rule.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    samples: BTreeMap<Cow<'static, str>, Vec<Example>>,
    /// The number of rows that break [`DATE_OUT_OF_RANGE`]: they have no date under which to count them.
    #[serde(skip_serializing_if = "is_none")]
    out_of_range: u64,
}

fn is_none(rows: &u64) -> bool {
    *rows == 0
}

impl Tally {
    /// Creates a tally of these rules, without any violations.
    pub fn new(rules: &'static [Rule]) -> Self {
        let found = Counted::default();
        Self { rules, found }
    }

    /// The violations counted so far.
    pub fn counted(self) -> Counted {
        self.found
    }

    /// Adds the violations of another part of the table. The first examples by symbol and date are kept, as
    /// if the whole table had been read in that order.
    pub fn merge(&mut self, part: Counted) {
        self.found.out_of_range += part.out_of_range;
        for (rule, days) in part.counts {
            for (date, rows) in days {
                self.add(&rule, date, rows);
            }
        }
        for (rule, rows) in part.samples {
            let Some(rule) = of(self.rules, &rule) else { continue };
            let samples = self.found.samples.entry(rule.name.into()).or_default();
            samples.extend(rows);
            samples.sort_by(|a, b| (&a.symbol, a.date).cmp(&(&b.symbol, b.date)));
            samples.truncate(SAMPLE);
        }
    }

    /// The rules that are counted.
    pub fn rules(&self) -> &'static [Rule] {
        self.rules
    }

    /// Counts rows that break [`DATE_OUT_OF_RANGE`].
    pub fn add_out_of_range(&mut self, rows: u64) {
        self.found.out_of_range += rows;
    }

    /// The number of rows that break [`DATE_OUT_OF_RANGE`].
    pub fn out_of_range(&self) -> u64 {
        self.found.out_of_range
    }

    /// Counts `rows` rows of `date` that break the rule. A name that is not one of the rules is not counted.
    pub fn add(&mut self, rule: &str, date: Date, rows: u64) {
        if let Some(rule) = of(self.rules, rule) {
            let days = self.found.counts.entry(rule.name.into()).or_default();
            *days.entry(date).or_default() += rows;
        }
    }

    /// Counts one row as [`Tally::add`] does, and keeps the first few rows as examples.
    pub fn add_row(&mut self, rule: &str, date: Date, row: impl FnOnce() -> Example) {
        self.add_rows(rule, date, 1, row);
    }

    /// Counts rows as [`Tally::add`] does, with `row` as an example of them.
    pub fn add_rows(&mut self, rule: &str, date: Date, rows: u64, row: impl FnOnce() -> Example) {
        let Some(rule) = of(self.rules, rule) else { return };
        self.add(rule.name, date, rows);
        let samples = self.found.samples.entry(rule.name.into()).or_default();
        if samples.len() < SAMPLE {
            samples.push(row());
        }
    }

    /// The number of rows that break a rule.
    pub fn count(&self, rule: &str) -> u64 {
        let days = self.found.counts.get(rule);
        days.map_or(0, |days| days.values().sum())
    }

    /// The rules, the number of rows that break each, and the days on which they do.
    fn lines(&self) -> impl Iterator<Item = (&'static Rule, u64, Option<&BTreeMap<Date, u64>>)> {
        self.rules.iter().map(|rule| {
            let days = self.found.counts.get(rule.name);
            let rows = match rule.name {
                DATE_OUT_OF_RANGE => self.found.out_of_range,
                _ => days.map_or(0, |days| days.values().sum()),
            };
            (rule, rows, days)
        })
    }

    /// The broken rules, each with the number of rows and the first day, if the rows have dates.
    pub fn broken(&self) -> impl Iterator<Item = (&'static Rule, u64, Option<Date>)> {
        self.lines()
            .filter(|(_, rows, _)| *rows > 0)
            .map(|(rule, rows, days)| (rule, rows, days.and_then(|days| days.keys().next().copied())))
    }

    /// The example rows of a rule.
    pub fn sample(&self, rule: &str) -> &[Example] {
        self.found.samples.get(rule).map_or(&[], Vec::as_slice)
    }

    /// The data-quality table: a line for each rule, including rules that nothing breaks, except
    /// [`DATE_OUT_OF_RANGE`].
    pub fn findings(&self, action: impl Fn(&Rule) -> Action) -> Vec<Finding> {
        self.lines()
            .filter(|(rule, rows, _)| *rows > 0 || rule.name != DATE_OUT_OF_RANGE)
            .map(|(rule, rows, days)| Finding {
                rule: rule.name.to_owned(),
                about: rule.about.to_owned(),
                rows,
                days: days.map_or(0, BTreeMap::len) as u64,
                examples: days
                    .iter()
                    .flat_map(|days| days.keys().copied())
                    .take(EXAMPLES)
                    .collect(),
                sample: self.sample(rule.name).to_vec(),
                action: done(rule.remedy, action(rule)).to_owned(),
            })
            .collect()
    }
}

/// The action taken, in a word.
fn done(remedy: Remedy, action: Action) -> &'static str {
    match (remedy, action) {
        (Remedy::Always, _) | (Remedy::Row, Action::Drop | Action::Fail) => "dropped",
        (Remedy::Row, Action::Untradable) => "untradable",
        (Remedy::Value, Action::Drop | Action::Fail) => "repaired",
        (Remedy::Note, _) => "noted",
        (Remedy::Row, Action::Keep) => "kept",
        (Remedy::Value, Action::Keep | Action::Untradable) => "kept",
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BARS, CHAIN, RATES};
    use super::*;

    #[test]
    fn a_tally_counts_by_rule_and_day() {
        let mut tally = Tally::new(CHAIN);
        let day = Date(18_000);
        tally.add("crossed_quote", day, 2);
        tally.add("crossed_quote", day.plus(1), 1);
        tally.add("zero_bid", day, 5);
        tally.add("no such rule", day, 5);
        let findings = tally.findings(|rule| match rule.name {
            "crossed_quote" => Action::Keep,
            _ => rule.action,
        });
        // Nothing is out of range.
        assert_eq!(findings.len(), CHAIN.len() - 1);
        let of = |name: &str| findings.iter().find(|f| f.rule == name).unwrap();
        assert_eq!((of("crossed_quote").rows, of("crossed_quote").days), (3, 2));
        assert_eq!(of("crossed_quote").action, "kept");
        assert_eq!(of("zero_bid").action, "kept");
        assert_eq!(of("ask_below_intrinsic").action, "untradable");
        assert_eq!(of("hole").action, "noted");
        assert_eq!(of("no_quote").rows, 0);
        assert_eq!(tally.broken().count(), 2);
    }

    #[test]
    fn the_first_rows_are_examples() {
        let mut tally = Tally::new(CHAIN);
        for strike in 0..9 {
            tally.add_row("crossed_quote", Date(0), || Example {
                strike: Example::number(f64::from(strike)),
                bid: Example::number(f64::NAN),
                ..Example::default()
            });
        }
        let sample = tally.sample("crossed_quote");
        assert_eq!(sample.len(), SAMPLE);
        assert_eq!(sample[1].to_string(), "strike 1");
        assert_eq!(
            tally.findings(|rule| rule.action)
                [tally.rules().iter().position(|r| r.name == "crossed_quote").unwrap()]
            .rows,
            9
        );
        assert!(tally.sample("no such rule").is_empty());
    }

    #[test]
    fn parts_are_merged_as_one_table() {
        let row = |symbol: &str, date: i32, strike: f64| Example {
            symbol: Some(symbol.to_owned()),
            date: Some(Date(date)),
            strike: Some(strike),
            ..Example::default()
        };
        let rows: Vec<Example> = ["A", "B"]
            .iter()
            .flat_map(|symbol| {
                (0..2).flat_map(move |date| (0..2).map(move |i| row(symbol, date, f64::from(i))))
            })
            .collect();
        let count = |tally: &mut Tally, row: &Example| {
            tally.add_row("crossed_quote", row.date.unwrap(), || row.clone());
        };
        let mut whole = Tally::new(CHAIN);
        rows.iter().for_each(|row| count(&mut whole, row));
        // Day by day, and the last first.
        let mut merged = Tally::new(CHAIN);
        for date in [Date(1), Date(0)] {
            let mut part = Tally::new(CHAIN);
            rows.iter()
                .filter(|row| row.date == Some(date))
                .for_each(|row| count(&mut part, row));
            merged.merge(part.counted());
        }
        assert_eq!(merged.clone().counted(), whole.clone().counted());
        assert_eq!(
            merged.sample("crossed_quote"),
            [row("A", 0, 0.0), row("A", 0, 1.0), row("A", 1, 0.0)]
        );
    }

    #[test]
    fn rows_without_a_date_are_counted() {
        for rules in [CHAIN, BARS, RATES] {
            let mut tally = Tally::new(rules);
            tally.add_out_of_range(2);
            let findings = tally.findings(|_| Action::Keep);
            let found = findings.iter().find(|f| f.rule == DATE_OUT_OF_RANGE).unwrap();
            assert_eq!((found.rows, found.days, &*found.action), (2, 0, "dropped"));
            let broken: Vec<_> = tally
                .broken()
                .map(|(rule, rows, first)| (rule.name, rows, first))
                .collect();
            assert_eq!(broken, [(DATE_OUT_OF_RANGE, 2, None)]);
        }
    }
}
