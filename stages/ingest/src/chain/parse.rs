//! Vendors' option tables as ours.

use super::columns::{Chain, FLOATS};
use super::file_terms;
use crate::frame::Frame;
use crate::read::{needed, numeric, source_of, wanted};
use crate::unpack::Packed;
use crate::value::shown;
use arrow::array::RecordBatch;
use datasets::layout::{Layout, family_of};
use stages_core::StageError;

/// Reads a table as it is. Rows that name no underlying have `symbol`, or else the layout's, or else the index or stock
/// that their option class belongs to.
///
/// # Errors
/// When a value cannot be read, or a required column is missing.
pub fn parse(packed: &Packed, layout: &Layout, symbol: &str) -> Result<RecordBatch, StageError> {
    let wanted = wanted(layout);
    let numeric = numeric(layout);
    let frame = Frame::read_with_numbers(packed, |name| wanted.contains(name), |name| numeric.contains(name))?;
    let find = |ours| source_of(layout, &frame, ours);
    let must = |ours| needed(layout, &frame, &packed.place, ours);
    let days = |theirs: &str| -> Result<Vec<i32>, StageError> {
        Ok(frame
            .dates(theirs, &layout.dates)?
            .into_iter()
            .map(|date| date.0)
            .collect())
    };

    let mut chain = Chain {
        date: days(&must("date")?.theirs)?,
        expiry: days(&must("expiry")?.theirs)?,
        ..Chain::default()
    };

    let mapping = must("strike")?;
    chain.strike = frame.numbers(mapping)?;
    if let Some(row) = chain.strike.iter().position(|strike| strike.is_nan()) {
        return Err(frame.error(row, &mapping.theirs, "the strike is missing"));
    }
    let is_single_precision = frame.is_single_precision(&mapping.theirs);

    let theirs = &must("call")?.theirs;
    let is =
        |text: &str, values: &[datasets::layout::Text]| values.iter().any(|value| value.eq_ignore_ascii_case(text));
    frame.texts(theirs, |row, text| {
        let call = is(text, &layout.call_values);
        if !call && !is(text, &layout.put_values) {
            let known: Vec<_> = layout
                .call_values
                .iter()
                .chain(layout.put_values.iter())
                .cloned()
                .collect();
            return Err(frame
                .error(row, theirs, &format!("`{}` is neither a call nor a put", shown(text)))
                .hint(format!(
                    "known are {}; `call_values` and `put_values` of a layout name others",
                    known.join(", ")
                )));
        }
        chain.call.push(call);
        Ok(())
    })?;

    for (column, ours) in chain.values.iter_mut().zip(FLOATS) {
        *column = match find(ours) {
            Some(mapping) => frame.numbers(mapping)?,
            None => vec![f64::NAN; frame.rows()],
        };
    }

    if let Some(mapping) = find("root") {
        frame.texts(&mapping.theirs, |row, text| {
            let root = class_of(text);
            if root.is_empty() {
                return Err(frame.error(row, &mapping.theirs, "the option class is missing"));
            }
            let id = chain.names.id(root);
            chain.root.push(id);
            Ok(())
        })?;
    }

    let given = if symbol.is_empty() {
        &*layout.facts.symbol
    } else {
        symbol
    };
    if let Some(mapping) = find("symbol") {
        frame.texts(&mapping.theirs, |row, text| {
            if text.is_empty() {
                return Err(frame.error(row, &mapping.theirs, "the symbol is missing"));
            }
            let id = chain.names.id(text);
            chain.symbol.push(id);
            Ok(())
        })?;
    } else if !given.is_empty() {
        let id = chain.names.id(given);
        chain.symbol = vec![id; chain.len()];
    } else if !chain.root.is_empty() {
        for row in 0..chain.len() {
            let family = family_of(chain.name(chain.root[row])).to_owned();
            let id = chain.names.id(&family);
            chain.symbol.push(id);
        }
    } else if !chain.is_empty() {
        return Err(
            StageError::new(format!("`{}` does not name the underlying", packed.place))
                .hint("give it as `symbol: SPX`, or name its column in `layout: { columns: { symbol: … } }`"),
        );
    }
    if chain.root.is_empty() {
        chain.root = chain.symbol.clone();
    }
    file_terms::attach(chain.to_batch(0..chain.len())?, &frame, layout, is_single_precision)
}

/// The option class from a vendor's text: of an OCC symbol (`SPXW190531C01000000`) the part before the date.
fn class_of(text: &str) -> &str {
    let bytes = text.as_bytes();
    let Some(at) = bytes.len().checked_sub(15).filter(|at| *at > 0) else {
        return text;
    };
    let suffix = &bytes[at..];
    let is_occ = suffix[..6].iter().chain(&suffix[7..]).all(u8::is_ascii_digit) && matches!(suffix[6], b'C' | b'P');
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
}
