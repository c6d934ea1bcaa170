//! The figures of one strategy over queries, so that they can be computed anew for any resample of the
//! queries.
//!
//! The *units* of a resample are what is independent: a true query with its corrupted twin, a fact with the
//! queries for both of its sides, a problem.

use super::verdicts::Outcome;

/// The figures of a strategy.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// The figures that have a value in resamples, by name.
    pub(super) figures: Vec<(String, Figure)>,
    /// The figures that are known for all queries together only.
    pub(super) fixed: Vec<(String, f64)>,
}

/// Candidates with their labels: whether they are the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Labelled {
    /// The candidates that are reached, with their scores.
    pub reached: Vec<(f64, bool)>,
    /// The number of candidates that are not reached, and of answers among them.
    pub unreached: [usize; 2],
}

/// A figure that is computed from units, each of which counts a number of times.
#[derive(Clone, Debug)]
pub(super) enum Figure {
    /// The sum of one number of each unit over the sum of another.
    Ratio(Vec<(f64, f64)>),
    /// The area under precision and recall.
    Area(Area),
    /// The mean absolute difference between confidence and the fraction of right verdicts, over ten ranges:
    /// unit, range, confidence, whether it is right.
    Calibration(Vec<(u32, usize, f64, bool)>),
}

impl Figure {
    /// The ratio of the sums of numbers of queries; query i is of unit i / `per_unit`. A query without a
    /// number counts in neither sum.
    pub(super) fn ratio<T>(
        queries: &[T],
        per_unit: usize,
        of: impl Fn(usize, &T) -> Option<(f64, f64)>,
    ) -> Self {
        let mut sums = vec![(0.0, 0.0); queries.len().div_ceil(per_unit)];
        for (at, query) in queries.iter().enumerate() {
            if let Some((over, under)) = of(at, query) {
                let sum = &mut sums[at / per_unit];
                *sum = (sum.0 + over, sum.1 + under);
            }
        }
        Self::Ratio(sums)
    }

    /// The mean of a number over the queries that have it.
    pub(super) fn mean<T>(queries: &[T], per_unit: usize, of: impl Fn(usize, &T) -> Option<f64>) -> Self {
        Self::ratio(queries, per_unit, |at, query| of(at, query).map(|number| (number, 1.0)))
    }

    /// The calibration of verdicts.
    pub(super) fn calibration(outcomes: &[Outcome], per_unit: usize) -> Self {
        let one = |(at, end): (usize, &Outcome)| {
            let (confidence, range) = end.confidence();
            ((at / per_unit) as u32, range, confidence, end.is_right())
        };
        Self::Calibration(outcomes.iter().enumerate().map(one).collect())
    }

    /// The figure where each unit counts once.
    fn whole(&self) -> f64 {
        let units = match self {
            Self::Ratio(sums) => sums.len(),
            Self::Area(area) => area.unreached.len(),
            Self::Calibration(verdicts) => verdicts.last().map_or(0, |last| last.0 as usize + 1),
        };
        self.value(&vec![1.0; units])
    }

    /// The figure where unit i counts `times[i]` times; NaN where nothing counts.
    pub(super) fn value(&self, times: &[f64]) -> f64 {
        match self {
            Self::Ratio(sums) => {
                let (over, under) = sums.iter().zip(times).fold((0.0, 0.0), |(over, under), (sum, times)| {
                    (over + times * sum.0, under + times * sum.1)
                });
                if under == 0.0 { f64::NAN } else { over / under }
            }
            Self::Area(area) => area.value(times),
            Self::Calibration(verdicts) => {
                let mut ranges = [(0.0, 0.0); 10];
                let mut all = 0.0;
                for &(unit, range, confidence, is_right) in verdicts {
                    let times = times[unit as usize];
                    all += times;
                    let sums = &mut ranges[range];
                    *sums = (
                        sums.0 + times * confidence,
                        sums.1 + times * f64::from(u8::from(is_right)),
                    );
                }
                ranges
                    .iter()
                    .map(|(confidence, right)| (confidence - right).abs())
                    .sum::<f64>()
                    / all
            }
        }
    }
}

/// Scores of candidates with labels, the highest first.
#[derive(Clone, Debug)]
pub(super) struct Area {
    /// Each candidate's unit, whether it is an answer, and whether the next candidate has a lower score.
    candidates: Vec<(u32, bool, bool)>,
    /// For each unit, the number of candidates without a score and the number of answers among them: they
    /// come last, together.
    unreached: Vec<[f64; 2]>,
}

impl Area {
    /// The candidates of queries; query i belongs to unit i / `per_unit`.
    pub(super) fn new<'a>(queries: impl Iterator<Item = &'a Labelled>, per_unit: usize) -> Self {
        let mut scores = Vec::new();
        let mut unreached: Vec<[f64; 2]> = Vec::new();
        for (at, query) in queries.enumerate() {
            let unit = at / per_unit;
            scores.extend(query.reached.iter().map(|&(score, label)| (score, unit as u32, label)));
            unreached.resize(unit + 1, [0.0; 2]);
            (0..2).for_each(|of| unreached[unit][of] += query.unreached[of] as f64);
        }
        scores.sort_by(|a, b| b.0.total_cmp(&a.0));
        let ends = (0..scores.len()).map(|at| scores.get(at + 1).is_none_or(|next| next.0 != scores[at].0));
        Self {
            candidates: scores.iter().zip(ends).map(|(of, ends)| (of.1, of.2, ends)).collect(),
            unreached,
        }
    }

    /// Average precision of all candidates, 0 without an answer.
    pub(super) fn whole(&self) -> f64 {
        let area = self.value(&vec![1.0; self.unreached.len()]);
        if area.is_nan() { 0.0 } else { area }
    }

    /// Average precision, the sum over thresholds of the precision there times the recall that it adds; equal
    /// scores are one threshold, and what is not reached is the last one.
    fn value(&self, times: &[f64]) -> f64 {
        let (mut found, mut seen, mut sum) = (0.0, 0.0, 0.0);
        let mut threshold = |new: f64, count: f64| {
            found += new;
            seen += count;
            if new > 0.0 {
                sum += new * found / seen;
            }
        };
        let (mut new, mut count) = (0.0, 0.0);
        for &(unit, label, ends) in &self.candidates {
            let times = times[unit as usize];
            count += times;
            if label {
                new += times;
            }
            if ends {
                threshold(new, count);
                (new, count) = (0.0, 0.0);
            }
        }
        let (count, new) = self.unreached.iter().zip(times).fold((0.0, 0.0), |sum, (of, times)| {
            (sum.0 + times * of[0], sum.1 + times * of[1])
        });
        threshold(new, count);
        sum / found
    }
}

impl Sheet {
    /// Adds a figure.
    pub(super) fn add(&mut self, name: impl Into<String>, figure: Figure) {
        self.figures.push((name.into(), figure));
    }

    /// Adds the figures of lengths beside the shortest ones; `of` gives both of a query where both are known.
    pub(super) fn add_lengths<T>(
        &mut self,
        name: &str,
        queries: &[T],
        per_unit: usize,
        of: impl Fn(usize, &T) -> Option<(f64, f64)>,
    ) {
        let mean = |of: &dyn Fn(usize, &T) -> Option<f64>| Figure::mean(queries, per_unit, of);
        self.add(name, mean(&|at, query| of(at, query).map(|both| both.0)));
        self.add("shortest_length", mean(&|at, query| of(at, query).map(|both| both.1)));
        self.add("length_ratio", Figure::ratio(queries, per_unit, &of));
        let is_shortest = |at: usize, query: &T| of(at, query).map(|(a, b)| f64::from(u8::from(a == b)));
        self.add("shortest_fraction", mean(&is_shortest));
    }

    /// All figures where unit i counts `times[i]` times.
    pub(super) fn values(&self, times: &[f64]) -> Vec<f64> {
        self.figures.iter().map(|(_, figure)| figure.value(times)).collect()
    }

    /// The index of a figure.
    pub(super) fn at(&self, name: &str) -> Option<usize> {
        self.figures.iter().position(|figure| figure.0 == name)
    }

    /// A figure over all units, by name; NaN where there is none.
    pub fn value(&self, name: &str) -> f64 {
        let fixed = self.fixed.iter().find(|figure| figure.0 == name).map(|figure| figure.1);
        let figure_value = self.at(name).map(|at| self.figures[at].1.whole());
        figure_value.or(fixed).unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    /// Counting a unit twice is the same as having it twice.
    #[test]
    fn times_stand_for_copies() {
        let mut random = Random::new(&[4]);
        let queries: Vec<Labelled> = (0..12)
            .map(|_| Labelled {
                reached: (0..random.below(6))
                    .map(|_| (random.below(4) as f64, random.below(3) == 0))
                    .collect(),
                unreached: [3, random.below(2) as usize],
            })
            .collect();
        let outcomes: Vec<Outcome> = (0..12)
            .map(|at| Outcome {
                label: at % 2 == 0,
                is_proved: random.below(2) == 0,
                score: random.uniform(),
                ..Outcome::default()
            })
            .collect();
        let times = [2.0, 0.0, 1.0, 3.0, 0.0, 1.0];
        let copies: Vec<usize> = (0..6).flat_map(|unit| vec![unit; times[unit] as usize]).collect();
        let twins = |units: &[usize]| -> Vec<usize> {
            units.iter().flat_map(|unit| [2 * unit, 2 * unit + 1]).collect()
        };
        let copied: Vec<Labelled> = twins(&copies).into_iter().map(|at| queries[at].clone()).collect();
        let ends: Vec<Outcome> = twins(&copies).into_iter().map(|at| outcomes[at]).collect();
        let area = |of: &[Labelled]| Figure::Area(Area::new(of.iter(), 2));
        let success = |of: &[Outcome]| {
            Figure::mean(of, 2, |_, end| end.label.then(|| f64::from(u8::from(end.is_proved))))
        };
        let ones = vec![1.0; copies.len()];
        for (figure, copy) in [
            (area(&queries), area(&copied)),
            (success(&outcomes), success(&ends)),
            (Figure::calibration(&outcomes, 2), Figure::calibration(&ends, 2)),
        ] {
            let (a, b) = (figure.value(&times), copy.value(&ones));
            assert!((a - b).abs() < 1e-12 && a > 0.0, "{a} {b}: {figure:?}");
        }
        assert!(success(&outcomes[1..1]).value(&[]).is_nan());
    }

    fn area(reached: &[(f64, bool)], unreached: [usize; 2]) -> f64 {
        let reached = reached.to_vec();
        Area::new([Labelled { reached, unreached }].iter(), 1).whole()
    }

    #[test]
    fn average_precision_is_that_of_the_definition() {
        // The example of scikit-learn's average_precision_score.
        let scores = [(0.1, false), (0.4, false), (0.35, true), (0.8, true)];
        assert!((area(&scores, [0; 2]) - 5.0 / 6.0).abs() < 1e-12);
        // Equal scores say nothing: the precision is the fraction of positives.
        let equal: Vec<(f64, bool)> = (0..10).map(|i| (0.5, i < 3)).collect();
        assert!((area(&equal, [0; 2]) - 0.3).abs() < 1e-12);
        assert_eq!(area(&[], [0; 2]), 0.0);
    }

    #[test]
    fn the_area_is_average_precision_with_what_is_not_reached_last() {
        let reached = vec![(0.3, false), (0.9, true), (0.5, false), (0.3, true)];
        let mut all = reached.clone();
        all.extend([(f64::NEG_INFINITY, true), (f64::NEG_INFINITY, false)]);
        let of = area(&reached, [2, 1]);
        // Precisions 1, 2/4 and 3/6.
        assert!((of - 2.0 / 3.0).abs() < 1e-12 && (of - area(&all, [0; 2])).abs() < 1e-12);
        assert_eq!(area(&[], [3, 0]), 0.0);
    }
}
