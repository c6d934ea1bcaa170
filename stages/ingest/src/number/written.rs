//! A number's text, taken apart.

use super::currencies::CURRENCIES;
use crate::value::is_missing;

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
pub(super) struct Written<'t> {
    negative: bool,
    /// Digits and separators.
    pub digits: &'t str,
    exponent: i32,
    pub percent: bool,
    pub currency: &'static str,
    pub magnitude: &'static str,
}

/// Blanks that stand between groups of digits, beside an apostrophe.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || is_blank(c))
}

impl<'t> Written<'t> {
    pub(super) fn of(text: &'t str) -> Option<Self> {
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
    pub(super) fn value(&self, separators: Separators, in_percent: bool) -> Option<f64> {
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

/// The evidence of a number's separators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    /// Nothing: there are none, or apostrophes and blanks alone.
    Nothing,
    /// The decimal sign.
    Decimal(char),
    /// Either: one separator with three digits behind it.
    Either(char),
}

/// The evidence of the separators among digits; `None` where they are not those of a number.
pub(super) fn shows(digits: &str) -> Option<Shows> {
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

/// A number in any usual notation, to judge magnitudes by; NaN where it is missing. A comma that may be
/// either stands between thousands, a point before decimals, and a `%` changes nothing.
pub(crate) fn loose(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Some(number) = plain(text) {
        return Some(number);
    }
    // `1m` is a minute or a month.
    let number = Written::of(text).filter(|_| !text.ends_with('m'))?;
    let decimal = match shows(number.digits)? {
        Shows::Decimal(sign) => Some(sign),
        Shows::Nothing | Shows::Either(_) => Some('.'),
    };
    let separators = Separators {
        decimal,
        thousands: None,
    };
    number.value(separators, true)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("1.234", 1.234),
        ] {
            assert_eq!(loose(text), Some(wanted), "{text}");
        }
        for text in ["AAPL", "3m", "13/02/2023", "inf"] {
            assert_eq!(loose(text), None, "{text}");
        }
    }
}
