//! Normalisation of market and slate features, fitted on training dates alone.

use super::split::SnapshotRange;
use crate::spec::Normalisation;

/// Mean and standard deviation of each column over training rows: of each world its raw rows (`[T, width]`,
/// NaN where there is no value) and its training ranges. The other elements of an observation, `rest` of
/// them, have fixed scales and are left as they are.
pub(crate) fn fit(
    worlds: &[(&[f32], &[SnapshotRange])],
    width: usize,
    rest: usize,
    clip: f32,
) -> Normalisation {
    let mut offset = vec![0.0; width + rest];
    let mut scale = vec![1.0; width + rest];
    let rows = training_rows(worlds, width);
    for column in 0..width {
        (offset[column], scale[column]) = moments(rows.clone().map(move |row| row[column]));
    }
    Normalisation { offset, scale, clip }
}

/// The training rows of all worlds, in order.
pub(crate) fn training_rows<'a>(
    worlds: &'a [(&'a [f32], &'a [SnapshotRange])],
    width: usize,
) -> impl Iterator<Item = &'a [f32]> + Clone {
    worlds.iter().flat_map(move |&(raw, train)| {
        let rows = train.iter().flat_map(|range| range.first..=range.last);
        rows.map(move |t| &raw[t * width..(t + 1) * width])
    })
}

/// Offset and scale of a column: mean and standard deviation of its finite values.
pub(crate) fn moments(values: impl Iterator<Item = f32> + Clone) -> (f32, f32) {
    let values = values.map(f64::from).filter(|value| value.is_finite());
    let n = values.clone().count() as f64;
    if n == 0.0 {
        return (0.0, 1.0);
    }
    let mean = values.clone().sum::<f64>() / n;
    let deviation = (values.map(|value| (value - mean) * (value - mean)).sum::<f64>() / n).sqrt();
    // A column that does not move (a flag, a constant rate) is only shifted.
    let moves = deviation > 1e-6 * mean.abs().max(1e-6);
    (mean as f32, if moves { deviation as f32 } else { 1.0 })
}

/// Rows of observations: normalised and clipped; a missing value becomes 0, the mean.
pub(crate) fn rows(raw: &[f32], width: usize, by: &Normalisation) -> Vec<f32> {
    raw.chunks_exact(width.max(1))
        .flat_map(|row| {
            row.iter().enumerate().map(|(i, &value)| {
                let shown = (value - by.offset[i]) / by.scale[i];
                if shown.is_nan() {
                    0.0
                } else {
                    shown.clamp(-by.clip, by.clip)
                }
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_on_training_alone() {
        let raw = [1.0, 7.0, 3.0, 7.0, f32::NAN, 7.0, 1000.0, 9.0];
        let fitted = fit(&[(&raw, &[SnapshotRange { first: 0, last: 2 }])], 2, 1, 5.0);
        assert_eq!(fitted.offset, [2.0, 7.0, 0.0]);
        assert_eq!(fitted.scale, [1.0, 1.0, 1.0]);
        assert_eq!(rows(&raw, 2, &fitted), [-1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 5.0, 2.0]);
    }

    /// A level such as an index's: its mean is ten deviations, and it ranges up to ten deviations from it.
    #[test]
    fn single_precision_costs_less_than_a_millionth_of_a_deviation() {
        let exact: Vec<f64> = (0..2000)
            .map(|i| 3000.0 + 300.0 * (f64::from(i) * 0.01 - 10.0))
            .collect();
        let raw: Vec<f32> = exact.iter().map(|value| *value as f32).collect();
        let by = Normalisation {
            offset: vec![3000.0],
            scale: vec![300.0],
            clip: 10.0,
        };
        for (exact, shown) in exact.iter().zip(rows(&raw, 1, &by)) {
            assert!(((exact - 3000.0) / 300.0 - f64::from(shown)).abs() < 1e-6);
        }
    }
}
