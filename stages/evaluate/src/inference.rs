//! Probabilities by chance, and their correction where several differences are tested.

/// The two-sided p-value of a difference by its resamples: twice the smaller share of those at or beyond 0,
/// the difference itself counted among them (Davison and Hinkley 1997, section 4.2): of B resamples, at least
/// 2 / (B + 1). NaN without resamples.
pub fn two_sided(drawn: &[f64]) -> f64 {
    if drawn.is_empty() {
        return f64::NAN;
    }
    let beyond = |is: fn(&f64) -> bool| drawn.iter().filter(|x| is(x)).count();
    let least = beyond(|x| *x <= 0.0).min(beyond(|x| *x >= 0.0));
    (2.0 * (least + 1) as f64 / (drawn.len() + 1) as f64).min(1.0)
}

/// The p-values corrected for their number: of m tested, the k-th smallest times m - k + 1, and never below
/// a smaller one's (Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
/// Statistics 6, 1979). The probability that any of those below 0.05 is due to chance is at most 0.05,
/// however they depend on one another. NaN is not tested.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).filter(|&i| !p[i].is_nan()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut corrected = vec![f64::NAN; p.len()];
    let mut last = 0.0_f64;
    for (k, &i) in order.iter().enumerate() {
        last = last.max(p[i] * (order.len() - k) as f64).min(1.0);
        corrected[i] = last;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    #[test]
    fn resamples_on_one_side_leave_what_their_number_allows() {
        assert_eq!(two_sided(&vec![1.0; 999]), 0.002);
        let mut drawn = vec![1.0; 990];
        drawn.extend([-1.0; 9]);
        assert_eq!(two_sided(&drawn), 0.02);
        assert_eq!(two_sided(&[0.0; 9]), 1.0);
        assert!(two_sided(&[]).is_nan());
    }

    /// The example of R's `p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm")`, and ties out of order.
    #[test]
    fn corrected_as_by_definition() {
        let close = |found: Vec<f64>, wanted: &[f64]| {
            assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(wanted) {
                assert!(
                    (found - wanted).abs() < 1e-12 || found.is_nan() && wanted.is_nan(),
                    "{found} {wanted}"
                );
            }
        };
        close(holm(&[0.01, 0.02, 0.03, 0.04, 0.05]), &[0.05, 0.08, 0.09, 0.09, 0.09]);
        close(holm(&[0.5, f64::NAN, 0.01, 0.6]), &[1.0, f64::NAN, 0.03, 1.0]);
        close(holm(&[]), &[]);
    }

    /// Of ten differences that are all chance, one in 95 % of studies at most is taken for real after the
    /// correction; without it, in four of ten.
    #[test]
    fn ten_comparisons_find_something_by_chance_as_often_as_one_should() {
        let random = &mut Random::new(&[11]);
        let (studies, mut corrected, mut raw) = (2000, 0, 0);
        for _ in 0..studies {
            let p: Vec<f64> = (0..10).map(|_| random.uniform()).collect();
            corrected += u32::from(holm(&p).iter().any(|p| *p < 0.05));
            raw += u32::from(p.iter().any(|p| *p < 0.05));
        }
        let share = |found: u32| f64::from(found) / f64::from(studies);
        assert!(
            share(corrected) < 0.065 && share(raw) > 0.35,
            "{} {}",
            share(corrected),
            share(raw)
        );
    }
}
