//! Limits of a sample's distances from its own history: what the reference did itself is no drift.
//!
//! A feature that changes slowly is never distributed as over all of its past for a few weeks. The distances
//! of the reference's own windows, each as many dates as the latest ones, from the rest of the reference say
//! how far apart such samples are with nothing wrong.

use super::statistics::{kolmogorov_smirnov, population_stability};
use crate::performance::quantile;
use datasets::Date;
use rayon::prelude::*;

/// The least number of windows side by side.
const WINDOWS: usize = 4;

/// The windows that begin within the length of one.
const OVERLAP: usize = 4;

/// The part of the way from the median distance to the largest by which drift begins beyond the largest: the
/// largest of a few dozen windows is exceeded now and then.
const MARGIN: f64 = 0.5;

/// The quantile of the distances below which drift ends.
const END: f64 = 0.9;

/// The limits of a distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    /// The distance from which on a sample has drifted.
    pub begin: f64,
    /// The distance below which a sample that had drifted has no longer.
    pub end: f64,
}

impl Limits {
    fn new(distances: &[f64]) -> Self {
        let [median, end, largest] = [0.5, END, 1.0].map(|q| quantile(distances, q));
        Self {
            begin: largest + MARGIN * (largest - median),
            end,
        }
    }
}

/// The limits of the stability index, and of the distance of Kolmogorov and Smirnov, of a sample of `window`
/// dates; `None` where the reference has fewer dates than four of them. `dates` are those of the values.
pub(super) fn limits(values: &[f64], dates: &[Date], window: usize) -> Option<[Limits; 2]> {
    let mut days = dates.to_vec();
    days.sort_unstable();
    days.dedup();
    if days.len() < WINDOWS * window {
        return None;
    }
    let mut sorted: Vec<(f64, Date)> = values.iter().copied().zip(dates.iter().copied()).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let starts: Vec<usize> = (0..=days.len() - window).step_by((window / OVERLAP).max(1)).collect();
    let distances = |&start: &usize| {
        let range = days[start]..=days[start + window - 1];
        let (inside, rest): (Vec<&(f64, Date)>, Vec<_>) =
            sorted.iter().partition(|(_, date)| range.contains(date));
        let [inside, rest] =
            [inside, rest].map(|part| part.into_iter().map(|(x, _)| *x).collect::<Vec<f64>>());
        let (psi, ks) = (population_stability(&rest, &inside), kolmogorov_smirnov(&rest, &inside));
        (psi.value, ks.value)
    };
    let (psi, ks): (Vec<f64>, Vec<f64>) = starts.par_iter().map(distances).unzip();
    Some([Limits::new(&psi), Limits::new(&ks)])
}

#[cfg(test)]
mod tests {
    use super::super::samples::Pair;
    use super::super::{DriftConfig, LimitsFrom, Row, State};
    use super::*;
    use stages_numerics::random::Random;

    const WINDOW: usize = 40;

    fn config() -> DriftConfig {
        DriftConfig {
            recent: WINDOW,
            limits: LimitsFrom::History,
            ..DriftConfig::default()
        }
    }

    /// The nights with a message that drift begins, and those with one that it ends, from value `first` on;
    /// the reference is what comes before the latest dates, and before value `until`.
    fn messages(series: &[f64], first: usize, until: usize) -> (Vec<usize>, Vec<usize>) {
        let dates: Vec<Date> = (0..series.len() as i32).map(Date).collect();
        let (mut begins, mut ends, mut has_drifted) = (Vec::new(), Vec::new(), false);
        for night in first..series.len() {
            let split = (night + 1 - WINDOW).min(until);
            let pair = Pair {
                reference: series[..split].to_vec(),
                dates: dates[..split].to_vec(),
                current: series[night + 1 - WINDOW..=night].to_vec(),
            };
            let state = Row::new("feature/x", &pair, &config()).state;
            match (has_drifted, state) {
                (false, State::Warn | State::Fail) => begins.push(night),
                (true, State::Ok) => ends.push(night),
                _ => continue,
            }
            has_drifted = !has_drifted;
        }
        (begins, ends)
    }

    /// An autoregression of order 1 with a half-life of `days`, of variance 1.
    fn autoregression(random: &mut Random, days: usize, half_life: f64) -> Vec<f64> {
        let persistence = libm::exp2(-1.0 / half_life);
        let noise = (1.0 - persistence * persistence).sqrt();
        let mut x = random.normal();
        let mut next = || {
            x = persistence * x + noise * random.normal();
            x
        };
        (0..days).map(|_| next()).collect()
    }

    /// Wilder's relative strength index of a random walk.
    fn strength(random: &mut Random, days: usize, length: f64) -> Vec<f64> {
        let (mut up, mut down) = (0.4, 0.4);
        let mut next = || {
            let step = random.normal();
            up += (step.max(0.0) - up) / length;
            down += ((-step).max(0.0) - down) / length;
            100.0 * up / (up + down)
        };
        (0..days).map(|_| next()).collect()
    }

    /// docs/studies/statistics.md states these numbers.
    #[test]
    fn series_that_stay_as_they_are_seldom_make_a_message() {
        let (seasons, before, nights) = (60_u64, 500, 120);
        let share = |series: &(dyn Fn(&mut Random, usize) -> Vec<f64> + Sync)| {
            let told = |season: u64| {
                let series = series(&mut Random::new(&[season, 0x6472_6966]), before + nights);
                let (begins, ends) = messages(&series, before, usize::MAX);
                (begins.len(), begins.len() + ends.len())
            };
            let all: Vec<(usize, usize)> = (0..seasons).into_par_iter().map(told).collect();
            let told: usize = all.iter().map(|(_, told)| told).sum();
            let with = all.iter().filter(|(begins, _)| *begins > 0).count();
            (told as f64 / (seasons as usize * nights) as f64, with)
        };
        for (name, found) in [
            ("half-life 5", share(&|random, days| autoregression(random, days, 5.0))),
            (
                "half-life 20",
                share(&|random, days| autoregression(random, days, 20.0)),
            ),
            ("rsi_14", share(&|random, days| strength(random, days, 14.0))),
        ] {
            println!("{name}: {:.4} of nights, {} of {seasons} seasons", found.0, found.1);
            assert!(found.0 <= 0.01, "{name}: {found:?}");
        }
    }

    /// A change of three deviations that lasts for 100 days is told when it begins and when it ends, each
    /// once.
    #[test]
    fn a_change_is_told_when_it_begins_and_when_it_ends() {
        let told = |season: u64| {
            let random = &mut Random::new(&[season, 0x6368_616e]);
            let mut series = autoregression(random, 710, 5.0);
            series[560..660].iter_mut().for_each(|x| *x += 3.0);
            // Against the training's dates.
            messages(&series, 540, 500)
        };
        let all: Vec<_> = (0..20).into_par_iter().map(told).collect();
        let once = all.iter().filter(|(begins, ends)| begins.len() == 1 && ends.len() == 1);
        let once: Vec<(usize, usize)> = once.map(|(begins, ends)| (begins[0] - 560, ends[0] - 660)).collect();
        println!("{} of 20 once, after so many nights: {once:?}", once.len());
        assert_eq!(once.len(), 20, "{all:?}");
        assert!(once.iter().all(|(begins, ends)| *begins < 40 && *ends < 40), "{once:?}");
    }

    #[test]
    fn windows_are_of_dates() {
        // Two symbols over 16 dates, out of order: windows of four dates, of eight values each.
        let dates: Vec<Date> = (0..32).map(|i| Date(i * 7 % 16)).collect();
        let values: Vec<f64> = dates.iter().map(|date| f64::from(date.0)).collect();
        let [_, ks] = limits(&values, &dates, 4).unwrap();
        // The first and the last four dates are apart from the rest; the fifth to the eighth are as the
        // definition says.
        let rest: Vec<f64> = values.iter().copied().filter(|x| !(4.0..8.0).contains(x)).collect();
        let inside: Vec<f64> = values.iter().copied().filter(|x| (4.0..8.0).contains(x)).collect();
        let distances = (0..=12).map(|start| {
            let low = f64::from(start);
            let (inside, rest): (Vec<f64>, Vec<f64>) =
                values.iter().partition(|x| (low..low + 4.0).contains(*x));
            kolmogorov_smirnov(&rest, &inside).value
        });
        assert_eq!(Limits::new(&distances.collect::<Vec<_>>()), ks);
        assert!((kolmogorov_smirnov(&rest, &inside).value - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(limits(&values, &dates, 5), None);
    }
}
