//! The values that a row shows: its own, or the last one known.

use super::source::SymbolRows;
use crate::feature_columns::check_gaps;
use stages_core::StageError;

/// Columns of a symbol without gaps after their first values.
pub(super) struct Filled {
    /// `[T, F]` and `[T, E]`.
    observed: Vec<f64>,
    terms: Vec<f64>,
    widths: [usize; 2],
    /// The first row at which each column has had a value.
    pub warm_up: usize,
}

impl Filled {
    /// The observed values of a row, in single precision.
    pub(super) fn observed(&self, row: usize) -> impl Iterator<Item = f32> + '_ {
        let width = self.widths[0];
        self.observed[row * width..(row + 1) * width]
            .iter()
            .map(|&value| value as f32)
    }

    /// The values of a row that expressions name.
    pub(super) fn terms(&self, row: usize) -> impl Iterator<Item = f64> + '_ {
        let width = self.widths[1];
        self.terms[row * width..(row + 1) * width].iter().copied()
    }
}

/// Fills the gaps of a symbol's columns with the last values known.
pub(super) fn fill(
    rows: &SymbolRows,
    names: &[String],
    observed: &[usize],
    terms: &[usize],
    most: f64,
    warnings: &mut Vec<String>,
) -> Result<Filled, StageError> {
    let t = rows.times.len();
    let mut warm_up = 0;
    let mut stale: Vec<String> = Vec::new();
    let mut all = |columns: &[usize]| -> Result<Vec<f64>, StageError> {
        let width = columns.len();
        let mut out = vec![f64::NAN; t * width];
        for (j, &column) in columns.iter().enumerate() {
            let values = &rows.values[column];
            let first = values.iter().position(|value| !value.is_nan()).ok_or_else(|| {
                StageError::new(format!(
                    "`{}` of `{}` has no value in any row",
                    names[column], rows.symbol
                ))
                .hint("leave it out at `observe`, or the symbol at `symbols`")
            })?;
            let (mut last, mut gaps) = (f64::NAN, 0);
            for (row, &value) in values.iter().enumerate().skip(first) {
                match value.is_nan() {
                    true => gaps += 1,
                    false => last = value,
                }
                out[row * width + j] = last;
            }
            let after = t - first;
            check_gaps(gaps, after, most, ["", "at `observe` "], || {
                format!(
                    "`{}` of `{}` has no value in {gaps} of {after} rows after its first",
                    names[column], rows.symbol
                )
            })?;
            if gaps > 0 {
                stale.push(format!("{} {gaps}", names[column]));
            }
            warm_up = warm_up.max(first);
        }
        Ok(out)
    };
    let (observed_values, term_values) = (all(observed)?, all(terms)?);
    if !stale.is_empty() {
        warnings.push(format!(
            "{}: columns without a value show the last one known, in so many of {t} rows: {}",
            rows.symbol,
            stale.join(", ")
        ));
    }
    Ok(Filled {
        observed: observed_values,
        terms: term_values,
        widths: [observed.len(), terms.len()],
        warm_up,
    })
}
