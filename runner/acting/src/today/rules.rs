//! New rows to which rules of data quality do what they did not do to the history.

use super::Followed;
use super::findings::Today;
use super::rows::{BySymbol, same};
use datasets::quality::{Example, Finding};
use serde::Deserialize as _;
use serde_json::Value;

/// The rules that give a price another value.
const REPAIRS: [&str; 2] = ["decimal_error", "underlying_beyond_limit"];

impl Followed<'_> {
    /// Rules that drop or repair a larger share of the new rows than of the history's.
    pub(super) fn quality(&self, old: &Value, new: &Value, today: &mut Today) {
        let findings = |meta: &Value| Vec::<Finding>::deserialize(&meta["quality"]).unwrap_or_default();
        let rows = |meta: &Value| meta["rows_read"].as_f64().unwrap_or(0.0).max(1.0);
        let before = findings(old);
        for finding in findings(new) {
            let usual = before.iter().find(|other| other.rule == finding.rule);
            let usual = usual.map_or(0.0, |other| other.rows as f64 / rows(old));
            let share = finding.rows as f64 / rows(new);
            if REPAIRS.contains(&finding.rule.as_str())
                && finding.action == "repaired"
                && finding.examples.contains(&self.at)
            {
                today.wrong.push((
                    format!(
                        "a row of `{}` on {} was given another value by the rule `{}`: an order would be \
                        priced at it",
                        self.id, self.at, finding.rule
                    ),
                    "correct the file: no order is priced at a value that it does not have",
                ));
            }
            let acts = ["dropped", "repaired", "untradable"].contains(&finding.action.as_str());
            if acts && share > 3.0 * usual + 0.01 {
                let such = finding
                    .sample
                    .first()
                    .map(|row| format!(", such as {row}"))
                    .unwrap_or_default();
                today.notes.push(format!(
                    "`{}`: {} {} of the new rows by the rule `{}`{such}: {}",
                    self.id, finding.rows, finding.action, finding.rule, finding.about
                ));
            }
        }
    }

    /// Rows of the decision's day that are there with another close, too, or that the history has and a rule
    /// drops.
    pub(super) fn contradicted(
        &self,
        new: &Value,
        rows: [&BySymbol; 2],
        close: Option<usize>,
        today: &mut Today,
    ) {
        let on_the_day = |rows: &BySymbol, symbol: &str| -> Option<Vec<f64>> {
            let mut rows = rows.get(symbol)?.iter();
            rows.find(|(time, _)| time.date == self.at).map(|(_, row)| row.clone())
        };
        let [history, given] = rows;
        let is_of_other_close = |row: &Example| {
            let kept = row
                .symbol
                .as_deref()
                .and_then(|symbol| on_the_day(given, symbol).or_else(|| on_the_day(history, symbol)));
            let kept = kept.zip(close).and_then(|(kept, close)| kept.get(close).copied());
            kept.zip(row.close).is_some_and(|(kept, close)| !same(kept, close))
        };
        let is_dropped = |row: &Example| {
            let has = |rows| {
                row.symbol
                    .as_deref()
                    .is_some_and(|symbol| on_the_day(rows, symbol).is_some())
            };
            has(history) && !has(given)
        };
        for finding in Vec::<Finding>::deserialize(&new["quality"]).unwrap_or_default() {
            let is_of_day = |row: &&Example| row.date == Some(self.at);
            let mut rows = finding.sample.iter().filter(is_of_day);
            let (row, why) = match finding.rule.as_str() {
                "duplicate_key" => (
                    rows.find(|row| is_of_other_close(row)),
                    "is there with another close, too: an order would be priced at one of two values",
                ),
                _ if finding.action == "dropped" && !self.replaces => (
                    rows.find(|row| is_dropped(row)),
                    "is dropped, and the history has another row of that day: an order would be priced at one \
                    of two values",
                ),
                _ => continue,
            };
            let is_unseen = finding.rule == "duplicate_key"
                && !self.replaces
                && finding.examples.contains(&self.at)
                && finding.rows > finding.sample.len() as u64;
            if let Some(row) = row {
                today.wrong.push((
                    format!("`{}`: the row {row} {why} (rule `{}`)", self.id, finding.rule),
                    "give one row of each symbol and day",
                ));
            } else if is_unseen {
                today.wrong.push((
                    format!(
                        "`{}`: {} of the new rows are of a symbol and day that have another one, some of {}",
                        self.id, finding.rows, self.at
                    ),
                    "give one row of each symbol and day",
                ));
            }
        }
    }
}
