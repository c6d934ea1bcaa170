//! Conversion of vendors' option tables to our columns.

use super::columns::{Chain, FLOATS};
use super::file_terms;
use crate::column_names;
use crate::cuts::with_left_out;
use crate::file_memo::Around;
use crate::form::{Opened, open};
use crate::frame::Frame;
use crate::header::is_there;
use crate::unpack::Packed;
use crate::value::{Dates, shown};
use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use datasets::contract::family_of;
use datasets::layout::{Layout, Mapping, Named, SymbolFormat, normal};
use datasets::schema;
use stages_core::StageError;
use std::collections::BTreeMap;

/// Reads a table as it is, without applying rules. The symbol of rows without an underlying is the one given,
/// or else the layout's, the one in the file's name, or the index or stock that the option class belongs to.
/// A row with a call and a put becomes two rows; a side without any value becomes none.
pub(crate) fn parse(
    packed: &Packed,
    layout: &Layout,
    around: &Around<'_>,
) -> Result<RecordBatch, StageError> {
    let Opened {
        place, frame, given, ..
    } = open(packed, layout, around.lookup)?;
    let rows = Rows {
        place: &place,
        layout,
        frame: &frame,
        given: &given,
        symbol: around.symbol,
    };
    let is_single_precision = layout
        .sources("strike")
        .any(|mapping| frame.is_single_precision(&mapping.theirs));
    let complete = |chain: &Chain| {
        file_terms::attach(chain.to_batch(0..chain.len())?, &frame, layout, is_single_precision)
    };
    if !layout.is_wide() {
        return with_left_out(complete(&rows.chain(&[], None)?.0)?, frame.left_out());
    }
    let mut sides = Vec::new();
    for (side, call) in [(&layout.call, true), (&layout.put, false)] {
        let (sided, listed) = rows.chain(side, Some(call))?;
        sides.push(filter_record_batch(&complete(&sided)?, &BooleanArray::from(listed))?);
    }
    with_left_out(concat_batches(&sides[0].schema(), &sides)?, frame.left_out())
}

/// The rows of a table, not yet converted.
struct Rows<'a> {
    place: &'a str,
    layout: &'a Layout,
    frame: &'a Frame,
    given: &'a BTreeMap<String, Named>,
    symbol: &'a str,
}

impl Rows<'_> {
    /// The file's column for one of our columns: the mapping of the side, or else that of the whole row.
    fn find<'m>(&'m self, side: &'m [Mapping], ours: &str) -> Option<&'m Mapping> {
        side.iter()
            .chain(&self.layout.columns)
            .find(|mapping| mapping.ours == ours && is_there(mapping, self.frame))
    }

    /// The contracts of one side (calls or puts) or of whole rows, and for each row whether it has any value
    /// there.
    fn chain(&self, side: &[Mapping], call: Option<bool>) -> Result<(Chain, Vec<bool>), StageError> {
        let (frame, rows) = (self.frame, self.frame.rows());
        let mut chain = Chain::default();
        let symbols = self.contract_symbols(side)?;
        let symbols = symbols.as_deref();
        chain.date = match self.find(side, "date") {
            Some(mapping) => self.days(&mapping.theirs)?,
            None => vec![self.given_day("date")?; rows],
        };
        chain.expiry = match (self.find(side, "expiry"), symbols) {
            (Some(mapping), _) => self.days(&mapping.theirs)?,
            (None, Some(symbols)) => symbols.iter().map(|symbol| symbol.expiry).collect(),
            (None, None) => vec![self.given_day("expiry")?; rows],
        };
        chain.strike = match (self.find(side, "strike"), symbols) {
            (Some(mapping), _) => {
                let strikes = frame.numbers(mapping)?;
                for (row, value) in strikes.iter().enumerate() {
                    if value.is_nan() {
                        return Err(frame.error(row, &mapping.theirs, "the strike is missing"));
                    }
                }
                strikes
            }
            (None, Some(symbols)) => symbols.iter().map(|symbol| symbol.strike).collect(),
            (None, None) => vec![self.given_number("strike")?; rows],
        };
        chain.call = match (call, self.find(side, "call"), symbols) {
            (Some(call), ..) => vec![call; rows],
            (None, Some(mapping), _) => self.calls(&mapping.theirs)?,
            (None, None, Some(symbols)) => symbols.iter().map(|symbol| symbol.call).collect(),
            (None, None, None) => vec![self.given_call()?; rows],
        };
        let mut listed = vec![side.is_empty(); rows];
        for (column, ours) in chain.values.iter_mut().zip(FLOATS) {
            *column = match self.find(side, ours) {
                Some(mapping) => {
                    let numbers = frame.numbers(mapping)?;
                    if side.iter().any(|sided| sided.ours == ours) {
                        listed
                            .iter_mut()
                            .zip(&numbers)
                            .for_each(|(listed, value)| *listed |= !value.is_nan());
                    }
                    numbers
                }
                None if self.given.contains_key(ours) => vec![self.given_number(ours)?; rows],
                None => vec![f64::NAN; rows],
            };
        }
        for (column, ours) in chain.stated.iter_mut().zip(schema::stated().map(|column| column.name)) {
            let is_mapped = self.layout.sources(ours).any(|mapping| is_there(mapping, frame));
            *column = match self.find(side, ours) {
                Some(mapping) => Some(frame.numbers(mapping)?),
                None if self.given.contains_key(ours) => Some(vec![self.given_number(ours)?; rows]),
                // A column of the opposite side only.
                None => is_mapped.then(|| vec![f64::NAN; rows]),
            };
        }
        chain.keep_vendor_volatility();
        self.roots(&mut chain, side, symbols)?;
        self.symbols(&mut chain, side)?;
        Ok((chain, listed))
    }

    fn days(&self, theirs: &str) -> Result<Vec<i32>, StageError> {
        let dates = self.frame.dates(theirs, &self.layout.dates, &self.layout.zone)?;
        Ok(dates.into_iter().map(|date| date.0).collect())
    }

    /// Reads a column of option types; true for calls.
    fn calls(&self, theirs: &str) -> Result<Vec<bool>, StageError> {
        let layout = self.layout;
        let is = |text: &str, values: &[String]| values.iter().any(|value| value.eq_ignore_ascii_case(text));
        let mut calls = Vec::with_capacity(self.frame.rows());
        self.frame.texts(theirs, |row, text| {
            let call = is(text, &layout.call_values);
            if !call && !is(text, &layout.put_values) {
                let known: Vec<_> = layout.call_values.iter().chain(&layout.put_values).cloned().collect();
                return Err(self
                    .frame
                    .error(row, theirs, &format!("`{}` is neither a call nor a put", shown(text)))
                    .hint(format!(
                        "known are {}; `call_values` and `put_values` of a layout name others",
                        known.join(", ")
                    )));
            }
            calls.push(call);
            Ok(())
        })?;
        Ok(calls)
    }

    /// The parsed contract symbols; `None` if the layout takes nothing from them.
    fn contract_symbols(&self, side: &[Mapping]) -> Result<Option<Vec<Symbol>>, StageError> {
        let Some(symbol) = &self.layout.contract_symbol else {
            return Ok(None);
        };
        let is_needed = ["expiry", "strike", "call", "root"]
            .iter()
            .any(|ours| self.find(side, ours).is_none());
        if !is_needed {
            return Ok(None);
        }
        let symbols = self.frame.map(&symbol.column, |text| {
            let contract = symbol.format.parse(text).ok_or_else(|| match text {
                "" => "the contract's symbol is missing".to_owned(),
                text => format!(
                    "`{}` is not a contract's symbol such as {}",
                    shown(text),
                    symbol.format.example()
                ),
            })?;
            Ok(Symbol {
                root: contract.root.to_owned(),
                expiry: contract.expiry.0,
                call: contract.call,
                strike: contract.strike,
            })
        });
        symbols.map(Some)
    }

    fn roots(
        &self,
        chain: &mut Chain,
        side: &[Mapping],
        symbols: Option<&[Symbol]>,
    ) -> Result<(), StageError> {
        if let Some(mapping) = self.find(side, "root") {
            chain.root = self.frame.map(&mapping.theirs, |text| match class_of(text) {
                "" => Err("the option class is missing".to_owned()),
                root => Ok(chain.names.id(root)),
            })?;
            return Ok(());
        }
        for symbol in symbols.unwrap_or_default() {
            let id = chain.names.id(&symbol.root);
            chain.root.push(id);
        }
        Ok(())
    }

    /// Sets the underlyings, and the classes where nothing else names them.
    fn symbols(&self, chain: &mut Chain, side: &[Mapping]) -> Result<(), StageError> {
        let name_symbol = self.given.get("symbol").map(|named| named.text.to_uppercase());
        let given = [
            self.symbol,
            &*self.layout.facts.symbol,
            name_symbol.as_deref().unwrap_or_default(),
        ];
        let given = given.into_iter().find(|name| !name.is_empty());
        if let Some(mapping) = self.find(side, "symbol") {
            chain.symbol = self.frame.map(&mapping.theirs, |text| match text {
                "" => Err("the symbol is missing".to_owned()),
                symbol => Ok(chain.names.id(symbol)),
            })?;
        } else if let Some(given) = given {
            let id = chain.names.id(given);
            chain.symbol = vec![id; chain.len()];
        } else if !chain.root.is_empty() || self.classes(chain)? {
            for row in 0..chain.len() {
                let family = family_of(chain.name(chain.root[row])).to_owned();
                let id = chain.names.id(&family);
                chain.symbol.push(id);
            }
        } else if !chain.is_empty() {
            return Err(
                StageError::new(format!("`{}` does not name the underlying", self.place)).hint(
                    "give it as `symbol: …`, or name its column in `layout: { columns: { symbol: … } }`",
                ),
            );
        }
        if chain.root.is_empty() && !self.classes(chain)? {
            chain.root = chain.symbol.clone();
        }
        Ok(())
    }

    /// Sets the classes by a column that the layout does not name, if there is one with a usual name whose
    /// texts are classes of the rows' symbols, and returns whether there is. A row without one is of the
    /// class that is called as its symbol.
    fn classes(&self, chain: &mut Chain) -> Result<bool, StageError> {
        let frame = self.frame;
        let is_free =
            |name: &&String| !self.layout.mappings().any(|mapping| normal(&mapping.theirs) == **name);
        let has_symbols = !chain.symbol.is_empty();
        let columns = ["root", "contract"].into_iter().flat_map(|ours| {
            let named = column_names::of(ours).flat_map(move |known| {
                let names = frame.names().iter().filter(is_free);
                names.filter(move |name| column_names::plain(name) == known)
            });
            named.map(move |name| (ours, name))
        });
        for (ours, name) in columns {
            let mut foreign = None;
            let mut count = 0;
            let mut roots = Vec::with_capacity(frame.rows());
            frame.texts(name, |row, text| {
                let root = match (ours, SymbolFormat::Occ.parse(text)) {
                    (_, Some(contract)) => contract.root,
                    ("root", None) => text,
                    _ => "",
                };
                count += usize::from(!root.is_empty());
                let symbol = chain.symbol.get(row).copied();
                let is_of = symbol.is_none_or(|symbol| is_of(root, chain.name(symbol)));
                if !root.is_empty() && !is_of {
                    foreign.get_or_insert_with(|| root.to_owned());
                }
                roots.push(match (root, symbol) {
                    ("", Some(symbol)) => symbol,
                    (root, _) => chain.names.id(root),
                });
                Ok(())
            })?;
            // A class may be one of anything, where no symbol stands beside it.
            let is_certain = ours == "contract" || name.contains("root");
            match foreign {
                _ if count == 0 || !has_symbols && (count < frame.rows() || !is_certain) => {}
                Some(foreign) if ours == "root" => frame.note(format!(
                    "`{name}` holds `{foreign}`, which is not of the row's symbol, and is not taken for the \
                    option class; `columns: {{ root: {name} }}` takes it"
                )),
                Some(_) => {}
                None => {
                    chain.root = roots;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The value that the file's name, its preamble or the layout gives for all rows.
    fn given(&self, ours: &str) -> Result<&Named, StageError> {
        self.given.get(ours).ok_or_else(|| {
            let patterns = self.layout.paths.iter().chain(&self.layout.form.preamble);
            let patterns: Vec<_> = patterns.map(|pattern| format!("`{pattern}`")).collect();
            let hint = match patterns.is_empty() {
                true => String::new(),
                false => format!(
                    "layout `{}` looks for it in names and lines like {}; ",
                    self.layout.name,
                    patterns.join(", ")
                ),
            };
            let example = match ours {
                "date" | "expiry" => "\"2024-01-19\"",
                "call" => "call",
                _ => "100",
            };
            StageError::new(format!("`{}` does not say the `{ours}` of its rows", self.place)).hint(format!(
                "{hint}give it: `layout: {{ like: {}, columns: {{ {ours}: {{ value: {example} }} }} }}`",
                self.layout.name
            ))
        })
    }

    fn given_day(&self, ours: &str) -> Result<i32, StageError> {
        let named = self.given(ours)?;
        let formats = match named.format.as_str() {
            "" => {
                let mut formats = vec!["%Y-%m-%d".to_owned()];
                formats.extend(self.layout.dates.iter().cloned());
                formats
            }
            format => vec![format.to_owned()],
        };
        let read = Dates::new(&formats, "").and_then(|mut dates| dates.parse(&named.text));
        read.map(|date| date.0)
            .map_err(|what| StageError::new(format!("`{}`: {what}", self.place)))
    }

    fn given_number(&self, ours: &str) -> Result<f64, StageError> {
        let named = self.given(ours)?;
        crate::value::number(&named.text)
            .ok()
            .filter(|number| number.is_finite())
            .map(|number| number / named.per)
            .ok_or_else(|| {
                StageError::new(format!(
                    "`{}`: `{}` is not a number for `{ours}`",
                    self.place,
                    shown(&named.text)
                ))
            })
    }

    fn given_call(&self) -> Result<bool, StageError> {
        let named = self.given("call")?;
        match named.text.to_ascii_lowercase().as_str() {
            "c" | "call" | "calls" => Ok(true),
            "p" | "put" | "puts" => Ok(false),
            other => Err(StageError::new(format!(
                "`{}`: `{other}` is neither a call nor a put",
                self.place
            ))),
        }
    }
}

/// The parts of a contract's symbol.
struct Symbol {
    root: String,
    expiry: i32,
    call: bool,
    strike: f64,
}

/// Returns whether a class is of a symbol by its name: `SPXW` of `SPX` and of `^SPX`, `BRKB1` of `BRK.B`.
fn is_of(root: &str, symbol: &str) -> bool {
    if root == symbol {
        return true;
    }
    let [class, family, symbol] = [root, family_of(root), symbol].map(column_names::plain);
    let is_part = || symbol.starts_with(&family) || symbol.ends_with(&family);
    !class.is_empty() && (class.starts_with(&symbol) || family.len() > 1 && is_part())
}

/// The option class in a vendor's text: the part of an OCC symbol (`SPXW190531C01000000`) before the date.
fn class_of(text: &str) -> &str {
    let bytes = text.as_bytes();
    let Some(at) = bytes.len().checked_sub(15).filter(|at| *at > 0) else {
        return text;
    };
    let suffix = &bytes[at..];
    let is_occ =
        suffix[..6].iter().chain(&suffix[7..]).all(u8::is_ascii_digit) && matches!(suffix[6], b'C' | b'P');
    if is_occ { text[..at].trim_end() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_classes() {
        assert_eq!(class_of("SPXW190531C01000000"), "SPXW");
        assert_eq!(class_of("SPX   211217P04200000"), "SPX");
        assert_eq!(class_of("SPXW"), "SPXW");
        assert_eq!(class_of("190531C01000000"), "190531C01000000");
        assert_eq!(class_of("ééééééééééééé"), "ééééééééééééé");
    }

    #[test]
    fn classes_of_a_symbol() {
        for (class, symbol) in [
            ("SPXW", "SPX"),
            ("SPXW", "^SPX"),
            ("SPXW", "SPX.X"),
            ("NDXP", "NDX"),
            ("BRKB1", "BRK.B"),
            ("AAPL7", "aapl"),
        ] {
            assert!(is_of(class, symbol), "{class} {symbol}");
        }
        for (class, symbol) in [("SPT", "SPX"), ("ETF", "SPY"), ("P", "SPX"), ("1", "SPX"), ("-", "SPX")] {
            assert!(!is_of(class, symbol), "{class} {symbol}");
        }
    }
}
