//! Interest rates, by maturities in names of columns: `r3m`, `1 Mo`, `DGS10`, `10Y`.

use super::column::{Column, plain};
use super::proposal::{Proposal, Question};
use super::unknown::{Taken, Unknown};
use datasets::layout::Table;

/// The words before a maturity.
const BEFORE: &[&str] = &[
    "", "r", "y", "rate", "yield", "zero", "spot", "par", "cmt", "bc", "dgs", "gs", "libor", "euribor",
    "usd", "eur", "gbp", "us", "ust", "treasury", "tbill", "tb", "dtb", "swap", "ois", "t", "m",
];

/// The words after a maturity's unit.
const AFTER: &[&str] = &[
    "", "s", "rate", "yield", "zero", "par", "cmt", "tbill", "treasury", "swap", "coupon",
];

/// The names of overnight rates.
const OVERNIGHT: &[&str] = &[
    "dff",
    "sofr",
    "effr",
    "fedfunds",
    "estr",
    "eonia",
    "sonia",
    "overnight",
    "on",
    "overnightrate",
    "saron",
];

impl<'t, 'c> Unknown<'t, 'c> {
    /// Interest rates: maturities as columns.
    pub(super) fn rates(&self) -> Option<Proposal> {
        let date = self.date()?;
        let numbers = || {
            self.columns
                .iter()
                .filter(|column| column.numbers.is_some() && column.name != date.name)
        };
        let mut found: Vec<(String, &'t Column<'c>)> = Vec::new();
        for column in numbers() {
            if let Some(maturity) =
                maturity(column.name).filter(|maturity| !found.iter().any(|(other, _)| other == maturity))
            {
                found.push((maturity, column));
            }
        }
        let values = || found.iter().flat_map(|(_, column)| column.numbers.iter().flatten());
        let greatest = values()
            .filter(|value| !value.is_nan())
            .fold(0.0, |most: f64, value| most.max(value.abs()));
        if found.is_empty() || found.len() * 2 <= numbers().count() || greatest > 60.0 {
            return None;
        }
        let mut taken = Taken::new();
        taken.insert("date", (date, "its name"));
        let mut proposal = self.of_layout(Table::Rates, &["date"], &taken);
        for (maturity, column) in &found {
            proposal
                .columns
                .push((format!("\"{maturity}\""), column.name.to_owned(), "its name"));
        }
        proposal.missing.clear();
        if greatest < 0.3 {
            let example = values()
                .copied()
                .find(|value| *value != 0.0 && !value.is_nan())
                .unwrap_or(greatest);
            let meaning = |percent: f64| format!("{example} is {} % a year", short(percent));
            proposal.questions.push(Question {
                asked: "percent or decimal?".to_owned(),
                choices: vec![
                    ("percent: false".to_owned(), meaning(example * 100.0)),
                    ("percent: true".to_owned(), meaning(example)),
                ],
            });
        } else {
            proposal.layout.push("percent: true".to_owned());
        }
        Some(proposal)
    }
}

/// The maturity that a name states, as the key of a column of rates in years.
fn maturity(name: &str) -> Option<String> {
    let plain = plain(name);
    if OVERNIGHT.contains(&&*plain) {
        return Some("0".to_owned());
    }
    let from = plain.find(|c: char| c.is_ascii_digit())?;
    let (before, rest) = plain.split_at(from);
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, unit) = rest.split_at(digits);
    let count: u32 = digits.parse().ok().filter(|count| (1..=100).contains(count))?;
    BEFORE.contains(&before).then_some(())?;
    let months = match unit {
        "" if matches!(before, "dtb" | "tb") => count,
        "" if matches!(before, "dgs" | "gs") => count * 12,
        _ => {
            let units = [
                ("months", 1),
                ("month", 1),
                ("mo", 1),
                ("ms", 1),
                ("m", 1),
                ("years", 12),
                ("year", 12),
                ("yr", 12),
                ("y", 12),
            ];
            let weeks = [("weeks", 7), ("week", 7), ("wk", 7), ("w", 7)];
            let follows =
                |(word, _): &(&str, u32)| unit.strip_prefix(word).is_some_and(|after| AFTER.contains(&after));
            if let Some((_, days)) = weeks.iter().find(|entry| follows(entry)) {
                return Some(format!("{}/365", count * days));
            }
            count * units.iter().find(|entry| follows(entry))?.1
        }
    };
    (months <= 1200).then(|| match months {
        3 => "0.25".to_owned(),
        6 => "0.5".to_owned(),
        months if months % 12 == 0 => (months / 12).to_string(),
        months => format!("{months}/12"),
    })
}

/// A number without the noise of binary fractions.
fn short(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::maturity;

    #[test]
    fn names_state_maturities() {
        for (name, wanted) in [
            ("r3m", "0.25"),
            ("r1y", "1"),
            ("1M", "1/12"),
            ("DGS10", "10"),
            ("DGS6MO", "0.5"),
            ("10Y", "10"),
            ("2 Yr", "2"),
            ("1 Mo", "1/12"),
            ("BC_30YEAR", "30"),
            ("TB3MS", "0.25"),
            ("DTB3", "0.25"),
            ("4 WK", "28/365"),
            ("SOFR", "0"),
            ("yield_5y", "5"),
        ] {
            assert_eq!(maturity(name).as_deref(), Some(wanted), "{name}");
        }
        for name in ["close", "sma_10d", "mom_12m", "ret_1m", "iv_30", "x1", "open"] {
            assert_eq!(maturity(name), None, "{name}");
        }
    }
}
