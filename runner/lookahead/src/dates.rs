//! The dates of the check: spread over the range, notable ones, and drawn ones, until a leak is found with a
//! stated probability.

use super::moment::{self, Stamp};
use super::sources::Source;
use datasets::Date;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The last moment whose data is unchanged.
#[derive(Clone, Debug, Serialize)]
pub struct Cut {
    /// The date of the last unchanged rows, as text.
    pub at: String,
    /// The last moment, in microseconds since 1970-01-01.
    #[serde(skip)]
    pub(crate) until: i64,
    /// The reason why it was chosen.
    pub reason: String,
}

/// The statement of the check: of pipelines that leak at a share of all dates, this share is found.
#[derive(Clone, Debug, Serialize)]
pub struct Confidence {
    /// The dates at which data can be cut.
    pub dates: usize,
    /// The dates that were tested.
    pub tested: usize,
    /// The dates that were drawn, each with the same chance.
    pub drawn: usize,
    /// The share of the dates at which a pipeline leaks.
    pub share: f64,
    /// The probability that one of them is drawn.
    pub found: f64,
}

/// The requested confidence.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The share of the dates at which a pipeline leaks.
    pub share: f64,
    /// The probability with which such a leak is found.
    pub confidence: f64,
    /// The seed of the drawn dates.
    pub seed: u64,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            share: 0.05,
            confidence: 0.95,
            seed: 0,
        }
    }
}

/// The probability that a draw of `drawn` of `dates` dates without replacement has one of the share that
/// leaks: 1 - C(N - m, n) / C(N, n), with m the share of N, rounded up.
pub(crate) fn probability(dates: usize, share: f64, drawn: usize) -> f64 {
    let leaking = ((share * dates as f64).ceil() as usize).clamp(1, dates.max(1));
    let missed: f64 = (0..drawn.min(dates))
        .map(|i| (dates.saturating_sub(leaking + i)) as f64 / (dates - i) as f64)
        .product();
    1.0 - missed
}

/// The fewest draws with this probability.
fn draws(dates: usize, wanted: Wanted) -> usize {
    (0..=dates)
        .find(|&drawn| probability(dates, wanted.share, drawn) >= wanted.confidence)
        .unwrap_or(dates)
}

/// The moments at which the data of all sources can be cut, each with the date of the last row before it.
fn candidates(sources: &[Source]) -> Vec<(Stamp, i64)> {
    let mut all: BTreeSet<Stamp> = BTreeSet::new();
    let (mut first, mut last) = (i64::MIN, i64::MAX);
    // A source of few dates, such as corporate actions, does not limit the range.
    let most = sources.iter().map(|source| source.scan.stamps.len()).max().unwrap_or(0);
    for source in sources {
        let stamps = &source.scan.stamps;
        if stamps.len() * 4 >= most
            && let (Some(from), Some(to)) = (stamps.first(), stamps.last())
        {
            (first, last) = (first.max(from.end), last.min(to.start));
        }
        all.extend(stamps);
    }
    let stamps: Vec<Stamp> = all.into_iter().collect();
    let pairs = stamps.windows(2).filter(|pair| pair[0].start < pair[1].start);
    let every: Vec<(Stamp, i64)> = pairs.map(|pair| (pair[0], pair[1].start - 1)).collect();
    // In the range that all sources share, or else anywhere.
    let shared: Vec<(Stamp, i64)> = every
        .iter()
        .copied()
        .filter(|(_, until)| first <= *until && *until < last)
        .collect();
    let candidates = if shared.len() > 1 { shared } else { every };
    // Programs need some rows to begin with.
    let least = (candidates.len() / 20).max(5).min(candidates.len() / 4);
    candidates[least..].to_vec()
}

/// The first and the last date of all sources.
pub(crate) fn span(sources: &[Source]) -> Option<(Date, Date)> {
    let stamps = || sources.iter().flat_map(|source| &source.scan.stamps);
    Some((stamps().min()?.date(), stamps().max()?.date()))
}

/// The cut after a date; `None` if no source has data both up to it and after it.
pub(crate) fn cut_at(sources: &[Source], date: Date) -> Option<Cut> {
    let until = Stamp::day(date).end;
    let stamps = || sources.iter().flat_map(|source| &source.scan.stamps);
    let splits = stamps().any(|stamp| stamp.end <= until) && stamps().any(|stamp| stamp.end > until);
    splits.then(|| Cut {
        at: date.to_string(),
        until,
        reason: "given".to_owned(),
    })
}

/// Chooses the dates. `named` are dates that the pipeline names, `also` moments that must be among them.
pub(crate) fn choose(
    sources: &[Source],
    named: &BTreeSet<Date>,
    also: &[(Date, &'static str)],
    wanted: Wanted,
) -> (Vec<Cut>, Confidence) {
    let candidates = candidates(sources);
    let count = candidates.len();
    let drawn = draws(count, wanted);
    let mut chosen: BTreeMap<usize, &str> = BTreeMap::new();
    let mut order: Vec<usize> = Vec::new();
    let mut take = |i: usize, reason: &'static str| {
        if i < count && !chosen.contains_key(&i) {
            chosen.insert(i, reason);
            order.push(i);
        }
    };
    for tenth in [5, 9, 2, 7, 4, 8] {
        take(count * tenth / 10, "spread");
    }
    take(count.saturating_sub(1), "the last");
    // A date and the one before it, since data is cut after a date.
    let place = |date: Date| candidates.partition_point(|(stamp, _)| stamp.date() < date);
    for &(date, reason) in also {
        take(place(date), reason);
    }
    for &date in named {
        for i in [place(date), place(date).wrapping_sub(1)] {
            take(i, "named in the pipeline");
        }
    }
    let ends = |same: &dyn Fn(Date) -> (i32, u32)| -> Vec<usize> {
        let date = |i: usize| candidates[i].0.date();
        (1..count)
            .filter(|&i| same(date(i - 1)) != same(date(i)))
            .map(|i| i - 1)
            .collect()
    };
    let months = ends(&|date| (date.ymd().0, date.ymd().1));
    let weeks = ends(&|date| ((date.0 + 3).div_euclid(7), 0));
    let years = ends(&|date| (date.ymd().0, 0));
    for (ends, most, reason) in [
        (years, 2, "a year ends"),
        (months, 4, "a month ends"),
        (weeks, 3, "a week ends"),
    ] {
        for i in spread(&ends, most) {
            take(i, reason);
        }
    }
    let mut notable: BTreeMap<&'static str, BTreeSet<usize>> = BTreeMap::new();
    for (stamp, reason) in sources.iter().flat_map(|source| &source.scan.notable) {
        let i = candidates.partition_point(|(other, _)| other < stamp);
        if candidates.get(i).is_some_and(|(other, _)| other == stamp) {
            notable.entry(reason).or_default().insert(i);
        }
    }
    for (reason, places) in notable {
        let places: Vec<usize> = places.into_iter().collect();
        for i in spread(&places, 4) {
            take(i, reason);
            take(i.wrapping_sub(1), reason);
        }
    }
    for i in shuffled(count, wanted.seed).into_iter().take(drawn) {
        take(i, "drawn");
    }
    let cuts: Vec<Cut> = order
        .iter()
        .map(|i| Cut {
            at: candidates[*i].0.to_string(),
            until: candidates[*i].1,
            reason: chosen[i].to_owned(),
        })
        .collect();
    let tested = cuts.len();
    let found = if tested == count {
        1.0
    } else {
        probability(count, wanted.share, drawn)
    };
    (
        cuts,
        Confidence {
            dates: count,
            tested,
            drawn,
            share: wanted.share,
            found,
        },
    )
}

/// At most so many of some places, spread over them.
fn spread(places: &[usize], most: usize) -> Vec<usize> {
    let count = places.len().min(most);
    (0..count)
        .map(|i| places[(2 * i + 1) * places.len() / (2 * count)])
        .collect()
}

/// A permutation of 0..count.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut random = stages_numerics::random::Random::new(&[seed, 0x6c6f_6f6b]);
    let mut places: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        places.swap(i, random.below(i as u64 + 1) as usize);
    }
    places
}

/// The dates in the configuration and the programs of a pipeline.
pub(crate) fn named(texts: impl Iterator<Item = String>) -> BTreeSet<Date> {
    texts.flat_map(|text| moment::named_in(&text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a count of all draws.
    #[test]
    fn the_probability_is_that_of_draws() {
        let (dates, leaking) = (12u32, 3);
        for drawn in 0..=12u32 {
            let subsets = (0u32..1 << dates).filter(|set| set.count_ones() == drawn);
            let (mut all, mut hit) = (0, 0);
            for set in subsets {
                all += 1;
                hit += u32::from(set & ((1 << leaking) - 1) != 0);
            }
            let expected = f64::from(hit) / f64::from(all);
            let found = probability(dates as usize, f64::from(leaking) / f64::from(dates), drawn as usize);
            assert!((found - expected).abs() < 1e-12, "{drawn}: {found} {expected}");
        }
    }

    #[test]
    fn draws_reach_the_confidence() {
        let wanted = Wanted {
            share: 0.05,
            confidence: 0.95,
            seed: 0,
        };
        for (dates, expected) in [(10, 10), (60, 38), (2500, 58)] {
            let drawn = draws(dates, wanted);
            assert!(
                probability(dates, 0.05, drawn) >= 0.95
                    && (drawn == 0 || probability(dates, 0.05, drawn - 1) < 0.95)
            );
            assert!(drawn.abs_diff(expected) <= 2, "{dates}: {drawn}");
        }
        assert_ne!(shuffled(100, 1), shuffled(100, 2));
        assert_eq!(shuffled(100, 1), shuffled(100, 1));
    }
}
