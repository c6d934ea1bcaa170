//! Directories in Hive's style: `symbol=OLD/`, `date=2023-01-03/`, `year=2023/month=01/`.

use super::names::{is_symbol, is_usual};
use datasets::Date;

/// The values that the directories of a file's path state, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Partitions(Vec<(String, String)>);

/// The value of a partition without one.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The year, month and day that directories state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct DateParts {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
}

impl DateParts {
    /// The whole date, if it is stated.
    fn date(self) -> Option<Date> {
        Date::from_ymd(self.year?, self.month?, self.day?)
    }

    /// Returns whether the parts are those of a date.
    fn are_of(self, date: Date) -> bool {
        let (year, month, day) = date.ymd();
        self.year.is_none_or(|own| own == year)
            && self.month.is_none_or(|own| own == month)
            && self.day.is_none_or(|own| own == day)
    }

    /// Returns whether the parts are those of a date or, of an instant, whose day depends on a time zone, of
    /// a neighbouring day.
    pub(crate) fn may_be(self, date: Date, is_instant: bool) -> bool {
        let span = if is_instant { 1 } else { 0 };
        (-span..=span).any(|days| self.are_of(date.plus(days)))
    }
}

impl Partitions {
    /// The values that the directories of a path state.
    pub(crate) fn of(path: &str) -> Self {
        let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
        Self(folders.split('/').filter_map(partition).collect())
    }

    /// The key and the symbol, if a directory states it; empty for rows without one.
    pub(crate) fn symbol(&self) -> Option<(&str, &str)> {
        let mut pairs = self.0.iter();
        let pair = pairs.find(|(key, _)| is_usual("symbol", key))?;
        Some((&pair.0, &pair.1))
    }

    /// The exchange or country that a directory states.
    pub(crate) fn exchange(&self) -> Option<String> {
        const KEYS: [&str; 6] = ["exchange", "mic", "venue", "market", "country", "region"];
        let mut pairs = self.0.iter();
        let found = pairs.find(|(key, _)| KEYS.contains(&&*key.to_lowercase()));
        found.map(|(key, value)| format!("{key}={value}"))
    }

    /// The first key that is neither one of symbols nor of dates.
    pub(crate) fn other(&self) -> Option<&str> {
        let mut keys = self.0.iter().map(|(key, _)| key.as_str());
        keys.find(|key| !is_usual("symbol", key) && !is_usual("date", key) && !is_date_part(key))
    }

    /// The parts of a date that directories state; `None` without any.
    pub(crate) fn date(&self) -> Option<DateParts> {
        let mut parts = DateParts::default();
        for (key, value) in &self.0 {
            let key = key.to_lowercase();
            if let Some(date) = whole_date(value)
                && (is_usual("date", &key) || is_date_part(&key))
            {
                let (year, month, day) = date.ymd();
                return Some(DateParts {
                    year: Some(year),
                    month: Some(month),
                    day: Some(day),
                });
            }
            match key.as_str() {
                "year" | "yyyy" | "y" => parts.year = value.parse().ok(),
                "month" | "mm" | "m" => match value.split_once('-') {
                    Some((year, month)) => {
                        (parts.year, parts.month) = (year.parse().ok(), month.parse().ok());
                    }
                    None => parts.month = value.parse().ok(),
                },
                "day" | "dd" | "d" => parts.day = value.parse().ok(),
                _ => {}
            }
        }
        (parts != DateParts::default()).then_some(parts)
    }

    /// The columns that directories state and a header does not: the symbol and the date where the header has
    /// no usual name of one, and all other keys under their names.
    pub(crate) fn columns(&self, header: &[String]) -> Vec<(String, String)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let has = |ours: &str| {
            header.iter().any(|name| match ours {
                "symbol" => is_symbol(name),
                ours => is_usual(ours, name),
            })
        };
        let mut columns: Vec<(String, String)> = Vec::new();
        if let Some(date) = self.date().and_then(DateParts::date).filter(|_| !has("date")) {
            columns.push(("date".to_owned(), date.to_string()));
        }
        for (key, value) in &self.0 {
            let known = ["symbol", "date"].iter().any(|ours| is_usual(ours, key) && has(ours));
            let is_there = header.iter().chain(columns.iter().map(|(name, _)| name));
            let mut is_there = is_there.map(|name| name.trim().to_lowercase());
            if !known && !is_there.any(|name| name == key.to_lowercase()) {
                columns.push((key.clone(), value.clone()));
            }
        }
        columns
    }

    /// The values as text, a part of the keys of what depends on them; empty without any.
    pub(crate) fn text(&self) -> String {
        let pairs: Vec<String> = self.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
        pairs.join("/")
    }
}

/// The key and the value of a directory's name.
pub(super) fn partition(name: &str) -> Option<(String, String)> {
    let (key, value) = name.split_once('=')?;
    // `GC=F` and `EURUSD=X` are symbols.
    let is_key = key.len() > 1
        && key.chars().all(|c| c.is_alphanumeric() || "_-. ".contains(c))
        && !(value.len() == 1 && key.chars().all(|c| !c.is_lowercase()));
    let value = match value {
        NO_VALUE => String::new(),
        value => decoded(value),
    };
    is_key.then(|| (key.to_owned(), value.trim().to_owned()))
}

/// A text whose characters may be written as `%2F`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = || u8::from_str_radix(std::str::from_utf8(after.get(..2)?).ok()?, 16).ok();
        match (*first == b'%').then(hex).flatten() {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn is_date_part(key: &str) -> bool {
    let key = key.to_lowercase();
    ["year", "yyyy", "y", "month", "mm", "m", "day", "dd", "d", "dt", "ds"].contains(&key.as_str())
}

/// The date that a text begins with: `2023-01-03`, `20230103`, with or without a time after it.
pub(crate) fn whole_date(text: &str) -> Option<Date> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = match text.get(..10) {
        Some(iso) if iso.as_bytes()[4] == b'-' && iso.as_bytes()[7] == b'-' => {
            (text.get(..4)?, text.get(5..7)?, text.get(8..10)?)
        }
        _ if text.len() == 8 && digits(text) => (text.get(..4)?, text.get(4..6)?, text.get(6..8)?),
        _ => return None,
    };
    let date = Date::from_ymd(parts.0.parse().ok()?, parts.1.parse().ok()?, parts.2.parse().ok()?)?;
    (1800..2200).contains(&date.ymd().0).then_some(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_dates_of_directories() {
        let symbol = |path: &str| {
            let found = Partitions::of(path);
            found.symbol().map(|(key, symbol)| format!("{key} {symbol}"))
        };
        for (path, wanted) in [
            ("symbol=OLD/part-0.parquet", Some("symbol OLD")),
            ("x/Ticker=BRK%2FB/year=2023/month=01/0.parquet", Some("Ticker BRK/B")),
            ("code=000001/p.csv", Some("code 000001")),
            ("股票代码=600519/p.csv", Some("股票代码 600519")),
            ("symbol=50%25/p.csv", Some("symbol 50%")),
            ("symbol=A%ZZ/p.csv", Some("symbol A%ZZ")),
            ("symbol=__HIVE_DEFAULT_PARTITION__/p.csv", Some("symbol ")),
            ("GC=F/p.csv", None),
            ("year=2023/p.csv", None),
            ("symbol=OLD.parquet", None),
        ] {
            assert_eq!(symbol(path).as_deref(), wanted, "{path}");
        }
        let date = |path: &str| Partitions::of(path).date();
        let day = |text: &str| text.parse::<Date>().unwrap();
        for path in [
            "date=2023-01-03/p",
            "dt=20230103/p",
            "year=2023/month=01/day=3/p",
            "month=2023-01/day=03/p",
        ] {
            assert_eq!(date(path).unwrap().date(), Some(day("2023-01-03")), "{path}");
        }
        assert!(date("year=2023/p").unwrap().may_be(day("2023-12-31"), false));
        assert!(!date("year=2023/p").unwrap().may_be(day("2024-01-01"), false));
        assert!(date("year=2023/p").unwrap().may_be(day("2024-01-01"), true));
        assert_eq!(date("symbol=A/p"), None);
        assert_eq!(Partitions::of("company=A/p").other(), Some("company"));
        let header =
            |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let columns = |path: &str, names: &[&str]| {
            let columns = Partitions::of(path).columns(&header(names));
            columns
                .into_iter()
                .map(|(name, value)| format!("{name}:{value}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            columns("symbol=A/date=2023-01-03/p", &["close"]),
            "date:2023-01-03 symbol:A"
        );
        assert_eq!(columns("symbol=A/year=2023/p", &["Date", "ticker"]), "year:2023");
    }
}
