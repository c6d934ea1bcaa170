//! A column of an unknown table, and what its name and values can be.

use crate::clock::Clocks;
use crate::column_names::NAMES;
pub(super) use crate::column_names::plain;
use crate::value::{Dates, is_missing};
use datasets::Date;
use datasets::layout::SymbolFormat;
use std::collections::HashSet;

/// The date formats that are tried, in order.
const FORMATS: [&str; 24] = [
    "%Y-%m-%d",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%Y%m%d",
    "%d.%m.%Y",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%d %b %Y",
    "%d %B %Y",
    "%d.%m.%y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%b-%d-%Y",
    "%Y年%m月%d日",
    "epoch_ns",
    "epoch_us",
    "epoch_ms",
    "epoch_s",
];

/// Formats that differ in the order of day and month.
const ORDERS: [(&str, &str); 3] = [
    ("%m/%d/%Y", "%d/%m/%Y"),
    ("%m-%d-%Y", "%d-%m-%Y"),
    ("%m/%d/%y", "%d/%m/%y"),
];

/// The most texts that are no date in a column of dates, such as the first cell of a line of totals.
const FOOTERS: usize = 2;

/// The rank from which a name is known by one of its words alone.
const BY_WORD: usize = 100;

/// The words of a name in lower case: parted by punctuation and at capitals after small letters.
pub(super) fn words(name: &str) -> Vec<String> {
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

/// A number in any usual notation, to judge magnitudes by; NaN where it is missing.
pub(super) fn loose_number(text: &str) -> Option<f64> {
    let text = text.trim();
    if is_missing(text) {
        return Some(f64::NAN);
    }
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some(number);
    }
    let is_around = |c: char| c.is_whitespace() || "$€£¥%+'".contains(c) || c == '\u{a0}' || c == '\u{202f}';
    let (inner, sign) = match text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        Some(inner) => (inner, -1.0),
        None => (text, 1.0),
    };
    let kept: String = inner.chars().filter(|c| !is_around(*c)).collect();
    let (digits, times) = match kept.chars().last()? {
        'K' | 'k' => (&kept[..kept.len() - 1], 1e3),
        'M' => (&kept[..kept.len() - 1], 1e6),
        'B' => (&kept[..kept.len() - 1], 1e9),
        _ => (&*kept, 1.0),
    };
    let digits = digits.replace('−', "-");
    let groups = |mark: char| {
        let mut parts = digits.trim_start_matches('-').split(mark);
        let first = parts.next().unwrap_or_default();
        (1..=3).contains(&first.len()) && parts.all(|part| part.len() == 3)
    };
    let plain = match (digits.rfind(','), digits.rfind('.')) {
        (Some(comma), Some(dot)) if comma > dot => digits.replace('.', "").replace(',', "."),
        (Some(_), Some(_)) => digits.replace(',', ""),
        (Some(_), None) if groups(',') => digits.replace(',', ""),
        (Some(_), None) => digits.replace(',', "."),
        (None, Some(_)) if digits.matches('.').count() > 1 && groups('.') => digits.replace('.', ""),
        _ => digits,
    };
    let number: f64 = plain.parse().ok()?;
    number.is_finite().then_some(sign * number * times)
}

/// The dates of a column.
pub(super) struct DateColumn {
    /// The format.
    pub format: &'static str,
    /// The format with day and month the other way round, where every date fits it and nothing decides.
    pub other: Option<&'static str>,
    /// A date whose meaning differs between the two formats, as it stands in the file.
    pub example: String,
    /// True if the order of day and month was found by weekdays or by the order of the rows.
    pub is_found: bool,
    /// The dates by row.
    pub by_row: Vec<Option<Date>>,
    /// The first and the last date.
    pub range: (Date, Date),
    /// The texts that are no dates: first cells of lines of totals or notes.
    pub footers: Vec<String>,
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
        let numbers: Option<Vec<f64>> = values.iter().map(|text| loose_number(text)).collect();
        let numbers = numbers.filter(|_| !present.is_empty());
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
        let names = NAMES
            .lines()
            .find_map(|line| line.strip_prefix(ours)?.strip_prefix(": "))?;
        let place = |is: &dyn Fn(&str) -> bool| names.split(' ').position(is);
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
        (NAMES.contains(&&*self.plain) || self.name.starts_with("Unnamed:"))
            && (counts || self.distinct == self.present)
            || counts && self.dates.is_none() && numbers.len() > 20
    }
}

/// The dates of values, in the first format that suits all of them but a few footers.
fn dates(values: &[String], present: usize) -> Option<DateColumn> {
    let parse = |format: &'static str| {
        let formats = [format.to_owned()];
        let mut reader = Dates::new(&formats, "").ok()?;
        let by_row: Vec<Option<Date>> = values.iter().map(|text| reader.parse(text).ok()).collect();
        let wrong = |(text, date): (&String, &Option<Date>)| {
            (date.is_none() && !is_missing(text)).then(|| text.clone())
        };
        let wrong: Vec<String> = values.iter().zip(&by_row).filter_map(wrong).collect();
        let first = values.iter().position(|text| !is_missing(text))?;
        let is_footer = wrong.len() <= FOOTERS && present >= 5 * wrong.len() && by_row[first].is_some();
        let dates = || by_row.iter().flatten();
        let range = (*dates().min()?, *dates().max()?);
        // Numbers that parse as dates in implausible years are prices or counts.
        let is_plausible = |date: &Date| (1900..2100).contains(&date.ymd().0);
        let is_number = format == "%Y%m%d" || format.starts_with("epoch");
        let is_old = range.0.ymd().0 < if is_number { 1950 } else { 1900 };
        (is_footer && dates().all(is_plausible) && !is_old).then_some((by_row, range, wrong))
    };
    let found = FORMATS.iter().find_map(|format| Some((*format, parse(format)?)));
    let (format, (by_row, range, footers)) = found?;
    let mut column = DateColumn {
        format,
        other: None,
        example: String::new(),
        is_found: false,
        by_row,
        range,
        footers,
    };
    let turned = |(a, b): &(&'static str, &'static str)| match format {
        _ if format == *a => Some(*b),
        _ if format == *b => Some(*a),
        _ => None,
    };
    let Some(other) = ORDERS.iter().find_map(turned) else {
        return Some(column);
    };
    let Some((others, other_range, other_footers)) = parse(other) else {
        return Some(column);
    };
    if other_footers.len() != column.footers.len() {
        return Some(column);
    }
    let differs = (0..values.len()).find(|row| column.by_row[*row] != others[*row]);
    let Some(differs) = differs else { return Some(column) };
    column.example = values[differs].clone();
    match (evidence(&column.by_row), evidence(&others)) {
        (mine, theirs) if mine > theirs => column.is_found = true,
        (mine, theirs) if mine < theirs => {
            column.format = other;
            column.by_row = others;
            column.range = other_range;
            column.is_found = true;
        }
        _ => column.other = Some(other),
    }
    Some(column)
}

/// Returns whether formats of a layout leave open which of two numbers is the day.
pub fn is_open(formats: &[String]) -> bool {
    let has = |start: &str| formats.iter().any(|format| format.starts_with(start));
    // Layouts for many origins list no order: their readers find it.
    let is_many = formats.len() > 1 && !ORDERS.iter().any(|(a, b)| has(a) || has(b));
    is_many || ORDERS.iter().any(|(a, b)| has(a) && has(b))
}

/// Settles the order of day and month of dates by another column of the file, in which one order alone is
/// possible.
pub(super) fn settle(columns: &mut [Column<'_>]) {
    let is_decided = |column: &Column<'_>| {
        let dates = column.dates.as_ref()?;
        let is_order = ORDERS.iter().any(|(a, b)| [*a, *b].contains(&dates.format));
        // A day above 12 stands in one place only.
        let is_late = dates.by_row.iter().flatten().any(|date| date.ymd().2 > 12);
        (is_order && dates.other.is_none() && is_late).then_some(dates.format)
    };
    let decided: Vec<&'static str> = columns.iter().filter_map(is_decided).collect();
    for column in columns {
        let values = column.values;
        let Some(dates) = &mut column.dates else { continue };
        let Some(other) = dates.other else { continue };
        let has = |format: &str| decided.contains(&format);
        if has(dates.format) == has(other) {
            continue;
        }
        if has(other) {
            let formats = [other.to_owned()];
            let Ok(mut reader) = Dates::new(&formats, "") else {
                continue;
            };
            dates.by_row = values.iter().map(|text| reader.parse(text).ok()).collect();
            let known = || dates.by_row.iter().flatten().copied();
            dates.range = (
                known().min().unwrap_or(dates.range.0),
                known().max().unwrap_or(dates.range.1),
            );
            dates.format = other;
        }
        dates.other = None;
    }
}

/// The evidence that dates are read rightly: 2 if they are in order, and 1 if none is on a weekend.
fn evidence(dates: &[Option<Date>]) -> u8 {
    let dates: Vec<Date> = dates.iter().flatten().copied().collect();
    if dates.len() < 5 {
        return 0;
    }
    let is_ordered =
        dates.windows(2).all(|pair| pair[0] <= pair[1]) || dates.windows(2).all(|pair| pair[0] >= pair[1]);
    let has_weekends = dates.iter().any(|date| date.is_weekend());
    2 * u8::from(is_ordered) + u8::from(!has_weekends)
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

    #[test]
    fn the_order_of_day_and_month_needs_evidence() {
        let of = |values: &[&str]| {
            let dates = dates(&texts(values), values.len()).unwrap();
            (dates.format, dates.other, dates.is_found)
        };
        assert_eq!(of(&["03/04/2021", "13/04/2021"]), ("%d/%m/%Y", None, false));
        // The first days of months, which are days of January, too.
        let firsts = [
            "01/01/2019",
            "01/02/2019",
            "01/03/2019",
            "01/04/2019",
            "01/05/2019",
            "01/06/2019",
        ];
        assert_eq!(of(&firsts), ("%m/%d/%Y", Some("%d/%m/%Y"), false));
        // Ordered as days of weeks in one reading alone.
        let days = [
            "04/01/2021",
            "05/01/2021",
            "06/01/2021",
            "07/01/2021",
            "08/01/2021",
            "11/01/2021",
            "01/02/2021",
        ];
        assert_eq!(of(&days), ("%d/%m/%Y", None, true));
    }

    #[test]
    fn numbers_in_usual_notations() {
        for (text, wanted) in [
            ("3,671.88", 3671.88),
            ("10.035,00", 10035.0),
            ("$91.80", 91.8),
            ("1.23M", 1.23e6),
            ("(12.5)", -12.5),
            ("100,5", 100.5),
            ("5%", 5.0),
            ("1 234,5", 1234.5),
            ("1,234", 1234.0),
        ] {
            assert_eq!(loose_number(text), Some(wanted), "{text}");
        }
        assert_eq!(loose_number("AAPL"), None);
    }
}
