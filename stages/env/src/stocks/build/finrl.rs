//! FinRL's data: its risk indicator, and its filling of gaps.

use super::source::{PanelSource, SymbolFeature};
use crate::stocks::config::Finrl;
use crate::stocks::tables::status;
use datasets::Date;
use stages_core::StageError;

/// Takes the risk indicator out of the source, by date: that of the first symbol where it is one by symbol,
/// as FinRL reads it. Empty without a threshold.
///
/// # Errors
/// When there is a threshold and no such feature, or another feature by date, which FinRL's state does not
/// have.
pub(super) fn take_risk(rest: &mut PanelSource, finrl: &Finrl) -> Result<Vec<(Date, f64)>, StageError> {
    let name = &finrl.risk_indicator_col;
    let mut risk = None;
    if let Some(at) = rest.features.iter().position(|feature| feature.name == *name) {
        let values = rest.features.remove(at).values;
        risk = Some(values.into_iter().map(|(time, value)| (time.date, value)).collect());
    }
    if let Some(at) = rest.symbol_features.iter().position(|feature| feature.name == *name) {
        risk = rest.symbol_features.remove(at).values.into_iter().next();
    }
    if let Some(other) = rest.features.first() {
        return Err(StageError::new(format!(
            "the feature `{}` has one value a date, and FinRL's state has none such",
            other.name
        ))
        .hint("leave it out, or use rules: market"));
    }
    match (risk, finrl.turbulence_threshold) {
        (None, Some(_)) => Err(StageError::new(format!(
            "finrl.turbulence_threshold is given, and there is no feature `{name}`"
        ))
        .hint("connect `features/turbulence`, or name the feature at finrl.risk_indicator_col")),
        (risk, Some(_)) => Ok(risk.unwrap_or_default()),
        (_, None) => Ok(Vec::new()),
    }
}

/// The risk indicator on each date; 0 where it has no value, as FinRL has it in its first year.
pub(super) fn risk_by_date(values: &[(Date, f64)], dates: &[Date]) -> Vec<f64> {
    let of = |date: &Date| {
        let row = values.partition_point(|(of, _)| of < date);
        let found = values.get(row).filter(|(of, value)| of == date && !value.is_nan());
        found.map_or(0.0, |(_, value)| *value)
    };
    dates.iter().map(of).collect()
}

/// Symbols do not trade on dates on which their first indicator is exactly 1, which FinRL takes for its mark
/// of a symbol that cannot be traded.
pub(super) fn halt(features: &[f64], g: usize, flags: &mut [u8]) {
    if g == 0 {
        return;
    }
    for (flags, features) in flags.iter_mut().zip(features.chunks_exact(g)) {
        if features[0] == 1.0 {
            *flags &= !status::TRADES;
        }
    }
}

/// Features `[T, N, G]` as FinRL fills them: pandas' `ffill().bfill()` down the rows sorted by date and
/// symbol, across symbols.
pub(super) fn filled_across_symbols(features: &[SymbolFeature], dates: &[Date], n: usize) -> Vec<f64> {
    let g = features.len();
    let mut out = vec![0.0; dates.len() * n * g];
    for (j, feature) in features.iter().enumerate() {
        let mut column: Vec<f64> = Vec::with_capacity(dates.len() * n);
        for date in dates {
            for values in &feature.values {
                let row = values.partition_point(|(of, _)| of < date);
                let value = values
                    .get(row)
                    .filter(|(of, _)| of == date)
                    .map_or(f64::NAN, |value| value.1);
                column.push(value);
            }
        }
        let mut last = f64::NAN;
        for value in &mut column {
            match value.is_nan() {
                true => *value = last,
                false => last = *value,
            }
        }
        let first = column.iter().copied().find(|value| !value.is_nan()).unwrap_or(0.0);
        for (row, value) in column.into_iter().enumerate() {
            out[row * g + j] = if value.is_nan() { first } else { value };
        }
    }
    out
}
