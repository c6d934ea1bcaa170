//! Headers of several rows, of which one names prices and another the symbols, as yfinance's `download`
//! writes them: a long table of them, with a column of symbols.

use datasets::layout::{HEADER_SYMBOL, normal};
use stages_table_file::text::{fields, separator};

/// The names of columns of prices.
const PRICES: [&str; 9] = [
    "open",
    "high",
    "low",
    "close",
    "adj close",
    "volume",
    "dividends",
    "stock splits",
    "capital gains",
];

/// A header of two or three rows.
pub(crate) struct Header {
    /// The number of its lines.
    lines: usize,
    separator: u8,
    /// The name of the first column.
    date: String,
    /// The prices of the columns, without repetition.
    prices: Vec<String>,
    /// The symbols, each with the index of its column for each of the prices.
    symbols: Vec<(String, Vec<Option<usize>>)>,
}

impl Header {
    /// The header of a text, if it is one of several rows.
    pub(crate) fn of(text: &[u8]) -> Option<Self> {
        let mut lines = text.split(|b| *b == b'\n');
        let mut line = || Some(std::str::from_utf8(lines.next()?).ok()?.to_owned());
        let (first, second, third) = (line()?, line()?, line());
        let separator = separator(&first);
        let cut = |line: &str| -> Vec<String> {
            fields(line, separator)
                .iter()
                .map(|name| name.trim().to_owned())
                .collect()
        };
        let (first, second) = (cut(&first), cut(&second));
        let third = third.map(|line| cut(&line)).unwrap_or_default();
        let are_prices = |names: &[String]| {
            names.len() > 1 && names[1..].iter().all(|name| PRICES.contains(&&*normal(name)))
        };
        let (prices, symbols) = match (are_prices(&first), are_prices(&second)) {
            (true, false) => (&first, &second),
            (false, true) => (&second, &first),
            _ => return None,
        };
        // A row of data begins with a date.
        let is_row = [first.first(), second.first()]
            .into_iter()
            .flatten()
            .any(|name| name.contains(|c: char| c.is_ascii_digit()));
        let is_symbol = |name: &String| name.contains(char::is_alphabetic);
        if is_row || prices.len() != symbols.len() || !symbols[1..].iter().all(is_symbol) {
            return None;
        }
        let is_third = third
            .first()
            .is_some_and(|name| !name.starts_with(|c: char| c.is_ascii_digit()))
            && third.len() > 1
            && third[1..].iter().all(String::is_empty);
        let mut header = Self {
            lines: if is_third { 3 } else { 2 },
            separator,
            date: "Date".to_owned(),
            prices: Vec::new(),
            symbols: Vec::new(),
        };
        for (at, (price, symbol)) in prices.iter().zip(symbols).enumerate().skip(1) {
            let known = header.prices.iter().position(|known| normal(known) == normal(price));
            let price_at = known.unwrap_or_else(|| {
                header.prices.push(price.clone());
                header.symbols.iter_mut().for_each(|(_, columns)| columns.push(None));
                header.prices.len() - 1
            });
            let symbol_at = header.symbols.iter().position(|(known, _)| known == symbol);
            let symbol_at = symbol_at.unwrap_or_else(|| {
                header.symbols.push((symbol.clone(), vec![None; header.prices.len()]));
                header.symbols.len() - 1
            });
            // A pair that is there twice cannot be read.
            if header.symbols[symbol_at].1[price_at].replace(at).is_some() {
                return None;
            }
        }
        Some(header)
    }

    /// The names of the columns of the long table.
    pub(crate) fn names(&self) -> Vec<String> {
        let keys = [self.date.clone(), HEADER_SYMBOL.to_owned()];
        keys.into_iter().chain(self.prices.iter().cloned()).collect()
    }

    /// The long table of a text with this header, and the line of the text for each row. A symbol has no row
    /// where all its cells are empty.
    pub(crate) fn rows(&self, text: &[u8]) -> (Vec<u8>, Vec<usize>) {
        let separator = char::from(self.separator);
        let separator_text = separator.to_string();
        let field = |text: &str| match text.contains([separator, '"']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.to_owned(),
        };
        let mut out = self.names().join(&separator_text) + "\n";
        let mut numbers = Vec::new();
        let text = String::from_utf8_lossy(text);
        let rows: Vec<(usize, Vec<String>)> = (text.split('\n').enumerate().skip(self.lines))
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(number, line)| (number + 1, fields(line, self.separator)))
            .collect();
        for (symbol, columns) in &self.symbols {
            for (number, row) in &rows {
                let cell = |at: &Option<usize>| at.and_then(|at| row.get(at)).map_or("", |text| text.trim());
                let cells: Vec<&str> = columns.iter().map(cell).collect();
                if cells.iter().all(|cell| cell.is_empty()) {
                    continue;
                }
                let date = row.first().map_or("", |date| date.trim());
                let line = [date, symbol].into_iter().chain(cells).map(field).collect::<Vec<_>>();
                out.push_str(&line.join(&separator_text));
                out.push('\n');
                numbers.push(*number);
            }
        }
        (out.into_bytes(), numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(text: &str) -> Option<(String, Vec<usize>)> {
        let (rows, lines) = Header::of(text.as_bytes())?.rows(text.as_bytes());
        Some((String::from_utf8(rows).unwrap(), lines))
    }

    #[test]
    fn rows_of_prices_and_symbols() {
        let by_price = "Price,Close,Close,Volume,Volume\nTicker,A,B,A,B\nDate,,,,\n2024-01-02,1,2,3,4\n\
            2024-01-03,,5,,6\n";
        let by_symbol = "Ticker,A,A,B,B\nPrice,Close,Volume,Close,Volume\nDate,,,,\n2024-01-02,1,3,2,4\n\
            2024-01-03,,,5,6\n";
        let two_rows = ",A,A,B,B\nDate,Close,Volume,Close,Volume\n2024-01-02,1,3,2,4\n2024-01-03,,,5,6\n";
        let rows =
            "Date,symbol in the header,Close,Volume\n2024-01-02,A,1,3\n2024-01-02,B,2,4\n2024-01-03,B,5,6\n";
        assert_eq!(long(by_price), Some((rows.to_owned(), vec![4, 4, 5])));
        assert_eq!(long(by_symbol), Some((rows.to_owned(), vec![4, 4, 5])));
        assert_eq!(long(two_rows), Some((rows.to_owned(), vec![3, 3, 4])));
        for other in [
            "Date,Open,Close\n2024-01-02,1,2\n",
            "Date,A,B\n2024-01-02,1,2\n",
            "Date,Close,Close\nDate,A,A\n2024-01-02,1,2\n",
            "Open,Close\n",
            "",
        ] {
            assert_eq!(long(other), None, "{other}");
        }
    }
}
