//! The configured treatment of a table's rows: failures, limits on dropped rows, and the report.

use super::{MaxDropped, OnBadRows, unit};
use datasets::quality::{Action, Remedy, Tally, of};
use stages_core::{Context, StageError};
use std::collections::BTreeMap;

/// The number of rows below which a table may lose any share of them, since a share of a few rows says
/// little. The loss is reported all the same.
const FEW_ROWS: u64 = 100;

/// The greatest share of lost rows that is offered to be accepted.
const MOST_OFFERED: f64 = 0.5;

/// The rules that are broken in the best of data, and say nothing of one row.
const STATISTICS: [&str; 5] = [
    "zero_bid",
    "zero_volume",
    "missing_day",
    "missing_underlying",
    "single_precision",
];

/// The treatment of a table's rows, as the stage is configured.
pub struct Treatment<'a> {
    /// The action for each rule.
    pub bad: &'a OnBadRows,
    /// The share of rows that each rule may drop.
    pub most: &'a MaxDropped,
}

impl Treatment<'_> {
    /// Fails if a rule demands it or drops too many rows, and reports every rule that is broken, with the
    /// first example. `read` and `left` are the numbers of rows before and after the rules.
    pub fn apply(&self, context: &Context, tally: &Tally, read: u64, left: u64) -> Result<(), StageError> {
        self.bad.enforce(tally)?;
        self.limit(tally, read)?;
        self.report(context, tally, read, left);
        Ok(())
    }

    /// Reports every rule that is broken, with the first example.
    pub fn report(&self, context: &Context, tally: &Tally, read: u64, left: u64) {
        let done = self.line(tally, read, left);
        let lines: Vec<String> = done.into_iter().chain(self.lines(tally)).collect();
        if !lines.is_empty() {
            context.warn(lines.join("\n         "), None);
        }
    }

    /// A line for each broken rule, and one for all that are statistics alone.
    fn lines(&self, tally: &Tally) -> Vec<String> {
        let (mut lines, mut counted) = (Vec::new(), Vec::new());
        for finding in tally.findings(|rule| self.bad.action(rule)) {
            let rule = of(tally.rules(), &finding.rule).filter(|_| finding.rows > 0);
            let Some(rule) = rule else { continue };
            let count = thousands(finding.rows);
            if STATISTICS.contains(&rule.name) {
                counted.push(format!("{} {count}", rule.name));
                continue;
            }
            let example = match (finding.sample.first(), finding.examples.first()) {
                (Some(row), _) => format!(", the first {row}"),
                (None, Some(day)) => format!(", the first on {day}"),
                (None, None) => String::new(),
            };
            lines.push(format!(
                "{}: {count} {} {}{example}",
                rule.name,
                match finding.rows {
                    1 => unit(rule).trim_end_matches('s'),
                    _ => unit(rule),
                },
                finding.action
            ));
        }
        if !counted.is_empty() {
            lines.push(format!("counted: {}", counted.join(", ")));
        }
        lines
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
        // To lose most of a file is no choice to offer: it is read wrongly.
        let accept = match (share(rows) * 100.0).ceil() / 100.0 {
            share if share > MOST_OFFERED => "the file is read as what it is not".to_owned(),
            share => format!("`max_dropped: {{ {}: {share} }}` accepts the loss", rule.name),
        };
        Err(error.hint(match (rule.name, rule.remedy) {
            ("duplicate_key", _) => format!(
                "several rows have one key: is the column of the symbol (or, of options, the class) named \
                in `layout: {{ columns: … }}`? {accept}"
            ),
            (_, Remedy::Always) => accept,
            ("implausible_rate", _) => format!(
                "where 5.25 is 5.25 %, `percent` of the layout is true, and false where it is 0.0525; \
                {accept}"
            ),
            ("non_trading_day", _) => format!("is it the right `calendar:`? {accept}"),
            (name, _) => format!("{accept}; `on_bad_rows: {{ {name}: keep }}` keeps the rows"),
        }))
    }

    /// A text table of the broken rules.
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

    /// One line on what was done to the rows; `None` if nothing was done.
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
fn thousands(count: u64) -> String {
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

/// A share as a percentage with two significant figures.
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

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::Date;
    use datasets::quality::CHAIN;

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
            err.message.starts_with(
                "the rule `duplicate_key` drops 3,369 of 3,712 rows (90.8 %), more than 5 % of them"
            ),
            "{err}"
        );
        assert!(
            err.message.contains("\n  duplicate_key  3,369  90.8 %  dropped"),
            "{err}"
        );
        assert!(!err.hint.unwrap().contains("max_dropped"));
        let err = limit("\"by_rule\"", "duplicate_key", 369, 3712).unwrap_err();
        assert!(err.hint.unwrap().contains("`max_dropped: { duplicate_key: 0.1 }`"));
        // Rows without a quote are usual, and kept rows are no loss.
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
        let treatment = Treatment {
            bad: &bad,
            most: &most,
        };
        assert_eq!(
            treatment.line(&tally, 582_508, 581_946).unwrap(),
            "562 of 582,508 rows dropped (0.10 %): settled_in_the_morning 562, no_quote 562; untradable: \
            ask_below_intrinsic 12"
        );
        assert_eq!(
            treatment.lines(&tally),
            [
                "settled_in_the_morning: 562 rows dropped, the first on 1970-01-01",
                "no_quote: 562 rows dropped, the first on 1970-01-01",
                "ask_below_intrinsic: 12 rows untradable, the first on 1970-01-01",
                "counted: zero_bid 36,566",
            ]
        );
        assert_eq!(treatment.line(&Tally::new(CHAIN), 5, 5), None);
        assert_eq!(percent(0.00001), "<0.01 %");
    }
}
