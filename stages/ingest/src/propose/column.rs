//! A column of an unknown table, and what its name and values can be.

use super::dates::{DateColumn, FORMATS, dates};
use crate::clock::Clocks;
use crate::column_names;
pub(super) use crate::column_names::plain;
use crate::number;
use crate::value::is_missing;
use datasets::layout::SymbolFormat;
use std::collections::HashSet;

/// The rank from which a name is known by one of its words alone.
const BY_WORD: usize = 100;

/// The words of a name in lower case: parted by punctuation and at capitals after small letters.
pub fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && after_small {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        after_small = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A column with what its values look like.
pub(super) struct Column<'c> {
    pub name: &'c str,
    pub plain: String,
    words: Vec<String>,
    /// The values by row; empty where missing.
    pub values: &'c [String],
    /// The numbers by row, NaN where missing, if all values are numbers.
    pub numbers: Option<Vec<f64>>,
    pub dates: Option<DateColumn>,
    /// True if all values are times of day, or dates with a time other than midnight.
    pub has_times: bool,
    /// True if most values name a side of an option.
    pub is_side: bool,
    /// The values that name no side, in a column of sides.
    pub sides: Vec<String>,
    pub symbols: Option<SymbolFormat>,
    /// The number of different values.
    pub distinct: usize,
    /// The number of values.
    pub present: usize,
}

impl<'c> Column<'c> {
    pub(super) fn of(name: &'c str, values: &'c [String]) -> Self {
        let present: Vec<&str> = values
            .iter()
            .map(String::as_str)
            .filter(|text| !is_missing(text))
            .collect();
        let all = |test: &dyn Fn(&str) -> bool| !present.is_empty() && present.iter().all(|text| test(text));
        let sides = ["c", "p", "call", "put", "calls", "puts", "ce", "pe"];
        let is_side = |text: &str| sides.contains(&text.to_ascii_lowercase().as_str());
        let named = present.iter().filter(|text| is_side(text)).count();
        let formats = FORMATS.map(str::to_owned);
        let mut clocks = Clocks::new(&formats, "").ok();
        let mut time = |text: &str| clocks.as_mut()?.of_time(text, |hours| hours).ok()?;
        let times: Vec<Option<_>> = present.iter().map(|text| time(text)).collect();
        let is_infinite = |text: &str| text.parse().is_ok_and(f64::is_infinite);
        let loose = |text: &String| number::loose(text).or_else(|| is_infinite(text).then_some(f64::NAN));
        let numbers: Option<Vec<f64>> = values.iter().map(loose).collect();
        // A symbol may be called `INF`.
        let is_name =
            |numbers: &Vec<f64>| present.iter().all(|text| is_infinite(text)) && !numbers.is_empty();
        let numbers = numbers.filter(|numbers| !present.is_empty() && !is_name(numbers));
        let mut of_sides: Vec<String> = Vec::new();
        for text in present.iter().filter(|text| is_side(text)) {
            if !of_sides.iter().any(|side| side == text) {
                of_sides.push((*text).to_owned());
            }
        }
        Self {
            name,
            plain: plain(name),
            words: words(name),
            values,
            has_times: !times.is_empty()
                && times.iter().all(Option::is_some)
                && times.iter().flatten().any(|clock| clock.local > 0),
            dates: dates(values, present.len()),
            numbers,
            is_side: named * 2 > present.len(),
            sides: if named == present.len() { Vec::new() } else { of_sides },
            symbols: [SymbolFormat::Occ, SymbolFormat::Deribit]
                .into_iter()
                .find(|format| all(&|text| format.parse(text).is_some())),
            distinct: present.iter().collect::<HashSet<_>>().len(),
            present: present.len(),
        }
    }

    /// The rank of the column's name among the known names of our column `ours`: whole names first, then
    /// names of which one or several words in a row are known.
    pub(super) fn rank(&self, ours: &str) -> Option<usize> {
        let place = |is: &dyn Fn(&str) -> bool| column_names::of(ours).position(is);
        let count = self.words.len();
        let runs: Vec<String> = (0..count)
            .flat_map(|from| (from + 1..=count).map(move |to| (from, to)))
            .map(|(from, to)| self.words[from..to].concat())
            .collect();
        let is_word = |name: &str| name.chars().count() > 1 && runs.iter().any(|run| run == name);
        place(&|name| name == self.plain).or_else(|| Some(place(&is_word)? + BY_WORD))
    }

    /// Returns whether the whole name is known for our column `ours`.
    pub(super) fn is_called(&self, ours: &str) -> bool {
        self.rank(ours).is_some_and(|rank| rank < BY_WORD)
    }

    /// Returns whether the column's values can be those of our column `ours`.
    pub(super) fn suits(&self, ours: &str) -> bool {
        let numbers = || self.numbers.iter().flatten().filter(|number| !number.is_nan());
        match ours {
            "date" | "expiry" => self.dates.is_some(),
            "time" => self.has_times,
            "call" => self.is_side,
            "symbol" | "root" => self.is_label(),
            "volume" | "open_interest" | "bid_size" | "ask_size" => {
                (self.numbers.is_some() || self.present == 0) && numbers().all(|number| *number >= 0.0)
            }
            _ => self.numbers.is_some() || self.present == 0,
        }
    }

    /// Returns whether the values can be labels of rows: texts, or codes that repeat. Numbers that differ in
    /// nearly every row are measurements.
    pub(super) fn is_label(&self) -> bool {
        let repeats = self.distinct == 1 || self.distinct * 2 <= self.present;
        let is_code = |text: &String| text.is_empty() || text.chars().all(|c| c.is_ascii_digit());
        self.present > 0
            && self.symbols.is_none()
            && !self.is_side
            && !self.has_times
            && match (&self.numbers, &self.dates) {
                (Some(_), _) => repeats && self.values.iter().all(is_code) && !self.is_date_like(),
                (None, Some(_)) => false,
                (None, None) => true,
            }
    }

    /// Returns whether numbers are dates: all in the format `%Y%m%d` within a lifetime.
    fn is_date_like(&self) -> bool {
        (self.dates.as_ref()).is_some_and(|dates| (1950..2100).contains(&dates.range.0.ymd().0))
            && self.rank("symbol").is_none()
    }

    /// Returns whether the column numbers the rows or is an identifier: it says nothing of the market.
    pub(super) fn is_index(&self) -> bool {
        const NAMES: [&str; 11] = [
            "",
            "unnamed0",
            "unnamed01",
            "index",
            "levelzero",
            "level0",
            "no",
            "sno",
            "row",
            "id",
            "rownum",
        ];
        let Some(numbers) = &self.numbers else {
            return self.plain.is_empty() && self.dates.is_none();
        };
        let counts = numbers.len() > 2
            && numbers.windows(2).all(|pair| pair[1] - pair[0] == 1.0)
            && (0.0..2.0).contains(&numbers[0]);
        // Prices of a symbol `ID` or `NO` are no index.
        let is_whole = numbers.iter().all(|number| number.is_nan() || number.fract() == 0.0);
        (NAMES.contains(&&*self.plain) || self.name.starts_with("Unnamed:"))
            && (counts || is_whole && self.distinct == self.present)
            || counts && self.dates.is_none() && numbers.len() > 20
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn names_are_known_by_whole_words() {
        let values = texts(&["1.5", "2.5"]);
        let rank = |name: &str, ours: &str| Column::of(name, &values).rank(ours);
        assert_eq!(rank("<TICKVOL>", "symbol"), None);
        assert!(rank("Total Asset Value", "symbol").is_some());
        assert!(!Column::of("Total Asset Value", &values).suits("symbol"));
        assert!(rank("Best_Bid", "bid").is_some() && rank("BestBid", "bid").is_some());
        assert!(rank("Adj Close", "adjusted_close") < Some(BY_WORD));
        assert_eq!(words("impliedVolatility (%)"), ["implied", "volatility"]);
    }

    #[test]
    fn labels_repeat() {
        let label = |values: &[&str]| Column::of("code", &texts(values)).suits("symbol");
        assert!(label(&["A", "B", "A", "B"]) && label(&["10107", "10107", "12490", "12490"]));
        assert!(label(&["000001", "000001", "600519", "600519"]));
        assert!(!label(&["3512", "3544", "3547", "3601"]) && !label(&["1.5", "1.5", "2.5", "2.5"]));
    }
}
