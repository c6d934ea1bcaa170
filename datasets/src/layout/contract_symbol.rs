//! The symbols of option contracts, taken apart.

use crate::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The format of contract symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SymbolFormat {
    /// The OCC's: root, `YYMMDD`, `C` or `P`, strike in thousandths with eight digits. Blanks after the root
    /// and a prefix such as `O:` are accepted.
    #[default]
    Occ,
    /// Deribit's: currency, expiry as `28MAR25`, strike, `C` or `P`, separated by hyphens; a `d` in a strike
    /// is the decimal point.
    Deribit,
}

/// The parts of a contract's symbol.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract<'t> {
    /// The option class.
    pub root: &'t str,
    /// The day of expiry.
    pub expiry: Date,
    /// True for a call.
    pub call: bool,
    /// The strike, in currency.
    pub strike: f64,
}

impl SymbolFormat {
    /// Splits a symbol into its parts; `None` if it does not have this format.
    pub fn parse(self, text: &str) -> Option<Contract<'_>> {
        match self {
            Self::Occ => occ(text.trim()),
            Self::Deribit => deribit(text.trim()),
        }
    }

    /// An example of a symbol, for messages.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Occ => "SPY240419P00500000",
            Self::Deribit => "BTC-28MAR25-90000-C",
        }
    }
}

fn digits(text: &str) -> Option<u32> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn occ(text: &str) -> Option<Contract<'_>> {
    let text = match text.split_once(':') {
        Some((prefix, rest)) if prefix.len() <= 5 => rest,
        _ => text,
    };
    let at = text
        .len()
        .checked_sub(15)
        .filter(|at| *at > 0 && text.is_char_boundary(*at))?;
    let (root, suffix) = text.split_at(at);
    if !suffix.is_ascii() {
        return None;
    }
    let (year, month, day) = (digits(&suffix[..2])?, digits(&suffix[2..4])?, digits(&suffix[4..6])?);
    let call = match &suffix[6..7] {
        "C" | "c" => true,
        "P" | "p" => false,
        _ => return None,
    };
    Some(Contract {
        root: root.trim_end(),
        // No table with such symbols has options of an earlier century, except Cboe's from 1990 on.
        expiry: Date::from_ymd(year as i32 + if year >= 85 { 1900 } else { 2000 }, month, day)?,
        call,
        strike: f64::from(digits(&suffix[7..])?) / 1000.0,
    })
    .filter(|contract| !contract.root.is_empty())
}

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];

fn deribit(text: &str) -> Option<Contract<'_>> {
    let mut parts = text.rsplitn(4, '-');
    let (right, strike, expiry, root) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let call = match right {
        "C" => true,
        "P" => false,
        _ => return None,
    };
    if !expiry.is_ascii() || expiry.len() < 6 {
        return None;
    }
    let (day, rest) = expiry.split_at(expiry.len() - 5);
    let month = MONTHS.iter().position(|month| rest[..3].eq_ignore_ascii_case(month))?;
    Some(Contract {
        root,
        expiry: Date::from_ymd(2000 + digits(&rest[3..])? as i32, month as u32 + 1, digits(day)?)?,
        call,
        strike: strike
            .replacen('d', ".", 1)
            .parse()
            .ok()
            .filter(|k: &f64| k.is_finite())?,
    })
    .filter(|contract| !contract.root.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(format: SymbolFormat, text: &str) -> Option<(String, String, bool, f64)> {
        let found = format.parse(text)?;
        Some((
            found.root.to_owned(),
            found.expiry.to_string(),
            found.call,
            found.strike,
        ))
    }

    #[test]
    fn symbols() {
        let occ = |text| parts(SymbolFormat::Occ, text);
        let spy = Some(("SPY".to_owned(), "2023-03-27".to_owned(), false, 390.0));
        for text in [
            "SPY230327P00390000",
            "O:SPY230327P00390000",
            "SPY   230327P00390000",
            " SPY230327P00390000",
        ] {
            assert_eq!(occ(text), spy, "{text}");
        }
        assert_eq!(occ("SPX7  901222C00300500").unwrap().3, 300.5);
        assert_eq!(occ("SPX   901222C00300500").unwrap().1, "1990-12-22");
        for wrong in [
            "",
            "SPY",
            "230327P00390000",
            "SPY231327P00390000",
            "SPY230327X00390000",
            "éé30327P00390000é",
        ] {
            assert_eq!(occ(wrong), None, "{wrong}");
        }
        let deribit = |text| parts(SymbolFormat::Deribit, text);
        assert_eq!(
            deribit("BTC-28MAR25-90000-C"),
            Some(("BTC".to_owned(), "2025-03-28".to_owned(), true, 90_000.0))
        );
        assert_eq!(
            deribit("XRP_USDC-7JUN24-0d525-P"),
            Some(("XRP_USDC".to_owned(), "2024-06-07".to_owned(), false, 0.525))
        );
        for wrong in [
            "BTC-PERPETUAL",
            "BTC-28MAR25",
            "BTC-31FEB25-1-C",
            "BTC-28MAR25-x-C",
            "-28MAR25-1-C",
        ] {
            assert_eq!(deribit(wrong), None, "{wrong}");
        }
    }
}
