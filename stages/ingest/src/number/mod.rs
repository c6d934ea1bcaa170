//! Numbers as people and programs write them: separators, signs, currencies, percent and magnitudes.
//!
//! Unambiguous numbers are read. The decimal sign of a column, `.` or `,`, is decided by its values
//! and, where these leave it open, by the other columns of the file or by the layout; never by a guess.

mod currencies;
mod evidence;
mod written;

pub(crate) use self::currencies::currencies;
pub(crate) use self::evidence::{Evidence, Undecided};
use self::written::Written;
pub(crate) use self::written::{Separators, loose, plain};
use crate::value::{is_missing, shown};

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
