//! The data-quality rules, and the table of their violations.
//!
//! A row may break several rules; it is counted under each. The treatment of a violation depends on the rule's
//! [`Remedy`] and on the [`Action`] that was configured for it.

use crate::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An implied volatility at or below this stands for "none" in vendors' tables.
pub const PLACEHOLDER_VOLATILITY: f64 = 0.02;
/// An implied volatility above this is the artefact of a price at its intrinsic value.
pub const HIGHEST_VOLATILITY: f64 = 5.0;
/// A close this many times the last one, or that fraction of it, is an unadjusted split, or a mistake.
pub const LARGE_JUMP: f64 = 1.5;
/// The relative tolerance, for rounding, by which a bar's high may be below its open or close.
pub const BAR_TOLERANCE: f64 = 1e-4;
/// A yield of zero is real only where the nearest maturity with another yield is at most this on that day (decimal).
pub const NEAR_ZERO_YIELD: f64 = 0.005;
/// The range of valid rates, decimal per year.
pub const RATE_RANGE: (f64, f64) = (-0.1, 0.5);

/// A data-quality rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name, as `on_bad_rows:` and the data-quality table use it.
    pub name: &'static str,
    /// The violation, and the remedy of `drop`.
    pub about: &'static str,
    /// The remedy of `drop`.
    pub remedy: Remedy,
}

/// The remedy for a violation where the action is `drop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The row is dropped.
    Row,
    /// The value is dropped or repaired; the row stays.
    Value,
    /// The row is dropped, with `keep` too: a table's key must be unique.
    Always,
    /// None: the violation is only reported.
    Note,
}

/// The action for data that breaks a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Drop invalid data: the row, or the value where the rest of the row is valid.
    #[default]
    Drop,
    /// Keep the data unchanged, and count it.
    Keep,
    /// Fail with an error.
    Fail,
}

/// The name of the rule for dates that cannot be written as dates of the calendar. Only tables that break it list it.
pub const DATE_OUT_OF_RANGE: &str = "date_out_of_range";

const OUT_OF_RANGE: Rule = rule(
    DATE_OUT_OF_RANGE,
    Remedy::Always,
    "a date that is not in the years 1800 to 2199",
);

const fn rule(name: &'static str, remedy: Remedy, about: &'static str) -> Rule {
    Rule { name, about, remedy }
}

/// The rules of option chains, in the order of their report.
pub const CHAIN: &[Rule] = &[
    rule(
        "non_trading_day",
        Remedy::Row,
        "a snapshot of a day on which the exchange is closed",
    ),
    rule(
        "missing_day",
        Remedy::Note,
        "trading days between the first and the last without any row (counted in days)",
    ),
    rule(
        "repeated_underlying",
        Remedy::Note,
        "a snapshot whose underlying has, to the last digit, the price of the one before: it may be stale",
    ),
    rule("expired", Remedy::Row, "the expiry is before the day of the snapshot"),
    rule(
        "settled_in_the_morning",
        Remedy::Row,
        "a class that settles on the opening prices, on the day of its expiry: there is nothing left to trade",
    ),
    rule(
        "weekend_expiry",
        Remedy::Value,
        "the expiry is a Saturday or Sunday; repaired to the Friday before",
    ),
    rule(
        "duplicate_key",
        Remedy::Always,
        "several rows for one contract and day; the one with most open interest stays, \
        then most volume, the narrowest spread, the lowest prices",
    ),
    rule("bad_strike", Remedy::Row, "the strike is not above 0"),
    rule(
        "single_precision",
        Remedy::Note,
        "a strike that the file holds in single precision, read as its shortest decimal",
    ),
    rule("negative_price", Remedy::Row, "bid, ask or last is below 0"),
    rule("null_close", Remedy::Row, "no close, in files that have nothing else"),
    rule("no_quote", Remedy::Row, "bid and ask are both 0 or missing"),
    rule("crossed_quote", Remedy::Row, "the bid is above the ask"),
    rule(
        "impossible_bid",
        Remedy::Row,
        "the bid is above the underlying for a call, above the strike for a put",
    ),
    rule(
        "zero_bid",
        Remedy::Note,
        "nobody bids; the contract can be bought and not sold, as is usual far from the money",
    ),
    rule(
        "negative_count",
        Remedy::Value,
        "volume or open interest is below 0; removed",
    ),
    rule(
        "placeholder_volatility",
        Remedy::Value,
        "an implied volatility of 0.02 or less, which stands for none; removed",
    ),
    rule(
        "implausible_volatility",
        Remedy::Value,
        "an implied volatility above 5 (500 %); removed",
    ),
    rule("missing_underlying", Remedy::Note, "no price of the underlying"),
    rule(
        "underlying_beyond_limit",
        Remedy::Value,
        "the underlying that parity gives moved more than the exchange allows in a day; bounded there",
    ),
    OUT_OF_RANGE,
];

/// The rules of bars.
pub const BARS: &[Rule] = &[
    rule(
        "non_trading_day",
        Remedy::Row,
        "a bar of a day on which the exchange is closed",
    ),
    rule(
        "missing_day",
        Remedy::Note,
        "trading days between a symbol's first and last without a bar (counted in days)",
    ),
    rule(
        "duplicate_key",
        Remedy::Always,
        "several bars for one symbol and day; the one with most volume stays, then the lowest prices",
    ),
    rule("null_close", Remedy::Row, "no close"),
    rule("nonpositive_price", Remedy::Row, "a price that is not above 0"),
    rule(
        "inconsistent_range",
        Remedy::Row,
        "open or close outside the range of low and high by more than 0.01 %",
    ),
    rule("negative_count", Remedy::Value, "volume below 0; removed"),
    rule("zero_volume", Remedy::Note, "a day without a trade"),
    rule(
        "large_jump",
        Remedy::Note,
        "a close more than 50 % above or a third below the last one: an unadjusted split, or news",
    ),
    OUT_OF_RANGE,
];

/// The rules of interest rates.
pub const RATES: &[Rule] = &[
    rule(
        "non_trading_day",
        Remedy::Row,
        "rates of a day on which the market is closed",
    ),
    rule(
        "duplicate_key",
        Remedy::Always,
        "several rates for one day and maturity; the lowest stays",
    ),
    rule(
        "zero_for_missing",
        Remedy::Row,
        "a yield of 0 while the nearest maturity yields more than 0.5 %: it stands for none",
    ),
    rule("implausible_rate", Remedy::Row, "a rate below -10 % or above 50 %"),
    OUT_OF_RANGE,
];

/// One line of the data-quality table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule's name.
    pub rule: String,
    /// The violation.
    pub about: String,
    /// Rows that break it (days, for `missing_day`).
    pub rows: u64,
    /// The number of days on which they occur.
    pub days: u64,
    /// The first few of these days.
    pub examples: Vec<Date>,
    /// The action taken: `dropped`, `repaired`, `kept`, or `noted` where there is nothing to do.
    pub action: String,
}

/// The number of days that a finding names.
const EXAMPLES: usize = 8;

/// Counts violations by rule and day.
#[derive(Clone, Debug)]
pub struct Tally {
    rules: &'static [Rule],
    counts: Vec<BTreeMap<Date, u64>>,
    /// Rows that break [`DATE_OUT_OF_RANGE`]: they have no date to count them under.
    out_of_range: u64,
}

impl Tally {
    /// Nothing counted yet.
    pub fn new(rules: &'static [Rule]) -> Self {
        Self {
            rules,
            counts: vec![BTreeMap::new(); rules.len()],
            out_of_range: 0,
        }
    }

    /// Counts a row that breaks [`DATE_OUT_OF_RANGE`].
    pub fn add_out_of_range(&mut self) {
        self.out_of_range += 1;
    }

    /// The rows that break [`DATE_OUT_OF_RANGE`].
    pub fn out_of_range(&self) -> u64 {
        self.out_of_range
    }

    /// Counts `rows` rows of `date` that break the rule. A name that is not one of the rules is not counted.
    pub fn add(&mut self, rule: &str, date: Date, rows: u64) {
        if let Some(i) = self.rules.iter().position(|r| r.name == rule) {
            *self.counts[i].entry(date).or_default() += rows;
        }
    }

    /// The rows that break each rule, and their days.
    fn lines(&self) -> impl Iterator<Item = (&'static Rule, u64, &BTreeMap<Date, u64>)> {
        self.rules.iter().zip(&self.counts).map(|(rule, days)| {
            let rows = match rule.name {
                DATE_OUT_OF_RANGE => self.out_of_range,
                _ => days.values().sum(),
            };
            (rule, rows, days)
        })
    }

    /// The rules broken, with how many rows and the first day, if they have one.
    pub fn broken(&self) -> impl Iterator<Item = (&'static Rule, u64, Option<Date>)> {
        self.lines()
            .filter(|(_, rows, _)| *rows > 0)
            .map(|(rule, rows, days)| (rule, rows, days.keys().next().copied()))
    }

    /// The data-quality table: a line for each rule, those that nothing breaks too, save [`DATE_OUT_OF_RANGE`].
    pub fn findings(&self, action: impl Fn(&Rule) -> Action) -> Vec<Finding> {
        self.lines()
            .filter(|(rule, rows, _)| *rows > 0 || rule.name != DATE_OUT_OF_RANGE)
            .map(|(rule, rows, days)| Finding {
                rule: rule.name.to_owned(),
                about: rule.about.to_owned(),
                rows,
                days: days.len() as u64,
                examples: days.keys().copied().take(EXAMPLES).collect(),
                action: done(rule.remedy, action(rule)).to_owned(),
            })
            .collect()
    }
}

/// The action taken, in a word.
fn done(remedy: Remedy, action: Action) -> &'static str {
    match (remedy, action) {
        (Remedy::Note, _) => "noted",
        (Remedy::Always, _) | (Remedy::Row, Action::Drop | Action::Fail) => "dropped",
        (Remedy::Value, Action::Drop | Action::Fail) => "repaired",
        (Remedy::Row | Remedy::Value, Action::Keep) => "kept",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_counts_by_rule_and_day() {
        let mut tally = Tally::new(CHAIN);
        let day = Date(18_000);
        tally.add("crossed_quote", day, 2);
        tally.add("crossed_quote", day.plus(1), 1);
        tally.add("zero_bid", day, 5);
        tally.add("no such rule", day, 5);
        let findings = tally.findings(|rule| {
            if rule.name == "crossed_quote" {
                Action::Keep
            } else {
                Action::Drop
            }
        });
        // Nothing is out of range.
        assert_eq!(findings.len(), CHAIN.len() - 1);
        let of = |name: &str| findings.iter().find(|f| f.rule == name).unwrap();
        assert_eq!((of("crossed_quote").rows, of("crossed_quote").days), (3, 2));
        assert_eq!(of("crossed_quote").action, "kept");
        assert_eq!(of("zero_bid").action, "noted");
        assert_eq!(of("no_quote").rows, 0);
        assert_eq!(tally.broken().count(), 2);
    }

    #[test]
    fn rows_without_a_date_are_counted() {
        for rules in [CHAIN, BARS, RATES] {
            let mut tally = Tally::new(rules);
            tally.add_out_of_range();
            tally.add_out_of_range();
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

    #[test]
    fn names_are_unique() {
        for rules in [CHAIN, BARS, RATES] {
            for (i, rule) in rules.iter().enumerate() {
                assert!(rules[..i].iter().all(|other| other.name != rule.name));
            }
        }
    }
}
