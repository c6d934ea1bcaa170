//! Several snapshots of a day: the instants of all of them, or the choice of one.

use super::columns::{Chain, NO_INSTANT, UNKNOWN_TIME};
use crate::clock::{self, DAY, MINUTE};
use chrono_tz::Tz;
use datasets::contract::{Contracts, TimeOfDay};
use datasets::{Date, TimeZone};
use stages_core::StageError;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::ops::RangeFrom;
use std::str::FromStr;

/// The choice among the snapshots of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// All snapshots: the result is a chain by instant.
    All,
    /// The first snapshot of each contract.
    First,
    /// The last snapshot of each contract.
    Last,
    /// The first snapshot of each contract within this minute.
    At(TimeOfDay),
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::First => f.write_str("first"),
            Self::Last => f.write_str("last"),
            Self::At(time) => time.fmt(f),
        }
    }
}

impl FromStr for Snapshot {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            time => time.parse().map(Self::At).map_err(|_| {
                format!(
                    "`{text}` is not a snapshot; write `all`, `first`, `last` or a time of day such \
                    as \"15:45\""
                )
            }),
        }
    }
}

datasets::as_text!(
    Snapshot,
    "Snapshot",
    r"^(all|first|last|\d{1,2}:\d{2})$",
    "all, first, last, or a time of day such as \"15:45\"."
);

/// The time of day in minutes after midnight, rounded.
pub(super) fn minutes(time: TimeOfDay) -> i32 {
    (time.hours() * 60.0).round() as i32
}

/// The error for files without a row at `time`; `found` are the minutes that they have.
pub(super) fn none_at(time: TimeOfDay, found: impl Iterator<Item = i32>) -> StageError {
    StageError::new(format!("the files have no row of {time}")).hint(format!(
        "`snapshot` may be `all`, `first`, `last`, or one of {}",
        times(found)
    ))
}

/// Keeps one snapshot of each contract and day if `snapshot` selects one and the rows have times. Returns the
/// number of rows removed.
pub(super) fn choose(chain: &mut Chain, snapshot: Option<Snapshot>) -> u64 {
    let before = chain.len();
    let is_first = match snapshot {
        _ if chain.time.is_empty() => return 0,
        None | Some(Snapshot::All) => return 0,
        Some(Snapshot::First) => true,
        Some(Snapshot::Last) => false,
        Some(Snapshot::At(time)) => {
            let minute = i64::from(minutes(time));
            let times = chain.time.iter();
            let keep: Vec<bool> = times.map(|time| time.div_euclid(MINUTE) == minute).collect();
            chain.retain(&keep);
            true
        }
    };
    let rows = chain.by_key_and_time();
    let mut keep = vec![true; chain.len()];
    for contract in rows.chunk_by(|a, b| chain.same_key(*a as usize, *b as usize)) {
        let chosen = if is_first { contract.first() } else { contract.last() };
        let time = chosen.map(|row| chain.time[*row as usize]);
        for row in contract {
            keep[*row as usize] = Some(chain.time[*row as usize]) == time;
        }
    }
    chain.retain(&keep);
    (before - chain.len()) as u64
}

/// Sets the instants of rows with a local time, by a time zone.
pub(super) fn localise(
    chain: &mut Chain,
    rows: RangeFrom<usize>,
    zone: impl Fn(&Chain, usize) -> Tz,
) -> Result<(), StageError> {
    chain.instant.resize(chain.len(), NO_INSTANT);
    let mut known: HashMap<(Tz, i32, i64), i64> = HashMap::new();
    for row in rows.start..chain.len() {
        if chain.instant[row] != NO_INSTANT {
            continue;
        }
        let (zone, date) = (zone(chain, row), chain.date[row]);
        // A row without a time gets the beginning of its day; the stage refuses such rows if others of the
        // day have times.
        let time = match chain.time.get(row) {
            Some(time) if *time != UNKNOWN_TIME => *time,
            _ => 0,
        };
        chain.instant[row] = match known.get(&(zone, date, time)) {
            Some(instant) => *instant,
            None => {
                let instant = TimeZone::from(zone).at(Date(date), time);
                let instant = match (instant, time) {
                    (None, 0) => i64::from(date) * DAY,
                    (None, _) => return Err(skipped(zone, Date(date), time)),
                    (Some(instant), _) => instant,
                };
                *known.entry((zone, date, time)).or_insert(instant)
            }
        };
    }
    Ok(())
}

fn skipped(zone: Tz, date: Date, time: i64) -> StageError {
    StageError::new(format!(
        "{date} {} does not exist in {zone}: clocks skip it",
        clock::time_text(time)
    ))
    .hint(
        "the times of the files are those of another zone: state it with `zone: UTC` (or its IANA \
            name) in `layout: { like: …, zone: … }`",
    )
}

/// The time zones of a chain's exchanges, keyed by the numbers of symbol and class.
pub(super) struct Zones(HashMap<(u32, u32), Tz>);

impl Zones {
    /// The time zones of a chain's contracts; UTC where unknown.
    pub(super) fn of(chain: &Chain, contracts: &Contracts) -> Self {
        let zone = |(symbol, root): (u32, u32)| {
            let facts = contracts.of(chain.name(symbol), chain.name(root))?;
            facts.terms.time_zone.as_deref()?.parse().ok()
        };
        let pairs = chain.pairs().into_iter();
        Self(pairs.map(|pair| (pair, zone(pair).unwrap_or(Tz::UTC))).collect())
    }

    /// The time zone of a row.
    pub(super) fn zone(&self, chain: &Chain, row: usize) -> Tz {
        self.0
            .get(&(chain.symbol[row], chain.root[row]))
            .copied()
            .unwrap_or(Tz::UTC)
    }

    /// Refuses instants whose day in the exchange's time zone differs from the row's date.
    pub(super) fn check_days(&self, chain: &Chain) -> Result<(), StageError> {
        let mut last = None;
        for row in 0..chain.len() {
            let (instant, date, zone) = (chain.instant[row], Date(chain.date[row]), self.zone(chain, row));
            if last.replace((instant, date, zone)) == Some((instant, date, zone)) {
                continue;
            }
            let (day, _) = TimeZone::from(zone).local(instant);
            if day != date {
                return Err(StageError::new(format!(
                    "the snapshot of {} is on {day} in {zone}, and its rows are of {date}",
                    clock::instant_text(instant)
                ))
                .hint(
                    "state the zone of the files' times and that of the exchange: `layout: \
                    { like: …, zone: UTC, contract: { time_zone: America/New_York } }`",
                ));
            }
        }
        Ok(())
    }
}

/// Returns whether any contract of a sorted chain by instant has several snapshots on one day.
pub(super) fn has_several(chain: &Chain) -> bool {
    chain.days().into_iter().filter(|day| day.len() > 1).any(|day| {
        let mut contracts = HashSet::new();
        let mut rows = day.into_iter().flatten();
        rows.any(|i| {
            !contracts.insert((chain.expiry[i], chain.root[i], chain.strike[i].to_bits(), chain.call[i]))
        })
    })
}

/// Formats minutes after midnight as times of day; of many, only the first few.
fn times(minutes: impl Iterator<Item = i32>) -> String {
    const SHOWN: usize = 6;
    let distinct: BTreeSet<i32> = minutes.filter(|minute| *minute >= 0).collect();
    let shown: Vec<String> = distinct
        .iter()
        .take(SHOWN)
        .map(|minute| clock::time_text(i64::from(*minute) * MINUTE))
        .collect();
    let more = if distinct.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_words_or_times() {
        assert_eq!("15:45".parse::<Snapshot>().unwrap().to_string(), "15:45");
        assert_eq!("last".parse(), Ok(Snapshot::Last));
        assert_eq!("all".parse(), Ok(Snapshot::All));
        assert!("noon".parse::<Snapshot>().unwrap_err().contains("`first`, `last`"));
    }
}
