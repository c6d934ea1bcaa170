//! The charts of a paper account, by the number of nights since its opening.

use super::{limit, percent};
use crate::chart::{Axis, Chart, Role, Series, Unit, lines};
use runner_history::paper::{Ledger, Night, PromiseRecord};
use std::collections::BTreeMap;

/// The number of nights that charts of the promise show: those that were, and as many to come.
fn shown(nights: &[&Night]) -> f64 {
    (2 * nights.len()).max(20) as f64
}

/// Bands between the quantiles of a promise, the outer first, with the median as a line of the last.
fn promised(promise: &PromiseRecord, quantiles: &[Vec<f64>], start: f64, until: f64) -> Vec<Series> {
    let levels = &promise.levels;
    let at = || promise.fan_nights.iter().zip(quantiles);
    let column = |level: usize| {
        let points = at().filter_map(move |(night, row)| Some((*night as f64, *row.get(level)?)));
        std::iter::once((0.0, start))
            .chain(points)
            .filter(move |(x, _)| *x <= until)
    };
    let mut all = Vec::new();
    for low in 0..levels.len() / 2 {
        let high = levels.len() - 1 - low;
        all.push(Series {
            name: format!("promised {} to {}", percent(levels[low]), percent(levels[high])),
            points: Vec::new(),
            band: column(low)
                .zip(column(high))
                .map(|((x, low), (_, high))| (x, low, high))
                .collect(),
            role: Role::Plain,
        });
    }
    let middle = levels.iter().position(|level| *level == 0.5);
    if let Some(middle) = middle.filter(|_| !quantiles.is_empty()) {
        all.push(Series::line("promised median", column(middle).collect()));
    }
    all
}

/// The points of a quantity by the number of nights since the opening; at 0 it is `start`.
fn by_night(nights: &[&Night], start: f64, of: impl Fn(&Night) -> f64) -> Vec<(f64, f64)> {
    let points = nights.iter().map(|night| (night.number as f64, of(night)));
    std::iter::once((0.0, start))
        .chain(points.filter(|(x, _)| *x > 0.0))
        .collect()
}

pub(super) fn equity(ledger: &Ledger, nights: &[&Night]) -> String {
    let points = by_night(nights, 1.0, |night| night.standing.growth);
    let mut series = vec![Series::line(ledger.name(), points).role(Role::Policy)];
    let promise = &ledger.opened().promise;
    series.extend(promised(promise, &promise.fan, 1.0, shown(nights)));
    lines(
        "value of 1 by nights since the opening, and the promise",
        &series,
        Axis::Steps,
        240.0,
    )
}

pub(super) fn drawdowns(ledger: &Ledger, nights: &[&Night]) -> String {
    let points = by_night(nights, 0.0, |night| night.standing.drawdown);
    let mut series = vec![Series::line("largest so far", points).role(Role::Policy)];
    let promise = &ledger.opened().promise;
    series.extend(promised(promise, &promise.drawdown, 0.0, shown(nights)));
    let title = "largest drawdown so far by nights, and the promise";
    let chart = Chart::new(title, series, Axis::Steps).unit(Unit::Percent);
    chart.height(240.0).html()
}

pub(super) fn evidence(ledger: &Ledger, nights: &[&Night]) -> String {
    // An e-value moves by factors.
    let points = by_night(nights, 0.0, |night| night.standing.evidence.max(1e-9).log10());
    let mut series = vec![Series::line("evidence", points)];
    if let Some(limit) = limit(&ledger.opened().promise) {
        let end = nights.last().map_or(1.0, |night| night.number.max(1) as f64);
        let level = limit.log10();
        series.push(Series::line("alarm", vec![(0.0, level), (end, level)]));
    }
    lines(
        "evidence against the promise, decimal logarithm",
        &series,
        Axis::Steps,
        180.0,
    )
}

pub(super) fn beside(nights: &[&Night]) -> String {
    let mut all: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    let mut first: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for night in nights {
        for (name, shadow) in &night.beside {
            // The capital begins anew where its policy changes.
            let start = first.entry(name).or_insert((shadow.since, shadow.nav));
            if start.0 != shadow.since {
                *start = (shadow.since, shadow.nav);
            }
            let value = shadow.nav / start.1;
            all.entry(name).or_default().push((night.number as f64, value));
        }
    }
    if all.is_empty() {
        return String::new();
    }
    let growth = by_night(nights, 1.0, |night| night.standing.growth);
    let mut series = vec![Series::line("account", growth).role(Role::Policy)];
    let beside = all.into_iter();
    series.extend(beside.map(|(name, points)| Series::line(name, points).role(Role::of(name))));
    lines("accounts beside it, value of 1", &series, Axis::Steps, 240.0)
}
