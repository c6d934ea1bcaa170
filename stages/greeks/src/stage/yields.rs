//! Continuous yields of underlyings stated in a configuration: one for all, by symbol, and by date.

use arrow_array::RecordBatch;
use datasets::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::dataset::PartitionKey;
use stages_core::{ConfigProblem, StageError, table};
use std::collections::BTreeMap;

/// A continuous annual rate of an underlying, decimal: one number for all, or by symbol a number, or the
/// values with the days from which they hold:
/// `{ SPX: { 2020-01-01: 0.018, 2021-01-01: 0.014 }, NDX: 0.007 }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected an annual rate such as 0.018, or by symbol a rate or rates by date, such as \
        { SPX: { 2020-01-01: 0.018 } }"
)]
pub enum Yield {
    /// Of all underlyings.
    All(f64),
    /// By symbol; each symbol of the chain must be there.
    BySymbol(BTreeMap<String, SymbolYield>),
}

/// The rate of one underlying.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected an annual rate such as 0.018, or rates by the dates from which they hold"
)]
pub enum SymbolYield {
    /// On all days.
    Always(f64),
    /// By the day from which it holds.
    From(BTreeMap<Date, f64>),
}

impl Default for Yield {
    fn default() -> Self {
        Self::All(0.0)
    }
}

impl Yield {
    /// Returns whether the yield is the default, 0 for all underlyings.
    pub(super) fn is_unset(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the numbers of the setting `name`.
    pub(super) fn check(&self, name: &str) -> Result<(), ConfigProblem> {
        let problem = |what: String| ConfigProblem::new(name, what).hint("give a decimal: 0.02 is 2 %");
        let values: Vec<f64> = match self {
            Self::All(value) => vec![*value],
            Self::BySymbol(symbols) => symbols.values().flat_map(SymbolYield::values).collect(),
        };
        match values.iter().find(|value| !(-10.0..=10.0).contains(*value)) {
            Some(bad) => Err(problem(format!("{bad} is not an annual rate"))),
            None if values.is_empty() => Err(problem("it names no rate".to_owned())),
            None => Ok(()),
        }
    }

    /// The part of the setting that matters to a partition, in its simplest form, so that the partition's
    /// memo key holds nothing else.
    pub(super) fn of_partition(&self, key: &PartitionKey) -> Self {
        let (Self::BySymbol(symbols), Ok(symbol)) = (self, key.symbol()) else {
            return self.clone();
        };
        let own = symbols.get(symbol).map(|own| match own {
            SymbolYield::From(values) => {
                let first = values.range(..=key.range.from).next_back();
                let rest = values.range(key.range.from..=key.range.to);
                let used: BTreeMap<Date, f64> = first
                    .into_iter()
                    .chain(rest)
                    .map(|(day, value)| (*day, *value))
                    .collect();
                match (first, used.len()) {
                    (Some((_, value)), 1) => SymbolYield::Always(*value),
                    _ => SymbolYield::From(used),
                }
            }
            SymbolYield::Always(_) => own.clone(),
        });
        match own {
            Some(SymbolYield::Always(value)) => Self::All(value),
            own => Self::BySymbol(own.map(|own| (symbol.to_owned(), own)).into_iter().collect()),
        }
    }

    /// The rate of each row of a table with the columns `symbol` and `date`; `name` is the setting's name for
    /// messages.
    ///
    /// # Errors
    /// When a symbol has no rate, or none on one of its days.
    pub(super) fn of_rows(&self, name: &str, batch: &RecordBatch) -> Result<Vec<f64>, StageError> {
        let symbols = match self {
            Self::All(value) => return Ok(vec![*value; batch.num_rows()]),
            Self::BySymbol(symbols) => symbols,
        };
        let dates = table::dates(batch, "date")?;
        let texts = table::texts(batch, "symbol")?;
        let mut rows = Vec::with_capacity(batch.num_rows());
        for run in table::runs(0..batch.num_rows(), |a, b| {
            dates[a] == dates[b] && texts.value(a) == texts.value(b)
        }) {
            let (symbol, date) = (texts.value(run.start), dates[run.start]);
            let own = symbols.get(symbol);
            let value = own.and_then(|own| own.on(date)).ok_or_else(|| {
                let since = own.map(|_| format!(" on {date}")).unwrap_or_default();
                StageError::new(format!("`{name}` has no rate of {symbol}{since}")).hint(format!(
                    "give one, such as `{name}: {{ {symbol}: {{ {date}: 0.018 }} }}`; one without a yield \
                    has 0"
                ))
            })?;
            rows.resize(rows.len() + run.len(), value);
        }
        Ok(rows)
    }
}

impl SymbolYield {
    fn values(&self) -> Vec<f64> {
        match self {
            Self::Always(value) => vec![*value],
            Self::From(values) => values.values().copied().collect(),
        }
    }

    fn on(&self, date: Date) -> Option<f64> {
        match self {
            Self::Always(value) => Some(*value),
            Self::From(values) => values.range(..=date).next_back().map(|(_, value)| *value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::DateRange;
    use serde_json::json;

    fn day(text: &str) -> Date {
        text.parse().unwrap()
    }

    fn parsed(value: serde_json::Value) -> Yield {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_number_is_written_as_a_number() {
        assert_eq!(serde_json::to_value(parsed(json!(0.018))).unwrap(), json!(0.018));
        assert_eq!(serde_json::to_string(&Yield::default()).unwrap(), "0.0");
        let err = serde_json::from_value::<Yield>(json!("much")).unwrap_err().to_string();
        assert!(err.contains("0.018"), "{err}");
        assert!(
            parsed(json!({ "SPX": { "2020-01-01": 18.0 } }))
                .check("dividend_yield")
                .is_err()
        );
        assert!(parsed(json!({})).check("dividend_yield").is_err());
    }

    #[test]
    fn a_partition_s_part_is_what_it_can_read() {
        let all = parsed(json!({
            "SPX": { "2020-01-01": 0.018, "2020-06-15": 0.016, "2021-01-01": 0.014 }, "NDX": 0.007
        }));
        let part = |symbol: &str, from: &str, to: &str| {
            let range = DateRange {
                from: day(from),
                to: day(to),
            };
            all.of_partition(&PartitionKey::new(symbol, range))
        };
        assert_eq!(part("NDX", "2020-01-01", "2020-01-31"), Yield::All(0.007));
        assert_eq!(part("SPX", "2020-02-01", "2020-02-29"), Yield::All(0.018));
        assert_eq!(part("SPX", "2021-01-01", "2021-01-31"), Yield::All(0.014));
        let two = json!({ "SPX": { "2020-01-01": 0.018, "2020-06-15": 0.016 } });
        assert_eq!(part("SPX", "2020-06-01", "2020-06-30"), parsed(two));
        // A part of the partition has no rate, so the dates are needed for the message.
        let late = json!({ "SPX": { "2020-01-01": 0.018 } });
        assert_eq!(part("SPX", "2019-12-30", "2020-01-10"), parsed(late));
        assert_eq!(part("VIX", "2020-01-01", "2020-01-31"), parsed(json!({})));
    }
}
