//! The decimal sign of a column whose own numbers leave it open.

use super::Frame;
use crate::column_names;
use crate::number::{self, Evidence, Separators};
use datasets::layout::normal;
use stages_core::StageError;

/// The columns whose prices of one row are of one size.
const PRICES: [&str; 4] = ["open", "high", "low", "close"];

/// The share of rows in which a reading has to be near the other prices.
const NEARLY_ALL: f64 = 0.98;

impl Frame {
    /// The decimal sign of a column whose numbers have one separator with three digits behind it: of a price,
    /// the one that brings it near the other prices of its rows; otherwise the one that the other columns
    /// show. `None` where nothing decides.
    pub(super) fn decimal_of_others(&self, theirs: &str, own: &Evidence) -> Option<char> {
        let is_price = |name: &str| PRICES.iter().any(|ours| column_names::is(ours, name));
        let mut found = None;
        let mut prices: Vec<(&str, char)> = Vec::new();
        for name in self.names.iter().filter(|name| **name != normal(theirs)) {
            let evidence = self.evidence(name).ok().filter(|evidence| !evidence.has_others);
            let Some(evidence) = evidence else { continue };
            if let Some(sign) = evidence.own_decimal().filter(|_| is_price(name)) {
                prices.push((name, sign));
            }
            match (found, evidence.decimal()) {
                (_, None) => {}
                (None, other) => found = other,
                (Some(sign), Some(other)) if sign == other => {}
                _ => return None,
            }
        }
        // Points that are all open may be of thousands in every column.
        if found.is_none() && own.own_decimal().is_some() {
            return None;
        }
        let (_, sign) = prices.first().copied().unwrap_or_default();
        let is_one = !prices.is_empty() && prices.iter().all(|(_, other)| *other == sign);
        match is_price(theirs) && is_one && found.is_none_or(|found| found == sign) {
            true => self.nearest(theirs, &prices, sign).ok()?,
            false => found,
        }
    }

    /// The decimal sign by which the numbers of a column are between half the least and twice the greatest of
    /// `prices`, whose decimal sign is `sign`; `None` for neither.
    fn nearest(&self, theirs: &str, prices: &[(&str, char)], sign: char) -> Result<Option<char>, StageError> {
        let numbers = |name: &str, sign: char| -> Result<Vec<f64>, StageError> {
            let separators = Separators {
                decimal: Some(sign),
                thousands: None,
            };
            let mut numbers = Vec::with_capacity(self.rows());
            self.texts(name, |_, text| {
                numbers.push(number::number(self.or_missing(text), separators, false).unwrap_or(f64::NAN));
                Ok(())
            })?;
            Ok(numbers)
        };
        let mut ranges = vec![(f64::INFINITY, 0.0_f64); self.rows()];
        for (name, _) in prices {
            for ((least, most), price) in ranges.iter_mut().zip(numbers(name, sign)?) {
                (*least, *most) = (least.min(price), most.max(price));
            }
        }
        for reading in [sign, if sign == '.' { ',' } else { '.' }] {
            let values = numbers(theirs, reading)?;
            let compared = || {
                values
                    .iter()
                    .zip(&ranges)
                    .filter(|(value, (_, most))| !value.is_nan() && *most > 0.0)
            };
            let near =
                compared().filter(|(value, (least, most))| (least / 2.0..=most * 2.0).contains(*value));
            if near.count() as f64 >= NEARLY_ALL * compared().count() as f64 {
                return Ok(Some(reading));
            }
        }
        Ok(None)
    }
}
