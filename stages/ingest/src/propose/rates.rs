//! Interest rates, by maturities in names of columns: `r3m`, `1 Mo`, `DGS10`, `10Y`.

use super::column::{Column, plain, words};
use super::proposal::{Proposal, Question, scalar};
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

/// The words of the names of interest rates, in lower case: of a `rate`, of which a name has one, and
/// `beside` them.
const NAMES: &str = include_str!("rate_names.txt");

/// The maturities to choose from where a name states none: key and meaning.
const MATURITIES: [(&str, &str); 5] = [
    ("0.25", "3 months"),
    ("0", "overnight"),
    ("0.5", "6 months"),
    ("1", "1 year"),
    ("10", "10 years"),
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
        // One rate whose name states no maturity.
        let mut open = None;
        if found.is_empty()
            && self.symbol().is_none()
            && let Some(column) = numbers()
                .next()
                .filter(|column| numbers().count() == 1 && is_rate(column.name))
        {
            open = Some(*column);
            found.push((String::new(), column));
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
        for (maturity, column) in found.iter().filter(|_| open.is_none()) {
            proposal
                .columns
                .push((format!("\"{maturity}\""), column.name.to_owned(), "its name"));
        }
        if let Some(column) = open {
            let name = scalar(column.name);
            let line = |(years, meaning): (&str, &str)| (format!("\"{years}\": {name}"), meaning.to_owned());
            proposal.of_columns.push(Question {
                asked: format!("which maturity is `{}`?", column.name),
                notes: vec![format!(
                    "A price, such as an exchange rate, is read by `ingest/bars` with `close: {name}`"
                )],
                choices: MATURITIES.into_iter().map(line).collect(),
            });
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
                notes: Vec::new(),
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

/// The words of [`NAMES`] of a line.
fn known(line: &str) -> impl Iterator<Item = &'static str> {
    let words = NAMES
        .lines()
        .find_map(|words| words.strip_prefix(line)?.strip_prefix(": "));
    words.into_iter().flat_map(|words| words.split(' '))
}

/// Returns whether a text is known words alone, with one of a rate unless `has_one`.
fn is_made_of_rates(text: &str, has_one: bool) -> bool {
    let follows = |line: &str, has_one: bool| {
        let mut rests = known(line).filter_map(|word| text.strip_prefix(word));
        rests.any(|rest| is_made_of_rates(rest, has_one))
    };
    has_one && text.is_empty() || follows("rate", true) || follows("beside", has_one)
}

/// Returns whether a name is one of an interest rate without a maturity: `Interest Rate`, `tbill`, `EURIBOR`.
fn is_rate(name: &str) -> bool {
    is_made_of_rates(&plain(name), false)
}

/// Returns whether a name may be one of an interest rate or another rate that is no price, such as that of
/// unemployment.
pub(super) fn is_rate_word(name: &str) -> bool {
    let words = words(name);
    let has_rate = known("rate").any(|rate| words.iter().any(|word| word == rate));
    let is_exchange = words
        .iter()
        .any(|word| ["exchange", "fx", "forex", "currency"].contains(&&**word));
    is_rate(name) || maturity(name).is_some() || has_rate && !is_exchange
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
    (BEFORE.contains(&before) || is_made_of_rates(before, false)).then_some(())?;
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
            let follows = |(word, _): &(&str, u32)| {
                let is_after = |after: &str| AFTER.contains(&after) || is_made_of_rates(after, false);
                unit.strip_prefix(word).is_some_and(is_after)
            };
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
    use super::*;

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
            ("interest_rate_3m", "0.25"),
            ("3-Month Treasury Bill Rate", "0.25"),
            ("LIBOR 6M", "0.5"),
            ("tbill_3m", "0.25"),
            ("US Treasury Yield 10 year", "10"),
        ] {
            assert_eq!(maturity(name).as_deref(), Some(wanted), "{name}");
        }
        for name in ["close", "sma_10d", "mom_12m", "ret_1m", "iv_30", "x1", "open"] {
            assert_eq!(maturity(name), None, "{name}");
        }
    }

    #[test]
    fn names_of_rates() {
        for name in [
            "rate",
            "Rate (%)",
            "rates",
            "yield",
            "Yield",
            "interest",
            "interest_rate",
            "InterestRate",
            "int_rate",
            "interestrate",
            "risk_free",
            "risk-free rate",
            "rf",
            "RF",
            "libor",
            "EURIBOR",
            "sofr",
            "ESTR",
            "tbill",
            "T-Bill",
            "t_bill_rate",
            "treasury_yield",
            "US Treasury Bill",
            "Fed Funds Rate",
            "bond yield",
            "Zinssatz",
            "Euribor Zins",
            "deposit_rate",
            "discount rate",
            "利率",
            "ставка",
            "利回り",
        ] {
            assert!(is_rate(name), "{name}");
        }
        for name in [
            "price",
            "AAPL",
            "rating",
            "US",
            "cash",
            "bond",
            "Rateb",
            "corporate",
            "exchange_rate",
            "FX rate",
        ] {
            assert!(!is_rate(name), "{name}");
        }
        for (name, wanted) in [
            ("unemployment_rate", true),
            ("mortgage rate", true),
            ("3M", true),
            ("exchange_rate", false),
            ("fx_rate", false),
            ("FUND", false),
        ] {
            assert_eq!(is_rate_word(name), wanted, "{name}");
        }
    }
}
