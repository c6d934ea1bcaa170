//! Spellings of a symbol: `BRK.B`, `BRK-B`, `BRK/B`; `000001`, `000001.SZ`; `^GSPC`, `GSPC`.

use std::collections::BTreeMap;

/// The common form of the spellings of a symbol: its letters and digits or, of a code of digits, these
/// without leading zeros.
fn bare(symbol: &str) -> String {
    let symbol = symbol.trim().to_uppercase();
    let digits: String = symbol.chars().filter(char::is_ascii_digit).collect();
    let letters = symbol.chars().filter(|c| c.is_alphabetic()).count();
    if !digits.is_empty() && letters <= 4 && (letters == 0 || digits.len() >= 4) {
        return digits.trim_start_matches('0').to_owned();
    }
    let own = symbol.strip_suffix(" EQUITY").unwrap_or(&symbol);
    let own = match own.rsplit_once(['.', ' ', ':']) {
        Some((own, "US" | "O" | "N" | "OQ" | "UN" | "UW" | "NYSE" | "NASDAQ")) => own,
        _ => own.strip_suffix("-US").unwrap_or(own),
    };
    let own = own.rsplit_once(':').map_or(own, |(_, own)| own);
    own.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The symbol that is another spelling of `symbol`.
pub fn lookalike<'a>(symbol: &str, others: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = bare(symbol);
    let mut others = others.into_iter().filter(|other| *other != symbol);
    others.find(|other| !wanted.is_empty() && bare(other) == wanted)
}

/// The pairs of symbols that are spellings of one, each beside the one before it.
pub fn alike<'a>(symbols: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, &'a str)> {
    let mut last: BTreeMap<String, &str> = BTreeMap::new();
    let mut pairs = Vec::new();
    for symbol in symbols {
        let bare = bare(symbol);
        if !bare.is_empty() {
            pairs.extend(last.insert(bare, symbol).map(|other| (other, symbol)));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_spellings() {
        let symbols = ["AAPL", "AAPL.US", "BRK-B", "BRK.B", "MSFT", "^"];
        assert_eq!(alike(symbols), [("AAPL", "AAPL.US"), ("BRK-B", "BRK.B")]);
    }

    #[test]
    fn spellings() {
        for (a, b) in [
            ("BRK.B", "BRK-B"),
            ("BRK.B", "BRK/B"),
            ("BRK B", "brk.b"),
            ("000001", "000001.SZ"),
            ("000001", "1"),
            ("SH600519", "600519.SS"),
            ("^GSPC", "GSPC"),
            ("AAPL", "AAPL.US"),
            ("NASDAQ:AAPL", "AAPL"),
            ("AAPL US Equity", "AAPL"),
            ("AAPL-US", "AAPL"),
            ("0700.HK", "700"),
            ("aapl", "AAPL"),
        ] {
            assert_eq!(lookalike(a, [b]), Some(b), "{a} {b}");
        }
        for (a, b) in [
            ("AAPL", "MSFT"),
            ("A", "B"),
            ("BRK.A", "BRK.B"),
            ("000001", "000002"),
            ("A1", "A2"),
        ] {
            assert_eq!(lookalike(a, [b]), None, "{a} {b}");
        }
    }
}
