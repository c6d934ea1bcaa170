//! Reads the records of a delimited text one after another.

use crate::Fault;

/// An iterator over the records of a text, which skips blank lines. A field in double quotes may contain
/// separators, line feeds, and doubled quotes.
pub struct Records<'a> {
    rest: &'a str,
    /// The line on which `rest` begins, counted from 1.
    line: usize,
    separator: char,
}

/// A record of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The line on which the record begins, counted from 1.
    pub line: usize,
    /// The text of the record, without the line ending.
    pub text: &'a str,
    /// The fields of the record.
    pub cells: Vec<Cell>,
}

/// A field of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The text of the field, without the quotes around it.
    pub text: String,
    /// True if the field is in quotes.
    pub is_quoted: bool,
}

impl<'a> Records<'a> {
    /// The records of a text, which may begin with a byte-order mark.
    pub fn new(text: &'a str, separator: char) -> Self {
        Self {
            rest: text.strip_prefix('\u{feff}').unwrap_or(text),
            line: 1,
            separator,
        }
    }

    /// Reads the next record, and counts the lines that it spans.
    fn record(&mut self) -> Result<Vec<Cell>, Fault> {
        let mut cells = Vec::new();
        loop {
            let mut cell = Cell::default();
            if let Some(quoted) = self.rest.strip_prefix('"') {
                self.rest = quoted;
                cell.is_quoted = true;
                self.quoted(&mut cell.text)?;
            }
            let end = self.rest.find([self.separator, '\n']).unwrap_or(self.rest.len());
            let (plain, rest) = self.rest.split_at(end);
            let is_last = !rest.starts_with(self.separator);
            let plain = plain.strip_suffix('\r').filter(|_| is_last).unwrap_or(plain);
            if cell.is_quoted && !plain.trim().is_empty() {
                return Err(self.fault(self.line, format!("`{}` after a closing quote", plain.trim())));
            }
            cell.text.push_str(plain);
            cells.push(cell);
            self.rest = rest.get(1..).unwrap_or_default();
            if is_last {
                self.line += 1;
                return Ok(cells);
            }
        }
    }

    /// Reads the rest of a quoted field, in which a doubled quote stands for a single one.
    fn quoted(&mut self, field: &mut String) -> Result<(), Fault> {
        let first = self.line;
        loop {
            let Some((inside, rest)) = self.rest.split_once('"') else {
                return Err(self.fault(first, "a quoted field does not end".to_owned()));
            };
            field.push_str(inside);
            self.line += inside.matches('\n').count();
            match rest.strip_prefix('"') {
                Some(rest) => {
                    field.push('"');
                    self.rest = rest;
                }
                None => {
                    self.rest = rest;
                    return Ok(());
                }
            }
        }
    }

    fn fault(&self, row: usize, what: String) -> Fault {
        Fault {
            row: Some(row),
            ..Fault::new(what, "a quote within a field in quotes is written twice")
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (line, begin) = (self.line, self.rest);
            let cells = match self.record() {
                Ok(cells) => cells,
                Err(fault) => {
                    self.rest = "";
                    return Some(Err(fault));
                }
            };
            let text = &begin[..begin.len() - self.rest.len()];
            let text = text.strip_suffix('\n').unwrap_or(text);
            let text = text.strip_suffix('\r').unwrap_or(text);
            if !text.trim().is_empty() {
                return Some(Ok(Record { line, text, cells }));
            }
        }
        None
    }
}

/// The first record of a text that is not blank, including its line ending.
pub fn first_record(text: &str) -> &str {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.trim_start_matches(['\n', '\r']);
    let mut quoted = false;
    let end = text.bytes().position(|byte| {
        quoted ^= byte == b'"';
        byte == b'\n' && !quoted
    });
    &text[..end.map_or(text.len(), |end| end + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, separator: char) -> String {
        let record = |record: Result<Record<'_>, Fault>| match record {
            Ok(record) => {
                let cells: Vec<&str> = record.cells.iter().map(|cell| cell.text.as_str()).collect();
                format!("{}: {}", record.line, cells.join("|"))
            }
            Err(fault) => fault.of("t.csv"),
        };
        Records::new(text, separator).map(record).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn records_have_their_lines() {
        assert_eq!(shown("a,b\n1,2\n\n3,\n", ','), "1: a|b; 2: 1|2; 4: 3|");
        assert_eq!(shown("\u{feff}a;b\r\n1; 2\r\n \r\n3;4", ';'), "1: a|b; 2: 1| 2; 4: 3|4");
        assert_eq!(
            shown("a\tb\n\"x\t\"\"y\"\"\nz\"\t2\n\"\"\t4\n", '\t'),
            "1: a|b; 2: x\t\"y\"\nz|2; 4: |4"
        );
        assert_eq!(shown("", ','), "");
        let record = Records::new("a\n\"x\",\"y\r\nz\"\r\n", ',').nth(1).unwrap().unwrap();
        assert_eq!((record.text, record.cells[0].is_quoted), ("\"x\",\"y\r\nz\"", true));
        assert_eq!(first_record("\u{feff}\r\n\"a\nb\",c\r\n1,2\n"), "\"a\nb\",c\r\n");
    }

    #[test]
    fn what_stands_after_a_quote_is_refused() {
        assert_eq!(
            shown("a\n\"x\n", ','),
            "1: a; `t.csv`, row 2: a quoted field does not end"
        );
        assert_eq!(
            shown("a\n\"x\"y\n", ','),
            "1: a; `t.csv`, row 2: `y` after a closing quote"
        );
        assert_eq!(
            shown("a,b\n\"\"x,1\n", ','),
            "1: a|b; `t.csv`, row 2: `x` after a closing quote"
        );
    }
}
