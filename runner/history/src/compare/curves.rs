//! The mean learning curve of several repetitions.

use super::spread::Spread;
use crate::figures::Curve;

/// A mean curve and the spread of the single curves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeanCurve {
    /// The mean: pairs (step, mean).
    pub mean: Curve,
    /// The band: triples (step, mean - sd, mean + sd); empty for a single curve.
    pub band: Vec<(f64, f64, f64)>,
}

/// The mean of the curves, at each step of any curve where all curves have values. Curves are interpolated
/// linearly between their steps and undefined outside them.
pub fn mean(curves: &[&Curve]) -> MeanCurve {
    let curves: Vec<Curve> = curves.iter().map(|curve| tidy(curve)).collect();
    let mut steps: Vec<f64> = curves.iter().flatten().map(|point| point.0).collect();
    steps.sort_by(f64::total_cmp);
    steps.dedup();
    let mut all = MeanCurve::default();
    for step in steps {
        let Some(values) = curves.iter().map(|curve| at(curve, step)).collect::<Option<Vec<f64>>>() else {
            continue;
        };
        // A NaN interrupts the line.
        let spread = Spread::of(&values).filter(|spread| spread.n == values.len());
        all.mean.push((step, spread.map_or(f64::NAN, |spread| spread.mean)));
        if let Some(Spread {
            mean, sd: Some(sd), ..
        }) = spread
        {
            all.band.push((step, mean - sd, mean + sd));
        }
    }
    all
}

/// The curve in the order of steps; of several values at one step, the last is kept.
fn tidy(curve: &Curve) -> Curve {
    let mut tidy: Curve = curve.clone();
    tidy.sort_by(|a, b| a.0.total_cmp(&b.0));
    tidy.reverse();
    tidy.dedup_by(|a, b| a.0 == b.0);
    tidy.reverse();
    tidy
}

/// The value of a tidy curve at a step.
fn at(curve: &Curve, step: f64) -> Option<f64> {
    let after = curve.partition_point(|point| point.0 < step);
    let right = curve.get(after)?;
    if right.0 == step {
        return Some(right.1);
    }
    let left = curve.get(after.checked_sub(1)?)?;
    let share = (step - left.0) / (right.0 - left.0);
    Some(left.1 + share * (right.1 - left.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let a = vec![(0.0, 1.0), (10.0, 2.0), (20.0, 3.0)];
        let b = vec![(0.0, 3.0), (10.0, 6.0), (20.0, 3.0)];
        let both = mean(&[&a, &b]);
        assert_eq!(both.mean, [(0.0, 2.0), (10.0, 4.0), (20.0, 3.0)]);
        // The sample standard deviation of two values is their distance divided by the square root of two.
        let root = 2.0_f64.sqrt();
        for ((_, low, high), distance) in both.band.iter().zip([2.0, 4.0, 0.0]) {
            assert!((high - low - 2.0 * distance / root).abs() < 1e-12, "{both:?}");
        }
        assert_eq!(
            mean(&[&a]),
            MeanCurve {
                mean: a.clone(),
                band: Vec::new()
            }
        );
        assert_eq!(mean(&[]), MeanCurve::default());
    }

    #[test]
    fn other_steps_are_met_on_straight_lines_and_nothing_is_made_up_outside() {
        let a = vec![(0.0, 0.0), (10.0, 10.0)];
        let b = vec![(4.0, 0.0), (8.0, 4.0), (12.0, 0.0)];
        let both = mean(&[&a, &b]);
        assert_eq!(both.mean, [(4.0, 2.0), (8.0, 6.0), (10.0, 6.0)]);
    }

    #[test]
    fn what_is_no_number_breaks_the_line_and_the_last_of_a_step_counts() {
        let a = vec![(1.0, 5.0), (0.0, 1.0), (1.0, 7.0), (2.0, f64::NAN), (3.0, 1.0)];
        let one = mean(&[&a]);
        assert_eq!(one.mean[..2], [(0.0, 1.0), (1.0, 7.0)]);
        assert!(one.mean[2].1.is_nan() && one.mean[3] == (3.0, 1.0));
        let two = mean(&[&a, &a]);
        assert_eq!(two.band, [(0.0, 1.0, 1.0), (1.0, 7.0, 7.0), (3.0, 1.0, 1.0)]);
    }
}
