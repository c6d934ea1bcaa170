//! Numbers as people and programs write them: separators, signs, currencies, percent and magnitudes.
//!
//! What is unambiguous is read. Which of `.` and `,` is the decimal sign of a column is decided by its values
//! and, where these leave it open, by the other columns of the file or by the layout; never by a guess.

use crate::value::{is_missing, shown};
use stages_core::ConfigProblem;

/// The separators of thousands and decimals, as far as they are stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Separators {
    pub decimal: Option<char>,
    pub thousands: Option<char>,
}

impl Separators {
    /// The separators that the keys `decimal` and `thousands` state; empty for what is not stated.
    pub(crate) fn stated(decimal: &str, thousands: &str) -> Self {
        let one = |text: &str| text.chars().next();
        Self {
            decimal: one(decimal),
            thousands: one(thousands),
        }
    }

    /// Returns whether anything is stated, so that plain numbers may mean something else.
    pub(crate) fn any(self) -> bool {
        self.decimal.is_some() || self.thousands.is_some()
    }

    /// The decimal sign, as far as it is known.
    fn decimal_sign(self) -> Option<char> {
        self.decimal.or(match self.thousands {
            Some('.') => Some(','),
            Some(_) => Some('.'),
            None => None,
        })
    }
}

/// Refuses settings that are no separators.
pub(crate) fn check_separators(decimal: &str, thousands: &str) -> Result<(), ConfigProblem> {
    for (field, given) in [("decimal", decimal), ("thousands", thousands)] {
        datasets::layout::check_separator(field, given)
            .map_err(|problem| ConfigProblem::new(problem.field, problem.message).hint(problem.hint))?;
    }
    ConfigProblem::new("thousands", "it is the decimal sign, too")
        .hint("leave one of the two out")
        .when(!decimal.is_empty() && decimal == thousands)
}

/// Signs and words of currencies, before or behind a number. None for hundredths (`p`, `GBX`), which are
/// another unit.
const CURRENCIES: &[&str] = &[
    "US$", "HK$", "NT$", "R$", "C$", "A$", "S$", "$", "€", "£", "¥", "￥", "₹", "₩", "₽", "₺", "₪", "฿", "₫",
    "元", "円", "원", "zł", "USDT", "USDC", "USD", "EUR", "GBP", "JPY", "CNY", "CNH", "RMB", "HKD", "TWD",
    "KRW", "INR", "SGD", "AUD", "CAD", "NZD", "CHF", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "RUB", "TRY",
    "BRL", "MXN", "ZAR", "kr", "Kč", "Ft", "TL",
];

/// The currencies that a sign or code in front of prices stands for; empty for what is neither.
pub(crate) fn currencies(sign: &str) -> &'static [&'static str] {
    match sign.trim_end_matches('.') {
        "US$" => &["USD"],
        "$" => &[
            "USD", "CAD", "AUD", "NZD", "HKD", "SGD", "TWD", "MXN", "ARS", "CLP", "COP",
        ],
        "HK$" => &["HKD"],
        "NT$" => &["TWD"],
        "R$" => &["BRL"],
        "C$" => &["CAD"],
        "A$" => &["AUD"],
        "S$" => &["SGD"],
        "€" => &["EUR"],
        "£" => &["GBP"],
        "¥" | "￥" => &["JPY", "CNY", "CNH"],
        "₹" => &["INR"],
        "₩" | "원" => &["KRW"],
        "₽" => &["RUB"],
        "₺" | "TL" => &["TRY"],
        "₪" => &["ILS"],
        "฿" => &["THB"],
        "₫" => &["VND"],
        "元" | "RMB" => &["CNY"],
        "円" => &["JPY"],
        "zł" => &["PLN"],
        "kr" => &["SEK", "NOK", "DKK", "ISK"],
        "Kč" => &["CZK"],
        "Ft" => &["HUF"],
        code => CURRENCIES
            .iter()
            .position(|known| *known == code)
            .map_or(&[], |place| &CURRENCIES[place..=place]),
    }
}

/// Words behind a number that multiply it by a power of ten, in any case.
const MAGNITUDES: &[(&str, i32)] = &[
    ("tsd.", 3),
    ("tsd", 3),
    ("mio.", 6),
    ("mio", 6),
    ("mrd.", 9),
    ("mrd", 9),
    ("mln", 6),
    ("mn", 6),
    ("bln", 9),
    ("bn", 9),
    ("k", 3),
    ("m", 6),
    ("b", 9),
    ("t", 12),
    ("万", 4),
    ("萬", 4),
    ("亿", 8),
    ("億", 8),
    ("만", 4),
    ("억", 8),
];

/// A number's text, taken apart.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Written<'t> {
    negative: bool,
    /// Digits and separators.
    digits: &'t str,
    exponent: i32,
    percent: bool,
    currency: &'static str,
    magnitude: &'static str,
}

/// Blanks that stand between groups of digits, beside an apostrophe.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || is_blank(c))
}

impl<'t> Written<'t> {
    fn of(text: &'t str) -> Option<Self> {
        let mut rest = trimmed(text);
        let mut found = Self {
            negative: false,
            digits: "",
            exponent: 0,
            percent: false,
            currency: "",
            magnitude: "",
        };
        let mut signs = 0;
        if let Some(inner) = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            (found.negative, rest, signs) = (true, trimmed(inner), 1);
        }
        while !rest.starts_with(|c: char| c.is_ascii_digit()) {
            if let Some(after) = rest.strip_prefix(['-', '\u{2212}']) {
                (found.negative, rest, signs) = (true, trimmed(after), signs + 1);
            } else if let Some(after) = rest.strip_prefix('+') {
                (rest, signs) = (trimmed(after), signs + 1);
            } else if let Some(sign) = CURRENCIES.iter().find(|sign| rest.starts_with(**sign))
                && found.currency.is_empty()
            {
                (found.currency, rest) = (sign, trimmed(&rest[sign.len()..]));
            } else {
                break;
            }
        }
        while !rest.ends_with(|c: char| c.is_ascii_digit()) {
            let lower = |ending: &str| {
                let at = rest.len().checked_sub(ending.len())?;
                rest.get(at..)?.to_lowercase().eq(ending).then_some(at)
            };
            if let Some(before) = rest.strip_suffix('%')
                && !found.percent
            {
                (found.percent, rest) = (true, trimmed(before));
            } else if let Some(sign) = CURRENCIES.iter().find(|sign| rest.ends_with(**sign))
                && found.currency.is_empty()
            {
                (found.currency, rest) = (sign, trimmed(&rest[..rest.len() - sign.len()]));
            } else if let Some((at, word, power)) = MAGNITUDES
                .iter()
                .find_map(|(word, power)| Some((lower(word)?, *word, *power)))
                && found.magnitude.is_empty()
            {
                (found.magnitude, found.exponent, rest) = (word, power, trimmed(&rest[..at]));
            } else if let Some(before) = rest.strip_suffix(['-', '\u{2212}'])
                && signs == 0
            {
                (found.negative, rest, signs) = (true, trimmed(before), 1);
            } else {
                break;
            }
        }
        if let Some((digits, power)) = rest.split_once(['e', 'E']) {
            found.exponent += power.parse::<i32>().ok().filter(|power| power.abs() < 400)?;
            rest = digits;
        }
        let begins = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == ',');
        let is_digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '\'' | '’') || is_blank(c);
        let any = rest.bytes().any(|b| b.is_ascii_digit());
        found.digits = rest;
        (signs < 2 && begins && any && rest.chars().all(is_digits)).then_some(found)
    }

    /// The value, if the digits are written with these separators; a `%` divides by 100 unless the whole
    /// column is in percent.
    fn value(&self, separators: Separators, in_percent: bool) -> Option<f64> {
        let decimal = separators.decimal_sign().unwrap_or('.');
        let (whole, fraction) = match self.digits.rsplit_once(decimal) {
            Some((_, fraction)) if fraction.contains(|c: char| !c.is_ascii_digit()) => return None,
            Some(parts) => parts,
            None => (self.digits, ""),
        };
        let group = whole.chars().find(|c| !c.is_ascii_digit());
        let mut text = String::with_capacity(self.digits.len() + 8);
        if self.negative {
            text.push('-');
        }
        match group {
            Some(group) => {
                let is_allowed = match separators.thousands {
                    Some(stated) => group == stated || is_blank(stated) && is_blank(group),
                    None => group != decimal,
                };
                if !is_allowed || !is_grouped(whole, group) {
                    return None;
                }
                text.extend(whole.chars().filter(char::is_ascii_digit));
            }
            None => text.push_str(whole),
        }
        let percent = if self.percent && !in_percent { -2 } else { 0 };
        text.push('.');
        text.push_str(fraction);
        text.push_str(&format!("e{}", self.exponent + percent));
        text.parse::<f64>().ok().filter(|value| value.is_finite())
    }
}

/// Returns whether a whole number has groups of three digits, or Indian ones, between the sign `group`.
fn is_grouped(whole: &str, group: char) -> bool {
    let mut groups: Vec<&str> = whole.split(group).collect();
    if groups
        .iter()
        .any(|part| part.is_empty() || part.contains(|c: char| !c.is_ascii_digit()))
    {
        return false;
    }
    let last = groups.pop().unwrap_or_default();
    let first = groups.first().map_or(0, |part| part.len());
    let middle = |len: usize| groups.iter().skip(1).all(|part| part.len() == len);
    let is_indian = group == ',' && first <= 2 && groups.len() > 1 && middle(2);
    last.len() == 3 && (1..=3).contains(&first) && (middle(3) || is_indian)
}

/// What a number's separators show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    /// Nothing: there are none, or apostrophes and blanks alone.
    Nothing,
    /// The decimal sign.
    Decimal(char),
    /// Either: one separator with three digits behind it.
    Either(char),
}

fn shows(digits: &str) -> Option<Shows> {
    let other = |sign: char| if sign == '.' { ',' } else { '.' };
    let mut separators = digits.char_indices().filter(|(_, c)| !c.is_ascii_digit());
    let Some((_, first)) = separators.next() else {
        return Some(Shows::Nothing);
    };
    let (at, last) = separators.next_back().unwrap_or((digits.find(first)?, first));
    let is_once = digits.matches(last).count() == 1;
    let (whole, fraction) = (&digits[..at], &digits[at + last.len_utf8()..]);
    let is_decimal = matches!(last, '.' | ',');
    if !is_decimal || !is_once {
        // Groups alone.
        let is_regular = first == last && is_grouped(digits, first);
        return is_regular.then_some(match first {
            '.' | ',' => Shows::Decimal(other(first)),
            _ => Shows::Nothing,
        });
    }
    if first != last {
        return is_grouped(whole, first).then_some(Shows::Decimal(last));
    }
    let is_open = fraction.len() == 3 && (1..=3).contains(&whole.len()) && !whole.starts_with('0');
    Some(if is_open {
        Shows::Either(last)
    } else {
        Shows::Decimal(last)
    })
}

/// Parses a plain number; NaN for a missing value.
pub(crate) fn plain(text: &str) -> Option<f64> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Some(value),
        _ if is_missing(text) => Some(f64::NAN),
        _ => None,
    }
}

/// The evidence in a column's texts about its decimal sign.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The first row and text that shows a decimal point, and a decimal comma.
    point: Option<(usize, String)>,
    comma: Option<(usize, String)>,
    /// The first row and text with a point, and with a comma, that may be either.
    open_point: Option<(usize, String)>,
    open_comma: Option<(usize, String)>,
    /// True if a text is not a number.
    pub has_others: bool,
    /// The values of numbers with a point that may be either, read as decimals, and of those without
    /// separators.
    pointed: Vec<f64>,
    whole: Vec<f64>,
    /// True if a fraction of three digits ends in a zero.
    has_zeros: bool,
    /// The first row of each currency, percent and magnitude.
    currency: Option<(usize, &'static str)>,
    /// A second currency, with its row.
    other_currency: Option<(usize, &'static str)>,
    percent: Option<(usize, String)>,
    /// The first number without percent.
    bare: Option<(usize, String)>,
    magnitude: Option<String>,
}

/// What is wrong with a column of numbers, and the separators that would decide it: key, sign and meaning.
pub(crate) struct Undecided {
    pub row: usize,
    pub what: String,
    pub remedies: Vec<(&'static str, char, String)>,
}

impl Evidence {
    /// Adds the text of a row.
    pub(crate) fn add(&mut self, row: usize, text: &str) {
        if is_missing(text) {
            return;
        }
        let Some(number) = Written::of(text) else {
            self.has_others = true;
            return;
        };
        let place = || Some((row, text.to_owned()));
        match shows(number.digits) {
            None => self.has_others = true,
            Some(Shows::Nothing) => self.whole.extend(number.value(Separators::default(), true)),
            Some(Shows::Decimal('.')) if self.point.is_none() => self.point = place(),
            Some(Shows::Decimal(',')) if self.comma.is_none() => self.comma = place(),
            Some(Shows::Decimal(_)) => {}
            Some(Shows::Either('.')) => {
                self.has_zeros |= number.digits.ends_with('0');
                self.pointed.extend(number.value(Separators::default(), true));
                if self.open_point.is_none() {
                    self.open_point = place();
                }
            }
            Some(Shows::Either(_)) if self.open_comma.is_none() => self.open_comma = place(),
            Some(Shows::Either(_)) => {}
        }
        if !number.currency.is_empty() {
            match self.currency {
                None => self.currency = Some((row, number.currency)),
                Some((_, first)) if first != number.currency && self.other_currency.is_none() => {
                    self.other_currency = Some((row, number.currency));
                }
                _ => {}
            }
        }
        let first = match number.percent {
            true => &mut self.percent,
            // Zero is zero in either unit.
            false if !number.digits.contains(|c: char| c.is_ascii_digit() && c != '0') => &mut None,
            false => &mut self.bare,
        };
        if first.is_none() {
            *first = place();
        }
        if !number.magnitude.is_empty() && self.magnitude.is_none() {
            self.magnitude = Some(text.to_owned());
        }
    }

    /// The decimal sign that the column shows; `None` where it shows none, or both.
    pub(crate) fn decimal(&self) -> Option<char> {
        match (&self.point, &self.comma) {
            (Some(_), None) => Some('.'),
            (None, Some(_)) => Some(','),
            _ => None,
        }
    }

    /// The sign or code of the column's currency, if its numbers have one.
    pub(crate) fn currency(&self) -> Option<&'static str> {
        self.currency.map(|(_, sign)| sign)
    }

    /// Numbers with and without percent in a column that is not in percent as a whole.
    pub(crate) fn mixed_percent(&self) -> Option<Undecided> {
        let ((_, percent), (row, bare)) = self.percent.as_ref().zip(self.bare.as_ref())?;
        Some(Undecided {
            row: *row,
            what: format!(
                "`{}` has no `%`, and `{}` has: whether it is in percent, too, is not clear",
                shown(bare),
                shown(percent)
            ),
            remedies: Vec::new(),
        })
    }

    /// Returns whether every point of the column may stand between thousands, and some keeps a last zero, as
    /// decimals seldom do.
    pub(crate) fn has_open_points(&self) -> bool {
        self.open_point.is_some() && self.has_zeros && self.point.is_none() && self.comma.is_none()
    }

    /// The separators of the column; `file` gives the decimal sign that the other columns of the file show.
    pub(crate) fn separators(&self, file: impl FnOnce() -> Option<char>) -> Result<Separators, Undecided> {
        let of = |decimal: char| Separators {
            decimal: Some(decimal),
            thousands: None,
        };
        if let (Some((point_row, point)), Some((comma_row, comma))) = (&self.point, &self.comma) {
            let what = format!(
                "the decimal separator changes: `{}` has a decimal point, and `{}` a decimal comma",
                shown(point),
                shown(comma)
            );
            return Err(Undecided {
                row: *point_row.max(comma_row),
                what,
                remedies: Vec::new(),
            });
        }
        if let (Some((_, first)), Some((row, other))) = (self.currency, self.other_currency) {
            let what = format!("the currency changes from `{first}` to `{other}`");
            return Err(Undecided {
                row,
                what,
                remedies: Vec::new(),
            });
        }
        if let Some(decimal) = self.decimal() {
            return Ok(of(decimal));
        }
        if self.open_point.is_none() && self.open_comma.is_none() {
            return Ok(Separators::default());
        }
        if let Some(decimal) = file() {
            return Ok(of(decimal));
        }
        if let (Some((_, point)), Some((row, comma))) = (&self.open_point, &self.open_comma) {
            let what = format!(
                "`{}` and `{}`: one of the separators is of thousands, and nothing shows which",
                shown(point),
                shown(comma)
            );
            return Err(Undecided {
                row: *row,
                what,
                remedies: self.remedies('.'),
            });
        }
        if let Some((row, text)) = &self.open_comma {
            let what = format!("`{}` has a comma that may be of decimals or of thousands", shown(text));
            return Err(Undecided {
                row: *row,
                what,
                remedies: self.remedies(','),
            });
        }
        if let Some((row, text)) = &self.open_point
            && self.points_may_be_thousands()
        {
            let whole = self
                .whole
                .iter()
                .find(|value| **value != 0.0)
                .copied()
                .unwrap_or_default();
            let what = format!(
                "`{}` has a point that may be of decimals or of thousands: every number with a point has three \
                digits behind it, and others, such as {whole}, have none",
                shown(text)
            );
            return Err(Undecided {
                row: *row,
                what,
                remedies: self.remedies('.'),
            });
        }
        Ok(Separators::default())
    }

    /// Returns whether numbers without separators stand beside numbers whose points may be of thousands in a
    /// way that decimals do not explain: the former are about a thousand times as large, or the latter keep
    /// their last zeros.
    fn points_may_be_thousands(&self) -> bool {
        let middle = |values: &[f64]| {
            let mut values: Vec<f64> = values.iter().map(|value| value.abs()).filter(|v| *v > 0.0).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        let (Some(pointed), Some(whole)) = (middle(&self.pointed), middle(&self.whole)) else {
            return false;
        };
        whole >= 100.0 * pointed || self.has_zeros && self.whole.iter().all(|value| value.abs() < 1000.0)
    }

    fn remedies(&self, sign: char) -> Vec<(&'static str, char, String)> {
        let open = if sign == ',' {
            &self.open_comma
        } else {
            &self.open_point
        };
        let text = open.as_ref().map_or("", |(_, text)| text.as_str());
        let meaning = |separators: Separators| {
            let number = Written::of(text).and_then(|number| number.value(separators, true));
            number.map_or_else(String::new, |number| format!("`{}` is {number}", shown(text)))
        };
        let thousands = Separators {
            decimal: None,
            thousands: Some(sign),
        };
        let decimal = Separators {
            decimal: Some(sign),
            thousands: None,
        };
        vec![
            ("thousands", sign, meaning(thousands)),
            ("decimal", sign, meaning(decimal)),
        ]
    }

    /// What is worth saying about how the column is written.
    pub(crate) fn notes(&self, column: &str, separators: Separators, in_percent: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if separators.decimal == Some(',') {
            notes.push(format!("`{column}` has decimal commas"));
        }
        if let Some((_, currency)) = self.currency {
            notes.push(format!("`{column}` is in `{currency}`"));
        }
        if let Some(text) = &self.magnitude {
            let number = Written::of(text).and_then(|number| number.value(separators, true));
            if let Some(number) = number {
                notes.push(format!("in `{column}`, `{}` is {number}", shown(text)));
            }
        }
        if self.percent.is_some() && !in_percent {
            notes.push(format!("`{column}` is in percent: 5% is 0.05"));
        }
        notes
    }
}

/// Parses a number with these separators; NaN for a missing value.
pub(crate) fn number(text: &str, separators: Separators, in_percent: bool) -> Result<f64, String> {
    if is_missing(text) {
        return Ok(f64::NAN);
    }
    let written = Written::of(text);
    if let Some(value) = written.and_then(|number| number.value(separators, in_percent)) {
        return Ok(value);
    }
    let with = match (written.is_some(), separators.decimal, separators.thousands) {
        (false, ..) | (true, None, None) => String::new(),
        (_, Some(decimal), None) => format!(" with the decimal sign `{decimal}`"),
        (_, None, Some(thousands)) => format!(" with `{thousands}` between thousands"),
        (_, Some(decimal), Some(thousands)) => {
            format!(" with the decimal sign `{decimal}` and `{thousands}` between thousands")
        }
    };
    Err(format!("`{}` is not a number{with}", shown(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(texts: &[&str], file: Option<char>) -> Result<Vec<f64>, String> {
        let mut evidence = Evidence::default();
        texts.iter().enumerate().for_each(|(row, text)| evidence.add(row, text));
        let separators = evidence.separators(|| file).map_err(|undecided| undecided.what)?;
        texts.iter().map(|text| number(text, separators, false)).collect()
    }

    #[test]
    fn what_is_unambiguous_is_read() {
        for (text, value) in [
            ("1,234.5", 1234.5),
            ("1.234,56", 1234.56),
            ("1'234.5", 1234.5),
            ("1’234,5", 1234.5),
            ("1 234,5", 1234.5),
            ("1\u{a0}234,5", 1234.5),
            ("1\u{202f}234\u{202f}567,5", 1_234_567.5),
            ("1.234.567", 1_234_567.0),
            ("1,234,567", 1_234_567.0),
            ("12,34,567.89", 1_234_567.89),
            ("$91.80", 91.8),
            ("-$91.80", -91.8),
            ("$-91.80", -91.8),
            ("($91.80)", -91.8),
            ("€ 12,50", 12.5),
            ("12,50 €", 12.5),
            ("12.5 USD", 12.5),
            ("(12.5)", -12.5),
            ("12.5-", -12.5),
            ("1.23M", 1_230_000.0),
            ("45.6K", 45_600.0),
            ("2.1B", 2.1e9),
            ("1,13M", 1_130_000.0),
            ("1.13M", 1_130_000.0),
            ("1,5 Mio.", 1.5e6),
            ("12万", 120_000.0),
            ("5%", 0.05),
            ("7 %", 0.07),
            ("-0,5%", -0.005),
            ("+1.2", 1.2),
            ("\u{2212}1.2", -1.2),
            ("1e5", 1e5),
            ("1,5e3", 1500.0),
            ("0,123", 0.123),
            ("0.123", 0.123),
            (",5", 0.5),
            ("1234.567", 1234.567),
        ] {
            assert_eq!(column(&[text], None), Ok(vec![value]), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "１２",
            "12a",
            "--1",
            "1.2.3",
            "1,23,4",
            "12:30",
            "2023-02-13",
            "13.02.2023",
            "1 2",
            "1.234,5,6",
            "GBX 12",
            "12p",
            "$",
            "%",
            "(5",
            "1_000",
            "inf",
            "1.2345.678",
            "5%%",
            "$5€",
        ] {
            assert!(column(&[text], None).is_err(), "{text}: {:?}", column(&[text], None));
        }
    }

    #[test]
    fn percent_and_bare_numbers_do_not_mix() {
        let mixed = |texts: &[&str]| {
            let mut evidence = Evidence::default();
            texts.iter().enumerate().for_each(|(row, text)| evidence.add(row, text));
            evidence.mixed_percent().map(|undecided| undecided.row)
        };
        assert_eq!(mixed(&["5%", "5"]), Some(1));
        assert_eq!(mixed(&["0.5", "7 %"]), Some(0));
        for texts in [&["5%", "7%"][..], &["5", "0.07"], &["5%", "0", "0.00", ""]] {
            assert_eq!(mixed(texts), None, "{texts:?}");
        }
    }

    #[test]
    fn what_is_open_is_decided_by_others_or_refused() {
        assert_eq!(column(&["1,234", "5,5"], None), Ok(vec![1.234, 5.5]));
        assert_eq!(column(&["1,234", "5.5"], None), Ok(vec![1234.0, 5.5]));
        assert_eq!(column(&["1.234", "1.234.567"], None), Ok(vec![1234.0, 1_234_567.0]));
        assert_eq!(column(&["1.234"], Some(',')), Ok(vec![1234.0]));
        assert_eq!(column(&["1.234", "99.5"], None), Ok(vec![1.234, 99.5]));
        assert_eq!(column(&["1.234", "1.301"], None), Ok(vec![1.234, 1.301]));
        assert_eq!(
            column(&["99.125", "100", "100.375"], None),
            Ok(vec![99.125, 100.0, 100.375])
        );
        for texts in [
            &["1,234"][..],
            &["1.002", "998"],
            &["1.050", "12.000", "45"],
            &["1.234", "1,234"],
        ] {
            assert!(column(texts, None).unwrap_err().contains("thousands"), "{texts:?}");
        }
        assert!(column(&["1.5", "2,5"], None).unwrap_err().contains("changes"));
        assert!(column(&["$1.5", "€2.5"], None).unwrap_err().contains("currency"));
    }

    #[test]
    fn stated_separators_hold() {
        let read = |text: &str, decimal: &str, thousands: &str| {
            number(text, Separators::stated(decimal, thousands), false).ok()
        };
        assert_eq!(read("1.002", "", "."), Some(1002.0));
        assert_eq!(read("998", "", "."), Some(998.0));
        assert_eq!(read("1.002", ".", ""), Some(1.002));
        assert_eq!(read("1,234", ",", ""), Some(1.234));
        assert_eq!(read("1,234", "", ","), Some(1234.0));
        assert_eq!(read("1.234,5", ",", "."), Some(1234.5));
        assert_eq!(read("1 234,5", ",", " "), Some(1234.5));
        assert_eq!(read("1.5", ",", ""), None);
        assert_eq!(read("1,5", ".", ""), None);
        assert_eq!(number("5%", Separators::default(), true), Ok(5.0));
    }
}
