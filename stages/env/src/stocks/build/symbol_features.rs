//! Features by symbol and date, as a panel shows them.

use super::source::SymbolFeature;
use crate::feature_columns::check_gaps;
use crate::stocks::tables::status;
use datasets::Date;
use stages_core::StageError;

/// Features `[T, N, G]`, and the first date at which each of them has had a value of some symbol. A listed
/// symbol without a value shows its last one, one that is not listed shows none. A feature with more than the
/// share `most` of such gaps is refused.
pub(super) fn symbol_features(
    features: &[SymbolFeature],
    n: usize,
    dates: &[Date],
    flags: &[u8],
    most: f64,
    warnings: &mut Vec<String>,
) -> Result<(Vec<f32>, usize), StageError> {
    let g = features.len();
    let mut out = vec![f32::NAN; dates.len() * n * g];
    let mut warm_up = 0;
    let mut stale = Vec::new();
    for (j, feature) in features.iter().enumerate() {
        let (mut first, mut gaps, mut all) = (usize::MAX, 0_usize, 0_usize);
        for (i, values) in feature.values.iter().enumerate() {
            let mut values = values.as_slice();
            let mut last = f32::NAN;
            for (t, date) in dates.iter().enumerate() {
                let flags = flags[t * n + i];
                let skip = values.partition_point(|(of, _)| of < date);
                values = &values[skip..];
                match values.first().filter(|(of, _)| of == date) {
                    Some(&(_, value)) if value.is_finite() => {
                        last = value as f32;
                        first = first.min(t);
                    }
                    _ if flags & status::LISTED == 0 => last = f32::NAN,
                    _ if flags & status::TRADES != 0 && last.is_finite() => gaps += 1,
                    _ => {}
                }
                all += usize::from(flags & status::TRADES != 0 && last.is_finite());
                out[(t * n + i) * g + j] = last;
            }
        }
        if first == usize::MAX {
            return Err(StageError::new(format!(
                "the feature `{}` has no value of any symbol on any date of the bars",
                feature.name
            ))
            .hint(
                "its window may be longer than the data, or its dates may be others; leave it out or \
                shorten it",
            ));
        }
        warm_up = warm_up.max(first);
        check_gaps(
            gaps,
            all,
            most,
            ["its dates may be others than the bars'; ", ""],
            || {
                format!(
                    "the feature `{}` has no value for {gaps} of {all} bars after a symbol's first",
                    feature.name
                )
            },
        )?;
        if gaps > 0 {
            stale.push(format!("{} {gaps}", feature.name));
        }
    }
    if !stale.is_empty() {
        warnings.push(format!(
            "features of symbols without a value show the last one known, so many times: {}",
            stale.join(", ")
        ));
    }
    Ok((out, warm_up))
}
