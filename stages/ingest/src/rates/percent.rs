//! Percent or decimal: where a file's rates do not tell, or tell otherwise than they are read.

use super::stage::Point;
use datasets::Date;
use datasets::layout::{Layout, Unit};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Rates of a layout that states nothing are percent for certain from here on: as decimals they would be
/// 100 %.
const CERTAIN: f64 = 1.0;

/// Rates of a layout in percent whose largest is below this are those of a time of zero interest, which have
/// two decimals, or decimals.
const ZERO_INTEREST: f64 = 0.3;

/// The different rates from which on their last digit says something.
const SEVERAL: usize = 5;

/// Percent, and what it is known by.
struct Read<'a> {
    layout: &'a Layout,
    is_percent: bool,
    /// The number that is farthest from 0, as the files have it.
    largest: (f64, Date),
    /// Numbers that are whole hundredths, up to [`SEVERAL`].
    whole: BTreeSet<i64>,
    /// True if a number is no whole hundredth.
    is_fine: bool,
}

/// The numbers of all files, by their layout.
#[derive(Default)]
pub(super) struct Percent<'a>(BTreeMap<&'a str, Read<'a>>);

impl<'a> Percent<'a> {
    /// Adds the rates, decimal, of a file.
    pub(super) fn add(&mut self, layout: &'a Layout, points: &[Point]) {
        let is_of = |wanted: &Unit| layout.sources("rate").all(|mapping| mapping.unit == *wanted);
        let is_percent = is_of(&Unit::Times(0.01));
        if !is_percent && !is_of(&Unit::AsIs) {
            return;
        }
        let read = self.0.entry(&layout.name).or_insert_with(|| Read {
            layout,
            is_percent,
            largest: (0.0, Date::default()),
            whole: BTreeSet::new(),
            is_fine: false,
        });
        for &(date, _, rate) in points.iter().filter(|(_, _, rate)| rate.is_finite() && *rate != 0.0) {
            let number = if is_percent { 100.0 * rate } else { rate };
            if number.abs() > read.largest.0.abs() {
                read.largest = (number, date);
            }
            let hundredths = (100.0 * number).round();
            if (100.0 * number - hundredths).abs() > 1e-6 {
                read.is_fine = true;
            } else if read.whole.len() < SEVERAL {
                read.whole.insert(hundredths as i64);
            }
        }
    }

    /// A warning with its remedy for each layout whose numbers may be of the other unit.
    pub(super) fn doubts(&self) -> Vec<(String, String)> {
        self.0.values().filter_map(Read::doubt).collect()
    }

    /// The unit of the files' rates, with its origin.
    pub(super) fn fact(&self) -> Value {
        self.0.values().next().map_or(Value::Null, |read| {
            json!({
                "value": if read.is_percent { "percent" } else { "decimal" },
                "origin": read.origin(),
            })
        })
    }
}

impl Read<'_> {
    fn origin(&self) -> String {
        match (self.layout.facts.percent_is_stated, self.layout.is_described) {
            (true, _) => "configuration".to_owned(),
            (false, false) => format!("layout {}", self.layout.name),
            (false, true) if self.largest.0.abs() >= CERTAIN => "found".to_owned(),
            (false, true) => "assumed".to_owned(),
        }
    }

    fn doubt(&self) -> Option<(String, String)> {
        let (number, date) = self.largest;
        let (size, name) = (number.abs(), &self.layout.name);
        if size == 0.0 {
            return None;
        }
        // As files have it: a factor of 100 leaves digits that nobody wrote.
        let number = (number * 1e8).round() / 1e8;
        let percent = (number * 1e10).round() / 1e8;
        let below = |bound: f64| {
            format!(
                "no rate of the layout `{name}` reaches {bound} %: the largest, {number} on {date}, is taken \
                for {number} %"
            )
        };
        match (self.layout.facts.percent_is_stated, self.is_percent) {
            (false, true) if self.layout.is_described && size < CERTAIN => Some((
                format!("{}, as `percent` is not stated", below(CERTAIN)),
                format!(
                    "if it is {percent} %, write `percent: false` in the layout; `percent: true` states that \
                    it is {number} %"
                ),
            )),
            (false, true) if !self.layout.is_described && size < ZERO_INTEREST && self.is_fine => Some((
                below(ZERO_INTEREST),
                format!("if it is {percent} %, write `layout: {{ like: {name}, percent: false }}`"),
            )),
            (true, false) if !self.is_fine && self.whole.len() >= SEVERAL => Some((
                format!(
                    "every rate of the layout `{name}` is a whole number of percent: the largest, {number} on \
                    {date}, is taken for {percent} %"
                ),
                format!("if it is {number} %, write `percent: true` in the layout"),
            )),
            _ => None,
        }
    }
}
